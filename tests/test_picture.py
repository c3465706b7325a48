"""Pictures: every headline is drawn, numbers where they belong, and formats as named."""

from typing import Any

import numpy as np
import pytest

from textveil import picture
from textveil.errors import ConfigError


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
    *(row("top-1", 0.2 + i / 10, "frequency", f"{name} quarter ({i})") for i, name in enumerate(("first", "last"))),
]


def points(axis, marker):
    """Where one sign stands, as pairs of numbers."""
    lines: list[Any] = [line for line in axis.lines if line.get_marker() == marker]
    return [pair for line in lines for pair in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def test_headlines_are_drawn_with_their_intervals():
    figure = picture.rates(ROWS, title="a title", subtitle="below")
    overall, by = figure.axes
    assert [label.get_text() for label in overall.get_yticklabels()] == ["top-1 (unigram)", "top-5 (unigram)"]
    assert [x for x, _ in (*points(overall, "o"), *points(overall, "s"))] == [0.3, 0.5]
    assert (0.1, 0) in points(overall, "|")  # what is reached without the released words
    assert [y for _, y in points(by, "o")] == [0.2, pytest.approx(0.3)]
    assert [label.get_text() for label in by.get_xticklabels()] == ["first", "last"]


def test_densities_have_area_one_where_the_counts_are():
    counts = {"all": [1, 0, 3] * 50, "best": [0] * 148 + [2, 2]}
    (axis,) = picture.densities(counts, lowest=-2.0, width=0.5, mark=("largest", 72.9), title="t", scale="logit").axes
    patches: list[Any] = list(axis.patches)
    every, best = (patch.get_data() for patch in patches)
    for data in (every, best):
        assert len(data.values) <= picture.BARS
        assert (data.values * np.diff(data.edges)).sum() == pytest.approx(1)
        assert data.edges[0] == -2.0
    assert best.edges[:-1][best.values > 0].min() >= 70.5
    legend = axis.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["all", "best", "largest: 72.90"]


@pytest.mark.parametrize("suffix", picture.SUFFIXES)
def test_saved_in_the_format_of_the_name(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    picture.save(picture.rates(ROWS, title="a title"), path)
    assert path.read_bytes().startswith({".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix])


def test_an_open_interval_is_drawn_without_an_end():
    rows = [{**row("mean", 3.0), "low": None, "high": None}]
    picture.rates(rows, title="t").draw_without_rendering()


def test_refusals(tmp_path):
    with pytest.raises(ConfigError, match="headline"):
        picture.rates([row("other", 0.9, headline=False)], title="t")
    with pytest.raises(ConfigError, match=r"\.svg"):
        picture.save(picture.rates(ROWS, title="t"), tmp_path / "a.jpeg2")


def test_no_two_lines_look_alike():
    assert len(set(picture.COLOURS)) == len(set(picture.MARKERS)) == 8


def test_curves_have_one_colour_in_all_panels_and_their_own_points():
    one, other = [(0.1, 0.2), (0.3, 0.4)], [(0.2, 0.9)]
    panels = [("MAP", {"a": one, "b": other}), ("KNN-10", {"b": one})]
    figure = picture.curves(panels, title="t", scale="cosine")
    left, right = figure.axes
    assert [np.asarray(line.get_xydata()).tolist() for line in left.lines] == [
        [list(p) for p in each] for each in (one, other)
    ]
    assert [np.asarray(line.get_xydata()).tolist() for line in right.lines] == [[list(p) for p in one]]
    assert left.lines[1].get_color() == right.lines[0].get_color() != left.lines[0].get_color()
    assert (left.get_xlabel(), right.get_xlabel(), left.get_ylabel()) == ("MAP", "KNN-10", "cosine")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
