"""The commands of `textveil bench`: sweeps and their rows.

In: a sweep as YAML, a folder. Out: rows in the folder, a table of the headlines; no text.
Not here: the runs (`textveil_bench.run`), and the other commands (the other modules of this
package).
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from textveil.cli import console, group, progress, say, verb
from textveil.cli.decorators import add
from textveil_bench.cli.compare import bench_compare
from textveil_bench.cli.run_options import Folder as Folder
from textveil_bench.cli.run_options import Processes as Processes
from textveil_bench.cli.run_options import count_processes
from textveil_bench.cli.run_options import note_interrupt as note_interrupt

PANEL = "Bench"
"""The heading of the bench's commands in `textveil --help`."""

bench = group(
    "Compare mechanisms on data sets: usefulness against risk.",
    "textveil bench run quick --output runs/quick",
    "textveil report runs/quick --output quick.html",
    panel=PANEL,
)


Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="Take only N examples of each data set.")
]
Seeds = Annotated[
    str | None, typer.Option("--seeds", metavar="N,...", help="Seeds in place of the sweep's.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME",
        help="Run only this data set, or this entry of the sweep; repeatable.",
    ),
]


@verb(
    "textveil bench run quick --output runs/quick --dry-run",
    "textveil bench run sweep --output runs/sweep --folder corpora --processes 2",
    "textveil bench run mine.yaml --output runs/mine --limit 100 --seeds 1",
    on=bench,
    name="run",
)
def bench_run(
    sweep: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="A sweep: a YAML file, or the name of a packaged one.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="The folder of the rows. Existing rows are reused. Required unless --dry-run.",
        ),
    ] = None,
    folder: Folder = None,
    processes: Processes = None,
    limit: Limit = None,
    seeds: Seeds = None,
    only: Only = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the planned runs, and run nothing.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print all rows as JSON, one per line, without figures of single texts."
        ),
    ] = False,
) -> None:
    """Run a sweep: all mechanisms, budgets and seeds on all data sets.

    Rows are written during the run. An interrupted run continues from there, and rows of other
    sweeps in the same folder are reused.
    """
    from textveil.errors import ConfigError
    from textveil_bench import run
    from textveil_bench.spec import Sweep

    selection = Sweep.read(sweep).select_part(
        limit=limit, seeds=parse_seeds(seeds), only=only or ()
    )
    places = run.Folders(corpora=None if folder is None else Path(folder))
    if dry_run:
        for message in run.format_preview(
            selection, None if output is None else Path(output), places
        ):
            say(message)
        return
    if output is None:
        raise ConfigError("give --output DIR, the folder for the rows, or --dry-run")
    with (
        note_interrupt(output),
        run.open_processes(count_processes(processes)) as executor,
        progress.show_bars() as report,
    ):
        rows = run.run(selection, Path(output), places=places, executor=executor, report=report)
    if as_json:
        print_score_rows(rows)
        return
    _show(rows)
    console.note(
        console.wrap(
            f"{len(rows):,} row{'s are' if len(rows) != 1 else ' is'} in {Path(output).name}. "
            "`textveil report` turns them into a page."
        )
    )


