"""Leaves: what becomes of each value of a request or an answer, by a table per API.

In: plain JSON and a `LeafRule`. Out: its leaves, each with an `Act`; the JSON again with some of them changed.
Not here: the tables (`protocols`), what a policy decides (`policy`), how texts are released (`pipeline`).

What no rule names is `UNKNOWN`, and never passes.
"""

import math
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import regex

from textveil.detect import detector
from textveil.errors import LONGEST, looks_private, quote_path

Path = tuple[str | int, ...]


class Act(StrEnum):
    """What becomes of a value on its way up. In answers all that is protected is restored."""

    PROTECT = "protect"
    """Text: its release is sent."""
    LABEL = "label"
    """The same, written as one word of letters and digits."""
    ARGUMENTS = "arguments"
    """JSON written as a string, or not: its values are text."""
    OBJECT = "object"
    """Any JSON: its values are text."""
    SIGNED = "signed"
    """Text that the upstream signed, in the field `signature` beside it: sent as it came. Where that is not known, the
    object that it is in is left out."""
    PASS = "pass"
    """Numbers, names of models and tools, ids that the upstream gave: goes on as it is."""
    USER = "user"
    """Names the program's user: replaced by a pseudonym, or dropped, by policy."""
    SCHEMA = "schema"
    """What a program says about its tools: identifiers in it are hidden, or it passes, by policy."""
    MEDIA = "media"
    """No text, or text that nobody can read here: refused, or passes, by policy."""
    OFFSET = "offset"
    """A number of characters of the text beside it: of the restored one, in an answer."""
    DROP = "drop"
    """Left out: it is padding, or makes sense for the released text only."""
    REFUSE = "refuse"
    """The request is refused, unless the value is false or empty and so asks for nothing."""
    UNKNOWN = "unknown"
    """No rule names it: refused, or dropped, by policy."""


TEXT = frozenset({Act.PROTECT, Act.LABEL, Act.ARGUMENTS, Act.OBJECT, Act.SCHEMA})
"""What is released."""


class Leaf(NamedTuple):
    """A value and what becomes of it. Secret.

    Args:
        path: names and numbers that lead to it.
        act: what becomes of it.
        value: which.
    """

    path: Path
    act: Act
    value: Any

    def __repr__(self) -> str:
        return f"Leaf({self.act})"


@dataclass(frozen=True, kw_only=True)
class LeafRule:
    """What becomes of a value, by its kind. A kind without a rule is unknown.

    Attributes:
        whole: of any value.
        text: of a string.
        shape: what a string must be; others are unknown. None: anything.
        numbers: of numbers, true and false.
        items: of each item of a list.
        fields: of each field of an object, in the order in which their texts are released.
        others: of each other field whose name looks like that of a variable; the names pass.
        tag: the field that says which of `kinds` an object is; "" for none.
        kinds: fields by the value of the tag. "" is the kind of an object without the tag.
    """

    whole: Act | None = None
    text: Act | None = None
    shape: regex.Pattern[str] | None = None
    numbers: Act | None = None
    items: "LeafRule | None" = None
    fields: "Mapping[str, LeafRule] | None" = None
    others: "LeafRule | None" = None
    tag: str = ""
    kinds: "Mapping[str, LeafRule]" = field(default_factory=dict)


def whole(act: Act) -> LeafRule:
    """Any value."""
    return LeafRule(whole=act)


def text(act: Act = Act.PROTECT) -> LeafRule:
    """A string."""
    return LeafRule(text=act)


def one_of(*words: str) -> LeafRule:
    """One of some words."""
    return LeafRule(text=Act.PASS, shape=regex.compile("|".join(map(regex.escape, words))))


def shaped(pattern: str) -> LeafRule:
    """A string that holds no text."""
    return LeafRule(text=Act.PASS, shape=regex.compile(pattern))


def each(rule: LeafRule) -> LeafRule:
    """A list."""
    return LeafRule(items=rule)


def record(**fields: LeafRule) -> LeafRule:
    """An object."""
    return LeafRule(fields=fields)


def fields(rule: LeafRule, names: str) -> dict[str, LeafRule]:
    """Gives fields of an object that have the same rule, by their names in a row."""
    return dict.fromkeys(names.split(), rule)


def mapping(rule: LeafRule) -> LeafRule:
    """An object whose names are up to the client."""
    return LeafRule(fields={}, others=rule)


def tagged(tag: str, other: LeafRule | None = None, /, **kinds: LeafRule) -> LeafRule:
    """An object that says in one of its fields which it is; that field passes. Without it, it is another one."""
    own = {kind: {tag: one_of(kind), **(rule.fields or {})} for kind, rule in kinds.items()}
    named = {kind: LeafRule(fields=names) for kind, names in own.items()}
    return LeafRule(tag=tag, kinds=named | ({"": other} if other is not None else {}))


