"""The statement of a corpus: losses per word, document and person.

And the words that passed or were unknown.

In: records of parts. Out: `CorpusStatement`, and all that it says as a sheet.
Not here: the statement about one text (`guarantee`), how a sheet is written (`show`), and where it
goes (`release`).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Self

import numpy as np
import regex

from textveil.corpus.amounts import Amounts, per_word
from textveil.guarantee import MICRO, Guarantee, condense, count, listing, number, summarize
from textveil.show import Sheet, SheetSection, SheetTable, plain

TITLE = "What this release guarantees"

SLICE = 1 << 22
"""Subjects that are summed at once.

So that memory does not grow with them.
"""

LARGE = 10.0
"""The epsilon above which nobody is protected as a whole.

e^10 is 22,026.
"""

MANY = 1_000_000
"""The factor above which its exact value says nothing."""


@dataclass(kw_only=True)
class CorpusStatement:
    """The guarantee for all texts of a release.

    Attributes:
        guarantee: the statement about all its words; None without any text.
        documents: what the rows lose.
        subjects: what the subjects lose, the sum over their rows; None where no field says whom a
            row is about.
        subject: the name of that field.
        others: fields that are copied and not covered.
        copied: the number of words in those fields.
        equal: whether equal texts have equal releases.
        alike: whether equal values have one placeholder in all rows of a subject.
        kept: whether the values of placeholders are kept.
    """

    guarantee: Guarantee | None = None
    documents: Amounts
    subjects: Amounts | None = None
    subject: str | None = None
    others: tuple[str, ...] = ()
    copied: int = 0
    equal: bool = False
    alike: bool = False
    kept: bool = False

    @classmethod
    def of(cls, records: Iterable[dict[str, Any]], **more: Any) -> Self:
        """Sums the records of all parts, in their order."""
        made = cls(documents=Amounts(), **more)
        for record in records:
            made.documents.merge(Amounts.unpack(record["documents"]))
            made.copied += record["copied"]
            if record["statement"] is not None:
                found = Guarantee.unpack(record["statement"])
                before = made.guarantee
                made.guarantee = condense(found if before is None else summarize([before, found]))
        return made

    @property
    def person(self) -> str:
        """The noun for a subject: "customer" for a field `customer_id`."""
        words = regex.sub(r"(?<=\p{Ll})(?=\p{Lu})|[_\W]+", " ", plain(self.subject or "")).split()
        words = words[:-1] if len(words) > 1 and words[-1].lower() in ("id", "ids") else words
        return " ".join(words).lower() or "subject"

    @property
    def amounts(self) -> dict[str, Amounts]:
        """The losses of words, documents and subjects, by name."""
        words = Amounts() if self.guarantee is None else per_word(self.guarantee)
        subjects = {} if self.subjects is None else {"subject": self.subjects}
        return {"word": words, "document": self.documents, **subjects}

    def to_json(self) -> dict[str, Any]:
        """Returns the statement as plain data, without the sheet."""
        found = self.guarantee
        return {
            "guarantee": None if found is None else found.to_json(),
            "losses": {name: amounts.to_json() for name, amounts in self.amounts.items()},
            "words": self.counts(),
            "copied_fields": list(self.others),
            "equal_texts_are_alike": self.equal,
            "placeholders_of_a_subject_are_alike": self.alike,
            "mapping_is_kept": self.kept,
        }

    def counts(self) -> dict[str, int]:
        """Counts the words by their treatment.

        All are public words, punctuation marks and protected ones; those are drawn, names, figures,
        placeholders, left out, replaced without a draw, or pass.
        """
        found = self.guarantee
        if found is None:
            return {}
        by = {"name": 0, "figure": 0}
        for group in found.groups:
            if group.by in by:
                by[group.by] += group.words
        others = by["name"] + by["figure"] + found.placeholders + found.dropped + found.passed
        words = found.covered - others
        return {
            "all": found.words,
            "public": found.words - found.covered,
            "punctuation": found.punctuation,
            "protected": found.covered,
            "distinct": found.protected,
            "drawn": words if found.draws else 0,
            "names": by["name"],
            "figures": by["figure"],
            "placeholders": found.placeholders,
            "left_out": found.dropped,
            "replaced": 0 if found.draws else words,
            "passed": found.passed,
            "unknown": round(found.oov_share * found.covered),
            "copied": self.copied,
        }

    # ---- what it says ----------------------------------------------------------------------------

    def lines(self) -> dict[str, str]:
        """Returns the sentences of the statement by subject."""
        found = self.guarantee
        if found is None:
            return {
                "texts": "There is no text in it, so nothing was released."
            } | self._describe_copied()
        made = {
            "word": found.summary(),
            "document": _describe_documents(self.documents),
            "person": self._describe_person(),
        }
        passed = (
            (found.words - found.covered - found.punctuation, "common word"),
            (found.punctuation, "punctuation mark"),
            (found.passed, "other word"),
        )
        if stand := [count(many, what) for many, what in passed if many]:
            made["passed"] = f"What passes as it is: {listing(stand)}. Nothing is claimed for that."
        made |= self._describe_copied()
        if self.equal:
            made["equality"] = (
                "Equal texts have equal releases, so the release shows which texts are equal."
            )
        if self.alike:
            made["placeholders"] = (
                "Equal values have one placeholder in all rows of a subject and in no others, so the release shows "
                "which values are equal, and which rows have a subject in common."
            )
        if self.kept:
            made["mapping"] = (
                "What placeholders stand for is kept in a store; whoever has it and its keys can put it back."
            )
        return made

    def sheet(self, facts: Sequence[tuple[str, str]]) -> Sheet:
        """Builds the complete statement as a sheet.

        Args:
            facts: what the release is, as names and values.
        """
        said, found = self.lines(), self.guarantee
        if found is None:
            return Sheet(
                title=TITLE,
                facts=facts,
                sections=[SheetSection(heading="In plain words", said=[*said.values()])],
            )
        rest = [each for name, each in said.items() if name not in ("word", "document", "person")]
        shows = f"Besides its words the release shows, computed from the private texts: {listing(found.mask)}."
        once = (
            "All this is for one release. Who gets another release of the same texts, drawn anew, knows more: the "
            "bounds of both add up."
        )
        return Sheet(
            title=TITLE,
            facts=facts,
            sections=[
                SheetSection(
                    heading="In plain words", said=[*self._explain_plainly(found), said["person"]]
                ),
                SheetSection(
                    heading="What became of the words",
                    said=[*self._explain_counts(found)],
                    tables=[*self._build_tables()],
                ),
                SheetSection(
                    heading="What is proved",
                    said=[said["word"], said["document"]],
                    tables=[
                        SheetTable(
                            head=("loss of a", "number", "largest", "median", "unbounded"),
                            rows=[*self._build_rows()],
                        )
                    ],
                ),
                SheetSection(
                    heading="What is not covered",
                    said=[*rest, f"{shows} Nothing is claimed about that either.", once],
                ),
                SheetSection(heading="The statement in full", exact=found.explain()),
            ],
        )

    def _explain_plainly(self, found: Guarantee) -> Iterator[str]:
        """Yields sentences for readers who do not know epsilon.

        On what was done, and what it is worth.
        """
        yield self._describe_done(found)
        reasons, bound = "; ".join(found.reasons), self._find_largest(found)
        if bound is None:
            yield f"Nothing bounds what the release tells of the words that stood there: {reasons}."
            reasons = ""
        elif found.draws and bound:
            yield _explain_odds(found, bound)
        if reasons:
            yield f"For the texts as a whole nothing is proved: {reasons}."
        if found.repeatable:
            yield "The draws follow from a seed. Whoever knows it can repeat them, and nothing is protected from them."

    def _describe_done(self, found: Guarantee) -> str:
        """Returns a sentence that counts replaced and unchanged words.

        It says by what words were replaced.
        """
        counts = self.counts()
        ways = {
            "drawn": "by words drawn at random",
            "names": "by names drawn from public lists",
            "figures": "by figures of the same kind, moved at random",
            "placeholders": "by placeholders, which say what kind of thing stood there and nothing of what it was",
            "replaced": "by other words, without a draw",
        }
        done = [f"{counts[name]:,} {way}" for name, way in ways.items() if counts[name]]
        words, replaced = counts["all"] - counts["punctuation"], sum(counts[name] for name in ways)
        said = f"None of the {count(words, 'word')} of these texts was replaced"
        if done:
            how = f": {listing(done)}" if len(done) > 1 else f" {done[0].partition(' ')[2]}"
            said = f"{replaced:,} of the {count(words, 'word')} of these texts {_were(replaced)} replaced{how}"
        if found.dropped:
            said += f"; {found.dropped:,} {_were(found.dropped)} left out"
        said += ". A word may be drawn as itself, and nothing marks it." if found.draws else "."
        other, marks = words - replaced - found.dropped, counts["punctuation"]
        stand = [count(other, "other word")] * (other > 0)
        stand += [count(marks, "punctuation mark")] * (marks > 0)
        return said + (f" {listing(stand)} of the texts stand there as they were." if stand else "")

    def _explain_counts(self, found: Guarantee) -> Iterator[str]:
        """Yields sentences on how words are counted."""
        counts = self.counts()
        common = counts["public"] - counts["punctuation"]
        yield (
            f"The texts have {count(counts['all'], 'word')}, each counted wherever it stands: {counts['protected']:,} "
            f"protected, {common:,} common, and {count(counts['punctuation'], 'punctuation mark')}, which pass too and "
            "have no part in the bar."
        )
        if found.repeated:
            yield (
                f"The {counts['protected']:,} protected words are {counts['distinct']:,} distinct ones: in one text, "
                "equal words are replaced alike, so what is proved counts them once."
            )
        elif counts["protected"] > 1:
            yield (
                f"The {counts['protected']:,} protected words are as many distinct ones: each counts by itself, "
                "wherever it stands."
            )
        if counts["names"]:
            yield "Names count word by word: a given name and a family name are two."
        if counts["unknown"]:
            were = _were(counts["unknown"])
            yield f"{counts['unknown']:,} of the protected words {were} outside the table in which words are looked up."

    def _build_tables(self) -> Iterator[SheetTable]:
        counts = self.counts()
        through = counts["protected"] - counts["passed"]
        bar = (
            through,
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
                (name, f"{each:,}", f"{each / max(1, sum(bar)):.1%}")
                for name, each in zip(names, bar, strict=True)
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
            "passed": "passed as they are",
        }
        rows = [(what, f"{counts[name]:,}") for name, what in kinds.items() if counts[name]]
        yield SheetTable(
            head=("protected words", "number"),
            rows=[*rows, ("together", f"{counts['protected']:,}")],
        )

    def _find_largest(self, found: Guarantee) -> float | None:
        """Returns the largest bound on a word, in local DP.

        None where no bound holds for any.
        """
        bounds = found.claim.ldp(found.epsilon_per_word)
        bounds = bounds[np.isfinite(bounds)]
        return float(bounds.max(initial=0.0)) if len(bounds) or not found.protected else None

    def _describe_person(self) -> str:
        """Returns sentences on the loss of a person with several texts."""
        lost, person = self.subjects, self.person
        if lost is None or self.subject is None:
            return "No field says whom a text is about. Who has several texts here loses the sum over all of them."
        largest, median = number(lost.largest / MICRO), number(lost.median / MICRO)
        added = f"Added up over all texts of one {person}"
        said = f"{added} the bound is {largest} (median {median})."
        if lost.open:
            some = "" if lost.number == 1 else f" for {lost.open:,} of {lost.number:,}"
            said = f"{added} there is no bound{some}: words of theirs pass, or have no bound."
            if lost.largest:
                said += f" By their other words alone the bound is {largest} (median {median})."
        a = "an" if regex.match(r"(?!eu|one)[aeio]|u(?!s|ni|ti)|hono|heir", person) else "a"
        if lost.largest > LARGE * MICRO:
            said += f" That is too large to protect {a} {person} as a whole; what is proved is about single words."
        elif lost.open:
            said += f" That does not protect {a} {person} as a whole."
        return said

    def _describe_copied(self) -> dict[str, str]:
        if not self.others:
            return {}
        names = listing([plain(name) for name in self.others])
        fields, are = (
            ("field", "is copied as it is")
            if len(self.others) == 1
            else ("fields", "are copied as they are")
        )
        words = "with no words"
        if self.copied:
            words = f"{count(self.copied, 'word')}, and nothing is claimed for them"
        return {"copied": f"The {fields} {names} {are}: {words}."}

    def _build_rows(self) -> Iterator[tuple[str, ...]]:
        names = {"word": "distinct word", "subject": self.person}
        for name, each in self.amounts.items():
            bounds = (
                "no bound" if each.open else number(amount / MICRO)
                for amount in (each.largest, each.median)
            )
            yield names.get(name, name), f"{each.number:,}", *bounds, f"{each.open:,}"


def of_subjects(packed: Iterable[bytes]) -> Amounts:
    """Sums the losses of subjects over all parts.

    A slice of all subjects at a time.

    Args:
        packed: of each part, as `drawing` wrote it.
    """
    parts = [np.load(BytesIO(each), allow_pickle=False) for each in packed]
    slices = max(1, -(-sum(map(len, parts)) // SLICE))
    bounds = [(1 << 64) * i // slices for i in range(slices)]
    made = Amounts()
    for low, high in zip(bounds, [*bounds[1:], None], strict=True):
        here = []
        for part in parts:
            first = part["mark"][:, 0]
            end = len(part) if high is None else int(np.searchsorted(first, np.uint64(high)))
            here.append(part[int(np.searchsorted(first, np.uint64(low))) : end])
        if not here:
            continue
        found = np.concatenate(here)
        marks, of = np.unique(found["mark"], axis=0, return_inverse=True)
        micro, open_ = np.zeros(len(marks), np.int64), np.zeros(len(marks), np.int64)
        np.add.at(micro, of.ravel(), found["micro"])
        np.add.at(open_, of.ravel(), found["open"])
        made.add(zip(micro.tolist(), open_.tolist(), strict=True))
    return made


def _describe_documents(amounts: Amounts) -> str:
    """Returns a sentence on the losses of documents.

    Where no bound holds for some, that comes first.
    """
    largest, median = number(amounts.largest / MICRO), number(amounts.median / MICRO)
    many = f"{amounts.number:,}"
    half = "" if amounts.number == 1 else f"; half of the {many} lose {median} at most"
    if not amounts.open:
        return (
            f"A document loses epsilon {largest} at most, the sum over its words in local DP{half}."
        )
    some = (
        "the document loses"
        if amounts.number == 1
        else f"{amounts.open:,} of the {many} documents lose"
    )
    said = f"Nothing bounds what {some}: words of theirs pass, or have no bound."
    if not amounts.largest:
        return said
    half = half and f"{half} by these"
    return f"{said} By its other words alone a document loses epsilon {largest} at most, their sum in local DP{half}."


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _explain_odds(found: Guarantee, bound: float) -> str:
    """Explains a word's bound as the odds of a reader.

    Before reading, the reader held two words for equally likely.
    """
    other = "word" if found.oov == "surrogate" else "word of the table"
    other = other if found.unit == "word" else "word as long"
    factor, more = f"at most {math.ceil(math.exp(min(bound, 99))):,}", ""
    if bound > math.log(MANY):
        factor, more = f"more than {MANY:,}", "; the bound rules out no more than certainty"
    return (
        f"What is proved of a replaced word: with all else as it is, any other {other} could have stood in its "
        "place and led to the same release. A reader who held two words for equally likely there can, by "
        f"reading the release, come to hold one of them for {factor} times as likely as the other{more}. At 1 "
        "the release would tell nothing of the word; the larger the number, the weaker the promise."
    )
