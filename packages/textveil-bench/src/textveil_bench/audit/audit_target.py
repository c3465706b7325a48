"""The audited privatizer, and small tables on which its claims are tested.

In: a callable that builds a `Privatizer`. Out: `Subject`: tables, parameters, claims per word and
pair.
Not here: the checks (the other modules of this package).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textveil.errors import BudgetError, ConfigError
from textveil.guarantee import Claim, Restricted
from textveil.mechanism import Block, Capped, Law, Layout, Mechanism
from textveil.pipeline import Privatizer
from textveil.protect import MAX_BUDGET, Uniform
from textveil.randomness import Ids, Randomness, Streams, SystemRandomness, Values
from textveil.table import EmbeddingTable, Metric

Build = Callable[..., Privatizer]
"""Builds the privatizer, with the keyword `seed` (an integer or None).

Picklable if worker processes are to be tested: `functools.partial(Privatizer, "noise", epsilon=8.0,
table="minilm")`.
"""

SLICE_SMALL, SLICE_FULL = 60, 400
"""Words of a slice: the laws of all its pairs are compared."""

METRICS = {"chord": "euclidean", "euclidean": "euclidean", "l1": "cityblock", "cosine": "cosine"}
"""scipy's names for the distances of claims.

The cosine distance is no metric; it is listed so that claims in it can be refuted.
"""

TINY_TABLE_WORDS = 6
"""Words of the tiny table, whose short texts can be enumerated."""

PROBE_WORDS, LINE_WORDS = 8, 24
PROBE_STEP = 0.5
"""Loss that the claim allows between neighbouring words of a probe table."""

WEAK_EPSILON = 1.0
"""Epsilon on the circle: sharp mechanisms lose 2 between opposite words.

On the slice, the allowed loss between its most distant words.
"""


FLOOR_TOLERANCE = 1e-3
"""Relative precision of the smallest feasible budget."""

SUM_TOLERANCE = 1e-6
"""Allowed deviation of a law's total probability from 1, for single precision."""


