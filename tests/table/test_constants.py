"""Constants of a table, checked against brute force in float64.

In: small random and adversarial tables; slice S in the slow test. Out: exactness, safe sides, failing twins.
Not here: which statement uses which constant (tests of mechanism/ and guarantee/).
"""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from textveil.errors import BudgetError, ConfigError, TableError
from textveil.randomness import Values
from textveil.table import constants, minilm
from textveil.table.constants import MAX_EXPONENT, CalibrationCurve, TableConstants
from textveil.table.embedding import EmbeddingTable, load_table


def unit(rows: Values) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def spread(seed: int = 0, rows: int = 150, dimension: int = 12) -> np.ndarray:
    return unit(np.random.default_rng(seed).normal(size=(rows, dimension)))


def clusters(seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(6, 10))
    return unit(np.concatenate([c + generator.normal(scale=0.15, size=(20, 10)) for c in centres]))


def lopsided(seed: int = 2) -> np.ndarray:
    """A crowd and a few lonely rows: the normalisers differ as much as they can."""
    generator = np.random.default_rng(seed)
    crowd = np.array([1.0, 0, 0, 0, 0, 0]) + generator.normal(scale=0.2, size=(180, 6))
    return unit(np.concatenate([crowd, generator.normal(size=(9, 6))]))


def repeated(seed: int = 3) -> np.ndarray:
    """Exact duplicates, one of them three times."""
    rows = spread(seed, 60, 8)
    return np.concatenate([rows, rows[:5], rows[2:3]])


def close(seed: int = 4) -> np.ndarray:
    """Pairs so near that a float32 Gram matrix cannot tell them apart, far from the origin."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(40, 7)) + 30
    return np.concatenate([rows, rows[:4] + 1e-4]).astype(np.float32)


def raw(seed: int = 5) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return (generator.normal(size=(130, 9)) * generator.gamma(2, 4, size=(130, 1))).astype(
        np.float32
    )


TABLES: list[Callable[[], np.ndarray]] = [spread, clusters, lopsided, repeated, close, raw]
every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks per table, the last one ragged."""
    monkeypatch.setattr(constants, "_BLOCK_ROWS", 37)


def differences(rows: np.ndarray) -> Values:
    x = rows.astype(np.float64)
    return np.asarray(x[:, None] - x[None])


def distances(rows: np.ndarray) -> Values:
    return np.asarray(np.sqrt((differences(rows) ** 2).sum(-1)))


def exact(rows: np.ndarray, c: float, cap: float = math.inf) -> float:
    """K(c) by its definition: the largest log-ratio of two inputs over any output, per unit distance."""
    d = np.minimum(distances(rows), cap)
    law = -c * d - np.log(np.exp(-c * d).sum(1))[:, None]
    ratio = (law[:, None, :] - law[None, :, :]).max(-1)
    return float((ratio[d > 0] / d[d > 0]).max())


def shortcut(rows: np.ndarray, c: Values) -> Values:
    """K(c) with the cap, by normalisers; equal to `exact` (tested) and fast enough for 200 values of c."""
    d, found = distances(rows), []
    apart = d > 0
    for value in c:
        capped = np.minimum(d, MAX_EXPONENT / value)
        z = np.log(np.exp(-value * capped).sum(1))
        found.append(value + ((z[:, None] - z)[apart] / capped[apart]).max())
    return np.array(found)


@every_table
def test_distances(table: Callable[[], np.ndarray]) -> None:
    rows, d = table(), distances(table())
    l1 = np.abs(differences(rows)).sum(-1)
    assert d.max() <= constants.compute_diameter(rows) <= d.max() * (1 + 1e-6)
    assert constants.compute_diameter_bound(rows) >= d.max()
    assert constants.compute_diameter_bound(rows) <= 1.6 * d.max()
    assert d[d > 0].min() >= constants.compute_minimum_distance(rows) >= d[d > 0].min() * (1 - 1e-6)
    assert constants.compute_l1_diameter(rows) == pytest.approx(l1.max(), rel=1e-12)
    x = rows.astype(np.float64)
    assert constants.compute_coordinate_range(rows) == pytest.approx(
        np.ptp(x, axis=0).sum(), rel=1e-12
    )
    assert constants.count_duplicates(rows) == len(x) - len(np.unique(x, axis=0))


