"""Values: whether what stands behind a key fits it, and where exactly it begins and ends.

In: a text, a place in it, the kind that the key announced. Out: the type and place of the value, and how telling it is.
Not here: keys (`keys`), and what the neighbours of a value add (`structure`).
"""

from functools import cache, lru_cache
from typing import NamedTuple

import regex

from textveil.detect.patterns.accounts import BIC, is_bic
from textveil.detect.patterns.rules import Expression, listed
from textveil.text import ranks
from textveil.text.lexicon import all_ordinary
from textveil.text.name_lists import load_names

_ORDINARY = 20_000
"""Words that are more frequent than this rank, and on no list of names, are ordinary words."""


class Value(NamedTuple):
    """A value that fits its key: its place, its type, and how telling it is.

    Args:
        start: first character.
        end: one past the last.
        type: a type of spans.
        likely: whether the value alone speaks for its type: for a name, that it looks like a person's.
    """

    start: int
    end: int
    type: str
    likely: bool


_TITLES = r"""(?: (?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Sir|Dame|Rev|Fr|Sr|Sra|Srta|Dra|Don|Doña|Herrn?|Frau|Hr|M|Mme|Mlle|Me|Pr
    |Sig|Sig\.ra|Sig\.na|Dott|Dott\.ssa|Avv|Ing|Arch|Dhr|Mevr|Mw|Pan|Pani|D|D\.ª|D\.ª|Doç|Öğr|Av|PC|Sgt|Capt|Lt|Col|Auntie
    |Uncle|Monsieur|Madame|Señor|Señora|Senhor|Senhora|Signor|Signora|Meneer|Mevrouw|dhr|mw|mevr|sig|sig\.ra|dott|avv
    |господин|госпожа|г-н|г-жа|д-р) \.? [ ] )"""
_CAPITAL = r"[\p{Lu}\p{Lt}][\p{L}\p{M}]*+(?:['’‘.\-]'?[\p{L}\p{M}]++)*+\.?"
_SMALL = (
    r"(?:de|da|do|dos|das|del|della|di|la|le|van|von|der|den|"
    r"ter|ten|el|al|bin|bint|ibn|y|e|zu|af|av|du|des|zum|dell')"
)
_COMMA = (
    r"(?: , (?! [ ] (?: DNI | NIE | NIF | NIP | CPF | RG | CURP | RFC | CUIT | SSN | SIN | NIN? | NINO | NHS | NIR"
    r" | BSN | PESEL | T\.?C\.? | TCKN | PAN | ID | IBAN | DOB | VAT | ИНН | СНИЛС )"
    r" (?!\w) ) )?"
)
"""A comma before a name's other half, but not before what announces a number: "Ana Sousa, CPF 52..."."""
CASED = rf"""(?: {_TITLES}{{0,3}} (?:{_SMALL}[ ]){{0,3}} {_CAPITAL}
    (?: {_COMMA}[ ](?:{_SMALL}[ ]){{0,3}} {_CAPITAL} | [ ]\(\p{{Lu}}[\p{{L}}\p{{M}}]+\)
        | [ ]["“'«]\p{{Lu}}[\p{{L}}\p{{M}}]+["”'»] ){{0,5}} )"""
_CHARACTER = r"[\p{Han}\p{Hiragana}\p{Katakana}ー々ヶ･ﾞﾟｦ-ﾝ]"
_HAN = rf"(?:{_CHARACTER}{{1,12}}(?:[ 　・·･]{_CHARACTER}{{1,12}}){{0,3}})"
_HANGUL = r"(?:\p{Hangul}{1,8}(?:[ ]\p{Hangul}{1,6}){0,3})"
_OTHERS = r"""(?:[\p{Arabic}\p{M}]{2,}(?:[ ](?:[\p{Arabic}\p{M}]{2,})){0,5}
    | (?:स्व\.[ ])?[\p{Devanagari}\p{M}]{2,}(?:[ ][\p{Devanagari}\p{M}]{1,}){0,4})"""
_END = r"""(?= \s*$ | [ ]{2} | \t | [ ]?[,;:|/(<\[（、，。；/／)\]】」=!?！\n] | [ ][–—\-•·@]
        | [ ]? & | \.? $ | \.[ ] | ['\"’] | (?<=\)) | [ ](?:and|und|et|y|e|en|ve|i)[ ] )"""
