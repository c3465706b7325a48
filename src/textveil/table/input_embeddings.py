"""Input embeddings of a model, read from its file for a table.

In: a folder or a hub id. Out: pieces and rows.
Not here: tables (`vectors`), and running networks (`models`).
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from tokenizers import Tokenizer

from textveil.config.extras import require
from textveil.errors import ModelError
from textveil.randomness import Floats
from textveil.table.hub import fetch, get_fast_tokenizer

_UNUSED = re.compile(r"\[unused\d+\]|madeupword\d+")
"""Pieces that BERT and RoBERTa keep free; no word is cut into them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class InputLayer:
    """A model's input embeddings, one row per piece of its tokenizer.

    Attributes:
        pieces: the row of each piece that is neither special nor unused.
        shape: rows and dimension; there may be more rows than pieces.
        rows: returns the rows from one index to another.
        tokenizer: cuts words into the pieces; no truncation, no padding.
    """

    pieces: dict[str, int] = field(repr=False)
    shape: tuple[int, int]
    rows: Callable[[int, int], Floats] = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)


def read_input_layer(source: str | Path) -> InputLayer:
    """Reads the input embeddings of a transformers model.

    From its safetensors file directly, if possible.

    Args:
        source: a local folder, or a hub id (owner/name).

    Raises:
        ModelError: there is no such model, its tokenizer is not a fast one, or its input embeddings
            are not a table.
        MissingExtra: torch or transformers is not installed.
    """
    require("torch", "transformers")
    import transformers

    def load(where: str, local: bool) -> tuple[Any, Any]:
        # Code that comes with a model is never run.
        options: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **options)
        embeddings = _read_stored(
            where, transformers.AutoConfig.from_pretrained(where, **options), local
        )
        if embeddings is None:
            network = transformers.AutoModel.from_pretrained(where, dtype="float32", **options)
            embeddings = network.get_input_embeddings().weight.detach().numpy()
        return tokenizer, embeddings

    name, (tokenizer, embeddings) = fetch(source, "transformers model with input embeddings", load)
    backend = get_fast_tokenizer(name, tokenizer)
    # Stored settings would cut words off, or add pieces that are none of the word's.
    backend.no_truncation()
    backend.no_padding()
    special = {
        number for number, token in backend.get_added_tokens_decoder().items() if token.special
    }
    special |= set(tokenizer.all_special_ids)
    pieces = {
        piece: number
        for piece, number in backend.get_vocab().items()
        if number not in special and _UNUSED.fullmatch(piece) is None
    }
    if len(embeddings.shape) != 2 or embeddings.dtype.kind not in "fV":
        raise ModelError(f"{name!r} must have input embeddings [V, d] of floating-point numbers")
    return InputLayer(
        pieces=pieces,
        shape=embeddings.shape,
        rows=lambda start, stop: convert_to_float32(embeddings[start:stop]),
        tokenizer=backend,
    )


def _read_stored(where: str, config: Any, local: bool) -> Any:
    """Reads the embeddings from the safetensors file alone; None if not found.

    The network is built without weights, to find out the name of its input embeddings.
    """
    import transformers

    torch = import_module("torch")  # transformers needs it
    with torch.device("meta"):
        network = transformers.AutoModel.from_config(config, trust_remote_code=False)  # type: ignore[no-untyped-call]
    embeddings = network.get_input_embeddings()
    name = (
        next(name for name, module in network.named_modules() if module is embeddings) + ".weight"
    )
    whole, parts = "model.safetensors", "model.safetensors.index.json"
    if (file := _find_file(where, parts, local)) is not None:
        holder = json.loads(file.read_text("utf-8"))["weight_map"]
    elif (file := _find_file(where, whole, local)) is not None:
        holder = dict.fromkeys(map_tensors(file), whole)
    else:
        return None
    # in the file of a larger network the name has the encoder's prefix ("bert.")
    matches = [tensor for tensor in holder if tensor == name or tensor.endswith(f".{name}")]
    file = _find_file(where, holder[matches[0]], local) if len(matches) == 1 else None
    return None if file is None else map_tensors(file)[matches[0]]


def _find_file(where: str, name: str, local: bool) -> Path | None:
    """Finds a file of a model; None if it does not exist."""
    from transformers.utils.hub import cached_file

    try:
        path = cached_file(where, name, local_files_only=local)
    except OSError:
        return None
    return None if path is None else Path(path)


# ---- tensors in a file ---------------------------------------------------------------------------

NUMPY_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "V2"} | {
    f"{sign}{8 * size}": f"<{sign.lower()}{size}" for sign in "IU" for size in (1, 2, 4, 8)
}
"""Types of safetensors as numpy types.

numpy has no bfloat16, which is the upper half of a float32.
"""


def map_tensors(file: Path) -> dict[str, NDArray[Any]]:
    """Maps the tensors of a safetensors file into memory, by name.

    Tensors are bytes in a row where numpy has no such type. The library would load them whole, and
    cannot read bfloat16 without torch.

    Raises:
        SafetensorError: the file is damaged.
    """
    with safe_open(file, framework="numpy"):
        pass  # checked
    data = np.memmap(file, np.uint8, "r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    tensors = {}
    for name, about in header.items():
        first, last = (start + place for place in about["data_offsets"])
        kind = NUMPY_TYPES.get(about["dtype"])
        part = data[first:last]
        tensors[name] = part if kind is None else part.view(kind).reshape(about["shape"])
    return tensors


def convert_to_float32(rows: NDArray[Any]) -> Floats:
    """Converts rows of a mapped tensor to float32."""
    if rows.dtype.kind != "V":
        return np.asarray(rows, np.float32)
    return (np.asarray(rows).view("<u2").astype(np.uint32) << 16).view(np.float32)
