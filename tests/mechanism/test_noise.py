"""What a unit of distance costs: closed forms, sharpness, and what is false in the papers."""

import numpy as np
import pytest
from scipy import integrate, optimize

from textveil.errors import ConfigError
from textveil.mechanism import (
    CoordinateLaplace,
    Layout,
    MultivariateLaplace,
    Perturb,
    VonMisesFisher,
    Window,
)
from textveil.mechanism.papers import d_chi_stencil, laplace, polar
from textveil.randomness.samplers import mean_resultant_length
from textveil.table.embedding import EmbeddingTable


def table_of(rows: np.ndarray, metric: str = "chord") -> EmbeddingTable:
    words = [f"w{i}" for i in range(len(rows))]
    return EmbeddingTable.build(name="test", words=words, vectors=rows, metric=metric)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def table() -> EmbeddingTable:
    return table_of(np.random.default_rng(5).normal(size=(60, 8)))


def half_plane(distance: float, eta: float) -> float:
    """Pr[noise component < distance] for planar noise of density proportional to exp(-eta |z|)."""

    def density(t: float) -> float:
        inner, _ = integrate.quad(lambda s: np.exp(-eta * np.hypot(t, s)), 0, np.inf)
        return 2 * inner * eta**2 / (2 * np.pi)

    below, _ = integrate.quad(density, 0, distance)
    return 0.5 + below


def test_theorem_1_for_the_cosine_distance_is_false() -> None:
    """Two unit words 0.1 rad apart, eta 20: the loss is 1.160, far above 2 eta CD = 0.200, below eta chord."""
    angle, eta = 0.1, 20.0
    right = half_plane(np.sin(angle / 2), eta)
    loss = np.log(right / (1 - right))
    chord = 2 * np.sin(angle / 2)
    assert loss == pytest.approx(1.160, abs=2e-3)
    assert 2 * eta * chord**2 / 2 == pytest.approx(0.200, abs=1e-3)
    assert loss <= eta * chord


def test_cosine_distance_zero_can_lose_much() -> None:
    """Raw x and 2x or 3x have cosine distance 0; eta 3, two opposite words: the loss is 2.75 or 5.59."""

    def wrong(length: float) -> float:
        return 1 - half_plane(length, 3.0)

    assert np.log(wrong(1.0) / wrong(2.0)) == pytest.approx(2.75, abs=1e-2)
    assert np.log(wrong(1.0) / wrong(3.0)) == pytest.approx(5.59, abs=1e-2)


def test_noise_is_sharp_at_the_vectors_with_unequal_budgets() -> None:
    """With z_i on the ray from r'_i through r_i the log density ratio equals eps_j d exactly."""
    window, layout = Window(L=5, sigma=1.25), Layout.build(12)
    mixing = window.get_matrix(layout)
    eta = np.random.default_rng(1).uniform(1, 9, 12)
    dense = np.zeros((12, 12))
    for i in range(12):
        np.add.at(dense[i], mixing.columns[i], mixing.weights[i])
    rows = np.random.default_rng(2).normal(size=(12, 8))
    for j in range(12):
        other = rows.copy()
        other[j] += np.random.default_rng(j).normal(size=8)
        r, r_other = dense @ rows, dense @ other
        z = r + 3.0 * (r - r_other)
        loss = (eta * (np.linalg.norm(z - r_other, axis=1) - np.linalg.norm(z - r, axis=1))).sum()
        assert loss == pytest.approx(
            mixing.spend(eta)[j] * np.linalg.norm(rows[j] - other[j]), rel=1e-9
        )


def test_von_mises_fisher_is_sharp_for_the_chord(table: EmbeddingTable) -> None:
    rows = table.vectors.astype(np.float64)
    kappa = float(VonMisesFisher().compute_rate(table, np.array([40.0]), mixed=False)[0])
    for i, j in [(0, 1), (3, 30), (7, 59)]:
        gap = rows[i] - rows[j]
        y = gap / np.linalg.norm(gap)
        assert 40.0 * gap @ y == pytest.approx(kappa * np.linalg.norm(gap), rel=1e-6)


def log_normalizer_slope(kappa: float, d: int) -> float:
    return float(mean_resultant_length(d, np.array([kappa]))[0])


