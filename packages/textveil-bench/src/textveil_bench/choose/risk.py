"""Risk of a release: the trained attacker's success; budgets by risk.

In: a privatizer, texts, an attacker. Out: hits per text; a budget for each level of risk.
Not here: the attacker (`evaluate.attack.learned`), and the comparison at these budgets (`summary`).

Every private word counts. A word that passes unchanged counts as guessed, a placeholder as not
guessed.
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

MAX_TRIES = 9
"""Maximum number of budgets tried for one level."""

LEVEL_TOLERANCE = 0.08
"""Accepted relative distance of a budget's risk below the level."""

BUDGET_STEP = 1.5
"""Factor between tried budgets, raised to the number of tries.

Used until the budgets enclose the level.
"""

TOP_1, TOP_10 = "top-1", "top-10"

FLAT_RANGE, FLAT_CHANGE = 15.0, 0.002
"""Criterion for a flat risk curve: budget ratio and change of risk.

A larger budget ratio with a smaller change ends the search.
"""

RiskByBudget = dict[float, float]
"""The risk at each tried budget."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredRisk:
    """An attacker's success on B texts.

    Attributes:
        words: float64 [B], number of private words.
        hits: number of guessed words, float64 [B], by measure (`TOP_1`, `TOP_10`).
        blind: the share of drawn words that the attacker guesses from context alone.
        note: remark for readers.
    """

    words: Values = field(repr=False)
    hits: Mapping[str, Values] = field(repr=False)
    blind: float | None = None
    note: str = ""

    @property
    def share(self) -> float:
        """The share of all private words guessed at first attempt."""
        return float(self.hits[TOP_1].sum() / max(1.0, self.words.sum()))


def measure_risk(privatizer: Privatizer, texts: Sequence[str], learned: Learned) -> MeasuredRisk:
    """Releases texts and attacks the release.

    Raises:
        ConfigError: no attacker can interpret this release; the message says why.
    """
    case = Case.create(privatizer, texts)
    view = case.view
    passed, hidden = np.zeros(len(texts)), np.zeros(len(texts))
    drawn_items = set(view.item.tolist())
    for b, released in enumerate(view.released):
        first = int(view.documents[b])
        undrawn_items = [
            item
            for i, item in enumerate(released.items)
            if item.group != PUBLIC and first + i not in drawn_items
        ]
        passed[b] = sum(
            item.end - item.start for item in undrawn_items if item.kind is Kind.VERBATIM
        )
        hidden[b] = sum(
            item.end - item.start for item in undrawn_items if item.kind is Kind.PLACEHOLDER
        )
    words = np.bincount(view.text, minlength=len(texts)) + passed + hidden
    if not len(view.output_rows):
        return MeasuredRisk(
            words=words, hits={TOP_1: passed, TOP_10: passed}, note="no word is drawn"
        )
    if reason := learned.refusal(view):
        raise ConfigError(reason)
    hits, blind, note = {}, None, ""
    for outcome in learned.run(case, rng=SeededRandomness(0)):
        if outcome.metric in (TOP_1, TOP_10):
            hits[outcome.metric] = passed + np.bincount(
                view.text[outcome.where], outcome.values, minlength=len(texts)
            )
            if outcome.metric == TOP_1:
                blind, note = outcome.baseline, outcome.note
    return MeasuredRisk(words=words, hits=hits, blind=blind, note=note)


def find_budgets(
    compute_risk: Callable[[float], float],
    levels: Sequence[float],
    start: float,
    max_budget: float | None = None,
) -> tuple[dict[float, float], RiskByBudget]:
    """Finds the largest budget at which the risk is within each level.

    Args:
        compute_risk: the risk at a budget, increasing; raises BudgetError if the budget is not
            feasible.
        levels: of the risk.
        start: the first budget.
        max_budget: the largest; None for no limit.

    Returns:
        a budget for each level that can be reached; the risk at each tried budget.
    """
    tried: RiskByBudget = {}

    def measure_budget(budget: float) -> float:
        try:
            return compute_risk(budget)
        except BudgetError:
            return 1.0

    budget_by_level: dict[float, float] = {}
    for level in sorted(levels):
        for _ in range(MAX_TRIES):
            budget = _pick_next(tried, level, start, math.inf if max_budget is None else max_budget)
            if budget is None:
                break
            tried[budget] = measure_budget(budget)
        below = [budget for budget, risk in tried.items() if risk <= level]
        if below:
            budget_by_level[level] = max(below)
    return budget_by_level, tried


def _pick_next(tried: RiskByBudget, level: float, start: float, max_budget: float) -> float | None:
    """Picks the next budget to try; None if the search has ended."""
    if not tried:
        return min(start, max_budget)
    below = max((budget for budget, risk in tried.items() if risk <= level), default=None)
    above = min(
        (budget for budget, risk in tried.items() if risk > level and budget > (below or 0)),
        default=None,
    )
    if below is not None and tried[below] >= level * (1 - LEVEL_TOLERANCE):
        return None
    if below is None or above is None:
        sorted_budgets = sorted(tried)
        end, outermost = (
            (sorted_budgets[0], sorted_budgets[:3])
            if below is None
            else (sorted_budgets[-1], sorted_budgets[-3:])
        )
        risks = [tried[candidate] for candidate in outermost]
        if outermost[-1] >= FLAT_RANGE * outermost[0] and max(risks) - min(risks) < FLAT_CHANGE:
            return None
        if above is None and end >= max_budget:
            return None
        step = BUDGET_STEP ** len(sorted_budgets)
        return end / step if below is None else min(end * step, max_budget)
    if above / below < 1.01:
        return None
    part = (level * (1 - LEVEL_TOLERANCE / 3) - tried[below]) / max(
        tried[above] - tried[below], 1e-9
    )
    part = min(max(part, 0.25), 0.75)  # measured risks are noisy, and curves are not straight
    return math.exp(math.log(below) + part * (math.log(above) - math.log(below)))
