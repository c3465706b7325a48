"""Addresses: streets with numbers, units, post office boxes, postal codes.

In: nothing. Out: `RULES` for street addresses, as several countries write them.
Not here: names of towns and countries alone, which a tagger finds.
"""

from typing import Any

import regex

from textveil.detect.patterns.rules import (
    Expression,
    Rule,
    build_context,
    list_triggers,
    make_choice,
    make_word_set,
)
from textveil.text import LazyPattern

_NUMBER = r"""
    \d{1,6}
    (?: (?: [a-z] | [ ] (?: (?-i:[A-Z]) (?![ ](?-i:[a-z])) | [a-z] (?![ ]\p{L}) ) ) (?! \w | \.[ ]?\d ) )?
    (?: [\-/] (?: \d{1,5}[a-z]? | [a-z](?!\w) ) )?
"""
"""A house number: 18/7, 12 B, but no word behind it ("43 w Warszawie")."""
_SHORT = r"(?:(?<=\b\p{L}{1,3})\.)?"
_WORD = rf"[\p{{L}}\d][\p{{L}}\p{{M}}\d'\-]{{0,30}} {_SHORT}"
_NAME = rf"(?-i:[\p{{Lu}}\p{{Lt}}])[\p{{L}}\p{{M}}'\-]{{0,30}} {_SHORT}"
_OF = r"""
    (?: de | du | des | la | le | les | el | los | las | del | della | delle | dei | degli | di | da | do | dos | das
    | van | von | der
      | den | of | y | e | à )
"""
_OFS = frozenset(regex.findall(r"\p{L}+", _OF))
_SMALL = rf"(?: {_OF} | and | u | nad | pod | am | an | in | im | bei | sur | sous | en | upon )"
_GAP = r"[\s,]{1,4}+"

