"""Escapes of JSON: what stands in them is read, found whole, and stays valid."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textveil import Protector
from textveil.protect.escapes import read, written
from textveil.protect.spans import Span


@given(st.text(), st.text())
def test_a_document_in_ascii_is_read_as_it_is_without_escapes(before: str, after: str) -> None:
    text = json.dumps({"name": f"{before}Ольга 😀{after}"})
    found = read(text)
    assert "Ольга 😀" in found.text
    assert len(found.places) == len(found.text) + 1
    start = found.text.index("Ольга 😀")
    span = written(Span(0, start, start + len("Ольга 😀"), "PERSON", 1.0, "x"), [found])
    assert json.loads(f'"{text[span.start : span.end]}"') == "Ольга 😀"


@given(st.text(alphabet='\\un00e9"AnD8\n '))
def test_any_text_is_read_and_every_place_is_in_it(text: str) -> None:
    found = read(text)
    assert len(found.places) == len(found.text) + 1
    assert found.places[0] == 0
    assert found.places[-1] == len(text)
    assert all(a < b for a, b in zip(found.places, found.places[1:], strict=False))
    assert found.text.isascii() or "\\u" in text


@pytest.mark.parametrize("text", [r"a\\u0041b", r"\ud800 alone", r'"\u0022"', r"\u0007", r"C:\users", "no"])
def test_what_stands_for_no_letter_stays(text: str) -> None:
    assert read(text).text == text


def test_names_in_escapes_are_hidden_and_the_document_stays_valid() -> None:
    text = json.dumps(
        {"name": "Ольга Петрова", "note": "Bitte Frau Müller anrufen", "more": "Hi,\nAnna Kowalska called"}
    )
    released = Protector().protect(text).text
    assert json.loads(released)["name"] == "<PERSON_1>"
    assert not any(
        name in json.dumps(json.loads(released), ensure_ascii=False) for name in ("Петрова", "üller", "Kowalska")
    )
    assert "u041" not in released


def test_no_repr_shows_what_was_read() -> None:
    assert "Anna" not in f"{read('Anna')} {[read('Anna')]}"
