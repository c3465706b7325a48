"""A mechanism over more than one book, by a position's group.

In: a mechanism, a view of a table by books. Out: the same mechanism, run over each book separately.
Not here: which group a word is in (`protect`), and the books (`table.codebook`).

The rows of such a view are the codes of one book after the other, so that a row says which book it
is of. That is no secret: it follows from the group of the word, which is in the mask. Between rows
of different books nothing is claimed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from textveil.guarantee import Claim
from textveil.mechanism.block import PLACEHOLDER, Block, Layout, Role
from textveil.mechanism.contract import Backward, Law, Mechanism
from textveil.randomness import Floats, Ids, Randomness, Values
from textveil.table import EmbeddingTable


@dataclass(frozen=True, kw_only=True)
class BookMechanism:
    """A mechanism that draws each word alone, run over each book.

    The promise is for any two words of one group: their codes are of one book.

    Attributes:
        mechanism: the mechanism that draws.
    """

    mechanism: Mechanism

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns the claim over all books.

        Of the same kind, with the largest of their numbers.
        """
        claims = [self.mechanism.claim(view) for view in table.views]
        return replace(
            claims[0],
            table=table.name,
            diameter=max(claim.diameter for claim in claims),
            additive=max(claim.additive for claim in claims),
            most=max(claim.most for claim in claims),
            restricted=None,
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Returns the smallest parameter that any book requires."""
        parameters: Values = np.min(
            [self.mechanism.calibrate(view, layout, epsilon) for view in table.views], axis=0
        )
        return parameters

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns the parameter that was set by name, for any book."""
        return self.mechanism.parameters(table.views[0], layout)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns the largest loss over the books."""
        losses: Values = np.max(
            [self.mechanism.spend(view, layout, parameter) for view in table.views], axis=0
        )
        return losses

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Returns the released rows [n], each of its position's book."""
        released = np.full(len(parameter), PLACEHOLDER, np.int64)
        for view, start, members, part in self._split_by_book(table, block):
            rows = self.mechanism.privatize(view, part, parameter[members], rng=rng)
            released[members] = np.where(rows == PLACEHOLDER, rows, rows + start)
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values | None:
        """Returns ln Pr[row y | block] per position, [n, V].

        Rows of another book are impossible.
        """
        law = np.full((len(parameter), len(table)), -np.inf)
        for view, start, members, part in self._split_by_book(table, block):
            part_law = None
            if isinstance(self.mechanism, Law):
                # `released` is left out: the mechanism draws each word alone.
                part_law = self.mechanism.log_probs(view, part, parameter[members])
            if part_law is None:
                return None
            law[members, start : start + len(view)] = part_law
        return law

    def log_likelihoods(self, table: EmbeddingTable, rows: Ids, parameter: float) -> Floats | None:
        """Returns ln Pr[row y | private row], float32 [m, V].

        For m released rows.
        """
        if not isinstance(self.mechanism, Backward):
            return None
        law, start = np.full((len(rows), len(table)), -np.inf, np.float32), 0
        for view in table.views:
            lines = np.flatnonzero((rows >= start) & (rows < start + len(view)))
            part_law = self.mechanism.log_likelihoods(view, rows[lines] - start, parameter)
            if part_law is None:
                return None
            law[lines, start : start + len(view)] = part_law
            start += len(view)
        return law

    @staticmethod
    def _split_by_book(
        table: EmbeddingTable, block: Block
    ) -> Iterator[tuple[EmbeddingTable, int, Ids, Block]]:
        """Yields the part of a block for each book.

        Also for a book without positions, so that the number of draws reveals nothing and depends
        on nothing.

        Yields:
            The book's view, its first row, its positions, and the block with these alone.
        """
        layout, secret, start = block.layout, block.secret, 0
        for view in table.views:
            members = np.flatnonzero((secret >= start) & (secret < start + len(view)))
            roles, rows = layout.roles.copy(), np.zeros_like(block.rows)
            roles[np.delete(layout.positions, members)] = Role.HOLE
            rows[layout.positions[members]] = secret[members] - start
            yield (
                view,
                start,
                members,
                # The memo holds results about the whole layout, which are wrong for a part.
                Block(layout=replace(layout, roles=roles, memo={}), rows=rows),
            )
            start += len(view)


def wrap_books(mechanism: Mechanism, table: EmbeddingTable) -> Mechanism:
    """Returns the mechanism, or one run over each of the table's books."""
    return BookMechanism(mechanism=mechanism) if len(table.views) > 1 else mechanism


def unwrap_books(mechanism: Mechanism) -> Mechanism:
    """Returns the mechanism that runs over one book.

    It is the mechanism itself, or the one inside a `BookMechanism`.
    """
    return mechanism.mechanism if isinstance(mechanism, BookMechanism) else mechanism
