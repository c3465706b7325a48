"""Generated sentences: templates filled with the names of private people and of what is public.

In: `templates.txt`, `requests.txt` and `alone.txt`, Faker's names of many countries, famous people,
entities of public text. Out: labelled texts (`data.Marked`).
Not here: corpora (`data`), and what trains on them (`tagger`).
"""

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import regex

from textveil.models.entities import DETAIL_TYPES
from textveil.text import fold_word
from textveil.text.lexicon import read_lists
from training import gazetteers, lexicon
from training.data import Marked, Mention, Tagged
from training.lists import countries
from training.names import CITIES, ORGANIZATIONS

TEMPLATES, REQUESTS, NAMED_ALONE, RELATIONS = (
    Path(__file__).resolve().parent / f"{name}.txt"
    for name in ("templates", "requests", "alone", "relations")
)

LOCALES = {
    "en": """
        en_US en_US en_GB en_GB en_IE en_IN en_KE en_NZ en_PK en_NG de_DE fr_FR es_ES es_MX it_IT pl_PL nl_NL sv_SE
        no_NO da_DK fi_FI cs_CZ ro_RO hu_HU hr_HR tr_TR id_ID sw tw_GH yo_NG pt_BR lt_LT sk_SK et_EE az_AZ zu_ZA
        ga_IE is_IS vi_VN
    """,
    "de": "de_DE de_AT de_CH tr_TR pl_PL",
    "fr": "fr_FR fr_BE fr_CA fr_DZ",
    "es": "es_ES es_MX es_AR es_CO es_CL",
    "pt": "pt_BR pt_PT",
    "it": "it_IT",
    "nl": "nl_NL nl_BE",
    "pl": "pl_PL",
    "tr": "tr_TR",
    "vi": "vi_VN",
    "ru": "ru_RU",
    "uk": "uk_UA",
    "zh": "zh_CN zh_TW",
    "ja": "ja_JP",
    "ko": "ko_KR",
    "ar": "ar_AA",
    "hi": "hi_IN",
}
"""Whose names stand in the templates of a language."""

FAMILY_FIRST = ("zh", "ja", "ko", "hu", "vi")
UNSPACED = ("zh", "ja", "ko")

SHARES = {"en": 0.55}
"""The share of templates of a language; the others share the rest evenly."""

TITLES = {
    "en": "Mr Mrs Ms Dr Mr. Mrs. Ms. Dr. Prof. Professor Miss",
    "de": "Herr Frau Dr. Prof.",
    "fr": "M. Mme Monsieur Madame",
    "nl": "meneer mevrouw",
}
FIRMS = (
    "{f} & {f2} LLP", "{f} and Sons", "{f} Consulting", "{f} Logistics", "{f} Holdings Ltd", "{f} Bakery",
    "{f} Dental Practice", "{w} {v}", "{w} {v}", "{w} {v}", "{w}{v2}", "{w}{v2}", "{w} {v} GmbH", "{w} {v} Ltd",
    "{w} {v} Inc.", "{f} GmbH", "{f} AG", "{f} S.A.", "{f} S.r.l.", "{f} Bank", "{l} Primary School",
    "{l} High School", "St {g} School", "{l} General Hospital", "{l} Medical Centre", "University of {l}",
    "{l} Community College", "{g}'s Garage", "{l} Town Council", "Cafe {g}", "Kanzlei {f}", "Praxis Dr. {f}",
    "Grundschule {l}", "Klinikum {l}", "Lycée {f}", "Collège {f}", "Cabinet {f}", "Clínica {f}", "Colegio {f}",
    "Bufete {f}", "Studio {f}", "Scuola {f}", "Przychodnia {l}", "Escola {f}", "Stichting {f}", "Bakkerij {f}",
)  # fmt: skip
WORDS = """
    Blue Green North Silver Bright Iron Oak River Stone Sun Nova Alpha Vertex Delta Clear True Summit Harbor Cedar
    Maple Zen Orbit Quantum Pixel Cloud Data Med Bio Agro Eco Euro Trans Inter Omni Vela Kora Luma Tera Axon Brio
    Calyx Dorn Elara Fenix Gravis Hexa
"""
KINDS = """
    Logistics Systems Solutions Media Health Partners Capital Analytics Foods Energy Labs Software Insurance Motors
    Textiles Group Design Pharma Builders Security Networks Robotics Ventures Clinic Academy Holdings Consulting
    Services Hotel Foundation Care
"""
ENDINGS = "soft tech works ware point line bridge field wave gate net med lab forge path"

