"""What the mechanisms do on the real default table: oracles that small tables cannot show. Seeded, so repeatable."""

from importlib.resources import files

import numpy as np
import pytest

from textveil.mechanism import Block, Layout, Perturb
from textveil.mechanism.papers import laplace, noise, polar, stencil
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable, load_table
from textveil.text.public import is_public
from textveil.text.tokens import tokenize


@pytest.fixture(scope="module")
def table() -> EmbeddingTable:
    return load_table("minilm-s")


@pytest.fixture(scope="module")
def letter(table: EmbeddingTable) -> Block:
    text = (files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8")
    rows, _ = table.lookup([word for word in tokenize([text]).words if not is_public(word)])
    return Block(layout=Layout.build(len(rows)), rows=rows)


def kept(mechanism: Perturb, table: EmbeddingTable, block: Block) -> float:
    parameter = mechanism.parameters(table, block.layout)
    assert parameter is not None
    released = mechanism.privatize(table, block, parameter, rng=SeededRandomness(1))
    return float((released == block.rows).mean())


@pytest.mark.parametrize(
    ("L", "sigma", "low", "high"),
    [(5, 1.25, 0.95, 1.0), (5, 0.75, 0.95, 1.0), (4, 0.75, 0.4, 0.65)],
)
def test_stencil_keeps_nearly_all_with_odd_windows_and_about_half_with_even(
    L: int, sigma: float, low: float, high: float, table: EmbeddingTable, letter: Block
) -> None:
    """The tie of the word and its neighbour is the ceiling of even windows."""
    assert low <= kept(stencil(L=L, sigma=sigma), table, letter) <= high
    assert kept(stencil(L=L, sigma=sigma, exclude_original=True), table, letter) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "low", "high"),
    [(noise(eta=60.0), 0.10, 0.25), (noise(eta=80.0), 0.40, 0.60), (polar(kappa=60.0), 0.10, 0.25)],
)
def test_noise_and_polar_keep_what_they_are_known_to_keep(
    mechanism: Perturb, low: float, high: float, table: EmbeddingTable
) -> None:
    rows = np.arange(0, len(table), 11)
    block = Block(layout=Layout.build(*[1] * len(rows)), rows=rows)
    assert low <= kept(mechanism, table, block) <= high


@pytest.mark.slow
def test_a_public_projection_keeps_more_at_the_same_eta(table: EmbeddingTable) -> None:
    """Fewer dimensions, less noise, the same constant for the original distance."""
    rows = np.arange(0, len(table), 11)
    block = Block(layout=Layout.build(*[1] * len(rows)), rows=rows)
    whole, projected = noise(eta=30.0), noise(eta=30.0, project=32)
    assert kept(projected, table, block) > 3 * kept(whole, table, block)
    assert projected.claim(table).diameter <= whole.claim(table).diameter


def test_the_laplace_baseline_spends_a_fifth_of_what_it_says() -> None:
    """D_1 and Delta_1 of the raw rows: the papers' calibration really spends 0.194 of its nominal epsilon."""
    raw = load_table("minilm-s", metric="euclidean")
    assert raw.l1_diameter == pytest.approx(36.98, abs=0.01)
    assert raw.coordinate_range == pytest.approx(190.85, abs=0.01)
    mechanism = laplace(nominal=250.0, calibration="paper")
    layout = Layout.build(1)
    parameter = mechanism.parameters(raw, layout)
    assert parameter is not None
    spent = mechanism.spend(raw, layout, parameter)[0] * mechanism.claim(raw).diameter
    assert spent / 250.0 == pytest.approx(0.194, abs=0.001)


@pytest.mark.slow
def test_renormalising_a_projection_of_the_real_table_costs_its_factor(
    table: EmbeddingTable,
) -> None:
    assert table.project(32, renormalize=True).lipschitz == pytest.approx(1.54, abs=0.01)
