"""The bucketized rule: oracles on real rows, the bounds that hold and the one that does not, budgets, draws."""

import dataclasses
import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from textveil.errors import BudgetError
from textveil.mechanism import Block, BucketRule, Hybrid, Layout
from textveil.mechanism.buckets import BucketCache, Buckets, compute_losses
from textveil.mechanism.papers import cape
from textveil.mechanism.rule import EXPONENT_CAP, LOG_RATIO_ROUNDING
from textveil.randomness import Ids, Ints, Values
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable, Metric, load_table

RATE = 1e-6
ORACLE = {0: 8.61, 1: 9.07, 6: 11.21, 10: 12.68, 14: 14.24, 20: 16.77}
"""Nominal epsilon and exact loss on S8: additive, public edges, 50 buckets, the distance alone."""


def exact(table: EmbeddingTable, nominals: list[float], **options: Any) -> Values:
    made = cape(form="additive", edges="public", distance="chord", **options)
    assert isinstance(made.utility, Hybrid)
    assert isinstance(made.rule, BucketRule)
    return compute_losses(table, made.utility, made.rule, np.array(nominals))


@pytest.fixture(scope="module")
def s8(minilm_s: EmbeddingTable) -> EmbeddingTable:
    return EmbeddingTable.build(
        name="s8", words=minilm_s.words[:8000], vectors=minilm_s.take(slice(0, 8000))
    )


@pytest.mark.slow
def test_losses_of_the_first_8000_rows(s8: EmbeddingTable) -> None:
    found = exact(s8, [0.0, 6.0])
    assert found == pytest.approx([ORACLE[0], ORACLE[6]], abs=0.01)


@pytest.mark.slow
def test_all_losses_of_the_first_8000_rows(s8: EmbeddingTable) -> None:
    assert exact(s8, [float(each) for each in ORACLE]) == pytest.approx(
        list(ORACLE.values()), abs=0.01
    )


def slowly(table: EmbeddingTable, nominal: float, buckets: int) -> float:
    """The exact loss word by word, with no code of the package: scores 1 - d / d_max, equal parts of [0, 1]."""
    rows = table.take(slice(None)).astype(np.float64)
    apart = np.linalg.norm(rows[:, None] - rows, axis=2)
    scores = 1 - apart / table.diameter
    law = np.empty_like(scores)
    for own, line in zip(scores, law, strict=True):
        groups: dict[int, list[int]] = {}
        for candidate, score in enumerate(own):
            groups.setdefault(min(int(score * buckets), buckets - 1), []).append(candidate)
        weights = {
            key: math.exp(nominal / 2 * own[members].mean()) for key, members in groups.items()
        }
        for key, members in groups.items():
            line[members] = weights[key] / sum(weights.values()) / len(members)
    return float(np.log(law.max(axis=0) / law.min(axis=0)).max())


@pytest.mark.parametrize(("nominal", "buckets"), [(0.0, 5), (6.0, 5), (20.0, 50), (6.0, 1)])
def test_losses_of_a_small_table_word_by_word(
    nominal: float, buckets: int, small_table: EmbeddingTable
) -> None:
    found = exact(small_table, [nominal], buckets=buckets)[0]
    assert found == pytest.approx(slowly(small_table, nominal, buckets), abs=1e-9)
    if buckets > 1:
        assert abs(found - slowly(small_table, nominal + 1, buckets)) > 0.01


# ---- bounds ---------------------------------------------------------------------------------------------


def instances(count: int) -> list[tuple[Buckets, float]]:
    """Scores in [0, 1] of some words for some candidates, of many shapes, in equal parts of [0, 1]; and a nominal."""
    rng = np.random.default_rng(3)
    made = []
    for _ in range(count):
        words, candidates = rng.integers(2, 60), rng.integers(4, 30)
        a, b = np.exp(rng.uniform(-1.5, 3, size=(2, words, 1)))
        scores = rng.beta(a, b, size=(int(words), int(candidates)))
        made.append(
            (Buckets.build(scores, int(rng.integers(2, 60)), (0.0, 1.0)), float(rng.uniform(0, 2)))
        )
    return made


