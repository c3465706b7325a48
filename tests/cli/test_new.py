"""`textveil new`: names that it refuses, and what it writes."""

import ast
import tomllib

import pytest

from textveil.cli import main, new
from textveil.config import registry


@pytest.mark.parametrize("kind", new.TRIALS)
def test_a_package_names_its_part_in_the_group_of_its_kind(kind, tmp_path, capsys):
    folder = tmp_path / "made"
    assert main(["new", kind, "ward-part", "--output", str(folder)]) == 0
    assert f"pip install -e {folder}" in " ".join(capsys.readouterr().err.split())
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    module, _, target = project["entry-points"][registry.ENTRY_POINT_GROUPS[kind]][
        "ward-part"
    ].partition(":")
    code = ast.parse((folder / f"{module}.py").read_text())
    assert target in {getattr(part, "name", None) for part in code.body}
    ast.parse((folder / f"test_{module}.py").read_text())
    text = "".join(path.read_text() for path in folder.iterdir())
    assert "$" not in text
    assert "textveil explain ward-part" in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("mechanism", "Ward"), "small letters"),
        (("mechanism", "ward_part"), "small letters"),
        (("mechanism", "../ward"), "small letters"),
        (("mechanism", "class"), "word of Python"),
        (("mechanism", "noise"), "there is a mechanism 'noise'"),
        (("detector", "noise"), "there is a mechanism 'noise'"),
        (("attack", "bayes"), "there is an attack"),
        (("dataset", "demo"), "there is a command 'demo'"),
        (("detector", "json"), "Python module 'json'"),
        (("detector", "numpy"), "Python module 'numpy'"),
        (("sampler", "ward-part"), "kind of package"),
    ],
)
def test_bad_and_taken_names_are_refused(arguments, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", *arguments]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())
    assert not [*tmp_path.iterdir()]


def test_an_existing_folder_stays_as_it_is(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["new", "mechanism", "ward-part", "--output", str(tmp_path)]) == 2
    assert "--output" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
