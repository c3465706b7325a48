"""Names in other scripts and languages than English, by gazetteers and by the words around them.

In: texts. Out: spans of persons, places and organizations.
Not here: names that the tagger reads out of what surrounds them (`adapters`), and identifiers of all countries (`patterns`).

A text is looked at only in the scripts and languages that it has letters or words of. All rules are linear in the text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from textveil.protect.scripts import (
    arabic,
    cyrillic,
    devanagari,
    han,
    hangul,
    japanese,
    latin,
    vietnamese,
)
from textveil.protect.scripts.gazetteers import DOUBTFUL, FoundName
from textveil.protect.spans import Span

PUBLIC, UNCLEAR, LIKELY = 0.1, 0.3, 0.9
"""How probable it is that a name is of somebody private: one on a list of famous names; one that nothing says more about
in a text about famous people; any other."""

_PERSONAL = re.compile(r"@\w|\d[\d .\-/]{5,}\d")

_KANA = re.compile(r"[ぁ-んァ-ヺｦ-ﾟ]")
_JAPANESE = re.compile(r"氏名|参加者|出席者|株式会社|御中|担当者：")
_HAN = re.compile(r"[\u4e00-\u9fff]")


def _characters(text: str) -> list[FoundName]:
    """Chinese or Japanese, whichever a text mostly is: in Japanese every tenth character at least is kana."""
    if _JAPANESE.search(text):
        return japanese.find(text)
    kana = sum(1 for _ in _KANA.finditer(text))
    return (
        japanese.find(text)
        if kana and 10 * kana >= sum(1 for _ in _HAN.finditer(text))
        else han.find(text)
    )


_SCRIPTS: tuple[tuple[re.Pattern[str], Callable[[str], list[FoundName]]], ...] = (
    (re.compile(r"[\u4e00-\u9fffぁ-んァ-ヺｦ-ﾟ]"), _characters),
    (re.compile(r"[가-힣]"), hangul.find),
    (re.compile(r"[А-Яа-яЁё]{2}"), cyrillic.find),
    (re.compile(r"[\u0621-\u064a]{2}"), arabic.find),
    (re.compile(r"[\u0905-\u0939]"), devanagari.find),
    (re.compile(r"[ăđơưĂĐƠƯ\u1ea0-\u1ef9]"), vietnamese.find),
    (re.compile(r"[A-Za-zÀ-ž]{2}"), latin.find),
)


@dataclass(frozen=True, kw_only=True)
class Scripts:
    """Finds names in the scripts and languages that the English tagger does not read."""

    name: str = field(default="scripts", init=False)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The names in all texts; they may overlap."""
        return [span for i, text in enumerate(texts) for span in self._spans(i, text)]

    def _spans(self, i: int, text: str) -> Iterator[Span]:
        found = [each for letter, find in _SCRIPTS if letter.search(text) for each in find(text)]
        if not found:
            return
        told = any(each.cue for each in found) or _PERSONAL.search(text) is not None
        famous = any(each.public for each in found)
        for each in found:
            if each.public:
                private = PUBLIC
            elif each.cue:
                private = 1.0
            else:
                private = LIKELY if told or not (famous or each.score <= DOUBTFUL) else UNCLEAR
            yield Span(i, each.start, each.end, each.type, each.score, self.name, private)
