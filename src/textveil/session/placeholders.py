"""Grammar of placeholders: how they are written, and which a text contains.

In: a type, a number, which part of a value it stands for, which of its spellings. Out:
`<PERSON_1_FAMILY_B>`.
Not here: which value gets which placeholder (`snapshot`), and how answers are searched for them
(`restore`).
"""

import re
from bisect import bisect_left
from typing import NamedTuple

from textveil.session.escapes import decode_text

_RUN = re.compile(r"[a-z0-9_]+")
_NUMBER = re.compile(r"_[0-9]+(?![a-z0-9])")

_NAME_MARK = re.compile(r"[_&\\\uff3f]")
"""Characters of which a text with a placeholder has at least one."""
_SUFFIX = re.compile(r"_[a-z]+(?=_|\Z)")

MAX_NUMBER_DIGITS = 19
"""Digits of the longest placeholder number."""

MIN_KEYED_NUMBER = 10 ** (MAX_NUMBER_DIGITS - 1)
"""Least keyed number: 19 digits, more than any counted number has."""

MAX_NAME_CHARACTERS = 96
"""Most characters of a placeholder name to look for; types have 64."""


class Original(NamedTuple):
    """A value that a placeholder stands for. Secret.

    Args:
        type: type of the value, upper-case ("PERSON").
        text: the exact characters of the text.
        quoted: True if its placeholder needs quotation marks that the text did not have: a number
            in JSON or code.
    """

    type: str
    text: str
    quoted: bool = False

    def __repr__(self) -> str:
        return f"Original({self.type})"


class PlaceholderToken(NamedTuple):
    """A placeholder and the value that it stands for. Secret.

    Args:
        type: type of the value, upper-case ("PERSON").
        number: counted for each type from 1, or 19 digits derived from a key; the same for a name,
            its parts and all their spellings.
        value: the exact characters of the text.
        part: GIVEN or FAMILY for a part of a person's name, PART for one of other names; "" for a
            whole value.
        form: which of the spellings of the value or part this is, from 1.
        quoted: True if it is written in quotation marks that the text did not have; see `Original`.
    """

    type: str
    number: int
    value: str
    part: str = ""
    form: int = 1
    quoted: bool = False

    def __repr__(self) -> str:
        return f"PlaceholderToken({self.text})"

    @property
    def original(self) -> Original:
        """The value as an `Original`."""
        return Original(self.type, self.value, self.quoted)

    @property
    def name(self) -> str:
        """The value's name, shared by its parts and spellings: `PERSON_1`."""
        return format_name(self.type, self.number)

    @property
    def inner(self) -> str:
        """The text between the brackets: `PERSON_1`, `PERSON_1_FAMILY`, `PERSON_1_FAMILY_B`."""
        form = format_letters(self.form) if self.form > 1 else ""
        return "_".join(filter(None, (self.name, self.part, form)))

    @property
    def text(self) -> str:
        """The placeholder, `<PERSON_1>`, with the quotation marks that it needs."""
        return f'"<{self.inner}>"' if self.quoted else f"<{self.inner}>"


def format_name(type_: str, number: int) -> str:
    """Joins type and number to the common prefix: `PERSON_1`."""
    return f"{type_}_{number}"


def format_letters(form: int) -> str:
    """Writes a form as letters: B for 2, AA for 27."""
    text = ""
    while form:
        form, letter = divmod(form - 1, 26)
        text = chr(ord("A") + letter) + text
    return text


def find_placeholder_names(text: str) -> set[str]:
    """Finds all placeholder names that occur in a text before protection.

    A name is read through escapes, as `restore` would: `PERSON_1`, `PERSON_1_GIVEN`.
    """
    if not _NAME_MARK.search(text):
        return set()
    names: set[str] = set()
    for run in _RUN.findall(decode_text(text)):
        starts = [0, *(i + 1 for i, char in enumerate(run) if char == "_")]
        for number in _NUMBER.finditer(run):
            end = number.end()
            ends = [
                end,
                *(suffix.end() for suffix in _SUFFIX.finditer(run, end, end + MAX_NAME_CHARACTERS)),
            ]
            # Only starts within reach, or a run of many underscores would cost quadratic time.
            first = bisect_left(starts, number.start() - MAX_NAME_CHARACTERS)
            for start in starts[first : bisect_left(starts, number.start())]:
                names.update(run[start:end].upper() for end in ends if run[start] != "_")
    return names
