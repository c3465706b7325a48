"""Entities: persons, locations and other types, as spans of words.

In: words of texts. Out: `Entity` spans with their types and probabilities.
Not here: what happens to them (`protect`), and entities with a fixed form (numbers, addresses).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from textveil.errors import ConfigError, ModelError
from textveil.models.networks import Model, load
from textveil.models.ragged import PieceSequence, PieceWindows, Ragged, expand_ranges, yield_batches
from textveil.randomness import Flags, Floats, Ints
from textveil.text import lexicon

VISIBILITIES = ("private", "public")
"""The standings of a named entity, for the bundled tagger.

A private one is somebody private; a public one is somebody or something publicly known.
"""

DETAIL_TYPES = ("DATE", "AGE", "ID", "ACCOUNT", "PHONE", "HANDLE", "SECRET")
"""Private details that the bundled tagger finds, apart from names."""

TAGGER_LABELS = (
    "O",
    *(
        f"{prefix}-{type_} {standing}"
        for standing in VISIBILITIES
        for type_ in ("PERSON", "LOCATION", "ORGANIZATION")
        for prefix in "BI"
    ),
    *(f"{prefix}-{type_} {VISIBILITIES[0]}" for type_ in DETAIL_TYPES for prefix in "BI"),
)
"""The labels of the bundled tagger, in output order."""

CASING_COUNT = 5
"""The number of casings that the bundled tagger distinguishes."""

PRIVATE_CUT = 0.45
"""The private share from which the tagger's entities count as private.

It is the share of private labels, for the bundled tagger.
"""

LOOK_CLASSES = ("capital", "small", "uncased", "none")
"""Classes of a word's look.

With a capital letter, in small letters, in a script without capitals, or without letters.
"""

WORD_THRESHOLDS: Mapping[str, tuple[float, float, float, float]] = {
    "capital": (0.71, 0.85, 0.71, 0.87),
    "small": (0.97, 0.85, 0.95, 0.59),
    "uncased": (0.85, 0.71, 0.85, 0.35),
    "none": (0.97, 0.48, 0.48, 0.48),
}
"""Thresholds of the bundled tagger at which a word is found.

By its look: of a word on no list, on the list of names, on that of ordinary words, and on both.
"""

NEIGHBOUR_THRESHOLDS: Mapping[str, tuple[float, float, float, float]] = {
    "capital": (0.15, 0.3, 0.15, 0.3),
    "small": (0.3, 0.15, 0.3, 0.8),
    "uncased": (0.6, 0.3, 0.3, 0.3),
    "none": (0.6, 0.3, 0.3, 0.3),
}
"""Thresholds for a word next to a found one, as in `WORD_THRESHOLDS`."""

DETAIL_THRESHOLDS, NEIGHBOUR_DETAIL_THRESHOLDS = (0.85, 0.92), (0.6, 0.45)
"""Thresholds for a word that is rather part of a detail.

One of `DETAIL_TYPES` rather than a name: of a word that is no ordinary word, and of one that is;
found
by itself, and next to a found word.

All follow the choice on texts held out of training (`training/cuts.py`); then `PRIVATE_CUT` was set
back
from .5 to .45, and the log odds of `WORD_THRESHOLDS` and `DETAIL_THRESHOLDS` were lowered by .5
(`training/README.md`).
"""

DEFAULT_THRESHOLD = 0.6
"""The threshold of other taggers."""

SHAPE_COUNT = CASING_COUNT * lexicon.MARK_COUNT
"""The number of combinations of a casing and a lexicon mark.

The bundled tagger reads them as token types.
"""

TYPE_ALIASES = {
    **dict.fromkeys(("PER", "PERSON"), "PERSON"),
    **dict.fromkeys(("LOC", "LOCATION", "GPE"), "LOCATION"),
    **dict.fromkeys(
        ("ORG", "ORGANIZATION", "ORGANISATION", "CORPORATION", "GROUP"), "ORGANIZATION"
    ),
}
"""The three types by other taggers' names for them.

