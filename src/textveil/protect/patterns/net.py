"""Internet addresses: e-mail, URLs, hosts, and devices.

In: nothing. Out: `RULES`, and what makes a URL a secret.
Not here: keys and passwords on their own (`keys`).
"""

import ipaddress

from textveil.protect.patterns.rules import Expression, Rule, has_digit


def is_address(value: str) -> bool:
    """Whether it is an IP address, possibly with a prefix length."""
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return True


_LOCAL = r"[\p{L}\p{N}\p{M}.!\#$%&'*+/=?^_`{|}~\-]"
_LABEL = r"[\p{L}\p{N}\p{M}](?:[\p{L}\p{N}\p{M}\-]{0,61}+(?<!-))?"
_TOP = (
    "com|org|net|edu|gov|mil|info|biz|io|ai|app|dev|xyz|online|shop|site|cloud|tech|blog|"
    "de|fr|uk|nl|eu|ch|ru|jp|cn|au|br|pl|se|cz|ca|dk|fi|pt|gr|hu|ro|kr|mx|nz|ie|tv"
)
_QUERY = r"(?:[a-z]*[_\-]?)?(?:token|key|apikey|sig|signature|password|passwd|pwd|secret|auth|code|session|sid|jwt)"
_CLOSE = r"[^\s<>\"|\\^`{}]"
SECRET_URL = Expression(
    rf":// [^/\s:@]{{1,200}}+ : [^/\s@]{{1,200}}+ @ | [?&\#;] {_QUERY} = [^&\s]{{2}} | ://hooks\.slack\.com/services/"
)
"""What makes a URL a secret: a password, or a key in its query."""

RULES = (
    Rule(
        "EMAIL",
        Expression(rf"(?<!{_LOCAL}) [\p{{L}}\p{{N}}_] {_LOCAL}{{0,253}}+ (?<!\.) @ {_LABEL} (?: \.{_LABEL} ){{1,8}}+"),
        score=0.95,
        signs=("@",),
    ),
    Rule(
        "EMAIL",
        Expression(
            r"(?<![\w.]) [\p{L}\p{N}] [\p{L}\p{N}._+\-]{0,63}+ [ ]? [(\[] [ ]? at [ ]? [)\]] [ ]? [\p{L}\p{N}\-]{1,63}+"
            r" (?: [ ]? (?: \. | [(\[] [ ]? dot [ ]? [)\]] ) [ ]? [\p{L}\p{N}\-]{1,63}+ ){1,4}+"
        ),
        score=0.9,
        signs=("at",),
    ),
    Rule(
        "URL",
        Expression(rf"(?<![\w]) [a-z][a-z0-9+.\-]{{1,20}}+ :// (?P<rest>{_CLOSE}{{1,4000}}+)"),
        score=0.95,
        signs=("://",),
    ),
    Rule(
        "URL",
        Expression(rf"(?<![\w./@]) www\. (?P<rest>[\p{{L}}\p{{N}}] {_CLOSE}{{2,4000}}+)"),
        0.95,
        signs=("www.",),
    ),
    Rule(
        "URL",
        Expression(
            rf"(?<![\w./@\-]) (?: [a-z0-9] [a-z0-9\-]{{0,62}}+ \. ){{1,5}} (?:{_TOP}) (?![\w@\-]|\.\w)"
            rf" (?: : \d{{2,5}}+ )? (?: [/?\#] {_CLOSE}{{0,4000}}+ )?"
        ),
        score=0.85,
        signs=tuple(f".{top}" for top in _TOP.split("|")),
    ),
    Rule(
        "IP",
        Expression(
            r"(?<![\w.\-]) (?<! \b v \. | \b v[ ] | version[ ] | release[ ] | build[ ] | section[ ] | chapter[ ]"
            r" | §[ ]? )"
            r" \d{1,3} (?: \.\d{1,3} ){3} (?: /\d{1,2} )? (?! [\w\-] | \.\d )"
        ),
        score=0.95,
        check=is_address,
        digits=4,
        signs=(".",),
    ),
    Rule(
        "IP",
        Expression(
            r"(?<![\w:.]) (?=[0-9a-f:]*\d) (?: [0-9a-f]{1,4} : | :: ) [0-9a-f:]{1,38}+"
            r" (?: \.?\d{1,3} \.\d{1,3} \.\d{1,3} )? (?: /\d{1,3} )? (?! [\w:] )"
        ),
        score=0.95,
        check=is_address,
        signs=(":",),
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
