"""Search for values to forget, in every spelling that a text may give them.

In: values that a user wants forgotten; texts. Out: the places of the values in them.
Not here: what is done about them (`forgetting`, `link_forgetting`).

A value is compared by its letters and digits, without case, accents and what stands between them;
behind escapes, percent signs, entities and base64, too. A telephone number with its country (+49)
is found without it. So a value may be found where something else was meant, rather than be left.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate

from textveil.detect import Atom, decode_escapes, decode_parts, split_atoms
from textveil.errors import InputError

MIN_CHARACTERS = 2
"""Least letters and digits of a value to forget; one alone would stand in every text."""

MIN_NATIONAL_DIGITS = 6
"""Least digits of a telephone number that is looked for without its country."""

MAX_GAP_CHARACTERS = 3
"""Most signs between two letters or digits of a value, besides whitespace around them."""

_INTERNATIONAL = re.compile(r"\s*(?:\+|00)\s*(?=[1-9])")


def join_atoms(text: str) -> str:
    """Returns the letters and digits of a text, folded, by which values are compared."""
    return "".join([atom.text for atom in split_atoms(text)])


class SoughtTexts:
    """Values to look for in texts, however they are spelled. Secret.

    Args:
        texts: the values.

    Raises:
        InputError: a value has fewer than `MIN_CHARACTERS` letters and digits.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(texts)
        joined = [join_atoms(text) for text in self.texts]
        self._spellings = [
            (i, spelling)
            for i, text in enumerate(self.texts)
            for spelling in {joined[i], *_list_dialled(text)}
        ]
        short = [i for i, spelling in enumerate(joined, 1) if len(spelling) < MIN_CHARACTERS]
        # One value stands in many facts of a session.
        self._numbers: dict[str, set[int]] = {}
        if short:
            raise InputError(
                f"value {short[0]:,} of those to forget must have at least {MIN_CHARACTERS} letters "
                "or digits; nothing was forgotten"
            )

    def __repr__(self) -> str:
        return f"SoughtTexts({len(self.texts)})"

    def find(self, text: str) -> set[int]:
        """Returns the numbers of the values that a text holds, from 0."""
        numbers = self._numbers.get(text)
        if numbers is None:
            numbers = self._numbers[text] = {number for number, *_ in self._find_places(text)}
        return numbers

    def holds(self, text: str) -> bool:
        """Says whether a text holds one of the values."""
        return bool(self.find(text))

    def replace(self, text: str, mark: str) -> str:
        """Returns a text with a mark in place of each value that it holds."""
        places = sorted({(start, end) for _, start, end in self._find_places(text)})
        result, at = "", 0
        for start, end in places:
            if end > at:
                # Of values that overlap, the later one only extends the mark.
                result += (text[at:start] + mark) if start >= at else ""
                at = end
        return result + text[at:]

    def _find_places(self, text: str) -> Iterator[tuple[int, int, int]]:
        readable, places = decode_escapes(text)
        for number, start, end in self._find_plain(readable):
            yield number, places[start], places[end]
        for part in decode_parts(text):
            for number, start, end in self._find_plain(part.text):
                yield number, part.starts[start], part.ends[end - 1]

    def _find_plain(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Yields values with their places in a text without escapes."""
        atoms = split_atoms(text)
        whole = "".join([atom.text for atom in atoms])
        candidates = [(i, joined) for i, joined in self._spellings if joined in whole]
        if not candidates:
            return
        owner = [i for i, atom in enumerate(atoms) for _ in atom.text]
        offsets = list(accumulate((len(atom.text) for atom in atoms), initial=0))
        begins = frozenset(offsets)
        for number, joined in candidates:
            at = whole.find(joined)
            while at >= 0:
                end = at + len(joined)
                first, last = atoms[owner[at]], atoms[owner[end - 1]]
                near = all(
                    len(text[atoms[i].end : atoms[i + 1].start].strip()) <= MAX_GAP_CHARACTERS
                    for i in range(owner[at], owner[end - 1])
                )
                # Scripts without spaces have no ends of words: any run of characters counts.
                if (
                    near
                    and (at in begins or not first.spaced)
                    and (end in begins or not last.spaced)
                ):
                    start_cut = _find_cut(first, at - offsets[owner[at]], first.start)
                    yield (
                        number,
                        start_cut,
                        _find_cut(last, end - offsets[owner[end - 1]], last.end),
                    )
                at = whole.find(joined, at + 1)


def _find_cut(atom: Atom, length: int, whole: int) -> int:
    """Returns the place after some characters of a run; `whole` where words are not cut."""
    is_cut = not atom.spaced and len(atom.text) == atom.end - atom.start
    return atom.start + length if is_cut else whole


def _list_dialled(text: str) -> Iterator[str]:
    """Yields the digits of a telephone number with a country, as people write them."""
    if _INTERNATIONAL.match(text) is None:
        return
    import phonenumbers

    with suppress(phonenumbers.NumberParseException):
        number = phonenumbers.parse("+" + _INTERNATIONAL.sub("", text))
        national = phonenumbers.national_significant_number(number)
        if len(national) >= MIN_NATIONAL_DIGITS:
            country = f"{number.country_code}{national}"
            yield from (national, f"0{national}", country, f"00{country}")
