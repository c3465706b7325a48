"""A page that shows the utility of mechanisms and the success of attackers: one file, from rows alone.

In: series of rows, texts before and after. Out: HTML; figures as files on request.
Not here: the numbers (`compare`), and how figures are drawn (`textveil_bench.pictures`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import count, islice
from pathlib import Path

from textveil.files import writing
from textveil.show import page
from textveil_bench import pictures
from textveil_bench.compare import Cell, MetricKey, Series
from textveil_bench.report import curves, options, tables
from textveil_bench.report.curves import PanelGroup
from textveil_bench.report.gallery import Shown, gallery
from textveil_bench.report.markup import Html, element, figure, joined, legend, slug
from textveil_bench.report.study import REFERENCE, Study

__all__ = ["Section", "Study", "compose", "overview", "report"]

NOTHING = Html("")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page.

    Attributes:
        title: its heading, unique on the page.
        text: a sentence below it.
        groups: figures.
        content: makes what is below them; None for nothing.
    """

    title: str
    text: str
    groups: tuple[PanelGroup, ...] = ()
    content: Callable[[], Html] | None = None


def report(
    series: Sequence[Series],
    shown: Sequence[Shown] = (),
    *,
    title: str | None = None,
    beside: Iterable[Section] = (),
    by: MetricKey | None = None,
    over: Sequence[MetricKey] = (),
    figures: Path | None = None,
    progress: Callable[[str, int, int], object] = lambda *_: None,
) -> str:
    """The page.

    Args:
        series: at least one, as made by `compare.series`.
        shown: texts before and after, of data sets that may be shown.
        title: its heading; None for one with the name of the sweep.
        beside: sections placed after the first group of figures, or after those over the budget.
        by: the attack at whose success mechanisms are compared; None: the strongest of the usual ones.
        over: metrics drawn over the budget, before everything else.
        figures: an existing folder for all figures as PNG and SVG with their legends; None for none.
        progress: called with the name of a step, the amount done and the total.

    Raises:
        OutputError: a figure cannot be written.
    """
    study = Study(series=tuple(series), by=by)
    figured, *others = _sections(study, shown)
    lead = tuple(_over(study, over))
    sweeps = ", ".join(dict.fromkeys(cell.row["sweep"] for cell in _cells(study)))
    return compose(
        title or f"Usefulness and risk: {sweeps}",
        [*lead, *beside, figured, *others] if lead else [*_around(figured, list(beside)), *others],
        head=joined((_facts(study, sweeps), _how(study))),
        figures=figures,
        progress=progress,
    )


def _over(study: Study, metrics: Sequence[MetricKey]) -> Iterator[Section]:
    """The figures over the budget, if a series has them."""
    groups = tuple(curves.over_budgets(study, metrics))
    if groups:
        yield Section(title="Over the budget", text="", groups=groups)


def _around(figured: Section, beside: Sequence[Section]) -> Iterator[Section]:
    """Inserts sections between the first group of figures and the others."""
    if not beside:
        yield figured
        return
    yield replace(figured, groups=figured.groups[:1])
    yield from beside
    yield replace(
        figured,
        title="Other figures of usefulness against attacks",
        text="",
        groups=figured.groups[1:],
    )


def overview(
    series: Sequence[Series], by: MetricKey | None = None, over: Sequence[MetricKey] = ()
) -> tuple[PanelGroup, ...]:
    """The most informative figures of some series.

    Args:
        series: of one or more data sets.
        by: the attack at whose success mechanisms are compared.
        over: metrics drawn over the budget.

    Returns:
        the figures over the budget or, without any, the first of utility against an attack or of the effect of options.
    """
    study = Study(series=tuple(series), by=by)
    asked = tuple(curves.over_budgets(study, over))
    return asked or tuple(islice((*curves.against_attacks(study), *options.single(study)), 1))


