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
from textveil.mechanism import Layout, Mechanism, resolved
from textveil.pipeline import Privatizer
from textveil.table import load_table
from textveil_bench.audit.subject import smallest_budget

LOCAL_DP = 12.0
"""Of the budget that is taken where none is given: small enough that draws differ, so that repeated ones are seen."""

NOMINAL = 6.0
"""Epsilon of mechanisms for which it bounds nothing; the papers' grids go from 1 to 20."""

ROOM = 1.25
"""Times the smallest budget, where a mechanism cannot promise `LOCAL_DP`: at the smallest it may do next to nothing."""


@dataclass(frozen=True, kw_only=True)
class Configured:
    """Builds the privatizer of a configuration; without a budget, one of local DP `LOCAL_DP` over the table.

    Options are resolved when it is first called, so that one mechanism's wrong options leave the others alone.

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
            ConfigError: an option is wrong, or there is no budget to choose. TableError: the table cannot be loaded.
        """
        found = self.resolve()
        given = found.epsilon is not None or found.groups.fixed or found.groups.base is not None
        return found if given else replace(found, epsilon=_budget(found))

    def __call__(self, *, seed: int | None = None) -> Privatizer:
        """The privatizer with this seed, or none."""
        return Privatizer.from_config(replace(self.config, seed=seed))


def _budget(config: Config) -> float | None:
    """Epsilon in the unit of the mechanism's claim; None where the mechanism needs none or has its own parameter."""
    name, options = config.mechanism.name, config.mechanism.options
    if not registry.budget_parameter(name)[1]:
        return None
    table = load_table(**asdict(config.table))
    made: Mechanism = resolved(registry.load("mechanism", name)(**options), table)
    claim = made.claim(table)
    if made.parameters(table, Layout.of(1)) is not None:
        return None
    if claim.kind == "none":
        return NOMINAL
    if claim.kind == "metric" and not 0 < claim.diameter < math.inf:
        raise ConfigError(
            f"{name} states no finite diameter above 0, from which a budget could be chosen; give epsilon"
        )
    wanted = LOCAL_DP if claim.kind == "ldp" else float(f"{LOCAL_DP / claim.diameter:.3g}")
    try:
        made.calibrate(table, Layout.of(1), np.array([wanted]))
    except BudgetError:  # it cannot promise so little
        return ROOM * smallest_budget(made, table, Layout.of(1), wanted)
    return wanted
