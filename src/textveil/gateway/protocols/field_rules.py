"""Leaves: the act for each value of a request or answer, by table.

In: plain JSON and a `LeafRule`. Out: its leaves, each with an `Act`; the JSON rebuilt with some
leaves changed.
Not here: the tables (`protocols`), decisions of a policy (`policy`), how texts are released
(`pipeline`).

What no rule names is `UNKNOWN`, and never passes unread.
"""

import math
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple

import regex

from textveil.detect import load_detector
from textveil.errors import MAX_NAME_CHARACTERS, has_private_form, quote_path

Path = tuple[str | int, ...]


class Act(StrEnum):
    """Treatment of a value on its way up.

    In answers all that is protected is restored.
    """

    PROTECT = "protect"
    """Text: its release is sent."""
    LABEL = "label"
    """Text whose release is written as one word of letters and digits."""
    ARGUMENTS = "arguments"
    """JSON, written as a string or not, whose values are text."""
    OBJECT = "object"
    """Any JSON, whose values are text."""
    SIGNED = "signed"
    """Text signed by the upstream, sent back unchanged.

    The signature is in the field `signature` beside it. Where the text is not known here, the
    object around it is left out.
    """
    PASS = "pass"
    """Value sent unchanged: numbers, model and tool names, upstream ids."""
    USER = "user"
    """Name of the program's user: a pseudonym or nothing, by policy."""
    SCHEMA = "schema"
    """Description of tools: its identifiers are hidden, or it passes, by policy."""
    MEDIA = "media"
    """Media or unreadable text: refused, or passes, by policy."""
    OFFSET = "offset"
    """Character offset into the text beside it.

    In an answer it becomes an offset into the restored text.
    """
    DROP = "drop"
    """Value left out: padding, or meaningful for the released text only."""
    REFUSE = "refuse"
    """Value that refuses the request, unless it is false or empty.

    A false or empty value asks for nothing.
    """
    NAME = "name"
    """Name or id of an unusual form, or of the form of something private: passes unless that is
    found in it."""
    UNKNOWN = "unknown"
    """Value that no rule names: read and protected like text, refused or dropped, by policy."""


RELEASE_ACTS = frozenset({Act.PROTECT, Act.LABEL, Act.ARGUMENTS, Act.OBJECT, Act.SCHEMA})
"""Acts whose values are released."""


class Leaf(NamedTuple):
    """Value and its act. Secret.

    Args:
        path: the field names and list indices that lead to the value.
        act: its treatment.
        value: the value itself.
    """

    path: Path
    act: Act
    value: Any

    def __repr__(self) -> str:
        return f"Leaf({self.act})"


@dataclass(frozen=True, kw_only=True)
class LeafRule:
    """Rule with the act for a value, by its kind of JSON.

    A kind without a rule is unknown.

    Attributes:
        any_value: act for any value.
        text: act for a string.
        shape: pattern that a string must match, or it is unknown; None for any string.
        is_name: true if a string that does not match is still a name or an id.
        numbers: act for numbers, true and false.
        items: rule for each item of a list.
        fields: rule for each field of an object, in the order in which their texts are released.
        other_fields: rule for each other field whose name looks like a variable name; the names
            pass.
        tag: the field whose value selects one of `kinds`; "" for none.
        kinds: rule by the value of the tag; "" is the kind of an object without the tag.
    """

    any_value: Act | None = None
    text: Act | None = None
    shape: regex.Pattern[str] | None = None
    is_name: bool = False
    numbers: Act | None = None
    items: "LeafRule | None" = None
    fields: "Mapping[str, LeafRule] | None" = None
    other_fields: "LeafRule | None" = None
    tag: str = ""
    kinds: "Mapping[str, LeafRule]" = field(default_factory=dict)

    @property
    def is_setting(self) -> bool:
        """True for numbers and fixed words, without which a request still makes sense."""
        has_parts = self.items is not None or self.fields is not None or bool(self.kinds)
        return self.text in (None, Act.PASS) and not (has_parts or self.is_name)

    @cached_property
    def unknown_kind(self) -> "LeafRule":
        """Rule for a kind that `kinds` lacks.

        Its fields are those of all kinds, as far as the kinds agree.
        """
        merged = reduce(_merge_rules, self.kinds.values(), EMPTY_RULE)
        names = {**(merged.fields or {}), **({self.tag: text(Act.NAME)} if self.tag else {})}
        return LeafRule(fields=names)


def _merge_rules(one: LeafRule, other: LeafRule) -> LeafRule:
    """Merges two rules; where they differ, a value is unknown."""
    if one == other or other == EMPTY_RULE:
        return one
    if one == EMPTY_RULE:
        return other
    if one.any_value is not None or other.any_value is not None:
        return EMPTY_RULE
    strings = {(rule.text, rule.shape) for rule in (one, other) if rule.text is not None}
    numbers = {rule.numbers for rule in (one, other) if rule.numbers is not None}
    string, shape = strings.pop() if len(strings) == 1 else (None, None)
    free = _merge_optional(one.other_fields, other.other_fields)
    is_name, same_tag = one.is_name or other.is_name, one.tag == other.tag
    return LeafRule(
        text=string,
        shape=shape,
        is_name=is_name,
        numbers=numbers.pop() if len(numbers) == 1 else None,
        items=_merge_optional(one.items, other.items),
        fields=_merge_maps(one.fields, other.fields),
        other_fields=free,
        tag=one.tag if same_tag else "",
        kinds=(_merge_maps(one.kinds, other.kinds) or {}) if same_tag else {},
    )


