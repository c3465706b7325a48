"""The verb `protect`.

In: a prompt; files. Out: the prompt with what is private in it hidden, and what was hidden, by type
and number; with --check the places of what would be hidden in the files.
Not here: what is found (`textveil.protect`), how answers are restored (`restore`), and how places
are reported (`check`).
"""

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import session_options, texts
from textveil.cli.check import PlaceReport, run_check
from textveil.cli.decorators import verb
from textveil.errors import ConfigError

if TYPE_CHECKING:
    from textveil.cli.statement_options import StatementForm
    from textveil.config import Config


class TextWriter(StrEnum):
    """The writer of a text; see `session.Source`."""

    user = "user"
    tool = "tool"
    answer = "answer"


@verb(
    'textveil protect "Ask Maria Silva (maria@example.org) about the lease"',
    'textveil protect "Ask Maria Silva (maria@example.org) about the lease" --session lease.session',
    "textveil protect letter.txt --session lease.session",
    "textveil protect letter.txt --session anna/lease --store sqlite:///veil.db",
    "textveil protect customers.csv --diff",
    "textveil protect prompts.txt --lines --json",
    'textveil protect "Who was Marie Curie?" --level names',
    "textveil protect --check letter.txt notes.csv",
    default="prompt",
    brief=(
        *("session", "store", "output", "lines", "as_json", "diff", "source"),
        *("check", "level", "names", "setting"),
    ),
)
def protect(
    config: "Config",
    statement_form: "StatementForm",
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT|-|FILE",
            help="A text, a file with one, or - for standard input; with --check files and "
            "folders.",
            show_default=False,
        ),
    ] = None,
    session: texts.SessionFile = None,
    store: session_options.Store = None,
    output: texts.Output = None,
    lines: texts.Lines = False,
    as_json: texts.AsJson = False,
    with_original: texts.WithOriginal = False,
    diff: texts.Diff = False,
    source: Annotated[
        TextWriter,
        typer.Option(
            "--source",
            metavar="user|tool|answer",
            help="The writer of the text: you, a tool or a page, or a model. With --session, "
            "answers are restored into addresses that you or tools wrote, and into those of "
            "internal hosts that you named.",
        ),
    ] = TextWriter.user,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Hide nothing, and print FILE:LINE:COLUMN: TYPE for all that is private in the "
            "files. Exit status 1 if there is anything, 0 if not, 2 after an error.",
        ),
    ] = False,
    report: Annotated[
        PlaceReport,
        typer.Option(
            "--report",
            metavar="lines|json|github|sarif",
            help="With --check, the form of the places: lines, JSON lines, annotations of a GitHub "
            "workflow, or SARIF.",
        ),
    ] = PlaceReport.lines,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="With --check, leave out the places that this file accepts. It holds no value.",
        ),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Accept what is in the files now: write it to --baseline."),
    ] = False,
) -> None:
    """Hide what is private in a prompt; the rest stays unchanged.

    E-mail addresses, telephone numbers, keys and the like become placeholders, and so do names of
    private persons, of their homes and of their employers. All other words stay, and nothing is
    promised for them. A file is one prompt; JSON, CSV, XML and HTML stay valid. The result is
    printed; nothing is sent anywhere. With --session `textveil restore` puts the originals back
    into the answer. Without --profile, --mechanism or a --config that names one, the profile is
    `prompt`.
    """
    if check:
        unused = {
            "--session": session, "--store": store, "--lines": lines, "--diff": diff,
            "--with-original": with_original, "--source": source is not TextWriter.user,
            "--statement, --explain or --quiet": statement_form.form != "summary",
        }  # fmt: skip
        if needless := [name for name, value in unused.items() if value]:
            raise ConfigError(f"--check hides nothing, so leave out {', '.join(needless)}")
        form = PlaceReport.json if as_json else report
        run_check(config, text or (), form, output=output, baseline=baseline, accept=accept)
        return
    if baseline is not None or accept or report is not PlaceReport.lines:
        raise ConfigError("--baseline, --accept and --report go with --check")
    if text is not None and len(text) > 1:
        raise ConfigError(
            "textveil protect takes one argument; put a text of several words in quotes"
        )
    prompt = None if text is None else text[0]
    texts.check_files(
        prompt,
        output,
        session,
        store=store,
        whole=not lines,
        files="`textveil corpus run --profile prompt`",
    )
    results = texts.release(
        partial(texts.privatize_words, config, session=session, store=store, source=source.value),
        prompt,
        output=output,
        whole=not lines,
        as_json=as_json,
        with_original=with_original,
        diff=diff,
    )
    outcomes = [
        (result.released, result.guarantee, result.sent_earlier, result.unmeasured)
        for result in results
    ]
    statement_form.say_hidden(
        [released for released, *_ in outcomes],
        [guarantee for _, guarantee, *_ in outcomes],
        earlier=sum(earlier for *_, earlier, _ in outcomes),
        unmeasured={name for *_, names in outcomes for name in names},
        as_json=as_json,
    )
