"""Restoring: placeholders and replaced names in answers become originals, whole or streamed.

In: a tree of keys with their originals, and the answer in pieces of any size. Out: the answer with
the originals.
Not here: what is remembered, and what is ambiguous (`snapshot`); sessions on the disk
(`session_file`).
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
from textveil.session import sentence_bounds
from textveil.session.escapes import (
    JSON_ESCAPES,
    TEXT_ESCAPES,
    EscapeReader,
    Unit,
    find_script,
    fold,
    wrap_char,
)
from textveil.session.link_targets import (
    Allowlist,
    Insertion,
    TargetCollector,
    TargetFinder,
    can_hold_target,
)
from textveil.session.placeholders import MAX_NUMBER_DIGITS, format_name
from textveil.session.quoting import (
    CONTEXT_CHARACTERS,
    Place,
    QuoteScanner,
    escape_entities,
    find_markup_kind,
    is_plain,
    spell_original,
)
from textveil.text import get_casing, is_public, lexicon

Escape = Literal["none", "json"]
"""Escaping of the answer: none, or the inside of a JSON string."""

MAX_SPACES = 8
"""Most extra whitespace in a key's space, or inside a placeholder's brackets."""

MAX_UNDERSCORES = 3
"""Most underscores that emphasise a word: _Elena_, __Elena__, ___Elena___.

In my_Elena, they join it to the word before.
"""

MAX_SENTENCE_CHARACTERS = 300
"""Most characters of a sentence to read on either side of names.

In a longer sentence the name is left unchanged.

In a longer sentence the name is left as it is.
"""

MAX_WORD_LETTERS = 40
"""Most letters of a word beside a name to consider."""

RestoreScope = Literal["text", "everywhere"]
"""Places for originals: outside of foreign addresses, or everywhere.

An address is foreign to an original that did not occur in it when the text was protected.
"""

_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_POSSESSIVE = re.compile(r"['’ʼ]+[sS]?\Z|\A['’ʼ]+")
_VALUE_END = re.compile(r"[ \t\r]*(?:\Z|\n|[,\]}]|[ \t]#)")
_NUMBER = re.compile(r"_\d")
_DETERMINER = re.compile(r"(?<![a-z])(?:the|both|two|all) $")


# ---- what stands for what ------------------------------------------------------------------------


class RestoreKey(NamedTuple):
    """A released form to look for, with its original. Secret.

    Args:
        form: the released form.
        original: the original; None where that is ambiguous, and the answer's words stay.
        kind: "placeholder" matches anywhere, all others only as whole words; "bare" is a
            placeholder without brackets, which must be written as it was released; "plural" needs a
            determiner before it; "value" is an invented identifier.
    """

    form: str
    original: str | None
    kind: Literal["placeholder", "bare", "name", "plural", "value"]

    def __repr__(self) -> str:
        return f"RestoreKey({self.kind})"

    @property
    def type(self) -> str:
        """The type of a placeholder's value, "PERSON"; "" for names."""
        return _NUMBER.split(self.form.strip('<>"'))[0] if self.is_placeholder else ""

    @property
    def is_placeholder(self) -> bool:
        """True for a placeholder, with brackets or without."""
        return self.kind in ("placeholder", "bare")


class Node:
    """Node in the trie of folded keys; `key` ends here, if any."""

    __slots__ = ("children", "key")

    def __init__(self) -> None:
        self.children: dict[str, Node] = {}
        self.key: RestoreKey | None = None


def build_trie(
    placeholders: Mapping[str, str], names: Iterable[RestoreKey], plain_words: Container[str]
) -> Node:
    """Builds the trie of keys to look for.

    Args:
        placeholders: their values by placeholder, `<TYPE_1>`, or `"<TYPE_1>"` for values that had
            no quotation marks.
        names: the replaced names; no two have the same `form` when folded.
        plain_words: folded words that were released unchanged, so that they cannot be the plural of
            a name.
    """
    root = Node()
    names = list(names)
    forms = {fold(key.form) for key in names}
    for key in names:
        _add_key(root, key)
        form, original = key.form, key.original
        if original is not None and form.isalpha():
            plural = fold(_pluralize(form))
            if plural not in forms and plural not in plain_words:
                _add_key(root, RestoreKey(_pluralize(form), _pluralize(original), "plural"))
    for placeholder, value in placeholders.items():
        _add_key(root, RestoreKey(placeholder, value, "placeholder"))
        if placeholder.startswith("<"):
            _add_key(root, RestoreKey(placeholder[1:-1], value, "bare"))
    return root


