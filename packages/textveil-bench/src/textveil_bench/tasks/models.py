"""The models of judges: loaded once in a process, whichever judge asks.

In: sources, a folder or hub id, or None for what the package brings. Out: encoders and readers; what rows call them;
in which numbers they compute.
Not here: the models themselves (`textveil.models`).
"""

import os
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from textveil.models import Sentences, SequenceClassifier, SpanReader

ENCODER = "all-MiniLM-L6-v2"
READER = "the bundled reader"


def called(source: str | None, bundled: str = ENCODER) -> str:
    """What rows call a model, told without loading it: the name of a folder, without the path to it."""
    if source is None:
        return bundled
    return Path(source).resolve().name if os.path.isdir(source) else source


@cache
def precision() -> Literal["bfloat16", "float32"]:
    """What networks multiply in under `quick`: bfloat16 where the processor has instructions for that."""
    import torch

    able: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()  # older versions of torch do not tell
    return "bfloat16" if able.get("avx512_bf16") or able.get("amx_bf16") else "float32"


def quick() -> AbstractContextManager[object]:
    """Lets networks that judge, or guess words, multiply in `precision`.

    Judging is most of a sweep's time, and bfloat16 takes less of it. Sentence vectors keep a cosine above 0.999 with
    those in float32. Nothing that is released depends on it.
    """
    import torch

    return torch.autocast("cpu", torch.bfloat16, enabled=precision() == "bfloat16")


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
