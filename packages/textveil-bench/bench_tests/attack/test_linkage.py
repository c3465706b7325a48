"""Linkage: ties and ranks worked by hand, masks that are unique, alike, or differ in one part only."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.fixtures import NOUNS, Stub, book_of

from textveil.config.frozen import dump_options
from textveil.errors import ConfigError, InputError
from textveil.evaluate.attack.attack_input import Case
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table.codebook import Books
from textveil_bench.attack.linkage import Linkage, _draw_pools, compute_expectations
from textveil_bench.attack.report import attack

CANARY = "Zyxqorvian"
ALIKE = [
    f"the {first} and the {second}" for first, second in zip(NOUNS[:30], NOUNS[30:], strict=True)
]
"""30 texts that show one mask."""


def link(
    privatizer: Privatizer, texts: list[str], seed: int = 1, **options: Any
) -> dict[tuple[str, str, int], Any]:
    """The values of every outcome by what was measured, from what, and among how many."""
    case = Case.create(privatizer, texts)
    outcomes = Linkage(**options).run(case, rng=SeededRandomness(seed))
    return {(o.metric, str(o.setting["from"]), int(o.setting["among"])): o.values for o in outcomes}


def harmonic(n: int) -> Fraction:
    return sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0))


def test_ranks_with_ties_are_means_over_all_orders():
    top, reciprocal = compute_expectations(np.array([0, 0, 1, 4]), np.array([0, 1, 2, 0]))
    assert top.tolist() == [1.0, 0.5, 0.0, 0.0]
    ranks = [[1], [1, 2], [2, 3, 4], [5]]
    np.testing.assert_allclose(
        reciprocal, [np.mean([1 / rank for rank in each]) for each in ranks], rtol=1e-14
    )


def test_an_original_with_a_mask_of_its_own_is_always_found(small_table):
    texts = [
        f"{stop} {noun}"
        for stop, noun in zip(["the", "of", "and", "with", "for"], NOUNS, strict=False)
    ]
    found = link(Privatizer("placeholder", table=small_table), texts)
    assert found["top-1", "mask", 5].tolist() == [1.0] * 5
    assert found["MRR", "mask", 5].tolist() == [1.0] * 5
    assert found["texts left", "mask", 5].tolist() == [1.0] * 5
    assert found["top-1", "length", 5].tolist() == [0.2] * 5
    assert ("top-1", "mask and words", 5) not in found  # nothing was drawn


def test_masks_that_are_alike_give_chance(small_table):
    found = link(Privatizer("placeholder", table=small_table), ALIKE)
    np.testing.assert_allclose(found["top-1", "mask", 30], 1 / 30)
    np.testing.assert_allclose(found["MRR", "mask", 30], float(harmonic(30) / 30))
    assert set(found["texts left", "mask", 30]) == {30.0}


def test_a_twin_that_wins_every_tie_is_told_from_chance(small_table, monkeypatch):
    def wins(better: Any, equal: Any) -> Any:
        return (better == 0).astype(float), 1 / (better + 1)

    monkeypatch.setattr("textveil_bench.attack.linkage.compute_expectations", wins)
    found = link(Privatizer("placeholder", table=small_table), ALIKE)
    assert not np.allclose(found["top-1", "mask", 30], 1 / 30)


def test_words_that_came_out_as_they_were_find_the_original(small_table, echo):
    found = link(Privatizer(echo, epsilon=1.0, table=small_table), ALIKE)
    assert set(found["top-1", "mask and words", 30]) == {1.0}


def test_words_that_say_nothing_add_nothing(small_table):
    nothing = Stub(release=lambda table, block: np.zeros(len(block.secret), np.int64))
    found = link(Privatizer(nothing, epsilon=1.0, table=small_table), ALIKE)
    # One release for all: the order of the 30 candidates is the same 30 times, so each rank comes up once.
    np.testing.assert_allclose(found["top-1", "mask and words", 30].sum(), 1.0)
    np.testing.assert_allclose(found["MRR", "mask and words", 30].sum(), float(harmonic(30)))


def test_rows_are_compared_by_the_sum_of_cosines(small_table):
    released = np.arange(60) % 7
    case = Case.create(
        Privatizer(Stub(release=lambda *_: released), epsilon=1.0, table=small_table), ALIKE
    )
    vectors = small_table.vectors.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = [
        [
            sum(
                vectors[released[2 * b + j]] @ vectors[case.truth.rows[2 * c + j]] for j in range(2)
            )
            for c in range(30)
        ]
        for b in range(30)
    ]
    wanted = [1 / sum(other >= scores[b][b] for other in scores[b]) for b in range(30)]
    outcomes = list(Linkage().run(case, rng=SeededRandomness(1)))
    found = next(o for o in outcomes if o.metric == "MRR" and o.setting["from"] == "mask and words")
    np.testing.assert_allclose(found.values, wanted)
    assert found.baseline == pytest.approx(float(harmonic(30) / 30))


def test_a_pool_holds_the_original_and_so_many_others(small_table):
    found = link(Privatizer("placeholder", table=small_table), ALIKE, pools=(2, 5, 100))
    assert {size for _, _, size in found} == {2, 5, 30}
    for size in (2, 5, 30):
        assert set(found["texts left", "mask", size]) == {float(size)}


def fair(pools: Any, others: list[int], p: float) -> bool:
    """Whether each other candidate came up about as often as it must; false alarms: 1e-6."""
    tail = 1e-6 / len(others) / 2
    low, high = binom.ppf(tail, len(pools), p), binom.isf(tail, len(pools), p)
    return all(low <= pools[:, i].sum() <= high for i in others)


def test_pools_are_fair_and_a_twin_of_first_comers_is_not():
    keys = next(SeededRandomness(5).open([3000]).split_rows(3000))[1].uniform(11)
    own = np.full(3000, 4)
    (pools,) = _draw_pools(keys, own, [3])
    assert pools[:, 4].all()
    assert (pools.sum(axis=1) == 3).all()
    others = [i for i in range(11) if i != 4]
    assert fair(pools, others, 0.2)
    assert not fair(np.sort(pools, axis=1)[:, ::-1], others, 0.2)


def test_equal_texts_are_one_candidate(small_table):
    privatizer = Privatizer("placeholder", table=small_table)
    once = link(privatizer, ALIKE)
    again = link(privatizer, ALIKE + ALIKE[:3], decoys=tuple(ALIKE))
    assert once.keys() == again.keys()
    np.testing.assert_allclose(again["top-1", "mask", 30], 1 / 30)


@pytest.mark.parametrize(
    "texts",
    [
        ["the anchor of apple", "the anchor  of apple"],
        ["the anchor of apple", "the Anchor of apple"],
    ],
)
def test_the_mask_is_more_than_its_skeleton(small_table, texts):
    found = link(Privatizer("noise", eta=1.0, table=small_table, words={"casing": "copy"}), texts)
    assert set(found["texts left", "skeleton", 2]) == {2.0}
    assert set(found["texts left", "mask", 2]) == {1.0}


def test_casing_that_is_not_released_tells_nothing(small_table):
    found = link(
        Privatizer("noise", eta=1.0, table=small_table),
        ["the anchor of apple", "the Anchor of apple"],
    )
    assert set(found["texts left", "mask", 2]) == {2.0}
    assert set(found["top-1", "mask and words", 2]) == {0.5}


@pytest.mark.parametrize(("epsilon", "left"), [(0.0, 30.0), (3.0, 30.0), (float("inf"), 1.0)])
def test_budgets_are_part_of_the_mask(small_table, epsilon, left):
    found = link(Privatizer("noise", epsilon=epsilon, table=small_table), ALIKE)
    assert set(found["texts left", "mask", 30]) == {left}


def test_unknown_words_are_part_of_the_mask(small_table):
    texts = ["the anchor of apple", "the anchor of qqqq", "the butter of rrrr"]
    words = {"oov": "placeholder"}
    found = link(Privatizer("noise", eta=1.0, table=small_table, words=words), texts)
    assert found["texts left", "mask", 3].tolist() == [1.0, 2.0, 2.0]


def test_decoys_with_unknown_words_are_no_error(small_table):
    privatizer = Privatizer("noise", eta=1.0, table=small_table, words={"oov": "error"})
    found = link(privatizer, ["the anchor"], decoys=("the qqqq", "of anchor"))
    assert found["texts left", "mask", 3].tolist() == [2.0]


def test_pieces_are_part_of_the_mask(wordpiece_table):
    texts = ["the anchor of apple", "the anchoring of apple", "the anchoring of butter"]
    privatizer = Privatizer(
        "noise", eta=500.0, table=wordpiece_table, words={"unit": "wordpiece"}, seed=1
    )
    found = link(privatizer, texts)
    assert found["texts left", "mask", 3].tolist() == [1.0, 2.0, 2.0]
    assert found["top-1", "mask and words", 3].tolist() == [1.0, 1.0, 1.0]


def test_groups_and_their_books_are_those_of_the_release(small_table, echo):
    """A word on the user's list is in another group, which the mask shows, and has the codes of another book."""
    table = small_table.coarsen(
        Books.build([book_of(small_table, 60)] * 2 + [book_of(small_table, 6)] * 2)
    )
    grouped: dict[str, Any] = {
        "protect": {"always": NOUNS[:10]},
        "groups": {"budgets": [40.0, 40.0, 50.0, 50.0]},
    }
    found = link(Privatizer("codebook", table=table, **grouped), ALIKE)
    assert set(found["texts left", "mask", 30]) == {
        10.0,
        20.0,
    }  # the first ten texts begin with a word of the list
    ungrouped = link(Privatizer(echo, epsilon=1.0, table=small_table), ALIKE)
    assert set(ungrouped["texts left", "mask", 30]) == {30.0}
    assert found["top-1", "mask and words", 30][:10].tolist() == [1.0] * 10


