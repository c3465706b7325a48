"""Word measures: retention, cosine, and the share outside the table.

In: a case. Out: outcomes, a value for each protected position.
Not here: the probabilities of releases (`mapping`), and texts as a whole (`texts`).
"""

from collections.abc import Iterator

import numpy as np

from textveil.evaluate.attack import Case, Outcome
from textveil.mechanism import PLACEHOLDER
from textveil.randomness import Flags
from textveil.table import WordPieces
from textveil_bench.attack import compute_cosines
from textveil_bench.measure.measure_contract import annotate_measure


@annotate_measure("no word is protected", wordwise=True)
def retention(case: Case) -> Iterator[Outcome]:
    """Measures the share of protected positions released unchanged; placeholders count as changed.

    A word outside the table counts as unchanged if its replacement row is released. Source: Cape,
    appendix B.3.
    """
    is_kept = case.view.visible_word_rows == case.truth.rows
    positions = np.arange(len(is_kept))
    yield Outcome(
        source="retention",
        metric="retention",
        where=positions,
        values=is_kept.astype(np.float64),
        note="a word outside the table is kept if its replacement row is released",
    )


@annotate_measure(
    "no word was drawn: all protected words are placeholders, or no word was protected",
    wordwise=True,
)
def cosine(case: Case) -> Iterator[Outcome]:
    """Measures cosines of input and output rows, -1 to 1, without placeholders."""
    positions = np.flatnonzero(case.view.visible_rows != PLACEHOLDER)
    released, private = case.view.visible_word_rows[positions], case.truth.rows[positions]
    similarities = compute_cosines(case.view.origin, released, private)
    changed = released != private
    yield Outcome(
        source="cosine", metric="cosine", where=positions, values=similarities, share=False
    )
    yield Outcome(
        source="cosine",
        metric="cosine of changed words",
        where=positions[changed],
        values=similarities[changed],
        share=False,
        headline=False,
    )


@annotate_measure(
    "no word is protected, or words.oov excludes words outside the table from protection",
    wordwise=True,
)
def unknown(case: Case) -> Iterator[Outcome]:
    """Measures the share of protected words that are not in the table.

    Another row replaces each of them. Nothing is yielded if `words.oov` excludes such words from
    protection. In the unit wordpiece, a word is unknown if one of its pieces is, and counts once.
    """
    view = case.view
    if view.words.oov != "surrogate":
        return
    first = np.flatnonzero(np.diff(view.item, prepend=-1))
    words = [case.secret_words[i] for i in first.tolist()]
    distinct = list(dict.fromkeys(words))
    table_words = dict(zip(distinct, _lookup_words(case, distinct).tolist(), strict=True))
    values = np.array([not table_words[word] for word in words], np.float64)
    yield Outcome(source="oov", metric="out of the table", where=first, values=values)


def _lookup_words(case: Case, words: list[str]) -> Flags:
    view = case.view
    if view.words.unit == "wordpiece":
        return (
            WordPieces.load(view.words.tokenizer, view.table).split(words)[1]
            if words
            else np.empty(0, bool)
        )
    return view.origin.lookup(words)[1]
