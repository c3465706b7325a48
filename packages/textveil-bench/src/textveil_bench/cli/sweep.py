"""The command `sweep`.

In: a file of private texts, a configuration, values of one option. Out: a row of figures for each
value, and no text.
Not here: the measurement (`textveil_bench.option_sweep`), and sweeps over data sets (`bench`).
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli import SHARED_OPTIONS, TypedOptions, console, evaluation, progress, verb
from textveil.cli.texts import Field
from textveil.errors import ConfigError
from textveil.files import text_streams
from textveil_bench.cli import rates
from textveil_bench.cli.bench import PANEL

if TYPE_CHECKING:
    from textveil.config import Config


@verb(
    "textveil sweep letters.txt --vary mechanism.eta=40,80,160 --mechanism noise --attack bayes",
    "textveil sweep letters.txt --vary epsilon=2,4,8 --mechanism rankcape --output figure.svg",
    (
        "textveil sweep questions.jsonl --vary protect.tau=0.3,0.5,0.7 --field context --query "
        "question --profile paper-stamp --limit 100"
    ),
    "textveil sweep letters.txt --vary 'groups.budgets=2,1,4,3; 1,1,1,1' --profile paper-stamp",
    panel=PANEL,
    complete=False,
    brief=(
        "vary",
        "attack",
        "mechanism",
        "epsilon",
        "profile",
        "setting",
        "field",
        "query",
        "limit",
        "as_json",
        "output",
    ),
)
def sweep(
    typed: TypedOptions,
    file: rates.TextFile,
    vary: Annotated[
        str,
        typer.Option(
            "--vary",
            metavar="OPTION=V,V,...",
            help="The option and its values; separated by ; where a value has commas.",
            show_default=False,
        ),
    ],
    attack: Annotated[
        list[str] | None,
        typer.Option(
            "--attack", metavar="NAME", help="Also show this attack's success; repeatable."
        ),
    ] = None,
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
    """Vary one option, and measure the releases.

    Every text is privatized once for each value. No texts are printed, only the mean cosine of
    their sentence vectors, the share of words that stay, the share of words in each group, the mean
    budget, and the success of attacks. Values of protect.tau give STAMP's figure 5.
    """
    from textveil_bench import attack as attacks
    from textveil_bench import pictures

    if output is not None:
        pictures.check_name(Path(output))
    option, values = parse_variation(vary)
    if "protect.task" in typed.values and query is not None:
        raise ConfigError(
            "give --task for all texts, or --query for a field with each text's task, not both"
        )
    configs = {value: _resolve(typed, option, value, query) for value in values}
    first = configs[values[0]]
    for config in configs.values():
        rates.require_judgeable(config)
    if option == "protect.tau" and first.protect.importance != "cosine":
        raise ConfigError(
            "protect.tau needs a task: give --task TEXT, --task self or --query FIELD"
        )
    attackers = [attacks.load(name) for name in dict.fromkeys(attack or ())]
    from textveil.pipeline import Privatizer
    from textveil_bench.option_sweep import sweep_option

    evaluation.refuse_same_file(file, output)
    queries = None
    if query is None:
        texts = evaluation.read_texts(file, field, limit)
    else:
        texts, queries = rates.read_labelled_texts(file, field, query, limit)
    with progress.show_bars() as report:
        rows = sweep_option(
            texts,
            lambda value: Privatizer.from_config(configs[value]),
            values,
            queries=queries,
            attackers=attackers,
            rng=evaluation.build_simulation_rng(first),
            report=report,
        )
    plain_rows = [row.to_json() for row in rows]
    if as_json:
        run_info = rates.build_run_info(first, file)
        evaluation.write_json({**run_info, "option": option, "rows": plain_rows}, None)
    else:
        _print_rows(option, plain_rows)
    if output is not None:
        title = f"{first.mechanism.name}, {rows[0].texts:,} texts"
        figure = pictures.draw_option(plain_rows, option=option, title=title)
        with text_streams.convert_write_errors():
            pictures.save(figure, Path(output))


def parse_variation(typed: str) -> tuple[str, list[str]]:
    """Parses OPTION=V,V,... to the option's dotted path and its distinct values.

    Raises:
        ConfigError: the form is wrong.
    """
    name, equals, listed = typed.partition("=")
    separator = ";" if ";" in listed else ","
    values = list(dict.fromkeys(part.strip() for part in listed.split(separator)))
    if not equals or not name.strip() or "" in values:
        raise ConfigError(
            "--vary must be an option and its values, such as mechanism.eta=40,80,160 or epsilon=2,4"
        )
    shared = SHARED_OPTIONS.get(name.strip().removeprefix("--").replace("-", "_"))
    return (shared.path if shared and shared.path else name.strip()), values


def _resolve(typed: TypedOptions, option: str, value: str, query: str | None) -> "Config":
    """Resolves the configuration of one value."""
    if option in typed.values or any(item.partition("=")[0] == option for item in typed.settings):
        raise ConfigError(f"{option} is varied: give its values by --vary only")
    varied = replace(typed, settings=(*typed.settings, f"{option}={value}"))
    config = varied.resolve_config(protect__importance=None if query is None else "cosine")
    protect = config.protect if query is None else replace(config.protect, task=None)
    return replace(config, protect=protect)


def _print_rows(option: str, rows: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    groups = list(rows[0]["shares"])
    attacks = list(dict.fromkeys(name for row in rows for name in row["attacks"]))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column(option.rpartition(".")[2], no_wrap=True)
    for heading in ("similarity", "95% interval", "kept", *groups, "budget", *attacks):
        table.add_column(heading, justify="right")
    for row in rows:
        low, high = (
            end if isinstance(end, str) else f"{end:.3f}" for end in (row["low"], row["high"])
        )
        budget = row["budget"]
        table.add_row(
            row["value"],
            f"{row['similarity']:.3f}",
            f"{low} to {high}",
            "" if row["kept"] is None else f"{row['kept']:.1%}",
            *(f"{row['shares'].get(group, 0):.1%}" for group in groups),
            budget if isinstance(budget, str) else f"{budget:.4g}",
            *(_format_attack(row, name) for name in attacks),
        )
    rates.print_table(table)
    console.note(
        console.wrap(
            "Note: similarity is the mean cosine of the sentence vectors of original and release; "
            "kept is the share of drawn words that stay; the budget is the mean over all words "
            "that are not public." + " A group's column is its share of the words." * bool(groups)
        )
    )
    for name, reason in {key: why for row in rows for key, why in row["not_run"].items()}.items():
        console.note(console.wrap(f"{name}: not run: {reason}"))


def _format_attack(row: dict[str, Any], name: str) -> str:
    """Formats an attack's main rate with its interval."""
    rate = row["attacks"].get(name)
    if rate is None:
        return ""
    ends = [rates.format_number(rate[end]) for end in ("low", "high") if rate[end] is not None]
    interval = f" ({' to '.join(ends)})" if len(ends) == 2 else ""
    return f"{rates.format_number(rate['value'])}{interval}"
