"""The command line: verbs only.

In: arguments. Out: text or JSON on standard output, statements on standard error.
Not here: reading and writing (`files`), errors and exit codes (`shell`), options (`config`), the `demo`.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from textveil import files, formats, shell
from textveil.errors import ConfigError, UnknownName
from textveil.shell import say

if TYPE_CHECKING:
    from rich.progress import TaskID

    from textveil import corpus
    from textveil.config import Config
    from textveil.guarantee import Guarantee
    from textveil.pipeline import Result

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # the commands below inherit it
)
show_app = typer.Typer(rich_markup_mode=None)
app.add_typer(show_app, name="show")

PROGRESS_FROM = 2_000
"""Texts after which progress is drawn, if standard error is a terminal."""

KEPT_STATEMENTS = 1_000
"""Statements that are kept one by one; more are summed up on the way, so that memory hardly grows."""

Mechanism = Annotated[str | None, typer.Option("--mechanism", metavar="NAME", help="See `textveil list mechanisms`.")]
Epsilon = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="E", help="Promised bound per word, per unit of the statement's distance."),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        metavar="PATH=VALUE",
        help="Any option, such as mechanism.L=5; repeatable. `textveil show config` prints the paths, "
        "`textveil explain NAME` a mechanism's own options.",
    ),
]
Profile = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="See `textveil list profiles`.")]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="YAML, as `textveil show config` prints it."),
]
TableName = Annotated[str | None, typer.Option("--table", metavar="NAME", help="See `textveil list tables`.")]
Seed = Annotated[
    str | None,
    typer.Option("--seed", metavar="N", help="Repeatable draws: no privacy against anyone who knows the seed."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per text and line.")]


def _examples(*lines: str) -> str:
    """The end of a command's help. The backspace keeps its lines from being filled."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


# ---- verbs ---------------------------------------------------------------------------------------


@app.callback(
    invoke_without_command=True,
    epilog=_examples(
        "textveil demo",
        'textveil privatize "Anna owes the bank nine hundred pounds" --mechanism noise --epsilon 60',
        "textveil explain noise",
    ),
)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """Privatize text word by word with metric differential privacy, and state what is guaranteed."""
    if version:
        from textveil import __version__

        say(f"textveil {__version__}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


@app.command(
    epilog=_examples(
        'textveil privatize "Anna owes the bank nine hundred pounds" --mechanism noise --epsilon 60',
        "printf 'one text\\nanother text\\n' | textveil privatize - --epsilon 60 --json",
        'textveil privatize "Anna is ill" --mechanism d-chi-stencil -o mechanism.L=4 -o mechanism.eta=100',
        'textveil privatize "Anna is ill" --profile paper-noise --explain',
        "textveil privatize letters.jsonl notes.csv --field body --epsilon 60 --output released/",
        "textveil privatize letters.jsonl notes.csv --field body --epsilon 60 --output released/ --resume",
    ),
)
def privatize(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT|-|FILE",
            help="A text, an existing file, or - for standard input; with --output FOLDER one or more files.",
            show_default=False,
        ),
    ] = None,
    mechanism: Mechanism = None,
    epsilon: Epsilon = None,
    setting: Setting = None,
    profile: Profile = None,
    config: ConfigFile = None,
    table: TableName = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="PATH",
            help="Write there, all or nothing. A folder, or a name that ends in /, takes whole files (.txt, .jsonl, "
            ".csv, .tsv, .parquet, and .gz of them but the last), each under its own name with a statement beside it.",
        ),
    ] = None,
    with_original: Annotated[
        bool,
        typer.Option(
            "--with-original",
            help="Show the originals too, which are private: the original, a tab and the release on one line (tabs and "
            "line ends inside become spaces), two columns on a terminal, with --json the field `original`.",
        ),
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print the whole statement.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Take all of the input, or of each .txt, as one text.")
    ] = False,
    field: Annotated[
        str | None,
        typer.Option(
            "--field",
            "--column",
            metavar="NAME",
            help="Files into a folder: where the texts are. Left out, it is `text`, or the only one with strings.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", help="Files into a folder: how many processes draw; 0 is one per core."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Files into a folder: go on with an interrupted run; what is done is kept."),
    ] = False,
) -> None:
    """Privatize a text, every line of a file or of standard input, or whole files into a folder.

    The privatized text goes to standard output, the statement to standard error or, with --json, into the
    object. With a folder as --output, the other fields of a file are copied as they are.
    """
    arguments = text or []
    into = formats.into_folder(arguments, output, asked=field is not None or jobs is not None or resume)
    if into is not None:
        if as_json or with_original:
            raise ConfigError("--json and --with-original are for texts; files into a folder have statements of theirs")
        resolved = _resolve(mechanism, epsilon, setting, profile, config, table, seed)
        _privatize_files(arguments, into, resolved, field, whole, 1 if jobs is None else jobs, resume, explain)
        return
    only = arguments[0] if arguments else None
    files.require_input(only)  # before the options, because a text is what a newcomer forgets
    resolved = _resolve(mechanism, epsilon, setting, profile, config, table, seed)
    from textveil.guarantee import summarize
    from textveil.pipeline import Privatizer

    if with_original and not as_json:
        shell.note("textveil: warning: the output holds the private originals beside the releases (--with-original)")

    with files.texts(only, whole=whole, output=output) as texts, files.output(output, private=with_original) as sink:
        results = Privatizer.from_config(resolved).privatize_many(texts)
        guarantees: list[Guarantee] = []
        for result in _progress(results, sink):
            if explain or not as_json:
                guarantees.append(result.guarantee)
                if len(guarantees) == KEPT_STATEMENTS:
                    guarantees = [summarize(guarantees)]
            if as_json:
                sink.write(files.json_line(result.to_json(with_original=with_original)))
            elif with_original:
                _write_beside(sink, result)
            else:
                sink.write(result.text if result.text.endswith("\n") else result.text + "\n")
        statement = _statement(guarantees, explain) if guarantees else ""
    if statement:
        shell.note(shell.wrap(statement))


