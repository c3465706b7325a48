"""The statement of a corpus: losses per word, document and person.

And the words that passed or were unknown.

In: records of parts. Out: `CorpusStatement`, and all that it says as a sheet.
Not here: the statement about one text (`guarantee`), how a sheet is written (`render`), and where
it
goes (`release`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, ClassVar, Self

import numpy as np
import regex

from textveil.corpus.loss_histogram import LossHistogram, count_word_losses
from textveil.guarantee import (
    MICRO,
    Guarantee,
    TextGuarantee,
    condense,
    format_count,
    format_number,
    join_parts,
    summarize,
)
from textveil.render import Sheet, SheetSection, SheetTable, clean_name

STATEMENT_TITLE = "What this release guarantees"

SUBJECTS_PER_SLICE = 1 << 22
"""Subjects that are summed at once.

So that memory does not grow with them.
"""

LARGE_EPSILON = 10.0
"""The epsilon above which nobody is protected as a whole.

e^10 is 22,026.
"""

MAX_FACTOR = 1_000_000
"""The factor above which its exact value says nothing."""

_SHOWN = {"verbatim words": "which words pass unchanged"}
"""Names of what a mask shows that say little by themselves."""

_KEY_WORDS = ("id", "ids", "name", "email", "mail", "number", "no")
"""Last words of a column's name that say by what it names somebody."""


