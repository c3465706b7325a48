"""The ledger: nothing is drawn that is not charged, limits hold, and changes are noticed."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from textveil.errors import ConfigError, LimitReached, StoreError
from textveil.pipeline import Privatizer
from textveil.session import SessionStore
from textveil.session.spending import ALL_TABLES, MICRO, Spend, convert_to_micros

pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
pytest.importorskip("cryptography", reason="the extra `store` is not installed")
import sqlalchemy as sa

from textveil.session.database_store import SQLStore
from textveil.session.sql import ledger as ledgers
from textveil.session.sql.database import SYNC_INTERVAL
from textveil.session.sql.ledger import Ledger

ONE = Spend(metric="chord", table="small", epsilon=MICRO, ldp=2 * MICRO, words=1)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    with SQLStore(f"sqlite:///{tmp_path / 'veil.db'}") as opened:
        yield opened


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def either(request, tmp_path, monkeypatch):
    """A store in either database."""
    if request.param == "SQLite":
        yield request.getfixturevalue("store")
        return
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    with SQLStore(request.getfixturevalue("postgres")) as opened:
        yield opened


def spent(ledger):
    return {
        (each.subject, each.metric): (each.epsilon, each.ldp, each.releases)
        for each in ledger.accounts()
    }


def test_an_epsilon_is_rounded_up_to_a_millionth():
    assert [convert_to_micros(each) for each in (0.0, 1e-9, 0.1, 0.5, 6.0, 47.99999999999396)] == [
        0,
        1,
        100_001,  # 0.1 is a little more than a tenth
        500_000,
        6_000_000,
        48_000_000,
    ]


def test_kinds_never_mix(store):
    ledger = store.ledger
    for subject, metric in (
        ("anna", "chord"),
        ("anna", "chord"),
        ("anna", "ldp"),
        ("berta", "chord"),
    ):
        ledger.confirm(ledger.reserve(subject, replace(ONE, metric=metric)))
    assert spent(ledger) == {
        ("anna", "chord"): (2, 4, 2),
        ("anna", "ldp"): (1, 2, 1),
        ("berta", "chord"): (1, 2, 1),
    }
    assert [each["what"] for each in ledger.entries()].count("reserve") == 4


def test_what_is_reserved_is_charged_whether_or_not_it_is_confirmed(either):
    ledger = either.ledger
    first = ledger.reserve("anna", ONE)
    second = ledger.reserve("anna", ONE)
    assert spent(ledger) == {("anna", "chord"): (2, 4, 2)}
    ledger.confirm(first)
    ledger.release(second)
    assert spent(ledger) == {("anna", "chord"): (1, 2, 1)}
    for again in (first, second):
        with pytest.raises(StoreError, match="confirmed or released already"):
            ledger.release(again)


def test_an_idempotency_key_is_charged_once(either):
    ledger = either.ledger
    first = ledger.reserve("anna", ONE, key="request 1")
    assert ledger.reserve("anna", ONE, key="request 1").is_repeat
    assert not ledger.reserve("anna", ONE, key="request 2").is_repeat
    assert spent(ledger) == {("anna", "chord"): (2, 4, 2)}
    ledger.release(first)
    assert not ledger.reserve("anna", ONE, key="request 1").is_repeat


def test_a_limit_is_never_passed_and_says_what_is_left(either):
    ledger = either.ledger
    ledger.reserve("anna", ONE)
    ledger.limit("anna", "chord", "small", 3.5)
    assert [ledger.reserve("anna", ONE).number for _ in range(2)]
    with pytest.raises(LimitReached, match=r"an epsilon of 1, but only 0\.5 of 3\.5 is left"):
        ledger.reserve("anna", ONE)
    with pytest.raises(LimitReached, match="no finite bound"):
        ledger.reserve("anna", replace(ONE, infinite="words pass"))
    ledger.reserve("berta", ONE)
    ledger.limit("anna", "chord", "small", None)
    ledger.reserve("anna", replace(ONE, epsilon=0, ldp=0, infinite="words pass"))
    assert ledger.accounts("anna")[0].infinite == 1
    assert ledger.accounts("anna")[0].epsilon == 3


def test_a_period_begins_again_and_the_total_stays(either, monkeypatch):
    ledger, begun = either.ledger, ledgers._get_time()
    ledger.limit("anna", "chord", "small", 2, days=1)
    ledger.reserve("anna", ONE)
    ledger.reserve("anna", ONE)
    with pytest.raises(LimitReached, match="until"):
        ledger.reserve("anna", ONE)
    monkeypatch.setattr(ledgers, "_get_time", lambda: begun + 86_500)
    ledger.reserve("anna", ONE)
    account = ledger.accounts()[0]
    assert (account.epsilon, account.limits[0].left) == (3, 1)


def test_a_limit_that_is_said_again_goes_on_counting(either):
    ledger = either.ledger
    ledger.limit("anna", "chord", "small", 2, days=1)
    ledger.limit("anna", "chord", "small", 9)
    ledger.reserve("anna", ONE)
    ledger.limit("anna", "chord", "small", 3, days=1)
    lifetime, daily = ledger.accounts()[0].limits
    assert (lifetime.left, daily.left, daily.most) == (8, 2, 3)
    ledger.limit("anna", "chord", "small", 4, days=1, exclusive=True)
    (daily,) = ledger.accounts()[0].limits
    assert (daily.left, daily.most) == (3, 4)
    ledger.limit("anna", "chord", "small", None, days=1)
    ledger.limit("anna", "chord", "small", 4, days=1)
    assert ledger.accounts()[0].limits[0].left == 4  # lifted and said anew: it begins again


def test_the_only_limit_that_counts_is_lifted_with_its_period(either):
    ledger = either.ledger
    ledger.limit("anna", "chord", "small", 2, days=1)
    ledger.limit("anna", "chord", "small", 1)
    ledger.limit("anna", "chord", "small", None, exclusive=True)
    assert [each.limits for each in ledger.accounts()] == [()]
    ledger.reserve("anna", replace(ONE, epsilon=5 * MICRO))
    ledger.limit("anna", "chord", "small", 7.5, exclusive=True)
    with ThreadPoolExecutor(4) as pool:  # as workers say it with each request
        list(
            pool.map(
                lambda _: ledger.limit("anna", "chord", "small", 7.5, exclusive=True), range(12)
            )
        )
    assert [(limit.most, limit.left) for limit in ledger.accounts()[0].limits] == [(7.5, 2.5)]
    assert [ledger.reserve("anna", ONE).number for _ in range(2)]
    with pytest.raises(
        LimitReached,
        match=r"0\.5 of 7\.5 is left; release less, or change the limit with `textveil",
    ):
        ledger.reserve("anna", ONE)


def test_a_limit_of_all_tables_is_the_budget_of_a_policy(either):
    either.ledger.limit("anna", "ldp", ALL_TABLES, 1, exclusive=True)
    for spend, says in (
        (ONE, "raise `budget` in its policy"),
        (replace(ONE, infinite="words pass"), "take `budget` out"),
    ):
        with pytest.raises(LimitReached, match=says):
            either.ledger.reserve(
                "anna", replace(spend, metric="ldp", table=ALL_TABLES, epsilon=2 * MICRO)
            )


def race(store):
    """How much 8 threads spend together under a limit of 10."""
    store.ledger.limit("anna", "chord", "small", 10)

    def spend(_):
        try:
            store.ledger.reserve("anna", ONE)
        except LimitReached:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(spend, range(24)))


def test_threads_together_stay_below_a_limit(either):
    assert race(either) == 10
    assert spent(either.ledger) == {("anna", "chord"): (10, 20, 10)}


def test_a_ledger_that_forgets_reservations_would_pass_the_limit(store, monkeypatch):
    monkeypatch.setattr(Ledger, "_check_limits", lambda *_: None)
    assert race(store) == 24


@pytest.mark.parametrize("change", ["less", "gone", "total"])
def test_entries_that_were_changed_are_an_error(store, change):
    for _ in range(3):
        store.ledger.reserve("anna", ONE)
    entries, accounts = store.tables.entries, store.tables.accounts
    done = {
        "less": sa.update(entries).where(entries.c.number == 2).values(epsilon=1),
        "gone": sa.delete(entries).where(entries.c.number == 3),
        "total": sa.update(accounts).values(epsilon=1),
    }[change]
    with store.open_write() as connection:
        connection.execute(done)
    with pytest.raises(StoreError, match="changed"):
        list(store.ledger.entries())


def test_an_older_ledger_and_one_that_vanished_are_errors(store, tmp_path):
    url = f"sqlite:///{tmp_path / 'veil.db'}"
    store.ledger.reserve("anna", ONE)
    store.close()
    shutil.copy(tmp_path / "veil.db", tmp_path / "older.db")
    with SQLStore(url) as opened:
        for _ in range(SYNC_INTERVAL):
            opened.ledger.reserve("anna", ONE)
    shutil.copy(tmp_path / "older.db", tmp_path / "veil.db")
    for left in ("veil.db-wal", "veil.db-shm"):
        (tmp_path / left).unlink(missing_ok=True)
    with SQLStore(url) as opened:
        for ask in (opened.ledger.accounts, lambda: opened.ledger.reserve("anna", ONE)):
            with pytest.raises(StoreError, match="older than before"):
                ask()
        with opened.open_write() as connection:
            connection.execute(sa.delete(opened.tables.entries))
            connection.execute(sa.delete(opened.tables.accounts))
        with pytest.raises(StoreError, match="older than before"):
            opened.ledger.reserve("anna", ONE)


def test_a_release_is_charged_before_it_is_drawn(store, small_table, monkeypatch):
    veil = Privatizer("noise", table=small_table, eta=10.0)
    text = " ".join(small_table.words[:3])
    made = veil.privatize(text, store.open("anna"))
    account = store.ledger.accounts()[0]
    assert account.metric == "chord"
    assert account.epsilon == pytest.approx(float(made.guarantee.epsilon_per_word.sum()), abs=1e-5)
    assert account.ldp == pytest.approx(float(made.guarantee.ldp_per_word.sum()), abs=1e-5)
    store.ledger.limit("anna", account.metric, account.table, account.epsilon * 1.5)

    def draw(*_):
        raise AssertionError("nothing may be drawn")

    monkeypatch.setattr(Privatizer, "_draw", draw)
    with pytest.raises(LimitReached, match="Nothing was drawn"):
        veil.privatize(text, store.open("anna"))


def test_a_release_that_fails_after_its_charge_stays_charged(store, small_table, monkeypatch):
    veil = Privatizer("noise", table=small_table, eta=10.0)
    monkeypatch.setattr(Privatizer, "_build_results", lambda *_: 1 / 0)
    with pytest.raises(Exception, match="ZeroDivisionError"):
        veil.privatize(small_table.words[0], store.open("anna"))
    assert store.ledger.accounts()[0].releases == 1


def test_what_hides_only_spends_nothing_and_a_seed_is_infinite(store, small_table):
    Privatizer("placeholder", table=small_table).privatize(small_table.words[0], store.open("anna"))
    assert store.ledger.accounts() == []
    Privatizer("noise", table=small_table, eta=10.0, seed=1).privatize(
        small_table.words[0], store.open("anna")
    )
    assert [(each.epsilon, each.infinite) for each in store.ledger.accounts()] == [(0, 1)]


def test_other_stores_keep_no_ledger():
    with pytest.raises(ConfigError, match="ledger"):
        _ = SessionStore("memory:").ledger
