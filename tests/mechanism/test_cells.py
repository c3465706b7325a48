"""Cells and counts of whole texts: their laws by enumeration, their draws, and defects that the tests must find.

Every comparison with draws has a false-alarm rate of 1e-6; streams are seeded.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from tests.whole_texts import (
    BINS,
    OTHERS,
    TWINS,
    Ball,
    Counted,
    Release,
    Reported,
    Responded,
    TextTwin,
    World,
    count_documents,
    open_draws,
)

from textveil.errors import BudgetError, ConfigError
from textveil.mechanism import NoisyCount, RandomizedResponse, SubsetSelection
from textveil.mechanism.cells import TRUE_WEIGHT, compute_other_weight
from textveil.randomness import Ints, SeededRandomness, Values

RATE = 1e-6
MANY = 40_000
"""Releases of each world, of several bins each."""

ADVANTAGE_ERROR = 5 * 0.5 * math.sqrt(2 / MANY)
"""Five standard errors of the difference of two shares, at most."""

EPSILONS = [1e-6, 0.1, 1 / 3, 1.0, 2.0, 4.0, 12.0, 31.0, 700.0, 1e6]


def follows(drawn: Ints, law: Values) -> bool:
    """Pearson's chi-square; what is expected less than five times is put together."""
    assert law.sum() == pytest.approx(1, abs=1e-12)
    counts, expected = np.bincount(drawn, minlength=len(law)), law * len(drawn)
    assert not counts[law == 0].any()
    often = expected >= 5
    found = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    keep = wanted > 0
    return bool(stats.chisquare(found[keep], wanted[keep]).pvalue > RATE)


def bound_loss(release: Release, first: World, second: World, many: int = MANY) -> float:
    """Returns a lower bound of the largest ln P(E | one world) - ln P(E | the other).

    Events are thresholds on sums of log-ratios, chosen on one half of the draws and counted on the other
    (Clopper and Pearson).
    """
    drawn = np.stack([release(first, many, 3), release(second, many, 5)])
    half, worst = many // 2, 0.0
    low = int(drawn.min())
    width = int(drawn.max()) - low + 1
    score = np.zeros((2, many))
    for column in np.moveaxis(drawn - low, 2, 0):
        counts = [np.bincount(world[:half], minlength=width) + 0.5 for world in column]
        score += (np.log(counts[1]) - np.log(counts[0]))[column]
    for one, other in ((score[1], score[0]), (-score[0], -score[1])):
        cuts = np.unique(np.quantile(one[:half], np.linspace(0, 0.98, 24))).tolist()
        bounds = [bound_at(one[:half], other[:half], cut) for cut in cuts]
        worst = max(worst, bound_at(one[half:], other[half:], cuts[int(np.argmax(bounds))]))
    return worst


def bound_at(one: Values, other: Values, cut: float) -> float:
    """Returns a lower bound of the loss of one event: a score of at least `cut`."""
    hits, many = [int((score >= cut - 1e-12).sum()) for score in (one, other)], len(one)
    if hits[0] == 0 or hits[1] == many:
        return -math.inf
    lowest = stats.beta.ppf(RATE / 4, hits[0], many - hits[0] + 1)
    highest = stats.beta.isf(RATE / 4, hits[1] + 1, many - hits[1])
    return math.log(lowest / highest)


def measure_advantage(release: Release, first: World, second: World, column: int) -> float:
    """Returns the total variation of one bin: the advantage of an attacker who knows all else."""
    drawn = [release(world, MANY, seed)[:, column] for world, seed in ((first, 7), (second, 9))]
    low = min(int(each.min()) for each in drawn)
    width = max(int(each.max()) for each in drawn) - low + 1
    counts = [np.bincount(each - low, minlength=width) for each in drawn]
    return int(np.maximum(counts[1] - counts[0], 0).sum()) / MANY


