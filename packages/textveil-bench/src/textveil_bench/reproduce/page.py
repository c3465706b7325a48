"""The result of a reproduction as sections of a page, and an index page for several targets.

In: documents. Out: sections of HTML: claims, published values, tables, what was not run, what differs, what is wrong.
Not here: the document (`document`), its form on a terminal (`cli.reproduce`), the rest of the page (`report`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from textveil_bench.intervals import Interval
from textveil_bench.pictures import COLOURS, MARKERS, Curve, Look, Panel, Point
from textveil_bench.report import Section, compose
from textveil_bench.report.curves import PanelGroup
from textveil_bench.report.markup import Html, element, joined, spelled, table

Plain = Mapping[str, Any]

QUICK = "This is a quick run, on a few invented sentences: it says nothing of the mechanisms."


def sections(found: Plain) -> Iterator[Section]:
    """The sections that have content.

    Args:
        found: a document from `document`.
    """
    quick = [QUICK] if found["scale"] == "quick" else []
    if found["claims"]:
        text = ["First less second, with 95% intervals.", *quick]
        yield _section("The paper's claims in our rows", " ".join(text), _claims(found["claims"]))
    if found["published"]:
        text = ["Values of the paper's text and tables, and ours with 95% intervals.", *quick]
        yield _section("Beside the paper", " ".join(text), _published(found["published"]))
    if found["tables"]:
        drawn = drawings(found["tables"])
        yield Section(
            title="Tables",
            text="",
            groups=drawn,
            content=lambda: joined(map(_table, found["tables"])),
        )
    if found["not_run"]:
        panels = [f"{panel}: {why}" for panel, why in found["not_run"].items()]
        yield _section("Panels that were not run", "", _sentences(panels))
    if found["differs"]:
        yield _section("What differs from the paper", "", _sentences(found["differs"]))
    if found["contradicts"]:
        title = "Where the paper is wrong, or cannot be right as it stands"
        yield _section(title, "", _sentences(found["contradicts"]))


@dataclass(frozen=True, kw_only=True)
class ShownTarget:
    """A target with a finished page.

    Attributes:
        found: a document from `document`.
        page: the name of its page.
        groups: its first figures; empty if an earlier target has shown them.
    """

    found: Plain
    page: str
    groups: tuple[PanelGroup, ...] = ()


def index(shown: Sequence[ShownTarget]) -> str:
    """A page of several targets: figures and claims of each, with a link to its own page."""
    quick = [QUICK] if any(each.found["scale"] == "quick" for each in shown) else []
    told = [HEAD, *quick]
    sections = [
        Section(title=each.found["title"], text="", groups=each.groups, content=_told(each))
        for each in shown
    ]
    return compose(
        "What became of the papers' figures and tables",
        sections,
        head=joined(element("p", each) for each in told),
    )


HEAD = (
    "Our mechanisms beside the papers' ones, and what became of each claim. A claim holds where the mean of the paired "
    "differences is on its side with all texts drawn again and again; it does not hold where that, or the difference "
    "at one place, is on the other side; else it cannot be told. What could not be compared is not tested. In "
    "figures with a green corner, the nearer to it, the better: little risk, much use."
)


def _told(shown: ShownTarget) -> Callable[[], Html]:
    found = shown.found
    parts = [element("p", found["shows"].strip(), class_="soft")]
    if found["claims"]:
        rows = [
            [each[name] for name in ("claim", "answer", "data", "says")] for each in found["claims"]
        ]
        parts.append(table(["claim", "answer", "data", "what our rows say"], rows, ""))
    if not found["cells"]:
        parts += map(_table, found["tables"])
    parts.append(element("p", element("a", "All figures, values and intervals", href=shown.page)))
    if found["not_run"]:
        parts.append(
            _sentences([f"{panel}: not run: {why}" for panel, why in found["not_run"].items()])
        )
    return lambda: joined(parts)


def _section(title: str, text: str, content: Html) -> Section:
    return Section(title=title, text=text, content=lambda: content)


def _claims(claims: Sequence[Plain]) -> Html:
    rows = [
        [each[name] for name in ("claim", "answer", "data", "metric", "says", "source")]
        for each in claims
    ]
    return table(["claim", "answer", "data", "metric", "what our rows say", "source"], rows, "")


def _published(values: Sequence[Plain]) -> Html:
    rows = [
        [
            each["series"],
            each["metric"],
            f"{each['published']:.4g}",
            _interval(each),
            each["says"],
            each["source"],
        ]
        for each in values
    ]
    return table(["series", "metric", "paper", "ours", "", "source"], rows, "Published values")


def _interval(found: Plain) -> Html:
    if found["value"] is None:
        return spelled(None)
    low, high = (
        open_ if end is None else end for end, open_ in ((found["low"], -inf), (found["high"], inf))
    )
    return spelled(Interval(value=found["value"], low=low, high=high))


def _table(found: Plain) -> Html:
    rows = [[plainly(value) for value in row] for row in found["rows"]]
    parts = [element("h3", found["title"]), table(found["columns"], rows, found["title"])]
    return joined([*parts, _sentences(found["notes"])] if found["notes"] else parts)


def plainly(value: Any) -> str:
    """A table value as text; large numbers have no decimals."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if 10_000 <= abs(value) < 1e9 else f"{value:.4g}"
    return str(value)


def drawings(tables: Sequence[Plain]) -> tuple[PanelGroup, ...]:
    """The drawings of those tables that have one."""
    return tuple(
        PanelGroup(title=each["title"], text="", panels=(_panel(each["drawing"]),))
        for each in tables
        if each["drawing"]
    )


def _panel(drawing: Plain) -> Panel:
    looks = [
        Look(colour=colour, marker=marker) for colour, marker in zip(COLOURS, MARKERS, strict=False)
    ]
    curves = [
        Curve(name=name, look=look, points=tuple(Point(_exact(x), _exact(y)) for x, y in points))
        for (name, points), look in zip(drawing["lines"].items(), looks, strict=False)
    ]
    least = min(x for points in drawing["lines"].values() for x, _ in points)
    title = f"{drawing['y']} against {drawing['x']}"
    return Panel(title=title, x=drawing["x"], y=drawing["y"], curves=tuple(curves), zero=least >= 0)


def _exact(value: float) -> Interval:
    return Interval(value=value, low=value, high=value)


def _sentences(given: Sequence[str]) -> Html:
    return element("ul", joined(element("li", each) for each in given))
