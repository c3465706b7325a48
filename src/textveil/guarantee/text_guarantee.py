"""Statements about whole texts, of which public texts are released instead.

In: the way of the release, its library, epsilon for a document, sentence or subject. Out:
`TextGuarantee`, as data, JSON, and words.
Not here: statements about words (`guarantee`), sums of releases (`accounting`), and the proofs
(docs/understand/proofs.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, NamedTuple, Self

from textveil.errors import GuaranteeError
from textveil.guarantee.wording import (
    describe_draws,
    format_count,
    format_number,
    join_parts,
)

TextKind = Literal["ldp", "central", "none"]
TextUnit = Literal["document", "sentence", "subject"]
TextWay = Literal["texts", "reports", "counts"]

VERSION = 1
"""Version of the JSON form, which it shares with statements about words."""

SCOPE = "Says what kinds of texts there are and how often; not what any text says."
"""The sentence on what a release of whole public texts says."""

PUBLIC_LIBRARY = (
    "It takes the library to be public and made without these texts; no text that counts is among its "
    "own (compared by fingerprint); likeness is not checked."
)
"""The sentence on what every bound supposes of the library."""

_UNITS: Mapping[TextWay, tuple[TextUnit, ...]] = {
    "texts": ("document", "sentence"),
    "reports": ("document",),
    "counts": ("document", "subject"),
}
"""Units that a way can bound."""


@dataclass(frozen=True, kw_only=True)
class LibraryFacts:
    """The facts of a public library that a statement names.

    Attributes:
        name: its name.
        digest: its SHA-256, in hexadecimal.
        source: where its texts are from.
        licence: under which they are passed on.
        texts: the number of its texts.
        level: the name of the level whose cells are used.
        cells: the number of cells of that level.
        votes: bounds of the votes that it follows from, in words; empty where there were none.
    """

    name: str
    digest: str
    source: str
    licence: str
    texts: int
    level: str
    cells: int
    votes: str = ""


class Sentences(NamedTuple):
    """Numbers of sentences, each of which is drawn by itself.

    Args:
        most: in the document that has most.
        total: in all documents.
    """

    most: int
    total: int


@dataclass(frozen=True, kw_only=True)
class TextGuarantee:
    """The statement that goes with public texts released instead of private ones.

    Three ways. `texts`: a public text in place of each. `reports`: each document reports a set of
    codes by itself, and a corpus follows from the reports. `counts`: one noisy count of all
    documents, and a corpus follows from it.

    Attributes:
        kind: `ldp` (texts, reports), `central` (counts), or `none` where no bound holds.
        unit: what the bound is for: a `document`, a `sentence`, or a `subject` with all of its
            counted documents.
        way: `texts`, `reports` or `counts`.
        epsilon: the bound for one unit: between any two of it (`ldp`), or if it is added or
            removed (`central`); infinite for the kind `none`.
        replaced: the bound if one unit is replaced by another; equal to epsilon for `ldp`.
        library: the library, of the first release if there are several.
        labels: names of the labels in the codes or bins; empty where there are none.
        labels_covered: False where labels are copied unchanged, which no bound covers.
        documents: how many there are, which is released; None for `counts`, always.
        released: how many public texts were released, a public number; None where that is
            `documents`, or where none was drawn yet.
        per_subject: the most documents of one subject that are counted.
        subject: the noun for a subject, as in "author".
        sentences: numbers of sentences; None unless the unit is a sentence.
        seeded: whether the draws came from a seed.
        reasons: why no bound holds; empty where one does.
        releases: the number of releases, each drawn anew.
        others: libraries of the other releases, where they differ.
        delta: 0: the bounds have no exceptions.
    """

    kind: TextKind
    unit: TextUnit
    way: TextWay
    epsilon: float
    replaced: float
    library: LibraryFacts
    labels: tuple[str, ...] = ()
    labels_covered: bool = True
    documents: int | None = None
    released: int | None = None
    per_subject: int = 1
    subject: str = ""
    sentences: Sentences | None = None
    seeded: bool
    reasons: tuple[str, ...] = ()
    releases: int = 1
    others: tuple[LibraryFacts, ...] = ()
    delta: float = 0.0

    def __post_init__(self) -> None:
        if fault := next((message for is_wrong, message in _list_faults(self) if is_wrong), ""):
            raise GuaranteeError(f"a statement about whole texts is wrong: {fault}")

    @property
    def bins(self) -> int:
        """Number of codes of a report or bins of a count: labels times cells.

        The most, where libraries differ.
        """
        return max(1, len(self.labels)) * self.cells

    @property
    def cells(self) -> int:
        """Number of cells, the most where libraries differ."""
        return max(library.cells for library in self.libraries)

    @property
    def libraries(self) -> tuple[LibraryFacts, ...]:
        """The libraries of all releases."""
        return (self.library, *self.others)

    @property
    def noun(self) -> str:
        """The noun for the unit."""
        return self.subject if self.unit == "subject" else self.unit

    @property
    def epsilon_ldp(self) -> float:
        """The bound for any two contents of one unit, as local DP.

        For a count this is the bound of a replacement.
        """
        return self.replaced

    @property
    def repeatable(self) -> bool:
        """True if the draws came from a seed: whoever knows it can repeat them."""
        return self.seeded

    @property
    def neighbours(self) -> str:
        """The difference between the two inputs that the statement compares."""
        if self.way == "counts":
            return f"one {self.noun} added or removed"
        if self.way == "reports" and self.labels:
            return "any two pairs of a document and its label"
        return f"any two {self.noun}s"

    @property
    def mask(self) -> tuple[str, ...]:
        """Names of what is released too, and covered by no bound."""
        several, by_text = self.documents not in (None, 1), self.way == "texts"
        presence = {
            "number of documents": several,
            "number of sentences": self.unit == "sentence",
            "order of documents": several and by_text,
            "labels": not self.labels_covered,
        }
        return tuple(name for name, applies in presence.items() if applies)

    # ---- in words --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Returns the statement in one line."""
        return f"<TextGuarantee: {self.summary()}>"

    def summary(self) -> str:
        """Writes the statement in one line: what was released, the bound, what it says."""
        return " ".join((self._describe_release(), *self._scope))

    def headline(self) -> str:
        """Writes the statement in three lines: bound, library, other releases and draws."""
        noun = "count" if self.way == "counts" else "release"
        number = f"one {noun}" if self.releases == 1 else f"{self.releases:,} {noun}s together"
        sum_note = "." if self.repeatable else f"; repeated {noun}s add up."
        premise = (_describe_premise(self.libraries),) if self.kind != "none" else ()
        origin = (*premise, *map(_describe_library, self.libraries))
        remarks = (
            *self._scope,
            f"This is for {number}{sum_note}",
            describe_draws(self.repeatable),
        )
        return "\n".join((self._describe_release(), " ".join(origin), " ".join(remarks)))

    def explain(self) -> str:
        """Writes the whole statement: headline, formula, what adds up, assumptions."""
        lines = [self.headline(), ""]
        if self.kind != "none":
            lines += [*_write_formula(self), *_describe_sums(self)]
        if self.way == "texts" and not self.labels_covered:
            lines.append("Labels are copied unchanged: no bound covers what they say.")
        if self.mask:
            lines.append(
                f"The mask is released too, and nothing is claimed about it: {', '.join(self.mask)}."
            )
        lines += [f"Assumes: {text}." for text in self.assumptions]
        lines += [f"Note: {text}." for text in self.caveats]
        return "\n".join(lines)

    def explain_plainly(self) -> str:
        """Writes one paragraph for a reader who knows no epsilon.

        It says by how much the release can change an attacker's odds.
        """
        return " ".join(_write_plainly(self))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the proof."""
        independence = {
            "document": "no document stands in another",
            "sentence": "no sentence stands in a document twice or in another document",
            "subject": f"no document of one {self.noun} stands in one of another",
        }[self.unit]
        assumptions = [
            (
                f"{independence}: near duplicates (copies, replies, quotations) are not looked for, "
                "and what is said in several places loses the sum over them"
            ),
            "the cell of a text follows from that text and the public library alone",
        ]
        if self.way == "counts":
            assumptions.append(
                "the list of labels and cells, and every number printed here, were chosen without "
                "looking at the documents"
            )
        if self.unit == "subject":
            assumptions.append(
                f"which documents of one {self.noun} are counted follows from that {self.noun}'s "
                "documents alone"
            )
            assumptions.append(
                f"every {self.noun} has one name in the documents: whoever is spelled in two ways "
                "counts as two, and loses the sum"
            )
        return tuple(assumptions)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Cautions for readers of the released texts."""
        return (
            "every released text is a public one, written by somebody else: names and facts in "
            "it are those of the library",
        )

    @property
    def _scope(self) -> tuple[str, ...]:
        """The sentence on what the texts say; none without a bound."""
        return () if self.kind == "none" else (SCOPE,)

    def _describe_release(self) -> str:
        """Writes what was released and its bound."""
        text = {
            "texts": _describe_texts,
            "reports": _describe_reports,
            "counts": _describe_counts,
        }[self.way](self)
        if self.kind == "none":
            text = f"No guarantee ({'; '.join(self.reasons)}). {text}"
        if self.repeatable:
            text += " Repeatable, so no protection against anyone who knows the seed."
        return text

    # ---- as JSON ---------------------------------------------------------------------------------

    def to_json(self) -> dict[str, object]:
        """Returns the statement as plain data.

        Its schema is `textveil/data/guarantee.schema.json`. Infinite values are the string
        "infinite".
        """
        sentences = None
        if self.sentences is not None:
            sentences = {**self.sentences._asdict(), "epsilon": _convert(self.compute_most())}
        return {
            "version": VERSION,
            "kind": self.kind,
            "way": self.way,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "epsilon": _convert(self.epsilon),
            "replaced": _convert(self.replaced),
            "delta": self.delta,
            "epsilon_ldp": _convert(self.epsilon_ldp),
            "libraries": [asdict(library) for library in self.libraries],
            "labels": list(self.labels),
            "labels_covered": self.labels_covered,
            "bins": self.bins,
            "documents": self.documents,
            "released": self.released,
            "per_subject": self.per_subject,
            "subject": self.subject,
            "sentences": sentences,
            "mask": list(self.mask),
            "seeded": self.seeded,
            "releases": self.releases,
            "infinite_because": list(self.reasons),
            "assumptions": list(self.assumptions),
            "caveats": list(self.caveats),
            "summary": self.summary(),
            "statement": self.headline(),
            "plainly": self.explain_plainly(),
        }

    def compute_most(self) -> float:
        """Returns the bound for a whole document: that with the most sentences."""
        return self.epsilon * self.sentences.most if self.sentences else self.epsilon

    def pack(self) -> dict[str, Any]:
        """Returns all fields as plain data, for `unpack` of this version."""
        return {
            **{attribute.name: getattr(self, attribute.name) for attribute in fields(self)},
            "library": asdict(self.library),
            "others": [asdict(library) for library in self.others],
        }

    @classmethod
    def unpack(cls, packed: Mapping[str, Any]) -> Self:
        """Reads the statement that `pack` wrote.

        It may have been JSON in between, which turns tuples into lists.
        """
        sentences = packed["sentences"]
        return cls(
            **{
                **packed,
                "library": LibraryFacts(**packed["library"]),
                "others": tuple(LibraryFacts(**library) for library in packed["others"]),
                "labels": tuple(packed["labels"]),
                "reasons": tuple(packed["reasons"]),
                "sentences": None if sentences is None else Sentences(*sentences),
            }
        )


