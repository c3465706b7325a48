"""Mechanisms that the field compares with: their laws are those of the papers, their claims are true.

Every claim has a broken twin that the same check catches.
"""

from typing import Any

import numpy as np
import pytest
from tests.contract import plane
from tests.contract.test_mechanisms import (
    ALARM,
    PLANE,
    TABLE,
    block_of,
    chi_square,
    losses,
    table_of,
    violation,
)

from textveil.errors import ConfigError, ModelError, UnknownName
from textveil.mechanism import Block, Layout, Perturb
from textveil.mechanism.papers import diffractor, dp_mlm, mahalanobis, noise, tem, vickrey
from textveil.mechanism.token_draw import TokenDraw, find_temperature
from textveil.mechanism.vickrey import Vickrey
from textveil.randomness.streams import SeededRandomness, SystemRandomness
from textveil.table.embedding import EmbeddingTable, load_table

ALL = block_of(*[[row] for row in range(50)])
ONE = Layout.build(1)


# ---- TEM -----------------------------------------------------------------------------------------


def paper_tem(row: int, epsilon: float, gamma: float, n: int) -> np.ndarray:
    """Counts of the paper's algorithm, with Gumbel noise as it writes it."""
    rng = np.random.default_rng(row)
    distances = TABLE.distances(np.array([row]))[0]
    near = np.flatnonzero(distances < gamma)
    far = np.flatnonzero(distances >= gamma)
    scores = np.append(-distances[near], -gamma + 2 * np.log(len(far)) / epsilon)
    best = (scores + rng.gumbel(scale=2 / epsilon, size=(n, len(scores)))).argmax(axis=1)
    drawn = np.where(best == len(near), rng.choice(far, n), near[np.minimum(best, len(near) - 1)])
    return np.bincount(drawn, minlength=len(TABLE))


def test_tem_has_the_law_of_the_papers_algorithm() -> None:
    mechanism = tem(c=3.0, gamma=1.2)
    law = mechanism.log_probs(TABLE, ALL, np.full(50, 3.0))
    assert law is not None
    counts = paper_tem(7, 6.0, 1.2, 20_000)
    assert chi_square(counts, np.exp(law[7])) > ALARM
    assert chi_square(counts, np.exp(law[8])) < ALARM


@pytest.mark.parametrize("gamma", [0.3, 1.2, None])
def test_tem_draws_its_law_and_keeps_both_bounds(gamma: float | None) -> None:
    mechanism = tem(gamma=gamma)
    c = mechanism.calibrate(TABLE, ALL.layout, np.full(50, 8.0))
    law = mechanism.log_probs(TABLE, ALL, c)
    assert law is not None
    claim, spent = mechanism.claim(TABLE), mechanism.spend(TABLE, ALL.layout, c)
    assert violation(law, spent, TABLE, claim.additive) <= 1e-9
    cap = mechanism.compute_local_dp_cap(TABLE, ONE, c[:1])[0]
    assert losses(law).max() <= cap + 1e-9
    if gamma is not None:
        assert cap <= 8.0 * gamma + claim.additive + 1e-9
    twin = mechanism.log_probs(TABLE, ALL, 10 * c)
    assert twin is not None
    assert violation(twin, spent, TABLE, claim.additive) > 0.1
    block = block_of(*[[17] * 50] * 400)
    rows = mechanism.privatize(TABLE, block, np.full(20_000, c[0]), rng=SeededRandomness(4))
    assert chi_square(np.bincount(rows, minlength=50), np.exp(law[17])) > ALARM


def test_beta_of_tem_is_the_share_of_far_words() -> None:
    big = table_of(3000, 8, 5)
    mechanism = tem(beta=0.05)
    law = mechanism.log_probs(big, block_of([0]), np.array([200.0]))
    assert law is not None
    # At this c all other words are far.
    assert 1 - np.exp(law[0, 0]) == pytest.approx(0.05, rel=0.01)


# ---- noise that follows the table ----------------------------------------------------------------

SKEWED = EmbeddingTable.build(
    name="skewed",
    words=PLANE.words,
    vectors=np.random.default_rng(6).normal(size=(40, 2)) * [1.5, 0.4],
    metric="euclidean",
)


def build_grid(mechanism: Perturb) -> plane.Plane:
    def log_density(points: Any, centre: Any, parameter: float) -> Any:
        part = mechanism.noise
        return part.log_density(SKEWED, points, np.atleast_2d(centre), parameter)[:, 0]

    return plane.Plane(log_density, on_circle=False)