def compose(
    title: str,
    sections: Iterable[Section],
    *,
    head: Html = NOTHING,
    figures: Path | None = None,
    progress: Callable[[str, int, int], object] = lambda *_: None,
) -> str:
    """A page of sections.

    Args:
        title: its heading.
        sections: empty ones are left out.
        head: placed before the table of contents and the sections.
        figures: an existing folder for all figures as PNG and SVG with their legends; None for none.
        progress: called with the name of a step, the amount done and the total.

    Raises:
        OutputError: a figure cannot be written.
    """
    sections = [section for section in sections if section.groups or section.content]
    total = sum(len(group.panels) for section in sections for group in section.groups)
    numbers = count(1)

    def draw(group: PanelGroup) -> Html:
        drawn = []
        for panel in group.panels:
            number = next(numbers)
            progress("figures", number, total)
            label = f"{group.title}. {panel.title}. {panel.y} against {panel.x}"
            drawn.append(
                figure(pictures.inline(pictures.draw(panel), f"f{number}", label), panel.title)
            )
            if figures is not None:
                name = f"{number:03d}-{slug(f'{group.title} {panel.title}')}"
                with writing():
                    for suffix in (".png", ".svg"):
                        pictures.save(
                            pictures.draw(panel, heading=f"{group.title}. {panel.title}"),
                            figures / (name + suffix),
                        )
        text = element("p", group.text, class_="soft") if group.text else Html("")
        panels = element("div", joined(drawn), class_=f"panels by{group.columns}")
        return joined((element("h3", group.title), text, legend(group.panels), panels))

    def write(section: Section) -> Html:
        parts = [element("h2", section.title, id=slug(section.title))]
        parts += [element("p", section.text, class_="soft")] if section.text else []
        parts += [draw(group) for group in section.groups]
        return joined(parts if section.content is None else [*parts, section.content()])

    content = joined((head, _contents(sections), *map(write, sections)))
    styles = (files("textveil_bench.report") / "report.css").read_text(encoding="utf-8")
    return page.shell(title, content, styles=styles)


def _sections(study: Study, shown: Sequence[Shown]) -> Iterator[Section]:
    risk = "an attack" if study.risk is None else study.risk.title
    yield Section(
        title="Usefulness against attacks",
        text=f"For each mechanism, the options that keep most where {risk} succeeds in {REFERENCE:.0%} of cases; "
        "all options are further down.",
        groups=tuple(curves.against_attacks(study)),
    )
    yield Section(
        title="At equal risk",
        text=f"What is kept where {risk} succeeds equally often, interpolated between the two nearest budgets. "
        "Differences and ratios are paired, over the same texts.",
        content=lambda: tables.equal_risk(study),
    )
    yield Section(
        title="Usefulness against the budget",
        text="Budgets with different names cannot be compared, nor can those of different mechanisms.",
        groups=tuple(curves.against_budgets(study)),
    )
    yield Section(
        title="Usefulness against local DP",
        text="The local DP epsilon that the statement guarantees, for mechanisms that have one.",
        groups=tuple(curves.against_local_dp(study)),
    )
    yield Section(
        title="What options do",
        text="One option at a time, at each budget; the others as in the family's best series.",
        groups=tuple(options.single(study)),
    )
    yield Section(
        title="Two options at once",
        text="A map for each budget.",
        groups=tuple(options.pairs(study)),
    )
    yield Section(
        title="Odd and even windows",
        text="A window of odd length is centred on its word; one of even length is not.",
        groups=tuple(options.parity(study)),
    )
    yield from _lists(study, shown)


