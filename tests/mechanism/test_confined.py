"""Candidates that depend on the word: oracles on real rows, laws from scratch, and the pairs for which something holds.

Each statistical check has a false-alarm rate of 1e-6.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from textveil.errors import TableError
from textveil.mechanism import Block, Layout, confined, radius
from textveil.mechanism.confined import SensitiveList, compute_noise_scales
from textveil.mechanism.papers import custext, custext_plus, rantext, santext_plus
from textveil.randomness import Flags, Ints, Values
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable, load_table
from textveil_bench.audit.fit import compute_binomial_p

RATE = 1e-6


def laws(mechanism: Any, table: EmbeddingTable, parameter: float) -> Values:
    """ln P [private word, output]."""
    size = len(table)
    block = Block(layout=Layout.build(*[1] * size), rows=np.arange(size))
    found: Values = mechanism.log_probs(table, block, np.full(size, parameter))
    assert np.exp(found).sum(axis=1) == pytest.approx(np.ones(size), abs=1e-9)
    return found


def losses(found: Values) -> Values:
    """The largest |ln P(y | x) - ln P(y | x')| of each pair, [V, V]; infinite where only one of them can give y."""
    with np.errstate(invalid="ignore"):
        gaps = np.abs(found[:, None] - found[None])
    gaps[np.isneginf(found)[:, None] & np.isneginf(found)[None]] = 0
    worst: Values = gaps.max(axis=2)
    return worst


def draw(mechanism: Any, table: EmbeddingTable, row: int, parameter: float, n: int) -> Ints:
    block = Block(layout=Layout.build(*[50] * (n // 50)), rows=np.full(n, row))
    drawn: Ints = mechanism.privatize(table, block, np.full(n, parameter), rng=SeededRandomness(6))
    return drawn


def p_value(drawn: Ints, law: Values) -> float:
    counts, expected = np.bincount(drawn, minlength=len(law)), law * len(drawn)
    if counts[law == 0].any():
        return 0.0
    often = expected >= 5
    found = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    return float(
        stats.chisquare(found[wanted > 1e-9], wanted[wanted > 1e-9], sum_check=False).pvalue
    )


# ---- CusText ------------------------------------------------------------------------------------------------


def test_losses_inside_the_groups_of_the_first_8000_rows(minilm_s: EmbeddingTable) -> None:
    s8 = EmbeddingTable.build(
        name="s8", words=minilm_s.words[:8000], vectors=minilm_s.take(slice(0, 8000))
    )
    found = custext(k=20).compute_restricted_epsilon(
        s8, Layout.build(3), np.array([1.0, 6.0, 10.0])
    )
    assert found == pytest.approx([0.591, 3.38, 5.27], abs=0.005)


@pytest.mark.parametrize("nominal", [0.5, 4.0, 15.0])
@pytest.mark.parametrize("k", [2, 7, 20])
def test_inside_a_group_the_loss_is_what_is_said_and_across_groups_infinite(
    k: int, nominal: float, small_table: EmbeddingTable
) -> None:
    mechanism = custext(k=k)
    lost = losses(laws(mechanism, small_table, nominal))
    pairs = mechanism.mark_restricted_pairs(small_table, np.arange(60))
    assert (pairs == pairs.T).all()
    assert pairs.sum(axis=1).max() <= k
    assert np.isinf(lost[~pairs]).all()
    said = mechanism.compute_restricted_epsilon(small_table, Layout.build(1), np.array([nominal]))[
        0
    ]
    assert lost[pairs].max() == pytest.approx(said, rel=1e-9)  # exact
    assert said < nominal
    assert np.isinf(mechanism.spend(small_table, Layout.build(1), np.array([nominal]))).all()


def scratch(table: EmbeddingTable, row: int, members: Ints, nominal: float) -> Values:
    """CusText's law from distances: half the nominal times scores from 1 (nearest of the list) to 0 (farthest)."""
    rows = table.take(slice(None)).astype(np.float64)
    apart = np.linalg.norm(rows[members] - rows[row], axis=1)
    scores = (apart.max() - apart) / (apart.max() - apart.min())
    law = np.zeros(len(table))
    law[members] = np.exp(nominal / 2 * scores)
    return law / law.sum()


def test_lists_of_the_nearest_words_and_their_draws(small_table: EmbeddingTable) -> None:
    mechanism, row = custext(k=9, mapping="aggressive"), 14
    rows = small_table.take(slice(None)).astype(np.float64)
    members = np.argsort(np.linalg.norm(rows - rows[row], axis=1))[:9]
    law = scratch(small_table, row, members, 5.0)
    assert np.exp(laws(mechanism, small_table, 5.0)[row]) == pytest.approx(law, abs=1e-9)
    drawn = draw(mechanism, small_table, row, 5.0, 20_000)
    assert p_value(drawn, law) > RATE
    assert p_value(drawn, scratch(small_table, row, members, 4.5)) < RATE
    assert not mechanism.mark_restricted_pairs(small_table, np.arange(60)).any()
    assert mechanism.claim(small_table).restricted is None
    assert np.isinf(losses(laws(mechanism, small_table, 5.0))[~np.eye(60, dtype=bool)]).mean() > 0.9


def test_groups_are_made_round_the_first_word_that_is_in_none(small_table: EmbeddingTable) -> None:
    """Slowly: the first free word with its nearest free ones, until none is free."""
    rows = small_table.take(slice(None)).astype(np.float64)
    free, group, number = set(range(60)), np.empty(60, int), 0
    while free:
        seed = min(free)
        members = sorted(
            free, key=lambda other: (other != seed, np.linalg.norm(rows[other] - rows[seed]))
        )[:7]
        group[members] = number
        free -= set(members)
        number += 1
    pairs = custext(k=7).mark_restricted_pairs(small_table, np.arange(60))
    assert (pairs == (group[:, None] == group)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm", "minilm-s"])
def test_the_groups_that_ship_are_those_of_the_table(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is the first free word and the free ones nearest to it, the nearest first; ties but for rounding aside."""
    table = load_table(name)
    with monkeypatch.context() as computed:
        computed.setattr(confined, "partition", None)
        groups = confined.Groups(table, 20)
    rows = table.take(slice(None)).astype(np.float64)
    free = np.ones(len(table), bool)
    for number, members in enumerate(groups.members):
        members = members[members >= 0]
        assert free[members].all()
        assert members[0] == free.argmax()
        assert (groups.home[members] == number).all()
        free[members] = False
        apart = np.linalg.norm(rows[members] - rows[members[0]], axis=1)
        assert (np.diff(apart) > -1e-6).all()
        if number % 37 == 0:  # products of all are slow
            left = 2 - 2 * rows[free] @ rows[members[0]]
            assert apart[-1] <= math.sqrt(left.min()) + 1e-6
    assert not free.any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm", "minilm-s"])
def test_the_groups_that_ship_are_made_anew_the_same(name: str) -> None:
    """The first of them: where products round otherwise, two words as far from a seed change all that follows."""
    table = load_table(name)
    stored, made = confined.Groups(table, 20).members, confined.partition(table, 20)
    assert stored.shape == made.shape
    np.testing.assert_array_equal(stored[:50], made[:50])


def test_groups_that_are_not_of_the_table_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = load_table("minilm-s")
    real = np.load

    class Broken(dict[str, Any]):
        def __enter__(self) -> "Broken":
            return self

        def __exit__(self, *error: object) -> None:
            pass

    for change in (slice(0, 1), slice(3, 4)):

        def load(file: Any, change: slice = change) -> Broken:
            with real(file) as known:
                found = {name: known[name] for name in known}
            for members in found.values():
                members[change, 1] = members[change, 0]
            return Broken(found)

        monkeypatch.setattr(np, "load", load)
        with pytest.raises(TableError, match="must hold each of its rows once"):
            confined.Groups(table, 20)


def test_other_tables_and_other_k_have_groups_of_their_own(small_table: EmbeddingTable) -> None:
    assert confined._read_stored(load_table("minilm-s"), 19) is None
    assert confined._read_stored(load_table("minilm-s", metric="euclidean"), 20) is None
    other = EmbeddingTable.build(
        name="minilm-s", words=small_table.words, vectors=small_table.vectors
    )
    assert len(confined.Groups(other, 20).members) == 3


def test_stop_words_that_are_kept_come_out_and_are_in_no_pair() -> None:
    words = ["the", "anchor", "of", "apple", "castle", "river", "silver", "stone"]
    table = EmbeddingTable.build(
        name="stops", words=words, vectors=np.random.default_rng(2).normal(size=(8, 4))
    )
    kept, drawn = custext_plus(k=4), custext(k=4)
    law = np.exp(laws(kept, table, 3.0))
    stops = np.array([0, 2])
    others = np.array([1, 3, 4, 5, 6, 7])
    assert (law[stops] == np.eye(8)[stops]).all()
    assert law[others] == pytest.approx(np.exp(laws(drawn, table, 3.0))[others])
    pairs = kept.mark_restricted_pairs(table, np.arange(8))
    assert not pairs[stops].any()
    assert losses(np.log(law, where=law > 0, out=np.full((8, 8), -np.inf)))[
        pairs
    ].max() == pytest.approx(
        kept.compute_restricted_epsilon(table, Layout.build(1), np.array([3.0]))[0]
    )
    assert (draw(kept, table, 0, 3.0, 500) == 0).all()


# ---- RANTEXT ------------------------------------------------------------------------------------------------


def test_the_scale_of_the_noise_is_that_of_the_public_code(small_table: EmbeddingTable) -> None:
    rows = small_table.take(slice(None)).astype(np.float64)
    ranges = rows.max(axis=0) - rows.min(axis=0)
    for nominal, divisor in (
        (0.5, 0.5),
        (1.99, 1.99),
        (3.0, 9.3111 + 0.016582 * math.log(19.0647 * 3 - 38.1294)),
    ):
        assert compute_noise_scales(small_table, np.array([nominal]))[0] == pytest.approx(
            ranges / divisor, rel=1e-5
        )


REST = ((1, 0.8), (1, 3.0), (2, 0.8), (2, 3.0), (8, 0.8))


@pytest.mark.parametrize(
    ("dimension", "nominal"),
    [(8, 3.0), *(pytest.param(*case, marks=pytest.mark.slow) for case in REST)],
)
def test_the_numerical_law_is_that_of_draws(dimension: int, nominal: float) -> None:
    """200,000 draws; the law has some 280 radii, so that a candidate may be off by 1 per cent of its share besides."""
    rows = np.random.default_rng(4).normal(size=(12, dimension)) + 3
    table = EmbeddingTable.build(
        name=f"ball-{dimension}",
        words=list("abcdefghijkl"),
        vectors=rows.astype(np.float32),
        metric="euclidean",
    )
    n, mechanism = 200_000, rantext(nominal=nominal)
    law = np.exp(laws(mechanism, table, nominal)[5])
    counts = np.bincount(draw(mechanism, table, 5, nominal, n), minlength=12)
    within = stats.norm.isf(RATE / 24) * np.sqrt(law * (1 - law) / n) + 0.01 * law
    assert (np.abs(counts / n - law) <= within).all()
    wrong = np.exp(laws(mechanism, table, 1.7 * nominal)[5])
    assert (np.abs(counts / n - wrong) > within).any()


@pytest.mark.slow
def test_words_that_come_out_for_a_long_radius_alone_follow_the_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exact tests of 1,000,000 draws, of which many words get some hundred; with a coarse tail the law is refuted."""
    rows = np.random.default_rng(5).normal(size=(40, 8))
    table = EmbeddingTable.build(
        name="rare", words=[f"w{k}" for k in range(40)], vectors=rows, metric="euclidean"
    )
    mechanism, nominal = rantext(nominal=4.0), 4.0
    counts = np.bincount(draw(mechanism, table, 0, nominal, 1_000_000), minlength=len(table))
    assert (counts < 300).sum() > 5
    assert compute_binomial_p(counts, np.exp(laws(mechanism, table, nominal)[0])) > RATE
    confined._compute_parts.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(radius, "CUT_PROBABILITIES", radius.CUT_PROBABILITIES[::15])
        assert compute_binomial_p(counts, np.exp(laws(mechanism, table, nominal)[0])) < RATE
    confined._compute_parts.cache_clear()


def test_the_law_of_one_coordinate_in_closed_form() -> None:
    """Words 0, 1 and 3 on a line; the radius is exponential. For 0: 1 comes out where the radius is above 1."""
    table = EmbeddingTable.build(
        name="line",
        words=["a", "b", "c"],
        vectors=np.array([[1.0], [2.0], [4.0]], np.float32),
        metric="euclidean",
    )
    nominal, scale = 1.0, 3.0  # the range over the nominal epsilon, which is below 2
    reach = np.linspace(0, 120, 1_200_001)[1:]
    weights = np.stack(
        [np.exp(-nominal / 2 * apart / reach) * (apart < reach) for apart in (0.0, 1.0, 3.0)]
    )
    density = np.exp(-reach / scale) / scale
    wanted = np.trapezoid(weights / weights.sum(axis=0) * density, reach, axis=1)
    found = np.exp(laws(rantext(nominal=nominal), table, nominal)[0])
    assert found == pytest.approx(wanted / wanted.sum(), rel=0.01)


@pytest.mark.parametrize(
    ("nominal", "bound"), [(3.0, 9.9), pytest.param(10.0, 12.7, marks=pytest.mark.slow)]
)
def test_rantext_loses_far_more_than_its_nominal_epsilon(
    nominal: float, bound: float, minilm_s: EmbeddingTable
) -> None:
    """Even between outputs that both words can give: eight words of the default table, all outputs."""
    rows = np.arange(500, len(minilm_s), 2700)
    block = Block(layout=Layout.build(*[1] * len(rows)), rows=rows)
    found = rantext(nominal=nominal).log_probs(minilm_s, block, np.full(len(rows), nominal))
    assert found is not None
    finite = np.where(np.isfinite(found), found, np.nan)
    gaps = [np.nanmax(np.abs(finite[i] - finite[j])) for i in range(len(rows)) for j in range(i)]
    assert max(gaps) > bound


# ---- SanText+ -----------------------------------------------------------------------------------------------

C = 2.0


@pytest.fixture
def rare(monkeypatch: pytest.MonkeyPatch, small_table: EmbeddingTable) -> Flags:
    """The first 24 of 60 words are rare; the others are frequent."""
    found = np.arange(60) < 24
    monkeypatch.setattr(confined, "compute_shares", lambda table: np.where(found, 1e-6, 1e-3))
    confined._find_rare.cache_clear()
    return found


def broken(mechanism: Any, table: EmbeddingTable, listed: Flags, p: float) -> float:
    """By how much the worst pair breaks what section 4.2 of the paper gives on sensitive outputs; 0: it holds."""
    found = laws(mechanism, table, C)
    apart = table.distances(np.arange(60))
    gaps = found[:, None, listed] - found[None][:, :, listed]
    allowed = 2 * C * apart[:, :, None] + 1e-6
    both = listed[:, None] & listed
    free = ~listed[:, None] & listed  # from frequent to rare
    worst = (np.abs(gaps) - allowed)[both].max()
    mixed = (np.abs(gaps) - allowed - math.log(1 / p))[free].max()
    return float(max(worst, mixed))


@pytest.mark.parametrize("p", [0.05, 0.2, 0.9])
def test_rare_words_lose_their_distance_and_frequent_ones_the_coin_besides(
    p: float, small_table: EmbeddingTable, rare: Flags
) -> None:
    mechanism = santext_plus(c=C, share=0.4, p=p)
    assert (
        mechanism.mark_restricted_pairs(small_table, np.arange(60)) == (rare[:, None] & rare)
    ).all()
    assert broken(mechanism, small_table, rare, p) <= 0
    found = laws(mechanism, small_table, C)
    lost = losses(found)
    assert np.isinf(lost[~rare][:, rare]).all()  # a frequent word that comes out was there
    assert (
        mechanism.compute_restricted_epsilon(small_table, Layout.build(1), np.array([C]))[0]
        == 2 * C
    )
    stays = np.exp(found[~rare][:, ~rare])
    assert stays == pytest.approx((1 - p) * np.eye(36))
    rows = small_table.take(slice(None)).astype(np.float64)
    own = np.exp(-C * np.linalg.norm(rows[rare] - rows[40], axis=1))
    assert np.exp(found[40, rare]) == pytest.approx(p * own / own.sum(), rel=1e-6)
    if p < 0.5:  # ln(1/p) is needed: without it the claim would be false
        assert broken(mechanism, small_table, rare, 1.0) > 0.1


def test_a_frequent_word_that_goes_anywhere_is_caught(
    small_table: EmbeddingTable, rare: Flags, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the coin lands with a tenth of its probability."""
    monkeypatch.setattr(
        SensitiveList, "_threshold", property(lambda self: round(self.p * confined.COIN_RANGE / 10))
    )
    assert broken(santext_plus(c=C, share=0.4, p=0.2), small_table, rare, 0.2) > 0.1


@pytest.mark.parametrize("row", [3, 40])
def test_draws_of_rare_and_frequent_words_follow_the_law(
    row: int, small_table: EmbeddingTable, rare: Flags
) -> None:
    mechanism = santext_plus(share=0.4, p=0.2)
    drawn = draw(mechanism, small_table, row, C, 20_000)
    assert p_value(drawn, np.exp(laws(mechanism, small_table, C)[row])) > RATE
    assert p_value(drawn, np.exp(laws(mechanism, small_table, C * 1.3)[row])) < RATE
