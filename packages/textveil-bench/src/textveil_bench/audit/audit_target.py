"""What is audited: a privatizer, how to build it again, and the small worlds in which its claims are tried.

In: a callable that builds a `Privatizer`. Out: `Subject`: tables to look at, parameters, claims per
word and pair.
Not here: the checks (the modules beside this one).
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
"""Makes the privatizer. Takes the keyword `seed` (an integer, or None for none); picklable, if workers are to be tried:
`functools.partial(Privatizer, "noise", epsilon=8.0, table="minilm")`."""

SLICE_SMALL, SLICE_FULL = 60, 400
"""Words whose laws are compared, every two of them."""

METRICS = {"chord": "euclidean", "euclidean": "euclidean", "l1": "cityblock", "cosine": "cosine"}
"""What scipy calls the distance of a claim.

The cosine distance is no metric; it is known here to be refuted.
"""

TINY_TABLE_WORDS = 6
"""Words of which all short texts, and all their outputs, can be looked at."""

PROBE_WORDS, LINE_WORDS = 8, 24
PROBE_STEP = 0.5
"""Words in a row lie so far apart that the claim allows neighbours a loss of this."""

WEAK_EPSILON = 1.0
"""Epsilon on the whole circle: opposite words then lie at a loss of 2 for sharp mechanisms. On the slice, the loss
that is allowed to its farthest words."""


FLOOR_TOLERANCE = 1e-3
"""How closely the smallest budget is found that a mechanism can keep to, as a part of it."""

SUM_TOLERANCE = 1e-6
"""How far the probabilities of a law may be from 1 together: laws in single precision pass."""


class InvalidLaw(Exception):  # noqa: N818 (says what the mechanism gave)
    """What `log_probs` gave is no law: every check that needs it is violated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """A table on which a loss shows well.

    Attributes:
        table: the table.
        scale: the part of the subject's budget that it is tried with.
        varied: the rows that are told apart.
        has_longer_texts: whether texts of several words are tried too.
    """

    table: EmbeddingTable
    scale: float = 1.0
    varied: tuple[int, ...] = (0, 2, 3, 7)
    has_longer_texts: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """One privatizer under audit.

    Attributes:
        build: makes it again, elsewhere or with a seed.
        small: the short audit.
        privatizer: as `build` made it, without a seed.
    """

    build: Build
    small: bool
    privatizer: Privatizer

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism alone."""
        return self.privatizer.mechanism

    @property
    def table(self) -> EmbeddingTable:
        """The table that it works on."""
        return self.privatizer.table

    @property
    def claim(self) -> Claim:
        """What is claimed on that table."""
        return self.privatizer.claim

    @cached_property
    def epsilon(self) -> float:
        """The budget of a word: what was asked for, or what the mechanism's own parameter spends; 1 where it is none.

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
        """A table of some of the words: half of them spread over the table, the others their nearest neighbours."""
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
        """So many rows of the table: half spread, half their nearest neighbours."""
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
        """Words on a line, on an arc and all around a circle, wherever the mechanism runs; and words of the slice.

        The line has one dimension, in which noise hides least, and is looked at near both of its
        ends: a parameter may
        depend on the row. The slice shows what happens to words of the table itself.
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
        """What is claimed for any two words of a table, for texts of one word and a budget of `epsilon * scale`."""
        claim, layout = self.mechanism.claim(table), Layout.build(1)
        spent = float(
            self.compute_spent(table, layout, self.compute_parameter(table, layout, scale))[0]
        )
        bound = spent if claim.kind == "ldp" else spent * claim.diameter + claim.additive
        return min(bound, self.compute_cap(table, scale))

    def compute_cap(self, table: EmbeddingTable, scale: float = 1.0) -> float:
        """What the mechanism says is lost at most whatever the diameter; infinite where it says nothing."""
        layout = Layout.build(1)
        if self.claim.kind != "metric" or not isinstance(self.mechanism, Capped):
            return math.inf
        return float(
            self.mechanism.compute_local_dp_cap(
                table, layout, self.compute_parameter(table, layout, scale)
            )[0]
        )

    def find_scale(self, table: EmbeddingTable, local_dp: float) -> float:
        """The largest part of the budget, at most all of it, that costs about `compute_local_dp` over a table."""
        claimed = self.compute_local_dp(table)
        return min(1.0, local_dp / claimed) if 0 < claimed < math.inf else 1.0

    def _can_run(self, table: EmbeddingTable) -> bool:
        try:
            self.mechanism.claim(table)
            self.compute_parameter(table, Layout.build(1))
        except ConfigError:
            return False
        return True

    # ---- what a mechanism does on a table ------------------------------------------------------------

    def compute_parameter(
        self, table: EmbeddingTable, layout: Layout, scale: Values | float = 1.0
    ) -> Values:
        """The mechanism's parameter [n] for a budget of `epsilon * scale` at every position.

        Some mechanisms cannot promise so little; they get the smallest budget that they can keep
        to.

        Raises:
            BudgetError: there is none.
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
        """The smallest budget that is kept to in a text of so many words."""
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
        """The parameter [n] that the privatizer draws with: the one set by name, or that of its budget."""
        named = self.mechanism.parameters(table, layout)
        return self.compute_parameter(table, layout) if named is None else named

    def compute_law(self, table: EmbeddingTable, rows: Ids, scale: float = 1.0) -> Values | None:
        """ln Pr[y | x] for texts of one word each, [m, V]; None where it cannot be written down.

        Raises:
            NoLaw: what the mechanism gives is no law.
        """
        return self.compute_law_at(
            table, rows, self.compute_parameter(table, build_singles(rows).layout, scale)
        )

    def compute_law_at(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values | None:
        """The same under this parameter [m]."""
        if not isinstance(self.mechanism, Law):
            return None
        law = self.mechanism.log_probs(table, build_singles(rows), parameter)
        if law is not None:
            if law.shape != (len(rows), len(table)):
                raise InvalidLaw("the law has not one probability per word")
            totals = np.exp(law).sum(axis=1)
            if not (np.abs(totals - 1) <= SUM_TOLERANCE).all():  # NaN is within nothing
                raise InvalidLaw("the probabilities of the law do not sum to 1")
        return law

    def compute_spent(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """The epsilon [n] that the mechanism says it spends."""
        return self.mechanism.spend(table, layout, parameter)

    def sample(
        self, table: EmbeddingTable, block: Block, parameter: Values, rng: Randomness | None = None
    ) -> Ids:
        """Released rows [n], drawn afresh."""
        return self.mechanism.privatize(table, block, parameter, rng=rng or _SingleStream())

    def replace_parts(self, **parts: Any) -> Privatizer:
        """A copy of the privatizer in which some attributes are others."""
        return self.privatizer.with_parts(**parts)


class _SingleStream(SystemRandomness):
    """Fresh draws from one stream for all texts of a call: thousands of short texts need no generator each."""

    def open(self, sizes: Sequence[int] | Ids) -> Streams:
        """The stream of a call, which sees its texts as one."""
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
    """Texts of one protected word each."""
    texts = np.asarray(rows, np.int64)
    return Block(layout=Layout.build(*[1] * len(texts)), rows=texts)


def find_smallest_budget(
    mechanism: Mechanism, table: EmbeddingTable, layout: Layout, epsilon: float
) -> float:
    """The smallest budget that a mechanism keeps to, but for a part `FLOOR_TOLERANCE`; at least a millionth of epsilon.

    Raises:
        BudgetError: there is none that a budget may be.
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
    """The distances [m, m] between rows in the claim's metric, not by the table's own code; 1 for a claim of local DP.

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
    """Rows in parts whose laws over `width` words stay within `cells` numbers."""
    step = max(1, cells // width)
    return (rows[start : start + step] for start in range(0, len(rows), step))
