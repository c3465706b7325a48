"""The verbs that look things up: `list`, `show`, `explain`; and `demo`.

In: names. Out: lists, configurations, explanations, the demonstration.
Not here: the registry and options (`config`), and what the demonstration shows (`cli.demo`).
"""

import json
import re
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import texts
from textveil.cli.console import say
from textveil.cli.decorators import group, verb
from textveil.errors import UnknownName
from textveil.files import text_streams

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textveil.config import Config
    from textveil.config.registry import Option, RegistryKind


@verb(
    "textveil list",
    "textveil list mechanisms",
    "textveil list profiles --json",
)
def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="mechanisms, tables, profiles and so on.", show_default=False
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON array of objects with a name and a summary."),
    ] = False,
) -> None:
    """List the names of a kind, each with a summary; without a kind, list the kinds."""
    from textveil.config import registry

    kinds = {f"{registry_kind}s": registry_kind for registry_kind in registry.REGISTRY_KINDS}
    if kind is None:
        rows = {
            name: " ".join(_read_names(registry_kind)) for name, registry_kind in kinds.items()
        } | {PROFILES_KIND: " ".join(_read_profiles())}
    elif kind == PROFILES_KIND:
        rows = _read_profiles()
    elif kind in kinds:
        rows = {name: registry.describe(kinds[kind], name) for name in _read_names(kinds[kind])}
        rows |= dict.fromkeys(registry.list_absent(kinds[kind]), f"in {registry.BENCH_INSTALL}")
    else:
        raise UnknownName("kind of names", kind, (*kinds, PROFILES_KIND))
    if as_json:
        say(
            json.dumps(
                [{"name": name, "summary": summary} for name, summary in rows.items()],
                ensure_ascii=False,
            )
        )
        return
    width = max(map(len, rows))
    for name, summary in rows.items():
        say(f"{name:{width}}  {summary}")


PROFILES_KIND = "profiles"


def _read_names(kind: "RegistryKind") -> list[str]:
    from textveil.config import registry

    return registry.list_names(kind)


def _read_profiles() -> dict[str, str]:
    from textveil.config import describe_profiles

    return describe_profiles()


show = group(
    "Show the configuration that options result in.", "textveil show config --profile paper-stencil"
)


@verb(
    "textveil show config",
    "textveil show config --profile paper-stencil --epsilon 80 -o words.casing=copy",
    on=show,
    name="config",
    complete=False,
)
def show_config(config: "Config") -> None:
    """Print as YAML the configuration that options, environment and defaults result in.

    --config reads it back. Without --profile, --mechanism or a --config that names one, it is what
    `textveil privatize` uses, the profile `document`. Variables of the environment are options,
    too: TEXTVEIL_MECHANISM__L=4, TEXTVEIL_EPSILON=60.
    """
    say(config.to_yaml().rstrip("\n"))


@verb(
    "textveil explain noise",
    "textveil explain bayes",
    "textveil explain document",
)
def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Any name that `textveil list` shows.", show_default=False
        ),
    ],
) -> None:
    """Explain a name: what a mechanism guarantees and needs, an attack finds, a profile sets."""
    from textveil.config import registry

    kinds = [
        kind
        for kind in registry.REGISTRY_KINDS
        if name in registry.list_names(kind) + registry.list_absent(kind)
    ]
    if name in _read_profiles():
        _explain_profile(name)
    elif not kinds:
        candidates = [
            candidate for kind in registry.REGISTRY_KINDS for candidate in registry.list_names(kind)
        ]
        raise UnknownName(
            "mechanism, attack, table, profile or the like", name, [*candidates, *_read_profiles()]
        )
    for kind in kinds:
        _explain_name(kind, name)


def _yield_options(
    kind: str, name: str, options: "Sequence[Option]", parameter: str | None
) -> "Iterator[str]":
    """Yields the options of a mechanism or an attack.

    A line each.
    """
    if not options:
        yield "Options: none."
        return
    yield f"Options, -o {'mechanism' if kind == 'mechanism' else f'attack.{name}'}.NAME=VALUE:"
    names, types = (
        max(len(getattr(option, part)) for option in options) for part in ("name", "type")
    )
    for option in options:
        default = "required" if option.required else f"default {_spell(option.default)}"
        hint = "; in place of --epsilon" if option.name == parameter else ""
        yield f"    {option.name:{names}}  {option.type:{types}}  {default}{hint}"


def _explain_name(kind: "RegistryKind", name: str) -> None:
    import inspect

    from textveil.config import registry

    if kind == "command":
        say(
            f"{name} (command)\n\n{registry.find_entry(kind, name).summary}: see `textveil {name} "
            "--help`."
        )
        return
    target = registry.load(kind, name)
    description = inspect.getdoc(target) or registry.find_entry(kind, name).summary
    if kind not in ("mechanism", "attack"):
        say(f"{name} ({kind})\n\n{re.split(DOCSTRING_SECTION, description)[0].strip()}")
        return
    parameter, budget = (
        registry.find_budget_parameter(name) if kind == "mechanism" else (None, True)
    )
    say(f"{name}\n\n{description}\n")
    for line in _yield_options(
        kind, name, list(registry.read_options(target).keywords.values()), parameter
    ):
        say(line)
    if not budget:
        say("It needs no --epsilon.")
    if kind == "mechanism" and registry.find_entry("mechanism", name).codes:
        from textveil.cli.codebook import list_books

        say(
            "\nGeneral books for --codes: the largest share of a code that one word has, and the "
            "largest"
        )
        say(
            "probability that an attacker who expects the word frequencies of general public "
            "text names a word:"
        )
        for line in list_books():
            say(line)


DOCSTRING_SECTION = re.compile(r"^(?:Args|Attributes|Returns|Yields|Raises):$", re.MULTILINE)
"""The headings in a docstring that address callers of Python."""


def _explain_profile(name: str) -> None:
    from textveil.config import option_sources

    say(f"{name} (profile)\n\n{_read_profiles()[name]}\n\nIt sets:")
    for path, value in option_sources.read_profile(name).values.items():
        is_list = isinstance(value, list)
        text = (
            ", ".join(map(_spell, value[:4]))
            + (f" and {len(value) - 4} more" if len(value) > 4 else "")
            if is_list
            else _spell(value)
        )
        say(f"    {path} = {text}")


@verb(
    "textveil demo",
    "textveil demo --seed 1 --html demo.html",
    options=("seed",),
    default=None,
    complete=False,
)
def demo(config: "Config", html: texts.Html = None) -> None:
    """Show both jobs: a prompt whose answer is restored, and an invented letter with its statement and its risk."""
    from rich.console import Console

    from textveil.cli import demo as demonstration

    if html is not None:
        texts.check_page(html)
    with text_streams.convert_write_errors():
        shown = demonstration.show(Console(highlight=False, soft_wrap=False), seed=config.seed)
    if html is not None:
        texts.write_page(html, demonstration.build_page(shown), private=False)


def _spell(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
