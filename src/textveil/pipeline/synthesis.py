"""Synthesis: a public corpus in place of a private one, by votes for public cells.

In: texts with labels, a library. Out: `Votes`, which are all that is released of the texts, and
corpora that follow from them.
Not here: the noise (`mechanism`), cells and public draws (`library`), and files (`corpus`).

One count of a public list of bins, drawn once: after it everything is free, for it reads no private
text any more.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Literal, Self, get_args

import numpy as np

from textveil.errors import ConfigError, GuaranteeError, InputError, list_names, quote_short
from textveil.guarantee import LibraryFacts, TextGuarantee, join_parts
from textveil.library import (
    Level,
    Library,
    Smoothing,
    allocate,
    draw_texts,
    get_views,
    smooth_labels,
)
from textveil.mechanism import NoisyCount, SubsetSelection
from textveil.mechanism.cells import MAX_CODES
from textveil.randomness import (
    Flags,
    Ids,
    Ints,
    Randomness,
    SeededRandomness,
    SystemRandomness,
    Values,
)
from textveil.text import check_texts

VERSION = 1
"""Version of the JSON form of votes and reports."""

DEFAULT_COUNT = 3000
"""The number of texts of a corpus, unless another is given."""

MAX_COUNT = 10_000_000

VOTES_PER_BIN = 1.75
"""The votes of a bin, in standard deviations of its noise, from which more cells are better."""

MOST_CELLS = 100

Count = int | Literal["all"]
"""How many texts are drawn; `all` for every text of the library once."""


@dataclass(frozen=True, kw_only=True)
class DrawOptions:
    """Options of the draw of texts, once the votes are there. None of them costs anything.

    Attributes:
        count: how many, chosen without looking at the private texts; or "all".
        smooth: what labels follow from; see `Votes.corpus`.
        balance: whether labels count as equally frequent.
        seed: public.

    Raises:
        ConfigError: one is out of range.
    """

    count: Count = DEFAULT_COUNT
    smooth: Smoothing = "best"
    balance: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count != "all" and not 1 <= self.count <= MAX_COUNT:
            raise ConfigError(f"count must be 1 to {MAX_COUNT:,} texts, or all, got {self.count}")
        if self.smooth not in get_args(Smoothing):
            raise ConfigError(
                f"smooth must be {', '.join(get_args(Smoothing))}, got "
                f"{quote_short(str(self.smooth))}"
            )
        if not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed must be a whole number from 0, got {self.seed}")

    def check(self, library: Library, label_names: Sequence[str]) -> None:
        """Refuses options that do not go with a library or labels, before anything is drawn.

        Raises:
            ConfigError: they do not.
        """
        is_smoothed = bool(label_names) and self.smooth != "none"
        if is_smoothed:
            get_views(library, self.smooth)
        elif self.count == "all":
            raise ConfigError(
                "count can be all, every text of the library with its label, where there are "
                "labels and they are smoothed"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Votes:
    """Votes for bins of labels and cells: all that a synthesis releases of private texts.

    Attributes:
        counts: int64 [L, K]: noisy counts of documents (`counts`), or how many reports hold each
            code (`reports`). One row where there are no labels.
        label_names: of the rows; empty where there are no labels.
        way: `counts` (one noisy count) or `reports` (each document reports by itself).
        epsilon: of one unit.
        unit: `document` or `subject`.
        per_subject: the most documents of a subject that are counted.
        subject: the noun for a subject.
        reports: the number of reports; None for `counts`.
        library: the facts of the library, with the level of the cells.
        seeded: whether the noise came from a seed.
    """

    counts: Ints = field(repr=False)
    label_names: tuple[str, ...] = ()
    way: Literal["counts", "reports"] = "counts"
    epsilon: float
    unit: Literal["document", "subject"] = "document"
    per_subject: int = 1
    subject: str = ""
    reports: int | None = None
    library: LibraryFacts
    seeded: bool = False

    def __post_init__(self) -> None:
        if self.counts.shape != (max(1, len(self.label_names)), self.library.cells):
            raise InputError("votes must be one number for each label and cell")
        if (self.reports is None) != (self.way == "counts"):
            raise InputError("votes of reports must say how many reports there were")
        self.counts.setflags(write=False)

    @property
    def guarantee(self) -> TextGuarantee:
        """The statement about the votes, and about all that follows from them."""
        return self.build_guarantee(None)

    def build_guarantee(self, released: int | None) -> TextGuarantee:
        """Returns the statement about a corpus of some texts that follows from the votes."""
        if self.way == "reports":
            loss = SubsetSelection(self.counts.size, self.epsilon).loss
        else:
            loss = NoisyCount(self.epsilon, self.per_subject).loss
        return TextGuarantee(
            kind="ldp" if self.way == "reports" else "central",
            unit=self.unit,
            way=self.way,
            epsilon=loss,
            replaced=loss if self.way == "reports" else 2 * loss,
            library=self.library,
            labels=self.label_names,
            documents=self.reports,
            released=released,
            per_subject=self.per_subject,
            subject=self.subject,
            seeded=self.seeded,
        )

    def estimate(self) -> Values:
        """Estimates how many documents each bin has, without bias: float64 [L, K]."""
        if self.way == "counts":
            return self.counts.astype(np.float64)
        selection = SubsetSelection(self.counts.size, self.epsilon)
        return selection.estimate(self.counts.ravel(), self.reports or 0).reshape(self.counts.shape)

    @property
    def variance(self) -> float:
        """The variance of the noise of each estimate."""
        if self.way == "counts":
            return NoisyCount(self.epsilon, self.per_subject).variance
        return SubsetSelection(self.counts.size, self.epsilon).compute_variance(self.reports or 0)

    def weigh(self) -> Values:
        """Returns the weight of each bin: its estimate less the scale of the noise, at least 0.

        The scale is that of Laplace noise: the root of half the variance.
        """
        return np.maximum(self.estimate() - math.sqrt(self.variance / 2), 0.0)

    def corpus(
        self,
        library: Library,
        *,
        count: Count = DEFAULT_COUNT,
        smooth: Smoothing = "best",
        balance: bool = False,
        seed: int = 0,
    ) -> "Synthesis":
        """Draws a corpus that follows from the votes; reads no private text, and costs nothing.

        Args:
            library: the one that was voted on.
            count: how many texts, chosen without looking at the private ones; or "all".
            smooth: what labels follow from, beside the votes: the texts' `vectors`, `words`,
                `both`, or `best`, which weighs them and what public labels or classes say. `none`:
                from the votes for their cell alone.
            balance: whether labels count as equally frequent; else they are as frequent as the
                votes say.
            seed: public: whoever has it and the votes gets the same corpus.

        Raises:
            ConfigError: the library is another one, or an option is out of range.
        """
        check_library(library, self.library)
        drawing = DrawOptions(count=count, smooth=smooth, balance=balance, seed=seed)
        drawing.check(library, self.label_names)
        level = library.get_level(self.library.level)
        if library.get_facts(level) != self.library:
            raise InputError(
                "the votes say other things of the library than it says itself (name, source, "
                "licence, cells): they were changed"
            )
        weights = self.weigh()
        if balance:
            sums = weights.sum(axis=1, keepdims=True)
            weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
        masses = weights.sum(axis=0)
        masses = masses if masses.any() else np.ones(len(level))
        if count == "all":
            which, cells = np.arange(len(library)), level.cells.astype(np.int64)
            labels = np.zeros_like(which)  # smoothed below
        else:
            which, labels, cells = draw_texts(level, _divide(weights, masses, count), seed)
        if self.label_names and smooth != "none":
            labels = smooth_labels(
                library,
                level,
                self.estimate(),
                self.variance,
                how=smooth,
                masses=masses,
                balance=balance,
            )[which]
        return Synthesis(
            library=library,
            votes=self,
            which=which,
            label_ids=labels if self.label_names else None,
            cells=cells,
        )

    # ---- as JSON ---------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Returns the votes as plain data."""
        return {
            "textveil votes": VERSION,
            "way": self.way,
            "unit": self.unit,
            "epsilon": self.epsilon,
            "per_subject": self.per_subject,
            "subject": self.subject,
            "reports": self.reports,
            "library": vars(self.library) | {},
            "label_names": list(self.label_names),
            "seeded": self.seeded,
            "counts": self.counts.tolist(),
        }

    @classmethod
    def parse(cls, document: Any) -> Self:
        """Reads votes from plain data.

        Raises:
            InputError: they are not votes of this version.
        """
        try:
            if document["textveil votes"] != VERSION:
                raise KeyError
            values = {name: document[name] for name in document if name != "textveil votes"}
            if not all(is_valid(values[name]) for name, is_valid in _CHECKS.items()):
                raise ValueError
            check_label_names(values["label_names"])
            counts = np.array(values.pop("counts"), np.int64)
            return cls(
                **{
                    **values,
                    "counts": counts.reshape(counts.shape if counts.ndim == 2 else (1, -1)),
                    "label_names": tuple(values["label_names"]),
                    "library": LibraryFacts(**values["library"]),
                }
            )
        except (KeyError, TypeError, ValueError, OverflowError, ConfigError, GuaranteeError):
            raise InputError(
                f"these are not votes of version {VERSION}, as corpus synthesize writes them "
                "to votes.json"
            ) from None


