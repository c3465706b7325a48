"""Restoring: placeholders and replaced names in answers become originals, whole or streamed.

In: a tree of keys with their originals, and the answer in pieces of any size. Out: the answer with
the originals.
Not here: what is remembered, and what is ambiguous (`snapshot`); sessions on the disk (`store`).
"""

import codecs
import json
import re
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from textveil.detect import may_be_name
from textveil.errors import ConfigError, InputError
from textveil.session import sentences
from textveil.session.placeholders import DIGITS, named
from textveil.session.quoting import (
    BEHIND,
    Place,
    Quoting,
    is_plain,
    markup,
    spelled,
    with_entities,
)
from textveil.session.reading import JSON, TEXT, Escapes, Unit, fold, plain, script
from textveil.session.targets import (
    Insertion,
    TargetCollector,
    TargetFinder,
    Trusted,
    may_hold_target,
)
from textveil.text import casing_of, is_public, lexicon

Escape = Literal["none", "json"]
"""Escaping of the answer: none, or the inside of a JSON string."""

SPACES = 8
"""Most extra whitespace in a key's space, or inside a placeholder's brackets."""

UNDERSCORES = 3
"""Most underscores that emphasise a word: _Elena_, __Elena__, ___Elena___.

In my_Elena, they join it to the word before.
"""

SENTENCE = 300
"""Most characters of a sentence to read on either side of names.

In a longer sentence the name is left unchanged.

In a longer sentence the name is left as it is.
"""

LONGEST = 40
"""Most letters of a word beside a name to consider."""

Where = Literal["text", "everywhere"]
"""Places for originals: outside of foreign addresses, or everywhere.

An address is foreign to an original that did not occur in it when the text was protected.
"""

_LINES = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_POSSESSIVE = re.compile(r"['’ʼ]+[sS]?\Z|\A['’ʼ]+")
_ENDS_VALUE = re.compile(r"[ \t\r]*(?:\Z|\n|[,\]}]|[ \t]#)")
_NUMBERED = re.compile(r"_\d")
_DETERMINED = re.compile(r"(?<![a-z])(?:the|both|two|all) $")


# ---- what stands for what ------------------------------------------------------------------------


class Key(NamedTuple):
    """A released form to look for, with its original. Secret.

    Args:
        shown: the released form.
        original: the original; None where that is ambiguous, and the answer's words stay.
        kind: "placeholder" matches anywhere, all others only as whole words; "bare" is a
            placeholder without brackets, which must be written as it was released; "plural" needs a
            determiner before it.
    """

    shown: str
    original: str | None
    kind: Literal["placeholder", "bare", "name", "plural"]

    def __repr__(self) -> str:
        return f"Key({self.kind})"

    @property
    def type(self) -> str:
        """The type of a placeholder's value, "PERSON"; "" for names."""
        return _NUMBERED.split(self.shown.strip('<>"'))[0] if self.is_placeholder else ""

    @property
    def is_placeholder(self) -> bool:
        """True for a placeholder, with brackets or without."""
        return self.kind in ("placeholder", "bare")


class Node:
    """Node in the trie of folded keys; `key` ends here, if any."""

    __slots__ = ("children", "key")

    def __init__(self) -> None:
        self.children: dict[str, Node] = {}
        self.key: Key | None = None


def tree(placeholders: Mapping[str, str], names: Iterable[Key], said: Container[str]) -> Node:
    """Builds the trie of keys to look for.

    Args:
        placeholders: their values by placeholder, `<TYPE_1>`, or `"<TYPE_1>"` for values that had
            no quotation marks.
        names: the replaced names; no two have the same `shown` when folded.
        said: folded words that were released unchanged, so that they cannot be the plural of a
            name.
    """
    root = Node()
    names = list(names)
    taken = {fold(key.shown) for key in names}
    for key in names:
        _grow(root, key)
        shown, original = key.shown, key.original
        if original is not None and shown.isalpha():
            plural = fold(_pluralize(shown))
            if plural not in taken and plural not in said:
                _grow(root, Key(_pluralize(shown), _pluralize(original), "plural"))
    for placeholder, value in placeholders.items():
        _grow(root, Key(placeholder, value, "placeholder"))
        if placeholder.startswith("<"):
            _grow(root, Key(placeholder[1:-1], value, "bare"))
    return root


