"""What a session that repeats words is charged: each draw once, and never less than what is really drawn."""

import json
import re
import threading
from typing import Any

import numpy as np
import pytest
from tests.session.test_ledger import store as store

from textveil import Privatizer
from textveil.detect import Span
from textveil.gateway import Gateway
from textveil.guarantee import Guarantee, Loss, summarize
from textveil.pipeline import privatizer as privatizer_module
from textveil.pipeline.consistent import Replay
from textveil.session import MessageChain, Session, Spend, Utterance
from textveil.session.spending import MICRO

ETA = 10.0


@pytest.fixture(scope="module")
def alike(small_table):
    """Equal words get one draw in a session."""
    return Privatizer("noise", table=small_table, eta=ETA, words={"consistent": True})


def spent(store):
    return sum(each.epsilon for each in store.ledger.accounts())


def test_a_word_that_a_session_repeats_costs_nothing_more(store, alike, small_table):
    river, apple, castle = small_table.words[:3]
    session = store.open("anna")
    first = alike.privatize(f"{river} {apple} {river}", session)
    assert spent(store) == 2 * ETA
    again = alike.privatize(f"{apple} {river.upper()}", store.open("anna"))
    assert again.text.split() == first.text.split()[1::-1]
    assert spent(store) == 2 * ETA
    list(alike.privatize_many([f"{castle} {river}", f"{apple} {castle}"], session))
    assert spent(store) == 3 * ETA
    alike.privatize(river, store.open("anna", "other"))  # another session draws its own
    assert spent(store) == 4 * ETA
    assert sum(each["epsilon"] for each in store.ledger.entries()) == 4 * ETA


def test_a_statement_says_which_words_were_drawn_before(alike, small_table):
    river, apple, castle = small_table.words[:3]
    session = Session()
    first = alike.privatize(f"{river} {apple} {river}", session).guarantee
    assert (first.drawn_before, "drawn before" in first.summary()) == (0, False)
    second = alike.privatize(f"{river} {castle} {river}", session).guarantee
    assert (second.protected, second.drawn_before, second.repeated) == (2, 1, 1)
    assert ", equal words alike, 1 as drawn before; " in f"{second.summary()[:-1]}; "
    assert (
        "1 of these words was drawn in an earlier release of the session: drawn once, it spends once."
        in (second.headline())
    )
    *_, third = (
        each.guarantee for each in alike.privatize_many([f"{apple} {castle}", river], session)
    )
    assert summarize([first, second, third]).drawn_before == 2
    assert second.to_json()["drawn_before"] == 1
    assert alike.privatize(river).guarantee.drawn_before == 0


NAMES = "Maria Silva met Maria Lopez, who knows Peter Silva."


@pytest.fixture(scope="module")
def named():
    """Names give way to drawn ones, at epsilon 6 for each word of a name."""
    return Privatizer(
        "placeholder",
        words={"consistent": True, "casing": "copy"},
        protect={"detectors": [Finder()]},
        names={"types": ["PERSON"]},
        groups={"budgets": [0, 0, float("inf"), float("inf")]},
    )


class Finder:
    """Finds the names of this page."""

    name = "finder"

    def find(self, texts):
        return [
            Span(b, found.start(), found.end(), "PERSON", 1.0, self.name)
            for b, text in enumerate(texts)
            for found in re.finditer(r"[A-Z]\w+ [A-Z]\w+", text)
        ]


def test_what_one_person_loses_who_is_behind_all_names(store, named):
    session = store.open("anna")
    first = named.privatize(NAMES, session).guarantee
    assert (
        "PERSON: 4 draws of names, at most 6 each, 24 for one person who has all of them"
        in first.headline()
    )
    again = named.privatize("Maria Silva is Peter Silva", store.open("anna")).guarantee
    assert (
        "PERSON: 4 draws of names, released 7 times in all, at most 6 each, 24 for"
        in again.headline()
    )
    (loss,) = again.per_person
    assert loss.to_json() == {
        "label": "PERSON",
        "by": "name",
        "drawn": 4,
        "released": 7,
        "epsilon_ldp": 6.0,
        "total_epsilon_ldp": 24.0,
        "infinite": 0,
        "alike": True,
    }
    assert again.to_json()["per_person"] == [loss.to_json()]
    assert Guarantee.unpack(json.loads(json.dumps(again.pack()))).per_person == (loss,)
    assert summarize([first, again]).per_person == (loss,)
    assert store.open("anna").snapshot().losses["PERSON", "name"] == loss
    assert (
        Session.from_json(store.open("anna").to_json()).snapshot().losses["PERSON", "name"] == loss
    )
    assert sum(account.ldp for account in store.ledger.accounts()) == 24
    assert named.privatize(NAMES).guarantee.per_person == ()


