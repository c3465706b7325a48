"""Forms, lists of contacts and neighbours: what is printed is nobody's, and a span ends with its value."""

import pytest

from textveil import Protector
from textveil.detect.spans import Span
from textveil.detect.trimming import is_heading

PROTECTOR = Protector()


@pytest.mark.parametrize(
    "text",
    [
        "Social security wages 616.79",
        "Federal income tax withheld 1234.56",
        "SSN 1234.56 and account 7812.40",
        "Consent form and Year 6 place. Application follows.",
        "OMB No. 1545-0008  Form W-2",
        "The book has the ISBN 978-3-16-148410-0.",
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit.",
        "Population 601 234 567\nArea 302 345 678\n",
    ],
)
def test_amounts_forms_and_filler_are_nobodys(text: str) -> None:
    assert PROTECTOR.protect(text).text == text


@pytest.mark.parametrize(
    ("text", "released"),
    [
        (
            "PAYER\nStreet\nB. DANE PODATNIKA\nD. PŁATNIK\nNazwisko: Kowalska\n",
            "PAYER\nStreet\nB. DANE PODATNIKA\nD. PŁATNIK\nNazwisko: <PERSON_1>\n",
        ),
        ("B. ANNA KOWALSKA\nPESEL 44051401359", "<PERSON_1>\nPESEL <NATIONAL_ID_1>"),
        ("Handy 0151 23456789", "Handy <PHONE_1>"),
        ("IBAN: DE89370400440532013000 COBADEFFXXX", "IBAN: <IBAN_1> <ACCOUNT_1>"),
        (
            "Contacts: Anna (601 234 567), Piotr (602 345 678)",
            "Contacts: <PERSON_1> (<PHONE_1>), <PERSON_2> (<PHONE_2>)",
        ),
        ("mob 9876543210", "mob <PHONE_1>"),
        ("Consent form WLP-038 signed.", "Consent form <ID_1> signed."),
        ("Saluti,\nL. A.\n", "Saluti,\n<PERSON_1>.\n"),
        ("l'enfant Nino (8 ans)", "l'enfant <PERSON_1> (<AGE_1> ans)"),
        (
            "I am Ingrid Aasheim, Storgata 14, 0155 Oslo. Tom Hale lives next door.",
            "I am <PERSON_1>, <ADDRESS_1>. <PERSON_2> lives next door.",
        ),
        (
            "Nombre: Aurelio.\nNHC: 4418820.\nCP: 06200.\n",
            "Nombre: <PERSON_1>.\nNHC: <MEDICAL_RECORD_1>.\nCP: <ADDRESS_1>.\n",
        ),
        (
            "I am Ingrid Aasheim, Storgata 14, 0155 Oslo",
            "I am <PERSON_1>, <ADDRESS_1>",
        ),
        ("Take https://, not http://. (file://)", "Take https://, not http://. (file://)"),
        ("Ich bin Tom Becker, Hauptstr. 5", "Ich bin <PERSON_1>, <ADDRESS_1>"),
        ("thanks @jdoe42. Bye", "thanks <HANDLE_1>. Bye"),
        ("numer karty: 4001 6595 5647 6442.", "numer karty: <CARD_1>."),
    ],
)
def test_a_span_is_its_value(text: str, released: str) -> None:
    assert PROTECTOR.protect(text).text == released


def test_numbers_beside_names_are_telephones_and_beside_other_words_are_not() -> None:
    contacts = PROTECTOR.find("Anna 601 234 567\nPiotr 602 345 678\nMaria 603 456 789\n")
    assert sum(finding.type == "PHONE" for finding in contacts if finding.hidden) == 3
    for text in ("Paris 612 345 678\nRome 613 345 123\n", "FV 0942/11/2026 oraz FV 0947/04/2026"):
        assert "<PHONE_1>" not in PROTECTOR.protect(text).text


def test_scripts_without_capitals_have_no_headings_in_capitals() -> None:
    text = "管理者 鵜飼 に通知 [INFO]"
    span = Span(0, 4, 6, "PERSON", 0.9, "tagger")
    assert not is_heading(span, [text])
    assert is_heading(Span(0, 3, 7, "PERSON", 0.9, "tagger"), ["B. DANE PODATNIKA"])


def test_a_numbered_list_of_people_in_capitals_is_no_heading() -> None:
    text = "TENANTS\n\n1. JOHN MARTIN SMITH\n2. WILL GREEN\n"
    assert PROTECTOR.protect(text).text == "TENANTS\n\n1. <PERSON_1>\n2. <PERSON_2>\n"