def test_duplicates_are_counted_and_left_out() -> None:
    assert constants.count_duplicates(repeated()) == 6
    assert constants.compute_minimum_distance(repeated()) > 0.1


def test_l1_diameter_is_not_the_pair_of_the_euclidean_one() -> None:
    rows = np.array([[0.0] * 16, [3.5] + [0.0] * 15, [0.8] * 16, [-3.5] + [0.0] * 15])
    assert constants.compute_diameter(rows) == pytest.approx(7.0)  # rows 1, 3
    assert constants.compute_l1_diameter(rows) == pytest.approx(4.3 + 15 * 0.8)  # rows 2, 3


@pytest.mark.parametrize("seed", range(20))
def test_l1_diameter_with_heavy_rows(seed: int) -> None:
    rows = np.random.default_rng(seed).standard_t(2, size=(90, 5)).astype(np.float32)
    assert constants.compute_l1_diameter(rows) == pytest.approx(
        np.abs(differences(rows)).sum(-1).max(), rel=1e-12
    )


@pytest.mark.parametrize("table", [spread, clusters, close], ids=lambda table: table.__name__)
def test_projection_factor(table: Callable[[], np.ndarray]) -> None:
    rows = table()
    bent = unit(rows[:, :3])
    d = distances(rows)
    truth = (distances(bent)[d > 0] / d[d > 0]).max()
    assert truth <= constants.compute_projection_factor(rows, bent) <= truth * (1 + 1e-5)
    assert constants.compute_projection_factor(rows, rows[:, :3]) <= 1 + 1e-5


def test_projection_that_parts_equal_rows_is_infinite() -> None:
    rows = repeated()
    bent = rows.copy()
    assert constants.compute_projection_factor(rows, bent) == pytest.approx(1, abs=1e-5)
    bent[-1] += 0.01
    assert constants.compute_projection_factor(rows, bent) == math.inf
    with pytest.raises(TableError, match="same rows"):
        constants.compute_projection_factor(rows, bent[:-1])


@every_table
def test_exponential_constant(table: Callable[[], np.ndarray]) -> None:
    rows = table()[:70]
    diameter = constants.compute_diameter(rows)
    for u in (0.3, 2.0, 8.0, 15.0):
        c = u / diameter
        assert constants.compute_exponential_constant(rows, c) == pytest.approx(
            exact(rows, c), rel=1e-6
        )
        cap = 0.6 * diameter
        assert constants.compute_exponential_constant(rows, c, cap) == pytest.approx(
            exact(rows, c, cap), rel=1e-6
        )
        assert exact(rows, c) <= 2 * c * (1 + 1e-9)
    several = constants.compute_exponential_constants(rows, [1.0, 2.5], [0.7, 0.4])
    assert several.tolist() == [
        constants.compute_exponential_constant(rows, 1.0, 0.7),
        constants.compute_exponential_constant(rows, 2.5, 0.4),
    ]
    assert shortcut(rows, np.array([3.0]))[0] == pytest.approx(
        exact(rows, 3.0, MAX_EXPONENT / 3), rel=1e-9
    )


def some(rows: np.ndarray, count: int = 200) -> Values:
    """Values of c over the whole curve, the capped part and beyond it."""
    diameter = constants.compute_diameter(rows)
    generator = np.random.default_rng(8)
    return np.asarray(
        np.concatenate(
            [generator.uniform(0.2, 20, count - 50), np.exp(generator.uniform(2.5, 8, 50))]
        )
        / diameter
    )


