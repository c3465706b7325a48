"""The command line: verbs only.

In: arguments. Out: text or JSON on standard output, statements on standard error.
Not here: reading and writing (`files`), errors and exit codes (`shell`), options (`config`), the `demo`.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from textveil import files, formats, progress, shell
from textveil.errors import ConfigError, UnknownName
from textveil.shell import say

if TYPE_CHECKING:
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
table_app = typer.Typer(rich_markup_mode=None)
app.add_typer(table_app, name="table")

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
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="See `textveil list tables`, or a folder of `textveil table build`."),
]
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
            help="Files into a folder: where the texts are. Left out, it is `text`, or in .jsonl and .parquet the only "
            "one for strings.",
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
        for result in progress.counted(results) if progress.seen() and not sink.terminal else results:
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


# ---- tables --------------------------------------------------------------------------------------


@table_app.callback(
    invoke_without_command=True,
    epilog=_examples(
        "textveil table build glove.6B.300d.txt -o glove",
        'textveil privatize "Anna is ill" --table glove --epsilon 30',
    ),
)
def _table(context: typer.Context) -> None:
    """Build embedding tables from published vectors, and look at them."""
    if context.invoked_subcommand is None:
        say(context.get_help())


@table_app.command(
    "build",
    epilog=_examples(
        "textveil table build glove.840B.300d.txt -o glove --skip-broken",
        "textveil table build GoogleNews-vectors-negative300.bin.gz -o word2vec --limit 200000",
        "textveil table build rows.npy --vocabulary words.txt -o own --metric euclidean",
        "textveil table build FacebookAI/roberta-base -o roberta",
    ),
)
def table_build(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="GloVe, word2vec (text or binary) or fastText vectors, .npy, .npz or .safetensors; also in .gz or "
            ".zip; the folder or hub id of a transformers model, for its input embeddings.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="The folder to make.", show_default=False)
    ],
    name: Annotated[str | None, typer.Option("--name", help="What statements call the table.")] = None,
    metric: Annotated[
        str, typer.Option("--metric", metavar="chord|euclidean", help="chord makes the rows unit vectors.")
    ] = "chord",
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", metavar="float16|float32", help="Of the rows; float16 from 67 million numbers."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="glove (text), vec (text with a header), word2vec (binary), numpy, safetensors or model; else told by "
            "the content.",
        ),
    ] = None,
    vocabulary: Annotated[
        str | None, typer.Option("--vocabulary", metavar="FILE", help="The words of the rows, one a line.")
    ] = None,
    member: Annotated[
        str | None,
        typer.Option("--member", metavar="NAME", help="Which tensor, array or packed file, where there are several."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="Only the first N words.")] = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out words that cannot be taken, and count them.")
    ] = False,
    neighbours: Annotated[
        int, typer.Option("--neighbours", metavar="K", help="Nearest words listed for each word; 0 for none.")
    ] = 10,
    pairs: Annotated[
        bool | None,
        typer.Option(
            "--pairs/--no-pairs",
            help="Look at all pairs of words, for exact constants, the curve of the exponential mechanism and the "
            "nearest words; else up to 50,000 words.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the folder of a table.")] = False,
) -> None:
    """Convert word vectors into the folder of a table, which --table takes. It appears only when it is whole."""
    from typing import Any, cast

    from textveil import store, vectors

    with (
        files.signals_as_exits(),
        vectors.opened(
            source,
            format=cast(Any, format),
            vocabulary=vocabulary,
            member=member,
            limit=limit,
            skip_broken=skip_broken,
            zero_rows=metric == "euclidean",
        ) as found,
        progress.bars(_amount) as report,
    ):
        store.build(
            found,
            output,
            name=name,
            metric=cast(Any, metric),
            dtype=cast(Any, dtype),
            neighbours=neighbours,
            pairs=pairs,
            force=force,
            progress=report,
        )
    say(store.summary(output))


def _amount(step: str, done: int) -> str:
    """Bytes of the source, then rows of the table."""
    from rich.filesize import decimal

    return decimal(done) if step == "reading" else f"{done:,}"


@table_app.command(
    "info",
    epilog=_examples(
        "textveil table info glove",
        "textveil table info minilm --json",
    ),
)
def table_info(
    table: Annotated[str, typer.Argument(metavar="NAME|DIR", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, with the whole curve.")] = False,
) -> None:
    """Say what a table holds. The files of a folder are checked against their checksums."""
    from textveil import store

    say(json.dumps(store.describe(table), ensure_ascii=False) if as_json else store.summary(table))


@table_app.command(
    "list",
    epilog=_examples(
        "textveil table list",
        "textveil table list tables",
    ),
)
def table_list(
    folder: Annotated[str, typer.Argument(metavar="[FOLDER]", show_default=False)] = ".",
) -> None:
    """List the tables that --table takes: registered names, and folders of tables in FOLDER (here)."""
    from textveil import registry, store

    rows = {name: registry.entry("table", name).summary for name in registry.names("table")}
    rows |= dict(store.folders(folder))
    width = max(map(len, rows))
    for name, summary in rows.items():
        say(f"{name:{width}}  {summary}")


@table_app.command(
    "neighbours",
    epilog=_examples(
        "textveil table neighbours minilm doctor",
        "textveil table neighbours glove doctor -k 20 --json",
    ),
)
def table_neighbours(
    table: Annotated[str, typer.Argument(metavar="TABLE", show_default=False)],
    word: Annotated[str, typer.Argument(metavar="WORD", show_default=False)],
    count: Annotated[int, typer.Option("-k", metavar="K", help="How many.", min=1)] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Print the nearest words of a word, with their distances."""
    from textveil import store

    known, row, near = store.nearest_words(table, word, count)
    if not known:
        shell.note(f"textveil: the word is outside the table; these are the neighbours of its surrogate {row!r}")
    if as_json:
        found = [{"word": each, "distance": distance} for each, distance in near]
        say(json.dumps({"row": row, "known": known, "neighbours": found}, ensure_ascii=False))
        return
    for each, distance in near:
        say(f"{distance:.4f}  {each}")


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


# ---- files of texts ------------------------------------------------------------------------------


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

    try:
        with progress.bars(lambda _, rows: f"{rows:,}", " rows") as report:
            finished = corpus.privatize_files(
                paths, folder, config, field=field, whole=whole, jobs=jobs, resume=resume, report=report
            )
    except (KeyboardInterrupt, SystemExit):
        shell.note("textveil: interrupted; what is finished is kept, and --resume goes on with it")
        raise
    for done in finished:
        shell.note(shell.wrap("\n".join(_about_file(done, explain))))


def _about_file(done: "corpus.Done", explain: bool) -> "Iterator[str]":
    """What is said of one file. The statement of a file that was finished before is known from its own file only."""
    found, statement = done.document, done.document["guarantee"]
    counted = ", ".join(_count(found[f"{what}s"], what) for what in ("row", "text", "word"))
    name = found["field"]
    field = "" if name is None else f", field {name if formats.is_plain(name) else json.dumps(name)}"
    yield f"{found['file']}{field}: {counted}.{' It was finished before.' if done.before else ''}"
    if done.guarantee is not None:
        yield _statement([done.guarantee], explain)
    elif statement is not None:
        yield f"{statement['statement']} {_unknown(statement['oov_share'])}"
    if name is not None:
        yield "The other fields are copied as they are and are not covered."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, see `shell.run`."""
    return shell.run(app, "textveil", sys.argv[1:] if arguments is None else arguments)