@verb(
    "textveil bench choose --output runs/choose --folder corpora",
    "textveil bench choose quick --output runs/choose-quick --costs",
    (
        "textveil bench choose --output runs/choose --only ag_news --only noise --only rankcape "
        "--processes 2"
    ),
    "textveil bench choose tasks --output runs/tasks --only subjects --level 0.2",
    "textveil bench choose texts --output runs/texts --only ag_news --library news.library",
    "textveil bench choose mine.yaml --output runs/mine --json",
    on=bench,
    name="choose",
)
def bench_choose(
    comparison: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="A comparison whose budgets are `risk`: a YAML file, or a packaged one.",
        ),
    ] = "choose",
    output: Annotated[
        str,
        typer.Option(
            "--output",
            metavar="DIR",
            help="The folder of the rows and of the books. Existing rows are reused.",
        ),
    ] = "choose",
    folder: Folder = None,
    processes: Processes = None,
    only: Only = None,
    level: Annotated[
        list[float] | None,
        typer.Option(
            "--level",
            metavar="SHARE",
            help="Largest share of private words guessed, in place of the comparison's own levels; repeatable.",
            show_default=False,
        ),
    ] = None,
    all_public: Annotated[
        bool,
        typer.Option(
            "--all-public",
            help="Also attack the results by an attacker trained on all public texts.",
        ),
    ] = False,
    library: Annotated[
        str | None,
        typer.Option(
            "--library",
            metavar="FILE",
            help="Public texts for whole texts; else a library is made from the data set's shelf.",
            show_default=False,
        ),
    ] = None,
    costs: Annotated[
        bool, typer.Option("--costs", help="Also print how long each row took.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Compare mechanisms with their best options, at equal success of an attacker.

    The attacker is trained: it knows the mechanism, and has public texts of the same kind. Budgets,
    options and judges are chosen on some test texts; the results are measured on others. `choose`
    is the whole comparison, and takes hours; `data` judges the profile of that name at its own
    budget; `texts` compares words with whole texts, each with the unit that its promise is about;
    `quick` takes minutes.
    """
    from textveil.files import format_json_line
    from textveil_bench import choose, run

    selection = choose.Comparison.read(comparison).select_part(only or (), level or ())
    with (
        note_interrupt(output),
        run.open_processes(count_processes(processes)) as executor,
        progress.show_bars() as report,
    ):
        rows = choose.run(
            selection,
            Path(output),
            places=run.Folders(corpora=None if folder is None else Path(folder)),
            executor=executor,
            all_public=all_public,
            library=None if library is None else Path(library),
            report=report,
        )
    choices = choose.build_choices(rows)
    if as_json:
        found = {
            "choices": [choice.to_json() for choice in choices],
            "units": choose.collect_units(rows),
        }
        say(format_json_line(found).rstrip("\n"))
        return
    for line in (
        *choose.format_markdown(choices),
        *choose.format_units(rows),
        *choose.format_all_public(rows),
    ):
        say(line)
    for line in choose.format_costs(rows) if costs else ():
        say(line)


@verb(
    "textveil bench export runs/sweep --output scores.parquet",
    "textveil bench export runs/sweep runs/other --output scores.csv",
    "textveil bench export runs/sweep --output tables.tex",
    on=bench,
    name="export",
)
def bench_export(
    paths: Annotated[
        list[str], typer.Argument(metavar="DIR|FILE...", help="Folders of runs, or files of rows.")
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            metavar="FILE",
            help="The table: a .parquet, .csv or .jsonl, or a .tex with tables for a paper.",
        ),
    ],
    format_name: Annotated[
        Literal["parquet", "csv", "jsonl", "latex"] | None,
        typer.Option("--format", help="The format, where the name does not say it."),
    ] = None,
) -> None:
    """Write rows as one table, with a line for each score, or as tables for a paper.

    In LaTeX each data set has a table of means with intervals, with a line for each series and
    budget; it needs the package booktabs.
    """
    from textveil_bench import rows

    if format_name == "latex" or (format_name is None and output.endswith(".tex")):
        from textveil.files import text_streams
        from textveil_bench.compare import build_series
        from textveil_bench.report.latex import render_latex

        tables = render_latex(build_series(rows.read(map(Path, paths))))
        with text_streams.open_output(output) as out:
            out.write(tables)
        return
    count = rows.write_table(
        rows.read(map(Path, paths)), Path(output), format_name and f".{format_name}"
    )
    console.note(f"{count:,} lines")


@verb(
    "textveil bench fantasy --count 100 --seed 1 --output fantasy.jsonl",
    "textveil bench fantasy --count 20 --upstream http://localhost:8000/v1 --model NAME",
    on=bench,
    name="fantasy",
)
def bench_fantasy(
    count: Annotated[
        int,
        typer.Option(
            "--count", metavar="N", help="Number of paragraphs, with about five questions each."
        ),
    ] = 20,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", help="Seed; the same seed gives the same questions."),
    ] = 0,
    upstream: Annotated[
        str | None,
        typer.Option(
            "--upstream",
            metavar="URL",
            help="The base URL of a language model that generates them instead.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model's name at that API.")
    ] = None,
    prompts: Annotated[
        str | None,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help="Your own wording: the entry generation of a YAML file of prompts.",
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE", help="Write there, as JSON lines.")
    ] = None,
) -> None:
    """Generate questions about invented facts, which no model can know, with answers.

    They come from a grammar, or from a language model: then only questions are kept whose answers
    occur in the paragraph.
    """
    from textveil.errors import ConfigError
    from textveil.files import text_streams
    from textveil.models import Endpoint, Prompts
    from textveil_bench import fantasy

    if (upstream is None) != (model is None):
        raise ConfigError("give both --upstream and --model, or neither")
    passages = fantasy.generate(count, seed=seed)
    if upstream is not None and model is not None:
        prompt = None if prompts is None else Prompts.read(Path(prompts)).find("generation")
        if prompts is not None and prompt is None:
            raise ConfigError("--prompts must have an entry generation, and this file lacks it")
        reply = fantasy.ask(Endpoint(url=upstream, model=model), count, prompt=prompt)
        console.note(console.wrap(str(reply)))
        passages = iter(reply.passages)
    lines = list(fantasy.format_lines(passages))
    with text_streams.open_output(output) as out:
        for line in lines:
            out.write(line)
    if output is not None:
        console.note(f"{len(lines):,} line{'s' * (len(lines) != 1)}")


def parse_seeds(typed: str | None) -> tuple[int, ...] | None:
    """Parses the seeds of --seeds; None for the sweep's own."""
    from textveil.errors import ConfigError

    if typed is None:
        return None
    try:
        return tuple(int(part) for part in typed.split(","))
    except ValueError:
        raise ConfigError(
            "--seeds must be whole numbers separated by commas, such as 1,2,3"
        ) from None


def print_score_rows(rows: "list[dict[str, Any]]") -> None:
    """Prints rows as JSON, a line for each score, without figures of single texts."""
    from textveil.files import format_json_line
    from textveil_bench.rows import build_score_rows, convert_infinity

    for line in build_score_rows(rows):
        say(format_json_line(convert_infinity(line)).rstrip("\n"))


def _show(rows: list[dict[str, Any]]) -> None:
    """Prints the headlines, as means over seeds."""
    from textveil_bench.headlines import format_headlines

    for line in format_headlines(rows):
        say(line)


@verb(
    "textveil bench task-words sst2 --count 1000 --output words.yaml",
    "textveil bench task-words reviews.csv --field text --label stars --output words.yaml",
    (
        "textveil privatize letter.txt --config words.yaml --mechanism rankcape -o "
        "groups.budgets=0,0,1,0 -o groups.base=8"
    ),
    on=bench,
    name="task-words",
)
def bench_task_words(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", help="A data set, or a file of public texts with labels."
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", metavar="FILE", help="The configuration to write, as YAML.")
    ],
    count: Annotated[
        int, typer.Option("--count", metavar="N", help="Maximum number of words.")
    ] = 1000,
    field: Annotated[
        str,
        typer.Option(
            "--field", "--column", metavar="NAME", help="The field of a file that has the texts."
        ),
    ] = "text",
    label: Annotated[
        str,
        typer.Option("--label", metavar="NAME", help="The field of a file that has the labels."),
    ] = "label",
    folder: Folder = None,
) -> None:
    """List the words that predict a task's labels, as important words.

    The texts must be public, and must not be privatized later, because the list reveals something
    about them. With such a list (protect.importance=list) the group of a word depends on the word
    alone.
    """
    import yaml

    from textveil.files import text_streams
    from textveil_bench.data import is_file, load
    from textveil_bench.task_words import learn

    is_local_file = is_file(name)
    columns: dict[str, Any] = {"fields": (field,), "label": label} if is_local_file else {}
    split = "test" if is_local_file and "{split}" not in name else "train"
    words = learn(load(name, split=split, folder=folder, **columns), count)
    with text_streams.open_output(output) as out:
        out.write(
            yaml.safe_dump(
                {"protect": {"importance": "list", "important": list(words)}}, allow_unicode=True
            )
        )
    console.note(f"{len(words):,} word{'s' * (len(words) != 1)}")


add(bench, bench_compare, "compare")
