"""Figures from text to statement: dates, ages and amounts that are moved, in a text and over a session.

Statistical checks have a false-alarm rate of 1e-6; they are seeded, so a check that passes once passes always.
"""

import copy
import json
import math
import pickle
import re
from datetime import date
from importlib.resources import files

import jsonschema
import numpy as np
import pytest
from scipy.stats import chisquare
from tests.detectors import Finds

from textveil.config import resolve
from textveil.detect.quantities import read
from textveil.errors import BudgetError, ConfigError, InputError, UnknownName
from textveil.evaluate.attack.attack_input import check_privatizer
from textveil.guarantee import compose, count_hidden, describe_hidden, summarize
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness import SeededRandomness
from textveil.render.groups import GROUP_STYLES, find_style
from textveil.session.state import Session
from textveil.text.released import Kind

FALSE_ALARM = 1e-6
SCHEMA = json.loads(
    (files("textveil") / "data" / "guarantee.schema.json").read_text(encoding="utf-8")
)
DATE = r"\d{4}-\d\d-\d\d|\d\d? \w+ \d{4}|\d\d?/\d\d?/\d{4}"
TURNS = (
    "Anna, aged 34, was born on 14 February 1951 and came on 2024-03-01.",
    "She left on 2024-03-08, being aged 34, and Ben aged 71.",
    "Born 14 February 1951, not 13/02/2024.",
)


@pytest.fixture(scope="module")
def mover(small_table):
    """A privatizer that finds dates, ages and amounts; all other words pass."""

    def made(
        types="all",
        score=0.9,
        mechanism="placeholder",
        budgets=(0, 0, math.inf, math.inf),
        **options,
    ):
        figures = {"types": types, **options.pop("figures", {})}
        found = Finds(score=score, DATE=DATE, AGE=r"(?<=aged )\d\d", AMOUNT=r"\$[\d.,]*\d")
        return Privatizer(
            mechanism,
            table=small_table,
            words={"casing": "copy", "consistent": True},
            protect={"detectors": [found]},
            groups={"budgets": budgets},
            figures=figures,
            **options,
        )

    return made


def ages(text):
    return [int(age) for age in re.findall(r"aged (\d+)", text)]


def days(text):
    return [figure.value for each in re.findall(DATE, text) if (figure := read("DATE", each))]


# ---- what is released ------------------------------------------------------------------------------------------------


def test_figures_are_moved_in_their_form_and_the_rest_stays(mover):
    result = mover(seed=1).privatize(TURNS[0])
    assert re.fullmatch(
        r"Anna, aged \d+, was born on \d\d? \w+ \d{4} and came on \d{4}-\d\d-\d\d\.", result.text
    )
    assert result.text != TURNS[0]
    born, came = days(result.text)
    before, after = days(TURNS[0])
    assert born - before == came - after != 0
    assert {item.group for item in result.released.items if item.kind is Kind.NUMBER} == {
        "AGE",
        "DATE",
    }
    assert "moved numbers" in result.released.mask.fields
    assert count_hidden([result.released]) == {"AGE": 1, "DATE": 2}
    assert describe_hidden([result.released]) == (
        "2 dates and 1 age replaced (a drawn figure may by chance be the original); the rest is unchanged, "
        "and nothing is claimed about it."
    )


def test_every_text_without_a_session_has_its_own_days(mover):
    texts = ["came on 2024-03-01, left on 2024-03-08"] * 20
    moved = [days(result.text) for result in mover(seed=2).privatize_many(texts)]
    assert {left - came for came, left in moved} == {7}
    assert len({came for came, _ in moved}) > 10


def test_three_turns_and_a_saved_session(mover):
    made, session = mover(), Session()
    sent = []
    for turn in TURNS:
        sent.append(made.privatize(turn, session).text)
        session = Session.from_json(session.to_json())
    shift = days(sent[0])[0] - days(TURNS[0])[0]
    for turn, text in zip(TURNS, sent, strict=True):
        left = [day + shift for day in days(turn)]
        assert left[: len(days(text))] == days(text)
    assert ages(sent[0]) == ages(sent[1])[:1]
    again = made.privatize(TURNS[0], session).text
    assert again == sent[0]
    drawn = json.loads(session.to_json())["draws"]
    assert sorted((each["group"], each["word"]) for law in drawn.values() for each in law) == [
        ("AGE", "34"),
        ("AGE", "71"),
        ("DATE", ""),
    ]


