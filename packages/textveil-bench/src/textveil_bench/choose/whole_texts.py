"""Whole texts beside words: what texts in place of documents, votes and counts keep.

In: labelled private texts, a public library, judged texts. Out: scores of each way of a release.
Not here: how libraries are made (`textveil.library`), and words at equal risk (`jobs`).

A release is used in three ways: a classifier is trained on it and tested on originals; a judge who
was trained on originals reads it; and its mixture of labels and topics is compared with the private
one (total variation). Every score stands beside what is reached without any private text (eps 0):
much of what looks good is the library.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from textveil.library import Level, Library
from textveil.models import SentenceModel
from textveil.pipeline import (
    Privatizer,
    Synthesis,
    TextPrivatizer,
    choose_level,
    report_texts,
    synthesize,
    tally,
)
from textveil.randomness import Floats, Ids, Ints, SeededRandomness, Values
from textveil_bench.tasks.labelled import draw_order

TRAINED_WORDS, TRAINED_VECTORS = "trained, words", "trained, vectors"
"""Accuracy on originals of a classifier that was trained on the release."""

READ_WORDS, READ_VECTORS = "read, words", "read, vectors"
"""Accuracy on the release of a judge that was trained on originals."""

BALANCED_WORDS, BALANCED_VECTORS = "balanced, words", "balanced, vectors"
"""As the trained ones, as the mean over labels."""

LABELS, TOPICS = "labels", "topics"
"""Total variation between the private mixture and that of the release."""

TOPIC_CELLS = 30
"""The size of the level whose cells are the topics."""

KEY_BYTES = 16

Scores = dict[str, float]
EncodeTexts = Callable[[Sequence[str]], Floats]
Predict = Callable[["LabelledTexts"], Ints]


class RememberedVectors:
    """A sentence encoder that encodes each text once, also in later runs if it has a file.

    Args:
        load: loads the encoder, if a text is new.
        dimension: of its vectors.
        path: of the file; None for none.
    """

    def __init__(
        self, load: Callable[[], SentenceModel], dimension: int, path: Path | None = None
    ) -> None:
        self.load, self.dimension, self.path = load, dimension, path
        record = np.dtype([("key", f"S{2 * KEY_BYTES}"), ("vector", "<f4", (dimension,))])
        self.record = record
        self.vectors: dict[bytes, Floats] = {}
        if path is not None and path.exists():
            whole = path.stat().st_size // record.itemsize
            stored = np.fromfile(path, record, count=whole)
            self.vectors = dict(zip(stored["key"].tolist(), stored["vector"], strict=True))
            with path.open("r+b") as file:  # a run may have been cut short within a record
                file.truncate(whole * record.itemsize)

    @cached_property
    def model(self) -> SentenceModel:
        """The encoder."""
        return self.load()

    @property
    def name(self) -> str:
        """The name of the encoder."""
        return self.model.name

    def encode(self, texts: Sequence[str]) -> Floats:
        """Encodes texts as unit vectors, float32 [n, d]."""
        keys = [_hash_text(text) for text in texts]
        missing = dict(zip(keys, texts, strict=True))
        missing = {key: text for key, text in missing.items() if key not in self.vectors}
        for start in range(0, len(missing), 256):
            chunk = dict(list(missing.items())[start : start + 256])
            found = self.model.encode(list(chunk.values()))
            self.vectors.update(zip(chunk, found, strict=True))
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("ab") as file:
                    np.array(list(zip(chunk, found, strict=True)), self.record).tofile(file)
        if not keys:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([self.vectors[key] for key in keys])


def _hash_text(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=KEY_BYTES).hexdigest().encode()


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledTexts:
    """Texts with labels, and their vectors when they are needed.

    Attributes:
        texts: n texts.
        labels: int64 [n].
        encode: encodes texts.
    """

    texts: tuple[str, ...] = field(repr=False)
    labels: Ints = field(repr=False)
    encode: EncodeTexts = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def vectors(self) -> Floats:
        """Their sentence vectors, float32 [n, d]."""
        return self.encode(self.texts)

    def take(self, which: Ids) -> "LabelledTexts":
        """Returns some of them."""
        return replace(
            self, texts=tuple(self.texts[i] for i in which.tolist()), labels=self.labels[which]
        )

    def draw(self, count: int, seed: int) -> "LabelledTexts":
        """Returns a sample of them; all, if there are no more."""
        return self.take(np.sort(draw_order(len(self), SeededRandomness(seed))[:count]))

    def leave_out(self, library: Library) -> "LabelledTexts":
        """Returns those that do not stand in a library."""
        return self.take(np.flatnonzero(~library.contains(self.texts)))

    def replace_texts(self, texts: Sequence[str]) -> "LabelledTexts":
        """Returns other texts with the same labels."""
        return replace(self, texts=tuple(texts))


# ---- judges --------------------------------------------------------------------------------------


def learn_words(train: LabelledTexts) -> Predict:
    """Trains a linear support vector machine on TF-IDF."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    if len(set(train.labels.tolist())) < 2:
        return lambda texts: np.full(len(texts), train.labels[0])
    words = TfidfVectorizer(sublinear_tf=True)
    model = LinearSVC(C=0.5).fit(words.fit_transform(train.texts), train.labels)
    return lambda texts: np.asarray(model.predict(words.transform(texts.texts)), np.int64)


