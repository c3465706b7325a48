"""Values that are given as such and forgotten, in all spellings and parts, wherever they are kept."""

import io
import json
import sqlite3
from pathlib import Path

import pytest

from textveil import Protector
from textveil.cli import main
from textveil.detect import PrivateValue
from textveil.errors import InputError, TextveilWarning
from textveil.session import (
    FileStore,
    MessageChain,
    Original,
    Session,
    SessionStore,
    Utterance,
    forgetting,
    link_forgetting,
)
from textveil.session.snapshot import Changes
from textveil.session.value_search import SoughtTexts

NAME, PHONE, OTHER = "Quilla Zyxqorvian", "+49 30 9018 2288", "umbro@other.example"
CANARIES = ("quilla", "zyxqor", "9018", "90182288")


@pytest.fixture(params=["memory", "file", "sqlite", "postgresql", "redis"])
def store(request, tmp_path, monkeypatch):
    """A store of each kind."""
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    if request.param == "memory":
        yield SessionStore()
        return
    if request.param == "file":
        yield FileStore(f"file:{tmp_path}/a.session")
        return
    pytest.importorskip("sqlalchemy")
    url = f"sqlite:///{tmp_path}/veil.db"
    if request.param != "sqlite":
        url = request.getfixturevalue({"postgresql": "postgres"}.get(request.param, request.param))
    with SessionStore(url) as opened:
        yield opened


def fill(session: Session) -> list[str]:
    """Puts a name, its parts and spellings, an address, a drawn word and others in a session."""

    def make(known):
        changes = Changes(known)
        values = [
            Original("PERSON", NAME),
            Original("PERSON", NAME.upper()),
            Original("PERSON", "Zyxqorvian"),
            Original("EMAIL", "quilla.zyxqorvian@mail.example"),
            Original("PHONE", PHONE),
            Original("URL", "https://a.example/?tel=%2B493090182288"),
            Original("EMAIL", OTHER),
        ]
        names = changes.assign_placeholders(values)
        changes.add_private(PrivateValue(v.type, v.text, 1.0) for v in values)
        changes.add_release(" ".join(names), values)
        changes.add_targets(["https://b.example/quilla-zyxqorvian"])
        changes.add_replacement("Zyxqorvian", "Bergen")
        changes.claim_name("Zyxqorvian", "Bergen")
        changes.add_plain_words(["zyxqorvian", "house"])
        changes.reuse_rows("law", [("Zyxqorvian", "other"), ("house", "other")], [3, 4])
        return names, changes.build_delta()

    return session.transaction(make)


def hold(session: Session) -> list[str]:
    content = session.to_json().lower()
    return [canary for canary in CANARIES if canary in content]


@pytest.mark.parametrize("value", [NAME, "zyxqorvian", "Quilla-ZYXQORVIAN"])
def test_a_name_vanishes_in_all_spellings_and_parts(store, value) -> None:
    names = fill(store.open("anna"))
    (report,) = store.forget_values([value, "0049-30-90182288"])
    session = store.open("anna")
    assert hold(session) == []
    assert session.restore(" ".join([*names, "Bergen"])) == " ".join([*names[:-1], OTHER, "Bergen"])
    assert report.others == ("<EMAIL_2>",)
    assert not report.same_messages
    kept = session.snapshot()
    assert kept.drawn.get(("law", "house", "other")) == 4
    assert "house" in kept.said


def test_what_nothing_holds_is_no_error_and_changes_nothing(store) -> None:
    fill(store.open("anna"))
    before = store.open("anna").to_json()
    assert store.forget_values(["somebody else", "12345"]) == []
    assert store.open("anna").to_json() == before


@pytest.mark.parametrize("value", ["", "x", "!!!"])
def test_a_value_without_letters_is_refused_before_anything_goes(store, value) -> None:
    fill(store.open("anna"))
    with pytest.raises(InputError, match=r"value 2 .* nothing was forgotten"):
        store.forget_values([NAME, value])
    assert hold(store.open("anna"))


