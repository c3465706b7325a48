"""Memory: spans found in earlier texts, so equal texts are searched once.

In: texts with the spans found in them. Out: the spans of equal texts.
Not here: the decision which texts are searched (`detectors`).
"""

from collections.abc import Mapping, Sequence

from textveil.detect.spans import Span

MOST = 1 << 22
"""The capacity of a memory: characters of texts plus `SPAN` for each span."""

SPAN = 500
"""The size of a span in characters: spans of names carry the numbers by which they are scored."""


class Memory:
    """A cache of the spans found in texts. Secret.

    Args:
        most: its capacity, see `MOST`; the oldest texts are forgotten first.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most, self._held = most, 0
        self._found: dict[str, tuple[Span, ...]] = {}

    def __contains__(self, text: str) -> bool:
        """True if a text was searched and is not forgotten."""
        return text in self._found

    def __getitem__(self, text: str) -> Sequence[Span]:
        """Returns the spans found in a text."""
        return self._found[text]

    def keep(self, found: Mapping[str, Sequence[Span]]) -> None:
        """Stores the spans of new texts; forgets the oldest beyond the capacity."""
        for text, spans in found.items():
            if (size := _compute_size(text, spans)) <= self._most and text not in self._found:
                self._found[text] = tuple(spans)
                self._held += size
        while self._held > self._most:
            text = next(iter(self._found))
            self._held -= _compute_size(text, self._found.pop(text))

    def __repr__(self) -> str:
        return f"Memory({len(self._found)} texts)"


def _compute_size(text: str, spans: Sequence[Span]) -> int:
    return len(text) + SPAN * (1 + len(spans))