def _list_faults(guarantee: TextGuarantee) -> list[tuple[bool, str]]:
    """Lists what would make a statement untrue or unreadable, and whether it is so."""
    kind, way, unit = guarantee.kind, guarantee.way, guarantee.unit
    is_central = way == "counts"
    bounds = (guarantee.epsilon, guarantee.replaced)
    return [
        (
            kind != "none" and (kind == "central") != is_central,
            "only counts are central, and they are nothing else",
        ),
        (unit not in _UNITS[way], f"{way} are not bounded for a {unit}"),
        (
            (kind == "none") != bool(guarantee.reasons),
            "without a bound it must give reasons, and with one none",
        ),
        (
            all(map(math.isfinite, bounds)) == (kind == "none") or not min(bounds) >= 0,
            "epsilon and replaced must be at least 0, and infinite where no bound holds",
        ),
        (
            guarantee.replaced < guarantee.epsilon * (2 if is_central else 1) * (1 - 1e-12),
            "a replacement must cost what it costs: twice as much as an addition in counts, and "
            "no less than epsilon elsewhere",
        ),
        (guarantee.delta != 0, "delta must be 0"),
        (
            (guarantee.documents is None) != is_central,
            "the number of documents must be None for counts, and given otherwise",
        ),
        (
            not guarantee.labels_covered and (way != "texts" or bool(guarantee.labels)),
            "labels are in the codes and covered, or copied beside texts and not",
        ),
        (
            (unit == "subject") != bool(guarantee.subject) or guarantee.per_subject < 1,
            "a subject needs a noun and at least one counted document",
        ),
        (
            unit != "subject" and guarantee.per_subject != 1,
            "documents of a subject are bounded only where the unit is a subject",
        ),
        (
            (unit == "sentence") != (guarantee.sentences is not None),
            "numbers of sentences go with the unit sentence",
        ),
    ]


