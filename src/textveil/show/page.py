"""Pages: files of their own, without scripts, and without anything from elsewhere.

In: a title, what stands on the page, a statement. Out: HTML.
Not here: what is shown (`risk`, `groups`, `bench.report`).
"""

from html import escape
from importlib.resources import files
from string import Template

from textveil.guarantee import Guarantee


def page(title: str, content: str, guarantee: Guarantee, *, styles: str) -> str:
    """A page that shows releases, with their statement at the end.

    Args:
        title: a sentence; its first heading, too.
        content: HTML.
        guarantee: the statement about everything that is shown.
        styles: CSS besides the common one.
    """
    statement = f"<h2>The statement</h2>\n<pre>{escape(guarantee.explain())}</pre>"
    return shell(title, f"{content}\n{statement}", styles=styles)


def shell(title: str, content: str, *, styles: str) -> str:
    """A page; arguments as those of `page`."""
    template = Template((files("textveil") / "data" / "page.html").read_text(encoding="utf-8"))
    return template.substitute(title=escape(title), content=content, styles=styles)
