"""Phrases: names where letters, mails, chats and speakers put them: greetings, signatures, headers, introductions.

In: a text. Out: places of names, with their types.
Not here: keys and their values (`pairs`, `tables`), and names anywhere else, which a tagger finds.
"""
# ruff: noqa: E501  (expressions with the words of many languages)

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

from textveil.protect.patterns.handles import is_program, is_speech
from textveil.protect.patterns.rules import Expression, listed
from textveil.protect.structure.keys import kind_of
from textveil.protect.structure.values import CASED, NAME, find, is_known, looks_like_name, no_name
from textveil.text import ranks


class Named(NamedTuple):
    """A name found by the phrase around it."""

    start: int
    end: int
    type: str


_LONGEST = 400
"""Characters of the longest line that is read as a header or signature."""
_ORDINARY = 20_000
"""Words that are more frequent than this rank, and on no list of names, are ordinary words."""
_NOBODY = listed(
    """sshd sudo systemd kernel cron crond nginx postfix dovecot auth mailer konsultant konsultantka operator оператор
    konsultan berater support warn warning error info debug fatal notice предупреждение ошибка тест тесты сборка uyarı
    there all everyone everybody chatgpt gpt claude gemini copilot siri alexa google bard assistant ai sir
    sirs madam madame friend friends guys folks ladies gentlemen world again team hiring manager recruiter
    colleague colleagues professor doctor customer valued reader editor diary santa god lord jesus mom mum
    mommy mummy dad daddy mama papa grandma grandpa honey darling dear love baby sweetheart kitty neighbour
    neighbor parents students class so sorry sure ok okay yes no happy just not here back going trying
    looking using working new writing currently very really also still now afraid german french english
    american indian chinese italian spanish russian polish turkish korean japanese dutch brazilian mexican
    canadian australian british irish scottish muslim christian jewish hindu catholic gay lgbtq autistic adhd
    vegan vegetarian pro max windows mac linux wondering curious interested monsieur messieurs mesdames damen
    herren zusammen hallo welt leute alle tous todos todo amigo amigos tutti ragazzi allen iedereen wszystkim
    panstwo państwo herkese arkadaşlar мир всем друзья 大家 各位 您好 皆様 各位様 お客様 お世話 여러분
    안녕하세요 안녕 nachbarn nachbarinnen kollegen kolleginnen eltern gäste kunden kundinnen freunde familie
    mitglieder schüler oma opa mutti schatz kinder leser leserinnen patienten bewohner mieter kollege
    kollegin ihre ihr deine dein euer eure votre notre unser unsere hausverwaltung 고객 고객님 선생님 부모님
    어머님 담당자님 ia mundo monde mondo mensen amici gente senhores señores signori redakcjo redakcja редакция редакцию
    teamleider stagiair planner müdürlüğü ग्राहक ग्राहकों विभाग 会社 問題 phlebotomist"""
)


@lru_cache(maxsize=4096)
def is_ordinary(word: str) -> bool:
    """Whether a word is one of public text and not on the list of names."""
    return not is_known(word) and ranks([word.lower()])[0] < _ORDINARY


def is_nobody(value: str) -> bool:
    """Whether a greeting or introduction with this word names nobody."""
    words = [word.lower() for word in regex.findall(r"[\p{L}\p{M}]+", value)]
    return (
        not words
        or no_name(value)
        or not _NOBODY.isdisjoint(words)
        or (len(words) == 1 and is_ordinary(words[0]))
    )


_GREETINGS = r"""(?: Dear(?:est)? | Hi | Hiya | Hello | Hey | Good[ ](?:morning|afternoon|evening) | Attn:? | Thanks
    | Sehr[ ]geehrte[rs]? | Liebe[rs]? | Hallo | Guten[ ](?:Tag|Morgen|Abend) | Moin | Servus | Grüezi
    | Bonjour | Bonsoir | Cher | Chère | Salut | Coucou
    | Estimad[oa] | Querid[oa] | Hola | Apreciad[oa] | Buen[oa]s[ ](?:días|tardes|noches)
    | Prezad[oa] | Car[oa] | Olá | Oi | Ex\.?m[oa]\.? | Ilm[oa]\. | Bom[ ]dia | Boa[ ](?:tarde|noite)
    | Gentile | Gentilissim[oa] | Egregi[oa] | Ciao | Buongiorno | Buonasera | Salve
    | Beste | Geachte | Hoi | Dag | Goedemorgen | Goedemiddag | Lieve
    | Szanown[ya] | Drog[ia] | Cześć | Dzień[ ]dobry | Witaj | Witam
    | Sayın | Sevgili | Merhaba | Selam | Değerli
    | (?:Kính[ ]gửi | Kính[ ]chào | Thân[ ]gửi | Gửi | (?:Dạ[ ])?(?:em|cháu|con|tôi)?[ ]?chào | Xin[ ]chào)
    | Уважаем(?:ый|ая) | Дорог(?:ой|ая) | Здравствуйте | Привет | Добрый[ ]день | Доброе[ ]утро )"""
