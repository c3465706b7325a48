"""Korean names: a surname with a given name, or what titles, labels and cells say is one.

In: a text. Out: `FoundName`.
Not here: the lists (`gazetteers`).

A name without a title must have a listed given name; with a title, in a cell or behind a label two syllables that occur in
given names are enough.
"""

import re
from functools import cache
from typing import NamedTuple

from textveil.protect.scripts.gazetteers import DOUBTFUL, FoundName, names

_WORD = re.compile(r"[가-힣]+")

_PARTICLES = (
    "이라고 라고 이라는 라는 입니다 이에요 예요 이랑 에게서 에게 한테 께서 께 으로 로 이가 이는 이를 이도 이의 이랑 은 는 이 가 을 를 의 "
    "도 만 와 과 랑 야 아 이야 이와 입니다만 이었 였다 이며 이고 이다 하고 보다 처럼 마다 부터 까지 밖에 이한테 이에게 네"
).split()
_PARTICLE = frozenset(_PARTICLES)

RANKS = (
    "씨 군 양 과장 대리 부장 차장 사장 팀장 실장 대표 이사 상무 전무 주임 사원 선생 교수 박사 원장 간호사 기사 고객 환자 상담사 "
    "매니저 변호사 판사 검사 작가 기자 감독 선배 후배 언니 오빠 형 누나 이모 삼촌 할머니 할아버지 아저씨 아주머니 어머니 어머님 "
    "아버님 학생 조교 코치 사모 회장 총무 반장 소장 국장 계장 조합장 이장 목사 집사 권사 장로 신부 수녀 스님 대위 소령 중위 병장 "
    "의사 약사 세무사 회계사 노무사 주무관 사무관 연구원 책임 선임 수석 본부장 지점장 점장 센터장 교장 교감 담임 어르신 여사 님"
).split()
_TITLE = re.compile(rf"(?:{'|'.join(sorted(RANKS, key=len, reverse=True))})님?")
_TITLED = re.compile(
    rf"(?P<name>[가-힣]{{1,5}}?)(?:{'|'.join(sorted((r for r in RANKS if len(r) > 1 or r in '씨님'), key=len, reverse=True))})님?"
)

_NO_SURNAME = frozenset(
    "이그저전현한두세본총부주여남신구각모대상하소성명제민중고노용유공동온시장기"
)
"""Surnames that stand before words for roles as adjectives and parts of words do."""

_SURE_TITLE = re.compile(
    r"(?:씨|과장|대리|부장|차장|팀장|사장|선생|교수|박사|원장|실장|대표|주임|이사|상무|전무|기사)님?"
)

_LABEL = re.compile(
    r"(?:이름|성명|성함|성 명|환자명|고객명|회원명|담당자?|예금주|보호자|신청인|작성자|발신인?|수신인?|보낸 ?사람|받는 ?사람|대표자?|"
    r"계약자|피보험자|임차인|임대인|매도인|매수인|채무자|채권자|담당의|주치의|학생|환자|고객|아버지|어머니|배우자|성함은|이름은|저는|"
    r"제 이름은|안녕하세요,?|친구|동료|동생|남편|아내|아들|딸|상사|후배|선배|언니|오빠|누나|형)[\"'”]?\s*[:：=]?\s*[\"'“]?\Z"
)

_OPENS = frozenset("\"'“”‘’([{,;|=:：\t\n<>/")
_CLOSES = frozenset("\"'“”‘’)]},;|:：\t\n<>(/")


_CALLS = frozenset("야 이가 이는 이도 이를 이한테 이에게 이랑 이네 이의 이와".split())
"""What only names of persons end with."""

_ENDINGS = frozenset("하해서기되성별로창율자시력식")
"""What words of three syllables often end with, and given names seldom."""


class _Korean(NamedTuple):
    family: frozenset[str]
    given: frozenset[str]
    first: frozenset[str]
    second: frozenset[str]
    public: frozenset[str]
    plain: frozenset[str]


@cache
def _lists() -> _Korean:
    sections = ("family", "given", "first", "second", "public", "plain")
    return _Korean(*(names("hangul", section) for section in sections))


