"""The ruler of detection: each part was measured or is a guard, and is switched off and on again."""

import json

import pytest
from tests.detect.test_patterns import EXAMPLES
from training.ablation import ROWS, Counts, Part, count, fired, idle, parts, switched_off
from training.labels import Labelled, marked_texts

from textveil.detect import Span, patterns, stages


def test_each_part_earns_its_place_or_is_a_guard():
    rows = [json.loads(line) for line in ROWS.read_text("utf-8").splitlines()]
    assert idle(rows) == [], "run `make ablation`: delete what earns nothing, or say what it guards"


@pytest.mark.slow
def test_each_guard_finds_an_example_that_nothing_else_finds():
    examples = [Labelled("", "en", "", text, [], "train") for text in EXAMPLES]
    where, find = fired(examples), patterns.Patterns().find
    found = [find([text]) for text in EXAMPLES]

    def alone(part):
        with switched_off(part):
            return any(find([EXAMPLES[i]]) != found[i] for i in where.get(part.name, ()))

    guards = [part for part in parts() if part.guard and part.name.startswith("rule ")]
    assert [part for part in guards if not alone(part)] == []


def test_parts_have_names_of_their_own():
    names = [part.name for part in parts()]
    assert len(names) == len({*names})


def test_a_part_is_off_inside_the_block_only():
    (part,) = (each for each in parts() if each.name == "stage trim")
    before = stages.STAGES
    with switched_off(part):
        assert [stage.name for stage in before if stage not in stages.STAGES] == ["trim"]
    assert stages.STAGES is before


def test_a_rule_that_is_off_finds_nothing():
    text = "Write to anna@example.org"
    rules = tuple(rule for rule in patterns.RULES if rule.type != "EMAIL")
    with switched_off(Part(name="mail", off=((patterns, "RULES", rules),))):
        assert patterns.Patterns(types=("EMAIL",)).find([text]) == []
    assert len(patterns.Patterns(types=("EMAIL",)).find([text])) == 1


def test_titles_and_units_do_not_count():
    content = "=== a mail\n⟦Frau Kirsch|PERSON|private⟧ (⟦71 Jahre|AGE|private⟧) met ⟦Goethe|PERSON|public⟧ there"
    (text,) = marked_texts(content, "de")
    places = [(text.text.index(value), value) for value in ("Kirsch", "71", "there")]
    hidden = [Span(0, at, at + len(value), "PERSON", 1.0, "own") for at, value in places]
    assert count(text, hidden) == Counts(2, 2, 0, 1, 5, 8)
    assert count(text, []) == Counts(0, 2, 0, 1, 0, 8)
