"""Audits of what options describe: a build that pickles, and a budget where none was given.

In: what gives a `Config`. Out: what `audit` takes.
Not here: where options come from (`config`), and what a build is called with (`subject`).
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
"""Of the budget that is taken where none is given: small enough that draws differ, so that repeated ones are seen."""

NOMINAL_EPSILON = 6.0
"""Epsilon of mechanisms for which it bounds nothing; the papers' grids go from 1 to 20."""

BUDGET_MARGIN = 1.25
"""Factor on the smallest budget, at which a mechanism may do next to nothing.

Used where it cannot promise `DEFAULT_LOCAL_DP`.
"""


@dataclass(frozen=True, kw_only=True)
class ConfiguredBuild:
    """Builds the privatizer of a configuration; without a budget, one of local DP `DEFAULT_LOCAL_DP` over the table.

    Options are resolved when it is first called, so that one mechanism's wrong options leave the
    others alone.

    Attributes:
        name: under which findings are reported: the registered one.
        resolve: gives the configuration; picklable.
    """

    name: str
    resolve: Callable[[], Config]

    @cached_property
    def config(self) -> Config:
        """The configuration, with a budget if the mechanism needs one.

        Raises:
            ConfigError: an option is wrong, or there is no budget to choose. TableError: the table
                cannot be loaded.
        """
        config = self.resolve()
        has_budget = (
            config.epsilon is not None
            or config.groups.has_fixed_budgets
            or config.groups.base is not None
        )
        return config if has_budget else replace(config, epsilon=_choose_budget(config))

    def __call__(self, *, seed: int | None = None) -> Privatizer:
        """The privatizer with this seed, or none."""
        return Privatizer.from_config(replace(self.config, seed=seed))


def _choose_budget(config: Config) -> float | None:
    """Epsilon in the unit of the mechanism's claim; None where the mechanism needs none or has its own parameter."""
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
    except BudgetError:  # it cannot promise so little
        return BUDGET_MARGIN * find_smallest_budget(mechanism, table, Layout.build(1), wanted)
    return wanted