# ---- what was released ---------------------------------------------------------------------------


def _describe_texts(guarantee: TextGuarantee) -> str:
    """Writes that public texts stand in place of documents or sentences."""
    documents, noun, sentences = guarantee.documents or 0, guarantee.noun, guarantee.sentences
    total = sentences.total if sentences else documents
    place = f"each of {format_count(total, noun)}" if total != 1 else f"1 {noun}"
    if sentences:
        place += f" in {format_count(documents, 'document')}"
    names = join_parts(list(dict.fromkeys(library.name for library in guarantee.libraries)))
    texts = "A public text" if guarantee.releases == 1 else f"{guarantee.releases:,} public texts"
    at_most, everywhere = ("at most ", " in every release") if guarantee.others else ("", "")
    release = (
        f"{texts} of {names} in place of {place}, by its cell among {at_most}{guarantee.cells:,}"
    )
    if guarantee.kind == "none":
        bounds = ""
    else:
        bound = format_number(guarantee.epsilon)
        bounds = (
            f": local DP {bound} for a whole {noun}, whatever its length{_describe_mean(guarantee)}"
        )
        bounds += f"; two {noun}s of one cell{everywhere} are never told apart"
    return f"{release}{bounds}.{_describe_mask(guarantee)}"


def _describe_mean(guarantee: TextGuarantee) -> str:
    """Writes what a document loses with its sentences."""
    if guarantee.sentences is None:
        return ""
    mean = guarantee.epsilon * guarantee.sentences.total / max(1, guarantee.documents or 0)
    most = format_number(guarantee.compute_most())
    if guarantee.documents == 1:
        return f"; the document loses the sum over its sentences: {most}"
    return (
        f"; a document loses the sum over its sentences: {format_number(mean)} on average, "
        f"{most} at most"
    )


