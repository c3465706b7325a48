"""Words: text to words with their places, and released words back to text.

In: texts. Out: `Tokens` (secret: words and spans), `Released` (public: items, gaps, mask), the public words.
Not here: which words are protected (`protect`), rows of a table and pieces of words (`table`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from textveil.errors import InputError

Casing = Literal["lower", "title", "upper"]
Ints = npt.NDArray[np.int64]

# Scripts with rules of their own: without spaces between words, or often close to Latin words and digits.
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー\uFF70"
_START = rf"[[a-zA-Z0-9\p{{L}}\p{{M}}\p{{N}}]--[{_CJK}]]"
# ZWNJ and ZWJ shape the letters around them (Persian, Indic scripts): a word may hold them, but not begin so.
_INNER = rf"[[a-zA-Z0-9\p{{L}}\p{{M}}\p{{N}}\u200C\u200D]--[{_CJK}]]"
_LETTER = rf"[\p{{L}}--[{_CJK}]]"
_MARKS = r"\p{M}\u200C\u200D"
_LOCAL = rf"[{_INNER}._%+'\-]"
_LABEL = rf"{_INNER}++ (?: -++{_INNER}++ ){{0,16}}+"
_SEPARATOR = r"[.,:/'’٫٬\-]"
_URL_END = r"[.,;:!?'*_~|{}\[\]…]"
_URL = rf"[^\s<>\"`“”‘’«»()\u3000-\u303F\uFF00-\uFF65.,;:!?'*_~|{{}}\[\]…{_CJK}]"
_BRACKETED = r"\( [^\s()<>\"]*+ \)"

# Each match is (whitespace before, word); at the end of the text the word is empty. Every loop is possessive,
# and no alternative can fail again and again over the same long run, so the time is linear in the text. Loops
# over groups are bounded as well, because the package stores every round and would run out of its memory:
# an address or number with more parts than that is cut.
_PATTERN = regex.compile(
    rf"""(?V1x)
    ( \s*+ )
    (
      # a shortcut with the outcome of the rules below: plain letters that end at once
      [A-Za-z]++ (?= [\ \n,;)] | \.[\ \n] )
      # address of a page; brackets in pairs belong to it, punctuation at its end does not
    | (?: [A-Za-z][A-Za-z0-9+\-]{{0,30}}+ :// | [wW]{{3}}\. )
      (?: {_URL}++ | {_URL_END}++ (?= {_URL} | {_BRACKETED} ) | {_BRACKETED} ){{1,1000}}+
      # e-mail address
    | {_START}{_INNER}*+ {_LOCAL}{{0,64}}+ @ {_LABEL} (?: \. {_LABEL} ){{1,16}}+
      # number with inner separators; not from the middle of a chain that is glued to letters
    | (?<! \p{{Nd}}{_SEPARATOR} ) \p{{Nd}}++ (?: {_SEPARATOR}\p{{Nd}}++ ){{1,1000}}+ (?! {_INNER} )
      # possessive clitic of the word before it
    | ['’] (?<= {_INNER}['’] ) [sS] (?! {_INNER} )
      # the contractions of the public list that end like a possessive
    | (?: [iI][tT] | [sS][hH][eE] ) ['’][sS] (?! {_INNER} )
      # word: letters, marks, digits, and apostrophes between letters
    | {_START}{_INNER}*+
      (?: ['’] (?<= [\p{{L}}\p{{M}}]['’] ) (?! [sS](?!{_INNER}) ) (?= {_LETTER} ) {_INNER}++ ){{0,1000}}+
    | \p{{Han}} [{_MARKS}]*+
    | [\p{{Hiragana}}ー\uFF70] [\p{{Hiragana}}ー\uFF70{_MARKS}]*+
    | \p{{Katakana}} [\p{{Katakana}}ー\uFF70\uFF9E\uFF9F{_MARKS}]*+
    | \p{{Hangul}} [\p{{Hangul}}{_MARKS}]*+
      # flag; by hand, because \X looks back over all flags before it and takes quadratic time over a long run
    | [\U0001F1E6-\U0001F1FF]{{1,2}}+ [\p{{GCB=Extend}}\p{{GCB=SpacingMark}}\u200D]*+
      # characters that Unicode attaches to the next one, here whitespace, which stays in the gap
    | \p{{GCB=Prepend}}++ (?= \s )
    | (?= \S ) \X
    | \S
    | \Z
    )
    """
)
_LONE = re.compile("[\ud800-\udfff]")
_WHITESPACE = regex.compile(r"(?V1)\s*+")


class Kind(StrEnum):
    """What an item is: a word of the table, a word as it stood (but for its casing), a placeholder, a moved number."""

    WORD = "word"
    VERBATIM = "verbatim"
    PLACEHOLDER = "placeholder"
    NUMBER = "number"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tokens:
    """The words of B texts, one after another. Secret: it holds the texts, and shows only counts.

    Args:
        texts: the B texts.
        words: the T words exactly as they stand in their texts.
        starts: int64 [T], where each word begins in its own text, in code points.
        ends: int64 [T], where it ends (exclusive).
        documents: int64 [B+1], text b has the words documents[b] up to documents[b+1].
    """

    texts: tuple[str, ...]
    words: list[str]
    starts: Ints
    ends: Ints
    documents: Ints

    def __repr__(self) -> str:
        return f"Tokens(texts={len(self.texts)}, words={len(self.words)})"

    @property
    def sizes(self) -> Ints:
        """Number of words of each text, int64 [B]."""
        sizes: Ints = np.diff(self.documents)
        return sizes

    @property
    def spaced(self) -> npt.NDArray[np.bool_]:
        """Whether whitespace stands before each word, bool [T]; so it counts for the first word of a text."""
        spaced = np.ones(len(self.words), bool)
        spaced[1:] = self.starts[1:] != self.ends[:-1]
        spaced[self.documents[:-1][self.sizes > 0]] = True
        return spaced

    def gaps(self, b: int) -> list[str]:
        """The whitespace of text b: before each of its words, and after the last (one more than words)."""
        text = self.texts[b]
        rows = slice(int(self.documents[b]), int(self.documents[b + 1]))
        begins = [0, *self.ends[rows].tolist()]
        stops = [*self.starts[rows].tolist(), len(text)]
        return [text[begin:stop] for begin, stop in zip(begins, stops, strict=True)]

    def joined(self, goes_on: npt.NDArray[np.bool_]) -> "Tokens":
        """The same texts with some words joined to the word before them, whitespace between them included.

        Args:
            goes_on: bool [T], the words that are joined to the one before; never the first word of a text.
        """
        kept = np.flatnonzero(~goes_on)
        last = np.append(kept[1:], len(self.words)) - 1
        owner = np.repeat(np.arange(len(self.texts)), self.sizes)[kept].tolist()
        starts, ends = self.starts[kept], self.ends[last]
        words = [self.words[i] for i in kept.tolist()]
        for place in np.flatnonzero(last > kept).tolist():
            words[place] = self.texts[owner[place]][int(starts[place]) : int(ends[place])]
        return Tokens(
            texts=self.texts,
            words=words,
            starts=starts,
            ends=ends,
            documents=np.searchsorted(kept, self.documents),
        )


def tokenize(texts: Sequence[str], *, first: int = 0) -> Tokens:
    """Split texts into words, the units of privacy.

    Every character that is not whitespace is in exactly one word, no word holds whitespace, and between words
    there is nothing else; so gaps and words, joined, are the text. One word each are:

    - page and e-mail addresses;
    - numbers with inner separators that are not glued to letters (12:30, 1,000.5, 2024-05-01, 555-0134);
    - runs of letters, marks and digits with inner apostrophes (don't, O'Brien); the possessive 's is a word
      of its own unless the whole is it's or she's;
    - each Han character, and each run of Hiragana, Katakana or Hangul;
    - otherwise each grapheme cluster: an emoji with all its parts, a flag, a punctuation mark.

    So hyphen and underscore separate words, a combining mark after whitespace begins a word, and invisible
    characters are words too.

    Time is linear in the text, for any text; some seconds for 10 MB.

    Args:
        texts: B strings without lone surrogates; a text without words is allowed, and so is B = 0.
        first: the number of the first text, for errors.

    Raises:
        InputError: `texts` is not a sequence of valid Unicode strings.
    """
    check_texts(texts, first=first)
    words: list[str] = []
    starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    documents = np.zeros(len(texts) + 1, np.int64)
    for b, text in enumerate(texts):
        gaps, found = zip(*_PATTERN.findall(text), strict=True)
        count = found.index("")
        lengths = np.empty(2 * count, np.int64)
        lengths[0::2] = np.fromiter(map(len, gaps), np.int64, count)
        lengths[1::2] = np.fromiter(map(len, found), np.int64, count)
        bounds = np.cumsum(lengths)
        starts.append(bounds[0::2])
        ends.append(bounds[1::2])
        words.extend(found[:count])
        documents[b + 1] = len(words)
    tokens = Tokens(
        texts=tuple(texts),
        words=words,
        starts=np.concatenate(starts),
        ends=np.concatenate(ends),
        documents=documents,
    )
    for array in (tokens.starts, tokens.ends, tokens.documents):
        array.flags.writeable = False
    return tokens


def check_texts(texts: Sequence[str], *, first: int = 0, what: str = "text") -> None:
    """Refuse what is not a sequence of valid Unicode strings.

    Args:
        texts: what is checked.
        first: the number of the first.
        what: they are called in messages.

    Raises:
        InputError: says what must hold, and the number of the text that is at fault.
    """
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Sequence):
        raise InputError(
            f"{what}s must be a sequence of strings, not {type(texts).__name__}; put a single {what} in a list"
        )
    for b, text in enumerate(texts, first):
        _check_text(b, text, what)


def _check_text(b: int, text: object, what: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"every {what} must be a string; {what} {b} is of type {type(text).__name__}; decode it first")
    if _LONE.search(text):  # found without encoding: an encoder's error would carry the whole text
        raise InputError(
            f"every {what} must be valid Unicode; {what} {b} holds a lone surrogate; "
            "read it as UTF-8, or replace what cannot be decoded"
        )


class Item(NamedTuple):
    """One released item. Public.

    Args:
        text: the released string.
        kind: where the string comes from.
        group: the label of its budget group or the type of the placeholder.
        start: first source word it stands for, counted in its own text.
        end: the source word after the last.
    """

    text: str
    kind: Kind
    group: str
    start: int
    end: int


UNKNOWN_SHARE = "share of unknown words"
"""Stands in every statement, and is computed from the private text: so it is named with the mask."""

MASK_FIELDS = (
    "length",
    "verbatim words",
    "placeholder types",
    "moved numbers",
    "dropped words",
    "equal placeholders",
    "equal words",
    "groups",
    "pieces per word",
    "casing",
    "spacing",
    UNKNOWN_SHARE,
)
"""Everything that a release can show besides its words, in the order of statements."""


@dataclass(frozen=True, kw_only=True)
class Mask:
    """What a release shows besides the released words. Public; nothing is claimed about it.

    It is computed from the private text.

    Args:
        words: number of words of the source text.
        verbatim: positions of items that are words of the text as they stood; their strings are in the items.
        placeholders: (position, type) of the placeholders.
        numbers: positions of items that are a number of the text, moved up.
        dropped: words of the source text that no item stands for.
        equal: classes of item positions that are known to stand for equal words.
        numbered: whether placeholders carry a session's numbers, which show equality within it.
        consistent: whether equal words of a group have equal releases, within the text or a session.
        drawn_groups: whether groups were drawn at random under a budget of their own: the statement covers them.
        groups: budget group of each item; None when there is only one.
        pieces: number of pieces of each protected word in the wordpiece unit; None in the word unit.
        casing: casing of each item (lower, title or upper); None when it is not re-applied.
        spacing: whether the whitespace of the source is released.
    """

    words: int
    verbatim: tuple[int, ...] = ()
    placeholders: tuple[tuple[int, str], ...] = ()
    numbers: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    equal: tuple[tuple[int, ...], ...] = ()
    numbered: bool = False
    consistent: bool = False
    drawn_groups: bool = False
    groups: tuple[str, ...] | None = None
    pieces: tuple[int, ...] | None = None
    casing: tuple[str, ...] | None = None
    spacing: bool = True

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of what is in fact released besides the words, always in the same order."""
        placeholders = {position for position, _ in self.placeholders}
        tied = set(chain.from_iterable(self.equal))
        present = (
            True,
            bool(self.verbatim),
            bool(self.placeholders),
            bool(self.numbers),
            bool(self.dropped),
            bool(tied & placeholders) or (self.numbered and bool(placeholders)),
            bool(tied - placeholders) or self.consistent,
            self.groups is not None and not self.drawn_groups,
            self.pieces is not None,
            self.casing is not None,
            self.spacing,
        )
        return tuple(name for name, is_there in zip(MASK_FIELDS, present, strict=False) if is_there)

    def to_json(self) -> dict[str, object]:
        """All of it as JSON types, with the names of `fields`; None where a part is not released."""
        return {
            "fields": list(self.fields),
            "words": self.words,
            "verbatim": list(self.verbatim),
            "placeholders": [{"item": position, "type": type_} for position, type_ in self.placeholders],
            "numbers": list(self.numbers),
            "dropped": list(self.dropped),
            "equal": [list(positions) for positions in self.equal],
            "numbered": self.numbered,
            "consistent": self.consistent,
            "drawn_groups": self.drawn_groups,
            "groups": None if self.groups is None else list(self.groups),
            "pieces": None if self.pieces is None else list(self.pieces),
            "casing": None if self.casing is None else list(self.casing),
            "spacing": self.spacing,
        }


