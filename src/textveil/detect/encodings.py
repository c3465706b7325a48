r"""Encodings: decodes escapes, percent signs, entities and Base64 for detectors.

Detectors read the characters that `\u00fc`, `%40`, `&#64;` or Base64 encode, not the encoding.

In: a text. Out: the decoded text, and the place of each of its characters; the texts encoded in it.
Not here: documents as such (`keyvalue`), and other spellings in other letters (`patterns`).
"""

import binascii
import html
import re
import unicodedata
from base64 import b64decode
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

from textveil.detect.spans import Span


class EscapeUnit(NamedTuple):
    """An escape, or another encoding, of one character.

    Args:
        start: its first character.
        end: one past its last.
        character: the encoded character; "" for a fold of a line.
    """

    start: int
    end: int
    character: str

    @property
    def is_meaningful(self) -> bool:
        """True if the character may begin or end a value.

        Letters, digits and signs may; spaces, quotes, brackets and separators may not.
        """
        return self.character.strip(_SILENT) != ""

    def __repr__(self) -> str:
        return f"EscapeUnit({self.start}, {self.end})"


class String(NamedTuple):
    """A string in quotes.

    Args:
        start: the start of its opening quote, with the backslashes before it.
        end: one past its closing quote.
        inner: the start and end of its text.
        level: the number of strings around it.
        is_value: whether it is a string of code or data, judged by the text around it, and no
            quotation in prose.
        escaped: whether it has escapes: each of its backslashes begins one, and it is no path.
    """

    start: int
    end: int
    inner: tuple[int, int]
    level: int
    is_value: bool
    escaped: bool

    def __repr__(self) -> str:
        return f"String({self.start}, {self.end})"


class DecodedText(NamedTuple):
    """A decoded text, with the place of each character in the original.

    The places include that of the end.
    """

    text: str
    places: Sequence[int]

    def __repr__(self) -> str:
        return f"DecodedText({len(self.text)} characters)"


LONGEST_PATH = 200
"""The number of characters before a backslash that may belong to a path."""
BREAK = "\u2028"
"""The character that an escaped line end is decoded to.

It differs from the lines of the text itself, so that a document in the text can still be read.
"""
_SILENT = " \t\n\r\v\f\0\x07\x08\xa0\"'`\\<>&,;="
_BREAKS = dict.fromkeys("\n\r\v\f", BREAK) | {"\t": " "}
_ESCAPE_MEANINGS = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "f": "\f",
    "v": "\v",
    "b": "\b",
    "a": "\a",
    "0": "\0",
    "/": "/",
}
_STRINGS = (
    re.compile(
        r"""(?P<q>"\""|\'\'\')(?P<in>(?:(?!(?P=q))[^\\]|\\.)*+)(?P=q)
        | (?<![\\])"(?P<d>(?:[^"\\\n]|\\.|"")*+)(?:"|\Z)
        | (?<![\w\\'])'(?P<s>(?:[^'\\\n]|\\.|'')*+)'(?![\w'])
        | (?:(?<=[(,])|(?<=[(,][ ]))'(?P<m>(?:[^'\\]|\\.|'')*+)'(?=\s*+[,)])
        | (?<![`\\])`(?P<b>[^`]*+)`(?!`)""",
        re.VERBOSE | re.DOTALL,
    ),
    re.compile(
        r"""(?<!\\)\\"(?P<d>(?:[^"\\]|\\{2,}+.|\\[^"\\n])*+)\\" | (?<![\w\\'])'(?P<s>(?:[^'\\]|\\[^n])*+)'(?![\w'])""",
        re.VERBOSE | re.DOTALL,
    ),
    re.compile(r"""(?<!\\)\\\\\\"(?P<d>(?:[^"\\]|\\{4,}+.|\\{1,3}[^"\\])*+)\\\\\\\"""", re.DOTALL),
)
r"""Patterns of strings, of strings inside those, `\\"...\\"` and '...', and once more inside."""
_VALID = re.compile(
    r"(?:[^\\]|\\(?:[\"'\\/bfnrtav0`\n ]|u[0-9a-fA-F]{4}|u\{|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}))*+"
)
_DRIVE = re.compile(r"(?<![A-Za-z])[C-HZc-hz]:\\(?!\\)")
"""The beginning of the path of a file."""
_LOGIN = re.compile(r"[\w.\-]{2,}\\[a-z][\w.\-]*")
"""A domain and a user in it, or a file in a folder."""
_BEFORE = re.compile(r"(?:[:,;|=(\[{+>\t][ \t]*|(?:\A|\n|\\n)[ \t\-]*)(?:[A-Za-z]{1,2})?\Z")
_BEHIND = re.compile(r"[ \t]*(?:[:,|)\]};+<\t]|\Z|\r?\n|\\+[nr])")
_CONTINUED = re.compile(r"[ \t]*+(?:\\(?=[ \t]))?")
_RAW = re.compile(r"(?<!\w)[bB]?[rR][bB]?\Z")
_RUN = re.compile(
    r"(?<!\\)(?P<run>\\++)(?:u(?P<high>d[89ab][0-9a-f]{2})\\+u(?P<low>d[c-f][0-9a-f]{2})|[ux](?P<code>(?<=u)[0-9a-f]{4}|(?<=x)[0-9a-f]{2})"
    r"|U(?P<long>[0-9a-f]{8})|(?P<letter>[^\\]))",
    re.IGNORECASE | re.DOTALL,
)
_DOUBLED = re.compile("''")
_PRINTABLE = re.compile(r"(?:=[C-F][0-9A-F](?:=[89AB][0-9A-F]){1,3})")
_BYTES = re.compile(r"(?:=[0-9A-F]{2})+|=\r?\n")
_FOLD = re.compile(r"\r?\n[ \t](?=\S)")


