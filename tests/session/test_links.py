"""Where links of conversations lie: every store keeps the same rules, also for several threads and handles at once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from textveil.session import SessionStore

pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
pytest.importorskip("cryptography", reason="the extra `store` is not installed")


@pytest.fixture(params=["memory", "SQLite", "PostgreSQL", "Redis"])
def opened(request, tmp_path, monkeypatch):
    """Opens the links of an account in a store: in memory always in the same, else as another process would."""
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    if request.param == "memory":
        yield SessionStore().links
        return
    url = (
        f"sqlite:///{tmp_path / 'veil.db'}"
        if request.param == "SQLite"
        else request.getfixturevalue({"PostgreSQL": "postgres", "Redis": "redis"}[request.param])
    )
    with ExitStack() as until:
        yield lambda account: until.enter_context(SessionStore(url)).links(account)


def test_rows_stay_or_are_replaced(opened):
    links = opened("anna")
    one, two = links.derive_name(b"a"), links.derive_name(b"a", b"b")
    links.add({one: b"first"}, {two: b"first"})
    links.add({one: b"second"}, {two: b"second"})
    known = opened("anna").get([one, two])
    assert {name: row.rstrip() for name, row in known.items()} == {one: b"first", two: b"second"}
    assert opened("berta").derive_name(b"a") != one


def test_rows_are_found_by_what_they_stand_behind(opened):
    links = opened("anna")
    names = [links.derive_name(bytes([i])) for i in range(5)]
    first, second, *rows = names
    marked = [f"{first.hex()} {second.hex()} [1]", f"{second.hex()} [2]", '["ab cd [3]"]']
    links.add({name: row.encode() for name, row in zip(rows, marked, strict=True)}, {})
    links.add({first: f"{first.hex()} not a mark".encode()}, {})
    found = opened("anna").find_beside([first])
    assert {name: row.rstrip() for name, row in found.items()} == {rows[0]: marked[0].encode()}
    links.add({}, {rows[0]: marked[1].encode(), rows[1]: b"[2]"})
    assert opened("anna").find_beside([first]) == {}
    assert set(opened("anna").find_beside([first, second])) == {rows[0]}
    assert opened("berta").find_beside([]) == {}


def test_a_row_is_swapped_only_where_it_is_as_it_was(opened):
    links, other = opened("anna"), opened("anna")
    name = links.derive_name(b"a")
    assert not links.swap(name, b"before", b"new")
    assert links.get([name]) == {}
    assert links.swap(name, None, b"one")
    known = links.get([name])[name]
    assert other.swap(name, known, b"two")
    assert not links.swap(name, known, b"three")
    assert not links.swap(name, None, b"three")
    assert links.swap(name, known, b"two")  # it is there already: sent again
    assert links.swap(name, None, b"two")
    assert links.get([name])[name].rstrip() == b"two"


def test_of_those_who_swap_at_once_one_does(opened):
    handles = [opened("anna") for _ in range(4)]
    name, before = handles[0].derive_name(b"a"), None
    with ThreadPoolExecutor(4) as pool:
        for turn in range(3):

            def swapped(i, turn=turn, before=before):
                return handles[i].swap(name, before, b"turn %d of %d" % (turn, i))

            won = [i for i, swapped in enumerate(pool.map(swapped, range(4))) if swapped]
            assert len(won) == 1
            before = handles[0].get([name])[name]
            assert before.rstrip() == b"turn %d of %d" % (turn, won[0])
