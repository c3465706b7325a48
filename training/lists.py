"""Faker's lists by country, as they are.

In: the installed Faker. Out: names of people, countries in many languages.
Not here: which of them are shipped (`names`, `lexicon`).
"""

import importlib
from collections.abc import Iterable, Iterator
from re import fullmatch


def of_locales(provider: str, lists: str) -> Iterator[tuple[str, Iterable[str | tuple[str, ...]]]]:
    """The lists of all locales whose names match a regular expression, each with its locale.

    Args:
        provider: `person` or `address`.
        lists: the expression.
    """
    from faker.config import AVAILABLE_LOCALES

    for locale in sorted(AVAILABLE_LOCALES):
        try:
            module = importlib.import_module(f"faker.providers.{provider}.{locale}")
        except ModuleNotFoundError:  # not every provider knows every locale
            continue
        for name, found in vars(module.Provider).items():
            if fullmatch(lists, name) and isinstance(found, Iterable):  # some are properties
                yield locale, found


def entries(provider: str, lists: str) -> Iterator[str]:
    """The entries of these lists."""
    for _, found in of_locales(provider, lists):
        for entry in found:
            yield from entry if isinstance(entry, tuple) else (entry,)


def countries() -> Iterator[str]:
    """Countries in many languages."""
    return entries("address", "countries")
