r"""Escapes and encodings: detectors read the letters that `\u00fc`, `%40`, `&#64;` or Base64 stand for, not their own.

In: a text. Out: the text as it is read, and where each of its characters stands; what is encoded in it.
Not here: documents as such (`structure`), and other ways to write text in other letters (`patterns`).
"""

import binascii
import html
import re
import unicodedata
from base64 import b64decode
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
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


# ---- encodings -------------------------------------------------------------------------------------------------------

_BYTE = re.compile(r"%(?:25)*([0-9a-f]{2})", re.IGNORECASE)
_CODED = re.compile(
    rf"""(?P<bytes>(?:{_BYTE.pattern})+) | &(?:amp;)*(?P<entity>\#\d{{1,7}}|\#x[0-9a-f]{{1,6}}|[a-z]{{2,12}});
    | (?<!\\)\\+u(?P<unit>[0-9a-f]{{4}})
    | (?P<blank> (?<=[0-9])_(?=[0-9]{{2}}) | (?<=[a-z0-9])_(?=[0-9]{{6}} | [a-z]{{2}}[0-9]{{4}}) )""",
    re.IGNORECASE | re.VERBOSE,
)
_SIGNS = "%&\\_"
"""One of them is in everything that `_CODED` finds."""
_BASE64 = re.compile(
    r"""(?<![A-Za-z0-9+/_\-])
    (?: (?:[A-Za-z0-9+/]{56,}\r?\n)+[A-Za-z0-9+/]+ | [A-Za-z0-9+/_\-]{12,} )={0,2}
    (?![A-Za-z0-9+/_=\-])""",
    re.VERBOSE,
)
_LINE = re.compile(r"[^\r\n]+")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){8,}(?![0-9A-Fa-f])")
_ODD = 8
"""Text has at least so many characters for each that no text has, such as NUL or half a character."""
_AROUND = 200
"""Characters on each side of what is encoded that are read with it."""


class Encoded(NamedTuple):
    """A part of a text as it reads where its encoding is undone.

    Args:
        text: what it says.
        starts: where in the whole text the writing of each of its characters begins.
        ends: where it ends.
        coded: which characters are written in another way, in order.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    coded: Sequence[int]

    def __repr__(self) -> str:
        return f"Encoded({len(self.text)} characters)"

    def written(self, span: Span) -> Span | None:
        """A span of this part as one of the whole text; None where nothing in it or right beside it is encoded."""
        at = bisect_left(self.coded, span.start - 1)
        if at == len(self.coded) or self.coded[at] > span.end:
            return None
        return span._replace(start=self.starts[span.start], end=self.ends[span.end - 1])


def encoded_in(text: str) -> list[Encoded]:
    """What a text says in percent encoding, entities of HTML, escapes of escapes, Base64 or hexadecimal figures.

    Underscores in numbers, as names of files have them, are read as blanks.
    """
    found = list(_characters(text)) if any(sign in text for sign in _SIGNS) else []
    for start, end, said in _runs(text):
        found.append(Encoded(said, [start] * len(said), [end] * len(said), range(len(said))))
    return found


def _runs(text: str) -> Iterator[tuple[int, int, str]]:
    """Runs of letters that stand for text: where each begins and ends, and for which."""
    for run in _BASE64.finditer(text):
        lines = [each.span() for each in _LINE.finditer(text, *run.span())]
        # A word may stand below wrapped lines, or a long word above them.
        for tried in ([(run.start(), run.end())], [(run.start(), lines[-2][1])] if lines[1:] else [], lines):
            found = [(start, end, said) for start, end in tried if (said := _said_in_base64(text[start:end]))]
            if found:
                yield from found
                break
    for run in _HEX.finditer(text):
        if said := _as_text(bytes.fromhex(run[0])):
            yield *run.span(), said


def _said_in_base64(run: str) -> str:
    """What a run of Base64 says; "" where it is none."""
    plain = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")
    with suppress(binascii.Error):
        return _as_text(b64decode(plain + "=" * (-len(plain) % 4)))
    return ""


def _as_text(said: bytes) -> str:
    """Bytes as a text; "" where they are none. Marks that nobody sees may be in it, and a little that is no text."""
    text = said.decode(errors="replace")
    odd = sum(not (char.isprintable() or char.isspace() or unicodedata.category(char) == "Cf") for char in text)
    return text if (odd + text.count("\ufffd")) * _ODD <= len(text) else ""


def _characters(text: str) -> Iterator[Encoded]:
    """The surroundings of single characters that are encoded, in order."""
    letters: list[tuple[str, int, int, bool]] = []
    at = 0

    def plain(start: int, end: int) -> None:
        letters.extend((text[i], i, i + 1, False) for i in range(start, end))

    for match in _CODED.finditer(text):
        said = list(_said(match))
        if not said:
            continue
        start, end = match.span()
        if letters and start - at > 2 * _AROUND:
            plain(at, at + _AROUND)
            yield _encoded(letters)
            letters = []
        plain(at if letters else max(at, start - _AROUND), start)
        letters += [(char, first, last, True) for char, first, last in said]
        at = end
    if letters:
        plain(at, min(at + _AROUND, len(text)))
        yield _encoded(letters)


def _encoded(letters: Sequence[tuple[str, int, int, bool]]) -> Encoded:
    chars, starts, ends, coded = zip(*letters, strict=True)
    return Encoded("".join(chars), starts, ends, [i for i, each in enumerate(coded) if each])


def _said(match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    """The characters that an encoding stands for, each with where it begins and ends; none where it is no encoding."""
    start, end = match.span()
    if match["bytes"]:
        found = list(_BYTE.finditer(match["bytes"]))
        places = [each.span() for each in found]
        with suppress(UnicodeDecodeError):
            said = bytes(int(each[1], 16) for each in found).decode()
            i = 0
            for char in said:
                first, i = i, i + len(char.encode())
                yield char, start + places[first][0], start + places[i - 1][1]
        return
    if match["blank"]:
        said = " "
    elif match["unit"]:
        said = chr(int(match["unit"], 16))
    else:
        said = html.unescape(f"&{match['entity']};")
    if len(said) == 1 and not "\ud800" <= said <= "\udfff":
        yield said, start, end