Any other type keeps its name.
"""


EVIDENCE_WORDS = (0, 12, 100)
"""How many words before and behind an entity each part of its readings covers; 0: the entity's own.

The nearest words tell of a stranger in an article, who looks public by what the article says.
"""

TAGGER_KINDS = tuple(dict.fromkeys(label[label.find("-") + 1 :] for label in TAGGER_LABELS))
"""The bundled tagger's labels without `B-` and `I-`.

In the order of `Evidence`.
"""

LEXICON_LISTS = lexicon.NAME_MARK, lexicon.PUBLIC_MARK, lexicon.ORDINARY_MARK, lexicon.PLACE_MARK

EVIDENCE_SIZE = 2 * len(TAGGER_KINDS) + len(LEXICON_LISTS) + 2
"""The number of values in `Evidence.summary`."""

MIN_PROBABILITY = 1e-5
"""The lowest probability that evidence distinguishes from 0."""


@dataclass(frozen=True, order=True, repr=False, slots=True)
class Evidence:
    """The bundled tagger's readings at an entity and around it.

    Not shown.

    Attributes:
        summary: for each of `TAGGER_KINDS` the mean of the words' log probabilities, then for each
            the largest; the shares of words on each of `LEXICON_LISTS`; the logarithms of 1 and the
            number of words around, and of the entity's.
        readings: the mean of each part of the readings, over the words of `EVIDENCE_WORDS`.
    """

    summary: tuple[float, ...]
    readings: tuple[tuple[float, ...], ...]


class Entity(NamedTuple):
    """A span of words that name one thing.

    Args:
        text: the index of the text.
        start: first word, counted within its text.
        end: one past the last word.
        type: PERSON, LOCATION, ORGANIZATION, or another type of the tagger.
        score: the smallest probability, over the words of the span, of being part of any entity.
        private: from 0 to 1, how likely it is that somebody private is named, or where such a
            person lives or works, and not somebody or something publicly known; from .5 on it
            counts as private. 1 if the tagger cannot tell.
        evidence: for those who judge again; None but from the bundled tagger.
    """

    text: int
    start: int
    end: int
    type: str
    score: float
    private: float = 1.0
    evidence: Evidence | None = None


class Tagger(Protocol):
    """Anything that finds entities."""

    @property
    def name(self) -> str:
        """The tagger's name in rows and statements."""
        ...

    def find(self, texts: Ragged) -> list[Entity]:
        """Returns the entities of all texts, in order.

        Spans do not overlap.
        """
        ...


def classify_casing(word: str) -> int:
    """Returns a word's casing as a number from 0 to 4.

    0 no capital, 1 first letter only, 2 a single capital, 3 all capitals, 4 some inside.
    """
    if word == word.lower():
        return 0
    letters = [letter for letter in word if letter.isalpha()]
    # Before all capitals, which a single capital is, too.
    if len(letters) == 1:
        return 2
    if word == word.upper():
        return 3
    return 1 if letters and letters[0].isupper() and word[1:] == word[1:].lower() else 4


