"""The default tables: all-MiniLM-L6-v2's input embeddings in half precision, offline, verified.

In: the model's files in `data/minilm`, which the build puts there. Out: `EmbeddingTable`s by name,
and the model's weights as they are stored: word rows in float16, other matrices in int8 with a
scale for each 32 numbers of a row.
Not here: what a table can do (`embedding`), and the model's other layers (`models.bundled`).
"""

import hashlib
import json
import re
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from textveil.errors import TableError
from textveil.table.constants import load_stored
from textveil.table.embedding import EmbeddingTable, LazyTable, Metric, PieceVectors
from textveil.table.input_embeddings import map_tensors

MODEL = "all-MiniLM-L6-v2"
"""The model's name in errors."""

SHA256 = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "model.safetensors": "1f3a5a8c05f0b3d179629faf51c71aa37b8c097e4dc482341a3fc13cac9426ae",
}
"""Checksums of the files.

The public table is what the last file holds, bit for bit.
"""

VOCABULARY_SHA256 = "0f052197aac305fe42f378b5c61554b7bacb34b8be4af83fec2cfdcdffbc9973"
"""SHA-256 of the tokenizer's pieces in order, one per line.

They decide which row belongs to which word.
"""
EMBEDDINGS = "embeddings.word_embeddings.weight"


def minilm(*, metric: Metric = "chord", device: str = "cpu") -> EmbeddingTable:
    """ASCII words longer than one letter, and ASCII numerals: 22,580 rows of 384 numbers."""
    return _select("minilm", metric, device, re.compile("[A-Za-z]{2,}|[0-9]+").fullmatch)


def minilm_s(*, metric: Metric = "chord", device: str = "cpu") -> EmbeddingTable:
    """ASCII words longer than one letter: 21,719 rows, the slice on which published constants were measured."""
    return _select("minilm-s", metric, device, re.compile("[A-Za-z]{2,}").fullmatch)


def minilm_wordpiece(*, metric: Metric = "chord", device: str = "cpu") -> EmbeddingTable:
    """All word pieces of the tokenizer except special and unused ones, for `words.unit=wordpiece`."""
    return _select(
        "minilm-wordpiece",
        metric,
        device,
        lambda piece: not (piece[0] == "[" and piece[-1] == "]" and len(piece) > 2),
    )


def _select(
    name: str, metric: Metric, device: str, wanted: Callable[[str], object]
) -> EmbeddingTable:
    folder = locate()
    words = _read_words(folder)
    selected_rows = [row for row, word in enumerate(words) if wanted(word)]

    def read() -> EmbeddingTable:
        rows = _read_rows(folder)
        if len(words) != len(rows):
            raise TableError(
                f"the tokenizer of {MODEL} does not match its {len(rows)} rows; reinstall textveil"
            )
        return EmbeddingTable.build(
            name=name,
            words=[words[row] for row in selected_rows],
            vectors=rows[selected_rows].astype(np.float32),
            metric=metric,
            device=device,
            pieces=PieceVectors(tokenizer=read_tokenizer(folder), vectors=rows),
            stored=load_stored(name, metric),
            # indexing has copied the rows already
            own=True,
        )

    if device != "cpu" or metric not in get_args(Metric):  # either may be refused
        return read()
    return LazyTable.create(name, metric, [words[row] for row in selected_rows], read)


def _read_words(folder: Path) -> list[str]:
    """Reads the tokenizer's pieces in order from its file.

    Building the tokenizer itself would take longer.
    """
    try:
        content = json.loads((folder / "tokenizer.json").read_bytes())
        vocabulary: dict[str, int] = content["model"]["vocab"]
        words = sorted(vocabulary, key=vocabulary.__getitem__)
        digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise TableError(f"cannot read the tokenizer of {MODEL}; reinstall textveil") from error
    if digest != VOCABULARY_SHA256:
        raise TableError(
            f"the vocabulary of {MODEL} must have sha256 {VOCABULARY_SHA256}, got {digest}; "
            "reinstall textveil"
        )
    return words


def locate() -> Path:
    """Returns the model's folder, which the build puts into the package."""
    return Path(str(resources.files("textveil").joinpath("data/minilm")))


def read_tokenizer(folder: Path) -> Tokenizer:
    """Reads the tokenizer of the model, without truncation and padding."""
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the Rust side raises bare Exception
        raise TableError(f"cannot read the tokenizer of {MODEL}; reinstall textveil") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def locate_verified_model(folder: Path) -> Path:
    """Returns the path of the model's file, after verifying its checksum."""
    path, expected = folder / "model.safetensors", SHA256["model.safetensors"]
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TableError(
            f"cannot read {path.name} of {MODEL} ({error.strerror}); reinstall textveil"
        ) from error
    if digest != expected:
        raise TableError(
            f"{path.name} of {MODEL} must have sha256 {expected}, got {digest}; reinstall textveil"
        )
    return path


def load_weights(folder: Path) -> dict[str, NDArray[Any]]:
    """Maps all weights of the model into memory, after verifying the checksum.

    Weights keep their stored types.

    Args:
        folder: the model's.

    Raises:
        TableError: the file is missing or broken.
    """
    # The checksum is part of the cache's key: nothing verified against another one is reused.
    return _map_weights(folder, SHA256["model.safetensors"])


@lru_cache(maxsize=1)
def _map_weights(folder: Path, _: str) -> dict[str, NDArray[Any]]:
    return map_tensors(locate_verified_model(folder))


def _read_rows(folder: Path) -> NDArray[np.float16]:
    """Returns the input embeddings, float16 [30522, 384]."""
    tensors = load_weights(folder)
    if EMBEDDINGS not in tensors:
        raise TableError(
            f"model.safetensors of {MODEL} lacks the tensor {EMBEDDINGS}; reinstall textveil"
        )
    return tensors[EMBEDDINGS]