def find(text: str) -> list[FoundName]:
    """The names in a text; those that are certain are found again where nothing speaks for them."""
    words = [(match[0], match.start(), match.end()) for match in _WORD.finditer(text)]
    found: list[FoundName] = []
    for i, (word, start, end) in enumerate(words):
        after = words[i + 1] if i + 1 < len(words) else ("", end, end)
        close = text[end : after[1]] == " "
        name = _named(text, word, start, end, after if close else ("", end, end))
        if name is not None:
            found.append(name)
    return found + _again(text, words, found)


def _named(
    text: str, word: str, start: int, end: int, after: tuple[str, int, int]
) -> FoundName | None:
    """The name that a word is, with the title after it."""
    lists = _lists()
    if after[0] and (title := _TITLE.match(after[0])) and _rest(after[0][title.end() :]):
        sure = _SURE_TITLE.match(after[0]) is not None
        if (
            _person(word, weak=True)
            or word in lists.given
            or (word in lists.family and (sure or word not in _NO_SURNAME))
        ) and (word != "이" or after[0].startswith("씨")):
            return FoundName(start, after[1] + title.end(), "PERSON", True, word in lists.public)
    if (inside := _TITLED.match(word)) and _rest(word[inside.end() :]) and word not in lists.plain:
        name = inside["name"]
        sure = _SURE_TITLE.match(word[len(name) :]) is not None
        if (
            _person(name, weak=True)
            or name in lists.given
            or (len(name) <= 2 and name in lists.family and sure and name not in _NO_SURNAME)
        ):
            return FoundName(start, start + inside.end(), "PERSON", True, name in lists.public)
    label = _LABEL.search(text[max(0, start - 12) : start]) is not None
    opened = start == 0 or text[start - 1] in _OPENS
    cell = opened and (end == len(text) or text[end] in _CLOSES)
    for stem in _stems(word):
        if word in lists.plain or stem in lists.plain:
            return None
        if stem in lists.public:
            return FoundName(start, start + len(stem), "PERSON", False, True)
        if _person(stem, weak=label or cell):
            return FoundName(start, start + len(stem), "PERSON", label or cell, False)
        if stem in lists.given and len(stem) == 2 and stem not in _PAIRS and word[2:] in _CALLS:
            return FoundName(start, start + len(stem), "PERSON", False, False)
        if (
            _person(stem, weak=True)
            and len(stem) == 3
            and word != stem
            and stem[-1] not in _ENDINGS
        ):
            return FoundName(start, start + len(stem), "PERSON", False, False, DOUBTFUL)
        if (
            label
            and 2 <= len(stem) <= 4
            and stem[0] in lists.family
            and stem[1:]
            and stem[-1] in lists.second
        ):
            return FoundName(start, start + len(stem), "PERSON", True, False)
    if (label or len(word) == 2) and word in lists.family and 0 < len(after[0]) <= 2:
        given = after[0].removesuffix("님")
        title = _TITLE.match(text, after[2] + 1) if text[after[2] : after[2] + 1] == " " else None
        if given and given[-1] in lists.second:
            return FoundName(start, title.end() if title else after[2], "PERSON", True, False)
    if (
        opened and after[0] in lists.family and len(word) <= 4
    ):  # a foreign given name before a Korean surname
        edge = after[2] == len(text) or text[after[2]] in _CLOSES
        return FoundName(start, after[2], "PERSON", True, False) if edge else None
    return None


def _stems(word: str) -> list[str]:
    """A word as it stands, and without each particle that it may end with."""
    return [
        word,
        *(
            word[: -len(each)]
            for each in _PARTICLES
            if word.endswith(each) and len(word) > len(each) + 1
        ),
    ]


def without_particle(word: str) -> str:
    """A name without the particle behind it, where a listed name is left; else the word as it is."""
    if word in _lists().given or _person(word, weak=True):
        return word
    return next(
        (stem for stem in _stems(word) if stem in _lists().given or _person(stem, weak=False)), word
    )


def _rest(ending: str) -> bool:
    """Whether what follows a title may follow one."""
    return (
        not ending
        or ending in _PARTICLE
        or (len(ending) <= 4 and ending[0] in "이은는가을를의도께에과와한인입,")
    )


