"""Information: bits that a released code gives about a private word.

The code is released by randomised response.
In: the shares of codes in public text, and epsilon. Out: the mutual information, exactly, and the
bound for any rule.
Not here: how often a word is guessed from a code (`guess`), and what a book is (`table.codebook`).
"""

import numpy as np

from textveil.errors import ConfigError
from textveil.randomness import Floats, Values


def entropy(shares: Floats | Values) -> float:
    """Computes the entropy in bits of some shares [n].

    They are scaled to sum to 1.
    """
    masses = shares[shares > 0].astype(np.float64)
    masses /= masses.sum()
    return float(-(masses * np.log2(masses)).sum())


def compute_keep_rate(codes: int, epsilon: float) -> float:
    """Returns how often k-ary randomised response releases the true code.

    Over this number of codes.
    """
    return float(1 / (1 + (codes - 1) * np.exp(-epsilon)))


def compute_information(masses: Floats | Values, epsilon: float) -> float:
    """Computes the information in bits of a released code about a word.

    I(X; Y) of a word X, drawn as in public text, and its code Y. The draw sees the code of a word
    only, so it gives about the word what it gives about its code. I = H(Y) - H(Y | X): it is 0 at
    epsilon 0, and the entropy of the codes at infinity.

    Args:
        masses: the share of each code in public text, [C]; scaled to sum to 1.
        epsilon: of k-ary randomised response over the codes, 0 or more.

    Raises:
        ConfigError: epsilon is negative or NaN.

    Source: Cover and Thomas, Elements of Information Theory, section 2.4; the rule is that of
    Kairouz, Oh and Viswanath (2014).
    """
    if not epsilon >= 0:
        raise ConfigError("epsilon must be 0 or more")
    shares, codes = masses.astype(np.float64), len(masses)
    shares /= shares.sum()
    keep_rate = compute_keep_rate(codes, epsilon)
    law = np.full(codes, (1 - keep_rate) / (codes - 1))
    law[0] = keep_rate  # as of any code: the same numbers in another order
    return max(0.0, entropy(law[1] + (keep_rate - law[1]) * shares) - entropy(law))


def compute_information_limit(epsilon: float) -> float:
    """Computes the largest information in bits under local DP epsilon.

    For any rule and any prior of the word. Given an output y, the ratio P(y | x) / P(y) has the
    mean 1 over words, and its values differ by a factor of exp(epsilon) at most. What y reveals
    about the word is the mean of the ratio times its logarithm. That is convex in the ratio, so it
    is largest where the ratio has its two ends only, the upper one for a share s of the words: with
    t = epsilon / (1 - exp(-epsilon)) it is largest over s where 1 + s (exp(epsilon) - 1) = t, and
    then t - 1 - ln t.

    Args:
        epsilon: above 0.

    Source: rules with the two ends only are the extremal ones of Kairouz, Oh and Viswanath (2014),
    section 3.
    """
    t = epsilon / -np.expm1(-epsilon)
    return float((t - 1 - np.log(t)) / np.log(2))


def compute_fitting_codes(epsilon: float) -> float:
    """Computes the number of codes that fit epsilon.

    If as many are equally frequent, randomised response reaches the `compute_information_limit`, 1
    / s. At small epsilon it is 2 (no fewer are codes), and it grows as exp(epsilon) / (epsilon -
    1).
    """
    return float(np.expm1(epsilon) / (epsilon / -np.expm1(-epsilon) - 1))
