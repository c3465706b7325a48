"""Secrets: passwords, tokens and other credentials.

In: nothing. Out: `RULES`.
Not here: the well-known forms of secrets (`data/secrets.toml`), URLs with a key in them (`net`),
PINs and codes of doors (`pins`).
"""

import base64
import binascii
import tomllib
from functools import cached_property
from importlib.resources import files

import regex

from textveil.detect.patterns import checksums as sums
from textveil.detect.patterns.rules import (
    Check,
    ContextWords,
    Expression,
    Pattern,
    Rule,
    build_context,
    fold_text,
    has_digit,
    make_word_set,
)
from textveil.text import LazyPattern

# Beginnings of variables, templates, types and calls: the value itself stands elsewhere.
_NO_STARTS = (
    "$",
    "<",
    "%",
    "{",
    "your",
    "process.env",
    "os.",
    "self.",
    "optional[",
    "union[",
    "list[",
    "get",
    "my_",
)
_NO_PASSWORDS = make_word_set(
    """none null true false required optional string integer number text varchar bytes object undefined password
    passwort secret hidden incorrect wrong invalid correct expired missing empty reset changed forgotten stored hashed
    encrypted should must will cannot this that with from about policy manager protected field input value please
    enter change example unknown unset include omit same-origin buffer char byte boolean changeme change_me change-me
    replaceme replace_me convertto-securestring placeholder todo redacted masked same
    idem siehe voir see vedi zie siehe-oben unten oben data
    default type label name form hint reveal toggle visible await null; none; nil new current confirm"""
)
_CODE = LazyPattern(
    r"""[\p{L}_$][\w$]*(?:(?:\.|->|::)[\p{L}_$][\w$]*)+[!?;,)\]]*   # an attribute
    | [\p{L}_$][\w$.:]*[(\[].*   # a call, an index
    | /[\w.@+\-]*(?:/[\w.@+\-]*)*   # a path
    | [ ][\w\-]{1,20}[ ]?=[ ]?   # the next attribute
    | (?:[*x•.\-_#…]|xxx)+ | [(\[{].* | \w+\s?[-=]>.* | \d{1,3}""",
    regex.VERBOSE | regex.IGNORECASE,
)


def is_password(value: str) -> bool:
    """True if a value can be a password.

    Schema vocabulary, code that reads a value from elsewhere, and placeholders can not.
    """
    bare = value.strip(".,;:!?()[]{}*_").lower()
    variable = bare.isidentifier() and not has_digit(bare) and any(sign in bare for sign in _NAMED)
    return (
        len(bare) >= 4
        and bare not in _NO_PASSWORDS
        and not variable
        and not bare.startswith(_NO_STARTS)
        and not _CODE.fullmatch(value)
        and not _MEASURE.fullmatch(value)
    )


_MEASURE = LazyPattern(r"-?\d+(?:\.\d+)?[eE][+\-]\d{1,3}|[\^~]\d+(?:\.\d+){1,3}")
"""A price per token; or the version of a package whose name ends in "pass"."""


def is_token(value: str) -> bool:
    """True if a value is a password, but no word or number."""
    bare = value.strip(".,;:!?()[]{}*\"'")
    return is_password(value) and not bare.isalpha() and not _NUMBER.fullmatch(bare)


_NUMBER = LazyPattern(r"\d+(?:\.\d+)?")


def is_strong(value: str) -> bool:
    """True if a value can only be a password.

    It has letters with digits, or letters with symbols that no word has.
    """
    bare = value.strip(".,;:?()[]{}*\"'")
    letters, symbols = sum(c.isalpha() for c in bare), sum(c in "!#$%&@*+=^~" for c in bare)
    return (
        len(bare) >= 5
        and letters > 0
        and ((has_digit(bare) and sum(map(str.isdigit, bare)) + letters >= 5) or symbols > 0)
        and not _NO_SECRET.match(bare)
        and is_password(value)
    )


