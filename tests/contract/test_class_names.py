"""One meaning per class name: no two modules of the project call different things the same."""

import ast
from collections import Counter
from pathlib import Path

import textveil

SOURCES = [
    Path(textveil.__file__).parent,
    Path(__file__).parents[2] / "packages" / "textveil-bench" / "src" / "textveil_bench",
]


def named(program: str) -> list[str]:
    """The classes that a program defines at its top level."""
    return [node.name for node in ast.parse(program).body if isinstance(node, ast.ClassDef)]


def twice(programs: list[str]) -> set[str]:
    return {
        name
        for name, count in Counter(name for each in programs for name in named(each)).items()
        if count > 1
    }


def test_no_class_name_is_given_twice() -> None:
    programs = [
        path.read_text(encoding="utf-8")
        for source in SOURCES
        for path in sorted(source.rglob("*.py"))
    ]
    assert len(programs) > 150
    assert twice(programs) == set()


def test_a_name_that_is_given_twice_is_found() -> None:
    assert twice(
        ["class Row: ...", "class Rate: ...", "if True:\n    pass\nclass Row(Rate): ..."]
    ) == {"Row"}
