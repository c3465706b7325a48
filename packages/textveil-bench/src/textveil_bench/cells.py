"""Cells: runs a series on a data set, by budget and seed.

In: a series, its data set, the evaluation. Out: a row for each cell, and some texts before and
after.
Not here: the choice of cells (`spec`), the processes (`run`), the judges (`tasks`).

A mechanism that uses a language model runs with all budgets and seeds together, so that the model's
output for a text is computed once. All others run cell by cell.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from textveil.config import Config, ProtectOptions
from textveil.errors import ConfigError, EndpointError
from textveil.evaluate.attack import Attack, Case, Outcome, channel, is_contextual
from textveil.guarantee import Guarantee
from textveil.pipeline import SWEEP_WORDS, EvaluationRun, Privatizer, sweep
from textveil.randomness import Ids, Randomness, SeededRandomness, Values
from textveil.text import tokenize
from textveil_bench import attack, intervals, measure, rows
from textveil_bench.detections import get_caching_detector
from textveil_bench.examples import DataSet
from textveil_bench.exposure import EXPOSURE_METRIC, measure_exposure
from textveil_bench.spec import EXPOSURE_PRIOR, PlannedCell, PlannedSeries, Sweep
from textveil_bench.tasks import judge_models
from textveil_bench.tasks.task_contract import Judge, Score
from textveil_bench.trials import ReleasedExample, join_fields, split_releases

SIMULATION_PART = 2**100
"""The stream number for attackers' simulations, unused by any text."""

QUESTION_FIELD = "question"
"""The name of the field with an example's question."""

LIKELIHOOD_ATTACKS = frozenset(("bayes", "semantic", "membership"))
"""Attacks that need the mechanism's distribution.

It takes a second per position if it depends on context.
"""

RANKING_ATTACKS = frozenset(("masked",))
"""Attacks that only rank words by a network's output.

So the network may use fast low-precision arithmetic.
"""

MAX_BATCH_WORDS = 4096
"""Words per attacked batch with a language model.

Its kept output takes 360 MB at 21,719 rows.
"""

IDENTITY_NOTE = "by definition: every word is released unchanged"


@dataclass(kw_only=True)
class _CollectedOutcome:
    """The values of one outcome, collected over batches of texts."""

    outcome: Outcome
    values: list[Values] = field(default_factory=list)
    texts: list[Ids] = field(default_factory=list)


@dataclass(kw_only=True)
class _CellRun:
    """One cell during computation."""

    cell: PlannedCell
    privatizer: Privatizer
    trials: list[ReleasedExample] = field(default_factory=list)
    guarantees: list[Guarantee] = field(default_factory=list)
    collected: dict[tuple[str, ...], _CollectedOutcome] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("draw", "attack", "task"), 0.0)
    )


def compute(
    series: PlannedSeries,
    cells: Sequence[PlannedCell],
    data: DataSet,
    judges: Sequence[Judge],
    sweep_spec: Sweep,
    circumstances: Mapping[str, Any],
    training: Mapping[str, Any],
) -> Iterator[rows.BenchRow]:
    """Computes the rows of some cells of a series.

    Args:
        series: the series to run.
        cells: cells of the series, at least one.
        data: its data set.
        judges: the tasks.
        sweep_spec: the sweep, with attacks and measures.
        circumstances: machine and versions, recorded in each row.
        training: facts about training texts, recorded in each row: `training` and `learned` of its
            `data`.
    """
    shared = {
        "version": rows.VERSION,
        "sweep": sweep_spec.name,
        "entry": series.entry,
        "series": series.name,
        "family": series.family,
        "whose": series.whose,
        "point": dict(series.point),
        "data": {
            "name": series.source.row_name,
            "split": data.split,
            "kind": data.kind,
            "source": data.source,
            "digest": data.digest,
            "examples": len(data),
            "remarks": list(data.remarks),
            **training,
        },
        "lengths": tokenize([join_fields(example) for example in data.examples]).sizes.tolist(),
    }
    if cells[0].config is None:
        for cell in cells:
            yield {
                **shared,
                **_build_identity_row(cell, data, judges, sweep_spec),
                "circumstances": dict(circumstances),
            }
        return
    for run in _run_cells(cells, data, sweep_spec):
        scores, refused = _run_judges(judges, data, run.trials, run.seconds)
        attack_scores = [
            _score_outcome(collected, len(data))
            for collected in run.collected.values()
            if any(map(len, collected.values))
        ]
        yield {
            **shared,
            **_build_cell_fields(run.cell, series, run.privatizer),
            "epsilon": _find_largest_epsilon(run.guarantees),
            "protected": [guarantee.protected for guarantee in run.guarantees],
            "scores": [*scores, *attack_scores],
            "not_run": {**refused, **run.refused, **run.failed},
            "seconds": {name: round(value, 3) for name, value in run.seconds.items()},
            "circumstances": dict(circumstances),
            "texts": _build_gallery(run.trials, sweep_spec.gallery),
        }