@every_table
def test_curve_bounds_the_constant(table: Callable[[], np.ndarray]) -> None:
    rows = table()
    curve, c = constants.compute_curve(rows), some(rows)
    truth = shortcut(rows, c)
    bound = curve.constant(c)
    assert (bound >= truth).all()
    assert (bound <= 2 * c).all()
    slack = (bound / truth - 1).max()
    assert slack <= (0.005 if table is not close else 1.0), (
        slack
    )  # never wrong, but loose on near-duplicates


def test_twins_without_the_gap_or_with_too_few_pairs_are_caught() -> None:
    rows = lopsided()
    c = np.linspace(0.3, MAX_EXPONENT / constants.compute_diameter(rows), 200)
    truth = shortcut(rows, c)
    assert (constants.compute_curve(rows, steps=12).constant(c) >= truth).all()

    knots = np.linspace(0, MAX_EXPONENT / constants.compute_diameter(rows) + 0.1, 12)
    at_knots = [0.0, *(shortcut(rows, knots[1:]) - knots[1:]).tolist()]
    interpolated = CalibrationCurve(knots=tuple(knots.tolist()), excess=tuple(at_knots), tail=1.0)
    assert (interpolated.constant(c) < truth - 1e-4).any()

    fewer = constants.compute_exponential_constants(
        rows[:100], c.tolist()
    )  # the pairs of a part of the table
    assert (fewer < truth - 1e-4).any()


@every_table
def test_solve_inverts_constant(table: Callable[[], np.ndarray]) -> None:
    curve = constants.compute_curve(table(), steps=60)
    scale = constants.compute_diameter(table())
    epsilon = (
        np.concatenate(
            [np.linspace(0.01, 40, 500), np.exp(np.random.default_rng(9).uniform(-5, 9, 500))]
        )
        / scale
    )
    c = curve.solve(epsilon)
    assert (curve.constant(c) <= epsilon).all()
    assert (c >= epsilon / 2).all()
    assert curve.constant(c)[:500] == pytest.approx(epsilon[:500], rel=1e-9)
    assert isinstance(curve.solve(3.0), float)
    assert curve.solve(3.0) == curve.solve(np.array([3.0]))[0]
    assert curve.solve(epsilon.reshape(20, 50)).shape == (20, 50)
    assert (curve.constant(c * (1 + 1e-6)) > epsilon).all()  # nothing a little larger would do


def test_solve_where_the_curve_falls_and_jumps() -> None:
    curve = CalibrationCurve(
        knots=(0.0, 1.0, 2.0, 3.0), excess=(0.0, 0.9, 0.0, 0.5), tail=0.9
    )  # 1.9, 2.0, 3.5 | 5.7
    assert curve.solve(2.0) == pytest.approx(2.0)
    assert curve.solve(1.95) == pytest.approx(1.5)
    assert curve.solve(4.0) == pytest.approx(3.0)
    assert curve.solve(5.7) == pytest.approx(3.0)
    assert curve.solve(9.5) == pytest.approx(5.0)
    assert curve.constant(0.1) == pytest.approx(0.19)
    with pytest.raises(BudgetError, match="positive and finite"):
        curve.solve(math.nan)
    with pytest.raises(BudgetError, match="positive and finite"):
        curve.constant(np.array([1.0, 0.0]))
    with pytest.raises(ConfigError, match="rising from 0"):
        CalibrationCurve(knots=(0.0, 2.0, 1.0), excess=(0.0, 0.0, 0.0), tail=0.0)


@every_table
def test_json_is_on_the_safe_side(table: Callable[[], np.ndarray]) -> None:
    rows = table()
    before = constants.compute(rows, "euclidean")
    text = json.dumps(before.to_json(), sort_keys=True)
    after = TableConstants.from_json(json.loads(text))
    assert json.dumps(after.to_json(), sort_keys=True) == text
    assert (after.words, after.dimension, after.metric) == (*rows.shape, "euclidean")
    assert after.duplicates == constants.count_duplicates(rows)
    assert before.minimum_distance is not None
    assert after.minimum_distance is not None
    assert before.minimum_distance * (1 - 1e-8) <= after.minimum_distance <= before.minimum_distance
    for name in ("diameter", "l1_diameter", "coordinate_range"):
        assert getattr(before, name) <= getattr(after, name) <= getattr(before, name) * (1 + 1e-8)
    assert before.curve is not None
    assert after.curve is not None
    c = some(rows, 100)
    assert (after.curve.constant(c) >= before.curve.constant(c)).all()
    assert after.curve.constant(c) == pytest.approx(before.curve.constant(c), rel=1e-8)


