"""Structure: private values that their keys give away.

In: texts: prose, data or code, or both. Out: spans of values; keys and code stay.
Not here: what keys mean (`keys`), which values fit (`values`), where they stand (`pairs`, `tables`), and
identifiers that need no key (`patterns`).

A value is taken if its key can only mean something private (`patientName`, `Geburtsdatum`), or if its neighbours show
that the record is a person's: a `name` beside a mail address, a town beside a date of birth. The rest stays.

A span is the value without its quotes. A number without quotes is hidden like any other value. In JSON its placeholder
is a string, so that the document still parses; SQL parses again only when the answer is restored.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from textveil.detect.keyvalue.elided import read_elided
from textveil.detect.keyvalue.keys import folded
from textveil.detect.keyvalue.parsers import KeyedValue, KeyedValues, read_calls, read_pairs
from textveil.detect.keyvalue.tables import read_inserts, read_tables
from textveil.detect.keyvalue.values import (
    Value,
    find,
    is_example,
    is_ordinary,
    looks_like_name,
    no_name,
    person,
)
from textveil.detect.patterns.hosts import mail_privacy
from textveil.detect.patterns.references import is_range
from textveil.detect.patterns.rules import NUMBERED, is_dummy, listed
from textveil.detect.patterns.secrets import is_password, secret_check
from textveil.detect.spans import Span
from textveil.text import lexicon

SCORE = 1.0
"""The score of all spans: what is less certain is left to other detectors."""

_NAMES = ("given", "family", "full")
_TELLING = ("given", "family", "full", "birth", "national", "medical", "email")
"""Kinds whose values show that a record is a person's."""
_CONTACTS = (
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
"""Kinds that show it beside a name."""
_BESIDE = (
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
_PLACED = (*_BESIDE, "address")
"""Kinds that a work, or code, may have, too."""
_EXPRESSION = re.compile(r"\(| if |\[")
_ASIDE = re.compile("  | \\(|, |，")
_QUOTES, _BLANKS = frozenset("\"'`>{"), frozenset(",;|\t ")
"""What stands before a value: of data, and of the cell of a row."""
LONGEST_SECRET = 200
"""Characters of a password, key or code."""
_SIGNS = (":", "=", "<", "\\", "：", "【", ".set", "PID|")
"""Without any of these a text holds no pairs."""
_TRACKS = frozenset(("trkpt", "wpt", "rtept", "home"))
"""Keys of places where somebody was."""
_WORKS = listed(
    """title book isbn isbn13 doi journal publisher year published genre quote pages volume issue abstract citation
    album song booktitle edition publication titre título titolo tytuł 标题 书名 出版社"""
)
"""Keys beside an author that make the record one of a published work."""
_NAMES_APART = re.compile(r"[,;/]|[ ](?:and|und|et|y|e|i|&)(?=[ ])")
_JOINED = re.compile(r"[ ](?:and|und|et|y|e|en|ve|i|&)[ ]")
_LOGIN = re.compile(r"[ ]\(([A-Za-z][\w.\-]{2,31})[,)]")
_TELEPHONE = re.compile(r"(?<![\w./\-])[+(]{0,2}\d(?:[ ().\-/]{0,3}\d){7,14}(?![\w\-])")
_TEMPLATE = re.compile(r"[$<%*^/\\]|process\.|os\.|\{\{|\{.*\}$|https?:")
_MIXED = re.compile(r"[^A-Za-z_./:|,\-]")
_OWNER = re.compile(r"[a-z]{4,20}\d{1,4}")
_NAMED = ("given", "family")
"""Kinds of keys behind which a word is a name, however ordinary."""

_VIETNAMESE = re.compile(r"[ăđơưĂĐƠƯ\u1ea0-\u1ef9]")

_PARTIAL = frozenset(
    ("sn", "ho", "first", "last", "middle", "ad", "adi", "имя", "ten", "tên", "isim", "adı")
)
"""Keys of parts of names that mean other things outside of a person's record."""


@dataclass(frozen=True, kw_only=True)
class Structure:
    """A detector of values by their keys, in documents, code, logs and forms.

    Runs locally, in time linear in the text. Broken and cut off documents are read as far as they go.
    """

    @property
    def name(self) -> str:
        """What statements and rows call it."""
        return "structure"

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The spans of all texts, in the order of texts and starts; they do not overlap."""
        return [
            Span(number, start, end, type_, SCORE, self.name, _standing(type_, text[start:end]))
            for number, text in enumerate(texts)
            for start, end, type_ in _separate(_found(text))
            if not (type_ in NUMBERED and is_dummy(text[start:end]))
        ]


def _standing(type_: str, value: str) -> float:
    """How probable it is that a value is private; also behind a key, a mail address may be nobody's."""
    return mail_privacy(value) if type_ == "EMAIL" else 1.0


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    cells = KeyedValues()
    if any(sign in text for sign in _SIGNS):
        read_pairs(text, cells)
    read_calls(text, cells)
    yield from _private(text, cells)
    cells = KeyedValues()
    if "\n" in text:
        read_tables(text, cells)
    if "insert" in text.lower():
        read_inserts(text, cells)
    yield from _private(text, cells)
    for start, end in read_elided(text):
        yield start, end, "PERSON"


def _is_of_words(value: str) -> bool:
    """Whether what stands where a person is named is ordinary words, in languages whose names are no such words."""
    return lexicon.all_ordinary(value) and not _VIETNAMESE.search(value)


def _separate(found: Iterator[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Values in order; of two that overlap the longer, or the one found first."""
    kept: list[tuple[int, int, str]] = []
    for one in sorted(found, key=lambda each: (each[0], -each[1])):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


# ---- which values are private ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Records:
    """What is known about the persons of records."""

    own: dict[int, set[str]]
    parents: list[int]
    persons: list[bool]
    below: dict[int, set[str]]

    def telling(self, record: int, but: str = "") -> bool:
        """Whether the record or one around it is a person's."""
        while record >= 0:
            if self.persons[record] or any(
                kind in _TELLING for kind in self.own.get(record, set()) - {but}
            ):
                return True
            record = self.parents[record]
        return False

    def contact(self, record: int) -> bool:
        """Whether there is anything beside a name that people have."""
        return bool(self.own.get(record, set()) & {*_CONTACTS})

    def has(self, record: int, kind: str) -> bool:
        """Whether the record, one around it, or one beside it has a value of a kind."""
        while record >= 0:
            if kind in self.own.get(record, set()) | self.below.get(record, set()):
                return True
            record = self.parents[record]
        return False

    def near(self, record: int) -> bool:
        """Whether the record, one around it, or one beside it is a person's."""
        while record >= 0:
            kinds = self.own.get(record, set()) | self.below.get(record, set())
            if self.persons[record] or kinds & {*_TELLING, "role", "name"}:
                return True
            record = self.parents[record]
        return False


def _private(text: str, cells: KeyedValues) -> Iterator[tuple[int, int, str]]:
    cells.pair(text)
    values = [(cell, value) for cell in cells.cells for value in _values(text, cell)]
    own: dict[int, set[str]] = defaultdict(set)
    below: dict[int, set[str]] = defaultdict(set)
    for cell, value in values:
        if _tells_person(text, cell, value):
            own[cell.record].add(cell.kind)
    for record, kinds in list(own.items()):
        if cells.parents[record] >= 0:
            below[cells.parents[record]] |= kinds
    records = _Records(own, cells.parents, cells.persons, below)
    for cell, value in values:
        if _Candidate(text, cell, value, records, cells).is_private():
            yield value.start, value.end, value.type
            if value.type == "PERSON":
                below[cell.record].add("name")


def _tells_person(text: str, cell: KeyedValue, value: Value) -> bool:
    """Whether the kind of a value says something of its record."""
    if cell.kind in _NAMES and cell.key.lower() in _PARTIAL:
        return False
    if cell.kind in ("name", "author"):
        return value.likely
    return cell.kind != "role" or value.likely or not _is_word(text[value.start : value.end])


def _values(text: str, cell: KeyedValue) -> Iterator[Value]:
    """The values of a cell: one, or the names of a list, or in a form what stands beside a name."""
    if cell.kind == "people":
        at = cell.start
        for part in _NAMES_APART.split(text[cell.start : cell.end]):
            lead = len(part) - len(part.lstrip(" \"'"))
            if value := person(
                text, at + lead, min(cell.end, at + len(part)), whole=False, strong=False
            ):
                yield value
            at = text.find(part, at) + len(part) + 1
        return
    value = _value(text, cell)
    if value is None:
        return
    yield value
    if value.type == "PERSON" and cell.form:
        yield from _beside(text, value, cell.end)


def _beside(text: str, value: Value, end: int) -> Iterator[Value]:
    """The login in brackets and the telephone number that stand behind a name in a form."""
    if login := _LOGIN.match(text, value.end, end):
        name = {word for word in folded(text[value.start : value.end]).split() if len(word) > 2}
        if not login[1].isalpha() or any(word in login[1].lower() for word in name):
            yield Value(*login.span(1), "HANDLE", True)
    if joined := _JOINED.match(text, value.end, end):
        second = person(text, joined.end(), end, whole=False, strong=False)
        if second and (second.likely or " " in text[second.start : second.end]):
            yield second
    for number in _TELEPHONE.finditer(text, value.end, end):
        if 8 <= sum(map(str.isdigit, number[0])) <= 14:
            yield Value(*number.span(), "PHONE", True)


def _value(text: str, cell: KeyedValue) -> Value | None:
    start, end = _without_marks(text, cell)
    if text.startswith(("null", "None", "NULL"), start) and end - start <= 5:
        return None
    code = cell.whole and text[: cell.start].endswith(("=", "= "))
    if code and cell.kind in _PLACED and _EXPRESSION.search(text, start, end):
        return None
    if cell.kind in _NAMES:
        strong = cell.key.lower() not in _PARTIAL and not code
        return person(text, start, end, whole=cell.whole, strong=strong)
    if cell.kind == "secret":
        return _secret(text, start, end, cell)
    if cell.kind == "role" and cell.whole and _OWNER.fullmatch(text, start, end):
        stem = text[start:end].rstrip("0123456789")
        return None if is_ordinary(stem) else Value(start, end, "HANDLE", True)
    if cell.kind in ("name", "role", "author", "handle") or cell.key.lower() == "sn":
        named = person(text, start, end, whole=cell.whole, strong=False)
        if cell.kind in ("name", "role", "author") or _is_full_name(text, cell, named):
            return named
    if start >= end:
        return None
    return find(cell.kind, text, start, end, whole=cell.whole)


def _without_marks(text: str, cell: KeyedValue) -> tuple[int, int]:
    """The place of a value without quotes, brackets and marks of emphasis around it."""
    start, end = cell.start, cell.end
    while start < end and text[start] in " \t　\"'`*“«（":
        start += 1
    while end > start and start > cell.start and text[end - 1] in "\"'`*”»）":
        end -= 1
    return start, end


def _is_full_name(text: str, cell: KeyedValue, named: Value | None) -> bool:
    """Whether what stands behind the key of a login is a name of several words, or in another script."""
    if named is None or cell.key.lower() == "sn":
        return named is not None
    name = text[named.start : named.end]
    return " " in name or not name.isascii()


def _is_word(name: str) -> bool:
    """Whether a name is a single ordinary word."""
    return not any(sign in name for sign in " 　.") and name.isascii() and is_ordinary(name)


def _secret(text: str, start: int, end: int, cell: KeyedValue) -> Value | None:
    """A password, key or code: no word or name of a variable, no template, no sentence."""
    value = text[start:end].rstrip(" \"'`")
    quoted = cell.start > 0 and text[cell.start - 1] in "\"'`"
    if not cell.whole:
        value = _ASIDE.split(value, maxsplit=1)[0]
        value = value.split()[0] if value and cell.form else value
    if not value or "\n" in value or len(value) > LONGEST_SECRET or _TEMPLATE.match(value):
        return None
    if not _is_secret(value, quoted, cell):
        return None
    return Value(start, start + len(value), "SECRET", True)


def _is_secret(value: str, quoted: bool, cell: KeyedValue) -> bool:
    if not quoted and any(sign in value for sign in "()[];"):
        return False
    key, words = folded(cell.key), value.split()
    if value.isdigit():
        return (quoted or cell.form) and key.split()[-1:] != ["pass"] and 3 <= len(value) <= 12
    if len(words) > 1:  # groups of one length, as codes for a second device are written
        return quoted and len(words) > 2 and value.isascii() and len({*map(len, words)}) == 1
    if cell.paired and (fits := secret_check(key)):
        return bool(fits(value))
    return is_password(value) and _MIXED.search(value) is not None


def _is_shouted(name: str) -> bool:
    return name.isupper() and name.isascii()


def _has_no_word(name: str) -> bool:
    return not any(map(is_ordinary, name.split()))


def _reads_as_name(words: Sequence[str]) -> bool:
    """Whether words begin and end as a name of a few words does."""
    first, last = words[0], words[-1]
    return len(words) <= 4 and looks_like_name(f"{first} {first}") and not is_ordinary(last)


@dataclass(frozen=True)
class _Candidate:
    """A value, and what is beside it."""

    text: str
    cell: KeyedValue
    value: Value
    records: _Records
    cells: KeyedValues

    @property
    def said(self) -> str:
        return self.text[self.value.start : self.value.end]

    @property
    def is_exact(self) -> bool:
        """Whether the value is all that stands behind its key, as in a form or in data."""
        return self.cell.whole or self.cell.form

    def is_telling(self, but: str = "") -> bool:
        """Whether the record is a person's, whatever this value is."""
        return self.records.telling(self.cell.record, but=but)

    def is_near(self) -> bool:
        """Whether a record around or beside is a person's."""
        return self.records.near(self.cell.record)

    def is_private(self) -> bool:
        """Whether the value belongs to somebody private."""
        kind, type_ = self.cell.kind, self.value.type
        if type_ == "PERSON" and kind not in _NAMED and _is_of_words(self.said):
            return False
        if type_ == "PERSON" and kind in ("id", "handle"):
            return self.is_telling() if kind == "id" else self._is_somebody()
        if type_ in ("HANDLE", "PHONE") and kind in (*_NAMES, "role", "name"):
            return True
        if kind in _PLACED and not self._is_track() and _cites(self.text, self.cell):
            return False
        decide = _DECISIONS.get(kind)
        return self.value.likely if decide is None else decide(self)

    def _is_track(self) -> bool:
        """Whether the value is where somebody was."""
        named = self.cells.names[self.cell.record].lower()
        return self.cell.kind in ("latitude", "longitude") and named in _TRACKS

    def _is_person(self) -> bool:
        """Whether the value behind a name's key is a name."""
        kind, cell = self.cell.kind, self.cell
        if kind in _NAMED and cell.key.lower() in _PARTIAL:
            return self.is_telling()
        if kind != "full":
            return True
        if self.said.islower() and " " not in self.said:
            return self.is_telling(but=kind)
        return self.is_exact or self.value.likely

    def _is_id(self) -> bool:
        if is_range(self.said):
            return False
        long = len(self.said) >= 6 and sum(map(str.isdigit, self.said)) >= 4
        if self.value.likely and long:
            return True
        return self.cell.key.lower() not in ("id", "ref") and self.is_near()

    def _is_number(self) -> bool:
        """Whether the value of a number's key is one; short keys may mean something else."""
        key, start = self.cell.key, self.cell.start
        quoted = start > 0 and self.text[start - 1] in "\"'`>"
        return len(key) > 3 or self.cell.form or quoted or self.is_near()

    def _is_somebody(self) -> bool:
        """Whether the value of a role is a person's name, and no team, type or author of a work."""
        name, cell = self.said, self.cell
        works = self.cells.keys[cell.record] & _WORKS
        if cell.kind == "author" and (works or _cites(self.text, cell)):
            return False
        if is_example(name) or not (self.is_exact or self.value.likely):
            return False
        if self.value.likely or self.is_telling(but=cell.kind) or not name.isascii():
            return True
        if any(sign in name for sign in " ."):
            return not all(map(is_ordinary, name.split()))
        return not is_ordinary(name) and not name.isupper()

    def _is_named(self) -> bool:
        """Whether the value behind `name` alone is a person's name."""
        name, record, likely = self.said, self.cell.record, self.value.likely
        several = any(sign in name for sign in " 　·・")
        person = self.records.persons[record] or self.is_telling()
        if is_example(name) or (_is_shouted(name) and not several and not self.is_telling()):
            return False
        if person:
            return looks_like_name(name) or (not _is_word(name) and not no_name(name))
        if self.records.contact(record) or "name" in self.records.own.get(record, ()):
            unknown = _has_no_word(name) and several if name.isascii() else not _is_word(name)
            if likely or unknown:
                return True
        if not (likely and several):
            return False
        return (self.cell.form and self.cell.key[:1].isupper()) or _reads_as_name(name.split())

    def _is_login(self) -> bool:
        name, cell = self.said, self.cell
        if name.lower() == cell.key.lower() or is_example(name):
            return False
        known = self.value.likely or not is_ordinary(name)
        before = self.text[max(0, cell.start - 1) : cell.start]
        assigned = self.text[: cell.start].rstrip()[-1:] == "="
        if before in _QUOTES or (cell.whole and before in _BLANKS and not assigned):
            return known
        if cell.form:
            return self.value.likely or (known and self.is_near())
        return cell.whole and before == "=" and "_" not in name and not is_ordinary(name)


_DECISIONS: Mapping[str, Callable[[_Candidate], bool]] = {
    **dict.fromkeys(_NAMES, _Candidate._is_person),
    **dict.fromkeys(("role", "author"), _Candidate._is_somebody),
    **dict.fromkeys(
        ("national", "medical", "licence", "account", "plate", "ip", "booking", "coordinates"),
        _Candidate._is_number,
    ),
    **dict.fromkeys(_BESIDE, lambda each: each._is_track() or each.is_near()),
    "people": lambda each: each.value.likely or not _is_word(each.said),
    "name": _Candidate._is_named,
    "handle": _Candidate._is_login,
    "id": _Candidate._is_id,
    "expiry": lambda each: each.is_near() or each.records.has(each.cell.record, "card"),
    "address": lambda each: (each.value.likely and each.is_exact) or each.is_near(),
}
"""What decides of a kind whether its value is private; of all others those that are likely are."""


def _cites(text: str, cell: KeyedValue) -> bool:
    """Whether a work is cited before a value."""
    before = text[max(0, cell.start - 1500) : cell.start]
    return any(
        sign in before for sign in ("@article", "@book", "@in", "@misc", "isbn", "ISBN", "doi")
    )
