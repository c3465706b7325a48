"""STAMP's tables that are not sweeps: local DP of budgets, mean budgets, repaired releases.

In: public tables; data sets and an endpoint. Out: tables of figures, without texts.
Not here: the sweeps of its table 1 and its figures (`conf/reproduce/stamp-*.yaml`), and repair by a
language model (`models.repair`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from textveil.models import Endpoint, repair
from textveil.pipeline import Privatizer, Result
from textveil.protect import TABLE1, group_numbers
from textveil.randomness import Values
from textveil.table import load_table
from textveil_bench import cells, intervals
from textveil_bench import run as runs
from textveil_bench.examples import DataSet
from textveil_bench.reproduce.clipping_bounds import measure_bounds
from textveil_bench.reproduce.computed import ComputeOptions, Table, TableValue
from textveil_bench.reproduce.targets import Scale, apply_changes, build_plans, load_target
from textveil_bench.requests import mark_release
from textveil_bench.spec import Sweep
from textveil_bench.tasks import build_judge
from textveil_bench.tasks.reading import RESTORED_PREFIX
from textveil_bench.tasks.task_contract import Judge
from textveil_bench.trials import ReleasedExample, join_fields, split_releases

TABLE_NAME = "minilm-s"

REPAIR_SAMPLES: dict[Scale, int] = {"quick": 4, "usual": 25, "full": 100}
"""Number of texts repaired per data set."""
PROPORTIONS = (2.0, 1.0, 4.0, 3.0)
"""STAMP's budgets of groups 1 to 4, in units of the base; the rule `heuristic`."""

ANSWER_OPTIONS = {"temperature": 0.2, "max_tokens": 5}
"""How a language model answers questions, as in STAMP's appendix C."""


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


def means(options: ComputeOptions) -> Table:
    """Tabulates 2:1:4:3 beside uniform budgets of the mean that it spends.

    The mean is over the words of the released texts, as in STAMP's appendix A. Each text of a data
    set is released once per base.
    """
    rows: list[tuple[TableValue, ...]] = []
    changes = {"only": ["heuristic"], "seeds": [1], "baselines": []}
    for sweep in _yield_sweeps("stamp-fig6", options):
        rows += _measure_means(apply_changes(sweep, changes), options)
    return Table(
        title="Budgets of groups in the proportions 2:1:4:3, and uniform ones of the same mean",
        columns=(
            *("data", "base", *(f"words of group {group}" for group in (1, 2, 3, 4))),
            *("mean epsilon", "texts", "metric", "2:1:4:3", "uniform"),
            *("2:1:4:3 minus uniform: from", "to"),
        ),
        rows=tuple(rows),
        notes=(
            "group 1 is sensitive and important, 2 sensitive, 3 important, 4 other",
            "the mean is over all private words, and uniform budgets spend it on each of them; "
            "2:1:4:3 minus uniform is a 95% interval over texts",
        ),
    )


def _yield_sweeps(target: str, options: ComputeOptions) -> Iterator[dict[str, Any]]:
    """Yields the sweeps of a target's panels without further needs, each data set once."""
    plans = build_plans(load_target(target), options.scale, hub=options.hub)
    for sweep in plans.sweeps.values():
        if not any("as_name" in source for source in sweep["data"]):
            yield measure_bounds(sweep, options.scale, options.places)


def _measure_means(
    plain: Mapping[str, Any], options: ComputeOptions
) -> Iterator[tuple[TableValue, ...]]:
    sweep = Sweep.read(plain)
    source = sweep.data[0]
    data = runs.load(source, sweep.limit, options.places)
    judge = runs.load_judges(source, sweep, options.places)[0]
    for cell in sweep.series[0].build_cells(sweep, data.digest):
        assert cell.config is not None, "a mechanism releases"
        results = _release(cells.build_cell_privatizer(cell), data)
        counts = _count_groups(results)
        mean = cell.budget * float(np.dot(counts, PROPORTIONS)) / max(1, sum(counts))
        entry = {**plain["entries"][0], "name": "uniform", "budget": {}}
        entry["set"] = {"groups.budgets": [mean] * len(PROPORTIONS), "groups.base": 1.0}
        uniform = Sweep.read({**plain, "entries": [entry]}).series[0]
        (other,) = uniform.build_cells(sweep, data.digest)
        scores = [
            _score(judge, data, split_releases(data.examples, released))
            for released in (results, _release(cells.build_cell_privatizer(other), data))
        ]
        for metric, selective in scores[0].items():
            gap = _compare(selective, scores[1][metric])
            yield (
                *(data.name, cell.budget, *counts, mean, len(data), metric),
                *(float(selective.mean()), float(scores[1][metric].mean()), gap.low, gap.high),
            )