def _add_key(root: Node, key: RestoreKey) -> None:
    node = root
    for char in fold(key.form):
        following = node.children.get(char)
        if following is None:
            following = node.children[char] = Node()
        node = following
    node.key = key


def add_numbered(root: Node, types: Iterable[str], load_trie: Callable[[str], Node]) -> Node:
    """Adds placeholders of some types, loaded when their number is read.

    So the trie stays small however many placeholders there are.

    Args:
        root: the trie of all other keys; it is changed.
        types: types of placeholders.
        load_trie: loads the trie of the placeholders that begin with a name: `PERSON_1`.
    """
    for type_ in sorted(types):  # EMAIL before EMAIL_ADDRESS, which extends its node
        for opening in ("<", '"<', ""):
            prefix = fold(f"{opening}{type_}_")
            node = root
            for char in prefix[:-1]:
                node = node.children.setdefault(char, Node())
            node.children["_"] = _NumberNode(type_, prefix, "", load_trie)
    return root


class _NumberNode(Node):
    """Node behind a placeholder type, `<person_`, or a digit of its number."""

    __slots__ = ()

    def __init__(
        self, type_: str, prefix: str, digits: str, load_trie: Callable[[str], Node]
    ) -> None:
        super().__init__()
        node: Node | None = load_trie(format_name(type_, int(digits))) if digits else None
        for char in prefix if node else "":
            node = node.children.get(char) if node else None
        self.key = node.key if node else None
        self.children = _DigitNodes(node.children if node else {}, type_, prefix, digits, load_trie)


class _DigitNodes(dict[str, Node]):
    """Child nodes that are created when a digit asks for them."""

    def __init__(
        self,
        children: Mapping[str, Node],
        type_: str,
        prefix: str,
        digits: str,
        load_trie: Callable[[str], Node],
    ) -> None:
        super().__init__({char: node for char, node in children.items() if not char.isdigit()})
        self._origin = type_, prefix, digits, load_trie

    def get(self, char: str, default: Any = None) -> Any:
        """Returns the child node of a character, creating it for a digit."""
        type_, prefix, digits, load_trie = self._origin
        # No number begins with 0, so <PERSON_01> is no placeholder.
        is_digit = char in "0123456789" and (digits or char != "0")
        if is_digit and char not in self and len(digits) < MAX_NUMBER_DIGITS:
            self[char] = _NumberNode(type_, prefix + char, digits + char, load_trie)
        return super().get(char, default)

    # Never empty to a search, because children appear when they are asked for.
    def __bool__(self) -> bool:
        return True


