"""Shows results in notebooks: released text, what was replaced in it by type, and the statement.

Styles stand in the elements, because a notebook may drop a style sheet, and ink comes with its
paper, because its theme may be dark.

In: results. Out: HTML without scripts. It holds released text only.
Not here: pages (`page`), and the colours of types (`types`).
"""

from collections.abc import Sequence
from html import escape
from itertools import islice

from textveil.guarantee import TYPE_NOUNS
from textveil.pipeline import Result, TextResult, describe_releases
from textveil.render.types import FAMILIES, find_family
from textveil.text import Kind, Released

MAX_ITEMS = 400
"""Items of a text that are shown."""

MAX_CELL_ITEMS = 60
"""Items of a text in a table that are shown."""

DRAWN = ("words that were drawn", "color:#10243f;background:#dbe9f6")
"""The meaning and style of drawn words, which have no type."""

_NO_MATHS = "tex2jax_ignore mathjax_ignore"
"""Classes by which notebooks leave dollar signs alone."""

_WRAP = "white-space:pre-wrap;overflow-wrap:anywhere;max-width:60em"
_CELL = "text-align:left;vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere"


def render_result(result: Result) -> str:
    """Draws a released text, with what was replaced in the colours of its types."""
    released = result.released
    text = f'<div style="{_WRAP}">{_render_text(released, MAX_ITEMS)}</div>'
    return _render_page(text, [released], describe_releases([released], result.guarantee))


def render_text_result(result: TextResult) -> str:
    """Draws a public text that stands in place of a private one."""
    text = f'<div style="{_WRAP}">{escape(result.text)}</div>'
    return _render_page(text, [], result.guarantee.summary())


def render_rows(
    columns: Sequence[str], rows: Sequence[Sequence[Released | str | None]], total: int, note: str
) -> str:
    """Draws the first rows of released columns as a table.

    Args:
        columns: their names.
        rows: a cell for each column: a release, a public text, or None where there was no text.
        total: the number of all rows.
        note: the statement in one line.
    """
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in ("", *columns))
    lines = [
        f"<tr><th>{number}</th>"
        + "".join(f'<td style="{_CELL}">{_render_cell(cell)}</td>' for cell in row)
        + "</tr>"
        for number, row in enumerate(rows)
    ]
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    if total > len(rows):
        table += f"<div>{len(rows)} of {total:,} rows</div>"
    return _render_page(table, [cell for row in rows for cell in row], note)


def _render_page(content: str, cells: Sequence[object], note: str) -> str:
    meanings = (
        meaning for cell in cells if isinstance(cell, Released) for meaning in _list_meanings(cell)
    )
    legend = "".join(
        f'<span style="{css};border-radius:.2em;padding:0 .3em;margin-right:.6em">'
        f"{escape(meaning)}</span>"
        for meaning, css in dict.fromkeys(meanings)
        if css
    )
    small = "font-size:.85em;margin-top:.4em;max-width:70em"
    legend = f'<div style="{small}">{legend}</div>' if legend else ""
    return (
        f'<div class="{_NO_MATHS}">{content}{legend}<div style="{small}">{escape(note)}</div></div>'
    )


def _render_cell(cell: Released | str | None) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return escape(cell)
    return _render_text(cell, MAX_CELL_ITEMS)


def _render_text(released: Released, limit: int) -> str:
    parts = list[str]()
    shown = zip(released.gaps[:-1], released.items, _list_meanings(released), strict=True)
    for gap, item, (meaning, css) in islice(shown, limit):
        word = escape(item.text)
        if css:
            style = f"{css};border-radius:.2em;padding:0 .15em"
            word = f'<span style="{style}" title="{escape(meaning)}">{word}</span>'
        parts.append(escape(gap) + word)
    rest = len(released.items) - limit
    return "".join(parts) + (
        f" ... <i>{rest:,} more words</i>" if rest > 0 else escape(released.gaps[-1])
    )


def _list_meanings(released: Released) -> list[tuple[str, str]]:
    """Lists what each item stands for, and its style; no style for words that passed."""
    types = dict(released.mask.placeholders)
    meanings = []
    for i, item in enumerate(released.items):
        type_ = types.get(i) or item.group.partition(" ")[0]  # "PERSON family" of a drawn name
        if item.kind is Kind.VERBATIM:
            meanings.append(("", ""))
        elif item.kind is Kind.PLACEHOLDER or type_ in TYPE_NOUNS:
            family = FAMILIES[find_family(type_)]
            ink, paper = family.light
            meanings.append((family.meaning, f"color:{ink};background:{paper}"))
        else:
            meanings.append(DRAWN)
    return meanings