NAME = Expression(rf"(?: {CASED} | {_HAN} | {_HANGUL} | {_OTHERS} ) {_END}", regex.VERBOSE)
"""A run of words that looks like a person's name, with its title."""
_WHOLE_NAME = Expression(
    r"[\p{L}][\p{L}\p{M}'’.\-]*(?:[ 　・·,]{1,2}[\p{L}][\p{L}\p{M}'’.\-]*){0,5}", 0
)

_FILLERS = listed(
    """string str text varchar char number int integer float boolean bool true false null none nil undefined nan
    unassigned any object array list dict date datetime value values name names first last firstname lastname surname
    fullname username email required optional default example sample test demo placeholder unknown unnamed
    untitled anonymous anon n/a na tbd todo xxx redacted hidden your my here enter insert foo bar baz qux
    lorem ipsum me you self this us them everyone nobody somebody all each other others various self-employed
    same yes no new old main public private internal external guest customer user users client patient
    employee person people male female divorced married single widowed pending active inactive open closed
    done high medium low free"""
)
_NOT_PERSONS = listed(
    """team services service support campus faculty department dept office group company co inc ltd llc gmbh
    corp corporation foundation society university college school institute hospital clinic bank store shop
    restaurant hotel cafe bar club center centre systems solutions technologies technology software hardware
    studio studios media press publishing project product products app application api server client database
    cluster platform framework library package module plugin component controller manager engine tool tools
    suite pro premium basic standard enterprise edition version release model series plan policy report
    dashboard page form table list menu button field column row data file folder system network security
    account accounts admin administrator user users marketing sales finance engineering operations hr it
    legal design development developer developers research management customer customers committee council
    ministry government agency board authority association union federation organization organisation
    republic kingdom state states county city street road avenue river lake mountain park island north south
    east west january february march april may june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday history science art music english german french spanish
    math physics chemistry biology the and or of for with in on at to from by is are was were be not this
    that these those how what why when where who which introduction summary conclusion overview background
    description details notes note title subject objective skills experience education contact information
    info agent assistant human bot gpt chatgpt claude narrator player question answer option step stage phase
    day week month year chapter section part scene act item items total price color size yeah ok okay hello
    hi hey sure thanks thank please yes no well oh hmm um sender recipient homepage website email phone tel address
    linkedin github pdf url red blue green yellow black white orange purple pink brown gray grey large small extra
    mini max plus ultra new best top abteilung vertrieb einkauf buchhaltung verwaltung personal kundendienst
    damen herren équipe direction comptabilité ventas soporte equipo ufficio zespół dział ekip отдел
    поддержка 部 部门 团队 客服 支持部"""
)
"""Words that people's names do not hold, in small letters."""
_PUBLIC_DOCS = listed(
    """john_doe jane_doe johndoe janedoe john_q_public max_mustermann erika_mustermann max_muster fulano_de_tal
    foo_bar joe_bloggs joe_public test_user first_last first_name last_name your_name full_name some_name
    firstname_lastname 张三 李四 王五 山田太郎 山田_太郎 홍길동 jan_modaal n_n"""
)
"""Names that documents use for nobody."""
_EXAMPLES = listed("alice bob carol charlie dave eve john jane mike joe jack jill tom foo sam")
"""Given names that examples of code use for nobody: alone they tell nothing."""
_LINKS = listed("and or of the for with in on is are was not to if")
"""Words that stand in no full name."""
_ASIDE = regex.compile(r"(?<=\w)(?:,[ ][^,()]++|[ ]\([^()]++\))\Z")
"""What somebody is, behind a name: "Anna Weiss (Chair)", "Anna Weiss, Planning"."""
_CAMEL = regex.compile(
    r"(?<!\b(?:Mc|Mac|De|Di|Du|Da|La|Le|Van|Von|Fitz|O|Al|El|St|Ní))(?<=\p{Ll})\p{Lu}"
)
_HONORIFICS = regex.compile(
    r"[ 　]?(?:先生|女士|小姐|老师|様|さん|さま|君|ちゃん|殿|님|씨|교수|선생님|대리님|과장님|部長|課長)$"
)
_OFFICES = regex.compile(r"(?:师|員|员|资格|公司|部|课|科|组|队|中心|係|室|課)$|\p{Han}{6}")
_LETTERS = regex.compile(r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)?")
_LATIN = regex.compile(r"[\p{Latin}\p{Cyrillic}\p{Greek}]")
_HANZI = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方"
    "白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤温康施文牛樊葛邢安齐易乔伍庞颜倪庄聂章鲁岳翟殷詹申欧耿关兰焦俞左柳甘祝"
    "包宁尚符舒阮柯纪梅童凌毕单季裴霍涂成苗谷盛曲翁冉骆蓝路游辛靳欧管柴蒙鲍华喻祁蒲房滕屈饶解牟艾尤阳时穆农司卓古吉缪简车项连芦麦褚娄窦戚岑"
    "景党宫费卜冷晏席卫米柏宗瞿桂全佟应臧闵苟邬边卞姬师和仇栾隋商刁沙荣巫寇桑郎甄丛仲虞敖巩明佘池查麻苑迟邝官封谈匡鞠惠荆乐冀郁胥南班储原栗燕"
    "楚鄢劳谌奚皮粟冼蔺楼盘满闻位厉伊仝区郜海阚花权强帅屠豆朴盖练廉禹井祖漆巴丰支卿国狄平计索宣晋相初门云容敬来扈晁芮都普阙浦戈伏鹿薄邸雍辜羊阿乌母裘亓修邰赫杭"
    "張劉陳楊黃趙吳孫馬鄭謝許韓馮鄧蔣葉蘇呂盧鍾譚陸"
)
"""First characters of Chinese family names."""


