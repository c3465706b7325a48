"""Interface of measures, which are functions from a case to outcomes.

In: nothing. Out: `annotate_measure`, by which a measure states why it may give no figure.
Not here: any measure (the modules beside this one), and how outcomes become rows (`report`).

A measure is called with a case, and with those of the keywords `draws`, `words`, `rng` and `report`
that its signature names; `textveil_bench.measure.measure` describes them. It yields an `Outcome`
for each figure.
"""

from collections.abc import Callable
from typing import TypeVar

DEFAULT_REASON = "it gives no figure for such releases"
"""Reason shown for a measure that gives neither figures nor a reason."""

_Measure = TypeVar("_Measure", bound=Callable[..., object])


def annotate_measure(
    reason: str, *, wordwise: bool = False, on_request: bool = False
) -> Callable[[_Measure], _Measure]:
    """Annotates a measure with its reason for giving no figure: a decorator.

    Args:
        reason: follows "not measured: ".
        wordwise: whether it treats each word separately; it then also measures names, list by list
            (`Case.list_cases`).
        on_request: whether it runs only if it is named, because it takes minutes or needs more.
    """

    def annotate(measure: _Measure) -> _Measure:
        vars(measure).update(silent=reason, wordwise=wordwise, on_request=on_request)
        return measure

    return annotate
