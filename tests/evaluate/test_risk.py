"""The risk of a release: numbers against the law by hand, and what is shown of them."""

import itertools
import os
import re
import stat

import numpy as np
import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil import cli
from textveil.evaluate.attack import Case
from textveil.evaluate.attack.prior import static
from textveil.evaluate.risk import assess, sentence
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.show import risk
from textveil.table.embedding import EmbeddingTable

CANARY = "zzcanaryzz"
TEXT = "The lemon and the castle, a river and an onion."


@pytest.fixture(scope="module")
def table():
    return EmbeddingTable.build(name="sixty", words=NOUNS, vectors=gaussian_rows(60, 8, 3))


def risk_of(table, text=TEXT, mechanism="exponential", prior="uniform", **options):
    case = Case.of(Privatizer(mechanism, table=table, seed=3, **options), [text])
    return case, assess(case, prior=prior, rng=SeededRandomness(1))[0]


def posterior_by_hand(table, c, drawn, secret, prior):
    """Bayes' rule over 60 words, from distances alone."""
    vectors = table.vectors.double().numpy()
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    weights = np.exp(-np.minimum(c * distances, 20))
    law = weights / weights.sum(axis=1, keepdims=True)
    joint = prior[:, None] * law
    posterior = joint[:, drawn] / joint[:, drawn].sum(axis=0)
    return posterior[secret, np.arange(len(drawn))], posterior.argmax(axis=0) == secret


@pytest.mark.parametrize("prior", ["uniform", "unigram"])
def test_probabilities_are_bayes_rule(table, prior):
    case, found = risk_of(table, prior=prior, c=3.0)
    expected, named = posterior_by_hand(table, 3.0, case.view.drawn, case.truth.rows, np.exp(static(table, prior)))
    assert found.evidence == "exact"
    assert found.probability[case.view.item] == pytest.approx(expected, rel=1e-4)
    assert found.named[case.view.item].tolist() == named.tolist()
    assert found.private.tolist() == [item.group == "protected" for item in found.released.items]


def test_a_broken_attacker_gives_other_numbers(table):
    """The twin that takes the released word for certain."""
    case, found = risk_of(table, c=3.0)
    certain = (case.view.drawn == case.truth.rows).astype(float)
    assert np.abs(found.probability[case.view.item] - certain).max() > 0.1


def test_over_many_texts_the_count_is_what_the_attacker_expects(table):
    """Right best guesses, and their stated probabilities: 3,000 words, within 5 standard deviations (5.7e-7)."""
    words = [NOUNS[i] for i in np.random.default_rng(1).integers(0, 60, 3000)]
    case = Case.of(Privatizer("exponential", c=4.0, table=table, seed=5), [" ".join(words)])
    found = assess(case, prior="uniform")[0]
    from textveil.evaluate.attack.posterior import posterior

    stated = np.exp(posterior(case.view, prior="uniform", k=1, rng=SeededRandomness(0)).log_probability[:, 0])
    deviation = np.sqrt((stated * (1 - stated)).sum())
    assert abs(found.named.sum() - stated.sum()) < 5 * deviation


def test_words_that_pass_unprotected_are_certain(table):
    _, found = risk_of(table, mechanism="noise", epsilon=float("inf"))
    assert found.probability[found.private].tolist() == [1.0] * 4
    assert sentence([found]) == "An attacker who knows this program recovers about 4 of your 4 private words."


def test_placeholders_leave_the_prior(table):
    _, found = risk_of(table, mechanism="placeholder")
    assert found.probability[found.private] == pytest.approx(1 / 60)


def test_noise_is_estimated_and_windows_are_guessed_together(table):
    for mechanism, options in (("noise", {"eta": 30.0}), ("d-chi-stencil", {"eta": 60.0, "L": 4})):
        _, found = risk_of(table, mechanism=mechanism, **options)
        assert found.evidence == "estimated"
        known = found.probability[found.private]
        assert ((known >= 0) & (known <= 1)).all()


def test_no_text_and_no_private_word(table):
    for text in ("", "the and of"):
        _, found = risk_of(table, text=text, c=3.0)
        assert sentence([found]) == "There is no private word to recover."
        assert risk.coloured(found, marked=False).plain == text
        assert not found.private.any()


def test_what_is_shown_is_the_release_with_signs(table):
    _, found = risk_of(table, c=3.0)
    plain = risk.coloured(found, marked=False).plain
    assert re.sub("[¹²³⁴*]", "", plain) == found.released.text
    assert len(re.findall(r"\*", plain)) == found.named.sum() > 0
    assert risk.coloured(found, marked=True).plain == found.released.text


def test_every_probability_has_one_level():
    steps = [risk.level(p).meaning for p in (0.0, 0.01, 0.011, 0.1, 0.5, 0.51, 0.9, 0.91, 1.0)]
    assert len(dict.fromkeys(steps)) == 5
    assert steps[0] == "less than 1%"
    assert steps[-1] == "more than 90%"


def test_levels_differ_in_lightness():
    """For every eye: the relative luminance of the backgrounds falls from step to step by a quarter at least."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    shades = [luminance(step.style.partition(" on ")[2]) for step in risk.LEVELS[1:]]
    assert all(after < 0.75 * before for before, after in itertools.pairwise(shades))


def test_the_page_stands_alone_and_escapes(table):
    case, found = risk_of(table, text="lemon < castle & river", c=3.0)
    guarantee = Privatizer("exponential", c=3.0, table=table, seed=3).privatize("lemon < castle & river").guarantee
    page = risk.page([found], guarantee)
    assert "recovers" in page
    assert "&lt;" in page
    assert "&amp;" in page
    assert not re.search(r"<script|https?://|src=", page)
    assert page.index("recovers") < page.index("The statement")
    assert len(re.findall(r'<span class="word level\d(?: named)?" title="[^"]+" tabindex="0">', page)) == 3
    assert CANARY not in repr(found) + repr(case)


# ---- the verb --------------------------------------------------------------------------------------


def run(capsys, *arguments, verb="risk"):
    code = cli.main([verb, f"Anna told the {CANARY} about the lemon", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_release_goes_out_and_the_risk_beside_it(capsys, tmp_path):
    page = tmp_path / "risk.html"
    code, out, err = run(capsys, "--mechanism", "noise", "--epsilon", 70, "--seed", 1, "--html", page)
    assert code == 0
    assert out.count("\n") == 1
    assert re.search(r"recovers (none|about \d+) of your 4 private words", err)
    assert err.index("recovers") < err.index("per unit of chord distance")
    assert CANARY not in out + err + page.read_text(encoding="utf-8")
    assert stat.S_IMODE(os.stat(page).st_mode) == 0o600
    assert out == run(capsys, "--mechanism", "noise", "--epsilon", 70, "--seed", 1, verb="privatize")[1]


def test_json_has_the_risk_and_a_warning(capsys):
    import json

    code, out, err = run(capsys, "--mechanism", "noise", "--epsilon", 70, "--seed", 1, "--json")
    found = json.loads(out)["risk"]
    assert code == 0
    assert found["private"] == 4
    assert len(found["probability"]) == len(json.loads(out)["items"])
    assert "keep the output to yourself" in err


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
    case = Case.of(Privatizer("exponential", c=9.0, table=table, seed=3), [TEXT, TEXT])
    found = assess(case, prior="uniform")
    assert f"{sum(int(each.named.sum()) for each in found)} of your 8" in sentence(found)
