"""Stores: what is known survives exactly, two processes agree, and nothing is readable without the key."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import islice, product
from typing import Any
from urllib.parse import quote

import pytest

from textveil.detect import PrivateValue, Span
from textveil.detect.occurrences import find_occurrences
from textveil.errors import ConfigError, InputError, LimitReached, StoreError
from textveil.session import FileStore, MemoryStore, Original, Session, SessionStore
from textveil.session.snapshot import Changes
from textveil.session.spending import MICRO, Spend

pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
pytest.importorskip("cryptography", reason="the extra `store` is not installed")
from tests.readable import readable

from textveil.session.database_store import SWEEP_LIMIT, SealedStore, SQLStore
from textveil.session.sql import encryption
from textveil.session.sql.database import Database
from textveil.session.sql.lazy_snapshot import EAGER_KINDS, StoredFacts

CANARIES = (
    "Quillimar Zyxqorvian",
    "quill@zyxqorvian.example",
    "DE89370400440532013000",
    "Ünïbrax Tellion",
)


@pytest.fixture(autouse=True)
def keys(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    return tmp_path / "keys"


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'veil.db'}"


@pytest.fixture(params=["SQLite", "Redis"])
def either(request):
    """The URL of a store whose rows are sealed, of either kind."""
    return request.getfixturevalue("url" if request.param == "SQLite" else "redis")


def opened(url):
    """A store whose rows are sealed, of the kind that a URL names."""
    store = SessionStore(url)
    assert isinstance(store, SealedStore)
    return store


def release(session, *values, said=(), text=""):
    """The placeholders of values, as a release asks for them."""

    def make(known):
        notes = Changes(known)
        notes.reserve_names(text)
        notes.add_plain_words(said)
        notes.add_private(PrivateValue(type_, value, 1.0) for type_, value in values)
        return notes.assign_placeholders(
            [Original(type_, value) for type_, value in values]
        ), notes.build_delta()

    return session.transaction(make)


def test_a_url_names_a_store(url, tmp_path):
    assert isinstance(SessionStore(), MemoryStore)
    assert isinstance(SessionStore("memory:"), MemoryStore)
    assert isinstance(SessionStore(f"file:{tmp_path / 'a.session'}"), FileStore)
    assert isinstance(SessionStore(url), SQLStore)
    for wrong in ("", "veil.db", "mysql://host/name", "sqlite://", "file:"):
        with pytest.raises(ConfigError):
            SessionStore(wrong)


@pytest.mark.parametrize("kind", ["memory", "file", "SQLite", "Redis"])
def test_every_store_remembers_across_openings(kind, request, tmp_path):
    where = {"memory": "memory:", "file": f"file:{tmp_path / 'a.session'}"}.get(kind)
    where = where or request.getfixturevalue("url" if kind == "SQLite" else "redis")
    kept = SessionStore(where)
    with kept.open("anna") as session:
        assert release(session, ("PERSON", "Maria Silva")) == ["<PERSON_1>"]
    again = kept if kind == "memory" else SessionStore(where)
    session = again.open("anna")
    assert release(session, ("PERSON", "Silva"), ("PERSON", "Jo Alder")) == [
        "<PERSON_1_FAMILY>",
        "<PERSON_2>",
    ]
    assert (
        session.restore("<PERSON_1> <PERSON_1_FAMILY> <PERSON_2>") == "Maria Silva Silva Jo Alder"
    )
    assert [each.subject for each in again.sessions()] == ["anna"]
    assert again.forget("anna") == 1
    assert again.sessions() == []


def test_a_stored_session_knows_what_one_in_memory_knows(either):
    family = ["Silva", "da Costa", "Alder-Hill", "小明"]
    names = [f"{given} {each}" for given, each in product(["Maria", "José", "Ana", "王"], family)]
    spoken = [
        "maria SILVA",
        "Silva",
        "Jose da Costa",
        "costa",
        "Alder Hill",
        "王小明",
        "ANA",
        "a1@b.example",
    ]
    memory, lines = Session("anna"), iter(names)
    for turn, mention in enumerate(spoken):
        values = [("PERSON", each) for each in islice(lines, 2)] + [("EMAIL", mention)][
            : "@" in mention
        ]
        with opened(either) as kept:
            stored = kept.open("anna")
            text = f"<PERSON_{turn + 3}> for {mention} and <EMAIL_1_B>, Maria or José Alder-Hill"
            known = memory.snapshot()
            spans = [
                Span(
                    0,
                    text.index(mention),
                    text.index(mention) + len(mention),
                    "PERSON",
                    1.0,
                    "test",
                )
            ]
            plain, looked_up = (
                known.build_matcher([text], spans),
                stored.snapshot().build_matcher([text], spans),
            )
            assert find_occurrences([text], spans, looked_up, []) == find_occurrences(
                [text], spans, plain, []
            )
            assert stored.snapshot().find_own_placeholders(text) == known.find_own_placeholders(
                text
            )
            given = [
                release(each, *values, said=mention.split(), text=text) for each in (memory, stored)
            ]
            assert given[0] == given[1]
            with memory.noting() as notes, stored.noting() as others:
                for each in (notes, others):
                    assert each.claim_name("Ana", "Carla")
                    each.add_replacement("Ana", "Carla")
            answer = (
                "<PERSON_1> <person_1_given> PERSON_12 &lt;PERSON_3&gt; Carla the Carlas "
                + " ".join(given[0])
            )
            assert stored.restore(answer) == memory.restore(answer)
    kept = opened(either)
    assert kept.open("anna").to_json() == memory.to_json()
    assert kept.take(memory.to_json(), "anna", "copy").to_json() == memory.to_json()


def test_what_a_text_spelled_is_known_after_the_store_is_opened_again(either):
    release(SessionStore(either).open("anna"), text="see <EMAIL_1> there")
    assert release(SessionStore(either).open("anna"), ("EMAIL", "a@b.example")) == ["<EMAIL_2>"]


def test_nothing_is_readable_without_the_key(url, tmp_path):
    kept = SQLStore(url)
    session = kept.open("quillimar-subject", "zyxqorvian-session")
    release(session, *(("PERSON", each) for each in CANARIES), said=["zyxsaid"], text="zyxtext")
    files = [each for each in tmp_path.iterdir() if each.name.startswith("veil.db")]
    assert {each.name for each in files} >= {"veil.db", "veil.db-wal"}
    content = b"".join(each.read_bytes() for each in files)
    secrets = [
        *CANARIES,
        *(word for each in CANARIES for word in each.split()),
        "zyxsaid",
        "quillimar-subject",
    ]
    secrets += ["zyxqorvian-session", "PERSON_1"]
    assert readable(secrets, content) == []
    assert all(each.stat().st_mode & 0o077 == 0 for each in files)
    key = next((tmp_path / "keys").rglob("deployment.key")).read_text()
    assert key.encode() not in content
    assert bytes.fromhex(key) not in content


def test_a_store_that_does_not_encrypt_would_be_readable(url, tmp_path, monkeypatch):
    monkeypatch.setattr(encryption.Cipher, "seal", lambda self, content, *place: content)
    monkeypatch.setattr(encryption.Cipher, "open", lambda self, content, *place: content)
    release(SQLStore(url).open("anna"), *(("PERSON", each) for each in CANARIES))
    content = b"".join(
        each.read_bytes() for each in tmp_path.iterdir() if each.name.startswith("veil.db")
    )
    assert readable(CANARIES, content) == [*CANARIES]


@pytest.mark.parametrize("written", ["as it is", "utf-16-le", "hex", "base64", "json", "url"])
def test_what_is_searched_for_is_found_however_it_is_written(written):
    secret = CANARIES[3]
    form = {
        "as it is": secret.encode(),
        "utf-16-le": secret.encode("utf-16-le"),
        "hex": secret.encode().hex().encode(),
        "base64": base64.b64encode(b'{"name": "' + secret.encode() + b'"}'),
        "json": json.dumps([secret]).encode(),
        "url": quote(secret).encode(),
    }[written]
    assert readable(CANARIES, b"before" + form + b"behind") == [secret]


def test_a_wrong_or_missing_key_is_one_error_and_changes_nothing(url, keys, tmp_path, monkeypatch):
    with SQLStore(url) as kept:  # closed: a connection that ends later writes its log to the file
        release(kept.open("anna"), ("PERSON", "Maria Silva"))
    moved = keys.rename(tmp_path / "elsewhere")
    before = (tmp_path / "veil.db").read_bytes()
    with pytest.raises(StoreError, match="missing"):
        SQLStore(url)
    monkeypatch.setenv("TEXTVEIL_STORE_KEY", "ab" * 32)
    with pytest.raises(StoreError, match="does not fit the store"):
        SQLStore(url)
    monkeypatch.setenv("TEXTVEIL_STORE_KEY", "too short")
    with pytest.raises(ConfigError, match="64 hexadecimal"):
        SQLStore(url)
    assert not keys.exists()
    assert (tmp_path / "veil.db").read_bytes() == before
    monkeypatch.setenv("TEXTVEIL_STORE_KEY", (moved / "deployment.key").read_text())
    with pytest.raises(StoreError, match="key of this session is missing"):
        SQLStore(url).open("anna")
    assert SQLStore(url, keys=moved).open("anna").restore("<PERSON_1>") == "Maria Silva"


@pytest.mark.posix
def test_a_key_that_others_can_read_is_refused(url, keys):
    with SQLStore(url):
        (keys / "deployment.key").chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        SQLStore(url)


def test_what_is_forgotten_cannot_be_read_in_a_copy_of_the_database(url, tmp_path):
    with SQLStore(url) as kept:
        release(kept.open("anna"), ("PERSON", "Maria Silva"))
        release(kept.open("anna", "other"), ("PERSON", "Jo Alder"))
    shutil.copy(tmp_path / "veil.db", tmp_path / "backup.db")
    with SQLStore(url) as kept:
        assert kept.forget("anna", "default") == 1
        assert [each.session for each in kept.sessions()] == ["other"]
        assert kept.open("anna").restore("<PERSON_1>") == "<PERSON_1>"
        kept.forget("anna", "default")
    backup = SQLStore(f"sqlite:///{tmp_path / 'backup.db'}")
    with pytest.raises(StoreError, match="key of this session is missing"):
        backup.open("anna")
    assert backup.open("anna", "other").restore("<PERSON_1>") == "Jo Alder"


def test_a_session_that_was_forgotten_takes_nothing_more(either):
    kept = SessionStore(either)
    session = kept.open("anna")
    release(session, ("PERSON", "Maria Silva"))
    kept.forget("anna")
    with pytest.raises(StoreError, match="forgotten"):
        release(session, ("PERSON", "Jo Alder"))


def test_sessions_end_when_their_time_is_over(url, monkeypatch):
    begun = int(time.time())
    kept = SQLStore(url, keep=timedelta(days=1))
    release(kept.open("anna"), ("PERSON", "Maria Silva"))
    monkeypatch.setattr(Database, "get_time", lambda _: begun + 86_000)
    kept.open("berta")
    assert {each.subject for each in kept.sessions()} == {"anna", "berta"}
    monkeypatch.setattr(Database, "get_time", lambda _: begun + 87_000)
    kept.open("berta")
    assert [each.subject for each in kept.sessions()] == ["berta"]


def test_a_session_whose_time_is_over_is_never_opened(url, monkeypatch):
    begun = int(time.time())
    kept = SQLStore(url, keep=timedelta(days=1))
    for i in range(SWEEP_LIMIT + 3):
        release(kept.open(f"subject {i}"), ("PERSON", "Maria Silva"))
    monkeypatch.setattr(Database, "get_time", lambda _: begun + 90_000)
    assert kept.open(f"subject {SWEEP_LIMIT + 2}").restore("<PERSON_1>") == "<PERSON_1>"


def test_a_file_that_is_no_database_is_one_error_and_stays(url, tmp_path):
    (tmp_path / "veil.db").write_text("dear Maria Silva, " * 500)
    with pytest.raises(StoreError, match="cannot be opened") as error:
        SQLStore(url)
    assert error.value.__suppress_context__
    assert (tmp_path / "veil.db").read_text().startswith("dear Maria Silva, ")


def test_what_a_thread_reads_late_is_not_what_is_known(either):
    """One thread looks a value up that another one adds meanwhile: the next release knows it."""
    session = opened(either).open("anna")
    late, value = session.snapshot(), Original("EMAIL", "a@b.example")
    asked = late.facts["placeholders"]
    rows = asked.reader.read_names([asked.derive_name(value)])
    assert rows == []
    assert release(session, value[:2]) == ["<EMAIL_1>"]
    asked.reader = asked.reader._replace(read_names=lambda _: rows)  # what it had read before
    asked.look_up([(asked, [value])])
    assert release(session, value[:2]) == ["<EMAIL_1>"]


def test_options_may_stand_in_the_url(either, keys):
    with SessionStore(f"{either}?keep=2&session_keys=database") as kept:
        release(kept.open("anna"), ("PERSON", "Maria Silva"))
        (found,) = kept.sessions()
        assert found.expires is not None
        assert 172_790 <= found.expires - found.used <= 172_800
        assert [each.name for each in keys.rglob("*.key")] == ["deployment.key"]
        assert kept.open("anna").restore("<PERSON_1>") == "Maria Silva"
        kept.forget("anna")
        assert kept.open("anna").restore("<PERSON_1>") == "<PERSON_1>"
    for wrong in ("keep=0", "keep=soon", "session_keys=here"):
        with pytest.raises(ConfigError):
            SessionStore(f"{either}?{wrong}")


def swapped(url):
    """Two rows of one kind exchange what they hold; what the first then restores to."""
    kept = SQLStore(url)
    session = kept.open("anna")
    release(session, ("EMAIL", "a@b.example"), ("EMAIL", "c@d.example"))
    import sqlalchemy as sa

    facts = kept.tables.facts
    with kept.open_write() as connection:
        rows = connection.execute(sa.select(facts).where(facts.c.kind == "placeholders")).all()
        for one, other in (rows, rows[::-1]):
            connection.execute(
                sa.update(facts).where(facts.c.name == one.name).values(content=other.content)
            )
    return SQLStore(url).open("anna").restore("<EMAIL_1>")


def test_rows_that_were_moved_do_not_open(url):
    with pytest.raises(StoreError, match="other programs changed the store"):
        swapped(url)


def test_encryption_without_associated_data_would_not_notice(url, monkeypatch):
    monkeypatch.setattr(encryption.Cipher, "_join_place", lambda self, place: b"")
    assert swapped(url) == "<EMAIL_1>"  # lost, and nobody is told


WRITER = """
import sys
from tests.session.test_stores import release
from textveil.session import SessionStore
url, who, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
session = SessionStore(url).open("anna")
for i in range(first, last):
    shown = release(session, ("EMAIL", f"m{i}@x.example"), ("EMAIL", f"{who}{i}@y.example"))
    print(i, *shown, flush=True)