def _describe_mask(guarantee: TextGuarantee) -> str:
    """Writes what the release shows besides the texts."""
    documents, sentences = guarantee.documents or 0, guarantee.sentences
    several = documents != 1
    facts = [f"there are {format_count(documents, 'document')}"] * several
    if sentences:
        facts.append(
            "how many sentences each has"
            if several
            else f"it has {format_count(sentences.total, 'sentence')}"
        )
    facts += ["in which order"] * several
    clauses = []
    if facts:
        sentence = ", ".join(facts[:-1])
        sentence += f", and {facts[-1]}, is" if sentence else f"{facts[-1]} is"
        clauses.append(f"that {sentence} released")
    clauses += ["labels are copied and not covered"] * (not guarantee.labels_covered)
    sentence = "; ".join(clauses)
    return f" {sentence[0].upper()}{sentence[1:]}." if sentence else ""


def _describe_reports(guarantee: TextGuarantee) -> str:
    """Writes that every document reported codes by itself."""
    documents = guarantee.documents or 0
    subject = f"Each of {format_count(documents, 'document')}" if documents != 1 else "1 document"
    number = "a set" if guarantee.releases == 1 else f"{guarantee.releases:,} sets"
    codes, unit = "cell", "a whole document"
    if guarantee.labels:
        codes, unit = "label and cell", "document and label together"
    bound = f": local DP {format_number(guarantee.epsilon)} for {unit}"
    reports = "report" if documents == guarantee.releases == 1 else "reports"
    return (
        f"{subject} reported {number} of codes for its {codes}"
        f"{'' if guarantee.kind == 'none' else bound}. The corpus follows from the {reports} alone."
    )


