"""Prompts: what is found does not leave, in this text or a later one of the session, and comes back in answers."""

import json
import pickle
import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from tests.detectors import Finds, First

import textveil
from textveil.errors import ConfigError, UnknownName
from textveil.pipeline.components import NO_TAGGER_NOTE
from textveil.pipeline.protector import Protector
from textveil.session.state import Session

CANARY = "zyxqorvian@example.org"
MAIL = Finds(EMAIL=r"\S+@\S+\w")


class Last:
    """Finds the last 71 as an age."""

    name = "last"

    def find(self, texts):
        from textveil.detect import Span

        return [
            Span(b, at, at + 2, "AGE", 1.0, self.name)
            for b, text in enumerate(texts)
            if (at := text.rfind("71")) >= 0
        ]


@pytest.fixture(scope="module")
def guard():
    return Protector(protect={"detectors": [MAIL]}, names={"types": "none"})


def test_what_is_found_does_not_leave_and_comes_back(guard):
    session = Session()
    first = guard.protect(f"Ask {CANARY} about the lease", session)
    assert first.text == "Ask <EMAIL_1> about the lease"
    assert (
        guard.protect(f"Or x@y.org, not {CANARY}?", session).text == "Or <EMAIL_2>, not <EMAIL_1>?"
    )
    assert session.restore("I asked <EMAIL_1>.") == f"I asked {CANARY}."
    assert guard.protect(f"Ask {CANARY}").text == "Ask <EMAIL_1>", (
        "without a session nothing is kept"
    )


def test_the_profile_for_prompts_is_the_default():
    with_tagger, session = textveil.Protector(), Session()
    result = with_tagger.protect(f"Ask Maria Silva ({CANARY}) about the lease", session)
    assert isinstance(result, textveil.Result)
    assert not {"Maria", "Silva", CANARY} & set(re.findall(r"[\w@.]+", result.text))
    assert result.text.endswith("about the lease")


def test_it_is_frozen_and_shows_no_word(guard):
    with pytest.raises(FrozenInstanceError):
        guard.privatizer = None
    listed = Protector(protect={"detectors": [MAIL], "always": [CANARY]}, names={"types": "none"})
    assert CANARY not in repr(listed)


def test_it_pickles():
    guard = pickle.loads(pickle.dumps(Protector("strict", protect={"detectors": ["patterns"]})))
    assert guard.protect(CANARY).text == "<EMAIL>"


@pytest.mark.parametrize(
    "overrides",
    [
        {"groups": {"budgets": (1, 0, 9, 9)}},
        {"groups": {"budgets": (0, float("inf"), 9, 9)}},
        {"groups": {"budgets": "heuristic"}, "epsilon": 3.0},
    ],
    ids=repr,
)
def test_what_lets_pass_what_is_found_is_refused(overrides):
    with pytest.raises(ConfigError, match="hide all of it"):
        Protector(protect={"detectors": [MAIL]}, names={"types": "none"}, **overrides)


def test_what_finds_nothing_is_refused():
    wrong: list[dict[str, Any]] = [
        {"detectors": []},
        {"detectors": [], "importance": "list", "important": ["lease"]},
    ]
    for found in wrong:
        with pytest.raises(ConfigError):
            Protector(protect=found, names={"types": "none"}, groups={"budgets": (0, 0, 9, 9)})
    with pytest.raises(UnknownName):
        Protector("prompts")


# ---- once found, always hidden -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def first():
    return Protector(
        protect={"detectors": [First(PERSON=["Robert Taylor", "Okonkwo", "Will Byrne"])]}
    )


def test_headings_of_a_name(first):
    session = Session()
    text = "Write a page about Robert Taylor.\n\n# Robert\n\n## Taylor\n"
    sent = first.protect(text, session)
    assert (
        sent.text
        == "Write a page about <PERSON_1>.\n\n# <PERSON_1_GIVEN>\n\n## <PERSON_1_FAMILY>\n"
    )
    assert session.restore(sent.text) == text
    assert {"equal placeholders", "spellings"} < {*sent.guarantee.mask}


def test_capitals_of_a_name(first):
    assert (
        first.protect("Okonkwo wrote. OKONKWO signed.").text
        == "<PERSON_1> wrote. <PERSON_1_B> signed."
    )


