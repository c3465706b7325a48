from dataclasses import replace

import numpy as np
import pytest

from bench_tests import synthetic
from textveil_bench import compare
from textveil_bench.intervals import Interval
from textveil_bench.reproduce.computed import Table
from textveil_bench.reproduce.document import find_repeated_claims
from textveil_bench.reproduce.targets import parse_target
from textveil_bench.reproduce.verdict import (
    ComparedPlace,
    check_claims,
    compare_published,
    format_contradictions,
    select_cells,
)

ENTRIES = (
    synthetic.Entry(name="noise", path="mechanism.eta", budgets=(40, 60, 80, 120, 160), middle=80),
    synthetic.Entry(name="cape", edge=0.2),
    synthetic.Entry(name="custext+", edge=-0.2),
    synthetic.Entry(name="wide", edge=0.2, grid={"mechanism.k": (20, 200)}),
)


@pytest.fixture(scope="module")
def series():
    return compare.build_series(list(synthetic.rows(entries=ENTRIES, data=("sst2",), texts=200)))


def claim(*members, **values):
    return {
        "claim": "c",
        "source": "section 1",
        "series": list(members),
        "metric": "accuracy",
        **values,
    }


def judge(series, *members, **values):
    made = parse_target(
        "made-up",
        {
            "title": "t",
            "paper": "p",
            "shows": "s",
            "sweep": {"name": "x"},
            "expect": [claim(*members, **values)],
        },
    )
    (found,) = check_claims(made, series)
    return found


BETTER, WORSE = {"entry": "cape"}, {"entry": "custext+"}
RISK = {"risk": {"metric": "exposed", "source": "bayes"}}


def test_a_claim_holds_and_its_opposite_does_not(series):
    found = judge(series, BETTER, WORSE)
    assert found.answer == "holds"
    assert found.gaps[0].low > 0
    assert len(found.places) == 5
    assert judge(series, WORSE, BETTER).answer == "does not hold"
    assert judge(series, WORSE, BETTER, **{"is": "below"}).answer == "holds"


def test_what_chance_could_do_cannot_be_told(series):
    rows = list(synthetic.rows(entries=ENTRIES, data=("sst2",), texts=8, seeds=(1,)))
    few = compare.build_series(rows)
    assert (
        judge(few, {"entry": "noise"}, {"entry": "wide", "mechanism.k": 20}, at=RISK).answer
        == "cannot be told"
    )
    assert judge(series, BETTER, BETTER).answer == "cannot be told"


def test_a_margin_is_asked_for(series):
    gap = judge(series, BETTER, WORSE).gaps[0]
    assert judge(series, BETTER, WORSE, by=gap.low / 2).answer == "holds"
    assert judge(series, BETTER, WORSE, by=gap.high * 2).answer == "does not hold"
    assert judge(series, BETTER, BETTER, by=-0.02).answer == "holds"


def test_near(series):
    assert judge(series, BETTER, BETTER, **{"is": "near"}, by=0.01).answer == "holds"
    assert judge(series, BETTER, WORSE, **{"is": "near"}, by=0.01).answer == "does not hold"
    wide = judge(series, BETTER, WORSE).gaps[0].value
    found = judge(series, BETTER, WORSE, **{"is": "near"}, by=wide)
    assert found.answer != "holds"


def test_of_what_is_near_the_place_that_is_farthest_is_told(series):
    gaps = [Interval(value=value, low=value - 0.1, high=value + 0.1) for value in (0.02, -0.05)]
    places = tuple(
        ComparedPlace(name=f"epsilon {i}", first=0.5, second=0.5, gap=gap)
        for i, gap in enumerate(gaps)
    )
    near = judge(series, BETTER, BETTER, **{"is": "near"}, by=0.06)
    assert "farthest" not in near.summary, "it holds"
    open_ = replace(near, answer="cannot be told", places=places)
    assert open_.summary.endswith("; farthest at epsilon 1: -0.050 (-0.150 to +0.050)")
    refuted = replace(
        near, answer="does not hold", places=(*places, places[0]), contrary_places=places
    )
    assert "; surely on the other side at epsilon 1: -0.050 (" in refuted.summary
    below = replace(refuted, expectation=replace(near.expectation, direction="below"))
    assert "; surely on the other side at epsilon 0: +0.020 (" in below.summary


