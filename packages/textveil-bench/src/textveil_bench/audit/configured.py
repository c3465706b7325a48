"""Audits of configurations: a picklable build, with a default budget.

In: a function that returns a `Config`. Out: a `Build` for `audit`.
Not here: the sources of options (`config`), and the audited object (`audit_target`).
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np

from textveil.config import Config, registry
from textveil.errors import BudgetError, ConfigError
from textveil.mechanism import Layout, Mechanism, wrap_books
from textveil.pipeline import Privatizer
from textveil.table import load_table
from textveil_bench.audit.audit_target import find_smallest_budget

DEFAULT_LOCAL_DP = 12.0
"""Local DP of the default budget; small, so repeated draws are noticed."""

NOMINAL_EPSILON = 6.0
"""Epsilon of mechanisms without a bound.

The papers' grids go from 1 to 20.
"""

BUDGET_MARGIN = 1.25
"""Factor on the smallest feasible budget, which may change almost nothing.

Used if the mechanism cannot promise `DEFAULT_LOCAL_DP`.
"""


@dataclass(frozen=True, kw_only=True)
class ConfiguredBuild:
    """Builds the privatizer of a configuration.

    Without a budget, it gets one of local DP `DEFAULT_LOCAL_DP` over the table. Options are
    resolved at the first call, so that wrong options of one mechanism do not affect the others.

    Attributes:
        name: the registered name, under which findings are reported.
        resolve: returns the configuration; picklable.
    """

    name: str
    resolve: Callable[[], Config]

    @cached_property
    def config(self) -> Config:
        """The configuration, with a budget if the mechanism needs one.

        Raises:
            ConfigError: an option is wrong, or no budget can be chosen.
            TableError: the table cannot be loaded.
        """
        config = self.resolve()
        has_budget = (
            config.epsilon is not None
            or config.groups.has_fixed_budgets
            or config.groups.base is not None
        )
        return config if has_budget else replace(config, epsilon=_choose_budget(config))

    def __call__(self, *, seed: int | None = None) -> Privatizer:
        """Builds the privatizer with this seed, or none."""
        return Privatizer.from_config(replace(self.config, seed=seed))


def _choose_budget(config: Config) -> float | None:
    """Chooses epsilon in the unit of the mechanism's claim.

    None if the mechanism needs no budget or has its own parameter.
    """
    name, options = config.mechanism.name, config.mechanism.options
    if not registry.find_budget_parameter(name)[1]:
        return None
    table = load_table(**asdict(config.table))
    mechanism: Mechanism = wrap_books(registry.load("mechanism", name)(**options), table)
    claim = mechanism.claim(table)
    if mechanism.parameters(table, Layout.build(1)) is not None:
        return None
    if claim.kind == "none":
        return NOMINAL_EPSILON
    if claim.kind == "metric" and not 0 < claim.diameter < math.inf:
        raise ConfigError(
            f"{name} states no finite diameter above 0, from which a budget could be chosen; give "
            "epsilon"
        )
    wanted = (
        DEFAULT_LOCAL_DP
        if claim.kind == "ldp"
        else float(f"{DEFAULT_LOCAL_DP / claim.diameter:.3g}")
    )
    try:
        mechanism.calibrate(table, Layout.build(1), np.array([wanted]))
    except BudgetError:  # the budget is too small for it
        return BUDGET_MARGIN * find_smallest_budget(mechanism, table, Layout.build(1), wanted)
    return wanted
