"""Measures what becomes of private names beside public text: `python benchmarks/beside.py --store`.

In: written and composite texts that measure; news, encyclopedia and documentation, from
$TEXTVEIL_CORPORA and Python's own library. Out: rows/beside.jsonl.
Not here: what is scored and how (`prompts`).

- Glued: each text that measures, with 80 words of each kind of public text before, behind and
  around it.
- Frames: 20 names in 12 everyday sentences, before, inside and behind such a text, on its own line
  or not.
"""

import argparse
import gzip
import inspect
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import prompts  # the files beside this one
import rowfiles
from rich.progress import track

from textveil_bench.circumstances import read_circumstances
from textveil_bench.intervals import mean

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from training.labels import Label, Labelled, hard_texts

ROWS = Path(__file__).resolve().parent / "rows" / "beside.jsonl"

WORDS = 80
"""Words of public text beside another."""

PLACES = ("before", "behind", "around")
"""Where the public text stands."""

MODULES = ("argparse", "asyncio", "logging", "pathlib", "subprocess", "datetime", "statistics")
"""Modules whose documentation is public text."""

NAMES = (
    "Marek Sobotka",
    "Rita Duarte",
    "Tomasz Wilk",
    "Anna Kowalska",
    "John Smith",
    "Peter Schmidt",
    "Maria Garcia",
    "Yusuf Demir",
    "Leila Haddad",
    "Oluwaseun Adeyemi",
    "Priya Raghavan",
    "Kenji Morita",
    "Siobhan Keane",
    "Lars Lindqvist",
    "Chloe Marchand",
    "Dmitri Volkov",
    "Hannah Brandt",
    "Rosa Ferreira",
    "Amara Nwosu",
    "Wei Zhang",
)
FRAMES = (
    "{} missed the appointment on Tuesday and asked for a refund.",
    "Please tell {} that the keys are at the front desk.",
    "{} called twice today about the invoice.",
    "I spoke with {} after the meeting.",
    "My neighbour {} still has our ladder.",
    "{} wants to return the shoes.",
    "The report was written by {} last night.",
    "Ask {} for the password of the printer.",
    "{} did not pay the rent in March.",
    "We should promote {} next year.",
    "{} is allergic to penicillin.",
    "Can you summarise this for {}?",
)


def read_public(corpora: Path) -> dict[str, list[str]]:
    """Reads public texts of each kind, each of at least `WORDS` words.

    Args:
        corpora: the folder of corpora.
    """
    news = [
        row.split("\t")[2].replace("\\", " ").strip()
        for row in _read_lines(corpora / "ag_news" / "test.shared.tsv.gz")[1:]
    ]
    articles = [
        re.sub(r" @(.)@ ", r"\1", row.strip())
        for row in _read_lines(corpora / "wikitext2" / "test_raw.shared.txt.gz")
        if not row.strip().startswith("=")
    ]
    encyclopedia = [re.sub(r" ([,.;:)]|'s\b)|(?<=\() ", r"\1", text) for text in articles]
    documents = [
        document
        for name in MODULES
        for item in vars(__import__(name)).values()
        if (document := inspect.getdoc(item))
    ]
    found = {
        "news": [" ".join(news[i : i + 4]) for i in range(0, len(news) - 4, 4)],
        "encyclopedia": encyclopedia,
        "documentation": documents,
    }
    return {
        kind: [" ".join(words[:WORDS]) for words in map(str.split, texts) if len(words) >= WORDS]
        for kind, texts in found.items()
    }


def _read_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.readlines()


def glue(text: Labelled, public: str, place: str) -> Labelled:
    """Puts public text before, behind or around a labelled one, as paragraphs of their own."""
    cut = {"before": len(public), "behind": 0, "around": find_middle(public)}[place]
    before, behind = public[:cut].strip(), public[cut:].strip()
    first = before + "\n\n" if before else ""
    labels = [
        Label(each.start + len(first), each.end + len(first), each.type, each.standing)
        for each in text.labels
    ]
    whole = first + text.text + ("\n\n" + behind if behind else "")
    return text._replace(text=whole, labels=labels)


def find_middle(text: str) -> int:
    """Finds the end of a sentence nearest to the middle of a text."""
    ends = [match.end() for match in re.finditer(r"[.!?] ", text)] or [len(text)]
    return min(ends, key=lambda end: abs(2 * end - len(text)))


