"""Groups shown: every item in the look of its group, on a terminal, with signs, and as a page."""

import math
from html.parser import HTMLParser

import pytest
from tests.detectors import Finds

from textveil.pipeline.privatizer import Privatizer
from textveil.render.groups import GROUP_STYLES, render_legend, render_page, render_text

INF = math.inf


@pytest.fixture
def result(small_table):
    made = Privatizer(
        "rankcape",
        k=5,
        table=small_table,
        seed=1,
        protect={"detectors": [Finds(ILLNESS="apple", EMAIL=r"\S+@\S+")]},
        groups={"budgets": (9, 9, 9, INF)},
    )
    return made.privatize("the <b> apple & river of a@b.org")


def test_signs_stand_where_there_is_no_colour(result):
    shown = render_text(result.released, marked=False).plain
    items = {item.group: item.text for item in result.released.items}
    assert f"{items['sensitive']}²" in shown
    assert "river'" in shown
    assert shown.startswith("the ")
    assert shown.replace("²", "").replace("'", "") == result.text


def test_colours_are_those_of_the_groups(result):
    text = render_text(result.released, marked=True)
    assert text.plain == result.text
    styles = {text.plain[span.start : span.end]: span.style for span in text.spans}
    assert styles["river"] == GROUP_STYLES["passes"].style
    assert styles["the"] == GROUP_STYLES["public"].style
    assert styles["<EMAIL>"] == GROUP_STYLES["placeholder"].style


def test_the_legend_names_what_occurs_and_nothing_else(result):
    said = render_legend([result.released], marked=True).plain
    assert "passes unprotected" in said
    assert "sensitive" in said
    assert "important" not in said
    assert "another name of the same type" not in said


def test_the_page_is_whole_and_escaped(result):
    content = render_page([result.released], result.guarantee)
    assert "<b>" not in content.replace("<body>", "")
    assert "&lt;EMAIL&gt;" in content
    assert "<td>sensitive</td><td>1</td><td>rankcape</td><td>9</td>" in content
    assert "<td>infinite</td>" in content
    assert "no finite bound holds" in content
    opened: list[str] = []

    class Check(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag not in ("meta", "!doctype"):
                opened.append(tag)

        def handle_endtag(self, tag):
            assert opened.pop() == tag

    Check().feed(content)
    assert opened == []
