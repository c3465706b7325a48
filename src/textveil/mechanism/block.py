"""A batch of texts for mechanisms: one ragged run of table rows.

In: rows and roles of every position. Out: `Layout`, which is public, and `Block`, which also holds
the secret rows.
Not here: where rows come from (`table.lookup`) and who decides the roles (`protect`, `budget`).
"""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from textveil.randomness import Flags, Ids

PLACEHOLDER = -1
"""Row number for "no word": the position becomes a placeholder."""


class Role(IntEnum):
    """Treatment of a position; public, part of the mask."""

    PASS = 0
    PROTECT = 1
    HOLE = 2
    """A position that is released as a placeholder, outside any window."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The public part of a block, all that a statement may use.

    Attributes:
        roles: int8 [T], a `Role` per position.
        documents: int64 [B + 1], where each text starts in the flat positions.
        unit_of: int64 [T], the word of each position (the position itself, but for word pieces).
        verbatim: the strings of the positions that pass, "" elsewhere; None: those of their rows.
        spaced: bool [T], whether whitespace precedes a position; None: before each.
    """

    roles: NDArray[np.int8]
    documents: Ids
    unit_of: Ids
    verbatim: tuple[str, ...] | None = field(default=None, repr=False)
    spaced: Flags | None = field(default=None, repr=False)
    memo: dict[object, object] = field(default_factory=dict, repr=False)
    """Cache of results about the layout.

    They are computed more than once, and live as long as the layout.
    """

    @classmethod
    def build(cls, *sizes: int) -> "Layout":
        """Builds texts of these lengths in which every position is protected."""
        total = sum(sizes)
        return cls(
            roles=np.full(total, Role.PROTECT, np.int8),
            documents=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            unit_of=np.arange(total),
        )

    @cached_property
    def positions(self) -> Ids:
        """Indices of the n protected positions, int64 [n]."""
        return np.flatnonzero(self.roles == Role.PROTECT)

    @cached_property
    def words(self) -> Ids:
        """The word of each protected position, int64 [n], rising."""
        return self.unit_of[self.positions]

    @cached_property
    def texts(self) -> Ids:
        """The number of the text of each protected position, int64 [n], rising."""
        numbers: Ids = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return numbers

    @cached_property
    def sizes(self) -> Ids:
        """Number of protected positions of each text, int64 [B]."""
        counts = np.concatenate(([0], np.cumsum(self.roles == Role.PROTECT)))
        return np.diff(counts[self.documents])


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """A layout and the table row at every position. Secret.

    Attributes:
        layout: its public part.
        rows: int64 [T].
        memo: cache of results that more than one mechanism computes for the same texts, if given;
            secret like the rows.
    """

    layout: Layout
    rows: Ids = field(repr=False)
    memo: dict[object, object] | None = field(default=None, repr=False)

    @property
    def secret(self) -> Ids:
        """The rows of the protected positions, int64 [n]."""
        return self.rows[self.layout.positions]
