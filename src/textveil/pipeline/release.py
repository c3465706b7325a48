"""Release: turns drawn rows into words, items, a mask and text.

In: a batch's words, the decision about each, and the draw. Out: one `Released` per text, and
`Notes` for a session.
Not here: the decisions (`plan`), the draw (`draw`), and the statement about them (`statement`).
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from operator import itemgetter

import numpy as np

from textveil.detect import DATES, PrivateValue, find_opaque_ranges
from textveil.mechanism import PLACEHOLDER, Role, WordRule
from textveil.pipeline.components import Parts
from textveil.pipeline.plan import Plan
from textveil.pipeline.surrogates import Surrogates
from textveil.protect import Protection
from textveil.randomness import Flags, Ids
from textveil.session import Changes, Original, Replacement, Snapshot, Source
from textveil.text import Casing, Item, Kind, Mask, Released, Tokens, apply_casing, get_casing

PLACEHOLDER_TYPE = "WORD"
_ITEM_KINDS = (Kind.VERBATIM, Kind.WORD, Kind.PLACEHOLDER, Kind.NUMBER)
_PASSES, _DRAWN, _HOLE, _NUMBER, _DROPPED = range(5)
"""Treatment of a word: one of the item kinds, or dropped."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """Words of a batch as shown, with dropped ones still marked.

    `build_text` cuts one text out of it.
    """

    tokens: Tokens = field(repr=False)
    protection: Protection
    output_words: list[str] = field(repr=False)
    kinds: Ids
    casing: list[Casing] | None
    pieces: Ids | None
    numbered: bool
    classes: Ids
    consistent: bool
    drawn_groups: bool

    @cached_property
    def _columns(self) -> tuple[list[int], list[int], list[int]]:
        """Kinds, groups and classes as lists, which are quicker for short texts."""
        return self.kinds.tolist(), self.protection.group.tolist(), self.classes.tolist()

    def build_text(self, b: int, span: slice) -> Released:
        """Builds text b, whose words are at `span` of the batch."""
        kinds_of_words, groups, classes = self._columns
        all_kinds = kinds_of_words[span]
        places = [i for i, kind in enumerate(all_kinds) if kind != _DROPPED]
        words = [span.start + i for i in places]
        shown_kinds = [all_kinds[i] for i in places]
        texts = list(map(self.output_words.__getitem__, words))
        kinds = list(map(_ITEM_KINDS.__getitem__, shown_kinds))
        names = self.protection.labels
        labels = [names[groups[i]] for i in words]
        casing, pieces = self.casing, self.pieces
        mask = Mask(
            words=len(all_kinds),
            verbatim=_find_kind(shown_kinds, _PASSES),
            placeholders=tuple(
                (i, get_placeholder_type(self.protection, words[i]))
                for i in _find_kind(shown_kinds, _HOLE)
            ),
            numbers=_find_kind(shown_kinds, _NUMBER),
            dropped=_find_kind(all_kinds, _DROPPED),
            equal=_group_equal(texts, kinds, [classes[i] for i in words], numbered=self.numbered),
            numbered=self.numbered,
            consistent=self.consistent,
            drawn_groups=self.drawn_groups,
            groups=tuple(labels) if len(names) > 2 else None,
            pieces=None
            if pieces is None
            else tuple(pieces[span][~self.protection.public[span]].tolist()),
            casing=None if casing is None else tuple(casing[i] for i in words),
        )
        items = tuple(map(Item, texts, kinds, labels, places, [i + 1 for i in places]))
        gaps = _add_spaces(
            _close_gaps(self.tokens.get_gaps(b), places), kinds, numbered=self.numbered
        )
        return Released(items=items, gaps=gaps, mask=mask)


def _find_kind(kinds: Sequence[int], kind: int) -> tuple[int, ...]:
    return tuple([i for i, each in enumerate(kinds) if each == kind])


def get_placeholder_type(protection: Protection, word: int) -> str:
    """Returns a placeholder's type: that of the sensitive part, or `WORD`."""
    entity = int(protection.entity[word])
    return PLACEHOLDER_TYPE if entity < 0 else protection.types[entity]


