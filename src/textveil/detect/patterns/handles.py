"""Handles: user names and logins, in paths, logs, configuration, chats and prose.

In: a text in plain form. Out: `RULES`, and the names that only the whole text tells (`find_handles`).
Not here: mail addresses and profiles as URLs (`net`), passwords (`keys`).
"""

from collections import Counter
from collections.abc import Iterator

import regex

from textveil.detect.patterns.rules import Expression, Rule, has_digit, listed, words
from textveil.text import is_ordinary, lexicon

_SYSTEM = listed(
    """root admin administrator administrador runner ubuntu debian centos fedora ec2-user vagrant pi node app apps
    jovyan vscode circleci travis gitpod codespace www www-data nginx apache postgres mysql redis mongodb git gitlab
    github jenkins deploy deployer docker user users username usr name yourname your-name your_name youruser
    yourusername me myuser someone somebody anyone test tester testuser demo example guest public shared default all
    nobody system daemon bin sshd games man lp sync uucp backup list irc gnats messagebus syslog _apt avahi dnsmasq
    postfix dovecot ntp chrony polkitd rtkit halt adm shutdown mail lib lib64 lost+found local linuxbrew oracle
    hadoop spark airflow dev developer owner
    none null true false string text unknown anonymous everyone here channel online desktop documents downloads
    defaultapppool public.user sa dbo sysadmin support info bob.alice site web page pages home index about news login
    logout profile settings dashboard search help contact products services article articles blog"""
)
_GENERIC = listed(
    """user users name names id ids type types string str int value values current new old default admin test tests
    this self req request res response data get set model models session auth login logout account accounts email
    mail password pass token key keys api app apps db database server client host port url uri path file files dir
    config conf settings option options param params arg args is has to from by of on in at the a an my your our index
    list array map dict obj object item items node group groups role roles owner author status state info log logs
    time date at created updated deleted modified field fields form input output table column row rows count total
    num number code first last full middle given family display screen nick profile page view controller service
    manager handler factory helper utils util base main common core lib src build dist http https web www bot discord
    twitter instagram telegram github slack insta feed post posts message messages text content body header headers
    image img photo avatar icon size width height color style class const let var func function method return
      null none
    undefined true false error exception event target prop props context ref refs store action reducer unknown
      anonymous
    system root guest public private local remote primary secondary foreign master slave worker queue task job cron
    example sample demo temp tmp max min sum avg all any each end start begin json xml html css sql csv txt py js ts
    agent crawl delay sitemap disallow allow content length encoding transfer cache control accept language cookie
    connection origin referer forwarded real via mime thread priority mailer signature dkim spf arc received return
    reply delivered references list unsubscribe unused no required optional read write only access level
    tenant
    cs sc msg sender cache factory entity repo repository dto impl bean env dev prod staging"""
)
_TAGS = listed(
    """param params return returns throws throw author see since version deprecated override overload todo fixme note
    notice title dev example license brief file package namespace property method module class classname static
    private public protected internal readonly abstract final type typedef template extends implements interface
    end implementation synthesize selector protocol media import keyframes font-face charset supports page layer
    container apply tailwind include extend mixin function if else elseif endif for foreach while each switch case
    app route get post put delete patch test before after beforeeach aftereach click change submit input
    component injectable input output directive pipe ngmodule entity table id column controller service repository
    restcontroller autowired bean configuration requestmapping getmapping postmapping requestbody pathvariable
    requestparam nullable nonnull notnull data getter setter builder slf4j transactional query suppresswarnings
    functionalinterface safevarargs staticmethod classmethod dataclass pytest fixture parametrize cached lru_cache
    wraps contextmanager abstractmethod tf torch jit njit numba cuda click.command state binding published
    observedobject environment environmentobject main mainactor objc ibaction iboutlet available escaping autoclosure
    discardableresult inlinable viewbuilder composable preview model html razor using inject code section layout yield
    csrf auth guest php vite stack push everyone here channel all team types babel angular vue react nestjs tanstack
    testing-library storybook mui emotion prisma next apollo reduxjs typescript-eslint eslint gmail yahoo hotmail
    outlook echo off on dependabot copilot github-actions babel/core attr assert expect mock spy"""
)
"""Words that follow an at sign in code and documentation, and in chats to all."""
_KNOWN = listed(
    """elonmusk realdonaldtrump potus barackobama joebiden nasa openai google youtube twitter x instagram facebook
    meta apple microsoft amazon netflix nike cnn bbc nytimes taylorswift13 cristiano leomessi kimkardashian
    narendramodi billgates jeffbezos zuck sama anthropicai github android windows xbox playstation spotify
    nba nfl fifa"""
)
"""Accounts that everybody knows."""

