"""Names in identifiers: a person in the name of a file is hidden, and the other words of the name stay."""

import pytest

from textveil import Protector
from textveil.detect import stages
from textveil.detect.identifier_names import cut_identifier_names
from textveil.detect.spans import Span

# What is between ⟦ ⟧ is private, and nothing else.
FILES = (
    "Zeugnis_⟦Anna_Kowalska⟧.pdf",
    "notes/Zeugnis_⟦Anna_Kowalska⟧.txt",
    "⟦anna_kowalska⟧_cv.docx",
    "CV-⟦Jan-Nowak⟧.pdf",
    "⟦Kowalska_Anna⟧.txt",
    "Lebenslauf_⟦Müller_Thomas⟧.pdf",
    "lebenslauf-⟦thomas-mueller⟧.docx",
    "Życiorys_⟦Piotr_Wiśniewski⟧.odt",
    "facture_⟦Marie_Dubois⟧_2024.pdf",
    "CV_⟦Émilie_Laurent⟧.pdf",
    "curriculum_⟦Giulia_Rossi⟧.pdf",
    "contrato_⟦Juan_Perez⟧_firmado.pdf",
    "Contrato-⟦María-García⟧.docx",
    "özgeçmiş_⟦Ayşe_Yılmaz⟧.pdf",
    "Договор_⟦Иван_Петров⟧.docx",
    "履歴書_⟦田中太郎⟧.pdf",
    "합격통지서_⟦김민수⟧.pdf",
    "Umowa_⟦Horáková_Eva⟧.txt",
    "Kündigung_⟦Oduya⟧.pdf",
    "report_final_v2.docx",
    "test_user_login.py",
)


def list_files(name):
    """The list in which a file stands, and the place of its name."""
    head = "./README.md\n./customers.csv\n./"
    return f"{head}{name}\n./rota.py", len(head)


@pytest.fixture(scope="module")
def protector():
    return Protector()


def find_persons(protector, text):
    return [(each.start, each.end) for each in protector.find(text) if each.private]


@pytest.mark.parametrize("file", FILES)
def test_a_person_in_a_file_name_is_hidden_and_nothing_else(protector, file):
    text, at = list_files(file.replace("⟦", "").replace("⟧", ""))
    start, end = file.find("⟦"), file.find("⟧")
    meant = [(at + start, at + end - 1)] if start >= 0 else []
    assert find_persons(protector, text) == meant


def test_without_the_stage_a_word_beside_the_name_goes(protector, monkeypatch):
    rest = tuple(stage for stage in stages.STAGES if stage.name != "identifiers")
    monkeypatch.setattr(stages, "STAGES", rest)
    text, at = list_files("notes/Zeugnis_Anna_Kowalska.txt")
    start = at + len("notes/")
    assert any(place[0] == start for place in find_persons(Protector(), text))


def cut(text, *values, privacy=1.0):
    """What is left of a tagger's guesses in a text, and how private each is."""
    spans = [
        Span(0, text.find(value), text.find(value) + len(value), "PERSON", 0.9, "tagger", privacy)
        for value in values
    ]
    return [text[span.start : span.end] for span in cut_identifier_names(spans, [text])]


def test_nothing_is_cut_unless_a_name_in_full_is_left():
    assert cut("Zeugnis_Anna_Kowalska", "Zeugnis", "Anna", "Kowalska") == ["Anna_Kowalska"]
    assert cut("Zeugnis_Anna_Kowalska", "Zeugnis_Anna_Kowalska") == ["Anna_Kowalska"]
    assert cut("Anna_Kowalska_Zeugnis", "Anna", "Kowalska_Zeugnis") == ["Anna_Kowalska"]
    # `Doe` is an ordinary word on no list of names.
    assert cut("Doe_Jane", "Doe", "Jane") == ["Doe", "Jane"]
    assert cut("Doe_Anna_Maria", "Doe", "Anna", "Maria") == ["Doe", "Anna", "Maria"]
    assert cut("Zeugnis_Kowalska", "Zeugnis_Kowalska") == ["Zeugnis_Kowalska"]


def test_words_that_are_no_ends_of_a_name_in_an_identifier_stay():
    assert cut("Sanne_de_Vries_Brief", "Sanne", "de", "Vries", "Brief") == ["Sanne_de_Vries"]
    assert cut("Vertrag_Anna_Kowalska_Jan", "Anna", "Jan") == ["Anna", "Jan"]
    assert cut("Anna Kowalska-Brief", "Anna Kowalska-Brief") == ["Anna Kowalska-Brief"]
    assert cut("Anna Kowalska", "Anna", "Kowalska") == ["Anna", "Kowalska"]


def test_an_unknown_word_beside_a_name_that_stands_alone_is_the_rest_of_it():
    assert cut("scan_oduya_miriam.png", "miriam") == ["oduya", "miriam"]
    assert cut("scan_miriam.png", "miriam") == ["miriam"]
    assert cut("oduya-miriam.png", "miriam") == ["miriam"]


def test_a_name_is_private_if_a_part_of_it_is():
    text = "Zeugnis_Anna_Kowalska"
    spans = [
        Span(0, 8, 12, "PERSON", 0.9, "tagger", 0.2),
        Span(0, 13, 21, "PERSON", 0.8, "tagger", 0.7),
    ]
    (name,) = cut_identifier_names(spans, [text])
    assert (name.start, name.end, name.privacy_score) == (8, 21, 0.7)
    listed = Span(0, 0, 21, "LISTED", 1.0, "lists")
    assert cut_identifier_names([listed], [text]) == [listed]


@pytest.mark.parametrize("run", ["a" * 300_000, "Anna_" * 60_000 + "Kowalska"])
def test_a_long_run_is_read_once(run):
    spans = [Span(0, at, at + 4, "PERSON", 0.9, "tagger") for at in range(0, 50_000, 5)]
    assert cut_identifier_names(spans, [run]) == spans
