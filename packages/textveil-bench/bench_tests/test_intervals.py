"""Intervals against scipy's own, against simulation, and where they must fail."""

import numpy as np
import pytest
from scipy import stats

from textveil.errors import ConfigError
from textveil_bench import intervals


@pytest.mark.parametrize(("hits", "trials"), [(0, 7), (3, 7), (7, 7), (12, 400)])
@pytest.mark.parametrize("level", [0.9, 0.95, 1 - 1e-6])
def test_clopper_pearson_is_scipys(hits, trials, level):
    theirs = stats.binomtest(hits, trials).proportion_ci(level, method="exact")
    assert intervals.clopper_pearson(hits, trials, level) == pytest.approx(
        (theirs.low, theirs.high), rel=1e-9
    )


@pytest.mark.parametrize(
    ("hits", "trials", "level"), [(-1, 3, 0.9), (4, 3, 0.9), (0, 0, 0.9), (1, 3, 1.0)]
)
def test_clopper_pearson_refuses(hits, trials, level):
    with pytest.raises(ConfigError):
        intervals.clopper_pearson(hits, trials, level)


def test_independent_shares_get_the_exact_interval():
    values = np.array([1.0] * 30 + [0.0] * 70)
    found = intervals.mean(values, np.arange(100))
    theirs = stats.binomtest(30, 100).proportion_ci(0.95, method="exact")
    assert found.value == pytest.approx(0.3)
    # the estimated variance is 100/99 of the binomial one
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=2e-3)


def test_words_that_agree_within_texts_count_as_few():
    """Ten texts of a hundred equal words tell as much as ten words."""
    values = np.repeat([1.0, 0.0] * 5, 100)
    texts = np.repeat(np.arange(10), 100)
    clustered, naive = intervals.mean(values, texts), intervals.mean(values, np.arange(1000))
    ten = stats.binomtest(5, 10).proportion_ci(0.95, method="exact")
    assert clustered.high - clustered.low > 5 * (naive.high - naive.low)
    assert clustered.low < ten.low + 0.03
    assert clustered.high > ten.high - 0.03


def test_one_text_counts_its_words():
    found = intervals.mean(np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(4, np.int64))
    theirs = stats.binomtest(1, 4).proportion_ci(0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_no_variation_is_no_certainty(value):
    found = intervals.mean(np.full(100, value), np.arange(100) // 5)
    theirs = stats.binomtest(int(value * 20), 20).proportion_ci(
        0.95
    )  # 20 texts, whose words may be all alike
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


def test_means_get_students_interval():
    values = np.array([1.5, 2.0, 0.5, 4.0, 3.0])
    found = intervals.mean(values, np.arange(5))
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


def test_one_value_has_no_interval():
    assert intervals.mean(np.array([0.7]), np.zeros(1, np.int64)).high == np.inf


@pytest.mark.slow
def test_it_covers_the_truth():
    """Clustered shares: 95% intervals hold the truth in at least 92% of 2,000 runs.

    If they held it in exactly 95%, fewer than 1,840 would come about with probability below 1e-8.
    """
    random = np.random.default_rng(0)
    texts = np.repeat(np.arange(60), 12)
    inside = naive = 0
    for _ in range(2000):
        chance = random.beta(1.2, 2.8, 60)
        values = (random.random(720) < chance[texts]).astype(float)
        found = intervals.mean(values, texts)
        inside += found.low <= 0.3 <= found.high
        other = intervals.mean(values, np.arange(720))
        naive += other.low <= 0.3 <= other.high
    assert inside >= 1840
    assert naive < 1700  # the twin that takes words for independent


def test_a_mean_needs_values():
    with pytest.raises(ConfigError):
        intervals.mean(np.zeros(0), np.zeros(0, np.int64))


def test_sizes_that_are_all_one_are_no_share():
    ones = np.ones(40)
    assert intervals.mean(ones, np.arange(40)).low < 1
    found = intervals.mean(ones, np.arange(40), share=False)
    assert (found.low, found.value, found.high) == (1, 1, 1)
