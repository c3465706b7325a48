"""The tables of the page about prompts, from the stored rows: what is to be reached, and what was measured.

In: rows/prompts.jsonl.gz and rows/prompts_failures.json. Out: Markdown, by the name that stands in a mark of the page.
Not here: measuring (`prompts`), and filling in pages (`report`).
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import rowfiles

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows" / "prompts.jsonl.gz"
FAILURES = HERE / "rows" / "prompts_failures.json"

Row = dict[str, Any]


class Target(NamedTuple):
    """What is to be reached: the metric, where, the bound (None: only shown), and whether it is a lower one."""

    metric: str
    source: str
    bound: float | None
    at_least: bool


ALTERED, PUBLIC = "texts without anything private altered", "public names altered"
WORDS, GONE = "ordinary words altered", "private spans gone"
CLEAN, FORMED = "texts with no private span left", "identifiers with a form gone"
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
    Target(GONE, "pupa", None, at_least=True),
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
"""What the page calls the groups of texts."""

LANGUAGES = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "pt": "Portuguese", "it": "Italian",
    "nl": "Dutch", "pl": "Polish", "tr": "Turkish", "vi": "Vietnamese", "zh": "Chinese", "ja": "Japanese",
    "ko": "Korean", "ru": "Russian", "ar": "Arabic", "hi": "Hindi",
}  # fmt: skip
KINDS = {
    "left": "private spans left",
    "form": "identifiers left",
    "altered": "altered in texts without anything private",
    "public": "public names altered",
    "words": "ordinary words altered",
}


SHOWN = 3
"""Failures of each kind on the page; all that were picked are in the file."""


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
    return f"{row['value']:.3f} ({row['low']:.3f}-{row['high']:.3f}), n={row['n']:,}"


def targets() -> str:
    """What is to be reached, what was measured, and what another tool does on the same texts."""
    body = []
    for metric, source, bound, at_least in TARGETS:
        if (row := rate(metric, source)) is not None:
            asked = ""
            if bound is not None:
                met = row["value"] >= bound if at_least else row["value"] <= bound
                asked = f"{'≥' if at_least else '≤'}{bound:g}{'' if met else ' **missed**'}"
            other = rate(metric, source, tool="presidio")
            beside = "" if other is None else f"{other['value']:.3f}"
            body.append([metric, SOURCES[source], asked, cell(row), beside])
    return lines(("what", "on", "target", "measured", "Presidio"), body)


def by_language() -> str:
    """The share of private spans that is gone in each language of the written texts."""
    named = {name: rate(GONE, f"hard, {code}") for code, name in LANGUAGES.items() if code != "en"}
    named = {"English": rate(GONE, "hard, English")} | named
    return ", ".join(f"{name} {row['value']:.3f}" for name, row in named.items() if row is not None)


def speed() -> str:
    """What was measured, and what is to be reached."""
    found = []
    for metric, (bound, at_least) in SPEED.items():
        if (row := stored().get(f"prompts, speed: {metric}")) is not None:
            reached = row["value"] >= bound if at_least else row["value"] <= bound
            value = f"{row['value']:,.0f}" if row["value"] >= 100 else f"{row['value']:.3g}"
            asked = f"target {'≥' if at_least else '≤'}{bound:,.0f}{'' if reached else ', missed'}"
            found.append(f"- {metric}: {value} {row['unit']} ({asked})")
    return "\n".join(found)


def failures() -> str:
    """What the first failures of each kind are about, of those that were picked."""
    found = json.loads(FAILURES.read_text(encoding="utf-8"))["failures"]
    body = [
        [title, "; ".join(map(_marked, found[kind][:SHOWN]))]
        for kind, title in KINDS.items()
        if found[kind]
    ]
    return lines(("kind", "examples"), body)


def _marked(failure: dict[str, str]) -> str:
    """The place of a text that is marked."""
    (about,) = re.findall("⟦(.+?)⟧", failure["text"])
    return f"`{about}`".replace("|", "\\|")


TABLES: dict[str, Callable[[], str]] = {
    "targets": targets,
    "languages": by_language,
    "speed": speed,
    "failures": failures,
}
"""By the name in a mark of the page."""