def classify_look(word: str) -> int:
    """Returns the index in `LOOK_CLASSES` of a word's look."""
    if classify_casing(word) > 0:
        return 0
    if word != word.upper():
        return 1
    return 2 if any(letter.isalpha() for letter in word) else 3


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenClassifier:
    """A token classification model as a tagger. Load one with `load_tagger`.

    A word has the label of its first piece. Texts longer than the window are read in overlapping
    windows, and each word is judged in the window where it is farthest from an edge.

    Attributes:
        model: the network.
        types: the type of each label; None for "no entity".
        begins: for each label, whether it begins a new entity.
        threshold: smallest total probability of all entity labels at which a word is part of an
            entity; None for those of the bundled tagger, which depend on how the word looks and on
            what is beside it.
        private: for each label, whether what it names is private; None if the labels do not say.
        cut: the share of private labels among those of its type from which on an entity is private.
        doubt: how much lower, in log odds, than the thresholds of the bundled tagger the odds of a
            word may be; of one that is rather a part of one of `DETAIL_TYPES`, half as much.
        window: pieces per sequence, special tokens included.
        batch: pieces per forward pass.
    """

    model: Model
    types: tuple[str | None, ...]
    begins: Flags = field(repr=False)
    threshold: float | None
    window: int
    batch: int
    private: Flags | None = field(default=None, repr=False)
    cut: float = 0.5
    doubt: float = 0.0

    @property
    def name(self) -> str:
        """The tagger's name in rows and statements."""
        return self.model.name

    @cached_property
    def _type_labels(self) -> dict[str, Flags]:
        """The labels of each type, as flags: bool [labels]."""
        types = dict.fromkeys(type_ for type_ in self.types if type_ is not None)
        return {name: np.array([type_ == name for type_ in self.types], bool) for name in types}

    def compute_label_probabilities(self, texts: Ragged) -> Floats:
        """Returns each label's probability for each word: float32 [T, labels]."""
        return self._compute_probabilities(self.compute_outputs(texts))

    def compute_outputs(self, texts: Ragged) -> Floats:
        """Returns the network's outputs for each word: float32.

        Logits of labels, then readings if it has any.
        """
        pieces = PieceSequence.build(self.model, texts)
        room = self.window - len(self.model.before) - len(self.model.after)
        windows = PieceWindows.build(pieces.documents, room, room // 8)
        firsts = pieces.words[:-1]
        owners = windows.owner[firsts]
        order = np.argsort(owners, kind="stable")
        bounds = np.searchsorted(owners[order], np.arange(len(windows.begins) + 1))
        shapes = self._compute_shapes(texts, pieces.words)
        outputs: Floats = np.zeros((len(texts.words), len(self.types)), np.float32)
        for which in yield_batches(
            windows.lengths, self.batch, equal_lengths=self.model.network.needs_equal_lengths
        ):
            rows, lengths = windows.build_rows(self.model, pieces.ids, which)
            types = (
                None if shapes is None else self._frame_shapes(shapes, windows, which, rows.shape)
            )
            sizes = bounds[which + 1] - bounds[which]
            words = order[expand_ranges(bounds[which], sizes)]
            row = np.repeat(np.arange(len(which)), sizes)
            column = firsts[words] - windows.begins[which][row] + len(self.model.before)
            output = self.model.network.run_at(rows, lengths, types, row, column)
            if outputs.shape[1] != output.shape[-1]:  # there are readings behind the labels
                outputs = np.zeros((len(texts.words), output.shape[-1]), np.float32)
            outputs[words] = output
        return outputs

    def find(self, texts: Ragged) -> list[Entity]:
        """Returns the entities of all texts, in order.

        Spans do not overlap or cross the end of a text.
        """
        if not texts.words:
            return []
        outputs = self.compute_outputs(texts)
        return self.build_entities(
            texts, self._compute_probabilities(outputs), outputs[:, len(self.types) :]
        )

    def build_entities(
        self, texts: Ragged, probabilities: Floats, readings: Floats | None = None
    ) -> list[Entity]:
        """Builds the entities of all texts from label probabilities.

        Consecutive entity words form a span until a word begins a new one: a word whose B- labels
        are together more probable than its I- labels (or, if the model has no B- labels, a word of
        another type). A span's type is the one with the largest sum of probabilities over its
        words.

        Args:
            texts: the T words.
            probabilities: float32 [T, labels].
            readings: float32 [T, R], the network's other outputs; without them entities have no
                evidence.
        """
        names = list(self._type_labels)
        by_type = np.stack(
            [probabilities[:, item].sum(axis=1) for item in self._type_labels.values()], axis=1
        )
        inside = by_type.sum(axis=1)
        text = np.repeat(np.arange(len(texts.documents) - 1), np.diff(texts.documents))
        details = by_type[:, [name in DETAIL_TYPES for name in names]].sum(axis=1)
        marks = np.zeros(0, np.int64) if self.threshold is not None else texts.marks
        is_tagged = self._mark_tagged(texts, inside, 2 * details > inside, text, marks)
        new = np.ones(len(is_tagged), bool)
        new[1:] = (
            (is_tagged[1:] != is_tagged[:-1])
            | (text[1:] != text[:-1])
            | (is_tagged & self._mark_beginnings(probabilities, by_type))[1:]
        )
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(is_tagged))
        masses = np.add.reduceat(by_type, starts)
        kinds = masses.argmax(axis=1)
        scores = np.minimum.reduceat(inside, starts)
        privacy = self._score_privacy(probabilities, starts, names, kinds, masses)
        first = texts.documents[text[starts]]
        is_entity = is_tagged[starts]
        columns = text[starts], starts - first, ends - first, kinds, scores, privacy
        entity_rows = zip(*(column[is_entity].tolist() for column in columns), strict=True)
        entities = [
            Entity(b, start, end, names[kind], score, item)
            for b, start, end, kind, score, item in entity_rows
        ]
        if readings is None or not readings.size or not marks.size or not entities:
            return entities
        places = starts[is_entity], ends[is_entity], text[starts[is_entity]]
        evidence = _collect_evidence(texts.documents, probabilities, marks, readings, *places)
        return [
            entity._replace(evidence=item) for entity, item in zip(entities, evidence, strict=True)
        ]

    def _compute_probabilities(self, outputs: Floats) -> Floats:
        logits = outputs[:, : len(self.types)]
        result: Floats = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
        result /= result.sum(axis=1, keepdims=True)
        return result

    def _mark_tagged(
        self, texts: Ragged, inside: Floats, detail: Flags, text: Ints, marks: Ints
    ) -> Flags:
        """Marks the words that are part of an entity: bool [T].

        Args:
            texts: the T words.
            inside: how likely each is to be part of one.
            detail: whether it is rather part of one of `DETAIL_TYPES` than of a name.
            text: whose word each is.
            marks: of the lexicon, for the bundled tagger's own thresholds.
        """
        if self.threshold is not None:
            result: Flags = inside >= self.threshold
            return result
        look_of_word = {word: classify_look(word) for word in set(texts.words)}
        looks = np.fromiter(
            (look_of_word[word] for word in texts.words), np.int64, len(texts.words)
        )
        ordinary = (marks & lexicon.ORDINARY_MARK > 0).astype(np.int64)
        place = looks, (marks & lexicon.NAME_MARK > 0) + 2 * ordinary

        def choose_thresholds(
            names: Mapping[str, tuple[float, ...]], details: tuple[float, float]
        ) -> Floats:
            table = np.array([names[look] for look in LOOK_CLASSES])
            result: Floats = np.where(detail, np.array(details)[ordinary], table[place])
            return result

        is_sure = inside >= _lower_thresholds(
            choose_thresholds(WORD_THRESHOLDS, DETAIL_THRESHOLDS),
            np.where(detail, self.doubt / 2, self.doubt),
        )
        is_near = is_sure | (
            inside >= choose_thresholds(NEIGHBOUR_THRESHOLDS, NEIGHBOUR_DETAIL_THRESHOLDS)
        )
        is_continued = is_near.copy()
        is_continued[1:] &= is_near[:-1] & (text[1:] == text[:-1])
        is_continued[0] = False
        run = np.cumsum(~is_continued) - 1
        # A run of words above the lower thresholds counts if one of them is sure.
        has_sure_word = np.bincount(run, weights=is_sure) > 0
        is_tagged: Flags = is_near & has_sure_word[run]
        return is_tagged

    def _score_privacy(
        self, probabilities: Floats, starts: Ints, names: Sequence[str], kinds: Ints, masses: Floats
    ) -> NDArray[np.float64]:
        """Returns each span's probability of being private.

        It is the share of its type's private labels, moved so that the cut is at .5.
        """
        if self.private is None:
            return np.ones(len(starts))
        private_masses = np.stack(
            [
                probabilities[:, self.private & self._type_labels[name]].sum(axis=1)
                for name in names
            ],
            axis=1,
        )
        place = np.arange(len(starts))
        share = (
            np.add.reduceat(private_masses, starts)[place, kinds].astype(float)
            / masses[place, kinds]
        )
        # a cut of c moves to .5, and 0 and 1 stay: the odds are multiplied by those of 1 - c
        private: NDArray[np.float64] = (
            share * (1 - self.cut) / (share * (1 - self.cut) + (1 - share) * self.cut)
        )
        return private.clip(0.0, 1.0)

    def _mark_beginnings(self, probabilities: Floats, by_type: Floats) -> Flags:
        """Marks words that would begin a new entity: bool [T].

        If they are part of one.
        """
        if self.begins.any():
            begin_mass: Floats = probabilities[:, self.begins].sum(axis=1)
            first: Flags = begin_mass > by_type.sum(axis=1) - begin_mass
            return first
        best = by_type.argmax(axis=1)
        return np.append(True, best[1:] != best[:-1])

    def _compute_shapes(self, texts: Ragged, bounds: Ints) -> Ints | None:
        """Returns casing and mark of each piece's word.

        For the bundled tagger; None for any other.
        """
        if not self.model.bundled:
            return None
        casing_of_word = {word: classify_casing(word) for word in set(texts.words)}
        casings = np.fromiter(
            (casing_of_word[word] for word in texts.words), np.int64, len(texts.words)
        )
        return np.repeat(casings + CASING_COUNT * texts.marks, np.diff(bounds))

    def _frame_shapes(
        self, shapes: Ints, windows: PieceWindows, which: Ints, shape: tuple[int, ...]
    ) -> Ints:
        rows = np.zeros(shape, np.int64)
        lengths = windows.lengths[which]
        row = np.repeat(np.arange(len(which)), lengths)
        rows[row, expand_ranges(np.full(len(which), len(self.model.before)), lengths)] = shapes[
            expand_ranges(windows.begins[which], lengths)
        ]
        return rows


