"""Structure: finds private values by their keys.

In: texts of prose, data or code, or a mix. Out: spans of values; keys and code stay.
Not here: the meaning of keys (`field_names`), the forms of values (`values`), their places
(`parsers`,
`table_cells`), and identifiers that need no key (`patterns`).

A value is taken if its key can only mean something private (`patientName`, `Geburtsdatum`), or if
its neighbours show that the record is a person's: a `name` beside a mail address, a town beside a
date of birth. The rest stays.

A span is the value without its quotes. A number without quotes is hidden like any other value. In
JSON its placeholder is a string, so that the document still parses; SQL parses again only when the
answer is restored.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textveil.detect.keyvalue.elided_surnames import read_elided
from textveil.detect.keyvalue.field_names import fold_key
from textveil.detect.keyvalue.parsers import KeyedValue, KeyedValues, read_calls, read_pairs
from textveil.detect.keyvalue.table_cells import read_inserts, read_tables
from textveil.detect.keyvalue.values import (
    Value,
    find_name,
    find_value,
    is_example,
    is_likely_name,
    is_no_name,
    is_ordinary,
)
from textveil.detect.patterns.hosts import score_mail_privacy
from textveil.detect.patterns.references import is_range
from textveil.detect.patterns.rules import NUMBERED_TYPES, is_dummy
from textveil.detect.patterns.secrets import get_secret_check, is_password
from textveil.detect.spans import Span
from textveil.text import lexicon, vocabulary

SCORE = 1.0
"""The score of all spans: less certain values are left to other detectors."""

_NAME_KINDS = ("given", "family", "full")
_IDENTIFYING_KINDS = ("given", "family", "full", "birth", "national", "medical", "email")
"""Kinds whose values prove that a record is a person's."""
_CONTACT_KINDS = (
    "phone",
    "age",
    "address",
    "street",
    "postcode",
    "role",
    "iban",
    "plate",
    "licence",
    "card",
)
"""Kinds that prove it beside a name."""
_RECORD_KINDS = (
    "age",
    "place",
    "org",
    "street",
    "house",
    "postcode",
    "date",
    "latitude",
    "longitude",
    "extension",
)
"""Kinds that are private only in a person's record."""
_ISSUED_KINDS = (
    "national",
    "medical",
    "licence",
    "account",
    "plate",
    "ip",
    "booking",
    "coordinates",
)
"""Kinds whose keys may be short and mean other things."""
_PAIR_SIGNS = (":", "=", "<", "\\", "：", "【", ".set", "PID|")
"""Signs of pairs: a text without any of them holds no pairs."""
_TRACK_KEYS = frozenset(("trkpt", "wpt", "rtept", "home"))
"""Keys of recorded places of a person."""
_NAMES_APART = re.compile(r"[,;/]|[ ](?:and|und|et|y|e|i|&)(?=[ ])")
_JOINED = re.compile(r"[ ](?:and|und|et|y|e|en|ve|i|&)[ ]")
_LOGIN = re.compile(r"[ ]\(([A-Za-z][\w.\-]{2,31})[,)]")
_TELEPHONE = re.compile(r"(?<![\w./\-])[+(]{0,2}\d(?:[ ().\-/]{0,3}\d){7,14}(?![\w\-])")
_TEMPLATE = re.compile(r"[$<%*^/\\]|process\.|os\.|\{\{|\{.*\}$|https?:")
_MIXED = re.compile(r"[^A-Za-z_./:|,\-]")
_OWNER = re.compile(r"[a-z]{4,20}\d{1,4}")
_CERTAIN_NAME_KINDS = ("given", "family")
"""Kinds of keys whose value is a name, however ordinary the word."""

_VIETNAMESE = re.compile(r"[ăđơưĂĐƠƯ\u1ea0-\u1ef9]")


