r"""Escapes of JSON and of code: detectors read the letters that `\u00fc` stands for, not its own.

In: a text. Out: the text as it is read, and where each of its characters stands.
Not here: documents as such (`structure`), and other ways to write text in other letters (`patterns`).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from textveil.protect.spans import Span

_ESCAPE = re.compile(r"\\(?:\\|u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4}))", re.IGNORECASE)
_BROKEN_LINE = re.compile(r"(?<!\\)(?:\\\\)*\\([nrt])(?=[^\W\da-z_])")


class Read(NamedTuple):
    """A text as it is read: its characters, and for each, and for the end, where it begins in the text."""

    text: str
    places: Sequence[int]

    def __repr__(self) -> str:
        return f"Read({len(self.text)} characters)"


def read(text: str) -> Read:
    r"""A text with each `\uXXXX`, or two that stand for one character, as that character; `\\u` is none.

    A letter that with its backslash breaks a line before a capital, as in `Hello,\nAnna`, is read as blanks with it;
    control characters, quotes and backslashes stay escaped, so that documents can be read.
    """
    if "\\" not in text:
        return Read(text, range(len(text) + 1))
    letters: list[str] = []
    places: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        high, low, code = match.groups()
        if high:
            letter = chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
        elif code and chr(int(code, 16)).isprintable() and chr(int(code, 16)) not in "\"'\\":
            letter = chr(int(code, 16))
        else:
            continue
        letters.append(text[at : match.start()] + letter)
        places += range(at, match.start() + 1)
        at = match.end()
    letters.append(text[at:])
    places += range(at, len(text) + 1)
    found = _BROKEN_LINE.sub(lambda match: match[0][:-2] + "  ", "".join(letters))
    return Read(found, places)


def written(span: Span, texts: Sequence[Read]) -> Span:
    """A span of the text as it is read, as one of the text as it stands."""
    places = texts[span.text].places
    return span._replace(start=places[span.start], end=places[span.end])
