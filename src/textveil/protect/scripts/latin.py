"""Names in German, French, Spanish, Portuguese, Italian, Dutch, Polish and Turkish: after titles and by given names.

In: a text in one of these languages. Out: `FoundName`.
Not here: English, which the tagger reads.

Capitalized words that stand together are read as one group, with the particles between them (von, de la, dos). A name
begins behind a title or at a listed given name. Given names that are words too (Rosa, Deniz, Mark) need a title, a cell or
a surname beside them.
"""

import re
from functools import cache
from typing import NamedTuple

from textveil.protect.scripts.gazetteers import CERTAIN, DOUBTFUL, FoundName, names

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*\.?")
_PARTICLES = frozenset(
    "von van der den de del della di da dos das do du des la le el y e zu ten ter bin al".split()
)

_TITLE = re.compile(
    r"(?:\b(?:Herrn?|Frau|Familie|Fam\.|Madame|Mme|Mlle|Monsieur|Mademoiselle|M\.|MM\.|Maître|[Ss]r[.]?|[Ss]ra[.]?|[Ss]rta[.]?|[Ss]eñor(?:a|ita)?|[Dd]on|[Dd]oña|D\.|D\.ª|Dña\.|[Dd]ona|[Ss]eu|"
    r"SR\.|SRA\.|[Ss]ig\.|[Ss]ig\.ra|[Ss]ignor[ae]?|[Ss]ignorina|[Dd]ott\.|[Dd]ott\.ssa|[Dd]ottor|[Dd]ottoressa|Dr\.?|Dra\.?|Drs\.|Prof\.?|Profª|[Aa]vv\.|[Ii]ng\.|[Gg]eom\.|[Dd]hr\.?|[Mm]evr\.?|[Mm]w\.?|[Mm]eneer|"
    r"[Mm]evrouw|[Pp]an(?:i|a|u|em|ie|ią|om)?|[Pp]aństw[oau]|[Ss]ayın|Doç\. Dr\.|Av\.|[Tt]ante|[Oo]nkel|Oma|Opa|[Zz]i[ao]|[Tt][ií][ao]|[Nn]onn[ao]|[Ss]eñorita|P\.|[Mm]üşteri:|[Ll]iebe[rs]?|"
    r"[Cc]h(?:er|ère)|[Qq]uerid[oa]|[Ee]stimad[oa]|[Pp]rezad[oa]|[Cc]ar[oa]|[Gg]entile|[Bb]este|[Dd]rog[ia]|[Ss]evgili|[Hh]allo|[Bb]onjour|[Ss]alut|[Hh]ola|[Oo]lá|[Cc]iao|[Hh]oi|[Cc]ześć|[Mm]erhaba|[Ss]elam) ){1,3}\Z"
)
_AFTER = re.compile(
    r" (?:Bey|Hanım|bey|hanım|[Aa]bi|[Aa]bla|[Hh]oca|teyze|amca|dayı|usta)\w{0,5}\b"
)
_LABEL = re.compile(
    r"(?:\b(?:Name|Nachname|Vorname|Kunde|Kundin|Patient(?:in)?|Nom|Prénom|Client(?:e)?|Nombre|Apellidos?|Paciente|Pac|Pcte|Nome|Cognome|Cliente|Mãe|Pai|Madre|Padre|Utente|Naam|Klant|Patiënt|Huisarts|Imię|Nazwisko|"
    r"Klient(?:ka)?|Pacjent(?:ka)?|Ad|Soyad|Ad Soyad|Müşteri|Hasta|Von|An|De|À|Para|Da|A|Van|Aan|Od|Do|Kimden|Kime|Vendedor(?:a)?|Comprador(?:a)?|Fdo|gez|i\. ?A|Ansprechpartner(?:in)?|Contacto|Contact|Contatto|Kontakt)[.]?\s*:\s*)\Z"
)
_STREET = re.compile(
    r"(?:stra(?:ß|ss)e|str\.|weg|platz|rue|avenue|av\.|boulevard|bd|place|calle|c/|avenida|avda\.|plaza|paseo|rua|travessa|via|viale|corso|piazza|c\.so|straat|laan|plein|ul\.|ulica|plac|al\.|cad\.|cadde\w*|sok\.|mah\.|lycée|collège|"
    r"école|scuola|primaria|escola|colegio|schule|museum|musée|museo|stade|aéroport|gymnasium|saint|sainte|san|santa|sankt|são|santo|théorème|satz|teorema|twierdzenie|test)\s(?:[\w.]+\s){0,1}\Z",
    re.IGNORECASE,
)
_STOP = frozenset(
    "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag Januar Februar März April Mai Juni Juli August September Oktober November Dezember Bitte Danke Grüße Termin Rechnung "
    "Frage Antrag Anfrage Ihnen Sie Ihr Ihre Uhr Euro Der Die Das Ein Eine Und Ich Wir Mit Für Auf Im In Am Le La Les Un Une El Los Las Una O A Os As Um Uma Il Lo Gli De Het Een En Ik W Z Na Do Bir Bu Ve "
    "Damen Herren Herr Frau Madame Monsieur Señor Señora Pan Pani Bey Hanım Dr Prof An Leider IVA Iva Che Sindaco Beste Lieve Elke Ella Segundo Alcalde Maire Juge Redactie".split()
)
_OPENS = frozenset("\"'«“„([{,;|=:\t\n<>/")
_CLOSES = frozenset("\"'»”“)]},;|:\t\n<>(/")

