"""The options that verbs share: tables, with their fields.

Also those that are fields of what verbs run.

In: what was typed for them. Out: `TypedOptions`, and the configuration that it amounts to together
with the environment.
Not here: what the options mean (`textveil.config`, and the classes that have the fields),
and how a verb gets them (`decorators`).
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

from textveil.errors import ConfigError, quote_short

if TYPE_CHECKING:
    from textveil.config import Config

PRIVACY_PANEL = "How to privatize"
"""The heading of the shared options in the help of a verb."""


@dataclass(frozen=True, kw_only=True)
class SharedOption:
    """An option that several verbs have, or that is a field.

    Attributes:
        help: one or two sentences.
        flag: as it is typed; several with spaces between them.
        metavar: the placeholder of its value in the help; None for a flag without one.
        path: the option of a configuration that it sets; None for `--config` and `-o`, which name
            theirs themselves.
        implied_options: further options that it sets when it is given.
        choices: the values that may be typed, and what they stand for; empty for any.
        kind: the type of its value.
        default: its value where it is not given.
        panel: the heading in the help under which it stands.
        default_text: the default as the help shows it.
        minimum: the least value.
        envvar: the environment variable that gives it, too.
        may_lack: whether the verb says itself that it is missing, together with all else.
        callback: gets the context and the value before other options are read, and returns the
            value; None for nothing.
    """

    help: str
    flag: str = ""
    metavar: str | None = None
    path: str | None = None
    implied_options: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    kind: Any = str | None
    default: Any = None
    panel: str | None = PRIVACY_PANEL
    default_text: str | bool = True
    minimum: float | None = None
    envvar: str | None = None
    may_lack: bool = False
    callback: Callable[[typer.Context, Any], Any] | None = None

    def resolve_value(self, typed: str) -> str:
        """Returns the value that typed text stands for.

        Raises:
            ConfigError: it is none of those that may be typed.
        """
        if self.choices and typed not in self.choices:
            raise ConfigError(
                f"{self.flag} must be {' or '.join(self.choices)}, got {quote_short(typed)}"
            )
        return self.choices.get(typed, typed)

    def build_parameter(self, name: str) -> Parameter:
        """Builds the parameter of a verb, for typer."""
        option = typer.Option(
            self.default,
            *self.flag.split(),
            metavar=self.metavar,
            help=self.help,
            rich_help_panel=self.panel,
            show_default=self.default_text,
            min=self.minimum,
            envvar=self.envvar,
            callback=self.callback,
            is_eager=self.callback is not None,
        )
        return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=self.kind)


SHARED_OPTIONS: dict[str, SharedOption] = {
    "profile": SharedOption(
        flag="--profile",
        metavar="NAME",
        path="profile",
        help="A set of options; see `textveil list profiles`.",
    ),
    "mechanism": SharedOption(
        flag="--mechanism",
        metavar="NAME",
        path="mechanism.name",
        help="See `textveil list mechanisms`.",
    ),
    "epsilon": SharedOption(
        flag="--epsilon",
        metavar="E",
        path="epsilon",
        help="The budget of a word, in the unit of the statement: the largest one, where a profile "
        "has groups. With --unit, of a document or sentence.",
    ),
    "risk": SharedOption(
        flag="--risk",
        metavar="SHARE",
        path="risk",
        help="Instead of a budget: the share of words that an attacker may guess, such as 0.10. "
        "The epsilon is computed from the mechanism's probabilities and public word "
        "frequencies, before the text is read.",
    ),
    "public": SharedOption(
        flag="--public",
        metavar="FILE",
        path="prior",
        help="With --risk: public texts whose words the attacker expects, instead of the packaged frequencies.",
    ),
    "table": SharedOption(
        flag="--table",
        metavar="NAME",
        path="table.name",
        help="The words to draw from: see `textveil list tables`, or a folder made by `textveil table build`.",
    ),
    "codes": SharedOption(
        flag="--codes",
        metavar="C|BOOK",
        path="table.codes",
        help="Draw one of a few codes of words, not a word: the number of codes of a general "
        "book (8, 24, 50, 150 or 400), or a book made by `textveil table codes`, with "
        "BOOK@24 for one of its levels. The probabilities are the same for all words of one "
        "code. Four, separated by commas, are for the four groups of groups.budgets. auto "
        "picks the general book, BOOK@auto the level of a book, that keeps most at your "
        "epsilon.",
    ),
    "emit": SharedOption(
        flag="--emit",
        metavar="words|codes",
        path="table.spelling",
        choices={"words": "word", "codes": "code"},
        help="With --codes: what is released for a code, its most typical word or its number, such as code17.",
    ),
    "seed": SharedOption(
        flag="--seed",
        metavar="N",
        path="seed",
        help="Repeatable draws. No protection against anyone who knows the seed.",
    ),
    "rerank": SharedOption(
        flag="--rerank",
        metavar="M",
        path="rerank.m",
        help="Replace each drawn word by the one of its M nearest that a masked language model expects there; with "
        "--codes, by the one of its code's M most frequent.",
    ),
    "level": SharedOption(
        flag="--level",
        metavar="identifiers|personal|names",
        path="protect.level",
        help="Hide what has a form, such as numbers and addresses (identifiers); also names of "
        "private persons, and of places and organizations that tell where they live or work "
        "(personal, the default); or every name (names).",
    ),
    "dates": SharedOption(
        flag="--dates",
        metavar="personal|all|none",
        path="protect.dates",
        help="Hide the dates of somebody's life, such as birth and appointments (personal, the "
        "default); every day, month and year, as in judgments and medical notes (all); or no date "
        "(none).",
    ),
    "names": SharedOption(
        flag="--names",
        metavar="placeholder|surrogate",
        path="names.types",
        choices={"placeholder": "none", "surrogate": "all"},
        help="Replace a name by a placeholder such as <PERSON_1>, or by another name of its type.",
    ),
    "figures": SharedOption(
        flag="--figures",
        metavar="placeholder|surrogate",
        path="figures.types",
        choices={"placeholder": "none", "surrogate": "all"},
        help="Replace a date or an age by a placeholder such as <AGE_1>, or by one near it. All "
        "dates are moved by the same number of days; ages are not put back into an answer.",
    ),
    "identifiers": SharedOption(
        flag="--identifiers",
        metavar="placeholder|surrogate",
        path="identifiers.types",
        choices={"placeholder": "none", "surrogate": "all"},
        help="Replace a card, telephone, account or national number, an e-mail or IP address by a "
        "placeholder such as <CARD_1>, or by an invented one that belongs to nobody.",
    ),
    "task": SharedOption(
        flag="--task",
        metavar="TEXT",
        path="protect.task",
        implied_options={"protect.importance": "cosine"},
        help="The task of the text: words close to it count as important. `self` takes the text "
        "itself. The task is not kept secret.",
    ),
    "unit": SharedOption(
        flag="--unit",
        metavar="word|document|sentence",
        path="texts.unit",
        help="Replace each word (the default), or put a text of --library in place of the whole document or of each "
        "sentence. --epsilon is then for a document or sentence, and options of words are refused.",
    ),
    "library": SharedOption(
        flag="--library",
        metavar="FILE",
        path="texts.library",
        help="With --unit document or sentence: a library of public texts, made by `textveil library make`.",
    ),
    "cells": SharedOption(
        flag="--cells",
        metavar="LEVEL",
        path="texts.cells",
        help="With --unit document or sentence: a level of the library's cells, as `textveil library info` lists "
        "them. auto, the default, takes its labels, else its classes, else as many cells as suit epsilon.",
    ),
    "sure": SharedOption(
        flag="--sure",
        metavar="SHARE",
        path="texts.sure",
        help="With --unit document or sentence: draw among this share of a cell's texts, the surest.",
    ),
    "config": SharedOption(
        flag="--config",
        metavar="FILE",
        help="Options as YAML, as `textveil show config` prints them.",
    ),
    "setting": SharedOption(
        flag="-o",
        metavar="PATH=VALUE",
        kind=list[str] | None,
        help="Any other option, such as words.oov=keep; repeatable. `textveil show config` lists the paths, "
        "`textveil explain NAME` those of a mechanism.",
    ),
}
"""The shared options.

