"""Checks files: the places of what is private in them, without a word of it.

In: text files of any kind, in overlapping pieces; a baseline. Out: places that nobody has accepted.
Not here: what is found (`textveil.detect`), and how places are reported (`cli.check`).
"""

import codecs
import json
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from io import TextIOWrapper
from itertools import tee
from pathlib import Path
from typing import NamedTuple, TextIO

from textveil.errors import ConfigError, InputError, quote_file
from textveil.files import formats, text_streams
from textveil.pipeline import Protector
from textveil.protect import Finding

PIECE_CHARACTERS = 50_000
"""Characters of a file that are read at once."""

OVERLAP_CHARACTERS = 8_000
"""Characters that a piece has in common with the next, so that no key is cut in two."""

CONTEXT_CHARACTERS = 100
"""Characters on each side of a finding, within its lines, by which a baseline knows it again."""

MAX_PIECE_CHARACTERS = 1_000_000
"""Characters to which a piece grows where there is no space to end it, as in encoded data."""

HEAD_CHARACTERS = 4_000
"""Most characters of a first line that is put before each piece, because it may name columns."""

FIRST_BYTES = 8_192
"""Bytes in which a null byte shows that a file is no text."""

VERSION = 1


@dataclass(frozen=True, kw_only=True, order=True)
class FilePlace:
    """The place of a finding in a file, without its words.

    Attributes:
        file: its path as it was given.
        line: its first line, from 1.
        column: its first character there, from 1.
        end_line: its last line.
        end_column: one past its last character there.
        type: type of the value: "EMAIL".
        context: 8 bits of a digest of the text around it, in which every finding is left out.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    type: str
    context: str = field(repr=False)

    def to_json(self) -> dict[str, object]:
        """Returns file, positions and type."""
        return {name: value for name, value in vars(self).items() if name != "context"}


# ---- files in pieces -----------------------------------------------------------------------------


class Piece(NamedTuple):
    """A piece of a file, `start` characters and `lines` line ends behind its beginning.

    What begins in its last `overlap` characters stands in the next piece, too. The first `head`
    characters of its text are not its own: they are the first line of a table.
    """

    file: str
    text: str
    start: int
    lines: int
    column: int
    overlap: int
    head: int = 0


def list_files(
    paths: Iterable[str], skip: Callable[[str], object] = lambda _: None
) -> Iterator[str]:
    """Yields files, and the files of folders but for hidden ones.

    Args:
        paths: of files and folders.
        skip: is called with the name of each file or folder that is hidden.

    Raises:
        InputError: a path does not exist.
    """
    for path in paths:
        if os.path.isdir(path):
            for folder, folders, names in os.walk(path):
                for name in filter(_is_hidden, (*folders, *names)):
                    skip(name)
                folders[:] = sorted(name for name in folders if not _is_hidden(name))
                files = (
                    os.path.normpath(os.path.join(folder, name))
                    for name in sorted(names)
                    if not _is_hidden(name)
                )
                yield from filter(os.path.isfile, files)
        elif os.path.exists(path):
            yield path
        else:
            raise InputError(f"no such file, {quote_file(path)}{text_streams.suggest_file(path)}")


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def read_pieces(path: str) -> Iterator[Piece]:
    """Yields the text of a file in overlapping pieces; none if it is binary or compressed.

    Bytes that are no UTF-8 are read as Latin-1, so that they are checked too.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:  # once: what a pipe has given does not come again
            encoding = _find_encoding(path, file.peek(FIRST_BYTES)[:FIRST_BYTES])
            if encoding is not None:
                stream = TextIOWrapper(
                    file, encoding=encoding, errors="textveil.latin1", newline=""
                )
                yield from _cut(path, stream)
    except OSError as error:
        raise InputError(f"{quote_file(path)} cannot be read: {error.strerror}") from None


