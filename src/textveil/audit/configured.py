"""Audits of what options describe: a build that pickles, and a budget where none was given.

In: a `Config`. Out: what `audit` takes.
Not here: where options come from (`config`), and what a build is called with (`subject`).
"""

from dataclasses import replace
from functools import partial

from textveil import registry
from textveil.audit.subject import Build
from textveil.config import Config
from textveil.mechanism import Layout, Mechanism
from textveil.pipeline import Privatizer
from textveil.table import load_table

LOCAL_DP = 12.0
"""Of the budget that is taken where none is given: small enough that draws differ, so that repeated ones are seen."""


def configured(config: Config) -> Build:
    """What builds the privatizer of a configuration; without a budget, one of local DP `LOCAL_DP` over the table.

    Raises:
        ConfigError: an option is wrong. TableError: the table cannot be loaded.
    """
    return partial(privatizer, config if config.epsilon is not None else replace(config, epsilon=_budget(config)))


def privatizer(config: Config, *, seed: int | None = None) -> Privatizer:
    """The privatizer of a configuration, with this seed or none."""
    return Privatizer.from_config(replace(config, seed=seed))


def _budget(config: Config) -> float | None:
    """Epsilon in the unit of the mechanism's claim; None where the mechanism needs none or has its own parameter."""
    name, options = config.mechanism.name, config.mechanism.options
    if not registry.budget_parameter(name)[1]:
        return None
    table = load_table(config.table.name, metric=config.table.metric, device=config.table.device)
    made: Mechanism = registry.load("mechanism", name)(**options)
    claim = made.claim(table)
    if claim.kind == "none" or made.parameters(table, Layout.of(1)) is not None:
        return None
    return LOCAL_DP if claim.kind == "ldp" else float(f"{LOCAL_DP / claim.diameter:.3g}")