A further one is another entry here, and every verb with `PRIVACY_OPTIONS` has it.
"""

_WHOLE_TEXT_OPTIONS = ("unit", "library", "cells", "sure")

BUDGET_OPTIONS = tuple(name for name in SHARED_OPTIONS if name not in _WHOLE_TEXT_OPTIONS)
"""The shared options of verbs that may find a budget first."""

PRIVACY_OPTIONS = tuple(name for name in BUDGET_OPTIONS if name not in ("risk", "public"))
"""The shared options of verbs that privatize."""

RELEASE_OPTIONS = tuple(SHARED_OPTIONS)
"""All shared options, for verbs that release words or whole texts."""


FIELD_OPTIONS: dict[str, dict[str, SharedOption]] = {
    "Policy": {
        "upstream": SharedOption(
            metavar="URL",
            help="The base URL of the model's API, such as http://HOST:PORT/v1; or its name in the policy.",
        ),
        "tools": SharedOption(
            flag="--tool",
            metavar="NAME",
            help="Serve this tool, protected; repeatable.",
        ),
        "other_tools": SharedOption(
            help="Tools that are not named: pass serves them, without protection."
        ),
        "hosts": SharedOption(
            flag="--allow-host",
            metavar="NAME",
            help="A host name that programs and browsers may use for the gateway, in addition to "
            "IP addresses and localhost; repeatable. Without keys, requests to other host "
            "names are refused.",
        ),
        "origins": SharedOption(
            flag="--allow-origin",
            metavar="ORIGIN",
            help="A page that may ask, such as http://localhost:3000 or app://obsidian.md; repeatable.",
        ),
        "timeout": SharedOption(
            metavar="SECONDS", help="The longest wait for the model, or for a tool."
        ),
        "limit": SharedOption(metavar="BYTES", help="The largest request that is accepted."),
        "memory": SharedOption(
            metavar="MEGABYTES",
            help="The memory for released messages; those not used for longest go first.",
        ),
        "media": SharedOption(
            help="Images, audio, files and token ids: pass sends them unprotected."
        ),
        "schemas": SharedOption(help="Descriptions of tools: hide identifiers in them, or pass."),
        "unknown": SharedOption(
            help="Fields and values that the gateway does not know: protect reads them like text."
        ),
        "users": SharedOption(help="User names that a program sends."),
        "playground": SharedOption(
            help="Serve a page at / that shows what would be sent; local: only if no other "
            "machine can reach the gateway."
        ),
    },
    "ServingOptions": {
        "audit_log": SharedOption(
            metavar="FILE",
            help="Append a line of JSON for each request: counts and times, no content. While it cannot be written, "
            "nothing is sent.",
        ),
        "metrics": SharedOption(
            help="Access to /metrics: programs on this machine, all, or nobody."
        ),
        "grace": SharedOption(
            metavar="SECONDS", help="The time that open requests may take when the gateway stops."
        ),
        "queue": SharedOption(
            metavar="N",
            help="The most requests that may wait; further requests are refused and told to retry.",
        ),
        "long": SharedOption(
            metavar="CHARACTERS",
            help="Requests with more characters of new text than this wait in a queue of their "
            "own.",
        ),
        "body_timeout": SharedOption(
            metavar="SECONDS",
            help="Seconds without a byte of a request until it is refused (408).",
        ),
        "keepalive": SharedOption(
            metavar="SECONDS", help="How long a connection without a request stays open."
        ),
    },
    "ToolServer": {
        "upstream": SharedOption(
            metavar="URL", help="The tool server's URL (streamable HTTP), in place of -- COMMAND."
        ),
        "resources": SharedOption(help="Serve resources, protected."),
        "prompts": SharedOption(help="Serve prompts, protected."),
        "errors": SharedOption(
            metavar="FILE",
            help="Append to this file what COMMAND writes to standard error. By default that is "
            "discarded, since it may hold texts.",
        ),
    },
    "AssistantTools": {
        "folders": SharedOption(
            flag="--folder",
            metavar="FOLDER",
            help="A folder whose text files the assistant may read, protected; repeatable.",
        ),
        "output": SharedOption(
            metavar="FOLDER",
            help="The folder for restored texts, apart from --folder. The assistant writes there "
            "and reads nothing. Without it there is no tool `restore`.",
        ),
        "suffixes": SharedOption(
            flag="--suffix",
            metavar="SUFFIX",
            help="Let restore write files with this suffix, such as .csv, too; else only .txt and "
            ".md; repeatable. A risk: a page, table or program that the assistant wrote can send "
            "the originals away when you open it.",
        ),
        "reveal": SharedOption(
            help="Let restore return the originals to the assistant, and so to its provider."
        ),
        "limit": SharedOption(
            metavar="BYTES", help="The largest file that is read, and the longest text."
        ),
    },
    "RowOptions": {
        "fields": SharedOption(
            flag="--field --column",
            metavar="NAME",
            help="A field with texts; repeatable. Default: `text`, or in .jsonl and .parquet the "
            "only field with strings.",
        ),
        "id": SharedOption(
            metavar="NAME",
            help="The field with the id of each row: unique, and copied into the release.",
        ),
        "subject": SharedOption(
            metavar="NAME",
            help="The field that names the person a row is about: the losses of a person add up.",
        ),
        "query": SharedOption(
            metavar="NAME",
            help="The field with the task of each text: words close to it count as important. "
            "The task is not kept secret.",
        ),
        "others": SharedOption(
            help="Copy or drop all other fields. With drop only the id and the texts are released."
        ),
        "keep": SharedOption(
            metavar="NAME",
            help="Copy this other field and drop those not named; repeatable. No statement covers "
            "a copied field.",
        ),
        "keep_anyway": SharedOption(
            metavar="NAME",
            help="Copy this field as --keep does, although it holds texts, or values by which a "
            "person may be found.",
        ),
        "whole": SharedOption(help="Take each .txt file as one text."),
        "placeholders": SharedOption(
            help="Count placeholders in each text, or give a value the same one in all rows of a "
            "subject (--subject), which shows where the value occurs again."
        ),
        "session": SharedOption(
            metavar="NAME",
            help="Keep the originals of placeholders in the store, in a session NAME for each "
            "subject. Without it they are thrown away. `textveil restore --session "
            "SUBJECT/NAME` puts them back.",
        ),
    },
    "run": {
        "output": SharedOption(
            flag="--output -O",
            metavar="FOLDER",
            help="The folder of the release, empty or new, or a URI.",
            may_lack=True,
        ),
        "executor": SharedOption(
            metavar="local|ray|spark",
            help="Draw in processes of this machine (local), or on an engine (extras ray and "
            "spark).",
        ),
        "jobs": SharedOption(
            metavar="N", help="The number of processes that draw; 0 for one per core."
        ),
        "cluster": SharedOption(
            metavar="ADDRESS",
            help="The address of a Ray or Spark cluster. Without it one is started on this "
            "machine.",
        ),
        "part_rows": SharedOption(
            metavar="N", help="The largest number of rows in a file of the release."
        ),
        "resume": SharedOption(
            help="Continue an interrupted run; a finished release stays unchanged."
        ),
        "keep_key": SharedOption(
            help="Keep the key of the release until `textveil corpus finish`."
        ),
    },
}
"""Options that are fields of a class, or parameters of a function.

