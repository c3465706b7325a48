"""The page *From the papers to commands*: every named thing of the papers, with the command that shows it.

In: papers_commands.yaml. Out: Markdown, by the name that stands in a mark of the page.
Not here: whether the commands work (bench_tests/test_papers_commands.py), and the papers' claims (`report`).
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

THINGS = Path(__file__).resolve().parent / "papers_commands.yaml"


@cache
def read() -> Mapping[str, Any]:
    """Reads the papers, and the files of their commands."""
    content: Mapping[str, Any] = yaml.safe_load(THINGS.read_text(encoding="utf-8"))
    return content


def list_things() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yields every thing with its paper's name."""
    for paper in read()["papers"]:
        for thing in paper["things"]:
            yield paper["paper"], thing


def render(name: str) -> str:
    """Renders the files of the commands ("files"), or all papers ("things")."""
    if name == "files":
        return "".join(
            f'```text title="{file}"\n{content}```\n\n' for file, content in read()["files"].items()
        )
    return "\n".join(line for paper in read()["papers"] for line in _render_paper(paper)) + "\n"


def _render_paper(paper: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {paper['paper']}\n\n{paper['cite']}.\n"
    for thing in paper["things"]:
        notes = [thing["says"]] if "says" in thing else []
        if thing.get("try", "dry") != "dry":
            notes.append(thing["try"])
        note = f" ({'; '.join(notes)})" if notes else ""
        yield f"- **{thing['thing']}**, {thing['where']}{note}:\n  `{thing['command']}`"
    yield ""
