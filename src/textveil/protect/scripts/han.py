"""Chinese names: the cheapest way to read a text as words and names.

In: a text. Out: `FoundName`.
Not here: Japanese, which shares the characters (`japanese`).

Every run of characters is read as words and names by dynamic programming: a word costs what it is rare, a name what its
surname and the characters of its given name are rare, less where a label, a title or an edge speaks for a name. At each
character a handful of readings is tried, so the time is linear in the text.

Source: segmentation by unigrams as in jieba; Zhang et al. 2003 for names as words of such a reading.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from textveil.protect.scripts.gazetteers import CERTAIN, DOUBTFUL, FoundName, gazetteer, names

_RUN = re.compile(r"[\u3400-\u9fff]+")
_FOREIGN = re.compile(r"[\u3400-\u9fff]{1,5}(?:[·•‧][\u3400-\u9fff]{1,6}){1,4}")

TITLES = frozenset(
    (
        "先生 女士 小姐 太太 夫人 老师 老師 师傅 師傅 经理 经 总监 主任 主管 组长 班长 院长 校长 局长 科长 处长 部长 厂长 店长 队长 "
        "医生 大夫 护士 教授 博士 律师 法官 警官 会计 同学 师兄 师姐 阿姨 叔叔 大爷 大妈 奶奶 爷爷 伯伯 姐 哥 总 "
        "妈妈 爸爸 家长 同志 教练 司机 助理 秘书 顾问 专员 客服 医师 药师"
    ).split()
)
"""What follows a name; of one character only after a surname or a whole name."""

_CUES = frozenset(
    (
        "我叫 名叫 叫做 叫 我是 姓名 联系人 患者 病人 客户 用户 顾客 会员 员工 同事 朋友 同学 室友 老婆 老公 妻子 丈夫 儿子 女儿 "
        "父亲 母亲 爸爸 妈妈 哥哥 姐姐 弟弟 妹妹 爷爷 奶奶 外公 外婆 女友 男友 女朋友 男朋友 老板 领导 老师 医生 律师 师傅 经理 "
        "主任 助理 收件人 寄件人 经办人 申请人 负责人 借款人 出借人 见证人 甲方 乙方 法人 借到 致 由 找 跟 给 邻居 房东 租客 学生 "
        "司机 保姆 业主 投保人 被保险人 受益人 签名 签字 聯絡人 客戶 姓名 病患 導師 老師 醫生 護士"
    ).split()
)
"""What stands before a name."""

_ROLES = frozenset(each for each in (*TITLES, *_CUES) if len(each) == 2) | frozenset(
    "班主 车间 项目 班组 任老 位同 位老 位家 位女 位先 各位".split()
)
"""What no name begins with."""

_LABEL = re.compile(
    r"(?:姓\s*名|名字|联系人|聯絡人|患者|病人|客户|客戶|收件人|寄件人|经办人|申请人|负责人|借款人|出借人|见证人|甲方|乙方|父亲|"
    r"母亲|配偶|监护人|家长|担保人|业主|租客|房东|老师|医生|审批人|汇报人|记录人|主持人|参会人|学生|员工|投保人|受益人|签名|"
    r"发件人|收信人|称呼|此致|经理|司机|师傅|被告|原告|出租方|承租方|作者|人)\s*[（(]?[^：:\n]{0,6}[：:]\s*\Z"
)

_TOTAL = 25.8
"""The binary logarithm of how many words the weights of words were counted in."""

_GIVEN = 17.0
"""The same for the characters of given names."""

_NAME, _FAMILY, _NICK, _TITLE = 8.0, 5.0, 3.0, 2.0
"""What a name costs: that there is one, its surname, 老 or 小 before it, a title after it."""

_CUE, _TITLED, _EDGE = 6.0, 4.0, 3.0
"""What a label or a word before a name takes off, a title after it, and each end of a cell or line."""

_OPENS = frozenset("\"'“”‘’「」『』《<>([（【{,，、;；|=:：\t\n-*•#/·/")
_CLOSES = frozenset("\"'“”‘’「」『』》<>)]）】},，、;；|:：\t\n.。!！?？-/（([")


class _Han(NamedTuple):
    words: dict[str, float]
    given: dict[str, float]
    family: frozenset[str]
    public: frozenset[str]
    traditional: dict[int, str]


@cache
def _lists() -> _Han:
    sections = gazetteer("han")
    pairs = sections["traditional"][0]
    return _Han(
        {word: _TOTAL - weight for word, weight in _weighted(sections["words"])},
        {character: _GIVEN - weight for character, weight in _weighted(sections["given"])},
        names("han", "family"),
        names("han", "public"),
        {ord(pairs[i]): pairs[i + 1] for i in range(0, len(pairs), 2)},
    )


def _weighted(items: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    weight = 0
    for item in items:
        if item.isascii():
            weight = int(item or 0)
        else:
            yield item, weight


def find(text: str) -> list[FoundName]:
    """The names in a text; those that are found by what stands around them are found again where it does not."""
    plain = text.translate(_lists().traditional)
    found = [each for run in _RUN.finditer(plain) for each in _read(plain, run.start(), run.end())]
    found += [
        FoundName(match.start(), match.end(), "PERSON", False, match[0] in _lists().public)
        for match in _FOREIGN.finditer(plain)
    ]
    return found + _again(plain, found)


def _read(text: str, low: int, high: int) -> list[FoundName]:
    """The names on the cheapest reading of one run."""
    words = _lists().words
    size = high - low
    best = [0.0] + [float("inf")] * size
    step: list[tuple[int, FoundName | None]] = [(0, None)] * (size + 1)
    for start in range(low, high):
        at = start - low
        here = best[at]
        for end in range(start + 1, min(start + 4, high) + 1):
            price = words.get(text[start:end], _TOTAL if end == start + 1 else None)
            if price is not None and here + price < best[end - low]:
                best[end - low], step[end - low] = here + price, (at, None)
        for price, name in _names(text, low, start, high):
            if here + price < best[name.end - low]:
                best[name.end - low], step[name.end - low] = here + price, (at, name)
    found, at = [], size
    while at > 0:
        at, each = step[at]
        if each is not None:
            found.append(each)
    return found[::-1]


def _names(text: str, low: int, start: int, high: int) -> Iterator[tuple[float, FoundName]]:
    """The names that may begin at a place, each with its price."""
    family, given = _lists().family, _lists().given
    second = text[start + 1 : start + 2]
    nick = text[start] in "老小阿" and (
        second in family or (text[start] != "老" and given.get(second, _GIVEN) < 9)
    )
    heads = [
        start + length
        for length in (1, 2)
        if start + length <= high and text[start : start + length] in family
    ]
    if not (heads or nick) or text[start : start + 2] in _ROLES:
        return
    before, cue = _before(text, low, start)
    if nick:
        yield from _ended(
            text, start, start + 2, high, _NAME + _FAMILY + _NICK - before, cue, nick=True
        )
    for head in heads:
        price = _NAME + _FAMILY - before
        yield from _ended(text, start, head, high, price, cue, bare=False)
        for end in range(head + 1, min(head + 2, high) + 1):
            price += given.get(text[end - 1], _GIVEN)
            yield from _ended(text, start, end, high, price, cue)


def _before(text: str, low: int, start: int) -> tuple[float, bool]:
    """What the text before a place takes off, and whether it is a label or a word that names follow."""
    if start > low:
        said = any(text[max(low, start - length) : start] in _CUES for length in range(1, 5))
        return (_CUE, True) if said else (0.0, False)
    if _LABEL.search(text[max(0, start - 16) : start]):
        return _CUE + _EDGE, True
    return (_EDGE, False) if start == 0 or text[start - 1] in _OPENS else (0.0, False)


def _ended(
    text: str,
    start: int,
    end: int,
    high: int,
    price: float,
    cue: bool,
    *,
    nick: bool = False,
    bare: bool = True,
) -> Iterator[tuple[float, FoundName]]:
    """A name up to a place, and together with a title that follows there.

    Args:
        text: all of it.
        start: where the name begins.
        end: where it ends.
        high: where the run ends.
        price: so far.
        cue: whether something before says that a name follows.
        nick: whether it is a surname after 老 or 小.
        bare: whether it may stand without a title.
    """
    public = text[start:end] in _lists().public
    for length in (2, 1):
        if text[end : end + length] in TITLES and end + length <= high:
            yield price + _TITLE - _TITLED, FoundName(start, end + length, "PERSON", True, public)
            break
    if bare:
        closed = end == high and (end == len(text) or text[end] in _CLOSES or text[end].isspace())
        cell = closed and (start == 0 or text[start - 1] in _OPENS)
        sure = cue or cell
        score = CERTAIN if sure or nick or end - start > 2 else DOUBTFUL
        yield price - _EDGE * closed, FoundName(start, end, "PERSON", sure, public, score)


def is_made_of_words(text: str) -> bool:
    """Whether a text can be read as common words of two to four characters alone."""
    words = _lists().words
    ends = {0}
    for start in range(len(text)):
        if start in ends:
            ends |= {
                end
                for end in range(start + 2, min(start + 4, len(text)) + 1)
                if text[start:end] in words
            }
    return len(text) in ends


def _again(text: str, found: list[FoundName]) -> list[FoundName]:
    """Further mentions of names that are certain: the whole name, and given names that are no words."""
    words, family = _lists().words, _lists().family
    known: set[str] = set()
    for each in found:
        name = text[each.start : each.end]
        if each.cue and not each.public:
            known.add(name)
            given = name[2:] if name[:2] in family else name[1:]
            if len(given) == 2 and given not in words and given not in TITLES:
                known.add(given)
    if not known:
        return []
    taken = {start for each in found for start in range(each.start, each.end)}
    return [
        FoundName(start, start + length, "PERSON", True, False)
        for start in range(len(text) - 1)
        if start not in taken
        for length in (2, 3, 4)
        if start + length <= len(text) and text[start : start + length] in known
    ]
