"""The verb `privatize`.

In: arguments. Out: released texts on standard output or in files, statements on standard error.
Not here: reading and writing (`files`, `corpus`), and what is done to a text (`pipeline`).
"""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import progress, shell
from textveil.cli.app import (
    AsJson,
    ConfigFile,
    Epsilon,
    Mechanism,
    Profile,
    Rerank,
    Seed,
    SessionFile,
    Setting,
    TableName,
    Task,
    app,
    examples,
    resolve,
)
from textveil.errors import ConfigError, UnknownName
from textveil.files import formats, streams

if TYPE_CHECKING:
    from textveil.config import Config
    from textveil.corpus import Done
    from textveil.guarantee import Guarantee
    from textveil.pipeline import Result

KEPT_STATEMENTS = 1_000
"""Statements that are kept one by one; more are summed up on the way, so that memory hardly grows."""


@app.command(
    epilog=examples(
        'textveil privatize "Anna owes the bank nine hundred pounds" --mechanism noise --epsilon 60',
        "printf 'one text\\nanother text\\n' | textveil privatize - --epsilon 60 --json",
        'textveil privatize "Anna is ill" --mechanism d-chi-stencil -o mechanism.L=4 -o mechanism.eta=100',
        'textveil privatize "Anna is ill" --profile paper-noise --explain',
        'textveil privatize "Ask Maria Silva (maria@example.org) in Lisbon" --profile chat --show groups',
        'textveil privatize "Anna owes the bank" --mechanism placeholder --session letter.session',
        'textveil privatize "Anna owes the bank nine hundred pounds" --epsilon 70 --show risk --html risk.html',
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
    rerank: Rerank = None,
    task: Task = None,
    session: SessionFile = None,
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
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="NAME",
            help="Files into a folder: the field with what each text is for; words that have to do with it are "
            "important. Not secret.",
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
    show: Annotated[
        str | None,
        typer.Option(
            "--show",
            metavar="groups|risk",
            help="groups: colour every released word by its group. risk: by the probability that an attacker who knows "
            "the program names the private one. Risk is for your eyes only: it tells which guesses are right; with "
            "--json the field `risk`.",
        ),
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="With --show: write it as a page, too.")
    ] = None,
    prior: Annotated[
        str,
        typer.Option(
            "--prior",
            metavar="NAME",
            help="With --show risk: what the attacker expects before; uniform, unigram or context.",
        ),
    ] = "unigram",
) -> None:
    """Privatize a text, every line of a file or of standard input, or whole files into a folder.

    The privatized text goes to standard output, the statement to standard error or, with --json, into the
    object. With a folder as --output, the other fields of a file are copied as they are.
    """
    arguments = text or []
    into = formats.into_folder(
        arguments, output, asked=field is not None or query is not None or jobs is not None or resume
    )
    if into is not None:
        if show is not None or html is not None:
            raise ConfigError(
                "--show is for texts, not for files into a folder; for risks of files use `textveil attack`"
            )
        if as_json or with_original:
            raise ConfigError("--json and --with-original are for texts; files into a folder have statements of theirs")
        if session is not None:
            raise ConfigError("--session is for texts, not for files into a folder")
        resolved = resolve(mechanism, epsilon, setting, profile, config, table, seed, rerank=rerank, task=task)
        if query is not None:
            if task is not None:
                raise ConfigError("give --task for all texts, or --query for a field with what each is for, not both")
            resolved = replace(resolved, protect=replace(resolved.protect, importance="cosine", task=None))
        _privatize_files(arguments, into, resolved, field, query, whole, 1 if jobs is None else jobs, resume, explain)
        return
    only = arguments[0] if arguments else None
    streams.require_input(only)  # before the options, because a text is what a newcomer forgets
    if show not in (None, "groups", "risk"):
        raise UnknownName("view for --show", show, ("groups", "risk"))
    if html is not None and show is None:
        raise ConfigError("--html writes the page of --show groups or --show risk: give both")
    if session is not None and show == "risk":
        raise ConfigError("--session and --show risk exclude each other")
    if session is not None and output is not None and os.path.realpath(session) == os.path.realpath(output):
        raise ConfigError("--session and --output must be two files")
    if html is not None and (os.path.isdir(html) or not os.path.isdir(os.path.dirname(os.path.realpath(html)))):
        raise ConfigError("--html must be the name of a file in a folder that is there")
    resolved = resolve(mechanism, epsilon, setting, profile, config, table, seed, rerank=rerank, task=task)
    if show == "groups":
        _show_groups(only, resolved, whole, output, html, as_json, with_original, explain, session)
        return
    if show is not None:
        _show_risk(only, resolved, whole, output, html, as_json, with_original, explain, prior)
        return
    from textveil.guarantee import summarize
    from textveil.pipeline import Privatizer
    from textveil.session import store

    if with_original and not as_json:
        shell.note("textveil: warning: the output holds the private originals beside the releases (--with-original)")

    with ExitStack() as stack:
        texts = stack.enter_context(streams.texts(only, whole=whole, output=output))
        sink = stack.enter_context(streams.output(output, private=with_original))
        privatizer = Privatizer.from_config(resolved)
        results: Iterable[Result]
        if session is None:
            results = privatizer.privatize_many(texts)
        else:
            with store.kept(session) as remembered:
                results = list(privatizer.privatize_many(texts, remembered))
            # only now, for what cannot be restored must not go out
        guarantees: list[Guarantee] = []
        for result in progress.counted(results) if progress.seen() and not sink.terminal else results:
            if explain or not as_json:
                guarantees.append(result.guarantee)
                if len(guarantees) == KEPT_STATEMENTS:
                    guarantees = [summarize(guarantees)]
            if as_json:
                sink.write(streams.json_line(result.to_json(with_original=with_original)))
            elif with_original:
                _write_beside(sink, result)
            else:
                sink.write(result.text if result.text.endswith("\n") else result.text + "\n")
        said = statement(guarantees, explain) if guarantees else ""
    if said:
        shell.note(shell.wrap(said))


