"""Measures against figures worked out by hand, by enumeration and by other code.

Statistical tests raise a false alarm with probability 1e-6 or less, and each has a broken twin that it finds.
"""

import itertools
import json
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import sacrebleu
from scipy import stats
from tests.fixtures import NOUNS, gaussian_rows

from textveil.config import registry
from textveil.errors import ConfigError, UnknownName
from textveil.evaluate.attack import Case, Outcome
from textveil.guarantee import Claim
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable
from textveil_bench.measure import check_metrics, fluency, mapping, measure

CANARY = "zzcanaryzz"
ALARM = 1e-6


@pytest.fixture(scope="module")
def table():
    return EmbeddingTable.build(name="sixty", words=NOUNS, vectors=gaussian_rows(60, 8, 3))


def texts(count=12, longest=9):
    return [
        " ".join(NOUNS[(7 * i + 5 * k) % 60] for k in range(1 + i % longest)) for i in range(count)
    ]


def released(table, stub, rows, originals, **options):
    """A case whose protected words come out as these rows."""
    mechanism = stub(release=lambda *_: np.asarray(rows, np.int64))
    return Case.create(Privatizer(mechanism, epsilon=1, table=table, **options), originals)


def figures(case, *metrics, **options):
    found = measure(case, metrics=metrics, rng=SeededRandomness(1), **options)
    return {row.metric: row for row in found.rows if row.slice == "all"}


# ---- words -------------------------------------------------------------------------------------------


def test_retention_and_cosine_by_hand(stub):
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    three = EmbeddingTable.build(name="three", words=["anchor", "apple", "autumn"], vectors=vectors)
    case = released(three, stub, [0, 2, -1, 1], ["anchor apple", "the autumn anchor"])
    found = figures(case, "retention", "cosine")
    assert (found["retention"].value, found["retention"].n) == (
        0.25,
        4,
    )  # a placeholder keeps nothing
    assert found["cosine"].value == pytest.approx((1.0 + 0.8 + 0.0) / 3)
    assert found["cosine"].n == 3
    assert found["cosine of changed words"].value == pytest.approx(0.4)


def test_unknown_words_by_hand(table):
    originals = [f"the {CANARY} anchor", "apple, Autumn qwxyz!"]
    case = Case.create(Privatizer("noise", epsilon=5, table=table), originals)
    assert figures(case, "oov")["out of the table"].value == pytest.approx(2 / 5)
    kept_apart = Case.create(
        Privatizer("noise", epsilon=5, table=table, words={"oov": "placeholder"}), originals
    )
    assert measure(kept_apart, metrics=["oov"]).silent.keys() == {"oov"}


def test_a_word_of_several_pieces_counts_once(wordpiece_table):
    privatizer = Privatizer("noise", epsilon=5, table=wordpiece_table, words={"unit": "wordpiece"})
    case = Case.create(privatizer, ["anchoring λ apple"])
    assert len(case.view.output_rows) > 3
    row = figures(case, "oov")["out of the table"]
    assert (row.n, row.value) == (3, pytest.approx(1 / 3))
    assert measure(case, metrics=["perplexity"]).silent.keys() == {"perplexity"}


# ---- texts -------------------------------------------------------------------------------------------


def lcs(one, other):
    best = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, j in itertools.product(range(len(one)), range(len(other))):
        best[i + 1][j + 1] = (
            best[i][j] + 1 if one[i] == other[j] else max(best[i][j + 1], best[i + 1][j])
        )
    return best[-1][-1]


def test_rouge_is_that_of_the_longest_common_subsequence(table):
    originals = [text.title() + ", the end." for text in texts()]
    case = Case.create(Privatizer("noise", epsilon=25, table=table, seed=2), originals)
    view = case.view
    expected = []
    for b in range(len(originals)):
        span = slice(view.documents[b], view.documents[b + 1])
        one, other = (
            [word.lower() for word in words[span]] for words in (case.truth.words, view.items)
        )
        expected.append(lcs(one, other) / len(one))
    row = figures(case, "rouge-l")["Rouge-L"]
    assert row.value == pytest.approx(np.mean(expected))
    assert 0.3 < row.value < 1
    assert row.unit == "text"


