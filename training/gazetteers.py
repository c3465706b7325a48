"""The gazetteers of other scripts and languages: given and family names, words that look like names, famous people.

In: Faker's lists by country; the dictionaries of jieba (Chinese) and Janome (Japanese), which tell
names from ordinary words; wordfreq's frequent words of Chinese and Korean; what is written by hand
in `gazetteers/`.
Out:
`data/names/*.txt.gz` of the package.
Not here: the names that replace others (`names`).
"""

import gzip
import importlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import files
from pathlib import Path

from wordfreq import get_frequency_dict

HAND = Path(__file__).resolve().parent / "gazetteers"

LOCALES = {
    "hangul": "ko_KR",
    "cyrillic": "ru_RU",
    "arabic": "ar_AA ar_SA ar_PS",
    "devanagari": "hi_IN",
    "latin": "de_DE de_AT de_CH fr_FR fr_CH es_ES es_MX es_CO es_AR es_CL pt_BR pt_PT it_IT nl_NL nl_BE pl_PL tr_TR",
    "vietnamese": "vi_VN",
    "japanese": "ja_JP",
    "han": "zh_CN zh_TW",
}
"""Faker's locales for each gazetteer."""

GIVEN = r"first_(kana_)?names(_(fe)?male|_unisex)?|middle_names_unisex"
FAMILY = r"last_(kana_)?names(_(fe)?male)?"

OFTEN = 10**-5.5
"""The least share of a Korean word that is taken for a word and not for a name."""

COMMON, RARE = 40, 10**-7
"""Chinese words that occur at least so often in jieba's corpus count as words, or that are at least such a share of
wordfreq's words and no names in jieba; rarer ones could hide names."""

NO_FAMILY = frozenset(
    "万年元家上下和有后海公前相爱查全权计原三来于时能都要就应何别明从连但容解母法保空方商单养强通那说"
)
"""Chinese surnames that are ordinary words nearly always; whoever has one is found by what stands around it."""

_KANJI = re.compile(r"[\u4e00-\u9fff々ヶ]+")

Sections = dict[str, list[str]]


def by_hand(name: str) -> Sections:
    """The sections of a file of `gazetteers/`: items are separated by commas or, in lines without any, by spaces."""
    found: Sections = {}
    section: list[str] = []
    for line in (HAND / f"{name}.txt").read_text("utf-8").splitlines():
        if head := re.fullmatch(r"\[(\w+)\]", line):
            section = found.setdefault(head[1], [])
        elif not line.startswith("#"):
            comma = next((mark for mark in (",", "،") if mark in line), None)
            section += [item.strip() for item in line.split(comma) if item.strip()]
    return found


def from_faker(locales: str, pattern: str) -> Iterator[str]:
    """The entries of Faker's lists of persons whose own name matches a pattern."""
    for locale in locales.split():
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        for name, entries in vars(provider).items():
            if re.fullmatch(pattern, name) and isinstance(entries, Iterable):
                yield from (entry.strip() for entry in entries if isinstance(entry, str))


def with_faker(name: str) -> Sections:
    """A file written by hand, with Faker's given and family names of its locales."""
    sections = by_hand(name)
    for section, pattern in (("given", GIVEN), ("family", FAMILY)):
        sections.setdefault(section, []).extend(from_faker(LOCALES[name], pattern))
    return sections


def han() -> Sections:
    """Chinese: surnames, the characters of given names and words, both with the logarithm of how often they occur."""
    import jieba

    sections = with_faker("han")
    entries = [line.split() for line in jieba.get_dict_file().read().decode("utf-8").splitlines()]
    counts = {word: (int(count), tag) for word, count, tag in entries}
    sections["family"] = [each for each in sections["family"] if each not in NO_FAMILY]
    family = {*sections["family"]}
    characters: Counter[str] = Counter("".join(sections["given"]))
    for word, (_, tag) in counts.items():
        if tag == "nr" and len(word) == 3 and word[0] in family and word[:2] not in family:
            characters.update(word[1:])
    words = {
        word: count
        for word, (count, tag) in counts.items()
        if len(word) <= 4
        and count >= (1 if len(word) == 1 else COMMON)
        and re.fullmatch(r"[\u4e00-\u9fff]+", word)
    }
    frequent = {word for word, share in get_frequency_dict("zh", "best").items() if share >= RARE}
    words |= {
        word: COMMON
        for word, (_, tag) in counts.items()
        if word in frequent
        and word not in words
        and tag != "nr"
        and re.fullmatch(r"[\u4e00-\u9fff]{2,4}", word)
    }
    words |= {
        word: max(words.get(word, 0), 4 * COMMON)
        for word in sections.pop("plain") + sections["public"]
    }
    sections["given"] = _by_weight({character: n for character, n in characters.items() if n >= 3})
    sections["words"] = _by_weight(words)
    return sections | {"traditional": ["".join(sorted({*_pairs()}))]}