def _collect_evidence(
    documents: Ints,
    probabilities: Floats,
    marks: Ints,
    readings: Floats,
    starts: Ints,
    ends: Ints,
    text: Ints,
) -> list[Evidence]:
    """Collects the evidence of K entities.

    Args:
        documents: int64 [B+1]; text b has the words documents[b] to documents[b+1].
        probabilities: of the bundled tagger's labels, float32 [T, labels].
        marks: of the lexicon, int64 [T].
        readings: float32 [T, R].
        starts: int64 [K], the first word of each, counted over all texts.
        ends: one past the last.
        text: the text of each.
    """
    values = np.zeros((len(probabilities), len(TAGGER_KINDS)), np.float32)
    for label, column in zip(TAGGER_LABELS, probabilities.T, strict=True):
        values[:, TAGGER_KINDS.index(label[label.find("-") + 1 :])] += column
    logs = np.log(np.maximum(values, MIN_PROBABILITY))
    list_marks = np.stack([marks & mark > 0 for mark in LEXICON_LISTS], axis=1)
    size = (ends - starts)[:, None]
    width = readings.shape[1] // len(EVIDENCE_WORDS)
    counts, means = size, []
    for k, reach in enumerate(EVIDENCE_WORDS):
        rows = readings[:, k * width : (k + 1) * width]
        if not reach:
            means.append(_reduce_ranges(np.add, rows, starts, ends) / size)
            continue
        first = np.maximum(documents[text], starts - reach)
        last = np.minimum(documents[text + 1], ends + reach)
        counts = (last - first)[:, None]
        sums = _reduce_ranges(np.add, rows, first, starts) + _reduce_ranges(
            np.add, rows, ends, last
        )
        means.append(sums / np.maximum(counts - size, 1))
    summaries = np.concatenate(
        (
            _reduce_ranges(np.add, logs, starts, ends) / size,
            _reduce_ranges(np.maximum, logs, starts, ends),
            _reduce_ranges(np.add, list_marks, starts, ends) / size,
            np.log1p(counts),
            np.log1p(size),
        ),
        axis=1,
    ).tolist()
    return [
        Evidence(tuple(summary), tuple(map(tuple, parts)))
        for summary, parts in zip(summaries, np.stack(means, axis=1).tolist(), strict=True)
    ]