# ---- weights and epsilon ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_ratio_is_above_exp_epsilon(epsilon: float) -> None:
    weight = compute_other_weight(epsilon)
    assert 1 <= weight <= TRUE_WEIGHT
    with localcontext(prec=80):
        assert (Decimal(TRUE_WEIGHT) / weight).ln() <= Decimal(epsilon)
        if weight > 1:
            assert (Decimal(TRUE_WEIGHT) / (weight - 1)).ln() > Decimal(epsilon)
            printed = Decimal(RandomizedResponse(2, epsilon).loss)
            assert (Decimal(TRUE_WEIGHT) / weight).ln() <= printed <= Decimal(epsilon)
    assert RandomizedResponse(5, epsilon).loss == SubsetSelection(7, epsilon).loss


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("per_subject", [1, 3, 10_000])
def test_the_noise_is_enough_and_its_loss_is_rounded_up(epsilon: float, per_subject: int) -> None:
    made = NoisyCount(epsilon, per_subject)
    assert made.scale == Fraction(math.ceil(2**20 * per_subject / Fraction(epsilon)), 2**20)
    assert per_subject / made.scale <= Fraction(made.loss) <= Fraction(epsilon)
    assert Fraction(math.nextafter(made.loss, 0)) < per_subject / made.scale
    made.draw(open_draws(3, 0), np.zeros(3, np.int64))


@pytest.mark.parametrize(
    "epsilon", [0, -1, 0.0, math.nan, math.inf, -math.inf, 1e-7, 1e7, 10**400, "1", None, True]
)
def test_an_epsilon_that_is_none_is_refused(epsilon: float) -> None:
    for make in (
        lambda: RandomizedResponse(4, epsilon),
        lambda: SubsetSelection(4, epsilon),
        lambda: NoisyCount(epsilon),
    ):
        with pytest.raises(BudgetError, match=r"^epsilon must be a number"):
            make()


@pytest.mark.parametrize("codes", [1, 0, -3, 2.0, True, None, 2**16 + 1])
def test_a_number_of_codes_that_is_none_is_refused(codes: int) -> None:
    for law in (RandomizedResponse, SubsetSelection):
        with pytest.raises(ConfigError, match="number of codes"):
            law(codes, 1.0)


@pytest.mark.parametrize("per_subject", [0, -1, 1.0, True, 10_001])
def test_a_number_of_documents_that_is_none_is_refused(per_subject: int) -> None:
    with pytest.raises(ConfigError, match="documents counted of one subject"):
        NoisyCount(1.0, per_subject)


def test_rows_that_are_none_are_refused_and_not_shown() -> None:
    for made in (RandomizedResponse(4, 1.0), SubsetSelection(4, 1.0)):
        for codes in ([4123, 0], [-4123, 0], [0], [0.0, 1.0], [[0], [1]]):
            with pytest.raises(ConfigError) as refused:
                made.draw(open_draws(2, 0), np.array(codes))
            assert "4123" not in str(refused.value)
    for counts in ([-4123, 0], [2**53 + 1, 0], [0.5, 1.0]):
        with pytest.raises(ConfigError) as refused:
            NoisyCount(1.0).draw(open_draws(2, 0), np.array(counts))
        assert "4123" not in str(refused.value)
    with pytest.raises(ConfigError, match="a tally must have 4 counts"):
        SubsetSelection(4, 1.0).estimate(np.zeros(3, np.int64), 5)


# ---- L ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("codes", "epsilon"), [(2, 0.3), (4, 2.0), (7, 1.0), (7, 60.0)])
def test_a_drawn_code_has_the_law_of_its_weights(codes: int, epsilon: float) -> None:
    made = RandomizedResponse(codes, epsilon)
    law, weight = made.law(), compute_other_weight(epsilon)
    total = TRUE_WEIGHT + (codes - 1) * weight
    assert law == pytest.approx(
        (np.eye(codes) * (TRUE_WEIGHT - weight) + weight) / total, rel=1e-15
    )
    for code in (0, codes - 1):
        drawn = made.draw(open_draws(100_000, 1), np.full(100_000, code))
        assert follows(drawn, law[code])
        assert not follows(drawn, law[1 - code % 2]) or epsilon < 0.1