def test_dates_come_back_and_ages_do_not(mover):
    session = Session()
    sent = mover(seed=4).privatize(TURNS[0], session).text
    restored = session.restore(sent)
    assert days(restored) == days(TURNS[0])
    assert ages(restored) == ages(sent)
    assert re.sub(r"aged \d+", "aged 34", restored) == TURNS[0]
    born, came = re.findall(DATE, sent)
    assert session.restore(f"**{born}**, {born.upper()}; x{came} 1{came} {came}1") == (
        f"**14 February 1951**, 14 FEBRUARY 1951; x{came} 1{came} {came}1"
    )


def test_each_spelling_of_a_date_comes_back_as_it_was(mover):
    made, session = mover(), Session()
    made.grouping.detection.settings.detectors[0].types["DATE"] = (
        r"\d\S*(?: de \w+ de)? ?\d{4}|\d[\d.]+"
    )
    text = "4.2.1951 then 04.02.1951 then 4 de febrero de 1951 then 4.2.1951"
    sent = made.privatize(text, session).text
    assert re.fullmatch(r"(\d\d\.\d\d\.\d{4}) then <DATE_1> then \d{4}-\d\d-\d\d then \1", sent)
    assert session.restore(sent) == text


class OneNoise(SeededRandomness):
    """The same noise for every text, which no privatizer has."""

    def bind_texts(self, first, digests):
        return self


def test_a_date_that_the_text_says_itself_is_not_used(mover):
    def made_of(**options):
        return mover(**options).with_parts(randomness=OneNoise(5))

    made = made_of()
    [came] = days(made.privatize("came on 2024-03-01", Session()).text)
    said = date.fromordinal(came)
    made = made_of(score=0.9)
    made.grouping.detection.settings.detectors[0].types["DATE"] = "2024-03-01"
    session = Session()
    sent = made.privatize(
        f"came on 2024-03-01, as a law of {said.day} {said:%B %Y} or {said:%Y.%m.%d} says", session
    )
    assert "<DATE_1>" not in sent.text  # neither is the same string
    made = made_of()
    made.grouping.detection.settings.detectors[0].types["DATE"] = "1 March 2024"
    session = Session()
    sent = made.privatize(
        f"came on 1 March 2024, as a law of {said.day} {said:%B %Y} says", session
    )
    assert "came on <DATE_1>," in sent.text
    assert sent.guarantee.groups[0].by in ("figure", "nothing")
    assert (
        session.restore(sent.text)
        == f"came on 1 March 2024, as a law of {said.day} {said:%B %Y} says"
    )
    # and one that is said later stays as the answer has it
    session = Session()
    made.privatize("came on 1 March 2024", session)
    made.privatize(f"a law of {said.day} {said:%B %Y}", session)
    assert session.restore(f"{said.day} {said:%B %Y}") == f"{said.day} {said:%B %Y}"


@pytest.mark.parametrize(("score", "kind"), [(0.8, Kind.NUMBER), (0.79, Kind.PLACEHOLDER)])
def test_what_is_unsure_becomes_a_placeholder(mover, score, kind):
    result = mover(score=score).privatize(TURNS[0])
    assert {item.kind for item in result.released.items} == {Kind.VERBATIM, kind}


def test_what_cannot_be_read_becomes_a_placeholder(mover):
    session = Session()
    text = "born 3/1/2024 or 30 February 2024 or 1951-02-30"
    sent = mover().privatize(text, session).text
    assert sent == "born <DATE_1> or <DATE_2> or <DATE_3>"
    assert session.restore(sent) == text


