"""The judges' models, loaded once per process and shared.

In: sources: a folder or hub id, or None for the bundled model. Out: encoders and readers; their names in rows; their
precision.
Not here: the models themselves (`textveil.models`).
"""

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from textveil.models import Sentences, SequenceClassifier, SpanReader

ENCODER = "all-MiniLM-L6-v2"
READER = "the bundled reader"


def called(source: str | None, bundled: str = ENCODER) -> str:
    """A model's name in rows, without loading it: for a folder its name, without the path."""
    if source is None:
        return bundled
    return Path(source).resolve().name if os.path.isdir(source) else source


@cache
def precision() -> Literal["bfloat16", "float32"]:
    """The precision of networks under `quick`: bfloat16 if the processor has instructions for it, with torch."""
    if find_spec("torch") is None:
        return "float32"
    import torch

    # missing in older versions of torch
    able: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return "bfloat16" if able.get("avx512_bf16") or able.get("amx_bf16") else "float32"


def quick() -> AbstractContextManager[object]:
    """Lets networks on torch that judge, or guess words, run in `precision`; the bundled ones are not on torch.

    Judging takes most of a sweep's time, and bfloat16 makes it faster. Sentence vectors keep a cosine above 0.999 with
    those in float32. No release depends on it.
    """
    if precision() == "float32":
        return nullcontext()
    import torch

    return torch.autocast("cpu", torch.bfloat16)


@cache
def encoder(source: str | None = None) -> "Sentences":
    """A sentence encoder.

    Raises:
        ModelError: there is no such model.
    """
    from textveil.models import load_sentences

    return load_sentences(source)


@cache
def reader(source: str | None = None) -> "SpanReader":
    """A reader.

    Raises:
        ModelError: there is no such model.
    """
    from textveil.models import load_reader

    return load_reader(source)


@cache
def classifier(source: str) -> "SequenceClassifier":
    """A sequence classifier.

    Raises:
        ModelError: there is no such model.
    """
    from textveil.models import load_labels

    return load_labels(source)
