"""Hindi names: listed names with surnames, titles before and after.

In: a text. Out: `FoundName`.
Not here: the lists (`gazetteers`).

Many names are ordinary words too (आशा, किरण, सागर): those need a title, a surname or a cell.
"""

import re
from functools import cache
from typing import NamedTuple

from textveil.protect.scripts.gazetteers import FoundName, names, one_by_one

_WORD = re.compile(r"[\u0900-\u0963\u0970-\u097f\u200c\u200d]+")

_BEFORE = frozenset(
    "श्री श्रीमती सुश्री कुमारी कु डॉ डॉक्टर डा स्व पंडित पं वैद्य मिस्टर मिसेज मिस श्रीमान प्रो प्रोफेसर मास्टर नाम मेरा".split()
)
_LABEL = re.compile(
    r"(?:नाम|पिता|माता|पति|पत्नी|पुत्र|पुत्री|आवेदक|ग्राहक|मरीज़|मरीज|रोगी|छात्र|छात्रा|अभिभावक|उपभोक्ता|शिकायतकर्ता|प्रार्थी|विक्रेता|क्रेता|किरायेदार|मालिक|हस्ताक्षर|"
    r"भाई|बहन|बेटा|बेटी|बेटे|चाचा|मामा|दोस्त|सहेली|पड़ोसी|सहकर्मी|लाइनमैन|ठेकेदार|भतीजा|भतीजी|भवदीय|भवदीया|आपका|आपकी|संपर्क|नामांकित|गवाह)(?:[^\n:：]{0,14}[:：])?[\s\"'“]*\Z"
)
_AFTER = frozenset("जी साहब साहिब साब भाई भैया दीदी बहन अंकल आंटी सर मैडम मैम चाचा काका".split())
_KIN = frozenset(
    "ताऊ ताई माता पिता दादा दादी नाना नानी चाचा चाची मामा मामी बुआ मौसी भाई भैया दीदी बहन गुरु पंडित मास्टर डॉक्टर भाभी जीजा साले बाबू बाबा माँ मां अम्मा बेटा बेटी जी हाँ नहीं हां प्रभु देवी माताजी महाराज नेता".split()
)
_OPENS = frozenset("\"'“‘([{,;|=:\t\n<>/-")
_CLOSES = frozenset("\"'”’)]},;|:\t\n<>(/")


class _Hindi(NamedTuple):
    given: frozenset[str]
    unsure: frozenset[str]
    family: frozenset[str]
    public: frozenset[str]


def _plain(word: str) -> str:
    """A word without the dots of borrowed sounds, and with one sign of nasals."""
    return word.translate(_SAME)


_SAME = {0x93C: None, 0x200C: None, 0x200D: None, 0x901: 0x902} | dict(
    zip(range(0x958, 0x960), (0x915, 0x916, 0x917, 0x91C, 0x921, 0x922, 0x92B, 0x92F), strict=True)
)


@cache
def _lists() -> _Hindi:
    given, unsure, family, public = (
        frozenset(map(_plain, names("devanagari", each))) for each in _Hindi._fields
    )
    return _Hindi(given - family, unsure, family, public)


def find(text: str) -> list[FoundName]:
    """The names in a text; those that are certain are found again where nothing speaks for them."""
    words = [(_plain(match[0]), match.start(), match.end()) for match in _WORD.finditer(text)]
    found = one_by_one(text, words, _at)
    return found + _again(words, found)


def _kind(word: str) -> str:
    lists = _lists()
    return (
        "F"
        if word in lists.family
        else "G"
        if word in lists.given
        else "U"
        if word in lists.unsure
        else "X"
    )


def _near(text: str, words: list[tuple[str, int, int]], i: int) -> bool:
    """Whether a word follows the one before it directly, or after an abbreviation's full stop."""
    return 0 < i < len(words) and text[words[i - 1][2] : words[i][1]] in (" ", ". ", ".")