def test_bleu_by_hand(table, stub):
    """One text keeps five of six words, the other all four; lengths are equal, so nothing is taken off for brevity."""
    case = released(
        table,
        stub,
        [0, 1, 2, 3, 4, 9, 5, 6, 7, 8],
        [" ".join(NOUNS[:6]).title(), " ".join(NOUNS[5:9]), ""],
    )
    found = figures(case, "bleu")
    first = (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25
    assert found["BLEU"].value == pytest.approx(100 * (first + 1) / 2)
    assert found["corpus BLEU"].value == pytest.approx(
        100 * (9 / 10 * 7 / 8 * 5 / 6 * 3 / 4) ** 0.25
    )
    assert found["BLEU"].n == found["corpus BLEU"].n == 2  # the text without words is left out


def test_corpus_bleu_has_the_jackknifes_interval(table):
    case = Case.create(Privatizer("noise", epsilon=15, table=table, seed=4), texts(10, longest=30))
    bounds = case.view.documents
    pairs = [
        tuple(
            " ".join(words[bounds[b] : bounds[b + 1]])
            for words in (case.view.items, case.truth.words)
        )
        for b in range(10)
    ]

    def bleu(chosen):
        outputs, inputs = zip(*chosen, strict=True)
        return sacrebleu.corpus_bleu(outputs, [inputs], tokenize="none", force=True).score

    without = [bleu(pairs[:b] + pairs[b + 1 :]) for b in range(10)]
    error = math.sqrt(9 / 10 * np.square(np.array(without) - np.mean(without)).sum())
    row = figures(case, "bleu")["corpus BLEU"]
    assert error > 1
    assert row.value == pytest.approx(bleu(pairs))
    assert row.high - row.value == pytest.approx(stats.t.ppf(0.975, 9) * error)


# ---- mapping sets ------------------------------------------------------------------------------------


def enumerated(shares, draws):
    """The expected number of distinct outputs, over all sequences of draws."""
    return sum(
        math.prod(shares[y] for y in outputs) * len(set(outputs))
        for outputs in itertools.product(range(len(shares)), repeat=draws)
    )


def fewest(shares):
    """The size of the smallest set that holds .95, over all sets."""
    for size in range(1, len(shares) + 1):
        if any(sum(chosen) >= 0.95 - 1e-12 for chosen in itertools.combinations(shares, size)):
            return size
    raise AssertionError


LAW = np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.95, 0.05, 0.0], [0.03, 0.03, 0.94]])


def test_a_share_of_just_enough_is_enough():
    """.35 + .3 + .2 + .1 is .95, and in floating point a little less."""
    law = np.array([[0.35, 0.3, 0.2, 0.1, 0.05]])
    assert mapping.MappingSizes.build_from_law(law, np.array([0]), 1).smallest == 4


@pytest.mark.parametrize("draws", [1, 2, 6])
def test_sizes_of_a_law_by_enumeration(draws):
    rows = np.array([0, 1, 1, 2])
    sizes = mapping.MappingSizes.build_from_law(LAW, rows, draws)
    np.testing.assert_allclose(sizes.distinct, [enumerated(own, draws) for own in LAW], rtol=1e-12)
    np.testing.assert_array_equal(sizes.unchanged, [0.5, 1.0, 0.05, 0.94])
    np.testing.assert_array_equal(sizes.smallest, [3, 1, 1, 2])
    np.testing.assert_array_equal(sizes.smallest, [fewest(own) for own in LAW])


def test_sizes_of_draws_by_hand():
    outputs = np.array([[2, 0, 1, 0], [-1, -1, -1, -1], [5, 5, -1, 5]])
    sizes = mapping.MappingSizes.build_from_draws(outputs, np.array([0, 0, 5]))
    np.testing.assert_array_equal(sizes.distinct, [3, 1, 2])
    np.testing.assert_array_equal(sizes.unchanged, [0.5, 0.0, 0.75])
    np.testing.assert_array_equal(sizes.smallest, [3, 1, 2])


def test_a_law_of_three_words():
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    three = EmbeddingTable.build(name="three", words=["anchor", "apple", "autumn"], vectors=vectors)
    case = Case.create(
        Privatizer("exponential", c=2.5, table=three), ["anchor autumn the apple", "apple anchor"]
    )
    weights = np.exp(-2.5 * np.linalg.norm(vectors[:, None] - vectors, axis=2))
    law = weights / weights.sum(axis=1, keepdims=True)
    found = figures(case, "mapping", draws=5)
    assert {row.n for row in found.values()} == {3}
    assert found["N_x"].value == pytest.approx(
        np.mean([enumerated(own, 5) for own in law]), rel=1e-6
    )
    assert found["N_w"].value == pytest.approx(np.diag(law).mean(), rel=1e-6)
    assert found["S_w"].value == np.mean([fewest(own) for own in law])
    assert "exact" in found["N_x"].note


