"""Keys: passwords, tokens and other credentials.

In: nothing. Out: `RULES`.
Not here: URLs with a key in them (`net`).
"""

import regex

from textveil.protect.patterns import checksums as sums
from textveil.protect.patterns.rules import Expression, Rule, has_digit, keyed, listed, words

_NO_STARTS = ("$", "<", "your", "process.env", "os.", "self.", "optional[", "union[", "list[", "get")
_NO_PASSWORDS = listed(
    """none null true false required optional string integer number text varchar bytes object undefined password
    passwort secret hidden incorrect wrong invalid correct expired missing empty reset changed forgotten stored hashed
    encrypted should must will cannot this that with from about policy manager protected field input value please
    enter change example unknown unset"""
)


def is_password(value: str) -> bool:
    """Whether it is neither schema vocabulary nor an ordinary word."""
    bare = value.strip(".,;:!?()[]{}*_").lower()
    variable = bare.isidentifier() and not has_digit(bare) and any(sign in bare for sign in _NAMED)
    return len(bare) >= 4 and bare not in _NO_PASSWORDS and not variable and not bare.startswith(_NO_STARTS)


def is_code(value: str) -> bool:
    """Whether it has what ordinary words lack: a digit, a symbol, or capitals inside."""
    inner = value.strip(".,;:!?()[]{}*\"'")
    return (
        len(inner) >= 4
        and (has_digit(inner) or not inner.isalpha() or inner[1:] != inner[1:].lower())
        and not (inner.replace("-", "").replace("'", "").isalpha() and inner == inner.lower())
    )


def is_random(value: str) -> bool:
    """Whether it looks as random as a key: hexadecimal, or letters of both cases and digits."""
    if not has_digit(value) or len(value) < 20:
        return False
    if set(value.lower()) <= set("0123456789abcdef-"):
        return len(value) >= 32 and sums.entropy(value) > 2.5
    return value != value.lower() and value != value.upper() and sums.entropy(value) > 3.5


_PREFIXED = r"""
    sk-[A-Za-z0-9_\-]{16,200} | (?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,200} | gh[pousr]_[A-Za-z0-9]{30,255}
  | github_pat_\w{22,255} | glpat-[\w\-]{18,64} | (?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}
  | xox[a-z]-[A-Za-z0-9\-]{10,250} | xapp-[A-Za-z0-9\-]{10,250} | AIza[\w\-]{35} | ya29\.[\w\-]{20,500}
  | SG\.[\w\-]{16,32}\.[\w\-]{16,64} | hf_[A-Za-z0-9]{30,64} | npm_[A-Za-z0-9]{36} | pypi-[\w\-]{50,300}
  | dop_v1_[0-9a-f]{64} | shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32} | key-[0-9a-f]{32} | (?:AC|SK)[0-9a-f]{32}
  | EAAC[A-Za-z0-9]{40,300} | AGE-SECRET-KEY-1[A-Z0-9]{58} | \d{8,10}:AA[\w\-]{33} | r8_[A-Za-z0-9]{37}
  | eyJ[\w\-]{8,4000}\.[\w\-]{8,8000}(?:\.[\w\-]{0,4000})?
"""
_NAMES = r"""
    (?:[a-z0-9]{1,20}[_\-]){0,3}
    (?: pass(?:word|wd|phrase|code) | pwd | passwort | kennwort | mot[ ]de[ ]passe | contrase(?:ñ|n)a
      | parola[ ]d'ordine
      | api[ _\-]?key | (?:access|secret|private|account|encryption|master)[ _\-]?key
      | (?:access|auth|api|refresh|bearer|id|session|security)?[ _\-]?token | (?:client[ _\-]?)?secret | credentials? )
    (?:[_\-][a-z0-9]{1,20}){0,2}
"""
_NAMED = ("pass", "pwd", "kennwort", "contrase", "parola", "key", "token", "secret", "credential")
_BODY = r"""(?: (?P<value>[^\s"'`,;<>]{4,300}+) | ["'`] (?P<value>[^"'`\n]{4,300}+) ["'`] )"""

RULES = (
    Rule("SECRET", Expression(rf"(?<![\w\-])(?:{_PREFIXED})(?![\w\-])", regex.VERBOSE)),
    Rule(
        "SECRET",
        Expression(
            r"-----BEGIN[ ] [A-Z0-9 ]{0,30}? PRIVATE[ ]KEY (?:[ ]BLOCK)? -----"
            r" (?: [^\-]*+ (?: -(?!----) [^\-]*+ ){0,200}+ -----END[ ][A-Z0-9 ]{1,60}+-----"
            r" | (?: (?: \s | \\[rn] ){1,4}+ [A-Za-z0-9+/=]{16,200}+ ){0,2000}+ )"
        ),
        signs=("private key",),
    ),
    Rule(
        "SECRET",
        Expression(r"\b (?: Bearer | Authorization:[ ]Basic ) [ ] (?P<value>[\w.~+/\-]{12,4000}+=*+)"),
        check=is_code,
    ),
    Rule(
        "SECRET",
        Expression(rf"""(?<![\w\-]) {_NAMES} ["'`]? [ ]? (?: := | => | -> | [:=] ) [ ]? {_BODY}"""),
        score=0.9,
        check=is_password,
        signs=_NAMED,
        reach=(110, 420),
    ),
    Rule(
        "SECRET",
        Expression(
            rf"(?<![\w\-]) {_NAMES} [ ] (?: (?:is|was|will[ ]be|lautet|ist|est|es|[eè]) [ ] (?:now[ ])? )? {_BODY}"
        ),
        score=0.85,
        check=is_code,
        signs=_NAMED,
        reach=(110, 420),
    ),
    keyed(
        "SECRET",
        "pin|pin code|cvv|cvv2|cvc|cvc2|otp|verification code|security code|access code|one-time code|passcode"
        "|geheimzahl",
        r"\d(?:[ ]?\d){2,7}(?!/)",
        digits=3,
    ),
    Rule(
        "SECRET",
        Expression(r"(?<![\w+/=\-])[\w+/\-]{20,200}+=*+(?![\w+/=])", 0),
        score=0.8,
        check=is_random,
        digits=1,
        **words("key|keys|token|tokens|secret|credential|credentials|auth|hash|bearer|schlüssel|clave|clé"),
    ),
)