def _run_cells(
    cells: Sequence[PlannedCell], data: DataSet, sweep_spec: Sweep
) -> Iterator[_CellRun]:
    """Yields each cell with its releases, attacks and measures."""
    texts = [join_fields(example) for example in data.examples]
    runs = [_CellRun(cell=cell, privatizer=build_cell_privatizer(cell)) for cell in cells]
    if is_contextual(runs[0].privatizer.mechanism, runs[0].privatizer.table):
        _run_together(runs, data, texts, sweep_spec)
        yield from runs
        return
    cases = [(run, _draw_cell(run, data, texts, sweep_spec)) for run in runs]
    if any(options["name"] in LIKELIHOOD_ATTACKS for options in sweep_spec.attacks):
        _compute_shared_channels(cases)
    for run, case in cases:
        _run_attacks(run, case, sweep_spec, 0)
        yield run


def _draw_cell(run: _CellRun, data: DataSet, texts: Sequence[str], sweep_spec: Sweep) -> Case:
    """Draws one cell; returns the part to attack."""
    first, cases = 0, []
    for part in _split_texts(run.privatizer, texts, sweep_spec.attacked):
        start = time.perf_counter()
        rehearsal = run.privatizer.rehearse(
            part, queries=select_queries(run.privatizer, data, first, len(part))
        )
        run.seconds["draw"] += time.perf_counter() - start
        _add_rehearsal(run, data, rehearsal, first)
        if first == 0:
            cases.append(Case.build(run.privatizer, rehearsal))
        first += len(part)
    return cases[0]


def _run_together(
    runs: Sequence[_CellRun], data: DataSet, texts: Sequence[str], sweep_spec: Sweep
) -> None:
    """Runs all cells together, with one language-model output per text."""
    first = 0
    for number, chunk in enumerate(_split_texts(runs[0].privatizer, texts, sweep_spec.attacked)):
        part = MAX_BATCH_WORDS if number == 0 else SWEEP_WORDS
        for rehearsals in _run_timed_sweep(
            runs, chunk, select_queries(runs[0].privatizer, data, first, len(chunk)), part
        ):
            done = len(rehearsals[0].results)
            cases = []
            for run, rehearsal in zip(runs, rehearsals, strict=True):
                _add_rehearsal(run, data, rehearsal, first)
                if number == 0:
                    cases.append((run, Case.build(run.privatizer, rehearsal)))
            if any(options["name"] in LIKELIHOOD_ATTACKS for options in sweep_spec.attacks):
                _compute_shared_channels(cases)
            for run, case in cases:
                _run_attacks(run, case, sweep_spec, first)
            first += done


def build_cell_privatizer(cell: PlannedCell) -> Privatizer:
    """Builds the privatizer of a cell, except the baseline identity."""
    assert cell.config is not None, "the baseline identity has no release"
    return build_privatizer(cell.config)


def build_privatizer(config: Config) -> Privatizer:
    """Builds a privatizer whose detectors run once per text in a process."""
    detectors = tuple(
        get_caching_detector(detector) if isinstance(detector, str) else detector
        for detector in config.protect.detectors
    )
    return Privatizer.from_config(
        replace(config, protect=replace(config.protect, detectors=detectors))
    )


def select_queries(
    privatizer: Privatizer, data: DataSet, first: int, count: int
) -> list[str] | None:
    """Selects the queries of some examples, if importance has no fixed task.

    The queries are the examples' questions.

    Raises:
        ConfigError: the examples have no questions.
    """
    if privatizer.grouping is None or not is_query_needed(privatizer.grouping.options):
        return None
    return list_questions(data)[first : first + count]


