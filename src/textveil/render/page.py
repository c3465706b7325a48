"""Pages: one file each, without scripts, that loads nothing from elsewhere.

In: a title, content, a statement. Out: HTML.
Not here: what is shown (`risk`, `groups`, and the reports of the bench).
"""

from html import escape
from importlib.resources import files
from string import Template

from textveil.guarantee import Guarantee


def render_page(title: str, content: str, guarantee: Guarantee, *, styles: str) -> str:
    """Builds a page that shows releases and their statement.

    The statement is at the end.

    Args:
        title: a sentence, which is also the first heading.
        content: HTML.
        guarantee: the statement about everything that is shown.
        styles: CSS in addition to what all pages have.
    """
    summary, explained = escape(guarantee.summary()), escape(guarantee.explain())
    statement = f"<h2>The statement</h2>\n<p>{summary}</p>\n<pre>{explained}</pre>"
    return render_plain_page(title, f"{content}\n{statement}", styles=styles)


def render_plain_page(title: str, content: str, *, styles: str) -> str:
    """Builds a page without a statement.

    The arguments are those of `render_page`.
    """
    template = Template((files("textveil") / "data" / "page.html").read_text(encoding="utf-8"))
    # What is filled in is not read again: a `$` in a text stays one.
    return template.substitute(title=escape(title), content=content, styles=styles)
