"""Cells: runs one series on one data set, at some budgets and seeds, and makes rows.

In: a series, its data set, what to evaluate. Out: a row for each cell, and some texts before and after.
Not here: which cells exist (`spec`), in which process they run (`run`), the judges (`tasks`).

A mechanism that uses a language model runs with all budgets and seeds together, so that the model's output for a text
is computed once. All others run cell by cell.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from textveil.config import Config, ProtectOptions
from textveil.errors import ConfigError, EndpointError
from textveil.evaluate.attack import Attack, Case, Outcome, channel, looks
from textveil.guarantee import Guarantee
from textveil.pipeline import SWEPT, Privatizer, Rehearsal, sweep
from textveil.randomness import Ids, Randomness, SeededRandomness, Values
from textveil.text import tokenize
from textveil_bench import attack, intervals, measure, rows
from textveil_bench.detections import remembered
from textveil_bench.examples import DataSet
from textveil_bench.exposure import METRIC, exposed
from textveil_bench.spec import EXPOSED, PlannedCell, PlannedSeries, Sweep
from textveil_bench.tasks import models
from textveil_bench.tasks.contract import Judge, Score
from textveil_bench.trials import ReleasedExample, joined, trials

SIMULATION = 2**100
"""The part of a seed's streams for attackers that simulate a mechanism; no text has such a number."""

QUESTION = "question"
"""The field whose question the other fields are read for."""

KNOWING = frozenset(("bayes", "semantic", "membership"))
"""Attacks that need the mechanism's distribution, which takes a second per position if it depends on context."""

ASKING = frozenset(("masked",))
"""Attacks that only rank words by a network's output, so that it may use fast low-precision arithmetic."""

TOGETHER = 4096
"""Words per attacked batch, if a language model's output for them is kept: 360 MB at 21,719 rows."""

BY_DEFINITION = "by definition: every word is released as it is"


@dataclass(kw_only=True)
class _Collected:
    """The values of one outcome, collected over batches of texts."""

    outcome: Outcome
    values: list[Values] = field(default_factory=list)
    texts: list[Ids] = field(default_factory=list)


@dataclass(kw_only=True)
class _Run:
    """One cell during computation."""

    cell: PlannedCell
    privatizer: Privatizer
    trials: list[ReleasedExample] = field(default_factory=list)
    guarantees: list[Guarantee] = field(default_factory=list)
    found: dict[tuple[str, ...], _Collected] = field(default_factory=dict)
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
    asked: Sweep,
    circumstances: Mapping[str, Any],
    training: Mapping[str, Any],
) -> Iterator[rows.Row]:
    """The rows of some cells of a series.

    Args:
        series: what to run.
        cells: cells of the series, at least one.
        data: its data set.
        judges: the tasks.
        asked: the sweep, with attacks and measures.
        circumstances: what each row records about where it was computed.
        training: what each row records about training texts: `training` and `learned` of its `data`.
    """
    shared = {
        "version": rows.VERSION,
        "sweep": asked.name,
        "entry": series.entry,
        "series": series.name,
        "family": series.family,
        "whose": series.whose,
        "point": dict(series.point),
        "data": {
            "name": series.source.called,
            "split": data.split,
            "kind": data.kind,
            "source": data.source,
            "digest": data.digest,
            "examples": len(data),
            "remarks": list(data.remarks),
            **training,
        },
        "lengths": tokenize([joined(example) for example in data.examples]).sizes.tolist(),
    }
    if cells[0].config is None:
        for cell in cells:
            yield {
                **shared,
                **_untouched(cell, data, judges, asked),
                "circumstances": dict(circumstances),
            }
        return
    for run in _runs(cells, data, asked):
        scores, refused = _judged(judges, data, run.trials, run.seconds)
        own = [
            _score(found, len(data)) for found in run.found.values() if any(map(len, found.values))
        ]
        yield {
            **shared,
            **_described(run.cell, series, run.privatizer),
            "epsilon": _epsilon(run.guarantees),
            "protected": [guarantee.protected for guarantee in run.guarantees],
            "scores": [*scores, *own],
            "not_run": {**refused, **run.refused, **run.failed},
            "seconds": {name: round(value, 3) for name, value in run.seconds.items()},
            "circumstances": dict(circumstances),
            "texts": _shown(run.trials, asked.gallery),
        }