def integrate(grid: plane.Plane, shares: np.ndarray, parameter: float) -> np.ndarray:
    """Laws [V, V] by integration, for a decoder with shares [points, V]."""
    laws = []
    for centre in SKEWED.vectors.astype(np.float64):
        log = grid.log_density(grid.points, centre, parameter)
        mass = np.exp(log - log.max()) * grid.area
        laws.append(mass @ shares / mass.sum())
    return np.array(laws)


def find_worst(law: np.ndarray, epsilon: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law)
        gaps = np.abs(logs[:, None] - logs[None])
    gaps = np.where(np.isnan(gaps), 0.0, gaps).max(axis=2)
    return float((gaps - epsilon * SKEWED.distances(np.arange(40))).max())


def test_mahalanobis_keeps_its_claim_and_a_twin_with_less_noise_does_not() -> None:
    mechanism = mahalanobis(eta=2.0, lambda_M=0.8)
    epsilon = mechanism.spend(SKEWED, ONE, np.array([2.0]))[0]
    assert epsilon > 2.0  # across the spread the noise is shorter
    shape = mechanism.noise._get_shape(SKEWED)  # type: ignore[union-attr]
    root = 0.8 * np.cov(SKEWED.vectors.T) / np.trace(np.cov(SKEWED.vectors.T)) * 2 + 0.2 * np.eye(2)
    assert shape.root @ shape.root == pytest.approx(root, rel=1e-5)
    grid = build_grid(mechanism)
    shares = np.eye(40)[SKEWED.nearest(grid.points)]
    law = integrate(grid, shares, 2.0)
    assert find_worst(law, epsilon) <= 1e-6
    assert find_worst(integrate(grid, shares, 4.0), epsilon) > 0.1
    cap = mechanism.compute_local_dp_cap(SKEWED, ONE, np.array([2.0]))[0]
    assert np.abs(np.log(law[:, None]) - np.log(law[None])).max() <= cap
    block = block_of(*[[7] * 50] * 600)
    rows = mechanism.privatize(SKEWED, block, np.full(30_000, 2.0), rng=SeededRandomness(2))
    counts = np.bincount(rows, minlength=40)
    assert chi_square(counts, law[7]) > ALARM
    assert chi_square(counts, integrate(grid, shares, 2.6)[7]) < ALARM


def test_mahalanobis_without_the_covariance_is_noise() -> None:
    plain, shaped = noise(eta=3.0), mahalanobis(eta=3.0, lambda_M=0.0)
    given = np.full(59, 3.0)
    block = block_of([3, 1, 4], list(range(50)), [1] * 6)
    drawn = [
        each.privatize(TABLE, block, given, rng=SeededRandomness(8)).tolist()
        for each in (plain, shaped)
    ]
    assert drawn[0] == drawn[1]
    assert shaped.spend(TABLE, block.layout, given) == pytest.approx(given)


def test_bayes_estimates_the_channel_of_mahalanobis_noise() -> None:
    from textveil.evaluate.attack.channel import estimate_lines

    mechanism = mahalanobis(eta=2.0, lambda_M=0.8)
    grid = build_grid(mechanism)
    law = integrate(grid, np.eye(40)[SKEWED.nearest(grid.points)], 2.0)
    lines = estimate_lines(
        mechanism, SKEWED, np.arange(40), 2.0, draws=2000, rng=SeededRandomness(1)
    )
    estimated = np.exp(lines - lines.max(axis=1, keepdims=True))
    exact = law.T / law.max(axis=0)[:, None]
    assert np.abs(estimated - exact).mean() < 0.02


# ---- Vickrey -------------------------------------------------------------------------------------


class NotTheWordItself(Vickrey):
    """A twin that takes the second nearest where the nearest is the private word."""

    def privatize(self, table: Any, block: Any, parameter: Any, *, rng: Any) -> Any:
        rows = super().privatize(table, block, parameter, rng=rng)
        second = table.neighbours(block.secret, 2)[:, 1]
        return np.where(rows == block.secret, second, rows)


def vickrey_shares(grid: plane.Plane, t: float) -> np.ndarray:
    distances = np.linalg.norm(grid.points[:, None] - SKEWED.vectors[None], axis=2)
    order = distances.argsort(axis=1)
    lines = np.arange(len(order))
    near, far = distances[lines, order[:, 0]], distances[lines, order[:, 1]]
    second = t * near / (t * near + (1 - t) * far)
    shares = np.zeros((len(order), 40))
    shares[lines, order[:, 0]] = 1 - second
    shares[lines, order[:, 1]] = second
    return shares


