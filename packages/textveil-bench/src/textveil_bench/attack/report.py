"""Converts outcomes to rates with intervals, overall and by slice.

In: a case and attackers. Out: `Findings`: rows of plain data, and tables of them.
Not here: the attackers, and the pictures (`pictures`).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from textveil.config import dump_options, registry
from textveil.errors import ConfigError, EndpointError
from textveil.evaluate.attack.attack_contract import (
    Attack,
    Averaging,
    Outcome,
    ProgressCallback,
    Unit,
    Wordwise,
    ignore_progress,
)
from textveil.evaluate.attack.attack_input import Case
from textveil.evaluate.risk import REDRAW_WARNING
from textveil.randomness import Flags, Ids, Randomness, SystemRandomness, Values
from textveil.text import lookup_ranks as ranks_of
from textveil_bench import intervals

VERSION = 1
"""Version of the JSON form; changes when a field changes its meaning."""

QUARTERS = 4

ALL_SLICE = "all"

STAND_IN_NOTE = (
    "for names drawn from lists, the private name is taken to be its representative on the list"
)

NO_NAMES_NOTE = "names drawn from lists are not among these words"

ONE_RELEASE_REFUSAL = "this attack uses only one release of a text"


@dataclass(frozen=True, kw_only=True)
class Rate:
    """One rate with its confidence interval.

    Attributes:
        source: the name of the attack or measure.
        metric: the name of the metric.
        setting: options that distinguish outcomes with the same source and metric.
        unit: what is counted.
        slice: `all`, or the property by which words or texts are sliced: `group`, `frequency`,
            `length`.
        part: the group or quarter; empty for `all`.
        value: the mean.
        low: lower end of the 95% interval.
        high: its upper end.
        n: number of words or texts.
        baseline: what the attacker reaches without the released words; None if unknown.
        note: remark for readers.
        headline: whether it is shown in the short table and the picture.
    """

    source: str
    metric: str
    setting: Mapping[str, str | int | float]
    unit: Unit
    slice: str
    part: str
    value: float
    low: float
    high: float
    n: int
    baseline: float | None
    note: str
    headline: bool

    def to_json(self, source: Literal["attack", "measure"]) -> dict[str, Any]:
        """Converts the rate to plain data; infinite values become None.

        Args:
            source: the key for the field `source`.
        """
        return {
            source if name == "source" else name: _drop_infinity(value)
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The results of attacks.

    Attributes:
        rows: all rates.
        refused: attacks that do not apply to these releases, with the reason.
        options: the options of each attack.
        texts: number of texts.
        words: number of protected positions.
        names: number of names drawn from lists.
        unprotected: private words that passed unchanged; they are in no rate.
        hidden: private words replaced by placeholders, except by the mechanism; they are in no
            rate.
        releases: number of releases of each text.
    """

    rows: tuple[Rate, ...] = field(repr=False)
    refused: Mapping[str, str]
    options: Mapping[str, Mapping[str, object]]
    texts: int
    words: int
    names: int = 0
    unprotected: int = 0
    hidden: int = 0
    releases: int = 1

    def to_json(self) -> dict[str, Any]:
        """Converts the findings to plain data."""
        return {
            "version": VERSION,
            "texts": self.texts,
            "releases": self.releases,
            "protected": self.words,
            "names": self.names,
            "passed_unprotected": self.unprotected,
            "placeholders": self.hidden,
            "attacks": {name: dict(options) for name, options in self.options.items()},
            "not_run": dict(self.refused),
            "caution": REDRAW_WARNING,
            "rows": [row.to_json("attack") for row in self.rows],
        }


def load(name: str, options: Mapping[str, Any] | None = None) -> Attack:
    """Builds the attacker of a registered name.

    Raises:
        UnknownName: there is no such attack, or it has no such option.
        ConfigError: an option is out of range.
    """
    attacker: Attack = registry.load("attack", name)(**(options or {}))
    return attacker


