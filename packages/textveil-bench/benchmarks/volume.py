"""Measures much text: corpora of short comments, Cape over many words, long prompts, Base64. Part of `make bench`.

In: comments that are made up here. Out: rows for `run.py`; as a program, rows with their circumstances.
Not here: what is found, and sentences of a corpus (`corpora`).

Values are processor time, so that what else a machine does moves them less. Repeated comments are half of them, as in
reviews and surveys: `ok`, `Great product, thanks!`.
"""

import base64
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from textveil_bench.circumstances import read_circumstances
from textveil_bench.process_usage import measure_run

ROWS = 1_000
LENGTH = 20_000
"""Characters of a prompt of prose or Base64."""
SHORT, LONG = 30_000, 120_000
"""Characters of a table of which it is asked whether time is linear."""

FIRST = (
    "Anna", "Maria", "Peter", "John", "Ahmed", "Wei", "Olga", "Carlos", "Fatima", "Lars", "Giulia", "Tom", "Emma",
    "Noah", "Priya",
)  # fmt: skip
LAST = (
    "Kowalska", "Silva", "Smith", "Garcia", "Novak", "Rossi", "Jensen", "Tanaka", "Petrov", "Khan", "Brown", "Lopez",
)  # fmt: skip
TOWNS = (
    "Lisbon", "Berlin", "Warsaw", "Paris", "Leeds", "Boston", "Toronto", "Oslo", "Porto", "Lyon", "Delhi", "Dublin",
)  # fmt: skip
THINGS = (
    "delivery", "hotel", "room", "phone", "app", "service", "driver", "camera", "battery", "blender", "course",
    "parcel", "keyboard", "screen",
)  # fmt: skip
LIKE = (
    "great", "terrible", "fine", "slow", "quick", "awful", "lovely", "broken", "cheap", "friendly", "rude", "noisy",
    "clean",
)  # fmt: skip
OFTEN = (
    "ok", "Love it!", "Never again.", "Fast delivery", "Works as described.", "Great product, thanks!",
    "Too expensive.", "Arrived broken.", "Terrible customer service.", "Very happy with my purchase.",
    "It stopped working after a week.",
)  # fmt: skip


def comment(rng: random.Random) -> str:
    """A made up comment."""
    thing, like, other = rng.choice(THINGS), rng.choice(LIKE), rng.choice(LIKE)
    first, last, town, number = (
        rng.choice(FIRST),
        rng.choice(LAST),
        rng.choice(TOWNS),
        rng.randrange(10**6),
    )
    return rng.choice(
        (
            f"The {thing} was {like} but the {rng.choice(THINGS)} felt {other}, we will come back.",
            f"{first} at the front desk was {like}, the {thing} in {town} is {other}.",
            f"Ordered on {number % 28 + 1}.5.2024, the {thing} came late; order {number}. {like.capitalize()}.",
            f"My name is {first} {last}, write to {last.lower()}{number}@example.org about the {like} {thing}.",
            f"I have bought {number % 9 + 2} of these for my office in {town}. {like.capitalize()} {thing}.",
        )
    )


def comments(count: int, repeated: bool) -> list[str]:
    """Comments; half of the repeated ones are said often, or were said before."""
    rng, found = random.Random(5), dict[str, None]()
    if not repeated:
        while len(found) < count:
            found[comment(rng)] = None
        return [*found]
    said: list[str] = []
    while len(said) < count:
        kind = rng.random()
        again = rng.choice(said) if said else OFTEN[0]
        said.append(rng.choice(OFTEN) if kind < 0.35 else again if kind < 0.5 else comment(rng))
    return said


