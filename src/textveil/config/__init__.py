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
    from textveil.config.frozen import options, plain
    from textveil.config.layers import keywords, resolve
    from textveil.config.sections import (
        SELF,
        Config,
        FigureOptions,
        GroupOptions,
        NameOptions,
        ProtectOptions,
        Rerank,
        WordsOptions,
        require_number,
    )
    from textveil.config.sources import profiles

__all__ = [
    "SELF",
    "Config",
    "FigureOptions",
    "GroupOptions",
    "NameOptions",
    "ProtectOptions",
    "Rerank",
    "WordsOptions",
    "keywords",
    "options",
    "plain",
    "profiles",
    "require_number",
    "resolve",
]

_MODULES = {
    "frozen": ("options", "plain"),
    "layers": ("keywords", "resolve"),
    "sections": (
        "SELF",
        "Config",
        "FigureOptions",
        "GroupOptions",
        "NameOptions",
        "ProtectOptions",
        "Rerank",
        "WordsOptions",
        "require_number",
    ),
    "sources": ("profiles",),
}
_HOME = {name: f"textveil.config.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOME[name]), name)
    return value