_ADDRESSED = r"""(?: ,?[ ] ) (?: (?:Herrn?|Frau|Madame|Monsieur|señora?|señorita|don|doña|senhora?|Sra?|Dra?|heer|mevrouw|mijnheer|Panie|Pani|Panu|sig
    |signora?|dott(?:oressa|ore)?|anh|chị|ông|bà|cô|chú|bác|thầy|em|bạn|господин|госпожа|Sir|Madam|my[ ]dear|cousin|uncle|aunt|auntie)\.?[ ] ){0,3}"""
_GREETING = Expression(
    rf"^[ \t>\"“'«*_]{{0,6}} (?:.{{0,40}}?[=:][ ]?[\"“']?)? (?P<greeting>{_GREETINGS}) (?P<gap>{_ADDRESSED})",
    regex.VERBOSE | regex.MULTILINE,
)
_GREETS = ("ear", "Hi", "ey", "ello", "allo", "Liebe", "geehrt", "Guten", "Moin", "onjour", "Ch", "Salut", "stimad", "uerid", "Hola", "rezad", "Car",
    "Ol", "Oi", "Bo", "Gent", "grei", "Ciao", "Buon", "Beste", "eachte", "Hoi", "zanown", "Drog", "Cześć", "dobry", "Wita", "Say", "Sevgili", "Merhaba",
    "Selam", "Kính", "ửi", "hào", "важаем", "орог", "дравствуйте", "ривет", "обр", "Thanks", "Good")  # fmt: skip

_OTHER_GREETINGS = Expression(
    r"""^[ \t>]{0,6} (?: (?:尊敬的|亲爱的|敬爱的|致) (?P<value>\p{Han}{2,4}?) (?P<title>先生|女士|小姐|老师|经理|医生|教授|总)? (?=[:：,，！!\n])
      | (?P<value>[\p{Han}\p{Katakana}々ー]{1,8}(?:[ 　][\p{Han}\p{Katakana}々ー]{1,6})?(?:様|さま|殿)) [ 　]*$
      | (?P<value>\p{Hangul}{2,5}(?:[ ]?(?:대리|과장|부장|팀장|선생|교수|사장|원장))?[ ]?님)(?:께|,|$)
      | (?:(?:حضرة|سعادة|إلى|عزيزي|عزيزتي|الأخ|الأخت)[ ])? (?P<value>(?:السيدة?|الأستاذة?|الدكتورة?|المهندسة?)[ ]\p{Arabic}{2,}(?:[ ]\p{Arabic}{2,}){0,2}) (?=[ ]المحترمة?|[ ]*[,،:\n]|[ ]*$)
      | (?:عزيزي|عزيزتي)[ ] (?P<value>\p{Arabic}{2,}) (?=[ ]*[,،:\n])
      | (?:प्रिय|आदरणीय|माननीय)[ ] (?P<value>(?:(?:श्री|श्रीमती|सुश्री|डॉ\.?)[ ])?[\p{Devanagari}]{2,}(?:[ ][\p{Devanagari}]{2,}){0,3}) (?=[ ]*[,।:\n]) )""",
    regex.VERBOSE | regex.MULTILINE,
)

