"""Public models from a folder, or from a hub that may or may not be reached.

In: a folder, or a repository and a file name. Out: a file's local path; whatever a caller loads from there.
Not here: what is in the files (`minilm`, `wordpiece`, `inputs`). Nothing of the user's is sent but the names.
"""

import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tokenizers import Tokenizer

from textveil.errors import ModelError, TableError, shown

HUB_ID = re.compile(r"[\w-][\w.-]{0,95}/[\w.-]{1,96}")
"""What the name of a model on a hub looks like: owner/name."""


def download(repository: str, file: str) -> Path:
    """The local path of a hub's file, from the cache where it is there.

    Raises:
        TableError: the hub cannot be reached, or has no such file.
    """
    log = logging.getLogger("huggingface_hub")
    level = log.level
    try:
        from huggingface_hub import hf_hub_download

        log.setLevel(logging.CRITICAL)  # its retries are no news to the user
        return Path(hf_hub_download(repository, file, etag_timeout=5))
    except Exception as error:  # the hub's client raises many kinds; none of them holds user text
        raise TableError(f"{repository} could not be fetched from the hub ({type(error).__name__})") from error
    finally:
        log.setLevel(level)


T = TypeVar("T")


class NoModelError(ModelError):
    """There is nothing of that name, for whatever job."""


def fetch(source: str | Path, what: str, load: Callable[[str, bool], T]) -> tuple[str, T]:
    """What a model is called, and what `load` makes of it.

    Args:
        source: a local folder or a hub id.
        what: it must be, for messages.
        load: takes where the model is, and whether files on this machine must do; a hub's model is looked for in the
            cache first.

    Raises:
        NoModelError: the source can be neither a folder nor a hub id, or the hub does not give it.
        ModelError: it cannot be loaded.
    """
    where = str(source)
    folder = os.path.isdir(where)  # a Path would raise where the name is too long for one
    if not folder and (os.path.exists(where) or not HUB_ID.fullmatch(where)):
        raise NoModelError(f"a model must be a folder or a hub id (owner/name); a source {shown(where)} is neither")
    name = Path(where).resolve().name if folder else where
    with quiet():
        try:
            return name, load(where, True)
        except Exception as error:  # many kinds; none of them holds user text
            if folder:
                raise _unfit(name, what, error) from error
        try:
            from huggingface_hub import HfApi

            HfApi().model_info(where, timeout=5)  # one question; loading would ask for each file, many times
        except Exception as error:
            raise NoModelError(
                f"there is no such folder and no such model in the cache, and the hub did not give {shown(where)} "
                f"({type(error).__name__})"
            ) from error
        try:
            return name, load(where, False)
        except Exception as error:
            raise _unfit(name, what, error) from error


def _unfit(name: str, what: str, error: Exception) -> ModelError:
    return ModelError(f"{name!r} must be a {what}, and could not be loaded ({type(error).__name__})")


def fast(name: str, tokenizer: Any) -> Tokenizer:
    """The Rust side of a transformers tokenizer.

    Raises:
        ModelError: it has none.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise ModelError(f"the tokenizer of {name!r} must be a fast one (tokenizer.json)")
    return backend


@contextmanager
def quiet() -> Iterator[None]:
    """transformers and the hub report what they do; that is no news to a user, and is answered by checks."""
    from transformers.utils import logging as reports

    hub = logging.getLogger("huggingface_hub")
    level, bars, hubs = reports.get_verbosity(), reports.is_progress_bar_enabled(), hub.level
    reports.set_verbosity(logging.CRITICAL)
    hub.setLevel(logging.CRITICAL)
    reports.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        reports.set_verbosity(level)
        hub.setLevel(hubs)
        if bars:
            reports.enable_progress_bar()  # type: ignore[no-untyped-call]
