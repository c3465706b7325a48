"""Measures textveil on data of others: judgments, medical reports, Polish documents, and prompts.

In: the folder of corpora that $TEXTVEIL_CORPORA names; one that is missing is skipped. Out: one rate at a time, with
its interval over texts, in rows/outside.jsonl.
Not here: other tools on the same data (`scoreboard`), and what our own labels say (`prompts`).

- `tab`: judgments. A string that annotators masked has no place, so all its occurrences count as masked. A person is
  a masked string that begins with a title, or the one whom the data names; an applicant is a person who stands in the
  opening paragraph before the words "the applicant". A date is a masked string with a month and a figure, or a year.
- `meddocan`: Spanish medical reports. Sex and country are left out: they point to nobody.
- `pl_pii_bench`: Polish documents. A label is found if a span of the same label overlaps it, each span for one label
  only; what is left over of the spans is false alarms. Labels of numbers follow from their form, see `polish`.

    python outside.py [--only tab] [--limit 20] [--store]
"""

import argparse
import dataclasses
import gzip
import json
import os
import re
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import prompts  # the files beside this one
import regex
import rowfiles
from prompts import WORD, Outcome, Protect
from training.labels import Label, Labelled  # `prompts` has made the folder known

from textveil_bench.circumstances import read_circumstances

ROWS = Path(__file__).resolve().parent / "rows" / "outside.jsonl"

Values = Iterable[tuple[str, float]]
"""Metrics of one text: 0 or 1 for each span or word; a count where the metric is one of `COUNTED`."""
Row = dict[str, Any]
Span = tuple[int, int, str]

COUNTED = "false alarms"
"""The end of the name of a metric that is added up, not averaged."""


class Corpus(NamedTuple):
    """A corpus: how its texts are read, and what a release of one says. Every text has a `text`."""

    language: str
    load: Callable[[Path], Sequence[Any]]
    judge: Callable[[Any, Outcome], Values]
    levels: tuple[str, ...] = ("personal",)


# ---- words and strings -----------------------------------------------------------------------------------------------


@cache
def occurrences(value: str) -> regex.Pattern[str]:
    """Finds a string by whole words, whatever its case and whitespace."""
    return prompts.occurrences(value, Label(0, len(value), "OTHER", "private"))


def released(outcome: Outcome, text: str) -> str:
    """A release in which placeholders are breaks, so that their names are not found."""
    return prompts.spelled(
        text, outcome.changes, lambda each: prompts.BREAK if each.placeholder else each.shown
    )


def covered(length: int, spans: Iterable[tuple[int, ...]]) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Which characters lie in spans."""
    found = np.zeros(length, bool)
    for start, end, *_ in spans:
        found[start:end] = True
    return found


def spans_of(outcome: Outcome) -> list[Span]:
    """Places of a release's placeholders with their types: `<PERSON_1_FAMILY>` is a PERSON."""
    found: list[Span] = []
    for each in outcome.changes:
        match = re.match(r"<([A-Z][A-Z_]*?)(?:_\d[A-Z_\d]*)?>", each.shown)
        found.append((each.start, each.end, match[1] if match else ""))
    return found


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of compressed JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


# ---- judgments -------------------------------------------------------------------------------------------------------

TITLED = re.compile(r"(?:(?:Mr|Mrs|Ms|Miss|Dr|Sir|Lord|Lady|Judge|Prof|Professor)\b\.?\s+)+(?=\w)")
APPLICANT = re.compile(r"[“\"]the\s+(?:first\s+|second\s+)?applicants?\b")
DATE = re.compile(
    r"(?=.*\d).*\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b.*"
    r"|(?:1[89]|20)\d\d"
)


class Judgment(NamedTuple):
    """A judgment, the strings that were masked in it, and whom and which dates they name."""

    text: str
    masked: list[str]
    applicants: list[str]
    persons: list[str]
    dates: list[str]


