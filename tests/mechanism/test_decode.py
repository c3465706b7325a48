"""Decoding raw rows by cosine: post-processing of noise in the table's own distance."""

from typing import Any

import numpy as np
import pytest

from textveil.errors import ConfigError
from textveil.evaluate.attack.channel import estimate_lines
from textveil.mechanism import Block, Layout
from textveil.mechanism.papers import d_chi_stencil, laplace, noise, stencil
from textveil.pipeline import Privatizer
from textveil.randomness import SeededRandomness
from textveil.table import EmbeddingTable

LENGTHS = np.random.default_rng(3).uniform(0.3, 3, (30, 1))
ROWS = (np.random.default_rng(2).normal(size=(30, 6)) * LENGTHS).astype(np.float32)
WORDS = [f"{a}{b}rak" for a in ("bal", "dor", "fen", "gim", "kus", "lot") for b in "aeiou"]
RAW = EmbeddingTable.build(name="raw", words=WORDS, vectors=ROWS, metric="euclidean")
UNIT = EmbeddingTable.build(name="unit", words=WORDS, vectors=ROWS)


def test_the_nearest_row_is_that_of_the_largest_cosine() -> None:
    queries = np.random.default_rng(4).normal(size=(500, 6))
    cosines = queries @ (ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)).T
    view = RAW.decode_by_cosine()
    assert (view.nearest(queries) == cosines.argmax(axis=1)).all()
    assert (
        RAW.nearest(queries) != view.nearest(queries)
    ).mean() > 0.2  # else the test says nothing
    cosines[:, 7] = -2
    assert (view.nearest(queries, exclude=np.full(500, 7)) == cosines.argmax(axis=1)).all()
    assert (view.take(slice(None)) == ROWS).all()
    assert UNIT.decode_by_cosine() is UNIT


@pytest.mark.parametrize("make", [noise, laplace, d_chi_stencil])
def test_the_claim_is_that_of_the_noise(make: Any) -> None:
    by_cosine, by_metric = make(decode="cosine").claim(RAW), make().claim(RAW)
    assert (by_cosine.kind, by_cosine.metric, by_cosine.diameter) == (
        by_metric.kind,
        by_metric.metric,
        by_metric.diameter,
    )
    assert "the nearest by cosine to the noisy vector" in by_cosine.caveats[-1]
    assert by_cosine.options["decode"] == "cosine"
    assert "decode" not in by_metric.options  # seeded draws of older releases stay what they were
    assert make(decode="cosine").claim(UNIT).caveats == make().claim(UNIT).caveats


def test_the_mean_of_a_window_is_decoded_by_cosine() -> None:
    layout, rows = Layout.build(3), np.array([0, 1, 2])
    block, rng = Block(layout=layout, rows=rows), SeededRandomness(1)
    released = stencil(L=3, decode="cosine").privatize(RAW, block, np.full(3, np.nan), rng=rng)
    assert released.shape == (3,)


def test_a_table_with_a_row_of_no_direction_is_refused() -> None:
    rows = ROWS.copy()
    rows[3] = 0
    table = EmbeddingTable.build(name="zero", words=WORDS, vectors=rows, metric="euclidean")
    with pytest.raises(ConfigError, match="a row of the table is zero"):
        Privatizer("noise", epsilon=3, table=table, decode="cosine")


def test_the_channel_of_the_attack_is_that_of_the_draws() -> None:
    """What a release tells of a word, estimated and counted; decoding by distance is far off."""
    eta, many = 2.0, 4_000
    mechanism = noise(decode="cosine")
    rows = np.repeat(np.arange(len(RAW)), many)
    block = Block(layout=Layout.build(len(rows)), rows=rows)
    drawn = mechanism.privatize(RAW, block, np.full(len(rows), eta), rng=SeededRandomness(1))
    counts = np.zeros((len(RAW), len(RAW)))
    np.add.at(counts, (drawn, rows), 1)

    def measure_error(made: Any) -> float:
        lines = estimate_lines(
            made, RAW, np.arange(len(RAW)), eta, draws=4_000, rng=SeededRandomness(2)
        )
        estimate, counted = np.exp(lines), counts / counts.sum(axis=1, keepdims=True)
        estimate /= estimate.sum(axis=1, keepdims=True)
        return float(np.average(np.abs(estimate - counted).sum(axis=1) / 2, weights=counts.sum(1)))

    assert measure_error(mechanism) < 0.04
    assert measure_error(noise()) > 0.1
