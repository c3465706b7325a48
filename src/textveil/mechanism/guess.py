"""Guessing: the success rate of the best guess of a private word.

It follows from a mechanism's law and a public prior.
In: a mechanism, a table, the prior of private words. Out: the expected share of right guesses,
exactly.
Not here: guesses of the words of a release (`evaluate`), and the search for a budget
(`pipeline.budget_search`).
"""

from collections.abc import Callable

import numpy as np

from textveil.errors import ConfigError
from textveil.mechanism.block import Block, Layout
from textveil.mechanism.book_mechanism import BookMechanism
from textveil.mechanism.contract import Law, Mechanism
from textveil.mechanism.select import Select
from textveil.mechanism.staircase import Staircase
from textveil.mechanism.utility import Distance
from textveil.randomness import Values
from textveil.table import EmbeddingTable, compute_shares

MAX_PROBABILITY_CELLS = 1 << 22
"""Probabilities held at once: 32 MiB."""


def build_success_rate(
    mechanism: Mechanism, table: EmbeddingTable, prior: Values | None = None
) -> Callable[[float], float]:
    """Returns the best guess's success rate as a function of the parameter.

    Whoever sees the released row y guesses the x that maximises prior(x) P(y | x), and is right
    with probability sum_y max_x prior(x) P(y | x). That is the sum over all rows of the table,
    nothing left out. Where the law may release no row at all, that counts as a right guess.

    A staircase by distance is computed once, in seconds for 20,000 rows; any other law is computed
    for every parameter, which is V^2 work.

    Args:
        mechanism: has a law, and draws each word alone.
        table: its V rows are the private and the released words.
        prior: the probability of each word, as a row of the table's origin, summing to 1. In a
            coarse view the guess of a code is its likeliest word; with books by group, the book
            under which most guesses are right counts. None: the shares of words in general public
            text.

    Raises:
        ConfigError: the mechanism has no law that could be written down, or looks at other words.
    """
    name = mechanism.claim(table).mechanism
    if isinstance(mechanism, BookMechanism):
        view_rates = [build_success_rate(mechanism.mechanism, view, prior) for view in table.views]
        return lambda parameter: max(named(parameter) for named in view_rates)
    prior = compute_shares(table.origin) if prior is None else prior
    masses, heads = table.sum_by_row(prior), table.find_heads(prior)
    if not mechanism.claim(table).alone:
        raise ConfigError(
            "how often a word is guessed is known only where each word is drawn alone, and "
            f"{name} looks at other words"
        )
    if isinstance(mechanism, Select) and isinstance(mechanism.rule, Staircase):
        assert isinstance(mechanism.utility, Distance), "with a context words are not drawn alone"
        return _build_staircase_success(mechanism.rule, table, heads)
    if not isinstance(mechanism, Law):
        raise ConfigError(
            f"{name} has no law that is written down, so how often a word is guessed is not known"
        )

    def compute_success(parameter: float) -> float:
        best, rest_mass = np.zeros(len(table)), 0.0
        size = max(1, MAX_PROBABILITY_CELLS // len(table))
        for start in range(0, len(table), size):
            rows = np.arange(start, min(start + size, len(table)))
            block = Block(layout=Layout.build(*np.ones_like(rows).tolist()), rows=rows)
            law = mechanism.log_probs(table, block, np.full(len(rows), parameter))
            if law is None:
                raise ConfigError(f"{name} has no law that is written down with these options")
            joint = np.exp(law)
            rest_mass += float((masses[rows] * np.maximum(1 - joint.sum(axis=1), 0)).sum())
            joint *= heads[rows, None]
            np.maximum(best, joint.max(axis=0), out=best)
        return float(best.sum()) + rest_mass

    return compute_success


def _build_staircase_success(
    rule: Staircase, table: EmbeddingTable, heads: Values
) -> Callable[[float], float]:
    """Returns the success rate of guessing under a staircase.

    Weights fall from level to level, so only the likeliest word that has a row on a level or above
    counts.
    """
    ends = rule.compute_level_ends(table)
    sizes = np.diff(ends, prepend=0)
    level = np.repeat(np.arange(len(sizes) - 1), sizes[:-1])
    level_heads = np.zeros((len(table), len(sizes)))
    # Every word has every row on the last level or above.
    level_heads[:, -1] = heads.max()
    last = max(1, int(ends[-2]))
    size = max(1, MAX_PROBABILITY_CELLS // len(table))
    for start in range(0, len(table), size):
        rows = np.arange(start, min(start + size, len(table)))
        near = table.neighbours(rows, last)[:, : len(level)]
        np.maximum.at(level_heads, (near, level[None, :]), heads[rows, None])
    np.maximum.accumulate(level_heads, axis=1, out=level_heads)

    def compute_success(parameter: float) -> float:
        weights = rule.compute_weights(np.array([parameter]))[0].astype(np.float64)
        return float((level_heads * weights).max(axis=1).sum() / (weights @ sizes))

    return compute_success