def _pluralize(name: str) -> str:
    ending = "es" if name.lower().endswith(("s", "x", "z", "ch", "sh")) else "s"
    return name + (ending.upper() if get_casing(name) == "upper" else ending)


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
    such a word. So the restorer waits for the rest of the sentence, at most
    `MAX_SENTENCE_CHARACTERS` characters.

    Args:
        root: trie of the keys to look for.
        escape: with "json", the answer is the inside of a JSON string, and originals are escaped
            for it.
        where: with "everywhere", originals are put in foreign targets, too.
        allowlist: targets and hosts into which originals may be joined.
        plain_words: folded words that were released unchanged.
        place_kinds: by value, the kinds of places (`quoting`) where it occurred, for values whose
            spelling depends on the place.
        exact: True if originals keep their first spelling wherever that breaks no string: arguments
            of tools need it, because they name the bytes of files. Otherwise an escape,
            `Ren\u00e9`, comes back as characters in prose. By default True with "json".
        value: True if the answer is one value, an argument of a tool, which is an address as a
            whole if it begins like one.

    Attributes:
        blocked_count: number of placeholders and names that were left in targets so far.
        partial_count: number of names that were left because they are a part of another name.
    """

    def __init__(
        self,
        root: Node,
        escape: Escape = "none",
        where: RestoreScope = "text",
        allowlist: Allowlist | None = None,
        plain_words: Container[str] = frozenset(),
        place_kinds: Mapping[str, Sequence[str]] = MappingProxyType({}),
        exact: bool | None = None,
        *,
        value: bool = False,
    ) -> None:
        if escape not in ("none", "json"):
            raise ConfigError("escape must be none or json")
        if where not in ("text", "everywhere"):
            raise ConfigError("where must be text or everywhere")
        self.blocked_count = self.partial_count = 0
        self._plain_words = plain_words
        self._place_kinds, self._exact = place_kinds, escape == "json" if exact is None else exact
        self._quoting = QuoteScanner()
        self._has_dropped = False  # whether units before the present ones were dropped
        # The end of the last key; a word that ends there is known.
        self._key_end = -1
        self._root = root
        self._json = EscapeReader(JSON_ESCAPES) if escape == "json" else None
        self._text = EscapeReader(TEXT_ESCAPES)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._units: list[Unit] = []
        self._at = 0  # units before it are read, and stay as context
        self._final = False
        # Output that is not decided yet: its insertion, received and restored form.
        self._queue = deque[tuple[Insertion | None, str, str]]()
        # The text with its escapes as written, and with its escapes read, may have different
        # targets; so a second finder reads the other form from the first escape on.
        self._finders: list[TargetFinder] = []
        if where == "text" and root.children:
            self._finders = [self._make_finder(allowlist or Allowlist())]
        for finder in self._finders if value else ():
            finder.start_value()

    def _make_finder(self, allowlist: Allowlist) -> TargetFinder:
        return TargetFinder(allowlist)

    def __repr__(self) -> str:
        count = len(self._units) - self._at + sum(len(text) for _, text, _ in self._queue)
        return f"Restorer({count} characters held back)"

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
        tail = self._decode(b"", final=True)
        self._final = True
        return self._read(tail)

    def _decode(self, piece: bytes, *, final: bool = False) -> str:
        try:
            return self._decoder.decode(piece, final)
        except UnicodeDecodeError:
            pass
        # Raised out here, because the decoder's error holds the bytes.
        raise InputError("the answer is not UTF-8; decode it first")

    def _read(self, piece: str) -> str:
        units = [wrap_char(char) for char in piece]
        if self._json is not None:
            units = self._json.read(units, self._final)
        self._units += self._text.read(units, self._final)
        while self._at < len(self._units) and (self._pass_dull() or self._pass_next()):
            pass
        if self._final and self._at == len(self._units):
            for finder in self._finders:
                finder.close()
        # What was read stays, as far as the sentence of a later name may begin in it.
        excess = max(0, self._at - MAX_SENTENCE_CHARACTERS)
        self._has_dropped |= excess > 0
        del self._units[:excess]
        self._at -= excess
        self._key_end -= excess
        return "".join(self._yield_decided())

    def _pass_dull(self) -> bool:
        """Reads characters that can begin no key; False if there are none."""
        end = self._find_dull_end(self._at)
        if units := self._units[self._at : end]:
            text = "".join([unit.char for unit in units])
            self._queue.append((None, "", "".join([unit.raw for unit in units])))
            self._feed_finders(text, units)
            self._update_quoting(units, text)
            self._at = end
        return bool(units)

    def _pass_next(self) -> bool:
        """Reads a key or character; False if further text decides about it."""
        end, key, certain = self._find_next(self._at)
        units = self._units[self._at : end]
        if not certain:
            return False
        if key is None or key.original is None:
            self._keep_units(units)
        elif not self._restore_key(key, key.original, units):
            return False
        self._update_quoting(units, "".join([unit.text for unit in units]))
        self._key_end = self._key_end if key is None else end
        self._at = end
        return True

    def _feed_finders(self, text: str, units: list[Unit]) -> None:
        """Passes text to the target finders, split at quotation marks of JSON.

        A quotation mark of JSON begins or ends a value, which is a separate text.
        """
        begin = 0
        for i, unit in enumerate(units if self._json is not None and '"' in text else ()):
            if unit.raw == '"':
                for finder in self._finders:
                    finder.pass_text(text[begin:i])
                    finder.start_value()
                begin = i + 1
        for finder in self._finders:
            finder.pass_text(text[begin:])

    def _keep_units(self, units: list[Unit]) -> None:
        """Reads units that are no key and stay unchanged."""
        self._add_finder(units)
        texts = "".join([unit.text for unit in units]), "".join([unit.char for unit in units])
        for finder, text in zip(self._finders, texts, strict=False):
            finder.pass_text(text)
        self._queue.append((None, "", "".join([unit.raw for unit in units])))

    def _restore_key(self, key: RestoreKey, original: str, units: list[Unit]) -> bool:
        """Reads a key and restores it, unless another name contains it.

        Returns:
            False if further text decides that, or how the original is written.
        """
        is_alone = self._is_alone(key, self._at, self._at + len(units))
        if is_alone is False:
            self._keep_units(units)
            self.partial_count += 1
            return True
        if is_alone is None:
            return False
        output = self._spell_original(key, original, units)
        if output is None:
            return False
        self._add_finder(units)
        if self._finders and units[0].escape == "markdown":
            self._finders[0].pass_text("\\")  # readers of addresses take a backslash for a slash
        place = Insertion(key.type)
        for finder in self._finders:
            finder.pass_original(original, place)
        self._queue.append((place, "".join([unit.raw for unit in units]), output))
        return True

    def _add_finder(self, units: list[Unit]) -> None:
        """Adds a second target finder at the first escaped unit.

        From there on, the text as it is written and the text with its escapes read differ.
        """
        if len(self._finders) == 1 and any(unit.text != unit.char for unit in units):
            self._finders.append(self._finders[0].fork())

    def _yield_decided(self) -> Iterator[str]:
        """Yields text up to the first undecided place."""
        while self._queue and not ((place := self._queue[0][0]) and place.waits):
            place, received, output = self._queue.popleft()
            is_blocked = place is not None and not place.allowed
            self.blocked_count += is_blocked
            yield received if is_blocked else output

    def _find_dull_end(self, at: int) -> int:
        """Finds the end of the characters at which no key can begin."""
        begins, word = self._root.children, at > 0 and _is_word_char(self._units[at - 1].char)
        for i in range(at, len(self._units)):
            char, folded, _, _, escape = self._units[i]
            before, word = word, _is_word_char(char)
            if escape or (folded[0] in begins and not (word and before)):
                return i
        return len(self._units)

    def _find_next(self, at: int) -> tuple[int, RestoreKey | None, bool]:
        """Finds the key at a unit: its end, the key, and certainty."""
        first = self._units[at]
        if first.folded[0] in self._root.children and (
            first.char == "<" or self._is_word_start(at)
        ):
            return self._find_longest(at)
        return at + 1, None, True

    def _find_longest(self, at: int) -> tuple[int, RestoreKey | None, bool]:
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
                if folded != " " or spaces == MAX_SPACES or not _can_be_wider(node, last):
                    break
                i, spaces = i + 1, spaces + 1
                continue
            node, i, last = step, i + 1, folded
            fits = node.key is not None and self._is_match(node.key, at, i)
            if fits is None:
                return end, key, False
            end, key = (i, node.key) if fits else (end, key)
        return end, key, True

    def _is_match(self, key: RestoreKey, at: int, end: int) -> bool | None:
        """Says whether units match a key as whole words; None if uncertain."""
        if key.kind == "placeholder":
            return True
        if key.kind == "bare" and "".join([unit.char for unit in self._units[at:end]]) != key.form:
            return False
        if key.kind == "plural" and not self._is_determined(at):
            return False
        return self._is_word_end(end)

    def _is_word_start(self, at: int) -> bool:
        """Says whether a word can begin at a unit."""
        i = at
        while i > 0 and at - i < MAX_UNDERSCORES and self._units[i - 1].char == "_":
            i -= 1
        return i == 0 or not _is_glued(self._units[at].char, self._units[i - 1].char)

    def _is_word_end(self, end: int) -> bool | None:
        """Says whether a word can end before `end`; None if uncertain."""
        i = self._find_end(end, MAX_UNDERSCORES - 1, "_".__eq__)
        if i == len(self._units):
            return True if self._final else None
        return not _is_glued(self._units[end - 1].char, self._units[i].char)

    def _is_determined(self, at: int) -> bool:
        units = self._units[max(0, at - CONTEXT_CHARACTERS) : at]
        return _DETERMINER.search("".join([unit.folded for unit in units])) is not None

    def _is_alone(self, key: RestoreKey, at: int, end: int) -> bool | None:
        """Says whether a key is in no other name; None if uncertain."""
        if key.kind not in ("name", "plural"):
            return True
        all_caps = all(unit.char == unit.char.upper() for unit in self._units[at:end])
        previous_word = self._find_previous_word(at)
        if self._is_behind_name(previous_word, key, all_caps):
            return False
        has_no_neighbour = self._has_no_name_behind(end, all_caps)
        if not has_no_neighbour or not sentence_bounds.can_be_part(key.form):
            return has_no_neighbour
        return self._is_alone_in_sentence(at, end, all_caps)

    def _is_behind_name(self, previous_word: str, key: RestoreKey, all_caps: bool) -> bool:
        """Says whether the word before makes a key part of another name."""
        is_released = self._is_plain_word(previous_word) and not is_public(
            previous_word
        )  # a public word such as "will" says nothing
        if (
            previous_word[:1].isupper()
            and not is_released
            and sentence_bounds.can_be_given_name(previous_word, key.form)
        ):
            return True
        if not self._is_stranger(previous_word, all_caps):
            return False
        return bool(_lookup_marks(previous_word) & (lexicon.NAME_MARK | lexicon.PUBLIC_MARK))

    def _is_alone_in_sentence(self, at: int, end: int, all_caps: bool) -> bool | None:
        """Says whether a key's sentence has no unknown name; None if uncertain."""
        sentence = self._find_sentence(at, end)
        if sentence is None:
            return None
        text, start, is_alone = sentence
        position, name = start, self._join_chars(at, end)
        for place, word in sentence_bounds.list_capitalized(text):
            begin = start + place
            if begin < position or begin == at:
                continue
            stop, other, certain = self._find_next(begin)
            if not certain:
                return None
            if other is not None:
                position = stop
                if _is_joined(self._join_chars(min(end, position), max(at, begin))):
                    return True  # the name is whole
            elif not self._is_harmless_word(word, name, all_caps):
                is_beside = begin >= end and _is_joined(self._join_chars(end, begin))
                first, language = (
                    sentence_bounds.is_first(text, place),
                    sentence_bounds.guess_language(text),
                )
                is_alone &= not sentence_bounds.is_name_word(
                    word, language, is_first_word=first, is_beside=is_beside
                )
        return is_alone

    def _find_sentence(self, at: int, end: int) -> tuple[str, int, bool] | None:
        """Returns a key's sentence, its offset, and whether it is whole.

        None if later text decides where the sentence ends.
        """
        prefix, suffix = (
            self._join_chars(max(0, at - MAX_SENTENCE_CHARACTERS), at),
            self._join_chars(end, end + MAX_SENTENCE_CHARACTERS + 1),
        )
        start, stop = sentence_bounds.find_start(prefix), sentence_bounds.find_end(suffix)
        if stop < 0 and not self._final and len(suffix) <= MAX_SENTENCE_CHARACTERS:
            return None
        long = stop < 0 and len(suffix) > MAX_SENTENCE_CHARACTERS
        long |= (
            start < 0
            and len(prefix) == MAX_SENTENCE_CHARACTERS
            and (at > MAX_SENTENCE_CHARACTERS or self._has_dropped)
        )
        prefix, suffix = prefix[max(0, start) :], suffix if stop < 0 else suffix[:stop]
        return prefix + self._join_chars(at, end) + suffix, at - len(prefix), not long

    def _is_harmless_word(self, word: str, name: str, all_caps: bool) -> bool:
        """Says whether a capitalised word is known or no name.

        It is in capitals, was released before, or is a German genitive of the name.
        """
        return (
            _is_all_caps(word, all_caps)
            or self._is_plain_word(word)
            or fold(word) == fold(name) + "s"
        )

    def _is_plain_word(self, word: str) -> bool:
        return (
            fold(word) in self._plain_words or fold(_POSSESSIVE.sub("", word)) in self._plain_words
        )

    def _has_no_name_behind(self, end: int, all_caps: bool) -> bool | None:
        """Says whether no unknown name follows a key; None if uncertain."""
        begin = self._find_end(end, MAX_SPACES, _can_join_names)
        if begin == len(self._units):
            return self._final or None
        if begin == end or not self._units[begin].char.isupper():
            return True
        stop = self._find_end(begin, MAX_WORD_LETTERS, _is_in_name)
        if stop == len(self._units) and not self._final:
            return None
        if not self._is_stranger(_POSSESSIVE.sub("", self._join_chars(begin, stop)), all_caps):
            return True
        _, other, certain = self._find_next(begin)
        return None if not certain else other is not None

    def _find_end(self, begin: int, limit: int, fits: Callable[[str], bool]) -> int:
        """Finds the end of fitting characters, after more than `limit` at latest."""
        end = begin
        while end < len(self._units) and end - begin <= limit and fits(self._units[end].char):
            end += 1
        return end

    def _find_previous_word(self, at: int) -> str:
        """Returns the word before a key, joined by spaces or a hyphen.

        "" where that is a key, too.
        """
        stop = at
        while stop > 0 and at - stop <= MAX_SPACES and _can_join_names(self._units[stop - 1].char):
            stop -= 1
        if stop in (at, self._key_end):
            return ""
        begin = stop
        while begin > 0 and _is_in_name(self._units[begin - 1].char):
            begin -= 1
        word = self._join_chars(begin, stop)
        return "" if _POSSESSIVE.search(word) else word

    def _join_chars(self, begin: int, stop: int) -> str:
        return "".join([unit.char for unit in self._units[begin:stop]])

    def _is_stranger(self, word: str, all_caps: bool) -> bool:
        """Says whether a word may be part of a name unknown here.

        Args:
            word: the word beside a key.
            all_caps: True if the key is written in capitals throughout.
        """
        if (
            not word[:1].isupper()
            or len(word) > MAX_WORD_LETTERS
            or fold(word) in self._plain_words
        ):
            return False
        if _is_all_caps(word, all_caps):
            return False
        return may_be_name(word) and not _lookup_marks(word) & lexicon.ORDINARY_MARK

    def _spell_original(self, key: RestoreKey, original: str, units: list[Unit]) -> str | None:
        """Writes an original in place of a key; None if uncertain."""
        if key.kind in ("name", "plural"):
            original = _match_case(original, key.form, "".join([unit.char for unit in units]))
        place, escapes = Place(), {unit.escape for unit in units}
        slash = "\\" if key.is_placeholder and self._is_in_path(units[0]) else ""
        if not is_plain(original):
            place = self._quoting.find_place()
            output = self._quote_original(original, place, "html" in escapes, len(units))
            if output is None:
                return None
            original = output
        original = slash + original
        # Once if JSON stands in the text, once more if the whole answer is in a JSON string.
        for _ in range(("json" in escapes and not place.literals) + (self._json is not None)):
            original = json.dumps(original, ensure_ascii=False)[1:-1]
        return original

    def _quote_original(
        self, original: str, place: Place, in_html: bool, length: int
    ) -> str | None:
        """Writes an original that strings or HTML escape; None if uncertain."""
        place_kinds = self._place_kinds.get(original, ())
        is_whole = place.is_undecided and self._is_whole(self._at + length)
        if is_whole is None:
            return None
        if in_html:
            units = self._units[max(0, self._at - CONTEXT_CHARACTERS) : self._at]
            prefix = "".join([unit.text for unit in units])
            original = escape_entities(
                original, find_markup_kind(prefix[-CONTEXT_CHARACTERS:]), place_kinds
            )
        return spell_original(original, place, place_kinds, exact=self._exact, is_alone=is_whole)

    def _is_in_path(self, first: Unit) -> bool:
        r"""Says whether a unit's backslash belongs to a path, C:\Users\<PERSON_1>."""
        previous_char = self._units[self._at - 1].char if self._at > 0 else ""
        inside = previous_char != "" and (
            previous_char in ":\\" or find_script(previous_char) != ""
        )
        return inside and first.escape == "markdown"

    def _is_whole(self, end: int) -> bool | None:
        """Says whether a plain YAML value ends here; None if uncertain."""
        suffix = self._join_chars(end, end + CONTEXT_CHARACTERS)
        if not suffix.strip(" \t\r") and not self._final and len(suffix) < CONTEXT_CHARACTERS:
            return None
        return _VALUE_END.match(suffix) is not None

    def _update_quoting(self, units: Sequence[Unit], text: str) -> None:
        """Updates the quoting state; each string of outer JSON is separate."""
        if self._json is None or '"' not in text:
            self._quoting.feed(text)
            return
        for unit in units:
            if unit.raw == '"':
                self._quoting = QuoteScanner()
            else:
                self._quoting.feed(unit.text)