# ---- output --------------------------------------------------------------------------------------


def _write_beside(sink: streams.Output, result: "Result") -> None:
    """Original and released text: two columns on a terminal, else two fields with a tab between."""
    if not sink.terminal:
        sink.write(streams.tab_line(result.private.text, result.text))
        return
    from rich.console import Console

    from textveil.cli.demo import beside, shows_styles

    console = Console(file=sink.stream, highlight=False)
    with streams.writing():
        console.print(beside(result, marked=shows_styles(console)))


def _summed(guarantees: "list[Guarantee]") -> "Guarantee":
    from textveil.guarantee import summarize

    return guarantees[0] if len(guarantees) == 1 else summarize(guarantees)


def statement(guarantees: "list[Guarantee]", whole: bool = False) -> str:
    """What is said of releases: three lines, or all of it."""
    summary = _summed(guarantees)
    if whole:
        return summary.explain()
    return f"{summary.headline()} {_unknown(summary.oov_share)}"


def _unknown(share: float) -> str:
    return f"Unknown words: {share:.1%} of those not on the public list."


# ---- risk ----------------------------------------------------------------------------------------


def _show_risk(
    argument: str | None,
    config: "Config",
    whole: bool,
    output: str | None,
    html: str | None,
    as_json: bool,
    with_original: bool,
    explain: bool,
    prior: str,
) -> None:
    """Release texts, and tell their owner what an attacker makes of them: first the risk, then the statement."""
    from rich.console import Console

    from textveil.cli.demo import shows_styles
    from textveil.cli.evaluation import simulation
    from textveil.evaluate.attack import Case, checked
    from textveil.evaluate.risk import assess, sentence
    from textveil.pipeline import BATCH_TEXTS, Privatizer
    from textveil.show import risk

    name = checked(prior)
    privatizer = Privatizer.from_config(config)
    with streams.texts(argument, whole=whole, output=output) as found:
        texts = list(islice(found, BATCH_TEXTS + 1))
    if len(texts) > BATCH_TEXTS:
        raise ConfigError(f"--show risk is for at most {BATCH_TEXTS} texts; for more use `textveil attack`")
    rehearsal = privatizer.rehearse(texts)
    with progress.bars(lambda _, done: f"{done:,}") as report:
        risks = assess(Case.after(privatizer, rehearsal), prior=name, rng=simulation(config), report=report)
    statements = [result.guarantee for result in rehearsal.results]
    if as_json or with_original:
        shell.note("textveil: warning: keep the output to yourself, it holds what is private (--show, --with-original)")
    console = Console(stderr=True, highlight=False)
    with streams.output(output, private=as_json or with_original) as sink:
        seen = sink.terminal and console.is_terminal  # one person sees both streams: the coloured text is enough
        for result, each in zip(rehearsal.results, risks, strict=True):
            if as_json:
                line = {**result.to_json(with_original=with_original), "risk": each.to_json()}
                sink.write(streams.json_line(line))
            elif with_original:
                _write_beside(sink, result)
            elif not seen:
                sink.write(result.text if result.text.endswith("\n") else result.text + "\n")
    marked = shows_styles(console)
    if not as_json:
        for each in risks:
            console.print(risk.coloured(each, marked=marked), soft_wrap=not console.is_terminal)
        console.print(risk.legend(marked=marked), soft_wrap=not console.is_terminal)
    if statements:
        if html is not None:
            with streams.output(html, private=True) as target:
                target.write(risk.page(risks, _summed(statements)))
        shell.note(shell.wrap(sentence(risks)))
        shell.note(shell.wrap(statement(statements, explain)))


