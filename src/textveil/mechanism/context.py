"""Context: which words of a text a utility may see, and what a language model expects among them.

In: a block, and what was released so far. Out: the order in which positions are released; logits over the table.
Not here: the language model (`encoder.context`), and what a utility makes of its logits (`utility`).

Words of placeholders are hidden in every mode, and so is the word that stands at the position itself.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from textveil.config import options
from textveil.errors import ConfigError
from textveil.mechanism.block import PLACEHOLDER, Block, Layout, Role
from textveil.models import LanguageModel, Ragged, load_context
from textveil.randomness import Flags, Floats, Ids, Values
from textveil.table import EmbeddingTable

Mode = Literal["none", "original", "released", "public"]

PIECES = 1 << 10
"""Pieces in one run of the model: more are no faster on a processor, and take more memory."""

REMEMBERED = 1 << 26
"""So many logits (256 MiB) of one block are kept for other budgets, where a block remembers anything."""


@options()
class Context:
    """What is seen of a text when one of its words is scored.

    Args:
        mode: `none`: nothing. `original`: all its words, as the paper has it; one word then shows in the output at
            every protected position. `released`: the words released before it, and all words that pass; positions are
            released from left to right. `public`: the words that pass, nothing else.
        model: the folder or hub id of a masked or causal language model; None for the bundled masked one, "bundled:3"
            for its first three layers.
    """

    mode: Mode = "none"
    model: str | None = None

    def schedule(self, layout: Layout) -> Iterator[Ids]:
        """Waves of protected positions; in `released`, wave t holds the t-th protected position of every text."""
        if self.mode != "released":
            yield np.arange(len(layout.positions))
            return
        starts = np.cumsum(layout.sizes) - layout.sizes
        for wave in range(int(layout.sizes.max(initial=0))):
            yield (starts + wave)[layout.sizes > wave]

    def spread(self, layout: Layout, spent: Values) -> Values:
        """What words spend [n] where every position spends so much: in `original` all positions of the text."""
        if self.mode != "original":
            return spent
        sums: Values = np.bincount(layout.texts, spent, minlength=len(layout.sizes)).astype(
            np.float64
        )
        return sums[layout.texts]

    def share(self, layout: Layout, epsilon: Values) -> Values:
        """What every position may spend [n] so that no word of its text spends more than its epsilon [n]."""
        if self.mode != "original":
            return epsilon
        least = np.full(len(layout.sizes), np.inf)
        np.minimum.at(least, layout.texts, epsilon)
        return (least / np.maximum(layout.sizes, 1))[layout.texts]

    def check(self, table: EmbeddingTable) -> None:
        """Refuses what has no context.

        Raises:
            ConfigError: the table holds word pieces, of which a position has several.
        """
        if self.mode != "none" and table.holds_pieces:
            raise ConfigError(
                f"context {self.mode} needs words.unit=word: {table.name} holds word pieces"
            )

    def logits(self, table: EmbeddingTable, block: Block, wave: Ids, released: Ids) -> Floats:
        """What the model expects at some positions: float32 [m, V].

        Args:
            table: its words are the candidates.
            block: its protected words are looked at in the mode `original` only.
            wave: numbers in 0..n-1 of protected positions, rising.
            released: int64 [n], the rows released so far; looked at in the mode `released` only.
        """
        if block.memo is None or self.mode == "released":
            return self._read(table, block, wave, released)
        key = (self.mode, self.model, table, wave.tobytes(), *_looked_at(block))
        found = block.memo.get(key)
        if found is None:
            found = self._read(table, block, wave, released)
            if (
                sum(each.size for each in block.memo.values() if isinstance(each, np.ndarray))
                <= REMEMBERED
            ):
                block.memo[key] = found
        assert isinstance(found, np.ndarray)
        return found

    def _read(self, table: EmbeddingTable, block: Block, wave: Ids, released: Ids) -> Floats:
        layout = block.layout
        texts = np.unique(layout.texts[wave])  # only these are cut into pieces
        begins, ends = layout.documents[texts], layout.documents[texts + 1]
        place = np.concatenate(
            [np.arange(begin, end) for begin, end in zip(begins, ends, strict=True)]
        )
        words, hidden = self._shown(table, block, released, place)
        documents = np.concatenate(([0], np.cumsum(ends - begins)))
        spaced = np.ones(len(place), bool) if layout.spaced is None else layout.spaced[place]
        ragged = Ragged(words=words, documents=documents, spaced=spaced)
        asked = np.searchsorted(place, layout.positions[wave])
        if self.mode == "released":
            hidden[asked] = (
                False  # it is hidden as what is asked for, and has a window of its own about it
            )
        return _model(table, self.model).logits(ragged, asked, hidden=hidden)

    def _shown(
        self, table: EmbeddingTable, block: Block, released: Ids, place: Ids
    ) -> tuple[list[str], Flags]:
        """The words at some places of a block as the model sees them, and which of them it does not see."""
        layout = block.layout
        roles, names = layout.roles[place], _names(table)
        rows = np.full(len(layout.roles), PLACEHOLDER, np.int64)
        if self.mode == "original":
            rows[layout.positions] = block.secret
        elif self.mode == "released":
            rows[layout.positions] = released
        if layout.verbatim is None:
            rows[layout.roles == Role.PASS] = block.rows[layout.roles == Role.PASS]
        found = rows[place]
        words = np.where(found == PLACEHOLDER, "", names[found])
        hidden = found == PLACEHOLDER
        if layout.verbatim is not None:
            passing = roles == Role.PASS
            words[passing] = np.array(layout.verbatim, object)[place[passing]]
            hidden &= ~passing
        words[hidden] = table.words[0]
        return words.tolist(), hidden


def _looked_at(block: Block) -> tuple[object, ...]:
    """All of a block that the model may be shown."""
    layout = block.layout
    spaced = None if layout.spaced is None else layout.spaced.tobytes()
    return (
        layout.roles.tobytes(),
        layout.documents.tobytes(),
        layout.verbatim,
        spaced,
        block.rows.tobytes(),
    )


@lru_cache(maxsize=4)
def _model(table: EmbeddingTable, source: str | None) -> LanguageModel:
    return load_context(table, source, batch=PIECES, device=table.device)


@lru_cache(maxsize=4)
def _names(table: EmbeddingTable) -> NDArray[np.object_]:
    names: NDArray[np.object_] = np.array([*table.words, ""], object)  # row -1 is no word
    return names
