"""Enumerations: judges the persons of one list together.

In: the scored spans of texts. Out: the same spans; some persons private.
Not here: the odds of each (`scoring`), and who is known (`textveil.text.known_persons`).

Who stands in one enumeration ("A, B and C"), one list, one column of a table or one line of
addressees is of one kind. So if they are private on average, all are, unless a known and public
person is among them: then each keeps its own verdict.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

import regex

from textveil.detect.spans import PRIVACY_THRESHOLD, Span
from textveil.text import LazyPattern, known_persons, vocabulary

MAX_GAP = 24
"""The most characters between two persons of an enumeration."""

SEPARATORS = "|\t;,"
"""What stands between the cells of a line."""

LONGEST_LINE = 400
"""The most characters of a line before a person in a table."""

_BULLET = LazyPattern(r"[\s\d.)(*•·\[\]x\"'–—-]*")
"""What may stand before each entry of a list."""


@cache
def _compile_gap() -> regex.Pattern[str]:
    """Compiles what stands between two persons of an enumeration, the second with a title or not."""
    return regex.compile(
        r"\s?(?:[,;/&]\s?)?(?:(?<!\w)\L<links>\s)?(?:\L<titles>\.?\s)?",
        regex.IGNORECASE,
        titles=vocabulary.get_words("titles") | vocabulary.get_words("titles_with_stop"),
        links=vocabulary.get_words("conjunctions"),
    )


def mark_peers_private(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """Marks persons as private who are listed beside a private one."""
    result = list(spans)
    by_text: defaultdict[int, list[int]] = defaultdict(list)
    for i, span in enumerate(spans):
        if span.type == "PERSON" and span.is_own:
            by_text[span.text].append(i)
    for number, indices in by_text.items():
        private = [spans[i].privacy_score >= PRIVACY_THRESHOLD for i in indices]
        if all(private) or not any(private):
            continue
        indices.sort(key=lambda i: spans[i].start)
        text = texts[number]
        for group in _list_groups(text, [spans[i] for i in indices]):
            members = [indices[k] for k in group]
            left = [i for i in members if spans[i].privacy_score < PRIVACY_THRESHOLD]
            mean = sum(spans[i].privacy_score for i in members) / len(members)
            if mean < PRIVACY_THRESHOLD or len(left) in (0, len(members)):
                continue
            if not any(
                known_persons.is_known_person(text[spans[i].start : spans[i].end]) for i in left
            ):
                for i in left:
                    result[i] = spans[i]._replace(privacy_score=1.0)
    return result


def _list_groups(text: str, spans: Sequence[Span]) -> Iterator[list[int]]:
    """Lists the persons of each enumeration, and of each list or column, by their indices."""
    group = [0]
    for k in range(1, len(spans)):
        before, here = spans[k - 1], spans[k]
        between = text[before.end : here.start] if before.end <= here.start else ""
        if 0 < len(between) <= MAX_GAP and between.strip() and _compile_gap().fullmatch(between):
            group.append(k)
        else:
            yield group
            group = [k]
    yield group
    yield from _list_columns(text, spans)


def _list_columns(text: str, spans: Sequence[Span]) -> Iterator[list[int]]:
    """Lists the persons of consecutive lines of one form, at one place of the form."""
    starts = [0, *(at + 1 for at, letter in enumerate(text) if letter == "\n"), len(text) + 1]
    columns: dict[tuple[int, ...], tuple[int, list[int]]] = {}
    for k, span in enumerate(spans):
        line = bisect_right(starts, span.start) - 1
        before = text[starts[line] : min(span.start, starts[line] + LONGEST_LINE)]
        cell = max(before.rfind(mark) for mark in SEPARATORS) + 1
        if len(before) == LONGEST_LINE or not _BULLET.fullmatch(before, cell):
            continue
        form = tuple(before.count(mark) for mark in SEPARATORS)
        last, column = columns.get(form, (line, []))
        if last < line - 1:
            yield column
            column = []
        column.append(k)
        columns[form] = line, column
    yield from (column for _, column in columns.values())
