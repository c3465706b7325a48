"""The exact search against float64: near-ties, duplicates, both precisions, both ways of holding rows, the bound."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from textveil.errors import InputError
from textveil.table import codes as precision_module
from textveil.table import nearest
from textveil.table.codes import ROUNDING, SLACK, FloatCodes, IntegerCodes, Precision, Queries, RowRun, low_precision
from textveil.table.embedding import EmbeddingTable, Metric
from textveil.table.nearest import Nearest

METRICS: tuple[Metric, ...] = ("chord", "euclidean")
KINDS: list[tuple[Metric, Precision]] = [
    *((metric, precision) for metric in METRICS for precision in ("bfloat16", "float32")),
    ("chord", "int8"),
]
KINDS_OF = {metric: [precision for of, precision in KINDS if of == metric] for metric in METRICS}
WAYS = pytest.mark.parametrize(
    ("metric", "precision", "streamed"),
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
    return EmbeddingTable.build(name="t", words=[str(i) for i in range(len(rows))], vectors=rows, metric=metric)


def decoder_of(table: EmbeddingTable, precision: Precision) -> Nearest:
    return Nearest(rows=table.decoder.rows, precision=precision)


def costs_of(table: EmbeddingTable, queries: torch.Tensor) -> torch.Tensor:
    """The float64 cost of every row, smaller is nearer, in units of the query's and the rows' lengths."""
    rows, asked = table.take(slice(None)).double(), queries.double()
    if table.unit_rows:
        rows = rows / rows.norm(dim=1, keepdim=True)
        return -(asked @ rows.T) / asked.norm(dim=1, keepdim=True).clamp(min=1e-300)
    asked, rows = asked - rows.mean(dim=0), rows - rows.mean(dim=0)
    size = asked.square().sum(1, keepdim=True) + rows.square().sum(1)
    return (size - 2 * asked @ rows.T) / size.amax(dim=1, keepdim=True)


def worse(table: EmbeddingTable, queries: torch.Tensor, found: np.ndarray, exclude: np.ndarray | None = None) -> int:
    """How many answers are farther than the best by more than float64 rounds."""
    costs = costs_of(table, queries)
    at = torch.arange(len(queries))
    if exclude is not None:
        costs[at, torch.from_numpy(exclude)] = torch.inf
    return int((costs[at, torch.from_numpy(found)] > costs.amin(dim=1) + 1e-14).sum())


def noisy(table: EmbeddingTable, n: int, eta: float, seed: int) -> tuple[np.ndarray, torch.Tensor]:
    rng = np.random.default_rng(seed)
    ids = rng.integers(len(table), size=n)
    noise = rng.normal(size=(n, table.dimension))
    noise *= (rng.gamma(table.dimension, 1 / eta, size=n) / np.linalg.norm(noise, axis=1))[:, None]
    return ids, table.take(torch.from_numpy(ids)) + torch.from_numpy(noise).float()


def in_small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are made anew for every batch; of eight-bit integers, which are always kept, several runs."""
    monkeypatch.setattr(nearest, "KEPT_SHAPE", (208, 300))
    monkeypatch.setattr(nearest, "MADE_SHAPE", (208, 300))
    monkeypatch.setattr(Nearest, "_keeps", property(lambda self: self.precision == "int8"))


@WAYS
def test_hundred_thousand_noisy_queries_are_answered_as_float64_does(metric, precision, streamed, monkeypatch):
    """100,000 queries in all ten ways together: 10,000 each, from almost nothing but noise to none."""
    if streamed:
        in_small_runs(monkeypatch)
    table = table_of(adversarial(2011, 48, 1), metric)
    search = decoder_of(table, precision)
    for number, eta in enumerate((2.0, 20.0, 60.0, 200.0, 1e9)):
        _, queries = noisy(table, 2000, eta, number)
        found = search.search(queries)
        assert found.dtype == np.int64
        assert worse(table, queries, found) == 0


@WAYS
def test_exact_ties_go_to_the_lowest_row(metric, precision, streamed, monkeypatch):
    if streamed:
        in_small_runs(monkeypatch)
    rows = adversarial(301, 16, 2)
    table = table_of(np.concatenate([rows, rows, rows]), metric)
    _, queries = noisy(table, 2000, 30.0, 3)
    found = decoder_of(table, precision).search(queries)
    assert (found < len(rows)).all()
    assert worse(table, queries, found) == 0


