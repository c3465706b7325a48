"""Tables: reads cells with the header of their column.

Formats are CSV, TSV, Markdown, aligned columns and SQL.

In: a text. Out: `KeyedValues`, a record per row.
Not here: the meaning of headers (`field_names`), the forms of cells (`values`), pairs of keys and
values
(`parsers`).
"""

import re
from collections.abc import Iterator

from textveil.detect.keyvalue.field_names import MAX_KEY_CHARACTERS, classify_key, get_pair_part
from textveil.detect.keyvalue.parsers import KeyedValues

_CSV = {
    sign: re.compile(
        rf'[ ]*+(?:"((?:[^"\n]|"")*+)"[ ]*+|([^{re.escape(sign)}\n]*+))(?:{re.escape(sign)}|(?=\n)|\Z)'
    )
    for sign in ",;\t|"
} | {" ": re.compile(r'(?:"((?:[^"\n]|"")*+)"|([^ \n]*+))(?:[ ]++|(?=\n)|\Z)')}
_GAP = re.compile(r"(?:^|(?<=  )|(?<=\t))[ \t]*((?:[^\s]|[ ](?=\S))+)", re.MULTILINE)
_CODE = re.compile(
    r"\s*(?:insert|select|create|update|from|where|values|def|import|return|function|const|let|var|print|class)\b",
    re.IGNORECASE,
)
_NO_HEADER = re.compile(r"[:{}=<>]|\.\s|[.?!]$|\(.*,.*\)")
_RULE = re.compile(r"[\s|:+\-=─━┼│]+")
_FIELDS = re.compile(r"#fields:?(?P<sign>[ \t])", re.IGNORECASE)
"""The prefix of the column names in logs of the W3C's extended format."""
_MAX_COLUMNS = 200
"""The most columns of a table."""

CellPlaces = list[tuple[int, int]]


def read_tables(text: str, cells: KeyedValues) -> None:
    """Reads tables of all forms.

    A header is a line with a known key in it, followed by a line with as many columns.
    """
    lines = _split_lines(text)
    number = 0
    while number < len(lines) - 1:
        count = _read_table(text, lines, number, cells)
        number += count or 1


def _split_lines(text: str) -> list[tuple[int, int]]:
    lines, start = [], 0
    for part in text.split("\n"):
        lines.append((start, start + len(part.rstrip("\r"))))
        start += len(part) + 1
    return lines


def _read_table(text: str, lines: list[tuple[int, int]], number: int, cells: KeyedValues) -> int:
    """Reads the table whose header is a line.

    Returns its number of lines, or 0 if it is no table.
    """
    start, end = lines[number]
    if end - start < 3 or end - start > 4000:
        return 0
    if fields := _FIELDS.match(text, start, end):
        lines[number] = fields.end(), end
        return _read_columns(text, lines, number, fields["sign"], cells)
    for sign in "\t|;,":
        sentence = sign == "," and text[end - 1] in ".?!:"
        if (
            0 < text.count(sign, start, end) <= _MAX_COLUMNS
            and not sentence
            and (rows := _read_columns(text, lines, number, sign, cells))
        ):
            return rows
    if text.find("   ", start, end) > 0:
        return _read_columns(text, lines, number, "", cells)
    return 0


def _read_columns(
    text: str, lines: list[tuple[int, int]], number: int, sign: str, cells: KeyedValues
) -> int:
    head = _split_columns(text, *lines[number], sign)
    names = [text[a:b].strip(" *_`#[]\"'") for a, b in head]
    if not (_are_names(names, text[slice(*lines[number])], sign) and _has_known_key(names)):
        return 0
    if not sign and any(_is_key_like(text, place) for place in head):
        return 0
    root, count, missed, last = cells.add_record(-1), 0, 0, 0
    for place in range(number + 1, len(lines)):
        start, end = lines[place]
        if _RULE.fullmatch(text, start, end):
            last = place
            continue
        if start == end:
            break
        if sign == " " and text[start] == "#":
            continue
        if sign and not text.count(sign, start, end):
            missed += 1
            if missed > 1 or not count:
                break
            continue
        row = _split_columns(text, start, end, sign)
        if not _is_row(len(row), len(names), sign):
            break
        record = cells.add_record(root)
        for name, (a, b) in _pair_cells(head, names, row, sign):
            cells.add(name, a, b, whole=True, record=record)
        count, last, missed = count + 1, place, 0
    return last - number + 1 if count else 0


