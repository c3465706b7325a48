"""What becomes of single words: retention, cosine, and the share outside the table.

In: a case. Out: outcomes, a value for each protected position.
Not here: what could have become of them (`mapping`), and texts as a whole (`texts`).
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
    """The share of protected positions whose private row is released; a placeholder keeps nothing.

    A word outside the table is kept where the row that stands for it is released. Source: Cape,
    appendix B.3.
    """
    is_kept = case.view.visible_word_rows == case.truth.rows
    positions = np.arange(len(is_kept))
    yield Outcome(
        source="retention",
        metric="retention",
        where=positions,
        values=is_kept.astype(np.float64),
        note="a word outside the table is kept if the row that stands in for it comes out",
    )


@annotate_measure(
    "nothing was drawn: all protected words are placeholders, or none is there", wordwise=True
)
def cosine(case: Case) -> Iterator[Outcome]:
    """The cosine of the rows of input and output word, from -1 to 1; placeholders are left out."""
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
    "no word is protected, or words.oov takes those outside the table out of the protected ones",
    wordwise=True,
)
def unknown(case: Case) -> Iterator[Outcome]:
    """The share of protected words that are not in the table; another row stands for each of them.

    Nothing where `words.oov` takes such words out of the protected ones. In the unit wordpiece a
    word is unknown where
    one of its pieces is, and counts once.
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