_WAY = r"""
    (?: street | st | avenue | ave | av | road | rd | lane | ln | drive | dr | boulevard | blvd | court | ct | place
      | pl | square | sq | terrace | ter | way | circle | cir | highway | hwy | parkway | pkwy | crescent | cres | close
      | gate | marg | grove | gardens | mews | row | alley | trail | trl | loop | hill | parade | quay | wharf
      | turnpike | esplanade
      | common | green | rise | walk | chase | path | plaza | pike | route )
"""
_COMPOUND = r"""
    (?: stra(?:ß|ss)e | str\. | stasse | gasse | gässli | weg | platz | allee | damm | ufer | steig | gatan
      | gata | gaten | gate | gade | vägen | vegen | veien | vej | væng | stræti | gränd | straat | laan | plein
      | gracht
      | singel
      | dijk | steenweg
      | hove | katu | (?<! gara ) ntie | kuja | utca | vegur | vangur | gränden | stien )
"""
_APART = r"""
    (?: stra(?:ß|ss)e | allee | platz | weg | gasse | ring | ufer | damm | utca | u\. | út | tér | terrasse | väg | gata
      | vej | allé | tee | puiestee | mnt )
"""
_BEFORE_NAME = rf"""
    (?: {make_choice("address_words.ways", stop="")}
      (?! (?<=c/) [ ]?\d{{1,2}}[ ]?(?:h|hs|horas?|d[íi]as?)(?!\p{{L}}) ) )
"""
_MONTH = (
    r"(?-i: (?: Jan | Feb | Mar | Apr | May | Jun | Jul | Aug | Sep | Oct | Nov | Dec ) [a-z]*+ )"
)
_DOOR = rf"""
    (?! [ ] \d{{1,2}} [ ] {_MONTH} )
    [ ]? (?: (?: \# | : | n[°º] | n[or]\.? (?![\p{{L}}]) ) [ ]? )?
    (?: \d{{1,5}}[a-z]? (?: [/\-] \d{{1,4}}[a-z]? )? | [a-z]\d{{1,4}} | (?-i: [A-Z] | [IVX]{{1,4}} ) ) (?!\w)
"""
_HOME = rf"(?<!\w) {make_choice('address_words.homes')} {_DOOR}"
_SIDE_OF_FLOOR = make_choice("address_words.sides")
_FLOOR = rf"""
    (?<!\w) (?: \d{{1,2}} (?: \.?[ºª°] | \. | st | nd | rd | th | er?(?!\w) | [èe]me )? | (?-i:[IVX]{{1,4}}\.?) )
    (?: [ ]? {make_choice("address_words.floors")} (?!\w) (?: [ ] {_SIDE_OF_FLOOR} (?!\w) )?
      | (?<=[.ºª°]) [ ]? {_SIDE_OF_FLOOR} (?!\w)
      | (?<=[ºª°]) (?: [ ]? (?-i:[A-Z]) )? (?!\w) )
"""
"""The number of a floor: 2. OG, 3e étage, 2º izq., 3. tv."""
_UNIT = rf"""
    (?: {_HOME} | {_FLOOR} | (?<!\w) {make_choice("address_words.parts")} (?!\w)
      | (?<!\w) {make_choice("address_words.units")} {_DOOR} | \# {_DOOR} )
"""
_DISTRICT = rf"""
    (?: (?<!\w) {make_choice("address_words.districts")} [ ]? (?: (?: {_OF} [ ] | d' ) )? [\p{{L}}][\p{{L}}'\-]{{2,30}}
        (?: [ ] {_NAME} ){{0,2}} )
"""
_STATE = r"(?-i: [A-Z]{2} )"
_BRITISH = r"[A-Z]{1,2}\d[A-Z\d]?[ ]?\d[ABD-HJLNP-UW-Z]{2}"
_CANADIAN = r"[ABCEGHJ-NPRSTVXY]\d[ABCEGHJ-NPRSTV-Z][ \-]?\d[ABCEGHJ-NPRSTV-Z]\d"
_CODE = rf"""
    (?: {_BRITISH} | {_CANADIAN}
      | \d{{5}}-\d{{3,4}} | \d{{4}}-\d{{3}} | \d\d-\d{{3}}
      | \d{{3}}[ ]\d{{2}} | \d{{4}}[ ](?-i:[A-Z]{{2}}) | \d{{4,6}} ) (?!\w)
"""
_TOWN = rf"{_NAME} (?: [ \-] (?: {_SMALL} [ \-] ){{0,2}} {_NAME} ){{0,3}} (?: [ ] \( [^()\n\d\"'“”„«]{{1,30}}+ \) )?"
_NO_TOWN = (
    r"(?: i | i'm | it | he | she | they | we | you | the | this "
    r"| that | and | but | please | my | his | her ) (?!\w)"
)
_TAIL = rf"""
    (?: (?:{_GAP}|[ ][\-][ ]) {_UNIT} ){{0,6}}
    (?: (?<= \d ) (?: [ ]? [\n,] [\s,]{{0,3}}+ (?: [\p{{L}}.'\-]{{2,20}}+ [ ] ){{0,3}} [\p{{L}}\-]{{2,20}}+ ){{1,2}}
        [ ] \d{{5}} (?!\w) )?
    (?: (?:{_GAP}|[ ]-[ ]) (?: (?:[A-Z]{{1,2}}-)? {_CODE} [ ] {_TOWN}
                 | {_TOWN} (?: {_GAP} (?: {_STATE} | {_TOWN} ) ){{0,2}} {_GAP} {_CODE}
                 | {_TOWN} {_GAP} {_STATE} (?!\w)
                 | (?<=,[ ]) (?!{_NO_TOWN}) {_TOWN} (?: [ ] (?-i:[A-Z]{{1,2}}\d{{1,2}}[A-Z]?|[A-Z]{{2,3}}) (?!\w) )?
                   (?= [ ]? (?: \Z | [\n.;:()|"'<!?,] ) | [ ](?-i:[a-z]) ) ) )?
    (?: {_GAP} {_DISTRICT} ){{0,4}}
"""
"""The optional rest behind a street: a unit, and a town with its postal code or state."""

_NO_WAYS = make_word_set(
    """a an the and or to in on at by for from with down up off into over this that these those my your his her our
    their its i mile miles minute minutes min mins hour hours day days week weeks month months year years km kilometers
    kilometres meter meters metres feet foot ft block blocks step steps lane way people men women cars houses times
    percent more than other different new is are was were has have had can will would"""
)
_ORDINARY = make_word_set(
    """drive dr court ct place pl square sq gate terrace ter way circle cir crescent close grove gardens mews row alley
    trail
    loop hill parade quay wharf esplanade common green rise walk chase path plaza pike route av"""
)
"""Kinds of streets that are also ordinary words or abbreviations: accepted only with capitals
throughout."""
_NO_PLACES = make_word_set(
    """january february march april may june july august september october november december it's its he's she's i'm
    monday tuesday wednesday thursday friday saturday sunday the this that"""
)
_YEAR = LazyPattern(r"(?:19|20)\d\d")


