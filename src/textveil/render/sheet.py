"""A sheet: a text in sections, as page, Markdown and data.

All three say the same.

In: sentences, numbers, tables. Out: a `Sheet`; all three forms have the same contents.
Not here: what is said (`corpus.statement`), and the frame of a page (`page`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import Any

from textveil.render import page as pages

BAR_COLOURS = ("#0072b2", "#e69f00", "#c4c4c4")
"""Colours of the parts of a bar, in order.

They differ in lightness, too.
"""


@dataclass(frozen=True, kw_only=True)
class SheetTable:
    """A table of a sheet.

    Attributes:
        head: the names of its columns.
        rows: their cells.
        bar: how large the part of each row is in a bar above the table; none without a bar.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    bar: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class SheetSection:
    """A section of a sheet.

    Attributes:
        heading: what it is about.
        paragraphs: paragraphs.
        tables: they follow.
        exact: lines that come last, as they are.
    """

    heading: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[SheetTable] = ()
    exact: str = ""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A titled text of facts and sections.

    Attributes:
        title: what the sheet is.
        facts: names and values that come first.
        sections: the sections of the text.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    sections: Sequence[SheetSection]

    def to_json(self) -> dict[str, Any]:
        """Returns the sheet as plain data."""
        return {
            "title": self.title,
            "facts": dict(self.facts),
            "sections": [
                {
                    "heading": section.heading,
                    "said": list(section.paragraphs),
                    "tables": [
                        {"head": list(table.head), "rows": [list(row) for row in table.rows]}
                        for table in section.tables
                    ],
                    "exact": section.exact.splitlines(),
                }
                for section in self.sections
            ],
        }

    def render_markdown(self) -> str:
        """Returns the sheet as Markdown."""
        blocks = [f"# {_escape_markdown(self.title)}", _render_markdown_table(("", ""), self.facts)]
        for section in self.sections:
            blocks += [
                f"## {_escape_markdown(section.heading)}",
                *map(_escape_markdown, section.paragraphs),
            ]
            blocks += [_render_markdown_table(table.head, table.rows) for table in section.tables]
            if section.exact:
                # A fence must be longer than any run of backticks within it.
                fence = "`" * max(3, 1 + max(map(len, re.findall("`+", section.exact)), default=0))
                blocks.append(f"{fence}text\n{section.exact}\n{fence}")
        return "\n\n".join(blocks) + "\n"

    def render_html(self) -> str:
        """Returns the sheet as a page."""
        facts = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in self.facts
        )
        blocks = [f'<table class="facts"><tbody>{facts}</tbody></table>']
        for section in self.sections:
            blocks += [
                f"<h2>{escape(section.heading)}</h2>",
                *(f"<p>{escape(paragraph)}</p>" for paragraph in section.paragraphs),
            ]
            for table in section.tables:
                blocks += [_render_bar(table), _render_html_table(table)]
            if section.exact:
                blocks.append(f"<pre>{escape(section.exact)}</pre>")
        return pages.render_plain_page(self.title, "\n".join(filter(None, blocks)), styles=_STYLES)


def clean_name(name: str) -> str:
    """Cleans a user's name for display.

    Without what does not show or would turn the text around it.
    """
    return "".join(char if char.isprintable() else " " for char in name)


# An underscore inside a word marks nothing, so `some_name` stays readable.
_MARKDOWN_CHARACTERS = re.compile(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)")


def _escape_markdown(text: str) -> str:
    """Escapes a text so that Markdown shows it unchanged."""
    return _MARKDOWN_CHARACTERS.sub(r"\\\g<0>", text)


def _render_markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(map(_escape_markdown, row))} |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def _render_html_table(table: SheetTable) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.head)
    marks = (
        [f'<i style="background: {shade}"></i> ' for shade in BAR_COLOURS]
        if table.bar
        else [""] * len(table.rows)
    )
    rows = "\n".join(
        f"<tr><td>{mark}{escape(row[0])}</td>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for mark, row in zip(marks, table.rows, strict=True)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>"


def _render_bar(table: SheetTable) -> str:
    """Builds a bar of the parts' sizes.

    The table under it says the same.
    """
    if not (total := sum(table.bar)):
        return ""
    ends = [720 * end / total for end in accumulate(table.bar)]
    parts = "".join(
        f'<rect x="{start:.1f}" y="0" width="{end - start:.1f}" height="30" fill="{shade}"/>'
        for start, end, shade in zip([0.0, *ends], ends, BAR_COLOURS, strict=False)
    )
    return f'<svg viewBox="0 0 720 30" preserveAspectRatio="none" aria-hidden="true">{parts}</svg>'


_STYLES = """
  table { border-collapse: collapse; font-size: .9rem; line-height: 1.5; margin: 0 0 1rem; width: 100%; }
  th, td { text-align: right; padding: .25rem 0 .25rem .8rem; vertical-align: top;
    border-bottom: 1px solid var(--line); }
  th:first-child, td:first-child, .facts td { text-align: left; padding-left: 0; }
  td:first-child { overflow-wrap: anywhere; min-width: 5.5rem; }
  .facts th { width: 5.5rem; } .facts td { overflow-wrap: anywhere; } th { font-weight: 600; }
  svg { display: block; width: 100%; height: 1.9rem; margin: 1rem 0 .5rem; }
  i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; }
  svg, i { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  @media (max-width: 30rem) { table { font-size: .8rem; } th, td { padding-left: .4rem; }
    td:first-child { min-width: 4.5rem; } }
  p { overflow-wrap: anywhere; } h2 { break-after: avoid; } table, svg { break-inside: avoid; }
"""
