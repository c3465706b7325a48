"""A text behind another one, as networks take pairs: a question, and what is read for its answer.

In: texts, alone or each behind a first one. Out: sequences of pieces with their frame, as many as a long text needs.
Not here: what a network says of them (`labels`, `reading`), and words of a text that are cut one by one (`ragged`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from textveil.errors import InputError, ModelError
from textveil.models.networks import Model
from textveil.models.ragged import Windows, batches, pad
from textveil.randomness import Ints
from textveil.text import check_texts

Offsets = list[tuple[int, int]]


class Frame(NamedTuple):
    """What a tokenizer puts around two texts.

    Args:
        between: pieces that stand between them.
        types: the token types of the first and the second.
    """

    between: tuple[int, ...]
    types: tuple[int, int]

    @classmethod
    def of(cls, model: Model) -> "Frame":
        """The frame of a model's tokenizer.

        Raises:
            ModelError: it cannot join two texts.
        """
        pair = model.tokenizer.encode("a", "a")
        bare = model.tokenizer.encode("a", add_special_tokens=False).ids
        lead = len(model.before) + len(bare)
        size = len(pair.ids) - lead - len(bare) - len(model.after)
        if size < 0:
            raise ModelError(f"the tokenizer of {model.name} must know how to join two texts")
        between = tuple(pair.ids[lead : lead + size])
        return cls(between, (pair.type_ids[0], pair.type_ids[lead + size]))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sequences:
    """What a network sees. Secret: it holds texts as pieces.

    Attributes:
        rows: the pieces of each sequence.
        lengths: int64 [n], how many they are.
        leads: int64 [n], how many of them stand before the text.
        owners: int64 [n], the text that a sequence shows a window of.
        begins: int64 [n], the first piece of the text in it.
        frame: of pairs; None where texts stand alone.
    """

    rows: list[list[int]]
    lengths: Ints
    leads: Ints
    owners: Ints
    begins: Ints
    frame: Frame | None = field(repr=False)

    def batches(self, model: Model, pieces: int) -> Iterator[Ints]:
        """Sequences of like length together, about so many pieces at once.

        They come one by one for a network that has no piece for padding: it cannot find the ends of more.
        """
        alone = getattr(model.network.config, "pad_token_id", None) is None
        return batches(self.lengths, 1 if alone else pieces)

    def inputs(self, model: Model, which: Ints) -> dict[str, torch.Tensor]:
        """Some of the sequences as a network takes them."""
        size = int(self.lengths[which].max())
        ids = np.zeros((len(which), size), np.int64)
        for i, row in enumerate(which.tolist()):
            ids[i, : self.lengths[row]] = self.rows[row]
        inputs = pad(model, ids, self.lengths[which])
        if self.frame is not None and model.segments > 1:
            types = np.where(np.arange(size) < self.leads[which, None], *self.frame.types)
            inputs["token_type_ids"] = torch.from_numpy(types).to(model.device)
        return inputs


def cut(model: Model, texts: Sequence[str]) -> list[tuple[list[int], Offsets]]:
    """The pieces of each text, and where each stands.

    Raises:
        InputError: `texts` is not a sequence of valid Unicode strings.
        ModelError: the tokenizer cannot cut a text.
    """
    check_texts(texts)
    encodings = None
    try:
        encodings = model.tokenizer.encode_batch(texts, add_special_tokens=False)
    except Exception:  # the Rust side raises bare Exception, and may name what it could not cut
        encodings = None
    if encodings is None:
        raise ModelError(f"the tokenizer of {model.name} must cut every text; give it an unknown token")
    return [(encoding.ids, encoding.offsets) for encoding in encodings]


def sequences(
    model: Model,
    texts: Sequence[Sequence[int]],
    window: int,
    *,
    firsts: Sequence[Sequence[int]] | None = None,
    frame: Frame | None = None,
) -> Sequences:
    """Texts in windows of so many pieces, frame included, that overlap by a quarter; each behind its whole first text.

    A text without pieces has no sequence.

    Args:
        model: whose frame they get.
        texts: the pieces of each text.
        window: pieces of a sequence at most.
        firsts: the pieces of what stands before each text; then with `frame`.
        frame: what stands around the two.

    Raises:
        InputError: a first text takes more than half of a window.
    """
    rows, leads, owners, begins = [], [], [], []
    for b, ids in enumerate(texts):
        lead = list(model.before)
        if firsts is not None and frame is not None:
            if len(firsts[b]) > (room := window // 2):
                raise InputError(
                    f"a question, or the first of two texts, may take half of the window, {room} pieces; "
                    f"number {b} has {len(firsts[b])}"
                )
            lead += [*firsts[b], *frame.between]
        room = window - len(lead) - len(model.after)
        windows = Windows.over(np.array([0, len(ids)]), room, room // 4)
        for begin, length in zip(windows.begins.tolist(), windows.lengths.tolist(), strict=True):
            rows.append([*lead, *ids[begin : begin + length], *model.after])
            leads.append(len(lead))
            owners.append(b)
            begins.append(begin)
    lengths, lead_lengths, owner, begun = (
        np.array(each, np.int64) for each in (list(map(len, rows)), leads, owners, begins)
    )
    return Sequences(rows=rows, lengths=lengths, leads=lead_lengths, owners=owner, begins=begun, frame=frame)