def _is_whole(value: object) -> bool:
    return type(value) is int


def _is_line(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_list_of(is_valid: Callable[[object], bool], value: object) -> bool:
    return isinstance(value, list) and all(map(is_valid, value))


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "epsilon": lambda value: type(value) in (int, float),
    "per_subject": _is_whole,
    "subject": _is_line,
    "reports": lambda value: value is None or _is_whole(value),
    "library": lambda value: (
        all(
            map(
                _is_line, (value[name] for name in ("name", "digest", "source", "licence", "level"))
            )
        )
        and _is_whole(value["texts"])
        and _is_whole(value["cells"])
    ),
    "label_names": partial(_is_list_of, _is_line),
    "seeded": lambda value: isinstance(value, bool),
    "counts": partial(_is_list_of, partial(_is_list_of, _is_whole)),
}
"""What the values of votes as plain data must be, for statements are made of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Synthesis:
    """A corpus of public texts that follows from votes.

    Attributes:
        library: its texts are from there.
        votes: what it follows from.
        which: int64 [n], the number of each text in the library.
        label_ids: int64 [n], its label; None without labels.
        cells: int64 [n], the cell for which it was drawn.
        left_out: for the curator alone: how many documents did not vote, and why. It is covered by
            no bound and must not be passed on.
    """

    library: Library
    votes: Votes
    which: Ids = field(repr=False)
    label_ids: Ids | None = field(repr=False)
    cells: Ids = field(repr=False)
    left_out: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.which)

    @property
    def texts(self) -> list[str]:
        """The texts."""
        return [self.library.texts[i] for i in self.which]

    @property
    def ids(self) -> list[str]:
        """The id or address of each text in its source."""
        return [self.library.ids[i] for i in self.which]

    @property
    def labels(self) -> list[str] | None:
        """The label of each text; None without labels."""
        if self.label_ids is None:
            return None
        return [self.votes.label_names[i] for i in self.label_ids]

    @property
    def guarantee(self) -> TextGuarantee:
        """The statement about the corpus."""
        return self.votes.build_guarantee(len(self))

    def yield_rows(self) -> Iterator[dict[str, Any]]:
        """Yields the rows of the corpus: text, label, cell, and its id in the public source."""
        labels: Sequence[str | None] = self.labels or [None] * len(self)
        for text, label, cell, source in zip(
            self.texts, labels, self.cells.tolist(), self.ids, strict=True
        ):
            row = {"text": text, "label": label, "cell": cell, "source": source, "public": True}
            yield {name: value for name, value in row.items() if value is not None}


def synthesize(  # noqa: PLR0913 - most are options, given by keyword
    texts: Sequence[str],
    labels: Sequence[str] | None = None,
    *,
    library: Library,
    epsilon: float,
    label_names: Sequence[str] = (),
    subjects: Sequence[str] | None = None,
    subject: str = "subject",
    per_subject: int = 1,
    about: int | None = None,
    level: str = "auto",
    count: Count = DEFAULT_COUNT,
    smooth: Smoothing = "best",
    balance: bool = False,
    seed: int = 0,
    noise_seed: int | None = None,
) -> Synthesis:
    """Synthesizes a public corpus like the given texts, by one noisy count of them.

    Central differential privacy: epsilon for one document or subject that is added or removed,
    twice that if it is replaced, delta 0.

    Args:
        texts: the private texts.
        labels: a label for each.
        library: public texts, made without these.
        epsilon: of one document, or of one subject with all that is counted of it.
        label_names: the labels, a public list; a text with another label is not counted.
        subjects: whom each text is about; the bound is then for a subject.
        subject: the noun for one.
        per_subject: how many texts of a subject are counted: the first ones.
        about: about how many texts there are, a public guess, from which the level follows.
        level: the level of cells, or "auto".
        count: how many public texts, chosen without looking at the private ones.
        smooth: what labels follow from; see `Votes.corpus`.
        balance: whether labels count as equally frequent.
        seed: of the public draw; see `Votes.corpus`.
        noise_seed: for tests: repeats the noise, and the statement says that nothing is protected.

    Raises:
        ConfigError, BudgetError: an option is out of range.
        InputError: a text is not valid Unicode, or there are not as many labels or subjects.
    """
    drawing = DrawOptions(count=count, smooth=smooth, balance=balance, seed=seed)
    drawing.check(library, label_names)
    box = BallotBox(
        library=library,
        level=library.get_level(
            choose_level(library, level, about, epsilon, label_names, per_subject=per_subject)
        ),
        epsilon=epsilon,
        label_names=tuple(label_names),
        unit="document" if subjects is None else "subject",
        per_subject=per_subject,
        subject="" if subjects is None else subject,
    )
    box.add(texts, labels, subjects)
    votes = box.draw(None if noise_seed is None else SeededRandomness(noise_seed))
    return replace(votes.corpus(library, **vars(drawing)), left_out=box.left_out)


@dataclass(kw_only=True, eq=False)
class BallotBox:
    """Counts texts by label and cell, some at a time. Secret until noise is added.

    Attributes:
        library: the public texts.
        level: the cells.
        epsilon: of one document or subject.
        label_names: the labels, a public list.
        unit: `document` or `subject`.
        per_subject: how many texts of a subject are counted: the first ones.
        subject: the noun for a subject.
        counted: for the curator alone: how many texts were counted.
        left_out: for the curator alone: how many texts were not counted, and why.

    Raises:
        ConfigError, BudgetError: an option is out of range.
    """

    library: Library
    level: Level
    epsilon: float
    label_names: tuple[str, ...] = ()
    unit: Literal["document", "subject"] = "document"
    per_subject: int = 1
    subject: str = ""
    counted: int = field(default=0, repr=False)
    left_out: dict[str, int] = field(default_factory=dict, repr=False)
    _counts: Ints | None = field(init=False, repr=False)
    _seen: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_label_names(self.label_names)
        if self.unit == "document" and self.per_subject != 1:
            raise ConfigError(
                "how many texts of a subject are counted (per_subject) needs the "
                "subject of each text (subjects)"
            )
        NoisyCount(self.epsilon, self.per_subject)  # what is wrong is said before any text is read
        self._counts = self._make_bins()

    def _make_bins(self) -> Ints:
        return np.zeros((max(1, len(self.label_names)), len(self.level)), np.int64)

    def add(
        self,
        texts: Sequence[str],
        labels: Sequence[str] | None = None,
        subjects: Sequence[str] | None = None,
    ) -> None:
        """Counts some texts.

        Whether a text is counted follows from it and from the earlier ones of its subject alone.
        """
        check_texts(texts)
        if self._counts is None:
            raise ConfigError("the votes were drawn, and are not drawn again: count anew")
        rows, is_listed = find_labels(labels, self.label_names, len(texts))
        is_public = self.library.contains(texts)
        is_empty = np.array([not text.strip() for text in texts], np.bool_)
        is_nobodys = self._find_nobodys(len(texts), subjects)
        is_counted = is_listed & ~is_public & ~is_empty & ~is_nobodys
        is_over = self._find_surplus(is_counted, subjects)
        for reason, flags in (
            ("label not listed", ~is_listed),
            ("stands in the library", is_listed & is_public),
            ("empty", is_listed & is_empty & ~is_public),
            ("without a subject", is_listed & is_nobodys & ~is_empty & ~is_public),
            ("beyond what is counted of a subject", is_over),
        ):
            self.left_out[reason] = self.left_out.get(reason, 0) + int(flags.sum())
        places = np.flatnonzero(is_counted & ~is_over)
        self.counted += len(places)
        cells = self.library.find_cells([texts[i] for i in places.tolist()], self.level)
        np.add.at(self._counts, (rows[places], cells), 1)

    def _find_nobodys(self, n: int, subjects: Sequence[str] | None) -> Flags:
        """Finds the texts of which nobody says whom they are about: no bound would cover them."""
        if self.unit == "document":
            return np.zeros(n, np.bool_)
        if subjects is None or len(subjects) != n:
            raise InputError("subjects must be as many as texts")
        return np.array([not subject.strip() for subject in subjects], np.bool_)

    def _find_surplus(self, is_counted: Flags, subjects: Sequence[str] | None) -> Flags:
        """Finds the texts beyond the first ones of their subject."""
        is_over = np.zeros(len(is_counted), np.bool_)
        if self.unit == "document" or subjects is None:
            return is_over
        for i in np.flatnonzero(is_counted).tolist():
            subject = subjects[i].strip()
            before = self._seen.get(subject, 0)
            is_over[i] = before >= self.per_subject
            self._seen[subject] = before + 1
        return is_over

    @property
    def is_empty(self) -> bool:
        """A flag: noise was drawn, and the box is empty."""
        return self._counts is None

    @property
    def subjects(self) -> Collection[str]:
        """The subjects who are counted. Secret: for the ledger alone."""
        return self._seen.keys()

    def build_guarantee(self) -> TextGuarantee:
        """Returns the statement about the votes before they are drawn."""
        return self._build_votes(self._make_bins(), is_seeded=False).guarantee

    def _build_votes(self, counts: Ints, *, is_seeded: bool) -> Votes:
        return Votes(
            counts=counts,
            label_names=self.label_names,
            epsilon=self.epsilon,
            unit=self.unit,
            per_subject=self.per_subject,
            subject=self.subject,
            library=self.library.get_facts(self.level),
            seeded=is_seeded,
        )

    def draw(self, randomness: Randomness | None = None) -> Votes:
        """Adds noise to every bin: the one draw of the release, after which the box is empty.

        Args:
            randomness: the operating system's, unless a test gives a seed.
        """
        randomness = SystemRandomness() if randomness is None else randomness
        if self._counts is None:
            raise ConfigError("the votes were drawn, and are not drawn again: count anew")
        counts, self._counts = self._counts, None
        ((_, draws),) = randomness.open([counts.size]).split_rows(counts.size)
        noise = NoisyCount(self.epsilon, self.per_subject)
        noisy = noise.draw(draws, counts.ravel()).reshape(counts.shape)
        return self._build_votes(noisy, is_seeded=randomness.is_seeded)


def choose_level(
    library: Library,
    level: str,
    about: int | None,
    epsilon: float,
    label_names: Sequence[str] = (),
    *,
    way: Literal["counts", "reports"] = "counts",
    per_subject: int = 1,
) -> str:
    """Chooses the level of cells from public numbers alone.

    It has as many cells as the noise allows: a bin should have 1.75 times the standard deviation
    of its noise.

    Args:
        library: with its levels.
        level: a level's name, which is taken as it is, or "auto".
        about: about how many texts there are.
        epsilon: of one document.
        label_names: the labels.
        way: one noisy count, or a report of each document.
        per_subject: how many texts of a subject are counted.

    Raises:
        ConfigError: there is no such level, or "auto" has no number to go by.
        BudgetError: epsilon is out of range.
    """
    if level != "auto":
        return library.get_level(level).name
    sizes = {len(each): each.name for each in library.levels if each.kind == "clusters"}
    if len(sizes) == 1:
        return next(iter(sizes.values()))
    if about is None or not about >= 1:
        raise ConfigError(
            "which level of cells suits depends on about how many texts there are: say a public "
            "guess, about (--about), or name a level (--cells): "
            f"{list_names(library.level_names)}"
        )

    def is_fitting(size: int) -> bool:
        bins = size * max(1, len(label_names))
        if size > MOST_CELLS or bins > MAX_CODES:
            return False
        variance = (
            NoisyCount(epsilon, per_subject).variance
            if way == "counts"
            else SubsetSelection(bins, epsilon).compute_variance(about)
        )
        return about / bins >= VOTES_PER_BIN * math.sqrt(variance)

    return sizes[max(filter(is_fitting, sizes), default=min(sizes))]


def check_library(library: Library, facts: LibraryFacts) -> None:
    """Refuses a library that is not the one that was voted on.

    Raises:
        ConfigError: it is another one.
    """
    if library.digest != facts.digest:
        raise ConfigError(
            f"the votes are for the library {quote_short(facts.name)} {facts.digest[:16]}, and "
            f"the one given has the digest {library.digest[:16]}: give that library"
        )


def _divide(weights: Values, masses: Values, count: int) -> Ints:
    """Divides texts among cells, by their masses, and within a cell among labels: [L, K]."""
    amounts = allocate(masses, count).tolist()
    parts = [allocate(column, amount) for column, amount in zip(weights.T, amounts, strict=True)]
    return np.stack(parts, axis=1)


def check_label_names(names: Sequence[str]) -> None:
    """Refuses a list of labels that is none.

    Raises:
        ConfigError: names are equal, or empty.
    """
    if len(set(names)) < len(names) or not all(
        name.strip() and name.isprintable() for name in names
    ):
        raise ConfigError(
            "the names of labels must be different ones, each a line of text, and none empty"
        )


def find_labels(labels: Sequence[str] | None, names: Sequence[str], n: int) -> tuple[Ids, Flags]:
    """Finds the number of each text's label, int64 [n], and whether it is listed.

    Raises:
        ConfigError: labels and their names do not go together.
        InputError: there are not as many labels as texts.
    """
    if bool(names) != (labels is not None):
        raise ConfigError(
            "labels and the public list of their names go together: which labels occur must not "
            "be read from the texts"
        )
    if labels is None:
        return np.zeros(n, np.int64), np.ones(n, np.bool_)
    if len(labels) != n:
        raise InputError(f"labels must be as many as texts, got {len(labels):,} for {n:,}")
    places = {name: i for i, name in enumerate(names)}
    rows = np.array([places.get(label, -1) for label in labels], np.int64)
    return np.maximum(rows, 0), rows >= 0


# ---- each document reports by itself -------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Report:
    """What one document reports: a set of codes, of its label and cell or not.

    Attributes:
        codes: rising, between 0 and labels times cells.
        label_names: of the labels; empty where there are none.
        epsilon: local differential privacy for document and label together.
        library: the facts of the library, with the level of the cells.
    """

    codes: tuple[int, ...]
    label_names: tuple[str, ...] = ()
    epsilon: float
    library: LibraryFacts

    def dump(self) -> dict[str, Any]:
        """Returns the report as plain data."""
        return {
            "textveil report": VERSION,
            "library": self.library.digest,
            "level": self.library.level,
            "label_names": list(self.label_names),
            "epsilon": self.epsilon,
            "codes": list(self.codes),
        }


def report_texts(
    texts: Sequence[str],
    labels: Sequence[str] | None = None,
    *,
    library: Library,
    level: str,
    epsilon: float,
    label_names: Sequence[str] = (),
    randomness: Randomness | None = None,
) -> list[Report]:
    """Draws the report of each text: local DP for the text and its label together.

    A text that stands in the library reports of a code at random: it does not vote, and its device
    is not silent.

    Args:
        texts: the private texts.
        labels: a label for each, of the list.
        library: public texts, made without these.
        level: of the cells, the same for all devices.
        epsilon: of one document.
        label_names: the labels, a public list, the same for all devices.
        randomness: the operating system's, unless a test gives a seed.

    Raises:
        ConfigError, BudgetError: an option is out of range.
        InputError: a label is not listed: on one's own device that can be said.
    """
    check_texts(texts)
    check_label_names(label_names)
    rows, is_listed = find_labels(labels, label_names, len(texts))
    if not is_listed.all():
        raise InputError(f"each label must be one of the listed ones: {list_names(label_names)}")
    cells_level = library.get_level(level)
    facts = library.get_facts(cells_level)
    selection = SubsetSelection(max(1, len(label_names)) * len(cells_level), epsilon)
    codes = rows * len(cells_level) + library.find_cells(texts, cells_level)
    is_public = library.contains(texts)
    randomness = SystemRandomness() if randomness is None else randomness
    reports = []
    streams = randomness.open([1] * len(codes))
    for which, draws in streams.split_rows(4096):
        # A device that is silent tells something: one whose text is public reports of any.
        others = draws.integers(np.full(draws.size, selection.codes, np.int64))
        for chosen in selection.draw(draws, np.where(is_public[which], others, codes[which])):
            members = tuple(np.flatnonzero(chosen).tolist())
            reports.append(
                Report(
                    codes=members, label_names=tuple(label_names), epsilon=epsilon, library=facts
                )
            )
    return reports


def tally(reports: Iterable[Mapping[str, Any]], library: Library) -> Votes:
    """Adds up reports, as plain data, to votes.

    Raises:
        InputError: there is none, one is damaged, or they are for different codes.
        ConfigError: they are for another library.
    """
    rest = iter(reports)
    first = _check_report(next(rest, None))
    if first["library"] != library.digest:
        raise ConfigError(
            f"the reports are for a library with the digest {str(first['library'])[:16]}, and the "
            f"one given has {library.digest[:16]}: give that library"
        )
    names, level = tuple(first["label_names"]), library.get_level(first["level"])
    counts = np.zeros(max(1, len(names)) * len(level), np.int64)
    size = SubsetSelection(len(counts), first["epsilon"]).size
    alike = {
        "library": "library",
        "level": "level of cells (--cells)",
        "label_names": "list of labels",
        "epsilon": "epsilon",
    }
    number = 0
    for number, report in enumerate(chain([first], rest), 1):
        _check_report(report)
        if others := [noun for name, noun in alike.items() if report[name] != first[name]]:
            raise InputError(
                f"report {number}, in the order of the names of files, has another "
                f"{join_parts(others)} than the first: all must be alike"
            )
        codes = report["codes"]
        if len(set(codes)) != size or not all(0 <= code < len(counts) for code in codes):
            raise InputError(
                f"report {number} must hold {size} different codes below {len(counts)}"
            )
        counts[codes] += 1
    return Votes(
        counts=counts.reshape(max(1, len(names)), len(level)),
        label_names=names,
        way="reports",
        epsilon=first["epsilon"],
        reports=number,
        library=library.get_facts(level),
    )


def _check_report(report: Any) -> Mapping[str, Any]:
    """Refuses what is no report of this version, and None, where there is none."""
    if report is None:
        raise InputError("there is no report")
    kinds: dict[str, type | tuple[type, ...]] = {
        "library": str,
        "level": str,
        "label_names": list,
        "epsilon": (int, float),
        "codes": list,
    }
    is_report = isinstance(report, Mapping) and report.get("textveil report") == VERSION
    if not is_report or not all(isinstance(report.get(name), kinds[name]) for name in kinds):
        raise InputError(f"this is not a report of version {VERSION}, as corpus report writes it")
    if not all(type(code) is int for code in report["codes"]):
        raise InputError("the codes of a report must be whole numbers")
    result: Mapping[str, Any] = report
    return result
