"""Single values that are forgotten: nothing of them is left, and nobody else gets their placeholder."""

import json
from pathlib import Path

import pytest

from textveil import Protector
from textveil.cli import main
from textveil.detect import PrivateValue
from textveil.errors import InputError
from textveil.session import FileStore, Original, Session, SessionStore, forgetting
from textveil.session.snapshot import Changes

NAME, MAIL, HOST = "Quillimar Zyxqorvian", "quill@zyxq.example", "other@zyxq.example"
STORES = ("memory", "file", "sqlite")


@pytest.fixture(scope="module")
def protector() -> Protector:
    return Protector(
        protect={
            "level": "identifiers",
            "detectors": ("patterns", "structure"),
            "always": [NAME],
        }
    )


@pytest.fixture(params=STORES)
def place(request, tmp_path, monkeypatch):
    """Opens one session, again and again; and says all that is stored of it, opened."""
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    memory = Session()

    def open_session() -> Session:
        if request.param == "memory":
            return memory
        if request.param == "file":
            return FileStore(f"file:{tmp_path}/a.session").open()
        pytest.importorskip("sqlalchemy")
        return SessionStore(f"sqlite:///{tmp_path}/veil.db").open("anna")

    return open_session


def hold(session: Session, *values: str) -> list[str]:
    content = session.to_json()
    folded = content.lower()
    return [value for value in values if value.lower() in folded]


def test_a_value_is_gone_and_its_placeholder_is_nobodys(place, protector) -> None:
    session = place()
    released = protector.protect(f"{NAME}, {MAIL}, {HOST}", session).text
    name = released.split(",")[0]
    assert released == f"{name}, <EMAIL_1>, <EMAIL_2>"
    address = protector.protect(f"see https://docs.example/u?m={MAIL}", session).text
    assert address == "see <URL_1>"
    assert hold(session, MAIL, NAME, HOST) == [MAIL, NAME, HOST]
    assert session.forget(["<EMAIL_1>", name]) == 3, "and the address with the mail in it"
    for opened in (session, place()):
        assert hold(opened, MAIL, NAME, "Zyxqorvian") == []
        assert opened.restore(f"{name} <EMAIL_1> <EMAIL_2>") == f"{name} <EMAIL_1> {HOST}"
    # found anew, under another placeholder
    again = protector.protect(f"{MAIL} and {HOST}", place()).text
    assert again == "<EMAIL_3> and <EMAIL_2>"
    assert place().restore("<EMAIL_1> <EMAIL_3>") == f"<EMAIL_1> {MAIL}"


def test_a_type_is_forgotten(place, protector) -> None:
    session = place()
    protector.protect(f"{MAIL}, {HOST}, 4111 1111 1111 1111", session)
    assert session.forget(["EMAIL"]) == 2
    assert hold(place(), MAIL, HOST) == []
    assert place().restore("<CARD_1> <EMAIL_2>") == "4111 1111 1111 1111 <EMAIL_2>"


@pytest.mark.parametrize("names", [["<EMAIL_7>"], ["<EMAIL_1>", "DATE"], [MAIL], [""]])
def test_what_the_session_does_not_have_is_refused_and_nothing_is_forgotten(
    place, protector, names
) -> None:
    session = place()
    protector.protect(MAIL, session)
    with pytest.raises(InputError, match="nothing was forgotten") as refused:
        session.forget(names)
    assert MAIL not in str(refused.value)
    assert place().restore("<EMAIL_1>") == MAIL


def test_a_name_goes_with_its_parts_and_leaves_others_theirs(place, protector) -> None:
    """Of two people with one family name the other keeps theirs; a mail address with a part of the name stays."""
    session = place()

    def make(known):
        changes = Changes(known)
        values = [
            Original("PERSON", each)
            for each in ("Quilla Zyxqor", "Umbro Zyxqor", "Quilla", "Umbro")
        ]
        names = changes.assign_placeholders(values)
        changes.add_private(PrivateValue("PERSON", each.text, 1.0) for each in values)
        changes.add_plain_words(["zyxqors"])
        return names, changes.build_delta()

    names = session.transaction(make)
    assert names == ["<PERSON_1>", "<PERSON_2>", "<PERSON_1_GIVEN>", "<PERSON_2_GIVEN>"]
    assert session.forget(["<PERSON_1_GIVEN>"]) == 1, "a part stands for the whole"
    assert hold(place(), "Quilla") == []
    assert place().restore("<PERSON_1> <PERSON_1_GIVEN> <PERSON_2> <PERSON_2_GIVEN>") == (
        "<PERSON_1> <PERSON_1_GIVEN> Umbro Zyxqor Umbro"
    )
    assert protector.protect("Umbro Zyxqor", place()).text == "<PERSON_2>"


def test_a_session_that_only_drops_placeholders_is_caught(place, protector, monkeypatch) -> None:
    """Else the value would still be among those that further texts are searched for."""
    from dataclasses import replace

    def drop(snapshot, names):
        following, count = forgetting.drop_values(snapshot, names)
        return replace(following, private=snapshot.private), count

    monkeypatch.setattr("textveil.session.state.drop_values", drop)
    session = place()
    protector.protect(MAIL, session)
    session.forget(["<EMAIL_1>"])
    assert hold(place(), MAIL) == [MAIL]


def test_another_process_learns_that_a_value_is_forgotten(tmp_path, monkeypatch, protector) -> None:
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    one, other = (SessionStore(f"sqlite:///{tmp_path}/veil.db").open("anna") for _ in range(2))
    protector.protect(f"{MAIL} {HOST}", one)
    assert other.restore("<EMAIL_1>") == MAIL
    one.forget(["<EMAIL_1>"])
    assert other.restore("<EMAIL_1> <EMAIL_2>") == f"<EMAIL_1> {HOST}"
    assert protector.protect(MAIL, other).text == "<EMAIL_3>"
    assert one.restore("<EMAIL_3>") == MAIL


@pytest.mark.parametrize("store", [False, True])
def test_the_verb(tmp_path, monkeypatch, capsys, store) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    name = "anna/lease" if store else "lease.session"
    options = ["--store", "sqlite:///veil.db"] if store else []
    assert (
        main(["protect", MAIL, "--session", name, "-o", "protect.level=identifiers", *options]) == 0
    )
    assert main(["session", "forget", name, "--value", "<EMAIL_1>", *options]) == 0
    assert "1 value was forgotten" in capsys.readouterr().err
    assert main(["restore", "to <EMAIL_1>", "--session", name, *options]) == 0
    assert capsys.readouterr().out == "to <EMAIL_1>\n"
    assert main(["session", "forget", name, "--value", "<EMAIL_1>", *options]) == 2
    assert main(["session", "forget", name, "--value", "EMAIL", "--all", *options]) == 2
    if not store:
        assert MAIL not in Path("lease.session").read_text()
        assert json.loads(Path("lease.session").read_text())["spelled"] == ["EMAIL_1"]
        assert main(["session", "forget", name]) == 2
        assert "delete it" in capsys.readouterr().err
        assert main(["session", "forget", "none.session", "--value", "EMAIL"]) == 2
