"""The verb `protect`.

In: a prompt. Out: the prompt with what is private in it hidden; what was hidden, by type and
number.
Not here: what is found (`textveil.protect`), and how answers are restored (`restore`).
"""

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import session_options, texts
from textveil.cli.decorators import verb

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
    default="prompt",
    brief=(
        *("session", "store", "output", "lines", "as_json", "diff", "source"),
        *("level", "dates", "names", "setting"),
    ),
)
def protect(
    config: "Config",
    statement_form: "StatementForm",
    text: texts.Text = None,
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
) -> None:
    """Hide what is private in a prompt; the rest stays unchanged.

    E-mail addresses, telephone numbers, keys and the like become placeholders, and so do names of
    private persons, of their homes and of their employers. All other words stay, and nothing is
    promised for them. A file is one prompt; JSON, CSV, XML and HTML stay valid. The result is
    printed; nothing is sent anywhere. With --session `textveil restore` puts the originals back
    into the answer. Without --profile, --mechanism or a --config that names one, the profile is
    `prompt`.
    """
    texts.check_files(
        text,
        output,
        session,
        store=store,
        whole=not lines,
        files="`textveil corpus run --profile prompt`",
    )
    results = texts.release(
        partial(texts.privatize_words, config, session=session, store=store, source=source.value),
        text,
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
