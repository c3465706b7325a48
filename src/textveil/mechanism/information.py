"""Information: how many bits a code tells of a private word that is released by randomised response.

In: the shares of codes in public text, and epsilon. Out: the mutual information, exactly.
Not here: how often a word is guessed from a code (`guess`), and what a book is (`table.book`).
"""

import numpy as np

from textveil.errors import ConfigError
from textveil.randomness import Floats, Values


def entropy(shares: Values) -> float:
    """How many bits tell which of some values was drawn, whose probabilities [n] sum to 1."""
    some = shares[shares > 0]
    return float(-(some * np.log2(some)).sum())


def right(codes: int, epsilon: float) -> float:
    """How often k-ary randomised response over so many codes releases the code itself."""
    return float(1 / (1 + (codes - 1) * np.exp(-epsilon)))


def information(masses: Floats | Values, epsilon: float) -> float:
    """How many bits the released code tells of a word: I(X; Y) of a word X, drawn as in public text, and its code Y.

    The draw sees the code of a word only, so that it tells of the word what it tells of its code. I = H(Y) - H(Y | X):
    it is 0 at epsilon 0, and the entropy of the codes at infinity.

    Args:
        masses: the share of each code in public text, [C]; scaled to sum to 1.
        epsilon: of k-ary randomised response over the codes, 0 or more.

    Raises:
        ConfigError: epsilon is negative or no number.

    Source: Cover and Thomas, Elements of Information Theory, section 2.4; the rule is that of Kairouz, Oh and Viswanath
    (2014).
    """
    if not epsilon >= 0:
        raise ConfigError("epsilon must be 0 or more")
    shares, codes = masses.astype(np.float64), len(masses)
    shares /= shares.sum()
    own = right(codes, epsilon)
    law = np.full(codes, (1 - own) / (codes - 1))
    law[0] = own  # as of any code: the same numbers in another order
    return max(0.0, entropy(law[1] + (own - law[1]) * shares) - entropy(law))
