"""Sentence vectors: texts as unit vectors by meaning.

In: texts. Out: unit vectors [B, d].
Not here: what is compared with what.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
from tokenizers import Tokenizer

from textveil.config.extras import import_library, require
from textveil.errors import ConfigError, ModelError
from textveil.models import bundled
from textveil.models.networks import ENCODER_NAME, check_device, load_bundled
from textveil.models.ragged import yield_batches
from textveil.randomness import Floats
from textveil.table import HUB_ID, fetch, get_fast_tokenizer, minilm
from textveil.text import check_texts

Pooling = Literal["mean", "cls", "pooler"]

SIMCSE = re.compile(r"\b(un)?sup-simcse\b")
"""The names of SimCSE's models, which come without a pooling of their own."""

MAX_PIECES = 256
"""The pieces per sequence of the bundled encoder.

It was trained on no more.
"""


class SentenceEncoder(Protocol):
    """Anything that encodes texts as vectors."""

    name: str
    dimension: int

    def encode(self, texts: Sequence[str]) -> Floats:
        """Encodes texts as unit vectors: float32 [B, d].

        A text without words has the zero vector.
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class SentenceModel:
    """A sentence encoder: the bundled one, or one of sentence-transformers or transformers.

    Load one with `load_sentences`.

    Attributes:
        name: what rows and statements call it.
        dimension: d.
        network: what runs: the bundled encoder, a `SentenceTransformer` or a `TorchNetwork`.
        tokenizer: no truncation, no padding.
        encode_parts: encodes short texts as vectors of about unit length [n, d].
        window: pieces it reads at once, without special tokens; a longer text is the
            length-weighted mean of its parts.
    """

    name: str
    dimension: int
    network: Any = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    encode_parts: Callable[[list[str]], Floats] = field(repr=False)
    window: int

    def encode(self, texts: Sequence[str]) -> Floats:
        """Encodes texts as unit vectors: float32 [B, d].

        A text without words has the zero vector.

        Raises:
            InputError: `texts` is not a sequence of valid Unicode strings.
        """
        check_texts(texts)
        parts, sizes, owners = [], [], []
        for b, text in enumerate(texts):
            for part, size in self._split_text(text):
                parts.append(part)
                sizes.append(size)
                owners.append(b)
        sums = np.zeros((len(texts), self.dimension), np.float32)
        if parts:
            np.add.at(
                sums,
                owners,
                _scale_to_unit(self.encode_parts(parts)) * np.array(sizes, np.float32)[:, None],
            )
        return _scale_to_unit(sums)

    def _split_text(self, text: str) -> Iterator[tuple[str, int]]:
        """Yields a text, or parts of it that fit a window.

        With their piece counts; it is split before words.

        Each part is tokenized again, because on its own it may have other pieces, and more of them.
        """
        starts = [
            start for start, _ in self.tokenizer.encode(text, add_special_tokens=False).offsets
        ]
        # one part more than would be full, as they end at words
        count = len(starts) // self.window + 1
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
            yield from self._split_text(text[start:end])


def load_sentences(
    source: str | Path | None = None, *, batch: int = 32, device: str = "cpu"
) -> SentenceModel:
    """Loads a sentence encoder.

    Args:
        source: None for the bundled encoder, or a folder or hub id of a sentence-transformers or
            transformers model. `SOURCE@POOLING` says what is a plain transformers model's vector of
            a sentence: "mean" over its pieces, the first piece's ("cls"), or what its trained
            pooler makes of that ("pooler"). Without it: what comes with the model; "pooler" for
            sup-simcse and "cls" for unsup-simcse models by name, as SimCSE has it; else the mean.
        batch: texts per forward pass.
        device: "cpu", or a torch device.

    Raises:
        ConfigError: an option is out of range.
        MissingExtra: torch or sentence-transformers is not installed, and this is not the bundled
            encoder on the processor.
        ModelError: there is no such model, or it has no trained pooler.

    Source: Gao, Yao, Chen, "SimCSE: Simple Contrastive Learning of Sentence Embeddings" (2021),
    section 6.3.
    """
    if batch < 1:
        raise ConfigError(f"batch must be at least 1, got {batch}")
    check_device(device)
    if source is None:
        return _load_bundled(batch, device)
    source, pooling = split_pooling(source)
    if pooling is None:
        return _load_foreign(source, batch, device)
    return _load_plain(source, pooling, batch, device)


def split_pooling(source: str | Path) -> tuple[str, Pooling | None]:
    """Splits `SOURCE@POOLING` into both; SimCSE's models are known by name.

    The pooling is None where the model has to say it.

    Raises:
        ConfigError: there is no such pooling.
    """
    text = str(source)
    if "@" in text and not os.path.isdir(text):
        model, _, name = text.rpartition("@")
        for pooling in get_args(Pooling):
            if name == pooling:
                return model, pooling
        if not (os.path.isdir(model) or HUB_ID.fullmatch(model)):
            return text, None  # no model, which its loader says
        raise ConfigError(
            "what follows the @ of a sentence encoder must be its pooling, one of "
            f"{', '.join(get_args(Pooling))}"
        )
    found = SIMCSE.search(Path(text).resolve().name if os.path.isdir(text) else text)
    return text, None if found is None else "cls" if found[1] else "pooler"


def _load_bundled(batch: int, device: str) -> SentenceModel:
    network = load_bundled("sentences", None, device)
    tokenizer = minilm.read_tokenizer(bundled.find_encoder_folder())
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is just these letters

    def encode_parts(parts: list[str]) -> Floats:
        pieces = [encoding.ids for encoding in tokenizer.encode_batch_fast(parts)]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        result = np.empty((len(parts), bundled.WIDTH), np.float32)
        for which in yield_batches(lengths, batch * MAX_PIECES, equal_lengths=True):
            result[which] = network.run(np.array([pieces[i] for i in which]), lengths[which]).mean(
                axis=1
            )
        return result

    return SentenceModel(
        name=ENCODER_NAME,
        dimension=bundled.WIDTH,
        network=network,
        tokenizer=tokenizer,
        encode_parts=encode_parts,
        window=MAX_PIECES - 2,
    )


def _load_plain(source: str, pooling: Pooling, batch: int, device: str) -> SentenceModel:
    """Loads a plain transformers model, whose pooling is known."""
    require("torch", "transformers")
    from textveil.models import torch_networks

    loaded = torch_networks.load("encoder", source, device)
    network, tokenizer = loaded.network, loaded.tokenizer
    missing = [key for key in loaded.missing if "position_ids" not in key]
    if pooling == "pooler" and not network.has_pooler:
        missing.append("pooler")
    # what was not stored is random; a pooler need not be there where it is not used
    missing = [key for key in missing if pooling == "pooler" or "pooler" not in key]
    if missing:
        raise ModelError(
            f"{loaded.name!r} has no trained weights for {missing[0]}, which the pooling {pooling} "
            "needs; choose another encoder or pooling"
        )
    if network.padding_piece is None:
        raise ModelError(f"{loaded.name!r} needs a padding piece")
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is just these letters
    frame = len(tokenizer.encode("").ids)
    limit = min(loaded.special["limit"] or network.max_pieces, network.max_pieces)
    if limit - frame < 8:
        raise ModelError(
            f"{loaded.name!r} takes {limit - frame} pieces at once in addition to special tokens, "
            "and must take at least 8"
        )

    def encode_parts(parts: list[str]) -> Floats:
        pieces = [encoding.ids for encoding in tokenizer.encode_batch_fast(parts)]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        result = np.empty((len(parts), network.width), np.float32)
        for which in yield_batches(lengths, batch * MAX_PIECES):
            rows = np.zeros((len(which), int(lengths[which].max())), np.int64)
            for row, i in enumerate(which.tolist()):
                rows[row, : len(pieces[i])] = pieces[i]
            result[which] = network.pool(rows, lengths[which], pooling)
        return result

    return SentenceModel(
        name=f"{loaded.name} ({pooling})",
        dimension=network.width,
        network=network,
        tokenizer=tokenizer,
        encode_parts=encode_parts,
        window=limit - frame,
    )


def _load_foreign(source: str | Path, batch: int, device: str) -> SentenceModel:
    require("torch", "transformers", "sentence_transformers")
    from textveil.models import torch_networks

    def load(where: str, local: bool) -> tuple[Any, int]:
        model: Any = import_library("sentence_transformers").SentenceTransformer(
            where,
            device=device,
            local_files_only=local,
            trust_remote_code=False,
            model_kwargs={"dtype": "float32"},
        )
        return model, torch_networks.count_positions(model[0].auto_model)

    name, (model, max_pieces) = fetch(source, "sentence encoder", load)
    if not getattr(model.tokenizer, "is_fast", False) or model.tokenizer.pad_token_id is None:
        raise ModelError(f"{name!r} needs a fast tokenizer (tokenizer.json) with a padding piece")
    model.tokenizer.split_special_tokens = True  # "[SEP]" in a text is just these letters
    model.max_seq_length = limit = min(model.max_seq_length, max_pieces)
    window = limit - model.tokenizer.num_special_tokens_to_add()
    if window < 8:
        raise ModelError(
            f"{name!r} takes {window} pieces at once in addition to special tokens, and must "
            "take at least 8"
        )
    # the model truncates with its own
    tokenizer = Tokenizer.from_str(get_fast_tokenizer(name, model.tokenizer).to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True

    def encode_parts(parts: list[str]) -> Floats:
        vectors = model.encode(
            parts, batch_size=batch, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, np.float32)

    return SentenceModel(
        name=name,
        dimension=model.get_embedding_dimension() or 0,
        network=model,
        tokenizer=tokenizer,
        encode_parts=encode_parts,
        window=window,
    )


def _scale_to_unit(vectors: Floats) -> Floats:
    """Scales vectors [n, d] to unit length; a zero vector stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