def test_a_tally_that_forgets_repeats_is_another_number(store, named, monkeypatch):
    """The broken twin: each place counts, as if each were drawn anew."""
    nothing = lambda parts, tokens, *_: np.zeros(len(tokens.words), np.bool_)  # noqa: E731
    monkeypatch.setattr(privatizer_module, "find_drawn_before", nothing)
    _, said = (named.privatize("Maria Silva", store.open("anna")).guarantee for _ in range(2))
    assert said.per_person[0].drawn == 4


def test_what_is_drawn_anew_each_time_adds_up(small_table):
    session, word = Session(), small_table.words[0]
    fresh = Privatizer("rankcape", table=small_table, epsilon=3.0, k=2)
    *_, said = (fresh.privatize(f"{word} {word}", session).guarantee for _ in range(3))
    assert (
        str(said.per_person[0])
        == "protected: 6 draws of words, at most 3 each, 18 for one person who has all of them"
    )


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        (Loss("PERSON", "name", 1, 1, 6 * MICRO, 6 * MICRO), "PERSON: 1 draw of a name, at most 6"),
        (
            Loss("PERSON", "name", 1, 3, 6 * MICRO, 6 * MICRO),
            "PERSON: 1 draw of a name, released 3 times in all, at most 6",
        ),
        (
            Loss("DATE", "figure", 2, 2, infinite=2),
            "DATE: 2 draws of figures, no finite bound for any of them",
        ),
        (
            Loss("other", "word", 3, 3, 2 * MICRO, 3 * MICRO, infinite=1),
            "other: 3 draws of words, no finite bound for 1 of them, at most 2 each, "
            "3 for one person who has all of the others",
        ),
    ],
)
def test_a_loss_in_words(loss, says):
    assert str(loss) == says


def test_threads_lose_no_loss(store, alike, small_table):
    _, session = race(store, alike, small_table.words)
    (loss,) = session.snapshot().read_all().losses.values()
    assert (loss.drawn, loss.released) == (
        12,
        24 + 20,
    )  # the first word of each thread stands alone once


def test_another_law_or_budget_is_another_draw(store, small_table):
    session, word = store.open("anna"), small_table.words[0]
    several: list[dict[str, Any]] = [
        {"eta": ETA},
        {"eta": 2 * ETA},
        {"epsilon": ETA},
        {"epsilon": 2 * ETA},
    ]
    for options in several:
        Privatizer("noise", table=small_table, words={"consistent": True}, **options).privatize(
            word, session
        )
    assert spent(store) == 6 * ETA


def test_words_that_are_drawn_anew_are_charged_anew(store, small_table):
    fresh, word = Privatizer("noise", table=small_table, eta=ETA), small_table.words[0]
    for _ in range(3):
        fresh.privatize(word, store.open("anna"))
    assert spent(store) == 3 * ETA


def distinct(session):
    """What the words that a session has drawn for cost: all that anybody may have seen of them."""
    return ETA * len(session.snapshot().read_all().drawn)


def race(store, alike, words, threads=4):
    """What several threads are charged that release overlapping texts in one session at once; and the session."""
    start, texts = threading.Barrier(threads), [words[i : i + 6] for i in range(0, 2 * threads, 2)]

    def work(mine):
        session = store.open("anna")
        start.wait()
        for word in mine:
            alike.privatize(f"{word} {mine[0]}", session)

    pool = [threading.Thread(target=work, args=(mine,)) for mine in texts]
    for each in pool:
        each.start()
    for each in pool:
        each.join()
    return spent(store), store.open("anna")


