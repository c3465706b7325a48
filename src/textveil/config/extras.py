"""Optional libraries, and the extra that installs each.

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
    "alembic": "textveil[store]",
    "anyio": "textveil[mcp]",
    "botocore": "textveil[bedrock]",
    "cryptography": "textveil[store]",
    "data_juicer": "textveil[datajuicer]",
    "datasets": "textveil[datasets]",
    "datatrove": "textveil[datatrove]",
    "dbt": "textveil[dbt]",
    "dspy": "textveil[dspy]",
    "duckdb": "textveil[duckdb]",
    "gliner": "textveil[gliner]",
    "haystack": "textveil[haystack]",
    "httpx2": "textveil[gateway]",
    "keyring": "textveil[store]",
    "langchain": "textveil[langchain]",
    "langchain_core": "textveil[langchain]",
    "langgraph": "textveil[langchain]",
    "litellm": "textveil[litellm]",
    "llama_index": "textveil[llamaindex]",
    "mcp": "textveil[mcp]",
    "nemo_curator": "textveil[nemo]",
    "open_webui": "textveil[openwebui]",
    "openai": "textveil[models]",
    "opentelemetry": "textveil[tracing]",
    "pandas": "textveil[pandas]",
    "pocketsphinx": "textveil[trigram]",
    "polars": "textveil[polars]",
    "presidio_analyzer": "textveil[presidio]",
    "presidio_anonymizer": "textveil[presidio]",
    "prometheus_client": "textveil[gateway]",
    "psycopg": "textveil[store]",
    "pyarrow": "textveil[files]",
    "pyspark": "textveil[spark]",
    "ray": "textveil[ray]",
    "redis": "textveil[redis]",
    "scipy": "textveil[evaluate]",
    "sentence_transformers": "textveil[torch]",
    "sklearn": "textveil[library]",
    "spacy": "textveil[spacy]",
    "sqlalchemy": "textveil[store]",
    "stanza": "textveil[stanza]",
    "starlette": "textveil[gateway]",
    "torch": "textveil[torch]",
    "transformers": "textveil[torch]",
    "uvicorn": "textveil[gateway]",
}
"""The extra for each library, by import name."""

BENCH = "textveil-bench"
"""The distribution of the laboratory, which pip installs by this name."""

PACKAGES = {
    "data_juicer": "py-data-juicer",
    "dbt": "dbt-duckdb",
    "haystack": "haystack-ai",
    "langchain_core": "langchain-core",
    "llama_index": "llama-index-core",
    "lm_eval": "lm-evaluation-harness",
    "nemo_curator": "nemo-curator",
    "open_webui": "open-webui",
    "opentelemetry": "opentelemetry-api",
    "presidio_analyzer": "presidio-analyzer",
    "presidio_anonymizer": "presidio-anonymizer",
    "prometheus_client": "prometheus-client",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "scikit-learn",
    "textveil_bench": "textveil-bench",
}
"""Names of libraries that differ from their import names."""


@contextmanager
def explain_missing(extras: Mapping[str, str] = EXTRAS) -> Iterator[None]:
    """Turns failed imports of optional libraries into helpful errors.

    If one is missing, the error says how to install it.

    Args:
        extras: the extra for each library.

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
    raise MissingExtra(
        f"this needs {PACKAGES.get(library, library)}: pip install '{extras[library]}'"
    )


def import_library(module: str, extras: Mapping[str, str] = EXTRAS) -> Any:
    """Imports a module of an optional, untyped library.

    Arguments and errors as in `explain_missing`.
    """
    with explain_missing(extras):
        return import_module(module)


def require(*libraries: str) -> None:
    """Checks up front that libraries are installed.

    Instead of failing in the middle of the work.

    Raises:
        MissingExtra: one of them is missing.
    """
    for name in libraries:
        with explain_missing():
            if find_spec(name) is None:
                raise ModuleNotFoundError(name=name)
