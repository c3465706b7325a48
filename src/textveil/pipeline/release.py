"""Release: drawn rows become words, items, a mask and text again.

In: a batch's words, what was decided for each, and what was drawn. Out: one `Released` per text, and `Notes` for a
session.
Not here: the decisions (`plan`), the draw (`draw`), and the statement about them (`statement`).
"""

import html
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from textveil.detect import DATES, PrivateValue, ranges_without_entities
from textveil.mechanism import PLACEHOLDER, Role, WordRule
from textveil.pipeline.parts import Parts
from textveil.pipeline.plan import Plan
from textveil.protect import Protection
from textveil.randomness import Ids
from textveil.session import Notes, Original, Replaced, Snapshot
from textveil.text import Casing, Item, Kind, Mask, Released, Tokens, apply_casing, casing_of

PLACEHOLDER_TYPE = "WORD"
_KINDS = (Kind.VERBATIM, Kind.WORD, Kind.PLACEHOLDER, Kind.NUMBER, None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """The words of a batch as they will be shown, those without a kind not at all; `text` cuts one text out of it."""

    tokens: Tokens = field(repr=False)
    protection: Protection
    shown: list[str] = field(repr=False)
    kinds: list[Kind | None]
    casing: list[Casing] | None
    pieces: Ids | None
    numbered: bool
    classes: Ids
    consistent: bool
    drawn_groups: bool

    def text(self, b: int, span: slice) -> Released:
        """Text b, whose words stand at `span` of the batch."""
        words = [(i, kind) for i, kind in enumerate(self.kinds[span]) if kind is not None]
        places, kinds = [i for i, _ in words], [kind for _, kind in words]
        texts = [self.shown[span.start + i] for i in places]
        names, groups = self.protection.labels, self.protection.group[span].tolist()
        labels = [names[groups[i]] for i in places]
        mask = Mask(
            words=len(groups),
            verbatim=tuple(i for i, kind in enumerate(kinds) if kind is Kind.VERBATIM),
            placeholders=tuple(
                (i, self._type(span.start + places[i]))
                for i, kind in enumerate(kinds)
                if kind is Kind.PLACEHOLDER
            ),
            numbers=tuple(i for i, kind in enumerate(kinds) if kind is Kind.NUMBER),
            dropped=tuple(i for i, kind in enumerate(self.kinds[span]) if kind is None),
            equal=_equal(texts, kinds, self.classes[span][places].tolist(), numbered=self.numbered),
            numbered=self.numbered,
            consistent=self.consistent,
            drawn_groups=self.drawn_groups,
            groups=tuple(labels) if len(names) > 2 else None,
            pieces=None
            if self.pieces is None
            else tuple(self.pieces[span][~self.protection.public[span]].tolist()),
            casing=None
            if self.casing is None
            else tuple(self.casing[span.start + i] for i in places),
        )
        items = tuple(map(Item, texts, kinds, labels, places, [i + 1 for i in places]))
        gaps = _spaced(_closed(self.tokens.gaps(b), places), kinds, numbered=self.numbered)
        return Released(items=items, gaps=gaps, mask=mask)

    def _type(self, word: int) -> str:
        return type_of(self.protection, word)


def type_of(protection: Protection, word: int) -> str:
    """What a placeholder for a word shows: the type of the sensitive part that it is, or `WORD`."""
    entity = int(protection.entity[word])
    return PLACEHOLDER_TYPE if entity < 0 else protection.types[entity]


def spell(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    plan: Plan,
    rows: Ids,
    *,
    words: Sequence[str],
    steps: Ids,
    notes: Notes | None,
    news: Sequence[Sequence[PrivateValue]] = (),
    done: int = 0,
) -> tuple[list[Released], list[int]]:
    """The B texts as they are shown: each word as that of its rows, a public word or number, a placeholder, or not.

    The notes for a session say which names and dates stand for which, and which words pass: what it needs for the way
    back. Where equal words are released alike, a name or date that stands for another original already, or that the
    text says itself, gives way to a placeholder, so that each leads back. A date beyond the calendar does so too; ages
    and amounts do not lead back, because in an answer their figures may mean anything. All that follows from what was
    drawn and from the mask, which says which words are equal, so it costs nothing. Without notes nothing is remembered;
    placeholders then have numbers where equal words are released alike, of each text's own or by a key
    (`parts.naming`), else none.

    Args:
        parts: of the privatizer.
        tokens: the words.
        protection: their groups.
        plan: their roles.
        rows: int64 [T], what is shown.
        words: those that rows of words that are no names stand for.
        steps: int64 [N], what is added to numbers that are moved up, and to figures.
        notes: for the session; None without one.
        news: for each text the values that were found for the first time.
        done: how many texts of the run came before.

    Returns:
        The releases, and for each text how many of those values have passed in earlier texts.
    """
    pieces, consistent = parts.pieces, parts.words.consistent
    first = np.cumsum(plan.counts) - plan.counts
    drawn = np.zeros(len(plan.roles), bool)
    replaced = (plan.roles == Role.PROTECT) | (plan.rules == WordRule.UNIFORM) | protection.named
    drawn[replaced] = rows[first[replaced]] != PLACEHOLDER
    kinds = np.where(plan.roles == Role.PASS, 0, np.where(drawn, 1, 2))
    kinds[plan.rules == WordRule.ADD], kinds[plan.rules == WordRule.DROP] = 3, 4
    chosen = np.flatnonzero(drawn).tolist()
    if pieces is None:
        named, names = protection.named.tolist(), parts.table.origin.words  # names are no codes
        drawn_rows = zip(chosen, rows[first[chosen]].tolist(), strict=True)
        spelled = [names[row] if named[i] else words[row] for i, row in drawn_rows]
    else:
        spelled = pieces.join([rows[first[i] : first[i] + plan.counts[i]] for i in chosen])
    shown = list(tokens.words)
    for i, word in zip(chosen, spelled, strict=True):
        shown[i] = word
    for i, figure in plan.figures.items():
        if (moved := figure.write(figure.value + int(steps[i]))) is not None:
            kinds[i], shown[i] = 3, moved
    copied: list[Casing] | None = None
    if parts.words.casing == "copy":
        copied = [
            casing_of(word) if kind != 2 else "lower"
            for word, kind in zip(tokens.words, kinds, strict=True)
        ]
        for i in chosen:
            shown[i] = apply_casing(shown[i], copied[i])
    else:
        shown = [word.lower() for word in shown]
    bounds = list(pairwise(tokens.documents.tolist()))
    earlier = [0] * len(bounds)
    if notes is not None:
        notes.spelled(_passing(tokens, shown, kinds, slice(None)))
        for b, (start, stop) in enumerate(bounds):
            if news:
                earlier[b] = sum(map(notes.was_said, news[b]))
                notes.found(news[b])
            notes.said(shown[start + i] for i in np.flatnonzero(kinds[start:stop] == 0).tolist())
        for i in np.flatnonzero(protection.named & drawn).tolist():
            if consistent and not notes.stands(tokens.words[i], shown[i]):
                kinds[i] = 2
            else:
                notes.replaced(tokens.words[i], shown[i])
        for i in (i for i in plan.figures if kinds[i] == 3 and protection.kind(i) in DATES):
            if notes.stands(tokens.words[i], shown[i]):
                notes.replaced(tokens.words[i], shown[i])
            else:
                kinds[i] = 2
    values: list[list[Original]] = []
    for b, (start, stop) in enumerate(bounds):
        places = (start + np.flatnonzero(kinds[start:stop] == 2)).tolist()
        values.append(
            [
                Original(type_of(protection, i), tokens.words[i], _needs_quotes(tokens, b, i))
                for i in places
            ]
        )
        given = [f'"<{type_}>"' if quoted else f"<{type_}>" for type_, _, quoted in values[-1]]
        if notes is not None:
            given = notes.placeholders(values[-1])
        elif consistent and parts.naming is not None:
            given = [parts.naming[done + b].given(value).shown for value in values[-1]]
        elif consistent and values[-1]:
            own = Notes(Snapshot())
            own.spelled(_passing(tokens, shown, kinds, slice(start, stop)))
            given = own.placeholders(values[-1])
        opaque = ranges_without_entities(tokens.texts[b]) if places else None
        for i, placeholder in zip(places, given, strict=True):
            shown[i] = (
                html.escape(placeholder)
                if _reads_entities(opaque, int(tokens.starts[i]))
                else placeholder
            )
    for i in np.flatnonzero(plan.rules == WordRule.ADD).tolist():
        shown[i] = str(int(tokens.words[i]) + int(steps[i]))
    draft = Draft(
        tokens=tokens,
        protection=protection,
        shown=shown,
        kinds=[_KINDS[kind] for kind in kinds.tolist()],
        casing=copied,
        pieces=None if pieces is None else np.where(kinds >= 2, 0, plan.counts),
        numbered=notes is not None or consistent,
        classes=plan.classes,
        consistent=consistent,
        drawn_groups=parts.drawn_groups,
    )
    releases = [draft.text(b, slice(start, stop)) for b, (start, stop) in enumerate(bounds)]
    if notes is not None:
        given_names = {
            i: Replaced(shown[i], tokens.words[i]) for i in np.flatnonzero(kinds == 1).tolist()
        }
        for released, hidden, (start, stop) in zip(releases, values, bounds, strict=True):
            replaced_here = [
                given_names[i]
                for i in range(start, stop)
                if i in given_names and protection.named[i]
            ]
            notes.put(released.text, hidden, replaced_here, parts.source)
    return releases, earlier


def _reads_entities(opaque: Sequence[tuple[int, int]] | None, at: int) -> bool:
    """Whether a place of a text is in markup, where a placeholder as such would be a tag."""
    if opaque is None:
        return False
    before = bisect_right(opaque, at, key=itemgetter(0))
    return not before or at >= opaque[before - 1][1]


def _needs_quotes(tokens: Tokens, b: int, word: int) -> bool:
    """Whether a word is a number or date of JSON, code, settings or SQL: there its placeholder has to be a string."""
    text, start, end = tokens.texts[b], int(tokens.starts[word]), int(tokens.ends[word])
    if not _NUMBER.fullmatch(tokens.words[word]):
        return False
    if _ENDED.match(text, end) is None:
        return False
    before = max(0, start - 200)
    if value := _VALUE.search(text, before, start):
        return not _is_open(text, value.start() + 1, start, text[value.start()])
    found = _ARGUMENT.search(text, before, start) or _row(text, before, start, end)
    return found is not None and not _in_string(text, found.start() + 1, start)


def _is_open(text: str, begin: int, at: int, mark: str) -> bool:
    """Whether a quotation mark, or either kind of it, is open since a place behind a key."""
    marks = (mark,) if mark in "\"'" else ('"', "'")
    since = _ESCAPED.sub("", text[begin:at])
    return any(since.count(each) % 2 for each in marks)


def _row(text: str, before: int, start: int, end: int) -> re.Match[str] | None:
    """What stands before a number that is one of several values in brackets, as in rows of SQL."""
    row = _ROW.search(text, before, start)
    several = row is not None and "," in row[0].rpartition("(")[2]
    return row if several or text[end : end + 9].lstrip().startswith(",") else None


def _in_string(text: str, opened: int, at: int) -> bool:
    """Whether a quotation mark is open in a line, or since what opened; also where the line is too long to tell."""
    begin = text.rfind("\n", max(0, at - LONGEST_LINE), at) + 1
    if not begin and at > LONGEST_LINE:
        return True
    begin = min(begin, opened)
    return any(len(marks.findall(text, begin, at)) % 2 for marks in _MARKS)


_NUMBER = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}"
)
_VALUE = re.compile(
    r"""["']\s*:\s*(?:\[(?:[^\[\]{}]*,)?\s*)?\Z|\w[ \t]+[=!<>]?=[ \t]+(?:\[(?:[^\[\]{}]*,)?\s*)?\Z"""
)
_ARGUMENT = re.compile(r"\{(?:[^{}]*,)?\s*\w+\s*:\s*\Z|\w\((?:[^()]*,)?\s*\w+=\Z")
"""{key: ...} and call(key=...)."""
_ROW = re.compile(r"(?i)(?:\A|\n|[,:=(\[]|\bvalues)\s*\((?:[^()]*,)?\s*\Z")
"""(..., ...) as a line, behind a sign of code, or behind VALUES."""
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_MARKS = re.compile(r'(?<!\\)"'), re.compile(r"(?<!\\)(?<!\w)'|(?<!\\)'(?!\w)")
LONGEST_LINE = 2000
"""Characters of a line before a number that are looked at for an open quotation mark."""
_ENDED = re.compile(r"\s*(?:[,}\])]|\Z)|[ \t]*(?:[;:#\n]|\r\n)")


