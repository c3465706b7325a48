"""Once found, always hidden: values and their telling parts in every spelling, and ordinary words only as names."""

import time

import pytest

from textveil.detect.name_bounds import find_name_bounds
from textveil.detect.normalization import find_name_parts, normalize_value
from textveil.detect.occurrences import PrivateValue, ValueIndex, find_occurrences
from textveil.detect.spans import Span


def elsewhere(text, *found, before=(), public=()):
    """What is hidden besides what a detector finds, which is the first place of each value only."""

    def span(type_, value, private=1.0):
        start = text.index(value)
        return Span(0, start, start + len(value), type_, 1.0, "first", private)

    spans = [span(type_, value) for type_, value in found]
    known = ValueIndex([PrivateValue(type_, value, 1.0) for type_, value in before])
    made, *_ = find_occurrences(
        [text], spans, known, [span(type_, value, 0.1) for type_, value in public]
    )
    return [text[each.start : each.end] for each in made]


def persons(text, *names):
    """What is hidden in a text of a session in which these persons are known."""
    return elsewhere(text, before=[("PERSON", name) for name in names])


def test_a_month_that_somebody_is_called_stays_as_a_month():
    text = "Then we saw April in April, on 3 April and in May, as April said."
    assert persons(text, "April") == ["April", "April"]
    assert persons("Since April 2024 I miss April, and last April too.", "April") == ["April"]
    assert (
        persons(
            "Both, June (5) and Tom, are ill. He is 12. June, 34, fell. She is 9.\nJune is ill.",
            "June",
        )
        == ["June"] * 3
    )


def test_parts_of_a_name_in_headings():
    text = "Robert Taylor is late.\n# Robert\n## Taylor\n"
    assert elsewhere(text, ("PERSON", "Robert Taylor")) == ["Robert", "Taylor"]


@pytest.mark.parametrize(
    "spelling",
    [
        "OKONKWO",
        "okonkwo",
        "Okónkwo",
        "Ok\u00adonkwo",
        "O\u200bkon\u200bkwo",
        "Ｏｋｏｎｋｗｏ",
        "Ok-onkwo",
        "Oko\u0301nkwo",
    ],
)
def test_every_spelling_of_a_name(spelling):
    assert persons(f"it was {spelling}, again", "Okonkwo") == [spelling]


@pytest.mark.parametrize(
    "spelling",
    ["Anne-Marie", "Anne Marie", "AnneMarie", "anne_marie", "ANNE-\nMARIE", "Anne‑Marie"],
)
def test_with_and_without_hyphens(spelling):
    assert persons(f"to {spelling}!", "Anne-Marie") == [spelling]
    assert persons(f"to {spelling}!", "Anne Marie") == [spelling]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("okonkwo_notes.txt", ["okonkwo"]),
        ("#Okonkwo @okonkwo", ["Okonkwo", "okonkwo"]),
        ("a.okonkwo@example.org", ["okonkwo"]),
        ("https://example.org/~okonkwo/", ["okonkwo"]),
        ("okonkwo85", ["okonkwo"]),
        ("Okonkwo's and Okonkwo’s", ["Okonkwo", "Okonkwo"]),
        ("Okonkwos, Okonkwoma, reokonkwo", []),
        ("Okon kwo; Okon. Kwo", []),
    ],
)
def test_only_whole_words(text, hidden):
    assert persons(text, "Okonkwo") == hidden


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        ("Will Byrne", "Will you ask? I will. WILL YOU?", []),
        ("Will Byrne", "Then Will came, and byrne.", ["Will", "byrne"]),
        ("Mark Okafor", "Will you mark it? Mark the page.", []),
        ("Mark Okafor", "Dear Mark, we asked Mark to mark it.", ["Mark", "Mark"]),
        ("Mark Okafor", "mark okafor", ["mark okafor"]),
        ("Hope Okafor", "Hope and Fear\n\nAll Of Us Hope\n", []),
        ("Hope Okafor", "- Hope\n1. Hope\n> Hope\n# Hope", []),
        ("May Okafor", "It was in May. Ms May was there.", ["May"]),
        ("Rose Okafor", "a rose, and the Rose of Okafor", ["Rose", "Okafor"]),
        ("Hope", "I hope. So does Hope.", ["Hope"]),
        ("Mark Hope", "Mark Hope; mark, hope", ["Mark Hope"]),
        ("Li Wu", "li, LI, so Li and Wu", ["Li", "Wu"]),
        ("Maria da Silva", "da, DA, de Silva", ["Silva"]),
        ("Dr. Anna Berg", "the dr. said: anna", ["anna"]),
        ("Robert", "robert ROBERT", ["robert", "ROBERT"]),
    ],
)
def test_ordinary_words_need_a_context(name, text, hidden):
    assert persons(text, name) == hidden


