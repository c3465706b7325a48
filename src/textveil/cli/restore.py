"""The verbs `restore`, for answers, and `repair`, for releases.

In: arguments. Out: texts on standard output.
Not here: what is put back (`session.restore`), the session's file (`session`), what a model is
asked (`models`).
"""

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from textveil.cli import console, progress, session_options
from textveil.cli.decorators import verb
from textveil.cli.texts import Output
from textveil.config.extras import require
from textveil.errors import ConfigError
from textveil.files import text_streams


class RestoreScope(StrEnum):
    """The places in which originals are put; see `session.restore`."""

    text = "text"
    everywhere = "everywhere"


@verb(
    'textveil protect "Ask Maria Silva (maria@example.org) about the lease" --session lease.session',
    'textveil restore "I wrote to <EMAIL_1>." --session lease.session',
    "printf 'I wrote to <EMAIL_1>.\\n' | textveil restore - --session lease.session",
)
def restore(
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="FILE",
            help="The file that `textveil protect --session` or `privatize --session` wrote; with --store, the name "
            "of a session in it.",
        ),
    ],
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT|-|FILE",
            help="The answer, a file, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    json_escape: Annotated[
        bool,
        typer.Option(
            "--json-escape", help="The answer is JSON: escape the originals, so that it stays JSON."
        ),
    ] = False,
    where: Annotated[
        RestoreScope,
        typer.Option(
            "--where",
            metavar="text|everywhere",
            help="Restore originals in the text, but not in an address that did not hold them, "
            "because opening the answer may send them to others; or everywhere.",
        ),
    ] = RestoreScope.text,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Restore originals also in addresses of this host; *.HOST for all its "
            "subdomains. Repeatable.",
            show_default=False,
        ),
    ] = None,
    store: session_options.Store = None,
) -> None:
    """Put the originals back into an answer, while it arrives.

    Placeholders are replaced, and names that stand for exactly one original. Nothing leaves this
    machine. What is printed is as private as the original text.
    """
    text_streams.require_input(text)
    from textveil.session.session_file import load

    with ExitStack() as stack:
        opened_session = (
            load(session)
            if store is None
            else stack.enter_context(session_options.open_session(session, store, new=False))
        )
        assert opened_session is not None
        escape: Literal["json", "none"] = "json" if json_escape else "none"
        restorer = opened_session.restorer(escape=escape, where=where.value, hosts=host or ())
        sink = stack.enter_context(text_streams.open_output(None))
        if text_streams.is_text(text):
            with text_streams.open_texts(text) as texts:
                sink.write("".join(map(restorer.feed, texts)) + restorer.close() + "\n")
        else:
            with text_streams.open_input(text) as stream:
                for piece in text_streams.read_pieces(stream):
                    sink.write(restorer.feed_bytes(piece))
                sink.write(restorer.close())
    if restorer.blocked_count:
        left = _describe_left(
            restorer.blocked_count, "placeholder or name", "placeholders or names"
        )
        console.note(
            f"textveil: {left}, in addresses that did not hold the originals; --host HOST trusts a "
            "host, and --where everywhere restores them in every address"
        )
    if restorer.partial_count:
        console.note(
            f"textveil: {_describe_left(restorer.partial_count, 'name', 'names')}, as parts of "
            "longer names of other people"
        )


def _describe_left(n: int, singular: str, plural: str) -> str:
    return f"{n:,} {f'{singular} was' if n == 1 else f'{plural} were'} left as sent"


@verb(
    'textveil repair "<WORD_1> owe the bank pound" --upstream http://127.0.0.1:8080/v1 --model NAME',
    (
        "textveil repair released.txt --upstream http://127.0.0.1:8080/v1 --model NAME --output "
        "repaired.txt"
    ),
)
def repair(
    upstream: Annotated[
        str,
        typer.Option(
            "--upstream",
            metavar="URL",
            help="The base URL of an OpenAI-compatible API, such as http://HOST:PORT/v1.",
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="NAME", help="The name of the model, as this API lists it."
        ),
    ],
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT|-|FILE",
            help="A release: a text, a file with one per line, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="Take the whole file, or all of standard input, as one text."),
    ] = False,
    attempts: Annotated[
        int,
        typer.Option(
            "--attempts",
            metavar="N",
            help="The most attempts to get a text that keeps all placeholders.",
        ),
    ] = 2,
    prompts: Annotated[
        str | None,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help="Your own wording: the entry repair of a YAML file of prompts.",
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Let a language model make released texts read well. Never give it an original.

    The text is sent unchanged. The API key is read from TEXTVEIL_LLM_KEY. The statement of the
    release holds for the repaired text, too. If the model changes the placeholders of a text each
    time, that text stays unchanged; a warning says how many there are.
    """
    text_streams.require_input(text)
    require("openai")
    from textveil.models import COHERENCE_PROMPT, Endpoint, Prompts
    from textveil.models import repair as repair_all

    endpoint = Endpoint(url=upstream, model=model)
    prompt = None if prompts is None else Prompts.read(Path(prompts)).find("repair")
    if prompts is not None and prompt is None:
        raise ConfigError("--prompts must have an entry repair, and this file lacks it")
    with text_streams.open_texts(text, whole=whole, output=output) as source:
        texts, mark = list(source), source.mark
    with progress.show_bars(unit=" texts") as report:
        repaired = repair_all(
            texts,
            endpoint,
            attempts=attempts,
            prompt=prompt or COHERENCE_PROMPT,
            report=report,
        )
    lines = not whole and not text_streams.is_text(text)
    with text_streams.open_output(output) as sink:
        sink.write("" if sink.terminal else mark)
        for repaired_text in repaired:
            line = " ".join(repaired_text.splitlines()) if lines else repaired_text
            sink.write(line if line.endswith("\n") else line + "\n")
