"""Pages that show releases: files of their own, without scripts, with the statement at the end.

In: a title, what stands on the page, a statement. Out: HTML.
Not here: what is shown (`risk`, `groups`).
"""

from html import escape
from importlib.resources import files
from string import Template

from textveil.guarantee import Guarantee


def page(title: str, content: str, guarantee: Guarantee, *, styles: str) -> str:
    """A page.

    Args:
        title: a sentence; its first heading, too.
        content: HTML.
        guarantee: the statement about everything that is shown.
        styles: CSS besides the common one.
    """
    template = Template((files("textveil") / "data" / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title), content=content, statement=escape(guarantee.explain()), styles=styles
    )
