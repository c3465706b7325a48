"""Words: splits texts into words with their positions.

In: texts. Out: `Tokens`, which are secret.
Not here: which words are protected (`protect`), rows of a table and pieces of words (`table`).
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import regex

from textveil.errors import InputError
from textveil.randomness import Flags, Ints

# Scripts with their own rules: without spaces between words, or often next to Latin words and
# digits.
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー\uFF70"
_START = rf"[[a-zA-Z0-9\p{{L}}\p{{M}}\p{{N}}]--[{_CJK}]]"
# ZWNJ and ZWJ shape the letters around them (Persian, Indic scripts): a word may contain them, but
# not begin with them.
_INNER = rf"[[a-zA-Z0-9\p{{L}}\p{{M}}\p{{N}}\u200C\u200D]--[{_CJK}]]"
_LETTER = rf"[\p{{L}}--[{_CJK}]]"
_MARKS = r"\p{M}\u200C\u200D"
_LOCAL = rf"[{_INNER}._%+'\-]"
_LABEL = rf"{_INNER}++ (?: -++{_INNER}++ ){{0,16}}+"
_SEPARATOR = r"[.,:/'’٫٬\-]"
_URL_END = r"[.,;:!?'*_~|{}\[\]…]"
_URL = rf"[^\s<>\"`“”‘’«»()\u3000-\u303F\uFF00-\uFF65.,;:!?'*_~|{{}}\[\]…{_CJK}]"
_BRACKETED = r"\( [^\s()<>\"]*+ \)"

# Each match is (whitespace before, word); at the end of the text the word is empty. Every loop is
# possessive, and no alternative can fail repeatedly over the same long run, so the time is linear
# in the text. Loops over groups are also bounded, because the regex package stores every iteration
# and would run out of memory: an address or number with more parts is split there.
_PATTERN = regex.compile(
    rf"""(?V1x)
    ( \s*+ )
    (
      # a shortcut with the same result as the rules below: plain letters that end at once
      [A-Za-z]++ (?= [\ \n,;)] | \.[\ \n] )
      # URL; paired brackets belong to it, punctuation at its end does not
    | (?: [A-Za-z][A-Za-z0-9+\-]{{0,30}}+ :// | [wW]{{3}}\. )
      (?: {_URL}++ | {_URL_END}++ (?= {_URL} | {_BRACKETED} ) | {_BRACKETED} ){{1,1000}}+
      # e-mail address
    | {_START}{_INNER}*+ {_LOCAL}{{0,64}}+ @ {_LABEL} (?: \. {_LABEL} ){{1,16}}+
      # number with inner separators; not from the middle of a chain attached to letters
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
      # flag; spelled out, because \X looks back over all preceding flags and takes quadratic time over a long run
    | [\U0001F1E6-\U0001F1FF]{{1,2}}+ [\p{{GCB=Extend}}\p{{GCB=SpacingMark}}\u200D]*+
      # characters that Unicode attaches to the next one, here to whitespace, which stays in the gap
    | \p{{GCB=Prepend}}++ (?= \s )
    | (?= \S ) \X
    | \S
    | \Z
    )
    """
)
_UNSPACED = regex.compile(
    rf"(?V1).?[{_CJK}\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}]", regex.DOTALL
)
_ENDING = regex.compile(r"['’ʼ](?:d|\p{Ll}{2,6})")
_ELISION = regex.compile(r"(?:N|\p{Ll}{1,5})['’ʼ]")
_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tokens:
    """The words of B texts, concatenated. Secret.

    It holds the texts; its repr shows only counts.

    Args:
        texts: the B texts.
        words: the T words exactly as in their texts.
        starts: int64 [T], where each word begins in its text, in code points.
        ends: int64 [T], one past its last code point.
        documents: int64 [B+1]; text b has the words documents[b] to documents[b+1].
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
    def spans(self) -> list[slice]:
        """The slice of words of each text."""
        return [slice(*edges) for edges in pairwise(self.documents.tolist())]

    @property
    def owners(self) -> Ints:
        """The text of each word, int64 [T]."""
        owners: Ints = np.repeat(np.arange(len(self.texts)), self.sizes)
        return owners

    @property
    def space_flags(self) -> Flags:
        """Flags of words that follow whitespace, bool [T].

        Words at the start of a text count, too.
        """
        spaced = np.ones(len(self.words), bool)
        spaced[1:] = self.starts[1:] != self.ends[:-1]
        # An empty text has no first word: its offset is that of another text, or the end.
        spaced[self.documents[:-1][self.sizes > 0]] = True
        return spaced

    def get_gaps(self, b: int) -> list[str]:
        """Returns the whitespace of text b around its words.

        Before each of its words, and after the last (one more than words).
        """
        text = self.texts[b]
        rows = slice(int(self.documents[b]), int(self.documents[b + 1]))
        begins = [0, *self.ends[rows].tolist()]
        stops = [*self.starts[rows].tolist(), len(text)]
        return [text[begin:stop] for begin, stop in zip(begins, stops, strict=True)]

    def select(self, which: Ints) -> "Tokens":
        """Selects some of the texts, in any order and with repetitions.

        Args:
            which: int64 [C], the numbers of texts.
        """
        places = self.list_words(which)
        return Tokens(
            texts=tuple(self.texts[b] for b in which.tolist()),
            words=[self.words[i] for i in places.tolist()],
            starts=self.starts[places],
            ends=self.ends[places],
            documents=np.concatenate(([0], np.cumsum(self.sizes[which]))),
        )

    def list_words(self, which: Ints) -> Ints:
        """Returns the numbers of the words of some texts.

        One text after the other.
        """
        sizes = self.sizes[which]
        shift = self.documents[:-1][which] - (np.cumsum(sizes) - sizes)
        places: Ints = np.repeat(shift, sizes) + np.arange(int(sizes.sum()))
        return places

    def remove_repeats(self) -> tuple["Tokens", Ints]:
        """Removes repeated texts, keeping their order.

        Also returns the number of each text among the distinct ones, int64 [B].
        """
        number: dict[str, int] = {}
        which = [number.setdefault(text, len(number)) for text in self.texts]
        if len(number) == len(self.texts):
            return self, np.arange(len(self.texts))
        numbers = np.array(which, np.int64)
        return self.select(np.unique(numbers, return_index=True)[1]), numbers

    def join_words(self, goes_on: Flags) -> "Tokens":
        """Joins some words to the word before, with the whitespace between.

        Args:
            goes_on: bool [T], the words that are joined to the one before; never the first word of
                a text.
        """
        first_words = np.flatnonzero(~goes_on)
        last = np.append(first_words[1:], len(self.words)) - 1
        owner = self.owners[first_words].tolist()
        starts, ends = self.starts[first_words], self.ends[last]
        words = [self.words[i] for i in first_words.tolist()]
        for place in np.flatnonzero(last > first_words).tolist():
            words[place] = self.texts[owner[place]][int(starts[place]) : int(ends[place])]
        return Tokens(
            texts=self.texts,
            words=words,
            starts=starts,
            ends=ends,
            documents=np.searchsorted(first_words, self.documents),
        )

    def split_words(
        self, places: Sequence[tuple[int, int]], bounds: Collection[tuple[int, int]] = ()
    ) -> tuple["Tokens", Ints]:
        """Cuts words where something inside them begins or ends.

        Cut are words of scripts without spaces, and what an apostrophe joins to a word, in small
        letters ("d'Anna", "Anna'll", "Berfin'den"), or the letter of a string of Unicode in SQL
        ("N'Anna'").

        Args:
            places: text and character before which to cut; only such places count.
            bounds: the same for places at which every word is cut.

        Returns:
            The words, and for each the number of the word that it was in, int64.
        """
        inside = self._find_cuts(places, bounds)
        if not inside:
            return self, np.arange(len(self.words))
        counts = np.ones(len(self.words), np.int64)
        counts[list(inside)] += [len(cuts) for cuts in inside.values()]
        origin = np.repeat(np.arange(len(self.words)), counts)
        first = np.cumsum(counts) - counts
        starts, ends = self.starts[origin].copy(), self.ends[origin].copy()
        owner = self.owners
        words = [self.words[i] for i in origin.tolist()]
        for i, cuts in inside.items():
            edges = [int(self.starts[i]), *sorted(cuts), int(self.ends[i])]
            for at, (start, end) in enumerate(pairwise(edges), int(first[i])):
                starts[at], ends[at], words[at] = start, end, self.texts[owner[i]][start:end]
        documents = np.append(first, len(words))[self.documents]
        return Tokens(
            texts=self.texts, words=words, starts=starts, ends=ends, documents=documents
        ), origin

    def _find_cuts(
        self, places: Sequence[tuple[int, int]], bounds: Collection[tuple[int, int]]
    ) -> dict[int, set[int]]:
        """Finds the cuts inside words, by word."""
        inside: dict[int, set[int]] = {}
        for b, place in [*places, *bounds]:
            low, high = self.documents[b : b + 2].tolist()
            i = bisect_right(self.ends, place, low, high)
            # Bisecting finds the word that ends behind the place; at its start there is no cut.
            if i < high and self.starts[i] < place:
                text, start, end = self.texts[b], int(self.starts[i]), int(self.ends[i])
                if (
                    (b, place) in bounds
                    or _UNSPACED.match(text[place - 1 : place + 1])
                    or _ENDING.fullmatch(text[place:end])
                    or _ELISION.fullmatch(text[start:place])
                ):
                    inside.setdefault(i, set()).add(place)
        return inside