def test_three_turns_in_other_spellings(first):
    """And each answer, restored and sent back, is hidden again as it was."""
    session = Session()
    turns = {
        "Mail Robert Taylor's office.": "Mail <PERSON_1>'s office.",
        "ROBERT TAYLOR, robert_cv.pdf, Mr Taylor": "<PERSON_1_B>, <PERSON_1_GIVEN>_cv.pdf, Mr <PERSON_1_FAMILY>",
        "Róbert-Taylor or Tay\u200blor? Robert Taylor!": "<PERSON_1_C> or <PERSON_1_FAMILY_B>? <PERSON_1>!",
    }
    for text, sent in turns.items():
        result = first.protect(text, session)
        assert (result.text, result.sent_earlier) == (sent, 0)
        answer = f"You wrote: {sent}"
        assert session.restore(answer) == f"You wrote: {text}"
        assert first.protect(session.restore(answer), session).text == answer


def test_a_kept_session_goes_on_hiding(first):
    session = Session()
    first.protect("Ask Robert Taylor", session)
    again = Session.from_json(session.to_json())
    assert first.protect("ask taylor", again).text == "ask <PERSON_1_FAMILY>"


def test_the_verb_stays(first):
    session = Session()
    text = "Will Byrne is here. Will you mark it? So I asked Will, and he will."
    sent = "<PERSON_1> is here. Will you mark it? So I asked <PERSON_1_GIVEN>, and he will."
    assert first.protect(text, session).text == sent


def test_what_was_sent_is_counted_and_not_changed(first):
    session = Session()
    assert first.protect("Ask taylor, and Will", session).text == "Ask taylor, and Will"
    result = first.protect("Robert Taylor and Will Byrne, taylor", session)
    assert result.text == "<PERSON_1> and <PERSON_2>, <PERSON_1_FAMILY>"
    assert result.sent_earlier == result.to_json()["sent_earlier"] == 1, (
        "an ordinary word may have been said as such"
    )
    assert first.protect("Robert Taylor", session).sent_earlier == 0, "only what is new is counted"
    together = list(
        first.privatizer.privatize_many(["ask okonkwo", "Okonkwo", "okonkwo"], Session())
    )
    assert [result.text for result in together] == ["ask okonkwo", "<PERSON_1>", "<PERSON_1_B>"]
    assert [result.sent_earlier for result in together] == [0, 1, 0]


def test_texts_of_a_batch_are_apart_without_a_session(first):
    texts = ["Okonkwo, OKONKWO", "okonkwo"]
    assert [each.text for each in first.privatizer.privatize_many(texts)] == [
        "<PERSON_1>, <PERSON_1_B>",
        "okonkwo",
    ]


def test_what_a_user_never_wants_hidden_is_not(first):
    made = Protector(protect={"detectors": [First(PERSON=["Robert Taylor"])], "never": ["Taylor"]})
    assert (
        made.protect("Robert Taylor, robert, TAYLOR").text
        == "<PERSON_1> Taylor, <PERSON_1_B>, TAYLOR"
    )


def test_names_inside_addresses_and_of_scripts_without_spaces():
    made = Protector(protect={"detectors": [First(PERSON=["Okonkwo", "김민수"])]})
    session = Session()
    text = "Okonkwo: https://example.org/okonkwo, okonkwo85, ok@okonkwo.org. 김민수 김민수는 민수가"
    sent = "<PERSON_1>: <URL_1>, <HANDLE_1>, <EMAIL_1>. <PERSON_2> <PERSON_2>는 <PERSON_2_GIVEN>가"
    assert made.protect(text, session).text == sent
    assert session.restore(sent) == text


@pytest.mark.parametrize("kept", [False, True], ids=["session", "saved session"])
def test_a_number_of_json_becomes_a_string_and_comes_back_as_a_number(kept):
    made = Protector(
        protect={"detectors": [First(AGE=["71", "7.5"], PHONE=["49170234567"]), Last()]}
    )
    session = Session()
    text = '{"age": 71, "text": "71", "phone": 49170234567,\n"weight":7.5 }'
    sent = made.protect(text, session).text
    assert json.loads(sent) == {
        "age": "<AGE_1>",
        "text": "<AGE_1_B>",
        "phone": "<PHONE_1>",
        "weight": "<AGE_2>",
    }
    if kept:
        session = Session.from_json(session.to_json())
    assert session.restore(sent) == text
    assert session.restore("Is <AGE_1> or AGE_1_B the age?") == "Is 71 or 71 the age?"
    assert session.restore(json.dumps(sent), escape="json") == json.dumps(text)


