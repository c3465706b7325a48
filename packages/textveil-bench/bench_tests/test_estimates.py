"""The bootstrap: against formulas, by simulation, and paired where texts are the same."""

import numpy as np
import pytest

from textveil.errors import ConfigError
from textveil_bench import estimates as bootstrap
from textveil_bench.estimates import (
    Estimate,
    Sample,
    compute_estimates,
    difference,
    draw_resamples,
    estimate_best,
    interpolate,
    ratio,
)

RNG = np.random.default_rng


def sample(sums, sizes=None, texts="t", **known):
    sums = np.asarray(sums, dtype=float)
    return Sample(
        texts=texts,
        sums=sums,
        sizes=np.ones(len(sums)) if sizes is None else np.asarray(sizes),
        **known,
    )


def one(values, weights=None, **known):
    values = np.asarray(values, dtype=float)
    sums = values if weights is None else values * weights
    return compute_estimates([sample(sums, weights, **known)])[0]


def test_a_resample_has_as_many_texts_and_any_of_them():
    counts = draw_resamples(50)
    assert counts.shape == (bootstrap.RESAMPLES, 50)
    assert (counts.sum(axis=1) == 50).all()
    # each count is binomial(50, 1/50): 100,000 of them have their mean and variance to three digits
    assert counts.mean() == pytest.approx(1)
    assert counts.var() == pytest.approx(0.98, abs=0.03)
    assert len({row.tobytes() for row in counts}) == bootstrap.RESAMPLES


def test_many_texts_are_drawn_in_pieces_and_each_resample_is_whole(monkeypatch):
    monkeypatch.setattr(bootstrap, "MAX_RESAMPLE_CELLS", 999)
    draw_resamples.cache_clear()
    pieces = draw_resamples(7).copy()
    draw_resamples.cache_clear()
    assert (pieces.sum(axis=1) == 7).all()
    assert pieces.var() == pytest.approx(6 / 7, abs=0.05)


def test_the_interval_of_a_mean_is_that_of_the_normal_approximation():
    values = RNG(1).normal(3, 2, 400)
    found = one(values).interval
    reach = 1.96 * values.std() / 20
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - reach, abs=0.15 * reach)
    assert found.high == pytest.approx(values.mean() + reach, abs=0.15 * reach)


def test_a_weighted_mean_is_a_ratio_of_sums_with_the_delta_methods_spread():
    rng = RNG(2)
    weights = rng.integers(1, 30, 500).astype(float)
    values = rng.random(500) * weights / 30  # long texts have more
    found = one(values, weights)
    mean = (values * weights).sum() / weights.sum()
    spread = np.sqrt(np.square(weights * (values - mean)).sum()) / weights.sum()
    assert found.value == pytest.approx(mean)
    assert found.draws.std() == pytest.approx(spread, rel=0.1)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """300 data sets of 100 texts: 95% of intervals hold the mean; a million to one that fewer than 87% do."""
    rng = RNG(3)
    held = sum(
        found.interval.low <= 0.3 <= found.interval.high
        for found in compute_estimates([sample(rng.random(100) < 0.3) for _ in range(300)])
    )
    assert held / 300 > 0.87
    assert held < 300  # and they are no wider than needed


def test_of_the_same_texts_a_difference_is_paired():
    rng = RNG(4)
    nature = rng.normal(0, 1, 300)
    better, worse = one(nature + 0.2), one(nature + 0.05 * rng.normal(size=300))
    paired = difference(better, worse).interval
    apart = np.hypot(better.draws.std(), worse.draws.std())
    assert paired.value == pytest.approx(better.value - worse.value)
    assert paired.high - paired.low < 0.2 * 3.92 * apart
    assert paired.low > 0


def test_of_other_texts_nothing_is_compared():
    for compare in (difference, ratio):
        with pytest.raises(ConfigError, match="same texts"):
            compare(one([1.0, 2.0]), one([1.0, 2.0], texts="others"))
    with pytest.raises(ConfigError, match="same texts"):
        interpolate([one([0.1, 0.2])], [one([1.0, 2.0], texts="others")], 0.1)
    with pytest.raises(ConfigError, match="same texts"):
        compute_estimates([sample([1.0]), sample([1.0], texts="others")])


def test_the_ratio_of_two_figures_above_chance():
    rng = RNG(5)
    right = rng.random(400)
    good, bad = one(right < 0.8), one(right < 0.65)
    found = ratio(good.subtract(0.5), bad.subtract(0.5))
    assert found.value == pytest.approx((good.value - 0.5) / (bad.value - 0.5))
    assert found.interval.low < found.value < found.interval.high
    brute = [
        ((right[rows] < 0.8).mean() - 0.5) / ((right[rows] < 0.65).mean() - 0.5)
        for rows in (rng.integers(0, 400, 400) for _ in range(2000))
    ]
    low, high = np.quantile(brute, (0.025, 0.975))
    assert found.interval.low == pytest.approx(low, abs=0.1)
    assert found.interval.high == pytest.approx(high, rel=0.1)
    assert (
        ratio(good.subtract(0.5), bad.subtract(0.9)).value == np.inf
    )  # nothing is a multiple of what is below chance


