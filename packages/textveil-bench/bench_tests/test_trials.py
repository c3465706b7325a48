"""Trials: fields are told apart after release, and a span of a release leads back to the original words."""

from types import SimpleNamespace
from typing import Any

import pytest

from textveil import Privatizer
from textveil.errors import ConfigError, InputError
from textveil.text.released import Item, Kind, Mask, Released
from textveil_bench.examples import DataSet, Example
from textveil_bench.trials import FIELD_SEPARATOR, ReleasedExample, join_fields, split_releases

EXAMPLE = Example(
    texts=("Which harbor did the anchor rust in?", "The anchor lay in Emden  harbor, rusting.")
)


def released(example: Example, **options) -> ReleasedExample:
    results = [Privatizer(table="minilm-s", seed=1, **options).privatize(join_fields(example))]
    (trial,) = split_releases([example], results)
    return trial


def test_nothing_is_changed_where_everything_passes():
    trial = released(EXAMPLE, mechanism="noise", epsilon=float("inf"), words={"casing": "copy"})
    assert trial.texts == EXAMPLE.texts
    assert ReleasedExample.build_unchanged(EXAMPLE).texts == EXAMPLE.texts


def test_fields_are_told_apart_and_joined_give_the_release():
    result = Privatizer("rankcape", k=5, epsilon=3, table="minilm-s", seed=1).privatize(
        join_fields(EXAMPLE)
    )
    (trial,) = split_releases([EXAMPLE], [result])
    assert FIELD_SEPARATOR.join(trial.texts) == result.text
    assert [len(part.items) for part in trial.parts] == [8, 9]


def test_equal_words_have_equal_releases_in_both_fields():
    trial = released(EXAMPLE, mechanism="krr", epsilon=0.001, words={"consistent": True})
    question, context = (text.split() for text in trial.texts)
    assert question[4] == context[1], "anchor"
    assert question[4] != "anchor"


def test_a_span_leads_back_to_the_words_that_stood_there():
    part = released(EXAMPLE, mechanism="krr", epsilon=0.001).parts[1]
    start = part.text.index(part.items[4].text, 10)
    stop = part.text.index(part.items[5].text, start) + len(part.items[5].text)
    assert part.find_original(start, stop) == "Emden  harbor"
    assert part.find_original(start + 1, start + 2) == "Emden", "a word that is touched counts"
    assert part.find_original(0, len(part.text)) == EXAMPLE.texts[1]
    assert part.find_original(3, 3) == ""


def test_an_empty_field_stays_one():
    trial = released(Example(texts=("", "The anchor")), mechanism="placeholder")
    assert trial.parts[0].text == ""
    assert trial.parts[1].find_original(0, 100) == "The anchor"


def test_what_stands_for_several_words_is_in_its_own_field():
    example = Example(
        texts=("Call Emden's +49 30 901820 from the harbor", "The anchor lay in Emden")
    )
    trial = released(example, mechanism="krr", epsilon=60, protect={"detectors": ["patterns"]})
    assert [len(part.items) for part in trial.parts] == [7, 5]
    question, context = trial.parts
    place = question.text.index("<PHONE>")
    assert question.find_original(place, place + 3) == "+49 30 901820"
    assert question.find_original(len(question.text) - 1, len(question.text)) == "harbor"
    assert context.find_original(0, len(context.text)) == example.texts[1]


def test_an_item_over_two_fields_is_refused():
    items = (
        Item(text="Ask", kind=Kind.WORD, group="", start=0, end=1),
        Item(text="[NAME]", kind=Kind.PLACEHOLDER, group="NAME", start=1, end=2),
    )
    released = Released(
        items=items, gaps=("", " ", ""), mask=Mask(words=2, placeholders=((1, "NAME"),))
    )
    result: Any = SimpleNamespace(
        released=released, private=SimpleNamespace(words=("Ask", "Maren\n\nHolt"))
    )
    with pytest.raises(InputError, match="words of two fields"):
        split_releases([Example(texts=("Ask Maren", "Holt"))], [result])


def test_a_data_set_says_what_does_not_fit():
    with pytest.raises(ConfigError, match="needs at least one"):
        DataSet(name="mine", split="test", kind="text", fields=("text",), examples=())
    with pytest.raises(ConfigError, match="must have 1 texts, got 2"):
        DataSet(name="mine", split="test", kind="text", fields=("text",), examples=(EXAMPLE,))
    one = Example(texts=("a",), label=2)
    with pytest.raises(ConfigError, match="one of the 2 labels"):
        DataSet(
            name="mine",
            split="test",
            kind="classification",
            fields=("text",),
            labels=("no", "yes"),
            examples=(one,),
        )


def test_texts_are_in_no_repr_and_tell_data_sets_apart():
    one, other = (
        DataSet(
            name="d",
            split="test",
            kind="text",
            fields=("text",),
            examples=(Example(texts=(text,)),),
        )
        for text in ("zanzibarquux", "another")
    )
    assert "zanzibarquux" not in repr(one) + repr(one.examples[0]) + repr(
        ReleasedExample.build_unchanged(one.examples[0])
    )
    assert one.digest != other.digest
