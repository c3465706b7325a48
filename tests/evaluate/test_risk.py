"""The risk of a release: numbers against the law by hand, and what is shown of them."""

import itertools
import os
import re
import stat
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.detectors import Finds
from tests.evaluate.attack.test_learned import PRIVATE, PUBLIC
from tests.fixtures import NOUNS, gaussian_rows
from textveil import cli
from textveil.config import WordsOptions, describe_profiles, resolve
from textveil.errors import ConfigError, UnknownName
from textveil.evaluate.attack import Case
from textveil.evaluate.attack import prior as priors
from textveil.evaluate.attack.expected import LIKELIEST_ROWS, OTHER_ROWS, _pick_outputs
from textveil.evaluate.attack.prior import get_static_prior
from textveil.evaluate.risk import (
    MAX_DRAWS,
    assess,
    check_risk_options,
    compute_interval,
    compute_share,
    describe_public_attackers,
    describe_risk,
)
from textveil.mechanism import Block, Layout
from textveil.pipeline import privatizer as privatizers
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.render import risk
from textveil.session import Session
from textveil.table.embedding import EmbeddingTable
from textveil.text import load_names

CANARY = "zzcanaryzz"
TEXT = "The lemon and the castle, a river and an onion."


@pytest.fixture(scope="module")
def table():
    return EmbeddingTable.build(name="sixty", words=NOUNS, vectors=gaussian_rows(60, 8, 3))


def risk_of(table, text=TEXT, mechanism="exponential", prior="uniform", **options):
    case = Case.create(Privatizer(mechanism, table=table, seed=3, **options), [text])
    return case, assess(case, prior=prior, rng=SeededRandomness(1))[0]


def posterior_by_hand(table, c, drawn, secret, prior):
    """Bayes' rule over 60 words, from distances alone."""
    vectors = table.vectors.astype(np.float64)
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    weights = np.exp(-np.minimum(c * distances, 20))
    law = weights / weights.sum(axis=1, keepdims=True)
    joint = prior[:, None] * law
    posterior = joint[:, drawn] / joint[:, drawn].sum(axis=0)
    return posterior[secret, np.arange(len(drawn))], posterior.argmax(axis=0) == secret


@pytest.mark.parametrize("prior", ["uniform", "unigram"])
def test_probabilities_are_bayes_rule(table, prior):
    case, found = risk_of(table, prior=prior, c=3.0)
    expected, named = posterior_by_hand(
        table, 3.0, case.view.output_rows, case.truth.rows, np.exp(get_static_prior(table, prior))
    )
    assert found.evidence == "exact"
    assert found.probability[case.view.item] == pytest.approx(expected, rel=1e-4)
    assert found.named[case.view.item].tolist() == named.tolist()
    assert found.private.tolist() == [item.group == "protected" for item in found.released.items]


def test_a_broken_attacker_gives_other_numbers(table):
    """The twin that takes the released word for certain."""
    case, found = risk_of(table, c=3.0)
    certain = (case.view.output_rows == case.truth.rows).astype(float)
    assert np.abs(found.probability[case.view.item] - certain).max() > 0.1


def test_over_many_texts_the_count_is_what_the_attacker_expects(table):
    """Right best guesses, and their stated probabilities: 3,000 words, within 5 standard deviations (5.7e-7)."""
    words = [NOUNS[i] for i in np.random.default_rng(1).integers(0, 60, 3000)]
    case = Case.create(Privatizer("exponential", c=4.0, table=table, seed=5), [" ".join(words)])
    found = assess(case, prior="uniform")[0]
    from textveil.evaluate.attack.posterior import rank_candidates

    stated = np.exp(
        rank_candidates(case.view, prior="uniform", k=1, rng=SeededRandomness(0)).log_probability[
            :, 0
        ]
    )
    deviation = np.sqrt((stated * (1 - stated)).sum())
    assert abs(found.named.sum() - stated.sum()) < 5 * deviation


# ---- what is expected over all draws ---------------------------------------------------------------


