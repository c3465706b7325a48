"""The ledger against who can write to the database: what was changed or put back is an error that names the account."""

import os
import shutil
import sqlite3
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from tests.postgres import KEYS

from textveil.errors import StoreError
from textveil.session.spending import MICRO, Spend

pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
pytest.importorskip("cryptography", reason="the extra `store` is not installed")
import sqlalchemy as sa

from textveil.session.database_store import SQLStore
from textveil.session.sql.database import GONE_MESSAGE, StoreFile
from textveil.session.sql.encryption import derive
from textveil.session.sql.ledger import NEWEST_LINKS, Ledger

ONE = Spend(metric="chord", table="small", epsilon=MICRO, ldp=2 * MICRO, words=1)
TABLES = ("accounts", "entries", "limits")


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def url(request, tmp_path, monkeypatch):
    """The URL of a store in either database."""
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    return (
        f"sqlite:///{tmp_path / 'veil.db'}"
        if request.param == "SQLite"
        else request.getfixturevalue("postgres")
    )


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    return tmp_path / "veil.db"


class Attacker:
    """Who may write what they want, foreign keys or not."""

    def __init__(self, url):
        address = url.removesuffix(KEYS).replace("postgresql://", "postgresql+psycopg://")
        self.connection = sa.create_engine(address, poolclass=sa.NullPool).connect()

    def __enter__(self):
        if self.connection.dialect.name == "postgresql":
            self.connection.execute(sa.text("set session_replication_role = replica"))
        return self

    def __exit__(self, *_):
        self.connection.close()

    def __call__(self, statement, **values):
        self.connection.execute(sa.text(statement), values)

    def rows(self):
        read = {
            each: self.connection.execute(sa.text(f"select * from textveil_{each}"))
            for each in TABLES
        }
        return {each: [dict(row) for row in found.mappings()] for each, found in read.items()}

    def put_back(self, saved):
        for each, found in saved.items():
            self(f"delete from textveil_{each}")
            self.add(each, *found)
        self.connection.commit()

    def add(self, table, *rows):
        if rows:
            names = ", ".join(f'"{name}"' for name in rows[0])
            values = ", ".join(f":{name}" for name in rows[0])
            self.connection.execute(
                sa.text(f"insert into textveil_{table} ({names}) values ({values})"), list(rows)
            )


@contextmanager
def attacker(url):
    with Attacker(url) as write:
        yield write
        write.connection.commit()


def only(rows, table, name):
    """The rows of an account."""
    return [row for row in rows[table] if row["name" if table == "accounts" else "account"] == name]


def older(write, a, before, *tables):
    """Puts rows of an account back to what they were."""
    for table in tables:
        write(
            f"delete from textveil_{table} where {'name' if table == 'accounts' else 'account'} = :a",
            a=a,
        )
        for row in only(before, table, a):
            write.add(table, row)


def older_seal(write, a, before):
    """Puts everything of an account back to what it was, but for its newest link and its entries."""
    (row,) = only(before, "accounts", a)
    (now,) = only(write.rows(), "accounts", a)
    older(write, a, before, "limits")
    kept = {**row, "entries": now["entries"], "link": now["link"]}
    names = ", ".join(f"{name} = :{name}" for name in kept if name != "name")
    write(f"update textveil_accounts set {names} where name = :name", **kept)


def swap(write, a):
    """Changes the order of two entries."""
    for before, after in ((2, -1), (3, 2), (-1, 3)):
        write(
            "update textveil_entries set number = :y where account = :a and number = :x",
            a=a,
            x=before,
            y=after,
        )


def copied(write, a, b):
    """Gives an account what the row of another one says."""
    (other,) = only(write.rows(), "accounts", b)
    names = ("entries", "link", "epsilon", "ldp", "releases", "infinite", "seal")
    write(
        f"update textveil_accounts set {', '.join(f'{n} = :{n}' for n in names)} where name = :a",
        a=a,
        **{n: other[n] for n in names},
    )


def moved(write, a, b):
    """Gives an account the limit of another one."""
    write("delete from textveil_limits where account = :a", a=a)
    write("update textveil_limits set account = :a where account = :b", a=a, b=b)


def forged(write, a):
    """Adds a copy of the newest entry as the next one."""
    row = max(only(write.rows(), "entries", a), key=lambda row: row["number"])
    write.add("entries", {**row, "number": row["number"] + 1, "of": 0, "key": None})


def deleted(write, a, *tables):
    for table in tables:
        write(
            f"delete from textveil_{table} where {'name' if table == 'accounts' else 'account'} = :a",
            a=a,
        )


