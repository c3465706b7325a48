"""Names in other scripts and languages than English."""

import random
import time

import pytest

from textveil.protect.scripts import Scripts

PRIVATE = 0.5

FOUND = [
    ("zh", "姓名：闻人雪晴\n性别：女", "闻人雪晴"),
    ("zh", "我叫张伟民，想请假。", "张伟民"),
    ("zh", "请帮我回复屈先生，他的宽带坏了。", "屈先生"),
    ("zh", "老蒋 9:02\n合同寄了没", "老蒋"),
    ("zh", "聯絡人：陳佩珊", "陳佩珊"),
    ("ja", "昨日、鈴木様からお電話がありました。", "鈴木様"),
    ("ja", "お名前と氏名：九十九 遥香", "九十九 遥香"),
    ("ja", "娘のカミラちゃんが通訳をした。", "カミラちゃん"),
    ("ja", "田中課長に報告してください。", "田中課長"),
    ("ko", "탁 대리님, 안녕하세요.", "탁 대리님"),
    ("ko", "고객명: 남궁 옥 님", "남궁"),
    ("ko", "어제 김민준이 전화했어요.", "김민준"),
    ("ru", "Уважаемая Таисия Демьяновна!", "Таисия Демьяновна"),
    ("ru", "Подпись: Г. О. Лежава", "Г. О. Лежава"),
    ("ru", "Передал Дарье Ступак из группы почты.", "Дарье Ступак"),
    ("ar", "السيد خلفان المزيني يشتكي من الخصم.", "خلفان المزيني"),
    ("ar", "زوجي أبو نضال مريض.", "أبو نضال"),
    ("hi", "सुश्री नफ़ीसा बानो ने शिकायत की।", "नफ़ीसा बानो"),
    ("hi", "वाजपेयी जी सोमवार को आएँगे।", "वाजपेयी जी"),
    ("vi", "Em là Lương Bá Kiệt, tổ đóng gói.", "Lương Bá Kiệt"),
    ("vi", "Dạ em chào chị Hạnh ạ", "chị Hạnh"),
    (
        "de",
        "Ich habe mit Frau Müller gesprochen und bitte um die Unterlagen, die nicht da sind.",
        "Müller",
    ),
    (
        "fr",
        "Bonjour, je vous écris pour le dossier de M. Trouillard, qui est dans la liste.",
        "Trouillard",
    ),
    (
        "es",
        "Le escribo en relación con mi hijo, y el Sr. Rangel no está de acuerdo con su nota.",
        "Rangel",
    ),
    (
        "it",
        "Gentile sig. Pitzalis, il rimborso non è per lei ma per la ditta della zona.",
        "Pitzalis",
    ),
    (
        "pl",
        "Panie Zbigniewie, nie jest jasne, czy faktura jest na firmę, proszę o korektę.",
        "Zbigniewie",
    ),
    ("tr", "Tevfik Bey bu paket için bir imza olarak ne dedi, daha var mı?", "Tevfik"),
    ("nl", "Kunt u het dossier van mevrouw Hoekstra naar mij sturen? Het is niet er.", "Hoekstra"),
]

LEFT = [
    "他很高兴，国庆放假七天，方法很简单。",
    "请讲讲李白和杜甫的诗有什么区别？",
    "北京和上海的高铁要多久？",
    "富士山の初冠雪は例年いつごろ？ 葛飾北斎の絵は何月ごろですか。",
    "お客様各位、神様のように優しい店長さん",
    "세종대왕이 한글을 만든 이유는 무엇인가요?",
    "조건문과 반복문의 차이를 설명해 주세요. 정말 고맙습니다.",
    "В каком году Пушкин закончил «Евгения Онегина»? Вера в то, что уксус держит цвет, — миф.",
    "لماذا هجا المتنبي كافورًا الإخشيدي؟ كان يومًا سعيدًا وفي قلبه نور وأمل.",
    "प्रेमचंद के उपन्यास 'गोदान' का सार बताइए। आशा है आनंद आएगा।",
    "Phân tích giúp em 4 câu đầu trong Truyện Kiều của Nguyễn Du. Đi Hà Nội mùa nào đẹp?",
    "Warum werden alle Substantive großgeschrieben? Jacob Grimm war gegen die Großschreibung, das ist nicht neu.",
    "Dans Les Misérables, pourquoi Javert poursuit-il Jean Valjean ? Je dois parler de Victor Hugo et de la préface.",
    "A plain English prompt about Robert Taylor and the capital of Australia.",
]


def private(text: str) -> list[str]:
    return [
        text[span.start : span.end] for span in Scripts().find([text]) if span.private >= PRIVATE
    ]


@pytest.mark.parametrize(("language", "text", "name"), FOUND)
def test_names_of_private_persons_are_found(language: str, text: str, name: str) -> None:
    assert any(name in found for found in private(text)), language


@pytest.mark.parametrize("text", LEFT)
def test_words_and_famous_people_are_left(text: str) -> None:
    assert private(text) == []


def test_a_famous_person_is_found_as_public() -> None:
    text = "В каком году Пушкин родился?"
    spans = Scripts().find([text])
    assert [(text[span.start : span.end], span.private < PRIVATE) for span in spans] == [
        ("Пушкин", True)
    ]


def test_further_mentions_of_a_certain_name_are_found() -> None:
    text = "借款人：葛大壮\n后来大壮说要重写。"
    assert private(text) == ["葛大壮", "大壮"]


def test_a_further_mention_may_end_the_text() -> None:
    assert private("借款人：葛大壮\n后来重写的是大壮") == ["葛大壮", "大壮"]


def test_a_title_behind_a_name_in_kana_is_not_a_name_of_its_own() -> None:
    assert private("保護者のペレイラ様（母）。お客様各位、様式は別紙。") == ["ペレイラ様"]
    assert "様" not in private("本多 ミチル 様、山田様、様子を見る")


def test_spans_lie_in_their_texts_whatever_is_given() -> None:
    alphabet = (
        "张伟先生老，：\n 鈴木様さんアキコ김민준씨님 ИванПётрович. О."
        "أبومحمدالسيد عبدرामсингजीश्री NguyễnThịchị Frau Müller\"'()·ـ\u200d\u0301"
    )
    draw = random.Random(7)
    texts = ["".join(draw.choices(alphabet, k=draw.randrange(60))) for _ in range(1000)]
    for span in Scripts().find(texts):
        assert 0 <= span.start < span.end <= len(texts[span.text])
        assert 0 <= span.private <= 1


@pytest.mark.parametrize(
    "piece",
    [
        "张",
        "张伟",
        "王先生 ",
        "鈴木",
        "鈴木様",
        "あ",
        "アキコ",
        "김",
        "김민준 ",
        "Иван ",
        "И. ",
        "أبو ",
        "محمد ",
        "श्री ",
        "राम ",
        "Nguyễn ",
        "chị Hạnh ",
        "Frau ",
        "Anna Müller ",
        "\n",
    ],
)
def test_time_grows_with_the_text(piece: str) -> None:
    def seconds(count: int) -> float:
        text = (piece * count)[:count]
        started = time.process_time()
        Scripts().find([text])
        return time.process_time() - started

    seconds(1000)  # lists are read
    short = min(seconds(4_000) for _ in range(3))
    assert (
        min(seconds(16_000) for _ in range(2)) < 12 * short + 0.2
    )  # quadratic time would be 16 times as much
