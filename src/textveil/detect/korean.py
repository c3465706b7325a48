"""Korean names: their particles and the ranks behind them.

In: a name as it stands in a text. Out: the name without the particle behind it.
Not here: which words are names (the tagger), and the lists (`gazetteers`).
"""

from functools import cache
from typing import NamedTuple

from textveil.detect.gazetteers import names

_PARTICLES = """
    이라고 라고 이라는 라는 입니다 이에요 예요 이랑 에게서 에게 한테 께서 께 으로 로 이가 이는 이를 이도 이의 이랑 은 는 이 가 을 를 의 도 만 와
    과 랑 야 아 이야 이와 입니다만 이었 였다 이며 이고 이다 하고 보다 처럼 마다 부터 까지 밖에 이한테 이에게 네
    """.split()

RANKS = """
    씨 군 양 과장 대리 부장 차장 사장 팀장 실장 대표 이사 상무 전무 주임 사원 선생 교수 박사 원장 간호사 기사 고객 환자 상담사 매니저 변호사 판사
    검사 작가 기자 감독 선배 후배 언니 오빠 형 누나 이모 삼촌 할머니 할아버지 아저씨 아주머니 어머니 어머님 아버님 학생 조교 코치 사모 회장 총무
    반장 소장 국장 계장 조합장 이장 목사 집사 권사 장로 신부 수녀 스님 대위 소령 중위 병장 의사 약사 세무사 회계사 노무사 주무관 사무관 연구원 책임
    선임 수석 본부장 지점장 점장 센터장 교장 교감 담임 어르신 여사 님
    """.split()


class _Korean(NamedTuple):
    family: frozenset[str]
    given: frozenset[str]
    first: frozenset[str]
    second: frozenset[str]
    plain: frozenset[str]


@cache
def _lists() -> _Korean:
    sections = ("family", "given", "first", "second", "plain")
    return _Korean(*(names("hangul", section) for section in sections))


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
    """
    나이 유용 공유 표준 예로 이상 이하 이후 이전 이름 이유 이용 이미 이번 정보 정도 정리 정말 조건 조사 장소 장르 한국 한글 한번 오늘 오전 오후
    서울 서류 신청 안내 안전 안녕 송금 전화 전체 전달 전문 고객 고민 문제 문서 문장 문의 양식 손님 배송 배경 백신 허용 유지 유형 남자 남편 심리
    노래 하루 하나 성능 성격 성별 차이 차량 주말 주소 주문 주의 주제 우리 우유 구매 구분 구성 구조 민원 진행 진단 진료 지역 지금 지도 지원 지시
    원인 원래 원본 방법 방문 방학 공부 공식 공개 공지 현재 현실 현금 함수 함께 변경 변수 여자 여행 여름 추천 추가 도움 도시 도구 소개 소설 석사
    선택 선물 설명 설치 설정 마음 마감 길이 연락 연습 연도 위치 위험 표시 표현 명령 명절 기본 기록 기간 기능 기준 기사 반복 반대 라면 왕복 금액
    금지 인사 인기 인원 제목 제공 제품 제한 모두 모델 모임 국내 국가 국민 어제 은행 편지 용어 용도 예시 예약 경우 경험 경제 경찰 봉사 사용 사진
    사람 사무 사실 사업 사회 사항 부분 부탁 부모 부서 가능 가격 가족 가방 가입 복사 태도 태풍 목록 목적 목표 형식 형태 피해 두부 감사 감정 동의
    동작 동물 온도 온라 호텔 범위 상대 상품 상태 상황 시간 시작 시험 시장 시민 단어 단계 단순 당신 당일 화면 화장 창문 순서 순간 방향 대리 대표
    대학 대화 대상 대출 대신 평가 평균 내용 내일 내부 내년 판매 판단 이사 전무 주임 형수 고모 이모 박사 석사 노인 소장 차장 강사 강조 황금 홍보
    문화 문법 민주 유명 유기 유일 성인 성공 신규 신용 신문 정상 정확 한자 주인 주민 구체 남동 여동 조선 고려 신라 백제 명나 송나 원나 진짜 최고
    최대 최소 최근 최신 최종
    """.split()
)
"""Words of two syllables of which the first is a surname too."""
