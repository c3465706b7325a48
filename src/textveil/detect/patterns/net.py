"""Internet addresses: e-mail, URLs, hosts, and devices.

In: nothing. Out: `RULES`, and the expression of secret URLs.
Not here: which of them are public (`hosts`), keys and passwords on their own (`secrets`), user
names (`handles`).
"""

import base64
import binascii
import ipaddress

import regex

from textveil.detect.patterns.hosts import (
    GENERIC_HOSTS,
    score_ip_privacy,
    score_mail_privacy,
    score_url_privacy,
)
from textveil.detect.patterns.rules import (
    FOREIGN,
    Expression,
    Rule,
    has_digit,
    make_word_set,
    mask_foreign_letters,
)


def is_address(value: str) -> bool:
    """True if a value is an IP address, perhaps with prefix length."""
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return True


def is_ipv6(value: str) -> bool:
    """True if a value is an IPv6 address.

    It may have a zone and a prefix length. Digits alone may be a slice of a list (1::2), letters
    alone names of a program (a::b); so a group must be long, or an IPv4 address within.
    """
    groups = regex.findall(r"[0-9a-f.]+", regex.split("[%/]", value)[0].lower())
    characters = "".join(groups)
    mixed = (
        has_digit(characters)
        and len(characters) > 3
        and (any(map(str.isalpha, characters)) or regex.match("2[0-9]{3}", characters))
    )
    return bool(mixed or len(groups) > 3) and is_address(regex.sub("%[^/]*", "", value))


def has_target(value: str) -> bool:
    """True if an address goes on behind its scheme: `https://` alone names nothing."""
    return any(map(str.isalnum, value.partition("://")[2]))


def is_mail(value: str) -> bool:
    """True if the text behind the at sign can be a host.

    A version of a package can not: react@18.2.0.
    """
    host = value.rpartition("@")[2]
    return not regex.fullmatch(r"v?\d+(?:\.\d+){1,2}(?:[.\-].*)?", host) or is_address(host)


def is_foreign_mail(value: str) -> bool:
    """True if a mail address needs its letters of scripts without spaces.

    用户@例子.公司 does, bob@x.kr로 does not.
    """
    bare = mask_foreign_letters(value)
    match = MAIL.compiled.search(bare)
    return is_mail(value) and (match is None or bare.startswith(f".{FOREIGN}", match.end()))


def is_encoded_mail(value: str) -> bool:
    """True if a value is a mail address in Base64."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return False
    return MAIL.compiled.fullmatch(decoded.strip()) is not None


def is_host(value: str) -> bool:
    """True if a value names one machine.

    It has a letter, and is no version, type or file.
    """
    name = value.lower()
    return any(c.isalpha() for c in name) and not name.startswith(
        ("utf", "iso-", "http", "sha", "x86", "localhost")
    )


def is_own_host(value: str) -> bool:
    """True if a host name is specific, unlike `server` or `db1`."""
    return value.lower().rstrip("0123456789").rstrip("-") not in GENERIC_HOSTS


_LOCAL = r"(?: [\p{L}\p{N}\p{M}.%+_\-] | '(?=\p{L})(?<!\bN') )"
_LABEL = r"[\p{L}\p{N}\p{M}](?:[\p{L}\p{N}\p{M}\-]{0,61}+(?<!-))?"
_TOP = (
    "com|org|net|edu|gov|mil|info|biz|io|ai|app|dev|xyz|online|shop|site|cloud|tech|blog|example|"
    "de|fr|uk|nl|eu|ch|ru|jp|cn|au|br|pl|se|cz|ca|dk|fi|pt|gr|hu|ro|kr|mx|nz|ie|tv|ua"
)
_WORD_TOPS = "it|es|at|be|in|us|co|me|tr|vn|hk|tw|sg|za"
"""Top-level domains that are also words: found only in addresses of three parts."""
_QUERY = r"(?:[a-z]*[_\-]?)?(?:token|key|apikey|sig|signature|password|passwd|pwd|secret|auth|code|session|sid|jwt)"
_CLOSE = rf"(?! [),] {FOREIGN} [^\s?=&]{{0,99}}+ (?![?=&]) ) [^\s<>\"|\\^`{{}}「」『』【】《》、。]"
"""A character of a web address.

