"""The options of a run, their layers, and the registry of names.

In: profiles, files, the environment, values by dotted path. Out: one frozen `Config`; the callable
behind a name.
Not here: what the options do; each section is read by the room it belongs to.

Names are imported when they are first used, because a list of names (`registry`) needs none of
them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textveil.config.frozen import dump_options, make_options
    from textveil.config.layers import convert_keywords, resolve
    from textveil.config.option_sources import describe_profiles
    from textveil.config.sections import (
        SELF,
        Config,
        FigureOptions,
        GroupOptions,
        IdentifierOptions,
        NameOptions,
        ProtectOptions,
        Rerank,
        TextOptions,
        WordsOptions,
        convert_number,
    )

__all__ = [
    "SELF",
    "Config",
    "FigureOptions",
    "GroupOptions",
    "IdentifierOptions",
    "NameOptions",
    "ProtectOptions",
    "Rerank",
    "TextOptions",
    "WordsOptions",
    "convert_keywords",
    "convert_number",
    "describe_profiles",
    "dump_options",
    "make_options",
    "resolve",
]

_MODULES = {
    "frozen": ("dump_options", "make_options"),
    "layers": ("convert_keywords", "resolve"),
    "sections": (
        "SELF",
        "Config",
        "FigureOptions",
        "IdentifierOptions",
        "GroupOptions",
        "NameOptions",
        "ProtectOptions",
        "Rerank",
        "TextOptions",
        "WordsOptions",
        "convert_number",
    ),
    "option_sources": ("describe_profiles",),
}
_HOME = {name: f"textveil.config.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOME[name]), name)
    return value
