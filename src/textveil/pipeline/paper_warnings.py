"""Warning about a paper's budget on another table than the paper's.

In: a privatizer's parts and the options they come from. Out: a warning with the share of words that
stay unchanged, or none.
Not here: the profiles (`config`), and the mechanisms of papers (`mechanism`).
"""

import math
import warnings
from importlib.resources import files

import numpy as np

from textveil.config import Config, WordsOptions
from textveil.errors import BudgetError, TextveilWarning
from textveil.mechanism import Block, Layout
from textveil.pipeline.components import Parts
from textveil.protect import Grouped, find_public_words
from textveil.randomness import SeededRandomness
from textveil.table import EmbeddingTable
from textveil.text import tokenize

PAPER_PREFIX = "paper-"
"""Prefix of profiles with the parameters of a paper."""


def warn_of_budget(parts: Parts, config: Config, *, stacklevel: int) -> None:
    """Warns where a paper's budget is used on another table than its."""
    unscaled = parts.budget is None or (
        isinstance(parts.budget, Grouped) and config.epsilon is None
    )
    papers_own = config.profile is not None and config.profile.startswith(PAPER_PREFIX) and unscaled
    if not papers_own or _is_glove(parts.table):
        return
    unchanged, words = _count_unchanged(parts)
    warnings.warn(
        f"the profile {config.profile} has a budget of the size that the paper used on its own "
        f"table; on {parts.table.name} it leaves {unchanged} of the {words} protected words of "
        "a public sample unchanged: set epsilon instead",
        TextveilWarning,
        stacklevel=stacklevel + 1,
    )


def _is_glove(table: EmbeddingTable) -> bool:
    return "glove" in table.name.lower()


def _count_unchanged(parts: Parts) -> tuple[int, int]:
    """Counts unchanged words of the packaged letter, and its protected words.

    They are drawn under the profile's parameter. The letter is public; it is drawn from a fixed
    seed, and with the default words, whatever the user's are.
    """
    words = tokenize([(files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8")]).words
    public = find_public_words(words, WordsOptions())
    table, mechanism = parts.table, parts.mechanism
    rows, _ = table.lookup([word for word, passes in zip(words, public, strict=True) if not passes])
    block = Block(layout=Layout.build(len(rows)), rows=rows)
    parameter = mechanism.parameters(table, block.layout)
    if parameter is None:
        if not isinstance(parts.budget, Grouped):
            raise BudgetError(
                "a profile without epsilon must set the mechanism's own parameter or groups.budgets"
            )
        mean = float(np.mean([budget for budget in parts.budget.budgets if math.isfinite(budget)]))
        parameter = mechanism.calibrate(table, block.layout, np.full(len(rows), mean))
    released = mechanism.privatize(table, block, parameter, rng=SeededRandomness(0))
    return int((released == rows).sum()), len(rows)
