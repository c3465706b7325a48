"""Whole texts are charged to all subjects or to nobody, before anything is drawn."""

import json
import math
import re
from dataclasses import replace

import pytest
from tests.guarantee.test_text_guarantee import NEWS

from textveil.errors import ConfigError, GuaranteeError, LimitReached, StoreError
from textveil.guarantee import Sentences, TextGuarantee, compose
from textveil.session import MemoryStore, charge_subjects
from textveil.session.spending import ALL_TABLES, MICRO, Spend, spend_texts, sum_spends
from textveil.session.subject_charges import list_charges

pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
pytest.importorskip("cryptography", reason="the extra `store` is not installed")

from textveil.session.database_store import SQLStore
from textveil.session.sql import ledger as ledgers

ACCOUNT = "library 13f6acee8dc0b1fb"
COUNTS = TextGuarantee(
    kind="central",
    unit="subject",
    subject="author",
    way="counts",
    epsilon=1.0,
    replaced=2.0,
    library=NEWS,
    released=300,
    seeded=False,
)
BY_DOCUMENT = replace(COUNTS, unit="document", subject="")
TEXTS = replace(BY_DOCUMENT, kind="ldp", way="texts", replaced=1.0, documents=4)
SENTENCES = replace(TEXTS, unit="sentence", sentences=Sentences(2, 4))
SUBJECTS = ["anna", "berta", "anna", "anna"]


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def store(request, tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    url = f"sqlite:///{tmp_path / 'veil.db'}"
    if request.param == "PostgreSQL":
        url = request.getfixturevalue("postgres")
    with SQLStore(url) as opened:
        yield opened


def spent(store):
    return {
        (each.subject, each.metric, each.table): (each.epsilon, each.ldp, each.releases)
        for each in store.ledger.accounts(whole=True)
    }


def test_a_count_is_charged_to_each_subject_once_and_twice_in_local_dp(store):
    reserved = charge_subjects(store, SUBJECTS, COUNTS)
    store.ledger.confirm_all(reserved)
    assert spent(store) == {
        (subject, metric, table): (epsilon, 2.0, 1)
        for subject in ("anna", "berta")
        for metric, table, epsilon in (("central", ACCOUNT, 1.0), ("ldp", ALL_TABLES, 2.0))
    }
    what = [entry["what"] for entry in store.ledger.entries()]
    assert (what.count("reserve"), what.count("confirm")) == (4, 4)


@pytest.mark.parametrize(
    ("statement", "metric", "local"),
    [(BY_DOCUMENT, "central", 2.0), (TEXTS, "ldp", 1.0), (SENTENCES, "ldp", 1.0)],
    ids=["documents", "texts", "sentences"],
)
def test_who_has_three_documents_pays_three_times(store, statement, metric, local):
    charge_subjects(store, SUBJECTS, statement)
    found = spent(store)
    for subject, units in (("anna", 3), ("berta", 1)):
        assert found[subject, metric, ACCOUNT] == (units, units * local, 1)
        assert found[subject, "ldp", ALL_TABLES] == (units * local, units * local, 1)


def twin_of_one_epsilon(statement, units=1):
    """The broken twin: a count costs as much in local DP as in its own account."""
    return replace(spend_texts(statement, units), ldp=units * MICRO)


def twin_of_one_document(statement, units=1):
    """The broken twin: a subject pays once, however many documents it has."""
    return spend_texts(statement)


@pytest.mark.parametrize("twin", [twin_of_one_epsilon, twin_of_one_document])
def test_the_tests_above_can_fail(twin, monkeypatch):
    right = list_charges(SUBJECTS, BY_DOCUMENT)
    assert [spend.ldp for spend in right["anna"]] == [6 * MICRO, 6 * MICRO]
    monkeypatch.setattr("textveil.session.subject_charges.spend_texts", twin)
    assert list_charges(SUBJECTS, BY_DOCUMENT) != right


@pytest.mark.parametrize(
    ("metric", "table", "limit"), [("central", ACCOUNT, 0.5), ("ldp", ALL_TABLES, 1.5)]
)
def test_all_subjects_are_charged_or_nobody(store, metric, table, limit):
    store.ledger.limit("canary-subject", metric, table, limit)
    before = spent(store)
    # The limited one is last in the ledger's order, so others were charged before it.
    with pytest.raises(LimitReached, match="of the 3 subjects") as caught:
        charge_subjects(store, ["anna", "berta", "canary-subject"], COUNTS)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert spent(store) == before
    # The store can be used as before, also by a process that has seen the refused accounts.
    charge_subjects(store, ["anna", "berta"], COUNTS)
    assert spent(store)["anna", "central", ACCOUNT] == (1.0, 2.0, 1)
    store.ledger.limit("canary-subject", metric, table, None)
    charge_subjects(store, ["canary-subject"], COUNTS)


def test_one_by_one_is_not_all_or_nobody(store):
    """The broken twin: charging subject after subject leaves some charged."""
    store.ledger.limit("zoe", "central", ACCOUNT, 0.5)
    charges = list_charges(["anna", "zoe"], COUNTS)
    store.ledger.reserve_all("anna", charges["anna"])
    with pytest.raises(LimitReached):
        store.ledger.reserve_all("zoe", charges["zoe"])
    assert ("anna", "central", ACCOUNT) in spent(store)


def test_a_resumed_release_pays_once(store):
    first = charge_subjects(store, SUBJECTS, COUNTS, key="release 1")
    again = charge_subjects(store, SUBJECTS, COUNTS, key="release 1")
    assert all(each.is_repeat for each in again)
    store.ledger.release_all(again)  # changes nothing: the first try may have drawn
    assert spent(store)["anna", "central", ACCOUNT] == (1.0, 2.0, 1)
    charge_subjects(store, SUBJECTS, COUNTS, key="release 2")
    assert spent(store)["anna", "central", ACCOUNT] == (2.0, 4.0, 2)
    store.ledger.release_all(first)
    assert spent(store)["anna", "central", ACCOUNT] == (1.0, 2.0, 1)
    with pytest.raises(StoreError, match="confirmed or released already"):
        store.ledger.confirm_all(first)


def test_a_resume_with_more_subjects_charges_those(store):
    charge_subjects(store, ["anna"], COUNTS, key="release 1")
    both = charge_subjects(store, ["anna", "berta"], COUNTS, key="release 1")
    assert [each.is_repeat for each in both] == [True, True, False, False]


def test_what_has_no_bound_is_counted_and_refused_under_a_limit(store):
    nothing = replace(
        COUNTS, kind="none", epsilon=math.inf, replaced=math.inf, reasons=("no noise",)
    )
    for statement in (nothing, replace(COUNTS, seeded=True)):
        charge_subjects(store, ["anna"], statement)
    accounts = store.ledger.accounts("anna")
    assert [(each.epsilon, each.ldp, each.infinite) for each in accounts] == [(0, 0, 2)] * 2
    store.ledger.limit("anna", "ldp", ALL_TABLES, 1_000)
    with pytest.raises(LimitReached):
        charge_subjects(store, ["anna"], nothing)


def test_words_and_texts_of_a_subject_share_the_account_of_all(store):
    words = Spend(metric="chord", table="small", epsilon=MICRO, ldp=3 * MICRO, words=1)
    store.ledger.reserve_all("anna", [words, sum_spends([words])])
    charge_subjects(store, ["anna"], COUNTS)
    assert spent(store)["anna", "ldp", ALL_TABLES] == (5.0, 5.0, 2)


def test_thousands_of_subjects_fit(store, monkeypatch):
    monkeypatch.setattr(ledgers, "MAX_LOOKUP_ROWS", 3)
    charge_subjects(store, [f"author {i}" for i in range(10)], COUNTS)
    charge_subjects(store, [f"author {i}" for i in range(12)], COUNTS)
    found = spent(store)
    assert len(found) == 24
    assert found["author 3", "central", ACCOUNT] == (2.0, 4.0, 2)


def test_sums_are_rounded_up(store):
    third = replace(COUNTS, epsilon=1 / 3, replaced=2 / 3)
    spend = spend_texts(third)
    assert (spend.epsilon, spend.ldp) == (333_334, 666_667)
    assert spend_texts(replace(TEXTS, epsilon=0.1, replaced=0.1), 3).epsilon == 3 * 100_001


def test_what_cannot_be_charged():
    with pytest.raises(GuaranteeError, match="by itself"):
        spend_texts(compose([COUNTS, COUNTS]))
    with pytest.raises(ValueError, match="one itself"):
        spend_texts(COUNTS, 2)
    with pytest.raises(ConfigError, match="keeps a ledger"):
        charge_subjects(MemoryStore(), ["anna"], COUNTS)


def test_a_name_that_cannot_be_printed_charges_nobody(store):
    with pytest.raises(ConfigError, match="printable") as caught:
        charge_subjects(store, ["anna", "canary\x00"], COUNTS)
    assert "canary" not in str(caught.value)
    assert spent(store) == {}
    assert charge_subjects(store, [], COUNTS) == []


def test_the_verbs_print_it(tmp_path, monkeypatch, capsys):
    from textveil.cli import main

    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    url = f"sqlite:///{tmp_path / 'veil.db'}"

    def run(*arguments):
        assert main(["ledger", *arguments, "--store", url]) == 0
        return capsys.readouterr().out.splitlines()

    with SQLStore(url) as opened:
        charge_subjects(opened, ["anna"], COUNTS)
    run("limit", "anna", "3", "--metric", "central", "--table", ACCOUNT)
    assert [re.split(r"  +", line) for line in run("show", "anna")[1:]] == [
        ["anna", "central", ACCOUNT, "1", "2", "1", "0", "2 of 3"],
        ["anna", "ldp", ALL_TABLES, "2", "2", "1", "0", "no limit"],
    ]
    (entry,) = (
        found
        for line in run("export", "-")
        if (found := json.loads(line))["metric"] == "central" and found["what"] == "reserve"
    )
    names = ("subject", "table", "epsilon", "ldp", "words", "infinite")
    assert [entry[name] for name in names] == ["anna", ACCOUNT, 1.0, 2.0, 1, ""]