def _split_words(value: str) -> list[str]:
    return regex.findall(r"[\p{L}\p{M}'\-]+", value)


def is_street(value: str) -> bool:
    """True if a number and the words behind it are an address.

    The last word is a kind of street; "2 miles down the road" is none.
    """
    match = _STREET.compiled.match(value)
    if match is None:
        return False
    *names, way = _split_words(match.group())
    small = {*filter(str.islower, names)} - _OFS
    if small and way.isupper():  # "09-10 zapisano ST"
        return False
    if small & _NO_WAYS or any(name.endswith("'s") for name in names):
        return False
    is_capitalized = not small and not way.islower()
    return is_capitalized or (way.lower() not in _ORDINARY and len(names) <= 2)


def is_numbered(value: str) -> bool:
    """True if a value has a house number and a name.

    The number is no year; the name has a capital, or there are two numbers.
    """
    numbers = regex.findall(r"\d+", value)
    if len(numbers) < 2 and (not numbers or _YEAR.fullmatch(numbers[0])):
        return False
    return any(part[:1].isupper() for part in _split_words(value)[1:]) or len(numbers) > 1


def is_place(value: str) -> bool:
    """True if a name with a number can be an address.

    It is no date and no start of a sentence.
    """
    numbers = regex.findall(r"\d+", value)
    names = {part.lower() for part in _split_words(value)}
    return not names & _NO_PLACES and not (len(numbers) == 1 and _YEAR.fullmatch(numbers[0]))


UNITS = make_word_set(
    "euro euros eur dollar dollars usd pound pounds gbp chf francs people menschen personen "
    "einwohner stück kilometer"
    " meter tonnen jahre years items rows records files lines steps zeilen total watt punkte "
    "points units words hits"
    " times days hours weeks months"
)
"""Units behind a number, in small letters: "20 euros" is no address."""

ROOMS = make_word_set(
    "room building hall floor level gate terminal platform zone wing ward lab track pier stand "
    "raum zimmer saal halle"
    " gebäude station gleis ebene salle bâtiment étage quai aula sala edificio andén binario "
    "padiglione edifício piso"
    " pavilhão kamer zaal gebouw perron verdieping pokój budynek piętro peron oda salon bina kat"
)
"""Places within a house, in small letters; with a number or letter they are no address by
themselves."""


def has_no_unit(value: str) -> bool:
    """True if the word behind a postal code is no unit."""
    return not {part.lower() for part in _split_words(value)} & UNITS


_PLACES = (
    "address|addresses|lives|live|lived|living|resides|residing|residence|staying|located|meet|meet me|deliver|ship"
    "|send|taxi|return to|moved|enter|office|restaurant|it's in|it's at|corner "
    "of|drops|anschrift|adresse|wohnt|wohne"
    "|wohnhaft|habite|domicilié|domicilio|dirección|direccion|vive|vivo|indirizzo|abita|abito|residente"
)
"""Words near which a name with a number is taken as an address."""

_EDGE = r"(?<![\w.,$€£/:\-])"
_MORE = rf"(?: [ ] (?: {_NAME} | {_OF} (?!\w) ) )"
_STREET = Expression(
    rf"{_NUMBER} ,? [ ] (?: {_NUMBER} [ ] )? (?: {_WORD} [ ] ){{1,5}}? {_WAY} (?!\w)"
)
_BEHIND = r"""
    (?<= (?: \b (?: at | on | in | to | with | corner[ ]of | is | and | address | an | au | der | en ) | : ) \s{1,3} )
"""
_SIDE = r"(?: [ ] (?: [nsew] | [ns][ew] | north | south | east | west ) (?!\w) \.? )"