def judgment(text: str, person: str, masked: Sequence[str]) -> Judgment:
    """Sorts the masked strings."""
    named = [person, *(m for each in masked if (m := TITLED.sub("", each, count=1)) != each)]
    persons = list(dict.fromkeys(named))
    _, _, after = text.partition("\n\n")
    opening = after.partition("\n\n")[0]
    before = opening[: match.start()] if (match := APPLICANT.search(opening)) else opening
    applicants = [each for each in persons if each in before or each == person]
    dates = [each for each in masked if DATE.fullmatch(each)]
    return Judgment(text, [*masked], applicants, persons, dates)


def judgments(corpora: Path) -> list[Judgment]:
    """All judgments."""
    return [
        judgment(row["text"], row["people"], row["meta"]["masked_entities"])
        for row in read(corpora / "tab" / "dev.jsonl.gz")
    ]


def judge_judgment(each: Judgment, outcome: Outcome) -> Values:
    """Says who and what is gone, and which words are hidden."""
    release = released(outcome, each.text)

    def gone(value: str) -> bool:
        return occurrences(value).search(release) is None

    for applicant in each.applicants:
        yield "applicants gone", gone(applicant)
        yield "family names of applicants gone", gone(applicant.split()[-1])
    yield "judgments with every applicant gone", all(map(gone, each.applicants))
    for metric, values in (("persons gone", each.persons), ("dates gone", each.dates)):
        yield from ((metric, gone(value)) for value in values)
    places = [m.span() for value in each.masked for m in occurrences(value).finditer(each.text)]
    yield from hidden_words(each.text, outcome, covered(len(each.text), places))


def hidden_words(
    text: str,
    outcome: Outcome,
    private: "np.ndarray[Any, np.dtype[np.bool_]]",
    apart: "np.ndarray[Any, np.dtype[np.bool_]] | None" = None,
) -> Values:
    """Which private words are hidden, and which hidden words are private; words apart are neither."""
    hidden = covered(len(text), ((c.start, c.end) for c in outcome.changes))
    for match in WORD.finditer(text):
        place = slice(*match.span())
        if apart is not None and apart[place].any():
            continue
        if private[place].any():
            yield "private words hidden", bool(hidden[place].any())
        if hidden[place].any():
            yield "hidden words that are private", bool(private[place].any())


# ---- medical reports -------------------------------------------------------------------------------------------------

LEFT_OUT = ("SEXO_SUJETO_ASISTENCIA", "PAIS")


def reports(corpora: Path) -> list[Labelled]:
    """All reports."""
    return [
        report(row["id"], row["text"], [(s["start"], s["end"], s["type"]) for s in row["spans"]])
        for row in read(corpora / "meddocan" / "dev.jsonl.gz")
    ]


def report(name: str, text: str, spans: Iterable[Span]) -> Labelled:
    """A report with its labels, all of them private but for those that are left out."""
    labels = [
        Label(start, end, type_, "borderline" if type_ in LEFT_OUT else "private")
        for start, end, type_ in sorted(spans)
    ]
    return Labelled(name, "es", "meddocan", text, labels, "measure")


def judge_report(each: Labelled, outcome: Outcome) -> Values:
    """Says which labels are gone, and which hidden words lie in one."""
    fates = [f for f in prompts.score(each, outcome).fates if f.label.standing == "private"]
    for fate in fates:
        yield "private spans gone", fate.gone
        yield f"private spans gone, {fate.label.type}", fate.gone
    yield "texts with no private span left", all(fate.gone for fate in fates)
    places = {
        standing: [(s.start, s.end) for s in each.labels if s.standing == standing]
        for standing in ("private", "borderline")
    }
    yield from hidden_words(
        each.text,
        outcome,
        covered(len(each.text), places["private"]),
        covered(len(each.text), places["borderline"]),
    )


# ---- Polish documents ------------------------------------------------------------------------------------------------

