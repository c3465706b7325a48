"""Libraries that only some verbs need, and the extra of textveil that installs each.

In: an import that may fail. Out: the module, or one error that says what to install.
Not here: the extras themselves (pyproject.toml).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from textveil.errors import MissingExtra

EXTRAS = {
    "gliner": "gliner",
    "httpx2": "gateway",
    "matplotlib": "evaluate",
    "openai": "models",
    "presidio_analyzer": "presidio",
    "pyarrow": "files",
    "rapidfuzz": "evaluate",
    "sacrebleu": "evaluate",
    "scipy": "evaluate",
    "sentence_transformers": "models",
    "sklearn": "evaluate",
    "spacy": "spacy",
    "stanza": "stanza",
    "starlette": "gateway",
    "uvicorn": "gateway",
}
"""The extra of each library, by the name that it is imported by."""

PACKAGES = {
    "presidio_analyzer": "presidio-analyzer",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "scikit-learn",
}
"""What a library is called where it is installed, if not as it is imported."""


@contextmanager
def needed() -> Iterator[None]:
    """Around imports of libraries of an extra: where one is missing, the error says how to install it.

    Raises:
        MissingExtra: a library of `EXTRAS` is not installed.
    """
    try:
        yield
        return
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
    raise MissingExtra(PACKAGES.get(library, library), EXTRAS[library])
