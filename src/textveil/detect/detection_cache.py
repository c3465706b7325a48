"""Memory: spans found in earlier texts, so equal texts are searched once.

In: texts with the spans found in them. Out: the spans of equal texts.
Not here: the decision which texts are searched (`detectors`).
"""

from collections.abc import Mapping, Sequence

from textveil.detect.spans import Span

MAX_CHARACTERS = 1 << 22
"""The capacity of a memory: characters of texts plus `SPAN_SIZE` for each span."""

SPAN_SIZE = 500
"""The size of a span in characters: spans of names carry the numbers by which they are scored."""


class SpanCache:
    """A cache of the spans found in texts. Secret.

    Args:
        capacity: its capacity, see `MAX_CHARACTERS`; the oldest texts are forgotten first.
    """

    def __init__(self, capacity: int = MAX_CHARACTERS) -> None:
        self._capacity, self._size = capacity, 0
        self._spans_by_text: dict[str, tuple[Span, ...]] = {}

    def __contains__(self, text: str) -> bool:
        """True if a text was searched and is not forgotten."""
        return text in self._spans_by_text

    def __getitem__(self, text: str) -> Sequence[Span]:
        """Returns the spans found in a text."""
        return self._spans_by_text[text]

    def keep(self, spans_by_text: Mapping[str, Sequence[Span]]) -> None:
        """Stores the spans of new texts; forgets the oldest beyond the capacity."""
        for text, spans in spans_by_text.items():
            if (
                size := _compute_size(text, spans)
            ) <= self._capacity and text not in self._spans_by_text:
                self._spans_by_text[text] = tuple(spans)
                self._size += size
        while self._size > self._capacity:
            # A dict keeps the order of insertion, so its first text is the oldest.
            text = next(iter(self._spans_by_text))
            self._size -= _compute_size(text, self._spans_by_text.pop(text))

    def __repr__(self) -> str:
        return f"Memory({len(self._spans_by_text)} texts)"


def _compute_size(text: str, spans: Sequence[Span]) -> int:
    return len(text) + SPAN_SIZE * (1 + len(spans))