def _describe_counts(guarantee: TextGuarantee) -> str:
    """Writes that public texts were drawn from noisy counts."""
    number, counts = "One noisy count", "it"
    if guarantee.releases > 1:
        number, counts = f"{guarantee.releases:,} noisy counts", "them"
    bins = f"{'at most ' * bool(guarantee.others)}{format_count(guarantee.bins, 'bin')}"
    names = ["Names of labels and cells" if guarantee.labels else "Names of cells"]
    draw = ""
    if guarantee.released is not None:
        draw = f"; {format_count(guarantee.released, 'public text')} drawn from {counts}"
        names.append(f"{guarantee.released:,}")
    names.append("the libraries" if guarantee.others else "the library")
    if guarantee.kind == "none":
        return f"{number} of {bins}{draw}."
    return (
        f"{number} of {bins}{draw}. {_describe_change(guarantee)}. {join_parts(names)} are "
        "public and follow from no private text; how many documents there were is told by the "
        "noisy counts only. No word of a private text stands in it but by chance."
    )


def _describe_change(guarantee: TextGuarantee) -> str:
    """Writes the bounds of a count, for a unit more or less and for another one."""
    contribution = ""
    if guarantee.unit == "subject":
        verb = "is" if guarantee.per_subject == 1 else "are"
        contribution = (
            f", of whom {'at most ' * (guarantee.per_subject > 1)}"
            f"{format_count(guarantee.per_subject, 'document')} {verb} counted"
            f"{' in each' * (guarantee.releases > 1)}"
        )
    return (
        f"Epsilon {format_number(guarantee.epsilon)} for one {guarantee.noun}{contribution}, added or "
        f"removed; {format_number(guarantee.replaced)} if it is replaced by another; delta 0"
    )


def _describe_premise(libraries: Sequence[LibraryFacts]) -> str:
    """Writes what the bound supposes of the libraries, with the votes that they follow from."""
    votes = [library.votes for library in libraries if library.votes]
    exception = f", but for votes ({join_parts(votes)}), which add to this if these texts voted"
    without = "made without these texts"
    return PUBLIC_LIBRARY.replace(without, without + exception * bool(votes))


def _describe_library(library: LibraryFacts) -> str:
    """Writes where the texts of a library are from."""
    return (
        f"Library {library.name}: {format_count(library.texts, 'text')} ({library.source}; "
        f"{library.licence}), digest {library.digest[:16]}."
    )


# ---- all of it -----------------------------------------------------------------------------------


def _write_formula(guarantee: TextGuarantee) -> list[str]:
    """Writes the bounded quantity and its bound."""
    bound, noun = format_number(guarantee.epsilon), guarantee.noun
    if guarantee.way == "texts":
        return [
            f"For every two {noun}s x, x' and every public text t:",
            f"  |ln Pr[t | x] - ln Pr[t | x']| <= {bound}, and 0 where both are in one cell.",
            (
                "The cell is drawn by randomised response from whole numbers, the text among "
                "those of the drawn cell by a public rule."
            ),
        ]
    if guarantee.way == "reports":
        values = "pairs (document, label)" if guarantee.labels else "documents"
        return [
            f"For every two {values} x, x' and every set S of the {guarantee.bins:,} codes:",
            f"  |ln Pr[S | x] - ln Pr[S | x']| <= {bound}.",
            "What is made of the reports is post-processing: nothing more is lost.",
        ]
    advantage = format_number(math.tanh(guarantee.epsilon / 2), 3)
    return [
        (
            f"For every two collections D, D' of documents, where D' is D with one {noun} added "
            "or removed, and every list z of counts:"
        ),
        (
            f"  |ln Pr[z | D] - ln Pr[z | D']| <= {bound}; {format_number(guarantee.replaced)} "
            f"where one {noun} is replaced by another, or "
            f"{'its text or label' if noun == 'document' else 'what its documents say'} is."
        ),
        (
            "Every bin of a public list gets discrete Laplace noise of its own, also the empty "
            "ones, in whole numbers."
        ),
        (
            f"Whoever knows all other documents, and guesses from z whether one {noun} is among "
            f"them, is right at most {advantage} more often where it is than wrong where it is "
            "not."
        ),
        "Everything drawn from z is post-processing: further corpora of it lose nothing more.",
    ]


