"""Japanese names: surnames and given names of a dictionary, with titles, or where the words around say so.

In: a text with kana. Out: `FoundName`.
Not here: Chinese, which shares the characters (`han`).
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from textveil.protect.scripts.gazetteers import CERTAIN, FoundName, names

_RUN = re.compile(r"[\u3400-\u9fff々ヶ]+")
_KATAKANA = re.compile(r"[ァ-ヺー・]{2,}|[ｦ-ﾟ]{2,}")

TITLES = tuple(
    "様 氏 殿 先生 先輩 後輩 課長 部長 係長 次長 主任 主査 社長 専務 常務 店長 院長 所長 校長 教頭 会長 班長 組長 教授 准教授 講師 医師 "
    "看護師 弁護士 税理士 司法書士 行政書士 巡査 刑事 選手 監督 議員 夫妻 夫人 婦長 師長 室長 本部長 支店長 工場長 君 嬢 家".split()
)
_KANA_TITLE = re.compile(
    r"[ 　]?(?:さん|さま|くん|ちゃん|たん|先生|様|氏|君|殿|先輩|課長|部長|係長|主任|社長|店長)"
)
_HIRAGANA = re.compile(r"([ぁ-ん]{2,5}?)(?:さん|ちゃん|くん|さま)(?![ぁ-ん]{0,2}こ)")
_KATAKANA_NO = frozenset(
    "オカア オトウ オニイ オネエ オバア オジイ オバ オジ ミナ ゾウ ウサギ ネコ イヌ クマ パンダ サンタ パパ ママ ドクター スタッフ ユーザー メーカー "
    "リーダー マネージャー オーナー ドライバー コンビニ サラリーマン アイドル ファン ベビー ロボット オペレーター ヘルパー ケアマネ アルバイト".split()
)

_BEFORE = re.compile(
    r"(?:弊社の?|当社の?|御社の?|貴社の?|担当の?|担当者[はの]?|責任者[はの]?|配達員の?|同僚の?|部下の?|上司の?|友人の?|友達の?|知人の?|先輩の?|後輩の?|"
    r"隣の?|大家の?|患者の?|主治医の?|担任の?|生徒の?|講師の?|社員の?|営業の?|総務の?|経理の?|人事の?|夫の|妻の|息子の|娘の|長男の|長女の|"
    r"次男の|次女の|母の|父の|兄の|姉の|弟の|妹の|彼氏の|彼女の|名前は|氏名は|私は|私、|お名前は|こちら|株式会社[^\s、。]{0,12}の|[部課係店局]の|"
    r"[工商電建製薬硝鉄銀]\w{0,2}の)\Z"
)
_LABEL = re.compile(
    r"(?:氏\s*名|名\s*前|お名前|担当者?|責任者|代表者?|連絡先|差出人|宛先|宛名|受取人|届け先|名義人?|保護者|緊急連絡先|患者名?|お客様名?|会員名|"
    r"顧客名?|生徒名?|児童名|世帯主|申込者|申請者|契約者|署名|講師|上長|上司|部下|筆頭者|配偶者|本人|父|母|長男|長女|夫|妻|記入者|作成者|報告者|"
    r"発注者|受注者|参加者|出席者|欠席者?|会費未納|幹事)[】」）)]?\s*[:：]\s*[「『]?\Z"
)
_READING = re.compile(
    r"(?:フリガナ|ふりがな|カナ|よみ|読み|名義)[】）)]?\s*[:：]?\s*(?:ﾁﾖ[ｦ-ﾟ ]*)?\Z"
)
_AFTER = re.compile(
    r"です|と申し|といい|と言い|より|から|まで|宛|が|は|に|を|も|へ|と|、|。|（|\(|の(?:母|父|妻|夫|息子|娘|おば|おじ|家|携帯|電話)"
)
_SUBJECT = re.compile(r"(?:が|は|も|と|から|に|へ)(?![ぁ-ん]?る)")
_OPENS = frozenset("\"'「『“([【（,、;|:：\t\n　・<>/・")
_CLOSES = frozenset("\"'」』”)]】）,、;|:：\t\n　。<>(（/")


_NOT_CALLED = frozenset("神 王 皆 客 姫 奥 仏 星 月 嫁 婿 父 母 兄 姉 弟 妹 孫 医者 お客".split())
"""Surnames and other words that with a title are no names."""


class _Japanese(NamedTuple):
    family: frozenset[str]
    unsure: frozenset[str]
    given: frozenset[str]
    places: frozenset[str]
    plain: frozenset[str]
    public: frozenset[str]


@cache
def _lists() -> _Japanese:
    return _Japanese(*(names("japanese", section) for section in _Japanese._fields))


def find(text: str) -> list[FoundName]:
    """The names in a text; surnames that are certain are found again where nothing speaks for them."""
    runs = [(match[0], match.start(), match.end()) for match in _RUN.finditer(text)]
    found = [
        name for run, start, end in runs if (name := _in_run(text, run, start, end)) is not None
    ]
    found += _two_parts(text, runs)
    found += _in_kana(text)
    return found + _again(runs, text, found)


def _in_run(text: str, run: str, start: int, end: int) -> FoundName | None:
    """The name in a run of kanji: the end of what stands before a title, or the whole run."""
    lists = _lists()
    if (kana := _KANA_TITLE.match(text, end)) and (name := _last_name(run)):
        return FoundName(end - len(name), kana.end(), "PERSON", True, name in lists.public)
    for title in TITLES:
        if (
            run.endswith(title)
            and len(run) > len(title)
            and (name := _last_name(run[: -len(title)]))
        ):
            if title == "家" and name in lists.places:
                return None
            return FoundName(
                end - len(title) - len(name), end, "PERSON", True, name in lists.public
            )
    if run in lists.public:
        return FoundName(start, end, "PERSON", False, True)
    before = text[max(0, start - 18) : start]
    cue = _LABEL.search(before) is not None
    opened, closed = (
        start == 0 or text[start - 1] in _OPENS,
        end == len(text) or text[end] in _CLOSES,
    )
    if run in lists.plain:
        return None
    if len(run) >= 3 and _split(run):
        return FoundName(start, end, "PERSON", cue or (opened and closed), False)
    known = run in lists.family or run in lists.unsure or (run in lists.given and len(run) > 1)
    if not known:
        return None
    if cue or (
        run not in lists.unsure and _BEFORE.search(before) and (closed or _AFTER.match(text, end))
    ):
        return FoundName(start, end, "PERSON", True, False)
    speaks = text.startswith(("です", "と申し", "といいま", "と言いま"), end)
    if speaks and run not in lists.unsure and (start == 0 or text[start - 1] in "の、。\n 　"):
        return FoundName(start, end, "PERSON", True, False)
    if (
        run not in lists.places
        and run in lists.family
        and len(run) > 1
        and (opened or text[start - 1] == "の")
        and _AFTER.match(text, end)
    ):
        return FoundName(start, end, "PERSON", False, False)
    alone = opened or "ぁ" <= text[start - 1] <= "ん"
    if len(run) > 1 and run not in lists.unsure and alone and _SUBJECT.match(text, end):
        return FoundName(start, end, "PERSON", False, False)
    return None


def _last_name(run: str) -> str:
    """The longest end of a run that is a name; empty if none is, or if the run is a word for a role."""
    lists = _lists()
    if run in _NOT_CALLED or (run in lists.plain and run not in lists.family):
        return ""
    if run in lists.public:
        return run
    for length in range(min(len(run), 6), 0, -1):
        name = run[-length:]
        if length == 1 and len(run) > 1:
            return ""
        if (
            name in lists.family
            or name in lists.unsure
            or _split(name)
            or (name in lists.given and length == len(run))
        ):
            return name
    return ""


@cache
def _split_known(run: str) -> bool:
    lists = _lists()
    return any(
        (run[:i] in lists.family or run[:i] in lists.unsure) and run[i:] in lists.given
        for i in range(1, len(run))
    )


def _split(run: str) -> bool:
    """Whether a run is a surname and a given name."""
    return 3 <= len(run) <= 6 and run not in _lists().plain and _split_known(run)


def _two_parts(text: str, runs: list[tuple[str, int, int]]) -> Iterator[FoundName]:
    """A surname, a space, and a given name in kanji or kana: 九十九 遥香, 真栄田 ジョアン 健."""
    lists = _lists()
    for run, start, end in runs:
        if run not in lists.family and run not in lists.unsure:
            continue
        match = _GIVEN_PART.match(text, end)
        if match is None:
            continue
        given = match[1]
        edge = (
            match.end() == len(text)
            or text[match.end()] in _CLOSES
            or text[match.end()] in " \r、。をがはにのとでへ様さ氏君ち"
        )
        if edge and (
            run + given in lists.public
            or given in lists.given
            or not (run in lists.unsure or given in lists.plain)
        ):
            if given in lists.plain and given not in lists.given:
                continue
            title = _KANA_TITLE.match(text, match.end())
            yield FoundName(
                start,
                title.end() if title else match.end(),
                "PERSON",
                True,
                run + given in lists.public,
            )


_GIVEN_PART = re.compile(
    r"[ 　]((?:[ァ-ヺー]{2,8}[ 　])?(?:[\u3400-\u9fff々]{1,3}|[ぁ-ん]{2,4}|[ァ-ヺー]{2,8}))(?![\u3400-\u9fffぁ-んァ-ヺー]|[ 　]?[:：])"
)


def _in_kana(text: str) -> Iterator[FoundName]:
    """Names in katakana and hiragana: with a title, or as a reading of a name."""
    lists = _lists()
    previous = -1
    for match in _KATAKANA.finditer(text):
        name = match[0].strip("・")
        title = _KANA_TITLE.match(text, match.end())
        begin = match.start()
        if (begin and text[begin - 1] in " 　" and begin - 1 == previous) or (
            _READING.search(text[max(0, begin - 24) : begin]) and len(name) <= 12
        ):
            yield FoundName(begin, match.end(), "PERSON", True, False)
            previous = match.end()
        elif title and name not in _KATAKANA_NO and len(name) <= 10:
            yield FoundName(begin, title.end(), "PERSON", True, name in lists.public)
    for match in _HIRAGANA.finditer(text):
        if match[1] in lists.given and (
            match.start() == 0
            or not "ぁ" <= text[match.start() - 1] <= "ん"
            or text[match.start() - 1] in "はがのをにと"
        ):
            yield FoundName(match.start(), match.end(), "PERSON", True, False)


def _again(runs: list[tuple[str, int, int]], text: str, found: list[FoundName]) -> list[FoundName]:
    """Further mentions of surnames and given names that are certain, where they stand alone."""
    lists = _lists()
    known: set[str] = set()
    for each in found:
        if not each.cue or each.public:
            continue
        for part in _RUN.findall(text, each.start, each.end):
            for title in TITLES:
                part = part.removesuffix(title)
            known.add(part)
            for i in range(1, len(part)):
                if part[:i] in lists.family and part[i:] in lists.given:
                    known |= {each for each in (part[:i], part[i:]) if len(each) > 1}
    known = {
        name for name in known if name and name not in lists.plain and name not in lists.unsure
    }
    taken = {each.start for each in found}
    return [
        FoundName(start, end, "PERSON", True, False, CERTAIN)
        for run, start, end in runs
        if run in known and start not in taken
    ]