def test_another_person_with_the_family_name_keeps_it() -> None:
    session = Session()

    def make(known):
        changes = Changes(known)
        values = [Original("PERSON", v) for v in (NAME, "Umbro Zyxqorvian", "Umbro")]
        changes.add_private(PrivateValue(v.type, v.text, 1.0) for v in values)
        return changes.assign_placeholders(values), changes.build_delta()

    session.transaction(make)
    assert session.forget_values([NAME]).others == ("<PERSON_2>",)
    assert session.restore("<PERSON_1> <PERSON_2> <PERSON_2_GIVEN>") == (
        "<PERSON_1> Umbro Zyxqorvian Umbro"
    )


def test_only_the_sessions_that_were_named_forget(store) -> None:
    if isinstance(store, FileStore):
        pytest.skip("a file has one session")
    for place in (("anna", "a"), ("anna", "b"), ("berta", "a")):
        fill(store.open(*place))
    assert [each.place for each in store.forget_values([NAME], "anna", "b")] == ["anna/b"]
    assert [each.place for each in store.forget_values([NAME], "anna")] == ["anna/a"]
    assert hold(store.open("berta", "a"))
    assert [each.place for each in store.forget_values([NAME])] == ["berta/a"]
    with pytest.raises(InputError, match="no session"):
        store.forget_values([NAME], "anna", "c")


@pytest.mark.parametrize(
    "text",
    [
        "QUILLA ZYXQORVIAN", "quilla_zyxqorvian", "Quílla  Zyxqorvían", "x quilla.zyxqorvian@a b",
        "Quilla%20Zyxqorvian", "Quilla&nbsp;Zyxqorvian", r"Quill\u0061 Zyxqorvian",
        "UXVpbGxhIFp5eHFvcnZpYW4gaXMgaGVyZSBhZ2Fpbg==", "Zyxqorvian, Quilla",
    ],
)  # fmt: skip
def test_a_value_is_found_however_it_is_spelled(text) -> None:
    sought = SoughtTexts([NAME])
    assert sought.holds(text)
    assert not sought.holds(sought.replace(text, "-"))
    assert SoughtTexts(["Quilla"]).holds(text)


@pytest.mark.parametrize("text", ["030 90182288", "+49 (30) 9018-2288", "tel:%2B493090182288"])
def test_a_telephone_number_with_its_country_is_found_without_it(text) -> None:
    assert SoughtTexts([PHONE]).holds(text)
    assert not SoughtTexts([PHONE.replace("30", "40")]).holds(text)


@pytest.mark.parametrize(
    "text", ["+49 30 90182288", "+493090182288", "tel:+493090182288", "0049 30 9018-2288"]
)
def test_a_telephone_number_without_its_country_is_found_with_it(text) -> None:
    for value in ("030 90182288", "(030) 9018-2288", "30 90182288"):
        sought = SoughtTexts([value])
        assert sought.holds(text)
        assert "9018" not in sought.replace(text, "-")
    assert not SoughtTexts(["030 90182288"]).holds("id 493090182288")


@pytest.mark.parametrize("value", ["Jürgen Müller", "Juergen Mueller", "Müller, Jürgen"])
@pytest.mark.parametrize("text", ["JÜRGEN MÜLLER", "juergen.mueller@a.example", "Mueller, Juergen"])
def test_an_umlaut_is_found_in_two_letters(value, text) -> None:
    assert SoughtTexts([value]).holds(text)


def test_words_of_a_name_that_passed_unprotected_go_from_the_list_of_words(store) -> None:
    """It has them one by one, so that no entry holds the whole name."""

    def make(known):
        changes = Changes(known)
        changes.add_plain_words(["Quilla", "Zyxqorvian", "Umbro", "house"])
        return None, changes.build_delta()

    store.open("anna").transaction(make)
    (report,) = store.forget_values(["Umbro Vexillan", NAME])
    assert report.found == {1}
    assert sorted(store.open("anna").snapshot().said) == ["house", "umbro"]


@pytest.mark.parametrize("text", ["Quilla", "Quillan Zyxqorvian", ""])
def test_other_values_are_not_found(text) -> None:
    assert not SoughtTexts([NAME]).holds(text)


def test_only_the_place_of_a_value_is_replaced() -> None:
    sought = SoughtTexts([NAME, "Zyxqorvian", "小明"])
    assert sought.replace(f"To {NAME}'s house, 王小明!", "-") == "To -'s house, 王-!"
    assert sought.find("Zyxqorvian") == {1}


