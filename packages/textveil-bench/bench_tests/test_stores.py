"""What the benchmark of stores counts as wrong is counted, and what it measures is there."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
pytest.importorskip("cryptography", reason="the extra `store` is not installed")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
stores = import_module("stores")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["SQLite", "PostgreSQL"])
def test_writers_that_are_killed_lose_nothing_and_leave_nothing_readable(kind):
    try:
        made = stores.killed(kind, 2)
    except stores.MissingServerError as error:
        pytest.skip(str(error))
    assert (made["value"], made["searched"]) == (0, 2)
    assert made["charged"] >= made["confirmed"] >= made["released"] > 0


@pytest.mark.slow
def test_a_store_that_encrypts_nothing_is_caught():
    assert stores.killed("SQLite", 1, clear=True)["readable"] == 1


def test_the_steps_with_many_values_are_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "TIMES", 2)
    rows = list(stores.values(30, tmp_path))
    assert len({row["what"] for row in rows}) == 6
    assert all(row["value"] > 0 and row["unit"] == "ms" for row in rows)
