"""Lists: whole words, expressions with a time limit, and what is never protected."""

import pytest

from textveil.detect.detectors import find_all
from textveil.detect.lists import Lists
from textveil.detect.spans import Detector, Span
from textveil.errors import ConfigError, DetectorError, InputError


def found(text: str, **lists: object) -> list[str]:
    spans = Lists(**lists).find(["", text])  # type: ignore[arg-type]
    assert all(span.text == 1 and span.score == 1 and span.source == "lists" for span in spans)
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (["acme"], "Acme's ACME-1 and acmecorp", ["Acme", "ACME"]),
        (["Project Blue"], "project\n  BLUE, Project-Blue, projectblue", ["project\n  BLUE"]),
        (["Straße"], "die STRASSE", ["STRASSE"]),
        (["O'Brien"], "Mr O’Brien", ["O’Brien"]),
        (["Zo\u00e9"], "zoe\u0301 came", ["zoe\u0301"]),
        (["Ann", "Ann Lee"], "Ann Lee", ["Ann", "Ann Lee"]),
        (["a a"], "a a a", ["a a", "a a"]),
        (["last one"], "the last", []),
        (["c++"], "in C++ and C", ["C++"]),
        (["x@y.org"], "to X@Y.org.", ["X@Y.org"]),
        (["東京"], "在東京塔", ["東京"]),
    ],
)
def test_phrases_are_whole_words_whatever_their_casing(words, text, expected):
    assert found(text, words=words) == expected


def test_a_phrase_does_not_reach_over_the_end_of_a_text():
    assert Lists(words=["one two"]).find(["one", "two"]) == []


def test_expressions_see_casing_and_empty_matches_do_not_count():
    assert found("AB-12 ab-12", expressions=[r"[A-Z]{2}-\d+"]) == ["AB-12"]
    assert found("AB-12 ab-12", expressions=[r"(?i)[A-Z]{2}-\d+", "x*"]) == ["AB-12", "ab-12"]


def test_both_have_the_type_that_is_asked_for():
    (first, second) = Lists(words=["acme"], expressions=["A.me"], type="CLIENT").find(["acme Axme"])
    assert first == Span(0, 0, 4, "CLIENT", 1.0, "lists")
    assert second == Span(0, 5, 9, "CLIENT", 1.0, "lists")
    assert isinstance(Lists(), Detector)
    assert Lists().find(["anything"]) == []


def test_an_expression_that_takes_too_long_is_an_error_and_not_nothing_found():
    lists = Lists(expressions=["b", r"(?:(?:a|a)+)+\1?$(?<=((?:a|a)+)+c)"], timeout=0.05)
    text = "a" * 60 + "b"
    with pytest.raises(
        DetectorError, match=r"expression 1 of lists did not end within 0\.05 s"
    ) as caught:
        find_all([lists], [text], timeout=None)
    assert "aaa" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(DetectorError):
        lists.remove_listed([Span(0, 0, 1, "PERSON", 1.0, "x")], [text])


@pytest.mark.parametrize(
    "wrong",
    [
        {"words": [" "]},
        {"words": ["canary", ""]},
        {"expressions": ["(canary"]},
        {"type": "Client"},
        {"timeout": 0},
    ],
)
def test_what_cannot_be_listed_is_refused_without_showing_it(wrong):
    with pytest.raises(ConfigError) as caught:
        Lists(**wrong)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_single_string_is_no_list():
    with pytest.raises(InputError):
        Lists(words="acme")


def test_what_is_listed_is_not_shown():
    assert "canary" not in repr(Lists(words=["canary"], expressions=["canary"]))


TEXT = "Call Acme Bank, Maria of London at +1 555 0100"


def spared(span: tuple[int, int, str, str], **lists: object) -> list[str]:
    start, end, type_, source = span
    left = Lists(**lists).remove_listed([Span(0, start, end, type_, 0.5, source)], [TEXT])  # type: ignore[arg-type]
    assert all(each.type == type_ and each.source == source for each in left)
    return [TEXT[each.start : each.end] for each in left]


@pytest.mark.parametrize(
    ("span", "words", "left"),
    [
        ((5, 14, "ORGANIZATION", "tagger"), ["acme bank"], []),
        ((5, 14, "ORGANIZATION", "tagger"), ["acme"], ["Bank"]),
        ((5, 21, "ORGANIZATION", "tagger"), ["bank"], ["Acme", ", Maria"]),
        ((5, 14, "ORGANIZATION", "tagger"), ["maria"], ["Acme Bank"]),
        ((5, 14, "ORGANIZATION", "tagger"), ["call acme", "acme bank"], []),
        ((5, 14, "ORGANIZATION", "lists"), ["acme bank"], ["Acme Bank"]),
        ((35, 46, "PHONE", "patterns"), ["555"], ["+1 555 0100"]),
        ((35, 46, "PHONE", "patterns"), ["+1 555 0100"], []),
    ],
)
def test_what_is_never_sensitive_leaves_spans_but_no_identifier_in_part_and_no_other_list(
    span, words, left
):
    assert spared(span, words=words) == left


def test_expressions_spare_as_words_do():
    assert spared((16, 31, "PERSON", "tagger"), expressions=["L[a-z]+n"]) == ["Maria of"]
