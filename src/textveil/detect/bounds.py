"""Bounds: structural limits in a text that no span crosses or cuts.

In: a text, and spans that any detector found in it. Out: its `Bounds`; the spans within them.
Not here: the meaning of escapes (`encodings`), the detectors, and where words are cut
(`textveil.text.Tokens.split_words`).

Walls are places that no span includes: separators and quotes of tables, quotes of strings in code
and data, tags, marks of Markdown, the text between a value and the key of the next line, fields of
cards, ends of sentences. A span holds an escape as a whole or not at all; at its edges it keeps
only escapes of letters, digits and the like. A span over a wall becomes several spans, and parts
that reveal nothing are dropped.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from textveil.detect.encodings import BREAK, EscapeUnit, find_escape_units, find_strings
from textveil.detect.name_bounds import find_name_bounds as without_titles
from textveil.detect.name_bounds import is_title
from textveil.detect.spans import LISTED_TYPE, NAMES, TYPES, Span
from textveil.text import LazyPattern, lexicon, vocabulary

MIN_PART_CHARACTERS = 5
"""The fewest letters and digits of a number's part between walls."""

UNTRIMMED_SOURCES = ("lists", "spread")
"""Detectors whose spans are kept in all their parts."""

_SPACELESS_TYPES = frozenset(
    ("SECRET", "HANDLE", "ID", "ACCOUNT", "BOOKING", "EMAIL", "URL", "HOST", "IP", "MAC", "CRYPTO")
)
"""Types whose values hold no space where an equals sign assigns them."""
_DATE_TYPES = ("DATE", "BIRTH_DATE", "AGE", "COORDINATES")
_PLACE_TYPES = ("ADDRESS", "LOCATION", "ORGANIZATION")
"""Types of names with abbreviated words: "os. Kolorowe", "Sok. No: 27"."""

_WORD_TYPES = frozenset((*NAMES, "ADDRESS", *_DATE_TYPES))
"""Types whose values consist of words or have numbers with a full stop."""

_SENTENCE_TYPES = frozenset(TYPES) - {LISTED_TYPE, "SECRET"}
"""Types whose values stay within one sentence."""

