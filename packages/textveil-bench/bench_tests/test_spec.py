"""Sweeps: what YAML means, which cells there are, and what tells them apart."""

from pathlib import Path

import pytest

from textveil.config import Config, resolve
from textveil.errors import BudgetError, ConfigError, TextveilError, UnknownName
from textveil_bench.cells import check_sweep
from textveil_bench.spec import CONF_FOLDER, Sweep, find_non_defaults

GIVEN = {
    "name": "small",
    "seeds": [1, 2],
    "common": {"table.name": "minilm-s"},
    "data": [{"name": "sst2", "task": "head"}, "ag_news"],
    "attacks": ["neighbour", {"name": "bayes", "priors": ["unigram"]}],
    "entries": [
        {
            "name": "window",
            "set": {"mechanism.name": "d-chi-stencil"},
            "grid": {"mechanism.L": [2, 3], "mechanism.sigma": 0.75},
            "budget": {"mechanism.eta": [80, 120]},
        },
        {"name": "stencil", "set": {"mechanism.name": "stencil"}},
    ],
}


def sweep(**changes) -> Sweep:
    return Sweep.read({**GIVEN, **changes})


def cells(made: Sweep, digest: str = "d"):
    return [cell for series in made.series for cell in series.build_cells(made, digest)]


def test_series_are_the_grid_on_every_data_set():
    made = sweep()
    names = [series.name for series in made.series if series.source.row_name == "ag_news"]
    assert names == [
        "identity",
        "mask",
        "uniform",
        "window, L 2, sigma 0.75",
        "window, L 3, sigma 0.75",
        "stencil",
    ]
    assert len(made.series) == 12
    window = next(series for series in made.series if series.name.startswith("window, L 3"))
    config = window.build_config(80, seed=7)
    assert config is not None
    assert (config.mechanism.options, config.seed) == ({"L": 3, "sigma": 0.75, "eta": 80}, 7)
    assert config.table.name == "minilm-s"
    check_sweep(made)


def test_cells_are_budgets_with_seeds_and_each_has_draws_of_its_own():
    found = cells(sweep())
    assert len(found) == 2 * (2 + 2 + 2 + 2 * 2 * 2 + 2)
    drawn = [cell for cell in found if cell.config is not None]
    assert len({cell.key for cell in drawn}) == len(drawn)
    # The two data sets have one digest here, which would be the same texts: they have the same draws.
    assert len({cell.config.seed for cell in drawn}) == len(drawn) / 2


def test_a_key_follows_from_everything_that_decides_the_row():
    before = {cell.key for cell in cells(sweep())}
    assert before == {cell.key for cell in cells(sweep(name="another name"))}
    several: list[dict] = [
        {"attacks": ["neighbour"]},
        {"attacked": 9},
        {"measures": ["retention"]},
        {"common": {}},
    ]
    for changes in several:
        after = {cell.key for cell in cells(sweep(**changes)) if cell.config is not None}
        assert not before & after, changes
    assert not before & {cell.key for cell in cells(sweep(), digest="others")}


def test_an_option_that_is_added_later_changes_no_key(monkeypatch):
    before = [cell.key for cell in cells(sweep())]
    plain = Config.to_dict

    def later(config: Config) -> dict:
        found = plain(config)
        return {**found, "protect": {**found["protect"], "later": 1}, "section": {"later": None}}

    monkeypatch.setattr(Config, "to_dict", later)
    assert [cell.key for cell in cells(sweep())] == before


def test_what_a_configuration_sets_is_all_that_is_no_default():
    given = {"mechanism.name": "codebook", "words.consistent": True, "epsilon": 3, "seed": 4}
    found = find_non_defaults(
        resolve(overrides={**given, "table.name": "minilm", "protect.timeout": 300.0})
    )
    assert found == {
        "mechanism": {"name": "codebook"},
        "words": {"consistent": True},
        "epsilon": 3.0,
        "seed": 4,
    }
    assert find_non_defaults(Config()) == {"mechanism": {"name": "noise"}}


def test_options_by_data_set_and_learned_words():
    entry = {
        "name": "tasked",
        "set": {"mechanism.name": "rankcape", "learned": 5, "groups.budgets": [0, 0, 1, 0]},
        "budget": {"groups.base": 3.0},
        "for_data": {"sst2": {"mechanism.k": 7}},
    }
    made = sweep(entries=[entry])
    (series,) = [series for series in made.series if series.whose != "baseline"]
    assert series.source.row_name == "sst2"
    assert not series.is_searched
    assert series.task_word_count == 5
    config = series.add_task_words(("good", "bad")).build_config(3.0)
    assert config is not None
    assert config.protect.important == ("good", "bad")
    assert config.mechanism.options["k"] == 7
    assert made.select_part(only=["ag_news"]).entries == (), "it is for another data set"
    assert made.select_part(only=["sst2"]).series
    keys = [
        next(series.add_task_words(words).build_cells(made, "d")).key
        for words in (("good", "bad"), ("bad", "good"), ("good", "dull"))
    ]
    assert len(set(keys)) == 3, "the list is a part of the key"
    with pytest.raises(UnknownName, match="ag_news"):
        sweep(entries=[{**entry, "for_data": {"ag_nevs": {}}}])


