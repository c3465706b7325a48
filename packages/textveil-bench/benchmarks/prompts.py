"""Measures what becomes of prompts: which private spans are gone, and what else was altered. Part of `make bench`.

In: the texts of `training.labels`, with those of corpora where $TEXTVEIL_CORPORA names their folder; a `Protector`, or
another tool's detectors. Out: one rate at a time, with its interval; failures of the texts that may be looked at.
Not here: what is private (`training.labels`), how far its readers agree (`readers`), the page (`prompts_page`), and the
rates of detectors on other data (`detection`).

- A private span is gone if its text no longer stands in the release, without regard to case, by whole words (Chinese,
  Japanese and Korean by characters). Where it stands outside of private spans, too, it may stand as often as there.
- A telling part of it is a word of its place that is left: no small public word, no title, no short figure.
- A text is altered if its release differs in more than whitespace; a span or a word, if any character of it is.
- Ordinary words lie in no labelled span. Invented persons and borderline cases are counted apart.

Every text is protected in a session of its own. Rates of spans and words have their interval over texts.
"""

import argparse
import gzip
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import detection  # the files beside this one
import numpy as np
import readers
import regex
import rowfiles

from textveil_bench.circumstances import read_circumstances

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from training.labels import (
    COMPOSITE_TEXTS,
    USES,
    Label,
    Labelled,
    corpus_labels,
    hard_texts,
)

ROWS = Path(__file__).resolve().parent / "rows" / "prompts.jsonl.gz"
FAILURES = ROWS.with_name("prompts_failures.json")

SYNTH = "presidio_synth"
CORPORA = ("prompts", "pupa", SYNTH)
NAMES = ("PERSON", "ORGANIZATION", "LOCATION", "OTHER")
FORMED = ("EMAIL", "PHONE", "CARD", "ACCOUNT", "IP")
"""Types of identifiers that have a form; so have national numbers among IDs and keys among SECRETs, see `formed`."""
NUMBER = 6
"""Figures from which a phone number is more than an extension."""
KEY = 16
"""Characters without a blank from which a secret is a key, and no password."""

NATIONAL = regex.compile(
    r"""(?xi)
    \b(?: ssn | social\ security | ni\ n(?:o|umber) | nino | nhs | sin | tfn | pps | medicare | aadhaar | pan | id-?nr
    | st\.?-?nr | steuer\S* | rvnr | kvnr | nir | n_secu | dni | nif | nuss | cpf | codice\ fiscale | c\.f\.
    | bsn | pesel | tckn | t\.?c\.?\ kimlik\ no ) \b
    | आधार | पैन | マイナンバー | 個人番号 | 주민 | 身份证 | الرقم\ القومي
    """
)
"""What stands before a national number, on the same line."""

TITLES = regex.compile(
    """(?xi) mrs? | ms | miss | mx | dr | prof | sir | madam | herrn? | frau | fr | mm?e | mlle | sra? | srta | dña
    | sig | signor[ae]? | dhr | mevr(?:ouw)? | meneer | pani? | bay | hanım | bey | ông | bà | anh | chị | em | cô | chú
    | st | street | rd | road | ave | avenue"""
)
"""Words of a span's place that tell nothing by themselves."""

_LETTERS = r"\p{L}\p{M}\p{N}"
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー"
_BOUND = rf"[[{_LETTERS}]--[{_CJK}]]"
WORD = regex.compile(rf"(?V1)[{_CJK}]|{_BOUND}++")
_INSIDE = regex.compile(rf"(?V1){_BOUND}")
_DIGITS = regex.compile(r"\p{N}++")
MANY = 3
"""Figures from which a run of them is telling."""

BREAK = "\0"
"""Stands for a placeholder where a release is searched."""


class Change(NamedTuple):
    """A part of a text that was altered: first character, one past the last, and what stands there in the release."""

    start: int
    end: int
    shown: str
    placeholder: bool


