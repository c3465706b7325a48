"""The tables of the page about prompts, from the stored rows: what is to be reached, and what was measured.

In: rows/prompts.jsonl.gz and rows/prompts_failures.json. Out: Markdown, by the name that stands in a mark of the page.
Not here: measuring (`prompts`), and filling in pages (`report`).
"""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import rowfiles

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows" / "prompts.jsonl.gz"
FAILURES = HERE / "rows" / "prompts_failures.json"

Row = dict[str, Any]


class Target(NamedTuple):
    """What is to be reached: the metric, where, the bound, and whether it is a lower one."""

    metric: str
    source: str
    bound: float
    at_least: bool


ALTERED, PUBLIC = "texts without anything private altered", "public names altered"
WORDS, GONE = "ordinary words altered", "private spans gone"
CLEAN, FORMED = "texts with no private span left", "identifiers with a form gone"
TELLING = "private spans with nothing telling left at their place"
TARGETS = (
    Target(ALTERED, "prompts", 0.03, at_least=False),
    Target(ALTERED, "hard", 0.03, at_least=False),
    Target(PUBLIC, "prompts", 0.08, at_least=False),
    Target(PUBLIC, "hard", 0.08, at_least=False),
    Target(WORDS, "prompts", 0.001, at_least=False),
    Target(WORDS, "hard", 0.005, at_least=False),
    Target(GONE, "hard, English", 0.95, at_least=True),
    Target(GONE, "presidio_synth", 0.95, at_least=True),
    Target(GONE, "hard, other languages", 0.85, at_least=True),
    Target(CLEAN, "hard", 0.85, at_least=True),
    Target(FORMED, "hard", 0.98, at_least=True),
)
SPEED = {
    "tagger, prompts of 58 words": (4_000.0, True),
    "patterns, prose without figures": (100_000.0, True),
    "Protector, a text of 200 kB": (10.0, False),
}
SOURCES = {
    "prompts": "prompts",
    "pupa": "PUPA",
    "presidio_synth": "templates",
    "hard": "written texts",
    "hard, English": "written, English",
    "hard, other languages": "written, other languages",
}
"""What the page calls the groups of texts; the languages follow."""

MAIN = (GONE, TELLING, CLEAN, FORMED, ALTERED, PUBLIC, WORDS)
APART = (
    f"{ALTERED}, with invented persons",
    f"{ALTERED}, with borderline cases",
    "invented names altered",
    "borderline names altered",
)
LANGUAGES = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "pt": "Portuguese", "it": "Italian",
    "nl": "Dutch", "pl": "Polish", "tr": "Turkish", "vi": "Vietnamese", "zh": "Chinese", "ja": "Japanese",
    "ko": "Korean", "ru": "Russian", "ar": "Arabic", "hi": "Hindi",
}  # fmt: skip
KINDS = {
    "left": "Private spans that are left",
    "form": "Identifiers with a form that are left",
    "altered": "Texts without anything private that were altered",
    "public": "Public names that were altered",
    "words": "Ordinary words that were altered",
}


@cache
def stored() -> dict[str, Row]:
    """By what was measured, the row that was written last."""
    return {row["what"]: row for row in rowfiles.read(ROWS)}


def rate(metric: str, source: str, *, tool: str = "prompt", use: str = "measure") -> Row | None:
    """The newest row of a rate."""
    return stored().get(f"prompts, {use}, {tool}, {source}: {metric}")