@pytest.mark.parametrize("prior", ["uniform", "unigram"])
def test_what_is_expected_is_the_law_of_the_rows_whose_best_guess_is_right(table, prior):
    vectors = table.vectors.astype(np.float64)
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    law = np.exp(-np.minimum(3.0 * distances, 20))
    law /= law.sum(axis=1, keepdims=True)
    guess = (np.exp(get_static_prior(table, prior))[:, None] * law).argmax(axis=0)
    by_hand = (law * (guess == np.arange(60)[:, None])).sum(axis=1)
    cases = [
        Case.create(Privatizer("exponential", table=table, seed=seed, c=3.0), [TEXT])
        for seed in (3, 4)
    ]
    for case in cases:  # it is the same, whatever was drawn
        (found,) = assess(case, prior=prior)
        assert found.expected[case.view.item] == pytest.approx(by_hand[case.truth.rows], abs=1e-6)
        assert found.draws is None
    case = cases[-1]
    (found,) = assess(case, prior=prior)
    assert (
        np.abs(found.named[case.view.item] - by_hand[case.truth.rows]).max() > 0.2
    )  # the twin counts hits of a draw


@pytest.mark.slow
def test_the_hits_of_many_draws_are_what_was_expected(named_table):
    """Of 400 draws with names, groups and a placeholder, within 5 standard deviations (5.7e-7)."""
    text = f"lemon river of {GIVEN[3].title()} {FAMILY[4].title()} in {PLACES[5].title()}, write to a@b.org"
    made = document(named_table, seed=7)
    draws = assess(Case.build(made, made.rehearse([text] * 400), names=True))
    expected = draws[0].expected
    assert all(np.array_equal(each.expected, expected, equal_nan=True) for each in draws)
    private = draws[0].private
    hits = np.sum([each.named for each in draws], axis=0)[private]
    deviation = np.sqrt(400 * expected[private] * (1 - expected[private]))
    assert (np.abs(hits - 400 * expected[private]) <= 5 * deviation + 1e-6).all()
    assert expected[private].sum() > 0.5
    assert expected[private][-1] == 0  # the placeholder


def test_of_many_rows_the_likeliest_and_some_others_are_looked_at():
    share = np.random.default_rng(1).dirichlet(np.full(5000, 0.1))
    rows, weights = _pick_outputs(share)
    assert len(rows) == LIKELIEST_ROWS + OTHER_ROWS
    assert weights.sum() == pytest.approx(1)
    assert weights[:LIKELIEST_ROWS] == pytest.approx(np.sort(share)[::-1][:LIKELIEST_ROWS])
    assert not np.isin(rows[LIKELIEST_ROWS:], rows[:LIKELIEST_ROWS]).any()
    assert _pick_outputs(np.array([0.0, 0.25, 0.75]))[0].tolist() == [2, 1]


def test_the_strongest_attacker_who_needs_no_texts_is_asked_and_what_texts_bring_is_said_beside(
    table,
):
    config = resolve(profile="document")
    assert check_risk_options(config) == "context"
    assert (
        check_risk_options(
            resolve(overrides={"mechanism": "d-chi-stencil", "epsilon": 3, "mechanism.L": 4})
        )
        == "unigram"
    )
    _, found = risk_of(table, c=3.0)
    told = r"names more: about \d\d of 100 private words of reviews and about \d\d of 100 private words of news"
    assert re.search(told, describe_public_attackers(config, [found]))
    assert describe_public_attackers(replace(config, seed=4), [found]) == describe_public_attackers(
        config, [found]
    )
    assert "--public FILE" in describe_public_attackers(
        replace(config, epsilon=None, prior=None, words=WordsOptions()), [found]
    )
    assert (
        describe_public_attackers(config, [replace(found, prior="learned")])
        == describe_public_attackers(config, [])
        == ""
    )


