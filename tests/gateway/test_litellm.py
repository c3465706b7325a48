"""Guardrails of LiteLLM, without LiteLLM: what a real one asked (`litellm.jsonl`) is asked again, and more."""

import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from threading import Barrier, BrokenBarrierError, Lock
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient
from tests.gateway.litellm_cases import CANARIES, GUARDRAILS, MAIL, RECORDED, guarding
from tests.test_docs import ROOT, read

from textveil import Privatizer
from textveil.gateway import GatewayKeys, Policy, ServingOptions, build_application
from textveil.gateway.protocols import litellm, partial_answers
from textveil.gateway.request.protect_message import MessageReleaser
from textveil.session import Session, SessionStore

SAID: dict[str, list[dict[str, Any]]] = {
    each["name"]: each["said"] for each in map(json.loads, RECORDED.read_text().splitlines())
}
GENERIC, REDACT, REHYDRATE, PIECE = (
    "/beta/litellm_basic_guardrail_api",
    "/v1/guard/redact",
    "/v1/guard/rehydrate",
    "/v1/guard/rehydrate/stream",
)


class Asking:
    """A gateway, and how LiteLLM asks it."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return self.client.post(path, json=body, headers=headers)

    def generic(
        self,
        kind: str = "request",
        *,
        call: str | None = "call-1",
        who: str = "anna",
        **fields: Any,
    ) -> Any:
        data = {"user_api_key_hash": "hash", "user_api_key_end_user_id": who}
        body = {"input_type": kind, "litellm_call_id": call, "request_data": data, **fields}
        came = self.post(GENERIC, body, **{"x-api-key": "sk"})
        assert came.status_code == 200
        return came.json()

    def redacted(self, *texts: str, session: str = "s-1") -> list[str]:
        return self._guard(REDACT, {"texts": list(texts)}, session)["texts"]

    def rehydrated(self, *texts: str, session: str = "s-1") -> list[str]:
        return self._guard(REHYDRATE, {"texts": list(texts)}, session)["texts"]

    def restore_piece(
        self, text: str, carry: str, *, final: bool = False, session: str = "s-1"
    ) -> tuple[str, str]:
        came = self._guard(PIECE, {"text": text, "carry": carry, "final": final}, session)
        return came["text"], came["carry"]

    def _guard(self, path: str, body: Any, session: str) -> Any:
        came = self.post(path, body, authorization="Bearer sk", **{"x-session-id": session})
        assert came.status_code == 200, came.text
        return came.json()


@pytest.fixture
def asks() -> Iterator[Callable[..., Asking]]:
    """Makes gateways with other options."""
    with ExitStack() as stack:

        def made(**options: Any) -> Asking:
            gateway = guarding("http://127.0.0.1:9/v1", **options)
            return Asking(
                stack.enter_context(
                    TestClient(build_application(gateway), base_url="http://127.0.0.1")
                )
            )

        yield made


@pytest.fixture
def asking(asks) -> Asking:
    return asks()


@pytest.mark.parametrize("name", SAID)
def test_what_litellm_asked(asking, name) -> None:
    shown = []
    for said in SAID[name]:
        came = asking.post(said["path"], said["body"], **said["headers"])
        assert came.status_code == 200, came.text
        if said["path"] == REDACT or said["body"].get("input_type") == "request":
            assert not [
                canary
                for canary in CANARIES
                if canary in json.dumps(came.json(), ensure_ascii=False)
            ]
        else:
            shown.append(came.json())
    if shown:
        whole = "".join(each["text"] for each in shown if "text" in each)
        assert MAIL in whole or MAIL in json.dumps(shown[-1])


def test_the_page_shows_the_guardrails_that_are_tested() -> None:
    files = read(ROOT / "docs" / "do" / "gateway-litellm.md").files
    (redacting,) = yaml.safe_load(files["litellm.yaml"])["guardrails"]
    own = ("api_base", "api_key", "default_on")
    for shown, tested in (
        (redacting["litellm_params"], "redacting"),
        (yaml.safe_load(files["generic.yaml"]), "generic"),
    ):
        ours = {**GUARDRAILS[tested]}
        ours.pop(
            "streaming_sampling_rate", None
        )  # each letter is looked at in tests, every fifth piece otherwise
        assert {name: value for name, value in shown.items() if name not in own} == {
            name: value for name, value in ours.items() if name not in own
        }


# ---- the generic API -------------------------------------------------------------------------------------------------


def test_texts_that_stand_in_no_message_are_released_and_restored(asking) -> None:
    came = asking.generic(texts=[f"to {MAIL}", "nothing"])
    assert came == {"action": "GUARDRAIL_INTERVENED", "texts": ["to <EMAIL_1>", "nothing"]}
    assert asking.generic("response", texts=["<EMAIL_1>?"])["texts"] == [f"{MAIL}?"]


def test_nothing_changes_where_nothing_is_private(asking) -> None:
    rows = [{"role": "user", "content": "hello", "name": None}]
    assert asking.generic(texts=["hello"], structured_messages=rows) == {
        "action": "NONE",
        "texts": ["hello"],
    }


def test_arguments_of_tools_come_back_in_messages(asking) -> None:
    function = {"name": "mail", "arguments": json.dumps({"to": MAIL})}
    call = {"id": "call_1", "type": "function", "function": function}
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    came = asking.generic(
        texts=["hello"], structured_messages=rows, tool_calls=[{**call, "index": 0}]
    )
    assert came["structured_messages"][0] == rows[0]
    assert (
        came["structured_messages"][1]["tool_calls"][0]["function"]["arguments"]
        == '{"to": "<EMAIL_1>"}'
    )


def test_signed_thinking_goes_on_as_it_is_or_not_at_all(asking) -> None:
    blocks = [
        {"type": "thinking", "thinking": "which mail?", "signature": "c2ln"},
        {"type": "thinking", "thinking": f"to {MAIL}", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
    ]
    rows = [{"role": "assistant", "content": "yes", "thinking_blocks": blocks}]
    came = asking.generic(texts=["yes"], structured_messages=rows)
    assert came["structured_messages"][0]["thinking_blocks"] == [blocks[0], blocks[2]]
    rows = [{"role": "assistant", "content": "yes", "thinking_blocks": blocks[:1]}]
    assert asking.generic(texts=["yes"], structured_messages=rows) == {
        "action": "NONE",
        "texts": ["yes"],
    }


def test_arguments_that_stand_in_no_message_are_blocked(asking) -> None:
    call: dict[str, Any] = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "mail", "arguments": "{}"},
    }
    assert asking.generic(tool_calls=[call])["action"] == "NONE"
    call["function"]["arguments"] = json.dumps({"to": MAIL})
    assert asking.generic(tool_calls=[call])["action"] == "BLOCKED"


@pytest.mark.parametrize(
    "fields",
    [
        {
            "structured_messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}
            ]
        },
        {"images": ["data:image/png;base64,AAAA"]},
        {"documents": ["new in a later version"]},
        {"texts": [1]},
        {"texts": "no list"},
        {"input_type": "neither"},
        {"structured_messages": {}},
    ],
)
def test_what_cannot_be_protected_is_blocked_and_not_quoted(asking, fields) -> None:
    came = asking.generic(**({"texts": ["hello"]} | fields))
    assert came["action"] == "BLOCKED"
    assert came["blocked_reason"].startswith("textveil: ")
    assert "hello" not in came["blocked_reason"]


def test_what_is_unknown_in_messages_is_protected(asking) -> None:
    rows: list[Any] = [{"role": "user", "content": "hello", "secret": MAIL, "of": [MAIL]}]
    came = asking.generic(texts=["hello"], structured_messages=rows)
    assert came["action"] == "GUARDRAIL_INTERVENED"
    (row,) = came["structured_messages"]
    assert row == {"role": "user", "content": "hello", "secret": "<EMAIL_1>", "of": ["<EMAIL_1>"]}


def test_what_is_unknown_in_tools_follows_the_policy(asks) -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    strange = {**tool, "owner": f"of {MAIL}"}
    for policy, owner in (
        (Policy(), {"owner": "of <EMAIL_1>"}),
        (Policy(unknown="drop"), {}),
    ):
        came = asks(policy=policy).generic(texts=["hello"], tools=[strange])
        assert came["action"] == "GUARDRAIL_INTERVENED"
        assert came["tools"] == [{**tool, **owner}]
    refusing = asks(policy=Policy(unknown="refuse"))
    assert refusing.generic(texts=["hello"], tools=[strange])["action"] == "BLOCKED"


def test_what_is_unknown_where_litellm_takes_no_reply_is_blocked(asking) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert asking.generic(tool_calls=[{**call, "owner": MAIL}])["action"] == "BLOCKED"
    for more in ({"owner": MAIL}, {"tools": "f"}, {"tools": ["f"]}):
        assert asking.generic(texts=["hello"], **more)["action"] == "BLOCKED"


def test_what_is_unknown_in_messages_is_left_out_by_policy_but_no_whole_message(asks) -> None:
    asking = asks(policy=Policy(unknown="drop"))
    rows: list[Any] = [{"role": "user", "content": "hello", "secret": MAIL}]
    came = asking.generic(texts=["hello"], structured_messages=rows)
    assert came["structured_messages"] == [{"role": "user", "content": "hello"}]
    rows = [{"role": "oracle", "content": MAIL}, {"role": "user", "content": "hello"}]
    assert asking.generic(texts=["hello"], structured_messages=rows)["action"] == "BLOCKED"


def test_a_message_of_a_conversation_is_drawn_once(asking) -> None:
    first = {"role": "user", "content": f"to {MAIL}"}
    asking.generic(texts=[first["content"]], structured_messages=[first])
    again = {"role": "user", "content": "and to ana@example.com"}
    data = {"user_api_key_hash": "hash", "user_api_key_end_user_id": "anna"}
    body = {"input_type": "request", "request_data": data, "structured_messages": [first, again]}
    came = asking.post(GENERIC, body, **{"x-api-key": "sk"})
    said = json.loads(came.headers["textveil-statement"])
    assert (said["new"], said["drawn"], said["repeated"]) == (1, 0, 1)
    assert came.json()["texts"] == []


def test_another_client_a_later_call_and_a_call_without_a_name_restore_nothing(asking) -> None:
    asking.generic(texts=[f"to {MAIL}"])
    asking.generic(texts=[f"to {MAIL}"], call=None)
    for other in ({"who": "bea"}, {"call": "call-2"}, {"call": None}):
        came = asking.generic("response", texts=["<EMAIL_1>"], **other)
        assert came["texts"] == ["<EMAIL_1>"]


def test_one_name_for_two_requests_never_gives_one_placeholder_to_two_values(asking) -> None:
    asking.generic(texts=[f"to {MAIL}"])
    assert asking.generic(texts=["to ana@example.com"])["texts"] == ["to <EMAIL_2>"]
    assert asking.generic(texts=[f"to {MAIL}"])["texts"] == ["to <EMAIL_1>"]
    came = asking.generic("response", texts=["<EMAIL_1> <EMAIL_2>"])
    assert came["texts"] == [f"{MAIL} ana@example.com"]


def test_of_a_growing_stream_what_may_yet_change_is_withheld(asking) -> None:
    asking.generic(texts=[f"to {MAIL}"])
    answer, out, text = "Dear <EMAIL_1>, see <EMA", "", ""
    for end in range(1, len(answer) + 1):
        came = asking.generic("response", texts=[answer[:end]])
        text, held = came["texts"][0], came["stream_holdback_chars"][0]
        certain = text[: len(text) - held]
        assert certain.startswith(out)
        out = certain
    assert text == f"Dear {MAIL}, see <EMA"
    assert out == f"Dear {MAIL}, see "


# ---- redact and rehydrate --------------------------------------------------------------------------------------------


def test_texts_of_a_session_are_redacted_and_rehydrated(asking) -> None:
    assert asking.redacted(f"to {MAIL}", json.dumps({"to": MAIL})) == [
        "to <EMAIL_1>",
        '{"to": "<EMAIL_1>"}',
    ]
    assert asking.redacted("to ana@example.com") == ["to <EMAIL_2>"]
    assert asking.rehydrated("<EMAIL_1> <EMAIL_2>", '{"to": "<EMAIL_1>"}') == [
        f"{MAIL} ana@example.com",
        json.dumps({"to": MAIL}),
    ]
    assert asking.rehydrated("<EMAIL_1>", session="s-2") == ["<EMAIL_1>"]


def at_once(first: Asking, second: Asking, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The statuses where two texts of a session come at the same time; in the end both are as they were."""
    together, release = Barrier(2), MessageReleaser.__call__

    def waiting(self, message, session, **named):
        if MAIL in message.texts[0]:
            with suppress(BrokenBarrierError):
                together.wait(2)
        return release(self, message, session, **named)

    monkeypatch.setattr(MessageReleaser, "__call__", waiting)
    asked = {"authorization": "Bearer sk", "x-session-id": "s-1"}
    asking = [first, second]
    bodies = [{"texts": [f"to {MAIL}"]}, {"texts": [f"to ana@example.com, not {MAIL}"]}]
    with ThreadPoolExecutor(2) as pool:
        came = list(pool.map(lambda to, body: to.post(REDACT, body, **asked), asking, bodies))
    again = [first.redacted(*body["texts"]) for body in bodies]
    assert [second.rehydrated(*texts) for texts in again] == [body["texts"] for body in bodies]
    for answer, texts in zip(came, again, strict=True):
        assert answer.status_code != 200 or answer.json()["texts"] == texts
    return sorted(each.status_code for each in came)


