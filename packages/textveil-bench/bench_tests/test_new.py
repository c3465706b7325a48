"""Packages that `textveil new` writes: installed, their own tests pass, and they are well formed."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from textveil.cli import main, new
from textveil.config import registry
from textveil.errors import ConfigError
from textveil_bench.data import load
from textveil_bench.examples import DataSet

ROOT = Path(__file__).parents[3]
SOURCES = (ROOT / "src", ROOT / "packages" / "textveil-bench" / "src", ROOT)


def install(folder: Path, site: Path) -> None:
    """Puts a package where pip would: its modules, and what says which names it offers."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    for path in folder.glob("*.py"):
        (site / path.name).write_text(path.read_text())
    about = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    (about / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
            for group, names in project["entry-points"].items()
        )
    )


def run_in(site: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    paths = [str(site), *map(str, SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "MYPYPATH": ""}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=site, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of each kind, installed."""
    site, made = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("made")
    for kind in new.TRIALS:
        assert main(["new", kind, f"ward-{kind}", "--output", str(made / kind)]) == 0
        install(made / kind, site)
    return site


def test_their_own_tests_pass(site):
    ran = run_in(site, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(site))
    assert ran.returncode == 0, ran.stdout
    assert "7 passed" in ran.stdout


def test_a_broken_package_fails_its_own_test(site, tmp_path):
    """The twin: a mechanism that keeps words more often than it says."""
    for path in site.glob("*ward_mechanism*.py"):
        (tmp_path / path.name).write_text(path.read_text())
    broken = tmp_path / "ward_mechanism.py"
    text = broken.read_text().replace(
        "own = (parameter[part] * UNIT)", "own = (8 * UNIT * parameter[part])"
    )
    assert text != broken.read_text()
    broken.write_text(text)
    (about,) = site.glob("ward_mechanism*.dist-info")
    (tmp_path / about.name).mkdir()
    for path in about.iterdir():
        (tmp_path / about.name / path.name).write_text(path.read_text())
    ran = run_in(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path))
    assert ran.returncode == 1, ran.stdout
    assert "'sampled'" in ran.stdout


def test_they_are_well_formed(site):
    ran = run_in(
        site,
        "ruff",
        "check",
        "--no-cache",
        "--ignore",
        "I001",
        "--config",
        str(ROOT / "pyproject.toml"),
        ".",
    )
    assert ran.returncode == 0, ran.stdout
    ran = run_in(
        site,
        "ruff",
        "format",
        "--no-cache",
        "--check",
        "--config",
        str(ROOT / "pyproject.toml"),
        ".",
    )
    assert ran.returncode == 0, ran.stdout


@pytest.mark.slow
def test_all_of_them_has_types(site):
    """Without those of what they import, which take minutes; the core's own are checked as usual."""
    files = [path.name for path in site.glob("*.py")]
    ran = run_in(
        site,
        "mypy",
        "--disallow-untyped-defs",
        "--follow-imports=skip",
        "--cache-dir",
        os.devnull,
        *files,
    )
    assert ran.returncode == 0, ran.stdout


def test_a_data_set_of_a_package_loads_as_ours_do(monkeypatch):
    sky = load("opinions", limit=3)

    def read(*, split: str = "test") -> object:
        return sky if split == "test" else ["no data set"]

    monkeypatch.setattr(registry, "list_names", lambda kind: ["sky"])
    monkeypatch.setattr(registry, "load", lambda kind, name: read)
    data = load("sky", limit=2)
    assert isinstance(data, DataSet)
    assert (data.name, len(data)) == ("sky", 2)
    with pytest.raises(ConfigError, match="must return a DataSet, got list"):
        load("sky", split="train")