def _merge_optional(one: LeafRule | None, other: LeafRule | None) -> LeafRule | None:
    return one if other is None else other if one is None else _merge_rules(one, other)


def _merge_maps(
    one: Mapping[str, LeafRule] | None, other: Mapping[str, LeafRule] | None
) -> Mapping[str, LeafRule] | None:
    if one is None or other is None:
        return one if other is None else other
    shared = {name: _merge_rules(one[name], other[name]) for name in one.keys() & other.keys()}
    return {**one, **other, **shared}


def any_value(act: Act) -> LeafRule:
    """Builds a rule with one act for any value."""
    return LeafRule(any_value=act)


PASSED = any_value(Act.PASS)
"""Rule for an answer, or a part of one, without text of a user: numbers, names of models."""


def text(act: Act = Act.PROTECT) -> LeafRule:
    """Builds a rule for a string."""
    return LeafRule(text=act)


def choice(*words: str) -> LeafRule:
    """Builds a rule that passes one of some words."""
    return LeafRule(text=Act.PASS, shape=regex.compile("|".join(map(regex.escape, words))))


def pattern(expression: str, *, is_name: bool = True) -> LeafRule:
    """Builds a rule that passes names and ids of a pattern, or settings that are none."""
    return LeafRule(text=Act.PASS, shape=regex.compile(expression), is_name=is_name)


def array(rule: LeafRule) -> LeafRule:
    """Builds a rule for a list, with a rule for its items."""
    return LeafRule(items=rule)


def record(**fields: LeafRule) -> LeafRule:
    """Builds a rule for an object with these fields."""
    return LeafRule(fields=fields)


def map_fields(rule: LeafRule, names: str) -> dict[str, LeafRule]:
    """Maps space-separated field names to one rule."""
    return dict.fromkeys(names.split(), rule)


def mapping(rule: LeafRule) -> LeafRule:
    """Builds a rule for an object whose field names the client chooses."""
    return LeafRule(fields={}, other_fields=rule)


def variants_by_tag(tag: str, other: LeafRule | None = None, /, **kinds: LeafRule) -> LeafRule:
    """Builds a rule for an object whose tag field says its kind.

    The tag passes. An object without the tag follows `other`.
    """
    names_of_kinds = {
        kind: {tag: choice(kind), **(rule.fields or {})} for kind, rule in kinds.items()
    }
    rules = {kind: LeafRule(fields=names) for kind, names in names_of_kinds.items()}
    return LeafRule(tag=tag, kinds=rules | ({"": other} if other is not None else {}))


def variants(other: LeafRule | None = None, /, **kinds: LeafRule) -> LeafRule:
    """Builds a rule for an object whose field `type` says its kind.

    See `variants_by_tag`.
    """
    return variants_by_tag("type", other, **kinds)


def union(*rules: LeafRule) -> LeafRule:
    """Merges rules for different kinds of JSON, such as string and list.

    Each kind may occur in one rule at most.
    """
    merged: dict[str, Any] = {}
    for rule in rules:
        values = {part.name: getattr(rule, part.name) for part in fields(rule)}
        merged |= {name: value for name, value in values.items() if value}
    return LeafRule(**merged)


EMPTY_RULE = LeafRule()
"""Rule that no value matches."""
NUMBER = LeafRule(numbers=Act.PASS)
ID = pattern(r"[A-Za-z0-9_.:\-]{1,256}")
"""Rule for ids from the upstream, which reveal nothing of a user."""
API_NAME = pattern(r"[A-Za-z0-9_.:/\-]{1,200}")
"""Rule for names of models and tools."""
CERTAIN_TYPES = frozenset({"CARD", "IBAN", "EMAIL", "SECRET"})
"""Types that are private in a name or id of any form."""
MIN_IDENTIFIER = 12
"""Characters of the shortest of them."""
VARIABLE_PATTERN = regex.compile(r"[A-Za-z0-9_.\-]{1,64}")
"""Pattern of field names that a client may choose."""


def find_leaves(value: Any, rule: LeafRule, path: Path = ()) -> Iterator[Leaf]:
    """Yields all leaves of a value, in the order of the rule.

    So the order of fields in a request changes nothing.
    """
    return (leaf for leaf, _ in find_ruled_leaves(value, rule, path))