The address ends at a bracket or comma before a letter of a script without spaces, unless a query
follows.
"""
SECRET_URL = Expression(
    rf":// [^/\s:@]{{1,200}}+ : [^/\s@]{{1,200}}+ @ | [?&\#;] {_QUERY} = [^&\s]{{2}} | ://hooks\.slack\.com/services/"
)
"""The part of a URL that makes it a secret: a password, or a key in its query."""
MAIL = Expression(
    # Signs may stand before an address, as in a list ("-maria@") or a line of a patch ("+maria@").
    rf"(?<![\p{{L}}\p{{N}}\p{{M}}%_][.+\-]{{0,3}}) [\p{{L}}\p{{N}}_] {_LOCAL}{{0,253}}+ (?<!\.) @ {_LABEL}"
    rf" (?: \.{_LABEL} ){{1,8}}+"
)


def ends_like_address(value: str) -> bool:
    """True if a spelled-out mail address ends like one.

    It does not end in the middle of a sentence ("at Pell Point for").
    """
    return value.split()[-1].lower() not in _LINKING


_LINKING = make_word_set(
    "a an the and or for from of on to with by was were he she they we you i this that which"
)

_AT = (
    "at|ät|arobase|arrob[ae]|chiocciola|apenstaartje|ma[łl]pa|собака|골뱅이|앳|艾特|a c[òo]ng|a "
    "m[óo]c|kuyruklua|एट"
)
_BRACKETED = tuple(
    f"{bracket}{space}{word}"
    for bracket in "([{<"
    for space in ("", " ")
    for word in (
        "at",
        "ät",
        "@",
        "ar",
        "ch",
        "ap",
        "ma",
        "ма",
        "со",
        "골",
        "앳",
        "艾",
        "a c",
        "a m",
        "ku",
        "एट",
    )
)
_DOT = "dot|punkt|point|punto|ponto|punt|kropka|точка|닷|점|点|點|nokta|ch[ấa]m|डॉट"
_WORD = r"[\p{L}\p{N}\p{M}\-]{1,63}+"
_SHARING = r"(?! wsl | server | localhost | host | computer | pipe | \?) [a-z0-9] [\w.\-]{1,62}"
_BARE_HOST = r"(?: [a-z0-9] [a-z0-9\-]{0,62}+ \. )"

RULES = (
    *(
        Rule(
            "EMAIL",
            MAIL,
            score=0.95,
            triggers=("@",),
            window=(260, 600),
            keep_scripts=whole,
            check=check,
            score_privacy=score_mail_privacy,
        )
        for whole, check in ((False, is_mail), (True, is_foreign_mail))
    ),
    Rule(
        "EMAIL",
        Expression(
            rf"(?<![\p{{L}}\p{{N}}\p{{M}}.%+_\-]) [\p{{L}}\p{{N}}_] [\p{{L}}\p{{N}}._+\-]{{0,63}}+"
            r" (?: %40 | &\#64; | %2540 )"
            rf" {_LABEL} (?: \.{_LABEL} ){{1,8}}+"
        ),
        score=0.96,
        triggers=("%40", "&#64;", "%2540"),
        window=(70, 600),
    ),
    Rule(
        "EMAIL",
        Expression(
            rf"(?<![\w.]) [\p{{L}}\p{{N}}] [\p{{L}}\p{{N}}._+\-]{{0,63}}+"
            rf" (?: [ ]? [(\[{{<] [ ]? (?: {_DOT} | \. ) [ ]? [)\]}}>] [ ]? {_WORD} ){{0,4}}+"
            rf" [ ]? [(\[{{<] [ ]? (?: {_AT} | @ ) [ ]? [)\]}}>] [ ]? {_WORD}"
            rf" (?: [ ]? (?: \. | [(\[{{<] [ ]? (?: {_DOT} | \. ) [ ]? [)\]}}>] ) [ ]? {_WORD} ){{1,5}}+"
        ),
        score=0.96,
        triggers=_BRACKETED,
        window=(600, 600),
        keep_scripts=True,
    ),
    Rule(
        "EMAIL",
        Expression(
            rf"(?<![\w.]) [\p{{L}}\p{{N}}] [\p{{L}}\p{{N}}._+\-]{{0,63}}+ (?: [ ] (?:{_DOT}) [ ] {_WORD} ){{0,3}}"
            rf" [ ] (?:{_AT}) [ ] (?! (?:the|a|an|this|that|my|our|your|one|each|which|every)\b ) {_WORD}"
            rf" (?: [ ] (?:{_DOT}) [ ] {_WORD} ){{1,4}}+"
        ),
        score=0.9,
        check=ends_like_address,
        triggers=(
            " dot ",
            " punkt ",
            " point ",
            " punto ",
            " ponto ",
            " punt ",
            " kropka ",
            " точка ",
            " 닷 ",
            " nokta ",
        ),
        window=(400, 400),
        keep_scripts=True,
    ),
    Rule(
        "EMAIL",
        Expression(
            rf"(?<![\w.]) (?= [\p{{L}}\p{{N}}]{{0,40}}+ [._\d] ) [\p{{L}}] [\p{{L}}\p{{N}}._+\-]{{1,63}}+ [ ] at [ ]"
            rf" {_BARE_HOST}{{1,4}} (?:{_TOP}) (?! [\w@\-] | \.\w )"
        ),
        score=0.85,
        triggers=(" at ",),
        window=(70, 350),
    ),
    Rule(
        "EMAIL",
        Expression(
            r"(?<![\w+/=\-]) (?= [a-z0-9]{0,40}+ [A-Z] ) [A-Za-z0-9+/]{14,120}+ ={0,2}+ (?![\w+/=])",
            regex.VERBOSE,
        ),
        score=0.97,
        check=is_encoded_mail,
    ),
    Rule(
        "URL",
        Expression(
            rf"(?<![\w]) (?: jdbc: )? [a-z][a-z0-9+.\-]{{1,20}}+ :// (?P<rest>(?:{_CLOSE}){{1,4000}}+)"
        ),
        score=0.95,
        check=has_target,
        triggers=("://",),
        window=(30, 4400),
        score_privacy=score_url_privacy,
    ),
    Rule(
        "URL",
        Expression(rf"(?<![\w./@]) www\. (?P<rest>[\p{{L}}\p{{N}}] (?:{_CLOSE}){{2,4000}}+)"),
        0.95,
        triggers=("www.",),
        window=(1, 4400),
        score_privacy=score_url_privacy,
    ),
    Rule(
        "URL",
        Expression(
            rf"(?<![\w./@\-\\$]) (?: {_BARE_HOST}{{1,5}} (?:{_TOP}) | {_BARE_HOST}{{2,5}} (?:{_WORD_TOPS}) )"
            r" (?![\w@\-(]|\.\w)"
            rf" (?: : \d{{2,5}}+ )? (?: [/?\#] (?:{_CLOSE}){{0,4000}}+ )?"
        ),
        score=0.85,
        triggers=tuple(f".{top}" for top in f"{_TOP}|{_WORD_TOPS}".split("|")),
        window=(330, 4400),
        score_privacy=score_url_privacy,
    ),
    Rule(
        "HOST",
        Expression(
            rf"(?<![\w./\-\\$]) (?! (?:com|org|net|io|java|javax|jdk|sun|android|kotlin|scala|std|os|self|this)\. )"
            rf" (?: (?= [a-z0-9]{{0,62}}+ [\-\d] | (?:[a-z0-9\-]{{1,63}}+ \.){{2}} ) {_BARE_HOST}{{1,5}}"
            r" (?: internal | local | lan | corp | intra | intranet | localdomain )"
            rf" | {_BARE_HOST}{{1,4}} (?: int | intern | interno | interne | internal | corp | lan | intra ) \."
            rf" [a-z0-9\-]{{1,63}}+ \. (?:{_TOP}) ) (?: : \d{{2,5}}+ )? (?![\w@\-(=]|\.\w)"
        ),
        score=0.9,
        triggers=(".int", ".local", ".lan", ".corp"),
        window=(330, 300),
    ),
    Rule(
        "HOST",
        Expression(
            r"(?m) (?: ^ | (?<=[ ]) ) (?: <\d{1,3}> )? \p{L}{3,4}\.? [ ]{1,2} \d{1,2} [ ]"
            r" \d\d:\d\d:\d\d [ ] (?P<value> (?! localhost | [\w\-]{1,40}: ) [a-z][\w.\-]{1,62} )"
            r" (?: / [\w.\-]{1,62} )? [ ] [\w./\-]{1,40} (?: \([\w\-]{1,40}\) )? (?: \[\d+\] )? :"
        ),
        score=0.9,
        check=is_own_host,
        digits=6,
    ),
    Rule(
        "HOST",
        Expression(
            rf"(?<![\w\\:%}}\])\[\"']) (?:\\\\|\\\\\\\\) (?P<value>{_SHARING}) \\{{1,2}} [\w$]"
            # in quotes, two backslashes may stand for one
            rf" | (?<=[\"']) (?: \\\\\\\\ (?P<value>{_SHARING}) \\{{1,2}} | \\\\ (?P<value>{_SHARING}) \\ ) [\w$]"
        ),
        score=0.9,
        triggers=("\\\\",),
        window=(2, 100),
    ),
    Rule(
        "HOST",
        Expression(
            r"(?<![\w\-.]) (?: [a-z_]{0,20} (?:host|server) (?:name)? | servidor | serveur | сервер | rechner(?:name)?"
            r" | computer(?:[ ]?name)? | workstation | máquina | postazione | komputer | bilgisayar | node | machine )"
            r" [ ]? [:=] [ ]?"
            r" [\"']? (?P<value> (?= [a-z0-9]{0,30}+ [\-\d] ) [a-z] [a-z0-9\-]{2,40} ) (?![\w./:])"
        ),
        score=0.8,
        check=is_host,
        triggers=(
            "host",
            "server",
            "servidor",
            "serveur",
            "comput",
            "komput",
            "rechner",
            "workst",
            "máquina",
            "postaz",
            "bilgis",
            "node",
            "machine",
            "сервер",
        ),
        window=(30, 120),
    ),
    Rule(
        "HOST",
        Expression(
            r"(?m) (?: ^ | (?<=[\s(`>]) ) [a-z_] [a-z0-9_.\-]{0,31}+ @"
            r" (?P<value> (?!localhost) [a-z0-9][a-z0-9\-]{1,40} ) : [~/] [^\n$\#%]{0,80} [$\#%]"
            r" | \[ [a-z_] [a-z0-9_.\-]{0,31}+ @ (?P<value> [a-z0-9][a-z0-9\-]{1,40} ) [ ] [~/\w.\-]{1,40} \] [$\#]"
            r" | (?<!\w) (?P<value> ip (?:-\d{1,3}){4} ) (?!\w)"
        ),
        score=0.8,
        check=is_own_host,
        triggers=("@", "ip-"),
        window=(40, 180),
    ),
    Rule(
        "IP",
        Expression(
            r"(?<![\w.\-]) (?<! \b v \. | \b v[ ] | version[ ] | release[ ] | build[ ] | section[ ] | chapter[ ]"
            r" | §[ ]? | /[\w.\-]{1,60}: )"
            r" \d{1,3} (?: \.\d{1,3} ){3} (?: /\d{1,2} )? (?! [\w\-] | \.\d )"
        ),
        score=0.95,
        check=is_address,
        digits=4,
        triggers=(".",),
        score_privacy=score_ip_privacy,
    ),
    Rule(
        "IP",  # of the hosts that a user of a database may come from
        Expression(r"(?<= @['\"`] ) \d{1,3} (?: \.\d{1,3} ){0,2} \.% (?= ['\"`] )"),
        score=0.9,
        digits=1,
        triggers=(".%",),
    ),
    Rule(
        "IP",
        Expression(
            r"(?<![\w.]) (?<! :: | (?<!\w) [0-9a-f]{1,4} : ) (?: [0-9a-f]{1,4} | (?=::) : )"
            r" (?: ::? [0-9a-f]{1,4}+ | :: (?![0-9a-f:]) ){1,8}+ (?: (?: \.\d{1,3} ){3} )?+"
            r" (?: % [\w.\-]{0,20} \w )?+ (?: /\d{1,3} )?+ (?! \w | :[\w:] | \.\d )"
        ),
        score=0.95,
        check=is_ipv6,
        triggers=(":",),
        score_privacy=score_ip_privacy,
    ),
    Rule(
        "MAC",
        Expression(
            r"(?<![\w:.\-]) (?: [0-9a-f]{2} ([:\-]) [0-9a-f]{2} (?: \1 [0-9a-f]{2} ){4} (?: (?:\1 [0-9a-f]{2}){2} )?"
            r" | [0-9a-f]{4} \. [0-9a-f]{4} \. [0-9a-f]{4} ) (?! [\w:\-] | \.\w )"
        ),
        check=has_digit,
    ),
)
