"""Utilities: scores of candidates as replacements of a word.

In: a block, positions, the words released so far. Out: `Scores` of all candidates, larger is
better.
Not here: how one candidate is drawn from its score (`rule`, `buckets`, `staircase`).
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal, Protocol

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.mechanism.block import Block
from textveil.mechanism.context import Context
from textveil.models import load_range
from textveil.randomness import Floats, Ids, Values
from textveil.table import EmbeddingTable, Metric, find_largest, is_shipped, load_table

SCORE_GRAIN = 2.0**44
"""Inverse of the unit of distance scores."""

LINES_AT_ONCE = 2
"""Rows scored at once, so that they stay in a processor's cache."""


class Scores(Protocol):
    """Candidates for m private rows. Secret."""

    @property
    def rows(self) -> Ids:
        """The private rows [m]."""
        ...

    def get_values(self) -> Values:
        """Returns the scores [m, V] of all candidates, larger is better."""
        ...

    def find_best(self, k: int) -> Ids:
        """Finds each row's k best candidates, [m, k], the best first."""
        ...


class Utility(Protocol):
    """The scores of candidates, and their inputs."""

    context: Context

    def compute_scores(
        self, table: EmbeddingTable, block: Block, wave: Ids, released: Ids
    ) -> Scores:
        """Computes scores at a wave of protected positions.

        Positions are numbers in 0..n-1; `released` [n] are the rows released so far.
        """
        ...

    def score_rows(self, table: EmbeddingTable, rows: Ids, logits: Floats | None) -> Scores:
        """Computes scores for private rows [m], given the context's logits.

        float32 [m, V] or the same [1, V].
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearness:
    """Minus the table's distance."""

    table: EmbeddingTable
    rows: Ids = field(repr=False)

    def get_values(self) -> Values:  # noqa: D102
        return -self.table.distances(self.rows)

    def find_best(self, k: int) -> Ids:  # noqa: D102
        return self.table.neighbours(self.rows, k)


