"""Titles: where a name begins and ends, without the words by which people are called."""

import pytest

from textveil import Protector, Session
from textveil.detect.name_bounds import find_name_bounds, is_nobody, is_titled_name, split_names
from textveil.text import vocabulary
from textveil.text.name_lists import load_names


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Mrs Halvorsen's", "Halvorsen"),
        ("Dr. Sr. Lima", "Lima"),
        ("bruder Kilian", "Kilian"),
        ("Herr Sauer", "Sauer"),
        ("Herrn Sauer", "Sauer"),
        ("Frau Wilczek.", "Wilczek"),
        ("준호가", "준호"),
        ("이서연이고", "이서연"),
        ("모나미가", "모나미가"),
        ("이서은", "이서은"),
        ("الدكتور صديقي", "صديقي"),
        ("Anna K.", "Anna K."),
        ("صديقي أحمد", "أحمد"),
        ("chị Hoài", "Hoài"),
        ("г-жа Лаптева-Нуриева", "Лаптева-Нуриева"),
        ("السيدة نوال", "نوال"),
        ("डॉ. प्रवेश टोप्पो", "प्रवेश टोप्पो"),
        ("साहू जी", "साहू"),
        ("Nermin Hanım'ın", "Nermin"),
        ("Kerem Bey'in", "Kerem"),
        ("Kerem bey", "Kerem"),
        ("Sayın Mestanlı", "Mestanlı"),
        ("Mr. Rev Kumar", "Rev Kumar"),
        ("Rev. Kumar", "Kumar"),
        ("Dr. Heer", "Heer"),
        ("mr heer", "heer"),
        ("heer van Lierop", "van Lierop"),
        ("Gentile Signora Bellandi", "Bellandi"),
        ("Ông Tuấn", "Tuấn"),
        ("Dr. Ông", "Ông"),
        ("田中さん", "田中"),
        ("田中さんです", "田中"),
        ("トムくん", "トム"),
        ("李小姐", "李"),
        ("홍길동 과장님", "홍길동"),
        ("길동현에게", "길동현"),
        ("Patentante Hannelore", "Hannelore"),
        ("Voorzitter Uilke Vorst", "Uilke Vorst"),
        ("Prezes Hubert Karp", "Hubert Karp"),
        ("maestra Xóchitl", "Xóchitl"),
        ("Dì Sáu Nhàn", "Sáu Nhàn"),
        ("خالتي صباح", "صباح"),
        ("Âdem Dayı", "Âdem"),
        ("सबरी काकी", "सबरी"),
    ],
)
def test_words_by_which_people_are_called_stand_outside_of_the_name(value: str, name: str) -> None:
    start, end = find_name_bounds("PERSON", value)
    assert value[start:end] == name


@pytest.mark.parametrize(
    "value",
    [
        "Don Johnson",
        "Pat Smith",
        "Anh Tuấn",
        "Bruder Kilian",
        "O'Brien",
        "Sana'a",
        "Isma'il",
        "さんま",
        "홍길은",
        "Thomas Mann",
        "Michael Bay",
        "Sarah Abi",
        "Yasiin Bey",
        "Dona Smith",
        "Heer Singh",
        "Bayan Ahmad",
        "Rev Kumar",
        "Heer Sr",
        "Ing",
        "pat smith",
        "heer singh",
        "السيد",
    ],
)
def test_what_may_be_part_of_a_name_stays_in_it(value: str) -> None:
    assert find_name_bounds("PERSON", value) == (0, len(value))


def test_a_title_may_reach_over_the_end_of_what_was_found() -> None:
    assert find_name_bounds("PERSON", "宇佐美部", "長に") == (0, 3)
    assert find_name_bounds("PERSON", "宇佐美", "部長に") == (0, 3)


def test_titles_alone_are_nobody_and_names_are_somebody() -> None:
    assert all(map(is_nobody, ("Mr", "Dr.", "Frau Dr.", "السيدة", "chị")))
    assert not any(map(is_nobody, ("Frau Holle", "Don", "Mann", "Pat", "")))
    listed = {word.lower() for word in load_names("PERSON").words}
    for title in vocabulary.get_words("titles_or_names"):
        assert not is_nobody(title.capitalize())
        assert not is_nobody(f"Dr. {title.capitalize()}")
    assert listed.isdisjoint(
        vocabulary.get_words("titles") - vocabulary.get_words("titles_or_names")
    )
    assert listed.isdisjoint(vocabulary.get_words("titles_in_small"))


