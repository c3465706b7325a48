"""The channel against laws written down by hand, and estimates against integrals over the plane."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import integrate, stats
from tests.fixtures import NOUNS, Stub, gaussian_rows

from textveil.evaluate.attack import Case, channel
from textveil.evaluate.attack.channel import (
    compute_exact_lines,
    estimate_lines,
    explain_refusal,
    find_exact_map,
    is_sampled,
    yield_likelihoods,
)
from textveil.evaluate.attack.posterior import rank_candidates
from textveil.mechanism import (
    CoordinateLaplace,
    Layout,
    MultivariateLaplace,
    Noisy,
    NoNoise,
    Perturb,
    Select,
    VonMisesFisher,
    papers,
)
from textveil.mechanism.rule import Exponential
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable

C = 6.0


def law_by_hand(table, c):
    """P(y | x) [V, V] of the exponential mechanism, from the table's vectors and the rounding of its weights."""
    rows = table.vectors.astype(np.float64)
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    weights = np.ceil(2.0**50 * np.exp(-np.minimum(c * distances, 20)))
    return weights / weights.sum(axis=1, keepdims=True)


# ---- laws that can be written down -----------------------------------------------------------------


@pytest.mark.parametrize("chunk", [7, 64])
def test_the_best_guesses_are_those_of_the_whole_matrix(small_table, monkeypatch, chunk):
    monkeypatch.setattr(channel, "PRIVATE_ROWS_AT_ONCE", chunk)
    prior = np.random.default_rng(0).dirichlet(np.full(60, 0.3)) + 1e-12
    joint = prior[:, None] * law_by_hand(small_table, C)
    guess, success = find_exact_map(papers.exponential(c=C), small_table, C, np.log(prior))
    assert guess.tolist() == joint.argmax(axis=0).tolist()
    assert success == pytest.approx(joint.max(axis=0).sum(), rel=1e-9)
    assert not np.array_equal(guess, np.arange(60)), (
        "the prior must matter, or the guesses are those of any attacker"
    )


def test_the_success_under_the_uniform_prior_certifies_no_more_than_is_spent(small_table):
    mechanism = papers.exponential(c=C)
    _, success = find_exact_map(mechanism, small_table, C, np.full(60, -np.log(60)))
    certificate = np.log(60 * success)
    by_hand = np.log(law_by_hand(small_table, C).max(axis=0).sum())
    assert certificate == pytest.approx(by_hand, rel=1e-9)
    assert (
        0.5
        < certificate
        <= float(mechanism.spend(small_table, Layout.build(1), np.array([C]))[0])
        * small_table.diameter
    )


def test_a_deterministic_mechanism_is_its_own_law(small_table):
    guess, success = find_exact_map(
        papers.stencil(L=1), small_table, np.nan, np.full(60, -np.log(60))
    )
    assert guess.tolist() == list(range(60))
    assert success == pytest.approx(1.0)


def test_a_law_that_is_not_there_is_not_searched(small_table):
    with pytest.raises(ValueError, match="a law"):
        find_exact_map(papers.noise(eta=3.0), small_table, 3.0, np.zeros(60))


# ---- densities ---------------------------------------------------------------------------------------


def test_densities_differ_from_those_of_the_textbook_by_a_constant(small_table, raw_table):
    random = np.random.default_rng(1)
    noisy = random.normal(size=(5, 8))
    directions = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
    unit, raw = (
        small_table.take(slice(None)).astype(np.float64),
        raw_table.take(slice(None)).astype(np.float64),
    )
    scale = raw_table.l1_diameter / 3.0
    sphere = np.stack(
        [stats.vonmises_fisher(row / np.linalg.norm(row), 9.0).logpdf(directions) for row in unit],
        1,
    )
    box = stats.laplace.logpdf(noisy[:, None], loc=raw, scale=scale).sum(axis=2)
    ball = -2.5 * np.linalg.norm(noisy[:, None] - raw, axis=2)
    for noise, table, rows, parameter, expected in (
        (VonMisesFisher(), small_table, unit, 9.0, sphere),
        (CoordinateLaplace(), raw_table, raw, 3.0, box),
        (MultivariateLaplace(), raw_table, raw, 2.5, ball),
    ):
        found = noise.log_density(table, noisy, rows, parameter) - expected  # type: ignore[arg-type]
        assert np.ptp(found) < 1e-5, "unit rows are held in float32"