class _ReleaseCollector(Restorer):
    """Collector of targets in a release that originals join.

    Args:
        root: trie of the keys to look for.
    """

    def find(self, text: str) -> set[str]:
        """Returns the targets, with their originals."""
        self._final = True
        self._read(text)
        return set().union(
            *(finder.targets for finder in self._finders if isinstance(finder, TargetCollector))
        )

    def _make_finder(self, allowlist: Allowlist) -> TargetFinder:
        return TargetCollector()


class KeyFinder(Restorer):
    """Finder of the places that restoring would change, also in targets.

    Args:
        root: trie of the keys to look for.
    """

    def __init__(self, root: Node) -> None:
        super().__init__(root, where="everywhere")
        self.places: list[tuple[int, int]] = []

    def find(self, text: str) -> list[tuple[int, int]]:
        """Returns the places as start and end offsets in characters."""
        self._final = True
        units = self._text.read([wrap_char(char) for char in text], True)
        self._starts = [0]
        for unit in units:
            self._starts.append(self._starts[-1] + len(unit.raw))
        self._read(text)
        return self.places

    def _is_alone(self, key: RestoreKey, at: int, end: int) -> bool | None:
        return True

    # In the release, words that underscores join to a key may become placeholders, and no longer
    # belong to its word.

    def _is_word_start(self, at: int) -> bool:
        return at == 0 or not _are_joined(self._units[at].char, self._units[at - 1].char)

    def _is_word_end(self, end: int) -> bool | None:
        return end == len(self._units) or not _are_joined(
            self._units[end - 1].char, self._units[end].char
        )

    def _spell_original(self, key: RestoreKey, original: str, units: list[Unit]) -> str | None:
        self.places.append((self._starts[self._at], self._starts[self._at + len(units)]))
        return ""


