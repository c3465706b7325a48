"""Gives the notes of a release: the section of CHANGELOG.md for a tag, which must be that of both distributions.

In: a tag such as v0.1.0. Out: the section's text.
Not here: how a release is made (`CONTRIBUTING.md`, section Releasing).
"""

import re
import sys
import tomllib

from release.dist import PROJECTS, ROOT


def read_versions() -> set[str]:
    """Reads the versions of both distributions, and the one of textveil that the bench asks for."""
    projects = [tomllib.loads((each / "pyproject.toml").read_text("utf-8")) for each in PROJECTS]
    needs = "\n".join(projects[1]["project"]["dependencies"])
    asked = re.findall(r"^textveil(?:\[[\w,]+\])?==(\S+)$", needs, re.MULTILINE)
    return {each["project"]["version"] for each in projects} | {*asked}


def find_notes(changes: str, version: str) -> str:
    """Finds the section of a version.

    Raises:
        ValueError: there is none with a date, or it is empty.
    """
    head = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    found = re.search(rf"{head}\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise ValueError(f"CHANGELOG.md must have a section '## [{version}] - YYYY-MM-DD'")
    return found[1].strip() + "\n"


def check_tag(tag: str, versions: set[str]) -> str:
    """Returns the version of a tag.

    Raises:
        ValueError: it is not the one version of both distributions.
    """
    if versions != {tag.removeprefix("v")} or not tag.startswith("v"):
        raise ValueError(
            f"the tag must be v and the version of both distributions: it is {tag}, and they say "
            f"{', '.join(sorted(versions))}"
        )
    return tag.removeprefix("v")


def main() -> None:
    """Prints the notes of a tag."""
    version = check_tag(sys.argv[1], read_versions())
    print(find_notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version), end="")


if __name__ == "__main__":
    main()
