"""The verb `audit`.

In: a mechanism's name, or all of them. Out: what is claimed, found and proved, as a table or JSON; exit code 1 where a
claim is violated or cannot be checked.
Not here: the checks (`audit`).
"""

import json
import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import progress, shell
from textveil.cli.options import Typed
from textveil.cli.shell import say
from textveil.cli.verbs import verb
from textveil.config.extras import require
from textveil.errors import ConfigError

if TYPE_CHECKING:
    from textveil.evaluate.audit import Finding


@verb(
    "textveil audit exponential --small",
    "textveil audit d-chi-stencil --epsilon 20 -o mechanism.L=4",
    "textveil audit --all --small --json",
    "textveil audit noise --checks sampled,streams --table glove",
    options=("epsilon", "table", "profile", "config", "setting"),
    default=None,
)
def audit(
    typed: Typed,
    mechanism: Annotated[
        str | None, typer.Argument(metavar="MECHANISM", help="See `textveil list mechanisms`.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every mechanism, those of other packages too.")] = False,
    small: Annotated[
        bool, typer.Option("--small", help="Fewer words and draws: seconds a mechanism instead of minutes.")
    ] = False,
    checks: Annotated[str | None, typer.Option("--checks", metavar="NAME,...", help="Only these checks.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per finding and line.")] = False,
) -> None:
    """Prove or refute what mechanisms claim. Ends with exit code 1 where one is violated or cannot be checked.

    Laws are computed exactly where they can be written down; else samples give lower bounds of the loss, which accuse a
    mechanism that keeps its claim once in a million checks. Without --epsilon the budget is one of local DP 12.
    """
    require("scipy")
    from textveil.config import registry
    from textveil.evaluate.audit import CHECKS, Configured
    from textveil.evaluate.audit import audit as run

    if every == (mechanism is not None):
        raise ConfigError("audit needs a mechanism's name or --all")
    if every and "epsilon" in typed.values:
        raise ConfigError("--epsilon is in the unit of one mechanism's claim; leave it out with --all")
    names = registry.names("mechanism") if every else [mechanism]
    only = CHECKS if checks is None else tuple(name.strip() for name in checks.split(","))
    builds = []
    for name in names:
        options = partial(typed.config, complete=False, mechanism__name=name)
        builds.append(Configured(name=name or "", resolve=options))
    with progress.bars(unit=" checks") as report:
        broken = _say(run(*builds, small=small, only=only, report=report), as_json)
    if broken:
        shell.note(f"{broken} claims are violated or unchecked" if broken > 1 else "a claim is violated or unchecked")
        raise typer.Exit(1)


def _say(findings: Iterable["Finding"], as_json: bool) -> int:
    """Print findings as they come; returns how many of them fail."""
    broken, last = 0, None
    for each in findings:
        broken += each.fails
        if as_json:
            say(json.dumps(each.to_json(), ensure_ascii=False))
            continue
        if each.mechanism != last:
            say(("" if last is None else "\n") + each.mechanism)
            say(f"  {'check':12}{'claimed':>10}{'found':>10}  {'evidence':12}{'verdict':15} why")
            last = each.mechanism
        numbers = f"{_short(each.claimed):>10}{_short(each.found):>10}"
        say(f"  {each.check:12}{numbers}  {each.evidence:12}{each.verdict:15} {each.why}")
    return broken


def _short(value: float | None) -> str:
    if value is None:
        return "-"
    return "infinite" if math.isinf(value) else f"{value:.4g}"
