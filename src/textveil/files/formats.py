"""Formats of files: where the texts stand in .txt, .jsonl, .csv, .tsv and .parquet, plain or in .gz.

In: a file and which field of it. Out: its texts in order, the same file with other texts in their places; whole rows.
Not here: what is done to the texts (`pipeline`), and the run over many files and processes (`corpus`).
"""

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import repeat, zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from textveil.errors import ConfigError, InputError
from textveil.files.streams import MARK, decode, is_text, json_line

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet")
DELIMITERS = {"csv": ",", "tsv": "\t"}
USUAL = "text"
"""The field that is taken when none is named."""

_NAME = re.compile(rf"\.({'|'.join(FORMATS)})(\.gz)?", re.IGNORECASE)
_MARK = MARK.decode()
_PARQUET_ROWS = 4096


class Row(NamedTuple):
    """One row of a file: its text, and what stands before and behind it.

    Attributes:
        before: copied as it is.
        text: None where the row has none; it stays without.
        after: copied as it is.
        spell: how a text is written there.
    """

    before: str
    text: str | None
    after: str
    spell: Callable[[str], str] = str


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file of texts.

    Attributes:
        path: the file.
        format: one of `FORMATS`.
        packed: whether it is compressed by gzip.
        field: which field or column has the texts; None for .txt, and for a file without rows.
        whole: whether a .txt is one text, and not one per line.
        query: which field or column says what each text is for; None where nothing does.
        guessed: whether the field was taken because no other has strings; every row must then bear it out.
    """

    path: Path
    format: str
    packed: bool = False
    field: str | None = None
    whole: bool = False
    query: str | None = None
    guessed: bool = False


def suffix(path: str | Path) -> tuple[str, bool] | None:
    """The format that a name ends in and whether it is packed, ("csv", True) for a.csv.gz; None for other names."""
    endings = "".join(Path(path).suffixes[-2:])
    found = _NAME.fullmatch(endings) or _NAME.fullmatch(Path(path).suffix)
    if found is None or (found[1].lower() == "parquet" and found[2]):
        return None
    return found[1].lower(), found[2] is not None


def into_folder(arguments: Sequence[str], output: str | None, *, asked: bool = False) -> str | None:
    """The folder that files go into, or None for a text or a file whose lines go to a file or a standard stream.

    Args:
        arguments: what was given to privatize.
        output: where the results go.
        asked: whether an option was given that only files into a folder have.

    Raises:
        ConfigError: the arguments and the output do not go together.
    """
    named = output is not None and output != "-" and (output.endswith(os.sep) or os.path.isdir(output))
    rows = [each for each in arguments if os.path.isfile(each) and suffix(each) not in (None, ("txt", False))]
    if not (named or asked or rows or len(arguments) > 1):
        return None
    if not arguments or "-" in arguments or any(is_text(each) for each in arguments):
        if len(arguments) > 1:
            raise ConfigError(_SEVERAL_DASHED if any(map(_dashed, arguments[1:])) else _SEVERAL)
        is_folder = "; --output is a folder" if named else ""
        raise ConfigError(f"--field, --column, --jobs, --resume and a folder as --output are for files{is_folder}")
    if output is None or output == "-" or not (named or _can_be_folder(output)):
        what = "--field, --jobs and --resume need"
        if rows or len(arguments) > 1:
            what = "a file that is not plain lines needs" if len(arguments) == 1 else "several files need"
        raise ConfigError(f"{what} --output FOLDER, a folder or a new name that ends in {os.sep}")
    return output


_SEVERAL = "textveil privatize takes one argument; put a text of several words in quotes; only files may be several"
_SEVERAL_DASHED = "textveil privatize takes one argument after --; options first, then -- and the text"


def _dashed(argument: str) -> bool:
    return argument.startswith("-") and argument != "-"


def _can_be_folder(output: str) -> bool:
    """Whether a new folder of that name is what was meant, and not a file."""
    return not os.path.exists(output) and suffix(output) is None


def source(path: Path, *, field: str | None = None, query: str | None = None, whole: bool = False) -> Source:
    """A file as its name says, and the field of it that has the texts: the named one, `text`, or the only one.

    `query` names the field that says what each text is for.

    A field `text` is taken or refused, whatever it holds. Where there is none, a field is taken if no other can have
    strings and its name is a plain one; a first line that holds a text is none.

    Raises:
        ConfigError: the name ends in no known format, or the field is not there or not clear.
        InputError: the file cannot be read.
    """
    found = suffix(path)
    if found is None:
        raise ConfigError(
            f"an input file must end in .{', .'.join(FORMATS)}, or in .gz behind one of them (not .parquet)"
        )
    made = Source(path=path, format=found[0], packed=found[1], field=field, whole=whole)
    if made.format == "txt":
        if field is not None or query is not None:
            raise ConfigError("a .txt has no fields: leave out --field and --query")
        return made
    if whole:
        raise ConfigError(f"--whole is for .txt; a .{made.format} has a text per row")
    found_fields = _fields(made)
    if found_fields is None:
        return made
    chosen = _chosen(made, found_fields)
    asked = None if query is None else _chosen(replace(made, field=query), found_fields)
    if asked == chosen:
        raise ConfigError("--query must name another field than that of the texts")
    return replace(made, field=chosen, query=asked, guessed=chosen not in (field, USUAL))


def queries(of: Source) -> Iterator[str]:
    """What each text is for, one per row, in the order of `texts`; "" where a row does not say it, or none does.

    Raises:
        InputError: as `texts`.
    """
    if of.query is None:
        yield from repeat("")
    else:
        yield from (query or "" for query in texts(replace(of, field=of.query, guessed=False)))


def texts(of: Source) -> Iterator[str | None]:
    """The texts in order, one per row, None where a row has none.

    Raises:
        InputError: a row is not what the format wants; it says which one, and nothing of what is in it.
    """
    if of.format == "parquet":
        yield from _parquet_texts(of)
        return
    with _opened(of) as stream:
        for piece in _pieces(of, stream):
            if isinstance(piece, Row):
                yield piece.text


def records(
    path: Path, *, format: str | None = None, names: Sequence[str] = (), quoted: bool = True
) -> Iterator[dict[str, Any]]:
    """The rows of a file as they stand there, by the names of their fields; a line of a .txt has the one field `text`.

    Args:
        path: the file; .gz at its end says that it is packed.
        format: one of `FORMATS`, or "json" for a file that is one object as a whole; None: as its name says.
        names: the columns of a .csv or .tsv whose first line is a row.
        quoted: whether a quote in a .csv or .tsv means something; else every delimiter parts two fields.

    Raises:
        ConfigError: the name ends in no known format.
        InputError: as `texts`.
    """
    found = suffix(path)
    format = format or (
        found[0] if found else "json" if re.search(r"\.json(\.gz)?$", path.name, re.IGNORECASE) else None
    )
    if format is None:
        raise ConfigError(f"a file of rows must end in .{', .'.join(FORMATS)} or .json, or in .gz behind one of them")
    of = Source(path=path, format=format, packed=path.suffix.lower() == ".gz")
    if format == "parquet":
        with _parquet(of) as file, _reading():
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                yield from batch.to_pylist()
        return
    with _opened(of) as stream:
        if format == "json":
            yield _object(decode(_read(stream.read)).removeprefix(_MARK), "the file")
            return
        lines = ((number, line.removeprefix(_MARK) if number == 1 else line) for number, line in _lines(stream))
        if format in DELIMITERS:
            yield from _rows(of, lines, list(names), quoted)
            return
        for number, line in lines:
            if format == "txt":
                yield {USUAL: _ended(line)[0]}
            elif not _is_blank(of, line):
                yield _object(line, f"line {number}")


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{what} must be a JSON object")
    return found


def _rows(of: Source, lines: Iterator[tuple[int, str]], names: list[str], quoted: bool) -> Iterator[dict[str, Any]]:
    delimiter = DELIMITERS[of.format]
    for number, line in lines:
        if _is_blank(of, line):
            continue
        if quoted:
            record, spans = _record(number, line, lines, delimiter)
            values = [_value(record, *span) for span in spans]
        else:
            values = _ended(line)[0].split(delimiter)
        if not names:
            names = values
        elif len(values) != len(names):
            raise InputError(f"line {number} must have {len(names)} columns as the others have, and has {len(values)}")
        else:
            yield dict(zip(names, values, strict=True))


def rewrite(of: Source, released: Iterable[str | None], target: BinaryIO) -> None:
    """Write the file again with other texts in the places of its own, and all else as it was.

    Args:
        of: the file.
        released: what `texts` gave, row by row, with other texts.
        target: where the new file goes.

    Raises:
        InputError: the file has other rows than were released.
    """
    replacements = iter(released)
    if of.format == "parquet":
        _rewrite_parquet(of, replacements, target)
    elif of.packed:
        with gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0) as packed:  # no name and no time in it
            _rewrite_lines(of, replacements, cast(BinaryIO, packed))
    else:
        _rewrite_lines(of, replacements, target)
    if next(replacements, replacements) is not replacements:
        raise InputError("the input must not change during a run, and has lost rows")


def same_around(of: Source, other: Path) -> bool:
    """Whether another file has the same rows, and the same everywhere but in its texts."""
    pair = (of, replace(of, path=other))
    if of.format == "parquet":
        return _same_tables(*pair)
    with _opened(pair[0]) as first, _opened(pair[1]) as second:
        pieces = zip_longest(_pieces(pair[0], first), _pieces(pair[1], second))
        return all(_around(one) == _around(two) for one, two in pieces)


def _around(piece: str | Row | None) -> object:
    return (piece.before, piece.text is None, piece.after) if isinstance(piece, Row) else piece


def _rewrite_lines(of: Source, replacements: Iterator[str | None], target: BinaryIO) -> None:
    with _opened(of) as stream:
        for piece in _pieces(of, stream):
            if isinstance(piece, Row):
                text = _next(replacements, piece.text is not None)
                piece = piece.before + ("" if text is None else piece.spell(text)) + piece.after
            target.write(piece.encode())


def _next(replacements: Iterator[str | None], there: bool) -> str | None:
    """The next text; it is None where the row has none, and only there."""
    for text in replacements:
        if (text is not None) == there:
            return text
        raise InputError("the input must not change during a run, and has other rows than before")
    raise InputError("the input must not change during a run, and has more rows than before")


# ---- which field -----------------------------------------------------------------------------------------------------


class _Holds(Enum):
    """What a field can have in it."""

    STRINGS = "strings"
    DOUBT = "strings, but not as texts stand in the format"
    OTHERS = "numbers and the like"


def _fields(of: Source) -> list[tuple[str, _Holds]] | None:
    """The fields with what they can have in them; None where the file has no row to tell. Rows of .jsonl may differ."""
    if of.format == "parquet":
        with _parquet(of) as file:
            return [(each.name, _holds(each.type)) for each in file.schema_arrow]
    with _opened(of) as stream:
        lines = _lines(stream)
        for number, line in lines:
            line = line.removeprefix(_MARK) if number == 1 else line
            if _is_blank(of, line):
                continue
            if of.format == "jsonl":
                return [(str(name), _member_holds(line[start])) for name, _, start, _ in _members(line, number)]
            record, fields = _record(number, line, lines, DELIMITERS[of.format])
            return [(_value(record, *span), _Holds.STRINGS) for span in fields]
    return None


def _is_blank(of: Source, line: str) -> bool:
    """Whether a line is no row; to csv.DictReader too a line of spaces is one."""
    return not line.strip("\r\n" if of.format in DELIMITERS else " \t\r\n")


def _chosen(of: Source, fields: list[tuple[str, _Holds]]) -> str:
    option = "--field" if of.format == "jsonl" else "--column"
    wanted = of.field if of.field is not None else USUAL
    named = [holds for name, holds in fields if name == wanted]
    if of.format == "jsonl" and (of.field is not None or named):
        return wanted  # each row is checked when it is read
    if of.field is not None or named:
        kind = "one column of strings" if of.format == "parquet" else "one column in the first line"
        if len(named) != 1:
            raise ConfigError(f"{option} must name {kind}, and the file has {len(named)} of that name")
        if named[0] is not _Holds.STRINGS:
            raise ConfigError(
                f"{option} must name {kind}, and the one of that name is of another type (of numbers, encoded as a "
                "dictionary, nested, ...)"
            )
        return wanted
    if of.format in DELIMITERS:  # of a file without a first line of names the only name is a text
        raise ConfigError(
            f"{option} must say where the texts are: the first line names no column {USUAL}; a .csv has commas, a .tsv "
            "has tabs, and the first line of both has the names"
        )
    found = [(name, holds) for name, holds in fields if holds is not _Holds.OTHERS]
    if len(found) != 1 or found[0][1] is not _Holds.STRINGS:
        raise ConfigError(
            f"{option} must say where the texts are: there is no field {USUAL}, and not exactly one field with strings "
            f"({len(found)} to choose from)"
        )
    return found[0][0]


def is_plain(name: str) -> bool:
    """Whether a field's name looks like one, and not like a text."""
    return re.fullmatch(r"[\w.:/-]{1,60}", name) is not None