def test_two_bounds_hold_where_the_papers_fails() -> None:
    """R = 1, a = nominal / 2: min{a + ln(N |B|), 2a + ln(max|B| / min|B|) + ln(max N / min N)}, N non-empty buckets."""
    papers_fail = first_matters = second_matters = 0
    for cut, nominal in instances(400):
        laws = np.take_along_axis(
            cut.log_probs(np.full(len(cut.counts), nominal / 2)), cut.number, axis=1
        )
        loss = float((laws.max(axis=0) - laws.min(axis=0)).max())
        sizes, full = cut.counts[cut.counts > 0], (cut.counts > 0).sum(axis=1)
        one = nominal / 2 + math.log(full.max() * sizes.max())
        ratio = math.log(sizes.max() / sizes.min())
        other = nominal + ratio + math.log(full.max() / full.min())
        assert loss <= min(one, other) + 1e-9
        papers_fail += loss > nominal + ratio + 1e-9
        first_matters += one < other
        second_matters += other < one
    assert papers_fail >= 20
    assert min(first_matters, second_matters) >= 20


def test_what_is_promised_bounds_any_scores(small_table: EmbeddingTable) -> None:
    """The bound for any context, on scores that make it large: one bucket with one word, one with all others."""
    made = cape(context="public", bound=1.0, floor=0.0, edges="public")
    assert isinstance(made.utility, Hybrid)
    assert isinstance(made.rule, BucketRule)
    for buckets in (2, 50, 4000):
        rule = BucketRule(buckets=buckets, edges="public")
        most = min(buckets, (len(small_table) + 1) // 2)
        few = np.zeros(len(small_table))
        few[-1] = 1.0  # the last candidate alone in the best bucket: near certain
        many = np.concatenate((np.zeros(len(few) - most + 1), np.linspace(0, 1, most)[1:]))[::-1]
        cut = Buckets.build(np.stack([few, many]), buckets, (0.0, 1.0))
        for nominal in (0.0, 5.0, 39.0, 60.0):
            laws = np.take_along_axis(cut.log_probs(np.full(2, nominal / 2)), cut.number, axis=1)
            worst = float(np.abs(laws[0] - laws[1]).max())
            promised = rule.compute_loss(small_table, made.utility, np.array([nominal]))[0]
            assert promised == pytest.approx(
                min(nominal / 2, EXPONENT_CAP)
                + math.log(most * (len(small_table) - most + 1))
                + LOG_RATIO_ROUNDING
            )
            assert worst <= promised
            if buckets == 2 and nominal >= 39:
                assert worst > promised - 1.5  # nearly reached


@pytest.mark.parametrize("most", [None, 3])
def test_rows_that_are_known_have_the_buckets_of_rows_that_are_cut(
    most: int | None, small_table: EmbeddingTable
) -> None:
    made = cape(form="product", distance="chord")
    assert isinstance(made.utility, Hybrid)
    assert isinstance(made.rule, BucketRule)
    known = BucketCache(made.rule, small_table, made.utility, max_rows=most)
    rng = np.random.default_rng(2)
    for size in (1, 3, 2, 7, 3, 1):
        rows = rng.integers(len(small_table), size=size)
        found = known.get(rows)
        scores = made.utility.score_rows(small_table, rows, None).get_values()
        expected = made.rule.assign_buckets(small_table, made.utility, scores)
        assert (found.number == expected.number).all()
        assert (found.counts == expected.counts).all()
        assert np.allclose(found.means, expected.means, rtol=1e-12)


def test_a_word_that_comes_again_is_scored_once(
    small_table: EmbeddingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[int] = []
    near = Hybrid.score_distances

    def counted(self: Hybrid, table: EmbeddingTable, rows: Ids) -> Values:
        scored.extend(rows.tolist())
        return near(self, table, rows)

    monkeypatch.setattr(Hybrid, "score_distances", counted)
    monkeypatch.setattr("textveil.mechanism.select.MAX_SCORE_CELLS", 4 * len(small_table))
    rows = np.array([5, 7, 5, 5, 7, 9, 5, 9])
    layout = Layout(
        roles=np.ones(8, np.int8), documents=np.array([0, 3, 6, 8]), unit_of=np.arange(8)
    )
    made = cape(nominal=4.0)
    block = Block(layout=layout, rows=rows)
    made.privatize(small_table, block, np.full(8, 4.0), rng=SeededRandomness(1))
    assert sorted(scored) == [5, 7, 9]


def test_the_papers_bound_is_what_published_says(small_table: EmbeddingTable) -> None:
    made = cape(nominal=1.0, form="additive", edges="public", distance="chord", buckets=50)
    said = made.build_paper_claim(small_table, Layout.build(2), np.array([1.0, 3.0]))
    assert said is not None
    counts = np.array(
        [
            np.bincount(
                np.clip((50 * (1 - line / small_table.diameter)).astype(int), 0, 49), minlength=50
            )
            for line in small_table.distances(np.arange(60))
        ]
    )
    ratio = math.log(counts.max() / counts[counts > 0].min())
    assert said[1] == pytest.approx([1 + ratio, 3 + ratio])
    assert said[0].kind == "ldp"


# ---- budgets --------------------------------------------------------------------------------------------

MODES = ("none", "original", "released", "public")


@settings(max_examples=60, deadline=None)
@given(
    mode=st.sampled_from(MODES),
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    rare=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_budgets_come_back_as_what_is_spent(
    mode: Any, sizes: list[int], rare: float, seed: int, small_table: EmbeddingTable
) -> None:
    """No word spends more than it may; a word that binds its position (or its text) spends all of it."""
    made = cape(context=mode, bound=2.0, floor=0.0, lambda_L=0.5)
    layout = Layout.build(*sizes)
    few = made.spend(small_table, layout, np.zeros(sum(sizes)))
    wanted = few * (1 + rare) + np.random.default_rng(seed).uniform(0.01, 25, size=sum(sizes))
    nominal = made.calibrate(small_table, layout, wanted)
    assert (nominal >= 0).all()
    spent = made.spend(small_table, layout, nominal)
    assert (spent <= wanted * (1 + 1e-12)).all()
    least = [wanted[layout.texts == text].min() for text in range(len(sizes)) if sizes[text]]
    binding = (
        np.array(least)[np.unique(layout.texts, return_inverse=True)[1]]
        if mode == "original"
        else wanted
    )
    if (nominal <= 2 * EXPONENT_CAP).all():  # more does not sharpen a draw
        assert spent == pytest.approx(binding, rel=1e-9)
        assert made.calibrate(small_table, layout, spent * (1 + 1e-12)) == pytest.approx(
            nominal, abs=1e-6
        )


@pytest.mark.parametrize("mode", MODES)
def test_less_than_the_floor_is_refused_in_one_line(mode: Any, small_table: EmbeddingTable) -> None:
    made = cape(context=mode, bound=2.0, floor=0.0)
    layout = Layout.build(3)
    floor = made.spend(small_table, layout, np.zeros(3))
    made.calibrate(small_table, layout, floor * (1 + 1e-9))
    with pytest.raises(BudgetError, match="cape cannot promise less than epsilon") as refused:
        made.calibrate(small_table, layout, floor * 0.99)
    message = str(refused.value)
    assert "\n" not in message
    assert not any(word in message.split() for word in small_table.words)
    own = floor[0] / 3 if mode == "original" else floor[0]
    assert math.ceil(own * 1000) / 1000 == pytest.approx(
        float(message.split("epsilon ")[1].split()[0]), abs=1e-9
    )


# ---- draws ----------------------------------------------------------------------------------------------


def p_value(drawn: Ints, law: Values) -> float:
    expected = law * len(drawn)
    often = expected >= 5
    counts = np.bincount(drawn, minlength=len(law))
    found = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    return float(stats.chisquare(found[wanted > 0], wanted[wanted > 0]).pvalue)


@pytest.mark.parametrize("edges", ["scores", "public"])
def test_draws_follow_the_law(edges: Any, small_table: EmbeddingTable) -> None:
    made = cape(nominal=9.0, edges=edges, buckets=8)
    assert isinstance(made.rule, BucketRule)
    assert isinstance(made.utility, Hybrid)
    n = 20_000
    draws = next(SeededRandomness(5).open([50] * (n // 50)).split_rows(n))[1]
    one = made.utility.score_rows(small_table, np.array([11]), None).get_values()
    cut = made.rule.assign_buckets(small_table, made.utility, np.repeat(one, n, axis=0))
    rate = made.rule.compute_rate(small_table, made.utility, np.full(n, 9.0))
    drawn = made.rule.draw(draws, cut, rate)
    law = np.exp(made.compute_given_law(small_table, np.array([11]), np.array([9.0])))[0]
    assert p_value(drawn, law) > RATE
    other = np.exp(made.compute_given_law(small_table, np.array([11]), np.array([7.0])))[0]
    assert p_value(drawn, other) < RATE


def test_laws_come_in_the_order_of_the_words() -> None:
    table = EmbeddingTable.build(
        name="t",
        words=[f"w{i}a" for i in range(60)],
        vectors=np.random.default_rng(3).normal(size=(60, 8)),
    )
    mechanism = cape(nominal=6.0)
    rows = np.array([50, 3, 7, 3])
    together = mechanism.log_probs(table, Block(layout=Layout.build(4), rows=rows), np.full(4, 6.0))
    assert together is not None
    for row, law in zip(rows, together, strict=True):
        alone = mechanism.log_probs(
            table, Block(layout=Layout.build(1), rows=np.array([row])), np.array([6.0])
        )
        assert alone is not None
        assert np.array_equal(law, alone[0])


@pytest.mark.parametrize("form", ["product", "additive"])
def test_ties_at_edges_do_not_depend_on_what_else_is_asked_for(
    form: Literal["product", "additive"],
) -> None:
    """On a grid many distances are equal but for their last bits, and many scores lie on the edges of buckets."""
    grid = np.stack(np.meshgrid(np.arange(11.0), np.arange(11.0)), axis=2).reshape(-1, 2)
    table = EmbeddingTable.build(
        name="grid", words=[f"w{i}a" for i in range(121)], vectors=grid + 0.1, metric="euclidean"
    )
    utility = cape(form=form).utility
    alone = np.concatenate(
        [utility.score_rows(table, np.array([row]), None).get_values() for row in range(121)]
    )
    for others in (121, 60, 7):
        rows = np.arange(others)
        assert np.array_equal(utility.score_rows(table, rows, None).get_values(), alone[:others])


@pytest.mark.parametrize("name", ["minilm", "minilm-s"])
@pytest.mark.parametrize("distance", ["euclidean", "chord"])
def test_the_shipped_tables_have_their_true_losses(name: str, distance: Metric) -> None:
    table, mechanism = load_table(name), cape(distance=distance)
    spent = mechanism.spend(table, Layout.build(3), np.array([0.0, 6.0, 20.0]))
    assert (np.array([9.0, 11.6, 17.9]) < spent).all()
    assert (spent < np.array([10.2, 12.8, 18.7])).all(), (
        "the bound for any score is 13.9 at nominal 0"
    )


def test_a_table_that_took_a_shipped_name_does_not_get_its_losses() -> None:
    """Other rows, constants of their own, and the name of a table of the package."""
    rows = np.random.default_rng(4).normal(size=(2100, 4))
    words = [f"w{i}a" for i in range(len(rows))]
    plain = EmbeddingTable.build(name="minilm-s", words=words, vectors=rows)
    named = dataclasses.replace(plain, stored=load_table("minilm-s").stored)
    spent = cape().spend(named, Layout.build(1), np.zeros(1))
    assert spent[0] == pytest.approx(math.log(50 * (2100 - 49)), abs=1e-5)
