"""The audit: what a mechanism claims, held against its law, its samples and its behaviour.

In: callables that build a `Privatizer`. Out: one `Finding` per check, as it is made.
Not here: what an adversary gets (`attack`), and how findings are printed (`cli`).

It runs over whatever satisfies the protocols `Mechanism` and, for exact checks, `Law`; so over mechanisms of other
packages too. No finding can prove a mechanism private, but for the exact ones on the words that they looked at.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb

from textveil.audit import exact, fit, sampled, spending, totality
from textveil.audit import streams as fresh
from textveil.audit import support as supports
from textveil.audit.configured import configured
from textveil.audit.finding import ALARM, Evidence, Finding, Verdict, skipped
from textveil.audit.subject import Build, Subject
from textveil.errors import ConfigError

__all__ = ["ALARM", "CHECKS", "Build", "Evidence", "Finding", "Subject", "Verdict", "audit", "configured"]

Report = Callable[[str, int, int], None]

_CHECKS: dict[str, Callable[[Subject], Finding]] = {
    "log-ratio": exact.log_ratio,
    "certificate": exact.certificate,
    "sampled": sampled.sampled,
    "sampler": fit.sampler,
    "support": supports.support,
    "budget": spending.budget,
    "overcharge": spending.overcharge,
    "statement": spending.statement,
    "totality": totality.totality,
    "error path": totality.error_path,
    "streams": fresh.streams,
    "seed": fresh.seed,
}

CHECKS = tuple(_CHECKS)
"""The names of all checks, in order."""


def audit(
    *builds: Build,
    small: bool = False,
    only: tuple[str, ...] = CHECKS,
    report: Report = lambda step, done, total: None,
) -> Iterator[Finding]:
    """Check claims, one finding at a time.

    Args:
        builds: each makes a privatizer when it is called with the keyword `seed`, for example
            `functools.partial(Privatizer, "noise", epsilon=8.0)`. Only what pickles, and is no part of
            a script, is tried in other processes.
        small: fewer words and draws: seconds for a mechanism instead of minutes. Exact checks then look at 60 words.
        only: names of the checks to run.
        report: told the name of the mechanism, the checks done, and how many there are.

    Yields:
        One `Finding` per mechanism and check. A check that a mechanism fails to run through is `violated`.

    Raises:
        ConfigError: there is no check of such a name, or a privatizer cannot be built.
    """
    if unknown := sorted(set(only) - set(CHECKS)):
        raise ConfigError(f"the checks are {', '.join(CHECKS)}; there is no {unknown[0]!r}")
    for build in builds:
        yield from _audit(build, small, only, report)


def _audit(build: Build, small: bool, only: tuple[str, ...], report: Report) -> Iterator[Finding]:
    subject = Subject(build=build, small=small, privatizer=build(seed=None))
    chosen = [name for name in CHECKS if name in only]
    name = subject.claim.mechanism
    report(name, 0, len(chosen))
    for done, check in enumerate(chosen, 1):
        start = time.perf_counter()
        try:
            found = _CHECKS[check](subject)
        except ConfigError as error:
            found = skipped(check, str(error))
        except Exception as error:  # a mechanism may raise anything; that it does is a finding
            where = extract_tb(error.__traceback__)[-1]
            found = Finding(
                check=check,
                evidence="observed",
                verdict="violated",
                why=f"raised {type(error).__name__} ({Path(where.filename).name}, line {where.lineno})",
            )
        yield replace(found, mechanism=name, seconds=round(time.perf_counter() - start, 3))
        report(name, done, len(chosen))