def test_a_public_choice_of_texts_stays_below_epsilon() -> None:
    made = RandomizedResponse(3, 2.0)
    choice = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]) / 2  # lists that overlap
    law = made.law() @ choice
    for code in range(3):
        assert follows(Responded(made)((code,), 100_000, 1)[:, 0], law[code])
    ratios = np.log(law[:, None] / law[None]).max()
    assert 0.5 < ratios < made.loss
    assert bound_loss(Responded(made), (0,), (1,)) <= made.loss


# ---- V ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "epsilon", "size"), [(2, 1.0, 1), (6, 0.5, 2), (7, 0.3, 3), (5, 4.0, 1)]
)
def test_a_drawn_set_has_the_law_of_its_weights(codes: int, epsilon: float, size: int) -> None:
    made = SubsetSelection(codes, epsilon)
    assert made.size == size
    sets = list(combinations(range(codes), size))
    weights = [
        [TRUE_WEIGHT if code in each else compute_other_weight(epsilon) for each in sets]
        for code in range(codes)
    ]
    totals = [sum(each) for each in weights]
    assert (
        len(set(totals)) == 1
    )  # the sum does not depend on the code, so the loss is that of the weights
    held = [sum(w for w, each in zip(weights[0], sets, strict=True) if k in each) for k in (0, 1)]
    assert made.hold_rate == Fraction(held[0], totals[0])
    assert made.other_rate == Fraction(held[1], totals[0])
    number = {sum(1 << k for k in each): i for i, each in enumerate(sets)}
    for code in (0, codes - 1):
        drawn = made.draw(open_draws(100_000, 2), np.full(100_000, code)) @ (1 << np.arange(codes))
        law = np.array([w / totals[code] for w in weights[code]])
        assert follows(np.array([number[bits] for bits in drawn.tolist()]), law)
        assert not follows(np.array([number[bits] for bits in drawn.tolist()]), np.roll(law, 1))
    assert bound_loss(Reported(made), (0,), (1,)) <= made.loss


def test_the_estimate_is_unbiased() -> None:
    made, truth = SubsetSelection(12, 1.0), np.arange(12) ** 2 * 100
    reports = int(truth.sum())
    drawn = made.draw(open_draws(reports, 4), np.repeat(np.arange(12), truth))
    found = made.estimate(drawn.sum(axis=0), reports)
    p, q = float(made.hold_rate), float(made.other_rate)
    deviation = np.sqrt(truth * p * (1 - p) + (reports - truth) * q * (1 - q)) / (p - q)
    assert (np.abs(found - truth) < 6 * deviation).all()
    assert (np.abs(found - reports / 12) > 6 * deviation).any()  # a test that can fail
    expected = truth * p + (reports - truth) * q
    estimated = made.estimate(expected.round().astype(np.int64), reports)
    assert estimated == pytest.approx(truth, abs=0.51 / (p - q))
    assert found.sum() == pytest.approx(reports)  # every set has as many codes


# ---- C ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_a_noisy_count_has_its_law_on_every_bin(epsilon: float) -> None:
    made, reach = NoisyCount(epsilon), 40
    steps = np.arange(-reach, reach + 1)
    decay = math.exp(-1 / made.scale)
    law = (1 - decay) / (1 + decay) * decay ** np.abs(steps)
    assert np.exp(made.log_probs(steps)) == pytest.approx(law, rel=1e-9)
    law[[0, -1]] += (1 - law.sum()) / 2  # the tails
    drawn = Counted(made)(OTHERS, 20_000, 6)
    noise = np.clip(drawn - count_documents(OTHERS), -reach, reach) + reach
    assert all(follows(column, law) for column in (*noise.T, noise.ravel()))
    assert not any(follows(column, law) for column in np.clip(noise + 1, 0, 2 * reach).T)


