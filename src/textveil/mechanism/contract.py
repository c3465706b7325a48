"""What every mechanism offers: the contract that tests run over every registered name.

In: nothing. Out: `Mechanism`, which all of them are, and what a mechanism may say of itself besides, so that attacks,
audits and measures need to know no mechanism by its class:

- `Law`: the output law is written down;
- `Contextual`: the law at a position is written down, given what a language model expects there;
- `Noisy`: noise is added to vectors, so that the law can be estimated from draws;
- `Windowed`: the vectors of neighbouring words are mixed;
- `Capped`: local DP is bounded in another way than by the diameter;
- `Restricting`, `Published`: what is promised for some pairs of words only, and what a paper promises.

That the law of a position depends on the word there alone is said by the claim (`Claim.alone`), and nowhere else.

A mechanism that selects a word, and promises a finite epsilon for any pair of words, decides by whole numbers: integer
weights and `weighted_choice`, or `Draws.integers` and `Draws.bits`. Then its law is the one that is written down, and
no word has probability 0 because of rounding. One that decides by floating-point values, as noise on vectors does, has
`guarantee.FLOATING_POINT` among its claim's assumptions. A mechanism that promises nothing may draw as it likes: the
radius of `rantext` is floating point. A contract test holds every registered mechanism to this.
Not here: any mechanism (`perturb`, `select`), and the names (`papers`).
"""

from collections.abc import Hashable
from typing import Any, Protocol, runtime_checkable

from textveil.guarantee import Claim
from textveil.mechanism.block import Block, Layout
from textveil.mechanism.context import Context
from textveil.mechanism.window import Window
from textveil.randomness import Draws, Flags, Floats, Ids, Randomness, Values
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

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """The released rows, int64 [n], `PLACEHOLDER` for none; drawn by whole numbers, see above."""
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
class Backward(Law, Protocol):
    """A law whose words that may have led to one released row can be looked at without writing down all of it."""

    def log_likelihoods(self, table: EmbeddingTable, rows: Ids, parameter: float) -> Floats | None:
        """ln Pr[row y | private row], float32 [m, V], of m released rows; each private row stands alone in its text.

        None where these options leave no shorter way than `log_probs` of every private row.
        """
        ...


class Conditional(Protocol):
    """The law at one position, what a language model expects there being known. See `Contextual`."""

    @property
    def kind(self) -> Hashable:
        """Laws of one kind share what `near` computes."""
        ...

    def near(self, rows: Ids) -> Any:
        """What can be computed of some private rows [m] whatever the language model expects; 50 MB for 256 rows."""
        ...

    def log_probs(self, near: Any, released: Ids, parameter: Values) -> Values:
        """ln P(released row [q] | private row of `near`) under the parameter [q] of each, [q, m]."""
        ...


@runtime_checkable
class Contextual(Mechanism, Protocol):
    """A mechanism whose law at a position may depend on what a language model expects there.

    Whoever knows that, and the mechanism's options, knows the law. Where the claim says `alone`, nothing is looked at.
    """

    @property
    def context(self) -> Context:
        """What the language model is shown, and in which order positions are released."""
        ...

    def conditional(self, table: EmbeddingTable, logits: Floats) -> Conditional:
        """The law where the language model expects these logits [V]."""
        ...

    def approximation(self, table: EmbeddingTable) -> str:
        """How `conditional` estimates the law on such a table, as words that follow "estimated"; empty: it is exact."""
        ...


@runtime_checkable
class Noisy(Mechanism, Protocol):
    """A mechanism that adds noise to vectors and releases the nearest word of a public table.

    Its law is an integral over a cell. It can be estimated by drawing noisy vectors and weighing them by their density.
    """

    @property
    def exclude_original(self) -> bool:
        """Whether the word itself is never released, but the nearest other one."""
        ...

    @property
    def noise_law(self) -> str | None:
        """The textbook law of the noise (`noise.NoiseName`), to test draws against; None for any other."""
        ...

    @property
    def radius(self) -> float | None:
        """The epsilon that is spent besides, on the length of a word's vector; None where it is not drawn."""
        ...

    def view(self, table: EmbeddingTable) -> EmbeddingTable:
        """The table that vectors are taken from, and released words are the nearest in."""
        ...

    def rate(self, table: EmbeddingTable, parameter: Values) -> Values:
        """epsilon [m] per unit of distance in the view, under the parameter [m]."""
        ...

    def sample(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:
        """Noisy vectors [m, d] around the vectors of some words [m] in the view, under the parameter [m] of each."""
        ...

    def log_density(self, table: EmbeddingTable, noisy: Floats, parameter: float) -> Floats:
        """ln of the density at noisy vectors [m, d] around the vector of each word, but for a constant: [m, V]."""
        ...


@runtime_checkable
class Windowed(Mechanism, Protocol):
    """A mechanism that mixes the vectors of neighbouring words, and releases the nearest word of a public table."""

    @property
    def mix(self) -> Window:
        """The window; one word long, it mixes nothing."""
        ...

    @property
    def exclude_original(self) -> bool:
        """Whether the word itself is never released, but the nearest other one."""
        ...

    def view(self, table: EmbeddingTable) -> EmbeddingTable:
        """The table that vectors are taken from, and released words are the nearest in."""
        ...


@runtime_checkable
class Capped(Protocol):
    """A mechanism with a metric claim whose loss for any two words is also bounded in another way."""

    def most(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """What each protected position loses at most, in local DP, under the parameter [n]; infinite where unbounded.

        All that the position loses is in it, rounding too.
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

    def published(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> tuple[Claim, Values] | None:
        """The paper's claim and its epsilon [n] at each protected position; None: these options are not its own."""
        ...
