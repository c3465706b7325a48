"""The papers' rules for words outside the table.

Such words are drawn evenly, dropped, or moved up as numbers.
In: words, which of them are outside the table, the options. Out: a `WordRule` per word, its draw,
its cost.
Not here: the house rule, by which such a word gets a row as any other (`table`), and how releases
show it (`release`).
"""

import re
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from textveil.config import WordsOptions
from textveil.randomness import Flags, Ids, Randomness

NUMBER_STEP_LIMIT = 1000
"""Exclusive limit of the number added to a number.

As in CusText's public code.
"""

_INTEGER = re.compile("[0-9]{1,18}")  # with more digits the sum may not fit into 64 bits
_CHUNK = 1 << 16

_REASONS = {
    "keep": "unknown words pass unprotected (words.oov=keep)",
    "uniform": (
        "unknown words are drawn uniformly, which distinguishes them from the table's words, "
        "and nothing bounds by how much (words.oov=uniform)"
    ),
    "drop": (
        "unknown words are left out, and the rest of the text shows that they were there "
        "(words.oov=drop)"
    ),
}
_NUMBERS = (
    "numbers outside the table are not mapped to a row but moved up by at most "
    f"{NUMBER_STEP_LIMIT - 1} (words.numbers=add): supports differ"
)


class WordRule(IntEnum):
    """The rule of a word.

    Words of the last three rules never reach the mechanism.
    """

    HOUSE = 0
    """The rule of every other option of `words.oov`.

    The word is drawn, passes, or becomes a placeholder.
    """
    UNIFORM = 1
    """A row drawn evenly from the whole table.

    As in SanText's public code.
    """
    DROP = 2
    """No item at all, as in InferDPT's public code."""
    ADD = 3
    """The number plus an integer drawn evenly below `NUMBER_STEP_LIMIT`.

    As in CusText's public code.
    """


def has_bypass_rule(options: WordsOptions) -> bool:
    """Says whether a paper's rule may bypass the mechanism."""
    return options.oov in ("uniform", "drop") or options.numbers == "add"


def has_random_rule(options: WordsOptions) -> bool:
    """Says whether such a rule may draw."""
    return options.oov == "uniform" or options.numbers == "add"


def list_reasons(options: WordsOptions) -> list[str]:
    """Returns the reasons why no finite statement holds, for any text.

    The text next to this one may hold such a word.
    """
    reasons = [_REASONS[options.oov]] if options.oov in _REASONS else []
    return [*reasons, _NUMBERS] if options.numbers == "add" else reasons


def assign_rules(words: Sequence[str], unknown: Flags, options: WordsOptions) -> NDArray[np.int8]:
    """Returns the rule of every word, int8 [N].

    Args:
        words: N words.
        unknown: bool [N], protected words outside the table; the others fall under the house rule.
        options: the requested rules.
    """
    unknown_rule = {"uniform": WordRule.UNIFORM, "drop": WordRule.DROP}.get(
        options.oov, WordRule.HOUSE
    )
    rules = np.where(unknown, unknown_rule, WordRule.HOUSE).astype(np.int8)
    if options.numbers == "add":
        rules[[i for i in np.flatnonzero(unknown).tolist() if _INTEGER.fullmatch(words[i])]] = (
            WordRule.ADD
        )
    return rules


def draw(rule: NDArray[np.int8], documents: Ids, rows: int, *, rng: Randomness) -> Ids:
    """Draws the rows and numbers of the rules: int64 [T].

    A row, or the number added to a number, evenly and without bias; -1 elsewhere.

    Args:
        rule: int8 [T], one `WordRule` per unit.
        documents: int64 [B + 1], where each text starts in the units.
        rows: V, of the table.
        rng: opened once, whatever the texts hold.
    """
    values = np.full(len(rule), -1, np.int64)
    where = np.flatnonzero((rule == WordRule.UNIFORM) | (rule == WordRule.ADD))
    high = np.where(rule[where] == WordRule.UNIFORM, rows, NUMBER_STEP_LIMIT).astype(np.int64)
    streams = rng.open(np.diff(np.searchsorted(where, documents)))
    for part, draws in streams.split_rows(_CHUNK):
        values[where[part]] = draws.integers(high[part])
    return values