def _runs(cells: Sequence[PlannedCell], data: DataSet, asked: Sweep) -> Iterator[_Run]:
    """Each cell with what was released, attacked and measured."""
    texts = [joined(example) for example in data.examples]
    made = [_Run(cell=cell, privatizer=privatizer(cell)) for cell in cells]
    if looks(made[0].privatizer.mechanism, made[0].privatizer.table):
        _in_context(made, data, texts, asked)
        yield from made
        return
    cases = [(run, _alone(run, data, texts, asked)) for run in made]
    if any(each["name"] in KNOWING for each in asked.attacks):
        _share(cases)
    for run, case in cases:
        _attack(run, case, asked, 0)
        yield run


def _alone(run: _Run, data: DataSet, texts: Sequence[str], asked: Sweep) -> Case:
    """Draws one cell; returns the part that is attacked."""
    first, cases = 0, []
    for part in _split(run.privatizer, texts, asked.attacked):
        start = time.perf_counter()
        rehearsal = run.privatizer.rehearse(
            part, queries=queries(run.privatizer, data, first, len(part))
        )
        run.seconds["draw"] += time.perf_counter() - start
        _take(run, data, rehearsal, first)
        if first == 0:
            cases.append(Case.after(run.privatizer, rehearsal))
        first += len(part)
    return cases[0]


def _in_context(made: Sequence[_Run], data: DataSet, texts: Sequence[str], asked: Sweep) -> None:
    """All cells together: a language model's output for a text is computed once."""
    first = 0
    for number, chunk in enumerate(_split(made[0].privatizer, texts, asked.attacked)):
        part = TOGETHER if number == 0 else SWEPT
        for rehearsals in _timed_sweep(
            made, chunk, queries(made[0].privatizer, data, first, len(chunk)), part
        ):
            done = len(rehearsals[0].results)
            cases = []
            for run, rehearsal in zip(made, rehearsals, strict=True):
                _take(run, data, rehearsal, first)
                if number == 0:
                    cases.append((run, Case.after(run.privatizer, rehearsal)))
            if any(each["name"] in KNOWING for each in asked.attacks):
                _share(cases)
            for run, case in cases:
                _attack(run, case, asked, first)
            first += done


def privatizer(cell: PlannedCell) -> Privatizer:
    """The privatizer of a cell other than the baseline identity."""
    assert cell.config is not None, "the baseline identity has none"
    return built(cell.config)


def built(config: Config) -> Privatizer:
    """A privatizer whose detectors run once per text for all cells of a process."""
    found = tuple(
        remembered(each) if isinstance(each, str) else each for each in config.protect.detectors
    )
    return Privatizer.from_config(replace(config, protect=replace(config.protect, detectors=found)))


def queries(privatizer: Privatizer, data: DataSet, first: int, count: int) -> list[str] | None:
    """The queries of some examples, their questions, if importance is on without a fixed task.

    Raises:
        ConfigError: the examples have no questions.
    """
    if privatizer.grouping is None or not asks(privatizer.grouping.options):
        return None
    return questions(data)[first : first + count]


def asks(options: ProtectOptions) -> bool:
    """Whether importance is on without a fixed task, so that each text needs a query."""
    return options.importance == "cosine" and options.task is None


def questions(data: DataSet) -> list[str]:
    """The question of each example.

    Raises:
        ConfigError: the examples have no questions.
    """
    if QUESTION not in data.fields:
        raise ConfigError(
            f"{data.name} has no questions, so importance needs a task: set protect.task"
        )
    place = data.fields.index(QUESTION)
    return [example.texts[place] for example in data.examples]


def _split(privatizer: Privatizer, texts: Sequence[str], attacked: int | None) -> list[list[str]]:
    """The texts that are attacked, with about `attacked` private words, and the others."""
    if attacked is None:
        return [list(texts)]
    stop = attacked_texts(privatizer, texts, attacked)
    return [part for part in (list(texts[:stop]), list(texts[stop:])) if part]


def attacked_texts(privatizer: Privatizer, texts: Sequence[str], attacked: int) -> int:
    """How many of the first texts have this many private words together; all if they have fewer."""
    from textveil.protect import listed

    tokens = tokenize(texts)
    private = np.concatenate([[0], np.cumsum(~listed(tokens.words, privatizer.words))])
    return min(len(texts), int(np.searchsorted(private[tokens.documents[1:]], attacked)) + 1)


def _timed_sweep(
    made: Sequence[_Run], texts: Sequence[str], asked: Sequence[str] | None, part: int
) -> Iterator[tuple[Rehearsal, ...]]:
    """`sweep`, with its time split evenly over the cells."""
    found = sweep([run.privatizer for run in made], texts, asked, part=part)
    while True:
        start = time.perf_counter()
        rehearsals = next(found, None)
        if rehearsals is None:
            return
        for run in made:
            run.seconds["draw"] += (time.perf_counter() - start) / len(made)
        yield rehearsals


