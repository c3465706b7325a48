"""Report page in HTML: mechanisms' utility and attackers' success, from rows.

In: series of rows, texts before and after. Out: HTML; figures as files on request.
Not here: the numbers (`compare`), and how figures are drawn (`textveil_bench.pictures`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import count, islice
from pathlib import Path

from textveil.files import convert_write_errors
from textveil.render import page
from textveil_bench import pictures
from textveil_bench.compare import Cell, MetricKey, Series
from textveil_bench.report import curves, options, tables
from textveil_bench.report.curves import PanelGroup
from textveil_bench.report.gallery import GalleryText, WholeTextGallery, build_gallery
from textveil_bench.report.html import (
    Html,
    build_element,
    build_figure,
    build_legend,
    join_parts,
    make_slug,
)
from textveil_bench.report.study import REFERENCE_RISK, Study

__all__ = [
    "Section",
    "Study",
    "WholeTextGallery",
    "build_report",
    "build_whole_text_section",
    "compose",
    "select_overview",
]

NOTHING = Html("")

RISK_MEANINGS = {
    "exposed": "the share of all private words, also of those that pass, that an attacker names "
    "who knows the mechanism",
    "top-1": "the share of drawn words that the attacker names at the first guess",
    "Pr@1": "the share of drawn words whose release is the word itself. This attacker knows "
    "neither the mechanism nor how people write; `bayes` is a stronger one",
}
"""What the success of an attack is, by metric."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the page.

    Attributes:
        title: its heading, unique on the page.
        text: a sentence below it.
        groups: figures.
        content: makes the HTML below them; None for nothing.
    """

    title: str
    text: str
    groups: tuple[PanelGroup, ...] = ()
    content: Callable[[], Html] | None = None


def build_report(  # noqa: PLR0913 - most are options, given by keyword
    series: Sequence[Series],
    gallery_texts: Sequence[GalleryText] = (),
    *,
    title: str | None = None,
    extra_sections: Iterable[Section] = (),
    closing_sections: Iterable[Section] = (),
    risk_metric: MetricKey | None = None,
    budget_metrics: Sequence[MetricKey] = (),
    figures: Path | None = None,
    progress: Callable[[str, int, int], object] = lambda *_: None,
) -> str:
    """Builds the report page.

    Args:
        series: at least one, as made by `compare.build_series`.
        gallery_texts: texts before and after, of data sets that may be shown.
        title: its heading; None for one with the name of the sweep.
        extra_sections: sections placed after the first group of figures, or after the figures over
            the budget.
        closing_sections: sections placed at the end.
        risk_metric: the attack at whose success mechanisms are compared; None for the strongest of
            the usual ones.
        budget_metrics: metrics drawn over the budget, before everything else.
        figures: an existing folder for all figures as PNG and SVG with their legends, and their data
            as CSV; None for none.
        progress: called with the name of a step, the amount done and the total.

    Raises:
        OutputError: a figure cannot be written.
    """
    study = Study(series=tuple(series), preferred_risk=risk_metric)
    figure_section, *other_sections = _build_sections(study, gallery_texts)
    lead_sections = tuple(_build_budget_section(study, budget_metrics))
    sweeps = ", ".join(dict.fromkeys(cell.row["sweep"] for cell in _list_cells(study)))
    first_sections = (
        [*lead_sections, *extra_sections, figure_section]
        if lead_sections
        else _insert_sections(figure_section, list(extra_sections))
    )
    return compose(
        title or f"Usefulness and risk: {sweeps}",
        [*first_sections, *other_sections, *closing_sections],
        head=join_parts((_build_facts(study, sweeps), _build_guide(study))),
        figures=figures,
        progress=progress,
    )


def _build_budget_section(study: Study, metrics: Sequence[MetricKey]) -> Iterator[Section]:
    """Yields the section of figures over the budget, if there are any."""
    groups = tuple(curves.build_paper_groups(study, metrics))
    if groups:
        yield Section(title="Over the budget", text="", groups=groups)


def _insert_sections(
    figure_section: Section, extra_sections: Sequence[Section]
) -> Iterator[Section]:
    """Inserts sections between the first group of figures and the others."""
    if not extra_sections:
        yield figure_section
        return
    yield replace(figure_section, groups=figure_section.groups[:1])
    yield from extra_sections
    yield replace(
        figure_section,
        title="Other figures of usefulness against attacks",
        text="",
        groups=figure_section.groups[1:],
    )


def select_overview(
    series: Sequence[Series],
    risk_metric: MetricKey | None = None,
    budget_metrics: Sequence[MetricKey] = (),
) -> tuple[PanelGroup, ...]:
    """Selects the most informative figures of some series.

    Args:
        series: of one or more data sets.
        risk_metric: the attack at whose success mechanisms are compared.
        budget_metrics: metrics drawn over the budget.

    Returns:
        the figures over the budget or, if there are none, the first of utility against an attack or
        of the effect of options.
    """
    study = Study(series=tuple(series), preferred_risk=risk_metric)
    budget_groups = tuple(curves.build_paper_groups(study, budget_metrics))
    return budget_groups or tuple(
        islice((*curves.build_attack_groups(study), *options.build_option_groups(study)), 1)
    )


def compose(
    title: str,
    sections: Iterable[Section],
    *,
    head: Html = NOTHING,
    figures: Path | None = None,
    progress: Callable[[str, int, int], object] = lambda *_: None,
) -> str:
    """Composes a page of sections.

    Args:
        title: its heading.
        sections: empty ones are left out.
        head: placed before the table of contents and the sections.
        figures: an existing folder for all figures as PNG and SVG with their legends, and their data
            as CSV; None for none.
        progress: called with the name of a step, the amount done and the total.

    Raises:
        OutputError: a figure cannot be written.
    """
    sections = [section for section in sections if section.groups or section.content]
    total = sum(len(group.panels) for section in sections for group in section.groups)
    numbers = count(1)

    def draw_group(group: PanelGroup) -> Html:
        drawings = []
        for panel in group.panels:
            number = next(numbers)
            progress("figures", number, total)
            label = f"{group.title}. {panel.title}. {panel.y} against {panel.x}"
            drawings.append(
                build_figure(
                    pictures.render_inline(pictures.draw_figure(panel), f"f{number}", label),
                    panel.title,
                )
            )
            if figures is not None:
                name = f"{number:03d}-{make_slug(f'{group.title} {panel.title}')}"
                with convert_write_errors():
                    for suffix in (".png", ".svg"):
                        pictures.save(
                            pictures.draw_figure(panel, heading=f"{group.title}. {panel.title}"),
                            figures / (name + suffix),
                        )
                    pictures.write_data(panel, figures / f"{name}.csv")
        text = build_element("p", group.text, class_="soft") if group.text else Html("")
        panels = build_element("div", join_parts(drawings), class_=f"panels by{group.columns}")
        return join_parts(
            (build_element("h3", group.title), text, build_legend(group.panels), panels)
        )

    def write_section(section: Section) -> Html:
        parts = [build_element("h2", section.title, id=make_slug(section.title))]
        parts += [build_element("p", section.text, class_="soft")] if section.text else []
        parts += [draw_group(group) for group in section.groups]
        return join_parts(parts if section.content is None else [*parts, section.content()])

    content = join_parts((head, _build_contents(sections), *map(write_section, sections)))
    styles = (files("textveil_bench.report") / "report.css").read_text(encoding="utf-8")
    return page.render_plain_page(title, content, styles=styles, dark=False)


def _build_sections(study: Study, gallery_texts: Sequence[GalleryText]) -> Iterator[Section]:
    risk = "an attack" if study.risk is None else study.risk.title
    yield Section(
        title="Usefulness against attacks",
        text=f"For each mechanism, the options with most utility where {risk} succeeds in "
        f"{REFERENCE_RISK:.0%} of cases; all options are further down.",
        groups=tuple(curves.build_attack_groups(study)),
    )
    yield Section(
        title="At equal risk",
        text=f"Utility where {risk} succeeds equally often, interpolated between the two nearest budgets. "
        "Differences and ratios are paired, over the same texts.",
        content=lambda: tables.render_equal_risk(study),
    )
    yield Section(
        title="Usefulness against the budget",
        text="Budgets with different names cannot be compared, nor can those of different mechanisms.",
        groups=tuple(curves.build_budget_groups(study)),
    )
    yield Section(
        title="Usefulness against local DP",
        text="The local DP epsilon that the statement guarantees, for mechanisms that have one.",
        groups=tuple(curves.build_local_dp_groups(study)),
    )
    yield Section(
        title="Effect of options",
        text="One option at a time, at each budget; the others as in the family's best series.",
        groups=tuple(options.build_option_groups(study)),
    )
    yield Section(
        title="Pairs of options",
        text="A map for each budget.",
        groups=tuple(options.build_pair_groups(study)),
    )
    yield Section(
        title="Odd and even windows",
        text="A window of odd length is centred on its word; one of even length is not.",
        groups=tuple(options.build_parity_groups(study)),
    )
    yield from _build_list_sections(study, gallery_texts)


def _build_list_sections(study: Study, gallery_texts: Sequence[GalleryText]) -> Iterator[Section]:
    parts: list[tuple[str, str, Callable[[], Html]]] = [
        ("All cells", "Means over seeds, with intervals.", lambda: tables.render_cells(study)),
        (
            "Measures",
            "How far releases are from their originals.",
            lambda: tables.render_measures(study),
        ),
        (
            "By text length",
            (
                "Quarters of the texts by their number of words, at the budget nearest to a risk "
                f"of {REFERENCE_RISK:g}."
            ),
            lambda: tables.render_by_length(study),
        ),
        (
            "Statements",
            "Guarantees: the largest bound over all texts.",
            lambda: tables.render_statements(study),
        ),
        (
            "Not run",
            "Judges and attacks that do not apply to such releases, and why.",
            lambda: tables.render_not_run(study),
        ),
        ("Time", "Means over budgets and seeds.", lambda: tables.render_times(study)),
    ]
    if gallery_texts:
        text = "Texts of public data sets, each followed by its releases; changed words are marked."
        parts.append(("Texts before and after", text, lambda: build_gallery(study, gallery_texts)))
    for title, text, content in parts:
        yield Section(title=title, text=text, content=content)


def build_whole_text_section(
    gallery: WholeTextGallery, gallery_texts: Sequence[GalleryText]
) -> Section:
    """Builds the section of whole texts: the same texts, released in three ways."""
    texts = list(dict.fromkeys(entry["original"] for entry in gallery_texts))
    return Section(
        title="Whole texts before and after",
        text="Texts of public data sets, word by word and as a whole at the same epsilon for a "
        "document. A text in place of another was written by somebody else, and is public.",
        content=lambda: gallery.build(texts),
    )


# ---- the head of the page ------------------------------------------------------------------------------


def _build_facts(study: Study, sweeps: str) -> Html:
    cells = list(_list_cells(study))
    rows = [row for cell in cells for row in cell.rows]
    entries = dict.fromkeys(series.entry for series in study.series)
    seeds = {row["seed"] for row in rows}
    environments = [row["circumstances"] for row in rows]
    times = sorted(str(environment["time"])[:16].replace("T", " ") for environment in environments)
    machines = dict.fromkeys(
        f"{environment['machine']}, {environment['cores']} cores, {environment['threads']} "
        f"threads, {environment['device']}, judges in {environment.get('judges', 'float32')}"
        for environment in environments
    )
    versions = [
        f"{name} {version}"
        for environment in environments
        for name, version in environment["versions"].items()
    ]
    facts = [
        ("sweep", sweeps),
        *(
            (f"data: {study.format_title(data)}", _format_data(study, data.digest))
            for data in study.data
        ),
        ("mechanisms", ", ".join(entries)),
        (
            "rows",
            f"{len(rows):,}, of {len(cells):,} cells; seeds {', '.join(map(str, sorted(seeds)))}",
        ),
        ("machine", "; ".join(machines)),
        (
            "versions",
            ", ".join(
                dict.fromkeys(
                    [
                        *(f"Python {environment['python']}" for environment in environments),
                        *versions,
                    ]
                )
            ),
        ),
        ("commit", ", ".join(dict.fromkeys(filter(None, (e["commit"] for e in environments))))),
        ("run", times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"),
    ]
    return build_element(
        "dl",
        join_parts(
            join_parts((build_element("dt", a), build_element("dd", b)), "") for a, b in facts if b
        ),
        class_="facts",
    )


def _format_data(study: Study, digest: str) -> str:
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


def _build_guide(study: Study) -> Html:
    paragraphs = [
        "Every figure is a mean over texts, each averaged over seeds. Bars, and small numbers "
        "after a value, are 95% intervals from 2,000 bootstrap resamples of the texts. All "
        "comparisons use the same resamples, so differences and ratios are paired. The intervals "
        "apply to texts like these, not to other data sets. If all texts have the same value, "
        "the interval is that of the row, or none. A question mark stands for an end that these "
        "texts are too few to give.",
        "In figures with a green corner, the horizontal axis is the success rate of an attack "
        "and the vertical one the utility of releases: the nearer to the corner, the better. "
        "Horizontal lines are baselines: identity changes nothing, mask makes every private word "
        "a placeholder, uniform replaces it with any word of the table, equality does so with "
        "the same one for equal words. A series has one colour and marker on the whole page.",
    ]
    if study.risk is not None:
        meaning = RISK_MEANINGS.get(study.risk.metric, "")
        paragraphs.append(
            f"Equal risk means: {study.risk.title} succeeds equally often{meaning and ': '}{meaning}."
        )
    return join_parts(
        (
            build_element("h2", "How to read this", id="how"),
            *(build_element("p", paragraph) for paragraph in paragraphs),
        )
    )


def _build_contents(sections: Sequence[Section]) -> Html:
    items = (
        build_element("li", build_element("a", section.title, href=f"#{make_slug(section.title)}"))
        for section in sections
    )
    return build_element("nav", build_element("ol", join_parts(items)), aria_label="Contents")


def _list_cells(study: Study) -> Iterator[Cell]:
    return (cell for series in study.series for cell in series.cells)
