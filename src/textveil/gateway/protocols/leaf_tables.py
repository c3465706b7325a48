"""Tables of leaves: the rules of an API, read from the file that `make leaves` writes.

In: the name of an API. Out: its rules by name, such as `request` and `answer`.
Not here: how the files are made (`training/leaves.py`), what becomes of a leaf (`field_rules`).

A file has a line for each field of each record. A rule there is the name of one of `NAMED_RULES`,
of a record, or of a union of records that the field `type` or `role` tells apart; a list of
alternatives; `{"list": RULE}`; `{"map": RULE}` for an object whose field names the client chooses;
or `{"words": "low high"}` for one of some words.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from textveil.gateway.protocols.field_rules import (
    API_NAME,
    ID,
    NUMBER,
    Act,
    LeafRule,
    any_value,
    array,
    choice,
    mapping,
    pattern,
    text,
    union,
)

SEALED = pattern(r"[A-Za-z0-9+/=_\-]*")
"""Rule for values that only the upstream can read: signatures, encrypted content."""
UPSTREAM_NAME = pattern(r"[A-Za-z0-9_:\-]{1,256}")
"""Rule for the upstream's name of a response or conversation, which is safe as a part of a path."""
NO_RULES = (Act.PROTECT, Act.NAME, Act.UNKNOWN)
"""Acts that are no rule for any value."""
NAMED_RULES: Mapping[str, LeafRule] = {
    **{act.name: any_value(act) for act in Act if act not in NO_RULES},
    "TEXT": text(),
    "LABEL": text(Act.LABEL),
    "SIGNED": text(Act.SIGNED),
    "NUMBER": NUMBER,
    # Ids of tokens: text that nobody can read here.
    "TOKEN": LeafRule(numbers=Act.MEDIA),
    "ID": ID,
    "API_NAME": API_NAME,
    "CONNECTOR": pattern("connector_[a-z]{1,40}"),
    "COUNTRY": pattern("[A-Za-z]{2}", is_name=False),
    "DATE": pattern(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]{1,15}(?:Z|[+\-][0-9:]{2,6})?)?", is_name=False
    ),
    "DOMAIN": pattern(r"[A-Za-z0-9.*\-]{1,253}"),
    "DURATION": pattern("-?[0-9]{1,6}[a-z]{0,2}", is_name=False),
    # As `SEALED`, at OpenAI.
    "OPAQUE": pattern(r"[A-Za-z0-9+/=_.:\-]*"),
    # A program's URL, without parts that could be secret.
    "PROGRAM_URL": pattern(
        r"https?://[A-Za-z0-9.\-]{1,253}(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~\-]{0,200}){0,20}"
    ),
    "REGION": pattern("[a-z_]{1,20}", is_name=False),
    # Values that only the upstream can read: signatures, encrypted content.
    "SEALED": pattern(r"[A-Za-z0-9+/=_\-]*"),
    "SIZE": pattern(r"auto|[0-9]{1,5}x[0-9]{1,5}", is_name=False),
    "TIME": pattern(r"[0-9TZ:.+\-]{1,40}", is_name=False),
    "UPSTREAM_NAME": UPSTREAM_NAME,
    "VERSION": pattern(r"[A-Za-z0-9_.\-]{1,64}"),
}
"""Rules that the files name."""


class _RuleBuilder:
    """Builder of the rules of one file; equal names share a rule."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self._built = dict(NAMED_RULES)

    def build(self, rule: Any) -> LeafRule:
        """Builds a rule."""
        if isinstance(rule, str):
            if rule not in self._built:
                self._built[rule] = self._build_named(rule)
            return self._built[rule]
        if isinstance(rule, list):
            return union(*map(self.build, rule))
        if "words" in rule:
            return choice(*rule["words"].split(" "))
        return (
            array(self.build(rule["list"])) if "list" in rule else mapping(self.build(rule["map"]))
        )

    def _build_named(self, name: str) -> LeafRule:
        for tag in ("type", "role"):
            if name in self._table[tag]:
                kinds = self._table[tag][name].items()
                return LeafRule(tag=tag, kinds={kind: self.build(rule) for kind, rule in kinds})
        fields = self._table["records"][name].items()
        return LeafRule(fields={field: self.build(rule) for field, rule in fields})


def load_rules(api: str) -> dict[str, LeafRule]:
    """Loads the rules of an API, by name."""
    stored = files("textveil").joinpath("data", "leaves", f"{api}.json").read_text("utf-8")
    table = json.loads(stored)
    builder = _RuleBuilder(table)
    return {name: builder.build(rule) for name, rule in table["roots"].items()}
