"""Surrogates of identifiers: which reserved one stands for a value, and for no other.

In: a value that is hidden, a random number, the notes of its session. Out: what is shown in place
of its placeholder.
Not here: the reserved ranges (`mechanism.reserved_identifiers`), and placeholders (`release`).

A surrogate follows from the random number and from how the value is written; of what the value is,
nothing else. It is remembered by the value's placeholder, so that it goes with that.
"""

import re
from collections.abc import Collection, Sequence
from functools import cached_property

from textveil.config import IdentifierOptions
from textveil.detect import split_atoms
from textveil.errors import UnknownName
from textveil.mechanism import RESERVED_TYPES, find_range
from textveil.randomness import Ids
from textveil.session import Changes, Original

LAW = "identifiers 1"
"""Law of the numbers in ranges; another order of the ranges is another law."""

TAKEN_LAW = "taken identifiers"
"""Law of surrogates that stand for a value, or did."""

MAX_ATTEMPTS = 1000
"""Most numbers of a range to try; with none free, the value gets a placeholder."""

SURROGATE_NOTE = (
    "identifiers ({types}) become invented ones from reserved ranges, which belong to nobody, where "
    "there are any; how an original is written is released with them: separators, length, country"
)

_PLAIN_NUMBER = re.compile(r"[1-9][0-9]*")


def expand_identifiers(options: IdentifierOptions) -> frozenset[str]:
    """Returns the types whose values get surrogates, with "all" expanded.

    Raises:
        UnknownName: a type has no reserved range.
    """
    for type_ in options.types:
        if type_ not in ("all", *RESERVED_TYPES):
            raise UnknownName("type for identifiers.types", str(type_), ("all", *RESERVED_TYPES))
    return frozenset(RESERVED_TYPES if "all" in options.types else map(str, options.types))


class Surrogates:
    """Invented identifiers of a batch. Secret.

    Args:
        types: types whose values get one.
        numbers: a random number for each word.
        texts: texts of the batch, none of whose values is given to another.
    """

    def __init__(self, types: Collection[str], numbers: Ids, texts: Sequence[str]) -> None:
        self._types, self._numbers, self._texts = types, numbers, texts

    def __repr__(self) -> str:
        return f"Surrogates({len(self._types)} types)"

    def assign(self, notes: Changes, value: Original, word: int) -> str | None:
        """Returns what stands for a hidden value; None for its placeholder.

        Args:
            notes: of the session; or of the text, without one.
            value: the value; it has a placeholder.
            word: the number of its word.
        """
        reserved = find_range(value.type, value.text) if value.type in self._types else None
        token = notes.get_placeholder(value)
        # Another spelling that the surrogate cannot follow could not be told from the first.
        if reserved is None or (token.form > 1 and not reserved.keeps_form):
            return None
        key, number = [(token.name, value.type)], int(self._numbers[word])
        is_old = notes.has_rows(LAW, key)[0]
        first = notes.lookup_rows(LAW, key, [number % reserved.size])[0]
        for attempt in range(1 if is_old else min(MAX_ATTEMPTS, reserved.size)):
            row = (first + attempt) % reserved.size
            shown = reserved.write(row)
            if shown is None or (value.quoted and _PLAIN_NUMBER.fullmatch(shown) is None):
                continue
            signs = _normalize_signs(shown)
            if is_old or self._is_free(notes, value.type, shown, signs):
                notes.reuse_rows(LAW, key, [row])
                notes.reuse_rows(TAKEN_LAW, [(signs, value.type)], [1])
                notes.add_replacement(value.text, shown)
                return shown
        return None

    def _is_free(self, notes: Changes, type_: str, shown: str, signs: str) -> bool:
        """Says whether a surrogate is nobody's in the session and in the texts."""
        return not (
            notes.has_rows(TAKEN_LAW, [(signs, type_)])[0]
            or notes.is_known(type_, shown)
            or any(signs in text for text in self._signs)
        )

    @cached_property
    def _signs(self) -> list[str]:
        return list(map(_normalize_signs, self._texts))


def _normalize_signs(text: str) -> str:
    """Returns the letters and digits of a text, folded."""
    return "".join([atom.text for atom in split_atoms(text)])
