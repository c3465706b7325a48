"""Prompts as people write them, through the profile as it ships: what is hidden, what stays, what comes back.

In: invented prompts. Not here: how often it fails (the bench measures that), and single detectors.
"""

import csv
import io
import json
import re

import pytest

from textveil.pipeline import Protector
from textveil.session import Session


@pytest.fixture(scope="module")
def guard():
    return Protector()


@pytest.mark.parametrize(
    "prompt",
    [
        "What is the capital of Australia?",
        "dosage of Ibuprofen and Tylenol for a child",
        "What is a Dyson sphere?",
        "Name,Town,Amount\nApples,Pears,12\n",
        "Who wrote Pride and Prejudice, and when did Jane Austen die?",
        "Compare Google Cloud and AWS for a small shop in Germany",
        "Will you mark it? I hope so, and may it rain in June.",
        "Explain the theorem of Green as if I were 5",
        "# Getting Started\n\nRun `pip install numpy==2.1.0` on port 8080.",
    ],
)
def test_what_holds_nothing_private_is_not_altered(guard, prompt):
    assert guard.protect(prompt).text == prompt


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        (
            "My tenant is Robert Taylor.\n\n# Robert\n## Taylor\n",
            "My tenant is <PERSON_1>.\n\n# <PERSON_1_GIVEN>\n## <PERSON_1_FAMILY>\n",
        ),
        (
            "Mrs Okonkwo called. OKONKWO wants a refund; okonkwo's invoice is late.",
            "Mrs <PERSON_1> called. <PERSON_1_B> wants a refund; <PERSON_1_C>'s invoice is late.",
        ),
        (
            "Fix this CSV:\nfirst_name,last_name,email\nMaria,Silva,maria@example.org\n",
            "Fix this CSV:\nfirst_name,last_name,email\n<PERSON_1>,<PERSON_2>,<EMAIL_1>\n",
        ),
        (
            "# author: Ngozi Adeyemi\nDB_PASS = 'hunter2!x'\nprint('/home/nadeyemi/data.csv')\n",
            "# author: <PERSON_1>\nDB_PASS = '<SECRET_1>'\nprint('/home/<HANDLE_1>/data.csv')\n",
        ),
        ("My name is Maria Silva, I can be reached.", "My name is <PERSON_1>, I can be reached."),
        (
            "Synthetic record whisk-clamp-cupboard-plunger-ladder: SSN 123-45-6789, card 4111-1111-1111-1111",
            "Synthetic record whisk-clamp-cupboard-plunger-ladder: SSN <NATIONAL_ID_1>, card <CARD_1>",
        ),
        ("Please merge anna-kowalska-login today.", "Please merge <PERSON_1>-login today."),
        ("the alarm code is 4471# today", "the alarm code is <SECRET_1> today"),
        ("write to anna at example dot org", "write to <EMAIL_1>"),
        ("请帮我给房东王建国写信，我叫李小梅。", "请帮我给房东<PERSON_1>写信，我叫<PERSON_2>。"),
    ],
)
def test_what_is_private_is_hidden_wherever_it_stands(guard, prompt, sent):
    session = Session()
    assert guard.protect(prompt, session).text == sent
    assert session.restore(sent) == prompt


def test_a_json_stays_valid_where_values_are_strings(guard):
    record = {
        "firstName": "Maria",
        "lastName": "Silva",
        "email": "m.silva@example.org",
        "plan": "pro",
        "city": "Porto",
    }
    sent = json.loads(guard.protect(json.dumps(record)).text)
    assert sent.keys() == record.keys()
    assert sent["plan"] == "pro"
    assert not {"Maria", "Silva", "m.silva@example.org", "Porto"} & {*sent.values()}


def test_a_table_keeps_its_columns(guard):
    table = (
        "name,city,phone\nMaria Silva,Porto,+351 912 345 678\nNgozi Adeyemi,Leeds,+44 7700 900123\n"
    )
    rows = list(csv.reader(io.StringIO(guard.protect(table).text)))
    assert [len(row) for row in rows] == [3, 3, 3]
    assert rows[0] == ["name", "city", "phone"]


def test_a_mail_with_its_signature(guard):
    mail = (
        "Hi Tom,\n\ncan we move the viewing at 14 Elm Street, Leith?\n\n"
        "Best regards,\nShreya Raghunathan\n+44 131 496 0000\n"
    )
    sent = guard.protect(mail).text
    assert not any(part in sent for part in ("Tom", "Elm", "Shreya", "Raghunathan", "496"))
    assert "can we move the viewing at" in sent


def test_a_german_prompt(guard):
    sent = guard.protect(
        "Jürgen Kowalczyk (j.kowalczyk@example.de), Lindenstraße 12, 04109 Leipzig, ist mein Vermieter."
    ).text
    assert not any(
        part in sent for part in ("Jürgen", "Kowalczyk", "kowalczyk", "Lindenstraße", "04109")
    )
    assert sent.endswith("ist mein Vermieter.")


@pytest.mark.parametrize(
    "address", ["julia.picasso@example.org", "jpicasso@example.org", "picasso-j@example.org"]
)
def test_a_famous_name_with_an_address_is_somebodys(guard, address):
    asked = "Who was Pablo Picasso?"
    assert guard.protect(asked).text == asked
    sent = guard.protect(f"{asked} Write to Julia Picasso ({address}) about the rent.").text
    assert re.fullmatch(r"Who was .+\? Write to <PERSON_\d> \(<EMAIL_1>\) about the rent\.", sent)


def test_three_turns_in_which_a_name_returns(guard):
    session = Session()
    turns = [
        "Write to Robert Taylor about his rent.",
        "Robert has not answered. TAYLOR still owes 940.",
        "# Róbert taylor\nIs Mr Taylor's letter all right?",
    ]
    sent = [guard.protect(turn, session).text for turn in turns]
    assert sent[:2] == [
        "Write to <PERSON_1> about his rent.",
        "<PERSON_1_GIVEN> has not answered. <PERSON_1_FAMILY> still owes 940.",
    ]
    assert "aylor" not in sent[2]
    assert [session.restore(each) for each in sent] == turns


def test_a_name_before_a_mail_address_is_a_name(guard):
    session = Session()
    turns = [
        "Ask Maria Silva maria@example.org about it",
        "Is Maria Silva at home? maria@example.org",
    ]
    sent = [guard.protect(turn, session).text for turn in turns]
    assert sent == ["Ask <PERSON_1> <EMAIL_1> about it", "Is <PERSON_1> at home? <EMAIL_1>"]
    assert [session.restore(each) for each in sent] == turns
