"""Escape reader: an answer as units, one character with its written form.

In: text, with escapes of JSON, HTML and Markdown. Out: `Unit`s; folded text.
Not here: which keys are looked for among them (`restore`).
"""

import html
import re
from functools import lru_cache
from typing import Literal, NamedTuple
from unicodedata import normalize

from textveil.text import Late

_TYPOGRAPHIC = str.maketrans("’ʼ", "''")
_UNSPACED = Late(
    r"(?V1)[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)
_WORDLY = Late(r"(?V1)[\p{L}\p{M}\p{N}\u200C\u200D]")

Escaped = Literal["", "json", "html", "markdown"]
"""Kind of escape that a character is written with; "" for none."""

# No complete escape is the beginning of a longer one, so it does not matter where a piece is cut.
# A backslash before a placeholder with entities belongs to the text: it escapes no `&`.
JSON = re.compile(
    r"""(?s)\\u(?P<hex>[0-9a-fA-F]{4}) | \\(?P<letter>["\\/bfnrt]) | (?P<cut>\\(?:u[0-9a-fA-F]{0,3})?)\Z""",
    re.VERBOSE,
)
TEXT = re.compile(
    r"""(?s)\\u(?P<hex>[0-9a-fA-F]{4}) | \\(?!&(?:lt;|quot;|(?:lt?|qu?o?t?)?\Z))(?P<mark>[!-/:-@\[-`{-~])
    | &(?P<entity>\#[0-9]{1,6}|\#[xX][0-9a-fA-F]{1,5}|lt|gt|amp|quot|apos|nbsp);
    | (?P<cut>\\(?:u[0-9a-fA-F]{0,3}|&(?:lt?|qu?o?t?)?)? | &(?:\#[0-9]{0,6}|\#[xX][0-9a-fA-F]{0,5}|[a-z]{0,4}))\Z""",
    re.VERBOSE,
)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def fold(text: str) -> str:
    """Normalizes text for comparison: case, composition, apostrophes and whitespace."""
    if text.isascii():  # same result, but faster
        return " ".join(text.lower().split())
    return " ".join("".join(_fold_char(char) for char in normalize("NFC", text)).split())


@lru_cache(4096)
def _fold_char(char: str) -> str:
    if char.isspace():
        return " "
    return normalize("NFD", normalize("NFD", char).casefold()).translate(_TYPOGRAPHIC)


@lru_cache(4096)
def script(char: str) -> str:
    """Classifies the script of a letter or digit; "" for other characters.

    "unspaced" for scripts without spaces between words, "spaced" for all others.

    Unspaced scripts write no spaces between words: Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar.
    """
    if not _WORDLY.match(char):
        return ""
    return "unspaced" if _UNSPACED.match(char) else "spaced"


class Unit(NamedTuple):
    """One character of the answer.

    Args:
        char: the character that is meant.
        folded: its form for comparison; one letter may become several.
        raw: its written form: `&lt;` for <.
        read: its written form where the answer is no JSON.
        escape: kind of escape.
    """

    char: str
    folded: str
    raw: str
    read: str
    escape: Escaped

    def __repr__(self) -> str:
        return "Unit()"


@lru_cache(4096)
def plain(char: str) -> Unit:
    """Wraps a character that stands for itself."""
    return Unit(char, _fold_char(char), char, char, "")


class Escapes:
    """Streaming reader of one level of escapes: `&lt;` becomes one unit."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._cut: list[Unit] = []

    def read(self, units: list[Unit], final: bool) -> list[Unit]:
        """Returns the units that are certain; all at the answer's end.

        An escape that the end of the piece may cut is held back.
        """
        units = self._cut + units
        self._cut = []
        read: list[Unit] = []
        done = 0
        for match in self._pattern.finditer("".join([unit.char for unit in units])):
            read += units[done : match.start()]
            done = match.end()
            whole = units[match.start() : done]
            if match["cut"] is None:
                read.append(self._make_unit(match, whole))
            elif final:
                read += whole
            else:
                self._cut = whole
        return read + units[done:]

    def _make_unit(self, match: re.Match[str], whole: list[Unit]) -> Unit:
        char, escape = self._decode(match)
        read = char if self._pattern is JSON else "".join([unit.char for unit in whole])
        return Unit(char, _fold_char(char), "".join([unit.raw for unit in whole]), read, escape)

    def _decode(self, match: re.Match[str]) -> tuple[str, Escaped]:
        groups = match.groupdict()
        if groups["hex"]:
            return chr(int(groups["hex"], 16)), "json" if self._pattern is TEXT else ""
        if letter := groups.get("letter"):
            return _LETTERS.get(letter, letter), ""
        if mark := groups.get("mark"):
            return mark, "markdown"
        return html.unescape(f"&{groups['entity']};")[:1] or "\ufffd", "html"


def decoded(text: str) -> str:
    """Decodes the escapes of a text and folds it, whitespace unchanged."""
    return "".join(
        [unit.folded for unit in Escapes(TEXT).read([plain(char) for char in text], True)]
    )
