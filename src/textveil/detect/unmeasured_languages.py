"""Unmeasured: scripts and languages in which recall was not measured.

In: texts. Out: the names of those scripts and languages in a text, and the parts written in them.
Not here: detection in measured languages (the other modules), and what follows from it (`stages`).

A script is recognised by its letters; a language in a measured script by letters that only this
language uses, or by its common words.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import regex

from textveil.detect.spans import WHOLE_TYPE, Span
from textveil.text import LazyPattern, is_public, vocabulary

_LETTERS = LazyPattern(
    r"(?V1)[[\p{L}\p{M}]--[\p{Latin}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Cyrillic}\p{Arabic}\p{Devanagari}"
    r"\p{Common}\p{Inherited}]]{3}"
)
_RUN = LazyPattern(
    r"(?V1)[[\p{L}\p{M}]--[\p{Latin}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Cyrillic}\p{Arabic}\p{Devanagari}"
    r"\p{Common}\p{Inherited}]][\p{M}\p{L}\u200b-\u200d]*+"
)
_WORD = LazyPattern(r"(?V1)[\p{L}\p{M}]++(?:['’]\p{L}++)?+")

_OWN_LETTERS = {
    "Ukrainian": regex.compile(r"[іїєґІЇЄҐ]"),
    "Serbian or Macedonian": regex.compile(r"[ђјљњћџѓќѕЂЈЉЊЋЏЃЌЅ]"),
    "Belarusian": regex.compile(r"[ўЎ]"),
    "Kazakh": regex.compile(r"[әғқңөұүһӘҒҚҢӨҰҮҺ]"),
    "Urdu": regex.compile(r"[ٹڈڑںھہے]"),
    "Persian": regex.compile(r"[پچژگ]"),
}
"""Letters of measured scripts that only an unmeasured language uses."""

_NAMES = {
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish or Norwegian",
    "et": "Estonian",
    "fi": "Finnish",
    "hr": "Croatian, Bosnian or Serbian",
    "hu": "Hungarian",
    "id": "Indonesian or Malay",
    "is": "Icelandic",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "ro": "Romanian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sv": "Swedish",
    "sw": "Swahili",
    "tl": "Tagalog",
}
"""Unmeasured languages in Latin letters, recognised by their common words.

These words must outweigh the common words of every measured language in the text.
"""


@cache
def _load_profiles() -> tuple[dict[str, frozenset[str]], tuple[frozenset[str], ...]]:
    common = vocabulary.get_words_by_language("common")
    return {name: frozenset(common[code]) for code, name in _NAMES.items()}, tuple(
        frozenset(words) for code, words in common.items() if code not in _NAMES
    )


def list_unmeasured(text: str) -> tuple[str, ...]:
    """Lists the unmeasured scripts and languages of a text, sorted.

    A few words of another language are not noticed; a script is noticed from three letters in a
    row.
    """
    names: set[str] = set()
    if not text.isascii():
        names |= {_name_script(match[0][0]) for match in _LETTERS.finditer(text)}
        for name, letters in _OWN_LETTERS.items():
            if (
                letters.search(text)
                # The search ends at the third letter, not at the end of a long text.
                and sum(1 for _ in zip(letters.finditer(text), range(3), strict=False)) == 3
            ):
                names.add(name)
        # Urdu uses the letters of Persian, too.
        if "Urdu" in names:
            names.discard("Persian")
    language = _detect_language(text)
    return tuple(sorted(names | {language} - {""}))


def _name_script(letter: str) -> str:
    return unicodedata.name(letter, "unknown").split()[0].capitalize()


def _detect_language(text: str) -> str:
    """Returns the unmeasured Latin-script language of a text, or "".

    It has at least four different common words in the text, which make up a twelfth of all words,
    and its weight is more than 1.5 times that of the best measured language.
    """
    counts = Counter(map(str.lower, _WORD.findall(text)))
    profiles, measured = _load_profiles()
    best_measured = max(_count_common(counts, words) for words in measured)
    weight, name = max((_count_common(counts, words), name) for name, words in profiles.items())
    kinds = len(profiles[name] & counts.keys())
    enough = kinds >= 4 and weight * 12 >= sum(counts.values())
    return name if enough and weight > 1.5 * best_measured else ""


def _count_common(counts: dict[str, int], words: frozenset[str]) -> int:
    return sum([counts[word] for word in words if word in counts])


@dataclass(frozen=True, kw_only=True)
class Unmeasured:
    """A detector of all non-public words in unmeasured scripts and languages."""

    name: str = field(default="unmeasured", init=False)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds runs of words in unmeasured scripts or languages.

        In a text of an unmeasured language every word counts; otherwise only words of the script
        do.
        """
        return [
            Span(i, start, end, WHOLE_TYPE, 1.0, self.name)
            for i, text in enumerate(texts)
            for start, end in _find_runs(text, list_unmeasured(text))
        ]


def _find_runs(text: str, names: tuple[str, ...]) -> list[tuple[int, int]]:
    """Finds runs of non-public words, joined across single spaces."""
    if not names:
        return []
    whole = any(name in _load_profiles()[0] or name in _OWN_LETTERS for name in names)
    runs: list[tuple[int, int]] = []
    for match in (_WORD if whole else _RUN).finditer(text):
        if is_public(match[0]):
            continue
        start, end = match.span()
        if runs and text[runs[-1][1] : start] in ("", " "):
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return runs