def _grow(root: Node, key: Key) -> None:
    node = root
    for char in fold(key.shown):
        following = node.children.get(char)
        if following is None:
            following = node.children[char] = Node()
        node = following
    node.key = key


def numbered(root: Node, types: Iterable[str], loaded: Callable[[str], Node]) -> Node:
    """Adds placeholders of some types, loaded when their number is read.

    So the trie stays small however many placeholders there are.

    Args:
        root: the trie of all other keys; it is changed.
        types: types of placeholders.
        loaded: loads the trie of the placeholders that begin with a name: `PERSON_1`.
    """
    for type_ in sorted(types):  # EMAIL before EMAIL_ADDRESS, which extends its node
        for begin in ("<", '"<', ""):
            written = fold(f"{begin}{type_}_")
            node = root
            for char in written[:-1]:
                node = node.children.setdefault(char, Node())
            node.children["_"] = _Numbered(type_, written, "", loaded)
    return root


class _Numbered(Node):
    """Node behind a placeholder type, `<person_`, or a digit of its number."""

    __slots__ = ()

    def __init__(
        self, type_: str, written: str, digits: str, loaded: Callable[[str], Node]
    ) -> None:
        super().__init__()
        node: Node | None = loaded(named(type_, int(digits))) if digits else None
        for char in written if node else "":
            node = node.children.get(char) if node else None
        self.key = node.key if node else None
        self.children = _Digits(node.children if node else {}, type_, written, digits, loaded)


class _Digits(dict[str, Node]):
    """Child nodes that are created when a digit asks for them."""

    def __init__(
        self,
        known: Mapping[str, Node],
        type_: str,
        written: str,
        digits: str,
        loaded: Callable[[str], Node],
    ) -> None:
        super().__init__({char: node for char, node in known.items() if not char.isdigit()})
        self._of = type_, written, digits, loaded

    def get(self, char: str, default: Any = None) -> Any:
        """Returns the child node of a character, creating it for a digit."""
        type_, written, digits, loaded = self._of
        begins = char in "0123456789" and (digits or char != "0")
        if begins and char not in self and len(digits) < DIGITS:
            self[char] = _Numbered(type_, written + char, digits + char, loaded)
        return super().get(char, default)

    def __bool__(self) -> bool:
        return True


def _pluralize(name: str) -> str:
    ending = "es" if name.lower().endswith(("s", "x", "z", "ch", "sh")) else "s"
    return name + (ending.upper() if casing_of(name) == "upper" else ending)


# ---- the answer ----------------------------------------------------------------------------------


