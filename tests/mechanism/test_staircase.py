"""The rank staircase: its law in closed form, its loss, why no other rank mechanism is better, and its draws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from textveil.errors import ConfigError
from textveil.mechanism import (
    Block,
    BucketRule,
    Exponential,
    Hybrid,
    Layout,
    Select,
    Staircase,
    staircase,
)
from textveil.mechanism.papers import krr, rankcape
from textveil.randomness import Ints, Values
from textveil.randomness.samplers import choose_weighted
from textveil.randomness.streams import Draws, SeededRandomness
from textveil.table.embedding import EmbeddingTable

RATE = 1e-6


def law_of(table: EmbeddingTable, row: int, epsilon: float, **options: object) -> Values:
    made = rankcape(**options)  # type: ignore[arg-type]
    return np.exp(made.compute_given_law(table, np.array([row]), np.array([epsilon])))[0]


def closed(
    table: EmbeddingTable, row: int, epsilon: float, sizes: tuple[int, ...], heights: Values
) -> Values:
    """From distances and exponentials alone."""
    rows = table.take(slice(None)).astype(np.float64)
    order = np.argsort(np.linalg.norm(rows - rows[row], axis=1))
    level = np.searchsorted(np.cumsum(sizes), np.arange(len(table)), side="right")
    weights = np.empty(len(table))
    weights[order] = np.exp(epsilon * heights[level])
    return weights / weights.sum()


LEVELS = [
    ((5,), None),
    ((2, 6), None),
    ((2, 6), (1.0, 0.9, 0.0)),
    ((1, 3, 8), (1.0, 0.5, 0.5, 0.0)),
    ((20, 50), None),
]


@pytest.mark.parametrize(("sizes", "heights"), LEVELS)
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 12.0])
def test_the_law_is_the_closed_form(
    sizes: tuple[int, ...],
    heights: tuple[float, ...] | None,
    epsilon: float,
    small_table: EmbeddingTable,
) -> None:
    steps = np.linspace(1, 0, len(sizes) + 1) if heights is None else np.array(heights)
    found = law_of(small_table, 9, epsilon, sizes=sizes, heights=heights)
    assert found == pytest.approx(closed(small_table, 9, epsilon, sizes, steps), rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 3.0, 8.0, 20.0])
@pytest.mark.parametrize("k", [1, 7, 59])
def test_the_best_k_have_the_mass_of_the_formula(
    k: int, epsilon: float, small_table: EmbeddingTable
) -> None:
    law = np.sort(law_of(small_table, 3, epsilon, k=k))[::-1]
    wanted = k * math.exp(epsilon) / (k * math.exp(epsilon) + len(small_table) - k)
    assert law[:k].sum() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 8.0, 30.0, 40.0, 700.0])
def test_no_loss_is_above_epsilon_where_weights_reach_their_floor(
    epsilon: float, small_table: EmbeddingTable
) -> None:
    """Weights are whole numbers from 1 to 2^50; beyond epsilon = 34.66 nothing more is lost."""
    made = rankcape(k=3)
    laws = made.compute_given_law(small_table, np.arange(60), np.full(60, epsilon))
    loss = float((laws.max(axis=0) - laws.min(axis=0)).max())
    spent = made.spend(small_table, Layout.build(1), np.array([epsilon]))[0]
    assert loss <= spent * (1 + 1e-9) + 1e-14
    assert spent <= epsilon
    assert spent == pytest.approx(min(epsilon, 50 * math.log(2)), abs=0.01)
    assert loss == pytest.approx(spent, rel=1e-6)  # sharp
    assert np.isfinite(laws).all()


@pytest.mark.parametrize("epsilon", [0.3, 5.0, 11.0])
def test_krr_keeps_its_word_with_the_closed_form(
    epsilon: float, small_table: EmbeddingTable
) -> None:
    laws = np.exp(krr().compute_given_law(small_table, np.arange(60), np.full(60, epsilon)))
    keeps = math.exp(epsilon) / (math.exp(epsilon) + 59)
    wanted = np.full((60, 60), (1 - keeps) / 59)
    np.fill_diagonal(wanted, keeps)
    assert laws == pytest.approx(wanted, rel=1e-9)


# ---- optimality ---------------------------------------------------------------------------------------------


def optimum(value: Values, epsilon: float) -> float:
    """The largest mean value of all laws over ranks with p_i <= e^epsilon p_j: a linear program."""
    size = len(value)
    rows = []
    for i in range(size):
        for j in range(size):
            if i != j:
                row = np.zeros(size)
                row[i], row[j] = 1, -math.exp(epsilon)
                rows.append(row)
    found = optimize.linprog(
        -value,
        A_ub=np.array(rows),
        b_ub=np.zeros(len(rows)),
        A_eq=np.ones((1, size)),
        b_eq=[1],
        bounds=(0, 1),
    )
    assert found.success
    return float(-found.fun)


@pytest.mark.parametrize("epsilon", [0.2, 1.5, 5.0])
def test_no_mechanism_of_ranks_beats_every_two_level_staircase(epsilon: float) -> None:
    """For values that fall with rank; and one level too many is worse."""
    rng = np.random.default_rng(8)
    table = EmbeddingTable.build(
        name="seven", words=list("abcdefg"), vectors=rng.normal(size=(7, 3))
    )
    for _ in range(12):
        value = np.sort(rng.exponential(size=7) ** rng.uniform(0.3, 3))[::-1]
        means = [np.sort(law_of(table, 2, epsilon, k=k))[::-1] @ value for k in range(1, 7)]
        assert max(means) == pytest.approx(optimum(value, epsilon), rel=1e-7)
        three = np.sort(law_of(table, 2, epsilon, sizes=(2, 2)))[::-1] @ value
        assert three < max(means)


# ---- draws ----------------------------------------------------------------------------------------------


def p_value(drawn: Ints, law: Values) -> float:
    """Pearson's chi-square; candidates with fewer than five expected draws count together."""
    expected = law * len(drawn)
    often = expected >= 5
    counts = np.bincount(drawn, minlength=len(law))
    found = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    return float(stats.chisquare(found[wanted > 0], wanted[wanted > 0]).pvalue)