def make_address_rule(
    pattern: str,
    score: float,
    triggers: str = "",
    *,
    near: str = "",
    digits: int = 1,
    **fields: Any,
) -> Rule:
    """Makes a rule for addresses.

    Args:
        pattern: the expression.
        score: the score of its matches.
        triggers: substrings of the text, separated by bars, one of which must be near.
        near: context words, separated by bars, one of which must be near.
        digits: digits that the text must have.
        fields: other fields of `Rule`.
    """
    context = (
        build_context(near)
        if near
        else {"triggers": tuple(triggers.split("|")), "window": (120, 250) if triggers else None}
    )
    return Rule("ADDRESS", Expression(pattern), score, digits=digits, **context, **fields)


_LINE = "one line names a home"

RULES = (
    # 12 Main Street, 12B East 5th St., Suite 4, Springfield, IL 62704
    make_address_rule(
        rf"{_EDGE} {_NUMBER} ,? [ ] (?: {_NUMBER} [ ] )? (?: {_WORD} [ ] ){{1,5}}? {_WAY} (?!\w) \.? {_SIDE}?"
        rf" (?: [ ] \d{{1,5}} (?!\w) )? {_TAIL}",
        0.75,
        check=is_street,
        numeric_prefix=True,
    ),
    # Hopfengarten 9, 97456 Dittelbrunn; ZA des Quatre-Vents, 49124 Saint-Barthélemy
    make_address_rule(
        rf"(?<!\w) (?:{_NAME}[ ]){{0,3}}{_NAME} [ ] \d{{1,4}}(?:[ ]?[a-z])? (?: ,[ ]? | [ ]?\n ) (?:[A-Z]{{1,2}}-)?"
        rf" (?: \d{{5}} | \d\d-\d{{3}} | \d{{4}}[ ](?-i:[A-Z]{{2}}) ) [ ] {_TOWN}",
        0.7,
        digits=5,
        check=is_place,
        guard=_LINE,
    ),
    # a postal code and its town in a line or a cell of their own
    make_address_rule(
        rf"(?: (?<=\n) | \A | [|·•][ ] ) (?P<value> (?:[A-Z]{{1,2}}-)? (?: \d{{5}} | \d\d-\d{{3}}"
        rf" | \d{{4}}[ ](?-i:[A-Z]{{2}}) ) [ ] {_TOWN} )"
        r" (?= [ ]{0,9} (?: \n | \Z | [|·•] ) )",
        0.6,
        digits=5,
        check=has_no_unit,
        guard=_LINE,
    ),
    # Hauptstraße 5, 10115 Berlin; 3 Lange Straße 5
    make_address_rule(
        rf"(?<!\w) (?: {_NUMBER} [ ] )? (?: {_NAME} [ \-] ){{0,2}} [\p{{L}}\-]{{2,30}}? {_COMPOUND} (?!\w) [ ]"
        rf" {_NUMBER} (?!\w) {_TAIL}",
        0.75,
        "straße |strasse |str. |stasse |gasse |gässli |weg |platz |allee |damm |ufer |steig "
        "|gatan |gata |gaten "
        "|gate |gade |vägen |vegen |veien |vej |væng |stræti |gränd |straat |laan |plein |gracht "
        "|singel |dijk |hove "
        "|katu |ntie |kuja |utca |vegur |vangur |gränden |stien ",
        guard=_LINE,
    ),
    # 12, rue de la Paix; Via Roma 5; ul. Miła 53
    make_address_rule(
        rf"{_EDGE} (?: {_NUMBER} (?: [ ] (?:bis|ter) )? ,? [ ] ){{1,2}} {_BEFORE_NAME}"
        rf" (?: [ ] | (?<= \p{{L}}{{2}}\. | / ) ) (?: {_OF} [ ] | [dl]' ){{0,3}}"
        rf" {_WORD} {_MORE}{{0,5}} (?: ,? [ ] (?: n[°º.]{{0,2}} [ ]? )? (?!\d{{5}}) {_NUMBER} (?!\w) )? {_TAIL}",
        0.7,
        check=is_numbered,
        numeric_prefix=True,
    ),
    make_address_rule(
        rf"(?<!\w) {_BEFORE_NAME} (?: [ ] | (?<= \p{{L}}{{2}}\. | / ) ) (?: {_OF} [ ] | [dl]' ){{0,3}}"
        rf" (?: \d{{1,2}} [ ] )? {_NAME}"
        rf" {_MORE}{{0,5}} ,? [ ] (?: n[°º.]{{0,2}} [ ]? )?"
        rf" {_NUMBER} (?!\w) {_TAIL}",
        0.7,
        "|".join(list_triggers("address_words.ways")),
        check=is_numbered,
    ),
    make_address_rule(
        rf"(?<!\w) (?: calle | camino | avenida | paseo | rue | rua | travessa | piazza | viale ) [ ] (?: {_OF} [ ]"
        rf" | [dl]' ){{0,3}}"
        r" [\p{L}\-]{4,20} (?:[ ][\p{L}\-]{3,20}){0,2} ,? [ ] \d{1,4} (?! \w | [.,:%]\d"
        r" | [ ](?:a[nñ]os|ans|anni|euros?|km|m|min) )",
        0.6,
        "calle |camino |avenida |paseo |rue |rua |travessa |piazza |viale ",
        guard=_LINE,
    ),
    # post office boxes and military addresses
    make_address_rule(
        rf"(?<!\w) (?: {_NUMBER} [ ] )? (?: {make_choice('address_words.boxes')}"
        rf" | bp (?= [ ]? \d{{1,5}} [,\s]{{1,3}} \d{{5}} ) ) [ ]? (?:n[°º.][ ]?)?"
        rf" \d{{1,6}} (?!\w) (?: [ ] {_NAME} [ ] {_NAME} )? {_TAIL}",
        0.8,
        "|".join((*list_triggers("address_words.boxes"), "bp ", "bp1", "bp2")),
        guard=_LINE,
    ),
    make_address_rule(
        r"(?<!\w) (?: (?: psc | cmr | unit | usnv | uss | usns | uscgc ) [ ] [\w.\-]{1,30}+"
        r" (?: ,? [ ] box [ ] \d{1,5} )? \s{1,3}+ )? (?: apo | fpo | dpo ) [ ] a[aep] [ ] \d{5} (?:-\d{4})? (?!\w)",
        0.9,
        "apo |fpo |dpo ",
        digits=5,
        guard=_LINE,
    ),
    make_address_rule(
        rf"(?<![\w\#]) (?-i:(?: {_BRITISH} | {_CANADIAN} )) (?!\w)",
        0.7,
        digits=2,
        numeric_prefix=True,
        guard=_LINE,
    ),
    make_address_rule(
        rf"(?<!\w) (?P<value> {_CODE} )",
        0.7,
        digits=3,
        near="zip|zip code|zipcode|postcode|post code|postal code|plz|postleitzahl|code postal|código postal|cap:",
        guard=_LINE,
    ),
    # a name with a number, followed by a unit or a state, or near a word that announces an address
    make_address_rule(
        rf"(?: (?<![\w.]) (?: {_NUMBER} [ ] )? (?: {_NAME} [ ] (?: {_OF} [ ] )? ){{1,5}} (?: {_NUMBER} \.? )? {_GAP} )?"
        rf" {_HOME} {_TAIL}",
        0.65,
        "|".join(list_triggers("address_words.homes")),
        guard=_LINE,
    ),
    # a village with a number, and where it lies: Nowa Wieś 17, gmina Michałowice
    make_address_rule(
        rf"(?<!\w) (?: {_NAME} [ \-] ){{0,3}} {_NAME} [ ] {_NUMBER} (?!\w) (?: {_GAP} {_DISTRICT} ){{1,4}}",
        0.7,
        "|".join(list_triggers("address_words.districts")),
        check=is_place,
        guard=_LINE,
    ),
    make_address_rule(
        rf"{_BEHIND} (?P<value> (?: {_NUMBER} [ ] ){{1,2}} {_NAME} {_MORE}{{0,5}} (?: [ ] {_NUMBER} (?!\w) )? {_TAIL}"
        rf" | {_NAME} {_MORE}{{0,5}} [ ] {_NUMBER} (?!\w) {_TAIL} )"
        rf" | (?<= ,[ ] ) (?P<value> {_NUMBER} [ ] {_NAME} {_MORE}{{0,5}} [ ] {_NUMBER} (?!\w) {_TAIL} )",
        0.6,
        check=is_place,
        near=_PLACES,
        guard=_LINE,
    ),
)
"""Street addresses, as several countries write them."""
