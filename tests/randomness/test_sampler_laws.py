"""Each sampler against its law, with a broken twin that the same check rejects.

Each check has a false-alarm rate of 1e-6. The streams are seeded, so a check that passes once passes always.
"""

import itertools
from fractions import Fraction
from functools import cache
from typing import cast

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from textveil.errors import ConfigError
from textveil.randomness.samplers import (
    choose_weighted,
    coordinate_laplace,
    discrete_laplace,
    mean_resultant_length,
    multivariate_laplace,
    von_mises_fisher,
)
from textveil.randomness.streams import Draws, SeededRandomness

RATE = 1e-6


def open_draws(n, seed):
    """Draws of n rows that belong to documents of 50 words (fewer streams than rows, more than one)."""
    sizes = [50] * (n // 50) + [n % 50]
    return next(SeededRandomness(seed).open(sizes).split_rows(n))[1]


def follows(sample, cdf):
    """Whether Kolmogorov and Smirnov's test keeps the law."""
    assert np.isfinite(sample).all()
    return stats.kstest(np.ravel(sample), cdf).pvalue > RATE


def counts_follow(counts, probabilities):
    """Whether Pearson's chi-square test keeps the probabilities; every expected count is 5 or more."""
    expected = np.asarray(probabilities) * counts.sum()
    assert expected.min() >= 5
    return stats.chisquare(counts, expected).pvalue > RATE


def products(left, right):
    return np.einsum("ij,ij->i", left, right)


# --- draws ---


@pytest.mark.parametrize(
    ("ask", "law"),
    [
        (lambda draws: draws.normal(4), stats.norm),
        (lambda draws: draws.uniform(4), stats.uniform),
        (lambda draws: draws.exponential(4), stats.expon),
        (lambda draws: draws.laplace(4), stats.laplace),
        (lambda draws: draws.gamma(0.5), stats.gamma(0.5)),
        (lambda draws: draws.gamma(384.0, 4), stats.gamma(384)),
        (lambda draws: draws.beta(0.5, 0.5, 4), stats.beta(0.5, 0.5)),
        (lambda draws: draws.beta(2.0, 191.5, 4), stats.beta(2, 191.5)),
    ],
)
def test_draws_follow_their_law(ask, law):
    sample = ask(open_draws(20_000, 1))
    assert follows(sample, law.cdf)
    assert not follows(sample * 1.1, law.cdf)
    if sample.ndim == 2:
        for column in sample.T:
            assert follows(column, law.cdf)


def test_uniform_values_stay_below_one():
    sample = open_draws(100_000, 2).uniform(10)
    assert sample.min() >= 0.0
    assert sample.max() < 1.0


@pytest.mark.parametrize("high", [1, 2, 6, 7, 100])
def test_small_integers_are_uniform(high):
    sample = open_draws(50_000, 3).integers(np.full(50_000, high))
    assert sample.dtype == np.int64
    assert sample.min() == 0
    assert sample.max() == high - 1
    counts = np.bincount(sample, minlength=high)
    if high > 1:
        assert counts_follow(counts, np.full(high, 1 / high))
        skewed = np.bincount(np.minimum(sample, high - 2), minlength=high)
        assert not counts_follow(skewed, np.full(high, 1 / high))


def thirds(sample):
    return np.bincount(sample // 2**61, minlength=3)


def test_large_integers_have_no_modulo_bias():
    draws = open_draws(20_000, 4)
    assert counts_follow(thirds(draws.integers(np.full(20_000, 3 * 2**61))), np.full(3, 1 / 3))
    # The twin: remainders of 64 bits. The last third gets 2 of 8 parts instead of a third.
    raw = np.concatenate(
        [
            generator.bit_generator.random_raw(rows.stop - rows.start)
            for generator, rows in draws._yield_parts()
        ]
    )
    biased = (raw % np.uint64(3 * 2**61)).astype(np.int64)
    assert not counts_follow(thirds(biased), np.full(3, 1 / 3))


@pytest.mark.parametrize("high", [2**62 + 1, 2**63 - 1])
def test_the_largest_integers_are_uniform(high):
    sample = open_draws(20_000, 5).integers(np.full(20_000, high))
    assert sample.max() < high
    assert follows(sample / high, stats.uniform.cdf)


def test_every_row_has_its_own_bound():
    high = np.tile(np.array([1, 2, 3, 1000, 2**40, 3 * 2**61]), 5000)
    sample = open_draws(30_000, 6).integers(high)
    assert (sample < high).all()
    assert follows((sample / high).reshape(-1, 6)[:, 4:], stats.uniform.cdf)
    assert counts_follow(np.bincount(sample[2::6]), np.full(3, 1 / 3))


# --- multivariate Laplace ---


def radii_follow(noise, eta, dimension):
    return follows(np.sqrt(products(noise, noise)) * eta, stats.gamma(dimension).cdf)


def direction_law(dimension):
    """The law of one coordinate of a uniform point on the sphere (2 dimensions or more)."""
    half = (dimension - 1) / 2
    return lambda x: special.betainc(half, half, (1 + np.clip(x, -1, 1)) / 2)


def directions_follow(noise):
    """Check single coordinates and two fixed oblique axes."""
    dimension = noise.shape[1]
    unit = noise / np.sqrt(products(noise, noise))[:, None]
    oblique = np.ones(dimension) / np.sqrt(dimension)
    alternating = oblique * (-1.0) ** np.arange(dimension)
    axes = [unit[:, 0], unit[:, -1], unit @ oblique, unit @ alternating]
    return all(follows(axis, direction_law(dimension)) for axis in axes)


@pytest.mark.parametrize("dimension", [2, 3, 50, 384])
def test_multivariate_laplace_has_a_gamma_radius_and_a_uniform_direction(dimension):
    eta = np.repeat([0.01, 1.0, 60.0, 4000.0], 5000)
    noise = multivariate_laplace(open_draws(20_000, 10), eta, dimension)
    assert noise.shape == (20_000, dimension)
    assert noise.dtype == np.float64
    assert radii_follow(noise, eta, dimension)
    assert directions_follow(noise)
    radius = np.sqrt(products(noise, noise)) * eta
    assert directions_follow(
        noise[radius > np.median(radius)]
    )  # radius and direction are independent


def test_multivariate_laplace_in_one_dimension_is_laplace():
    noise = multivariate_laplace(open_draws(20_000, 11), np.full(20_000, 3.0), 1)
    assert follows(noise * 3.0, stats.laplace.cdf)


def test_multivariate_laplace_with_a_radius_of_one_dimension_less_is_rejected():
    def twin(draws, eta, dimension):
        direction = draws.normal(dimension)
        direction /= np.sqrt(products(direction, direction))[:, None]
        return direction * (draws.gamma(dimension - 1) / eta)[:, None]

    for dimension in (2, 3, 50):
        assert not radii_follow(twin(open_draws(20_000, 12), 2.0, dimension), 2.0, dimension)


def test_multivariate_laplace_with_a_direction_that_is_not_normalised_is_rejected():
    for dimension in (2, 3, 50):
        draws = open_draws(20_000, 13)
        noise = (
            draws.normal(dimension) / np.sqrt(dimension) * (draws.gamma(dimension) / 2.0)[:, None]
        )
        assert not radii_follow(noise, 2.0, dimension)


@pytest.mark.parametrize("spoil", [np.abs, np.cbrt, np.sign])
def test_multivariate_laplace_with_a_direction_that_is_not_uniform_is_rejected(spoil):
    # One orthant; a cube's corners rounded off; a cube's corners only.
    for dimension in (2, 3):
        noise = spoil(multivariate_laplace(open_draws(20_000, 14), 1.0, dimension))
        assert not directions_follow(noise)


# --- coordinate Laplace ---


def test_coordinate_laplace_has_laplace_coordinates():
    scale = np.repeat([0.02, 1.0, 300.0], 4000)
    noise = coordinate_laplace(open_draws(12_000, 20), scale, 6)
    assert follows(noise / scale[:, None], stats.laplace.cdf)
    for part in np.split(noise / scale[:, None], 3):
        assert follows(part, stats.laplace.cdf)
    assert not follows(2 * noise / scale[:, None], stats.laplace.cdf)  # the twin: the scale doubled
    correlation = np.corrcoef(np.abs(noise / scale[:, None]), rowvar=False)[np.triu_indices(6, 1)]
    assert np.abs(correlation).max() * np.sqrt(12_000) < 5.5  # 15 pairs; 6e-7
    assert follows(np.abs(noise / scale[:, None]).sum(axis=1), stats.gamma(6).cdf)


# --- von Mises-Fisher ---


@cache
def angle_law(dimension, kappa):
    """The law of the angle to the mean: density exp(kappa cos t) sin(t)^(d-2), by the trapezoid rule."""
    angle = np.linspace(0.0, np.pi, 200_001)
    with np.errstate(divide="ignore"):
        log_density = kappa * (np.cos(angle) - 1.0)
        if dimension > 2:
            log_density += (dimension - 2) * np.log(np.sin(angle).clip(0))
    density = np.exp(log_density - log_density.max())
    cumulative = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
    return lambda x: np.interp(x, angle, cumulative / cumulative[-1])


def angles(sample, mean):
    """The angle to the mean, precise when it is small."""
    along = products(sample, mean)
    across = sample - along[:, None] * mean
    return np.arctan2(np.sqrt(products(across, across)), along)


def random_means(n, dimension, seed):
    mean = np.random.default_rng(seed).standard_normal((n, dimension))
    return mean / np.sqrt(products(mean, mean))[:, None]


DIMENSIONS, KAPPAS = (2, 3, 16, 384, 1024), (0.0, 1.0, 50.0, 1000.0, 10_000.0)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_von_mises_fisher_has_the_right_angle(dimension):
    # All concentrations in one call, each with its own means; the rows are then taken apart.
    n = 20_000 if dimension < 100 else 5000
    kappa = np.tile(KAPPAS, n // 5)
    mean = random_means(n, dimension, 30)
    sample = von_mises_fisher(open_draws(n, 31), mean, kappa)
    assert sample.shape == (n, dimension)
    assert np.abs(products(sample, sample) - 1.0).max() < 1e-14
    angle = angles(sample, mean)
    for index, value in enumerate(KAPPAS):
        assert follows(angle[index::5], angle_law(dimension, value)), value


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("kappa", [50.0, 1000.0, 10_000.0])
def test_von_mises_fisher_with_a_wrong_concentration_or_side_is_rejected(dimension, kappa):
    n = 4000
    mean = random_means(n, dimension, 32)
    doubled = angles(von_mises_fisher(open_draws(n, 33), mean, np.full(n, 2 * kappa)), mean)
    assert not follows(doubled, angle_law(dimension, kappa))
    right = von_mises_fisher(open_draws(n, 33), mean, np.full(n, kappa))
    assert not follows(
        angles(right, -mean), angle_law(dimension, kappa)
    )  # a reflection to the wrong side
    crossed = angles(right, np.roll(mean, 1, axis=0))  # rows given to their neighbours
    assert not follows(crossed, angle_law(dimension, kappa))


def test_von_mises_fisher_with_a_direction_that_is_not_orthogonal_to_the_mean_is_rejected():
    for dimension, kappa in itertools.product((2, 3, 16), (1.0, 50.0)):
        n = 20_000
        mean = random_means(n, dimension, 43)
        right = von_mises_fisher(open_draws(n, 44), mean, np.full(n, kappa))
        angle = angles(right, mean)[:, None]
        twin = np.cos(angle) * mean + np.sin(angle) * random_means(n, dimension, 45)
        assert follows(angle, angle_law(dimension, kappa))
        assert not follows(angles(twin, mean), angle_law(dimension, kappa))


def test_von_mises_fisher_on_the_circle_is_von_mises():
    kappa = np.repeat([0.5, 4.0, 700.0], 10_000)
    centre = np.repeat([0.3, -2.0, 3.0], 10_000)
    mean = np.column_stack((np.cos(centre), np.sin(centre)))
    sample = von_mises_fisher(open_draws(30_000, 34), mean, kappa)
    turn = np.arctan2(sample[:, 1], sample[:, 0]) - centre
    turn = (turn + np.pi) % (2 * np.pi) - np.pi
    for part, value in zip(np.split(turn, 3), (0.5, 4.0, 700.0), strict=True):
        assert follows(part, stats.vonmises(value).cdf)
        assert not follows(
            np.abs(part), stats.vonmises(value).cdf
        )  # the twin: always the same side


def tangents(sample, mean):
    """Unit tangent directions in an orthonormal basis of the complement of one mean, [n, d - 1]."""
    basis = np.linalg.svd(mean[None, :])[2][1:]
    across = sample @ basis.T
    return across / np.sqrt(products(across, across))[:, None]


@pytest.mark.parametrize("dimension", [3, 16, 384])
@pytest.mark.parametrize("kappa", [0.0, 30.0, 10_000.0])
def test_von_mises_fisher_has_a_uniform_tangent(dimension, kappa):
    n = 8000
    mean = random_means(1, dimension, 35)[0]
    sample = von_mises_fisher(open_draws(n, 36), np.tile(mean, (n, 1)), np.full(n, kappa))
    tangent = tangents(sample, mean)
    assert directions_follow(tangent)
    near = sample @ mean > np.median(sample @ mean)
    assert directions_follow(tangent[near])  # angle and tangent are independent
    assert not directions_follow(np.abs(tangent))
    assert not directions_follow(
        tangents(np.cbrt(sample), mean)
    )  # the twin: drawn towards a cube's corners


def test_von_mises_fisher_takes_both_sides_on_the_circle_equally():
    mean = np.tile([0.6, 0.8], (20_000, 1))
    sample = von_mises_fisher(open_draws(20_000, 38), mean, np.full(20_000, 100.0))
    left = int((sample[:, 0] * 0.8 - sample[:, 1] * 0.6 > 0).sum())
    assert stats.binomtest(left, 20_000).pvalue > RATE
    assert stats.binomtest(left + 500, 20_000).pvalue < RATE


def test_von_mises_fisher_keeps_its_precision_at_extreme_concentrations():
    # For large kappa, 2 kappa (1 - cos) is gamma with shape (d - 1) / 2; cos alone has no digits left there.
    for dimension, kappa in ((2, 1e14), (3, 1e15), (384, 1e15)):
        mean = random_means(4000, dimension, 39)
        angle = angles(von_mises_fisher(open_draws(4000, 40), mean, np.full(4000, kappa)), mean)
        assert follows(kappa * angle**2 / 2, stats.gamma((dimension - 1) / 2).cdf)


# --- mean resultant length ---


@cache
def exact_length(dimension, kappa):
    with mpmath.workdps(40):
        order = mpmath.mpf(dimension) / 2
        return (
            float(mpmath.besseli(order, kappa) / mpmath.besseli(order - 1, kappa)) if kappa else 0.0
        )


@pytest.mark.parametrize("dimension", [2, 3, 16, 300, 384, 1024, 4096])
def test_mean_resultant_length_equals_the_bessel_ratio(dimension):
    kappa = np.array([0.0, 1e-9, 0.1, 1.0, 50.0, 85.0, 1000.0, 10_000.0, 1e6])
    exact = np.array([exact_length(dimension, value) for value in kappa])
    assert np.allclose(mean_resultant_length(dimension, kappa), exact, rtol=1e-13, atol=0)
    assert not np.allclose(mean_resultant_length(dimension + 1, kappa), exact, rtol=1e-13, atol=0)


def test_mean_resultant_length_where_the_library_function_underflows():
    assert special.ive(383, 50.0) == 0.0
    assert mean_resultant_length(766, 50.0) == pytest.approx(exact_length(766, 50.0), rel=1e-13)


def test_mean_resultant_length_agrees_with_the_library_function_where_it_works():
    kappa = np.geomspace(0.01, 10_000, 500).reshape(50, 10)
    for dimension in (2, 5, 30):
        library = special.ive(dimension / 2, kappa) / special.ive(dimension / 2 - 1, kappa)
        assert np.allclose(mean_resultant_length(dimension, kappa), library, rtol=1e-11, atol=0)


def test_mean_resultant_length_is_the_mean_cosine_of_the_sampler():
    for dimension, kappa in ((2, 3.0), (50, 85.0), (384, 85.0)):
        mean = random_means(8000, dimension, 41)
        cosine = products(von_mises_fisher(open_draws(8000, 42), mean, np.full(8000, kappa)), mean)
        error = cosine.std() / np.sqrt(8000)
        assert abs(cosine.mean() - mean_resultant_length(dimension, kappa)) < 4.9 * error  # 1e-6


# --- discrete Laplace ---

SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(20)]


def discrete_follows(sample, scale):
    """Against the exact law, with the values at either end put together, so that each count is expected 10 times."""
    step = float(1 / scale)
    rarest = min(
        1 / (1 + np.exp(-step)), np.tanh(step / 2) * np.exp(step)
    )  # of the tail and its neighbour, at 0
    beyond = int(np.log(rarest * len(sample) / 10) / step)
    law = np.exp(-step * np.abs(np.arange(-beyond + 1, beyond))) * np.tanh(step / 2)
    tail = np.exp(-step * beyond) / (1 + np.exp(-step))
    counts = np.bincount(np.clip(sample, -beyond, beyond) + beyond, minlength=2 * beyond + 1)
    return counts_follow(counts, [tail, *law, tail])


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace_follows_its_law(scale):
    draws = open_draws(40_000, 70)
    sample = discrete_laplace(draws, scale)
    assert sample.dtype == np.int64
    assert discrete_follows(sample, scale)
    # The twins: another scale; a sign that doubles zero; continuous Laplace, rounded.
    assert not discrete_follows(discrete_laplace(draws, scale * 11 / 10), scale)
    sizes = np.floor(draws.exponential(1)[:, 0] * float(scale)).astype(np.int64)
    signs = 1 - 2 * draws.integers(np.full(40_000, 2))
    assert not discrete_follows(signs * sizes, scale)
    if scale <= 1:  # for larger scales it takes more draws to see it
        rounded = np.rint(draws.laplace(1)[:, 0] * float(scale)).astype(np.int64)
        assert not discrete_follows(rounded, scale)


def test_every_row_has_its_own_scale():
    scales = [Fraction(1, 2), Fraction(9, 4), Fraction(10**15 + 1, 10**14)] * 10_000
    sample = discrete_laplace(open_draws(30_000, 72), scales)
    for i in range(3):
        assert discrete_follows(sample[i::3], scales[i])
        assert not discrete_follows(sample[i::3], scales[i - 1])


# --- weighted choice ---


class Chosen:
    """Stands in for draws: `integers` gives prescribed values, in the order asked."""

    def __init__(self, size, *answers):
        self.size = size
        self.answers = list(answers)

    def select(self, mask):
        return Chosen(int(mask.sum()), *self.answers)

    def integers(self, high):
        answer = self.answers.pop(0)
        assert (answer < high).all()
        return answer


def columns_at(weights, targets, counts=None):
    """The column for each target in [0, sum), one row per target."""
    high = np.array([target >> 32 for target in targets])
    low = np.array([target & (2**32 - 1) for target in targets])
    tiled = np.broadcast_to(weights, (len(targets), weights.size))
    return choose_weighted(cast(Draws, Chosen(len(targets), high, low)), tiled, counts).tolist()


def test_weighted_choice_gives_each_column_as_many_targets_as_its_weight():
    # Counted out: every target of [0, sum) once. So the law is exact as far as the integers are uniform.
    for size in (1, 5, 256, 257, 700):
        weights = np.random.default_rng(size).integers(0, 5, size)
        weights[0] += 1
        columns = columns_at(weights, list(range(weights.sum())))
        assert np.bincount(columns, minlength=size).tolist() == weights.tolist()


def test_weighted_choice_changes_column_exactly_where_the_sums_do():
    generator = np.random.default_rng(50)
    for size in (3, 256, 1000, 40_000):
        weights = generator.integers(0, 2**50, size, endpoint=True)
        weights[generator.random(size) < 0.3] = 0
        weights[generator.random(size) < 0.3] = 1
        weights[[0, size // 2, size - 1]] = 2**50
        ends = np.cumsum(weights.astype(object))
        places = [place for place in generator.integers(0, size, 60).tolist() if weights[place] > 0]
        places += [0, size // 2, size - 1]
        firsts = [ends[place] - int(weights[place]) for place in places]
        lasts = [ends[place] - 1 for place in places]
        assert columns_at(weights, firsts) == places
        assert columns_at(weights, lasts) == places
        if size == 40_000:
            assert ends[-1] > 2**63
            # The twins: sums in float64, and in an int64 that wraps.
            floating = np.searchsorted(
                np.cumsum(weights.astype(float)), np.array(lasts, dtype=float), side="right"
            )
            assert floating.tolist() != places
            wrapping = np.searchsorted(
                np.cumsum(weights), np.array([last % 2**63 for last in lasts]), side="right"
            )
            assert wrapping.tolist() != places


def test_weighted_choice_draws_again_from_the_first_target_past_the_sum():
    weights = np.tile(np.array([2**32, 3]), (4, 1))  # targets from 0 to 2^32 + 2
    first = (np.array([1, 1, 1, 0]), np.array([2, 3, 2**32 - 1, 2**32 - 1]))
    second = (np.array([0, 1]), np.array([9, 0]))
    draws = cast(Draws, Chosen(4, *first, *second))
    assert choose_weighted(draws, weights).tolist() == [1, 0, 1, 0]


def bin_counts(columns, bins, size):
    return np.bincount(columns * bins // size, minlength=bins)


def test_weighted_choice_follows_weights_whose_sum_is_beyond_an_int64():
    size, n, bins = 20_000, 3000, 16
    weights = (2**50 * np.linspace(1.0, 0.2, size)).astype(np.int64)
    total = int(weights.astype(object).sum())
    assert total > 2**63
    mass = [float(part.astype(object).sum() / total) for part in np.split(weights, bins)]
    draws = open_draws(n, 51)
    columns = choose_weighted(draws, np.broadcast_to(weights, (n, size)))
    assert counts_follow(bin_counts(columns, bins, size), mass)
    # The twin: a sum that wraps to 63 bits, so that the last columns never come.
    target = draws.integers(np.full(n, total % 2**63))
    wrapped = np.searchsorted(np.cumsum(weights.astype(float)), target.astype(float))
    assert not counts_follow(bin_counts(wrapped, bins, size), mass)


@pytest.mark.parametrize("total", [6, 2**32 - 3, 2**32, 2**32 + 3, 3 * 2**32 + 5, 2**50])
def test_weighted_choice_follows_weights_around_a_limb(total):
    # At 2^32 + 3 the last limb is nearly empty, and half of the pairs of limbs are drawn again.
    weights = np.array([total // 2, 0, total // 3, total - total // 2 - total // 3])
    columns = choose_weighted(open_draws(20_000, 52), np.tile(weights, (20_000, 1)))
    assert 1 not in columns
    assert counts_follow(np.bincount(columns)[[0, 2, 3]], weights[[0, 2, 3]] / total)


def test_weighted_choice_with_a_limb_that_is_not_redrawn_is_rejected():
    total, n = 2**32 + 3, 20_000
    draws = open_draws(n, 53)
    first, second = draws.integers(np.full(n, 2)), draws.integers(np.full(n, 2**32))
    target = np.minimum(
        first * 2**32 + second, total - 1
    )  # the twin: cut off instead of drawn again
    assert not counts_follow(np.bincount(target // (total // 4 + 1), minlength=4), np.full(4, 0.25))


def test_every_row_has_its_own_weights():
    n = 24_000
    weights = np.zeros((n, 600), dtype=np.int64)
    rows = np.arange(n)
    weights[rows, rows % 500] = 3
    weights[rows, rows % 500 + 100] = 2**50 * (rows % 2) + (1 - rows % 2)
    columns = choose_weighted(open_draws(n, 54), weights)
    far = columns == rows % 500 + 100
    assert (far | (columns == rows % 500)).all()
    assert far[1::2].all()  # three parts in 2^50
    assert counts_follow(np.bincount(far[0::2].astype(int)), [0.75, 0.25])


def exponential_weights(nats):
    """2^50 exp(-nats), rounded up."""
    return np.ceil(2.0**50 * np.exp(-np.asarray(nats))).astype(np.int64)


def test_weights_with_a_floor_of_one_are_rejected():
    # 4,095 candidates 12 nats below the best have 2.5% together; counted in units of 2^-10, they get 80%.
    nats = np.array([0.0] + [12.0] * 4095)
    n, weights = 20_000, exponential_weights(nats)
    law = [weights[0] / weights.sum(), weights[1:].sum() / weights.sum()]
    assert law[1] == pytest.approx(0.0245, abs=1e-4)

    def tail_counts(candidates):
        columns = choose_weighted(open_draws(n, 55), np.broadcast_to(candidates, (n, 4096)))
        return np.bincount((columns > 0).astype(int), minlength=2)

    assert counts_follow(tail_counts(weights), law)
    floored = np.maximum(1, (2.0**10 * np.exp(-nats)).astype(np.int64))
    assert not counts_follow(tail_counts(floored), law)


def test_float32_gumbel_noise_cannot_choose_what_the_weights_can():
    # The largest and the smallest Gumbel value of a float32 uniform are 19.4 apart: beyond, probability 0.
    ends = np.array([2.0**-24, 1.0 - 2.0**-24], dtype=np.float32)
    least, most = (-np.log(-np.log(ends))).tolist()
    assert most - least < 19.5
    weights = exponential_weights([0.0, 19.5])
    assert columns_at(weights, [int(weights[0]) - 1, int(weights[0]), int(weights.sum()) - 1]) == [
        0,
        1,
        1,
    ]


# --- weighted choice with counts ---


def test_a_column_counts_for_as_many_candidates_as_it_stands_for():
    # Counted out: every target of [0, sum) once.
    generator = np.random.default_rng(60)
    for size in (1, 3, 40, 300):
        weights, counts = generator.integers(0, 5, size), generator.integers(0, 4, size)
        weights[-1], counts[-1] = 2, 3
        columns = columns_at(weights, list(range(int(weights @ counts))), counts)
        assert np.bincount(columns, minlength=size).tolist() == (weights * counts).tolist()


def test_columns_change_exactly_where_the_sums_of_huge_products_do():
    generator = np.random.default_rng(61)
    for size in (2, 50, 4096):
        weights = generator.integers(2**49, 2**50, size, endpoint=True)
        counts = generator.integers(0, 2**31, size)
        weights[[0, -1]], counts[[0, -1]] = 2**50, 2**31 - 1
        products = weights.astype(object) * counts.astype(object)
        ends = np.cumsum(products)
        assert ends[-1] > 2**81
        places = [*generator.integers(0, size, 40).tolist(), 0, size - 1]
        places = [place for place in places if products[place] > 0]
        firsts, lasts = (
            [ends[place] - products[place] for place in places],
            [ends[place] - 1 for place in places],
        )
        assert columns_at(weights, firsts, counts) == places
        assert columns_at(weights, lasts, counts) == places
        # The twin: products in floating point.
        floating = np.cumsum(weights.astype(float) * counts)
        assert (
            np.searchsorted(floating, np.array(lasts, dtype=float), side="right").tolist() != places
        )


@pytest.mark.parametrize("largest", [2**50, 2**20 + 7, 3])
def test_draws_follow_weights_times_counts(largest):
    weights = np.array([largest, largest // 2, largest // 3, 0, largest])
    counts = np.array([2**31 - 1, 2**30, 2**31 - 5, 2**31 - 1, 2**28 + 1])
    n = 40_000
    products = weights.astype(float) * counts
    columns = choose_weighted(open_draws(n, 62), np.tile(weights, (n, 1)), counts)
    assert 3 not in columns
    kept = [0, 1, 2, 4]
    law = products[kept] / products.sum()
    assert counts_follow(np.bincount(columns, minlength=5)[kept], law)
    own = np.stack([counts, counts[::-1]])[np.arange(n) % 2]
    columns = choose_weighted(open_draws(n, 63), np.tile(weights, (n, 1)), own)
    for half in range(2):
        products = weights[kept] * own[half, kept].astype(float)
        found = np.bincount(columns[half::2], minlength=5)[kept]
        assert counts_follow(found, products / products.sum())
    # The twins: counts left out; products that wrap.
    without = choose_weighted(open_draws(n, 64), np.tile(weights, (n, 1)))
    assert not counts_follow(np.bincount(without, minlength=5)[kept], law)
    if largest == 2**50:
        wrapped = np.abs(weights * counts)[kept].astype(float)
        assert not counts_follow((wrapped / wrapped.sum() * n).astype(int) + 1, law)


def test_a_row_without_weight_has_no_law():
    with pytest.raises(ConfigError, match="a weight above 0"):
        choose_weighted(open_draws(2, 56), np.array([[1, 0], [0, 0]]))
