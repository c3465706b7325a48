"""Context: a language model's logits for the words of a table.

At a position of a text.

In: words of texts, and positions. Out: logits [n, V] over the table's words.
Not here: what they are used for, and how texts become pieces and windows (`ragged`).

A hidden word is one [MASK], however many pieces it has; its own pieces are never shown to the
network. Identical sequences are run once and read at several places. A table of word pieces has to
be one of the model's own: each row is a piece of the model.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np

from textveil.errors import ConfigError, InputError, ModelError
from textveil.models.networks import Job, Model, OutputHead, load
from textveil.models.ragged import (
    PieceSequence,
    PieceWindows,
    Ragged,
    cut_words,
    find_distinct,
    yield_batches,
)
from textveil.randomness import Flags, Floats, Ints
from textveil.table import EmbeddingTable, NoModelError

ContextKind = Literal["masked-lm", "causal-lm"]

PIECES_AT_ONCE = 1 << 21
"""Pieces that are prepared at once: 16 MB."""

MAX_LOGITS = 1 << 24
"""Logits that are in memory at once: 64 MB."""


class ContextModel(Protocol):
    """Anything that scores how well a table's words fit a position."""

    name: str

    def compute_logits(self, texts: Ragged, positions: Ints, hidden: Flags | None = None) -> Floats:
        """Returns logits float32 [n, V] of the table's words.

        At each position: an index of a word over all texts.

        The result must not depend on words for which `hidden` [T] is true, nor on the word at the
        position itself.
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class LanguageModel:
    """A masked or causal language model as a context.

    Load one with `load_context`.

    A table word that is a single piece of the model has that piece's logit. A word of several
    pieces has the mean of their logits (the output layer uses the mean of their rows). A row of a
    table of pieces has the logit of that piece.

    Attributes:
        model: the network, without its output layer.
        table: the name of the table whose words are the candidates.
        head: its output layer for the table's words.
        size: V, number of candidates.
        window: most pieces the network sees, special tokens included, about half on either side; a
            causal model sees only what comes before.
        batch: pieces per forward pass.
        row_pieces: int64 [V], the model's piece of each row; None where rows are whole words.
    """

    model: Model
    table: str
    head: OutputHead = field(repr=False)
    size: int
    window: int
    batch: int
    row_pieces: Ints | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The model's name in rows and statements."""
        return self.model.name

    def split_words(self, texts: Ragged) -> tuple[Ragged, Ints]:
        """Cuts texts so that each piece is a position; also returns the word of each, int64 [P]."""
        pieces = PieceSequence.build(self.model, texts)
        owners = np.repeat(np.arange(len(texts.words)), np.diff(pieces.words))
        cut = Ragged(
            words=[texts.words[i] for i in owners.tolist()],
            documents=pieces.documents,
            spaced=texts.spaced[owners],
            ids=pieces.ids,
        )
        return cut, owners

    def compute_logits(self, texts: Ragged, positions: Ints, hidden: Flags | None = None) -> Floats:
        """Returns logits float32 [n, V] at each position.

        The word at the position is never read.

        Args:
            texts: the words of B texts.
            positions: int64 [n], word indices over all texts, in any order.
            hidden: bool [T], words that are never read: a masked model sees one [MASK] for each, a
                causal model sees nothing. Neither their spelling nor their number of pieces changes
                a digit of the result. Asking a masked model about hidden words costs one forward
                pass per text, however many they are; in a text longer than the window, one per half
                window.

        Raises:
            InputError: a position is out of range, or `hidden` is not bool [T].
        """
        result = np.empty((len(positions), self.size), np.float32)
        for which, logits in self.yield_batches(texts, positions, hidden):
            result[which] = logits
        return result

    def yield_batches(
        self, texts: Ragged, positions: Ints, hidden: Flags | None = None
    ) -> Iterator[tuple[Ints, Floats]]:
        """Yields indices into `positions`, and their logits [m, V].

        In batches, as they are computed.
        """
        pieces = PieceSequence.build(self.model, texts, hidden)
        positions = check_positions(texts, positions)
        left, right = self._measure_reach(pieces, texts.documents, positions, hidden)
        step, max_rows = max(1, PIECES_AT_ONCE // self.window), max(1, MAX_LOGITS // self.size)
        for start in range(0, len(positions), step):
            part = slice(start, start + step)
            rows, lengths, at = self._build_sequences(
                pieces, positions[part], left[part], right[part]
            )
            first, row_numbers = find_distinct(rows, lengths)
            for which in yield_batches(
                lengths[first], self.batch, equal_lengths=self.model.network.needs_equal_lengths
            ):
                run = first[which]
                place = np.full(len(first), -1)
                place[which] = np.arange(len(which))
                queries = np.flatnonzero(place[row_numbers] >= 0)
                inputs = rows[run, : lengths[run].max()]
                states = self.head.read(
                    inputs, lengths[run], place[row_numbers[queries]], at[queries]
                )
                for done in range(0, len(queries), max_rows):
                    chunk = slice(done, done + max_rows)
                    yield start + queries[chunk], self.head.compute_logits(states[chunk])

    def _measure_reach(
        self, pieces: PieceSequence, documents: Ints, positions: Ints, hidden: Flags | None
    ) -> tuple[Ints, Ints]:
        """Returns the number of visible pieces left and right [n].

        Of each position.

        A word that is not hidden elsewhere gets a window centred on it. Hidden words of a text
        share half-overlapping windows, because in the same window they have the same sequence.
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
        windows = PieceWindows.build(pieces.documents, room + 1, (room + 1) // 2)
        owners = windows.owner[pieces.words[positions]]
        before = pieces.words[positions] - windows.begins[owners]
        return (
            np.where(hidden[positions], before, lefts),
            np.where(hidden[positions], windows.lengths[owners] - before - 1, rights),
        )

    def _build_sequences(
        self, pieces: PieceSequence, positions: Ints, left: Ints, right: Ints
    ) -> tuple[Ints, Ints, Ints]:
        """Builds sequences int64 [n, L], their lengths and answer columns.

        Both [n].
        """
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
        # a causal model may see no word at all
        ids = pieces.ids if len(pieces.ids) else np.zeros(1, np.int64)
        # Places outside hold special tokens, set below, or lie behind the end and are not read.
        rows = ids[np.clip(source, 0, len(ids) - 1)]
        rows[:, :lead] = model.before
        if causal:
            return rows, lengths, at - 1
        n = np.arange(len(positions))
        rows[n, at] = model.mask
        for i, piece in enumerate(model.after):
            rows[n, at + 1 + right + i] = piece
        return rows, lengths, at


def check_positions(texts: Ragged, positions: Ints) -> Ints:
    """Checks that positions are indices of words, and returns them as int64 [n].

    Raises:
        InputError: they are not.
    """
    positions = np.asarray(positions)
    if positions.ndim != 1 or (len(positions) and not np.issubdtype(positions.dtype, np.integer)):
        # a bool mask would be read as positions 0 and 1
        raise InputError("positions must be whole numbers")
    if len(positions) and not (positions.min() >= 0 and positions.max() < len(texts.words)):
        raise InputError(
            f"positions must be indices of the {len(texts.words)} words, counted from 0"
        )
    return positions.astype(np.int64)


def load_context(
    table: EmbeddingTable,
    source: str | Path | None = None,
    *,
    kind: ContextKind | None = None,
    window: int = 128,
    batch: int = 4096,
    device: str = "cpu",
) -> LanguageModel:
    """Loads a language model over a table's words.

    Args:
        table: its words are the candidates.
        source: None for the bundled masked LM, or a folder or hub id of a transformers model.
        kind: masked-lm or causal-lm; None: masked if the model has a mask piece.
        window: pieces the network sees around a position, at least 8; capped at what the model
            takes.
        batch: pieces per forward pass; more is faster up to a point, and takes more memory.
        device: a torch device.

    Raises:
        ConfigError: table is not an embedding table, or holds the pieces of another model; kind,
            window, batch or device are out of range; or no model of this kind is bundled.
        ModelError: there is no such model, or its output layer cannot be removed.
    """
    if not isinstance(table, EmbeddingTable):
        raise ConfigError(
            f"table must be an embedding table (load_table), got {type(table).__name__}"
        )
    if window < 8 or batch < 1:
        raise ConfigError(
            f"window must be at least 8 and batch at least 1, got {window} and {batch}"
        )
    if kind is not None and kind not in get_args(ContextKind):
        raise ConfigError(f"kind must be one of {', '.join(get_args(ContextKind))}")
    model = _load_model(source, kind, device)
    model = replace(model, before=model.before or _find_start_piece(model))
    row_pieces = _find_row_pieces(model, table)
    rows, bias = _restrict_output(model, table, row_pieces, *model.network.take_output())
    return LanguageModel(
        model=model,
        table=table.name,
        head=model.network.build_head(rows, bias),
        size=len(rows),
        window=min(window, model.longest),
        batch=batch,
        row_pieces=row_pieces,
    )


def _load_model(source: str | Path | None, kind: ContextKind | None, device: str) -> Model:
    jobs: list[Job] = (
        [kind] if kind else ["masked-lm"] if source is None else ["masked-lm", "causal-lm"]
    )
    errors = []
    for job in jobs:
        try:
            model = load(job, source, device=device)
            if job == "causal-lm":
                return _check_causal(model)
            if model.mask is not None:
                return model
            raise ModelError(
                f"{model.name} has no mask piece; choose a masked language model, or kind=causal-lm"
            )
        except NoModelError:
            raise
        except ModelError as error:
            errors.append(error)
    raise ModelError("; ".join(map(str, errors))) from errors[0]


def _check_causal(model: Model) -> Model:
    """Checks that a model is causal, and returns it as one.

    A masked model would load without complaint, and repeat the last piece.
    """
    # a meaningless text
    ids = np.stack([np.linspace(0, model.network.vocabulary - 1, 8).astype(np.int64)] * 2)
    # Only the last piece differs, so a causal model gives equal logits before it.
    ids[1, -1] = ids[0, -2]
    first_logits, second_logits = model.network.run(ids, np.array([8, 8]))[:, :-1]
    if not np.allclose(first_logits, second_logits, rtol=1e-3, atol=1e-3):
        raise ModelError(
            f"{model.name} looks at what follows a position; choose a causal language model"
        )
    return replace(model, mask=None, after=())


def _find_start_piece(model: Model) -> tuple[int, ...]:
    """Returns the piece that a causal model needs before a text.

    Where its tokenizer adds none.
    """
    if (piece := model.network.start_piece) is not None:
        return (piece,)
    if model.mask is not None:
        return ()
    raise ModelError(
        f"{model.name} has no piece that begins a text; set bos_token_id in its config"
    )


def _find_row_pieces(model: Model, table: EmbeddingTable) -> Ints | None:
    """Finds the model's piece of each row, int64 [V]; None for a table of whole words.

    Raises:
        ConfigError: the table holds pieces that the model does not have.
    """
    if not table.holds_pieces:
        return None
    vocabulary = model.tokenizer.get_vocab()
    ids = np.array([vocabulary.get(word, -1) for word in table.words], np.int64)
    if missing := int((ids < 0).sum()):
        raise ConfigError(
            f"a context over word pieces needs the model's own table: the tokenizer of {model.name} "
            f"lacks {missing:,} of the {len(table):,} pieces of {table.name}; make its table with "
            "`textveil table build`, or take a table of whole words"
        )
    return ids


def _restrict_output(
    model: Model,
    table: EmbeddingTable,
    row_pieces: Ints | None,
    rows: Floats,
    bias: Floats | None,
) -> tuple[Floats, Floats]:
    """Restricts the output layer to a table's words.

    A word has the row of its piece, or the mean of the rows of its pieces.
    """
    if row_pieces is not None:
        return rows[row_pieces], (
            np.zeros(len(row_pieces), np.float32) if bias is None else bias[row_pieces]
        )
    pieces = cut_words(model, [(word, True) for word in table.words])
    vocabulary = model.tokenizer.get_vocab() if model.spaces == "none" else {}
    word_pieces = [
        # a word that is a piece, such as ##ing, must not be cut again
        [vocabulary[word]] if word in vocabulary else ids
        for word, ids in zip(table.words, pieces, strict=True)
    ]
    lengths = np.fromiter(map(len, word_pieces), np.int64, len(word_pieces))
    flat = np.fromiter(
        (piece for ids in word_pieces for piece in ids), np.int64, int(lengths.sum())
    )
    begins = np.cumsum(lengths) - lengths
    piece_bias = np.zeros(len(rows), np.float32) if bias is None else bias
    word_rows, word_bias = rows[flat[begins]], piece_bias[flat[begins]]
    for extra in range(1, int(lengths.max(initial=1))):
        longer = np.flatnonzero(lengths > extra)
        piece = flat[begins[longer] + extra]
        word_rows[longer] += rows[piece]
        word_bias[longer] += piece_bias[piece]
    several = np.flatnonzero(lengths > 1)
    word_rows[several] /= lengths[several, None]
    word_bias[several] /= lengths[several]
    return word_rows, word_bias
