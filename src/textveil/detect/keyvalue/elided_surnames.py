"""Elided surnames at the start of a sentence: D'Souza, O'Brien, Dell'Acqua.

In: a text. Out: the places of such names.
Not here: other places of a sentence, where the tagger reads them.

Elsewhere a capital marks a name. At the start of a sentence French and Italian write articles with
a capital, too: L'Italie, D'accord. There a name must be on the list of names and on no list of
places.
"""

from collections.abc import Iterator

import numpy as np
import regex

from textveil.text import LazyPattern, lexicon

_NAME = LazyPattern(
    r"""(?: \A | [.!?…:;]["'”’»)]{0,2}[ ]+ | \n | \\n ) [ \t]*+
    (?: [>\#*+\-•|–—] [ \t]*+ | \d{1,2}[.)] [ \t]++ )*+ ["'“‘„«(]{0,2}
    (?P<name> (?P<before> D | L | O | M | N | T | Dell | Dall | Del | Degl | Sant | Mac | Ní ) ['’ʼ]
      (?P<stem> \p{Lu}\p{Ll}{2,} (?: -\p{Lu}\p{Ll}+ )? ) )
    (?! [\p{L}\p{M}\d@/\\_] | [-.'’ʼ](?!s\b)\p{L} | [ ]\p{Lu}\p{Ll} )""",
    regex.VERBOSE,
)
_PREFIXED = LazyPattern(r"(?:D|L|M|N|T|Dell|Dall|Del|Degl|Sant)['’ʼ]\p{Lu}")
_ARTICLE = LazyPattern(r"(?<!\w)(?:[dljcnmst]|qu|dell|dall|all|nell|sull|un)['’](?=\p{Ll}{2})")
"""A French or Italian article, or another word, that has lost its vowel."""
_CONTEXT_CHARACTERS = 300


def read_elided(text: str) -> Iterator[tuple[int, int]]:
    """Finds elided surnames that begin a sentence and stand alone."""
    for match in _NAME.finditer(text, overlapped=True):
        start, end = match.span("name")
        marks = int(lexicon.mark_words([match["stem"].lower()], np.array([0, 1]))[0])
        articles = match["before"] == "L" or _ARTICLE.search(
            text, max(0, start - _CONTEXT_CHARACTERS), end + _CONTEXT_CHARACTERS
        )
        listed = marks & lexicon.NAME_MARK and not (articles and marks & lexicon.PLACE_MARK)
        if listed or not (articles or marks & lexicon.ORDINARY_MARK):
            yield start, end


def is_doubtful(name: str) -> bool:
    """True if a name begins with a prefix that taggers often miss."""
    return _PREFIXED.match(name) is not None