def find_ruled_leaves(
    value: Any, rule: LeafRule, path: Path = ()
) -> Iterator[tuple[Leaf, LeafRule]]:
    """Yields all leaves, each with the rule that it follows or breaks.

    A field that no rule names has the empty rule.
    """
    if value is None:
        yield Leaf(path, Act.DROP, None), rule  # as if it were absent
    elif rule.any_value is not None:
        asks = bool(value) or rule.any_value not in (Act.REFUSE, Act.MEDIA)
        yield Leaf(path, rule.any_value if asks else Act.DROP, value), rule
    elif isinstance(value, list) and rule.items is not None:
        for i, item in enumerate(value):
            yield from find_ruled_leaves(item, rule.items, (*path, i))
    elif isinstance(value, dict):
        yield from _find_object_leaves(value, rule, path)
    else:
        yield Leaf(path, _get_act(value, rule), value), rule


def _get_act(value: Any, rule: LeafRule) -> Act:
    """Returns the act for a string or a number; `UNKNOWN` for others."""
    act = None
    if isinstance(value, str):
        matches = rule.shape is None or rule.shape.fullmatch(value)
        is_read = rule.is_name and (not matches or may_be_private(value))
        act = Act.NAME if is_read else rule.text if matches else None
    elif rule.numbers is not None and isinstance(value, int | float) and math.isfinite(value):
        act = rule.numbers
    return Act.UNKNOWN if act is None else act


def may_be_private(name: str) -> bool:
    """True if a name or id has the form of a card, an account or a key, so that it must be read.

    Ids are drawn by chance, so only what has check digits or a fixed beginning counts.
    """
    is_short = len(name) < MIN_IDENTIFIER or name.isalpha()
    return not is_short and _has_identifier(name)


@lru_cache(10_000)  # ids come again with every request
def _has_identifier(name: str) -> bool:
    with suppress(Exception):  # its message may hold text
        return any(span.type in CERTAIN_TYPES for span in load_detector("patterns").find([name]))
    return True


def _find_object_leaves(
    value: dict[str, Any], rule: LeafRule, path: Path
) -> Iterator[tuple[Leaf, LeafRule]]:
    kind = _select_kind(value, rule)
    if kind.fields is None:
        yield Leaf(path, Act.UNKNOWN, value), rule
        return
    for name, rule_of_field in kind.fields.items():
        if name in value:
            yield from find_ruled_leaves(value[name], rule_of_field, (*path, name))
    for name in [name for name in value if name not in kind.fields]:
        is_free = VARIABLE_PATTERN.fullmatch(str(name)) and not may_be_private(str(name))
        if kind.other_fields is not None and is_free:
            yield from find_ruled_leaves(value[name], kind.other_fields, (*path, name))
        else:
            # Even one that is null has a name, which somebody must read.
            yield Leaf((*path, name), Act.UNKNOWN, value[name]), EMPTY_RULE


def _select_kind(value: dict[str, Any], rule: LeafRule) -> LeafRule:
    """Returns the rule for the kind that an object's tag names."""
    if not rule.tag:
        return rule
    kind = value.get(rule.tag) or ""
    return rule.kinds.get(kind, EMPTY_RULE) if isinstance(kind, str) else EMPTY_RULE


DROPPED = object()
"""Sentinel in place of a leaf that is left out."""


class RenamedField(NamedTuple):
    """Value of a field that gets another name. Secret."""

    name: str
    value: Any

    def __repr__(self) -> str:
        return "RenamedField()"


def replace_leaves(value: Any, changed: Mapping[Path, Any], path: Path = ()) -> Any:
    """Rebuilds JSON with other values at some paths, without `DROPPED` ones."""
    if path in changed:
        return changed[path]
    if isinstance(value, dict):
        rebuilt_fields = [
            (name, replace_leaves(item, changed, (*path, name))) for name, item in value.items()
        ]
        named = [
            new if isinstance(new, RenamedField) else (name, new) for name, new in rebuilt_fields
        ]
        return {name: item for name, item in named if item is not DROPPED}
    if isinstance(value, list):
        items = [replace_leaves(item, changed, (*path, i)) for i, item in enumerate(value)]
        return [item for item in items if item is not DROPPED]
    return value


def format_path(path: Path, body: Any) -> str:
    """Formats a path for errors, such as messages[0].content[1].text."""
    return quote_path(path, body, _is_private)


@lru_cache(1000)
def _is_private(name: str) -> bool:
    """True if a field name must not be shown.

    It has the form of a private value.
    """
    with suppress(Exception):  # its message may hold text
        return has_private_form(name) or bool(
            load_detector("patterns").find([name[:MAX_NAME_CHARACTERS]])
        )
    # A name that could not be checked is not shown.
    return True


def list_known_fields(path: Path, rule: LeafRule) -> list[str] | None:
    """Lists the field names known where a path has an unknown one.

    None if the rule knows all names of the path.
    """
    for step in path:
        if isinstance(step, int):
            rule = rule.items or EMPTY_RULE
            continue
        candidates = rule.kinds.values() if rule.tag else (rule,)
        field_maps: list[Any] = [candidate.fields for candidate in candidates if candidate.fields]
        merged: ChainMap[str, LeafRule] = ChainMap(*field_maps)
        if step not in merged:
            return sorted(merged)
        rule = merged[step]
    return None