def _take(run: _Run, data: DataSet, rehearsal: Rehearsal, first: int) -> None:
    examples = data.examples[first : first + len(rehearsal.results)]
    run.trials += trials(examples, rehearsal.results)
    run.guarantees += [result.guarantee for result in rehearsal.results]


# ---- attacks and measures of the releases ----------------------------------------------------------------


def _share(cases: Sequence[tuple[_Run, Case]]) -> None:
    """Shares between the cells what their channels have in common, so that it is computed once."""
    views = [case.view for _, case in cases if len(case.view.drawn)]
    if views and not channel.refusal(views[0]):
        start = time.perf_counter()
        channel.share(views)
        for run, _ in cases:
            run.seconds["attack"] += (time.perf_counter() - start) / len(cases)


def _attack(run: _Run, case: Case, asked: Sweep, first: int) -> None:
    """All attacks and measures on one batch of texts, the first of which has this number."""
    start = time.perf_counter()
    assert run.cell.config is not None
    assert run.cell.config.seed is not None, "cells have their own seeds"
    rng: Randomness = SeededRandomness(run.cell.config.seed).part(SIMULATION + first)
    for attacker in attackers(asked):
        with models.quick() if attacker.name in ASKING else nullcontext():
            _take_outcomes(run, attacker.name, _outcomes(run, attacker, case, rng), case, first)
    for name, outcomes in measure.outcomes(
        case, [name for name in asked.measures if name != "meaning"], rng=rng
    ):
        _take_outcomes(run, name, outcomes, case, first)
    run.seconds["attack"] += time.perf_counter() - start


def _outcomes(run: _Run, attacker: Attack, case: Case, rng: Randomness) -> Iterator[Outcome]:
    """An attacker's outcomes; none if it refuses."""
    if reason := attacker.refusal(case.view):
        run.refused[attacker.name] = reason
    else:
        yield from attacker.run(case, rng=rng)


def _take_outcomes(
    run: _Run, name: str, outcomes: Iterable[Outcome], case: Case, first: int
) -> None:
    """Collects what an attack or measure found in one batch; if it fails, its results from all batches are dropped."""
    if name in run.failed:
        return
    try:
        for outcome in outcomes:
            texts = case.view.text[outcome.where] if outcome.unit == "word" else outcome.where
            _collect(run, outcome, first + texts)
            if (outcome.source, outcome.metric) == ("bayes", "top-1") and outcome.setting[
                "prior"
            ] != "context":
                everything, owners = exposed(case, outcome)
                _collect(run, everything, first + owners)
    except (ConfigError, EndpointError) as error:
        run.failed[name] = _line(error)
        run.found = {key: found for key, found in run.found.items() if found.outcome.source != name}


def _line(error: Exception) -> str:
    """Why something failed, in one line; messages hold no private text."""
    return " ".join(str(error).split())


def attackers(asked: Sweep) -> list[Attack]:
    """The attackers of a sweep.

    Raises:
        UnknownName: there is no such attack, or it has no such option.
    """
    return [
        attack.load(each["name"], {name: value for name, value in each.items() if name != "name"})
        for each in asked.attacks
    ]


def _collect(run: _Run, outcome: Outcome, texts: Ids) -> None:
    key = (outcome.source, outcome.metric, *map(str, outcome.setting.items()))
    found = run.found.setdefault(key, _Collected(outcome=outcome))
    found.values.append(outcome.values)
    found.texts.append(texts)


