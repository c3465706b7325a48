"""Specimens: JSON that has every leaf that a table knows.

In: a `LeafRule`, and what stands in each of its texts. Out: values that together have all of its branches.
Not here: the tables, and what must become of the leaves.
"""

import json
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from textveil.gateway.protocols.field_rules import Act, LeafRule

Text = Callable[[Act], Any]
"""What stands in a leaf; None to leave it out."""

PLAIN = ("1", "x1", "DE", "30m", "https://example.org/mcp", "connector_gmail", "1x1", "2026-01-31")


def specimens(rule: LeafRule, text: Text) -> list[Any]:
    """Values that together have every leaf of a rule; what has no text is as the rule wants it."""
    made: list[Any] = []
    if rule.any_value is not None:
        made += [said for said in [_free(rule.any_value, text)] if said is not None]
        if rule.any_value is Act.ARGUMENTS and made:
            made.append(json.dumps(made[0]))
        return made
    if rule.text is not None:
        said = _string(rule, text)
        made += [] if said is None else [said]
    if rule.numbers is Act.PASS:
        made.append(1)
    if rule.items is not None and (items := specimens(rule.items, text)):
        made.append(items)
    for kind in [
        LeafRule(fields=rule.fields, other_fields=rule.other_fields),
        *rule.kinds.values(),
    ]:
        if kind.fields is not None:
            made += _objects(kind, text)
    return made


def _free(act: Act, text: Text) -> Any:
    said = text(act)
    return (
        {"free": said}
        if act in (Act.OBJECT, Act.ARGUMENTS, Act.SCHEMA) and said is not None
        else said
    )


def _string(rule: LeafRule, text: Text) -> Any:
    if rule.shape is not None:
        first = rule.shape.pattern.split("|")[0].replace("\\", "")
        return next(each for each in (first, *PLAIN) if rule.shape.fullmatch(each))
    assert rule.text is not None
    said = text(rule.text)
    return (
        json.dumps({"written": said}) if rule.text is Act.ARGUMENTS and said is not None else said
    )


def _objects(kind: LeafRule, text: Text) -> Iterator[dict[str, Any]]:
    """As many objects as the field with the most branches has."""
    fields = {name: specimens(own, text) for name, own in (kind.fields or {}).items()}
    if kind.other_fields is not None:
        fields |= {f"other{i}": [each] for i, each in enumerate(specimens(kind.other_fields, text))}
    fields = {name: values for name, values in fields.items() if values}
    for row in zip_longest(*fields.values()):
        yield {
            name: values[0] if own is None else own
            for (name, values), own in zip(fields.items(), row, strict=True)
        }
    if not fields:
        yield {}