@pytest.mark.parametrize("t", [0.0, 0.4, 1.0])
def test_vickrey_keeps_the_claim_of_its_noise(t: float) -> None:
    mechanism = vickrey(eta=2.0, t=t)
    assert mechanism.spend(SKEWED, ONE, np.array([2.0]))[0] == pytest.approx(2.0)
    grid = build_grid(noise(eta=2.0))
    shares = vickrey_shares(grid, t)
    law = integrate(grid, shares, 2.0)
    assert find_worst(law, 2.0) <= 1e-6
    assert find_worst(integrate(grid, shares, 4.0), 2.0) > 0.1
    block = block_of(*[[7] * 50] * 600)
    given = np.full(30_000, 2.0)
    counts = np.bincount(
        mechanism.privatize(SKEWED, block, given, rng=SeededRandomness(2)), minlength=40
    )
    assert chi_square(counts, law[7]) > ALARM
    twin = NotTheWordItself(noise=mechanism.noise, t=t)
    counts = np.bincount(
        twin.privatize(SKEWED, block, given, rng=SeededRandomness(2)), minlength=40
    )
    assert counts[7] == 0  # a word that never comes out is ruled out by what does
    assert chi_square(counts, law[7]) < ALARM


def test_vickrey_refuses_other_noise() -> None:
    with pytest.raises(UnknownName, match="noise"):
        vickrey(noise="gaussian")  # type: ignore[arg-type]


# ---- 1-Diffractor --------------------------------------------------------------------------------


@pytest.mark.parametrize("lists", [1, 3])
@pytest.mark.parametrize("method", ["geometric", "TEM"])
def test_diffractor_keeps_both_promises(method: Any, lists: int) -> None:
    mechanism = diffractor(nominal=0.7, method=method, gamma=4, lists=lists)
    law = mechanism.log_probs(TABLE, ALL, np.full(50, 0.7))
    assert np.exp(law).sum(axis=1) == pytest.approx(1.0)
    spent = mechanism.spend(TABLE, ONE, np.array([0.7]))[0]
    gaps = losses(law)
    assert gaps.max() <= spent + 1e-9
    assert spent == pytest.approx(2.8 if method == "TEM" else 49 * 0.7, abs=1e-5)
    if lists == 1 and method == "geometric":
        assert gaps.max() == pytest.approx(spent)
    near = mechanism.mark_restricted_pairs(TABLE, np.arange(50))
    within = mechanism.compute_restricted_epsilon(TABLE, ONE, np.array([0.7]))[0]
    assert gaps[near].max() <= within + 1e-9
    twin = losses(mechanism.log_probs(TABLE, ALL, np.full(50, 1.4)))
    assert twin.max() > (spent if lists == 1 else within / 2)
    block = block_of(*[[17] * 50] * 400)
    rows = mechanism.privatize(TABLE, block, np.full(20_000, 0.7), rng=SeededRandomness(4))
    counts = np.bincount(rows, minlength=50)
    assert chi_square(counts, np.exp(law[17])) > ALARM
    assert chi_square(np.roll(counts, 1), np.exp(law[17])) < ALARM


@pytest.mark.parametrize("method", ["geometric", "TEM"])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 1e6])
def test_diffractor_spends_no_more_than_epsilon(method: Any, epsilon: float) -> None:
    """Also where a place of the bundled table may cost next to nothing, or all."""
    layout = Layout.build(3)
    mechanism = diffractor(method=method)
    for places in (load_table("minilm-s"), TABLE):
        parameter = mechanism.calibrate(places, layout, np.full(3, epsilon))
        assert (mechanism.spend(places, layout, parameter) <= epsilon).all()
        assert (parameter > 0).all()


@pytest.mark.parametrize("method", ["geometric", "TEM"])
def test_diffractor_has_the_law_of_the_authors_package(method: Any) -> None:
    core = pytest.importorskip("diffractor.core")
    mechanism = diffractor(nominal=0.8, method=method, gamma=3)
    order = mechanism._get_lists(TABLE)[0][0].tolist()
    names = [str(row) for row in order]
    core._RESOURCES = {
        "list": names,
        "mapping": {name: place for place, name in enumerate(names)},
        "config": core.DiffractorConfig(gamma=3, method=method, replace_stopwords=True),
        "rng": np.random.default_rng(17),
    }
    for row in (order[0], order[20]):
        drawn = [int(core.apply_privacy_mechanism(str(row), 0.8)) for _ in range(20_000)]
        law = mechanism.log_probs(TABLE, block_of([row]), np.array([0.8]))[0]
        assert chi_square(np.bincount(drawn, minlength=50), np.exp(law)) > ALARM


# ---- logits --------------------------------------------------------------------------------------