def test_two_texts_of_a_session_at_once_are_redacted_one_after_the_other(
    asking, monkeypatch
) -> None:
    assert at_once(asking, asking, monkeypatch) == [200, 200]


@pytest.mark.slow
def test_of_two_texts_of_a_session_in_two_processes_one_is_redacted(
    asks, monkeypatch, tmp_path
) -> None:
    nobody = ServingOptions(nobody=b"as the workers of one gateway")
    with SessionStore(f"sqlite:///{tmp_path / 'veil.db'}") as store:
        assert at_once(
            asks(store=store, running=nobody), asks(store=store, running=nobody), monkeypatch
        ) == [200, 409]


def test_originals_in_json_are_escaped(asks) -> None:
    protect = {"level": "identifiers", "detectors": ("patterns",), "always": ['Neil "Nell"']}
    asking = asks(privatizer=Privatizer.from_profile("prompt", protect=protect))
    (made,) = asking.redacted(json.dumps({"to": 'Neil "Nell"'}))
    assert "Nell" not in made
    (back,) = asking.rehydrated(made)
    assert json.loads(back) == {"to": 'Neil "Nell"'}


@pytest.mark.parametrize(
    "store", ["memory:", pytest.param("sqlite:///{}/veil.db", marks=pytest.mark.slow)]
)
def test_any_cut_of_a_stream_gives_the_same(asks, tmp_path, monkeypatch, store) -> None:
    monkeypatch.setenv("TEXTVEIL_STORE_KEY", "00" * 32)
    with SessionStore(store.format(tmp_path)) as kept:
        asking = asks(store=kept)
        asking.redacted(f"to {MAIL} and {{}}")
        for answer in (
            "Dear <EMAIL_1>, [x](http://evil.example/<EMAIL_1>) \\<EMAIL_1>",
            '{"to": "<EMAIL_1>", "a": 1}',
        ):
            (whole,) = asking.rehydrated(answer)
            chooser = random.Random(7)
            cuts = [list(range(1, len(answer))), *([cut] for cut in range(1, len(answer), 3))]
            cuts += [sorted(chooser.sample(range(1, len(answer)), 3)) for _ in range(10)]
            for cut in cuts:
                carry, out = "", ""
                for begin, end in zip([0, *cut], [*cut, len(answer)], strict=True):
                    text, carry = asking.restore_piece(answer[begin:end], carry)
                    out += text
                text, carry = asking.restore_piece("", carry, final=True)
                assert (out + text, carry) == (whole, "")
            assert "evil.example/<EMAIL_1>" in whole or "evil" not in whole


