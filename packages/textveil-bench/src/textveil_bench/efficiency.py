"""What each mechanism costs: setup, time and memory, each mechanism in a process of its own.

In: mechanisms with their options. Out: figures as plain data.
Not here: what releases are worth (`cells`), and benchmarks of single parts (`benchmarks/` of the repository).

A process imports the package, loads the table, builds the privatizer and releases a first text; all that is setup, and
a language model is loaded in it. Then it releases texts that it has not seen: one at a time, two at a time as Cape's
appendix B.5 does, and all others at once. Words are drawn as they stand in public text, so that as many of them repeat,
and pass, as in a text that somebody wrote.
"""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from textveil.config import options
from textveil.errors import MechanismError, TextveilError
from textveil.evaluate import intervals
from textveil.randomness import SeededRandomness
from textveil.text import counts
from textveil_bench.process import peak_memory

Report = Callable[[str, int, int], None]
Figure = Mapping[str, Any]

MEGABYTE = 1e6


@options("efficiency.")
class MeasuredSetup:
    """What is measured.

    Attributes:
        name: what tables call it.
        set: options by dotted path, its budget among them.
    """

    name: str
    set: Mapping[str, Any]


@options("efficiency.")
class Load:
    """What it is measured on.

    Attributes:
        words: in a text, those of the public list included.
        texts: so many that are released one at a time, and so many pairs.
        batch: texts that are released at once.
    """

    words: Annotated[int, Field(ge=1)] = 25
    texts: Annotated[int, Field(ge=1)] = 20
    batch: Annotated[int, Field(ge=1)] = 32

    @property
    def total(self) -> int:
        """How many texts are needed: a first one, singles, pairs, the batch."""
        return 1 + 3 * self.texts + self.batch


def measure(
    subjects: Sequence[MeasuredSetup], load: Load | None = None, *, report: Report = lambda step, done, total: None
) -> Iterator[dict[str, Any]]:
    """Measures one mechanism after the other.

    Args:
        subjects: what is measured.
        load: what it is measured on.
        report: told the step "mechanisms", how many are done, and how many there are.

    Yields:
        for each figure {"entry", "mechanism", "set", "metric", "unit", "value", "low", "high", "n", "note", "words",
        "texts", "protected"}: seconds of setup and of its parts, seconds for a text, microseconds for a protected word,
        megabytes that were resident at most.

    Raises:
        MechanismError: one cannot be measured, with what its process said.
    """
    load = load or Load()
    texts = written(load.words, load.total)
    for done, subject in enumerate(subjects):
        report("mechanisms", done, len(subjects))
        asked = {"set": dict(subject.set), "texts": texts, "singles": load.texts}
        line = [sys.executable, "-m", __spec__.name]
        ran = subprocess.run(line, input=json.dumps(asked), capture_output=True, text=True, check=False)
        if ran.returncode:
            said = (ran.stderr.strip().splitlines() or ["nothing"])[-1]
            raise MechanismError(f"{subject.name} could not be measured; its process said: {said}")
        for figure in json.loads(ran.stdout.splitlines()[-1]):
            yield {"entry": subject.name, "set": dict(subject.set), "words": load.words, **figure}
    report("mechanisms", len(subjects), len(subjects))


def written(words: int, texts: int) -> list[str]:
    """Texts of words that are drawn, always the same, as often as each stands in public text."""
    listed = counts()
    names = list(listed)
    upto = np.cumsum(np.fromiter(listed.values(), np.float64, len(names)))
    ((_, draws),) = SeededRandomness(0).open([texts * words]).chunks(texts * words)
    drawn = np.searchsorted(upto, draws.uniform(1)[:, 0] * upto[-1], side="right").reshape(texts, words)
    return [" ".join(names[i] for i in row) for row in drawn.tolist()]


# ---- in the process of one mechanism ---------------------------------------------------------------------


def _clocked(run: Callable[[list[str]], object], parts: Sequence[list[str]]) -> dict[str, Any]:
    """Seconds for a text of each of some parts: their mean, with its interval where there are several."""
    taken = []
    for part in parts:
        start = time.perf_counter()
        run(part)
        taken.append((time.perf_counter() - start) / len(part))
    found = intervals.mean(np.array(taken), np.arange(len(taken)), share=False)
    ends = {"value": found.value, "low": found.low, "high": found.high} if len(taken) > 1 else _alone(found.value)
    return {"unit": "s", **ends, "n": len(taken)}


def _alone(value: float) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None}


def _figures(asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All figures of a mechanism; nothing of torch is loaded when this begins."""
    begun = time.perf_counter()
    from textveil.config import resolve
    from textveil.pipeline import Privatizer
    from textveil.table import load_table

    imported, bare = time.perf_counter(), peak_memory()
    config = resolve(overrides=asked["set"])
    table = load_table(config.table.name, metric=config.table.metric, device=config.table.device)
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
    yield {"metric": "a text of two", **two, "note": "two texts at once, as in Cape's table; mean over pairs"}
    a_word = 1e6 * many / max(1, protected)
    shape = {"texts": len(rest), "protected": protected}
    note = f"{len(rest)} texts at once"
    yield {"metric": "a word of many", "unit": "us/protected word", **_alone(a_word), "n": 1, "note": note, **shape}
    for metric, most, note in (
        ("memory: packages", bare, "resident at most, after importing"),
        ("memory: setup", held, "resident at most, after a first text"),
        ("memory", peak_memory(), "resident at most, mapped files included"),
    ):
        yield {"metric": metric, "unit": "MB", **_alone(most / MEGABYTE), "n": 1, "note": note}


def _main() -> None:
    """Measures what is asked on standard input, and prints its figures as one line of JSON."""
    asked = json.load(sys.stdin)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that epsilon bounds nothing under some mechanisms is known
            print(json.dumps(list(_figures(asked))))
    except TextveilError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main()
