"""Context: the logits a language model gives to the words of a table at a position.

In: words of texts, and positions. Out: logits [n, V] over the table's words.
Not here: what they are used for, and how texts become pieces and windows (`ragged`).

A hidden word is one [MASK], however many pieces it has; its own pieces are never shown to the network. Identical
sequences are run once and read at several places.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np
import torch

from textveil.errors import ConfigError, InputError, ModelError
from textveil.models.networks import Job, Model, load
from textveil.models.ragged import Cut, Ragged, Windows, batches, cut, distinct, pad
from textveil.randomness import Flags, Ints
from textveil.table import EmbeddingTable, NoModelError

Kind = Literal["masked-lm", "causal-lm"]

SLAB = 1 << 21
"""Pieces laid out at once: 16 MB."""

CELLS = 1 << 24
"""Logits in memory at once: 64 MB."""


class ContextModel(Protocol):
    """Anything that tells how well the words of a table fit a position."""

    name: str

    def logits(self, texts: Ragged, positions: Ints, hidden: Flags | None = None) -> torch.Tensor:
        """Logits float32 [n, V] of the table's words at each position (word indices over all texts).

        The result must not depend on words for which `hidden` [T] is true, nor on the word at the position itself.
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class LanguageModel:
    """A masked or causal language model as a context. Load one with `load_context`.

    A table word that is a single piece of the model has that piece's logit. A word of several pieces has the mean of
    their logits (the output layer uses the mean of their rows).

    Attributes:
        model: the network, without its output layer.
        table: the name of the table whose words are the candidates.
        rows: the output layer for the table's words, float32 [V, d].
        bias: float32 [V].
        window: most pieces the network sees, special tokens included, about half on either side; a causal model sees
            only what comes before.
        batch: pieces per forward pass.
    """

    model: Model
    table: str
    rows: torch.Tensor = field(repr=False)
    bias: torch.Tensor = field(repr=False)
    window: int
    batch: int

    @property
    def name(self) -> str:
        """What rows and statements call it."""
        return self.model.name

    def logits(self, texts: Ragged, positions: Ints, hidden: Flags | None = None) -> torch.Tensor:
        """Logits float32 [n, V] at each position; the word at the position is never read.

        Args:
            texts: the words of B texts.
            positions: int64 [n], word indices over all texts, in any order.
            hidden: bool [T], words that are never read: a masked model sees one [MASK] for each, a causal model sees
                nothing. Neither their spelling nor their number of pieces changes a digit of the result. Asking a
                masked model about hidden words costs one forward pass per text, however many they are; in a text
                longer than the window, one per half window.

        Raises:
            InputError: a position is out of range, or `hidden` is not bool [T].
        """
        found = torch.empty(len(positions), len(self.rows))
        for which, logits in self.batches(texts, positions, hidden):
            found[torch.from_numpy(which)] = logits.cpu()
        return found

    def batches(
        self, texts: Ragged, positions: Ints, hidden: Flags | None = None
    ) -> Iterator[tuple[Ints, torch.Tensor]]:
        """The same in batches as they are computed: indices into `positions`, and logits [m, V] on the device."""
        pieces = Cut.of(self.model, texts, hidden)
        positions = np.asarray(positions)
        if positions.ndim != 1 or (len(positions) and not np.issubdtype(positions.dtype, np.integer)):
            raise InputError("positions must be whole numbers")  # a bool mask would be read as positions 0 and 1
        if len(positions) and not (positions.min() >= 0 and positions.max() < len(texts.words)):
            raise InputError(f"positions must be indices of the {len(texts.words)} words, counted from 0")
        positions = positions.astype(np.int64)
        left, right = self._reach(pieces, texts.documents, positions, hidden)
        step, most = max(1, SLAB // self.window), max(1, CELLS // len(self.rows))
        for start in range(0, len(positions), step):
            part = slice(start, start + step)
            rows, lengths, at = self._sequences(pieces, positions[part], left[part], right[part])
            first, like = distinct(rows, lengths)
            for which in batches(lengths[first], self.batch):
                run = first[which]
                with torch.inference_mode():
                    outputs = self.model.network(
                        **pad(self.model, rows[run, : lengths[run].max()], lengths[run])
                    ).logits
                place = np.full(len(first), -1)
                place[which] = np.arange(len(which))
                asked = np.flatnonzero(place[like] >= 0)
                for own in np.split(asked, range(most, len(asked), most)):
                    with torch.inference_mode():  # not around the yield, where it would change the caller's mode
                        read = outputs[torch.from_numpy(place[like[own]]), torch.from_numpy(at[own])]
                        logits = self._head(read)
                    yield start + own, logits

    def _head(self, read: torch.Tensor) -> torch.Tensor:
        """Logits float32 [m, V], computed in float32 even if the caller lets the network use less."""
        with torch.autocast(read.device.type, enabled=False):
            return torch.addmm(self.bias, read.float(), self.rows.T)

    def _reach(self, pieces: Cut, documents: Ints, positions: Ints, hidden: Flags | None) -> tuple[Ints, Ints]:
        """How many pieces are visible to the left and right of each position [n].

        A word that is not hidden elsewhere gets a window centred on it. Hidden words of a text share half-overlapping
        windows, because in the same window they have the same sequence.
        """
        text = np.searchsorted(documents, positions, side="right") - 1
        left = pieces.words[positions] - pieces.documents[text]
        right = pieces.documents[text + 1] - pieces.words[positions + 1]
        frame = len(self.model.before) + len(self.model.after)
        if self.model.mask is None:
            return np.minimum(left, self.window - frame), np.zeros_like(right)
        room = self.window - frame - 1
        lefts = np.minimum(left, np.maximum(room // 2, room - right))
        rights = np.minimum(right, room - lefts)
        if hidden is None or not len(positions):
            return lefts, rights
        windows = Windows.over(pieces.documents, room + 1, (room + 1) // 2)
        own = windows.owner[pieces.words[positions]]
        before = pieces.words[positions] - windows.begins[own]
        return (
            np.where(hidden[positions], before, lefts),
            np.where(hidden[positions], windows.lengths[own] - before - 1, rights),
        )

    def _sequences(self, pieces: Cut, positions: Ints, left: Ints, right: Ints) -> tuple[Ints, Ints, Ints]:
        """Sequences int64 [n, L], their lengths [n], and where in each the answer is read [n]."""
        model = self.model
        causal = model.mask is None
        lead = len(model.before)
        at = lead + left
        lengths = at if causal else at + 1 + right + len(model.after)
        column = np.arange(int(lengths.max()))
        source = np.where(
            column < at[:, None],
            (pieces.words[positions] - left - lead)[:, None] + column,
            (pieces.words[positions + 1] - 1)[:, None] + column - at[:, None],
        )
        ids = pieces.ids if len(pieces.ids) else np.zeros(1, np.int64)  # a causal model may see no word at all
        rows = ids[np.clip(source, 0, len(ids) - 1)]
        rows[:, :lead] = model.before
        if causal:
            return rows, lengths, at - 1
        n = np.arange(len(positions))
        rows[n, at] = model.mask
        for i, piece in enumerate(model.after):
            rows[n, at + 1 + right + i] = piece
        return rows, lengths, at


def load_context(
    table: EmbeddingTable,
    source: str | Path | None = None,
    *,
    kind: Kind | None = None,
    window: int = 128,
    batch: int = 4096,
    device: str = "cpu",
) -> LanguageModel:
    """A language model over a table's words.

    Args:
        table: its words are the candidates.
        source: None for the bundled masked LM, or a folder or hub id of a transformers model.
        kind: masked-lm or causal-lm; None: masked if the model has a mask piece.
        window: pieces the network sees around a position, at least 8; capped at what the model takes.
        batch: pieces per forward pass; more is faster up to a point, and takes more memory.
        device: a torch device.

    Raises:
        ConfigError: table is not an embedding table; kind, window, batch or device are out of range; or no model of
            this kind is bundled.
        ModelError: there is no such model, or its output layer cannot be removed.
    """
    if not isinstance(table, EmbeddingTable):
        raise ConfigError(f"table must be an embedding table (load_table), got {type(table).__name__}")
    if window < 8 or batch < 1:
        raise ConfigError(f"window must be at least 8 and batch at least 1, got {window} and {batch}")
    if kind is not None and kind not in get_args(Kind):
        raise ConfigError(f"kind must be one of {', '.join(get_args(Kind))}")
    model = _load(source, kind, device)
    model = replace(model, before=model.before or _first(model))
    rows, bias = _restrict(model, table, _behead(model))
    return LanguageModel(
        model=model, table=table.name, rows=rows, bias=bias, window=min(window, model.longest), batch=batch
    )


class _Through(torch.nn.Identity):
    """Replaces the output layer, so that the network returns that layer's input."""

    bias = None


def _load(source: str | Path | None, kind: Kind | None, device: str) -> Model:
    jobs: list[Job] = [kind] if kind else ["masked-lm"] if source is None else ["masked-lm", "causal-lm"]
    errors = []
    for job in jobs:
        try:
            model = load(job, source, device=device)
            if job == "causal-lm":
                return _causal(model)
            if model.mask is not None:
                return model
            raise ModelError(f"{model.name} has no mask piece; choose a masked language model, or kind=causal-lm")
        except NoModelError:
            raise
        except ModelError as error:
            errors.append(error)
    raise ModelError("; ".join(map(str, errors))) from errors[0]


def _causal(model: Model) -> Model:
    """The model as a causal one. A masked model would load without complaint, and repeat the last piece."""
    ids = np.stack([_probe(model), _probe(model)])
    ids[1, -1] = ids[0, -2]
    one, other = _run(model, ids)[:, :-1]
    if not torch.allclose(one, other, rtol=1e-3, atol=1e-3):
        raise ModelError(f"{model.name} looks at what follows a position; choose a causal language model")
    return replace(model, mask=None, after=())


def _behead(model: Model) -> torch.nn.Linear:
    """Removes the output layer from the network, after checking that it is linear and the last step."""
    ids = _probe(model)[None]
    try:
        head = model.network.get_output_embeddings()
        whole = _run(model, ids)
        model.network.set_output_embeddings(_Through())
        with torch.inference_mode():
            last = isinstance(head, torch.nn.Linear) and torch.allclose(
                head(_run(model, ids)), whole, rtol=1e-4, atol=1e-4
            )
    except Exception as error:  # whatever a network does without its output layer
        raise ModelError(f"cannot remove the output layer of {model.name}; choose another model") from error
    if not last:
        raise ModelError(f"the output layer of {model.name} must be linear and the last step; choose another model")
    found: torch.nn.Linear = head
    return found


def _probe(model: Model) -> Ints:
    """Pieces from all over the vocabulary, as a meaningless text."""
    return np.linspace(0, model.network.get_input_embeddings().num_embeddings - 1, 8).astype(np.int64)


def _run(model: Model, ids: Ints) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = model.network(**pad(model, ids, np.full(len(ids), ids.shape[1]))).logits
    return found


def _first(model: Model) -> tuple[int, ...]:
    """What a causal model sees before the first word if its tokenizer adds nothing."""
    config = model.network.config
    for name in ("bos_token_id", "eos_token_id"):
        piece = getattr(config, name, None)
        if isinstance(piece, int) and piece >= 0:
            return (piece,)
    if model.mask is not None:
        return ()
    raise ModelError(f"{model.name} has no piece that begins a text; set bos_token_id in its config")


def _restrict(model: Model, table: EmbeddingTable, head: torch.nn.Linear) -> tuple[torch.Tensor, torch.Tensor]:
    """The output layer for the words of a table: the rows of their pieces, or the mean of several."""
    pieces = cut(model, [(word, True) for word in table.words])
    vocabulary = model.tokenizer.get_vocab() if model.spaces == "none" else {}
    own = [[vocabulary[word]] if word in vocabulary else ids for word, ids in zip(table.words, pieces, strict=True)]
    lengths = torch.tensor([len(ids) for ids in own])
    flat = torch.tensor([piece for ids in own for piece in ids])
    owner = torch.repeat_interleave(torch.arange(len(own)), lengths)
    weight, bias = head.weight.float().cpu(), head.bias
    rows = torch.zeros(len(own), head.in_features).index_add_(0, owner, weight[flat]) / lengths[:, None]
    values = torch.zeros(len(own))
    if bias is not None:
        values = values.index_add_(0, owner, bias.float().cpu()[flat]) / lengths
    device = model.device
    return rows.to(device), values.to(device)
