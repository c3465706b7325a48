"""Fills the tables of the documents from the stored rows: no number in them is typed.

In: benchmarks/rows. Out: the newest row of every measurement, between marks like `<!-- bench decode -->`; what
`textveil bench choose` and `textveil reproduce` found.
Not here: measuring (`run`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import agents_page  # the files beside this one
import papers_page
import prompts_page
import rowfiles
import scoreboard_page
import whole_texts_page

if TYPE_CHECKING:
    from textveil_bench.choose import Choice
    from textveil_bench.compare import Cell, MetricKey, Series

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ROWS = HERE / "rows" / "speed.jsonl"
RATES = HERE / "rows" / "rates.jsonl.gz"
STORES = HERE / "rows" / "stores.jsonl"
EVIDENCE = HERE / "rows" / "evidence.jsonl.gz"
E2E = HERE / "rows" / "e2e.jsonl"
ENGINES = HERE / "rows" / "engines.jsonl"
CODEBOOKS = HERE / "rows" / "codebooks.jsonl"
CHOOSE = HERE / "rows" / "choose"
ATTACKERS = HERE / "rows" / "attackers.jsonl"
REPRODUCED = HERE / "rows" / "reproduce"
DOMAINS = HERE / "rows" / "domains"
PICTURE = ROOT / "docs" / "assets" / "which.svg"
NAMED = ROOT / "src" / "textveil" / "data" / "risk.json"
COLOURS = {"ours": "#1b6ca8", "paper": "#b5651d", "baseline": "#888888"}

DOMAINS_PICTURE = ROOT / "docs" / "assets" / "domains.svg"
GUESSED = "bayes exposed (unigram)"
KEPT = "meaning cosine of texts"
"""Metrics of the picture of domains."""

DOCUMENTS = tuple(
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "<!-- end of " in path.read_text(encoding="utf-8")
)
_MARKED = re.compile(r"(<!-- bench ([a-z0-9]+) -->\n).*?(<!-- end of bench -->)", re.DOTALL)
_EQUAL = re.compile(
    r"(<!-- equal ([^|\n]+)\|([^|\n]+)\|([^|\n]+)\|([^|\n]+?) -->\n).*?(<!-- end of bench -->)",
    re.DOTALL,
)
_RATES = re.compile(r"(<!-- rates ([^|\n]+)\|([^\n]+?) -->\n).*?(<!-- end of bench -->)", re.DOTALL)


def newest(rows: list[dict[str, Any]], part: str) -> list[dict[str, Any]]:
    """Of every measurement of a part ("decode, ..."), the row that was written last, in the order of the first ones."""
    latest = {row["what"]: row for row in rows if row["what"].startswith(f"{part}, ")}
    return list(latest.values())


def table(rows: list[dict[str, Any]], part: str) -> str:
    """The newest rows of a part as a Markdown table, those of rates not among them."""
    lines = ["| what | value | unit | threads | commit |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['what'].removeprefix(f'{part}, ')} | {_spell(row['value'])} | {row['unit']} | {row['threads']} "
        f"| {row['commit'][:7]}{'+' * row['commit'].endswith('+')} |"
        for row in newest(rows, part)
        if "metric" not in row
    ]
    return "\n".join(lines) + "\n"


def matrix(rows: list[dict[str, Any]], part: str, columns: list[str]) -> str:
    """Newest rows of a part as a Markdown table: a line for each release, a column for each metric."""
    found = newest(rows, part)
    lines = [f"| release | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    for release in dict.fromkeys(row["release"] for row in found):
        cells = {row["metric"]: row for row in found if row["release"] == release}
        if not cells.keys() & {*columns}:
            continue
        lines.append(
            f"| {release} | {' | '.join(_rate(cells.get(column)) for column in columns)} |"
        )
    return "\n".join(lines) + "\n"


Curve = list[tuple[float, float]]


def curve(rows: list[dict[str, Any]], series: str, risk: str, metric: str) -> Curve:
    """A risk and a metric at each budget of a series, in the order of its rows."""
    own = {
        name: {row["release"]: row["value"] for row in rows if _of(row) == (series, name)}
        for name in (risk, metric)
    }
    return [
        (own[risk][release], own[metric][release])
        for release in own[risk]
        if release in own[metric]
    ]


def at(points: Curve, level: float) -> float | None:
    """The metric where the risk is at a level, on the line between the two budgets about it; None outside of all."""
    for (low, one), (high, other) in pairwise(sorted(points)):
        if low <= level <= high:
            return one if high == low else one + (other - one) * (level - low) / (high - low)
    return None


def equal(rows: list[dict[str, Any]], part: str, risk: str, levels: list[str], metric: str) -> str:
    """A metric at equal risk as a Markdown table: a line for each series, a column for each level."""
    found = newest(rows, part)
    lines = [f"| {metric} at {risk} of | {' | '.join(levels)} |", "|---" * (1 + len(levels)) + "|"]
    for series in dict.fromkeys(row["series"] for row in found):
        points = curve(found, series, risk, metric)
        values = [at(points, float(level)) for level in levels]
        if any(value is not None for value in values):
            digits = 1 if metric == "true epsilon" else 3
            cells = ["" if value is None else f"{value:.{digits}f}" for value in values]
            lines.append(f"| {series} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def fill(text: str, rows: list[dict[str, Any]]) -> str:
    """A document with the tables of the rows between its marks.

    `<!-- bench decode -->` is a table of a part; `<!-- rates attacks, SST-2 dev | metric | metric -->` a matrix of one;
    `<!-- equal evidence, SST-2 | risk | .05 .10 | metric -->` a metric where the risk is at these levels.
    """
    text = _EQUAL.sub(
        lambda m: (
            f"{m[1]}\n{equal(rows, m[2].strip(), m[3].strip(), m[4].split(), m[5].strip())}\n{m[6]}"
        ),
        text,
    )
    text = _MARKED.sub(lambda match: f"{match[1]}\n{table(rows, match[2])}\n{match[3]}", text)
    return _RATES.sub(
        lambda match: (
            f"{match[1]}\n{matrix(rows, match[2].strip(), _columns(match[3]))}\n{match[4]}"
        ),
        text,
    )


_PAPERS = re.compile(r"(<!-- papers (\w+) -->\n).*?(<!-- end of papers -->)", re.DOTALL)
_KEPT = re.compile(r"(<!-- kept -->\n).*?(<!-- end of kept -->)", re.DOTALL)
_DATA = re.compile(r"(<!-- profile data -->\n).*?(<!-- end of profile data -->)", re.DOTALL)


@cache
def choices(part: str = "") -> "list[Choice]":
    """All mechanisms at equal risk, from the stored rows of `textveil bench choose`, or of its comparison `part`."""
    from textveil_bench import choose

    return choose.build_choices(choose.read(CHOOSE / part))


def kept() -> str:
    """What mechanisms keep at equal risk, as Markdown: a line for each, a column for each data set.

    A data set stands at the lowest level that any mechanism reaches there.
    """
    lowest: dict[str, Choice] = {}
    for part in ("", "pairs", "answers", "tasks"):
        for choice in choices(part):
            if choice.family_scores:
                lowest.setdefault(choice.data, choice)
    cells: dict[str, dict[str, str]] = {}
    for data, choice in lowest.items():
        shown = [each for each in choice.baselines if each.family not in ("identity", "mask")]
        for each in (*shown, *choice.family_scores):
            ends = each.share.interval
            spelled = f"{ends.value:.2f} [{ends.low:.2f}, {ends.high:.2f}]"
            cells.setdefault(each.family, {})[data] = spelled.replace("-0.00", "0.00")
    for data, choice in lowest.items():
        for family in choice.missing:
            cells.setdefault(family, {})[data] = "not reached"
    named = [f"{data} at {choice.level:g}" for data, choice in lowest.items()]
    lines = [f"| mechanism | {' | '.join(named)} |", "|---" * (1 + len(named)) + "|"]
    lines += [
        f"| {family} | {' | '.join(by_data.get(data, '') for data in lowest)} |"
        for family, by_data in cells.items()
    ]
    return "\n".join(lines) + "\n"


def kept_by_data() -> str:
    """What the profile `data` keeps at its own budget, in a sentence, from the rows of `textveil bench choose data`."""
    from textveil_bench import choose

    (choice,) = choose.build_choices(choose.read(CHOOSE / "data"))
    (own,) = choice.family_scores
    floor = next(each for each in choice.baselines if each.family == "mask")
    shares = [each and _rate(asdict(each.interval)) for each in (own.share, own.top_1, floor.top_1)]
    return (
        f"On {choice.texts[0]:,} texts of AG News, at local DP 4 per drawn word, it keeps {shares[0]} of what the "
        f"private words tell a judge of the topic (0: only the words that pass are left; 1: the original). An "
        f"attacker who learned names {shares[1]} of the private words, and {shares[2]} without the drawn words.\n"
    )


def draw(path: Path = PICTURE) -> None:
    """The picture of what is kept at equal risk: a panel for each data set and level."""
    from matplotlib.figure import Figure

    from textveil_bench import pictures

    found = choices()
    lines = max(len(choice.baselines) + len(choice.family_scores) for choice in found)
    rows = -(-len(found) // 2)
    figure = Figure(figsize=(14.0, rows * (1.4 + 0.3 * lines)))
    figure.subplots_adjust(
        left=0.16, right=0.98, wspace=0.45, hspace=0.3, top=1 - 0.06 / rows, bottom=0.12 / rows
    )
    for axis, choice in zip(figure.subplots(rows, 2, squeeze=False).flat, found, strict=False):
        shown = [*choice.baselines, *choice.family_scores]
        for y, each in enumerate(reversed(shown)):
            ends, colour = each.share.interval, COLOURS[each.whose]
            axis.plot([ends.low, ends.high], [y, y], color=colour, linewidth=2)
            axis.plot(ends.value, y, "o", color=colour, markersize=5)
        axis.set_yticks(
            range(len(shown)), [_short(each.series) for each in reversed(shown)], fontsize=9
        )
        axis.axvline(0, color="#cccccc", linewidth=0.8)
        axis.axvline(1, color="#cccccc", linewidth=0.8)
        axis.set_title(
            f"{choice.data}: at most {choice.level:g} named at once", fontsize=11, loc="left"
        )
        axis.set_xlabel("share of the way from what passes to the originals", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    pictures.save(figure, path)


def _short(series: str) -> str:
    """The name of a series, with its options as they are said."""
    series = re.sub(r"^codes, \w+, codes ", "codes ", series)
    return series.replace(", consistent False", "").replace("consistent True", "equal words alike")


_ATTACKERS = re.compile(r"(<!-- attackers -->\n).*?(<!-- end of attackers -->)", re.DOTALL)


def attackers() -> str:
    """What `network` names beside `learned`, as Markdown: a line for each release of texts."""
    found: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rowfiles.read(ATTACKERS):
        key = row["data"], row["release"], row["beam"]
        found.setdefault(key, {})[row["metric"].removesuffix(": top-1")] = row
    lines = ["| release | texts | `learned` | `network` | difference |", "|---|---|---|---|---|"]
    for (data, release, beam), cells in found.items():
        more = cells["network - learned"]
        name = f"{release}, beam {beam}" if beam else release
        values = " | ".join(f"{cells[each]['value']:.3f}" for each in ("learned", "network"))
        lines.append(f"| {name} | {data}, {more['texts']} | {values} | {_rate(more)} |")
    return "\n".join(lines) + "\n"


_DOMAINS = re.compile(r"(<!-- domains ([^\n]+?) -->\n).*?(<!-- end of domains -->)", re.DOTALL)


@cache
def slices() -> "dict[str, list[Series]]":
    """By domain the series of the stored rows of `textveil bench run domains`."""
    from textveil_bench import compare
    from textveil_bench.rows import read

    found: dict[str, list[Series]] = {}
    for each in compare.build_series(read([DOMAINS])):
        found.setdefault(each.data.name, []).append(each)
    return found


def domains(*titles: str) -> str:
    """Metrics of every release in every domain as Markdown, beside each other in a cell.

    Raises:
        ValueError: no row has such a metric.
    """
    from textveil_bench.report.html import format_budget

    values: dict[str, dict[str, str]] = {}
    texts: dict[str, str] = {}
    for domain, each in slices().items():
        for cell in (cell for one in each for cell in one.cells):
            release = ", ".join(
                filter(None, (cell.row["series"], format_budget(cell.row["budget"])))
            )
            metrics = [_titled(cell, title) for title in titles]
            found = [
                metric and f"{cell.estimates[metric].interval.value:.3f}" for metric in metrics
            ]
            values.setdefault(release, {})[domain] = "/".join(each or "" for each in found)
            if all(metrics):
                counts = [
                    (cell.scores[metric].sample.sizes > 0).sum() for metric in metrics if metric
                ]
                texts[domain] = "/".join(map(str, counts))
    if not texts:
        raise ValueError(f"no row of a domain has the metric {' and '.join(titles)!r}")
    lines = [f"| release | {' | '.join(slices())} |", "|---" * (1 + len(slices())) + "|"]
    lines += [
        f"| {release} | {' | '.join(by_domain.get(domain, '') for domain in slices())} |"
        for release, by_domain in values.items()
    ]
    lines += [f"| *texts* | {' | '.join(texts.get(domain, '') for domain in slices())} |"]
    return "\n".join(lines) + "\n"


def lead() -> str:
    """What `document` keeps more than others where it is exposed as at its larger budget, as Markdown."""
    from textveil_bench.estimates import difference

    cells: dict[str, dict[str, str]] = {}
    for domain, each in slices().items():
        (own,) = (one for one in each if one.entry == "document")
        cell = own.cells[-1]
        guessed, kept = _titled(cell, GUESSED), _titled(cell, KEPT)
        assert guessed is not None, "attacked"
        assert kept is not None, "judged"
        level = cell.estimates[guessed].value
        cells.setdefault("*exposed*", {})[domain] = f"{level:.3f}"
        for one in (one for one in each if one.whose != "baseline" and one is not own):
            pair = (
                own.estimate_at_risk(guessed, kept, level),
                one.estimate_at_risk(guessed, kept, level),
            )
            ends = None if pair[0] is None or pair[1] is None else difference(*pair).interval
            told = (
                "not reached"
                if ends is None
                else f"{ends.value:+.3f} ({ends.low:+.3f} to {ends.high:+.3f})"
            )
            cells.setdefault(one.name, {})[domain] = told
    lines = [f"| `document` less | {' | '.join(slices())} |", "|---" * (1 + len(slices())) + "|"]
    lines += [
        f"| {name} | {' | '.join(by_domain.get(domain, '') for domain in slices())} |"
        for name, by_domain in cells.items()
    ]
    return "\n".join(lines) + "\n"


def draw_domains(path: Path = DOMAINS_PICTURE) -> None:
    """The picture of what is kept and guessed in every domain, a curve for each mechanism."""
    from textveil_bench import pictures

    panels = []
    for domain, each in slices().items():
        curves: dict[str, Curve] = {}
        for one in (one for one in each if one.whose != "baseline"):
            named = [(cell, _titled(cell, GUESSED), _titled(cell, KEPT)) for cell in one.cells]
            curves[one.name] = sorted(
                (cell.estimates[guessed].value, cell.estimates[kept].value)
                for cell, guessed, kept in named
                if guessed is not None and kept is not None
            )
        panels.append((f"{domain}: {GUESSED}", curves))
    figure = pictures.draw_curves(
        panels, title="What is kept and guessed, by domain", scale=KEPT, columns=2
    )
    pictures.save(figure, path)


def _titled(cell: "Cell", title: str) -> "MetricKey | None":
    """A metric by its title; None where the cell has no such metric."""
    return next((metric for metric in cell.scores if metric.title == title), None)


_PROMPTS = re.compile(r"(<!-- prompts ([a-z]+) -->\n).*?(<!-- end of prompts -->)", re.DOTALL)
_SCOREBOARD = re.compile(
    r"(<!-- scoreboard ([a-z_]+) -->\n).*?(<!-- end of scoreboard -->)", re.DOTALL
)
_WHOLE_TEXTS = re.compile(
    r"(<!-- rows: whole texts(?:, ([a-z]+))? -->\n).*?(<!-- end of rows -->)", re.DOTALL
)
_REAL_AGENTS = re.compile(r"(<!-- real agents -->\n).*?(<!-- end of real agents -->)", re.DOTALL)
_AGENTS = re.compile(r"(<!-- agents -->\n).*?(<!-- end of agents -->)", re.DOTALL)
_COSTS = re.compile(r"(<!-- costs -->\n).*?(<!-- end of costs -->)", re.DOTALL)
_LEAD = re.compile(r"(<!-- lead -->\n).*?(<!-- end of lead -->)", re.DOTALL)
_REPRODUCED = re.compile(r"(<!-- reproduced -->\n).*?(<!-- end of reproduced -->)", re.DOTALL)


def reproduced(folder: Path = REPRODUCED) -> str:
    """What became of the papers' claims, as Markdown, from the stored documents of `textveil reproduce`."""
    from textveil_bench.reproduce.document import find_repeated_claims

    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"), key=_numbered)
    ]
    again = find_repeated_claims(found)
    return "\n".join([*_cost(folder), *_counts(found, again), *_claims(found, again)])


