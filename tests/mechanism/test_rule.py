"""Draws of the exponential rule against its law. Each check has a false-alarm rate of 1e-6; streams are seeded."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from textveil.errors import ConfigError
from textveil.guarantee import Guarantee
from textveil.guarantee.wording import format_number
from textveil.mechanism import Exponential, Layout, Select, Staircase
from textveil.mechanism import rule as rule_module
from textveil.mechanism.rule import EXPONENT_CAP, _compute_upper_weights, _find_bits
from textveil.pipeline import Privatizer
from textveil.randomness.streams import Draws, SeededRandomness
from textveil.table.embedding import EmbeddingTable
from textveil.table.pairwise import Pairs

RATE = 1e-6
RULE = Exponential()


def open_draws(n: int, seed: int) -> Draws:
    return next(SeededRandomness(seed).open([50] * (n // 50) + [n % 50]).split_rows(n))[1]


def table_of(rows: np.ndarray, metric: str = "euclidean") -> EmbeddingTable:
    words = [str(i) for i in range(len(rows))]
    return EmbeddingTable.build(
        name="t",
        words=words,
        vectors=rows.astype(np.float32),
        metric=metric,  # type: ignore[arg-type]
    )


def clusters() -> EmbeddingTable:
    """Copies, near copies, and rows far away, that eight bits tell apart badly."""
    rng = np.random.default_rng(4)
    centres = 40 * rng.normal(size=(6, 5))
    rows = np.repeat(centres, 5, axis=0) + 0.5 * rng.normal(size=(30, 5))
    rows[1] = rows[0]
    return table_of(rows)


def follows(drawn: np.ndarray, law: np.ndarray) -> bool:
    """Pearson's chi-square of candidates with five expected draws or more; the others together by their binomial."""
    counts, expected = np.bincount(drawn, minlength=len(law)), law * len(drawn)
    often = expected >= 5
    rest = stats.binomtest(
        int(counts[~often].sum()), len(drawn), float(min(law[~often].sum(), 1.0))
    ).pvalue
    found, wanted = counts[often], expected[often]
    if len(found) < 2:
        return bool(rest > RATE)
    return bool(
        min(rest, stats.chisquare(found, wanted / wanted.sum() * found.sum()).pvalue) > RATE / 2
    )


def law_of(
    table: EmbeddingTable, row: int, c: float, among: np.ndarray | None = None
) -> np.ndarray:
    """From scratch: distances of float64 differences, capped, no weights of the package."""
    vectors = table.take(slice(None)).astype(np.float64)
    away = np.sqrt(np.square(vectors - vectors[row]).sum(axis=1))
    law = np.exp(-np.minimum(c * away, EXPONENT_CAP)) * (1.0 if among is None else among)
    return law / law.sum()


@pytest.fixture(params=["chord", "euclidean", "clusters", "projection"])
def table(
    request: pytest.FixtureRequest, small_table: EmbeddingTable, raw_table: EmbeddingTable
) -> EmbeddingTable:
    return {
        "chord": lambda: small_table,
        "euclidean": lambda: raw_table,
        "clusters": clusters,
        "projection": lambda: small_table.project(3),
    }[request.param]()


def shortest(self: Pairs, asked: np.ndarray) -> Iterator[tuple[slice, int, np.ndarray]]:
    """The loosest bound there is: no distance is below 0."""
    yield slice(None), 0, np.zeros((len(asked), self.rows.size), np.float32)


@pytest.mark.parametrize("c", [0.0, 2.0, 1e300])
@pytest.mark.parametrize("loose", [False, True])
def test_draws_follow_the_law(table, c, loose, monkeypatch):
    """Exact whatever the bounds are, and where most rows refuse all that is proposed to them."""
    if loose:
        monkeypatch.setattr(Pairs, "bound_distances", shortest)
    n = 500 if loose else 4000
    rows, parameters = np.tile([0, 7, 7], n), np.tile([c, c, c / 2], n)
    drawn = RULE.draw(open_draws(3 * n, 1), table, rows, parameters)
    for i, (row, own) in enumerate([(0, c), (7, c), (7, c / 2)]):
        law = law_of(table, row, own)
        assert follows(drawn[i::3], law)
        written = np.exp(RULE.log_probs(table.distances(np.array([row])), np.array([own])))[0]
        assert written == pytest.approx(law, rel=1e-6)


@pytest.mark.parametrize("c", [2.0, 1e3])
def test_only_candidates_are_drawn(table, c):
    among = np.arange(len(table)) % 3 == 1
    drawn = RULE.draw(open_draws(1000, 2), table, np.full(1000, 6), np.full(1000, c), among)
    assert follows(drawn, law_of(table, 6, c, among))
    one = np.arange(len(table)) == 5
    assert (RULE.draw(open_draws(50, 3), table, np.arange(50) % 9, np.full(50, c), one) == 5).all()
    with pytest.raises(ConfigError, match="at least one row"):
        RULE.draw(open_draws(1, 3), table, np.array([0]), np.array([c]), np.zeros(len(table), bool))


