"""STAMP's tables that are not sweeps: what its budgets guarantee, and releases after repair by a language model.

In: public tables; data sets and an endpoint. Out: tables of figures, without texts.
Not here: the sweeps of its table 1 and its figures (`conf/reproduce/stamp-*.yaml`), and repair (`models.repair`).
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from textveil.models import Endpoint, repair
from textveil.protect import TABLE1
from textveil.table import load_table
from textveil_bench import cells, intervals
from textveil_bench import run as runs
from textveil_bench.reproduce.computed import ComputeOptions, Table, Value
from textveil_bench.reproduce.targets import Scale, changed, load
from textveil_bench.spec import Sweep
from textveil_bench.trials import ReleasedExample, joined, trials

TABLE = "minilm-s"

REPAIRED: dict[Scale, int] = {"quick": 4, "usual": 25, "full": 100}
"""Number of texts repaired per data set."""


def budgets(asked: ComputeOptions) -> Table:
    """The local DP that the five vectors of table 1 guarantee for two words of one group, under each mechanism."""
    table = load_table(TABLE)
    # the local DP of one unit of the paper's epsilon
    conventions = {
        "polar, kappa = epsilon": table.diameter,
        "polar, kappa = epsilon / pi": table.diameter / math.pi,
        "laplace, scale = range / epsilon": table.l1_diameter / table.coordinate_range,
    }
    code, laplace = (
        conventions["polar, kappa = epsilon / pi"],
        conventions["laplace, scale = range / epsilon"],
    )
    return Table(
        title=f"Local DP of a word of groups 1, 2, 3, 4 under the vectors of table 1, on {TABLE}",
        columns=("epsilon of groups 1, 2, 3, 4", *conventions),
        rows=tuple(
            (_spelled(vector, 1.0), *(_spelled(vector, unit) for unit in conventions.values()))
            for vector in TABLE1.values()
        ),
        notes=(
            f"a unit of epsilon is a local DP of {', '.join(f'{v:.4g} ({k})' for k, v in conventions.items())}",
            f"at equal epsilon Polar spends {code / laplace:.3g} times the local DP of Laplace where kappa = epsilon / "
            f"pi, and {math.pi * code / laplace:.3g} times where kappa = epsilon",
        ),
    )


def _spelled(vector: tuple[float, ...], unit: float) -> str:
    return ", ".join(f"{each * unit:.4g}" for each in vector)


def repaired(asked: ComputeOptions) -> Table:
    """How often judges are right on releases, before and after coherence repair, at the largest mean budget.

    Raises:
        EndpointError: the endpoint cannot be reached, or gave no text.
    """
    assert asked.endpoint is not None, "the panel needs one"
    endpoint, target = Endpoint(**asked.endpoint), load("stamp-fig7-10")
    shared = {"limit": REPAIRED[asked.scale], "seeds": [1], "baselines": []}
    rows: list[tuple[Value, ...]] = []
    for panel in target.panels:
        if not panel.needs and (asked.scale != "quick" or panel.quick is not None):
            changes = (
                {**panel.changes, **(panel.quick or {})}
                if asked.scale == "quick"
                else panel.changes
            )
            rows += _repaired(
                Sweep.read(changed(target.sweep, {**changes, **shared})), asked, endpoint
            )
    return Table(
        title="Accuracy on releases, and on the same after coherence repair",
        columns=(
            "data",
            "series",
            "texts",
            "released",
            "repaired",
            "repaired less released: from",
            "to",
        ),
        rows=tuple(rows),
        notes=("repaired less released is a 95% interval over texts",),
    )


def _repaired(
    sweep: Sweep, asked: ComputeOptions, endpoint: Endpoint
) -> Iterator[tuple[Value, ...]]:
    (source,) = sweep.data
    data = runs.load(source, sweep.limit, asked.places)
    judge = runs.judges(source, sweep, asked.places)[0]
    for series in sweep.series:
        cell = list(series.cells(sweep, data.digest))[-1]
        privatizer = cells.privatizer(cell)
        texts = [joined(example) for example in data.examples]
        released = trials(data.examples, privatizer.rehearse(texts).results)
        mended = repair([trial.texts[0] for trial in released], endpoint, report=asked.report)
        after = [_of(trial, text) for trial, text in zip(released, mended, strict=True)]
        before, then = (next(iter(judge.score(data, each))).values for each in (released, after))
        gap = intervals.mean(then - before, np.arange(len(data)), share=False)
        yield (
            data.name,
            series.name,
            len(data),
            float(before.mean()),
            float(then.mean()),
            gap.low,
            gap.high,
        )


def _of(trial: ReleasedExample, text: str) -> ReleasedExample:
    """The trial with another text as its release."""
    return replace(
        trial, parts=ReleasedExample.untouched(replace(trial.example, texts=(text,))).parts
    )