@dataclass(kw_only=True)
class ReleaseLosses(ABC):
    """What rows and subjects of a release lose, and which of its fields are copied.

    Attributes:
        documents: what the rows lose.
        subjects: what the subjects lose, the sum over their rows; None where no field says whom a
            row is about.
        subject: the name of that field.
        others: fields that are copied and not covered.
        identifiers: those of them by which somebody may be found, with the reasons.
        copied: the number of words in those fields.
        id: the copied field that tells rows apart; None without one.
        drops_others: whether all fields that are not named were left out.
        equal: whether equal texts have equal releases.
    """

    documents: LossHistogram
    subjects: LossHistogram | None = None
    subject: str | None = None
    others: tuple[str, ...] = ()
    identifiers: Mapping[str, str] = field(default_factory=dict)
    copied: int = 0
    id: str | None = None
    drops_others: bool = False
    equal: bool = False

    kind: ClassVar[type[Guarantee | TextGuarantee]]
    """The kind of statement in the records of parts."""

    row_noun: ClassVar[str] = "document"
    """What a row is called."""

    unit: ClassVar[str] = "word"
    """What is replaced: what is proved is about one of these."""

    also_shows: ClassVar[str] = "In addition to its words the release shows"
    """The beginning of the sentence on the mask."""

    @classmethod
    def build(cls, records: Iterable[dict[str, Any]], **more: Any) -> Self:
        """Sums the records of all parts, in their order."""
        statement: Any = cls(documents=LossHistogram(), **more)
        for record in records:
            statement.documents.merge(LossHistogram.unpack(record["documents"]))
            statement.copied += record["copied"]
            if record["statement"] is not None:
                guarantee: Any = cls.kind.unpack(record["statement"])
                previous = statement.guarantee
                statement.guarantee = condense(
                    guarantee if previous is None else summarize([previous, guarantee])
                )
        return statement  # type: ignore[no-any-return]

    @property
    def person(self) -> str:
        """The noun for a subject: "customer" for a field `customer_id`."""
        words = regex.sub(
            r"(?<=\p{Ll})(?=\p{Lu})|[_\W]+", " ", clean_name(self.subject or "")
        ).split()
        while len(words) > 1 and words[-1].lower() in _KEY_WORDS:
            words.pop()
        return " ".join(words).lower() or "subject"

    @property
    def losses(self) -> dict[str, LossHistogram]:
        """The losses of documents and subjects, by name."""
        subjects = {} if self.subjects is None else {"subject": self.subjects}
        return {"document": self.documents, **subjects}

    @property
    @abstractmethod
    def stated(self) -> Any:
        """The statement about all texts; None without any."""

    @abstractmethod
    def build_sentences(self) -> dict[str, str]:
        """Returns the sentences of the statement by subject."""

    def build_sheet(self, facts: Sequence[tuple[str, str]]) -> Sheet:
        """Builds the complete statement as a sheet.

        Args:
            facts: what the release is, as names and values.
        """
        sentences, guarantee = self.build_sentences(), self.stated
        if guarantee is None:
            return Sheet(
                title=STATEMENT_TITLE,
                facts=facts,
                sections=[SheetSection(heading="In plain words", paragraphs=[*sentences.values()])],
            )
        stated = (self.unit, "document", "person", "library")
        return Sheet(
            title=STATEMENT_TITLE,
            facts=[*facts, *self._list_facts()],
            sections=[
                SheetSection(
                    heading="In plain words",
                    paragraphs=[*self._explain_plainly(guarantee), sentences["person"]],
                ),
                self._build_middle(sentences),
                SheetSection(
                    heading="What is proved",
                    paragraphs=[sentences[self.unit], sentences["document"]],
                    tables=[
                        SheetTable(
                            head=("loss of a", "number", "largest", "median", "unbounded"),
                            rows=[*self._build_rows()],
                        )
                    ],
                ),
                SheetSection(
                    heading="What is not covered",
                    paragraphs=[
                        *(text for name, text in sentences.items() if name not in stated),
                        (
                            f"{self.also_shows}, computed from the private texts: "
                            f"{join_parts([_SHOWN.get(name, name) for name in guarantee.mask])}. "
                            "Nothing is claimed about that either."
                        ),
                        (
                            "All this is for one release. A reader who gets another release of the "
                            "same texts, drawn anew, learns more: the bounds of both add up."
                        ),
                    ],
                ),
                SheetSection(heading="The statement in full", exact=guarantee.explain()),
            ],
        )

    def _list_facts(self) -> Sequence[tuple[str, str]]:
        """Lists further facts of the release."""
        return ()

    @abstractmethod
    def _explain_plainly(self, guarantee: Any) -> Iterator[str]:
        """Yields sentences for readers who do not know epsilon."""

    @abstractmethod
    def _build_middle(self, sentences: Mapping[str, str]) -> SheetSection:
        """Builds the section on what stands in place of the private texts."""

    def _describe_person(self) -> str:
        """Returns sentences on the loss of a person with several texts."""
        histogram, person = self.subjects, self.person
        if histogram is None or self.subject is None:
            return (
                "No field names the person a text is about. A person with several texts here "
                "loses the sum over all of them."
            )
        largest, median = (
            format_number(histogram.largest / MICRO),
            format_number(histogram.median / MICRO),
        )
        added = f"Added up over all texts of one {person}"
        sentence = f"{added} the bound is {largest} (median {median})."
        if histogram.unbounded:
            scope = (
                ""
                if histogram.number == 1
                else f" for {histogram.unbounded:,} of {histogram.number:,}"
            )
            sentence = (
                f"{added} there is no bound{scope}: some of their words pass, or have no bound."
            )
            if histogram.largest:
                sentence += f" By their other words alone the bound is {largest} (median {median})."
        # By sound, not by letter: a user, a unit, an heir.
        a = "an" if regex.match(r"(?!eu|one)[aeio]|u(?!s|ni|ti)|hono|heir", person) else "a"
        if histogram.largest > LARGE_EPSILON * MICRO:
            sentence += (
                f" That is too large to protect {a} {person} as a whole; what is proved is about "
                f"single {self.unit}s."
            )
        elif histogram.unbounded:
            sentence += f" That does not protect {a} {person} as a whole."
        return sentence

    def _describe_order(self) -> dict[str, str]:
        """Returns the sentence on what links each row to its original."""
        links = "The rows stand in the order of the input"
        if self.id is not None:
            links += f", and each has its {clean_name(self.id)}"
        return {"order": f"{links}: anyone who has the input can tell which row each of them was."}

    def _describe_copied(self) -> dict[str, str]:
        dropped = " Other fields were left out." if self.drops_others else ""
        if not self.others:
            return {"copied": dropped.strip()} if dropped else {}
        names = join_parts([clean_name(name) for name in self.others])
        fields, clause = (
            ("field", "is copied unchanged")
            if len(self.others) == 1
            else ("fields", "are copied unchanged")
        )
        words = "with no words"
        if self.copied:
            words = f"{format_count(self.copied, 'word')}, and nothing is claimed for them"
        sentence = f"The {fields} {names} {clause}: {words}."
        if self.identifiers:
            found = [f"{clean_name(name)} ({why})" for name, why in self.identifiers.items()]
            sentence += f" A person may be found by {join_parts(found)}."
        return {"copied": sentence + dropped}

    def _describe_equality(self) -> dict[str, str]:
        if not self.equal:
            return {}
        return {
            "equality": (
                "Equal texts have equal releases, so the release shows which texts are equal."
            )
        }

    def _build_rows(self) -> Iterator[tuple[str, ...]]:
        names = {"word": "distinct word", "document": self.row_noun, "subject": self.person}
        for name, histogram in self.losses.items():
            bounds = (
                "no bound" if histogram.unbounded else format_number(amount / MICRO)
                for amount in (histogram.largest, histogram.median)
            )
            yield (
                names.get(name, name),
                f"{histogram.number:,}",
                *bounds,
                f"{histogram.unbounded:,}",
            )


