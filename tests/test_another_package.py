"""Another package adds one of each kind, and the commands know them as their own."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from textveil.config import registry

HERE = Path(__file__).parent / "another"
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
ADDED = {
    kind: next(iter(PROJECT["entry-points"][group]))
    for kind, group in registry.ENTRY_POINT_GROUPS.items()
}

SAID = {
    "table": "Twelve colours on a circle",
    "mechanism": "Keeps a word, or releases any other word of the table: randomised response",
    "detector": "Finds codes such as AB-1234; `codes:XY` finds those of XY only",
    "format": "Lines that begin with a dash are texts; all others are copied",
    "attack": "Guesses that every word is the released one",
    "measure": "The share of protected words whose release has as many letters",
    "dataset": "Sentences about the sky, and what it is like",
    "protocol": "An API that takes one text",
    "store": "Sessions that are forgotten",
    "command": "Greet somebody",
}
"""What its names say of themselves, by kind."""

PROGRAM = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from textveil.cli import main

found = []
for arguments in json.load(sys.stdin):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as said:
        code = main(arguments)
    found.append([code, out.getvalue(), said.getvalue()])
print(json.dumps(found))
"""


class Ran(NamedTuple):
    """A command that has run."""

    code: int
    out: str
    said: str


Run = Callable[..., list[Ran]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Commands in a process with the package, installed as pip does it: its module, and what says what it offers."""
    site = tmp_path_factory.mktemp("site")
    shutil.copy(HERE / "textveil_another.py", site)
    about = site / f"textveil_another-{PROJECT['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {PROJECT['name']}\nVersion: {PROJECT['version']}\n"
    )
    (about / "entry_points.txt").write_text(
        "\n".join(
            "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in offered.items())])
            for group, offered in PROJECT["entry-points"].items()
        )
    )
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    def run(*commands: Sequence[str]) -> list[Ran]:
        command = [sys.executable, "-c", PROGRAM]
        given = json.dumps(commands)
        ran = subprocess.run(
            command, env=environment, input=given, capture_output=True, text=True, check=True
        )
        return [Ran(*each) for each in json.loads(ran.stdout)]

    return run


OPTIONS = ("--mechanism", "keep", "--epsilon", "2", "--table", "colours", "--seed", "1")


def test_its_names_are_listed_and_explained(run):
    ran = iter(
        run(
            *(["list", f"{kind}s", "--json"] for kind in ADDED),
            *(["explain", name] for name in ADDED.values()),
        )
    )
    for kind, name in ADDED.items():
        code, out, said = next(ran)
        assert code == 0, said
        listed = {each["name"]: each["summary"] for each in json.loads(out)}
        assert listed[name] == SAID[kind]
        assert set(registry.BUILT_IN[kind]) < set(listed)
    for name in ADDED.values():
        code, out, said = next(ran)
        assert code == 0, said
        assert out.startswith(name)


def test_its_format_detector_mechanism_and_table_privatize_a_file(run, tmp_path):
    path, out = tmp_path / "a.notes", tmp_path / "out"
    path.write_text(
        "# red things\n- the red house AB-1234\n- a blue door and a green AB-99\n\nthe end\n"
    )
    finds = ("-o", "protect.detectors=codes", "-o", "protect.placeholders=CODE")
    (ran,) = run(
        ["corpus", "run", str(path), "--id-from-row", "--output", f"{out}/", *OPTIONS, *finds]
    )
    assert ran.code == 0, ran.said
    lines = (out / "part-00000000.notes").read_text().splitlines()
    assert [lines[0], *lines[3:]] == ["# red things", "", "the end"]
    assert lines[1].startswith("- the ")
    assert lines[1].endswith(" <CODE>")
    statement = json.loads((out / "manifest.json").read_text())["statement"]
    assert statement["losses"]["document"]["number"] == 2
    assert (statement["guarantee"]["mechanism"], statement["guarantee"]["table"]) == (
        "keep",
        "colours",
    )


@pytest.mark.slow
def test_its_mechanism_passes_the_audit(run):
    checks = "log-ratio,sampled,support,budget,statement,pipeline,seed"
    (ran,) = run(["audit", "keep", "--table", "colours", "--small", "--checks", checks, "--json"])
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert {row["mechanism"] for row in rows} == {"keep"}
    assert {row["verdict"] for row in rows} <= {"holds", "not applicable"}
    assert next(row["verdict"] for row in rows if row["check"] == "log-ratio") == "holds"


@pytest.mark.slow
def test_its_attack_and_its_measure_find_what_built_in_ones_find(run, tmp_path):
    path = tmp_path / "a.notes"
    path.write_text("- red blue green\n- gold black pink\n" * 20)
    attacks = ("--attacks", "parrot,neighbour,bayes", "-o", "attack.parrot.sure=0.5")
    attacked, measured = run(
        ["attack", str(path), *OPTIONS, *attacks, "--json"],
        ["measure", str(path), *OPTIONS, "--metrics", "same-length,retention", "--json"],
    )
    found = json.loads(attacked.out)
    assert found["attacks"]["parrot"] == {"sure": 0.5}
    rows = {
        (row["attack"], row["metric"]): row["value"]
        for row in found["rows"]
        if row["slice"] == "all"
    }
    assert rows["parrot", "guessed"] == rows["neighbour", "Pr@1"]
    means = {
        row["measure"]: row["value"]
        for row in json.loads(measured.out)["rows"]
        if row["slice"] == "all"
    }
    assert means["same-length"] >= means["retention"] > 0


@pytest.mark.slow
def test_its_command_is_a_verb_and_wrong_names_are_told_near_ones(run):
    greeted, about, mechanism, detector = run(
        ["greet", "Anna"],
        ["--help"],
        ["privatize", "red", "--mechanism", "kep"],
        ["privatize", "red", *OPTIONS, "-o", "protect.detectors=codes:"],
    )
    assert greeted == (0, "Hello Anna.\n", "")
    assert "greet" in about.out
    assert "did you mean 'keep'" in mechanism.said
    assert "codes or codes:PREFIX" in detector.said
    assert mechanism.code == detector.code == 2