def lines(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    columns = list(head)
    rows = [columns, ["---"] * len(columns), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def cell(row: Row | None) -> str:
    """A rate with its interval, and of how many."""
    if row is None:
        return ""
    return f"{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f}), n = {row['n']:,}"


def targets() -> str:
    """What is to be reached beside what was measured."""
    body = []
    for metric, source, bound, at_least in TARGETS:
        if (row := rate(metric, source)) is not None:
            reached = row["value"] >= bound if at_least else row["value"] <= bound
            asked = f"at {'least' if at_least else 'most'} {bound:g}"
            body.append([metric, SOURCES[source], asked, cell(row), "yes" if reached else "**no**"])
    return lines(("what", "on", "target", "measured", "reached"), body)


def by_source() -> str:
    """The main rates of each group of texts."""
    named = [*SOURCES, *(f"hard, {code}" for code in LANGUAGES if code != "en")]
    titles = [SOURCES.get(source) or LANGUAGES[source.removeprefix("hard, ")] for source in named]
    return _by(zip(named, titles, strict=True), MAIN)


def apart() -> str:
    """Invented persons and borderline cases."""
    return _by(SOURCES.items(), APART)


def _by(sources: Iterable[tuple[str, str]], metrics: tuple[str, ...]) -> str:
    body = [
        [title, *(cell(rate(metric, source)) for metric in metrics)] for source, title in sources
    ]
    return lines(("texts", *metrics), [row for row in body if any(row[1:])])


def by_type() -> str:
    """Private spans gone, by type."""
    return _typed(GONE, [source for source in SOURCES if source != "hard"])


def by_form() -> str:
    """Identifiers with a form, by what they are."""
    return _typed(FORMED, ["hard, English", "hard, other languages", "presidio_synth"])


def _typed(metric: str, sources: list[str]) -> str:
    begins = f"prompts, measure, prompt, {{}}: {metric}, "
    found = {
        what.removeprefix(begins.format(source))
        for source in sources
        for what in stored()
        if what.startswith(begins.format(source))
    }
    body = [
        [type_, *(cell(rate(f"{metric}, {type_}", source)) for source in sources)]
        for type_ in sorted(found)
    ]
    return lines(("", *(SOURCES[source] for source in sources)), body)


def beside() -> str:
    """The profile beside another tool."""
    asked = [(metric, source) for metric, source, *_ in TARGETS]
    body = [
        [
            metric,
            SOURCES[source],
            *(cell(rate(metric, source, tool=tool)) for tool in ("prompt", "presidio")),
        ]
        for metric, source in asked
    ]
    return lines(("what", "on", "profile `prompt`", "Presidio's recognizers"), body)


def agreed() -> str:
    """How far two readers agree."""
    metrics = ("span F1, same ends", "span F1, overlapping", "kappa of private")
    body = [
        [
            SOURCES.get(source, source),
            *(cell(stored().get(f"prompts, readers, {source}: {metric}")) for metric in metrics),
        ]
        for source in ("prompts", "pupa", "hard", "all")
    ]
    return lines(("texts", *metrics), body)


def second() -> str:
    """What a second reader would reach of the written texts."""
    asked = [(metric, source) for metric, source, *_ in TARGETS if source.startswith("hard")]
    body = [
        [metric, SOURCES[source], cell(rate(metric, source, tool="second reader"))]
        for metric, source in asked
    ]
    return lines(("what", "on", "second reader"), body)


def speed() -> str:
    """What is to be reached, and what was measured."""
    body = []
    for metric, (bound, at_least) in SPEED.items():
        if (row := stored().get(f"prompts, speed: {metric}")) is not None:
            reached = row["value"] >= bound if at_least else row["value"] <= bound
            asked = f"at {'least' if at_least else 'most'} {bound:,.0f} {row['unit']}"
            value = f"{row['value']:,.0f}" if row["value"] >= 100 else f"{row['value']:.3g}"
            body.append([metric, asked, f"{value} {row['unit']}", "yes" if reached else "**no**"])
    return lines(("what", "target", "measured", "reached"), body)


def failures() -> str:
    """The failures that were picked, as they are."""
    return "\n\n".join(_kinds(json.loads(FAILURES.read_text(encoding="utf-8"))["failures"]))


def _kinds(found: dict[str, list[dict[str, str]]]) -> Iterator[str]:
    for kind, title in KINDS.items():
        yield f"### {title}"
        for each in found[kind]:
            named = f"`{each['id']}`" + (f", {each['type']}" if each["type"] else "")
            yield f"{named}:\n\n~~~~\n{each['text']}\n{each['release']}\n~~~~"


TABLES: dict[str, Callable[[], str]] = {
    "targets": targets,
    "sources": by_source,
    "apart": apart,
    "types": by_type,
    "forms": by_form,
    "beside": beside,
    "readers": agreed,
    "second": second,
    "speed": speed,
    "failures": failures,
}
"""By the name in a mark of the page."""