LIMITS, ACCOUNTS, ENTRIES = (
    "update textveil_limits set",
    "update textveil_accounts set",
    "update textveil_entries set",
)
OF = {
    ACCOUNTS: "where name = :a",
    LIMITS: "where account = :a",
    ENTRIES: "where account = :a and number = 5",
}


def changed(table, to):
    """An attack that writes something else into a row."""
    return lambda write, a, *_: write(f"{table} {to} {OF[table]}", a=a)


BOUND = {
    "nothing is spent of a limit": changed(LIMITS, "spent = 0"),
    "a larger limit": changed(LIMITS, "most = 10 * most"),
    "a deleted limit": lambda write, a, *_: deleted(write, a, "limits"),
    "another period": changed(LIMITS, "period = period + 86400"),
    "a period that began earlier": changed(LIMITS, "began = began - 864000"),
    "a forged limit": lambda write, a, *_: write(
        "insert into textveil_limits (account, period, most, began, spent) values (:a, 0, 9000000, 0, 0)",
        a=a,
    ),
    "a limit of another account": lambda write, a, b, _: moved(write, a, b),
    "totals of 0": changed(ACCOUNTS, "epsilon = 0, ldp = 0"),
    "fewer releases": changed(ACCOUNTS, "releases = 1"),
    "no infinite releases": changed(ACCOUNTS, "infinite = 0"),
    "an older limit": lambda write, a, _, before: older(write, a, before, "limits"),
    "an older seal": lambda write, a, _, before: older_seal(write, a, before),
}
"""Attacks that nothing but the seal of an account notices at its next use."""

ATTACKS = BOUND | {
    "another subject": lambda write, a, b, _: write(
        f"{ACCOUNTS} subject = (select subject from textveil_accounts where name = :b) where name = :a",
        a=a,
        b=b,
    ),
    "the totals of another account": lambda write, a, b, _: copied(write, a, b),
    "an older row": lambda write, a, _, before: older(write, a, before, "accounts"),
    "an older row and older limits": lambda write, a, _, before: older(
        write, a, before, "accounts", "limits"
    ),
    "an older account": lambda write, a, _, before: older(write, a, before, *TABLES),
    "an account without its row": lambda write, a, *_: deleted(write, a, "accounts"),
    "no account": lambda write, a, *_: deleted(write, a, *TABLES),
    "the newest link deleted": lambda write, a, *_: write(
        "delete from textveil_entries where account = :a and number = "
        "(select max(number) from textveil_entries where account = :a)",
        a=a,
    ),
    "a link deleted": lambda write, a, *_: write(
        "delete from textveil_entries where account = :a and number = 3", a=a
    ),
    "the first link deleted": lambda write, a, *_: write(
        "delete from textveil_entries where account = :a and number = 1", a=a
    ),
    "links in another order": lambda write, a, *_: swap(write, a),
    "a forged link": lambda write, a, *_: forged(write, a),
    "an entry that says less": changed(ENTRIES, "epsilon = 1"),
    "a link that is a text": changed(ENTRIES, "link = 'text'"),
    "a newest link that is a text": changed(ACCOUNTS, "link = 'text'"),
    "an idempotency key of another entry": changed(ENTRIES, "key = :a"),
    "a link of another account": lambda write, a, b, _: write(
        f"{ENTRIES} link = (select link from textveil_entries where account = :b and number = 5) "
        "where account = :a and number = 5",
        a=a,
        b=b,
    ),
}


def account(store, subject):
    """An account with a limit, entries of each kind, and what an attacker has saved of it."""
    ledger = store.ledger
    ledger.limit(subject, "chord", "small", 80 + len(subject), days=30)
    ledger.confirm(ledger.reserve(subject, ONE, key="first"))
    ledger.release(ledger.reserve(subject, ONE))
    return ledger._derive_name([subject, "chord", "small"])


def used_again(store, subject):
    ledger = store.ledger
    ledger.confirm(ledger.reserve(subject, ONE))
    ledger.limit(subject, "chord", "small", 90 + len(subject), days=30)
    ledger.limit(subject, "chord", "small", None, days=30)
    ledger.reserve(
        subject, Spend(metric="chord", table="small", epsilon=0, ldp=0, words=1, infinite="a seed")
    )
    ledger.limit(subject, "chord", "small", 90 + len(subject), days=30)
    ledger.reserve(subject, ONE)


def uses(store, subject):
    """What is done with an account, by name."""
    ledger = store.ledger
    return {
        "reserve": lambda: ledger.reserve(subject, ONE),
        "limit": lambda: ledger.limit(subject, "chord", "small", 1000, days=30),
        "totals": lambda: ledger.accounts(subject),
        "show": lambda: ledger.accounts(subject, whole=True),
        "export": lambda: list(ledger.entries()),
    }


