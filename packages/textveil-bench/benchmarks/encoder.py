"""Measures the encoder's four jobs: words a second, loading time, memory. Part of `make bench`.

In: the bundled adapters and the packaged letter. Out: one measurement at a time.
Not here: how right the answers are (`training/measure.py`).

Every job runs in a process of its own, so that its memory is its own and nothing is loaded already.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

from textveil_bench.process_usage import measure_best_seconds, read_peak_memory

JOBS = ("masked LM", "tagger", "reader", "sentences")
LENGTHS, BATCHES = (25, 200), (1, 16)
QUESTION = "When did she last see the doctor?"


def texts(words: int, batch: int) -> list[str]:
    """So many texts of so many words."""
    from textveil.text.tokens import tokenize

    letter = (files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8").strip()
    whole = tokenize([" ".join([letter] * (2 + words * batch // 40))])
    starts = whole.starts.tolist()
    return [
        whole.texts[0][starts[i * words] : starts[(i + 1) * words]].strip() for i in range(batch)
    ]


def job(name: str) -> Callable[[list[str]], object]:
    """A job as a function of texts; everything is loaded when this returns."""
    import numpy as np

    from textveil import models
    from textveil.table.embedding import load_table
    from textveil.text.tokens import tokenize

    if name == "masked LM":
        context = models.load_context(load_table("minilm"))

        def ask(given: list[str]) -> None:
            ragged = models.Ragged.build(tokenize(given))
            for _ in context.yield_batches(ragged, np.arange(len(ragged.words))):
                pass

        return ask
    if name == "tagger":
        tagger = models.load_tagger()
        return lambda given: tagger.find(models.Ragged.build(tokenize(given)))
    if name == "reader":
        reader = models.load_reader()
        return lambda given: reader.answer([QUESTION] * len(given), given)
    sentences = models.load_sentences()
    return sentences.encode


def measure(name: str, repeat: int) -> Iterator[dict[str, Any]]:
    """All measurements of a job, in this process."""
    start = time.perf_counter()
    run = job(name)
    yield {"what": f"encoder, {name}, load", "unit": "s", "value": time.perf_counter() - start}
    for words in LENGTHS:
        for batch in BATCHES:
            given = texts(words, batch)
            seconds = measure_best_seconds(lambda g=given: run(g), repeat)
            yield {
                "what": f"encoder, {name}, {batch} x {words} words",
                "unit": "words/s",
                "value": words * batch / seconds,
                "words": words,
                "texts": batch,
            }
    yield {
        "what": f"encoder, {name}, peak memory of the process",
        "unit": "MB",
        "value": read_peak_memory() / 1e6,
    }


def measurements(repeat: int) -> Iterator[dict[str, Any]]:
    """All measurements of all jobs, each job in a process of its own."""
    for name in JOBS:
        done = subprocess.run(
            [sys.executable, __file__, name, str(repeat)],
            check=True,
            capture_output=True,
            text=True,
        )
        for line in done.stdout.splitlines():
            yield {"job": name, **json.loads(line)}


if __name__ == "__main__":
    for found in measure(sys.argv[1], int(sys.argv[2])):
        print(json.dumps(found))
