"""Regions: the parts of a text that a machine wrote or reads, and what in them is nobody.

In: a text, and spans that textveil's own detectors found in it. Out: its regions; the spans that a
region leaves.
Not here: the limits of values (`bounds`), keys and their values (`keyvalue`), and strings and
comments of code, which are read as text.

A text is read once, line by line. In a line of a log a number says nothing without a key before it,
and a name is a person's where two words stand side by side, where it is a known name, or where a
key says so. Names in code are nobody's. Digests, versions and times are nothing anywhere.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from textveil.detect.bounds import Place
from textveil.detect.encodings import find_strings
from textveil.detect.keyvalue.field_names import MAX_KEY_CHARACTERS, classify_key, is_secret
from textveil.detect.patterns.handles import is_user
from textveil.detect.patterns.hosts import GENERIC_HOSTS
from textveil.detect.spans import NAMES, NUMBER_TYPES, PRIVACY_THRESHOLD, REPEATED_SOURCE, Span
from textveil.text import is_ordinary, lexicon, vocabulary

LOG, CODE = "log", "code"
"""The kinds of regions; what is in none is read as text."""

_NUMBERED = (NUMBER_TYPES | {"NATIONAL_ID", "SECRET", "AGE", "PLATE"}) - {"IBAN"}
"""Types of values that are mere numbers where no key announces them."""
_NAMING = frozenset((*NAMES, "HANDLE", "ID", "ACCOUNT", "SECRET"))
"""Types as which the tagger takes words of programs."""

_MAX_LINE = 2000
"""Characters at the start of a line that tell what it is."""
_MAX_KEY = 48


class Region(NamedTuple):
    """A part of a text of one kind."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, kw_only=True)
class Regions:
    """The structure of a text that decides what in it is nobody.

    Args:
        parts: the regions in order; none overlaps another.
        stamps: the times of log lines and the like, in order.
        programs: the names of imported and installed programs, in small letters.
    """

    parts: Sequence[Region] = field(default=(), repr=False)
    stamps: Sequence[Place] = field(default=(), repr=False)
    programs: frozenset[str] = field(default=frozenset(), repr=False)

    def find_kind(self, start: int, end: int) -> str | None:
        """Finds the kind of the region that holds a place, or None."""
        at = bisect_right(self.parts, start, key=lambda part: part.start) - 1
        return self.parts[at].kind if at >= 0 and end <= self.parts[at].end else None


# ---- logs ----------------------------------------------------------------------------------------

_STAMP = re.compile(
    r"""(?x) (?<![\w.:\-/]) (?:
      (?: (?:(?:19|20)\d\d|\d\d) [\-/.] \d\d [\-/.] \d\d | (?:19|20)\d{6} | \d\d[\-/.]\d\d
        | (?:[A-Z][a-z]{2}[ ])? [A-Z][a-z]{2} [ ]{1,2} \d{1,2} | \d{1,2}/[A-Z][a-z]{2}/\d{4} )
      [T ,:\-]{1,2} \d\d [:.] \d\d (?: [:.] \d\d (?: [.,:]\d{1,9} )?+ )?+ (?: [ ]?(?:Z|[+\-]\d\d:?\d\d)\b )?+
      (?: [ ](?:19|20)\d\d\b )?+
    | \d\d(?:0[1-9]|1[0-2])[0-3]\d [ ] [0-2]\d[0-5]\d[0-5]\d (?: [ ] \d{1,6} (?=[ ][A-Z]{4}) )?
    | \d\d:\d\d:\d\d (?: [.,]\d{1,9} )?+
    | 1[0-9]{9} (?:\d{3}|\.\d{1,6})?+
    ) (?![\w\-/])"""
)
"""A time at the start of a log line."""
_HEAD = 60
"""Characters of a log line among which its time begins."""
_SPEAKER = re.compile(r"[\])]?[ \-]*+<\w[\w.\-]*>|[\])]?[ ,\-]*+[^\W\d_]+(?: [^\W\d_]+){0,2}: ")
"""Who speaks, behind the time of a line of a chat."""
_MACHINE = re.compile(
    r"""(?x) \b(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRIT(?:ICAL)?|SEVERE|Info|Error|Warning)\b
    | (?i:\[(?:info|notice|warn|error|debug)\]) | [\w.)]\[\d+\]: | \b[a-z_]\w*(?:\.[A-Za-z_$]\w*){2,}
    | (?<!\w)[\w.\-]{1,40}=
    | \b[a-z]{2,}[A-Z]\w*\b | [\w.]\|[\w.] | \b0x[\da-f] | \b[VDIWEF][ ]\w+: | \b\w+_\w+\b | \w\.exe\b
    | ^[A-Z][a-z]{2}[ ]{1,2}\d{1,2}[ ][\d:]{8}[ ]\S+[ ][\w.\-/]+(?:\(\S+\)|[ ]\d[\d.]+)?:
    | [\da-f]{8}-[\da-f]{4}- | ^\d+[ ]\S+[ ]\S+[ ]\S+[ ]1\d{9}[ ]"""
)
"""What only a machine writes into a line with a time."""
_TRACE = re.compile(
    r"""[ \t]*(?:at [\w.$<>/]{3,200}\(|\.\.\. \d+ more|Caused by: [\w.]+|File "[^"\n]{1,200}", line \d+"""
    r"""|[\w.]*(?:Error|Exception)\b)"""
)
"""A line of a stack trace."""


