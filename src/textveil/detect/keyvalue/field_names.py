"""Keys: the kind of value that a key announces, in many languages.

In: a key as written, `customerFirstName`, `date_of_birth`, `Geburtsdatum`, `お客様名`. Out: the kind of
its value.
Not here: whether a value fits its key (`values`), and how keys are found (`parsers`, `table_cells`).
"""

import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache

from textveil.detect.patterns.secrets import get_secret_check
from textveil.text import LazyPattern, vocabulary

MAX_KEY_CHARACTERS = 64
"""The length of the longest key, in characters."""

_MARKS = LazyPattern("[\u0300-\u036f\u064b-\u0652\u0640]")
_PLAIN = str.maketrans(
    {"ß": "ss", "ø": "o", "đ": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "ё": "е", "й": "и"}
)
_ELIDED = LazyPattern(r"\b[ldn]'(?=\p{L})")
_HUMP = LazyPattern(r"(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})")
_WORD = LazyPattern(r"[\p{L}\p{M}'’]+\d?|#")
_UNSPACED = LazyPattern(r"[\p{Han}\p{Hiragana}\p{Katakana}ー々\p{Hangul}]{2,}")


def fold_key(key: str) -> str:
    """Splits a key into small words without accents, joined by spaces.

    `dateOfBirth` and `Date-of-birth` become the same.
    """
    humps = _HUMP.sub(" ", unicodedata.normalize("NFKC", key))
    plain = _MARKS.sub("", unicodedata.normalize("NFD", humps.lower())).translate(_PLAIN)
    return " ".join(
        _WORD.findall(_ELIDED.sub("", unicodedata.normalize("NFC", plain).replace("’", "'")))
    )


@cache
def _fold_list(name: str) -> frozenset[str]:
    """Returns a list of keys or of their words, folded."""
    return frozenset(map(fold_key, vocabulary.get_words(name))) - {""}


@cache
def _build_table() -> dict[str, str]:
    table = dict.fromkeys(_fold_list("field_words.person"), "role")
    for name in vocabulary.list_names("fields"):
        table |= dict.fromkeys(_fold_list(name), name.removeprefix("fields."))
    return table | dict.fromkeys(_fold_list("field_words.nothing"), "")


@cache
def _list_tails() -> tuple[str, ...]:
    """Lists keys in scripts without spaces, longest first.

    Any characters may stand before them.
    """
    return tuple(sorted(filter(_UNSPACED.fullmatch, _build_table()), key=len, reverse=True))


@cache
def _join_keys() -> dict[str, str]:
    """Maps keys of several words, written as one, to their kinds."""
    return {
        word: kind
        for key, kind in _build_table().items()
        if kind and len(word := key.replace(" ", "")) >= 8
    }


_HEXADECIMAL = LazyPattern(r"0[xX][\da-fA-F]+")


@lru_cache(maxsize=4096)
def classify_key(key: str) -> str | None:
    """Returns the kind of value that a key announces, or None.

    The last words count, whatever stands before them ("shipping city"); a `name`, `number` or `id`
    needs a person or an order beside it ("patient name", "nom du client"), or stands alone.
    """
    if len(key) > MAX_KEY_CHARACTERS or _HEXADECIMAL.fullmatch(key):
        return None
    words = fold_key(key).split()
    if not 0 < len(words) <= 8:
        return None
    if (kind := _build_table().get(" ".join(words))) is not None:
        return kind or None
    if "/" in key:
        return next(filter(None, map(classify_key, key.split("/"))), None)
    joined = "".join(words)
    return (
        _classify_word(joined)
        if len(words) == 1 or _UNSPACED.fullmatch(joined)
        else _classify_words(words)
    )


def is_person(key: str) -> bool:
    """True if a key of a record stands for a person.

    Examples are `customer: {name: ...}` and `patients: [...]`.
    """
    words = fold_key(key).split()
    if not words or words[-1] in _fold_list("field_words.no_role"):
        return False
    last = words[-1]
    forms = {" ".join(words), last, last.removesuffix("s"), last.removesuffix("es")}
    return bool(forms & (_fold_list("field_words.person") | _fold_list("field_words.group")))


def is_number(key: str) -> bool:
    """True if a key asks for the number of its record.

    Examples are `order: {number: ...}` and `customer: {id: ...}`.
    """
    return fold_key(key) in _fold_list("field_words.number_head")