def _score(found: _Collected, texts: int) -> rows.Row:
    """An outcome as a score of a row."""
    outcome, values, owners = (
        found.outcome,
        np.concatenate(found.values),
        np.concatenate(found.texts),
    )
    weights = np.bincount(owners, minlength=texts)
    sums = np.bincount(owners, values, minlength=texts)
    stop = int(owners.max()) + 1 if len(owners) else 0
    means = [
        s / w if w else None
        for s, w in zip(sums[:stop].tolist(), weights[:stop].tolist(), strict=True)
    ]
    return score(
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


def score(
    *,
    interval: intervals.Interval,
    values: Sequence[float | None],
    geometric: bool = False,
    **named: Any,
) -> rows.Row:
    """One score of a row; per-text numbers are rounded to five digits."""
    value, low, high = (
        _finite(np.exp(end) if geometric else end)
        for end in (interval.value, interval.low, interval.high)
    )
    short = [None if each is None else float(f"{each:.5g}") for each in values]
    return {
        **named,
        "value": value,
        "low": low,
        "high": high,
        "geometric": geometric,
        "values": short,
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# ---- the judges ----------------------------------------------------------------------------------------


def _judged(
    judges: Sequence[Judge],
    data: DataSet,
    tried: Sequence[ReleasedExample],
    seconds: dict[str, float],
) -> tuple[list[rows.Row], dict[str, str]]:
    """The scores of all judges, and the judges without one."""
    start = time.perf_counter()
    found: list[rows.Row] = []
    refused: dict[str, str] = {}
    for judge in judges:
        try:
            if reason := judge.refusal(data):
                refused[judge.name] = reason
                continue
            with models.quick():
                found += [_judgement(judge, each) for each in judge.score(data, tried)]
        except (ConfigError, EndpointError) as error:
            refused[judge.name] = _line(error)
    seconds["task"] += time.perf_counter() - start
    return found, refused


def _judgement(judge: Judge, given: Score) -> rows.Row:
    """A judge's score as a score of a row."""
    return score(
        source=judge.name,
        metric=given.metric,
        setting={},
        unit="text",
        interval=intervals.mean(given.values, np.arange(len(given.values)), share=given.share),
        n=len(given.values),
        baseline=given.chance,
        note=given.note,
        headline=given.headline,
        values=given.values.tolist(),
        weights=None,
    )


def _untouched(cell: PlannedCell, data: DataSet, judges: Sequence[Judge], asked: Sweep) -> rows.Row:
    """The row of the baseline that leaves texts unchanged."""
    seconds = dict.fromkeys(("draw", "attack", "task"), 0.0)
    scores, refused = _judged(
        judges, data, [ReleasedExample.untouched(example) for example in data.examples], seconds
    )
    if any(each["name"] == "bayes" for each in asked.attacks):
        ones = np.ones(len(data))
        scores.append(
            score(
                source="bayes",
                metric=METRIC,
                setting={"prior": EXPOSED},
                unit="text",
                interval=intervals.Interval(value=1.0, low=1.0, high=1.0),
                n=len(ones),
                baseline=None,
                note=BY_DEFINITION,
                headline=True,
                values=ones.tolist(),
                weights=None,
            )
        )
    return {
        **_described(cell, None, None),
        "epsilon": {"kind": "none", "metric": None, "per_word": "infinite", "ldp": "infinite"},
        "protected": None,
        "scores": scores,
        "not_run": refused,
        "seconds": seconds,
        "texts": [],
    }


def _described(
    cell: PlannedCell, series: PlannedSeries | None, made: Privatizer | None
) -> rows.Row:
    """The part of a row that describes its cell."""
    path = series.path if series else None
    return {
        "key": cell.key,
        "seed": cell.seed,
        "level": None,
        "mechanism": made.claim.mechanism if made else "identity",
        "table": made.table.name if made else None,
        "configuration": _plain(cell.config.public()) if cell.config else None,
        "budget": None if path is None else {"path": path, "value": _plain(cell.budget)},
    }


def _epsilon(guarantees: Sequence[Guarantee]) -> rows.Row:
    """The largest of all statements."""
    kinds = {guarantee.kind for guarantee in guarantees}
    metrics = {guarantee.claim.metric for guarantee in guarantees}
    return {
        "kind": "none" if "none" in kinds else kinds.pop(),
        "metric": metrics.pop(),
        "per_word": _plain(max((guarantee.epsilon for guarantee in guarantees), default=0.0)),
        "ldp": _plain(max((guarantee.epsilon_ldp for guarantee in guarantees), default=0.0)),
    }


def _plain(value: Any) -> Any:
    """Plain data without infinities, which JSON cannot hold."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return "infinite" if isinstance(value, float) and not np.isfinite(value) else value


def _shown(tried: Sequence[ReleasedExample], count: int) -> list[rows.Row]:
    """Some texts before and after, for the gallery."""
    return [
        {
            "original": joined(trial.example),
            "released": joined(replace(trial.example, texts=trial.texts)),
        }
        for trial in tried[:count]
    ]


def check(made: Sweep) -> None:
    """Builds every cheap part of a sweep, so that errors in it surface before anything runs.

    Raises:
        ConfigError: an option is wrong. UnknownName: there is no such mechanism, attack or option.
    """
    attackers(made)
    for series in (each.taught(("word",)) if each.learned else each for each in made.series):
        if series.searched:
            raise ConfigError(
                f"the budgets of {series.entry!r} must be numbers; `risk` is for `textveil bench choose`"
            )
        for budget in series.budgets:
            series.config(budget)
    for own in made.data:
        if not own.task and own.limit is None and made.limit is None and own.split == "train":
            raise ConfigError("a sweep over training texts needs a limit: set sweep.limit")
