"""The verbs about what there is: `list`, `show`, `explain`, `demo`.

In: names. Out: lists, configurations, texts about mechanisms, the demonstration.
Not here: the register (`registry`), options (`config`), and what the demonstration shows (`demo`).
"""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli.shell import say
from textveil.cli.verbs import group, verb
from textveil.errors import UnknownName
from textveil.files import streams

if TYPE_CHECKING:
    from textveil.config import Config


@verb(
    "textveil list mechanisms",
    "textveil list tables",
    "textveil list profiles --json",
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


show = group("Show how things are set.", "textveil show config --profile paper-stencil")


@verb(
    "textveil show config",
    "textveil show config --profile paper-stencil --epsilon 80 -o words.casing=copy",
    on=show,
    name="config",
    default=None,
    complete=False,
)
def show_config(config: "Config") -> None:
    """Print the configuration that these options, the environment and the defaults amount to, as YAML.

    --config reads it back. The environment counts too: TEXTVEIL_MECHANISM__L=4, TEXTVEIL_EPSILON=60.
    """
    say(config.to_yaml().rstrip("\n"))


@verb(
    "textveil explain noise",
    "textveil explain d-chi-stencil",
    "textveil explain bayes",
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


@verb(
    "textveil demo",
    "textveil demo --seed 1",
    options=("seed",),
    default=None,
    complete=False,
)
def demo(config: "Config") -> None:
    """Privatize a packaged letter (an invented one) with four mechanisms, and show it beside the original."""
    from rich.console import Console

    from textveil.cli import demo as demonstration

    with streams.writing():
        demonstration.show(Console(highlight=False, soft_wrap=False), seed=config.seed)


def _spell(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
