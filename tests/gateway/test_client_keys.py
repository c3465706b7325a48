"""Keys of the gateway's own: only hashes are kept, what is revoked is refused by all, and limits hold."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from textveil import cli
from textveil.errors import ConfigError, StoreError
from textveil.gateway import GatewayKeys


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "gateway.keys")


@pytest.fixture
def kept(path):
    return GatewayKeys(path, new=True)


def names(path):
    """All files of a folder's database."""
    return [f"{path}{end}" for end in ("", "-wal", "-shm") if os.path.exists(f"{path}{end}")]


def test_a_key_is_known_by_its_hash_alone(kept, path):
    key = kept.create("team-a/anna")
    assert len(key) == len("tv-") + 43
    known = kept.find(key)
    assert (known.name, known.state, known.expires) == ("team-a/anna", "valid", None)
    assert known.account == f"key-team-a/anna-{known.id}"
    for wrong in ("", key[:-1], key + "x", key.upper(), "tv-", "sk-other", "\udcff"):
        assert kept.find(wrong) is None
    for name in names(path):
        assert key.encode() not in Path(name).read_bytes()
        assert os.stat(name).st_mode & 0o077 == 0
    assert key not in repr(known)


def test_no_two_keys_are_alike(kept):
    assert len({kept.create(f"a{i}") for i in range(50)}) == 50


def test_a_name_has_one_valid_key(kept):
    first = kept.create("anna")
    with pytest.raises(ConfigError, match="a key named"):
        kept.create("anna")
    old = kept.revoke("anna")
    second = kept.create("anna")
    assert kept.find(first) is None
    assert kept.find(second).account != old.account  # what the old one spent and said stays its own
    assert [each.state for each in kept.list_keys()] == ["revoked", "valid"]
    kept.revoke("anna")
    with pytest.raises(ConfigError, match="no valid key is named"):
        kept.revoke("anna")


@pytest.mark.parametrize("name", ["", "a b", "a*", "x" * 65, "a\n", "[a]"])
def test_names_that_are_none(kept, name):
    with pytest.raises(ConfigError, match="the name of a key must have"):
        kept.create(name)


@pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf")])
def test_a_life_that_is_none(kept, days):
    with pytest.raises(ConfigError, match="a key must expire after more than 0"):
        kept.create("anna", days=days)


def test_a_key_expires(kept, monkeypatch):
    key = kept.create("anna", days=1)
    now = time.time()
    monkeypatch.setattr("textveil.gateway.policy.client_keys.time.time", lambda: now + 86_390)
    assert kept.find(key).used is None
    assert kept.find(key).used == int(now + 86_390)
    monkeypatch.setattr("textveil.gateway.policy.client_keys.time.time", lambda: now + 86_401)
    assert kept.find(key) is None
    assert kept.list_keys()[0].state == "expired"


def test_another_process_revokes_at_once(kept, path):
    key = kept.create("anna")
    assert kept.find(key) is not None
    program = f"from textveil.gateway import GatewayKeys; GatewayKeys({path!r}).revoke('anna')"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert kept.find(key) is None


def test_a_process_that_forked_finds_keys_too(kept, path):
    """What was opened before must not be used: two processes would undo each other's locks."""
    key = kept.create("anna")
    before = kept._connection
    kept._opened = (*kept._opened[:2], -1)
    assert kept.find(key) is not None
    assert kept._connection is not before


def test_a_file_that_vanished_lets_nobody_in(kept, path):
    key = kept.create("anna")
    for name in names(path):
        os.unlink(name)
    with pytest.raises(ConfigError, match="cannot be used: No such file"):
        kept.find(key)
    GatewayKeys(path, new=True)
    assert kept.find(key) is None  # the new file counts, not the one that was open


def test_a_file_of_another_kind_that_takes_its_place_lets_nobody_in(kept, path):
    key = kept.create("anna")
    with sqlite3.connect(path) as connection:
        connection.execute("pragma application_id = 1")
        connection.execute("vacuum into ?", (f"{path}.other",))
    connection.close()
    os.replace(f"{path}.other", path)
    for _ in range(2):  # not only the first time
        with pytest.raises(ConfigError, match="is not a file of gateway keys"):
            kept.find(key)


@pytest.mark.parametrize("content", [b"", b"no database" * 100, None])
def test_files_of_another_kind_are_refused(path, content):
    if content is None:
        with sqlite3.connect(path) as other:
            other.execute("create table keys (id text)")
        other.close()
    else:
        Path(path).write_bytes(content)
    with pytest.raises(ConfigError, match="is not a file of gateway keys"):
        GatewayKeys(path, new=True)


