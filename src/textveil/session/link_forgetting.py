"""Forgetting values in conversations: in the rows of all messages of an account.

In: the links of an account, values. Out: the same rows without the values, and what went.
Not here: sessions (`forgetting`), and one conversation that a client sends (`conversations`).

A row stays under its name, so that a client that sends a conversation again gets the same release,
with placeholders that nothing stands for any more. The names of rows are keyed digests of whole
messages.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from textveil.session.conversations import Link, LinkStore, dump_row, parse_facts
from textveil.session.forgetting import (
    ForgottenReport,
    ForgottenValues,
    build_value_key,
    list_gone_parts,
    read_marks,
)
from textveil.session.value_search import SoughtTexts
from textveil.text import RELEASED, is_public

FORGOTTEN_MARK = "[forgotten]"
"""What stands in a stored message where a forgotten value had passed unprotected."""

MAX_PASSES = 5
"""Most passes over the rows; requests that run meanwhile may add some."""

MIN_PART_CHARACTERS = 3
"""Least characters of a name's part that is taken out of a stored message."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]*?_[0-9]+")


@dataclass(frozen=True, eq=False)
class _FactRow:
    """A parsed row. Secret.

    Args:
        facts: its facts by kind.
        link: the link; None for a row that repeats a message.
    """

    facts: Mapping[str, Mapping[Any, Any]] = field(repr=False)
    link: Link | None = field(repr=False)


def forget_in_links(links: LinkStore, texts: SoughtTexts) -> ForgottenReport:
    """Takes values out of all conversations of an account.

    Where a value had passed unprotected, the stored message gets `FORGOTTEN_MARK`.

    Args:
        links: the account's links.
        texts: the values.

    Returns:
        What went, and which other values stood in the same messages.
    """
    report = ForgottenReport(same_messages=True)
    for _ in range(MAX_PASSES):
        rows = links.list_rows()
        replacements, more = _filter_rows(rows, texts)
        if not replacements:
            break
        links.rewrite({name: (rows[name], content) for name, content in replacements.items()})
        report = replace(
            report,
            found=report.found | more.found,
            count=report.count + more.count,
            others=tuple(sorted({*report.others, *more.others})),
        )
    return report


def _filter_rows(
    rows: Mapping[bytes, bytes], texts: SoughtTexts
) -> tuple[dict[bytes, bytes], ForgottenReport]:
    """Returns the rows that change, and what goes."""
    parsed = {name: row for name, content in rows.items() if (row := _parse_row(content))}
    tokens = [t for row in parsed.values() for t in row.facts.get("placeholders", {}).values()]
    private = [v for row in parsed.values() for v in row.facts.get("private", {}).values()]
    parts = list_gone_parts(tokens, private, texts)
    names: dict[tuple[str, str], set[str]] = {}
    for token in tokens:
        names.setdefault(build_value_key(token), set()).add(f"<{token.name}>")
    replacements: dict[bytes, bytes] = {}
    numbers, gone, others = set[int](), set[tuple[str, str]](), set[str]()
    for name, content in rows.items():
        row = parsed.get(name)
        if row is None:
            if content.startswith(b'"') and texts.holds(json.loads(content)):
                replacements[name] = b"null"  # a signed text without the value would be refused
            continue
        forgotten = ForgottenValues(
            row.facts.get("placeholders", {}).values(),
            texts=texts,
            private=row.facts.get("private", {}).values(),
            parts=parts,
        )
        facts = forgotten.filter_facts(row.facts)
        dumped, shown = _dump(row, facts, _choose_texts(row, facts, texts, parts))
        if dumped is None:
            continue
        replacements[name] = dumped
        numbers |= {number for text in _list_texts(row) for number in texts.find(text)}
        numbers |= texts.find_words(row.facts.get("said", ())).keys()
        gone |= {key for key in row.facts.get("private", {}) if key not in facts.get("private", {})}
        gone |= set(row.facts.get("values", {})) - set(facts.get("values", {}))
        for key in facts.get("private", {}):
            others |= names.get(key, {key[0]})
        others |= {f"<{other}>" for other in shown - forgotten.names}
    return replacements, ForgottenReport(
        found=frozenset(numbers), count=len(gone), others=tuple(sorted(others)), same_messages=True
    )


def _parse_row(content: bytes) -> _FactRow | None:
    """Parses a row that has facts; None for signed texts and keys of requests."""
    if content.startswith(b"{"):
        return _FactRow(parse_facts(content), None)
    if content.startswith(b"[") or read_marks(content):
        link = Link.read(content)
        return _FactRow(link.facts, link)
    return None


def _choose_texts(
    row: _FactRow,
    facts: Mapping[str, Mapping[Any, Any]],
    texts: SoughtTexts,
    parts: Iterable[tuple[str, str]],
) -> list[SoughtTexts]:
    """Returns what is taken out of a message's texts: parts only where the value itself was."""
    changed = row.link is not None and (facts != row.facts or any(map(texts.holds, row.link.texts)))
    forms = [form for _, form in parts if len(form) >= MIN_PART_CHARACTERS and not is_public(form)]
    return [texts, SoughtTexts(forms)] if changed else []


def _dump(
    row: _FactRow, facts: Mapping[str, Mapping[Any, Any]], sought: Iterable[SoughtTexts]
) -> tuple[bytes | None, set[str]]:
    """Returns a row without values, None if it is unchanged; and the placeholders in its texts."""
    if row.link is None:
        # A row of one message: with a value gone, the digests of its draws would tell its text.
        draws = facts.get("drawn", {}) if facts == row.facts else {}
        return None if facts == row.facts else dump_row(facts.get("private", {}), draws), set()
    released = row.link.texts
    for values in sought:
        released = tuple(values.replace(text, FORGOTTEN_MARK) for text in released)
    if facts == row.facts and released == row.link.texts:
        return None, set()
    matches = (_NAME.match(match[1]) for text in released for match in RELEASED.finditer(text))
    shown = {match[0] for match in matches if match is not None}
    return replace(row.link, texts=released, facts=facts).dump(), shown


def _list_texts(row: _FactRow) -> list[str]:
    """Lists all that a row says, to see which values it held."""
    facts = row.facts
    return [
        *(token.value for token in facts.get("placeholders", {}).values()),
        *(value.text for value in facts.get("private", {}).values()),
        *(pair.original for pair in facts.get("replaced", {}).values()),
        *facts.get("targets", {}),
        *(key[1] for key in facts.get("drawn", {})),
        *facts.get("said", {}),
        *(row.link.texts if row.link is not None else ()),
    ]
