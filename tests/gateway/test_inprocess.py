"""A guard in the program itself: what the gateway does, without HTTP, copied, pickled and refused as a library is."""

import copy
import pickle
from decimal import Decimal
from functools import partial

import pytest
from tests.detectors import Finds

from textveil import Privatizer, Protector, SessionStore
from textveil.errors import ConfigError, DetectorError, InputError, UnknownName
from textveil.gateway import ChatGuard
from textveil.gateway.inprocess import split_settings
from textveil.gateway.protocols.chat import CHAT

CANARY = "zyxqorvian@example.org"


def said(*texts, **more):
    roles = ("user", "assistant")
    return {
        "model": "m",
        "messages": [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)],
        **more,
    }


def test_each_message_is_released_once():
    guard = ChatGuard(Privatizer("rankcape", epsilon=3))
    first = guard.protect(CHAT, said("Ingrid hid the money"))
    again = guard.protect(CHAT, said("Ingrid hid the money"))
    assert first.released_body == again.released_body
    assert (first.statement["drawn"], again.statement["drawn"], again.statement["repeated"]) == (
        1,
        0,
        1,
    )
    assert first.statement["kind"] == "ldp"
    came = {"choices": [{"message": {"role": "assistant", "content": "so be it"}}]}
    first.remember_answer(
        zip(
            CHAT.list_answer_messages(came),
            CHAT.list_answer_messages(first.restore(came)),
            strict=True,
        )
    )
    third = guard.protect(CHAT, said("Ingrid hid the money", "so be it", "And Bernard?"))
    assert [each["content"] for each in third.released_body["messages"][:2]] == [
        first.released_body["messages"][0]["content"],
        "so be it",
    ]
    assert third.statement["drawn"] == 1


def test_what_is_spent_is_charged_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    url = f"sqlite:///{tmp_path / 'veil.db'}"
    guard = ChatGuard(Privatizer("rankcape", epsilon=3), store=url)
    guard.protect(CHAT, said("Ingrid hid the money"), "one")
    with SessionStore(url) as store:
        spent = store.ledger.accounts("conversation one")
        guard.protect(CHAT, said("Ingrid hid the money"), "one")
        other = pickle.loads(pickle.dumps(guard))
        other.protect(CHAT, said("Ingrid hid the money"), "one")
        assert store.ledger.accounts("conversation one") == spent, "a retry, and another process"
        assert spent
        other.protect(CHAT, said("Ingrid hid the money"), "two")
        assert store.ledger.accounts("conversation two")


def test_what_cannot_be_protected_is_refused_in_words_of_a_library():
    guard = ChatGuard(unknown="refuse")
    for more in ({"no_such_field": CANARY}, {"logprobs": True}):
        with pytest.raises(InputError) as refused:
            guard.protect(CHAT, said("Hello", **more))
        assert CANARY not in str(refused.value)
        assert refused.value.__cause__ is None
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputError):
        guard.protect(CHAT, said("Hello", stop=deep))


def test_settings_are_plain_data_or_of_the_program():
    data, passed = split_settings(
        {"note": CANARY, "deep": [{"a": None}], "of": ChatGuard, "by": len, "by one": Decimal(2)}
    )
    assert data == {"note": CANARY, "deep": [{"a": None}]}
    assert passed == {"of": ChatGuard, "by": len, "by one": Decimal(2)}
    for odd in (
        object(),
        {CANARY},
        CANARY.encode(),
        [ChatGuard],
        {"a": {"b": object()}},
        partial(print, CANARY),
    ):
        with pytest.raises(InputError, match="the setting") as refused:
            split_settings({"note": CANARY, "odd": odd})
        assert CANARY not in str(refused.value)


class Breaks(Finds):
    def find(self, texts):
        raise RuntimeError(CANARY)


def test_a_detector_that_fails_is_an_error():
    guard = ChatGuard(Protector(protect={"detectors": [Breaks(EMAIL="x")]}))
    with pytest.raises(DetectorError) as failed:
        guard.protect(CHAT, said(CANARY))
    assert CANARY not in str(failed.value)


def test_copies_are_the_same_and_pickles_have_options_only():
    guard = ChatGuard(schemas="pass")
    guard.protect(CHAT, said(CANARY))
    assert copy.copy(guard) is copy.deepcopy([guard])[0] is guard
    packed = pickle.dumps(guard)
    assert CANARY.encode() not in packed
    again = pickle.loads(packed)
    assert again.dump_options() == guard.dump_options()
    assert again.protect(CHAT, said(CANARY)).statement["new"] == 1, "it knows nothing of the other"
    assert CANARY not in repr(guard.protect(CHAT, said(CANARY)))
    with pytest.raises(ConfigError, match="as a URL"):
        pickle.dumps(ChatGuard(store=SessionStore()))
    with pytest.raises(ConfigError, match="give the name of the profile"):
        ChatGuard(Protector()).dump_options()


def test_a_password_is_not_written_down():
    guard = ChatGuard()
    guard._arguments = ("prompt", "postgresql://anna:secret@host/veil", *guard._arguments[2:])
    for written in (guard.dump_options, lambda: pickle.dumps(guard)):
        with pytest.raises(ConfigError, match="cannot be pickled or saved") as refused:
            written()
        assert "secret" not in str(refused.value)
    assert "secret" not in repr(guard)


def test_wrong_options():
    with pytest.raises(UnknownName):
        ChatGuard("nothing")
    with pytest.raises(ConfigError, match="not dict"):
        ChatGuard({})  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        ChatGuard(media="maybe")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="lasting"):
        ChatGuard(Privatizer("rankcape", epsilon=3, words={"consistent": True, "lasting": True}))