def tokenize(texts: Sequence[str], *, first: int = 0) -> Tokens:
    """Splits texts into words, the units of privacy.

    Every non-whitespace character is in exactly one word, and no word contains whitespace; so gaps
    and words, concatenated, are the text. A word is:

    - a URL or an e-mail address;
    - a number with inner separators that is not attached to letters (12:30, 1,000.5, 2024-05-01,
      555-0134);
    - a run of letters, marks and digits with inner apostrophes (don't, O'Brien); the possessive 's
      is a word of its own, except in it's and she's;
    - a Han character, or a run of Hiragana, Katakana or Hangul;
    - otherwise a grapheme cluster: an emoji with all its parts, a flag, a punctuation mark.

    So hyphen and underscore separate words, a combining mark after whitespace begins a word, and
    invisible characters are words too.

    Time is linear in the text, for any text; a few seconds for 10 MB.

    Args:
        texts: B strings without lone surrogates; a text may have no words, and B may be 0.
        first: the number of the first text, for errors.

    Raises:
        InputError: `texts` is not a sequence of valid Unicode strings.
    """
    check_texts(texts, first=first)
    words: list[str] = []
    starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    documents = np.zeros(len(texts) + 1, np.int64)
    for b, text in enumerate(texts):
        gaps, pieces = zip(*_PATTERN.findall(text), strict=True)
        # Behind whitespace at its end, a text matches once more: the first empty word is its end.
        count = pieces.index("")
        lengths = np.empty(2 * count, np.int64)
        lengths[0::2] = np.fromiter(map(len, gaps), np.int64, count)
        lengths[1::2] = np.fromiter(map(len, pieces), np.int64, count)
        # Whitespace and words alternate, so the sums are where each word starts and ends.
        bounds = np.cumsum(lengths)
        starts.append(bounds[0::2])
        ends.append(bounds[1::2])
        words.extend(pieces[:count])
        documents[b + 1] = len(words)
    tokens = Tokens(
        texts=tuple(texts),
        words=words,
        starts=np.concatenate(starts),
        ends=np.concatenate(ends),
        documents=documents,
    )
    # A frozen dataclass does not protect the contents of its arrays.
    for array in (tokens.starts, tokens.ends, tokens.documents):
        array.flags.writeable = False
    return tokens


def check_texts(texts: Sequence[str], *, first: int = 0, noun: str = "text") -> None:
    """Raises unless `texts` is a sequence of valid Unicode strings.

    Args:
        texts: the texts to check.
        first: the number of the first.
        noun: the noun for one of them in messages.

    Raises:
        InputError: a rule is broken; it names the rule and the number of the text.
    """
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Sequence):
        raise InputError(
            f"{noun}s must be a sequence of strings, got {type(texts).__name__}; put a single "
            f"{noun} in a list"
        )
    for b, text in enumerate(texts, first):
        _check_text(b, text, noun)


def _check_text(b: int, text: object, noun: str) -> None:
    if not isinstance(text, str):
        raise InputError(
            f"each {noun} must be a string; {noun} {b} is of type {type(text).__name__}; decode "
            "it first"
        )
    if _LONE.search(text):  # searched, not encoded: an encoder's error would contain the whole text
        raise InputError(
            f"each {noun} must be valid Unicode; {noun} {b} has a lone surrogate; "
            "read it as UTF-8, or replace what cannot be decoded"
        )
