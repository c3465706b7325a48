"""The interface of tasks, and their results.

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
    """One metric of a task, with a value for each example; their mean is reported.

    Attributes:
        metric: "accuracy", "F1".
        values: float64 [B].
        chance: what guessing without the texts reaches; None if that has no meaning.
        share: whether values from 0 to 1 are shares.
        headline: whether the task is judged by this metric.
        note: what readers need to know.
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

    If it is trained, then on originals; it never sees one when it judges.
    """

    @property
    def name(self) -> str:
        """What rows call it: the judge with its model."""
        ...

    def explain_refusal(self, data: DataSet) -> str:
        """Why this task does not apply to such data, as a continuation of "not run: "; empty if it does."""
        ...

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Judges releases.

        Args:
            data: the trials' data set, with the labels.
            trials: one for each example of `data`. Only `ReleasedExample.texts` is shown to the
                judge; its answers may
                be compared with everything.
        """
        ...