def test_without_curve() -> None:
    plain = constants.compute(spread(), "chord", curve=False)
    assert plain.curve is None
    assert TableConstants.from_json(plain.to_json()).curve is None


def fits(own, rows):
    return own.can_belong(*rows.shape, constants.compute_coordinate_range(rows))


def test_constants_fit_their_own_table_only() -> None:
    own = TableConstants.from_json(constants.compute(spread(), "chord", curve=False).to_json())
    assert fits(own, spread())
    assert fits(own, spread()[np.arange(149, -1, -1)])  # the order of rows does not matter
    assert not fits(own, spread(seed=17))
    assert not fits(own, spread()[:-1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"diameter": 0.0},
        {"diameter": -1.0},
        {"diameter": math.nan},
        {"diameter": 2.1, "l1_diameter": 3.0},
        {"diameter": 0.01},
        {"l1_diameter": 0.5},
        {"l1_diameter": math.nan},
        {"coordinate_range": 1.0},
        {"coordinate_range": math.inf},
        {"minimum_distance": 2.0},
        {"minimum_distance": 0.0},
        {"minimum_distance": None},
        {"duplicates": -1},
        {"duplicates": 150},
        {"duplicates": None},
        {"words": 1},
    ],
)
def test_constants_that_contradict_each_other(wrong) -> None:
    own = constants.compute(spread(), "chord", curve=False)
    with pytest.raises(TableError, match="these constants contradict each other"):
        replace(own, **wrong)
    with pytest.raises(ConfigError, match="knots rising"):
        CalibrationCurve(knots=(0.0, math.inf), excess=(0.0, 0.0), tail=0.0)


def test_rows_at_opposite_ends_and_rows_on_a_line() -> None:
    """Where bounds meet, rounding must not make constants look wrong."""
    for rows in (np.array([[1.0, 0], [-1, 0]]), np.array([[1.0, 1], [-1, -1]]) / 2**0.5):
        for metric in ("chord", "euclidean"):
            assert constants.compute(rows, metric).diameter == pytest.approx(2, rel=1e-5)
            found = constants.compute_bounds(partial(list, [rows]), metric)
            assert TableConstants.from_json(found.to_json()).diameter == pytest.approx(2, rel=1e-5)
    line = np.arange(9.0)[:, None] ** 2
    found = constants.compute_bounds(lambda: [line], "euclidean")
    assert 64 <= found.diameter <= 64.001


def test_outward_rounding() -> None:
    for value in [
        *np.exp(np.random.default_rng(7).uniform(-30, 30, 2000)).tolist(),
        0.0,
        1.0,
        123456789.0,
    ]:
        up, down = (
            constants._round_outward(value, up=True),
            constants._round_outward(value, up=False),
        )
        assert down <= value <= up
        assert up - down <= 2.1e-8 * value


def test_progress_counts_blocks() -> None:
    seen: list[tuple[int, int]] = []
    constants.compute_diameter(spread(), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i + 1, 15) for i in range(15)]


def test_tables_that_have_no_constants() -> None:
    for rows in (np.zeros(5), np.zeros((1, 5)), np.array([[0.0, math.nan], [1.0, 2.0]])):
        with pytest.raises(TableError, match="at least two finite rows"):
            constants.compute_diameter(rows)
    with pytest.raises(TableError, match="two different rows"):
        constants.compute_minimum_distance(np.ones((4, 3)))
    with pytest.raises(TableError, match="two different rows"):
        constants.compute_l1_diameter(np.ones((4, 3)))
    with pytest.raises(TableError, match="two different rows"):
        constants.compute_bounds(lambda: [np.ones((2, 3)), np.ones((2, 3))], "euclidean")
    with pytest.raises(BudgetError, match="positive"):
        constants.compute_exponential_constant(spread(), -1.0)


