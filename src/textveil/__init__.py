"""textveil keeps what is private in texts from leaving: it hides it in prompts, or privatizes whole texts.

In: text. Out: prompts in which what was found is hidden, from `Protector`; privatized texts with a
statement of what is
guaranteed, from `Privatizer`; public texts in place of private ones, from `TextPrivatizer`.
Not here: any code that does it. Every public name is imported from its room when it is first used.
Options have their
place in `textveil.config`.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textveil.errors import (
        BudgetError,
        ConfigError,
        DetectorError,
        EndpointError,
        GuaranteeError,
        InputError,
        LimitReached,
        MechanismError,
        MissingExtra,
        ModelError,
        OutputError,
        RandomnessError,
        RequestLimitReached,
        StoreError,
        TableError,
        TextveilError,
        TextveilWarning,
        UnknownName,
        VocabularyError,
    )
    from textveil.guarantee import Guarantee
    from textveil.library import Library
    from textveil.pipeline import (
        Privatizer,
        Protector,
        Result,
        Synthesis,
        TextPrivatizer,
        TextResult,
        Votes,
        synthesize,
    )
    from textveil.protect import Finding
    from textveil.session import Session, SessionStore
    from textveil.table import EmbeddingTable, load_table
    from textveil.text import Item, Kind, Mask, Released

# Else ONNX Runtime sends its maker an id of this machine and the path of the interpreter, as soon as it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = [  # noqa: RUF022 (what one begins with stands first)
    "Privatizer",
    "Protector",
    "Session",
    "SessionStore",
    "Result",
    "TextPrivatizer",
    "TextResult",
    "load_table",
    "synthesize",
    "TextveilError",
    # what results and tables are made of
    "EmbeddingTable",
    "Finding",
    "Guarantee",
    "Item",
    "Kind",
    "Library",
    "Mask",
    "Released",
    "Synthesis",
    "Votes",
    # errors and warnings
    "BudgetError",
    "ConfigError",
    "DetectorError",
    "EndpointError",
    "GuaranteeError",
    "InputError",
    "LimitReached",
    "MechanismError",
    "MissingExtra",
    "ModelError",
    "OutputError",
    "RequestLimitReached",
    "RandomnessError",
    "StoreError",
    "TableError",
    "TextveilWarning",
    "UnknownName",
    "VocabularyError",
    "__version__",
]

_ROOMS = {
    "guarantee": ("Guarantee",),
    "library": ("Library",),
    "pipeline": (
        "Privatizer",
        "Protector",
        "Result",
        "Synthesis",
        "TextPrivatizer",
        "TextResult",
        "Votes",
        "synthesize",
    ),
    "protect": ("Finding",),
    "session": ("Session", "SessionStore"),
    "table": ("EmbeddingTable", "load_table"),
    "text": ("Item", "Kind", "Mask", "Released"),
}
_HOME = {name: f"textveil.{room}" for room, names in _ROOMS.items() for name in names}

__version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _read_version()
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in __all__:  # all others are errors
        value = getattr(import_module("textveil.errors"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _read_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("textveil")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"
