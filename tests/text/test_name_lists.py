"""The lists of names: what is on them, what is not, and where they come from."""

import re
from importlib.resources import files

import pytest

from textveil.detect.spans import NAMES
from textveil.errors import UnknownName
from textveil.table.embedding import load_table
from textveil.text.name_lists import NAME_KINDS, load_names
from textveil.text.public import is_public

LEAST = {"PERSON": 1500, "LOCATION": 500, "ORGANIZATION": 150}


@pytest.mark.parametrize("type_", NAMES)
class TestEveryList:
    def test_holds_many_names_of_one_word_with_capitals_sorted(self, type_):
        found = load_names(type_)
        assert found.type == type_
        assert len(found.words) == len(found.kinds) >= LEAST[type_]
        assert list(found.words) == sorted(set(found.words))
        assert all(re.fullmatch("[A-Z][A-Za-z]+", word) for word in found.words)

    @pytest.mark.parametrize("table", ["minilm", "minilm-s"])
    def test_every_name_is_a_row_of_the_tables(self, type_, table):
        assert {word.lower() for word in load_names(type_).words} <= set(load_table(table).words)

    def test_no_name_is_on_the_public_list_or_an_ordinary_word(self, type_):
        ordinary = "apple bill church long hope mark may nice park reading rose shell sunday water will young"
        words = {word.lower() for word in load_names(type_).words}
        assert not [word for word in words if is_public(word)]
        assert words.isdisjoint(ordinary.split())

    def test_kinds_are_those_of_the_type_and_each_has_a_choice(self, type_):
        found = load_names(type_)
        counts = {kind: found.kinds.count(kind) for kind in NAME_KINDS[type_]}
        assert sum(counts.values()) == len(found.kinds)
        assert min(counts.values()) >= 20

    def test_its_first_lines_name_source_and_licence(self, type_):
        text = (
            files("textveil").joinpath("data", "names", f"{type_.lower()}.txt").read_text("utf-8")
        )
        head = " ".join(line for line in text.splitlines() if line.startswith("#"))
        assert "Source:" in head
        assert re.search("Apache-2.0|MIT, see LICENSE-FAKER.txt", head)


def test_no_word_is_on_two_lists_whatever_its_casing():
    words = [word.lower() for type_ in NAMES for word in load_names(type_).words]
    assert len(words) == len(set(words))


def test_names_stand_where_a_reader_looks_for_them():
    kind = {
        type_: dict(zip(load_names(type_).words, load_names(type_).kinds, strict=True))
        for type_ in NAMES
    }
    assert (kind["PERSON"]["Maria"], kind["PERSON"]["Garcia"], kind["PERSON"]["Taylor"]) == (
        "given",
        "family",
        "both",
    )
    assert [kind["LOCATION"][word] for word in ("Lisbon", "Texas", "Portugal")] == [
        "city",
        "region",
        "country",
    ]
    assert [kind["ORGANIZATION"][word] for word in ("IBM", "Yale", "NASA")] == [
        "company",
        "university",
        "agency",
    ]


def test_names_are_of_many_origins():
    words = set(load_names("PERSON").words)
    assert words >= {
        "Fatima",
        "Khalid",
        "Hiroshi",
        "Nguyen",
        "Sharma",
        "Kumar",
        "Zhang",
        "Silva",
        "Khan",
    }


def test_the_notice_of_faker_lies_beside_the_lists():
    notice = files("textveil").joinpath("data", "names", "LICENSE-FAKER.txt").read_text("utf-8")
    assert notice.startswith("Copyright (c) 2012 Daniele Faraglia")
    assert "permission notice shall be included" in notice


def test_other_types_have_no_list():
    with pytest.raises(UnknownName, match="EMAIL"):
        load_names("EMAIL")
