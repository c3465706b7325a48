"""Russian names: given names and surnames in all cases, patronymics, initials.

In: a text. Out: `FoundName`.
Not here: the lists (`gazetteers`).

Capitalized words that stand together are read as one group; in it patronymics, initials, listed names and the endings of
surnames tell where the name is.
"""

import re
from functools import cache
from typing import NamedTuple

from textveil.protect.scripts.gazetteers import CERTAIN, DOUBTFUL, FoundName, names

_WORD = re.compile(r"[А-ЯЁа-яё]+(?:-[А-ЯЁа-яё]+)*")

_PATRONYMIC = re.compile(
    r"[А-ЯЁ][а-яё]{2,}(?:(?:ович|евич|ьич|мич|кич)(?:а|у|ем|е|и|ей|ам)?|(?:овн|евн|ичн|иничн)(?:а|ы|е|у|ой|ою))|[А-ЯЁ]{3,}(?:ВИЧ|ВНА|ИЧНА)"
)
_SURNAME = re.compile(
    r"[А-ЯЁ](?:[а-яё]+-[А-ЯЁ])?[а-яё]+(?:(?:[оеё]в|[иы]н)(?:а|у|ым|е|ой|ы|ых)?|(?:ск|цк)(?:ий|ого|ому|им|ом|ая|ой|ую)|енко|[чщ]ук(?:а|у|ом|е)?|[а-яё]юк(?:а|у|ом|е)?|"
    r"[яа]н(?:а|у|ом|е)|дзе|швили|[ыи]х|ец|(?:ович|евич)(?:а|у|ем|е)?)"
)
_TITLE = re.compile(
    r"(?:г-(?:н|жа|на|жу|же|жой|ном|ну)|господин\w*|госпож\w*|гр\.|гражданин\w*|гражданк\w*|доктор\w*|д-р\w*|проф\.|профессор\w*|т[её]т[яюеи]|дяд[яюеи]|баб(?:а|е|у|ушка|ушке|ушку)|"
    r"дедушк\w|[Пп]ац\.|[Пп]ациент\w*|[Кк]лиент\w*|[Зз]аявител\w*|[Мм]астер\w*|врач\w*|менеджер\w*|директор\w*|инженер\w*|бухгалтер\w*|сын\w*|доч\w+|муж\w*|жен[аеуы]|мам[аеуы]|пап[аеуы]|"
    r"брат\w*|сестр\w*|друг\w*|подруг\w*|коллег\w*|сосед\w*|[Уу]важаем\w+|[Дд]орог\w+|[Зз]овут|ФИО|[Ии]мя|[Фф]амилия|[Оо]тчество|[Кк]онтакт\w*|[Оо]тветственн\w+|[Ии]сполнитель|"
    r"[Зз]аказчик|[Пп]олучатель|[Оо]тправитель|[Кк]ому|[Оо]т кого|[Пп]одпись|[Аа]втор|[Пп]ривет|[Зз]дравствуй\w*|[Сс]пасибо|ИП|[Пп]одозреваем\w+|[Сс]видетель|[Сс]отрудни\w+|"
    r"[Нн]ачальни\w+|[Шш]еф\w*|[Рр]уководител\w+|[Пп]омощни\w+|[Сс]тудент\w*|[Уу]чени\w+|[Уу]чител\w+|[Вв]оспитател\w+)[\"»']?\s*[:,—-]?\s*[\"«']?\Z"
)
_PLACE = re.compile(
    r"(?:ул\.|улиц[аеыу]|пр\.|проспект\w*|пер\.|переулок|площад\w*|пл\.|метро|станци\w+|город\w*|г\.|сел[оае]|деревн\w+|пос\.|шоссе|бульвар\w*|набережн\w+|музе\w+|театр\w*|имени|им\.|теорем\w+|закон\w*|формул\w+|уравнени\w+|таблиц\w+|постоянн\w+|числ\w+|метод\w*|област[ьи]|район\w*|кра[йяе])\s*\Z"
)
_OPENS = frozenset("\"'«“([{,;|=:\t\n<>/")
_CLOSES = frozenset("\"'»”)]},;|:\t\n<>(/")


class _Russian(NamedTuple):
    given: frozenset[str]
    unsure: frozenset[str]
    family: frozenset[str]
    public: frozenset[str]
    plain: frozenset[str]


@cache
def _lists() -> _Russian:
    given = names("cyrillic", "given")
    unsure = names("cyrillic", "unsure")
    return _Russian(
        frozenset(form for name in given - unsure for form in _forms(name)),
        frozenset(form for name in unsure for form in _forms(name)),
        frozenset(form for name in names("cyrillic", "family") for form in _forms(name)),
        frozenset(
            form.replace("ё", "е")
            for name in names("cyrillic", "public")
            for form in _all_forms(name)
        ),
        names("cyrillic", "plain"),
    )