def test_an_attacker_with_public_texts_names_more_words_and_states_how_likely(table):
    case = Case.create(Privatizer("exponential", c=3.0, table=table, seed=5), PRIVATE)
    learned = assess(case, public=PUBLIC, rng=SeededRandomness(1))
    usual = assess(case, rng=SeededRandomness(1))
    named, plain = (
        np.mean(np.concatenate([each.named[each.private] for each in found]))
        for found in (learned, usual)
    )
    assert named > plain + 0.1
    assert {each.prior for each in learned} == {"learned"}
    for each in learned:
        assert ((each.probability[each.private] >= 0) & (each.probability[each.private] <= 1)).all()
        assert (each.probability[each.named & each.private] > 1 / 60).all()
    guarantee = Privatizer("exponential", c=3.0, table=table).privatize(TEXT).guarantee
    assert "public texts of the same kind" in risk.render_page(learned, guarantee)
    with pytest.raises(ConfigError, match="must not be among"):
        assess(case, public=(*PUBLIC, *PRIVATE))
    with pytest.raises(ConfigError, match="10 different"):
        assess(case, public=PUBLIC[:3])


def test_words_that_pass_unprotected_are_certain(table):
    _, found = risk_of(table, mechanism="noise", epsilon=float("inf"))
    assert found.probability[found.private].tolist() == [1.0] * 4
    assert found.expected[found.private].tolist() == [1.0] * 4
    assert "is expected to name 4 of your 4 private words (100%)" in describe_risk([found])


def test_a_mean_of_a_few_draws_says_how_many_and_how_sure(table):
    _, exact = risk_of(table, c=3.0)
    assert compute_interval([exact]) is None
    assert describe_risk([exact]).endswith(", on average over all draws.")
    few, many = (replace(exact, draws=draws) for draws in (1, 100))
    (low, high), (near, far) = (compute_interval([risk]) or (0.0, 0.0) for risk in (few, many))
    assert 0 <= low < near < compute_share([exact]) < far < high <= 1
    assert f"estimated from one draw (95% interval {low:.0%} to {high:.0%})" in describe_risk([few])
    assert "over all draws" not in describe_risk([many])


def test_an_attacker_with_few_public_texts_is_said_to_know_little(table):
    _, found = risk_of(table, c=3.0)
    learned, config = [replace(found, prior="learned")], resolve(profile="document")
    few = describe_public_attackers(config, learned, ["a river runs"] * 50)
    assert "learned from 150 words of public texts, which is little" in few
    assert describe_public_attackers(config, learned, ["a river runs"] * 9000) == ""


def test_placeholders_leave_the_prior(table):
    _, found = risk_of(table, mechanism="placeholder")
    assert found.probability[found.private] == pytest.approx(1 / 60)


@pytest.mark.slow
def test_noise_is_estimated_and_windows_are_guessed_together(table):
    for mechanism, options in (("noise", {"eta": 30.0}), ("d-chi-stencil", {"eta": 60.0, "L": 4})):
        _, found = risk_of(table, mechanism=mechanism, **options)
        assert found.evidence == "estimated"
        assert found.draws == MAX_DRAWS
        for known in (found.probability[found.private], found.expected[found.private]):
            assert ((known >= 0) & (known <= 1)).all()
        assert (found.expected[found.private] * MAX_DRAWS % 1 == 0).all()  # a mean of so many draws


def test_no_text_and_no_private_word(table):
    for text in ("", "the and of"):
        _, found = risk_of(table, text=text, c=3.0)
        assert describe_risk([found]) == "There is no private word to recover."
        assert risk.render_text(found, marked=False).plain == text
        assert not found.private.any()


def test_what_is_shown_is_the_release_with_signs(table):
    _, found = risk_of(table, c=3.0)
    plain = risk.render_text(found, marked=False).plain
    assert re.sub("[¹²³⁴*]", "", plain) == found.released.text
    assert len(re.findall(r"\*", plain)) == found.named.sum() > 0
    assert risk.render_text(found, marked=True).plain == found.released.text


def test_every_probability_has_one_level():
    steps = [risk.find_level(p).meaning for p in (0.0, 0.01, 0.011, 0.1, 0.5, 0.51, 0.9, 0.91, 1.0)]
    assert len(dict.fromkeys(steps)) == 5
    assert steps[0] == "less than 1%"
    assert steps[-1] == "more than 90%"


