"""The audit of codebook, and broken twins of it that are found."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.fixtures import NOUNS, book_of, gaussian_rows

from textveil.mechanism import Distance, Select, Staircase
from textveil.mechanism.papers import codebook
from textveil.pipeline import Privatizer
from textveil.randomness import Values
from textveil.table import EmbeddingTable
from textveil_bench.audit import audit

CODES = 6
TABLE = EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
COARSE = TABLE.coarsen(book_of(TABLE, CODES))
EXACT = ("log-ratio", "joint", "certificate", "support", "overcharge")
RULE: dict[str, Any] = {"name": "codebook", "utility": Distance(), "rule": Staircase(sizes=(1,))}


class OneCodeFewer(Select):
    """The response is over all codes but the one after the word's own."""

    def log_probs(
        self, table: EmbeddingTable, block: Any, parameter: Values, released: Any = None
    ) -> Values | None:
        law = super().log_probs(table, block, parameter, released)
        assert law is not None
        law[np.arange(len(law)), (block.secret + 1) % len(table)] = -np.inf
        found: Values = law - np.log(np.exp(law).sum(axis=1, keepdims=True))
        return found


class BookOfTheText(Select):
    """Which code is which follows from the first word of the text: a book that depends on what is private."""

    def log_probs(
        self, table: EmbeddingTable, block: Any, parameter: Values, released: Any = None
    ) -> Values | None:
        law = super().log_probs(table, block, parameter, released)
        assert law is not None
        first = block.secret[np.searchsorted(block.layout.texts, block.layout.texts)]
        other = np.flatnonzero(block.secret != first)
        for i in other.tolist():
            law[i] = np.roll(law[i], int(first[i]))
        return law


class SamplerOfFewer(Select):
    """The law is written for all codes, and drawn is one of all but the last."""

    def privatize(self, table: EmbeddingTable, block: Any, parameter: Values, *, rng: Any) -> Any:
        rows = super().privatize(table, block, parameter, rng=rng)
        return np.where(rows == len(table) - 1, block.secret, rows)


def findings(mechanism: Any, *only: str) -> dict[str, Any]:
    build = partial(Privatizer, mechanism, epsilon=3.0, table=COARSE)
    return {each.check: each for each in audit(build, small=True, only=only)}


def test_codebook_keeps_its_claim_exactly() -> None:
    found = findings(codebook(), *EXACT)
    assert {each.verdict for each in found.values()} == {"holds"}
    assert found["log-ratio"].found == pytest.approx(3.0)
    assert found["log-ratio"].claimed == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("twin", "check"),
    [(OneCodeFewer, "support"), (OneCodeFewer, "log-ratio"), (BookOfTheText, "joint")],
)
def test_broken_twins_are_refuted_exactly(twin: type[Select], check: str) -> None:
    (found,) = findings(twin(**RULE), check).values()
    assert (found.verdict, found.evidence) == ("violated", "proved")


def test_a_sampler_beside_its_law_is_found() -> None:
    assert findings(SamplerOfFewer(**RULE), "sampler")["sampler"].verdict == "violated"
    assert findings(codebook(), "sampler")["sampler"].verdict == "holds"
