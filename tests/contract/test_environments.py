"""Environments of their own have all that textveil itself needs: their lists are installed without dependencies."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = [
    ROOT / "tests" / name
    for name in (
        "corpus/engines.txt",
        "corpus/s3.txt",
        "gateway/litellm.txt",
        "integrations/datajuicer.txt",
        "integrations/nemo.txt",
        "integrations/openwebui.txt",
        "integrations/sql.txt",
    )
]
SAME = {"phonenumbers": "phonenumberslite"}
"""Packages with one module."""


def read_names(lines: list[str]) -> set[str]:
    """The names of packages, as registries compare them."""
    found = [re.match(r"[\w.\-]+", line) for line in lines]
    names = {re.sub(r"[-_.]+", "-", match[0]).lower() for match in found if match}
    return {SAME.get(name, name) for name in names}


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_it_has_what_textveil_needs(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = read_names(project["dependencies"])
    assert len(needed) > 10
    assert needed <= read_names(path.read_text(encoding="utf-8").splitlines())