def test_levels_differ_in_lightness():
    """For every eye: the relative luminance of the backgrounds falls from step to step by a quarter at least."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    shades = [luminance(step.style.partition(" on ")[2]) for step in risk.RISK_LEVELS[1:]]
    assert all(after < 0.75 * before for before, after in itertools.pairwise(shades))


def test_the_page_stands_alone_and_escapes(table):
    case, found = risk_of(table, text="lemon < castle & river", c=3.0)
    guarantee = (
        Privatizer("exponential", c=3.0, table=table, seed=3)
        .privatize("lemon < castle & river")
        .guarantee
    )
    page = risk.render_page([found], guarantee)
    assert "is expected to name" in page
    assert "&lt;" in page
    assert "&amp;" in page
    assert not re.search(r"<script|https?://|src=", page)
    assert page.index("is expected to name") < page.index("The statement")
    assert (
        len(re.findall(r'<span class="word level\d(?: named)?" title="[^"]+" tabindex="0">', page))
        == 3
    )
    assert CANARY not in repr(found) + repr(case)


# ---- groups, names from lists, sessions ------------------------------------------------------------


def some_names(type_, kind=None, count=30):
    listed = load_names(type_)
    words = [
        word.lower()
        for word, each in zip(listed.words, listed.kinds, strict=True)
        if kind in (None, each)
    ]
    return [word for word in dict.fromkeys(words) if word.isalpha() and word not in NOUNS][:count]


GIVEN, FAMILY, PLACES = (
    some_names("PERSON", "given"),
    some_names("PERSON", "family"),
    some_names("LOCATION"),
)


@pytest.fixture(scope="module")
def named_table():
    words = list(dict.fromkeys([*NOUNS, *GIVEN, *FAMILY, *PLACES]))
    return EmbeddingTable.build(name="named", words=words, vectors=gaussian_rows(len(words), 8, 4))


def document(table, *detectors, epsilon=4.0, seed=3, **options):
    """A privatizer like the profile `document`."""
    found = detectors or (
        Finds(PERSON="[A-Z][a-z]+ [A-Z][a-z]+", LOCATION="(?<=in )[A-Z][a-z]+", EMAIL=r"\S+@\S+\w"),
    )
    given: dict[str, Any] = {
        "names": {"types": ("PERSON", "LOCATION"), "k": 5, "epsilon": 5.0},
        "k": 7,
    } | options
    return Privatizer(
        "rankcape",
        epsilon=epsilon,
        table=table,
        words={"casing": "copy", "consistent": True},
        protect={"detectors": found},
        seed=seed,
        **given,
    )


def assessed(privatizer, text, session=None, prior="uniform"):
    rehearsal = privatizer.rehearse([text], session)
    case = Case.build(privatizer, rehearsal, names=True)
    return rehearsal.results[0], case, assess(case, prior=prior, rng=SeededRandomness(1))[0]


def of_list_by_hand(table, words, secret, drawn, *, k, epsilon, prior=None):
    """Bayes' rule over a list whose k names nearest to a name are e^epsilon times as likely as the others."""
    own = [table.words.index(word) for word in sorted(words, key=table.words.index)]
    vectors = table.vectors.astype(np.float64)[own]
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    near = distances.argsort(axis=1)[:, :k]
    law = np.ones((len(own), len(own)))
    np.put_along_axis(law, near, np.exp(epsilon), axis=1)
    prior = np.ones(len(own)) if prior is None else prior[own]
    joint = prior * law[:, own.index(table.words.index(drawn))]
    return joint[own.index(table.words.index(secret))] / joint.sum()


def test_names_are_guessed_among_the_names_of_their_list(named_table):
    given, family, place = GIVEN[3], FAMILY[4], PLACES[5]
    text = f"the lemon of {given.title()} {family.title()} in {place.title()}, write to a@b.org"
    for prior in ("uniform", "unigram"):
        made = document(named_table)
        result, case, found = assessed(made, text, prior=prior)
        items = [item.text.lower() for item in result.released.items]
        expected = None if prior == "uniform" else np.exp(get_static_prior(named_table, "unigram"))
        for at, words, secret in (
            (3, "PERSON given", given),
            (4, "PERSON family", family),
            (6, "LOCATION", place),
        ):
            assert result.released.items[at].group == words
            listing = made.names.lists[words]
            listed = [named_table.words[row] for row in listing.rows.tolist()]
            by_hand = of_list_by_hand(
                named_table, listed, secret, items[at], k=5, epsilon=5.0, prior=expected
            )
            assert found.probability[at] == pytest.approx(by_hand, rel=1e-4)
        assert result.released.items[-1].text == "<EMAIL_1>"
        assert found.probability[-1] == 0
        assert not found.named[-1]
        assert case.view.name_items.items.tolist() == [3, 4, 6]


