"""The channel in context against the mechanism's own law, private word by private word."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fixtures import NOUNS
from tests.models.conftest import SIZE, save, wordpiece

from textveil import Privatizer
from textveil.errors import ConfigError
from textveil.evaluate.attack import Case, candidates, channel, context_channel
from textveil.evaluate.attack.knowledge import learn
from textveil.evaluate.attack.posterior import rank_candidates
from textveil.mechanism import Block, conditional
from textveil.models.context import load_context
from textveil.randomness.streams import SeededRandomness
from textveil_bench.attack import load

TEXTS = [
    "the anchor and the bakery by the old harbor",
    "garden, river; candle!",
    "a valley",
    "the old town",
]
RNG = SeededRandomness(5)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A small random masked language model."""
    folder = tmp_path_factory.mktemp("lm") / "bert"
    return str(save(folder, "BertForMaskedLM", wordpiece(), **SIZE, max_position_embeddings=128))


@pytest.fixture(autouse=True)
def parts(monkeypatch):
    """Blocks and runs so small that there are several of each."""
    monkeypatch.setattr(context_channel, "DISTANCE_ROWS_AT_ONCE", 25)
    monkeypatch.setattr(conditional, "FIRST_RANKED", 4)


class SameDraws(SeededRandomness):
    """The same draws in whatever folder the model lies; of a privatizer, its name is among what they depend on."""

    def bind_texts(self, first, digests):
        return self


def case(table, model, name="rankcape", texts=TEXTS, seed=3, **options):
    """A case whose logits all count, with a budget that keeps little."""
    options = {"epsilon": 3.0, "floor": -3.0, "bound": 3.0, "model": model, **options}
    if name == "cape":
        options |= {"epsilon": None, "nominal": options["epsilon"], "buckets": 7}
    return Case.create(
        Privatizer(name, table=table, **options).with_parts(randomness=SameDraws(seed)), texts
    )


def by_hand(case):
    """ln P(released row | x) [n, V]: the texts once for each x, with x in the place of every private word."""
    view, size = case.view, len(case.view.table)
    found = np.empty((len(view.output_rows), size))
    for x in range(size):
        rows = np.where(view.pass_rows >= 0, view.pass_rows, x)
        law = view.mechanism.log_probs(
            view.table,
            Block(layout=view.layout, rows=rows),
            view.parameter,
            released=view.output_rows,
        )
        found[:, x] = law[np.arange(len(view.output_rows)), view.output_rows]
    return found


def lines(view):
    """The channel [n, V], part after part."""
    found = np.empty((len(view.output_rows), len(view.table)))
    for part in channel.yield_likelihoods(view, draws=2, rng=RNG):
        found[part.positions] = part.lines[part.which[:, 0]]
    return found


@pytest.mark.parametrize("mode", ["released", "public"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rankcape", {"k": 1}),
        ("rankcape", {"k": 20, "lambda_L": 1.0}),
        ("rankcape", {"sizes": (2, 5, 30), "form": "additive", "lambda_D": 0.3}),
        ("cape", {}),
        ("cape", {"form": "additive", "edges": "public"}),
    ],
)
def test_the_channel_is_the_law_of_each_private_word(small_table, model, mode, name, options):
    made = case(small_table, model, name, context=mode, **options)
    found = lines(made.view)
    assert np.abs(found - by_hand(made)).max() < 1e-6, "lines are held in float32"
    assert np.ptp(found, axis=1).max() > 0.5, "the private word must matter, or any line would do"
    assert not np.allclose(found, found[:1]), "the position must matter"


def test_where_the_distance_counts_for_nothing_no_private_word_is_likelier(small_table, model):
    assert (
        np.ptp(
            lines(case(small_table, model, context="public", k=9, lambda_D=0.0).view), axis=1
        ).max()
        == 0
    )


def test_logits_that_are_cut_off_leave_the_law_as_it_is(small_table, model):
    """Most candidates then score 0, and nothing is said of their order: as many are among the best as score more."""
    made = case(small_table, model, context="public", floor=0.5, k=2)
    expected = by_hand(made)
    clear = np.abs(lines(made.view) - expected) < 1e-6
    zero = made.view.output_rows[:, None] != np.arange(
        len(small_table)
    )  # a private word scores 0 with all of its row
    assert clear[zero].mean() > 0.9


def test_guesses_are_the_best_of_the_whole_posterior(small_table, model):
    made = case(small_table, model, context="released", k=3, epsilon=6.0)
    joint = by_hand(made)
    found = rank_candidates(made.view, prior="uniform", k=60, rng=RNG)
    n = np.arange(len(joint))
    assert found.evidence == "exact"
    reached = joint[n, found.candidates[:, 0]]
    assert np.allclose(reached, joint.max(axis=1), atol=1e-6)
    expected = reached - np.log(np.exp(joint).sum(axis=1))
    assert np.allclose(found.log_probability[:, 0], expected, atol=1e-5)