def attack(
    case: Case,
    attacks: Sequence[Attack],
    *,
    rng: Randomness | None = None,
    report: ProgressCallback = ignore_progress,
) -> Findings:
    """Runs attacks on a case.

    Args:
        case: releases and their originals.
        attacks: the attackers, of different names.
        rng: for attackers that simulate the mechanism; None for system randomness.
        report: called with the progress.
    """
    if len({attacker.name for attacker in attacks}) < len(attacks):
        raise ConfigError("an attack may be given only once")
    rng = SystemRandomness() if rng is None else rng
    parts = _build_slices(case)
    rows: list[Rate] = []
    refused: dict[str, str] = {}
    for attacker in attacks:
        release_limit = (
            ONE_RELEASE_REFUSAL
            if case.view.other_releases and not isinstance(attacker, Averaging)
            else ""
        )
        run = partial(attacker.run, rng=rng, report=partial(report_step, report, attacker.name))
        if reason := release_limit or attacker.refusal(case.view):
            refused[attacker.name] = reason
        lists = [
            part
            for part in case.list_cases
            if isinstance(attacker, Wordwise) and not (release_limit or attacker.refusal(part.view))
        ]
        try:
            outcomes = [*([] if reason else run(case)), *merge_name_outcomes(case, lists, run)]
            if case.list_cases and all(outcome.unit != "name" for outcome in outcomes):
                outcomes = [
                    _add_note(outcome, NO_NAMES_NOTE) if outcome.unit == "word" else outcome
                    for outcome in outcomes
                ]
            rows.extend(compute_rates(case, outcomes, parts))
        except EndpointError as error:  # the results of the other attacks are kept
            refused[attacker.name] = str(error)
    return Findings(
        rows=tuple(rows),
        refused=refused,
        options={attacker.name: dump_options(attacker) for attacker in attacks},
        texts=len(case.view.released),
        words=len(case.view.output_rows),
        names=case.view.name_count,
        unprotected=case.view.verbatim_count,
        hidden=case.view.placeholder_count,
        releases=len(case.view.other_releases) + 1,
    )


def _add_note(outcome: Outcome, note: str) -> Outcome:
    """Returns the outcome with a note appended."""
    return replace(outcome, note="; ".join(filter(None, (outcome.note, note))))


def merge_name_outcomes(
    case: Case, lists: Sequence[Case], run: Callable[[Case], Iterable[Outcome]]
) -> Iterator[Outcome]:
    """Merges the outcomes of names drawn from lists over all lists.

    Args:
        case: releases and their originals.
        lists: the attacked lists, each as a case.
        run: returns the outcomes of a list; outcomes of texts are ignored.
    """
    outcomes_by_key: dict[tuple[object, ...], list[Outcome]] = {}
    for part in lists:
        assert case.view.name_items is not None, "or there would be no list"
        for outcome in run(part):
            if outcome.unit == "word":
                where = np.searchsorted(case.view.name_items.items, part.view.item[outcome.where])
                key = outcome.metric, *outcome.setting.items()
                outcomes_by_key.setdefault(key, []).append(replace(outcome, where=where))
    for outcomes in outcomes_by_key.values():
        weighted = [item for item in outcomes if item.baseline is not None and len(item.where)]
        weights = [len(item.where) for item in weighted]
        yield replace(
            _add_note(outcomes[0], STAND_IN_NOTE),
            unit="name",
            setting={name: value for name, value in outcomes[0].setting.items() if name != "of"},
            where=np.concatenate([item.where for item in outcomes]),
            values=np.concatenate([item.values for item in outcomes]),
            baseline=float(np.average([item.baseline for item in weighted], weights=weights))
            if weighted
            else None,
        )


def report_step(report: ProgressCallback, attack: str, step: str, done: int, total: int) -> None:
    """Reports a step of an attack under the attack's name."""
    report(f"{attack}, {step}", done, total)


def compute_rates(
    case: Case,
    outcomes: Sequence[Outcome],
    parts: "Mapping[Unit, Sequence[Slice]] | None" = None,
) -> Iterator[Rate]:
    """Yields the rates of outcomes, overall and by slice."""
    parts = _build_slices(case) if parts is None else parts
    clusters: dict[Unit, Ids] = {"word": case.view.text, "name": case.view.text_of_name}
    for outcome in outcomes:
        where = outcome.where
        cluster = clusters[outcome.unit][where] if outcome.unit in clusters else where
        yield from build_rates(outcome, cluster, parts[outcome.unit])


# ---- slices ----------------------------------------------------------------------------------------