class Outcome(NamedTuple):
    """A text's release, and what differs from the text, in order."""

    text: str
    changes: list[Change]


Protect = Callable[[str], Outcome]

# ---- what protects ---------------------------------------------------------------------------------------------------


def protector(profile: str, **overrides: Any) -> Protect:
    """A `Protector` with a fresh session for each text."""
    from textveil import Protector, Session

    made = Protector(profile, **overrides)

    def protect(text: str) -> Outcome:
        result = made.protect(text, Session())
        return Outcome(result.text, changes(text, result.private.words, result.released.items))

    return protect


def changes(text: str, words: Sequence[str], items: Sequence[Any]) -> list[Change]:
    """Where a release's items differ from the words that they stand for.

    Raises:
        ValueError: the words are not those of the text.
    """
    places, at = [], 0
    for word in words:
        while text[at].isspace():
            at += 1
        if not text.startswith(word, at):
            raise ValueError("the words of a result must stand in its text, in order")
        places.append((at, at + len(word)))
        at += len(word)
    left = set(range(len(words)))
    found = []
    for item in items:
        left -= set(range(item.start, item.end))
        start, end = places[item.start][0], places[item.end - 1][1]
        if text[start:end] != item.text:
            found.append(Change(start, end, item.text, item.kind == "placeholder"))
    return sorted([*found, *(Change(*places[i], "", True) for i in left)])


def hiding(names: Sequence[str]) -> Protect:
    """Every span that any of these detectors finds becomes a placeholder, whatever its type.

    Args:
        names: of detectors of textveil; `presidio` alone is Presidio's own recognizers, without a model of names.
    """
    detectors = [detection.presidio() if name == "presidio" else _found(name) for name in names]

    def protect(text: str) -> Outcome:
        merged: list[tuple[int, int, str]] = []
        for start, end, type_ in sorted(span for detect in detectors for span in detect([text])[0]):
            if merged and start < merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1]), merged[-1][2]
            else:
                merged.append((start, end, type_))
        hidden = [
            Change(start, end, f"<{type_}>", placeholder=True) for start, end, type_ in merged
        ]
        return Outcome(spelled(text, hidden), hidden)

    return protect


def _found(name: str) -> detection.Detect:
    from textveil.detect import load_detector

    asked = load_detector(name)
    return lambda texts: [[(s.start, s.end, s.type) for s in asked.find([text])] for text in texts]


def spelled(
    text: str, hidden: Sequence[Change], show: Callable[[Change], str] = lambda each: each.shown
) -> str:
    """A text with its changes."""
    parts, at = [], 0
    for each in hidden:
        parts += [text[at : each.start], show(each)]
        at = each.end
    return "".join([*parts, text[at:]])


# ---- scores ----------------------------------------------------------------------------------------------------------


class Fate(NamedTuple):
    """What became of a labelled span."""

    label: Label
    gone: bool
    """Its text no longer stands in the release, or no oftener than outside of private spans."""
    statement_form: bool
    """A telling part of it is left at its place."""
    altered: bool


class Score(NamedTuple):
    """What became of a text: its spans, how many ordinary words it has, and which were altered."""

    labelled: Labelled
    outcome: Outcome
    fates: list[Fate]
    words: int
    altered_words: list[tuple[int, int]]

    @property
    def standings(self) -> frozenset[str]:
        """Of its spans."""
        return frozenset(fate.label.standing for fate in self.fates)

    @property
    def altered(self) -> bool:
        """Whether the release differs in more than whitespace."""
        return self.outcome.text.split() != self.labelled.text.split()