def find_strings(text: str) -> list[String]:
    """Finds the strings of a text, and those inside them, sorted."""
    strings: list[String] = []
    if any(sign in text for sign in "\"'`"):
        _collect_strings(text, 0, len(text), 0, strings)
    return sorted(strings)


def _collect_strings(text: str, start: int, end: int, level: int, strings: list[String]) -> None:
    for match in _STRINGS[level].finditer(text, start, end):
        begin, stop = match.span(match.lastgroup or 0)
        content, before = text[begin:stop], text[max(start, match.start() - 20) : match.start()]
        escaped = "\\" in content
        if escaped and (_DRIVE.search(content) or _RAW.search(before)):
            escaped = False
        escaped = (
            escaped and _VALID.fullmatch(content) is not None and _LOGIN.fullmatch(content) is None
        )
        value = _BEFORE.search(before) is not None and (
            before[-1:] in ("=", "(", "[", "{") or _BEHIND.match(text, match.end(), end) is not None
        )
        strings.append(String(*match.span(), (begin, stop), level, value, escaped))
        if level + 1 < len(_STRINGS) and (escaped or "'" in content):
            _collect_strings(text, begin, stop, level + 1, strings)


def find_escape_units(text: str) -> list[EscapeUnit]:
    r"""Finds the escapes and encodings in a text, in order.

    They are `\n`, `\u00fc`, `\"`, `''`, `%40`, `&amp;`, `=C3=BC`.

    A letter behind a backslash is an escape in a string of code or data; elsewhere only before a
    capital, digit or sign, because it may be the name of a file, or of a user behind that of a
    domain.
    """
    escapes: list[EscapeUnit] = []
    if "\\" in text:
        escapes += _find_escapes(text)
    if "''" in text:
        for string in find_strings(text):
            if string.is_value and text[string.start] == "'":
                escapes += [
                    EscapeUnit(*match.span(), "'")
                    for match in _DOUBLED.finditer(text, *string.inner)
                ]
    if "%" in text or "&" in text:
        for match in _CODED.finditer(text):
            if match["bytes"] or match["entity"]:
                escapes += [
                    EscapeUnit(start, end, letter) for letter, start, end in _decode_match(match)
                ]
    if "=" in text:
        for match in (_BYTES if "quoted-printable" in text.lower() else _PRINTABLE).finditer(text):
            escapes += _decode_printable(match)
    if "BEGIN:V" in text:
        escapes += [EscapeUnit(*match.span(), "") for match in _FOLD.finditer(text)]
    escapes.sort()
    # Encodings may overlap; the first one counts.
    return [unit for i, unit in enumerate(escapes) if not i or unit.start >= escapes[i - 1].end]