@dataclass(frozen=True, kw_only=True)
class Structure:
    """A detector of values by their keys.

    It reads documents, code, logs and forms. Runs locally, in time linear in the text. Broken and
    cut off documents are read as far as they go.
    """

    @property
    def name(self) -> str:
        """The detector's name in statements and rows."""
        return "structure"

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the spans of all texts, by text and start.

        They do not overlap.
        """
        return [
            Span(
                number,
                start,
                end,
                type_,
                SCORE,
                self.name,
                _estimate_privacy(type_, text[start:end]),
            )
            for number, text in enumerate(texts)
            for start, end, type_ in _drop_overlaps(_find_values(text))
            if not (type_ in NUMBERED_TYPES and is_dummy(text[start:end]))
        ]


def _estimate_privacy(type_: str, value: str) -> float:
    """Returns the probability that a value is private.

    A mail address may be nobody's, even behind a key.
    """
    return score_mail_privacy(value) if type_ == "EMAIL" else 1.0


def _find_values(text: str) -> Iterator[tuple[int, int, str]]:
    cells = KeyedValues()
    if any(sign in text for sign in _PAIR_SIGNS):
        read_pairs(text, cells)
    read_calls(text, cells)
    yield from _find_private(text, cells)
    cells = KeyedValues()
    if "\n" in text:
        read_tables(text, cells)
    if "insert" in text.lower():
        read_inserts(text, cells)
    yield from _find_private(text, cells)
    for start, end in read_elided(text):
        yield start, end, "PERSON"


def _is_of_words(value: str) -> bool:
    """True if a supposed name is only ordinary words.

    Vietnamese is excluded: its names are ordinary words.
    """
    return lexicon.is_all_ordinary(value) and not _VIETNAMESE.search(value)


def _drop_overlaps(places: Iterator[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Sorts values and drops overlapping ones.

    Of two that overlap, the earlier start wins, then the longer value.
    """
    disjoint: list[tuple[int, int, str]] = []
    for value in sorted(places, key=lambda place: (place[0], -place[1])):
        if not disjoint or value[0] >= disjoint[-1][1]:
            disjoint.append(value)
    return disjoint


# ---- which values are private --------------------------------------------------------------------


@dataclass(frozen=True)
class _Records:
    """The kinds of values in each record, and its relations."""

    kinds: dict[int, set[str]]
    parents: list[int]
    persons: list[bool]
    inner_kinds: dict[int, set[str]]

    def is_of_person(self, record: int, but: str = "") -> bool:
        """True if the record or an outer one is a person's."""
        while record >= 0:
            if self.persons[record] or any(
                kind in _IDENTIFYING_KINDS for kind in self.kinds.get(record, set()) - {but}
            ):
                return True
            record = self.parents[record]
        return False

    def has_contact(self, record: int) -> bool:
        """True if the record has contact details or other personal data."""
        return bool(self.kinds.get(record, set()) & {*_CONTACT_KINDS})

    def has_kind(self, record: int, kind: str) -> bool:
        """True if a record nearby has a value of a kind.

        Nearby are the record itself, outer records, and records directly inside these.
        """
        while record >= 0:
            if kind in self.kinds.get(record, set()) | self.inner_kinds.get(record, set()):
                return True
            record = self.parents[record]
        return False

    def is_near_person(self, record: int) -> bool:
        """True if a record nearby is a person's, see `has_kind`."""
        while record >= 0:
            kinds = self.kinds.get(record, set()) | self.inner_kinds.get(record, set())
            if self.persons[record] or kinds & {*_IDENTIFYING_KINDS, "role", "name"}:
                return True
            record = self.parents[record]
        return False


