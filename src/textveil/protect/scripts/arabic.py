"""Arabic names: listed names in a row, and what titles, kinship words and names of parents and children stand before.

In: a text. Out: `FoundName`.
Not here: the lists (`gazetteers`).

Many names are ordinary words too (كريم, أمل, نور): those need a title, a cell, or another name beside them.
"""

import re
from functools import cache
from typing import NamedTuple

from textveil.protect.scripts.gazetteers import CERTAIN, DOUBTFUL, FoundName, names, one_by_one

_WORD = re.compile(r"[\u0621-\u065f\u0670-\u06d3]+")
_MARKS = re.compile(r"[\u064b-\u065f\u0670\u0640]")
_ON = "على"
"""The commonest word that is spelled like a name, as only some write it."""

_SAME = str.maketrans(
    {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ة": "ه", "ؤ": "و", "ئ": "ي"}
)

_TITLES = (
    "السيد السيدة سيد سيدة الآنسة الأستاذ الأستاذة أستاذ أستاذة الدكتور الدكتورة دكتور دكتورة المهندس المهندسة مهندس مهندسة الشيخ الشيخة الحاج الحاجة "
    "المعلم المعلمة المدرب المحامي المحامية القاضي العميل العميلة المريض المريضة الزبون الموظف الموظفة المدير المديرة الكابتن العم الخالة خالتي عمي عمتي خالي "
    "الطالب الطالبة المستخدم المستخدمة المواطن المواطنة الأخ الأخت باسم لصالح"
)
_KIN = (
    "زوجي زوجتي زوجته زوجها أخي أخوي أختي أخوه أخته أخوها ابني ابنتي ابنه ابنته ابنها بنتي ولدي والدي والدتي أبي أمي أمها أمه أبوه صديقي صديقتي صديقه جاري جارتي زميلي زميلتي زميلها "
    "زميله مديري مديرتي خطيبي خطيبتي حفيدي عمه خاله اسمي اسمه اسمها اسم الاسم أنا مراته جوزها أخوه"
)
_BETWEEN = "بن بنت ابن ابنة آل"
_NOBODY = frozenset("رحمه المحترم رئيس مدير قائد وزير محافظ عميد".split())
"""Words behind a title that are no names."""

_KUNYA = "أبو أبا أبي أم ابو ام"
_CLITICS = ("ول", "وب", "وال", "ال", "ل", "و", "ب", "ف", "ك")
_NO_KUNYA = frozenset("ظبي القرى الهول الدنيا درمان قير الفحم".split())
_SHORT_TITLE = re.compile(r"(?:\A|[\s(،,:])(?:د|م|أ|ا|أ\.د|الأ)\.\s?\Z")
_OPENS = frozenset("\"'«“([{,،;؛|=:\t\n<>/*-–—")
_CLOSES = frozenset("\"'»”)]},،;؛|:\t\n<>(/–—")


def _plain(word: str) -> str:
    if word == _ON:
        return word
    return _MARKS.sub("", word).translate(_SAME)


_ADDRESS = frozenset(
    map(
        _plain,
        "السيد السيدة الآنسة الأستاذ الأستاذة أستاذة الدكتور الدكتورة المهندس الشيخ الشيخة الحاج الحاجة".split(),
    )
)
"""Titles that only names follow."""


class _Arabic(NamedTuple):
    given: frozenset[str]
    unsure: frozenset[str]
    family: frozenset[str]
    public: frozenset[str]
    titles: frozenset[str]
    kin: frozenset[str]
    between: frozenset[str]
    kunya: frozenset[str]


@cache
def _lists() -> _Arabic:
    listed = [
        frozenset(_plain(each) for each in names("arabic", name))
        for name in ("given", "unsure", "family", "public")
    ]
    words = [frozenset(map(_plain, each.split())) for each in (_TITLES, _KIN, _BETWEEN, _KUNYA)]
    listed[0] |= {
        part
        for each in listed[0]
        for part in each.split()
        if len(part) > 3 and part.startswith("عبد")
    }
    return _Arabic(listed[0] - listed[1], *listed[1:], *words)


def find(text: str) -> list[FoundName]:
    """The names in a text; those that are certain are found again where nothing speaks for them."""
    words = [(_plain(match[0]), match.start(), match.end()) for match in _WORD.finditer(text)]
    found = one_by_one(text, words, _at)
    return found + _again(words, found)


def _kind(word: str) -> str:
    """What a word is in a name: given, unsure, family, between two names, 'abd, or other."""
    lists = _lists()
    if word in lists.given:
        return "G"
    if word in lists.unsure or word == _ON:
        return "U"
    if word in lists.between:
        return "B"
    if word in lists.kunya:
        return "K"
    if word == "عبد":
        return "A"
    if word in lists.family:
        return "F"
    return (
        "N"
        if word.startswith("ال") and word.endswith(("ي", "يه", "وي", "اني")) and len(word) > 5
        else "X"
    )


def _at(text: str, words: list[tuple[str, int, int]], i: int) -> tuple[FoundName | None, int]:
    """The name that begins at a word, and the word to go on with."""
    lists = _lists()
    start = words[i][1]
    before = text[max(0, start - 5) : start]
    last = words[i - 1][0] if i and text[words[i - 1][2] : start].strip(" :") == "" else ""
    title = last in lists.titles or _SHORT_TITLE.search(before) is not None
    kin = last in lists.kin
    kinds, stop = _row(text, words, i, title=title and (last in _ADDRESS or not last))
    if not kinds:
        return None, i + 1
    opened = (
        start == 0
        or text[start - 1] in _OPENS
        or (text[start - 1] == " " and text[start - 2 : start - 1] in _OPENS)
    )
    whole = _to_edge(text, words, stop, i + 5) if opened and "G" in kinds else stop
    kinds, stop = (kinds + "X" * (whole - stop), whole)
    end = words[stop - 1][2]
    cell = opened and (
        end == len(text)
        or text[end] in _CLOSES
        or text[end : end + 2] in (" :", " -", " –", " —", " |", " <", " (")
    )
    name = " ".join(word for word, _, _ in words[i:stop])
    public = name in lists.public
    sure = (
        sum(kinds.count(each) for each in "GF") + kinds.count("K") + ("A" in kinds) + ("B" in kinds)
    )
    if last in lists.titles:
        start = words[i - 1][1]
    cue = title or kin or (cell and sure > 0) or kinds.startswith("K")
    if (
        title
        or (sure and (len(kinds) > 1 or kinds in "GK"))
        or (kin and kinds[0] in "GU")
        or public
    ):
        return FoundName(
            start,
            end,
            "PERSON",
            cue and not public,
            public,
            CERTAIN if len(kinds) > 1 or cue else DOUBTFUL,
        ), stop
    if (kinds.count("U") > 1 and (cell or kin)) or (
        kinds == "U" and cell and text[end : end + 1] in ":,"
    ):
        return FoundName(start, end, "PERSON", False, public), stop
    return None, i + 1


def _to_edge(text: str, words: list[tuple[str, int, int]], at: int, most: int) -> int:
    """The word after a cell of at most some words; where the name ends, if its cell does not end so soon."""
    stop = at
    while stop < min(most, len(words)) and text[words[stop - 1][2] : words[stop][1]] == " ":
        stop += 1
    end = words[stop - 1][2]
    after = text[end : end + 2]
    return (
        stop
        if not after or after[0] in _CLOSES - set("،,") or after in (" –", " —", " |", " <", " (")
        else at
    )


def _row(text: str, words: list[tuple[str, int, int]], i: int, *, title: bool) -> tuple[str, int]:
    """The kinds of the words from one on that belong to one name, and the word after them."""
    kinds, at = "", i
    while at < len(words) and at - i < 6:
        word, start, _ = words[at]
        if at > i and text[words[at - 1][2] : start] != " ":
            break
        kind = _kind(word)
        if kinds[-1:] == "K" and kind != "F":
            break
        if kind == "K" and at + 1 < len(words) and text[words[at][2] : words[at + 1][1]] == " ":
            after = words[at + 1][0]
            if after in _NO_KUNYA or _kind(after) not in "GUF":
                break
            kinds, at = kinds + "K", at + 2
            continue
        if kind == "A" and at + 1 < len(words) and words[at + 1][0].startswith("ال"):
            kinds, at = kinds + "A", at + 2
            continue
        if (
            kind == "B"
            and kinds
            and at + 1 < len(words)
            and text[words[at][2] : words[at + 1][1]] == " "
        ):
            kinds, at = kinds + "B", at + 2
            continue
        if kind in "GU" or (kinds and kind in "FN") or (kind == "F" and title):
            kinds, at = kinds + kind, at + 1
            continue
        if (
            title
            and not kinds
            and kind in "XN"
            and word not in _lists().titles
            and len(word) > 2
            and not word.startswith(("الت", "الم", "الذ"))
            and word not in _NOBODY
        ):
            kinds, at = kinds + "X", at + 1
            continue
        break
    return kinds, at


def _again(words: list[tuple[str, int, int]], found: list[FoundName]) -> list[FoundName]:
    """Further mentions of the parts of names that are certain, also behind a particle."""
    lists = _lists()
    places = {start: i for i, (_, start, _) in enumerate(words)}
    known: set[str] = set()
    for each in found:
        if each.cue and not each.public:
            i = places[each.start]
            i += words[i][0] in lists.titles
            while i < len(words) and words[i][2] <= each.end:
                if words[i][0] not in lists.unsure and _kind(words[i][0]) not in "BKA":
                    known.add(words[i][0])
                i += 1
    inside = {start for each in found for start in range(each.start, each.end)}
    again = []
    for word, start, end in words:
        if start in inside:
            continue
        bare = next(
            (
                word[len(each) :]
                for each in _CLITICS
                if word.startswith(each) and len(word) - len(each) > 2
            ),
            "",
        )
        if word in known or bare in known:
            again.append(FoundName(start, end, "PERSON", True, False))
        elif bare in lists.given and word.startswith(("ل", "و")) and len(bare) > 3:
            again.append(FoundName(start, end, "PERSON", False, False, DOUBTFUL))
    return again
