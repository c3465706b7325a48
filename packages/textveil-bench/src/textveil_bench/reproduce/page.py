"""A reproduction's result as sections of a page, and an index page.

In: documents. Out: sections of HTML: claims, published values, tables, panels that were not run,
differences, errors of the paper.
Not here: the document (`document`), its form on a terminal (`cli.reproduce`), the rest of the page
(`report`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from textveil_bench.intervals import Interval
from textveil_bench.pictures import COLOURS, MARKERS, Curve, Look, Panel, Point
from textveil_bench.report import Section, compose
from textveil_bench.report.curves import PanelGroup
from textveil_bench.report.html import Html, build_element, build_table, format_interval, join_parts

Plain = Mapping[str, Any]

QUICK_NOTE = "This is a quick run, on a few texts: it cannot compare mechanisms."


def build_sections(document: Plain) -> Iterator[Section]:
    """Yields the sections with content.

    Args:
        document: a document from `document`.
    """
    quick = [QUICK_NOTE] if document["scale"] == "quick" else []
    if document["claims"]:
        text = ["First minus second, with 95% intervals.", *quick]
        yield _build_section(
            "The paper's claims in our rows", " ".join(text), _render_claims(document["claims"])
        )
    if document["published"]:
        text = ["Values of the paper's text and tables, and ours with 95% intervals.", *quick]
        yield _build_section(
            "Published values and ours", " ".join(text), _render_published(document["published"])
        )
    if document["tables"]:
        groups = build_drawings(document["tables"])
        yield Section(
            title="Tables",
            text="",
            groups=groups,
            content=lambda: join_parts(map(_render_table, document["tables"])),
        )
    if document["not_run"]:
        panels = [f"{panel}: {reason}" for panel, reason in document["not_run"].items()]
        yield _build_section("Panels that were not run", "", _render_list(panels))
    if document["differs"]:
        yield _build_section("Differences from the paper", "", _render_list(document["differs"]))
    if document["contradicts"]:
        title = "Errors of the paper"
        yield _build_section(title, "", _render_list(document["contradicts"]))


@dataclass(frozen=True, kw_only=True)
class ShownTarget:
    """A target with a finished page.

    Attributes:
        document: a document from `document`.
        page: the name of its page.
        groups: its first figures; empty if an earlier target has shown them.
    """

    document: Plain
    page: str
    groups: tuple[PanelGroup, ...] = ()


def render_index(targets: Sequence[ShownTarget]) -> str:
    """Renders an index page: figures, claims and a link for each target."""
    quick = [QUICK_NOTE] if any(item.document["scale"] == "quick" for item in targets) else []
    paragraphs = [INDEX_HEAD, *quick]
    sections = [
        Section(
            title=item.document["title"],
            text="",
            groups=item.groups,
            content=_build_target_content(item),
        )
        for item in targets
    ]
    return compose(
        "Reproductions of the papers' figures and tables",
        sections,
        head=join_parts(build_element("p", item) for item in paragraphs),
    )


INDEX_HEAD = (
    "The papers' mechanisms and ours, with a verdict on each claim. A claim holds if the 95% "
    "interval of the mean paired difference, from bootstrap resamples of the texts, is on its "
    "side. It does not hold if that interval, or significantly the difference at one place, is "
    "on the other side; otherwise it cannot be told. Claims without a comparison are not tested. "
    "In figures with a green corner, the nearer to it, the better: little risk, much utility."
)


def _build_target_content(target: ShownTarget) -> Callable[[], Html]:
    document = target.document
    parts = [build_element("p", document["shows"].strip(), class_="soft")]
    if document["claims"]:
        rows = [
            [claim[name] for name in ("claim", "answer", "data", "says")]
            for claim in document["claims"]
        ]
        parts.append(build_table(["claim", "answer", "data", "result of our rows"], rows, ""))
    if not document["cells"]:
        parts += map(_render_table, document["tables"])
    parts.append(
        build_element(
            "p", build_element("a", "All figures, values and intervals", href=target.page)
        )
    )
    if document["not_run"]:
        parts.append(
            _render_list(
                [f"{panel}: not run: {reason}" for panel, reason in document["not_run"].items()]
            )
        )
    return lambda: join_parts(parts)


def _build_section(title: str, text: str, content: Html) -> Section:
    return Section(title=title, text=text, content=lambda: content)


def _render_claims(claims: Sequence[Plain]) -> Html:
    rows = [
        [claim[name] for name in ("claim", "answer", "data", "metric", "says", "source")]
        for claim in claims
    ]
    return build_table(
        ["claim", "answer", "data", "metric", "result of our rows", "source"], rows, ""
    )


def _render_published(values: Sequence[Plain]) -> Html:
    rows = [
        [
            value["series"],
            value["metric"],
            f"{value['published']:.4g}",
            _format_interval(value),
            value["says"],
            value["source"],
        ]
        for value in values
    ]
    return build_table(
        ["series", "metric", "paper", "ours", "", "source"], rows, "Published values"
    )


def _format_interval(value: Plain) -> Html:
    if value["value"] is None:
        return format_interval(None)
    low, high = (
        infinity if end is None else end
        for end, infinity in ((value["low"], -inf), (value["high"], inf))
    )
    return format_interval(Interval(value=value["value"], low=low, high=high))


def _render_table(content: Plain) -> Html:
    rows = [[format_value(value) for value in row] for row in content["rows"]]
    parts = [
        build_element("h3", content["title"]),
        build_table(content["columns"], rows, content["title"]),
    ]
    return join_parts([*parts, _render_list(content["notes"])] if content["notes"] else parts)


def format_value(value: Any) -> str:
    """Formats a table value; large numbers have no decimals."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if 10_000 <= abs(value) < 1e9 else f"{value:.4g}"
    return str(value)


def build_drawings(tables: Sequence[Plain]) -> tuple[PanelGroup, ...]:
    """Builds panels for the tables that have a drawing."""
    return tuple(
        PanelGroup(title=item["title"], text="", panels=(_build_panel(item["drawing"]),))
        for item in tables
        if item["drawing"]
    )


def _build_panel(drawing: Plain) -> Panel:
    looks = [
        Look(colour=colour, marker=marker) for colour, marker in zip(COLOURS, MARKERS, strict=False)
    ]
    curves = [
        Curve(
            name=name,
            look=look,
            points=tuple(
                Point(_build_exact_interval(x), _build_exact_interval(y)) for x, y in points
            ),
        )
        for (name, points), look in zip(drawing["lines"].items(), looks, strict=False)
    ]
    smallest = min(x for points in drawing["lines"].values() for x, _ in points)
    title = f"{drawing['y']} against {drawing['x']}"
    return Panel(
        title=title, x=drawing["x"], y=drawing["y"], curves=tuple(curves), zero=smallest >= 0
    )


def _build_exact_interval(value: float) -> Interval:
    return Interval(value=value, low=value, high=value)


def _render_list(sentences: Sequence[str]) -> Html:
    return build_element("ul", join_parts(build_element("li", sentence) for sentence in sentences))