def _read_log_line(line: str, offset: int) -> tuple[str | None, list[Place]]:
    """Returns the kind of a line, and the times in its head."""
    stamps = []
    at = 0
    while (stamp := _STAMP.search(line, at, _MAX_LINE)) and stamp.start() <= _HEAD:
        stamps.append(stamp.span())
        at = stamp.end()
    if stamps:
        # People write one time before a line.
        is_machine = len(stamps) > 1 or _MACHINE.search(line, 0, _MAX_LINE)
        if _SPEAKER.match(line, stamps[0][1]) or not is_machine:
            return None, []
        return LOG, [(offset + start, offset + end) for start, end in stamps]
    return (LOG if _TRACE.match(line) else None), []


# ---- code ----------------------------------------------------------------------------------------

_STATEMENT = re.compile(
    r"""(?x) [ \t]*+ (?:
      (?:import|from)[ ][\w.@*{'"] [^\n]* | (?:async[ ])?def[ ]\w+[ ]?[(\[] [^\n]*
    | class[ ]\w+ [^\n]{0,200} [:{][ ]*
    | (?:public|private|protected|static|final|export|const|let|var|func|fn|package|namespace|using|type|struct
      |interface) [ ] [^\n]* [;{(=)] [^\n]*
    | (?:return|raise|throw|yield|assert|del|await|if|elif|else|for|while|try|except|finally|with|switch|case)\b
      [^\n]* [:;{)\]] [ ]*+
    | \#include[ ] [^\n]* | @[\w.]+(?:\([^\n]*)? | [\w.\[\]'"]+[ ](?:=|\+=|:=)[ ] [^\n]* [(\[{)\]};,]
    | [\w.]+\([^\n]*\)?[;,]?  | [)\]}]+[;,)]*+ | (?:\w+,[ ]?)+\w*
    ) [ \t]*+ (?:(?:\#|//)[^\n]*)? \Z"""
)
"""A line of a program: a statement, or a part of one."""
_HEADER = re.compile(
    r"(?m)^[ \t]*(?:import [\w.]+|from [\w.]+ import |(?:async )?def \w+ ?\(|class \w+[^\n]{0,99}[:{][ ]*$"
    r"|#include |package [\w.]+;?$|(?:export |public |const |let |var |func |fn )[^\n]*[;{=(])"
)
"""A line that only a program has."""
_COMMENT = re.compile(
    r"(?m)(?<![\w:'\"&/])(?:\#(?!include\b)|//)[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
)
_DOCSTRING = re.compile(
    r"\"\"\"(?:[^\"]|\"(?!\"\"))*+(?:\"\"\"|\Z)|'''(?:[^']|'(?!''))*+(?:'''|\Z)"
)
_PROGRAMS = re.compile(
    r"""(?mx) ^[ \t]*(?:import|from)[ ]+([A-Za-z_]\w*) | \brequire\(["']([\w\-]+) | ^Name:[ ]([\w.\-]+)$
    | \bpip3?[ ]install[ ](?:-\S+[ ])*([\w\-]+) | \bnpm[ ](?:i|install)[ ]([\w\-]+)"""
)
"""The name of a program that is imported or installed, or whose manifest this is."""