def test_a_part_of_a_sweep():
    part = sweep().select_part(limit=9, seeds=(5,), only=["sst2", "stencil"])
    assert {series.source.row_name for series in part.series} == {"sst2"}
    assert [series.name for series in part.series] == ["identity", "mask", "uniform", "stencil"]
    assert part.data[0].limit == 9
    assert {cell.seed for cell in cells(part)} == {5}
    with pytest.raises(UnknownName, match="stencil"):
        sweep().select_part(only=["stensil"])


@pytest.mark.parametrize(
    ("own", "of_sweep", "left"), [(None, 20, 20), (30, 20, 30), (200, 20, 100), (None, None, 100)]
)
def test_a_part_has_no_more_examples_than_the_whole(own, of_sweep, left):
    part = sweep(data=[{"name": "sst2", "limit": own}], limit=of_sweep).select_part(limit=100)
    assert part.data[0].limit == left
    assert part.limit == min(100, of_sweep or 100)


def test_a_part_in_which_nothing_is_left_is_refused():
    entry = {"name": "stencil", "set": {"mechanism.name": "stencil"}, "for_data": {"sst2": {}}}
    made = sweep(entries=[entry])
    with pytest.raises(
        ConfigError, match=r"'stencil' is only for sst2, and the data sets left are ag_news"
    ):
        made.select_part(only=["stencil", "ag_news"])
    with pytest.raises(
        ConfigError,
        match="no part of the sweep to run; it has data: sst2, ag_news; entries: stencil",
    ):
        sweep(entries=[entry], baselines=[]).select_part(only=["ag_news"])


@pytest.mark.parametrize("learned", ["many", 2.5, True, -1, [3]])
def test_a_wrong_number_of_learned_words_is_told(learned):
    entry = {
        "name": "a",
        "set": {"mechanism.name": "krr"},
        "grid": {"learned": [learned]},
        "budget": {"epsilon": 1},
    }
    with pytest.raises(
        ConfigError, match=r"learned of 'a, learned .*' must be a whole number of 0 or more, got "
    ):
        check_sweep(sweep(entries=[entry]))


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        (
            {"entries": [{"name": "a", "budget": {"epsilon": []}}]},
            ConfigError,
            "epsilon of the entry 'a' has no values",
        ),
        (
            {"entries": [{"name": "a", "grid": {"mechanism.L": []}}]},
            ConfigError,
            r"mechanism\.L of the entry 'a'",
        ),
        ({"seeds": [1, 1]}, ConfigError, "one or more different numbers"),
        ({"seeds": []}, ConfigError, "one or more different numbers"),
        ({"data": []}, ConfigError, r"sweep\.data"),
        ({"data": ["sst2", "sst2"]}, ConfigError, "as_name"),
        ({"measures": ["retain"]}, UnknownName, "measure"),
        ({"baselines": ["identiti"]}, UnknownName, "identity"),
        ({"limit": 0}, ConfigError, r"sweep\.limit"),
        ({"typo": 1}, UnknownName, "typo"),
        ({"data": [{"name": "sst2", "tusk": "head"}]}, UnknownName, "tusk"),
        (
            {"entries": [{"name": "two", "budget": {"epsilon": 1, "mechanism.eta": 2}}]},
            ConfigError,
            "one budget",
        ),
        (
            {"entries": [{"name": "a", "budget": {"epsilon": 1}}] * 2},
            ConfigError,
            "have the same name, 'a'",
        ),
        ({"risk": {"levels": [0.1]}}, UnknownName, "risk"),
    ],
)
def test_what_is_wrong_with_a_sweep_is_said(changes, error, says):
    with pytest.raises(error, match=says):
        cells(sweep(**changes))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"attacks": ["neighbor"]}, UnknownName),
        (
            {
                "entries": [
                    {"name": "a", "set": {"mechanism.name": "noize"}, "budget": {"epsilon": 1}}
                ]
            },
            UnknownName,
        ),
        (
            {"entries": [{"name": "a", "set": {"mechanism.L": 3}, "budget": {"epsilon": 1}}]},
            UnknownName,
        ),
        ({"entries": [{"name": "a", "budget": {"epsilon": [-1]}}]}, BudgetError),
        ({"entries": [{"name": "a"}]}, BudgetError),
    ],
)
def test_options_are_checked_before_anything_is_run(changes, error):
    with pytest.raises(error):
        check_sweep(sweep(**changes))


def test_files_that_are_no_sweeps(tmp_path):
    for content in (b"- a list", b"name: [", b"\xff\xfe\x00", b"name: x"):
        path = tmp_path / "sweep.yaml"
        path.write_bytes(content)
        with pytest.raises(TextveilError):
            Sweep.read(path)
    with pytest.raises(ConfigError, match="cannot read"):
        Sweep.read(tmp_path / "none.yaml")


@pytest.mark.parametrize("path", sorted(CONF_FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_packaged_sweeps_are_ones(path: Path):
    if "entries" in path.read_text(encoding="utf-8"):
        sweep = Sweep.read(path.stem)
        check_sweep(sweep)
        assert sweep.series
