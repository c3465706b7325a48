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
from collections.abc import Iterator, Sequence
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
        if cell.kind in _NAMES and cell.key.lower() in _PARTIAL:
            continue
        if (
            cell.kind in ("role", "name", "author")
            and not value.likely
            and (cell.kind != "role" or _is_word(text, value))
        ):
            continue
        own[cell.record].add(cell.kind)
    for record, kinds in list(own.items()):
        if cells.parents[record] >= 0:
            below[cells.parents[record]] |= kinds
    records = _Records(own, cells.parents, cells.persons, below)
    for cell, value in values:
        sure = (
            value.type != "PERSON"
            or cell.kind in _NAMED
            or not _is_of_words(text[value.start : value.end])
        )
        if sure and _is_private(text, cell, value, records, cells):
            yield value.start, value.end, value.type
            if value.type == "PERSON":
                below[cell.record].add("name")


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
    start, end = cell.start, cell.end
    while start < end and text[start] in " \t　\"'`*“«（":
        start += 1
    while end > start and start > cell.start and text[end - 1] in "\"'`*”»）":
        end -= 1
    if text.startswith(("null", "None", "NULL"), start) and end - start <= 5:
        return None
    code = cell.whole and text[: cell.start].endswith(("=", "= "))
    if (
        code
        and cell.kind in (*_BESIDE, "address")
        and any(sign in text[start:end] for sign in ("(", " if ", "["))
    ):
        return None
    if cell.kind in _NAMES:
        strong = cell.key.lower() not in _PARTIAL and not code
        return person(text, start, end, whole=cell.whole, strong=strong)
    if cell.key.lower() == "sn" and (
        named := person(text, start, end, whole=cell.whole, strong=False)
    ):
        return named
    if cell.kind == "handle" and (
        named := person(text, start, end, whole=cell.whole, strong=False)
    ):
        name = text[named.start : named.end]
        if " " in name or not name.isascii():
            return named
    if cell.kind == "role" and cell.whole and _OWNER.fullmatch(text, start, end):
        stem = text[start:end].rstrip("0123456789")
        return None if is_ordinary(stem) else Value(start, end, "HANDLE", True)
    if cell.kind in ("name", "role", "author"):
        return person(text, start, end, whole=cell.whole, strong=False)
    if cell.kind == "secret":
        return _secret(text, start, end, cell)
    if start >= end:
        return None
    return find(cell.kind, text, start, end, whole=cell.whole)


def _is_word(text: str, value: Value) -> bool:
    """Whether a name is a single ordinary word."""
    name = text[value.start : value.end]
    return not any(sign in name for sign in " 　.") and name.isascii() and is_ordinary(name)


def _secret(text: str, start: int, end: int, cell: KeyedValue) -> Value | None:
    """A password, key or code: no word or name of a variable, no template, no sentence."""
    value = text[start:end].rstrip(" \"'`")
    quoted = cell.start > 0 and text[cell.start - 1] in "\"'`"
    if not cell.whole:
        value = value.split("  ")[0].split(" (")[0].split(", ")[0].split("，")[0]
        value = value.split()[0] if value and cell.form else value
    words = value.split()
    spelled = (
        len(words) > 2 and quoted and value.isascii() and len({len(word) for word in words}) == 1
    )
    if (
        not value
        or "\n" in value
        or len(value) > 200
        or (len(words) > 1 and not spelled)
        or _TEMPLATE.match(value)
    ):
        return None
    if not quoted and any(sign in value for sign in "()[];"):
        return None
    if value.isdigit():
        named = folded(cell.key).split()[-1:] != ["pass"] and 3 <= len(value) <= 12
        return (
            Value(start, start + len(value), "SECRET", True)
            if named and (quoted or cell.form)
            else None
        )
    fits = secret_check(folded(cell.key)) if cell.paired else None
    if not spelled and not (fits(value) if fits else is_password(value) and _MIXED.search(value)):
        return None
    return Value(start, start + len(value), "SECRET", True)


