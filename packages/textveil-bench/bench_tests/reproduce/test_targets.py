from dataclasses import replace
from itertools import cycle

import pytest

from textveil.errors import ConfigError, UnknownName
from textveil.protect.budget import TABLE1
from textveil.table.embedding import load_table
from textveil_bench import cells
from textveil_bench.reproduce import clipping_bounds, targets
from textveil_bench.reproduce.computed import COMPUTED_TABLES
from textveil_bench.reproduce.targets import (
    AtRisk,
    Scale,
    Target,
    apply_changes,
    build_plans,
    list_names,
    load_target,
    parse_target,
)
from textveil_bench.run import Folders
from textveil_bench.spec import Sweep

NAMES = {
    *("stencil-fig2", "stencil-fig3", "stencil-fig4"),
    *("stamp-table1", "stamp-fig5", "stamp-fig6", "stamp-fig7-10"),
    *(f"cape-table{i}" for i in (3, 4, 5, 6, 7, 8, 10)),
    *(f"cape-fig{i}" for i in range(4, 13)),
    "efficiency",
}

SCALES: tuple[Scale, ...] = ("usual", "quick", "full")
ENDPOINT = {"url": "http://localhost:1/v1", "model": "none"}

SWEEP = {
    "name": "made-up",
    "limit": 300,
    "common": {"table.name": "minilm-s"},
    "data": [{"name": "sst2"}],
    "entries": [
        {
            "name": "noise",
            "set": {"mechanism.name": "noise"},
            "budget": {"mechanism.eta": [1, 2, 3, 4, 5]},
        },
        {"name": "mask", "set": {"mechanism.name": "placeholder"}},
    ],
}


def target(**values):
    return parse_target(
        "made-up", {"title": "t", "paper": "p", "shows": "s", "sweep": SWEEP, **values}
    )


def test_every_figure_and_table_has_a_target():
    assert set(list_names()) >= NAMES


def test_names_are_in_the_order_of_their_numbers():
    found = list_names()
    assert found.index("stencil-fig2") < found.index("stencil-fig4")
    assert found.index("stamp-fig7-10") < found.index("stamp-table1")


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'stencil-fig3'"):
        load_target("stencil-fgi3")


@pytest.mark.parametrize("name", list_names())
def test_every_panel_is_a_sweep_whose_options_there_are(name, monkeypatch):
    monkeypatch.setattr(clipping_bounds, "_load_texts", lambda *_: ("a",))
    monkeypatch.setattr(clipping_bounds, "_measure_bound", lambda *_: (5.0, -12.0))
    monkeypatch.setattr(clipping_bounds, "_measure_base", lambda *_: 0.01)
    for scale, hub in zip(SCALES, cycle((True, False)), strict=False):
        plan = build_plans(load_target(name), scale, hub=hub, endpoint=ENDPOINT, generative=True)
        for sweep in plan.sweeps.values():
            made = Sweep.read(clipping_bounds.measure_bounds(sweep, scale, Folders()))
            cells.check_sweep(made)
            assert made.series


@pytest.mark.parametrize("name", list_names())
def test_targets_say_what_differs_and_where_values_are_from(name):
    found = load_target(name)
    assert found.differs
    assert all(each.source and each.value is not None for each in found.published)
    assert all(each.claim and each.source for each in found.expect)
    assert set(found.computed) | {
        panel.computed for panel in found.panels if panel.computed
    } <= set(COMPUTED_TABLES)


@pytest.mark.parametrize("name", list_names())
def test_values_and_claims_choose_series_that_are_run(name):
    found = load_target(name)
    plans = [
        build_plans(found, scale, hub=hub, endpoint=ENDPOINT, generative=True)
        for scale in ("usual", "full")
        for hub in (False, True)
    ]
    series = [
        each
        for plan in plans
        for sweep in plan.sweeps.values()
        for each in Sweep.read(sweep).series
    ]
    wanted = [each.where for each in found.published if "table" not in each.where]
    wanted += [
        where for each in found.expect for where in each.series if not isinstance(where, float)
    ]
    for where in wanted:
        assert any(_fits(each, row) for row in _list_rows(found, where) for each in series), where


