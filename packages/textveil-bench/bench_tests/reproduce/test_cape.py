import numpy as np
import pytest

from textveil.models import load_stored_range
from textveil.table.embedding import load_table
from textveil_bench.examples import DataSet, Example
from textveil_bench.reproduce import cape, clipping_bounds, costs
from textveil_bench.reproduce.computed import ComputeOptions
from textveil_bench.run import Folders

QUICK = ComputeOptions(scale="quick")


def column(table, heading):
    return np.array([row[table.columns.index(heading)] for row in table.rows])


def test_vocabularies_are_those_of_the_packaged_tables():
    table = cape.vocabularies(QUICK)
    raw = load_table("minilm-s", metric="euclidean")
    assert table.rows[-1] == ("minilm-s", len(raw), raw.diameter, load_table("minilm-s").diameter)


def test_the_label_the_theorem_and_the_truth_are_three_numbers():
    table = cape.statements(QUICK)
    nominal = column(table, "nominal")
    claimed, true = (column(table, f"{what}, 100 words") for what in ("theorem 4.1", "true"))
    assert true[0] > claimed[0]  # at epsilon 0 the theorem fails
    assert true[-1] < claimed[-1]
    assert np.diff(claimed) == pytest.approx(np.diff(nominal))
    alone = column(table, "true, minilm-s, no context")
    anyhow = column(table, "at most, minilm-s, any fixed context")
    ten = column(table, "at most, minilm-s, context original, 10 private words")
    assert (nominal[:-1] < alone[:-1]).all()
    assert (alone < anyhow).all()
    assert ten == pytest.approx(10 * anyhow)


@pytest.fixture
def opinions(monkeypatch):
    text = "the kettle sang while a spider crossed the silver mirror in our kitchen"
    data = DataSet(
        name="own", split="test", kind="text", fields=("text",), examples=(Example(texts=(text,)),)
    )
    monkeypatch.setattr(cape, "load", lambda *_: data)


def test_buckets_shorten_the_tail(opinions):
    table = cape.tail(QUICK)
    assert [row[:2] for row in table.rows[:2]] == [(1.0, "exponential"), (1.0, "50 buckets")]
    unlikely, likely = (
        column(table, "of candidates up to 0.0001"),
        column(table, "of the 20 with the best scores"),
    )
    assert unlikely[0] > 0.999
    assert (unlikely[::2] > unlikely[1::2]).all()
    assert (likely[::2] < likely[1::2]).all()
    assert (np.diff(likely[1::2]) > 0).all()
    assert table.drawing is not None
    assert [y for _, y in table.drawing.lines["50 buckets: the 20 best"]] == likely[1::2].tolist()
    shares = np.array([row[2:] for row in table.rows], np.float64)
    assert (shares >= 0).all()
    assert (shares <= 1 + 1e-9).all()


def test_the_exponential_mechanisms_tail_keeps_to_its_ceiling(opinions):
    table = cape.tail(QUICK)
    ceiling = float(table.notes[0].split("at most ")[1].split(" ")[0])
    where = [row[:2] for row in table.rows].index((6.0, "exponential"))
    assert column(table, "of the 20 with the best scores")[where] < ceiling


@pytest.mark.parametrize("make", [cape.logits, cape.distances])
def test_histograms_hold_every_word_of_the_table(make):
    table = make(QUICK)
    assert sum(column(table, "candidates")) == len(load_table("minilm-s"))
    assert (column(table, table.columns[0])[1:] == column(table, "to")[:-1]).all()
    assert table.drawing is not None
    ((x, y),) = (zip(*points, strict=True) for points in table.drawing.lines.values())
    assert list(y) == column(table, "candidates").tolist()
    assert (np.array(x) > column(table, table.columns[0])).all()


def test_the_word_itself_is_the_nearest():
    table = cape.distances(QUICK)
    assert "not above 0" not in table.notes[0], "no distance is below"
    assert "of the values are not above 0" in cape.logits(QUICK).notes[0]
    assert "The word itself has 0;" in table.notes[0]
    assert table.rows[0][0] == 0


# ---- costs -----------------------------------------------------------------------------------------------------------


def measured(subjects, load, *, report):
    for number, subject in enumerate(subjects):
        for metric in (
            "setup",
            "setup: table",
            "setup: mechanism",
            "one text",
            "a text of two",
            "a word of many",
        ):
            yield {"entry": subject.name, "metric": metric, "value": float(number)}
        for metric in ("memory", "memory: packages"):
            yield {"entry": subject.name, "metric": metric, "value": 1500.0}


def test_costs_stand_in_columns(monkeypatch):
    monkeypatch.setattr(costs, "measure", measured)
    table = costs.paper(ComputeOptions())
    assert [row[0] for row in table.rows] == ["santext", "custext", "rantext", "cape"]
    assert column(table, "setup, s").tolist() == [0, 1, 2, 3]
    assert column(table, "memory, GB").tolist() == [1.5] * 4
    assert len(costs.efficiency(ComputeOptions()).rows) > len(costs.efficiency(QUICK).rows) > 1


def test_every_subject_is_a_configuration():
    from textveil.config.layers import resolve

    for name, subject in costs._load_subjects().items():
        assert resolve(overrides=subject.set).table.name == "minilm-s", name
    assert {
        *costs._load_settings()["paper"],
        *costs._load_settings()["quick"],
    } <= costs._load_subjects().keys()


# ---- bounds that are measured ----------------------------------------------------------------------------------------


def sweep(**options):
    entries = [
        {"name": "cape", "set": {"mechanism.name": "cape", "mechanism.bound": 2.5}},
        {"name": "mask"},
    ]
    return {
        "common": {"table.name": "minilm-s"},
        "entries": [*entries, {"name": "other", "set": options}],
    }


def test_a_bound_is_measured_where_an_entry_asks_for_it():
    before = sweep(
        **{"mechanism.name": "cape", "mechanism.model": "bundled:3", "mechanism.bound": "measured"}
    )
    after = clipping_bounds.measure_bounds(before, "quick", Folders())
    assert after["entries"][:2] == before["entries"][:2]
    found = after["entries"][2]["set"]
    stored = load_stored_range(load_table("minilm-s"))
    assert stored is not None
    assert stored.lowest < found["mechanism.floor"] < found["mechanism.bound"] < stored.largest + 5
    assert before["entries"][2]["set"]["mechanism.bound"] == "measured"
    assert round(found["mechanism.bound"], 2) == found["mechanism.bound"]


def test_a_floor_that_is_set_stays(monkeypatch):
    monkeypatch.setattr(clipping_bounds, "_measure_bound", lambda *_: (5.0, -12.0))
    before = sweep(**{"mechanism.bound": "measured", "mechanism.floor": 0.0})
    assert clipping_bounds.measure_bounds(before, "quick", Folders())["entries"][2]["set"] == {
        "mechanism.bound": 5.0,
        "mechanism.floor": 0.0,
    }


def test_nothing_is_read_where_no_entry_asks(monkeypatch):
    monkeypatch.setattr(clipping_bounds, "_load_texts", None)
    before = sweep(**{"mechanism.bound": 1.0})
    assert clipping_bounds.measure_bounds(before, "usual", Folders()) == before
