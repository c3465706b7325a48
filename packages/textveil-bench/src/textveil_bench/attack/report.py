"""From outcomes to rates with intervals: over all words, and by group, word frequency and text length.

In: a case and attackers. Out: `Findings`: rows of plain data, and tables of them.
Not here: the attackers, and the pictures (`picture`).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from textveil.config import plain, registry
from textveil.errors import ConfigError, EndpointError
from textveil.evaluate.attack.case import Case
from textveil.evaluate.attack.contract import (
    Attack,
    Averaging,
    Outcome,
    Report,
    Unit,
    Wordwise,
    quiet,
)
from textveil.evaluate.risk import CHOOSING
from textveil.randomness import Flags, Ids, Randomness, SystemRandomness, Values
from textveil.text import ranks as ranks_of
from textveil_bench import intervals

VERSION = 1
"""Version of the JSON form; it changes when a field changes its meaning."""

QUARTERS = 4

ALL = "all"

STAND_IN = "of names drawn from lists, the private one is taken to be the name that stands for it on its list"

NO_NAMES = "names drawn from lists are not among these words"

ONE_RELEASE = "this attack looks at one release of a text"


@dataclass(frozen=True, kw_only=True)
class Rate:
    """One rate.

    Attributes:
        source: the attack or the measure that it is of, by name.
        metric: what was measured.
        setting: what tells this outcome from others of the same source and metric.
        unit: what was counted.
        slice: `all`, or the property that the words or texts share: `group`, `frequency`, `length`.
        part: which group or quarter; empty for `all`.
        value: the mean.
        low: lower end of the 95% interval.
        high: its upper end.
        n: how many words or texts.
        baseline: what the attacker reaches without the released words, where that is known.
        note: what a reader has to know.
        headline: whether it stands in the short table and the picture.
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
        """All of it as plain data; JSON has no infinity, and an interval without an end has None there.

        Args:
            source: what the field of that name is called there.
        """
        return {
            source if name == "source" else name: _plain(value)
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What attacks found.

    Attributes:
        rows: all rates.
        refused: attacks that say nothing of such releases, and why.
        options: of each attack.
        texts: how many there were.
        words: how many protected positions.
        names: how many names were drawn from lists.
        unprotected: private words that passed as they were; they are in no rate.
        hidden: private words that became placeholders, apart from those of the mechanism; they are in no rate.
        releases: of each text.
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
        """All of it as plain data."""
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
            "caution": CHOOSING,
            "rows": [row.to_json("attack") for row in self.rows],
        }


def load(name: str, options: Mapping[str, Any] | None = None) -> Attack:
    """The attacker of a registered name.

    Raises:
        UnknownName: there is no such attack, or it has no such option.
        ConfigError: an option is out of range.
    """
    made: Attack = registry.load("attack", name)(**(options or {}))
    return made


def attack(
    case: Case,
    attacks: Sequence[Attack],
    *,
    rng: Randomness | None = None,
    report: Report = quiet,
) -> Findings:
    """Runs attacks on a case.

    Args:
        case: releases and their originals.
        attacks: the attackers, of different names.
        rng: for attackers who simulate the mechanism; None is system randomness.
        report: told of progress.
    """
    if len({each.name for each in attacks}) < len(attacks):
        raise ConfigError("an attack can be asked for once")
    rng = SystemRandomness() if rng is None else rng
    parts = _parts(case)
    rows: list[Rate] = []
    refused: dict[str, str] = {}
    for each in attacks:
        alone = ONE_RELEASE if case.view.others and not isinstance(each, Averaging) else ""
        run = partial(each.run, rng=rng, report=partial(_told, report, each.name))
        if reason := alone or each.refusal(case.view):
            refused[each.name] = reason
        lists = [
            part
            for part in case.lists
            if isinstance(each, Wordwise) and not (alone or each.refusal(part.view))
        ]
        try:
            found = [*([] if reason else run(case)), *of_names(case, lists, run)]
            if case.lists and all(outcome.unit != "name" for outcome in found):
                found = [
                    _noted(outcome, NO_NAMES) if outcome.unit == "word" else outcome
                    for outcome in found
                ]
            rows.extend(row for outcome in found for row in _rows(case, outcome, parts))
        except EndpointError as error:  # what the others found is not lost with it
            refused[each.name] = str(error)
    return Findings(
        rows=tuple(rows),
        refused=refused,
        options={each.name: plain(each) for each in attacks},
        texts=len(case.view.released),
        words=len(case.view.drawn),
        names=case.view.names,
        unprotected=case.view.unprotected,
        hidden=case.view.hidden,
        releases=len(case.view.others) + 1,
    )


def _noted(outcome: Outcome, note: str) -> Outcome:
    """The outcome with something more that a reader has to know."""
    return replace(outcome, note="; ".join(filter(None, (outcome.note, note))))


