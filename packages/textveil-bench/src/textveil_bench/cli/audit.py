"""The command `audit`.

In: a mechanism's name, or all mechanisms. Out: the claimed and the measured values, as a table or
JSON; the exit code is 1 if a claim is violated or cannot be checked.
Not here: the checks (`textveil_bench.audit`).
"""

import json
import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import console, progress
from textveil.cli.console import say
from textveil.cli.decorators import verb
from textveil.cli.options import TypedOptions
from textveil.errors import ConfigError, UnknownName
from textveil_bench.cli import whole_texts
from textveil_bench.cli.rates import PANEL

if TYPE_CHECKING:
    from textveil_bench.audit import AuditFinding


@verb(
    "textveil audit exponential --small",
    "textveil audit d-chi-stencil --epsilon 20 -o mechanism.L=4",
    "textveil audit --all --small --json",
    "textveil audit noise --checks sampled,streams --table glove",
    "textveil audit codebook --codes 24 --small",
    "textveil audit --unit document --library public.library --epsilon 2 --small",
    "textveil audit --unit document --way counts --library public.library --epsilon 1",
    options=(
        *("epsilon", "table", "codes", "profile", *whole_texts.OPTIONS),
        *("config", "setting"),
    ),
    brief=(
        *("every", "small", "checks", "way", "as_json"),
        *("epsilon", "table", "unit", "library", "setting"),
    ),
    default=None,
    panel=PANEL,
)
def audit(
    typed: TypedOptions,
    mechanism: Annotated[
        str | None,
        typer.Argument(
            metavar="MECHANISM", help="See `textveil list mechanisms`.", show_default=False
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Audit every mechanism, including those of other packages."),
    ] = False,
    left_out: Annotated[
        list[str] | None,
        typer.Option("--except", metavar="NAME", help="Leave this out of --all; repeatable."),
    ] = None,
    small: Annotated[
        bool,
        typer.Option(
            "--small", help="Fewer words and draws: seconds for a mechanism instead of minutes."
        ),
    ] = False,
    checks: Annotated[
        str | None, typer.Option("--checks", metavar="NAME,...", help="Run only these checks.")
    ] = None,
    way: whole_texts.WayOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per finding.")
    ] = False,
) -> None:
    """Prove or refute what a mechanism claims.

    The exit code is 1 if a claim is violated or cannot be checked.

    If the distribution of outputs can be computed, the check is exact. Otherwise samples give a
    lower bound of the privacy loss; a mechanism that keeps its claim fails such a check once in a
    million times. Without --epsilon the budget is the one that gives local DP 12.

    With --unit a release of whole texts is audited in place of a mechanism: two neighbours are
    released many times, by a document, sentence or subject.
    """
    from textveil.config import registry
    from textveil_bench.audit import CHECKS, ConfiguredBuild
    from textveil_bench.audit import audit as run

    named = {} if mechanism is None else {"mechanism__name": mechanism}
    if way is not None or "texts.unit" in typed.values or not (every or named):
        config = typed.resolve_config(complete=False, **named)
        if whole_texts.is_whole(config, way, all=every, checks=checks):
            _finish(_print_findings(whole_texts.audit_texts(config, way, small=small), as_json))
            return
    if every == (mechanism is not None):
        raise ConfigError(
            "give the name of a mechanism, or --all; for whole texts --unit and --library"
        )
    if every and "epsilon" in typed.values:
        raise ConfigError("--epsilon has another unit for each mechanism; leave it out with --all")
    known = registry.list_names("mechanism")
    if left_out and not every:
        raise ConfigError("--except leaves names out of --all")
    for item in left_out or ():
        if item not in known:
            raise UnknownName("mechanism", item, known)
    names = [name for name in known if name not in (left_out or ())] if every else [mechanism]
    only = CHECKS if checks is None else tuple(name.strip() for name in checks.split(","))
    builds = []
    for name in names:
        options = partial(typed.resolve_config, complete=False, mechanism__name=name)
        has_codes = "table.codes" in typed.values or any(
            setting.startswith("table.codes=") for setting in typed.settings
        )
        if every and registry.find_entry("mechanism", name or "").codes and not has_codes:
            options = partial(options, table__codes=AUDIT_CODES)
        builds.append(ConfiguredBuild(name=name or "", resolve=options))
    with progress.show_bars(unit=" checks") as report:
        failures = _print_findings(run(*builds, small=small, only=only, report=report), as_json)
    _finish(failures)


AUDIT_CODES = "24"
"""The general book for mechanisms that need one, with --all."""


def _finish(failures: int) -> None:
    """Ends the command with exit code 1 if a claim failed."""
    if failures:
        console.note(
            f"{failures} claims are violated or could not be checked"
            if failures > 1
            else "a claim is violated or could not be checked"
        )
        raise typer.Exit(1)


def _print_findings(findings: Iterable["AuditFinding"], as_json: bool) -> int:
    """Prints findings as they come; returns the number of failures."""
    failures, last = 0, None
    for finding in findings:
        failures += finding.has_failed
        if as_json:
            say(json.dumps(finding.to_json(), ensure_ascii=False))
            continue
        if finding.mechanism != last:
            say(("" if last is None else "\n") + finding.mechanism)
            say(f"  {'check':12}{'claimed':>10}{'found':>10}  {'evidence':12}{'verdict':15} why")
            last = finding.mechanism
        numbers = f"{_format_number(finding.claimed):>10}{_format_number(finding.found):>10}"
        say(
            f"  {finding.check:12}{numbers}  {finding.evidence:12}{finding.verdict:15} "
            f"{finding.why}"
        )
    return failures


def _format_number(value: float | None) -> str:
    if value is None:
        return "-"
    return "infinite" if math.isinf(value) else f"{value:.4g}"