def test_over_many_names_the_count_is_what_the_attacker_expects(named_table):
    """Right best guesses, and their probabilities where they are: 600 names, within 5 standard deviations (5.7e-7)."""
    chosen = np.random.default_rng(1).integers(0, len(GIVEN), 600)
    made = document(
        named_table,
        Finds(PERSON="[A-Z][a-z]+"),
        names={"types": ("PERSON",), "k": 3, "epsilon": 3.5},
        epsilon=1.0,
    )
    listing = made.names.lists["PERSON given"]
    listed = [named_table.words[row] for row in listing.rows.tolist()]
    own = [word for word in GIVEN if word in listed]
    texts = [f"the {own[i % len(own)].title()}" for i in chosen]
    rehearsal = made.rehearse(texts)
    risks = assess(Case.build(made, rehearsal, names=True), prior="uniform")
    law = np.exp(
        made.names.mechanism.log_probs(
            listing.table,
            Block(layout=Layout.build(*[1] * len(listed)), rows=np.arange(len(listed))),
            np.full(len(listed), 3.5),
        )
    )
    posterior = law / law.sum(axis=0)
    secret = np.array([listed.index(own[i % len(own)]) for i in chosen])
    guessed = posterior.argmax(axis=0)[None] == secret[:, None]  # by what is released, [600, L]
    for found, values in (
        ([each.named[1] for each in risks], guessed.astype(float)),
        ([each.probability[1] for each in risks], posterior[secret]),
    ):
        mean = (law[secret] * values).sum(axis=1)
        variance = (law[secret] * values**2).sum(axis=1) - mean**2
        assert abs(np.sum(found) - mean.sum()) < 5 * np.sqrt(variance.sum())


def test_every_group_has_the_law_of_its_budget(named_table):
    made = Privatizer(
        "rankcape",
        k=7,
        table=named_table,
        protect={"detectors": (Finds(SECRET="lemon|castle"),), "placeholders": ()},
        groups={"budgets": (1.0, 1.0, 5.0, 5.0)},
        seed=3,
    )
    _, _, found = assessed(made, "lemon castle river onion")
    groups = [item.group for item in found.released.items]
    assert groups == ["sensitive", "sensitive", "other", "other"]
    for at, (item, secret, group) in enumerate(
        zip(found.released.items, ("lemon", "castle", "river", "onion"), groups, strict=True)
    ):
        for epsilon, right in ((1.0, group == "sensitive"), (5.0, group == "other")):
            by_hand = of_list_by_hand(
                named_table, named_table.words, secret, item.text, k=7, epsilon=epsilon
            )
            assert (found.probability[at] == pytest.approx(by_hand, rel=1e-4)) == right


def test_equal_words_are_one_draw_also_in_a_session(named_table):
    text = f"lemon and lemon of {GIVEN[0].title()} {FAMILY[1].title()}"
    made, session = document(named_table), Session()
    first, _, risk_then = assessed(made, text, session)
    again, _, risk_now = assessed(
        document(named_table, seed=8), f"Lemon of {GIVEN[0].title()} {FAMILY[1].title()}", session
    )
    words = [item.text.lower() for item in first.released.items]
    assert words[0] == words[2] == again.released.items[0].text.lower()
    assert (
        risk_then.probability[0]
        == risk_then.probability[2]
        == pytest.approx(risk_now.probability[0], rel=1e-6)
    )
    assert words[4:] == [item.text.lower() for item in again.released.items][2:]
    assert risk_then.probability[4:] == pytest.approx(risk_now.probability[2:], rel=1e-6)