def _find_escapes(text: str) -> Iterator[EscapeUnit]:
    strings = [string for string in find_strings(text) if string.escaped]
    open_: list[String] = []
    place, sure = 0, False
    doubtful: list[EscapeUnit] = []
    card = "BEGIN:V" in text
    for match in _RUN.finditer(text):
        start, end = match.span()
        while place < len(strings) and strings[place].inner[0] <= start:
            open_.append(strings[place])
            place += 1
        open_ = [string for string in open_ if string.inner[1] > start]
        simple = _find_simple_escapes(text, match, in_string=bool(open_))
        if simple is not None:
            yield from simple
            continue
        count, letter = len(match["run"]), match["letter"]
        # Each level of strings doubles the backslashes of an escape.
        size = 2 ** open_[-1].level if open_ else 0
        size = size if count >= size else 1
        if size and letter in _ESCAPE_MEANINGS and (count // size) % 2 and count % size == 0:
            if count > size:
                yield EscapeUnit(start, end - 1 - size, "\\")
            yield EscapeUnit(end - 1 - size, end, _ESCAPE_MEANINGS[letter])
            continue
        if size and count > 1:
            yield EscapeUnit(start, end - 1, "\\")
        if card and letter in ",;nN" and count % 2:
            yield EscapeUnit(end - 2, end, "\n" if letter in "nN" else letter)
        elif (
            letter in "nrt"
            and (not open_ or count > 1)
            and not _DRIVE.search(text[max(0, start - LONGEST_PATH) : end].rpartition(" ")[2])
        ):
            behind = text[end : end + 1]
            unit = EscapeUnit(end - 2 if size else start, end, _ESCAPE_MEANINGS[letter])
            if not behind or not (behind == "_" or behind.islower()):
                sure = sure or not open_
                yield unit
            elif not open_:
                # The name of a file may begin so: it counts only beside a certain escape.
                doubtful.append(unit)
    if sure:
        yield from doubtful


def _find_simple_escapes(
    text: str, match: re.Match[str], *, in_string: bool
) -> list[EscapeUnit] | None:
    """Decodes code points, continued lines and quotes; None for other letters."""
    (start, end), count, letter = match.span(), len(match["run"]), match["letter"]
    if letter is None:
        begin = start if count % 2 == 0 else start + count - 1
        return [EscapeUnit(begin, end, _decode_escape(match))]
    if letter == "\n" and in_string and count % 2:
        return [EscapeUnit(end - 2, _CONTINUED.match(text, end).end(), "")]  # type: ignore[union-attr]  # it may be empty
    if letter in "\"'":
        return [EscapeUnit(start, end, letter)] if count % 2 else []
    return None


def _decode_escape(match: re.Match[str]) -> str:
    if match["high"]:
        return chr(
            0x10000 + ((int(match["high"], 16) - 0xD800) << 10) + int(match["low"], 16) - 0xDC00
        )
    code = int(match["code"] or match["long"], 16)
    # A lone surrogate is no character, and no text may hold one.
    return chr(code) if code < 0xD800 or 0xDFFF < code < 0x110000 else ""


def _decode_printable(match: re.Match[str]) -> Iterator[EscapeUnit]:
    """Decodes quoted-printable bytes; a fold of a line decodes to nothing."""
    start, end = match.span()
    if match[0][1:2] in "\r\n":
        yield EscapeUnit(start, end, "")
        return
    data = bytes.fromhex(match[0].replace("=", ""))
    try:
        letters = data.decode()
    except UnicodeDecodeError:
        letters = data.decode("latin-1")
        yield from (
            EscapeUnit(start + 3 * i, start + 3 * i + 3, letter) for i, letter in enumerate(letters)
        )
        return
    for letter in letters:
        size = 3 * len(letter.encode())
        yield EscapeUnit(start, start + size, letter)
        start += size


def decode_escapes(text: str) -> DecodedText:
    r"""Decodes escaped characters, and keeps the place of each.

    Each `\uXXXX`, or two of them for one character, becomes that character; `\\u` stays. An escape
    of a line end becomes `BREAK`, that of a tab a space, `''` and `\'` in a name an apostrophe.
    Control characters, quotes and backslashes stay escaped, so that documents can be read.
    """
    if "\\" not in text and "''" not in text:
        return DecodedText(text, range(len(text) + 1))
    letters: list[str] = []
    places: list[int] = []
    at = 0
    for start, end, meaning in find_escape_units(text):
        if text[start] == "'" or (
            meaning == "'" and text[start - 1 : start].isalnum() and text[end : end + 1].isalnum()
        ):
            letter = "’"
        elif text[start] != "\\":
            continue
        elif meaning in _BREAKS:
            letter = _BREAKS[meaning]
        elif text[start + 1] != "\\" and meaning.isprintable() and meaning not in "\"'\\,;":
            letter = meaning
        else:
            continue
        letters.append(text[at:start] + letter)
        # The decoded letter has the place of the first character of its escape.
        places += range(at, start + 1)
        at = end
    letters.append(text[at:])
    places += range(at, len(text) + 1)
    return DecodedText("".join(letters), places)


def map_to_original(span: Span, texts: Sequence[DecodedText]) -> Span:
    """Maps a span of the decoded text to the original text."""
    places = texts[span.text].places
    return span._replace(start=places[span.start], end=places[span.end])


def map_to_decoded(span: Span, texts: Sequence[DecodedText]) -> Span:
    """Maps a span of the original text to the decoded text."""
    places = texts[span.text].places
    return span._replace(start=bisect_left(places, span.start), end=bisect_left(places, span.end))


# ---- encodings -----------------------------------------------------------------------------------

# `%2540` is a percent sign that was encoded once more.
_BYTE = re.compile(r"%(?:25)*([0-9a-f]{2})", re.IGNORECASE)
_WORD = r"=\?[\w.:\-]{2,40}(?:\*[\w\-]{1,16})?\?[bq]\?[^?\s]{1,400}\?="
"""An encoded word of a mail header, after RFC 2047."""
_ENCODED = re.compile(_WORD, re.IGNORECASE)
_CODED = re.compile(
    rf"""(?P<bytes>(?:{_BYTE.pattern})+) | {_WORD}(?:[ \t]*\r?\n?[ \t]+(?={_WORD}))?
    | (?P<quoted>(?:=[89a-f][0-9a-f]){{2,}}) | &(?:amp;)*(?P<entity>\#\d{{1,7}}|\#x[0-9a-f]{{1,6}}|[a-z]{{2,12}});
    | (?<!\\)\\+u(?P<unit>[0-9a-f]{{4}})
    | (?P<blank> (?<=[0-9])[_+](?=[0-9]{{2}}) | (?<=[a-z0-9])_(?=[0-9]{{6}} | [a-z]{{2}}[0-9]{{4}}) )""",
    re.IGNORECASE | re.VERBOSE,
)
_FORM_VALUE = re.compile(r"(?:\A|[\s?&])[\w.\-\[\]]{1,60}=[^\s&=]{0,60}%[^\s&=]{1,60}\Z")
"""The value of a form with an encoded byte in it, in which a plus is a space."""
_LONGEST_VALUE = 190
_SIGNS = "%&\\_="
"""Characters of which every match of `_CODED` holds one."""
_BASE64 = re.compile(
    r"""(?<![A-Za-z0-9+/_\-])
    (?: (?:[A-Za-z0-9+/]{56,}\r?\n)+[A-Za-z0-9+/]+ | [A-Za-z0-9+/_\-]{12,} )={0,2}
    (?![A-Za-z0-9+/_=\-])""",
    re.VERBOSE,
)
_LINE = re.compile(r"[^\r\n]+")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){8,}(?![0-9A-Fa-f])")
_MIN_CHARACTERS_PER_ODD = 8
"""The fewest decoded characters for each impossible one, such as NUL."""
_CONTEXT_CHARACTERS = 200
"""The number of characters read on each side of an encoded one."""


