"""The grammar of placeholders: how they are written, and which ones a text spells itself.

In: a type, a number, which part of a value it stands for, which of its spellings. Out: `<PERSON_1_FAMILY_B>`.
Not here: which value gets which placeholder (`snapshot`), and how answers are searched for them (`restore`).
"""

import re
from bisect import bisect_left
from typing import NamedTuple

from textveil.session.reading import decoded

_RUN = re.compile(r"[a-z0-9_]+")
_NUMBERED = re.compile(r"_[0-9]+(?![a-z0-9])")

_SPELLED = re.compile(r"[_&\\\uff3f]")
"""What a text must have that spells a placeholder."""
_REST = re.compile(r"_[a-z]+(?=_|\Z)")

DIGITS = 19
"""Digits of the longest number of a placeholder."""

KEYED = 10 ** (DIGITS - 1)
"""The least number that follows from a key and was not counted: it has 19 digits, which no count ever has."""

LONGEST = 96
"""Characters of the longest name of a placeholder that is looked for; types have at most 64."""


class Original(NamedTuple):
    """What a placeholder stands for. Secret.

    Args:
        type: what stands there, upper-case ("PERSON").
        text: exactly as it stands there.
        quoted: whether its placeholder needs quotation marks that did not stand there: a number in JSON or code.
    """

    type: str
    text: str
    quoted: bool = False

    def __repr__(self) -> str:
        return f"Original({self.type})"


class Given(NamedTuple):
    """A placeholder and the value that it stands for. Secret.

    Args:
        type: what stands there, upper-case ("PERSON").
        number: counted for each type from 1, or of 19 digits that follow from a key; the same for a name, its parts and
            all their spellings.
        value: exactly as it stood there.
        part: GIVEN or FAMILY for a part of a person's name, PART for one of other names; "" for a whole value.
        form: which of the spellings of the value or part this is, from 1.
        quoted: whether it is written in quotation marks that did not stand there; see `Original`.
    """

    type: str
    number: int
    value: str
    part: str = ""
    form: int = 1
    quoted: bool = False

    def __repr__(self) -> str:
        return f"Given({self.shown})"

    @property
    def stands_for(self) -> Original:
        """The value."""
        return Original(self.type, self.value, self.quoted)

    @property
    def name(self) -> str:
        """The value's name: `PERSON_1`."""
        return named(self.type, self.number)

    @property
    def inner(self) -> str:
        """What stands between the brackets: `PERSON_1`, `PERSON_1_FAMILY`, `PERSON_1_FAMILY_B`."""
        return f"{self.name}{'_' + self.part if self.part else ''}{'_' + letters(self.form) if self.form > 1 else ''}"

    @property
    def shown(self) -> str:
        """The placeholder, `<PERSON_1>`, with the quotation marks that it needs."""
        return f'"<{self.inner}>"' if self.quoted else f"<{self.inner}>"


def named(type_: str, number: int) -> str:
    """The name that the placeholders of a value and its parts begin with."""
    return f"{type_}_{number}"


def letters(form: int) -> str:
    """A spelling's letters: 2 is B, 26 is Z, 27 is AA."""
    found = ""
    while form:
        form, letter = divmod(form - 1, 26)
        found = chr(ord("A") + letter) + found
    return found


def spelled_in(text: str) -> set[str]:
    """What a text spells of placeholders itself, in any way that `restore` would read: `PERSON_1`, `PERSON_1_GIVEN`."""
    if not _SPELLED.search(text):
        return set()
    found: set[str] = set()
    for run in _RUN.findall(decoded(text)):
        starts = [0, *(i + 1 for i, char in enumerate(run) if char == "_")]
        for number in _NUMBERED.finditer(run):
            end = number.end()
            ends = [end, *(rest.end() for rest in _REST.finditer(run, end, end + LONGEST))]
            first = bisect_left(starts, number.start() - LONGEST)
            for start in starts[first : bisect_left(starts, number.start())]:
                found.update(run[start:end].upper() for end in ends if run[start] != "_")
    return found