def _find_private(text: str, cells: KeyedValues) -> Iterator[tuple[int, int, str]]:
    cells.resolve_pairs(text)
    values = [(cell, value) for cell in cells.cells for value in _read_cell(text, cell)]
    kinds_inside: dict[int, set[str]] = defaultdict(set)
    inner_kinds: dict[int, set[str]] = defaultdict(set)
    for cell, value in values:
        if _is_evidence(text, cell, value):
            kinds_inside[cell.record].add(cell.kind)
    for record, kinds in kinds_inside.items():
        inner_kinds[cells.parents[record]] |= kinds if cells.parents[record] >= 0 else set()
    records = _Records(kinds_inside, cells.parents, cells.persons, inner_kinds)
    for cell, value in values:
        case = _Case(text, cell, value, records, cells)
        named = value.type == "PERSON"
        if _is_private(case):
            yield value.start, value.end, value.type
            # A name that counts is evidence for the values behind it: a person is near.
            inner_kinds[cell.record] |= {"name"} if named else set()


def _is_evidence(text: str, cell: KeyedValue, value: Value) -> bool:
    """True if a value shows the kind of its record."""
    if cell.kind in _NAME_KINDS:
        return cell.key.lower() not in vocabulary.get_words("partial_fields")
    if cell.kind == "role":
        return value.likely or not _is_word(text, value)
    return value.likely or cell.kind not in ("name", "author")


class _Case(NamedTuple):
    """A value with the context that decides its privacy. Secret."""

    text: str
    cell: KeyedValue
    value: Value
    records: _Records
    cells: KeyedValues

    def __repr__(self) -> str:
        return "_Case()"

    @property
    def content(self) -> str:
        """The value's text."""
        return self.text[self.value.start : self.value.end]

    @property
    def is_delimited(self) -> bool:
        """True if the value is quoted, a cell, or in a form."""
        return self.cell.whole or self.cell.form

    def is_of_person(self, but: str = "") -> bool:
        """True if the record is a person's."""
        return self.records.is_of_person(self.cell.record, but=but)

    def has_personal_data(self) -> bool:
        """True if the record has personal data or another name."""
        kinds = self.records.kinds.get(self.cell.record, set())
        return self.records.has_contact(self.cell.record) or "name" in kinds

    def is_near_person(self) -> bool:
        """True if a person's record is nearby."""
        return self.records.is_near_person(self.cell.record)


def _read_cell(text: str, cell: KeyedValue) -> Iterator[Value]:
    """Finds the values of a cell.

    It is one value, or the names of a list, or in a form also the login and number beside a name.
    """
    if cell.kind == "people":
        at = cell.start
        for part in _NAMES_APART.split(text[cell.start : cell.end]):
            lead = len(part) - len(part.lstrip(" \"'"))
            if value := find_name(
                text, at + lead, min(cell.end, at + len(part)), whole=False, strong=False
            ):
                yield value
            at = text.find(part, at) + len(part) + 1
        return
    value = _find_value(text, cell)
    if value is None:
        return
    yield value
    if value.type == "PERSON" and cell.form:
        yield from _find_behind_name(text, value, cell.end)


def _find_behind_name(text: str, value: Value, end: int) -> Iterator[Value]:
    """Finds the login, telephone number or second name behind a name."""
    login = _LOGIN.match(text, value.end, end)
    if login and _is_login_of(login[1], text[value.start : value.end]):
        yield Value(*login.span(1), "HANDLE", True)
    if joined := _JOINED.match(text, value.end, end):
        second = find_name(text, joined.end(), end, whole=False, strong=False)
        if second and (second.likely or " " in text[second.start : second.end]):
            yield second
    for number in _TELEPHONE.finditer(text, value.end, end):
        if 8 <= sum(map(str.isdigit, number[0])) <= 14:
            # A bracket around the whole number is no part of it.
            begin = number.start() + (")" not in number[0] and number[0].count("("))
            yield Value(begin, number.end(), "PHONE", True)


def _is_login_of(login: str, name: str) -> bool:
    """True if a word may be a person's login.

    It is no plain word, or holds a part of the name.
    """
    parts = (word for word in fold_key(name).split() if len(word) > 2)
    return not login.isalpha() or any(word in login.lower() for word in parts)