@cache
def _known() -> frozenset[str]:
    return frozenset(word.lower() for word in load_names("PERSON").words)


@cache
def _countries() -> frozenset[str]:
    places = load_names("LOCATION")
    return frozenset(
        w.lower() for w, kind in zip(places.words, places.kinds, strict=True) if kind == "country"
    ) | listed(
        "usa uk us france germany spain italy deutschland frankreich españa italia polska türkiye brasil"
        " 中国 日本 한국 россия भारत مصر"
    )


def is_known(word: str) -> bool:
    """Whether a word is on the public list of given and family names."""
    return word.lower() in _known()


def _words(value: str) -> list[str]:
    return [word.lower() for word in _LETTERS.findall(value)]


@lru_cache(maxsize=4096)
def is_ordinary(word: str) -> bool:
    """Whether a word is one of public text and not on the list of names."""
    return not is_known(word) and ranks([word.lower()])[0] < _ORDINARY


def no_name(value: str) -> bool:
    """Whether it holds a word that no name of a person holds, or is a filler of forms and documents."""
    words = _words(value)
    return (
        not words
        or "_".join(words) in _PUBLIC_DOCS
        or all(word in _FILLERS for word in words)
        or not _NOT_PERSONS.isdisjoint(words)
        or (_OFFICES.search(value) is not None and _HONORIFICS.search(value) is None)
        or (
            words[0] in ("your", "my", "the", "a", "an", "our", "no", "not")
            and value[len(words[0]) : len(words[0]) + 1] != "."
        )
    )


def looks_like_name(value: str) -> bool:
    """Whether it looks like a person's name even without a key that says so."""
    words = [word for word in _LETTERS.findall(value) if len(word) > 1]
    if not words or no_name(value):
        return False
    if not _LATIN.search(value):
        if _OFFICES.search(value) and not _HONORIFICS.search(value):
            return False
        return (
            (value[0] in _HANZI and 2 <= len(value) <= 4)
            or bool(_HONORIFICS.search(value))
            or len(words) > 1
        )
    if value.isupper() and len(words) == 1:
        return False
    known = [word for word in words if is_known(word)]
    return bool(known) and (len(words) > 1 or "." in value)


def is_example(value: str) -> bool:
    """Whether it is a given name alone that examples use for nobody in particular."""
    return value.lower() in _EXAMPLES