def is_query_needed(options: ProtectOptions) -> bool:
    """True if each text needs a query: importance without a fixed task."""
    return options.importance == "cosine" and options.task is None


def list_questions(data: DataSet) -> list[str]:
    """Lists the question of each example.

    Raises:
        ConfigError: the examples have no questions.
    """
    if QUESTION_FIELD not in data.fields:
        raise ConfigError(
            f"{data.name} has no questions, so importance needs a task: set protect.task"
        )
    place = data.fields.index(QUESTION_FIELD)
    return [example.texts[place] for example in data.examples]


def _split_texts(
    privatizer: Privatizer, texts: Sequence[str], attacked: int | None
) -> list[list[str]]:
    """Splits the texts: first those to attack, with about `attacked` private words."""
    if attacked is None:
        return [list(texts)]
    stop = count_attacked_texts(privatizer, texts, attacked)
    return [part for part in (list(texts[:stop]), list(texts[stop:])) if part]


def count_attacked_texts(privatizer: Privatizer, texts: Sequence[str], attacked: int) -> int:
    """Counts the first texts that together have this many private words."""
    from textveil.protect import find_public_words

    tokens = tokenize(texts)
    private = np.concatenate([[0], np.cumsum(~find_public_words(tokens.words, privatizer.words))])
    return min(len(texts), int(np.searchsorted(private[tokens.documents[1:]], attacked)) + 1)


def _run_timed_sweep(
    runs: Sequence[_CellRun], texts: Sequence[str], text_queries: Sequence[str] | None, part: int
) -> Iterator[tuple[EvaluationRun, ...]]:
    """Runs `sweep`, and splits its time evenly over the cells."""
    batches = sweep([run.privatizer for run in runs], texts, text_queries, part=part)
    while True:
        start = time.perf_counter()
        rehearsals = next(batches, None)
        if rehearsals is None:
            return
        for run in runs:
            run.seconds["draw"] += (time.perf_counter() - start) / len(runs)
        yield rehearsals


def _add_rehearsal(run: _CellRun, data: DataSet, rehearsal: EvaluationRun, first: int) -> None:
    examples = data.examples[first : first + len(rehearsal.results)]
    run.trials += split_releases(examples, rehearsal.results)
    run.guarantees += [result.guarantee for result in rehearsal.results]


# ---- attacks and measures of the releases ----------------------------------------------------------------


def _compute_shared_channels(cases: Sequence[tuple[_CellRun, Case]]) -> None:
    """Computes common parts of the cells' channels once."""
    views = [case.view for _, case in cases if len(case.view.output_rows)]
    if views and not channel.explain_refusal(views[0]):
        start = time.perf_counter()
        channel.share_channels(views)
        for run, _ in cases:
            run.seconds["attack"] += (time.perf_counter() - start) / len(cases)


def _run_attacks(run: _CellRun, case: Case, sweep_spec: Sweep, first: int) -> None:
    """Runs all attacks and measures on a batch starting at `first`."""
    start = time.perf_counter()
    assert run.cell.config is not None
    assert run.cell.config.seed is not None, "cells have their own seeds"
    rng: Randomness = SeededRandomness(run.cell.config.seed).derive_part(SIMULATION_PART + first)
    for attacker in load_attackers(sweep_spec):
        with judge_models.reduce_precision() if attacker.name in RANKING_ATTACKS else nullcontext():
            _add_outcomes(run, attacker.name, _run_attacker(run, attacker, case, rng), case, first)
    for name, outcomes in measure.run_measures(
        case, [name for name in sweep_spec.measures if name != "meaning"], rng=rng
    ):
        _add_outcomes(run, name, outcomes, case, first)
    run.seconds["attack"] += time.perf_counter() - start


def _run_attacker(
    run: _CellRun, attacker: Attack, case: Case, rng: Randomness
) -> Iterator[Outcome]:
    """Yields an attacker's outcomes; none if it refuses."""
    if reason := attacker.refusal(case.view):
        run.refused[attacker.name] = reason
    else:
        yield from attacker.run(case, rng=rng)


