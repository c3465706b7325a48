"""The verb `paraphrase`: texts written anew by a local language model.

In: arguments. Out: texts on standard output, statements on standard error.
Not here: how they are written (`pipeline.paraphrase`).
"""

import json
from typing import Annotated

import typer

from textveil.cli import console
from textveil.cli.decorators import verb
from textveil.cli.texts import Output
from textveil.errors import ConfigError
from textveil.files import text_streams


@verb(
    'textveil paraphrase "Maria Silva moved to Antwerp" --model models/flan-t5 --epsilon 500',
    "textveil paraphrase notes.txt --model models/gpt2 --temperature 1.5 --output written.txt",
)
def paraphrase(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="FOLDER|ID",
            help="A causal or encoder-decoder language model of transformers: a folder, or a hub "
            "id. It runs on this machine.",
        ),
    ],
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT|-|FILE",
            help="The text, a file with a text per line, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", metavar="X", help="Local DP of a whole text.", min=0),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature", metavar="T", help="That of the draws, in place of --epsilon.", min=0
        ),
    ] = None,
    tokens: Annotated[
        int, typer.Option("--tokens", metavar="N", help="Most tokens of a text.", min=1)
    ] = 128,
    width: Annotated[
        float,
        typer.Option(
            "--width", metavar="W", help="Logits count to this distance below the largest.", min=0
        ),
    ] = 10.0,
    bounds: Annotated[
        str | None,
        typer.Option(
            "--bounds",
            metavar="LOW,HIGH",
            help="Clip logits to two numbers instead, as the paper does.",
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            metavar="TEXT",
            help="The text that the model reads; {text} stands for yours.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Repeat the draws; no protection against anyone who knows it.",
            min=0,
        ),
    ] = None,
    output: Output = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print the whole statement.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a text per line.")] = False,
) -> None:
    """Write texts anew with a local language model, with local DP for whole texts.

    Every token is drawn from clipped logits, as in DP-Prompt. The epsilon of a text is that of a
    token times --tokens; it is large where the text reads well.
    """
    text_streams.require_input(text)
    from textveil.pipeline import Paraphraser
    from textveil.pipeline.paraphrase import PROMPT

    paraphraser = Paraphraser(
        model=model,
        epsilon=epsilon,
        temperature=temperature,
        tokens=tokens,
        width=width,
        bounds=None if bounds is None else _read_bounds(bounds),
        prompt=PROMPT if prompt is None else prompt,
        seed=seed,
    )
    with text_streams.open_texts(text, output=output) as source:
        texts = list(source)
    results = paraphraser.paraphrase(texts)
    with text_streams.open_output(output) as sink:
        for result in results:
            line = json.dumps(result.to_json(), ensure_ascii=False) if as_json else result.text
            sink.write(line + "\n")
    if results and not as_json:
        console.note(results[0].explain() if explain else results[0].summary())


def _read_bounds(bounds: str) -> tuple[float, float]:
    try:
        low, high = map(float, bounds.split(","))
    except ValueError as error:
        raise ConfigError("--bounds must be two numbers with a comma between them") from error
    return low, high