_NO_SECRET = LazyPattern(
    r"""(?:sha|md|aes|rsa|utf|base|bcrypt|argon|pbkdf|hmac|oauth|http|ipv|python|php|java|web|mp|p2p|3d|h2)
    -?\d{0,4}\b | \d+(?:st|nd|rd|th|[a-z]{1,5}|-\d+)?$ | \d+-?[a-z]+$ | .*:// | .*@\w+\.\w
    | .*\.(?:py|js|ts|php|txt|pdf|html|json|java|exe|zip)\b
    | \w+=\w+ | \d{1,2}[:.]\d\d | .*/.*/""",
    regex.VERBOSE | regex.IGNORECASE,
)


def is_basic(value: str) -> bool:
    """True if a value is a user name and password in Base64."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    return ":" in decoded and decoded.isprintable()


def is_issued(value: str) -> bool:
    """True if a key is none of the examples in documentation."""
    return not regex.search(r"EXAMPLE(?:KEY)?$|[xX]{6}|0{8}", value)


def is_code(value: str) -> bool:
    """True if a value has what ordinary words lack.

    That is a digit, a symbol, or capitals inside.
    """
    inner = value.strip(".,;:!?()[]{}*\"'")
    return (
        len(inner) >= 4
        and (has_digit(inner) or not inner.isalpha() or inner[1:] != inner[1:].lower())
        and not (inner.replace("-", "").replace("'", "").isalpha() and inner == inner.lower())
    )


def is_random(value: str) -> bool:
    """True if a value looks as random as a key.

    It is hexadecimal, or has letters of both cases and digits.
    """
    if not has_digit(value) or len(value) < 20:
        return False
    if set(value.lower()) <= set("0123456789abcdef-"):
        return len(value) >= 32 and sums.entropy(value) > 2.5
    return value != value.lower() and value != value.upper() and sums.entropy(value) > 3.5


class SecretForms(Expression):
    """The expression of all well-known forms of secrets.

    They are read from a file when first used.
    """

    @cached_property
    def compiled(self) -> Pattern:
        """All forms as one expression; a missing file fails detection."""
        content = (files("textveil") / "data/secrets.toml").read_text("utf-8")
        forms = "|".join(form["pattern"] for form in tomllib.loads(content)["form"])
        return regex.compile(self.source.replace("FORMS", forms))


_PASSWORDS = (
    "*password|*passwd|*passphrase|passcode|*pwd|*passwort|*kennwort|kennw|mot de "
    "passe|mdp|contraseña|contraseñas"
    "|contrasena|contrasenya|clave|senha|palavra passe|parola "
    "d'ordine|parola|*wachtwoord|hasło|haslo|hasła|hasłem"
    "|şifre|şifresi|şifreniz|şifrem|sifre|parolasi|mật khẩu|pw|psk|wpa key|wlan schlüssel|wifi "
    "schlüssel"
    "|netzwerkschlüssel|wifi key|пароль|пароля|паролем|пароли|密码|密碼|口令|パスワード|パスフレーズ|비밀번호|비번"
    "|암호|패스워드|كلمة السر|كلمة المرور|كلمة مرور|باسورد|الرقم السري|पासवर्ड|कूटशब्द|暗証番号|暗号化キー"
)
_TOKENS = (
    "*api key|*apikey|*api keys|*access key|*accesskey|*secret key|*secretkey|*private "
    "key|*privatekey|*account key"
    "|*accountkey|*encryption key|*master key|*signing key|*license key|product "
    "key|*token|*secret|credential"
    "|credentials|app key|client key|auth key|server key|session key|sessionid|session "
    "id|phpsessid|jsessionid"
    "|connect.sid|csrftoken|xsrf token|laravel session|api schlüssel|lizenzschlüssel|clé "
    "api|clave api|clave secreta"
    "|chave de api|chiave api|ключ api|токен|密钥|密鑰|令牌|apiキー|シークレット|api 키|토큰|مفتاح api|अपीआई कुंजी"
    "|anahtar|anahtarı"
)
_PASSWORD, _TOKEN = (
    ContextWords(f"{_PASSWORDS}|pass|dbpass|userpass|adminpass|rootpass|requirepass"),
    ContextWords(_TOKENS),
)
_SHORT = "pass|*pass|requirepass|identified by|sshpass p|shared secret"
_NAMED = (
    "pass",
    "pwd",
    "kennwort",
    "contrase",
    "parola",
    "key",
    "token",
    "secret",
    "credential",
    "senha",
    "clave",
)
_BODY = r"""(?: (?P<value>[^\s"'`,;<>。、，；「」『』（）\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]{4,300}+)
    | ["'`] (?P<value>[^"'`\n]{4,300}+) ["'`] | [「『“"] (?P<value>[^\n」』”"]{4,80}+) )"""
_ENDS = r"(?:[_\-][a-z0-9]{1,20}){0,2}"
_SAYS = r"""(?: إلى | الى | هي | هو
    | is | it's | its | was | be | as | to | now | are | → | = | : | ist | lautet | auf | jetzt | heißt | est
    | c'est | es | era | é | è | jest | brzmi | to | là | это | olarak | na | naar | su | a | à | en | है )"""
"""Words right before a password in a sentence."""


def get_secret_check(key: str) -> Check | None:
    """Returns the test of the secret that a key announces.

    None if the key announces no secret.

    Args:
        key: the key in small letters, its words joined by spaces.
    """
    folded_key = fold_text(key)
    ends = {
        context: any(stop == len(key) for _, stop in context.find(folded_key))
        for context in (_PASSWORD, _TOKEN)
    }
    return is_password if ends[_PASSWORD] else is_token if ends[_TOKEN] else None


def make_assignment_rule(context: str, check: Check, score: float = 0.9) -> Rule:
    """Makes a rule for a value behind a name and assignment."""
    return Rule(
        "SECRET",
        Expression(
            rf"""{_ENDS} ["'`\]}})]{{0,2}} [ ]{{0,8}} (?: := | => | -> | → | [:=] ) [ ]{{0,4}}
            (?: (?:str|String) [ ]?=[ ]? )? {_BODY}"""
        ),
        score=score,
        check=check,
        adjacent=True,
        keep_scripts=True,
        **build_context(context),
    )


def make_sentence_rule(context: str, check: Check, *, between: int = 40) -> Rule:
    """Makes a rule for a value behind words on its line."""
    return Rule(
        "SECRET",
        Expression(
            rf"{_ENDS} [ ,]{{1,2}} (?: (?: [^\n=]{{0,{between}}}? [ ,;:] )?? {_SAYS} | [^\n=]{{1,{between + 25}}}? : )"
            rf" (?: [ ] (?:now|also|just|still|jetzt|nun|weiterhin|noch|ora|toujours|encore|ainda|aún|nog|nadal) )?"
            rf" [ ]? :? [ ]? {_BODY}"
        ),
        score=0.85,
        check=check,
        adjacent=True,
        keep_scripts=True,
        **build_context(context),
    )


RULES = (
    Rule(
        "SECRET",
        SecretForms(r"(?<![\w\-])(?=[\w.$:{}/+=,\-]{11})(?:FORMS)(?![\w\-])"),  # none is shorter
        check=is_issued,
    ),
    Rule(
        "SECRET",
        Expression(
            r"-----BEGIN[ ] [A-Z0-9 ]{0,30}? PRIVATE[ ]KEY (?:[ ]BLOCK)? -----"
            r" (?: [^\-]*+ (?: -(?!----) [^\-]*+ ){0,200}+ -----END[ ][A-Z0-9 ]{1,60}+-----"
            r" | (?: (?: \s | \\[rn] ){1,4}+ [A-Za-z0-9+/=]{16,200}+ ){0,2000}+ )"
        ),
        triggers=("private key",),
    ),
    Rule(
        "SECRET",
        Expression(
            r"\b (?: Bearer | Authorization:[ ]Basic ) [ ] (?P<value>[\w.~+/\-]{12,4000}+=*+)"
        ),
        check=is_code,
    ),
    Rule(
        "SECRET",
        Expression(r"\b Basic [ ] (?P<value>[A-Za-z0-9+/]{8,400}+={0,2}+)"),
        score=0.95,
        check=is_basic,
        triggers=("basic ",),
        window=(1, 420),
    ),
    Rule(
        "SECRET",
        Expression(
            r"""(?<!\w) (?:-u|--user|--proxy-user) [ =] ["']? [\w.@\-]{1,80}+ : (?P<value>[^\s"'`$]{4,200}+)"""
        ),
        score=0.95,
        check=is_password,
        triggers=("-u", "--user", "--proxy-user"),
        window=(1, 320),
    ),
    Rule(
        "SECRET",
        Expression(
            r"""(?<!\w) (?: (?:csrf|xsrf|authenticity)[\w\-]{0,20}["']? [^<>\n]{0,40}? (?:value|content)[ ]?=[ ]?
            | (?:response|cnonce|nonce)= | (?:sid|session|auth|sig)= ) ["']? (?P<value> [\w+/=.%\-]{16,400}+
            | (?<=(?:sid|session)=) (?![a-z]+\d{4}(?!\w)) [\w\-]{8,15}+ (?![\w+/=.%\-]) )"""
        ),
        score=0.95,
        check=lambda value: has_digit(value) and not value.isdigit(),
        triggers=(
            "csrf",
            "xsrf",
            "authenticity",
            "response=",
            "nonce=",
            "sid=",
            "session=",
            "auth=",
            "sig=",
        ),
        window=(1, 520),
    ),
    # ConvertTo-SecureString "..."; connect(source, "user", "...")
    Rule(
        "SECRET",
        Expression(
            r"""ConvertTo-SecureString (?: [ ]-String )? [ ] ["'] (?P<value> [^"'\n$]{3,100}+ ) ["']"""
        ),
        score=0.95,
        check=is_password,
        triggers=("convertto-securestring",),
        window=(1, 140),
        keep_scripts=True,
    ),
    Rule(
        "SECRET",
        Expression(
            r"""(?: connect | login | getconnection | pdo | mysqli | authenticate | basicauth | auth[ ]?= )
            [ ]? \( [^()\n]{0,200}? ["'][\w.@\-\\]{1,40}["'] [ ]?,[ ]?
            ["'] (?P<value> [^"'\n]{4,80}+ ) ["'] [ ]? (?: \) | ,[ ]?[{\[\d] )"""
        ),
        score=0.9,
        check=is_strong,
        triggers=(
            "connect",
            "login",
            "getconnection",
            "pdo",
            "mysqli",
            "authenticate",
            "basicauth",
            "auth",
        ),
        window=(2, 330),
        keep_scripts=True,
    ),
    # login("user", "a pass phrase")
    Rule(
        "SECRET",
        Expression(
            r"""(?: login | authenticate | basicauth | auth[ ]?= ) [ ]? \( [ ]?
            ["'][\w.@\-\\]{1,40}["'] [ ]?,[ ]? ["'] (?P<value> [^"'\n]{4,80}+ ) ["'] [ ]? \)"""
        ),
        score=0.9,
        check=is_password,
        triggers=("login", "authenticate", "basicauth", "auth"),
        window=(2, 140),
        keep_scripts=True,
    ),
    # mysql -p'...', openssl -k '...'
    Rule(
        "SECRET",
        Expression(
            r"""(?<!\w) (?: (?:mysql\w*|mariadb\w*) [ ] [^\n|]{0,100}? -p (?![\w\-]*[ ]-|ort)
            | openssl [ ] [^\n|]{0,100}? [ ]-(?:k|K|passin|passout)[ ] (?:pass:)? )
            (?: ["'] (?P<value> [^"'\n]{3,80}+ ) ["'] | (?P<value> [^\s"'$]{4,80}+ ) )"""
        ),
        score=0.9,
        check=is_password,
        triggers=("mysql", "mariadb", "openssl"),
        window=(1, 200),
        keep_scripts=True,
    ),
    # a user and a password: admin / Xk77wo!
    Rule(
        "SECRET",
        Expression(
            r"(?: [ ]?[:=]?[ ] (?:is[ ]|with[ ]|ist[ ]|as[ ])? [\w.@\\\-]{2,40}+ )? [ ]?/[ ]?"
            r" (?P<value> [^\s/,;<>\"'`]{5,60}+ ) (?=\s|$|[,;.)])"
        ),
        score=0.85,
        check=is_strong,
        adjacent=True,
        keep_scripts=True,
        **build_context(
            "admin|root|login|log in|log in "
            "with|user|username|usuario|usuário|utente|benutzer|zugang"
            "|utilisateur|gebruiker|credentials"
            "|creds|użytkownik|kullanıcı|логин|пользователь|用户名|账号|아이디|tài "
            "khoản|المستخدم|acceso|accès|accesso"
        ),
    ),
    # passwords of wireless networks
    Rule(
        "SECRET",
        Expression(rf"[ ]{{0,2}} [:=]? [ ]{{0,2}} {_BODY}"),
        score=0.8,
        check=is_strong,
        adjacent=True,
        keep_scripts=True,
        **build_context(
            "wifi|wi fi|wlan|wifi pass|الواي فاي|واي فاي|вайфай|вай фай|无线|无线网|wifi是|ワイファイ|와이파이"
            "|वाईफ़ाई|वाईफाई"
        ),
    ),
    make_assignment_rule(_PASSWORDS, is_password),
    make_assignment_rule(_TOKENS, is_token),
    Rule(
        "SECRET",
        Expression(
            r"""(?: [ ]?(?:=|:=|=>)[ ]? | [ ]? : [ ]? (?=["']) | (?<=by) [ ] (?=["']) | (?<=sp) [ ] (?=\S*\d)
            | ["'] [ ]? : [ ]? )
            (?: (?P<value> [^\s"'`,;<>]{4,100}+ ) | ["'] (?P<value> [^"'\n]{4,100}+ ) ["'] )"""
        ),
        score=0.9,
        check=is_password,
        adjacent=True,
        **build_context(_SHORT),
    ),
    make_sentence_rule(_PASSWORDS, is_strong),
    make_sentence_rule("pass|passwort|*password|key|token|secret", is_strong, between=12),
    Rule(
        "SECRET",
        Expression(
            r"""(?! (?<=[a-z]) ["'`] [\s,;:>)\]}/] )"""  # the quote at the end of a key opens nothing
            rf"[ ]? (?: [은는이가] | は | が | को | का | [ ]?है )? [ ]? (?![:=]) {_BODY}"
        ),
        score=0.85,
        check=is_strong,
        adjacent=True,
        keep_scripts=True,
        **build_context(_PASSWORDS),
    ),
    Rule(
        "SECRET",
        Expression(
            r"(?: [ ] [\p{L}\p{M}]{1,10}+ ){1,4} [ ] (?P<value> (?=\p{L}*\d) [a-z\d]{6,30}+ ) (?!\w)"
        ),
        score=0.8,
        check=is_strong,
        adjacent=True,
        keep_scripts=True,
        **build_context("mật khẩu|şifre|şifresi|senha|contraseña|wachtwoord|hasło|пароль"),
    ),
    Rule(
        "SECRET",
        Expression(
            r"[^\n\w]{1,4} (?: (?:is|are|was) [^\n\w]{1,3} )?"
            r" (?P<value> (?: (?:\d{1,2}[.)][ ])? [a-z]{3,8} (?: [ ,]{1,3} | [ ,]?\n(?=\d) ) ){11,23}"
            r" [a-z]{3,8} ) (?!\w)"
        ),
        score=0.95,
        adjacent=True,
        **build_context(
            "seed phrase|recovery phrase|mnemonic|mnemonic phrase|secret phrase|backup "
            "phrase|seed words"
        ),
    ),
    Rule(
        "SECRET",
        Expression(r"(?<![\w+/=\-])[\w+/\-]{20,200}+=*+(?![\w+/=])", 0),
        score=0.8,
        check=is_random,
        digits=1,
        **build_context(
            "key|keys|token|tokens|secret|credential|credentials|auth|hash|bearer|schlüssel|clave|clé"
        ),
    ),
)