def test_a_date_beyond_the_calendar_becomes_a_placeholder(mover):
    made = mover(figures={"day_epsilon": 1e-15})  # one draw in 5e8 stays within the calendar
    result = made.privatize("came on 2024-03-01")
    assert result.text == "came on <DATE_1>"
    assert result.guarantee.placeholders == 0, "it was drawn, and is no placeholder of epsilon 0"
    assert [group.by for group in result.guarantee.groups if group.label == "DATE"] == ["figure"]


def test_only_the_types_that_are_asked_for(mover):
    text = mover(["AGE"], seed=6).privatize(TURNS[0]).text
    assert re.fullmatch(r"Anna, aged \d+, was born on <DATE_1> and came on <DATE_2>\.", text)
    amounts = mover(["AMOUNT"], figures={"unit": 100}, seed=6).privatize(
        "owes $1,250.50, or $1,250.50, or $12"
    )
    first, second, third = re.findall(r"\$([\d,.]*\d)", amounts.text)
    assert first == second != "1,250.50"
    assert re.fullmatch(r"[\d,]+\.\d\d", first)
    assert third.isdigit()
    assert describe_hidden([amounts.released]).startswith(
        "3 of type AMOUNT replaced (a drawn figure"
    )


def test_an_amount_is_drawn_once_however_many_decimal_places_it_has(mover):
    session = Session()
    sent = mover(["AMOUNT"], figures={"unit": 1}).privatize("owes $1,250.50, or $1250.5", session)
    one, two = re.findall(r"\$(\d+\.\d+)", sent.text)
    assert float(two) == pytest.approx(float(one), abs=0.0501)
    assert [
        each["word"] for law in json.loads(session.to_json())["draws"].values() for each in law
    ] == ["125050"]


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("Ben is aged 21 years, she says", r"Ben is aged (\d+) year(s?), she says"),
        ("Ben is aged 10 months now", "Ben is aged <AGE_1> now"),
        ("Ben is aged 10 weeks now", "Ben is aged <AGE_1> now"),
    ],
)
def test_the_unit_of_an_age_is_a_part_of_it(mover, text, sent):
    for _ in range(20):
        match = re.fullmatch(sent, mover(figures={"year_epsilon": 0.02}).privatize(text).text)
        assert match
        assert not match.groups() or (match[1] == "1") == (match[2] == "")


def test_moved_figures_are_shown_as_such(mover):
    items = mover(["AGE"], seed=6).privatize(TURNS[0]).released.items
    assert [item.group for item in items if find_style(item) is GROUP_STYLES["figure"]] == ["AGE"]


def test_a_number_of_json_stays_a_number(mover):
    made = mover(seed=7)
    made.grouping.detection.settings.detectors[0].types.update(DATE="(?!)", AGE="34")
    sent = json.loads(made.privatize('{"age": 34, "note": "is 34"}').text)
    assert isinstance(sent["age"], int)
    assert sent["note"] == f"is {sent['age']}"


# ---- the law ---------------------------------------------------------------------------------------------------------


def follows(moves, epsilon):
    """Whether moves have the law of discrete Laplace noise, with the rare ones at either end put together."""
    beyond = int(
        math.log(len(moves) / 20 * min(1, math.tanh(epsilon / 2) * math.exp(epsilon))) / epsilon
    )
    law = np.exp(-epsilon * np.abs(np.arange(-beyond + 1, beyond))) * math.tanh(epsilon / 2)
    expected = np.array([(1 - law.sum()) / 2, *law, (1 - law.sum()) / 2]) * len(moves)
    assert expected.min() >= 5
    counts = np.bincount(np.clip(moves, -beyond, beyond) + beyond, minlength=2 * beyond + 1)
    return chisquare(counts, expected).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_moves_have_the_law_that_the_statement_says(mover):
    made = mover(
        ["AGE", "DATE", "AMOUNT"],
        figures={"day_epsilon": 0.5, "year_epsilon": 0.8, "unit_epsilon": 80, "unit": 2},
        seed=8,
    )
    texts = ["aged 60, came on 2024-03-01 with $1000.50"] * 2500
    moved = [re.findall(r"\d[\d.-]*\d|\d", result.text) for result in made.privatize_many(texts)]
    years = np.array([int(age) for age, _, _ in moved]) - 60
    dates = (
        np.array([date.fromisoformat(day).toordinal() for _, day, _ in moved])
        - date(2024, 3, 1).toordinal()
    )
    amounts = np.array([round(100 * float(amount)) for _, _, amount in moved]) - 100050
    for moves, epsilon in ((years, 0.8), (dates, 0.5), (amounts, 80 * 0.01 / 2)):
        assert follows(moves, epsilon)
        assert not follows(moves, epsilon * 1.2)
        assert not follows(np.where(moves == 0, moves, np.abs(moves)), epsilon)


