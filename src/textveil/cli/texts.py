"""Common parts of verbs that release texts: input, release and output.

In: arguments. Out: texts to release; releases on standard output or in a file.
Not here: whole files into a folder (`corpus`), and what is said of a release (`statement_options`).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, TypeVar

import typer

from textveil.cli import console, progress, session_options
from textveil.errors import ConfigError, quote_file
from textveil.files import formats, text_streams

if TYPE_CHECKING:
    from rich import text as rich_text
    from rich.console import Console
    from rich.table import Table

    from textveil.config import Config
    from textveil.pipeline import Privatizer, Result, TextResult

    AnyResult = TypeVar("AnyResult", Result, TextResult)

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
        help="The field of the texts. Default: `text`, or in .jsonl and .parquet the only field "
        "with strings.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write the texts to this file, which appears when it is complete.",
    ),
]
Lines = Annotated[
    bool,
    typer.Option(
        "--lines", help="Take each line of the file, or of standard input, as a separate text."
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per text, with its whole statement.")
]
Html = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Also write the result as an HTML page."),
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
        help="Print what changed: each changed line before and after. Originals are private.",
    ),
]
SessionFile = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="FILE",
        help="Remember in this file, unencrypted, what is replaced, so that `textveil restore` "
        "can put it back. An existing file is continued. With --store, the name of a "
        "session in the store.",
    ),
]

MAX_STATEMENTS = 1_000
"""The most statements that are kept one by one.

