"""Lists of names: well-known persons' names, locations and organizations, by which those of a text are replaced.

In: a type of names. Out: `NameList`: public words and the kind of each.
Not here: how one is drawn, how the lists were made (`training/names.py`), and what finds names in a text (`spans`).
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from textveil.errors import UnknownName
from textveil.protect.spans import NAMES

KINDS = {
    "PERSON": ("given", "family", "both"),
    "LOCATION": ("city", "region", "country"),
    "ORGANIZATION": ("company", "university", "agency", "media", "club"),
}
"""The kinds of names of each type."""


@dataclass(frozen=True, kw_only=True)
class NameList:
    """A public list of names of one type, sorted, each of one word; no two differ in casing only.

    Attributes:
        type: `PERSON`, `LOCATION` or `ORGANIZATION`.
        words: as they are written, with capitals; in small letters each is a row of the tables `minilm` and `minilm-s`.
        kinds: the kind of each, one of `KINDS[type]`; `both` is a given and a family name.
    """

    type: str
    words: tuple[str, ...]
    kinds: tuple[str, ...]


@cache
def load_names(type: str) -> NameList:
    """The package's list of names of a type.

    Raises:
        UnknownName: there is no list of this type.

    Source: the lists themselves say it in their first lines.
    """
    if type not in NAMES:
        raise UnknownName("type of names", type, NAMES)
    text = files("textveil").joinpath("data", "names", f"{type.lower()}.txt").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return NameList(type=type, words=tuple(word for word, _ in rows), kinds=tuple(kind for _, kind in rows))
