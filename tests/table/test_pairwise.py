"""Rows compared with one another: bounds that hold for every pair, and neighbours as float64 differences decide."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from textveil.errors import ConfigError
from textveil.table import embedding as table_module
from textveil.table import pairwise as pairs_module
from textveil.table.embedding import EmbeddingTable, Metric
from textveil.table.pairwise import Pairs, RowCodes
from textveil.table.quantized import compute_norms

METRICS: tuple[Metric, ...] = ("chord", "euclidean")
TYPES = (np.int8, np.float32, np.float64)


def awkward(size: int, dimension: int, seed: int) -> np.ndarray:
    """Rows of very different lengths far from the origin, a third of them copies, moved by 1e-7 or not at all."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size, dimension)) * np.exp(rng.normal(size=(size, 1))) + 3.0
    rows[rng.integers(size, size=size // 5), rng.integers(dimension, size=size // 5)] *= 20
    third = size // 3
    rows[third : 2 * third] = rows[:third]
    rows[third : third + third // 2] += 1e-7 * rng.normal(size=(third // 2, dimension))
    rng.shuffle(rows)
    return rows.astype(np.float32)


def table_of(rows: np.ndarray, metric: Metric) -> EmbeddingTable:
    return EmbeddingTable.build(
        name="t", words=[str(i) for i in range(len(rows))], vectors=rows, metric=metric
    )


def pairs_of(table: EmbeddingTable, kind: type) -> Pairs:
    pairs = Pairs(rows=table.pairs.rows)
    pairs.__dict__["_type"] = kind
    return pairs


def differences(table: EmbeddingTable) -> np.ndarray:
    """All distances [V, V], from differences in numpy's float64."""
    rows = table.take(slice(None)).astype(np.float64)
    return np.stack([np.sqrt(np.square(row - rows).sum(axis=1)) for row in rows])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 2, 7, 300])
def test_distances_inside_groups_are_those_of_their_pairs(metric, k):
    pairs = table_of(awkward(203, 12, 30), metric).pairs
    groups = np.random.default_rng(31).permutation(203 + -203 % k) - (-203 % k)
    groups = np.where(groups < 0, -1, groups).reshape(-1, k)
    found = pairs.compute_group_distances(groups)
    assert found.shape == (len(groups), k, k)
    group, one, two = np.nonzero((groups[:, :, None] >= 0) & (groups[:, None] >= 0))
    expected = pairs.compute_distances(groups[group, one], groups[group, two])
    np.testing.assert_array_equal(
        found[group, one, two], expected
    )  # bit by bit: draws depend on them
    there = np.isfinite(found).any(axis=2) & (groups >= 0)
    assert (np.isinf(found) == (groups < 0)[:, None])[there].all()


def brute_force(table: EmbeddingTable, k: int) -> np.ndarray:
    rows = np.arange(len(table))
    # the same differences, so that ties are the same; in an order of its own
    vectors = table.take(slice(None)).astype(np.float64)
    away = np.stack([compute_norms(vectors[i] - vectors) for i in rows])
    away[rows, rows] = -1
    return away.argsort(axis=1, kind="stable")[:, :k]


def outside(pairs: Pairs, true: np.ndarray) -> int:
    """How many pairs lie outside their bounds."""
    found = 0
    for start, middle, error in pairs.bound_squares(np.arange(len(true))):
        squares = (true[:, start : start + middle.shape[1]] / pairs.length_scale) ** 2
        found += int((np.abs(middle.astype(np.float64) - squares) > error).sum())
    return found


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize(("dimension", "size"), [(2, 1.0), (33, 1e-12), (64, 1.0), (300, 1e12)])
def test_every_distance_is_within_its_bounds(metric, kind, dimension, size, monkeypatch):
    monkeypatch.setattr(pairs_module, "SLAB_ROWS", 128)
    table = table_of(awkward(500, dimension, dimension) * np.float32(size), metric)
    pairs, true = pairs_of(table, kind), differences(table)
    assert outside(pairs, true) == 0
    for lines, start, shorter in pairs.bound_distances(np.arange(len(table))):
        assert (
            shorter.astype(np.float64) * pairs.length_scale
            <= true[lines, start : start + shorter.shape[1]]
        ).all()
    # The twin: nothing is lost by rounding to whole numbers.
    lossless = pairs_of(table, kind)
    lossless.__dict__["_cached_codes"] = lossless._cached_codes._replace(
        rounding_error=np.zeros_like(lossless._cached_codes.rounding_error)
    )
    assert outside(lossless, true) > 0


def test_integer_rows_are_compared_exactly_by_hand():
    """Rows of 3 and 4: distance 5 lies within the bounds, and nothing is said more exactly than eight bits allow."""
    table = table_of(np.array([[3.0, 0.0], [0.0, 4.0]], np.float32), "euclidean")
    ((_, middle, error),) = table.pairs.bound_squares(np.array([0]))
    square = table.pairs.length_scale**2
    assert abs(float(middle[0, 1]) * square - 25) <= float(error[0, 1]) * square < 1


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("metric", METRICS)
def test_no_bit_of_a_bound_depends_on_other_rows(metric, kind, monkeypatch):
    table = table_of(awkward(700, 48, 5), metric)
    pairs = pairs_of(table, kind)

    def low_ends(rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        squares = [middle - error for _, middle, error in pairs.bound_squares(np.array(rows))]
        shorter = np.zeros((len(rows), 700), np.float32)
        for lines, start, found in pairs.bound_distances(np.array(rows)):
            shorter[lines, start : start + found.shape[1]] = found
        return np.concatenate(squares, axis=1), shorter

    together = low_ends(list(range(700)))
    for few in ([3], [699, 3], list(range(0, 700, 7))):
        for alone, all_of_them in zip(low_ends(few), together, strict=True):
            assert np.array_equal(alone, all_of_them[few])


@pytest.mark.slow
def test_rows_that_are_not_kept_have_bounds_that_hold_as_well(monkeypatch):
    monkeypatch.setattr(pairs_module, "MAX_CACHED_NUMBERS", 0)
    monkeypatch.setattr(pairs_module, "SLAB_ROWS", 128)
    table = table_of(awkward(500, 48, 5), "euclidean")
    assert outside(table.pairs, differences(table)) == 0
    assert (table.pairs.find_nearest(np.arange(500), 20) == brute_force(table, 20)).all()
    for lines, start, shorter in table.pairs.bound_distances(np.arange(500)):
        true = differences(table)[lines, start : start + shorter.shape[1]]
        assert (shorter.astype(np.float64) * table.pairs.length_scale <= true).all()


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 2, 20, 300, 600])
def test_neighbours_are_those_of_brute_force(k, metric, kind, monkeypatch):
    monkeypatch.setattr(pairs_module, "SLAB_ROWS", 160)
    table = table_of(awkward(600, 24, k), metric)
    found = pairs_of(table, kind).find_nearest(np.arange(600), k)
    assert (found == brute_force(table, k)).all()
    assert (found[:, 0] == np.arange(600)).all()
    monkeypatch.setattr(pairs_module, "MAX_CANDIDATES", 100)
    assert (pairs_of(table, kind).find_nearest(np.arange(600), k) == found).all()


