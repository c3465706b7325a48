"""Raw rows that are decoded by cosine keep the bound of the noise, and no smaller one."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.broken import CosineDistance

from textveil.mechanism import MultivariateLaplace
from textveil.pipeline import Privatizer
from textveil.table import EmbeddingTable
from textveil_bench.audit.run import audit

CHECKS = ("sampled", "statement", "budget")


def build_raw_table() -> EmbeddingTable:
    """30 pairs of one direction, of lengths 1 and 3: no cosine tells the words of a pair apart."""
    rows = np.random.default_rng(5).normal(size=(30, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    syllables = [a + b for a in ("bal", "dor", "fen", "gim", "kus", "lot") for b in "aeiou"]
    return EmbeddingTable.build(
        name="lengths",
        words=[s + end for end in ("rak", "tev") for s in syllables],
        vectors=np.concatenate((rows, 3 * rows)),
        metric="euclidean",
    )


@pytest.mark.parametrize(
    ("mechanism", "verdicts"),
    [("noise", {"holds"}), ("a claim in cosine distance", {"holds", "violated"})],
)
def test_the_bound_is_in_the_distance_of_the_noise(mechanism: str, verdicts: set[str]) -> None:
    twin: Any = CosineDistance(name="noise", noise=MultivariateLaplace(), decode="cosine")
    build = (
        partial(Privatizer, "noise", table=build_raw_table(), epsilon=4.0, decode="cosine")
        if mechanism == "noise"
        else partial(Privatizer, twin, table=build_raw_table(), epsilon=4.0)
    )
    assert {found.verdict for found in audit(build, small=True, only=CHECKS)} == verdicts
