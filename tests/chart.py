"""Renders a Helm chart: the few actions of its templates that ours use.

In: a chart's folder, values. Out: its manifests, by file.
Not here: what must hold of them (`test_deploy`). A real Helm gives the same for this chart.
"""

import hashlib
import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "default": lambda fallback, value: value or fallback,
    "nindent": lambda count, text: "\n" + textwrap.indent(text, " " * count),
    "quote": lambda value: json.dumps(str(value)),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toYaml": lambda value: yaml.safe_dump(value).strip(),
}


def merge(base: Any, more: Any) -> Any:
    """Merges values over defaults; lists replace."""
    if not isinstance(base, dict) or not isinstance(more, dict):
        return more
    return {**base, **{name: merge(base.get(name), value) for name, value in more.items()}}


def evaluate(pipeline: str, scope: dict[str, Any]) -> Any:
    """Evaluates what stands between braces."""

    def look_up(word: str) -> Any:
        if not word.startswith("."):
            return int(word)
        value: Any = scope
        for name in word[1:].split("."):
            value = value[name]
        return value

    value: tuple[Any, ...] = ()
    for stage in pipeline.split("|"):
        name, *words = stage.split()
        arguments = [*map(look_up, words), *value]
        value = (FUNCTIONS[name](*arguments) if name in FUNCTIONS else look_up(name),)
    return value[0]


def render_template(template: str, scope: dict[str, Any]) -> str:
    """Renders one template: values, pipelines, if, else and end."""
    template = re.sub(r"\s*\{\{- ", "{{ ", template)
    said, holds = [], [True]
    for part in re.split(r"(\{\{ .*? \}\})", template):
        action = part[3:-3] if part.startswith("{{ ") else None
        if action is None:
            said.append(part if holds[-1] else "")
        elif action.startswith("if "):
            holds.append(holds[-1] and bool(evaluate(action[3:], scope)))
        elif action == "else":
            holds[-1] = holds[-2] and not holds[-1]
        elif action == "end":
            holds.pop()
        elif holds[-1]:
            said.append(str(evaluate(action, scope)))
    assert holds == [True], "an if has no end"
    assert "{{" not in "".join(said), "an action was not understood"
    return "".join(said)


def render(folder: Path, values: dict[str, Any], release: str = "veil") -> dict[str, Any]:
    """Renders all templates of a chart."""
    chart = yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))
    scope = {
        "Values": merge(yaml.safe_load((folder / "values.yaml").read_text("utf-8")), values),
        "Release": {"Name": release},
        "Chart": {"AppVersion": chart["appVersion"]},
    }
    rendered = {}
    for path in sorted((folder / "templates").glob("*.yaml")):
        manifest = yaml.safe_load(render_template(path.read_text(encoding="utf-8"), scope))
        if manifest is not None:
            rendered[path.name] = manifest
    return rendered
