"""Nothing outside the room asks a mechanism for its class: what it needs to know, protocols say."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import textveil
import textveil.mechanism

SOURCE = Path(textveil.__file__).parent
ROOM = Path(textveil.mechanism.__file__).parent


def classes() -> set[str]:
    """The classes of the room that are no protocols."""
    return {
        node.name
        for path in ROOM.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
        and "Protocol" not in {ast.unparse(base) for base in node.bases}
    }


def asked(source: str) -> Iterator[str]:
    """The names of all classes that a program asks objects for."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            yield from (part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name))
            yield from (
                part.attr for part in ast.walk(node.args[1]) if isinstance(part, ast.Attribute)
            )
        if isinstance(node, ast.MatchClass):
            yield ast.unparse(node.cls).rpartition(".")[2]


def test_no_other_room_asks_a_mechanism_for_its_class() -> None:
    others = [path for path in SOURCE.rglob("*.py") if not path.is_relative_to(ROOM)]
    assert len(others) > 100
    families = classes()
    found = {str(path): families & set(asked(path.read_text(encoding="utf-8"))) for path in others}
    assert not any(found.values()), {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    "twin",
    [
        "isinstance(m, Perturb)",
        "isinstance(m, Law | select.Select)",
        "match m:\n    case Fill(): pass",
    ],
)
def test_a_program_that_does_is_caught(twin: str) -> None:
    assert not classes().isdisjoint(asked(twin))
    assert classes().isdisjoint({"Law", "Mechanism", "Noisy"})
