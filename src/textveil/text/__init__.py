"""Text: words with their positions, released texts, casing, and public words.

In: texts. Out: `Tokens`, which are secret; `Released`, which is public, with its mask.
Not here: which words are protected (`protect`), and their rows in a table (`table`).
"""

from textveil.text import known_persons, lexicon, vocabulary
from textveil.text.casing import Casing, apply_casing, fold_word, get_casing
from textveil.text.countries import is_country
from textveil.text.expressions import LazyPattern
from textveil.text.frequency import is_ordinary, load_counts, lookup_ranks
from textveil.text.name_lists import load_names
from textveil.text.public import get_stopwords, is_public
from textveil.text.released import (
    CLOSING,
    MASK_FIELDS,
    OPENING,
    RELEASED,
    UNKNOWN_SHARE,
    Item,
    Kind,
    Mask,
    Released,
)
from textveil.text.tokens import Tokens, check_texts, tokenize

__all__ = [
    "CLOSING",
    "MASK_FIELDS",
    "OPENING",
    "RELEASED",
    "UNKNOWN_SHARE",
    "Casing",
    "Item",
    "Kind",
    "LazyPattern",
    "Mask",
    "Released",
    "Tokens",
    "apply_casing",
    "check_texts",
    "fold_word",
    "get_casing",
    "get_stopwords",
    "is_country",
    "is_ordinary",
    "is_public",
    "known_persons",
    "lexicon",
    "load_counts",
    "load_names",
    "lookup_ranks",
    "tokenize",
    "vocabulary",
]
