"""Occurrences: finds every other place of a detected value.

A place counts if the value is repeated, respelled, or only a distinctive part of it stands there (a
surname).

In: texts with the spans that detectors found, and a session's earlier values. Out: spans of the
other places.
Not here: the equality of values and the parts of a name (`normalization`), and the values that a
session stores (`textveil.session`).

Folded words are looked up in a table, so the time is linear in the texts, for any number of values.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, islice, takewhile
from typing import NamedTuple

import regex

from textveil.detect.encodings import DecodedText, decode_escapes, map_to_decoded, map_to_original
from textveil.detect.normalization import (
    LOOSE_TYPES,
    MAX_CACHED,
    MIN_PART_LETTERS,
    Atom,
    find_core_atoms,
    find_identifying_words,
    find_syllable_parts,
    list_calendar_words,
    normalize_value,
    split_atoms,
)
from textveil.detect.spans import LISTED_TYPE, NAMES, REPEATED_SOURCE, Span
from textveil.text import LazyPattern, is_ordinary, is_public, lookup_ranks, vocabulary
from textveil.text.text_cache import TextCache

MIN_DISTINCT_RANK = 20_000
"""The rank in public text from which a word identifies an organization."""

MIN_IDENTIFIER_CHARACTERS = 5
"""Letters and digits of the shortest identifier that is searched for; shorter ones are ambiguous.
"""

MAX_VALUE_CHARACTERS = 300
"""Letters and digits of the longest value that is searched for."""

LANGUAGE_SAMPLE_WORDS = 2000
"""The number of words from which the language of a text is guessed."""

MIN_LANGUAGE_WORDS = 8
"""The fewest words from which the language of a text is guessed."""

UNSEARCHED_TYPES = frozenset(("AGE", "LITERAL", "TEXT", "WORD"))
"""Types whose values are ambiguous elsewhere, so they are not searched for."""

_JOINT = LazyPattern(r"[\s\-‐-―'’ʼ.·_/()+@&:,\p{Cf}]{0,4}")
_HYPHEN = LazyPattern(r"[-‐‑'’ʼ.·\p{Cf}]*(?:[-‐‑]\s*)?")
_BEGINS = LazyPattern(
    r"(?:\A|[.!?…:;。！？]|\n[ \t]*(?:[#>*+\-•|\d.)]+)?)[\s\"'“”‘’«»„(\[*_>#\-]*\Z"
)
_DATED = LazyPattern(r" \d{1,2}(?!\w)|,? (?:19|20)\d\d(?!\w)")
"""The day or year that follows the name of a month."""
_SENTENCE_WINDOW = 40
_JOINS = frozenset("@_/\\#=-~&")


@dataclass(frozen=True)
class PrivateValue:
    """A value that was detected as private. Secret.

    Args:
        type: its type.
        text: its first spelling.
        score: the confidence of the detector that found it, from 0 to 1.
    """

    type: str
    text: str = field(repr=False)
    score: float

    @cached_property
    def key(self) -> tuple[str, str]:
        """The type and normalized text, equal for equal values."""
        return self.type, normalize_value(self.type, self.text)

    @cached_property
    def identifying_words(self) -> list[str]:
        """The words that identify a name alone; of other values, the value."""
        if self.type not in NAMES:
            return [self.text]
        return [
            self.text[word[0].start : word[-1].end]
            for word in find_identifying_words(self.type, self.text)
            if not _is_ordinary_word("".join([atom.text for atom in word]))
        ]

    @property
    def forms(self) -> "tuple[Form, ...]":
        """The forms to search for."""
        short = len(self.text) <= MAX_CACHED
        return _get_forms(self) if short else _get_forms.__wrapped__(self)


class Form(NamedTuple):
    """A value, or a part of one, in the form searched for.

    Args:
        text: its letters and digits, folded.
        value: the value itself.
        whole: whether the form is the whole value.
        breaks: after how many characters whitespace may stand in it.
        ordinary: whether it consists of ordinary words, so that it counts only where it is written
            as a name.
        spaced: whether its script puts spaces between words.
    """

    text: str
    value: PrivateValue
    whole: bool
    breaks: frozenset[int]
    ordinary: bool
    spaced: bool

    def __repr__(self) -> str:
        return f"Form({self.value.type})"


class Occurrence(NamedTuple):
    """An occurrence of a form.

    Its atoms are [first, last), its characters [start, end).
    """

    first: int
    last: int
    start: int
    end: int
    form: Form


class ValueIndex:
    """The set of values to search texts for.

    Args:
        values: the first values.
    """

    def __init__(self, values: Iterable[PrivateValue] = ()) -> None:
        self._forms: dict[str, Form] = {}
        self._heads: dict[
            str, int
        ] = {}  # the longest form that begins like this, by up to four characters
        self._keys: set[tuple[str, str]] = set()
        for value in values:
            self.add(value)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def copy(self) -> "ValueIndex":
        """Returns an independent copy with the same values."""
        twin = ValueIndex()
        twin._forms, twin._heads, twin._keys = (
            self._forms.copy(),
            self._heads.copy(),
            self._keys.copy(),
        )
        return twin

    def add(self, value: PrivateValue) -> bool:
        """Adds a value; returns false if it is already present."""
        if value.key in self._keys:
            return False
        self._keys.add(value.key)
        for form in value.forms:
            old_form = self._forms.get(form.text)
            # A whole value goes before a part of a longer one, a person before other types.
            if old_form is None or (form.whole, form.value.type == "PERSON") > (
                old_form.whole,
                old_form.value.type == "PERSON",
            ):
                self._forms[form.text] = form
                for length in range(1, 5):
                    head = form.text[:length]
                    self._heads[head] = max(self._heads.get(head, 0), len(form.text))
        return True

    def find_forms(self, text: str, text_atoms: Sequence[Atom]) -> list[Occurrence]:
        """Finds the occurrences of forms in a text; they do not overlap.

        The words around an occurrence are not considered.
        """
        places: list[Occurrence] = []
        i = 0
        while i < len(text_atoms):
            begin = text_atoms[i].text
            if not text_atoms[i].spaced:
                places += self._find_inside(i, text_atoms[i])
            best = (
                self._find_longest(text, text_atoms, i)
                if len(begin) <= self._heads.get(begin[:4], 0)
                else None
            )
            if best is None:
                i += 1
            else:
                if places and places[-1].end > best.start:
                    places.pop()
                places.append(best)
                i = best.last
        return places

    def find_values(self, text: str) -> list[PrivateValue]:
        """Returns the values that occur in a text, whole or in part."""
        return (
            [place.form.value for place in self.find_forms(text, split_atoms(text))] if self else []
        )

    def find_places(self, text: str) -> list[tuple[PrivateValue, str]]:
        """Returns the values that occur in a text, each with how it is written there."""
        places = self.find_forms(text, split_atoms(text)) if self else []
        return [(place.form.value, text[place.start : place.end]) for place in places]

    def _find_longest(self, text: str, units: Sequence[Atom], first: int) -> Occurrence | None:
        joined, best, breaks = "", None, set()
        for last in range(first, len(units)):
            if last > first:
                between = text[units[last - 1].end : units[last].start]
                if _JOINT.fullmatch(between) is None:
                    break
                if _HYPHEN.fullmatch(between) is None:
                    breaks.add(len(joined))
            joined += units[last].text
            # No form that begins like this is longer: so the time stays linear.
            if len(joined) > self._heads.get(joined[:4], 0):
                break
            form = self._forms.get(joined)
            if form is not None and breaks <= form.breaks:
                place = _locate_form(text, units, first, last + 1, form)
                best = place or best
        return best

    def _find_inside(self, i: int, atom: Atom) -> Iterable[Occurrence]:
        """Finds forms anywhere in a run of a script without spaces."""
        run = atom.text
        # Folding changed the length, so places in the run are not places in the text.
        if len(run) != atom.end - atom.start:
            return
        at = 0
        while at < len(run):
            longest = min(self._heads.get(run[at : at + 2], 0), len(run) - at)
            for length in range(longest, 1, -1):
                form = self._forms.get(run[at : at + length])
                if form is not None and not form.spaced:
                    yield Occurrence(i, i + 1, atom.start + at, atom.start + at + length, form)
                    at += length - 1
                    break
            at += 1


def get_beginnings(form: Form) -> list[str]:
    """Returns the beginnings of a form, as `list_possible_forms` looks them up."""
    return [form.text[:4]] if form.spaced else [form.text[:4], form.text[:2]]


def list_possible_forms(
    texts: Sequence[str], longest: Callable[[set[str]], Mapping[str, int]]
) -> set[str]:
    """Lists the texts of all forms that could occur in texts.

    It serves callers that look forms up elsewhere than in `ValueIndex`, in a database for example.

    Args:
        texts: any number of texts.
        longest: returns for each beginning (see `get_beginnings`) the length of the longest form
            with it; it is called once.
    """
    atoms_by_text = [(text, split_atoms(text)) for text in texts]
    lengths = longest(
        {head for text, units in atoms_by_text for head in _list_beginnings(text, units)}
    )
    return {form for text, units in atoms_by_text for form in _list_forms(text, units, lengths)}


def _list_beginnings(text: str, units: Sequence[Atom]) -> Iterator[str]:
    """Lists the beginnings of all forms that could occur in a text."""
    for i, atom in enumerate(units):
        prefixes = islice(_join_atoms(text, units, i), 4)
        yield from (joined[:4] for joined in prefixes if len(joined) >= 4)
        if not atom.spaced:
            yield from (atom.text[at : at + 2] for at in range(len(atom.text) - 1))


def _list_forms(text: str, units: Sequence[Atom], lengths: Mapping[str, int]) -> Iterator[str]:
    """Lists the forms that could occur in a text.

    They are no longer than the longest known form with the same beginning.
    """
    for i, atom in enumerate(units):
        yield from takewhile(
            lambda joined: len(joined) <= max(3, lengths.get(joined[:4], 0)),
            _join_atoms(text, units, i),
        )
        run = "" if atom.spaced else atom.text
        for at in range(len(run) - 1):
            ends = range(at + 2, min(len(run), at + lengths.get(run[at : at + 2], 0)) + 1)
            yield from (run[at:end] for end in ends)


def _join_atoms(text: str, units: Sequence[Atom], first: int) -> Iterator[str]:
    """Joins the letters and digits from one atom on, step by step.

    Yields the result at the end of each atom, as far as a form could reach.
    """
    joined = ""
    for last in range(first, len(units)):
        if last > first and _JOINT.fullmatch(text[units[last - 1].end : units[last].start]) is None:
            return
        joined += units[last].text
        if len(joined) > MAX_VALUE_CHARACTERS:
            return
        yield joined


def may_hold(text: str, values: Iterable[PrivateValue]) -> bool:
    """Says whether a value may occur in a text; False only if none can.

    It costs little for texts that were asked about before.
    """
    heads = {
        form.text[:2] if not form.spaced else form.text[:4] for v in values for form in v.forms
    }
    return bool(heads) and not heads.isdisjoint(_list_heads(text))


@TextCache
def _list_heads(text: str) -> frozenset[str]:
    """Lists the first characters of all forms that could occur in a text."""
    units = split_atoms(text)
    heads = {
        joined[:4] for i in range(len(units)) for joined in islice(_join_atoms(text, units, i), 4)
    }
    runs = (unit.text for unit in units if not unit.spaced)
    return frozenset(heads.union(run[at : at + 2] for run in runs for at in range(len(run) - 1)))


def find_occurrences(
    texts: Sequence[str],
    spans: Sequence[Span],
    known_values: ValueIndex | None,
    public: Sequence[Span],
    *,
    is_doubtful: Callable[[Span, str], bool] = lambda span, text: False,
    is_spared: Callable[[PrivateValue, str, tuple[int, int]], bool] = lambda *_: False,
) -> tuple[list[Span], list[list[PrivateValue]], set[PrivateValue]]:
    """Finds every other occurrence of the values that spans cover.

    Texts are taken in order: a value is searched for in its text and, where something is
    remembered, in the later texts; never in earlier texts, which may have been sent. Texts are
    decoded as for detectors, so values behind an escape are found, too.

    Args:
        texts: B texts.
        spans: the merged spans of detectors.
        known_values: the values of earlier texts, to which these values are added; None to remember
            nothing.
        public: names that detectors take for public: a part of one that is a longer name, or one of
            another type, stays.
        is_doubtful: says of a span and its text whether it was found in doubt.
        is_spared: says of a value, a text and a place in it whether the value stays there.

    Returns:
        The spans of other places, for each text the values that are new, and those of the values
        that were found in doubt only.
    """
    readable = [decode_escapes(text) for text in texts]
    by_text, shields = _group_by_text(spans, readable), _group_by_text(public, readable)
    occurrences: list[Span] = []
    new_values: list[list[PrivateValue]] = []
    doubtful: set[PrivateValue] = set()
    certain: set[tuple[str, str]] = set()
    for b, (text, _) in enumerate(readable):
        sought = ValueIndex() if known_values is None else known_values
        values = [
            PrivateValue(span.type, text[span.start : span.end], span.score) for span in by_text[b]
        ]
        for span, value in zip(by_text[b], values, strict=True):
            if is_doubtful(span, text):
                doubtful.add(value)
            else:
                certain.add(value.key)
        new_values.append(
            [value for value in values if value.type not in UNSEARCHED_TYPES and sought.add(value)]
        )
        if sought:
            places = _find_in_text(b, text, sought, by_text[b], shields[b], is_spared)
            occurrences += [map_to_original(span, readable) for span in places]
    return occurrences, new_values, {value for value in doubtful if value.key not in certain}


def _group_by_text(spans: Sequence[Span], readable: Sequence[DecodedText]) -> list[list[Span]]:
    """Groups spans by text, at their places in the decoded text."""
    groups: list[list[Span]] = [[] for _ in readable]
    for span in spans:
        groups[span.text].append(map_to_decoded(span, readable))
    return groups


def _find_in_text(
    b: int,
    text: str,
    sought: ValueIndex,
    spans: Sequence[Span],
    shields: Sequence[Span],
    is_spared: Callable[[PrivateValue, str, tuple[int, int]], bool],
) -> list[Span]:
    """Finds occurrences of the sought values that no span covers yet."""
    units = split_atoms(text)
    context = _Context(text, units)
    covered, shielded = _SpanIndex(spans), _SpanIndex(shields)
    certain: list[Occurrence] = []
    unsure: list[Occurrence] = []
    for place in sought.find_forms(text, units):
        shields_it = any(
            _is_shielded(shield, place, text) for shield in shielded.find_covering(place)
        )
        if not (
            covered.find_covering(place)
            or shields_it
            or context.is_time(place)
            or is_spared(place.form.value, text, (place.start, place.end))
        ):
            doubtful = place.form.ordinary or context.is_foreign_word(place)
            (unsure if doubtful else certain).append(place)
    certain += _select_names(unsure, certain, context)
    return [
        Span(
            b,
            place.start,
            place.end,
            place.form.value.type,
            place.form.value.score,
            REPEATED_SOURCE,
        )
        for place in sorted(certain, key=lambda place: place.start)
    ]


def _select_names(
    unsure: Sequence[Occurrence], certain: Sequence[Occurrence], context: "_Context"
) -> list[Occurrence]:
    """Selects occurrences of ordinary words that are names.

    They are written as a name, or stand beside another part of the same value.
    """
    ends = {place.last: place for place in certain}
    begins = {place.first: place for place in certain}

    def is_beside(place: Occurrence) -> bool:
        beside = (ends.get(place.first), begins.get(place.last))
        return any(other is not None and other.form.value is place.form.value for other in beside)

    return [place for place in unsure if is_beside(place) or context.is_name(place)]


def _is_shielded(shield: Span, place: Occurrence, text: str) -> bool:
    """True if a public name around a partial occurrence keeps it public."""
    if place.form.whole:
        return False
    shield_atoms = [
        atom
        for atom in split_atoms(text[shield.start : shield.end])
        if len(atom.text) > 1 and atom.text not in vocabulary.get_words("titles_only")
    ]
    return shield.type != place.form.value.type or len(shield_atoms) > place.last - place.first


class _SpanIndex:
    """A sorted set of a text's spans, searchable by place."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = sorted(spans, key=lambda span: span.start)
        self._starts = [span.start for span in self._spans]
        self._longest = max((span.end - span.start for span in spans), default=0)

    def find_covering(self, place: Occurrence) -> list[Span]:
        """Returns the spans that cover all of a place."""
        # A span that begins earlier is too short to reach the end of the place.
        first = bisect_left(self._starts, place.end - self._longest)
        last = bisect_right(self._starts, place.start)
        return [span for span in self._spans[first:last] if span.end >= place.end]