def person(text: str, start: int, end: int, *, whole: bool, strong: bool) -> Value | None:
    """A person's name at the start of a value.

    Args:
        text: the text.
        start: where the value starts.
        end: where it ends at the latest.
        whole: the value is in quotes or a cell, so that the name must be all of it.
        strong: the key can only mean a person, so that small letters will do.
    """
    match = NAME.compiled.match(text, start, end)
    if match and whole and (rest := text[match.end() : end].strip(" .,")):
        couple = (
            text[match.end()] == " " and rest[0].isalpha() and is_known(match.group().split()[0])
        )
        if (
            not couple
            and text[match.end()] not in "(,/<（"
            and not rest.startswith(("(", "–", "—", "-", "·", "<"))
        ):
            match = None
    if match is None and strong and whole:
        match = _WHOLE_NAME.compiled.fullmatch(text, start, end)
    if match is None or match.end() == start:
        return None
    value = match.group().rstrip(" ,")
    aside = _ASIDE.search(value)
    if aside is not None and all_ordinary(aside[0]):
        value = value[: aside.start()]
    if _CAMEL.search(value) or (value.islower() and value.isascii() and len(value) > 24):
        return None
    if not strong and no_name(value):
        return None
    words = _words(value)
    if not words or "_".join(words) in _PUBLIC_DOCS or all(word in _FILLERS for word in words):
        return None
    if strong and words[0] in ("your", "my", "the", "enter", "insert", "not", "no"):
        return None
    if (
        strong
        and len(words) > 1
        and (not _LINKS.isdisjoint(words) or sum(word in _NOT_PERSONS for word in words) > 1)
    ):
        return None
    return Value(start, start + len(value), "PERSON", looks_like_name(value))


_DATE = r"""(?: \d{1,4}[ ]?[\-/.][ ]?\d{1,2}[ ]?[\-/.][ ]?\d{1,4} | \d{8}
        | \d{1,2}(?:st|nd|rd|th|er|º|\.)?[ ](?:(?:de|of|di|do)[ ])?\p{L}{3,12}\.?
    (?:,?[ ](?:(?:de|del)[ ])?\d{2,4})? | \p{L}{3,12}\.?[ ]\d{1,2}(?:st|nd|rd|th)?(?:,?[ ]\d{4})?
  | [\p{Han}\p{Hangul}]{0,2}\d{1,4}[ ]?[年년][ ]?\d{1,2}[ ]?[月월](?:[ ]?\d{1,2}[ ]?[日일])?
        | \d{4}-\d\d-\d\dT[\d:.]+Z? )"""
_CODE = r"[\p{L}\d][\p{L}\d]*(?:[ ]?[\-/._·][ ]?[\p{L}\d]+|[ ](?=[\p{L}]{0,3}\d)[\p{L}\d]+)*"
_FORMS = {
    "phone": (
        "PHONE",
        r"(?:\+|00|\(\+?)?[\d(][\d().\-/–·　‐－~ ]{3,24}\d(?:[ ]?(?:x|ext\.?|\#)[ ]?\d{1,5})?",
        5,
        15,
    ),
    "extension": ("PHONE", r"\d[\d\-]{1,5}", 2, 6),
    "email": (
        "EMAIL",
        r"[^\s\"'<>,;:|@]{1,80}@[^\s\"'<>,;:|@]{3,120}"
        r"|[\w.+\-]{1,64}[ ]?[(\[][^\s()\[\]]{1,8}[)\]][ ]?[\w\-]{1,64}"
        r"(?:[ ]?[(\[.][^\s()\[\]]{0,8}[)\]]?[ ]?[\w\-]{1,30}){1,4}",
        0,
        99,
    ),
    "birth": ("BIRTH_DATE", _DATE, 1, 14),
    "date": ("DATE", _DATE, 1, 14),
    "age": (
        "AGE",
        r"\d{1,3}(?:[ ]?(?:years?(?:[ ]old)?|yrs?|yo|jahre|ans|años|anos|anni|jaar|lat|yaş"
        r"|tuổi|岁|歳|세|살|лет|год|года|سنة|عام|वर्ष|साल)(?![\p{L}]))?",
        1,
        3,
    ),
    "national": ("NATIONAL_ID", _CODE, 5, 24),
    "medical": ("MEDICAL_RECORD", _CODE, 3, 20),
    "licence": ("LICENCE", _CODE, 4, 20),
    "plate": (
        "PLATE",
        r"[\p{Lu}\p{Lo}\d]{1,5}(?:[ ·\-]{1,2}[\p{Lu}\p{Lo}\d]{1,6}){0,4}|[\p{Lu}\d]{4,9}",
        1,
        8,
    ),
    "vin": ("VIN", r"[A-HJ-NPR-Z\d]{17}", 3, 17),
    "iban": ("IBAN", r"[A-Z]{2}\d\d(?:[ ]?[A-Z\d]{1,4}){3,8}", 10, 32),
    "bic": ("ACCOUNT", BIC, 0, 7),
    "account": (
        "ACCOUNT",
        r"[A-Z]{0,2}\d[\d \-./]{3,32}\d|(?:0x|bc1)[0-9A-Za-z]{20,70}|[A-Z]{2}\d\d(?:[ ]?[A-Z\d]{2,4}){3,8}",
        6,
        34,
    ),
    "card": ("CARD", r"\d(?:[ \-]?\d){11,18}", 12, 19),
    "cvc": ("CARD", r"\d{3,4}(?!\d)", 3, 4),
    "expiry": ("CARD", r"\d\d[ ]?[/\-][ ]?(?:20)?\d\d", 4, 6),
    "ip": ("IP", r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d\d?)?|[0-9a-fA-F:]{2,4}:[0-9a-fA-F:]{2,36}", 3, 40),
    "mac": ("MAC", r"[0-9A-Fa-f]{2}(?:[:\-][0-9A-Fa-f]{2}){5}", 1, 12),
    "latitude": ("COORDINATES", r"-?\d{1,3}\.\d{3,}", 4, 20),
    "longitude": ("COORDINATES", r"-?\d{1,3}\.\d{3,}", 4, 20),
    "coordinates": (
        "COORDINATES",
        r"-?\d{1,3}\.\d{3,}[ ]?[,;/ ][ ]?-?\d{1,3}\.\d{3,}|\d{1,3}[ ]?(?:deg|°)[^\n;|]{8,50}[NSEWO](?!\w)",
        6,
        40,
    ),
    "booking": ("BOOKING", r"[A-Z\d]{5,8}(?!\w)|[A-Z\d]+(?:-[A-Z\d]+)+", 1, 20),
    "postcode": ("ADDRESS", r"[A-Z\d]{2,5}[ \-]?[A-Z\d]{2,4}", 2, 9),
    "house": (
        "ADDRESS",
        r"\d{1,5}[ ]?[\-/]?[ ]?[\p{L}\d]{0,4}(?![\p{L}\d])|[A-Z\d]{1,5}(?![\p{L}\d])",
        0,
        8,
    ),
}
"""Type, form, and the least and largest number of digits of kinds that have a form."""