def score(labelled: Labelled, outcome: Outcome) -> Score:
    """Judges a release by the labels of its text."""
    text, labels = labelled.text, labelled.labels
    kept = np.ones(len(text), bool)
    for change in outcome.changes:
        kept[change.start : change.end] = False
    private = np.zeros(len(text), bool)
    marked = np.zeros(len(text), bool)
    for label in labels:
        marked[label.start : label.end] = True
        private[label.start : label.end] |= label.standing == "private"
    release = spelled(text, outcome.changes, lambda each: BREAK if each.placeholder else each.shown)
    fates = []
    for label in labels:
        place = slice(label.start, label.end)
        gone = False
        if label.standing == "private":
            pattern = occurrences(text, label)
            ordinary = sum(
                not private[m.start() : m.end()].any()
                for m in pattern.finditer(text, overlapped=True)
            )
            gone = (
                sum(1 for _ in pattern.finditer(release, overlapped=True)) <= ordinary
                and not kept[place].all()
            )
        statement_form = any(
            _tells(text, *m.span()) and kept[m.start() : m.end()].all() for m in _words(text, label)
        )
        fates.append(Fate(label, gone, statement_form, not kept[place].all()))
    ordinary_words = [
        m.span() for m in WORD.finditer(text) if not marked[m.start() : m.end()].any()
    ]
    altered = [(start, end) for start, end in ordinary_words if not kept[start:end].all()]
    return Score(labelled, outcome, fates, len(ordinary_words), altered)


def occurrences(text: str, label: Label) -> regex.Pattern[str]:
    """Finds a span's text: any case and whitespace, bounded as words are where the span itself is."""
    value = text[label.start : label.end]
    words = r"\s+".join(regex.escape(part) for part in value.split())
    before = not _INSIDE.match(value[0]) or (label.start and _INSIDE.match(text[label.start - 1]))
    after = not _INSIDE.match(value[-1]) or (
        label.end < len(text) and _INSIDE.match(text[label.end])
    )
    bounded = f"{'' if before else f'(?<!{_BOUND})'}{words}{'' if after else f'(?!{_BOUND})'}"
    return regex.compile(f"(?V1i){bounded}")


def _words(text: str, label: Label) -> Iterator[regex.Match[str]]:
    return WORD.finditer(text, label.start, label.end)


def _tells(text: str, start: int, end: int) -> bool:
    """Whether a word says something about whom it stands for."""
    from textveil.text import is_public

    word = text[start:end]
    if _DIGITS.fullmatch(word):
        return len(word) >= MANY
    return (
        (len(word) > 1 or not _INSIDE.match(word))
        and not is_public(word)
        and not TITLES.fullmatch(word)
    )


def formed(labelled: Labelled, label: Label) -> str | None:
    """What an identifier with a form is called: its type, `national number` or `key`; None for other spans.

    A phone number has one if it is written in figures and no mere extension.
    """
    value = labelled.text[label.start : label.end]
    if label.type in FORMED:
        few = label.type == "PHONE" and sum(map(str.isdecimal, value)) < NUMBER
        return None if few else label.type
    if label.type == "ID":
        before = labelled.text[max(0, label.start - 30) : label.start].rpartition("\n")[2]
        return "national number" if NATIONAL.search(before) else None
    return (
        "key" if label.type == "SECRET" and len(value) >= KEY and len(value.split()) == 1 else None
    )


# ---- texts -----------------------------------------------------------------------------------------------------------


def texts() -> Iterator[Labelled]:
    """All labelled texts; the corpora where there are any."""
    for each in (*hard_texts(), *composite_texts()):
        yield each._replace(language=each.language.partition("-")[0])
    if "TEXTVEIL_CORPORA" in os.environ:
        for corpus, field in zip(CORPORA[:2], ("text", "user_query"), strict=True):
            path = Path(os.environ["TEXTVEIL_CORPORA"]) / corpus / f"{corpus}.shared.jsonl.gz"
            with gzip.open(path, "rt", encoding="utf-8") as file:
                known = {str(row["id"]): row[field] for row in map(json.loads, file)}
            yield from corpus_labels(corpus, known)
        yield from templates(Path(os.environ["TEXTVEIL_CORPORA"]))


COMPOSITE = "composite, "


