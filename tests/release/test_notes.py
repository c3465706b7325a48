"""Notes are those of the tag, which both distributions have as their version."""

import pytest
import yaml
from release.dist import ROOT
from release.notes import check_tag, find_notes, read_versions

CHANGES = """# Changelog

## [Unreleased]

More.

## [0.2.0] - 2027-01-02

### Added

- A thing.

## [0.1.0] - 2026-12-01

First.
"""


def test_a_section_is_found():
    assert find_notes(CHANGES, "0.2.0") == "### Added\n\n- A thing.\n"
    assert find_notes(CHANGES, "0.1.0") == "First.\n"


@pytest.mark.parametrize("version", ["0.3.0", "0.1", "0.1.00", "Unreleased"])
def test_a_section_that_is_missing_is_said(version):
    with pytest.raises(ValueError, match="must have a section"):
        find_notes(CHANGES, version)


def test_both_distributions_have_one_version():
    (version,) = read_versions()
    assert check_tag(f"v{version}", {version}) == version
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version


@pytest.mark.parametrize(
    ("tag", "versions"),
    [("v0.2.0", {"0.1.0"}), ("0.1.0", {"0.1.0"}), ("v0.1.0", {"0.1.0", "0.2.0"})],
)
def test_another_tag_is_refused(tag, versions):
    with pytest.raises(ValueError, match="the tag must be v and the version"):
        check_tag(tag, versions)
