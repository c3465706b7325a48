"""Task words: those that tell labels apart come first."""

import pytest

from tests.bench.conftest import BAD, GOOD
from textveil.bench.examples import DataSet, Example
from textveil.bench.task_words import learn
from textveil.errors import ConfigError


def test_the_telling_words_come_first(rated):
    assert set(learn(rated, 8)) == {*GOOD, *BAD}
    assert len(learn(rated, 3)) == 3
    assert "what" not in learn(rated, 100), "public words pass anyway"


def test_words_of_few_texts_are_no_task_words(rated):
    few = DataSet(**{**vars(rated), "examples": rated.examples[:2]})
    with pytest.raises(ConfigError, match="no word stands in 3 texts"):
        learn(few, 5)


def test_only_labels_of_single_texts_are_learned_from(rated):
    text = DataSet(name="t", split="train", kind="text", fields=("text",), examples=(Example(texts=("a",)),))
    with pytest.raises(ConfigError, match="need a classification"):
        learn(text, 5)
    with pytest.raises(ConfigError, match="1 or more"):
        learn(rated, 0)