LANES = ("core", "inflection", "identifiers", "address", "negative", "robustness", "pdf")
LABELS = {
    "PERSON": "PERSON", "ORGANIZATION": "ORG", "LOCATION": "LOC", "ADDRESS": "LOC", "BIRTH_DATE": "DOB",
    "PHONE": "PHONE", "EMAIL": "EMAIL", "LICENCE": "DRIVING_LICENSE", "CARD": "PAYMENT_CARD", "VIN": "VIN",
    "PLATE": "VEHICLE_PLATE", "IBAN": "IBAN", "ACCOUNT": "IBAN",
    # as other tools call them
    "PER": "PERSON", "NAME": "PERSON", "ORG": "ORG", "GPE": "LOC", "LOC": "LOC", "PL_PESEL": "PESEL", "PL_NIP": "NIP",
    "PL_REGON": "REGON", "IBAN_CODE": "IBAN", "CREDIT_CARD": "PAYMENT_CARD", "PHONE_NUMBER": "PHONE",
    "EMAIL_ADDRESS": "EMAIL", "DATE_OF_BIRTH": "DOB", "POSTALCODE": "POSTAL", "ZIP_CODE": "POSTAL",
}  # fmt: skip
"""The benchmark's labels of our types, and of those of other tools. It tracks no others."""
NUMBERS = ("NATIONAL_ID", "ID", "MEDICAL_RECORD", "BOOKING")
FORMS = {
    "PESEL": r"\d{11}", "NIP": r"(?:PL)?\d{10}", "REGON": r"\d{9}|\d{14}", "DOWOD": r"[A-Z]{3}\d{6}",
    "PASSPORT": r"[A-Z]{2}\d{7}",
}  # fmt: skip
"""Forms that tell the labels of numbers apart, without blanks, dashes and dots."""
POSTAL = re.compile(r"\b\d{2}-\d{3}\b")


class Document(NamedTuple):
    """A Polish document, its lane, and its labels."""

    text: str
    lane: str
    spans: list[Span]


def documents(corpora: Path) -> list[Document]:
    """All documents, lane by lane."""
    found: dict[str, list[Document]] = {lane: [] for lane in LANES}
    with tarfile.open(corpora / "pl_pii_bench" / "corpus.tar.gz") as tar:
        for member in sorted(tar.getmembers(), key=lambda each: each.name):
            lane, file = Path(member.name).parent.name, tar.extractfile(member)
            if file is None or lane not in found or not member.name.endswith((".json", ".jsonl")):
                continue
            content = file.read().decode()
            rows = content.splitlines() if member.name.endswith(".jsonl") else [content]
            for row in map(json.loads, rows):
                spans = [(s["start"], s["end"], s["label"]) for s in row.get("entities", [row])]
                found[lane].append(Document(row["text"], lane, spans))
    return [each for lane in LANES for each in found[lane]]


def polish(text: str, spans: Iterable[Span]) -> list[Span]:
    """Spans as the benchmark labels them: numbers by their form, a postal code apart from its address."""
    found = []
    for start, end, type_ in spans:
        value = text[start:end]
        if type_ in NUMBERS:
            bare = re.sub(r"[\s.-]", "", value).upper()
            label = next((name for name, form in FORMS.items() if re.fullmatch(form, bare)), None)
            found += [(start, end, label)] if label else []
        elif type_ == "ADDRESS" and (postal := POSTAL.search(value)):
            first, last = start + postal.start(), start + postal.end()
            parts = ((start, first, "LOC"), (first, last, "POSTAL"), (last, end, "LOC"))
            found += [part for part in parts if re.search(r"\w", text[part[0] : part[1]])]
        elif type_ in LABELS:
            found.append((start, end, LABELS[type_]))
    return found


