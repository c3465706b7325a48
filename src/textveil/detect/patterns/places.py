"""Places: addresses in other than Western forms, and coordinates.

In: nothing. Out: `RULES`.
Not here: streets as Western Europe and America write them (`addresses`), names of towns and
countries alone, which a tagger finds.
"""

import regex

from textveil.detect.patterns.rules import Check, Expression, Rule, build_context
from textveil.text import LazyPattern

_KEYS = LazyPattern(
    r"\b(?:شارع|طريق|جادة|حي|حارة|زنقة|نهج|ميدان|بناية|عمارة|برج|شقة|فيلا|منزل|الدور|الطابق|قطعة)\b"
    r"|मकान|वार्ड|मोहल्ला|ग्राम|गली|सेक्टर|प्लॉट|फ्लैट|रोड|मार्ग|नगर|कॉलोनी|तहसील|जिला|ज़िला|पोस्ट|डाकघर|टाउन|चौक"
    r"|\b(?:đường|phố|ngõ|ngách|hẻm|phường|quận|xã|huyện|thôn|ấp|tỉnh|p\.|q\.|tp\.|tổ|kp|khu phố|thị trấn)(?!\p{L})",
    regex.IGNORECASE,
)


_ITEM = LazyPattern(r"^\d{1,3}[.)]\s")


def is_keyed_place(value: str) -> bool:
    """True if a value has two address words, or one with digits."""
    keys = {word.lower() for word in _KEYS.findall(value)}
    return len(keys) + any(c.isdigit() for c in value) >= 2


def is_hindi(value: str) -> bool:
    """True if a Hindi value is an address, see `is_keyed_place`.

    The number of an item of a list does not count.
    """
    return is_keyed_place(_ITEM.sub("", value))


def is_turkish(value: str) -> bool:
    """True if a Turkish address has a number."""
    return any(c.isdigit() for c in value)


def is_position(value: str) -> bool:
    """True if two decimals can be latitude and longitude.

    They are exact to ten metres or better.
    """
    figures = regex.findall(r"\d{1,3}\.\d+", value)
    small, large = sorted(float(figure) for figure in figures)
    long = all(len(figure.partition(".")[2].rstrip("0")) >= 5 for figure in figures)
    likely = large >= 10 or (small >= 1 and long)
    return small <= 90 and large <= 180 and likely and (long or any(c in value for c in ",;°"))


def is_precise(value: str) -> bool:
    """True if degrees are the coordinates of a place.

    They have a letter of the compass, and are exact to a second or better.
    """
    return bool(
        regex.search(r"(?i)(?<![a-z])[nsewo](?![a-z])", value)
        and regex.search(r"[.\"]|''|sec", value)
    )


_LYING = r"(?!(?<=[位居落])[于於])"
_HAN = rf"(?:{_LYING}[\p{{Han}}--[的在到住寄去至往是为给称说叫把被跟让请我你他她您们了也还着就这那哪写寫卸、]])"
_KANA = rf"(?:{_LYING}[[\p{{Han}}\p{{Katakana}}ーヶケのノ々]--[的了们这还到说为给]])"
_AREA = _KANA.replace("[的", "[在的")
"""A character of the first part of an address.

在 stands before it ("住在上海市..."), and later also in it (在家町).
"""
_HANGUL = r"[가-힣]"
_ADMIN = r"(?:특별자치도|특별자치시|특별시|광역시|도|시|군|구|읍|면|동|리)"
_RU_NAME = r"[\p{Lu}\d][\p{L}\d\-.]{0,30}"
_RU_WAY = r"""
    (?: ул\. | улица | улице | улицы | пр-т | пр-кт | проспект\p{L}{0,2} | просп\. | пр\. | пер\. | переул\p{L}{2,3}
    | б-р
      | бульвар\p{L}{0,2} | ш\. | шоссе | наб\. | набережн\p{L}{2} | пл\. | площад[ьи] | мкр-?н?\.?
      | микрорайон\p{L}{0,2}
      | тракт | проезд\p{L}{0,2} | туп\. | вул\. | вулиц[яі] )
"""
_RU_HOME = r"""
    (?: ,?[ ]? (?: корп | корпус | к | стр | строение | кв | квартира | оф | офис | под | подъезд | эт | этаж | лит )
        \.? [ ]? [\dА-Я]{1,5} [а-я]? (?!\w) ){0,4}
"""
_RU_PLACE = (
    r"(?: (?:\d{6},[ ])? (?: (?:г|п|с|д|пос|дер|обл)\.[ ]? )? "
    r"\p{Lu}[\p{L}\-]{2,30} (?:[ ]обл(?:\.|асть))? ,[ ] ){0,2}"
)
_TR_NAME = r"(?:[\p{Lu}\d][\p{L}\d.'\-]{0,25})"
_TR_WAY = r"""
    (?: Mahallesi | Mah | Mh | Caddesi | Cadde | Cad | Cd | Sokağ[ıi] | Sokak | Sok | Sk | Bulvar[ıi] | Bulv | Blv
      | Apartman[ıi] | Apt | Sitesi | Sit | MAHALLES[İI] | MAH | CADDES[İI] | CAD | SOKAK | SOK | BULVARI | APT )
    (?!\w) \.?
"""
_TR_HOME = (
    r"(?: (?:No|NO|Kat|KAT|K|D|Daire|DA[İI]RE|Blok|Blk|[İI]ç[ ]Kap[ıi]) "
    r"[ ]?[.:]?[ ]? [\dA-Z][\dA-Z/\-]{0,8} (?!\w) )"
)
_NO_PLACE = "في|من|إلى|على|عند|نحن|منذ|قبل|بعد|الذي|التي|وقد|ولم|لأن|ثم|و"
_ARABIC = rf"(?!(?:{_NO_PLACE})(?!\p{{Arabic}}))" r"\p{Arabic}[\p{Arabic}\p{M}]{0,20}"
_SEGMENT = rf"(?: (?:{_ARABIC}|\d{{1,6}}) (?:[ ](?:{_ARABIC}|\d{{1,6}})){{0,4}} )"
_HINDI = r"[\p{Devanagari}\p{M}\d./()\-]{1,25}"
_VIET = r"[\p{L}\d.\-/]{1,15}"


