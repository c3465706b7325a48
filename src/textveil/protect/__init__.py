"""Protection: which words are public, which are protected, and in which group.

In: the words of a batch of texts and the options. Out: `Protection`, one decision per word.
Not here: how much a protected word may spend (`budget`), and what replaces it (`mechanism`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textveil.config import WordsOptions
from textveil.words import is_public

PUBLIC = "public"
PROTECTED = "protected"


@dataclass(frozen=True, kw_only=True, eq=False)
class Protection:
    """One decision per word; it is released as part of the mask.

    Attributes:
        public: bool [N], words that pass because they stand on a public list.
        group: int16 [N], the number of a word's group in `labels`.
        labels: names of the groups.
    """

    public: NDArray[np.bool_]
    group: NDArray[np.int16]
    labels: tuple[str, ...] = (PUBLIC, PROTECTED)


def protect(words: Sequence[str], options: WordsOptions) -> Protection:
    """Decides for every word: public if it is on the list and `words.stopwords` is `pass`, else protected."""
    if options.stopwords == "protect":
        public = np.zeros(len(words), bool)
    else:
        listed = {word: is_public(word) for word in set(words)}
        public = np.fromiter(map(listed.__getitem__, words), bool, len(words))
    return Protection(public=public, group=np.where(public, 0, 1).astype(np.int16))
