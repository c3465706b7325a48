"""The statement of a corpus: what a word, a document and a subject lose, what passed, and what was unknown.

In: records of parts. Out: `CorpusStatement`, as JSON, as Markdown and as a page.
Not here: the statement about one text (`guarantee`), and where these are written (`release`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from io import BytesIO
from typing import Any, Self

import numpy as np

from textveil.corpus.amounts import Amounts, per_word
from textveil.guarantee import MICRO, Guarantee, condense, listing, number, summarize

SLICE = 1 << 22
"""Subjects that are added up at once, so that memory does not grow with them."""


@dataclass(kw_only=True)
class CorpusStatement:
    """What is guaranteed of all texts of a release.

    Attributes:
        guarantee: the statement about all its words; None without any text.
        documents: what the rows lose.
        subjects: what the subjects lose, the sum over their rows; None where no field says whom a row is about.
        others: fields that are copied and not covered.
        equal: whether equal texts have equal releases.
        alike: whether equal values have one placeholder in all rows of a subject.
        kept: whether what placeholders stand for is kept.
    """

    guarantee: Guarantee | None = None
    documents: Amounts
    subjects: Amounts | None = None
    others: tuple[str, ...] = ()
    equal: bool = False
    alike: bool = False
    kept: bool = False

    @classmethod
    def of(cls, records: Iterable[dict[str, Any]], **more: Any) -> Self:
        """The sum over the records of all parts, in their order."""
        made = cls(documents=Amounts(), **more)
        for record in records:
            made.documents.merge(Amounts.unpack(record["documents"]))
            if record["statement"] is not None:
                found = Guarantee.unpack(record["statement"])
                before = made.guarantee
                made.guarantee = condense(found if before is None else summarize([before, found]))
        return made

    @property
    def amounts(self) -> dict[str, Amounts]:
        """What is lost, by who loses it."""
        words = Amounts() if self.guarantee is None else per_word(self.guarantee)
        subjects = {} if self.subjects is None else {"subject": self.subjects}
        return {"word": words, "document": self.documents, **subjects}

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
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
        """How many words there are, and what became of them."""
        found = self.guarantee
        if found is None:
            return {}
        covered = found.protected + found.repeated
        assert found.counts is not None, "it is condensed"
        return {
            "all": found.words,
            "public": found.words - covered,
            "punctuation": found.punctuation,
            "protected": covered,
            "drawn": found.drawn,
            "placeholders": found.placeholders,
            "passed": int(found.counts[np.isinf(found.epsilon_per_word)].sum()),
            "unknown": round(found.oov_share * covered),
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """What it says, as pairs of a name and a sentence."""
        found = self.guarantee
        if found is None:
            yield "texts", "There is no text in it, so nothing was released."
            return
        yield "word", found.summary()
        for name, amounts in self.amounts.items():
            if name != "word":
                yield name, _told(name, amounts)
        counts = self.counts()
        yield (
            "passed",
            f"{counts['public']:,} of {counts['all']:,} words are common words and punctuation marks, which pass; "
            f"{counts['passed']:,} others passed, {counts['unknown']:,} were unknown to the table.",
        )
        if self.others:
            yield (
                "copied",
                f"The fields {listing(self.others)} are copied as they are, and nothing is claimed for them.",
            )
        if self.equal:
            yield "equality", "Equal texts have equal releases, so the release shows which texts are equal."
        if self.alike:
            yield (
                "placeholders",
                "Equal values have one placeholder in all rows of a subject and in no others, so the release shows "
                "which values are equal, and which rows have a subject in common.",
            )
        if self.kept:
            yield (
                "mapping",
                "What placeholders stand for is kept in a store; whoever has it and its keys can put it back.",
            )

    def markdown(self, title: str) -> str:
        """The statement as Markdown, with a table of the amounts."""
        said = "\n\n".join(f"**{name}**: {sentence}" for name, sentence in self.lines())
        rows = "\n".join(f"| {' | '.join(row)} |" for row in self._rows())
        table = f"| loss of a | number | largest | median | without a bound |\n|---|---|---|---|---|\n{rows}"
        exact = "" if self.guarantee is None else f"\n\n```text\n{self.guarantee.explain()}\n```"
        return f"# {title}\n\n{said}\n\n{table}{exact}\n"

    def html(self) -> str:
        """The statement as the content of a page, with a figure of how many documents and subjects lose how much."""
        said = "\n".join(f"<p><b>{escape(name)}</b>: {escape(each)}</p>" for name, each in self.lines())
        rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self._rows())
        head = "".join(f"<th>{each}</th>" for each in ("loss of a", "number", "largest", "median", "without a bound"))
        figures = "\n".join(
            f"<h2>What a {name} loses</h2>\n{_figure(amounts)}"
            for name, amounts in self.amounts.items()
            if amounts.number
        )
        return f"{said}\n<table><tr>{head}</tr>\n{rows}</table>\n{figures}"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for name, each in self.amounts.items():
            bounds = ("no bound" if each.open else number(amount / MICRO) for amount in (each.largest, each.median))
            yield name, f"{each.number:,}", *bounds, f"{each.open:,}"


STYLES = """
  table { border-collapse: collapse; font-size: .9rem; } th, td { text-align: right; padding: .15rem .8rem .15rem 0; }
  th:first-child, td:first-child { text-align: left; } svg { width: 100%; height: auto; }
  svg text { font: 11px system-ui, sans-serif; fill: #444; } svg rect { fill: #0072b2; }
"""
"""What its page needs besides what all pages have."""


def of_subjects(packed: Iterable[bytes]) -> Amounts:
    """What subjects lose, from what each part says of its own, a slice of all subjects at a time.

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


def _told(name: str, amounts: Amounts) -> str:
    """What documents or subjects lose; where no bound holds for some, that comes first."""
    largest, median = number(amounts.largest / MICRO), number(amounts.median / MICRO)
    many = f"{amounts.number:,}"
    if not amounts.open:
        return (
            f"A {name} loses epsilon {largest} at most, the sum over its words in local DP; half of the {many} lose "
            f"{median} at most."
        )
    said = f"Nothing bounds what {amounts.open:,} of the {many} {name}s lose: words of theirs pass, or have no bound."
    if not amounts.largest:
        return said
    return (
        f"{said} By its other words alone a {name} loses epsilon {largest} at most, their sum in local DP; half of the "
        f"{many} lose {median} at most by these."
    )


def _figure(amounts: Amounts) -> str:
    """A histogram of amounts, as SVG."""
    largest = max(amounts.counts) or 1
    bins = [0] * 24
    for amount, many in amounts.counts.items():
        bins[min(23, amount * 24 // largest)] += many
    top = max(bins)
    left = ", without the words that have no bound" if amounts.open else ""
    bars = "".join(
        f'<rect x="{20 + 28 * i}" y="{130 - 110 * many / top:.1f}" width="26" height="{110 * many / top:.1f}">'
        f"<title>{many:,}</title></rect>"
        for i, many in enumerate(bins)
    )
    return (
        f'<svg viewBox="0 0 720 165" role="img" aria-label="How many lose how much"><g>{bars}</g>'
        f'<text x="20" y="148">0</text><text x="690" y="148" text-anchor="end">{number(largest / MICRO)}</text>'
        f'<text x="355" y="162" text-anchor="middle">epsilon in all, local DP{left}</text>'
        f'<text x="20" y="12">{top:,}</text></svg>'
    )