def test_small_letters_of_other_languages_may_be_words():
    """Cruz is a name, and a cross; of English it is known which words are ordinary."""
    spanish = (
        "Fuimos por la rotonda donde tienen una cruz de piedra, y luego hablamos despacio con "
    )
    assert persons(spanish + "Cruz, CRUZ, @cruz, cruz_cv.pdf y ana cruz", "Ana Cruz") == [
        "Cruz",
        "CRUZ",
        "cruz",
        "cruz",
        "ana cruz",
    ]
    english = (
        "We went around the corner where they have that old stone, and then talked slowly with "
    )
    assert persons(english + "cruz", "Ana Cruz") == ["cruz"]


def test_a_title_alone_is_nobody():
    assert persons("Dear Mr Berg, Mr", "Mr", "van") == []


def test_words_of_organizations_tell_only_if_they_are_rare():
    text = "ltd bank street university and brightwaters, HALVORSEN, leeds"
    before = [
        ("ORGANIZATION", "Halvorsen & Brightwater Ltd"),
        ("ORGANIZATION", "University of Leeds"),
    ]
    assert elsewhere(text, before=before) == ["HALVORSEN"]
    assert elsewhere("UNIVERSITY OF LEEDS", before=before) == ["UNIVERSITY OF LEEDS"]


def test_places_are_found_whole_and_ordinary_ones_as_names():
    before = [("LOCATION", "Reading"), ("LOCATION", "Villa Nova")]
    assert elsewhere("reading in Reading, villa, VILLA-NOVA", before=before) == [
        "Reading",
        "VILLA-NOVA",
    ]


@pytest.mark.parametrize(
    ("type_", "value", "text", "hidden"),
    [
        (
            "PHONE",
            "+351 21 000 00 00",
            "call 351210000000 or 351-21-000-00-00",
            ["351210000000", "351-21-000-00-00"],
        ),
        ("EMAIL", "a.b@x.org", "A.B@X.ORG, ab@x.org", ["A.B@X.ORG"]),
        ("IP", "10.0.0.12", "100012 10.0.0.12", ["10.0.0.12"]),
        ("SECRET", "p4ss-w0rd!", "P4SS-W0RD! p4ss w0rd", ["P4SS-W0RD!"]),
        ("HANDLE", "sunny", "a sunny day", []),
        ("AGE", "34567", "34567 people", []),
        ("SECRET", "1234", "1234 words", []),
        ("ID", "AB-12345", "ab12345 12345", []),
    ],
)
def test_identifiers(type_, value, text, hidden):
    assert elsewhere(text, before=[(type_, value)]) == hidden


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        ("王小明", "我和王小明说，小明很好", ["王小明", "小明"]),
        ("김민수", "김민수는 갔다. 민수가", ["김민수", "민수"]),
        ("山田太郎", "山田さんと太郎", ["山田", "太郎"]),
        ("สมชาย", "คุณสมชายมา", ["สมชาย"]),
        ("Иван Петров", "ИВАН и петров", ["ИВАН", "петров"]),
        ("محمد", "مُحَمَّد", ["مُحَمَّد"]),
    ],
)
def test_scripts(name, text, hidden):
    assert persons(text, name) == hidden