class _Context:
    """The text around occurrences, and tests of it."""

    def __init__(self, text: str, units: Sequence[Atom]) -> None:
        self._text, self._atoms = text, units
        self._headings: dict[int, bool] = {}

    def is_foreign_word(self, place: Occurrence) -> bool:
        """True if a place may be an ordinary foreign word.

        Only single words in small letters count.
        """
        if (
            place.last - place.first > 1
            or place.form.value.type not in NAMES
            or not self._is_foreign
        ):
            return False
        before, after = (
            self._text[max(0, place.start - 1) : place.start],
            self._text[place.end : place.end + 1],
        )
        return (
            # In addresses, paths and tags, names have small letters, too.
            self._text[place.start : place.end].islower()
            and before not in _JOINS
            and after not in _JOINS
        )

    @cached_property
    def _is_foreign(self) -> bool:
        """True if most words of the text are rare in English texts."""
        long_words = [
            atom.text
            for atom in self._atoms[:LANGUAGE_SAMPLE_WORDS]
            if atom.spaced and len(atom.text) > 3
        ]
        long_words = [word for word in long_words if word.isalpha()]
        return len(long_words) >= MIN_LANGUAGE_WORDS and 2 * sum(
            map(_is_ordinary_word, long_words)
        ) < len(long_words)

    def is_time(self, place: Occurrence) -> bool:
        """True if a name is a month or day here.

        Examples are "in April" and "3 May".
        """
        if place.form.text not in list_calendar_words():
            return False
        if _DATED.match(self._text, place.end):
            return True
        last = self._atoms[place.first - 1] if place.first else None
        if last is None or self._text[last.end : place.start] != " ":
            return False
        return last.text.isdigit() or last.text in vocabulary.get_words("before_times")

    def is_name(self, place: Occurrence) -> bool:
        """True if ordinary words are written as a name.

        They follow a title, or have capitals that nothing else asks for.
        """
        text = self._text[place.start : place.end]
        if self._has_title_before(place):
            return True
        if not place.form.whole and place.form.text in list_calendar_words():
            return False
        place_atoms = self._atoms[place.first : place.last]
        capitals = all(self._text[atom.start].isupper() for atom in place_atoms)
        if len(place_atoms) > 1:
            return capitals or text == place.form.value.text
        shouted = text.isupper() and text[1:] != ""
        return capitals and not shouted and not self._is_capital_expected(place.start)

    def _is_capital_expected(self, start: int) -> bool:
        return self._is_sentence_start(start) or self._is_in_heading(start)

    def _has_title_before(self, place: Occurrence) -> bool:
        """True if a capitalized place follows a title or greeting."""
        before = self._atoms[place.first - 1].text if place.first else ""
        named = before in vocabulary.get_words("titles_only") or before in vocabulary.get_words(
            "greetings"
        )
        return named and self._text[place.start].isupper()

    def _is_sentence_start(self, start: int) -> bool:
        behind = self._text[max(0, start - _SENTENCE_WINDOW) : start]
        if start > _SENTENCE_WINDOW:
            # Otherwise `_BEGINS` would take the edge of the window for the start of the text.
            behind = "x" + behind
        return _BEGINS.search(behind) is not None

    def _is_in_heading(self, start: int) -> bool:
        """True if all words of the line have capitals."""
        begin = self._text.rfind("\n", 0, start) + 1
        if begin not in self._headings:
            end = self._text.find("\n", start)
            line = self._text[begin : len(self._text) if end < 0 else end]
            line_words = [
                word for word in regex.findall(r"\p{L}+", line[:2000]) if not is_public(word)
            ]
            self._headings[begin] = len(line_words) > 1 and all(
                word[0].isupper() for word in line_words
            )
        return self._headings[begin]