Place = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The structural limits that no span of a text crosses or cuts.

    Args:
        walls: places outside of all spans, in order; none overlaps another.
        gaps: further walls for types without spaces in their values: the space behind a value that
            an equals sign assigns.
        units: the escapes, in order.
    """

    walls: Sequence[Place] = field(default=(), repr=False)
    gaps: Sequence[Place] = field(default=(), repr=False)
    units: Sequence[EscapeUnit] = field(default=(), repr=False)

    def find_edges(self, start: int, end: int) -> Iterator[int]:
        """Finds the edges of walls and escapes inside a range."""
        for places in (self.walls, self.gaps, self.units):
            yield from (
                edge
                for place in _select_places(places, start, end)
                for edge in place[:2]
                if start < edge < end
            )


def compute_bounds(text: str) -> Bounds:
    """Computes the bounds of a text, in time linear in it."""
    escapes = find_escape_units(text)
    cells = [*_find_separators(text)]
    # Two quotes within a quoted cell stand for one: they are an escape, and no wall.
    walls = [place for place in cells if text[place[0]] != '"' or place[1] - place[0] == 1]
    wall_set = {*walls}
    if doubled := [EscapeUnit(*place, '"') for place in cells if place not in wall_set]:
        escapes = sorted([*escapes, *doubled])
    for find in (
        _find_quotes,
        _find_tags,
        _find_marks,
        _find_keys,
        _find_form_fields,
        _find_card_fields,
    ):
        walls += find(text)
    gaps = [match.span(1) for match in _ASSIGNED.finditer(text)] if "=" in text else []
    return Bounds(walls=_join_walls(walls), gaps=gaps, units=escapes)


def get_bounds(text: str, cache: dict[str, Bounds]) -> Bounds:
    """Returns the bounds of a text, computed once per cache."""
    if text not in cache:
        cache[text] = compute_bounds(text)
    return cache[text]


def bind(
    spans: Sequence[Span], texts: Sequence[str], cache: dict[str, Bounds] | None = None
) -> list[Span]:
    """Fits spans to the bounds of their texts: trims, divides, drops.

    Args:
        spans: spans of these texts.
        texts: B texts.
        cache: the known bounds of texts, to which these are added; None without any.

    Returns:
        The spans in order of their texts.
    """
    cache = {} if cache is None else cache
    bound_spans: list[Span] = []
    for b, text_spans in groupby(sorted(spans), key=lambda span: span.text):
        text_bounds = get_bounds(texts[b], cache)
        parts: dict[tuple[Any, ...], list[Place]] = {}
        for span in text_spans:
            if span.source == "session":
                # What the text spells like a placeholder would be restored, wherever it stands.
                bound_spans.append(span)
                continue
            # All findings inside a run of Base64 have the same place, which may be long: it is read
            # once.
            place = *span[1:4], span.source
            if place not in parts:
                parts[place] = [
                    (part.start, part.end) for part in _divide(span, texts[b], text_bounds)
                ]
            bound_spans += [span._replace(start=start, end=end) for start, end in parts[place]]
    return bound_spans


def replace_separators(text: str) -> str:
    """Replaces separators of row values by `BREAK`, so each is read alone."""
    if not any(sign in text for sign in ",;\t="):
        return text
    letters = list(text)
    # One character replaces one, so that the places in the text stay the same.
    for at, _ in (*_find_separators(text), *(match.span(1) for match in _ASSIGNED.finditer(text))):
        letters[at] = letters[at] if letters[at] == '"' else BREAK
    return "".join(letters)


def _join_walls(walls: Sequence[Place]) -> list[Place]:
    """Sorts walls and joins those that overlap."""
    joined: list[Place] = []
    for start, end in sorted(walls):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif start < end:
            joined.append((start, end))
    return joined


def _select_places(places: Sequence[Any], start: int, end: int) -> Sequence[Any]:
    """Returns the sorted places that have characters in a range."""
    first = bisect_right(places, start, key=lambda place: place[1])
    return places[first : bisect_left(places, end, key=lambda place: place[0])]


# ---- binding -------------------------------------------------------------------------------------


def _divide(span: Span, text: str, bounds: Bounds) -> Iterator[Span]:
    """Divides a span at walls into its parts."""
    start, end = (
        _move_edge(bounds.units, edge, inward) for edge, inward in ((span.start, 1), (span.end, -1))
    )
    walls = [place[:2] for place in _select_places(bounds.walls, start, end)]
    gaps = _select_places(bounds.gaps, start, end) if span.type in _SPACELESS_TYPES else ()
    walls += gaps
    ends = _find_sentence_ends(text, start, end, span.type) if span.type in _SENTENCE_TYPES else []
    if (
        ends and span.type == "PERSON" and span.source == "structure"
    ):  # a phrase names one: "I am Bo Ash. Our dog"
        end = ends[0][0]
    walls += [wall for wall in ends if wall[0] < end]
    edges = [start, *(edge for wall in _join_walls(walls) for edge in wall), end]
    parts = [
        span._replace(start=first, end=last)
        for before, after in zip(edges[::2], edges[1::2], strict=True)
        for first, last in [_trim_range(text, bounds.units, before, after, whole=not walls)]
        if first < last
    ]
    if walls:
        parts = [part for part in parts if not _is_word_rest(part, span, text)] or parts
    if gaps and span.type != "SECRET":
        parts = [
            part
            for part in parts
            if part.start < gaps[0][1] or not _STATUS.fullmatch(text, part.start, part.end)
        ]
    value = gaps[0][0] if gaps else 0  # what is assigned is private, however short
    private_parts = [
        part for part in parts if not walls or part.start < value or _is_private(part, text)
    ]
    # A detected value is never dropped altogether because of its walls.
    yield from private_parts or parts[:1]


_UNIT = r"(?:\d+(?:\.\d+)?(?:[mnuµ]?s|[kKM]?[bB])|-)"
_STATUS = re.compile(rf"(?:\d{{3}}|{_UNIT})(?:\s+{_UNIT})*")
"""The rest of a log line behind a value: one status, then durations and sizes with their units."""


def _move_edge(units: Sequence[EscapeUnit], place: int, inward: int) -> int:
    """Moves a span's edge out of the middle of an escape.

    An escape of a letter is kept in the span; any other is left outside.
    """
    at = bisect_right(units, place, key=lambda unit: unit.end)
    if at < len(units) and units[at].start < place:
        return units[at].start if units[at].is_meaningful == (inward > 0) else units[at].end
    return place


def _trim_range(
    text: str, units: Sequence[EscapeUnit], start: int, end: int, *, whole: bool
) -> Place:
    """Trims whitespace and meaningless escapes from the ends of a range.

    From a part of a span, other signs are trimmed, too.
    """
    at = bisect_left(units, start, key=lambda unit: unit.start)
    while start < end:
        if at < len(units) and units[at].start == start:
            if units[at].is_meaningful:
                break
            start, at = units[at].end, at + 1
        elif text[start].isspace() or not (whole or text[start].isalnum() or text[start] in "+@#"):
            start += 1
        else:
            break
    at = bisect_right(units, end, key=lambda unit: unit.end) - 1
    while start < end:
        if at >= 0 and units[at].end == end:
            if units[at].is_meaningful:
                break
            end, at = units[at].start, at - 1
        elif text[end - 1].isspace() or not (whole or text[end - 1].isalnum()):
            end -= 1
        else:
            break
    return start, end


def _is_word_rest(part: Span, span: Span, text: str) -> bool:
    """True if a part is the rest of a divided word.

    The span only reaches into that word.
    """
    begins = (
        part.start == span.start
        and text[span.start - 1 : span.start].isalnum()
        and text[span.start].isalnum()
    )
    ends = (
        part.end == span.end
        and text[span.end : span.end + 1].isalnum()
        and text[span.end - 1].isalnum()
    )
    return (begins or ends) and text[part.start : part.end].isalnum()


def _is_private(span: Span, text: str) -> bool:
    """True if a part of a divided span is private, too.

    Ordinary words beside a name are not, nor are a few digits beside a number.
    """
    value = text[span.start : span.end]
    if span.type not in TYPES or span.source in UNTRIMMED_SOURCES:
        return any(map(str.isalnum, value))
    if span.type in (*NAMES, "ADDRESS"):
        named = span.type == "PERSON" and without_titles("PERSON", value)[0] > 0
        return any(map(str.isalnum, value)) and (named or not lexicon.is_all_ordinary(value))
    if span.type in _DATE_TYPES:
        return any(map(str.isdigit, value))
    return sum(map(str.isalnum, value)) >= MIN_PART_CHARACTERS


# ---- sentences -----------------------------------------------------------------------------------

_STOP = LazyPattern(r"[.!?…]{1,4}[\"'”’»)\]]{0,2}\s++|[。！？।؟۔]\s*+|\n[ \t\r]*+\n\s*+")
_LAST = LazyPattern(r"[\p{L}\p{M}\p{N}]++(?=[\"'”’»)\]]{0,2}\Z)")
_NEXT = LazyPattern(r"[\"'“„«(¿¡*_\[]{0,2}+[\p{L}\p{M}\p{N}]++\.?")
_OPENING = "\"'“„«(¿¡*_["
_BEGINS = LazyPattern(r"[\p{Lu}\p{Lt}\p{Arabic}\p{Hebrew}\p{Hangul}](?!\.)[\p{L}\p{M}]*+(?!\p{N})")
_MAX_WORD_CHARACTERS = 40


def split_sentences(text: str) -> list[str]:
    """Splits a text into its sentences, without the space around them.

    A text without words or signs has none.
    """
    starts = [0, *(stop.end() for stop in _STOP.finditer(text) if _divides(text, stop.span()))]
    parts = (text[start:end] for start, end in pairwise([*starts, len(text)]))
    return [sentence for part in parts if (sentence := part.strip())]


def _divides(text: str, place: Place) -> bool:
    """True if a sentence ends at a stop: it is no abbreviation, initial or date."""
    start, end = place
    if text[start] != ".":
        return True
    last = _LAST.search(text, max(0, start - _MAX_WORD_CHARACTERS), start)
    following = _NEXT.match(text, end)
    if last is None or following is None:
        return True
    word = last[0]
    if _BEGINS.match(following[0].lstrip(_OPENING)) is None:
        return False
    is_abbreviated = word.lower() in vocabulary.get_words("abbreviations") or is_title(word)
    return len(word) > (2 if word.isdigit() else 1) and not is_abbreviated


def _find_sentence_ends(text: str, start: int, end: int, type_: str) -> list[Place]:
    """Finds sentence ends in a range: punctuation and the whitespace behind it."""
    ends = []
    for stop in _STOP.finditer(text, start, end):
        last = _LAST.search(text, max(0, stop.start() - _MAX_WORD_CHARACTERS), stop.start())
        following = _NEXT.match(text, stop.end())
        if stop[0].isspace() or (
            last and following and _is_sentence_end(last[0], stop[0], following[0], type_)
        ):
            ends.append(stop.span())
    return ends


def _is_sentence_end(last: str, stop: str, following: str, type_: str) -> bool:
    """True if a sentence ends between two words."""
    if stop[0] != ".":
        return True
    begins, wordy = _BEGINS.match(following.lstrip(_OPENING)), type_ in _WORD_TYPES
    if begins is None or last.lower() in vocabulary.get_words("abbreviations") or is_title(last):
        return False
    if last.isdigit():  # "4711-22. Call us", but "am 3. Mai"
        return not wordy or (
            len(last) > 2 and type_ not in _PLACE_TYPES and lexicon.is_all_ordinary(begins[0])
        )
    if len(last) > 3:
        return True
    return (
        len(last) > 1 and type_ not in _PLACE_TYPES and lexicon.is_all_ordinary(begins[0])
    )  # "Bob. My dog", "St. Gallen"


# ---- tables --------------------------------------------------------------------------------------

_FIELD = {
    sign: re.compile(
        rf'(?:[ ]*+"(?:[^"]|"")*+"[ ]*+(?={re.escape(sign)}|\n|\Z)|[^{re.escape(sign)}\n]*+)'
    )
    for sign in ",;|\t"
}
_IN_QUOTES = re.compile(r'[ ]*+(")(?:[^"]|"")*+(")[ ]*+\r?')
_TWO_QUOTES = re.compile('""')
_LONGEST_ROW = 20_000
_THOUSANDS = re.compile(r"(?<!\d)\d{1,3}(?:,\d{3})++(?!\d)")
_OBJECT = re.compile(r"""[ \t]*[{\[]|[^\n]{0,200}?["'] ?:""")

_FIGURE = re.compile(r"[\d@]")
_CLOCK = re.compile(r":\d\d,\d{3}(?![\d,])")
"""The end of a time with a comma before its milliseconds."""
_ENTITY = re.compile(r"&#?\w+\Z")
_TAB = re.compile(r"(?<=[^\t\n])\t+")
_BAR = re.compile(r"(?<= )\|(?= )")


class _Row(NamedTuple):
    """A line of a table: its start, end and separators."""

    start: int
    end: int
    signs: list[int]


def _find_separators(text: str) -> Iterator[Place]:
    """Finds separators of row values, and the quotes around and in them.

    Both tables and single rows count.
    """
    if "\t" in text:
        yield from ((at, at + 1) for match in _TAB.finditer(text) for at in range(*match.span()))
    if "|" in text:
        yield from (match.span() for match in _BAR.finditer(text))
    for sign in ",;|\t":
        for row in _find_rows(text, sign) if sign in text else ():
            yield from ((at, at + 1) for at in row.signs)
            for start, end in pairwise([row.start - 1, *row.signs, row.end]):
                if quoted := _IN_QUOTES.fullmatch(text, start + 1, end):
                    yield quoted.span(1)
                    yield from (
                        match.span()
                        for match in _TWO_QUOTES.finditer(text, quoted.end(1), quoted.start(2))
                    )
                    yield quoted.span(2)


def _find_rows(text: str, sign: str) -> Iterator[_Row]:
    """Finds the rows of tables with this separator."""
    for count, rows in groupby(_split_rows(text, sign), key=lambda row: len(row.signs)):
        block = list(rows) if count else []
        places = [at for row in block for at in row.signs]
        if not block or (sign == "," and _are_thousands(text, places)):
            continue
        # Prose puts a space behind a comma, most data does not.
        tight = sum(not text[at + 1 : at + 2].isspace() and at + 1 < len(text) for at in places)
        if len(block) > 1:
            if (
                2 * tight >= len(places)
                or sign in "|\t"
                or (sign == "," and count > 1 and _has_figures(text, block))
            ):
                yield from block
        elif sign == "," and count > 1 and tight == count and _is_row(text, block[0]):
            yield from block


def _are_thousands(text: str, places: Sequence[int]) -> bool:
    """True if all commas of rows stand in numbers: 1,234,567."""
    span = places[0] - 4, places[-1] + 5
    positions = {
        at
        for number in _THOUSANDS.finditer(text, max(0, span[0]), span[1])
        for at in range(*number.span())
    }
    return positions.issuperset(places)


def _split_rows(text: str, sign: str) -> Iterator[_Row]:
    """Splits a text into lines with their separators outside of quotes.

    Lines that are no rows have none.
    """
    at, field = 0, _FIELD[sign]
    while at < len(text):
        start, signs = at, list[int]()
        while True:
            at = field.match(text, at).end()  # type: ignore[union-attr]  # a field may be empty
            if at >= len(text) or text[at] == "\n":
                break
            if not (
                # The comma before milliseconds and the semicolon of an entity separate no cells.
                _CLOCK.match(text, at - 3)
                if sign == ","
                else _ENTITY.search(text, max(0, at - 12), at)
            ):
                signs.append(at)
            at += 1
        fits = at - start <= _LONGEST_ROW and not _OBJECT.match(text, start, start + 200)
        yield _Row(start, at, signs if fits else [])
        at += 1


def _has_figures(text: str, rows: Sequence[_Row]) -> bool:
    """True if all rows but the first have digits in one column.

    This tells a table with a space behind each comma from sentences.
    """
    columns = [
        [text[a + 1 : b].strip() for a, b in pairwise([*row.signs, row.end])] for row in rows[1:]
    ]
    return any(
        all(_FIGURE.search(cell) and " " not in cell for cell in column)
        for column in zip(*columns, strict=True)
    )


def _is_row(text: str, row: _Row) -> bool:
    """True if a line with commas is a row of values.

    The line has two commas or more and no space behind them, so it could also be a sentence or a
    number.
    """
    cells = text[row.start : row.end].split(",")
    return any(map(_FIGURE.search, cells)) and all(cell.count(" ") < 5 for cell in cells)


# ---- strings, tags, marks, lines, cards ----------------------------------------------------------

_ASSIGNED = re.compile(
    r"""(?<![\w=])[\w.\-\[\]]{1,40}= (?=[^\s"'&;,<>]{0,99}?[a-z]) (?=[^\s"'&;,<>]{0,99}?(?:\d|[ \t]\d{3}(?!\S)))
    [^\s"'&;,<>=][^\s"'&;,<>]{0,500}+([ \t])(?=\S)""",
    re.VERBOSE,
)
"""A value of letters behind a key and an equals sign.

The group is the space behind it. Digits stand in the value or follow it.
"""


def _find_quotes(text: str) -> Iterator[Place]:
    """Finds the quotes of strings in code and data, not in prose."""
    for string in find_strings(text):
        if string.is_value:
            yield string.start, string.inner[0]
            yield string.inner[1], string.end


_TAG = re.compile(
    r"""<!--|-->|<!\[CDATA\[|\]\]>|<[!?/]?[A-Za-z][\w:.\-]*+
    (?:[^<>"'=]|"[^"<>]*+"|'[^'<>]*+'|=\s*+(?!["'\s])[^\s<>"']++|=)*+>""",
    re.VERBOSE,
)
_VALUE = re.compile(r"=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>]++))")
_PLACEHOLDER = re.compile(r"<[A-Z0-9_]+>")
"""The form of a placeholder: `<PERSON_1>`."""


def _find_tags(text: str) -> Iterator[Place]:
    """Finds tags and other markup, without the values of attributes."""
    if "<" not in text and "-->" not in text:
        return
    for match in _TAG.finditer(text):
        start, end = match.span()
        name = re.match(r"</?([A-Za-z][\w:.\-]*)", match[0])
        # A placeholder of an earlier release looks like a tag, and is none.
        if name and (_PLACEHOLDER.fullmatch(match[0]) or not _is_tag(match[0], name[1], text)):
            continue
        at = start
        for value in _VALUE.finditer(text, start, end) if name else ():
            group = next(group for group in (1, 2, 3) if value[group] is not None)
            yield at, value.start(group)
            at = value.end(group)
        yield at, end


def _is_tag(tag: str, name: str, text: str) -> bool:
    return (
        "=" in tag
        or tag[1] == "/"
        or tag[-2] == "/"
        or name.lower() in vocabulary.get_words("html_elements")
        or f"</{name}" in text
    )


_PAIRS = re.compile(
    r"(?<![\w*\\])(\*{1,3})(?=[^\s*])[^*\n]{1,300}?(?<=[^\s*\\])\1(?![\w*])"
    r"|(?<![\w_\\])(_{1,3})(?=[^\W_])[^_\n]{1,300}?(?<=[^\W_])\2(?![\w_])"
    r"|(?<!~)(~~)(?=[^\s~])[^~\n]{1,300}~~(?!~)|(?<!`)(`{1,2})(?=[^`])[^`\n]{1,300}\4(?!`)"
)
_LINK = re.compile(r"\]\((?=\S)|\]\[|(?<=\n)[ ]{0,3}(?:```|~~~)[^\n]{0,40}")
_LINE = re.compile(r"\n[ \t]*+(?:(?:\#{1,6}|[>*+\-•]|//|\d{1,3}[.)])[ \t]++)++")


def _find_marks(text: str) -> Iterator[Place]:
    """Finds marks of Markdown, also those that begin a continued line."""
    if any(sign in text for sign in "*_~`"):
        for match in _PAIRS.finditer(text):
            size = len(match[match.lastindex or 0])
            yield match.start(), match.start() + size
            yield match.end() - size, match.end()
    if "]" in text or "`" in text or "~" in text:
        yield from (match.span() for match in _LINK.finditer(text))
    if "\n" in text:
        yield from (match.span() for match in _LINE.finditer(text))


# An equals sign before two hexadecimal digits and another is quoted-printable: `=C3=BC`.
_KEYED = re.compile(
    r"""(?:\A|\n)[ \t]*+(?:-[ ]++)?
    (?=(["']?[^\W\d][\w.\-]{0,40}["']?[ \t]*+(?::(?=[ \t\n"'|>\[{])|=(?!=|[C-F][0-9A-F]=)(?=[ \t]*\S))[ \t]*+))
    | \n(?=\[+[\w.\- ]{1,60}\]+[ \t]*$)""",
    re.MULTILINE | re.VERBOSE,
)


def _find_keys(text: str) -> Iterator[Place]:
    """Finds line ends before a key, and the separator behind it.

    Examples are YAML, settings and the heads of letters.
    """
    for match in _KEYED.finditer(text):
        yield match.span()
        if match[1]:
            sign = re.search(r"[\"']?[ \t]*[:=][ \t]*\Z", match[1])
            assert sign is not None, "a key ends with one"
            yield match.start(1) + sign.start(), match.end(1)


_FORM = re.compile(
    r"(?<![^\s\"'])[\w.\-\[\]%+]{1,60}=[^\s&=\"']*+(?:&[\w.\-\[\]%+]{1,60}=[^\s&=\"']*+)++(?![^\s\"'])"
)
_FIELD_NAME = re.compile(r"(?:\A|&)[^=&]++=")


def _find_form_fields(text: str) -> Iterator[Place]:
    """Finds field names in URL-encoded forms: `name=...&mail=...`."""
    if "&" in text:
        for match in _FORM.finditer(text):
            yield from (
                (match.start() + a, match.start() + b)
                for a, b in map(re.Match.span, _FIELD_NAME.finditer(match[0]))
            )


_FOLDED = re.compile(r"[A-Z][A-Z0-9\-.]*+(?:;[^:\"\r\n]*+(?:\"[^\"\r\n]*+\"[^:\"\r\n]*+)*+)?:")
_PARAMETER = re.compile(r"=\"?((?<=\")[^\"\r\n]++|[^\";:,\r\n]++)\"?(?=[;:,])")
_COMPONENT = re.compile(r"(?<!\\)(?:\\\\)*+(;)")


def _find_card_fields(text: str) -> Iterator[Place]:
    """Finds the names and separators of vCard and iCalendar lines.

    They stand before a value, or between its components.
    """
    at = text.find("BEGIN:V")
    while at >= 0:
        stop = text.find("END:V", at)
        stop = len(text) if stop < 0 else stop
        while at < stop:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end + 1
            # A line that begins with a space or tab continues the one before it.
            while text[end : end + 1] in (" ", "\t") and text[end : end + 1]:
                following = text.find("\n", end)
                end = len(text) if following < 0 else following + 1
            head = _FOLDED.match(text, at, end)
            if head:
                begin = at
                for value in _PARAMETER.finditer(text, at, head.end()):
                    yield begin, value.start(1)
                    begin = value.end(1)
                yield begin, head.end()
                yield from (
                    semicolon.span(1) for semicolon in _COMPONENT.finditer(text, head.end(), end)
                )
            yield (end - 2 if text[end - 2 : end] == "\r\n" else end - 1), end
            at = end
        at = text.find("BEGIN:V", stop)