@WAYS
def test_one_row_per_query_can_be_left_out(metric, precision, streamed, monkeypatch):
    if streamed:
        in_small_runs(monkeypatch)
    table = table_of(adversarial(1003, 16, 4), metric)
    search = decoder_of(table, precision)
    _, queries = noisy(table, 2000, 30.0, 5)
    best = search.search(queries)
    best[:40] = len(table) - 1  # the row behind which the last run is filled up
    second = search.search(queries, exclude=best)
    assert (second != best).all()
    assert worse(table, queries, second, exclude=best) == 0


@WAYS
def test_rows_too_close_for_the_bound_are_told_apart(metric, precision, streamed, monkeypatch):
    if streamed:
        in_small_runs(monkeypatch)
    rng = np.random.default_rng(6)
    rows = (np.ones((700, 24)) + 1e-5 * rng.normal(size=(700, 24))).astype(np.float32)
    table = table_of(rows, metric)
    queries = table.vectors[rng.integers(700, size=400)] + 1e-5 * torch.from_numpy(rng.normal(size=(400, 24))).float()
    found = decoder_of(table, precision).search(queries)
    assert worse(table, queries, found) == 0
    assert len(set(found.tolist())) > 50


@pytest.mark.parametrize("precision", ["bfloat16", "float32", "int8"])
def test_a_search_without_the_bound_is_caught(precision, monkeypatch):
    """The broken twin: it takes rows at their low-precision scores."""
    table = table_of(adversarial(2011, 48, 1), "chord")
    _, queries = noisy(table, 4000, 20.0, 0)
    monkeypatch.setattr(RowRun, "error", lambda self, asked: torch.zeros_like(asked.lost))
    monkeypatch.setattr("textveil.table.nearest.ROUNDING", dict.fromkeys(ROUNDING, 0.0))
    monkeypatch.setattr("textveil.table.nearest.SLACK", 0.0)
    try:
        found = decoder_of(table, precision).search(queries)
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
    metric, precision = kind
    rng = np.random.default_rng(seed)
    row_size, query_size = (10.0**each for each in sizes)
    heavy = rng.standard_cauchy(size=(40, dimension)).clip(-100, 100) * row_size
    table = table_of(heavy.astype(np.float32) + np.float32(1e-30), metric)
    search = decoder_of(table, precision)
    queries = torch.from_numpy(rng.normal(size=(20, dimension)) * query_size).float().double()
    asked = search._coder.queries(queries, queries.norm(dim=1))
    for span in search._spans():
        places = torch.arange(span.start, span.start + span.size)
        rows = table.take(search._coder.row(places)).double()
        raw = search._coder.product(span.low, asked.low)[: len(places)]
        scores = raw.double() * span.unit * asked.unit
        if table.unit_rows:
            true = (rows / rows.norm(dim=1, keepdim=True)) @ (queries / queries.norm(dim=1, keepdim=True)).T
        else:
            true = (rows @ queries.T - rows.square().sum(dim=1, keepdim=True) / 2) * _shrink(search, queries)
        slack = (search._rounding + SLACK) * scores.abs()
        assert ((scores - true).abs() <= span.error(asked) + slack)[:, queries.norm(dim=1) > 0].all()


def _shrink(search: Nearest, queries: torch.Tensor) -> torch.Tensor:
    """What true scores are multiplied by: the square of the rows' scale, and a power of two for the query."""
    assert isinstance(search._coder, FloatCodes)
    scale = search._coder._scale
    lengths = queries.norm(dim=1) * scale
    return scale**2 / torch.exp2(torch.ceil(torch.log2(lengths.clamp(min=1.0))))


@given(high=st.floats(-10, 10), precision=st.sampled_from(["int8", "bfloat16", "float32"]))
def test_no_score_below_the_floor_reaches_it_by_its_rounding(high, precision):
    search = decoder_of(table_of(adversarial(50, 4, 1), "chord"), precision)
    bound = torch.tensor([high], dtype=torch.float64)
    floor = search._coder.comparable(search._from(bound))
    below = floor - 1 if precision == "int8" else torch.nextafter(floor, torch.tensor([-100.0]).to(floor.dtype))
    assert search._high_end(below) < bound


@pytest.mark.parametrize("size", [1e-30, 1e-15, 1e12])
def test_rows_and_queries_of_any_size_are_compared_exactly(size):
    rng = np.random.default_rng(7)
    rows = (rng.normal(size=(300, 12)) * size).astype(np.float32)
    table = table_of(rows, "euclidean")
    queries = torch.from_numpy(rng.normal(size=(500, 12)) * size).float()
    for precision in KINDS_OF["euclidean"]:
        found = decoder_of(table, precision).search(queries)
        expected = (queries.double()[:, None] - table.vectors.double()[None]).norm(dim=2).argmin(dim=1)
        np.testing.assert_array_equal(found, expected.numpy())


