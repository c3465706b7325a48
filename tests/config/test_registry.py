"""The registry: names, other packages' names, and options read from signatures."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from textveil.config import registry
from textveil.errors import ConfigError, MissingExtra, TextveilWarning, UnknownName

NAMES = [
    "noise",
    "stencil",
    "d-chi-stencil",
    "polar",
    "laplace",
    "exponential",
    "santext",
    "santext+",
    "custext",
    "custext+",
    "mahalanobis",
    "vickrey",
    "tem",
    "1-diffractor",
    "dp-mlm",
    "rantext",
    "krr",
    "codebook",
    "cape",
    "rankcape",
    "mask-and-fill",
    "placeholder",
]
Side = Literal["left", "right"]


def sample(
    *,
    L: int = 5,
    side: Side = "right",
    eta: float | None = None,
    whole: bool = False,
    path: str = "",
    sizes: tuple[int, ...] = (),
    free="anything",
) -> None:
    """A stand-in for a mechanism."""


def postponed(*, L: "int" = 5, other: "Missing" = None) -> None:  # type: ignore[name-defined]  # noqa: F821
    """A stand-in with a type that only a type checker can see."""


not_callable = 7


def offer(
    monkeypatch: pytest.MonkeyPatch,
    *offers: tuple[str, str, str],
    kind: registry.RegistryKind = "mechanism",
) -> None:
    """Pretend that packages offer names of a kind: (name, target, package) each."""

    def points(group: str, path: tuple[str, ...]) -> list[Any]:
        if group != f"textveil.{kind}s":
            return []
        found = []
        for name, target, package in offers:
            point = EntryPoint(name, target, group)
            vars(point)["dist"] = SimpleNamespace(name=package)
            found.append(point)
        return found

    monkeypatch.setattr(registry, "_find_points", points)


def test_built_in_names_come_first_and_in_order(monkeypatch):
    offer(monkeypatch, ("zeta", "a:b", "pack"), ("alpha", "a:b", "pack"))
    assert registry.list_names("mechanism") == [*NAMES, "alpha", "zeta"]
    assert registry.list_names("table") == ["minilm", "minilm-s", "minilm-wordpiece"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, entries in registry.BUILT_IN.items() for name in entries],
)
def test_every_built_in_name_is_there_and_has_a_summary(kind, name):
    assert callable(registry.load(kind, name))
    summary = registry.find_entry(kind, name).summary
    assert summary
    assert "\n" not in summary


@pytest.mark.parametrize("kind", registry.REGISTRY_KINDS)
def test_other_packages_add_names_of_every_kind(monkeypatch, kind):
    offer(
        monkeypatch,
        ("mine", f"{__name__}:sample", "pack"),
        ("nine", "no.such:thing", "shaky-pack"),
        kind=kind,
    )
    assert registry.list_names(kind) == [*registry.BUILT_IN[kind], "mine", "nine"]
    assert registry.load(kind, "mine") is sample
    assert registry.find_entry(kind, "mine").package == "pack"
    assert "L" in registry.read_options(registry.load(kind, "mine")).keywords
    with pytest.raises(
        ConfigError, match=f"the {kind} 'nine' of the package shaky-pack cannot be imported"
    ):
        registry.load(kind, "nine")
    with pytest.raises(UnknownName, match=f"no {kind} is named 'mina'; did you mean 'mine'"):
        registry.find_entry(kind, "mina")
    offer(monkeypatch, ("mine", "a:b", "pack-a"), ("mine", "c:d", "pack-b"), kind=kind)
    with pytest.raises(
        ConfigError, match=f"the {kind} 'mine' is registered by several packages, pack-a and pack-b"
    ):
        registry.load(kind, "mine")


@pytest.mark.parametrize("name", NAMES)
def test_every_built_in_mechanism_loads_and_has_its_own_parameter_among_its_options(name):
    target = registry.load("mechanism", name)
    options = registry.read_options(target)
    parameter, budget = registry.find_budget_parameter(name)
    assert not options.is_open
    assert "epsilon" not in options.keywords
    if parameter is not None:
        assert budget
        assert options.keywords[parameter].default is None
    for section in ("Guarantee:", "Caveats:", "Source:"):
        assert section in str(target.__doc__)


@pytest.mark.parametrize("name", ["minilm", "minilm-s", "minilm-wordpiece"])
def test_every_table_has_a_loader(name):
    assert registry.read_options(registry.load("table", name)).keywords.keys() == {
        "metric",
        "device",
    }


def test_unknown_names_get_a_proposal():
    with pytest.raises(UnknownName, match="did you mean 'stencil'"):
        registry.find_entry("mechanism", "stensil")
    with pytest.raises(UnknownName, match="no table is named 'glove'; known: minilm"):
        registry.find_entry("table", "glove")
    with pytest.raises(UnknownName, match="no kind is named"):
        registry.list_names("mechanisms")  # type: ignore[arg-type]


def test_a_mechanism_of_another_package(monkeypatch):
    offer(monkeypatch, ("mine", f"{__name__}:sample", "pack"))
    assert registry.load("mechanism", "mine") is sample
    assert registry.find_entry("mechanism", "mine").package == "pack"
    assert registry.find_budget_parameter("mine") == (None, True)
    monkeypatch.setattr(sample, "parameter", "eta", raising=False)
    monkeypatch.setattr(sample, "budget", False, raising=False)
    assert registry.find_budget_parameter("mine") == ("eta", False)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("no_such_module_here:thing", r"\(ModuleNotFoundError\)"),
        (f"{__name__}:no_such_thing", r"\(AttributeError\)"),
        ("not a target", r"\((AttributeError|ValueError|ModuleNotFoundError|TypeError)\)"),
        (f"{__name__}:not_callable", "must be a callable"),
        (f"{__name__}", "must be a callable"),
    ],
)
def test_a_broken_package_is_named_and_hides_nothing(monkeypatch, target, says):
    offer(monkeypatch, ("broken", target, "shaky-pack"))
    assert registry.list_names("mechanism") == [*NAMES, "broken"]
    assert callable(registry.load("mechanism", "noise"))
    with pytest.raises(ConfigError, match=says) as caught:
        registry.load("mechanism", "broken")
    assert "shaky-pack" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_package_that_ends_the_process_at_import_does_not(monkeypatch, tmp_path):
    (tmp_path / "ends_at_import.py").write_text("raise SystemExit('Zyxqorvian')\n")
    monkeypatch.syspath_prepend(tmp_path)
    offer(monkeypatch, ("ends", "ends_at_import:thing", "shaky-pack"))
    with pytest.raises(ConfigError, match=r"shaky-pack.*\(SystemExit\)") as caught:
        registry.load("mechanism", "ends")
    assert "Zyxqorvian" not in str(caught.value)


def test_a_package_cannot_take_a_built_in_name(monkeypatch):
    offer(monkeypatch, ("noise", f"{__name__}:sample", "pack"))
    assert registry.list_names("mechanism") == NAMES
    assert registry.find_entry("mechanism", "noise").package == "textveil"


def test_two_packages_with_one_name_are_an_error_that_names_both(monkeypatch):
    offer(
        monkeypatch,
        ("mine", f"{__name__}:sample", "pack-a"),
        ("mine", f"{__name__}:postponed", "pack-b"),
    )
    with pytest.raises(ConfigError, match="pack-a and pack-b"):
        registry.find_entry("mechanism", "mine")


def test_damaged_metadata_leaves_the_built_in_names(monkeypatch):
    def damaged(*_):
        raise KeyError("Name")

    monkeypatch.setattr(registry, "_find_points", damaged)
    with pytest.warns(TextveilWarning, match=r"left out.*\(KeyError\)"):
        assert registry.list_names("mechanism") == NAMES


@pytest.mark.parametrize(
    ("kind", "name", "what"),
    [("command", "attack", "`textveil attack`"), ("attack", "linkage", "the attack 'linkage'")],
)
def test_a_name_of_the_bench_is_where_it_is_installed_and_else_the_error_names_it(
    monkeypatch, kind, name, what
):
    offer(monkeypatch)
    assert name in registry.list_absent(kind)
    assert name not in registry.list_names(kind)
    with pytest.raises(MissingExtra) as caught:
        registry.load(kind, name)
    assert str(caught.value) == f"{what} is in textveil-bench: pip install textveil-bench"
    offer(monkeypatch, (name, f"{__name__}:sample", "pack"), kind=kind)
    assert name not in registry.list_absent(kind)
    assert registry.load(kind, name) is sample


def test_what_names_say_of_themselves(monkeypatch):
    offer(
        monkeypatch,
        ("mine", f"{__name__}:sample", "pack"),
        ("broken", "no.such:thing", "shaky-pack"),
    )
    assert registry.describe("mechanism", "noise") == registry.MECHANISMS["noise"].summary
    assert registry.describe("mechanism", "mine") == "A stand-in for a mechanism"
    broken = registry.describe("mechanism", "broken")
    assert broken == "from the package shaky-pack, which cannot be imported"


def test_options_are_read_from_the_signature():
    options = registry.read_options(sample)
    assert {name: (option.type, option.default) for name, option in options.keywords.items()} == {
        "L": ("int", 5),
        "side": ("left | right", "right"),
        "eta": ("number or none", None),
        "whole": ("true | false", False),
        "path": ("text", ""),
        "sizes": ("list of int", ()),
        "free": ("any", "anything"),
    }
    assert not options.is_open


def test_a_type_that_cannot_be_read_does_not_matter():
    options = registry.read_options(postponed)
    assert options.keywords["other"].annotation is None
    assert options.keywords["other"].default is None


def test_required_and_open_options():
    def target(*, k: int, **others: Any) -> None: ...

    options = registry.read_options(target)
    assert options.keywords["k"].required
    assert options.keywords.keys() == {"k"}
    assert options.is_open


def test_the_registry_needs_no_torch():
    code = (
        "import sys, textveil.config.registry as r;"
        "[r.find_entry(kind, name) for kind in r.REGISTRY_KINDS for name in r.list_names(kind)];"
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- names that are not there --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "known", "says"),
    [
        ("nois", ["noise", "polar"], "no thing is named 'nois'; did you mean 'noise'?"),
        ("a.zyx", ["a.form", "a.floor"], "no thing is named 'a.zyx'; known: a.floor, a.form"),
        ("zyx", [], "no thing is named 'zyx'; known: none"),
    ],
)
def test_unknown_names_come_with_a_proposal(name, known, says):
    assert str(UnknownName("thing", name, known)) == says


def test_of_many_known_names_only_some_are_listed():
    said = str(UnknownName("task", "?", [f"t{i:05}" for i in range(10_000)]))
    assert said.endswith(", t00079 and 9,920 more")
