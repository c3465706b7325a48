"""What the verbs that release texts share: which texts, what happens to them, where they go.

In: arguments. Out: texts to release; releases on standard output or in a file.
Not here: whole files into a folder (`corpus`), and what is said of a release (`telling`).
"""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import progress, shell, stored
from textveil.errors import ConfigError, quote_file
from textveil.files import formats, streams

if TYPE_CHECKING:
    from rich import text as rich_text
    from rich.console import Console

    from textveil.config import Config
    from textveil.guarantee import Guarantee
    from textveil.pipeline import Privatizer, Result

Text = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT|-|FILE",
        help="A text, a file with one, or - for standard input.",
        show_default=False,
    ),
]
Field = Annotated[
    str | None,
    typer.Option(
        "--field",
        "--column",
        metavar="NAME",
        help="The field of the texts; else `text`, or in .jsonl and .parquet the only one with strings.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="FILE", help="Write the texts there; it appears when it is whole."
    ),
]
Lines = Annotated[
    bool,
    typer.Option(
        "--lines", help="Take each line of the file, or of standard input, as a text of its own."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object per text, with its whole statement.")
]
Html = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Write it as a page, too.")
]
WithOriginal = Annotated[
    bool,
    typer.Option(
        "--with-original",
        help="Print each original beside its release: two columns on a terminal, else a tab between them; with --json "
        "the field `original`. Originals are private.",
    ),
]
Diff = Annotated[
    bool,
    typer.Option(
        "--diff",
        help="Print what changed: each changed line as it was and as it is released. Originals are private.",
    ),
]
SessionFile = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="FILE",
        help="Remember there, in clear, what is replaced, so that `textveil restore` can put it back. A file that "
        "exists is continued. With --store, the name of a session in it.",
    ),
]

KEPT_STATEMENTS = 1_000
"""Statements that are kept one by one; more are summed up on the way, so that memory hardly grows."""


def check(
    text: str | None,
    output: str | None,
    session: str | None = None,
    html: str | None = None,
    store: str | None = None,
    files: str = "`textveil corpus run`",
    whole: bool = False,
) -> None:
    """Refuse what cannot be read or written, before anything is loaded.

    Raises:
        InputError: there is no text.
        ConfigError: it is a file of rows, each a text, or compressed or binary; or two files are one, or there is no
            place for one.
    """
    streams.require_input(text)
    if text is not None and os.path.isfile(text):
        if formats.is_packed(text):
            raise ConfigError(
                f"{quote_file(text)} is compressed or binary; such files go with {files}"
            )
        if not whole and formats.has_rows(text):
            raise ConfigError(
                f"{quote_file(text)} has rows with fields; such files go with {files}"
            )
    if output is not None and is_folder(output):
        raise ConfigError(
            f"--output is a folder, {quote_file(output)}; whole files go into one with {files}"
        )
    if (
        store is None
        and session is not None
        and output is not None
        and os.path.realpath(session) == os.path.realpath(output)
    ):
        raise ConfigError(
            f"--session and --output must be two files, and both are {quote_file(output)}"
        )
    if html is not None and (
        html == "-"
        or (
            text is not None
            and os.path.isfile(html)
            and os.path.realpath(text) == os.path.realpath(html)
        )
    ):
        raise ConfigError(
            f"--html must be a file of its own, neither the input nor standard output; got {quote_file(html)}"
        )
    if html is not None and (
        os.path.isdir(html) or not os.path.isdir(os.path.dirname(os.path.realpath(html)))
    ):
        raise ConfigError(
            f"--html must name a file in a folder that exists, and {quote_file(html)} is none"
        )


def check_public(config: "Config", private: Iterable[str | None]) -> None:
    """Refuse to find a budget from the texts that are private.

    Raises:
        ConfigError: the file of public texts is one of those to release.
    """
    public = config.prior
    if public is None or not os.path.isfile(public):
        return
    if any(
        each is not None and os.path.isfile(each) and os.path.samefile(each, public)
        for each in private
    ):
        raise ConfigError(
            f"--public must be another file than the texts to release, {quote_file(public)}: a budget must not follow "
            "from them"
        )


def say_empty() -> None:
    """Say that there was no text, where nothing else is said: an empty file may be a mistake further up a pipe."""
    shell.note("textveil: warning: the input is empty, so there is nothing to release")


def is_folder(output: str) -> bool:
    """Whether an output is a folder, or a new one by its name."""
    return output != "-" and (output.endswith(os.sep) or os.path.isdir(output))