@dataclass(frozen=True, kw_only=True)
class Released:
    """One released text. Public: all that later stages, attacks and metrics may see.

    Args:
        items: the released items in order.
        gaps: the whitespace before each item and after the last (one more than items).
        mask: what is released besides the words; it must say the truth about `items`.

    Raises:
        InputError: lengths do not fit, a gap is not whitespace, or the mask differs from the items.
    """

    items: tuple[Item, ...]
    gaps: tuple[str, ...]
    mask: Mask

    def __post_init__(self) -> None:
        count = len(self.items)
        if len(self.gaps) != count + 1:
            raise InputError(f"a release of {count} items must have {count + 1} gaps; {len(self.gaps)} were given")
        if _WHITESPACE.fullmatch("".join(self.gaps)) is None:
            raise InputError("the gaps of a release must be whitespace; put every other character in an item")
        for name, labels in (("groups", self.mask.groups), ("casing", self.mask.casing)):
            if labels is not None and len(labels) != count:
                raise InputError(f"mask.{name} must have one entry per item ({count}); {len(labels)} were given")
        # A mask that leaves something out would make the printed statement untrue.
        if self._positions(Kind.VERBATIM) != set(self.mask.verbatim):
            raise InputError("mask.verbatim must list the positions of all verbatim items and of no others")
        if self._positions(Kind.PLACEHOLDER) != {position for position, _ in self.mask.placeholders}:
            raise InputError("mask.placeholders must list the positions of all placeholders and of no others")
        if self._positions(Kind.NUMBER) != set(self.mask.numbers):
            raise InputError("mask.numbers must list the positions of all numbers that were moved and of no others")
        dropped = set(self.mask.dropped)
        if dropped and any(not dropped.isdisjoint(range(item.start, item.end)) for item in self.items):
            raise InputError("mask.dropped must list no word that an item stands for")

    def _positions(self, kind: Kind) -> set[int]:
        return {i for i, item in enumerate(self.items) if item.kind is kind}

    @property
    def text(self) -> str:
        """The released text: gaps and items in turn."""
        texts = [item.text for item in self.items]
        return "".join(chain.from_iterable(zip(self.gaps, [*texts, ""], strict=True)))

    def to_json(self) -> dict[str, object]:
        """Text, items, gaps and mask as JSON types; a source range is [start, end) in words."""
        return {
            "text": self.text,
            "items": [item._asdict() | {"kind": item.kind.value} for item in self.items],
            "gaps": list(self.gaps),
            "mask": self.mask.to_json(),
        }