class Restorer:
    r"""Restorer of an answer in pieces, independent of where it is cut.

    An original that would be joined into an address in which it did not occur is left out, because
    a client may fetch that address without being asked; `targets` defines those addresses.

    It holds back what may yet become a key or a known target, at most the longest of them and a few
    characters, and shows no text in its repr. For one answer and one thread.

    A replaced name beside a word that the session never released, and that may be another part of a
    name, is another name, and stays: "Stuart Picasso" is not the "Stuart" who replaces Robert. A
    one-word name that is not beside another name of the session stays wherever its sentence has
    such a word. So the restorer waits for the rest of the sentence, at most `SENTENCE` characters.

    Args:
        root: trie of the keys to look for.
        escape: with "json", the answer is the inside of a JSON string, and originals are escaped
            for it.
        where: with "everywhere", originals are put in foreign targets, too.
        trusted: targets and hosts into which originals may be joined.
        said: folded words that were released unchanged.
        stood: by value, the kinds of places (`quoting`) where it occurred, for values whose
            spelling depends on the place.
        exact: True if originals keep their first spelling wherever that breaks no string: arguments
            of tools need it, because they name the bytes of files. Otherwise an escape,
            `Ren\u00e9`, comes back as characters in prose. By default True with "json".
        value: True if the answer is one value, an argument of a tool, which is an address as a
            whole if it begins like one.

    Attributes:
        left: number of placeholders and names that were left in targets so far.
        longer: number of names that were left because they are a part of another name.
    """

    def __init__(
        self,
        root: Node,
        escape: Escape = "none",
        where: Where = "text",
        trusted: Trusted | None = None,
        said: Container[str] = frozenset(),
        stood: Mapping[str, Sequence[str]] = MappingProxyType({}),
        exact: bool | None = None,
        *,
        value: bool = False,
    ) -> None:
        if escape not in ("none", "json"):
            raise ConfigError("escape must be none or json")
        if where not in ("text", "everywhere"):
            raise ConfigError("where must be text or everywhere")
        self.left = self.longer = 0
        self._said = said
        self._stood, self._exact = stood, escape == "json" if exact is None else exact
        self._quoting = Quoting()
        self._dropped = False  # whether units before the present ones were dropped
        # The end of the last key; a word that ends there is known.
        self._key_end = -1
        self._root = root
        self._json = Escapes(JSON) if escape == "json" else None
        self._text = Escapes(TEXT)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._units: list[Unit] = []
        self._at = 0  # units before it are read, and stay as context
        self._final = False
        # Output that is not decided yet: its insertion, received and restored form.
        self._waiting = deque[tuple[Insertion | None, str, str]]()
        # The text with its escapes as written, and with its escapes read, may have different
        # targets; so a second finder reads the other form from the first escape on.
        self._finders: list[TargetFinder] = []
        if where == "text" and root.children:
            self._finders = [self._made(trusted or Trusted())]
        for finder in self._finders if value else ():
            finder.begin_value()

    def _made(self, trusted: Trusted) -> TargetFinder:
        return TargetFinder(trusted)

    def __repr__(self) -> str:
        held = len(self._units) - self._at + sum(len(came) for _, came, _ in self._waiting)
        return f"Restorer({held} characters held back)"

    def feed(self, piece: str) -> str:
        """Returns the newly certain part of the restored text.

        Raises:
            InputError: the piece is no string.
        """
        if not isinstance(piece, str):
            raise InputError(
                f"the answer must be a string, got {type(piece).__name__}; decode it first"
            )
        return self._read(piece)

    def feed_bytes(self, piece: bytes) -> str:
        """Returns the newly certain text after UTF-8 bytes, cut anywhere.

        Raises:
            InputError: the bytes are not UTF-8.
        """
        return self._read(self._decode(piece))

    def close(self) -> str:
        """Returns the rest of the restored text, at the answer's end."""
        rest = self._decode(b"", final=True)
        self._final = True
        return self._read(rest)

    def _decode(self, piece: bytes, *, final: bool = False) -> str:
        try:
            return self._decoder.decode(piece, final)
        except UnicodeDecodeError:
            pass
        # Raised out here, because the decoder's error holds the bytes.
        raise InputError("the answer is not UTF-8; decode it first")

    def _read(self, piece: str) -> str:
        units = [plain(char) for char in piece]
        if self._json is not None:
            units = self._json.read(units, self._final)
        self._units += self._text.read(units, self._final)
        while self._at < len(self._units) and (self._pass_dull() or self._pass_next()):
            pass
        if self._final and self._at == len(self._units):
            for finder in self._finders:
                finder.close()
        excess = max(0, self._at - SENTENCE)
        self._dropped |= excess > 0
        del self._units[:excess]
        self._at -= excess
        self._key_end -= excess
        return "".join(self._pop_decided())

    def _pass_dull(self) -> bool:
        """Reads characters that can begin no key; False if there are none."""
        end = self._find_dull_end(self._at)
        if passed := self._units[self._at : end]:
            text = "".join([unit.char for unit in passed])
            self._waiting.append((None, "", "".join([unit.raw for unit in passed])))
            self._find(text, passed)
            self._pass(passed, text)
            self._at = end
        return bool(passed)

    def _pass_next(self) -> bool:
        """Reads a key or character; False if further text decides about it."""
        end, key, certain = self._find_next(self._at)
        units = self._units[self._at : end]
        if not certain:
            return False
        if key is None or key.original is None:
            self._leave(units)
        elif not self._take(key, key.original, units):
            return False
        self._pass(units, "".join([unit.read for unit in units]))
        self._key_end = self._key_end if key is None else end
        self._at = end
        return True

    def _find(self, text: str, passed: list[Unit]) -> None:
        """Passes text to the target finders, split at quotation marks of JSON.

        A quotation mark of JSON begins or ends a value, which is a separate text.
        """
        begin = 0
        for i, unit in enumerate(passed if self._json is not None and '"' in text else ()):
            if unit.raw == '"':
                for finder in self._finders:
                    finder.pass_text(text[begin:i])
                    finder.begin_value()
                begin = i + 1
        for finder in self._finders:
            finder.pass_text(text[begin:])

    def _leave(self, found: list[Unit]) -> None:
        """Reads units that are no key and stay unchanged."""
        self._fork(found)
        texts = "".join([unit.read for unit in found]), "".join([unit.char for unit in found])
        for finder, text in zip(self._finders, texts, strict=False):
            finder.pass_text(text)
        self._waiting.append((None, "", "".join([unit.raw for unit in found])))

    def _take(self, key: Key, original: str, found: list[Unit]) -> bool:
        """Reads a key and restores it, unless another name contains it.

        Returns:
            False if further text decides that, or how the original is written.
        """
        alone = self._stands_alone(key, self._at, self._at + len(found))
        if alone is False:
            self._leave(found)
            self.longer += 1
            return True
        if alone is None:
            return False
        restored = self._spell(key, original, found)
        if restored is None:
            return False
        self._fork(found)
        if self._finders and found[0].escape == "markdown":
            self._finders[0].pass_text("\\")  # readers of addresses take a backslash for a slash
        place = Insertion(key.type)
        for finder in self._finders:
            finder.pass_original(original, place)
        self._waiting.append((place, "".join([unit.raw for unit in found]), restored))
        return True

    def _fork(self, found: list[Unit]) -> None:
        """Adds a second target finder at the first escaped unit.

        From there on, the text as it is written and the text with its escapes read differ.
        """
        if len(self._finders) == 1 and any(unit.read != unit.char for unit in found):
            self._finders.append(self._finders[0].fork())

    def _pop_decided(self) -> Iterator[str]:
        """Yields text up to the first undecided place."""
        while self._waiting and not ((place := self._waiting[0][0]) and place.waits):
            place, received, restored = self._waiting.popleft()
            left = place is not None and not place.allowed
            self.left += left
            yield received if left else restored

    def _find_dull_end(self, at: int) -> int:
        """Finds the end of the characters at which no key can begin."""
        begins, word = self._root.children, at > 0 and _is_word_char(self._units[at - 1].char)
        for i in range(at, len(self._units)):
            char, folded, _, _, escape = self._units[i]
            before, word = word, _is_word_char(char)
            if escape or (folded[0] in begins and not (word and before)):
                return i
        return len(self._units)

    def _find_next(self, at: int) -> tuple[int, Key | None, bool]:
        """Finds the key at a unit: its end, the key, and certainty."""
        first = self._units[at]
        if first.folded[0] in self._root.children and (first.char == "<" or self._begins(at)):
            return self._find_longest(at)
        return at + 1, None, True

    def _find_longest(self, at: int) -> tuple[int, Key | None, bool]:
        """Finds the longest key at a unit: its end, key, and certainty.

        Without one, the end is after one unit.
        """
        units, end, key = self._units, at + 1, None
        node, i, spaces, last = self._root, at, 0, ""
        while node.children:
            if i == len(units):
                return end, key, self._final
            folded = units[i].folded
            step = _step(node, folded)
            if step is None:
                if folded != " " or spaces == SPACES or not _may_be_wider(node, last):
                    break
                i, spaces = i + 1, spaces + 1
                continue
            node, i, last = step, i + 1, folded
            fits = node.key is not None and self._fits(node.key, at, i)
            if fits is None:
                return end, key, False
            end, key = (i, node.key) if fits else (end, key)
        return end, key, True

    def _fits(self, key: Key, at: int, end: int) -> bool | None:
        """Says whether units match a key as whole words; None if uncertain."""
        if key.kind == "placeholder":
            return True
        if key.kind == "bare" and "".join([unit.char for unit in self._units[at:end]]) != key.shown:
            return False
        if key.kind == "plural" and not self._is_determined(at):
            return False
        return self._ends(end)

    def _begins(self, at: int) -> bool:
        """Says whether a word can begin at a unit."""
        i = at
        while i > 0 and at - i < UNDERSCORES and self._units[i - 1].char == "_":
            i -= 1
        return i == 0 or not _is_glued(self._units[at].char, self._units[i - 1].char)

    def _ends(self, end: int) -> bool | None:
        """Says whether a word can end before `end`; None if uncertain."""
        i = self._find_end(end, UNDERSCORES - 1, "_".__eq__)
        if i == len(self._units):
            return True if self._final else None
        return not _is_glued(self._units[end - 1].char, self._units[i].char)

    def _is_determined(self, at: int) -> bool:
        before = self._units[max(0, at - BEHIND) : at]
        return _DETERMINED.search("".join([unit.folded for unit in before])) is not None

    def _stands_alone(self, key: Key, at: int, end: int) -> bool | None:
        """Says whether a key is in no other name; None if uncertain."""
        if key.kind not in ("name", "plural"):
            return True
        shouted = all(unit.char == unit.char.upper() for unit in self._units[at:end])
        before = self._word_before(at)
        if self._is_behind_name(before, key, shouted):
            return False
        beside = self._is_before_none(end, shouted)
        if not beside or not sentences.may_be_part(key.shown):
            return beside
        return self._is_alone_in_sentence(at, end, shouted)

    def _is_behind_name(self, before: str, key: Key, shouted: bool) -> bool:
        """Says whether the word before makes a key part of another name."""
        is_known = self._was_said(before) and not is_public(
            before
        )  # a public word such as "will" says nothing
        if before[:1].isupper() and not is_known and sentences.may_be_given(before, key.shown):
            return True
        if not self._is_stranger(before, shouted):
            return False
        return bool(_marks(before) & (lexicon.NAME | lexicon.PUBLIC))

    def _is_alone_in_sentence(self, at: int, end: int, shouted: bool) -> bool | None:
        """Says whether a key's sentence has no unknown name; None if uncertain."""
        sentence = self._sentence(at, end)
        if sentence is None:
            return None
        text, start, alone = sentence
        done, name = start, self._word(at, end)
        for place, word in sentences.capitalised(text):
            begin = start + place
            if begin < done or begin == at:
                continue
            stop, other, certain = self._find_next(begin)
            if not certain:
                return None
            if other is not None:
                done = stop
                if _is_joined(self._word(min(end, done), max(at, begin))):
                    return True  # the name is whole
            elif not self._is_word(word, name, shouted):
                beside = begin >= end and _is_joined(self._word(end, begin))
                first, language = sentences.is_first(text, place), sentences.language(text)
                alone &= not sentences.is_name_word(word, language, first=first, beside=beside)
        return alone

    def _sentence(self, at: int, end: int) -> tuple[str, int, bool] | None:
        """Returns a key's sentence, its offset, and whether it is whole.

        None if later text decides where the sentence ends.
        """
        before, behind = self._word(max(0, at - SENTENCE), at), self._word(end, end + SENTENCE + 1)
        start, stop = sentences.began(before), sentences.ends(behind)
        if stop < 0 and not self._final and len(behind) <= SENTENCE:
            return None
        long = stop < 0 and len(behind) > SENTENCE
        long |= start < 0 and len(before) == SENTENCE and (at > SENTENCE or self._dropped)
        before, behind = before[max(0, start) :], behind if stop < 0 else behind[:stop]
        return before + self._word(at, end) + behind, at - len(before), not long

    def _is_word(self, word: str, own: str, shouted: bool) -> bool:
        """Says whether a capitalised word is known or no name.

        It is in capitals, was released before, or is a German genitive of the name.
        """
        return _is_loud(word, shouted) or self._was_said(word) or fold(word) == fold(own) + "s"

    def _was_said(self, word: str) -> bool:
        return fold(word) in self._said or fold(_POSSESSIVE.sub("", word)) in self._said

    def _is_before_none(self, end: int, shouted: bool) -> bool | None:
        """Says whether no unknown name follows a key; None if uncertain."""
        begin = self._find_end(end, SPACES, _can_join_names)
        if begin == len(self._units):
            return self._final or None
        if begin == end or not self._units[begin].char.isupper():
            return True
        stop = self._find_end(begin, LONGEST, _is_in_name)
        if stop == len(self._units) and not self._final:
            return None
        if not self._is_stranger(_POSSESSIVE.sub("", self._word(begin, stop)), shouted):
            return True
        _, other, certain = self._find_next(begin)
        return None if not certain else other is not None

    def _find_end(self, begin: int, most: int, fits: Callable[[str], bool]) -> int:
        """Finds the end of fitting characters, after more than `most` at latest."""
        end = begin
        while end < len(self._units) and end - begin <= most and fits(self._units[end].char):
            end += 1
        return end

    def _word_before(self, at: int) -> str:
        """Returns the word before a key, joined by spaces or a hyphen.

        "" where that is a key, too.
        """
        stop = at
        while stop > 0 and at - stop <= SPACES and _can_join_names(self._units[stop - 1].char):
            stop -= 1
        if stop in (at, self._key_end):
            return ""
        begin = stop
        while begin > 0 and _is_in_name(self._units[begin - 1].char):
            begin -= 1
        word = self._word(begin, stop)
        return "" if _POSSESSIVE.search(word) else word

    def _word(self, begin: int, stop: int) -> str:
        return "".join([unit.char for unit in self._units[begin:stop]])

    def _is_stranger(self, word: str, shouted: bool) -> bool:
        """Says whether a word may be part of a name unknown here.

        Args:
            word: the word beside a key.
            shouted: True if the key is written in capitals throughout.
        """
        if not word[:1].isupper() or len(word) > LONGEST or fold(word) in self._said:
            return False
        if _is_loud(word, shouted):
            return False
        return may_be_name(word) and not _marks(word) & lexicon.ORDINARY

    def _spell(self, key: Key, original: str, found: list[Unit]) -> str | None:
        """Writes an original in place of a key; None if uncertain."""
        if key.kind in ("name", "plural"):
            original = _match_case(original, key.shown, "".join([unit.char for unit in found]))
        place, escapes = Place(), {unit.escape for unit in found}
        slash = "\\" if key.is_placeholder and self._is_in_path(found[0]) else ""
        if not is_plain(original):
            place = self._quoting.place()
            quoted = self._quote(original, place, "html" in escapes, len(found))
            if quoted is None:
                return None
            original = quoted
        original = slash + original
        for _ in range(("json" in escapes and not place.literals) + (self._json is not None)):
            original = json.dumps(original, ensure_ascii=False)[1:-1]
        return original

    def _quote(self, original: str, place: Place, in_html: bool, length: int) -> str | None:
        """Writes an original that strings or HTML escape; None if uncertain."""
        stood = self._stood.get(original, ())
        whole = place.asks and self._is_whole(self._at + length)
        if whole is None:
            return None
        if in_html:
            units = self._units[max(0, self._at - BEHIND) : self._at]
            before = "".join([unit.read for unit in units])
            original = with_entities(original, markup(before[-BEHIND:]), stood)
        return spelled(original, place, stood, exact=self._exact, whole=whole)

    def _is_in_path(self, first: Unit) -> bool:
        r"""Says whether a unit's backslash belongs to a path, C:\Users\<PERSON_1>."""
        before = self._units[self._at - 1].char if self._at > 0 else ""
        inside = before != "" and (before in ":\\" or script(before) != "")
        return inside and first.escape == "markdown"

    def _is_whole(self, end: int) -> bool | None:
        """Says whether a plain YAML value ends here; None if uncertain."""
        behind = self._word(end, end + BEHIND)
        if not behind.strip(" \t\r") and not self._final and len(behind) < BEHIND:
            return None
        return _ENDS_VALUE.match(behind) is not None

    def _pass(self, units: Sequence[Unit], text: str) -> None:
        """Updates the quoting state; each string of outer JSON is separate."""
        if self._json is None or '"' not in text:
            self._quoting.feed(text)
            return
        for unit in units:
            if unit.raw == '"':
                self._quoting = Quoting()
            else:
                self._quoting.feed(unit.read)