@app.command(
    "list",
    epilog=_examples(
        "textveil list mechanisms",
        "textveil list tables",
        "textveil list profiles --json",
    ),
)
def list_names(
    what: Annotated[str, typer.Argument(metavar="mechanisms|tables|profiles", show_default=False)],
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON array of objects with the fields name and summary.")
    ] = False,
) -> None:
    """List names: one per line, with a summary behind each."""
    from textveil import registry
    from textveil.sources import profiles

    if what == "mechanisms":
        rows = {name: registry.entry("mechanism", name).summary for name in registry.names("mechanism")}
    elif what == "tables":
        rows = {name: registry.entry("table", name).summary for name in registry.names("table")}
    elif what == "profiles":
        rows = profiles()
    else:
        raise UnknownName("list", what, ("mechanisms", "tables", "profiles"))
    width = max(map(len, rows))
    if as_json:
        entries = [{"name": name, "summary": summary} for name, summary in rows.items()]
        say(json.dumps(entries, ensure_ascii=False))
        return
    for name, summary in rows.items():
        say(f"{name:{width}}  {summary}")


@show_app.callback(
    invoke_without_command=True,
    epilog=_examples(
        "textveil show config --profile paper-stencil",
    ),
)
def _show(context: typer.Context) -> None:
    """Show how things are set."""
    if context.invoked_subcommand is None:
        say(context.get_help())


@show_app.command(
    "config",
    epilog=_examples(
        "textveil show config",
        "textveil show config --profile paper-stencil --epsilon 80 -o words.casing=copy",
    ),
)
def show_config(
    mechanism: Mechanism = None,
    epsilon: Epsilon = None,
    setting: Setting = None,
    profile: Profile = None,
    config: ConfigFile = None,
    table: TableName = None,
    seed: Seed = None,
) -> None:
    """Print the configuration that these options, the environment and the defaults amount to, as YAML.

    --config reads it back. The environment counts too: TEXTVEIL_MECHANISM__L=4, TEXTVEIL_EPSILON=60.
    """
    resolved = _resolve(mechanism, epsilon, setting, profile, config, table, seed, complete=False)
    say(resolved.to_yaml().rstrip("\n"))


@app.command(
    epilog=_examples(
        "textveil explain noise",
        "textveil explain d-chi-stencil",
    ),
)
def explain(
    mechanism: Annotated[str, typer.Argument(metavar="MECHANISM", show_default=False)],
) -> None:
    """Say what a mechanism does, what it guarantees, its caveats, its source and its options."""
    import inspect

    from textveil import registry

    target = registry.load("mechanism", mechanism)
    parameter, budget = registry.budget_parameter(mechanism)
    options = registry.signature(target).known.values()
    say(f"{mechanism}\n\n{inspect.getdoc(target) or registry.entry('mechanism', mechanism).summary}\n")
    if not options:
        say("Options: none.")
    else:
        say("Options, -o mechanism.NAME=VALUE:")
    widths = [max((len(getattr(option, part)) for option in options), default=0) for part in ("name", "type")]
    for option in options:
        default = "required" if option.required else f"default {_spell(option.default)}"
        own = "; in place of --epsilon" if option.name == parameter else ""
        say(f"    {option.name:{widths[0]}}  {option.type:{widths[1]}}  {default}{own}")
    if not budget:
        say("It needs no --epsilon.")


