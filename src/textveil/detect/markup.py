"""Markup: recognises XML and HTML documents.

A placeholder in such a document would look like a tag.

In: a text. Out: the ranges of a document in which entities are not read.
Not here: how tags divide spans (`bounds`), and how a placeholder is written in a document
(`pipeline.release`).
"""

import re
from xml.parsers import expat

from textveil.detect.bounds import Place
from textveil.text import vocabulary

_START = re.compile(
    r"(?>(?:\s+|<!--.*?-->|<\?.*?\?>)*)<(?:(html\b|!doctype\s+html\b)|!doctype\s)", re.DOTALL | re.I
)
_FIRST = re.compile(r"<([A-Za-z]\w*)[\s/>]")
_LAST = re.compile(r"</([A-Za-z]\w*)\s*>\Z")
_OPAQUE = r"<!--().*?(?:-->|\Z)|<!\[CDATA\[().*?(?:\]\]>|\Z)"
_XML = re.compile(_OPAQUE, re.DOTALL)
_HTML = re.compile(rf"{_OPAQUE}|<(script|style)\b[^<>]*>().*?(?:</\3|\Z)", re.DOTALL | re.I)
_HEAD = 1000
"""The number of characters at a page's start that may declare XML."""


def find_opaque_ranges(text: str) -> list[Place] | None:
    """Finds comments, CDATA, scripts and styles of an XML or HTML document.

    A text is a document if it says so at its start, if it parses as XML, or if it begins and ends
    with HTML tags. A text that declares entities says so at its start, and is never parsed. Takes
    time linear in the text.

    Returns:
        The ranges, in which entities are not decoded; None if the text is no document.
    """
    content = text.strip("\ufeff \t\r\n")
    if not content.startswith("<"):
        return None
    start, head = _START.match(content), content[:_HEAD].lower()
    if (
        head.startswith("<?xml")
        or (start and (not start[1] or "xhtml" in head))
        # A declaration may define entities that grow without end: such a text is never parsed.
        or (not start and _is_xml(content))
    ):
        opaque = _XML
    elif start or _is_fragment(content):
        opaque = _HTML
    else:
        return None
    return [(match.end(match.lastindex or 0), match.end()) for match in opaque.finditer(text)]


def _is_xml(text: str) -> bool:
    """True if a text without declarations is well-formed XML."""
    if not text.endswith(">") or ("</" not in text and "/>" not in text):
        return False
    try:
        expat.ParserCreate("utf-8").Parse(text, True)
    except (expat.ExpatError, UnicodeError):
        return False
    return True


def _is_fragment(text: str) -> bool:
    """True if a text begins and ends with HTML tags."""
    tags = _FIRST.match(text), _LAST.search(text, max(0, len(text) - 40))
    return all(
        tag is not None and tag[1].lower() in vocabulary.get_words("html_elements") for tag in tags
    )