@make_options()
class Distance:
    """Utility of nearness alone.

    The nearer, the better; no context, so all positions are one wave.
    """

    context: Context = Context()

    def compute_scores(  # noqa: D102
        self, table: EmbeddingTable, block: Block, wave: Ids, released: Ids
    ) -> Nearness:
        return Nearness(table=table, rows=block.secret[wave])

    def score_rows(self, table: EmbeddingTable, rows: Ids, logits: Floats | None) -> Nearness:  # noqa: D102
        return Nearness(table=table, rows=rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class BlendedScores:
    """Scores computed once for all rows that have the same ones.

    Attributes:
        rows: int64 [m].
        distinct_scores: float64 [u, V].
        line: int64 [m], the line of `distinct_scores` for each row.
    """

    rows: Ids = field(repr=False)
    distinct_scores: Values = field(repr=False)
    line: Ids = field(repr=False)

    def get_values(self) -> Values:  # noqa: D102
        return self.distinct_scores[self.line]

    def find_best(self, k: int) -> Ids:  # noqa: D102
        return find_largest(self.distinct_scores, k)[self.line]


@make_options()
class Hybrid:
    """Cape's utility: a language model's logit and a candidate's nearness.

    The nearness is that to the word; the logits are those at the position.

    With L = clip(logit - A, 0, B - A) and D = exp(-d / d_max), d_max the table's diameter:
    `product` is L^lambda_L D^lambda_D, `additive` is lambda_L L / (B - A) + lambda_D (1 - d /
    d_max). Without context, L counts as 1 and 0.

    The paper has A = 0. A model's logits are defined up to a constant: those of the bundled one are
    mostly far below 0, and all of a position would count alike.

    Args:
        context: the words that the model sees.
        lambda_L: the weight of the logit.
        lambda_D: the weight of the distance.
        form: the way both are joined.
        distance: between raw rows (`euclidean`) or unit rows (`chord`).
        bound: B; None for the value measured for the bundled model. `textveil table calibrate`
            measures it for other models.
        floor: A; None for the median that was measured for the bundled model, and 0 for any other
            model.

    Source: Cape, section 4.1.1, equations 3 to 7 (reconstructed: the formulas are not in the text
    that is public).
    """

    context: Context = Context()
    lambda_L: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.5  # noqa: N815 (the paper's name)
    lambda_D: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0  # noqa: N815
    form: Literal["product", "additive"] = "product"
    distance: Metric = "euclidean"
    bound: Annotated[float, Field(allow_inf_nan=False)] | None = None
    floor: Annotated[float, Field(allow_inf_nan=False)] | None = None

    @property
    def static(self) -> bool:
        """True if nothing but the distance counts."""
        return self.context.mode == "none" or self.lambda_L == 0

    def get_score_range(self, table: EmbeddingTable) -> tuple[float, float]:
        """Returns the smallest and the largest possible score.

        For any word and context.
        """
        if self.form == "additive":
            return 0.0, self.lambda_D + (0.0 if self.static else self.lambda_L)
        if self.static:
            return math.exp(-self.lambda_D), 1.0
        floor, bound = self.get_logit_range(table)
        return 0.0, (bound - floor) ** self.lambda_L

    def get_logit_range(self, table: EmbeddingTable) -> tuple[float, float]:
        """Returns A and B.

        Raises:
            ConfigError: the model is not the bundled one, and no B is given; or B is not above A.
        """
        low, high = (0.0, None) if self.context.model else _load_logit_range(table.root)
        floor = low if self.floor is None else self.floor
        bound = high if self.bound is None else self.bound
        if bound is None:
            raise ConfigError(
                "your own language model needs mechanism.bound; `textveil table calibrate` "
                "measures it on public text"
            )
        if bound <= floor:
            raise ConfigError(
                f"mechanism.bound must be above mechanism.floor, got {bound:g} and {floor:g}"
            )
        return floor, bound

    def compute_scores(  # noqa: D102
        self, table: EmbeddingTable, block: Block, wave: Ids, released: Ids
    ) -> BlendedScores:
        logits = None if self.static else self.context.compute_logits(table, block, wave, released)
        return self.score_rows(table, block.secret[wave], logits)

    def score_rows(self, table: EmbeddingTable, rows: Ids, logits: Floats | None) -> BlendedScores:  # noqa: D102
        distinct, line = np.unique(rows, return_inverse=True)
        distance_scores = self.score_distances(table, distinct)
        if self.static:
            return BlendedScores(rows=rows, distinct_scores=distance_scores, line=line)
        assert logits is not None
        scores = distance_scores[line]
        self.join(scores, self.score_logits(table, logits), out=scores)
        return BlendedScores(rows=rows, distinct_scores=scores, line=np.arange(len(rows)))

    def score_distances(self, table: EmbeddingTable, rows: Ids) -> Values:
        """Computes the distance part of a score, [m, V]."""
        view = convert_metric(table, self.distance)
        result = view.distances(rows)
        for first in range(0, len(rows), LINES_AT_ONCE):
            scores = result[first : first + LINES_AT_ONCE]
            scores *= -self.lambda_D / view.diameter
            if self.form == "additive":
                scores += self.lambda_D
            else:
                np.exp(scores, out=scores)
            # the last bits of a distance depend on the rest of the batch;
            # equal scores must be equal
            scores *= SCORE_GRAIN
            np.rint(scores, out=scores)
            scores /= SCORE_GRAIN
        return result

    def score_logits(self, table: EmbeddingTable, logits: Floats) -> Values:
        """Computes the logits' part of a score, [m, V].

        Neutral where the utility is static.
        """
        if self.static:
            return np.full(logits.shape, 0.0 if self.form == "additive" else 1.0)
        floor, bound = self.get_logit_range(table)
        scores: Values = np.clip(logits, floor, bound, dtype=np.float64)
        scores -= floor
        if self.form == "additive":
            scores *= self.lambda_L / (bound - floor)
            return scores
        return np.power(scores, self.lambda_L, out=scores)

    @property
    def join(self) -> np.ufunc:
        """Function that joins `score_distances` and `score_logits` to a score."""
        return np.add if self.form == "additive" else np.multiply


@lru_cache(maxsize=8)
def convert_metric(table: EmbeddingTable, metric: Metric) -> EmbeddingTable:
    """Returns the same words with raw or unit rows for a metric.

    A projection is returned unchanged.
    """
    if table.metric == metric or table.parent is not None:
        return table
    if is_shipped(table):
        return load_table(table.name, metric=metric, device=table.device)
    rows = table.take(slice(None))
    if metric == "euclidean":
        rows = rows * table.norms[:, None]
    return EmbeddingTable.build(
        name=table.name,
        words=table.words,
        vectors=rows,
        metric=metric,
        device=table.device,
        pieces=table.pieces,
    )


@lru_cache(maxsize=8)
def _load_logit_range(table: EmbeddingTable) -> tuple[float, float]:
    """Returns the median and largest logit of the bundled model.

    Measured on public text.
    """
    logit_range = load_range(table)
    return logit_range.compute_quantiles()["candidates"][0.5], logit_range.largest