_PROGRAMS = listed(
    """api app auth backend backup batch broker build cache client cluster consumer container controller
    cron daemon database db dns exporter firewall frontend gateway handler host http https ingress
    instance job kernel listener loader logger manager metrics monitor nginx node pipeline pod
    postgres primary producer proxy queue redis replica router runner scheduler server service session
    socket ssh svc switch sync system systemd task test thread vm web webhook worker
    dienst serveur servicio serviço servidor servizio serwer usługa sunucu servis сервер сервис служба база
    очередь задача"""
)
"""Parts of the names of programs and machines, which write lines of logs as people write lines of chats."""
_WORDS = regex.compile(r"\p{L}+")
_UNCASED = regex.compile(r"\p{Lo}{2}")


def is_user(value: str) -> bool:
    """Whether it can be somebody's user name, and not one of the system or a placeholder."""
    bare = value.strip(".@").lower()
    return (
        len(bare) >= 2
        and any(c.isalpha() for c in bare)
        and bare not in _SYSTEM
        and not all(part in _GENERIC for part in regex.split(r"[._\-\d]+", bare) if part)
        and not bare.startswith(("your", "my_", "my-", "xxx", "user_", "test_", "<", "{", "$", "%"))
    )


def _is_word(part: str) -> bool:
    """Whether a part of a name is a word of programs or an ordinary one, and on no list of names."""
    return (
        part in _GENERIC or len(part) < 3 or (is_ordinary(part) and part not in lexicon.lists()[0])
    )


def is_login(value: str) -> bool:
    """Whether it looks like a user name and no other word: letters with digits, dots or underscores."""
    bare = value.removeprefix("@")
    parts = [part.lower() for part in regex.split(r"[._\-\d]+", bare) if part]
    return (
        is_user(bare)
        and not all(part in _GENERIC or len(part) < 2 for part in parts)
        and not (len(parts) > 2 and all(map(_is_word, parts)))
        and bool(regex.search(r"\p{L}.*[\d._]|[\d._].*\p{L}|\p{Ll}-\p{Ll}", bare))
        and not regex.search(
            r"\.(?:py|js|ts|jpe?g|png|txt|md|json|com|org|net|html?|csv|xlsx?|pdf|java|go|sh|log)$",
            bare,
        )
        and not ("." in bare and parts[-1] in _GENERIC)
        and not (
            len(parts) > 1
            and parts[0] in _GENERIC | {"os", "req", "ctx", "e", "i", "np", "pd"}
            and "." in bare
        )
    )


def is_program(value: str) -> bool:
    """Whether a name has a part that programs and machines have."""
    return not _PROGRAMS.isdisjoint(_WORDS.findall(value.lower()))


def is_speech(text: str, start: int) -> bool:
    """Whether two words stand in a line from `start` on, or letters of a script without capitals; a figure is none."""
    said = text[start : start + 100].partition("\n")[0]
    return len(_WORDS.findall(said)) > 1 or _UNCASED.search(said) is not None


def is_mention(value: str) -> bool:
    """Whether a name behind an at sign is somebody's, and neither known to everybody nor a word of code."""
    name = value.removeprefix("@").rstrip(".")
    first = name.lower().partition(".")[0]
    return (
        len(name) >= 3
        and name.lower() not in _TAGS | _KNOWN | _GENERIC | _SYSTEM
        and first not in _TAGS
        and not regex.search(r"\.(?:com|org|net|de|edu|gov|io)$", name.lower())
    )