@cache
def _map_parts() -> dict[str, str]:
    parts = ("key", "value", "default")
    return {word: part for part in parts for word in _fold_list(f"pairs.{part}")}


def get_pair_part(key: str) -> str | None:
    """Returns the part of a pair that a key announces, or None.

    The parts are the pair's key, its value, and a value by default, as `name` and `value` are in
    `{"name": "DB_PASSWORD", "value": ...}`.
    """
    return _map_parts().get(fold_key(key)) if len(key) <= MAX_KEY_CHARACTERS else None


def is_secret(key: str) -> bool:
    """True if a key is that of a password or token.

    `patterns.secrets` has the list of such keys.
    """
    return len(key) <= MAX_KEY_CHARACTERS and get_secret_check(fold_key(key)) is not None


@cache
def _map_ends() -> dict[str, str]:
    """Maps the last parts of compounds to kinds: Kundenadresse, Kundennummer."""
    return {
        word: name.removeprefix("ends.")
        for name in vocabulary.list_names("ends")
        for word in vocabulary.get_words(name)
    }


def _classify_word(word: str) -> str | None:
    if kind := _join_keys().get(word):
        return kind
    if len(word) > 1 and _UNSPACED.fullmatch(word):
        return next((_build_table()[tail] for tail in _list_tails() if word.endswith(tail)), None)
    if end := _find_last_part(word):
        return _map_ends()[end] if _is_owner(word.removesuffix(end)) else None
    singular_kind = _build_table().get(word.removesuffix("s")) if word.endswith("s") else None
    return singular_kind if singular_kind in ("role", "email", "phone", "given") else None


def _find_last_part(word: str) -> str:
    """Returns the last part of a compound, if it announces a kind."""
    ends = (end for end in _map_ends() if word.endswith(end) and len(word) > len(end) + 2)
    return next(ends, "")


def _is_owner(word: str) -> bool:
    """True if a compound begins with a person: Kunden-, Patienten-."""
    forms = (word.removesuffix(last) for last in ("", "s", "n", "en"))
    return not _fold_list("field_words.person").isdisjoint(forms)


def _classify_words(words: Sequence[str]) -> str | None:
    if kind := _classify_head(words) or _classify_first(words):
        return kind
    for start in range(1, len(words)):
        if tail_kind := _build_table().get(" ".join(words[start:])):
            alone = start == len(words) - 1 and tail_kind in _AMBIGUOUS_KINDS
            return tail_kind if not alone or _is_role(tail_kind, words) else None
    unspaced = len(words[-1]) > 1 and _UNSPACED.fullmatch(words[-1])
    return _classify_word(words[-1]) if unspaced else None


def _is_role(kind: str, words: Sequence[str]) -> bool:
    """True if a short key ends in a person's role: "attending physician"."""
    return kind == "role" and words[-1] in _fold_list("field_words.person") and len(words) <= 3


def _classify_head(words: Sequence[str]) -> str | None:
    """Returns the kind of a key whose head has an owner.

    The head is first or last: "patient name", "numero de la commande".
    """
    content_words = [word for word in words if word not in _fold_list("field_words.joint")]
    if len(content_words) < 2:
        return None
    person, group, order = (
        _fold_list(f"field_words.{name}") for name in ("person", "group", "order")
    )
    for kind, heads, owners in (
        ("full", _fold_list("field_words.name_head"), person | group),
        ("id", _fold_list("field_words.number_head"), person | order),
    ):
        for head, *owner_forms in (
            (content_words[0], " ".join(content_words[1:]), content_words[-1]),
            (content_words[-1], " ".join(content_words[:-1]), content_words[-2]),
        ):
            if head in heads and not owners.isdisjoint(owner_forms):
                return kind
    return None


def _classify_first(words: Sequence[str]) -> str | None:
    """Returns the kind of a first word that decides alone.

    The words behind it do not matter: "nom du père", "password for the router".
    """
    first = _build_table().get(words[0])
    named = first in ("given", "family") and words[1] in _fold_list("field_words.joint")
    secret = (
        first == "secret" and len(words) <= 6 and words[0] in _fold_list("field_words.secret_head")
    )
    return first if named or secret else None


_AMBIGUOUS_KINDS = (
    "name",
    "given",
    "family",
    "role",
    "author",
    "org",
    "id",
    "age",
    "account",
    "card",
    "handle",
    "street",
    "home",
    "house",
    "postcode",
)
"""Kinds whose single words mean something else behind other words: `file name`, `grid age`,
`dashboard card`."""