def test_a_seed_repeats_and_none_does_not(mover):
    texts = [TURNS[0]] * 3
    one, two = ([each.text for each in mover(seed=9).privatize_many(texts)] for _ in range(2))
    assert one == two
    assert len({mover().privatize(TURNS[0]).text for _ in range(5)}) > 1


def test_another_law_in_the_same_session_draws_anew(mover):
    session = Session()
    mover(["AGE"]).privatize("aged 34 now", session)
    mover(["AGE"], figures={"year_epsilon": 0.1}).privatize("aged 34 now", session)
    assert len(json.loads(session.to_json())["draws"]) == 2


# ---- the statement ---------------------------------------------------------------------------------------------------


def said(guarantee):
    found = json.loads(json.dumps(guarantee.to_json(), allow_nan=False))
    jsonschema.validate(found, SCHEMA)
    return found


def test_ages_have_a_finite_statement(mover):
    made = mover(["AGE"], mechanism="rankcape", k=5, budgets=(0, 0, 4, 4), seed=1)
    result = made.privatize("river aged 34, or aged 71, or aged 34.")
    found = said(result.guarantee)
    assert (found["kind"], found["epsilon"], found["epsilon_ldp"]) == ("ldp", 24.0, 24.0)
    group = next(each for each in found["groups"] if each["label"] == "AGE")
    assert group == {
        "label": "AGE",
        "words": 3,
        "by": "figure",
        "epsilon_ldp": 24.0,
        "mean_epsilon_ldp": 24.0,
        "epsilon_per_unit": 0.2,
        "unit": "year",
    }
    assert result.guarantee.epsilon_per_word.tolist().count(24.0) == 2, "equal ages are one draw"
    assert "3 ages moved at epsilon 0.2 per year" in result.guarantee.summary()
    assert "AGE 0.2 per year, at most 24 (3 figures)" in result.guarantee.headline()
    assert "passed unprotected" not in result.guarantee.explain()
    assert [note for note in found["caveats"] if note.startswith("each age is moved by years")]
    assert found["options"]["figures"]["types"] == ["AGE"]
    tied = [
        {result.released.items[i].text for i in places} for places in result.released.mask.equal
    ]
    assert all(len(texts) == 1 for texts in tied)
    assert tied


def test_dates_have_a_bound_for_all_of_them_together_only(mover):
    made = mover(
        mechanism="rankcape", k=5, budgets=(0, 0, 4, 4), seed=1, figures={"day_epsilon": 0.01}
    )
    found = said(made.privatize("river 2024-03-01.").guarantee)
    assert (found["kind"], found["infinite_because"]) == (
        "none",
        ["the days between dates are kept"],
    )
    group = next(each for each in found["groups"] if each["label"] == "DATE")
    assert (group["epsilon_ldp"], group["epsilon_per_unit"], group["unit"]) == (
        "infinite",
        0.01,
        "day",
    )
    assert "DATE 0.01 per day, all dates alike (1 figure)" in found["statement"]
    assert "unprotected" not in found["statement"]
    assert any(
        "epsilon is 0.01 * D, over all releases of the session together" in note
        for note in found["caveats"]
    )


def test_statements_show_every_digit_of_a_bound(mover):
    made = mover(
        ["AGE", "DATE", "AMOUNT"],
        figures={
            "day_epsilon": 1e-7,
            "year_epsilon": 0.20000049,
            "unit_epsilon": 1.0,
            "unit": 1234567.0,
        },
    )
    dates, ages, amounts = made.claim.caveats[-3:]
    assert "epsilon is 0.0000001 * D," in dates
    assert "epsilon is 0.20000049 * D, at most 24.0000588," in ages
    assert "epsilon is 1 * D / 1234567," in amounts
    assert made.figures.name_unit("AMOUNT") == "1234567"