def _add_outcomes(
    run: _CellRun, name: str, outcomes: Iterable[Outcome], case: Case, first: int
) -> None:
    """Collects the outcomes of an attack or measure on one batch.

    If it fails, its results from all batches are dropped.
    """
    if name in run.failed:
        return
    try:
        for outcome in outcomes:
            texts = case.view.text[outcome.where] if outcome.unit == "word" else outcome.where
            _add_outcome(run, outcome, first + texts)
            if (outcome.source, outcome.metric) == ("bayes", "top-1") and outcome.setting[
                "prior"
            ] != "context":
                everything, owners = measure_exposure(case, outcome)
                _add_outcome(run, everything, first + owners)
    except (ConfigError, EndpointError) as error:
        run.failed[name] = _format_error(error)
        run.collected = {
            key: collected
            for key, collected in run.collected.items()
            if collected.outcome.source != name
        }


def _format_error(error: Exception) -> str:
    """Formats an error in one line; messages hold no private text."""
    return " ".join(str(error).split())


def load_attackers(sweep_spec: Sweep) -> list[Attack]:
    """Loads the attackers of a sweep.

    Raises:
        UnknownName: there is no such attack, or it has no such option.
    """
    return [
        attack.load(
            attack_options["name"],
            {name: value for name, value in attack_options.items() if name != "name"},
        )
        for attack_options in sweep_spec.attacks
    ]


def _add_outcome(run: _CellRun, outcome: Outcome, texts: Ids) -> None:
    key = (outcome.source, outcome.metric, *map(str, outcome.setting.items()))
    collected = run.collected.setdefault(key, _CollectedOutcome(outcome=outcome))
    collected.values.append(outcome.values)
    collected.texts.append(texts)


def _score_outcome(collected: _CollectedOutcome, texts: int) -> rows.BenchRow:
    """Converts an outcome to a score of a row."""
    outcome, values, owners = (
        collected.outcome,
        np.concatenate(collected.values),
        np.concatenate(collected.texts),
    )
    weights = np.bincount(owners, minlength=texts)
    sums = np.bincount(owners, values, minlength=texts)
    stop = int(owners.max()) + 1 if len(owners) else 0
    means = [
        s / w if w else None
        for s, w in zip(sums[:stop].tolist(), weights[:stop].tolist(), strict=True)
    ]
    return build_score(
        source=outcome.source,
        metric=outcome.metric,
        setting=dict(outcome.setting),
        unit=outcome.unit,
        interval=intervals.mean(values, owners, share=outcome.share),
        n=len(values),
        baseline=outcome.baseline,
        note=outcome.note,
        headline=outcome.headline,
        geometric=outcome.geometric,
        values=means,
        weights=weights[:stop].tolist() if outcome.unit == "word" else None,
    )


def build_score(
    *,
    interval: intervals.Interval,
    values: Sequence[float | None],
    geometric: bool = False,
    **fields: Any,
) -> rows.BenchRow:
    """Builds one score of a row.

    Per-text numbers are rounded to five digits.
    """
    value, low, high = (
        _drop_infinity(np.exp(end) if geometric else end)
        for end in (interval.value, interval.low, interval.high)
    )
    short = [None if number is None else float(f"{number:.5g}") for number in values]
    return {
        **fields,
        "value": value,
        "low": low,
        "high": high,
        "geometric": geometric,
        "values": short,
    }