def disagreement(case, law_of, draws):
    """Whether simulated sizes of a case are those of the law of another, by bounds that hold but for ALARM."""
    chosen = mapping.find_distinct(case, 60)
    view = law_of.view
    block, own = mapping._build_block(law_of, chosen)
    law = np.exp(view.mechanism.log_probs(view.table, block, view.parameter[own]))[
        np.searchsorted(own, chosen)
    ]
    exact = mapping.MappingSizes.build_from_law(law, case.truth.rows[chosen], draws)
    simulated = mapping.simulate_sizes(case, chosen, draws, SeededRandomness(5))
    m = len(chosen)
    kept = np.round(simulated.unchanged * draws).astype(int)
    tails = [
        stats.binomtest(int(k), draws, p).pvalue for k, p in zip(kept, exact.unchanged, strict=True)
    ]
    # whether an output occurs is negatively associated over outputs, so Bernstein's bound holds for their number
    occurs = -np.expm1(draws * np.log1p(-law))
    spread, reach = (occurs * (1 - occurs)).sum(), math.log(4 / ALARM)
    limit = reach / 3 + math.sqrt((reach / 3) ** 2 + 2 * reach * spread)
    off = abs(simulated.distinct.sum() - exact.distinct.sum())
    return min(tails) < ALARM / 2 / m, off > limit


@pytest.mark.slow
def test_the_simulation_agrees_with_the_law(table):
    case, other = (
        Case.create(Privatizer("exponential", c=c, table=table, seed=1), texts(30))
        for c in (4.0, 4.6)
    )
    assert disagreement(case, case, 400) == (False, False)
    assert disagreement(case, other, 400) == (
        True,
        True,
    )  # the broken twin draws with another parameter


def test_neighbours_stand_as_in_the_text(table):
    """A window without noise repeats what it released, and would keep every word that stands alone."""
    originals = [text.replace(" ", " the ", 1) for text in texts(20)]
    privatizer = Privatizer("stencil", L=4, sigma=0.9, window_over="all", table=table)
    case = Case.create(privatizer, originals)
    everywhere = np.arange(len(case.view.output_rows))
    kept = case.view.output_rows == case.truth.rows
    for part in mapping._split_positions(case, everywhere):
        for sizes in (
            mapping.simulate_sizes(case, part, 3, SeededRandomness(1)),
            mapping.compute_sizes(case, part, 3),
        ):
            assert sizes is not None
            np.testing.assert_array_equal(sizes.unchanged, kept[part])
            np.testing.assert_array_equal(sizes.distinct, 1)
    assert 0 < kept.mean() < 0.9
    alone = Case.create(privatizer, NOUNS)  # the broken twin: each word without its neighbours
    assert (alone.view.output_rows == alone.truth.rows).all()


def test_long_texts_are_cut_in_stretches(table, monkeypatch):
    monkeypatch.setattr(mapping, "MAX_STRETCH_POSITIONS", 10)
    monkeypatch.setattr(mapping, "MAX_PROBABILITIES", 25 * len(table))
    privatizer = Privatizer("stencil", L=3, sigma=0.9, table=table)
    case = Case.create(privatizer, [" ".join(NOUNS[:35]), "anchor", "", " ".join(NOUNS[20:33])])
    parts = list(mapping._split_positions(case, np.arange(49)))
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(49))
    assert [len(part) for part in parts] == [20, 29]  # stretches of 10, 10 | 10, 5, 1, 10, 3
    own = np.concatenate(
        [mapping.simulate_sizes(case, part, 2, SeededRandomness(1)).unchanged for part in parts]
    )
    inside = ~np.isin(np.arange(49), [9, 10, 19, 20, 29, 30, 45, 46])
    np.testing.assert_array_equal(own[inside], (case.view.output_rows == case.truth.rows)[inside])


@dataclass(frozen=True, kw_only=True)
class Told:
    """Releases the row that its parameter names."""

    def claim(self, table):
        return Claim(
            mechanism="told", kind="metric", metric=table.metric, table=table.name, diameter=2.0
        )

    def calibrate(self, table, layout, epsilon):
        return epsilon

    def parameters(self, table, layout):
        return None

    def spend(self, table, layout, parameter):
        return parameter

    def privatize(self, table, block, parameter, *, rng):
        return parameter.astype(np.int64) - 1


