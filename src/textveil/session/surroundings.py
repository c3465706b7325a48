"""Surroundings: whether a place in an answer is inside a link's target, an HTML tag or a URL.

In: the answer, character by character. Out: what the place is inside of, and the text of that so far.
Not here: what is restored there (`restore`).

Whoever can make a model write `![](https://HOST/<EMAIL_1>)` must not get the address: what stands there is fetched
without being asked for. Where it is unclear what a reader of the answer takes for a target, it is one.
"""

import re
from typing import Literal, NamedTuple

_TAG_NAME = re.compile(r"[A-Za-z0-9:\-]")
_HEAD = re.compile(
    r"""(?xi) :// | (?<![:\w/])//[\w\-]{1,64}\. | www\.
    | (?:data|javascript|vbscript|mailto|tel|sms|blob|file|intent): \S
    | (?<![\w\-.])[\w\-]{1,64}(?:\.[\w\-]{1,64}){1,8}(?::\d{1,5})?[/?\#]"""
)
_SCHEME = re.compile(r"(?i)(?:data|javascript|vbscript|mailto|tel|sms|blob|file|intent):\Z")
_ENDS = re.compile(r"[<>\"\s]")
"""What ends a run."""
_OVERLAP = 700
"""Characters before those that are new in which a URL may have begun: more than `_HEAD` can take."""

_OUTSIDE, _OPENED, _NAME, _TAG, _EQUALS, _QUOTED, _BARE = range(7)


class Inside(NamedTuple):
    """What a place is inside of.

    Args:
        kind: a value of an attribute, the target of a link, or a run of characters that is a URL or a part of a tag.
        number: which one, counted in the answer for each kind.
    """

    kind: Literal["value", "link", "run"]
    number: int


class _Stretch:
    """Text since a place where something began, the text before, and how often something has begun."""

    __slots__ = ("before", "number", "text")

    def __init__(self) -> None:
        self.number = 0
        self.text: list[str] = []
        self.before: list[str] = []

    def begin(self) -> None:
        self.number += 1
        self.text, self.before = [], self.text

    def copy(self) -> "_Stretch":
        made = _Stretch()
        made.number, made.text, made.before = self.number, self.text.copy(), self.before
        return made


class Surroundings:
    """Follows an answer. Placeholders are one step of it: their brackets open no tag."""

    def __init__(self) -> None:
        self._tag = _OUTSIDE
        self._quote = ""
        self._value = _Stretch()
        self._link = _Stretch()
        self._depth = 0  # of brackets inside the target of a link; 0 outside
        self._angled = False
        self._last = ""
        self._run = _Stretch()
        self._looked = 0  # how far the run is known to have no head of a URL
        self._is_url = False

    def copy(self) -> "Surroundings":
        """Another one at the same place."""
        made = Surroundings()
        vars(made).update(vars(self))
        made._value, made._link, made._run = self._value.copy(), self._link.copy(), self._run.copy()
        return made

    def inside(self) -> Inside | None:
        """What the place is inside of; None for plain text."""
        if self._tag in (_EQUALS, _QUOTED, _BARE):
            return Inside("value", self._value.number)
        if self._depth:
            return Inside("link", self._link.number)
        if self._tag == _TAG or self._in_url():
            return Inside("run", self._run.number)
        return None

    def text(self, target: Inside) -> str:
        """What is known of the text of what the place is inside of, or was before the last step."""
        stretch = {"value": self._value, "link": self._link, "run": self._run}[target.kind]
        return "".join(stretch.text if stretch.number == target.number else stretch.before)

    def pass_key(self, text: str) -> None:
        """Step over a placeholder or name that is looked for, written as `text`."""
        if self._tag in (_OPENED, _NAME):
            self._tag = _OUTSIDE
        elif self._tag == _EQUALS:
            self._tag = _BARE
        self._keep(text)
        self._last = ""

    def pass_text(self, text: str, marks: str) -> None:
        """Step over other text.

        Args:
            text: as it is written; it is kept as that.
            marks: as it is understood: the same, or the one character that an escape stands for.
        """
        whole = text if len(marks) == 1 else ""
        for char in marks:
            self._step(char, whole or char)

    def pass_plain(self, text: str) -> None:
        """The same for characters that stand for themselves; at once where nothing begins or ends but runs."""
        if self._tag != _OUTSIDE or self._depth or "<" in text or "](" in self._last + text:
            self.pass_text(text, text)
            return
        *ended, rest = _ENDS.split(text)
        for each in ended:
            self._run.text.extend(each)
            self._run.begin()
            self._looked, self._is_url = 0, False
        self._run.text.extend(rest)
        self._last = text[-1:]

    def _step(self, char: str, text: str) -> None:
        self._follow_link(char, text)
        if char in '<>"' or char.isspace():
            self._run.begin()
            self._looked, self._is_url = 0, False
        else:
            self._run.text.append(text)
        if self._tag != _OUTSIDE or char == "<":
            self._follow_tag(char, text)
        self._last = char

    def _keep(self, text: str) -> None:
        self._run.text.append(text)
        if self._depth:
            self._link.text.append(text)
        if self._tag in (_QUOTED, _BARE):
            self._value.text.append(text)

    def _follow_link(self, char: str, text: str) -> None:
        if not self._depth:
            if char == "(" and self._last == "]":
                self._depth, self._angled = 1, False
                self._link.begin()
            return
        if char == "<" and not "".join(self._link.text[:64]).strip():
            self._angled = True
        elif self._angled:
            self._angled = char != ">" or self._last == "\\"
        elif char == "(":
            self._depth += self._last != "\\"
        elif char == ")":
            self._depth -= self._last != "\\"
        if char == "\n" and self._last == "\n":
            self._depth = 0
        if self._depth:
            self._link.text.append(text)

    def _follow_tag(self, char: str, text: str) -> None:
        state, space = self._tag, char.isspace()
        if state in (_OUTSIDE, _OPENED):
            named = state == _OPENED and char.isalpha() and char.isascii()
            self._tag = _NAME if named else _OPENED if char == "<" else _OUTSIDE
        elif state == _NAME:
            if _TAG_NAME.match(char) is None:
                self._tag = _TAG if space or char == "/" else _OPENED if char == "<" else _OUTSIDE
        elif state == _TAG:
            if char == "=":
                self._tag = _EQUALS
                self._value.begin()
            elif char == ">":
                self._tag = _OUTSIDE
        elif state == _EQUALS:
            if char in "\"'":
                self._tag, self._quote = _QUOTED, char
            elif char == ">":
                self._tag = _OUTSIDE
            elif not space:
                self._tag = _BARE
                self._value.text.append(text)
        elif (char == self._quote) if state == _QUOTED else (space or char == ">"):
            self._tag = _OUTSIDE if char == ">" and state == _BARE else _TAG
        else:
            self._value.text.append(text)

    def _in_url(self) -> bool:
        if not self._is_url and len(self._run.text) > self._looked:
            tail = "".join(self._run.text[max(0, self._looked - _OVERLAP) :])
            self._looked = len(self._run.text)
            self._is_url = _HEAD.search(tail) is not None or _SCHEME.search(tail) is not None
        return self._is_url


def maybe_inside(text: str) -> bool:
    """Whether anything in a text may be inside of something; quick, and never wrongly false."""
    return _ANY.search(text) is not None


_ANY = re.compile(r"\]\(|<[A-Za-z][A-Za-z0-9:\-]*[\s/]|//|:\S|www\.|[\w\-]\.[\w\-<]|&|\\", re.IGNORECASE)
