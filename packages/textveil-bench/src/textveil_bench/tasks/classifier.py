"""Classifier: the labels that somebody's sequence classifier gives to releases.

In: a model that was trained on originals, releases. Out: whether each release still gets its label.
Not here: classifiers that are trained here (`head`, `finetune`), and how networks run (`textveil.models.labels`).
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from textveil.config import options
from textveil.errors import ConfigError
from textveil.evaluate.attack import Report, quiet
from textveil.randomness import Ints
from textveil_bench.examples import DataSet
from textveil_bench.tasks import labelled, models, vectors
from textveil_bench.tasks.contract import Score
from textveil_bench.trials import ReleasedExample

if TYPE_CHECKING:
    from textveil.models import SequenceClassifier


@options()
class Classification:
    """Judges classification and pairs by a sequence classifier of transformers, as it is.

    The model's labels are matched with those of the data by their names, whatever their casing and punctuation; where
    the model has only numbers for them ("LABEL_0"), by their order, if there are as many. Where neither holds, `labels`
    says what is what. A label of the model that belongs to none of the data is never chosen.

    Args:
        model: a folder or hub id of a model for sequence classification.
        labels: for each label of the data, in order, the model's name or number for it.
        report: told of progress.
    """

    model: str = Field(min_length=1)
    labels: tuple[str | int, ...] = ()
    report: Report = Field(default=quiet, repr=False)

    @property
    def name(self) -> str:
        """What rows call it."""
        return f"classifier ({models.called(self.model)})"

    def refusal(self, data: DataSet) -> str:
        """Where there is no label for a text, or for two."""
        return labelled.refusal(data)

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Accuracy.

        Raises:
            ModelError: there is no such model.
            ConfigError: its labels cannot be matched with those of the data.
            InputError: the first text of a pair takes more than half of the model's window.
        """
        network = models.classifier(self.model)
        columns = matched(data.labels, network.labels, self.labels)
        yield labelled.accuracy(
            data, guess(network, trials, columns, self.report), f"{models.called(self.model)} as it is"
        )


def guess(
    network: "SequenceClassifier", trials: Sequence[ReleasedExample], columns: Sequence[int], report: Report
) -> Ints:
    """The label of each trial, int64 [B]: the likeliest of some of a classifier's.

    Args:
        network: the classifier.
        trials: what was released.
        columns: the number that the classifier has for each label.
        report: told of progress.
    """
    found: list[int] = []
    for start in range(0, len(trials), vectors.STEP):
        report("classifying", start, len(trials))
        logits = network.logits([trial.texts for trial in trials[start : start + vectors.STEP]])
        found += logits[:, list(columns)].argmax(axis=1).tolist()
    return np.array(found, np.int64)


def matched(labels: Sequence[str], offered: Sequence[str], given: Sequence[str | int] = ()) -> list[int]:
    """The number that a classifier has for each label.

    Args:
        labels: those of the data.
        offered: the classifier's, in the order of its numbers.
        given: for each label the classifier's name or number; empty: by names, or by order where it has none.

    Raises:
        ConfigError: a label has no match, or two have the same.
    """
    names = [_plain(name) for name in offered]
    wanted: Sequence[str | int] = given or labels
    if not given and all(re.fullmatch(r"label\d+", name) for name in names) and len(names) == len(labels):
        return list(range(len(labels)))
    numbers = [
        each if isinstance(each, int) else names.index(_plain(each)) if _plain(each) in names else -1 for each in wanted
    ]
    if len(numbers) != len(labels) or len(set(numbers)) != len(numbers) or not set(numbers) <= set(range(len(names))):
        raise ConfigError(
            f"the classifier must have one label of its own ({', '.join(offered)}) for each of the data's "
            f"({', '.join(labels)}); name them in that order with the option labels"
        )
    return numbers


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())