@pytest.mark.parametrize("metric", ["chord", "euclidean"])
def test_rows_held_in_float16_are_found_exactly(metric):
    rows = np.random.default_rng(8).normal(size=(999, 20))
    if metric == "chord":
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    half = torch.from_numpy(rows).half()
    words = [str(i) for i in range(len(rows))]
    table = EmbeddingTable.build(name="t", words=words, vectors=half, metric=metric)
    assert table.vectors.data_ptr() == half.data_ptr()
    if metric == "chord":
        assert torch.allclose(table.take(slice(None)).norm(dim=1), torch.ones(999), atol=1e-6)
    _, queries = noisy(table, 3000, 20.0, 9)
    for precision in KINDS_OF[metric]:
        assert worse(table, queries, decoder_of(table, precision).search(queries)) == 0


@WAYS
def test_an_answer_does_not_depend_on_the_queries_beside_it(metric, precision, streamed, monkeypatch):
    if streamed:
        in_small_runs(monkeypatch)
    table = table_of(adversarial(500, 16, 10), metric)
    _, queries = noisy(table, 100, 20.0, 11)
    search = decoder_of(table, precision)
    alone = [search.search(query[None])[0] for query in queries]
    np.testing.assert_array_equal(search.search(queries), alone)


@pytest.mark.parametrize("metric", ["chord", "euclidean"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_query_that_is_not_finite_is_refused(metric, value):
    table = table_of(adversarial(50, 4, 12), metric)
    queries = torch.ones(5, 4)
    queries[3, 2] = value
    with pytest.raises(InputError, match="must be finite"):
        table.nearest(queries)


def test_a_query_of_zero_has_the_first_row_and_no_query_has_none():
    table = table_of(adversarial(50, 4, 13), "chord")
    assert table.nearest(torch.zeros(2, 4)).tolist() == [0, 0]
    assert table.nearest(torch.zeros(2, 4), exclude=np.array([0, 1])).tolist() == [1, 0]
    assert table.nearest(torch.empty(0, 4)).shape == (0,)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("way", ["old", "new"])
def test_lowered_float32_precision_only_widens_the_search(precision, way, monkeypatch):
    """Where torch may cut numbers to bfloat16 before it multiplies them, as it does here."""
    table = table_of(adversarial(2011, 48, 1), "chord")
    _, queries = noisy(table, 2000, 20.0, 0)
    search = decoder_of(table, precision)
    assert worse(table, queries, search.search(queries)) == 0  # rows are kept from before
    if way == "old":
        monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    else:
        torch.backends.cuda.matmul.fp32_precision = "tf32"
    if precision == "float32":
        cut = lambda self, rows, queries: rows.bfloat16().float() @ queries.bfloat16().float().T  # noqa: E731
        monkeypatch.setattr(FloatCodes, "product", cut)
    else:
        turn = IntegerCodes._turn
        cut_turn = lambda self, vectors, dtype: turn(  # noqa: E731
            self, vectors.bfloat16() if dtype == torch.float32 else vectors, dtype
        )
        monkeypatch.setattr(IntegerCodes, "_turn", cut_turn)
    try:
        assert worse(table, queries, search.search(queries)) == 0
    finally:
        torch.set_float32_matmul_precision("highest")  # which takes back the other way as well


@pytest.mark.parametrize("lower", [torch.bfloat16, torch.float16])
@WAYS
def test_autocast_does_not_reach_the_search(metric, precision, streamed, lower, monkeypatch):
    if streamed:
        in_small_runs(monkeypatch)
    table = table_of(adversarial(400, 16, 14), metric)
    _, queries = noisy(table, 400, 20.0, 0)
    with torch.autocast("cpu", lower):
        found = decoder_of(table, precision).search(queries)
    assert worse(table, queries, found) == 0


@pytest.mark.parametrize(
    ("capability", "integers", "precision"),
    [
        ("avx512_vnni", True, "int8"),
        ("avx512_vnni", False, "float32"),
        ("amx_int8", True, "int8"),
        ("avx512_bf16", True, "bfloat16"),
        ("avx2", True, "float32"),
    ],
)
def test_low_precision_is_chosen_by_the_machine(capability, integers, precision, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {capability: True})
    monkeypatch.setattr("textveil.table.codes._integers_are_exact", lambda: True)
    assert low_precision(torch.device("cpu"), integers=integers) == precision
    assert low_precision(torch.device("cuda"), integers=integers) == "bfloat16"


def test_integers_that_saturate_are_not_used():
    """A setting of the linear algebra can take VNNI away, of which the processor's capabilities say nothing."""
    code = (
        "import torch\n"
        "from textveil.table.nearest import Nearest\n"
        "from textveil.table.embedding import EmbeddingTable\n"
        "rows = torch.randn(3000, 4, generator=torch.Generator().manual_seed(0))\n"
        "table = EmbeddingTable.build(name='t', words=[str(i) for i in range(3000)], vectors=rows)\n"
        "print((table.nearest(table.vectors) == range(3000)).all())"
    )
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["True"]


def test_products_that_saturate_are_noticed(monkeypatch):
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: (a.int() @ b.int()).clamp(-(2**15), 2**15 - 1))
    assert not precision_module._integers_are_exact.__wrapped__()


# ---- the worst that the bound allows ------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1 << 15, 256), (112, 50)])
@pytest.mark.parametrize("precision", ["bfloat16", "float32", "int8"])
@pytest.mark.parametrize("dimension", [2, 48])
def test_scores_as_wrong_as_the_bound_allows_change_nothing(dimension, precision, shape, monkeypatch):
    """Instead of the product an oracle moves the best row down and all others up, by nearly the whole bound."""
    monkeypatch.setattr(nearest, "KEPT_SHAPE", shape)
    rng = np.random.default_rng(15)
    table = table_of(rng.normal(size=(600, dimension)).astype(np.float32), "chord")
    search = decoder_of(table, precision)
    queries = torch.from_numpy(rng.normal(size=(300, dimension)))
    coder, rows = search._coder, search.rows
    ask = coder.queries
    seen: dict[str, torch.Tensor | Queries] = {}

    def asked_of(part: torch.Tensor, lengths: torch.Tensor) -> Queries:
        seen["unit"], seen["asked"] = part / lengths[:, None], ask(part, lengths)
        assert isinstance(seen["asked"], Queries)
        return seen["asked"]

    def oracle(low: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        span = next(span for span in search._spans() if span.low is low)
        asked, unit = seen["asked"], seen["unit"]
        assert isinstance(asked, Queries)
        assert isinstance(unit, torch.Tensor)
        own = coder.row(torch.arange(span.start, span.start + span.size))
        best = (unit @ rows.true(slice(None)).T).argmax(dim=1)
        sign = torch.where(own[:, None] == best, -1.0, 1.0)
        moved = (rows.true(own) @ unit.T + sign * 0.999 * span.error(asked)) / (asked.unit * span.unit)
        if precision == "int8":
            moved = torch.where(sign > 0, moved.floor(), moved.ceil())
        scores = torch.zeros(len(low), len(unit), dtype=coder.scores)
        scores[: span.size] = moved.to(coder.scores)
        return scores

    expected = (queries @ rows.true(slice(None)).T).argmax(dim=1)
    monkeypatch.setattr(type(coder), "queries", lambda self, *given: asked_of(*given))
    monkeypatch.setattr(type(coder), "product", lambda self, *given: oracle(*given))
    np.testing.assert_array_equal(search.search(queries), expected.numpy())


@given(seed=st.integers(0, 2**32), dimension=st.integers(2, 96), kind=st.sampled_from(KINDS))
@settings(max_examples=60, deadline=None)
def test_what_queries_and_rows_lost_is_not_more_than_is_said(seed, dimension, kind):
    metric, precision = kind
    rng = np.random.default_rng(seed)
    table = table_of(rng.standard_cauchy(size=(40, dimension)).clip(-100, 100).astype(np.float32) + 1e-9, metric)
    search = decoder_of(table, precision)
    coder = search._coder
    queries = torch.from_numpy(rng.normal(size=(20, dimension)))
    lengths = queries.norm(dim=1)
    asked = coder.queries(queries, lengths)
    low = asked.low.double() * asked.unit[:, None]
    assert (low.norm(dim=1) <= asked.length * (1 + SLACK)).all()
    if isinstance(coder, IntegerCodes):
        exact = coder._turn(queries / lengths[:, None], torch.float64)
        assert ((low - exact).norm(dim=1) <= asked.lost).all()
        unit = (queries / lengths[:, None]).float()
        owner = torch.arange(20).repeat_interleave(40)
        score = nearest._products(unit, table.vectors, torch.full((20,), 40), torch.arange(40).repeat(20)).double()
        true = ((queries / lengths[:, None])[owner] * search.rows.true(torch.arange(40).repeat(20))).sum(dim=1)
        assert (score - true).abs().max() <= (dimension + 8) * 2.0**-23 + 1e-6
    for span in search._spans():
        rows = low_of(coder, span)
        true = (
            coder._true(coder.row(torch.arange(span.start, span.start + span.size)))
            if isinstance(coder, IntegerCodes)
            else search.rows.true(slice(span.start, span.start + span.size)) * coder._scale
        )
        assert true.norm(dim=1).max() <= span.row
        assert (true - rows[:, :dimension]).norm(dim=1).max() <= span.away
        if isinstance(coder, FloatCodes):
            assert rows.norm(dim=1).max() <= span.length


def low_of(coder: FloatCodes | IntegerCodes, span: RowRun) -> torch.Tensor:
    return span.low[: span.size].double() * span.unit


# ---- many candidates, large and small queries -----------------------------------------------------------


@WAYS
def test_candidates_are_scored_before_they_are_too_many(metric, precision, streamed, monkeypatch):
    """Equal rows everywhere: each of them is a candidate."""
    if streamed:
        in_small_runs(monkeypatch)
    monkeypatch.setattr(nearest, "KEPT_SHAPE", (112, 50))
    monkeypatch.setattr(nearest, "HELD", 500)
    most = 0
    better = Nearest._better

    def counted(self: Nearest, queries: torch.Tensor, best: nearest.Best, owner: torch.Tensor, *rest, **last):
        nonlocal most
        most = max(most, len(owner))
        return better(self, queries, best, owner, *rest, **last)

    monkeypatch.setattr(Nearest, "_better", counted)
    rows = np.repeat(adversarial(12, 16, 16), 100, axis=0)
    order = np.random.default_rng(17).permutation(len(rows))
    table = table_of(rows[order], metric)
    _, queries = noisy(table, 50, 40.0, 18)
    found = decoder_of(table, precision).search(queries)
    assert worse(table, queries, found) == 0
    vectors = table.vectors.numpy()
    assert all(not (vectors[:row] == vectors[row]).all(axis=1).any() for row in found)
    assert most <= 500 + 208 * 50


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-30, 1e30, 1e200, 1e307])
def test_only_the_direction_of_a_query_counts_where_rows_are_unit_vectors(size):
    table = table_of(adversarial(300, 12, 19), "chord")
    queries = torch.from_numpy(np.random.default_rng(20).normal(size=(200, 12)).clip(-9, 9)) * size
    # what is left of a query so small
    direction = queries / queries.abs().amax(dim=1, keepdim=True)
    for precision in KINDS_OF["chord"]:
        found = decoder_of(table, precision).search(queries)
        assert worse(table, direction, found) == 0


