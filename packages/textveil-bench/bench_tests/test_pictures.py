"""Pictures: every headline is drawn, numbers where they belong, and formats as named."""

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from textveil.errors import ConfigError
from textveil_bench import pictures
from textveil_bench.intervals import Interval
from textveil_bench.pictures import Curve, Look, Map, Mark, Panel, Point


def row(metric, value, slice_="all", part="", headline=True, low=None, high=None, baseline=None):
    return {
        "attack": "a",
        "metric": metric,
        "setting": {"prior": "unigram"},
        "slice": slice_,
        "part": part,
        "value": value,
        "low": value - 0.05 if low is None else low,
        "high": value + 0.05 if high is None else high,
        "baseline": baseline,
        "headline": headline,
    }


ROWS = [
    row("top-1", 0.3, baseline=0.1),
    row("top-5", 0.5),
    row("other", 0.9, headline=False),
    *(
        row("top-1", 0.2 + i / 10, "frequency", f"{name} quarter ({i})")
        for i, name in enumerate(("first", "last"))
    ),
]


def points(axis, marker):
    """Where one sign stands, as pairs of numbers."""
    lines: list[Any] = [line for line in axis.lines if line.get_marker() == marker]
    return [pair for line in lines for pair in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def test_headlines_are_drawn_with_their_intervals():
    figure = pictures.draw_rates(ROWS, title="a title", subtitle="below")
    overall, by = figure.axes
    assert [label.get_text() for label in overall.get_yticklabels()] == [
        "top-1 (unigram)",
        "top-5 (unigram)",
    ]
    assert [x for x, _ in (*points(overall, "o"), *points(overall, "s"))] == [0.3, 0.5]
    assert (0.1, 0) in points(overall, "|")  # what is reached without the released words
    assert [y for _, y in points(by, "o")] == [0.2, pytest.approx(0.3)]
    assert [label.get_text() for label in by.get_xticklabels()] == ["first", "last"]


def test_densities_have_area_one_where_the_counts_are():
    counts = {"all": [1, 0, 3] * 50, "best": [0] * 148 + [2, 2]}
    (axis,) = pictures.draw_densities(
        counts, lowest=-2.0, width=0.5, mark=("largest", 72.9), title="t", scale="logit"
    ).axes
    patches: list[Any] = list(axis.patches)
    every, best = (patch.get_data() for patch in patches)
    for data in (every, best):
        assert len(data.values) <= pictures.MAX_BARS
        assert (data.values * np.diff(data.edges)).sum() == pytest.approx(1)
        assert data.edges[0] == -2.0
    assert best.edges[:-1][best.values > 0].min() >= 70.5
    legend = axis.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["all", "best", "largest: 72.90"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", pictures.SUFFIXES)
def test_saved_in_the_format_of_the_name(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    pictures.save(pictures.draw_rates(ROWS, title="a title"), path)
    assert path.read_bytes().startswith(
        {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix]
    )


@pytest.mark.slow
def test_one_figure_is_one_svg(tmp_path):
    first: dict[str, list[tuple[float, float]]] = {
        "noise": [(0.1, 0.2), (0.2, 0.3)],
        "polar": [(0.1, 0.1)],
    }
    panels = [("risk", first), ("other", {"santext": [(0.0, 1.0)]})]
    for name in ("one", "other"):
        pictures.save(
            pictures.draw_curves(panels, title="t", scale="s", columns=1), tmp_path / f"{name}.svg"
        )
    one, other = ((tmp_path / f"{name}.svg").read_text("utf-8") for name in ("one", "other"))
    assert one == other
    assert all(f"<!-- {name} -->" in one for name in ("noise", "polar", "santext")), (
        "all are in the legend"
    )


def test_an_open_interval_is_drawn_without_an_end():
    """The bar is there, and no whisker that has a length."""
    rows = [{**row("mean", 3.0), "low": None, "high": None}]
    figure = pictures.draw_rates(rows, title="t")
    figure.draw_without_rendering()
    paths = [
        path for axis in figure.axes for lines in axis.collections for path in lines.get_paths()
    ]
    assert paths
    assert all(np.isfinite(np.asarray(path.vertices, np.float64)).all() for path in paths)


def test_refusals(tmp_path):
    with pytest.raises(ConfigError, match="headline"):
        pictures.draw_rates([row("other", 0.9, headline=False)], title="t")
    with pytest.raises(ConfigError, match=r"\.svg"):
        pictures.save(pictures.draw_rates(ROWS, title="t"), tmp_path / "a.jpeg2")


def test_no_two_lines_look_alike():
    assert len(set(pictures.COLOURS)) == len(set(pictures.MARKERS)) == 8


def test_curves_have_one_colour_in_all_panels_and_their_own_points():
    one, other = [(0.1, 0.2), (0.3, 0.4)], [(0.2, 0.9)]
    panels = [("MAP", {"a": one, "b": other}), ("KNN-10", {"b": one})]
    figure = pictures.draw_curves(panels, title="t", scale="cosine")
    left, right = figure.axes
    assert [np.asarray(line.get_xydata()).tolist() for line in left.lines] == [
        [list(p) for p in each] for each in (one, other)
    ]
    assert [np.asarray(line.get_xydata()).tolist() for line in right.lines] == [
        [list(p) for p in one]
    ]
    assert left.lines[1].get_color() == right.lines[0].get_color() != left.lines[0].get_color()
    assert (left.get_xlabel(), right.get_xlabel(), left.get_ylabel()) == ("MAP", "KNN-10", "cosine")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def interval(value, reach=0.05):
    return Interval(value=value, low=value - reach, high=value + reach)


def panel(count=2, **options):
    looks = [
        Look(colour=colour, marker=marker)
        for colour, marker in zip(pictures.COLOURS, pictures.MARKERS, strict=True)
    ]
    drawn = tuple(
        Curve(
            name=f"c{i}",
            look=looks[i % 8],
            points=(Point(x=interval(0.1 * i + 0.1), y=interval(0.5)),),
        )
        for i in range(count)
    )
    return Panel(title="t", x="risk, share", y="use, share", curves=drawn, **options)


def test_a_panel_has_its_curves_with_both_intervals_its_marks_and_its_corner():
    marks = (
        Mark(name="clean", y=0.9, dash=pictures.DASHES[0]),
        Mark(name="mask", y=0.3, dash="1 1", x=0.02),
    )
    (axis,) = pictures.draw_figure(panel(marks=marks, corner=True, zero=True)).axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("risk, share", "use, share")
    assert points(axis, "o") == [(0.1, 0.5)]
    assert points(axis, "x") == [(0.02, 0.3)]
    reached = [collection.get_segments() for collection in axis.collections]  # type: ignore[attr-defined]
    assert np.allclose(reached[0], [[[0.05, 0.5], [0.15, 0.5]]])
    assert np.allclose(reached[1], [[[0.1, 0.45], [0.1, 0.55]]])
    assert axis.get_xlim()[0] == 0
    assert [text.get_text() for text in axis.texts] == ["good corner"]
    assert {
        float(np.asarray(line.get_ydata())[0])
        for line in axis.lines
        if line.get_linestyle() == "--"
    } <= {0.9, 0.3}


def test_more_than_eight_curves_are_refused():
    panel(8)
    for count in (0, 9):
        with pytest.raises(ConfigError, match="from one to 8 curves"):
            panel(count)


def test_values_of_many_sizes_stand_on_a_scale_of_orders():
    far = tuple(
        Curve(
            name="c",
            look=Look(colour="#000000", marker="o"),
            points=(Point(x=interval(x, 0), y=interval(0.5)),),
        )
        for x in (1.0, 100.0)
    )
    (axis,) = pictures.draw_figure(Panel(title="t", x="x", y="y", curves=far)).axes
    assert axis.get_xscale() == "log"
    (axis,) = pictures.draw_figure(panel()).axes
    assert axis.get_xscale() == "linear"


def test_a_map_has_a_number_in_every_cell():
    shown = Map(
        title="t",
        x="a",
        y="b",
        columns=("1", "2"),
        rows=("x",),
        cells=((0.25, None),),
        low=0.0,
        high=1.0,
    )
    (axis,) = pictures.draw_figure(shown).axes
    assert [text.get_text() for text in axis.texts] == [".25", "–"]
    assert [text.get_text() for text in axis.get_yticklabels()] == ["x"]


def test_figures_stand_side_by_side_in_a_page():
    one, other = (
        pictures.render_inline(pictures.draw_figure(panel()), name, "a <label>")
        for name in ("f1", "f2")
    )
    ids = [set(re.findall(r' id="([^"]+)"', each)) for each in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for found, svg in zip(ids, (one, other), strict=True):
        assert set(re.findall(r'(?:url\(|href=")#([^")]+)', svg)) == found
        assert svg.startswith("<svg viewBox=")
        assert 'aria-label="a &lt;label&gt;"' in svg
        assert "currentColor" in svg
        assert "var(--rule)" in svg
        assert not re.search(r"http|<style|<metadata|<!--|font-family|#1a1a1a|#dddddd", svg)
    assert other.replace("f2-", "f1-") == one


def test_legends_show_the_signs_of_curves():
    for colour, marker in zip(pictures.COLOURS, pictures.MARKERS, strict=True):
        found = pictures.draw_swatch(Look(colour=colour, marker=marker))
        assert colour.replace("#1a1a1a", "currentColor") in found
        ElementTree.fromstring(found)
    assert 'fill="none"' in pictures.draw_swatch(Look(colour="#000000", marker="o", hollow=True))