def _describe_sums(guarantee: TextGuarantee) -> list[str]:
    """Writes what one person loses with several units."""
    lines = []
    if guarantee.way == "counts":
        lines = [
            "Whoever is in several counts loses the sum, whatever their libraries. Beside local "
            f"releases of the same {guarantee.noun} this one counts as local DP "
            f"{format_number(guarantee.epsilon_ldp)}."
        ]
    if guarantee.unit == "subject":
        return lines
    lines.append(f"A person with m {guarantee.noun}s loses at most m times this.")
    if guarantee.sentences:
        lines.append(
            "Documents are compared with others of as many sentences; the losses of the "
            "sentences of a document add up."
        )
    return lines


# ---- without epsilon -----------------------------------------------------------------------------


def _write_plainly(guarantee: TextGuarantee) -> list[str]:
    """Writes the sentences for a reader who knows no epsilon."""
    noun = guarantee.noun
    making = {
        "texts": f"In place of each {noun} stands a text that somebody else wrote and that was "
        "public before; only its kind was drawn by chance from the kind of the private one.",
        "reports": "Each document was turned into a few codes, some true and some not, before "
        "anything was collected; public texts were chosen by the reports of all.",
        "counts": "The documents were only counted by kind, the counts were changed by chance, "
        "and public texts of these kinds, written by others, were chosen by the changed counts.",
    }[guarantee.way]
    if guarantee.kind == "none":
        return [
            making,
            f"Nothing limits what a reader can learn from it: {'; '.join(guarantee.reasons)}.",
        ]
    secret = {
        "texts": f"what a {noun} is about",
        "reports": "what a document is about" + " or what its label is" * bool(guarantee.labels),
        "counts": f"whether a certain {noun} is among those counted",
    }[guarantee.way]
    lines = [
        making,
        (
            f"Whoever wonders {secret}, and whatever they know beforehand, even all other "
            f"{noun}s: the release changes the odds of their guess by a factor of at most "
            f"{_format_factor(guarantee.epsilon)}."
        ),
        (
            "Who thought that one of two things is as likely as the other can then be at most "
            f"{_format_share(0.5, guarantee.epsilon)} sure of one; who gave it one chance in a "
            f"hundred, at most {_format_share(0.01, guarantee.epsilon)}."
        ),
    ]
    if guarantee.way == "counts":
        lines.append(
            f"About what the documents of that {noun} say, if they know that it is among them, "
            f"the factor is at most {_format_factor(guarantee.replaced)}."
            if guarantee.unit == "subject"
            else "About what a document says, if they know that it is among them, the factor is "
            f"at most {_format_factor(guarantee.replaced)}."
        )
    if guarantee.unit != "subject":
        lines.append(
            f"For a person with several {noun}s the factors are multiplied"
            + (
                f"; for a whole document it is at most {_format_factor(guarantee.compute_most())}."
                if guarantee.sentences
                else "."
            )
        )
    if guarantee.way == "texts":
        lines.append(f"Two {noun}s of one kind cannot be told apart at all.")
    if not guarantee.labels_covered:
        lines.append("Labels were copied unchanged, and whoever reads the release knows them.")
    if guarantee.repeatable:
        lines.append("None of this holds against anyone who knows the seed of the draws.")
    lines.append(
        "A factor of 1 would mean that nothing is learned. No name, number or sentence of a "
        "private text is passed on; one may stand in a public text by chance."
    )
    return lines


def _format_factor(epsilon: float) -> str:
    """Writes the factor by which odds can change."""
    if epsilon > 20:
        return f"e to the power of {format_number(epsilon)}, which is no protection to speak of"
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor >= 1000 else format_number(factor, 3)


def _format_share(prior: float, epsilon: float) -> str:
    """Writes how sure somebody can be after the release, in per cent, rounded up."""
    odds = prior / (1 - prior) * math.exp(min(epsilon, 700))
    return f"{format_number(100 * odds / (1 + odds), 3)}%"


def _convert(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"