def _list_rows(found, where):
    data = where.get("data")
    names = found.list_rows(data) if isinstance(data, str) else []
    return [{**where, "data": name} for name in names] or [where]


def _fits(series, where):
    own = {
        "data": series.source.row_name,
        "entry": series.entry,
        "series": series.name,
        "family": series.family,
    }
    own |= {"whose": series.whose, **series.settings}
    lists = {path: value if isinstance(value, list) else [value] for path, value in where.items()}
    budget = where.get("budget", "first")
    if budget not in ("first", "last", *series.budgets) and not set(_several(budget)) & set(
        map(str, series.budgets)
    ):
        return False
    return all(
        own.get(path) in values for path, values in lists.items() if path not in ("budget", "level")
    )


@pytest.mark.parametrize("name", sorted(NAMES))
def test_quick_runs_need_no_folder_of_corpora(name):
    sweeps = build_plans(load_target(name), "quick").sweeps
    assert sweeps or not load_target(name).sweep
    for sweep in sweeps.values():
        made = Sweep.read(sweep)
        assert {source.name for source in made.data} <= {"opinions", "fantasy-generated"}
        assert made.limit is not None
        assert made.limit <= 12
        assert made.seeds == (1,)


def test_the_papers_grids_are_run():
    fig4 = Sweep.read(build_plans(load_target("stencil-fig4")).sweeps["SST-2 in place of SWAG"])
    (entry,) = fig4.entries
    assert entry.grid["mechanism.L"] == (1, 2, 3, 4, 5, 8, 9)
    assert {80, 120, 160, 200, 240} <= set(entry.budget["mechanism.eta"])
    fig3 = Sweep.read(build_plans(load_target("stencil-fig3")).sweeps["SST-2"])
    assert fig3.entries[0].grid["mechanism.sigma"] == (0.5, 0.75, 1.0, 1.25)


def test_the_vectors_of_table_1_are_those_of_the_rules():
    table1 = Sweep.read(build_plans(load_target("stamp-table1")).sweeps["AG News"])
    for entry in table1.entries:
        assert [tuple(each) for each in entry.budget["groups.budgets"]] == list(TABLE1.values())


@pytest.mark.parametrize("name", ["stamp-table1", "stamp-fig7-10"])
def test_the_papers_scale_of_laplace_is_that_of_the_table(name):
    table = load_table("minilm-s")
    bases = [
        entry.set["groups.base"]
        for entry in Sweep.read(load_target(name).sweep).entries
        if entry.set["mechanism.name"] == "laplace"
    ]
    paper, equal = bases
    assert paper == pytest.approx(1 / table.coordinate_range, rel=1e-5)
    assert equal == pytest.approx(
        table.diameter / (3.141592653589793 * table.l1_diameter), rel=1e-5
    )


def _several(budget):
    return map(str, budget if isinstance(budget, list) else [budget])


# ---- changes ---------------------------------------------------------------------------------------------------------


def test_changes_merge_common_options_and_replace_the_rest():
    made = apply_changes(SWEEP, {"common": {"words.casing": "copy"}, "limit": None, "seeds": [7]})
    assert made["common"] == {"table.name": "minilm-s", "words.casing": "copy"}
    assert made["limit"] is None
    assert made["seeds"] == [7]
    assert SWEEP["common"] == {"table.name": "minilm-s"}


def test_thin_keeps_the_ends():
    made = apply_changes(SWEEP, {"thin": 2})
    assert made["entries"][0]["budget"] == {"mechanism.eta": [1, 5]}
    assert apply_changes(SWEEP, {"thin": 3})["entries"][0]["budget"] == {"mechanism.eta": [1, 3, 5]}
    assert apply_changes(SWEEP, {"thin": 9}) == SWEEP


def test_only_keeps_entries_and_knows_their_names():
    assert [each["name"] for each in apply_changes(SWEEP, {"only": ["mask"]})["entries"]] == [
        "mask"
    ]
    with pytest.raises(UnknownName, match="no entry of the sweep is named 'mak'"):
        apply_changes(SWEEP, {"only": ["mak"]})