def _find_code_lines(text: str, lines: Sequence[Place]) -> list[bool]:
    """Says of each line whether it is one of a program.

    A single line that only looks like one is prose: `with Sabine and Tom:`.
    """
    if not _HEADER.search(text):
        return [False] * len(lines)
    alike = [
        bool(_STATEMENT.match(text, start, min(end, start + _MAX_LINE))) for start, end in lines
    ]
    beside = [
        alike[i] and alike[i + 1] and lines[i][1] + 1 == lines[i + 1][0]
        for i in range(len(lines) - 1)
    ]
    return [
        is_alike and (before or behind or _HEADER.match(text, *line) is not None)
        for line, is_alike, before, behind in zip(
            lines, alike, [False, *beside], [*beside, False], strict=True
        )
    ]


def _find_readable(text: str) -> list[Place]:
    """Finds strings and comments, sorted; some may overlap."""
    return sorted(
        [
            *((string.start, string.end) for string in find_strings(text)),
            *(match.span() for match in _COMMENT.finditer(text)),
            *(match.span() for match in _DOCSTRING.finditer(text)),
        ]
    )


# ---- a text --------------------------------------------------------------------------------------


def compute_regions(text: str) -> Regions:
    """Computes the regions of a text, in time linear in it."""
    lines = [*_split_lines(text)]
    code = _find_code_lines(text, lines)
    parts, stamps = [], list[Place]()
    for (start, end), is_code in zip(lines, code, strict=True):
        kind, times = _read_log_line(text[start:end], start)
        stamps += times
        if kind or is_code:
            parts.append(Region(start, end, kind or CODE))
    if any(code):
        parts = [*_without(parts, _find_readable(text))]
    names = frozenset(
        next(filter(None, match.groups())).lower() for match in _PROGRAMS.finditer(text)
    )
    return Regions(parts=parts, stamps=stamps, programs=names)


def _split_lines(text: str) -> Iterator[Place]:
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if end > at:
            yield at, end
        at = end + 1


def _without(parts: Sequence[Region], readable: Sequence[Place]) -> Iterator[Region]:
    """Cuts strings and comments out of regions of code."""
    at = 0
    for part in parts:
        if part.kind != CODE:
            yield part
            continue
        begin = part.start
        while at < len(readable) and readable[at][1] <= begin:
            at += 1
        i = at
        while i < len(readable) and readable[i][0] < part.end:
            if readable[i][0] > begin:
                yield Region(begin, readable[i][0], CODE)
            begin = max(begin, readable[i][1])
            i += 1
        if begin < part.end:
            yield Region(begin, part.end, CODE)


# ---- spans ---------------------------------------------------------------------------------------

SURE, SURE_NAME = 0.995, 0.9
"""The score from which the tagger's word is enough in a log line, and that for a name: of what only
programs mean, most has less."""

