"""Somebody whom the writer says to know is private, however famous the name looks."""

import pytest

from textveil import Protector
from textveil.detect.context_cues import is_beside_relation, is_illness, is_relation
from textveil.detect.spans import Span
from textveil.detect.visibility import mark_located_private, mark_relative_private


@pytest.mark.parametrize(
    "before",
    ["my neighbour ", "MY OLD BOSS ", "wo wohnt meine Nachbarin ", "mi vecina, ", "avec mon voisin ", "o meu chefe ",
     "il mio amico ", "mijn buurman ", "moja siostra ", "мой брат ", "komşum ", "my wife's "],
)  # fmt: skip
def test_words_for_somebody_one_knows(before: str) -> None:
    assert is_relation(before)
    span = Span(0, len(before), len(before) + 4, "PERSON", 0.9, "tagger", 0.1)
    assert mark_relative_private(span, [before + "Anna"]).privacy_score == 1.0
    assert (
        mark_relative_private(span._replace(type="LOCATION"), [before + "Anna"]).privacy_score
        == 0.1
    )


@pytest.mark.parametrize(
    "before",
    [
        "",
        "my favourite singer ",
        "the boss ",
        "dummy boss ",
        "my boss\n\n",
        "my boss and ",
        "a neighbour ",
    ],
)
def test_other_words(before: str) -> None:
    assert not is_relation(before)


@pytest.mark.parametrize(
    "behind",
    [
        ", my boss, left",
        " (my old landlord)",
        " – meine Nachbarin –",
        ", mi jefa.",
        ", kuzenim,",
        " owes us 900 euros.",
        " lives in Leeds and owes me about 40 pounds",
        " schuldet uns noch 300 Euro",
        " me doit 50 euros",
    ],
)
def test_words_for_somebody_one_knows_behind_a_name(behind: str) -> None:
    assert is_beside_relation(behind)
    span = Span(0, 0, 4, "PERSON", 0.9, "tagger", 0.1)
    assert mark_relative_private(span, ["Rose" + behind]).privacy_score == 1.0


@pytest.mark.parametrize(
    "behind",
    [
        " owes us an apology",
        ". Who owes us 5 euros?",
        " owes them 900 euros",
        "",
        ", my boss called",
        " my boss,",
        ", the boss,",
        ", my favourite singer,",
        ",\nmy boss,",
    ],
)
def test_other_words_behind_a_name(behind: str) -> None:
    assert not is_beside_relation(behind)


def test_a_neighbour_beside_somebody_famous() -> None:
    text = "Wie alt ist Angela Merkel und wo wohnt meine Nachbarin Heidrun Pietzsch?"
    assert (
        Protector().protect(text).text
        == "Wie alt ist Angela Merkel und wo wohnt meine Nachbarin <PERSON_1>?"
    )


@pytest.mark.parametrize(
    ("before", "name", "behind"),
    [
        ("I was diagnosed with ", "Hashimoto", "'s."),
        ("he suffers from ", "Parkinson", " and a cold"),
        ("Morbus ", "Crohn", ", Hamburg"),
        ("tiene enfermedad de ", "Parkinson", " y tos"),
        ("", "SJÖGREN", "'s syndrome since May"),
    ],
)
def test_names_of_illnesses(before: str, name: str, behind: str) -> None:
    assert is_illness(before, name, behind)


@pytest.mark.parametrize(
    ("before", "name", "behind"),
    [
        ("à cause de la maladie de ", "Pierre", ", mon frère."),
        ("the violence she suffered from ", "Dieter", ", her ex-husband"),
        ("la enfermedad de ", "María", "."),
        ("diagnosed with ", "Anna", "'s help"),
        ("I asked Mr ", "Parkinson", " about it"),
        ("she suffers from ", "Wilson", ", my boss."),
    ],
)
def test_names_of_people_beside_an_illness(before: str, name: str, behind: str) -> None:
    assert not is_illness(before, name, behind)


@pytest.mark.parametrize(("link", "privacy"), [(" w ", 1.0), (", ", 1.0), (". See also ", 0.1)])
def test_the_town_right_behind_a_private_address_is_private(link: str, privacy: float) -> None:
    text = f"ul. Miła 5{link}Gdynia"
    address = Span(0, 0, 10, "ADDRESS", 0.7, "patterns")
    town = Span(0, len(text) - 6, len(text), "LOCATION", 0.9, "tagger", 0.1)
    assert mark_located_private([address, town], [text])[1].privacy_score == privacy
    public = mark_located_private([address._replace(privacy_score=0.0), town], [text])
    assert public[1].privacy_score == 0.1
