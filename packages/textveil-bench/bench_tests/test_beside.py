"""The page beside other tools is its stored rows, and what counts as left or altered there."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
compare = import_module("compare")


def test_the_page_is_the_stored_rows():
    text = compare.PAGE.read_text(encoding="utf-8")
    assert compare.fill(text, compare.stored()) == text
    assert text.count("<!-- compare ") == text.count("<!-- end of compare -->") > 2


@pytest.mark.parametrize("example", compare.EXAMPLES, ids=lambda example: example.name)
def test_private_parts_are_parts_of_their_text(example):
    assert [part for part in example.private if part not in example.text] == []


@pytest.mark.parametrize(
    ("released", "left", "altered"),
    [
        ("Ask Olga Moe about 14 May.", [], []),
        ("Ask Olga Holm about 14 May.", ["Anna Holm"], []),
        ("Ask <PERSON>, 14 May.", [], ["about"]),
        ("Ask Anna Holm about <DATE>.", ["Anna Holm"], ["14", "May"]),
    ],
)
def test_what_is_left_and_what_is_altered(released, left, altered):
    example = compare.Example("note", "Ask Anna Holm about 14 May.", ("Anna Holm",))
    assert compare.judged(example, released) == (left, altered)


def test_an_answer_brings_back_what_was_taken_out():
    example = compare.Example("note", "Ask Anna Holm, Ely.", ("Anna Holm", "Ely"))
    found = compare.came_back(
        example, "Ask <1>, Ely.", ["Ask <", "1>."], lambda _: ["Ask ", "", "anna holm."]
    )
    assert (found["value"], found["of"], found["seen"]) == (1, 1, 2)
