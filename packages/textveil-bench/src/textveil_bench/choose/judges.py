"""Judges that tell a text's label: by its words, how often each occurs, its sentence vector, its words' mean vector.

In: labelled texts to learn from, texts to judge. Out: which of them each judge gets right.
Not here: which texts these are (`material`), and which judge counts (`summary`).

Of a choice they tell the right option, from pairs of the question and each option. How often words occur is looked at
in single texts only.

Each judge learns three times: from originals (`clean`); from originals, and judges releases, in which public books put
one word in place of each (`mapped`); and from releases of the same mechanism, as whoever collects them would
(`adaptive`, also mapped).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from textveil.randomness import Flags, Floats, Ints, Values
from textveil.table import EmbeddingTable
from textveil.text import is_public, tokenize
from textveil_bench.choose import material
from textveil_bench.examples import DataSet
from textveil_bench.tasks.head import Head, overlaps
from textveil_bench.trials import BETWEEN

WORDS, COUNTS, VECTORS, MEANS = "words", "counts", "vectors", "means"

ADAPTIVE = "adaptive "
"""Begins the name of a judge that learns from releases."""

VERSION = 2
"""Raised when there is a new judge: rows of earlier versions are then judged by it, too."""

STRENGTH: Mapping[str, float] = {WORDS: 5.0, VECTORS: 0.5, MEANS: 5.0}
"""The inverse strength of regularization of each."""

_WORD = r"(?u)\b\w+\b"

EVEN = 3.0
"""What is added to each count, in naive Bayes."""

Texts = Sequence[str]
"""Examples as they are privatized: the parts of a pair have an empty line between them."""


def parts(text: str, fields: int) -> tuple[str, ...]:
    """The fields of an example; the last one takes what a release may have added."""
    found = text.split(BETWEEN, fields - 1)
    return (*found, *[""] * (fields - len(found)))


class Learner:
    """One way to tell labels: features of texts, and a logistic regression over them.

    Args:
        features: gives the features of texts to learn from, and then of others.
        strength: the inverse strength of regularization.
    """

    def __init__(self, features: Any, strength: float) -> None:
        self.features, self.strength = features, strength

    def fit(self, texts: Texts, labels: Ints) -> Callable[[Texts], Ints]:
        """What tells the labels of other texts."""
        model = self._model(texts, labels)
        return lambda others: np.asarray(model.predict(self.features.transform(others)), np.int64)

    def weigh(self, texts: Texts, labels: Ints) -> Callable[[Texts], Values]:
        """What tells how certainly other texts have the label 1, of 0 and 1: log odds, float64 [B]."""
        model = self._model(texts, labels)
        return lambda others: np.asarray(
            model.decision_function(self.features.transform(others)), np.float64
        )

    def _model(self, texts: Texts, labels: Ints) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=self.strength, max_iter=300).fit(
            self.features.fit_transform(texts), labels
        )


class WordCounts:
    """Tells labels by how often each word occurs: multinomial naive Bayes.

    That is all that there is to know of words drawn independently of each other, such as codes.
    """

    def fit(self, texts: Texts, labels: Ints) -> Callable[[Texts], Ints]:
        """What tells the labels of other texts."""
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB

        words = CountVectorizer(token_pattern=_WORD, min_df=2)
        model = MultinomialNB(alpha=EVEN).fit(words.fit_transform(texts), labels)
        return lambda others: np.asarray(model.predict(words.transform(others)), np.int64)


class Chooser:
    """Tells which option answers a question: the one that a learner is most certain of, asked for each option alone.

    Args:
        learner: learns from pairs of a question and an option.
        options: of each question.
    """

    def __init__(self, learner: Learner, options: int) -> None:
        self.learner, self.options = learner, options

    def fit(self, texts: Texts, labels: Ints) -> Callable[[Texts], Ints]:
        """What tells the right options of other questions."""
        right = (labels[:, None] == np.arange(self.options)).astype(np.int64).ravel()
        weigh = self.learner.weigh(self._pairs(texts), right)
        return lambda others: weigh(self._pairs(others)).reshape(-1, self.options).argmax(axis=1)

    def _pairs(self, texts: Texts) -> list[str]:
        split = [parts(text, 1 + self.options) for text in texts]
        return [
            f"{question}{BETWEEN}{option}" for question, *options in split for option in options
        ]


class Bag:
    """Words by their rarity; and, of pairs, what the two have in common."""

    def __init__(self, fields: int) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.fields = fields
        self.words = TfidfVectorizer(token_pattern=_WORD, sublinear_tf=True, min_df=2)

    def fit_transform(self, texts: Texts) -> Any:
        """Learns the words, and gives the features."""
        return self._with_overlap(self.words.fit_transform(texts), texts)

    def transform(self, texts: Texts) -> Any:
        """The features, sparse [B, m]."""
        return self._with_overlap(self.words.transform(texts), texts)

    def _with_overlap(self, found: Any, texts: Texts) -> Any:
        if self.fields == 1:
            return found
        from scipy import sparse

        shared = overlaps([parts(text, self.fields) for text in texts])
        return sparse.hstack([found, sparse.csr_array(shared[:, None])]).tocsr()


class Dense:
    """Features that learn nothing."""

    def __init__(self, features: Callable[[Texts], Floats]) -> None:
        self.fit_transform = self.transform = features


def _sentences(texts: Texts, *, fields: int) -> Floats:
    return Head(train=_none, reader=False).features([parts(text, fields) for text in texts])


def _none() -> DataSet:
    raise AssertionError("nothing is learned from originals here")


def _means(texts: Texts, *, fields: int, table: EmbeddingTable) -> Floats:
    split = [parts(text, fields) for text in texts]
    means = [_mean([each[i] for each in split], table) for i in range(fields)]
    if fields == 1:
        return means[0]
    return np.hstack([*means, abs(means[0] - means[1]), means[0] * means[1]])


def _mean(texts: Texts, table: EmbeddingTable) -> Floats:
    """The mean vector of the words of each text that are in the table and not on the public list, float32 [B, d]."""
    tokens = tokenize(texts)
    distinct = {word: i for i, word in enumerate(dict.fromkeys(tokens.words))}
    rows = table.find(list(distinct))
    rows[[i for word, i in distinct.items() if is_public(word)]] = -1
    row = rows[[distinct[word] for word in tokens.words]] if tokens.words else np.empty(0, np.int64)
    text = np.repeat(np.arange(len(texts)), tokens.sizes)
    found = np.zeros((len(texts), table.dimension), np.float32)
    np.add.at(found, text[row >= 0], table.take(row[row >= 0]))
    counts = np.maximum(1, np.bincount(text[row >= 0], minlength=len(texts)))
    return np.asarray(found / counts[:, None], np.float32)


class Judges:
    """All judges of one data set. What they learn from originals is learned once for each choice of these.

    Args:
        data: the texts' kind and labels.
        table: whose vectors are averaged.
        maps: books by name, as the option `table.codes` takes them.
    """

    def __init__(self, data: DataSet, table: EmbeddingTable, maps: Mapping[str, str]) -> None:
        self.table, self.maps = table, maps
        self.options = len(data.labels) if data.kind == "choice" else 0
        fields = 2 if self.options else len(data.fields)
        self.kinds: dict[str, Callable[[], Any]] = {
            WORDS: lambda: Bag(fields),
            VECTORS: lambda: Dense(partial(_sentences, fields=fields)),
            MEANS: lambda: Dense(partial(_means, fields=fields, table=table)),
        }
        bags = (WORDS,) if fields > 1 else (WORDS, COUNTS)
        mapped = (f"{kind} by {name}" for kind in bags for name in maps)
        self.names = (*bags, VECTORS, MEANS, *mapped)
        self._clean = lru_cache(maxsize=64)(self._learned_clean)

    def judge(
        self,
        texts: Texts,
        labels: Ints,
        originals: tuple[Texts, Ints],
        releases: Texts | None,
        known: Collection[str] = (),
    ) -> Iterator[tuple[str, Flags]]:
        """The name of each judge, and which texts it gets right, bool [B].

        Args:
            texts: what is judged.
            labels: theirs, int64 [B].
            originals: texts to learn from, and their labels.
            releases: the same texts as the mechanism releases them; None if it changes nothing.
            known: judges that are not asked.
        """
        clean, learned = originals
        for full in self.asked(releases is not None, known):
            name = full.removeprefix(ADAPTIVE)
            if name == full:
                tells = self._clean(name, tuple(clean), tuple(learned.tolist()))
            else:
                assert releases is not None, "else none is asked that learns from them"
                tells = self._learner(name).fit(self._read(name, releases), learned)
            yield full, tells(self._read(name, texts)) == labels

    def asked(self, released: bool, known: Collection[str] = ()) -> list[str]:
        """The names of all judges but those that are known; where nothing is released, none learns from releases."""
        every = [*self.names, *(f"{ADAPTIVE}{name}" for name in self.names if released)]
        return [name for name in every if name not in known]

    def _learner(self, name: str) -> Learner | WordCounts | Chooser:
        kind = name.partition(" ")[0]
        if kind == COUNTS:
            return WordCounts()
        learner = Learner(self.kinds[kind](), STRENGTH[kind])
        return Chooser(learner, self.options) if self.options else learner

    def _learned_clean(
        self, name: str, texts: Texts, labels: tuple[int, ...]
    ) -> Callable[[Texts], Ints]:
        return self._learner(name).fit(self._read(name, texts), np.array(labels))

    def _read(self, name: str, texts: Texts) -> Texts:
        """The texts as a judge reads them."""
        book = name.partition(" by ")[2]
        return material.mapped(texts, self.maps[book], self.table) if book else texts
