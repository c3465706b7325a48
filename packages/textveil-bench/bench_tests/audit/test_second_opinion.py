"""A second opinion: the estimator of epsilon of `privacy-estimates` (Microsoft), fed with guesses of our own attacker.

It shares no code with our audit. It confirms two mechanisms and refutes a broken twin, whose attack is the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.broken import MECHANISMS

from textveil.mechanism import Block, Layout, Mechanism
from textveil.mechanism.papers import exponential, noise
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable

privacy_estimates = pytest.importorskip("privacy_estimates", reason="a development dependency")

EPSILON = 2.0
TRIALS = 20_000
ALARM = 1e-6

WORDS = [f"w{i}" for i in range(6)]
LINE = EmbeddingTable.build(
    name="line",
    words=WORDS,
    vectors=np.stack((np.arange(6) * 0.5, np.ones(6)), axis=1),
    metric="euclidean",
)
LEFT, RIGHT = 2, 4
DISTANCE = 1.0


def lower_bound(mechanism: Mechanism, seed: int) -> float:
    """What the estimator says is lost at least between two words, if outputs right of the middle mean the right one."""
    layout = Layout.build(
        *[50] * (TRIALS // 50)
    )  # words are drawn on their own: one stream serves 50
    parameter = mechanism.calibrate(LINE, layout, np.full(TRIALS, EPSILON))
    rng = SeededRandomness(seed)
    said = {
        word: mechanism.privatize(
            LINE, Block(layout=layout, rows=np.full(TRIALS, word)), parameter, rng=rng
        )
        >= RIGHT
        for word in (LEFT, RIGHT)
    }
    hits, false = int(said[RIGHT].sum()), int(said[LEFT].sum())
    count = privacy_estimates.AttackResults(TP=hits, FN=TRIALS - hits, FP=false, TN=TRIALS - false)
    return float(
        privacy_estimates.compute_eps_lo(count=count, delta=0.0, alpha=ALARM, method="beta")
    )


@pytest.mark.parametrize("make", [noise, exponential], ids=["noise", "exponential"])
def test_the_estimator_confirms_the_mechanism_and_refutes_half_of_its_claim(
    make: Callable[[], Any],
) -> None:
    mechanism = make()
    found = lower_bound(mechanism, 1)
    assert found <= EPSILON * DISTANCE
    assert found > 0.5 * EPSILON * DISTANCE  # half of the claim would be false


def test_the_estimator_refutes_noise_of_half_the_scale() -> None:
    """The twin says that it spends what it is asked for, and draws for twice that."""
    twin = MECHANISMS["epsilon doubled, noise"]()
    layout = Layout.build(1)
    assert twin.spend(LINE, layout, twin.calibrate(LINE, layout, np.array([EPSILON])))[0] == EPSILON
    assert lower_bound(twin, 2) > EPSILON * DISTANCE
