"""The attacker with a network: a language in which only words far away tell what a word is."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.fixtures import NOUNS

from textveil.errors import MissingExtra
from textveil.evaluate.attack import Case
from textveil.evaluate.attack.learned import Learned
from textveil.evaluate.attack.network import NetworkAttack
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness

GAP = 5
"""How far before a private word stands the one that tells of it."""

PASSING = ("the", "of", "in", "on", "to", "at", "by", "for")
"""Words that pass, in every text."""


def write_far(count, seed):
    """Distinct texts of words that pass; a noun now and then, of those that the word `GAP` before it has."""
    draw = np.random.default_rng(seed)
    texts: set[str] = set()
    while len(texts) < count:
        words = [PASSING[i] for i in draw.integers(len(PASSING), size=6 * (GAP + 1))]
        for place in range(GAP, len(words), GAP + 1):
            told = PASSING.index(words[place - GAP])
            words[place] = NOUNS[7 * told + draw.integers(7)]
        texts.add(" ".join(words))
    return sorted(texts)


PUBLIC = tuple(write_far(800, 1))
PRIVATE = tuple(text for text in write_far(60, 2) if text not in PUBLIC)
OPTIONS: dict[str, Any] = {"public": PUBLIC, "simulated": 1200, "candidates": 60}


def attack(**options):
    return NetworkAttack(**{**OPTIONS, "epochs": 12, "width": 32, "layers": 2, **options})


@pytest.fixture(scope="module")
def case(small_table):
    return Case.create(Privatizer("exponential", table=small_table, seed=4, c=2.5), PRIVATE)


def hits(attacker, case, seed=6):
    return next(attacker.run(case, rng=SeededRandomness(seed))).values


@pytest.fixture(scope="module")
def named(case):
    return hits(attack(), case)


def test_a_network_names_what_only_a_longer_context_reveals(case, named):
    """The twin is `learned`, which looks no further than three words and at what is near."""
    alone = hits(Learned(**OPTIONS), case)
    assert named.mean() > alone.mean() + 0.08


def test_guesses_repeat_under_a_seed_and_differ_under_another(case, named):
    small = {"epochs": 1, "width": 8, "public": PUBLIC[:90], "simulated": 100}
    first, again, other = (
        attack(**small).guess(case.view, [1], rng=SeededRandomness(seed))[0].probability
        for seed in (6, 6, 7)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_guesses_are_made_without_the_private_texts(case):
    """The twin's public texts have the private ones: other private texts then give other guesses."""
    lie = replace(
        case, truth=replace(case.truth, texts=PUBLIC[90:99], words=("",) * len(case.truth.words))
    )

    def guess(given, *more):
        small = attack(epochs=1, width=8, public=(*PUBLIC[:90], *more), simulated=100)
        return small.guess(given.view, [1], rng=SeededRandomness(6))[0].probability

    assert np.array_equal(guess(case), guess(lie))
    assert not np.array_equal(guess(case, *case.truth.texts), guess(lie))


@pytest.mark.parametrize(
    ("name", "options", "releases", "why"),
    [
        ("exponential", {"c": 2.5}, 3, "one release"),
        ("d-chi-stencil", {"L": 4, "sigma": 0.75, "eta": 50}, 1, "each word alone"),
        ("cape", {"nominal": 20, "context": "original"}, 1, "words around it"),
    ],
)
def test_it_says_what_it_cannot_read(small_table, name, options, releases, why):
    made = Privatizer(name, table=small_table, seed=4, **options)
    view = Case.create(made, PRIVATE[:3], releases=releases).view
    assert why in attack().refusal(view)
    assert "--public" in attack(public=()).refusal(view)


def test_without_torch_it_says_what_to_install(case, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "textveil.evaluate.attack.context_network", raising=False)
    with pytest.raises(MissingExtra, match=r"torch: pip install .*torch"):
        hits(attack(), case)