def composite_texts() -> Iterator[Labelled]:
    """The texts in which something private stands beside something public; their kinds say so."""
    for each in hard_texts(COMPOSITE_TEXTS):
        yield each._replace(kind=COMPOSITE + each.kind)


def templates(corpora: Path) -> Iterator[Labelled]:
    """Sentences of presidio_synth of templates on which nothing was trained, and with which no pattern was written.

    Persons and identifiers are private in them, and for the rest it is not known.
    """
    for number, gold in enumerate(detection.synthetic(corpora, 1, untrained=True)):
        labels = []
        for start, end, type_ in sorted(gold.spans):
            known = detection.known(type_) or "OTHER"
            standing = "borderline" if known in NAMES[1:] else "private"
            labels.append(
                Label(
                    start, end, {"NATIONAL_ID": "ID", "IBAN": "ACCOUNT"}.get(known, known), standing
                )
            )
        yield Labelled(str(number), "en", SYNTH, gold.text, labels, "measure")


def sources(labelled: Labelled) -> tuple[str, ...]:
    """The groups of texts that a text is counted in."""
    if labelled.kind in CORPORA:
        return (labelled.kind,)
    if labelled.kind.startswith(COMPOSITE):
        language = "English" if labelled.language == "en" else "other languages"
        return ("composite", COMPOSITE + language, labelled.kind)
    pooled = "hard, English" if labelled.language == "en" else "hard, other languages"
    return (
        ("hard", pooled)
        if labelled.language == "en"
        else ("hard", pooled, f"hard, {labelled.language}")
    )


# ---- rates -----------------------------------------------------------------------------------------------------------

Values = list[tuple[int, float]]

WHOLE = (
    *("hard", "hard, English", "hard, other languages"),
    *("composite", "composite, English", "composite, other languages"),
    *CORPORA,
)
"""Sources with enough texts for rates of types."""

APART = ", with "


def rates(scores: Sequence[Score]) -> Iterator[tuple[str, str, Values]]:
    """Source, metric, and of each text or span the number of its text and 0 or 1."""
    cells: dict[tuple[str, str], Values] = {}
    for number, each in enumerate(scores):
        for source in sources(each.labelled):
            for metric, value in judged(each):
                if source in WHOLE or "," not in metric or APART in metric:
                    cells.setdefault((source, metric), []).append((number, float(value)))
    for (source, metric), values in sorted(cells.items()):
        yield source, metric, values


def judged(each: Score) -> Iterator[tuple[str, bool]]:
    """Every metric that a text has a say in."""
    private = [fate for fate in each.fates if fate.label.standing == "private"]
    for fate in private:
        yield "private spans gone", fate.gone
        yield f"private spans gone, {fate.label.type}", fate.gone
        yield "private spans with nothing telling left at their place", not fate.statement_form
        if (form := formed(each.labelled, fate.label)) is not None:
            yield "identifiers with a form gone", fate.gone
            yield f"identifiers with a form gone, {form}", fate.gone
    if private:
        yield "texts with no private span left", all(fate.gone for fate in private)
        yield (
            "texts with nothing telling left",
            not any(fate.statement_form or not fate.gone for fate in private),
        )
    else:
        apart = f"{APART}borderline cases" if "borderline" in each.standings else ""
        apart = f"{APART}invented persons" if "invented" in each.standings else apart
        yield f"texts without anything private altered{apart}", each.altered
    for fate in each.fates:
        if fate.label.standing != "private":
            what = "names" if fate.label.type in NAMES else "spans of other types"
            yield f"{fate.label.standing} {what} altered", fate.altered
            if what == "names":
                yield f"{fate.label.standing} names altered, {fate.label.type}", fate.altered
    for hit in (True, False):
        count = len(each.altered_words) if hit else each.words - len(each.altered_words)
        yield from (("ordinary words altered", hit) for _ in range(count))


