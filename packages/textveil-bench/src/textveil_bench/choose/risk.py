"""The risk of a release: how often the attacker who learned names a private word; and the budget at which that is so.

In: a privatizer, texts, an attacker. Out: hits of each text; a budget for each level of risk.
Not here: the attacker (`evaluate.attack.learned`), and what is compared at these budgets (`summary`).

Every private word counts. One that passes as it is counts as named, and one that becomes a placeholder as not named.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from textveil.errors import BudgetError, ConfigError
from textveil.evaluate.attack import Case
from textveil.evaluate.attack.learned import Learned
from textveil.pipeline import Privatizer
from textveil.protect import PUBLIC
from textveil.randomness import SeededRandomness, Values
from textveil.text import Kind

TRIES = 9
"""Most budgets that are tried for one level."""

NEAR = 0.08
"""A budget will do if its risk is below the level by this part of it at most."""

STEP = 1.5
"""Budgets are multiplied or divided by this, and by more and more, until the level lies between two of them."""

FIRST, AMONG = "top-1", "top-10"

FAR, FLAT = 15.0, 0.002
"""Over so large a factor of the budget the risk changes by less than this: it will not change any more."""

Shares = dict[float, float]
"""The risk at each budget that was tried."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredRisk:
    """What an attacker gets of B texts.

    Attributes:
        words: float64 [B], private words.
        hits: by measure (`FIRST`, `AMONG`), float64 [B], how many of them are named.
        blind: the share that the attacker names at first guess of the drawn words from what stands around alone.
        note: what is to be known of it.
    """

    words: Values = field(repr=False)
    hits: Mapping[str, Values] = field(repr=False)
    blind: float | None = None
    note: str = ""

    @property
    def share(self) -> float:
        """The share of all private words that are named at first guess."""
        return float(self.hits[FIRST].sum() / max(1.0, self.words.sum()))


def attacked(privatizer: Privatizer, texts: Sequence[str], learned: Learned) -> MeasuredRisk:
    """Releases texts, and attacks the release.

    Raises:
        ConfigError: no attacker can work out what the release tells; says why.
    """
    case = Case.of(privatizer, texts)
    view = case.view
    passed, hidden = np.zeros(len(texts)), np.zeros(len(texts))
    drawn = set(view.item.tolist())
    for b, released in enumerate(view.released):
        first = int(view.documents[b])
        own = [
            each
            for i, each in enumerate(released.items)
            if each.group != PUBLIC and first + i not in drawn
        ]
        passed[b] = sum(each.end - each.start for each in own if each.kind is Kind.VERBATIM)
        hidden[b] = sum(each.end - each.start for each in own if each.kind is Kind.PLACEHOLDER)
    words = np.bincount(view.text, minlength=len(texts)) + passed + hidden
    if not len(view.drawn):
        return MeasuredRisk(
            words=words, hits={FIRST: passed, AMONG: passed}, note="no word is drawn"
        )
    if reason := learned.refusal(view):
        raise ConfigError(reason)
    hits, blind, note = {}, None, ""
    for outcome in learned.run(case, rng=SeededRandomness(0)):
        if outcome.metric in (FIRST, AMONG):
            hits[outcome.metric] = passed + np.bincount(
                view.text[outcome.where], outcome.values, minlength=len(texts)
            )
            if outcome.metric == FIRST:
                blind, note = outcome.baseline, outcome.note
    return MeasuredRisk(words=words, hits=hits, blind=blind, note=note)


def budgets(
    at: Callable[[float], float], levels: Sequence[float], start: float, most: float | None = None
) -> tuple[dict[float, float], Shares]:
    """The largest budget found for each level at which the risk is not above it.

    Args:
        at: the risk at a budget; it rises with the budget. BudgetError: there is no such budget.
        levels: of the risk.
        start: the first budget.
        most: the largest; None for no limit.

    Returns:
        a budget for each level that can be reached; the risk at each budget that was tried.
    """
    tried: Shares = {}

    def share(budget: float) -> float:
        try:
            return at(budget)
        except BudgetError:
            return 1.0

    found: dict[float, float] = {}
    for level in sorted(levels):
        for _ in range(TRIES):
            budget = _next(tried, level, start, math.inf if most is None else most)
            if budget is None:
                break
            tried[budget] = share(budget)
        below = [budget for budget, risk in tried.items() if risk <= level]
        if below:
            found[level] = max(below)
    return found, tried


def _next(tried: Shares, level: float, start: float, most: float) -> float | None:
    """The budget to try next, None if one will do or none is left to try."""
    if not tried:
        return min(start, most)
    below = max((budget for budget, risk in tried.items() if risk <= level), default=None)
    above = min(
        (budget for budget, risk in tried.items() if risk > level and budget > (below or 0)),
        default=None,
    )
    if below is not None and tried[below] >= level * (1 - NEAR):
        return None
    if below is None or above is None:
        known = sorted(tried)
        end, beyond = (known[0], known[:3]) if below is None else (known[-1], known[-3:])
        risks = [tried[each] for each in beyond]
        if beyond[-1] >= FAR * beyond[0] and max(risks) - min(risks) < FLAT:
            return None
        if above is None and end >= most:
            return None
        step = STEP ** len(known)
        return end / step if below is None else min(end * step, most)
    if above / below < 1.01:
        return None
    part = (level * (1 - NEAR / 3) - tried[below]) / max(tried[above] - tried[below], 1e-9)
    part = min(max(part, 0.25), 0.75)  # risks are measured, and curves are no lines
    return math.exp(math.log(below) + part * (math.log(above) - math.log(below)))