_KEY_BEFORE = re.compile(r"""([\w.\-]{1,40})["']?([ ]?[:=][ ]?|[ ])["'<(\[]?\Z""")
_KINDS_OF_WORDS = frozenset(
    [
        "address",
        "author",
        "city",
        "email",
        "family",
        "full",
        "given",
        "handle",
        "house",
        "ip",
        "name",
        "org",
        "party",
        "people",
        "place",
        "street",
    ]
)
"""Kinds of values that a number is not."""
_ADDRESS = re.compile(r"v?[1-9]\d{0,3}(?:\.\d{1,5}){2,3}(?::\d{1,5})?")
"""An address of the internet, or a version."""
_JOINED = re.compile(r"[_#@$]-?\Z")
"""What joins a number to the word of a program before it: `blk_-12`."""
_INTERNET = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!\Z|:)|(?=:|\Z))){4}(?::\d{1,5})?")
_LINE_OF = re.compile(r"\w*[@#]")
"""The class and the line, or the place, that wrote into a log: `Worker@762`."""
_HEXADECIMAL = re.compile(r"[\da-f]+|-?[\da-f]{4,}(?:-[\da-f]{4,})*-?", re.IGNORECASE)
_UUID = re.compile(r"[\da-f]{4}-[\da-f]{4}-[\da-f]{4}")
_PHONE = re.compile(
    r"\(?\+.*|(?!000)(?=(?:\D*\d){9})\(?0[\d ()/.\-]+|\(?[2-9]\d\d\)?[ .\-]\d{3}[.\-]\d{4}"
)
_CALL = re.compile(r"[A-Z][a-z]{3,}[A-Z]\w*")
"""The name of a call in a program, and no McGregor."""
_CONSTANT = re.compile(r"[A-Z\d_]+(?!\w)")
_CONSTANT_BEFORE = re.compile(r"(?<!\w)[A-Z\d_]{0,64}\Z")
"""The name of a constant in capitals; and its part before a place."""
_PROGRAM_BEHIND = re.compile(r"(?:\([\w\-]+\))?\[\d+\]|[-/ @]v?\d+\.\d|\.[a-z_]\w*|\$|\(\)|::|\w")
"""What stands behind the name of a process, a program with its version, a module or a class."""
_PROGRAM_BEFORE = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*\.\w?\Z")
"""What stands before the last part of a module's name."""
_HOST = re.compile(r"(?:[\w\-]+\.)+[A-Za-z]{2,}(?::\d{1,5})?")
_USER_BEFORE = re.compile(
    r"""(?xi) \b (?:users?|login|logname|account|owner|for|by|acls[ ]to|uid|as|remote_user|ruser) [ ]?[:=]?[ ]?["'<(\[]?
    | [/\\](?:home|users|staging)[/\\]{1,2} | (?<![\w.])~ | \]:[ ]\(
    """
    r"\Z"
)
_INSIDE_HOME = re.compile(
    r"[/\\](?:home|users?)[/\\]{1,2}[^/\\\s]+[/\\](?:[^\s:]*[/\\])?\Z", re.IGNORECASE
)
"""A path in a user's home, where no other user is named."""
_DOMAIN_BEFORE = re.compile(r"[A-Za-z][\w.\-]{1,30}\\{1,2}\Z")
_CARD = re.compile(r"\d{13,16}|\d{4}([ \-])\d{4}\1\d{4}\1\d{4}|\d{4}([ \-])\d{6}\2\d{5}")
_IDENTIFIER = re.compile(
    r"""(?x) [A-Z]{0,3}[a-z]{3,}\d*(?:[A-Z]\w*)+ | [A-Z]{2,}[a-z]\w+ | [A-Za-z]+(?:[A-Z][a-z]+){2,}\w*
    | \w*_\w*\d{4,}\w* | [A-Z][A-Z\d]*(?:_[A-Z\d]+)+"""
)
"""A word whose form only programs have: `QuorumCnxManager`, `SPUtils`, `JWT_SIGNING_KEY`."""
_OBJECT = re.compile(r"\w+\{\w+|(?:\w+\.)+\w+@[\da-f]+")
"""An object as programs write it: its class and its place in the memory."""
_DIGEST_BEFORE = re.compile(
    r"""(?xi) \b (?: sha-?\d{1,3} | md5 | integrity | digest | hash(?:es)? | checksum | shasum | resolved | etag
      | bom-ref | urn:uuid )s? ["']? [\s:=\-]{0,4} ["']? (?:[\w.\-/]{0,40}(?::|-))? \Z
    | \w[\#] \Z | \b alg["']? \s* : \s* "SHA-?\d+" ,? \s* "content" \s* : \s* " \Z
    """
)
"""The key of a digest, up to the digest."""
_DIGEST = re.compile(
    r"(?:[\da-fA-F]{2}){16,64}|[A-Za-z\d+/]{27,90}={0,2}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}"
)
_VERSIONED = re.compile(r"[a-z][\w.\-]*@v?\d+(?:\.\d+)+[\w.\-+]*(?:#[\da-f]+)?")
"""A package and its version: `left-pad@1.3.0`."""


def filter_spans(
    spans: Sequence[Span], texts: Sequence[str], cache: dict[str, Regions]
) -> list[Span]:
    """Drops the spans that name nobody in the region where they stand.

    Args:
        spans: spans of these texts.
        texts: B texts.
        cache: the known regions of texts, to which these are added.
    """
    remaining = []
    for span in spans:
        if not (span.is_own or span.source == REPEATED_SOURCE):
            remaining.append(span)
            continue
        text = texts[span.text]
        if text not in cache:
            cache[text] = compute_regions(text)
        cut = _cut_stamps(_read_address(span, text), text, cache[text])
        if cut is not None and not _is_nobody(cut, text, cache[text]):
            remaining.append(_mark_host(cut, text, cache[text]))
    return remaining