def test_every_position_keeps_its_own_parameter(table):
    originals = texts(30)
    rows = table.lookup(" ".join(originals).split())[0]

    class OwnRow:
        def assign(self, protection):
            return rows + 1.0

    case = Case.create(Privatizer(Told(), budget=OwnRow(), table=table), originals)
    assert figures(case, "mapping", draws=3)["N_w"].value == 1
    shifted = replace(case, view=replace(case.view, parameter=np.roll(case.view.parameter, 1)))
    assert figures(shifted, "mapping", draws=3)["N_w"].value < 0.2


def test_the_words_looked_at_are_distinct_and_always_the_same(table):
    originals = [*texts(30), "anchor anchor anchor"]
    cases = [Case.create(Privatizer("noise", epsilon=e, table=table), originals) for e in (5, 50)]
    one, other = (mapping.find_distinct(case, 25) for case in cases)
    np.testing.assert_array_equal(one, other)
    assert len(set(cases[0].truth.rows[one])) == len(one) == 25
    assert len(mapping.find_distinct(cases[0], 1000)) == len(set(cases[0].truth.rows))
    assert sorted(mapping.shuffle_texts(31)) == list(range(31))


def test_placeholders_map_to_one_output(table):
    found = measure(
        Case.create(Privatizer("placeholder", table=table), texts()),
        metrics=("retention", "cosine", "mapping"),
    )
    values = {
        row.metric: (row.value, row.low, row.high) for row in found.rows if row.slice == "all"
    }
    assert values["N_x"] == values["S_w"] == (1, 1, 1)  # sizes, and no share of 1
    assert values["N_w"][0] == values["retention"][0] == 0
    assert found.silent.keys() == {"cosine"}


# ---- perplexity --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A language model that believes the same at every position, and remembers where it was asked."""

    shares: np.ndarray
    name: str = "known"
    batch: int = 3
    asked: list = field(default_factory=list)

    def yield_batches(self, texts, positions):
        self.asked.append(([*texts.words], [*positions]))
        for which in np.array_split(np.arange(len(positions)), 2):
            yield which, np.tile(np.log(self.shares) + 3.0, (len(which), 1))


def test_perplexity_by_hand(table, stub, monkeypatch):
    shares = np.arange(1.0, 61) / np.arange(1.0, 61).sum()
    model = Known(shares)
    monkeypatch.setattr(fluency, "load_language_model", lambda *_, **__: model)
    case = released(table, stub, [5, 0, -1, 7, 1], [f"Anchor {CANARY}, apple", "the autumn bakery"])
    found = {
        row.setting["of"]: row
        for row in measure(case, metrics=["perplexity"]).rows
        if row.slice == "all"
    }
    # what counts: anchor -> row 5; autumn -> 7, bakery -> 1; an unknown word, a placeholder, marks and `the` do not
    before = math.sqrt(1 / shares[0] * math.sqrt(1 / shares[2] / shares[3]))
    after = math.sqrt(1 / shares[5] * math.sqrt(1 / shares[7] / shares[1]))
    assert found["original"].value == pytest.approx(before)
    assert found["released"].value == pytest.approx(after)
    assert found["released / original"].value == pytest.approx(after / before)
    assert found["original"].n == 2
    assert found["original"].low < before < found["original"].high
    (private, positions), (public, again) = model.asked
    assert [private[i] for i in positions] == ["Anchor", "autumn", "bakery"]
    assert positions == again
    assert private[1] == CANARY
    assert public == [NOUNS[5], NOUNS[0], ",", "", "the", NOUNS[7], NOUNS[1]]


def test_no_more_words_are_hidden_than_planned(table, echo, monkeypatch):
    model = Known(np.full(60, 1 / 60))
    monkeypatch.setattr(fluency, "load_language_model", lambda *_, **__: model)
    monkeypatch.setattr(fluency, "MAX_HIDDEN_WORDS", 20)
    case = Case.create(Privatizer(echo, epsilon=1, table=table), texts(30))
    row = measure(case, metrics=["perplexity"]).rows[0]
    assert len(model.asked[0][1]) == 20
    assert row.n < 30
    assert row.value == pytest.approx(60)