def _find_value(text: str, cell: KeyedValue) -> Value | None:
    start, end = _strip_quotes(text, cell)
    if text.startswith(("null", "None", "NULL"), start) and end - start <= 5:
        return None
    code = cell.whole and text[: cell.start].endswith(("=", "= "))
    value = text[start:end]
    if code and cell.kind in (*_RECORD_KINDS, "address") and _CALCULATED.search(value):
        return None
    if cell.kind in _NAME_KINDS:
        strong = cell.key.lower() not in vocabulary.get_words("partial_fields") and not code
        return find_name(text, start, end, whole=cell.whole, strong=strong)
    return _find_person(text, start, end, cell) or _find_of_kind(text, start, end, cell)


_CALCULATED = re.compile(r"[(\[]| if ")
"""The signs of an expression in a value of code."""


def _strip_quotes(text: str, cell: KeyedValue) -> tuple[int, int]:
    """Returns the bounds of a cell's value, without quotes and list marks."""
    start, end = cell.start, cell.end
    while start < end and text[start] in " \t　\"'`*“«（":
        start += 1
    while end > start and start > cell.start and text[end - 1] in "\"'`*”»）":
        end -= 1
    return start, end


def _find_person(text: str, start: int, end: int, cell: KeyedValue) -> Value | None:
    """Finds a person's name behind a key with another usual meaning.

    Such keys are `sn` and those of a user's login.
    """
    surname = cell.key.lower() == "sn"
    if not surname and cell.kind != "handle":
        return None
    named = find_name(text, start, end, whole=cell.whole, strong=False)
    if named is None or surname:
        return named
    name = text[named.start : named.end]
    return named if " " in name or not name.isascii() else None


def _find_of_kind(text: str, start: int, end: int, cell: KeyedValue) -> Value | None:
    """Finds the value of a kind other than those of names."""
    if cell.kind == "role" and cell.whole and _OWNER.fullmatch(text, start, end):
        stem = text[start:end].rstrip("0123456789")
        return None if is_ordinary(stem) else Value(start, end, "HANDLE", True)
    if cell.kind in ("name", "role", "author"):
        return find_name(text, start, end, whole=cell.whole, strong=False)
    if cell.kind == "secret":
        return _find_secret(text, start, end, cell)
    return find_value(cell.kind, text, start, end, whole=cell.whole) if start < end else None


def _is_word(text: str, value: Value) -> bool:
    """True if a name is a single ordinary word."""
    name = text[value.start : value.end]
    return _PARTED.isdisjoint(name) and name.isascii() and is_ordinary(name)


def _find_secret(text: str, start: int, end: int, cell: KeyedValue) -> Value | None:
    """Finds a password, key or code behind its key.

    A word, the name of a variable, a template or a sentence is none.
    """
    quoted = cell.start > 0 and text[cell.start - 1] in "\"'`"
    value = text[start:end].rstrip(" \"'`")
    value = _cut_value(value, cell)
    words = value.split()
    spelled = quoted and value.isascii() and _is_code(words)
    if not 0 < len(value) <= 200 or "\n" in value or _TEMPLATE.match(value):
        return None
    if not spelled and (len(words) > 1 or not _fits_key(value, cell, quoted=quoted)):
        return None
    return Value(start, start + len(value), "SECRET", True)


def _is_code(words: Sequence[str]) -> bool:
    """True if words are the groups of a code.

    A code has three or more groups of the same length.
    """
    return len(words) > 2 and len({*map(len, words)}) == 1


_CALLED = re.compile(r"[()\[\];]")


def _cut_value(value: str, cell: KeyedValue) -> str:
    """Cuts a value at the text that follows it on its line.

    In a form, only its first word is left.
    """
    if cell.whole:
        return value
    value = re.split(r"  | \(|, |，", value)[0]
    return value.split()[0] if value.strip() and cell.form else value


def _fits_key(value: str, cell: KeyedValue, *, quoted: bool) -> bool:
    """True if a value looks like the secrets of its key."""
    if not quoted and _CALLED.search(value):
        return False
    if value.isdigit():
        named = fold_key(cell.key).split()[-1:] != ["pass"] and 3 <= len(value) <= 12
        return named and (quoted or cell.form)
    fits = get_secret_check(fold_key(cell.key)) if cell.paired else None
    return bool(fits(value) if fits else is_password(value) and _MIXED.search(value))