# ---- estimates against integrals ---------------------------------------------------------------------

POINTS = 700


def nearest_shares(rows, centres, offsets, exclude=False):
    """Of each centre, the share of its offsets [N, d] that lead nearest to each row, or each other row: [V, V]."""
    found = []
    for x, centre in enumerate(centres):
        at = centre + offsets
        gaps = (rows**2).sum(1) - 2 * at @ rows.T
        if exclude:
            gaps[:, x] = np.inf
        found.append(np.bincount(gaps.argmin(axis=1), minlength=len(rows)) / len(offsets))
    return np.array(found)


def laplace_offsets(eta):
    """Equal shares of the multivariate Laplace law in the plane: radii at their quantiles times even angles."""
    share = (np.arange(POINTS) + 0.5) / POINTS
    radius, angle = stats.gamma.ppf(share, 2, scale=1 / eta), 2 * np.pi * share
    return np.stack(
        [np.outer(radius, np.cos(angle)).ravel(), np.outer(radius, np.sin(angle)).ravel()], axis=1
    )


def box_offsets(scale):
    """Equal shares of two independent Laplace coordinates, at their quantiles."""
    share = stats.laplace.ppf((np.arange(POINTS) + 0.5) / POINTS, scale=scale)
    return np.stack(np.meshgrid(share, share), axis=-1).reshape(-1, 2)


def circle_shares(rows, kappa):
    """P(y | x) of von Mises draws around angles, decoded to the nearest angle."""
    angles = np.arctan2(rows[:, 1], rows[:, 0])
    order = np.argsort(angles)
    turned = angles[order]
    middle = (
        turned + np.roll(turned, -1) + np.where(np.arange(len(rows)) == len(rows) - 1, 2 * np.pi, 0)
    ) / 2
    found = np.zeros((len(rows), len(rows)))
    for x, angle in enumerate(angles):
        density = stats.vonmises(kappa, loc=angle).pdf
        for i, y in enumerate(order):
            start = middle[i - 1] - (2 * np.pi if i == 0 else 0)
            found[x, y] = integrate.quad(density, start, middle[i], epsabs=1e-9, limit=200)[0]
    return found


def plane():
    return EmbeddingTable.build(
        name="plane", words=NOUNS[:9], vectors=gaussian_rows(9, 2, 5), metric="euclidean"
    )


@cache
def raw_noise():
    table, mechanism = plane(), papers.noise(eta=1.5)
    rows = table.vectors.astype(np.float64)
    return mechanism, table, 1.5, nearest_shares(rows, rows, laplace_offsets(1.5))


def projected_noise():
    table = EmbeddingTable.build(name="five", words=NOUNS[:9], vectors=gaussian_rows(9, 5, 6))
    mechanism = papers.noise(eta=4.0, project=2)
    rows = mechanism.get_view(table).vectors.astype(np.float64)
    return mechanism, table, 4.0, nearest_shares(rows, rows, laplace_offsets(4.0))


def laplace():
    table, mechanism = plane(), papers.laplace(nominal=4.0)
    rows = table.vectors.astype(np.float64)
    return mechanism, table, 4.0, nearest_shares(rows, rows, box_offsets(table.l1_diameter / 4.0))


def polar():
    table = EmbeddingTable.build(name="circle", words=NOUNS[:9], vectors=gaussian_rows(9, 2, 8))
    return papers.polar(kappa=3.0), table, 3.0, circle_shares(table.vectors.astype(np.float64), 3.0)


DRAWS = 9_000
FALSE_ALARM = 1e-6
INTEGRAL = 2e-3
"""What the sums of 700^2 points can be off by."""


def misses(found, law, m=0.8 * DRAWS / 3):
    """Where an estimate [m, V] is farther from the law [V, V] than chance allows (Bernstein, all cells together).

    No draw weighs more than 1 / m_x, with m_x draws around row x; the weights' squares then sum to at most P / m_x on
    average. No less than a third of the draws that became a row is weighed, so m is a third of the least m_x.
    """
    log = np.log(2 * law.size / FALSE_ALARM)
    allowed = np.sqrt(2 * law.T / m * log) + log / (3 * m) + INTEGRAL
    return np.abs(np.exp(found) - law.T) > allowed