def of_names(
    case: Case, lists: Sequence[Case], run: Callable[[Case], Iterable[Outcome]]
) -> Iterator[Outcome]:
    """What is found of names that were drawn from lists, all lists together.

    Args:
        case: releases and their originals.
        lists: those of its lists that are looked at, as cases.
        run: gives the outcomes of a list; those of texts are left out.
    """
    held: dict[tuple[object, ...], list[Outcome]] = {}
    for part in lists:
        assert case.view.named is not None, "or there would be no list"
        for outcome in run(part):
            if outcome.unit == "word":
                where = np.searchsorted(case.view.named.items, part.view.item[outcome.where])
                key = outcome.metric, *outcome.setting.items()
                held.setdefault(key, []).append(replace(outcome, where=where))
    for found in held.values():
        known = [each for each in found if each.baseline is not None and len(each.where)]
        weights = [len(each.where) for each in known]
        yield replace(
            _noted(found[0], STAND_IN),
            unit="name",
            setting={name: value for name, value in found[0].setting.items() if name != "of"},
            where=np.concatenate([each.where for each in found]),
            values=np.concatenate([each.values for each in found]),
            baseline=float(np.average([each.baseline for each in known], weights=weights))
            if known
            else None,
        )


def _told(report: Report, attack: str, step: str, done: int, total: int) -> None:
    """Tells of a step of an attack, and which attack it is."""
    report(f"{attack}, {step}", done, total)


def rates(case: Case, outcomes: Sequence[Outcome]) -> Iterator[Rate]:
    """The rows of outcomes, over everything and by each property."""
    parts = _parts(case)
    for outcome in outcomes:
        yield from _rows(case, outcome, parts)


# ---- slices ----------------------------------------------------------------------------------------

Part = tuple[str, str, Flags]
"""A property, a value of it, and which of the words or texts have it."""


def _parts(case: Case) -> dict[Unit, list[Part]]:
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
    labels = () if view.named is None else view.named.labels
    lists = [
        ("group", label, np.array([each == label for each in labels]))
        for label in dict.fromkeys(labels)
    ]
    rarity = (
        ranks_of([case.truth.words[i] for i in view.named.items.tolist()])
        if view.named is not None
        else ranks[:0]
    )
    return {
        "word": [
            *(groups if len(groups) > 1 else []),
            *_quarters("frequency", ranks.astype(np.float64), RARITY),
            *_quarters("length", lengths[view.text], LENGTHS),
        ],
        "name": [
            *(lists if len(lists) > 1 else []),
            *_quarters("frequency", rarity.astype(np.float64), RARITY),
            *_quarters("length", lengths[view.text_of_name], LENGTHS),
        ],
        "text": [*_quarters("frequency", per_text, RARITY), *_quarters("length", lengths, LENGTHS)],
    }


RARITY = ("most frequent quarter", "second quarter", "third quarter", "rarest quarter")
LENGTHS = ("shortest quarter", "second quarter", "third quarter", "longest quarter")


def _quarters(name: str, values: Values, labels: Sequence[str]) -> Iterator[Part]:
    """Quarters by value; equal values stay together, so that quarters may be of unequal size, or empty."""
    known = values[~np.isnan(values)]
    if not len(known):
        return
    edges = np.quantile(known, np.arange(1, QUARTERS) / QUARTERS)
    which = np.searchsorted(edges, values, side="left")
    for quarter, label in enumerate(labels):
        chosen = (which == quarter) & ~np.isnan(values)
        if chosen.any():
            # text lengths are in the mask; the rank of a word in the public list would name the word
            yield name, f"{label} ({_range(values[chosen])})" if name == "length" else label, chosen


def _range(values: Values) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _rows(case: Case, outcome: Outcome, parts: Mapping[Unit, Sequence[Part]]) -> Iterator[Rate]:
    of_unit: dict[Unit, Ids] = {"word": case.view.text, "name": case.view.text_of_name}
    cluster = of_unit[outcome.unit][outcome.where] if outcome.unit in of_unit else outcome.where
    everything = np.ones(len(outcome.where), bool)
    slices = [(ALL, "", everything)]
    if outcome.sliced:
        slices += [
            (name, label, chosen[outcome.where]) for name, label, chosen in parts[outcome.unit]
        ]
    for name, label, chosen in slices:
        if not chosen.any():
            continue
        found = intervals.mean(outcome.values[chosen], cluster[chosen], share=outcome.share)
        value, low, high = map(
            _exp if outcome.geometric else float, (found.value, found.low, found.high)
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
            n=int(chosen.sum()),
            baseline=outcome.baseline if name == ALL else None,
            note=outcome.note if name == ALL else "",
            headline=outcome.headline,
        )


def _exp(end: float) -> float:
    return math.inf if end > 700 else math.exp(end)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
