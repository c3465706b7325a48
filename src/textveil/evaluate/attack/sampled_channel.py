"""The channel of mechanisms that only draw, estimated from draws of single words.

In: a mechanism, released rows, and the private rows to draw for. Out: ln P(released row | private
row), estimated.
Not here: mechanisms whose law or density of noise is known (`channel`).

Nothing is assumed of the mechanism. Pairs that were drawn count themselves; for all others the
draws are pooled by how near the two rows are, and the draws say how much the pool is worth.
"""

import numpy as np
from numpy.typing import NDArray

from textveil.evaluate.attack.attack_contract import ProgressCallback
from textveil.mechanism import Block, Layout, Mechanism
from textveil.randomness import Floats, Ids, Randomness, Values
from textveil.table import EmbeddingTable

WORDS_AT_ONCE = 4096
"""Words that are handed to the mechanism at once, each a text by itself."""

DISTANCES_AT_ONCE = 64
"""Released rows whose distances to all rows are held at once: 11 MB for 21,719 rows."""

RANKS = (1, 2, 4, 8, 16, 32, 64, 128)
"""The ranks among a row's neighbours at which bands end."""

MAX_RANKED_ROWS = 1 << 15
"""The largest table whose rows are ranked.

20,000 rows take some 10 seconds of a core, and the time grows by the square.
"""

ROUNDING = 1 + 1e-6
"""Widens distances, so that equal ones are not told apart."""

FITTING_STEPS = 20
"""How often the shares of rows and of distances are fitted to each other in turn."""

HALF_HIT = 0.5
"""Added to all counts of rows and bands (Jeffreys' prior)."""

POOL_SIZES = 2.0 ** np.arange(-4, 17)
"""The tried worths of the pool, in draws of a word."""


def estimate_by_drawing(
    mechanism: Mechanism,
    table: EmbeddingTable,
    rows: Ids,
    parameter: float,
    centres: Ids,
    *,
    rng: Randomness,
    report: ProgressCallback,
) -> Floats:
    """Estimates ln P(row | x) of released rows from draws for other rows.

    float32 [m, V], finite. The count c of a pair (x, y) in n draws for x is Poisson with a mean of
    n P(y | x), and P(y | x) has a Gamma law before, of mean b and worth of a draws. Its mean after
    is (c + a b) / (n + a). b is the product of a share of the released row y and one of the
    distance of x and y (equal rows, and distances by powers of two of their rank), fitted to all
    counts; a makes all counts most likely.

    Source: Clayton and Kaldor, "Empirical Bayes estimates of age-standardized relative risks",
    Biometrics 1987.

    Args:
        mechanism: anything that draws.
        table: its V rows are what can be private.
        rows: distinct released rows [m], rising.
        parameter: the mechanism's own.
        centres: the rows to draw for, one draw each [D].
        rng: for the draws.
        report: callback for progress.
    """
    draws = np.bincount(centres, minlength=len(table)).astype(np.float64)
    counts = _count_draws(mechanism, table, rows, parameter, centres, rng, report)
    pairs = np.flatnonzero(counts)
    hits = counts.ravel()[pairs].astype(np.int64)
    band = _number_bands(table, rows, report)
    line, column = np.divmod(pairs, len(table))
    row_share, band_share = _fit_shares(band, draws, line, band[line, column], hits)
    size = _find_pool_size(
        row_share[line] * band_share[band[line, column]],
        hits,
        draws[column],
        sum(share * band_share[bands] for share, bands in zip(row_share, band, strict=True)),
        draws,
    )
    for i, share in enumerate(row_share):  # a line at a time, in place
        mean = (counts[i] + size * share * band_share[band[i]]) / (draws + size)
        counts[i] = np.log(mean)
    return counts


def _count_draws(
    mechanism: Mechanism,
    table: EmbeddingTable,
    rows: Ids,
    parameter: float,
    centres: Ids,
    rng: Randomness,
    report: ProgressCallback,
) -> Floats:
    """Counts how often each private row became each released row, [m, V]."""
    line_of = np.full(len(table) + 1, -1)  # the last is that of a placeholder
    line_of[rows] = np.arange(len(rows))
    counts = np.zeros((len(rows), len(table)), np.float32)
    for start in range(0, len(centres), WORDS_AT_ONCE):
        report("draws", start, len(centres))
        private = centres[start : start + WORDS_AT_ONCE]
        block = Block(layout=Layout.build(*np.ones_like(private).tolist()), rows=private)
        released = mechanism.privatize(table, block, np.full(len(private), parameter), rng=rng)
        line = line_of[released]
        np.add.at(counts, (line[line >= 0], private[line >= 0]), 1)
    return counts


