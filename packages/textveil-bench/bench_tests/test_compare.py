"""Rows to series: seeds averaged text by text, budgets in order, equal risk, slices, and what is refused."""

import copy
import json
from itertools import pairwise

import numpy as np
import pytest

from bench_tests import synthetic
from textveil.errors import ConfigError, InputError
from textveil_bench.compare import MetricKey, build_series, find_chance
from textveil_bench.estimates import difference

ACCURACY = MetricKey("head", "accuracy")
EXPOSED = MetricKey("bayes", "exposed", (("prior", "unigram"),))


@pytest.fixture(scope="module")
def rows():
    return json.loads(json.dumps(list(synthetic.rows(data=("sst2",)))))


def of(found, name):
    return next(each for each in found if each.name == name)


def test_series_have_their_budgets_in_order_whatever_that_of_the_rows(rows):
    found = build_series(reversed(rows))
    noise = of(found, "noise")
    assert [cell.budget for cell in noise.cells] == [40, 60, 80, 120, 160]
    assert all(cell.seeds == (1, 2, 3) for cell in noise.cells)
    assert (noise.path, noise.whose, noise.data.name) == ("mechanism.eta", "paper", "sst2")
    assert [cell.budget for cell in of(found, "mask").cells] == [None]
    assert of(found, "mask").path is None
    assert {each.name for each in found} == {
        "identity", "mask", "uniform", "noise", "santext+", "custext+", "cape", "wide staircase, k 20",
        "wide staircase, k 200",
    }  # fmt: skip


def test_a_value_is_the_mean_over_seeds_of_sums_over_words(rows):
    cell = of(build_series(rows), "noise").cells[2]
    own = [row for row in rows if row["series"] == "noise" and row["budget"]["value"] == 80]
    assert len(own) == 3
    right = np.mean([row["scores"][0]["values"] for row in own])
    assert cell.estimates[ACCURACY].value == pytest.approx(right)
    guessed = [
        (score["values"], score["weights"])
        for row in own
        for score in row["scores"]
        if score["metric"] == "exposed"
    ]
    sums = sum(np.dot(values, weights) for values, weights in guessed)
    assert cell.estimates[EXPOSED].value == pytest.approx(
        sums / sum(sum(weights) for _, weights in guessed)
    )
    assert find_chance(ACCURACY, [cell]) == 0.5
    assert find_chance(EXPOSED, [cell]) is None


def test_seeds_are_averaged_before_texts_are_drawn(rows):
    """Three equal seeds tell no more than one: the interval stays as wide."""
    own = [row for row in rows if row["series"] == "noise"]
    single = [row for row in own if row["seed"] == 1]
    tripled = [dict(copy.deepcopy(row), seed=seed) for row in single for seed in (1, 2, 3)]
    (one,), (three,), (real,) = build_series(single), build_series(tripled), build_series(own)
    widths = [
        np.ptp([e.interval.low, e.interval.high])
        for e in (s.cells[2].estimates[ACCURACY] for s in (one, three, real))
    ]
    assert widths[0] == pytest.approx(widths[1])
    assert widths[2] < widths[0]


def test_texts_without_a_value_count_nothing(rows):
    row = copy.deepcopy(rows[0])
    score = row["scores"][1]
    score["values"], score["weights"] = [None, 1.0, 0.0, 0.5], [3, 1, 1, 0]
    (found,) = build_series([row])
    sample = found.cells[0].scores[EXPOSED].sample
    assert sample.sums[:5].tolist() == [0, 1, 0, 0, 0]
    assert sample.sizes[:5].tolist() == [0, 1, 1, 0, 0]
    assert len(sample.sums) == 60  # the attack looked at the first four
    score["values"], score["weights"] = [None], [0]
    (found,) = build_series([row])
    assert EXPOSED not in found.cells[0].estimates


def test_at_equal_risk(rows):
    noise = of(build_series(rows), "noise")
    points = [
        (values[0].value, values[1].value) for _, values in noise.list_points(EXPOSED, ACCURACY)
    ]
    level = 0.1
    (low, one), (high, other) = next((a, b) for a, b in pairwise(points) if a[0] <= level <= b[0])
    found = noise.estimate_at_risk(EXPOSED, ACCURACY, level)
    assert found is not None
    assert found.value == pytest.approx(one + (other - one) * (level - low) / (high - low))
    assert noise.estimate_at_risk(EXPOSED, ACCURACY, 0.99) is None
    assert noise.estimate_at_risk(EXPOSED, MetricKey("head", "F1"), level) is None


