"""Interface of tasks, and their scores.

In: nothing. Out: the protocol `Judge`, and `Score`.
Not here: any task, and how scores become rows (`cells`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from textveil.errors import ConfigError
from textveil.randomness import Values
from textveil_bench.examples import DataSet
from textveil_bench.trials import ReleasedExample


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """One metric of a task: a value per example, reported as mean.

    Attributes:
        metric: "accuracy", "F1".
        values: float64 [B].
        chance: score of guessing without the texts; None if that has no meaning.
        share: whether values from 0 to 1 are shares.
        headline: whether it is the task's main metric.
        note: note for readers of the score.
    """

    metric: str
    values: Values = field(repr=False)
    chance: float | None = None
    share: bool = True
    headline: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or not np.isfinite(self.values).all():
            raise ConfigError(f"the scores of {self.metric} must be one finite number per example")


@runtime_checkable
class Judge(Protocol):
    """A judge of released examples.

    A judge that is trained sees originals only in training, never when it judges.
    """

    @property
    def name(self) -> str:
        """The judge's name in rows, with its model."""
        ...

    def explain_refusal(self, data: DataSet) -> str:
        """Returns why the judge refuses the data, to follow "not run: ".

        Empty if it does not.
        """
        ...

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Scores releases.

        Args:
            data: the trials' data set, with the labels.
            trials: one for each example of `data`. The judge sees only `ReleasedExample.texts`; its
                answers may be compared with all fields.
        """
        ...


@runtime_checkable
class AskingJudge(Judge, Protocol):
    """A judge that asks language models."""

    def ask_all(self, data: DataSet, trials: Sequence[ReleasedExample]) -> object:
        """Asks everything that `score` asks, and judges nothing."""
        ...
