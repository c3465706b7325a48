"""Placeholders by a key: a function of key, subject, type and value, and each leads back to one string."""

import pickle
from itertools import product

import pytest

from textveil.errors import InputError, RandomnessError
from textveil.session import KeyedPlaceholders, Original, Session, find_placeholder_names
from textveil.session.placeholders import MAX_NUMBER_DIGITS, MIN_KEYED_NUMBER

KEY = bytes(range(32))
CANARY = "Zyxqorvian"
NAMES = KeyedPlaceholders(key=KEY, subject="ann")


def shown(
    text: str, type_: str = "PERSON", names: KeyedPlaceholders = NAMES, *, quoted: bool = False
) -> str:
    return names.build_placeholder(Original(type_, text, quoted)).text


def test_they_follow_from_key_subject_type_and_value_alone():
    again = KeyedPlaceholders(key=bytes(range(32)), subject="ann")
    assert shown("Maria Silva") == shown("Maria Silva", names=again)
    others = {
        shown("Maria Silva"),
        shown("Maria Costa"),
        shown("Maria Silva", "LOCATION"),
        shown("Maria Silva", names=KeyedPlaceholders(key=KEY, subject="bob")),
        shown("Maria Silva", names=KeyedPlaceholders(key=bytes(32), subject="ann")),
    }
    assert len(others) == 5
    framed = {
        shown("b", "A", KeyedPlaceholders(key=KEY, subject="x")),
        shown("Ab", "", KeyedPlaceholders(key=KEY, subject="x")),
    }
    assert len({each.split("_")[1] for each in framed}) == 2


def test_a_name_in_other_case_has_the_same_number():
    usual, upper, lower, mixed = map(
        shown, ("Maria McDonald", "MARIA MCDONALD", "maria mcdonald", "Maria Mcdonald")
    )
    numbers = {each.strip("<>").split("_")[1] for each in (usual, upper, lower, mixed)}
    assert len(numbers) == 1
    assert mixed == f"<PERSON_{numbers.copy().pop()}>"
    assert upper == mixed.replace(">", "_B>")
    assert lower == mixed.replace(">", "_C>")
    assert len(usual) == len(mixed) + 11  # ten letters
    assert len({usual, upper, lower, mixed}) == 4
    assert shown("a@b.example", "EMAIL")[:-1] not in shown(
        "A@b.example", "EMAIL"
    )  # other values are not folded


VALUES = [
    *(
        ("PERSON", f"{first} {last}")
        for first, last in product(("Ana", "ANA", "ana", "aNa", "Aña"), ("Li", "Lí", "LI"))
    ),
    ("PERSON", "Ana  Li"),
    ("PERSON", "Ana\u00a0Li"),
    ("PERSON", "李小龙"),
    ("PERSON", "Strauß"),
    ("PERSON", "Strauss"),
    ("EMAIL", "ana@example.org"),
    ("EMAIL", "Ana@example.org"),
    ("PHONE", "12 34"),
    ("PHONE", "1234"),
]


def test_each_leads_back_to_one_string():
    """Whatever the spelling, kept in any order, twice, and read back from a file."""
    given = [NAMES.build_placeholder(Original(*each)) for each in VALUES]
    given.append(NAMES.build_placeholder(Original("PHONE", "1234", quoted=True)))
    assert len({each.inner for each in given}) == len(given)
    session = Session("ann")
    session.keep(given[:7])
    session.keep(reversed(given))
    for known in (session, Session.from_json(session.to_json())):
        for each in given:
            assert MIN_KEYED_NUMBER <= each.number < 10**MAX_NUMBER_DIGITS
            assert known.restore(f"Dear {each.text}.") == f"Dear {each.value}."
            assert find_placeholder_names(each.text) >= {each.inner.upper()}
            pieces = known.restorer()
            assert "".join(map(pieces.feed, each.text)) + pieces.close() == each.value
        assert (
            known.restore(f"<PERSON_{MIN_KEYED_NUMBER}> <PERSON_1>")
            == f"<PERSON_{MIN_KEYED_NUMBER}> <PERSON_1>"
        )
        assert known.snapshot().counts == {"PERSON": 6, "EMAIL": 2, "PHONE": 2}
    before = session.snapshot().version
    session.keep(given)
    assert session.snapshot().version == before


def test_parts_of_a_name_that_an_answer_uses_lead_back():
    session = Session("ann")
    session.keep([NAMES.build_placeholder(Original("PERSON", "Maria Silva"))])
    assert session.restore(shown("Maria Silva").replace(">", "_FAMILY>")) == "Silva"


def test_a_session_that_kept_them_goes_on_counting():
    """Numbers that are counted never meet those of a key."""
    session = Session("ann")
    session.keep(
        [NAMES.build_placeholder(Original("PERSON", name)) for name in ("Ana Li", "Bo Ek")]
    )
    with session.noting() as notes:
        assert notes.assign_placeholders(
            [Original("PERSON", "Carl Uno"), Original("PERSON", "Ana Li")]
        ) == [
            "<PERSON_3>",
            shown("Ana Li"),
        ]
    session.keep([NAMES.build_placeholder(Original("PERSON", "Dina Su"))])
    again = Session.from_json(session.to_json())
    for known in (session, again):
        with known.noting() as notes:
            assert notes.assign_placeholder("PERSON", "Eva Ott") == "<PERSON_5>"


def test_what_is_kept_is_hidden_from_then_on():
    session = Session("ann")
    session.keep([NAMES.build_placeholder(Original("PERSON", "Ana Li"))])
    assert [value.text for value in session.snapshot().private.values()] == ["Ana Li"]


def test_a_placeholder_never_stands_for_two_values():
    given = NAMES.build_placeholder(Original("PERSON", CANARY))
    wrong = [
        [given, given._replace(value="Other")],
        [
            given,
            NAMES.build_placeholder(Original("PERSON", CANARY))._replace(
                number=MIN_KEYED_NUMBER + 1
            ),
        ],
    ]
    for several in wrong:
        for first in (several[:1], []):
            session = Session("ann")
            session.keep(first)
            with pytest.raises(InputError, match="other placeholders") as caught:
                session.keep(several)
            assert CANARY not in str(caught.value)
            assert len(session.snapshot().placeholders) == len(first)


def test_the_key_is_neither_shown_nor_carried():
    assert KEY.hex() not in repr(NAMES)
    assert "ann" not in repr(NAMES)
    with pytest.raises(RandomnessError, match="cannot be pickled"):
        pickle.dumps(NAMES)
