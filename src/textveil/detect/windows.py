"""Windows: paragraphs that are read alone, besides the whole text.

A name beside a news article looks public, because most of what stands around it is. Its own
paragraph knows better; the whole text knows what a paragraph alone does not tell. So a span is
private if either reading says so.

In: detections of whole texts, with their scores. Out: the same, with the spans that are private in
their own paragraph.
Not here: how a text is read (`detectors`) and scored (`scoring`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

import regex

from textveil.detect.bounds import Place, bind
from textveil.detect.detections import Detections, Settings
from textveil.detect.detectors import find_all
from textveil.detect.encodings import find_strings
from textveil.detect.scoring import SCORED_DETECTORS, score_spans
from textveil.detect.spans import GUESSING_DETECTOR, PRIVACY_THRESHOLD, Span
from textveil.text import LazyPattern, tokenize

DOUBT = 0.1
"""The probability in the whole text from which a span is asked for again.

Of what is private in its own paragraph only, 98% have it, and a third of the paragraphs have none.
"""

MIN_WINDOW_CHARACTERS = 12
"""The fewest characters of a paragraph that is read alone."""

MIN_LINE_CHARACTERS = 40
"""The fewest characters of a line that is a paragraph because it ends with a sentence."""

_BREAK = LazyPattern(
    rf"""\n[^\S\n]*(?:\n\s*)+ | (?:\\[nr]){{2,}}
    | (?<=[^\n]{{{MIN_LINE_CHARACTERS}}}[.!?…:;。！？।؟]["'”’»)\]]?) [^\S\n]* \n\s*""",
    regex.VERBOSE,
)
"""The end of a paragraph: a blank line, also an escaped one; the end of a line and a sentence."""


def add_window_spans(detections: Detections, settings: Settings) -> Detections:
    """Adds the spans that are private in their own paragraph.

    A paragraph is read only if the whole text leaves something in it undecided: a span that a
    tagger found, and that is not private.
    """
    texts = detections.tokens.texts
    by_text: dict[int, list[Span]] = {}
    for span in detections.spans:
        by_text.setdefault(span.text, []).append(span)
    windows = [
        (i, start, end)
        for i, spans in by_text.items()
        for start, end in _select_undecided(find_windows(texts[i]), spans)
    ]
    if not windows:
        return detections
    parts = [texts[i][start:end] for i, start, end in windows]
    taggers = [entry for entry in settings.detectors if entry.name == GUESSING_DETECTOR]
    found = find_all(taggers, parts, timeout=settings.timeout, memory=settings.window_memory)
    tokens = tokenize(parts)
    scored = score_spans([*bind(found, tokens.texts, {}), *_copy_inside(windows, by_text)], tokens)
    private = (
        span._replace(
            text=windows[span.text][0],
            start=span.start + windows[span.text][1],
            end=span.end + windows[span.text][1],
        )
        for span in scored
        if span.source in SCORED_DETECTORS and span.privacy_score >= PRIVACY_THRESHOLD
    )
    return replace(detections, spans=(*detections.spans, *private))


def find_windows(text: str) -> list[Place]:
    """Finds the paragraphs of a text, and its long strings if it is code or data.

    The list is empty if there is but one.
    """
    windows: list[Place] = []
    at = 0
    for start, end in (*(match.span() for match in _BREAK.finditer(text)), (len(text),) * 2):
        windows.append((at, start))
        at = end
    windows += [
        string.inner
        for string in find_strings(text)
        if string.is_value and " " in text[slice(*string.inner)]
    ]
    windows = [(start, end) for start, end in windows if end - start >= MIN_WINDOW_CHARACTERS]
    return windows if len(windows) > 1 else []


def _select_undecided(windows: Sequence[Place], spans: Sequence[Span]) -> Iterator[Place]:
    """Selects the windows in which a tagger's span is not private."""
    starts = sorted(
        span.start
        for span in spans
        if span.source == GUESSING_DETECTOR and DOUBT <= span.privacy_score < PRIVACY_THRESHOLD
    )
    return (
        (start, end)
        for start, end in windows
        if bisect_left(starts, start) < bisect_left(starts, end)
    )


def _copy_inside(
    windows: Sequence[tuple[int, int, int]], by_text: dict[int, list[Span]]
) -> Iterator[Span]:
    """Copies the spans of other detectors into the windows that hold them."""
    for number, (i, start, end) in enumerate(windows):
        spans = by_text[i]
        first = bisect_left(spans, start, key=lambda span: span.start)
        last = bisect_right(spans, end, key=lambda span: span.start)
        for span in spans[first:last]:
            if span.end <= end and span.source != GUESSING_DETECTOR:
                yield span._replace(text=number, start=span.start - start, end=span.end - start)
