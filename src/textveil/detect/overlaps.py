"""Overlaps: resolves overlapping spans, so no word is in two.

In: the spans and tokens of a batch. Out: spans that share no word; tokens cut where spans end.
Not here: the limits of values in structured text (`bounds`, `keyvalue`), and the order of steps
(`stages`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

from textveil.detect.bounds import get_bounds
from textveil.detect.detections import Detections
from textveil.detect.keyvalue.field_names import classify_key
from textveil.detect.keyvalue.values import get_value_type
from textveil.detect.spans import (
    IDENTIFIERS,
    LISTED_TYPE,
    NAMES,
    PRIVACY_THRESHOLD,
    REPEATED_SOURCE,
    Span,
)
from textveil.text import LazyPattern, Tokens

VALUE_DETECTOR = "structure"
"""The detector that knows the exact limits of values."""

CELL_SEPARATORS = frozenset(",;|\t")
"""Separators between cells of a table, which no space follows."""

GUESSED_NUMBER_TYPES, MIN_NUMBER_DIGITS = ("ID", "ACCOUNT", "PHONE"), 5
"""Types of numbers that the tagger finds; and their fewest digits."""

CONFIRMING_TYPES: Mapping[str, tuple[str, ...]] = {
    "AGE": ("AGE",),
    "DATE": ("DATE", "BIRTH_DATE"),
    **dict.fromkeys(
        GUESSED_NUMBER_TYPES,
        (
            *GUESSED_NUMBER_TYPES,
            "NATIONAL_ID",
            "MEDICAL_RECORD",
            "LICENCE",
            "BOOKING",
            "CARD",
            "IBAN",
        ),
    ),
}
"""For each type tagged among words, the types that confirm the bare number."""

_OF_A_NUMBER = LazyPattern(r"\p{N}|\b\p{Lu}{1,2}\b")
_EDGE_BEFORE = LazyPattern(r"(?:\A|[\s:.]|\p{Lo})\Z")
_EDGE_BEHIND = LazyPattern(r"\Z|[\s,.)]|\p{Lo}")


def keep_surest(spans: Sequence[Span]) -> list[Span]:
    """Keeps the best-scored of a detector's identical spans.

    Spans are identical if they agree in place, type, source and whether they are private. All
    findings inside a run of Base64 have the same place, which may be long: without this step, each
    later step would read all of it once for each of them.
    """
    best: dict[tuple[Any, ...], Span] = {}
    for span in spans:
        place = *span[:4], span.source, span.privacy_score >= PRIVACY_THRESHOLD
        if place not in best or span.score > best[place].score:
            best[place] = span
    return [*best.values()]


def drop_wordy_numbers(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """Drops a tagger's number that another detector found alone ("IMEI 49015").

    The guess has only words around that number.

    One or two capitals may be a part of the number ("AB 123456"), so they keep the guess.
    """
    sure_places: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for span in sorted(spans):
        if not span.is_guess:
            sure_places.setdefault((span.text, span.type), []).append((span.start, span.end))

    def is_wordy(span: Span) -> bool:
        text = texts[span.text]
        return span.is_guess and any(
            _is_apart(text[span.start : start], text[end : span.end])
            for type_ in CONFIRMING_TYPES.get(span.type, ())
            for start, end in _select_inside(sure_places.get((span.text, type_), ()), span)
        )

    return [span for span in spans if not is_wordy(span)]


def _is_apart(before: str, behind: str) -> bool:
    if _EDGE_BEFORE.search(before) is None or _EDGE_BEHIND.match(behind) is None:
        return False
    return _OF_A_NUMBER.search(f"{before} {behind}") is None


MAX_GAP = 4
"""The most characters between a label and its value."""

FORM_TYPES = ("EMAIL", "PHONE", "URL", "IP", "IBAN", "CARD", "ACCOUNT")
"""Types that are recognised by a form, so no part of a name."""


def cut_out_forms(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """Cuts identifiers with a form, and their keys, out of names."""
    forms: dict[int, list[tuple[int, int]]] = {}
    for b, start, end in sorted(span[:3] for span in spans if span.type in FORM_TYPES):
        forms.setdefault(b, []).append((start, end))
    pieces: list[Span] = []
    for span in spans:
        form_places = _select_inside(forms.get(span.text, ()), span)
        if span.type not in NAMES or not form_places:
            pieces.append(span)
            continue
        free = span.start
        for start, end in [*form_places, (span.end, span.end)]:
            remainder = _trim_to_alphanumeric(texts[span.text], free, start)
            if remainder and not classify_key(texts[span.text][slice(*remainder)]):
                pieces.append(span._replace(start=remainder[0], end=remainder[1]))
            free = max(free, end)
    return pieces


def drop_labels(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """Drops guessed names that are the key of the value right behind (Handy 0151 ...)."""
    values = {(span.text, span.start, span.type) for span in spans if span.type in IDENTIFIERS}

    def is_label(span: Span) -> bool:
        if not span.is_guess or span.type not in NAMES:
            return False
        text, end = texts[span.text], span.end
        type_ = get_value_type(classify_key(text[span.start : end]) or "")
        gap = len(text[end : end + MAX_GAP]) - len(text[end : end + MAX_GAP].lstrip(" :.#(+"))
        return any((span.text, at, type_) in values for at in range(end, end + gap + 1))

    return [span for span in spans if not is_label(span)]


def _trim_to_alphanumeric(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Returns the range from first to last letter or digit, or None."""
    places = [i for i in range(start, end) if text[i].isalnum()]
    return (places[0], places[-1] + 1) if places else None


