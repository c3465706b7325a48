"""Options: layers and their order, dotted paths, values typed as text, profiles, errors in one line."""

import math
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import yaml

from textveil.config import layers, option_sources, registry, sections
from textveil.config.layers import resolve
from textveil.config.sections import Config, MechanismOptions, TableOptions, WordsOptions
from textveil.errors import BudgetError, ConfigError, UnknownName


def windowed(
    *,
    eta: float | None = None,
    L: int = 5,
    sigma: float = 0.75,
    side: Literal["right", "left"] = "right",
    balanced: bool = False,
    sizes: tuple[int, ...] = (),
    label: str | None = None,
    untyped=None,
) -> None:
    """A stand-in with options of every kind."""


def alike(*, k: int = 1, K: int = 2, c: float | None = None) -> None:
    """A stand-in whose options differ in case only."""


def free(*, k: int = 1, **options: Any) -> None:
    """A stand-in that takes any option."""


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mechanisms that cost nothing to load, so that only options are under test."""
    entry = registry.Entry
    monkeypatch.setitem(
        registry.BUILT_IN,
        "mechanism",
        {
            "noise": entry(target=f"{__name__}:windowed", summary="", parameter="eta"),
            "window": entry(target=f"{__name__}:windowed", summary="", parameter="eta"),
            "alike": entry(target=f"{__name__}:alike", summary="", parameter="c"),
            "free": entry(target=f"{__name__}:free", summary=""),
            "bare": entry(target=f"{__name__}:windowed", summary="", budget=False),
        },
    )


def write(folder: Path, content: str | bytes, name: str = "options.yaml") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# ---- layers --------------------------------------------------------------------------------------


def test_defaults():
    found = resolve(overrides={"epsilon": 60})
    assert found == Config(epsilon=60)
    assert found.words == WordsOptions(
        unit="auto", casing="lower", stopwords="pass", oov="surrogate"
    )
    assert (found.table.name, found.table.metric, found.mechanism.name) == (
        "minilm",
        "chord",
        "noise",
    )
    assert (found.seed, found.profile) == (None, None)


def test_every_layer_wins_over_those_below_it(tmp_path, monkeypatch):
    monkeypatch.setattr(option_sources, "PROFILES", tmp_path)
    write(tmp_path, "mechanism: {name: window, L: 1, sigma: 1}", "base.yaml")
    file = write(tmp_path, "mechanism: {L: 2, side: left}\nwords: {oov: keep}\nepsilon: 10\n")
    environ = {"TEXTVEIL_MECHANISM__L": "3", "TEXTVEIL_WORDS__OOV": "error", "OTHER": "x"}
    found = resolve(profile="base", file=file, environ=environ, overrides={"mechanism.L": "4"})
    assert found.mechanism == MechanismOptions(
        name="window", options={"L": 4, "sigma": 1.0, "side": "left"}
    )
    assert found.words.oov == "error"
    assert resolve(profile="base", file=file, environ=environ).mechanism.options["L"] == 3
    assert resolve(profile="base", file=file).mechanism.options["L"] == 2
    assert resolve(profile="base", overrides={"epsilon": 1}).mechanism.options["L"] == 1


def test_a_budget_replaces_the_budget_of_lower_layers_by_either_name(tmp_path):
    file = write(tmp_path, "mechanism: {name: window, eta: 160}\n")
    by_epsilon = resolve(file=file, overrides={"epsilon": "80"})
    assert (by_epsilon.epsilon, by_epsilon.mechanism.options) == (80.0, {})
    file = write(tmp_path, "mechanism: window\nepsilon: 80\n")
    by_eta = resolve(file=file, environ={"TEXTVEIL_MECHANISM__ETA": "160"})
    assert (by_eta.epsilon, by_eta.mechanism.options) == (None, {"eta": 160.0})
    again = resolve(file=file, environ={"TEXTVEIL_MECHANISM__ETA": "160"}, overrides={"epsilon": 7})
    assert (again.epsilon, again.mechanism.options) == (7.0, {})


def test_both_budgets_in_one_layer_are_refused():
    with pytest.raises(
        BudgetError, match=r"the options must set epsilon or mechanism\.eta, not both"
    ):
        resolve(overrides={"epsilon": 60, "mechanism.eta": 60})


def test_naming_another_mechanism_leaves_the_options_of_the_first_behind(tmp_path):
    file = write(tmp_path, "mechanism: {name: window, L: 9, eta: 160}\n")
    found = resolve(
        file=file, overrides={"mechanism.name": "alike", "mechanism.k": 7, "epsilon": 5}
    )
    assert found.mechanism == MechanismOptions(name="alike", options={"k": 7})
    # the environment names no mechanism: its option is meant for whichever one runs
    found = resolve(
        environ={"TEXTVEIL_MECHANISM__L": "3"}, overrides={"mechanism": "window", "epsilon": 5}
    )
    assert found.mechanism == MechanismOptions(name="window", options={"L": 3})


def test_a_budget_is_required_where_the_mechanism_needs_one():
    with pytest.raises(BudgetError, match=r"set epsilon \(--epsilon\), or mechanism\.eta"):
        resolve()
    with pytest.raises(
        BudgetError, match=r"the mechanism 'free' needs a budget: set epsilon \(--epsilon\)$"
    ):
        resolve(overrides={"mechanism.name": "free"})
    assert resolve(complete=False).epsilon is None
    assert resolve(overrides={"mechanism.name": "bare"}).epsilon is None
    assert resolve(overrides={"mechanism.name": "bare", "epsilon": 8}).epsilon == 8


@pytest.mark.parametrize(
    "value", [math.nan, "nan", "NaN", ".nan", -1, "-1", -math.inf, "-inf", "-1e-9"]
)
def test_a_budget_is_a_number_of_at_least_0(value):
    with pytest.raises(
        BudgetError, match=r"^epsilon must be a number >= 0, got (nan|-1|-1\.0|-inf|-1e-09)$"
    ):
        resolve(overrides={"epsilon": value})


@pytest.mark.parametrize("value", ["sixty", True, "true", [1], "1:30"])
@pytest.mark.parametrize("path", ["epsilon", "mechanism.eta"])
def test_a_budget_is_a_number(path, value):
    with pytest.raises(ConfigError, match=rf"^{path} must be"):
        resolve(overrides={path: value})


@pytest.mark.parametrize("value", [5, 5.0, np.float64(5), np.float32(5), np.int64(5), Fraction(5)])
def test_every_real_number_can_be_a_budget(value):
    number = sections.require_budget(value, "epsilon")
    assert (number, type(number)) == (5.0, float)
    assert resolve(overrides={"epsilon": np.float32(5)}).epsilon == 5


@pytest.mark.parametrize("value", [True, np.True_, "5", None, 1j, np.array([5.0])])
def test_what_is_no_real_number_cannot(value):
    with pytest.raises(BudgetError, match=r"^epsilon must be a number >= 0, got "):
        sections.require_budget(value, "epsilon")


def test_a_budget_must_fit_a_float():
    with pytest.raises(BudgetError, match=r"^epsilon must be a number >= 0, got one too large"):
        sections.require_budget(10**400, "epsilon")


@pytest.mark.parametrize(
    ("value", "number"),
    [("0", 0), ("inf", math.inf), ("1e2", 100), (".5", 0.5), ("+7", 7), (60, 60), ("060", 60)],
)
def test_budgets_that_are_fine(value, number):
    assert resolve(overrides={"epsilon": value}).epsilon == number


def test_a_config_checks_its_budget_when_built_by_hand():
    with pytest.raises(BudgetError, match=r"^epsilon must be a number >= 0, got nan$"):
        Config(epsilon=math.nan)
    assert Config(epsilon=math.inf).epsilon == math.inf


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("words.oow", r"no option is named 'words\.oow'; did you mean 'words\.oov'"),
        ("word.oov", r"words\.oov"),
        ("epsilom", r"did you mean 'epsilon'"),
        ("mechanism.sgima", r"did you mean 'mechanism\.sigma'"),
        ("L", r"did you mean 'mechanism\.L'"),
        ("lewel", r"did you mean 'protect\.level'"),
        ("foo", r"known: epsilon, "),
        ("sigma", r"did you mean 'mechanism\.sigma'"),
        ("mechanism.l", r"mechanism\.L"),
        ("words", r"no option is named 'words'"),
        ("words.oov.x", r"no option is named"),
        ("", r"no option is named ''"),
    ],
)
def test_unknown_options_get_a_proposal(path, says):
    with pytest.raises(UnknownName, match=says) as caught:
        resolve(overrides={path: "keep", "epsilon" if path != "epsilom" else "seed": 1})
    assert "\n" not in str(caught.value)


def test_unknown_names_in_every_source(tmp_path):
    with pytest.raises(
        UnknownName, match=r"option in the file '.*options.yaml' is named 'table\.metrik'"
    ):
        resolve(file=write(tmp_path, "table: {metrik: chord}"), overrides={"epsilon": 1})
    with pytest.raises(
        UnknownName, match=r"option in the environment is named 'mechanism\.SIGMAA'"
    ):
        resolve(environ={"TEXTVEIL_MECHANISM__SIGMAA": "1"}, overrides={"epsilon": 1})
    with pytest.raises(
        UnknownName, match=r"no profile is named 'paper-stensil'; did you mean 'paper-stencil'"
    ):
        resolve(profile="paper-stensil")
    with pytest.raises(UnknownName, match="no mechanism is named 'windoww'; did you mean 'window'"):
        resolve(overrides={"mechanism.name": "windoww", "epsilon": 1})
    with pytest.raises(UnknownName, match="no table is named 'minilmm'; did you mean 'minilm'"):
        resolve(overrides={"table.name": "minilmm", "epsilon": 1})
    with pytest.raises(
        ConfigError, match=r"mechanism\.name in the file .* must be a name, got int"
    ):
        resolve(file=write(tmp_path, "mechanism: {name: 5}"), overrides={"epsilon": 1})


def test_a_mechanism_may_take_any_option():
    found = resolve(overrides={"mechanism.name": "free", "mechanism.whatever": "1e2", "epsilon": 1})
    assert found.mechanism.options == {"whatever": 100.0}


# ---- the environment -----------------------------------------------------------------------------


def test_environment_names_find_options_whatever_their_case():
    environ = {
        "TEXTVEIL_MECHANISM": "window",
        "TEXTVEIL_MECHANISM__L": "7",
        "TEXTVEIL_mechanism__Sigma": "1.5",
        "TEXTVEIL_EPSILON": "60",
        "TEXTVEIL_WORDS__CASING": "copy",
        "TEXTVEIL_TABLE": "minilm-s",
        "TEXTVEIL_SEED": "4",
        "TEXTVEIL_DEBUG": "1",
    }
    found = resolve(environ=environ)
    assert found.mechanism == MechanismOptions(name="window", options={"L": 7, "sigma": 1.5})
    assert (found.epsilon, found.words.casing, found.table.name, found.seed) == (
        60,
        "copy",
        "minilm-s",
        4,
    )


def test_environment_names_that_fit_two_options_are_refused():
    with pytest.raises(ConfigError, match=r"cannot distinguish mechanism\.k and mechanism\.K"):
        resolve(
            environ={
                "TEXTVEIL_MECHANISM": "alike",
                "TEXTVEIL_MECHANISM__K": "3",
                "TEXTVEIL_EPSILON": "1",
            }
        )
    found = resolve(overrides={"mechanism": "alike", "mechanism.K": 3, "epsilon": 1})
    assert found.mechanism.options == {"K": 3}


@pytest.mark.parametrize("second", ["TEXTVEIL_epsilon", "TEXTVEIL_Epsilon"])
def test_environment_names_that_differ_in_case_must_agree(second):
    assert resolve(environ={"TEXTVEIL_EPSILON": "60", second: "60"}).epsilon == 60
    with pytest.raises(ConfigError, match="the environment sets epsilon to two different values"):
        resolve(environ={"TEXTVEIL_EPSILON": "60", second: "80"})


def test_environment_options_that_differ_in_case_must_agree():
    environ = {"TEXTVEIL_MECHANISM__L": "3", "TEXTVEIL_MECHANISM__l": "4", "TEXTVEIL_EPSILON": "1"}
    with pytest.raises(ConfigError, match=r"sets mechanism\.L to two different values"):
        resolve(environ=environ)


def test_without_being_given_the_environment_is_not_looked_at(monkeypatch):
    monkeypatch.setenv("TEXTVEIL_EPSILON", "1")
    assert resolve(overrides={"epsilon": 60}).epsilon == 60
    with pytest.raises(BudgetError):
        resolve()


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("L", "5", 5),
        ("L", "5.0", 5),
        ("sigma", "1e-1", 0.1),
        ("sigma", 2, 2.0),
        ("balanced", "yes", True),
        ("balanced", "off", False),
        ("balanced", True, True),
        ("sizes", "[1, 2]", (1, 2)),
        ("label", "5", "5"),
        ("label", "null", None),
        ("untyped", "1e2", 100.0),
    ],
)
def test_options_become_what_the_mechanism_declares(option, text, value):
    found = resolve(overrides={f"mechanism.{option}": text, "epsilon": 1}).mechanism.options[option]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("mechanism.L", "five", r"^mechanism\.L must be a valid integer, got 'five'$"),
        ("mechanism.L", "5.5", r"^mechanism\.L must be a valid integer"),
        ("mechanism.L", "true", r"^mechanism\.L must be"),
        ("mechanism.sigma", True, r"^mechanism\.sigma must be a number, got True$"),
        ("mechanism.side", "up", r"^mechanism\.side must be 'right' or 'left', got 'up'$"),
        (
            "words.oov",
            "maybe",
            r"^words\.oov must be 'surrogate', 'placeholder', 'error', 'keep', 'uniform' or 'drop', got 'maybe'$",
        ),
        ("words.oov", "null", r"^words\.oov must be"),
        ("table.metric", "cosine", r"^table\.metric must be 'chord' or 'euclidean'"),
        ("seed", "x", r"^seed must be a valid integer"),
        ("seed", "-1", r"seed must be greater than or equal to 0, got -1$"),
        ("seed", "1.5", r"^seed must be a valid integer"),
    ],
)
def test_values_of_the_wrong_type(path, value, says):
    with pytest.raises(ConfigError, match=says) as caught:
        resolve(overrides={path: value, "epsilon": 1})
    assert "\n" not in str(caught.value)


def test_long_values_are_not_repeated_whole():
    with pytest.raises(ConfigError) as caught:
        resolve(overrides={"words.oov": "x" * 10_000, "epsilon": 1})
    assert len(str(caught.value)) < 200


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe", "must be UTF-8; byte 0 is not"),
        ("a: [1", "is not valid YAML at line 1"),
        ("words:\n\t- x", "is not valid YAML at line 2"),
        ("- 1\n- 2\n", "must be a mapping of options, got list"),
        ("just words", "must be a mapping of options, got str"),
        ("epsilon: 2024-99-99\nx: !!python/object:os.system 1", "is not valid YAML"),
        ("words: [1]", "no option in the file .* is named 'words'"),
        ("on: 5", "no option in the file .* is named 'True'"),
        ("words: {1: 2}", r"no option in the file .* is named 'words\.1'"),
        ("[" * 100_000, "is not valid YAML"),
    ],
)
def test_files_that_are_no_configuration(tmp_path, content, says):
    with pytest.raises(ConfigError, match=says) as caught:
        resolve(file=write(tmp_path, content), overrides={"epsilon": 1})
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the configuration file .*: No such file"):
        resolve(file=tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"cannot read the configuration file .*: Is a directory"):
        resolve(file=tmp_path)
    with pytest.raises(ConfigError, match=r"cannot read the configuration file .*: not a path"):
        resolve(file="a\0b")


@pytest.mark.parametrize(
    "content", ["", "# nothing\n", "words:\ntable:\nmechanism:\n", "\ufeffepsilon: 1\n"]
)
def test_files_that_say_little(tmp_path, content):
    assert resolve(file=write(tmp_path, content), overrides={"epsilon": 1}) == Config(epsilon=1)


def test_a_file_may_name_its_profile_and_an_option_a_better_one(tmp_path, monkeypatch):
    monkeypatch.setattr(option_sources, "PROFILES", tmp_path)
    write(tmp_path, "description: x\nepsilon: 1\n", "a.yaml")
    write(tmp_path, "description: x\nepsilon: 2\n", "b.yaml")
    file = write(tmp_path, "profile: a\n")
    assert (resolve(file=file).profile, resolve(file=file).epsilon) == ("a", 1)
    assert resolve(file=file, overrides={"profile": "b"}).epsilon == 2
    assert resolve(file=file, profile="b").profile == "b"


@pytest.mark.parametrize(
    "overrides",
    [
        {"epsilon": 60},
        {"epsilon": "inf", "seed": 3},
        {"mechanism.eta": 100, "mechanism.sizes": "[1, 2]", "mechanism.label": "null"},
        {
            "mechanism": "window",
            "mechanism.L": 4,
            "epsilon": 1e-3,
            "words.casing": "copy",
            "table": "minilm-s",
        },
        {"words.tokenizer": "123", "words.unit": "wordpiece", "epsilon": 5},
    ],
)
def test_what_is_shown_is_read_back(tmp_path, overrides):
    found = resolve(overrides=overrides)
    assert resolve(file=write(tmp_path, found.to_yaml())) == found
    assert yaml.safe_load(found.to_yaml()) == found.to_dict()


# ---- profiles ------------------------------------------------------------------------------------


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real mechanisms in place of the stand-ins."""
    monkeypatch.undo()


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(
    ("name", "mechanism", "options"),
    [
        ("paper-noise", "noise", {"eta": 160.0}),
        ("paper-stencil", "d-chi-stencil", {"L": 5, "sigma": 0.75, "eta": 160.0}),
        ("paper-stencil-even", "d-chi-stencil", {"L": 4, "sigma": 0.75, "eta": 160.0}),
        ("paper-polar", "polar", {"kappa": 350.0}),
        ("paper-santext", "santext", {"c": 3.0}),
        ("paper-custext", "custext", {"k": 20, "nominal": 6.0}),
        ("paper-rantext", "rantext", {"nominal": 6.0}),
        ("paper-cape", "cape", {"context": "original", "nominal": 6.0}),
    ],
)
def test_the_papers_profiles(tmp_path, name, mechanism, options):
    found = resolve(profile=name)
    assert found.mechanism == MechanismOptions(name=mechanism, options=options)
    stopwords = "protect" if name in ("paper-santext", "paper-custext", "paper-rantext") else "pass"
    assert (found.epsilon, found.words.stopwords, found.profile) == (None, stopwords, name)
    registry.load("mechanism", mechanism)(**found.mechanism.options)
    assert 20 < len(option_sources.describe_profiles()[name]) < 130
    assert resolve(file=write(tmp_path, found.to_yaml())) == found
    lower = resolve(profile=name, overrides=layers.convert_keywords(epsilon=80, table="minilm-s"))
    assert (lower.epsilon, lower.table.name) == (80, "minilm-s")
    assert resolve(file=write(tmp_path, lower.to_yaml())) == lower


