"""The verb `reproduce`.

In: the name of a figure or table of a paper. Out: our values beside the published ones, and which claims hold.
Not here: the figures and tables, and how they are run (`textveil_bench.reproduce`).
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli import evaluation, note, progress, say, verb
from textveil.errors import ConfigError, InputError
from textveil.files import streams
from textveil_bench.cli import rates
from textveil_bench.cli.bench import PANEL, Folder, Processes, kept

if TYPE_CHECKING:
    from rich.table import Table

    from textveil_bench.reproduce.run import Reproduced

ALL = "all"
OUTPUT = "reproduced"
INDEX = "index.html"

Plain = Mapping[str, Any]


@verb(
    "textveil reproduce",
    "textveil reproduce stencil-fig3 --quick",
    "textveil reproduce stamp-table1 --folder corpora --processes 2 --output runs/stamp",
    "textveil reproduce all --folder corpora --dry-run",
    "textveil reproduce all --rows benchmarks/rows/reproduce --output pages",
    "textveil reproduce stencil-fig4 --upstream http://localhost:8000/v1 --model NAME",
    panel=PANEL,
)
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|all",
            help="A figure or table; without it they are listed.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use tiny packaged data: minutes.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Use all of the data: hours.")] = False,
    hub: Annotated[
        bool,
        typer.Option("--hub", help="Use the paper's own models and tables; needs access to a hub."),
    ] = False,
    folder: Folder = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            metavar="DIR",
            help="The folder of rows and results. Existing rows are reused.",
        ),
    ] = OUTPUT,
    processes: Processes = None,
    stored: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="DIR",
            help="Show the results in the folder of an earlier run: nothing is run, no data is needed.",
        ),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            "--upstream",
            metavar="URL",
            help="The base URL of a language model, for panels that need one.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model's name at that API.")
    ] = None,
    generative: Annotated[
        bool,
        typer.Option(
            "--generative",
            help="Run the panels of a small language model, too; needs textveil-bench[generative].",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be run, and run nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each figure or table.")
    ] = False,
) -> None:
    """Reproduce a figure or table of a paper.

    Our values stand beside the published ones, and every claim of the paper is checked on ours. Without a hub,
    substitutes stand in for the paper's models and data; the results say what differs. Panels that need a language
    model are run only if you name one. Rows are kept in the folder of --output, and an interrupted run continues
    there.
    """
    from textveil_bench.reproduce import targets

    if name is None:
        for each in targets.names():
            say(f"{each:14}{targets.load(each).title}")
        return
    if stored is not None and (dry_run or folder is not None):
        raise ConfigError(
            "--rows shows earlier results and runs nothing: leave out --dry-run and --folder"
        )
    if stored is not None and not Path(stored).is_dir():
        raise InputError("--rows must be the folder of an earlier run, and there is no such folder")
    if quick and full:
        raise ConfigError("give --quick or --full, not both")
    if (upstream is None) != (model is None):
        raise ConfigError("give both --upstream and --model, or neither")
    chosen = [targets.load(each) for each in (targets.names() if name == ALL else [name])]
    from textveil_bench.report import overview
    from textveil_bench.reproduce.document import document
    from textveil_bench.reproduce.page import ShownTarget, drawings, index
    from textveil_bench.reproduce.run import How, Stored, named, preview, reproduce
    from textveil_bench.reproduce.verdict import over, risk
    from textveil_bench.run import Folders
    from textveil_bench.run import processes as workers

    with workers(processes or os.cpu_count() or 1) as executor:
        how = How(
            scale="quick" if quick else "full" if full else "usual",
            hub=hub,
            endpoint=None if upstream is None else {"url": upstream, "model": model},
            generative=generative,
            places=Folders(corpora=None if folder is None else Path(folder)),
            executor=executor,
            stored=None if stored is None else Stored.read(Path(stored)),
        )
        shown: list[ShownTarget] = []
        keys: set[str] = set()
        for target in chosen:
            if dry_run:
                for line in preview(target, Path(output), how):
                    say(line)
                continue
            with kept(output), progress.bars() as report:
                made = reproduce(target, Path(output), how, report=report)
            found = document(made)
            place = Path(output) / named(target, how)
            evaluation.write_json(found, f"{place}.json")
            _page(made, found, place)
            own = {row["key"] for row in made.rows}
            drawn = over(target, made.series)
            if made.series and (drawn or not own <= keys):  # else an earlier target has shown them
                groups = overview(made.series, risk(target, made.series), drawn)
            else:
                groups = drawings(found["tables"])
            keys |= own
            shown.append(ShownTarget(found=found, page=f"{place.name}.html", groups=groups))
            if as_json:
                say(json.dumps(found, ensure_ascii=False, allow_nan=False))
            else:
                _show(found)
                note(f"Written to {Path(output).name}: {place.name}.json, {place.name}.html.")
    if len(shown) > 1:
        with streams.output(str(Path(output) / INDEX)) as written:
            written.write(index(shown))
        note(f"Written to {Path(output).name}: {INDEX}, which leads to the page of each.")


def _page(made: "Reproduced", found: Plain, place: Path) -> None:
    """What came of a target, and the figures of its rows, as a page beside them."""
    from textveil_bench.report import compose, report
    from textveil_bench.reproduce.page import sections
    from textveil_bench.reproduce.verdict import over, risk
    from textveil_bench.rows import gallery

    keys = {row["key"] for row in made.rows}
    shown = [each for each in gallery([place.parent]) if each.get("key") in keys]
    with progress.bars(unit=" figures") as told:
        title, beside = made.target.title, list(sections(found))
        by, drawn = risk(made.target, made.series), over(made.target, made.series)
        page = (
            report(made.series, shown, title=title, beside=beside, by=by, over=drawn, progress=told)
            if made.series
            else compose(title, beside)
        )
    with streams.output(f"{place}.html") as written:
        written.write(page)


# ---- on a terminal -------------------------------------------------------------------------------------


def _show(found: Plain) -> None:
    say(f"{found['title']}\n{found['paper']}. {found['shows'].strip()}")
    if found["scale"] == "quick":
        from textveil_bench.reproduce.page import QUICK

        say(f"\n{QUICK}")
    for data in dict.fromkeys(cell["data"] for cell in found["cells"]):
        own = [cell for cell in found["cells"] if cell["data"] == data]
        say(
            f"\n{data}: {own[0]['examples']:,} examples, seeds {', '.join(map(str, own[-1]['seeds']))}"
        )
        rates.draw(_cells(own))
    for table in found["tables"]:
        say(f"\n{table['title']}")
        rates.draw(_plain_table(table["columns"], table["rows"]))
        _sentences("", table["notes"])
    ours = [each for each in found["published"] if each["value"] is not None]
    if ours:
        say("\nBeside the paper")
        rates.draw(_published(ours))
    if missing := len(found["published"]) - len(ours):
        say(
            f"\n{missing} of {len(found['published'])} published values have no value of ours beside them."
        )
    if found["claims"]:
        say("\nThe paper's claims in our rows (first less second, 95% interval)")
        rates.draw(_claims(found["claims"]))
    _sentences("Not run", [f"{panel}: not run: {why}" for panel, why in found["not_run"].items()])
    _sentences("What differs from the paper", found["differs"])
    _sentences("Where the paper is wrong, or cannot be right as it stands", found["contradicts"])


def _cells(cells: Sequence[Plain]) -> "Table":
    from textveil_bench.reproduce.page import plainly

    names = list(dict.fromkeys(figure["metric"] for cell in cells for figure in cell["figures"]))
    table = _table(["series", "budget", *names, "epsilon", "local DP"], words=1)
    for cell in cells:
        values = {figure["metric"]: figure for figure in cell["figures"]}
        table.add_row(
            cell["series"],
            plainly(cell["budget"]),
            *(_interval(values[name]) if name in values else "" for name in names),
            plainly(cell["epsilon"]["per_word"]),
            plainly(cell["epsilon"]["ldp"]),
        )
    return table


def _published(values: Iterable[Plain]) -> "Table":
    table = _table(["ours", "metric", "source", "paper", "ours", ""], words=3)
    for each in values:
        own = "" if each["value"] is None else _interval(each)
        table.add_row(
            each["series"],
            each["metric"],
            each["source"],
            rates.number(each["published"]),
            own,
            each["says"],
        )
    return table


def _claims(claims: Iterable[Plain]) -> "Table":
    table = _table(["", "data", "claim", "source", "what our rows say"], words=5)
    for each in claims:
        table.add_row(each["answer"], each["data"], each["claim"], each["source"], each["says"])
    return table


def _plain_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
    from textveil_bench.reproduce.page import plainly

    table = _table(columns, words=1)
    for row in rows:
        table.add_row(*(plainly(value) for value in row))
    return table


def _table(columns: Sequence[str], *, words: int) -> "Table":
    """A table whose first columns are words, and whose others are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(
            column, overflow="fold", justify="left" if i < words else "right", no_wrap=i >= words
        )
    return table


def _interval(figure: Plain) -> str:
    ends = (figure["low"], figure["high"])
    if None in ends or ends[0] == ends[1]:
        return rates.number(figure["value"])
    return f"{rates.number(figure['value'])} ({rates.number(ends[0])} to {rates.number(ends[1])})"


def _sentences(title: str, sentences: Sequence[str]) -> None:
    if sentences:
        say(("\n" + title if title else "") + "".join(f"\n- {each}" for each in sentences))
