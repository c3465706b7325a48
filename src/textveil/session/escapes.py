"""Escape reader: an answer as units, one character with its written form.

In: text, with escapes of JSON, HTML and Markdown. Out: `Unit`s; folded text.
Not here: which keys are looked for among them (`restore`).
"""

import html
import re
from functools import lru_cache
from typing import Literal, NamedTuple
from unicodedata import normalize

from textveil.text import LazyPattern

_APOSTROPHES = str.maketrans("’ʼ", "''")
_UNSPACED_CHAR = LazyPattern(
    r"(?V1)[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)
_WORD_CHAR = LazyPattern(r"(?V1)[\p{L}\p{M}\p{N}\u200C\u200D]")

EscapeKind = Literal["", "json", "html", "markdown"]
"""Kind of escape that a character is written with; "" for none."""

# No complete escape is the beginning of a longer one, so it does not matter where a piece is cut.
# A backslash before a placeholder with entities belongs to the text: it escapes no `&`.
JSON_ESCAPES = re.compile(
    r"""(?s)\\u(?P<hex>[0-9a-fA-F]{4}) | \\(?P<letter>["\\/bfnrt]) | (?P<cut>\\(?:u[0-9a-fA-F]{0,3})?)\Z""",
    re.VERBOSE,
)
TEXT_ESCAPES = re.compile(
    r"""(?s)\\u(?P<hex>[0-9a-fA-F]{4}) | \\(?!&(?:lt;|quot;|(?:lt?|qu?o?t?)?\Z))(?P<mark>[!-/:-@\[-`{-~])
    | &(?P<entity>\#[0-9]{1,6}|\#[xX][0-9a-fA-F]{1,5}|lt|gt|amp|quot|apos|nbsp);
    | (?P<cut>\\(?:u[0-9a-fA-F]{0,3}|&(?:lt?|qu?o?t?)?)? | &(?:\#[0-9]{0,6}|\#[xX][0-9a-fA-F]{0,5}|[a-z]{0,4}))\Z""",
    re.VERBOSE,
)
_ESCAPE_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def fold(text: str) -> str:
    """Normalizes text for comparison: case, composition, apostrophes and whitespace."""
    if text.isascii():  # same result, but faster
        return " ".join(text.lower().split())
    return " ".join("".join(_fold_char(char) for char in normalize("NFC", text)).split())


@lru_cache(4096)
def _fold_char(char: str) -> str:
    if char.isspace():
        return " "
    return normalize("NFD", normalize("NFD", char).casefold()).translate(_APOSTROPHES)


@lru_cache(4096)
def find_script(char: str) -> str:
    """Classifies the script of a letter or digit; "" for other characters.

    "unspaced" for scripts without spaces between words, "spaced" for all others.

    Unspaced scripts write no spaces between words: Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar.
    """
    if not _WORD_CHAR.match(char):
        return ""
    return "unspaced" if _UNSPACED_CHAR.match(char) else "spaced"


class Unit(NamedTuple):
    """One character of the answer.

    Args:
        char: the character that is meant.
        folded: its form for comparison; one letter may become several.
        raw: its written form: `&lt;` for <.
        text: its written form where the answer is no JSON.
        escape: kind of escape.
    """

    char: str
    folded: str
    raw: str
    text: str
    escape: EscapeKind

    def __repr__(self) -> str:
        return "Unit()"


@lru_cache(4096)
def wrap_char(char: str) -> Unit:
    """Wraps a character that stands for itself."""
    return Unit(char, _fold_char(char), char, char, "")


class EscapeReader:
    """Streaming reader of one level of escapes: `&lt;` becomes one unit."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._partial: list[Unit] = []

    def read(self, units: list[Unit], final: bool) -> list[Unit]:
        """Returns the units that are certain; all at the answer's end.

        An escape that the end of the piece may cut is held back.
        """
        units = self._partial + units
        self._partial = []
        result: list[Unit] = []
        position = 0
        for match in self._pattern.finditer("".join([unit.char for unit in units])):
            result += units[position : match.start()]
            position = match.end()
            group = units[match.start() : position]
            if match["cut"] is None:
                result.append(self._make_unit(match, group))
            elif final:
                result += group
            else:
                self._partial = group
        return result + units[position:]

    def _make_unit(self, match: re.Match[str], group: list[Unit]) -> Unit:
        char, escape = self._decode(match)
        text = char if self._pattern is JSON_ESCAPES else "".join([unit.char for unit in group])
        return Unit(char, _fold_char(char), "".join([unit.raw for unit in group]), text, escape)

    def _decode(self, match: re.Match[str]) -> tuple[str, EscapeKind]:
        groups = match.groupdict()
        if groups["hex"]:
            return chr(int(groups["hex"], 16)), "json" if self._pattern is TEXT_ESCAPES else ""
        if letter := groups.get("letter"):
            return _ESCAPE_LETTERS.get(letter, letter), ""
        if mark := groups.get("mark"):
            return mark, "markdown"
        # `unescape` returns nothing for numbers of no character, such as &#1;.
        return html.unescape(f"&{groups['entity']};")[:1] or "\ufffd", "html"


def decode_text(text: str) -> str:
    """Decodes the escapes of a text and folds it, whitespace unchanged."""
    return "".join(
        [
            unit.folded
            for unit in EscapeReader(TEXT_ESCAPES).read([wrap_char(char) for char in text], True)
        ]
    )
