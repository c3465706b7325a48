"""Scripts and languages for which it was not measured how much is found.

In: texts. Out: the names of those scripts and languages in a text, and the parts written in them.
Not here: what is found in the measured ones (the modules beside), and what follows from it (`textveil.protect.grouping`).

A script is known by its letters; a language in a measured script by letters that only it has, or by its commonest words.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import regex

from textveil.detect.spans import WHOLE, Span
from textveil.text import is_public

_LETTERS = regex.compile(
    r"(?V1)[[\p{L}\p{M}]--[\p{Latin}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Cyrillic}\p{Arabic}\p{Devanagari}"
    r"\p{Common}\p{Inherited}]]{3}"
)
_RUN = regex.compile(
    r"(?V1)[[\p{L}\p{M}]--[\p{Latin}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Cyrillic}\p{Arabic}\p{Devanagari}"
    r"\p{Common}\p{Inherited}]][\p{M}\p{L}\u200b-\u200d]*+"
)
_WORD = regex.compile(r"(?V1)[\p{L}\p{M}]++(?:['’]\p{L}++)?+")

_OWN_LETTERS = {
    "Ukrainian": regex.compile(r"[іїєґІЇЄҐ]"),
    "Serbian or Macedonian": regex.compile(r"[ђјљњћџѓќѕЂЈЉЊЋЏЃЌЅ]"),
    "Belarusian": regex.compile(r"[ўЎ]"),
    "Kazakh": regex.compile(r"[әғқңөұүһӘҒҚҢӨҰҮҺ]"),
    "Urdu": regex.compile(r"[ٹڈڑںھہے]"),
    "Persian": regex.compile(r"[پچژگ]"),
}
"""Letters of scripts that were measured for another language."""

_COMMON = {
    "Swedish": "och att det som inte är jag för med har den till på av vi hur från eller måste också efter där vad",
    "Danish or Norwegian": "og at det som ikke er jeg for med har den til på av vi hvordan fra eller også efter hvad hva deg dig mig meg noen nogle",
    "Finnish": "ja että se on ei joka hän ovat olen mutta niin kuin tai myös minun sinun tämä kun mitä miten kanssa sekä voi",
    "Hungarian": "és hogy nem egy az ez van meg volt csak már mint vagy ha kell lehet ezt azt nagyon köszönöm szeretném",
    "Czech": "a v na se je to s o do pro že jsem jsou není ale jako jeho její který která které když nebo taky také můžete prosím děkuji aby jsme podle být",
    "Slovak": "a v na sa je to s o do pre že som sú nie je ale ako jeho jej ktorý ktorá ktoré keď alebo tiež môžete prosím ďakujem aby sme podľa byť",
    "Romanian": "și să nu este sunt pentru cu din care mai despre dacă ce acest această fi lui într mulțumesc vreau prin sau",
    "Croatian, Bosnian or Serbian": "da je nije su što koji koja koje ili kao za od sam bio kako može hvala molim ako samo prije poslije",
    "Slovenian": "da je ni so kaj ki ali kot za od sem bil kako lahko hvala prosim če samo pred med tudi biti",
    "Lithuanian": "ir kad yra nėra bet kaip kuris kuri arba taip pat ačiū prašau jei man jis ji su dėl apie",
    "Latvian": "un ka ir nav bet kā kurš kura vai arī paldies lūdzu ja man viņš viņa ar par no tiek",
    "Estonian": "ja et on ei aga kui mis kes või ka aitäh palun mina tema selle seda oma see oli kuidas",
    "Indonesian or Malay": "yang dan di ini itu dengan untuk tidak dari dalam adalah saya akan pada bisa juga ke karena atau boleh",
    "Tagalog": "ang ng mga sa na ay ko mo siya hindi ito ako kung para po ba lang may kami namin",
    "Swahili": "na ya wa kwa ni katika hii huyo yangu kuwa lakini kama au pia asante tafadhali mimi yeye sana",
    "Catalan": "els amb és però com aquest aquesta què per més gràcies tinc són també dels quan molt",
    "Albanian": "dhe në që është nuk për me një si ky kjo por ose edhe faleminderit ju lutem jam janë",
    "Icelandic": "og að það sem ekki er ég fyrir með hefur til á við hvernig frá eða líka eftir hvað þetta",
}
"""Common words of languages in Latin letters."""

_MEASURED = (
    "the and is of to in that it for with as was on are this be have from you my not but can what how",
    "der die das und ist nicht ein eine zu mit auf für von dem den ich sie wir wie auch es im oder",
    "le la les des et est pas un une pour dans que qui je vous nous avec sur ce il elle du au",
    "el la los las y es no un una para en que con por su como yo lo del al se mi más pero",
    "o a os as e é não um uma para em que com por seu como eu do da no na se mais mas",
    "il lo la gli le e è non un una per in che con di del della come io mi ma più sono",
    "de het een en is niet van voor met op dat ik je we hoe ook er maar of aan die te zijn wat om naar",
    "i nie jest w na z do że się to jak co dla czy ale mi jego o od po przez są za",
    "ve bir bu için ile de da ne mi çok ama gibi var yok değil ben olarak daha en",
    "và là của có không cho với được trong một các này tôi em anh những khi thì",
)
"""The same of the measured languages, of which a text must have fewer."""


@cache
def _profiles() -> tuple[dict[str, frozenset[str]], tuple[frozenset[str], ...]]:
    return {name: frozenset(words.split()) for name, words in _COMMON.items()}, tuple(
        frozenset(words.split()) for words in _MEASURED
    )


def unmeasured(text: str) -> tuple[str, ...]:
    """The scripts and languages of a text for which it was not measured how much is found, sorted.

    A word or two of another language are not noticed; a script is from three letters in a row on.
    """
    found: set[str] = set()
    if not text.isascii():
        found |= {_script(match[0][0]) for match in _LETTERS.finditer(text)}
        for name, letters in _OWN_LETTERS.items():
            if (
                letters.search(text)
                and sum(1 for _ in zip(letters.finditer(text), range(3), strict=False)) == 3
            ):
                found.add(name)
        if "Urdu" in found:
            found.discard("Persian")
    language = _language(text)
    return tuple(sorted(found | {language} - {""}))


def _script(letter: str) -> str:
    return unicodedata.name(letter, "unknown").split()[0].capitalize()


def _language(text: str) -> str:
    """The language in Latin letters whose commonest words are most of those of a text; empty if it is a measured one."""
    counts = Counter(map(str.lower, _WORD.findall(text)))
    others, measured = _profiles()
    known = max(_weight(counts, words) for words in measured)
    weight, name = max((_weight(counts, words), name) for name, words in others.items())
    kinds = len(others[name] & counts.keys())
    enough = kinds >= 4 and weight * 12 >= sum(counts.values())
    return name if enough and weight > 1.5 * known else ""


def _weight(counts: dict[str, int], words: frozenset[str]) -> int:
    return sum([counts[word] for word in words if word in counts])


@dataclass(frozen=True, kw_only=True)
class Unmeasured:
    """A detector of all that is written in unmeasured scripts and languages, but for public words."""

    name: str = field(default="unmeasured", init=False)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The parts of all texts: runs of an unmeasured script, and of words in texts of an unmeasured language."""
        return [
            Span(i, start, end, WHOLE, 1.0, self.name)
            for i, text in enumerate(texts)
            for start, end in _parts(text, unmeasured(text))
        ]


def _parts(text: str, names: tuple[str, ...]) -> list[tuple[int, int]]:
    """Runs of words, with what stands between them, as long as it is spaces."""
    if not names:
        return []
    whole = any(name in _COMMON or name in _OWN_LETTERS for name in names)
    found: list[tuple[int, int]] = []
    for match in (_WORD if whole else _RUN).finditer(text):
        if is_public(match[0]):
            continue
        start, end = match.span()
        if found and text[found[-1][1] : start] in ("", " "):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
