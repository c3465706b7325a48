"""Workflows call targets that there are, on the versions that metadata names, with few rights and pinned actions."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github" / "workflows"
TEXTS = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.yml"))}
FLOWS = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
PROJECTS = [
    tomllib.loads((ROOT / place / "pyproject.toml").read_text())["project"]
    for place in (".", "packages/textveil-bench")
]
UNSHOWN = {"3.14"}
"""Versions that the workflow tries, and that no run has shown yet."""


def run_zizmor(*paths: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "zizmor"
    return subprocess.run(
        [program, "--offline", "--quiet", "--no-config", *paths],
        capture_output=True,
        text=True,
        check=False,
    )


def test_zizmor_finds_nothing():
    said = run_zizmor(ROOT / ".github")
    assert said.returncode == 0, said.stdout


def test_zizmor_finds_a_title_that_runs(tmp_path):
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    broken = TEXTS["checks.yml"].replace(
        "make $TARGET", "make ${{ github.event.pull_request.title }}"
    )
    (folder / "broken.yml").write_text(broken)
    said = run_zizmor(folder / "broken.yml")
    assert said.returncode
    assert "template-injection" in said.stdout


@pytest.mark.parametrize("name", TEXTS)
def test_actions_are_pinned_and_rights_are_few(name):
    flow = FLOWS[name]
    assert flow["permissions"] == {}
    for job in flow["jobs"].values():
        assert job["permissions"].keys() >= {"contents"} or name == "release.yml"
        assert "uses" in job or job["timeout-minutes"] <= 90
    for used in re.findall(r"uses: (\S.*)", TEXTS[name]):
        assert used.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", used)
    assert "secrets." not in TEXTS[name]


def test_targets_are_those_of_the_makefile():
    known = {*re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)}
    jobs = FLOWS["checks.yml"]["jobs"]
    called = {
        word for each in jobs["target"]["strategy"]["matrix"]["target"] for word in each.split()
    }
    called |= {
        word
        for text in TEXTS.values()
        for line in re.findall(r"run: make ([a-z ]+)", text)
        for word in line.split()
    }
    assert called - {"test"} <= known
    (beside,) = re.findall(
        r"^BESIDE_EACH_OTHER := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert {*beside.split()} <= called  # what `make check` runs before the tests
    assert "test" in called


def test_versions_are_those_of_the_metadata():
    jobs = FLOWS["checks.yml"]["jobs"]
    tried = jobs["test"]["strategy"]["matrix"]["python"]
    assert jobs["systems"]["strategy"]["matrix"]["python"] == tried
    for project in PROJECTS:
        said = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
        assert {*tried} - {*said} <= UNSHOWN
        assert said == tried[: len(said)]
        assert project["requires-python"] == f">={said[0]}"


def test_classifiers_are_known():
    trove = pytest.importorskip("trove_classifiers")
    for project in PROJECTS:
        assert {*project["classifiers"]} <= trove.classifiers
        assert not any(each.startswith("License ::") for each in project["classifiers"])


def test_a_release_waits_for_checks_and_publishes_both():
    jobs = FLOWS["release.yml"]["jobs"]
    assert {*jobs["publish"]["needs"]} == {"build", "checks"}
    assert jobs["announce"]["needs"] == "publish"
    names = [project["name"] for project in PROJECTS]
    assert jobs["publish"]["strategy"]["matrix"]["project"] == names
    uploaded = [
        step["with"]["name"] for step in jobs["build"]["steps"] if "upload" in step.get("uses", "")
    ]
    assert {*names} <= {*uploaded}
