"""Countries, which are public: their names in many languages.

In: a name. Out: whether it is a country's.
Not here: other places (`textveil.text.lexicon`), and how the list was made (`training/lexicon.py`).
"""

import gzip
from functools import cache
from importlib import resources

from textveil.text.casing import fold_word
from textveil.text.tokens import tokenize


@cache
def _read_countries() -> frozenset[str]:
    packed = (
        resources.files("textveil").joinpath("data", "lexicon", "countries.txt.gz").read_bytes()
    )
    return frozenset(
        line for line in gzip.decompress(packed).decode().splitlines() if not line.startswith("#")
    )


def is_country(name: str) -> bool:
    """Says whether a name is that of a country.

    In any casing, ignoring accents and spaces.

    Source: CLDR, in the languages whose private parts are measured, and Faker.
    """
    return fold_word(" ".join(tokenize([name]).words)) in _read_countries()