def test_only_persons_have_titles_and_only_names_endings() -> None:
    assert find_name_bounds("ORGANIZATION", "Dr Oetker's") == (0, 9)
    assert find_name_bounds("ADDRESS", "St James's") == (0, 10)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "Sehr geehrte Frau Halvorsen, Frau Halvorsen aus Bünde rief an: 0521 5577231.",
            "Halvorsen",
        ),
        ("田中さんの電話番号は090-3318-5540です。田中様に伝えてください。", "田中"),
        ("홍길동 씨 전화는 010-3350-7716입니다. 홍길동에게 전해 주세요.", "홍길동"),
    ],
)
def test_a_name_is_gone_with_every_title(text: str, left: str) -> None:
    assert left not in Protector("prompt").protect(text, Session()).text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Please call Dr. Heer about my test results.", "Heer"),
        ("Signor Gentile owes us 900 euros", "Gentile"),
        ("Mr. Heer called about his loan.", "Heer"),
        ("My sister Bayan is in the clinic in Bergen", "Bayan"),
        ("My neighbour Bayan Ahmad is ill.", "Bayan"),
        ("My client Dona Smith owes me money", "Dona"),
        ("Heer Singh owes us 900 euros.", "Heer"),
        ("Mr. Rev Kumar is my landlord", "Rev"),
    ],
)
def test_a_name_that_is_a_title_elsewhere_is_hidden(text: str, name: str) -> None:
    released = Protector("prompt").protect(text, Session()).text
    assert name not in released
    assert "<PERSON_1>" in released


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("Aurora y Fidel", ["Aurora", "Fidel"]),
        ("Abelardo e da Tomásia", ["Abelardo", "Tomásia"]),
        ("Alperen'in", ["Alperen"]),
        ("Işılay Dereli'dir", ["Işılay Dereli"]),
        ("Mala'e", ["Mala'e"]),
        ("d'Aurélie Marchand", ["Aurélie Marchand"]),
        ("dell'Avvocato Rossi", ["Avvocato Rossi"]),
        ("Jean d'Ormesson", ["Jean d'Ormesson"]),
        ("D'Angelo", ["D'Angelo"]),
        ("Sjuul van", ["Sjuul van"]),
        ("Peter sand", ["Peter sand"]),
        ("박 사랑", ["박 사랑"]),
        ("van der Berg", ["van der Berg"]),
        ("Jan van de Velde", ["Jan van de Velde"]),
        ("W. B. Yeats", ["W. B. Yeats"]),
        ("Dr. Anna Maria", ["Dr. Anna Maria"]),
        ("St. John", ["St. John"]),
        ("أم عون", ["أم عون"]),
    ],
)
def test_what_reaches_further_than_a_name_is_cut(value: str, found: list[str]) -> None:
    assert [value[start:end] for start, end in split_names("PERSON", value)] == found


def test_a_string_of_unicode_in_sql_begins_behind_its_letter() -> None:
    assert [*split_names("PERSON", "N'Marguerite", "', ")] == [(2, 12)]
    assert [*split_names("PERSON", "N'Golo", " Ba")] == [(0, 6)]


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        (
            "Merhaba, ben Berfin Yılmaz. Yarın Berfin'den haber gelir, ev Berfin Yılmaz’ındır.",
            "Merhaba, ben <PERSON_1>. Yarın <PERSON_1_GIVEN>'den haber gelir, ev <PERSON_1>’ındır.",
        ),
        (
            "INSERT INTO clients (name, mail) VALUES (N'Robert Taylor', N'rob.taylor@mail.example');",
            "INSERT INTO clients (name, mail) VALUES (N'<PERSON_1>', N'<EMAIL_1>');",
        ),
        (
            "Je suis la mère d'Aurélie Marchand. Le chien d'Aurélie est malade.",
            "Je suis la mère d'<PERSON_1>. Le chien d'<PERSON_1_GIVEN> est malade.",
        ),
        (
            "My neighbour Robert Taylor'll call you. Robert'd like tea.",
            "My neighbour <PERSON_1>'ll call you. <PERSON_1_GIVEN>'d like tea.",
        ),
    ],
)
def test_what_an_apostrophe_joins_to_a_name_stays(text: str, sent: str) -> None:
    session = Session()
    assert Protector().protect(text, session).text == sent
    assert session.restore(sent) == text


def test_a_title_with_one_name_is_somebody() -> None:
    assert all(map(is_titled_name, ["Signor Gentile", "Frau Meyer-Lund", "Mr. Heer"]))
    assert not any(
        map(is_titled_name, ["Signor", "Gentile", "Frau Holle Betten GmbH", "Mr MAX", "St. Moritz"])
    )


def test_two_people_in_two_sentences_are_two_and_the_words_between_stay() -> None:
    sent = Protector().protect("I am Giovanni Gentile. Signor Gentile is my boss.", Session()).text
    assert sent.startswith("I am <PERSON_1>. Signor <PERSON_")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My neighbour Peter sand owes me 900 euros.", "sand"),
        ("My client Peter sand, born 1970, asks for a contract.", "sand"),
        ("Please call my tenant Nguyen van an (an.nguyen@example.org) today.", " van "),
    ],
)
def test_a_common_word_behind_a_name_is_hidden_with_it(text: str, name: str) -> None:
    assert name not in Protector().protect(text, Session()).text