class _Collector(Restorer):
    """Collector of targets in a release that originals join.

    Args:
        root: trie of the keys to look for.
    """

    def find(self, text: str) -> set[str]:
        """Returns the targets, with their originals."""
        self._final = True
        self._read(text)
        return set().union(
            *(finder.found for finder in self._finders if isinstance(finder, TargetCollector))
        )

    def _made(self, trusted: Trusted) -> TargetFinder:
        return TargetCollector()


class KeyFinder(Restorer):
    """Finder of the places that restoring would change, also in targets.

    Args:
        root: trie of the keys to look for.
    """

    def __init__(self, root: Node) -> None:
        super().__init__(root, where="everywhere")
        self.found: list[tuple[int, int]] = []

    def find(self, text: str) -> list[tuple[int, int]]:
        """Returns the places as start and end offsets in characters."""
        self._final = True
        units = self._text.read([plain(char) for char in text], True)
        self._starts = [0]
        for unit in units:
            self._starts.append(self._starts[-1] + len(unit.raw))
        self._read(text)
        return self.found

    def _stands_alone(self, key: Key, at: int, end: int) -> bool | None:
        return True

    # In the release, words that underscores join to a key may become placeholders, and no longer
    # belong to its word.

    def _begins(self, at: int) -> bool:
        return at == 0 or not _are_joined(self._units[at].char, self._units[at - 1].char)

    def _ends(self, end: int) -> bool | None:
        return end == len(self._units) or not _are_joined(
            self._units[end - 1].char, self._units[end].char
        )

    def _spell(self, key: Key, original: str, found: list[Unit]) -> str | None:
        self.found.append((self._starts[self._at], self._starts[self._at + len(found)]))
        return ""