_CLOSINGS = r"""(?i: (?:(?:with[ ])?(?:my[ ])?(?:best|kind|kindest|warm|warmest|many)[ ])?(?:regards|wishes|thanks) | yours(?:[ ](?:sincerely|faithfully|truly|ever))? | (?:yours[ ])?sincerely
    | all[ ]the[ ]best | best | cheers | thanks?(?:[ ](?:you|a[ ]mill|so[ ]much|again|in[ ]advance|a[ ]lot))?
        | thx | ta | br | love | lots[ ]of[ ]love | respectfully | take[ ]care
    | (?:mit[ ])?(?:freundlichen|besten|lieben|herzlichen|schönen|vielen)?[ ]?gr(?:ü|ue)(?:ß|ss)en?
        | (?:viele|liebe|beste|schöne|herzliche|freundliche)[ ]gr(?:ü|ue)(?:ß|ss)e | mfg | lg | vg | hochachtungsvoll
    | (?:bien[ ])?cordialement | bien[ ]à[ ](?:vous|toi) | amicalement | sincères[ ]salutations | bises
        | (?:un[ ])?(?:cordial(?:es)?[ ])?saludos?(?:[ ]cordiales?)? | atentamente | atte\.? | un[ ]abrazo
        | abrazos | besos
    | atenciosamente | att\.? | abraços? | (?:com[ ]os[ ]melhores[ ]|melhores[ ])?cumprimentos
        | cordiali[ ]saluti | distinti[ ]saluti | (?:un[ ])?saluti?(?:[ ]cordiali)? | un[ ]abbraccio
    | (?:met[ ])?(?:vriendelijke|hartelijke)[ ]groet(?:en)? | groet(?:en|jes)? | hoogachtend
        | pozdrawiam(?:[ ]serdecznie)? | z[ ]poważaniem | pozdrowienia | saygılarımla | sevgiler(?:imle)?
        | (?:iyi[ ]çalışmalar)
    | trân[ ]trọng(?:[ ]cảm[ ]ơn)? | thân(?:[ ](?:ái|mến))? | em[ ]cảm[ ]ơn[^\n]{0,20} | kính[ ]thư
        | с[ ]уважением | с[ ]наилучшими[ ]пожеланиями | всего[ ]доброго | مع[ ](?:خالص[ ])?التحية | ودمتم
        | تحياتي | مع[ ]الشكر
    | सादर | भवदीया? | धन्यवाद(?:[ ]सहित)? | आपका[^\n]{0,15} | आपकी[^\n]{0,15} | 此致
        | 敬礼 | 祝好 | 顺颂商祺 | 敬具 | よろしくお願い[^\n]{0,12} | 감사합니다\.? | greetings | signed
        | fdo\.? | gez\. | unterschrift | 드림 )"""
_CLOSING = Expression(
    rf"^[ \t>]{{0,6}} {_CLOSINGS} [ \t]* [,.!،，。:]? [ \t]* (?:\n[ \t>]*){{1,3}} (?=\S)",
    regex.VERBOSE | regex.MULTILINE,
)
_CLOSED = Expression(rf"[ \t>]{{0,6}}{_CLOSINGS}[,:]?[ ]+(?=\p{{Lu}})", regex.VERBOSE)
_SIGNED = Expression(r"\b(?i:signed(?: by)?|sign as|gez\.|fdo\.) +(?=\p{Lu})", 0)
_SENT_FROM = Expression(
    r"\bSent from (?P<value>\p{Lu}[\p{L}\p{M}\-]{1,30}(?: \p{Lu}[\p{L}\p{M}\-]{1,30}){0,2})['’]s ",
    0,
)
_WROTE = Expression(
    r"""^[ \t>]* (?: (?:On|El|Em|Le|Il[ ]giorno|Op|W[ ]dniu|Am)[ ](?:[^\n]{4,60}?[,\d]|\p{L}{4,9}day)[ ](?P<value>[\p{Lu}][^\n<>,:\d]{1,50}?)[ ]*(?:[<(][^\n>)]{3,80}[>)])?[ ]*(?:wrote|a[ ]écrit|escribió|escreveu|ha[ ]scritto|het[ ]volgende[ ]geschreven|napisał(?:\(?a\)?)?)[ ]*:
      | (?P<value>[\p{Lu}][^\n<>,:\d]{1,40}?)[ ]*(?:<[^\n>]{3,80}>)?[ ]*(?:wrote|schrieb|a[ ]écrit|escribió|escreveu|ha[ ]scritto|schreef|napisał(?:\(?a\)?)?|написала?|пишет|작성|yazdı|đã[ ]viết)[ ]*[:：]
      | (?:Il[ ]giorno[ ]\p{L}{2,10}[ ])(?P<value>[\p{Lu}][^\n<>,:\d]{1,40}?)[ ]ha[ ]scritto[ ]*:
      | (?:Am|Op)[ ][^\n]{4,60}?[ ](?:schrieb|schreef)[ ](?P<value>[\p{Lu}][^\n<>,:\d]{1,50}?)[ ]*(?:<[^\n>]{3,80}>)?[ ]*:
      | (?P<value>\p{Hangul}{2,5})[ ]<[^\n>]{3,80}>[ ]작성: )""",
    regex.VERBOSE | regex.MULTILINE,
)

