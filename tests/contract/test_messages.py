"""Messages, help and statements: plain words only.

All strings of four or more words in the code that are no docstrings, and the docstrings of verbs, which are
their help.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    ROOT / "src" / "textveil",
    ROOT / "packages" / "textveil-bench" / "src" / "textveil_bench",
)

RIDDLES = re.compile(r"(What|Whose|Whom|Whether|Who|Which|The same)\b(?![^.]*\?)")
"""First words of a help text that leave its subject to be guessed; a question may begin so."""

GERMANISMS = re.compile(
    r"\b(as (it|they) (is|are|was|were|stands?)\b(?! (now|sent|read|written|in|before|by))"
    r"|besides|so many|tells? (of|most)|what stands|(is|are|has|have) none\b(?! of)|whom(?! …)|nothing of|in its stead"
    r"|at the latest then|the more so|it is so that)\b"
)
"""Turns that a reader must read twice. "Of whom", followed by a number, is none."""


def join_literal(node: ast.expr) -> str | None:
    """The text of a literal, an f-string or a sum of them, with … for values; None for other nodes."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (join_literal(node.left) or "…") + (join_literal(node.right) or "…")
    return None


def list_messages(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yields line, text, and whether it is help, for each message of a module."""
    tree = ast.parse(source)
    seen: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            seen.add(id(node.value))
        is_verb = isinstance(node, ast.FunctionDef) and any(
            ast.unparse(decorator).startswith("verb(") for decorator in node.decorator_list
        )
        if is_verb and (text := ast.get_docstring(node)):  # type: ignore[arg-type]
            yield node.lineno, text, True  # type: ignore[attr-defined]
        if isinstance(node, ast.keyword) and node.arg in ("help", "summary"):
            text = join_literal(node.value)
            if text is not None:
                seen.update(map(id, ast.walk(node.value)))
                yield node.value.lineno, text, True
    for node in ast.walk(tree):
        if id(node) in seen or not isinstance(node, ast.expr):
            continue
        text = join_literal(node)
        if text is not None:
            seen.update(map(id, ast.walk(node)))
            if len(text.split()) >= 4:
                yield node.lineno, text, False


def find_faults(source: str) -> list[tuple[int, str, str]]:
    """The lines, the turns and the messages that are not plain."""
    faults = []
    for line, text, is_help in list_messages(source):
        opener = RIDDLES.match(text) if is_help else None
        if (match := opener or GERMANISMS.search(text)) is not None:
            faults.append((line, match.group(), text))
    return faults


@pytest.mark.parametrize("root", SOURCES, ids=lambda root: root.name)
def test_messages_are_plain_words(root):
    count, faults = 0, []
    for path in sorted(root.rglob("*.py")):
        if "patterns" in path.parts:  # expressions over many languages
            continue
        source = path.read_text(encoding="utf-8")
        count += sum(1 for _ in list_messages(source))
        for line, turn, text in find_faults(source):
            faults.append(f"{path.relative_to(ROOT)}:{line}: {turn!r} in {text[:90]!r}")
    assert count > 500
    assert faults == []


@pytest.mark.parametrize(
    "source",
    [
        'raise InputError(f"{name} must be a folder, and it is none")',
        'note("the others stay as they are, " + "besides those that are named")',
        'Option("--key", help="Whose key it is.")',
        '@verb("x")\ndef show():\n    """What a session remembers."""',
    ],
)
def test_a_riddle_is_found(source):
    assert find_faults(source) != []


def test_plain_words_and_docstrings_pass():
    source = (
        '"""What is besides."""\nnote("pip install textveil: two files were read as they are now")'
    )
    assert find_faults(source) == []
