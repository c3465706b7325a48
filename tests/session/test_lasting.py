"""One draw of a word for all sessions of a subject, for good: only where it is asked for, and said."""

import threading
from pathlib import Path

import pytest
from tests.session.test_ledger import store as store

from textveil import Privatizer
from textveil.config import Config, WordsOptions
from textveil.errors import ConfigError, StoreError
from textveil.gateway import Gateway
from textveil.guarantee import summarize
from textveil.session import FileStore, Session, SessionStore
from textveil.session import database_store as stores
from textveil.session.sql.links import DatabaseLinkStore

WIDE = 0.1
"""So wide that the same word is hardly drawn twice alike."""

LASTING = {"consistent": True, "lasting": True}


@pytest.fixture(scope="module")
def lasting(small_table):
    return Privatizer("noise", table=small_table, eta=WIDE, words=LASTING)


def spent(store, subject):
    return sum(each.epsilon for each in store.ledger.accounts(subject))


def releases(store, privatizer, text, *names):
    """What is released of a text in several sessions."""
    return [privatizer.privatize(text, store.open(*name.split("/"))).text for name in names]


def test_all_sessions_of_a_subject_share_a_draw_and_others_do_not(store, lasting, small_table):
    text = " ".join(small_table.words[:12])
    one, two, other = releases(store, lasting, text, "anna/a", "anna/b", "berta/a")
    assert one == two != other
    assert spent(store, "anna") == pytest.approx(12 * WIDE, abs=1e-4)
    assert releases(store, lasting, text.upper(), "anna/c") == [one]
    assert spent(store, "anna") == pytest.approx(12 * WIDE, abs=1e-4)
    wider = Privatizer("noise", table=small_table, eta=WIDE / 2, words=LASTING)
    assert releases(store, wider, text, "anna/a", "anna/b")[0] != one


def test_it_is_never_the_default(store, small_table):
    alike = Privatizer("noise", table=small_table, eta=WIDE, words={"consistent": True})
    one, two = releases(store, alike, " ".join(small_table.words[:12]), "anna/a", "anna/b")
    assert one != two
    assert [each.session for each in store.sessions()] == ["a", "b"]
    assert not WordsOptions().lasting
    assert "lasting" not in Config().to_dict()["words"]
    assert Config(words=WordsOptions(consistent=True, lasting=True)).to_dict()["words"]["lasting"]


def test_the_statement_says_what_it_means(store, lasting, small_table):
    text = " ".join(small_table.words[:3])
    first = lasting.privatize(text, store.open("anna", "a")).guarantee
    second = lasting.privatize(text, store.open("anna", "b")).guarantee
    for said in (first, second, summarize([first, second])):
        assert (
            "keeps its draw in all sessions of this subject, for good (words.lasting)"
            in said.headline()
        )
        assert "spend epsilon once for each distinct word" in said.headline()
        assert "can be recognized by how often they occur" in said.headline()
        assert "equal words alike in all sessions of this subject" in said.summary()
        assert said.to_json()["lasting"]
    assert (first.drawn_before, second.drawn_before) == (0, 3)
    assert "3 of these words were drawn in an earlier release of this subject" in second.headline()
    assert [each.drawn for each in second.per_person] == [
        3
    ]  # what this session tells, whoever drew it
    alike = Privatizer("noise", table=small_table, eta=WIDE, words={"consistent": True})
    assert "for good" not in alike.privatize(text, store.open("anna", "a")).guarantee.headline()


def test_it_is_refused_where_nothing_keeps_it(store, lasting, small_table, tmp_path):
    kept = [
        None,
        Session(),
        SessionStore().open("anna"),
        FileStore(f"file:{tmp_path / 'a.session'}").open("anna"),
    ]
    for session in kept:
        with pytest.raises(ConfigError, match=r"needs a session in a database"):
            lasting.privatize(small_table.words[0], session)
    with pytest.raises(ConfigError, match=r"a gateway keeps conversations"):
        Gateway(privatizer=lasting, upstream="http://127.0.0.1:9/v1", store=store)
    assert store.sessions() == []


def test_it_is_refused_where_a_draw_depends_on_more_than_the_word(small_table):
    for mechanism, options in (("d-chi-stencil", {"eta": 4.0}), ("stencil", {})):
        with pytest.raises(ConfigError, match=r"words\.consistent"):
            Privatizer(mechanism, table=small_table, words=LASTING, **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"words\.lasting needs words\.consistent=true"):
        Privatizer("noise", table=small_table, eta=WIDE, words={"lasting": True})


def test_it_is_forgotten_with_the_subject_and_not_readable_before(
    store, lasting, small_table, tmp_path
):
    words = [f"Quillimar{letter}" for letter in "abcdefgh"]
    (one,) = releases(store, lasting, " ".join(words), "anna/a")
    store.forget("anna", "a")
    assert releases(store, lasting, " ".join(words), "anna/b") == [one]
    store.close()
    written = b"".join(path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file())
    assert b"uillimar" not in written
    session = store.open("anna", "b")
    assert store.forget("anna") == 2
    assert releases(store, lasting, " ".join(words), "anna/a") != [one]
    with pytest.raises(StoreError, match="forgotten"):
        lasting.privatize(" ".join(words), session)


def race(store, lasting, words):
    """What four sessions of one subject make of each word, all at the same time; and how many words there were."""
    together, made = threading.Barrier(4), {}

    def work(name):
        session = store.open("anna", name)
        for word in words:
            together.wait(60)
            made[name, word] = lasting.privatize(word, session).text

    pool = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for each in pool:
        each.start()
    for each in pool:
        each.join()
    return sum(len({made[name, word] for name in "abcd"}) for word in words) - len(words)


@pytest.mark.slow
def test_sessions_at_the_same_time_agree(store, lasting, small_table):
    assert race(store, lasting, small_table.words[:8]) == 0
    assert 8 * WIDE - 1e-4 <= spent(store, "anna") <= 32 * WIDE + 1e-4
    assert len(list(store.ledger.entries())) % 2 == 0


def test_without_a_look_at_what_others_have_kept_they_would_not(
    store, lasting, small_table, monkeypatch
):
    """The broken twin: each session keeps what it has drawn, whatever lies there."""
    monkeypatch.setattr(DatabaseLinkStore, "get", lambda self, names: {})
    assert race(store, lasting, small_table.words[:8]) > 0


def test_whoever_waits_for_its_turn_agrees_too(store, lasting, small_table, monkeypatch):
    monkeypatch.setattr(stores, "MAX_ATTEMPTS", 0)
    assert race(store, lasting, small_table.words[:8]) == 0
    assert spent(store, "anna") == pytest.approx(8 * WIDE, abs=1e-4)  # nothing is drawn twice


@pytest.mark.slow
def test_sessions_in_postgresql_agree(postgres, lasting, small_table, tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    with SessionStore(postgres) as store:
        assert race(store, lasting, small_table.words[:8]) == 0
        assert 8 * WIDE - 1e-4 <= spent(store, "anna") <= 32 * WIDE + 1e-4
        monkeypatch.setattr(stores, "MAX_ATTEMPTS", 0)
        assert race(store, lasting, small_table.words[8:16]) == 0


def test_a_seed_draws_as_it_did(store, small_table):
    """Who remembers a draw does not change what is drawn."""
    text = " ".join(small_table.words[:12])
    made = [
        Privatizer("noise", table=small_table, eta=WIDE, seed=3, words=words).privatize(
            text, store.open("anna", name)
        )
        for words, name in (({"consistent": True}, "a"), (LASTING, "b"))
    ]
    assert made[0].text == made[1].text
