"""Pages: one file each, without scripts, that loads nothing from elsewhere.

In: a title, content, a statement. Out: HTML.
Not here: what is shown (`risk`, `groups`, and the reports of the bench).
"""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from textveil.guarantee import Guarantee
from textveil.render.bar import render_bar
from textveil.render.picture import PICTURE_CSS


def render_page(
    title: str, content: str, guarantee: Guarantee, *, styles: str, foot: str = ""
) -> str:
    """Builds a page that shows releases and their statement.

    The statement is at the end.

    Args:
        title: a sentence, which is also the first heading.
        content: HTML.
        guarantee: the statement about everything that is shown.
        styles: CSS in addition to what all pages have.
        foot: a line below all, by which the page can be cited.
    """
    content = f"{content}\n{render_statement(guarantee)}"
    content += f'\n<p class="how">{escape(foot)}</p>' if foot else ""
    return render_plain_page(title, content, styles=f"{PICTURE_CSS}\n{styles}")


def render_statement(guarantee: Guarantee) -> str:
    """Returns a statement as HTML: a bar, the sentence, and all of it."""
    summary, explained = escape(guarantee.summary()), escape(guarantee.explain())
    return f"""<h2>The statement</h2>
{render_bar(guarantee)}
<p>{summary}</p>
<details><summary>The statement in full</summary>
<pre>{explained}</pre></details>"""


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table as HTML, each of whose rows begins with its name; see `PICTURE_CSS`."""
    head_cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    return (
        f'<table class="numbers"><thead><tr>{head_cells}</tr></thead><tbody>{body}</tbody></table>'
    )


DARK_STYLES = """:root { color-scheme: light dark; }
  @media screen and (prefers-color-scheme: dark) {
    :root { --ink: #ecedf0; --paper: #15171b; --soft: #b0b4bd; --faint: #979ba4; --line: #33363d; --panel: #1e2126;
      --accent: #8fc0f5; --caution: #ff9a5c; }
  }"""
"""The colours of pages for readers who prefer dark ones; paper stays light."""


def render_plain_page(title: str, content: str, *, styles: str, dark: bool = True) -> str:
    """Builds a page without a statement.

    The other arguments are those of `render_page`.

    Args:
        title: see there.
        content: see there.
        styles: see there.
        dark: whether its content can be read on dark pages, too.
    """
    template = Template((files("textveil") / "data" / "page.html").read_text(encoding="utf-8"))
    # What is filled in is not read again: a `$` in a text stays one.
    return template.substitute(
        title=escape(title), content=content, styles=styles, dark=DARK_STYLES if dark else ""
    )
