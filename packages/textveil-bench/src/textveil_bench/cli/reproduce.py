"""The command `reproduce`.

In: the name of a figure or table of a paper. Out: our values beside the published ones, and which
claims hold.
Not here: the figures and tables, and their runs (`textveil_bench.reproduce`).
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from textveil.cli import evaluation, note, progress, say, verb
from textveil.errors import ConfigError, InputError
from textveil.files import text_streams
from textveil_bench.cli import rates
from textveil_bench.cli.bench import (
    PANEL,
    Folder,
    Limit,
    Processes,
    note_interrupt,
    parse_seeds,
)

if TYPE_CHECKING:
    from rich.table import Table

    from textveil_bench.reproduce.run import ReproductionResult

ALL_TARGETS = "all"
OUR_PROMPTS = "ours"
PROMPT_TEMPLATE = "template"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
UNUSED_URL = "http://127.0.0.1:9/v1"
"""Stands for the address of a file that is not served."""

OUTPUT_FOLDER = "reproduced"
INDEX_FILE = "index.html"

PlainData = Mapping[str, Any]


@verb(
    "textveil reproduce",
    "textveil reproduce stencil-fig3 --quick",
    "textveil reproduce stamp-table1 --folder corpora --processes 2 --output runs/stamp",
    "textveil reproduce all --folder corpora --dry-run",
    "textveil reproduce all --rows benchmarks/rows/reproduce --output pages",
    "textveil reproduce stencil-fig4 --upstream http://localhost:8000/v1 --model NAME",
    "textveil reproduce cape-table6 --upstream URL --model NAME --local-model local.gguf --dry-run",
    panel=PANEL,
    brief=(
        *("quick", "full", "hub", "folder", "output", "upstream", "model"),
        *("prompts", "most_requests", "chosen_panels", "dry_run"),
    ),
)
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|all",
            help="A figure or table; without it they are listed.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use tiny packaged data: minutes.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Use all of the data: hours.")] = False,
    hub: Annotated[
        bool,
        typer.Option("--hub", help="Use the paper's own models and tables; needs access to a hub."),
    ] = False,
    folder: Folder = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            metavar="DIR",
            help="The folder of rows and results. Existing rows are reused.",
        ),
    ] = OUTPUT_FOLDER,
    figures: Annotated[
        str | None,
        typer.Option(
            "--figures",
            metavar="DIR",
            help="Also write each figure there, as PNG and SVG, and its data as CSV.",
        ),
    ] = None,
    processes: Processes = None,
    stored: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="DIR",
            help="Show the results in the folder of an earlier run; runs nothing and needs no data.",
        ),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            "--upstream",
            metavar="URL|FILE.gguf",
            help="A language model, for panels that need one: an API's base URL, or a file.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model's name at that API.")
    ] = None,
    local_url: Annotated[
        str | None,
        typer.Option(
            "--local-url", metavar="URL", help="The API of a model that may see original texts."
        ),
    ] = None,
    local_model: Annotated[
        str | None,
        typer.Option(
            "--local-model",
            metavar="NAME|FILE.gguf",
            help="A model that may see original texts, for panels with a local model.",
        ),
    ] = None,
    prompts: Annotated[
        str,
        typer.Option(
            "--prompts",
            metavar="ours|FILE",
            help="The questions to models: ours, or a file; `template` prints ours as one.",
        ),
    ] = OUR_PROMPTS,
    most_requests: Annotated[
        int | None,
        typer.Option(
            "--most-requests", metavar="N", min=0, help="Stop asking the API after N requests."
        ),
    ] = None,
    chosen_panels: Annotated[
        list[str] | None,
        typer.Option(
            "--panel", metavar="NAME", help="Run only panels with this in their name; repeatable."
        ),
    ] = None,
    limit: Limit = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="N,...", help="Seeds in place of the target's.")
    ] = None,
    generative: Annotated[
        bool,
        typer.Option(
            "--generative",
            help="Also run the panels of a small language model; needs textveil-bench[generative].",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the planned runs, and run nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each figure or table.")
    ] = False,
) -> None:
    """Reproduce a figure or table of a paper.

    Our values are shown beside the published ones, and every claim of the paper is checked on ours.
    Without a hub, substitutes replace the paper's models and data; the results list the
    differences. Panels that need a language model run only if you name one. Rows are kept in the
    folder of --output, and an interrupted run continues there.
    """
    from textveil_bench.reproduce import targets

    if prompts == PROMPT_TEMPLATE:
        from textveil_bench.prompts import format_template

        say(format_template().rstrip("\n"))
        return
    if name is None:
        for target_name in targets.list_names():
            say(f"{target_name:14}{targets.load_target(target_name).title}")
        return
    if stored is not None and (dry_run or folder is not None):
        raise ConfigError(
            "--rows shows earlier results and runs nothing: leave out --dry-run and --folder"
        )
    if stored is not None and not Path(stored).is_dir():
        raise InputError("--rows must be the folder of an earlier run; there is no such folder")
    if quick and full:
        raise ConfigError("give --quick or --full, not both")
    check_models(upstream, model, local_url, local_model)
    selection = [
        targets.load_target(target_name)
        for target_name in (targets.list_names() if name == ALL_TARGETS else [name])
    ]
    from textveil.models import AnswerStore, Prompts, RequestRecorder
    from textveil_bench.report import select_overview
    from textveil_bench.reproduce.document import build_document
    from textveil_bench.reproduce.page import ShownTarget, build_drawings, render_index
    from textveil_bench.reproduce.run import (
        ReproductionOptions,
        StoredResults,
        build_file_stem,
        format_estimate,
        format_preview,
        list_panels,
        reproduce,
    )
    from textveil_bench.reproduce.verdict import find_budget_metrics, find_risk
    from textveil_bench.run import ANSWERS_FILE, Folders
    from textveil_bench.run import open_processes as workers

    if figures is not None and dry_run:
        raise ConfigError("--dry-run draws no figures: leave out --figures")
    wordings = None if prompts == OUR_PROMPTS else Prompts.read(Path(prompts))
    is_asking = upstream is not None and stored is None and not dry_run
    answers = AnswerStore.open(Path(output) / ANSWERS_FILE, most_requests) if is_asking else None
    recorder = RequestRecorder()
    with ExitStack() as stack:
        executor = stack.enter_context(workers(processes or os.cpu_count() or 1))
        endpoint, local = (
            None
            if source is None
            else stack.enter_context(open_model(source, its_name, serve=is_asking))
            for source, its_name in ((upstream, model), (local_url or local_model, local_model))
        )
        run_options = ReproductionOptions(
            scale="quick" if quick else "full" if full else "usual",
            hub=hub,
            endpoint=endpoint,
            local=local,
            prompts=wordings,
            generative=generative,
            panels=tuple(chosen_panels or ()),
            limit=limit,
            seeds=parse_seeds(seeds) or (),
            places=Folders(corpora=None if folder is None else Path(folder), answers=answers),
            executor=executor,
            stored=None if stored is None else StoredResults.read(Path(stored)),
        )
        panels = {
            target.name: [panel.name for panel in list_panels(target)] for target in selection
        }
        if run_options.panels:
            selection = [
                target for target in selection if any(map(run_options.selects, panels[target.name]))
            ]
        if not selection:
            raise ConfigError(
                "--panel must be part of a panel's name: "
                + "; ".join(dict.fromkeys(panel for names in panels.values() for panel in names))
            )
        index_entries: list[ShownTarget] = []
        keys: set[str] = set()
        for target in selection:
            if dry_run:
                for line in format_preview(target, Path(output), run_options, recorder):
                    say(line)
                continue
            with note_interrupt(output), progress.show_bars() as report:
                result = reproduce(target, Path(output), run_options, report=report)
            summary = build_document(result)
            base_path = Path(output) / build_file_stem(target, run_options)
            evaluation.write_json(summary, f"{base_path}.json")
            _write_page(result, summary, base_path, make_figure_folder(figures, base_path.name))
            row_keys = {row["key"] for row in result.rows}
            budget_metrics = find_budget_metrics(target, result.series)
            if result.series and (
                budget_metrics or not row_keys <= keys
            ):  # else an earlier target has shown them
                groups = select_overview(
                    result.series, find_risk(target, result.series), budget_metrics
                )
            else:
                groups = build_drawings(summary["tables"])
            keys |= row_keys
            index_entries.append(
                ShownTarget(document=summary, page=f"{base_path.name}.html", groups=groups)
            )
            if as_json:
                say(json.dumps(summary, ensure_ascii=False, allow_nan=False))
            else:
                _print_result(summary)
                note(
                    f"Written to {Path(output).name}: {base_path.name}.json, {base_path.name}.html."
                )
    if dry_run and upstream is not None and len(selection) > 1:
        say(f"in all: {format_estimate(recorder.estimate)}")
    if len(index_entries) > 1:
        with text_streams.open_output(str(Path(output) / INDEX_FILE)) as stream:
            stream.write(render_index(index_entries))
        note(f"Written to {Path(output).name}: {INDEX_FILE}, which leads to the page of each.")
    if answers is not None:
        counts = answers.read_counts()
        local_part = f", {counts.local:,} to the local model" if counts.local else ""
        note(
            f"{counts.sent:,} requests were sent{local_part}; {counts.kept:,} answers were there "
            f"already. All are kept in {ANSWERS_FILE}, readable for you alone."
        )


def check_models(
    upstream: str | None, model: str | None, local_url: str | None, local_model: str | None
) -> None:
    """Checks which language models are named.

    Raises:
        ConfigError: one is named by half, or originals would go to the remote model.
    """
    from textveil_bench.tasks.small_model import is_model_file

    if upstream is None and model is not None:
        raise ConfigError("give both --upstream and --model, or neither")
    if upstream is not None and model is None and not is_model_file(upstream):
        raise ConfigError("give both --upstream and --model, or neither")
    if local_url is None and local_model is not None and not is_model_file(local_model):
        raise ConfigError("--local-model must be a file FILE.gguf, or --local-url name its API")
    if local_url is not None and (local_model is None or is_model_file(local_model)):
        raise ConfigError("--local-url needs the model's name there: --local-model NAME")
    if (local_url or local_model) is not None and upstream is None:
        raise ConfigError("a local model only revises: name the other one, too, by --upstream")
    if local_url is not None and upstream is not None:
        host, other = (urlsplit(url).hostname for url in (local_url, upstream))
        if host == other and host not in LOOPBACK_HOSTS:
            raise ConfigError(
                "--local-url names the host of --upstream; a local model sees original texts, and "
                "must be on a machine of yours"
            )


@contextmanager
def open_model(source: str, model: str | None, *, serve: bool) -> Iterator[dict[str, Any]]:
    """Yields the options of an endpoint; a file is served meanwhile if it is to be asked."""
    from textveil_bench.tasks import small_model

    name = None if model is None or small_model.is_model_file(model) else model
    if small_model.is_model_file(source) and not serve:
        yield {"url": UNUSED_URL, "model": Path(source).stem, "local": True}
        return
    with small_model.open_endpoint(source, name) as options:
        yield options


def make_figure_folder(figures: str | None, name: str) -> Path | None:
    """Makes the folder of a target's figures, if they are asked for.

    Raises:
        OutputError: it cannot be made.
    """
    if figures is None:
        return None
    with text_streams.convert_write_errors():
        text_streams.make_folder(folder := Path(figures) / name)
    return folder


def _write_page(
    result: "ReproductionResult", summary: PlainData, base_path: Path, figures: Path | None
) -> None:
    """Writes a target's results and the figures of its rows as a page, and as files on request."""
    from textveil_bench.report import build_report, compose
    from textveil_bench.reproduce.page import build_sections
    from textveil_bench.reproduce.verdict import find_budget_metrics, find_risk
    from textveil_bench.rows import read_gallery

    keys = {row["key"] for row in result.rows}
    gallery_texts = [
        entry for entry in read_gallery([base_path.parent]) if entry.get("key") in keys
    ]
    with progress.show_bars(unit=" figures") as callback:
        title, extra_sections = result.target.title, list(build_sections(summary))
        risk_metric, budget_metrics = (
            find_risk(result.target, result.series),
            find_budget_metrics(result.target, result.series),
        )
        page = (
            build_report(
                result.series,
                gallery_texts,
                title=title,
                extra_sections=extra_sections,
                risk_metric=risk_metric,
                budget_metrics=budget_metrics,
                figures=figures,
                progress=callback,
            )
            if result.series
            else compose(title, extra_sections, figures=figures, progress=callback)
        )
    with text_streams.open_output(f"{base_path}.html") as stream:
        stream.write(page)