def find_targets(
    text: str, placeholders: Mapping[str, str], names: Iterable[RestoreKey] = ()
) -> set[str]:
    """Finds the targets of a release that contain originals, restored.

    Args:
        text: the release.
        placeholders: their values by placeholder.
        names: the replaced names in it.
    """
    names = list(names)
    if not (placeholders or names) or not can_hold_target(text):
        return set()
    root = build_trie(placeholders, names, frozenset())
    targets = _ReleaseCollector(root).find(text)
    # The release may return in quotation marks, as a JSON value or an argument.
    if "\n" not in text and " " in text:
        targets |= _ReleaseCollector(root).find(f'"{text}"')
    return targets


@lru_cache(4096)
def _lookup_marks(word: str) -> int:
    """Looks up the lexicon marks of one word."""
    return int(lexicon.mark_words([word], np.array([0, 1]))[0])


def _is_word_char(char: str) -> bool:
    """Says whether a character glues a following letter to its word.

    Quick and for ASCII only; False means that a key must be tried.
    """
    return char.isascii() and char.isalnum()


def _can_join_names(char: str) -> bool:
    """Says whether a character may join two parts of a name.

    A space or hyphen on one line does, a comma does not.
    """
    return char in "-\u2010\u2011" or (char.isspace() and char not in _LINE_ENDS)


