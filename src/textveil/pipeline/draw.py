"""Draw: the one random step, with each word's spending.

In: the parts of a privatizer, a `Protection`, a `Plan`. Out: a `DrawResult`.
Not here: how a row is drawn (`mechanism`), and how rows become text again (`release`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from textveil.errors import BudgetError, MechanismError
from textveil.guarantee import Claim
from textveil.mechanism import (
    PLACEHOLDER,
    Capped,
    Contextual,
    Mechanism,
    Restricting,
    Role,
    WordRule,
    oov,
)
from textveil.pipeline.components import Parts
from textveil.pipeline.plan import Plan
from textveil.protect import Grouped, Protection
from textveil.randomness import Flags, Ids, Values
from textveil.session import Spend, convert_to_micros

LARGEST_NUMBER = 2**62
"""Random numbers are less; the largest range has 10^18, of which all are about equally likely."""

MAX_ROWS = 1 << 16
"""Most random numbers to draw at once."""

SPENDING_TOLERANCE = 1e-12
"""Relative rounding error of spending that does not count as overspending."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawResult:
    """Outcome of the draw.

    Attributes:
        rows: int64 [T], a row per unit; `PLACEHOLDER` where none was drawn.
        steps: int64 [N], amount that is added to a number that a rule raises, or to a figure.
        numbers: int64 [T], random numbers for surrogates of identifiers; empty without any.
        spent: float64 [N], epsilon of each word; infinite where it passes.
        parameter: float64 [n], the mechanism's parameter at every protected unit.
        restricted_epsilon: float64 [N], epsilon of each word under the mechanism's restricted
            claim; infinite without one.
        local_dp_cap: float64 [n], the largest local DP loss of every protected unit.
        capped: bool [n], whether that is less than its epsilon and the diameter imply.
    """

    rows: Ids
    steps: Ids
    numbers: Ids
    spent: Values
    parameter: Values
    restricted_epsilon: Values
    local_dp_cap: Values
    capped: Flags


def draw(parts: Parts, protection: Protection, plan: Plan) -> DrawResult:
    """Draws rows for the protected words of a batch, and their spending.

    Raises:
        MechanismError: a mechanism did not return a row and a bound for each protected word.
            BudgetError: neither a budget nor a parameter is set.
    """
    layout, mechanism, table = plan.block.layout, parts.mechanism, parts.table
    budgets, parameter = compute_parameters(parts, plan)
    # Names first: the mechanism may open as many streams as the longest text of the batch has
    # words.
    names, name_losses = _draw_names(parts, protection, plan)
    steps, step_losses = _draw_steps(parts, protection, plan)
    numbers = _draw_numbers(parts, plan)
    rows = mechanism.privatize(table, plan.block, parameter, rng=parts.randomness)
    # A mechanism may be anybody's, so that its output is checked before it is used.
    mechanism_rows, spent = _check_output(
        rows, mechanism.spend(table, layout, parameter), len(budgets), len(table)
    )
    restricted = np.full(len(budgets), np.inf)
    if parts.claim.restricted is not None:
        restricted = _check_bounds(
            cast(Restricting, mechanism).compute_restricted_epsilon(table, layout, parameter),
            len(budgets),
        )
    # Rounding errors are cut off; what really exceeds a budget stays, and the statement shows it.
    spent = np.where(spent <= budgets * (1 + SPENDING_TOLERANCE), np.minimum(spent, budgets), spent)
    bound = caps = parts.claim.compute_ldp(spent)
    if parts.claim.kind == "metric" and isinstance(mechanism, Capped):
        caps = np.minimum(
            bound,
            _check_bounds(mechanism.compute_local_dp_cap(table, layout, parameter), len(budgets)),
        )
    all_rows = np.full(len(layout.roles), PLACEHOLDER, np.int64)
    all_rows[layout.positions] = mechanism_rows
    if oov.has_random_rule(parts.words):
        rule = plan.rules[layout.unit_of]
        rule_draws = oov.draw(rule, layout.documents, len(table), rng=parts.randomness)
        all_rows[rule == WordRule.UNIFORM] = rule_draws[rule == WordRule.UNIFORM]
        steps[layout.unit_of[rule == WordRule.ADD]] = rule_draws[rule == WordRule.ADD]
    total = _sum_per_word(mechanism, plan, spent)
    name_places = np.flatnonzero(protection.named)
    all_rows[name_places], total[name_places] = names[name_places], name_losses[name_places]
    total[protection.moved] = step_losses[protection.moved]
    return DrawResult(
        rows=all_rows,
        steps=steps,
        numbers=numbers,
        spent=total,
        parameter=parameter,
        restricted_epsilon=_sum_per_word(mechanism, plan, restricted),
        local_dp_cap=caps,
        capped=caps < bound * (1 - SPENDING_TOLERANCE),
    )


