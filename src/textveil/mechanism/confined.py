"""Mechanisms whose candidates depend on the word.

Each word has its list of candidates, so an output rules words out.
In: a block, a parameter per protected word, randomness. Out: released rows; the law; the claim,
which is none for all words, and a restricted one where the list allows it.
Not here: mechanisms that draw from the whole vocabulary (`select`).
"""

from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Literal, Protocol

import numpy as np
from pydantic import Field

from textveil.config import dump_options, make_options
from textveil.errors import ConfigError, TableError
from textveil.guarantee import Claim, Restricted
from textveil.mechanism.block import Block, Layout
from textveil.mechanism.radius import compute_length_law
from textveil.mechanism.rule import EXPONENT_CAP, WEIGHT_SCALE, Exponential
from textveil.randomness import Draws, Flags, Ids, Ints, Randomness, Values, choose_weighted
from textveil.table import MAX_CACHED_NEIGHBOURS, EmbeddingTable, compute_shares, is_shipped
from textveil.text import get_stopwords

MAX_CANDIDATE_CELLS = 1 << 22
MAX_POSITIONS = 1 << 16
"""Positions drawn at once from short lists."""

SEEDS_AT_ONCE = 64
"""Groups searched at once."""

COIN_RANGE = 1 << 53


class Candidates(Protocol):
    """The possible outputs of a word and their probabilities."""

    @property
    def reason(self) -> str:
        """The reason why no bound holds for all pairs of words."""
        ...

    @property
    def setting(self) -> float | None:
        """The parameter of all words, where it was set by name."""
        ...

    def get_restricted(self, table: EmbeddingTable) -> Restricted | None:
        """Returns the pairs for which a bound holds."""
        ...

    def compute_restricted_epsilon(self, table: EmbeddingTable, parameter: Values) -> Values:
        """Returns the epsilon [m] of these pairs; infinite without any."""
        ...

    def mark_restricted_pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:
        """Says whether each two rows are such a pair, [m, m]."""
        ...

    def get_batch_size(self, table: EmbeddingTable) -> int:
        """Returns the largest number of positions drawn at once."""
        ...

    def draw(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Ids:
        """Draws one candidate for each private row, int64 [m]."""
        ...

    def log_probs(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:
        """Returns ln P(candidate | row) [m, V]."""
        ...


# ---- lists of K words ----------------------------------------------------------------------------


@make_options()
class NearestLists:
    """K candidates for each word, weighted by exp(nominal score / 2).

    Scores go from 0 (the farthest) to 1 (the nearest).

    Args:
        k: words in a list.
        mapping: `conservative`: disjoint groups that share their list; `aggressive`: the k nearest
            words of each.
        keep_stopwords: stop words are released unchanged.
        nominal: the paper's epsilon for all words; without it, epsilon is.

    Source: CusText, sections 3.2 and 3.3.
    """

    k: Annotated[int, Field(ge=2, strict=True)] = 20
    mapping: Literal["conservative", "aggressive"] = "conservative"
    keep_stopwords: bool = False
    nominal: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @property
    def disjoint(self) -> bool:
        """True if lists are equal or have no word in common."""
        return self.mapping == "conservative"

    @property
    def reason(self) -> str:  # noqa: D102
        if self.disjoint:
            return "an output shows which group its word belongs to" + self._stopword_note
        return (
            "every word has its own candidates, so an output rules out all words that do not "
            "have it as a candidate" + self._stopword_note
        )

    @property
    def _stopword_note(self) -> str:
        return "; stop words are released unchanged" if self.keep_stopwords else ""

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.nominal

    def get_restricted(self, table: EmbeddingTable) -> Restricted | None:  # noqa: D102
        if not self.disjoint:
            return None
        return Restricted(
            domain=f"two words of one group of {self.k}{self._stopword_exception}", kind="ldp"
        )

    @property
    def _stopword_exception(self) -> str:
        return " that are not stop words" if self.keep_stopwords else ""

    def compute_restricted_epsilon(self, table: EmbeddingTable, parameter: Values) -> Values:
        """Computes the exact loss inside the groups of the table."""
        if not self.disjoint:
            return np.full(len(parameter), np.inf)
        distinct, which = np.unique(parameter, return_inverse=True)
        return np.array([_compute_group_loss(table, self, float(nominal)) for nominal in distinct])[
            which
        ]

    def mark_restricted_pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:  # noqa: D102
        if not self.disjoint:
            return np.zeros((len(rows), len(rows)), bool)
        groups = _build_groups(table, self.k).home[rows]
        free = ~self._mark_fixed(table, rows)
        pairs: Flags = (groups[:, None] == groups) & free[:, None] & free
        return pairs

    def get_batch_size(self, table: EmbeddingTable) -> int:  # noqa: D102
        return MAX_POSITIONS

    def draw(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Ids:  # noqa: D102
        columns, scores = self._find_lists(table, rows)
        place = choose_weighted(draws, compute_weights(scores, parameter))
        return np.where(self._mark_fixed(table, rows), rows, columns[np.arange(len(rows)), place])

    def log_probs(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:  # noqa: D102
        columns, scores = self._find_lists(table, rows)
        candidate_weights = compute_weights(scores, parameter).astype(np.float64)
        total = candidate_weights.sum(axis=1)
        logs = np.full((len(rows), len(table)), -np.inf)
        line, column = np.nonzero(candidate_weights)
        logs[line, columns[line, column]] = np.log(candidate_weights[line, column] / total[line])
        is_fixed = self._mark_fixed(table, rows)
        logs[is_fixed] = -np.inf
        logs[is_fixed, rows[is_fixed]] = 0
        return logs

    def _mark_fixed(self, table: EmbeddingTable, rows: Ids) -> Flags:
        return _find_stopwords(table)[rows] if self.keep_stopwords else np.zeros(len(rows), bool)

    def _find_lists(self, table: EmbeddingTable, rows: Ids) -> tuple[Ids, Values]:
        """Returns the candidates [m, k] and their scores.

        For missing candidates -1, with minus infinity as score.
        """
        if self.disjoint:
            groups = _build_groups(table, self.k)
            return groups.members[groups.home[rows]], groups.scores[rows]
        k = min(self.k, len(table))
        columns = table.neighbours(rows, k)
        if len(table) * k > MAX_CACHED_NEIGHBOURS:
            distinct, first, which = np.unique(rows, return_index=True, return_inverse=True)
            return columns, _scale(_compute_distances(table, distinct, columns[first]))[which]
        score_cache = _allocate_scores(table, k)
        is_missing = np.isnan(score_cache[rows]).any(axis=1)
        missing, first = np.unique(rows[is_missing], return_index=True)
        # what two threads write is the same
        score_cache[missing] = _scale(
            _compute_distances(table, missing, columns[is_missing][first])
        )
        return columns, score_cache[rows]


def compute_weights(scores: Values, nominal: Values) -> Ints:
    """Returns ceil(2^50 exp(-nominal (1 - score) / 2)), int64 [m, K].

    0 where there is no candidate.
    """
    with np.errstate(invalid="ignore"):
        exponent = np.maximum(-nominal[:, None] / 2 * (1 - scores), -EXPONENT_CAP)
    return np.where(np.isfinite(scores), np.ceil(WEIGHT_SCALE * np.exp(exponent)), 0).astype(
        np.int64
    )


@lru_cache(maxsize=4)
def _allocate_scores(table: EmbeddingTable, k: int) -> Values:
    """Allocates the cache of scores [V, k] of the k nearest words.

    It is filled on request; NaN before.
    """
    return np.full((len(table), k), np.nan)


NO_MEMBER = np.iinfo(np.uint16).max
"""Padding of stored groups, behind their end."""


class Groups:
    """Disjoint groups of K words that cover a table.

    The last may be smaller.

    Attributes:
        home: int64 [V], the group of each word.
        members: int64 [G, K], -1 behind the end.
        scores: float64 [V, K], of each word for the members of its group; minus infinity for none.
    """

    def __init__(self, table: EmbeddingTable, k: int) -> None:
        stored_members = _read_stored(table, k)
        self.members = partition(table, k) if stored_members is None else stored_members
        number, place = np.nonzero(self.members >= 0)
        rows = self.members[number, place]
        self.home = np.empty(len(table), np.int64)
        self.scores = np.empty((len(table), k))
        self.home[rows], self.scores[rows] = (
            number,
            _scale(table.pairs.compute_group_distances(self.members)[number, place]),
        )


@lru_cache(maxsize=4)
def _build_groups(table: EmbeddingTable, k: int) -> Groups:
    return Groups(table, k)


def _read_stored(table: EmbeddingTable, k: int) -> Ids | None:
    """Reads the groups [G, K] of a package's table, or None."""
    if not is_shipped(table):
        return None
    source = files("textveil").joinpath("data", "constants", "groups.npz")
    with source.open("rb") as file, np.load(file) as archive:
        name = f"{table.name}-{table.metric}-{k}"
        if name not in archive:
            return None
        members: Ids = archive[name].astype(np.int64)
    members[members == NO_MEMBER] = -1
    # A row that is missing, or in two groups, would break the promise inside groups.
    groups = -(-len(table) // k)
    every = np.maximum(np.arange(groups * k) - (groups * k - len(table)), -1)
    if members.shape != (groups, k) or (np.sort(members, axis=None) != every).any():
        raise TableError(
            f"the stored groups of {table.name} must hold each of its rows once; reinstall textveil"
        )
    return members


def partition(table: EmbeddingTable, k: int) -> Ids:
    """Partitions a table into groups [G, K] of near words.

    Each is the first word without a group, with its nearest such words; -1 behind the end.
    """
    home = np.full(len(table), -1)
    members = np.full((-(-len(table) // k), k), -1)
    vectors = table.take(slice(None))
    squares = np.einsum("ij,ij->i", vectors, vectors)
    number, position = 0, 0
    open_rows = np.arange(len(table))
    while number < len(members):
        open_rows = open_rows[home[open_rows] < 0]
        seeds = [
            row
            for row in range(position, min(position + 4 * SEEDS_AT_ONCE, len(table)))
            if home[row] < 0
        ][:SEEDS_AT_ONCE]
        if not seeds:
            position += 4 * SEEDS_AT_ONCE
            continue
        # without a constant of the seed
        near = squares[open_rows] - 2 * (vectors[seeds] @ vectors[open_rows].T)
        for seed, line in zip(seeds, near, strict=True):
            # The group of an earlier seed of this batch has taken it.
            if home[seed] >= 0:
                continue
            free = np.flatnonzero(home[open_rows] < 0)
            size = min(k, len(free))
            distances = line[free]
            # Rounding, or an equal vector, must not push the seed out of its own group.
            distances[open_rows[free] == seed] = -np.inf
            best = free[np.argpartition(distances, size - 1)[:size]]
            members[number, :size] = open_rows[best[np.argsort(line[best], kind="stable")]]
            home[open_rows[best]] = number
            number += 1
    return members


def _compute_distances(table: EmbeddingTable, rows: Ids, columns: Ids) -> Values:
    """Computes distances of rows [m] to some others [m, K].

    Infinite to -1.
    """
    line, column = np.nonzero(columns >= 0)
    gaps = np.full(columns.shape, np.inf)
    gaps[line, column] = table.pairs.compute_distances(rows[line], columns[line, column])
    return gaps


def _scale(distances: Values) -> Values:
    """Scales distances to scores from 1 (smallest) to 0 (largest).

    The ends are those of a list; minus infinity for an infinite distance.
    """
    is_finite = np.isfinite(distances)
    low = distances.min(axis=1, keepdims=True)
    width = np.where(is_finite, distances, -np.inf).max(axis=1, keepdims=True) - low
    scaled: Values = np.where(
        is_finite, 1 - (distances - low) / np.where(width > 0, width, 1), -np.inf
    )
    return scaled


@lru_cache(maxsize=64)
def _compute_group_loss(table: EmbeddingTable, lists: NearestLists, nominal: float) -> float:
    groups = _build_groups(table, lists.k)
    masses = compute_weights(groups.scores, np.full(len(table), nominal)).astype(np.float64)
    with np.errstate(divide="ignore"):
        law = np.log(masses) - np.log(masses.sum(axis=1, keepdims=True))  # [V, K]
    free = ~lists._mark_fixed(table, np.arange(len(table)))
    law, home = law[free], groups.home[free]
    high, low = (np.full(groups.members.shape, end) for end in (-np.inf, np.inf))
    np.maximum.at(high, home, law)
    np.minimum.at(low, home, law)
    with np.errstate(invalid="ignore"):
        gaps = high - low
    return float(np.where(np.isfinite(gaps), gaps, 0.0).max(initial=0.0))


@lru_cache(maxsize=8)
def _find_stopwords(table: EmbeddingTable) -> Flags:
    words = get_stopwords()
    return np.fromiter((word.lower() in words for word in table.words), bool, len(table))


# ---- the words within a random radius ------------------------------------------------------------


@make_options()
class Ball:
    """The words nearer than a random radius, by weight.

    The weight is exp(nominal score / 2), the score 1 - d / radius. The radius is the length of
    Laplace noise, whose scale does not depend on the word, and on the nominal epsilon only below 2.
    It is drawn and compared in floating point, as nothing is promised; a word inside it is drawn by
    whole numbers.

    Args:
        nominal: the paper's epsilon for all words; without it, epsilon is.

    Source: InferDPT, RANTEXT; the scale of the noise is that of its public code.
    """

    nominal: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @property
    def reason(self) -> str:  # noqa: D102
        return (
            "a word is released only for words within a radius that is about the same for "
            "all, so it rules other words out"
        )

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.nominal

    def get_restricted(self, table: EmbeddingTable) -> Restricted | None:  # noqa: D102
        return None

    def compute_restricted_epsilon(self, table: EmbeddingTable, parameter: Values) -> Values:  # noqa: D102
        return np.full(len(parameter), np.inf)

    def mark_restricted_pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:  # noqa: D102
        return np.zeros((len(rows), len(rows)), bool)

    def get_batch_size(self, table: EmbeddingTable) -> int:  # noqa: D102
        return max(1, MAX_CANDIDATE_CELLS // max(len(table), table.dimension))

    def draw(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Ids:  # noqa: D102
        noise = draws.laplace(table.dimension)
        noise *= compute_noise_scales(table, parameter)
        radius = np.linalg.norm(noise, axis=1, keepdims=True)
        distances = table.distances(rows)
        scores = np.where(distances < radius, 1 - distances / radius, -np.inf)
        return choose_weighted(draws, compute_weights(scores, parameter))

    def log_probs(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:
        """Estimates the law by quadrature over the radius.

        Numerical, and minus infinity beyond radii of probability 1e-12. A word whose distance lies
        within a part of the radii is a candidate for the share of them that is longer.
        """
        law = np.zeros((len(rows), len(table)))
        distances = table.distances(rows)
        for value in np.unique(parameter):
            lines = np.flatnonzero(parameter == value)
            line_distances = distances[lines]
            radii, masses, ends = _compute_parts(table, float(value))
            for radius, mass, low, high in zip(radii, masses, ends[:-1], ends[1:], strict=True):
                candidate_weights = np.exp(
                    np.maximum(-value / 2 * line_distances / radius, -EXPONENT_CAP)
                )
                candidate_weights *= ((high - line_distances) / (high - low)).clip(0, 1)
                law[lines] += (
                    mass / candidate_weights.sum(axis=1, keepdims=True) * candidate_weights
                )
        with np.errstate(divide="ignore"):
            return np.log(law)


def compute_noise_scales(table: EmbeddingTable, nominal: Values) -> Values:
    """Returns the scale of the Laplace noise on each coordinate, [m, d].

    It is the coordinate's range divided by the public code's function of epsilon (9.31 + 0.0166
    ln(19.06 epsilon - 38.13) from 2 on).
    """
    divisor = np.where(nominal < 2, nominal, 9.311083811697406)
    argument = 19.064721649556482 * nominal - 38.1294334077209
    large = argument > 0
    divisor[large] += 0.01658160142016071 * np.log(argument[large])
    scales: Values = _compute_ranges(table) / divisor[:, None]
    return scales


@lru_cache(maxsize=32)
def _compute_parts(table: EmbeddingTable, nominal: float) -> tuple[Values, Values, Values]:
    """Computes radii, their probabilities and the ends of their parts.

    Seconds of work for hundreds of coordinates.
    """
    return compute_length_law(compute_noise_scales(table, np.array([nominal]))[0])


@lru_cache(maxsize=8)
def _compute_ranges(table: EmbeddingTable) -> Values:
    """Computes the range of each coordinate, [d]."""
    low = np.min([part.min(axis=0) for part in table.yield_slabs()], axis=0)
    high = np.max([part.max(axis=0) for part in table.yield_slabs()], axis=0)
    return np.asarray((high - low).astype(np.float64))


# ---- the words of a sensitive list ---------------------------------------------------------------


@make_options()
class SensitiveList:
    """The rarest words, drawn by the exponential rule.

    Any other word stays with probability 1 - p.

    Args:
        share: the share of the table's words that are sensitive: those that are rarest in public
            text.
        p: the probability with which a word that is not sensitive is replaced by a sensitive one.
        rule: draws among the sensitive words.

    Source: SanText+, section 4.2.
    """

    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    p: Annotated[float, Field(gt=0, lt=1)] = 0.2
    rule: Exponential

    @property
    def reason(self) -> str:  # noqa: D102
        return (
            "a word that is not on the sensitive list is released unchanged with probability "
            f"{1 - self.p:g}"
        )

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.rule.c

    def get_restricted(self, table: EmbeddingTable) -> Restricted | None:  # noqa: D102
        return Restricted(
            domain="two words of the sensitive list",
            kind="metric",
            metric=table.metric,
            diameter=table.diameter,
            additive=self.rule.rounding,
        )

    def compute_restricted_epsilon(self, table: EmbeddingTable, parameter: Values) -> Values:
        """Returns 2c as the bound.

        The sharper constant of the whole table need not hold for a part of its candidates.
        """
        return 2 * parameter * table.lipschitz

    def mark_restricted_pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:  # noqa: D102
        is_sensitive = self._mark_sensitive(table)[rows]
        return np.asarray(is_sensitive[:, None] & is_sensitive)

    def get_batch_size(self, table: EmbeddingTable) -> int:  # noqa: D102
        return MAX_POSITIONS

    def draw(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Ids:  # noqa: D102
        is_sensitive = self._mark_sensitive(table)
        replacements = self.rule.draw(draws, table, rows, parameter, among=is_sensitive)
        is_unchanged = ~is_sensitive[rows] & (
            draws.integers(np.full(len(rows), COIN_RANGE)) >= self._threshold
        )
        return np.where(is_unchanged, rows, replacements)

    def log_probs(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:  # noqa: D102
        is_sensitive = self._mark_sensitive(table)
        candidate_weights = self.rule.compute_weights(table.distances(rows), parameter).astype(
            np.float64
        )
        candidate_weights[:, ~is_sensitive] = 0
        candidate_weights /= candidate_weights.sum(axis=1, keepdims=True)
        free = np.flatnonzero(~is_sensitive[rows])
        replacement_rate = self._threshold / COIN_RANGE
        candidate_weights[free] *= replacement_rate
        candidate_weights[free, rows[free]] = 1 - replacement_rate
        with np.errstate(divide="ignore"):
            return np.log(candidate_weights)

    @property
    def _threshold(self) -> int:
        # A whole number, so that the coin has exactly the law that `log_probs` writes down.
        return round(self.p * COIN_RANGE)

    def _mark_sensitive(self, table: EmbeddingTable) -> Flags:
        return _find_rare(table.root, self.share)


@lru_cache(maxsize=8)
def _find_rare(table: EmbeddingTable, share: float) -> Flags:
    """Finds the rarest words of a table in public text, bool [V].

    At least one.
    """
    rare = np.zeros(len(table), bool)
    rare[np.argsort(compute_shares(table), kind="stable")[: max(1, round(share * len(table)))]] = (
        True
    )
    return rare


# ---- the mechanism -------------------------------------------------------------------------------


@make_options()
class Confined:
    """Draws from candidates that depend on the word.

    Args:
        name: its name in statements.
        candidates: the candidates and their probabilities.
        caveats: part of every statement.
    """

    name: str
    candidates: NearestLists | Ball | SensitiveList
    caveats: tuple[str, ...] = ()

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns no claim for all words, and perhaps a restricted one.

        The restricted claim depends on the candidates.
        """
        if table.holds_pieces and isinstance(self.candidates, SensitiveList):
            raise ConfigError(
                f"a sensitive list needs words.unit=word: {table.name} holds word pieces"
            )
        return Claim(
            mechanism=self.name,
            options=dump_options(self),
            kind="none",
            metric=table.metric,
            table=table.root.name,
            view=table.axes_note,
            parameter="c" if isinstance(self.candidates, SensitiveList) else "nominal",
            reason=self.candidates.reason,
            restricted=self.candidates.get_restricted(table),
            caveats=self.caveats,
            alone=True,
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Returns epsilon as the nominal epsilon; c is half of it."""
        return epsilon / 2 if isinstance(self.candidates, SensitiveList) else epsilon

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns the parameter of every position, where it was set by name."""
        setting = self.candidates.setting
        return None if setting is None else np.full(len(layout.positions), setting)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns infinity: nothing bounds the loss."""
        return np.full(len(parameter), np.inf)

    def compute_restricted_epsilon(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> Values:
        """Returns the epsilon [n] of the restricted statement."""
        return self.candidates.compute_restricted_epsilon(table, parameter)

    def mark_restricted_pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:
        """Says between which rows the restricted statement holds, [m, m]."""
        return self.candidates.mark_restricted_pairs(table, rows)

    def build_paper_claim(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> tuple[Claim, Values] | None:
        """Returns the paper's claim and its epsilon.

        CusText and InferDPT claim local DP with their nominal epsilon; SanText+ claims nothing for
        all words.
        """
        if isinstance(self.candidates, SensitiveList):
            return None
        return Claim(mechanism=self.name, kind="ldp", table=table.root.name), parameter

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Draws the released rows [n]."""
        secret = block.secret
        released = np.empty(len(secret), np.int64)
        for chunk, draws in rng.open(block.layout.sizes).split_rows(
            self.candidates.get_batch_size(table)
        ):
            released[chunk] = self.candidates.draw(draws, table, secret[chunk], parameter[chunk])
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values | None:
        """Returns ln Pr[row y] of every protected position, [n, V]."""
        return self.candidates.log_probs(table, block.secret, parameter)