def _person(stem: str, *, weak: bool) -> bool:
    """Whether a word is a surname and a given name: a listed one, or if `weak` any of fitting syllables."""
    lists = _lists()
    for length in (2, 1):
        family, given = stem[:length], stem[length:]
        if family not in lists.family or not given or stem in lists.plain:
            continue
        if given in lists.given or (
            length == 2 and 1 <= len(given) <= 2 and given[-1] in lists.second
        ):
            return True
        if weak and len(given) == 2 and given[0] in lists.first and given[1] in lists.second:
            return True
        if (
            weak
            and len(given) == 1
            and (given in lists.second or given in lists.first)
            and len(stem) == 2
        ):
            return stem not in _PAIRS
    return False


_PAIRS = frozenset(
    "나이 유용 공유 표준 예로 이상 이하 이후 이전 이름 이유 이용 이미 이번 정보 정도 정리 정말 조건 조사 장소 장르 한국 한글 한번 오늘 오전 오후 서울 서류 신청 "
    "안내 안전 안녕 송금 전화 전체 전달 전문 고객 고민 문제 문서 문장 문의 양식 손님 배송 배경 백신 허용 유지 유형 남자 남편 심리 노래 "
    "하루 하나 성능 성격 성별 차이 차량 주말 주소 주문 주의 주제 우리 우유 구매 구분 구성 구조 민원 진행 진단 진료 지역 지금 지도 지원 "
    "지시 원인 원래 원본 방법 방문 방학 공부 공식 공개 공지 현재 현실 현금 함수 함께 변경 변수 여자 여행 여름 추천 추가 도움 도시 도구 "
    "소개 소설 석사 선택 선물 설명 설치 설정 마음 마감 길이 연락 연습 연도 위치 위험 표시 표현 명령 명절 기본 기록 기간 기능 기준 기사 "
    "반복 반대 라면 왕복 금액 금지 인사 인기 인원 제목 제공 제품 제한 모두 모델 모임 국내 국가 국민 어제 은행 편지 용어 용도 예시 예약 "
    "경우 경험 경제 경찰 봉사 사용 사진 사람 사무 사실 사업 사회 사항 부분 부탁 부모 부서 가능 가격 가족 가방 가입 복사 태도 태풍 목록 "
    "목적 목표 형식 형태 피해 두부 감사 감정 동의 동작 동물 온도 온라 호텔 범위 상대 상품 상태 상황 시간 시작 시험 시장 시민 단어 단계 "
    "단순 당신 당일 화면 화장 창문 순서 순간 방향 대리 대표 대학 대화 대상 대출 대신 평가 평균 내용 내일 내부 내년 판매 판단 이사 전무 "
    "주임 형수 고모 이모 박사 석사 노인 소장 차장 강사 강조 황금 홍보 문화 문법 민주 유명 유기 유일 성인 성공 신규 신용 신문 정상 정확 "
    "한자 주인 주민 구체 남동 여동 조선 고려 신라 백제 명나 송나 원나 진짜 최고 최대 최소 최근 최신 최종".split()
)
"""Words of two syllables of which the first is a surname too."""


def _again(text: str, words: list[tuple[str, int, int]], found: list[FoundName]) -> list[FoundName]:
    """Further mentions of names that are certain, whole or by given name, with particles."""
    lists = _lists()
    known: set[str] = set()
    for each in found:
        if each.cue and not each.public and (match := _WORD.match(text, each.start)):
            name = match[0][: each.end - each.start]
            for length in (2, 1):
                if (
                    len(name) in (3, 4)
                    and name[:length] in lists.family
                    and len(name) - length == 2
                ):
                    known |= {name[length:]}
                    break
            known.add(name)
    known -= lists.plain
    known -= _PAIRS
    taken = {each.start for each in found}
    return [
        FoundName(start, start + length, "PERSON", True, False)
        for word, start, _ in words
        if start not in taken
        for length in (4, 3, 2)
        if word[:length] in known
        and len(word) >= length
        and (word[length:] in _PARTICLE or len(word) == length or _TITLE.match(word, length))
    ]