@dataclass(kw_only=True)
class CorpusStatement(ReleaseLosses):
    """The guarantee for all words of a release.

    Attributes:
        guarantee: the statement about all its words; None without any text.
        alike: whether equal values have one placeholder in all rows of a subject.
        kept: whether the values of placeholders are kept.
    """

    guarantee: Guarantee | None = None
    alike: bool = False
    kept: bool = False

    kind = Guarantee

    @property
    def stated(self) -> Guarantee | None:
        """The statement about all words."""
        return self.guarantee

    @property
    def losses(self) -> dict[str, LossHistogram]:
        """The losses of words, documents and subjects, by name."""
        words = LossHistogram() if self.guarantee is None else count_word_losses(self.guarantee)
        return {"word": words, **super().losses}

    def to_json(self) -> dict[str, Any]:
        """Returns the statement as plain data, without the sheet."""
        guarantee = self.guarantee
        return {
            "guarantee": None if guarantee is None else guarantee.to_json(),
            "losses": {name: amounts.to_json() for name, amounts in self.losses.items()},
            "words": self.count_words(),
            "copied_fields": list(self.others),
            "identifying_fields": dict(self.identifiers),
            "rows_keep_order": True,
            "equal_texts_are_alike": self.equal,
            "placeholders_of_a_subject_are_alike": self.alike,
            "mapping_is_kept": self.kept,
        }

    def count_words(self) -> dict[str, int]:
        """Counts the words by their treatment.

        All are public words, punctuation marks and protected ones; those are drawn, names, figures,
        placeholders, left out, replaced without a draw, or pass.
        """
        guarantee = self.guarantee
        if guarantee is None:
            return {}
        words_by_type = {"name": 0, "figure": 0}
        for group in guarantee.groups:
            if group.by in words_by_type:
                words_by_type[group.by] += group.words
        other_words = (
            words_by_type["name"]
            + words_by_type["figure"]
            + guarantee.placeholders
            + guarantee.dropped
            + guarantee.passed
        )
        words = guarantee.covered - other_words
        return {
            "all": guarantee.words,
            "public": guarantee.words - guarantee.covered,
            "punctuation": guarantee.punctuation,
            "protected": guarantee.covered,
            "distinct": guarantee.protected,
            "drawn": words if guarantee.draws else 0,
            "names": words_by_type["name"],
            "figures": words_by_type["figure"],
            "placeholders": guarantee.placeholders,
            "left_out": guarantee.dropped,
            "replaced": 0 if guarantee.draws else words,
            "passed": guarantee.passed,
            "unknown": round(guarantee.oov_share * guarantee.covered),
            "copied": self.copied,
        }

    # ---- what it says ----------------------------------------------------------------------------

    def build_sentences(self) -> dict[str, str]:
        """Returns the sentences of the statement by subject."""
        guarantee = self.guarantee
        if guarantee is None:
            return {
                "texts": "The input has no text, so nothing was released."
            } | self._describe_copied()
        sentences = {
            "word": guarantee.summary(),
            "document": _describe_documents(self.documents),
            "person": self._describe_person(),
        }
        passing = (
            (guarantee.words - guarantee.covered - guarantee.punctuation, "common word"),
            (guarantee.punctuation, "punctuation mark"),
            (guarantee.passed, "other word"),
        )
        if parts := [format_count(many, noun) for many, noun in passing if many]:
            sentences["passed"] = (
                f"Passed unchanged: {join_parts(parts)}. Nothing is claimed for that."
            )
        sentences |= self._describe_copied()
        sentences |= self._describe_order()
        sentences |= self._describe_equality()
        if self.alike:
            sentences["placeholders"] = (
                "Equal values have one placeholder in all rows of a subject and in no others, so "
                "the release shows which values are equal, and which rows have a subject in "
                "common."
            )
        if self.kept:
            sentences["mapping"] = (
                "A store keeps the originals of placeholders; anyone who has the store and its "
                "keys can put them back."
            )
        return sentences

    def _build_middle(self, sentences: Mapping[str, str]) -> SheetSection:
        del sentences
        assert self.guarantee is not None, "there are words"
        return SheetSection(
            heading="What happened to the words",
            paragraphs=[*self._explain_counts(self.guarantee)],
            tables=[*self._build_tables()],
        )

    def _explain_plainly(self, guarantee: Guarantee) -> Iterator[str]:
        """Yields sentences for readers who do not know epsilon.

        On what was done, and what it is worth.
        """
        yield self._describe_replaced(guarantee)
        reasons, bound = "; ".join(guarantee.reasons), self._find_largest(guarantee)
        if bound is None:
            yield f"Nothing bounds what the release reveals about the original words: {reasons}."
            reasons = ""
        elif guarantee.draws and bound:
            yield _explain_odds(guarantee, bound)
        if reasons:
            yield f"For the texts as a whole nothing is proved: {reasons}."
        if guarantee.repeatable:
            yield (
                "The draws follow from a seed. A reader who knows the seed can repeat the draws, "
                "and nothing is protected from that reader."
            )

    def _describe_replaced(self, guarantee: Guarantee) -> str:
        """Returns a sentence that counts replaced and unchanged words.

        It says by what words were replaced.
        """
        counts = self.count_words()
        ways = {
            "drawn": "by words drawn at random",
            "names": "by names drawn from public lists",
            "figures": "by figures of the same kind, moved at random",
            "placeholders": (
                "by placeholders, which show what kind of thing was replaced and nothing about "
                "its value"
            ),
            "replaced": "by other words, without a draw",
        }
        clauses = [f"{counts[name]:,} {way}" for name, way in ways.items() if counts[name]]
        words, replaced = counts["all"] - counts["punctuation"], sum(counts[name] for name in ways)
        sentence = f"None of the {format_count(words, 'word')} of these texts was replaced"
        if clauses:
            method = (
                f": {join_parts(clauses)}"
                if len(clauses) > 1
                else f" {clauses[0].partition(' ')[2]}"
            )
            sentence = (
                f"{replaced:,} of the {format_count(words, 'word')} of these texts "
                f"{_conjugate_be(replaced)} replaced{method}"
            )
        if guarantee.dropped:
            sentence += f"; {guarantee.dropped:,} {_conjugate_be(guarantee.dropped)} left out"
        sentence += (
            ". A drawn word can come out unchanged, and nothing marks it."
            if guarantee.draws
            else "."
        )
        other_count, marks = words - replaced - guarantee.dropped, counts["punctuation"]
        parts = [format_count(other_count, "other word")] * (other_count > 0)
        parts += [format_count(marks, "punctuation mark")] * (marks > 0)
        return sentence + (f" Unchanged: {join_parts(parts)}." if parts else "")

    def _explain_counts(self, guarantee: Guarantee) -> Iterator[str]:
        """Yields sentences on how words are counted."""
        counts = self.count_words()
        common = counts["public"] - counts["punctuation"]
        yield (
            f"The texts have {format_count(counts['all'], 'word')}, with every occurrence "
            f"counted: {counts['protected']:,} protected, {common:,} common, and "
            f"{format_count(counts['punctuation'], 'punctuation mark')}, which also pass and are "
            "not among the shares below."
        )
        if guarantee.repeated:
            yield (
                f"The {counts['protected']:,} protected words are {counts['distinct']:,} "
                "distinct ones: in one text, equal words get the same replacement, so the proved "
                "bound counts them once."
            )
        elif counts["protected"] > 1:
            yield (
                f"The {counts['protected']:,} protected words are as many distinct ones: every "
                "occurrence counts separately."
            )
        if counts["names"]:
            yield "Names count word by word: a given name and a family name are two."
        if counts["unknown"]:
            verb = _conjugate_be(counts["unknown"])
            yield (
                f"{counts['unknown']:,} of the protected words {verb} outside the table in which "
                "words are looked up."
            )

    def _build_tables(self) -> Iterator[SheetTable]:
        counts = self.count_words()
        replaced = counts["protected"] - counts["passed"]
        bar = (
            replaced,
            counts["public"] - counts["punctuation"] + counts["passed"],
            counts["copied"],
        )
        bounded = self.guarantee is not None and self._find_largest(self.guarantee) is not None
        names = (
            f"{'covered' if bounded else 'not covered'} (replaced or left out)",
            "passed (common words and others that pass)",
            "copied (words in fields that are copied)",
        )
        yield SheetTable(
            head=("words", "number", "share"),
            rows=[
                (name, f"{amount:,}", f"{amount / max(1, sum(bar)):.1%}")
                for name, amount in zip(names, bar, strict=True)
            ],
            bar=bar,
        )
        kinds = {
            "drawn": "drawn at random",
            "names": "names, drawn from public lists",
            "figures": "dates, ages and amounts, moved at random",
            "placeholders": "placeholders",
            "left_out": "left out",
            "replaced": "replaced without a draw",
            "passed": "passed unchanged",
        }
        rows = [(title, f"{counts[name]:,}") for name, title in kinds.items() if counts[name]]
        yield SheetTable(
            head=("protected words", "number"),
            rows=[*rows, ("total", f"{counts['protected']:,}")],
        )

    def _find_largest(self, guarantee: Guarantee) -> float | None:
        """Returns the largest bound on a word, in local DP.

        None where no bound holds for any.
        """
        bounds = guarantee.claim.compute_ldp(guarantee.epsilon_per_word)
        bounds = bounds[np.isfinite(bounds)]
        return float(bounds.max(initial=0.0)) if len(bounds) or not guarantee.protected else None