More are summed up on the way, so that memory hardly grows.
"""


def check_files(
    text: str | None,
    output: str | None,
    session: str | None = None,
    html: str | None = None,
    store: str | None = None,
    files: str = "`textveil corpus run`",
    whole: bool = False,
) -> None:
    """Refuses unusable inputs and outputs, before anything is loaded.

    Raises:
        InputError: there is no text.
        ConfigError: it is a file of rows, each a text, or compressed or binary; or two files are
            one, or there is no place for one.
    """
    text_streams.require_input(text)
    if text is not None and os.path.isfile(text):
        _check_input(text, whole, files)
    if output is not None and is_folder(output):
        raise ConfigError(
            f"--output must be a file, and {quote_file(output)} is a folder; for whole files and "
            f"folders use {files}"
        )
    if store is None and session is not None and _is_same_file(session, output):
        raise ConfigError(
            f"--session and --output must be different files, and both are {quote_file(output)}"
        )
    if html is not None:
        check_page(html, text)


def _check_input(text: str, whole: bool, files: str) -> None:
    if formats.is_packed(text):
        raise ConfigError(f"{quote_file(text)} is compressed or binary; for such files use {files}")
    if not whole and formats.has_rows(text):
        raise ConfigError(f"{quote_file(text)} has rows with fields; for such files use {files}")


def _is_same_file(path: str, other: str | None) -> bool:
    return other is not None and os.path.realpath(path) == os.path.realpath(other)


def check_page(html: str, text: str | None = None) -> None:
    """Refuses a page that would be the input, or has no place.

    Raises:
        ConfigError: says what --html must be.
    """
    if html == "-" or (os.path.isfile(html) and _is_same_file(html, text)):
        raise ConfigError(
            "--html must be a separate file, not the input or standard output; got "
            f"{quote_file(html)}"
        )
    if os.path.isdir(html) or not os.path.isdir(os.path.dirname(os.path.realpath(html))):
        raise ConfigError(f"--html must name a file in an existing folder, got {quote_file(html)}")


def check_public(config: "Config", private: Iterable[str | None]) -> None:
    """Refuses to find a budget from the private texts.

    Raises:
        ConfigError: the file of public texts is one of those to release.
    """
    public = config.prior
    if public is None or not os.path.isfile(public):
        return
    if any(
        path is not None and os.path.isfile(path) and os.path.samefile(path, public)
        for path in private
    ):
        raise ConfigError(
            f"--public must not be the file of the texts to release, {quote_file(public)}: a "
            "budget must not depend on them"
        )


def warn_empty() -> None:
    """Warns that there was no text.

    Where nothing else is said: an empty file may be a mistake further up a pipe.
    """
    console.note("textveil: warning: the input is empty, so there is nothing to release")


def is_folder(output: str) -> bool:
    """Says whether an output is a folder, or named like one."""
    return output != "-" and (output.endswith(os.sep) or os.path.isdir(output))


def read_few(text: str | None, *, whole: bool, output: str | None, command: str) -> list[str]:
    """Returns the texts to show one by one.

    There may not be too many.

    Raises:
        ConfigError: there are more than one batch of them.
    """
    from textveil.pipeline import BATCH_TEXTS

    with text_streams.open_texts(text, whole=whole, output=output) as source:
        texts = list(islice(source, BATCH_TEXTS + 1))
    if not texts:
        warn_empty()
    if len(texts) > BATCH_TEXTS:
        raise ConfigError(f"{command} shows at most {BATCH_TEXTS} texts; give it fewer")
    return texts


def privatize_texts(
    privatizer: "Privatizer", texts: Iterable[str], session: str | None, store: str | None = None
) -> "Iterator[Result]":
    """Yields the releases of texts; sessions are saved first.

    As they come; with a session in a file, when all is saved.

    What could not be restored must not go out, so nothing does before the session is on the disk. A
    store has it there after each batch, a file after the last.
    """
    if session is None:
        yield from privatizer.privatize_many(texts)
    elif store is not None:
        with session_options.open_session(session, store) as opened_session:
            yield from privatizer.privatize_many(texts, opened_session)
    else:
        from textveil.session.session_file import open_session

        with open_session(session) as opened_session:
            results = list(privatizer.privatize_many(texts, opened_session))
        yield from results


def privatize_words(
    config: "Config",
    texts: Iterable[str],
    *,
    session: str | None,
    store: str | None = None,
    source: str = "user",
) -> "Iterator[Result]":
    """Builds the privatizer of words, and returns the releases of texts."""
    from textveil.pipeline import Privatizer

    privatizer = Privatizer.from_config(config).with_parts(source=source)
    return privatize_texts(privatizer, texts, session, store)


def privatize_whole(config: "Config", texts: Iterable[str]) -> "Iterator[TextResult]":
    """Builds the privatizer of whole texts, and returns public texts in place of texts."""
    from textveil.pipeline import TextPrivatizer

    return TextPrivatizer.from_config(config).privatize_many(texts)


def release(
    privatize: "Callable[[Iterable[str]], Iterator[AnyResult]]",
    text: str | None,
    *,
    output: str | None,
    whole: bool,
    as_json: bool,
    with_original: bool,
    diff: bool = False,
) -> "Iterator[AnyResult]":
    """Releases all texts, writes them, and yields the written results.

    Args:
        privatize: returns the releases of texts.
        text: the text, or its file.
        output: the file of the releases.
        whole: whether a file is one text.
        as_json: one JSON object each.
        with_original: with the originals.
        diff: only what changed.
    """
    private = _has_originals(as_json, with_original, diff)
    with (
        text_streams.open_texts(text, whole=whole, output=output) as texts,
        text_streams.open_output(output, private=private) as sink,
    ):
        results = privatize(texts)
        exact = whole and not sink.terminal and not text_streams.is_text(text)
        tracked_results = _show_progress(results, whole=whole, terminal=sink.terminal)
        first = next(tracked_results, None)
        show_one: Callable[[text_streams.Output, AnyResult], None] = write_diff
        if not diff:
            show_one = partial(
                write,
                as_json=as_json,
                with_original=with_original,
                exact=exact,
                in_lines=not whole,
            )
        if not (private or as_json or sink.terminal):
            sink.write(texts.mark)
        for result in () if first is None else chain([first], tracked_results):
            show_one(sink, result)
            yield result
    if first is None:
        warn_empty()


def _has_originals(as_json: bool, with_original: bool, diff: bool) -> bool:
    """Says whether originals are printed beside the releases.

    That is warned of once, where no option for programs asks for it.
    """
    if diff and (as_json or with_original):
        raise ConfigError(
            "give --diff alone: --json and --with-original show the originals in another form"
        )
    if (with_original or diff) and not as_json:
        console.note(
            "textveil: warning: the output holds the private originals beside the releases "
            f"({'--diff' if diff else '--with-original'})"
        )
    return with_original or diff


def _show_progress(
    results: "Iterator[AnyResult]", *, whole: bool, terminal: bool
) -> "Iterator[AnyResult]":
    """Wraps results with a display of their progress.

    None is shown between lines on a terminal.
    """
    if whole:
        return iter(progress.collect_with_progress(results))
    return results if terminal else progress.count_results(results)


def collect_statements(results: "Iterable[AnyResult]") -> list[Any]:
    """Returns the statements of releases, those of many summed up."""
    from textveil.guarantee import summarize

    statements: list[Any] = []
    for result in results:
        statements.append(result.guarantee)
        if len(statements) == MAX_STATEMENTS:
            statements = [summarize(statements)]
    return statements


def write(
    sink: text_streams.Output,
    result: "Result | TextResult",
    *,
    as_json: bool = False,
    with_original: bool = False,
    exact: bool = False,
    in_lines: bool = False,
    extra_fields: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Writes one release in the requested form.

    `exact` adds no line end to one that has none, `in_lines` puts a public text on one line,
    `extra_fields` is added to its JSON.
    """
    text = result.text
    if in_lines and not _has_words(result):
        text = " ".join(text.splitlines())
    if as_json:
        sink.write(
            text_streams.format_json_line(
                result.to_json(with_original=with_original) | {**extra_fields}
            )
        )
    elif with_original and sink.terminal and _has_words(result):
        from rich.console import Console

        from textveil.cli.demo import build_comparison, has_styles

        terminal = Console(file=sink.stream, highlight=False)
        with text_streams.convert_write_errors():
            terminal.print(build_comparison(result, marked=has_styles(terminal)))
    elif with_original:
        sink.write(text_streams.format_tab_line(result.private.text, text))
    else:
        is_exact = exact and _has_words(result)  # a public text has no line end of the private one
        sink.write(text if is_exact or text.endswith("\n") else text + "\n")