def test_views_that_share_the_work_find_what_each_finds_alone(small_table, model):
    cases = [
        case(small_table, model, context=mode, epsilon=epsilon, seed=seed)
        for seed, (mode, epsilon) in enumerate(
            [("public", 1.0), ("public", 5.0), ("released", 5.0)]
        )
    ]
    cases.append(
        case(
            small_table, model, context="public", texts=[text.replace("old", "a") for text in TEXTS]
        )
    )
    alone = [lines(replace(each.view)) for each in cases]
    channel.share_channels([each.view for each in cases])
    assert all("in context" in each.view.memo for each in cases)
    for each, expected in zip(cases, alone, strict=True):
        assert np.array_equal(lines(each.view), expected)


def test_parts_of_a_view_are_the_whole(small_table, model, monkeypatch):
    made = case(small_table, model, context="released")
    expected = lines(replace(made.view))
    monkeypatch.setattr(
        channel, "MAX_LOG_PROBABILITIES", channel.POSITION_LINE_DIVISOR * 2 * len(small_table)
    )
    assert len(list(channel.yield_likelihoods(made.view, draws=2, rng=RNG))) > 2
    assert np.abs(lines(made.view) - expected).max() < 1e-5


def test_few_counted_candidates_estimate_the_law(small_table, model, monkeypatch):
    """Half of the candidates stand for all: log-probabilities are near, and said to be estimated."""
    made = case(small_table, model, "cape", context="public", lambda_L=0.3)
    exact = lines(replace(made.view))
    monkeypatch.setattr(conditional, "EXACT_CANDIDATES", 20)
    monkeypatch.setattr(conditional, "SAMPLED_CANDIDATES", 20)
    view = replace(made.view)
    estimated = lines(view)
    gap = np.abs(estimated - exact)
    assert 0 < np.median(gap) < 0.2
    assert gap.max() < 2.5
    assert np.corrcoef(estimated.ravel(), exact.ravel())[0, 1] > 0.9
    assert rank_candidates(view, prior="uniform", k=1, rng=RNG).evidence == "estimated"


def test_the_attack_looks_at_no_private_word(small_table, model):
    """Guesses are the same when other words stood there, as long as the same rows were released."""
    made = case(small_table, model, context="released")
    view = replace(made.view)
    assert (view.pass_rows[view.layout.positions] == -1).all()
    outcomes = list(load("bayes", {"priors": ["uniform"]}).run(made, rng=RNG))
    assert {each.metric for each in outcomes} >= {"top-1", "top-5"}


def test_the_context_of_the_original_words_is_refused(small_table, model):
    made = case(small_table, model, context="original", epsilon=40.0)
    assert "private words around it" in channel.explain_refusal(made.view)
    assert "private words around it" in load("bayes", {"priors": ["uniform"]}).refusal(made.view)
    with pytest.raises(ConfigError, match="around it"):
        rank_candidates(made.view, prior="uniform", rng=RNG)


def test_the_table_and_the_model_know_the_words(small_table, model):
    """Or all logits would be those of unknown words, and no test above would tell contexts apart."""
    assert list(small_table.words) == NOUNS
    assert load_context(small_table, model) is not None


@pytest.mark.parametrize("name", ["rankcape", "cape"])
@pytest.mark.parametrize("mode", ["released", "public"])
def test_the_law_of_some_private_words_is_that_of_all_of_them(small_table, model, mode, name):
    view = case(small_table, model, name, context=mode).view
    rows = np.random.default_rng(3).integers(0, len(small_table), (len(view.output_rows), 9))
    positions = np.arange(len(view.output_rows))[1:]
    found = context_channel.compute_candidate_law(view, positions, rows[1:])
    assert np.allclose(found, np.take_along_axis(lines(view), rows, axis=1)[1:], atol=1e-5)


@pytest.mark.parametrize("releases", [1, 2])
def test_candidates_get_their_law_where_it_is_another_at_each_position(
    small_table, model, monkeypatch, releases
):
    """The law of a candidate is the same whether all rows have it or the candidates alone."""
    made = case(small_table, model, context="public", floor=-1.0)
    view = made.view
    if releases == 2:
        other = case(small_table, model, context="public", floor=-1.0, seed=8).view
        view = replace(view, other_releases=(other,))
    known = learn(
        view.origin, view.words, ["the anchor by the old river", "a candle in the valley"]
    )
    asked = {"k": 50, "releases": releases, "draws": 2, "rng": RNG}
    every = candidates.find_candidates(view, known, np.arange(len(view.output_rows)), **asked)
    monkeypatch.setattr(candidates, "LARGE_TABLE_FACTOR", 0)
    some = candidates.find_candidates(view, known, np.arange(len(view.output_rows)), **asked)
    compared = 0
    for cell in range(len(view.output_rows)):
        law = dict(zip(every.words[cell].tolist(), every.features[cell, :, 2], strict=True))
        both = [i for i, word in enumerate(some.words[cell].tolist()) if word in law]
        differences = [some.features[cell, i, 2] - law[int(some.words[cell, i])] for i in both]
        assert np.ptp(differences) < 1e-4, "they are the same but for a constant"
        compared += len(both)
        near = small_table.neighbours(view.output_rows[[cell]], 5)[0]
        assert set(near.tolist()) - {i for i, own in enumerate(known.candidate) if not own} <= set(
            some.words[cell].tolist()
        )
    assert compared > 20 * len(view.output_rows)
