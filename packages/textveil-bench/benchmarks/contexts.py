"""Measures Cape and RankCape as a user runs them, without and with a language model: part of `make bench`.

In: the default table, the bundled masked LM, the packaged letter. Out: rows for `run.py`.
Not here: draws of the other selecting mechanisms (`selection`), and the masked LM by itself (`encoder`).

Every context has a process of its own, so that its memory is its own and nothing is loaded already. What is inside the
masked LM begins with the words of a text and ends with logits over the table.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from encoder import texts

from textveil_bench.process_usage import measure_best_run, measure_run, read_peak_memory

MODES = ("none", "public", "released", "original")
SETTINGS: dict[str, dict[str, Any]] = {
    "cape": {"nominal": 6.0},
    "rankcape": {"epsilon": 8.0, "k": 20},
}
SHAPES = ((1, 25), (16, 25), (1, 200))
"""Texts and the words of each."""

BUDGETS = (4.0, 5.0, 6.0, 7.0, 8.0)
TABLE = "minilm-s"


def listened(model: Any) -> Callable[[], tuple[float, float]]:
    """Adds up the seconds (of the wall, of all processors) that a context's `logits` take; reading sets them to 0."""
    inside, ask = [0.0, 0.0], model.compute_logits

    def logits(*given: Any, **named: Any) -> Any:
        found: list[Any] = []
        for i, each in enumerate(measure_run(lambda: found.append(ask(*given, **named)))):
            inside[i] += each
        return found[0]

    def read() -> tuple[float, float]:
        wall, cpu = inside
        inside[:] = 0.0, 0.0
        return wall, cpu

    object.__setattr__(model, "logits", logits)  # it is frozen
    return read


def measure(mode: str, repeat: int) -> Iterator[dict[str, Any]]:
    """All measurements of a context, in this process."""
    from textveil import Privatizer
    from textveil.mechanism.context import _load_model
    from textveil.pipeline import sweep

    made: list[Privatizer] = []

    def build(name: str, **options: Any) -> Privatizer:
        return Privatizer(name, table=TABLE, **{**SETTINGS[name], "context": mode, **options})

    def ready() -> None:
        made.append(build("cape"))
        made[0].privatize("Maria saw the doctor in Lisbon.")

    wall, cpu = measure_run(ready)
    yield {
        "what": f"selection, cape, context {mode}, setup and a first sentence",
        "unit": "s",
        "value": wall,
        "cpu": cpu,
    }
    made.append(build("rankcape"))
    read = listened(_load_model(made[0].table, None)) if mode != "none" else None
    for batch, words in SHAPES:
        given = texts(words, batch)
        where = f"context {mode}, {batch} x {words} words"
        took = []
        for name, privatizer in zip(SETTINGS, made, strict=True):
            protected = sum(
                result.guarantee.protected for result in privatizer.privatize_many(given)
            )
            spent: list[tuple[float, ...]] = []
            for _ in range(repeat):
                if read is not None:
                    read()
                now = measure_run(lambda p=privatizer, g=given: sum(1 for _ in p.privatize_many(g)))
                spent.append((*now, *(read() if read is not None else (0.0, 0.0))))
            wall, cpu, inside, inside_cpu = min(spent)
            took.append((wall, cpu))
            shape = {
                "words": words,
                "texts": batch,
                "protected": protected,
                "mechanism": name,
                "context": mode,
            }
            what = f"selection, {name}, {where}"
            yield {
                "what": what,
                "unit": "words/s",
                "value": words * batch / wall,
                "cpu": words * batch / cpu,
                **shape,
            }
            outside = 1e3 * (wall - inside) / protected
            beside = {
                "unit": "ms/protected word",
                "value": outside,
                "cpu": 1e3 * (cpu - inside_cpu) / protected,
            }
            yield {"what": f"{what}, outside the masked LM", **beside, **shape}
            if read is not None:
                share = {"unit": "%", "value": 100 * inside / wall, "cpu": 100 * inside_cpu / cpu}
                yield {"what": f"{what}, inside the masked LM", **share, **shape}
        if mode != "none":
            (wall, cpu), (ranked, ranked_cpu) = took
            ratio = {"unit": "times", "value": ranked / wall, "cpu": ranked_cpu / cpu}
            yield {"what": f"selection, rankcape over cape, {where}", **ratio}
    if mode in ("public", "original"):
        given = texts(200, 1)
        many = [build("cape", nominal=nominal) for nominal in BUDGETS]
        one, five = (
            measure_best_run(lambda p=part: sum(1 for _ in sweep(p, given)), repeat)
            for part in (many[:1], many)
        )
        ratio = {"unit": "times", "value": five[0] / one[0], "cpu": five[1] / one[1]}
        yield {
            "what": f"selection, cape, context {mode}, a sweep of {len(BUDGETS)} budgets over one",
            **ratio,
        }
    yield {
        "what": f"selection, cape, context {mode}, peak memory of the process",
        "unit": "MB",
        "value": read_peak_memory() / 1e6,
    }


def measurements(repeat: int) -> Iterator[dict[str, Any]]:
    """All measurements of all contexts, each context in a process of its own."""
    for mode in MODES:
        line = [sys.executable, __file__, mode, str(max(1, repeat // 2))]
        done = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
        for row in done.stdout.splitlines():
            yield {**json.loads(row), "table": TABLE}


if __name__ == "__main__":
    for found in measure(sys.argv[1], int(sys.argv[2])):
        print(json.dumps(found))
