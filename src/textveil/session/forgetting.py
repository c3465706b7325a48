"""Forgetting single values of a session: their originals go, and their placeholders stay taken.

In: a snapshot, and placeholders or the values themselves. Out: a snapshot without their values.
Not here: how that is stored (`state`, `stores`, `database_store`), how values are found in a text
(`value_search`), and the messages of conversations (`link_forgetting`).

Values that hold a forgotten one are forgotten with it. Nothing is kept by which a forgotten value
could be recognized: of a short value, such as a PIN, a digest is the value to whoever has its key.
So a later text that holds the value again is judged like any other text, and what the detectors
find in it gets a new placeholder. What remains is the type and the number, so that no other value
gets them, and counts and losses.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from textveil.detect import PrivateValue, find_name_parts, normalize_value
from textveil.errors import InputError
from textveil.session.escapes import fold
from textveil.session.placeholders import PlaceholderToken, format_name
from textveil.session.snapshot import AMBIGUOUS, FACT_KINDS, Snapshot
from textveil.session.value_search import SoughtTexts, join_atoms
from textveil.text import is_public

_NAME = re.compile(r"<?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)>?")
_MARKS = re.compile(rb"((?:[0-9a-f]+ )+)\[")
_DRAWN_IN_TEXT = re.compile(r"([0-9a-f]{64}) \d+ (.*) (?:unit \d+|step)", re.DOTALL)
"""Key of a draw that is repeated with its text: a digest of that, and the word."""


@dataclass(frozen=True, kw_only=True)
class ForgottenReport:
    """What was forgotten, without any value.

    Attributes:
        place: subject and session, or account, that held the values; "" for a session alone.
        found: numbers of the given values that it held, from 0.
        count: values that went; other spellings and parts do not count.
        others: other values that stood beside them, as placeholders; types of those without one.
        same_messages: True if the others stood in the same messages; else only in the same session,
            which does not know its texts.
    """

    place: str = ""
    found: frozenset[int] = frozenset()
    count: int = 0
    others: tuple[str, ...] = ()
    same_messages: bool = False

    def to_json(self) -> dict[str, object]:
        """Returns the fields as plain data; values count from 1."""
        numbers = sorted(number + 1 for number in self.found)
        return {**vars(self), "found": numbers, "others": list(self.others)}


class ForgottenValues:
    """Values to forget, and which facts of a session hold one of them. Secret.

    Args:
        placeholders: all placeholders of the session.
        names: placeholders, such as <PERSON_1>, which stand for all parts and spellings of the
            value; or types, such as PERSON, for all values of a type.
        texts: values that are given as such; a session that has none of them is no error.
        private: all private values of the session, where `texts` are given.
        parts: further parts of names that go, each with its type.

    Attributes:
        names: names of the values, such as PERSON_1.

    Raises:
        InputError: one is no placeholder and no type, or the session has none of it.
    """

    def __init__(
        self,
        placeholders: Iterable[PlaceholderToken],
        names: Iterable[str] = (),
        *,
        texts: SoughtTexts | None = None,
        private: Iterable[PrivateValue] = (),
        parts: Collection[tuple[str, str]] = (),
    ) -> None:
        placeholders, self._texts = list(placeholders), texts
        self.names = _select_names(placeholders, names)
        if texts is not None:
            wholes = {token.name for token in placeholders if not token.part}
            self.names |= {
                token.name
                for token in placeholders
                if texts.holds(token.value)
                or (token.name not in wholes and build_value_key(token) in parts)
            }
        self._wholes = {
            fold(token.value)
            for token in placeholders
            if token.name in self.names and not token.part
        }
        # A value that holds another, such as the address of a page with a mail address, tells it.
        self.names |= {token.name for token in placeholders if _holds(token.value, self._wholes)}
        dropped = [token for token in placeholders if token.name in self.names]
        remaining = [token for token in placeholders if token.name not in self.names]
        self._values = {fold(token.value) for token in dropped}
        self._words = _list_words(dropped) - _list_words(remaining)
        self._said = self._values | {fold(word) for word in self._words if not is_public(word)}
        values = [] if texts is None else list(private)
        gone = [value for value in values if texts is not None and texts.holds(value.text)]
        self.private_count = len({value.key for value in gone} - set(map(build_value_key, dropped)))
        self._parts = _list_parts(dropped) | _list_name_parts(gone) | set(parts)
        if self._parts:
            self._parts -= _list_parts(remaining) | _list_name_parts(set(values) - set(gone))
        # Where a name was replaced word by word, only its parts stand for it.
        self._part_forms = {form for _, form in self._parts} if texts is not None else set()

    def __repr__(self) -> str:
        return f"ForgottenValues({len(self.names)})"

    def filter_facts(self, facts: Mapping[str, Mapping[Any, Any]]) -> dict[str, dict[Any, Any]]:
        """Returns facts by kind, without those that hold a value.

        Where a placeholder was among them, its name is taken: no other value gets it, since an
        answer of before may still hold it.
        """
        filtered = {
            kind: {key: value for key, value in entries.items() if self._keeps(kind, key, value)}
            for kind, entries in facts.items()
        }
        if self._texts is not None and filtered.get("said"):
            # A name that passed unprotected is there word by word.
            gone = set[str]().union(*self._texts.find_words(facts["said"]).values())
            filtered["said"] = {
                word: value for word, value in filtered["said"].items() if word not in gone
            }
        if self._texts is not None and "drawn" in filtered:
            filtered["drawn"] = self._drop_texts(filtered["drawn"], facts["drawn"])
        taken = {token.name for token in facts.get("placeholders", {}).values()} & self.names
        if taken:
            filtered["spelled"] = {**filtered.get("spelled", {}), **dict.fromkeys(sorted(taken))}
        return filtered

    @staticmethod
    def _drop_texts(kept: dict[Any, Any], draws: Mapping[Any, Any]) -> dict[Any, Any]:
        """Drops all draws of a text with a forgotten word: its digest could be guessed."""
        words = ((_DRAWN_IN_TEXT.fullmatch(key[1]), key) for key in draws)
        digests = {match[1] for match, key in words if match is not None and key not in kept}
        return {key: row for key, row in kept.items() if key[1].partition(" ")[0] not in digests}

    def _keeps(self, kind: str, key: Any, value: Any) -> bool:
        check = self._checks.get(kind)
        return check is None or not check(key, value)

    @cached_property
    def _checks(self) -> Mapping[str, Callable[[Any, Any], bool]]:
        """For each kind, whether a fact holds a forgotten value; other kinds hold no text."""
        return {
            "placeholders": lambda _, placeholder: placeholder.name in self.names,
            "values": lambda key, number: format_name(key[0], number[0]) in self.names,
            "parts": self._is_part,
            "private": lambda _, value: self._is_value(value.text),
            "targets": lambda target, _: (
                _holds(target, self._wholes | self._values) or self._tells(target)
            ),
            "hosts": lambda host, _: self._is_value(host),
            "stood": lambda text, _: text in self._words or self._tells(text),
            "replaced": lambda key, pair: key[1] in self._values or self._tells(pair.original),
            "owners": lambda _, original: original in self._values or self._tells(original),
            "said": lambda word, _: word in self._said or self._tells(word, common=False),
            "drawn": lambda key, _: self._is_drawn(key[1]),
        }

    def _is_drawn(self, word: str) -> bool:
        match = _DRAWN_IN_TEXT.fullmatch(word)
        word = word if match is None else match[2]
        return word in self._said or self._tells(word)

    def _is_value(self, text: str) -> bool:
        return fold(text) in self._values or _holds(text, self._wholes) or self._tells(text)

    def _tells(self, text: str, *, common: bool = True) -> bool:
        """Says whether a text holds a given value, or is a part of one.

        Args:
            text: the text.
            common: False to leave out parts that are public words.
        """
        if self._texts is None:
            return False
        is_part = bool(self._part_forms) and join_atoms(text) in self._part_forms
        return (is_part and (common or not is_public(text))) or self._texts.holds(text)

    def _is_part(self, key: tuple[str, str], number: tuple[int, str]) -> bool:
        if number[0] == AMBIGUOUS:
            return key in self._parts
        return format_name(key[0], number[0]) in self.names


def read_marks(content: bytes) -> tuple[bytes, ...]:
    """Reads the marks of a row: names before its content, by which other rows lead to it."""
    match = _MARKS.match(content)
    return tuple(bytes.fromhex(mark.decode()) for mark in match[1].split()) if match else ()


def drop_values(snapshot: Snapshot, names: Iterable[str]) -> tuple[Snapshot, int]:
    """Returns a state without some values, and their number.

    Args:
        snapshot: the whole state.
        names: see `ForgottenValues`.

    Raises:
        InputError: see `ForgottenValues`.
    """
    forgotten = ForgottenValues(snapshot.placeholders.values(), names)
    return drop_forgotten(snapshot, forgotten), len(forgotten.names)


def drop_texts(snapshot: Snapshot, texts: SoughtTexts) -> tuple[Snapshot | None, ForgottenReport]:
    """Returns a state without some values, and what went; None where the state has none of them.

    Args:
        snapshot: the whole state.
        texts: the values.
    """
    tokens, private = list(snapshot.placeholders.values()), list(snapshot.private.values())
    texts_here = [
        *(token.value for token in tokens),
        *(value.text for value in private),
        *(pair.original for pair in snapshot.replaced.values()),
        *snapshot.targets,
        *snapshot.hosts,
        *snapshot.stood,
        *(key[1] for key in snapshot.drawn),
        *snapshot.said,
    ]
    numbers = frozenset[int]().union(texts.find_words(snapshot.said), *map(texts.find, texts_here))
    if not numbers:
        return None, ForgottenReport()
    forgotten = ForgottenValues(tokens, texts=texts, private=private)
    following = drop_forgotten(snapshot, forgotten)
    return following, ForgottenReport(
        found=numbers,
        count=len(forgotten.names) + forgotten.private_count,
        others=list_others(following.placeholders.values(), following.private.values()),
    )


def list_others(
    placeholders: Iterable[PlaceholderToken], private: Iterable[PrivateValue]
) -> tuple[str, ...]:
    """Lists values as placeholders, without parts and spellings; by type, where they have none."""
    tokens = list(placeholders)
    names = {(token.type, token.number): f"<{token.name}>" for token in tokens}
    keys = set(map(build_value_key, tokens))
    types = sorted({value.type for value in private if value.key not in keys})
    return (*(names[key] for key in sorted(names)), *types)


def list_gone_parts(
    placeholders: Iterable[PlaceholderToken], private: Iterable[PrivateValue], texts: SoughtTexts
) -> set[tuple[str, str]]:
    """Lists the parts of the names that hold a value to forget, each with its type."""
    return _list_parts(
        token for token in placeholders if texts.holds(token.value)
    ) | _list_name_parts(value for value in private if texts.holds(value.text))


def build_value_key(token: PlaceholderToken) -> tuple[str, str]:
    """Returns the type and the normalized value of a placeholder, by which values compare."""
    return token.type, normalize_value(token.type, token.value)


def drop_forgotten(snapshot: Snapshot, forgotten: ForgottenValues) -> Snapshot:
    """Returns the following state without forgotten values."""
    facts = forgotten.filter_facts({kind: getattr(snapshot, kind) for kind in FACT_KINDS})
    chains: Any = {kind: ChainMap(entries) for kind, entries in facts.items()}
    return replace(snapshot, version=snapshot.version + 1, **chains)


def _select_names(placeholders: Collection[PlaceholderToken], names: Iterable[str]) -> set[str]:
    """Selects the names of the values that placeholders or types stand for.

    Raises:
        InputError: see `ForgottenValues`. What is no placeholder is not shown: it may be a value.
    """
    selected: set[str] = set()
    for number, written in enumerate(names, 1):
        match = _NAME.fullmatch(written)
        matching = {
            token.name
            for token in placeholders
            if match is not None and match[1] in (token.name, token.inner, token.type)
        }
        if not matching:
            raise InputError(
                f"item {number} of those to forget stands for nothing here: give placeholders such as "
                "<PERSON_1>, or types such as PERSON; nothing was forgotten"
            )
        selected |= matching
    return selected


def _list_words(placeholders: Iterable[PlaceholderToken]) -> set[str]:
    return {word for token in placeholders for word in (token.value, *token.value.split())}


def _list_parts(placeholders: Iterable[PlaceholderToken]) -> set[tuple[str, str]]:
    return {
        (token.type, form)
        for token in placeholders
        if not token.part
        for form, _ in find_name_parts(token.type, token.value)
    }


def _list_name_parts(values: Iterable[PrivateValue]) -> set[tuple[str, str]]:
    return {
        (value.type, form)
        for value in values
        for form, _ in find_name_parts(value.type, value.text)
    }


def _holds(text: str, values: Collection[str]) -> bool:
    """Says whether a text holds a folded value, not as a part of a longer word."""
    folded = fold(text)
    return any(
        value in folded and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", folded) is not None
        for value in values
    )