@pytest.mark.slow
def test_a_window_under_von_mises_fisher_costs_at_most_the_claimed_rate() -> None:
    """Worst loss over centres in the unit disc, found by search, against kappa (1 + A_d(kappa))."""
    d, kappa = 8, 6.0
    claimed = kappa * (1 + log_normalizer_slope(kappa, d))

    def log_c(length: float) -> float:
        # -ln C_d(kappa |r|) up to a constant is the integral of A_d.
        value, _ = integrate.quad(lambda t: log_normalizer_slope(t, d), 0, kappa * length)
        return value

    def loss_rate(ends: np.ndarray) -> float:
        a, b = np.clip(ends, -1, 1)
        return -(kappa * abs(a - b) + log_c(abs(b)) - log_c(abs(a))) / max(abs(a - b), 1e-6)

    found = optimize.minimize(
        loss_rate, np.array([0.2, 0.9]), method="Nelder-Mead", options={"maxiter": 200}
    )
    worst = -found.fun
    assert worst <= claimed * (1 + 1e-6)
    assert worst > kappa * 1.05  # so kappa alone would be a false claim for mixed centres
    assert worst > 0.9 * claimed


@pytest.mark.parametrize(
    "noise",
    [
        MultivariateLaplace(),
        CoordinateLaplace(),
        CoordinateLaplace(calibration="paper"),
        VonMisesFisher(),
    ],
)
@pytest.mark.parametrize("mixed", [False, True])
def test_rate_and_parameter_are_inverse(
    noise: MultivariateLaplace, mixed: bool, table: EmbeddingTable
) -> None:
    rate = np.geomspace(1e-3, 1e4, 40)
    parameter = noise.compute_parameter(table, rate, mixed=mixed)
    again = noise.compute_rate(table, parameter, mixed=mixed)
    assert again == pytest.approx(rate, rel=1e-9)
    assert (again <= rate * (1 + 1e-12)).all()


def test_laplace_calibrations_spend_what_they_say(table: EmbeddingTable) -> None:
    rows = table.vectors.astype(np.float64)
    longest = np.abs(rows[:, None] - rows[None]).sum(axis=2).max()
    ranges = (rows.max(axis=0) - rows.min(axis=0)).sum()
    layout = Layout.build(1)
    honest, paper = laplace(nominal=10.0), laplace(nominal=10.0, calibration="paper")
    for mechanism, local_dp in [(honest, 10.0), (paper, 10.0 * longest / ranges)]:
        parameter = mechanism.parameters(table, layout)
        assert parameter is not None
        spent = mechanism.spend(table, layout, parameter)[0] * mechanism.claim(table).diameter
        assert spent == pytest.approx(local_dp, rel=1e-5)
    assert longest / ranges < 1


def test_polar_needs_unit_rows_and_says_what_the_radius_costs(table: EmbeddingTable) -> None:
    with pytest.raises(ConfigError, match="unit rows"):
        polar(kappa=5.0).claim(table_of(np.random.default_rng(3).normal(size=(9, 4)), "euclidean"))
    claim = polar(kappa=5.0, radius=2.0).claim(table)
    assert claim.additive == 2.0
    assert any("cannot change the released word" in caveat for caveat in claim.caveats)
    with pytest.raises(ConfigError, match="radius"):
        Perturb(name="p", mix=Window(L=3), noise=VonMisesFisher(kappa=1.0, radius=1.0)).claim(table)


def test_a_projection_keeps_eta_and_a_renormalised_one_is_charged(table: EmbeddingTable) -> None:
    layout = Layout.build(4)
    plain = d_chi_stencil(eta=7.0, L=1, project=3)
    assert plain.spend(table, layout, np.full(4, 7.0)) == pytest.approx(7.0)
    assert plain.claim(table).diameter <= table.diameter
    charged = polar(kappa=7.0, project=3)
    factor = table.project(3, renormalize=True).lipschitz
    assert factor > 1
    assert charged.spend(table, layout, np.full(4, 7.0)) == pytest.approx(7.0 * factor)
    with pytest.raises(ConfigError, match="l1"):
        d_chi_stencil(noise="coordinate-laplace", project=3).claim(table)


def test_polar_offers_both_conventions_of_kappa(table: EmbeddingTable) -> None:
    layout = Layout.build(1)
    paper, code = (
        polar(kappa=50.0).parameters(table, layout),
        polar(kappa=50.0, convention="code").parameters(table, layout),
    )
    assert paper is not None
    assert code is not None
    assert paper[0] == 50.0
    assert code[0] == pytest.approx(50.0 / np.pi)