def _locate_form(
    text: str, units: Sequence[Atom], first: int, last: int, form: Form
) -> Occurrence | None:
    """Returns the occurrence of a form, or None if punctuation differs.

    Where punctuation belongs to a value, the characters between and around its letters must agree,
    too.
    """
    start, end = units[first].start, units[last - 1].end
    value = form.value
    if not form.whole or value.type in LOOSE_TYPES:
        return Occurrence(first, last, start, end, form)
    value_atoms = split_atoms(value.text)
    # The signs around the letters belong to the value, so they must agree, too.
    start, end = start - value_atoms[0].start, end + len(value.text) - value_atoms[-1].end
    if start < 0 or normalize_value(value.type, text[start:end]) != value.key[1]:
        return None
    return Occurrence(first, last, start, end, form)


@lru_cache(1 << 14)
def _get_forms(value: PrivateValue) -> tuple[Form, ...]:
    return tuple(_make_forms(value))


def _make_forms(value: PrivateValue) -> Iterable[Form]:
    units = find_core_atoms(value.type, value.text)
    joined = "".join([atom.text for atom in units])
    if not 0 < len(joined) <= MAX_VALUE_CHARACTERS or not _is_unambiguous(value, joined):
        return
    named, spaced = value.type in NAMES, units[0].spaced
    if len(joined) >= MIN_PART_LETTERS:
        ordinary = named and spaced and _are_ordinary(units)
        yield Form(joined, value, True, _find_breaks(units), ordinary, spaced)
    if named and value.type in ("PERSON", "ORGANIZATION"):
        yield from _make_part_forms(value, joined)
        for part in find_syllable_parts(value.type, value.text):
            yield Form(part, value, False, frozenset(), False, False)