def compute_parameters(parts: Parts, plan: Plan) -> tuple[Values, Values]:
    """Returns budget and mechanism parameter of each protected unit, float64 [n].

    Raises:
        BudgetError: neither a budget nor a parameter is set.
    """
    layout, mechanism, table = plan.block.layout, parts.mechanism, parts.table
    parameter = mechanism.parameters(table, layout)
    budgets = np.full(len(layout.positions), np.inf)
    if parameter is None and plan.epsilon is not None:
        # The losses of a word's pieces add up, so that they share its budget.
        shares = 1 if looks_at_all(mechanism) else plan.counts
        budgets = (plan.epsilon / shares)[layout.words]
        parameter = mechanism.calibrate(table, layout, budgets)
    if parameter is None:
        raise BudgetError("the mechanism has neither a budget nor a parameter")
    return budgets, parameter


def plan_spending(parts: Parts, protection: Protection, plan: Plan, replayed: Flags) -> list[Spend]:
    """Bounds the spending of a draw before it, for words, names, figures.

    Equal words that are replaced alike count once in each text. Words that pass because nothing was
    found in them, and placeholders, spend nothing.

    Args:
        parts: parts of the privatizer.
        protection: the groups of words.
        plan: decisions about them.
        replayed: bool [N], words that are released as they were drawn before, and spend nothing.
    """
    new = ~replayed & plan.is_first
    seed = "the draws follow from a seed" if parts.randomness.is_seeded else ""
    return [
        *_plan_words(parts, protection, plan, new, seed),
        *_plan_names(parts, protection, new, seed),
        *_plan_figures(parts, protection, new, seed),
    ]


def can_spend(parts: Parts) -> bool:
    """Says whether a release may spend anything, for some text; see `plan_spending`."""
    return (
        parts.drawn_groups
        or parts.claim.draws
        or parts.claim.kind == "none"
        or parts.names is not None
        or parts.figures is not None
        or bool(oov.list_reasons(parts.words))
    )


def _plan_words(
    parts: Parts, protection: Protection, plan: Plan, new: Flags, seed: str
) -> Iterator[Spend]:
    """Yields the spending of table words, and of labels if drawn."""
    claim, table, layout = parts.claim, _find_account_table(parts), plan.block.layout
    ruled = (new & (plan.rules != WordRule.HOUSE)).any()
    reasons = oov.list_reasons(parts.words) if ruled else []
    all_reasons = [*reasons, claim.reason, seed]
    if parts.drawn_groups:
        covered = int((~protection.public).sum())
        cost = covered * compute_label_cost(
            parts, claim, covered
        )  # at least the sum over the texts
        yield _build_spend("ldp", table, cost, cost, covered, all_reasons)
        return
    word_places = np.unique(layout.words)
    word_places = word_places[new[word_places]]
    if not reasons and not (len(word_places) and (claim.draws or claim.kind == "none")):
        return
    bounds = parts.mechanism.spend(parts.table, layout, compute_parameters(parts, plan)[1])
    spent = sum_pieces(parts.mechanism, layout.words, bounds, len(plan.roles))[word_places]
    if parts.words.unit == "wordpiece":
        claim = claim.scale_pieces(int(plan.counts.max(initial=1)))
    epsilon, ldp = float(spent.sum()), float(claim.compute_ldp(spent).sum())
    yield _build_spend(claim.metric or "ldp", table, epsilon, ldp, len(word_places), all_reasons)


def _plan_names(parts: Parts, protection: Protection, new: Flags, seed: str) -> Iterator[Spend]:
    if parts.names is not None and (names := int((protection.named & new).sum())):
        epsilon = names * parts.names.options.epsilon
        yield _build_spend("ldp", "names", epsilon, epsilon, names, [seed])


def _plan_figures(parts: Parts, protection: Protection, new: Flags, seed: str) -> Iterator[Spend]:
    places = np.flatnonzero(protection.moved & new).tolist()
    if parts.figures is not None and places:
        bounds = [parts.figures.compute_local_dp(protection.get_group(i)) for i in places]
        reason = "" if np.isfinite(bounds).all() else "dates and amounts have no largest distance"
        yield _build_spend("ldp", "figures", sum(bounds), sum(bounds), len(bounds), [reason, seed])


def _find_account_table(parts: Parts) -> str:
    """Returns the table name of the account.

    For local DP, all levels of a nested book share one account, so that a limit holds.
    """
    table, book = parts.table, parts.table.root.book
    if book is None or book.nested_book is None or parts.claim.kind != "ldp":
        return table.name
    return f"{table.origin.name} in levels of book {book.nested_book.digest[:8]}"