def test_words_that_pass_are_still_counted(mover):
    found = said(mover(seed=1).privatize("river bank 2024-03-01").guarantee)
    assert "2 words passed unprotected" in found["summary"]
    assert "2 more words passed unprotected" in found["statement"]


def test_several_texts_and_several_releases(mover):
    made = mover(["AGE"], mechanism="rankcape", k=5, budgets=(0, 0, 4, 4))
    one, two = (
        result.guarantee for result in made.privatize_many(["river aged 34", "bank aged 71"])
    )
    (group,) = (each for each in summarize([one, two]).groups if each.label == "AGE")
    assert (group.words, group.per_unit, group.epsilon) == (2, 0.2, 24.0)
    (group,) = (each for each in compose([one, one]).groups if each.label == "AGE")
    assert (group.per_unit, group.epsilon) == (0.4, 48.0)
    said(summarize([one, two]))
    said(compose([one, one]))


def test_without_the_option_nothing_is_said_of_figures(mover):
    guarantee = mover("none").privatize(TURNS[0]).guarantee
    found = said(guarantee)
    assert "figures" not in json.dumps(found)
    assert "unit" not in found["groups"][0]
    assert "figures" not in resolve(profile="prompt").to_dict()
    assert resolve(profile="prompt", overrides={"figures.types": "AGE"}).to_dict()["figures"][
        "types"
    ] == ["AGE"]


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["day_epsilon", "year_epsilon", "unit_epsilon", "unit"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "much"])
def test_budgets_are_positive_and_finite(mover, name, value):
    with pytest.raises(ConfigError, match=rf"^figures\.{name} must be [^\n]*, got [^\n]*$"):
        mover(figures={name: value})


@pytest.mark.parametrize(
    ("figures", "match"),
    [
        (
            {"day_epsilon": 1e-30},
            r"^figures\.day_epsilon: the numbers are too small, too large or have too many digits",
        ),
        ({"year_epsilon": 1e30}, r"^figures\.year_epsilon: the numbers are"),
        (
            {"types": ["AMOUNT"], "unit": 1e30},
            r"^figures\.unit_epsilon and figures\.unit: the numbers are",
        ),
    ],
)
def test_budgets_that_the_exact_law_cannot_have_are_refused(mover, figures, match):
    with pytest.raises(BudgetError, match=match):
        mover(
            **{"types": "all", **({"types": figures.pop("types")} if "types" in figures else {})},
            figures=figures,
        )


@pytest.mark.parametrize("type_", ["PERSON", "PHONE", "age", "AN AGE", 3])
def test_types_are_those_of_figures(mover, type_):
    with pytest.raises(UnknownName, match=r"no type for figures\.types is named"):
        mover([type_], figures={"unit": 1})


def test_amounts_and_a_unit_go_together(mover):
    for types, unit in ((["AMOUNT"], None), (["AGE"], 10), ("none", 10)):
        with pytest.raises(ConfigError, match=r"^figures\.unit goes with a type of your own"):
            mover(types, figures={"unit": unit})


def test_attacks_do_not_judge_them(mover):
    with pytest.raises(ConfigError, match=r"figures\.types=none"):
        check_privatizer(mover(), names=True)


def test_nothing_shows_the_originals(mover):
    made, session = mover(seed=3), Session()
    rehearsal = made.rehearse([TURNS[0]], session)
    assert rehearsal.plan.figures
    for each in (rehearsal, rehearsal.plan, session, made, made.figures, session.snapshot()):
        assert not re.search("1951|34|2024", repr(each))
    with pytest.raises(InputError) as caught:
        made.privatize("born 14 February 1951 \ud800")
    assert "1951" not in str(caught.value)


def test_copies_move_figures_too(mover):
    for made in (pickle.loads(pickle.dumps(mover())), copy.deepcopy(mover())):
        assert made.figures == mover().figures
        assert made.grouping.moved == {"DATE", "BIRTH_DATE", "AGE"}
