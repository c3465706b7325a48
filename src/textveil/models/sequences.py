"""Sequences of one text, or of a pair of texts.

Such as a question and the text that answers it.

In: texts, alone or each after a first one. Out: sequences of pieces with special tokens; long texts
get several.
Not here: what a network makes of them (`labels`, `reading`), and words that are tokenized one by
one (`ragged`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from textveil.errors import InputError, ModelError
from textveil.models.networks import Model
from textveil.models.ragged import PieceWindows, yield_batches
from textveil.randomness import Ints
from textveil.text import check_texts

Offsets = list[tuple[int, int]]


class PairFrame(NamedTuple):
    """The special tokens around a pair of texts.

    Args:
        between: pieces between the two.
        types: the token types of the first and the second.
    """

    between: tuple[int, ...]
    types: tuple[int, int]

    @classmethod
    def read(cls, model: Model) -> "PairFrame":
        """Reads the frame from a model's tokenizer.

        Raises:
            ModelError: the tokenizer cannot join two texts.
        """
        pair = model.tokenizer.encode("a", "a")
        bare = model.tokenizer.encode("a", add_special_tokens=False).ids
        lead = len(model.before) + len(bare)
        size = len(pair.ids) - lead - len(bare) - len(model.after)
        if size < 0:
            raise ModelError(
                f"the tokenizer of {model.name} cannot join two texts; choose another model"
            )
        between = tuple(pair.ids[lead : lead + size])
        return cls(between, (pair.type_ids[0], pair.type_ids[lead + size]))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sequences:
    """The sequences that a network reads.

    Secret: they hold texts as pieces.

    Attributes:
        rows: the pieces of each sequence.
        lengths: int64 [n], pieces per sequence.
        leads: int64 [n], pieces before the text in each.
        owners: int64 [n], the text each sequence is a window of.
        begins: int64 [n], the first piece of the text in each.
        frame: of pairs; None for single texts.
    """

    rows: list[list[int]]
    lengths: Ints
    leads: Ints
    owners: Ints
    begins: Ints
    frame: PairFrame | None = field(repr=False)

    def yield_batches(self, model: Model, pieces: int) -> Iterator[Ints]:
        """Yields batches of similar length, of about `pieces` pieces each.

        A network without a padding piece gets them one by one, because it cannot tell where a
        padded one ends.
        """
        return yield_batches(
            self.lengths,
            1 if model.network.padding_piece is None else pieces,
            equal_lengths=model.network.needs_equal_lengths,
        )

    def build_inputs(self, model: Model, which: Ints) -> tuple[Ints, Ints, Ints | None]:
        """Converts selected sequences to arguments: pieces, lengths, token types."""
        size = int(self.lengths[which].max())
        ids = np.zeros((len(which), size), np.int64)
        for i, row in enumerate(which.tolist()):
            ids[i, : self.lengths[row]] = self.rows[row]
        if self.frame is None or model.network.type_count == 1:
            return ids, self.lengths[which], None
        return (
            ids,
            self.lengths[which],
            np.where(np.arange(size) < self.leads[which, None], *self.frame.types),
        )


def cut_texts(model: Model, texts: Sequence[str]) -> list[tuple[list[int], Offsets]]:
    """Splits each text into pieces with their positions.

    Raises:
        InputError: `texts` is not a sequence of valid Unicode strings.
        ModelError: the tokenizer fails on a text.
    """
    check_texts(texts)
    encodings = None
    try:
        encodings = model.tokenizer.encode_batch(texts, add_special_tokens=False)
    except Exception:  # the Rust side raises bare Exception, which may quote the text
        encodings = None
    if encodings is None:
        raise ModelError(
            f"the tokenizer of {model.name} failed on a text; give it an unknown token"
        )
    return [(encoding.ids, encoding.offsets) for encoding in encodings]


def build_sequences(
    model: Model,
    texts: Sequence[Sequence[int]],
    window: int,
    *,
    firsts: Sequence[Sequence[int]] | None = None,
    frame: PairFrame | None = None,
) -> Sequences:
    """Builds windows of texts, each after its whole first text.

    Of at most `window` pieces; they overlap by a quarter.

    A text without pieces has no sequence.

    Args:
        model: whose special tokens they get.
        texts: the pieces of each text.
        window: pieces per sequence, special tokens included.
        firsts: the pieces that come before each text; requires `frame`.
        frame: the special tokens of a pair.

    Raises:
        InputError: a first text takes more than half of a window.
    """
    rows, leads, owners, begins = [], [], [], []
    for b, ids in enumerate(texts):
        lead = list(model.before)
        if firsts is not None and frame is not None:
            if len(firsts[b]) > (room := window // 2):
                raise InputError(
                    "a question, or the first of two texts, may take up to half the window, "
                    f"{room} pieces; number {b} has {len(firsts[b])}"
                )
            lead += [*firsts[b], *frame.between]
        room = window - len(lead) - len(model.after)
        windows = PieceWindows.build(np.array([0, len(ids)]), room, room // 4)
        for begin, length in zip(windows.begins.tolist(), windows.lengths.tolist(), strict=True):
            rows.append([*lead, *ids[begin : begin + length], *model.after])
            leads.append(len(lead))
            owners.append(b)
            begins.append(begin)
    lengths, lead_lengths, owner, begin_pieces = (
        np.array(values, np.int64) for values in (list(map(len, rows)), leads, owners, begins)
    )
    return Sequences(
        rows=rows,
        lengths=lengths,
        leads=lead_lengths,
        owners=owner,
        begins=begin_pieces,
        frame=frame,
    )
