"""The options of a run, the layers they come from, and the registry of names.

In: profiles, files, the environment, values by dotted path. Out: one frozen `Config`; the callable behind a name.
Not here: what the options do; each section is read by the room it belongs to.
"""

from textveil.config.layers import keywords, resolve
from textveil.config.options import options, plain
from textveil.config.sections import (
    SELF,
    Config,
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