class DecodedPart(NamedTuple):
    """A part of a text with its encoding removed.

    Args:
        text: the decoded text.
        starts: the start of each character's encoding in the whole text.
        ends: its end.
        coded: the indices of the characters that were encoded, in order.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    coded: Sequence[int]

    def __repr__(self) -> str:
        return f"DecodedPart({len(self.text)} characters)"

    def map_to_text(self, span: Span) -> list[Span]:
        """Maps a span of this part to spans of the whole text.

        There is none if no character in the span or right beside it was encoded.
        """
        at = bisect_left(self.coded, span.start - 1)
        if at == len(self.coded) or self.coded[at] > span.end:
            return []
        spans = []
        first = span.start
        for i in range(
            span.start + 1, span.end + 1
        ):  # the text between two encoded words is no part of the decoded text
            if i == span.end or self.starts[i] > self.ends[i - 1]:
                spans.append(span._replace(start=self.starts[first], end=self.ends[i - 1]))
                first = i
        return spans


def blank_encoded_words(text: str) -> str:
    """Replaces encoded words of mail headers by spaces.

    Their letters name nobody, and `decode_parts` decodes them.
    """
    if "=?" not in text:
        return text
    return _ENCODED.sub(
        lambda match: " " * len(match[0]) if any(_decode_word(match)) else match[0], text
    )


def decode_parts(text: str) -> list[DecodedPart]:
    """Decodes the parts of a text that are encoded.

    Encodings are percent signs, HTML entities, escapes of escapes, Base64 and hexadecimal digits,
    encoded words of mail headers, `=?UTF-8?Q?...?=`, and letters of quoted-printable text.
    Underscores in numbers, as in file names, and a plus in a number of a form are read as spaces.
    """
    parts = list(_decode_characters(text)) if any(sign in text for sign in _SIGNS) else []
    for start, end, content in _decode_runs(text):
        parts.append(
            DecodedPart(content, [start] * len(content), [end] * len(content), range(len(content)))
        )
    return parts


def _decode_runs(text: str) -> Iterator[tuple[int, int, str]]:
    """Finds runs of Base64 or hexadecimal digits that encode text.

    Yields the start and end of each, and its text.
    """
    for run in _BASE64.finditer(text):
        lines = [line.span() for line in _LINE.finditer(text, *run.span())]
        # A word may stand below wrapped lines, or a long word above them.
        for candidates in (
            [(run.start(), run.end())],
            [(run.start(), lines[-2][1])] if lines[1:] else [],
            lines,
        ):
            decoded = [
                (start, end, content)
                for start, end in candidates
                if (content := _decode_base64(text[start:end]))
            ]
            if decoded:
                yield from decoded
                break
    for run in _HEX.finditer(text):
        if content := _decode_bytes(bytes.fromhex(run[0])):
            yield *run.span(), content


def _decode_base64(run: str) -> str:
    """Decodes a run of Base64; returns "" if it is no text."""
    # Base64 of URLs has other signs and often no padding.
    plain = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")
    with suppress(binascii.Error):
        return _decode_bytes(b64decode(plain + "=" * (-len(plain) % 4)))
    return ""


def _decode_bytes(data: bytes) -> str:
    """Decodes bytes as text; returns "" if they are no text.

    Invisible marks may be in it, and a small share of characters that no text has.
    """
    text = data.decode(errors="replace")
    odd = sum(
        not (char.isprintable() or char.isspace() or unicodedata.category(char) == "Cf")
        for char in text
    )
    return text if (odd + text.count("\ufffd")) * _MIN_CHARACTERS_PER_ODD <= len(text) else ""


def _decode_characters(text: str) -> Iterator[DecodedPart]:
    """Decodes single encoded characters, together with the text around them."""
    letters: list[tuple[str, int, int, bool]] = []
    at = 0

    def add_plain(start: int, end: int) -> None:
        letters.extend((text[i], i, i + 1, False) for i in range(start, end))

    for match in _CODED.finditer(text):
        chars = list(_decode_match(match))
        if not chars:
            continue
        start, end = match.span()
        # Encoded characters far apart are parts of their own: the text between is read as it is.
        if letters and start - at > 2 * _CONTEXT_CHARACTERS:
            add_plain(at, at + _CONTEXT_CHARACTERS)
            yield _make_part(letters)
            letters = []
        add_plain(at if letters else max(at, start - _CONTEXT_CHARACTERS), start)
        letters += [(char, first, last, True) for char, first, last in chars]
        at = end
    if letters:
        add_plain(at, min(at + _CONTEXT_CHARACTERS, len(text)))
        yield _make_part(letters)


def _make_part(letters: Sequence[tuple[str, int, int, bool]]) -> DecodedPart:
    chars, starts, ends, coded = zip(*letters, strict=True)
    return DecodedPart(
        "".join(chars), starts, ends, [i for i, is_coded in enumerate(coded) if is_coded]
    )


def _decode_match(match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    """Decodes a match of `_CODED` to characters with their places.

    Yields nothing if the match is no encoding.
    """
    start, end = match.span()
    if match["bytes"]:
        matches = list(_BYTE.finditer(match["bytes"]))
        places = [code.span() for code in matches]
        with suppress(UnicodeDecodeError):
            content = bytes(int(code[1], 16) for code in matches).decode()
            i = 0
            for char in content:
                first, i = i, i + len(char.encode())
                yield char, start + places[first][0], start + places[i - 1][1]
        return
    if match[0][:2] == "=?":
        yield from _decode_word(match)
        return
    if match["quoted"]:
        with suppress(UnicodeError):
            yield from _decode_quoted(match["quoted"], "utf-8", start)
        return
    if match["blank"]:
        before = match.string[max(0, start - _LONGEST_VALUE) : start]
        if match["blank"] == "+" and not _FORM_VALUE.search(before):
            return
        content = " "
    elif match["unit"]:
        content = chr(int(match["unit"], 16))
    else:
        content = html.unescape(f"&{match['entity']};")
    if len(content) == 1 and not "\ud800" <= content <= "\udfff":
        yield content, start, end


def _decode_word(match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    """Decodes an encoded word of a mail header.

    In Base64, every character has the place of all the encoded letters.
    """
    charset, kind, coded = match[0][2:].split("?", 3)[:3]
    start = match.start() + len(charset) + 5
    with suppress(binascii.Error, LookupError, UnicodeError):
        yield from _decode_quoted(coded, charset.partition("*")[0], start, kind in "Bb")


_QUOTED = re.compile(r"=([0-9a-f]{2})|.", re.IGNORECASE)


def _decode_quoted(
    coded: str, charset: str, start: int, in_base64: bool = False
) -> Sequence[tuple[str, int, int]]:
    """Decodes letters in which `=` begins a byte, `_` is a space."""
    items = [] if in_base64 else list(_QUOTED.finditer(coded))
    single = [
        bytes.fromhex(item[1]) if item[1] else item[0].replace("_", " ").encode("ascii")
        for item in items
    ]
    content = (
        b64decode(coded + "=" * (-len(coded) % 4)) if in_base64 else b"".join(single)
    ).decode(charset)
    lengths = [len(char.encode(charset)) for char in content]
    if sum(lengths) != len(
        items
    ):  # also where a character is encoded by those before it, as in ISO-2022
        return [(char, start, start + len(coded)) for char in content]
    ends = list(accumulate(lengths))
    return [
        (char, start + items[end - length].start(), start + items[end - 1].end())
        for char, length, end in zip(content, lengths, ends, strict=True)
    ]