def _are_names(names: list[str], line: str, sign: str) -> bool:
    """True if the cells of a line may be names of columns."""
    if _CODE.match(line) or (sign in (",", ";") and not _is_header(line, names)):
        return False
    if len(names) < 2 or any(len(name) > MAX_KEY_CHARACTERS for name in names):
        return False
    return not sign or sum(0 < len(name.split()) <= 4 for name in names) >= len(names) - 2


def _has_known_key(names: list[str]) -> bool:
    """True if a column name announces a kind, or two make pairs."""
    return any(map(classify_key, names)) or {"key", "value"} <= {*map(get_pair_part, names)}


def _is_row(count: int, columns: int, sign: str) -> bool:
    """True if a line has about as many cells as its table."""
    if not sign:
        return count >= 2
    return abs(count - columns) <= (1 if sign == "|" else max(1, columns // 3))


def _is_header(line: str, names: list[str]) -> bool:
    """True if a line with commas is a row of column names.

    Sentences and pieces of code are none.
    """
    return (
        not _NO_HEADER.search(line)
        and not line.startswith("  ")
        and sum(map(bool, names)) > len(names) // 2
        and bool(names[-1])
        and all(len(name.split()) <= 5 for name in names)
    )


def _is_key_like(text: str, place: tuple[int, int]) -> bool:
    return text[place[1] - 1] in ":=" or ": " in text[place[0] : place[1]]


def _pair_cells(
    head: CellPlaces, names: list[str], row: CellPlaces, sign: str
) -> Iterator[tuple[str, tuple[int, int]]]:
    if sign or len(head) == len(row):
        yield from zip(names, row, strict=False)


def _split_columns(text: str, start: int, end: int, sign: str) -> CellPlaces:
    """Splits a line into columns."""
    if not sign:
        return [match.span(1) for match in _GAP.finditer(text, start, end)]
    cut: CellPlaces = []
    at = start
    while at <= end and len(cut) <= _MAX_COLUMNS:
        match = _CSV[sign].match(text, at, end)
        if match is None:  # behind a quote stands more: take it as it is
            close = text.find(sign, at, end)
            close = end if close < 0 else close
            cut.append((at, close))
            at = close + 1
            continue
        group = 1 if match[1] is not None else 2
        a, b = match.span(group)
        while b > a and text[b - 1] in " \t":
            b -= 1
        cut.append((a, b))
        if match.end() == at or match.end() >= end:
            if match.end() == end and match.end() > at and text[end - 1] == sign:
                cut.append((end, end))
            break
        at = match.end()
    if sign == "|" and cut and cut[0][0] == cut[0][1]:
        cut = cut[1:]
    return cut


_INSERT = re.compile(
    r"\bINSERT\s{1,8}(?:OR\s\w{1,10}\s)?INTO\s{1,8}[\w.\"`\[\]]{1,80}\s{0,8}\(([^()]{1,4000}+)\)\s{0,8}VALUES\s{0,8}(?=\()",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"N?'((?:[^'\\]|''|\\.){0,2000}+)'|\"((?:[^\"\\\n]|\\.)*+)\"|([()])|([^\s,()'\";]+)|(;)|,"
)


def read_inserts(text: str, cells: KeyedValues) -> None:
    """Reads rows that SQL inserts into named columns."""
    end = 0
    for match in _INSERT.finditer(text):
        if match.start() < end:
            continue
        names = [name.strip(' \t\r\n"`[]') for name in match[1].split(",")]
        end = _read_rows(text, match.end(), names, cells)


def _read_rows(text: str, at: int, names: list[str], cells: KeyedValues) -> int:
    root = cells.add_record(-1)
    record, column, depth = root, 0, 0
    for item in _ITEM.finditer(text, at):
        sign = item[0]
        if sign == ";" or (depth == 0 and item[3] is None and sign != ","):
            return item.start()
        if sign == "(":
            depth += 1
            if depth == 1:
                record, column = cells.add_record(root), 0
        elif sign == ")":
            depth -= 1
        elif sign == ",":
            column += depth == 1
        elif depth == 1 and column < len(names):
            group = next(group for group in (1, 2, 4) if item[group] is not None)
            cells.add(names[column], *item.span(group), whole=True, record=record)
    return len(text)
