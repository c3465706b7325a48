"""Regular expressions that are compiled on first use.

In: the source of an expression. Out: the methods of a compiled one.
Not here: the expressions themselves; each is where it is used.

The package `regex` compiles in Python: some hundred expressions take longer than the whole work on
a short text, and most texts need few of them.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import regex

Match = regex.Match[str]


class LazyPattern:
    """A regular expression of the package `regex`. Thread-safe.

    After the first use a method is that of the compiled expression itself, so that it costs nothing
    more.

    Args:
        source: the expression.
        flags: of `regex`.
    """

    def __init__(self, source: str, flags: int = 0) -> None:
        self.source, self.flags = source, flags

    @cached_property
    def compiled(self) -> regex.Pattern[str]:
        """The compiled expression."""
        return regex.compile(self.source, self.flags)

    @cached_property
    def search(self) -> Callable[..., Match | None]:
        """The method of the compiled expression, like all that follow."""
        return self.compiled.search

    @cached_property
    def match(self) -> Callable[..., Match | None]:  # noqa: D102
        return self.compiled.match

    @cached_property
    def fullmatch(self) -> Callable[..., Match | None]:  # noqa: D102
        return self.compiled.fullmatch

    @cached_property
    def finditer(self) -> Callable[..., Iterator[Match]]:  # noqa: D102
        return self.compiled.finditer

    @cached_property
    def findall(self) -> Callable[..., list[Any]]:  # noqa: D102
        return self.compiled.findall

    @cached_property
    def sub(self) -> Callable[..., str]:  # noqa: D102
        return self.compiled.sub

    @cached_property
    def split(self) -> Callable[..., list[Any]]:  # noqa: D102
        return self.compiled.split
