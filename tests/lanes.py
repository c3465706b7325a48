"""Which cases run in `make test`, and which only in `make check-long`."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def first_of_each(
    cases: Iterable[Any], kind: Callable[[Any], Hashable] = lambda case: None
) -> list[Any]:
    """Cases for `parametrize`: the first of each kind as it is, the others marked slow."""
    seen: set[Hashable] = set()
    found = []
    for case in cases:
        found.append(pytest.param(case, marks=pytest.mark.slow) if kind(case) in seen else case)
        seen.add(kind(case))
    return found