class InvalidLaw(Exception):  # noqa: N818 (names the mechanism's result)
    """The output of `log_probs` is not a probability distribution.

    Every check that needs it is violated.
    """


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """A small table on which a privacy loss is easy to measure.

    Attributes:
        table: the table.
        scale: the share of the subject's budget to use.
        varied: the rows to distinguish.
        has_longer_texts: whether texts of several words are tested too.
    """

    table: EmbeddingTable
    scale: float = 1.0
    varied: tuple[int, ...] = (0, 2, 3, 7)
    has_longer_texts: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """One privatizer under audit.

    Attributes:
        build: builds it again, in another process or with a seed.
        small: whether the audit is the short one.
        privatizer: the result of `build` without a seed.
    """

    build: Build
    small: bool
    privatizer: Privatizer

    @property
    def mechanism(self) -> Mechanism:
        """The privatizer's mechanism."""
        return self.privatizer.mechanism

    @property
    def table(self) -> EmbeddingTable:
        """The privatizer's table."""
        return self.privatizer.table

    @property
    def claim(self) -> Claim:
        """The mechanism's claim on that table."""
        return self.privatizer.claim

    @cached_property
    def epsilon(self) -> float:
        """The budget of a word: requested, or spent by the mechanism's parameter.

        1 if the budget is 0 or infinite.

        Raises:
            ConfigError: the budget differs between words.
        """
        budget = self.privatizer.budget
        if budget is None:
            named = self.mechanism.parameters(self.table, Layout.build(1))
            assert named is not None, "a privatizer without a budget has a parameter"
            value = float(self.mechanism.spend(self.table, Layout.build(1), named)[0])
        elif isinstance(budget, Uniform):
            value = float(budget.epsilon)
        else:
            raise ConfigError(
                "an audit needs one epsilon for all words, or the mechanism's own parameter"
            )
        return value if 0 < value < math.inf else 1.0

    @cached_property
    def slice(self) -> EmbeddingTable:
        """A table of some words: half spread evenly, half their nearest neighbours."""
        size = SLICE_SMALL if self.small else SLICE_FULL
        root = self.table.root
        return self.table if len(root) <= size else _build_part(root, self.choose_rows(size))

    @cached_property
    def tiny_table(self) -> EmbeddingTable:
        """Six words, spread over the slice."""
        root = self.slice.root
        return _build_part(
            root, np.unique(np.linspace(0, len(root) - 1, TINY_TABLE_WORDS).astype(np.int64))
        )

    def choose_rows(self, size: int) -> Ids:
        """Selects `size` rows: half spread evenly, half their nearest neighbours."""
        root = self.table.root
        if len(root) <= size:
            return np.arange(len(root))
        spread = np.linspace(0, len(root) - 1, size // 2).astype(np.int64)
        near = root.nearest(root.take(spread), exclude=spread)
        rows = np.unique(np.concatenate((spread, near)))
        extra = np.setdiff1d(np.arange(0, len(root), max(1, len(root) // (4 * size))), rows)
        return np.sort(np.concatenate((rows, extra[: size - len(rows)])))

    @cached_property
    def probes(self) -> list[Probe]:
        """The probe tables: a line, an arc, a circle, and the slice.

        The first three are left out if the mechanism cannot run on them. The line has one
        dimension, in which noise hides least, and is tested near both ends, because a parameter may
        depend on the row. The slice tests words of the real table.
        """
        number = np.arange(PROBE_WORDS, dtype=np.float64)
        step = PROBE_STEP / self.epsilon
        line = (np.arange(LINE_WORDS, dtype=np.float64)[:, None] + 1) * step
        probes = [
            Probe(
                table=_build_probe("line", line, "euclidean"),
                varied=(0, 3, 7, LINE_WORDS - 4, LINE_WORDS - 1),
            ),
            Probe(table=_build_probe("arc", _place_on_circle(number * min(step, 0.4)), "chord")),
            Probe(
                table=_build_probe(
                    "circle", _place_on_circle(number * 2 * np.pi / PROBE_WORDS), "chord"
                ),
                scale=WEAK_EPSILON / self.epsilon,
            ),
        ]
        runnable = [probe for probe in probes if self._can_run(probe.table)]
        table, middle = self.slice, np.array([len(self.slice) // 2])
        near = table.nearest(table.take(middle), exclude=middle)
        varied = sorted({0, int(middle[0]), int(near[0]), len(table) - 1})
        scale = self.find_scale(table, WEAK_EPSILON)
        return [
            *runnable,
            Probe(table=table, scale=scale, varied=tuple(varied), has_longer_texts=not runnable),
        ]

    def compute_local_dp(self, table: EmbeddingTable, scale: float = 1.0) -> float:
        """Computes the claimed local DP of one-word texts at `epsilon * scale`."""
        claim, layout = self.mechanism.claim(table), Layout.build(1)
        spent = float(
            self.compute_spent(table, layout, self.compute_parameter(table, layout, scale))[0]
        )
        bound = spent if claim.kind == "ldp" else spent * claim.diameter + claim.additive
        return min(bound, self.compute_cap(table, scale))

    def compute_cap(self, table: EmbeddingTable, scale: float = 1.0) -> float:
        """Computes the mechanism's cap on the loss; infinite without one."""
        layout = Layout.build(1)
        if self.claim.kind != "metric" or not isinstance(self.mechanism, Capped):
            return math.inf
        return float(
            self.mechanism.compute_local_dp_cap(
                table, layout, self.compute_parameter(table, layout, scale)
            )[0]
        )

    def find_scale(self, table: EmbeddingTable, local_dp: float) -> float:
        """Finds the share of the budget that costs about this local DP.

        At most 1.
        """
        claimed = self.compute_local_dp(table)
        return min(1.0, local_dp / claimed) if 0 < claimed < math.inf else 1.0

    def _can_run(self, table: EmbeddingTable) -> bool:
        try:
            self.mechanism.claim(table)
            self.compute_parameter(table, Layout.build(1))
        except ConfigError:
            return False
        return True

    # ---- the mechanism on a table --------------------------------------------------------------------

    def compute_parameter(
        self, table: EmbeddingTable, layout: Layout, scale: Values | float = 1.0
    ) -> Values:
        """Computes the parameter [n] for a budget of `epsilon * scale` per position.

        A mechanism that cannot keep to so small a budget gets the smallest feasible one.

        Raises:
            BudgetError: no budget is feasible.
        """
        wanted = np.broadcast_to(
            np.asarray(scale, np.float64) * self.epsilon, len(layout.positions)
        )
        try:
            return self.mechanism.calibrate(table, layout, wanted.copy())
        except BudgetError:
            floor = self._find_floor(table, int(layout.sizes.max(initial=1)))
            return self.mechanism.calibrate(table, layout, np.maximum(wanted, floor))

    def _find_floor(self, table: EmbeddingTable, length: int) -> float:
        """Finds the smallest feasible budget for a text of `length` words."""
        key = (table, length)
        if key not in self._floors:
            self._floors[key] = find_smallest_budget(
                self.mechanism, table, Layout.build(length), self.epsilon
            )
        return self._floors[key]

    @cached_property
    def _floors(self) -> dict[tuple[EmbeddingTable, int], float]:
        return {}

    def get_parameter(self, table: EmbeddingTable, layout: Layout) -> Values:
        """Returns the privatizer's parameter [n]: set by name, or from its budget."""
        named = self.mechanism.parameters(table, layout)
        return self.compute_parameter(table, layout) if named is None else named

    def compute_law(self, table: EmbeddingTable, rows: Ids, scale: float = 1.0) -> Values | None:
        """Computes ln Pr[y | x] of one-word texts, [m, V]; None without a closed form.

        Raises:
            InvalidLaw: the mechanism's output is not a probability distribution.
        """
        return self.compute_law_at(
            table, rows, self.compute_parameter(table, build_singles(rows).layout, scale)
        )

    def compute_law_at(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values | None:
        """Computes ln Pr[y | x] of one-word texts at this parameter [m].

        None without a closed form.

        Raises:
            InvalidLaw: the mechanism's output is not a probability distribution.
        """
        if not isinstance(self.mechanism, Law):
            return None
        law = self.mechanism.log_probs(table, build_singles(rows), parameter)
        if law is not None:
            if law.shape != (len(rows), len(table)):
                raise InvalidLaw("the law must have one probability per word")
            totals = np.exp(law).sum(axis=1)
            if not (np.abs(totals - 1) <= SUM_TOLERANCE).all():  # NaN fails this too
                raise InvalidLaw("the probabilities of the law do not sum to 1")
        return law

    def compute_spent(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns the epsilon [n] that the mechanism states it spends."""
        return self.mechanism.spend(table, layout, parameter)

    def sample(
        self, table: EmbeddingTable, block: Block, parameter: Values, rng: Randomness | None = None
    ) -> Ids:
        """Draws released rows [n]."""
        return self.mechanism.privatize(table, block, parameter, rng=rng or _SingleStream())

    def replace_parts(self, **parts: Any) -> Privatizer:
        """Copies the privatizer with some parts replaced."""
        return self.privatizer.with_parts(**parts)


class _SingleStream(SystemRandomness):
    """Fresh randomness with one stream per call, cheap for short texts."""

    def open(self, sizes: Sequence[int] | Ids) -> Streams:
        """Opens one stream for all texts of a call."""
        return super().open([int(np.sum(sizes))])


def _build_part(root: EmbeddingTable, rows: Ids) -> EmbeddingTable:
    return EmbeddingTable.build(
        name=f"{len(rows)} words of {root.name}",
        words=[root.words[row] for row in rows.tolist()],
        vectors=root.take(rows),
        metric=root.metric,
        norms=root.norms[rows],
    )


def _build_probe(name: str, rows: Values, metric: Metric) -> EmbeddingTable:
    words = [f"probe{letter}" for letter in ascii_lowercase[: len(rows)]]
    return EmbeddingTable.build(name=name, words=words, vectors=rows, metric=metric)


def _place_on_circle(angle: NDArray[np.floating]) -> Values:
    return np.stack((np.cos(angle), np.sin(angle)), axis=1)


def build_singles(rows: Sequence[int] | Ids) -> Block:
    """Builds a block of texts of one protected word each."""
    texts = np.asarray(rows, np.int64)
    return Block(layout=Layout.build(*[1] * len(texts)), rows=texts)


def find_smallest_budget(
    mechanism: Mechanism, table: EmbeddingTable, layout: Layout, epsilon: float
) -> float:
    """Finds the smallest feasible budget of a mechanism, up to `FLOOR_TOLERANCE`.

    At least a millionth of epsilon.

    Raises:
        BudgetError: no budget up to `MAX_BUDGET` is feasible.
    """

    def is_feasible(budget: float) -> bool:
        try:
            mechanism.calibrate(table, layout, np.full(len(layout.positions), budget))
        except BudgetError:
            return False
        return True

    low, high = epsilon * 1e-6, epsilon
    while not is_feasible(high):
        low, high = high, 2 * high
        if high > MAX_BUDGET:
            raise BudgetError(
                f"the mechanism keeps no budget up to {MAX_BUDGET:g} on the table {table.name}"
            )
    while high > low * (1 + FLOOR_TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_feasible(middle) else (middle, high)
    return high


def compute_distances(table: EmbeddingTable, claim: Claim | Restricted, rows: Ids) -> Values:
    """Computes distances [m, m] between rows in the claim's metric, with scipy.

    1 for a claim of local DP.

    Raises:
        ConfigError: the claim's metric has no definition.
    """
    if claim.kind == "ldp":
        return np.ones((len(rows), len(rows)))
    if claim.metric not in METRICS:
        raise ConfigError(f"a metric claim needs one of the distances {', '.join(METRICS)}")
    from scipy.spatial.distance import cdist

    vectors = table.root.take(rows).astype(np.float64)
    matrix: Values = cdist(vectors, vectors, METRICS[claim.metric])
    return matrix


def split_batches(rows: Ids, width: int, cells: int = 1 << 22) -> Iterator[Ids]:
    """Splits rows so that their laws over `width` words fit `cells`."""
    step = max(1, cells // width)
    return (rows[start : start + step] for start in range(0, len(rows), step))
