"""Judges that predict a text's label by words, counts or vectors.

In: labelled texts for training, texts to judge. Out: which texts each judge labels correctly.
Not here: the choice of texts (`material`), and of the judge that counts (`summary`).

Features are words, word counts (single texts only), sentence vectors, or the words' mean vector.
For multiple choice, judges predict the right option from pairs of the question and each option.

Each judge is trained in three ways: on originals (`clean`); on originals, and tested on releases,
with words replaced by public books (`mapped`); and on releases of the same mechanism, as a data
collector would (`adaptive`, also mapped).
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
"""Prefix of the names of judges trained on releases."""

VERSION = 2
"""Increases with each new judge, which then also judges earlier rows."""

INVERSE_REGULARIZATION: Mapping[str, float] = {
    WORD_FEATURES: 5.0,
    VECTOR_FEATURES: 0.5,
    MEAN_FEATURES: 5.0,
}
"""The inverse regularization strength for each kind of features."""

_WORD_PATTERN = r"(?u)\b\w+\b"

COUNT_SMOOTHING = 3.0
"""The additive smoothing of counts in naive Bayes."""

Texts = Sequence[str]
"""Examples as they are privatized, with an empty line between fields."""


def split_fields(text: str, fields: int) -> tuple[str, ...]:
    """Splits an example into its fields; the last takes any additional ones."""
    pieces = text.split(FIELD_SEPARATOR, fields - 1)
    return (*pieces, *[""] * (fields - len(pieces)))


class Learner:
    """A classifier: features of texts, and a logistic regression on them.

    Args:
        features: a transformer of texts into features.
        strength: the inverse regularization strength.
    """

    def __init__(self, features: Any, strength: float) -> None:
        self.features, self.strength = features, strength

    def fit(self, texts: Texts, labels: Ints) -> Callable[[Texts], Ints]:
        """Trains the classifier; returns a function that predicts labels."""
        model = self._fit_model(texts, labels)
        return lambda new_texts: np.asarray(
            model.predict(self.features.transform(new_texts)), np.int64
        )

    def weigh(self, texts: Texts, labels: Ints) -> Callable[[Texts], Values]:
        """Trains the classifier; returns a function that computes log odds.

        The log odds are those of label 1 against 0, float64 [B].
        """
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
    """A classifier by word counts: multinomial naive Bayes.

    Counts hold all information about words that are drawn independently of each other, such as
    codes.
    """

    def fit(self, texts: Texts, labels: Ints) -> Callable[[Texts], Ints]:
        """Trains the classifier; returns a function that predicts labels."""
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB

        words = CountVectorizer(token_pattern=_WORD_PATTERN, min_df=2)
        model = MultinomialNB(alpha=COUNT_SMOOTHING).fit(words.fit_transform(texts), labels)
        return lambda new_texts: np.asarray(model.predict(words.transform(new_texts)), np.int64)


class OptionChooser:
    """A classifier that picks the option with the highest log odds.

    Args:
        learner: trained on pairs of a question and an option.
        options: number of options per question.
    """

    def __init__(self, learner: Learner, options: int) -> None:
        self.learner, self.options = learner, options

    def fit(self, texts: Texts, labels: Ints) -> Callable[[Texts], Ints]:
        """Trains the learner; returns a function that predicts the right options."""
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
    """TF-IDF of words and, for pairs, the overlap of the two texts."""

    def __init__(self, fields: int) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.fields = fields
        self.words = TfidfVectorizer(token_pattern=_WORD_PATTERN, sublinear_tf=True, min_df=2)

    def fit_transform(self, texts: Texts) -> Any:
        """Fits the vocabulary, and returns the features."""
        return self._add_overlap(self.words.fit_transform(texts), texts)

    def transform(self, texts: Texts) -> Any:
        """Returns the features, sparse [B, m]."""
        return self._add_overlap(self.words.transform(texts), texts)

    def _add_overlap(self, features: Any, texts: Texts) -> Any:
        if self.fields == 1:
            return features
        from scipy import sparse

        shared = compute_overlaps([split_fields(text, self.fields) for text in texts])
        return sparse.hstack([features, sparse.csr_array(shared[:, None])]).tocsr()


class DenseFeatures:
    """Features without training."""

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
    """Averages the vectors of each text's private table words, float32 [B, d]."""
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
    """All judges of one data set.

    Those trained on originals are cached per training set.

    Args:
        data: defines the kind and labels of the texts.
        table: the table whose vectors are averaged.
        maps: books by name, as values of the option `table.codes`.
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
        """Yields each judge's name and its correctly labelled texts, bool [B].

        Args:
            texts: the texts to judge.
            labels: their labels, int64 [B].
            originals: training texts, and their labels.
            releases: releases of the training texts; None if the mechanism changes nothing.
            skip: judges to leave out.
        """
        clean, training_labels = originals
        for full_name in self.list_names(releases is not None, skip):
            name = full_name.removeprefix(ADAPTIVE_PREFIX)
            if name == full_name:
                predict = self._clean(name, tuple(clean), tuple(training_labels.tolist()))
            else:
                assert releases is not None, "adaptive judges need releases"
                predict = self._build_learner(name).fit(self._read(name, releases), training_labels)
            yield full_name, predict(self._read(name, texts)) == labels

    def list_names(self, released: bool, skip: Collection[str] = ()) -> list[str]:
        """Lists the judges, with adaptive ones if texts are released."""
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
        """Prepares the texts for a judge."""
        book = name.partition(" by ")[2]
        return material.map_to_codes(texts, self.maps[book], self.table) if book else texts