@pytest.mark.parametrize(
    "text", ["const u = {name: 'K', age: 71};", "f(x, age=71)", "Person(age=71, size=2)"]
)
def test_a_number_of_code_becomes_a_string_and_comes_back_as_a_number(text):
    made, session = Protector(protect={"detectors": [First(AGE=["71"])]}), Session()
    sent = made.protect(text, session).text
    assert sent == text.replace("71", '"<AGE_1>"')
    assert session.restore(sent) == text


@pytest.mark.parametrize(
    "text",
    [
        "age: 71, ok",
        "so (age: 71), ok",
        '{"q": "{a: 71}"}',
        'log.info("User(age=71)")',
        "f'{age:71}'",
        "'a': -71}",
        'ask "who?": 071,',
        '"a": 71 or so',
    ],
)
def test_other_numbers_get_no_quotation_marks(text):
    made = Protector(protect={"detectors": [First(AGE=["071", "71"])]})
    assert re.sub("0?71", "<AGE_1>", text) == made.protect(text).text


@pytest.mark.parametrize(
    "text",
    [
        '{"note": "the students\' card", "age": 71}',
        '{"note": "5\' tall", "age": 71}',
        json.dumps({"note": "say \\", "age": 71}),
        json.dumps([{"note": "x" * 30, "age": 71}] * 200),
        json.dumps({"note": "x" * 5000, "age": 71}),
    ],
    ids=["plural", "feet", "backslash", "records", "long"],
)
def test_json_on_one_line_stays_valid(text):
    made, session = Protector(protect={"detectors": [Finds("own", AGE="71")]}), Session()
    sent = made.protect(text, session).text
    assert json.loads(sent) == json.loads(text.replace("71", '"<AGE_1>"'))
    assert session.restore(sent) == text


@pytest.mark.parametrize("text", ['{"source": ["print(\\"x,71;y\\")"]}', '{"a": ["# x,71;y"]}'])
def test_a_number_inside_a_string_gets_no_quotation_marks(text):
    made = Protector(protect={"detectors": [First(AGE=["71"])]})
    assert made.protect(text).text == text.replace("71", "<AGE_1>")


def test_a_column_beside_a_hidden_figure_stays():
    made = Protector(protect={"detectors": [First(DATE=["14/02/1951"], AGE=["71"])]})
    session = Session()
    text = "born,weight,age,size\n14/02/1951,74,71,1.80\n"
    sent = made.protect(text, session).text
    assert sent == "born,weight,age,size\n<DATE_1>,74,<AGE_1>,1.80\n"
    assert session.restore(sent) == text


def test_placeholders_that_a_text_has_of_itself_come_back(first):
    session = Session()
    first.protect("Ask Okonkwo", session)
    text = "what is <PERSON_1>, PERSON_1, or person_1? <PERSON_2>"
    sent = first.protect(text, session).text
    assert sent == "what is <LITERAL_1>, <LITERAL_2>, or person_1? <PERSON_2>"
    assert session.restore(sent) == text
    assert first.protect("Robert Taylor", session).text == "<PERSON_3>"


@pytest.mark.parametrize(("score", "kind"), [(0.95, "word"), (0.85, "placeholder")])
def test_names_that_are_unsure_become_placeholders(score, kind):
    found = First(score=score, PERSON=["Robert Taylor"])
    made = Protector(protect={"detectors": [found]}, names={"types": ["all"]}, seed=4)
    session = Session()
    for text in ("Robert Taylor said so", "to taylor"):
        items = made.protect(text, session).released.items
        assert {item.kind for item in items if item.kind != "verbatim"} == {kind}