By the owner's name. Their types, defaults and least values are those of the fields, and so are
their flags, if nothing else is said.
"""


def build_field_parameters(owner: Callable[..., Any], *names: str) -> dict[str, Parameter]:
    """Builds a verb's parameters from fields of a class.

    Or from parameters of a function. None where nothing is typed.

    Args:
        owner: the class or function.
        names: which fields; none for all in `FIELD_OPTIONS`.
    """
    table, hints = FIELD_OPTIONS[owner.__name__], get_type_hints(owner, include_extras=True)
    parameters = {}
    for name in names or table:
        shared, default = table[name], signature(owner).parameters[name].default
        kind, minimum = _read_kind(hints[name])
        required = default is Parameter.empty and not shared.may_lack
        option = replace(
            shared,
            flag=shared.flag or f"--{name.replace('_', '-')}",
            metavar="|".join(get_args(kind)) if get_origin(kind) is Literal else shared.metavar,
            kind=kind if required or kind is bool else kind | None,
            default=... if required else False if kind is bool else None,
            panel=None,
            default_text=not required and _spell_default(default),
            minimum=minimum,
        )
        parameters[name] = option.build_parameter(name)
    return parameters


def _spell_default(default: Any) -> str | bool:
    """Formats a default for the help; False for none."""
    if default is Parameter.empty:
        return False
    return f"{default:g}" if isinstance(default, float) else str(default or "") or False


def _read_kind(hint: Any) -> tuple[Any, float | None]:
    """Returns a field's type for typer, and its least value."""
    if get_origin(hint) in (Union, UnionType):
        return _read_kind(next(argument for argument in get_args(hint) if argument is not NoneType))
    minimum = None
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        rules = [rule for note in notes for rule in getattr(note, "metadata", ())]
        minimum = next((rule.ge for rule in rules if hasattr(rule, "ge")), None)
    if get_origin(hint) is Literal:
        # "" stands for an option that was not given, and cannot be typed.
        return Literal[tuple(filter(None, get_args(hint)))], None
    if get_origin(hint) is tuple:
        return list[str], None
    return hint if hint in (bool, int, float) else str, minimum


