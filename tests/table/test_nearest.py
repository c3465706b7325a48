"""The exact search against float64: near-ties, duplicates, both precisions, both ways of holding rows, the bound."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textveil.errors import InputError
from textveil.randomness import Values
from textveil.table import int8 as engine_module
from textveil.table import nearest, quantized
from textveil.table.cuda import TorchCodes
from textveil.table.embedding import EmbeddingTable, Metric
from textveil.table.int8 import GROUP
from textveil.table.nearest import Nearest
from textveil.table.quantized import (
    BOUND_SLACK,
    SCALING_ERROR,
    FloatCodes,
    FloatRun,
    FloatScores,
    GroupedScores,
    IntegerCodes,
    IntegerRun,
    Queries,
    compute_floor,
    compute_norms,
    compute_upper_bound,
)
from textveil.table.streamed import StreamedCodes

METRICS: tuple[Metric, ...] = ("chord", "euclidean")
ENGINES: dict[str, Any] = {
    "int8": IntegerCodes,
    "int8 anew": StreamedCodes,
    "float32": FloatCodes,
    "torch": TorchCodes,
}
"""int8 on ONNX Runtime, kept and made anew; float32 in numpy, and bfloat16 of torch, here on the CPU."""
KINDS: list[tuple[Metric, str]] = [
    *((metric, engine) for metric in METRICS for engine in ("torch", "float32")),
    ("chord", "int8"),
    ("chord", "int8 anew"),
]
KINDS_OF = {metric: [engine for of, engine in KINDS if of == metric] for metric in METRICS}
WAYS = pytest.mark.parametrize(
    ("metric", "engine", "streamed"),
    [(*kind, streamed) for kind in KINDS for streamed in (False, True)],
    ids=str,
)


def adversarial(size: int, dimension: int, seed: int) -> np.ndarray:
    """Random rows, of which a third are copies of others, moved by 1e-7 or not at all."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size, dimension)).astype(np.float32)
    third = size // 3
    rows[third : 2 * third] = rows[:third]
    moved = slice(third, third + third // 2)
    rows[moved] += 1e-7 * rng.normal(size=rows[moved].shape).astype(np.float32)
    rng.shuffle(rows)
    return rows


def table_of(rows: np.ndarray, metric: Metric) -> EmbeddingTable:
    return EmbeddingTable.build(
        name="t", words=[str(i) for i in range(len(rows))], vectors=rows, metric=metric
    )


def decoder_of(table: EmbeddingTable, engine: str) -> Nearest:
    search = Nearest(rows=table.decoder.rows)
    options = {"device": "cpu"} if engine == "torch" else {}
    search.__dict__["_codes"] = ENGINES[engine](rows=search.rows, **options)
    return search


def costs_of(table: EmbeddingTable, queries: np.ndarray) -> np.ndarray:
    """The float64 cost of every row, smaller is nearer, in units of the query's and the rows' lengths."""
    rows, asked = table.take(slice(None)).astype(np.float64), queries.astype(np.float64)
    if table.unit_rows:
        rows = rows / compute_norms(rows)[:, None]
        return -(asked @ rows.T) / compute_norms(asked)[:, None].clip(1e-300)
    asked, rows = asked - rows.mean(axis=0), rows - rows.mean(axis=0)
    size = np.square(asked).sum(axis=1, keepdims=True) + np.square(rows).sum(axis=1)
    return (size - 2 * asked @ rows.T) / size.max(axis=1, keepdims=True)


def worse(
    table: EmbeddingTable, queries: np.ndarray, found: np.ndarray, exclude: np.ndarray | None = None
) -> int:
    """How many answers are farther than the best by more than float64 rounds."""
    costs = costs_of(table, queries)
    at = np.arange(len(queries))
    if exclude is not None:
        costs[at, exclude] = np.inf
    return int((costs[at, found] > costs.min(axis=1) + 1e-14).sum())


def noisy(table: EmbeddingTable, n: int, eta: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    ids = rng.integers(len(table), size=n)
    noise = rng.normal(size=(n, table.dimension))
    noise *= (rng.gamma(table.dimension, 1 / eta, size=n) / np.linalg.norm(noise, axis=1))[:, None]
    return ids, table.take(ids) + noise.astype(np.float32)


def in_small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are made anew for every batch; of integers that are kept, several runs."""
    monkeypatch.setattr(nearest, "CACHED_SHAPE", (208, 300))
    monkeypatch.setattr(nearest, "STREAMED_SHAPE", (208, 300))
    monkeypatch.setattr(
        Nearest, "_can_cache", property(lambda self: type(self._codes) is IntegerCodes)
    )


@WAYS
def test_hundred_thousand_noisy_queries_are_answered_as_float64_does(
    metric, engine, streamed, monkeypatch
):
    """100,000 queries in all ten ways together: 10,000 each, from almost nothing but noise to none."""
    if streamed:
        in_small_runs(monkeypatch)
    table = table_of(adversarial(2011, 48, 1), metric)
    search = decoder_of(table, engine)
    for number, eta in enumerate((2.0, 20.0, 60.0, 200.0, 1e9)):
        _, queries = noisy(table, 2000, eta, number)
        found = search.search(queries)
        assert found.dtype == np.int64
        assert worse(table, queries, found) == 0


@WAYS
def test_exact_ties_go_to_the_lowest_row(metric, engine, streamed, monkeypatch):
    if streamed:
        in_small_runs(monkeypatch)
    rows = adversarial(301, 16, 2)
    table = table_of(np.concatenate([rows, rows, rows]), metric)
    _, queries = noisy(table, 2000, 30.0, 3)
    found = decoder_of(table, engine).search(queries)
    assert (found < len(rows)).all()
    assert worse(table, queries, found) == 0


@WAYS
def test_one_row_per_query_can_be_left_out(metric, engine, streamed, monkeypatch):
    if streamed:
        in_small_runs(monkeypatch)
    table = table_of(adversarial(1003, 16, 4), metric)
    search = decoder_of(table, engine)
    _, queries = noisy(table, 2000, 30.0, 5)
    best = search.search(queries)
    best[:40] = len(table) - 1  # the row behind which the last run is filled up
    second = search.search(queries, exclude=best)
    assert (second != best).all()
    assert worse(table, queries, second, exclude=best) == 0


@WAYS
def test_rows_too_close_for_the_bound_are_told_apart(metric, engine, streamed, monkeypatch):
    if streamed:
        in_small_runs(monkeypatch)
    rng = np.random.default_rng(6)
    rows = (np.ones((700, 24)) + 1e-5 * rng.normal(size=(700, 24))).astype(np.float32)
    table = table_of(rows, metric)
    queries = table.vectors[rng.integers(700, size=400)] + 1e-5 * rng.normal(size=(400, 24)).astype(
        np.float32
    )
    found = decoder_of(table, engine).search(queries)
    assert worse(table, queries, found) == 0
    assert len(set(found.tolist())) > 50


@pytest.mark.parametrize("engine", ENGINES)
def test_a_search_without_the_bound_is_caught(engine, monkeypatch):
    """The broken twin: it takes rows at their low-precision scores."""
    table = table_of(adversarial(2011, 48, 1), "chord")
    _, queries = noisy(table, 4000, 20.0, 0)
    scores = ENGINES[engine].score_run

    def trusting(self, run: FloatRun | IntegerRun, asked: Queries) -> FloatScores | GroupedScores:
        if isinstance(run, IntegerRun):
            run, none = run._replace(away=0 * run.away), np.zeros_like(asked.rounding_error)
            return scores(self, run, asked._replace(rounding_error=none))
        found = scores(self, run, asked)
        object.__setattr__(found, "error", 0 * found.error)
        return found

    monkeypatch.setattr(quantized, "SCORE_ROUNDING", 0.0)
    monkeypatch.setattr(quantized, "BOUND_SLACK", 0.0)
    monkeypatch.setattr(ENGINES[engine], "score_run", trusting)
    monkeypatch.setattr(
        ENGINES[engine], "filter_candidates", lambda self, unit, query, row: (query, row)
    )
    try:
        found = decoder_of(table, engine).search(queries)
    except ArithmeticError:  # a query was left without any candidate
        return
    assert worse(table, queries, found) > 0


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(KINDS),
    sizes=st.tuples(st.floats(-8, 8), st.floats(-8, 8)),
    dimension=st.integers(1, 96),
)
def test_no_score_is_farther_from_the_true_one_than_the_bound(seed, kind, sizes, dimension):
    metric, engine = kind
    rng = np.random.default_rng(seed)
    row_size, query_size = (10.0**each for each in sizes)
    heavy = rng.standard_cauchy(size=(40, dimension)).clip(-100, 100) * row_size
    table = table_of(heavy.astype(np.float32) + np.float32(1e-30), metric)
    search = decoder_of(table, engine)
    queries = (rng.normal(size=(20, dimension)) * query_size).astype(np.float32).astype(np.float64)
    asked = search._codes.convert_queries(queries, compute_norms(queries))
    for run in search._yield_runs():
        assert isinstance(run, FloatRun | IntegerRun)
        places = np.arange(run.start, run.start + run.size)
        rows = table.take(search._codes.get_row(places)).astype(np.float64)
        low, high = ends_of(search, run, asked)
        if table.unit_rows:
            true = (queries / compute_norms(queries)[:, None]) @ (
                rows / compute_norms(rows)[:, None]
            ).T
        else:
            true = (queries @ rows.T - np.square(rows).sum(axis=1) / 2) * _shrink(table, queries)[
                :, None
            ]
        there = compute_norms(queries) > 0
        assert (true <= high)[there].all()
        assert (low <= true.max(axis=1))[there].all()
        assert (high >= low[:, None]).any(axis=1).all()


def ends_of(
    search: Nearest, run: FloatRun | IntegerRun, asked: Queries
) -> tuple[np.ndarray, np.ndarray]:
    """What the best score of each query in a run is at least [b], and all scores are at most [b, w]."""
    scores = search._codes.score_run(run, asked)
    query, place, high = scores.find_candidates(np.full(len(asked.unit), -2e9))
    found = np.full((len(asked.unit), run.size), np.nan)
    found[query, place] = high
    return scores.compute_best(), found


def _shrink(table: EmbeddingTable, queries: np.ndarray) -> np.ndarray:
    """What true scores are multiplied by: the square of the rows' scale, and a power of two for the query."""
    scale = FloatCodes(rows=table.decoder.rows).scale
    return scale**2 / np.exp2(np.ceil(np.log2(np.maximum(compute_norms(queries) * scale, 1.0))))


@given(least=st.floats(-10, 10), error=st.floats(0, 1))
def test_no_score_below_the_floor_reaches_it_by_its_rounding(least, error):
    floor = compute_floor(np.array([least]), np.array([error]))
    below = np.nextafter(floor, np.float32(-100))
    assert compute_upper_bound(below.astype(np.float64), np.array([error])) <= least


def integer_run(size: int) -> IntegerRun:
    groups = -(-size // GROUP)
    rows = engine_module.IntegerRows(np.zeros((size, 1), np.int8), grouped=True)
    return IntegerRun(0, size, rows, unit=np.ones(groups, np.float32), away=np.zeros(groups))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 70))
def test_groups_hold_the_scores_that_reach_a_bound(seed, size):
    """Also where the last group is filled up, and a row of each query is left out."""
    rng = np.random.default_rng(seed)
    each = rng.integers(-9, 9, size=(5, size + -size % GROUP)).astype(np.int32)
    run, none = integer_run(size), np.zeros(5)
    asked = Queries(low=None, unit=np.ones(5), length=np.ones(5), rounding_error=none, sums=0.0)
    by_group = each.reshape(5, -1, GROUP).copy()
    grouped = GroupedScores(run=run, queries=asked, products=by_group, groups=by_group.max(axis=2))
    plain = FloatScores(scores=each[:, :size].astype(np.float32), error=none)
    for scores in (grouped, plain):
        scores.exclude(np.array([0, 3]), np.array([0, size - 1]))
    if size > 1:
        np.testing.assert_allclose(
            grouped.compute_best(), plain.compute_best(), rtol=1e-5, atol=1e-5
        )
    least = np.where(rng.integers(3, size=5) > 0, rng.integers(-9, 9, size=5) - 0.5, -1e30)
    for one, other in zip(
        grouped.find_candidates(least), plain.find_candidates(least), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1e-15, 1e12])