def _at(text: str, words: list[tuple[str, int, int]], i: int) -> tuple[FoundName | None, int]:
    """The name that begins at a word, and the word to go on with."""
    lists = _lists()
    word, start, _ = words[i]
    title = _near(text, words, i) and words[i - 1][0] in _BEFORE
    kinds, stop = "", i
    while (
        stop < len(words)
        and stop - i < 4
        and (stop == i or text[words[stop - 1][2] : words[stop][1]] == " ")
    ):
        kind = _kind(words[stop][0])
        first = stop == i and title and word not in _BEFORE and word not in _KIN and len(word) > 2
        if first and words[i - 1][0] in _SAID:
            first = (
                words[i - 1][0] == "नाम"
                and word not in _COMMON
                and words[i + 1 : i + 2] != []
                and words[i + 1][0] in _IS
            )
        before_family = stop == i and kind == "X" and _family_follows(text, words, i)
        if kind == "X" and not (first or before_family):
            break
        kinds, stop = kinds + kind, stop + 1
        if (
            kind == "F"
            and stop - i > 1
            and not (stop < len(words) and _kind(words[stop][0]) == "F")
        ):
            break
    if not kinds:
        return None, i + 1
    end = words[stop - 1][2]
    name = " ".join(each for each, _, _ in words[i:stop])
    public = name in lists.public
    after = words[stop][0] if _near(text, words, stop) else ""
    called = after in _AFTER and after not in ("भाई", "बहन", "सर") and word not in _KIN
    edge = end == len(text) or text[end] in _CLOSES or text[end : end + 2] == " ("
    cell = edge and (
        start == 0 or text[start - 1] in _OPENS or text[start - 2 : start] in (": ", '" ')
    )
    label = _LABEL.search(text[max(0, start - 24) : start]) is not None
    if title and words[i - 1][0] not in _SAID:
        start = words[i - 1][1]
    if title or called:
        return FoundName(
            start, words[stop][2] if called else end, "PERSON", not public, public
        ), stop
    if (
        len(kinds) > 1
        and "F" in kinds[1:]
        and (kinds[0] != "X" or cell or label or kinds[1] == "F")
    ):
        return FoundName(start, end, "PERSON", cell or label, public), stop
    if kinds == "F" and not (label and cell):
        return (FoundName(start, end, "PERSON", False, True), stop) if public else (None, i + 1)
    if kinds[0] == "G" or label or cell:
        if kinds[0] != "G" and not (label and edge):
            return None, i + 1
        return FoundName(start, end, "PERSON", label or cell, public), stop
    return (FoundName(start, end, "PERSON", False, True), stop) if public else (None, i + 1)


def _family_follows(text: str, words: list[tuple[str, int, int]], i: int) -> bool:
    """Whether the next word is a surname, and not one that is a word of its own."""
    if not _near(text, words, i + 1):
        return False
    word, after = words[i][0], words[i + 1][0]
    return (
        after in _lists().family
        and len(word) > 2
        and word not in _COMMON
        and after
        not in (
            "मोरे",
            "माने",
            "सेन",
            "राव",
            "गिल",
            "राय",
            "दास",
            "राजपूत",
            "नाइक",
            "मीना",
            "निगम",
            "मंडल",
            "मालिक",
            "मिस्त्री",
        )
    )


_SAID = ("नाम", "मेरा")
"""What a name may follow, as anything else may: "(my) name", "my"."""

_IS = ("है", "हैं", "था", "थी", "थे")

_COMMON = frozenset(
    map(
        _plain,
        "और का की के में से को ने पर यह वह है हैं था थी थे एक दो तीन भी तो ही या कि जो तक लिए साथ बाद पहले अब जब तब क्या कौन कैसे कहाँ क्यों मेरे मेरी हमारे उनके उनकी इसके इस उस जैसे सभी कुछ कितने कितना कितनी सीधे लॉग करता होते रहे बहुत नहीं राजा महाराजा रानी बेगम सम्राट ठाकुर खिलाड़ी गायक लेखक कवि नेता अभिनेता लाल वीर".split(),
    )
)


def _again(words: list[tuple[str, int, int]], found: list[FoundName]) -> list[FoundName]:
    """Further mentions of the parts of names that are certain."""
    lists = _lists()
    places = {start: i for i, (_, start, _) in enumerate(words)}
    known: set[str] = set()
    inside: set[int] = set()
    for each in found:
        i = places[each.start]
        while i < len(words) and words[i][2] <= each.end:
            word = words[i][0]
            if (
                each.cue
                and not each.public
                and word not in lists.unsure
                and word not in _BEFORE
                and word not in _AFTER
                and word not in ("सिंह", "कुमार", "कुमारी", "देवी", "लाल", "प्रसाद", "खान")
            ):
                known.add(word)
            inside.add(words[i][1])
            i += 1
    return [
        FoundName(start, end, "PERSON", True, False)
        for word, start, end in words
        if word in known and start not in inside
    ]