def _release(privatizer: Privatizer, data: DataSet) -> Sequence[Result]:
    texts = [join_fields(example) for example in data.examples]
    queries = cells.select_queries(privatizer, data, 0, len(data))
    return privatizer.rehearse(texts, queries=queries).results


def _count_groups(results: Sequence[Result]) -> tuple[int, ...]:
    """Counts the private words of each group."""
    counts = np.zeros(len(PROPORTIONS), np.int64)
    for result in results:
        for group in result.guarantee.groups:
            counts[group_numbers([group.label])] += group.words
    return tuple(counts.tolist())


def _score(judge: Judge, data: DataSet, releases: Sequence[ReleasedExample]) -> dict[str, Values]:
    """Returns the values of each metric, without those of restored answers."""
    return {
        score.metric: score.values
        for score in judge.score(data, releases)
        if not score.metric.startswith(RESTORED_PREFIX)
    }


def _compare(first: Values, second: Values) -> intervals.Interval:
    return intervals.mean(first - second, np.arange(len(first)), share=False)


def repaired(options: ComputeOptions) -> Table:
    """Tabulates accuracy on releases before and after a language model's coherence repair.

    At the largest mean budget.

    Raises:
        EndpointError: the endpoint cannot be reached, or gave no text.
    """
    return _tabulate_repair(list(_yield_sweeps("stamp-fig7-10", options)), options)


def repaired_answers(options: ComputeOptions) -> Table:
    """Tabulates a language model's answers from releases before and after its coherence repair.

    SQuAD under the largest budgets of table 1.

    Raises:
        EndpointError: the endpoint cannot be reached, or gave no text.
    """
    squad = next(_yield_sweeps("stamp-table1", options))
    only = {"only": ["polar", "laplace", "laplace, local DP of polar"]}
    return _tabulate_repair([apply_changes(squad, only)], options, asked=True)


def _tabulate_repair(
    sweeps: Sequence[Mapping[str, Any]],
    options: ComputeOptions,
    *,
    asked: bool = False,
) -> Table:
    shared = {"limit": REPAIR_SAMPLES[options.scale], "seeds": [1], "baselines": []}
    rows: list[tuple[TableValue, ...]] = []
    for sweep in sweeps:
        rows += _measure_repair(Sweep.read({**sweep, **shared}), options, asked)
    return Table(
        title="Releases, and the same after coherence repair",
        columns=(
            *("data", "series", "texts", "metric", "released", "repaired"),
            *("repaired minus released: from", "to"),
        ),
        rows=tuple(rows),
        notes=("repaired minus released is a 95% interval over texts",),
    )


def _measure_repair(
    sweep: Sweep, options: ComputeOptions, asked: bool
) -> Iterator[tuple[TableValue, ...]]:
    assert options.endpoint is not None, "the panel needs one"
    endpoint, source = Endpoint(**options.endpoint), sweep.data[0]
    data = runs.load(source, sweep.limit, options.places)
    prompt = options.prompts and options.prompts.find("repair")
    wording: dict[str, Any] = {} if prompt is None else {"prompt": prompt}
    judge = _build_judge(sweep, options, endpoint, asked)
    for series in sweep.series:
        cell = list(series.build_cells(sweep, data.digest))[-1]
        released = (
            [mark_release(ReleasedExample.build_unchanged(item), cell) for item in data.examples]
            if options.is_preview
            else split_releases(data.examples, _release(cells.build_cell_privatizer(cell), data))
        )
        revisions = repair(
            [trial.texts[-1] for trial in released], endpoint, report=options.report, **wording
        )
        if judge is None:
            continue
        after = [
            _replace_release(trial, text) for trial, text in zip(released, revisions, strict=True)
        ]
        before, repaired_values = (_score(judge, data, releases) for releases in (released, after))
        for metric, values in before.items():
            gap = _compare(repaired_values[metric], values)
            yield (
                *(data.name, series.name, len(data), metric),
                *(float(values.mean()), float(repaired_values[metric].mean()), gap.low, gap.high),
            )


def _build_judge(
    sweep: Sweep, options: ComputeOptions, endpoint: Endpoint, asked: bool
) -> Judge | None:
    """Builds the judge of repaired releases; None if requests are counted, and it sends none."""
    source = sweep.data[0]
    if asked:
        return build_judge(
            "asked",
            ANSWER_OPTIONS,
            train=lambda: runs.load_training_texts(source, options.places),
            endpoint=endpoint,
            prompts=options.prompts,
        )
    return None if options.is_preview else runs.load_judges(source, sweep, options.places)[0]


def _replace_release(trial: ReleasedExample, text: str) -> ReleasedExample:
    """Returns the trial with another text as the release of its last field, the one that is long."""
    texts = (*trial.texts[:-1], text)
    return replace(
        trial, parts=ReleasedExample.build_unchanged(replace(trial.example, texts=texts)).parts
    )