def test_rows_and_queries_of_any_size_are_compared_exactly(size):
    rng = np.random.default_rng(7)
    rows = (rng.normal(size=(300, 12)) * size).astype(np.float32)
    table = table_of(rows, "euclidean")
    queries = (rng.normal(size=(500, 12)) * size).astype(np.float32)
    for engine in KINDS_OF["euclidean"]:
        found = decoder_of(table, engine).search(queries)
        apart = queries.astype(np.float64)[:, None] - table.vectors.astype(np.float64)[None]
        np.testing.assert_array_equal(found, np.linalg.norm(apart, axis=2).argmin(axis=1))


@pytest.mark.parametrize("metric", ["chord", "euclidean"])
def test_rows_held_in_float16_are_found_exactly(metric):
    rows = np.random.default_rng(8).normal(size=(999, 20))
    if metric == "chord":
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    half = rows.astype(np.float16)
    words = [str(i) for i in range(len(rows))]
    table = EmbeddingTable.build(name="t", words=words, vectors=half, metric=metric)
    assert table.vectors is half
    if metric == "chord":
        assert np.allclose(compute_norms(table.take(slice(None))), 1, atol=1e-6)
    _, queries = noisy(table, 3000, 20.0, 9)
    for engine in KINDS_OF[metric]:
        assert worse(table, queries, decoder_of(table, engine).search(queries)) == 0


