"""What a measure is: a function from a case to outcomes.

In: nothing. Out: `annotate_measure`, by which a measure says when it has nothing to say.
Not here: any measure (the modules beside this one), and how outcomes become rows (`report`).

A measure is called with a case, and with those of the keywords `draws`, `words`, `rng` and `report`
that its signature
names; see `textveil_bench.measure.measure` for what they are. It gives an `Outcome` for each
figure.
"""

from collections.abc import Callable
from typing import TypeVar

DEFAULT_REASON = "it says nothing of such releases"
"""What is said of a measure that gives no figure and does not say why."""

_Measure = TypeVar("_Measure", bound=Callable[..., object])


def annotate_measure(
    reason: str, *, wordwise: bool = False, on_request: bool = False
) -> Callable[[_Measure], _Measure]:
    """Says when a measure gives no figure: a decorator.

    Args:
        reason: goes on "not measured: ".
        wordwise: whether it takes every word by itself: then it measures names list by list
            (`Case.lists`), too.
        on_request: whether it measures only where somebody names it: it takes minutes, or needs
            more.
    """

    def annotate(measure: _Measure) -> _Measure:
        vars(measure).update(silent=reason, wordwise=wordwise, on_request=on_request)
        return measure

    return annotate
