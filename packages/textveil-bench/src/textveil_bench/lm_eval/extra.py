"""The optional library lm-evaluation-harness, loaded on demand and kept quiet.

In: a module's name. Out: the module, or an error that names the package to install.
Not here: its uses (`harness`).
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from logging import ERROR, getLogger
from typing import Any

from textveil.config import extras

NOISY_LOGGERS = ("lm_eval", "datasets", "transformers", "huggingface_hub", "accelerate")
"""Loggers restricted to errors: lm_eval's warnings show documents."""


EXTRAS = dict.fromkeys(("lm_eval", "jinja2"), "textveil-bench[lm-eval]")
"""The extra that installs each library."""


def load_library(module: str) -> Any:
    """Loads a module of the library or of one of its dependencies.

    Raises:
        MissingExtra: it is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return extras.import_library(module, EXTRAS)


@contextmanager
def suppress_output() -> Iterator[None]:
    """Redirects the library's output to a terminal's standard error, or drops it.

    Standard output stays free for results.
    """
    levels = {name: getLogger(name).level for name in NOISY_LOGGERS}
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if sys.stderr is not None and sys.stderr.isatty():
            stack.enter_context(redirect_stdout(sys.stderr))
        else:
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.enter_context(redirect_stdout(nowhere))
            stack.enter_context(redirect_stderr(nowhere))
        try:
            for name in NOISY_LOGGERS:
                getLogger(name).setLevel(ERROR)
            yield
        finally:
            for name, level in levels.items():
                getLogger(name).setLevel(level)