# ---- lines -----------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(of: Source) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked."""
    try:
        stream = cast(IO[bytes], gzip.open(of.path, "rb") if of.packed else open(of.path, "rb"))  # noqa: SIM115 - below
    except OSError as error:
        raise InputError(f"the input file cannot be read: {error.strerror}") from None
    with stream:
        yield stream


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1, and with their ends."""
    offset = 0
    for number, line in enumerate(iter(partial(_read, stream.readline), b""), 1):
        yield number, decode(line, offset)
        offset += len(line)


def _read(read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError("a .gz must be a whole gzip file, and this one is damaged or cut off") from None
    except OSError as error:
        raise InputError(f"the input file cannot be read: {error.strerror}") from None


def _pieces(of: Source, stream: IO[bytes]) -> Iterator[str | Row]:
    """A file of lines in pieces: rows, and strings between them that are copied as they are."""
    if of.whole:
        content = decode(_read(stream.read))
        yield (mark := _MARK if content.startswith(_MARK) else "")
        yield Row("", content.removeprefix(mark), "")
        return
    lines = _lines(stream)
    first = next(lines, None)
    if first is None:
        return
    mark = _MARK if first[1].startswith(_MARK) else ""
    yield mark
    rows = {"txt": _plain, "jsonl": _objects}.get(of.format, _records)
    yield from rows(of, _again((1, first[1].removeprefix(mark)), lines))


def _again(first: tuple[int, str], lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from lines


def _ended(line: str) -> tuple[str, str]:
    r"""A line without its end, and its end: "\n", "\r\n", or nothing."""
    body = line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line
    return body, line[len(body) :]


def _plain(of: Source, lines: Iterator[tuple[int, str]]) -> Iterator[str | Row]:
    for _, line in lines:
        yield Row("", *_ended(line)) if line else ""  # only a mark without a line leaves an empty one


# ---- JSON lines ------------------------------------------------------------------------------------------------------

# Values of other fields are walked over, not kept; numbers stay strings, so that none is too long.
_DECODER = json.JSONDecoder(object_pairs_hook=bool, parse_int=bool, parse_float=bool, parse_constant=bool)


def _objects(of: Source, lines: Iterator[tuple[int, str]]) -> Iterator[str | Row]:
    for number, line in lines:
        if _is_blank(of, line):
            yield line
            continue
        members = _members(line, number)
        others = [(name, line[start]) for name, _, start, _ in members if name != of.field]
        if of.guessed and any(name == USUAL or _member_holds(mark) is not _Holds.OTHERS for name, mark in others):
            raise ConfigError(f"--field must say where the texts are: in line {number} another field has strings too")
        found = [(value, start, end) for name, value, start, end in members if name == of.field]
        if len(found) != 1:
            raise InputError(f"line {number} must have the field once, and has it {len(found)} times")
        value, start, end = found[0]
        if value is None:
            yield Row(line, None, "")
        elif isinstance(value, str) and not _SURROGATE.search(value):
            yield Row(line[:start], value, line[end:], _json_string)
        else:
            raise InputError(f"the field in line {number} must be a string of valid Unicode, or null")


def _member_holds(mark: str) -> _Holds:
    """What a value can have in it, by its first character."""
    return _Holds.STRINGS if mark == '"' else _Holds.DOUBT if mark in "[{" else _Holds.OTHERS


_SURROGATE = re.compile("[\ud800-\udfff]")


def _members(line: str, number: int) -> list[tuple[Any, Any, int, int]]:
    """Names and values of an object on one line, and where each value stands."""
    try:
        return list(_walk(line))
    except (ValueError, RecursionError):
        pass
    raise InputError(f"line {number} must be a JSON object")  # out here, because the other error holds the line


def _walk(line: str) -> Iterator[tuple[Any, Any, int, int]]:
    at = _behind("{", line, 0)
    more = line.startswith('"', at)
    while more:
        name, end = _DECODER.raw_decode(line, at)
        if not isinstance(name, str):
            raise ValueError
        start = _behind(":", line, end)
        value, at = _DECODER.raw_decode(line, start)
        yield name, value, start, at
        more = _MARKS[","].match(line, at) is not None
        if more:
            at = _behind(",", line, at)
    if _behind("}", line, at) != len(line):
        raise ValueError


def _behind(mark: str, line: str, at: int) -> int:
    """Where a line goes on behind a mark, with spaces on both sides."""
    found = _MARKS[mark].match(line, at)
    if found is None:
        raise ValueError
    return found.end()


_MARKS = {mark: re.compile(rf"[ \t\r\n]*{re.escape(mark)}[ \t\r\n]*") for mark in "{:,}"}


def _json_string(text: str) -> str:
    return json_line(text).removesuffix("\n")


# ---- tables with delimiters ------------------------------------------------------------------------------------------


def _records(of: Source, lines: Iterator[tuple[int, str]]) -> Iterator[str | Row]:
    delimiter = DELIMITERS[of.format]
    width = place = -1
    for number, line in lines:
        if _is_blank(of, line):
            yield line
            continue
        record, fields = _record(number, line, lines, delimiter)
        header = width < 0
        if header:
            width = len(fields)
            place = [_value(record, *span) for span in fields].index(of.field or "")
        if len(fields) != width:
            raise InputError(f"line {number} must have {width} columns as the first line has, and has {len(fields)}")
        if of.format == "tsv" and any(_spans(record, *each) for i, each in enumerate(fields) if i != place):
            raise InputError(
                f"line {number} must have no tab and no line end inside the quotes of a column that is copied: to most "
                "writers of .tsv a quote means nothing, and a text could be taken for a part of that column"
            )
        if header:
            yield record
            continue
        start, end = fields[place]
        quoted = record.startswith('"', start)
        spell = _quoted if quoted else partial(_quoted_if_needed, delimiter=delimiter, alone=width == 1)
        yield Row(record[:start], _value(record, start, end), record[end:], spell)


def _record(
    number: int, line: str, lines: Iterator[tuple[int, str]], delimiter: str
) -> tuple[str, list[tuple[int, int]]]:
    """One record, which may go on over several lines, and where its fields stand."""
    record, fields, at = line, [], 0
    bare = _BARE[delimiter]
    while True:
        if record.startswith('"', at):
            end = at + 1
            while not record.startswith('"', end) or record.startswith('""', end):
                if record.startswith('""', end):
                    end += 2
                elif (following := record.find('"', end)) >= 0:
                    end = following
                else:
                    end = len(record)
                    record += next(lines, (0, ""))[1]
                    if end == len(record):
                        raise InputError(f"a field that begins with a quote must end with one; see line {number}")
            end += 1
        else:
            end = cast(re.Match[str], bare.match(record, at)).end()
        fields.append((at, end))
        if not record.startswith(delimiter, end):
            break
        at = end + 1
    if record[end:] not in ("", "\n", "\r\n"):
        raise InputError(
            f"line {number} must have a delimiter or a line end (\\n or \\r\\n) behind every field; "
            "a quote at the start of a field ends with its closing quote"
        )
    return record, fields


_BARE = {delimiter: re.compile(rf"[^{delimiter}\r\n]*") for delimiter in DELIMITERS.values()}


def _spans(record: str, start: int, end: int) -> bool:
    r"""Whether a field has quotes with a tab or a line end between."""
    return record.startswith('"', start) and re.search(r"[\t\r\n]", record[start:end]) is not None


def _value(record: str, start: int, end: int) -> str:
    return record[start + 1 : end - 1].replace('""', '"') if record.startswith('"', start) else record[start:end]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _quoted_if_needed(text: str, *, delimiter: str, alone: bool) -> str:
    """A field; the only one of a record is quoted when it is empty, because an empty line is no row."""
    return _quoted(text) if re.search(rf'["\r\n{delimiter}]', text) or (alone and not text) else text


# ---- parquet ---------------------------------------------------------------------------------------------------------


@contextmanager
def _reading() -> Iterator[None]:
    """Turn what pyarrow says of a damaged file into one line."""
    import pyarrow as pa

    try:
        yield
        return
    except PermissionError as error:
        failure = f"the input file cannot be read: {error.strerror}"
    except (pa.ArrowException, OSError):
        failure = "a .parquet must be a whole parquet file, and this one is not, or is damaged"
    except UnicodeDecodeError:
        failure = "the strings of a .parquet must be UTF-8, and these are not"
    raise InputError(failure)  # out here, because the other errors may hold what is in the file


@contextmanager
def _parquet(of: Source) -> "Iterator[pq.ParquetFile]":
    import pyarrow.parquet as pq

    with _reading():
        file = pq.ParquetFile(of.path)
    with file:
        yield file


def _holds(kind: Any) -> _Holds:
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _Holds.STRINGS
    if pa.types.is_nested(kind) and kind.num_fields:
        inner = {_holds(kind.field(i).type) for i in range(kind.num_fields)}
        return _Holds.OTHERS if inner == {_Holds.OTHERS} else _Holds.DOUBT
    plain = ("null", "boolean", "integer", "floating", "decimal", "temporal")
    return _Holds.OTHERS if any(getattr(pa.types, f"is_{each}")(kind) for each in plain) else _Holds.DOUBT


def _parquet_texts(of: Source) -> Iterator[str | None]:
    with _parquet(of) as file, _reading():
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=[of.field]):
            # by its name, because the field b of a struct a is called a.b too
            yield from batch.column(batch.schema.get_field_index(of.field)).to_pylist()


def _same_tables(*pair: Source) -> bool:
    with _parquet(pair[0]) as one, _parquet(pair[1]) as two, _reading():
        if one.num_row_groups != two.num_row_groups or not one.schema_arrow.equals(two.schema_arrow):
            return False
        return all(
            _same_column(*columns, is_text=field.name == pair[0].field)
            for number in range(one.num_row_groups)
            for field, *columns in zip(
                one.schema_arrow, one.read_row_group(number).columns, two.read_row_group(number).columns, strict=True
            )
        )


def _same_column(one: Any, two: Any, *, is_text: bool) -> bool:
    if is_text:
        one, two = one.is_null(), two.is_null()
    return bool(one.equals(two) or repr(one.to_pylist()) == repr(two.to_pylist()))  # to equals() no NaN is like another


def _rewrite_parquet(of: Source, replacements: Iterator[str | None], target: BinaryIO) -> None:
    """One row group at a time, with the schema, the groups and the compression of the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _parquet(of) as file:
        schema = file.schema_arrow
        place = schema.get_field_index(of.field)
        with pq.ParquetWriter(target, schema, compression=_codecs(file)) as writer:
            for number in range(file.num_row_groups):
                with _reading():
                    group = file.read_row_group(number)
                texts = [_next(replacements, there) for there in group.column(place).is_valid().to_pylist()]
                column = pa.array(texts, schema.field(place).type)
                writer.write_table(
                    group.set_column(place, schema.field(place), column), row_group_size=max(1, group.num_rows)
                )


def _codecs(file: "pq.ParquetFile") -> dict[str, str] | str:
    """The compression of each column, by its path."""
    if not file.num_row_groups:
        return "snappy"
    group = file.metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {each.path_in_schema: each.compression.replace("UNCOMPRESSED", "NONE") for each in columns}
