"""Results in notebooks: released text alone, escaped, in the colours of its types, with one line of statement."""

import re

import pytest

from textveil import Privatizer, Protector
from textveil.pipeline import Result
from textveil.render import notebook
from textveil.render.types import FAMILIES
from textveil.text import Item, Kind, Mask, Released

CANARY = "zyxqorvian@firma.org"
PROTECTOR = Protector(protect={"detectors": ["patterns"]}, names={"types": []})
PROMPT = f"Write to {CANARY} <script>now</script> for $5 or $6, call +1 202 555 0136"


def read(page):
    """The text of a page without its tags."""
    return re.sub(r"<[^>]*>", "", page)


def test_a_prompt_shows_what_was_hidden_by_type():
    result = PROTECTOR.protect(PROMPT)
    page = result._repr_html_()
    assert CANARY not in page + repr(result) + str(result)
    assert "<script" not in page
    assert "&lt;script&gt;now&lt;/script&gt; for $5 or $6" in page
    ink, paper = FAMILIES["contact"].light
    for name in ("EMAIL", "PHONE"):
        assert re.search(rf"color:{ink};background:{paper};[^>]*>&lt;{name}_1&gt;</span>", page)
    assert page.count(FAMILIES["contact"].meaning) == 3, "two titles, and the legend once"
    assert read(page).endswith(
        "1 e-mail address and 1 phone number replaced; the rest is unchanged, and nothing is "
        "claimed about it."
    )
    assert "mathjax_ignore" in page


def test_a_page_that_read_the_original_would_be_found(monkeypatch):
    """The broken twin of the test above."""
    monkeypatch.setattr(notebook, "render_result", lambda result: result.private.text)
    assert CANARY in PROTECTOR.protect(PROMPT)._repr_html_()


def test_the_repr_is_one_short_line():
    result = PROTECTOR.protect(f"Write to {CANARY}\n" * 50)
    assert "\n" not in repr(result)
    assert len(repr(result)) < 250
    assert repr(result).startswith("<Result 'Write to <EMAIL_1> Write to <EMAIL_1> ")
    assert str(result) == repr(result)
    assert repr(result.guarantee) == f"<Guarantee: {result.guarantee.summary()}>"
    assert "50 e-mail addresses replaced; " in repr(result)


def test_drawn_words_are_marked_and_the_bound_is_said():
    result = Privatizer("rankcape", epsilon=8).privatize("Ingrid hid the money in Antwerp")
    page = result._repr_html_()
    assert "Ingrid" not in page + repr(result)
    assert page.count(notebook.DRAWN[1]) == 5
    assert "4 words drawn at epsilon 8 (any two words)" in read(page)
    assert "4 words drawn at epsilon 8 (any two words)" in repr(result)


def test_drawn_names_have_the_colour_of_their_type():
    items = (
        Item("Maria", Kind.WORD, "PERSON given", 0, 1),
        Item("<A&B>", Kind.PLACEHOLDER, "sensitive", 1, 2),
        Item("now", Kind.VERBATIM, "other", 2, 3),
    )
    mask = Mask(words=3, verbatim=(2,), placeholders=((1, "NOVEL"),))
    released = Released(items=items, gaps=("", " ", " ", ""), mask=mask)
    page = notebook.render_rows(["<b>"], [[released], [None], ["a <i> text"]], 9, "said & done")
    assert FAMILIES["people"].light[1] in page
    assert FAMILIES["others"].light[1] in page
    for part in (
        "&lt;b&gt;",
        "&lt;A&amp;B&gt;",
        " now",
        "a &lt;i&gt; text",
        "3 of 9 rows",
        "&amp;",
    ):
        assert part in page
    assert "<b>" not in page


def test_a_long_text_is_cut():
    page = PROTECTOR.protect("word " * 1000)._repr_html_()
    assert read(page).count("word") == notebook.MAX_ITEMS + 1
    assert "600 more words" in page


@pytest.mark.parametrize("text", ["", "the"])
def test_a_text_without_findings(text):
    result = PROTECTOR.protect(text)
    assert isinstance(result, Result)
    assert result._repr_html_().startswith("<div")
    assert repr(result).startswith(f"<Result {text!r}: ")