def constant(value):
    return Estimate(texts="t", value=value, draws=np.full(bootstrap.RESAMPLES, value))


def test_a_figure_at_equal_risk_lies_on_the_line_between_two_points():
    risks, figures = [constant(x) for x in (0.3, 0.1, 0.2)], [constant(y) for y in (0.9, 0.5, 0.6)]
    for level, expected in ((0.1, 0.5), (0.15, 0.55), (0.2, 0.6), (0.25, 0.75), (0.3, 0.9)):
        found = interpolate(risks, figures, level)
        assert found is not None
        assert found.value == pytest.approx(expected)
        assert found.draws == pytest.approx(expected)
    assert interpolate(risks, figures, 0.09) is None
    assert interpolate(risks, figures, 0.31) is None
    assert interpolate([], [], 0.1) is None


def test_at_equal_risk_both_risk_and_figure_are_drawn_again():
    rng = RNG(6)
    texts, words = 400, rng.integers(5, 15, 400).astype(float)
    guessed = [rng.binomial(words.astype(int), p) / words for p in (0.05, 0.15)]
    right = [rng.random(texts) < p for p in (0.55, 0.75)]
    found = interpolate([one(g, words) for g in guessed], [one(r) for r in right], 0.1)
    assert found is not None

    def by_hand(rows):
        x = [(g[rows] * words[rows]).sum() / words[rows].sum() for g in guessed]
        y = [r[rows].mean() for r in right]
        return np.interp(0.1, x, y)

    brute = [by_hand(rng.integers(0, texts, texts)) for _ in range(2000)]
    assert found.value == pytest.approx(by_hand(slice(None)))
    assert found.draws.std() == pytest.approx(np.std(brute), rel=0.1)
    fixed = interpolate([constant(g) for g in (0.05, 0.15)], [one(r) for r in right], 0.1)
    assert fixed is not None
    assert found.draws.std() != pytest.approx(fixed.draws.std(), rel=1e-6)


def test_a_resample_that_does_not_reach_the_level_counts_with_its_nearest_end():
    draws = np.linspace(0.05, 0.25, bootstrap.RESAMPLES)
    risks = [Estimate(texts="t", value=0.1, draws=draws), constant(0.3)]
    found = interpolate(risks, [constant(0.5), constant(0.7)], 0.12)
    assert found is not None
    assert found.draws[-1] == pytest.approx(0.5)
    assert found.draws[0] == pytest.approx(0.5 + 0.2 * 0.07 / 0.25)


def test_where_all_texts_are_alike_the_known_interval_stands():
    found = one(np.zeros(20), fallback_interval=(0.0, 0.17))
    assert (found.interval.low, found.interval.high) == (0.0, 0.17)
    above = found.subtract(0.1).interval
    assert (above.low, above.high) == pytest.approx((-0.1, 0.07))


def test_geometric_figures_are_means_of_logarithms():
    found = one(np.log([1.0, 4.0, 16.0]), geometric=True)
    assert found.value == pytest.approx(4.0)
    assert found.interval.low >= 1
    assert found.interval.high == pytest.approx(16.0)


def test_some_texts_only():
    whole = sample([1.0, 0.0, 0.0, 1.0], fallback_interval=(0.2, 0.8))
    part = whole.select_texts(np.array([True, False, False, True]))
    (found,) = compute_estimates([part])
    assert found.value == 1.0
    assert found.interval.low == found.interval.high == 1.0
    assert np.isnan(found.draws).sum() == (draw_resamples(4)[:, [0, 3]].sum(axis=1) == 0).sum() > 0


def test_the_best_of_several_that_are_equal_is_no_better_than_one():
    """Ten figures of 200 texts with the same mean: the largest is 1.5 standard errors above it, and told to be less."""
    off, figures = [], list[Estimate]()
    for seed in range(40):
        values = np.random.default_rng(seed).normal(size=(10, 200))
        figures = compute_estimates(
            [Sample(texts="t", sums=each, sizes=np.ones(200)) for each in values]
        )
        found = estimate_best(figures)
        assert found is not None
        off.append((max(each.value for each in figures), found.value))
    error = 1 / np.sqrt(200)
    plain, corrected = np.mean(off, axis=0) / error
    assert plain == pytest.approx(1.54, abs=0.4), (
        "the mean of the largest of ten; 0.59 / sqrt(40) is its error"
    )
    assert abs(corrected) < 0.6
    assert estimate_best(figures[:1]) is figures[0]
    assert estimate_best([]) is None