_HEADERS = r"""From | To | Cc | Bcc | Reply-To | Sender | Von | An | Kopie | Gesendet[ ]von | De | À | Para
        | CC | Da | A | Od | Do | Van | Aan | Gönderen | Kime | Từ | Đến | От | Кому | Копия | من | إلى
    | 发件人 | 收件人 | 抄送 | 差出人 | 送信者 | 宛先 | 보낸[ ]?사람 | 받는[ ]?사람 | प्रेषक | प्रति"""
_SUBJECTS = r"""Subject | Date | Sent | Betreff | Datum | Objet | Asunto | Assunto | Oggetto | Temat
        | Onderwerp | Konu | Tiêu[ ]đề | Chủ[ ]đề | Тема | الموضوع | 主题 | 件名 | 제목 | विषय | Message-ID | Re"""
_HEADER = Expression(
    rf"^[ \t>]* (?:(?P<header>{_HEADERS})|{_SUBJECTS}) [ ]? [:：] [ \t]* (?P<value>[^\n]*)$",
    regex.VERBOSE | regex.MULTILINE,
)
_MAILBOX = Expression(
    r"(?:^|[,;])[ ]*[\"“'«]?(?P<value>[\p{L}][^<>\"”\n;@]{0,60}?)[\"”'»]?[ ]*<[^<>\s]{1,120}[@%][^<>\s]{1,120}>?",
    0,
)

_CALLED = (
    *(
        "my name is ",
        "my full name is ",
        "my real name is ",
        "my maiden name is ",
        "my name's ",
        "my name’s ",
        "this is ",
    ),
    *(
        "you can call me ",
        "people call me ",
        "his name is ",
        "her name is ",
        "their name is ",
        "his name was ",
        "her name was ",
    ),
    *(
        "ich heiße ",
        "ich heisse ",
        "mein name ist ",
        "mein name lautet ",
        "je m'appelle ",
        "je m’appelle ",
        "mon nom est ",
    ),
    *(
        "me llamo ",
        "mi nombre es ",
        "meu nome é ",
        "me chamo ",
        "chamo-me ",
        "mi chiamo ",
        "il mio nome è ",
        "ik heet ",
    ),
    *(
        "mijn naam is ",
        "nazywam się ",
        "mam na imię ",
        "adım ",
        "ismim ",
        "tên tôi là ",
        "tên em là ",
        "tên mình là ",
    ),
    *("tôi tên là ", "em tên là ", "mình tên là ", "em là ", "меня зовут ", "моё имя ", "мое имя "),
)
"""What people say before a name."""
_AM = ("i'm ", "i’m ", "i am ", "ich bin ", "je suis ", "soy ", "sono ", "ik ben ")
"""What they say before a name or anything else; the first three in English."""
_CASED_NAME = Expression(rf"{CASED}(?![\p{{L}}\p{{M}}\d])", regex.VERBOSE)
_SPEAKING = Expression(r",?[ ](?:from|here|calling|speaking|writing|with|at)\b", 0)
_OTHER_INTRODUCTIONS = Expression(
    r"""(?:我叫|我的名字叫|我的名字是|我是(?=\p{Han}{2,4}[，,。]))(?P<value>\p{Han}{2,4}?)(?=[，,。\s!！、]|今年|是|在|来自)
      | (?:私は|わたしは|僕は|俺は|私の名前は|弊社の)(?P<value>[\p{Han}\p{Katakana}々ー]{1,8}(?:[ 　][\p{Han}\p{Katakana}々ー]{1,6})?)(?=です|と申します|といいます|だ。)
      | の(?P<value>[\p{Han}々]{2,5}(?:[ 　][\p{Han}々]{1,4})?)(?=です。|と申します|でございます)
      | (?:제[ ]이름은|저는|내[ ]이름은|나는)[ ](?P<value>\p{Hangul}{2,5}?)(?=입니다|이고|이라고|라고|이에요|예요|[ ]입니다)
      | (?<!\p{Hangul})\p{Hangul}{1,9}(?:팀|부|과|실)[ ](?P<value>\p{Hangul}{2,5}?)(?=입니다)
      | (?:اسمي|إسمي)[ ](?P<value>\p{Arabic}{2,}(?:[ ]\p{Arabic}{2,}){0,1})(?=[ ]?[،,.؛\n]|[ ]و|$)
      | मेरा[ ]नाम[ ](?P<value>[\p{Devanagari}]{2,}(?:[ ][\p{Devanagari}]{2,}){0,2}?)[ ](?=है|हैं)
      | ^[ \t>]*(?P<value>\p{Hangul}{2,5})[ ](?=드림|올림)""",
    regex.VERBOSE | regex.MULTILINE,
)
_OTHER_SCRIPT = regex.compile(r"[^\x00-\u02ff\u2000-\u2bff\U0001f000-\U0001ffff]")