def _cost(folder: Path) -> Iterator[str]:
    """What the rows took; a cell that stands in several sweeps was computed once."""
    from textveil_bench.rows import read

    seconds = {(row["key"], row["seed"]): sum(row["seconds"].values()) for row in read([folder])}
    yield from (
        f"The {len(seconds):,} cells took {sum(seconds.values()) / 60:.0f} minutes, one after the other.",
        "",
    )


ANSWERS = "holds", "cannot be told", "does not hold", "not tested"

Again = Mapping[tuple[str, int], str]
"""Claims that do not count, by target and position: the target that has made the same comparison before."""


def _counts(found: list[dict[str, Any]], again: Again) -> Iterator[str]:
    """How many comparisons of each paper came out how, those of ours beside them on a line of their own."""
    from textveil_bench.reproduce.document import OURS_PREFIX

    papers: dict[str, list[str]] = {}
    for each in found:
        for i, claim in enumerate(each["claims"]):
            if (each["target"], i) not in again:
                whose = (
                    "ours, beside them"
                    if claim["claim"].startswith(OURS_PREFIX)
                    else "of the paper"
                )
                papers.setdefault(f"{each['paper']} | {whose}", []).append(claim["answer"])
    yield from (
        f"| paper | comparisons | {' | '.join(ANSWERS)} |",
        "|---" * (2 + len(ANSWERS)) + "|",
    )
    for paper in sorted(papers):
        yield f"| {paper} | {' | '.join(str(papers[paper].count(answer)) for answer in ANSWERS)} |"
    yield ""


