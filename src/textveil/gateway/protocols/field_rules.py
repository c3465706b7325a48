"""Leaves: the act for each value of a request or answer, by table.

In: plain JSON and a `LeafRule`. Out: its leaves, each with an `Act`; the JSON rebuilt with some
leaves changed.
Not here: the tables (`protocols`), decisions of a policy (`policy`), how texts are released
(`pipeline`).

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
    UNKNOWN = "unknown"
    """Value that no rule names: refused, or dropped, by policy."""


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
    numbers: Act | None = None
    items: "LeafRule | None" = None
    fields: "Mapping[str, LeafRule] | None" = None
    other_fields: "LeafRule | None" = None
    tag: str = ""
    kinds: "Mapping[str, LeafRule]" = field(default_factory=dict)


def any_value(act: Act) -> LeafRule:
    """Builds a rule with one act for any value."""
    return LeafRule(any_value=act)


def text(act: Act = Act.PROTECT) -> LeafRule:
    """Builds a rule for a string."""
    return LeafRule(text=act)


def choice(*words: str) -> LeafRule:
    """Builds a rule that passes one of some words."""
    return LeafRule(text=Act.PASS, shape=regex.compile("|".join(map(regex.escape, words))))


def pattern(expression: str) -> LeafRule:
    """Builds a rule that passes strings of a pattern without text."""
    return LeafRule(text=Act.PASS, shape=regex.compile(expression))


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
        merged |= {name: value for name, value in vars(rule).items() if value}
    return LeafRule(**merged)


EMPTY_RULE = LeafRule()
"""Rule that no value matches."""
NUMBER = LeafRule(numbers=Act.PASS)
ID = pattern(r"[A-Za-z0-9_.:\-]{1,256}")
"""Rule for ids from the upstream, which reveal nothing of a user."""
API_NAME = pattern(r"[A-Za-z0-9_.:/\-]{1,200}")
"""Rule for names of models and tools."""
VARIABLE_PATTERN = regex.compile(r"[A-Za-z0-9_.\-]{1,64}")
"""Pattern of field names that a client may choose."""


def find_leaves(value: Any, rule: LeafRule, path: Path = ()) -> Iterator[Leaf]:
    """Yields all leaves of a value, in the order of the rule.

    So the order of fields in a request changes nothing.
    """
    if value is None:
        yield Leaf(path, Act.DROP, None)  # as if it were absent
    elif rule.any_value is not None:
        asks = bool(value) or rule.any_value not in (Act.REFUSE, Act.MEDIA)
        yield Leaf(path, rule.any_value if asks else Act.DROP, value)
    elif isinstance(value, list) and rule.items is not None:
        for i, item in enumerate(value):
            yield from find_leaves(item, rule.items, (*path, i))
    elif isinstance(value, dict):
        yield from _find_object_leaves(value, rule, path)
    else:
        yield Leaf(path, _get_act(value, rule), value)


def _get_act(value: Any, rule: LeafRule) -> Act:
    """Returns the act for a string or a number; `UNKNOWN` for others."""
    act = None
    if isinstance(value, str) and (rule.shape is None or rule.shape.fullmatch(value)):
        act = rule.text
    elif rule.numbers is not None and isinstance(value, int | float) and math.isfinite(value):
        act = rule.numbers
    return Act.UNKNOWN if act is None else act


def _find_object_leaves(value: dict[str, Any], rule: LeafRule, path: Path) -> Iterator[Leaf]:
    rule = _select_kind(value, rule)
    if rule.fields is None:
        yield Leaf(path, Act.UNKNOWN, value)
        return
    for name, rule_of_field in rule.fields.items():
        if name in value:
            yield from find_leaves(value[name], rule_of_field, (*path, name))
    for name in [name for name in value if name not in rule.fields and value[name] is not None]:
        if rule.other_fields is not None and VARIABLE_PATTERN.fullmatch(name) is not None:
            yield from find_leaves(value[name], rule.other_fields, (*path, name))
        else:
            yield Leaf((*path, name), Act.UNKNOWN, value[name])


def _select_kind(value: dict[str, Any], rule: LeafRule) -> LeafRule:
    """Returns the rule for the kind that an object's tag names."""
    if not rule.tag:
        return rule
    kind = value.get(rule.tag) or ""
    return rule.kinds.get(kind, EMPTY_RULE) if isinstance(kind, str) else EMPTY_RULE


DROPPED = object()
"""Sentinel in place of a leaf that is left out."""


def replace_leaves(value: Any, changed: Mapping[Path, Any], path: Path = ()) -> Any:
    """Rebuilds JSON with other values at some paths, without `DROPPED` ones."""
    if path in changed:
        return changed[path]
    if isinstance(value, dict):
        rebuilt_fields = {
            name: replace_leaves(item, changed, (*path, name)) for name, item in value.items()
        }
        return {name: item for name, item in rebuilt_fields.items() if item is not DROPPED}
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