def _is_private(
    text: str, cell: KeyedValue, value: Value, records: _Records, cells: KeyedValues
) -> bool:
    kind, record = cell.kind, cell.record
    if value.type == "HANDLE" and kind == "role":
        return True
    if value.type == "PERSON" and kind == "id":
        return records.telling(record)
    if value.type == "PERSON" and kind == "handle":
        return _is_somebody(text, cell, value, records, cells)
    if value.type in ("HANDLE", "PHONE") and kind in (*_NAMES, "role", "name"):
        return True
    if kind == "people":
        return value.likely or not _is_word(text, value)
    if kind in ("latitude", "longitude") and cells.names[record].lower() in _TRACKS:
        return True
    if kind in ("given", "family") and cell.key.lower() in _PARTIAL:
        return records.telling(record)
    if (
        kind == "full"
        and text[value.start : value.end].islower()
        and " " not in text[value.start : value.end]
    ):
        return records.telling(record, but=kind)
    if kind in _NAMES:
        return not (cell.kind == "full" and not cell.whole and not cell.form and not value.likely)
    if kind in ("role", "author"):
        return _is_somebody(text, cell, value, records, cells)
    if kind == "name":
        return _is_named(text, cell, value, records)
    if kind in (*_BESIDE, "address") and _cites(text, cell):
        return False
    if kind in _BESIDE:
        return records.near(record)
    if kind == "expiry":
        return records.near(record) or records.has(record, "card")
    if kind == "address":
        return (value.likely and (cell.whole or cell.form)) or records.near(record)
    if kind == "handle":
        return _is_login(text, cell, value, records)
    if kind == "id":
        if is_range(text[value.start : value.end]):
            return False
        long = (
            value.end - value.start >= 6
            and sum(map(str.isdigit, text[value.start : value.end])) >= 4
        )
        return (value.likely and long) or (
            records.near(record) and cell.key.lower() not in ("id", "ref")
        )
    if kind in (
        "national",
        "medical",
        "licence",
        "account",
        "plate",
        "ip",
        "booking",
        "coordinates",
    ):
        short = (
            len(cell.key) <= 3
            and not cell.form
            and not (cell.start and text[cell.start - 1] in "\"'`>")
        )
        return not short or records.near(record)
    return value.likely


def _is_somebody(
    text: str, cell: KeyedValue, value: Value, records: _Records, cells: KeyedValues
) -> bool:
    """Whether the value of a role is a person's name, and no team, type or author of a work."""
    name = text[value.start : value.end]
    if cell.kind == "author" and (cells.keys[cell.record] & _WORKS or _cites(text, cell)):
        return False
    if is_example(name):
        return False
    if not cell.whole and not cell.form and not value.likely:
        return False
    if value.likely or records.telling(cell.record, but=cell.kind):
        return True
    if not any(sign in name for sign in " 　."):
        return not name.isascii() or (
            not is_ordinary(name) and not name.isupper() and (cell.form or cell.whole)
        )
    return (
        not all(is_ordinary(word) for word in name.split() if word.isascii())
        if name.isascii()
        else True
    )


def _cites(text: str, cell: KeyedValue) -> bool:
    before = text[max(0, cell.start - 1500) : cell.start]
    return any(
        sign in before for sign in ("@article", "@book", "@in", "@misc", "isbn", "ISBN", "doi")
    )


def _is_named(text: str, cell: KeyedValue, value: Value, records: _Records) -> bool:
    """Whether the value behind `name` alone is a person's name."""
    name, record = text[value.start : value.end], cell.record
    several = any(sign in name for sign in " 　·・")
    if is_example(name) or (
        not several and name.isupper() and name.isascii() and not records.telling(record)
    ):
        return False
    if records.persons[record] or records.telling(record):
        return looks_like_name(name) or (not _is_word(text, value) and not no_name(name))
    unknown = (
        not any(map(is_ordinary, name.split())) and several
        if name.isascii()
        else not _is_word(text, value)
    )
    beside = records.contact(record) or "name" in records.own.get(record, ())
    if beside and (value.likely or unknown):
        return True
    if cell.form and cell.key[:1].isupper():
        return value.likely and several
    words = name.split()
    return (
        value.likely
        and several
        and len(words) <= 4
        and looks_like_name(words[0] + " " + words[0])
        and not is_ordinary(words[-1])
    )


def _is_login(text: str, cell: KeyedValue, value: Value, records: _Records) -> bool:
    name = text[value.start : value.end]
    key = cell.key.lower()
    quoted = cell.start > 0 and text[cell.start - 1] in "\"'`>{"
    if name.lower() == key or is_example(name):
        return False
    if quoted or (
        (cell.whole and text[cell.start - 1] in ",;|\t ")
        and text[: cell.start].rstrip()[-1:] != "="
    ):
        return value.likely or not is_ordinary(name)
    if cell.form:
        return value.likely or (not is_ordinary(name) and records.near(cell.record))
    return cell.whole and text[cell.start - 1] == "=" and "_" not in name and not is_ordinary(name)