_SYSTEM = listed(
    """root admin administrator user users username guest test tester postgres mysql sa sys system ubuntu
    ec2-user debian centos git www-data nobody daemon nginx apache node app deploy docker jenkins ci bot
    service default anonymous me you name null none true false string login account myuser my_user youruser
    your_user your_username db_user dbuser appuser owner public private assistant human model superuser pi
    vagrant minecraft hadoop"""
)
_DOMAIN = regex.compile(r"[A-Z][\w.\-]{0,30}\\{1,2}(?=\w)")
"""A domain of Windows before a user name."""
_HANDLE = Expression(r"@?[\p{L}][\p{L}\d_.\-]{2,31}\d?|@[\w.]{2,30}", 0)
_ORGANIZATION = Expression(r"[\p{L}\d\"«„“][^\n\t|;<>{}\[\]=]{1,79}", 0)
_CUT = Expression(
    r",[ ]|[ ]{2}|\t|\||;|[ ]?\(|（|[ ][–—\-][ ]|,[ ]\p{L}+[ ]?[:=]|[.!?][ ]|，|、|。", 0
)
_ADDRESS_CUT = Expression(
    r"[ ]{2}|\t|\||;|（|[!?][ ]|。|[,.][ ]+(?!no\b|kat\b|k:|d:)"
    r"[\p{L} ]{2,24}[ ]?[:：=]|,[ ](?=(?:tel|phone|mob|dni|nif|pesel)\b)",
    regex.IGNORECASE,
)
_PLACE = Expression(rf"(?:{CASED}|{_HAN}|{_HANGUL}|{_OTHERS})", regex.VERBOSE)
_EMPTY = regex.compile(r"[xX*#.\-_?0 ]+|\$.*|[<{\[%].*")


def find(kind: str, text: str, start: int, end: int, *, whole: bool) -> Value | None:
    """The value of a kind at the start of a range; None if what stands there does not fit.

    Args:
        kind: a kind of `keys`, other than those of persons' names.
        text: the text.
        start: where the value starts.
        end: where it ends at the latest.
        whole: the value is in quotes or a cell, so that it must be all of the range.
    """
    value = text[start:end]
    if not value or _EMPTY.fullmatch(value) or value.lower() in _FILLERS:
        return None
    if kind in _FORMS:
        return _formed(kind, text, start, end, whole=whole)
    if kind == "ssid":
        return Value(start, end, "ID", True) if whole and end - start > 3 else None
    if kind == "party":
        return _formed("phone", text, start, end, whole=whole) if text[start] == "+" else None
    if kind == "id":
        return _number(text, start, end, whole=whole)
    if kind == "handle":
        return _handle(text, start, end, whole=whole)
    if kind == "org":
        return _organization(text, start, end, whole=whole)
    if kind == "place":
        return _town(text, start, end, whole=whole)
    if kind in ("street", "address"):
        return _address(text, start, end, whole=whole)
    return None