@pytest.mark.parametrize("measured", [True, False])
def test_rows_that_are_unit_vectors_only_nearly_are_compared_by_direction(measured, monkeypatch):
    """The longest of the rows about a query is not the nearest; the broken twin takes their lengths for 1."""
    in_small_runs(monkeypatch)
    if not measured:
        size = StreamedCodes._measure_groups

        def trusting(
            self: StreamedCodes, rows: np.ndarray, count: int
        ) -> tuple[np.ndarray, Values]:
            unit, away = size(self, rows, count)
            wide = rows[:count].astype(np.float64)
            lost = compute_norms(
                wide
                - integers_of(IntegerRun(0, count, rows, unit, away))
                * np.repeat(unit, GROUP)[:count, None]
            )
            return unit, np.maximum.reduceat(lost, np.arange(0, count, GROUP))

        monkeypatch.setattr(StreamedCodes, "_measure_groups", trusting)
    rng = np.random.default_rng(24)
    angle = rng.uniform(0, 2 * np.pi, size=3000)
    length = rng.uniform(0.991, 1.009, size=3000)
    half = (length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])).astype(np.float16)
    table = EmbeddingTable.build(name="t", words=[str(i) for i in range(3000)], vectors=half)
    assert table.vectors is half
    queries = rng.normal(size=(600, 2))
    try:
        found = decoder_of(table, "int8 anew").search(queries)
    except ArithmeticError:
        assert not measured
        return
    assert (worse(table, queries, found) == 0) == measured


