"""Libraries that only some verbs need, and the extra of textveil that installs each.

In: an import that may fail. Out: the module, or one error that says what to install.
Not here: the extras themselves (pyproject.toml).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from textveil.errors import MissingExtra

EXTRAS = {
    "gliner": "textveil[gliner]",
    "httpx2": "textveil[gateway]",
    "matplotlib": "textveil[evaluate]",
    "openai": "textveil[models]",
    "presidio_analyzer": "textveil[presidio]",
    "pyarrow": "textveil[files]",
    "rapidfuzz": "textveil[evaluate]",
    "sacrebleu": "textveil[evaluate]",
    "scipy": "textveil[evaluate]",
    "sentence_transformers": "textveil[models]",
    "sklearn": "textveil[evaluate]",
    "spacy": "textveil[spacy]",
    "stanza": "textveil[stanza]",
    "starlette": "textveil[gateway]",
    "uvicorn": "textveil[gateway]",
}
"""What installs each library, by the name that it is imported by."""

PACKAGES = {
    "lm_eval": "lm-evaluation-harness",
    "presidio_analyzer": "presidio-analyzer",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "scikit-learn",
}
"""What a library is called by people, if not as it is imported."""


@contextmanager
def needed(extras: Mapping[str, str] = EXTRAS) -> Iterator[None]:
    """Around imports of libraries of an extra: where one is missing, the error says how to install it.

    Args:
        extras: what installs each library.

    Raises:
        MissingExtra: a library of `extras` is not installed.
    """
    try:
        yield
        return
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in extras:
            raise
    raise MissingExtra(f"this needs {PACKAGES.get(library, library)}: pip install '{extras[library]}'")


def library(module: str, extras: Mapping[str, str] = EXTRAS) -> Any:
    """A module of a library of an extra, for which there are no types; arguments and errors as `needed`."""
    with needed(extras):
        return import_module(module)


def require(*libraries: str) -> None:
    """Refuse before the work what would be refused in the midst of it: a library is not installed.

    Raises:
        MissingExtra: one of these is not there.
    """
    for name in libraries:
        with needed():
            if find_spec(name) is None:
                raise ModuleNotFoundError(name=name)
