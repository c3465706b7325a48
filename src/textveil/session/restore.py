"""Restore: placeholders and replaced names in an answer become what they stood for, in whole answers and in streams.

In: what stands for what, and the answer in pieces of any size. Out: the answer with the originals.
Not here: what is remembered, and what is ambiguous (`snapshot`); sessions on the disk (`store`).
"""

import codecs
import html
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple
from unicodedata import normalize

import regex

from textveil.errors import ConfigError, InputError
from textveil.text import casing_of

Escape = Literal["none", "json"]
"""How the answer is written: as it is read, or as the inside of a JSON string."""

SPACES = 8
"""How much more whitespace may stand where a key has a space, or between a placeholder and its brackets."""

UNDERSCORES = 3
"""How many underscores may emphasise a word: _Elena_, __Elena__, ___Elena___; in my_Elena, they join it."""

BEHIND = 8
"""Units before a place that may decide what is there."""

_DETERMINED = re.compile(r"(?<![a-z])(?:the|both|two|all) $")
_TYPOGRAPHIC = str.maketrans("’ʼ", "''")
_UNSPACED = regex.compile(r"(?V1)[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_WORDLY = regex.compile(r"(?V1)[\p{L}\p{M}\p{N}\u200C\u200D]")

# Each complete escape is no beginning of a longer one, so what is cut at the end of a piece decides nothing.
_JSON = re.compile(
    r"""(?s)\\u(?P<hex>[0-9a-fA-F]{4}) | \\(?P<letter>["\\/bfnrt]) | (?P<cut>\\(?:u[0-9a-fA-F]{0,3})?)\Z""",
    re.VERBOSE,
)
_TEXT = re.compile(
    r"""(?s)\\u(?P<hex>[0-9a-fA-F]{4}) | \\(?P<mark>[!-/:-@\[-`{-~])
    | &(?P<entity>\#[0-9]{1,6}|\#[xX][0-9a-fA-F]{1,5}|lt|gt|amp|quot|apos|nbsp);
    | (?P<cut>\\(?:u[0-9a-fA-F]{0,3})? | &(?:\#[0-9]{0,6}|\#[xX][0-9a-fA-F]{0,5}|[a-z]{0,4}))\Z""",
    re.VERBOSE,
)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def fold(text: str) -> str:
    """A text as it is compared: without case, composition, kinds of apostrophes and widths of whitespace."""
    return " ".join("".join(_folded(char) for char in normalize("NFC", text)).split())


@lru_cache(4096)
def _folded(char: str) -> str:
    if char.isspace():
        return " "
    return normalize("NFD", normalize("NFD", char).casefold()).translate(_TYPOGRAPHIC)


@lru_cache(4096)
def _script(char: str) -> str:
    """The kind of script of a letter or digit, with or without spaces between words; "" for all other characters."""
    if not _WORDLY.match(char):
        return ""
    return "unspaced" if _UNSPACED.match(char) else "spaced"


# ---- what stands for what --------------------------------------------------------------------------------------------


class Key(NamedTuple):
    """Something to look for. Secret: it holds an original.

    Args:
        shown: how it was released.
        original: what it stands for; None where that is ambiguous, and the answer's own words stay.
        kind: a placeholder stands anywhere, others only as whole words; `bare` is a placeholder without brackets, which
            must be written as it was released; a plural has a determiner before it.
    """

    shown: str
    original: str | None
    kind: Literal["placeholder", "bare", "name", "plural"]


class Node:
    """A node in the tree of all folded keys; `key` is the key that ends here."""

    __slots__ = ("children", "key")

    def __init__(self) -> None:
        self.children: dict[str, Node] = {}
        self.key: Key | None = None


def tree(placeholders: Mapping[str, str], names: Iterable[Key], said: frozenset[str]) -> Node:
    """The tree of keys to look for.

    Args:
        placeholders: their values by placeholder, `<TYPE_1>`.
        names: the replaced names; no two have the same `shown` when folded.
        said: folded words that were released as they stood, so that they cannot be the plural of a name.
    """
    root = Node()
    names = list(names)
    taken = said | {fold(key.shown) for key in names}
    for key in names:
        _grow(root, key)
        shown, original = key.shown, key.original
        if original is not None and shown.isalpha() and fold(_plural(shown)) not in taken:
            _grow(root, Key(_plural(shown), _plural(original), "plural"))
    for placeholder, value in placeholders.items():
        _grow(root, Key(placeholder, value, "placeholder"))
        _grow(root, Key(placeholder[1:-1], value, "bare"))
    return root


def _grow(root: Node, key: Key) -> None:
    node = root
    for char in fold(key.shown):
        node = node.children.setdefault(char, Node())
    node.key = key


def _plural(name: str) -> str:
    ending = "es" if name.lower().endswith(("s", "x", "z", "ch", "sh")) else "s"
    return name + (ending.upper() if casing_of(name) == "upper" else ending)


# ---- the answer ------------------------------------------------------------------------------------------------------


class Unit(NamedTuple):
    """One character of the answer.

    Args:
        char: which.
        folded: how it is compared; one letter may become several.
        raw: how it is written: `&lt;` for <.
        escape: what kind of writing that is.
    """

    char: str
    folded: str
    raw: str
    escape: Literal["", "json", "html", "markdown"]


@lru_cache(4096)
def _plain(char: str) -> Unit:
    return Unit(char, _folded(char), char, "")


class Escapes:
    """Reads escapes of one level in a stream of units: what `&lt;` stands for becomes one unit."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._cut: list[Unit] = []

    def read(self, units: list[Unit], final: bool) -> list[Unit]:
        """The units that are certain after these; at the end of the answer, all."""
        units = self._cut + units
        self._cut = []
        read: list[Unit] = []
        done = 0
        for match in self._pattern.finditer("".join([unit.char for unit in units])):
            read += units[done : match.start()]
            done = match.end()
            whole = units[match.start() : done]
            if match["cut"] is None:
                read.append(self._unit(match, "".join([unit.raw for unit in whole])))
            elif final:
                read += whole
            else:
                self._cut = whole
        return read + units[done:]

    def _unit(self, match: re.Match[str], raw: str) -> Unit:
        found = match.groupdict()
        if found["hex"]:
            return _escaped(chr(int(found["hex"], 16)), raw, "json" if self._pattern is _TEXT else "")
        if letter := found.get("letter"):
            return _escaped(_LETTERS.get(letter, letter), raw, "")
        if mark := found.get("mark"):
            return _escaped(mark, raw, "markdown")
        return _escaped(html.unescape(f"&{found['entity']};")[:1] or "\ufffd", raw, "html")


def _escaped(char: str, raw: str, escape: Literal["", "json", "html", "markdown"]) -> Unit:
    return Unit(char, _folded(char), raw, escape)


class Restorer:
    """Restores an answer that comes in pieces; the outputs, joined, do not depend on where it was cut.

    It holds back what may yet become a key, the longest key and a few characters at most, and shows no text in its
    repr. For one answer and one thread.

    Args:
        root: what is looked for.
        escape: with "json", the answer is the inside of a JSON string, and originals are written as such.
    """

    def __init__(self, root: Node, escape: Escape = "none") -> None:
        if escape not in ("none", "json"):
            raise ConfigError("escape must be none or json")
        self._root = root
        self._json = Escapes(_JSON) if escape == "json" else None
        self._text = Escapes(_TEXT)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._units: list[Unit] = []
        self._at = 0  # units before it are out already, and stay for their neighbours' sake
        self._final = False

    def __repr__(self) -> str:
        return f"Restorer({len(self._units) - self._at} characters held back)"

    def feed(self, piece: str) -> str:
        """The restored text that is certain after this piece, without what was returned before."""
        return self._read(piece)

    def feed_bytes(self, piece: bytes) -> str:
        """The same for a piece of the answer's UTF-8, cut anywhere; `InputError` if it is not UTF-8."""
        return self._read(self._decoded(piece))

    def close(self) -> str:
        """The rest of the restored text, at the end of the answer."""
        rest = self._decoded(b"", final=True)
        self._final = True
        return self._read(rest)

    def _decoded(self, piece: bytes, *, final: bool = False) -> str:
        try:
            return self._decoder.decode(piece, final)
        except UnicodeDecodeError:
            pass
        # Raised out here, because the other error holds the bytes.
        raise InputError("the answer is not UTF-8; decode it first")

    def _read(self, piece: str) -> str:
        units = [_plain(char) for char in piece]
        if self._json is not None:
            units = self._json.read(units, self._final)
        self._units += self._text.read(units, self._final)
        units, children, out = self._units, self._root.children, []
        while self._at < len(units):
            end, key = self._at + 1, None
            if units[self._at].folded[0] in children:
                end, key, certain = self._longest()
                if not certain:
                    break
            found = units[self._at : end]
            if key is None or key.original is None:
                out += [unit.raw for unit in found]
            else:
                out.append(self._spell(key, key.original, found))
            self._at = end
        excess = max(0, self._at - BEHIND)
        del units[:excess]
        self._at -= excess
        return "".join(out)

    def _longest(self) -> tuple[int, Key | None, bool]:
        """The longest key that stands at `_at`: where it ends, which it is, and whether no further text changes that.

        Without one, the end is after one unit.
        """
        units, end, key = self._units, self._at + 1, None
        if units[self._at].char != "<" and not self._begins():
            return end, None, True
        node, i, spaces, last = self._root, self._at, 0, ""
        while node.children:
            if i == len(units):
                return end, key, self._final
            folded = units[i].folded
            step = _step(node, folded)
            if step is None:
                # Whitespace may be wider than in the key, and stand inside the brackets.
                if folded != " " or spaces == SPACES or not (last in ("<", " ") or ">" in node.children):
                    break
                i, spaces = i + 1, spaces + 1
                continue
            node, i, last = step, i + 1, folded
            if node.key is not None:
                fits = self._fits(node.key, i)
                if fits is None:
                    return end, key, False
                if fits:
                    end, key = i, node.key
        return end, key, True

    def _fits(self, key: Key, end: int) -> bool | None:
        """Whether the units up to `end` are this key, and not a part of something else; None if that is not certain."""
        if key.kind == "placeholder":
            return True
        if key.kind == "bare" and "".join([unit.char for unit in self._units[self._at : end]]) != key.shown:
            return False
        if key.kind == "plural" and not self._is_determined():
            return False
        return self._ends(end)

    def _begins(self) -> bool:
        """Whether a word can begin at `_at`."""
        i = self._at
        while i > 0 and self._at - i < UNDERSCORES and self._units[i - 1].char == "_":
            i -= 1
        return i == 0 or not _glued(self._units[self._at].char, self._units[i - 1].char)

    def _ends(self, end: int) -> bool | None:
        """Whether a word can end before `end`; None if that is not certain."""
        i = end
        while i < len(self._units) and i - end < UNDERSCORES and self._units[i].char == "_":
            i += 1
        if i == len(self._units):
            return True if self._final else None
        return not _glued(self._units[end - 1].char, self._units[i].char)

    def _is_determined(self) -> bool:
        before = self._units[max(0, self._at - BEHIND) : self._at]
        return _DETERMINED.search("".join([unit.folded for unit in before])) is not None

    def _spell(self, key: Key, original: str, found: list[Unit]) -> str:
        if key.kind in ("name", "plural"):
            original = _cased(original, key.shown, "".join([unit.char for unit in found]))
        elif found[0].escape == "markdown" and self._at > 0 and _continues_path(self._units[self._at - 1].char):
            original = "\\" + original
        escapes = {unit.escape for unit in found}
        if "html" in escapes:
            original = html.escape(original)
        for _ in range(("json" in escapes) + (self._json is not None)):
            original = json.dumps(original, ensure_ascii=False)[1:-1]
        return original


def _step(node: Node, folded: str) -> Node | None:
    for char in folded:
        following = node.children.get(char)
        if following is None:
            return None
        node = following
    return node


def _glued(edge: str, neighbour: str) -> bool:
    """Whether the character beside a key, past any underscores, makes the key part of a longer word."""
    return neighbour == "_" or _script(edge) == _script(neighbour) != ""


def _continues_path(char: str) -> bool:
    r"""Whether a backslash behind this character is one of a path, C:\Users\<PERSON_1>, and no escape."""
    return char in ":\\" or _script(char) != ""


def _cased(original: str, shown: str, found: str) -> str:
    r"""The original as it stood if the answer wrote the name as it was released, else in the answer's case."""
    casing = casing_of(found)
    if casing == casing_of(shown):
        return original
    if casing == "title":
        return original if casing_of(original) == "title" else original.title()
    return original.upper() if casing == "upper" else original.lower()