Values = list[tuple[int, float]]


def measure_glued(
    protect: prompts.Protect, public: dict[str, list[str]], texts: Sequence[Labelled]
) -> Iterator[tuple[str, Values]]:
    """Yields each metric with the number of the text and 0 or 1 for each span."""
    cells: dict[str, Values] = {}
    random = Random(1)
    for number, text in enumerate(track(texts, "glued")):
        variants = {"alone": text} | {
            f"{kind} {place}": glue(text, random.choice(several), place)
            for kind, several in public.items()
            for place in PLACES
        }
        for name, variant in variants.items():
            scored = prompts.score(variant, protect(variant.text))
            for fate in scored.fates:
                if fate.label.standing == "private":
                    what = "persons" if fate.label.type == "PERSON" else "other private spans"
                    value = (number, float(fate.gone))
                    cells.setdefault(f"{what} gone, {name}", []).append(value)
                    if name != "alone":
                        kind = name.rpartition(" ")[0]
                        cells.setdefault(f"{what} gone, {kind}", []).append(value)
    yield from sorted(cells.items())


def measure_frames(
    protect: prompts.Protect, public: dict[str, list[str]]
) -> Iterator[tuple[str, Values]]:
    """Yields the share of names gone in everyday sentences beside each kind of text."""
    random = Random(2)
    for kind, several in public.items():
        cells: dict[str, Values] = {}
        for number, name in enumerate(track(NAMES, f"names in {kind}")):
            for frame in FRAMES:
                text, said = random.choice(several), frame.format(name)
                middle = find_middle(text)
                places = {
                    "before": f"{said} {text}",
                    "inside": f"{text[:middle].rstrip()} {said} {text[middle:]}",
                    "behind": f"{text} {said}",
                    "on a line of its own": f"{text[:middle].rstrip()}\n\n{said}\n\n{text[middle:]}",
                }
                for place, whole in places.items():
                    release = protect(whole).text
                    gone = not any(part in release for part in name.split())
                    cells.setdefault(f"names gone in a frame, {kind}, {place}", []).append(
                        (number, float(gone))
                    )
        yield from cells.items()


def main() -> None:
    """Measures, prints, and stores if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--use", choices=("train", "measure"), default="measure")
    parser.add_argument("--limit", type=int, help="the most texts of a set")
    parser.add_argument("--profile", default="prompt", help="of the Protector (default: prompt)")
    parser.add_argument("--only", choices=("glued", "frames"), help="default: both")
    parser.add_argument("--store", action="store_true", help=f"store the rows in rows/{ROWS.name}")
    options = parser.parse_args()
    if "TEXTVEIL_CORPORA" not in os.environ:
        parser.error("name the folder of corpora: TEXTVEIL_CORPORA=FOLDER (see training/README.md)")
    public = read_public(Path(os.environ["TEXTVEIL_CORPORA"]))
    protect = prompts.protector(options.profile)
    sets = {"written texts": [*hard_texts()], "composite texts": [*prompts.composite_texts()]}
    rows: list[dict[str, Any]] = []
    measured: list[tuple[str, tuple[str, Values]]] = []
    if options.only != "frames":
        for name, texts in sets.items():
            chosen = [
                text
                for text in texts
                if text.use == options.use and (text.use == "measure" or text.held_out)
            ]
            Random(3).shuffle(chosen)
            glued = measure_glued(protect, public, chosen[: options.limit])
            measured += [(name, each) for each in glued]
    if options.only != "glued":
        measured += [("frames", each) for each in measure_frames(protect, public)]
    for source, (metric, values) in measured:
        interval = mean(np.array([v for _, v in values]), np.array([n for n, _ in values]))
        print(f"{source:16} {metric:58} {interval.value:.3f} of {len(values):>5}")
        rows.append(
            {
                "what": f"beside, {options.use}, {source}: {metric}",
                "unit": "share",
                "source": source,
                "metric": metric,
                "value": interval.value,
                "low": interval.low,
                "high": interval.high,
                "n": len(values),
            }
        )
    if options.store:
        shared = {**read_circumstances("phonenumbers"), "config": {"profile": options.profile}}
        rowfiles.keep(ROWS, ({**row, **shared} for row in rows))


if __name__ == "__main__":
    main()