def typed(other: LeafRule | None = None, /, **kinds: LeafRule) -> LeafRule:
    """Gives an object that says in its field `type` which it is; see `tagged`."""
    return tagged("type", other, **kinds)


def either(*rules: LeafRule) -> LeafRule:
    """A value of one of several kinds: a string, a list, an object; each at most once."""
    made: dict[str, Any] = {}
    for rule in rules:
        made |= {name: value for name, value in vars(rule).items() if value}
    return LeafRule(**made)


NOTHING = LeafRule()
"""No value at all."""
NUMBER = LeafRule(numbers=Act.PASS)
ID = shaped(r"[A-Za-z0-9_.:\-]{1,256}")
"""What the upstream gave, and tells nothing of a user."""
NAME = shaped(r"[A-Za-z0-9_.:/\-]{1,200}")
"""A model or tool."""
VARIABLE = regex.compile(r"[A-Za-z0-9_.\-]{1,64}")
"""A name in an object whose names are up to the client."""


def leaves(value: Any, rule: LeafRule, path: Path = ()) -> Iterator[Leaf]:
    """All leaves of a value, in the order of the rule, so that the order of fields in a request changes nothing."""
    if value is None:
        yield Leaf(path, Act.DROP, None)  # as if it were absent
    elif rule.whole is not None:
        asks = bool(value) or rule.whole not in (Act.REFUSE, Act.MEDIA)
        yield Leaf(path, rule.whole if asks else Act.DROP, value)
    elif isinstance(value, list) and rule.items is not None:
        for i, item in enumerate(value):
            yield from leaves(item, rule.items, (*path, i))
    elif isinstance(value, dict):
        yield from _of_object(value, rule, path)
    else:
        yield Leaf(path, _act(value, rule), value)


def _act(value: Any, rule: LeafRule) -> Act:
    """Gives what becomes of a string or a number; any other value is unknown."""
    act = None
    if isinstance(value, str) and (rule.shape is None or rule.shape.fullmatch(value)):
        act = rule.text
    elif rule.numbers is not None and isinstance(value, int | float) and math.isfinite(value):
        act = rule.numbers
    return Act.UNKNOWN if act is None else act


def _of_object(value: dict[str, Any], rule: LeafRule, path: Path) -> Iterator[Leaf]:
    rule = _kind(value, rule)
    if rule.fields is None:
        yield Leaf(path, Act.UNKNOWN, value)
        return
    for name, own in rule.fields.items():
        if name in value:
            yield from leaves(value[name], own, (*path, name))
    for name in [name for name in value if name not in rule.fields and value[name] is not None]:
        if rule.others is not None and VARIABLE.fullmatch(name) is not None:
            yield from leaves(value[name], rule.others, (*path, name))
        else:
            yield Leaf((*path, name), Act.UNKNOWN, value[name])


def _kind(value: dict[str, Any], rule: LeafRule) -> LeafRule:
    """Gives the rule of the kind that an object says it is."""
    if not rule.tag:
        return rule
    kind = value.get(rule.tag) or ""
    return rule.kinds.get(kind, NOTHING) if isinstance(kind, str) else NOTHING


DROPPED = object()
"""Takes the place of a leaf that is left out."""


def rebuilt(value: Any, changed: Mapping[Path, Any], path: Path = ()) -> Any:
    """The same JSON with other values at some paths; what is `DROPPED` is left out."""
    if path in changed:
        return changed[path]
    if isinstance(value, dict):
        made = {name: rebuilt(each, changed, (*path, name)) for name, each in value.items()}
        return {name: each for name, each in made.items() if each is not DROPPED}
    if isinstance(value, list):
        items = [rebuilt(each, changed, (*path, i)) for i, each in enumerate(value)]
        return [each for each in items if each is not DROPPED]
    return value


def located(path: Path, body: Any) -> str:
    """Writes where a value stands, as errors show it: messages[0].content[1].text."""
    return quote_path(path, body, _is_private)


@lru_cache(1000)
def _is_private(name: str) -> bool:
    """Says whether the name of a field is not told, since a value of somebody's has its form."""
    with suppress(Exception):  # it may hold text
        return looks_private(name) or bool(detector("patterns").find([name[:LONGEST]]))
    return True


def known_instead(path: Path, rule: LeafRule) -> list[str] | None:
    """Lists the names that a rule has where it does not have that of a path; None where it has all of them."""
    for step in path:
        if isinstance(step, int):
            rule = rule.items or NOTHING
            continue
        several = rule.kinds.values() if rule.tag else (rule,)
        fields: list[Any] = [each.fields for each in several if each.fields]
        known: ChainMap[str, LeafRule] = ChainMap(*fields)
        if step not in known:
            return sorted(known)
        rule = known[step]
    return None