def learn_vectors(train: LabelledTexts) -> Predict:
    """Trains a logistic regression on sentence vectors."""
    from sklearn.linear_model import LogisticRegression

    if len(set(train.labels.tolist())) < 2:
        return lambda texts: np.full(len(texts), train.labels[0])
    model = LogisticRegression(max_iter=500).fit(train.vectors, train.labels)
    return lambda texts: np.asarray(model.predict(texts.vectors), np.int64)


def score_training(
    train: LabelledTexts, judged: LabelledTexts, *, balanced: bool = False, vectors: bool = True
) -> Scores:
    """Scores classifiers that are trained on a release, on originals."""
    scores: Scores = {}
    kinds = [(TRAINED_WORDS, BALANCED_WORDS, learn_words)]
    kinds += [(TRAINED_VECTORS, BALANCED_VECTORS, learn_vectors)] if vectors else []
    for name, balanced_name, learn in kinds:
        right = learn(train)(judged) == judged.labels
        scores[name] = float(right.mean())
        if balanced:
            by_label = [right[judged.labels == label] for label in np.unique(judged.labels)]
            scores[balanced_name] = float(np.mean([each.mean() for each in by_label]))
    return scores


@dataclass(frozen=True, kw_only=True, eq=False)
class OriginalJudges:
    """OriginalJudges that were trained on originals, and read releases.

    Attributes:
        words: reads words.
        vectors: reads sentence vectors.
    """

    words: Predict
    vectors: Predict

    @classmethod
    def learn(cls, originals: LabelledTexts) -> "OriginalJudges":
        """Trains them."""
        return cls(words=learn_words(originals), vectors=learn_vectors(originals))

    def read(self, release: LabelledTexts) -> dict[str, Ints]:
        """Returns the labels that each reads in texts."""
        return {READ_WORDS: self.words(release), READ_VECTORS: self.vectors(release)}

    def score(self, release: LabelledTexts) -> Scores:
        """Returns how often each reads the true label."""
        return {
            name: float((found == release.labels).mean())
            for name, found in self.read(release).items()
        }