def test_what_is_drawn_at_the_same_time_is_never_charged_less(store, alike, small_table):
    charged, session = race(store, alike, small_table.words)
    assert distinct(session) == ETA * 12
    assert distinct(session) <= charged <= ETA * 24
    assert len(list(store.ledger.entries())) % 2 == 0  # each reservation was confirmed


def test_a_release_that_is_made_again_pays_what_is_missing(store, alike, small_table, monkeypatch):
    """Another process commits between the reservation and the commit: once with a word of ours, once with none."""
    river, apple, castle, plum = small_table.words[:4]
    others, draw = [river, plum], Privatizer._draw

    def interrupted(self, protection, plan):
        if others:
            word = others.pop()
            monkeypatch.setattr(Privatizer, "_draw", draw)
            alike.privatize(word, store.open("anna"))
            monkeypatch.setattr(Privatizer, "_draw", interrupted)
        return draw(self, protection, plan)

    monkeypatch.setattr(Privatizer, "_draw", interrupted)
    made = alike.privatize(f"{river} {apple} {castle}", store.open("anna"))
    monkeypatch.setattr(Privatizer, "_draw", draw)
    assert made.text == alike.privatize(f"{river} {apple} {castle}", store.open("anna")).text
    assert spent(store) == 5 * ETA  # 3 for the first try, which drew them, and 2 for the others
    assert distinct(store.open("anna")) == 4 * ETA


def test_a_second_try_that_spends_more_is_charged_the_rest(store):
    session = store.open("anna")
    one = Spend(metric="chord", table="t", epsilon=MICRO, ldp=MICRO, words=1)
    for epsilon in (1, 3, 2):
        session.reserve(
            [Spend(metric="chord", table="t", epsilon=epsilon * MICRO, ldp=MICRO, words=1)]
        )
    assert spent(store) == 3
    assert one.subtract([]) == one
    assert one.subtract([one]) is None
    infinite = Spend(metric="chord", table="t", epsilon=0, ldp=0, words=0, infinite="words pass")
    assert infinite.subtract([one]) == infinite
    assert one.subtract([infinite]) == one


def test_a_charge_that_forgets_new_words_would_be_less(store, alike, small_table, monkeypatch):
    """The broken twin: every word counts as drawn before."""
    everything = lambda parts, tokens, *_: np.ones(len(tokens.words), np.bool_)  # noqa: E731
    monkeypatch.setattr(privatizer_module, "find_drawn_before", everything)
    charged, session = race(store, alike, small_table.words)
    assert charged < distinct(session)


def returned(store, alike, words):
    """How "b a" is sent where "a" was drawn before, twice; then behind another beginning."""
    a, b = words[:2]
    served = Gateway(privatizer=alike, upstream="http://127.0.0.1:9/v1", store=store)

    def sent(*texts):
        chain = MessageChain(
            store.links("anna"),
            "anna",
            served.config_digest,
            [Utterance("user", (text,)) for text in texts],
        )
        chain.release(served.release_message)
        return chain.links[-1].texts[0]

    return [sent(a, f"{b} {a}"), sent(a, f"{b} {a}"), sent(f"{b} {a}")]


def test_a_word_keeps_the_draw_that_was_released_when_its_message_returns(store, small_table):
    alike = Privatizer("noise", table=small_table, eta=0.1, words={"consistent": True})
    assert len(set(returned(store, alike, small_table.words))) == 1
    assert spent(store) == pytest.approx(2 * 0.1, abs=1e-5)


def test_a_memory_of_draws_that_gave_way_would_release_them_uncharged(
    store, small_table, monkeypatch
):
    def applied(self, release):
        self.keep(release.rows, release.steps)
        return release

    monkeypatch.setattr(Replay, "apply", applied)
    alike = Privatizer("noise", table=small_table, eta=0.1, words={"consistent": True})
    assert len(set(returned(store, alike, small_table.words))) == 2
    assert spent(store) == pytest.approx(2 * 0.1, abs=1e-5)
