"""Pictures: bars and curves say what their tables say, and pages stand alone."""

import io
import itertools
import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil import __version__
from textveil.config import resolve
from textveil.evaluate.attack import Case
from textveil.evaluate.curve import FACTORS, CurvePoint
from textveil.evaluate.risk import assess
from textveil.guarantee import find_drawn_epsilon, list_parts
from textveil.pipeline import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.render import page as pages
from textveil.render import risk
from textveil.render.bar import draw_bar, dump_bar, render_bar
from textveil.render.curve import build_table, draw_curve, dump_curve, render_curve
from textveil.render.picture import PICTURE_CSS
from textveil.table.embedding import EmbeddingTable

TEXT = "The lemon  & the castle,\n<a river> and an onion by a@b.org."


@pytest.fixture(scope="module")
def table():
    return EmbeddingTable.build(name="sixty", words=NOUNS, vectors=gaussian_rows(60, 8, 3))


def released(table, text=TEXT, **options):
    given = {"protect": {"detectors": ("patterns",)}, "seed": 3, "epsilon": 3.0, **options}
    privatizer = Privatizer("rankcape", k=7, table=table, **given)
    run = privatizer.rehearse([text])
    case = Case.build(privatizer, run, names=True)
    return run.results[0], assess(case, prior="uniform", rng=SeededRandomness(1))


def points(low=0.01, high=0.9, names=("unigram",), epsilon=7.5):
    step = (high - low) / (len(FACTORS) - 1)
    return [
        CurvePoint(
            factor=factor,
            epsilon=epsilon * factor,
            bound=epsilon * factor,
            shares=dict.fromkeys(names, low + step * i),
        )
        for i, factor in enumerate(FACTORS)
    ]


# ---- the statement as one bar --------------------------------------------------------------------


def test_the_parts_of_a_bar_are_all_words_of_the_statement(table):
    result, _ = released(table)
    parts = list_parts(result.guarantee)
    assert sum(part.words for part in parts) == result.guarantee.words
    assert {part.treatment: part.words for part in parts}["drawn"] == 4
    assert {part.treatment: part.words for part in parts}["placeholder"] == 1
    bar = draw_bar(parts)
    widths = [float(shape.attributes["width"]) for shape in bar.shapes]
    assert sum(widths) == pytest.approx(720, abs=2.1 * len(parts))
    for width, part in zip(widths, parts, strict=True):
        assert width == pytest.approx(720 * part.words / result.guarantee.words, abs=2.1)
        assert f"{part.words:,} {part.meaning}" in bar.label
    assert "4 drawn at epsilon 3" in render_bar(result.guarantee)
    dumped = dump_bar(result.guarantee)
    assert dumped is not None
    assert [each["says"] for each in dumped["legend"]] == [
        f"{part.words:,} {part.meaning}" for part in parts
    ]


@pytest.mark.parametrize("epsilon", [math.inf, 0.0])
def test_words_that_pass_or_become_placeholders_are_no_drawn_part(table, epsilon):
    result, _ = released(table, epsilon=epsilon)
    treatments = {part.treatment for part in list_parts(result.guarantee)}
    assert treatments == {"placeholder", "public"} | ({"unprotected"} if epsilon else set())
    assert find_drawn_epsilon(result.guarantee) == math.inf


def test_a_statement_about_no_word_has_no_bar(table):
    result, _ = released(table, text="")
    assert render_bar(result.guarantee) == ""
    assert dump_bar(result.guarantee) is None


