"""Release: drawn rows become words, items, a mask and text again.

In: a batch's words, what was decided for each, and what was drawn. Out: one `Released` per text, and `Notes` for a
session.
Not here: the decisions (`plan`), the draw (`draw`), and the statement about them (`statement`).
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from operator import itemgetter

import numpy as np

from textveil.detect import DATES, PrivateValue, ranges_without_entities
from textveil.mechanism import PLACEHOLDER, Role, WordRule
from textveil.pipeline.parts import Parts
from textveil.pipeline.plan import Plan
from textveil.protect import Protection
from textveil.randomness import Flags, Ids
from textveil.session import Notes, Original, Replaced, Snapshot, Source
from textveil.text import Casing, Item, Kind, Mask, Released, Tokens, apply_casing, casing_of

PLACEHOLDER_TYPE = "WORD"
_KINDS = (Kind.VERBATIM, Kind.WORD, Kind.PLACEHOLDER, Kind.NUMBER)
_PASSES, _DRAWN, _HOLE, _NUMBER, _DROPPED = range(5)
"""What becomes of a word: an item of one of these kinds, or none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """The words of a batch as they will be shown, dropped ones not at all; `text` cuts one text out of it."""

    tokens: Tokens = field(repr=False)
    protection: Protection
    shown: list[str] = field(repr=False)
    kinds: Ids
    casing: list[Casing] | None
    pieces: Ids | None
    numbered: bool
    classes: Ids
    consistent: bool
    drawn_groups: bool

    def text(self, b: int, span: slice) -> Released:
        """Text b, whose words stand at `span` of the batch."""
        own = self.kinds[span]
        kept = own[own != _DROPPED]
        places = np.flatnonzero(own != _DROPPED).tolist()
        words = [span.start + i for i in places]
        texts = list(map(self.shown.__getitem__, words))
        kinds = list(map(_KINDS.__getitem__, kept.tolist()))
        names, groups = self.protection.labels, self.protection.group[words].tolist()
        labels = [names[group] for group in groups]
        casing, pieces, public = self.casing, self.pieces, self.protection.public[span]
        mask = Mask(
            words=len(own),
            verbatim=_places(kept, _PASSES),
            placeholders=tuple(
                (i, type_of(self.protection, words[i])) for i in _places(kept, _HOLE)
            ),
            numbers=_places(kept, _NUMBER),
            dropped=_places(own, _DROPPED),
            equal=_equal(texts, kinds, self.classes[words].tolist(), numbered=self.numbered),
            numbered=self.numbered,
            consistent=self.consistent,
            drawn_groups=self.drawn_groups,
            groups=tuple(labels) if len(names) > 2 else None,
            pieces=None if pieces is None else tuple(pieces[span][~public].tolist()),
            casing=None if casing is None else tuple(casing[i] for i in words),
        )
        items = tuple(map(Item, texts, kinds, labels, places, [i + 1 for i in places]))
        gaps = _spaced(_closed(self.tokens.gaps(b), places), kinds, numbered=self.numbered)
        return Released(items=items, gaps=gaps, mask=mask)


def _places(kinds: Ids, kind: int) -> tuple[int, ...]:
    return tuple(np.flatnonzero(kinds == kind).tolist())


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
    kinds = _kinds(plan, protection, rows)
    shown = list(tokens.words)
    drawn = np.flatnonzero(kinds == _DRAWN).tolist()
    for i, word in zip(drawn, _spelled(parts, protection, plan, rows, drawn, words), strict=True):
        shown[i] = word
    _move(tokens, plan, shown, kinds, steps)
    casing = _case(tokens, shown, kinds) if parts.words.casing == "copy" else None
    if casing is None:
        shown = [word.lower() for word in shown]
    consistent, earlier = parts.words.consistent, [0] * len(tokens.texts)
    if notes is not None:
        earlier = _remember(tokens, shown, kinds, notes, news)
        _lead_back(tokens, protection, plan, shown, kinds, notes, consistent=consistent)
    hidden = _hide(parts, tokens, protection, shown, kinds, notes, done)
    draft = Draft(
        tokens=tokens,
        protection=protection,
        shown=shown,
        kinds=kinds,
        casing=casing,
        pieces=None if parts.pieces is None else np.where(kinds >= _HOLE, 0, plan.counts),
        numbered=notes is not None or consistent,
        classes=plan.classes,
        consistent=consistent,
        drawn_groups=parts.drawn_groups,
    )
    releases = [draft.text(b, span) for b, span in enumerate(tokens.spans)]
    if notes is not None:
        names = protection.named & (kinds == _DRAWN)
        _keep(notes, releases, hidden, tokens, shown, names, parts.source)
    return releases, earlier