def test_equal_rows_in_float16_and_rows_of_few_coordinates_are_told_apart(monkeypatch):
    """Most rows of a group are exactly what their integers say, and one has a coordinate that spoils the unit."""
    in_small_runs(monkeypatch)
    rng = np.random.default_rng(25)
    rows = (
        np.round(rng.normal(size=(900, 40)) * 2)
        + (rng.integers(30, size=(900, 1)) == 0) * 60 * np.eye(40)[7]
    )
    rows[300:600] = rows[:300]
    rows[400:500, 0] += 1 / 64
    rows /= compute_norms(rows)[:, None]
    table = EmbeddingTable.build(
        name="t", words=[str(i) for i in range(900)], vectors=rows.astype(np.float16)
    )
    queries = np.concatenate([table.take(slice(None)), noisy(table, 2000, 60.0, 26)[1]])
    found = decoder_of(table, "int8 anew").search(queries)
    assert worse(table, queries, found) == 0
    assert not np.isin(found, np.arange(300, 400)).any()
    assert not np.isin(found, np.arange(500, 600)).any()


@WAYS
def test_an_answer_does_not_depend_on_the_queries_beside_it(metric, engine, streamed, monkeypatch):
    if streamed:
        in_small_runs(monkeypatch)
    table = table_of(adversarial(500, 16, 10), metric)
    _, queries = noisy(table, 100, 20.0, 11)
    search = decoder_of(table, engine)
    alone = [search.search(query[None])[0] for query in queries]
    np.testing.assert_array_equal(search.search(queries), alone)