def spell(  # noqa: PLR0913 - most are options, given by keyword
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    plan: Plan,
    rows: Ids,
    *,
    words: Sequence[str],
    steps: Ids,
    notes: Changes | None,
    new_values: Sequence[Sequence[PrivateValue]] = (),
    numbers: Ids | None = None,
    first: int = 0,
) -> tuple[list[Released], list[int]]:
    """Spells the B texts: words, numbers and placeholders in place of rows.

    The notes for a session say which names and dates stand for which, and which words pass: all
    that restoring needs. Where equal words are released alike, a name or date that already stands
    for another original, or that the text itself contains, becomes a placeholder, so that each can
    be restored. A date beyond the calendar does so too; ages and amounts are not restored, because
    in an answer their figures may mean anything. All that is computed from the draw and from the
    mask, which shows which words are equal, so it costs nothing. Without notes nothing is
    remembered; placeholders then have numbers where equal words are released alike, counted in each
    text or derived from a key (`parts.naming`), else none.

    Args:
        parts: parts of the privatizer.
        tokens: the words.
        protection: their groups.
        plan: their roles.
        rows: int64 [T], rows to show.
        words: vocabulary of the rows, except those of names.
        steps: int64 [N], amounts that are added to numbers that a rule raises, and to figures.
        notes: for the session; None without one.
        new_values: for each text the values that were found for the first time.
        numbers: int64 [T], random numbers for surrogates of identifiers; None for placeholders.
        first: number of texts of the run that came before.

    Returns:
        The releases, and for each text how many of those values have passed in earlier texts.
    """
    kinds = _classify(plan, protection, rows)
    output_words = list(tokens.words)
    draw_places = np.flatnonzero(kinds == _DRAWN).tolist()
    for i, word in zip(
        draw_places, _lookup_words(parts, protection, plan, rows, draw_places, words), strict=True
    ):
        output_words[i] = word
    _move_figures(tokens, plan, output_words, kinds, steps)
    casing = _copy_casing(tokens, output_words, kinds) if parts.words.casing == "copy" else None
    if casing is None:
        output_words = [word.lower() for word in output_words]
    consistent, earlier = parts.words.consistent, [0] * len(tokens.texts)
    if notes is not None:
        # What passes comes first: no name or placeholder may then be assigned that the text
        # contains.
        earlier = _note_passing(tokens, output_words, kinds, notes, new_values)
        _note_replaced(tokens, protection, plan, output_words, kinds, notes, consistent=consistent)
    surrogates = None
    if numbers is not None and len(numbers):
        surrogates = Surrogates(parts.identifiers, numbers[_find_firsts(plan)], tokens.texts)
    originals, invented = _hide_words(
        parts, tokens, protection, output_words, kinds, notes, surrogates, first
    )
    draft = Draft(
        tokens=tokens,
        protection=protection,
        output_words=output_words,
        kinds=kinds,
        casing=casing,
        pieces=None if parts.pieces is None else np.where(kinds >= _HOLE, 0, plan.counts),
        numbered=notes is not None or consistent,
        classes=plan.classes,
        consistent=consistent,
        drawn_groups=parts.drawn_groups,
    )
    releases = [draft.build_text(b, span) for b, span in enumerate(tokens.spans)]
    if notes is not None:
        names = protection.named & (kinds == _DRAWN)
        _describe_releases(
            notes, releases, originals, invented, tokens, output_words, names, parts.source
        )
    return releases, earlier


def _describe_releases(
    notes: Changes,
    releases: Sequence[Released],
    originals: Sequence[Sequence[Original]],
    invented: Sequence[Sequence[Replacement]],
    tokens: Tokens,
    output_words: Sequence[str],
    names: Flags,
    source: Source,
) -> None:
    """Notes the released texts, with the originals of placeholders and names."""
    for released, values, surrogates, span in zip(
        releases, originals, invented, tokens.spans, strict=True
    ):
        places = (span.start + np.flatnonzero(names[span])).tolist()
        replaced = [Replacement(output_words[i], tokens.words[i]) for i in places]
        replaced += surrogates
        notes.add_release(released.text, values, replaced, source)