MADE, MIDDLE, HYPHEN, KNOWN = 0.12, 0.08, 0.05, 0.35
"""Shares of made-up family names, middle names, hyphenated family names, and well-known places among private ones."""


class Names:
    """Names of private people and what belongs to them, drawn at random.

    Args:
        rng: randomness.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._people: dict[str, tuple[list[str], list[str]]] = {}
        self._places: dict[str, list[str]] = {}

    def pick(self, among: Sequence[str]) -> str:
        """One of them."""
        return among[int(self.rng.integers(len(among)))]

    def locale(self, language: str) -> str:
        """A country whose names are used in a language."""
        return self.pick(LOCALES.get(language, LOCALES["en"]).split())

    def person(self, locale: str) -> tuple[str, str]:
        """A given and a family name."""
        if locale not in self._people:
            self._people[locale] = _lists(locale)
        given, family = (self.pick(each) for each in self._people[locale])
        if locale[:2] in UNSPACED or not given.isascii():
            return given, family
        if self.rng.random() < MADE:
            family = _blend(family, self.pick(self._people[self.pick(list(self._people))][1]))
        if self.rng.random() < HYPHEN:
            family = f"{family}-{self.pick(self._people[locale][1])}"
        return given, family

    def full(self, given: str, family: str, locale: str) -> str:
        """A whole name as it is written there."""
        if locale[:2] in FAMILY_FIRST:
            return f"{family}{given}" if locale[:2] in UNSPACED else f"{family} {given}"
        if self.rng.random() < MIDDLE:
            middle = self.person(locale)[0]
            return f"{given} {middle[0] + '.' if self.rng.random() < 0.5 else middle} {family}"
        return f"{given} {family}"

    def place(self, locale: str) -> str:
        """Where somebody lives: a town of the country, or a well-known city."""
        if self.rng.random() < KNOWN and locale[:2] not in UNCASED:
            return self.pick(CITIES.split())
        if locale not in self._places:
            from faker import Faker

            faker = Faker(locale)
            faker.seed_instance(len(self._places))
            self._places[locale] = [faker.city() for _ in range(300)]
        return self.pick(self._places[locale])

    def firm(self, locale: str) -> str:
        """An employer, a school, a practice."""
        values = {
            "g": self.person(locale)[0],
            "f": self.person(locale)[1],
            "f2": self.person(locale)[1],
        }
        values |= {
            "l": self.place(locale),
            "w": self.pick(WORDS.split()),
            "v": self.pick(KINDS.split()),
            "v2": self.pick(ENDINGS.split()),
        }
        return self.pick(FIRMS).format(**values)


BY_HAND = {
    "ar_AA": "arabic",
    "hi_IN": "devanagari",
    "ja_JP": "japanese",
    "ko_KR": "hangul",
    "ru_RU": "cyrillic",
    "vi_VN": "vietnamese",
    "zh_CN": "han",
}
"""Files of `gazetteers` with names of countries of which Faker has few."""

FEWEST = 20
"""The fewest names of a list of Faker's that is used: it has two Vietnamese given names."""


def _lists(locale: str) -> tuple[list[str], list[str]]:
    from faker import Faker

    faker = Faker(locale)
    faker.seed_instance(0)
    given = [faker.first_name() for _ in range(400)]
    family = [faker.last_name() for _ in range(400)]
    module = importlib.import_module(f"faker.providers.person.{locale}").Provider
    for found, kind in ((given, "first_names"), (family, "last_names")):
        listed = getattr(module, kind, ())
        if isinstance(listed, Iterable):  # some are properties
            found.extend(sorted({name for name in listed if isinstance(name, str)}))
    given, family = (each if len({*each}) >= FEWEST else [] for each in (given, family))
    more = gazetteers.by_hand(BY_HAND[locale]) if locale in BY_HAND else {}
    return [*given, *more.get("given", ()), *more.get("unsure", ())], [
        *family,
        *more.get("family", ()),
    ]