def _forms(name: str) -> list[str]:
    """A name in all cases."""
    stem, last = name[:-1], name[-1:]
    if last == "а":
        soft = stem[-1:] in "гкхжшчщ"
        endings = ["а", "и" if soft else "ы", "е", "у", "ой", "ою"] + ["ей"] * (
            stem[-1:] in "жшчщц"
        )
        return [stem + ending for ending in endings]
    if last == "я":
        endings = ["я", "и", "ю", "ей", "ею", "и" if stem.endswith("и") else "е"]
        return [stem + ending for ending in endings]
    if last == "й":
        if name.endswith(("ский", "цкий", "ый", "ой")):
            return [name, *(name[:-2] + each for each in ("ого", "ому", "им", "ым", "ом"))]
        return [
            name,
            *(stem + each for each in ("я", "ю", "ем", "и" if stem.endswith("и") else "е")),
        ]
    if last == "ь":
        return [name, *(stem + each for each in ("я", "ю", "ем", "е", "и", "ью"))]
    if name.endswith(("ок", "ек", "ёк")) and len(name) > 4:
        return [
            name,
            *(name[:-2] + each for each in ("ка", "ку", "ком", "ке", "ька", "ьку", "ьком")),
        ]
    if last in "оеиуюэыё":
        return [name]
    lost = ["Льв", "Павл"] if name in ("Лев", "Павел") else []
    return [
        name,
        *(
            each + ending
            for each in ([name] if not lost else [lost[name == "Павел"]])
            for ending in ("а", "у", "ом", "ем", "ым", "е", "ой", "ы")
        ),
    ]


def _all_forms(name: str) -> list[str]:
    """A famous name in all cases: all its words in the nominative, or the last alone."""
    if " " not in name:
        return _forms(name)
    return [
        name,
        *(" ".join(pair) for pair in zip(*(_forms(part) for part in name.split()), strict=False)),
    ]


def find(text: str) -> list[FoundName]:
    """The names in a text; those that are certain are found again where nothing speaks for them."""
    found: list[FoundName] = []
    group: list[tuple[str, int, int]] = []
    for part in _parts(text):
        if group and text[group[-1][2] : part[1]] not in ("", " "):
            found += _in_group(text, group)
            group = []
        group.append(part)
    found += _in_group(text, group)
    return found + _again(text, found)


def _parts(text: str) -> list[tuple[str, int, int]]:
    """Capitalized words and initials with their places; and lower-case short forms, alone."""
    parts = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        if len(match[0]) == 1 and match[0].isupper() and text[end : end + 1] == ".":
            end += 1
        elif not match[0][0].isupper():
            continue
        parts.append((text[start:end], start, end))
    return parts


def _kind(word: str) -> str:
    """What a capitalized word is: initial, patronymic, given, unsure, family, ending of a surname, plain or other."""
    if len(word) == 2 and word[1] == ".":
        return "I"
    lists = _lists()
    name = word if not word.isupper() or len(word) < 3 else word.capitalize()
    if _PATRONYMIC.fullmatch(word) and len(word) > 6:
        return "P"
    if name in lists.given:
        return "G"
    if name in lists.unsure:
        return "U"
    if name in lists.plain:
        return "-"
    if name in lists.family:
        return "F"
    return "S" if _SURNAME.fullmatch(name) and len(name) > 4 else "X"


_NAME = re.compile(
    r"[FSX]?[GU]P[FSXGU]?|[FSX][GU]P|[GUX]P[FSX]?|I{1,2}[FSXGU]|[FSXGU]I{1,2}|[GU][FS]|[FS][GU]|G[GUX]|XG(?![FS])|[GU]|P|F|S"
)
"""Names by the kinds of their words; the first that fits at a place is taken."""


def _in_group(text: str, group: list[tuple[str, int, int]]) -> list[FoundName]:
    kinds = "".join(_kind(word) for word, _, _ in group)
    found = []
    for match in _NAME.finditer(kinds):
        words = group[match.start() : match.end()]
        name = _judged(text, words, match[0])
        if name is not None:
            found.append(name)
    rest = {i for match in _NAME.finditer(kinds) for i in range(match.start(), match.end())}
    for i, (word, start, end) in enumerate(group):
        if (
            i not in rest
            and kinds[i] == "X"
            and i == 0
            and len(group) == 1
            and len(word) > 2
            and _personal_title(text, start)
        ):
            found.append(FoundName(start, end, "PERSON", False, _public(word), DOUBTFUL))
    return found


