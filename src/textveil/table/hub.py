"""Public models from a folder or a hub, online or offline.

In: a folder, or a repository and a file name. Out: a file's local path; whatever a caller loads
from there.
Not here: what is in the files (`minilm`, `wordpiece`, `input_embeddings`). Only the names are sent,
nothing
of the user's.
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

from textveil.errors import ModelError, TableError, quote_short

HUB_ID = re.compile(r"[\w-][\w.-]{0,95}/[\w.-]{1,96}")
"""The form of a hub model's name: owner/name."""


def download(repository: str, file: str) -> Path:
    """Returns the local path of a hub's file, cached if possible.

    Raises:
        TableError: the hub cannot be reached, or has no such file.
    """
    log = logging.getLogger("huggingface_hub")
    level = log.level
    try:
        from huggingface_hub import hf_hub_download

        log.setLevel(logging.CRITICAL)  # users need not hear of its retries
        return Path(hf_hub_download(repository, file, etag_timeout=5))
    except Exception as error:  # of many kinds, none with user text in it
        raise TableError(
            f"could not fetch {repository} from the hub ({type(error).__name__})"
        ) from error
    finally:
        log.setLevel(level)


T = TypeVar("T")


class NoModelError(ModelError):
    """The model does not exist, for any job."""


def fetch(source: str | Path, noun: str, load: Callable[[str, bool], T]) -> tuple[str, T]:
    """Loads a model, and returns its name and the result of `load`.

    Args:
        source: a local folder or a hub id.
        noun: the kind of model expected, in errors.
        load: takes the model's location, and whether to use local files only; for a hub's model the
            cache is tried first.

    Raises:
        NoModelError: the source is neither a folder nor a hub id, or the hub does not provide it.
        ModelError: it cannot be loaded.
    """
    location = str(source)
    folder = os.path.isdir(location)  # Path would raise for a very long name
    if not folder and (os.path.exists(location) or not HUB_ID.fullmatch(location)):
        raise NoModelError(
            f"a model must be a folder or a hub id (owner/name), and {quote_short(location)} "
            "is neither"
        )
    name = Path(location).resolve().name if folder else location
    with silence_reports():
        try:
            return name, load(location, True)
        except Exception as error:  # of many kinds, none with user text in it
            if folder:
                raise _build_load_error(name, noun, error) from error
            failure = _build_load_error(name, noun, error)
        from huggingface_hub import HfApi, try_to_load_from_cache

        try:
            # a single request; loading would try each file many times
            HfApi().model_info(location, timeout=5)
        except Exception as error:
            if isinstance(try_to_load_from_cache(location, "config.json"), str):
                raise failure from error  # it is there, and fit for another job
            raise NoModelError(
                f"no folder and no cached model is named {quote_short(location)}, and the hub did "
                f"not provide it ({type(error).__name__})"
            ) from error
        try:
            return name, load(location, False)
        except Exception as error:
            raise _build_load_error(name, noun, error) from error


def _build_load_error(name: str, noun: str, error: Exception) -> ModelError:
    return ModelError(f"could not load {name!r} as a {noun} ({type(error).__name__})")


def get_fast_tokenizer(name: str, tokenizer: Any) -> Tokenizer:
    """Returns the Rust side of a transformers tokenizer.

    Raises:
        ModelError: it has none.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise ModelError(f"{name!r} needs a fast tokenizer (tokenizer.json)")
    return backend


@contextmanager
def silence_reports() -> Iterator[None]:
    """Silences progress and notices of transformers and the hub.

    The package's checks cover what they report.
    """
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