def measured(scores: Sequence[Score], tool: str, use: str) -> Iterator[dict[str, Any]]:
    """Every rate as a row."""
    from textveil_bench.intervals import mean

    for source, metric, values in rates(scores):
        interval = mean(np.array([v for _, v in values]), np.array([n for n, _ in values]))
        yield {
            "what": f"prompts, {use}, {tool}, {source}: {metric}",
            "unit": "share",
            "release": tool,
            "source": source,
            "use": use,
            "metric": metric,
            "value": interval.value,
            "low": interval.low,
            "high": interval.high,
            "half_width": (interval.high - interval.low) / 2,
            "n": len(values),
            "texts": len({n for n, _ in values}),
        }


# ---- looking at failures ---------------------------------------------------------------------------------------------

AROUND = 45
"""Characters about a failure that are shown."""

KINDS = ("left", "form", "altered", "public", "words")
"""Failures: private spans that are left, those with a form, where a text without anything private begins to be altered,
public names altered, and ordinary words altered."""


class Failure(NamedTuple):
    """A failure of a text: a kind, the label's type, and its place."""

    score: Score
    kind: str
    type: str
    start: int
    end: int


def failures(each: Score) -> Iterator[Failure]:
    """Every failure of a text."""
    if each.outcome.changes and each.standings <= {"public"}:
        yield Failure(each, "altered", "", *each.outcome.changes[0][:2])
    for fate in each.fates:
        label = fate.label
        if label.standing == "private" and not fate.gone:
            yield Failure(each, "left", label.type, label.start, label.end)
            if formed(each.labelled, label) is not None:
                yield Failure(each, "form", label.type, label.start, label.end)
        if label.standing == "public" and label.type in NAMES and fate.altered:
            yield Failure(each, "public", label.type, label.start, label.end)
    at = -1
    for start, end in each.altered_words:
        if start > at:  # the words of one change are one failure
            at = next(change.end for change in each.outcome.changes if change.end > start)
            yield Failure(each, "words", "", start, max(end, at))


def told(failure: Failure) -> tuple[str, str]:
    """A failure in its text, and the same place in the release."""
    (labelled, outcome, *_), _, _, start, end = failure
    first, last = max(0, start - AROUND), min(len(labelled.text), end + AROUND)
    for change in outcome.changes:  # a change is shown whole
        if change.start < first < change.end:
            first = change.start
        if change.start < last < change.end:
            last = change.end
    near = [c for c in outcome.changes if first <= c.start < last]
    near = [c._replace(start=c.start - first, end=c.end - first) for c in near]
    shown = spelled(labelled.text[first:last], near, lambda c: f"[{c.shown}]")
    marked = f"{labelled.text[first:start]}⟦{labelled.text[start:end]}⟧{labelled.text[end:last]}"
    return " ".join(marked.split()), " ".join(shown.split())