# ---- the curve -----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("unigram",), ("context", "learned")])
def test_a_curve_has_a_point_and_a_row_for_every_budget(names):
    drawn, (head, rows) = draw_curve(points(names=names)), build_table(points(names=names))
    circles = [shape for shape in drawn.shapes if shape.tag == "circle"]
    assert len(circles) == len(FACTORS) * len(names)
    assert len(head) == 1 + len(names)
    assert [row[0] for row in rows][3] == "7.5 (yours)"
    assert rows[0][1:] == ["1%"] * len(names)
    heights = [float(shape.attributes["cy"]) for shape in circles[: len(FACTORS)]]
    assert heights == sorted(heights, reverse=True)  # a higher risk stands higher
    for shape in drawn.shapes:
        for name in {"cx", "x", "x1", "x2"} & shape.attributes.keys():
            assert 0 <= float(shape.attributes[name]) <= drawn.width
        for name in {"cy", "y", "y1", "y2"} & shape.attributes.keys():
            assert 0 <= float(shape.attributes[name]) <= drawn.height
    dumped = dump_curve(points(names=names))
    assert dumped is not None
    assert dumped["rows"] == rows


def test_only_points_that_are_estimated_have_a_bar():
    sure = points(names=("unigram", "learned"))
    unsure = [replace(point, intervals={"learned": (0.2, 0.95)}) for point in sure]
    for given, expected in ((sure, 0), (unsure, len(FACTORS))):
        styles = [shape.attributes.get("class", "") for shape in draw_curve(given).shapes]
        assert sum(style.startswith("bar-") for style in styles) == expected
    row = build_table(unsure)[1][0]
    assert row[1:] == ["1%", "1% (20% to 95%)"]


def test_what_joins_points_is_dashed_and_the_axis_is_said_to_be_logarithmic():
    for style in ("first", "second"):
        assert re.search(rf"\.{style} {{[^}}]*stroke-dasharray: \d", PICTURE_CSS)
    for epsilon in (7.5, math.inf):
        content = render_curve(points(epsilon=epsilon))
        assert "(log scale)" in content
        assert "between two the risk was not computed" in content


def test_without_a_bound_budgets_are_multiples(table):
    assert [row[0] for row in build_table(points(epsilon=math.inf))[1]] == [
        *("0.25×", "0.5×", "0.71×", "1× (yours)", "1.4×", "2×", "4×")
    ]
    assert "multiple of yours" in render_curve(points(epsilon=math.inf))


def test_one_point_is_no_curve():
    assert render_curve(points()[:1]) == render_curve([]) == ""
    assert dump_curve([]) is None


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_ends_of_the_axis_can_be_drawn(share):
    heights = [
        float(shape.attributes["cy"])
        for shape in draw_curve(points(share, share)).shapes
        if shape.tag == "circle"
    ]
    assert heights == [212.0 if share == 0 else 50.0] * len(FACTORS)


def test_pictures_are_well_formed_and_every_class_has_a_colour(table):
    result, _ = released(table)
    for picture in (draw_bar(list_parts(result.guarantee)), draw_curve(points(names=("a", "b")))):
        ElementTree.fromstring(picture.render_svg())
        styles = {shape.attributes.get("class") for shape in picture.shapes} - {None}
        assert all(f".{style}" in PICTURE_CSS for style in styles)
        assert picture.to_json()["attributes"]["aria-label"] == picture.label
    light, dark = PICTURE_CSS.split("@media screen and (prefers-color-scheme: dark)")[:2]
    names = set(re.findall(r"(--ink-\w+):", light))
    assert names == set(re.findall(r"(--ink-\w+):", dark))  # each in both


# ---- original beside release ---------------------------------------------------------------------


def test_originals_stand_beside_releases_word_by_word(table):
    result, (found,) = released(table)
    gaps, words = risk.find_originals(result.released, result.private)
    assert "".join(part for pair in zip(gaps, [*words, ""], strict=True) for part in pair) == TEXT
    assert [word for word, p in zip(words, found.private, strict=True) if p] == [
        *("lemon", "castle", "river", "onion", "a@b.org")
    ]
    page = risk.render_page([found], result.guarantee, originals=[result.private])
    assert "it holds the private text" in page
    for side in page.split("<h2>Released</h2>"):
        assert "&lt;" in side
        assert "&gt;" in side
    assert "<a" not in page
    levels = [
        re.findall(r'<span class="word (level\d)[^"]*" title="([^"]+)"', side)
        for side in page.split("<h2>Released</h2>")
    ]
    assert levels[0] == levels[1]  # both sides have the same colours
    without = risk.render_page([found], result.guarantee)
    assert "a@b.org" not in without


