"""Models of the judges, loaded once per process and shared.

In: sources: a folder or hub id, or None for the bundled model. Out: encoders and readers; their
names in rows; their precision.
Not here: the models themselves (`textveil.models`).
"""

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from textveil.models import SentenceModel, SequenceClassifier, SpanReader

ENCODER_NAME = "all-MiniLM-L6-v2"
READER_NAME = "the bundled reader"


def get_model_name(source: str | None, bundled: str = ENCODER_NAME) -> str:
    """Returns a model's name in rows; for folders without the path."""
    if source is None:
        return bundled
    folder, _, pooling = source.rpartition("@")
    if pooling and folder and not os.path.isdir(source):
        return f"{get_model_name(folder)} ({pooling})"
    return Path(source).resolve().name if os.path.isdir(source) else source


@cache
def choose_precision() -> Literal["bfloat16", "float32"]:
    """Chooses the precision of networks under `reduce_precision`.

    bfloat16 if torch is installed and the processor has instructions for it.
    """
    if find_spec("torch") is None:
        return "float32"
    import torch

    # missing in older versions of torch
    able: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return "bfloat16" if able.get("avx512_bf16") or able.get("amx_bf16") else "float32"


def reduce_precision() -> AbstractContextManager[object]:
    """Runs torch networks in the precision of `choose_precision`, as a context manager.

    It applies to networks that judge or guess words, not to the bundled ones, which do not use
    torch. Judging takes most of a sweep's time, and bfloat16 makes it faster. Sentence vectors keep
    a cosine above 0.999 with those in float32. No release depends on it.
    """
    if choose_precision() == "float32":
        return nullcontext()
    import torch

    return torch.autocast("cpu", torch.bfloat16)


@cache
def get_encoder(source: str | None = None) -> "SentenceModel":
    """Returns a sentence encoder.

    Raises:
        ModelError: there is no such model.
    """
    from textveil.models import load_sentences

    return load_sentences(source)


@cache
def get_reader(source: str | None = None) -> "SpanReader":
    """Returns an extractive reader.

    Raises:
        ModelError: there is no such model.
    """
    from textveil.models import load_reader

    return load_reader(source)


@cache
def get_classifier(source: str) -> "SequenceClassifier":
    """Returns a sequence classifier.

    Raises:
        ModelError: there is no such model.
    """
    from textveil.models import load_labels

    return load_labels(source)
