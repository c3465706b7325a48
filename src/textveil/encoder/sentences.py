"""Sentence vectors: what a text is about, as a direction.

In: texts. Out: unit vectors [B, d].
Not here: what is compared with what.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from textveil.encoder.models import bundled_folder, quiet, source_of
from textveil.encoder.ragged import Windows
from textveil.errors import ConfigError, ModelError
from textveil.words import check_texts

Floats = NDArray[np.float32]


class SentenceEncoder(Protocol):
    """Whatever gives texts their vectors."""

    name: str
    dimension: int

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors float32 [B, d]; a text without words has the zero vector."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Sentences:
    """A sentence-transformers model. Load one with `load_sentences`.

    Attributes:
        name: what rows and statements call it.
        dimension: d.
        model: the `SentenceTransformer`.
        window: pieces that it reads at once; a longer text is the mean of its windows, by their lengths.
        batch: texts or windows in one run of the network.
    """

    name: str
    dimension: int
    model: Any = field(repr=False)
    window: int
    batch: int

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors float32 [B, d]; a text without words has the zero vector.

        Raises:
            InputError: `texts` is not a sequence of valid Unicode strings.
        """
        check_texts(texts)
        parts, owners, sizes = self._windows(texts)
        found = np.zeros((len(texts), self.dimension), np.float32)
        if parts:
            vectors = self.model.encode(
                parts, batch_size=self.batch, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
            )
            np.add.at(found, owners, np.asarray(vectors, np.float32) * sizes[:, None])
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        unit: Floats = np.divide(found, lengths, out=found, where=lengths > 0)
        return unit

    def _windows(self, texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64], Floats]:
        """Every text whole, or in windows where it is too long: the parts, whose they are, and their pieces."""
        parts: list[str] = []
        owners: list[int] = []
        sizes: list[int] = []
        for b, text in enumerate(texts):
            cut = self.model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
            places = cut["offset_mapping"]
            windows = Windows.over(np.array([0, len(places)]), self.window, 0)
            alone = len(windows.begins) == 1
            for begin, length in zip(windows.begins.tolist(), windows.lengths.tolist(), strict=True):
                part = text[places[begin][0] : places[begin + length - 1][1]]
                parts.append(text if alone else part)
                owners.append(b)
                sizes.append(length)
        return parts, np.array(owners, np.int64), np.array(sizes, np.float32)


def load_sentences(source: str | Path | None = None, *, batch: int = 32, device: str = "cpu") -> Sentences:
    """A sentence encoder.

    Args:
        source: None for the bundled encoder, or a folder or hub id of a sentence-transformers or transformers model
            (of the latter the mean over pieces is taken).
        batch: texts in one run of the network.
        device: a torch device.

    Raises:
        ConfigError: an option is out of range.
        ModelError: there is no such model.
    """
    if batch < 1:
        raise ConfigError(f"batch must be at least 1, got {batch}")
    name, where, local = ("all-MiniLM-L6-v2", str(bundled_folder()), True) if source is None else source_of(source)
    from sentence_transformers import SentenceTransformer

    with quiet():
        try:
            model = SentenceTransformer(where, device=device, local_files_only=local)
        except Exception as error:  # many kinds; none of them holds user text
            raise ModelError(
                f"{name!r} must be a sentence encoder, and could not be loaded ({type(error).__name__})"
            ) from error
    model.tokenizer.split_special_tokens = True  # a text may hold "[SEP]", and means those letters
    limit = model.max_seq_length or 512
    frame = model.tokenizer.num_special_tokens_to_add()
    return Sentences(
        name=name,
        dimension=model.get_embedding_dimension() or 0,
        model=model,
        window=limit - frame,
        batch=batch,
    )