def failure(use):
    """How something fails; None where it does not."""
    try:
        use()
    except StoreError as error:
        return str(error)
    return None


def missed(url, attacks, uses_of=uses):
    """The uses that go on after an attack as if nothing had been, by the attack."""
    found: dict[str, list[str]] = {}
    with SQLStore(url) as store, attacker(url) as write:
        a, b = account(store, "anna"), account(store, "berta")
        before = write.rows()
        for subject in ("anna", "berta"):
            used_again(store, subject)
        now = write.rows()
        for name, attack in attacks.items():
            attack(write, a, b, before)
            write.connection.commit()
            for what, use in uses_of(store, "anna").items():
                said = failure(use)
                if said is None:
                    found.setdefault(name, []).append(what)
                elif (
                    "another account" not in name or "'berta'" not in said
                ):  # which it was taken from
                    assert "'anna' (chord, small)" in said, (name, what)
            write.put_back(now)
        if not found:
            assert [failure(use) for use in uses_of(store, "anna").values() if failure(use)] == []
    return found


def test_whatever_was_changed_is_an_error_that_names_the_account(url):
    assert missed(url, ATTACKS) == {}


def test_a_ledger_that_seals_rows_and_binds_nothing_would_open(path, monkeypatch):
    def totals(store, subject):
        return {"totals": uses(store, subject)["totals"]}

    def alone(ledger, row, caps):
        return derive(
            ledger._link_key,
            repr([row["epsilon"], row["ldp"], row["releases"], sorted(caps.items())]).encode(),
        )

    url = f"sqlite:///{path}"
    monkeypatch.setattr(Ledger, "_seal", alone)
    assert missed(url, BOUND, totals) == {
        "an older seal": ["totals"],
        "no infinite releases": ["totals"],
    }
    path.unlink()
    monkeypatch.setattr(Ledger, "_seal", lambda *_: b"sealed")
    assert missed(url, BOUND, totals).keys() == BOUND.keys()


# ---- what is kept apart ----------------------------------------------------------------------------------------------


def test_an_older_ledger_is_noticed_where_the_newest_link_is_kept_apart(url, tmp_path):
    with SQLStore(url) as store, attacker(url) as write:
        account(store, "anna")
        before = write.rows()
        store.ledger.reserve("anna", ONE)  # which is all that is missing
        for saved, whom in ((before, "'anna'"), (dict.fromkeys(TABLES, ()), "")):
            write.put_back(saved)
            for use in uses(store, "anna").values():
                with pytest.raises(StoreError, match=f"{whom}.* is older than before"):
                    use()
        write.put_back(before)
        for kept in (tmp_path / "keys").glob("*/*-ledger.key"):
            kept.unlink()
        assert [each.epsilon for each in store.ledger.accounts()] == [1]  # as THREAT_MODEL.md says


def test_what_is_kept_apart_is_never_behind_another_process(path, tmp_path):
    with SQLStore(f"sqlite:///{path}") as store:
        made = [store.ledger.reserve("anna", ONE).number for _ in range(3)]
        (kept,) = [
            each
            for each in (tmp_path / "keys").glob("*/*-ledger.key")
            if each.read_text() > "0" * 15 + "2"
        ]
        newest = kept.read_text()
        store.save_heads(
            {store.ledger._derive_name(["anna", "chord", "small"]): (2, bytes(32))}
        )  # that came late
        assert (made, kept.read_text()) == ([1, 2, 3], newest)


# ---- cost ------------------------------------------------------------------------------------------------------------


def test_a_charge_reads_as_much_of_a_long_chain_as_of_a_short_one(path):
    with SQLStore(f"sqlite:///{path}") as store:

        def steps():
            """How many steps SQLite's machine makes for a charge."""
            made = []
            with suppress(ZeroDivisionError), store.open_write() as connection:
                driver: Any = connection.connection.driver_connection
                driver.set_progress_handler(lambda: made.append(1), 1)
                store.ledger.reserve_all("anna", [ONE], key="again", connection=connection)
                driver.set_progress_handler(None, 1)
                raise ZeroDivisionError  # or the next one would be charged nothing
            return len(made)

        def grow(entries):
            with store.open_write() as connection:
                for _ in range(entries):
                    store.ledger.reserve("anna", ONE, connection=connection)
            return steps()

        short = grow(2 * NEWEST_LINKS)
        assert grow(10 * NEWEST_LINKS) <= 1.1 * short


# ---- earlier versions ------------------------------------------------------------------------------------------------


def earlier(write):
    """Makes a store what the version without seals left: its entries are linked in the same way."""
    write("delete from textveil_entries where what in ('open', 'limit')")
    write("delete from textveil_accounts where releases = 0")
    write("alter table textveil_accounts drop column seal")
    write("alter table textveil_entries drop column note")
    write("update textveil_steps set version_num = '0002'")


