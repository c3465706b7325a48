"""Kept answers: each question is sent once, by whoever asks, and none can be read in the file."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from textveil.errors import EndpointError, OutputError, RequestLimitReached
from textveil.models.answers import AnswerStore, ModelRequest, RequestRecorder

CANARY = "zyxqorvian"


def question(user: str = CANARY, **changes: Any) -> ModelRequest:
    plain = ModelRequest("http://h/v1", "m", "system", user, 0.0, None, 0, False, 60.0)
    return plain._replace(**changes)


@pytest.fixture
def store(tmp_path):
    return AnswerStore.open(tmp_path / "runs" / "answers.sqlite")


def refuse() -> str:
    raise AssertionError("it has been answered")


def test_an_answer_is_kept_for_everything_that_it_depends_on(store):
    assert store.fetch(question(), lambda: "first") == "first"
    assert store.fetch(question(patience=1.0, local=True), refuse) == "first"
    for changes in (
        {"user": "another"},
        {"system": ""},
        {"model": "n"},
        {"endpoint": "http://h:2/v1"},
        {"temperature": 0.2},
        {"temperature": None},
        {"max_tokens": 5},
        {"attempt": 1},
    ):
        assert store.fetch(question(**changes), lambda name=str(changes): name) == str(changes)
    counts = store.read_counts()
    assert (counts.sent, counts.kept, counts.local) == (9, 1, 0)
    again = AnswerStore.open(store.path)
    assert again.fetch(question(), refuse) == "first"
    assert (again.read_counts().sent, again.read_counts().kept) == (0, 1)


def test_nobody_else_can_read_the_file_and_no_question_stands_in_it(store):
    store.fetch(question(), lambda: "an answer")
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert CANARY.encode() not in store.path.read_bytes()
    assert CANARY not in repr(store)
    store.path.chmod(0o644)
    AnswerStore.open(store.path)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_a_question_that_another_thread_has_sent_is_waited_for(store):
    sent, go_on = [], Event()

    def send() -> str:
        sent.append(1)
        go_on.wait(10)
        return "once"

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(store.fetch, question(), send) for _ in range(4)]
        go_on.set()
        assert {each.result() for each in waiting} == {"once"}
    assert len(sent) == 1


def test_a_failure_is_not_kept(store):
    def fail() -> str:
        raise EndpointError("no")

    with pytest.raises(EndpointError):
        store.fetch(question(), fail)
    assert store.fetch(question(), lambda: "yes") == "yes"


def test_a_sender_that_died_is_given_up(tmp_path):
    first = AnswerStore.open(tmp_path / "a")
    first._claim(question().digest, question())  # and never answers
    assert AnswerStore.open(tmp_path / "a").fetch(question(), lambda: "b") == "b", "another run"
    first._claim(question("c").digest, question("c", patience=-1.0))
    assert first.fetch(question("c"), lambda: "d") == "d", "its time is over"


def test_a_run_sends_no_more_than_it_may(tmp_path):
    store = AnswerStore.open(tmp_path / "a", most=2)
    for user in ("a", "b"):
        store.fetch(question(user), lambda: "x")
    with pytest.raises(RequestLimitReached, match="has sent 2 requests"):
        store.fetch(question("c"), refuse)
    assert store.fetch(question("a"), refuse) == "x", "what is there is free"
    assert store.fetch(question("c", local=True), lambda: "y") == "y", "so is this machine"
    assert (store.read_counts().sent, store.read_counts().local) == (2, 1)
    assert AnswerStore.open(store.path, most=2).fetch(question("d"), lambda: "z") == "z"


def test_another_file_is_refused_without_what_it_holds(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(CANARY * 99)
    with pytest.raises(OutputError, match=r"notes\.txt cannot be used as a store") as caught:
        AnswerStore.open(path)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_requests_are_counted_without_being_sent():
    recorder = RequestRecorder()
    assert recorder.fetch(question("a" * 40), refuse) == "a" * 40
    recorder.fetch(question("a" * 40), refuse)
    assert recorder.fetch(question("b" * 40, max_tokens=1), refuse) == "bbbb"
    recorder.fetch(question("c", local=True), refuse)
    tokens = (6 + 40 + 40) // 4 + (6 + 40 + 4) // 4
    assert recorder.estimate == (4, 2, 1, tokens)
    assert CANARY not in repr(recorder)


def test_a_request_shows_no_text() -> None:
    request = ModelRequest("url", "m", "system canary", "user canary", 0.2, 9, 0, False, 1.0)
    assert "canary" not in f"{request} {request!r}"


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are not told apart here")
def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "other"
    target.write_text("kept as it is")
    target.chmod(0o644)
    (tmp_path / "answers.sqlite").symlink_to(target)
    with pytest.raises(OutputError):
        AnswerStore.open(tmp_path / "answers.sqlite")
    assert target.read_text() == "kept as it is"
    assert target.stat().st_mode & 0o777 == 0o644
