"""Escapes and encodings: what stands in them is read, found whole, and stays valid."""

import base64
import html
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textveil import Protector
from textveil.detect.encodings import decode_escapes, decode_parts, map_to_original
from textveil.detect.spans import Span


@given(st.text(), st.text())
def test_a_document_in_ascii_is_read_as_it_is_without_escapes(before: str, after: str) -> None:
    text = json.dumps({"name": f"{before}Ольга 😀{after}"})
    found = decode_escapes(text)
    assert "Ольга 😀" in found.text
    assert len(found.places) == len(found.text) + 1
    start = found.text.index("Ольга 😀")
    span = map_to_original(Span(0, start, start + len("Ольга 😀"), "PERSON", 1.0, "x"), [found])
    assert json.loads(f'"{text[span.start : span.end]}"') == "Ольга 😀"


@given(st.text(alphabet='\\un00e9"AnD8\n '))
def test_any_text_is_read_and_every_place_is_in_it(text: str) -> None:
    found = decode_escapes(text)
    assert len(found.places) == len(found.text) + 1
    assert found.places[0] == 0
    assert found.places[-1] == len(text)
    assert all(a < b for a, b in zip(found.places, found.places[1:], strict=False))
    assert found.text.isascii() or "\\" in text


@pytest.mark.parametrize(
    "text", [r"a\\u0041b", r"\ud800 alone", r'"\u0022"', r"\u0007", r"C:\users", "no"]
)
def test_what_stands_for_no_letter_stays(text: str) -> None:
    assert decode_escapes(text).text == text


def test_names_in_escapes_are_hidden_and_the_document_stays_valid() -> None:
    text = json.dumps(
        {
            "name": "Ольга Петрова",
            "note": "Bitte Frau Müller anrufen",
            "more": "Hi,\nAnna Kowalska called",
        }
    )
    released = Protector().protect(text).text
    assert json.loads(released)["name"] == "<PERSON_1>"
    assert not any(
        name in json.dumps(json.loads(released), ensure_ascii=False)
        for name in ("Петрова", "üller", "Kowalska")
    )
    assert "u041" not in released


def test_no_repr_shows_what_was_read() -> None:
    assert "Anna" not in f"{decode_escapes('Anna')} {[decode_escapes('Anna')]}"


# ---- encodings -------------------------------------------------------------------------------------------------------

CODED = {
    "percent": lambda text: quote(text, safe=""),
    "percent, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "entities, by name": lambda text: (
        html.escape(text).replace("@", "&commat;").replace(" ", "&nbsp;")
    ),
    "entities of entities": lambda text: "".join(f"&amp;#x{ord(char):x};" for char in text),
    "escapes of escapes": lambda text: "".join(f"\\\\u{ord(char):04x}" for char in text),
    "Base64": lambda text: base64.b64encode(text.encode()).decode(),
    "Base64 for addresses": lambda text: (
        base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    ),
    "hexadecimal": lambda text: text.encode().hex(),
}


@pytest.mark.parametrize("coded", CODED)
def test_what_is_encoded_is_found_as_it_is_written(coded):
    said = CODED[coded]("to zoë@blorvequine.org, now")
    text = f"ask {said} please"
    released = Protector().protect(text).text
    assert released != text
    assert "<EMAIL_1>" in released
    assert released.startswith("ask ")
    assert released.endswith(" please")


MAIL = "zoë@blorvequine.org"
UNSEEN = "\ufeff\u200d\u00ad\u200b\x00\x1b\u00a0\u2028"


@pytest.mark.parametrize("coded", ["Base64", "Base64 for addresses", "hexadecimal"])
@pytest.mark.parametrize("mark", UNSEEN)
def test_marks_that_nobody_sees_hide_nothing_that_is_encoded(mark, coded):
    for text in (f"{mark}to {MAIL}, now", f"to {MAIL}, {mark} now", f"to {MAIL}, now{mark}"):
        assert any(MAIL in part.text for part in decode_parts(f"ask {CODED[coded](text)} please"))


def test_a_letter_in_another_encoding_hides_nothing():
    said = base64.b64encode(f"à {MAIL}".encode() + "à".encode("latin-1")).decode()
    assert any(MAIL in part.text for part in decode_parts(said))


@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize(
    "after", ["", "\n", "\r\n\r\nHello", "\nHello", "\nword", "\n" + "internationalization"]
)
def test_wrapped_lines_are_read_with_the_last_one(width, after):
    for end in range(30):
        said = base64.b64encode(("a word or two " * 9 + "x" * end + f" {MAIL}").encode()).decode()
        lines = "\r\n".join(said[at : at + width] for at in range(0, len(said), width))
        text = f"a letter:\r\n\r\n{lines}{after}"
        parts = [part for part in decode_parts(text) if MAIL in part.text]
        assert [text[part.starts[0] :].startswith(said[:50]) for part in parts] == [True], end
        assert parts[0].ends[0] >= len(text) - len(after), end


@given(st.text(), st.sampled_from(sorted(CODED)), st.text())
def test_every_part_tells_where_its_characters_stand(before, coded, after):
    text = f"{before} {CODED[coded]('zoë@blorvequine.org')} {after}"
    parts = decode_parts(text)
    assert any("zoë@blorvequine.org" in part.text.replace("\xa0", " ") for part in parts)
    for part in parts:
        assert len(part.text) == len(part.starts) == len(part.ends)
        assert all(
            0 <= start < end <= len(text) for start, end in zip(part.starts, part.ends, strict=True)
        )
        plain = set(range(len(part.text))) - set(part.coded)
        assert all(text[part.starts[i] : part.ends[i]] == part.text[i] for i in plain)


@pytest.mark.parametrize(
    "text",
    [
        "50% of 20%",
        "%zz %ff%fe",
        "R&D; &nosuchname;",
        "an_ordinary_name x_1",
        "internationalization",
        "deadbeef" * 4,
        "",
    ],
)
def test_what_only_looks_encoded_has_no_parts(text):
    assert decode_parts(text) == []


def test_long_texts_are_read_around_what_is_encoded_only():
    text = "word " * 10_000 + "a%40b.org " + "word " * 10_000 + "c%40d.org"
    assert [len(part.text) for part in decode_parts(text)] == [401, 206]


def test_a_part_shows_nothing_in_its_repr():
    assert "Anna" not in repr(decode_parts("Anna%20Kowalska"))


RUNS = (
    "%", "&", "\\", "_", "/", "A", "a", "0", "=", "+", "-", "%41", "%25", "25", "%ff", "&amp;", "amp;", "&#64;", "&#",
    "\\u0041", "\\\\u0041", "\\u", "\\n", "\\nA", "a_1", "0_00", "_000000", "YWJj", "61",
    f"{'A' * 60}\n", f"{'YWJj' * 15}\n", "if (a_1 && b_22) { c = \"\\\\u0041\\n\" & d_000001; }\n",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", RUNS)
@pytest.mark.parametrize("work", [decode_escapes, decode_parts])
def test_time_is_linear_in_long_runs(work, unit):
    """Ten times the text takes at most fifty times as long; what is quadratic takes a hundred times as long."""

    def seconds(size):
        text = unit * (size // len(unit)) + "!"
        started = time.process_time()
        work(text)
        return time.process_time() - started

    small, large = (min(seconds(size) for _ in range(3)) for size in (20_000, 200_000))
    assert large < 50 * small + 0.5


@pytest.mark.parametrize("unit", RUNS)
def test_what_is_read_again_is_no_more_than_the_text(unit):
    text = unit * (100_000 // len(unit))
    assert sum(len(part.text) for part in decode_parts(text)) <= len(text)