def test_proposals_that_are_all_accepted_are_rejected(monkeypatch):
    """The twin: what the upper weights say is released as it is."""
    monkeypatch.setattr(
        Exponential, "compute_weights", lambda self, distances, c: np.full(distances.shape, 1)
    )
    monkeypatch.setattr(rule_module, "WEIGHT_SCALE", 1.0)
    table = clusters()
    monkeypatch.setattr(Pairs, "bound_distances", shortest)
    drawn = RULE.draw(open_draws(3000, 4), table, np.zeros(3000, np.int64), np.full(3000, 2.0))
    assert not follows(drawn, law_of(table, 0, 2.0))


def test_an_upper_weight_below_its_weight_is_noticed(table, monkeypatch):
    def longer(self: Pairs, asked: np.ndarray) -> Iterator[tuple[slice, int, np.ndarray]]:
        yield slice(None), 0, np.full((len(asked), self.rows.size), 1e6, np.float32)

    monkeypatch.setattr(Pairs, "bound_distances", longer)
    with pytest.raises(ArithmeticError, match="a bound of the exact draw"):
        RULE.draw(open_draws(100, 5), table, np.zeros(100, np.int64), np.ones(100))


@pytest.mark.parametrize("proposals", [1, 8])
def test_a_text_is_drawn_the_same_beside_any_other(table, proposals, monkeypatch):
    """Also where proposals are refused, the parts are small, and the neighbours are other words under other c."""
    monkeypatch.setattr(rule_module, "PROPOSALS", proposals)
    monkeypatch.setattr(Pairs, "bound_distances", shortest)
    rng = np.random.default_rng(6)
    sizes = np.array([7, 30, 0, 5, 12])
    rows, c = rng.integers(len(table), size=sizes.sum()), rng.uniform(0.5, 4, size=sizes.sum())

    def drawn(rows: np.ndarray, c: np.ndarray, limit: int) -> np.ndarray:
        chunks = SeededRandomness(7).open(sizes).split_rows(limit)
        return np.concatenate(
            [RULE.draw(draws, table, rows[part], c[part]) for part, draws in chunks]
        )

    together = drawn(rows, c, 100)
    assert (drawn(rows, c, 30) == together).all()
    monkeypatch.setattr(rule_module, "MAX_UPPER_WEIGHTS", 3 * len(table))
    monkeypatch.setattr(rule_module, "ROWS_AT_ONCE", 2)
    assert (drawn(rows, c, 100) == together).all()
    others, slopes = rng.permutation(rows), rng.permutation(c)
    own = slice(7, 37)
    others[own], slopes[own] = rows[own], c[own]
    assert (drawn(others, slopes, 100)[own] == together[own]).all()
    assert (drawn(others, slopes, 100) != together).any()


def test_no_rows_are_drawn_from_nothing(small_table):
    draws = open_draws(1, 8).select(np.zeros(1, bool))
    assert RULE.draw(draws, small_table, np.zeros(0, np.int64), np.zeros(0)).shape == (0,)


def test_slopes_beyond_float32_keep_the_floor(small_table):
    """At a slope that float32 cannot hold, all others keep the weight of the cap."""
    upper, _ = _compute_upper_weights(small_table, np.array([3]), np.array([1e300]), None)
    floor = 2.0 ** _find_bits(small_table) * np.exp(-EXPONENT_CAP)
    others = np.arange(60) != 3
    assert ((upper.ravel()[:60][others] >= floor) & (upper.ravel()[:60][others] < floor + 2)).all()


@pytest.mark.parametrize("c", [2.0, 6.0, 15.0, 60.0])
def test_upper_weights_of_the_default_table_are_above_and_near(minilm_s, c):
    rows = np.arange(11, len(minilm_s), 700)
    upper, sums = _compute_upper_weights(minilm_s, rows, np.full(len(rows), c), None)
    upper = upper.reshape(len(rows), -1)
    distances = minilm_s.distances(rows)
    weights = RULE.compute_weights(distances, np.full(len(rows), c)).astype(float)
    proposed = upper[:, : len(minilm_s)].astype(np.float64) * 2.0 ** (50 - _find_bits(minilm_s))
    assert (proposed >= weights).all()
    assert (upper[:, len(minilm_s) :] == 0).all()
    assert (sums.reshape(len(rows), -1).sum(axis=1) == upper.sum(axis=1, dtype=np.float64)).all()
    assert (weights.sum(axis=1) / proposed.sum(axis=1)).min() > 0.6  # the share that is accepted
    for row, own in zip(rows[::7], distances[::7], strict=True):
        apart = minilm_s.pairs.compute_distances(
            np.full(len(minilm_s), row), np.arange(len(minilm_s))
        )
        assert np.abs(apart - own).max() < 1e-9
        assert np.allclose(
            RULE.compute_weights(apart[None], np.array([c])),
            RULE.compute_weights(own[None], np.array([c])),
            1e-8,
            0,
        )


