"""Writing a verb: a function with a decorator for shared options.

In: a function with typer's annotations. Out: the same with the shared options in its signature,
called with the configuration that they amount to; a command that typer runs.
Not here: the shared options (`options`), and which verbs there are (`textveil.config.registry`).
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from textveil.cli.options import PRIVACY, SHARED, Typed, of_fields
from textveil.cli.shell import ALL, say
from textveil.cli.telling import TELLING, Telling
from textveil.errors import ConfigError

Verb = TypeVar("Verb", bound=Callable[..., None])

INJECTED = ("config", "typed", "telling")
"""Parameters of a verb that `verb` fills."""

MOST = 12
"""The most options in a verb's help, --help among them.

--help-all shows all.
"""

SHOWN = ("profile", "mechanism", "epsilon", "setting")
"""Options that are always shown in a shortened help.

With the first others, where a verb has more and does not say which.
"""


def verb(
    *examples: str,
    options: Iterable[str] = PRIVACY,
    fields: Mapping[str, Sequence[Any]] = {},
    default: str | None = "document",
    complete: bool = True,
    brief: Sequence[str] = (),
    panel: str | None = None,
    on: typer.Typer | None = None,
    name: str | None = None,
) -> Callable[[Verb], Verb]:
    """Makes a function a verb.

    The function has typer's annotations, and a docstring, which is its help. Where it takes

    - `config`, it has the shared options, and gets the `Config` that they amount to;
    - `typed`, it has them too, and gets the `Typed`, to look at what was typed;
    - `telling`, it has the options about statements, and gets a `Telling`.

    Args:
        examples: complete command lines that work, shown at the end of its help.
        options: which of the shared ones it has; names of `SHARED`.
        fields: which of its parameters are dictionaries of what was typed for fields, and the
            arguments of `of_fields`.
        default: the profile where nothing names a profile or a mechanism.
        complete: whether a mechanism that needs a budget must have one.
        brief: the options in its help, at most `MOST` - 1, where it has more; () for `SHOWN` and
            the first others.
        panel: the heading under which `textveil --help` lists a verb of another package.
        on: the group of verbs that it belongs to; None for a verb of its own.
        name: what it is called there; else as the function is.
    """

    def decorate(function: Verb) -> Verb:
        own = inspect.signature(function).parameters
        shared = tuple(options) if {"config", "typed"} & own.keys() else ()
        about = tuple(TELLING) if "telling" in own else ()
        having = {name: of_fields(*owner) for name, owner in fields.items()}

        @wraps(function)
        def run(**given: Any) -> None:
            typed = Typed.of({each: given.pop(each) for each in shared}, default)
            if "telling" in own:
                given["telling"] = Telling.of({each: given.pop(each) for each in about})
            if "typed" in own:
                given["typed"] = typed
            if "config" in own:
                given["config"] = typed.config(complete=complete)
            for name, some in having.items():
                said = {each: given.pop(each) for each in some}
                given[name] = {
                    each: tuple(value) if isinstance(value, list) else value
                    for each, value in said.items()
                    if value not in (None, [])
                }
            function(**given)

        parameters: list[Parameter] = []
        for each in own.values():
            if each.name in having:
                parameters += having[each.name].values()
            elif each.name not in INJECTED:
                parameters.append(each.replace(kind=each.KEYWORD_ONLY))
        parameters += [TELLING[each].parameter(each) for each in about]
        parameters += [SHARED[each].parameter(each) for each in shared]
        made: Any = run
        made.__signature__ = inspect.Signature(parameters)
        made.__annotations__ = {each.name: each.annotation for each in parameters}
        made.examples, made.panel, made.brief = examples, panel, brief
        if on is not None:
            add(on, made, name or function.__name__)
        return made  # type: ignore[no-any-return]

    return decorate


# ---- from functions to commands ------------------------------------------------------------------


class _Page:
    """A command with short help.

    The help fills its paragraphs, shows few options, and ends with examples, each on one line.
    """

    params: list[Any]
    callback: Any

    def __init__(
        self, *, epilog: str | None = None, help: str | None = None, **options: Any
    ) -> None:
        command: Any = super()
        command.__init__(help=_escape(re.sub(r"(?<!\n)\n(?!\n)", " ", help or "")), **options)
        self.examples = epilog
        for parameter in self.params:
            parameter.help = _escape(parameter.help or "")

    def get_params(self, ctx: Any) -> Any:
        command: Any = super()
        found = command.get_params(ctx)
        for parameter in found:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""  # else it reads as if it took a value
        return found

    def format_help(self, context: Any, formatter: Any) -> None:
        command: Any = super()
        left = () if context.obj == ALL else self._find_left_out()
        for parameter in left:
            parameter.hidden = True
        command.format_help(context, formatter)
        for parameter in left:
            parameter.hidden = False
        if self.examples:
            say(self.examples)
        if left:
            say(f"\nAll options: {context.command_path} {ALL}")

    def _find_left_out(self) -> list[Any]:
        """Returns the options that the short help does not show."""
        found = [each for each in self.params if isinstance(each, TyperOption) and not each.hidden]
        if len(found) < MOST:
            return []
        shown = set(getattr(self.callback, "brief", ()))
        if not shown:
            shown = {each.name for each in found if each.name in SHOWN}
            others = [each.name for each in found if each.name not in SHOWN]
            shown |= set(others[: MOST - 1 - len(shown)])
        return [each for each in found if each.name not in shown]


def _escape(text: str) -> str:
    """Escapes brackets, which rich would take for a style."""
    return re.sub(r"(\[[a-z#/@][^\[]*?\])", r"\\\1", text)


class Command(_Page, TyperCommand):
    """A verb as typer runs it."""


class VerbGroup(_Page, TyperGroup):
    """Several verbs as typer runs them."""


def group(
    about: str = "",
    *examples: str,
    panel: str | None = None,
    alone: Callable[..., None] | None = None,
) -> typer.Typer:
    """Builds a verb that has verbs under it.

    `verb(on=...)` adds them.

    Args:
        about: its help; "" for that of `alone`.
        examples: complete command lines that work; none for those of `alone`.
        panel: the heading under which `textveil --help` lists it, for another package.
        alone: the verb that runs where none of its own is named; the group has its options. None to
            show the help.
    """
    about = about or inspect.getdoc(alone) or ""
    examples = examples or getattr(alone, "examples", ())
    made: Any = typer.Typer(
        cls=VerbGroup,
        add_completion=False,
        rich_markup_mode="rich",
        help=about,
        epilog=spelled(examples),
        subcommand_metavar="COMMAND [ARGS]..." if alone is None else "[COMMAND [ARGS]...]",
    )

    def root(context: typer.Context, **given: Any) -> None:
        called = context.invoked_subcommand
        if called is None and alone is not None:
            alone(**given)
        elif called is None:
            typer.echo(context.get_help())
        elif flags := [
            each.opts[0]
            for each in context.command.params
            if each.name in given and _is_typed(context, each)
        ]:
            raise ConfigError(
                f"options of `{called}` go behind it; leave out {', '.join(flags)} before it"
            )

    parameters = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    root.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*parameters, *(inspect.signature(alone).parameters.values() if alone is not None else ())]
    )
    root.__annotations__ = {each.name: each.annotation for each in parameters}
    root.brief = getattr(alone, "brief", ())  # type: ignore[attr-defined]
    made.callback(invoke_without_command=True)(root)
    made.about, made.panel = about, panel
    return made  # type: ignore[no-any-return]


def _is_typed(context: typer.Context, parameter: Any) -> bool:
    """Says whether a parameter was given on the command line."""
    source = context.get_parameter_source(parameter.name)
    return source is not None and source.name == "COMMANDLINE"


def add(to: typer.Typer, function: Callable[..., Any], name: str) -> None:
    """Adds a function to a group of verbs, under a name."""
    examples = getattr(function, "examples", ())
    to.command(name.replace("_", "-"), cls=Command, epilog=spelled(examples))(function)


def command(target: Any, name: str) -> Any:
    """Builds a command from a verb in the registry.

    A function or a `typer.Typer`.
    """
    if not isinstance(target, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        add(alone, target, name)
        target = alone
    made = typer.main.get_command(target)
    made.name = name
    return made


def spelled(examples: Sequence[str]) -> str | None:
    """Formats examples for the end of a help page."""
    return "Examples:\n" + "\n".join(f"  {each}" for each in examples) if examples else None
