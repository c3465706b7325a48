"""Pr@k and KNN@k against plain sorting."""

import numpy as np
import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil.errors import ConfigError, UnknownName
from textveil.evaluate.attack import Case
from textveil.pipeline.privatizer import Privatizer
from textveil.table.embedding import EmbeddingTable
from textveil_bench.attack import attack
from textveil_bench.attack import neighbour as module
from textveil_bench.attack.neighbour import Neighbour, rank

RAW = gaussian_rows(60, 5, 7) * np.linspace(0.2, 4, 60, dtype=np.float32)[:, None]


@pytest.fixture(scope="module")
def table():
    return EmbeddingTable.build(name="sixty", words=NOUNS, vectors=RAW)


def sorted_by_hand(distance, released, private):
    rows = RAW.astype(np.float64)
    if distance == "cosine":
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    gaps = np.linalg.norm(rows - rows[released], axis=1)
    return int((gaps < gaps[private] - 1e-9).sum())


@pytest.mark.parametrize("distance", module.DISTANCES)
@pytest.mark.parametrize(("cells", "slab"), [(1 << 24, 1 << 16), (130, 1 << 16), (130, 7)])
def test_rank_is_the_place_in_sorted_order(table, monkeypatch, distance, cells, slab):
    """With raw rows for the Euclidean distance, on a table that keeps unit rows; in one batch and slab, and in many."""
    monkeypatch.setattr(module, "MAX_DISTANCES", cells)
    monkeypatch.setattr(module, "SLAB_ROWS", slab)
    random = np.random.default_rng(0)
    released, private = random.integers(0, 60, 300), random.integers(0, 60, 300)
    expected = [sorted_by_hand(distance, *pair) for pair in zip(released, private, strict=True)]
    assert rank(table, released, private, distance).tolist() == expected


def test_the_two_distances_differ(table):
    pairs = np.arange(60), np.roll(np.arange(60), 1)
    assert rank(table, *pairs, "cosine").tolist() != rank(table, *pairs, "euclidean").tolist()


def test_equal_rows_are_not_nearer():
    """A row that two words share is as near as itself."""
    vectors = np.eye(4, dtype=np.float32)[[0, 0, 1, 2]]
    table = EmbeddingTable.build(
        name="twins", words=["one", "two", "three", "four"], vectors=vectors
    )
    assert rank(table, np.array([0]), np.array([1]), "cosine").tolist() == [0]


def test_rates_are_shares_of_ranks(table):
    case = Case.create(Privatizer("noise", eta=12.0, table=table, seed=2), [" ".join(NOUNS)] * 20)
    rows = [row for row in attack(case, [Neighbour(k=8)]).rows if row.slice == "all"]
    found = {(row.metric, row.setting["distance"]): row for row in rows}
    nearer = rank(table, case.view.output_rows, case.truth.rows, "cosine")
    assert found["Pr@1", "cosine"].value == np.mean(case.view.output_rows == case.truth.rows)
    assert found["Pr@5", "cosine"].value == np.mean(nearer < 5)
    assert found["KNN@8", "cosine"].value == np.mean(nearer < 8)
    changed = nearer[case.view.output_rows != case.truth.rows]
    assert found["KNN@8 of changed words", "cosine"].value == np.mean(changed <= 8)
    assert 0.1 < found["Pr@1", "cosine"].value < found["Pr@5", "cosine"].value < 1


def test_placeholders_are_refused(table):
    found = attack(Case.create(Privatizer("placeholder", table=table), ["lemon"]), [Neighbour()])
    assert found.rows == ()
    assert "placeholders" in found.refused["neighbour"]


def test_options():
    with pytest.raises(ConfigError):
        Neighbour(k=0)
    with pytest.raises(UnknownName):
        Neighbour(**{"n": 3})  # noqa: PIE804