# ---- Python --------------------------------------------------------------------------------------


def test_keywords_become_paths():
    words = WordsOptions(casing="copy")
    found = resolve(
        overrides=layers.convert_keywords(
            epsilon=80, L=4, table="minilm-s", words=words, mechanism="window"
        )
    )
    assert found == Config(
        epsilon=80,
        words=words,
        table=TableOptions(name="minilm-s"),
        mechanism=MechanismOptions(name="window", options={"L": 4}),
    )


@pytest.mark.parametrize(
    ("section", "values", "says"),
    [
        (WordsOptions, {"oov": "maybe"}, r"^words\.oov must be 'surrogate'.*got 'maybe'$"),
        (
            WordsOptions,
            {"oow": "keep"},
            r"no option of WordsOptions is named 'oow'; did you mean 'oov'",
        ),
        (TableOptions, {"metric": 3}, r"^table\.metric must be"),
        (Config, {"words": {"oov": "maybe"}}, r"^words\.oov must be"),
        (Config, {"seed": -1}, r"seed must be greater"),
        (Config, {"epsilon": "a"}, r"^epsilon must be"),
    ],
)
def test_sections_built_by_hand_complain_in_one_line(section, values, says):
    with pytest.raises(ConfigError, match=says) as caught:
        section(**values)
    assert "\n" not in str(caught.value)


def test_configurations_are_frozen_and_pickle():
    found = resolve(overrides={"mechanism.eta": 5, "mechanism.L": 3})
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(AttributeError):
        found.epsilon = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        WordsOptions("word")  # type: ignore[misc]


def test_options_need_no_torch():
    code = (
        "import sys, textveil.config.layers as c; c.resolve(overrides={'epsilon': 60});"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
