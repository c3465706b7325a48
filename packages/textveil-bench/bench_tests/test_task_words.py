"""Task words: those that tell labels apart come first."""

import pytest

from bench_tests.conftest import BAD, GOOD
from textveil.errors import ConfigError
from textveil_bench.examples import DataSet, Example
from textveil_bench.task_words import learn


def test_the_telling_words_come_first(rated):
    assert set(learn(rated, 8)) == {*GOOD, *BAD}
    assert len(learn(rated, 3)) == 3
    assert "what" not in learn(rated, 100), "public words pass anyway"


def test_words_of_few_texts_are_no_task_words(rated):
    few = DataSet(**{**vars(rated), "examples": rated.examples[:2]})
    with pytest.raises(ConfigError, match="no word occurs in 3 texts"):
        learn(few, 5)


def test_words_that_tell_nothing_are_none():
    """However few the others are."""
    texts = [f"the canary {word} sings" for word in ("alpha", "beta") for _ in range(6)]
    examples = tuple(Example(texts=(text,), label=i // 6) for i, text in enumerate(texts))
    data = DataSet(
        name="t",
        split="train",
        kind="classification",
        fields=("t",),
        labels=("a", "b"),
        examples=examples,
    )
    assert set(learn(data, 10)) == {"alpha", "beta"}
    same = tuple(Example(texts=("the canary sings",), label=i % 2) for i in range(12))
    with pytest.raises(ConfigError, match="no word of t distinguishes"):
        learn(DataSet(**{**vars(data), "examples": same}), 10)


def test_only_labels_of_single_texts_are_learned_from(rated):
    text = DataSet(
        name="t", split="train", kind="text", fields=("text",), examples=(Example(texts=("a",)),)
    )
    with pytest.raises(ConfigError, match="need a classification"):
        learn(text, 5)
    with pytest.raises(ConfigError, match="1 or more"):
        learn(rated, 0)