def test_neighbours_without_the_bound_are_wrong(monkeypatch):
    """The twin: whole numbers taken at their word."""
    table = table_of(np.random.default_rng(3).normal(size=(1500, 24)).astype(np.float32), "chord")
    codes = pairs_module._quantize

    def lossless(rows: np.ndarray, even: bool) -> RowCodes:
        return codes(rows, even=even)._replace(rounding_error=np.zeros(len(rows), np.float32))

    monkeypatch.setattr(pairs_module, "_quantize", lossless)
    assert (table.pairs.find_nearest(np.arange(1500), 2) != brute_force(table, 2)).any()
    monkeypatch.setattr(pairs_module, "_quantize", codes)
    assert (
        Pairs(rows=table.pairs.rows).find_nearest(np.arange(1500), 2) == brute_force(table, 2)
    ).all()


def test_neighbours_of_a_table_in_float16_and_of_a_projection(small_table):
    rows = awkward(400, 16, 9)
    half = (rows / compute_norms(rows)[:, None]).astype(np.float16)
    table = EmbeddingTable.build(name="half", words=[str(i) for i in range(400)], vectors=half)
    for each in (table, table.project(5), table.project(5, renormalize=True), small_table):
        assert (each.neighbours(np.arange(len(each)), 10) == brute_force(each, 10)).all()


def test_neighbours_by_hand():
    rows = np.array([[0.0], [1.0], [3.0], [1.0], [-1.0]], np.float32)
    table = table_of(rows, "euclidean")
    assert table.neighbours(np.array([0, 3, 2, 0]), 4).tolist() == [
        [0, 1, 3, 4],
        [3, 1, 0, 2],
        [2, 1, 3, 0],
        [0, 1, 3, 4],
    ]
    assert table_of(np.zeros((40, 3), np.float32), "euclidean").neighbours(
        np.array([7]), 3
    ).tolist() == [[7, 0, 1]]
    assert table.neighbours(np.zeros(0, np.int64), 2).shape == (0, 2)
    for k in (0, 6):
        with pytest.raises(ConfigError, match="from 1 to the table's 5 rows"):
            table.neighbours(np.array([0]), k)


def test_lists_are_made_once_and_kept_only_while_they_fit(monkeypatch):
    table = table_of(awkward(300, 8, 1), "chord")
    asked: list[int] = []
    nearest = Pairs.find_nearest

    def counted(self: Pairs, rows: np.ndarray, k: int) -> np.ndarray:
        asked.extend(rows.tolist())
        return nearest(self, rows, k)

    monkeypatch.setattr(Pairs, "find_nearest", counted)
    first = table.neighbours(np.array([5, 9, 5]), 4)
    assert asked == [5, 9]
    assert (table.neighbours(np.array([9, 5, 7]), 4)[:2] == first[[1, 0]]).all()
    assert asked == [5, 9, 7]
    first[:] = -5  # what a caller does with it changes no list
    assert (table.neighbours(np.array([5]), 4) >= 0).all()
    monkeypatch.setattr(table_module, "MAX_CACHED_NEIGHBOURS", 300 * 6 - 1)
    for _ in range(2):
        assert (table.neighbours(np.array([2, 1, 2]), 6)[:, 0] == [2, 1, 2]).all()
    assert asked == [5, 9, 7, 1, 2, 1, 2]


def test_threads_share_the_lists():
    table = table_of(awkward(2000, 8, 2), "chord")
    truth = brute_force(table, 6)
    orders = [np.random.default_rng(seed).permutation(2000) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        for order, found in zip(
            orders, threads.map(lambda order: table.neighbours(order, 6), orders), strict=True
        ):
            assert (found == truth[order]).all()
