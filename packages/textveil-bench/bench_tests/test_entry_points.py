"""What the distribution adds to the names of the product."""

import tomllib
from pathlib import Path

import pytest

from textveil.config import registry

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("kind", registry.REGISTRY_KINDS)
def test_the_product_knows_which_names_are_here(kind):
    offered = PROJECT["entry-points"].get(registry.ENTRY_POINT_GROUPS[kind], {})
    assert sorted(registry.BENCH_NAMES.get(kind, ())) == sorted(offered)
    assert registry.list_absent(kind) == []
    for name in offered:
        assert registry.find_entry(kind, name).package == "textveil-bench"
        about = registry.describe(kind, name)
        assert about == about.strip() != ""
