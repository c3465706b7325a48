"""Detectors that look at each text once: a sweep privatizes the same texts in every cell.

In: the name of a detector. Out: a detector that remembers what was found in a text.
Not here: the detectors (`textveil.protect.protection`), and what is done about a span (`protect.grouping`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from textveil.protect import Detector, Span, detector


@dataclass(frozen=True, kw_only=True, eq=False)
class Remembered:
    """A detector with what it found. Secret: it holds texts.

    Attributes:
        name: of the detector, which spans have as their source.
        asked: the detector.
    """

    name: str
    asked: Detector = field(repr=False)
    _found: dict[str, list[Span]] = field(default_factory=dict, repr=False)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The spans of all texts; the detector sees those only that it has not seen before."""
        new = list(dict.fromkeys(text for text in texts if text not in self._found))
        if new:
            spans: dict[str, list[Span]] = {text: [] for text in new}
            for span in self.asked.find(new):
                spans[new[span.text]].append(span)
            self._found.update(spans)
        return [span._replace(text=i) for i, text in enumerate(texts) for span in self._found[text]]


@lru_cache(maxsize=16)
def remembered(name: str) -> Remembered:
    """The detector of a name, one in a process.

    Raises:
        UnknownName: there is none. ConfigError: it is not installed.
    """
    asked = detector(name)
    return Remembered(name=asked.name, asked=asked)