def _classify(plan: Plan, protection: Protection, rows: Ids) -> Ids:
    """Classifies each word by decision and draw, int64 [N]."""
    is_drawn = (plan.roles == Role.PROTECT) | (plan.rules == WordRule.UNIFORM) | protection.named
    is_drawn[is_drawn] = rows[_find_firsts(plan)[is_drawn]] != PLACEHOLDER
    kinds = np.where(plan.roles == Role.PASS, _PASSES, np.where(is_drawn, _DRAWN, _HOLE))
    kinds[plan.rules == WordRule.ADD] = _NUMBER
    kinds[plan.rules == WordRule.DROP] = _DROPPED
    return kinds


def _find_firsts(plan: Plan) -> Ids:
    """Returns the index of each word's first unit, int64 [N]."""
    firsts: Ids = np.cumsum(plan.counts) - plan.counts
    return firsts


def _lookup_words(
    parts: Parts,
    protection: Protection,
    plan: Plan,
    rows: Ids,
    places: Sequence[int],
    words: Sequence[str],
) -> list[str]:
    """Looks up the drawn words of these positions.

    Names are no codes: their rows are those of the table's origin.
    """
    first = _find_firsts(plan)
    if parts.pieces is not None:
        return parts.pieces.join([rows[first[i] : first[i] + plan.counts[i]] for i in places])
    named, names = protection.named.tolist(), parts.table.origin.words
    drawn_rows = zip(places, rows[first[places]].tolist(), strict=True)
    return [names[row] if named[i] else words[row] for i, row in drawn_rows]


def _move_figures(
    tokens: Tokens, plan: Plan, output_words: list[str], kinds: Ids, steps: Ids
) -> None:
    """Moves figures that stay writable, and numbers that a paper's rule raises."""
    for i, figure in plan.figures.items():
        if (figure_text := figure.write(figure.value + int(steps[i]))) is not None:
            kinds[i], output_words[i] = _NUMBER, figure_text
    for i in np.flatnonzero(plan.rules == WordRule.ADD).tolist():
        output_words[i] = str(int(tokens.words[i]) + int(steps[i]))


def _copy_casing(tokens: Tokens, output_words: list[str], kinds: Ids) -> list[Casing]:
    """Copies the casing of originals to drawn words; returns all casings."""
    kinds_of = zip(tokens.words, kinds.tolist(), strict=True)
    casing: list[Casing] = [
        "lower" if kind == _HOLE else get_casing(word) for word, kind in kinds_of
    ]
    for i in np.flatnonzero(kinds == _DRAWN).tolist():
        output_words[i] = apply_casing(output_words[i], casing[i])
    return casing


def _note_passing(
    tokens: Tokens,
    output_words: Sequence[str],
    kinds: Ids,
    notes: Changes,
    new_values: Sequence[Sequence[PrivateValue]],
) -> list[int]:
    """Notes passing words and findings.

    Returns:
        For each text how many of its new values have passed in earlier texts.
    """
    earlier = [0] * len(tokens.texts)
    notes.reserve_names(_join_passing(tokens, output_words, kinds, slice(None)))
    for b, span in enumerate(tokens.spans):
        if new_values:
            earlier[b] = sum(map(notes.is_revealed, new_values[b]))
            notes.add_private(new_values[b])
        places = np.flatnonzero(kinds[span] == _PASSES)
        notes.add_plain_words(output_words[i] for i in (span.start + places).tolist())
    return earlier


def _note_replaced(
    tokens: Tokens,
    protection: Protection,
    plan: Plan,
    output_words: Sequence[str],
    kinds: Ids,
    notes: Changes,
    *,
    consistent: bool,
) -> None:
    """Notes replaced names and dates.

    Those that could not be restored become placeholders.
    """
    names = np.flatnonzero(protection.named & (kinds == _DRAWN)).tolist()
    dates = [i for i in plan.figures if kinds[i] == _NUMBER and protection.get_group(i) in DATES]
    for i in [*names, *dates]:
        # The answer of `claim_name` tells which originals are equal: asked only where the mask
        # does.
        unchecked = protection.named[i] and not consistent
        if unchecked or notes.claim_name(tokens.words[i], output_words[i]):
            notes.add_replacement(tokens.words[i], output_words[i])
        else:
            kinds[i] = _HOLE


