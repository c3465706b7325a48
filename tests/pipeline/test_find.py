"""What is found in a text: all that a release hides and nothing else, and what stays, with the reason."""

import inspect
from dataclasses import FrozenInstanceError, replace

import pytest
from tests.detectors import Finds, First

import textveil
from textveil.errors import ConfigError, DetectorError, InputError, MechanismError
from textveil.pipeline import BATCH_TEXTS, Privatizer, Protector, privatizer
from textveil.session import Session
from textveil.text import Kind

CANARY = "zyxqorvian@example.org"
MAIL = Finds(EMAIL=r"\S+@\S+\w")

TEXTS = (
    "",
    " \n",
    "where is it",
    f"Ask Maria Silva ({CANARY}) about Marie Curie and Python. Silva knows, and SILVA too.",
    "My neighbour Rose lives at 14 Elm Street, Leeds LS1 4AP, and was born on 3 May 1971.",
    '{"name": "Jo\\u00e3o Pereira", "phone": "+351 21 123 4567", "age": 71, "note": "Jo\\u00e3o"}\n',
    f'id,name,mail\n1,"Pereira, João",{CANARY}\n2,Bo Ash,bo@example.org\n',
    f'<?xml version="1.0"?>\n<a><name>Maria Silva</name><mail>{CANARY}</mail></a>\n',
    "我的朋友王小明住在这里。王小明的电话是13912345678。",
    "সে মারিয়া সিলভার বাড়িতে থাকে, এবং সে আজ আসবে না।",
    "Call 212-555-0148 or \\\\212-555-0149, path C:\\Users\\maria.silva\\x",
    "Berfin'den d'Anna Rossi: O'Neill's, N'Anna Rossi', Anna_Rossi_1 and anna-rossi.pdf",
    "%22Maria Silva%22 and bWFyaWEuc2lsdmFAZXhhbXBsZS5vcmc= and maria.silva%40example.org",
    "Dr. Müller 🙂 wrote to Jürgen\u200b Müller: IBAN DE89 3704 0044 0532 0130 00.",
)


def released(result):
    """A release with one sign for whatever does not stay."""
    parts = []
    for gap, item in zip(result.released.gaps, result.released.items, strict=False):
        parts += [gap, item.text if item.kind is Kind.VERBATIM else "\0"]
    return "".join(parts) + result.released.gaps[-1]


def hidden(text, found):
    """A text with one sign for each finding that is hidden."""
    for each in reversed(found):
        if each.hidden:
            text = text[: each.start] + "\0" + text[each.end :]
    return text


@pytest.fixture(scope="module")
def guard():
    return Protector()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"protect": {"level": "names"}},
        {"protect": {"level": "identifiers", "always": ["knows", "is it"]}},
        {"protect": {"never": ["Silva"], "unmeasured": "strict"}},
        {"protect": {"detectors": [MAIL], "types": ["EMAIL"], "placeholders": ["identifiers"]}},
    ],
    ids=["personal", "names", "identifiers", "never", "own"],
)
def test_hidden_is_what_a_release_hides_and_nothing_else(options):
    made = Protector(**options)
    for text, found in zip(TEXTS, made.find_many(TEXTS), strict=True):
        assert hidden(text, found) == released(made.protect(text))
        places = [place for each in found for place in (each.start, each.end)]
        assert places == sorted(places)
        assert all(each.start < each.end for each in found)
        assert all(
            each.reason.startswith("hidden: " if each.hidden else "stays: ") for each in found
        )
        assert [each.start for each in made.find(text)] == [each.start for each in found]


def test_what_gives_way_to_other_names_and_dates_is_hidden_too():
    made = Protector(
        protect={"detectors": [First(PERSON=["Maria Silva"], DATE=["3 May 2024"])]},
        names={"types": "all"},
        figures={"types": "all"},
    )
    text = "Maria Silva came on 3 May 2024. Silva left."
    found = made.find(text)
    assert [text[each.start : each.end] for each in found] == ["Maria Silva", "3 May 2024", "Silva"]
    assert all(each.hidden for each in found)


def test_why_something_is_hidden_or_stays(guard):
    text = f"Ask Maria Silva ({CANARY}) about Germany and Marie Curie."
    found = {text[each.start : each.end]: each for each in guard.find(text)}
    assert found[CANARY].reason == "hidden: found by patterns"
    assert (found[CANARY].type, found[CANARY].source) == ("EMAIL", "patterns")
    assert found["Maria Silva"].reason == "hidden: found by tagger"
    assert found["Germany"].reason == "stays: public (privacy score 0, threshold 0.5)"
    assert found["Marie Curie"].private < 0.5
    named = Protector(protect={"level": "identifiers"}).find("Ask Maria Silva")
    assert [each.reason for each in named] == ["stays: protect.level=identifiers hides no names"]


