"""The verbs `restore` and `repair`: what is done with an answer, and with a release.

In: arguments. Out: texts on standard output.
Not here: what is put back (`session.restore`), the session's file (`session`), what a model is asked (`models`).
"""

from typing import Annotated

import typer

from textveil.cli import progress
from textveil.cli.verbs import verb
from textveil.config.extras import require
from textveil.files import streams


@verb(
    'textveil privatize "Anna owes the bank" --mechanism placeholder --session letter.session',
    'textveil restore "Dear <WORD_1>, how much?" --session letter.session',
    "printf 'Dear <WORD_1>,\\n' | textveil restore - --session letter.session",
)
def restore(
    session: Annotated[
        str, typer.Option("--session", metavar="FILE", help="The file of `textveil privatize --session`.")
    ],
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT|-|FILE",
            help="An answer, an existing file, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    json_escape: Annotated[
        bool,
        typer.Option("--json-escape", help="The answer is JSON: write what is put back as the inside of its strings."),
    ] = False,
) -> None:
    """Put the originals back into an answer, as it comes: placeholders, and names that stand for one original only.

    Nothing leaves this machine. What is printed is as private as the original text.
    """
    streams.require_input(text)
    from textveil.session import store

    restorer = store.load(session).restorer(escape="json" if json_escape else "none")
    with streams.output(None) as sink:
        if text is not None and streams.is_text(text):
            with streams.texts(text) as given:
                sink.write("".join(map(restorer.feed, given)) + restorer.close() + "\n")
            return
        with streams.opened(text) as stream:
            for piece in streams.read_pieces(stream):
                sink.write(restorer.feed_bytes(piece))
            sink.write(restorer.close())


@verb(
    'textveil repair "<WORD_1> owe the bank pound" --url http://127.0.0.1:8080/v1 --model NAME',
    "textveil repair released.txt --url http://127.0.0.1:8080/v1 --model NAME --output repaired.txt",
)
def repair(
    url: Annotated[
        str,
        typer.Option(
            "--url", metavar="URL", help="Where an OpenAI-compatible API begins; TEXTVEIL_LLM_KEY is its key."
        ),
    ],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model's name there.")],
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT|-|FILE",
            help="What was released: a text, an existing file with one per line, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Take all of the input as one text.")] = False,
    attempts: Annotated[
        int, typer.Option("--attempts", metavar="N", help="How often to ask until all placeholders are there.")
    ] = 2,
    output: Annotated[str | None, typer.Option("--output", metavar="FILE", help="Write there, all or nothing.")] = None,
) -> None:
    """Let a language model make released texts read well; never give it an original.

    What is given is sent to the endpoint as it is. The statement of the release holds for the repaired text too. A text
    whose placeholders the model changes each time stays as it was, and a warning says how many those are.
    """
    streams.require_input(text)
    require("openai")
    from textveil.models import Endpoint
    from textveil.models import repair as repair_all

    endpoint = Endpoint(url=url, model=model)
    with streams.texts(text, whole=whole, output=output) as given:
        texts = list(given)
    with progress.bars(unit=" texts") as report:
        repaired = repair_all(texts, endpoint, attempts=attempts, report=report)
    lines = not whole and (text is None or not streams.is_text(text))
    with streams.output(output) as sink:
        for each in repaired:
            line = " ".join(each.splitlines()) if lines else each
            sink.write(line if line.endswith("\n") else line + "\n")
