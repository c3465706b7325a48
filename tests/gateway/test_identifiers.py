"""Invented identifiers in conversations: the upstream sees nobody's, the client gets its own back."""

import json

import pytest
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.test_forgetting import Conversation, repeat

from textveil import Privatizer
from textveil.errors import ConfigError
from textveil.gateway import Gateway, ServingOptions
from textveil.gateway.policy.active_policy import check_blocked_types
from textveil.session import SessionStore

MAIL, CARD = "maria@silva.de", "4539 1488 0343 6467"


@pytest.fixture(scope="module")
def inventing():
    return Privatizer.from_profile(
        "prompt",
        protect={"detectors": ["patterns", "structure"]},
        identifiers={"types": ["all"]},
    )


@pytest.mark.parametrize(
    ("route", "stream"),
    [("chat/completions", False), ("chat/completions", True), ("messages", False)],
)
def test_a_conversation_has_one_surrogate_for_a_value(inventing, tmp_path, route, stream) -> None:
    log = tmp_path / "audit.log"
    with serving_upstream(repeat) as upstream:
        gateway = Gateway(
            privatizer=inventing,
            upstream=upstream.url,
            store=SessionStore(),
            running=ServingOptions(audit_log=str(log)),
        )
        with serving(gateway) as address:
            client = Conversation(address, route, stream=stream)
            _, answer = client.ask(f"write to {MAIL} about {CARD}")
            assert answer == f"noted <EMAIL_1> and write to {MAIL} about {CARD}".replace(
                "<EMAIL_1>", MAIL
            )
            first = upstream.asked[-1].body["messages"][0]["content"]
            _, answer = client.ask(f"again: {CARD.replace(' ', '')}")
            assert answer.endswith(f"again: {CARD.replace(' ', '')}")
            sent = upstream.asked[-1].body["messages"]
            assert sent[0]["content"] == first, "the same bytes"
            assert first.split("about ")[1].replace(" ", "") == sent[2]["content"].split(": ")[1]
            report = gateway.store.forget_values([MAIL])
            _, answer = client.ask("go on")
            assert MAIL not in answer
        assert [each.count for each in report] == [1]
        for secret in (MAIL, CARD, CARD.replace(" ", ""), "silva"):
            assert not upstream.shows(secret)
    counts = [json.loads(line) for line in log.read_text().splitlines()]
    hidden = [line["protected"] for line in counts if line["event"] == "request"]
    assert hidden[0] == {"EMAIL": 1, "CARD": 1}


def test_a_type_that_is_blocked_must_have_placeholders(inventing) -> None:
    check_blocked_types(["SECRET"], inventing)
    with pytest.raises(ConfigError, match=r"identifiers\.types"):
        check_blocked_types(["CARD"], inventing)
