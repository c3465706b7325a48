"""The attacker with a network: a language in which only words far away tell what a word is."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.fixtures import NOUNS, Stub
from tests.lanes import first_of_each

from textveil.config import registry
from textveil.errors import ConfigError, MissingExtra
from textveil.evaluate.attack import Case
from textveil.evaluate.attack.learned import Learned
from textveil.evaluate.attack.network import Network
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness

GAP = 5
"""How far before a private word stands the one that tells of it."""

PASSING = ("the", "of", "in", "on", "to", "at", "by", "for")
"""Words that pass, in every text."""


def write_far(count, seed):
    """Distinct texts of words that pass; a noun now and then, of those that the word `GAP` before it has."""
    draw = np.random.default_rng(seed)
    texts = set()
    while len(texts) < count:
        words = [PASSING[i] for i in draw.integers(len(PASSING), size=6 * (GAP + 1))]
        for place in range(GAP, len(words), GAP + 1):
            told = PASSING.index(words[place - GAP])
            words[place] = NOUNS[7 * told + draw.integers(7)]
        texts.add(" ".join(words))
    return sorted(texts)


PUBLIC = tuple(write_far(800, 1))
PRIVATE = tuple(text for text in write_far(60, 2) if text not in PUBLIC)
OPTIONS = {"public": PUBLIC, "simulated": 1200, "candidates": 60}


def attack(**options):
    return Network(**{**OPTIONS, "epochs": 15, "width": 32, "layers": 2, **options})


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
    print(named.mean(), alone.mean())
    assert named.mean() > alone.mean() + 0.1
