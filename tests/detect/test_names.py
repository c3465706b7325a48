"""Names: where letters, mails, chats and sentences of many languages put them, they are hidden; public ones stay."""
# ruff: noqa: E501  (texts as they stand)

import re

import pytest

from textveil import Protector

# What is between ⟦ ⟧ is private.
PLACED = (
    "/** @author ⟦Ingrid Baumgartner⟧ */",
    "From: ⟦Costanza Fumagalli⟧ <c.f@example.org>\nTo: ⟦Efisio Pitzalis⟧\nSubject: receipts",
    "Von: ⟦Ueli Zgraggen⟧ <u@example.org>\nAn: Team\nBetreff: Schlüssel",
    "On Tue, 3 May 2022 at 10:12 ⟦Zuzanna Wilk⟧ <z@example.org> wrote:\n> yes",
    "Am 3. Mai schrieb ⟦Torben Kaiser⟧:\n> ja",
    "Author: ⟦Aroha Ngata⟧ <aroha@example.org>\nDate:   Mon May 2\n\n    Fix\n\n    Signed-off-by: ⟦Gary Dhaliwal⟧ <g@example.org>",
    "Dear ⟦Ms Achterberg⟧,\n\nthank you.\n\nBest regards,\n⟦Rosalind Achebe-Clarke⟧\nForm tutor",
    "Hi ⟦Colm⟧,\nI moved.\n\nThanks a mill,\n⟦Caoimhe⟧",
    "Sehr geehrte ⟦Frau Lehmkuhl⟧,\n\nnein.\n\nMit freundlichen Grüßen\n⟦U. Winter⟧",
    "Chère ⟦Madame Petit⟧,\n\nmerci.\n\nCordialement,\n⟦A. Lebreuilly⟧",
    "Estimado ⟦señor Rangel⟧:\n\ngracias\n\nAtentamente,\n⟦S. Prieto⟧",
    "Уважаемая ⟦Таисия Демьяновна⟧!\n\nСпасибо.\n\nС уважением,\n⟦Гурам Лежава⟧",
    "尊敬的⟦葛大壮⟧：\n您的订单已发货。",
    "鬼頭様のご連絡\n⟦鬼頭様⟧\n\nいつもお世話になっております。",
    "Hello, my name is ⟦Zainab Bello-Hughes⟧ and I need help.",
    "I'm ⟦Colm⟧, from accounts.",
    "Meu nome é ⟦Rafael Teixeira⟧, CPF 529.982.247-25",
    "Adım ⟦Deniz Aksoy⟧, TC kimlik no 10000000146",
    "my name is ⟦Lucy Adeyemi⟧, SSN 536-22-8145",
    "ich heiße ⟦Torben Kaiser⟧ und suche Arbeit",
    "je m'appelle ⟦Anaïs Lebreuilly⟧.",
    "我叫⟦巩丽娟⟧，来自成都。",
    "私は⟦鬼頭⟧です。",
    "меня зовут ⟦Никодим⟧, я новенький",
    "मेरा नाम ⟦लोकेन्द्र⟧ है",
    "[19:02] ⟦Bisi Okoro⟧: Good evening\n[19:05] ⟦Tolani⟧: what happened\n[19:06] ⟦Bisi Okoro⟧: Pressure.",
    "03/08/2025, 18:15 - ⟦Shreya Kulkarni⟧: lands 06:40\n03/08/2025, 18:15 - Mum: ok\n",
    "⟦gia_zane⟧: chi porta la torta\n⟦pippo.er⟧: io\n⟦gia_zane⟧: bene\n⟦pippo.er⟧: ciao\n",
)

NAMED = [
    ("zh", "姓名：闻人雪晴\n性别：女", "闻人雪晴"),
    ("zh", "我叫张伟民，想请假。", "张伟民"),
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

PUBLIC = [
    "他很高兴，国庆放假七天，方法很简单。",
    "请讲讲李白和杜甫的诗有什么区别？",
    "北京和上海的高铁要多久？",
    "富士山の初冠雪は例年いつごろ？ 葛飾北斎の絵は何月ごろですか。",
    "お客様各位",
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

TITLES = [
    "Frau",
    "Ms",
    "Madame",
    "señor",
    "先生",
    "様",
    "ちゃん",
    "課長",
    "대리님",
    "님",
    "जी",
    "सुश्री",
    "chị",
]


@pytest.fixture(scope="module")
def protector():
    return Protector()


def told(name):
    """The words of a name without its titles."""
    return [word for word in re.findall(r"[^\W\d_][\w\u0900-\u097f]+", name) if word not in TITLES]


@pytest.mark.parametrize("marked", PLACED)
def test_names_are_hidden_where_letters_mails_and_chats_put_them(protector, marked):
    after = protector.protect(re.sub("[⟦⟧]", "", marked)).text
    assert [
        word for name in re.findall("⟦(.*?)⟧", marked) for word in told(name) if word in after
    ] == []


@pytest.mark.parametrize(("language", "text", "name"), NAMED)
def test_names_are_hidden_in_all_measured_languages(protector, language, text, name):
    after = protector.protect(text).text
    assert [word for word in told(name) if word in after] == []


@pytest.mark.parametrize("text", PUBLIC)
def test_public_names_stay(protector, text):
    assert protector.protect(text).text == text
