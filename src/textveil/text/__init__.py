"""Text: words with their positions, released texts, casing, and public words.

In: texts. Out: `Tokens`, which are secret; `Released`, which is public, with its mask.
Not here: which words are protected (`protect`), and their rows in a table (`table`).
"""

from textveil.text import lexicon, vocabulary
from textveil.text.casing import Casing, apply_casing, casing_of, folded
from textveil.text.countries import is_country
from textveil.text.expressions import Late
from textveil.text.frequency import counts, is_ordinary, ranks
from textveil.text.name_lists import load_names
from textveil.text.public import is_public, stopwords
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
    "Late",
    "Mask",
    "Released",
    "Tokens",
    "apply_casing",
    "casing_of",
    "check_texts",
    "counts",
    "folded",
    "is_country",
    "is_ordinary",
    "is_public",
    "lexicon",
    "load_names",
    "ranks",
    "stopwords",
    "tokenize",
    "vocabulary",
]