_PERSON_TITLE = re.compile(
    r"(?:г-(?:н|жа|ну|же|на|жу)|господин\w*|госпож\w*|гр\.|д-р|т[её]т[яюеи]|дяд[яюеи]|[Пп]ац\.|[Зз]овут)\s*\Z"
)


def _personal_title(text: str, start: int) -> bool:
    return _PERSON_TITLE.search(text[max(0, start - 20) : start]) is not None


def _public(name: str) -> bool:
    return name.replace("ё", "е") in _lists().public


def _judged(text: str, words: list[tuple[str, int, int]], kinds: str) -> FoundName | None:
    """A name of these kinds of words, if it may stand here."""
    (first, start, _), (last, _, end) = words[0], words[-1]
    before = text[max(0, start - 24) : start]
    name = text[start:end]
    if _PLACE.search(before):
        return None
    public = (
        _public(name)
        or (kinds in ("F", "S") and _public(first))
        or (kinds in ("IF", "IIF", "IS", "IIS", "GF", "GS", "GPF", "GPS") and _public(last))
    )
    title = _TITLE.search(before) is not None
    cell = (start == 0 or text[start - 1] in _OPENS) and (end == len(text) or text[end] in _CLOSES)
    begins = start == 0 or before.rstrip(" ")[-1:] in ".!?…\n:—-•" or not before.strip()
    if len(words) > 1 and kinds[0] == "X" and begins and not cell and kinds[1] in "GU":
        start = words[1][1]  # the first word of a sentence, then a name
    if kinds in ("F", "S"):
        if not (title or cell or public):
            return (
                FoundName(start, end, "PERSON", False, False, DOUBTFUL)
                if kinds == "F" and not begins
                else None
            )
        if kinds == "S" and cell and not title:
            return FoundName(start, end, "PERSON", False, public, DOUBTFUL)
    if kinds == "U" and not (title or (cell and not begins)):
        return None
    if kinds == "P" and not (title or cell):
        return FoundName(start, end, "PERSON", False, public, DOUBTFUL)
    cue = (title or cell or "P" in kinds or "I" in kinds) and not public
    return FoundName(start, end, "PERSON", cue, public, CERTAIN)


def _again(text: str, found: list[FoundName]) -> list[FoundName]:
    """Further mentions, in other cases and in lower case, of names that are certain; short forms in lower case."""
    known: set[str] = set()
    for each in found:
        if each.cue and not each.public:
            for part in _WORD.findall(text[each.start : each.end]):
                if len(part) > 2:
                    known |= {_stem(part)}
    taken = [False] * (len(text) + 1)
    for each in found:
        taken[each.start] = True
    lists = _lists()
    again = []
    for match in _WORD.finditer(text):
        word = match[0]
        if taken[match.start()] or len(word) < 3:
            continue
        if word[0].isupper():
            if _stem(word) in known and word not in lists.plain:
                again.append(FoundName(match.start(), match.end(), "PERSON", True, False))
        elif len(word) > 3 and word in _short():
            again.append(FoundName(match.start(), match.end(), "PERSON", False, False))
    return again


def _stem(word: str) -> str:
    """A name without the ending of its case."""
    return (
        re.sub(
            r"(?:ого|ому|ыми?|ими?|ой|ою|ей|ею|ем|ом|ых|их|[аяуюеыиёоьй])\Z",
            "",
            word.lower().replace("ё", "е"),
            count=1,
        )
        if len(word) > 4
        else word.lower()
    )


_SHORT_FORMS = (
    "саша саши саше сашу миша миши миху гриша леха лёха леша лёша леши серега серёга сереги серегу серёжа сережа сережи витя вити вите витю петя пети петю митя "
    "коля вова вовы вове вову вован вована вовчик толян толяна колян коляна димон димона димону димоном димас дима димы диме диму димой юра юры юре юру юрец санёк санек паша паши паше "
    "катя кати катю катей катька маша маши маше машу машка даша даши даше дашу наташа наташи наташе наташу настя насти насте настю ксюша ксюши ксюше ксюшу лена лены лене лену "
    "ленка оля оли олю олька таня тани таню танька аня аню анька юля юли юле юлю юлька юльки ира иры ирка галя гали женя женей женька жека жеки "
    "никита кирилл андрей сергей алексей дмитрий евгений николай михаил татьяна ирина елена наталья светлана екатерина анастасия андрюха антоха стасян максик макс макса максу"
).split()


@cache
def _short() -> frozenset[str]:
    return frozenset(_SHORT_FORMS)