@pytest.mark.parametrize("size", [1e-8, 1e-3, 1e3, 1e8, 1e16, 1e30, 1e100])
def test_distances_to_queries_far_away_are_compared_exactly(size):
    rng = np.random.default_rng(21)
    centres = rng.normal(size=(20, 32))[rng.integers(20, size=800)]
    rows = (centres * (1 + 3e-6 * rng.normal(size=(800, 32)))).astype(np.float32)
    table = table_of(rows, "euclidean")
    queries = torch.from_numpy(rng.normal(size=(200, 32)) * size)
    wide = rows.astype(np.longdouble)
    expected = [(wide @ query - (wide * wide).sum(axis=1) / 2).argmax() for query in queries.numpy()]
    for precision in KINDS_OF["euclidean"]:
        np.testing.assert_array_equal(decoder_of(table, precision).search(queries), expected)


def test_queries_and_excluded_rows_must_have_the_right_shape():
    table = table_of(adversarial(50, 4, 22), "euclidean")
    with pytest.raises(InputError, match=r"queries must be \[n, 4\], got \[4\]"):
        table.nearest(torch.ones(4))
    with pytest.raises(InputError, match=r"got \[2, 5\]"):
        table.nearest(torch.ones(2, 5))
    with pytest.raises(InputError, match=r"exclude must be one row per query, \[2\], got \[1\]"):
        table.nearest(torch.ones(2, 4), exclude=np.array([1]))
    with pytest.raises(InputError, match="must be shorter than 1e150"):
        table.nearest(torch.full((2, 4), 1e200, dtype=torch.float64))
