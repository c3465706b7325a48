"""Classifier: judges releases with an existing sequence classifier.

In: a model trained on originals, releases. Out: whether each release still gets its label.
Not here: classifiers trained by the bench (`head`, `finetune`), and how networks run
(`textveil.models.labels`).
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.evaluate.attack import ProgressCallback, ignore_progress
from textveil.randomness import Ints
from textveil_bench.examples import DataSet
from textveil_bench.tasks import judge_models, labelled, sentence_vectors
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample

if TYPE_CHECKING:
    from textveil.models import SequenceClassifier


@make_options()
class Classification:
    """Judges classification and pairs with an existing sequence classifier of transformers.

    The model's labels are matched with the data's by name, ignoring case and punctuation, or by
    the one number in each ("1 star", "Stars: 1"). If the model only numbers them from 0 on
    ("LABEL_0", "0"), they are matched by order, provided that there are equally many. Otherwise
    `labels` gives the mapping. Labels of the model without a match are never chosen.

    Args:
        model: a folder or hub id of a model for sequence classification.
        labels: for each label of the data, in order, the model's name or number for it.
        report: called with progress.
    """

    model: str = Field(min_length=1)
    labels: tuple[str | int, ...] = ()
    report: ProgressCallback = Field(default=ignore_progress, repr=False)

    @property
    def name(self) -> str:
        """The judge's name in rows."""
        return f"classifier ({judge_models.get_model_name(self.model)})"

    def explain_refusal(self, data: DataSet) -> str:
        """Returns why the data are not labelled texts or pairs, or ""."""
        return labelled.explain_refusal(data)

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Yields the accuracy.

        Raises:
            ModelError: there is no such model.
            ConfigError: its labels cannot be matched with the data's.
            InputError: the first text of a pair takes more than half of the model's window.
        """
        network = judge_models.get_classifier(self.model)
        columns = match_labels(data.labels, network.labels, self.labels)
        yield labelled.score_accuracy(
            data,
            guess(network, trials, columns, self.report),
            f"{judge_models.get_model_name(self.model)}, not trained here",
        )


def guess(
    network: "SequenceClassifier",
    trials: Sequence[ReleasedExample],
    columns: Sequence[int],
    report: ProgressCallback,
) -> Ints:
    """Predicts each release's label, int64 [B], among the matched labels.

    Args:
        network: the classifier.
        trials: the releases.
        columns: the classifier's number for each label.
        report: called with progress.
    """
    guesses: list[int] = []
    for start in range(0, len(trials), sentence_vectors.STEP):
        report("classifying", start, len(trials))
        logits = network.compute_logits(
            [trial.texts for trial in trials[start : start + sentence_vectors.STEP]]
        )
        guesses += logits[:, list(columns)].argmax(axis=1).tolist()
    return np.array(guesses, np.int64)


def match_labels(
    labels: Sequence[str], model_labels: Sequence[str], assignments: Sequence[str | int] = ()
) -> list[int]:
    """Matches labels with a classifier's labels, and returns their numbers.

    Args:
        labels: labels of the data.
        model_labels: the classifier's labels, in order of number.
        assignments: the classifier's name or number for each label; empty to match by name, by
            the number in it, or by order if the classifier has no names.

    Raises:
        ConfigError: a label has no match, or two have the same.
    """
    names = [_normalize(name) for name in model_labels]
    numbers = [
        label
        if isinstance(label, int)
        else names.index(_normalize(label))
        if _normalize(label) in names
        else -1
        for label in assignments or labels
    ]
    if not assignments and -1 in numbers:
        numbers = _match_by_number(labels, names) or numbers
    if (
        len(numbers) != len(labels)
        or len(set(numbers)) != len(numbers)
        or not set(numbers) <= set(range(len(names)))
    ):
        raise ConfigError(
            f"the classifier must have a different label ({', '.join(model_labels)}) for each of "
            f"the data's ({', '.join(labels)}); name them in that order with the option labels"
        )
    return numbers


def _match_by_number(labels: Sequence[str], names: Sequence[str]) -> list[int]:
    """Matches labels with names that are numbered from 0 on, or have the same numbers; else []."""
    if len(labels) != len(names):
        return []
    if all(name in (f"label{i}", str(i)) for i, name in enumerate(names)):
        return list(range(len(labels)))
    name_digits = [re.findall(r"\d+", name) for name in names]
    label_digits = [re.findall(r"\d+", label) for label in labels]
    is_matching = all(len(digits) == 1 for digits in name_digits) and sorted(name_digits) == sorted(
        label_digits
    )
    return [name_digits.index(digits) for digits in label_digits] if is_matching else []


def _normalize(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())
