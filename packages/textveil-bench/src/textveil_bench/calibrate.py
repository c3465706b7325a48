"""Finds the budget at which the Bayes attacker guesses a given share of the private words.

In: a privatizer for each budget, texts, shares. Out: a budget for each share, or the nearest possible one.
Not here: the attack (`evaluate.attack.bayes`), and what is compared at these budgets (`compare`).
"""

import math
from collections.abc import Callable, Mapping, Sequence

from textveil.errors import BudgetError
from textveil.evaluate.attack import Bayes, Case, PriorName, looks
from textveil.pipeline import Privatizer, sweep
from textveil.randomness import SeededRandomness
from textveil_bench.cells import SIMULATION
from textveil_bench.compare import NEAR
from textveil_bench.exposure import exposed

TRIES = 20
"""Most budgets tried per level."""

FLAT, LEVEL = 0.02, 5
"""Shares that differ by less than this fraction count as equal; after this many equal ones in a row, over a factor of a
thousand in the budget, the share is taken as constant."""

CLOSE = 1.01
"""Budgets whose ratio is smaller count as equal."""

Shares = dict[float, float]


def budgets(
    make: Callable[[float], Privatizer],
    texts: Sequence[str],
    levels: Sequence[float],
    *,
    start: float,
    prior: PriorName,
    queries: Sequence[str] | None = None,
    report: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> Mapping[float, float]:
    """A budget for each level, or the nearest possible one; a budget that serves several levels is listed once.

    The share rises with the budget. The search starts at `start` and doubles its steps; between two budgets it uses
    linear interpolation in the logarithm of the budget.

    Args:
        make: makes the privatizer for a budget.
        texts: with a few hundred private words.
        levels: shares of private words guessed, above 0 and below 1.
        start: the first budget, above 0.
        prior: the attacker's.
        queries: what each text is for, see `Privatizer.privatize`.
        report: called with the step "calibrating", the levels done, and their number.
    """
    tried: Shares = {}
    found: dict[float, float] = {}
    for done, level in enumerate(sorted(levels)):
        report("calibrating", done, len(levels))
        budget = _search(lambda budget: share(make, texts, prior, budget, queries), level, start, tried)
        if budget is not None:
            found[level] = budget
    nearest = {
        budget: min(found, key=lambda level: (found[level] != budget, abs(level - tried[budget])))
        for budget in found.values()
    }
    return {level: budget for level, budget in found.items() if nearest[budget] == level}


def share(
    make: Callable[[float], Privatizer],
    texts: Sequence[str],
    prior: PriorName,
    budget: float,
    queries: Sequence[str] | None = None,
) -> float:
    """The share of all private words that the attacker guesses at a budget; 1 if the budget is out of range."""
    attacker = Bayes(priors=(prior,), k=2)
    rng = SeededRandomness(0).part(SIMULATION)
    hits = count = 0.0
    try:
        privatizer = make(budget)
    except BudgetError:
        return 1.0
    apart = looks(privatizer.mechanism, privatizer.table)
    parts = sweep([privatizer], texts, queries) if apart else ((privatizer.rehearse(texts, queries=queries),),)
    for (rehearsal,) in parts:
        case = Case.after(privatizer, rehearsal)
        for outcome in attacker.run(case, rng=rng):
            if outcome.metric == "top-1":
                everything, _ = exposed(case, outcome)
                hits += float(everything.values.sum())
                count += len(everything.values)
    return hits / count if count else 0.0


def _search(at: Callable[[float], float], level: float, start: float, tried: Shares) -> float | None:
    """The budget for a level, or the nearest one; None if no budget is valid. Remembers what was tried."""
    if start not in tried:
        tried[start] = at(start)
    for _ in range(TRIES):
        below = max((b for b, s in tried.items() if s <= level), default=None)
        above = min((b for b, s in tried.items() if s > level and (below is None or b > below)), default=None)
        nearest = min(tried, key=lambda budget: abs(tried[budget] - level))
        if abs(tried[nearest] - level) <= NEAR * level:
            return nearest
        if below is not None and above is not None:
            if above / below < CLOSE:  # the share jumps across the level
                break
            budget = _between(below, above, tried, level)
        else:
            found = _beyond(tried, down=below is None)
            if found is None:
                break
            budget = found
        tried[budget] = at(budget)
    possible = [budget for budget, share in tried.items() if share < 1]
    return min(possible, key=lambda budget: abs(tried[budget] - level), default=None)


def _beyond(tried: Shares, *, down: bool) -> float | None:
    """The next budget beyond those tried; the longer the share has been constant there, the farther.

    None if it is constant for good.
    """
    budgets = sorted(tried, reverse=not down)
    ends = [tried[budget] for budget in budgets]
    level = next((i for i, end in enumerate(ends) if abs(end - ends[0]) > FLAT * ends[0]), len(ends))
    if level >= LEVEL:
        return None
    step = 2.0**level
    return budgets[0] / step if down else budgets[0] * step


def _between(below: float, above: float, tried: Shares, level: float) -> float:
    """Where the line through both meets the level, at least a tenth of the way from either end."""
    low, high = tried[below], tried[above]
    part = 0.5 if high == low else (level - low) / (high - low)
    part = min(max(part, 0.1), 0.9)
    return math.exp(math.log(below) + part * (math.log(above) - math.log(below)))
