"""Handles: user names and logins in paths, logs, chats and prose.

In: a text in plain form. Out: `RULES`, and the names that need the whole text (`find_handles`).
Not here: mail addresses and profiles as URLs (`net`), passwords (`secrets`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import regex

from textveil.detect.patterns.rules import Expression, Rule, build_context, has_digit
from textveil.text import LazyPattern, is_ordinary, lexicon, vocabulary

_WORDS = LazyPattern(r"\p{L}+")
_UNCASED = LazyPattern(r"\p{Lo}{2}")


def is_user(value: str) -> bool:
    """True if a value can be a person's user name.

    It is none of the system's names, no word of code, and no placeholder.
    """
    bare = value.strip(".@").lower()
    return (
        len(bare) >= 2
        and any(c.isalpha() for c in bare)
        and bare not in vocabulary.get_words("system_users")
        and not all(
            part in vocabulary.get_words("code_words")
            for part in regex.split(r"[._\-\d]+", bare)
            if part
        )
        and not bare.startswith(("your", "my_", "my-", "xxx", "user_", "test_", "<", "{", "$", "%"))
    )


def _is_word(part: str) -> bool:
    """True if a part of a name is an ordinary word.

    Words of programs and parts below three letters count, listed names do not.
    """
    return (
        part in vocabulary.get_words("code_words")
        or len(part) < 3
        or (is_ordinary(part) and part not in lexicon.read_lists()[0])
    )


def _is_of_words(parts: Sequence[str]) -> bool:
    """True if a name consists of words of programs.

    With three parts or more, ordinary words count, too.
    """
    code = vocabulary.get_words("code_words")
    return all(part in code or len(part) < 2 for part in parts) or (
        len(parts) > 2 and all(map(_is_word, parts))
    )


_PARTED = LazyPattern(r"\p{L}.*[\d._]|[\d._].*\p{L}|\p{Ll}-\p{Ll}")
_FILE = LazyPattern(
    r"\.(?:py|js|ts|jpe?g|png|txt|md|json|com|org|net|html?|csv|xlsx?|pdf|java|go|sh|log)$"
)


_COMPOUND = LazyPattern(r"\p{L}+-(\p{Ll}+ed)")
"""A compound that ends like a participle: Github-flavored."""
_OBJECTS = {"os", "req", "ctx", "e", "i", "np", "pd"}
"""Names of variables before an attribute: np.pi."""


def is_login(value: str) -> bool:
    """True if a value looks like a user name only.

    It has letters with digits, dots, underscores or hyphens, and is no compound with a participle.
    """
    bare = value.removeprefix("@")
    if not is_user(bare) or not _PARTED.search(bare) or _FILE.search(bare):
        return False
    parts = [part.lower() for part in regex.split(r"[._\-\d]+", bare) if part]
    code = vocabulary.get_words("code_words")
    compound = _COMPOUND.fullmatch(bare)
    if compound and _is_word(compound[1]):
        return False
    called = parts[-1] in code or (len(parts) > 1 and parts[0] in _OBJECTS | code)
    return not (called and "." in bare) and not _is_of_words(parts)


def is_program(value: str) -> bool:
    """True if a part of a name is typical of programs."""
    return not vocabulary.get_words("program_words").isdisjoint(_WORDS.findall(value.lower()))


def is_speech(text: str, start: int) -> bool:
    """True if a line has speech from `start` on.

    Speech is two words, or letters of a script without capitals; a number is none.
    """
    line = text[start : start + 100].partition("\n")[0]
    return len(_WORDS.findall(line)) > 1 or _UNCASED.search(line) is not None


@cache
def _list_public_names() -> frozenset[str]:
    lists = ("at_words", "famous_accounts", "code_words", "system_users")
    return frozenset().union(*map(vocabulary.get_words, lists))


def is_mention(value: str) -> bool:
    """True if a name behind an at sign is a private person's.

    It is neither famous nor a word of code.
    """
    name = value.removeprefix("@").rstrip(".")
    first = name.lower().partition(".")[0]
    return (
        len(name) >= 3
        and name.lower() not in _list_public_names()
        and first not in vocabulary.get_words("at_words")
        and not regex.search(r"\.(?:com|org|net|de|edu|gov|io)$", name.lower())
    )


def is_requester(value: str) -> bool:
    """True if a value can be the user of a request.

    It is a user name, or four digits or more.
    """
    return is_user(value.strip('"')) or (value.isdigit() and len(value) > 3)


_CLOCK = r"\[ \d{1,2}/\p{L}{3}/\d{4}[: ]\d\d:\d\d"
"""The time behind the user in an access log."""
_LOGIN = r"@? [\p{L}\p{N}] (?: [\p{L}\p{N}_] | [.\-]{1,2}+ (?=[\p{L}\p{N}_]) ){1,38}+"
_KEYS = (
    "user|*username|user name|login|login name|loginname|logon|uid|userid|user id|account "
    "name|screen name|nick"
    "|nickname|handle|ansible user|ssh user|db user|owner|author|artist|copyright|created "
    "by|modified by|assignee"
    "|reporter|usuario|usuário|nombre de usuario|nome de usuário|nome "
    "utente|utente|utilisateur|nom d'utilisateur"
    "|identifiant|benutzer|benutzername|benutzerkennung|anmeldename|kennung|gebruiker|gebruikersnaam|użytkownik"
    "|nazwa użytkownika|kullanıcı|kullanıcı adı|tên đăng nhập|tài khoản|логин|пользователь|имя "
    "пользователя"
    "|учётная запись|ник|用户名|用户|账号|帐号|登录名|微信号|微信|ユーザー名|ユーザーid|ユーザid|会員id|アカウント"
    "|ログインid|아이디|계정|사용자|اسم "
    "المستخدم|المستخدم|यूज़रनेम|यूजरनेम|लॉगिन|telegram|instagram|insta|ig|tiktok"
    "|twitter|skype|discord|snapchat|snap|psn|gamertag|steam|wechat|line "
    "id|kakaotalk|github|gitlab|mastodon|signal"
    "|last session|session user|mailbox|twitter handle|screenname|last login|logged in as|signed "
    "in as"
    "|angemeldet als|connecté en tant que"
)
_PLAIN_KEYS = (
    "user|*username|user "
    "name|login|uid|nick|kullanıcı|benutzer|benutzername|usuario|utente|utilisateur|логин"
)
_SOCIAL = (
    "insta|instagram|telegram|tiktok|snapchat|twitter|discord|"
    "skype|insta'dan|ig|handle|username|nickname|nick|инста"
)

RULES = (
    Rule(
        "HANDLE",
        Expression(
            r"""(?: (?<![\w.]) (?: /(?-i:home|Users|export/home|var/mail|home2)/ | /mnt/[a-z]/Users/ )
            | (?<!\w) [a-z]: (?: \\{1,2} | / ) (?: Users | Documents[ ]and[ ]Settings | Utenti | Benutzer | Usuarios
              | Utilisateurs | Usuários ) (?: \\{1,2} | / ) )
            (?P<value> [^\s\\/"'<>:|*?$%{};,()`\[\]&=#]{2,40}+ ) (?= [\\/"'\s;:,)`<] | $ )"""
        ),
        score=0.9,
        check=is_user,
        triggers=(
            *(
                "/home",
                "/users/",
                "/var/mail/",
                ":/users/",
                "\\users\\",
                "settings\\",
                "\\utenti\\",
                "\\benutzer\\",
            ),
            *("\\usuarios\\", "\\utilisateurs\\", "\\usuários\\"),
        ),
        window=(20, 90),
        keep_scripts=True,
    ),
    Rule(
        "HANDLE",
        Expression(r"(?<![\w/~.]) ~ (?P<value> [a-z][\w\-]{2,30}+ ) /"),
        score=0.8,
        check=is_user,
        triggers=("~",),
        window=(1, 40),
    ),
    Rule(
        "HANDLE",
        Expression(
            rf"""["'\]}})]{{0,2}} [ ]{{0,8}} [:=] [ ]{{0,4}} ["'`]? (?P<value>{_LOGIN}) (?![\w@(\[{{]|[.]\w|://)"""
        ),
        score=0.8,
        check=is_login,
        adjacent=True,
        **build_context(_KEYS),
    ),
    Rule(
        "HANDLE",
        Expression(
            rf"""["'\]}})]{{0,2}} [ ]{{0,8}} [:=] [ ]{{0,4}} ["'`]? (?P<value>{_LOGIN}) (?![\w@(\[{{]|[.]\w|://)"""
        ),
        score=0.8,
        check=lambda value: is_login(value) and (has_digit(value) or "-" not in value),
        adjacent=True,
        **build_context("id"),
    ),
    # username: jdoe, alone on its line
    Rule(
        "HANDLE",
        Expression(
            r"[ ]? [:=] [ ]{1,4} (?P<value> (?-i:[a-z][a-z0-9_.\-]{3,31}+) ) (?= [ ]{0,3} (?: $ | \n | /[ ] | [|,;] ) )"
        ),
        score=0.78,
        check=is_user,
        adjacent=True,
        **build_context(
            "*username|ansible user|ssh user|db user|remote user|become user|login name|user "
            "id|auth user"
            "|benutzername"
            "|benutzerkennung|nom d'utilisateur|nombre de usuario|nome "
            "utente|gebruikersnaam|nazwa użytkownika"
            "|kullanıcı adı|tên đăng nhập|имя пользователя|用户名|ユーザー名|아이디|اسم المستخدم"
        ),
    ),
    # opened by hmueller; updated_by = 'jdoe'
    Rule(
        "HANDLE",
        Expression(
            rf"""(?: [ ]? [=:] [ ]? ["'] (?P<value> [a-z][\w.\-]{{2,30}}+ ) ["']
            | [ ]? [=:]? [ ]? (?P<value> {_LOGIN} ) (?![\w@(\[{{=]|[.]\w|://) )"""
        ),
        score=0.78,
        check=lambda value: (
            (
                is_user(value)
                and (value.isascii() and value == value.lower())
                and value.isidentifier()
            )
            or is_login(value)
        ),
        adjacent=True,
        **build_context(
            "created by|updated by|modified by|opened by|closed by|assigned to|approved "
            "by|uploaded by"
            "|deleted by|changed by"
            "|reported by|committed by|creato da|creado por|criado por|aberto por|créé par|ouvert "
            "par|erstellt von"
            "|angelegt von|geändert von|aangemaakt door|utworzone przez|oluşturan|tạo "
            "bởi|создал|создано"
        ),
    ),
    # mysql -u jdoe, psql -U jdoe, curl -u jdoe:...
    Rule(
        "HANDLE",
        Expression(
            r"""(?<!\w) (?: mysql\w* | mariadb\w* | psql | pg_dump | curl | mongo\w* | sqlcmd | smbclient
            | docker[ ]login | ldapsearch ) [ ] [^\n|]{0,100}? (?<=[ ]) (?: -u | --user(?:name)? ) [ =]? ["']?
            (?P<value> [a-z][\w.\-]{2,30}+ ) (?= ["'\s:;] | $ )"""
        ),
        score=0.85,
        check=is_user,
        triggers=("-u", "--user"),
        window=(120, 60),
    ),
    # the second line of whoami, a line of /etc/passwd, User of an SSH configuration
    Rule(
        "HANDLE",
        Expression(
            r"""(?m) (?: (?<=whoami)[ ]*\n | ^ (?= [\w.\-]{2,32}+ : [x*!] : \d{1,6} : )
            | ^ [ ]{1,8} (?-i:User) [ ]{1,3} )
            (?P<value> [a-z_][\w.\-]{1,31}+ ) (?= [ ]* $ | : [x*!] : )"""
        ),
        score=0.85,
        check=is_user,
        triggers=("whoami", ":x:", ":*:", ":!:", "user "),
        window=(34, 50),
    ),
    # a domain of Windows and a login: OFFICE\\jdoe
    Rule(
        "HANDLE",
        Expression(
            r"(?<![\w\\]) (?-i:[A-Z][A-Z0-9\-]{2,15}) \\{1,2} (?P<value> [a-z][\w.\-]{2,30}+ ) (?![\\\w(])"
        ),
        score=0.8,
        check=is_user,
        **build_context(
            "user|usuario|usuário|login|account|as|logon|benutzer|utilisateur|utente|owner|run "
            "as|konto|пользователь"
        ),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"""(?: = ["']? | : [ ]? ["'] | ["'] [ ]? : [ ]? ["'] ) (?P<value>[a-z][a-z0-9_\-]{2,31}+)
            (?= ["'\s;&|] | $ )"""
        ),
        score=0.8,
        check=is_user,
        adjacent=True,
        **build_context(_PLAIN_KEYS),
    ),
    Rule(
        "HANDLE",
        Expression(
            rf"""[ ]? ["'\])】」]{{0,2}} [ ]? [:=]? [ ]? ["'「【]? (?P<value>{_LOGIN}) (?![\w@(\[{{]|[.]\w|://)"""
        ),
        score=0.8,
        check=is_login,
        adjacent=True,
        **build_context(
            "用户名|账号|帐号|登录名|微信号|ユーザー名|ユーザーid|ユーザid|会員id|アカウント|ログインid"
            "|아이디|계정|اسم المستخدم"
        ),
    ),
    Rule(
        "HANDLE",
        Expression(r"[ ]? : [ ]? (?P<value> (?-i:[a-z]{6,20}+) ) (?= [ ]? (?: $ | [|,;\n\-<] ) )"),
        score=0.75,
        check=is_user,
        adjacent=True,
        **build_context(
            "last session|aberto por|opened by|created by|angelegt von|ouvert par|aperto "
            "da|locked by|login|logon"
        ),
    ),
    Rule(
        "HANDLE",
        Expression(
            rf"""[\s]{{1,2}} (?: (?:name|is|was|lautet|ist|est|es|è|é|to|as|id|jest|là|это|under|handle) [ ] ){{0,2}}
            [:]? [ ]? ["'(\[]? (?P<value>{_LOGIN}) (?![\w@(\[{{=]|[.]\w|://)"""
        ),
        score=0.75,
        check=is_login,
        adjacent=True,
        **build_context(
            "login|username|user name|handle|nick|nickname|benutzername|logged in as|log in "
            "with|skype|telegram"
            "|gamertag"
            "|user|client|benutzer|usuario|usuário|utente|utilisateur|gebruiker|użytkownik|kullanıcı"
            "|пользователь|логин"
            "|tài khoản|account|runs as|acceso|zugang liegt bei"
        ),
    ),
    Rule(
        "HANDLE",
        Expression(r"(?<![\w@.\-/]) (?P<value> @?[a-z]\w{1,20}_\w{2,20} ) (?![\w(\[@=.\-/])"),
        score=0.75,
        check=is_login,
        **build_context(_SOCIAL),
    ),
    Rule(
        "HANDLE",
        Expression(r"(?: [ ]? : \s{0,2} | [ ]? \n ) (?P<value> @?[a-z][\w.\-]{3,30} ) (?![\w(@])"),
        score=0.75,
        check=is_mention,
        adjacent=True,
        **build_context(
            "skype|instagram|insta|telegram|tiktok|snapchat|snap|ig|discord|psn|gamertag|wechat"
        ),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"""(?<![\p{L}]) (?-i:\p{Lu})[\p{L}'\-]{0,25} [ ] (?: \p{L}[\p{L}'.\-]{0,25} [ ] )?
            (?P<stem>\p{L}{3,5})[\p{L}'\-]{0,25} [ ]? [(\[<|] [ ]?
            (?P<value> (?-i:[a-z0-9._\-]){0,10} (?P=stem) (?-i:[a-z0-9._\-]){0,14} ) [ ]? [)\]>|]"""
        ),
        score=0.85,
        check=lambda value: (
            not value.startswith(("www.", "http"))
            and not regex.search(r"\.(?:com|org|net|de)$", value)
        ),
        triggers=("(", "[", "<", "|"),
        window=(100, 40),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"(?<=\p{L}[ ]) \( (?P<value> (?-i: [a-z]{1,2}\.[a-z]{4,20}\d{0,3} | [a-z]{4,20}\d{1,3} ) ) \)"
        ),
        score=0.8,
        check=is_login,
        triggers=("(",),
        window=(2, 40),
        keep_scripts=True,
    ),
    Rule(
        "HANDLE",
        Expression(
            r"""(?: (?:accepted|failed) [ ] (?:password|publickey|none|keyboard[\w/\-]{0,20}|gssapi[\w\-]{0,20})
            [ ] for [ ] (?:invalid[ ]user[ ])? | invalid[ ]user[ ]
            | session[ ](?:opened|closed)[ ]for[ ](?:user[ ])? | (?<!\w)sudo: [ ]{1,8}
            | (?<!\w)su: [ ][^\n]{0,30}? [ ]user[ ]
            | cron\[\d+\]: [ ] \( | (?<!\w)uid= | (?<!\w)(?:logname|sudo_user|user)=<? | name=(?=\w+,[ ]uid=) )
            (?P<value> [\p{L}_][\w.\-]{1,31}+ ) (?![@\\(])"""
        ),
        score=0.85,
        check=is_user,
        triggers=(
            "accepted ",
            "failed ",
            "invalid user",
            "session ",
            "sudo:",
            "su: ",
            "cron[",
            "uid=",
            "user=",
            "logname=",
        ),
        window=(12, 110),
    ),
    Rule(
        "HANDLE",
        Expression(  # the users of a list of rights
            r"(?<= (?: \b acls[ ] to:[ ] | permissions:[ ] (?:Set)?\( ) [^\n)]{0,60} (?<![\w.\-]) )"
            r" (?P<value> [a-z_][\w.\-]{1,31}+ ) (?= [,)\s] | $ )"
        ),
        score=0.8,
        check=is_user,
        triggers=("acls to:", "permissions:"),
        window=(0, 110),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"(?<!\w) user [ ] (?P<value> [\p{L}_][\w.\-]{2,31}+ ) [ ]"
            r" (?: logged | login | log[ ]?in | authenticated | uploaded | downloaded | signed | from[ ]\d"
            r" | connected | failed )"
        ),
        score=0.8,
        check=is_user,
        triggers=("user ",),
        window=(1, 60),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"(?<!\w) (?: ssh | scp | sftp | rsync | mosh | sshfs | ssh-copy-id ) [ ] [^\n]{0,80}? (?<![\w@./])"
            r" (?P<value> [a-z_][\w.\-]{1,31} ) @ (?=[\w\[])"
        ),
        score=0.97,
        check=is_user,
        triggers=("ssh ", "scp ", "sftp ", "rsync ", "mosh ", "sshfs ", "copy-id "),
        window=(12, 140),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"(?m) (?: ^ | (?<=[\s(\[`]) ) (?P<value> [a-z_][\w.\-]{1,31}+ ) @ [\w.\-]{2,60} (?: : | [ ] ) [~/]"
        ),
        score=0.85,
        check=is_user,
        triggers=("@",),
        window=(36, 70),
    ),
    # the user of a request, in access logs: the identity and the user of the common format, the
    # user of a proxy
    *(
        Rule(
            "HANDLE",
            Expression(
                rf"""{before} (?: [A-Z][\w.\-]{{0,30}} \\{{1,2}} )? (?P<value> [\p{{L}}\p{{N}}_"] {name} )
                (?= {behind} [ ] {clock} )"""
            ),
            score=0.9,
            check=is_requester,
            triggers=(" [",),
            window=(140, 30),
            keep_scripts=True,
        )
        for before, name, behind, clock in (
            (r"(?<=\S[ ])", r'[^\s\[\]"@\\]{1,60}', "", _CLOCK),
            (r"(?<=\S[ ]-[ ])", r"[^\[\]\n@\\]{1,60}", "", _CLOCK),
            (r"(?<=\S[ ])", r'[^\s\[\]"@\\]{1,60}', r"[ ] [^\s\[\]]{1,80}", _CLOCK),
            (
                r"(?<= (?:\.\d{1,3} | :[0-9a-f]{0,4}) [ ]-[ ])",
                r'[^\s\[\]"@\\]{1,60}',
                "",
                r"\[\d{4}-\d\d-\d\d[T ]",
            ),
        )
    ),
    Rule(
        "HANDLE",
        Expression(
            r"(?<![\w]) [A-Z]{2,5}_[A-Z_]{2,40} / \d{3} [ ] \d{1,12} [ ] [A-Z]{3,20} [ ] \S{1,2000} [ ]"
            r" (?P<value> [\p{L}\p{N}_] [^\s@]{1,60} ) [ ] [A-Z_]{3,40} / ",
            regex.VERBOSE,
        ),
        score=0.9,
        check=is_requester,
        triggers=("_hit/", "_miss/", "_denied/", "_tunnel/", "_modified/", "_aborted/"),
        window=(40, 2200),
        keep_scripts=True,
    ),
    # user "jdoe" was not found; Login OK: [jdoe]; [jdoe] OK LOGIN
    Rule(
        "HANDLE",
        Expression(
            r"""(?<!\w) (?: user [ ] ["'\[<]? (?P<value> [a-z_][\w.\-]{1,31}+ ) ["'\]>]?
              (?: [ ]?:[ ] (?:authentication[ ]failure|password[ ]mismatch) | [ ] (?:was[ ])? not[ ]found )
            | login [ ] (?:ok|incorrect) [^\[\n]{0,40}+ \[ (?P<value> [a-z_][\w.\-]{1,31}+ ) [\]/]
            | (?<=\[) (?P<value> [a-z_][\w.\-]{1,31}+ ) \] [ ] (?:ok|fail) [ ] login )"""
        ),
        score=0.85,
        check=is_user,
        triggers=("user ", "login"),
        window=(40, 90),
    ),
    Rule(
        "HANDLE",
        Expression(r"""user\.name [ =]{1,3} ["']? (?P<value> [\p{L}][\p{L}\p{N} ._\-]{1,40}+ )"""),
        score=0.8,
        check=is_user,
        triggers=("user.name",),
        window=(1, 70),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"""(?<![\w/\#]) (?! (?:issue|issues|pr|ticket|case|order|bug|room|no|nr|number|invoice|id|gh|fix|fixes
            |closes|task|version)\# )
            (?P<value> [\p{L}_][\p{L}\p{N}_.]{1,31}+ \# \d{4} ) (?!\w)"""
        ),
        score=0.85,
        check=lambda value: value[:-5].lower() not in vocabulary.get_words("code_words"),
        digits=4,
        triggers=("#",),
        window=(36, 8),
        keep_scripts=True,
    ),
)