def _hide_words(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    output_words: list[str],
    kinds: Ids,
    notes: Changes | None,
    surrogates: Surrogates | None,
    first: int,
) -> tuple[list[list[Original]], list[list[Replacement]]]:
    """Puts placeholders, or invented identifiers, in place of hidden words.

    Returns:
        The originals of placeholders by text, and what was invented.
    """
    originals, invented = [], []
    for b, span in enumerate(tokens.spans):
        places = (span.start + np.flatnonzero(kinds[span] == _HOLE)).tolist()
        values = [
            Original(
                get_placeholder_type(protection, i), tokens.words[i], _needs_quotes(tokens, b, i)
            )
            for i in places
        ]
        passing = partial(_join_passing, tokens, output_words, kinds, span)
        placeholders, text_notes = _make_placeholders(parts, values, notes, passing, first + b)
        shown = _invent_identifiers(values, places, surrogates, text_notes)
        opaque = find_opaque_ranges(tokens.texts[b]) if places else None
        for i, placeholder, surrogate in zip(places, placeholders, shown, strict=True):
            # In markup, a bare <...> would be read as a tag.
            in_markup = _is_in_markup(opaque, int(tokens.starts[i]))
            output_words[i] = surrogate or (html.escape(placeholder) if in_markup else placeholder)
        pairs = list(zip(values, shown, strict=True))
        originals.append([value for value, surrogate in pairs if surrogate is None])
        invented.append([Replacement(text, value.text) for value, text in pairs if text])
    return originals, invented


def _invent_identifiers(
    values: Sequence[Original],
    places: Sequence[int],
    surrogates: Surrogates | None,
    notes: Changes | None,
) -> list[str | None]:
    """Returns what is invented for each hidden value; None for its placeholder."""
    if surrogates is None or notes is None:
        return [None] * len(values)
    return [surrogates.assign(notes, value, i) for value, i in zip(values, places, strict=True)]


def _make_placeholders(
    parts: Parts,
    values: Sequence[Original],
    notes: Changes | None,
    passing: Callable[[], str],
    number: int,
) -> tuple[Sequence[str], Changes | None]:
    """Returns the placeholders of one text's values, by session, key or count.

    And the notes that they stand in, if they do.
    """
    if not values:
        return (), None
    if notes is not None:
        return notes.assign_placeholders(values), notes
    if not parts.words.consistent:
        return [f'"<{type_}>"' if quoted else f"<{type_}>" for type_, _, quoted in values], None
    if parts.naming is not None:
        return [parts.naming[number].build_placeholder(value).text for value in values], None
    notes_of_text = Changes(Snapshot())
    notes_of_text.reserve_names(passing())
    return notes_of_text.assign_placeholders(values), notes_of_text


def _is_in_markup(opaque: Sequence[tuple[int, int]] | None, offset: int) -> bool:
    """Says whether an offset is in markup, where a placeholder needs entities."""
    if opaque is None:
        return False
    index = bisect_right(opaque, offset, key=itemgetter(0))
    return not index or offset >= opaque[index - 1][1]


def _needs_quotes(tokens: Tokens, b: int, word: int) -> bool:
    """Says whether a figure's placeholder must be a quoted string.

    So in JSON, code, settings and SQL, where a bare placeholder would break the syntax.
    """
    text, start, end = tokens.texts[b], int(tokens.starts[word]), int(tokens.ends[word])
    if not _FIGURE.fullmatch(tokens.words[word]):
        return False
    if _VALUE_END.match(text, end) is None:
        return False
    search_start = max(0, start - 200)
    if value := _VALUE.search(text, search_start, start):
        return not _is_open(text, value.start() + 1, start, text[value.start()])
    opening = _ARGUMENT.search(text, search_start, start) or _find_row(
        text, search_start, start, end
    )
    return opening is not None and not _is_in_string(text, opening.start() + 1, start)


def _is_open(text: str, begin: int, offset: int, mark: str) -> bool:
    """Says whether a quotation mark is open between key and value."""
    marks = (mark,) if mark in "\"'" else ('"', "'")
    since = _ESCAPED.sub("", text[begin:offset])
    return any(since.count(quote) % 2 for quote in marks)


def _find_row(text: str, search_start: int, start: int, end: int) -> re.Match[str] | None:
    """Finds the opening bracket of a row of values, as in SQL."""
    row = _ROW.search(text, search_start, start)
    has_more = row is not None and "," in row[0].rpartition("(")[2]
    return row if has_more or text[end : end + 9].lstrip().startswith(",") else None


