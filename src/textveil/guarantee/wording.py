"""How bounds and counts are written in statements.

In: numbers. Out: their wording.
Not here: what is stated (`guarantee`).
"""

import math
from collections.abc import Mapping


def number(value: float, digits: int = 4) -> str:
    """A bound for people, rounded up so that it stays a bound."""
    if not math.isfinite(value) or value == 0:
        return "infinite" if value > 0 else f"{value:g}"
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / step - 1e-9) * step:.10g}"


def _between(low: float, high: float) -> str:
    return number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"


def _texts(n: int) -> str:
    return "the text" if n == 1 else f"the {n:,} texts"


def _plain(value: object) -> object:
    """As JSON can write it, which has no infinite numbers."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def _also(additive: float) -> str:
    return f", plus {number(additive)}" if additive else ""


def _plus(additive: float) -> str:
    return f" + {number(additive)}" if additive else ""


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