def test_a_missing_file_is_said(path, tmp_path):
    with pytest.raises(ConfigError, match="`textveil gateway keys create` makes it"):
        GatewayKeys(path)
    with pytest.raises(ConfigError, match="cannot be used"):
        GatewayKeys(str(tmp_path / "no" / "where"), new=True)


def test_a_file_that_is_locked_lets_nobody_in(kept, path, monkeypatch):
    key = kept.create("anna")
    kept._connection.execute("pragma busy_timeout = 10")
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("begin exclusive")
        with pytest.raises(StoreError, match="cannot be used: database is locked"):
            kept.find(key)  # which notes that it is used
        other.execute("rollback")
    other.close()


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_a_bucket_fills_steadily(kept, monkeypatch):
    key = kept.find(kept.create("anna"))
    now = time.time()
    monkeypatch.setattr("textveil.gateway.policy.client_keys.time.time", lambda: now)
    assert [kept.count_request(key, 3) for _ in range(3)] == [0, 0, 0]
    assert kept.count_request(key, 3) == pytest.approx(20)
    monkeypatch.setattr("textveil.gateway.policy.client_keys.time.time", lambda: now + 15)
    assert kept.count_request(key, 3) == pytest.approx(5, abs=0.01)
    monkeypatch.setattr("textveil.gateway.policy.client_keys.time.time", lambda: now + 20.1)
    assert kept.count_request(key, 3) == 0
    monkeypatch.setattr("textveil.gateway.policy.client_keys.time.time", lambda: now + 100_000)
    assert [kept.count_request(key, 3) for _ in range(4)].count(0) == 3  # no more than fits
    monkeypatch.setattr(
        "textveil.gateway.policy.client_keys.time.time", lambda: now
    )  # a clock that was set back
    assert kept.count_request(key, 3) > 0


def test_keys_have_buckets_of_their_own(kept):
    anna, berta = (kept.find(kept.create(name)) for name in ("anna", "berta"))
    assert kept.count_request(anna, 1) == 0
    assert kept.count_request(anna, 1) > 0
    assert kept.count_request(berta, 1) == 0


def taken(opened, key, most, threads=8, each=20):
    """How many requests pass that many threads make at once, each at one of some open files."""
    start = threading.Barrier(threads)

    def ask(number):
        start.wait()
        return sum(opened[number % len(opened)].count_request(key, most) == 0 for _ in range(each))

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(ask, range(threads)))


def test_the_limit_holds_for_requests_at_once(kept, path, monkeypatch):
    key = kept.find(kept.create("anna"))
    now = time.time()
    monkeypatch.setattr("textveil.gateway.policy.client_keys.time.time", lambda: now)
    opened = [kept, *(GatewayKeys(path) for _ in range(3))]  # as four processes have it
    assert taken(opened, key, 50) == 50


def test_a_bucket_that_is_read_and_then_written_lets_more_pass(kept, path, monkeypatch):
    """The broken twin."""
    key = kept.find(kept.create("anna"))
    left = {"tokens": 50.0}
    turn = threading.Barrier(8)

    def careless(self, key, requests):
        seen = left["tokens"]
        turn.wait()
        left["tokens"] = seen - 1
        return 0.0 if seen >= 1 else 1.0

    monkeypatch.setattr(GatewayKeys, "count_request", careless)
    assert taken([kept], key, 50) > 50


# ---- the verbs -------------------------------------------------------------------------------------------------------


def test_keys_by_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gateway.yaml").write_text("upstream: http://127.0.0.1:9/v1\nkeys: own.keys\n")

    def run(*arguments):
        code = cli.main(["gateway", "keys", *arguments, "--policy", "gateway.yaml"])
        return code, *capsys.readouterr()

    assert run("list") == (0, "", "there are no keys\n")
    code, key, said = run("create", "anna", "--days", "2")
    assert (code, said) == (0, "this key is not shown again\n")
    known = GatewayKeys(str(tmp_path / "own.keys")).find(key.strip())
    assert known is not None
    assert known.name == "anna"
    code, listed, _ = run("list")
    assert code == 0
    assert key.strip() not in listed
    assert [line.split()[0::2][:2] for line in listed.splitlines()] == [
        ["name", "state"],
        ["anna", "valid"],
    ]
    assert run("create", "anna")[0] == 2
    code, _, said = run("revoke", "anna")
    assert code == 0
    assert "is revoked" in said
    (found,) = json.loads(run("list", "--json")[1])
    assert (found["name"], found["state"]) == ("anna", "revoked")
    assert "hash" not in found
    (tmp_path / "gateway.yaml").write_text("upstream: http://127.0.0.1:9/v1\n")
    assert "names no file of keys" in run("list")[2]
