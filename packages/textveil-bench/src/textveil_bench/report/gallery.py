"""Gallery: texts of public data sets before and after, with changes marked.

In: a study, texts stored by a run. Out: HTML.
Not here: which texts a run stores (`run`), and how they are read (`rows`).
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from textveil_bench.overlap import match_words
from textveil_bench.report.html import Html, build_element, fold_content, format_budget, join_parts
from textveil_bench.report.study import Study

GalleryText = Mapping[str, Any]
"""A text before and after: data, entry, series, budget, original, released."""

_WORD = re.compile(r"<\w+>|\w+")
"""Pattern of a word; a placeholder counts as one."""


def build_gallery(study: Study, gallery_texts: Sequence[GalleryText]) -> Html:
    """Builds the gallery: each text, followed by its releases.

    Releases that are not near the reference risk are folded.

    Args:
        study: the series that made these releases.
        gallery_texts: texts of its data sets.
    """
    parts: list[str] = []
    for data in study.data:
        data_texts = [entry for entry in gallery_texts if entry["data"] == data.name]
        near_budgets = {
            (name, repr(study.find_nearest_cell(series).budget))
            for name, series in study.select_best_series(data).items()
        }
        texts = dict.fromkeys(entry["original"] for entry in data_texts)
        if data_texts:
            parts.append(build_element("h3", study.format_title(data)))
        for text in texts:
            releases = [entry for entry in data_texts if entry["original"] == text]
            first = [
                entry
                for entry in releases
                if (entry["series"], repr(_get_budget(entry))) in near_budgets
            ]
            parts.append(
                _build_text(text, first, [entry for entry in releases if entry not in first])
            )
    return join_parts(parts)


def _build_text(original: str, first: Sequence[GalleryText], folded: Sequence[GalleryText]) -> Html:
    parts = [build_element("p", original, class_="text original"), _build_releases(first)]
    if folded:
        parts.append(
            fold_content(
                f"{len(folded):,} more releases" if first else f"{len(folded):,} releases",
                _build_releases(folded),
            )
        )
    return build_element("section", join_parts(parts), class_="shown")


def _build_releases(entries: Sequence[GalleryText]) -> Html:
    items = [
        join_parts(
            (
                build_element("dt", _format_title(entry)),
                build_element(
                    "dd", mark_changes(entry["original"], entry["released"]), class_="text"
                ),
            )
        )
        for entry in entries
    ]
    return build_element("dl", join_parts(items)) if items else Html("")


def _get_budget(entry: GalleryText) -> Any:
    return (entry.get("budget") or {}).get("value")


def _format_title(entry: GalleryText) -> str:
    return ", ".join(filter(None, (entry["series"], format_budget(entry.get("budget")))))


def mark_changes(original: str, released: str) -> Html:
    """Marks released words that are not in the original in this order."""
    before, after = _WORD.findall(original.casefold()), list(_WORD.finditer(released))
    unchanged = {
        position for _, position in match_words(before, [word[0].casefold() for word in after])
    }
    parts, end = [], 0
    for i, word in enumerate(after):
        text = escape(word[0])
        parts += [
            escape(released[end : word.start()]),
            text if i in unchanged else f"<mark>{text}</mark>",
        ]
        end = word.end()
    return Html("".join(parts) + escape(released[end:]))