def make_place_rule(
    pattern: str,
    score: float,
    triggers: str,
    check: Check | None = None,
    digits: int = 1,
    guard: str = "",
) -> Rule:
    """Makes a rule for addresses in the letters of all scripts.

    Args:
        pattern: the expression, in `VERBOSE` and `VERSION1`.
        score: the score of its matches.
        triggers: substrings of the text, separated by bars, one of which must be near.
        check: a further test of the match.
        digits: digits that the text must have.
        guard: see `Rule`.
    """
    return Rule(
        "ADDRESS",
        Expression(pattern, regex.VERBOSE | regex.VERSION1),
        score,
        check=check,
        triggers=tuple(triggers.split("|")),
        window=(120, 250),
        digits=digits,
        keep_scripts=True,
        guard=guard,
    )


_LINE = "one line names a home"

RULES = (
    # 杭州市西湖区翠苑街道学院北路63号翠竹苑7幢2单元501室
    make_place_rule(
        rf"""(?<!{_HAN}) {_HAN}{{2,30}}?
            (?:路|街|道|巷|弄|胡同|里|段|村|园|苑|小区|花园|大厦|广场|镇|乡|坊|庄|屯|组) [ ]?
        \d{{1,5}} [ ]? (?:号楼|号院|号|號|弄|巷|栋|棟|幢|座|室|单元|楼|之\d|-\d{{1,4}})
        (?: [ \-]? (?:\p{{Han}}{{1,8}}?)?? [A-Z\d]{{1,5}} [ ]?
        (?:号楼|号|號|栋|棟|幢|座|楼|层|單元|单元|室|房|户|戶|组) ){{0,5}}
        (?: (?<=[栋幢座楼元]) \d{{2,4}} (?!\d) )?""",
        0.75,
        "路|街|道|巷|弄|胡同|里|段|村|园|苑|小区|大厦|广场|镇|乡|坊|庄|屯|组",
        guard=_LINE,
    ),
    # 〒939-8214 富山県富山市黒崎512-3 メゾン樫ノ木205
    make_place_rule(
        rf"""(?: 〒[ ]?\d{{3}}-?\d{{4}}[ ]{{0,2}} )?
        (?<!{_AREA}) {_AREA}{{1,12}}? [都道府県市区町村郡] {_KANA}{{1,20}}? [ ]?
        \d{{1,4}} (?: (?:丁目|番地の?|番町|番|号) \d{{0,4}} | [の\-]\d{{1,4}} ){{1,5}} (?:号室?|番地?)?
        (?: [ ] [\p{{Katakana}}ー\p{{Han}}ノA-Za-z・]{{2,20}} [ ]? \d{{2,4}} (?:号室?)? )?
        | 〒[ ]?\d{{3}}-?\d{{4}}(?!\d)""",
        0.75,
        "都|道|府|県|市|区|町|村|郡|〒",
        guard=_LINE,
    ),
    # 강릉시 사천면 진리항구2길 5, 103동 1204호
    make_place_rule(
        rf"""(?<!{_HANGUL}) (?:{_HANGUL}{{1,8}}{_ADMIN}[ ]){{1,4}} [가-힣\d]{{1,14}}(?:로|길|동|리)[ ]?
        \d{{1,4}}(?:-\d{{1,4}})?(?:번지)? (?!\d|[ ]?(?:명|개|번째|시|분|년|월|일|원|위|건))
        (?: [ ,]{{1,2}} (?:[가-힣\dA-Za-z]{{2,12}}[ ])? (?:\d{{1,4}}동[ ]?)? \d{{1,4}}(?:호|층) ){{0,2}}
        (?: [ ]?\([가-힣\d, ]{{2,20}}\) )?""",
        0.75,
        "로|길|동|리",
        guard=_LINE,
    ),
    # Ростов-на-Дону, пер. Халтуринский, 85; ул. Ленина, д. 5, кв. 12; Невский проспект, д. 7
    make_place_rule(
        rf"""(?<!\w) {_RU_PLACE}
        (?: {_RU_WAY} [ ]? {_RU_NAME} (?:[ ]{_RU_NAME}){{0,3}} | {_RU_NAME} (?:[ ]{_RU_NAME}){{0,2}} [ ] {_RU_WAY} )
        ,? [ ] (?: (?:д|дом) \.? [ ]? )? \d{{1,4}} (?:[ ]?[а-яА-Я](?!\w))? (?:[/\-]\d{{1,4}})? (?!\w) {_RU_HOME}""",
        0.75,
        "ул|пр|пер|б-р|бульвар|ш.|шоссе|наб|пл|мкр|микро|тракт|туп|вул",
    ),
    # Süleymaniye Mah. Çeşme Sk. No:3 Beylikova/ESKİŞEHİR
    make_place_rule(
        rf"""(?<!\w) (?: (?:{_TR_NAME}[ ]){{1,4}}? {_TR_WAY} [, ]{{1,3}} ){{1,4}}+
        (?: (?:{_TR_NAME}[ ]){{0,2}} {_TR_HOME} [,/ ]{{0,2}} ){{0,4}}
        (?: (?<=[ ,/]) (?:\d{{5}}[ ])? \p{{Lu}}\p{{L}}{{2,20}} [ ]?/[ ]? \p{{Lu}}\p{{L}}{{2,20}} )? (?<![ ,/])""",
        0.75,
        "mah|mh|cad|cd|sok|sk|bulv|blv|apt|sit",
        is_turkish,
    ),
    # ١٤ شارع طومان باي، الدور الخامس، شقة ٢١، القاهرة
    make_place_rule(
        rf"""(?<![\p{{Arabic}}\d]) (?: {_ARABIC}(?:[ ]{_ARABIC})? ،[ ]? ){{0,2}}
        (?:\d{{1,4}}[ ],?[ ]?)? (?:شارع|طريق|جادة|زنقة|نهج|حارة|عمارة|بناية|حي)[ ] {_SEGMENT}
        (?: [،,][ ]? {_SEGMENT} ){{0,6}}""",
        0.7,
        "شارع|طريق|جادة|زنقة|نهج|حارة|عمارة|بناية|حي",
        is_keyed_place,
        digits=0,
        guard=_LINE,
    ),
    make_place_rule(
        rf"""(?<![\p{{Devanagari}}\p{{M}}\d]) (?: {_HINDI}[ ] ){{0,2}}?
            (?:मकान|वार्ड|मोहल्ला|ग्राम|गली|सेक्टर|प्लॉट|फ्लैट|जिला|ज़िला)
        (?: [ ]{_HINDI} ){{1,5}} (?: ,[ ] {_HINDI} (?:[ ]{_HINDI}){{0,4}} ){{0,6}}""",
        0.7,
        "मकान|वार्ड|मोहल्ला|ग्राम|गली|सेक्टर|प्लॉट|फ्लैट|जिला|ज़िला",
        is_hindi,
        digits=0,
        guard=_LINE,
    ),
    make_place_rule(
        rf"""(?i)(?<!\w) (?: (?:số(?:[ ]nhà)?|nhà[ ]số|căn[ ]hộ|phòng|ngõ|ngách|hẻm|đường|thôn|ấp|tổ|khu[ ]phố)[ ]
            | \d{{1,4}}[a-z]?(?:/\d{{1,4}}[a-z]?){{0,3}}[ ](?=(?:đường|phố|ngõ|ngách|hẻm|\p{{Lu}})) )
        {_VIET}(?:[ ]{_VIET}){{0,6}}? (?: ,[ ]
        (?:đường|phố|ngõ|hẻm|phường|quận|xã|huyện|thôn|ấp|tỉnh|thành[ ]phố|thị[ ]trấn|khu|p\.|q\.|tp\.?)
        [ ]?{_VIET}(?:[ ](?-i:[\p{{Lu}}\d]){_VIET}){{0,3}} ){{1,5}} (?: ,[ ]
        (?-i:\p{{Lu}})\p{{L}}{{1,10}}(?:[ ](?-i:\p{{Lu}})\p{{L}}{{1,10}}){{0,3}} )? (?<![.\-/])""",
        0.72,
        "đường|phố|ngõ|hẻm|phường|quận|xã|huyện|thôn|ấp|p.|q.",
        is_keyed_place,
        guard=_LINE,
    ),
    # coordinates
    Rule(
        "COORDINATES",
        Expression(
            r"""(?<![\w.\-+]) (?<!(?:\d[ ]?|NA),[ ]?) (?<!\d\.\d{1,17}[ ])
            [+\-]?\d{1,3}\.\d{4,15} [ ]?°?[ ]?[NS]? [ ]?[,;/ ][ ]{0,2}
            [+\-]?\d{1,3}\.\d{4,15} (?:[ ]?°)? (?:[ ]?[EWO](?!\w))? (?! [\w%] | ,?[ ]?[+\-]?\d | ,NA\b | \.\d )"""
        ),
        score=0.85,
        check=is_position,
        digits=10,
    ),
    Rule(
        "COORDINATES",
        Expression(
            r"""[ ]{0,3} (?:["']?[ ]{0,2}[:=(\[>]|[ ]is|[ ]ist)? [ ]{0,3} ["'(\[]? (?P<value> [+\-]?\d{1,3}\.\d{3,15}
            (?: [ ]?°?[ ]?[NSEWO]? [ ]?[,;/ ][ ]{0,2} [+\-]?\d{1,3}\.\d{3,15} )? (?:[ ]?°)? (?:[ ]?[NSEWO](?!\w))? )
            (?! \w | \.\d )"""
        ),
        score=0.86,
        digits=4,
        adjacent=True,
        **build_context(
            "lat|latitude|lon|lng|longitude|lat/lon|lat,lon|lat, lon|lat/lng|gps|geo|gps "
            "position|gps location|coords"
            "|coordinates|coordinate|koordinaten|standort|coordonnées|coordenadas|coordinate "
            "gps|coördinaten"
            "|współrzędne"
            "|koordinat|koordinatlar|tọa độ|坐标|座標|经纬度|緯度|経度|좌표|위도|경도|координаты|широта|долгота"
            "|إحداثيات|الموقع"
            "|निर्देशांक"
        ),
        guard="a place to a few metres",
    ),
    Rule(
        "COORDINATES",
        Expression(
            r"""(?<![\w.]) (?:[NSEWO][ ]?)?\d{1,3} [ ]? (?:°|º|deg) [ ]? \d{1,2} (?:\.\d{1,8})? [ ]? (?:'|min) [ ]?
            (?: \d{1,2}(?:\.\d{1,8})? [ ]? (?:"|''|sec) [ ]? )? [NSEWO]?
            (?: [ ]?[,;/]?[ ]{0,2} [NSEWO]?[ ]?\d{1,3} [ ]? (?:°|º|deg) [ ]? \d{1,2} (?:\.\d{1,8})? [ ]? (?:'|min) [ ]?
            (?: \d{1,2}(?:\.\d{1,8})? [ ]? (?:"|''|sec) [ ]? )? [NSEWO]? ) (?!\w)"""
        ),
        score=0.85,
        check=is_precise,
        digits=6,
        triggers=("°", "º", "deg"),
        guard="a place to a few metres",
    ),
    Rule(
        "COORDINATES",
        Expression(
            r"(?<![\w/]) (?: [23456789CFGHJMPQRVWX]{8}\+[23456789CFGHJMPQRVWX]{2,3} ) (?!\w)",
            regex.VERBOSE,
        ),
        score=0.85,
        triggers=("+",),
        digits=1,
        guard="a place to a few metres",
    ),
)
"""Addresses of Asia and Eastern Europe, and coordinates."""