def _cut(path: str, stream: TextIO) -> Iterator[Piece]:
    """Cuts a text into overlapping pieces."""
    text, head, start, lines, column = "", "", 0, 0, 1
    following = stream.read(PIECE_CHARACTERS)
    while True:
        text += following
        following = stream.read(PIECE_CHARACTERS)
        # A part of encoded data could not be decoded.
        while following and not _may_end(text):
            text, following = text + following, stream.read(PIECE_CHARACTERS)
        overlap = min(OVERLAP_CHARACTERS, len(text) - 1) if following else 0
        # From a whole line on, so that a row of a table is one.
        line_end = text.find("\n", len(text) - overlap, len(text) - overlap // 2)
        overlap = overlap if line_end < 0 else len(text) - line_end - 1
        before = head if column == 1 else ""
        yield Piece(path, before + text, start, lines, column, overlap, len(before))
        head = head if start else _find_head(text)
        cut = len(text) - overlap
        before, text = text[:cut], text[cut:]
        start, lines = start + cut, lines + before.count("\n")
        column = len(before) - before.rfind("\n") if "\n" in before else column + cut
        if not following:
            return


def _may_end(text: str) -> bool:
    return len(text) >= MAX_PIECE_CHARACTERS or " " in text[-OVERLAP_CHARACTERS:]


def _find_head(text: str) -> str:
    """Returns the first line of a text, if it may name the columns of a table."""
    line, end, _ = text[:HEAD_CHARACTERS].partition("\n")
    return line + end if end and any(sign in line for sign in "\t|;,") else ""


def _find_encoding(path: str, first: bytes) -> str | None:
    """Finds the encoding of a file by its first bytes; None if it is no text."""
    if first.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return None if b"\0" in first or formats.is_packed(path) else "utf-8-sig"


def _decode_latin1(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("textveil.latin1", _decode_latin1)


# ---- places --------------------------------------------------------------------------------------


def find_places(
    protector: Protector,
    files: Iterable[str],
    *,
    skip: Callable[[str], object] = lambda _: None,
    read: Callable[[str], object] = lambda _: None,
) -> Iterator[tuple[str, list[FilePlace]]]:
    """Yields each text file with the places of what a protector would hide.

    Args:
        protector: finds it.
        files: of any kind.
        skip: is called with each file that is binary or compressed.
        read: is called with each piece of text.

    Raises:
        InputError: a file cannot be read. DetectorError: a detector failed.
    """

    def yield_pieces() -> Iterator[Piece]:
        for path in files:
            piece = None
            for piece in read_pieces(path):
                read(piece.text)
                yield piece
            if piece is None:
                skip(path)

    pieces, searched = tee(yield_pieces())
    results = protector.find_many(piece.text for piece in searched)
    places, earlier, file = list[FilePlace](), list[tuple[int, int]](), ""
    for piece, findings in zip(pieces, results, strict=True):
        if piece.file != file:
            if file:
                yield file, sorted(places)
            places, earlier, file = [], [], piece.file
        # one at the rim may be cut off: the next piece has it whole
        overlap, rim = len(piece.text) - piece.overlap, len(piece.text) - piece.overlap // 2
        hidden = [
            f
            for f in findings
            if f.hidden and f.start >= piece.head and not overlap <= f.start < f.end > rim
        ]
        shift = piece.start - piece.head
        spans = [(shift + finding.start, shift + finding.end) for finding in hidden]
        places += [
            place
            for place, (start, end) in zip(_locate(piece, hidden), spans, strict=True)
            if not any(start < other_end and other < end for other, other_end in earlier)
        ]
        earlier = spans
    if file:
        yield file, sorted(places)


def _locate(piece: Piece, findings: Sequence[Finding]) -> list[FilePlace]:
    """Returns the places of findings in a piece of a file."""
    text = piece.text
    ends = (i + 1 for i, character in enumerate(text) if character == "\n")
    starts = [piece.head, *(start for start in ends if start > piece.head)]

    def locate(offset: int) -> tuple[int, int]:
        number = bisect_right(starts, offset) - 1
        shift = piece.column if number == 0 else 1
        return piece.lines + number + 1, offset - starts[number] + shift

    places = []
    for finding in findings:
        line, column = locate(finding.start)
        end_line, end_column = locate(finding.end)
        places.append(
            FilePlace(
                file=piece.file,
                line=line,
                column=column,
                end_line=end_line,
                end_column=end_column,
                type=finding.type,
                context=_digest_context(text, finding, findings),
            )
        )
    return places


def _digest_context(text: str, finding: Finding, findings: Sequence[Finding]) -> str:
    """Returns 8 bits of a digest of the lines around a finding, without any finding.

    No more: that is too little to confirm a guess at what else stands there.
    """
    begin, end = text.rfind("\n", 0, finding.start) + 1, text.find("\n", finding.end)
    end = len(text) if end < 0 else end
    left, right, offset = "", "", begin
    for other in findings:
        if other.end <= begin or other.start >= end:
            continue
        left, offset = f"{left}{text[offset : max(offset, other.start)]}", max(offset, other.end)
        if other is finding:
            left, right = "", left
        left += f"<{other.type}>"
    left, right = right, left + text[offset:end]
    # Alike for all of a short line, so that together they tell no more than one of them.
    nearby = left[-CONTEXT_CHARACTERS:] + right[: CONTEXT_CHARACTERS + len(finding.type)]
    words = " ".join(nearby.split())
    return sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:2]


# ---- accepted places -----------------------------------------------------------------------------


class Baseline:
    """A file of accepted places: how many of a type and context each file has.

    Nothing in it follows from a value.

    Args:
        path: of the baseline; names of files in it are relative to its folder.
        is_new: whether there may be none yet.

    Raises:
        ConfigError: there is none, or it is not a baseline.
    """

    def __init__(self, path: str, *, is_new: bool = False) -> None:
        self._path = path
        self._counts: dict[str, Counter[str]] = {}
        if is_new and not os.path.exists(path):
            return
        wrong = f"--baseline must be a file that --accept wrote, and {quote_file(path)} is not"
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            is_known = content["version"] == VERSION
            self._counts = {name: Counter(counts) for name, counts in content["files"].items()}
        except FileNotFoundError:
            raise ConfigError(
                f"there is no baseline {quote_file(path)}; --accept writes one"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError(wrong) from None
        numbers = [n for counts in self._counts.values() for n in counts.values()]
        if not is_known or not all(type(n) is int and n > 0 for n in numbers):
            raise ConfigError(wrong)

    def drop_accepted(self, places: Sequence[FilePlace]) -> list[FilePlace]:
        """Returns the places of a file that are not accepted.

        Of several alike, the first are taken for the accepted ones.
        """
        left = Counter[str]()
        if places:
            left.update(self._counts.get(self._spell_name(places[0].file), {}))
        new_places = []
        for place in places:
            key = f"{place.type} {place.context}"
            if left[key] > 0:
                left[key] -= 1
            else:
                new_places.append(place)
        return new_places

    def accept(self, file: str, places: Sequence[FilePlace]) -> None:
        """Accepts exactly these places of a file."""
        counts = Counter(f"{place.type} {place.context}" for place in places)
        name = self._spell_name(file)
        self._counts.pop(name, None)
        if counts:
            self._counts[name] = counts

    def write(self) -> None:
        """Writes the baseline; files that are gone are left out.

        Raises:
            OutputError: it cannot be written.
        """
        folder = os.path.dirname(self._path)
        present = {
            name: dict(sorted(counts.items()))
            for name, counts in sorted(self._counts.items())
            if os.path.exists(os.path.join(folder, name))
        }
        content = {"version": VERSION, "files": present}
        with text_streams.open_output(self._path, option="--baseline") as sink:
            sink.write(json.dumps(content, indent=1) + "\n")

    def _spell_name(self, file: str) -> str:
        name = os.path.relpath(file, os.path.dirname(self._path) or os.curdir)
        return name.replace(os.sep, "/")