def targets_in(text: str, placeholders: Mapping[str, str], names: Iterable[Key] = ()) -> set[str]:
    """Finds the targets of a release that contain originals, restored.

    Args:
        text: the release.
        placeholders: their values by placeholder.
        names: the replaced names in it.
    """
    names = list(names)
    if not (placeholders or names) or not may_hold_target(text):
        return set()
    root = tree(placeholders, names, frozenset())
    targets = _Collector(root).find(text)
    # The release may return in quotation marks, as a JSON value or an argument.
    if "\n" not in text and " " in text:
        targets |= _Collector(root).find(f'"{text}"')
    return targets


@lru_cache(4096)
def _marks(word: str) -> int:
    """Looks up the lexicon marks of one word."""
    return int(lexicon.marks([word], np.array([0, 1]))[0])


def _is_word_char(char: str) -> bool:
    """Says whether a character glues a following letter to its word.

    Quick and for ASCII only; False means that a key must be tried.
    """
    return char.isascii() and char.isalnum()


def _can_join_names(char: str) -> bool:
    """Says whether a character may join two parts of a name.

    A space or hyphen on one line does, a comma does not.
    """
    return char in "-\u2010\u2011" or (char.isspace() and char not in _LINES)


def _is_loud(word: str, shouted: bool) -> bool:
    """Says whether a word is in capitals throughout, unlike its name."""
    return not shouted and len(word) > 1 and word == word.upper()