def test_stored() -> None:
    assert constants.load_stored("no-such-table", "chord") is None
    assert constants.load_stored("../../pyproject", "chord") is None
    for name, words in (("minilm-s", 21719), ("minilm", 22580), ("minilm-wordpiece", 29523)):
        chord, raw_rows = (
            constants.load_stored(name, "chord"),
            constants.load_stored(name, "euclidean"),
        )
        assert chord is not None
        assert raw_rows is not None
        assert (chord.words, raw_rows.words, chord.dimension, chord.metric) == (
            words,
            words,
            384,
            "chord",
        )
        assert chord.diameter <= 2
        assert chord.curve is not None
    oracle = constants.load_stored("minilm-s", "euclidean")
    assert oracle is not None
    assert oracle.coordinate_range == pytest.approx(190.85, abs=0.01)
    assert oracle.l1_diameter == pytest.approx(36.98, abs=0.01)
    assert oracle.l1_diameter / oracle.coordinate_range == pytest.approx(0.194, abs=0.0005)


def slice_s() -> np.ndarray:
    safetensors = pytest.importorskip("safetensors.numpy")
    folder = minilm.locate()
    vectors = safetensors.load_file(folder / "model.safetensors")[
        "embeddings.word_embeddings.weight"
    ]
    vocabulary = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    kept = [
        row
        for word, row in vocabulary.items()
        if word.isascii() and word.isalpha() and len(word) > 1
    ]
    return unit(vectors[sorted(kept)].astype(np.float64))


@pytest.mark.slow
def test_oracles_on_slice_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "_BLOCK_ROWS", 512)
    rows, held = slice_s(), constants.load_stored("minilm-s", "chord")
    assert held is not None
    assert held.curve is not None
    assert len(rows) == held.words == 21719
    widest = constants.compute_diameter(rows)
    assert widest == pytest.approx(1.651, abs=0.0005)
    assert widest <= held.diameter <= widest * (1 + 1e-5)

    c = [3.0, 5.0, 6.0, 8.0, 10.0]
    truth = constants.compute_exponential_constants(rows, c)
    assert truth == pytest.approx([3.101, 5.168, 6.180, 8.073, 10.011], abs=0.001)
    bound = held.curve.constant(np.array(c))
    assert (bound >= truth).all()
    assert (bound <= 1.005 * truth).all()  # 0.4% near c = 7, where the curve bends most


@pytest.mark.parametrize("name", ["minilm", "minilm-s"])
@pytest.mark.parametrize("k", [20, 100])
def test_the_kth_rows_that_ship_are_those_of_the_table(name: str, k: int) -> None:
    table = load_table(name)
    found = table.find_kth(k)
    some = np.linspace(0, len(table) - 1, 60).astype(np.int64)
    there, expected = found[some], table.pairs.find_nearest(some, k)[:, -1]
    assert len(found) == len(table)
    # on another machine two rows that are as far but for rounding may have changed places
    assert np.allclose(
        table.pairs.compute_distances(some, there),
        table.pairs.compute_distances(some, expected),
        rtol=1e-6,
    )
    assert (there == expected).mean() > 0.9


def test_other_tables_and_other_k_are_compared_row_by_row() -> None:
    table = EmbeddingTable.build(
        name="minilm", words=[f"w{i}" for i in range(50)], vectors=spread(rows=50)
    )
    assert table.find_kth(20).tolist() == table.neighbours(np.arange(50), 20)[:, -1].tolist()
    assert table.find_kth(1).tolist() == list(range(50))
    assert constants.load_kth("minilm-chord", 7) is None
