"""Gazetteers: the bundled lists of names in other scripts and languages, read when a text first needs them.

In: a script. Out: its sections: given and family names, words that look like names, famous people.
Not here: how the lists were made (`training/gazetteers.py`).
"""

import gzip
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def gazetteer(script: str) -> Mapping[str, tuple[str, ...]]:
    """The sections of a bundled gazetteer.

    Source: Faker, the dictionaries of jieba and Janome, and lists written by hand; see `training/gazetteers.py`.
    """
    packed = files("textveil").joinpath("data", "names", f"{script}.txt.gz").read_bytes()
    sections: dict[str, tuple[str, ...]] = {}
    for part in gzip.decompress(packed).decode("utf-8").split("[")[1:]:
        name, _, items = part.partition("]\n")
        sections[name] = tuple(items.split("\n"))
    return sections


@cache
def names(script: str, *sections: str) -> frozenset[str]:
    """The items of some sections together."""
    return frozenset(item for section in sections for item in gazetteer(script)[section] if item)
