"""Search for values to forget, in every spelling that a text may give them.

In: values that a user wants forgotten; texts. Out: the places of the values in them.
Not here: what is done about them (`forgetting`, `link_forgetting`).

A value is compared by its letters and digits, without case, accents and what stands between them;
behind escapes, percent signs, entities and base64, too. A name is found with its last word first
(Silva, Maria) and with ue for its umlaut, a telephone number with its country (+49) and without it.
So a value may be found where something else was meant, rather than be left.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate

from textveil.detect import Atom, decode_escapes, decode_parts, split_atoms
from textveil.errors import InputError
from textveil.text import is_public

MIN_CHARACTERS = 2
"""Least letters and digits of a value to forget; one alone would stand in every text."""

MIN_NATIONAL_DIGITS = 6
"""Least digits of a telephone number that is looked for without its country."""

MAX_GAP_CHARACTERS = 3
"""Most signs between two letters or digits of a value, besides whitespace around them."""

MAX_NAME_WORDS = 5
"""Most words of a value that is looked for with its last word first."""

_DIALLED = re.compile(r"\s*[+(]?[0-9][0-9()./\s-]*")
_COUNTRY_START = re.compile(r"(?:(?<=\+)|00)[1-9][0-9]{0,2}")
_UMLAUTS = {ord(a): b for a, b in zip("äöüÄÖÜ", ("ae", "oe", "ue", "Ae", "Oe", "Ue"), strict=True)}
_WRITTEN_UMLAUT = re.compile(r"(?<=[aou])e")
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
            for spelling in {joined[i], *_list_dialled(text), *_list_names(text)} - {""}
        ]
        self._national = {spelling for text in self.texts for spelling in _list_national(text)}
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

    def find_words(self, words: Iterable[str]) -> dict[int, set[str]]:
        """Finds values that stand in a list of single words, all of whose words are there.

        Returns:
            For the number of each its words, as they are listed, without those that are public.
        """
        listed: dict[str, set[str]] = {}
        for word in words:
            for atom in split_atoms(word):
                listed.setdefault(atom.text, set()).add(word)
        found = {}
        for number, text in enumerate(self.texts):
            atoms = {atom.text for atom in split_atoms(text) if not is_public(atom.text)}
            atoms = {atom for atom in atoms if len(atom) >= MIN_CHARACTERS}
            if atoms and atoms <= listed.keys():
                found[number] = set[str]().union(*(listed[atom] for atom in atoms))
        return found

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
                    and (
                        at in begins
                        or not first.spaced
                        or (
                            joined in self._national
                            and _COUNTRY_START.fullmatch(
                                text, first.start, first.start + at - offsets[owner[at]]
                            )
                        )
                    )
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


def _list_names(text: str) -> Iterator[str]:
    """Yields other spellings of a name: its last word first, and two letters for an umlaut."""
    words = text.split()
    if any(map(str.isdigit, text)) or "@" in text or not 1 <= len(words) <= MAX_NAME_WORDS:
        return
    for order in (text, " ".join([words[-1], *words[:-1]])):
        yield join_atoms(order)
        yield join_atoms(order.translate(_UMLAUTS))
        yield _WRITTEN_UMLAUT.sub("", join_atoms(order))


def _list_national(text: str) -> Iterator[str]:
    """Yields the digits of a telephone number without its country, and without the 0 before them."""
    digits = join_atoms(text)
    if _DIALLED.fullmatch(text) and not _INTERNATIONAL.match(text):
        national = digits.removeprefix("0")
        if len(national) >= MIN_NATIONAL_DIGITS:
            yield national


def _list_dialled(text: str) -> Iterator[str]:
    """Yields the digits of a telephone number as people write them, with its country or without."""
    yield from _list_national(text)
    if _INTERNATIONAL.match(text) is None:
        return
    import phonenumbers

    with suppress(phonenumbers.NumberParseException):
        number = phonenumbers.parse("+" + _INTERNATIONAL.sub("", text))
        national = phonenumbers.national_significant_number(number)
        if len(national) >= MIN_NATIONAL_DIGITS:
            country = f"{number.country_code}{national}"
            yield from (national, f"0{national}", country, f"00{country}")