def test_a_part_in_a_longer_public_name_stays():
    text = "Robert Taylor likes Taylor Swift, TAYLOR, and Jordan"
    public = [("PERSON", "Taylor Swift"), ("LOCATION", "Jordan")]
    assert elsewhere(text, ("PERSON", "Robert Taylor"), public=public) == ["TAYLOR"]
    assert elsewhere(text, before=[("PERSON", "Ann Jordan")], public=public) == []
    assert elsewhere(text, before=[("PERSON", "Taylor Swift")], public=public) == [
        "Taylor",
        "Taylor Swift",
        "TAYLOR",
    ]


@pytest.mark.parametrize("name", ["R. Tailworth", "Mr Tailworth", "Mr R. Tailworth"])
def test_a_public_name_of_initials_and_titles_keeps_no_part(name):
    text = f"A summary about {name}, please."
    assert elsewhere(text, before=[("PERSON", "Robert Tailworth")], public=[("PERSON", name)]) == [
        "Tailworth"
    ]


def test_texts_before_are_left_alone():
    texts = ["Ask Taylor", "Robert Taylor", "ask TAYLOR"]
    spans = [Span(1, 0, 13, "PERSON", 1.0, "first")]
    made, news, _ = find_occurrences(texts, spans, ValueIndex(), [])
    assert [(span.text, span.start) for span in made] == [(2, 4)]
    assert [[value.text for value in each] for each in news] == [[], ["Robert Taylor"], []]
    assert find_occurrences(texts, spans, None, [])[0] == [], (
        "without a session texts have nothing to do with one another"
    )


def test_titles_and_possessives_are_no_part_of_a_name():
    for text, name in (
        ("Mr Taylor's", "Taylor"),
        ("Dr. med. Berg", "med. Berg"),
        ("Frau Berg’s", "Berg"),
        ("Mr", "Mr"),
    ):
        start, end = find_name_bounds("PERSON", text)
        assert text[start:end] == name
    assert find_name_bounds("ORGANIZATION", "Lloyd's") == (0, 5)
    assert find_name_bounds("SECRET", "Mr x's") == (0, 6)


def test_what_is_alike():
    assert normalize_value("PERSON", "Jürgen  Groß") == normalize_value("PERSON", "JURGEN-GROSS")
    assert normalize_value("PERSON", "が") != normalize_value("PERSON", "か")
    assert normalize_value("EMAIL", "a.b@x") != normalize_value("EMAIL", "ab@x")
    assert normalize_value("SECRET", "A\u200bB") == normalize_value("SECRET", "ab")
    assert dict(find_name_parts("EMAIL", "a b")) == {}


@pytest.mark.slow
def test_many_values_and_long_texts_are_fast():
    """10,000 names and a text of 400 kB; what grows with their product would take hours."""
    names = [
        PrivateValue("PERSON", f"Qo{'abcdefghij'[i % 10]}v{i:x} Zu{i:x}rk".replace("0", "o"), 1.0)
        for i in range(10_000)
    ]
    sought = ValueIndex(names)
    text = "the river met Zu1frk by the old stone bridge. " * 8_700
    started = time.process_time()
    made, *_ = find_occurrences([text], [], sought, [])
    assert len(made) == 8_700
    assert time.process_time() - started < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a " * 100_000,
        "a-" * 100_000,
        "a" * 200_000,
        "\u200b" * 200_000,
        "王" * 200_000,
        "1." * 99_999,
    ],
)
def test_no_text_takes_quadratic_time(text):
    sought = ValueIndex(
        [
            PrivateValue("PERSON", name, 1.0)
            for name in ("a " * 120, "王王王王", "a-a-a-a b", "aaaa 1 1 1 1 1 1 1 1 1 b")
        ]
    )
    started = time.process_time()
    find_occurrences([text], [], sought, [])
    assert time.process_time() - started < 20