@pytest.mark.parametrize("metric", ["chord", "euclidean"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_query_that_is_not_finite_is_refused(metric, value):
    table = table_of(adversarial(50, 4, 12), metric)
    queries = np.ones((5, 4))
    queries[3, 2] = value
    with pytest.raises(InputError, match="must be finite"):
        table.nearest(queries)


def test_a_query_of_zero_has_the_first_row_and_no_query_has_none():
    table = table_of(adversarial(50, 4, 13), "chord")
    assert table.nearest(np.zeros((2, 4))).tolist() == [0, 0]
    assert table.nearest(np.zeros((2, 4)), exclude=np.array([0, 1])).tolist() == [1, 0]
    assert table.nearest(np.empty((0, 4))).shape == (0,)


@pytest.mark.parametrize(("exact", "engine"), [(True, IntegerCodes), (False, FloatCodes)])
def test_integers_are_multiplied_where_that_is_exact(exact, engine, monkeypatch):
    monkeypatch.setattr(engine_module, "is_exact", lambda: exact)
    table = table_of(adversarial(500, 16, 10), "chord")
    monkeypatch.setattr(nearest, "MAX_FLOAT_QUERIES", 0)
    assert isinstance(table.decoder._codes, engine)
    assert isinstance(table_of(adversarial(500, 16, 10), "euclidean").decoder._codes, FloatCodes)
    _, queries = noisy(table, 500, 20.0, 11)
    assert worse(table, queries, table.nearest(queries)) == 0


def test_rows_too_many_to_be_kept_become_integers_for_every_batch(monkeypatch):
    table = table_of(adversarial(500, 16, 10), "chord")
    monkeypatch.setattr(nearest, "MAX_CACHED_NUMBERS", 2 * table.vectors.size - 1)
    _, queries = noisy(table, 500, 20.0, 11)
    assert worse(table, queries, table.nearest(queries)) == 0
    assert isinstance(table.decoder._codes, StreamedCodes)
    assert "_kept" not in table.decoder.__dict__


def test_a_few_queries_do_not_wait_for_integers_to_be_made(monkeypatch):
    monkeypatch.setattr(nearest, "MAX_FLOAT_QUERIES", 100)
    table = table_of(adversarial(500, 16, 10), "chord")
    _, queries = noisy(table, 60, 20.0, 11)
    first = table.nearest(queries)
    assert "_codes" not in table.decoder.__dict__
    np.testing.assert_array_equal(table.nearest(queries), first)
    assert isinstance(table.decoder.__dict__["_codes"], IntegerCodes)


def test_a_device_of_torch_gives_the_same_answers():
    table = table_of(adversarial(500, 16, 10), "chord")
    _, queries = noisy(table, 500, 20.0, 11)
    search = Nearest(rows=table.decoder.rows, device="meta")
    assert isinstance(search._codes, TorchCodes)
    np.testing.assert_array_equal(
        decoder_of(table, "torch").search(queries), table.nearest(queries)
    )


def test_a_table_is_pickled_without_what_it_multiplies_by():
    table = table_of(adversarial(500, 16, 10), "chord")
    _, queries = noisy(table, 50, 20.0, 11)
    empty = len(pickle.dumps(table))
    found = table.nearest(queries)
    assert len(pickle.dumps(table)) == empty
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(table)).nearest(queries), found)