def _build_spend(
    metric: str, table: str, epsilon: float, ldp: float, words: int, reasons: Sequence[str]
) -> Spend:
    infinite = next(
        filter(None, reasons), "" if np.isfinite(epsilon + ldp) else "an infinite budget"
    )
    # Infinite spending is listed with its reason, never added to a total.
    if infinite:
        return Spend(metric=metric, table=table, epsilon=0, ldp=0, words=words, infinite=infinite)
    return Spend(
        metric=metric,
        table=table,
        epsilon=convert_to_micros(epsilon),
        ldp=convert_to_micros(ldp),
        words=words,
    )


def compute_label_cost(parts: Parts, claim: Claim, words: int) -> float:
    """Returns the local DP of a word where groups are drawn.

    It is the largest of a group, plus the word's label and all labels that it can change.
    """
    assert isinstance(parts.budget, Grouped), "options are checked"
    assert parts.grouping is not None, "or no group would be drawn"
    label = parts.grouping.options.label_epsilon or 0.0
    places = 1 if parts.grouping.is_context_free else max(1, words)
    return float(claim.compute_ldp(np.array(parts.budget.budgets)).max()) + places * label


def _draw_names(parts: Parts, protection: Protection, plan: Plan) -> tuple[Ids, Values]:
    """Draws a row for every word that a name replaces.

    Returns:
        The rows and their local DP; `PLACEHOLDER` and 0 for all other words.
    """
    if parts.names is None:
        return np.full(len(plan.roles), PLACEHOLDER, np.int64), np.zeros(len(plan.roles))
    return parts.names.draw(
        protection, plan.originals, plan.block.layout.documents, rng=parts.randomness
    )


def _draw_steps(parts: Parts, protection: Protection, plan: Plan) -> tuple[Ids, Values]:
    """Draws the step of every figure.

    Returns:
        The steps and their local DP; 0 and 0 for all other words.
    """
    if parts.figures is None:
        return np.zeros(len(plan.roles), np.int64), np.zeros(len(plan.roles))
    return parts.figures.draw(
        plan.figures, protection, plan.block.layout.documents, rng=parts.randomness
    )


def _draw_numbers(parts: Parts, plan: Plan) -> Ids:
    """Draws a number for the surrogate of every unit, whatever it is."""
    documents = plan.block.layout.documents
    numbers = np.zeros(int(documents[-1]) if parts.identifiers else 0, np.int64)
    if parts.identifiers:
        for part, draws in parts.randomness.open(np.diff(documents)).split_rows(MAX_ROWS):
            numbers[part] = draws.integers(np.full(draws.size, LARGEST_NUMBER, np.int64))
    return numbers


def _check_output(rows: object, spent: object, n: int, words: int) -> tuple[Ids, Values]:
    """Returns a mechanism's output if it fits the number of positions."""
    if not (isinstance(rows, np.ndarray) and rows.shape == (n,) and rows.dtype.kind == "i"):
        raise MechanismError(
            f"a mechanism must release an array of {n} rows, one per protected word; nothing was "
            "released"
        )
    if ((rows < PLACEHOLDER) | (rows >= words)).any():
        raise MechanismError("a mechanism must release rows of the table; nothing was released")
    return rows.astype(np.int64), _check_bounds(spent, n)


def _check_bounds(spent: object, n: int) -> Values:
    """Returns a mechanism's bounds if there is one per position."""
    if not (
        isinstance(spent, np.ndarray)
        and spent.shape == (n,)
        and spent.dtype.kind == "f"
        and (spent >= 0).all()
    ):
        raise MechanismError(
            "a mechanism must bound what each protected word spends; nothing was released"
        )
    return spent.astype(np.float64)


def looks_at_all(mechanism: Mechanism) -> bool:
    """True if each draw looks at all protected words of its text."""
    return isinstance(mechanism, Contextual) and mechanism.context.mode == "original"


def sum_pieces(mechanism: Mechanism, words: Ids, losses: Values, count: int) -> Values:
    """Returns the loss of each word [N] from those of its positions [n].

    They add up. Where each draw looks at all words, a position's loss is that of all draws, and
    several of them lose no more.

    Args:
        mechanism: made the draws.
        words: int64 [n], the word of each position.
        losses: float64 [n].
        count: N.
    """
    if not looks_at_all(mechanism):
        return np.bincount(words, losses, minlength=count).astype(np.float64)
    total = np.zeros(count)
    np.maximum.at(total, words, losses)
    return total


def _sum_per_word(mechanism: Mechanism, plan: Plan, spent: Values) -> Values:
    """Returns bounds of words [N] from those of positions; infinite for passing words."""
    total = sum_pieces(mechanism, plan.block.layout.words, spent, len(plan.roles))
    total[(plan.roles == Role.PASS) | (plan.rules != WordRule.HOUSE)] = np.inf
    return total
