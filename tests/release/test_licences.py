"""Everything in a wheel has a source, a licence and its notice; what is missing is found."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from release.licences import LARGEST, TABLES, Wheel, find_faults, is_notice, join_licences

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {"textveil": ROOT, "textveil_bench": ROOT / "packages" / "textveil-bench"}


def read_tree(package: str) -> Wheel:
    """What a wheel of the repository will be: a build puts in what lies there."""
    project = tomllib.loads((PROJECTS[package] / "pyproject.toml").read_text())["project"]
    source = PROJECTS[package] / "src" / package
    files = {
        path.relative_to(source).as_posix(): path.stat().st_size
        for path in source.rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".part")
    }
    named = [path for glob in project["license-files"] for path in PROJECTS[package].glob(glob)]
    return Wheel(
        package,
        files,
        project["license"],
        tuple(path.relative_to(PROJECTS[package]).as_posix() for path in named),
        tomllib.loads((source / TABLES[package]).read_text()),
        0,
    )


@pytest.mark.parametrize("package", PROJECTS)
def test_every_file_has_a_source_a_licence_and_a_notice(package):
    assert list(find_faults(read_tree(package))) == []


def change(wheel: Wheel, **sources: str) -> Wheel:
    """A wheel whose table has other licences."""
    table = json.loads(json.dumps(wheel.table))
    for name, licence in sources.items():
        table["sources"][name]["licence"] = licence
    return wheel._replace(table=table)


BROKEN = {
    "a file that nobody named": (
        lambda wheel: wheel._replace(files=wheel.files | {"data/lexicon/more.txt.gz": 1}),
        "data/lexicon/more.txt.gz must stand on one line",
    ),
    "a notice that is not in the wheel": (
        lambda wheel: wheel._replace(
            files={k: v for k, v in wheel.files.items() if "GEONAMES" not in k}
        ),
        "LICENSE-GEONAMES.txt must be in the wheel",
    ),
    "an empty notice": (
        lambda wheel: wheel._replace(files=wheel.files | {"data/names/LICENSE-FAKER.txt": 0}),
        "LICENSE-FAKER.txt must be in the wheel, and not empty",
    ),
    "a notice that the metadata leaves out": (
        lambda wheel: wheel._replace(
            licence_files=tuple(each for each in wheel.licence_files if "WORDNET" not in each)
        ),
        "LICENSE-WORDNET.txt must be among the licence files",
    ),
    "a notice of nothing": (
        lambda wheel: wheel._replace(files=wheel.files | {"data/names/LICENSE-NOBODY.txt": 9}),
        "LICENSE-NOBODY.txt must be the notice of a source",
    ),
    "a licence that the metadata leaves out": (
        lambda wheel: wheel._replace(expression="Apache-2.0"),
        "the licence of the metadata must be: Apache-2.0 AND",
    ),
    "another licence of a source": (
        lambda wheel: change(wheel, faker="GPL-3.0-only"),
        "the licence of the metadata must be: .* GPL-3.0-only",
    ),
    "a line without files": (
        lambda wheel: wheel._replace(
            files={k: v for k, v in wheel.files.items() if k != "data/tlds.txt"}
        ),
        "data/tlds.txt names no file",
    ),
    "a wheel that is too large": (
        lambda wheel: wheel._replace(size=LARGEST),
        "must have less than 100,000,000 bytes",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_missing_is_found(case):
    broken, message = BROKEN[case]
    assert re.search(message, "\n".join(find_faults(broken(read_tree("textveil")))))


def test_licences_are_joined_each_once():
    parts = ["MIT AND Apache-2.0", "LicenseRef-WordNet", "Unicode-3.0", "MIT"]
    assert join_licences(parts) == "Apache-2.0 AND MIT AND Unicode-3.0 AND LicenseRef-WordNet"


def test_tables_of_fields_are_of_the_versions_that_are_said():
    wheel = read_tree("textveil")
    said = {
        f"{source['title'].removeprefix('Fields of ')} {source['version']}"
        for source in wheel.table["sources"].values()
        if source["title"].startswith("Fields of ")
    }
    leaves = (ROOT / "src/textveil/data/leaves").glob("*.json")
    assert {json.loads(path.read_text())["sdk"] for path in leaves} == said


def test_notices_say_what_they_are_of():
    """A notice names, beside itself, files that are there."""
    data = ROOT / "src/textveil/data"
    for notice in filter(lambda path: is_notice(path.name), data.rglob("LICENSE-*.txt")):
        for name in re.findall(r"\.\./[\w/.-]*\w", notice.read_text()):
            path = notice.parent / name
            assert path.exists() or [*path.parent.glob(f"{path.name}*")], (notice.name, name)