def test_one_document_more_changes_one_bin_by_at_most_epsilon() -> None:
    made, counts = NoisyCount(1 / 3), count_documents(OTHERS)
    outcomes = np.arange(-60, 61)
    for bin_ in range(BINS):
        more = counts.copy()
        more[bin_] += 1
        # in whole numbers: |z - h| - |z - h - 1| is 1 or -1, over the scale
        steps = np.abs(outcomes[:, None] - counts) - np.abs(outcomes[:, None] - more)
        assert (np.abs(steps).sum(axis=1) == 1).all()
        assert 1 / made.scale <= Fraction(made.loss)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_advantage_reaches_its_bound(epsilon: float) -> None:
    found = measure_advantage(Counted(NoisyCount(epsilon)), OTHERS, (*OTHERS, 4), 4)
    assert found == pytest.approx(math.tanh(epsilon / 2), abs=ADVANTAGE_ERROR)
    outcomes = np.arange(-300, 301)
    laws = [np.exp(NoisyCount(epsilon).log_probs(outcomes - step)) for step in (0, 1)]
    exact = np.maximum(laws[1] - laws[0], 0).sum()
    assert exact == pytest.approx(math.tanh(NoisyCount(epsilon).loss / 2), rel=1e-9)


# ---- defects ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.defect)
def test_a_defect_is_found_by_the_ratio_and_the_honest_law_passes(twin: TextTwin) -> None:
    assert bound_loss(twin.honest, twin.first, twin.second) <= twin.epsilon
    assert bound_loss(twin.broken, twin.first, twin.second) > twin.epsilon


def test_the_advantage_would_not_find_a_replacement_at_the_price_of_an_addition() -> None:
    (twin,) = (twin for twin in TWINS if twin.defect.startswith("replaced"))
    advantage = measure_advantage(twin.broken, twin.first, twin.second, 5)
    assert advantage <= math.tanh(twin.epsilon / 2) + ADVANTAGE_ERROR
    assert bound_loss(twin.broken, twin.first, twin.second) > 1.7


def test_a_ball_by_radius_loses_more_than_its_epsilon() -> None:
    (twin,) = (twin for twin in TWINS if "radius" in twin.defect)
    losses = []
    for ball in (twin.honest, twin.broken):
        assert isinstance(ball, Ball)
        laws = [weights / weights.sum() for weights in map(ball.compute_weights, range(12))]
        losses.append(max(float(np.log(one / other).max()) for one in laws for other in laws))
    assert losses[0] == pytest.approx(2.0, abs=1e-9)
    assert losses[1] > 2.5


# ---- size -------------------------------------------------------------------------------------------------


def test_a_million_codes_and_ten_thousand_bins_are_drawn_at_once() -> None:
    codes = np.arange(1_000_000) % 10_000
    drawn = RandomizedResponse(10_000, 4.0).draw(open_draws(len(codes), 8), codes)
    assert ((drawn >= 0) & (drawn < 10_000)).all()
    kept = RandomizedResponse(10_000, 4.0).law()[0, 0]
    assert (drawn == codes).sum() == pytest.approx(
        kept * len(codes), abs=6 * math.sqrt(kept * len(codes))
    )
    made = SubsetSelection(10_000, 1.0)
    assert (made.draw(open_draws(20, 8), codes[:20]).sum(axis=1) == made.size).all()
    assert SubsetSelection(2**16, 1e-6).draw(open_draws(1, 8), codes[:1]).sum() == 2**15
    assert RandomizedResponse(2**16, 1e-6).draw(open_draws(9, 8), codes[:9]).max() < 2**16
    assert len(NoisyCount(1.0).draw(open_draws(10_000, 8), np.zeros(10_000, np.int64))) == 10_000


def test_a_row_is_drawn_alike_alone_and_beside_others() -> None:
    codes = np.arange(50) % 6
    for made in (RandomizedResponse(6, 1.0), SubsetSelection(6, 1.0)):
        (_, together), *_ = SeededRandomness(3).open([1] * 50).split_rows(50)
        parts = [
            made.draw(draws, codes[part])
            for part, draws in SeededRandomness(3).open([1] * 50).split_rows(7)
        ]
        assert (made.draw(together, codes) == np.concatenate(parts)).all()