def test_a_name_that_a_session_drew_from_another_list_is_guessed_on_that_list(named_table):
    session = Session()
    first, case, then = assessed(
        document(named_table, seed=8), f"the {GIVEN[0].title()} {GIVEN[2].title()}", session
    )
    assert first.released.items[2].text.lower() in FAMILY  # and so on no list of given names
    alone = document(
        named_table, Finds(PERSON=GIVEN[2].title()), seed=9
    )  # it would be drawn from another list
    second, case_alone, now = assessed(alone, f"the {GIVEN[2].title()} lemon", session)
    assert second.released.items[1].text == first.released.items[2].text
    assert then.probability[2] == pytest.approx(now.probability[1], rel=1e-6)
    assert second.released.items[1].group == "PERSON given"
    assert case.view.name_items.labels[1] == "PERSON family"
    assert case_alone.view.name_items.labels[0] == "PERSON family"


def test_a_language_model_expects_names_of_the_list(named_table, monkeypatch):
    made = document(named_table)
    text = f"{GIVEN[0].title()} {FAMILY[0].title()}"
    rehearsal = made.rehearse([text])
    case = Case.build(made, rehearsal, names=True)
    expected = np.random.default_rng(2).normal(size=len(named_table))

    def context(view, items, model=None):
        yield np.arange(len(items)), np.tile(expected.astype(np.float32), (len(items), 1))

    monkeypatch.setattr(priors, "yield_context_prior", context)
    found = assess(case, prior="context")[0]
    for at, label, secret in ((0, "PERSON given", GIVEN[0]), (1, "PERSON family", FAMILY[0])):
        listed = [named_table.words[row] for row in made.names.lists[label].rows.tolist()]
        drawn = found.released.items[at].text.lower()
        by_hand = of_list_by_hand(
            named_table, listed, secret, drawn, k=5, epsilon=5.0, prior=np.exp(expected)
        )
        assert found.probability[at] == pytest.approx(by_hand, rel=1e-3)


# ---- what is refused before anything is loaded -----------------------------------------------------


@pytest.mark.parametrize(
    ("options", "prior", "says"),
    [
        ({"profile": "document"}, "zipf", "prior"),
        ({"mechanism": "noise", "epsilon": 3, "words.oov": "uniform"}, "unigram", "words.oov"),
        ({"mechanism": "noise", "epsilon": 3, "words.numbers": "add"}, "unigram", "words.numbers"),
        (
            {"mechanism": "d-chi-stencil", "epsilon": 3, "mechanism.L": 4},
            "context",
            "unigram or uniform",
        ),
        (
            {
                "mechanism": "noise",
                "epsilon": 3,
                "words.unit": "wordpiece",
                "table": "minilm-wordpiece",
            },
            "context",
            "whole words",
        ),
        (
            {"profile": "document", "protect.labels": "randomised", "protect.label_epsilon": 1},
            "unigram",
            "protect.labels=detected",
        ),
        (
            {"mechanism": "rankcape", "epsilon": 3, "mechanism.context": "original"},
            "unigram",
            "mechanism.context",
        ),
    ],
)
def test_what_cannot_be_assessed_is_refused_from_the_options_alone(
    monkeypatch, options, prior, says
):
    monkeypatch.setattr(privatizers, "load_table", None)  # nobody gets there
    config = resolve(profile=options.pop("profile", None), overrides=options)
    with pytest.raises((ConfigError, UnknownName), match=re.escape(says)):
        check_risk_options(config, prior)


def test_every_profile_can_be_assessed_but_one_whose_model_reads_the_original():
    for profile in {*describe_profiles()} - {"paper-cape"}:
        assert check_risk_options(resolve(profile=profile), "unigram") == "unigram"
    assert (
        check_risk_options(resolve(profile="document"), "context")
        == check_risk_options(resolve(profile="document"))
        == "context"
    )
    with pytest.raises(ConfigError, match="only released words"):
        check_risk_options(resolve(profile="paper-cape"))


# ---- the verb --------------------------------------------------------------------------------------


