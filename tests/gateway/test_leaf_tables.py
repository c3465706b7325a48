"""The tables of leaves are what `make leaves` makes of the types of the SDKs, and it makes of a type what it says."""

import json
from datetime import datetime
from importlib import metadata
from typing import Literal

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from textveil.gateway.protocols.field_rules import LeafRule
from textveil.gateway.protocols.leaf_tables import NAMED_RULES, load_rules
from training import leaves


@pytest.mark.parametrize("api", leaves.ROOTS)
def test_a_file_names_its_version_and_is_made_of_its_types(api):
    stored = (leaves.TARGET / f"{api}.json").read_text("utf-8")
    sdk, version = json.loads(stored)["sdk"].split()
    if metadata.version(sdk) != version:
        pytest.skip(
            f"{sdk} {metadata.version(sdk)} is installed, the tables are of {version}: make leaves"
        )
    assert leaves.build_tables()[api] == stored, "run make leaves"


def test_there_is_no_other_file():
    assert {path.stem for path in leaves.TARGET.iterdir()} == set(leaves.ROOTS)


def test_the_generator_and_the_gateway_mean_the_same_by_a_name():
    """A rule for any value takes the place of all that a type may be, so it must be one."""
    for name, rule in NAMED_RULES.items():
        assert (rule.any_value is not None) == (name in leaves.ANY_RULES)
        assert (rule.numbers is not None) == (name in leaves.NUMBER_RULES)


@pytest.mark.parametrize("api", leaves.ROOTS)
def test_each_record_of_a_file_is_used(api):
    table = json.loads((leaves.TARGET / f"{api}.json").read_text("utf-8"))
    stored = {name for part in ("records", *leaves.TAGS) for name in table[part]}
    used: set[str] = set()

    def walk(rule):
        if isinstance(rule, dict):
            rule = list(rule.values())
        if isinstance(rule, list):
            for each in rule:
                walk(each)
        elif rule in stored and rule not in used:
            used.add(rule)
            walk(
                next(table[part][rule] for part in ("records", *leaves.TAGS) if rule in table[part])
            )

    walk(table["roots"])
    assert used == stored


# ---- of types --------------------------------------------------------------------------------------------------------


class Text(TypedDict):
    type: Literal["text"]
    text: str


class Tree(TypedDict, total=False):
    type: Literal["tree"]
    id: str
    branches: "list[Text | Tree]"


class BetaRequestParams(TypedDict):
    count: int | bool
    effort: Literal["low", "high"] | None
    labels: dict[str, str]
    parts: str | list[Text | Tree]
    since: datetime
    untyped: object


class Request(BaseModel):
    only_in_answers: str


def table_of(lines, monkeypatch, tmp_path):
    """The table of the types above, with these overrides."""
    path = tmp_path / "leaves.txt"
    path.write_text("\n".join(lines), "utf-8")
    kinds = f"{__name__}:BetaRequestParams {__name__}:Request"
    monkeypatch.setattr(
        leaves, "ROOTS", {"api": {"request": kinds, "answer": f"{__name__}:Request"}}
    )
    return leaves.TableWriter("api", list(leaves.read_overrides(path)), set()).write()


def test_types_become_rules(monkeypatch, tmp_path):
    table = table_of([], monkeypatch, tmp_path)
    assert table["roots"] == {"request": "Request", "answer": "Request"}
    assert table["records"]["Request"] == {
        "count": "NUMBER",
        "effort": {"words": "high low"},
        "labels": {"map": "TEXT"},
        "only_in_answers": "TEXT",
        "parts": ["TEXT", {"list": "Request.parts"}],
        "since": "TIME",
        "untyped": "OBJECT",
    }
    assert table["type"] == {"Request.parts": {"": "Tree", "text": "Text", "tree": "Tree"}}
    assert table["records"]["Tree"]["branches"] == {"list": "OBJECT"}  # it is inside itself


def test_overrides(monkeypatch, tmp_path):
    lines = [
        "[]",
        "*: id = ID",
        "*: id text = API_NAME",
        "Request: effort + 'max' | NUMBER",
        "[other]",
        "*: text = PASS",
        "[api requests]",
        "Request: untyped = MEDIA",
        "Request: parts = LABEL",
        "Request: own + [Own]",
        "Own: text + TEXT",
        "Tree: type = 'tree'",
        "Tree: branches = [Text]",
        "[api answers]",
        "Request: only_in_answers = DROP",
    ]
    records = table_of(lines, monkeypatch, tmp_path)["records"]
    assert records["Tree"] == {
        "branches": {"list": "Text"},
        "id": "API_NAME",  # the last line
        "type": {"words": "tree"},
    }
    assert records["Request"] | {"since": ""} == {
        "count": "NUMBER",
        "effort": [{"words": "high low max"}, "NUMBER"],
        "labels": {"map": "TEXT"},
        "only_in_answers": "TEXT",
        "own": {"list": "Own"},
        "parts": ["LABEL", {"list": "Request.parts"}],
        "since": "",
        "untyped": "MEDIA",
    }
    assert records["Own"] == {"text": "TEXT"}
    assert records["Request (answer)"]["only_in_answers"] == "DROP"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("Request count = ID", "not an override"),
        ("Request: parts = [Nothing]", "no class and no line of leaves.txt is of Nothing"),
        ("Request: count + TOKEN", "Request.count: NUMBER and TOKEN for one value"),
    ],
)
def test_overrides_that_cannot_be(line, error, monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=error):
        table_of(["[]", line], monkeypatch, tmp_path)


def test_a_line_that_applies_nowhere_is_told(monkeypatch):
    extra = leaves.Override(
        scope=frozenset(),
        records=("Nobody",),
        fields=frozenset({"x"}),
        is_more=False,
        terms=(),
        line="Nobody: x = ID",
    )
    lines = [*leaves.read_overrides(), extra]
    monkeypatch.setattr(leaves, "read_overrides", lambda: lines)
    with pytest.raises(ValueError, match="Nobody: x = ID"):
        leaves.build_tables()


def test_equal_names_share_a_rule():
    rules = load_rules("chat")
    assert isinstance(rules["request"], LeafRule)
    assert rules["request"].fields is not None
    assert rules["request"].fields["messages"].items is rules["message"]
