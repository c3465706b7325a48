"""The selecting family: score candidates, draw one of the whole vocabulary.

In: a block, a parameter per protected word, randomness. Out: released rows; the law; the claim.
Not here: scores (`utility`), how one is drawn (`rule`, `buckets`, `staircase`), candidates that
depend on the word (`confined`), and the names in the papers (`papers`).
"""

import numpy as np

from textveil.config import dump_options, make_options
from textveil.errors import ConfigError
from textveil.guarantee import Claim
from textveil.mechanism.block import PLACEHOLDER, Block, Layout
from textveil.mechanism.buckets import BucketCache, BucketRule, compute_losses
from textveil.mechanism.conditional import ConditionalBuckets, ConditionalRanks
from textveil.mechanism.context import Context
from textveil.mechanism.contract import Mechanism
from textveil.mechanism.noise import list_lengthening_caveats
from textveil.mechanism.rule import LOG_RATIO_ROUNDING, Exponential
from textveil.mechanism.staircase import Staircase
from textveil.mechanism.utility import BlendedScores, Distance, Hybrid, Scores
from textveil.randomness import Draws, Floats, Ids, Randomness, Values
from textveil.table import EmbeddingTable

MAX_SCORE_CELLS = 1 << 21
"""Candidate scores held at once: 16 MiB in float64."""

MAX_POSITIONS = 1 << 16
"""Largest number of positions drawn at once."""

PRECISION_NOTE = (
    "scores are computed in double precision; the draw from the integer weights is exact"
)