_STAMPED = Expression(
    r"""^[ \t>]* \[? (?: (?:\d{1,4}[./\-]\d{1,2}(?:[./\-]\d{1,4})?|\d{1,2}[ ]\p{L}{3,9}(?:[ ]\d{4})?),?[ ] )? \d{1,2}[:.h]\d{2}(?::\d\d)?(?:[ ]?[AaPp]\.?[Mm]\.?)? (?:\]|[ ]-|[ ]?[–—]|:)? [ ]?-?[ ]?
      (?P<value>[^\n:\[\]{}()=/\\|]{1,40}) [:：] [ ] (?=\S)""",
    regex.VERBOSE | regex.MULTILINE,
)
_STAMP_BEHIND = Expression(
    r"^(?P<value>[^\n:：\d\[\](){}]{1,24}?)[ ]\d{1,2}:\d\d(?::\d\d)?$", regex.MULTILINE
)
_SPOKEN = Expression(
    r"^[>*_]{0,4} ?(?P<value>\p{L}(?:[^\n:：{}\[\]=<>|#\"“/\\;,!?.]|\.(?=\p{L})){0,24})[*_]{0,2}[:：][*_]{0,2}[ ](?=[^\n]{2})",
    regex.MULTILINE,
)
_TAGGED = Expression(
    r"(?<![\w.])[@\\](?:author|Author|reviewer|maintainer)[ \t:]{1,4}(?=\p{Lu})", 0
)
_HANDLE_LIKE = regex.compile(
    r"@?[\p{Ll}\d]+(?:[._\-][\p{L}\d]+)+|\p{L}+[._]?\d[\p{L}\d_]*|\p{L}+_[\p{L}\d_]+"
)
_TRIM = regex.compile(r"^[^\p{L}\d@+]+|[^\p{L}\p{M}\p{N}.]+$")


def read_phrases(text: str) -> Iterator[Named]:
    """Names of persons in a text that phrases around them give away, and user names of chats."""
    other = bool(_OTHER_SCRIPT.search(text))
    yield from _greetings(text, other=other)
    lines = _lines(text)
    yield from _signatures(text, lines)
    yield from _mails(text, lines)
    yield from _introductions(text, other=other)
    yield from _chats(text)
    if "@" in text or "\\" in text:
        for match in _TAGGED.compiled.finditer(text):
            if (name := _loose(text, match.end())) and not no_name(text[slice(*name)]):
                yield Named(*name, "PERSON")


def _name(text: str, start: int, end: int | None = None) -> tuple[int, int] | None:
    match = NAME.compiled.match(text, start, start + 90 if end is None else end)
    return (
        (start, start + len(match.group().rstrip(" ,"))) if match and match.end() > start else None
    )


def _greetings(text: str, *, other: bool) -> Iterator[Named]:
    if any(sign in text for sign in _GREETS):
        for match in _GREETING.compiled.finditer(text):
            start = match.start("gap")
            while text[start] in ", ":
                start += 1
            if name := _addressed(text, start, match.end("gap")):
                yield Named(*name, "PERSON")
    if other:
        for match in _OTHER_GREETINGS.compiled.finditer(text):
            if not is_nobody(match["value"]):
                yield Named(
                    match.start("value"),
                    match.end("title" if match["title"] else "value"),
                    "PERSON",
                )


def _addressed(text: str, start: int, behind: int) -> tuple[int, int] | None:
    """The name in a greeting: it ends the greeting, and a title before it belongs to it."""
    match = NAME.compiled.match(text, behind, behind + 60)
    if match is None:
        return None
    value = match.group().rstrip(" ,")
    stop = behind + len(value)
    after = text[stop : stop + 2].lstrip(" *_")[:1]
    if (
        after not in ("", ",", "!", ":", ".", "\n", "–", "—", "-", ";", "\r", "،", "(", "I")
        and start == behind
    ):
        return None
    if is_nobody(value) and (start == behind or no_name(value)):
        return None
    return start, stop


