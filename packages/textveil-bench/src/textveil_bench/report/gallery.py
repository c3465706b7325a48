"""The gallery: texts of public data sets before and after, with changed words marked.

In: a study, texts kept by a run. Out: HTML.
Not here: which texts a run keeps (`run`), and how they are read (`rows`).
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from textveil_bench.overlap import matches
from textveil_bench.report.markup import Html, budget, element, joined, unfolding
from textveil_bench.report.study import Study

Shown = Mapping[str, Any]
"""A text before and after: data, entry, series, budget, original, released."""

_WORD = re.compile(r"<\w+>|\w+")
"""A placeholder counts as one word."""


def gallery(study: Study, shown: Sequence[Shown]) -> Html:
    """Each text followed by its releases; those not near the reference risk are folded.

    Args:
        study: the series that made these releases.
        shown: texts of its data sets.
    """
    parts: list[str] = []
    for data in study.data:
        own = [each for each in shown if each["data"] == data.name]
        near = {
            (name, repr(study.nearest(series).budget))
            for name, series in study.chosen(data).items()
        }
        texts = dict.fromkeys(each["original"] for each in own)
        if own:
            parts.append(element("h3", study.title(data)))
        for text in texts:
            releases = [each for each in own if each["original"] == text]
            first = [each for each in releases if (each["series"], repr(_budget(each))) in near]
            parts.append(_text(text, first, [each for each in releases if each not in first]))
    return joined(parts)


def _text(original: str, first: Sequence[Shown], rest: Sequence[Shown]) -> Html:
    parts = [element("p", original, class_="text original"), _releases(first)]
    if rest:
        parts.append(
            unfolding(
                f"{len(rest):,} more releases" if first else f"{len(rest):,} releases",
                _releases(rest),
            )
        )
    return element("section", joined(parts), class_="shown")


def _releases(shown: Sequence[Shown]) -> Html:
    own = [
        joined(
            (
                element("dt", _title(each)),
                element("dd", marked(each["original"], each["released"]), class_="text"),
            )
        )
        for each in shown
    ]
    return element("dl", joined(own)) if own else Html("")


def _budget(shown: Shown) -> Any:
    return (shown.get("budget") or {}).get("value")


def _title(shown: Shown) -> str:
    return ", ".join(filter(None, (shown["series"], budget(shown.get("budget")))))


def marked(original: str, released: str) -> Html:
    """The released text, with words marked that are not in the original in this order."""
    before, after = _WORD.findall(original.casefold()), list(_WORD.finditer(released))
    kept = {place for _, place in matches(before, [word[0].casefold() for word in after])}
    parts, end = [], 0
    for i, word in enumerate(after):
        text = escape(word[0])
        parts += [
            escape(released[end : word.start()]),
            text if i in kept else f"<mark>{text}</mark>",
        ]
        end = word.end()
    return Html("".join(parts) + escape(released[end:]))
