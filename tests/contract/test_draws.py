"""Who promises a finite epsilon decides by whole numbers, or says that floating point decided."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from textveil.config import WordsOptions, registry
from textveil.guarantee import FLOATING_POINT, Claim
from textveil.mechanism import Block, Context, Fill, Law, Layout, Mechanism, Perturb, Select, oov
from textveil.mechanism.papers import krr, noise
from textveil.protect import GROUPS, PUBLIC, Protection, draw_groups
from textveil.randomness import Draws, Floats, Ids, Randomness, SeededRandomness, Values
from textveil.table import EmbeddingTable

TABLE = EmbeddingTable.build(
    name="forty",
    words=[f"w{i}" for i in range(40)],
    vectors=np.random.default_rng(3).normal(size=(40, 6)),
)
FLOATING = ("normal", "uniform", "exponential", "gamma", "beta", "laplace")
"""What `Draws` gives in floating point."""


@contextmanager
def noticed() -> Iterator[set[str]]:
    """The names of all floating-point values that are drawn."""
    used: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        for name in FLOATING:
            method = getattr(Draws, name)

            def drawn(self: Draws, *given: Any, _name: str = name, _method: Any = method) -> Values:
                used.add(_name)
                found: Values = _method(self, *given)
                return found

            patch.setattr(Draws, name, drawn)
        yield used


def honest(mechanism: Mechanism) -> bool:
    """Whether a claim says that floating point decides just where it does and something is promised."""
    block = Block(layout=Layout.build(3, 40), rows=np.array([3, 1, 4, *range(40)]))
    parameter = mechanism.parameters(TABLE, block.layout)
    if parameter is None:
        parameter = mechanism.calibrate(TABLE, block.layout, np.full(43, 5.0))
    with noticed() as used:
        mechanism.privatize(TABLE, block, parameter, rng=SeededRandomness(1))
    claim = mechanism.claim(TABLE)
    promises = claim.kind != "none" or claim.restricted is not None
    return (promises and bool(used)) == (FLOATING_POINT in claim.assumptions)


@pytest.mark.parametrize("name", registry.list_names("mechanism"))
def test_every_registered_mechanism_draws_by_whole_numbers_or_says_otherwise(name: str) -> None:
    assert honest(registry.load("mechanism", name)())


def test_what_is_filled_in_at_random_is_drawn_by_whole_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def even(
        self: Context, table: EmbeddingTable, block: Block, wave: Ids, released: Ids
    ) -> Floats:
        return np.zeros((len(wave), len(table)), np.float32)

    monkeypatch.setattr(Context, "compute_logits", even)
    assert honest(Fill(temperature=1.0))


# ---- broken twins -----------------------------------------------------------------------------------------


class ByThreshold(Select):
    """The law is the same, but a uniform number is compared with sums of probabilities."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        law = self.log_probs(table, block, parameter)
        assert law is not None
        released = np.empty(len(parameter), np.int64)
        for part, draws in rng.open(block.layout.sizes).split_rows(1 << 10):
            sums = np.exp(law[part]).cumsum(axis=1)
            released[part] = (sums <= draws.uniform(1) * sums[:, -1:]).sum(axis=1)
        return released


class Declared(ByThreshold):
    """The same, and the claim says so."""

    def claim(self, table: EmbeddingTable) -> Claim:
        claim = super().claim(table)
        return replace(claim, assumptions=(*claim.assumptions, FLOATING_POINT))


class Silent(Perturb):
    """Noise whose claim says nothing of floating point."""

    def claim(self, table: EmbeddingTable) -> Claim:
        return replace(super().claim(table), assumptions=())


def test_a_threshold_in_floating_point_is_caught_unless_the_claim_says_so() -> None:
    rule = krr().rule
    assert isinstance(ByThreshold(name="twin", rule=rule), Law)
    assert not honest(ByThreshold(name="twin", rule=rule))
    assert honest(Declared(name="twin", rule=rule))
    assert honest(Select(name="twin", rule=rule))
    assert not honest(Silent(name="twin", noise=noise().noise))


# ---- what draws besides mechanisms ------------------------------------------------------------------------


def test_labels_and_words_outside_the_table_are_drawn_by_whole_numbers() -> None:
    group = np.tile(np.arange(5, dtype=np.int16), 8)
    protection = Protection(public=group == 0, group=group, labels=(PUBLIC, *GROUPS))
    with noticed() as used:
        drawn = draw_groups(protection, 2.0, np.array([0, 40]), rng=SeededRandomness(1))
        options = WordsOptions(oov="uniform", numbers="add")
        rules = oov.assign_rules(["12", "zyx"] * 20, np.ones(40, bool), options)
        assert (oov.draw(rules, np.array([0, 40]), 40, rng=SeededRandomness(2)) >= 0).all()
    assert (drawn.group != group).any()
    assert not used