def look(scores: Sequence[Score], count: int, types: Sequence[str], kinds: Sequence[str]) -> None:
    """Prints failures, each kind from all over the texts."""
    every = [failure for each in scores for failure in failures(each)]
    for kind in kinds:
        found = [
            failure
            for failure in every
            if failure.kind == kind and (not types or failure.type in types)
        ]
        print(
            f"\n== {kind}: {len(found)}  {dict(Counter(failure.type for failure in found).most_common())}"
        )
        for failure in found[:: max(1, len(found) // count)][:count]:
            before, after = told(failure)
            print(
                f"{failure.score.labelled.kind}/{failure.score.labelled.id} {failure.type}\n    {before}\n    {after}"
            )


def picked(scores: Iterable[Score], count: int) -> dict[str, list[dict[str, str]]]:
    """So many failures of each kind in written texts, chosen by a hash of where they are, not by what they say."""
    found = [each for one in scores if one.labelled.kind not in CORPORA for each in failures(one)]
    found.sort(key=lambda each: sha256(f"{each.score.labelled.id} {each.start}".encode()).digest())
    return {
        kind: [
            {
                "id": each.score.labelled.id,
                "type": each.type,
                **dict(zip(("text", "release"), told(each), strict=True)),
            }
            for each in [each for each in found if each.kind == kind][:count]
        ]
        for kind in KINDS
    }


# ---- speed -----------------------------------------------------------------------------------------------------------

PROMPT, PROMPTS = 58, 60
"""Words of a prompt whose time is taken, and the number of prompts."""
LONG = 200_000
"""Bytes of a long text."""


def speed(corpora: Path, repeat: int) -> Iterator[dict[str, Any]]:
    """Words a second of one core, and the seconds of a long text. Time is the processor's; prose is SQuAD's."""
    from textveil import Protector, Session
    from textveil.detect import load_detector

    with gzip.open(corpora / "squad_v11" / "dev.shared.jsonl.gz", "rt", encoding="utf-8") as file:
        prose = "\n".join(dict.fromkeys(json.loads(line)["context"] for line in file))
    words = prose.split()
    prompts = [" ".join(words[i * PROMPT : (i + 1) * PROMPT]) for i in range(PROMPTS)]
    plain = " ".join(word for word in words if not any(map(str.isdigit, word)))[:LONG]
    tagger, patterns, made = load_detector("tagger"), load_detector("patterns"), Protector("prompt")
    long = prose.encode()[:LONG].decode(errors="ignore")

    def spent(run: Callable[[], object]) -> float:
        run()
        taken = []
        for _ in range(repeat):
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
        return min(taken)

    alone = sorted(spent(lambda text=text: tagger.find([text])) for text in prompts)[PROMPTS // 2]
    for metric, unit, value in (
        (f"tagger, prompts of {PROMPT} words", "words/s", PROMPT / alone),
        (
            "patterns, prose without figures",
            "words/s",
            len(plain.split()) / spent(lambda: patterns.find([plain])),
        ),
        ("Protector, a text of 200 kB", "s", spent(lambda: made.protect(long, Session()))),
    ):
        yield {"what": f"prompts, speed: {metric}", "metric": metric, "unit": unit, "value": value}


# ---- running ---------------------------------------------------------------------------------------------------------


def tool(options: argparse.Namespace) -> tuple[str, Protect, dict[str, Any]]:
    """What is measured: its name, how it protects, and its options."""
    if options.hiding:
        return " + ".join(options.hiding), hiding(options.hiding), {"hiding": options.hiding}
    protect = {"level": options.level} if options.level else {}
    protect |= {"detectors": options.detectors} if options.detectors else {}
    overrides = {"protect": protect} if protect else {}
    named = ", ".join(
        [options.profile, *([options.level] if options.level else []), *(options.detectors or [])]
    )
    return named, protector(options.profile, **overrides), {"profile": options.profile, **overrides}


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--use", choices=("train", "measure", "both"), default="train", help="default: train"
    )
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="of texts that train, only those the tagger did not see",
    )
    parser.add_argument(
        "--source",
        action="append",
        help="texts of prompts, pupa, hard, or a language (de), or an id",
    )
    parser.add_argument("--profile", default="prompt", help="of the Protector (default: prompt)")
    parser.add_argument("--level", help="protect.level")
    parser.add_argument(
        "--detectors", nargs="+", help="protect.detectors in place of the profile's"
    )
    parser.add_argument(
        "--hiding", nargs="+", help="another tool: hide all that these detectors find, as presidio"
    )
    parser.add_argument(
        "--show",
        type=int,
        default=0,
        help="print so many failures of each kind, of texts that train",
    )
    parser.add_argument("--kind", action="append", choices=KINDS, help="of failures (default: all)")
    parser.add_argument("--type", action="append", default=[], help="of failures shown: PERSON")
    parser.add_argument(
        "--all", action="store_true", help="print rates of each type and language, too"
    )
    parser.add_argument(
        "--store", action="store_true", help="store the rows in rows/prompts.jsonl.gz"
    )
    parser.add_argument(
        "--report", action="store_true", help="measure and store all of the page, and write it"
    )
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs whose best time counts (default 3)"
    )
    options = parser.parse_args(given)
    if options.show and options.use != "train":
        parser.error("--show needs --use train: nobody looks at failures of texts that measure")
    return options


