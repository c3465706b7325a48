"""The support: what one word can be released as, every word must be able to be released as, in floating point too.

In: a subject. Out: one finding, from the law, from the sampler's extreme draws, or from samples.
Not here: how large the losses are (`exact`, `sampled`).
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from textveil.randomness import Draws, Ids, Randomness, Streams, Values
from textveil.table import EmbeddingTable
from textveil_bench.audit import exact, sampled
from textveil_bench.audit.finding import ALARM, AuditFinding, Evidence, skipped, unclaimed
from textveil_bench.audit.subject import Subject, singles

LARGE_LDP = 60.0
"""Samplers are also tried with a budget of this local DP: the farthest candidate is then half of it behind, or all."""

LEAST, MOST = 2.0**-53, 1 - 2.0**-53
"""The smallest and the largest uniform value that a double holds, 0 left out."""


def support(subject: Subject) -> AuditFinding:
    """Whether the outputs that are possible depend on the word."""
    name = "support"
    table, law = exact.law_of_slice(subject)
    if law is not None:
        same = exact.finite(law)
        if subject.claim.kind == "none":
            loss = (
                "infinite loss confirmed: a word can be released for some inputs only"
                if not same
                else ""
            )
            return unclaimed(name, loss or "nothing is claimed", None if same else np.inf)
        if not same:
            return _broken(
                "proved", f"the law of {len(table)} words gives some outputs to some inputs only"
            )
    elif subject.claim.kind == "none":
        return unclaimed(name, f"nothing is claimed: {subject.claim.reason}")
    if not subject.claim.draws:
        return skipped(name, "nothing is drawn")
    if unreachable := _unreachable(subject, table, 1.0):
        return _broken(
            "proved", f"{unreachable} of {len(table)} words cannot come out, whatever is drawn"
        )
    share, where = sampled.unreached(subject)
    if share:
        return _broken(
            "lower bound",
            f"an output of {share:.1%} of one word's draws never comes from another ({where})",
        )
    if law is None:
        why = "no output of one word was missing from another's draws" + _later(subject, table)
        return AuditFinding(
            check=name, evidence="lower bound", verdict="holds", why=why, alarm=ALARM
        )
    why = f"all {len(table)} inputs have the same outputs" + _later(subject, table)
    return AuditFinding(check=name, evidence="proved", verdict="holds", why=why)


def _broken(evidence: Evidence, why: str) -> AuditFinding:
    alarm = ALARM if evidence == "lower bound" else 0.0
    return AuditFinding(
        check="support", evidence=evidence, verdict="violated", found=np.inf, why=why, alarm=alarm
    )


def _later(subject: Subject, table: EmbeddingTable) -> str:
    """A remark where a larger budget than the one asked for would make words impossible."""
    claimed = subject.local_dp(table)
    if not 0 < claimed < LARGE_LDP:
        return ""
    unreachable = _unreachable(subject, table, LARGE_LDP / claimed)
    return (
        f"; at local DP {LARGE_LDP:g}, {unreachable} words could not come out"
        if unreachable
        else ""
    )


# ---- the draws that favour one candidate ------------------------------------------------------------------


def _unreachable(subject: Subject, table: EmbeddingTable, scale: float) -> int:
    """How many words cannot be drawn from the farthest word, for samplers that draw one uniform per candidate.

    A candidate is given the most favourable draw that there is and all others the least favourable one, in both
    orders. If it does not win then, it never does.
    """
    if len(table) == table.dimension:
        return 0  # one value per candidate and one per coordinate would look alike
    words = np.arange(len(table))
    block = singles(np.zeros(len(table), np.int64))
    parameter = subject.parameter(table, block.layout, scale)
    won = np.zeros(len(table), bool)
    for favour, others in ((MOST, LEAST), (LEAST, MOST)):
        try:
            won |= subject.sample(table, block, parameter, Tilted(favour, others)) == words
        except Unsuited:
            return 0
    return int((~won).sum())


class Unsuited(Exception):  # noqa: N818 (says what the sampler is)
    """The sampler does not draw one uniform value per candidate."""


class Tilted:
    """Randomness in which row r of a call favours candidate r, of as many candidates as there are rows."""

    seeded = True

    def __init__(self, favour: float, others: float) -> None:
        self._favour, self._others = favour, others

    def open(self, sizes: Sequence[int] | Ids) -> Streams:
        """The streams of a call."""
        return _TiltedStreams(self._favour, self._others, np.asarray(sizes, np.int64))

    def part(self, number: int) -> Randomness:
        """Itself."""
        return self

    def for_texts(self, first: int, digests: Callable[[], Sequence[bytes]]) -> Randomness:
        """Itself."""
        return self


class _TiltedStreams(Streams):
    def __init__(self, favour: float, others: float, sizes: Ids) -> None:
        self._values, self.sizes = (favour, others), sizes

    def chunks(self, limit: int) -> Iterator[tuple[slice, Draws]]:
        total = int(self.sizes.sum())
        for start in range(0, total, limit):
            part = slice(start, min(total, start + limit))
            yield part, _TiltedDraws(*self._values, np.arange(part.start, part.stop), total)


class _TiltedDraws(Draws):
    def __init__(self, favour: float, others: float, rows: Ids, width: int) -> None:
        self._favour, self._others, self._rows, self._width = favour, others, rows, width

    @property
    def size(self) -> int:
        return len(self._rows)

    def uniform(self, width: int) -> Values:
        if width != self._width:
            raise Unsuited
        values = np.full((self.size, width), self._others)
        values[np.arange(self.size), self._rows] = self._favour
        return values

    def bits(self, width: int) -> Ids:
        raise Unsuited

    def exponential(self, width: int) -> Values:
        return -np.log(self.uniform(width))

    def normal(self, width: int) -> Values:
        raise Unsuited

    def gamma(self, shape: float, width: int | None = None) -> Values:
        raise Unsuited

    def integers(self, high: Ids) -> Ids:
        raise Unsuited