def _is_private(case: _Case) -> bool:
    kind, type_ = case.cell.kind, case.value.type
    if type_ == "PERSON" and kind not in _CERTAIN_NAME_KINDS and _is_of_words(case.content):
        return False
    if type_ == "PERSON" and kind in ("id", "handle"):
        return case.is_of_person() if kind == "id" else _is_somebody(case)
    if type_ in ("HANDLE", "PHONE") and kind in (*_NAME_KINDS, "role", "name"):
        return True
    test = _PRIVACY_TESTS.get(kind)
    return case.value.likely if test is None else test(case)


def _is_listed_person(case: _Case) -> bool:
    return case.value.likely or not _is_word(case.text, case.value)


def _is_of_person(case: _Case) -> bool:
    """True if the value of a name's key is a person's name.

    It is no word of programs.
    """
    kind, key = case.cell.kind, case.cell.key.lower()
    if kind != "full":
        return key not in vocabulary.get_words("partial_fields") or case.is_of_person()
    if case.content.islower() and " " not in case.content:
        return case.is_of_person(but=kind)
    return case.is_delimited or case.value.likely


def _is_of_somebody(case: _Case) -> bool:
    """True if a value that is private only beside a person is.

    It stands in a person's record, or is a recorded place of a person.
    """
    track = case.cells.names[case.cell.record].lower() in _TRACK_KEYS
    if track and case.cell.kind in ("latitude", "longitude"):
        return True
    return not _has_citation(case.text, case.cell) and case.is_near_person()


def _is_address(case: _Case) -> bool:
    if _has_citation(case.text, case.cell):
        return False
    return (case.value.likely and case.is_delimited) or case.is_near_person()


def _is_expiry(case: _Case) -> bool:
    return case.is_near_person() or case.records.has_kind(case.cell.record, "card")


def _is_number(case: _Case) -> bool:
    """True if a number is private.

    It is long enough to be unique, or stands in a person's record.
    """
    if is_range(case.content):
        return False
    if case.value.likely and len(case.content) >= 6 and sum(map(str.isdigit, case.content)) >= 4:
        return True
    return case.cell.key.lower() not in ("id", "ref") and case.is_near_person()


def _is_issued(case: _Case) -> bool:
    """True if a key is clear enough for its number.

    A short key in a line of text may mean anything.
    """
    cell = case.cell
    quoted = cell.start > 0 and case.text[cell.start - 1] in "\"'`>"
    return len(cell.key) > 3 or cell.form or quoted or case.is_near_person()


def _is_somebody(case: _Case) -> bool:
    """True if the value of a role is a person's name.

    It is no team, type or author of a published work.
    """
    cell, name = case.cell, case.content
    if is_example(name) or _is_of_work(case):
        return False
    if not case.is_delimited and not case.value.likely:
        return False
    if case.value.likely or case.is_of_person(but=cell.kind) or not name.isascii():
        return True
    if not _PARTED.isdisjoint(name):
        return not all(map(is_ordinary, name.split()))
    return not is_ordinary(name) and not name.isupper()


def _is_of_work(case: _Case) -> bool:
    """True if a person is the author of a published work."""
    if case.cell.kind != "author":
        return False
    keys = case.cells.keys[case.cell.record]
    return bool(keys & vocabulary.get_words("work_fields")) or _has_citation(case.text, case.cell)


def _has_citation(text: str, cell: KeyedValue) -> bool:
    before = text[max(0, cell.start - 1500) : cell.start]
    return any(
        sign in before for sign in ("@article", "@book", "@in", "@misc", "isbn", "ISBN", "doi")
    )


