"""Task words: those that tell the labels of a task apart, learned from labelled public texts.

In: a data set with labels. Out: words, the most telling first.
Not here: what is done with them (`protect.importance`), and judges (`tasks`).

A list that follows from public texts alone, and not from the text that is privatized, keeps the group of a word a
public function of the word (STAMP over a context-free list).
"""

from itertools import pairwise

import numpy as np

from textveil.errors import ConfigError
from textveil.text import is_public, tokenize
from textveil_bench.examples import DataSet

SEEN = 3
"""Texts that a word must stand in."""

STRENGTH = 0.3
"""The inverse strength of the penalty: words of few texts count little."""

TELLS = 0.01
"""Log-odds that a word must change: a word that changes less tells nothing, however few the others are."""


def learn(data: DataSet, count: int) -> tuple[str, ...]:
    """The words whose weight in a logistic regression on which words a text has is largest for any label.

    Words of the public list are left out, for they are released as they are, and so are words that stand in fewer than
    three texts.

    Args:
        data: of the kind classification, with training texts.
        count: how many words at most, 1 or more.

    Raises:
        ConfigError: the data has no labels for single texts, or the count is below 1, or no word tells anything.
    """
    if data.kind != "classification" or count < 1:
        raise ConfigError(f"task words need a classification and a count of 1 or more, got a {data.kind} and {count}")
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    tokens = tokenize([example.texts[0] for example in data.examples])
    bounds = tokens.documents.tolist()
    texts = [sorted({word.lower() for word in tokens.words[a:b] if _counts(word)}) for a, b in pairwise(bounds)]
    distinct = sorted({word for text in texts for word in text})
    number = {word: i for i, word in enumerate(distinct)}
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    columns = np.array([number[word] for text in texts for word in text], np.int64)
    kept = np.bincount(columns, minlength=len(distinct)) >= SEEN
    if not kept.any():
        raise ConfigError(f"no word stands in {SEEN} texts of {data.name}; take more of them")
    matrix = csr_matrix((np.ones(len(rows)), (rows, columns)), (len(texts), len(distinct)))[:, kept]
    labels = [example.label for example in data.examples]
    weights = np.abs(LogisticRegression(C=STRENGTH, max_iter=500).fit(matrix, labels).coef_).max(axis=0)
    order = [i for i in np.argsort(-weights, kind="stable")[:count] if weights[i] > TELLS]
    if not order:
        raise ConfigError(f"no word of {data.name} tells its labels apart")
    words = np.array(distinct, object)[kept]
    return tuple(words[order].tolist())


def _counts(word: str) -> bool:
    return word.isalpha() and not is_public(word)