def _is_in_string(text: str, opened: int, offset: int) -> bool:
    """Says whether a quotation mark is open; True in too long lines."""
    begin = text.rfind("\n", max(0, offset - MAX_LINE_CHARACTERS), offset) + 1
    if not begin and offset > MAX_LINE_CHARACTERS:
        return True
    begin = min(begin, opened)
    return any(len(marks.findall(text, begin, offset)) % 2 for marks in _QUOTE_MARKS)


_FIGURE = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}"
)
_VALUE = re.compile(
    r"""["']\s*:\s*(?:\[(?:[^\[\]{}]*,)?\s*)?\Z|\w[ \t]+[=!<>]?=[ \t]+(?:\[(?:[^\[\]{}]*,)?\s*)?\Z"""
)
_ARGUMENT = re.compile(r"\{(?:[^{}]*,)?\s*\w+\s*:\s*\Z|\w\((?:[^()]*,)?\s*\w+=\Z")
"""Arguments by name: {key: ...} and call(key=...)."""
_ROW = re.compile(r"(?i)(?:\A|\n|[,:=(\[]|\bvalues)\s*\((?:[^()]*,)?\s*\Z")
"""Rows of values, (..., ...): on a line, behind code or VALUES."""
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_QUOTE_MARKS = re.compile(r'(?<!\\)"'), re.compile(r"(?<!\\)(?<!\w)'|(?<!\\)'(?!\w)")
MAX_LINE_CHARACTERS = 2000
"""Characters before a number that are searched for an open quotation mark."""
_VALUE_END = re.compile(r"\s*(?:[,}\])]|\Z)|[ \t]*(?:[;:#\n]|\r\n)")


def _join_passing(tokens: Tokens, output_words: Sequence[str], kinds: Ids, span: slice) -> str:
    """Joins passing words with their spaces; a break replaces all others."""
    words = (
        word if kind == _PASSES else "\0"
        for word, kind in zip(output_words[span], kinds[span].tolist(), strict=True)
    )
    spaced = (
        (" " if space else "") + word
        for word, space in zip(words, tokens.space_flags[span].tolist(), strict=True)
    )
    return "".join(spaced)


def _close_gaps(gaps: list[str], places: Sequence[int]) -> list[str]:
    """Merges the gaps around dropped words, keeping the widest of each run.

    Between two words that remain, at least a space.
    """
    if len(places) == len(gaps) - 1:
        return gaps
    if not places:
        return [_find_widest(gaps)]
    between = [
        gaps[j] if j == i + 1 else _find_widest([*gaps[i + 1 : j + 1], " "])
        for i, j in pairwise(places)
    ]
    return [gaps[0], *between, gaps[-1]]


def _find_widest(gaps: Sequence[str]) -> str:
    return max(gaps, key=lambda gap: (gap.count("\n"), len(gap)))


def _add_spaces(gaps: list[str], kinds: Sequence[Kind], *, numbered: bool) -> tuple[str, ...]:
    """Adds a space between two replaced words without one (Chinese characters, emoji).

    Placeholders with a session's numbers need none: they have brackets, and restoring must give the
    original text.
    """
    exempt = (Kind.VERBATIM, Kind.PLACEHOLDER) if numbered else (Kind.VERBATIM,)
    for i in range(1, len(kinds)):
        if not gaps[i] and kinds[i - 1] not in exempt and kinds[i] not in exempt:
            gaps[i] = " "
    return tuple(gaps)


def _group_equal(
    texts: Sequence[str], kinds: Sequence[Kind], classes: Sequence[int], *, numbered: bool
) -> tuple[tuple[int, ...], ...]:
    """Groups positions that show the same number, or are released alike."""
    places: dict[object, list[int]] = {}
    for i, kind in enumerate(kinds):
        if kind is Kind.PLACEHOLDER and numbered:
            # One placeholder may stand escaped in markup, and bare elsewhere.
            places.setdefault(html.unescape(texts[i]), []).append(i)
        elif kind in (Kind.WORD, Kind.NUMBER) and classes[i] >= 0:
            places.setdefault(classes[i], []).append(i)
    return tuple(tuple(group) for group in places.values() if len(group) > 1)