"""


def writer(url, who, first, last):
    command = [sys.executable, "-c", WRITER, url, who, str(first), str(last)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=os.getcwd())


def check_written(url, said):
    """What was handed out is what the store says: one name for each value, and no name for two."""
    names: dict[str, str] = {}
    with opened(url) as kept:
        session = kept.open("anna")
        for who, lines in said:
            for number, common, own in (line.split() for line in lines if line.count(" ") == 2):
                for name, value in (
                    (common, f"m{number}@x.example"),
                    (own, f"{who}{number}@y.example"),
                ):
                    assert names.setdefault(name, value) == value
                    assert session.restore(name) == value
        known = session.snapshot().read_all()
    assert len({given.text for given in known.placeholders.values()}) == len(known.placeholders)
    assert len(set(names.values())) == len(names)
    return len(names)


@pytest.mark.slow
def test_two_processes_at_once_agree(either):
    SessionStore(either).open("anna")
    processes = [(who, writer(either, who, 0, 15)) for who in "ab"]
    said = [(who, process.communicate(timeout=120)[0].splitlines()) for who, process in processes]
    assert check_written(either, said) == 45


@pytest.mark.slow
def test_processes_that_are_killed_leave_nothing_half_done(either):
    SessionStore(either).open("anna")
    said = []
    for at in (9,):
        processes = [(who, writer(either, f"{who}{at}", at, at + 40)) for who in "ab"]
        lines = [processes[0][1].stdout.readline() for _ in range(at)]  # type: ignore[union-attr]
        for _, process in processes:
            process.kill()
        said += [
            (f"{who}{at}", process.communicate()[0].splitlines()) for who, process in processes
        ]
        said.append((f"a{at}", lines))
    assert check_written(either, said) > 10


def test_threads_of_one_handle_agree(either):
    session = SessionStore(either).open("anna")
    with ThreadPoolExecutor(4) as pool:
        given = list(
            pool.map(lambda i: release(session, ("EMAIL", f"a{i % 7}@b.example"))[0], range(28))
        )
    assert all(session.restore(name) == f"a{i % 7}@b.example" for i, name in enumerate(given))
    assert len(set(given)) == 7


def test_a_name_that_is_taken_is_not_imported_over(either):
    kept: Any = SessionStore(either)
    release(kept.open("anna"), ("PERSON", "Maria Silva"))
    with pytest.raises(InputError, match="already"):
        kept.take(Session().to_json().replace('"owner":""', '"owner":"x"'), "anna")
    with pytest.raises(InputError, match="not a textveil session"):
        kept.take("{}", "berta")


@pytest.mark.slow
def test_postgresql(postgres):
    with SessionStore(postgres) as kept:
        session = kept.open("anna")
        assert release(session, ("PERSON", "Maria Silva"), ("EMAIL", "a@b.example")) == [
            "<PERSON_1>",
            "<EMAIL_1>",
        ]
    with SessionStore(postgres) as kept:
        session = kept.open("anna")
        assert release(session, ("PERSON", "Silva")) == ["<PERSON_1_FAMILY>"]
        assert session.restore("<PERSON_1>, <EMAIL_1>") == "Maria Silva, a@b.example"
        assert kept.forget("anna") == 1
        assert kept.sessions() == []
    processes = [(who, writer(postgres, who, 0, 15)) for who in "ab"]
    said = [(who, process.communicate(timeout=120)[0].splitlines()) for who, process in processes]
    assert check_written(postgres, said) == 45
    with SessionStore(postgres) as kept:
        spend = Spend(metric="ldp", table="small", epsilon=MICRO, ldp=MICRO, words=1)
        kept.ledger.limit("anna", "ldp", "small", 10)

        def spent(_):
            try:
                kept.ledger.confirm(kept.ledger.reserve("anna", spend))
            except LimitReached:
                return 0
            return 1

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(spent, range(24))) == 10
        entries = list(kept.ledger.entries())
        assert len([each for each in entries if each["what"] != "limit"]) == 20


def test_an_answer_is_restored_without_reading_all_names(either, monkeypatch):
    kept, read, all_of = SessionStore(either), set(), StoredFacts._read_all
    release(kept.open("chat"), *(("PERSON", f"Quill{i} Zyx{i}") for i in range(20)))

    def noted(facts):
        read.add(facts._kind)
        return all_of(facts)

    monkeypatch.setattr(StoredFacts, "_read_all", noted)
    restored = kept.open("chat").restore("<PERSON_1>, <PERSON_2_FAMILY>")
    assert restored == "Quill0 Zyx0, Zyx1"
    assert read <= {*EAGER_KINDS}
