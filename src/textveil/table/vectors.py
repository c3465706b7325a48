"""Word vectors, read from published files.

In: a file, the folder of a model, or a hub id. Out: `Vectors`, a stream of blocks of words and
rows.
Not here: how a table is stored (`store`), and how a model's embeddings are read
(`input_embeddings`).

The format is recognized by content. Malformed input is refused with the file's name, the place and
the reason; on request such words are skipped and counted instead. Memory holds one block and the
words seen so far.
"""

import gzip
import lzma
import math
import os
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Literal, cast, get_args

import numpy as np
from tokenizers import Tokenizer

from textveil.errors import ConfigError, TableError
from textveil.randomness import Flags, Floats
from textveil.table.embedding import UNFIT_CHARACTERS
from textveil.table.hub import HUB_ID
from textveil.table.input_embeddings import convert_to_float32, map_tensors, read_input_layer
from textveil.table.wordpiece import list_whole_words

Format = Literal["glove", "vec", "word2vec", "numpy", "safetensors", "model"]
Unit = Literal["word", "wordpiece"]

FORMATS: tuple[Format, ...] = get_args(Format)
CHUNK = 1 << 22
"""Bytes read at once; they become one block."""
MAX_LINE_BYTES = 1 << 20
"""Largest number of bytes in a line or a word.

Also the bytes used to recognize a format.
"""
MAX_WIDTH = 1 << 16
"""Largest number of values in a row."""
SAMPLED_LINES = 100
"""Lines that give a row's length, in text without a header."""

