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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from textveil.errors import InputError
from textveil.session.escapes import fold
from textveil.session.placeholders import PlaceholderToken
from textveil.session.snapshot import Snapshot, derive_facts
from textveil.text import is_public

_NAME = re.compile(r"<?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)>?")


def drop_values(snapshot: Snapshot, names: Iterable[str]) -> tuple[Snapshot, int]:
    """Returns a state without some values, and their number.

    Args:
        snapshot: the whole state.
        names: placeholders, such as <PERSON_1>, which stand for all parts and spellings of the
            value; or types, such as PERSON, for all values of a type.

    Raises:
        InputError: one is no placeholder and no type, or the session has none of it.
    """
    placeholders = list(snapshot.placeholders.values())
    selected = _select_names(placeholders, names)
    wholes = {fold(each.value) for each in placeholders if each.name in selected and not each.part}
    # A value that holds another, such as the address of a page with a mail address, tells it.
    selected |= {each.name for each in placeholders if _holds(each.value, wholes)}
    dropped = [each for each in placeholders if each.name in selected]
    remaining = [each for each in placeholders if each.name not in selected]
    values = {fold(each.value) for each in dropped}
    words = {word for each in dropped for word in (each.value, *each.value.split())}
    words -= {word for each in remaining for word in (each.value, *each.value.split())}
    plain_words = {fold(word) for word in words if not is_public(word)}
    facts: dict[str, ChainMap[Any, Any]] = {
        **{
            kind: derived
            for kind, derived in derive_facts(remaining).items()
            if kind in ("placeholders", "values", "parts")
        },
        "private": _select(
            snapshot.private,
            [
                key
                for key, value in snapshot.private.items()
                if fold(value.text) not in values and not _holds(value.text, wholes)
            ],
        ),
        "targets": _select(
            snapshot.targets, [key for key in snapshot.targets if not _holds(key, wholes | values)]
        ),
        "hosts": _select(
            snapshot.hosts, [key for key in snapshot.hosts if fold(key) not in values]
        ),
        "stood": _select(snapshot.stood, [key for key in snapshot.stood if key not in words]),
        "replaced": _select(
            snapshot.replaced, [key for key in snapshot.replaced if key[1] not in values]
        ),
        "owners": _select(
            snapshot.owners, [key for key in snapshot.owners if snapshot.owners[key] not in values]
        ),
        "said": _select(
            snapshot.said,
            [key for key in snapshot.said if key not in values and key not in plain_words],
        ),
        "drawn": _select(
            snapshot.drawn,
            [key for key in snapshot.drawn if key[1] not in values and key[1] not in plain_words],
        ),
        # No value gets these names: an answer of before may still hold them.
        "spelled": ChainMap(dict(snapshot.spelled) | dict.fromkeys(sorted(selected))),
    }
    following: Any = replace(snapshot, version=snapshot.version + 1, **facts)
    return following, len(selected)


def _select_names(placeholders: Collection[PlaceholderToken], names: Iterable[str]) -> set[str]:
    """Selects the names of the values that placeholders or types stand for.

    Raises:
        InputError: see `drop_values`. What is no placeholder is not shown: it may be a value.
    """
    selected: set[str] = set()
    for number, written in enumerate(names, 1):
        match = _NAME.fullmatch(written)
        found = {
            each.name
            for each in placeholders
            if match is not None and match[1] in (each.name, each.inner, each.type)
        }
        if not found:
            raise InputError(
                f"the session has no value for placeholder {number} of those to forget: give "
                "placeholders such as <PERSON_1>, or types such as PERSON; nothing was forgotten"
            )
        selected |= found
    return selected


def _holds(text: str, values: Collection[str]) -> bool:
    """Says whether a text holds a folded value, not as a part of a longer word."""
    folded = fold(text)
    return any(
        value in folded and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", folded) is not None
        for value in values
    )


def _select(facts: Mapping[Any, Any], keys: Iterable[Any]) -> ChainMap[Any, Any]:
    return ChainMap({key: facts[key] for key in keys})