_MENTION = Expression(
    r"(?<![\w.@/=\\+&]) @ (?P<name> [\p{L}_] (?: [\p{L}\p{N}_] | [.\-]+ (?=[\p{L}\p{N}_]) ){1,30}+ )"
    r" (?![\w/(=:@\[{<]|\.\w)"
)
_ALWAYS = Expression(
    r"""(?: handle | insta(?:gram)? | twitter | tiktok | telegram | threads | discord | follow(?:ing|ed)? | dm
    | tag(?:ged)? | ping(?:ed)? | ask(?:ed)? | cc | thanks | thank[ ]you | hi | hey | hello | hallo | hola | ciao
    | salut | привет
    | from | by | with | and | is | was | to | user | account | [,("'] ) [ ,:"'(]{0,3} $"""
)
_CODE = Expression(
    r"""(?m) (?<![\w]) @\w+ [ ]? [:+\-*/]? = | [=(][ ]? @[a-z_]\w*[ ]?[,;)] | declare[ ]@ | ^[ ]*(?:\*|///|//)[ ]*@\w
    | ^[ ]*@\w+(?:\([^\n]*)?$ (?=\n[ ]*(?:@|def|class|async|public|private|protected|static|final|function|export
      |abstract|override|fun|func|var|struct|void|@?interface)\b )"""
)
"""Signs that at signs of a text belong to code: decorators, annotations, variables, tags of
documentation."""
_SPEAKER = Expression(
    r"""(?m) ^ (?P<time> \[? (?: \d{1,4}[./\-]\d{1,2}[./\-]?\d{0,4} [, ]{1,2} )? \d{1,2}[:.]\d\d (?: :\d\d )?
      (?: [ ]?[ap]m )? \]? [ ]? [\-]? [ ]? )?
    (?: <[@+%~&]? (?P<name> [\w.\-]{2,30}+ ) > | (?P<name> [\p{L}\p{N}] [\p{L}\p{N}_.\-]{1,30}+ ) [ ]? : ) [ ]"""
)
_WRITER = Expression(
    r"(?m) ^ (?P<name> [^\s:<>()\[\]|]{1,20} ) [ ] \d{1,2}:\d\d $ (?= \n [^\n]*? [^\s\d:] [^\n]*$ )"
)


