"""The tables of the page on other tools, from the stored rows, and what others have published.

In: rows/scoreboard.jsonl. Out: Markdown, by the name that stands in a mark of the page.
Not here: measuring (`scoreboard`), and filling in pages (`report`).
"""

from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import rowfiles
from prompts_page import Row, lines

ROWS = Path(__file__).resolve().parent / "rows" / "scoreboard.jsonl"

LANES = {name: name for name in ("core", "inflection", "identifiers", "address", "pdf")}
LANES["robustness"] = "damaged"
"""The benchmark's lanes, and what the page calls them."""
GONE, PERSONS = "private spans gone", "private spans gone, PERSON"
CLEAN, HARMLESS = "texts with no private span left", "texts without anything private altered"
NOTHING = "private spans with nothing telling left at their place"
PUBLIC, WORDS = "public names altered", "ordinary words altered"
RIGHT, HIDDEN = "hidden words that are private", "private words hidden"
WRITTEN = {
    GONE: "private spans hidden", NOTHING: "nothing telling left", PERSONS: "persons hidden", CLEAN: "texts clean",
    HARMLESS: "harmless texts altered", PUBLIC: "public names altered", WORDS: "ordinary words altered",
}  # fmt: skip
COLUMNS = {
    "hard": WRITTEN,
    "composite": WRITTEN,
    "prompts": WRITTEN,
    "presidio_synth": {metric: WRITTEN[metric] for metric in (GONE, NOTHING, PERSONS, CLEAN)},
    "tab": {
        "applicants gone": "applicants hidden", "persons gone": "persons hidden", "dates gone": "dates hidden",
        HIDDEN: "masked words hidden", RIGHT: "hidden words that are masked",
    },
    "meddocan": {
        GONE: "private spans hidden", CLEAN: "texts clean", HIDDEN: HIDDEN, RIGHT: RIGHT,
    },
    "polish": {
        **{f"{lane}: found with their label": heading for lane, heading in LANES.items()},
        "negative: false alarms": "false alarms, negative", "all lanes: false alarms": "false alarms, all",
    },
}  # fmt: skip
"""By table the metrics that stand in it, and their headings."""
CORPUS = {"polish": "pl_pii_bench"}
COST = {
    "words a second, prompts": "words a second, prompts",
    "words a second, tab": "words a second, judgments",
    "memory": "memory, MB",
    "megabytes": "installed, MB",
    "start": "seconds to the first release",
}
RESTORED = "texts exactly restored"


class Published(NamedTuple):
    """A figure that others have published of a system that is not on the index, and where it stands."""

    system: str
    figure: str
    data: str
    source: str


PUBLISHED = (
    Published(
        "openai/privacy-filter",
        "F1 0.96, precision 0.940, recall 0.980",
        "PII-Masking-300k",
        "[report](https://insights.marvin-42.com/articles/openais-privacy-filter-runs-locally-with-128k-context-and-9743-corrected-f1?lang=en)",
    ),
    Published(
        "GLiNER2-PII",
        "F1 0.477 by span",
        "SPY",
        "[model card](https://huggingface.co/mateoopa/gliner2-privacy-filter-PII-multi)",
    ),
    Published(
        "Rampart",
        "0.984 of private terms hidden, 0.917 of public terms kept",
        "30,000 rows of OpenPII 1.5M in 7 languages",
        "[its wiki](https://github.com/nationaldesignstudio/rampart/wiki)",
    ),
    Published(
        "blackbar-nano",
        "0.969 of private spans covered, 0.109 of alarms false; F1 0.518 by span (there GLiNER2-PII 0.390)",
        "3,895 rows of its own; SPY",
        "[package](https://pypi.org/project/blackbar-nano/)",
    ),
)


@cache
def stored() -> tuple[Row, ...]:
    """All rows."""
    return tuple(rowfiles.read(ROWS))


def tools(rows: Iterable[Row]) -> list[str]:
    """The tools of rows, in their order."""
    return [*dict.fromkeys(row["release"] for row in rows)]


def cell(row: Row | None) -> str:
    """A rate with its interval, or a number."""
    if row is None:
        return ""
    if row["unit"] != "share":
        return f"{row['value']:,.0f}" if row["value"] >= 10 else f"{row['value']:.1f}"
    ends = f" ({row['low']:.3f}-{row['high']:.3f})" if row.get("low") is not None else ""
    return f"{row['value']:.3f}{ends}"


def rates(table: str, *, published: bool = False) -> str:
    """A line for each tool, and a column for each metric that any tool has, with the number of spans or texts."""
    own = [
        row
        for row in stored()
        if row["corpus"] == CORPUS.get(table, table) and ("published" in row) == published
    ]
    cells = {(row["release"], row["metric"]): row for row in own}
    shown = {
        metric: heading
        for metric, heading in COLUMNS[table].items()
        if any(row["metric"] == metric for row in own)
    }
    counts = {row["metric"]: row.get("n") for row in own if row["unit"] == "share"}
    heads = [
        f"{heading}, n={counts[metric]:,}" if counts.get(metric) else heading
        for metric, heading in shown.items()
    ]
    body = [[tool, *(cell(cells.get((tool, metric))) for metric in shown)] for tool in tools(own)]
    return lines(("tool", *heads), body)


def cost() -> str:
    """What a tool costs, and whether answers come back."""
    own = [row for row in stored() if row["corpus"] == "cost"]
    cells = {(row["release"], row["metric"]): row for row in own}
    back = {row["release"]: row for row in stored() if row["metric"] == RESTORED}
    body = [
        [
            tool,
            *(cell(cells.get((tool, metric))) for metric in COST),
            cell(back[tool]) if tool in back else "does not restore",
        ]
        for tool in tools(own)
    ]
    return lines(("tool", *COST.values(), "exactly restored"), body)


def read() -> str:
    """How many texts were read of each corpus, and which versions of the tools."""
    versions: dict[str, str] = {}
    counts: dict[str, int] = {}
    limits = set()
    for row in stored():
        if "published" in row:
            continue
        versions |= row["tool"]
        limits.add(row["limit"])
        if "texts" in row and row["corpus"] != "all":
            counts[row["corpus"]] = max(counts.get(row["corpus"], 0), row["texts"])
    said = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    part = "**Only a sample was read so far**. " if limits - {None} else ""
    named = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return f"{part}Texts: {said}. Versions: {named}."


def elsewhere() -> str:
    """What others have published."""
    return lines(("system", "published", "on", "source"), PUBLISHED)


TABLES: dict[str, Callable[[], str]] = {
    **{name: partial(rates, name) for name in COLUMNS},
    "published": lambda: rates("polish", published=True),
    "cost": cost,
    "read": read,
    "elsewhere": elsewhere,
}
"""By the name in a mark of the page."""