def test_one_place_against_refutes_what_holds_on_the_whole(series):
    first, last = {"budget": "first"}, {"budget": "last"}
    assert judge(series, BETTER | last, WORSE | last).places[0].gap.low > -0.1
    crossing = synthetic.Entry(name="crossing", edge=0.0, budgets=(4.0, 6.0, 8.0, 10.0, 14.0))
    made = list(synthetic.rows(entries=(*ENTRIES, crossing), data=("sst2",), texts=200))
    for row in made:
        if row["entry"] == "crossing" and row["budget"]["value"] == 4.0:
            _set(row, "accuracy", 0.0)
        elif row["entry"] == "crossing":
            _set(row, "accuracy", 1.0)
    found = judge(compare.build_series(made), {"entry": "crossing"}, WORSE)
    assert found.gaps[0].low > 0
    assert found.answer == "does not hold"
    assert [place.name for place in found.contrary_places] == ["epsilon 4"]
    assert (
        f"; surely on the other side at epsilon 4: {found.places[0].gap.value:+.3f} ("
        in found.summary
    )
    assert "on the other side" not in judge(series, WORSE, BETTER).summary, (
        "it is on the other side as a whole"
    )
    assert (
        judge(compare.build_series(made), {"entry": "crossing"} | first, WORSE | first).answer
        == "does not hold"
    )


def test_a_trifle_at_one_place_refutes_nothing():
    """Both series reach the same at their ends, but for something that no text decides."""
    good = synthetic.Entry(name="good", edge=0.0, budgets=(4.0, 6.0, 8.0, 10.0, 14.0))
    made = list(synthetic.rows(entries=(*ENTRIES, good), data=("sst2",), texts=200))
    for row in made:
        if row["entry"] in ("good", WORSE["entry"]) and row["budget"]["value"] == 4.0:
            _set(row, "accuracy", 0.8 - 0.004 * (row["entry"] == "good"))
        elif row["entry"] == "good":
            _set(row, "accuracy", 1.0)
    found = judge(compare.build_series(made), {"entry": "good"}, WORSE)
    assert found.places[0].gap.high < 0
    assert (found.answer, found.contrary_places) == ("holds", ())


def _set(row, metric, value):
    for score in row["scores"]:
        if score["metric"] == metric:
            score["values"] = [value] * len(score["values"])


def test_equal_numbers_of_two_kinds_of_budget_are_not_compared():
    """SanText's epsilon multiplies a distance, Cape's nominal one does not: 8 and 8 have nothing in common."""
    scaled = synthetic.Entry(name="scaled", edge=-0.4, path="mechanism.eta")
    made = compare.build_series(
        list(synthetic.rows(entries=(*ENTRIES, scaled), data=("sst2",), texts=200))
    )
    one, other = {"entry": "scaled"}, BETTER
    alone = {"budget": 4.0}
    for members in ((one, other), (other, one), (one | alone, other | alone)):
        found = judge(made, *members)
        assert (found.answer, found.gaps, found.places) == ("not tested", (), ())
        assert "budgets of two kinds" in found.summary
    assert judge(made, other, one, at="order").answer == "holds"
    assert judge(made, other, one, at=RISK).answer == "holds"
    assert judge(made, {"entry": "identity"}, one).answer == "holds", "originals have no budget"


def test_where_what_holds_on_the_mean_does_not_is_told():
    """As Cape above InferDPT: on the mean of seven epsilons, and not so at 20."""
    good = synthetic.Entry(name="good", edge=0.0, budgets=(4.0, 6.0, 8.0, 10.0, 14.0))
    made = list(synthetic.rows(entries=(*ENTRIES, good), data=("sst2",), texts=200))
    for row in made:
        if row["entry"] in ("good", WORSE["entry"]):
            worse, last = row["entry"] != "good", row["budget"]["value"] == 14.0
            for score in row["scores"]:
                if (
                    score["metric"] == "accuracy"
                ):  # one text decides at the last budget, many at the others
                    count = len(score["values"])
                    right = 120 - worse * 60 if not last else 120 - 2 * (not worse)
                    score["values"] = [float(i < right) for i in range(count)]
    series = compare.build_series(made)
    found = judge(series, {"entry": "good"}, WORSE)
    assert (found.answer, found.contrary_places) == ("holds", ())
    assert found.summary.endswith("; not so at epsilon 14: -0.010 (-0.025 to +0.000)")
    below = judge(series, WORSE, {"entry": "good"}, **{"is": "below"})
    assert below.summary.endswith("; not so at epsilon 14: +0.010 (+0.000 to +0.025)")
    twice = replace(found, places=(*found.places, found.places[-1])).summary
    assert "; not so at 2 of them, least at epsilon 14: -0.010" in twice
    assert "not so" not in judge(series, {"entry": "good"}, WORSE, by=-0.02).summary, (
        "within the margin"
    )
    assert (
        "not so"
        not in judge(
            series, {"entry": "good", "budget": "first"}, WORSE | {"budget": "first"}
        ).summary
    )


