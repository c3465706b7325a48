"""A cache of what was computed for texts, within a number of characters.

In: a function of a text. Out: its results, again at once for texts that come again.
Not here: caches of words, which are short (`functools.lru_cache`).
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_CHARACTERS = 4_000_000
"""Characters of all texts in a cache."""

ENTRY_CHARACTERS = 200
"""Characters that an entry counts besides its text."""


class TextCache(Generic[T]):
    """Function of a text, with its last results.

    Args:
        compute: the function.
        max_characters: characters of the texts; those least recently used go first.
    """

    def __init__(self, compute: Callable[[str], T], max_characters: int = MAX_CHARACTERS) -> None:
        self._compute, self._max_characters, self._lock = compute, max_characters, Lock()
        self._results, self.characters = OrderedDict[str, T](), 0

    def __call__(self, text: str) -> T:
        """Returns the result for a text."""
        with self._lock:
            if text in self._results:
                self._results.move_to_end(text)
                return self._results[text]
        result, size = self._compute(text), len(text) + ENTRY_CHARACTERS
        with self._lock:
            if text not in self._results and size <= self._max_characters:
                self._results[text] = result
                self.characters += size
            while self.characters > self._max_characters:
                self.characters -= len(self._results.popitem(last=False)[0]) + ENTRY_CHARACTERS
        return result
