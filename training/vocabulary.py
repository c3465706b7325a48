"""Writes what the Unicode CLDR knows of languages into `data/vocabulary`: `make vocabulary`.

In: the CLDR, by Babel. Out: the months of each language, and its weekdays where forms are read,
below a mark in its file.
Not here: all other lists, which are written by hand, and how they are read
(`textveil.text.vocabulary`).
"""

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import yaml
from babel import Locale

LANGUAGES = """
    en de fr es pt it nl pl ru tr sv da nb nn fi is et lv lt cs sk sl bs sr hr hu ro ca gl eu id ms
    tl af sq mt cy ga lb rm uz sw uk bg be mk el az
"""
"""Languages in Latin, Cyrillic and Greek letters. Where a word means two months, the language that comes first
decides: `listopad` is November, as in Polish. Azerbaijani is last: Babel mixes its months into
those read after it."""

LOCALES = {
    "en": "en en_GB en_AU",
    "de": "de de_AT",
    "fr": "fr fr_CA",
    "pt": "pt pt_PT",
    "sr": "sr_Latn sr",
    "tl": "fil",
}
"""Where there are others than the language."""

TARGET = Path("src/textveil/data/vocabulary")
MARK = "# What follows is from the Unicode CLDR and months_also, by `make vocabulary`.\n"


def main(folder: Path = TARGET) -> None:
    """Writes the files of a folder."""
    taken: dict[str, int] = {}
    for language in LANGUAGES.split():
        file = folder / f"{language}.yaml"
        by_hand = file.read_text("utf-8").partition(MARK)[0] if file.exists() else head(language)
        also = (yaml.load(by_hand, yaml.BaseLoader) or {}).get("months_also", {})
        told = "months:\n"
        for month, words in named(language, "months").items():
            own = free([*words, *filter(None, also.get(str(month), "").split(", "))], month, taken)
            told += f"  {month}: {', '.join(own)}\n" if own else ""
        if "\nfields:" in by_hand:
            days = named(language, "days", ("wide",))
            told += f"weekdays: {', '.join(word for words in days.values() for word in words)}\n"
        file.write_text(by_hand + MARK + told, "utf-8")


def free(words: Sequence[str], month: int, taken: dict[str, int]) -> list[str]:
    """Returns the words that mean no other month, and takes them, with accents and without."""
    own = [word for word in words if taken.get(word, month) == month]
    for word in own:
        taken.setdefault(word, month)
        taken.setdefault(plain(word), month)
    return own


def head(language: str) -> str:
    """Returns the first line of a file."""
    name = Locale("en").languages.get(language, "no language in particular")
    return (
        f"# Words of {name}; keys.yaml says what each list is for. Mend them, then `make test`.\n"
    )


def named(
    language: str, what: str, widths: Sequence[str] = ("wide", "abbreviated")
) -> dict[int, list[str]]:
    """Returns the names of months or days by number, in small letters: first as they stand alone."""
    names: defaultdict[int, list[str]] = defaultdict(list)
    for locale in LOCALES.get(language, language).split():
        contexts = getattr(Locale.parse(locale), what)
        for width in widths:
            for context in ("stand-alone", "format"):
                for number, name in sorted(contexts[context][width].items()):
                    word = name.rstrip(".").lower()
                    if word not in names[number] and word.replace("-", "").isalpha():
                        names[number].append(word)
    return names


def plain(word: str) -> str:
    """Returns a word without accents."""
    return "".join(
        each for each in unicodedata.normalize("NFD", word) if not unicodedata.combining(each)
    )


if __name__ == "__main__":
    main()