def matched(labels: Sequence[Span], spans: Sequence[Span]) -> tuple[list[bool], int]:
    """Which labels have a span of their own, and how many spans are left over."""
    left = sorted(spans)
    found = []
    for start, end, label in sorted(labels, key=lambda each: each[1]):
        over = [s for s in left if s[2] == label and s[0] < end and s[1] > start]
        if over:
            left.remove(min(over, key=lambda each: each[1]))
        found.append(((start, end, label), bool(over)))
    by_label = dict(found)
    return [by_label[each] for each in labels], len(left)


def judge_document(each: Document, outcome: Outcome) -> Values:
    """Says which labels are found, which are hidden under whatever type, and how often an alarm is false."""
    found, left = matched(each.spans, polish(each.text, spans_of(outcome)))
    hidden = covered(len(each.text), ((c.start, c.end) for c in outcome.changes))
    for (start, end, _), one in zip(each.spans, found, strict=True):
        yield f"{each.lane}: found with their label", one
        yield f"{each.lane}: hidden as whatever", bool(hidden[start:end].any())
    yield f"{each.lane}: {COUNTED}", left
    yield f"all lanes: {COUNTED}", left


def published(corpora: Path) -> Iterator[Row]:
    """What the benchmark's own page says of five systems, as rows: published, not measured here."""
    page = (corpora / "pl_pii_bench" / "RESULTS.md").read_text("utf-8")
    head, _, *body = (
        [cell.strip(" `*") for cell in line.strip().strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith(("| Split", "|---|---:", "| `"))
    )
    for lane, count, *cells in body:
        for system, cell in zip(head[2:], cells, strict=True):
            counted = cell.endswith("FP")
            metric = f"{lane}: {COUNTED if counted else 'found with their label'}"
            release = system.removesuffix(" relaxed recall")
            number = float(re.sub(r"[^\d.]", "", cell))
            yield {
                "what": f"outside, pl_pii_bench, published, {release}: {metric}",
                "corpus": "pl_pii_bench",
                "release": release,
                "metric": metric,
                "published": "pl-pii-bench v1.0.0, RESULTS.md",
                "unit": "count" if counted else "share",
                "value": number if counted else number / 100,
                "texts": int(count),
            }


# ---- prompts and sentences -------------------------------------------------------------------------------------------


def labelled(kind: str) -> Callable[[Path], list[Labelled]]:
    """Reads the texts of a corpus of ours that measure."""

    def load(corpora: Path) -> list[Labelled]:
        if not (corpora / kind).is_dir():
            raise FileNotFoundError(kind)
        return [each for each in prompts.texts() if each.kind == kind and each.use == "measure"]

    return load


def judge_labelled(each: Labelled, outcome: Outcome) -> Values:
    """Every metric of `prompts`."""
    return prompts.judged(prompts.score(each, outcome))


# ---- rates -----------------------------------------------------------------------------------------------------------

HIGH = ("personal", "names", "names, all dates")
CORPORA = {
    "tab": Corpus("en", judgments, judge_judgment, HIGH),
    "meddocan": Corpus("es", reports, judge_report, HIGH),
    "pl_pii_bench": Corpus("pl", documents, judge_document, HIGH[:2]),
    **{name: Corpus("en", labelled(name), judge_labelled) for name in prompts.CORPORA},
}


def rows(prefix: str, corpus: str, release: str, values: Sequence[Values]) -> Iterator[Row]:
    """A row for each metric: its mean over spans or words with an interval over texts, or its sum."""
    from textveil_bench.intervals import mean

    cells: dict[str, list[tuple[int, float]]] = {}
    for number, each in enumerate(values):
        for metric, value in each:
            cells.setdefault(metric, []).append((number, float(value)))
    for metric, pairs in sorted(cells.items()):
        row = {
            "what": f"{prefix}, {corpus}, {release}: {metric}",
            "corpus": corpus,
            "release": release,
            "metric": metric,
            "n": len(pairs),
            "texts": len({number for number, _ in pairs}),
        }
        numbers = np.array([value for _, value in pairs])
        if metric.endswith(COUNTED):
            yield {**row, "unit": "count", "value": float(numbers.sum()), "low": None, "high": None}
            continue
        interval = mean(numbers, np.array([number for number, _ in pairs]))
        ends = {"value": interval.value, "low": interval.low, "high": interval.high}
        yield {**row, "unit": "share", **ends}


def overrides(level: str) -> dict[str, Any] | None:
    """The options of a level, None where this textveil does not have them: `names, all dates` also hides every date."""
    from textveil.config.sections import ProtectOptions

    name, _, dates = level.partition(", ")
    options = {} if name == "personal" else {"level": name}
    if dates:
        if "dates" not in {field.name for field in dataclasses.fields(ProtectOptions)}:
            return None
        options["dates"] = "all"
    return {"protect": options} if options else {}


def progress(texts: Sequence[Any], told: str) -> Iterator[Any]:
    """Yields texts, and says on the way how many are done."""
    for number, each in enumerate(texts):
        if number % 25 == 0:
            print(f"{told}: {number} of {len(texts)}", file=sys.stderr, flush=True)
        yield each


def chosen(name: str, folder: Path, limit: int | None) -> Sequence[Any]:
    """The texts of a corpus, none where it is missing, which is said."""
    try:
        return sample(CORPORA[name].load(folder), limit)
    except FileNotFoundError:
        print(f"{name}: not in the folder of corpora, skipped", file=sys.stderr)
        return []


def sample(texts: Sequence[Any], limit: int | None) -> Sequence[Any]:
    """About so many texts, chosen by a hash, alike from each lane; all without a limit."""
    if limit is None:
        return texts
    lanes: dict[str, list[Any]] = {}
    for each in sorted(texts, key=lambda each: sha256(each.text.encode()).digest()):
        lanes.setdefault(getattr(each, "lane", ""), []).append(each)
    return [each for lane in lanes.values() for each in lane[: -(-limit // len(lanes))]]


def measurements(names: Sequence[str], folder: Path, limit: int | None) -> Iterator[Row]:
    """The rows of these corpora."""
    for name in names:
        corpus = CORPORA[name]
        if not (texts := chosen(name, folder, limit)):
            continue
        for level in corpus.levels:
            if (options := overrides(level)) is None:
                print(f"{name}, {level}: no such option yet, skipped", file=sys.stderr)
                continue
            protect: Protect = prompts.protector("prompt", **options)
            values = [
                list(corpus.judge(each, protect(each.text)))
                for each in progress(texts, f"{name}, {level}")
            ]
            for row in rows("outside", name, level, values):
                yield {**row, "limit": limit, "config": {"profile": "prompt", **options}}
        if name == "pl_pii_bench":
            yield from published(folder)


def main() -> None:
    """Measures, prints, and stores if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=CORPORA, help="a corpus (default: all)")
    parser.add_argument("--limit", type=int, help="so many texts of each corpus")
    parser.add_argument("--store", action="store_true", help="store the rows in rows/outside.jsonl")
    options = parser.parse_args()
    if "TEXTVEIL_CORPORA" not in os.environ:
        parser.error("$TEXTVEIL_CORPORA must name the folder of corpora")
    shared = read_circumstances()
    found = []
    for row in measurements(
        options.only or [*CORPORA], Path(os.environ["TEXTVEIL_CORPORA"]), options.limit
    ):
        found.append({**row, **shared})
        print(told(row), flush=True)
    if options.store:
        rowfiles.keep(ROWS, found)


def told(row: Row) -> str:
    """A row for the eye."""
    ends = f"  {row['low']:.3f}-{row['high']:.3f}" if row.get("low") is not None else ""
    value = f"{row['value']:.0f}" if row["unit"] == "count" else f"{row['value']:.3f}"
    return f"{value:>8}{ends}  {row['what']}  (n={row.get('n', '-')})"


if __name__ == "__main__":
    main()
