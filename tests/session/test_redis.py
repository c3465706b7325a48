"""Redis: nothing is readable without the key, nobody is overtaken, and what a server may lose is said."""

import json
import os
import socket
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

pytest.importorskip("redis", reason="the extra `redis` is not installed")
pytest.importorskip("cryptography", reason="the extra `redis` is not installed")
from tests.postgres import MissingServerError
from tests.readable import readable
from tests.redis_server import connected, dumped, start
from tests.redis_server import redis as server
from tests.session.test_stores import CANARIES, release

from textveil import Privatizer, cli
from textveil.errors import ConfigError, LimitReached, StoreError, TextveilWarning
from textveil.session import Changes, redis_store
from textveil.session.redis_store import RedisStore, Transaction
from textveil.session.sql import encryption
from textveil.session.state import MAX_ATTEMPTS
from textveil.session.stores import CONVERSATIONS_SESSION

KEYS = "?session_keys=database"


@pytest.fixture(autouse=True)
def keys(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    return tmp_path / "keys"


def fill(store):
    """Puts canaries wherever a store keeps something: rows, names, and links of conversations."""
    session = store.open("quillimar-subject", "zyxqorvian-session")
    release(session, *(("PERSON", each) for each in CANARIES), said=["zyxsaid"], text="zyxtext")
    links = store.links("quillimar-account")
    links.add({links.derive_name(b"quillimar-part"): b'["quillimar-link"]'}, {})
    session.forget(["<PERSON_2>"])


SECRETS = [
    *CANARIES,
    *(word for each in CANARIES for word in each.split()),
    *("zyxsaid", "quillimar-subject", "zyxqorvian-session", "PERSON_1"),
    *("quillimar-account", "quillimar-part", "quillimar-link", CONVERSATIONS_SESSION),
]


@pytest.mark.parametrize("options", ["", KEYS])
def test_nothing_is_readable_without_the_key(redis, keys, options):
    with RedisStore(redis + options) as store:
        fill(store)
    assert readable(SECRETS, dumped(redis)) == []
    key = (keys / "deployment.key").read_text()
    assert key.encode() not in dumped(redis)
    assert bytes.fromhex(key) not in dumped(redis)
    assert len(list(keys.rglob("*.key"))) == (1 if options else 3)


def test_a_store_that_does_not_encrypt_would_be_readable(redis, monkeypatch):
    monkeypatch.setattr(encryption.Cipher, "seal", lambda self, content, *place: content)
    monkeypatch.setattr(encryption.Cipher, "open", lambda self, content, *place: content)
    with RedisStore(redis) as store:
        fill(store)
    forgotten = CANARIES[1]
    assert {*CANARIES} - {*readable(CANARIES, dumped(redis))} == {forgotten}


def test_errors_show_neither_rows_nor_the_password(redis, monkeypatch):
    port = redis.rpartition(":")[2]
    for wrong in (f"redis://quillimar:zyxqorvian@127.0.0.1:{port}", "redis://zyxqorvian:no-port/0"):
        with pytest.raises((StoreError, ConfigError)) as error:
            RedisStore(wrong)
        assert readable(["zyxqorvian", "quillimar"], repr(error.value).encode()) == []
        assert error.value.__suppress_context__ or error.value.__context__ is None
    with RedisStore(redis) as store:
        session = store.open("anna")
        with connected(redis) as client:
            client.config_set("maxmemory", 1)
            try:
                with pytest.raises(StoreError, match="memory of the server is full") as error:
                    release(session, ("PERSON", CANARIES[0]))
            finally:
                client.config_set("maxmemory", 0)
        assert error.value.__suppress_context__
        assert readable(SECRETS, f"{error.value!r}{store!r}{session!r}".encode()) == []


def test_a_wrong_or_missing_key_is_one_error_and_changes_nothing(
    redis, keys, tmp_path, monkeypatch
):
    with RedisStore(redis) as store:
        release(store.open("anna"), ("PERSON", "Maria Silva"))
    moved, before = keys.rename(tmp_path / "elsewhere"), dumped(redis)
    with pytest.raises(StoreError, match="missing"):
        RedisStore(redis)
    monkeypatch.setenv("TEXTVEIL_STORE_KEY", "ab" * 32)
    with pytest.raises(StoreError, match="does not fit the store"):
        RedisStore(redis)
    monkeypatch.setenv("TEXTVEIL_STORE_KEY", (moved / "deployment.key").read_text())
    with pytest.raises(StoreError, match="key of this session is missing"):
        RedisStore(redis).open("anna")
    assert dumped(redis) == before
    assert RedisStore(redis, keys=moved).open("anna").restore("<PERSON_1>") == "Maria Silva"


def swap_rows(url):
    """Two rows of one kind exchange what they hold; what the first then restores to."""
    with RedisStore(url) as store:
        session = store.open("anna")
        release(session, ("EMAIL", "a@b.example"), ("EMAIL", "c@d.example"))
        rows = [
            row
            for row in store.build_reader(session.number).read_all()
            if row.kind == "placeholders"
        ]
        key = store.build_key("session", session.number.place)
        for one, other in (rows, rows[::-1]):
            packed = redis_store._pack(one._replace(content=other.content))
            store.client.hset(key, b"r" + one.name, packed)
    return RedisStore(url).open("anna").restore("<EMAIL_1>")


def test_rows_that_were_moved_do_not_open(redis):
    with pytest.raises(StoreError, match="other programs changed the store"):
        swap_rows(redis)


def test_what_is_forgotten_cannot_be_read_in_a_copy_of_the_server(redis):
    with RedisStore(redis) as store, connected(redis) as client:
        release(store.open("anna"), ("PERSON", "Maria Silva"))
        release(store.open("anna", "other"), ("PERSON", "Jo Alder"))
        copied = {key: client.dump(key) for key in client.keys("*")}
        assert store.forget("anna", "default") == 1
        assert [each.session for each in store.sessions()] == ["other"]
        assert store.open("anna").restore("<PERSON_1>") == "<PERSON_1>"
        store.forget("anna", "default")
        for key, content in copied.items():
            client.restore(key, 0, content, replace=True)
        with pytest.raises(StoreError, match="key of this session is missing"):
            store.open("anna")
        assert store.open("anna", "other").restore("<PERSON_1>") == "Jo Alder"
        assert store.forget("anna") == 2


@pytest.mark.parametrize("drawing", [{"profile": "strict"}, {"options": {"names.types": ["all"]}}])
def test_gateways_that_draw_are_refused_at_their_start(redis, drawing):
    """By configuration, so that no request is lost; one that hides is served."""
    pytest.importorskip("starlette", reason="the extra `gateway` is not installed")
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    from textveil.gateway import Gateway, Policy, ToolServer
    from textveil.gateway.policy.policy import PolicyRule

    address, every_tool = "http://127.0.0.1:9/v1", Policy(tools=("*",))
    with RedisStore(redis) as store:

        def serve_tools(policy):
            privatizer = Privatizer.from_config(policy.resolve_config())
            return ToolServer(
                privatizer=privatizer,
                session=store.open("anna"),
                command=("cat",),
                policy=every_tool,
            )

        def serve(policy):
            return Gateway(policy=policy, store=store)

        for make in (serve_tools, serve):
            make(Policy(upstream=address))
            with pytest.raises(ConfigError, match="drawn, and a store in Redis keeps no ledger"):
                make(Policy(upstream=address, **drawing))
        with pytest.raises(ConfigError, match="drawn, and a store in Redis keeps no ledger"):
            serve(Policy(upstream=address, rules=(PolicyRule(models=("m",), **drawing),)))


# ---- forgetting ----------------------------------------------------------------------------------


def forget_in_files(url, *, forbidden="", seconds=0):
    """Forgets a value in a session; its old sealed rows that still lie in files of the server."""
    with connected(url) as client:
        folder = Path(client.config_get("dir")["dir"])
        if forbidden:
            client.acl_setuser("default", commands=[f"-{forbidden}"], enabled=True)
    with RedisStore(url) as store:
        session = store.open("anna")
        release(session, ("PERSON", "Maria Silva"), ("EMAIL", "umbro@other.example"))
        old = [row.content for row in store.build_reader(session.number).read_all()]
        links = store.links("anna")
        links.add({links.derive_name(b"a"): json.dumps("Ask Maria Silva").encode()}, {})
        old += [row.content for row in links._database.build_reader(links._number).read_all()]
        assert list_left(folder, old) == old
        assert store.forget_values(["Maria Silva"])
        assert store.open("anna").restore("<PERSON_1> <EMAIL_1>").endswith("umbro@other.example")
    end = time.monotonic() + seconds
    while (left := list_left(folder, old)) and time.monotonic() < end:
        time.sleep(0.05)  # the server deletes files of before in the background
    return left


def list_left(folder, contents):
    """The contents that files of the server hold; the beginning of each is a nonce."""
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return [content for content in contents if any(content[:12] in file for file in files)]


def test_old_rows_are_in_no_file_of_the_server(own_server):
    url = own_server("--save", "3600 1")
    with connected(url) as client:
        client.save()
        assert forget_in_files(url, seconds=5) == []
        assert (Path(client.config_get("dir")["dir"]) / "dump.rdb").exists()
        assert client.info("persistence")["aof_enabled"]


def test_a_server_that_does_not_write_its_files_anew_is_noticed(own_server, monkeypatch):
    url = own_server()
    monkeypatch.setattr(RedisStore, "purge", lambda _: True)
    assert forget_in_files(url)


@pytest.mark.parametrize("forbidden", ["bgrewriteaof", "config", "info"])
def test_a_server_that_forbids_to_write_its_files_anew_is_said(own_server, forbidden):
    url = own_server()
    with pytest.warns(TextveilWarning, match="run BGREWRITEAOF and BGSAVE"):
        assert forget_in_files(url, forbidden=forbidden)


def test_rows_go_one_by_one(redis):
    with RedisStore(redis) as store, connected(redis) as client:
        links = store.links("anna")
        names = [links.derive_name(each) for each in (b"a", b"b", b"c")]
        links.add(dict.fromkeys(names, b"x"), {})
        with store.open_write() as connection:
            links.lock(connection)
            links.remove(connection, [names[0], names[2], links.derive_name(b"nothing")])
        assert [*links.get(names)] == [names[1]]
        key = store.build_key("session", links._number.place)
        assert [each[1:] for each in client.hkeys(key) if len(each) == 17] == [names[1]]


def test_words_that_last_create_nothing_where_there_is_no_ledger(redis):
    with RedisStore(redis) as store:
        session = store.open("anna")
        with pytest.raises(ConfigError, match="no ledger"):
            session.lasting([("law", "word", "other")])
        release(session, ("PERSON", "Maria Silva"))
        assert [each.session for each in store.sessions()] == ["default"]
        assert session.forget(["<PERSON_1>"]) == 1


def test_sessions_end_when_their_time_is_over_with_their_keys(redis, keys, monkeypatch):
    begun = int(time.time())
    with RedisStore(redis, keep=timedelta(days=1)) as store, connected(redis) as client:
        release(store.open("anna"), ("PERSON", "Maria Silva"))
        key = store.build_key("session", store.open("anna").number.place)
        assert 86_400 < client.ttl(key) <= 86_460  # the server alone would delete it, too
        monkeypatch.setattr(RedisStore, "get_time", lambda _: begun + 86_000)
        store.open("berta")
        assert {each.subject for each in store.sessions()} == {"anna", "berta"}
        monkeypatch.setattr(RedisStore, "get_time", lambda _: begun + 87_000)
        store.open("berta")
        assert [each.subject for each in store.sessions()] == ["berta"]
        assert len(list(keys.rglob("*.key"))) == 2
        monkeypatch.setattr(RedisStore, "get_time", lambda _: begun + 180_000)
        assert store.open("berta").restore("<PERSON_1>") == "<PERSON_1>"
    monkeypatch.setattr(RedisStore, "get_time", lambda _: int(time.time()))
    with RedisStore(redis + KEYS + "&keep=1") as store, connected(redis) as client:
        release(store.open("clara"), ("PERSON", "Maria Silva"))
        assert {0 < client.ttl(key) <= 86_460 for key in client.keys("*:key:*")} == {True}
    with RedisStore(redis + KEYS) as store, connected(redis) as client:
        release(store.open("clara"), ("PERSON", "Jo Alder"))
        assert {client.ttl(key) for key in client.keys("*:key:*")} == {-1}  # kept from now on


def test_a_slow_release_is_not_overtaken_for_ever(redis):
    """After some tries it goes first, and the others wait for it."""
    slow, quick, watching = (RedisStore(redis).open("anna") for _ in range(3))
    tries, done = [], Event()

    def hurry():
        i = 0
        while not done.is_set():
            release(quick, ("EMAIL", f"a{(i := i + 1)}@b.example"))
        return i

    def take_long(snapshot):
        tries.append(snapshot.version)
        end = time.monotonic() + 10
        while len(tries) <= MAX_ATTEMPTS and time.monotonic() < end:
            if watching.snapshot().version != snapshot.version:  # somebody was quicker
                break
        notes = Changes(snapshot)
        return notes.assign_placeholder("PERSON", "Maria Silva"), notes.build_delta()

    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(hurry)
        try:
            while not quick.snapshot().version:
                pass
            assert slow.transaction(take_long) == "<PERSON_1>"
        finally:
            done.set()
        number = others.result()
    assert len(tries) == MAX_ATTEMPTS + 1
    known = RedisStore(redis).open("anna").snapshot().read_all()
    assert len(known.placeholders) == number + 1
    assert len({each.text for each in known.placeholders.values()}) == number + 1


def test_without_the_check_of_the_version_a_placeholder_would_stand_for_two(redis, monkeypatch):
    def collide():
        with RedisStore(redis) as store:
            store.forget("anna")
            one, other = store.open("anna"), store.open("anna")
            between = iter([True])

            def late(snapshot):
                notes = Changes(snapshot)
                named = notes.assign_placeholder("EMAIL", "a@b.example")
                if next(between, False):
                    assert release(other, ("EMAIL", "c@d.example")) == ["<EMAIL_1>"]
                return named, notes.build_delta()

            return one.transaction(late)

    assert collide() == "<EMAIL_2>"
    add = Transaction.add

    def forget_version(transaction, rows, *, replace):
        transaction.since = None
        add(transaction, rows, replace=replace)

    monkeypatch.setattr(Transaction, "add", forget_version)
    assert collide() == "<EMAIL_1>"


def test_a_version_never_comes_again(redis):
    """A server that lost commits is not taken for the one that has them."""
    with RedisStore(redis) as store, connected(redis) as client:
        session = store.open("anna")
        release(session, ("EMAIL", "a@b.example"))
        key = store.build_key("session", session.number.place)
        before = client.dump(key)
        release(session, ("EMAIL", "c@d.example"))
        late = session.snapshot()
        client.restore(key, 0, before, replace=True)
        assert release(store.open("anna"), ("EMAIL", "e@f.example")) == ["<EMAIL_2>"]
        notes = Changes(late)
        notes.assign_placeholder("EMAIL", "g@h.example")
        assert not session.commit(notes.build_delta())
        assert session.restore("<EMAIL_2>") == "e@f.example"


def test_a_call_that_is_repeated_changes_nothing(redis, monkeypatch):
    with RedisStore(redis) as store:
        session, run = store.open("anna"), RedisStore._run

        def run_twice(self, script, place, arguments):
            run(self, script, place, arguments)
            run(self, script, place, arguments)

        monkeypatch.setattr(RedisStore, "_run", run_twice)
        assert release(session, ("EMAIL", "a@b.example")) == ["<EMAIL_1>"]
        assert release(session, ("EMAIL", "c@d.example")) == ["<EMAIL_2>"]
        assert len(session.snapshot().read_all().placeholders) == 2


def test_a_release_that_spends_is_refused(redis, small_table, monkeypatch):
    noisy = Privatizer("noise", table=small_table, eta=1.0)
    with RedisStore(redis) as store:
        session = store.open("anna")
        with pytest.raises(LimitReached, match=r"sqlite:///NAME\.db or postgresql://HOST/NAME"):
            noisy.privatize(small_table.words[0], session)
        assert session.snapshot().version == 0
        with pytest.raises(ConfigError, match="no ledger"):
            store.ledger  # noqa: B018 - raises
        ledger: Any = store.links("anna").ledger
        ledger.limit("anna", "ldp", "all tables", None)
        with pytest.raises(ConfigError, match="no ledger"):
            ledger.limit("anna", "ldp", "all tables", 1.0)
        monkeypatch.setattr(redis_store.NoLedger, "reserve_all", lambda *_, **__: [])
        noisy.privatize(small_table.words[0], session)  # a ledger that refuses nothing lets it out


@pytest.fixture
def own_server():
    """Starts a server with settings of its own; returns its URL."""
    running = []

    def begin(*settings):
        folder = tempfile.TemporaryDirectory()
        served = server(Path(folder.name), *settings)
        running.append((folder, served))
        try:
            return served.__enter__()
        except MissingServerError as error:
            pytest.skip(str(error))

    yield begin
    for folder, served in running:
        with suppress(StopIteration):
            served.__exit__(None, None, None)
        folder.cleanup()


def test_what_a_server_may_lose_is_said(redis, own_server):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RedisStore(redis).close()
    careless = own_server("--maxmemory-policy", "allkeys-lru", "--appendonly", "no")
    with pytest.warns(TextveilWarning, match=r"noeviction\).*appendonly yes\)"):
        RedisStore(careless).close()


def test_a_store_goes_on_when_the_server_comes_back(tmp_path):
    try:
        with server(tmp_path):
            pass
    except MissingServerError as error:
        pytest.skip(str(error))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start(tmp_path, port)
    try:
        store = RedisStore(f"redis://127.0.0.1:{port}/0")
        session = store.open("anna")
        assert release(session, ("EMAIL", "a@b.example")) == ["<EMAIL_1>"]
        process.kill()
        process.wait(30)
        with pytest.raises(StoreError, match="check that the server runs"):
            release(session, ("EMAIL", "c@d.example"))
        process = start(tmp_path, port)
        assert release(session, ("EMAIL", "c@d.example")) == ["<EMAIL_2>"]
        assert session.restore("<EMAIL_1>") == "a@b.example"
        store.ping()
        with connected(f"redis://127.0.0.1:{port}/0") as client:
            client.flushall()
        for lost in (store.ping, lambda: store.open("anna"), session.snapshot):
            with pytest.raises(StoreError, match=r"lost the store|was forgotten"):
                lost()
    finally:
        process.kill()
        process.wait(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_forks_goes_on_in_both(redis):
    store = RedisStore(redis)
    session = store.open("anna")
    release(session, ("EMAIL", "a@b.example"))
    child = os.fork()
    if child == 0:
        os._exit(release(session, ("EMAIL", "c@d.example")) != ["<EMAIL_2>"])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert release(session, ("EMAIL", "e@f.example")) == ["<EMAIL_3>"]


def test_the_verbs_of_sessions_take_it(redis, tmp_path, capsys):
    store = ["--store", redis]
    text = "Mail maria@example.org"
    assert cli.main(["protect", text, "--session", "anna/lease", *store]) == 0
    assert cli.main(["restore", "To <EMAIL_1>", "--session", "anna/lease", *store]) == 0
    file = str(tmp_path / "lease.session")
    for verb in (
        ["list"],
        ["show", "anna/lease"],
        ["export", "anna/lease", file],
        ["import", file, "anna/copy"],
        ["forget", "anna/lease", "--value", "<EMAIL_1>"],
        ["forget", "anna", "--all"],
    ):
        assert cli.main(["session", *verb, *store]) == 0
    said = capsys.readouterr()
    assert "Mail <EMAIL_1>" in said.out
    assert "To maria@example.org" in said.out
    assert "anna/lease  used" in said.out
    assert "1 value was forgotten" in said.err
    assert "2 sessions were forgotten" in said.err
    assert cli.main(["ledger", "show", *store]) != 0
    assert "keeps no ledger" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url", ["redis://:zxcanary@127.0.0.1:1/0?unknown=x", "redis://127.0.0.1:port/0"]
)
def test_a_url_that_names_no_server_is_refused_and_not_shown(url):
    with pytest.raises(ConfigError, match="is named by redis") as caught:
        RedisStore(url)
    assert "zxcanary" not in str(caught.value)