# ---- on a terminal -------------------------------------------------------------------------------------


def _print_result(summary: PlainData) -> None:
    say(f"{summary['title']}\n{summary['paper']}. {summary['shows'].strip()}")
    if summary["scale"] == "quick":
        from textveil_bench.reproduce.page import QUICK_NOTE

        say(f"\n{QUICK_NOTE}")
    for data in dict.fromkeys(cell["data"] for cell in summary["cells"]):
        cells = [cell for cell in summary["cells"] if cell["data"] == data]
        say(
            f"\n{data}: {cells[0]['examples']:,} examples, seeds "
            f"{', '.join(map(str, cells[-1]['seeds']))}"
        )
        rates.print_table(_build_cell_table(cells))
    for table in summary["tables"]:
        say(f"\n{table['title']}")
        rates.print_table(_build_plain_table(table["columns"], table["rows"]))
        _print_sentences("", table["notes"])
    reproduced = [
        comparison for comparison in summary["published"] if comparison["value"] is not None
    ]
    if reproduced:
        say("\nBeside the paper")
        rates.print_table(_build_comparison_table(reproduced))
    if missing := len(summary["published"]) - len(reproduced):
        say(
            f"\n{missing} of {len(summary['published'])} published values have no value of ours "
            "beside them."
        )
    if summary["claims"]:
        say("\nThe paper's claims in our rows (first less second, 95% interval)")
        rates.print_table(_build_claim_table(summary["claims"]))
    _print_sentences(
        "Not run", [f"{panel}: not run: {reason}" for panel, reason in summary["not_run"].items()]
    )
    _print_sentences("What differs from the paper", summary["differs"])
    _print_sentences("Where the paper is wrong, or cannot be right", summary["contradicts"])