def test_a_budget_that_was_chosen_for_a_level_stands_for_it_where_the_curve_ends(rows):
    own = [
        copy.deepcopy(row)
        for row in rows
        if row["series"] == "noise" and row["budget"]["value"] in (80, 120)
    ]
    (noise,) = build_series(own)
    low = noise.cells[0].estimates[EXPOSED].value
    near, far = (
        0.95 * low,
        0.5 * low,
    )  # the search ended a little above the one, and far above the other
    for level, expected in ((near, noise.cells[0].estimates[ACCURACY].value), (far, None)):
        for row in own:
            row["level"] = {80: level, 120: 0.5}[row["budget"]["value"]]
        (noise,) = build_series(own)
        found = noise.estimate_at_risk(EXPOSED, ACCURACY, level)
        assert (found and found.value) == expected
    assert noise.estimate_at_risk(EXPOSED, ACCURACY, 0.3 * low) is None, (
        "no budget was chosen for it"
    )


def test_differences_are_paired_over_texts(rows):
    found = build_series(rows)
    one, other = (of(found, name).cells[2].estimates[ACCURACY] for name in ("cape", "santext+"))
    paired = difference(one, other)
    assert paired.draws.std() < 0.8 * np.hypot(one.draws.std(), other.draws.std())


def test_slices_are_quarters_by_length_and_together_the_whole(rows):
    cell = of(build_series(rows), "noise").cells[2]
    lengths = np.array(cell.row["lengths"])
    sample = cell.scores[EXPOSED].sample
    parts = cell.slices[EXPOSED]
    assert [name.partition(" (")[0] for name, _ in parts] == [
        "shortest quarter", "second quarter", "third quarter", "longest quarter",
    ]  # fmt: skip
    edges = np.quantile(lengths, (0.25, 0.5, 0.75))
    shortest = lengths <= edges[0]
    assert parts[0][0].endswith(f"({lengths.min()} to {lengths[shortest].max()} words)")
    assert parts[0][1].value == pytest.approx(
        sample.sums[shortest].sum() / sample.sizes[shortest].sum()
    )
    assert set(cell.slices) == set(cell.estimates)
    # texts of one length are one slice
    row = copy.deepcopy(rows[0]) | {"lengths": [7] * 60}
    (alone,) = build_series([row])
    assert [name for name, _ in alone.cells[0].slices[ACCURACY]] == ["shortest quarter (7 words)"]


def test_a_later_row_takes_the_place_of_an_earlier_one(rows):
    again = copy.deepcopy(rows[0])
    again["scores"][0]["values"] = [0.0] * 60
    (found,) = build_series([rows[0], again])
    assert found.cells[0].estimates[ACCURACY].value == 0
    assert found.cells[0].seeds == (1,)


def test_what_is_refused(rows):
    other = copy.deepcopy(rows[-1])
    other["configuration"]["mechanism"]["k"] = 7
    other["seed"] = 9
    with pytest.raises(ConfigError, match="may differ only in budget and seed"):
        build_series([rows[-1], other])
    for broken in ({"series": "x"}, {**rows[0], "scores": [{}]}, {**rows[0], "lengths": [1]}):
        with pytest.raises(InputError, match="rows of the bench"):
            build_series([broken])


def test_other_texts_are_another_data_set(rows):
    other = copy.deepcopy(rows[0])
    other["data"]["digest"] = "another"
    found = build_series([rows[0], other])
    assert [each.data.digest for each in found] == ["sst2-60", "another"]
    with pytest.raises(ConfigError, match="same texts"):
        difference(*(each.cells[0].estimates[ACCURACY] for each in found))


def test_metrics_by_role():
    assert ACCURACY.role == "task"
    assert EXPOSED.role == "attack"
    assert MetricKey("meaning", "meaning").role == "measure"
    assert EXPOSED.title == "bayes exposed (unigram)"
    assert (
        MetricKey("linkage", "top-1", (("from", "mask"), ("among", 100))).title
        == "linkage top-1 (mask, among 100)"
    )
    assert MetricKey("rouge-l", "Rouge-L").title == "Rouge-L"
