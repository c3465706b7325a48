"""STAMP's tables that are not sweeps: local DP of budgets, repaired releases.

In: public tables; data sets and an endpoint. Out: tables of figures, without texts.
Not here: the sweeps of its table 1 and its figures (`conf/reproduce/stamp-*.yaml`), and repair by a
language model (`models.repair`).
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
from textveil_bench.reproduce.computed import ComputeOptions, Table, TableValue
from textveil_bench.reproduce.targets import Scale, apply_changes, load_target
from textveil_bench.spec import Sweep
from textveil_bench.trials import ReleasedExample, join_fields, split_releases

TABLE_NAME = "minilm-s"

REPAIR_SAMPLES: dict[Scale, int] = {"quick": 4, "usual": 25, "full": 100}
"""Number of texts repaired per data set."""


def budgets(options: ComputeOptions) -> Table:
    """Tabulates the local DP of table 1's vectors under each mechanism.

    It holds for two words of one group; the paper has five vectors.
    """
    table = load_table(TABLE_NAME)
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
        title=f"Local DP of a word of groups 1, 2, 3, 4 under the vectors of table 1, on {TABLE_NAME}",
        columns=("epsilon of groups 1, 2, 3, 4", *conventions),
        rows=tuple(
            (
                _format_vector(vector, 1.0),
                *(_format_vector(vector, unit) for unit in conventions.values()),
            )
            for vector in TABLE1.values()
        ),
        notes=(
            (
                "a unit of epsilon is a local DP of "
                f"{', '.join(f'{v:.4g} ({k})' for k, v in conventions.items())}"
            ),
            f"at equal epsilon Polar spends {code / laplace:.3g} times the local DP of Laplace "
            f"where kappa = epsilon / pi, and {math.pi * code / laplace:.3g} times where kappa = "
            "epsilon",
        ),
    )


def _format_vector(vector: tuple[float, ...], unit: float) -> str:
    return ", ".join(f"{epsilon * unit:.4g}" for epsilon in vector)


def repaired(options: ComputeOptions) -> Table:
    """Tabulates accuracy on releases before and after a language model's coherence repair.

    At the largest mean budget.

    Raises:
        EndpointError: the endpoint cannot be reached, or gave no text.
    """
    assert options.endpoint is not None, "the panel needs one"
    endpoint, target = Endpoint(**options.endpoint), load_target("stamp-fig7-10")
    shared = {"limit": REPAIR_SAMPLES[options.scale], "seeds": [1], "baselines": []}
    rows: list[tuple[TableValue, ...]] = []
    for panel in target.panels:
        if not panel.needs and (options.scale != "quick" or panel.quick is not None):
            changes = (
                {**panel.changes, **(panel.quick or {})}
                if options.scale == "quick"
                else panel.changes
            )
            rows += _measure_repair(
                Sweep.read(apply_changes(target.sweep, {**changes, **shared})), options, endpoint
            )
    return Table(
        title="Accuracy on releases, and on the same after coherence repair",
        columns=(
            "data",
            "series",
            "texts",
            "released",
            "repaired",
            "repaired minus released: from",
            "to",
        ),
        rows=tuple(rows),
        notes=("repaired minus released is a 95% interval over texts",),
    )


def _measure_repair(
    sweep: Sweep, options: ComputeOptions, endpoint: Endpoint
) -> Iterator[tuple[TableValue, ...]]:
    (source,) = sweep.data
    data = runs.load(source, sweep.limit, options.places)
    judge = runs.load_judges(source, sweep, options.places)[0]
    for series in sweep.series:
        cell = list(series.build_cells(sweep, data.digest))[-1]
        privatizer = cells.build_cell_privatizer(cell)
        texts = [join_fields(example) for example in data.examples]
        released = split_releases(data.examples, privatizer.rehearse(texts).results)
        revisions = repair([trial.texts[0] for trial in released], endpoint, report=options.report)
        after = [
            _replace_release(trial, text) for trial, text in zip(released, revisions, strict=True)
        ]
        before, repaired_values = (
            next(iter(judge.score(data, releases))).values for releases in (released, after)
        )
        gap = intervals.mean(repaired_values - before, np.arange(len(data)), share=False)
        yield (
            data.name,
            series.name,
            len(data),
            float(before.mean()),
            float(repaired_values.mean()),
            gap.low,
            gap.high,
        )


def _replace_release(trial: ReleasedExample, text: str) -> ReleasedExample:
    """Returns the trial with another text as its release."""
    return replace(
        trial, parts=ReleasedExample.build_unchanged(replace(trial.example, texts=(text,))).parts
    )