def test_what_stands_again_or_is_never_hidden_says_so():
    made = Protector(
        protect={"detectors": [First(PERSON=["Robert Taylor", "Okonkwo"])], "never": ["Okonkwo"]}
    )
    reasons = [each.reason for each in made.find("Robert Taylor, Okonkwo and Taylor")]
    assert reasons == [
        "hidden: found by first",
        "stays: listed in protect.never",
        "hidden: occurs again",
    ]


def test_a_text_of_a_detector_that_failed_is_one_finding():
    class Breaks:
        name = "breaks"

        def find(self, texts):
            raise ValueError(CANARY)

    text = f" write to {CANARY}\n"
    made = Protector(protect={"detectors": [Breaks()], "on_failure": "protect"})
    with pytest.warns(textveil.TextveilWarning):
        ((found,),) = made.find_many([text])
    assert (found.type, found.reason) == ("TEXT", "hidden: a detector failed")
    assert text[found.start : found.end] == text.strip()
    with pytest.raises(DetectorError) as caught:
        Protector(protect={"detectors": [Breaks()]}).find(text)
    assert CANARY not in str(caught.value) + repr(caught.value.__context__)


def test_findings_and_errors_hold_no_word(guard, monkeypatch):
    (found,) = guard.find(CANARY)
    assert found == replace(found)
    assert CANARY not in repr(found) + str(found.to_json())
    assert set(found.to_json()) == {*inspect.signature(textveil.Finding).parameters}
    with pytest.raises(FrozenInstanceError):
        found.start = 1

    def breaks(*_):
        raise ValueError(CANARY)

    monkeypatch.setattr(privatizer, "list_findings", breaks)
    with pytest.raises(MechanismError) as caught:
        guard.find(CANARY)
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_many_texts_come_in_order_and_each_for_itself():
    made = Protector(protect={"detectors": [First(PERSON=["Okonkwo"])]})
    texts = ["Okonkwo", "ask OKONKWO", ""] * (BATCH_TEXTS // 2)
    counts = [len(found) for found in made.find_many(iter(texts))]
    assert counts == [1, 0, 0] * (BATCH_TEXTS // 2)
    assert [result.text for result in made.protect_many(iter(texts))][:3] == [
        made.protect(text).text for text in texts[:3]
    ]


def test_many_prompts_are_protected_as_one_by_one(guard):
    many = [*guard.protect_many(TEXTS)]
    for text, result in zip(TEXTS, many, strict=True):
        alone = guard.protect(text)
        assert (result.text, result.released.items) == (alone.text, alone.released.items)


def test_a_session_makes_many_prompts_a_conversation(guard):
    one, many = Session(), Session()
    sent = [guard.protect(text, one, source="tool").text for text in TEXTS]
    assert [each.text for each in guard.protect_many(TEXTS, many, source="tool")] == sent
    assert [many.restore(each, where="everywhere") for each in sent] == [
        one.restore(each, where="everywhere") for each in sent
    ]


def test_one_text_where_several_are_meant_is_refused_at_once(guard):
    for refused in (guard.find_many, guard.protect_many):
        with pytest.raises(InputError, match="takes several texts"):
            refused(CANARY)
    with pytest.raises(ConfigError, match="source must be"):
        guard.protect_many([CANARY], source="nobody")
    with pytest.raises(InputError):
        guard.find(3)
    with pytest.raises(InputError):
        guard.find("\ud800")


def test_drawn_groups_tell_nothing_before():
    made = Protector(
        mechanism="exponential",
        words={"consistent": False, "oov": "surrogate"},
        protect={
            "detectors": ["patterns"],
            "labels": "randomised",
            "label_epsilon": 1.0,
            "placeholders": [],
        },
        groups={"budgets": (0, 0, 9, 9)},
    )
    with pytest.raises(ConfigError, match=r"protect\.labels=detected"):
        made.find(CANARY)


def test_a_protector_of_resolved_options_hides_all_that_it_finds():
    from textveil.config import resolve

    made = Protector.from_config(resolve(profile="prompt"))
    assert made.find(CANARY)[0].hidden
    with pytest.raises(ConfigError, match="hide all of it"):
        Protector.from_config(resolve(profile="document"))
    assert isinstance(made.privatizer, Privatizer)