def test_the_same_comparison_is_known_again_however_it_is_asked(series):
    first = judge(series, BETTER, WORSE)
    same = [
        judge(series, WORSE, BETTER, **{"is": "below"}),
        judge(series, {"family": "cape"}, WORSE, claim="in other words", source="section 2"),
    ]
    assert {each.comparison for each in same} == {first.comparison}
    others = [
        judge(series, WORSE, BETTER),
        judge(series, BETTER, WORSE, by=0.01),
        judge(series, BETTER, WORSE, **{"is": "near"}, by=0.01),
        judge(series, BETTER, WORSE, at=RISK),
        judge(series, BETTER | {"budget": "last"}, WORSE | {"budget": "last"}),
        judge(series, BETTER, {"entry": "mask"}),
        judge(series, BETTER, {"entry": "none"}),
        judge(series, BETTER, {"entry": "nor"}),
    ]
    assert len({each.comparison for each in (first, *others)}) == 1 + len(others)


def test_a_comparison_counts_once():
    claims = [
        [{"claim": "c", "comparison": name} for name in names] for names in ("ab", "b", "cab")
    ]
    documents = [{"target": f"fig{i}", "claims": each} for i, each in enumerate(claims)]
    assert find_repeated_claims(documents) == {
        ("fig1", 0): "fig0",
        ("fig2", 1): "fig0",
        ("fig2", 2): "fig0",
    }
    claims[0][1]["claim"] = "ours: c"
    assert find_repeated_claims(documents) == {
        ("fig0", 1): "fig1",
        ("fig2", 1): "fig0",
        ("fig2", 2): "fig1",
    }, "a paper's counts"


def test_a_chain_holds_where_every_pair_does(series):
    assert judge(series, BETTER, WORSE, {"entry": "mask"}).answer == "holds"
    found = judge(series, BETTER, {"entry": "mask"}, WORSE)
    assert found.answer == "does not hold"
    assert len(found.gaps) == 2


def test_a_series_of_one_cell_is_compared_with_all_of_the_other(series):
    found = judge(series, {"entry": "identity"}, {"entry": "custext+"})
    assert found.answer == "holds"
    assert [place.name for place in found.places] == [
        f"epsilon {each}" for each in (4, 6, 8, 10, 14)
    ]


def test_a_number_stands_for_itself(series):
    assert judge(series, {"entry": "identity"}, 0.6).answer == "holds"
    assert judge(series, 0.99, {"entry": "custext+", "budget": "first"}).answer == "holds"
    assert (
        judge(series, {"entry": "identity"}, 0.6, at=RISK).reason
        == "a number is compared at budgets, not at a risk"
    )


def test_order_pairs_budgets_of_unlike_kinds(series):
    noise = {"entry": "noise"}
    why = "epsilon and eta are budgets of two kinds: equal numbers of them are not equal"
    assert judge(series, BETTER, noise).reason == why
    assert judge(series, {"entry": "noise", "budget": "first"}, 0.01).places, "a number has no kind"
    found = judge(series, BETTER, noise, at="order")
    assert len(found.places) == 5
    assert found.places[0].name == "epsilon 4, eta 40"


def test_at_equal_risk(series):
    found = judge(series, BETTER, WORSE, at=RISK)
    assert found.answer == "holds"
    assert len(found.places) == 5
    levels = judge(series, BETTER, WORSE, at={**RISK, "levels": [0.1, 0.2, 1.1]})
    assert [place.name for place in levels.places] == ["exposed 0.1", "exposed 0.2"]


