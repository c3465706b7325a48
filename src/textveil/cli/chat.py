"""The verb `chat`.

In: prompts as an argument, from a pipe or line by line. Out: restored answers on standard output;
what was sent, and its statement, on standard error.
Not here: the conversation (`gateway.conversation`), and the model (`models.endpoint`).
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import console, session_options, texts
from textveil.cli.decorators import verb
from textveil.config.extras import require
from textveil.errors import InputError, OutputError, TextveilError
from textveil.files import text_streams

if TYPE_CHECKING:
    from textveil.cli.statement_options import StatementForm
    from textveil.config import Config
    from textveil.gateway import Conversation
    from textveil.pipeline import Result

Upstream = Annotated[
    str,
    typer.Option(
        "--upstream",
        metavar="URL",
        help="The base URL of an OpenAI-compatible API, such as http://HOST:PORT/v1.",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        help="The longest wait for the model.",
        show_default=True,
    ),
]


@verb(
    'textveil chat "Write to anna@example.org that I am ill" --upstream http://localhost:8000/v1 --model NAME',
    "textveil chat --upstream http://localhost:8000/v1 --model NAME --transcript turns.jsonl",
    (
        "textveil chat - --upstream https://HOST/v1 --model NAME --mechanism placeholder "
        "--hide-sent < letter.txt"
    ),
    default="prompt",
    brief=(
        *("upstream", "model", "system", "transcript", "show_sent", "session", "store"),
        *("level", "dates", "names", "setting"),
    ),
)
def chat(
    config: "Config",
    statement_form: "StatementForm",
    upstream: Upstream,
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="NAME", help="The name of the model, as this API lists it."
        ),
    ],
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="PROMPT|-",
            help="One prompt, or - for all of standard input. Without it a terminal asks for one prompt after another.",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system", metavar="TEXT", help="The system message; protected like a prompt."
        ),
    ] = None,
    transcript: Annotated[
        str | None,
        typer.Option(
            "--transcript",
            metavar="FILE",
            help="Append each turn as a line of JSON, originals included. Readable by its owner only.",
        ),
    ] = None,
    show_sent: Annotated[
        bool,
        typer.Option(
            "--show-sent/--hide-sent",
            help="Print on standard error what is sent to the model.",
        ),
    ] = True,
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature",
            metavar="T",
            help="The sampling temperature, from 0 to 2; else the model's default.",
        ),
    ] = None,
    timeout: Timeout = 60.0,
    session: texts.SessionFile = None,
    store: session_options.Store = None,
) -> None:
    """Talk to a language model that sees protected prompts only; its answers are restored as they arrive.

    The API key is read from the environment variable TEXTVEIL_LLM_KEY. All prompts of a
    conversation share a session, so a value has the same placeholder in each of them; --session
    keeps it for further conversations. Without --profile or --mechanism the profile is `prompt`.
    """
    is_interactive = prompt is None and sys.stdin is not None and sys.stdin.isatty()
    if not is_interactive:
        text_streams.require_input(prompt)
    require("openai")
    from textveil.gateway import Conversation
    from textveil.models import Endpoint
    from textveil.pipeline import Privatizer

    endpoint = Endpoint(url=upstream, model=model, timeout=timeout, temperature=temperature)
    with ExitStack() as stack:
        transcript_sink = (
            None
            if transcript is None
            else stack.enter_context(text_streams.open_append(transcript))
        )
        sink = stack.enter_context(text_streams.open_output(None))
        chat_session = stack.enter_context(session_options.open_session(session, store))
        conversation = Conversation(
            Privatizer.from_config(config), endpoint, chat_session, system=system
        )
        if conversation.system is not None:
            _print_sent(conversation.system, show_sent, statement_form)
        if not is_interactive:
            _send_turn(
                conversation, _read_prompt(prompt), sink, transcript_sink, show_sent, statement_form
            )
            return
        for line in _ask_lines():
            try:
                _send_turn(conversation, line, sink, transcript_sink, show_sent, statement_form)
            except OutputError:
                raise
            except TextveilError as error:  # the conversation goes on
                console.note(f"textveil: error: {error}")


def _read_prompt(prompt: str | None) -> str:
    """Returns the prompt: the argument, or all of standard input."""
    if prompt is not None and prompt != "-":
        return text_streams.decode(os.fsencode(prompt))
    with text_streams.open_input(prompt) as stream:
        return text_streams.read_whole(stream)


def _ask_lines() -> Iterator[str]:
    """Asks for lines on a terminal, and yields non-empty ones."""
    lines = text_streams.read_lines(sys.stdin.buffer)
    while True:
        print("> ", end="", file=sys.stderr, flush=True)
        line = next(lines, None)
        if line is None:
            console.note("")
            return
        if line.strip():
            yield line


def _send_turn(
    conversation: "Conversation",
    prompt: str,
    sink: text_streams.Output,
    transcript_sink: text_streams.Output | None,
    show_sent: bool,
    statement_form: "StatementForm",
) -> None:
    """Sends one prompt and prints its answer.

    The transcript has the turn even if the answer breaks off.
    """
    if not prompt.strip():
        raise InputError("a prompt must not be empty")
    result, answer = conversation.ask(prompt)
    _print_sent(result, show_sent, statement_form)
    statement_form.say_repeated(conversation.repeat_count)
    turn_count, piece = len(conversation.turns), ""
    try:
        with closing(answer):
            for piece in answer:
                sink.write(piece)
    finally:
        if transcript_sink is not None:
            for turn in conversation.turns[turn_count:]:
                transcript_sink.write(text_streams.format_json_line(turn.to_json()))
        if piece and not piece.endswith("\n"):
            sink.write("\n")


def _print_sent(result: "Result", show_sent: bool, statement_form: "StatementForm") -> None:
    """Prints the prompt as sent, and its statement."""
    if show_sent:
        from rich.console import Console
        from rich.text import Text

        Console(stderr=True, highlight=False, soft_wrap=True).print(Text(result.text, style="dim"))
    statement_form.say_hidden(
        [result.released],
        [result.guarantee],
        earlier=result.sent_earlier,
        unmeasured=result.unmeasured,
    )
