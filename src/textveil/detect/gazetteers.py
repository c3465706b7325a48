"""Gazetteers: bundled lists of names by script, read when first needed.

In: a script. Out: its sections, such as given names, family names, and ordinary words that look
like names.
Not here: how the lists were made (`training/gazetteers.py`).
"""

import gzip
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def read_gazetteer(script: str) -> Mapping[str, tuple[str, ...]]:
    """Reads the sections of a bundled gazetteer.

    Source: Faker, the dictionaries of jieba and Janome, and lists written by hand; see
    `training/gazetteers.py`.
    """
    packed = files("textveil").joinpath("data", "names", f"{script}.txt.gz").read_bytes()
    sections: dict[str, tuple[str, ...]] = {}
    for part in gzip.decompress(packed).decode("utf-8").split("[")[1:]:
        name, _, items = part.partition("]\n")
        sections[name] = tuple(items.split("\n"))
    return sections


@cache
def list_names(script: str, *sections: str) -> frozenset[str]:
    """Returns the union of some sections of a script's gazetteer."""
    return frozenset(
        item for section in sections for item in read_gazetteer(script)[section] if item
    )