def _has_words(result: "Result | TextResult") -> "TypeGuard[Result]":
    """Says whether a result was made word by word."""
    return hasattr(result, "released")


def show(
    results: "Sequence[Result]",
    output: str | None,
    render_texts: "Callable[[bool], Iterable[rich_text.Text | Table]]",
    render_legend: "Callable[[bool], rich_text.Text]",
    *,
    as_json: bool,
    with_original: bool,
    private: bool,
    extra_fields: Sequence[Mapping[str, object]] = (),
) -> None:
    """Writes releases, and their coloured form on standard error.

    With what the colours mean.

    Args:
        results: the releases.
        output: where they go.
        render_texts: them in colour, and marked by signs, too, where a console has no styles.
        render_legend: what that means.
        as_json: one JSON object each.
        with_original: with the originals.
        private: whether what is written is for its owner alone.
        extra_fields: additional fields in the JSON of each.
    """
    from rich.console import Console
    from rich.table import Table

    from textveil.cli.demo import has_styles

    console = Console(stderr=True, highlight=False)
    marked = has_styles(console)
    shown_texts = [] if as_json else list(render_texts(marked))
    with text_streams.open_output(output, private=private) as sink:
        # One person sees both streams: the coloured text is enough, if originals are beside it.
        is_same_screen = sink.terminal and console.is_terminal
        is_enough = not with_original or any(isinstance(text, Table) for text in shown_texts)
        for result, fields in zip(results, extra_fields or repeat({}, len(results)), strict=True):
            if as_json or not (is_same_screen and is_enough):
                write(
                    sink, result, as_json=as_json, with_original=with_original, extra_fields=fields
                )
    if results and not as_json:
        for text in [*shown_texts, render_legend(marked)]:
            _print(console, text)


def _print(console: "Console", text: "rich_text.Text | Table") -> None:
    """Prints a text in colour, with one line end, or texts side by side."""
    from rich.table import Table

    if isinstance(text, Table):
        console.print(text)
        return
    end = "" if text.plain.endswith("\n") else "\n"
    console.print(text, end=end, soft_wrap=not console.is_terminal)


def write_page(html: str, page: str, *, private: bool) -> None:
    """Writes the page of --html.

    Before the rest, because a reader of standard output may go before its end.
    """
    with text_streams.open_output(html, private=private, option="--html") as sink:
        sink.write(page)


def write_diff(sink: text_streams.Output, result: "Result | TextResult") -> None:
    """Writes the lines that a release changed.

    With the lines around them; nothing where none changed.
    """
    from difflib import unified_diff

    before, after = (text.splitlines() for text in (result.private.text, result.text))
    has_colours = sink.terminal and "NO_COLOR" not in os.environ
    # without the names of files
    for line in islice(unified_diff(before, after, lineterm="", n=1), 2, None):
        style = {"-": "red", "+": "green", "@": "cyan"}.get(line[0])
        sink.write((typer.style(line, fg=style) if has_colours and style else line) + "\n")