def test_a_release_that_is_made_again_knows_what_came_in_between(first, monkeypatch):
    """Another thread hid a name while this text was drawn; its release is spread anew."""
    session = Session()
    draw = type(first.privatizer)._draw
    others = iter([lambda: first.protect("Okonkwo", session)])

    def slow(self, *given):
        next(others, lambda: None)()
        return draw(self, *given)

    monkeypatch.setattr(type(first.privatizer), "_draw", slow)
    assert first.protect("ask okonkwo", session).text == "ask <PERSON_1_B>"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("我的朋友王小明住在这里。", "王小明"),
        ("صديقي محمد جاء", "محمد"),
        ("私の友人は山田太郎です。", "山田太郎"),
    ],
)
def test_names_in_scripts_without_capitals_become_placeholders_not_other_names(text, name):
    session = Session()
    guard = Protector(protect={"detectors": [First(PERSON=[name])]}, names={"types": ["all"]})
    released = guard.protect(text, session).text
    assert released == text.replace(name, "<PERSON_1>")
    assert session.restore(released) == text


def test_names_with_capitals_still_become_other_names():
    guard = Protector(protect={"detectors": [First(PERSON=["Петренко"])]}, names={"types": ["all"]})
    released = guard.protect("Это Петренко.").text
    assert re.fullmatch(r"Это [A-Z][a-z]+\.", released)


def test_one_option_of_a_section_is_checked_together_with_those_of_the_profile():
    assert Protector(protect={"unmeasured": "strict"}).protect("សួស្តី").text == "<TEXT_1>"
    with pytest.raises(UnknownName, match=r"'protect\.lewel'; did you mean 'protect\.level'"):
        Protector(protect={"lewel": "names"})


def test_types_that_no_detector_can_find_are_refused():
    with pytest.raises(
        UnknownName, match=r"no type for protect\.types is named 'PERSN'; did you mean 'PERSON'"
    ):
        Protector(protect={"types": ["EMAIL", "PERSN"]})
    own = Protector(protect={"detectors": [First(BADGE=["K-17"])], "types": ["BADGE"]})
    assert own.protect("She wears K-17.").text == "She wears <BADGE_1>."


@pytest.mark.parametrize(
    ("text", "released"),
    [
        ('{"n": 7264943241}', '{"n": "<ID_1>"}'),
        ('{"n": -7264943241}', '{"n": "<ID_1>"}'),
        ('{"n": [1, 2, 7264943241]}', '{"n": [1, 2, "<ID_1>"]}'),
        ('{"n": [\n  7264943241,\n  2\n]}', '{"n": [\n  "<ID_1>",\n  2\n]}'),
        ("d = {'n': 7264943241}", "d = {'n': \"<ID_1>\"}"),
        ("n = 7264943241\nm = 2\n", 'n = "<ID_1>"\nm = 2\n'),
        ("if n == 7264943241: pass", 'if n == "<ID_1>": pass'),
        ("see [1, 7264943241] and 7264943241, please", "see [1, <ID_1>] and <ID_1>, please"),
        ("n: 7264943241", "n: <ID_1>"),
        ("N=7264943241", "N=<ID_1>"),
    ],
)
def test_a_number_of_json_or_code_gives_way_to_a_string_so_that_what_was_valid_stays_valid(
    text, released
):
    class Numbers:
        name = "numbers"

        def find(self, texts):
            from textveil.detect import Span

            return [
                Span(b, found.start(), found.end(), "ID", 1.0, self.name)
                for b, text in enumerate(texts)
                for found in re.finditer("-?7264943241", text)
            ]

    session = Session()
    assert Protector(protect={"detectors": [Numbers()]}).protect(text, session).text == released
    assert session.restore(released, where="everywhere") == text


@pytest.mark.parametrize(
    ("options", "blind"),
    [
        ({"detectors": ["patterns", "structure"], "level": "personal"}, True),
        ({"detectors": ["patterns"], "level": "names"}, True),
        ({"detectors": ["patterns"], "always": ["owl"], "level": "personal"}, True),
        ({"detectors": ["patterns"], "unmeasured": "strict"}, True),
        ({"detectors": ["patterns"], "level": "identifiers"}, False),
        ({"detectors": ["patterns"], "types": ["EMAIL"]}, False),
        ({"detectors": ["patterns", "tagger"], "level": "personal"}, False),
        ({"detectors": ["patterns", First()], "level": "personal"}, False),
    ],
)
def test_without_a_detector_of_names_the_statement_says_that_they_pass(options, blind):
    made = Protector(protect=options, names={"types": "none"})
    told = made.protect("Ask x@y.org").guarantee.claim.caveats
    assert (NO_TAGGER_NOTE in told) is blind