def test_a_stream_goes_on_in_another_worker(asks, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TEXTVEIL_STORE_KEY", "00" * 32)
    url = f"sqlite:///{tmp_path}/veil.db"
    with SessionStore(url) as one, SessionStore(url) as other:
        first, second = asks(store=one), asks(store=other)
        first.redacted(f"to {MAIL}")
        text, carry = first.restore_piece("Dear <EMA", "")
        more, carry = second.restore_piece("IL_1> so", carry)
        rest, _ = first.restore_piece("", carry, final=True)
        assert text + more + rest == f"Dear {MAIL} so"


def test_restorers_of_streams_that_never_end_are_forgotten(asking, monkeypatch) -> None:
    monkeypatch.setattr(partial_answers, "MAX_RESTORERS", 5)
    asking.redacted(f"to {MAIL}")
    for i in range(25):
        asking.restore_piece(str(i), "")
    text, carry = asking.restore_piece(" <EMAIL_1> ", "0")
    assert asking.restore_piece("", carry, final=True)[0] == ""
    assert text == f" {MAIL} "


def kept_pieces(
    session: Session | None = None,
) -> tuple[partial_answers.PieceRestorer, partial_answers.RestorerCache]:
    kept = partial_answers.RestorerCache()
    return partial_answers.PieceRestorer(lambda: session or Session(), "s", kept, Lock()), kept


def test_restorers_that_wait_are_bounded_by_what_they_read_and_hold_no_answer(monkeypatch) -> None:
    monkeypatch.setattr(partial_answers, "MAX_CHARACTERS", 1_000)
    several, kept = kept_pieces()
    for i in range(10):
        several.restore_piece(f"{i} {MAIL}", "x" * 300, final=False)
    assert len(kept) == 3
    several.restore_piece("", "x" * 2_000, final=False)
    assert not kept
    several.restore_piece("", MAIL, final=False)
    assert MAIL not in repr(kept)


def test_restorers_that_wait_too_long_are_forgotten(monkeypatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    several, kept = kept_pieces()
    several.restore_piece("", "one", final=False)
    now += partial_answers.CACHE_SECONDS + 1
    several.restore_piece("", "two", final=False)
    assert len(kept) == 1


@pytest.mark.parametrize("calls", [5, "x", True, {"id": "a"}])
def test_calls_in_messages_that_are_no_list_are_blocked_by_policy(asks, calls) -> None:
    asking = asks(policy=Policy(unknown="refuse"))
    rows = [{"role": "assistant", "content": "yes", "tool_calls": calls}]
    came = asking.generic(structured_messages=rows, tool_calls=[])
    assert came["action"] == "BLOCKED"
    assert "failed" not in came["blocked_reason"]


def test_many_calls_are_compared_in_linear_time() -> None:
    def seconds(count: int) -> float:
        calls = [{"id": f"{i}", "function": {"name": "f", "arguments": "{}"}} for i in range(count)]
        others = [{**call, "id": f"other {i}"} for i, call in enumerate(calls)]
        started = time.process_time()
        read = litellm._remove_duplicates(
            {"structured_messages": [{"tool_calls": calls}], "tool_calls": others + calls}, {}
        )
        assert read["tool_calls"] == others
        return time.process_time() - started

    small = min(seconds(500) for _ in range(3))
    assert seconds(5_000) < 30 * small + 0.1


@pytest.mark.parametrize(
    ("path", "body", "session"),
    [
        (REDACT, {"texts": [MAIL]}, None),
        (REDACT, {"texts": MAIL}, "s"),
        (REDACT, {"texts": [{"json": MAIL}]}, "s"),
        (REDACT, {"texts": [MAIL], "more": MAIL}, "s"),
        (REDACT, {"texts": [MAIL]}, "ß"),
        (REHYDRATE, {"texts": [MAIL]}, None),
        (REHYDRATE, {"texts": [1]}, "s"),
        (PIECE, {"text": MAIL, "carry": None, "final": False}, "s"),
        (PIECE, {"text": MAIL}, "s"),
    ],
)
def test_what_is_wrong_is_refused_and_not_quoted(asking, path, body, session) -> None:
    headers = {} if session is None else {"x-session-id": session.encode()}
    came = asking.client.post(path, json=body, headers=headers)
    assert came.status_code == 400
    assert MAIL not in came.text


def test_a_gateway_with_keys_of_its_own_answers_nobody_else(asks, tmp_path) -> None:
    keys = GatewayKeys(str(tmp_path / "keys"), new=True)
    own = keys.create("litellm")
    asking = asks(policy=Policy(keys=str(tmp_path / "keys")))
    body = {"input_type": "request", "litellm_call_id": "call-1", "texts": [MAIL]}
    came = asking.post(GENERIC, body, **{"x-api-key": "sk-of-nobody"})
    assert (came.status_code, came.json()["action"]) == (200, "BLOCKED")
    assert (
        asking.post(
            REDACT, {"texts": [MAIL]}, authorization="Bearer sk", **{"x-session-id": "s"}
        ).status_code
        == 401
    )
    assert asking.post(GENERIC, body, **{"x-api-key": own}).json()["texts"] == ["<EMAIL_1>"]
    asked = {"authorization": f"Bearer {own}", "x-session-id": "s"}
    assert asking.post(REDACT, {"texts": [MAIL]}, **asked).json() == {"texts": ["<EMAIL_1>"]}
    assert asking.post(REHYDRATE, {"texts": ["<EMAIL_1>"]}, **asked).json() == {"texts": [MAIL]}