def _select_inside(places: Sequence[tuple[int, int]], span: Span) -> list[tuple[int, int]]:
    """Returns the sorted places that lie inside a span."""
    first, last = bisect_left(places, (span.start, 0)), bisect_right(places, (span.end, 0))
    return [place for place in places[first:last] if place[1] <= span.end]


def _clip_places(places: Sequence[tuple[int, int]], span: Span) -> list[tuple[int, int]]:
    """Returns the parts of sorted places that lie inside a span.

    No two places may overlap.
    """
    first = bisect_right(places, span.start, key=lambda place: place[1])
    last = bisect_left(places, span.end, key=lambda place: place[0])
    return [(max(start, span.start), min(end, span.end)) for start, end in places[first:last]]


def divide_between_cells(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """Divides spans that hold structured values and neighbouring cells.

    A guessed number may begin or end in a value; the few digits of another cell are no part of it.
    """
    values: dict[int, list[tuple[int, int]]] = {}
    for b, start, end in sorted(span[:3] for span in spans if span.source == VALUE_DETECTOR):
        places = values.setdefault(b, [])
        if places and start < places[-1][1]:
            places[-1] = places[-1][0], max(end, places[-1][1])
        else:
            places.append((start, end))
    pieces: list[Span] = []
    for span in spans:
        number = span.is_guess and span.type in GUESSED_NUMBER_TYPES
        value_places = (_clip_places if number else _select_inside)(values.get(span.text, ()), span)
        text = texts[span.text]
        separators = _find_separators(text, span, value_places)
        if span.source == VALUE_DETECTOR or not (separators or len(value_places) > 1):
            pieces.append(span)
            continue
        pieces += (
            span._replace(start=start, end=end)
            for start, end in _find_other_cells(text, span, value_places, separators)
            if not (number and sum(map(str.isdigit, text[start:end])) < MIN_NUMBER_DIGITS)
        )
    return pieces


def _find_separators(text: str, span: Span, value_places: Sequence[tuple[int, int]]) -> set[str]:
    """Returns the cell separators beside values in a span."""
    edges = {edge for start, end in value_places for edge in (start - 1, end)}
    return {
        text[i]
        for i in edges
        if span.start <= i < span.end
        and text[i] in CELL_SEPARATORS
        and not text[i + 1 : i + 2].isspace()
    }


def _find_other_cells(
    text: str, span: Span, value_places: Sequence[tuple[int, int]], separators: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Finds the cells of a span outside of its values."""
    at = span.start
    for start, end in [*value_places, (span.end, span.end)]:
        cells = [at - 1, *(i for i in range(at, start) if text[i] in separators), start]
        for before, after in pairwise(cells):
            if cell := _trim_to_alphanumeric(text, before + 1, after):
                yield cell
        at = end


def cut_words(detections: Detections) -> Detections:
    """Cuts words at the edges of spans.

    These are words of scripts without spaces, and words that hold a bound of the text.
    """
    edges = set[tuple[int, int]]()
    for b, text_spans in groupby(detections.spans, key=lambda span: span.text):
        text_bounds = get_bounds(detections.tokens.texts[b], detections.bounds)
        for span in text_spans:
            start, end = find_word_bounds(span, detections.tokens)
            inner = (
                *text_bounds.find_edges(start, span.start + 1),
                *text_bounds.find_edges(span.end - 1, end),
            )
            edges.update((b, edge) for edge in inner)
    places = [(span.text, place) for span in detections.spans for place in (span.start, span.end)]
    tokens, origin = detections.tokens.split_words(places, edges)
    return replace(detections, tokens=tokens, important=detections.important[origin])


def widen_name(span: Span, tokens: Tokens) -> Span:
    """Widens a repeated name to the whole URL or address around it.

    A user name counts as an address, too.
    """
    start, end = find_word_bounds(span, tokens)
    if span.source != REPEATED_SOURCE or span.type not in NAMES or (start, end) == span[1:3]:
        return span
    text = tokens.texts[span.text][start:end]
    if "://" in text or text[:4].lower() == "www.":
        return span._replace(start=start, end=end, type="URL")
    return span._replace(start=start, end=end, type="EMAIL" if "@" in text else "HANDLE")


def join(spans: Sequence[Span], tokens: Tokens) -> list[Span]:
    """Joins spans that overlap or touch the same word.

    A joined span covers all its spans. Type, score and source are those of the most certain span:
    structured identifiers go before user lists, and those before all other types; of identifiers,
    those with a form or a key go before guesses; then the higher score wins, then the longer span,
    then place, type and source.

    Args:
        spans: spans of texts of `tokens`, in any order.
        tokens: the tokens of these texts.

    Returns:
        Sorted spans; no word is in two of them.
    """
    joined: list[tuple[int, int, list[Span]]] = []  # text, end of the last word touched, spans
    for text, start, end, span in sorted(
        (span.text, *find_word_bounds(span, tokens), span) for span in spans
    ):
        if joined and joined[-1][0] == text and start < joined[-1][1]:
            _, before, group = joined.pop()
            joined.append((text, max(before, end), [*group, span]))
        else:
            joined.append((text, end, [span]))
    return sorted(_merge_group(group) for _, _, group in joined)


def find_word_bounds(span: Span, tokens: Tokens) -> tuple[int, int]:
    """Returns the bounds of a span and of the words it touches."""
    low, high = tokens.documents[span.text : span.text + 2].tolist()
    first = bisect_right(tokens.ends, span.start, low, high)
    last = bisect_left(tokens.starts, span.end, low, high) - 1
    if first > last:
        return span.start, span.end
    return min(span.start, int(tokens.starts[first])), max(span.end, int(tokens.ends[last]))


def _merge_group(group: Sequence[Span]) -> Span:
    first = min(group, key=_rank_certainty)
    return first._replace(
        start=min(span.start for span in group), end=max(span.end for span in group)
    )


def _rank_certainty(span: Span) -> tuple[Any, ...]:
    rank = 0 if span.type in IDENTIFIERS else 1 if span.type == LISTED_TYPE else 2
    guessed = rank == 0 and span.is_guess
    return rank, guessed, -span.score, span.start - span.end, span.start, span.type, span.source