def find_handles(plain: str) -> Iterator[tuple[int, int, float]]:
    """Finds names behind an at sign, and speakers of a chat.

    A name behind an at sign counts unless the text is code that uses the sign otherwise. A speaker
    counts if the name looks like a login and not like a program's name, and stands behind a time or
    speaks twice; values alone are no speech.

    Yields:
        The start, end and score of each name.
    """
    yield from _find_mentions(plain) if "@" in plain else ()
    yield from _find_speakers(plain) if ":" in plain or ">" in plain else ()
    yield from _find_writers(plain) if ":" in plain else ()


def _find_mentions(plain: str) -> Iterator[tuple[int, int, float]]:
    code = _CODE.compiled.search(plain) is not None
    for match in _MENTION.compiled.finditer(plain):
        start, end = match.span()
        if is_mention(match["name"]) and (
            not code
            or (
                _ALWAYS.compiled.search(plain, max(0, start - 16), start)
                and is_login(match["name"])
            )
        ):
            yield start, end, 0.8


def _find_speakers(plain: str) -> Iterator[tuple[int, int, float]]:
    turns = list(_SPEAKER.compiled.finditer(plain))
    often = Counter(match["name"] for match in turns)
    speech = any(is_speech(plain, match.end()) for match in turns)
    for match in turns:
        name = match["name"]
        has_spoken = match["time"] or (
            speech and often[name] > 1 and plain[match.end("name")] == ":"
        )
        if has_spoken and is_login(name) and not is_program(name):
            yield *match.span("name"), 0.8


def _find_writers(plain: str) -> Iterator[tuple[int, int, float]]:
    matches = list(_WRITER.compiled.finditer(plain))
    often = Counter(match["name"] for match in matches)
    for match in matches:
        if often[match["name"]] > 1 and len(often) > 1 and not has_digit(match["name"][:1]):
            yield *match.span("name"), 0.75
