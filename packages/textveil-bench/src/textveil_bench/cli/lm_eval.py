"""The command `lm-eval`.

In: names of tasks, a model, a configuration. Out: metrics, and the statement of the releases; no
text.
Not here: the evaluation (`textveil_bench.lm_eval`).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli import TypedOptions, console, evaluation, progress, say, verb
from textveil.errors import ConfigError
from textveil_bench.cli import rates
from textveil_bench.cli.bench import PANEL, note_interrupt, parse_seeds, print_score_rows

if TYPE_CHECKING:
    from textveil_bench.spec import Sweep

RISK_METRICS = ("Pr@5",)
"""Metrics that a grid's table shows in any case: the risk in d-chi-STENCIL's figures."""


@verb(
    (
        "textveil lm-eval --tasks sst2,qnli --model_args pretrained=FOLDER --epsilon 60 --cache "
        "releases"
    ),
    "textveil lm-eval --tasks mmlu --num_fewshot 5 --mechanism rankcape --epsilon 8 --dry-run",
    "textveil lm-eval --tasks mine --include_path tasks --fields mine=title,body --model "
    "local-completions --model_args model=NAME,base_url=URL --mechanism rankcape --epsilon 8 "
    "--output found.json",
    (
        "textveil lm-eval --tasks sst2,qnli --model_args pretrained=FOLDER --grid stencil-fig2 "
        "--output runs/fig2"
    ),
    panel=PANEL,
    complete=False,
)
def lm_eval(
    typed: TypedOptions,
    tasks: Annotated[
        str,
        typer.Option(
            "--tasks", metavar="NAME,...", help="Tasks, groups, or patterns such as 'mmlu_*'."
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="KIND",
            help="The kind of model, as lm_eval calls it: hf, local-completions, ...",
        ),
    ] = "hf",
    model_args: Annotated[
        str,
        typer.Option(
            "--model_args",
            "--model-args",
            metavar="NAME=VALUE,...",
            help="Its arguments, as lm_eval takes them.",
        ),
    ] = "",
    num_fewshot: Annotated[
        int | None,
        typer.Option(
            "--num_fewshot", "--num-fewshot", metavar="N", help="Number of examples in each prompt."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="Take only N documents of each task.")
    ] = None,
    batch_size: Annotated[
        str | None,
        typer.Option(
            "--batch_size", "--batch-size", metavar="N|auto", help="Number of requests at once."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME", help="The device of the model: cpu, cuda."),
    ] = None,
    include_path: Annotated[
        str | None,
        typer.Option(
            "--include_path",
            "--include-path",
            metavar="FOLDER",
            help="A folder with task files of your own.",
        ),
    ] = None,
    chat: Annotated[
        bool,
        typer.Option(
            "--apply_chat_template",
            "--apply-chat-template",
            help="Apply the chat template of the model.",
        ),
    ] = False,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--fields",
            metavar="TASK=FIELD,...",
            help="Document fields shown in prompts, if the template does not say.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="TASK=FIELD,...",
            help="Fields that are shown unchanged, not privatized.",
        ),
    ] = None,
    keep_choices: Annotated[
        bool,
        typer.Option(
            "--keep-choices", help="Show answer options and endings unchanged, not privatized."
        ),
    ] = False,
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="FOLDER",
            help="Keep releases there, for other models and interrupted runs.",
        ),
    ] = None,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline", help="Evaluate on the originals, too; only for models on this machine."
        ),
    ] = False,
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid",
            metavar="FILE|NAME",
            help="Run the mechanisms and attacks of a sweep, or of a paper's figure; rows into --output.",
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", metavar="N,...", help="With --grid: seeds in place of its own."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="NAME", help="With --grid: run only this entry; repeatable."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be privatized, and run nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with everything.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="FILE|DIR",
            help="Write that object there; with --grid, the folder of rows.",
        ),
    ] = None,
) -> None:
    """Evaluate a language model on privatized documents.

    The evaluation is that of lm-evaluation-harness. Every document and every few-shot example, with
    its answer options, is privatized before it goes into a prompt; labels stay. The model sees
    nothing else. With --grid every mechanism and budget of a sweep is attacked on the releases that
    the model answers on. Needs pip install 'textveil-bench[lm-eval]'.
    """
    from textveil_bench.lm_eval import EvaluationOptions, build_grid, evaluate, preview
    from textveil_bench.lm_eval.fields import parse_fields

    options = EvaluationOptions(
        tasks=tuple(name.strip() for name in tasks.split(",") if name.strip()),
        include_path=include_path,
        model=model,
        model_args=model_args,
        batch_size=batch_size,
        device=device,
        num_fewshot=num_fewshot,
        limit=limit,
        fields=parse_fields("--fields", fields or []),
        keep=parse_fields("--keep", keep or []),
        keep_choices=keep_choices,
        chat=chat,
        baseline=baseline,
    )
    if grid is not None:
        _run_grid(build_grid(grid, options), typed, output, seeds, only or [], dry_run, as_json)
        return
    if seeds is not None or only:
        raise ConfigError("--seeds and --only are for --grid")
    config = typed.resolve_config()
    folder = None if cache is None else Path(cache)
    if dry_run:
        document = preview(config, options, folder)
    else:
        document = evaluate(config, options, folder, partial(progress.show_bars, unit=" documents"))
    if as_json:
        evaluation.write_json(document, None)
    else:
        _show(document)
    if output is not None:
        evaluation.write_json(document, output)


def _run_grid(
    sweep: "Sweep",
    typed: TypedOptions,
    output: str | None,
    seeds: str | None,
    only: list[str],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Runs or previews a grid; its rows are for `textveil report` and `textveil bench export`."""
    from textveil_bench import run
    from textveil_bench.headlines import format_headlines

    if typed.values or typed.settings:
        raise ConfigError(
            "--grid has its own mechanisms and budgets: leave out --mechanism, --epsilon, -o and "
            "the like, or write them into a sweep of your own"
        )
    sweep = sweep.select_part(seeds=parse_seeds(seeds), only=only)
    if dry_run:
        for line in run.format_preview(
            sweep, None if output is None else Path(output), run.Folders()
        ):
            say(line)
        return
    if output is None:
        raise ConfigError("give --output DIR, the folder for the rows, or --dry-run")
    with note_interrupt(output), progress.show_bars() as report:
        rows = run.run(sweep, Path(output), report=report)
    if as_json:
        print_score_rows(rows)
        return
    for line in format_headlines(rows, RISK_METRICS):
        say(line)
    console.note(
        console.wrap(
            f"{len(rows):,} rows are in {Path(output).name}. `textveil report` draws them."
        )
    )


def _show(document: Mapping[str, Any]) -> None:
    if "results" in document:
        columns = {
            "task": "task",
            "metric": "metric",
            "value": "value",
            "stderr": "stderr",
            "n": "n",
        }
        if any("baseline" in row for row in document["results"]):
            columns |= {"baseline": "originals"}
        _print_table(document["results"], columns)
        console.note(console.wrap(document["guarantee"]["statement"]))
    else:
        names = "task", "privatized", "kept", "documents", "num_fewshot", "examples", "words"
        _print_table(document["tasks"], {name: name for name in names})
        console.note(f"{document['to_draw']:,} releases would be drawn.")
    for task in document["tasks"]:
        if task["kept"]:
            console.note(f"{task['task']}: not privatized: {', '.join(task['kept'])}.")


def _print_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name, heading in columns.items():
        table.add_column(
            heading, justify="left" if isinstance(rows[0][name], str | list) else "right"
        )
    for row in rows:
        table.add_row(*(_format_value(row[name]) for name in columns))
    rates.print_table(table)


def _format_value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, float):
        return rates.format_number(value)
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