def _passing(tokens: Tokens, shown: Sequence[str], kinds: NDArray[np.integer], which: slice) -> str:
    """What passes of some words, with its spaces, and a break in the place of every other word."""
    words = (
        word if kind == 0 else "\0"
        for word, kind in zip(shown[which], kinds[which].tolist(), strict=True)
    )
    spaced = (
        (" " if space else "") + word
        for word, space in zip(words, tokens.spaced[which].tolist(), strict=True)
    )
    return "".join(spaced)


def _closed(gaps: list[str], places: Sequence[int]) -> list[str]:
    """The gaps around the words at these places: where others vanished, the widest that was there, a space at least."""
    if len(places) == len(gaps) - 1:
        return gaps
    if not places:
        return [_widest(gaps)]
    between = [
        gaps[j] if j == i + 1 else _widest([*gaps[i + 1 : j + 1], " "]) for i, j in pairwise(places)
    ]
    return [gaps[0], *between, gaps[-1]]


def _widest(gaps: Sequence[str]) -> str:
    return max(gaps, key=lambda gap: (gap.count("\n"), len(gap)))


def _spaced(gaps: list[str], kinds: Sequence[Kind], *, numbered: bool) -> tuple[str, ...]:
    """The gaps, with a space where two replaced words stood side by side (Chinese characters, emoji).

    Placeholders with a session's numbers need none: they have brackets, and restoring must give what stood there.
    """
    apart = (Kind.VERBATIM, Kind.PLACEHOLDER) if numbered else (Kind.VERBATIM,)
    for i in range(1, len(kinds)):
        if not gaps[i] and kinds[i - 1] not in apart and kinds[i] not in apart:
            gaps[i] = " "
    return tuple(gaps)


def _equal(
    texts: Sequence[str], kinds: Sequence[Kind], classes: Sequence[int], *, numbered: bool
) -> tuple[tuple[int, ...], ...]:
    """Which placeholders show the same number, and which words are released alike because they are equal."""
    places: dict[object, list[int]] = {}
    for i, kind in enumerate(kinds):
        if kind is Kind.PLACEHOLDER and numbered:
            places.setdefault(html.unescape(texts[i]), []).append(i)
        elif kind in (Kind.WORD, Kind.NUMBER) and classes[i] >= 0:
            places.setdefault(classes[i], []).append(i)
    return tuple(tuple(group) for group in places.values() if len(group) > 1)
