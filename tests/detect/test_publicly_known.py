"""Names that are public whoever found them: whole countries, and titles alone."""

import pytest

from textveil import Protector
from textveil.detect.lists import Lists
from textveil.detect.regions import filter_spans
from textveil.detect.spans import Span
from textveil.detect.trimming import is_illness_name, is_only_title, trim
from textveil.detect.visibility import mark_country_public
from textveil.text import is_country


@pytest.mark.parametrize(
    "name",
    [
        "France",
        "SUISSE",
        "Bélgica",
        "대한민국",
        "中國",
        "الجزائر",
        "ऑस्ट्रेलिया",
        "Việt Nam",
        "South Africa",
        "U.S.A.",
        "Türkiye",
    ],
)
def test_countries_are_known_in_many_languages(name: str) -> None:
    assert is_country(name)


@pytest.mark.parametrize("name", ["", "Paris", "Southampton", "France Martin", "Anna", "42"])
def test_others_are_none(name: str) -> None:
    assert not is_country(name)


@pytest.mark.parametrize(
    ("name", "type_", "private"),
    [
        ("Belgique", "LOCATION", 0.0),
        ("South Africa", "ADDRESS", 0.0),
        ("Cuba", "PERSON", 0.0),
        ("Jordan", "LOCATION", 0.0),
        ("Jordan", "PERSON", 0.9),  # a given name, too
        ("Bruxelles", "LOCATION", 0.9),
        ("France", "SECRET", 0.9),
    ],
)
def test_a_whole_country_is_public_unless_it_is_a_given_name(
    name: str, type_: str, private: float
) -> None:
    text = f"in {name}."
    assert (
        mark_country_public(
            Span(0, 3, 3 + len(name), type_, 0.9, "tagger", 0.9), [text]
        ).privacy_score
        == private
    )


@pytest.mark.parametrize(("name", "type_"), [("France", "LOCATION"), ("Frau", "PERSON")])
def test_what_a_user_lists_is_hidden_whatever_it_is(name: str, type_: str) -> None:
    protector = Protector(protect={"detectors": [Lists(words=[name], type=type_), "tagger"]})
    assert protector.protect(f"Report on {name}, please.").text == f"Report on <{type_}_1>, please."


@pytest.mark.parametrize(
    ("name", "alone"),
    [("Frau", True), ("Dr", True), ("Herr Dr.", True), ("Frau Wu", False), ("", False)],
)
def test_a_title_alone_names_nobody(name: str, alone: bool) -> None:
    assert is_only_title(Span(0, 0, len(name), "PERSON", 0.9, "tagger"), [name]) == alone
    assert not is_only_title(Span(0, 0, len(name), "PERSON", 0.9, "lists"), [name])


@pytest.mark.parametrize(
    ("text", "word", "type_"),
    [
        ("He was diagnosed with Hashimoto today.", "Hashimoto", "PERSON"),
        ("set SENTRY_AUTH_TOKEN now", "AUTH", "PERSON"),
        ("2025-03-18 07:42:11 INFO pool.Worker: job 7 done", "Worker", "PERSON"),
    ],
)
def test_a_tagger_of_a_users_own_means_what_it_finds(text, word, type_):
    at = text.index(word)
    found = Span(0, at, at + len(word), type_, 0.8, "tagger:mine")
    ours = found._replace(source="tagger")
    assert is_illness_name(ours, [text]) or not filter_spans([ours], [text], {})
    assert not is_illness_name(found, [text])
    assert filter_spans([found], [text], {}) == [found]
    assert trim(found, [text]) == [found]
