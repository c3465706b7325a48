"""Runs textveil and other tools on the same texts, and judges all of them alike. `make scoreboard`.

In: written texts that measure; corpora where $TEXTVEIL_CORPORA names their folder; the environment in which other tools
are (build/scoreboard). Out: rows in rows/scoreboard.jsonl, from which docs/understand/scoreboard.md is made.
Not here: what runs in those environments (`peers`), what is right (`outside`, `prompts`), and the page
(`scoreboard_page`).

Each tool is one process, with one thread, and reads every text once.

    python scoreboard.py [--only textveil] [--on hard] [--limit 20] [--store]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import outside  # the files beside this one
import prompts
import rowfiles
from outside import Corpus, Row, Values
from peers import TOOLS
from prompts import Change, Outcome
from training.labels import COMPOSITE_TEXTS, HARD_TEXTS, Labelled, hard_texts

from textveil_bench.circumstances import read_circumstances

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ROWS = HERE / "rows" / "scoreboard.jsonl"
PEERS = ROOT / "build" / "scoreboard" / "bin" / "python"


def written(folder: Path) -> list[Labelled]:
    """The written texts of a folder that measure."""
    return [
        each._replace(language=each.language.partition("-")[0])
        for each in hard_texts(folder)
        if each.use == "measure"
    ]


CORPORA = {
    "hard": Corpus("", lambda _: written(HARD_TEXTS), outside.judge_labelled),
    "composite": Corpus("", lambda _: written(COMPOSITE_TEXTS), outside.judge_labelled),
    **{name: outside.CORPORA[name] for name in ("prompts", "presidio_synth")},
    **{name: outside.CORPORA[name] for name in ("tab", "meddocan", "pl_pii_bench")},
}
"""All corpora, by name; the written texts have languages of their own."""

TYPED = "private spans gone, PERSON"
SPOKEN = {
    "meddocan": ("textveil", "presidio", "scrubadub"),
    "pl_pii_bench": ("textveil", "presidio"),
}
"""What the tools begin with that know the language of a corpus; the others are not asked about it."""


class Text(NamedTuple):
    """A text of a corpus, and its language."""

    corpus: str
    language: str
    text: Any


def texts(names: Sequence[str], folder: Path | None, limit: int | None) -> list[Text]:
    """The texts of these corpora; those that are missing are left out, which is said."""
    found = []
    for name in names:
        corpus = CORPORA[name]
        if folder is None and corpus.language:
            print(f"{name}: $TEXTVEIL_CORPORA names no folder, skipped", file=sys.stderr)
            continue
        try:
            every = outside.sample(corpus.load(folder or Path()), limit)
        except FileNotFoundError:
            print(f"{name}: not in the folder of corpora, skipped", file=sys.stderr)
            continue
        found += [Text(name, language(each, corpus), each) for each in every]
    return found


def language(text: Any, corpus: Corpus) -> str:
    """The language that a text says, or its corpus."""
    return getattr(text, "language", "") or corpus.language


def asked(tool: str, given: Sequence[Text]) -> list[Text]:
    """The texts whose corpus a tool knows the language of."""
    return [each for each in given if tool.startswith(SPOKEN.get(each.corpus, ""))]


def run(tool: str, given: Sequence[Text]) -> tuple[list[Row], Row]:
    """What a tool makes of texts, and what it says of itself."""
    own = tool.startswith("textveil")  # `peers` then needs a file beside it, and this environment
    command = [sys.executable] if own else [str(PEERS), "-I"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as asked:
        for each in given:
            print(json.dumps({"language": each.language, "text": each.text.text}), file=asked)
        asked.seek(0)
        with tempfile.TemporaryFile("w+", encoding="utf-8") as answered:
            subprocess.run(
                [*command, HERE / "peers.py", tool],
                stdin=asked,
                stdout=answered,
                check=True,
                env=environment,
            )
            answered.seek(0)
            *lines, whole = map(json.loads, answered)
    return lines, whole


def outcome(text: str, spans: Sequence[Sequence[Any]], *, merged: bool = True) -> Outcome:
    """A release in which a placeholder stands for each place; places that overlap are one."""
    found: list[Change] = []
    for start, end, shown in sorted(map(tuple, spans)):
        if merged and found and start < found[-1].end:
            found[-1] = found[-1]._replace(end=max(end, found[-1].end))
        else:
            found.append(Change(start, end, shown, shown.startswith("<")))
    return Outcome(prompts.spelled(text, found) if merged else "", found)


def judged(each: Text, line: Row) -> Values:
    """What the corpus says of a release; types of names and identifiers other than persons are left out."""
    typed = each.corpus == "pl_pii_bench"  # labels count there, and a place may have two
    release = outcome(each.text.text, line["spans"], merged=not typed)
    for metric, value in CORPORA[each.corpus].judge(each.text, release):
        if "," not in metric or metric == TYPED:
            yield metric, value


def measured(tool: str, given: Sequence[Text], lines: Sequence[Row], whole: Row) -> Iterator[Row]:
    """The rows of a tool."""
    pairs = [*zip(given, lines, strict=True)]
    for name in dict.fromkeys(each.corpus for each in given):
        own = [(each, line) for each, line in pairs if each.corpus == name]
        yield from outside.rows("scoreboard", name, tool, [[*judged(*pair)] for pair in own])
        words = sum(len(each.text.text.split()) for each, _ in own)
        seconds = sum(line["seconds"] for _, line in own)
        yield cost(tool, f"words a second, {name}", words / seconds, "words/s")
    for metric, unit in (("megabytes", "MB"), ("memory", "MB"), ("start", "s")):
        yield cost(tool, metric, whole[metric], unit)
    restored = [[("texts exactly restored", line["restored"])] for line in lines]
    if None not in (value for ((_, value),) in restored):
        yield from outside.rows("scoreboard", "all", tool, restored)


def cost(tool: str, metric: str, value: float, unit: str) -> Row:
    """A row of what a tool costs."""
    what = f"scoreboard, cost, {tool}: {metric}"
    named = {"what": what, "corpus": "cost", "release": tool, "metric": metric}
    return {**named, "value": value, "unit": unit, "low": None, "high": None}


def main() -> None:
    """Measures, prints, and stores if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=TOOLS, help="a tool (default: all)")
    parser.add_argument("--on", action="append", choices=CORPORA, help="a corpus (default: all)")
    parser.add_argument("--limit", type=int, help="so many texts of each corpus")
    parser.add_argument("--store", action="store_true", help="store the rows, and write the page")
    options = parser.parse_args()
    folder = os.environ.get("TEXTVEIL_CORPORA")
    given = texts(options.on or [*CORPORA], Path(folder) if folder else None, options.limit)
    shared = {**read_circumstances(), "limit": options.limit}
    for tool in options.only or TOOLS:
        own = asked(tool, given)
        lines, whole = run(tool, own)
        found = [*measured(tool, own, lines, whole)]
        for row in found:
            print(outside.told(row), flush=True)
        if options.store:
            told = {**shared, "tool": whole["versions"]}
            rowfiles.keep(ROWS, [{**row, **told} for row in found])
    if options.store:
        if "pl_pii_bench" in (options.on or CORPORA) and folder:
            rowfiles.keep(ROWS, outside.published(Path(folder)))
        import report

        report.write_documents()


if __name__ == "__main__":
    main()