def _lists(study: Study, shown: Sequence[Shown]) -> Iterator[Section]:
    parts: list[tuple[str, str, Callable[[], Html]]] = [
        ("All cells", "Means over seeds, with intervals.", lambda: tables.all_cells(study)),
        ("Measures", "How far releases are from their originals.", lambda: tables.measures(study)),
        (
            "By text length",
            f"Quarters of the texts by their number of words, at the budget nearest to a risk of {REFERENCE:g}.",
            lambda: tables.by_length(study),
        ),
        (
            "Statements",
            "What is guaranteed: the largest bound over all texts.",
            lambda: tables.statements(study),
        ),
        (
            "Not run",
            "Judges and attacks that do not apply to such releases, and why.",
            lambda: tables.not_run(study),
        ),
        ("Time", "Means over budgets and seeds.", lambda: tables.seconds(study)),
    ]
    if shown:
        text = "Texts of public data sets, each followed by its releases; changed words are marked."
        parts.append(("Texts before and after", text, lambda: gallery(study, shown)))
    for title, text, content in parts:
        yield Section(title=title, text=text, content=content)


# ---- the head of the page ------------------------------------------------------------------------------


def _facts(study: Study, sweeps: str) -> Html:
    cells = list(_cells(study))
    rows = [row for cell in cells for row in cell.rows]
    entries = dict.fromkeys(series.entry for series in study.series)
    seeds = {row["seed"] for row in rows}
    around = [row["circumstances"] for row in rows]
    times = sorted(str(each["time"])[:16].replace("T", " ") for each in around)
    machines = dict.fromkeys(
        f"{each['machine']}, {each['cores']} cores, {each['threads']} threads, {each['device']}, "
        f"judges in {each.get('judges', 'float32')}"
        for each in around
    )
    versions = [
        f"{name} {version}" for each in around for name, version in each["versions"].items()
    ]
    told = [
        ("sweep", sweeps),
        *((f"data: {study.title(data)}", _about(study, data.digest)) for data in study.data),
        ("mechanisms", ", ".join(entries)),
        (
            "rows",
            f"{len(rows):,}, of {len(cells):,} cells; seeds {', '.join(map(str, sorted(seeds)))}",
        ),
        ("machine", "; ".join(machines)),
        (
            "versions",
            ", ".join(dict.fromkeys([*(f"Python {each['python']}" for each in around), *versions])),
        ),
        ("commit", ", ".join(dict.fromkeys(str(each["commit"]) for each in around))),
        ("run", times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"),
    ]
    return element(
        "dl",
        joined(joined((element("dt", a), element("dd", b)), "") for a, b in told),
        class_="facts",
    )


def _about(study: Study, digest: str) -> str:
    data = next(
        cell.row["data"]
        for series in study.series
        if series.data.digest == digest
        for cell in series.cells
    )
    parts = [
        data["split"],
        data["kind"],
        f"{data['examples']:,} texts",
        data["source"],
        *data.get("remarks", ()),
    ]
    return "; ".join(part for part in parts if part)


def _how(study: Study) -> Html:
    said = [
        "Every figure is a mean over texts, each averaged over seeds. Bars, and small numbers after a value, are "
        "95% intervals from 2,000 bootstrap resamples of the texts. All comparisons use the same resamples, so "
        "differences and ratios are paired. The intervals apply to texts like these, not to other data sets. If "
        "all texts have the same value, the interval is that of the row, or none.",
        "In figures with a green corner, the horizontal axis is the success rate of an attack and the vertical one the "
        "utility of releases: the nearer to the corner, the better. Horizontal lines are baselines: identity changes "
        "nothing, mask makes every private word a placeholder, uniform replaces it with any word of the table, "
        "equality does so with the same one for equal words. A series has one colour and marker on the whole page.",
    ]
    if study.risk is not None:
        said.append(f"Equal risk means: {study.risk.title} succeeds equally often.")
    return joined(
        (element("h2", "How to read this", id="how"), *(element("p", each) for each in said))
    )


def _contents(sections: Sequence[Section]) -> Html:
    items = (
        element("li", element("a", each.title, href=f"#{slug(each.title)}")) for each in sections
    )
    return element("nav", element("ol", joined(items)), aria_label="Contents")


def _cells(study: Study) -> Iterator[Cell]:
    return (cell for series in study.series for cell in series.cells)
