"""Conversations in memory: within their bytes, and never with an old release behind a new one."""

import re
import time
from functools import partial
from random import Random

import pytest

from textveil import Privatizer
from textveil.session import MemoryStore, MessageChain, PrefixCache, Utterance, memory_links
from textveil.session.memory_links import MemoryLinkStore, MemoryRows

TAG = re.compile(r"<\w+_\d+>")


@pytest.fixture(scope="module")
def hiding(small_table):
    return Privatizer("placeholder", table=small_table, protect={"detectors": ["patterns"]})


def opened(max_bytes):
    rows = MemoryRows(max_bytes)
    return rows, MemoryLinkStore(b"k" * 32, rows)


def chain(store, texts, cache=None):
    messages = [Utterance("user", (text,)) for text in texts]
    return MessageChain(store, "account", "digest", messages, cache=cache)


def release(privatizer, message, session):
    result = privatizer.privatize(message.texts[0], session=session)
    return [result.text], {}


def release_plain(message, session):
    return [message.texts[0]], {}


def test_two_thousand_conversations_stay_within_their_bytes(hiding):
    store, cache = MemoryStore(), PrefixCache(max_bytes=250_000)
    store.set_memory(1_000_000)
    links = store.links("account")
    for i in range(2_000):
        texts = [f"write to m{i}@first.example", f"and to n{i}@second.example"]
        made = chain(links, texts, cache)
        quick = release_plain if i < 1_990 else partial(release, hiding)
        made.release(quick)
        assert store._links.used_bytes <= 1_000_000
        assert cache.used_bytes <= 250_000
    newest = ["write to m1999@first.example", "and to n1999@second.example"]
    known = chain(links, newest).links
    assert len(known) == 2
    assert "m1999@" not in known[0].texts[0]
    assert len(chain(links, ["write to m0@first.example"]).links) == 0


def test_the_end_of_a_conversation_is_forgotten_before_its_beginning():
    rows, store = opened(6 * (memory_links.ROW_BYTES + 2))
    store.add({b"1": b"x"}, {})
    store.add({b"2": b"x"}, {}, parents={b"1": b"x"})
    store.add({b"3": b"x"}, {}, parents={b"1": b"x", b"2": b"x"})
    for i in range(4):
        store.add({b"abcd"[i : i + 1]: b"x"}, {})
    assert store.get([b"1", b"2", b"3"]) == {b"1": b"x", b"2": b"x"}
    assert rows.used_bytes <= 6 * (memory_links.ROW_BYTES + 2)


def test_a_row_is_kept_only_behind_the_rows_that_it_followed():
    _, store = opened(100_000)
    store.add({b"1": b"new"}, {})
    store.add({b"2": b"x"}, {b"other": b"y"}, parents={b"1": b"old"})
    store.add({b"3": b"x"}, {}, parents={b"forgotten": b"x"})
    assert store.get([b"2", b"3", b"other"]) == {b"other": b"y"}
    store.add({b"2": b"x"}, {}, parents={b"1": b"new"})
    assert store.get_child(b"2", {b"1": b"new"}) == b"x"
    assert store.get_child(b"2", {b"1": b"old"}) is None
    assert store.get_child(b"2", {b"forgotten": b"x"}) is None


def test_a_row_that_is_too_large_drives_out_no_others():
    rows, store = opened(2_000)
    store.add({b"small": b"x"}, {})
    store.add({b"large": b"x" * 2_000, b"behind": b"x"}, {b"also": b"x" * 3_000})
    assert store.get([b"small", b"large", b"behind", b"also"]) == {b"small": b"x"}
    assert not store.swap(b"small", b"other", b"y")
    assert store.swap(b"small", b"x", b"y")
    assert rows.used_bytes == 400 + len(b"small") + 1


def test_what_is_not_used_for_a_day_is_forgotten(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rows, store = opened(100_000)
    store.add({b"1": b"x", b"2": b"x"}, {})
    now[0] = memory_links.LINK_SECONDS - 1.0
    assert store.get([b"1"])
    now[0] += 2
    assert store.get([b"1", b"2"]) == {b"1": b"x"}
    assert rows.used_bytes == memory_links.ROW_BYTES + 2


@pytest.mark.parametrize("seed", range(3))
def test_no_placeholder_stands_for_two_values_where_rows_are_forgotten(hiding, seed):
    """Conversations that branch and return, some released otherwise, while others drive them out."""
    random = Random(seed)
    rows, store = opened(18_000)
    cache, known = PrefixCache(max_bytes=20_000), 0
    names = ["ann@a.example", "ben@b.example", "cleo@c.example", "dan@d.example"]
    texts = [f"{one} wrote to {other} in {i}" for i, one in enumerate(names) for other in names]

    def release_some(message, session):
        # A release may differ from the last one: it hides in another order.
        if random.random() < 0.5:
            hiding.privatize(random.choice(names), session=session)
        return release(hiding, message, session)

    for _ in range(150):
        conversation = [texts[random.randrange(3)] for _ in range(random.randint(1, 5))]
        conversation = [f"{i}: {text}" for i, text in enumerate(conversation)]
        made = chain(store, conversation, cache)
        known += len(made.links)
        if random.random() < 0.3:  # others come between
            for i in range(random.randint(1, 12)):
                store.add({f"{random.random()} {i}".encode(): b"x" * 300}, {})
        if random.random() < 0.2:  # and the same conversation, meanwhile
            chain(store, conversation, cache).release(release_some)
        made.release(release_some)
        sent = [link.texts[0] for link in made.links]
        assert [made.session.restore(text) for text in sent] == conversation
        assert all(TAG.search(text) for text in sent)
        assert rows.used_bytes <= 18_000
    assert known > 50