def run(capsys, *arguments, verb="risk"):
    code = cli.main([verb, f"Anna told the {CANARY} about the lemon", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_release_goes_out_and_the_risk_beside_it(capsys, tmp_path):
    page = tmp_path / "risk.html"
    code, out, err = run(
        capsys, "--mechanism", "noise", "--epsilon", 70, "--seed", 1, "--html", page
    )
    assert code == 0
    assert out.count("\n") == 1
    assert re.search(
        r"asks a language model .* is expected to name \d(\.\d)? of your 4 private words", err
    )
    said = (
        "is expected to name",
        "public texts of the same kind",
        "Choosing among draws",
        "per unit of chord distance",
    )
    assert sorted(said, key=err.index) == [*said]
    assert "breaks the bound" in page.read_text(encoding="utf-8")
    assert CANARY not in out + err
    assert CANARY in page.read_text(encoding="utf-8")  # which is for its owner alone
    assert "page holds the private originals" in err
    assert stat.S_IMODE(os.stat(page).st_mode) == 0o600
    assert (
        out
        == run(capsys, "--mechanism", "noise", "--epsilon", 70, "--seed", 1, verb="privatize")[1]
    )


def test_json_has_the_risk_and_a_warning(capsys):
    import json

    code, out, err = run(capsys, "--mechanism", "noise", "--epsilon", 70, "--seed", 1, "--json")
    found = json.loads(out)["risk"]
    assert code == 0
    assert found["private"] == 4
    assert 0 <= found["expected"] <= 4
    assert found["expected_from_draws"] == MAX_DRAWS
    assert len(found["probability"]) == len(json.loads(out)["items"])
    assert "keep the output to yourself" in err
    assert found["caution"].startswith("Choosing among draws")


def test_where_nothing_is_drawn_there_is_nothing_to_choose_among(capsys, tmp_path):
    page = tmp_path / "risk.html"
    _, _, err = run(capsys, "--mechanism", "placeholder", "--html", page)
    assert "is expected to name none of your 4" in err
    assert "public texts" not in err
    assert "Choosing" not in err + page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--prior", "zipf"), "prior"),
    ],
)
def test_one_line_says_what_is_wrong(capsys, arguments, says):
    code, out, err = run(capsys, "--mechanism", "noise", "--epsilon", 70, *arguments)
    assert code == 2
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


def test_a_page_that_was_open_to_others_is_closed(capsys, tmp_path):
    page = tmp_path / "risk.html"
    page.write_text("old", encoding="utf-8")
    page.chmod(0o644)
    assert run(capsys, "--mechanism", "noise", "--epsilon", 70, "--html", page)[0] == 0
    assert stat.S_IMODE(os.stat(page).st_mode) == 0o600


def test_a_page_that_cannot_be_written_is_told_before_anything_is_released(capsys, tmp_path):
    for place in (tmp_path, tmp_path / "nowhere" / "risk.html"):
        code, out, err = run(capsys, "--mechanism", "noise", "--epsilon", 70, "--html", place)
        assert (code, out) == (2, "")
        assert "--html must name" in err


def test_the_sentence_sums_up_texts(table):
    case = Case.create(Privatizer("exponential", c=9.0, table=table, seed=3), [TEXT, TEXT])
    found = assess(case, prior="uniform")
    named = f"{sum(np.nansum(each.expected) for each in found):.1f}".removesuffix(".0")
    assert f"{named} of your 8" in describe_risk(found)


def test_what_has_no_risk_view_is_refused_before_anything_is_loaded(capsys, monkeypatch):
    def loads(*_, **__):
        raise AssertionError("a table is loaded")

    monkeypatch.setattr(privatizers, "load_table", loads)
    for options, says in (
        (
            ("-o", "protect.labels=randomised", "-o", "protect.label_epsilon=1"),
            "protect.labels=detected",
        ),
        (("--profile", "paper-cape"), "mechanism.context=released or public"),
        (("--prior", "zipf"), "prior"),
    ):
        code, out, err = run(capsys, *options)
        assert (code, out) == (2, "")
        assert says in err


def test_the_risk_of_a_session(capsys, tmp_path, monkeypatch, table):
    monkeypatch.setattr(privatizers, "load_table", lambda *_, **__: table)
    path = tmp_path / "a.session"
    how = (
        "--mechanism",
        "exponential",
        "--epsilon",
        3,
        "-o",
        "protect.detectors=patterns",
        "-o",
        "words.consistent=true",
    )
    code, out, err = run(capsys, *how, "--session", path)
    assert code == 0
    assert "of your 4 private words" in err
    assert path.exists()
    assert run(capsys, *how, "--session", path)[1] == out  # equal words are released alike
