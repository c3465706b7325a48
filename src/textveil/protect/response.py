"""Randomised response: every word's group drawn anew, the true one more often, so that it tells little of the word.

In: a protection, a budget. Out: a protection whose groups are drawn.
Not here: what that adds to a statement (`pipeline`), which words have a group at all (`grouping`).
"""

from dataclasses import replace

import numpy as np

from textveil.protect.protection import GROUPS, Protection
from textveil.randomness import Ids, Randomness, weighted_choice

SCALE = 1 << 50
"""The weight of the true group; weights are integers, so that the draw is exact."""

_CHUNK = 1 << 16


def randomised(protection: Protection, epsilon: float, documents: Ids, *, rng: Randomness) -> Protection:
    """Draws the group of every word that is not public: the true one with weight exp(epsilon), each other with 1.

    The label alone has local DP with at most epsilon: weights are rounded up.

    Args:
        protection: with groups 1 to 4; the words of no sensitive part may be marked, for they would tell the group.
        epsilon: the budget of a label, above 0.
        documents: int64 [B + 1], where each text starts.
        rng: opened once, whatever the texts hold.

    Source: Warner 1965 for two values; Kairouz, Oh and Viswanath 2016 for more.
    """
    where = np.flatnonzero(~protection.public)
    true = protection.group[where].astype(np.int64) - 1
    rest = max(1, int(np.ceil(SCALE * np.exp(-epsilon))))
    group = protection.group.copy()
    for part, draws in rng.open(np.diff(np.searchsorted(where, documents))).chunks(_CHUNK):
        weights = np.full((draws.size, len(GROUPS)), rest, np.int64)
        weights[np.arange(draws.size), true[part]] = SCALE
        group[where[part]] = weighted_choice(draws, weights) + 1
    return replace(protection, group=group)
