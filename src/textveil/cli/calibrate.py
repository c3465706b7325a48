"""The verb `table calibrate`.

In: public texts, a table and a language model. Out: the largest logit, which is Cape's clipping
bound, and quantiles.
Not here: how logits are measured (`models.calibration`), and the picture of them
(`textveil_bench.pictures`).
"""

import math
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli import console, evaluation, progress
from textveil.cli.console import say
from textveil.cli.decorators import verb
from textveil.cli.texts import Field
from textveil.config.extras import BENCH, import_library
from textveil.files import text_streams

if TYPE_CHECKING:
    from textveil.config import Config
    from textveil.models import LogitRange


@verb(
    "textveil table calibrate",
    "textveil table calibrate reviews.tsv --field sentence --limit 200",
    "textveil table calibrate news.txt --table minilm-s --output logits.json --plot logits.png",
    "textveil table calibrate news.txt --model FOLDER",
    options=("table",),
    default=None,
    complete=False,
)
def calibrate(
    config: "Config",
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|-",
            help="Public texts: .txt (one per line), .jsonl, .csv, .tsv, .parquet. Default: the "
            "letter of `textveil demo`.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="PATH",
            help="A masked language model, by folder or hub id. Default: the bundled one.",
        ),
    ] = None,
    field: Field = None,
    limit: evaluation.Limit = None,
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="FILE", help="Write all results to this file, as JSON."),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Write a histogram to this .png, .svg or .pdf file; needs textveil-bench.",
        ),
    ] = None,
) -> None:
    """Measure how large a language model's logits get on public texts. The mechanism cape needs that as its bound.

    Each word that is not on the public list is hidden once, and the model scores all words of the
    table in its place. The largest logit becomes a public part of the mechanism, so the texts must
    be public, too: they are not protected.
    """
    from textveil.cli import demo
    from textveil.models import Ragged, load_context, measure_logits
    from textveil.table import load_table
    from textveil.text import tokenize

    pictures: Any = None
    if plot is not None:
        pictures = import_library("textveil_bench.pictures", {"textveil_bench": BENCH})
        pictures.check_name(Path(plot))
    for path in texts or ():
        evaluation.refuse_same_file(path, output)
    samples = list(
        chain.from_iterable(evaluation.read_texts(path, field, limit) for path in texts or ())
    )[:limit]
    context = load_context(load_table(config.table.name), model)
    with progress.show_bars(unit=" words") as report:
        logits = measure_logits(
            context, Ragged.build(tokenize(samples or [demo.read_letter()])), report=report
        )
    _show_logits(logits)
    if not texts:
        console.note(
            console.wrap(
                "Note: measured on one short letter only; give files of public texts for a "
                "better bound."
            )
        )
    if output is not None:
        evaluation.write_json(logits.to_json(), output)
    if plot is not None:
        figure = pictures.draw_densities(
            {"all candidates": logits.candidates, "the best of each position": logits.best},
            lowest=logits.lowest,
            width=logits.width,
            mark=("largest", logits.largest),
            title=f"{logits.model}, table {logits.table}, {logits.positions:,} hidden words",
            scale="logit",
        )
        with text_streams.convert_write_errors():
            pictures.save(figure, Path(plot))


def _show_logits(logits: "LogitRange") -> None:
    """Prints the bound and the quantiles, and how to use them."""
    bound = f"{math.ceil(logits.largest * 100) / 100:.2f}"
    quantiles = logits.compute_quantiles()
    say(
        f"largest logit  {bound}  ({logits.model}, table {logits.table}, {logits.positions:,} "
        "hidden words)"
    )
    say(f"{'quantile':25}" + "".join(f"{share:>8}" for share in quantiles["best"]))
    for name, title in (("candidates", "all candidates"), ("best", "the best of each word")):
        say(f"{title:25}" + "".join(f"{value:8.2f}" for value in quantiles[name].values()))
    floor = f"{quantiles['candidates'][0.5]:.2f}"
    line = f"Use them as --mechanism cape -o mechanism.bound={bound} -o mechanism.floor={floor}"
    console.note(
        console.wrap(line + " (the floor is the median of all candidates; the paper takes 0)")
    )
    if (median := quantiles["best"][0.5]) <= 0:
        best = f"the median of the best is {median:.2f}"
        console.note(
            console.wrap(
                "Note: with a floor of 0, half of the positions give all words the same weight "
                f"({best})."
            )
        )