def test_at_a_risk_the_best_of_several_series_is_taken_less_what_that_gains_by_chance(series):
    both = judge(series, {"entry": "wide"}, WORSE, at={**RISK, "levels": [0.1]})
    each = [
        judge(series, {"entry": "wide", "mechanism.k": k}, WORSE, at={**RISK, "levels": [0.1]})
        .places[0]
        .first
        for k in (20, 200)
    ]
    assert max(each) - 0.02 < both.places[0].first < max(each)
    assert each[0] != each[1]


@pytest.mark.parametrize(
    ("members", "values", "why"),
    [
        (({"entry": "none"}, WORSE), {}, "no rows of ours for one of the series"),
        (({"entry": "none"}, {"entry": "nor"}), {}, "no rows of ours for either of the series"),
        (({"entry": "wide"}, WORSE), {}, "a selector must match one series to compare budgets"),
        ((BETTER, WORSE), {"metric": "BLEU"}, "no BLEU in rows of ours"),
        ((BETTER, WORSE), {"at": {"risk": "BLEU"}}, "no BLEU in rows of ours"),
        ((BETTER, {"entry": "mask"}), {"at": RISK}, "the two series have no place in common"),
        ((BETTER, WORSE), {"data": ["agnews"]}, "no rows of ours for either of the series"),
        ((BETTER, WORSE), {"metric": "measure"}, "no measure in rows of ours"),
    ],
)
def test_what_is_missing_is_said(series, members, values, why):
    found = judge(series, *members, **values)
    assert found.answer == "not tested"
    assert why in found.reason
    assert found.summary == found.reason


def test_a_metric_that_two_judges_have_must_be_told_apart():
    made = list(synthetic.rows(entries=ENTRIES, data=("sst2",), texts=30))
    for row in made:
        own = next(score for score in row["scores"] if score["metric"] == "accuracy")
        row["scores"].append({**own, "source": "finetune: small"})
    series = compare.build_series(made)
    assert "choose with source" in judge(series, BETTER, WORSE).reason
    told = judge(series, BETTER, WORSE, metric={"metric": "accuracy", "source": "finetune"})
    assert told.places


def test_claims_are_judged_on_the_data_sets_that_have_their_metric():
    both = compare.build_series(list(synthetic.rows(entries=ENTRIES, texts=30)))
    assert judge(both, BETTER, WORSE).data == "sst2"  # squad has F1


def test_in_a_quick_run_no_other_judge_stands_for_a_model_that_a_claim_is_about(series):
    claims = [
        {
            "claim": name,
            "source": "ours",
            "series": [BETTER, WORSE],
            "metric": "accuracy",
            "data": data,
        }
        for name, data in (("any", ["sst2-large"]), ("the model's", ["sst2, a model"]))
    ]
    made = parse_target(
        "made-up",
        {
            "title": "t",
            "paper": "p",
            "shows": "s",
            "sweep": {"name": "x", "data": [{"name": "sst2"}]},
            "panels": [
                {"name": "heads", "quick": {}},
                {
                    "name": "a model",
                    "needs": "small",
                    "changes": {"data": [{"name": "sst2", "as_name": "sst2, a model"}]},
                },
            ],
            "expect": claims,
        },
    )
    anything, special = check_claims(made, series, anywhere=True)
    assert (anything.data, anything.answer) == ("sst2", "holds")
    assert (special.data, special.answer) == ("sst2, a model", "not tested")


# ---- published values ------------------------------------------------------------------------------------------------


def published(series, where, value, metric="accuracy"):
    given = {"where": where, "metric": metric, "value": value, "source": "table 1"}
    made = parse_target(
        "made-up",
        {"title": "t", "paper": "p", "shows": "s", "sweep": {"name": "x"}, "published": [given]},
    )
    (found,) = compare_published(made, series)
    return found


def test_ours_stands_beside_the_published_value(series):
    found = published(series, {"data": "sst2", "entry": "identity"}, 0.5)
    assert found.ours is not None
    assert found.ours.low <= found.ours.value <= found.ours.high
    assert found.summary == f"ours is {found.ours.value - 0.5:.3g} higher"
    near = published(series, {"data": "sst2", "entry": "identity"}, round(found.ours.value, 3))
    assert near.summary == "our interval holds the paper's value"