def few(text: str | None, *, whole: bool, output: str | None, what: str) -> list[str]:
    """The texts to be shown one by one, of which there may not be too many.

    Raises:
        ConfigError: there are more than one batch of them.
    """
    from textveil.pipeline import BATCH_TEXTS

    with streams.texts(text, whole=whole, output=output) as found:
        texts = list(islice(found, BATCH_TEXTS + 1))
    if not texts:
        say_empty()
    if len(texts) > BATCH_TEXTS:
        raise ConfigError(f"{what} shows at most {BATCH_TEXTS} texts; give it fewer")
    return texts


def released(
    privatizer: "Privatizer", texts: Iterable[str], session: str | None, store: str | None = None
) -> "Iterator[Result]":
    """The releases of texts, as they come; with a session, when it has been saved.

    What could not be restored must not go out, so nothing does before the session is on the disk. A store has it there
    after each batch, a file after the last.
    """
    if session is None:
        yield from privatizer.privatize_many(texts)
    elif store is not None:
        with stored.opened(session, store) as remembered:
            yield from privatizer.privatize_many(texts, remembered)
    else:
        from textveil.session.store import kept

        with kept(session) as remembered:
            results = list(privatizer.privatize_many(texts, remembered))
        yield from results


def release(
    config: "Config",
    text: str | None,
    *,
    output: str | None,
    session: str | None,
    store: str | None = None,
    whole: bool,
    as_json: bool,
    with_original: bool,
    diff: bool = False,
    source: str = "user",
) -> "Iterator[Result]":
    """Release all texts and write them; gives each result when it is written."""
    from textveil.pipeline import Privatizer

    if diff and (as_json or with_original):
        raise ConfigError(
            "give --diff alone: --json and --with-original show the originals in another form"
        )
    if (with_original or diff) and not as_json:
        option = "--diff" if diff else "--with-original"
        shell.note(
            f"textveil: warning: the output holds the private originals beside the releases ({option})"
        )
    with (
        streams.texts(text, whole=whole, output=output) as texts,
        streams.output(output, private=with_original or diff) as sink,
    ):
        results = released(
            Privatizer.from_config(config).with_parts(source=source), texts, session, store
        )
        exact = whole and not sink.terminal and not (text is not None and streams.is_text(text))
        plain = not (diff or as_json or with_original or sink.terminal)
        empty = True
        for result in (
            progress.read(results)
            if whole
            else results
            if sink.terminal
            else progress.counted(results)
        ):
            if empty and plain:
                sink.write(texts.mark)
            if diff:
                write_diff(sink, result)
            else:
                write(sink, result, as_json=as_json, with_original=with_original, exact=exact)
            empty = False
            yield result
        if empty and plain:
            sink.write(texts.mark)
    if empty:
        say_empty()


def statements(results: "Iterable[Result]") -> "list[Guarantee]":
    """The statements of releases, those of many summed up."""
    from textveil.guarantee import summarize

    found: list[Guarantee] = []
    for result in results:
        found.append(result.guarantee)
        if len(found) == KEPT_STATEMENTS:
            found = [summarize(found)]
    return found


def write(
    sink: streams.Output,
    result: "Result",
    *,
    as_json: bool = False,
    with_original: bool = False,
    exact: bool = False,
) -> None:
    """One release, as it was asked for; `exact` adds no line end to one that has none."""
    if as_json:
        sink.write(streams.json_line(result.to_json(with_original=with_original)))
    elif with_original and sink.terminal:
        from rich.console import Console

        from textveil.cli.demo import beside, shows_styles

        console = Console(file=sink.stream, highlight=False)
        with streams.writing():
            console.print(beside(result, marked=shows_styles(console)))
    elif with_original:
        sink.write(streams.tab_line(result.private.text, result.text))
    else:
        sink.write(result.text if exact or result.text.endswith("\n") else result.text + "\n")


def show(console: "Console", coloured: "rich_text.Text") -> None:
    """Print one release in colour; no line end is added to one that has one."""
    end = "" if coloured.plain.endswith("\n") else "\n"
    console.print(coloured, end=end, soft_wrap=not console.is_terminal)


def write_diff(sink: streams.Output, result: "Result") -> None:
    """The lines of a text that its release changed, with the lines around them; nothing where none did."""
    from difflib import unified_diff

    before, after = (text.splitlines() for text in (result.private.text, result.text))
    coloured = sink.terminal and "NO_COLOR" not in os.environ
    for line in islice(
        unified_diff(before, after, lineterm="", n=1), 2, None
    ):  # without the names of files
        style = {"-": "red", "+": "green", "@": "cyan"}.get(line[0])
        sink.write((typer.style(line, fg=style) if coloured and style else line) + "\n")