def _lines(text: str) -> list[tuple[int, int]]:
    """Where the lines start and end that are short enough to be phrases of letters."""
    found, start = [], 0
    for line in text.split("\n"):
        if 1 < len(line) <= _LONGEST:
            found.append((start, start + len(line)))
        start += len(line) + 1
    return found


def _signatures(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[Named]:
    for begin, _ in lines:
        if match := _CLOSING.compiled.match(text, begin):
            end = text.find("\n", match.end())
            name = _name(text, match.end())
            value = text[slice(*name)] if name else ""
            if (
                name
                and not value.isupper()
                and not is_nobody(value)
                and _ends_line(text, name[1], end if end > 0 else len(text))
            ):
                yield Named(*name, "PERSON")
        elif (match := _CLOSED.compiled.match(text, begin)) and (
            signed := _signed(text, match.end())
        ):
            yield signed
    if any(sign in text for sign in ("igned", "ign as", "gez.", "do.")):
        for match in _SIGNED.compiled.finditer(text):
            if signed := _signed(text, match.end()):
                yield signed
    for match in _SENT_FROM.compiled.finditer(text) if "Sent from" in text else ():
        yield Named(*match.span("value"), "PERSON")


def _signed(text: str, start: int) -> Named | None:
    name = _name(text, start)
    if name is None or is_nobody(value := text[slice(*name)]):
        return None
    titled = regex.match(r"\p{Lu}\p{L}{0,4}\.[ ]\p{Lu}", value)
    return Named(*name, "PERSON") if looks_like_name(value) or is_known(value) or titled else None


def _ends_line(text: str, stop: int, end: int) -> bool:
    rest = text[stop:end].strip(" \t\r.,*_")
    return not rest or rest[0] in "–—-|,(/·•<" or "  " in text[stop : stop + 2]


def _mails(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[Named]:
    headers: list[regex.Match[str]] = []
    for begin, end in lines:
        if text[begin:end].rstrip().endswith((":", "：")) and (
            match := _WROTE.compiled.match(text, begin)
        ):
            name = _name(text, *match.span("value"))
            if name and not is_nobody(text[slice(*name)]):
                yield Named(*name, "PERSON")
        if ":" in text[begin : begin + 24] or "：" in text[begin : begin + 24]:
            headers += filter(None, [_HEADER.compiled.match(text, begin)])
    previous = -2
    for number, match in enumerate(headers):
        following = headers[number + 1].start() if number + 1 < len(headers) else len(text)
        beside = match.start() - previous <= 2 or (
            following - match.end() <= 1 and following < len(text)
        )
        previous = match.end() + 1
        if not match["header"] or not match["value"]:
            continue
        start, value = match.start("value"), match["value"]
        boxes = list(_MAILBOX.compiled.finditer(value))
        for box in boxes:
            if not no_name(box["value"]) and (name := _name(text, start + box.start("value"))):
                yield Named(name[0], min(name[1], start + box.end("value")), "PERSON")
        titled = regex.match(r"(?:M[rsx]s?|Miss|Dr|Prof|Herrn?|Frau|Mme|Sra?)\.?[ ]\p{Lu}", value)
        if not boxes and (titled or (beside and "@" not in value)):
            for part in value.split(";"):
                name = _name(text, start + len(part) - len(part.lstrip()))
                if (
                    name
                    and not is_nobody(text[slice(*name)])
                    and (" " in part.strip() or is_known(part.strip()))
                ):
                    yield Named(*name, "PERSON")
                start += len(part) + 1


def _introductions(text: str, *, other: bool) -> Iterator[Named]:
    lower = text.lower()
    if len(lower) != len(text):  # the small form of a letter may be two
        lower = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    for said, at in _said(lower, _CALLED):
        start = at + len(text[at : at + 3]) - len(text[at : at + 3].lstrip(" :,\"“'«*"))
        name = _loose(text, start) or _lower_name(text, start)
        if name is None or is_nobody(text[slice(*name)]):
            continue
        if said != "this is " or _SPEAKING.compiled.match(text, name[1]):
            yield Named(*name, "PERSON")
    for said, at in _said(lower, _AM):
        name = _loose(text, at)
        if name and not is_nobody(text[slice(*name)]):
            value = text[slice(*name)]
            goes_on = text[name[1] : name[1] + 1] in ",(" or text.startswith(" from ", name[1])
            if (
                looks_like_name(value)
                or is_known(value)
                or (said in _AM[:3] and goes_on and not value.isupper())
            ):
                yield Named(*name, "PERSON")
    if other:
        for match in _OTHER_INTRODUCTIONS.compiled.finditer(text):
            if not is_nobody(match["value"]):
                yield Named(*match.span("value"), "PERSON")


def _said(lower: str, phrases: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Phrases of a text in small letters, with the places behind them."""
    for phrase in phrases:
        at = lower.find(phrase)
        while at >= 0:
            if at == 0 or not (lower[at - 1].isalnum() or lower[at - 1] in "'’"):
                yield phrase, at + len(phrase)
            at = lower.find(phrase, at + 1)


def _loose(text: str, start: int) -> tuple[int, int] | None:
    """A name in a sentence that goes on behind it, perhaps with what the writer does."""
    match = _CASED_NAME.compiled.match(text, start, start + 90)
    return (start, start + len(match.group().rstrip(" ,.").removesuffix(", I"))) if match else None


_SMALL_NAME = Expression(
    r"\p{L}[\p{L}\p{M}'’\-]+(?:[ ]\p{L}[\p{L}\p{M}'’\-]+)?(?=[ ]*(?:[,.!?;:)\n]|$|[ ](?:and|und|et|y|e|i|ve)[ ]))",
    0,
)


def _lower_name(text: str, start: int) -> tuple[int, int] | None:
    """A name in small letters: its first word must be on the list of names."""
    match = _SMALL_NAME.compiled.match(text, start, start + 60)
    return match.span() if match and is_known(match.group().split()[0]) else None


def _chats(text: str) -> Iterator[Named]:
    if text.count("\n") < 1 or (":" not in text and "：" not in text):
        return
    stamped = [match.span("value") for match in _STAMPED.compiled.finditer(text)]
    if len(stamped) > 1:
        yield from _speakers(text, stamped, certain=True)
    behind = [match.span("value") for match in _STAMP_BEHIND.compiled.finditer(text)]
    if len(behind) > 2:
        yield from _speakers(text, behind, certain=True)
    if stamped or behind:
        return
    spoken = [match.span("value") for match in _SPOKEN.compiled.finditer(text)]
    names = Counter(text[slice(*place)].strip() for place in spoken)
    turns = sum(text[slice(*a)] != text[slice(*b)] for a, b in pairwise(spoken))
    often = sum(count > 1 for count in names.values())
    if not (1 < len(names) < 12 and len(spoken) >= 4 and turns >= 3 and often > 1):
        return
    if any(is_speech(text, end) for _, end in spoken):
        yield from _speakers(text, spoken, certain=False)


def _speakers(text: str, places: list[tuple[int, int]], *, certain: bool) -> Iterator[Named]:
    count = Counter(text[slice(*place)].strip() for place in places)
    for start, end in places:
        raw = text[start:end]
        if (not certain and count[raw.strip()] < 2) or kind_of(raw.strip()):
            continue
        value = _TRIM.sub("", raw)
        at = start + raw.find(value)
        if len(value) < 2 or regex.search(r"[.!?,;][ ]", raw):
            continue
        if _HANDLE_LIKE.fullmatch(value):
            if not is_program(value) or any(map(is_known, regex.findall(r"\p{L}{2,}", value))):
                yield Named(at, at + len(value), "HANDLE")
        elif value[0] in "+0123456789":
            if found := find("phone", text, at, at + len(value), whole=True):
                yield Named(found.start, found.end, "PHONE")
        elif _is_speaker(value) and (
            certain or not all(map(is_ordinary, regex.split("[ -]", value)))
        ):
            yield Named(at, at + len(value), "PERSON")


_LEVEL = regex.compile(
    r"(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|FEHLER|WARNUNG|WAARS\w*|FOUT|ERREUR|AVISO|ERRO|UYARI|HATA)[ ]"
)
"""A level of a log, in capitals, before other words."""


def _is_speaker(value: str) -> bool:
    if _LEVEL.match(value):
        return False
    return (
        len(value.split()) <= 4
        and not no_name(value)
        and not _NOBODY.issuperset(value.lower().split())
    )