# ---- the worst that the bound allows ------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1 << 15, 256), (112, 50)])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dimension", [2, 48])
def test_scores_as_wrong_as_the_bound_allows_change_nothing(dimension, engine, shape, monkeypatch):
    """Instead of the product an oracle moves the best row down and all others up, by nearly the whole bound."""
    monkeypatch.setattr(nearest, "CACHED_SHAPE", shape)
    rng = np.random.default_rng(15)
    table = table_of(rng.normal(size=(600, dimension)).astype(np.float32), "chord")
    search = decoder_of(table, engine)
    queries = rng.normal(size=(300, dimension))
    own, rows = search._codes, search.rows
    ask = own.convert_queries
    unit, held = np.empty((0, dimension)), []

    def asked_of(part: np.ndarray, lengths: np.ndarray) -> Queries:
        nonlocal unit
        unit = part / lengths[:, None]
        return ask(part, lengths)

    def oracle(run: FloatRun | IntegerRun, asked: Queries) -> GroupedScores | FloatScores:
        held.append(run)
        true = unit @ rows.take_exact(own.get_row(np.arange(run.start, run.start + run.size))).T
        best = (unit @ rows.take_exact(slice(None)).T).argmax(axis=1)
        sign = np.where(
            own.get_row(np.arange(run.start, run.start + run.size)) == best[:, None], -1.0, 1.0
        )
        if isinstance(run, FloatRun):
            error = run.compute_error(asked)
            return FloatScores(
                scores=(true + sign * 0.999 * error[:, None]).astype(np.float32), error=error
            )
        away, step = of_rows(run)
        moved = true + sign * (
            0.999 * (asked.rounding_error[:, None] + asked.length[:, None] * (away - SCALING_ERROR))
        )
        moved /= asked.unit[:, None] * step
        each = np.zeros((len(unit), run.size + -run.size % GROUP), np.int32)
        each[:, : run.size] = np.where(sign > 0, np.floor(moved), np.ceil(moved))
        by_group = each.reshape(len(unit), -1, GROUP)
        return GroupedScores(run=run, queries=asked, products=by_group, groups=by_group.max(axis=2))

    expected = (queries @ rows.take_exact(slice(None)).T).argmax(axis=1)
    monkeypatch.setattr(type(own), "convert_queries", lambda self, *given: asked_of(*given))
    monkeypatch.setattr(type(own), "score_run", lambda self, *given: oracle(*given))
    np.testing.assert_array_equal(search.search(queries), expected)
    assert held