def _drop_infinity(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# ---- the judges ----------------------------------------------------------------------------------------


def _run_judges(
    judges: Sequence[Judge],
    data: DataSet,
    released_examples: Sequence[ReleasedExample],
    seconds: dict[str, float],
) -> tuple[list[rows.BenchRow], dict[str, str]]:
    """Runs all judges; returns their scores, and reasons for missing ones."""
    start = time.perf_counter()
    scores: list[rows.BenchRow] = []
    refused: dict[str, str] = {}
    for judge in judges:
        try:
            if reason := judge.explain_refusal(data):
                refused[judge.name] = reason
                continue
            with judge_models.reduce_precision():
                scores += [
                    _build_judge_score(judge, judge_score)
                    for judge_score in judge.score(data, released_examples)
                ]
        except (ConfigError, EndpointError) as error:
            refused[judge.name] = _format_error(error)
    seconds["task"] += time.perf_counter() - start
    return scores, refused


def _build_judge_score(judge: Judge, judge_score: Score) -> rows.BenchRow:
    """Converts a judge's score to a score of a row."""
    return build_score(
        source=judge.name,
        metric=judge_score.metric,
        setting={},
        unit="text",
        interval=intervals.mean(
            judge_score.values, np.arange(len(judge_score.values)), share=judge_score.share
        ),
        n=len(judge_score.values),
        baseline=judge_score.chance,
        note=judge_score.note,
        headline=judge_score.headline,
        values=judge_score.values.tolist(),
        weights=None,
    )


def _build_identity_row(
    cell: PlannedCell, data: DataSet, judges: Sequence[Judge], sweep_spec: Sweep
) -> rows.BenchRow:
    """Builds the row of the baseline that leaves texts unchanged."""
    seconds = dict.fromkeys(("draw", "attack", "task"), 0.0)
    scores, refused = _run_judges(
        judges,
        data,
        [ReleasedExample.build_unchanged(example) for example in data.examples],
        seconds,
    )
    if any(options["name"] == "bayes" for options in sweep_spec.attacks):
        ones = np.ones(len(data))
        scores.append(
            build_score(
                source="bayes",
                metric=EXPOSURE_METRIC,
                setting={"prior": EXPOSURE_PRIOR},
                unit="text",
                interval=intervals.Interval(value=1.0, low=1.0, high=1.0),
                n=len(ones),
                baseline=None,
                note=IDENTITY_NOTE,
                headline=True,
                values=ones.tolist(),
                weights=None,
            )
        )
    return {
        **_build_cell_fields(cell, None, None),
        "epsilon": {"kind": "none", "metric": None, "per_word": "infinite", "ldp": "infinite"},
        "protected": None,
        "scores": scores,
        "not_run": refused,
        "seconds": seconds,
        "texts": [],
    }


def _build_cell_fields(
    cell: PlannedCell, series: PlannedSeries | None, privatizer: Privatizer | None
) -> rows.BenchRow:
    """Builds the part of a row that describes its cell."""
    path = series.path if series else None
    return {
        "key": cell.key,
        "seed": cell.seed,
        "level": None,
        "mechanism": privatizer.claim.mechanism if privatizer else "identity",
        "table": privatizer.table.name if privatizer else None,
        "configuration": _convert_to_plain(cell.config.dump_public()) if cell.config else None,
        "budget": None if path is None else {"path": path, "value": _convert_to_plain(cell.budget)},
    }


def _find_largest_epsilon(guarantees: Sequence[Guarantee]) -> rows.BenchRow:
    """Finds the largest epsilon of all statements."""
    kinds = {guarantee.kind for guarantee in guarantees}
    metrics = {guarantee.claim.metric for guarantee in guarantees}
    return {
        "kind": "none" if "none" in kinds else kinds.pop(),
        "metric": metrics.pop(),
        "per_word": _convert_to_plain(
            max((guarantee.epsilon for guarantee in guarantees), default=0.0)
        ),
        "ldp": _convert_to_plain(
            max((guarantee.epsilon_ldp for guarantee in guarantees), default=0.0)
        ),
    }


def _convert_to_plain(value: Any) -> Any:
    """Converts a value to plain data; infinities become "infinite"."""
    if isinstance(value, Mapping):
        return {name: _convert_to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_convert_to_plain(item) for item in value]
    return "infinite" if isinstance(value, float) and not np.isfinite(value) else value


def _build_gallery(released_examples: Sequence[ReleasedExample], count: int) -> list[rows.BenchRow]:
    """Builds some texts before and after, for the gallery."""
    return [
        {
            "original": join_fields(trial.example),
            "released": join_fields(replace(trial.example, texts=trial.texts)),
        }
        for trial in released_examples[:count]
    ]


def check_sweep(sweep_spec: Sweep) -> None:
    """Builds every cheap part of a sweep, to find its errors early.

    Raises:
        ConfigError: an option is wrong.
        UnknownName: there is no such mechanism, attack or option.
    """
    load_attackers(sweep_spec)
    for series in (
        entry.add_task_words(("word",)) if entry.task_word_count else entry
        for entry in sweep_spec.series
    ):
        if series.is_searched:
            raise ConfigError(
                f"the budgets of {series.entry!r} must be numbers; `risk` is for `textveil bench "
                "choose`"
            )
        for budget in series.budgets:
            series.build_config(budget)
    for source in sweep_spec.data:
        if (
            not source.task
            and source.limit is None
            and sweep_spec.limit is None
            and source.split == "train"
        ):
            raise ConfigError("a sweep over training texts needs a limit: set sweep.limit")
