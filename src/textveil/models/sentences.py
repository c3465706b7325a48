"""Sentence vectors: texts as unit vectors by meaning.

In: texts. Out: unit vectors [B, d].
Not here: what is compared with what.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from textveil.config.extras import needed
from textveil.errors import ConfigError, ModelError
from textveil.models.networks import ENCODER, bundled_folder, check_device, places
from textveil.randomness import Floats
from textveil.table import fetch
from textveil.text import check_texts


class SentenceEncoder(Protocol):
    """Anything that encodes texts as vectors."""

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
        window: pieces it reads at once, without special tokens; a longer text is the length-weighted mean of its
            parts.
        batch: texts or parts per forward pass.
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
        parts, sizes, owners = [], [], []
        for b, text in enumerate(texts):
            for part, size in self._parts(text):
                parts.append(part)
                sizes.append(size)
                owners.append(b)
        found = np.zeros((len(texts), self.dimension), np.float32)
        if parts:
            vectors = self.model.encode(
                parts, batch_size=self.batch, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
            )
            np.add.at(found, owners, np.asarray(vectors, np.float32) * np.array(sizes, np.float32)[:, None])
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        unit: Floats = np.divide(found, lengths, out=found, where=lengths > 0)
        return unit

    def _parts(self, text: str) -> Iterator[tuple[str, int]]:
        """A text whole, or split before words into parts that fit, with their piece counts.

        Each part is tokenized again, because on its own it may have other pieces, and more of them.
        """
        cut = self.model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        starts = [start for start, _ in cut["offset_mapping"]]
        count = len(starts) // self.window + 1  # one part more than would be full, as they end at words
        bounds = {0, len(text)}
        for i in range(1, count if len(starts) > self.window else 0):
            after, last = (starts[len(starts) * j // count] for j in (i - 1, i))
            words = (at for at in range(last, after, -1) if text[at - 1].isspace())
            bounds.add(next(words, last))
        if len(bounds) == 2:
            if starts:
                yield text, len(starts)
            return
        for start, end in pairwise(sorted(bounds)):
            yield from self._parts(text[start:end])


def load_sentences(source: str | Path | None = None, *, batch: int = 32, device: str = "cpu") -> Sentences:
    """A sentence encoder.

    Args:
        source: None for the bundled encoder, or a folder or hub id of a sentence-transformers or transformers model
            (for the latter, the mean over pieces).
        batch: texts per forward pass.
        device: a torch device.

    Raises:
        ConfigError: an option is out of range.
        ModelError: there is no such model.
    """
    if batch < 1:
        raise ConfigError(f"batch must be at least 1, got {batch}")
    check_device(device)
    with needed():
        from sentence_transformers import SentenceTransformer

    def load(where: str, local: bool) -> tuple[Any, int]:
        model: Any = SentenceTransformer(
            where,
            device=device,
            local_files_only=local,
            trust_remote_code=False,
            model_kwargs={"dtype": torch.float32},
        )
        return model, places(model[0].auto_model)

    name, (model, most) = fetch(bundled_folder() if source is None else source, "sentence encoder", load)
    tokenizer = model.tokenizer
    if not getattr(tokenizer, "is_fast", False) or tokenizer.pad_token_id is None:
        raise ModelError(f"{name!r} needs a fast tokenizer (tokenizer.json) with a padding piece")
    tokenizer.split_special_tokens = True  # "[SEP]" in a text is just these letters
    model.max_seq_length = limit = min(model.max_seq_length, most)
    window = limit - tokenizer.num_special_tokens_to_add()
    if window < 8:
        raise ModelError(f"{name!r} takes {window} pieces at once besides special tokens, and must take at least 8")
    return Sentences(
        name=ENCODER if source is None else name,
        dimension=model.get_embedding_dimension() or 0,
        model=model,
        window=window,
        batch=batch,
    )
