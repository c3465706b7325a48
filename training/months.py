"""The names of the months in languages that are written with Latin, Cyrillic or Greek letters.

In: the Unicode CLDR, by Babel. Out: `data/months.txt`, a line for each month.
Not here: how dates are read with them (`textveil.detect.quantities`).

Run with `python -m training.months`; needs `pip install babel`.
"""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

LANGUAGES = """
    en en_GB en_AU de de_AT fr fr_CA es pt pt_PT it nl pl ru tr sv da nb nn fi is et lv lt cs sk sl bs sr_Latn hu ro ca
    gl eu id ms fil af sq mt cy ga lb rm az uz sw uk bg be mk sr el hr
"""
"""Where a word means two months, the language that comes first decides: `listopad` is November, as in Polish."""

OTHERS = {2: "febr", 3: "mrz maerz", 9: "sept"}
"""What people write besides."""

TARGET = Path("src/textveil/data/months.txt")


def words() -> list[list[str]]:
    """The words of each month, in small letters, without full stops, with accents and without."""
    months: dict[str, int] = {}
    for language in LANGUAGES.split():
        for month, word in _of(language):
            for each in (word, _plain(word)):
                months.setdefault(each, month)
    for month, listed in OTHERS.items():
        for word in listed.split():
            months.setdefault(word, month)
    return [
        sorted(word for word, month in months.items() if month == number) for number in range(1, 13)
    ]


def _of(language: str) -> Iterator[tuple[int, str]]:
    from babel import Locale

    months = Locale.parse(language).months
    for context in ("format", "stand-alone"):
        for width in ("wide", "abbreviated"):
            for month, name in months[context][width].items():
                word = name.rstrip(".").casefold()
                if word.isalpha():
                    yield month, word


def _plain(word: str) -> str:
    """A word without accents."""
    return "".join(
        each for each in unicodedata.normalize("NFD", word) if not unicodedata.combining(each)
    )


if __name__ == "__main__":
    TARGET.write_text("\n".join(map(" ".join, words())) + "\n", encoding="utf-8")