def _keep(
    notes: Notes,
    releases: Sequence[Released],
    hidden: Sequence[Sequence[Original]],
    tokens: Tokens,
    shown: Sequence[str],
    names: Flags,
    source: Source,
) -> None:
    """Notes the texts as they are released, with what their placeholders and names stand for."""
    for released, values, span in zip(releases, hidden, tokens.spans, strict=True):
        places = (span.start + np.flatnonzero(names[span])).tolist()
        replaced = [Replaced(shown[i], tokens.words[i]) for i in places]
        notes.put(released.text, values, replaced, source)


def _kinds(plan: Plan, protection: Protection, rows: Ids) -> Ids:
    """What becomes of each word, by what was decided and whether a row was drawn for it, int64 [N]."""
    drawn = (plan.roles == Role.PROTECT) | (plan.rules == WordRule.UNIFORM) | protection.named
    drawn[drawn] = rows[_firsts(plan)[drawn]] != PLACEHOLDER
    kinds = np.where(plan.roles == Role.PASS, _PASSES, np.where(drawn, _DRAWN, _HOLE))
    kinds[plan.rules == WordRule.ADD] = _NUMBER
    kinds[plan.rules == WordRule.DROP] = _DROPPED
    return kinds


def _firsts(plan: Plan) -> Ids:
    """The first unit of each word."""
    firsts: Ids = np.cumsum(plan.counts) - plan.counts
    return firsts


def _spelled(
    parts: Parts,
    protection: Protection,
    plan: Plan,
    rows: Ids,
    drawn: Sequence[int],
    words: Sequence[str],
) -> list[str]:
    """What is drawn for these words; names are no codes, and stand in the table's origin."""
    first = _firsts(plan)
    if parts.pieces is not None:
        return parts.pieces.join([rows[first[i] : first[i] + plan.counts[i]] for i in drawn])
    named, names = protection.named.tolist(), parts.table.origin.words
    drawn_rows = zip(drawn, rows[first[drawn]].tolist(), strict=True)
    return [names[row] if named[i] else words[row] for i, row in drawn_rows]


def _move(tokens: Tokens, plan: Plan, shown: list[str], kinds: Ids, steps: Ids) -> None:
    """Moves figures, where they stay writable, and numbers that a paper's rule adds to."""
    for i, figure in plan.figures.items():
        if (moved := figure.write(figure.value + int(steps[i]))) is not None:
            kinds[i], shown[i] = _NUMBER, moved
    for i in np.flatnonzero(plan.rules == WordRule.ADD).tolist():
        shown[i] = str(int(tokens.words[i]) + int(steps[i]))


def _case(tokens: Tokens, shown: list[str], kinds: Ids) -> list[Casing]:
    """Gives drawn words the casing of the words they stand for; the casing of all words, as the mask shows it."""
    kinds_of = zip(tokens.words, kinds.tolist(), strict=True)
    casing: list[Casing] = [
        "lower" if kind == _HOLE else casing_of(word) for word, kind in kinds_of
    ]
    for i in np.flatnonzero(kinds == _DRAWN).tolist():
        shown[i] = apply_casing(shown[i], casing[i])
    return casing