def _reduce_ranges(
    reducer: np.ufunc, rows: Floats | Flags, starts: Ints, ends: Ints
) -> NDArray[np.float64]:
    """Reduces the rows from each start to its end.

    Zeros where there are none.
    """
    # reduceat takes no index behind the last row, and a range may end there.
    padded = np.concatenate([rows, np.zeros_like(rows[:1])]).astype(np.float64)
    # Every second range lies between an end and the next start, and is left out.
    result: NDArray[np.float64] = reducer.reduceat(
        padded, np.stack([starts, ends], axis=1).ravel()
    )[::2]
    result[starts == ends] = 0
    return result


def _lower_thresholds(thresholds: Floats, doubt: Floats) -> Floats:
    """Lowers the log odds of thresholds by `doubt`."""
    result: Floats = thresholds / (thresholds + (1 - thresholds) * np.exp(doubt))
    return result


def _check_options(threshold: float | None, window: int, batch: int) -> None:
    if threshold is not None and not 0 < threshold < 1:
        raise ConfigError(f"threshold must be between 0 and 1, got {threshold}")
    if window < 8 or batch < 1:
        raise ConfigError(
            f"window must be at least 8 and batch at least 1, got {window} and {batch}"
        )


def load_tagger(
    source: str | Path | None = None,
    *,
    threshold: float | None = None,
    window: int = 256,
    batch: int = 384,
    device: str = "cpu",
) -> TokenClassifier:
    """Loads a tagger.

    Args:
        source: None for the bundled tagger, or a folder or hub id of a transformers model for token
            classification with labels `O`, `B-TYPE`, `I-TYPE` (or just `TYPE`; also with `E-`,
            `L-`, `S-` and `U-`).
        threshold: in (0, 1): smallest probability at which a word is part of an entity. Lower finds
            more. None for .6, and for the bundled tagger's own, which depend on how a word looks
            and on what is beside it.
        window: pieces per sequence, at least 8; capped at what the model takes.
        batch: pieces per forward pass. More than a few hundred do not fit into a core's cache, and
            take longer each.
        device: a torch device.

    Raises:
        ConfigError: an option is out of range.
        ModelError: there is no such model, or its labels have no names.
    """
    if source is not None and threshold is None:
        threshold = DEFAULT_THRESHOLD
    _check_options(threshold, window, batch)
    model = load("tagger", source, device=device)
    labels = (
        [label.partition(" ")[0] for label in TAGGER_LABELS]
        if source is None
        else _read_labels(model)
    )
    parts = [_split_label(label, labels) for label in labels]
    return TokenClassifier(
        model=model,
        types=tuple(type_ for _, type_ in parts),
        begins=np.array([prefix in ("B-", "S-", "U-") for prefix, _ in parts]),
        threshold=threshold,
        window=min(window, model.longest),
        batch=batch,
        private=np.array([label.endswith(f" {VISIBILITIES[0]}") for label in TAGGER_LABELS])
        if source is None
        else None,
        cut=PRIVATE_CUT,
    )


def _read_labels(model: Model) -> list[str]:
    labels = list(model.network.labels)
    if (
        "O" not in labels
        or len(labels) < 2
        or all(label.startswith("LABEL_") for label in labels if label != "O")
    ):
        raise ModelError(
            f"{model.name} must name its labels, O among them; set id2label in its config.json"
        )
    return labels


def _split_label(label: str, labels: Sequence[str]) -> tuple[str, str | None]:
    """Splits a label into prefix and type.

    E-, L-, S- and U- are prefixes only if the type also has a B- or I- label.
    """
    if label == "O":
        return "", None
    prefix, bare = label[:2], label[2:]
    paired = prefix in ("E-", "L-", "S-", "U-") and {f"B-{bare}", f"I-{bare}"} & {*labels}
    if prefix not in ("B-", "I-") and not paired:
        prefix, bare = "", label
    return prefix, TYPE_ALIASES.get(bare.upper(), bare.upper())