# ---- conversations -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def protector() -> Protector:
    settings = {"level": "identifiers", "detectors": ("patterns", "structure"), "always": [NAME]}
    return Protector(protect=settings)


def converse(store, protector, *messages: str) -> MessageChain:
    """Sends a conversation as a client would, whose answers repeat what was said."""

    def release(utterance, session):
        results = [protector.protect(text, session) for text in utterance.texts]
        return [result.released.text for result in results], {"drawn": 0}

    chain = MessageChain(
        store.links("anna"), "anna", "digest", [Utterance("user", (text,)) for text in messages]
    )
    chain.release(release)
    answer = chain.links[-1].texts[0]
    restored = Utterance("assistant", (chain.session.restore(answer),))
    chain.save_answers([(Utterance("assistant", (answer,)), restored)])
    return chain


def read_links(store) -> str:
    return b"\n".join(store.links("anna").list_rows().values()).decode().lower()


MESSAGES = (
    "Zyxqorvian's house is old.",
    f"I am {NAME}, {PHONE}; write to {OTHER}.",
    "Say it again, Zyxqorvian!",
)


def check_conversation(store, protector) -> str:
    """Forgets in a conversation; returns what is left of it."""
    chain = converse(store, protector, *MESSAGES)
    assert "zyxqorvian" in read_links(store)
    (report,) = store.forget_values([NAME, PHONE, "nobody"])
    assert report.found == {0, 1}
    assert report.same_messages
    assert report.others == ("<EMAIL_1>",)
    again = converse(store, protector, *MESSAGES)
    assert [link.texts for link in again.links][1:] == [link.texts for link in chain.links][1:]
    said = chain.links[1].texts[0]
    assert again.session.restore(said) == said.replace("<EMAIL_1>", OTHER)
    return read_links(store)


@pytest.fixture
def linked(store):
    if isinstance(store, FileStore):
        pytest.skip("a file keeps no conversations")
    return store


def test_a_conversation_forgets_it_in_messages_memo_and_answers(linked, protector) -> None:
    left = check_conversation(linked, protector)
    assert [canary for canary in ("quilla", "9018") if canary in left] == []


def test_what_had_passed_in_clear_is_taken_out_of_the_stored_message(linked, protector) -> None:
    secret = "Zappolino"
    converse(linked, protector, f"My cat is {secret}.")
    assert secret.lower() in read_links(linked)
    linked.forget_values([secret])
    assert secret.lower() not in read_links(linked)
    assert converse(linked, protector, f"My cat is {secret}.").links[0].texts == (
        f"My cat is {link_forgetting.FORGOTTEN_MARK}.",
    )


def test_another_account_keeps_its_conversations(linked, protector) -> None:
    converse(linked, protector, *MESSAGES)
    assert linked.forget_values([NAME], "berta") == []
    assert "quilla" in read_links(linked)


@pytest.mark.parametrize("part", ["_parse_row", "holds"])
def test_a_store_that_keeps_some_rows_is_caught(linked, protector, monkeypatch, part) -> None:
    if part == "holds":
        monkeypatch.setattr(SoughtTexts, "holds", lambda *_: False)
    else:
        parse = link_forgetting._parse_row
        monkeypatch.setattr(
            link_forgetting, part, lambda row: None if row.startswith(b"{") else parse(row)
        )
    try:
        left = check_conversation(linked, protector)
    except (AssertionError, ValueError):
        left = read_links(linked)
    assert "quilla" in left


def test_a_session_that_keeps_what_was_replaced_is_caught(store, monkeypatch) -> None:
    filter_facts = forgetting.ForgottenValues.filter_facts

    def keep(self, facts):
        return {**filter_facts(self, facts), "owners": dict(facts["owners"])}

    monkeypatch.setattr(forgetting.ForgottenValues, "filter_facts", keep)
    fill(store.open("anna"))
    store.forget_values([NAME])
    if not isinstance(store, FileStore):  # a file derives it from what was replaced
        assert "zyxqorvian" in str(dict(store.open("anna").snapshot().owners.items()))


