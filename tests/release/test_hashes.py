"""requirements.lock pins what a server installs at the versions of constraints.txt, each with its hashes."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PINS = (ROOT / "constraints.txt").read_text()
ENTRY = re.compile(
    r"(?P<pin>[A-Za-z0-9][A-Za-z0-9._-]*==\S+)(?: ; [^\\\n]+)? \\\n(?:    --hash=sha256:[0-9a-f]{64} \\\n)*"
    r"    --hash=sha256:[0-9a-f]{64}"
)


def read_pins(lines: str) -> dict[str, str]:
    """Versions by normalized name."""
    pins = (line.partition("==") for line in lines.splitlines() if line[:1] not in ("", "#"))
    return {canonicalize_name(name): version for name, _, version in pins}


def find_faults(lock: str, pins: str) -> list[str]:
    body = lock[lock.index("\n") + 1 :]
    entries = [match["pin"] for match in ENTRY.finditer(body)]
    faults = [] if ENTRY.sub("", body).strip() == "" else ["a line that is no pin with hashes"]
    known = read_pins(pins)
    locked = read_pins("\n".join(entries))
    return faults + [
        f"{name} {version}, and {known.get(name)} in constraints.txt"
        for name, version in locked.items()
        if known.get(name) != version
    ]


def test_the_lock_agrees_with_the_pins():
    assert find_faults(LOCK, PINS) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"    --hash=sha256:[0-9a-f]{64}\nalembic|^alembic==", "alembic=="),
        (r"sha256:[0-9a-f]{64}", "sha256:0123"),
        (r"^numpy==\S+", "numpy==1.0"),
        (r"^starlette==\S+ \\\n(?:    --hash.*\n)+", "starlette==1.10.0\n"),
        (r"\Z", "--index-url https://host.example/simple\n"),
    ],
)
def test_a_lock_that_is_wrong_is_found(old, new):
    changed = re.sub(old, new, LOCK, count=1, flags=re.MULTILINE)
    if "alembic" in old:
        changed = changed.replace("alembic==", "alembic>=", 1)
    assert find_faults(changed, PINS)


def test_the_lock_has_what_the_first_line_says():
    said = re.match(r"# textveil\[([\w,]+)\]", LOCK)
    assert said is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [*project["dependencies"]]
    for extra in said[1].split(","):
        needs += project["optional-dependencies"][extra]
    names = {canonicalize_name(Requirement(need).name) for need in needs} - {"textveil"}
    assert names <= read_pins("\n".join(m["pin"] for m in ENTRY.finditer(LOCK))).keys()


def test_no_file_names_a_host_of_packages():
    assert "://" not in LOCK + PINS
