"""Detectors with a cache, because all cells privatize the same texts.

In: the name of a detector. Out: a detector that caches its spans by text.
Not here: the detectors (`textveil.detect`), and the processing of spans (`detect.stages`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from textveil.detect import Detector, Span, load_detector


@dataclass(frozen=True, kw_only=True, eq=False)
class CachingDetector:
    """A detector with a cache of its spans. Secret: it holds texts.

    Attributes:
        name: the detector's, which is the source of its spans.
        detector: the detector.
    """

    name: str
    detector: Detector = field(repr=False)
    _cache: dict[str, list[Span]] = field(default_factory=dict, repr=False)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the spans of all texts; runs the detector on new ones."""
        new = list(dict.fromkeys(text for text in texts if text not in self._cache))
        if new:
            spans: dict[str, list[Span]] = {text: [] for text in new}
            for span in self.detector.find(new):
                spans[new[span.text]].append(span)
            self._cache.update(spans)
        return [span._replace(text=i) for i, text in enumerate(texts) for span in self._cache[text]]


@lru_cache(maxsize=16)
def get_caching_detector(name: str) -> CachingDetector:
    """Loads a detector by name, once per process.

    Raises:
        UnknownName: there is no such detector.
        ConfigError: it is not installed.
    """
    inner = load_detector(name)
    return CachingDetector(name=inner.name, detector=inner)