def test_the_page_has_the_curve_and_the_bar_and_loads_nothing(table):
    result, risks = released(table)
    page = risk.render_page(
        risks, result.guarantee, originals=[result.private], curve=points(names=("a", "learned"))
    )
    assert page.count('class="risk-curve"') == page.count('class="statement-bar"') == 1
    assert "Risk at other budgets" in page
    assert not re.search(r"<script|https?://|src=|url\(|@import", page)


def test_the_foot_says_by_what_the_page_was_made_and_no_path(table):
    result, risks = released(table)
    config = resolve(overrides={"mechanism": "rankcape", "epsilon": 3.0, "seed": 90210})
    config = replace(config, profile="/home/maria/canary/mine.yaml")
    page = risk.render_page(risks, result.guarantee, config=config)
    foot = page[page.rindex('<p class="how">') :]
    assert f"textveil {__version__}; profile mine.yaml; mechanism rankcape; drawn at eps" in foot
    assert "epsilon 3; prior uniform; computed over all draws; with a seed" in foot
    assert not re.search("maria|canary|90210|lemon", page)
    unsure = [replace(each, draws=3) for each in risks]
    assert "estimated from draws: 3" in risk.render_page(unsure, result.guarantee, config=config)


def test_public_words_are_not_said_to_be_unchanged(table):
    result, risks = released(table, words={"casing": "lower"})
    assert result.text.startswith("the ")  # it passed, and changed
    assert "unchanged" not in risk.render_page(risks, result.guarantee).split("<h2>The st")[0]


def test_on_narrow_screens_a_curve_has_larger_letters():
    assert re.search(r"\(max-width: 30rem\) { .risk-curve { font-size: 14px", PICTURE_CSS)


def test_signs_stand_in_for_colours_on_both_sides(table):
    from rich.console import Console

    result, risks = released(table)
    for marked in (False, True):
        console = Console(width=120, record=True, file=io.StringIO(), force_terminal=True)
        (grid,) = risk.render_for_terminal(risks, [result.private], marked=marked)
        console.print(grid)
        shown = console.export_text(styles=marked)
        assert "lemon" in shown
        assert "original" in shown
        assert ("\x1b" in shown) == marked


def test_dark_pages_are_offered_but_where_pictures_cannot_follow():
    assert "prefers-color-scheme: dark" in pages.render_plain_page("a", "b", styles="")
    assert "prefers-color-scheme" not in pages.render_plain_page("a", "b", styles="", dark=False)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_on_dark_pages_higher_risks_are_lighter():
    dark = risk.RISK_CSS.split("@media")[1]
    papers = re.findall(r"\.level[1-4] \{ background: (#\w{6})", dark)
    shades = [luminance(paper) for paper in papers]
    assert len(shades) == 4
    assert all(after > 1.3 * before for before, after in itertools.pairwise(shades))


def test_words_of_groups_have_a_part_for_each_epsilon(table):
    result, _ = released(
        table,
        epsilon=None,
        groups={"budgets": (1.0, 2.0, 4.0, 3.0)},
        protect={"detectors": ("patterns",), "always": ("castle",), "placeholders": ("EMAIL",)},
    )
    drawn = [part for part in list_parts(result.guarantee) if part.treatment == "drawn"]
    assert [part.meaning for part in drawn] == ["drawn at epsilon 2", "drawn at epsilon 3"]
    assert find_drawn_epsilon(result.guarantee) == pytest.approx(3)
    styles = [shape.attributes["class"] for shape in draw_bar(drawn).shapes]
    assert styles == ["part-level", "part-drawn"]
