"""The page on what passes through the gateway is made of the tables: `python -m tests.gateway.test_passing` writes it.

Every string that a table lets through as it came stands there, with the form that it must have.
"""

from collections.abc import Iterator
from pathlib import Path

import regex

from textveil.gateway.protocols import load_operations
from textveil.gateway.protocols.field_rules import Act, LeafRule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lookup" / "passing.md"
API_ROOMS = {"bedrock": "Bedrock", "gemini": "Gemini", "ollama": "Ollama"}
"""Headings of APIs whose routes begin alike; the others have one for each of their routes."""
BEGIN, END = "<!-- passing -->\n", "<!-- end of passing -->"
WORDS = regex.compile(r"(?:[\w.:/ \-]|\\[.\-/:+ ])*(?:\|(?:[\w.:/ \-]|\\[.\-/:+ ])*)*")
"""Patterns of fixed words, which hold no text."""


def passing(rule: LeafRule, path: str = "") -> Iterator[tuple[str, str | None]]:
    """The strings that a table lets pass: where they stand, and their form; None for any."""
    if Act.PASS in (rule.any_value, rule.text):
        form = None if rule.any_value is not None or rule.shape is None else rule.shape.pattern
        if form is None or not WORDS.fullmatch(form):
            yield path, form
    if rule.items is not None:
        yield from passing(rule.items, f"{path}[]")
    for fields, others in (
        (each.fields, each.other_fields) for each in (rule, *rule.kinds.values())
    ):
        for name, own in (fields or {}).items():
            yield from passing(own, f"{path}.{name}" if path else name)
        if others is not None:
            yield from passing(others, f"{path}.*")


def tables() -> str:
    """All of them as Markdown: a line for each form, of all routes of an API that begin alike."""
    headers = dict.fromkeys(name for operation in load_operations() for name in operation.forwards)
    lines = [
        "## Headers",
        "",
        f"{', '.join(f'`{name}`' for name in headers)}; each where its API has it.",
        "",
    ]
    rooms: dict[str, dict[str | None, set[str]]] = {}
    for operation in load_operations():
        if operation.name.startswith("litellm"):
            continue  # they send nothing on
        api, begin = operation.name.partition(".")[0], operation.path.split("/")[1]
        by_form = rooms.setdefault(API_ROOMS.get(api, begin), {})
        for path, form in passing(operation.request):
            by_form.setdefault(form, set()).add(".".join(path.split(".")[-2:]))
    for room, by_form in rooms.items():
        shown = [
            f"| `{_cell(form)}` | {', '.join(f'`{each}`' for each in sorted(own))} |"
            for form, own in by_form.items()
        ]
        lines += [f"## {room}", "", "| form | where |", "|---|---|", *shown, ""]
    return "\n".join(lines)


def _cell(form: str | None) -> str:
    return "anything" if form is None else form.replace("|", "\\|")


def filled(page: str) -> str:
    """The page with the tables of today."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def test_the_page_says_what_passes():
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run python -m tests.gateway.test_passing"


def test_nothing_passes_that_may_be_any_text():
    """Every string that passes on its way up has a form, and no form has room for a sentence or for a mail address."""
    for operation in load_operations():
        for path, form in (
            passing(operation.request) if not operation.name.startswith("litellm") else ()
        ):
            assert form is not None, path
            assert not regex.fullmatch(form, "Elena is ill"), path
            assert operation.name == "models.one" or not regex.fullmatch(
                form, "elena@example.org"
            ), path


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