@pytest.mark.parametrize(("sizes", "heights"), [*LEVELS, ((100, 100), None), ((60,), None)])
def test_nested_draws_follow_the_law(
    sizes: tuple[int, ...], heights: tuple[float, ...] | None, small_table: EmbeddingTable
) -> None:
    """Also with more ranks than words: then all words are alike."""
    made = rankcape(sizes=sizes, heights=heights)
    n, epsilon = 20_000, 3.0
    block = Block(layout=Layout.build(*[50] * (n // 50)), rows=np.full(n, 9))
    drawn = made.privatize(small_table, block, np.full(n, epsilon), rng=SeededRandomness(3))
    law = law_of(small_table, 9, epsilon, sizes=sizes, heights=heights)
    assert p_value(drawn, law) > RATE
    if sizes[0] >= len(small_table):
        assert law == pytest.approx(np.full(60, 1 / 60))
        assert p_value(drawn, law_of(small_table, 9, 0.5, k=20)) < RATE
    else:
        assert (
            p_value(drawn, law_of(small_table, 9, epsilon - 0.5, sizes=sizes, heights=heights))
            < RATE
        )


def test_draws_that_leave_out_the_nesting_are_caught(
    small_table: EmbeddingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: a level is drawn by its own weight, in place of what it has more than the next."""
    chosen = choose_weighted

    def flat(draws: Draws, steps: Ints, counts: Ints) -> Ints:
        return chosen(draws, np.cumsum(steps[:, ::-1], axis=1)[:, ::-1], counts=counts)

    monkeypatch.setattr(staircase, "choose_weighted", flat)
    n = 20_000
    block = Block(layout=Layout.build(*[50] * (n // 50)), rows=np.full(n, 9))
    made = rankcape(sizes=(2, 6))
    drawn = made.privatize(small_table, block, np.full(n, 3.0), rng=SeededRandomness(3))
    assert p_value(drawn, law_of(small_table, 9, 3.0, sizes=(2, 6))) < RATE


# ---- budgets --------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    mode=st.sampled_from(["none", "original", "released", "public"]),
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
def test_budgets_come_back_as_what_is_spent(
    mode: str, sizes: list[int], seed: int, small_table: EmbeddingTable
) -> None:
    """In `original` every position of a text has an equal share of the smallest budget in it."""
    made = rankcape(context=mode, bound=2.0, floor=0.0)  # type: ignore[arg-type]
    layout = Layout.build(*sizes)
    wanted = np.random.default_rng(seed).uniform(1e-3, 12, size=sum(sizes))
    parameter = made.calibrate(small_table, layout, wanted)
    spent = made.spend(small_table, layout, parameter)
    assert (spent <= wanted * (1 + 1e-12)).all()
    if mode == "original":
        for text in range(len(sizes)):
            own = layout.texts == text
            assert spent[own] == pytest.approx(
                np.full(own.sum(), wanted[own].min(initial=np.inf)), rel=1e-6
            )
    else:
        assert spent == pytest.approx(wanted, rel=1e-6)
    assert made.calibrate(small_table, layout, spent) == pytest.approx(parameter, rel=1e-6)


def test_a_budget_beyond_all_numbers_keeps_every_candidate_possible() -> None:
    epsilon = np.array([1e6])
    rule = Staircase(sizes=(1,))
    assert rule.compute_weights(epsilon).tolist() == [[2**50, 1]]
    assert rule.compute_loss(epsilon)[0] == pytest.approx(50 * math.log(2))


def test_utilities_and_rules_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="Distance"):
        Select(name="s", utility=Hybrid(), rule=Exponential())
    with pytest.raises(ConfigError, match="Hybrid"):
        Select(name="s", rule=BucketRule())


def with_twins() -> EmbeddingTable:
    """Rows of which some are equal, and some lie on one circle around others: ties of every kind."""
    rows = np.random.default_rng(3).normal(size=(40, 3))
    rows[7] = rows[3] = rows[30]
    rows[11] = 2 * rows[30]  # the same direction
    angles = np.arange(12) * np.pi / 6
    rows[20:32] = np.stack([np.cos(angles), np.sin(angles), np.ones(12)], axis=1)
    return EmbeddingTable.build(name="twins", words=[f"w{i}" for i in range(40)], vectors=rows)


@pytest.mark.parametrize("sizes", [(1,), (5,), (39,), (40,), (100,), (1, 4, 10), (3, 30, 40)])
def test_likelihoods_of_released_rows_are_columns_of_the_law(
    sizes: tuple[int, ...], small_table: EmbeddingTable
) -> None:
    for table in (small_table, with_twins()):
        mechanism = Select(name="steps", rule=Staircase(sizes=sizes))
        everyone = np.arange(len(table))
        block = Block(layout=Layout.build(*np.ones_like(everyone).tolist()), rows=everyone)
        law = mechanism.log_probs(table, block, np.full(len(table), 3.0))
        assert law is not None
        every, few = everyone[::-1][: len(table) - 3].copy(), everyone[3::11][::-1].copy()
        for rows in (
            few,
            every,
            few,
        ):  # by distances, from lists, and from lists that are there already
            found = mechanism.log_likelihoods(table, rows, 3.0)
            assert found is not None
            assert np.abs(found - law[:, rows].T).max() < 1e-6  # float32
        found = mechanism.log_likelihoods(table, every, 3.0)
        assert found is not None
        assert len(np.unique(np.round(found, 3))) > 1 or sizes[0] >= len(table)


def test_only_staircases_by_distance_are_read_backwards(small_table: EmbeddingTable) -> None:
    for mechanism in (
        Select(name="e", rule=Exponential(c=2.0)),
        Select(name="h", utility=Hybrid(), rule=Staircase()),
    ):
        assert mechanism.log_likelihoods(small_table, np.arange(3), 2.0) is None
