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

from textveil.config import options, plain
from textveil.errors import ConfigError, TableError
from textveil.guarantee import Claim, Restricted
from textveil.mechanism.block import Block, Layout
from textveil.mechanism.radius import lengths
from textveil.mechanism.rule import EXPONENT_CAP, SCALE, Exponential
from textveil.randomness import Draws, Flags, Ids, Ints, Randomness, Values, weighted_choice
from textveil.table import LISTED, EmbeddingTable, shares, ships
from textveil.text import stopwords

CELLS = 1 << 22
MANY = 1 << 16
"""Positions drawn at once from short lists."""

SEEDS = 64
"""Groups searched at once."""

COIN = 1 << 53


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

    def restricted(self, table: EmbeddingTable) -> Restricted | None:
        """Returns the pairs for which a bound holds."""
        ...

    def within(self, table: EmbeddingTable, parameter: Values) -> Values:
        """Returns the epsilon [m] of these pairs; infinite without any."""
        ...

    def pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:
        """Says whether each two rows are such a pair, [m, m]."""
        ...

    def limit(self, table: EmbeddingTable) -> int:
        """Returns the largest number of positions drawn at once."""
        ...

    def draw(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Ids:
        """Draws one candidate for each private row, int64 [m]."""
        ...

    def log_probs(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:
        """Returns ln P(candidate | row) [m, V]."""
        ...


# ---- lists of K words ----------------------------------------------------------------------------


@options()
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
            return "an output shows which group its word is of" + self._kept
        return (
            "every word has candidates of its own, so an output rules out all words that have it not"
            + self._kept
        )

    @property
    def _kept(self) -> str:
        return "; stop words come out as they are" if self.keep_stopwords else ""

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.nominal

    def restricted(self, table: EmbeddingTable) -> Restricted | None:  # noqa: D102
        if not self.disjoint:
            return None
        return Restricted(domain=f"two words of one group of {self.k}{self._but}", kind="ldp")

    @property
    def _but(self) -> str:
        return " that are no stop words" if self.keep_stopwords else ""

    def within(self, table: EmbeddingTable, parameter: Values) -> Values:
        """Computes the exact loss inside the groups of the table."""
        if not self.disjoint:
            return np.full(len(parameter), np.inf)
        distinct, which = np.unique(parameter, return_inverse=True)
        return np.array([_bound_inside_groups(table, self, float(each)) for each in distinct])[
            which
        ]

    def pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:  # noqa: D102
        if not self.disjoint:
            return np.zeros((len(rows), len(rows)), bool)
        own = _groups(table, self.k).home[rows]
        free = ~self._fixed(table, rows)
        pairs: Flags = (own[:, None] == own) & free[:, None] & free
        return pairs

    def limit(self, table: EmbeddingTable) -> int:  # noqa: D102
        return MANY

    def draw(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Ids:  # noqa: D102
        columns, scores = self._lists(table, rows)
        place = weighted_choice(draws, weights(scores, parameter))
        return np.where(self._fixed(table, rows), rows, columns[np.arange(len(rows)), place])

    def log_probs(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:  # noqa: D102
        columns, scores = self._lists(table, rows)
        own = weights(scores, parameter).astype(np.float64)
        total = own.sum(axis=1)
        logs = np.full((len(rows), len(table)), -np.inf)
        line, column = np.nonzero(own)
        logs[line, columns[line, column]] = np.log(own[line, column] / total[line])
        fixed = self._fixed(table, rows)
        logs[fixed] = -np.inf
        logs[fixed, rows[fixed]] = 0
        return logs

    def _fixed(self, table: EmbeddingTable, rows: Ids) -> Flags:
        return _find_stopwords(table)[rows] if self.keep_stopwords else np.zeros(len(rows), bool)

    def _lists(self, table: EmbeddingTable, rows: Ids) -> tuple[Ids, Values]:
        """Returns the candidates [m, k] and their scores.

        For missing candidates -1, with minus infinity as score.
        """
        if self.disjoint:
            groups = _groups(table, self.k)
            return groups.members[groups.home[rows]], groups.scores[rows]
        k = min(self.k, len(table))
        columns = table.neighbours(rows, k)
        if len(table) * k > LISTED:
            distinct, first, which = np.unique(rows, return_index=True, return_inverse=True)
            return columns, _scale(_compute_distances(table, distinct, columns[first]))[which]
        cached = _allocate_scores(table, k)
        new = np.isnan(cached[rows]).any(axis=1)
        missing, first = np.unique(rows[new], return_index=True)
        # what two threads write is the same
        cached[missing] = _scale(_compute_distances(table, missing, columns[new][first]))
        return columns, cached[rows]


def weights(scores: Values, nominal: Values) -> Ints:
    """Returns ceil(2^50 exp(-nominal (1 - score) / 2)), int64 [m, K].

    0 where there is no candidate.
    """
    with np.errstate(invalid="ignore"):
        exponent = np.maximum(-nominal[:, None] / 2 * (1 - scores), -EXPONENT_CAP)
    return np.where(np.isfinite(scores), np.ceil(SCALE * np.exp(exponent)), 0).astype(np.int64)


@lru_cache(maxsize=4)
def _allocate_scores(table: EmbeddingTable, k: int) -> Values:
    """Allocates the cache of scores [V, k] of the k nearest words.

    It is filled on request; NaN before.
    """
    return np.full((len(table), k), np.nan)


NOBODY = np.iinfo(np.uint16).max
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
        found = _read_stored(table, k)
        self.members = partition(table, k) if found is None else found
        number, place = np.nonzero(self.members >= 0)
        own = self.members[number, place]
        self.home = np.empty(len(table), np.int64)
        self.scores = np.empty((len(table), k))
        self.home[own], self.scores[own] = (
            number,
            _scale(table.pairs.inside(self.members)[number, place]),
        )


@lru_cache(maxsize=4)
def _groups(table: EmbeddingTable, k: int) -> Groups:
    return Groups(table, k)


def _read_stored(table: EmbeddingTable, k: int) -> Ids | None:
    """Reads the groups [G, K] of a package's table, or None."""
    if not ships(table):
        return None
    source = files("textveil").joinpath("data", "constants", "groups.npz")
    with source.open("rb") as file, np.load(file) as archive:
        name = f"{table.name}-{table.metric}-{k}"
        if name not in archive:
            return None
        members: Ids = archive[name].astype(np.int64)
    members[members == NOBODY] = -1
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
    left = np.arange(len(table))
    while number < len(members):
        left = left[home[left] < 0]
        seeds = [
            row for row in range(position, min(position + 4 * SEEDS, len(table))) if home[row] < 0
        ][:SEEDS]
        if not seeds:
            position += 4 * SEEDS
            continue
        # without a constant of the seed
        near = squares[left] - 2 * (vectors[seeds] @ vectors[left].T)
        for seed, line in zip(seeds, near, strict=True):
            if home[seed] >= 0:
                continue
            free = np.flatnonzero(home[left] < 0)
            wanted = min(k, len(free))
            own = line[free]
            own[left[free] == seed] = -np.inf
            best = free[np.argpartition(own, wanted - 1)[:wanted]]
            members[number, :wanted] = left[best[np.argsort(line[best], kind="stable")]]
            home[left[best]] = number
            number += 1
    return members


def _compute_distances(table: EmbeddingTable, rows: Ids, columns: Ids) -> Values:
    """Computes distances of rows [m] to some others [m, K].

    Infinite to -1.
    """
    line, column = np.nonzero(columns >= 0)
    gaps = np.full(columns.shape, np.inf)
    gaps[line, column] = table.pairs.distances(rows[line], columns[line, column])
    return gaps


def _scale(distances: Values) -> Values:
    """Scales distances to scores from 1 (smallest) to 0 (largest).

    The ends are those of a list; minus infinity for an infinite distance.
    """
    there = np.isfinite(distances)
    low = distances.min(axis=1, keepdims=True)
    width = np.where(there, distances, -np.inf).max(axis=1, keepdims=True) - low
    scaled: Values = np.where(there, 1 - (distances - low) / np.where(width > 0, width, 1), -np.inf)
    return scaled


@lru_cache(maxsize=64)
def _bound_inside_groups(table: EmbeddingTable, lists: NearestLists, nominal: float) -> float:
    groups = _groups(table, lists.k)
    masses = weights(groups.scores, np.full(len(table), nominal)).astype(np.float64)
    with np.errstate(divide="ignore"):
        law = np.log(masses) - np.log(masses.sum(axis=1, keepdims=True))  # [V, K]
    free = ~lists._fixed(table, np.arange(len(table)))
    law, home = law[free], groups.home[free]
    high, low = (np.full(groups.members.shape, end) for end in (-np.inf, np.inf))
    np.maximum.at(high, home, law)
    np.minimum.at(low, home, law)
    with np.errstate(invalid="ignore"):
        gaps = high - low
    return float(np.where(np.isfinite(gaps), gaps, 0.0).max(initial=0.0))


@lru_cache(maxsize=8)
def _find_stopwords(table: EmbeddingTable) -> Flags:
    listed = stopwords()
    return np.fromiter((word.lower() in listed for word in table.words), bool, len(table))


# ---- the words within a random radius ------------------------------------------------------------


@options()
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
        return "a word comes out only for words within a radius that is about the same for all, so it rules others out"

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.nominal

    def restricted(self, table: EmbeddingTable) -> Restricted | None:  # noqa: D102
        return None

    def within(self, table: EmbeddingTable, parameter: Values) -> Values:  # noqa: D102
        return np.full(len(parameter), np.inf)

    def pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:  # noqa: D102
        return np.zeros((len(rows), len(rows)), bool)

    def limit(self, table: EmbeddingTable) -> int:  # noqa: D102
        return max(1, CELLS // max(len(table), table.dimension))

    def draw(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Ids:  # noqa: D102
        noise = draws.laplace(table.dimension)
        noise *= spread(table, parameter)
        radius = np.linalg.norm(noise, axis=1, keepdims=True)
        distances = table.distances(rows)
        scores = np.where(distances < radius, 1 - distances / radius, -np.inf)
        return weighted_choice(draws, weights(scores, parameter))

    def log_probs(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:
        """Estimates the law by quadrature over the radius.

        Numerical, and minus infinity beyond radii of probability 1e-12. A word whose distance lies
        within a part of the radii is a candidate for the share of them that is longer.
        """
        law = np.zeros((len(rows), len(table)))
        distances = table.distances(rows)
        for value in np.unique(parameter):
            some = np.flatnonzero(parameter == value)
            away = distances[some]
            radii, masses, ends = _compute_parts(table, float(value))
            for radius, mass, low, high in zip(radii, masses, ends[:-1], ends[1:], strict=True):
                own = np.exp(np.maximum(-value / 2 * away / radius, -EXPONENT_CAP))
                own *= ((high - away) / (high - low)).clip(0, 1)
                law[some] += mass / own.sum(axis=1, keepdims=True) * own
        with np.errstate(divide="ignore"):
            return np.log(law)


def spread(table: EmbeddingTable, nominal: Values) -> Values:
    """Returns the scale of the Laplace noise on each coordinate, [m, d].

    It is the coordinate's range divided by the public code's function of epsilon (9.31 + 0.0166
    ln(19.06 epsilon - 38.13) from 2 on).
    """
    shrunk = np.where(nominal < 2, nominal, 9.311083811697406)
    argument = 19.064721649556482 * nominal - 38.1294334077209
    large = argument > 0
    shrunk[large] += 0.01658160142016071 * np.log(argument[large])
    scales: Values = _compute_ranges(table) / shrunk[:, None]
    return scales


@lru_cache(maxsize=32)
def _compute_parts(table: EmbeddingTable, nominal: float) -> tuple[Values, Values, Values]:
    """Computes radii, their probabilities and the ends of their parts.

    Seconds of work for hundreds of coordinates.
    """
    return lengths(spread(table, np.array([nominal]))[0])


@lru_cache(maxsize=8)
def _compute_ranges(table: EmbeddingTable) -> Values:
    """Computes the range of each coordinate, [d]."""
    low = np.min([part.min(axis=0) for part in table.slabs()], axis=0)
    high = np.max([part.max(axis=0) for part in table.slabs()], axis=0)
    return np.asarray((high - low).astype(np.float64))


# ---- the words of a sensitive list ---------------------------------------------------------------


@options()
class Sensitive:
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
        return f"a word that is not on the sensitive list comes out as it is with probability {1 - self.p:g}"

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.rule.c

    def restricted(self, table: EmbeddingTable) -> Restricted | None:  # noqa: D102
        return Restricted(
            domain="two words of the sensitive list",
            kind="metric",
            metric=table.metric,
            diameter=table.diameter,
            additive=self.rule.rounding,
        )

    def within(self, table: EmbeddingTable, parameter: Values) -> Values:
        """Returns 2c as the bound.

        The sharper constant of the whole table need not hold for a part of its candidates.
        """
        return 2 * parameter * table.lipschitz

    def pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:  # noqa: D102
        listed = self._listed(table)[rows]
        return np.asarray(listed[:, None] & listed)

    def limit(self, table: EmbeddingTable) -> int:  # noqa: D102
        return MANY

    def draw(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Ids:  # noqa: D102
        listed = self._listed(table)
        drawn = self.rule.draw(draws, table, rows, parameter, among=listed)
        stays = ~listed[rows] & (draws.integers(np.full(len(rows), COIN)) >= self._threshold)
        return np.where(stays, rows, drawn)

    def log_probs(self, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:  # noqa: D102
        listed = self._listed(table)
        own = self.rule.weights(table.distances(rows), parameter).astype(np.float64)
        own[:, ~listed] = 0
        own /= own.sum(axis=1, keepdims=True)
        free = np.flatnonzero(~listed[rows])
        replaced = self._threshold / COIN
        own[free] *= replaced
        own[free, rows[free]] = 1 - replaced
        with np.errstate(divide="ignore"):
            return np.log(own)

    @property
    def _threshold(self) -> int:
        return round(self.p * COIN)

    def _listed(self, table: EmbeddingTable) -> Flags:
        return _find_rare(table.root, self.share)


@lru_cache(maxsize=8)
def _find_rare(table: EmbeddingTable, share: float) -> Flags:
    """Finds the rarest words of a table in public text, bool [V].

    At least one.
    """
    rare = np.zeros(len(table), bool)
    rare[np.argsort(shares(table), kind="stable")[: max(1, round(share * len(table)))]] = True
    return rare


# ---- the mechanism -------------------------------------------------------------------------------


@options()
class Confined:
    """Draws from candidates that depend on the word.

    Args:
        name: its name in statements.
        candidates: the candidates and their probabilities.
        caveats: part of every statement.
    """

    name: str
    candidates: NearestLists | Ball | Sensitive
    caveats: tuple[str, ...] = ()

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns no claim for all words, and perhaps a restricted one.

        The restricted claim depends on the candidates.
        """
        if table.holds_pieces and isinstance(self.candidates, Sensitive):
            raise ConfigError(
                f"a sensitive list needs words.unit=word: {table.name} holds word pieces"
            )
        return Claim(
            mechanism=self.name,
            options=plain(self),
            kind="none",
            metric=table.metric,
            table=table.root.name,
            view=table.seen,
            parameter="c" if isinstance(self.candidates, Sensitive) else "nominal",
            reason=self.candidates.reason,
            restricted=self.candidates.restricted(table),
            caveats=self.caveats,
            alone=True,
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Returns epsilon as the nominal epsilon; c is half of it."""
        return epsilon / 2 if isinstance(self.candidates, Sensitive) else epsilon

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns the parameter of every position, where it was set by name."""
        given = self.candidates.setting
        return None if given is None else np.full(len(layout.positions), given)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns infinity: nothing bounds the loss."""
        return np.full(len(parameter), np.inf)

    def within(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns the epsilon [n] of the restricted statement."""
        return self.candidates.within(table, parameter)

    def pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:
        """Says between which rows the restricted statement holds, [m, m]."""
        return self.candidates.pairs(table, rows)

    def published(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> tuple[Claim, Values] | None:
        """Returns the paper's claim and its epsilon.

        CusText and InferDPT claim local DP with their nominal epsilon; SanText+ claims nothing for
        all words.
        """
        if isinstance(self.candidates, Sensitive):
            return None
        return Claim(mechanism=self.name, kind="ldp", table=table.root.name), parameter

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Draws the released rows [n]."""
        secret = block.secret
        released = np.empty(len(secret), np.int64)
        for chunk, draws in rng.open(block.layout.sizes).chunks(self.candidates.limit(table)):
            released[chunk] = self.candidates.draw(draws, table, secret[chunk], parameter[chunk])
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values | None:
        """Returns ln Pr[row y] of every protected position, [n, V]."""
        return self.candidates.log_probs(table, block.secret, parameter)