PANELS = [
    {"name": "one", "quick": {"limit": 5}},
    {"name": "two", "changes": {"limit": 40}},
    {"name": "asked", "needs": "llm", "changes": {"limit": 30}},
    {"name": "mended", "needs": "llm", "computed": "stamp-repaired"},
]


def test_panels_that_need_a_model_are_not_run_without_one():
    plans = build_plans(target(panels=PANELS))
    assert list(plans.sweeps) == ["one", "two"]
    assert plans.not_run == {"asked": "needs an LLM", "mended": "needs an LLM"}
    assert plans.tables == ()


def test_with_a_model_they_are_run_and_are_told_of_it():
    plans = build_plans(target(panels=PANELS), endpoint=ENDPOINT)
    assert plans.sweeps["asked"]["endpoint"] == ENDPOINT
    assert "endpoint" not in plans.sweeps["one"]
    assert plans.tables == ("stamp-repaired",)
    assert not plans.not_run


def test_a_quick_run_has_the_panels_that_say_so_with_their_changes():
    plans = build_plans(target(panels=PANELS, quick={"limit": 12, "seeds": [1]}), "quick")
    assert list(plans.sweeps) == ["one"]
    assert plans.sweeps["one"]["limit"] == 5
    assert plans.sweeps["one"]["seeds"] == [1]
    assert plans.not_run["two"] == targets.NOT_QUICK_REASON


def test_changes_of_a_run_come_after_those_of_a_panel():
    made = target(panels=PANELS, full={"limit": None}, hub={"common": {"table.name": "./glove"}})
    assert build_plans(made, "full").sweeps["two"]["limit"] is None
    assert build_plans(made, hub=True).sweeps["two"]["common"]["table.name"] == "./glove"


def test_set_has_options_of_entries_by_name():
    made = apply_changes(
        SWEEP, {"set": {"noise": {"mechanism.project": 8}, "another": {"mechanism.L": 3}}}
    )
    assert made["entries"][0]["set"] == {"mechanism.name": "noise", "mechanism.project": 8}
    assert made["entries"][1]["set"] == {"mechanism.name": "placeholder"}
    assert "mechanism.project" not in str(SWEEP)


HUB = [{"name": "here"}, {"name": "there", "needs": "hub"}, {"name": "both", "needs": "llm, hub"}]


def test_panels_that_need_a_hub_are_run_with_it_only():
    plans = build_plans(target(panels=HUB))
    assert list(plans.sweeps) == ["here"]
    assert plans.not_run == {"there": targets.NEED_REASONS["hub"], "both": "needs an LLM"}
    assert (
        build_plans(target(panels=HUB), endpoint=ENDPOINT).not_run["both"]
        == targets.NEED_REASONS["hub"]
    )
    plans = build_plans(target(panels=HUB), hub=True, endpoint=ENDPOINT)
    assert not plans.not_run
    assert "endpoint" not in plans.sweeps["there"]
    assert plans.sweeps["both"]["endpoint"] == ENDPOINT


def test_only_of_a_quick_run_leaves_a_panel_with_entries_of_its_own_alone():
    entries = [{"name": "its own", "set": {"mechanism.name": "noise"}}]
    panels = [
        {"name": "one", "quick": {}},
        {"name": "own", "quick": {}, "changes": {"entries": entries}},
    ]
    plans = build_plans(target(panels=panels, quick={"only": ["noise"], "limit": 3}), "quick")
    assert [entry["name"] for entry in plans.sweeps["one"]["entries"]] == ["noise"]
    assert plans.sweeps["own"]["entries"] == entries
    assert plans.sweeps["own"]["limit"] == 3


def test_panels_of_the_small_language_model_are_run_if_asked_for():
    panels = [*PANELS, {"name": "small", "needs": "small", "changes": {"limit": 20}}]
    assert build_plans(target(panels=panels), endpoint=ENDPOINT).not_run == {
        "small": targets.NEED_REASONS["small"]
    }
    plans = build_plans(target(panels=panels), generative=True)
    assert plans.sweeps["small"]["limit"] == 20
    assert "small" not in plans.not_run
    assert "endpoint" not in plans.sweeps["small"], "it needs none"
    assert set(plans.not_run) == {"asked", "mended"}, "it is no model that follows instructions"


