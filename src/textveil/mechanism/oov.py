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

STEPS = 1000
"""Exclusive limit of the number added to a number.

As in CusText's public code.
"""

_INTEGER = re.compile("[0-9]{1,18}")  # with more digits the sum may not fit into 64 bits
_CHUNK = 1 << 16

_REASONS = {
    "keep": "unknown words pass unprotected (words.oov=keep)",
    "uniform": "unknown words are drawn evenly, which tells them from the table's words, and nothing bounds by how "
    "much (words.oov=uniform)",
    "drop": "unknown words vanish, and what is left tells that they were there (words.oov=drop)",
}
_NUMBERS = (
    f"numbers outside the table get no row but are moved up by "
    f"at most {STEPS - 1} (words.numbers=add): supports differ"
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
    """The number plus an integer drawn evenly below `STEPS`.

    As in CusText's public code.
    """


def apart(options: WordsOptions) -> bool:
    """Says whether a paper's rule may bypass the mechanism."""
    return options.oov in ("uniform", "drop") or options.numbers == "add"


def draws(options: WordsOptions) -> bool:
    """Says whether such a rule may draw."""
    return options.oov == "uniform" or options.numbers == "add"


def reasons(options: WordsOptions) -> list[str]:
    """Returns the reasons why no finite statement holds, for any text.

    The text next to this one may hold such a word.
    """
    found = [_REASONS[options.oov]] if options.oov in _REASONS else []
    return [*found, _NUMBERS] if options.numbers == "add" else found


def rules(words: Sequence[str], unknown: Flags, options: WordsOptions) -> NDArray[np.int8]:
    """Returns the rule of every word, int8 [N].

    Args:
        words: N words.
        unknown: bool [N], protected words outside the table; the others fall under the house rule.
        options: the requested rules.
    """
    others = {"uniform": WordRule.UNIFORM, "drop": WordRule.DROP}.get(options.oov, WordRule.HOUSE)
    found = np.where(unknown, others, WordRule.HOUSE).astype(np.int8)
    if options.numbers == "add":
        found[[i for i in np.flatnonzero(unknown).tolist() if _INTEGER.fullmatch(words[i])]] = (
            WordRule.ADD
        )
    return found


def draw(rule: NDArray[np.int8], documents: Ids, rows: int, *, rng: Randomness) -> Ids:
    """Draws the rows and numbers of the rules: int64 [T].

    A row, or the number added to a number, evenly and without bias; -1 elsewhere.

    Args:
        rule: int8 [T], one `WordRule` per unit.
        documents: int64 [B + 1], where each text starts in the units.
        rows: V, of the table.
        rng: opened once, whatever the texts hold.
    """
    drawn = np.full(len(rule), -1, np.int64)
    where = np.flatnonzero((rule == WordRule.UNIFORM) | (rule == WordRule.ADD))
    high = np.where(rule[where] == WordRule.UNIFORM, rows, STEPS).astype(np.int64)
    streams = rng.open(np.diff(np.searchsorted(where, documents)))
    for part, draws in streams.chunks(_CHUNK):
        drawn[where[part]] = draws.integers(high[part])
    return drawn
