"""The contract of mechanisms, which tests check for every registered name.

In: nothing. Out: `Mechanism`, which all of them are, and further protocols that a mechanism may
implement, so that attacks, audits and measures need to know no mechanism by its class:

- `Law`: the output law is written down;
- `Contextual`: the law at a position is written down, given what a language model expects there;
- `Noisy`: noise is added to vectors, so that the law can be estimated from draws;
- `Windowed`: the vectors of neighbouring words are mixed;
- `Capped`: local DP is bounded in another way than by the diameter;
- `Restricting`, `Published`: the promise for some pairs of words only, and that of a paper.

Of one that has none of these, attacks know what it draws for single words, and no more.

That the law of a position depends on the word there alone is said by the claim (`Claim.alone`), and
nowhere else.

A mechanism that selects a word, and promises a finite epsilon for any pair of words, decides by
whole numbers: integer weights and `choose_weighted`, or `Draws.integers` and `Draws.bits`. Then its
law is the one that is written down, and no word has probability 0 because of rounding. One that
decides by floating-point values, as noise on vectors does, has `guarantee.FLOATING_POINT` among its
claim's assumptions. A mechanism that promises nothing may draw as it likes: the radius of `rantext`
is floating point. A contract test holds every registered mechanism to this.
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
    """Replaces the protected rows of a block, and states the cost.

    n is the number of protected positions of the block; all methods but `privatize` see public data
    only.
    """

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns the promise on this table, for any text."""
        ...

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Computes the mechanism's parameter [n] from epsilon [n] > 0.

        Under it no position spends more than its epsilon.
        """
        ...

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns the parameter [n] that was set by name.

        None where `calibrate` is to derive it.
        """
        ...

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Computes the true epsilon [n] of each position under the parameter [n]."""
        ...

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Draws the released rows, int64 [n], `PLACEHOLDER` for none.

        The draw is by whole numbers, see above.
        """
        ...


@runtime_checkable
class Law(Protocol):
    """A mechanism whose output law can be written down."""

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values | None:
        """Returns ln Pr[row y | block] per protected position, [n, V].

        Given the released rows [n] before it. None where these options leave no closed form.
        """
        ...


@runtime_checkable
class Backward(Law, Protocol):
    """A law that can list a released row's likely private words.

    It need not write down the whole law for that.
    """

    def log_likelihoods(self, table: EmbeddingTable, rows: Ids, parameter: float) -> Floats | None:
        """Returns ln Pr[row y | private row], float32 [m, V].

        For m released rows; each private row is alone in its text. None where these options leave
        no shorter way than `log_probs` of every private row.
        """
        ...


class Conditional(Protocol):
    """The law at one position, given a language model's logits.

    See `Contextual`.
    """

    @property
    def kind(self) -> Hashable:
        """Key of laws that share the result of `score_distances`."""
        ...

    def score_distances(self, rows: Ids) -> Any:
        """Computes the part of private rows [m] that needs no logits.

        50 MB for 256 rows.
        """
        ...

    def log_probs(self, distance_scores: Any, released: Ids, parameter: Values) -> Values:
        """Returns ln P(released row [q] | private row of `distance_scores`), [q, m].

        Under the parameter [q] of each released row.
        """
        ...


@runtime_checkable
class Contextual(Mechanism, Protocol):
    """A mechanism whose law at a position may depend on logits.

    The logits are those of a language model there. Whoever knows them, and the mechanism's options,
    knows the law. Where the claim says `alone`, no context is used.
    """

    @property
    def context(self) -> Context:
        """The language model's view, and the order of release."""
        ...

    def build_conditional(self, table: EmbeddingTable, logits: Floats) -> Conditional:
        """Returns the law for a language model's logits [V]."""
        ...

    def describe_approximation(self, table: EmbeddingTable) -> str:
        """Describes how `build_conditional` estimates the law on a table.

        The words follow "estimated"; empty: it is exact.
        """
        ...


@runtime_checkable
class Noisy(Mechanism, Protocol):
    """A mechanism that adds noise to vectors and releases the nearest word.

    The words are those of a public table. Its law is an integral over a cell. It can be estimated
    by drawing noisy vectors and weighing them by their density.
    """

    @property
    def exclude_original(self) -> bool:
        """True if the word itself is never released.

        Then the nearest other word is.
        """
        ...

    @property
    def noise_law(self) -> str | None:
        """The textbook law of the noise (`noise.NoiseName`), for tests of draws.

        None for any other law.
        """
        ...

    @property
    def radius(self) -> float | None:
        """The additional epsilon for the length of a word's vector.

        None where it is not drawn.
        """
        ...

    def get_view(self, table: EmbeddingTable) -> EmbeddingTable:
        """Returns the table of the vectors and of the nearest words."""
        ...

    def compute_rate(self, table: EmbeddingTable, parameter: Values) -> Values:
        """Returns epsilon [m] per unit of distance in the view.

        Under the parameter [m].
        """
        ...

    def sample(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:
        """Draws noisy vectors [m, d] around words [m] of the view.

        Under the parameter [m] of each.
        """
        ...

    def log_density(self, table: EmbeddingTable, noisy: Floats, parameter: float) -> Floats:
        """Returns ln of the density at noisy vectors [m, d], [m, V].

        Around the vector of each word, up to a constant.
        """
        ...


@runtime_checkable
class Windowed(Mechanism, Protocol):
    """A mechanism that mixes the vectors of neighbouring words.

    It releases the nearest word of a public table.
    """

    @property
    def mix(self) -> Window:
        """The window; with length 1 it mixes nothing."""
        ...

    @property
    def exclude_original(self) -> bool:
        """True if the word itself is never released.

        Then the nearest other word is.
        """
        ...

    def get_view(self, table: EmbeddingTable) -> EmbeddingTable:
        """Returns the table of the vectors and of the nearest words."""
        ...


@runtime_checkable
class Capped(Protocol):
    """A mechanism with a metric claim and another bound on the loss.

    The other bound holds for any two words.
    """

    def compute_local_dp_cap(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> Values:
        """Returns the largest local DP loss of each position; infinite if unbounded.

        Under the parameter [n]. It includes all that the position loses, rounding too.
        """
        ...


@runtime_checkable
class Restricting(Protocol):
    """A mechanism with a restricted promise, for some pairs of words only.

    All of it is public.
    """

    def compute_restricted_epsilon(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> Values:
        """Returns the epsilon [n] of the restricted promise at each position.

        Under the parameter [n].
        """
        ...

    def mark_restricted_pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:
        """Says for which pairs of rows [m] the promise holds: [m, m].

        Symmetric.
        """
        ...


@runtime_checkable
class Published(Protocol):
    """A mechanism of a paper, whose claim an audit can check.

    The audit compares it with the law. Statements never print it.
    """

    def build_paper_claim(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> tuple[Claim, Values] | None:
        """Returns the paper's claim and its epsilon [n] at each position.

        None where these options are not the paper's.
        """
        ...
