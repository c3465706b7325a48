"""Randomised response: draws each word's group, so that labels reveal little.

The true group is the likeliest.

In: a protection, a budget. Out: a protection whose groups are drawn.
Not here: what this adds to a statement (`pipeline`), and the true groups (`grouping`).
"""

from dataclasses import replace

import numpy as np

from textveil.protect.protection import GROUPS, Protection
from textveil.randomness import Ids, Randomness, choose_weighted

TRUE_WEIGHT = 1 << 50
"""Weight of the true group; weights are integers for exact draws."""

_CHUNK = 1 << 16


def draw_groups(
    protection: Protection, epsilon: float, documents: Ids, *, rng: Randomness
) -> Protection:
    """Draws the group of each non-public word by randomised response.

    The true group has weight exp(epsilon), each of the three others weight 1. The label alone is
    locally DP with at most epsilon: the other weights are rounded up.

    Args:
        protection: with groups 1 to 4; no sensitive part may be marked, as marks would reveal the
            group.
        epsilon: the budget of a label, above 0.
        documents: int64 [B + 1], the offset of each text's words.
        rng: one stream is opened, whatever the texts contain.

    Source: Warner 1965 for two values; Kairouz, Oh and Viswanath 2016 for more.
    """
    protected_words = np.flatnonzero(~protection.public)
    true = protection.group[protected_words].astype(np.int64) - 1
    # Rounded up, so that the ratio of weights is at most exp(epsilon); never 0, also where exp
    # underflows, because a group that cannot be drawn would make the loss infinite.
    other_weight = max(1, int(np.ceil(TRUE_WEIGHT * np.exp(-epsilon))))
    group = protection.group.copy()
    for part, draws in rng.open(np.diff(np.searchsorted(protected_words, documents))).split_rows(
        _CHUNK
    ):
        weights = np.full((draws.size, len(GROUPS)), other_weight, np.int64)
        weights[np.arange(draws.size), true[part]] = TRUE_WEIGHT
        group[protected_words[part]] = choose_weighted(draws, weights) + 1
    return replace(protection, group=group)