_LANGUAGES = {
    "de": "der die das und ist nicht ein eine zu mit auf für von dem den ich sie wir wie auch oder sind haben bitte",
    "fr": "le les des et est pas une pour dans que qui je vous nous avec sur ce elle du au mon ma votre",
    "es": "el los las y es una para en que con por su como yo lo del al se mi más pero está",
    "pt": "os e é não uma para em que com por seu como eu do da no na se mais está meu minha dos",
    "it": "il gli è non una per che con di del della sono mi ma più questo mio mia alla dal nel",
    "nl": "het een en is niet van voor met op dat ik je we hoe ook er maar aan zijn wat naar heeft",
    "pl": "nie jest w na z że się jak dla czy ale mi jego od przez są za oraz proszę",
    "tr": "ve bir bu için ile ne mi çok ama gibi var yok değil ben olarak daha mı bunu nasıl",
}
_ENGLISH = frozenset(
    "the and is of to that it for as was are this be have from you my not but can what how".split()
)


class _Latin(NamedTuple):
    given: frozenset[str]
    unsure: frozenset[str]
    family: frozenset[str]
    public: frozenset[str]


@cache
def _lists() -> _Latin:
    given, unsure, family, public = (names("latin", each) for each in _Latin._fields)
    return _Latin(given - unsure, unsure, family, frozenset(each.casefold() for each in public))


@cache
def _words_of() -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in _LANGUAGES.items()}


def applies(text: str) -> bool:
    """Whether a text has words of one of the languages: at least three common ones (eight in a long text), more than of English."""
    seen = {match[0].lower() for match in _WORD.finditer(text[:20_000])}
    english, least = len(seen & _ENGLISH), 3 if len(seen) < 200 else 8
    return any(
        len(seen & words) >= least and len(seen & words) > english for words in _words_of().values()
    )


def find(text: str) -> list[FoundName]:
    """The names in a text; those that are certain are found again where nothing speaks for them."""
    if not applies(text):
        return []
    words = [(match[0], match.start(), match.end()) for match in _WORD.finditer(text)]
    found: list[FoundName] = []
    i = 0
    while i < len(words):
        if not words[i][0][0].isupper():
            i += 1
            continue
        stop = _row(text, words, i)
        found += _in_row(text, words, i, stop)
        i = stop
    return found + _again(words, found)


def _row(text: str, words: list[tuple[str, int, int]], i: int) -> int:
    """The word after a row of capitalized words, with particles between them."""
    stop = last = i + 1
    while (
        stop < len(words)
        and stop - i < 8
        and text[words[stop - 1][2] : words[stop][1]] in ("", " ")
        and not _ends(words[stop - 1][0])
    ):
        word = words[stop][0]
        if word[0].isupper():
            last = stop + 1
        elif word not in _PARTICLES:
            break
        stop += 1
    return last


def _ends(word: str) -> bool:
    """Whether a word ends a sentence: a full stop that is no initial's."""
    return word.endswith(".") and len(word) > 3


def _bare(word: str) -> str:
    """A word as names are listed: without its full stop, capitals only at the beginning of each part."""
    word = word.rstrip(".")
    return (
        word
        if not word.isupper() or len(word) < 3
        else "-".join(part.capitalize() for part in word.split("-"))
    )


