"""The attacker who learned: a language in which words tell their neighbours, and one in which nothing is told."""

import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom
from tests.fixtures import NOUNS, Stub, book_of
from tests.lanes import first_of_each
from tests.models.conftest import byte_level, save

from textveil.config.frozen import dump_options
from textveil.errors import ConfigError, InputError, MissingExtra, ModelError
from textveil.evaluate.attack import Bayes, Case, trigram
from textveil.evaluate.attack import learned as module
from textveil.evaluate.attack.beam import BEAM_CANDIDATES, TrigramRatios
from textveil.evaluate.attack.knowledge import GENERAL_LIST_SIZES, learn, smooth_counts
from textveil.evaluate.attack.learned import Learned, _has_equal_words
from textveil.evaluate.attack.public_texts import drop_contained_texts, split_texts
from textveil.evaluate.attack.ranking_model import fit_logistic
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table import EmbeddingTable
from textveil.table.codebook import Books
from textveil_bench.attack import attack

C = 3.0

FEW = 1e-6
"""The false-alarm rate of tests that count."""

UNKNOWN = [f"zq{noun}" for noun in NOUNS[:6]]
"""Words outside the table."""


def written(count, seed, length=8):
    """Distinct texts in which every noun is followed by one of two, told by the noun itself."""
    draw = np.random.default_rng(seed)
    texts: set[str] = set()
    while len(texts) < count:
        word, words = draw.integers(60), []
        for _ in range(length):
            words.append(NOUNS[word])
            word = (7 * word + draw.integers(2)) % 60
        texts.add("the " + " ".join(words))
    return sorted(texts)


PUBLIC = tuple(written(400, 1))
PRIVATE, OTHERS = (
    tuple(text for text in written(120, seed) if text not in PUBLIC) for seed in (2, 3)
)


def learned(**options):
    return Learned(**{"public": PUBLIC, "simulated": 600, "candidates": 60, **options})


def case_of(table, texts=PRIVATE, name="exponential", **options):
    return Case.create(Privatizer(name, table=table, seed=4, **options), texts)


def outcomes(attacker, case, seed=6):
    return {outcome.metric: outcome for outcome in attacker.run(case, rng=SeededRandomness(seed))}


@pytest.fixture(scope="module")
def case(small_table):
    return case_of(small_table, c=C)


@pytest.fixture(scope="module")
def found(case):
    return outcomes(learned(), case)


def test_what_stands_around_tells_more_than_the_release_alone(case, found):
    bayes, *_ = Bayes(priors=("unigram",)).run(case, rng=SeededRandomness(6))
    top = found["top-1"]
    assert top.values.mean() > bayes.values.mean() + 0.15
    assert top.values.mean() > top.baseline + 0.3
    assert found["top-10"].values.mean() > top.values.mean()
    rank = found["mean reciprocal rank"]
    assert top.values.mean() < rank.values.mean() < found["top-10"].values.mean()
    assert top.note.startswith("a lower bound")
    assert [each.headline for each in found.values()] == [True, True, False, True]


def test_guesses_repeat_under_a_seed_and_differ_under_another(case, found):
    again, other = (
        outcomes(learned(), case, seed)["mean reciprocal rank"].values for seed in (6, 7)
    )
    assert np.array_equal(found["mean reciprocal rank"].values, again)
    assert not np.array_equal(again, other)


def test_guesses_are_made_without_the_private_texts(case):
    """The twin learns from them, too: other private texts then give other guesses."""
    lie = replace(
        case, truth=replace(case.truth, texts=OTHERS, words=("",) * len(case.truth.words))
    )

    def guess(attacker, given):
        return attacker(given).guess(given.view, [1], rng=SeededRandomness(6))[0].probability

    assert np.array_equal(*(guess(lambda given: learned(), each) for each in (case, lie)))
    leaks = [
        guess(lambda given: learned(public=(*PUBLIC, *given.truth.texts)), each)
        for each in (case, lie)
    ]
    assert not np.array_equal(*leaks)
    assert not outcomes(learned(), lie)["top-1"].values.any()


def test_texts_that_are_attacked_must_not_be_learned_from(case):
    with pytest.raises(ConfigError, match="1 are") as error:
        outcomes(learned(public=(*PUBLIC, PRIVATE[0])), case)
    assert PRIVATE[0] not in str(error.value)