def test_a_store_of_an_earlier_version_is_sealed_when_it_is_opened(url, tmp_path):
    with SQLStore(url) as store, attacker(url) as write:
        for subject in ("anna", "berta"):
            for _ in range(3):
                store.ledger.reserve(subject, ONE)
        a, b = (
            store.ledger._derive_name([subject, "chord", "small"]) for subject in ("anna", "berta")
        )
        earlier(write)
        write(
            "insert into textveil_limits (account, period, most, began, spent) values (:a, 0, 4500000, 1, 3000000)",
            a=a,
        )
        write("update textveil_accounts set epsilon = 0 where name = :b", b=b)
        for kept in (tmp_path / "keys").glob("*/*-ledger.key"):
            kept.unlink()
    with SQLStore(url) as store, attacker(url) as write:
        (anna,) = store.ledger.accounts("anna")
        assert (anna.epsilon, anna.releases, anna.limits[0].left) == (3, 3, 1.5)
        store.ledger.reserve("anna", ONE)
        write("update textveil_limits set spent = 0")
        write.connection.commit()
        for subject in ("anna", "berta"):  # whose totals were wrong before
            with pytest.raises(StoreError, match=f"'{subject}' .* was changed"):
                store.ledger.reserve(subject, ONE)
        assert store.open("berta").snapshot().version == 0


def test_a_store_of_a_later_version_is_refused_by_name(path):
    url = f"sqlite:///{path}"
    SQLStore(url).close()
    with attacker(url) as write:
        write("update textveil_steps set version_num = '9999'")
    with pytest.raises(StoreError, match="a later version of textveil"):
        SQLStore(url)


# ---- a store that is not there any more ------------------------------------------------------------------------------


def deleted_file(path, other):
    path.unlink()


def replaced_file(path, other):
    shutil.copy(other, path.with_name("copy"))
    path.with_name("copy").rename(path)


def recreated_file(path, other):
    path.unlink()
    path.touch()


def truncated_file(path, other):
    os.truncate(path, 0)


def cut_file(path, other):
    os.truncate(path, 8192)


def overwritten_file(path, other):
    path.write_bytes(other.read_bytes())


GOING = [deleted_file, replaced_file, recreated_file, truncated_file, cut_file, overwritten_file]


def require_gone(store):
    for use in (
        store.ping,
        lambda: store.open("anna"),
        store.sessions,
        *uses(store, "anna").values(),
    ):
        with pytest.raises(StoreError, match=GONE_MESSAGE):
            use()


@pytest.mark.parametrize("going", GOING)
def test_a_file_that_was_deleted_or_replaced_is_not_used_any_more(path, going, monkeypatch):
    monkeypatch.setattr("textveil.session.sql.database.MAX_READ_ATTEMPTS", 2)
    other = path.with_name("other.db")
    for each in (other, path):
        with SQLStore(f"sqlite:///{each}") as made:
            made.ledger.reserve("anna", ONE)
    with SQLStore(f"sqlite:///{path}") as store:
        store.ping()
        going(path, other)
        require_gone(store)
        assert not path.exists() or going is not deleted_file


def test_a_file_that_is_not_compared_would_go_on(path, monkeypatch):
    with SQLStore(f"sqlite:///{path}") as store:
        store.ledger.reserve("anna", ONE)
        path.unlink()
        monkeypatch.setattr(StoreFile, "require", lambda *_: None)
        store.ping()
        store.ledger.reserve("anna", ONE)


def test_a_file_that_was_tidied_up_is_the_same(path):
    with (
        SQLStore(f"sqlite:///{path}") as store,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        sizes = []
        for step in (
            "create table filling as select randomblob(500000)",
            "drop table filling",
            "vacuum",
        ):
            for each in (step, "pragma wal_checkpoint(truncate)"):
                other.execute(each).fetchall()
            store.ledger.reserve("anna", ONE)
            sizes.append(path.stat().st_size)
        assert sizes[2] < sizes[0]


def test_a_schema_that_was_dropped_or_replaced_is_not_used_any_more(
    postgres, tmp_path, monkeypatch
):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    monkeypatch.setattr("textveil.session.sql.database.IDENTITY_SECONDS", 0)
    with SQLStore(postgres) as store, attacker(postgres) as write:
        store.ledger.reserve("anna", ONE)
        write("drop schema public cascade")
        write("create schema public")
        write.connection.commit()
        require_gone(store)
        with SQLStore(postgres) as another:
            another.ledger.reserve("anna", ONE)
        require_gone(store)
