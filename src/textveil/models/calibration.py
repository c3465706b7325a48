"""Calibration: how large a language model's logits are on public text.

In: a context, and public texts. Out: the range of its logits, and the largest one, Cape's clipping bound B.
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
import torch

from textveil.errors import InputError
from textveil.models.context import LanguageModel
from textveil.models.ragged import Ragged
from textveil.randomness import Ints
from textveil.table import EmbeddingTable
from textveil.text import is_public

REACH = 1024
"""Logits beyond this size are counted as if they had it; no model at hand comes near."""

SHARES = (0.5, 0.9, 0.99, 0.999)
"""The quantiles that are told."""


@dataclass(frozen=True, kw_only=True)
class LogitRange:
    """The logits that a model gave to the words of a table, at hidden words of public texts.

    Attributes:
        width: of the cells in which logits are counted.
        model: what the context is called.
        table: whose words were the candidates.
        positions: how many words were asked about.
        largest: the largest logit of all, Cape's clipping bound B.
        lowest: where the first cell of the counts begins.
        candidates: how many logits of all candidates are in each cell, from `lowest` on.
        best: how many positions have their largest logit there.
    """

    width: ClassVar[float] = 1 / 16

    model: str
    table: str
    positions: int
    largest: float
    lowest: float
    candidates: tuple[int, ...] = field(repr=False)
    best: tuple[int, ...] = field(repr=False)

    def quantiles(self) -> dict[str, dict[float, float]]:
        """What .5, .9, .99 and .999 of all candidates' logits, and of the best of each position, do not exceed.

        Each is the upper end of a cell, at most a cell's width above the exact one, and never above `largest`.
        """
        return {name: self._quantiles(getattr(self, name)) for name in ("candidates", "best")}

    def _quantiles(self, counts: tuple[int, ...]) -> dict[float, float]:
        below = np.fromiter(accumulate(counts), np.int64, len(counts))
        cells = [int(np.searchsorted(below, share * below[-1])) for share in SHARES]
        ends = (min(self.largest, self.lowest + (cell + 1) * self.width) for cell in cells)
        return dict(zip(SHARES, ends, strict=True))

    def to_json(self) -> dict[str, Any]:
        """As plain data, the quantiles included."""
        return {
            "model": self.model,
            "table": self.table,
            "positions": self.positions,
            "largest": self.largest,
            "quantiles": self.quantiles(),
            "width": self.width,
            "lowest": self.lowest,
            "candidates": list(self.candidates),
            "best": list(self.best),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """The range that `to_json` gave.

        Raises:
            InputError: it is none.
        """
        try:
            if found["width"] == cls.width:
                fields: dict[str, Any] = {
                    name: found[name] for name in ("model", "table", "positions", "largest", "lowest")
                }
                fields |= {name: tuple(map(int, found[name])) for name in ("candidates", "best")}
                return cls(**fields)
        except (LookupError, TypeError, ValueError):
            pass
        raise InputError("a range of logits must be what `textveil table calibrate --output` writes, and is not")


def measure_logits(
    context: LanguageModel,
    texts: Ragged,
    *,
    positions: Ints | None = None,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> LogitRange:
    """How large the logits are where words of public texts are hidden, one at a time.

    What is found goes into a mechanism and its statement, so the texts must be public: nothing is promised for them.

    Args:
        context: the language model over the words of a table.
        texts: public ones, like those that will be privatized; some hundred words are enough for a first bound.
        positions: int64 [n], the words that are asked about; None: all that are not on the public list.
        report: told how many of them are done.

    Raises:
        InputError: there is no such word, or a position is none of the texts'.
    """
    if positions is None:
        positions = np.array([i for i, word in enumerate(texts.words) if not is_public(word)], np.int64)
    if not len(positions):
        raise InputError("the texts must have a word that is not on the public list, and have none")
    half = int(REACH / LogitRange.width)
    candidates, best = np.zeros(2 * half, np.int64), np.zeros(2 * half, np.int64)
    largest, done = -np.inf, 0
    for which, logits in context.batches(texts, positions):
        most = logits.amax(dim=1)
        for counts, values in ((candidates, logits), (best, most)):
            cells = (values.clamp(-REACH, REACH) / LogitRange.width).floor_().long().clamp_(-half, half - 1) + half
            counts += torch.bincount(cells.flatten(), minlength=2 * half).cpu().numpy()
        largest = max(largest, float(most.max()))
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


def stored_range(table: EmbeddingTable) -> LogitRange | None:
    """What was measured with the bundled masked LM for a table that ships with the package, or for its projection.

    Source: WikiText-2, test part (training/README.md of the repository).
    """
    root = table.root
    return None if root.stored is None else _packaged(root.name)


def bundled_range(table: EmbeddingTable) -> LogitRange:
    """The same for the table `minilm` where nothing was measured for the words of this one."""
    found = stored_range(table) or _packaged("minilm")
    assert found is not None, "it ships with the package"
    return found


@cache
def _packaged(name: str) -> LogitRange | None:
    source = files("textveil").joinpath("data", "logits", f"{name}.json")
    return LogitRange.from_json(json.loads(source.read_text(encoding="utf-8"))) if source.is_file() else None


def stored_bound(table: EmbeddingTable, source: object = None) -> float | None:
    """Cape's clipping bound B for a table that ships with the package and the bundled masked LM; None for others.

    Args:
        table: its words are the candidates.
        source: the model, as `load_context` takes it: None is the bundled one.
    """
    found = stored_range(table) if source is None else None
    return None if found is None else found.largest
