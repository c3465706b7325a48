"""Gallery: texts of public data sets before and after, with changes marked.

In: a study, texts stored by a run; a library, and what was made with it. Out: HTML.
Not here: which texts a run stores (`run`), and how they are read (`rows`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any

from textveil.guarantee import format_number
from textveil.library import Library, describe_baseline
from textveil.pipeline import Privatizer, Synthesis, TextPrivatizer, Votes
from textveil_bench.overlap import match_words
from textveil_bench.report.html import (
    Html,
    build_element,
    escape_html,
    fold_content,
    format_budget,
    join_parts,
)
from textveil_bench.report.study import Study

GalleryText = Mapping[str, Any]
"""A text before and after: data, entry, series, budget, original, released."""

_WORD = re.compile(r"<\w+>|\w+")
"""Pattern of a word; a placeholder counts as one."""


WORD_PROFILE = "data"
"""The profile of releases word by word beside whole texts."""

CORPUS_LINES = 12
"""The number of texts of a corpus that are shown."""


@dataclass(frozen=True, kw_only=True)
class WholeTextGallery:
    """Texts before and after, word by word and as whole texts at one epsilon for a document.

    Attributes:
        library: the public texts.
        epsilon: for a document.
        votes: of a private corpus; None to show no synthesized one.
        seed: for tests: repeats the draws, and the statements say so.
    """

    library: Library
    epsilon: float
    votes: Votes | None = None
    seed: int | None = None

    def build(self, texts: Sequence[str]) -> Html:
        """Builds the gallery: each text with its releases, then lines of a corpus."""
        parts = [_build_section(text, self._yield_releases(text)) for text in texts]
        if self.votes is not None:
            parts.append(_build_corpus(self.votes.corpus(self.library, count=CORPUS_LINES)))
        parts.append(build_element("p", describe_baseline(self.library)))
        return join_parts(parts)

    def _yield_releases(self, text: str) -> Iterator[Html]:
        yield from self._release_words(text)
        if self.library.contains([text]).any():
            yield _build_release(
                "a public text in its place", "", "This text stands in the library itself."
            )
            return
        privatizer = TextPrivatizer(self.library, epsilon=self.epsilon, seed=self.seed)
        whole = privatizer.privatize(text)
        title = f"a public text in its place, epsilon {self.epsilon:g} for the document"
        yield _build_release(title, escape_html(whole.text), whole.guarantee.summary())

    def _release_words(self, text: str) -> Iterator[Html]:
        """Yields the release word by word, at the same epsilon for all words together."""
        first = Privatizer.from_profile(WORD_PROFILE, seed=self.seed).privatize(text)
        if (count := first.guarantee.protected) == 0:
            return
        share = self.epsilon / count
        words = Privatizer.from_profile(WORD_PROFILE, epsilon=share, seed=self.seed).privatize(text)
        title = (
            f"word by word, epsilon {self.epsilon:g} for the document: {format_number(share)} for "
            f"each of {count:,} words"
        )
        yield _build_release(title, mark_changes(text, words.text), words.guarantee.summary())


def _build_section(original: str, releases: Iterator[Html]) -> Html:
    parts = [build_element("p", original, class_="text original")]
    parts.append(build_element("dl", join_parts(releases)))
    return build_element("section", join_parts(parts), class_="shown")


def _build_release(title: str, content: str, statement: str) -> Html:
    return join_parts(
        (
            build_element("dt", title),
            build_element("dd", content, class_="text"),
            build_element("dd", build_element("small", statement)),
        )
    )


def _build_corpus(corpus: Synthesis) -> Html:
    lines = (
        build_element("li", f"{row['label']}: {row['text']}" if "label" in row else row["text"])
        for row in islice(corpus.yield_rows(), CORPUS_LINES)
    )
    parts = [
        build_element("h3", "Lines of a corpus that follows from the votes"),
        build_element("ul", join_parts(lines)),
        build_element("p", build_element("small", corpus.guarantee.summary())),
    ]
    return build_element("section", join_parts(parts), class_="shown")


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