@cache
def stopwords() -> frozenset[str]:
    """The public words: NLTK's 179 English stop words (as before 2024) and the 32 ASCII punctuation marks.

    Source: Bird, Klein and Loper, Natural Language Processing with Python (2009); `string.punctuation`.
    """
    data = resources.files("textveil") / "data"
    words = (data / "stopwords.txt").read_text(encoding="utf-8").split()
    marks = (data / "punctuation.txt").read_text(encoding="utf-8").split()
    return frozenset(words + marks)


@cache
def _public_spellings() -> frozenset[str]:
    listed = stopwords() | {"'s"}
    return listed | {word.replace("'", "’") for word in listed}


def is_public(word: str) -> bool:
    """Whether a word is on the public list, whatever its casing and whichever apostrophe (' or ’) it has.

    The possessive 's counts as listed, because apostrophe and s both are.
    """
    return word.lower() in _public_spellings()


def casing_of(word: str) -> Casing:
    """The casing of a word: upper (all capitals, two at least), title (the first is a capital), else lower.

    Defined for every string: one capital alone is title, and a script without case is lower.
    """
    cased = [letter for letter in word if letter.isupper() or letter.islower() or letter.istitle()]
    if not cased or cased[0].islower():
        return "lower"
    return "upper" if len(cased) > 1 and all(letter.isupper() for letter in cased) else "title"


def apply_casing(word: str, casing: str) -> str:
    """Write a word in one of the casings; title makes the first cased letter a capital and the others small.

    Raises:
        InputError: the casing is none of the three.
    """
    if casing == "lower":
        return word.lower()
    if casing == "upper":
        return word.upper()
    if casing != "title":
        raise InputError("a casing must be lower, title or upper; use what casing_of returns")
    lowered = word.lower()
    first = next((i for i, letter in enumerate(lowered) if letter.title() != letter), len(lowered))
    return lowered[:first] + lowered[first : first + 1].title() + lowered[first + 1 :]