def _is_named(case: _Case) -> bool:
    """True if the value behind a bare `name` is a person's name."""
    name, likely, statement_form = case.content, case.value.likely, case.is_of_person()
    several = not _SEVERAL.isdisjoint(name)
    alone = not several and not statement_form
    if is_example(name) or (alone and _is_constant(name)):
        return False
    if statement_form:
        return _is_no_word(case)
    if case.has_personal_data() and _may_be_name(case, several=several):
        return True
    return several and likely and _is_full(case)


_PARTED, _SEVERAL = frozenset(" 　."), frozenset(" 　·・")
"""The separators between the words of a name."""


def _may_be_name(case: _Case, *, several: bool) -> bool:
    """True if a value looks like a name, or has unknown words."""
    if case.value.likely:
        return True
    if not case.content.isascii():
        return not _is_word(case.text, case.value)
    return several and not any(map(is_ordinary, case.content.split()))


def _is_constant(name: str) -> bool:
    return name.isupper() and name.isascii()


def _is_no_word(case: _Case) -> bool:
    if is_likely_name(case.content):
        return True
    return not _is_word(case.text, case.value) and not is_no_name(case.content)


def _is_full(case: _Case) -> bool:
    """True if words are a full name, by their form.

    They stand in a form, or are a given name and up to three others, the last no ordinary word.
    """
    if case.cell.form and case.cell.key[:1].isupper():
        return True
    words = case.content.split()
    has_given_name = len(words) <= 4 and is_likely_name(words[0] + " " + words[0])
    return has_given_name and not is_ordinary(words[-1])


def _is_login(case: _Case) -> bool:
    cell, name = case.cell, case.content
    if name.lower() == cell.key.lower() or is_example(name) or _is_speech(case):
        return False
    if _fills_field(case):
        return case.value.likely or not is_ordinary(name)
    if cell.form:
        return case.value.likely or (not is_ordinary(name) and case.is_near_person())
    return _is_assigned(case) and not is_ordinary(name)


_ANSWER = re.compile(r"^[ \t>*]{0,8}assistant[ *]{0,3}:", re.IGNORECASE | re.MULTILINE)
"""The start of an answer in a dialogue with a model."""
_MAX_TURN = 2_000
"""The longest turn of a dialogue, in characters, beside an answer."""
_FURTHER_WORD = re.compile(r" [^\W\d_]")


def _is_speech(case: _Case) -> bool:
    """True if a word begins a sentence of whoever the key names (`user: Where is it?`).

    Further words follow, and it is an ordinary word of any language, or no name where a model
    answers in the turns beside.
    """
    start, end = max(0, case.cell.start - _MAX_TURN), case.value.end + _MAX_TURN
    if not case.content.isalpha() or not _FURTHER_WORD.match(case.text, case.value.end):
        return False
    if lexicon.is_all_ordinary(case.content):
        return True
    is_name = case.content.lower() in lexicon.read_lists()[0]
    return not is_name and _ANSWER.search(case.text, start, end) is not None


def _is_assigned(case: _Case) -> bool:
    """True if a value follows an equals sign and names no variable."""
    cell = case.cell
    return cell.whole and case.text[cell.start - 1] == "=" and "_" not in case.content


def _fills_field(case: _Case) -> bool:
    """True if a value fills a string, element or table cell."""
    before = case.text[: case.cell.start]
    if before[-1:] in {*"\"'`>{"}:
        return True
    return case.cell.whole and before[-1:] in {*",;|\t "} and before.rstrip()[-1:] != "="


_PRIVACY_TESTS: dict[str, Callable[[_Case], bool]] = {
    "people": _is_listed_person,
    "name": _is_named,
    "expiry": _is_expiry,
    "address": _is_address,
    "handle": _is_login,
    "id": _is_number,
    **dict.fromkeys(_NAME_KINDS, _is_of_person),
    **dict.fromkeys(("role", "author"), _is_somebody),
    **dict.fromkeys(_RECORD_KINDS, _is_of_somebody),
    **dict.fromkeys(_ISSUED_KINDS, _is_issued),
}
"""The tests of values whose kinds are not private wherever they are likely."""