def corpora(repeat: int) -> Iterator[dict[str, Any]]:
    """A corpus run with the profile `document`, in one process."""
    from textveil.config.layers import resolve
    from textveil.config.option_sources import parse_assignments
    from textveil.corpus import RowOptions, run

    config = resolve(profile="document", overrides=parse_assignments([], {"epsilon": "8"}))
    for kind in ("distinct", "repeated"):
        lines = comments(ROWS, kind == "repeated")
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "comments.txt"
            times = []
            for turn in range(repeat + 1):  # the first loads everything
                source.write_text("\n".join(lines if turn else lines[:50]) + "\n", encoding="utf-8")
                out = f"{folder}/{turn}"
                took = measure_run(
                    lambda s=source, o=out: run(s, o, config, RowOptions(ids="row"), jobs=1)
                )  # type: ignore[misc]
                times += [took[1]] if turn else []
        yield {
            "what": f"volume, comments, {kind}, profile document",
            "unit": "rows/s of a core",
            "value": ROWS / min(times),
            "rows": ROWS,
            "distinct": len({*lines}),
            "characters": sum(map(len, lines)),
        }


def words(repeat: int) -> Iterator[dict[str, Any]]:
    """Cape without a context, over many texts and over one."""
    from textveil import Privatizer

    made = Privatizer("cape", epsilon=12.0)
    made.privatize("Maria saw the doctor in Lisbon.")
    told = comments(500, False)
    for which, texts in (("500 comments", told), ("one text", [" ".join(told[:8])])):
        protected = sum(result.guarantee.protected for result in made.privatize_many(texts))
        seconds = min(
            measure_run(lambda t=texts: sum(1 for _ in made.privatize_many(t)))[1]  # type: ignore[misc]
            for _ in range(repeat)
        )
        yield {
            "what": f"volume, cape, {which}",
            "unit": "us/protected word",
            "value": 1e6 * seconds / protected,
            "protected": protected,
        }


def tables(repeat: int) -> Iterator[dict[str, Any]]:
    """A prompt that is a table with quotes, without the tagger: the time of a megabyte at two lengths."""
    from textveil import Protector

    made = Protector(protect={"detectors": ("patterns", "structure")})
    lines = [f'{i},{text.split()[0]},"{text}"' for i, text in enumerate(comments(3_000, False))]
    table = "id,first,said\n" + "\n".join(lines)
    made.protect(table[:2_000])
    for length in (SHORT, LONG):
        seconds = min(
            measure_run(lambda n=length: made.protect(table[:n]))[1] for _ in range(repeat)
        )  # type: ignore[misc]
        yield {
            "what": f"volume, a table of {length // 1000} kB, without the tagger",
            "unit": "s/MB",
            "value": 1e6 * seconds / length,
        }


def blobs(repeat: int) -> Iterator[dict[str, Any]]:
    """A prompt of Base64, over one of prose of the same length."""
    from textveil import Protector

    made = Protector()
    made.protect("Maria saw the doctor in Lisbon.")
    rng = random.Random(7)
    prose = " ".join(comments(400, False))[:LENGTH]
    binary = base64.b64encode(rng.randbytes(LENGTH))[:LENGTH].decode()
    said = base64.b64encode(prose.encode())[:LENGTH].decode()
    spent = [
        min(measure_run(lambda t=text: made.protect(t))[1] for _ in range(repeat))  # type: ignore[misc]
        for text in (prose, binary, said)
    ]
    yield {
        "what": "volume, prose",
        "unit": "us/character",
        "value": 1e6 * spent[0] / LENGTH,
    }
    for which, seconds in zip(("binary", "prose"), spent[1:], strict=True):
        yield {
            "what": f"volume, Base64 of {which}, over prose of its length",
            "unit": "times",
            "value": seconds / spent[0],
        }


PARTS = {"corpora": corpora, "words": words, "tables": tables, "blobs": blobs}


def measurements(repeat: int, parts: Sequence[str] = tuple(PARTS)) -> Iterator[dict[str, Any]]:
    """All measurements."""
    for part in parts:
        yield from PARTS[part](max(1, repeat - 1))


if __name__ == "__main__":
    for found in measurements(2, sys.argv[1:] or tuple(PARTS)):
        print(
            json.dumps({**found, **read_circumstances(), "repeat": 1}, sort_keys=True), flush=True
        )
