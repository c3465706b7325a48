"""Curve: the attackers' success on the same texts under smaller and larger budgets.

In: options, texts, and what was assessed of their release. Out: a point for each budget. For the
owner alone, like the risk.
Not here: how success is computed (`risk`), and how a curve looks (`render.curve`).

Each further budget releases the texts anew, in memory: only the success expected over all draws is
taken, and the releases are thrown away. A session is left out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from textveil.config import Config, registry
from textveil.errors import BudgetError
from textveil.evaluate.attack import Case, PriorName, ProgressCallback, ignore_progress
from textveil.evaluate.risk import Risk, assess, compute_interval, compute_share
from textveil.guarantee import Guarantee, find_drawn_epsilon, summarize
from textveil.pipeline import Privatizer, resolve_budget
from textveil.protect import Grouped
from textveil.randomness import Randomness
from textveil.table import EmbeddingTable

FACTORS = (1 / 4, 1 / 2, math.sqrt(1 / 2), 1.0, math.sqrt(2), 2.0, 4.0)
"""The multiples of all budgets at which a curve has points."""

SHORT_FACTORS = (1 / 4, 1 / 2, 1.0, 2.0, 4.0)
"""The multiples for one short text that somebody waits for."""

FEW_FACTORS = (1 / 2, 1.0, 2.0)
"""The multiples where one point takes long."""

SLOW_SECONDS = 10.0
"""The seconds of one assessment from which a point takes long."""

MAX_CURVE_WORDS = 2_000
"""The most private words of texts whose curve is computed."""


def choose_factors(seconds: float) -> tuple[float, ...]:
    """Chooses the multiples of a curve by the seconds that one assessment took."""
    return FACTORS if seconds < SLOW_SECONDS else FEW_FACTORS


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The expected success of attackers under one multiple of all budgets. Secret.

    Attributes:
        factor: the multiple; 1 for the budgets that were chosen.
        epsilon: the largest epsilon of a drawn word in the statement; infinite without a bound.
        bound: the same for any two words, where `epsilon` is per unit of distance.
        shares: by the name of an attacker's prior, the share of private words that he is expected
            to name, over all draws.
        intervals: the 95% intervals of those shares that are estimated from a few draws.
    """

    factor: float
    epsilon: float
    bound: float
    shares: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def compute_curve(  # noqa: PLR0913 - most are options, given by keyword
    config: Config,
    texts: Sequence[str],
    risks: Sequence[Risk],
    guarantee: Guarantee,
    *,
    prior: PriorName,
    public: Sequence[str] = (),
    table: EmbeddingTable | None = None,
    factors: Sequence[float] = FACTORS,
    rng: Randomness | None = None,
    report: ProgressCallback = ignore_progress,
) -> list[CurvePoint]:
    """Computes how the attackers' success changes with the budget.

    Args:
        config: what the texts were released with.
        texts: the originals.
        risks: what was assessed of their release, by `assess` with the same prior and public texts.
        guarantee: the statement about that release.
        prior: what an attacker without public texts expects.
        public: texts from which another attacker learned.
        table: takes the place of the configured one.
        factors: the multiples of all budgets, in order.
        rng: for simulations.
        report: callback for progress.

    Returns:
        The points in the order of the factors, without those whose budgets are out of range; empty
        where nothing is drawn, or there are too many words.
    """
    words = sum(int(risk.private.sum()) for risk in risks)
    if not guarantee.draws or not 0 < words <= MAX_CURVE_WORDS:
        return []
    config = replace(resolve_budget(config, table=table), risk=None, prior=None, profile=None)
    attackers: dict[str, Sequence[str]] = {prior: (), **({"learned": public} if public else {})}
    points = []
    for number, factor in enumerate(factors):
        report("risk at other budgets", number, len(factors))
        known = {risks[0].prior: risks} if factor == 1 else {}
        if attackers.keys() == known.keys():
            points.append(_build_point(factor, guarantee, known))
            continue
        try:
            privatizer = Privatizer.from_config(scale_budgets(config, factor), table=table)
            run = privatizer.rehearse(texts)
        except BudgetError:
            continue  # the mechanism cannot keep to so small or large a budget
        case = Case.build(privatizer, run, names=True)
        found = {
            name: known.get(name) or assess(case, prior=prior, public=own, rng=rng)
            for name, own in attackers.items()
        }
        statement = (
            guarantee if factor == 1 else summarize([result.guarantee for result in run.results])
        )
        points.append(_build_point(factor, statement, found))
    report("risk at other budgets", len(factors), len(factors))
    return points


def scale_budgets(config: Config, factor: float) -> Config:
    """Multiplies all budgets of words, names and figures; 0 and infinity stay.

    Args:
        config: resolved options, with an epsilon in place of a risk.
        factor: above 0.
    """
    groups, mechanism = config.groups, config.mechanism
    if groups.has_fixed_budgets:
        first, second, third, fourth = (
            budget * factor for budget in Grouped.build(groups, None).budgets
        )
        groups = replace(groups, budgets=(first, second, third, fourth), convention="paper")
    elif groups.base is not None:
        groups = replace(groups, base=groups.base * factor)
    parameter, _ = registry.find_budget_parameter(mechanism.name)
    if parameter is not None and mechanism.options.get(parameter) is not None:
        own = mechanism.options[parameter] * factor
        mechanism = replace(mechanism, options={**mechanism.options, parameter: own})
    figures = config.figures
    return replace(
        config,
        epsilon=None if config.epsilon is None else config.epsilon * factor,
        groups=groups,
        mechanism=mechanism,
        names=replace(config.names, epsilon=config.names.epsilon * factor),
        figures=replace(
            figures,
            day_epsilon=figures.day_epsilon * factor,
            year_epsilon=figures.year_epsilon * factor,
            unit_epsilon=figures.unit_epsilon * factor,
        ),
    )


def _build_point(
    factor: float, guarantee: Guarantee, found: Mapping[str, Sequence[Risk]]
) -> CurvePoint:
    epsilon = find_drawn_epsilon(guarantee)
    # Groups have theirs for any two words, whatever draws them.
    is_metric = guarantee.kind == "metric" and not guarantee.groups
    bound = guarantee.epsilon_ldp if is_metric else epsilon
    intervals = {name: compute_interval(risks) for name, risks in found.items()}
    return CurvePoint(
        factor=factor,
        epsilon=epsilon,
        bound=bound,
        shares={name: compute_share(risks) for name, risks in found.items()},
        intervals={name: ends for name, ends in intervals.items() if ends is not None},
    )