def sum_subjects(packed: Iterable[bytes]) -> LossHistogram:
    """Sums the losses of subjects over all parts.

    A slice of all subjects at a time.

    Args:
        packed: of each part, as `drawing` wrote it.
    """
    parts = [np.load(BytesIO(content), allow_pickle=False) for content in packed]
    slices = max(1, -(-sum(map(len, parts)) // SUBJECTS_PER_SLICE))
    bounds = [(1 << 64) * i // slices for i in range(slices)]
    histogram = LossHistogram()
    for low, high in zip(bounds, [*bounds[1:], None], strict=True):
        pieces = []
        for part in parts:
            first = part["mark"][:, 0]
            end = len(part) if high is None else int(np.searchsorted(first, np.uint64(high)))
            pieces.append(part[int(np.searchsorted(first, np.uint64(low))) : end])
        if not pieces:
            continue
        rows = np.concatenate(pieces)
        marks, inverse = np.unique(rows["mark"], axis=0, return_inverse=True)
        micro, unbounded = np.zeros(len(marks), np.int64), np.zeros(len(marks), np.int64)
        np.add.at(micro, inverse.ravel(), rows["micro"])
        np.add.at(unbounded, inverse.ravel(), rows["open"])
        histogram.add(zip(micro.tolist(), unbounded.tolist(), strict=True))
    return histogram


def _describe_documents(amounts: LossHistogram) -> str:
    """Returns a sentence on the losses of documents.

    Where no bound holds for some, that comes first.
    """
    largest, median = format_number(amounts.largest / MICRO), format_number(amounts.median / MICRO)
    total = f"{amounts.number:,}"
    half = "" if amounts.number == 1 else f"; half of the {total} lose {median} at most"
    if not amounts.unbounded:
        return (
            f"A document loses epsilon {largest} at most, the sum over its words in local DP{half}."
        )
    subject = (
        "the document loses"
        if amounts.number == 1
        else f"{amounts.unbounded:,} of the {total} documents lose"
    )
    owner = "its" if amounts.number == 1 else "their"
    sentence = f"Nothing bounds what {subject}: some of {owner} words pass, or have no bound."
    if not amounts.largest:
        return sentence
    half = half and f"{half} by these words"
    return (
        f"{sentence} By its other words alone a document loses epsilon {largest} at most, their "
        f"sum in local DP{half}."
    )


def _conjugate_be(n: int) -> str:
    return "was" if n == 1 else "were"


def _explain_odds(guarantee: Guarantee, bound: float) -> str:
    """Explains a word's bound as the odds of a reader.

    Before reading, the reader held two words for equally likely.
    """
    other = "word" if guarantee.oov == "surrogate" else "word of the table"
    other = other if guarantee.unit == "word" else "word as long"
    # Capped, because exp overflows; a factor above `MAX_FACTOR` is not shown.
    factor, addition = f"at most {math.ceil(math.exp(min(bound, 99))):,}", ""
    if bound > math.log(MAX_FACTOR):
        factor, addition = (
            f"more than {MAX_FACTOR:,}",
            "; the bound only rules out certainty",
        )
    return (
        f"What is proved about a replaced word: with everything else the same, any other {other} "
        "could have been in its place and led to the same release. A reader who thought two "
        "words equally likely there can, by reading the release, come to think one of them "
        f"{factor} times as likely as the other{addition}. At 1 the release would reveal nothing "
        "about the word; the larger the number, the weaker the promise."
    )
