"""Invented opinions, questions and texts; and releases of them that a test spells itself.

In: nothing. Out: fixtures.
Not here: what one test file alone needs.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.models.conftest import SIZE, save, wordpiece

from textveil.text.released import Item, Kind
from textveil.text.tokens import tokenize
from textveil_bench.examples import DataSet, Example
from textveil_bench.trials import ReleasedExample, ReleasedField

GOOD = ("splendid", "charming", "delightful", "moving")
BAD = ("tedious", "dreadful", "clumsy", "dull")
LEARNED = ("orchard film", "harbor novel", "winter concert", "garden play")
JUDGED = ("village opera", "island series")

FACTS = (
    (
        "Where does the ferry to Ormund leave?",
        "The ferry to Ormund leaves from the copper pier each morning.",
    ),
    (
        "Who painted the mural of whales?",
        "Tamsin Velm painted the mural of whales in a single week.",
    ),
    ("When was the glass bridge opened?", "The glass bridge was opened in 1974 by a local choir."),
)
ANSWERS = (("the copper pier", "copper pier"), ("Tamsin Velm",), ("1974",))


def opinions(things: Sequence[str], split: str) -> DataSet:
    """An opinion for each thing and adjective."""
    rated = [(word, label) for label, words in enumerate((BAD, GOOD)) for word in words]
    return DataSet(
        name="opinions",
        split=split,
        kind="classification",
        fields=("text",),
        labels=("bad", "good"),
        examples=tuple(
            Example(texts=(f"What a {word} {thing} that was",), label=label)
            for thing in things
            for word, label in rated
        ),
    )


def spelled(original: str, released: str) -> ReleasedField:
    """A release word by word: as many words, each in the place of the original's."""
    mine, theirs = tokenize([original]), tokenize([released])
    assert len(mine.words) == len(theirs.words)
    kinds = [
        Kind.VERBATIM if a == b else Kind.WORD
        for a, b in zip(mine.words, theirs.words, strict=True)
    ]
    return ReleasedField(
        items=tuple(
            Item(text=word, kind=kind, group="", start=i, end=i + 1)
            for i, (word, kind) in enumerate(zip(theirs.words, kinds, strict=True))
        ),
        gaps=tuple(theirs.get_gaps(0)),
        original=original,
        starts=tuple(mine.starts.tolist()),
        ends=tuple(mine.ends.tolist()),
    )


def untouched(data: DataSet) -> list[ReleasedExample]:
    """Everything released as it was."""
    return [ReleasedExample.build_unchanged(example) for example in data.examples]


@pytest.fixture
def trial() -> Callable[..., ReleasedExample]:
    """An example and how each of its texts was released, as many words each."""

    def made(example: Example, *released: str) -> ReleasedExample:
        parts = tuple(
            spelled(text, after) for text, after in zip(example.texts, released, strict=True)
        )
        return ReleasedExample(example=example, parts=parts)

    return made


@pytest.fixture
def learned() -> DataSet:
    return opinions(LEARNED, "train")


@pytest.fixture
def judged() -> DataSet:
    return opinions(JUDGED, "test")


@pytest.fixture
def pairs() -> DataSet:
    """A question with the sentence that answers it, and with each other one."""
    return DataSet(
        name="facts",
        split="train",
        kind="pairs",
        fields=("question", "sentence"),
        labels=("yes", "no"),
        examples=tuple(
            Example(texts=(question, sentence), label=int(i != j))
            for i, (question, _) in enumerate(FACTS)
            for j, (_, sentence) in enumerate(FACTS)
        ),
    )


@pytest.fixture
def questions() -> DataSet:
    return DataSet(
        name="facts",
        split="test",
        kind="reading",
        fields=("question", "context"),
        examples=tuple(
            Example(texts=texts, answers=answers)
            for texts, answers in zip(FACTS, ANSWERS, strict=True)
        ),
    )


@pytest.fixture
def stories() -> DataSet:
    texts = (
        "The keeper of the lighthouse counts ships at dusk and writes their names into a green book.",
        "Two sisters bake bread for the whole valley. Their oven is older than the church.",
    )
    return DataSet(
        name="stories",
        split="test",
        kind="text",
        fields=("text",),
        examples=tuple(Example(texts=(text,)) for text in texts),
    )


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random encoder without a head."""
    folder = tmp_path_factory.mktemp("tiny")
    return save(folder, "BertModel", wordpiece(), **{**SIZE, "max_position_embeddings": 128})


@pytest.fixture(scope="session")
def rater(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random classifier that calls its labels GOOD, BAD and Unsure."""
    folder, names = tmp_path_factory.mktemp("rater"), ("GOOD", "BAD", "Unsure")
    config = {
        **SIZE,
        "max_position_embeddings": 128,
        "num_labels": 3,
        "id2label": dict(enumerate(names)),
    }
    return save(folder, "BertForSequenceClassification", wordpiece(), **config)
