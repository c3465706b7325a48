"""A conversation: what a model sees of it, what its user gets, and what is kept when it breaks off."""

import json
import urllib.request

import pytest

from textveil import Privatizer
from textveil.errors import EndpointError, InputError
from textveil.gateway.conversation import Conversation
from textveil.models.endpoint import Endpoint
from textveil.session.state import Session

CANARY = "Zyxqorvian"


@pytest.fixture
def journal(openai_server):
    """The messages of the upstream's requests so far whose newest is this."""

    def read(newest):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(openai_server.removesuffix("/v1") + "/journal") as answer:
            said = [entry["body"]["messages"] for entry in json.load(answer)]
        return [each for each in said if each[-1]["content"] == newest]

    return read


@pytest.fixture
def talk(openai_server, small_table):
    """A new conversation with one of the scripted models."""
    privatizer = Privatizer("placeholder", table=small_table)

    def begin(model, session=None, system=None, **options):
        endpoint = Endpoint(url=openai_server, model=model, **{"retries": 0, **options})
        return Conversation(privatizer, endpoint, session, system=system)

    return begin


def said(role, content):
    return {"role": role, "content": content}


def test_a_conversation_sends_released_text_only(talk, journal):
    conversation = talk("echo", system=f"{CANARY} asks")
    assert conversation.system.text == "<WORD_1> <WORD_2>"
    first, answer = conversation.ask(f"we are {CANARY} and Quillimar")
    assert first.text == "we are <WORD_1> and <WORD_3>"
    assert "".join(answer) == f"we are {CANARY} and Quillimar"
    _, answer = conversation.ask("Quillimar Jarndyce")
    assert "".join(answer) == "Quillimar Jarndyce"
    (sent,) = journal("<WORD_3> <WORD_4>")
    assert sent == [
        said("system", "<WORD_1> <WORD_2>"),
        said("user", "we are <WORD_1> and <WORD_3>"),
        said("assistant", "we are <WORD_1> and <WORD_3>"),
        said("user", "<WORD_3> <WORD_4>"),
    ]


def test_both_sides_are_kept(talk):
    conversation = talk("characters")
    sent, answer = conversation.ask(f"is {CANARY}")
    pieces = list(answer)
    assert pieces == ["i", "s", " ", CANARY]  # nothing of the placeholder, and no empty piece
    (turn,) = conversation.turns
    assert turn.sent is sent
    assert (turn.received, turn.answer, turn.whole) == ("is <WORD_1>", f"is {CANARY}", True)
    assert CANARY not in repr(turn)
    line = turn.to_json()
    assert (line["prompt"], line["sent"]) == (f"is {CANARY}", "is <WORD_1>")
    assert (line["received"], line["answer"], line["whole"]) == (
        "is <WORD_1>",
        f"is {CANARY}",
        True,
    )
    assert line["guarantee"] == sent.guarantee.to_json()


def test_what_ends_with_half_a_placeholder_is_whole(talk):
    _, answer = talk("halves").ask("< is <")
    assert "".join(answer) == "< is <"


def test_the_session_of_a_caller_is_used(talk):
    session = Session()
    with session.noting() as notes:
        notes.assign_placeholder("WORD", CANARY)
    sent, answer = talk("echo", session).ask(f"Quillimar {CANARY}")
    assert sent.text == "<WORD_2> <WORD_1>"
    assert "".join(answer) == f"Quillimar {CANARY}"
    assert session.restore("<WORD_2>") == "Quillimar"


def test_two_conversations_do_not_share(talk):
    one, other = talk("echo"), talk("echo")
    assert one.ask(CANARY)[0].text == other.ask("Quillimar")[0].text == "<WORD_1>"


def test_nothing_is_sent_before_the_first_piece(talk, journal):
    conversation = talk("echo")
    _, answer = conversation.ask("unread unread unread unread unread")
    answer.close()
    assert journal("<WORD_1> <WORD_1> <WORD_1> <WORD_1> <WORD_1>") == []
    assert conversation.turns == []


def test_an_answer_that_breaks_off_is_kept_and_not_sent_again(talk, journal):
    conversation = talk("breaks-off")
    _, answer = conversation.ask(f"{CANARY} is it so")
    with pytest.raises(EndpointError, match="broke off") as error:
        list(answer)
    assert CANARY not in str(error.value)
    assert error.value.__cause__ is None
    (turn,) = conversation.turns
    assert (turn.received, turn.answer, turn.whole) == ("<WORD_1> is ", f"{CANARY} is ", False)
    with pytest.raises(EndpointError):
        list(conversation.ask("is it so after all")[1])
    (sent,) = journal("is it so after all")
    assert [message["content"] for message in sent] == ["is it so after all"]


def test_an_answer_that_is_left_is_kept_as_far_as_it_came(talk):
    conversation = talk("endless")
    _, answer = conversation.ask(CANARY)
    assert next(answer).strip() == CANARY
    answer.close()
    (turn,) = conversation.turns
    assert not turn.whole
    assert turn.answer.startswith(CANARY)


def test_what_cannot_be_privatized_is_not_sent(talk):
    conversation = talk("echo")
    with pytest.raises(InputError):
        conversation.ask("\ud800")
    assert conversation.turns == []
