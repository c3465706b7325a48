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

from textveil.cli.console import HELP_ALL_FLAG, say
from textveil.cli.options import (
    PRIVACY_OPTIONS,
    SHARED_OPTIONS,
    SharedOption,
    TypedOptions,
    build_field_parameters,
)
from textveil.cli.statement_options import STATEMENT_OPTIONS, StatementForm
from textveil.errors import ConfigError

Verb = TypeVar("Verb", bound=Callable[..., None])

INJECTED_PARAMETERS = ("config", "typed", "statement_form")
"""Parameters of a verb that `verb` fills."""

MAX_HELP_OPTIONS = 12
"""The most options in a verb's help, --help among them.

--help-all shows all.
"""

HELP_OPTIONS = ("profile", "mechanism", "epsilon", "setting")
"""Options that are always shown in a shortened help.

With the first others, where a verb has more and does not say which.
"""


def verb(
    *examples: str,
    options: Iterable[str] = PRIVACY_OPTIONS,
    fields: Mapping[str, Sequence[Any]] = {},
    own: Mapping[str, SharedOption] = {},
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
    - `typed`, it has them too, and gets the `TypedOptions`, to look at what was typed;
    - `statement_form`, it has the options about statements, and gets a `StatementForm`.

    Args:
        examples: complete command lines that work, shown at the end of its help.
        options: which of the shared ones it has; names of `SHARED`.
        fields: which of its parameters are dictionaries of what was typed for fields, and the
            arguments of `of_fields`.
        own: shared options that are described otherwise for this verb, by name.
        default: the profile where nothing names a profile or a mechanism.
        complete: whether a mechanism that needs a budget must have one.
        brief: the options in its help, at most `MAX_HELP_OPTIONS` - 1, where it has more; () for
            `HELP_OPTIONS` and the first others.
        panel: the heading under which `textveil --help` lists a verb of another package.
        on: the group of verbs that it belongs to; None for a verb of its own.
        name: what it is called there; else as the function is.
    """

    def decorate(function: Verb) -> Verb:
        signature_parameters = inspect.signature(function).parameters
        shared = tuple(options) if {"config", "typed"} & signature_parameters.keys() else ()
        statement_names = (
            tuple(STATEMENT_OPTIONS) if "statement_form" in signature_parameters else ()
        )
        field_parameters = {name: build_field_parameters(*owner) for name, owner in fields.items()}

        @wraps(function)
        def run(**arguments: Any) -> None:
            typed = TypedOptions.build(
                {option: arguments.pop(option) for option in shared}, default
            )
            if "statement_form" in signature_parameters:
                arguments["statement_form"] = StatementForm.read(
                    {option: arguments.pop(option) for option in statement_names}
                )
            if "typed" in signature_parameters:
                arguments["typed"] = typed
            if "config" in signature_parameters:
                arguments["config"] = typed.resolve_config(complete=complete)
            for name, owner_parameters in field_parameters.items():
                values = {option: arguments.pop(option) for option in owner_parameters}
                arguments[name] = {
                    option: tuple(value) if isinstance(value, list) else value
                    for option, value in values.items()
                    if value not in (None, [])
                }
            function(**arguments)

        parameters: list[Parameter] = []
        for option in signature_parameters.values():
            if option.name in field_parameters:
                parameters += field_parameters[option.name].values()
            elif option.name not in INJECTED_PARAMETERS:
                parameters.append(option.replace(kind=option.KEYWORD_ONLY))
        parameters += [
            STATEMENT_OPTIONS[option].build_parameter(option) for option in statement_names
        ]
        parameters += [
            own.get(option, SHARED_OPTIONS[option]).build_parameter(option) for option in shared
        ]
        wrapper: Any = run
        wrapper.__signature__ = inspect.Signature(parameters)
        wrapper.__annotations__ = {option.name: option.annotation for option in parameters}
        wrapper.examples, wrapper.panel, wrapper.brief = examples, panel, brief
        if on is not None:
            add(on, wrapper, name or function.__name__)
        return wrapper  # type: ignore[no-any-return]

    return decorate


# ---- from functions to commands ------------------------------------------------------------------


class _HelpPage:
    """A command with short help.

    The help fills its paragraphs, shows few options, and ends with examples, each on one line.
    """

    params: list[Any]
    callback: Any

    def __init__(
        self, *, epilog: str | None = None, help: str | None = None, **options: Any
    ) -> None:
        command: Any = super()
        command.__init__(
            help=_escape_brackets(re.sub(r"(?<!\n)\n(?!\n)", " ", help or "")), **options
        )
        self.examples = epilog
        for parameter in self.params:
            parameter.help = _escape_brackets(parameter.help or "")

    def get_params(self, ctx: Any) -> Any:
        command: Any = super()
        parameters = command.get_params(ctx)
        for parameter in parameters:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""  # else it reads as if it took a value
        return parameters

    def format_help(self, context: Any, formatter: Any) -> None:
        command: Any = super()
        omitted_options = () if context.obj == HELP_ALL_FLAG else self._find_omitted_options()
        for parameter in omitted_options:
            parameter.hidden = True
        command.format_help(context, formatter)
        for parameter in omitted_options:
            parameter.hidden = False
        if self.examples:
            say(self.examples)
        if omitted_options:
            say(f"\nAll options: {context.command_path} {HELP_ALL_FLAG}")

    def _find_omitted_options(self) -> list[Any]:
        """Returns the options that the short help does not show."""
        options = [
            option
            for option in self.params
            if isinstance(option, TyperOption) and not option.hidden
        ]
        if len(options) < MAX_HELP_OPTIONS:
            return []
        names = set(getattr(self.callback, "brief", ()))
        if not names:
            names = {option.name for option in options if option.name in HELP_OPTIONS}
            remaining_names = [option.name for option in options if option.name not in HELP_OPTIONS]
            names |= set(remaining_names[: MAX_HELP_OPTIONS - 1 - len(names)])
        return [option for option in options if option.name not in names]


def _escape_brackets(text: str) -> str:
    """Escapes brackets, which rich would take for a style."""
    return re.sub(r"(\[[a-z#/@][^\[]*?\])", r"\\\1", text)


class Command(_HelpPage, TyperCommand):
    """A verb as typer runs it."""


class VerbGroup(_HelpPage, TyperGroup):
    """Several verbs as typer runs them."""


def group(
    help_text: str = "",
    *examples: str,
    panel: str | None = None,
    default_verb: Callable[..., None] | None = None,
) -> typer.Typer:
    """Builds a verb that has verbs under it.

    `verb(on=...)` adds them.

    Args:
        help_text: its help; "" for that of `default_verb`.
        examples: complete command lines that work; none for those of `default_verb`.
        panel: the heading under which `textveil --help` lists it, for another package.
        default_verb: the verb that runs where none of its own is named; the group has its options.
            None to show the help.
    """
    help_text = help_text or inspect.getdoc(default_verb) or ""
    examples = examples or getattr(default_verb, "examples", ())
    application: Any = typer.Typer(
        cls=VerbGroup,
        add_completion=False,
        rich_markup_mode="rich",
        help=help_text,
        epilog=format_examples(examples),
        subcommand_metavar="COMMAND [ARGS]..." if default_verb is None else "[COMMAND [ARGS]...]",
    )

    def root(context: typer.Context, **arguments: Any) -> None:
        subcommand = context.invoked_subcommand
        if subcommand is None and default_verb is not None:
            default_verb(**arguments)
        elif subcommand is None:
            typer.echo(context.get_help())
        elif flags := [
            parameter.opts[0]
            for parameter in context.command.params
            if parameter.name in arguments and _is_typed(context, parameter)
        ]:
            raise ConfigError(
                f"options of `{subcommand}` go after it; leave out {', '.join(flags)} before it"
            )

    parameters = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    root.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *parameters,
            *(
                inspect.signature(default_verb).parameters.values()
                if default_verb is not None
                else ()
            ),
        ]
    )
    root.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    root.brief = getattr(default_verb, "brief", ())  # type: ignore[attr-defined]
    application.callback(invoke_without_command=True)(root)
    application.about, application.panel = help_text, panel
    return application  # type: ignore[no-any-return]


def _is_typed(context: typer.Context, parameter: Any) -> bool:
    """Says whether a parameter was given on the command line."""
    source = context.get_parameter_source(parameter.name)
    return source is not None and source.name == "COMMANDLINE"


def add(application: typer.Typer, function: Callable[..., Any], name: str) -> None:
    """Adds a function to a group of verbs, under a name."""
    examples = getattr(function, "examples", ())
    application.command(name.replace("_", "-"), cls=Command, epilog=format_examples(examples))(
        function
    )


def build_command(target: Any, name: str) -> Any:
    """Builds a command from a verb in the registry.

    A function or a `typer.Typer`.
    """
    if not isinstance(target, typer.Typer):
        application = typer.Typer(add_completion=False, rich_markup_mode="rich")
        add(application, target, name)
        target = application
    result = typer.main.get_command(target)
    result.name = name
    return result


def format_examples(examples: Sequence[str]) -> str | None:
    """Formats examples for the end of a help page."""
    return "Examples:\n" + "\n".join(f"  {example}" for example in examples) if examples else None