@given(seed=st.integers(0, 2**32), dimension=st.integers(2, 96), kind=st.sampled_from(KINDS))
@settings(max_examples=20, deadline=None)
def test_what_queries_and_rows_lost_is_not_more_than_is_said(seed, dimension, kind):
    metric, engine = kind
    rng = np.random.default_rng(seed)
    table = table_of(
        rng.standard_cauchy(size=(40, dimension)).clip(-100, 100).astype(np.float32) + 1e-9, metric
    )
    search = decoder_of(table, engine)
    own = search._codes
    queries = rng.normal(size=(20, dimension))
    lengths = compute_norms(queries)
    asked = own.convert_queries(queries, lengths)
    given = (
        asked.low.double()
        if engine == "torch"
        else asked.low.queries
        if engine == "int8 anew"
        else asked.low
    )
    low = np.asarray(given, np.float64) * asked.unit[:, None]
    assert (compute_norms(low) <= asked.length * (1 + BOUND_SLACK)).all()
    if isinstance(own, IntegerCodes):
        turns = turned(np.eye(dimension), own)
        assert (
            compute_norms(low - turned(queries / lengths[:, None], own)) <= asked.rounding_error
        ).all()
        assert np.allclose(turns @ turns.T, np.eye(dimension), atol=1e-12)
        unit = queries / lengths[:, None]
        query, row = np.repeat(np.arange(20), 40), np.tile(np.arange(40), 20)
        score = own.compute_products(unit.astype(np.float32), query, row).astype(np.float64)
        true = (unit[query] * search.rows.take_exact(row)).sum(axis=1)
        assert np.abs(score - true).max() <= (dimension + 8) * 2.0**-23 + 1e-6
    for run in search._yield_runs():
        true = search.rows.take_exact(own.get_row(np.arange(run.start, run.start + run.size)))
        if isinstance(own, IntegerCodes):
            assert isinstance(run, IntegerRun)
            away, step = of_rows(run)
            rows, true = integers_of(run) * step[:, None], turned(true, own)
        else:
            assert isinstance(run, FloatRun)
            rows = np.asarray(run.low.double() if engine == "torch" else run.low, np.float64)
            true = true * FloatCodes(rows=search.rows).scale
            assert compute_norms(rows).max() <= run.length
            assert compute_norms(true).max() <= run.row
            away = np.full(run.size, run.away)
        assert (compute_norms(true - rows[:, :dimension]) <= away).all()


@pytest.mark.parametrize("dimension", [2, 48, 300])
@pytest.mark.parametrize("engine", [IntegerCodes, StreamedCodes])
def test_products_with_rows_in_float16_are_those_of_their_directions(
    engine, dimension, monkeypatch
):
    monkeypatch.setattr(quantized, "MAX_PAIRS", 77)
    rng = np.random.default_rng(27)
    rows = rng.normal(size=(50, dimension))
    rows *= (rng.uniform(0.991, 1.009, size=50) / compute_norms(rows))[:, None]
    table = EmbeddingTable.build(
        name="t", words=[str(i) for i in range(50)], vectors=rows.astype(np.float16)
    )
    own = engine(rows=table.decoder.rows)
    unit = table.decoder.rows.take_exact(rng.permutation(50)) + 1e-3 * rng.normal(
        size=(50, dimension)
    )
    unit /= compute_norms(unit)[:, None]
    query, row = np.repeat(np.arange(50), 50), np.tile(np.arange(50), 50)
    true, bound = (
        (unit[query] * own.rows.take_exact(row)).sum(axis=1),
        (dimension + 8) * 2.0**-23 + 1e-6,
    )
    assert np.abs(own.compute_products(unit.astype(np.float32), query, row) - true).max() <= bound
    assert (
        np.abs((unit[query] * table.vectors[row]).sum(axis=1) - true).max() > bound
    )  # lengths count


def of_rows(run: IntegerRun) -> tuple[Values, Values]:
    """The largest error and the unit of each row of a run."""
    group = np.arange(run.size) // GROUP
    return run.away[group], run.unit[group].astype(np.float64)


def integers_of(run: IntegerRun) -> np.ndarray:
    """The integers of a run, int8 [w, d]."""
    if isinstance(run.low, engine_module.IntegerRows):
        return run.low.rows
    return engine_module.build_quantizer(run.low.shape[1], run.low.dtype)(run.low, run.unit)[
        : run.size
    ]


