"""Calibration: the range of a language model's logits on public text.

In: a context, and public texts. Out: the range of its logits, and the largest one, Cape's clipping
bound B.
Not here: the logits (`context`), and what is clipped (`mechanism`).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np

from textveil.errors import InputError
from textveil.models.context import LanguageModel, check_positions
from textveil.models.ragged import Ragged
from textveil.randomness import Ints
from textveil.table import EmbeddingTable
from textveil.text import is_public

MAX_LOGIT_MAGNITUDE = 1024
"""The magnitude to which logits are clipped.

Those of the models we know stay far below.
"""

QUANTILES = (0.5, 0.9, 0.99, 0.999)
"""The quantiles reported."""


@dataclass(frozen=True, kw_only=True)
class LogitRange:
    """A histogram of a model's logits for the words of a table.

    Measured at hidden words of public texts.

    Attributes:
        width: of the histogram's cells.
        model: the name of the context.
        table: the table whose words were the candidates.
        positions: number of positions measured.
        largest: the largest logit, Cape's clipping bound B.
        lowest: lower edge of the first cell.
        candidates: number of logits in each cell, over all candidates.
        best: number of positions whose largest logit is in each cell.
    """

    width: ClassVar[float] = 1 / 16

    model: str
    table: str
    positions: int
    largest: float
    lowest: float
    candidates: tuple[int, ...] = field(repr=False)
    best: tuple[int, ...] = field(repr=False)

    def compute_quantiles(self) -> dict[str, dict[float, float]]:
        """Returns quantiles of all logits and of each position's best.

        At .5, .9, .99 and .999.

        Each is the upper edge of a cell: at most a cell's width too high, and never above
        `largest`.
        """
        return {
            name: self._compute_quantiles(getattr(self, name)) for name in ("candidates", "best")
        }

    def _compute_quantiles(self, counts: tuple[int, ...]) -> dict[float, float]:
        below = np.fromiter(accumulate(counts), np.int64, len(counts))
        cells = [int(np.searchsorted(below, share * below[-1])) for share in QUANTILES]
        ends = (min(self.largest, self.lowest + (cell + 1) * self.width) for cell in cells)
        return dict(zip(QUANTILES, ends, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Returns the range as plain data, with its quantiles."""
        return {
            "model": self.model,
            "table": self.table,
            "positions": self.positions,
            "largest": self.largest,
            "quantiles": self.compute_quantiles(),
            "width": self.width,
            "lowest": self.lowest,
            "candidates": list(self.candidates),
            "best": list(self.best),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads a range from the output of `to_json`.

        Raises:
            InputError: the data has another form.
        """
        try:
            if data["width"] == cls.width:
                fields: dict[str, Any] = {
                    name: data[name]
                    for name in ("model", "table", "positions", "largest", "lowest")
                }
                fields |= {name: tuple(map(int, data[name])) for name in ("candidates", "best")}
                return cls(**fields)
        except (LookupError, TypeError, ValueError):
            pass
        raise InputError(
            "not a range of logits; give a file written by `textveil table calibrate --output`"
        )


def measure_logits(
    context: LanguageModel,
    texts: Ragged,
    *,
    positions: Ints | None = None,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> LogitRange:
    """Measures the logit range at hidden words of public texts.

    Each word is hidden in turn; over a table of pieces each piece of a word.

    The result becomes part of a mechanism and its statement, so the texts must be public: they get
    no guarantee.

    Args:
        context: the language model over the words of a table.
        texts: public texts like those to be privatized; a few hundred words give a first bound.
        positions: int64 [n], the words to measure; None for all words not on the public list.
        report: called with progress.

    Raises:
        InputError: there is no such word, or a position is out of range.
    """
    if positions is None:
        positions = np.array(
            [i for i, word in enumerate(texts.words) if not is_public(word)], np.int64
        )
    if not len(positions):
        raise InputError(
            "the texts have no word outside the public list; give texts with such words"
        )
    if context.row_pieces is not None:
        words, (texts, owners) = texts, context.split_words(texts)
        positions = np.flatnonzero(np.isin(owners, check_positions(words, positions)))
    half = int(MAX_LOGIT_MAGNITUDE / LogitRange.width)
    candidates, best = np.zeros(2 * half, np.int64), np.zeros(2 * half, np.int64)
    largest, done = -np.inf, 0
    for which, logits in context.yield_batches(texts, positions):
        maxima = logits.max(axis=1)
        for counts, values in ((candidates, logits), (best, maxima)):
            cells = np.floor(
                values.ravel().clip(-MAX_LOGIT_MAGNITUDE, MAX_LOGIT_MAGNITUDE) / LogitRange.width
            ).astype(np.int64)
            counts += np.bincount(cells.clip(-half, half - 1) + half, minlength=2 * half)
        largest = max(largest, float(maxima.max()))
        done += len(which)
        report("hidden words", done, len(positions))
    first, last = np.flatnonzero(candidates)[[0, -1]]
    return LogitRange(
        model=context.name,
        table=context.table,
        positions=len(positions),
        largest=largest,
        lowest=(int(first) - half) * LogitRange.width,
        candidates=tuple(candidates[first : last + 1].tolist()),
        best=tuple(best[first : last + 1].tolist()),
    )


def load_stored_range(table: EmbeddingTable) -> LogitRange | None:
    """Returns the stored range of the bundled masked LM.

    For a packaged table, or the table it is a projection of.

    Source: WikiText-2, test part (training/README.md of the repository).
    """
    root = table.root
    return None if root.stored is None else _read_packaged(root.name)


def load_range(table: EmbeddingTable) -> LogitRange:
    """Returns the table's stored range, or else that of `minilm`."""
    logit_range = load_stored_range(table) or _read_packaged("minilm")
    assert logit_range is not None, "part of the package"
    return logit_range


@cache
def _read_packaged(name: str) -> LogitRange | None:
    source = files("textveil").joinpath("data", "logits", f"{name}.json")
    if source.is_file():
        return LogitRange.from_json(json.loads(source.read_text(encoding="utf-8")))
    return None


def load_stored_bound(table: EmbeddingTable, source: object = None) -> float | None:
    """Returns Cape's stored clipping bound B, if there is one.

    For a packaged table and the bundled masked LM; None for any other.

    Args:
        table: its words are the candidates.
        source: the model, as `load_context` takes it; None is the bundled one.
    """
    logit_range = load_stored_range(table) if source is None else None
    return None if logit_range is None else logit_range.largest
