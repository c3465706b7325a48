"""The command `measure`.

In: a file of private texts and a configuration. Out: figures with intervals, and no text.
Not here: the measures (`textveil_bench.measure`), and reading files and printing rows (`rates`).
"""

from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import console, evaluation, progress
from textveil.cli.decorators import verb
from textveil.cli.texts import Field
from textveil.errors import InputError
from textveil_bench.cli import rates

if TYPE_CHECKING:
    from textveil.config import Config


@verb(
    "textveil measure letters.txt --mechanism noise --epsilon 60",
    "textveil measure letters.txt --metrics all",
    (
        "textveil measure reviews.tsv --field sentence --limit 500 --profile paper-noise --metrics "
        "retention,mapping"
    ),
    "textveil measure letters.jsonl --mechanism d-chi-stencil -o mechanism.L=4 --epsilon 100 --by",
    "textveil measure letters.txt --profile paper-noise --json --output figures.json",
    panel=rates.PANEL,
)
def measure(
    config: "Config",
    file: rates.TextFile,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="NAME,...|all",
            help="See `textveil list measures`. The default is the quick ones; `all` may take minutes.",
        ),
    ] = None,
    field: Field = None,
    limit: evaluation.Limit = None,
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", help="For mapping: draws of each word.")
    ] = 1000,
    words: Annotated[
        int, typer.Option("--words", metavar="N", help="For mapping: number of distinct words.")
    ] = 200,
    by: rates.ByOption = False,
    every: Annotated[bool, typer.Option("--every", help="Also show the minor figures.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with all figures.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="FILE", help="Write all figures there, as --json prints them."
        ),
    ] = None,
) -> None:
    """Measure how much a release changes your texts, and how freely.

    The texts of a file are privatized. Only figures are printed or written, no texts.

    retention, cosine and oov (words outside the table) are about words; rouge-l and bleu about
    texts; mapping counts the possible outputs of a word (N_x, N_w, S_w), perplexity is how well a
    masked language model predicts the texts. The last two use a fixed sample of the words.
    """
    rates.require_judgeable(config)
    from textveil.evaluate.attack import Case
    from textveil.pipeline import Privatizer
    from textveil_bench.measure import check_metrics
    from textveil_bench.measure import measure as measured

    if metrics is None:
        names = tuple(rates.list_default_names("measure"))
    else:
        names = check_metrics(metrics.split(",") if metrics != "all" else None)
    evaluation.refuse_same_file(file, output)
    texts = evaluation.read_texts(file, field, limit)
    with progress.show_bars(unit=" words") as report:
        case = Case.create(Privatizer.from_config(config), texts)
        if not len(case.view.output_rows) and not case.view.name_count:
            raise InputError("no word of these texts is protected, so there is nothing to measure")
        measurements = measured(
            case,
            metrics=names,
            draws=draws,
            words=words,
            rng=evaluation.build_simulation_rng(config),
            report=report,
        )
    document = {**rates.build_run_info(config, file), **measurements.to_json()}
    if as_json:
        evaluation.write_json(document, None)
    else:
        rates.print_rates(document["rows"], by=by, every=every)
        for note in rates.list_notes(document):
            console.note(console.wrap(f"Note: {note}"))
    for name, reason in measurements.silent.items():
        console.note(console.wrap(f"{name}: not measured: {reason}"))
    if metrics is None:
        console.note(console.wrap(rates.format_skipped("measure", names, "--metrics")))
    if output is not None:
        evaluation.write_json(document, output)