def test_draws_of_the_default_table_follow_its_law(minilm_s):
    """Candidates in twenty groups of equal mass, by the distance to the private row."""
    row, c, n = 12_345, 6.0, 20_000
    law = np.exp(RULE.log_probs(minilm_s.distances(np.array([row])), np.array([c])))[0]
    drawn = RULE.draw(open_draws(n, 9), minilm_s, np.full(n, row), np.full(n, c))
    order = np.argsort(-law)
    group = np.empty(len(law), np.int64)
    group[order] = np.minimum(np.cumsum(law[order]) * 20, 19).astype(np.int64)
    masses = np.bincount(group, weights=law)
    assert follows(group[drawn], masses / masses.sum())
    wrong = np.exp(RULE.log_probs(minilm_s.distances(np.array([row])), np.array([c * 1.02])))[0]
    assert not follows(group[drawn], np.bincount(group, weights=wrong))


# ---- local DP --------------------------------------------------------------------------------------------------------


def exact_local_dp(table: EmbeddingTable, c: float) -> float:
    """The largest ln-ratio of two words' laws at any output, by looking at all of them."""
    laws = np.log([law_of(table, row, c) for row in range(len(table))])
    return float((laws.max(axis=0) - laws.min(axis=0)).max())


@pytest.mark.parametrize("share", [0.2, 0.9, 1.0, 1.3, 3.0, 30.0, 1e4])
def test_the_bound_for_any_two_words_is_the_smaller_one(table, share):
    """`share` is of the c at which the longest distance is capped."""
    c = share * EXPONENT_CAP / (table.diameter * table.lipschitz)
    exact, bound = (
        exact_local_dp(table, c),
        float(RULE.compute_local_dp_cap(table, np.array([c]))[0]),
    )
    by_diameter = (
        float(RULE.compute_constant(table, np.array([c]))[0]) * table.lipschitz * table.diameter
        + RULE.rounding
    )
    assert exact - 1e-6 <= bound <= by_diameter * (1 + 1e-9)
    if share >= 3:  # near copies of rows make the constant's curve loose
        assert bound <= (1.2 if table.name == "t" else 1.05) * exact < by_diameter / 2


def test_without_a_curve_the_number_of_words_bounds_the_normalizers(monkeypatch):
    monkeypatch.setattr(EmbeddingTable, "curve", None)
    table = clusters()
    c = np.array([3.0, 300.0]) / table.diameter * EXPONENT_CAP
    bound = RULE.compute_local_dp_cap(table, c)
    assert bound == pytest.approx(EXPONENT_CAP + np.log(len(table)) + RULE.rounding)
    assert all(exact_local_dp(table, float(each)) <= bound[0] for each in c)


def test_statements_print_the_smaller_bound(small_table):
    def stated(epsilon: float, **options: Any) -> Guarantee:
        return (
            Privatizer("exponential", epsilon=epsilon, table=small_table, **options)
            .privatize("river castle")
            .guarantee
        )

    wide = stated(70.0)
    exact = exact_local_dp(small_table, float(wide.parameter[0]))
    assert exact - 1e-6 <= wide.epsilon_ldp <= 1.01 * exact
    assert 20 < wide.epsilon_ldp < 0.3 * wide.epsilon * small_table.diameter
    for said in (wide.summary(), wide.headline(), wide.explain()):
        assert f"at most {format_number(wide.epsilon_ldp)} for any two words" in said
    assert wide.ldp_per_word.tolist() == [wide.epsilon_ldp] * 2
    assert "The mechanism caps distances" in wide.explain()
    for epsilon in np.linspace(
        0.5, 5, 30
    ).tolist():  # rounding errors of the other bound make no difference
        narrow = stated(epsilon)
        assert narrow.epsilon_ldp == narrow.epsilon * small_table.diameter + RULE.rounding
        assert "caps distances" not in narrow.explain()
    uneven = stated(
        70.0, budget=None, protect={"always": ["river"]}, groups={"budgets": "heuristic"}
    )
    assert {group.epsilon for group in uneven.groups} <= {0.0, *uneven.ldp_per_word.tolist()}
    assert max(group.epsilon for group in uneven.groups) < 21


def test_other_rules_have_no_such_bound(small_table):
    select = Select(name="exponential", rule=RULE)
    layout = Layout.build(2)
    assert (
        select.compute_local_dp_cap(small_table, layout, np.array([3.0, 500.0])).tolist()
        == RULE.compute_local_dp_cap(small_table, np.array([3.0, 500.0])).tolist()
    )
    assert np.isinf(
        Select(name="krr", rule=Staircase(sizes=(1,))).compute_local_dp_cap(
            small_table, layout, np.array([3.0, 5.0])
        )
    ).all()
