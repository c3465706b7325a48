"""Public constants of a table: distances, ranges and the exponential mechanism's constant.

In: rows [V, d] (float32; unit rows for the chord metric). Out: numbers, exact or conservative.
Not here: which table or mechanism they serve (`embedding`, `mechanism`), and how the files are made
(benchmarks/).

All functions work on blocks of rows in float64 and never hold a V x V matrix; besides the rows they
hold at most a few float64 copies of them. `progress(done, total)` counts the blocks of the current
pass.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple, cast, overload

import numpy as np

from textveil.errors import BudgetError, ConfigError, TableError
from textveil.randomness import Floats, Ids, Values

Progress = Callable[[int, int], None]
Parts = Callable[[], Iterable[Floats | Values]]
"""Function that yields the rows [V, d] in parts, from the start."""

MAX_EXPONENT = 20.0
"""Largest exponent c * d in the exponential mechanism.

Longer distances count as REACH / c.
"""
SMALL_TABLE = 4096
"""Largest number of rows whose curve takes about ten seconds.

On two cores.
"""

_BLOCK_ROWS = 512
_PAIRS = 8192
_CLOSE = 1e-6
_SLACK = 1e-6
"""Relative slack of computed constants.

It covers rounding, and differences of normalizing float32 rows on another machine.
"""
_EQUAL = "a table needs at least two different rows, and all of its rows are equal"


class _Block(NamedTuple):
    """Distances between two runs of rows.

    `same` marks a block on the diagonal, which holds each pair twice.
    """

    rows: slice
    columns: slice
    distance: Values
    same: bool


def _convert_to_double(vectors: Floats | Values) -> Values:
    if vectors.ndim != 2 or len(vectors) < 2 or not np.isfinite(vectors).all():
        raise TableError(
            f"a table needs at least two finite rows [V, d], got shape {list(vectors.shape)}; "
            "check the vectors for NaN and infinity"
        )
    return vectors.astype(np.float64, copy=False)


def _compute_lengths(rows: Values) -> Values:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _compute_blocks(rows: Values, progress: Progress | None) -> Iterator[_Block]:
    """Yields the distances of each unordered pair of rows, block by block.

    A pair on the diagonal comes twice. The Gram form of a distance is inaccurate for close rows;
    those pairs are recomputed from their difference. The relative error of the others is at most
    1e-7, and about 1e-14 at usual distances.
    """
    centred = rows - rows.mean(axis=0)  # centring avoids needless cancellation
    square = np.einsum("ij,ij->i", centred, centred)
    starts = range(0, len(rows), _BLOCK_ROWS)
    total, done = len(starts) * (len(starts) + 1) // 2, 0
    for i in starts:
        for j in range(i, len(rows), _BLOCK_ROWS):
            row_part, column_part = slice(i, i + _BLOCK_ROWS), slice(j, j + _BLOCK_ROWS)
            size = square[row_part, None] + square[None, column_part]
            distance = centred[row_part] @ centred[column_part].T
            distance *= -2
            distance += size
            size *= _CLOSE
            close = np.flatnonzero(distance <= size)
            np.maximum(distance, 0, out=distance)
            np.sqrt(distance, out=distance)
            for start in range(0, len(close), _PAIRS):
                a, b = np.divmod(close[start : start + _PAIRS], distance.shape[1])
                distance[a, b] = _compute_lengths(rows[i + a] - rows[j + b])
            yield _Block(row_part, column_part, distance, i == j)
            done += 1
            if progress is not None:
                progress(done, total)


def _compute_extent(rows: Values, progress: Progress | None) -> tuple[float, Values]:
    """Finds the largest distance, and each row's distance to its nearest row.

    The nearest row must differ from the row: float64 [V].
    """
    diameter, nearest = 0.0, np.full(len(rows), np.inf)
    for row_part, column_part, distance, _ in _compute_blocks(rows, progress):
        diameter = max(diameter, float(distance.max()))
        # Neither the row itself nor a row equal to it counts as nearest.
        distance[distance == 0] = np.inf
        nearest[row_part] = np.minimum(nearest[row_part], distance.min(axis=1))
        nearest[column_part] = np.minimum(nearest[column_part], distance.min(axis=0))
    if diameter == 0:
        raise TableError(_EQUAL)
    return diameter, nearest


def compute_diameter(vectors: Floats | Values, *, progress: Progress | None = None) -> float:
    """Computes the largest distance between two rows, rounded up by 1e-7.

    For unit rows it is the largest chord.

    Raises:
        TableError: fewer than two rows, a value that is not finite, or all rows equal.
    """
    return _compute_extent(_convert_to_double(vectors), progress)[0] * (1 + 1e-7)


def compute_diameter_bound(vectors: Floats | Values) -> float:
    """Bounds the diameter from above in a few passes.

    The bound is twice the radius of a ball that holds all rows. The smallest such ball gives at
    most 1.42 times the diameter (Jung). To get near it, the centre is moved towards the farthest
    row a few times (Badoiu and Clarkson, 2003). For large tables without stored constants.
    """
    rows = _convert_to_double(vectors)
    return _compute_ball_bound(lambda: [rows], rows.mean(axis=0), 32)


def _compute_ball_bound(parts: Parts, centre: Values, passes: int) -> float:
    """Computes `compute_diameter_bound` with a given number of passes over the rows."""
    bound = math.inf
    for step in range(2, passes + 2):
        radius, far = -1.0, centre
        for part in parts():
            rows = part.astype(np.float64)
            away = _compute_lengths(rows - centre)
            row = int(away.argmax())
            if away[row] > radius:
                radius, far = float(away[row]), rows[row]
        bound = min(bound, 2 * radius)
        centre = centre + (far - centre) / step
    return bound * (1 + 1e-7)


def compute_minimum_distance(
    vectors: Floats | Values, *, progress: Progress | None = None
) -> float:
    """Computes the smallest distance between two different rows, rounded down by 1e-7.

    Equal rows are ignored; `count_duplicates` counts them.
    """
    return float(_compute_extent(_convert_to_double(vectors), progress)[1].min()) * (1 - 1e-7)


def count_duplicates(vectors: Floats | Values) -> int:
    """Counts the rows that repeat an earlier row exactly."""
    rows = np.ascontiguousarray(
        _convert_to_double(vectors) + 0.0
    )  # + 0.0 makes -0.0 and 0.0 the same bytes
    return len(rows) - len(np.unique(rows.view(f"V{rows.itemsize * rows.shape[1]}")))


def compute_coordinate_range(vectors: Floats | Values | Iterable[Floats | Values]) -> float:
    """Computes Delta_1, the sum of all coordinates' ranges.

    A range is the largest minus the smallest value. Rows may come in parts.
    """
    parts = [vectors] if isinstance(vectors, np.ndarray) else vectors
    ends = np.stack([end for part in parts for end in (part.min(axis=0), part.max(axis=0))]).astype(
        np.float64
    )
    _convert_to_double(ends)  # any value that is not finite shows up here
    return float((ends.max(axis=0) - ends.min(axis=0)).sum())


def compute_l1_diameter(vectors: Floats | Values, *, progress: Progress | None = None) -> float:
    """Computes D_1, the largest l1 distance between two rows, in float64.

    It is exact. A pair is measured only if both cheap bounds, |x - y|_1 <= |x - m|_1 + |y - m|_1
    about the mean m and |x - y|_1 <= sqrt(d) |x - y|_2, exceed the largest distance found so far.

    Raises:
        TableError: all rows are equal.
    """
    rows = _convert_to_double(vectors)
    radius = np.abs(rows - rows.mean(axis=0)).sum(axis=1)
    order = np.argsort(-radius, kind="stable")
    rows, radius = rows[order], radius[order]
    best, here = 0.0, 0
    for _ in range(8):  # for a good initial value, walk to the farthest row a few times
        away = np.abs(rows - rows[here]).sum(axis=1)
        here = int(away.argmax())
        best = max(best, float(away[here]))
    if not best:
        raise TableError(_EQUAL)
    # Rows after these cannot reach `best`, not even with the row farthest from the mean.
    candidate_count = int((radius + radius[0] > best).sum())
    spread = math.sqrt(rows.shape[1]) * (1 + 1e-7)
    if candidate_count < 2:
        return best
    rows, radius = rows[:candidate_count], radius[:candidate_count]
    for row_part, column_part, distance, _ in _compute_blocks(rows, progress):
        distance *= spread
        hopeful = (distance > best) & (radius[row_part, None] + radius[None, column_part] > best)
        first, second = np.nonzero(hopeful)
        if 8 * len(first) > hopeful.size:  # for most of the block, measuring all of it is faster
            away = np.zeros_like(distance)
            for a, b in zip(rows[row_part].T, rows[column_part].T, strict=True):
                away += np.abs(a[:, None] - b)
            best = max(best, float(away.max()))
            continue
        for start in range(0, len(first), _PAIRS):
            part = slice(start, start + _PAIRS)
            away = np.abs(rows[row_part][first[part]] - rows[column_part][second[part]]).sum(axis=1)
            best = max(best, float(away.max()))
    return best


def compute_projection_factor(
    original: Floats | Values, projected: Floats | Values, *, progress: Progress | None = None
) -> float:
    """Computes the Lipschitz factor of a projection on a table.

    It is max |v - v'| / |u - u'| over all pairs of rows. A guarantee of e per unit distance between
    projected rows is one of e * factor between the original rows.

    Args:
        original: rows u [V, d] in whose metric the guarantee is stated.
        projected: rows v [V, k] that the mechanism uses; may be renormalized or otherwise
            nonlinear.
        progress: see the module.

    Returns:
        The factor, rounded up by at most 1e-6; infinite if two equal rows have different
        projections.
    """
    before, after = _convert_to_double(original), _convert_to_double(projected)
    if len(before) != len(after):
        raise TableError(
            f"both tables need the same rows in the same order, got {len(before)} and "
            f"{len(after)} rows"
        )
    factor = 0.0
    for first, second in zip(
        _compute_blocks(before, progress), _compute_blocks(after, None), strict=True
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = second.distance / first.distance
        ratio[np.isnan(ratio)] = 0.0  # 0 / 0: equal rows that remain equal
        factor = max(factor, float(ratio.max()))
    return factor * (1 + 1e-6)


def _compute_log_partitions(
    rows: Values, c: Values, floor: Values, progress: Progress | None
) -> Values:
    """Computes ln Z_x(c) for each c and row, float64 [K, V].

    ln Z_x(c) = ln sum_y exp(max(-c d(x, y), floor)).
    """
    total = np.zeros((len(c), len(rows)))
    for row_part, column_part, distance, same in _compute_blocks(rows, progress):
        weight = np.empty_like(distance)
        for k in range(len(c)):
            np.multiply(distance, -c[k], out=weight)
            np.maximum(weight, floor[k], out=weight)
            # Exponents are at most 0, and the row itself adds 1: sums neither overflow nor vanish.
            np.exp(weight, out=weight)
            total[k, row_part] += weight.sum(axis=1)
            if not same:
                total[k, column_part] += weight.sum(axis=0)
    return np.log(total)


def _find_steepest(
    rows: Values, height: Values, shortest: Values, progress: Progress | None
) -> Values:
    """Computes the steepest slope of each height h over all pairs.

    max over different x, x' of |h_x' - h_x| / min(d(x, x'), shortest).
    """
    best = np.zeros(len(height))
    for row_part, column_part, distance, _ in _compute_blocks(rows, progress):
        longest = distance.max()
        distance[distance == 0] = np.inf
        inverse = 1 / distance
        slope, capped = np.empty_like(inverse), np.empty_like(inverse)
        for k in range(len(height)):
            scale = inverse
            if shortest[k] < longest:  # equal rows have equal heights: their slope stays 0
                scale = np.maximum(inverse, 1 / shortest[k], out=capped)
            np.subtract(height[k, row_part, None], height[k, None, column_part], out=slope)
            slope *= scale
            best[k] = max(best[k], -slope.min(), slope.max())
    return best


def compute_exponential_constants(
    vectors: Floats | Values,
    c: Sequence[float],
    cap: Sequence[float] | None = None,
    *,
    progress: Progress | None = None,
) -> Values:
    """Computes `compute_exponential_constant` for each c [K], in two passes.

    Each c has a cap. The passes go over all pairs of rows.
    """
    rows, rate = _convert_to_double(vectors), np.asarray(c, dtype=np.float64)
    longest = np.full(len(rate), math.inf) if cap is None else np.asarray(cap, dtype=np.float64)
    positive = np.isfinite(rate).all() and (rate > 0).all() and (longest > 0).all()
    if len(longest) != len(rate) or not positive:
        raise BudgetError("c and cap must be positive, c finite, with one cap for each c")
    return rate + _find_steepest(
        rows, _compute_log_partitions(rows, rate, -rate * longest, progress), longest, progress
    )


def compute_exponential_constant(
    vectors: Floats | Values,
    c: float,
    cap: float | None = None,
    *,
    progress: Progress | None = None,
) -> float:
    """Computes K(c), the exponential mechanism's exact epsilon per unit distance.

    The mechanism is P(y | x) ~ exp(-c d(x, y)). K(c) = c + max over x, x' of (ln Z_x' - ln Z_x) /
    d(x, x'), with Z_x = sum_y exp(-c d(x, y)): by the triangle inequality, the output y = x
    separates x from x' best. Never more than 2c.

    Args:
        vectors: rows [V, d].
        c: the mechanism's rate per unit distance; positive.
        cap: if given, min(d, cap) replaces d everywhere (also a metric, and never longer).
        progress: see the module.
    """
    return float(
        compute_exponential_constants(
            vectors, [c], None if cap is None else [cap], progress=progress
        )[0]
    )


@dataclass(frozen=True, kw_only=True)
class CalibrationCurve:
    """A certified bound on K(c) for all c, and its inverse.

    K(c) is the exponential mechanism's constant on a table.

    The law is P(y | x) ~ exp(-c d_c(x, y)) with the capped distance d_c = min(d, 20 / c). K is the
    constant in d_c, and holds in d too, as d_c <= d. Between the knots the bound on K(c) - c is
    linear; beyond the last it is `tail` * c; it is at most c everywhere.

    Proof, with Z_x(c) = sum_y max(exp(-c d(x, y)), exp(-20)) and f_x = ln Z_x:

    1. f_x is convex in c: exp(-c d) is log-convex, and maxima and sums of log-convex functions are.
       So between two knots f_x' is below its chord, and f_x is above the chords of the two
       neighbouring segments, extended. Let g_x be the largest gap between the chord of f_x and the
       higher extension.
    2. Hence f_x' - f_x <= (chord of f_x' - chord of f_x) + g_x on the segment, which is linear in
       c. Its divisor d_c(x, x') is at least min(d(x, x'), 20 / r), r the right knot. So K(c) - c is
       at most the straight line through max (f_x' - f_x) / min(d, 20 / r) at both knots, plus the
       maximum over x of g_x / min(d_x, 20 / r), where d_x is the distance from x to its nearest
       other row. A knot takes the larger value of its two segments.
    3. Beyond the last knot b: Z_x >= 1, and Z_x'(c) <= Z_x'(b). With A = max f_x(b) and d_min the
       smallest distance, K(c) - c <= A / min(d_min, 20 / c) <= A max(1 / (b d_min), 1 / 20) c.
    4. K <= 2c, as |f_x' - f_x| <= c d_c(x, x').

    Args:
        knots: increasing values of c, from 0.
        excess: the bound on K(c) - c at the knots.
        tail: the bound on (K(c) - c) / c beyond the last knot.
    """

    knots: tuple[float, ...]
    excess: tuple[float, ...]
    tail: float

    def __post_init__(self) -> None:
        knots, excess = np.asarray(self.knots), np.asarray(self.excess)
        rising = len(knots) > 1 and knots[0] == 0 and bool((np.diff(knots) > 0).all())
        bounded = len(excess) == len(knots) and bool((np.isfinite(excess) & (excess >= 0)).all())
        if not (rising and math.isfinite(knots[-1]) and bounded and 0 <= self.tail <= 1):
            raise ConfigError(
                "a curve needs knots rising from 0, an excess >= 0 for each, and a tail in [0, 1]"
            )

    @overload
    def constant(self, c: float) -> float: ...
    @overload
    def constant(self, c: Values) -> Values: ...
    def constant(self, c: float | Values) -> float | Values:
        """Returns an upper bound on K(c), at most 2c, in any shape.

        Raises:
            BudgetError: some c is not positive and finite.
        """
        rate = _require_positive(c, "c")
        inside = rate + np.interp(rate, self.knots, self.excess)
        bound = np.where(rate <= self.knots[-1], inside, rate * (1 + self.tail))
        return _match_type(c, np.minimum(bound, 2 * rate))

    @overload
    def solve(self, epsilon: float) -> float: ...
    @overload
    def solve(self, epsilon: Values) -> Values: ...
    def solve(self, epsilon: float | Values) -> float | Values:
        """Finds the largest c with constant(c) <= epsilon, in any shape.

        It holds even after rounding.

        Raises:
            BudgetError: some epsilon is not positive and finite.
        """
        wanted = _require_positive(epsilon, "epsilon")
        knots, bound = np.asarray(self.knots), np.asarray(self.knots) + np.asarray(self.excess)
        lowest = np.minimum.accumulate(bound[::-1])[::-1]  # nondecreasing from here on
        last = np.searchsorted(lowest, wanted, side="right") - 1  # the next knot is beyond epsilon
        left = np.clip(last, 0, len(knots) - 2)
        share = (wanted - bound[left]) / np.maximum(
            bound[left + 1] - bound[left], np.finfo(float).tiny
        )
        inside = knots[left] + np.clip(share, 0, 1) * (knots[left + 1] - knots[left])
        beyond = wanted / (1 + self.tail)
        found = np.where(last < 0, 0.0, np.where(last == len(knots) - 1, knots[-1], inside))
        found = np.where(beyond > knots[-1], np.maximum(found, beyond), found) * (1 - 1e-12)
        found = np.maximum(found, wanted / 2)
        # Checked after rounding; c = epsilon / 2 always holds, because K(c) <= 2c.
        return _match_type(epsilon, np.where(self.constant(found) <= wanted, found, wanted / 2))

    def to_json(self) -> dict[str, object]:
        """Returns plain values, with bounds rounded up at 9 digits.

        So they stay valid when read back.
        """
        excess = [_round_outward(value, up=True) for value in self.excess]
        return {
            "knots": list(self.knots),
            "excess": excess,
            "tail": min(1.0, _round_outward(self.tail, up=True)),
        }

    @classmethod
    def from_json(cls, values: dict[str, object]) -> "CalibrationCurve":
        """Reads a curve from the values of `to_json`."""
        knots, excess = cast("list[float]", values["knots"]), cast("list[float]", values["excess"])
        return cls(knots=tuple(knots), excess=tuple(excess), tail=cast("float", values["tail"]))


def _require_positive(value: float | Values, name: str) -> Values:
    array = np.asarray(value, dtype=np.float64)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise BudgetError(f"{name} must be positive and finite; give a number above 0")
    return array


def _match_type(template: float | Values, result: Values) -> float | Values:
    return result if isinstance(template, np.ndarray) else float(result)


def _round_outward(value: float, *, up: bool) -> float:
    """Rounds `value` to 9 significant digits in the safe direction."""
    short = float(f"{value:.9g}")
    if (short < value) if up else (short > value):
        step = 10.0 ** (math.floor(math.log10(abs(value))) - 8)
        short = float(f"{short + step if up else short - step:.9g}")
    return short


def _compute_knots(longest: float, shortest: float, steps: int) -> Values:
    """Computes the knots of a curve, denser at small c.

    They go from 0 to where the cap starts (c D = 20), then to where every distance is capped. Slack
    grows with the square of the width and matters relative to c, hence the power. Beyond c D = 20
    an input's weight dominates Z, and K(c) - c is small.
    """
    knots = [MAX_EXPONENT / longest * (k / steps) ** 1.5 for k in range(steps + 1)]
    while knots[-1] < MAX_EXPONENT / shortest and len(knots) <= 2 * steps:
        knots.append(knots[-1] * (1 + 5 / steps))
    return np.array([float(f"{c:.7g}") for c in knots])


def _compute_gap_bounds(knots: Values, height: Values) -> Values:
    """Bounds a convex function's gap below its chords [K - 1, V].

    The values are those at the knots. The gap is largest where the extensions of the two
    neighbouring chords meet: h / (1 / a + 1 / b), with h the segment's width and a, b the changes
    of slope at its ends.
    """
    width = np.diff(knots)[:, None]
    # convexity, up to rounding
    bend = np.maximum(np.diff(np.diff(height, axis=0) / width, axis=0), 0)
    # Beyond the ends no chord limits the function: the change of slope is infinite there.
    none = np.full((1, height.shape[1]), np.inf)
    with np.errstate(divide="ignore"):
        flat = 1 / np.concatenate([none, bend]) + 1 / np.concatenate([bend, none])
        return np.asarray(width / flat)


def compute_curve(
    vectors: Floats | Values, *, steps: int | None = None, progress: Progress | None = None
) -> CalibrationCurve:
    """Computes the curve of a table, in three passes over its pairs.

    Within 1% of the exact constant if rows are at least a twentieth of the diameter apart, as in
    word tables (at most 0.4% for the packaged ones), within 0.5% for small tables; looser, but
    still valid, if some rows are much closer. Costs about 1 ns per row, row and knot.

    Args:
        vectors: rows [V, d].
        steps: knots up to c = 20 / diameter; 64, or 320 for a small table.
        progress: see the module.
    """
    rows = _convert_to_double(vectors)
    longest, nearest = _compute_extent(rows, progress)
    shortest = float(nearest.min())
    if steps is None:
        steps = 64 if len(rows) > SMALL_TABLE else 320
    knots = _compute_knots(longest, shortest, steps)
    height = _compute_log_partitions(rows, knots, np.full(len(knots), -MAX_EXPONENT), progress)
    cap = MAX_EXPONENT / np.append(knots[1:], knots[-1])  # the smallest cap in a knot's segments
    exact = _find_steepest(rows, height, cap, progress)
    room = np.minimum(nearest, cap[:-1, None])
    added = (_compute_gap_bounds(knots, height) / room).max(axis=1)
    excess = exact + np.maximum(np.append(added, 0), np.append(0, added)) + knots * 10 * _SLACK
    top = float(height[-1].max())
    tail = min(1.0, top * max(1 / (shortest * knots[-1]), 1 / MAX_EXPONENT) + 10 * _SLACK)
    return CalibrationCurve(knots=tuple(knots.tolist()), excess=tuple(excess.tolist()), tail=tail)


@dataclass(frozen=True, kw_only=True)
class TableConstants:
    """Constants of a table that statements need; every number is conservative.

    Args:
        words: V, the number of rows.
        dimension: d.
        metric: "chord" (unit rows) or "euclidean" (raw rows).
        duplicates: rows that repeat an earlier row; None if not counted.
        diameter: upper bound on the distances.
        minimum_distance: lower bound on the distances between different rows; None if not computed.
        l1_diameter: upper bound on the l1 distances (D_1).
        coordinate_range: upper bound on the sum over coordinates of max - min (Delta_1).
        curve: the exponential mechanism's calibration; None if not computed (then 2c holds).
    """

    words: int
    dimension: int
    metric: str
    duplicates: int | None
    diameter: float
    minimum_distance: float | None
    l1_diameter: float
    coordinate_range: float
    curve: CalibrationCurve | None = None

    def __post_init__(self) -> None:
        nearest, curve, repeated = self.minimum_distance, self.curve, self.duplicates
        # The l1 diameter lies between the diameter and both of its bounds.
        rising = (
            self.diameter,
            self.l1_diameter,
            min(self.coordinate_range, self.dimension**0.5 * self.diameter),
        )
        searched = nearest is not None and repeated is not None
        max_diameter = 2 * (1 + 10 * _SLACK) if self.metric == "chord" else math.inf
        possible = (
            self.words >= 2,
            0 < self.diameter <= max_diameter,
            all(smaller <= larger * (1 + 10 * _SLACK) for smaller, larger in pairwise(rising)),
            math.isfinite(self.coordinate_range),
            searched or (nearest, repeated, curve) == (None, None, None),
            nearest is None or 0 < nearest <= self.diameter,
            repeated is None or 0 <= repeated < self.words - 1,
        )
        if not all(possible):
            raise TableError(
                "these constants contradict each other, so they belong to no table; compute them "
                "again"
            )

    def can_belong(self, words: int, dimension: int, coordinate_range: float) -> bool:
        """Says whether these constants can belong to a table.

        V, d and the coordinate range must match. It catches accidental name clashes between tables;
        it is not a checksum.
        """
        same = (self.words, self.dimension) == (words, dimension)
        return same and math.isclose(coordinate_range, self.coordinate_range, rel_tol=1e-5)

    def to_json(self) -> dict[str, object]:
        """Returns plain values at 9 digits, rounded in the safe direction."""
        nearest = self.minimum_distance
        return {
            "words": self.words,
            "dimension": self.dimension,
            "metric": self.metric,
            "duplicates": self.duplicates,
            "diameter": _round_outward(self.diameter, up=True),
            "minimum_distance": None if nearest is None else _round_outward(nearest, up=False),
            "l1_diameter": _round_outward(self.l1_diameter, up=True),
            "coordinate_range": _round_outward(self.coordinate_range, up=True),
            "curve": None if self.curve is None else self.curve.to_json(),
        }

    @classmethod
    def from_json(cls, values: dict[str, object]) -> "TableConstants":
        """Reads constants from the values of `to_json`."""
        curve = cast("dict[str, object] | None", values["curve"])
        fields = {**values, "curve": None if curve is None else CalibrationCurve.from_json(curve)}
        return cls(**fields)  # type: ignore[arg-type]


def compute(
    vectors: Floats | Values, metric: str, *, curve: bool = True, progress: Progress | None = None
) -> TableConstants:
    """Computes all constants of a table.

    The curve takes by far the most time (see `compute_curve`).
    """
    rows = _convert_to_double(vectors)
    longest, nearest = _compute_extent(rows, progress)
    return TableConstants(
        words=rows.shape[0],
        dimension=rows.shape[1],
        metric=metric,
        duplicates=count_duplicates(rows),
        diameter=longest * (1 + _SLACK),
        minimum_distance=float(nearest.min()) * (1 - _SLACK),
        l1_diameter=compute_l1_diameter(rows, progress=progress) * (1 + _SLACK),
        coordinate_range=compute_coordinate_range(rows) * (1 + _SLACK),
        curve=compute_curve(rows, progress=progress) if curve else None,
    )


def compute_bounds(parts: Parts, metric: str, *, passes: int = 4) -> TableConstants:
    """Computes conservative constants in a few passes over the rows.

    For tables too large for all pairs. The diameters are upper bounds: from balls about the mean,
    by `compute_diameter_bound` and in l1; at most 2 for chord; the l1 diameter at most sqrt(d)
    times the other; both at most the coordinate range. Constants without such a bound are None.

    Args:
        parts: the rows [V, d]; finite, at least two.
        metric: "chord" (unit rows) or "euclidean".
        passes: passes over the rows to shrink the ball.
    """
    words = 0
    total, low, high = np.zeros(()), np.full((), np.inf), np.full((), -np.inf)
    for part in parts():
        words, total = words + len(part), total + part.sum(axis=0, dtype=np.float64)
        low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
    _convert_to_double(np.stack([low, high]))
    if (low == high).all():
        raise TableError(_EQUAL)
    mean = total / words
    about = max(float(np.abs(part - mean).sum(axis=1).max()) for part in parts())
    range_ = float((high - low).sum())
    longest = min(_compute_ball_bound(parts, mean, passes), range_) * (1 + _SLACK)
    longest = min(longest, 2.0) if metric == "chord" else longest
    return TableConstants(
        words=words,
        dimension=len(mean),
        metric=metric,
        duplicates=None,
        diameter=longest,
        minimum_distance=None,
        l1_diameter=min(2 * about, range_, len(mean) ** 0.5 * longest) * (1 + _SLACK),
        coordinate_range=range_ * (1 + _SLACK),
    )


def load_stored(name: str, metric: str) -> TableConstants | None:
    """Returns the packaged constants for a table and metric, or None.

    Another table may have the same name: check `TableConstants.can_belong`.
    """
    # The name becomes part of a path, which must not lead out of the folder.
    if not re.fullmatch(r"[a-z0-9-]+", f"{name}-{metric}"):
        return None
    source = files("textveil").joinpath("data", "constants", f"{name}-{metric}.json")
    if source.is_file():
        return TableConstants.from_json(json.loads(source.read_text("utf-8")))
    return None


@cache
def load_kth(table: str, k: int) -> Ids | None:
    """Returns the k-th nearest row of every row, int64 [V].

    Only for tables of the package; None where it does not ship. Where two rows are equally far up
    to rounding, another machine may have them in another order.

    Args:
        table: its name and metric ("minilm-chord").
        k: counted from the row itself.
    """
    source = files("textveil").joinpath("data", "constants", "kth.npz")
    with source.open("rb") as file, np.load(file) as arrays:
        name = f"{table}-{k}"
        return arrays[name].astype(np.int64) if name in arrays else None