def _read_address(span: Span, text: str) -> Span:
    """Reads four numbers with stops as an address of the internet, whose digits fit by chance."""
    if span.type == "NATIONAL_ID" and _INTERNET.fullmatch(text, span.start, span.end):
        return span._replace(type="IP")
    return span


def _cut_stamps(span: Span, text: str, regions: Regions) -> Span | None:
    """Cuts the time of a line out of a number; None if nothing else is left."""
    if span.type not in _NUMBERED and not (
        span.is_guess and span.type in ("PERSON", "HANDLE", "DATE")
    ):
        return span
    at = bisect_left(regions.stamps, span.start, key=lambda stamp: stamp[1] - 1)
    while at < len(regions.stamps) and regions.stamps[at][0] < span.end:
        start, end = regions.stamps[at]
        if start > span.start:
            value = text[span.start : start].rstrip(" \t[(-,;|")
            return span._replace(end=span.start + len(value)) if value else None
        value = text[end : span.end].lstrip(" \t])-,;|:.")
        if not value or end >= span.end:
            return None
        span = span._replace(start=span.end - len(value))
        at += 1
    return span


def _is_nobody(span: Span, text: str, regions: Regions) -> bool:
    """True if a span names nobody where it stands."""
    value = text[span.start : span.end]
    is_repeated = span.source == REPEATED_SOURCE
    if span.is_guess or is_repeated:
        if span.type in (*NAMES, "HANDLE") and value.lower() in regions.programs:
            return True
        if span.is_guess and (
            (text[span.end : span.end + 1] == "(" and _CALL.fullmatch(value))
            or _is_in_constant(span, text)
            or _is_digest(span, text, value)
        ):
            return True
    if _is_compound(span, value) and any(part.kind == CODE for part in regions.parts):
        return True
    kind = regions.find_kind(span.start, span.end)
    if kind == CODE:
        is_word = span.is_guess or is_repeated or span.type == "HANDLE"
        return is_word and span.source != "structure" and span.type in _NAMING
    if kind != LOG:
        return False
    if span.source == "structure":
        return span.type == "SECRET" and _OBJECT.match(value) is not None
    if span.type in _NUMBERED or span.type == "DATE":
        return not is_repeated and not _is_number(span, text, value)
    if span.type not in (*NAMES, "HANDLE"):
        return False
    if _is_of_program(span, text, value):
        return True
    if is_repeated:
        return False
    return not (_is_user_name if span.type == "HANDLE" else _is_name)(span, text, value)


def _is_compound(span: Span, value: str) -> bool:
    """True if a user name is ordinary words with hyphens: `real-world`."""
    return (
        span.type == "HANDLE"
        and span.score < SURE
        and "-" in value
        and all(map(is_ordinary, value.split("-")))
    )


def _is_in_constant(span: Span, text: str) -> bool:
    """True if a guess is the name of a constant, or a part of it: SENTRY_AUTH_TOKEN."""
    before = _CONSTANT_BEFORE.search(text, max(0, span.start - MAX_KEY_CHARACTERS), span.start)
    behind = _CONSTANT.match(text, span.start)
    name = before[0] + behind[0] if before and behind and behind.end() >= span.end else ""
    if "_" not in name:
        return False
    is_longer = len(name) > span.end - span.start
    return (is_longer and (is_secret(name) or classify_key(name) is not None)) or all(
        map(is_ordinary, name.strip("_").lower().split("_"))
    )


def _is_digest(span: Span, text: str, value: str) -> bool:
    """True if a guess is a digest, or a package with its version."""
    if span.type in _NAMING and _VERSIONED.fullmatch(value):
        return True
    return (
        span.type in _NUMBERED
        and _DIGEST.fullmatch(value.lstrip("#")) is not None
        and _DIGEST_BEFORE.search(
            text[max(0, span.start - 90) : span.start] + value[: value.startswith("#")]
        )
        is not None
    )