@pytest.mark.slow
def test_the_bundled_model_is_surprised_by_noise(minilm_s):
    originals = [
        "the doctor told the patient to take two tablets every morning",
        "the film is a charming journey",
    ]
    kept, changed = (
        {
            row.setting["of"]: row.value
            for row in measure(case, metrics=["perplexity"]).rows
            if row.slice == "all"
        }
        for case in (
            Case.create(Privatizer("noise", epsilon=epsilon, table=minilm_s, seed=1), originals)
            for epsilon in (1e6, 1)
        )
    )
    assert kept["released / original"] == pytest.approx(1)
    assert kept["original"] == changed["original"]
    assert 1 < kept["original"] < len(minilm_s)
    assert changed["released / original"] > 10


# ---- together ----------------------------------------------------------------------------------------


def test_everything_is_plain_and_holds_no_text(table, monkeypatch):
    monkeypatch.setattr(fluency, "load_language_model", lambda *_, **__: Known(np.full(60, 1 / 60)))
    case = Case.create(
        Privatizer("noise", epsilon=5, table=table, seed=1),
        [*texts(), f"the {CANARY} bakery", "", "the"],
    )
    steps = set()
    found = measure(case, draws=20, report=lambda step, done, total: steps.add(step))
    document = found.to_json()
    printed = json.dumps(document, allow_nan=False)
    assert CANARY not in printed + repr(found)
    assert not [noun for noun in NOUNS if noun in printed]
    assert (document["texts"], document["protected"]) == (15, len(case.view.output_rows))
    assert {row["measure"] for row in document["rows"]} == set(registry.list_names("measure"))
    assert {row["slice"] for row in document["rows"]} == {"all", "frequency", "length"}
    assert steps == {"mapping sets", "original words", "released words"}
    for row in found.rows:
        assert row.low <= row.value <= row.high


def test_a_single_text_has_intervals_without_ends(table, monkeypatch):
    monkeypatch.setattr(
        fluency, "load_language_model", lambda *_, **__: Known(np.arange(1.0, 61) / 1830)
    )
    case = Case.create(Privatizer("noise", epsilon=5, table=table, seed=1), [texts()[-1]])
    document = measure(case, metrics=["bleu", "perplexity"]).to_json()
    assert {row["high"] for row in document["rows"] if row["slice"] == "all"} == {None}


def test_the_same_seed_measures_the_same(table):
    case = Case.create(Privatizer("noise", epsilon=5, table=table, seed=1), texts())
    one, other, third = (
        measure(case, metrics=["mapping"], draws=30, rng=SeededRandomness(seed)).rows
        for seed in (1, 1, 2)
    )
    assert one == other != third


def test_what_is_refused(table):
    case = Case.create(Privatizer("noise", epsilon=5, table=table), texts())
    with pytest.raises(UnknownName, match="rouge-l"):
        measure(case, metrics=["rougel"])
    for draws, words in ((0, 1), (1, 0)):
        with pytest.raises(ConfigError, match="1 or more"):
            measure(case, draws=draws, words=words)
    assert check_metrics(["bleu", "oov", "bleu"]) == ("bleu", "oov")
    nothing = measure(
        Case.create(Privatizer("noise", epsilon=5, table=table), ["the", ""]),
        metrics=[name for name in check_metrics() if name != "perplexity"],
    )
    assert nothing.silent.keys() == {"retention", "cosine", "oov", "mapping"}


def lengths(case, *, draws, words):
    """A measure of another package, that takes two of the four keywords."""
    where = np.arange(len(case.view.released))
    yield Outcome(
        source="lengths",
        metric=f"{draws} {words}",
        unit="text",
        where=where,
        values=where.astype(float),
    )


def nothing(case):
    """One that finds nothing."""
    return iter(())


def test_measures_of_the_registry_get_what_their_signature_names(table, monkeypatch):
    for name in ("lengths", "nothing"):
        entry = registry.Entry(target=f"{__name__}:{name}", summary="of a test")
        monkeypatch.setitem(registry.BUILT_IN["measure"], name, entry)
    case = Case.create(Privatizer("noise", epsilon=5, table=table), texts())
    found = measure(case, metrics=["lengths", "nothing"], draws=3, words=4)
    assert {(row.source, row.metric) for row in found.rows} == {("lengths", "3 4")}
    assert found.silent == {"nothing": "it gives no figure for such releases"}
    assert check_metrics() == tuple(registry.list_names("measure"))