def test_a_release_that_tells_nothing_leaves_what_stands_around(small_table):
    """The baseline is the same attacker without the release; one law is known, one is drawn."""
    nothing = Stub(release=lambda table, block: np.zeros(len(block.secret), np.int64))
    for privatizer in (
        Privatizer("rankcape", table=small_table, k=5, epsilon=1e-6, seed=4),
        Privatizer(nothing, epsilon=1.0, table=small_table),
    ):
        top = outcomes(learned(), Case.create(privatizer, PRIVATE))["top-1"]
        n = len(top.values)
        assert abs(top.values.mean() - top.baseline) <= binom.isf(FEW, n, 0.1) / n - 0.1


def test_a_release_without_noise_names_every_word(small_table):
    top = outcomes(learned(), case_of(small_table, c=60.0))["top-1"]
    assert top.values.mean() == 1.0


@pytest.mark.slow
def test_without_context_it_is_no_worse_than_the_bayes_attacker(small_table):
    """Texts of words drawn evenly: nothing can be learned, and nothing is lost but by chance."""
    draw = np.random.default_rng(8)
    texts = [" ".join(draw.choice(NOUNS, 8)) for _ in range(700)]
    case = case_of(small_table, texts[:300], c=3.0)
    top = outcomes(learned(public=tuple(texts[300:]), simulated=1600), case)["top-1"].values
    bayes = next(iter(Bayes(priors=("uniform",)).run(case, rng=SeededRandomness(6)))).values
    n = len(top)
    spread = np.sqrt((top != bayes).mean() / n)
    assert (top - bayes).mean() >= -5 * spread


@pytest.mark.slow
def test_unknown_words_are_guessed_and_their_stand_ins_are_no_hits(small_table):
    texts = [f"{text} {UNKNOWN[i % 6]}" for i, text in enumerate((*PUBLIC, *PRIVATE))]
    case = case_of(small_table, texts[-len(PRIVATE) :], c=60.0)
    last = np.array([word in UNKNOWN for word in case.secret_words])
    taught = outcomes(learned(public=tuple(texts[:-120])), case)["top-1"].values
    untaught = outcomes(learned(), case)["top-1"].values
    assert not untaught[last].any()  # though bayes names the row
    assert taught[last].mean() > 0.3
    assert untaught[~last].mean() > 0.9


def test_words_of_one_code_are_told_apart_by_what_stands_around(small_table):
    coarse = small_table.coarsen(book_of(small_table, 13))
    case = case_of(coarse, name="codebook", epsilon=8.0)
    top = outcomes(learned(), case)["top-1"]
    bayes = next(iter(Bayes(priors=("unigram",)).run(case, rng=SeededRandomness(6)))).values
    assert top.values.mean() > bayes.mean() + 0.1
    assert top.values.mean() > top.baseline + 0.1
    assert not _has_equal_words(case.view, small_table.lookup(case.secret_words)[0])


@pytest.mark.slow
def test_over_books_by_group_each_word_has_the_codes_of_its_own(small_table, monkeypatch):
    """The twin takes all words for words of the first book."""
    few, many = (book_of(small_table, codes) for codes in (2, 30))
    table = small_table.coarsen(Books.build([few, few, many, many]))
    grouped = {"protect": {"always": NOUNS[::2]}, "groups": {"budgets": [4.0, 4.0, 6.0, 6.0]}}
    case = case_of(table, name="codebook", **grouped)
    top = outcomes(learned(), case)["top-1"]
    bayes = next(iter(Bayes(priors=("unigram",)).run(case, rng=SeededRandomness(6)))).values
    fine = ~np.isin(case.secret_words, NOUNS[::2])
    assert bayes[fine].mean() > bayes[~fine].mean() + 0.1
    assert (
        top.values[~fine].mean() > bayes[~fine].mean() + 0.2
    )  # of 2 codes, what stands around tells nearly all
    assert top.values.mean() > top.baseline + 0.3
    monkeypatch.setattr(Books, "spread", lambda books, values: values[..., few.codes])
    assert outcomes(learned(), case)["top-1"].values.mean() < top.values.mean() - 0.1


@pytest.mark.slow
def test_equal_words_are_guessed_together(small_table):
    """Only where words that were released alike are known to be equal: the attacker finds that out by himself."""
    twice = [f"{text} and {text.removeprefix('the ')}" for text in PRIVATE]
    public = tuple(f"{text} and {text.removeprefix('the ')}" for text in PUBLIC)
    once = outcomes(learned(), case_of(small_table, c=C))["top-1"].values.mean()
    for consistent in (False, True):
        case = case_of(small_table, twice, c=C, words={"consistent": consistent})
        truth = case.view.table.lookup(case.secret_words)[0]
        assert _has_equal_words(case.view, truth) == consistent
        assert outcomes(learned(public=public), case)["top-1"].values.mean() > once - 0.05


