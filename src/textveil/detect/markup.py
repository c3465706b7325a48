"""Markup: whether a text is a document of XML or HTML, in which a placeholder would be a tag.

In: a text. Out: the ranges of a document in which entities are not read.
Not here: which spans tags divide (`bounds`), and how a placeholder is written in a document (`pipeline.release`).
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
"""Characters at the start of a page that may say that it is XML."""


def ranges_without_entities(text: str) -> list[Place] | None:
    """Finds where a document of XML or HTML has comments, CDATA, scripts and styles; None for other texts.

    A text is a document if it says so at its start, if it parses as XML, or if it begins and ends with tags of HTML.
    One that declares entities says so at its start, and is never parsed. Takes time linear in the text.
    """
    written = text.strip("\ufeff \t\r\n")
    if not written.startswith("<"):
        return None
    start, head = _START.match(written), written[:_HEAD].lower()
    if (
        head.startswith("<?xml")
        or (start and (not start[1] or "xhtml" in head))
        or (not start and _parses(written))
    ):
        opaque = _XML
    elif start or _is_fragment(written):
        opaque = _HTML
    else:
        return None
    return [(match.end(match.lastindex or 0), match.end()) for match in opaque.finditer(text)]


def _parses(text: str) -> bool:
    """Whether a text without declarations is XML."""
    if not text.endswith(">") or ("</" not in text and "/>" not in text):
        return False
    try:
        expat.ParserCreate("utf-8").Parse(text, True)
    except (expat.ExpatError, UnicodeError):
        return False
    return True


def _is_fragment(text: str) -> bool:
    """Whether a text begins and ends with tags of HTML."""
    tags = _FIRST.match(text), _LAST.search(text, max(0, len(text) - 40))
    return all(
        tag is not None and tag[1].lower() in vocabulary.words("html_elements") for tag in tags
    )
