"""Application's words: names that a program, and no person, brought into a conversation.

In: what an application states: its own texts, and names of its tools and models. Out:
`ApplicationWords`, which decide about spans found in doubt.
Not here: which texts of a request are the application's (`gateway.request.application`).

An agent sends its tools, its files and its own name with every request. Such a name may also be a
given name, and one false hit would change it in every text. So a word that the application writes
as a name of a thing (a tool, a key, an enum word, a model, a file, a command) lifts what was found
**in doubt**, and nothing else:

- in the application's own texts, a span of nothing but such words and ordinary ones, also a web
  address on an unknown host; and a name behind an at sign of nothing but ordinary words
  (`@plugin-name`);
- in texts of users and tools, only a file name, path or model that the application states
  literally. There the bare word is read like any other: an employee may be called like the agent.

A name in full, an identifier with a form, and what a user lists are never in doubt.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from textveil.detect.detectors import load_detector
from textveil.detect.normalization import split_atoms
from textveil.detect.occurrences import PrivateValue
from textveil.detect.patterns.hosts import OWNER_WORDS
from textveil.detect.spans import NAMES, PRIVACY_THRESHOLD, Span
from textveil.text import LazyPattern, is_ordinary, lexicon
from textveil.text.text_cache import TextCache

CERTAIN = 0.9
"""The score from which an identifier that was found by its looks is certain."""

MAX_NAMES = 10_000
"""The number of names whose words are cached: clients send the same ones with every request."""

MAX_NAME_CHARACTERS = 200
"""The longest name of a thing."""

_TOKEN = LazyPattern(
    r"(?<![\w@])(?:\p{L}{2,10}://|[~.]{0,3}+[/\\]|\.)?[\p{L}\p{N}_][\p{L}\p{N}_.~/\\:\-]*+"
)
"""A run that may be a name of a thing; whether it is one, `_IDENTIFIER` says."""

_IDENTIFIER = LazyPattern(
    r"""(?x) (?: \p{L}{2,10}:// | [~.]{0,3}+[/\\] | \. ) .+
    | .* [\p{L}\p{N}_\-]{2} \. [a-z][a-z0-9]{0,5} (?: :\d+ )?
    | .* \p{L} .* _ .* | .* _ .* \p{L} .*
    | (?= .* \d ) \p{L}{2} [\p{L}\p{N}.]* (?: - [\p{L}\p{N}.]+ )+"""
)
"""An address, a path, a file name, a word with underscores, a model's name with a number."""

_QUOTED = LazyPattern(r"`([\p{L}\p{N}_.~/\\:\-]{2,80})(?: [^`\n]{1,200})?`")
"""The first word of a command or name in backquotes."""

_SCOPE = LazyPattern(r"(?<![\w.@/])@([a-z0-9][a-z0-9._\-]{1,80})(?=/[a-z0-9])")
"""The scope of a package: `@scope/package`."""

_ADDRESS = LazyPattern(
    r"(?i)(?:https?://)?(?:www\.)?(?P<host>[a-z0-9\-]+(?:\.[a-z0-9\-]+)*)\.[a-z]{2,12}"
    r"(?P<path>(?:/[\w.\-]*)*)"
)
"""A plain address of the web: no user, port, query, fragment or home of a user."""

_UNKNOWN_SITE = 0.7
"""The privacy of an address on an unknown host. That of somebody's own is higher."""

_SEPARATOR = LazyPattern(r"[/\\:]+")
_PUNCTUATED = LazyPattern(r"[._~\-]|\d")
_PART = LazyPattern(r"[\p{L}\p{N}_.~\-]")
_MAX_PART = 100


@dataclass(frozen=True)
class ApplicationWords:
    """Words and literal names that an application states. Secret.

    Args:
        words: its words, folded.
        parts: its file names, parts of paths and names of models, folded.
    """

    words: frozenset[str] = field(default=frozenset(), repr=False)
    parts: frozenset[str] = field(default=frozenset(), repr=False)

    def covers(self, type_: str, value: str) -> bool:
        """True if a value is nothing but application's words and ordinary ones.

        Of a person, at most one word may be no ordinary one: two are a name in full.
        """
        words = {atom.text for atom in split_atoms(value)}
        names = {word for word in words if not _is_common(word)}
        if words.isdisjoint(self.words) or not names <= self.words:
            return False
        return type_ != "PERSON" or len(names) < 2

    def covers_address(self, address: str) -> bool:
        """True if a web address is plain, and of nothing but these words.

        Ordinary words count, too, but not for the whole host. A name of a person beside another
        word is a name in full.
        """
        match = _ADDRESS.fullmatch(address)
        if match is None:
            return False
        host, path = ({atom.text for atom in split_atoms(part)} for part in match.groups())
        names = {word for word in host | path if not _is_common(word)}
        if host.isdisjoint(self.words) or not names <= self.words:
            return False
        return len(names) < 2 or names.isdisjoint(lexicon.read_lists()[0])

    def is_doubtful(self, span: Span, text: str) -> bool:
        """True if a span was found in doubt."""
        value = text[span.start : span.end]
        if not (span.is_own or span.is_guess):
            return False
        if span.type in NAMES:
            return self.covers(span.type, value) or not is_in_full(span.type, value)
        if span.type == "HANDLE":
            return span.score < CERTAIN
        return span.is_guess and min(span.score, span.privacy_score) < CERTAIN

    def lifts(self, span: Span, text: str, *, is_own: bool) -> bool:
        """True if a span is nobody's, since the application brought the name.

        Args:
            span: the span of a detector.
            text: its text.
            is_own: whether the application wrote the text.
        """
        value = text[span.start : span.end]
        if is_own and span.type == "URL" and span.privacy_score <= _UNKNOWN_SITE:
            is_writers = OWNER_WORDS.compiled.search(text, max(0, span.start - 40), span.start)
            return is_writers is None and self.covers_address(value)
        if not self.is_doubtful(span, text):
            return False
        if is_own and (self.covers(span.type, value) or _is_mentioned_word(span.type, value)):
            return True
        return self.states(text, span.start, span.end)

    def spares(
        self, value: PrivateValue, text: str, place: tuple[int, int], *, is_own: bool
    ) -> bool:
        """True if a value that is hidden elsewhere stays here.

        It is one word of the application, which says nothing about whoever has the same name.
        """
        if value.type not in (*NAMES, "HANDLE") or not self.covers(value.type, value.text):
            return False
        return is_own or self.states(text, *place)

    def states(self, text: str, start: int, end: int) -> bool:
        """True if a place lies in a file name or the like that the application states."""
        low, high = start, end
        while low > 0 and start - low < _MAX_PART and _PART.match(text[low - 1]):
            low -= 1
        while high < len(text) and high - end < _MAX_PART and _PART.match(text[high]):
            high += 1
        part = text[low:high]
        return part.lower() in self.parts or part.rstrip(".").lower() in self.parts


NO_WORDS = ApplicationWords()
"""The words of no application."""


def is_in_full(type_: str, value: str) -> bool:
    """True if a value is a person's name of two words or more.

    One of them is no ordinary word, or the first is a known name. In scripts without spaces a
    name is in full if it has two letters.
    """
    if type_ != "PERSON":
        return False
    words = [atom for atom in split_atoms(value) if len(atom.text) > 1 and atom.text.isalpha()]
    if any(not word.spaced for word in words):
        return True
    if len(words) < 2:
        return False
    return words[0].text in lexicon.read_lists()[0] or any(not _is_common(w.text) for w in words)


def _is_mentioned_word(type_: str, value: str) -> bool:
    """True if a name behind an at sign is of ordinary words, and of no names."""
    if type_ != "HANDLE" or not value.startswith("@"):
        return False
    words = [atom.text for atom in split_atoms(value)]
    names = lexicon.read_lists()[0]
    return all(len(word) > 2 and is_ordinary(word) and word not in names for word in words)


def _is_common(word: str) -> bool:
    return len(word) < 3 or word.isdigit() or is_ordinary(word)


def collect_words(names: Iterable[str], texts: Sequence[str]) -> ApplicationWords:
    """Collects the words of an application.

    Args:
        names: names of its tools, parameters and models.
        texts: its texts: system prompts, and what it says about its tools.
    """
    found = [_read_name(name) for name in names]
    found += map(_read_cached, texts)
    return ApplicationWords(
        frozenset().union(*(each.words for each in found)),
        frozenset().union(*(each.parts for each in found)),
    )


@lru_cache(MAX_NAMES)
def _read_name(name: str) -> ApplicationWords:
    parts = [part for part in _SEPARATOR.split(name) if _PUNCTUATED.search(part)]
    words = [atom.text for atom in split_atoms(name) if len(atom.text) > 1]
    return ApplicationWords(frozenset(words), frozenset(part.lower() for part in parts))


def _read_text(text: str) -> ApplicationWords:
    """Collects names of things in a text; those in identifiers of people are none."""
    places = [match.span() for match in _TOKEN.finditer(text)]
    places = [
        (start, end)
        for start, end in places
        if end - start <= MAX_NAME_CHARACTERS
        and _IDENTIFIER.fullmatch(text[start:end].rstrip(".:"))
    ]
    places += [match.span(1) for match in _QUOTED.finditer(text)]
    places += [
        match.span(1)
        for match in _SCOPE.finditer(text)
        if not any(atom.text in lexicon.read_lists()[0] for atom in split_atoms(match[1]))
    ]
    if not places:
        return NO_WORDS
    private = [
        span
        for span in load_detector("patterns").find([text])
        if span.privacy_score >= PRIVACY_THRESHOLD
        and (span.type != "HANDLE" or span.score >= CERTAIN)
    ]
    names = {
        text[start:end].rstrip(".:")
        for start, end in places
        if not any(span.start < end and start < span.end for span in private)
    }
    found = [_read_name(name) for name in names]
    return ApplicationWords(
        frozenset().union(*(each.words for each in found)),
        frozenset().union(*(each.parts for each in found)),
    )


_read_cached = TextCache(_read_text)