def turned(vectors: np.ndarray, own: IntegerCodes) -> np.ndarray:
    """Vectors after the discrete sine transform of so many coordinates at once, in float64, where rows are rotated."""
    if isinstance(own, StreamedCodes):
        return vectors
    d = len(quantized._build_rotation(vectors.shape[1]))
    n = np.arange(1, d + 1)
    turns = np.sin(np.outer(n, n) * np.pi / (d + 1)) * (2 / (d + 1)) ** 0.5
    return (vectors.reshape(-1, d) @ turns).reshape(vectors.shape)


# ---- many candidates, large and small queries -----------------------------------------------------------


@WAYS
def test_candidates_are_scored_before_they_are_too_many(metric, engine, streamed, monkeypatch):
    """Equal rows everywhere: each of them is a candidate."""
    if streamed:
        in_small_runs(monkeypatch)
    monkeypatch.setattr(nearest, "CACHED_SHAPE", (112, 50))
    monkeypatch.setattr(nearest, "MAX_CANDIDATES", 500)
    most = 0
    better = Nearest._update_best

    def counted(
        self: Nearest, queries: np.ndarray, best: nearest.Best, query: np.ndarray, *rest, **last
    ):
        nonlocal most
        most = max(most, len(query))
        return better(self, queries, best, query, *rest, **last)

    monkeypatch.setattr(Nearest, "_update_best", counted)
    rows = np.repeat(adversarial(12, 16, 16), 100, axis=0)
    order = np.random.default_rng(17).permutation(len(rows))
    table = table_of(rows[order], metric)
    _, queries = noisy(table, 50, 40.0, 18)
    found = decoder_of(table, engine).search(queries)
    assert worse(table, queries, found) == 0
    vectors = table.vectors
    assert all(not (vectors[:row] == vectors[row]).all(axis=1).any() for row in found)
    assert most <= 500 + 208 * 50


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-30, 1e30, 1e200, 1e307])
def test_only_the_direction_of_a_query_counts_where_rows_are_unit_vectors(size):
    table = table_of(adversarial(300, 12, 19), "chord")
    queries = np.random.default_rng(20).normal(size=(200, 12)).clip(-9, 9) * size
    # what is left of a query so small
    direction = queries / np.abs(queries).max(axis=1, keepdims=True)
    for engine in KINDS_OF["chord"]:
        found = decoder_of(table, engine).search(queries)
        assert worse(table, direction, found) == 0


@pytest.mark.parametrize("size", [1e-8, 1e-3, 1e3, 1e8, 1e16, 1e30, 1e100])
def test_distances_to_queries_far_away_are_compared_exactly(size):
    rng = np.random.default_rng(21)
    centres = rng.normal(size=(20, 32))[rng.integers(20, size=800)]
    rows = (centres * (1 + 3e-6 * rng.normal(size=(800, 32)))).astype(np.float32)
    table = table_of(rows, "euclidean")
    queries = rng.normal(size=(200, 32)) * size
    wide = rows.astype(np.longdouble)
    expected = [(wide @ query - (wide * wide).sum(axis=1) / 2).argmax() for query in queries]
    for engine in KINDS_OF["euclidean"]:
        np.testing.assert_array_equal(decoder_of(table, engine).search(queries), expected)


def test_queries_and_excluded_rows_must_have_the_right_shape():
    table = table_of(adversarial(50, 4, 22), "euclidean")
    with pytest.raises(InputError, match=r"queries must be \[n, 4\], got \[4\]"):
        table.nearest(np.ones(4))
    with pytest.raises(InputError, match=r"got \[2, 5\]"):
        table.nearest(np.ones((2, 5)))
    with pytest.raises(InputError, match=r"exclude must be one row per query, \[2\], got \[1\]"):
        table.nearest(np.ones((2, 4)), exclude=np.array([1]))
    with pytest.raises(InputError, match="must be shorter than 1e150"):
        table.nearest(np.full((2, 4), 1e200))
