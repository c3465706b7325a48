"""What the distribution adds to the names of the product."""

import tomllib
from pathlib import Path

import pytest

from textveil.config import registry

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("kind", registry.KINDS)
def test_the_product_knows_which_names_are_here(kind):
    offered = PROJECT["entry-points"].get(registry.GROUPS[kind], {})
    assert sorted(registry.ELSEWHERE.get(kind, ())) == sorted(offered)
    assert registry.absent(kind) == []
    for name in offered:
        assert registry.entry(kind, name).package == "textveil-bench"
        about = registry.about(kind, name)
        assert about == about.strip() != ""
