"""What every mechanism offers: the contract that tests run over every registered name.

In: nothing. Out: the protocols `Mechanism`, `Law`, `Restricting` and `Published`.
Not here: any mechanism (`perturb`, `select`), and the names (`papers`).
"""

from typing import Protocol, runtime_checkable

from textveil.guarantee import Claim
from textveil.mechanism.block import Block, Layout
from textveil.randomness import Flags, Ids, Randomness, Values
from textveil.table import EmbeddingTable


@runtime_checkable
class Mechanism(Protocol):
    """Replaces the protected rows of a block, and says what that costs.

    n is the number of protected positions of the block; all methods but `privatize` see public data only.
    """

    def claim(self, table: EmbeddingTable) -> Claim:
        """What is promised on this table, whatever the text."""
        ...

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """The mechanism's own parameter [n] under which no position spends more than its epsilon [n] > 0."""
        ...

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """The parameter [n] where it was set by name; None where `calibrate` is to derive it."""
        ...

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """The epsilon [n] that each protected position really spends under the parameter [n]."""
        ...

    def privatize(self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness) -> Ids:
        """The released rows, int64 [n], `PLACEHOLDER` for none."""
        ...


@runtime_checkable
class Law(Protocol):
    """A mechanism whose output law can be written down."""

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values | None:
        """ln Pr[row y | block] per protected position, [n, V], given the released rows [n] before it.

        None where these options leave no closed form.
        """
        ...


@runtime_checkable
class Restricting(Protocol):
    """A mechanism whose claim has a restricted promise: for some pairs of words only. All of it is public."""

    def within(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """The epsilon [n] of the restricted promise at each protected position under the parameter [n]."""
        ...

    def pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:
        """Which pairs of these rows [m] the promise is for: symmetric, [m, m]."""
        ...


@runtime_checkable
class Published(Protocol):
    """A mechanism of a paper whose claim an audit can hold against the law. Statements never print it."""

    def published(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> tuple[Claim, Values] | None:
        """The paper's claim and its epsilon [n] at each protected position; None: these options are not its own."""
        ...