def _is_joined(text: str) -> bool:
    """Says whether the text between two words joins them to one name."""
    return 0 < len(text) <= SPACES and all(map(_can_join_names, text))


def _is_in_name(char: str) -> bool:
    return script(char) == "spaced" or char in "'’ʼ"


def _step(node: Node, folded: str) -> Node | None:
    for char in folded:
        following = node.children.get(char)
        if following is None:
            return None
        node = following
    return node


def _may_be_wider(node: Node, last: str) -> bool:
    """Says whether the key allows more whitespace here than it has.

    That is behind its spaces, and inside its brackets.
    """
    return last in ("<", " ") or ">" in node.children


def _is_glued(edge: str, neighbour: str) -> bool:
    """Says whether a neighbour, past underscores, makes a key a longer word."""
    return neighbour == "_" or _are_joined(edge, neighbour)


def _are_joined(edge: str, neighbour: str) -> bool:
    """Says whether two characters belong to one word."""
    return script(edge) == script(neighbour) != ""


def _match_case(original: str, shown: str, found: str) -> str:
    r"""Returns the original unchanged if the released case was kept, else recased."""
    casing = casing_of(found)
    if casing == casing_of(shown):
        return original
    if casing == "title":
        return original if casing_of(original) == "title" else original.title()
    return original.upper() if casing == "upper" else original.lower()