def _number_bands(table: EmbeddingTable, rows: Ids, report: ProgressCallback) -> NDArray[np.uint8]:
    """Numbers the band of each pair of a released and a private row, uint8 [m, V].

    0 is the row itself. A band has one range of distances, whose ends 1, 2, 4, ... rows are within
    on average, and one of the released row's rank among the neighbours of the private one.
    """
    shares = 2.0 ** np.arange(int(np.log2(len(table))) + 1) / len(table)
    report("neighbours", 0, len(table))
    limits = _measure_ranks(table)
    edges: Values | None = None
    band = np.empty((len(rows), len(table)), np.uint8)
    for start in range(0, len(rows), DISTANCES_AT_ONCE):
        report("distances", start, len(rows))
        part = rows[start : start + DISTANCES_AT_ONCE]
        distances = table.distances(part)
        if edges is None:
            edges = np.quantile(distances[np.arange(len(table)) != part[:, None]], shares)
        numbers = np.searchsorted(edges, distances) * (len(limits) + 1)
        for limit in limits:
            numbers += distances > limit
        band[start : start + len(part)] = numbers + 1
    band[np.arange(len(rows)), rows] = 0
    return band


def _measure_ranks(table: EmbeddingTable) -> Values:
    """Measures how far the nearest 1, 2, 4, ... other rows of each row are, [r, V].

    r is 0 where the table is too large.
    """
    if len(table) > MAX_RANKED_ROWS:
        return np.empty((0, len(table)))
    ranks = [rank for rank in RANKS if rank < len(table)]
    everywhere = np.arange(len(table))
    near = table.neighbours(everywhere, ranks[-1] + 1)[:, ranks]
    limits = np.empty((len(ranks), len(table)))
    for start in range(0, len(table), WORDS_AT_ONCE):
        chunk = everywhere[start : start + WORDS_AT_ONCE]
        own = table.take(chunk).astype(np.float64)
        for i in range(len(ranks)):
            limits[i, chunk] = np.linalg.norm(own - table.take(near[chunk, i]), axis=1)
    return limits * ROUNDING


def _fit_shares(
    band: NDArray[np.uint8], draws: Values, line: Ids, hit_band: NDArray[np.uint8], hits: Ids
) -> tuple[Values, Values]:
    """Fits shares of released rows [m] and of bands: their product is the mean law.

    Each in turn gets as many hits as were counted, and half a hit, which keeps all above 0.
    """
    size = int(band.max(initial=0)) + 1
    exposure = np.stack([np.bincount(bands, draws, size) for bands in band])
    row_hits = np.bincount(line, hits, len(band)) + HALF_HIT
    band_hits = np.bincount(hit_band, hits, size) + HALF_HIT
    row_share, band_share = row_hits / draws.sum(), np.ones(size)
    for _ in range(FITTING_STEPS):
        band_share = band_hits / (row_share @ exposure + HALF_HIT)
        row_share = row_hits / (exposure @ band_share)
    return row_share, band_share


def _find_pool_size(
    mean: Values, hits: Ids, hit_draws: Values, total: Values, draws: Values
) -> float:
    """Finds the worth of the pool, in draws, that makes all counts most likely.

    Args:
        mean: of the pairs that were hit, by the pool [h].
        hits: of each of them [h].
        hit_draws: the draws of their private rows [h].
        total: the sum of all means of each private row [V].
        draws: of each private row [V].
    """
    # ln Gamma(c + s) - ln Gamma(s) is the sum of ln(s + j) over j < c.
    each = np.repeat(mean, hits)
    nth = np.arange(len(each)) - np.repeat(np.cumsum(hits) - hits, hits)

    def score(size: float) -> float:
        drawn = np.log(size * each + nth).sum() - hits @ np.log(hit_draws + size)
        return float(drawn + (size * total) @ np.log(size / (draws + size)))

    return float(max(POOL_SIZES, key=score))
