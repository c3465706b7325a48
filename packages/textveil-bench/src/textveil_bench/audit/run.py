"""Runs the audit: a mechanism's claims against its law, samples and behaviour.

In: callables that build a `Privatizer`. Out: one `AuditFinding` per check, as it is made.
Not here: the success of adversaries (`attack`), and the printing of findings (`cli`).

Any object that satisfies the protocols `Mechanism` and, for exact checks, `Law` can be audited,
including mechanisms of other packages. Only the exact checks prove anything, and only for the words
they cover.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb

import numpy as np

import textveil
from textveil.errors import BudgetError, ConfigError, TextveilError, UnknownName
from textveil.mechanism import Layout
from textveil.pipeline import Privatizer
from textveil.protect import Uniform
from textveil_bench.audit import (
    coverage,
    exact,
    fit,
    joint_law,
    pipeline_check,
    restricted_claims,
    sampled,
    spending,
)
from textveil_bench.audit import fresh_draws as fresh
from textveil_bench.audit import support as supports
from textveil_bench.audit.audit_target import Build, Subject
from textveil_bench.audit.configured import ConfiguredBuild
from textveil_bench.audit.finding import ALARM_RATE, AuditFinding, Evidence, Verdict, make_unchecked
from textveil_bench.audit.fresh_draws import is_input_dependent
from textveil_bench.audit.grouped import split_by_group

__all__ = [
    "ALARM_RATE",
    "CHECKS",
    "AuditFinding",
    "Build",
    "ConfiguredBuild",
    "Evidence",
    "Subject",
    "Verdict",
    "audit",
]

_PACKAGES = (Path(textveil.__file__).parent, Path(__file__).parents[1])
"""Folders of the code whose errors show no word."""

AuditProgress = Callable[[str, int, int], None]

_CHECKS: dict[str, Callable[[Subject], AuditFinding]] = {
    "log-ratio": exact.check_log_ratio,
    "joint": joint_law.check_joint,
    "restricted": restricted_claims.check_restricted,
    "paper": restricted_claims.check_paper,
    "certificate": exact.check_certificate,
    "sampled": sampled.check_samples,
    "sampler": fit.check_sampler,
    "support": supports.check_support,
    "budget": spending.check_budget,
    "overcharge": spending.check_overcharge,
    "statement": spending.check_statement,
    "pipeline": pipeline_check.check_pipeline,
    "totality": coverage.check_totality,
    "error path": coverage.check_error_path,
    "streams": fresh.check_streams,
    "seed": fresh.check_seed,
}

CHECKS = tuple(_CHECKS)
"""The names of all checks, in order."""


def audit(
    *builds: Build,
    small: bool = False,
    only: tuple[str, ...] = CHECKS,
    report: AuditProgress = lambda step, done, total: None,
) -> Iterator[AuditFinding]:
    """Checks claims, one finding at a time.

    Args:
        builds: each builds a privatizer when called with the keyword `seed`, for example
            `functools.partial(Privatizer, "noise", epsilon=8.0)`; findings carry its `name` if it
            has one. Only picklable builds from importable modules are tested in other processes.
            Books by group are checked group by group.
        small: fewer words and draws: seconds per mechanism instead of minutes. Exact checks then
            cover 60 words.
        only: names of the checks to run.
        report: called with the mechanism's name, the number of checks done, and the total.

    Yields:
        One `AuditFinding` per mechanism and check. A check in which the mechanism raises is
            `violated`; a check that cannot test the claim is `unchecked`. If several builds are
            given, one that fails yields a single `unchecked` finding.

    Raises:
        ConfigError: there is no check of this name, or the only privatizer cannot be built or has
            no budget that can be audited.
    """
    if unknown := sorted(set(only) - set(CHECKS)):
        raise UnknownName("check", unknown[0], CHECKS)
    checks = [name for name in CHECKS if name in only]
    for build in builds:
        try:
            parts = list(split_by_group(build, build(seed=None)))
            for _, privatizer in parts:
                _require_budget(privatizer)
        except Exception as error:
            if len(builds) == 1:
                raise
            why = str(error) if isinstance(error, TextveilError) else _format_error(error)
            yield replace(
                make_unchecked("build", f"cannot be built: {why}"),
                mechanism=getattr(build, "name", ""),
            )
            continue
        for part_build, privatizer in parts:
            name = getattr(part_build, "name", privatizer.claim.mechanism)
            subject = Subject(build=part_build, small=small, privatizer=privatizer)
            report(name, 0, len(checks))
            for done, check in enumerate(checks, 1):
                start = time.perf_counter()
                finding = _run_check(subject, check)
                yield replace(
                    finding, mechanism=name, seconds=round(time.perf_counter() - start, 3)
                )
                report(name, done, len(checks))


def _require_budget(privatizer: Privatizer) -> None:
    budget = privatizer.budget
    if budget is not None and not isinstance(budget, Uniform):
        raise ConfigError(
            "an audit needs one epsilon for all words, or the mechanism's own parameter"
        )
    if budget is not None and not 0 < budget.epsilon < math.inf:
        raise ConfigError(
            f"an audit needs a budget above 0 and below infinity, got {budget.epsilon:g}"
        )
    if (
        budget is not None and privatizer.claim.kind != "none"
    ):  # checked here, because a budget that is too small is not a defect
        privatizer.mechanism.calibrate(
            privatizer.table, Layout.build(1), np.array([budget.epsilon])
        )


def _run_check(subject: Subject, check: str) -> AuditFinding:
    try:
        finding = _CHECKS[check](subject)
        has_opted_out = (
            finding.verdict == "not applicable"
            and not subject.claim.draws
            and subject.claim.kind != "none"
        )
        if has_opted_out and is_input_dependent(subject):
            return _make_violated(check, "nothing is drawn, and the output depends on the word")
    except BudgetError as error:
        return make_unchecked(
            check, f"the mechanism cannot keep to any budget tested here: {_format_error(error)}"
        )
    except ConfigError as error:
        return make_unchecked(check, _format_error(error))
    except Exception as error:  # a mechanism may raise anything, and that is a finding
        return _make_violated(check, _format_error(error))
    return finding


def _make_violated(check: str, why: str) -> AuditFinding:
    return AuditFinding(check=check, evidence="observed", verdict="violated", why=why)


def _format_error(error: Exception) -> str:
    """Formats an error: our own by its message, others by type and place.

    The message of another package's error may hold words.
    """
    where = extract_tb(error.__traceback__)[-1]
    path = Path(where.filename)
    if isinstance(error, TextveilError) and any(map(path.is_relative_to, _PACKAGES)):
        return str(error)
    return f"raised {type(error).__name__} ({Path(where.filename).name}, line {where.lineno})"
