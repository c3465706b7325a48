"""The verb `measure`.

In: a file of private texts and a configuration. Out: figures with intervals, and no text.
Not here: what is measured (`textveil.evaluate.measure`), and how a file is read and rows are shown (`evaluation`).
"""

from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import evaluation, progress, shell
from textveil.cli.verbs import verb
from textveil.config.extras import require
from textveil.errors import InputError

if TYPE_CHECKING:
    from textveil.config import Config


@verb(
    "textveil measure letters.txt --mechanism noise --epsilon 60",
    "textveil measure reviews.tsv --field sentence --limit 500 --epsilon 60 --metrics retention,rouge-l,mapping",
    "textveil measure letters.jsonl --mechanism d-chi-stencil -o mechanism.L=4 --epsilon 100 --by",
    "textveil measure letters.txt --epsilon 60 --json --output figures.json",
)
def measure(
    config: "Config",
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="Texts: .txt (one a line), .jsonl, .csv, .tsv, .parquet.", show_default=False
        ),
    ],
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            metavar="NAME,...",
            help="Of retention, cosine, oov, rouge-l, bleu, mapping and perplexity; all is each of them.",
        ),
    ] = "all",
    field: Annotated[str | None, typer.Option("--field", "--column", metavar="NAME", help="Where texts are.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="Only the first N texts.")] = None,
    draws: Annotated[int, typer.Option("--draws", metavar="N", help="For mapping: releases of each word.")] = 1000,
    words: Annotated[int, typer.Option("--words", metavar="N", help="For mapping: distinct words looked at.")] = 200,
    by: Annotated[bool, typer.Option("--by", help="Also by group, word frequency and text length.")] = False,
    every: Annotated[bool, typer.Option("--every", help="Also the lesser figures.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with all figures.")] = False,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE", help="Write all figures there, as --json prints them.")
    ] = None,
) -> None:
    """Privatize the texts of a file and measure the release: how much is changed, and how freely?

    Nothing of the texts is printed or written, only figures. retention, cosine and oov (words outside the table) are of
    words; rouge-l and bleu of texts; mapping is how many outputs a word may have (N_x, N_w, S_w), and perplexity how
    the texts read to a masked language model. The last two look at a part of the words, always the same.
    """
    require("scipy", "rapidfuzz", "sacrebleu")
    from textveil.evaluate.attack import Case
    from textveil.evaluate.measure import check
    from textveil.evaluate.measure import measure as measured
    from textveil.pipeline import Privatizer

    names = check(metrics.split(",") if metrics != "all" else None)
    evaluation.refuse_same(file, output)
    texts = evaluation.texts(file, field, limit)
    case = Case.of(Privatizer.from_config(config), texts)
    if not len(case.view.drawn):
        raise InputError("the texts must have a protected word, and have none")
    with progress.bars(lambda _, done: f"{done:,}", " words") as report:
        found = measured(
            case, metrics=names, draws=draws, words=words, rng=evaluation.simulation(config), report=report
        )
    document = {**evaluation.circumstances(config, file), **found.to_json()}
    if as_json:
        evaluation.write_json(document, None)
    else:
        evaluation.show(document["rows"], by=by, every=every)
        for note in evaluation.notes(document):
            shell.note(shell.wrap(f"Note: {note}"))
    for name, reason in found.silent.items():
        shell.note(shell.wrap(f"{name}: not measured: {reason}"))
    if output is not None:
        evaluation.write_json(document, output)
