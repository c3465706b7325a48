"""The contract of attacks: the protocol `Attack`, and its `Outcome`.

In: nothing. Out: the protocol `Attack`, and `Outcome`.
Not here: any attack, and how outcomes become rates and tables (`report`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, runtime_checkable

from textveil.errors import ConfigError
from textveil.evaluate.attack.attack_input import Case, View
from textveil.randomness import Ids, Randomness, Values

ProgressCallback = Callable[[str, int, int], None]
"""Callback for progress: a step's name, the amount done, the total."""

Unit = Literal["word", "name", "text"]
"""Units of outcomes: drawn words, names drawn from lists, or texts."""


def ignore_progress(step: str, done: int, total: int) -> None:
    """Ignores all progress."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """A measure of an attack, with a value for each unit.

    A unit is a word, a name or a text; what is reported is the mean.

    Reported is the mean of the values.

    Attributes:
        source: the attack or the measure that it is of, by name.
        metric: "top-1", "Pr@5".
        setting: what tells this outcome from others of the same source and metric ({"prior":
            "unigram"}).
        unit: what a value belongs to.
        where: int64 [m], the protected position (0..n-1), name (as `View.named` counts them) or
            text (0..B-1) of each value.
        values: float64 [m].
        baseline: the mean that the same attacker reaches without the released words, where that is
            known.
        note: what a reader has to know ("a lower bound: ...").
        share: whether values that are all 0 or 1 are a share, and not sizes that happen to be so.
        headline: whether the picture and the short table have it.
        geometric: whether the values are logarithms, and what is reported is exp of their mean.
        sliced: whether a mean over some of the values means anything.
    """

    source: str
    metric: str
    setting: Mapping[str, str | int | float] = field(default_factory=dict)
    unit: Unit = "word"
    where: Ids = field(repr=False)
    values: Values = field(repr=False)
    baseline: float | None = None
    note: str = ""
    share: bool = True
    headline: bool = True
    geometric: bool = False
    sliced: bool = True

    def __post_init__(self) -> None:
        if self.where.shape != self.values.shape or self.where.ndim != 1:
            raise ConfigError("an outcome must have one place for each value")


@runtime_checkable
class Attack(Protocol):
    """An attacker with options; frozen.

    Guesses are made from `case.view` alone; `case.truth` only says whether they are right. One that
    takes minutes, or needs more than releases, has `on_request = True`: it is run only where
    somebody names it.
    """

    name: ClassVar[str]

    def refusal(self, view: View) -> str:
        """Returns why the attack cannot judge such releases, or "".

        In words that go on "not run: ".
        """
        ...

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Attacks the releases, and judges the guesses.

        Args:
            case: the releases and their originals.
            rng: for attackers who simulate the mechanism.
            report: callback for progress.
        """
        ...


@runtime_checkable
class Wordwise(Attack, Protocol):
    """An attacker who takes every word by itself.

    Names are attacked list by list (`Case.lists`) as words are.
    """

    wordwise: ClassVar[Literal[True]]


@runtime_checkable
class Averaging(Attack, Protocol):
    """An attacker who weighs all releases of a text.

    Every other attacker uses one release.
    """

    averages: ClassVar[Literal[True]]
