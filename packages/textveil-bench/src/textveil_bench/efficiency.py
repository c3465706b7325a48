"""The cost of each mechanism: setup, time and memory, each measured in its own process.

In: mechanisms with their options. Out: figures as plain data.
Not here: the utility of releases (`cells`), and benchmarks of single parts (`benchmarks/` of the repository).

A process imports the package, loads the table, builds the privatizer and releases a first text, which also loads any
language model; all that is setup. Then it releases new texts: one at a time, two at a time as in Cape's appendix B.5,
and all others at once. Words are drawn with their frequency in public text, so that they repeat and pass as often as
in real text.
"""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from textveil.config import options
from textveil.errors import MechanismError, TextveilError
from textveil.randomness import SeededRandomness
from textveil.text import counts
from textveil_bench import intervals
from textveil_bench.process import peak_memory

Report = Callable[[str, int, int], None]
Figure = Mapping[str, Any]

MEGABYTE = 1e6


@options("efficiency.")
class MeasuredSetup:
    """A mechanism to measure.

    Attributes:
        name: for tables.
        set: options by dotted path, including its budget.
    """

    name: str
    set: Mapping[str, Any]


@options("efficiency.")
class Load:
    """The texts to measure with.

    Attributes:
        words: per text, including public ones.
        texts: number of texts released one at a time, and number of pairs.
        batch: number of texts released at once.
    """

    words: Annotated[int, Field(ge=1)] = 25
    texts: Annotated[int, Field(ge=1)] = 20
    batch: Annotated[int, Field(ge=1)] = 32

    @property
    def total(self) -> int:
        """Number of texts needed: a first one, singles, pairs, the batch."""
        return 1 + 3 * self.texts + self.batch


def measure(
    subjects: Sequence[MeasuredSetup],
    load: Load | None = None,
    *,
    report: Report = lambda step, done, total: None,
) -> Iterator[dict[str, Any]]:
    """Measures mechanisms one after the other.

    Args:
        subjects: what to measure.
        load: the texts to measure with.
        report: called with the step "mechanisms", the number done, and the total.

    Yields:
        for each figure {"entry", "mechanism", "set", "metric", "unit", "value", "low", "high", "n", "note", "words",
        "texts", "protected"}: seconds for setup and its parts, seconds per text, microseconds per protected word,
        peak resident megabytes.

    Raises:
        MechanismError: one cannot be measured; the message has its process's output.
    """
    load = load or Load()
    texts = written(load.words, load.total)
    for done, subject in enumerate(subjects):
        report("mechanisms", done, len(subjects))
        asked = {"set": dict(subject.set), "texts": texts, "singles": load.texts}
        line = [sys.executable, "-m", __spec__.name]
        ran = subprocess.run(
            line, input=json.dumps(asked), capture_output=True, text=True, check=False
        )
        if ran.returncode:
            said = (ran.stderr.strip().splitlines() or ["nothing"])[-1]
            raise MechanismError(
                f"{subject.name} could not be measured; its process reported: {said}"
            )
        for figure in json.loads(ran.stdout.splitlines()[-1]):
            yield {"entry": subject.name, "set": dict(subject.set), "words": load.words, **figure}
    report("mechanisms", len(subjects), len(subjects))


def written(words: int, texts: int) -> list[str]:
    """Texts of words drawn by their frequency in public text; the same at every call."""
    listed = counts()
    names = list(listed)
    upto = np.cumsum(np.fromiter(listed.values(), np.float64, len(names)))
    ((_, draws),) = SeededRandomness(0).open([texts * words]).chunks(texts * words)
    drawn = np.searchsorted(upto, draws.uniform(1)[:, 0] * upto[-1], side="right").reshape(
        texts, words
    )
    return [" ".join(names[i] for i in row) for row in drawn.tolist()]


# ---- in the process of one mechanism ---------------------------------------------------------------------


def _clocked(run: Callable[[list[str]], object], parts: Sequence[list[str]]) -> dict[str, Any]:
    """Seconds per text for some parts: their mean, with an interval if there are several."""
    taken = []
    for part in parts:
        start = time.perf_counter()
        run(part)
        taken.append((time.perf_counter() - start) / len(part))
    found = intervals.mean(np.array(taken), np.arange(len(taken)), share=False)
    ends = (
        {"value": found.value, "low": found.low, "high": found.high}
        if len(taken) > 1
        else _alone(found.value)
    )
    return {"unit": "s", **ends, "n": len(taken)}


def _alone(value: float) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None}


def _figures(asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All figures of a mechanism; nothing of the library may be loaded yet."""
    begun = time.perf_counter()
    from textveil.config import resolve
    from textveil.pipeline import Privatizer
    from textveil.table import load_table

    imported, bare = time.perf_counter(), peak_memory()
    config = resolve(overrides=asked["set"])
    table = load_table(**asdict(config.table))
    loaded = time.perf_counter()
    texts: list[str] = asked["texts"]
    privatizer = Privatizer.from_config(config, table=table)
    privatizer.privatize(texts[0])
    ready, held = time.perf_counter(), peak_memory()

    def release(part: list[str]) -> list[int]:
        return [result.guarantee.protected for result in privatizer.privatize_many(part)]

    n = asked["singles"]
    one = _clocked(release, [[text] for text in texts[1 : 1 + n]])
    two = _clocked(release, [texts[i : i + 2] for i in range(1 + n, 1 + 3 * n, 2)])
    rest = texts[1 + 3 * n :]
    start = time.perf_counter()
    protected = sum(release(rest))
    many = time.perf_counter() - start

    for metric, seconds, note in (
        ("setup", ready - begun, "until a first text is out"),
        ("setup: packages", imported - begun, "importing"),
        ("setup: table", loaded - imported, "loading the table"),
        ("setup: mechanism", ready - loaded, "constants, lists, language model, and a first text"),
    ):
        yield {"metric": metric, "unit": "s", **_alone(seconds), "n": 1, "note": note}
    yield {"metric": "one text", **one, "note": "mean over texts that were not seen before"}
    yield {
        "metric": "a text of two",
        **two,
        "note": "two texts at once, as in Cape's table; mean over pairs",
    }
    a_word = 1e6 * many / max(1, protected)
    shape = {"texts": len(rest), "protected": protected}
    note = f"{len(rest)} texts at once"
    yield {
        "metric": "a word of many",
        "unit": "us/protected word",
        **_alone(a_word),
        "n": 1,
        "note": note,
        **shape,
    }
    for metric, most, note in (
        ("memory: packages", bare, "resident at most, after importing"),
        ("memory: setup", held, "resident at most, after a first text"),
        ("memory", peak_memory(), "resident at most, mapped files included"),
    ):
        yield {"metric": metric, "unit": "MB", **_alone(most / MEGABYTE), "n": 1, "note": note}


def _main() -> None:
    """Measures what standard input requests, and prints the figures as one line of JSON."""
    asked = json.load(sys.stdin)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unbounded statements of some mechanisms are expected
            print(json.dumps(list(_figures(asked))))
    except TextveilError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main()
