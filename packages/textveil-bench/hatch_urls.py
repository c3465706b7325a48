"""Metadata hook of both distributions: addresses of the project, and a README whose links work outside of it.

In: `GITHUB_SERVER_URL` and `GITHUB_REPOSITORY`, which a workflow has. Out: project URLs, and the README with its
relative links made absolute, at the tag of the version. Without them: no URLs, and the README as it is.
Not here: the files of models (`hatch_build`).

A wheel that is built from a source distribution has what stands in its PKG-INFO.
"""

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[[^\]\n]*\]\()(?![a-z]+:|#)([^)\s]+)")
"""A link or picture in Markdown with a relative address."""


class ProjectAddresses(MetadataHookInterface):
    """Fills in `urls` and `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Runs whenever metadata is made, in editable installs too."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        server, name = (os.environ.get(f"GITHUB_{key}", "") for key in ("SERVER_URL", "REPOSITORY"))
        metadata.setdefault("urls", {})
        if server and name:
            address = f"{server}/{name}"
            metadata["urls"] = make_urls(address, metadata["version"])
            folder = self.config.get("folder", ".")
            text = link_absolutely(text, address, f"v{metadata['version']}", folder)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def make_urls(address: str, version: str) -> dict[str, str]:
    """Names the project's pages below the address of its repository."""
    at = f"{address}/blob/v{version}"
    return {
        "Repository": address,
        "Documentation": f"{at}/docs/index.md",
        "Changelog": f"{at}/CHANGELOG.md",
        "Issues": f"{address}/issues",
        "Security": f"{at}/SECURITY.md",
    }


def link_absolutely(text: str, address: str, tag: str, folder: str) -> str:
    """Replaces relative links by addresses at a tag.

    Args:
        text: Markdown.
        address: of the repository.
        tag: of the version.
        folder: in which the text lies, from the root of the repository.
    """

    def replace(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        return f"{mark}{label}{address}/{'raw' if mark else 'blob'}/{tag}/{path}"

    return LINK.sub(replace, text)
