"""Helpers for judges of labels: accepted data, training rows, accuracy.

In: data sets and guessed labels. Out: accuracy.
Not here: the judges that guess (`head`, `classifier`, `finetune`, `endpoint_judge`).
"""

from dataclasses import replace

import numpy as np

from textveil.errors import ConfigError
from textveil.randomness import Ints, SeededRandomness
from textveil_bench.examples import DataSet
from textveil_bench.tasks.task_contract import Score


def explain_refusal(data: DataSet) -> str:
    """Returns why the data are not labelled texts or pairs, or ""."""
    if data.kind not in ("classification", "pairs") or not data.labels:
        return (
            f"it judges labels of texts or pairs of texts, and {data.name} is of the kind "
            f"{data.kind}"
        )
    return (
        ""
        if len(data.fields) <= 2
        else f"it judges one text or two, and {data.name} has {len(data.fields)}"
    )


def score_accuracy(data: DataSet, guesses: Ints, note: str) -> Score:
    """Computes the share of right guesses.

    Chance is the share of the most frequent label.

    Args:
        data: data set with the labels.
        guesses: int64 [B], a label's index for each example; -1 for no guess.
        note: note for readers of the score.
    """
    right = np.array([example.label for example in data.examples], np.int64)
    return Score(
        metric="accuracy",
        values=(guesses == right).astype(np.float64),
        chance=float(np.bincount(right).max() / len(right)),
        headline=True,
        note=note,
    )


def select_training_rows(train: DataSet, rows: int) -> DataSet:
    """Selects training rows: all, or a fixed random sample of `rows`.

    Raises:
        ConfigError: a label has no row.
    """
    if len(train) > rows:
        indices = np.sort(draw_order(len(train), SeededRandomness(0))[:rows])
        train = replace(train, examples=tuple(train.examples[i] for i in indices.tolist()))
    if missing := len(
        set(range(len(train.labels))) - {example.label for example in train.examples}
    ):
        raise ConfigError(
            f"each of the {len(train.labels)} labels of {train.name} needs a training row, "
            f"and {missing} lack one; use more rows"
        )
    return train


def check_training_rows(data: DataSet, train: DataSet) -> None:
    """Checks that training rows match the data to judge.

    Raises:
        ConfigError: their labels or number of texts differ.
    """
    if train.labels != data.labels or len(train.fields) != len(data.fields):
        raise ConfigError(
            f"the training rows of {data.name} must have its labels and fields, but they differ"
        )


def draw_order(count: int, rng: SeededRandomness) -> Ints:
    """Draws a random permutation of 0 to `count` - 1, int64 [count]."""
    ((_, draws),) = rng.open([count]).split_rows(count)
    order: Ints = np.argsort(draws.uniform(1)[:, 0], kind="stable")
    return order