def _in_row(text: str, words: list[tuple[str, int, int]], i: int, stop: int) -> list[FoundName]:
    """The first name in a row of capitalized words, which reaches to its end."""
    lists = _lists()
    for at in range(i, stop):
        word, start, _ = words[at]
        name = _bare(word)
        before = text[max(0, start - 40) : start]
        title = _TITLE.search(before) is not None
        label = _LABEL.search(before) is not None
        opened = start == 0 or text[start - 1] in _OPENS or before.endswith(": ")
        short = word.isupper() and len(name) < 5  # more often an abbreviation
        given = (name in lists.given and not short) or (
            "-" in name and all(part in lists.given for part in name.split("-"))
        )
        unsure = name in lists.unsure
        initial = len(word) == 2 and word[1] == "." and at + 1 < stop and len(words[at + 1][0]) > 2
        if not (title or label or given or unsure or initial):
            continue
        if name in _STOP or (_STREET.search(before) and not title):
            return []
        end_word = at + 1
        while end_word < min(stop, at + 6) and words[end_word][0] not in _STOP:
            end_word += 1
        while end_word > at + 1 and not words[end_word - 1][0][0].isupper():
            end_word -= 1
        end = words[end_word - 1][2]
        if text[end - 1] == "." and len(words[end_word - 1][0]) > 2:
            end -= 1
        full = text[start:end]
        closed = end == len(text) or text[end] in _CLOSES
        rest = [_bare(each) for each, _, _ in words[at + 1 : end_word]]
        public = full.casefold() in lists.public or (
            title and f"{before.split()[-1]} {full}".casefold() in lists.public
        )
        surname = any(each in lists.family for each in rest)
        if (
            at > i and not title and (given or unsure)
        ):  # a surname in capitals, or in a cell, before the given name
            head = words[i][0]
            first = words[i][1]
            cell = (first == 0 or text[first - 1] in _OPENS) and closed and at - i == 1
            if (head.isupper() and len(head) > 2) or (cell and head not in _STOP):
                start, cue = first, True
                return [
                    FoundName(start, end, "PERSON", cue, text[start:end].casefold() in lists.public)
                ]
        called = _AFTER.match(text, end) is not None
        cell = (opened and closed) or label
        if title and (given or unsure or name in lists.family or rest or _capital_title(before)):
            return [FoundName(start, end, "PERSON", not public, public)]
        if called or (cell and (given or (unsure and surname))) or (label and (given or unsure)):
            return [FoundName(start, end, "PERSON", not public, public)]
        if initial and not given:
            if not rest or not (rest[-1] in lists.family or closed):
                continue
            return [FoundName(start, end, "PERSON", closed, public)]
        if given:
            return [
                FoundName(
                    start,
                    end,
                    "PERSON",
                    surname and len(rest) > 0,
                    public,
                    CERTAIN if rest else DOUBTFUL,
                )
            ]
        if unsure and surname and len(rest) <= 3:
            return [FoundName(start, end, "PERSON", False, public, DOUBTFUL)]
        if public:
            return [FoundName(start, end, "PERSON", False, True)]
    return []


def _capital_title(before: str) -> bool:
    """Whether the title before is one that only surnames follow: no greeting, whose next word may be any."""
    last = before.split()[-1]
    return last.lower().rstrip(".") not in _GREETINGS


_GREETINGS = frozenset(
    "liebe lieber liebes cher chère querido querida estimado estimada prezado prezada caro cara gentile beste drogi droga sevgili hallo bonjour salut hola olá ciao hoi cześć merhaba selam p m d oma opa pan pani don".split()
)


def _again(words: list[tuple[str, int, int]], found: list[FoundName]) -> list[FoundName]:
    """Further mentions of the parts of names that are certain and no words."""
    lists = _lists()
    places = {start: i for i, (_, start, _) in enumerate(words)}
    known: set[str] = set()
    inside: set[int] = set()
    for each in found:
        i = places[each.start]
        while i < len(words) and words[i][1] < each.end:
            name = _bare(words[i][0])
            if (
                each.cue
                and not each.public
                and len(name) > 2
                and name[0].isupper()
                and name not in lists.unsure
                and name not in _STOP
            ):
                known.add(name)
            inside.add(i)
            i += 1
    return [
        FoundName(start, start + len(word.rstrip(".")), "PERSON", True, False)
        for i, (word, start, _) in enumerate(words)
        if i not in inside and word[0].isupper() and _bare(word) in known
    ]
