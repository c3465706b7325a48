"""Visibility: decides which spans are private and which are public.

In: spans and their texts. Out: the same spans, with `private` set to 0 or 1 where a rule applies.
Not here: the probability of doubtful spans (`scoring`), and the order of steps (`stages`).
"""

from collections.abc import Sequence

from textveil.detect.context_cues import CUE_WINDOW, is_beside_relation, is_relation
from textveil.detect.normalization import split_atoms
from textveil.detect.spans import NAMES, PRIVACY_THRESHOLD, Span
from textveil.text import LazyPattern, is_country, vocabulary

MAX_COUNTRY_CHARACTERS = 60
"""The longest name, in characters, that is looked up among the countries."""

MIN_NAME_LETTERS = 4
"""The fewest letters of a word that identifies a name in an address."""

_LINK = LazyPattern(r"[\s,(]{1,3}(?:\p{Ll}{1,3}\s)?\Z")
"""The text between an address and the town in which it lies."""


def is_at_level(span: Span, level: str) -> bool:
    """Says whether a span counts as sensitive at a `protect.level`."""
    if level == "names":
        return True
    return span.privacy_score >= PRIVACY_THRESHOLD and (
        span.type not in NAMES or level == "personal"
    )


def mark_country_public(span: Span, texts: Sequence[str]) -> Span:
    """Marks a country as public, unless people share its name.

    Only spans of textveil's own detectors and of taggers change.
    """
    name = texts[span.text][span.start : span.end]
    if not (span.is_own or span.is_guess) or span.type not in (*NAMES, "ADDRESS"):
        return span  # what a user listed stays sensitive, whatever it is
    if len(name) > MAX_COUNTRY_CHARACTERS or not is_country(name):
        return span
    somebody = span.type == "PERSON" and name.lower() in vocabulary.get_words("country_namesakes")
    return span if somebody else span._replace(type="LOCATION", privacy_score=0.0)


def mark_relative_private(span: Span, texts: Sequence[str]) -> Span:
    """Marks a person whom the text calls a relative as private."""
    if span.type != "PERSON" or span.privacy_score >= PRIVACY_THRESHOLD:
        return span
    text = texts[span.text]
    before, behind = (
        text[max(0, span.start - CUE_WINDOW) : span.start],
        text[span.end : span.end + CUE_WINDOW],
    )
    return (
        span._replace(privacy_score=1.0)
        if is_relation(before) or is_beside_relation(behind)
        else span
    )


def mark_reachable_private(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """Marks persons as private whose name is in an address.

    The address or user name must hold all longer words of the name, the whole name as one word, or
    its last word with the first word's initial.
    """
    address_words: list[set[str]] = [set() for _ in texts]
    for span in spans:
        if span.type in ("EMAIL", "HANDLE"):
            local = texts[span.text][span.start : span.end].partition("@")[0]
            words = [atom.text for atom in split_atoms(local)]
            address_words[span.text].update(words, ["".join(words)])
    return [
        span._replace(privacy_score=1.0)
        if span.type == "PERSON"
        and address_words[span.text]
        and _is_in_address(texts[span.text][span.start : span.end], address_words[span.text])
        else span
        for span in spans
    ]


def mark_located_private(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """Marks places as private that say where a private address lies.

    They stand right behind it, with at most a short word between.
    """
    ends = {
        (span.text, span.end)
        for span in spans
        if span.type == "ADDRESS" and span.privacy_score >= PRIVACY_THRESHOLD
    }
    return [
        span._replace(privacy_score=1.0)
        if span.type == "LOCATION"
        and ends
        and (link := _LINK.search(texts[span.text], max(0, span.start - 8), span.start))
        and (span.text, link.start()) in ends
        else span
        for span in spans
    ]


def _is_in_address(name: str, address_words: set[str]) -> bool:
    words = [atom.text for atom in split_atoms(name)]
    long = {word for word in words if len(word) >= MIN_NAME_LETTERS}
    if not long or len(words) < 2:
        return bool(long) and long <= address_words
    first, last = words[0], words[-1]
    return long <= address_words or not address_words.isdisjoint(
        ("".join(words), first[0] + last, last + first[0])
    )