@cache
def never_itself():
    table, mechanism = (
        plane(),
        Perturb(name="never", noise=MultivariateLaplace(eta=1.5), exclude_original=True),
    )
    rows = table.vectors.astype(np.float64)
    return mechanism, table, 1.5, nearest_shares(rows, rows, laplace_offsets(1.5), exclude=True)


@pytest.mark.slow
def test_a_word_that_is_never_released_as_itself_has_the_law_of_its_second_nearest():
    mechanism, table, parameter, law = never_itself()
    found = estimate_lines(
        mechanism, table, np.arange(9), parameter, draws=DRAWS, rng=SeededRandomness(4)
    )
    assert not misses(found, law).any()
    rows = table.vectors.astype(np.float64)
    kept = nearest_shares(rows, rows, laplace_offsets(1.5))
    np.fill_diagonal(kept, 0)
    assert misses(found, kept).any(), "the law of a search that may find the word itself is another"


def test_with_hardly_any_noise_the_law_without_the_word_itself_is_that_without_noise(small_table):
    silent = Perturb(noise=NoNoise(), name="never", exclude_original=True)
    written = compute_exact_lines(silent, small_table, np.arange(60), np.nan)
    assert written is not None
    law = np.exp(written)
    loud = Perturb(noise=MultivariateLaplace(eta=1e6), name="never", exclude_original=True)
    found = np.exp(
        estimate_lines(loud, small_table, np.arange(60), 1e6, draws=2, rng=SeededRandomness(1))
    )
    reached = law.any(axis=1)  # the others are the nearest to no row, and never released
    assert 10 < reached.sum() < 60
    assert np.allclose(found[reached], law[reached], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("build", [raw_noise, projected_noise, laplace, polar])
def test_estimates_are_the_integrals_of_the_law(build):
    mechanism, table, parameter, law = build()
    found = estimate_lines(
        mechanism, table, np.arange(9), parameter, draws=DRAWS, rng=SeededRandomness(4)
    )
    assert not misses(found, law).any()
    assert 0.2 < np.diag(law).mean() < 0.9, "neither all kept nor all lost"


def test_draws_that_are_weighed_without_the_density_of_the_pool_are_found_out(monkeypatch):
    """The broken twin: every draw counts as if it had come from the row in question."""

    def without(log_density, counts):
        return np.exp(log_density - log_density.max(axis=1, keepdims=True)) / counts.sum()

    mechanism, table, parameter, law = raw_noise()
    monkeypatch.setattr(channel, "weigh", without)
    assert misses(
        estimate_lines(
            mechanism, table, np.arange(9), parameter, draws=DRAWS, rng=SeededRandomness(4)
        ),
        law,
    ).any()


def test_some_rows_alone_are_estimated_as_all_together():
    """Of 18 * DRAWS draws a tenth is around all 9 rows: 1,800 each, with a standard deviation of 40."""
    mechanism, table, parameter, law = raw_noise()
    rows = np.array([7, 2])
    found = estimate_lines(
        mechanism, table, rows, parameter, draws=9 * DRAWS, rng=SeededRandomness(5)
    )
    assert found.shape == (2, 9)
    assert not misses(found, law[:, rows], m=500).any()


def test_a_row_that_no_draw_became_is_ordered_by_distance(small_table, monkeypatch):
    def nothing(self, around, line_of):
        yield np.empty((0, 8), np.float32), np.empty(0, np.int64), np.empty(0, np.int64)

    monkeypatch.setattr(channel._DrawPool, "_yield_draws", nothing)
    found = estimate_lines(
        papers.noise(eta=3.0), small_table, np.array([5, 9]), 3.0, draws=4, rng=SeededRandomness(1)
    )
    rows = small_table.vectors.astype(np.float64)
    for line, row in zip(found, (5, 9), strict=True):
        assert (
            np.argsort(-line)[:20].tolist()
            == np.argsort(np.linalg.norm(rows - rows[row], axis=1))[:20].tolist()
        )


def test_rows_that_were_missed_are_drawn_around_once_more(small_table, monkeypatch):
    asked = []
    draw = channel._DrawPool._yield_draws

    def few(self, around, line_of):
        asked.append(around)
        for noisy, line, only in draw(self, around, line_of):
            kept = np.flatnonzero((line == 0) | (len(asked) > 1))
            yield noisy[kept], line[kept], only[kept]

    monkeypatch.setattr(channel._DrawPool, "_yield_draws", few)
    rows = np.array([5, 9, 30])
    found = estimate_lines(
        papers.noise(eta=40.0), small_table, rows, 40.0, draws=20, rng=SeededRandomness(1)
    )
    assert np.bincount(asked[1], minlength=60)[[5, 9, 30]].tolist() == [0, 30, 30]
    assert found.argmax(axis=1).tolist() == rows.tolist()


def test_a_word_that_is_never_released_as_itself_is_not_guessed(small_table):
    mechanism = Perturb(name="never", noise=MultivariateLaplace(eta=9.0), exclude_original=True)
    found = estimate_lines(
        mechanism, small_table, np.array([3, 4]), 9.0, draws=50, rng=SeededRandomness(1)
    )
    assert found[0, 3] == found[1, 4] == -np.inf
    assert np.isfinite(found).sum() == 118


# ---- views -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def view(small_table):
    return Case.create(
        Privatizer("exponential", c=C, table=small_table, seed=3), [" ".join(NOUNS)] * 4
    ).view


@pytest.mark.parametrize("cells", [1 << 27, 60 * 5])
def test_a_view_gets_the_law_of_every_position_with_its_own_parameter(view, monkeypatch, cells):
    """In one part, and in parts of five lines; two parameters, and a placeholder among the words."""
    monkeypatch.setattr(channel, "MAX_LOG_PROBABILITIES", cells)
    parameter = np.where(np.arange(240) % 3 == 0, 2.0, C)
    drawn = np.where(np.arange(240) == 17, -1, view.output_rows)
    view = replace(view, parameter=parameter, output_rows=drawn)
    found = np.full((240, 60), np.nan)
    for part in yield_likelihoods(view, draws=2, rng=SeededRandomness(0)):
        assert part.evidence == "exact"
        assert part.lines.size <= cells
        assert np.isnan(found[part.positions]).all(), "every position is in one part"
        found[part.positions] = part.lines[part.which[:, 0]]
    laws = {c: np.log(law_by_hand(view.table, c)) for c in (2.0, C)}
    for i in range(240):
        expected = np.zeros(60) if i == 17 else laws[parameter[i]][:, drawn[i]]
        assert np.allclose(found[i], expected, atol=1e-5)
    assert not view.memo, "several parts are not held"


def test_one_part_is_held_for_the_next_attack(view):
    first, second = (
        next(yield_likelihoods(view, draws=2, rng=SeededRandomness(0))) for _ in range(2)
    )
    assert first is second


def views(table, *, epsilons=(C, C)):
    """Of several seeds; a placeholder among the words of the first."""
    seeds = enumerate(epsilons)
    made = [
        Case.create(Privatizer("exponential", c=c, table=table, seed=i), [" ".join(NOUNS)]).view
        for i, c in seeds
    ]
    return [
        replace(made[0], output_rows=np.where(np.arange(60) == 17, -1, made[0].output_rows)),
        *made[1:],
    ]


def laws_at(view):
    """The line of every position [n, V]."""
    found = np.full((len(view.output_rows), len(view.table)), np.nan, np.float32)
    for part in yield_likelihoods(view, draws=2, rng=SeededRandomness(0)):
        assert part.evidence == "exact"
        found[part.positions] = part.lines[part.which[:, 0]]
    assert not np.isnan(found).any()
    return found


def test_several_views_share_the_law_of_all_their_rows(small_table, monkeypatch):
    several, alone = (views(small_table, epsilons=(C, C, C)) for _ in range(2))
    channel.share_channels(several)
    monkeypatch.setattr(channel, "compute_exact_lines", lambda *_: pytest.fail("the law is there"))
    lines = {
        id(part.lines)
        for view in several
        for part in yield_likelihoods(view, draws=2, rng=SeededRandomness(0))
    }
    assert len(lines) == 1
    monkeypatch.undo()
    for one, other in zip(several, alone, strict=True):
        assert np.array_equal(laws_at(one), laws_at(other))


def test_views_that_differ_in_their_law_share_none(small_table, monkeypatch):
    two_budgets = views(small_table, epsilons=(C, C / 2))
    noisy = [
        Case.create(Privatizer("noise", eta=9.0, table=small_table, seed=i), ["a house"]).view
        for i in range(2)
    ]
    for several in (two_budgets, noisy):
        channel.share_channels(several)
        assert not any(view.memo for view in several)
    monkeypatch.setattr(channel, "MAX_LOG_PROBABILITIES", 60 * 5)
    too_many = views(small_table)
    channel.share_channels(too_many)
    assert not any(view.memo for view in too_many)


class Whole(Stub):
    """A law that may depend on all words of a text."""

    def log_probs(self, table, block, parameter, released=None):
        return np.zeros((len(block.secret), len(table)))


def test_laws_that_may_depend_on_other_words_are_refused(view):
    whole = replace(view, mechanism=Whole(release=lambda table, block: block.secret))
    assert "other words" in explain_refusal(whole)
    assert not is_sampled(whole)
    alone = replace(view, mechanism=Select(name="at once", rule=Exponential(c=C)))
    assert not is_sampled(alone)
    assert explain_refusal(alone) == ""
    mixed = replace(view, mechanism=papers.d_chi_stencil(L=3, eta=9.0))
    assert "mixed" in explain_refusal(mixed)
    assert not is_sampled(mixed)


class Foreign(Stub):
    """As another package might write it: no class of this one, a claim that says `alone`, and a law."""

    def claim(self, table):
        return replace(super().claim(table), alone=True)

    def log_probs(self, table, block, parameter, released=None):
        return np.log(law_by_hand(table, C)[block.secret])


class Unwritten(Foreign):
    """The same, but these options leave no closed form."""

    def log_probs(self, table, block, parameter, released=None):
        return None


def test_a_mechanism_of_another_package_needs_nothing_but_its_claim_and_its_law(view):
    foreign = replace(view, mechanism=Foreign(release=lambda table, block: block.secret))
    assert explain_refusal(foreign) == ""
    expected = np.log(law_by_hand(view.table, C))[:, view.output_rows].T
    assert np.array_equal(laws_at(foreign), expected.astype(np.float32))
    assert rank_candidates(foreign, prior="uniform", rng=SeededRandomness(0)).evidence == "exact"


def test_a_law_that_these_options_leave_open_is_sampled(view):
    unwritten = replace(view, mechanism=Unwritten(release=lambda table, block: block.secret))
    assert explain_refusal(unwritten) == ""
    assert is_sampled(unwritten)


class Shaken(Stub):
    """Noise of its own on vectors, as another package might write it: the attack draws it anew."""

    exclude_original, noise_law, radius = False, None, None

    def get_view(self, table):
        return table

    def compute_rate(self, table, parameter):
        return parameter

    def sample(self, draws, table, rows, parameter):
        return (
            table.take(slice(None)).astype(np.float64)[rows]
            + draws.normal(table.dimension) / parameter[:, None]
        )

    def log_density(self, table, noisy, parameter):
        apart = np.linalg.norm(noisy[:, None] - table.take(slice(None)), axis=2)
        return apart**2 * (-(parameter**2) / 2)


def test_noise_of_another_package_is_drawn_anew_and_weighed():
    table = plane()
    mechanism = Shaken(release=lambda table, block: block.secret)
    assert isinstance(mechanism, Noisy)
    found = estimate_lines(
        mechanism, table, np.arange(9), 2.0, draws=DRAWS, rng=SeededRandomness(4)
    )
    rows = table.vectors.astype(np.float64)
    share = stats.norm.ppf((np.arange(POINTS) + 0.5) / POINTS, scale=0.5)
    law = nearest_shares(rows, rows, np.stack(np.meshgrid(share, share), axis=-1).reshape(-1, 2))
    assert not misses(found, law).any()