def _numbered(path: Path) -> list[str | int]:
    """The order of names with numbers: figure 9 before figure 10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.stem)]


def _claims(found: list[dict[str, Any]], again: Again) -> Iterator[str]:
    """A table for each paper: a line for each claim of a figure or table, with what became of it on each data set.

    A claim whose comparison counts elsewhere is left out.
    """
    for paper in dict.fromkeys(each["paper"] for each in found if each["claims"]):
        yield from (f"### {paper}", "", "| target | claim | what we found |", "|---|---|---|")
        for each in (each for each in found if each["paper"] == paper):
            by_claim: dict[str, list[dict[str, Any]]] = {}
            for i, claim in enumerate(each["claims"]):
                if (each["target"], i) not in again:
                    by_claim.setdefault(claim["claim"], []).append(claim)
            for claim, own in by_claim.items():
                yield f"| `{each['target']}` | {_cell(claim)} | {_cell(_became(own))} |"
        yield ""


def _became(claims: list[dict[str, Any]]) -> str:
    """The answers of a claim, each with its data sets and mean differences; all that is said where it does not hold."""
    told = []
    for answer in ANSWERS:
        places = []
        for each in (each for each in claims if each["answer"] == answer):
            means = " / ".join(f"{gap['value']:+.3f}" for gap in each["gaps"])
            says = each["says"].replace("; ", ", ") if answer == "does not hold" else means
            places.append(f"{_data(each['data'])} {says}".strip())
        if places:
            told.append(f"**{answer}**: {' and '.join(places)}")
    return "; ".join(told)


def _data(name: str) -> str:
    """A data set as the page names it: `sst2, Gemma 3 270M` is sst2 judged by Gemma."""
    return name.replace(", Gemma 3 270M", " by Gemma")


def _cell(text: str) -> str:
    """Text as a cell of a Markdown table."""
    return text.replace("|", "\\|")


def compared(text: str) -> str:
    """A document with what long runs found between its marks."""
    for mark, made in (
        (_AGENTS, agents_page.write_table),
        (_COSTS, agents_page.write_costs),
        (_REAL_AGENTS, agents_page.write_real_table),
        (_DATA, kept_by_data),
        (_LEAD, lead),
        (_REPRODUCED, reproduced),
        (_KEPT, kept),
    ):
        if mark.search(text):
            filling = made()
            text = mark.sub(
                lambda match, filling=filling: f"{match[1]}\n{filling}\n{match[2]}", text
            )
    text = _PROMPTS.sub(
        lambda match: f"{match[1]}\n{prompts_page.TABLES[match[2]]()}\n\n{match[3]}", text
    )
    text = _SCOREBOARD.sub(
        lambda match: f"{match[1]}\n{scoreboard_page.TABLES[match[2]]()}\n\n{match[3]}", text
    )
    text = _WHOLE_TEXTS.sub(
        lambda match: f"{match[1]}\n{whole_texts_page.TABLES[match[2]]()}\n{match[3]}", text
    )
    text = _ATTACKERS.sub(lambda match: f"{match[1]}\n{attackers()}\n{match[2]}", text)
    text = _PAPERS.sub(
        lambda match: f"{match[1]}\n{papers_page.render(match[2])}\n{match[3]}", text
    )
    return _DOMAINS.sub(
        lambda match: f"{match[1]}\n{domains(*_columns(match[2]))}\n{match[3]}", text
    )


def stored() -> list[dict[str, Any]]:
    """All rows, the oldest first."""
    files = ROWS, RATES, STORES, EVIDENCE, E2E, ENGINES, CODEBOOKS
    rows = [row for path in files for row in rowfiles.read(path)]
    last = {
        row["series"]: row["run"] for row in rows if "run" in row
    }  # budgets that are no longer run are left out
    return [row for row in rows if "run" not in row or row["run"] == last[row["series"]]]


def named() -> str:
    """What `textveil risk` says under `document` of one who has public texts, as JSON, from the newest rows."""
    rows = [row for row in newest(stored(), "risk") if row["public"]]
    (configuration,) = {json.dumps(row["configuration"]) for row in rows}
    measured = [
        f"about {100 * row['value']:.0f} of 100 private words of {row['data']}" for row in rows
    ]
    return (
        json.dumps({"configuration": json.loads(configuration), "measured": measured}, indent=1)
        + "\n"
    )


def write() -> None:
    """Fills all documents, and draws what stands in them."""
    write_documents()
    NAMED.write_text(named(), encoding="utf-8")
    draw()
    draw_domains()


def write_documents() -> None:
    """Fills all documents."""
    for document in DOCUMENTS:
        before = document.read_text(encoding="utf-8")
        after = fill(before, stored())
        after = compared(after)
        if after != before:
            document.write_text(after, encoding="utf-8")


def _columns(typed: str) -> list[str]:
    return [column.strip() for column in typed.split("|")]


def _of(row: dict[str, Any]) -> tuple[str, str]:
    return row["series"], row["metric"]


def _rate(row: dict[str, Any] | None) -> str:
    """A rate with its interval."""
    if row is None:
        return ""
    digits = 3 if abs(row["value"]) < 10 else 1 if abs(row["value"]) < 1000 else 0
    ends = (
        ""
        if row["low"] is None or row["low"] == row["high"]
        else f" ({row['low']:.{digits}f} to {row['high']:.{digits}f})"
    )
    return f"{row['value']:.{digits}f}{ends}"


def _spell(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


if __name__ == "__main__":
    write()