def _is_all_caps(word: str, all_caps: bool) -> bool:
    """Says whether a word is in capitals throughout, unlike its name."""
    return not all_caps and len(word) > 1 and word == word.upper()


def _is_joined(text: str) -> bool:
    """Says whether the text between two words joins them to one name."""
    return 0 < len(text) <= MAX_SPACES and all(map(_can_join_names, text))


def _is_in_name(char: str) -> bool:
    return find_script(char) == "spaced" or char in "'’ʼ"


def _step(node: Node, folded: str) -> Node | None:
    for char in folded:
        following = node.children.get(char)
        if following is None:
            return None
        node = following
    return node


def _can_be_wider(node: Node, last: str) -> bool:
    """Says whether the key allows more whitespace here than it has.

    That is behind its spaces, and inside its brackets.
    """
    return last in ("<", " ") or ">" in node.children


def _is_glued(edge: str, neighbour: str) -> bool:
    """Says whether a neighbour, past underscores, makes a key a longer word."""
    return neighbour == "_" or _are_joined(edge, neighbour)


def _are_joined(edge: str, neighbour: str) -> bool:
    """Says whether two characters belong to one word."""
    return find_script(edge) == find_script(neighbour) != ""


def _match_case(original: str, form: str, text: str) -> str:
    r"""Returns the original unchanged if the released case was kept, else recased."""
    casing = get_casing(text)
    if casing == get_casing(form):
        return original
    if casing == "title":
        return original if get_casing(original) == "title" else original.title()
    return original.upper() if casing == "upper" else original.lower()