# ---- groups --------------------------------------------------------------------------------------


def _show_groups(
    argument: str | None,
    config: "Config",
    whole: bool,
    output: str | None,
    html: str | None,
    as_json: bool,
    with_original: bool,
    explain: bool,
    session: str | None,
) -> None:
    """Release texts, and show which word is in which group."""
    from rich.console import Console

    from textveil.cli.demo import shows_styles
    from textveil.pipeline import BATCH_TEXTS, Privatizer
    from textveil.session import store
    from textveil.show import groups

    privatizer = Privatizer.from_config(config)
    if privatizer.grouping is None:
        raise ConfigError("--show groups needs groups: take --profile chat or document, or set protect.detectors")
    with streams.texts(argument, whole=whole, output=output) as found:
        texts = list(islice(found, BATCH_TEXTS + 1))
    if len(texts) > BATCH_TEXTS:
        raise ConfigError(f"--show groups is for at most {BATCH_TEXTS} texts")
    with nullcontext() if session is None else store.kept(session) as remembered:
        results = list(privatizer.privatize_many(texts, remembered))
    console = Console(stderr=True, highlight=False)
    with streams.output(output, private=with_original) as sink:
        seen = sink.terminal and console.is_terminal
        for result in results:
            if as_json:
                sink.write(streams.json_line(result.to_json(with_original=with_original)))
            elif with_original:
                _write_beside(sink, result)
            elif not seen:
                sink.write(result.text if result.text.endswith("\n") else result.text + "\n")
    if not as_json:
        marked = shows_styles(console)
        for result in results:
            console.print(groups.coloured(result.released, marked=marked), soft_wrap=not console.is_terminal)
        console.print(
            groups.legend([result.released for result in results], marked=marked), soft_wrap=not console.is_terminal
        )
    if results:
        statements = [result.guarantee for result in results]
        if html is not None:
            with streams.output(html) as target:
                target.write(groups.page([result.released for result in results], _summed(statements)))
        shell.note(shell.wrap(statement(statements, explain)))


# ---- files of texts ------------------------------------------------------------------------------


def _privatize_files(
    paths: list[str],
    folder: str,
    config: "Config",
    field: str | None,
    query: str | None,
    whole: bool,
    jobs: int,
    resume: bool,
    explain: bool,
) -> None:
    from textveil.corpus import runs

    try:
        with progress.bars(lambda _, rows: f"{rows:,}", " rows") as report:
            finished = runs.privatize_files(
                paths, folder, config, field=field, query=query, whole=whole, jobs=jobs, resume=resume, report=report
            )
    except (KeyboardInterrupt, SystemExit):
        kept = "finished rows are kept; go on with --resume" if runs.begun(paths, folder) else "nothing was finished"
        shell.note(f"textveil: interrupted; {kept}")
        raise
    for done in finished:
        shell.note(shell.wrap("\n".join(_about_file(done, explain))))


def _about_file(done: "Done", explain: bool) -> "Iterator[str]":
    """What is said of one file. The statement of a file that was finished before is known from its own file only."""
    found, stated = done.document, done.document["guarantee"]
    counted = ", ".join(_count(found[f"{what}s"], what) for what in ("row", "text", "word"))
    name = found["field"]
    field = "" if name is None else f", field {name if formats.is_plain(name) else json.dumps(name)}"
    yield f"{found['file']}{field}: {counted}.{' It was finished before.' if done.before else ''}"
    if done.guarantee is not None:
        yield statement([done.guarantee], explain)
    elif stated is not None:
        yield f"{stated['statement']} {_unknown(stated['oov_share'])}"
    if name is not None:
        yield "The other fields are copied as they are and are not covered."


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