def _digits(value: str) -> int:
    return sum(map(str.isdigit, value))


@cache
def _form(kind: str) -> regex.Pattern[str]:
    return regex.compile(rf"(?:{_FORMS[kind][1]})(?![\p{{L}}\d]*@)", regex.VERBOSE)


def _formed(kind: str, text: str, start: int, end: int, *, whole: bool) -> Value | None:
    type_, _, least, most = _FORMS[kind]
    match = _form(kind).match(text, start, min(end, start + 200))
    if match is None or match.end() == start or not least <= _digits(match.group()) <= most:
        return None
    if match.end() < end and text[match.end()].isalnum():
        return None
    if (
        whole
        and kind not in ("phone", "national", "date", "birth")
        and text[match.end() : end].strip(" .)")
    ):
        return None
    value = match.group()
    if kind == "age" and not 0 < int("0" + "".join(c for c in value if c.isdigit())) <= 120:
        return None
    if (kind in ("national", "medical", "licence") and len(set(value)) < 3) or (
        kind == "bic" and not is_bic(value)
    ):
        return None
    return Value(start, match.end(), type_, True)


_NUMBERS = Expression(rf"(?:{_CODE})", 0)


def _number(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    """An id: digits, or letters with digits, long enough to be nobody else's."""
    begin = start + (text[start] in "#№")
    match = _NUMBERS.compiled.match(text, begin, min(end, begin + 64))
    if match is None or (whole and text[match.end() : end].strip(" .)")):
        return None
    value, count = match.group(), _digits(match.group())
    letters = sum(map(str.isalpha, value))
    if count < 2 or (count < 5 and not letters) or count + letters < 4 or letters > 3 * count + 8:
        return Value(begin, match.end(), "ID", False) if count >= 3 and len(value) <= 24 else None
    return Value(begin, match.end(), "ID", count >= 3)


def _handle(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    if domain := _DOMAIN.match(text, start, end):
        start = domain.end()
    match = _HANDLE.compiled.match(text, start, min(end, start + 40))
    if (
        match is None
        or (whole and match.end() < end)
        or (match.end() < end and text[match.end()] in "@([{$%/\\:*'’")
    ):
        return None
    value = match.group().rstrip(".-")
    if (
        value.lower() in _SYSTEM
        or value.lower() in _PUBLIC_DOCS
        or (value.isupper() and _digits(value) < 2)
        or _EMPTY.fullmatch(value)
    ):
        return None
    telling = not value.isalpha() or value != value.lower()
    return Value(start, start + len(value), "HANDLE", telling)


def _organization(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    stop = end
    if not whole and (cut := _CUT.compiled.search(text, start, end)):
        stop = cut.start()
    match = _ORGANIZATION.compiled.match(text, start, stop)
    if match is None or (whole and match.end() < end) or text[start].islower():
        return None
    value = match.group().rstrip(" .,")
    if len(value) < 2 or value.isdigit() or len(value.split()) > 9:
        return None
    return Value(start, start + len(value), "ORGANIZATION", True)


def _town(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    match = _PLACE.compiled.match(text, start, end)
    if match is None or match.end() == start or (whole and text[match.end() : end].strip(" .")):
        return None
    value = match.group().rstrip(" .,")
    if value.lower() in _countries() or all(word in _FILLERS for word in _words(value)):
        return None
    return Value(start, start + len(value), "LOCATION", True)


def _address(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    stop = end
    if not whole and (cut := _ADDRESS_CUT.compiled.search(text, start, end)):
        stop = cut.start()
    value = text[start:stop].rstrip(" .,;")
    if (
        not 4 <= len(value) <= 160
        or "@" in value
        or "://" in value
        or value.startswith(("0x", "{", "[", "$", "<"))
    ):
        return None
    if not regex.search(r"\p{L}{2}", value) or (text[start].islower() and not _digits(value)):
        return None
    if " " not in value and value.isascii():
        return Value(start, start + len(value), "ADDRESS", False)
    return Value(start, start + len(value), "ADDRESS", bool(_digits(value)))
