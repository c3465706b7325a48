"""Name lists: well-known names that replace those in a text.

They are of persons, locations and organizations.
In: a type of names. Out: `NameList`: public words and the kind of each.
Not here: how a name is drawn, how the lists were made (`training/names.py`), and the detectors of
names in a text.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from textveil.errors import UnknownName

NAME_KINDS = {
    "PERSON": ("given", "family", "both"),
    "LOCATION": ("city", "region", "country"),
    "ORGANIZATION": ("company", "university", "agency", "media", "club"),
}
"""The kinds of names of each type."""


@dataclass(frozen=True, kw_only=True)
class NameList:
    """A public list of one-word names of one type, sorted.

    No two differ only in case.

    Attributes:
        type: `PERSON`, `LOCATION` or `ORGANIZATION`.
        words: in their usual spelling, capitalized; in lower case each is a row of the tables
            `minilm` and `minilm-s`.
        kinds: the kind of each, one of `KINDS[type]`; `both` means given and family name.
    """

    type: str
    words: tuple[str, ...]
    kinds: tuple[str, ...]


@cache
def load_names(type: str) -> NameList:
    """Loads the bundled list of names of a type.

    Raises:
        UnknownName: there is no list of this type.

    Source: see the first lines of each list.
    """
    if type not in NAME_KINDS:
        raise UnknownName("type of names", type, tuple(NAME_KINDS))
    text = files("textveil").joinpath("data", "names", f"{type.lower()}.txt").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return NameList(
        type=type, words=tuple(word for word, _ in rows), kinds=tuple(kind for _, kind in rows)
    )
