"""The cost of each mechanism: setup, time and memory, measured separately.

In: mechanisms with their options. Out: figures as plain data.
Not here: the utility of releases (`cells`), and benchmarks of single parts (`benchmarks/` of the
repository).

A process imports the package, loads the table, builds the privatizer and releases a first text,
which also loads any language model; all that is setup. Then it releases new texts: one at a time,
two at a time as in Cape's appendix B.5, and all others at once. Words are drawn with their
frequency in public text, so that they repeat and pass as often as in real text.
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

from textveil.config import make_options
from textveil.errors import MechanismError, TextveilError
from textveil.randomness import SeededRandomness
from textveil.text import load_counts
from textveil_bench import intervals
from textveil_bench.process_usage import read_peak_memory

MeasureProgress = Callable[[str, int, int], None]
CostFigure = Mapping[str, Any]

MEGABYTE = 1e6


@make_options("efficiency.")
class MeasuredSetup:
    """A mechanism to measure.

    Attributes:
        name: the name in tables.
        set: options by dotted path, including its budget.
    """

    name: str
    set: Mapping[str, Any]


@make_options("efficiency.")
class Workload:
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
        """The number of texts needed: a first one, singles, pairs, the batch."""
        return 1 + 3 * self.texts + self.batch


def measure(
    subjects: Sequence[MeasuredSetup],
    workload: Workload | None = None,
    *,
    report: MeasureProgress = lambda step, done, total: None,
) -> Iterator[dict[str, Any]]:
    """Measures mechanisms one after the other.

    Args:
        subjects: the mechanisms.
        workload: the texts to measure with.
        report: called with the step "mechanisms", the number done, and the total.

    Yields:
        for each figure {"entry", "mechanism", "set", "metric", "unit", "value", "low", "high", "n",
            "note", "words", "texts", "protected"}: seconds for setup and its parts, seconds per
            text, microseconds per protected word, peak resident megabytes.

    Raises:
        MechanismError: a mechanism cannot be measured; the message has its process's output.
    """
    workload = workload or Workload()
    texts = draw_texts(workload.words, workload.total)
    for done, subject in enumerate(subjects):
        report("mechanisms", done, len(subjects))
        request = {"set": dict(subject.set), "texts": texts, "singles": workload.texts}
        command = [sys.executable, "-m", __spec__.name]
        completed = subprocess.run(
            command, input=json.dumps(request), capture_output=True, text=True, check=False
        )
        if completed.returncode:
            message = (completed.stderr.strip().splitlines() or ["nothing"])[-1]
            raise MechanismError(
                f"{subject.name} could not be measured; its process reported: {message}"
            )
        for figure in json.loads(completed.stdout.splitlines()[-1]):
            yield {
                "entry": subject.name,
                "set": dict(subject.set),
                "words": workload.words,
                **figure,
            }
    report("mechanisms", len(subjects), len(subjects))


def draw_texts(words: int, texts: int) -> list[str]:
    """Draws texts of words by their frequency in public text.

    Every call returns the same texts.
    """
    frequencies = load_counts()
    names = list(frequencies)
    cumulative = np.cumsum(np.fromiter(frequencies.values(), np.float64, len(names)))
    ((_, draws),) = SeededRandomness(0).open([texts * words]).split_rows(texts * words)
    indices = np.searchsorted(
        cumulative, draws.uniform(1)[:, 0] * cumulative[-1], side="right"
    ).reshape(texts, words)
    return [" ".join(names[i] for i in row) for row in indices.tolist()]


# ---- in the process of one mechanism ---------------------------------------------------------------------


def _time_parts(run: Callable[[list[str]], object], parts: Sequence[list[str]]) -> dict[str, Any]:
    """Measures the mean seconds per text, with an interval for several parts."""
    seconds = []
    for part in parts:
        start = time.perf_counter()
        run(part)
        seconds.append((time.perf_counter() - start) / len(part))
    interval = intervals.mean(np.array(seconds), np.arange(len(seconds)), share=False)
    ends = (
        {"value": interval.value, "low": interval.low, "high": interval.high}
        if len(seconds) > 1
        else _wrap_value(interval.value)
    )
    return {"unit": "s", **ends, "n": len(seconds)}


def _wrap_value(value: float) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None}


def _measure_figures(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields all figures of a mechanism, in a process without textveil loaded."""
    begin_time = time.perf_counter()
    from textveil.config import resolve
    from textveil.pipeline import Privatizer
    from textveil.table import load_table

    import_time, import_memory = time.perf_counter(), read_peak_memory()
    config = resolve(overrides=request["set"])
    table = load_table(**asdict(config.table))
    table_time = time.perf_counter()
    texts: list[str] = request["texts"]
    privatizer = Privatizer.from_config(config, table=table)
    privatizer.privatize(texts[0])
    ready_time, setup_memory = time.perf_counter(), read_peak_memory()

    def release(part: list[str]) -> list[int]:
        return [result.guarantee.protected for result in privatizer.privatize_many(part)]

    n = request["singles"]
    single_time = _time_parts(release, [[text] for text in texts[1 : 1 + n]])
    pair_time = _time_parts(release, [texts[i : i + 2] for i in range(1 + n, 1 + 3 * n, 2)])
    batch = texts[1 + 3 * n :]
    start = time.perf_counter()
    protected = sum(release(batch))
    batch_seconds = time.perf_counter() - start

    for metric, seconds, note in (
        ("setup", ready_time - begin_time, "until a first text is out"),
        ("setup: packages", import_time - begin_time, "importing"),
        ("setup: table", table_time - import_time, "loading the table"),
        (
            "setup: mechanism",
            ready_time - table_time,
            "constants, lists, language model, and a first text",
        ),
    ):
        yield {"metric": metric, "unit": "s", **_wrap_value(seconds), "n": 1, "note": note}
    yield {"metric": "one text", **single_time, "note": "mean over texts that were not seen before"}
    yield {
        "metric": "a text of two",
        **pair_time,
        "note": "two texts at once, as in Cape's table; mean over pairs",
    }
    word_time = 1e6 * batch_seconds / max(1, protected)
    shape = {"texts": len(batch), "protected": protected}
    note = f"{len(batch)} texts at once"
    yield {
        "metric": "a word of many",
        "unit": "us/protected word",
        **_wrap_value(word_time),
        "n": 1,
        "note": note,
        **shape,
    }
    for metric, memory, note in (
        ("memory: packages", import_memory, "resident at most, after importing"),
        ("memory: setup", setup_memory, "resident at most, after a first text"),
        ("memory", read_peak_memory(), "resident at most, mapped files included"),
    ):
        yield {
            "metric": metric,
            "unit": "MB",
            **_wrap_value(memory / MEGABYTE),
            "n": 1,
            "note": note,
        }


def _main() -> None:
    """Measures the request on standard input; prints the figures as JSON."""
    request = json.load(sys.stdin)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unbounded statements of some mechanisms are expected
            print(json.dumps(list(_measure_figures(request))))
    except TextveilError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main()