def _make_part_forms(value: PrivateValue, joined: str) -> Iterable[Form]:
    """Finds the forms of the words of a longer name."""
    for word in find_identifying_words(value.type, value.text):
        part = "".join([atom.text for atom in word])
        if part == joined or not word[0].spaced:
            continue
        if value.type != "ORGANIZATION" or _is_distinct(part):
            yield Form(part, value, False, _find_breaks(word[:-1]), _are_ordinary(word), True)


def _are_ordinary(units: Sequence[Atom]) -> bool:
    return all(_is_ordinary_word(atom.text) for atom in units)


def _find_breaks(units: Sequence[Atom]) -> frozenset[int]:
    """Returns after how many letters and digits each atom ends."""
    return frozenset(accumulate(len(atom.text) for atom in units))


def _is_mute(word: str) -> bool:
    """True if a word alone identifies nobody: a title or particle."""
    return word in vocabulary.get_words("titles_only") or word in vocabulary.get_words(
        "name_particles"
    )


def _is_unambiguous(value: PrivateValue, joined: str) -> bool:
    """True if a value means the same wherever it occurs.

    A title alone does not, and neither does a short identifier.
    """
    if _is_mute(joined) or value.type in NAMES or value.type == LISTED_TYPE:
        return not _is_mute(joined)
    return (
        value.type not in UNSEARCHED_TYPES
        and len(joined) >= MIN_IDENTIFIER_CHARACTERS
        and not is_ordinary(joined)
    )


@lru_cache(1 << 14)
def _is_ordinary_word(word: str) -> bool:
    """True if a word alone may be no name.

    It is an ordinary word, or has two letters or fewer.
    """
    return (
        (len(word) <= MIN_PART_LETTERS and word.isascii())
        or word.isdigit()
        or is_ordinary(word)
        or is_public(word)
    )


def _is_distinct(word: str) -> bool:
    return (
        len(word) > 3
        and word not in vocabulary.get_words("legal_forms")
        and not _is_ordinary_word(word)
        and int(lookup_ranks([word])[0]) > MIN_DISTINCT_RANK
    )
