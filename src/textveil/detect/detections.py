"""Detections: the object that travels through the stages, and their settings.

In: nothing. Out: `Detections`, `Settings`.
Not here: the stages (`stages`), and the detectors (`detectors`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from textveil.detect.application_words import NO_WORDS, ApplicationWords
from textveil.detect.bounds import Bounds
from textveil.detect.detection_cache import SpanCache
from textveil.detect.lists import Lists
from textveil.detect.occurrences import PrivateValue, ValueIndex
from textveil.detect.regions import Regions
from textveil.detect.spans import Detector, Span
from textveil.randomness import Flags, Ints
from textveil.text import Tokens


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Detections:
    """The tokens and detected spans of a batch of texts. Secret.

    Attributes:
        tokens: the N words of the texts.
        important: bool [N], words that matter to the task; kept aligned with the tokens when words
            are cut.
        spans: the sensitive spans; after the last stage no word is in two of them.
        public_spans: detected spans that are not sensitive: public, or passed by `protect.level`.
        spared: spans that would be sensitive, but that the user listed as never protected.
        failed: whether a detector failed, so that each text is sensitive as a whole.
        bounds: the structural bounds by text, filled when first needed.
        regions: the regions of machine text by text, filled when first needed.
        repeats: int64 [C], for each text of the batch the index of its equal among these distinct
            texts; None if these are the texts of the batch.
        new_values: for each text, the private values that no earlier text had.
        doubtful: those of them that were found in doubt.
    """

    tokens: Tokens
    important: Flags
    spans: tuple[Span, ...] = ()
    public_spans: tuple[Span, ...] = ()
    spared: tuple[Span, ...] = ()
    failed: bool = False
    bounds: dict[str, Bounds] = field(default_factory=dict)
    regions: dict[str, Regions] = field(default_factory=dict)
    repeats: Ints | None = None
    new_values: tuple[tuple[PrivateValue, ...], ...] = ()
    doubtful: frozenset[PrivateValue] = frozenset()

    def expand(self) -> "Detections":
        """Expands the detections of distinct texts to all texts of the batch."""
        which = self.repeats
        if which is None:
            return self
        return replace(
            self,
            tokens=self.tokens.select(which),
            important=self.important[self.tokens.list_words(which)],
            spans=_copy_spans(self.spans, which),
            public_spans=_copy_spans(self.public_spans, which),
            spared=_copy_spans(self.spared, which),
            new_values=tuple(self.new_values[b] for b in which.tolist() if self.new_values),
            repeats=None,
        )


def _copy_spans(spans: Sequence[Span], which: Ints) -> tuple[Span, ...]:
    """Copies the spans of each listed text, with new indices."""
    by_text: dict[int, list[Span]] = {}
    for span in spans:
        by_text.setdefault(span.text, []).append(span)
    return tuple(
        span._replace(text=i) for i, b in enumerate(which.tolist()) for span in by_text.get(b, ())
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """The settings that stages read, next to spans and tokens.

    Attributes:
        detectors: the detectors to run.
        timeout: seconds for which a detector may show no progress; None for no limit.
        memory: the spans found in earlier texts; None to search each batch anew.
        window_memory: the same for paragraphs that are read alone.
        level: `protect.level`.
        types: types that count as sensitive; None for all.
        dates: `protect.dates`.
        never: the user's lists of parts that are never sensitive; None for none.
        scores: whether spans are scored by the rest of their texts; the bundled tagger then also
            returns doubtful spans.
        moves_ages: whether ages are moved.
        known_values: the private values of earlier texts, to which new values are added; None to
            remember nothing.
        reserved: spans that must be protected, whatever detectors find.
        application: the words of the application that the texts belong to.
        is_application: whether the application wrote the texts.
    """

    detectors: tuple[Detector, ...] = field(repr=False)
    timeout: float | None = None
    memory: SpanCache | None = None
    window_memory: SpanCache | None = None
    level: str = "personal"
    types: frozenset[str] | None = None
    dates: str = "personal"
    never: Lists | None = field(default=None, repr=False)
    scores: bool = False
    moves_ages: bool = False
    known_values: ValueIndex | None = field(default=None, repr=False)
    reserved: tuple[Span, ...] = field(default=(), repr=False)
    application: ApplicationWords = NO_WORDS
    is_application: bool = False