def is_requester(value: str) -> bool:
    """Whether it can be the user of a request: a user name, or four figures or more."""
    return is_user(value.strip('"')) or (value.isdigit() and len(value) > 3)


_CLOCK = r"\[ \d{1,2}/\p{L}{3}/\d{4}[: ]\d\d:\d\d"
"""How an access log writes the time behind who asked."""
_LOGIN = r"@? [\p{L}\p{N}] (?: [\p{L}\p{N}_] | [.\-]{1,2}+ (?=[\p{L}\p{N}_]) ){1,38}+"
_KEYS = (
    "user|*username|user name|login|login name|loginname|logon|uid|userid|user id|account name|screen name|nick"
    "|nickname|handle|ansible user|ssh user|db user|owner|author|artist|copyright|created by|modified by|assignee"
    "|reporter|usuario|usuário|nombre de usuario|nome de usuário|nome utente|utente|utilisateur|nom d'utilisateur"
    "|identifiant|benutzer|benutzername|benutzerkennung|anmeldename|kennung|gebruiker|gebruikersnaam|użytkownik"
    "|nazwa użytkownika|kullanıcı|kullanıcı adı|tên đăng nhập|tài khoản|логин|пользователь|имя пользователя"
    "|учётная запись|ник|用户名|用户|账号|帐号|登录名|微信号|微信|ユーザー名|ユーザーid|ユーザid|会員id|アカウント"
    "|ログインid|아이디|계정|사용자|اسم المستخدم|المستخدم|यूज़रनेम|यूजरनेम|लॉगिन|telegram|instagram|insta|ig|tiktok"
    "|twitter|skype|discord|snapchat|snap|psn|gamertag|steam|wechat|line id|kakaotalk|github|gitlab|mastodon|signal"
    "|last session|session user|mailbox|twitter handle|screenname|last login|logged in as|signed in as"
    "|angemeldet als|connecté en tant que"
)
_PLAIN_KEYS = "user|*username|user name|login|uid|nick|kullanıcı|benutzer|benutzername|usuario|utente|utilisateur|логин"
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
        signs=(
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
        reach=(20, 90),
        whole=True,
    ),
    Rule(
        "HANDLE",
        Expression(r"(?<![\w/~.]) ~ (?P<value> [a-z][\w\-]{2,30}+ ) /"),
        score=0.8,
        check=is_user,
        signs=("~",),
        reach=(1, 40),
    ),
    Rule(
        "HANDLE",
        Expression(
            rf"""["'\]}})]{{0,2}} [ ]{{0,8}} [:=] [ ]{{0,4}} ["'`]? (?P<value>{_LOGIN}) (?![\w@(\[{{]|[.]\w|://)"""
        ),
        score=0.8,
        check=is_login,
        linked=True,
        **words(_KEYS),
    ),
    Rule(
        "HANDLE",
        Expression(
            rf"""["'\]}})]{{0,2}} [ ]{{0,8}} [:=] [ ]{{0,4}} ["'`]? (?P<value>{_LOGIN}) (?![\w@(\[{{]|[.]\w|://)"""
        ),
        score=0.8,
        check=lambda value: is_login(value) and (has_digit(value) or "-" not in value),
        linked=True,
        **words("id"),
    ),
    # username: jdoe, alone on its line
    Rule(
        "HANDLE",
        Expression(
            r"[ ]? [:=] [ ]{1,4} (?P<value> (?-i:[a-z][a-z0-9_.\-]{3,31}+) ) (?= [ ]{0,3} (?: $ | \n | /[ ] | [|,;] ) )"
        ),
        score=0.78,
        check=is_user,
        linked=True,
        **words(
            "*username|ansible user|ssh user|db user|remote user|become user|login name|user id|auth user"
            "|benutzername"
            "|benutzerkennung|nom d'utilisateur|nombre de usuario|nome utente|gebruikersnaam|nazwa użytkownika"
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
        linked=True,
        **words(
            "created by|updated by|modified by|opened by|closed by|assigned to|approved by|uploaded by"
            "|deleted by|changed by"
            "|reported by|committed by|creato da|creado por|criado por|aberto por|créé par|ouvert par|erstellt von"
            "|angelegt von|geändert von|aangemaakt door|utworzone przez|oluşturan|tạo bởi|создал|создано"
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
        signs=("-u", "--user"),
        reach=(120, 60),
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
        signs=("whoami", ":x:", ":*:", ":!:", "user "),
        reach=(34, 50),
    ),
    # a domain of Windows and a login: OFFICE\\jdoe
    Rule(
        "HANDLE",
        Expression(
            r"(?<![\w\\]) (?-i:[A-Z][A-Z0-9\-]{2,15}) \\{1,2} (?P<value> [a-z][\w.\-]{2,30}+ ) (?![\\\w(])"
        ),
        score=0.8,
        check=is_user,
        **words(
            "user|usuario|usuário|login|account|as|logon|benutzer|utilisateur|utente|owner|run as|konto|пользователь"
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
        linked=True,
        **words(_PLAIN_KEYS),
    ),
    Rule(
        "HANDLE",
        Expression(
            rf"""[ ]? ["'\])】」]{{0,2}} [ ]? [:=]? [ ]? ["'「【]? (?P<value>{_LOGIN}) (?![\w@(\[{{]|[.]\w|://)"""
        ),
        score=0.8,
        check=is_login,
        linked=True,
        **words(
            "用户名|账号|帐号|登录名|微信号|ユーザー名|ユーザーid|ユーザid|会員id|アカウント|ログインid"
            "|아이디|계정|اسم المستخدم"
        ),
    ),
    Rule(
        "HANDLE",
        Expression(r"[ ]? : [ ]? (?P<value> (?-i:[a-z]{6,20}+) ) (?= [ ]? (?: $ | [|,;\n\-<] ) )"),
        score=0.75,
        check=is_user,
        linked=True,
        **words(
            "last session|aberto por|opened by|created by|angelegt von|ouvert par|aperto da|locked by|login|logon"
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
        linked=True,
        **words(
            "login|username|user name|handle|nick|nickname|benutzername|logged in as|log in with|skype|telegram"
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
        **words(_SOCIAL),
    ),
    Rule(
        "HANDLE",
        Expression(r"(?: [ ]? : \s{0,2} | [ ]? \n ) (?P<value> @?[a-z][\w.\-]{3,30} ) (?![\w(@])"),
        score=0.75,
        check=is_mention,
        linked=True,
        **words(
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
        signs=("(", "[", "<", "|"),
        reach=(100, 40),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"(?<=\p{L}[ ]) \( (?P<value> (?-i: [a-z]{1,2}\.[a-z]{4,20}\d{0,3} | [a-z]{4,20}\d{1,3} ) ) \)"
        ),
        score=0.8,
        check=is_login,
        signs=("(",),
        reach=(2, 40),
        whole=True,
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
        signs=(
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
        reach=(12, 110),
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
        signs=("user ",),
        reach=(1, 60),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"(?<!\w) (?: ssh | scp | sftp | rsync | mosh | sshfs | ssh-copy-id ) [ ] [^\n]{0,80}? (?<![\w@./])"
            r" (?P<value> [a-z_][\w.\-]{1,31} ) @ (?=[\w\[])"
        ),
        score=0.97,
        check=is_user,
        signs=("ssh ", "scp ", "sftp ", "rsync ", "mosh ", "sshfs ", "copy-id "),
        reach=(12, 140),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"(?m) (?: ^ | (?<=[\s(\[`]) ) (?P<value> [a-z_][\w.\-]{1,31}+ ) @ [\w.\-]{2,60} (?: : | [ ] ) [~/]"
        ),
        score=0.85,
        check=is_user,
        signs=("@",),
        reach=(36, 70),
    ),
    # who asked, in access logs: the identity and the user of the common format, the user of a proxy
    *(
        Rule(
            "HANDLE",
            Expression(
                rf"""{before} (?: [A-Z][\w.\-]{{0,30}} \\{{1,2}} )? (?P<value> [\p{{L}}\p{{N}}_"] {name} )
                (?= {behind} [ ] {clock} )"""
            ),
            score=0.9,
            check=is_requester,
            signs=(" [",),
            reach=(140, 30),
            whole=True,
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
        signs=("_hit/", "_miss/", "_denied/", "_tunnel/", "_modified/", "_aborted/"),
        reach=(40, 2200),
        whole=True,
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
        signs=("user ", "login"),
        reach=(40, 90),
    ),
    Rule(
        "HANDLE",
        Expression(r"""user\.name [ =]{1,3} ["']? (?P<value> [\p{L}][\p{L}\p{N} ._\-]{1,40}+ )"""),
        score=0.8,
        check=is_user,
        signs=("user.name",),
        reach=(1, 70),
    ),
    Rule(
        "HANDLE",
        Expression(
            r"""(?<![\w/\#]) (?! (?:issue|issues|pr|ticket|case|order|bug|room|no|nr|number|invoice|id|gh|fix|fixes
            |closes|task|version)\# )
            (?P<value> [\p{L}_][\p{L}\p{N}_.]{1,31}+ \# \d{4} ) (?!\w)"""
        ),
        score=0.85,
        check=lambda value: value[:-5].lower() not in _GENERIC,
        digits=4,
        signs=("#",),
        reach=(36, 8),
        whole=True,
    ),
)

_MENTION = Expression(
    r"(?<![\w.@/=\\+&]) @ (?P<name> [\p{L}_][\p{L}\p{N}_.\-]{1,30}+ ) (?<![.\-]) (?![\w/(=:@\[{<]|\.\w)"
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
"""What tells that at signs of a text belong to code: decorators, annotations, variables, tags of documentation."""
_SAID = Expression(
    r"""(?m) ^ (?P<time> \[? (?: \d{1,4}[./\-]\d{1,2}[./\-]?\d{0,4} [, ]{1,2} )? \d{1,2}[:.]\d\d (?: :\d\d )?
      (?: [ ]?[ap]m )? \]? [ ]? [\-]? [ ]? )?
    (?: <[@+%~&]? (?P<name> [\w.\-]{2,30}+ ) > | (?P<name> [\p{L}\p{N}] [\p{L}\p{N}_.\-]{1,30}+ ) [ ]? : ) [ ]"""
)
_WROTE = Expression(
    r"(?m) ^ (?P<name> [^\s:<>()\[\]|]{1,20} ) [ ] \d{1,2}:\d\d $ (?= \n [^\n]*? [^\s\d:] [^\n]*$ )"
)


def find_handles(plain: str) -> Iterator[tuple[int, int, float]]:
    """Start, end and score of names behind an at sign, and of the speakers of a chat.

    A name behind an at sign counts unless the text is code that uses the sign otherwise. A speaker counts if the name
    looks like a login and not like a program's name, and stands behind a time or speaks twice; values alone are no
    speech.
    """
    if "@" in plain:
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
    said = list(_SAID.compiled.finditer(plain)) if ":" in plain or ">" in plain else []
    often = Counter(match["name"] for match in said)
    speech = any(is_speech(plain, match.end()) for match in said)
    for match in said:
        name = match["name"]
        spoken = match["time"] or (speech and often[name] > 1 and plain[match.end("name")] == ":")
        if spoken and is_login(name) and not is_program(name):
            yield *match.span("name"), 0.8
    wrote = list(_WROTE.compiled.finditer(plain)) if ":" in plain else []
    often = Counter(match["name"] for match in wrote)
    for match in wrote:
        if often[match["name"]] > 1 and len(often) > 1 and not has_digit(match["name"][:1]):
            yield *match.span("name"), 0.75