def test_a_target_like_another_has_its_sweep_with_changes_and_its_panels():
    shared = {"title": "t", "paper": "p", "shows": "s", "like": "cape-fig5"}
    made, other = (
        parse_target("made-up", {**shared, "sweep": {"only": ["cape"], "limit": 7}}),
        load_target("cape-fig5"),
    )
    assert made.panels == other.panels
    assert made.quick == other.quick
    assert [entry["name"] for entry in made.sweep["entries"]] == ["cape"]
    assert {**made.sweep, "limit": 500, "entries": None} == {**other.sweep, "entries": None}
    assert not made.published
    assert [
        panel.name
        for panel in parse_target("made-up", {**shared, "panels": [{"name": "own"}]}).panels
    ] == ["own"]


def test_values_by_budget_are_as_many_values():
    given = {
        "where": {"entry": "noise"},
        "metric": "accuracy",
        "source": "table 1",
        "values": {1: 0.5, 20: 0.75},
    }
    found = target(published=[given]).published
    assert [(each.where, each.value, each.source) for each in found] == [
        ({"entry": "noise", "budget": 1}, 0.5, "table 1"),
        ({"entry": "noise", "budget": 20}, 0.75, "table 1"),
    ]


# ---- what is refused -------------------------------------------------------------------------------------------------

SHOWN = {"where": {"entry": "noise"}, "metric": "accuracy"}
CLAIM = {
    "claim": "c",
    "source": "section 1",
    "series": [{"entry": "noise"}, {"entry": "mask"}],
    "metric": "accuracy",
}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"tilte": "t"}, "did you mean 'title'"),
        ({"sweep": {}}, "must have a sweep"),
        ({"sweep": {}, "computed": "stamp-budgets", "expect": [CLAIM]}, "has no sweep"),
        ({"expect": [{**CLAIM, "srce": "x"}]}, "did you mean 'source'"),
        ({"expect": [{**CLAIM, "source": ""}]}, "source"),
        ({"expect": [{**CLAIM, "is": "near"}]}, "must be above 0 for near"),
        ({"expect": [{**CLAIM, "is": "over"}]}, "direction"),
        ({"expect": [{**CLAIM, "series": [{"entry": "noise"}]}]}, "series"),
        ({"published": [{"where": {}, "metric": "accuracy", "value": 0.5}]}, "source"),
        ({"panels": [{"name": "x", "need": "llm"}]}, "did you mean 'needs'"),
        ({"contradicts": [{"says": "at {one} and {two}", "shows": {"one": SHOWN}}]}, "see two"),
        ({"contradicts": [{"says": "none", "shows": {"one": SHOWN}}]}, "see one"),
    ],
)
def test_wrong_targets_are_refused(values, says):
    with pytest.raises(ConfigError, match=says):
        target(**values)


def test_metrics_are_names_or_mappings():
    (found,) = target(
        expect=[{**CLAIM, "at": {"risk": {"metric": "Pr@5", "source": "neighbour"}}}]
    ).expect
    assert found.metric.metric == "accuracy"
    assert isinstance(found.at, AtRisk)
    assert found.at.risk.source == "neighbour"
    with pytest.raises(ConfigError):
        replace(found, at="nowhere")


def test_a_target_of_a_table_alone_needs_no_sweep():
    made = target(sweep={}, computed="stamp-budgets")
    assert isinstance(made, Target)
    assert build_plans(made).tables == ("stamp-budgets",)
    assert not build_plans(made).sweeps


def test_data_of_panels_that_need_something_are_told_apart():
    special = targets.load_target("cape-fig5").list_special_rows()
    assert {"sst2, Gemma 3 270M", "mmlu, Gemma 3 270M", "sst2, language model"} <= special
    assert not special & {"sst2", "qnli", "opinions"}
