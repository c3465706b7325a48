"""The command `bench compare`: something of your own beside what is known.

In: registered names. Out: a folder with a page, rows and JSON.
Not here: what is run (`own_comparison`, `detector_comparison`).
"""

from pathlib import Path
from typing import Annotated

import typer

from textveil.cli import console, progress, say, verb
from textveil_bench.cli.run_options import Folder, Processes, count_processes, note_interrupt

PAGE_FILE, JSON_FILE = "index.html", "comparison.json"


@verb(
    "textveil bench compare krr --quick --output compared",
    "textveil bench compare my-noise exponential --output compared --data ag_news --folder corpora",
    "textveil bench compare bayes --kind attack --quick --output compared",
)
def bench_compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Mechanisms, detectors, attacks or data sets, all of one kind.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", metavar="DIR", help="The folder of the page, the rows and the JSON."
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Few texts, one seed, short audits: minutes.")
    ] = False,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Where a name is of several: mechanism, detector, attack or dataset.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data", metavar="NAME", help="Data sets in place of the packaged ones; repeatable."
        ),
    ] = None,
    budget: Annotated[
        list[float] | None,
        typer.Option(
            "--budget",
            metavar="E",
            help="Epsilons of the mechanisms; else from their claims. Repeatable.",
            show_default=False,
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("-o", metavar="PATH=VALUE", help="An option of the mechanisms; repeatable."),
    ] = None,
    folder: Folder = None,
    processes: Processes = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON, too.")] = False,
) -> None:
    """Put a mechanism, detector, attack or data set of your own beside known ones.

    A mechanism is audited, attacked by all attackers at several budgets and measured, beside noise,
    rankcape, placeholders and random words. An attack is run on releases whose answer is known. The
    exit code is 1 if a claim is violated or cannot be checked, or an attack or data set is wrong.
    """
    from textveil.config import option_sources
    from textveil.files import format_json_line, text_streams
    from textveil_bench import detector_comparison, own_comparison, run

    found_kind = own_comparison.find_kind(names, kind)
    plan = own_comparison.ComparisonPlan(
        kind=found_kind,
        names=tuple(dict.fromkeys(names)),
        quick=quick,
        data=tuple(data or ()),
        budgets=tuple(budget or ()),
        settings=option_sources.parse_assignments(tuple(setting or ()), {}),
    )
    target = Path(output)
    with text_streams.convert_write_errors():
        text_streams.make_folder(target)
    if found_kind == "detector":
        found = detector_comparison.compare(plan)
    else:
        with (
            note_interrupt(output),
            run.open_processes(count_processes(processes)) as executor,
            progress.show_bars() as report,
        ):
            found = own_comparison.compare(
                plan,
                target,
                places=run.Folders(corpora=None if folder is None else Path(folder)),
                executor=executor,
                report=report,
            )
    line = format_json_line(found.to_json())
    for file, text in ((PAGE_FILE, found.page), (JSON_FILE, line)):
        with text_streams.open_output(str(target / file)) as stream:
            stream.write(text)
    if as_json:
        say(line.rstrip("\n"))
    else:
        for fact in found.facts:
            say("  ".join(fact))
        for finding in found.findings:
            say(f"{finding.mechanism}  {finding.check}  {finding.verdict}  {finding.why}")
    console.note(f"Written to {target.name}: {PAGE_FILE}, {JSON_FILE} and rows.")
    if found.has_failed:
        raise typer.Exit(1)