@make_options()
class Select:
    """Mechanism that scores the whole vocabulary and draws one candidate.

    Select(utility, rule).

    Args:
        name: its name in statements.
        utility: the scores, and their inputs. The exponential rule takes the distance only.
        rule: how one candidate is drawn.
        caveats: part of every statement.
    """

    name: str
    utility: Distance | Hybrid = Distance()
    rule: Exponential | Staircase | BucketRule
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.rule, Exponential) and not isinstance(self.utility, Distance):
            raise ConfigError(
                "the exponential rule draws by the table's distance: utility must be Distance()"
            )
        if isinstance(self.rule, BucketRule) and not isinstance(self.utility, Hybrid):
            raise ConfigError(
                "buckets need scores whose range is known: utility must be Hybrid(...)"
            )

    @property
    def context(self) -> Context:
        """The visible part of a text, and the order of release."""
        return self.utility.context

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns a metric claim for the exponential rule; else local DP.

        The metric is the table's distance.
        """
        metric = isinstance(self.rule, Exponential)
        caveats, assumptions = list(self.caveats), [PRECISION_NOTE]
        if self.context.mode == "original":
            assumptions.append(
                "the language model's answer for a text does not depend on the other texts of "
                "its batch"
            )
            caveats.append(
                "each draw looks at every word of its text, so a word spends the sum of all "
                "positions"
            )
        if isinstance(self.rule, BucketRule):
            # fails at once if an option is missing
            self.rule.compute_loss(table, self._hybrid, np.zeros(1))
            caveats.append("the nominal epsilon is the paper's; it is no bound")
        return Claim(
            mechanism=self.name,
            options=dump_options(self),
            kind="metric" if metric else "ldp",
            metric=table.metric if metric else None,
            table=table.root.name,
            view=table.axes_note if metric else "",
            diameter=table.diameter if metric else np.inf,
            additive=self.rule.rounding if isinstance(self.rule, Exponential) else 0.0,
            parameter=self.rule.parameter_name,
            assumptions=tuple(assumptions),
            caveats=(*caveats, *(list_lengthening_caveats(table) if metric else ())),
            alone=self.context.mode == "none",
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Computes every position's parameter: c, nominal epsilon or epsilon."""
        epsilons = self.context.divide_epsilon(layout, epsilon)
        if isinstance(self.rule, Exponential):
            # Epsilon is per unit of the original distance, which a projection may lengthen by this
            # factor.
            return self.rule.find_parameter(table, epsilons / table.lipschitz)
        if isinstance(self.rule, BucketRule):
            return self.rule.find_parameter(table, self._hybrid, epsilons)
        return epsilons

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns the rule's parameter of every position, where set by name."""
        if isinstance(self.rule, Staircase):
            return None
        setting = self.rule.c if isinstance(self.rule, Exponential) else self.rule.nominal
        return None if setting is None else np.full(len(layout.positions), setting)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Computes the loss of every word.

        At its position, and at all positions that look at it.
        """
        if isinstance(self.rule, Exponential):
            losses = self.rule.compute_constant(table, parameter) * table.lipschitz
        elif isinstance(self.rule, Staircase):
            losses = self.rule.compute_loss(parameter)
        else:
            losses = self.rule.compute_loss(table, self._hybrid, parameter)
        return self.context.sum_losses(layout, losses)

    def compute_local_dp_cap(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> Values:
        """Bounds the loss of the exponential rule by the distance cap.

        Other rules have local DP already: infinite.
        """
        if isinstance(self.rule, Exponential):
            return self.rule.compute_local_dp_cap(table, parameter)
        return np.full(len(parameter), np.inf)

    def build_paper_claim(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> tuple[Claim, Values] | None:
        """Returns the paper's claim, and its epsilon.

        SanText claims 2c per unit of distance, Cape epsilon + ln(max|B| / min|B|).
        """
        claim = self.claim(table)
        if isinstance(self.rule, Exponential):
            return (claim, 2 * parameter) if self.rule.calibration == "paper" else None
        if isinstance(self.rule, Staircase):
            return None
        paper_bound = self.rule.compute_paper_bound(table, self._hybrid, parameter)
        return None if paper_bound is None else (claim, paper_bound)

    @property
    def _hybrid(self) -> Hybrid:
        assert isinstance(self.utility, Hybrid), (
            "buckets and contexts need a score whose range is known"
        )
        return self.utility

    # ---- drawing ---------------------------------------------------------------------------------

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Draws the released rows [n], wave after wave."""
        released = np.full(len(parameter), PLACEHOLDER, np.int64)
        layout = block.layout
        # The exponential rule limits what it holds by itself.
        row_cells = 1 if isinstance(self.rule, Exponential) else len(table)
        if isinstance(self.rule, Staircase) and isinstance(self.utility, Distance):
            row_cells = int(self.rule.compute_level_ends(table)[-2])
        limit = max(1, min(MAX_POSITIONS, MAX_SCORE_CELLS // row_cells))
        bucket_cache = self._build_bucket_cache(table)
        for wave in self.context.yield_waves(layout):
            sizes = np.bincount(layout.texts[wave], minlength=len(layout.sizes))
            for chunk, draws in rng.open(sizes).split_rows(limit):
                part = wave[chunk]
                if bucket_cache is not None:
                    buckets = bucket_cache.get(block.secret[part])
                    released[part] = bucket_cache.rule.draw(
                        draws,
                        buckets,
                        bucket_cache.rule.compute_rate(table, self._hybrid, parameter[part]),
                    )
                    continue
                scores = self.utility.compute_scores(table, block, part, released)
                released[part] = self._draw_part(draws, table, scores, parameter[part])
        return released

    def _build_bucket_cache(self, table: EmbeddingTable) -> BucketCache | None:
        """Returns the cache of buckets for repeated rows.

        None where the buckets do not follow from the row alone.
        """
        if not isinstance(self.rule, BucketRule) or not self._hybrid.static:
            return None
        return BucketCache(self.rule, table, self._hybrid)

    def _draw_part(
        self, draws: Draws, table: EmbeddingTable, scores: Scores, parameter: Values
    ) -> Ids:
        if isinstance(self.rule, Exponential):
            return self.rule.draw(draws, table, scores.rows, parameter)
        if isinstance(self.rule, Staircase):
            return self.rule.draw(draws, table, scores, parameter)
        assert isinstance(scores, BlendedScores)
        buckets = self.rule.assign_buckets(table, self._hybrid, scores.distinct_scores).take(
            scores.line
        )
        return self.rule.draw(
            draws, buckets, self.rule.compute_rate(table, self._hybrid, parameter)
        )

    # ---- the law ---------------------------------------------------------------------------------

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values | None:
        """Returns ln Pr[row y] of every protected position, [n, V].

        Given the rows [n] that are released before it.
        """
        before = np.full(len(parameter), PLACEHOLDER, np.int64) if released is None else released
        law = np.empty((len(parameter), len(table)))
        context_rows = np.full(len(parameter), PLACEHOLDER, np.int64)
        limit = max(1, MAX_SCORE_CELLS // len(table))
        for wave in self.context.yield_waves(block.layout):
            for start in range(0, len(wave), limit):
                part = wave[start : start + limit]
                law[part] = self._compute_law(
                    table,
                    self.utility.compute_scores(table, block, part, context_rows),
                    parameter[part],
                )
            # Only now: a wave sees what was released before it, as in a draw.
            context_rows[wave] = before[wave]
        return law

    def log_likelihoods(self, table: EmbeddingTable, rows: Ids, parameter: float) -> Floats | None:
        """Returns ln Pr[row | private row] of released rows, float32 [m, V].

        For staircases by distance; else None.
        """
        if isinstance(self.rule, Staircase) and isinstance(self.utility, Distance):
            return self.rule.log_likelihoods(table, rows, parameter)
        return None

    def compute_given_law(
        self, table: EmbeddingTable, rows: Ids, parameter: Values, logits: Floats | None = None
    ) -> Values:
        """Returns ln Pr[row y | private row] [m, V], given logits.

        `logits` of the context are [1, V] or [m, V].
        """
        return self._compute_law(table, self.utility.score_rows(table, rows, logits), parameter)

    def build_conditional(
        self, table: EmbeddingTable, logits: Floats
    ) -> ConditionalRanks | ConditionalBuckets:
        """Returns the law for the context's logits [V].

        For rules that can use a context.
        """
        assert not isinstance(self.rule, Exponential), "it is drawn by the distance alone"
        if isinstance(self.rule, BucketRule):
            return ConditionalBuckets.build(self.rule, self._hybrid, table, logits)
        return ConditionalRanks.build(self.rule, self._hybrid, table, logits)

    def describe_approximation(self, table: EmbeddingTable) -> str:
        """Describes how `build_conditional` estimates the law.

        Buckets are counted from some of the candidates of a large table.
        """
        return (
            ConditionalBuckets.describe_approximation(table)
            if isinstance(self.rule, BucketRule)
            else ""
        )

    def _compute_law(self, table: EmbeddingTable, scores: Scores, parameter: Values) -> Values:
        if isinstance(self.rule, Exponential):
            return self.rule.log_probs(-scores.get_values(), parameter)
        if isinstance(self.rule, Staircase):
            return self.rule.log_probs(table, scores, parameter)
        buckets = self.rule.assign_buckets(table, self._hybrid, scores.get_values())
        return self.rule.log_probs(buckets, self.rule.compute_rate(table, self._hybrid, parameter))


def compute_exact_loss(mechanism: Mechanism, table: EmbeddingTable) -> float | None:
    """Computes the exact loss of Cape's buckets without a context.

    Under the nominal epsilon of all words, with V^2 work. None for any other mechanism.
    """
    if not isinstance(mechanism, Select) or not isinstance(mechanism.rule, BucketRule):
        return None
    if mechanism.rule.nominal is None or mechanism.context.mode != "none":
        return None
    nominal = np.array([mechanism.rule.nominal])
    return (
        float(compute_losses(table, mechanism._hybrid, mechanism.rule, nominal)[0])
        + LOG_RATIO_ROUNDING
    )


@make_options()
class Placeholder:
    """Releases a placeholder for every protected word.

    Epsilon 0 for the value, whatever the budget.
    """

    name: str = "placeholder"

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns local DP with epsilon 0; what remains is in the mask."""
        return Claim(
            mechanism=self.name,
            options=dump_options(self),
            kind="ldp",
            draws=False,
            table=table.root.name,
            caveats=("position and type of a placeholder are in the mask",),
            alone=True,
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Returns zeros: there is no parameter to set."""
        return np.zeros(len(epsilon))

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns zeros: no parameter is needed."""
        return np.zeros(len(layout.positions))

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns zeros: no word spends anything."""
        return np.zeros(len(parameter))

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Returns a placeholder at every position, without drawing."""
        return np.full(len(parameter), PLACEHOLDER, np.int64)