def compute_distance(one: Values | Ints, other: Values | Ints) -> float:
    """Computes the total variation between two histograms."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


# ---- the ways of a release -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeTexts:
    """Private texts, a library, and texts to judge by: the ways of a release, with their scores.

    Attributes:
        library: public texts, made without the others.
        private: what is released, and trained on.
        judged: originals that nothing is trained on; those that a judge reads the releases of.
        names: of the labels.
        judges: trained on originals.
        balanced: whether to score the mean over labels too.
        vectors: whether to score training on vectors too.
    """

    library: Library
    private: LabelledTexts
    judged: LabelledTexts
    names: tuple[str, ...]
    judges: OriginalJudges
    balanced: bool = False
    vectors: bool = True

    @cached_property
    def public(self) -> LabelledTexts:
        """The library's texts; their labels say nothing."""
        vectors = self.library.decode_vectors()
        place = {text: i for i, text in enumerate(self.library.texts)}
        return LabelledTexts(
            texts=self.library.texts,
            labels=np.zeros(len(self.library), np.int64),
            encode=lambda texts: vectors[[place[text] for text in texts]],
        )

    @cached_property
    def read_public(self) -> Mapping[str, Ints]:
        """The labels that judges read in the library's texts."""
        return self.judges.read(self.public)

    @cached_property
    def topics(self) -> Level:
        """The level whose cells are the topics."""
        clusters = [level for level in self.library.levels if level.kind == "clusters"]
        return min(clusters, key=lambda level: abs(len(level) - TOPIC_CELLS))

    @cached_property
    def private_topics(self) -> Ints:
        """The number of private texts of each topic."""
        return self._count(self.library.find_cells(self.private.texts, self.topics))

    def _count(self, cells: Ids) -> Ints:
        return np.bincount(cells, minlength=len(self.topics))

    def score_corpus(self, which: Ids, labels: Ints) -> Scores:
        """Scores public texts with labels as a corpus to train on, and as a mixture."""
        release = replace(self.public.take(which), labels=labels)
        return self._train(release) | self.score_mixture(which, labels)

    def score_mixture(self, which: Ids, labels: Ints | None) -> Scores:
        """Returns how far the mixtures of labels and topics are from the private ones."""
        topics = self._count(self.topics.cells[which].astype(np.int64))
        scores = {TOPICS: compute_distance(self.private_topics, topics)}
        if labels is not None:
            own, theirs = (
                np.bincount(each, minlength=len(self.names))
                for each in (self.private.labels, labels)
            )
            scores[LABELS] = compute_distance(own, theirs)
        return scores

    def _train(self, train: LabelledTexts) -> Scores:
        return score_training(train, self.judged, balanced=self.balanced, vectors=self.vectors)

    # ---- without any release

    def score_originals(self) -> Scores:
        """Scores the originals."""
        return self._train(self.private) | self.judges.score(self.judged)

    def score_majority(self) -> Scores:
        """Scores who always says the most frequent label."""
        most = float(np.bincount(self.judged.labels).max() / len(self.judged))
        names = [TRAINED_WORDS, READ_WORDS]
        scores = dict.fromkeys(names, most)
        return scores | ({BALANCED_WORDS: 1 / len(self.names)} if self.balanced else {})

    def find_public_labels(self) -> Iterator[tuple[str, Ids, Ints]]:
        """Yields public texts with the labels that they have without any private text.

        They are the public labels, and the nearest sentences of classes, if these are the names;
        the latter as a classifier says that learned them, or only those of the surest half.
        """
        from sklearn.linear_model import LogisticRegression

        library, everything = self.library, np.arange(len(self.library))
        if library.labels is not None and set(library.label_names) == set(self.names):
            order = np.array([self.names.index(name) for name in library.label_names])
            yield "labelled library", everything, order[library.labels]
        for level in library.levels:
            if level.kind == "classes" and set(level.names) == set(self.names):
                order = np.array([self.names.index(name) for name in level.names])
                labels = order[level.cells].astype(np.int64)
                vectors = library.decode_vectors()
                classifier = LogisticRegression(max_iter=500).fit(vectors, labels)
                yield "class sentences", everything, classifier.predict(vectors)
                pools = [level.find_pool(cell, 0.5) for cell in range(len(level))]
                surest = np.concatenate(pools)
                yield "class sentences, surest half", surest, labels[surest]

    def score_nothing(self) -> Iterator[tuple[str, Scores]]:
        """Scores what is reached at eps 0: random public texts, and public labels of them."""
        own = np.bincount(self.judged.labels, minlength=len(self.names)) / len(self.judged)
        scores = {
            name: float(own @ np.bincount(found, minlength=len(self.names)) / len(self.library))
            for name, found in self.read_public.items()
        }
        everything = np.arange(len(self.library))
        yield "random public texts", scores | self.score_mixture(everything, None)
        for name, which, labels in self.find_public_labels():
            yield name, self.score_corpus(which, labels)

    # ---- releases

    def score_words(self, privatizer: Privatizer, read: int | None = None) -> tuple[Scores, float]:
        """Scores a release word by word, the labels copied.

        Args:
            privatizer: of words.
            read: how many of the judged texts are released and read; None for all.

        Returns:
            The scores, and the mean loss of a document: the sum over its words.
        """
        losses: list[float] = []

        def release(originals: LabelledTexts) -> LabelledTexts:
            texts = []
            for result in privatizer.privatize_many(originals.texts):
                texts.append(result.text)
                losses.append(float(result.guarantee.ldp_per_word.sum()))
            return originals.replace_texts(texts)

        trained = release(self.private)
        scores = self._train(trained) | self.judges.score(
            release(self.judged.take(np.arange(len(self.judged))[:read]))
        )
        topics = self._count(self.library.find_cells(trained.texts, self.topics))
        return scores | {TOPICS: compute_distance(self.private_topics, topics)}, float(
            np.mean(losses)
        )

    def score_local(
        self, epsilon: float, seed: int, *, level: str = "auto", train: bool = True
    ) -> Scores:
        """Scores public texts in place of documents; the labels that are trained on are copied."""
        read = release_local(self.library, self.judged.texts, epsilon, seed, level)
        scores = {
            name: float((found[read] == self.judged.labels).mean())
            for name, found in self.read_public.items()
        }
        if not train:
            return scores
        which = release_local(self.library, self.private.texts, epsilon, seed + 1000, level)
        release = replace(self.public.take(which), labels=self.private.labels)
        return scores | self._train(release) | self.score_mixture(which, None)

    def score_votes(self, epsilon: float, seed: int, **options: Any) -> Scores:
        """Scores a corpus that follows from a report of each document and label (V)."""
        names = self.names
        level = choose_level(self.library, "auto", len(self.private), epsilon, names, way="reports")
        reports = report_texts(
            self.private.texts,
            [names[label] for label in self.private.labels],
            library=self.library,
            level=level,
            epsilon=epsilon,
            label_names=names,
            randomness=SeededRandomness(seed),
        )
        votes = tally([report.dump() for report in reports], self.library)
        made = votes.corpus(self.library, seed=seed, **options)
        assert made.label_ids is not None, "there are labels"
        return self.score_corpus(made.which, made.label_ids)

    def synthesize(self, epsilon: float, seed: int, **options: Any) -> Synthesis:
        """Synthesizes a corpus that follows from one noisy count (C)."""
        return synthesize(
            self.private.texts,
            [self.names[label] for label in self.private.labels],
            library=self.library,
            label_names=self.names,
            epsilon=epsilon,
            about=len(self.private),
            seed=seed,
            noise_seed=seed,
            **options,
        )

    def score_count(self, epsilon: float, seed: int, **options: Any) -> Scores:
        """Scores a corpus that follows from one noisy count."""
        made = self.synthesize(epsilon, seed, **options)
        assert made.label_ids is not None, "there are labels"
        return self.score_corpus(made.which, made.label_ids)


def release_local(
    library: Library, texts: Sequence[str], epsilon: float, seed: int, level: str = "auto"
) -> Ids:
    """Draws a public text of a library in place of each (L), and returns which."""
    privatizer = TextPrivatizer(library, epsilon=epsilon, level=level, seed=seed)
    place = {text: i for i, text in enumerate(library.texts)}
    return np.array([place[each.text] for each in privatizer.privatize_many(texts)], np.int64)
