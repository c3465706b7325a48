"""Pairs: reads keys with their values, in whole or broken documents.

Formats are JSON, YAML, TOML, code, logs, forms, XML and cards.

In: a text. Out: `KeyedValues`: the place of each value with a known key, and the records of the
values.
Not here: the meaning of keys (`field_names`), the forms of values (`values`), tables (`table_cells`).

One pass over quotes, brackets, separators and line ends; nothing is parsed, so nothing can be
invalid.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from textveil.detect.keyvalue.field_names import (
    classify_key,
    get_pair_part,
    is_number,
    is_person,
    is_secret,
)
from textveil.detect.patterns.rules import make_word_set
from textveil.detect.patterns.secrets import is_strong

MAX_STRING_DEPTH = 2
"""The depth to which strings are searched for further pairs: JSON in JSON, arguments of a command.
"""
_MAX_OPEN_BRACKETS = 200
"""The most open brackets that are remembered."""


class KeyedValue(NamedTuple):
    """A value behind a key.

    Args:
        start: first character of the value, behind quotes.
        end: one past its last.
        kind: the kind that the key announces, see `keys`.
        key: the key.
        whole: whether the value is all of this range; otherwise it may end earlier.
        record: the number of its record.
        form: whether it is written as in a form or note, key, colon, value, and not as in code or
            data.
        paired: whether the key is a value, too: `name: KEY, value: VALUE`.
    """

    start: int
    end: int
    kind: str
    key: str
    whole: bool
    record: int
    form: bool = False
    paired: bool = False

    def __repr__(self) -> str:
        return f"KeyedValue({self.start}, {self.end}, {self.kind})"


class PairPart(NamedTuple):
    """The key or the value of a pair that two fields describe.

    It holds the place, the part of the pair, and how it is written.
    """

    start: int
    end: int
    part: str
    whole: bool
    form: bool


@dataclass
class KeyedValues:
    """The values of a text by key, and their records.

    A record is an object, a row, or a block of lines.

    Attributes:
        cells: the values.
        parents: for each record the record around it; -1 for none.
        persons: for each record whether its own key stands for a person.
        keys: for each record the keys in it, whether or not they have a kind.
        names: for each record its own key.
        pair_parts: for each record the places of keys and values of pairs: `name: X, value: Y`.
    """

    cells: list[KeyedValue] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    persons: list[bool] = field(default_factory=list)
    keys: list[set[str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    pair_parts: dict[int, list[PairPart]] = field(default_factory=dict)

    def add_record(self, parent: int, key: str = "") -> int:
        """Adds a record inside another record, and returns its number."""
        self.parents.append(parent)
        self.persons.append(bool(key) and is_person(key))
        self.keys.append(set())
        self.names.append(key)
        return len(self.parents) - 1

    def add(
        self, key: str, start: int, end: int, *, whole: bool, record: int, form: bool = False
    ) -> None:
        """Adds a value, if its key announces a kind."""
        if start >= end:
            return
        self.keys[record].add(key.lower())
        if part := get_pair_part(key):
            self.pair_parts.setdefault(record, []).append(PairPart(start, end, part, whole, form))
        parent_key = self.names[record]
        kind = classify_key(key)
        if kind is None and parent_key and is_number(key):
            kind = classify_key(f"{parent_key} {key}") or (
                "house" if classify_key(parent_key) == "address" else None
            )
        if kind:
            self.cells.append(KeyedValue(start, end, kind, key, whole, record, form))

    def resolve_pairs(self, text: str) -> None:
        """Adds the values of pairs whose keys are values themselves.

        Key and value come in either order; without a key, the record's own key counts.
        """
        for record, fields in self.pair_parts.items():
            fields.sort()
            parts = [entry.part for entry in fields]
            if "value" not in parts and "default" not in parts:
                continue
            first = "key" if parts[0] == "key" else "value"
            groups: list[list[PairPart]] = []
            for entry in (
                fields
            ):  # a group begins where what a pair begins with stands behind the rest of one
                begins = (entry.part == "key") == (first == "key")
                if not groups or (begins and (groups[-1][-1].part == "key") != (first == "key")):
                    groups.append([])
                groups[-1].append(entry)
            for group in groups:
                keys = [
                    text[entry.start : entry.end].strip(" \"'`")
                    for entry in group
                    if entry.part == "key"
                ]
                for entry in group:
                    if entry.part != "key":
                        self.add_pair(keys or [self.names[record]], entry, record)

    def add_pair(self, keys: Sequence[str], pair_part: PairPart, record: int) -> None:
        """Adds the value of a pair, if a key announces a kind."""
        for key in keys:
            kind = "secret" if is_secret(key) else classify_key(key)
            if kind and (kind == "secret" or pair_part.part == "value"):
                value = KeyedValue(
                    pair_part.start,
                    pair_part.end,
                    kind,
                    key,
                    pair_part.whole,
                    record,
                    pair_part.form,
                    paired=True,
                )
                self.cells.append(value)
                return


_TOKEN = re.compile(
    r"""["“](?:[^"\\\n“”]|\\.)*+(?:["”]|\\?(?=\n)|\\?\Z)|'(?<![\w\\]')(?:[^'\\\n]|\\.|''){0,300}+'(?!\w)|`[^`\n]{0,200}+`"""
    r"|[{}\[\]()\n：【]|={1,3}>?|:=?"
)
_ESCAPED = re.compile(
    r"""\\+"(?:[^"\\\n]|\\(?!["\\]))*+(?:\\+"|(?=\n)|\\?\Z)|[{}\[\]()\n：]|={1,3}>?|:=?"""
)
_KEY_BOUND = re.compile(
    r"[,;|(\[{<>\t•·\"“”*‘’】、。]|  |/ | /|[\-–—] |\d[.)] |[.!?] (?=\S*\s?$)|，|）|\)"
)
_ASIDE = re.compile(r"\s?[(（][^()（）\n]{1,30}[)）]\s*$")
_NAMED = re.compile(
    r"([\w$@.\-]{1,64})(?:\s{0,4}:\s{0,4}(?i:str|string|text|int|integer|float|bool|boolean|number|any|object|date|u?int\d\d?|char|optional\[\w+\])\??)?\s{0,4}$"
)
_MARKS = " \t>#*-•·–—/【】_\"'`"
_SETTER = re.compile(r"(?:^|\.)(?:set|with)_?((?-i:[A-Z_])\w{2,40})$")
_STOP = re.compile(r"[,}\])\n;]")
_NEXT = re.compile(r"(?:[,;&]|\s)\s?[\w.\-]{1,40}=")
_CLOSES = {"}": "{", "]": "[", ")": "("}


class _PairScanner:
    """A single pass over a part of a text."""

    def __init__(self, text: str, cells: KeyedValues, root: int) -> None:
        self.text, self.cells, self.root = text, cells, root
        self.open: list[tuple[str, int, str]] = []  # bracket, record, key
        self.indents: list[tuple[int, int]] = []  # column, record
        self.block = root
        self.key: str | None = None  # of the value that is awaited
        self.at = 0  # where that value starts
        self.bare = False  # whether its key stands without quotes
        self.assigned = False  # whether an equals sign stands between them
        self.line = 0  # where the line starts
        self.done = 0  # where the last value ended
        self.last = (
            -1,
            -1,
            -1,
            -1,
        )  # the last string: where it starts and ends, with and without its quotes

    def run(self, start: int, end: int, depth: int = 0, *, escaped: bool = False) -> None:
        text = self.text
        self.line = self.done = start
        self._begin_section(start)
        for match in (_ESCAPED if escaped else _TOKEN).finditer(text, start, end):
            at, stop = match.span()
            sign = text[at]
            if sign in "\"'`“\\":
                quote = text.find('"', at) - at + 1 if sign == "\\" else 1
                closed = stop - at >= 2 * quote and text[stop - 1] in "\"'`”"
                inner = (at + quote, stop - quote if closed else stop)
                self._read_string(at, inner)
                self.last = (at, stop, *inner)
                if depth < MAX_STRING_DEPTH and inner[1] - inner[0] > 4:
                    self._scan_string(inner, depth)
            elif sign == "\n":
                self._end_line(at, end)
            elif sign in ":=：":
                self._read_separator(at, stop, self.last if self._is_behind_string(at) else None)
            elif sign == "【":
                self._end_value(at)
                close = text.find("】", at, min(end, at + 40))
                if close > 0:
                    self._await_value(text[at + 1 : close], close + 1, bare=True, assigned=False)
            elif sign in "{[(":
                self._open_bracket(sign, at)
            elif self.open:
                self._close_bracket(_CLOSES[sign], at)
        self._end_value(end)

    def _is_behind_string(self, at: int) -> bool:
        """True if a string of the line ends right before a place."""
        return self.last[1] > self.line and not self.text[self.last[1] : at].strip(" \t")

    @property
    def record(self) -> int:
        return self.open[-1][1] if self.open else self.block

    def _scan_string(self, inner: tuple[int, int], depth: int) -> None:
        """Searches a string for pairs."""
        start, end = inner
        if self.text.find("=", start, end) < 0 and self.text.find(":", start, end) < 0:
            return
        escaped = self.text.find('\\"', start, end) >= 0
        part = _PairScanner(self.text, self.cells, self.cells.add_record(self.record))
        part.run(start, end, depth + 1, escaped=escaped)

    def _read_string(self, at: int, inner: tuple[int, int]) -> None:
        if self.key is not None:
            # A prefix may stand before the quote: `f`, `$`, `@`.
            between = self.text[self.at : at].strip(" \t\n")
            if len(between) <= 2 and (
                not between or between.isalpha() or between in ("$", "@", "$@")
            ):
                self._add_value(*inner, whole=True)
                if self.open or self.assigned or not self.bare:
                    self.key = None
                else:
                    self.key = None
                    self.done = inner[1] + 1
            elif self.open:
                self._end_value(at)
        elif self.open and self.open[-1][0] in "[(" and self.open[-1][2]:
            self.cells.add(self.open[-1][2], *inner, whole=True, record=self.record)

    def _add_value(self, start: int, end: int, *, whole: bool) -> None:
        assert self.key is not None
        form = self.bare and not self.assigned and not self.open
        self.cells.add(self.key, start, end, whole=whole, record=self.record, form=form)

    def _await_value(self, key: str, at: int, *, bare: bool, assigned: bool) -> None:
        self.key, self.at, self.bare, self.assigned = key, at, bare, assigned

    def _read_separator(self, at: int, stop: int, quoted: tuple[int, int, int, int] | None) -> None:
        text, sign = self.text, get_separator(self.text, at, stop)
        if not sign:
            return
        if quoted is not None:
            self.key = None
            self._await_value(text[quoted[2] : quoted[3]], stop, bare=False, assigned=sign == "=")
            return
        low = max(self.line, self.done, at - 80)
        before = text[low:at]
        if sign == "=":
            if not (named := _NAMED.search(before)):
                self.key = None
                return
            key, begin = _get_key(named[1]), low + named.start()
            # In `name: str = ...` the type is part of the key, and no value.
            annotated = self.key is not None and begin < self.at
        else:
            begin = low
            if before.rstrip()[-1:] in (")", "）") and (aside := _ASIDE.search(before)):
                before = before[: aside.start()]
            at = low + len(before)
            for bound in _KEY_BOUND.finditer(before.rstrip(" \t*_\"'`】")):
                begin = low + bound.end()
            key, annotated = text[begin:at].strip(_MARKS), False
        if not key or (
            sign == ":"
            and self.bare
            and self.key is not None
            and not self.open
            and not classify_key(key)
        ):
            return
        if not annotated:
            self._end_value(begin)
        if not self.open and not text[self.line : begin].strip(_MARKS):
            self._find_block(begin)
        self._await_value(key.lstrip("$@"), stop, bare=True, assigned=sign == "=")

    def _find_block(self, begin: int) -> None:
        """Finds the record of a line's first key by its indentation."""
        column = begin - self.line
        while self.indents and self.indents[-1][0] > column:
            self.indents.pop()
        item = "-" in self.text[self.line : begin]
        if self.indents and self.indents[-1][0] == column and not item:
            self.block = self.indents[-1][1]
            return
        if item and self.indents and self.indents[-1][0] == column:
            self.indents.pop()
        around = self.indents[-1][1] if self.indents else self.root
        key = self.parent_key if self.indents or column else ""
        self.block = (
            self.cells.add_record(around, key) if (item or column or not self.indents) else around
        )
        self.indents.append((column, self.block))

    parent_key = ""

    def _end_value(self, end: int) -> None:
        """Adds the awaited value, if it stands without quotes.

        It reaches as far as it can.
        """
        if self.key is None:
            return
        text, start = self.text, self.at
        while start < end and text[start] in " \t　*":
            start += 1
        if self.open:
            cut = _STOP.search(text, start, end)
        else:
            line = text.find("\n", start, end)
            end = end if line < 0 else line
            cut = _NEXT.search(text, start, end) if self.assigned else None
        stop = cut.start() if cut else end
        while stop > start and text[stop - 1] in " \t\r*`,;&":
            stop -= 1
        if start < stop:
            whole = self.assigned and not self.open
            self._add_value(start, stop, whole=whole)
            self.done = max(self.done, start)
        self.key = None

    def _end_line(self, at: int, end: int) -> None:
        text = self.text
        if self.key is not None:
            if not text[self.at : at].strip(" \t\r*|>-"):
                if not self.open and self.bare:
                    self.parent_key, self.key = self.key, None
            elif not self.open or self.bare:
                self._end_value(at)
        begin = at + 1
        # A paragraph behind a blank line ends what a broken document left open.
        if text[begin : begin + 1] in ("\n", "\r") and begin < end:
            following = text[begin : begin + 3].strip("\r\n")[:1]
            if following.isalpha() and (
                not self.open or self.open[0][0] != "{" or following.isupper()
            ):
                self.open.clear()
                self.key = None
            if following and following not in " \t":
                self.indents.clear()
                self.block, self.parent_key = self.cells.add_record(self.root), ""
        self.line = begin
        self._begin_section(begin)

    def _begin_section(self, begin: int) -> None:
        """Begins a record at a section header.

        Headers are those of TOML and of settings files.
        """
        text = self.text
        if text.startswith("[", begin):
            close = text.find("]", begin, begin + 80)
            if close > 0 and text[close + 1 : close + 2] in ("", "\n", "\r", " ", "]"):
                section = text[begin + 1 : close].strip("[]").rpartition(".")[2]
                self.indents.clear()
                self.block = self.cells.add_record(self.root, section)
                self.indents.append((0, self.block))

    def _open_bracket(self, sign: str, at: int) -> None:
        text, before = self.text, self.text[at - 1 : at]
        direct = self.key is not None and not text[self.at : at].strip(" \t\n")
        call = sign == "(" and (before.isalnum() or before == "_")
        labelled = (
            sign == "{" and self.key is None and self._is_behind_string(at)
        )  # variable "db_password" {
        starts = not text[self.line : at].strip(" \t")
        inside = labelled or call or self.open or before in ("=", "(", ",", "[", "{", "'", '"')
        if not (inside or (sign != "(" and (direct or starts))):
            return
        key = ""
        if call:
            named = _NAMED.search(text, max(self.line, at - 64), at)
            key = named[1] if named else ""
            if self.key is not None and self.bare and not self.assigned and not self.open:
                return
        elif direct:
            key = self.key or ""
        elif labelled:
            key = text[self.last[2] : self.last[3]]
        elif self.open:
            key = self.open[-1][2]  # an object in a list
        if direct or call:
            self.key = None
        if len(self.open) < _MAX_OPEN_BRACKETS:
            self._begin_record(sign, key, call=call)

    def _begin_record(self, sign: str, key: str, *, call: bool) -> None:
        """Begins the record of a bracket.

        A list, and the argument of a setter, belong to the record around.
        """
        if call and (setter := _SETTER.search(key)):
            self.open.append((sign, self.record, setter[1]))
            return
        record = self.record if sign == "[" else self.cells.add_record(self.record, key)
        self.open.append((sign, record, "" if call else key))

    def _close_bracket(self, sign: str, at: int) -> None:
        self._end_value(at)
        # No deeper: in broken text each bracket would cost a pass over all that are open.
        for depth in range(len(self.open) - 1, max(-1, len(self.open) - 20), -1):
            if self.open[depth][0] == sign:
                del self.open[depth:]
                return


def _get_key(name: str) -> str:
    """Returns the key in the target of an assignment.

    Examples are `patient.name` and `self.owner`; names of the language itself give "".
    """
    around, dot, last = name.rpartition(".")
    if last.startswith("__"):
        return ""
    return (
        f"{around.rpartition('.')[2]} {last}"
        if dot and not around.startswith(("self", "this"))
        else last
    )


def get_separator(text: str, at: int, stop: int) -> str:
    """Returns `:` or `=` if it separates a key and a value.

    Otherwise, in times, addresses and other operators, it returns "".
    """
    sign, before, after = text[at], text[at - 1 : at], text[stop : stop + 1]
    if sign == "=":
        return (
            ""
            if before in ("<", "+", "-", "*", "%", "~", "^", "&") or text[at - 1 : at] == "!"
            else "="
        )
    if text[stop - 1] == "=":
        return "="
    if (after.isdigit() and before.isdigit()) or after in (":", "/") or before == ":":
        return "" if not (after == "/" and not text.startswith("//", stop)) else ":"
    return ":"


_TAG = re.compile(
    r"<(/?)([A-Za-z_][\w:.\-]{0,60})((?:[^<>\"']|\"[^\"<>]{0,2000}+\"|'[^'<>]{0,2000}+'){0,200}+)>"
)
_ATTRIBUTE = re.compile(r"([\w:.\-]{1,60})\s?=\s?(?:\"([^\"<>]*+)\"|'([^'<>]*+)')")
_NAMING_ATTRIBUTES = ("name", "key", "id", "property")
"""Attributes that name the value or the text of their element."""
_PLIST_ELEMENTS = make_word_set("string integer real date data")
"""Elements of property lists behind an element `key`."""
_VOID_ELEMENTS = make_word_set(
    "br hr img input meta link col source track wbr area base embed param"
)


def read_tags(text: str, cells: KeyedValues) -> None:
    """Reads text-only elements, attributes, and inputs of forms."""
    if "</" not in text and "/>" not in text and "=" not in text:
        return
    stack: list[tuple[str, int]] = []
    root = cells.add_record(-1)
    last: tuple[str, int, int, str] | None = (
        None  # the last tag that opened, where its text starts, its record, its key
    )
    before = ""  # the text of an element `key`: it names the next element (property lists)
    for match in _TAG.finditer(text):
        closing, name, attributes = match.groups()
        plain = name.rpartition(":")[2]
        around = stack[-1][1] if stack else root
        if closing:
            if last and last[0] == name:
                place = _strip_range(text, last[1], match.start())
                cells.add(
                    last[3] or (before if plain in _PLIST_ELEMENTS else "") or plain,
                    *place,
                    whole=True,
                    record=last[2],
                )
                before = text[slice(*place)] if plain == "key" else ""
            for depth in range(len(stack) - 1, max(-1, len(stack) - 20), -1):
                if stack[depth][0] == name:
                    del stack[depth:]
                    break
            last = None
            continue
        if "=" in attributes:
            _read_attributes(match.start(3), attributes, cells, cells.add_record(around, plain))
        if attributes.endswith("/") or plain.lower() in _VOID_ELEMENTS:
            last = None
        else:
            named = next(
                (
                    attribute[2] or attribute[3]
                    for attribute in _ATTRIBUTE.finditer(attributes)
                    if attribute[1] in _NAMING_ATTRIBUTES
                ),
                "",
            )
            last = (name, match.end(), around, named or "")
            if len(stack) < _MAX_OPEN_BRACKETS:
                stack.append((name, cells.add_record(around, named or plain)))


def _read_attributes(offset: int, attributes: str, cells: KeyedValues, record: int) -> None:
    values = {}
    for match in _ATTRIBUTE.finditer(attributes):
        group = 2 if match[2] is not None else 3
        values[match[1].lower()] = (
            match[group],
            offset + match.start(group),
            offset + match.end(group),
        )
    around = cells.parents[record]
    for key in ("value", "content"):
        named = next((values[other] for other in _NAMING_ATTRIBUTES if other in values), None)
        if key in values and named:
            _, start, end = values.pop(key)
            cells.add_pair([named[0]], PairPart(start, end, "value", True, False), around)
            for other in _NAMING_ATTRIBUTES:
                values.pop(other, None)
            break
    else:
        if (
            "type" in values or "class" in values or "href" in values
        ):  # an element of a page, whose name is no person
            values.pop("name", None)
    for key, (_, start, end) in values.items():
        if key not in (
            "id",
            "for",
            "class",
            "style",
            "type",
            "src",
            "href",
            "placeholder",
            "label",
            "title",
            "role",
        ):
            cells.add(key.rpartition(":")[2], start, end, whole=True, record=record)


def _strip_range(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


_CARD = re.compile(
    r"^[ \t>]*(?:item\d{1,2}\.)?"
    r"(N|FN|ORG|TEL|EMAIL|ADR|LABEL|NICKNAME|BDAY|UID|ATTENDEE|ORGANIZER|CONTACT|LOCATION|X-[\w-]{1,30})"
    r"((?:;[^:\n\"]{0,80}(?:\"[^\"\n]{0,80}\")?){0,8}):(.*(?:\r?\n[ \t].*){0,8})$",
    re.MULTILINE,
)
_ALONE = re.compile(
    r"^[ \t>]*(?:item\d{1,2}\.)?(?:ADR[;:](?:[^;\n]{0,80};){4}|(?:ATTENDEE|ORGANIZER)[;][^:\n]{0,80}CN=)",
    re.MULTILINE,
)
"""A line that is one of a card without any others."""
_HOME = ("home address", "home address", "home address", "city", "city", "postcode", "")
"""The parts of a card's address: box, suite, street, town, region, code, country."""
_PIECES = re.compile(r"(?:[^;\\\r\n]|\\.|\r?\n[ \t])+")
_CARD_KEYS = {
    "FN": "full name",
    "TEL": "phone",
    "EMAIL": "email",
    "NICKNAME": "nickname",
    "BDAY": "birthday",
}
_ESCAPED_MARK = re.compile(r"\\.")
_PLACED = re.compile(
    r"(?<!\w)\d{1,5}[A-Za-z]?[ ](?!(?i:floor|stock|etage|hall|room|people|st\b|nd\b|rd\b|th\b))\w+[ ]\w"
    r"|(?!(?i:\w*(?:room|raum|saal|zimmer)|hall|halle|sal[ao]n?|salle|aula|building|floor|office|gate|desk|level|stage)\b)"
    r"\b\w{3,}\.?[ ]\d{1,4}[a-z]?\\?,"
    r"|(?i:stra(?:ss|ß)e|straat|gasse|platz|weg|allee)\.?[ ]\d|\bstr\.?[ ]\d"
    r"|(?i:\b(?:rue|via|calle|rua|ul\.|av\.|avenue))[ ]\S"  # codespell:ignore calle
)
"""The mark of an address, not a room, in a calendar entry's location."""
_CN = re.compile(r";CN=\"?([^\";:\n]{1,80})")


_PATIENT = re.compile(r"^PID\|([^\n]*)$", re.MULTILINE)
_FIELDS = {
    3: "mrn",
    5: "family name",
    7: "dob",
    11: "home address",
    13: "phone",
    14: "phone",
    19: "ssn",
}
"""The contents of the numbered fields of a patient's HL7 segment."""


def read_patients(text: str, cells: KeyedValues) -> None:
    """Reads the fields of patients in HL7."""
    for match in _PATIENT.finditer(text) if "PID|" in text else ():
        record, at = cells.add_record(-1, "patient"), match.start(1)
        for number, part in enumerate(match[1].split("|", 20)[:20], 1):
            if number in _FIELDS:
                begin = at
                for piece in part.split("^", 9)[: 1 if number == 3 else 9]:
                    cells.add(_FIELDS[number], begin, begin + len(piece), whole=True, record=record)
                    begin += len(piece) + 1
            at += len(part) + 1


def read_cards(text: str, cells: KeyedValues) -> None:
    """Reads vCards and iCalendar entries."""
    begin = text.find("BEGIN:V")
    if begin < 0 and not _ALONE.search(text):
        return
    record = cells.add_record(-1, "person")
    for match in _CARD.finditer(text, max(0, begin)):
        key, start, end = match[1], match.start(3), match.end(3)
        if match[3].endswith("\r"):
            end -= 1
        if named := _CN.search(match[2]):
            place = match.start(2)
            cells.add(
                "full name", place + named.start(1), place + named.end(1), whole=True, record=record
            )
        for name, first, last in _split_card_value(text, key, start, end):
            cells.add(name, first, last, whole=key not in ("TEL", "CONTACT"), record=record)


def _split_card_value(text: str, key: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yields the fields in the value of a card's line: name, first character, one past the last."""
    if key in _CARD_KEYS:
        has_scheme = key == "TEL" and text.startswith("tel:", start)
        yield _CARD_KEYS[key], start + 4 if has_scheme else start, end
    elif key == "N":
        for name in re.finditer(r"[^;\n]+", text[start:end]):
            if text.count(";", start, start + name.start()) > 2:  # titles stand behind the names
                break
            yield "family name", start + name.start(), start + name.end()
    elif key == "ORG":
        yield "employer", start, start + len(text[start:end].split(";")[0])
    elif key == "ADR":
        for piece in _PIECES.finditer(text, start, end):
            number = len(_ESCAPED_MARK.sub("", text[start : piece.start()]).split(";")) - 1
            if number < len(_HOME):
                yield _HOME[number], *_strip_range(text, *piece.span())
    elif key == "LABEL" or (key == "LOCATION" and _PLACED.search(text, start, end)):
        yield "home address", start, end
    elif key == "CONTACT":
        yield "contact person", start, end


_CALL = re.compile(
    r"""[(\[{,]\s{0,20}(["'`])(?P<key>[\w.:/\-]{2,64})\1\s{0,4},\s{0,20}(["'`])(?P<value>[^"'`\n]{4,200})\3"""
    r"""\s{0,20}[)\]};,]"""
    r"""|^[ \t]*+(?:[A-Za-z_][\w.\-]{0,24}[ \t]{1,4})?+"""
    r"""(?P<key2>(?=\w*[_.\-]|[A-Z]{4}|[a-z]+[A-Z])[A-Za-z_][\w.\-]{3,63})"""
    r"""[ \t]{1,8}(?P<mark>["']?)(?P<value2>[^\s"';=:]{5,100})(?P=mark);?[ \t]*+$""",
    re.MULTILINE,
)


def read_calls(text: str, cells: KeyedValues) -> None:
    """Reads passwords behind their names, without a separator.

    They are the second of two strings, `put("db.password", "...")`, or of two words.
    """
    record = cells.add_record(-1)
    for match in _CALL.finditer(text):
        group = "" if match["key"] else "2"
        key, value = match["key" + group], match["value" + group]
        if is_secret(key) and is_strong(value):
            start, end = match.span("value" + group)
            cells.cells.append(KeyedValue(start, end, "secret", key, True, record, paired=True))


_COMMAND = re.compile(
    r"""\\+(?P<key>[A-Za-z]{2,40})\*?(?P<option>(?:\s?\[[^\[\]\n]{0,80}\])?)(?=\s{0,2}\{)"""
    r"""(?P<values>(?:\s{0,4}\{(?:[^{}\\]|\\.){0,400}\}){1,6})"""
)
_BRACED = re.compile(r"\{((?:[^{}\\]|\\.)*)\}")
_BREAK = re.compile(r"\\{2,}\*?(?:\[[^\]\n]{0,20}\])?|\\(?:newline|and)(?![A-Za-z])")
_SETTERS = make_word_set("setkomavar newcommand renewcommand providecommand def")
"""Commands whose first value is the name of another command."""
_WHOSE = re.compile(r"^\\?(?:from|to|my|author|user|sender|cv|the)(?=[a-z]{3})")
_PARTS = {
    "name": ("first name", "last name"),
    "address": ("home address", "home address", "home address", "home address"),
    "location": ("home address",),
    "letter": ("recipient", "home address", "home address", "home address", "home address"),
    "signature": ("signed",),
    "date": ("",),
    "social": ("github username",),
}
"""The meaning of values, or lines, of commands whose names mean something else elsewhere."""
_SITES = make_word_set(
    "linkedin github gitlab twitter x mastodon skype telegram instagram orcid bluesky stackoverflow"
)


def read_commands(text: str, cells: KeyedValues) -> None:
    r"""Reads values of LaTeX commands.

    Examples are `\dateofbirth{...}`, `\name{...}{...}` and `\setkomavar{fromphone}{...}`.
    """
    record = -1
    for match in _COMMAND.finditer(text):
        places = [value.span(1) for value in _BRACED.finditer(text, *match.span("values"))]
        key = match["key"]
        if key in _SETTERS or (key == "begin" and text[slice(*places[0])] == "letter"):
            key, places = text[slice(*places[0])], places[1:]
        key = _WHOSE.sub("", key.lstrip("\\").lower())
        names = _PARTS.get(key, ("github username",) if key in _SITES else (key,))
        if not places or not any(map(classify_key, names)):
            continue
        record = cells.add_record(-1) if record < 0 else record
        lines = [line for place in places for line in _split_lines(text, *place)]
        if key == "name" and len(lines) == 1:
            names = ("full name",)
        for name, (start, end) in zip(
            names if len(names) > 1 else names * len(lines), lines, strict=False
        ):
            cells.add(name, start, end, whole=True, record=record)


def _split_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Splits the value of a command at its line breaks."""
    for match in _BREAK.finditer(text, start, end):
        yield _strip_range(text, start, match.start())
        start = match.end()
    yield _strip_range(text, start, end)


def read_pairs(text: str, cells: KeyedValues) -> None:
    """Reads all pairs of a text.

    They are found by quotes and brackets, by lines, by tags, and in cards.
    """
    _PairScanner(text, cells, cells.add_record(-1)).run(0, len(text))
    if "<" in text and ">" in text:
        read_tags(text, cells)
    if "\\" in text and "{" in text:
        read_commands(text, cells)
    read_patients(text, cells)
    read_cards(text, cells)
