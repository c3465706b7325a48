"""The verbs about what there is: `list`, `show`, `explain`, `demo`.

In: names. Out: lists, configurations, texts about mechanisms, the demonstration.
Not here: the register (`registry`), options (`config`), and what the demonstration shows (`demo`).
"""

import json
from typing import Annotated

import typer

from textveil.cli.app import (
    ConfigFile,
    Epsilon,
    Mechanism,
    Profile,
    Rerank,
    Seed,
    Setting,
    TableName,
    app,
    examples,
    resolve,
)
from textveil.cli.shell import say
from textveil.errors import UnknownName
from textveil.files import streams


@app.command(
    "list",
    epilog=examples(
        "textveil list mechanisms",
        "textveil list tables",
        "textveil list profiles --json",
    ),
)
def list_names(
    what: Annotated[str, typer.Argument(metavar="mechanisms|attacks|tables|profiles", show_default=False)],
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON array of objects with the fields name and summary.")
    ] = False,
) -> None:
    """List names: one per line, with a summary behind each."""
    from textveil.config import profiles, registry

    if what == "mechanisms":
        rows = {name: registry.entry("mechanism", name).summary for name in registry.names("mechanism")}
    elif what == "attacks":
        rows = {name: registry.entry("attack", name).summary for name in registry.names("attack")}
    elif what == "tables":
        rows = {name: registry.entry("table", name).summary for name in registry.names("table")}
    elif what == "profiles":
        rows = profiles()
    else:
        raise UnknownName("list", what, ("mechanisms", "attacks", "tables", "profiles"))
    width = max(map(len, rows))
    if as_json:
        entries = [{"name": name, "summary": summary} for name, summary in rows.items()]
        say(json.dumps(entries, ensure_ascii=False))
        return
    for name, summary in rows.items():
        say(f"{name:{width}}  {summary}")


show_app = typer.Typer(rich_markup_mode=None)
app.add_typer(show_app, name="show")


@show_app.callback(
    invoke_without_command=True,
    epilog=examples(
        "textveil show config --profile paper-stencil",
    ),
)
def _show(context: typer.Context) -> None:
    """Show how things are set."""
    if context.invoked_subcommand is None:
        say(context.get_help())


@show_app.command(
    "config",
    epilog=examples(
        "textveil show config",
        "textveil show config --profile paper-stencil --epsilon 80 -o words.casing=copy",
    ),
)
def show_config(
    mechanism: Mechanism = None,
    epsilon: Epsilon = None,
    setting: Setting = None,
    profile: Profile = None,
    config: ConfigFile = None,
    table: TableName = None,
    seed: Seed = None,
    rerank: Rerank = None,
) -> None:
    """Print the configuration that these options, the environment and the defaults amount to, as YAML.

    --config reads it back. The environment counts too: TEXTVEIL_MECHANISM__L=4, TEXTVEIL_EPSILON=60.
    """
    resolved = resolve(mechanism, epsilon, setting, profile, config, table, seed, rerank=rerank, complete=False)
    say(resolved.to_yaml().rstrip("\n"))


@app.command(
    epilog=examples(
        "textveil explain noise",
        "textveil explain d-chi-stencil",
        "textveil explain bayes",
    ),
)
def explain(
    name: Annotated[str, typer.Argument(metavar="MECHANISM|ATTACK", show_default=False)],
) -> None:
    """Say what a mechanism does, guarantees and needs, or what an attack finds; with sources and options."""
    import inspect

    from textveil.config import registry

    kind: registry.KindOfName = "attack" if name in registry.names("attack") else "mechanism"
    target = registry.load(kind, name)
    parameter, budget = registry.budget_parameter(name) if kind == "mechanism" else (None, True)
    options = registry.signature(target).known.values()
    say(f"{name}\n\n{inspect.getdoc(target) or registry.entry(kind, name).summary}\n")
    if not options:
        say("Options: none.")
    else:
        say(f"Options, -o {'mechanism' if kind == 'mechanism' else f'attack.{name}'}.NAME=VALUE:")
    widths = [max((len(getattr(option, part)) for option in options), default=0) for part in ("name", "type")]
    for option in options:
        default = "required" if option.required else f"default {_spell(option.default)}"
        own = "; in place of --epsilon" if option.name == parameter else ""
        say(f"    {option.name:{widths[0]}}  {option.type:{widths[1]}}  {default}{own}")
    if not budget:
        say("It needs no --epsilon.")


@app.command(
    epilog=examples(
        "textveil demo",
        "textveil demo --seed 1",
    ),
)
def demo(seed: Seed = None) -> None:
    """Privatize a packaged letter (an invented one) with four mechanisms, and show it beside the original."""
    from rich.console import Console

    from textveil.cli import demo as demonstration
    from textveil.config import layers, sources

    number = layers.resolve(overrides=sources.assignments([], {"seed": seed}), complete=False).seed
    with streams.writing():
        demonstration.show(Console(highlight=False, soft_wrap=False), seed=number)


def _spell(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
