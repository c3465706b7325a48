"""Sources: values typed as text, settings of a command line, environment variables, packaged profiles, YAML files."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textveil.config import option_sources
from textveil.errors import ConfigError, UnknownName

# ---- values typed as text ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-3", -3),
        ("010", 10),
        ("1e2", 100.0),
        ("1E+2", 100.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        (".inf", math.inf),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ("~", None),
        ("", None),
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("[1, 2]", [1, 2]),
        ("{a: 1}", {"a": 1}),
        ("'5'", "5"),
        ("[1, ", "[1, "),
        ("left", "left"),
    ],
)
def test_scalars(text, value):
    found = option_sources.parse_scalar(text)
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_number():
    assert math.isnan(option_sources.parse_scalar("nan"))
    assert math.isnan(option_sources.parse_scalar(".NaN"))


@given(st.floats(allow_nan=False))
def test_every_float_that_python_writes_is_read_back(value):
    assert option_sources.parse_scalar(repr(value)) == value


@given(st.text(max_size=30))
def test_any_text_is_some_value_and_always_the_same(text):
    once, again = option_sources.parse_scalar(text), option_sources.parse_scalar(text)
    assert type(once) is type(again)
    assert repr(once) == repr(again)


@pytest.mark.parametrize("annotation", [None, object, int | None])
def test_a_text_is_read_as_a_scalar_before_its_type_is_asked(annotation):
    assert option_sources.convert_value("a", "5", annotation) == 5
    assert option_sources.convert_value("a", "5", str) == "5"


# ---- settings, variables, files ------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting", ["mechanism.L", "=5", "a b=5", "Zyxqorvian met Anna", ".L=5", "a..b=1", ""]
)
def test_a_setting_without_a_path_and_value_is_refused_and_not_repeated(setting):
    with pytest.raises(ConfigError) as caught:
        option_sources.parse_assignments([setting])
    named = f", but {setting!r} has no value" if setting == "mechanism.L" else ""
    assert (
        str(caught.value) == f"a setting has the form path=value, such as -o mechanism.L=5{named}"
    )


def test_settings_and_flags_must_not_contradict_one_another():
    assert option_sources.parse_assignments(
        ["epsilon=60", "a.b=x=y"], {"epsilon": "60", "seed": None}
    ) == {
        "epsilon": "60",
        "a.b": "x=y",
    }
    with pytest.raises(ConfigError, match="the command line sets epsilon to two different values"):
        option_sources.parse_assignments(["epsilon=60"], {"epsilon": "80"})
    with pytest.raises(ConfigError, match=r"sets mechanism\.name to two different values"):
        option_sources.parse_assignments(["mechanism=noise", "mechanism.name=polar"])


def test_short_paths_are_written_out_and_a_path_has_one_value():
    pairs = [("table", "a"), ("table.name", "a"), ("epsilon", math.nan)]
    assert option_sources.collect_values(pairs, "it").keys() == {"table.name", "epsilon"}
    with pytest.raises(
        ConfigError, match=r"^it sets table\.name to two different values; set it once$"
    ):
        option_sources.collect_values([*pairs, ("table", "b")], "it")


def test_variables_have_the_case_of_the_paths_that_are_known():
    environ = {
        "TEXTVEIL_WORDS__OOV": "keep",
        "TEXTVEIL_Mechanism__L": "4",
        "TEXTVEIL_DEBUG": "1",
        "HOME": "/",
    }
    layer = option_sources.read_environment(environ, ("words.oov",))
    assert layer.values == {"words.oov": "keep", "mechanism.L": "4"}
    assert layer.fold


def test_a_file_is_flattened(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "description: x\nwords:\ntable: b\nmechanism: {L: 4, name: noise}\nepsilon: 1\n5: 6\n"
    )
    layer = option_sources.read_file(path)
    assert layer.values == {
        "table.name": "b",
        "mechanism.L": 4,
        "mechanism.name": "noise",
        "epsilon": 1,
        "5": 6,
    }
    assert layer.source == f"the file {str(path)!r}"


def test_every_profile_is_listed():
    assert sorted(option_sources.describe_profiles()) == [
        "data",
        "document",
        "paper-cape",
        "paper-custext",
        "paper-noise",
        "paper-polar",
        "paper-rantext",
        "paper-santext",
        "paper-stamp",
        "paper-stamp-table1",
        "paper-stencil",
        "paper-stencil-even",
        "prompt",
        "strict",
    ]
    assert option_sources.read_profile("paper-noise").values["mechanism.name"] == "noise"
    with pytest.raises(UnknownName, match="did you mean 'paper-polar'"):
        option_sources.read_profile("../paper-polar")


def test_a_file_that_says_something_twice_is_refused(tmp_path):
    """YAML itself takes the last, which may be the weaker one."""
    path = tmp_path / "veil.yaml"
    path.write_text("protect:\n  level: names\n  level: identifiers\n")
    with pytest.raises(ConfigError, match="has 'level' twice, in lines 2 and 3"):
        option_sources.read_file(path)
