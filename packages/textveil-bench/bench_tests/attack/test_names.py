"""Names that are drawn from lists: attacked and measured list by list, by the law that each list has."""

from dataclasses import replace

import numpy as np
import pytest
from tests.detectors import Finds
from tests.evaluate.test_risk import FAMILY, GIVEN, PLACES, document, named_table

from textveil.evaluate.attack import Case
from textveil.evaluate.risk import assess
from textveil.randomness.streams import SeededRandomness
from textveil_bench.attack import attack, load
from textveil_bench.attack.report import NO_NAMES_NOTE
from textveil_bench.measure import measure

__all__ = ["named_table"]

PERSON = Finds(PERSON="[A-Z][a-z]+ [A-Z][a-z]+", LOCATION="(?<=in )[A-Z][a-z]+")
TEXTS = [
    f"the lemon of {given.title()} {family.title()} in {place.title()}"
    for given, family, place in zip(GIVEN[:20], FAMILY[:20], PLACES[:20], strict=True)
]
CERTAIN = {"types": ("PERSON", "LOCATION"), "k": 1, "epsilon": 1e4}
"""Names that are drawn as they are."""


def case_of(table, texts=TEXTS, releases=1, **options):
    return Case.create(document(table, PERSON, **options), texts, releases=releases)


def rates(case, name, **options):
    findings = attack(case, [load(name, options)], rng=SeededRandomness(5))
    return {
        (row.metric, row.unit, *row.setting.values()): row
        for row in findings.rows
        if row.slice == "all"
    }


@pytest.fixture(scope="module")
def case(named_table):
    return case_of(named_table)


@pytest.mark.parametrize("prior", ["uniform", "unigram"])
def test_bayes_names_as_many_as_the_risk_says(case, prior):
    risks = assess(case, prior=prior)
    items = case.view.name_items.items
    named = np.concatenate([risk.named for risk in risks])[items]
    found = rates(case, "bayes", priors=(prior,))["top-1", "name", prior]
    assert found.value == named.mean()
    assert 0.1 < found.value < 1
    assert found.n == len(items) == 60
    assert found.baseline < found.value


def test_lists_are_cases_of_their_own(case):
    assert [part.view.groups for part in case.list_cases] == [
        ("PERSON given",),
        ("PERSON family",),
        ("LOCATION",),
    ]
    for part in case.list_cases:
        words = part.view.table.words
        assert [words[row] for row in part.truth.rows] == [
            word.lower() for word in part.secret_words
        ]
        assert [words[row] for row in part.view.output_rows] == [
            part.view.items[i].lower() for i in part.view.item
        ]
        assert part.view.placeholder_count == case.view.placeholder_count


def test_names_are_told_by_group_and_beside_words(case):
    document_ = attack(case, [load("neighbour")]).to_json()
    units = {row["unit"] for row in document_["rows"]}
    assert (units, document_["names"], document_["protected"]) == ({"word", "name"}, 60, 20)
    groups = {row["part"] for row in document_["rows"] if row["slice"] == "group"}
    assert groups == {"PERSON given", "PERSON family", "LOCATION"}


def test_what_is_drawn_as_it_is_is_named_and_measured_so(named_table):
    case = case_of(named_table, names=CERTAIN, epsilon=1e-3)
    assert rates(case, "bayes", priors=("unigram",))["top-1", "name", "unigram"].value == 1
    assert rates(case, "neighbour")["Pr@1", "name", "cosine"].value == 1
    assert rates(case, "membership")["AUC", "name", "unigram"].value > 0.95
    of_texts = rates(case, "membership")["AUC", "text", "texts", "unigram"]
    assert of_texts.value > 0.999  # though the words tell nothing
    found = {
        row.metric: row.value
        for row in measure(case).rows
        if row.slice == "all" and row.unit == "name"
    }
    assert [found["retention"], found["cosine"], found["N_w"]] == pytest.approx([1.0, 1.0, 1.0])


def test_originals_that_differ_in_names_alone_are_found_by_them(named_table):
    alike = [
        f"the lemon of {given.title()} {family.title()}"
        for given, family in zip(GIVEN, FAMILY, strict=True)
    ]
    case = case_of(named_table, alike, names=CERTAIN, epsilon=1e-3)
    found = rates(case, "linkage")
    assert found["top-1", "text", "mask", 30].value == pytest.approx(1 / 30)
    assert found["top-1", "text", "mask and words", 30].value == 1
    blind = rates(replace(case, view=replace(case.view, name_items=None)), "linkage")
    assert blind["top-1", "text", "mask and words", 30].value < 0.5


def test_several_releases_tell_more_of_names(named_table):
    case = case_of(named_table, releases=6)
    found = rates(case, "bayes", priors=("uniform",))
    once, often = (found["top-1", "name", "uniform", many, "drawn anew"].value for many in (1, 6))
    assert often > once + 0.2
    assert found["top-1", "name", "uniform", 6, "drawn once"].value == once


def test_who_guesses_no_names_says_so(case, openai_server):
    public = tuple(f"the lemon and the castle in {noun}" for noun in ("river", "onion", *PLACES))
    found = rates(case, "learned", public=public, candidates=60, simulated=100)
    assert NO_NAMES_NOTE in found["top-1", "word"].note
    assert not any(row.unit == "name" for row in found.values())
    echoed = rates(case, "llm", url=openai_server, model="echo")
    names = [
        case.view.items[i].lower() == case.truth.words[i].lower()
        for i in case.view.name_items.items.tolist()
    ]
    assert echoed["top-1", "name"].value == np.mean(names)
    assert NO_NAMES_NOTE not in echoed["top-1", "word"].note
