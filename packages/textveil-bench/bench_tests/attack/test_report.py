"""From outcomes to rows: parts cover everything once, and what is said is what was given."""

import json

import numpy as np
import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil.errors import ConfigError, UnknownName
from textveil.evaluate.attack import Case, Outcome
from textveil.pipeline.privatizer import Privatizer
from textveil.table.embedding import EmbeddingTable
from textveil_bench.attack import attack, report
from textveil_bench.attack.neighbour import Neighbour

CANARY = "zzcanaryzz"


@pytest.fixture(scope="module")
def case():
    table = EmbeddingTable.build(name="sixty", words=NOUNS, vectors=gaussian_rows(60, 8, 3))
    texts = [" ".join(NOUNS[i : i + 1 + i % 9]) for i in range(40)] + [f"the {CANARY}", "the", ""]
    return Case.create(Privatizer("noise", epsilon=5, table=table, seed=1), texts)


@pytest.mark.parametrize("unit", ["word", "text"])
def test_quarters_cover_everything_once(case, unit):
    m = len(case.view.output_rows) if unit == "word" else len(case.view.released)
    values = (np.arange(m) % 3 == 0).astype(np.float64)
    outcome = Outcome(
        source="a", metric="m", unit=unit, where=np.arange(m), values=values, baseline=0.2, note="n"
    )
    rows = list(report.compute_rates(case, [outcome]))
    overall = rows[0]
    assert (overall.slice, overall.n, overall.baseline, overall.note) == ("all", m, 0.2, "n")
    assert overall.value == values.mean()
    for name in ("frequency", "length"):
        parts = [row for row in rows if row.slice == name]
        covered = sum(row.n for row in parts)
        without = (
            2 if (unit, name) == ("text", "frequency") else 0
        )  # texts without a private word have none
        assert covered == m - without
        if not without:
            assert sum(row.n * row.value for row in parts) == pytest.approx(values.sum())
        assert len(parts) > 1


def test_frequency_is_of_the_private_word(case):
    unusual = np.array([word == CANARY for word in case.secret_words], float)
    outcome = Outcome(source="a", metric="m", where=np.arange(len(unusual)), values=unusual)
    by = {
        row.part.partition(" (")[0]: row.value
        for row in report.compute_rates(case, [outcome])
        if row.slice == "frequency"
    }
    assert by["rarest quarter"] > 0
    assert by["most frequent quarter"] == 0


def test_json_is_plain_and_holds_no_text(case):
    found = attack(case, [Neighbour()]).to_json()
    text = json.dumps(found, allow_nan=False)
    assert CANARY not in text
    assert found["texts"] == 43
    assert found["attacks"]["neighbour"] == {"k": 10}
    assert {row["attack"] for row in found["rows"]} == {"neighbour"}


def test_an_empty_outcome_is_left_out(case):
    none = Outcome(source="a", metric="m", where=np.zeros(0, np.int64), values=np.zeros(0))
    assert list(report.compute_rates(case, [none])) == []


def test_an_outcome_has_a_place_for_each_value():
    with pytest.raises(ConfigError):
        Outcome(source="a", metric="m", where=np.zeros(2, np.int64), values=np.zeros(3))


def test_one_attack_once(case):
    with pytest.raises(ConfigError):
        attack(case, [Neighbour(), Neighbour(k=7)])


def test_attacks_by_name():
    assert report.load("neighbour", {"k": 20}) == Neighbour(k=20)
    with pytest.raises(UnknownName):
        report.load("neighbor")


def test_progress_names_the_attack_and_its_step(case):
    told = []
    attack(case, [Neighbour()], report=lambda *step: told.append(step))
    assert told
    assert {name for name, _, _ in told} == {"neighbour, neighbours"}