@app.command(
    epilog=_examples(
        "textveil demo",
        "textveil demo --seed 1",
    ),
)
def demo(seed: Seed = None) -> None:
    """Privatize a packaged letter (an invented one) with four mechanisms, and show it beside the original."""
    from rich.console import Console

    from textveil import config, sources
    from textveil import demo as demonstration

    number = config.resolve(overrides=sources.assignments([], {"seed": seed}), complete=False).seed
    with files.writing():
        demonstration.show(Console(highlight=False, soft_wrap=False), seed=number)


def _privatize_files(
    paths: list[str],
    folder: str,
    config: "Config",
    field: str | None,
    whole: bool,
    jobs: int,
    resume: bool,
    explain: bool,
) -> None:
    from textveil import corpus

    with _progress_bar() as report:
        finished = corpus.privatize_files(
            paths, folder, config, field=field, whole=whole, jobs=jobs, resume=resume, report=report
        )
    for done in finished:
        shell.note(shell.wrap("\n".join(_about_file(done, explain))))


def _about_file(done: "corpus.Done", explain: bool) -> "Iterator[str]":
    """What is said of one file. The statement of a file that was finished before is known from its own file only."""
    found, statement = done.document, done.document["guarantee"]
    counted = ", ".join(_count(found[f"{what}s"], what) for what in ("row", "text", "word"))
    yield f"{found['file']}: {counted}.{' It was finished before.' if done.before else ''}"
    if done.guarantee is not None:
        yield _statement([done.guarantee], explain)
    elif statement is not None:
        yield f"{statement['statement']} {_unknown(statement['oov_share'])}"
    if found["field"] is not None:
        yield "The other fields are copied as they are and are not covered."


# ---- options -------------------------------------------------------------------------------------


def _resolve(
    mechanism: str | None,
    epsilon: str | None,
    setting: list[str] | None,
    profile: str | None,
    file: str | None,
    table: str | None,
    seed: str | None,
    *,
    complete: bool = True,
) -> "Config":
    from textveil import config, sources

    flags = {
        "mechanism.name": mechanism,
        "epsilon": epsilon,
        "table.name": table,
        "seed": seed,
        "profile": profile,
    }
    overrides = sources.assignments(setting or [], flags)
    return config.resolve(file=file, environ=os.environ, overrides=overrides, complete=complete)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _spell(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- output --------------------------------------------------------------------------------------


def _write_beside(sink: files.Output, result: "Result") -> None:
    """Original and released text: two columns on a terminal, else two fields with a tab between."""
    if not sink.terminal:
        sink.write(files.tab_line(result.private.text, result.text))
        return
    from rich.console import Console

    from textveil.demo import beside, shows_styles

    console = Console(file=sink.stream, highlight=False)
    with files.writing():
        console.print(beside(result, marked=shows_styles(console)))


def _statement(guarantees: "list[Guarantee]", whole: bool) -> str:
    from textveil.guarantee import summarize

    summary = guarantees[0] if len(guarantees) == 1 else summarize(guarantees)
    if whole:
        return summary.explain()
    return f"{summary.headline()} {_unknown(summary.oov_share)}"


def _unknown(share: float) -> str:
    return f"Unknown words: {share:.1%} of those not on the public list."


def _progress(results: "Iterator[Result]", sink: files.Output) -> "Iterator[Result]":
    """The results, with a counter on standard error for long runs where it disturbs nobody."""
    if sys.stderr is None or not sys.stderr.isatty() or sink.terminal:
        yield from results
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} texts"), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("", total=None)
    with ExitStack() as stack:
        for count, result in enumerate(results, 1):
            if count == PROGRESS_FROM:
                stack.enter_context(progress)
            if count >= PROGRESS_FROM:
                progress.update(task, completed=count)
            yield result


@contextmanager
def _progress_bar() -> "Iterator[corpus.Report]":
    """A bar on standard error with rate and time left, if it is a terminal; what is yielded moves it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows, {task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bars: dict[str, TaskID] = {}

        def report(name: str, rows: int, total: int) -> None:
            if name not in bars:
                bars[name] = progress.add_task(name, total=total, rate="")
            progress.update(bars[name], completed=rows)
            speed = progress.tasks[bars[name]].speed
            progress.update(bars[name], rate=f"{speed:,.0f} a second" if speed else "")

        yield report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, see `shell.run`."""
    return shell.run(app, "textveil", sys.argv[1:] if arguments is None else arguments)