WORDS = ["river", "castle", "doctor", "money", "letter", "garden", "hid", "the", "told", "silver"]
SPOKEN = EmbeddingTable.build(
    name="spoken", words=WORDS, vectors=np.random.default_rng(2).normal(size=(10, 4))
)


def test_dp_mlm_draws_from_clipped_logits_and_charges_every_draw() -> None:
    mechanism = dp_mlm(nominal=6.0)
    low, high = mechanism._get_range(SPOKEN)
    block = Block(layout=Layout.build(4), rows=np.array([2, 6, 7, 3]))
    given = mechanism.parameters(SPOKEN, block.layout)
    assert given is not None
    law = mechanism.log_probs(SPOKEN, block, given)
    logits = mechanism._compute_logits(SPOKEN, block, np.arange(4))
    scores = np.exp(6.0 * np.clip(logits.astype(float), low, high) / (2 * (high - low)))
    assert np.exp(law) == pytest.approx(scores / scores.sum(axis=1, keepdims=True))
    assert mechanism.spend(SPOKEN, block.layout, given) == pytest.approx(np.full(4, 24.0))
    asked = mechanism.calibrate(SPOKEN, block.layout, np.array([8.0, 4.0, 9.0, 9.0]))
    assert mechanism.spend(SPOKEN, block.layout, asked).max() <= 4.0 + 1e-9
    many = Block(layout=Layout.build(*[4] * 2000), rows=np.tile(block.rows, 2000))
    rows = mechanism.privatize(SPOKEN, many, np.full(8000, 6.0), rng=SeededRandomness(3))
    counts = np.bincount(rows.reshape(2000, 4)[:, 0], minlength=10)
    assert chi_square(counts, np.exp(law[0])) > ALARM
    assert chi_square(np.roll(counts, 1), np.exp(law[0])) < ALARM


@pytest.mark.parametrize("concat", [True, False])
def test_dp_mlm_reads_the_word_itself_only_in_the_original(concat: bool) -> None:
    mechanism = dp_mlm(nominal=6.0, concat=concat)
    one, other = (Block(layout=Layout.build(3), rows=np.array([row, 6, 7])) for row in (2, 3))
    laws = [mechanism.log_probs(SPOKEN, block, np.full(3, 6.0)) for block in (one, other)]
    gaps = np.abs(laws[0] - laws[1])
    assert bool(gaps[0].max() > 1e-3) == concat
    assert gaps[1].max() > 1e-3
    assert gaps.max(axis=1).sum() <= mechanism.spend(SPOKEN, one.layout, np.full(3, 6.0))[0]


def test_a_token_never_loses_more_than_it_says_and_a_twin_without_clipping_does() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=30, size=(40, 200)).astype(np.float32)
    for rule in (TokenDraw(temperature=2.0), TokenDraw(temperature=2.0, bounds=(-5.0, 5.0))):
        weights = np.array([rule.compute_weights(line) for line in logits])
        law = np.log(weights) - np.log(weights.sum(axis=1, keepdims=True))
        worst = np.abs(law[:, None] - law[None]).max()
        assert 0.3 * rule.loss < worst <= rule.loss
        assert rule.loss == pytest.approx(10.0, abs=1e-5)
    free = TokenDraw(temperature=2.0, width=1e6)
    weights = np.array([free.compute_weights(line) for line in logits])
    law = np.log(weights) - np.log(weights.sum(axis=1, keepdims=True))
    assert np.abs(law[:, None] - law[None]).max() > 10.0


def test_a_token_is_drawn_by_its_weight() -> None:
    rule, logits = TokenDraw(temperature=1.0), np.array([0.0, 1.0, 2.0, -50.0], np.float32)
    streams = SystemRandomness().open([20_000]).split_rows(1)
    counts = np.bincount([rule.draw(draws, logits) for _, draws in streams], minlength=4)
    expected = np.exp(np.maximum(logits.astype(float), -8.0))
    assert chi_square(counts, expected / expected.sum()) > ALARM


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_refused(bad: float) -> None:
    with pytest.raises(ModelError, match="numbers"):
        TokenDraw(temperature=1.0).compute_weights(np.array([1.0, bad], np.float32))


def test_a_temperature_follows_from_epsilon() -> None:
    temperature = find_temperature(50.0, 20, width=10.0, bounds=None)
    assert 20 * TokenDraw(temperature=temperature).loss == pytest.approx(50.0)
    with pytest.raises(ConfigError, match="epsilon must be above"):
        find_temperature(1e-9, 20, width=10.0, bounds=None)
    with pytest.raises(ConfigError, match="lower one first"):
        TokenDraw(temperature=1.0, bounds=(3.0, 3.0))
