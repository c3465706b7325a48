"""Task words: words that distinguish a task's labels, learned from public texts.

In: a data set with labels. Out: words, the most distinctive first.
Not here: how they are used (`protect.importance`), and judges (`tasks`).

The list depends on public texts only, not on the text to privatize. A word's group is thus a public
function of the word (STAMP with a context-free list).
"""

from itertools import pairwise

import numpy as np

from textveil.errors import ConfigError
from textveil.text import is_public, tokenize
from textveil_bench.examples import DataSet

MIN_WORD_TEXTS = 3
"""Smallest number of texts in which a word must occur."""

STRENGTH = 0.3
"""Inverse regularization strength: rare words get small weights."""

MIN_WEIGHT = 0.01
"""Smallest change in log-odds of a distinctive word."""


def learn(data: DataSet, count: int) -> tuple[str, ...]:
    """Returns the words with the largest logistic regression weights for any label.

    Public words are left out, because they are released unchanged; so are words that occur in fewer
    than three texts.

    Args:
        data: a data set of the kind classification, with training texts.
        count: largest number of words, 1 or more.

    Raises:
        ConfigError: single texts have no labels, the count is below 1, or no word is distinctive.
    """
    if data.kind != "classification" or count < 1:
        raise ConfigError(
            f"task words need a classification and a count of 1 or more, got {data.kind} and "
            f"{count}"
        )
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    tokens = tokenize([example.texts[0] for example in data.examples])
    bounds = tokens.documents.tolist()
    texts = [
        sorted({word.lower() for word in tokens.words[a:b] if _is_candidate(word)})
        for a, b in pairwise(bounds)
    ]
    distinct = sorted({word for text in texts for word in text})
    number = {word: i for i, word in enumerate(distinct)}
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    columns = np.array([number[word] for text in texts for word in text], np.int64)
    frequent = np.bincount(columns, minlength=len(distinct)) >= MIN_WORD_TEXTS
    if not frequent.any():
        raise ConfigError(
            f"no word occurs in {MIN_WORD_TEXTS} texts of {data.name}; use more texts"
        )
    matrix = csr_matrix((np.ones(len(rows)), (rows, columns)), (len(texts), len(distinct)))[
        :, frequent
    ]
    labels = [example.label for example in data.examples]
    weights = np.abs(LogisticRegression(C=STRENGTH, max_iter=500).fit(matrix, labels).coef_).max(
        axis=0
    )
    order = [i for i in np.argsort(-weights, kind="stable")[:count] if weights[i] > MIN_WEIGHT]
    if not order:
        raise ConfigError(
            f"no word of {data.name} distinguishes its labels; use more texts or another data set"
        )
    words = np.array(distinct, object)[frequent]
    return tuple(words[order].tolist())


def _is_candidate(word: str) -> bool:
    return word.isalpha() and not is_public(word)