def judge(protect: Protect, chosen: Iterable[Labelled]) -> list[Score]:
    """The scores of texts."""
    return [score(each, protect(each.text)) for each in chosen]


def read(chosen: Iterable[Labelled]) -> list[Score]:
    """What becomes of written texts if what a second reader calls private is hidden where it stands."""
    labels = readers.second("hard")
    scores = []
    for each in chosen:
        if each.id in labels and each.kind not in CORPORA:
            private = [label for label in labels[each.id] if label.standing == "private"]
            hidden = [
                Change(label.start, label.end, f"<{label.type}>", placeholder=True)
                for label in private
            ]
            scores.append(score(each, Outcome(spelled(each.text, hidden), hidden)))
    return scores


def measurements(repeat: int) -> Iterator[dict[str, Any]]:
    """All rows of the page: texts that measure, another tool, the readers, and speed. Writes failures, too."""
    given = [each for each in texts() if each.use == "measure"]
    scores = judge(protector("prompt"), given)
    yield from measured(scores, "prompt", "measure")
    kept = {**read_circumstances(), "failures": picked(scores, 10)}
    FAILURES.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    yield from measured(judge(hiding(["presidio"]), given), "presidio", "measure")
    yield from readers.measurements()
    yield from measured(read(given), "second reader", "measure")
    if "TEXTVEIL_CORPORA" in os.environ:
        yield from speed(Path(os.environ["TEXTVEIL_CORPORA"]), repeat)


def tabled(rows: Sequence[dict[str, Any]], *, by_type: bool) -> str:
    """Rates for the eye: a line for each metric, a column for each source."""
    cells = {(row["metric"], row["source"]): row for row in rows}
    groups = sorted({source for _, source in cells if by_type or source in WHOLE})
    metrics = sorted(
        {metric for metric, _ in cells if by_type or "," not in metric or APART in metric}
    )
    lines = [" " * 62 + "".join(f"{source.removeprefix('hard, '):>17}" for source in groups)]
    for metric in metrics:
        found = [cells.get((metric, source)) for source in groups]
        told = ["" if row is None else f"{row['value']:.3f} of {row['n']:>5}" for row in found]
        lines.append(f"{metric:62}" + "".join(f"{cell:>17}" for cell in told))
    return "\n".join(lines)


def main() -> None:
    """Measures, prints, and stores if asked to."""
    options = arguments()
    if options.report:
        store(measurements(options.repeat), {"profile": "prompt"})
        import report

        report.write_documents()
        return
    name, protect, config = tool(options)
    wanted = set(options.source or ())
    chosen = [
        each
        for each in texts()
        if (
            not wanted
            or wanted & {*sources(each), f"{each.kind}/{each.id}", each.id, each.language}
        )
        and (each.held_out or not options.held_out)
    ]
    rows, shown = [], []
    for use in USES if options.use == "both" else (options.use,):
        scores = judge(protect, (each for each in chosen if each.use == use))
        shown += scores if options.show else []
        rows += list(measured(scores, name, use))
    for use in dict.fromkeys(row["use"] for row in rows):
        print(f"texts that {use}, {name}")
        print(tabled([row for row in rows if row["use"] == use], by_type=options.all))
    if options.show:
        look(shown, options.show, options.type, options.kind or KINDS)
    if options.store:
        store(rows, config)


def store(rows: Iterable[dict[str, Any]], config: dict[str, Any]) -> None:
    """Stores rows with where and when they were measured."""
    shared = {**read_circumstances("phonenumbers", "presidio-analyzer", "spacy"), "config": config}
    rowfiles.keep(ROWS, ({**row, **shared} for row in rows))


if __name__ == "__main__":
    main()
