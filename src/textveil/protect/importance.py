"""Importance: the relevance of each word to the purpose of its text.

In: words of texts, and the purpose of each text. Out: one score per word.
Not here: the score from which a word counts as important (`grouping`), and the classifier
(`models.saliency`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from textveil.errors import ConfigError, InputError
from textveil.models import Classifier, Ragged, load_classifier
from textveil.randomness import Floats, Ids
from textveil.table import EmbeddingTable, load_table
from textveil.text import check_texts, is_public, load_counts, tokenize

SMOOTHING = 1e-3
"""Smoothing a of query weights (Arora, Liang and Ma).

A query word gets less than half weight if its share of public text is above this.
"""

MAX_PRODUCT_CELLS = 1 << 22
"""Elements of a product in memory together: 16 MiB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cosine:
    """Cosine of a word's vector with its text's query (STAMP, section 3.1).

    A word's vector is its row of a public table minus the mean row, which would make all cosines
    alike. The vector of a query is the mean over its words, each weighted by a / (a + its share of
    public text); public words are left out. A word outside the table has the row of its surrogate.

    The weights: Arora, Liang, Ma, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings"
    (2017), section 3.

    Attributes:
        table: the table of vectors; None for the default table.
    """

    table: EmbeddingTable | None = field(default=None, repr=False)

    def score(self, words: Sequence[str], documents: Ids, queries: Sequence[str]) -> Floats:
        """Returns the scores of N words, float32 [N], from -1 to 1.

        Args:
            words: N words, text by text.
            documents: int64 [B+1]; text b has the words documents[b] to documents[b+1].
            queries: B texts: a task, a question, or the texts themselves. If a query has no words,
                or only public ones, all scores of its text are 0.

        Raises:
            InputError: the arguments do not match.
        """
        _check(words, documents, queries)
        table = load_table() if self.table is None else self.table
        distinct = {query: i for i, query in enumerate(dict.fromkeys(queries))}
        query_vectors = _embed_queries(table, list(distinct))
        numbers = {word: i for i, word in enumerate(dict.fromkeys(words))}
        vectors = _take_vectors(table, list(numbers))
        word = np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))
        query = np.repeat(
            np.fromiter(map(distinct.__getitem__, queries), np.int64, len(queries)),
            np.diff(documents),
        )
        scores = np.empty(len(words), np.float32)
        step = max(1, MAX_PRODUCT_CELLS // table.dimension)
        for start in range(0, len(words), step):
            part = slice(start, start + step)
            scores[part] = np.einsum("nd,nd->n", vectors[word[part]], query_vectors[query[part]])
        # Rounding in float32 can push a cosine beyond 1.
        return scores.clip(-1, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Saliency:
    """Reliance of a user's classifier on each word, see `models.saliency`.

    Attributes:
        source: a folder or hub id of a transformers model for sequence classification.
    """

    source: str

    def score(self, words: Sequence[str], documents: Ids, queries: Sequence[str]) -> Floats:
        """Returns the scores of N words, float32 [N], from 0 to 1.

        The queries are not used.

        Raises:
            InputError: the arguments do not match.
            ModelError: there is no such model, or a gradient is not finite.
        """
        _check(words, documents, queries)
        texts = Ragged(words=words, documents=documents, spaced=np.ones(len(words), bool))
        return _get_classifier(self.source).compute_saliency(texts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Listed:
    """Membership in a public word list (context-free STAMP).

    A word's group then depends on the word alone.

    Attributes:
        words: single words, in any casing.

    Raises:
        ConfigError: an entry is not a single word.
    """

    words: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if any(not isinstance(word, str) for word in self.words):
            raise ConfigError("protect.important must be a list of strings, each a single word")
        wrong = np.flatnonzero(tokenize(self.words).sizes != 1)
        if len(wrong):
            raise ConfigError(
                f"protect.important must hold single words, and entry {wrong[0] + 1} is empty or "
                "several words (an inner punctuation mark splits a word); correct it or split it"
            )

    def score(self, words: Sequence[str], documents: Ids, queries: Sequence[str]) -> Floats:
        """Returns 1 for listed words, minus infinity otherwise, float32 [N]."""
        _check(words, documents, queries)
        listed = self._folded_words
        # Minus infinity: no `protect.tau`, however low, makes an unlisted word important.
        return np.array(
            [1.0 if word.casefold() in listed else -np.inf for word in words], np.float32
        )

    @cached_property
    def _folded_words(self) -> frozenset[str]:
        return frozenset(word.casefold() for word in self.words)


@lru_cache(maxsize=2)
def _get_classifier(source: str) -> Classifier:
    return load_classifier(source)


def _check(words: Sequence[str], documents: Ids, queries: Sequence[str]) -> None:
    check_texts(queries, noun="query")
    if len(queries) != len(documents) - 1:
        raise InputError(
            f"give one query per text: {len(documents) - 1} texts, {len(queries)} queries"
        )
    if documents[0] != 0 or documents[-1] != len(words) or (np.diff(documents) < 0).any():
        raise InputError("documents must rise from 0 to the number of words, without steps down")


def _take_vectors(table: EmbeddingTable, words: list[str]) -> Floats:
    """Returns unit vectors of words, float32 [n, d].

    Relative to the table's mean; zero for a row equal to it.
    """
    rows, _ = table.lookup(words)
    return _normalize(table.take(rows) - _compute_mean(table))


def _embed_queries(table: EmbeddingTable, queries: list[str]) -> Floats:
    """Returns unit vectors of queries, float32 [n, d].

    Zero for a query without words that count.
    """
    tokens = tokenize(queries)
    counted = [i for i, word in enumerate(tokens.words) if not is_public(word)]
    words = [tokens.words[i] for i in counted]
    home = np.repeat(np.arange(len(queries)), tokens.sizes)[counted]
    public = load_counts()
    share = np.array([public.get(word.lower(), 0) for word in words], np.float32) / _count_words()
    sums = np.zeros((len(queries), table.dimension), np.float32)
    # `add.at` adds repeated rows, too; `sums[home] += ...` would keep only one of each.
    np.add.at(sums, home, _take_vectors(table, words) * (SMOOTHING / (SMOOTHING + share))[:, None])
    return _normalize(sums)


def _normalize(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


@lru_cache(maxsize=16)
def _compute_mean(table: EmbeddingTable) -> Floats:
    sums = [slab.sum(axis=0, dtype=np.float64) for slab in table.yield_slabs()]
    mean: Floats = (np.sum(sums, axis=0) / len(table)).astype(np.float32)
    return mean


@lru_cache(maxsize=1)
def _count_words() -> int:
    return sum(load_counts().values())