def _find_key(text: str, start: int) -> tuple[str | None, str]:
    """Finds the kind of value that the key before a place announces, and the sign behind it."""
    key = _KEY_BEFORE.search(text[text.rfind("\n", 0, start) + 1 : start][-_MAX_KEY:])
    if key is None or (key[2].isspace() and "." in key[1]):  # a class, and what it says
        return None, ""
    return ("secret" if is_secret(key[1]) else classify_key(key[1])), key[2]


def _is_number(span: Span, text: str, value: str) -> bool:
    """True if a number in a log line is somebody's."""
    if span.type == "DATE":  # or part of an identifier: job_200811092030_0001
        return not (span.is_guess and "_" in text[max(0, span.start - 1) : span.start])
    if not any(map(str.isalnum, value)) or _OBJECT.match(value) or _ADDRESS.fullmatch(value):
        return False
    kind, sign = _find_key(text, span.start)
    # A word behind a blank is a key only if it announces a number: not `block 7`, `from 7`.
    if kind is not None and not (sign.isspace() and kind in _KINDS_OF_WORDS):
        return True
    if _IDENTIFIER.match(value) or _LINE_OF.match(value):
        return False
    if _JOINED.search(text[max(0, span.start - 2) : span.start]) or _UUID.search(value):
        return False
    if span.type == "PHONE" and (_PHONE.fullmatch(value) or not span.is_guess):
        return _PHONE.fullmatch(value) is not None
    if span.is_guess:
        is_word = span.type == "SECRET" and not _HEXADECIMAL.fullmatch(value)
        return span.score >= (SURE_NAME if is_word else SURE) and any(map(str.isdigit, value))
    if span.type == "CARD":
        return (
            _CARD.fullmatch(value) is not None
            and not text[span.end : span.end + 2].strip(" -").isdigit()
        )
    return span.type in ("ID", "SECRET")


def _is_of_program(span: Span, text: str, value: str) -> bool:
    """True if a name in a log line is a class, module, process or version of a program."""
    if not _IDENTIFIER.fullmatch(value):
        behind = _PROGRAM_BEHIND.match(text, span.end) or _PROGRAM_BEFORE.search(
            text[max(0, span.start - MAX_KEY_CHARACTERS) : span.start] + value[:1]
        )
        return value.isascii() and behind is not None and not _is_known_name(value)
    return _find_key(text, span.start)[0] is None


def _is_known_name(value: str) -> bool:
    return value.lower() in lexicon.read_lists()[0] and not is_ordinary(value)


def _is_name(span: Span, text: str, value: str) -> bool:
    """True if a name in a log line can be a person's or a place's.

    The words of programs are ASCII.
    """
    if span.score >= SURE_NAME or not value.isascii() or _find_key(text, span.start)[0] is not None:
        return True
    words = value.split()
    if len(words) > 1:
        return not all(map(is_ordinary, words))
    return span.type != "ORGANIZATION" and _is_known_name(value)


def _is_user_name(span: Span, text: str, value: str) -> bool:
    """True if a word in a log line can be a user's name."""
    bare = value.lower().strip("@_.")
    if bare in GENERIC_HOSTS or bare in vocabulary.get_words("system_users"):
        return False
    if not span.is_guess:
        return True
    before = text[max(0, span.start - 90) : span.start].rpartition("\n")[2]
    if (value.isupper() and before[-1:] != "=") or _INSIDE_HOME.search(before):
        return False
    if span.score >= SURE or not is_user(value):
        return span.score >= SURE
    return (
        _find_key(text, span.start)[0] is not None
        or value.startswith("@")
        or text[span.end : span.end + 1] == "@"
        or _USER_BEFORE.search(before) is not None
        or _DOMAIN_BEFORE.search(before) is not None
    )


def _mark_host(span: Span, text: str, regions: Regions) -> Span:
    """Marks the host in a log line as private: it is whoever took part.

    A host that everybody knows is not.
    """
    host = text[span.start : span.end].partition(":")[0].lower().split(".")
    if (
        span.type not in ("URL", "HOST")
        or span.privacy_score >= PRIVACY_THRESHOLD
        or len(host) < 3
        or not _HOST.fullmatch(text, span.start, span.end)
        or regions.find_kind(span.start, span.end) != LOG
    ):
        return span
    known = vocabulary.get_words("known_domains")
    is_known = any(".".join(host[at:]) in known for at in range(len(host)))
    return span if is_known else span._replace(privacy_score=0.8)