def _blend(one: str, other: str) -> str:
    """A name that is on no list: the beginning of one and the end of another."""
    found = one[: max(2, len(one) // 2)] + other[len(other) // 2 :].lower()
    return found if found.isalpha() else one


class Public:
    """What is public, by slot, from what is typed in and from entities of public text."""

    def __init__(self, sentences: Sequence[Tagged], rng: np.random.Generator) -> None:
        self.rng = rng
        found: dict[str, list[str]] = {"PERSON": [], "LOCATION": [], "ORGANIZATION": []}
        for sentence in sentences:
            for start, end, kind in _entities(sentence.labels):
                text = " ".join(sentence.words[start:end])
                if re.fullmatch(r"[A-Z][\w'.& -]{3,40}", text) and not (
                    kind == "PERSON" and " " not in text
                ):
                    found[kind].append(text)
        people = _famous()
        things = [entry.replace("_", " ").replace(" - ", "-") for entry in lexicon.PRODUCTS.split()]
        self.slots = {
            "P": [people, people, found["PERSON"]],
            "L": [CITIES.split(), found["LOCATION"]],
            "O": [" ".join(ORGANIZATIONS.values()).split(), found["ORGANIZATION"]],
            "X": [things[: things.index("Bible")]],
            "C": [
                sorted({name for name in countries() if name[0].isascii() and name[0].isupper()})
            ],
        }

    def draw(self, slot: str) -> str:
        """One of a slot."""
        among = self.slots[slot][int(self.rng.integers(len(self.slots[slot])))]
        return among[int(self.rng.integers(len(among)))]


def _entities(labels: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    start = 0
    for i, label in enumerate([*labels, "O"]):
        before = labels[i - 1] if i else "O"
        if before[2:] and (label[:1] != "I" or label[2:] != before[2:]):
            yield start, i, before[2:]
        if label.startswith("B-"):
            start = i


KIND = {
    "p": "PERSON",
    "g": "PERSON",
    "f": "PERSON",
    "t": "PERSON",
    "i": "PERSON",
    "r": "PERSON",
    "o": "ORGANIZATION",
    "l": "LOCATION",
    "k": "ORGANIZATION",
    "w": "LOCATION",
    "m": "EMAIL",
    "u": "HANDLE",
    "n": "ID",
    "d": "DATE",
}
"""What stands in a slot; of numbers and dates it is not known whose they are."""

OPEN = {
    "P": "PERSON",
    "s": "PERSON",
    "C": "LOCATION",
    "L": "LOCATION",
    "O": "ORGANIZATION",
    "X": "OTHER",
}

EITHER = {"a": "pP", "b": "fs", "q": "oO", "z": "lL"}
"""Slots that are private in one half of the fillings and public in the other, all of one filling alike: the slot in
whose place each stands."""

WELL_KNOWN = {"k": "O", "w": "L"}
"""Slots of what everybody knows and is private by relation: the public slot from which each is drawn."""

_SLOT = re.compile(r"\{([pgftiromulkwPsCLOXndabqz])([0-9]?)\}")


def templates(path: Path = TEMPLATES) -> dict[str, list[str]]:
    """The templates of a file by language."""
    found: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            language, _, text = line.partition("|")
            found.setdefault(language, []).append(text.replace("\\n", "\n"))
    return found


def requests(*, held_out: bool, path: Path = REQUESTS) -> dict[str, list[str]]:
    """Templates of requests and sentences about one person or firm, by language; every fifth is held out.

    Args:
        held_out: which part.
        path: also `RELATIONS`: sentences in which somebody works, lives or is treated somewhere.
    """
    return {
        language: kept
        for language, each in templates(path).items()
        if (kept := [one for i, one in enumerate(each) if (i % 5 == 1) == held_out])
    }


def sentences(
    count: int,
    public: Sequence[Tagged],
    rng: np.random.Generator,
    known: Mapping[str, Sequence[str]],
) -> list[Marked]:
    """Filled templates.

    Args:
        count: how many.
        public: tagged sentences of public text, whose entities fill the slots of what is public.
        rng: randomness.
        known: templates by language.
    """
    names, famous = Names(rng), Public(public, rng)
    others = [language for language in known if language not in SHARES]
    found = []
    for _ in range(count):
        language = "en" if rng.random() < SHARES["en"] else names.pick(others)
        found.append(_filled(names.pick(known[language]), language, names, famous))
    return found


def _draw_date(names: Names) -> str:
    """Draws a date in one of three forms."""
    day, month, year = (int(names.rng.integers(*each)) for each in ((1, 29), (1, 13), (1940, 2026)))
    forms = f"{day:02}.{month:02}.{year}", f"{year}-{month:02}-{day:02}", f"{day}/{month}/{year}"
    return names.pick(list(forms))


def _fill_person_slot(
    slot: str, given: str, family: str, locale: str, *, language: str, names: Names
) -> str:
    """Writes a person, or what belongs to one, as a slot asks."""
    plain = re.sub(r"[^a-z]", "", fold_word(family)) or "user"
    first = re.sub(r"[^a-z]", "", fold_word(given)) or "x"
    if slot == "m":
        mark, host = names.pick([".", "_", ""]), names.pick(WORDS.split()).lower()
        return f"{first}{mark}{plain}@{host}.example"
    if slot == "u":
        number = int(names.rng.integers(10, 99))
        return names.pick([first[0] + plain, f"{first}.{plain}", f"{first}{number}"])
    if slot == "p":
        return names.full(given, family, locale)
    if slot == "t":
        return f"{names.pick(TITLES.get(language, TITLES['en']).split())} {family}"
    return {
        "g": given,
        "f": family,
        "i": f"{given[0]}. {family}",
        "r": f"{family}, {given}",
        "o": names.firm(locale) if slot == "o" else "",
        "l": names.place(locale) if slot == "l" else "",
    }[slot]


def _filled(template: str, language: str, names: Names, famous: Public) -> Marked:
    rng = names.rng
    values: dict[str, str] = {}
    people: dict[str, tuple[str, str, str]] = {}

    def value(slot: str, number: str) -> str:
        if slot == "s":
            return values.setdefault(f"P{number}", famous.draw("P")).split()[-1]
        if slot in OPEN:
            return famous.draw(slot)
        if slot in WELL_KNOWN:
            return famous.draw(WELL_KNOWN[slot])
        if slot == "n":
            return str(int(rng.integers(1, 10 ** int(rng.integers(1, 6)))))
        if slot == "d":
            return _draw_date(names)
        if number not in people:
            locale = names.locale(language)
            people[number] = (*names.person(locale), locale)
        return _fill_person_slot(slot, *people[number], language=language, names=names)

    known = bool(rng.random() < 0.5)
    text, mentions, at = "", [], 0
    for match in _SLOT.finditer(template):
        slot, number = match.groups()
        if slot in EITHER:
            slot = EITHER[slot][known]
        key = f"{slot}{number}"
        if slot in "nd" or key not in values:
            values[key] = value(slot, number)
        text += template[at : match.start()]
        kind = KIND.get(slot) or OPEN.get(slot) or ""
        if kind:
            standing = "public" if slot in OPEN else "borderline" if slot in "nd" else "private"
            mentions.append(Mention(len(text), len(text) + len(values[key]), kind, standing))
        text += values[key]
        at = match.end()
    return Marked(text + template[at:], mentions)


# ---- other names in labelled texts -------------------------------------------------------------------------

SWAPPED = 0.7
"""The share of a text's private people who get another name."""

FAMOUS = 0.06
"""The share of whole names that give way to that of somebody famous: many people have one."""

OWN = 0.65
"""The share of copies whose names are of countries of the text's language, where it is written in Latin letters."""

UNCASED = ("ru", "uk", "zh", "ja", "ko", "ar", "hi")
"""Languages in other letters."""


def renamed(marked: Marked, names: Names) -> Marked:
    """A text whose private people have other names, each word of a name always the same other one, in its casing.

    Names are those of countries of the text's language, in languages in Latin letters of others,
    too. Some private places and organizations change as well.
    """
    rng = names.rng
    own = marked.language in LOCALES and (marked.language in UNCASED or rng.random() < OWN)
    locale = names.locale(marked.language if own else "en")
    latin = marked.language not in UNCASED
    other: dict[str, str] = {}
    text, mentions, at = "", [], 0
    for mention in sorted(marked.mentions):
        text += marked.text[at : mention.start]
        value = marked.text[mention.start : mention.end]
        if mention.kind == "PERSON" and mention.standing in ("private", "invented"):
            value = _other_name(value, other, locale, names)
        elif mention.kind in DETAIL_TYPES and rng.random() < SWAPPED:
            value = _other_figures(value, mention.kind, rng)
        elif mention.standing == "private" and (value.istitle() or not latin):
            if mention.kind == "LOCATION" and rng.random() < 0.5:
                value = names.place(locale)
            elif mention.kind == "ORGANIZATION" and latin and rng.random() < 0.4:
                value = names.firm(locale)
        mentions.append(Mention(len(text), len(text) + len(value), mention.kind, mention.standing))
        text += value
        at = mention.end
    return Marked(text + marked.text[at:], mentions, marked.language)


def _other_name(value: str, other: dict[str, str], locale: str, names: Names) -> str:
    """A name with other words, which are those of the names before where they are known."""
    if locale[:2] in UNSPACED:
        if value not in other and _GLUED.fullmatch(value):
            given, family = names.person(locale)
            split = 2 if locale[:2] == "ja" and len(value) > 3 else 1
            if names.rng.random() >= SWAPPED:
                family, given = value[:split], value[split:]
            other |= {value: family + given, value[:split]: family, value[split:]: given}
        return other.get(value, value)
    words = _LETTERS.findall(value)
    if (
        value not in other
        and value.istitle()
        and len(value.split()) == 2
        and names.rng.random() < FAMOUS
    ):
        given, family = names.pick(_namesakes()).split()
        other |= dict(zip(value.lower().split(), (given, family), strict=True))
    last = max((i for i, word in enumerate(words) if word[0].isalpha()), default=0)
    for i, word in enumerate(words):
        if (
            not word[0].isalpha()
            or len(word) < 3
            or word.lower() in KEPT
            or (word.islower() and not value.islower())
        ):
            continue  # of words in small letters beside capitals most are titles and particles
        if word.lower() not in other:
            new = names.person(locale)[1 if i == last and i else 0]
            other[word.lower()] = new if names.rng.random() < SWAPPED else word
        new = other[word.lower()]
        words[i] = (
            new.lower()
            if word.islower() and word != word.upper()
            else new.upper()
            if _shouted(word)
            else new
        )
    return "".join(words)


@cache
def _famous() -> list[str]:
    """Famous people by their names in Latin letters."""
    return [name for name in lexicon.famous() if _LATIN.fullmatch(name)]


@cache
def _namesakes() -> list[str]:
    """Those whose given and family name others have, too."""
    names, _, _ = read_lists()
    pairs = [name.split() for name in _famous() if name.count(" ") == 1]
    return [" ".join(pair) for pair in pairs if {*map(fold_word, pair)} <= names]


def _other_figures(value: str, kind: str, rng: np.random.Generator) -> str:
    """A value with other figures; those of dates and ages stay plausible."""

    def other(found: re.Match[str]) -> str:
        size = len(found[0])
        if kind == "AGE":
            return str(int(rng.integers(18, 95)))
        if kind == "DATE" and size in (1, 2, 4):
            return f"{int(rng.integers(1940, 2026) if size == 4 else rng.integers(1, 13)):0{size}d}"
        return "".join(map(str, rng.integers(0, 10, size)))

    return re.sub(r"[0-9]+", other, value)


def _shouted(word: str) -> bool:
    return word.isupper() and word != word.lower()


_LETTERS = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0900-\u0963\u0300-\u036f])*|(?:[\W\d_])+")
_LATIN = regex.compile(r"[\p{Latin} .'’-]+")
_GLUED = re.compile(r"[\u3400-\u9fff\uac00-\ud7af]{2,4}")

KEPT = (
    "mrs",
    "miss",
    "prof",
    "sir",
    "dame",
    "herr",
    "frau",
    "dott",
    "ssa",
    "sig",
    "señor",
    "señora",
    "doña",
)
"""Titles in names."""