def test_what_differs_by_rounding_is_the_same(series):
    found = published(series, {"data": "sst2", "entry": "identity"}, 0.5)
    said = replace(found, ours=Interval(value=0.5, low=0.5 - 1e-10, high=0.5 - 1e-11)).summary
    assert said == "ours is the paper's value"


@pytest.mark.parametrize(
    ("where", "metric", "says"),
    [
        ({"entry": "none"}, "accuracy", "not measured: no row of ours is meant"),
        ({"entry": "cape"}, "accuracy", "not measured: 5 rows of ours are meant"),
        ({"entry": "identity"}, "EM", "not measured: no EM in its rows"),
    ],
)
def test_what_was_not_measured_is_said(series, where, metric, says):
    assert published(series, where, 0.5, metric).summary == says


def test_times_are_those_of_an_example(series):
    found = published(series, {"entry": "identity"}, 0.5, {"source": "seconds", "metric": "attack"})
    assert found.ours is not None
    assert found.ours.value == 20.0 / 200


def test_selectors(series):
    assert [curve.series.name for curve in select_cells({"entry": "wide"}, series)] == [
        "wide, k 20",
        "wide, k 200",
    ]
    assert [curve.series.name for curve in select_cells({"mechanism.k": [200, 3]}, series)] == [
        "wide, k 200"
    ]
    (curve,) = select_cells({"entry": "cape", "budget": [6.0, 14.0]}, series)
    assert [cell.budget for cell in curve.cells] == [6.0, 14.0]
    (curve,) = select_cells({"entry": "cape", "budget": "last"}, series)
    assert [cell.budget for cell in curve.cells] == [14.0]
    assert not select_cells({"entry": "cape", "level": 0.1}, series)
    assert np.isfinite(curve.cells[0].budget)


# ---- sentences with figures, and values of tables --------------------------------------------------------------------


def told(series, says, **shows):
    values = {"title": "t", "paper": "p", "shows": "s", "sweep": {"name": "x"}}
    made = parse_target("made-up", {**values, "contradicts": [{"says": says, "shows": shows}]})
    (found,) = format_contradictions(made, series)
    return found


def test_a_sentence_shows_figures_of_rows(series):
    where = {"data": "sst2", "entry": "noise", "budget": 80}
    (cell,) = select_cells(where, series)[0].cells
    value = next(
        each.interval for name, each in cell.estimates.items() if name.metric == "accuracy"
    )
    found = told(
        series,
        "It has {a}, and spends {b}.",
        a={"where": where, "metric": "accuracy"},
        b={"where": where, "metric": "epsilon"},
    )
    assert (
        found
        == f"It has {value.value:.3g} ({value.low:.3g} to {value.high:.3g}), and spends infinite."
    )


def test_a_sentence_says_what_was_not_run(series):
    for where, metric in (
        ({"entry": "none"}, "accuracy"),
        ({"entry": "noise"}, "accuracy"),
        ({"entry": "mask"}, "none"),
    ):
        assert told(series, "{a}", a={"where": where, "metric": metric}) == "(not run)"


def test_a_published_value_stands_beside_the_row_of_a_table():
    table = Table(
        title="t", columns=("mechanism", "setup, s"), rows=(("noise", 2.5), ("cape", None))
    )
    published = [
        {
            "where": {"table": "costs", "row": row},
            "metric": metric,
            "value": 3.0,
            "source": "table 7",
        }
        for row, metric in (
            ("noise", "setup, s"),
            ("cape", "setup, s"),
            ("noise", "memory"),
            ("polar", "setup, s"),
        )
    ]
    made = parse_target(
        "made-up",
        {
            "title": "t",
            "paper": "p",
            "shows": "s",
            "computed": "efficiency",
            "published": published,
        },
    )
    found = compare_published(made, [], {"costs": table})
    assert [each.ours and each.ours.value for each in found] == [2.5, None, None, None]
    assert found[0].summary == "ours is 0.5 lower"
    assert [each.reason for each in found[1:]] == [
        "no row of ours has it",
        "no table of ours has it",
        "no row of ours has it",
    ]