def _pairs() -> Iterator[str]:
    """Traditional characters, each with its simplified form."""
    text = (HAND / "traditional.txt").read_text("utf-8").strip()
    pairs = {text[i]: text[i + 1] for i in range(0, len(text), 2)}
    yield from (old + new for old, new in pairs.items() if old != new)


def _by_weight(counts: Mapping[str, int]) -> list[str]:
    """Items after the binary logarithm of their count, which stands alone."""
    found: dict[int, list[str]] = {}
    for item, count in sorted(counts.items()):
        found.setdefault(round(math.log2(count)), []).append(item)
    return [each for weight in sorted(found) for each in (str(weight), *found[weight])]


def japanese() -> Sections:
    """Japanese: surnames and given names, those surnames that are places too, and words that look like names."""
    from janome import sysdic

    sections = with_faker("japanese")
    kinds: dict[str, set[str]] = {}
    for entry in sysdic.entries().values():
        if entry[4].startswith("名詞"):
            kinds.setdefault(entry[4], set()).add(entry[0])
    kind = "名詞,固有名詞,"
    family = {*sections["family"]} | {
        each for each in kinds[kind + "人名,姓"] if _KANJI.fullmatch(each)
    }
    given = {*sections["given"]} | {
        each for each in kinds[kind + "人名,名"] if _KANJI.fullmatch(each)
    }
    places = {
        each for name, held in kinds.items() if name.startswith(kind + "地域") for each in held
    }
    plain = {*sections["plain"]} | {
        each
        for name, held in kinds.items()
        if not name.startswith(kind + "人名")
        for each in held
        if _KANJI.fullmatch(each)
        and _looks_like_name(each, family, given, whole=not name.startswith(kind))
    }
    return {
        "family": sorted(family - plain),
        "unsure": sorted(family & plain),
        "given": sorted(given),
        "places": sorted(places & family),
        "plain": sorted(plain - family),
        "public": sections["public"],
    }


def hangul() -> Sections:
    """Korean: the frequent words that begin with a surname, besides those written by hand, are no names."""
    sections = with_faker("hangul")
    names = {*sections["given"], *sections["public"]}
    families = tuple(sections["family"])
    sections["plain"] += [
        word
        for word, share in get_frequency_dict("ko", "best").items()
        if share >= OFTEN and re.fullmatch("[가-힣]{2,4}", word) and word.startswith(families)
        if word not in names and word[1:] not in names
    ]
    return sections


def _looks_like_name(word: str, family: set[str], given: set[str], *, whole: bool) -> bool:
    """Whether a word could be taken for a name: for one part of it (if `whole`), or for both."""
    if whole and (word in family or word in given):
        return True
    return any(word[:i] in family and word[i:] in given for i in range(1, len(word)))


def written(sections: Mapping[str, Iterable[str]]) -> bytes:
    """A gazetteer as a file: each section's name in brackets, then its items, one a line or, if short, by weight."""
    lines = [line for name, items in sections.items() for line in (f"[{name}]", *_unique(items))]
    return gzip.compress("\n".join(lines).encode("utf-8"), 9, mtime=0)


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))


def notice() -> str:
    """The notices of the dictionaries, which must accompany what is taken from them."""
    janome = next(file for file in files("janome") or () if file.name == "NOTICE.txt")
    return "\n".join((janome.read_text("utf-8"), IPADIC, JIEBA, WORDFREQ))


IPADIC = """The notice above leaves out how that of mecab-ipadic begins:

Copyright 2000, 2001, 2002, 2003 Nara Institute of Science
and Technology.  All Rights Reserved.

Use, reproduction, and distribution of this software is permitted.
Any copy of this software, whether in its original form or modified,
must include both the above copyright notice and the following
paragraphs.
"""

JIEBA = """===========================================================================
jieba
===========================================================================

The list of Chinese words is taken from the dictionary of jieba, https://github.com/fxsjy/jieba

The MIT License (MIT)

Copyright (c) 2013 Sun Junyi

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


WORDFREQ = """===========================================================================
wordfreq
===========================================================================

Which words of Chinese and Korean are frequent is taken from wordfreq by Robyn Speer,
https://github.com/rspeer/wordfreq, whose data is under CC BY-SA 4.0; see lexicon/LICENSE-WORDFREQ.txt.
"""


def build(out: Path) -> None:
    """Writes all gazetteers into a folder."""
    made = {"han": han(), "japanese": japanese(), "hangul": hangul()}
    made |= {name: with_faker(name) for name in LOCALES if name not in made}
    hindi = by_hand(
        "devanagari"
    )  # of Faker's names many are words: they need something beside them
    sure = set(hindi["given"]) - set(hindi["unsure"])
    made["devanagari"] |= {
        "given": sorted(sure),
        "unsure": sorted({*made["devanagari"]["given"], *hindi["unsure"]} - sure),
    }
    for name, sections in made.items():
        (out / f"{name}.txt.gz").write_bytes(written(sections))
    (out / "LICENSE-DICTIONARIES.txt").write_text(notice(), "utf-8")
