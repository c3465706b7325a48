"""Other people in public texts."""

from pathlib import Path

import numpy as np
import pytest
from training.data import Tagged
from training.generated import Names, Public

from training import data, strangers

TEXT = (
    "Robert Taylor was born in Leeds in 1965. Later, Taylor joined the River Trust, and Mary Wilson left. "
    "Robert Taylor's book about Santa Barbara is from 1990."
)
FAMOUS = [
    Tagged(["Ann", "Lee", "of", "Rome"], ["B-PERSON", "I-PERSON", "O", "B-LOCATION"], [True] * 4)
]


def others(text, seed):
    rng = np.random.default_rng(seed)
    return strangers.with_others(text, Names(rng), Public(FAMOUS, rng))


@pytest.mark.parametrize("seed", range(20))
def test_the_people_of_a_text_are_others_the_same_ones_throughout(seed):
    found = others(TEXT, seed)
    text, mentions, _ = found
    assert not {"Robert", "Taylor", "Mary", "Wilson"} & {*text.replace("'", " ").split()}
    people = [(text[m.start : m.end], m.standing) for m in mentions if m.kind == "PERSON"]
    first, again, mary, last = people
    assert first == last
    assert again[0] in first[0]
    assert again[1] == first[1]
    assert mary[1] in ("private", "public")
    assert text.endswith(f"{last[0]}'s book about Santa Barbara is from 1990.")


def test_of_other_names_and_figures_nothing_is_known():
    found = others(TEXT, 0)
    text, mentions, _ = found
    unknown = {text[m.start : m.end] for m in mentions if m.standing == "borderline"}
    assert unknown >= {"Leeds", "1965", "River Trust", "Santa Barbara", "1990"}
    labels = dict(zip(*data.tagged(found)[:2], strict=True))
    assert {labels[each] for each in ("Leeds", "1965", "Barbara")} == {"?"}
    assert {labels[each] for each in ("born", "joined", "book")} == {"O"}


@pytest.mark.slow
def test_nobody_and_somebody_famous_stand_in_both_kinds():
    standings = [
        m.standing for seed in range(100) for m in others("Robert Taylor left.", seed).mentions
    ]
    assert 40 < standings.count("private") < 80
    assert standings.count("public") == 100 - standings.count("private")


@pytest.mark.parametrize(
    "text", ["Nobody is here.", "San Diego and the River Trust.", "the White House", ""]
)
def test_texts_without_people_are_left_out(text):
    assert others(text, 0) is None


def test_a_fifth_of_the_texts_is_held_out(monkeypatch):
    monkeypatch.setattr(
        data, "wikipedia", lambda _: [f"Title {i} Title {i} is a thing." for i in range(20)]
    )
    monkeypatch.setattr(data, "squad_train", lambda _: [])
    monkeypatch.setattr(data, "news", lambda _: [f"News {i}" for i in range(10)])
    seen, unseen = ([*strangers.sources(Path(), held_out=which)] for which in (False, True))
    assert (len(seen), len(unseen)) == (24, 6)
    assert not {*seen} & {*unseen}
    assert "Title 1 is a thing." in unseen
