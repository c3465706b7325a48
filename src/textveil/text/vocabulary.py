"""Vocabulary: word lists of many languages, by which text is read.

They are titles, greetings, months, keys of forms.
In: the name of a list. Out: its words, of all languages or of some.
Not here: the words, a file for each language (`data/vocabulary`, where `keys.yaml` says what each
list is for), names of people and places (`lexicon`), and how often words occur (`frequency`).
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Loader that reads every value as text.

Also what YAML would take for a number or for a truth value ("no").
"""


@cache
def get_words(name: str, *languages: str) -> frozenset[str]:
    """Returns the words of a list.

    Args:
        name: of the list.
        languages: the languages of the words, by ISO 639-1; `any` has the words of no language;
            none: all languages.

    Raises:
        KeyError: there is no such list.
    """
    lists = get_words_by_language(name)
    return frozenset(word for language in languages or lists for word in lists.get(language, ()))


def get_words_by_language(name: str) -> Mapping[str, tuple[str, ...]]:
    """Returns the words of a list by language, in written order.

    Raises:
        KeyError: there is no such list.
    """
    return _read_lists()[name]


def list_names(heading: str) -> list[str]:
    """Returns the names of the lists below a heading."""
    return [name for name in _read_lists() if name.startswith(f"{heading}.")]


@cache
def _read_lists() -> dict[str, dict[str, tuple[str, ...]]]:
    """Reads all lists.

    A list below a heading has both names, with a full stop between.
    """
    lists: defaultdict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    folder = files("textveil") / "data" / "vocabulary"
    # Sorted: the order of files in a folder differs between file systems.
    for file in sorted(folder.iterdir(), key=lambda path: path.name):
        language, _, ending = file.name.partition(".")
        if ending != "yaml" or language == "keys":
            continue
        for heading, listed in yaml.load(file.read_bytes(), _LOADER).items():
            sublists = {"": listed} if isinstance(listed, str) else listed
            for name, values in sublists.items():
                list_name = f"{heading}.{name}" if name else heading
                lists[list_name][language] = tuple(map(str.strip, values.split(",")))
    return dict(lists)
