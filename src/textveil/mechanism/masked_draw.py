"""DP-MLM: a masked language model draws a word for each protected place, from clipped logits.

In: a block, a parameter per protected word, randomness. Out: released rows; the law; the claim.
Not here: the language model (`models`), and mechanisms that look at distances (`select`).
"""

from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import Field

from textveil.config import dump_options, make_options
from textveil.errors import ConfigError
from textveil.guarantee import Claim
from textveil.mechanism.block import PLACEHOLDER, Block, Layout, Role
from textveil.mechanism.context import Context
from textveil.mechanism.rule import EXPONENT_CAP, LOG_RATIO_ROUNDING, WEIGHT_SCALE
from textveil.mechanism.utility import Hybrid
from textveil.models import LanguageModel, Ragged, load_context
from textveil.randomness import Floats, Ids, Randomness, Values, choose_weighted
from textveil.table import EmbeddingTable

MAX_WEIGHT_CELLS = 1 << 21
"""Candidates' weights held at once: 16 MiB in float64."""

WINDOW = 512
"""Pieces that the model sees; a text and its copy share them."""

BATCH_PIECES = 1 << 10


@make_options()
class MaskedDraw:
    """Mechanism that draws every word from a language model's clipped logits.

    A word has a weight of exp(epsilon clip(logit, floor, bound) / (2 (bound - floor))). Whatever
    the model saw, a weight and the sum of weights change by at most exp(epsilon / 2), so the loss
    of a draw is at most epsilon. The model sees the private text at every draw: a word spends the
    sum over all protected places of its text.

    Args:
        name: its name in statements.
        nominal: the paper's epsilon of a draw; without it, it follows from epsilon.
        concat: the model reads the original text first, then its copy with the gap.
        floor, bound: where logits are clipped; None for those measured for the bundled model.
        model: the folder or hub id of a masked language model; None for the bundled one.

    Source: Meisenbacher, Chevli, Vladika and Matthes 2024, "DP-MLM: differentially private text
    rewriting using masked language models".
    """

    name: str = "dp-mlm"
    nominal: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    concat: bool = True
    floor: Annotated[float, Field(allow_inf_nan=False)] | None = None
    bound: Annotated[float, Field(allow_inf_nan=False)] | None = None
    model: str | None = None

    @property
    def _context(self) -> Context:
        return Context(mode="original", model=self.model)

    def _get_range(self, table: EmbeddingTable) -> tuple[float, float]:
        return Hybrid(context=self._context, floor=self.floor, bound=self.bound).get_logit_range(
            table
        )

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns local DP.

        Raises:
            ConfigError: the table holds word pieces, or the model has no known range.
        """
        if table.holds_pieces:  # its text is built of words, and shows how many pieces each has
            raise ConfigError(f"{self.name} needs words.unit=word: {table.name} holds word pieces")
        self._get_range(table)
        return Claim(
            mechanism=self.name,
            options=dump_options(self),
            kind="ldp",
            table=table.root.name,
            parameter="nominal",
            assumptions=(
                "logits are computed in floating point; the draw from the integer weights is exact",
                "the language model's answer for a text does not depend on the other texts of "
                "its batch",
            ),
            caveats=(
                "each draw looks at every word of its text, so a word spends the sum of all "
                "positions",
                "the paper's epsilon is that of one draw",
            ),
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Returns the nominal epsilon [n] that each draw may spend."""
        share = self._context.divide_epsilon(layout, epsilon) - LOG_RATIO_ROUNDING
        return np.maximum(share, 0.0)

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns the nominal epsilon [n], where it was set by name."""
        return None if self.nominal is None else np.full(len(layout.positions), self.nominal)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns the sum of the losses of all draws that a word shows in, [n]."""
        losses = np.minimum(parameter, 2 * EXPONENT_CAP)
        losses += np.where(losses > 0, LOG_RATIO_ROUNDING, 0.0)
        return self._context.sum_losses(layout, losses)

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Draws the released rows [n]."""
        released = np.empty(len(parameter), np.int64)
        step = max(1, MAX_WEIGHT_CELLS // len(table))
        for chunk, draws in rng.open(block.layout.sizes).split_rows(step):
            places = np.arange(len(parameter))[chunk]
            logits = self._compute_logits(table, block, places)
            weights = self._compute_weights(table, logits, parameter[chunk])
            released[chunk] = choose_weighted(draws, weights.astype(np.int64))
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values:
        """Returns ln Pr[row y] of every protected position, [n, V]."""
        weights = self._compute_weights(
            table, self._compute_logits(table, block, np.arange(len(parameter))), parameter
        )
        law: Values = np.log(weights) - np.log(weights.sum(axis=1, keepdims=True))
        return law

    def _compute_weights(self, table: EmbeddingTable, logits: Floats, parameter: Values) -> Values:
        """Computes whole weights of at most 2^50 in float64, [m, V]."""
        floor, bound = self._get_range(table)
        exponent = np.clip(logits, floor, bound, dtype=np.float64) - bound
        exponent *= parameter[:, None] / (2 * (bound - floor))
        weights: Values = np.ceil(WEIGHT_SCALE * np.exp(np.maximum(exponent, -EXPONENT_CAP)))
        return weights

    # ---- what the model sees ---------------------------------------------------------------------

    def _compute_logits(self, table: EmbeddingTable, block: Block, places: Ids) -> Floats:
        """Returns the logits float32 [m, V] at protected places [m] of a block."""
        if not len(places):
            return np.empty((0, len(table)), np.float32)
        layout = block.layout
        words, spaced, hidden, ends, queries = [], [], [], [0], []
        positions = layout.positions[places]
        texts = layout.texts[places]
        for text in np.unique(texts).tolist():
            begin, end = (int(at) for at in layout.documents[text : text + 2])
            shown, is_hidden = _read_words(table, block, begin, end)
            gaps = [True] * (end - begin)
            if layout.spaced is not None:
                gaps = layout.spaced[begin:end].tolist()
            before = ends[-1] + (end - begin if self.concat else 0)
            queries.extend((positions[texts == text] - begin + before).tolist())
            # The copy must not be glued to the text before it.
            copies = [gaps, [True, *gaps[1:]]] if self.concat else [gaps]
            for copy in copies:
                words += shown
                hidden += is_hidden
                spaced += copy
            ends.append(len(words))
        ragged = Ragged(words=words, documents=np.array(ends), spaced=np.array(spaced, bool))
        model = _load_model(table, self.model)
        return model.compute_logits(ragged, np.array(queries), hidden=np.array(hidden, bool))


def _read_words(
    table: EmbeddingTable, block: Block, begin: int, end: int
) -> tuple[list[str], list[bool]]:
    """Reads the words of a text as the model sees them, and which of them are hidden."""
    layout, words, hidden = block.layout, [], []
    for place in range(begin, end):
        row = int(block.rows[place])
        passes = layout.roles[place] == Role.PASS and layout.verbatim is not None
        is_hidden = not passes and (row == PLACEHOLDER or layout.roles[place] == Role.HOLE)
        if passes:
            assert layout.verbatim is not None
            words.append(layout.verbatim[place])
        else:
            # Some word has to stand at a hidden place; the model is told not to look at it.
            words.append(table.words[0 if is_hidden else row])
        hidden.append(bool(is_hidden))
    return words, hidden


@lru_cache(maxsize=4)
def _load_model(table: EmbeddingTable, source: str | None) -> LanguageModel:
    return load_context(
        table, source, kind="masked-lm", window=WINDOW, batch=BATCH_PIECES, device=table.device
    )