def test_what_is_not_attacked_says_why(case, small_table):
    findings = attack(case, [Learned(), Bayes(priors=("uniform",))])
    assert "--public" in findings.refused["learned"]
    assert "10 different" in learned(public=PUBLIC[:4]).refusal(case.view)
    words = " ".join(PUBLIC[:3]).split()
    assert "10 different" in learned(public=[" ".join(words[:i]) for i in range(1, 20)]).refusal(
        case.view
    )
    assert "program" in learned().refusal(replace(case.view, program=None))
    nothing = Case.create(Privatizer("exponential", table=small_table, c=2.0), ["and the"])
    assert "no word" in learned().refusal(nothing.view)
    mixing = Privatizer("d-chi-stencil", table=small_table, eta=9.0, L=4, sigma=0.75)
    assert "one release" in learned().refusal(Case.create(mixing, PRIVATE[:2], releases=2).view)
    coded = case_of(
        small_table.coarsen(book_of(small_table, 13)),
        PRIVATE[:2],
        name="d-chi-stencil",
        eta=9.0,
        L=4,
        sigma=0.75,
    )
    assert "codes" in learned().refusal(coded.view)


@pytest.mark.slow
@pytest.mark.parametrize("window", [{"L": 2}, {"L": 3}, {"L": 3, "window_over": "all"}])
def test_words_that_were_mixed_are_told_apart(small_table, window):
    """Better than by what stands around alone, and than by whoever takes each released word for the private one."""
    mixed = {"name": "d-chi-stencil", "eta": 40.0, "sigma": 0.75, **window}
    case = case_of(small_table, **mixed)
    top = outcomes(learned(), case)["top-1"]
    shown = (case.view.output_rows == case.truth.table_rows).mean()
    assert top.values.mean() > top.baseline + 0.1
    assert top.values.mean() > shown
    assert "weighted sum" in top.note
    swapped = replace(
        case,
        view=replace(
            case.view, output_rows=np.roll(case.view.output_rows, len(case.view.output_rows) // 2)
        ),
    )
    lost = outcomes(learned(), swapped)["top-1"]  # what was released says nothing of the words
    assert lost.values.mean() < lost.baseline + 0.05


def test_public_texts_without_words_to_mix_are_refused(small_table):
    case = case_of(small_table, PRIVATE[:2], name="d-chi-stencil", eta=9.0, L=2, sigma=0.75)
    empty = [" ".join(["the", "and"][i >> bit & 1] for bit in range(5)) for i in range(20)]
    with pytest.raises(ConfigError, match="must contain words"):
        outcomes(learned(public=empty), case)


def test_an_estimated_law_says_so(small_table):
    case = case_of(small_table, PRIVATE[:40], name="noise", eta=9.0)
    top = outcomes(learned(draws=50), case)["top-1"]
    assert "50 draws" in top.note
    assert top.values.mean() > top.baseline


@dataclass(frozen=True)
class MaskedStub:
    table: EmbeddingTable
    knows: bool
    batch: int = 64

    def yield_batches(self, texts, items):
        words = texts.words
        logits = np.zeros((len(items), len(self.table)), np.float32)
        if self.knows:  # the next noun follows from this one, so that the reader need not be told
            before = self.table.find([words[item - 1] for item in items])
            for follows in (0, 1):
                logits[np.arange(len(items)), (7 * before + follows) % 60] += np.where(
                    before >= 0, 4, 0
                )
        yield np.arange(len(items)), logits


@dataclass(frozen=True)
class TrigramStub:
    knows: bool

    def prob(self, words):
        word, *before = (NOUNS.index(each) if each in NOUNS else None for each in words[:2])
        if not self.knows or word is None or not before or before[0] is None:
            return -50_000
        return -10_000 if (word - 7 * before[0]) % 60 in (0, 1) else -50_000


@pytest.mark.slow
@pytest.mark.parametrize("language", first_of_each(["trigram", "masked", "causal"]))
def test_a_language_model_that_knows_more_is_listened_to(language, case, found, monkeypatch):
    """One that knows how texts go on, and one that says the same of all words."""
    rates = []
    for knows in (True, False):
        monkeypatch.setattr(
            module,
            "load_language_model",
            lambda table, model, kind, knows=knows: MaskedStub(table, knows),
        )
        monkeypatch.setattr(trigram, "load", lambda knows=knows: TrigramStub(knows))
        rates.append(
            outcomes(learned(language=language, model="a folder"), case)["top-1"].values.mean()
        )
    plain = found["top-1"].values.mean()
    assert rates[0] > plain
    assert rates[1] > plain - 0.05


def test_a_causal_model_has_to_be_named():
    with pytest.raises(ConfigError, match="model, the folder or hub id of a causal"):
        Learned(public=("zqcanary",), language="causal")


@pytest.mark.slow
def test_a_causal_network_that_knows_nothing_does_no_harm(case, found, tmp_path):
    config = {
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 128,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    model = save(tmp_path / "gpt2", "GPT2LMHeadModel", byte_level(framed=False), **config)
    asked = outcomes(learned(language="causal", model=str(model)), case)["top-1"].values.mean()
    assert asked > found["top-1"].values.mean() - 0.05
    with pytest.raises(ModelError):
        outcomes(learned(language="causal", model=str(tmp_path)), case)


@pytest.mark.slow
def test_a_beam_is_no_worse_even_where_trigrams_tell_nothing(case, found, monkeypatch):
    """Trigrams of public texts, and of the same words in any order."""
    count, plain = TrigramRatios.count, found["top-1"].values.mean()

    def shuffled(known):
        return count(replace(known, line=np.random.default_rng(7).permutation(known.line)))

    assert outcomes(learned(beam=64), case)["top-1"].values.mean() > plain - 0.02
    monkeypatch.setattr(TrigramRatios, "count", shuffled)
    assert outcomes(learned(beam=64), case)["top-1"].values.mean() > plain - 0.05


@pytest.mark.parametrize("beam", [-1, BEAM_CANDIDATES**2 + 1, 10**30, 2.5, float("nan"), "many"])
def test_a_beam_keeps_a_number_of_texts(beam):
    with pytest.raises(ConfigError, match="beam") as error:
        Learned(public=("zqcanary",), beam=beam)
    assert "zqcanary" not in str(error.value)


def test_without_the_trigram_model_it_says_what_to_install(case, monkeypatch):
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    trigram.load.cache_clear()
    with pytest.raises(MissingExtra, match=r"pocketsphinx: pip install .*trigram"):
        outcomes(learned(language="trigram"), case)


@pytest.fixture(scope="module")
def attacked(small_table):
    """Cases with seeds, and what an attacker finds who keeps nothing between them."""
    other = EmbeddingTable.build(name="small", words=NOUNS[20:], vectors=small_table.vectors[:40])
    cases = [
        (case_of(small_table, c=C), 6),
        (case_of(small_table, c=C), 6),
        (case_of(small_table.coarsen(book_of(small_table, 13)), name="codebook", epsilon=8.0), 6),
        (case_of(small_table, OTHERS, c=C), 6),
        (case_of(small_table, c=C), 7),
        (case_of(small_table, c=C, words={"stopwords": "protect"}), 6),
        (case_of(other, c=C), 6),
    ]
    return cases, [outcomes(learned(), *each)["mean reciprocal rank"] for each in cases]


@pytest.mark.slow
@pytest.mark.parametrize(
    "twin", ["", "_build_knowledge_key", "_hash_texts", "_hash_visible_release"]
)
def test_what_is_kept_is_used_again_for_the_same_alone(twin, attacked, monkeypatch):
    """Each twin holds tables, public texts or releases to be the same that are not."""
    cases, fresh = attacked
    if twin:
        monkeypatch.setattr(module, twin, lambda given: b"")
    counted = []

    def counting(*given):
        counted.append(given[0])
        return learn(*given)

    monkeypatch.setattr(module, "learn", counting)
    attacker = learned()
    try:
        kept = [outcomes(attacker, *each)["mean reciprocal rank"] for each in cases]
    except (IndexError, ValueError):  # guesses of other texts, or words of another table
        assert twin
        return
    pairs = zip(fresh, kept, strict=True)
    alike = [
        np.array_equal(one.values, two.values) and one.baseline == two.baseline
        for one, two in pairs
    ]
    assert all(alike) == (not twin)
    assert twin or len(counted) == 2 + 0 + 0 + 0 + 1 + 2 + 2


@pytest.mark.slow
def test_several_releases_are_summed_up(small_table):
    privatizer = Privatizer("exponential", table=small_table, c=1.5, seed=4)
    rows = attack(
        Case.create(privatizer, PRIVATE[:60], releases=5), [learned()], rng=SeededRandomness(1)
    ).rows
    top = {
        (row.setting["releases"], row.setting["memory"]): row.value
        for row in rows
        if row.metric == "top-1" and row.slice == "all"
    }
    assert list(top) == [
        (1, "drawn anew"),
        (2, "drawn anew"),
        (3, "drawn anew"),
        (5, "drawn anew"),
        (5, "drawn once"),
    ]
    assert top[5, "drawn anew"] > top[1, "drawn anew"] + 0.2
    assert top[5, "drawn once"] == top[1, "drawn anew"]


def test_public_texts_are_kept_out_of_what_is_printed():
    attacker = learned()
    assert "public" not in dump_options(attacker)
    assert PUBLIC[0] not in repr(attacker)
    with pytest.raises(InputError, match="each public text must be a string"):
        Learned(public=(PUBLIC[0], 3))  # type: ignore[arg-type]


# ---- parts -----------------------------------------------------------------------------------------


def test_repetitions_are_left_out():
    whole = "one two three four five six seven eight"
    texts = [
        whole,
        "three four",
        "four five six",
        "two three four five six seven",
        "nine ten",
        whole,
        "six five",
    ]
    assert drop_contained_texts(texts) == [whole, "nine ten", "six five"]


def test_texts_to_try_share_little_with_those_that_are_counted():
    draw = np.random.default_rng(5)
    stories = [[f"w{number}" for number in draw.integers(500, size=9)] for _ in range(300)]
    texts = [
        " ".join([*story[:i], f"v{i}", *story[i + 1 :]]) for story in stories for i in (0, 1, 2)
    ]
    assert len(drop_contained_texts(texts)) == 900
    counted, tried = split_texts(texts, 270, SeededRandomness(2))
    assert len(tried) == 30
    ends = [
        {text.split()[-1] + text.split()[-2] + text.split()[-3] for text in part}
        for part in (tried, counted)
    ]
    assert not ends[0] & ends[1]
    assert len(counted) > 750


def test_shares_follow_the_counts_where_there_are_enough(small_table):
    general = np.arange(1.0, 61)
    true = np.random.default_rng(1).dirichlet(np.ones(60))
    counts = np.random.default_rng(2).multinomial(100_000, true).astype(float)
    assert np.abs(smooth_counts(counts, general) - true).sum() < 0.03
    alike = np.random.default_rng(2).multinomial(200, general / general.sum()).astype(float)
    near, far = (
        np.abs(each - general / general.sum()).sum()
        for each in (smooth_counts(alike, general), alike / 200)
    )
    assert near < far / 2
    assert len(GENERAL_LIST_SIZES) > 1


def test_knowledge_is_counted_from_texts(small_table):
    known = learn(
        small_table,
        Privatizer("exponential", table=small_table, c=1.0).words,
        ["Apple zzyx the river."] * 20,
    )
    apple, river, unknown, the = known.find_ids(
        small_table, ["APPLE", "river", "Zzyx", "the"]
    ).tolist()
    assert known.is_in_table[[apple, river]].all()
    assert not known.is_in_table[unknown]
    assert known.candidate[[apple, river, unknown]].all()
    assert not known.candidate[the]
    assert known.row[unknown] == small_table.lookup(["zzyx"])[0][0]
    assert known.find_ids(small_table, ["nobody"]).tolist() == [-1]
    share = np.exp(known.log_prior)
    assert share.sum() == pytest.approx(1)
    assert share[apple] == pytest.approx(share[river], rel=0.2)
    assert share[apple] > 5 * np.delete(share, [apple, river, unknown]).max()
    behind, before = (known.neighbours[side].ratio.toarray() for side in (-1, 1))
    assert behind[apple].argmax() == unknown
    assert before[unknown].argmax() == apple
    assert before[len(known)].argmax() in (known.find_ids(small_table, ["."])[0], river)


def test_the_logistic_regression_finds_the_weights():
    draw = np.random.default_rng(3)
    features = draw.normal(size=(4000, 5, 3)).astype(np.float32)
    weights = np.array([2.0, -1.0, 0.5])
    right = (features @ weights + draw.gumbel(size=(4000, 5))).argmax(axis=1)
    assert np.allclose(fit_logistic(features, right), weights, atol=0.15)
    assert fit_logistic(features[:0], right[:0]).tolist() == [1, 0, 1]