def _build_cell_table(cells: Sequence[PlainData]) -> "Table":
    from textveil_bench.reproduce.page import format_value

    names = list(dict.fromkeys(figure["metric"] for cell in cells for figure in cell["figures"]))
    table = _create_table(["series", "budget", *names, "epsilon", "local DP"], words=1)
    for cell in cells:
        values = {figure["metric"]: figure for figure in cell["figures"]}
        table.add_row(
            cell["series"],
            format_value(cell["budget"]),
            *(_format_interval(values[name]) if name in values else "" for name in names),
            format_value(cell["epsilon"]["per_word"]),
            format_value(cell["epsilon"]["ldp"]),
        )
    return table


def _build_comparison_table(values: Iterable[PlainData]) -> "Table":
    table = _create_table(["ours", "metric", "source", "paper", "ours", ""], words=3)
    for comparison in values:
        interval = "" if comparison["value"] is None else _format_interval(comparison)
        table.add_row(
            comparison["series"],
            comparison["metric"],
            comparison["source"],
            rates.format_number(comparison["published"]),
            interval,
            comparison["says"],
        )
    return table


def _build_claim_table(claims: Iterable[PlainData]) -> "Table":
    table = _create_table(["", "data", "claim", "source", "what our rows say"], words=5)
    for claim in claims:
        table.add_row(
            claim["answer"], claim["data"], claim["claim"], claim["source"], claim["says"]
        )
    return table


def _build_plain_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
    from textveil_bench.reproduce.page import format_value

    table = _create_table(columns, words=1)
    for row in rows:
        table.add_row(*(format_value(value) for value in row))
    return table


def _create_table(columns: Sequence[str], *, words: int) -> "Table":
    """Creates a table with `words` text columns, followed by numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(
            column, overflow="fold", justify="left" if i < words else "right", no_wrap=i >= words
        )
    return table


def _format_interval(figure: PlainData) -> str:
    ends = (figure["low"], figure["high"])
    if None in ends or ends[0] == ends[1]:
        return rates.format_number(figure["value"])
    return (
        f"{rates.format_number(figure['value'])} ({rates.format_number(ends[0])} to "
        f"{rates.format_number(ends[1])})"
    )


def _print_sentences(title: str, sentences: Sequence[str]) -> None:
    if sentences:
        say(("\n" + title if title else "") + "".join(f"\n- {sentence}" for sentence in sentences))
