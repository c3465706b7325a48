"""`--store`, `textveil session` and `textveil ledger`."""

import json

import pytest

from textveil.cli import main
from textveil.session import SessionStore
from textveil.session.spending import MICRO, Spend

pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
pytest.importorskip("cryptography", reason="the extra `store` is not installed")


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    monkeypatch.setenv("TEXTVEIL_STORE", url := f"sqlite:///{tmp_path / 'veil.db'}")
    with SessionStore(url) as store, store.open("anna", "lease").noting() as notes:
        notes.assign_placeholder("EMAIL", "maria@example.org")
    return url


def run(capsys, *arguments, fails=False):
    assert (main(list(arguments)) != 0) == fails
    return capsys.readouterr()


def test_an_answer_is_restored_from_a_store(url, capsys):
    assert (
        run(capsys, "restore", "to <EMAIL_1>", "--session", "anna/lease").out
        == "to maria@example.org\n"
    )
    said = run(capsys, "restore", "to <EMAIL_1>", "--session", "anna", fails=True)
    assert "the store has no session '" in said.err
    assert SessionStore(url).sessions()[0].session == "lease"


def test_sessions_are_listed_shown_exported_imported_and_forgotten(url, capsys, tmp_path):
    assert run(capsys, "session", "list").out.startswith("anna/lease  used ")
    shown = run(capsys, "session", "show", "anna/lease")
    assert "EMAIL: 1" in shown.out
    assert "maria" not in shown.out + shown.err
    file = str(tmp_path / "a.session")
    run(capsys, "session", "export", "anna/lease", file)
    run(capsys, "session", "import", file, "berta")
    assert run(capsys, "restore", "<EMAIL_1>", "--session", "berta").out == "maria@example.org\n"
    run(capsys, "session", "forget", "anna/lease")
    listed = json.loads(run(capsys, "session", "list", "--json").out)
    assert [each["subject"] for each in listed] == ["berta"]


def test_what_one_person_loses_is_shown(url, capsys):
    words = (
        "privatize",
        "Ingrid met Ingrid",
        "--mechanism",
        "rankcape",
        "--epsilon",
        "8",
        "--session",
        "anna/lease",
    )
    run(capsys, *words, "-o", "words.consistent=true")
    said = "protected: 2 draws of words, at most 8 each, 16 for one person who has all of them"
    assert f"spent: {said}\n" in run(capsys, "session", "show", "anna/lease").out
    (shown,) = json.loads(run(capsys, "session", "show", "anna/lease", "--json").out)["per person"]
    assert (shown["drawn"], shown["total_epsilon_ldp"]) == (2, 16.0)
    assert said.replace("2 draws of words", "2 draws of words, released 4 times in all") in (
        run(capsys, *words, "-o", "words.consistent=true", "--statement").err.replace("\n", " ")
    )


def test_the_ledger_is_shown_limited_and_exported(url, capsys):
    with SessionStore(url) as store:
        spend = Spend(metric="ldp", table="minilm", epsilon=5 * MICRO, ldp=5 * MICRO, words=2)
        store.ledger.confirm(store.ledger.reserve("anna", spend))
    run(capsys, "ledger", "limit", "anna", "8", "--days", "7")
    assert "8 of 8 in 7 days" in run(capsys, "ledger", "show").out
    (account,) = json.loads(run(capsys, "ledger", "show", "anna", "--json").out)
    assert (account["epsilon"], account["releases"]) == (5, 1)
    lines = run(capsys, "ledger", "export").out.splitlines()
    entries = [json.loads(each) for each in lines]
    assert [each["what"] for each in entries] == ["reserve", "confirm", "limit"]
    assert (entries[-1]["most"], entries[-1]["days"]) == (8, 7)
    assert "must be a number" in run(capsys, "ledger", "limit", "anna", "few", fails=True).err


def test_a_session_that_is_not_there_is_not_forgotten(url, capsys):
    for name in ("nobody", "anna/rent"):
        said = run(capsys, "session", "forget", name, "--store", url, fails=True)
        assert "no such session" in said.err
    assert (
        "1 session was forgotten"
        in run(capsys, "session", "forget", "anna/lease", "--store", url).err
    )