# ---- the files of a store ------------------------------------------------------------------------


def list_contents(path: Path) -> list[bytes]:
    """The beginnings of all sealed rows: their nonces, which no two share."""
    with sqlite3.connect(path) as connection:
        return [row[0][:12] for row in connection.execute("SELECT content FROM textveil_facts")]


def read_raw(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


def forget_in_file(tmp_path, monkeypatch, protector):
    """Forgets in sessions and conversations; returns the file and its old sealed rows."""
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    path = tmp_path / "veil.db"
    with SessionStore(f"sqlite:///{path}") as store:
        fill(store.open("anna", "x"))
        converse(store, protector, *MESSAGES)
        old = list_contents(path)
        assert all(content in read_raw(path) for content in old)
        store.forget_values([NAME, PHONE, "Zyxqorvian"])
        kept = set(list_contents(path))
        raw = read_raw(path)
    return raw, [content for content in old if content not in kept]


def test_old_rows_are_in_no_page_and_no_log(tmp_path, monkeypatch, protector) -> None:
    """Who has the key could open them."""
    raw, gone = forget_in_file(tmp_path, monkeypatch, protector)
    assert len(gone) > 20
    assert not [content for content in gone if content in raw]
    assert not [canary for canary in CANARIES if canary.encode() in raw.lower()]


def test_a_store_that_does_not_purge_is_caught(tmp_path, monkeypatch, protector) -> None:
    monkeypatch.setattr("textveil.session.sql.database.Database.purge", lambda _: True)
    raw, gone = forget_in_file(tmp_path, monkeypatch, protector)
    assert [content for content in gone if content in raw]


def test_a_log_that_cannot_be_emptied_is_said(tmp_path, monkeypatch, protector) -> None:
    monkeypatch.setattr("textveil.session.sql.database.Database.purge", lambda _: False)
    with pytest.warns(TextveilWarning, match="still has old rows"):
        forget_in_file(tmp_path, monkeypatch, protector)


# ---- the verb ------------------------------------------------------------------------------------


def run(monkeypatch, values: str, *arguments: str) -> int:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(values.encode())))
    return main(["session", "forget", *arguments])


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_the_verb_reads_values_and_says_none(tmp_path, monkeypatch, capsys, kind) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    store = FileStore("file:a.session") if kind == "file" else SessionStore("sqlite:///veil.db")
    fill(store.open("anna"))
    where = ["a.session"] if kind == "file" else ["--all", "--store", "sqlite:///veil.db"]
    values = f"{NAME}\n\n  {PHONE}\r\nnobody at all\n"
    assert run(monkeypatch, values, *where, "--values", "-") == 0
    said = capsys.readouterr()
    assert "keeps <EMAIL_2> in the same session" in said.out
    assert "2 of 3 values found and forgotten; not found: number 3." in said.err
    assert not [v for v in (*CANARIES, "nobody") if v in (said.out + said.err).lower()]
    assert hold(store.open("anna")) == []
    assert run(monkeypatch, values, *where, "--values", "-", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"missing": [1, 2, 3], "places": []}


@pytest.mark.parametrize(
    ("values", "arguments", "reason"),
    [
        ("Quilla", ["anna", "--values", "Quilla"], "takes only -"),
        ("", ["--all", "--values", "-"], "no value"),
        ("Quilla", ["--values", "-"], "needs SUBJECT"),
        ("Quilla", ["anna/a", "--all", "--values", "-"], "needs SUBJECT"),
        ("Quilla", ["anna", "--values", "-", "--value", "EMAIL"], "needs SUBJECT"),
        ("Quilla\nq", ["--all", "--values", "-"], "value 2 of those"),
        ("Quilla", [], "give the name"),
    ],
)
def test_the_verb_refuses_and_never_repeats_a_value(
    tmp_path, monkeypatch, capsys, values, arguments, reason
) -> None:
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    store = f"sqlite:///{tmp_path}/veil.db"
    fill(SessionStore(store).open("anna"))
    assert run(monkeypatch, values, *arguments, "--store", store) == 2
    said = capsys.readouterr().err
    assert reason in " ".join(said.split())
    assert "Quilla" not in said
    assert hold(SessionStore(store).open("anna"))
