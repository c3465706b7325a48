"""How names are chosen for the lists, from invented sources and texts."""

import pytest
from training.data import Tagged
from training.names import Candidate, Evidence

from training import names


def test_words_are_counted_inside_sentences_only():
    found = names.evidence(["Mark my words, Mark said. Mark saw a mark on Mark-up, and Zoe."], [])
    assert (found.capital, found.small) == (
        {"mark": 1, "zoe": 1},
        {"my": 1, "words": 1, "said": 1, "saw": 1, "a": 1, "mark": 1, "on": 1, "and": 1},
    )


def test_labels_are_counted_by_type_where_a_word_has_a_capital():
    sentence = Tagged(
        ["Zoe", "Moor", "met", "zoe", "Moor"],
        ["B-PERSON", "I-PERSON", "O", "B-PERSON", "O"],
        [True] * 5,
    )
    assert names.evidence([], [sentence]).tagged == {
        "zoe": {"PERSON": 1},
        "moor": {"PERSON": 1, "O": 1},
    }


def test_entries_are_single_words_in_latin_letters_without_accents():
    entries = (
        "José",
        ("Düren", "Ny"),
        "de la Cruz",
        "МАРИЯ",
        "MIA",
        "von",
        "Li",
        "O'Neill",
        "McCoy",
    )
    assert list(names.words(entries)) == ["Jose", "Duren", "Mia", "McCoy"]


def seen(**counts):
    capital = {word: n for word, (n, _) in counts.items()}
    small = {word: n for word, (_, n) in counts.items()}
    return Evidence(
        capital,
        small,
        {"paris": {"PERSON": 1, "LOCATION": 9, "O": 5}, "jordan": {"PERSON": 5, "LOCATION": 5}},
    )


@pytest.mark.parametrize(
    ("capital", "small", "kept"), [(5, 0, True), (4, 0, False), (91, 9, True), (90, 10, False)]
)
def test_a_name_is_hardly_ever_written_small(capital, small, kept):
    found = names.choose(
        {"PERSON": {"Zoe": Candidate("given", True)}}, ["zoe"], seen(zoe=(capital, small))
    )
    assert found == {"PERSON": {"Zoe": "given"} if kept else {}}


def test_a_name_of_two_types_stays_where_labels_clearly_say_so():
    both = {word: Candidate("given", True) for word in ("Paris", "Jordan", "Zoe")}
    places = {word: Candidate("city", True) for word in ("Paris", "Jordan")}
    found = names.choose(
        {"PERSON": both, "LOCATION": places},
        ["paris", "jordan", "zoe"],
        seen(paris=(50, 0), jordan=(50, 0), zoe=(50, 0)),
    )
    assert found == {"PERSON": {"Zoe": "given"}, "LOCATION": {"Paris": "city"}}


def test_an_unsure_name_needs_labels_and_gives_way():
    unsure = {word: Candidate("city", False) for word in ("Paris", "Zoe")}
    found = names.choose({"LOCATION": unsure}, ["paris", "zoe"], seen(paris=(50, 0), zoe=(50, 0)))
    assert found == {"LOCATION": {}}  # 9 of 15 labels are too few, and Zoe has none
    sure = {"Zoe": Candidate("given", True)}
    found = names.choose({"LOCATION": unsure, "PERSON": sure}, ["zoe"], seen(zoe=(50, 0)))
    assert found == {"LOCATION": {}, "PERSON": {"Zoe": "given"}}


def test_a_name_must_be_a_row_and_no_month():
    given = {word: Candidate("given", True) for word in ("Zoe", "April")}
    assert names.choose({"PERSON": given}, ["april"], seen(zoe=(50, 0), april=(50, 0))) == {
        "PERSON": {}
    }


def test_a_list_is_written_with_its_source_and_sorted():
    text = names.render("PERSON", {"Zoe": "given", "Abel": "both"}, "40.54.0")
    lines = text.splitlines()
    assert lines[-2:] == ["Abel\tboth", "Zoe\tgiven"]
    assert all(line.startswith("# ") for line in lines[:-2])
    assert "Faker 40.54.0" in text
    assert "more than 90% of" in text


@pytest.mark.slow
def test_faker_gives_names_of_both_genders_and_kinds():
    pytest.importorskip("faker")
    found = names.candidates()
    assert found["PERSON"]["Maria"] == Candidate("given", True)
    assert found["PERSON"]["Garcia"] == Candidate("family", True)
    assert found["LOCATION"]["Portugal"] == Candidate("country", True)
    assert found["LOCATION"]["Lisbon"] == Candidate("city", True)
    assert found["ORGANIZATION"]["IBM"] == Candidate("company", True)
