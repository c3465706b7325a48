"""Products of integers: exact in every form, and not trusted where they are not."""

import numpy as np
import pytest

from textveil.table import int8
from textveil.table.int8 import GROUP, IntegerQueries, IntegerRows, build_quantizer, widen


def integers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-127, 128, size=shape).astype(np.int8)


@pytest.mark.parametrize(("size", "dimension"), [(1, 1), (31, 3), (64, 48), (100, 384), (2011, 17)])
@pytest.mark.parametrize("count", [0, 1, 5, 64])
def test_products_are_exact_in_every_form(size, dimension, count):
    rows, queries = integers(size, dimension), integers(count, dimension, seed=1)
    rows[:: max(1, size // 3)] = 127
    queries[::2] = -127
    true = queries.astype(np.int64) @ rows.astype(np.int64).T
    np.testing.assert_array_equal(IntegerRows(rows).multiply(queries), true)
    products, highest = IntegerRows(rows, grouped=True).maxima(queries)
    np.testing.assert_array_equal(products[:, :size], true)
    assert (products[:, size:] == 0).all()
    np.testing.assert_array_equal(
        highest, products.reshape(count, products.shape[1] // GROUP, GROUP).max(axis=2)
    )
    factor, added = (
        np.random.default_rng(seed).normal(size=size).astype(np.float32) for seed in (2, 3)
    )
    scaled = IntegerRows(rows, scale=(factor, added)).multiply_scaled(queries)
    size_of = np.abs(true * factor.astype(np.float64)) + np.abs(added)
    assert (
        np.abs(scaled - (true * factor.astype(np.float64) + added)) <= 3 * 2.0**-24 * size_of
    ).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize(("groups", "dimension"), [(1, 1), (2, 48), (5, 384), (32, 17)])
@pytest.mark.parametrize("count", [1, 5, 64])
def test_rows_become_integers_on_the_way(kind, groups, dimension, count):
    rng = np.random.default_rng(3)
    unit = rng.uniform(0.01, 2, size=groups).astype(np.float32)
    rows = (
        127 * np.repeat(unit, GROUP)[:, None] * rng.uniform(-1, 1, size=(groups * GROUP, dimension))
    ).astype(kind)
    rows[::3] = np.sign(rows[::3]) * 127 * np.repeat(unit, GROUP)[::3, None]
    whole = build_quantizer(dimension, rows.dtype)(rows, unit)
    exact = rows.astype(np.float64) / np.repeat(unit, GROUP)[:, None]
    np.testing.assert_array_equal(whole, np.rint(exact.astype(np.float32)).clip(-128, 127))
    queries = integers(count, dimension, seed=1)
    queries[::2] = -127
    products, highest = IntegerQueries(queries, rows.dtype).maxima(rows, unit)
    true = queries.astype(np.int64) @ whole.astype(np.int64).T
    np.testing.assert_array_equal(products, true.reshape(count, groups, GROUP))
    np.testing.assert_array_equal(highest, products.max(axis=2))


def test_every_finite_number_of_float16_is_widened_exactly():
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    rows = every[np.isfinite(every)].reshape(-1, 32)
    np.testing.assert_array_equal(widen(rows), rows.astype(np.float32))
    assert widen(rows).dtype == np.float32


def test_products_that_are_cut_off_are_noticed(monkeypatch):
    products = IntegerRows.multiply

    def cut(self: IntegerRows, queries: np.ndarray) -> np.ndarray:
        return np.clip(products(self, queries), -(2**15), 2**15 - 1)

    monkeypatch.setattr(IntegerRows, "multiply", cut)
    assert not int8.is_exact.__wrapped__()
