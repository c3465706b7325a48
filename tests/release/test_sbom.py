"""The bill of materials fits its schema, and names what a wheel needs and what it brings."""

import json
import re
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.utils import canonicalize_name
from release.sbom import check_bill, make_bill

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src/textveil/data/licences/licences.toml"
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel of textveil with its metadata and its table, and nothing else."""
    builder = WheelBuilder(str(ROOT))
    metadata = builder.config.core_metadata_constructor(builder.metadata)
    path = tmp_path_factory.mktemp("bill") / "textveil-0.1.0-py3-none-any.whl"
    with ZipFile(path, "w") as made:
        made.writestr("textveil-0.1.0.dist-info/METADATA", metadata)
        made.write(TABLE, "textveil/data/licences/licences.toml")
    return path


@pytest.fixture(scope="module")
def bill(wheel) -> str:
    return make_bill(wheel)


def test_it_names_what_is_needed_and_what_is_brought(bill):
    found = json.loads(bill)
    parts = {part["bom-ref"]: part for part in found["components"]}
    for name, source in tomllib.loads(TABLE.read_text())["sources"].items():
        if name != "textveil":
            assert parts[f"bundled:{name}"]["licenses"][0]["expression"] == source["licence"]
    assert parts["bundled:minilm"]["type"] == "machine-learning-model"
    assert found["metadata"]["component"]["purl"] == "pkg:pypi/textveil@0.1.0"
    scopes = {part["name"]: part["scope"] for part in parts.values() if "scope" in part}
    assert scopes["numpy"] == "required"
    assert scopes["starlette"] == scopes["torch"] == "optional"
    assert "pytest" not in scopes
    assert "textveil" not in scopes


def test_versions_are_those_that_are_pinned(bill):
    """What one environment has besides, such as CUDA's libraries, is pinned by what asks for it."""
    pins = {canonicalize_name(name): version for name, version in PINS.items()}
    parts = [part for part in json.loads(bill)["components"] if "purl" in part]
    known = [part for part in parts if part["name"] in pins]
    assert {part["name"]: part["version"].partition("+")[0] for part in known} == {
        part["name"]: pins[part["name"]] for part in known
    }
    assert len(known) > 60


def test_the_same_wheel_gives_the_same_bill(wheel, bill):
    assert make_bill(wheel) == bill


@pytest.mark.parametrize(
    ("path", "value"),
    [(("bomFormat",), "Other"), (("components", 0, "type"), "thing"), (("metadata", "more"), 1)],
)
def test_a_bill_that_does_not_fit_is_refused(bill, path, value):
    broken = json.loads(bill)
    *inside, last = path
    place = broken
    for key in inside:
        place = place[key]
    place[last] = value
    with pytest.raises(ValueError, match="must fit the schema"):
        check_bill(json.dumps(broken))
