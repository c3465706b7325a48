"""Vietnamese names: family names with the syllables after them, and names after the words by which people are called.

In: a text. Out: `FoundName`.
Not here: the lists (`gazetteers`).
"""

import re
from functools import cache
from typing import NamedTuple

from textveil.protect.scripts.gazetteers import FoundName, names

_SYLLABLE = re.compile(r"[^\W\d_]+")

_CALLED = frozenset(
    "anh chị cô chú bác ông bà em cháu bé thầy dì cậu mợ thím bạn chồng vợ con bố ba má mẹ sếp bs ts ths gs lão cụ bác_sĩ tên nhé dạ".split()
)
_NO_NAME = frozenset(
    "Mình Tôi Em Anh Chị Và Là Có Không Ở Tại Cho Với Của Xin Cảm Chào Nếu Thì Khi Việt Google Excel Facebook Zalo Tết".split()
)
_PLACE = re.compile(
    r"(?:đường|phố|quận|phường|số \d+[\w/]*|\d[\w/]* |trường|chợ|cầu|thành phố|tp\.?|tỉnh|huyện|xã|thôn|ấp|núi|sông|hồ|biển|chùa|đền|quảng trường|bệnh viện|truyện|"
    r"đảo|vịnh|bãi|khu|ngõ|hẻm|thị xã|thị trấn|chùa|lăng|nhà thơ|nhà văn|tác giả|vua|chúa|tướng|ca sĩ|nhạc sĩ|họa sĩ|danh tướng|anh hùng|thpt|thcs)\s*\Z",
    re.IGNORECASE,
)
_PLACES = frozenset(
    "Hà Nội,Hồ Chí Minh,Lâm Đồng,Thái Bình,Thái Lan,Thái Nguyên,Thái Bình Dương,Hà Giang,Hà Tĩnh,Hà Nam,Hà Đông,Hà Lan,Đồng Nai,Đồng Tháp,Ninh Bình,Ninh Thuận,Sơn La,"
    "Cao Bằng,Hồ Gươm,Hồ Tây,Hồ Hoàn Kiếm,Mai Châu,Từ Liêm,Sơn Trà,Châu Âu,Châu Á,Châu Phi,Châu Mỹ,Châu Úc,Lạng Sơn,Lục Ngạn,Kim Bôi,Phan Thiết,Phan Rang,Hoàng Sa,"
    "Hoàng Liên Sơn,Hoàng Mai,Hoàng Thành,Văn Miếu,Tô Lịch,Tống Sơn,Lý Sơn,Vũ Trụ,Dương Đông,Ninh Kiều,Quản Bạ,Đào Tạo,Hà Tiên,Cao Lãnh,Thạch Thất,Thạch Hà,Đồng Hới,"
    "Lưu Ý,Tạ Ơn,Thái Thụy,Mã Lai,Kim Loại,Giang Nam,Phí Vận,Quan Họ,Viên Chức,Ứng Dụng,Công Ty,Đồng Bằng,Triệu Đồng,Phương Án,Phương Pháp,Sơn Đoòng,Viên Chăn,La Mã".split(
        ","
    )
)
_OPENS = frozenset("\"'“([{,;|=:\t\n<>-")


class _Vietnamese(NamedTuple):
    family: frozenset[str]
    given: frozenset[str]
    public: frozenset[str]


@cache
def _lists() -> _Vietnamese:
    family = frozenset(
        each
        for item in names("vietnamese", "family")
        for each in ([item] if item in _DOUBLE else item.split())
    )
    return _Vietnamese(family, names("vietnamese", "given"), names("vietnamese", "public"))


_DOUBLE = frozenset(("Âu Dương", "Tôn Thất", "Tôn Nữ"))


def find(text: str) -> list[FoundName]:
    """The names in a text; those that are certain are found again by their last syllables."""
    words = [(match[0], match.start(), match.end()) for match in _SYLLABLE.finditer(text)]
    found: list[FoundName] = []
    i = 0
    while i < len(words):
        stop = i
        while (
            stop < len(words)
            and stop - i < 5
            and _capital(words[stop][0])
            and (stop == i or text[words[stop - 1][2] : words[stop][1]] == " ")
        ):
            stop += 1
        if stop == i:
            i += 1
            continue
        name, i = _judged(text, words, i, stop)
        if name is not None:
            found.append(name)
    return found + _again(words, found)


def _capital(word: str) -> bool:
    return (
        word[0].isupper()
        and (len(word) == 1 or word[1:].islower() or word.isupper())
        and len(word) <= 7
    )


def _judged(
    text: str, words: list[tuple[str, int, int]], i: int, stop: int
) -> tuple[FoundName | None, int]:
    """The name in a row of capitalized syllables, and the word to go on with."""
    lists = _lists()
    while (
        i < stop
        and words[i][0].lower() in _CALLED
        and stop - i > 1
        and words[i][0] not in ("Em", "Bé")
    ):
        if (
            text[words[i][1] - 1 : words[i][1]] not in ("", "\n", '"')
            and words[i][1] > 1
            and text[words[i][1] - 2] not in ".!?:\n>"
        ):
            break  # Bà Nà: a title in the middle of a sentence is written small
        i += 1
    row = [word.title() for word, _, _ in words[i:stop]]
    start, end = words[i][1], words[stop - 1][2]
    before = text[max(0, start - 14) : start]
    called = (
        i > 0
        and words[i - 1][0].lower() in _CALLED
        and text[words[i - 1][2] : start] == " "
        and not (
            words[i - 1][0][0].isupper()
            and words[i - 1][1] > 1
            and text[words[i - 1][1] - 2] not in ".!?:\n>-"
        )
    )
    name = " ".join(row)
    if (
        _PLACE.search(before)
        or name in _PLACES
        or " ".join(row[:2]) in _PLACES
        or " ".join(row[:3]) in _PLACES
    ):
        return None, stop
    if name in lists.public:
        return FoundName(start, end, "PERSON", False, True), stop
    if (row[0] in lists.family or " ".join(row[:2]) in lists.family) and 2 <= len(row) <= 5:
        given = row[-1] in lists.given or row[1] in ("Văn", "Thị") or len(row) >= 3
        if given:
            edge = (start == 0 or text[start - 1] in _OPENS) and (
                end == len(text) or text[end] in "\"'”)]},;|:\n\t<>("
            )
            return FoundName(
                start, end, "PERSON", called or edge or row[1] in ("Văn", "Thị"), False
            ), stop
    if (
        called
        and row[0] not in _NO_NAME
        and (row[-1] in lists.given or row[0] in lists.given or row[0] in lists.family)
    ):
        return FoundName(words[i - 1][1], end, "PERSON", True, False), stop
    if (
        len(row) == 2
        and row[0] in lists.given
        and row[1] in lists.given
        and start
        and text[start - 1] in "(:\"'"
    ):
        return FoundName(start, end, "PERSON", True, False), stop
    return None, stop


def _again(words: list[tuple[str, int, int]], found: list[FoundName]) -> list[FoundName]:
    """Further mentions by the last one or two syllables."""
    known: set[str] = set()
    places = {start: i for i, (_, start, _) in enumerate(words)}
    inside: set[int] = set()
    for each in found:
        i = places[each.start]
        row = []
        while i < len(words) and words[i][2] <= each.end:
            row.append(words[i][0])
            inside.add(i)
            i += 1
        if each.cue and not each.public:
            known.add(row[-1])
    known -= _NO_NAME
    return [
        FoundName(start, end, "PERSON", True, False)
        for i, (word, start, end) in enumerate(words)
        if i not in inside and word in known and word[0].isupper()
    ]
