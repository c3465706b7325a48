"""Judges that tell a text's label: by its words, how often each occurs, its sentence vector, its words' mean vector.

In: labelled texts to learn from, texts to judge. Out: which of them each judge gets right.
Not here: which texts these are (`material`), and which judge counts (`summary`).

Of a choice they tell the right option, from pairs of the question and each option. How often words
occur is looked at
in single texts only.

Each judge learns three times: from originals (`clean`); from originals, and judges releases, in
which public books put
one word in place of each (`mapped`); and from releases of the same mechanism, as whoever collects
them would
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
from textveil_bench.tasks.head import Head, compute_overlaps
from textveil_bench.trials import FIELD_SEPARATOR

WORD_FEATURES, COUNT_FEATURES, VECTOR_FEATURES, MEAN_FEATURES = (
    "words",
    "counts",
    "vectors",
    "means",
)

ADAPTIVE_PREFIX = "adaptive "
"""Begins the name of a judge that learns from releases."""

VERSION = 2
"""Raised when there is a new judge: rows of earlier versions are then judged by it, too."""

INVERSE_REGULARIZATION: Mapping[str, float] = {
    WORD_FEATURES: 5.0,
    VECTOR_FEATURES: 0.5,
    MEAN_FEATURES: 5.0,
}
"""The inverse strength of regularization of each."""

_WORD_PATTERN = r"(?u)\b\w+\b"

COUNT_SMOOTHING = 3.0
"""What is added to each count, in naive Bayes."""

Texts = Sequence[str]
"""Examples as they are privatized: the parts of a pair have an empty line between them."""


def split_fields(text: str, fields: int) -> tuple[str, ...]:
    """The fields of an example; the last one takes what a release may have added."""
    pieces = text.split(FIELD_SEPARATOR, fields - 1)
    return (*pieces, *[""] * (fields - len(pieces)))


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
        model = self._fit_model(texts, labels)
        return lambda new_texts: np.asarray(
            model.predict(self.features.transform(new_texts)), np.int64
        )

    def weigh(self, texts: Texts, labels: Ints) -> Callable[[Texts], Values]:
        """What tells how certainly other texts have the label 1, of 0 and 1: log odds, float64 [B]."""
        model = self._fit_model(texts, labels)
        return lambda new_texts: np.asarray(
            model.decision_function(self.features.transform(new_texts)), np.float64
        )

    def _fit_model(self, texts: Texts, labels: Ints) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=self.strength, max_iter=300).fit(
            self.features.fit_transform(texts), labels
        )


class NaiveBayes:
    """Tells labels by how often each word occurs: multinomial naive Bayes.

    That is all that there is to know of words drawn independently of each other, such as codes.
    """

    def fit(self, texts: Texts, labels: Ints) -> Callable[[Texts], Ints]:
        """What tells the labels of other texts."""
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB

        words = CountVectorizer(token_pattern=_WORD_PATTERN, min_df=2)
        model = MultinomialNB(alpha=COUNT_SMOOTHING).fit(words.fit_transform(texts), labels)
        return lambda new_texts: np.asarray(model.predict(words.transform(new_texts)), np.int64)


class OptionChooser:
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
        weigh = self.learner.weigh(self._build_pairs(texts), right)
        return lambda new_texts: (
            weigh(self._build_pairs(new_texts)).reshape(-1, self.options).argmax(axis=1)
        )

    def _build_pairs(self, texts: Texts) -> list[str]:
        split = [split_fields(text, 1 + self.options) for text in texts]
        return [
            f"{question}{FIELD_SEPARATOR}{option}"
            for question, *options in split
            for option in options
        ]


class BagOfWords:
    """Words by their rarity; and, of pairs, what the two have in common."""

    def __init__(self, fields: int) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.fields = fields
        self.words = TfidfVectorizer(token_pattern=_WORD_PATTERN, sublinear_tf=True, min_df=2)

    def fit_transform(self, texts: Texts) -> Any:
        """Learns the words, and gives the features."""
        return self._add_overlap(self.words.fit_transform(texts), texts)

    def transform(self, texts: Texts) -> Any:
        """The features, sparse [B, m]."""
        return self._add_overlap(self.words.transform(texts), texts)

    def _add_overlap(self, features: Any, texts: Texts) -> Any:
        if self.fields == 1:
            return features
        from scipy import sparse

        shared = compute_overlaps([split_fields(text, self.fields) for text in texts])
        return sparse.hstack([features, sparse.csr_array(shared[:, None])]).tocsr()


class DenseFeatures:
    """Features that learn nothing."""

    def __init__(self, features: Callable[[Texts], Floats]) -> None:
        self.fit_transform = self.transform = features


def _embed_sentences(texts: Texts, *, fields: int) -> Floats:
    return Head(train=_refuse_training, reader=False).compute_features(
        [split_fields(text, fields) for text in texts]
    )


def _refuse_training() -> DataSet:
    raise AssertionError("nothing is learned from originals here")


def _embed_means(texts: Texts, *, fields: int, table: EmbeddingTable) -> Floats:
    split = [split_fields(text, fields) for text in texts]
    means = [_average_vectors([example[i] for example in split], table) for i in range(fields)]
    if fields == 1:
        return means[0]
    return np.hstack([*means, abs(means[0] - means[1]), means[0] * means[1]])


def _average_vectors(texts: Texts, table: EmbeddingTable) -> Floats:
    """The mean vector of the words of each text that are in the table and not on the public list, float32 [B, d]."""
    tokens = tokenize(texts)
    distinct = {word: i for i, word in enumerate(dict.fromkeys(tokens.words))}
    rows = table.find(list(distinct))
    rows[[i for word, i in distinct.items() if is_public(word)]] = -1
    row = rows[[distinct[word] for word in tokens.words]] if tokens.words else np.empty(0, np.int64)
    text = np.repeat(np.arange(len(texts)), tokens.sizes)
    sums = np.zeros((len(texts), table.dimension), np.float32)
    np.add.at(sums, text[row >= 0], table.take(row[row >= 0]))
    counts = np.maximum(1, np.bincount(text[row >= 0], minlength=len(texts)))
    return np.asarray(sums / counts[:, None], np.float32)


class Judges:
    """All judges of one data set. What they learn from originals is learned once for each choice of these.

    Args:
        data: the texts' kind and labels.
        table: whose vectors are averaged.
        maps: books by name, as the option `table.quantized` takes them.
    """

    def __init__(self, data: DataSet, table: EmbeddingTable, maps: Mapping[str, str]) -> None:
        self.table, self.maps = table, maps
        self.options = len(data.labels) if data.kind == "choice" else 0
        fields = 2 if self.options else len(data.fields)
        self.kinds: dict[str, Callable[[], Any]] = {
            WORD_FEATURES: lambda: BagOfWords(fields),
            VECTOR_FEATURES: lambda: DenseFeatures(partial(_embed_sentences, fields=fields)),
            MEAN_FEATURES: lambda: DenseFeatures(partial(_embed_means, fields=fields, table=table)),
        }
        bags = (WORD_FEATURES,) if fields > 1 else (WORD_FEATURES, COUNT_FEATURES)
        mapped = (f"{kind} by {name}" for kind in bags for name in maps)
        self.names = (*bags, VECTOR_FEATURES, MEAN_FEATURES, *mapped)
        self._clean = lru_cache(maxsize=64)(self._learn_clean)

    def score(
        self,
        texts: Texts,
        labels: Ints,
        originals: tuple[Texts, Ints],
        releases: Texts | None,
        skip: Collection[str] = (),
    ) -> Iterator[tuple[str, Flags]]:
        """The name of each judge, and which texts it gets right, bool [B].

        Args:
            texts: what is judged.
            labels: theirs, int64 [B].
            originals: texts to learn from, and their labels.
            releases: the same texts as the mechanism releases them; None if it changes nothing.
            skip: judges that are not asked.
        """
        clean, training_labels = originals
        for full_name in self.list_names(releases is not None, skip):
            name = full_name.removeprefix(ADAPTIVE_PREFIX)
            if name == full_name:
                predict = self._clean(name, tuple(clean), tuple(training_labels.tolist()))
            else:
                assert releases is not None, "else none is asked that learns from them"
                predict = self._build_learner(name).fit(self._read(name, releases), training_labels)
            yield full_name, predict(self._read(name, texts)) == labels

    def list_names(self, released: bool, skip: Collection[str] = ()) -> list[str]:
        """The names of all judges but those that are known; where nothing is released, none learns from releases."""
        every = [*self.names, *(f"{ADAPTIVE_PREFIX}{name}" for name in self.names if released)]
        return [name for name in every if name not in skip]

    def _build_learner(self, name: str) -> Learner | NaiveBayes | OptionChooser:
        kind = name.partition(" ")[0]
        if kind == COUNT_FEATURES:
            return NaiveBayes()
        learner = Learner(self.kinds[kind](), INVERSE_REGULARIZATION[kind])
        return OptionChooser(learner, self.options) if self.options else learner

    def _learn_clean(
        self, name: str, texts: Texts, labels: tuple[int, ...]
    ) -> Callable[[Texts], Ints]:
        return self._build_learner(name).fit(self._read(name, texts), np.array(labels))

    def _read(self, name: str, texts: Texts) -> Texts:
        """The texts as a judge reads them."""
        book = name.partition(" by ")[2]
        return material.map_to_codes(texts, self.maps[book], self.table) if book else texts
