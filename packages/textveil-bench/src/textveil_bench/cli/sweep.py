"""The commands of `textveil sweep`.

In: a file of private texts, a configuration, values of one option. Out: a row of figures for each
value, and no text.
Not here: the measurement (`textveil_bench.tau`), and reading files (`textveil.cli.evaluation`).
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from textveil.cli import TypedOptions, console, evaluation, group, progress, say, verb
from textveil.cli.texts import Field
from textveil.errors import ConfigError
from textveil.files import text_streams
from textveil_bench.cli import rates
from textveil_bench.cli.bench import PANEL

sweep = group(
    "Vary one option, and measure the releases.",
    "textveil sweep tau letters.txt --profile paper-stamp --task self",
    panel=PANEL,
)


@verb(
    "textveil sweep tau letters.txt --profile paper-stamp --task 'what does the landlord want?'",
    (
        "textveil sweep tau questions.jsonl --field context --query question --profile paper-stamp "
        "--limit 100"
    ),
    "textveil sweep tau letters.txt --profile paper-stamp --taus 0.1,0.2,0.3 --output figure.svg",
    on=sweep,
    name="tau",
)
def sweep_tau(
    typed: TypedOptions,
    file: rates.TextFile,
    taus: Annotated[
        str, typer.Option("--taus", metavar="T,...", help="The thresholds, from -1 to 1.")
    ] = "0.3,0.4,0.5,0.6,0.7",
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="NAME",
            help="The field with the task of each text. Not kept secret.",
        ),
    ] = None,
    field: Field = None,
    limit: evaluation.Limit = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with all figures.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="FILE", help="Draw the figure there: a .png, .svg or .pdf."
        ),
    ] = None,
) -> None:
    """Measure similarity to the originals at each importance threshold (STAMP, figure 5).

    Every text is privatized once for each threshold tau. No texts are printed, only the mean cosine
    of their sentence vectors, the share of words in each group, and the mean budget. The groups
    need unequal budgets; if they are equal, 2:1:4:3 is used (groups.budgets=heuristic).
    """
    from textveil_bench import pictures

    if output is not None:
        pictures.check_name(Path(output))
    thresholds = _parse_thresholds(taus)
    if "protect.task" in typed.values and query is not None:
        raise ConfigError(
            "give --task for all texts, or --query for a field with each text's task, not both"
        )
    resolved = typed.resolve_config(protect__importance=None if query is None else "cosine")
    protect = resolved.protect if query is None else replace(resolved.protect, task=None)
    if protect.importance != "cosine" or (protect.task is None and query is None):
        raise ConfigError(
            "a sweep of tau needs a task: give --task TEXT, --task self or --query FIELD"
        )
    groups = resolved.groups
    if groups.budgets == "uniform":
        groups = replace(groups, budgets="heuristic")
    from textveil.pipeline import Privatizer
    from textveil_bench import tau

    evaluation.refuse_same_file(file, output)
    queries = None
    if query is None:
        texts = evaluation.read_texts(file, field, limit)
    else:
        texts, queries = rates.read_labelled_texts(file, field, query, limit)
    with progress.show_bars(unit=" texts") as report:
        rows = tau.measure_thresholds(
            texts,
            lambda tau: Privatizer.from_config(
                replace(resolved, groups=groups, protect=replace(protect, tau=tau)),
            ),
            thresholds,
            queries=queries,
            report=report,
        )
    plain_rows = [row.to_json() for row in rows]
    if as_json:
        evaluation.write_json({**rates.build_run_info(resolved, file), "rows": plain_rows}, None)
    else:
        _print_rows(plain_rows)
    if output is not None:
        figure = pictures.draw_thresholds(
            plain_rows, title=f"{resolved.mechanism.name}, {rows[0].texts:,} texts"
        )
        with text_streams.convert_write_errors():
            pictures.save(figure, Path(output))


def _parse_thresholds(typed: str) -> list[float]:
    try:
        thresholds = [float(part) for part in typed.split(",")]
    except ValueError:
        raise ConfigError("--taus must be numbers separated by commas, such as 0.3,0.5") from None
    if not all(-1 <= tau <= 1 for tau in thresholds):
        raise ConfigError("--taus must be from -1 to 1")
    return sorted(set(thresholds))


def _print_rows(rows: list[dict[str, Any]]) -> None:
    groups = list(rows[0]["shares"])
    say(
        f"{'tau':>5}{'similarity':>12}  {'95% interval':16}"
        + "".join(f"{g:>{len(g) + 2}}" for g in groups)
        + "    budget"
    )
    for row in rows:
        low, high = (
            end if isinstance(end, str) else f"{end:.3f}" for end in (row["low"], row["high"])
        )
        shares = "".join(f"{row['shares'][group]:>{len(group) + 2}.1%}" for group in groups)
        budget = row["budget"] if isinstance(row["budget"], str) else f"{row['budget']:.4g}"
        say(
            f"{row['tau']:>5.2f}{row['similarity']:>12.3f}  "
            f"{f'{low} to {high}':16}{shares}{budget:>10}"
        )
    console.note(
        console.wrap(
            "Note: similarity is the mean cosine of the sentence vectors of original and release; "
            "a group's column is its share of the words; the budget is the mean over all words "
            "that are not public."
        )
    )
