"""Context: the visible words of a text, and a language model's logits.

In: a block, and the words released so far. Out: the order in which positions are released; logits
over the table.
Not here: the language model (`encoder.context`), and how a utility uses its logits (`utility`).

Words of placeholders are hidden in every mode, and so is the word at the position itself. Where
words are released piece by piece, a position is a piece of the language model: the other pieces of
its word are part of the context like all others.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from textveil.config import make_options
from textveil.mechanism.block import PLACEHOLDER, Block, Layout, Role
from textveil.models import LanguageModel, Ragged, load_context
from textveil.randomness import Flags, Floats, Ids, Values
from textveil.table import EmbeddingTable

ContextMode = Literal["none", "original", "released", "public"]

BATCH_PIECES = 1 << 10
"""Pieces in one run of the model.

More are no faster on a processor, and take more memory.
"""

MAX_CACHED_LOGITS = 1 << 26
"""Logits of one block that are cached for other budgets: 256 MiB.

Only where a block has a memo.
"""


@make_options()
class Context:
    """The visible part of a text when a word is scored.

    Args:
        mode: `none`: nothing. `original`: all its words, as the paper has it; one word then shows
            in the output at every protected position. `released`: the words released before it, and
            all words that pass; positions are released from left to right. `public`: the words that
            pass, nothing else.
        model: the folder or hub id of a masked or causal language model; None for the bundled
            masked one, "bundled:3" for its first three layers.
    """

    mode: ContextMode = "none"
    model: str | None = None

    def yield_waves(self, layout: Layout) -> Iterator[Ids]:
        """Yields waves of protected positions.

        In `released`, wave t holds the t-th protected position of every text.
        """
        if self.mode != "released":
            yield np.arange(len(layout.positions))
            return
        starts = np.cumsum(layout.sizes) - layout.sizes
        for wave in range(int(layout.sizes.max(initial=0))):
            yield (starts + wave)[layout.sizes > wave]

    def sum_losses(self, layout: Layout, losses: Values) -> Values:
        """Returns the loss of each word [n] from each position's loss.

        In `original` a word spends at all positions of its text.
        """
        if self.mode != "original":
            return losses
        sums: Values = np.bincount(layout.texts, losses, minlength=len(layout.sizes)).astype(
            np.float64
        )
        return sums[layout.texts]

    def divide_epsilon(self, layout: Layout, epsilon: Values) -> Values:
        """Returns the epsilon that every position may spend [n].

        So no word of its text spends more than its epsilon [n].
        """
        if self.mode != "original":
            return epsilon
        # Each draw looks at all words of its text, so the smallest of their budgets binds all
        # draws.
        lowest = np.full(len(layout.sizes), np.inf)
        np.minimum.at(lowest, layout.texts, epsilon)
        return (lowest / np.maximum(layout.sizes, 1))[layout.texts]

    def compute_logits(
        self, table: EmbeddingTable, block: Block, wave: Ids, released: Ids
    ) -> Floats:
        """Returns the model's logits at some positions: float32 [m, V].

        Args:
            table: its words are the candidates.
            block: its protected words are looked at in the mode `original` only.
            wave: numbers in 0..n-1 of protected positions, rising.
            released: int64 [n], the rows released so far; looked at in the mode `released` only.

        Raises:
            ConfigError: the table holds the pieces of another model.
        """
        # What is released differs from draw to draw, so that these logits never return.
        if block.memo is None or self.mode == "released":
            return self._run_model(table, block, wave, released)
        key = (self.mode, self.model, table, wave.tobytes(), *_build_key(block))
        logits = block.memo.get(key)
        if logits is None:
            logits = self._run_model(table, block, wave, released)
            if (
                sum(array.size for array in block.memo.values() if isinstance(array, np.ndarray))
                <= MAX_CACHED_LOGITS
            ):
                block.memo[key] = logits
        assert isinstance(logits, np.ndarray)
        return logits

    def _run_model(self, table: EmbeddingTable, block: Block, wave: Ids, released: Ids) -> Floats:
        layout, model = block.layout, _load_model(table, self.model)
        texts = np.unique(layout.texts[wave])  # only these are cut into pieces
        begins, ends = layout.documents[texts], layout.documents[texts + 1]
        place = _list_shown(layout, begins, ends)
        words, hidden = self._build_words(table, block, released, place)
        ids = None
        if model.row_pieces is not None:
            rows = self._list_rows(block, released)[place]
            ids = np.where(rows == PLACEHOLDER, -1, model.row_pieces[rows])
        sizes = np.searchsorted(place, ends) - np.searchsorted(place, begins)
        documents = np.concatenate(([0], np.cumsum(sizes)))
        spaced = np.ones(len(place), bool) if layout.spaced is None else layout.spaced[place]
        ragged = Ragged(words=words, documents=documents, spaced=spaced, ids=ids)
        queries = np.searchsorted(place, layout.positions[wave])
        if self.mode == "released":
            hidden[queries] = False  # the query hides it already, in a separate window around it
        return model.compute_logits(ragged, queries, hidden=hidden)

    def _list_rows(self, block: Block, released: Ids) -> Ids:
        """Returns the rows that the model sees, int64 [T]; `PLACEHOLDER` where it sees none.

        A word that passes as a string has none either.
        """
        layout = block.layout
        rows = np.full(len(layout.roles), PLACEHOLDER, np.int64)
        if self.mode == "original":
            rows[layout.positions] = block.secret
        elif self.mode == "released":
            rows[layout.positions] = released
        if layout.verbatim is None:
            rows[layout.roles == Role.PASS] = block.rows[layout.roles == Role.PASS]
        return rows

    def _build_words(
        self, table: EmbeddingTable, block: Block, released: Ids, place: Ids
    ) -> tuple[list[str], Flags]:
        """Returns the words at some places as the model sees them.

        Also says which of them are hidden.
        """
        layout = block.layout
        roles, names = layout.roles[place], _list_names(table)
        shown_rows = self._list_rows(block, released)[place]
        words = np.where(shown_rows == PLACEHOLDER, "", names[shown_rows])
        hidden = shown_rows == PLACEHOLDER
        if layout.verbatim is not None:
            is_passing = roles == Role.PASS
            words[is_passing] = np.array(layout.verbatim, object)[place[is_passing]]
            hidden &= ~is_passing
        # Some word has to stand at a hidden place; the model is told not to look at it.
        words[hidden] = table.words[0]
        return words.tolist(), hidden


def _list_shown(layout: Layout, begins: Ids, ends: Ids) -> Ids:
    """Lists the positions of some texts that the model is shown, rising.

    Those of a placeholder, and of a word that passes, are one: its number of pieces is not public,
    or it is cut anew.
    """
    place = np.concatenate([np.arange(begin, end) for begin, end in zip(begins, ends, strict=True)])
    units, roles = layout.unit_of[place], layout.roles[place]
    is_whole = roles == Role.HOLE
    if layout.verbatim is not None:
        is_whole |= roles == Role.PASS
    shown: Ids = place[~is_whole | (np.diff(units, prepend=-1) != 0)]
    return shown


def _build_key(block: Block) -> tuple[object, ...]:
    """Returns the key of all that the model may be shown."""
    layout = block.layout
    spaced = None if layout.spaced is None else layout.spaced.tobytes()
    return (
        layout.roles.tobytes(),
        layout.documents.tobytes(),
        layout.unit_of.tobytes(),
        layout.verbatim,
        spaced,
        block.rows.tobytes(),
    )


@lru_cache(maxsize=4)
def _load_model(table: EmbeddingTable, source: str | None) -> LanguageModel:
    return load_context(table, source, batch=BATCH_PIECES, device=table.device)


@lru_cache(maxsize=4)
def _list_names(table: EmbeddingTable) -> NDArray[np.object_]:
    names: NDArray[np.object_] = np.array([*table.words, ""], object)  # row -1 is no word
    return names