_HEADER = re.compile(rb"(\d{1,18}) (\d{1,18})[ \t\r]*\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_ENDING = re.compile(r"(\.(txt|vec|bin|npy|npz|safetensors))?(\.(gz|zip))?$", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class WordBlock:
    """Some words of a source with their rows, float32 [n, d].

    `read` is the number of bytes of the source read up to here. The number of a word is its line,
    its place in the vocabulary, or the byte where it begins; `unit` says which. `faults` are the
    entries in between that could not be read: reasons by such numbers.
    """

    words: list[str]
    rows: Floats
    numbers: Sequence[int]
    unit: str
    read: int
    faults: dict[int, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class DroppedWords:
    """Words that were not taken from a source, counted while reading."""

    source: str
    skip_broken: bool = False
    broken: int = 0
    duplicates: int = 0

    def count_fault(self, place: str, reason: str) -> None:
        """Counts a word that cannot be taken, or raises `TableError`.

        It raises unless such words are skipped.
        """
        if not self.skip_broken:
            raise self.build_error(
                f"{place} {reason}; --skip-broken leaves out and counts such words"
            )
        self.broken += 1

    def build_error(self, reason: str) -> TableError:
        """Returns an error that names the source."""
        return TableError(f"{self.source}: {reason}")


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """An opened source of vectors; its blocks can be read once.

    Attributes:
        name: of the file or model, without suffixes.
        file: the source.
        format: the format in which it is read.
        total: its size in bytes.
        blocks: distinct, non-empty words with finite rows.
        left_out: complete after the last block.
        tokenizer: for the pieces of a model, the tokenizer that cuts words into them; None where
            words are whole.
    """

    name: str
    file: str
    format: Format
    total: int
    blocks: Iterator[WordBlock] = field(repr=False)
    left_out: DroppedWords
    tokenizer: Tokenizer | None = field(default=None, repr=False)


@contextmanager
def open_vectors(
    source: str,
    *,
    format: Format | None = None,
    vocabulary: str | None = None,
    member: str | None = None,
    limit: int | None = None,
    skip_broken: bool = False,
    zero_rows: bool = False,
    unit: Unit | None = None,
) -> Iterator[Vectors]:
    """Opens a source of vectors.

    Args:
        source: a file, the folder of a transformers model, or a hub id (owner/name).
        format: the format in which to read it; None recognizes it by content. "glove" is text
            without a header, "vec" text with one (word2vec text, fastText), "word2vec" the binary
            format, "numpy" .npy or .npz.
        vocabulary: a file of words, one per line in the order of the rows, for formats without
            words.
        member: the file of a .zip, array of an .npz or tensor of a .safetensors, if there is more
            than one.
        limit: the largest number of words to take, from the first on.
        skip_broken: leave out words that cannot be taken.
        zero_rows: whether a row may be zero: allowed for metric euclidean, not for chord.
        unit: of a model: all pieces of its tokenizer ("wordpiece"), or those that are whole words
            ("word"); None for the pieces. All other sources hold words.

    Raises:
        ConfigError: the options do not match the source.
        TableError: the source is missing or malformed; also while the blocks are read.
    """
    if format is not None and format not in FORMATS:
        raise ConfigError(f"--format must be one of {', '.join(FORMATS)}, got {format!r}")
    if limit is not None and limit < 2:
        raise ConfigError(f"--limit must be at least 2, got {limit}")
    if unit not in (None, *get_args(Unit)):
        raise ConfigError(f"--unit must be word or wordpiece, got {unit!r}")
    left_out = DroppedWords(source=source, skip_broken=skip_broken)
    with ExitStack() as stack:
        # Not around the yield: errors of the caller's block are not about the source.
        with _refuse_damaged(left_out):
            opened = _read(source, format, vocabulary, member, unit, left_out, stack)
        recognized, total, blocks, tokenizer = opened
        if tokenizer is not None and limit is not None:
            raise ConfigError(
                "--limit leaves out pieces that the model's tokenizer needs: leave it out, or take "
                "whole words with --unit word"
            )
        name = os.path.basename(os.path.abspath(source))
        yield Vectors(
            name=UNFIT_CHARACTERS.sub(
                "?", name if recognized == "model" else _ENDING.sub("", name)
            ),
            file=UNFIT_CHARACTERS.sub("?", name if os.path.exists(source) else source),
            format=recognized,
            total=total,
            blocks=_filter_sound(blocks, left_out, limit, zero_rows),
            left_out=left_out,
            tokenizer=tokenizer,
        )


def _read(
    source: str,
    format: Format | None,
    vocabulary: str | None,
    member: str | None,
    unit: Unit | None,
    left_out: DroppedWords,
    stack: ExitStack,
) -> tuple[Format, int, Iterator[WordBlock], Tokenizer | None]:
    """Finds a source's format, size in bytes, unfiltered blocks, and tokenizer of pieces."""
    path = Path(source)
    if _is_model(path, source, format):
        if format not in (None, "model") or vocabulary is not None or member is not None:
            raise ConfigError(
                f"{source} is read as a model: leave out --vocabulary, --member and any other "
                "--format"
            )
        return "model", *_read_model(source, unit or "wordpiece", left_out)
    if unit == "wordpiece":
        raise ConfigError(
            f"--unit wordpiece must go with a model, and {source} is something else: leave it out"
        )
    if not path.is_file():
        problem = "it is not a file" if path.exists() else "no such file"
        raise left_out.build_error(
            f"{problem}; give a file, the folder of a model, or a hub id (owner/name)"
        )
    if format == "model":
        raise ConfigError(
            f"{source} is a file; --format model is for the folder or the hub id of a model"
        )
    return *_read_file(path, format, vocabulary, member, left_out, stack), None


def _read_file(
    path: Path,
    format: Format | None,
    vocabulary: str | None,
    member: str | None,
    left_out: DroppedWords,
    stack: ExitStack,
) -> tuple[Format, int, Iterator[WordBlock]]:
    packed = _open_archive(path, left_out, stack)
    if packed is not None and _holds_arrays(packed, member):
        return "numpy", *_read_npz(packed, vocabulary, member, left_out, stack)
    stream, tell = _unpack(path, packed, member, left_out, stack)
    head = stream.read(MAX_LINE_BYTES)
    recognized = format or _recognize(head, left_out)
    if recognized == "safetensors":
        if packed is not None or isinstance(stream, gzip.GzipFile):
            raise left_out.build_error(
                "a packed .safetensors cannot be read in parts; unpack it first"
            )
        return recognized, *_read_safetensors(path, vocabulary, member, left_out)
    if member is not None and packed is None:
        raise ConfigError(
            f"{left_out.source} is read as {recognized}, which has no members: leave --member out"
        )
    if recognized == "numpy":
        stream, _ = _unpack(path, packed, member, left_out, stack)  # again, from its beginning
        return recognized, *_read_npy(
            stream, lambda count: _read_words(vocabulary, count, left_out), left_out
        )
    if vocabulary is not None:
        raise ConfigError(
            f"{left_out.source} is read as {recognized}, which has its own words: leave "
            "--vocabulary out"
        )
    chunks = chain([head], iter(lambda: stream.read(CHUNK), b""))
    read = _read_binary if recognized == "word2vec" else _read_text
    return recognized, path.stat().st_size, read(chunks, recognized != "glove", tell, left_out)


def _is_model(path: Path, source: str, format: Format | None) -> bool:
    """Says whether a source is a model's folder or hub id."""
    is_id = format == "model" or HUB_ID.fullmatch(source) is not None
    return path.is_dir() or (is_id and not path.exists() and not _is_file_name(source))


def _is_file_name(source: str) -> bool:
    """Says whether a name looks like a file's, existing or not.

    No hub is asked for such a name.
    """
    path = (
        "\\" in source
        or source.startswith((".", "~", "/"))
        or os.path.isdir(source.partition("/")[0])
    )
    return path or _ENDING.sub("", source) != source


_REFUSED = {
    # zip, gzip, and tar, whose mark comes after 257 bytes
    re.compile(rb"PK\x03\x04|\x1f\x8b|.{257}ustar", re.DOTALL): (
        "it is an archive in an archive, or an unknown kind of archive; unpack it first"
    ),
    re.compile(rb"\xba\x16\x4f\x2f"): (
        "it is a fastText model (.bin); give the vectors (.vec) instead"
    ),
    # how pickles of protocols 2 to 5 begin
    re.compile(rb"\x80[\x02-\x05]"): (
        "it holds pickled Python objects, which are never loaded; save them as .npy or .safetensors"
    ),
}
"""Beginnings of files that are never read, and the reasons."""


def _recognize(head: bytes, left_out: DroppedWords) -> Format:
    """Recognizes a file's format by its beginning."""
    if not head:
        raise left_out.build_error("it is empty")
    if head.startswith(b"\x93NUMPY"):
        return "numpy"
    # A safetensors file begins with the length of its JSON header in 8 bytes.
    if head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") < 1 << 30:
        return "safetensors"
    for beginning, reason in _REFUSED.items():
        if beginning.match(head):
            raise left_out.build_error(reason)
    return _recognize_lines(head, left_out)


def _recognize_lines(head: bytes, left_out: DroppedWords) -> Format:
    """Recognizes the format of a file that begins with lines."""
    if header := _HEADER.match(head.removeprefix(b"\xef\xbb\xbf")):
        after = head[header.end() :]
        text = isinstance(_parse_line(after.partition(b"\n")[0], int(header[2])), tuple)
        return "vec" if text or not _CONTROL.search(after[:4096]) else "word2vec"
    first = head.partition(b"\n")[0]
    if not _CONTROL.search(first) and _find_width(head) > 0:
        return "glove"
    _refuse_tabs(first, left_out)
    raise left_out.build_error(
        f"its format is not recognized; give it with --format: {', '.join(FORMATS)}"
    )


# ---- requirements for all sources ----------------------------------------------------------------


def _filter_sound(
    blocks: Iterator[WordBlock], left_out: DroppedWords, limit: int | None, zero_rows: bool
) -> Iterator[WordBlock]:
    """Yields the blocks without repeated words or unfit ones.

    The first of repeated words wins; unfit words are those that no table can hold.
    """
    unique_words: set[str] = set()
    with _refuse_damaged(left_out):
        for block in blocks:
            faults, sound = _find_faults(block, zero_rows)
            new_places, repeated = _find_new(block.words, sound, unique_words, limit)
            full = len(unique_words) == limit
            for number in sorted(faults):
                if not full or number < block.numbers[new_places[-1]]:  # later faults do not matter
                    left_out.count_fault(f"{block.unit} {number}", faults[number])
            left_out.duplicates += repeated
            if len(new_places) < len(block.words):
                block = replace(
                    block,
                    words=[block.words[i] for i in new_places],
                    rows=block.rows[new_places],
                    numbers=[block.numbers[i] for i in new_places],
                )
            yield block
            if full:
                return
    if len(unique_words) < 2:
        raise left_out.build_error(
            f"a table needs at least two words, got {len(unique_words)} that can be taken"
        )


def _find_faults(block: WordBlock, zero_rows: bool) -> tuple[dict[int, str], list[int]]:
    """Finds the first fault of each word of a block.

    Also returns the places of the words without one.
    """
    faults, sound = {**block.faults}, np.ones(len(block.words), bool)
    for reason, bad in _find_flaws(block, zero_rows):
        faults.update((block.numbers[i], reason) for i in np.flatnonzero(sound & bad).tolist())
        sound &= ~bad
    return faults, np.flatnonzero(sound).tolist()


def _find_new(
    words: Sequence[str], places: Sequence[int], unique_words: set[str], limit: int | None
) -> tuple[list[int], int]:
    """Finds the places of new words, up to the limit.

    Also counts the repeated words among them.
    """
    new_places: list[int] = []
    repeated = 0
    for i in places:
        before = len(unique_words)
        unique_words.add(words[i])
        if len(unique_words) > before:
            new_places.append(i)
        else:
            repeated += 1
        if len(unique_words) == limit:
            break
    return new_places, repeated


def _find_flaws(block: WordBlock, zero_rows: bool) -> Iterator[tuple[str, Flags]]:
    """Yields each fault, and the words of a block that have it."""
    # NaN and infinity survive the maximum, so one number per row tells every flaw of numbers.
    size = np.abs(block.rows).max(axis=1, initial=0)
    yield "holds NaN, infinity or a number too large for float32", ~np.isfinite(size)
    if not zero_rows:
        yield "has a zero row, which has no direction (metric euclidean can hold it)", size == 0
    if not all(map(str.strip, block.words)):
        yield "has an empty or blank word", np.array([not word.strip() for word in block.words])
    if UNFIT_CHARACTERS.search("".join(block.words)):
        unfit = np.array([UNFIT_CHARACTERS.search(word) is not None for word in block.words])
        yield (
            (
                "has a word with a line break or another control character, or that is not valid "
                "Unicode"
            ),
            unfit,
        )


@contextmanager
def _refuse_damaged(left_out: DroppedWords) -> Iterator[None]:
    """Turns errors of libraries about a damaged file into one line.

    The line names the file.
    """
    from safetensors import SafetensorError

    try:
        yield
    except (
        OSError,
        EOFError,
        zlib.error,
        lzma.LZMAError,
        zipfile.BadZipFile,
        RuntimeError,
        SafetensorError,
    ) as error:
        reason = getattr(error, "strerror", None) or "it is damaged or cut short"
        raise TableError(f"cannot read {left_out.source}: {reason}") from error


# ---- bytes ---------------------------------------------------------------------------------------


def _open_archive(path: Path, left_out: DroppedWords, stack: ExitStack) -> zipfile.ZipFile | None:
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return None
    packed = stack.enter_context(zipfile.ZipFile(path))
    # Bit 0 of a member's flags says that it is encrypted.
    if any(info.flag_bits & 1 for info in packed.infolist()):
        raise left_out.build_error("it is encrypted; unpack it first")
    return packed


def _unpack(
    path: Path,
    packed: zipfile.ZipFile | None,
    member: str | None,
    left_out: DroppedWords,
    stack: ExitStack,
) -> tuple[IO[bytes], Callable[[], int]]:
    """Opens a file's unpacked bytes.

    Also returns a function that gives the number of bytes read of the file.
    """
    if packed is not None:
        names = [info.filename for info in packed.infolist() if not info.is_dir()]
        # torch.save writes a zip with a data.pkl in it.
        if any(name.endswith(".pkl") for name in names):
            raise left_out.build_error(
                "it holds pickled Python objects, which are never loaded; give the folder of the "
                "model"
            )
        info = packed.getinfo(_choose(names, member, left_out))
        inside = stack.enter_context(packed.open(info))
        whole, size = max(1, info.file_size), path.stat().st_size
        return inside, lambda: inside.tell() * size // whole
    file = stack.enter_context(path.open("rb"))
    magic = file.read(2)
    file.seek(0)
    plain = magic != b"\x1f\x8b"
    return file if plain else cast(
        "IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=file))
    ), file.tell


def _choose(names: Sequence[str], member: str | None, left_out: DroppedWords) -> str:
    """Returns the requested member, or the only one."""
    if member in names:
        return str(member)
    if member is None and len(names) == 1:
        return names[0]
    listed = ", ".join(sorted(names)[:8]) + (", ..." if len(names) > 8 else "")
    if not names:
        raise left_out.build_error("it holds no two-dimensional array of numbers")
    wanted = "holds several" if member is None else f"does not hold {member!r}"
    raise left_out.build_error(f"it {wanted}; choose with --member: {listed}")


def _read_words(vocabulary: str | None, count: int, left_out: DroppedWords) -> list[str]:
    """Reads the words of a vocabulary file.

    One too many if there are more than `count`.
    """
    if vocabulary is None:
        raise ConfigError(
            f"{left_out.source} holds rows without words: give --vocabulary FILE, one word per line"
        )
    if not Path(vocabulary).is_file():
        raise TableError(
            f"{vocabulary}: {'it is not a file' if Path(vocabulary).exists() else 'no such file'}"
        )
    source_faults = DroppedWords(source=vocabulary)
    with ExitStack() as stack, _refuse_damaged(source_faults):
        path = Path(vocabulary)
        stream, _ = _unpack(
            path, _open_archive(path, source_faults, stack), None, source_faults, stack
        )
        # One line too many tells that there are more words, without reading all of a wrong file.
        raw = b"".join(islice(iter(lambda: stream.readline(MAX_LINE_BYTES), b""), count + 1))
    content = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise source_faults.build_error(
            f"it must be UTF-8; byte {error.start} (counted from 0) is not"
        ) from None
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


# ---- text: GloVe, word2vec, fastText -------------------------------------------------------------


def _read_text(
    chunks: Iterable[bytes], header: bool, tell: Callable[[], int], left_out: DroppedWords
) -> Iterator[WordBlock]:
    """Reads lines of a word and its numbers.

    A word may contain spaces, as the last d fields are the numbers.
    """
    declared, width, line = None, 0, 1
    for content in _split_lines(chunks, left_out):
        if line == 1:
            content = content.removeprefix(b"\xef\xbb\xbf")
            first, _, after = content.partition(b"\n")
            if header:
                declared, width = _read_header(first + b"\n", left_out)
                content, line = after, 2
                if not after:
                    continue
            else:
                width = _find_width(content)
                if not width:
                    _refuse_tabs(first, left_out)
                    raise left_out.build_error(
                        "each line must hold a word and numbers, separated by single spaces"
                    )
        count = content.count(b"\n") + 1
        words, rows, numbers, faults = _parse(content, line, width)
        yield WordBlock(
            words=words, rows=rows, numbers=numbers, unit="line", read=tell(), faults=faults
        )
        line += count
    if declared is not None and declared != line - 2:
        raise left_out.build_error(
            f"its header says {declared:,} words, and it holds {line - 2:,}; it may be cut short"
        )


def _split_lines(chunks: Iterable[bytes], left_out: DroppedWords) -> Iterator[bytes]:
    """Yields whole lines, many at once, without the last line end."""
    remainder = b""
    for chunk in chunks:
        content, newline, remainder = (remainder + chunk).rpartition(b"\n")
        if newline:
            yield content
        if len(remainder) > MAX_LINE_BYTES:
            raise left_out.build_error(
                f"a line is longer than {MAX_LINE_BYTES:,} bytes; it is not a text of words and "
                "numbers"
            )
    if remainder:
        raise left_out.build_error(
            "its last line has no line end, so it may be cut short; if it is complete, add a line "
            "end"
        )


def _read_header(line: bytes, left_out: DroppedWords) -> tuple[int, int]:
    """Reads V and d from a header."""
    header = _HEADER.match(line)
    if header is None or not 1 <= int(header[2]) <= MAX_WIDTH:
        raise left_out.build_error(
            "line 1 must be a header: the number of words, and of the numbers of each (1 to 65,536)"
        )
    return int(header[1]), int(header[2])


def _find_width(content: bytes) -> int:
    """Returns the usual number of values after the word.

    That of most of the first lines.
    """
    lines = content.split(b"\n", SAMPLED_LINES)[:SAMPLED_LINES]
    # The most common number: a word that ends with a number makes its line look longer.
    widths = Counter(_count_numbers(line) for line in lines if line)
    return widths.most_common(1)[0][0] if widths else 0


def _refuse_tabs(line: bytes, left_out: DroppedWords) -> None:
    if re.search(rb"\t[-+.\d]", line):
        raise left_out.build_error("it has tabs between words and numbers; use single spaces")


def _count_numbers(line: bytes) -> int:
    """Counts the numbers after the word of a line."""
    fields = line.decode(errors="replace").rstrip(" \t\r").split(" ")[1:]
    numbers = 0
    while numbers < len(fields) and _is_number(fields[-1 - numbers]):
        numbers += 1
    return numbers if numbers <= MAX_WIDTH else 0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse(
    content: bytes, line: int, width: int
) -> tuple[list[str], Floats, Sequence[int], dict[int, str]]:
    """Parses the words and rows of some lines, and the others' faults.

    Line numbers start at `line`.
    """
    with warnings.catch_warnings():
        # about numbers that are infinite in float32, and input of empty lines
        warnings.simplefilter("ignore")
        try:
            # All lines in one call, if no word has a space and no line has a fault.
            parts = [text_line.partition(" ") for text_line in content.decode().split("\n")]
            rows = _parse_numbers([tail for _, _, tail in parts])
            if rows.shape == (len(parts), width):
                return [word for word, _, _ in parts], rows, range(line, line + len(parts)), {}
        except ValueError:  # a word with a space, or a fault: go line by line
            pass
        words, row_parts, numbers, faults = [], [], [], {}
        for number, text_line in enumerate(content.split(b"\n"), line):
            parsed = _parse_line(text_line, width)
            if isinstance(parsed, str):
                faults[number] = parsed
            else:
                words.append(parsed[0])
                row_parts.append(parsed[1])
                numbers.append(number)
    return (
        words,
        np.concatenate(row_parts) if row_parts else np.empty((0, width), np.float32),
        numbers,
        faults,
    )


def _parse_line(line: bytes, width: int) -> tuple[str, Floats] | str:
    """Parses a line's word and row [1, d], or returns its fault."""
    try:
        text = line.decode().rstrip(" \t\r")
    except UnicodeDecodeError:
        return "is not UTF-8"
    word, *fields = text.rsplit(" ", width)
    if len(fields) < width:
        return f"must hold a word and {width} numbers, got {len(fields)}"
    # Numbers in excess are left at the end of the word.
    if " " in word and _is_number(word.rpartition(" ")[2]):
        return f"must hold a word and {width} numbers, got more"
    if word != word.strip(" "):
        return "has a word that begins or ends with a space"
    try:
        return word, _parse_numbers([" ".join(fields)])
    except ValueError:
        return "holds a value that is not a number"


def _parse_numbers(lines: list[str]) -> Floats:
    """Parses numbers separated by single spaces.

    By far most of the work, done in one call.
    """
    numbers: Floats = np.loadtxt(
        [line.rstrip(" \t\r") for line in lines], np.float32, comments=None, delimiter=" ", ndmin=2
    )
    return numbers


# ---- word2vec's binary format --------------------------------------------------------------------


def _read_binary(
    chunks: Iterable[bytes], header: bool, tell: Callable[[], int], left_out: DroppedWords
) -> Iterator[WordBlock]:
    """Reads word2vec's binary format: a header, then words and numbers.

    Each word is followed by a space and its numbers in float32; some writers add a line end after
    each.
    """
    source = iter(chunks)
    buffer = next(source, b"")
    count, width = _read_header(buffer[: buffer.find(b"\n") + 1], left_out)
    begins, at, done = 0, buffer.find(b"\n") + 1, 0  # where the buffer begins in the file
    while done < count:
        words, rows, places, end = _read_complete(buffer, at, count - done, width)
        if words:
            numbers = np.frombuffer(b"".join(rows), "<f4").reshape(-1, width)
            yield _decode(words, numbers, [begins + place for place in places], tell())
        at, done = end, done + len(words)
        if done == count:
            break
        # The longest word and its row would fit: stop before the whole file is in memory.
        if len(buffer) - at > MAX_LINE_BYTES + 4 * width:
            raise left_out.build_error(
                f"the word at byte {begins + at} has no end; the file is not in word2vec's binary "
                "format"
            )
        chunk = next(source, b"")
        if not chunk:
            raise left_out.build_error(
                f"its header says {count:,} words, and it ends after {done:,}; it is cut short"
            )
        begins, buffer, at = begins + at, buffer[at:] + chunk, 0
    if buffer[at:].strip() or next(source, b"").strip():
        raise left_out.build_error(f"its header says {count:,} words, and it continues after them")


def _read_complete(
    buffer: bytes, at: int, max_words: int, width: int
) -> tuple[list[bytes], list[bytes], list[int], int]:
    """Reads the complete words of a buffer, from a place on.

    Returns the words, their numbers and places, and the end of the last one.
    """
    words, rows, places = list[bytes](), list[bytes](), list[int]()
    while len(words) < max_words:
        start = at + 1 if buffer[at : at + 1] == b"\n" else at
        space = buffer.find(b" ", start, start + MAX_LINE_BYTES)
        end = space + 1 + 4 * width
        if space < 0 or end > len(buffer):
            break
        words.append(buffer[start:space])
        rows.append(buffer[space + 1 : end])
        places.append(start)
        at = end
    return words, rows, places, at


def _decode(words: list[bytes], rows: Floats, places: list[int], read: int) -> WordBlock:
    texts, keep, faults = [], [], {}
    for i, word in enumerate(words):
        try:
            texts.append(word.decode())
            keep.append(i)
        except UnicodeDecodeError:
            faults[places[i]] = "is not UTF-8"
    return WordBlock(
        words=texts,
        rows=rows[keep].astype(np.float32),
        numbers=[places[i] for i in keep],
        unit="the word at byte",
        read=read,
        faults=faults,
    )


# ---- arrays --------------------------------------------------------------------------------------


def _iterate_blocks(
    words: Sequence[str | None],
    shape: tuple[int, ...],
    itemsize: int,
    take: Callable[[int, int], Floats],
) -> tuple[int, Iterator[WordBlock]]:
    """Returns the size of an array in bytes, and its blocks.

    `take` returns the rows from one index to another, in order. A row whose word is None is left
    out.
    """
    count, width = shape
    step = max(1, CHUNK // (4 * width))

    def yield_blocks() -> Iterator[WordBlock]:
        for start in range(0, count, step):
            stop = min(count, start + step)
            rows = take(start, stop)
            here = [(i, word) for i, word in enumerate(words[start:stop]) if word is not None]
            word_places = [i for i, _ in here]
            yield WordBlock(
                words=[word for _, word in here],
                rows=rows if len(here) == len(rows) else rows[word_places],
                numbers=[start + i + 1 for i in word_places],
                unit="row",
                read=stop * width * itemsize,
            )

    return count * width * itemsize, yield_blocks()


def _fit_words(
    shape: tuple[int, ...], words: Callable[[int], list[str]], left_out: DroppedWords
) -> list[str]:
    """Returns the words of the rows, after checking their number.

    `words` gives them, one too many if there are more words than rows.
    """
    if len(shape) != 2 or not 1 <= shape[1] <= MAX_WIDTH:
        raise left_out.build_error(
            f"the rows must be an array [V, d] with d from 1 to {MAX_WIDTH:,}, got shape "
            f"{list(shape)}"
        )
    row_words = words(shape[0])
    if shape[0] != len(row_words):
        amount = "more" if len(row_words) > shape[0] else f"{len(row_words):,}"
        raise left_out.build_error(
            f"each row needs a word, got {shape[0]:,} rows and {amount} words"
        )
    return row_words


def _read_npy(
    stream: IO[bytes], get_words: Callable[[int], list[str]], left_out: DroppedWords
) -> tuple[int, Iterator[WordBlock]]:
    shape, dtype = _read_npy_header(stream, left_out)
    if dtype.kind != "f":
        raise left_out.build_error(f"the rows must be floating-point numbers, got {dtype}")
    words = _fit_words(shape, get_words, left_out)
    width = shape[1]

    def take(start: int, stop: int) -> Floats:
        wanted = (stop - start) * width * dtype.itemsize
        content = stream.read(wanted)
        if len(content) < wanted:
            raise left_out.build_error(f"its header says {shape[0]:,} rows, and it is cut short")
        if stop == shape[0] and stream.read(1):
            raise left_out.build_error(
                f"its header says {shape[0]:,} rows, and it continues after them"
            )
        with np.errstate(over="ignore"):  # becomes infinity
            return np.frombuffer(content, dtype).reshape(-1, width).astype(np.float32)

    return _iterate_blocks(words, shape, dtype.itemsize, take)


def _read_npy_header(
    stream: IO[bytes], left_out: DroppedWords
) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Reads the shape and type of an array in NumPy's format."""
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        shape, fortran, dtype = read[np.lib.format.read_magic(stream)](stream)
        if not all(0 <= count < 1 << 60 for count in shape):
            raise ValueError
    # A read error has a reason of its own, and is no damaged header.
    except OSError:
        raise
    except Exception:  # NumPy parses the header as Python, and raises many kinds for a damaged one
        raise left_out.build_error(
            "it is not an array in NumPy's format, or its header is damaged"
        ) from None
    if dtype.hasobject:
        raise left_out.build_error(
            "it holds pickled Python objects, which are never loaded; save words with a type like "
            "U20"
        )
    if fortran and len(shape) > 1:
        raise left_out.build_error(
            "the array is stored by columns; save its numpy.ascontiguousarray"
        )
    return shape, dtype


def _holds_arrays(packed: zipfile.ZipFile, member: str | None) -> bool:
    """Says whether an archive is an .npz.

    Not if another of its files is requested.
    """
    names = packed.namelist()
    other = member in names and not str(member).endswith(".npy")
    return not other and any(name.endswith(".npy") for name in names)


def _read_npz(
    packed: zipfile.ZipFile,
    vocabulary: str | None,
    member: str | None,
    left_out: DroppedWords,
    stack: ExitStack,
) -> tuple[int, Iterator[WordBlock]]:
    """Reads one array of rows from an .npz.

    The words are from a vocabulary file, or from the only array of strings.
    """
    tables, texts = [], []
    for info in packed.infolist():
        if info.filename.endswith(".npy"):
            with packed.open(info) as stream:
                shape, dtype = _read_npy_header(stream, left_out)
            if len(shape) == 2 and dtype.kind == "f":
                tables.append(info.filename.removesuffix(".npy"))
            elif len(shape) == 1 and dtype.kind in "US":
                texts.append((info, shape[0], math.prod(shape) * dtype.itemsize))
    array_name = _choose(tables, member and member.removesuffix(".npy"), left_out) + ".npy"

    def get_words(count: int) -> list[str]:
        if vocabulary is not None or len(texts) != 1:
            return _read_words(vocabulary, count, left_out)
        info, word_count, size = texts[0]
        if word_count != count:
            raise left_out.build_error(
                f"each row needs a word, got {count:,} rows and {word_count:,} words"
            )
        if size >= info.file_size:  # less than its header says
            raise left_out.build_error("its array of words is damaged")
        with packed.open(info) as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
        try:
            return [word.decode() if isinstance(word, bytes) else word for word in array.tolist()]
        except UnicodeDecodeError:
            raise left_out.build_error("its words must be UTF-8") from None

    return _read_npy(stack.enter_context(packed.open(array_name)), get_words, left_out)


def _read_safetensors(
    path: Path, vocabulary: str | None, member: str | None, left_out: DroppedWords
) -> tuple[int, Iterator[WordBlock]]:
    tensors = map_tensors(path)
    rows = tensors[
        _choose([name for name, tensor in tensors.items() if tensor.ndim == 2], member, left_out)
    ]
    words = _fit_words(rows.shape, lambda count: _read_words(vocabulary, count, left_out), left_out)
    if rows.dtype.kind not in "fV":
        raise left_out.build_error("the rows must be floating-point numbers, and are not")
    return _iterate_blocks(
        words, rows.shape, 4, lambda start, stop: convert_to_float32(rows[start:stop])
    )


def _read_model(
    source: str, unit: Unit, left_out: DroppedWords
) -> tuple[int, Iterator[WordBlock], Tokenizer | None]:
    """Reads a model's input embeddings.

    The words are its tokenizer's pieces except special ones, or those that are whole words.
    """
    layer = read_input_layer(source)
    count, width = layer.shape
    if max(layer.pieces.values(), default=-1) >= count:
        raise left_out.build_error(
            f"its tokenizer has more pieces than the {count:,} rows of its input embeddings"
        )
    words: list[str | None] = [None] * count
    named = layer.pieces if unit == "wordpiece" else list_whole_words(layer.tokenizer, layer.pieces)
    for piece, row in named.items():
        words[row] = piece
    tokenizer = layer.tokenizer if unit == "wordpiece" else None
    return *_iterate_blocks(words, (count, width), 4, layer.rows), tokenizer
