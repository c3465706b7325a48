"""The gallery: texts of public data sets before and after, with the words marked that changed.

In: texts as a run kept them. Out: HTML.
Not here: which texts a run keeps (`run`), and how they are read (`stored`).
"""

import re
from collections.abc import Sequence
from html import escape

from textveil.bench.report.markup import Html, element, joined, unfolding
from textveil.bench.report.stored import Shown
from textveil.overlap import matches

_WORD = re.compile(r"<\w+>|\w+")
"""A placeholder is one word."""

OPEN = 3
"""Texts of a data set that are shown; the rest unfolds."""


def gallery(shown: Sequence[Shown]) -> Html:
    """Every text as it was, and below it its releases."""
    if not shown:
        return element("p", "No texts were kept.")
    texts: dict[tuple[str, str], list[Shown]] = {}
    for each in shown:
        texts.setdefault((each.data, each.original), []).append(each)
    parts: list[str] = []
    for data in dict.fromkeys(name for name, _ in texts):
        own = [_text(releases) for (name, _), releases in texts.items() if name == data]
        parts += [element("h3", data), *own[:OPEN]]
        if own[OPEN:]:
            parts.append(unfolding(f"{len(own) - OPEN} more of {data}", joined(own[OPEN:])))
    return joined(parts)


def _text(releases: Sequence[Shown]) -> Html:
    original = element("p", releases[0].original, class_="text original")
    own = joined(
        joined((element("dt", _title(each)), element("dd", marked(each.original, each.released), class_="text")), "")
        for each in releases
    )
    return element("section", joined((original, element("dl", own))), class_="shown")


def _title(shown: Shown) -> str:
    return shown.series if shown.budget is None else f"{shown.series}, {shown.budget}"


def marked(original: str, released: str) -> Html:
    """The released text, with the words marked that do not stand in the original in this order."""
    before, after = _WORD.findall(original.casefold()), list(_WORD.finditer(released))
    kept = {place for _, place in matches(before, [word[0].casefold() for word in after])}
    parts, end = [], 0
    for i, word in enumerate(after):
        text = escape(word[0])
        parts += [escape(released[end : word.start()]), text if i in kept else f"<mark>{text}</mark>"]
        end = word.end()
    return Html("".join(parts) + escape(released[end:]))
