"""Names in identifiers: what of `Zeugnis_Anna_Kowalska.txt` is a person's name.

In: spans, and their texts. Out: the same spans, of which persons inside an identifier are cut to
their names.
Not here: titles around a name in prose (`name_bounds`), and user names (`patterns.handles`).

An identifier is words that underscores or hyphens join: a name of a file, branch or field. Nothing
but its words says where a name in it begins and ends, and a tagger takes the words beside it for
parts of it. So the ordinary words of any language at its ends are no part of a name **in full**: a
known name, and another word that is more than a given name. Of less nothing is cut, since a family
name may be an ordinary word. Where one known name stands alone, unknown words that underscores
join to it are the rest of the name. A name is one span.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from textveil.detect.gazetteers import list_names
from textveil.detect.spans import Span
from textveil.text import LazyPattern, fold_word, lexicon, vocabulary

_IDENTIFIER = LazyPattern(
    r"(?<![\p{L}\p{M}\p{N}])[\p{L}\p{M}\p{N}]++(?:[_\-][\p{L}\p{M}\p{N}]++)++"
)
MAX_IDENTIFIER = 255
"""The longest name of a file. What is longer is a run of characters, and left as it is."""
_WORD = LazyPattern(r"[\p{L}\p{M}]++")

_MIN_NAMES = 2
"""The fewest words of a name in full."""
_MIN_LETTERS = 3
"""The fewest letters of an unknown word that is taken for a part of a name."""

_SCRIPTS = ("latin", "cyrillic")
"""The scripts whose lists tell given from family names."""

Place = tuple[int, int]


class _Word(NamedTuple):
    """A word of an identifier.

    Args:
        place: where it stands.
        span: the person's span that covers it; None if none does.
        is_known: whether it is on the list of names.
        is_given: whether it is known as a given name, and as no family name.
        is_ordinary: whether it is an ordinary word of any language, and no name.
    """

    place: Place
    span: Span | None
    is_known: bool
    is_given: bool
    is_ordinary: bool


def cut_identifier_names(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """Cuts persons inside identifiers to their names, and joins the parts of one name."""
    result: list[Span] = []
    for b, members in groupby(sorted(spans), key=lambda span: span.text):
        guesses: list[Span] = []
        for span in members:
            is_person = span.is_guess and span.type == "PERSON"
            (guesses if is_person else result).append(span)
        result += _cut_in_text(guesses, texts[b]) if guesses else ()
    return sorted(result)


def _cut_in_text(spans: Sequence[Span], text: str) -> Iterator[Span]:
    """Yields the persons of one text, in order, those in identifiers cut."""
    at, end = 0, 0
    inside: list[Span] = []
    matches = _IDENTIFIER.finditer(text)
    identifier = next(matches, None)
    for span in spans:
        while identifier is not None and identifier.end() <= span.start:
            identifier = next(matches, None)
        within = identifier is not None and identifier.start() <= span.start
        if within and identifier is not None and span.end <= identifier.end():
            if identifier.span() != (at, end):
                yield from _cut_in_identifier(inside, text, (at, end))
                inside, (at, end) = [], identifier.span()
            inside.append(span)
        else:
            yield span
    yield from _cut_in_identifier(inside, text, (at, end))


def _cut_in_identifier(spans: Sequence[Span], text: str, place: Place) -> Iterator[Span]:
    """Yields the spans of one identifier: its names, or the spans as they are."""
    is_name = spans and place[1] - place[0] <= MAX_IDENTIFIER
    words = [*_read_words(spans, text, place)] if is_name else []
    names = [word for word in words if word.span and not word.is_ordinary]
    if not any(word.is_known for word in names):
        yield from spans
        return
    if len(names) < _MIN_NAMES or all(word.is_given for word in names):
        yield from spans
        yield from _extend_name(words, text) if len(names) < _MIN_NAMES else ()
        return
    for is_covered, run in groupby(words, key=lambda word: word.span is not None):
        members = _trim_ordinary([*run]) if is_covered else []
        if members:
            parts = [word.span for word in members if word.span]
            yield max(parts, key=lambda span: span.score)._replace(
                start=members[0].place[0],
                end=members[-1].place[1],
                privacy_score=max(span.privacy_score for span in parts),
            )


def _read_words(spans: Sequence[Span], text: str, place: Place) -> Iterator[_Word]:
    known = lexicon.read_lists()[0]
    for match in _WORD.finditer(text, *place):
        covering = [s for s in spans if s.start <= match.start() and match.end() <= s.end]
        span = max(covering, key=lambda span: span.score, default=None)
        folded = fold_word(match[0])
        yield _Word(
            match.span(),
            span,
            folded in known,
            folded in _list_given_names(),
            lexicon.is_all_ordinary(match[0]),
        )


@cache
def _list_given_names() -> frozenset[str]:
    """Returns the folded given names that are no family names."""
    given, family = (
        frozenset().union(*(map(fold_word, list_names(script, section)) for script in _SCRIPTS))
        for section in ("given", "family")
    )
    return given - family


def _trim_ordinary(words: list[_Word]) -> list[_Word]:
    while words and words[0].is_ordinary:
        words = words[1:]
    while words and words[-1].is_ordinary:
        words = words[:-1]
    return words


def _extend_name(words: Sequence[_Word], text: str) -> Iterator[Span]:
    """Yields the unknown words that underscores join to a name that stands alone."""
    code = vocabulary.get_words("code_words")
    at = next(i for i, word in enumerate(words) if word.span and not word.is_ordinary)
    name = words[at]
    assert name.span is not None, "or it would be no name"
    for other in (*words[max(0, at - 1) : at], *words[at + 1 : at + 2]):
        (_, end), (start, _) = sorted((name.place, other.place))
        word = text[slice(*other.place)]
        is_unknown = not other.is_ordinary and word.lower() not in code
        if (
            text[end:start] == "_"
            and other.span is None
            and len(word) >= _MIN_LETTERS
            and is_unknown
        ):
            yield name.span._replace(start=other.place[0], end=other.place[1])
