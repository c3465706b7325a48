"""Protection: the group of each word, public or protected.

In: the words of a batch of texts and the options. Out: `Protection`, one decision per word.
Not here: the budget of a protected word (`budget`), and what replaces it (`mechanism`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from textveil.config import WordsOptions
from textveil.randomness import Flags, Ids
from textveil.text import is_public

PUBLIC = "public"
PROTECTED = "protected"
GROUPS = ("sensitive-important", "sensitive", "important", "other")
"""Groups 1 to 4 of STAMP (section 3.1)."""


def group_numbers(labels: Sequence[str]) -> Ids:
    """Maps labels to the four groups, 0 to 3, int64.

    Any other label counts as sensitive.
    """
    return np.array(
        [GROUPS.index(label if label in GROUPS else "sensitive") for label in labels], np.int64
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Protection:
    """Decisions about the N words of a batch; the mask shows part.

    Attributes:
        public: bool [N], words that pass because they are on a public list.
        group: int16 [N], index of a word's group in `labels`.
        labels: names of the groups.
        entity: int64 [N], index of the sensitive part that a word belongs to; -1 for none.
        types: the type of each of those parts.
        hidden: bool [N], words that become a typed placeholder whatever their budget.
        named: bool [N], words that are replaced by a name of their group's type.
        moved: bool [N], dates, ages and amounts that are replaced by one near them, in the same
            form.
    """

    public: Flags
    group: NDArray[np.int16]
    labels: tuple[str, ...] = (PUBLIC, PROTECTED)
    entity: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    types: tuple[str, ...] = ()
    hidden: Flags = field(default_factory=lambda: np.empty(0, bool))
    named: Flags = field(default_factory=lambda: np.empty(0, bool))
    moved: Flags = field(default_factory=lambda: np.empty(0, bool))

    def __post_init__(self) -> None:
        count = len(self.public)
        for name, value in (("entity", -1), ("hidden", False), ("named", False), ("moved", False)):
            if len(getattr(self, name)) != count:
                object.__setattr__(self, name, np.full(count, value))

    def get_index(self, label: str) -> int:
        """Returns the index of a label in `labels`; -1 if missing."""
        return self.labels.index(label) if label in self.labels else -1

    def get_group(self, word: int) -> str:
        """Returns the group of a word; for a name just its type."""
        label: str = self.labels[self.group[word]]
        return label.partition(" ")[0] if self.named[word] else label


def find_public_words(words: Sequence[str], options: WordsOptions) -> Flags:
    """Says which words are on the public list, bool [N].

    None if `words.stopwords` is `protect`.
    """
    if options.stopwords == "protect":
        return np.zeros(len(words), bool)
    public = {word: is_public(word) for word in set(words)}
    return np.fromiter(map(public.__getitem__, words), bool, len(words))


def build_ungrouped(public: Flags) -> Protection:
    """Builds a protection with public words and one group of all others."""
    return Protection(public=public, group=np.where(public, 0, 1).astype(np.int16))
