"""The product's own releases of whole texts, as programs of two worlds.

In: the options of a release of whole texts, its way, and texts. Out: pairs of neighbours for the
audit, and the case that attacks judge.
Not here: the attacks (`whole_texts`), the scores (`worlds`), and what is released (`pipeline`).

Every program goes the whole way: from texts by the public map and the draws to what is published.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from textveil.config import Config
from textveil.detect import split_sentences
from textveil.errors import ConfigError
from textveil.guarantee import TextGuarantee
from textveil.guarantee.text_guarantee import TextWay
from textveil.library import Level, Library
from textveil.library.features import FeatureMap, Features
from textveil.pipeline import BallotBox, TextPrivatizer, choose_level, report_texts, tally
from textveil.randomness import Floats, Ids, Ints, Randomness, SeededRandomness, SystemRandomness
from textveil_bench.attack.whole_texts import TextCase, pair_texts
from textveil_bench.attack.worlds import WorldPair

PER_SUBJECT = 2
"""The texts that are counted of a subject, in the audit."""

SUBJECT_TEXTS = 5
"""The texts that the audit's subject has: more than are counted."""

AUDIT_LABELS = ("one", "another")

AUDIT_ABOUT = 1000
"""About how many texts there are, for the audit's level of cells."""

RELEASES_AT_ONCE = 2000
"""Noisy counts drawn at once, which bounds memory."""