@dataclass(frozen=True, kw_only=True)
class TypedOptions:
    """The typed values of a verb's shared options.

    Attributes:
        values: the options with a separate flag, by dotted path.
        settings: what stood behind each -o.
        file: what stood behind --config.
        default: the profile where nothing names a profile or a mechanism; None for none.
    """

    values: Mapping[str, str]
    settings: tuple[str, ...] = ()
    file: str | None = None
    default: str | None = None

    @classmethod
    def build(cls, options: Mapping[str, Any], default: str | None) -> "TypedOptions":
        """Collects the values of the shared options by name.

        None for an option that was not typed.
        """
        values: dict[str, str] = {}
        for name, value in options.items():
            shared = SHARED_OPTIONS[name]
            if shared.path is not None and value is not None:
                values |= {shared.path: shared.resolve_value(value), **shared.implied_options}
        return cls(
            values=values,
            settings=tuple(options.get("setting") or ()),
            file=options.get("config"),
            default=default,
        )

    def resolve_config(self, *, complete: bool = True, **more: str | None) -> "Config":
        """Resolves the configuration of options, environment and files.

        The files that the options name.

        Args:
            complete: whether a mechanism that needs a budget must have one.
            more: further values by path, with __ for the dot, which must not contradict.

        Raises:
            ConfigError: an option is wrong, or missing.
        """
        from textveil.config import layers, option_sources

        flags = {**self.values, **{path.replace("__", "."): value for path, value in more.items()}}
        overrides = option_sources.parse_assignments(self.settings, flags)
        config = layers.resolve(
            file=self.file,
            environ=os.environ,
            overrides=overrides,
            default=self.default,
            complete=complete,
        )
        if self.default == "prompt" and config.protect.importance != "off":
            _refuse_idle_task(config)
        return config

    def split_settings(self, prefix: str) -> tuple["TypedOptions", list[str]]:
        """Splits off the settings that begin with a prefix.

        Returns the rest of the options, and those settings.
        """
        selected = [setting for setting in self.settings if setting.startswith(prefix)]
        return replace(
            self, settings=tuple(setting for setting in self.settings if setting not in selected)
        ), selected


def _refuse_idle_task(config: "Config") -> None:
    """Refuses a task that would change nothing.

    Where groups are shown it says something even so.
    """
    from textveil.protect import has_importance_budget

    if not has_importance_budget(config.groups):
        raise ConfigError(
            "--task and protect.importance change nothing here: groups.budgets treats important "
            "words like the others. Leave them out, or name a --profile whose groups have budgets "
            "of their own"
        )
