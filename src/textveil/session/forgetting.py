"""Forgetting single values of a session: their originals go, and their placeholders stay taken.

In: a snapshot, and placeholders. Out: a snapshot without their values.
Not here: how that is stored (`state`, `stores`, `database_store`).

Values that hold a forgotten one are forgotten with it. Nothing is kept by which a forgotten value
could be recognized: of a short value, such as a PIN, a digest is the value to whoever has its key.
So a later text that holds the value again is judged like any other text, and what the detectors
find in it gets a new placeholder. What remains is the type and the number, so that no other value
gets them, and counts and losses.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from textveil.detect import find_name_parts
from textveil.errors import InputError
from textveil.session.escapes import fold
from textveil.session.placeholders import PlaceholderToken, format_name
from textveil.session.snapshot import AMBIGUOUS, FACT_KINDS, Snapshot
from textveil.text import is_public

_NAME = re.compile(r"<?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)>?")
_MARKS = re.compile(rb"((?:[0-9a-f]+ )+)\[")


class ForgottenValues:
    """Values to forget, and which facts of a session hold one of them. Secret.

    Args:
        placeholders: all placeholders of the session.
        names: placeholders, such as <PERSON_1>, which stand for all parts and spellings of the
            value; or types, such as PERSON, for all values of a type.

    Attributes:
        names: names of the values, such as PERSON_1.

    Raises:
        InputError: one is no placeholder and no type, or the session has none of it.
    """

    def __init__(self, placeholders: Iterable[PlaceholderToken], names: Iterable[str]) -> None:
        placeholders = list(placeholders)
        self.names = _select_names(placeholders, names)
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
        self._parts = _list_parts(dropped) - _list_parts(remaining)

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
        taken = {token.name for token in facts.get("placeholders", {}).values()} & self.names
        if taken:
            filtered["spelled"] = {**filtered.get("spelled", {}), **dict.fromkeys(sorted(taken))}
        return filtered

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
            "targets": lambda target, _: _holds(target, self._wholes | self._values),
            "hosts": lambda host, _: self._is_value(host),
            "stood": lambda text, _: text in self._words,
            "replaced": lambda key, _: key[1] in self._values,
            "owners": lambda _, original: original in self._values,
            "said": lambda word, _: word in self._said,
            "drawn": lambda key, _: key[1] in self._said,
        }

    def _is_value(self, text: str) -> bool:
        return fold(text) in self._values or _holds(text, self._wholes)

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


def _holds(text: str, values: Collection[str]) -> bool:
    """Says whether a text holds a folded value, not as a part of a longer word."""
    folded = fold(text)
    return any(
        value in folded and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", folded) is not None
        for value in values
    )