def test_chunks_change_nothing_but_the_draws(small_table, monkeypatch, echo):
    privatizer = Privatizer(echo, epsilon=1.0, table=small_table)
    whole = link(privatizer, ALIKE)
    monkeypatch.setattr("textveil_bench.attack.linkage.MAX_SCORED_PAIRS", 70)
    for key, values in link(privatizer, ALIKE).items():
        np.testing.assert_array_equal(values, whole[key])


def test_fewer_texts_than_wanted_are_said(small_table):
    case = Case.create(Privatizer("placeholder", table=small_table), ALIKE)
    notes = {
        o.setting["among"]: o.note
        for o in Linkage(pools=(10, 100)).run(case, rng=SeededRandomness(1))
    }
    assert notes == {10: "", 30: "there are 30 texts, not 100"}


def test_refusals(small_table):
    privatizer = Privatizer("placeholder", table=small_table)
    assert Linkage().refusal(Case.create(privatizer, []).view)
    alone = Case.create(privatizer, ALIKE[:1])
    assert Linkage().refusal(alone.view)
    assert not Linkage(decoys=("another",)).refusal(alone.view)
    assert not Linkage().refusal(Case.create(privatizer, ALIKE).view)
    with pytest.raises(ConfigError):
        Linkage(pools=(1,))


def test_decoys_are_shown_nowhere(small_table):
    made = Linkage(decoys=(CANARY,))
    case = Case.create(Privatizer("placeholder", table=small_table), ALIKE[:2])
    findings = attack(case, [made], rng=SeededRandomness(1))
    assert dump_options(made) == {"pools": (100, 10_000)}
    assert CANARY not in repr(made) + str(findings.to_json()) + repr(findings)
    for wrong in (CANARY, (CANARY, 5), (f"{CANARY} \ud800",)):
        with pytest.raises(InputError) as error:
            Linkage(decoys=wrong)  # type: ignore[arg-type]
        assert CANARY not in str(error.value)