def _remember(
    tokens: Tokens,
    shown: Sequence[str],
    kinds: Ids,
    notes: Notes,
    news: Sequence[Sequence[PrivateValue]],
) -> list[int]:
    """Notes which words pass and what was found; of each text how much of that has passed in earlier texts."""
    earlier = [0] * len(tokens.texts)
    notes.spelled(_passing(tokens, shown, kinds, slice(None)))
    for b, span in enumerate(tokens.spans):
        if news:
            earlier[b] = sum(map(notes.was_said, news[b]))
            notes.found(news[b])
        places = np.flatnonzero(kinds[span] == _PASSES)
        notes.said(shown[i] for i in (span.start + places).tolist())
    return earlier


def _lead_back(
    tokens: Tokens,
    protection: Protection,
    plan: Plan,
    shown: Sequence[str],
    kinds: Ids,
    notes: Notes,
    *,
    consistent: bool,
) -> None:
    """Notes which names and dates stand for which; those that would not lead back give way to placeholders."""
    names = np.flatnonzero(protection.named & (kinds == _DRAWN)).tolist()
    dates = [i for i in plan.figures if kinds[i] == _NUMBER and protection.kind(i) in DATES]
    for i in [*names, *dates]:
        unchecked = protection.named[i] and not consistent
        if unchecked or notes.stands(tokens.words[i], shown[i]):
            notes.replaced(tokens.words[i], shown[i])
        else:
            kinds[i] = _HOLE


def _hide(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    shown: list[str],
    kinds: Ids,
    notes: Notes | None,
    done: int,
) -> list[list[Original]]:
    """Puts a placeholder in the place of each word that has one; what they stand for, by text."""
    hidden = []
    for b, span in enumerate(tokens.spans):
        places = (span.start + np.flatnonzero(kinds[span] == _HOLE)).tolist()
        values = [
            Original(type_of(protection, i), tokens.words[i], _needs_quotes(tokens, b, i))
            for i in places
        ]
        passing = partial(_passing, tokens, shown, kinds, span)
        given = _given(parts, values, notes, passing, done + b)
        opaque = ranges_without_entities(tokens.texts[b]) if places else None
        for i, placeholder in zip(places, given, strict=True):
            in_markup = _reads_entities(opaque, int(tokens.starts[i]))
            shown[i] = html.escape(placeholder) if in_markup else placeholder
        hidden.append(values)
    return hidden


def _given(
    parts: Parts,
    values: Sequence[Original],
    notes: Notes | None,
    passing: Callable[[], str],
    number: int,
) -> Sequence[str]:
    """The placeholders for what is hidden in a text of this number in its run, beside what passes there."""
    if not values:
        return ()
    if notes is not None:
        return notes.placeholders(values)
    if not parts.words.consistent:
        return [f'"<{type_}>"' if quoted else f"<{type_}>" for type_, _, quoted in values]
    if parts.naming is not None:
        return [parts.naming[number].given(value).shown for value in values]
    own = Notes(Snapshot())
    own.spelled(passing())
    return own.placeholders(values)


def _reads_entities(opaque: Sequence[tuple[int, int]] | None, at: int) -> bool:
    """Whether a place of a text is in markup, where a placeholder as such would be a tag."""
    if opaque is None:
        return False
    before = bisect_right(opaque, at, key=itemgetter(0))
    return not before or at >= opaque[before - 1][1]


def _needs_quotes(tokens: Tokens, b: int, word: int) -> bool:
    """Whether a word is a number or date of JSON, code, settings or SQL: there its placeholder has to be a string."""
    text, start, end = tokens.texts[b], int(tokens.starts[word]), int(tokens.ends[word])
    if not _FIGURE.fullmatch(tokens.words[word]):
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


_FIGURE = re.compile(
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


def _passing(tokens: Tokens, shown: Sequence[str], kinds: Ids, which: slice) -> str:
    """What passes of some words, with its spaces, and a break in the place of every other word."""
    words = (
        word if kind == _PASSES else "\0"
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