CANDIDATE_CELLS, CANDIDATES = 12, 4
"""Cells, and texts of each, among which the audit looks for neighbours."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateDocument:
    """A private text with its label, and whom it is about."""

    text: str = field(repr=False)
    label: str = field(default="", repr=False)
    subject: str = field(default="", repr=False)


class RememberedFeatures(FeatureMap):
    """A public map that computes the features of each text once."""

    @cached_property
    def known(self) -> dict[str, Features]:
        """The features of the texts that were met, each [1, F]."""
        return {}

    def compute(self, texts: Sequence[str], vectors: Floats | None = None) -> Features:
        """Computes the features of texts: int16 [n, F]."""
        if missing := [text for text in dict.fromkeys(texts) if text not in self.known]:
            self.known.update(zip(missing, super().compute(missing), strict=True))
        return np.stack([self.known[text] for text in texts])


def remember_cells(library: Library) -> Library:
    """Returns the same library, which encodes each text once, however often it is released."""
    features = library.features
    values = {part.name: getattr(features, part.name) for part in fields(features)}
    return replace(library, features=RememberedFeatures(**values))


# ---- programs ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class TextReleases:
    """Releases a public text in place of a document.

    Attributes:
        privatizer: of whole texts.
        shown: the drawn cells, or the numbers of the public texts.
    """

    privatizer: TextPrivatizer
    shown: Literal["cells", "texts"]
    _numbers: dict[str, int] = field(default_factory=dict, repr=False)

    def __call__(self, text: str, many: int, /) -> Ids:
        """Returns integers [many, sentences]."""
        results = self.privatizer.privatize_many([text] * many)
        if self.shown == "cells":
            return np.array([result.cells for result in results], np.int64)
        return np.array(
            [
                [self._numbers.setdefault(source, len(self._numbers)) for source in result.sources]
                for result in results
            ],
            np.int64,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportReleases:
    """Releases the report of a document: a set of codes, as zeros and ones."""

    report: Callable[..., Any] = field(repr=False)
    codes: int

    def __call__(self, document: PrivateDocument, many: int, /) -> Ints:
        """Returns zeros and ones [many, codes]."""
        is_in = np.zeros((many, self.codes), np.int64)
        for row, report in enumerate(self.report([document] * many)):
            is_in[row, list(report.codes)] = 1
        return is_in


@dataclass(frozen=True, kw_only=True, eq=False)
class CountReleases:
    """Releases one noisy count of documents.

    Attributes:
        make_box: builds an empty ballot box for a list of labels.
        label_names: of the documents.
        randomness: of the noise.
    """

    make_box: Callable[..., BallotBox] = field(repr=False)
    label_names: tuple[str, ...]
    randomness: Randomness = field(repr=False)

    def __call__(self, documents: Sequence[PrivateDocument], many: int, /) -> Ints:
        """Returns noisy counts [many, bins]."""
        return self.release([documents] * many)

    def release(self, worlds: Sequence[Sequence[PrivateDocument]]) -> Ints:
        """Returns a noisy count of each world: [worlds, bins]."""
        counts = []
        for start in range(0, len(worlds), RELEASES_AT_ONCE):
            some = worlds[start : start + RELEASES_AT_ONCE]
            # Each world has labels and subjects of its own, so one box counts all of them, every
            # bin with noise of its own, as it would count a single one.
            box = self.make_box(
                label_names=tuple(
                    f"{number} {name}"
                    for number in range(len(some))
                    for name in self.label_names or ("",)
                )
            )
            voters = [(i, document) for i, world in enumerate(some) for document in world]
            box.add(
                [document.text for _, document in voters],
                [f"{number} {document.label}" for number, document in voters],
                [f"{number} {document.subject}" for number, document in voters],
            )
            counts.append(box.draw(self.randomness).counts.reshape(len(some), -1))
        return np.concatenate(counts)


# ---- a release by its options --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeRelease:
    """One way of releasing whole texts, by the options that the product takes.

    Attributes:
        library: public texts; it remembers the cells of the texts it has met.
        way: a public text in place of each, a report of each, or one noisy count.
        level: of the cells.
        epsilon: of one document or sentence.
        label_names: the labels in the codes or bins; empty where there are none.
        randomness: of reports and counts.
        privatizer: of whole texts, for that way.
    """

    library: Library
    way: TextWay
    level: Level
    epsilon: float
    label_names: tuple[str, ...] = ()
    randomness: Randomness = field(repr=False)
    privatizer: TextPrivatizer | None = None

    @classmethod
    def from_config(
        cls, config: Config, way: TextWay = "texts", *, label_names: Sequence[str] = (), about: int
    ) -> "WholeRelease":
        """Builds a release from resolved options of whole texts.

        Args:
            config: with a unit, a library and epsilon.
            way: `texts`, `reports` or `counts`.
            label_names: labels in the codes or bins.
            about: about how many texts there are, where the level follows from it.

        Raises:
            ConfigError: an option is wrong, or does not go with the way.
        """
        texts = config.texts
        if way != "texts" and (texts.unit != "document" or texts.sure is not None):
            raise ConfigError(
                f"--way {way} must go with --unit document, and without --sure: it draws no text "
                "in place of another"
            )
        privatizer = TextPrivatizer.from_config(config)
        library, seed = remember_cells(privatizer.library), config.seed
        level, names, epsilon = privatizer.level, tuple(label_names), privatizer.response.epsilon
        if way != "texts":
            level = library.get_level(
                choose_level(library, texts.cells, about, epsilon, names, way=way)
            )
        return cls(
            library=library,
            way=way,
            level=level,
            epsilon=epsilon,
            label_names=names,
            randomness=SystemRandomness() if seed is None else SeededRandomness(seed),
            privatizer=privatizer.with_parts(library=library) if way == "texts" else None,
        )

    def make_box(self, *, label_names: Sequence[str], per_subject: int = 0) -> BallotBox:
        """Builds an empty ballot box, for documents or for subjects."""
        return BallotBox(
            library=self.library,
            level=self.level,
            label_names=tuple(label_names),
            epsilon=self.epsilon,
            unit="subject" if per_subject else "document",
            per_subject=per_subject or 1,
            subject="author" if per_subject else "",
        )

    def count(self, per_subject: int = 0) -> CountReleases:
        """Returns the program of noisy counts."""
        return CountReleases(
            make_box=partial(self.make_box, per_subject=per_subject),
            label_names=self.label_names,
            randomness=self.randomness,
        )

    def report(self, documents: Sequence[PrivateDocument]) -> list[Any]:
        """Draws the report of each document."""
        return report_texts(
            [document.text for document in documents],
            [document.label for document in documents] if self.label_names else None,
            library=self.library,
            level=self.level.name,
            epsilon=self.epsilon,
            label_names=self.label_names,
            randomness=self.randomness,
        )

    def promise(self, document: PrivateDocument, *, per_subject: int = 0) -> TextGuarantee:
        """Returns what the product states of a release, for one unit."""
        if self.privatizer is not None:
            return self.privatizer.claim
        if self.way == "reports":
            reports = [report.dump() for report in self.report([document])]
            return tally(reports, self.library).guarantee
        box = self.make_box(label_names=self.label_names, per_subject=per_subject)
        return box.build_guarantee()

    # ---- for the audit ---------------------------------------------------------------------------

    def list_audited_pairs(self) -> list[WorldPair]:
        """Lists neighbours for the audit, of texts that follow from the library."""
        one, other = self._find_texts()
        if self.privatizer is not None:
            return list(self._pair_texts(one, other))
        first, second = (
            PrivateDocument(text=text, label=label)
            for text, label in zip((one, other), self.label_names, strict=True)
        )
        if self.way == "reports":
            pair = partial(
                WorldPair,
                program=self._make_program(),
                first=first,
                epsilon=self.promise(first).epsilon,
            )
            same_label = replace(second, label=first.label)
            return [
                pair(name="another document", second=same_label),
                pair(name="another document with another label", second=second),
            ]
        return [
            *self._pair_counts("document", [first], [second], 0),
            *self._pair_counts(
                f"author of {SUBJECT_TEXTS} documents, {PER_SUBJECT} of which are counted",
                [replace(first, subject="author")] * SUBJECT_TEXTS,
                [replace(second, subject="author")] * SUBJECT_TEXTS,
                PER_SUBJECT,
            ),
        ]

    def _pair_texts(self, one: str, other: str) -> Iterator[WorldPair]:
        assert self.privatizer is not None, "texts are drawn"
        loss = self.privatizer.claim.epsilon
        cases = [("another document", one, other, loss)]
        if self.privatizer.unit == "sentence":
            cases = [
                ("another sentence of two", f"{one} {one}", f"{other} {one}", loss),
                ("two other sentences", f"{one} {one}", f"{other} {other}", 2 * loss),
            ]
        for name, first, second, epsilon in cases:
            for shown in ("cells", "texts"):
                yield WorldPair(
                    name=f"{name}, by {shown}",
                    program=TextReleases(privatizer=self.privatizer, shown=shown),
                    first=first,
                    second=second,
                    epsilon=epsilon,
                )

    def _pair_counts(
        self,
        unit: str,
        first: list[PrivateDocument],
        second: list[PrivateDocument],
        per_subject: int,
    ) -> Iterator[WorldPair]:
        promise = self.promise(first[0], per_subject=per_subject)
        # in other bins, so that a bin without noise where nobody else is can be seen
        others = [
            replace(first[0], label=second[0].label, subject="somebody"),
            replace(second[0], label=first[0].label, subject="anybody"),
        ]
        changes: Sequence[tuple[str, list[PrivateDocument], float]] = (
            ("more", [], promise.epsilon),
            ("replaced", second, promise.replaced),
        )
        for change, before, epsilon in changes:
            yield WorldPair(
                name=f"{unit}, one {change}",
                program=self.count(per_subject),
                first=[*others, *before],
                second=[*others, *first],
                epsilon=epsilon,
            )

    def _make_program(self) -> ReportReleases | CountReleases:
        if self.way == "counts":
            return self.count()
        codes = max(1, len(self.label_names)) * len(self.level)
        return ReportReleases(report=self.report, codes=codes)

    def _find_texts(self) -> tuple[str, str]:
        """Finds two sentences of different cells: halves of public ones."""
        candidates = []
        for members in self.level.members[:CANDIDATE_CELLS]:
            for i in members[:CANDIDATES].tolist():
                words = split_sentences(self.library.texts[i])[0].split()
                half = " ".join(words[: (len(words) + 1) // 2]).rstrip(" .,;:!?")
                candidates.append(f"{half[:1].upper()}{half[1:]}.")
        is_public = self.library.contains(candidates)
        private = [
            text
            for text, known in zip(candidates, is_public.tolist(), strict=True)
            if not known and len(split_sentences(f"{text} {text}")) == 2
        ]
        cells = self.library.find_cells(private, self.level)
        found = [private[i] for i in np.unique(cells, return_index=True)[1].tolist()]
        if len(found) < 2:
            raise ConfigError(
                "the audit needs texts of two cells, and halves of the library's texts are all in "
                "one: choose another level (--cells)"
            )
        return found[0], found[1]

    # ---- for attacks -----------------------------------------------------------------------------

    def build_case(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, *, pair_count: int = 4
    ) -> TextCase:
        """Releases texts of which attacks say what they tell.

        A report is shown as words for its codes, and the label of each. Of a count, one for every text, the attacker is
        shown the label that it makes likeliest: he knows all other texts, and the cell of this one.

        Args:
            texts: the private ones.
            labels: the label of each, where labels are in the codes or bins.
            pair_count: how many pairs of neighbours.
        """
        self.library.refuse(texts)
        if self.privatizer is not None:
            privatizer = self.privatizer
            return TextCase.create(
                lambda some: [result.text for result in privatizer.privatize_many(some)],
                texts,
                epsilon=privatizer.claim.epsilon,
                public=self.library.texts,
                find_cells=PublicCells(self.library, self.level),
                pair_count=pair_count,
            )
        documents = [
            PrivateDocument(text=text, label=label)
            for text, label in zip(texts, labels or [""] * len(texts), strict=True)
        ]
        find_cells = partial(self.library.find_cells, level=self.level)
        pairs = [
            (f"another text ({number})", documents[i], documents[j])
            for number, (i, j) in enumerate(pair_texts(texts, find_cells, pair_count), 1)
        ]
        promise, program = self.promise(documents[0]), self._make_program()
        if self.way == "reports":
            worlds: list[tuple[str, Any, Any, float]] = [(*pair, promise.epsilon) for pair in pairs]
            released = [self._spell(report.codes) for report in self.report(documents)]
        else:
            # the others' counts, which he knows, are left out: the noise is the same without them
            worlds = [(name, [one], [other], promise.replaced) for name, one, other in pairs]
            worlds.insert(0, ("one text more", [], [documents[0]], promise.epsilon))
            counts = self.count().release([[document] for document in documents])
            counts = counts.reshape(len(texts), -1, len(self.level))
            # he knows the text, and so the cell, and looks for its label
            known = counts[np.arange(len(texts)), :, find_cells(texts)]
            released = [f"label{number}" for number in known.argmax(axis=1).tolist()]
        return TextCase(
            epsilon=promise.replaced,
            texts=tuple(texts),
            released=tuple(released),
            pairs=tuple(
                WorldPair(name=name, program=program, first=first, second=second, epsilon=epsilon)
                for name, first, second, epsilon in worlds
            ),
        )

    def _spell(self, codes: Sequence[int]) -> str:
        return " ".join(f"label{code // len(self.level)} code{code}" for code in codes)


@dataclass(frozen=True, eq=False)
class PublicCells:
    """Finds the cells of texts, of public ones by looking them up."""

    library: Library
    level: Level

    @cached_property
    def known(self) -> Mapping[str, int]:
        """The cells of the public texts."""
        return dict(zip(self.library.texts, self.level.cells.tolist(), strict=True))

    def __call__(self, texts: Sequence[str]) -> Ids:
        """Returns the cell of each text, int64 [n]."""
        if all(text in self.known for text in texts):
            return np.array([self.known[text] for text in texts], np.int64)
        return self.library.find_cells(texts, self.level)
