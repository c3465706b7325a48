"""Sweeps over one option of a privatizer, measuring the results.

In: texts, and a privatizer for each value. Out: a row per value.
Not here: how a row is printed (`cli.sweep`) or drawn, and which words are important
(`protect.importance`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from textveil.errors import ConfigError, InputError
from textveil.models import SentenceEncoder, load_sentences
from textveil.pipeline import Privatizer, Result
from textveil.protect import GROUPS
from textveil_bench.intervals import Interval, mean

ProgressCallback = Callable[[str, int, int], None]

TAUS = (0.3, 0.4, 0.5, 0.6, 0.7)
"""The thresholds of STAMP's figure 5."""


@dataclass(frozen=True, kw_only=True)
class ThresholdRow:
    """The result for one threshold.

    Attributes:
        tau: cosine with the task above which a word is important.
        similarity: mean cosine between original and released text, over all texts.
        words: number of words in each of the four groups; public words, typed names and
            placeholders are in none.
        budget: the mean epsilon of non-public words, infinite ones included.
        texts: number of texts with words.
    """

    tau: float
    similarity: Interval
    words: Mapping[str, int]
    budget: float
    texts: int

    @property
    def shares(self) -> dict[str, float]:
        """Each group's share of the words of all four; 0 without words."""
        total = max(1, sum(self.words.values()))
        return {group: count / total for group, count in self.words.items()}

    def to_json(self) -> dict[str, Any]:
        """Returns the row as plain data; infinite numbers become "infinite"."""
        return {
            "tau": self.tau,
            "similarity": _convert_number(self.similarity.value),
            "low": _convert_number(self.similarity.low),
            "high": _convert_number(self.similarity.high),
            "words": dict(self.words),
            "shares": self.shares,
            "budget": _convert_number(self.budget),
            "texts": self.texts,
        }


def measure_thresholds(
    texts: Sequence[str],
    build_privatizer: Callable[[float], Privatizer],
    taus: Sequence[float] = TAUS,
    *,
    queries: Sequence[str] | None = None,
    encoder: SentenceEncoder | None = None,
    report: ProgressCallback = lambda step, done, total: None,
) -> list[ThresholdRow]:
    """Measures how similar releases are to originals, by threshold of importance.

    Args:
        texts: at least one with words; they are privatized once per threshold.
        build_privatizer: makes the privatizer of a threshold, `Privatizer(..., protect={"tau": tau,
            ...})`.
        taus: the thresholds, at least one.
        queries: the task of each text, if the privatizers have none of their own.
        encoder: encoder of the compared vectors; None for the bundled one.
        report: called with the step "texts", the number done, and the total over all thresholds.

    Raises:
        ConfigError: there is no threshold, or the number of queries differs from that of texts.
        InputError: no text has words.

    Source: STAMP, figure 5 and section 5.1.
    """
    if not taus:
        raise ConfigError("a sweep needs at least one threshold")
    if queries is not None and len(queries) != len(texts):
        raise ConfigError(
            f"give one query per text, got {len(queries)} queries for {len(texts)} texts"
        )
    sentence_encoder = load_sentences() if encoder is None else encoder
    originals = sentence_encoder.encode(texts)
    text_rows = np.flatnonzero(np.linalg.norm(originals, axis=1) > 0)
    if not len(text_rows):
        raise InputError("none of the texts has any words")
    rows = []
    for i, threshold in enumerate(taus):
        results: list[Result] = []
        for result in build_privatizer(threshold).privatize_many(texts, queries=queries):
            results.append(result)
            report("texts", i * len(texts) + len(results), len(taus) * len(texts))
        cosines = (originals * sentence_encoder.encode([result.text for result in results])).sum(
            axis=1, dtype=np.float64
        )
        counts = Counter(label for result in results for label in result.released.mask.groups or ())
        rows.append(
            ThresholdRow(
                tau=threshold,
                similarity=_clip_interval(mean(cosines[text_rows], text_rows, share=False)),
                words={group: counts[group] for group in GROUPS},
                budget=_compute_budget(results),
                texts=len(text_rows),
            )
        )
    return rows


def _clip_interval(cosine: Interval) -> Interval:
    """Clips an interval to [-1, 1], the range of a cosine."""
    return Interval(value=cosine.value, low=max(cosine.low, -1.0), high=min(cosine.high, 1.0))


def _compute_budget(results: Sequence[Result]) -> float:
    losses = np.concatenate([result.guarantee.epsilon_per_word for result in results])
    return float(losses.mean()) if len(losses) else 0.0


def _convert_number(value: float) -> float | str:
    return value if np.isfinite(value) else "infinite"