Slice = tuple[str, str, Flags]
"""A property, its value, and a mask of words or texts."""


def _build_slices(case: Case) -> dict[Unit, list[Slice]]:
    view = case.view
    ranks = ranks_of(case.secret_words)
    texts = len(view.released)
    per_text = np.full(texts, np.nan)
    order = np.lexsort((ranks, view.text))
    counts = np.bincount(view.text, minlength=texts)
    middle = np.cumsum(counts) - counts + (counts - 1) // 2
    per_text[counts > 0] = ranks[order][middle[counts > 0]]
    lengths = case.lengths.astype(np.float64)
    groups = [
        ("group", name, view.group == number)
        for number, name in enumerate(view.groups)
        if (view.group == number).any()
    ]
    labels = () if view.name_items is None else view.name_items.labels
    lists = [
        ("group", label, np.array([list_label == label for list_label in labels]))
        for label in dict.fromkeys(labels)
    ]
    rarity = (
        ranks_of([case.truth.words[i] for i in view.name_items.items.tolist()])
        if view.name_items is not None
        else ranks[:0]
    )
    return {
        "word": [
            *(groups if len(groups) > 1 else []),
            *_split_quarters("frequency", ranks.astype(np.float64), FREQUENCY_LABELS),
            *_split_quarters("length", lengths[view.text], LENGTH_LABELS),
        ],
        "name": [
            *(lists if len(lists) > 1 else []),
            *_split_quarters("frequency", rarity.astype(np.float64), FREQUENCY_LABELS),
            *_split_quarters("length", lengths[view.text_of_name], LENGTH_LABELS),
        ],
        "text": [
            *_split_quarters("frequency", per_text, FREQUENCY_LABELS),
            *split_lengths(lengths),
        ],
    }


FREQUENCY_LABELS = ("most frequent quarter", "second quarter", "third quarter", "rarest quarter")
LENGTH_LABELS = ("shortest quarter", "second quarter", "third quarter", "longest quarter")


def _split_quarters(name: str, values: Values, labels: Sequence[str]) -> Iterator[Slice]:
    """Yields quarters by value.

    Equal values stay together, so quarters may differ in size or be empty.
    """
    finite = values[~np.isnan(values)]
    if not len(finite):
        return
    edges = np.quantile(finite, np.arange(1, QUARTERS) / QUARTERS)
    which = np.searchsorted(edges, values, side="left")
    for quarter, label in enumerate(labels):
        mask = (which == quarter) & ~np.isnan(values)
        if mask.any():
            # Text lengths are public anyway; a word's frequency rank would reveal the word.
            yield (
                name,
                f"{label} ({_format_range(values[mask])})" if name == "length" else label,
                mask,
            )


def _format_range(values: Values) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def split_lengths(lengths: Values) -> list[Slice]:
    """Returns the quarters of texts by their number of words."""
    return list(_split_quarters("length", lengths, LENGTH_LABELS))


def build_rates(outcome: Outcome, cluster: Ids, parts: Sequence[Slice]) -> Iterator[Rate]:
    """Yields the rates of an outcome, overall and by slice.

    Args:
        outcome: its values [m].
        cluster: int64 [m], the text that each value belongs to.
        parts: slices of all its units.
    """
    everything = np.ones(len(outcome.where), bool)
    slices = [(ALL_SLICE, "", everything)]
    if outcome.sliced:
        slices += [(name, label, mask[outcome.where]) for name, label, mask in parts]
    for name, label, mask in slices:
        if not mask.any():
            continue
        interval = intervals.mean(outcome.values[mask], cluster[mask], share=outcome.share)
        value, low, high = map(
            _exp if outcome.geometric else float, (interval.value, interval.low, interval.high)
        )
        yield Rate(
            source=outcome.source,
            metric=outcome.metric,
            setting=dict(outcome.setting),
            unit=outcome.unit,
            slice=name,
            part=label,
            value=value,
            low=low,
            high=high,
            n=int(mask.sum()),
            baseline=outcome.baseline if name == ALL_SLICE else None,
            note=outcome.note if name == ALL_SLICE else "",
            headline=outcome.headline,
        )


def _exp(end: float) -> float:
    return math.inf if end > 700 else math.exp(end)


def _drop_infinity(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
