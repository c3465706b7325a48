"""Quoting: the string and language around a place, and escaping for it.

In: the answer, piece by piece, as it is written. Out: `Place`s; originals as they must be written
at them.
Not here: which keys are looked for in the answer (`restore`), and targets of links (`link_targets`).

Strings are followed where the language is certain: in fenced code, in JSON, and in lines that are
code by their form. Elsewhere nothing opens a string, so that apostrophes in prose do not. JSON in a
string of JSON is followed, too.
"""

import html
import json
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Self

from textveil.text import LazyPattern

CONTEXT_CHARACTERS = 48
"""Characters before a place that may decide its kind."""

PROSE_KIND = "prose"
UNCLEAR_KIND = "unclear"
"""Kind of a place with quotes or code in an unknown language."""
MARKUP_QUOTES = {"markup": "", 'markup "': '"', "markup '": "'"}
"""Kinds of places in XML and HTML, with the attribute's quotation mark.

Entities are read there.
"""

LINE_START_CHARACTERS = 200
"""Characters at a line's start that may decide its language."""

MAX_BUFFER_CHARACTERS = 1 << 14
"""Characters that are buffered before they are scanned."""

MAX_STRING_DEPTH = 3
"""Depth to which strings in strings of JSON are followed."""

FENCE_LANGUAGES = {
    **dict.fromkeys(("json", "jsonc", "json5", "jsonl", "ndjson", "geojson", "ipynb"), "json"),
    **dict.fromkeys(("python", "py", "python3", "py3", "pycon", "ipython"), "python"),
    **dict.fromkeys(
        ("javascript", "js", "jsx", "mjs", "cjs", "typescript", "ts", "tsx", "node"), "javascript"
    ),
    **dict.fromkeys(("shell", "sh", "bash", "zsh", "ksh", "dash", "dotenv", "env"), "shell"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
}
"""Languages whose strings are followed, by their names in code fences."""


class Literal(NamedTuple):
    """A kind of string.

    Args:
        language: language of the code that contains it.
        prefix: letters before its quotation marks that change it (`r`, `f`), or `flow` in YAML.
        quote: its quotation marks; "" for a word without any, "|" for a block of YAML.
    """

    language: str
    prefix: str
    quote: str

    def __str__(self) -> str:
        return f"{self.language} {self.prefix}{self.quote}"


class Place(NamedTuple):
    """Syntax around the place of an original in an answer.

    Args:
        literals: the strings around it, from the outermost; none in prose.
        unclear: True if there is no string, but no prose either.
        begins: True if a plain value of YAML begins there.
        indent: indent of the line in YAML.
    """

    literals: tuple[Literal, ...] = ()
    unclear: bool = False
    begins: bool = False
    indent: int = 0

    @property
    def kind(self) -> str:
        """The place's kind, as sessions store it."""
        return "/".join(map(str, self.literals)) or (UNCLEAR_KIND if self.unclear else PROSE_KIND)

    @property
    def is_undecided(self) -> bool:
        """True if the following text decides how an original is written.

        That is so where a value of YAML has no quotation marks.
        """
        return self.begins and len(self.literals) == 1 and self.literals[0].quote == ""


# ---- where a place is ----------------------------------------------------------------------------


class QuoteScanner:
    """Incremental scanner of an answer's strings, independent of where it is cut.

    The place depends on the text before it alone.

    Args:
        levels: depth to which strings in strings are followed.
    """

    def __init__(self, levels: int = MAX_STRING_DEPTH) -> None:
        self._levels = levels
        self._pieces: list[str] = []
        self._buffered = 0
        self._line_start = ""  # start of the line, while its scanner is undecided
        self._line: _Scanner | None = None  # scanner of the rest of the line
        self._doc: _Scanner | None = None  # scanner that continues in the next line
        self._fence = ""
        self._first = True  # no line has ended yet
        self._dashes = True  # at the start or behind ---: YAML may begin

    def feed(self, text: str) -> None:
        """Reads the next piece of the answer."""
        self._pieces.append(text)
        self._buffered += len(text)
        if self._buffered > MAX_BUFFER_CHARACTERS:
            self._flush()

    def find_place(self) -> Place:
        """Returns the place at the end of the text so far."""
        self._flush()
        if self._line is not None:
            return self._line.find_place()
        if self._doc is not None:
            probe = self._doc.copy()
            probe.feed(self._line_start)
            return probe.find_place()
        return Place(unclear=bool(self._fence) or '"' in self._line_start)

    def copy(self) -> Self:
        """Returns an independent copy at the same place."""
        twin = type(self)(self._levels)
        vars(twin).update(vars(self))
        twin._pieces = self._pieces.copy()
        twin._doc = self._doc and self._doc.copy()
        # Where both are one scanner, both copies must be one, too.
        twin._line = twin._doc if self._line is self._doc else self._line and self._line.copy()
        return twin

    def _flush(self) -> None:
        text = "".join(self._pieces)
        self._pieces, self._buffered = [], 0
        *lines, tail = text.split("\n")
        for line in lines:
            self._read_line(line, is_line_end=True)
        if tail:
            self._read_line(tail, is_line_end=False)

    def _read_line(self, text: str, *, is_line_end: bool) -> None:
        dashes = False
        if self._line is None:
            text, dashes = self._start_line(text, is_line_end)
        while self._line is not None and (text or is_line_end):
            tail = self._line.feed(text + "\n" * is_line_end)
            if tail is None:
                break
            self._line, text = _Prose(bool(self._fence)), tail.removesuffix("\n")
        if is_line_end:
            if self._line is not None:
                self._doc = self._line if self._line.can_continue() else None
            self._line, self._first, self._dashes = None, False, dashes

    def _start_line(self, text: str, is_line_end: bool) -> tuple[str, bool]:
        """Chooses the scanner of a new line from its start.

        Returns:
            The text to scan, "" while the choice is open; whether the line is ---.
        """
        self._line_start += text
        if self._first:
            self._line_start = self._line_start.removeprefix("\ufeff")
        self._line = self._choose_scanner(is_line_end)
        if self._line is None and not is_line_end:
            return "", False
        text, self._line_start = self._line_start, ""
        return text, is_line_end and text.rstrip() == "---"

    def _choose_scanner(self, is_line_end: bool) -> "_Scanner | None":
        """Returns the scanner for the held line; None while undecided or unneeded."""
        line = self._line_start + "\n" * is_line_end
        if self._can_be_fence(line, is_line_end):
            return None
        if self._doc is not None:
            return self._doc
        if not self._fence and self._dashes and _YAML_SETTING.match(line, 0, LINE_START_CHARACTERS):
            return _Yaml(lasting=False)
        start = len(line) - len(_LINE_NUMBER.sub("", line, count=1))
        if _JSON_START.match(line, start, LINE_START_CHARACTERS) or (
            is_line_end and line[start:].strip() in ("{", "[")
        ):
            return _Code("json", self._levels, strict=True)
        return self._choose_by_marks(line, start, is_line_end or len(line) >= LINE_START_CHARACTERS)

    def _can_be_fence(self, line: str, is_line_end: bool) -> bool:
        """Says whether the line is a fence, or may yet become one."""
        fence = (
            _FENCE_LINE.fullmatch(self._line_start, partial=not is_line_end)
            if len(line) <= LINE_START_CHARACTERS
            else None
        )
        return fence is not None and (not is_line_end or self._toggle_fence(fence[1], fence[2]))

    def _choose_by_marks(self, line: str, start: int, full: bool) -> "_Scanner | None":
        """Chooses the scanner by the line's first quotation mark; see `_choose_scanner`."""
        key = _QUOTED_KEY.match(line, start, LINE_START_CHARACTERS, partial=not full)
        if key is not None:
            return (
                None if key.partial else _Code("json" if key[1] == '"' else "python", self._levels)
            )
        mark = _QUOTE_MARK.search(line, start, LINE_START_CHARACTERS)
        if mark is None:
            return _Prose(bool(self._fence)) if full else None
        language = _guess_language(line[start : mark.start()], mark[0])
        if language is None:
            return _Prose(bool(self._fence))
        return _Yaml() if language == "yaml" else _Code(language, self._levels)

    def _toggle_fence(self, marks: str, name: str) -> bool:
        """Opens or closes a fence; False if the line does neither."""
        if self._fence:
            if name.strip() or not marks.startswith(self._fence):
                return False
            self._fence, self._doc = "", None
            return True
        if "`" in name:
            return False
        self._fence = marks
        language = FENCE_LANGUAGES.get(_NAME_END.split(name.strip().lower().lstrip("{."))[0])
        self._doc = _Yaml(lasting=True) if language == "yaml" else None
        if language not in (None, "yaml"):
            self._doc = _Code(language, self._levels, lasting=True)
        return True


_FENCE_LINE = LazyPattern(r"(?:[ \t>]|[-*+][ ]|\d{1,3}[.)][ ])*+(`{3,}+|~{3,}+)([^\n]*)")
_NAME_END = re.compile(r"[^\w+#-]")
_LINE_NUMBER = re.compile(r"\A(?:[ \t]*\d{1,6}(?:→|\t|[:|]\s))?[+-]?")
_JSON_START = re.compile(r"""\s*(?:\{\s*["}] | \[\s*["{\[\]\d])""", re.VERBOSE)
_QUOTED_KEY = LazyPattern(r"""\s*+(["'])(?:[^"'\\\n]|\\.)*+\1\s*+:""")
_QUOTE_MARK = re.compile(r"[\"'`]")
_YAML_SETTING = re.compile(r"(?:- )?[a-z_][\w.\-]*:\s")

_LINE_FORMS: Sequence[tuple[str, str, re.Pattern[str]]] = [
    (language, marks, re.compile(rf"\s*(?:{pattern})\Z", re.VERBOSE))
    for (language, marks), patterns in {
        ("shell", "\"'"): (
            r"(?:export\s+)?[A-Z_][A-Z0-9_]*= | \$[ ].*[\s=]",
            r"(?:sudo\s+)?(?:echo|curl|git|ssh|scp|docker|kubectl|psql|mysql|printf|wget|npm|pip|export|grep|sed|chmod"
            r"|mkdir|aws|gh)\s(?:[^.?!,]|[.?!,]\S)*(?<=[\s=])\$?",
        ),
        ("javascript", "\"'`"): (
            r"(?:export\s+)?(?:const|let|var)\s+[\w$]+\s*(?::\s*[\w<>\[\]|]+\s*)?=[^.?!]*(?<!\w)",
            r"(?:console\.\w+|document\.[\w.]+|require)\([^)]*(?<!\w)",
        ),
        ("javascript", "`"): (r"(?:return|throw|await)?\s*[\w$.]*\s*(?:\(|=|:)[^.?!]*",),
        ("javascript", "\"'"): (r"import\b.*\bfrom\s+",),
        ("python", "\"'"): (
            r"(?:>>>[ ])?(?:async[ ]def|def|class)\s+\w+\(.*(?<!\w)(?:[rfbu]{0,2})",
            r"(?:>>>[ ])?(?:if|elif|while|assert)\s+[^.?!,]*(?:==|!=|\()\s*(?:[rfbu]{0,2})",
            r"(?:>>>[ ])?(?:return|yield|raise|await)\s+(?:[\w.]+\()?[({\[]*(?:[rfbu]{0,2})",
            r"(?:>>>[ ])?(?:(?:await|return|yield|with)\s+)?@?[A-Za-z_][\w.]*\((?:[\w.,=:+\[{(\s]*(?<!\w))?[rfbu]{0,2}",
            r"(?:>>>[ ])?[A-Za-z_][\w.\[\]]*\s*(?::\s*[\w\[\], |.]+)?\s*[+:]?=\s*"
            r"(?:[\w.,=:+\[{(\s]*(?<!\w))?[rfbu]{0,2}",
        ),
        ("yaml", "\"'"): (r"(?:-[ ])?[a-z_][\w.\-]*:[ \t]+",),
    }.items()
    for pattern in patterns
]
"""Forms of code lines before their first quotation mark.

The language, the marks that may follow, the pattern.
"""


def _guess_language(header: str, mark: str) -> str | None:
    """Returns the evident language of a line, by its first quotation mark."""
    return next(
        (name for name, marks, form in _LINE_FORMS if mark in marks and form.match(header)), None
    )


class _Scanner(ABC):
    """Base of scanners, which read text in one language."""

    def copy(self) -> Self:
        """Returns a copy at the same place."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    @abstractmethod
    def feed(self, text: str) -> str | None:
        """Reads text; returns the rest that is in no such language.

        None where all of it is in the language.
        """

    @abstractmethod
    def find_place(self) -> Place:
        """Returns the place at the end of the text so far."""

    def can_continue(self) -> bool:
        """Says whether the next line is in the language, too."""
        return False


class _Prose(_Scanner):
    """Scanner of a line of prose, in which nothing opens a string."""

    def __init__(self, is_fenced: bool) -> None:
        self._is_fenced, self._quote_count = is_fenced, 0

    def feed(self, text: str) -> str | None:
        self._quote_count += text.count('"')
        return None

    def find_place(self) -> Place:
        return Place(unclear=self._is_fenced or self._quote_count % 2 == 1)


class _Region(NamedTuple):
    """An open string, comment, or code in a string.

    Args:
        literal: the string; None for comments and code.
        end_mark: end mark of a comment or of code in a string.
        depth: number of open brackets in code in a string.
    """

    literal: Literal | None
    end_mark: str = ""
    depth: int = 0


class _Code(_Scanner):
    """Scanner of JSON, Python, JavaScript or shell code.

    Args:
        language: language of the code.
        levels: depth to which strings in strings are followed.
        strict: True if JSON ends where its brackets are closed, or where something is no JSON.
        lasting: True if all further lines are code, and not only those of an open string.
    """

    def __init__(
        self, language: str, levels: int, *, strict: bool = False, lasting: bool = False
    ) -> None:
        self.language, self._levels = language, levels
        self._strict, self._lasting = strict, strict or lasting
        self._open: list[_Region] = []
        self._pending = ""  # text that may become a longer mark
        self._last_char = ""  # the last character that was no space, in code
        self._depth = 0
        self._inner: QuoteScanner | None = None
        self._here: list[str] = []  # end marks of here-documents that begin in the next line

    def copy(self) -> Self:
        twin = super().copy()
        twin._open, twin._here = self._open.copy(), self._here.copy()
        twin._inner = self._inner and self._inner.copy()
        return twin

    @property
    def _top(self) -> _Region:
        """The innermost open string, comment or code."""
        return self._open[-1] if self._open else _Region(None)

    def can_continue(self) -> bool:
        literal = self._top.literal
        return self._lasting or (literal is not None and literal.quote in ('"""', "'''", "`"))

    def find_place(self) -> Place:
        # On a copy, because the next piece may make a longer mark of what is pending.
        probe = self.copy()
        probe._run(final=True)
        top = probe._top
        if top.literal is not None:
            inner = probe._inner.find_place() if probe._inner is not None else Place()
            return inner._replace(literals=(top.literal, *inner.literals), unclear=False)
        if self.language == "shell" and top.end_mark in ("", ")"):
            return Place((Literal("shell", "", ""),))
        return Place(unclear=True)

    def feed(self, text: str) -> str | None:
        self._pending += text
        return self._run(final=False)

    def _run(self, *, final: bool) -> str | None:
        text, at, self._pending = self._pending, 0, ""
        while at < len(text):
            top = self._top
            mark = _compile_marks(self.language, top.literal, top.end_mark).search(text, at)
            begin = len(text) if mark is None else mark.start()
            if self._pass_text(text[at:begin], top):
                return text[at:]
            if mark is None:
                return None
            # A mark at the end may go on in the next piece; a line break cannot.
            if mark.end() == len(text) and not final and mark[0] != "\n":
                self._pending = text[begin:]
                return None
            at = mark.end()
            self._step(mark, top)
            if self._is_over(mark[0]):
                return text[at:]
        return None

    def _is_over(self, mark: str) -> bool:
        """Says whether a bracket has ended strict JSON."""
        return self._strict and not self._open and not self._depth and mark in "}]"

    def _pass_text(self, text: str, top: _Region) -> bool:
        """Reads text without marks; True if it cannot be JSON."""
        if top.literal is not None:
            if self._inner is not None:
                self._inner.feed(text)
            return False
        if top.end_mark in ("", "}", ")") and text.strip():
            self._last_char = text.rstrip()[-1]
        return self._strict and _NO_JSON.search(text) is not None

    def _step(self, match: re.Match[str], top: _Region) -> None:
        mark = match[0]
        if top.literal is not None:
            self._step_in(mark, top.literal)
        elif top.end_mark not in ("", "}", ")"):
            if mark.strip() == top.end_mark.strip() or (top.end_mark == "/" and mark == "\n"):
                self._open.pop()
                self._start_document(mark)
        else:
            self._step_code(match, top)

    def _step_in(self, mark: str, literal: Literal) -> None:
        # Line breaks are marks only in strings that cannot go beyond their line.
        if mark in (literal.quote, "\n"):
            self._open.pop()
            self._inner, self._last_char = None, '"'
        elif mark in ("${", "$(", "{"):
            self._open.append(_Region(None, ")" if mark == "$(" else "}"))
        elif self._inner is not None:
            self._inner.feed(_decode_escapes("json", mark) or "")

    def _step_code(self, match: re.Match[str], top: _Region) -> None:
        mark, groups = match[0], match.groupdict()
        last_char, self._last_char = self._last_char, mark.strip()[-1:] or self._last_char
        if mark == "\n":
            self._start_document(mark)
        elif groups.get("here"):
            self._here.append(groups["here"])
        elif groups.get("quote"):
            if literal := self._open_literal(groups["quote"], groups.get("word") or ""):
                self._start_literal(literal)
        elif mark in _COMMENT_ENDS:
            self._open.append(_Region(None, _COMMENT_ENDS[mark]))
        elif mark == "/" and last_char in _REGEX_LEADS:
            self._open.append(_Region(None, "/"))
        else:
            self._step_bracket(mark, top)

    def _open_literal(self, quote: str, word: str) -> Literal | None:
        """Returns the string that a quotation mark opens, if any."""
        if quote in ('""', "''"):  # an empty string, at the end
            return None
        if self.language == "javascript" and quote == "`":
            return Literal(self.language, "r" if word == "raw" else "", quote)
        if self.language == "python" and word.lower() in _PREFIXES:
            return Literal(self.language, "".join(sorted(set(word.lower()) - {"u"})), quote)
        if quote == "$'":
            return Literal(self.language, "$", "'")
        return Literal(self.language, "", quote) if word in _STRING_WORDS else None

    def _step_bracket(self, mark: str, top: _Region) -> None:
        step = (mark in ("{", "[", "(")) - (mark in ("}", "]", ")"))
        self._depth += step
        if mark == top.end_mark and not top.depth:
            self._open.pop()
        elif mark + top.end_mark in ("{}", "()", "}}", "))"):
            self._open[-1] = top._replace(depth=top.depth + step)

    def _start_literal(self, literal: Literal) -> None:
        self._open.append(_Region(literal))
        self._inner = (
            QuoteScanner(self._levels - 1) if literal.language == "json" and self._levels else None
        )

    def _start_document(self, mark: str) -> None:
        """Begins the next here-document that the ended line announced."""
        if "\n" in mark and self._here:
            self._open.append(_Region(None, f"\n{self._here.pop(0)}\n"))


_PREFIXES = ("", "r", "b", "u", "f", "t", "br", "rb", "fr", "rf", "tr", "rt")
_STRING_WORDS = ("", "return", "case", "typeof", "in", "of", "await", "yield")
"""Words before a quotation mark that still let it open a string."""
_COMMENT_ENDS = {"#": "\n", "//": "\n", "/*": "*/"}
"""End marks of comments, by their beginning."""
_REGEX_LEADS = ("", *"(,=:[!&|?{};+-*%~^")
_NO_JSON = re.compile(r"[^\w\s{}\[\],:.+\-<>→]")


def _is_one_line(literal: Literal) -> bool:
    script = literal.language in ("python", "javascript")
    return literal.language == "json" or (script and literal.quote in ("'", '"'))


@lru_cache
def _compile_marks(language: str, literal: Literal | None, end_mark: str) -> re.Pattern[str]:
    """Returns the pattern of marks in a string, comment or code."""
    if literal is not None:
        return re.compile("|".join(_list_string_marks(literal)), re.DOTALL)
    if len(end_mark) > 1 and end_mark[0] == "\n":  # a here-document: line by line
        return re.compile(r"[^\n]*\n|[^\n]+\Z")
    return _REGION_MARKS.get(end_mark) or _CODE_MARKS[language]


def _list_string_marks(literal: Literal) -> Iterator[str]:
    quote = re.escape(literal.quote[-1])
    yield rf"{quote}{{3}}|{quote}{{1,2}}\Z" if len(literal.quote) == 3 else quote
    if literal != Literal("shell", "", "'"):
        yield r"\\(?:u[0-9a-fA-F]{0,4}|.)?" if literal.language == "json" else r"\\.?"
    if "f" in literal.prefix or "t" in literal.prefix:
        yield r"\{\{|\{"
    if literal.quote == "`":
        yield r"\$\{|\$\Z"
    if literal == Literal("shell", "", '"'):
        yield r"\$\(|\$\Z"
    if _is_one_line(literal):
        yield r"\n"


_REGION_MARKS = {
    "/": re.compile(r"\\.?|\[(?:\\.|[^\]\\\n])*\]?|/|\n", re.DOTALL),
    "*/": re.compile(r"\*/|\*\Z"),
    "\n": re.compile("\n"),
}
"""Marks that matter in regular expressions and comments, by their end."""

_CODE_MARKS = {
    "json": re.compile(r"""(?P<quote>")|//|/\*|/\Z|[{}\[\]]"""),
    "python": re.compile(
        r"""\#|(?P<word>\w*)(?P<quote>\"\"\"|'''|\"\"\Z|''\Z|"|')|\w+|[{}()\[\]]"""
    ),
    "javascript": re.compile(r"""//|/\*|/|(?P<word>[\w$]*)(?P<quote>["'`])|[\w$]+|[{}()\[\]]"""),
    "shell": re.compile(
        r"""\\.?|(?<![^\s;&|()])\#|<<-?[ ]*\\?["']?(?P<here>\w+)["']?|<\Z|<<-?[ ]*["']?\w*\Z|"""
        r"""(?P<quote>\$'|["'])|\$\(|\$\Z|[{}()]|\n""",
        re.DOTALL,
    ),
}


class _Yaml(_Scanner):
    """Line scanner of YAML.

    Args:
        lasting: True if all further lines are YAML; False for only those with a form of YAML; None
            for one line.
    """

    def __init__(self, *, lasting: bool | None = None) -> None:
        self._lasting = lasting
        self._text = ""  # text of the line
        self._at = 0  # offset up to which it was scanned
        self._value = 0  # offset of the value before `_at`
        self._quote = ""  # quotation mark of an open string
        self._flow = 0  # number of open brackets
        self._block = -1  # the indent of the key of a block of text

    def can_continue(self) -> bool:
        return self._lasting is not None

    def feed(self, text: str) -> str | None:
        *lines, tail = text.split("\n")
        for i, line in enumerate(lines):
            self._text += line
            if self._lasting is False and not self._is_yaml():
                return "\n".join([self._text, *lines[i + 1 :], tail])
            self._close_line()
        self._text += tail
        return None

    def find_place(self) -> Place:
        probe = self.copy()
        probe._scan_line(final=True)
        value, indent = probe._text[probe._value :], _count_indent(self._text)
        if self._is_in_block():
            return Place((Literal("yaml", "", "|"),), indent=indent)
        if probe._quote:
            return Place((Literal("yaml", "", probe._quote),), indent=indent)
        if _YAML_COMMENT.search(value):
            return Place(unclear=True)
        begins = not value.strip() and bool(probe._value or probe._flow)
        return Place(
            (Literal("yaml", "flow" if probe._flow else "", ""),), begins=begins, indent=indent
        )

    def _is_in_block(self) -> bool:
        return self._block >= 0 and (
            not self._text.strip() or _count_indent(self._text) > self._block
        )

    def _is_yaml(self) -> bool:
        if self._quote or self._flow or self._is_in_block():
            return True
        return _YAML_LINE.match(self._text) is not None

    def _close_line(self) -> None:
        self._scan_line(final=True)
        if self._block >= 0 and not self._is_in_block():
            self._block = -1
        if self._block < 0 and not self._quote and _YAML_BLOCK.search(self._text):
            self._block = _count_indent(self._text)
        self._text, self._at, self._value = "", 0, 0

    def _scan_line(self, *, final: bool) -> None:
        """Scans the line; its last character only if nothing follows it."""
        limit = len(self._text) - (not final)
        while self._at < limit and not self._is_in_block():
            if self._quote:
                self._pass_string(limit)
            else:
                self._step(limit)

    def _pass_string(self, limit: int) -> None:
        mark = _YAML_STRINGS[self._quote].search(self._text, self._at)
        self._at = limit if mark is None or mark.start() >= limit else mark.end()
        if mark is not None and self._at == mark.end() and mark[0] == self._quote:
            self._quote, self._value = "", self._at

    def _step(self, limit: int) -> None:
        text, at = self._text, self._at
        char, blank = text[at], not text[self._value : at].strip()
        if blank and char in "\"'":
            self._quote = char
        if blank or self._flow:
            self._flow = max(0, self._flow + (char in "[{") - (char in "]}"))
        self._at += 1
        if self._is_word_end(char, text[self._at : self._at + 1], blank):
            self._value = self._at
        elif char == "#" and not text[at - 1 : at].strip():
            self._value, self._at = at, limit

    def _is_word_end(self, char: str, following: str, blank: bool) -> bool:
        """Says whether a value begins behind a character."""
        if char == ":" or (char == "-" and blank):
            return following in ("", " ", "\t")
        return bool(self._flow) and char in "[{,"


def _count_indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


_YAML_BLOCK = re.compile(r"(?::|-|^)\s+[|>][-+\d]*\s*(?:\#.*)?\Z")
_YAML_COMMENT = re.compile(r"(?:\A|\s)#")
_YAML_LINE = re.compile(
    r"(?!(?:---|\.\.\.)\s*\Z)(?:\s*(?:#|\Z|-(?:\s|\Z)|[\w.\-<>\"' ]+?:(?:\s|\Z))|\s+\S)"
)
_YAML_STRINGS = {'"': re.compile(r'\\.?|"', re.DOTALL), "'": re.compile(r"''|'")}


# ---- how an original is spelled there ------------------------------------------------------------


def spell_original(
    original: str,
    place: Place,
    place_kinds: Sequence[str],
    *,
    exact: bool = False,
    is_alone: bool = False,
) -> str:
    """Writes an original at a place, escaped only if necessary.

    It stays unchanged where it means the same.

    Args:
        original: the value as it was written in the protected text.
        place: where it is put.
        place_kinds: kinds of places where it occurred, the first one first; empty where that is not
            known.
        exact: True to leave it unchanged wherever it breaks nothing: in arguments of tools, which
            may name the bytes of a file.
        is_alone: True if nothing is beside it in a plain value of YAML.
    """
    if place.kind in place_kinds:
        return original
    first_kind = next(
        (kind for kind in place_kinds if kind not in (UNCLEAR_KIND, *MARKUP_QUOTES)), None
    )
    meaning = _decode_meaning(original, first_kind)
    if not place.literals:
        return original if exact else meaning
    current = _decode_nested(place.literals, original)
    if current == meaning or (first_kind is None and current is not None):
        return original
    text = meaning
    for literal in reversed(place.literals):
        text = _write_literal(literal, text, place, is_alone=is_alone)
    return text


def _decode_meaning(original: str, kind: str | None) -> str:
    """Decodes a value by its first place; unchanged if undecodable there."""
    text = _decode_nested(_parse_literals(kind), original)
    return original if text is None else text


def find_markup_kind(prefix: str) -> str:
    """Returns the kind of a place in XML or HTML.

    The argument is the text before it, at most `CONTEXT_CHARACTERS` characters.
    """
    attribute = _ATTRIBUTE.search(prefix)
    return f"markup {attribute[1]}" if attribute else "markup"


def escape_entities(original: str, kind: str, place_kinds: Sequence[str]) -> str:
    """Writes an original with entities, unchanged if the document stays intact.

    Args:
        original: the value as it was written in the protected text.
        kind: kind of the place (`find_markup_kind`).
        place_kinds: kinds of places where it occurred.
    """
    if kind in place_kinds:
        return original
    if _NO_MARKUP.search(original):
        return html.escape(original)
    return original.replace(MARKUP_QUOTES[kind], html.escape(MARKUP_QUOTES[kind]))


_ATTRIBUTE = re.compile(r"""=\s*(["'])(?:(?!\1)[^<>])*\Z""")
_NO_MARKUP = re.compile(r"<|&(?!#?\w+;)")


def is_plain(original: str) -> bool:
    """Says whether a value is written alike everywhere; quick, never wrongly True."""
    return _SPECIAL_TEXT.search(original) is None


def is_place_sensitive(original: str, kind: str) -> bool:
    """Says whether a value's occurrence at this kind of place is stored.

    It is where the value could be written differently elsewhere.
    """
    if kind in MARKUP_QUOTES:
        return escape_entities(original, kind, ()) != original
    return not is_plain(original) and (
        kind not in (PROSE_KIND, UNCLEAR_KIND) or _ESCAPE_MARKS.search(original) is not None
    )


_SPECIAL_TEXT = re.compile(
    r"[^\w .,@+/=~:\-]|:(?:\s|\Z)|\A[^\w./+]|\s\Z|\A\s|[\x00-\x1f\x7f\x85\u2028\u2029]"
)
_ESCAPE_MARKS = re.compile(r"[\\{}]|''")
"""Characters that a language may read as escapes."""


def _parse_literals(kind: str | None) -> list[Literal]:
    if kind in (None, PROSE_KIND):
        return []
    literals = []
    for part in kind.split("/"):
        language, form = part.split(" ", 1)
        match = re.fullmatch(r"(flow|\$|[a-z]*)(.*)", form, re.DOTALL)
        assert match is not None
        literals.append(Literal(language, match[1], match[2]))
    return literals


def _decode_nested(literals: Sequence[Literal], text: str) -> str | None:
    """Decodes a text through nested strings; None where it breaks one."""
    value: str | None = text
    for literal in literals:
        value = None if value is None else _decode_literal(literal, value)
    return value


def _decode_literal(literal: Literal, text: str) -> str | None:
    language, prefix, quote = literal
    if quote in ("", "|"):
        return _decode_bare(literal, text)
    if quote == "'" and not prefix and language in _APOSTROPHES:
        return _decode_doubled(language, text)
    bare = re.sub(r"(?s)\\.", "", text)
    if _compile_breaks(literal).search(bare):
        return None
    if "f" in prefix:
        if re.search(r"[{}]", re.sub(r"\{\{|\}\}", "", bare)):
            return None
        text = text.replace("{{", "{").replace("}}", "}")
    if "r" in prefix:
        return None if quote[0] in text else text
    return _decode_escapes(language + prefix.strip("bfut"), text)


_APOSTROPHES = {"yaml": "''", "shell": r"'\''"}
"""Escapes of an apostrophe in single-quoted strings without further escapes."""


def _decode_doubled(language: str, text: str) -> str | None:
    escape = _APOSTROPHES[language]
    broken = "'" in text.replace(escape, "") or (language == "yaml" and "\n" in text)
    return None if broken else text.replace(escape, "'")


@lru_cache
def _compile_breaks(literal: Literal) -> re.Pattern[str]:
    """Returns the pattern of what breaks a string, escapes removed."""
    language, prefix, quote = literal
    breaks = [r"\\\Z", re.escape(quote)]
    if len(quote) == 3:
        breaks.append(re.escape(quote[0]) + r"\Z")
    if language in ("json", "yaml") or _is_one_line(literal):
        breaks.append(r"[\x00-\x1f]" if language == "json" else r"[\n\r]")
    if quote == "`":
        breaks.append(r"\$\{")
    if language == "shell" and not prefix:
        breaks.append("[$`]")
    return re.compile("|".join(breaks))


def _decode_bare(literal: Literal, text: str) -> str | None:
    if literal.quote == "|":
        return None if "\n" in text else text
    if literal.language == "shell":
        broken = re.search(r"""["'`$&|;<>()*?\[\]#!{}\n\\]""", re.sub(r"\\[^\n]", "", text))
        return None if broken else re.sub(r"\\(.)", r"\1", text)
    flow = r"|[,\[\]{}]" if literal.prefix else ""
    broken = re.search(
        rf"""\A[,\[\]{{}}#&*!|>'"%@`]|\A[-?:](?:\s|\Z)|:(?:\s|\Z)|\s\#|\A\s|\s\Z|[\x00-\x1f\x7f]{flow}""",
        text,
    )
    return None if broken else text


def _write_literal(literal: Literal, text: str, place: Place, *, is_alone: bool) -> str:
    """Escapes a text for a string."""
    language, prefix, quote = literal
    if language == "json":
        return json.dumps(text, ensure_ascii=False)[1:-1]
    if language == "yaml":
        return _write_yaml(quote, text, place, is_alone=is_alone)
    if language == "shell" and not prefix:
        return _write_shell(quote, text)
    if "f" in prefix:
        text = re.sub(r"[{}]", r"\g<0>\g<0>", text)
    if "r" in prefix:
        return _write_raw(literal, text)
    if quote == "`":
        return re.sub(r"\\|`|\$(?=\{)", r"\\\g<0>", text)
    multiline = r"" if len(quote) == 3 else r"\n"
    return _escape_breaks(rf"[\\{quote[0]}{multiline}\x00-\x08\x0b-\x1f\x7f]", text)


def _write_yaml(quote: str, text: str, place: Place, *, is_alone: bool) -> str:
    if not quote:
        return (
            f'"{_escape_breaks(_YAML_BREAKS, text)}"' if is_alone and place.is_undecided else text
        )
    if quote == "|":
        return text.replace("\n", "\n" + " " * place.indent)
    if quote == '"':
        return _escape_breaks(_YAML_BREAKS, text)
    # YAML folds a single line break in quotes to a space.
    return text.replace("'", "''").replace("\n", "\n\n" + " " * (place.indent + 4))


def _write_shell(quote: str, text: str) -> str:
    if quote == "'":
        return text.replace("'", r"'\''")
    special = r'["\\$`]' if quote else r"""["'`$&|;<>()*?\[\]#!{}\\]"""
    result = re.sub(special, r"\\\g<0>", text)
    # A backslash before a line break would remove it.
    return result if quote else result.replace("\n", "$'\\n'")


_YAML_BREAKS = r'[\\"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]'


def _escape_breaks(breaks: str, text: str) -> str:
    def escape_char(match: re.Match[str]) -> str:
        char = match[0]
        if char in _ESCAPE_LETTERS:
            return "\\" + _ESCAPE_LETTERS[char]
        if char.isprintable():
            return "\\" + char
        return f"\\x{ord(char):02x}" if char < "\x80" else f"\\u{ord(char):04x}"

    return re.sub(breaks, escape_char, text)


_ESCAPE_LETTERS = {"\n": "n", "\r": "r", "\t": "t"}


def _write_raw(literal: Literal, text: str) -> str:
    """Writes a text in raw strings.

    A character that would end the string is put in a second string beside it.
    """
    script = literal.language == "javascript"
    quote = literal.quote[0]
    line_break = "" if len(literal.quote) == 3 else r"|\n"
    breaks = r"`|\$(?=\{)|\\\Z" if script else rf"{quote}|\\\Z{line_break}"

    def replace_char(match: re.Match[str]) -> str:
        other = json.dumps(match[0]) if match[0] != '"' else "'\"'"
        if script:
            return f"${{{other}}}"
        return f"{literal.quote} {other} {literal.prefix}{literal.quote}"

    return re.sub(breaks, replace_char, text)


_ESCAPE = re.compile(
    r"""\\(?: x(?P<x>[0-9a-fA-F]{2}) | u(?P<u>[0-9a-fA-F]{4}) | U(?P<U>[0-9a-fA-F]{8}) | u\{(?P<b>[0-9a-fA-F]{1,6})\}
    | N\{(?P<N>[^}\n]{1,80})\} | (?P<o>[0-7]{1,3}) | (?P<letter>.) )""",
    re.VERBOSE | re.DOTALL,
)
_COMMON_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTE_ESCAPES = {char: char for char in "\\\"'"}
_RARE_ESCAPES = {"a": "\a", "v": "\v", "\n": ""}
_ESCAPE_RULES: dict[str, tuple[str, dict[str, str], str]] = {
    "json": ("u", {**_COMMON_ESCAPES, '"': '"', "\\": "\\", "/": "/"}, "none"),
    "python": ("xuUNo", {**_COMMON_ESCAPES, **_QUOTE_ESCAPES, **_RARE_ESCAPES}, "none"),
    "javascript": ("xubo", {**_COMMON_ESCAPES, "v": "\v", "\n": ""}, "dropped"),
    "yaml": (
        "xuU",
        {
            **_COMMON_ESCAPES,
            **_RARE_ESCAPES,
            '"': '"',
            "\\": "\\",
            "/": "/",
            "e": "\x1b",
            "0": "\0",
            " ": " ",
            "\t": "\t",
        }
        | {"N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"},
        "none",
    ),
    "shell": ("", {"$": "$", "`": "`", '"': '"', "\\": "\\", "\n": ""}, "kept"),
    "shell$": (
        "xuUo",
        {
            **_COMMON_ESCAPES,
            **_QUOTE_ESCAPES,
            "a": "\a",
            "v": "\v",
            "e": "\x1b",
            "E": "\x1b",
            "?": "?",
        },
        "kept",
    ),
}
"""Escapes by language: numeric forms, letters, and unknown ones.

The last entry says what becomes of the backslash before any other character: kept, dropped, or none
allowed.
"""


def _decode_escapes(language: str, text: str) -> str | None:
    """Decodes backslash escapes; None where one is unknown to the language."""
    if "\\" not in text:
        return text
    forms, letters, fallback = _ESCAPE_RULES[language]
    parts, at = [], 0
    for match in _ESCAPE.finditer(text):
        char = _decode_escape(match, forms, letters, fallback)
        if char is None:
            return None
        parts += [text[at : match.start()], char]
        at = match.end()
    result = "".join([*parts, text[at:]])
    try:  # joins surrogate pairs
        return result.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return result


def _decode_escape(
    match: re.Match[str], forms: str, letters: dict[str, str], fallback: str
) -> str | None:
    form = match.lastgroup or ""
    if form in forms:
        try:
            if form == "N":
                return unicodedata.lookup(match["N"])
            return chr(int(match[form], 8 if form == "o" else 16))
        except (KeyError, ValueError, OverflowError):
            return None
    letter, tail = match[0][1], match[0][2:]
    if letter in letters:
        return letters[letter] + tail
    return {"kept": match[0], "dropped": letter + tail}.get(fallback)
