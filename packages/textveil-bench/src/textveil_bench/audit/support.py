"""The support: all words must have the same possible outputs.

In: a subject. Out: one finding, from the law, from the sampler's extreme draws, or from samples.
Not here: the size of the losses (`exact`, `sampled`).

Floating-point effects count too.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from textveil.randomness import Draws, Ids, Randomness, Streams, Values
from textveil.table import EmbeddingTable
from textveil_bench.audit import exact, sampled
from textveil_bench.audit.audit_target import Subject, build_singles
from textveil_bench.audit.finding import (
    ALARM_RATE,
    AuditFinding,
    Evidence,
    make_skipped,
    make_unclaimed,
)

LARGE_LDP = 60.0
"""Local DP of an additional, larger budget for testing samplers.

The farthest candidate is then behind by half of it, or all.
"""

SMALLEST_UNIFORM, LARGEST_UNIFORM = 2.0**-53, 1 - 2.0**-53
"""The smallest and largest uniform values in double precision, without 0."""


def check_support(subject: Subject) -> AuditFinding:
    """Checks that the possible outputs do not depend on the word."""
    name = "support"
    table, law = exact.compute_slice_law(subject)
    if law is not None:
        has_same_support = exact.has_common_support(law)
        if subject.claim.kind == "none":
            loss = (
                "infinite loss confirmed: a word can be released for some inputs only"
                if not has_same_support
                else ""
            )
            return make_unclaimed(
                name, loss or "nothing is claimed", None if has_same_support else np.inf
            )
        if not has_same_support:
            return _make_violated(
                "proved", f"the law of {len(table)} words gives some outputs to some inputs only"
            )
    elif subject.claim.kind == "none":
        return make_unclaimed(name, f"nothing is claimed: {subject.claim.reason}")
    if not subject.claim.draws:
        return make_skipped(name, "nothing is drawn")
    if unreachable := _count_unreachable(subject, table, 1.0):
        return _make_violated(
            "proved", f"{unreachable} of {len(table)} words cannot come out, whatever is drawn"
        )
    share, where = sampled.measure_unreached(subject)
    if share:
        return _make_violated(
            "lower bound",
            f"an output of {share:.1%} of one word's draws never comes from another ({where})",
        )
    if law is None:
        why = "no output of one word was missing from another's draws" + _format_larger_budget(
            subject, table
        )
        return AuditFinding(
            check=name, evidence="lower bound", verdict="holds", why=why, alarm=ALARM_RATE
        )
    why = f"all {len(table)} inputs have the same outputs" + _format_larger_budget(subject, table)
    return AuditFinding(check=name, evidence="proved", verdict="holds", why=why)


def _make_violated(evidence: Evidence, why: str) -> AuditFinding:
    alarm = ALARM_RATE if evidence == "lower bound" else 0.0
    return AuditFinding(
        check="support", evidence=evidence, verdict="violated", found=np.inf, why=why, alarm=alarm
    )


def _format_larger_budget(subject: Subject, table: EmbeddingTable) -> str:
    """Formats a remark if a larger budget would make words impossible."""
    claimed = subject.compute_local_dp(table)
    if not 0 < claimed < LARGE_LDP:
        return ""
    unreachable = _count_unreachable(subject, table, LARGE_LDP / claimed)
    return (
        f"; at local DP {LARGE_LDP:g}, {unreachable} words could not come out"
        if unreachable
        else ""
    )


# ---- the draws that favour one candidate ------------------------------------------------------------------


def _count_unreachable(subject: Subject, table: EmbeddingTable, scale: float) -> int:
    """Counts the words that can never be drawn from the farthest word.

    For samplers that draw one uniform value per candidate: each candidate gets the most favourable
    draw and all others the least favourable, in both orders. A candidate that does not win then
    never does.
    """
    if len(table) == table.dimension:
        return 0  # draws per candidate and per coordinate could not be told apart
    words = np.arange(len(table))
    block = build_singles(np.zeros(len(table), np.int64))
    parameter = subject.compute_parameter(table, block.layout, scale)
    has_won = np.zeros(len(table), bool)
    for favour, other_value in (
        (LARGEST_UNIFORM, SMALLEST_UNIFORM),
        (SMALLEST_UNIFORM, LARGEST_UNIFORM),
    ):
        try:
            has_won |= (
                subject.sample(table, block, parameter, TiltedRandomness(favour, other_value))
                == words
            )
        except UnsuitedSampler:
            return 0
    return int((~has_won).sum())


class UnsuitedSampler(Exception):  # noqa: N818 (names the sampler)
    """The sampler does not draw one uniform value per candidate."""


class TiltedRandomness:
    """Randomness in which row r of a call favours candidate r.

    A call has as many candidates as rows.
    """

    is_seeded = True

    def __init__(self, favour: float, other_value: float) -> None:
        self._favour, self._other_value = favour, other_value

    def open(self, sizes: Sequence[int] | Ids) -> Streams:
        """Opens the streams of a call."""
        return _TiltedStreams(self._favour, self._other_value, np.asarray(sizes, np.int64))

    def derive_part(self, number: int) -> Randomness:
        """Returns itself."""
        return self

    def bind_texts(self, first: int, digests: Callable[[], Sequence[bytes]]) -> Randomness:
        """Returns itself."""
        return self


class _TiltedStreams(Streams):
    def __init__(self, favour: float, other_value: float, sizes: Ids) -> None:
        self._values, self.sizes = (favour, other_value), sizes

    def split_rows(self, limit: int) -> Iterator[tuple[slice, Draws]]:
        total = int(self.sizes.sum())
        for start in range(0, total, limit):
            part = slice(start, min(total, start + limit))
            yield part, _TiltedDraws(*self._values, np.arange(part.start, part.stop), total)


class _TiltedDraws(Draws):
    def __init__(self, favour: float, other_value: float, rows: Ids, width: int) -> None:
        self._favour, self._other_value, self._rows, self._width = favour, other_value, rows, width

    @property
    def size(self) -> int:
        return len(self._rows)

    def uniform(self, width: int) -> Values:
        if width != self._width:
            raise UnsuitedSampler
        values = np.full((self.size, width), self._other_value)
        values[np.arange(self.size), self._rows] = self._favour
        return values

    def bits(self, width: int) -> Ids:
        raise UnsuitedSampler

    def exponential(self, width: int) -> Values:
        return -np.log(self.uniform(width))

    def normal(self, width: int) -> Values:
        raise UnsuitedSampler

    def gamma(self, shape: float, width: int | None = None) -> Values:
        raise UnsuitedSampler

    def integers(self, high: Ids) -> Ids:
        raise UnsuitedSampler
