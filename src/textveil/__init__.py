"""textveil privatizes text word by word with metric differential privacy, and states what is guaranteed.

In: text. Out: privatized text with its statement, from `Privatizer`.
Not here: any code that does it. Every public name is imported from its module when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textveil.config import Config, GroupOptions, NameOptions, ProtectOptions, Rerank, WordsOptions
    from textveil.errors import (
        BudgetError,
        ConfigError,
        DetectorError,
        EndpointError,
        GuaranteeError,
        InputError,
        MechanismError,
        ModelError,
        OutputError,
        RandomnessError,
        TableError,
        TextveilError,
        TextveilWarning,
        UnknownName,
        VocabularyError,
    )
    from textveil.guarantee import Guarantee
    from textveil.pipeline import Privatizer, Result
    from textveil.session import Session
    from textveil.table import EmbeddingTable, load_table
    from textveil.text import Item, Kind, Mask, Released

__all__ = [
    "BudgetError",
    "Config",
    "ConfigError",
    "DetectorError",
    "EmbeddingTable",
    "EndpointError",
    "GroupOptions",
    "Guarantee",
    "GuaranteeError",
    "InputError",
    "Item",
    "Kind",
    "Mask",
    "MechanismError",
    "ModelError",
    "NameOptions",
    "OutputError",
    "Privatizer",
    "ProtectOptions",
    "RandomnessError",
    "Released",
    "Rerank",
    "Result",
    "Session",
    "TableError",
    "TextveilError",
    "TextveilWarning",
    "UnknownName",
    "VocabularyError",
    "WordsOptions",
    "__version__",
    "load_table",
]

_MODULES = {
    "config": ("Config", "GroupOptions", "NameOptions", "ProtectOptions", "Rerank", "WordsOptions"),
    "guarantee": ("Guarantee",),
    "pipeline": ("Privatizer",),
    "results": ("Result",),
    "session": ("Session",),
    "table": ("EmbeddingTable", "load_table"),
    "words": ("Item", "Kind", "Mask", "Released"),
}
_HOME = {name: f"textveil.{module}" for module, names in _MODULES.items() for name in names}

__version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
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


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("textveil")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"
