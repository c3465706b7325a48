"""Mechanisms and pipelines with one defect each, as public code has had them, beside the honest ones.

In: a name. Out: `build(name)`, which makes the privatizer; `TWINS`, which names the check that has to find each defect.
Not here: the checks (`textveil_bench.audit.run`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from textveil.errors import BudgetError
from textveil.guarantee import Claim, Restricted
from textveil.mechanism import (
    Block,
    BucketRule,
    Exponential,
    Hybrid,
    Layout,
    MultivariateLaplace,
    Perturb,
    Select,
    Staircase,
    VonMisesFisher,
    Window,
)
from textveil.mechanism.papers import (
    cape,
    custext,
    d_chi_stencil,
    exponential,
    noise,
    polar,
    rankcape,
    rantext,
)
from textveil.pipeline.privatizer import Privatizer
from textveil.pipeline.results import Result
from textveil.randomness.samplers import choose_weighted
from textveil.randomness.streams import Randomness, SeededRandomness
from textveil.table.embedding import EmbeddingTable
from textveil.text.released import Item, Mask, Released

EPSILON = 4.0
SHARP = 30.0
"""With this budget the farthest words are more than the 20 nats apart that single precision can bridge."""


@cache
def table() -> EmbeddingTable:
    """60 words x 8 in 30 close pairs, so that tails and small distances are looked at."""
    rows = np.random.default_rng(5).normal(size=(30, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    near = rows + 0.02 * np.random.default_rng(6).normal(size=rows.shape) / np.sqrt(8)
    syllables = [a + b for a in ("bal", "dor", "fen", "gim", "kus", "lot") for b in "aeiou"]
    words = [s + "rak" for s in syllables] + [s + "tev" for s in syllables]
    return EmbeddingTable.build(name="pairs", words=words, vectors=np.concatenate((rows, near)))


# ---- mechanisms -------------------------------------------------------------------------------------------


class HalfForgotten(Select):
    """The parameter is taken for epsilon: c where the bound is 2c, or Cape's nominal epsilon."""

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return epsilon

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return parameter


class DoubledLaw(Select):
    """Half of what is spent is printed."""

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return super().calibrate(table, layout, 2 * epsilon)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return super().spend(table, layout, parameter) / 2


class DoubledNoise(Perturb):
    """Half of what is spent is printed."""

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return super().calibrate(table, layout, 2 * epsilon)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return super().spend(table, layout, parameter) / 2


def _law(weights: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(weights / weights.sum(axis=1, keepdims=True))


class AllWeights(Exponential):
    """Draws from all weights of a row, whatever they are."""

    def draw(self, draws: Any, table: EmbeddingTable, rows: Any, c: Any, among: Any = None) -> Any:
        return choose_weighted(draws, self.compute_weights(table.distances(rows), c))


class TopK(AllWeights):
    """Only the nearest ten candidates have a weight."""

    def compute_weights(self, distances: Any, c: Any) -> Any:
        limit = np.sort(distances, axis=1)[:, [min(10, distances.shape[1] - 2)]]
        return np.where(distances <= limit, super().compute_weights(distances, c), 0)

    def log_probs(self, distances: Any, c: Any) -> Any:
        return _law(self.compute_weights(distances, c))


class TopKUnwritten(Select):
    """The same without a written law: only draws can be had."""

    log_probs = None  # type: ignore[assignment]


class FloorOfOne(AllWeights):
    """Small integer weights, rounded, at least 1."""

    def compute_weights(self, distances: Any, c: Any) -> Any:
        return np.maximum(1, np.rint(2.0**10 * np.exp(-c[:, None] * distances))).astype(np.int64)

    def log_probs(self, distances: Any, c: Any) -> Any:
        return _law(self.compute_weights(distances, c))


class Vickrey(Perturb):
    """The second nearest word where the nearest is the true one."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        view = self.get_view(table)
        released = np.empty(len(block.secret), np.int64)
        for chunk, noisy in self._add_noise(view, block, parameter, rng):
            first = view.nearest(noisy)
            second = view.nearest(noisy, exclude=first)
            released[chunk] = np.where(first == block.secret[chunk], second, first)
        return released


class Excluding(Perturb):
    """Never the word itself, and a finite claim."""

    def claim(self, table: EmbeddingTable) -> Claim:
        return replace(super().claim(table), kind="metric", reason="")

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return parameter


class FixedNoise(Perturb):
    """The scale of the noise does not depend on the budget."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        return super().privatize(table, block, np.full(len(parameter), EPSILON), rng=rng)


class GroupOfTheSecret(Perturb):
    """Every second word of the table counts as insensitive and gets four times the parameter; the mean is printed."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        return super().privatize(
            table, block, parameter * np.where(block.secret % 2, 1.0, 0.25), rng=rng
        )


class LargestBudget(Select):
    """Every word of a call gets the largest budget of the call; its own is printed."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        return super().privatize(table, block, np.full(len(parameter), parameter.max()), rng=rng)


class LooseInLongTexts(Perturb):
    """Four times the parameter in texts of more than one word."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        sizes = np.repeat(block.layout.sizes, block.layout.sizes)
        return super().privatize(table, block, np.where(sizes > 1, 4.0, 1.0) * parameter, rng=rng)


class LooseLaterRows(Perturb):
    """Words after the eighth of the table get four times the parameter."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        return super().privatize(
            table, block, np.where(block.secret >= 8, 4.0, 1.0) * parameter, rng=rng
        )


class LaterRowsVerbatim(Perturb):
    """Words after the eighth of the table come out as they are."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        released = super().privatize(table, block, parameter, rng=rng)
        return np.where(block.secret >= 8, block.secret, released)


class TextsRunOn(Perturb):
    """Where texts end is forgotten: windows reach into the next one."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        ends = np.array([0, len(block.layout.roles)])
        layout = replace(block.layout, documents=ends, memo={})
        return super().privatize(table, Block(layout=layout, rows=block.rows), parameter, rng=rng)


class SteeperStairs(Staircase):
    """The first level has a quarter more weight than it may."""

    def compute_weights(self, epsilon: Any) -> Any:
        return super().compute_weights(epsilon + 0.25)

    def compute_loss(self, epsilon: Any) -> Any:
        return epsilon


class NotANumber(Select):
    """A law full of NaN."""

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Any, released: Any = None
    ) -> Any:
        return np.full((len(parameter), len(table)), np.nan)


class RareWordsTooOften(Select):
    """One word in ten is drawn evenly from the table."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        released = super().privatize(table, block, parameter, rng=rng)
        (_, draws), *_ = rng.open(block.layout.sizes).split_rows(1 << 20)
        return np.where(
            draws.uniform(1)[:, 0] < 0.1, np.arange(len(released)) % len(table), released
        )


class ShortDiameter(Perturb):
    """A third of the table's diameter is claimed, so that the printed local DP is a third of the true one."""

    def claim(self, table: EmbeddingTable) -> Claim:
        honest = super().claim(table)
        return replace(honest, diameter=honest.diameter / 3)


class ShortDiameterSelected(Select):
    """The same for the selecting family."""

    def claim(self, table: EmbeddingTable) -> Claim:
        honest = super().claim(table)
        return replace(honest, diameter=honest.diameter / 3)


class ForgottenBalance(Perturb):
    """Balanced columns are charged as one each, though edges and a finite number of rounds leave more."""

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return parameter * np.minimum(1.0, super().spend(table, layout, parameter) / parameter)

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return epsilon


class AFifthMore(Perturb):
    """The parameter is a fifth larger than what is printed."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        return super().privatize(table, block, 1.2 * parameter, rng=rng)


class ColumnSums(Perturb):
    """eta_j C_j is charged where budgets differ."""

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return epsilon / self.mix.get_matrix(layout).sum_columns()[layout.positions]

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return parameter * self.mix.get_matrix(layout).sum_columns()[layout.positions]


class CosineDistance(Perturb):
    """2 eta times the cosine distance is claimed (Theorem 1 of d-chi-STENCIL)."""

    def claim(self, table: EmbeddingTable) -> Claim:
        return replace(super().claim(table), metric="cosine", diameter=2.0)

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return epsilon / 2

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return 2 * parameter


class Gumbel32(Select):
    """Gumbel noise in single precision: its range is some 20 nats."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        released = np.empty(len(parameter), np.int64)
        for chunk, draws in rng.open(block.layout.sizes).split_rows(1024):
            uniform = (draws.uniform(len(table)) * 2**24).astype(np.int64).clip(
                1, 2**24 - 1
            ) / np.float32(2**24)
            gumbel = -np.log(-np.log(uniform.astype(np.float32)))
            score = -parameter[chunk, None] * table.distances(block.secret[chunk])
            released[chunk] = (score.astype(np.float32) + gumbel).argmax(axis=1)
        return released

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return epsilon / 2


class Gumbel64(Gumbel32):
    """The same in double precision, as far as it goes: 36 nats ahead of the worst draw, with the worst at -3.6."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        released = np.empty(len(parameter), np.int64)
        for chunk, draws in rng.open(block.layout.sizes).split_rows(1024):
            gumbel = -np.log(-np.log(draws.uniform(len(table)).clip(2.0**-53)))
            released[chunk] = (
                -parameter[chunk, None] * table.distances(block.secret[chunk]) + gumbel
            ).argmax(axis=1)
        return released


@dataclass(frozen=True, kw_only=True)
class OwnDraws:
    """The honest exponential mechanism, but for the numpy generator that it brings."""

    inner: Select = field(default_factory=exponential)
    generator: np.random.Generator | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def claim(self, table: EmbeddingTable) -> Claim:
        return self.inner.claim(table)

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return self.inner.calibrate(table, layout, epsilon)

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Any:
        return self.inner.parameters(table, layout)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return self.inner.spend(table, layout, parameter)

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        generator = self.generator or np.random.default_rng(7)
        law = self.inner.log_probs(table, block, parameter)
        assert law is not None
        cumulative = np.exp(law).cumsum(axis=1)
        return (cumulative < generator.random((len(law), 1)) * cumulative[:, -1:]).sum(axis=1)


class SameDrawForAll(Select):
    """One draw for all words of a call."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        one = super().privatize(
            table, Block(layout=Layout.build(1), rows=block.secret[:1]), parameter[:1], rng=rng
        )
        return np.repeat(one, len(parameter))


class SeededAtBirth(Select):
    """Draws from a seed of its own, 42, whatever it is given; the statement knows nothing of it."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        if "source" not in self.__dict__:
            self.__dict__["source"] = SeededRandomness(42)
        return super().privatize(table, block, parameter, rng=self.__dict__["source"])


@dataclass(frozen=True, kw_only=True)
class RepeatsWithin(Select):
    """Draws of a text begin again after so many words; with 1, every second word takes the draw before it."""

    period: int

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        released = super().privatize(table, block, parameter, rng=rng)
        for start, size in zip(
            block.layout.sizes.cumsum() - block.layout.sizes, block.layout.sizes, strict=True
        ):
            place = np.arange(size)
            source = (
                np.maximum(place - 1 + place % 2, 0) if self.period == 1 else place % self.period
            )
            released[start : start + size] = released[start : start + size][source]
        return released


class FirstColumn(Select):
    """A sampler that favours the first words of the table a little."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        (_, draws), *_ = rng.open(block.layout.sizes).split_rows(1 << 20)
        assert isinstance(self.rule, Exponential)
        weights = self.rule.compute_weights(table.distances(block.secret), parameter)
        weights[:, : len(table) // 2] += weights[:, : len(table) // 2] >> 2
        return choose_weighted(draws, np.minimum(weights, 2**50))


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """Context without a network: one candidate has e^epsilon times the weight of every other, so local DP epsilon.

    It is the one as many rows after the word as its neighbour's row says: in `released` that of the word that was drawn
    to the left; in `right` the private word to the right, which is charged to nobody. `drawn` is what is really drawn
    with.
    """

    sees: str = "released"
    drawn: str = ""
    overdone: float = 1.0
    floor: float = 0.0
    from_paper: bool = True

    def claim(self, table: EmbeddingTable) -> Claim:
        return Claim(mechanism="ranked", kind="ldp", table=table.name, parameter="epsilon")

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        if (epsilon < self.floor).any():
            raise BudgetError(f"epsilon must be at least {self.floor:g} here")
        return epsilon * self.overdone

    def parameters(self, table: EmbeddingTable, layout: Layout) -> None:
        return None

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return parameter / self.overdone

    def build_paper_claim(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return (self.claim(table), parameter) if self.from_paper else None

    def weights(
        self, sees: str, table: EmbeddingTable, block: Block, parameter: Any, released: Any
    ) -> Any:
        text = np.repeat(np.arange(len(block.layout.sizes)), block.layout.sizes)
        step, seen = (1, released) if sees == "released" else (-1, block.secret)
        inside = text == np.roll(text, step)
        inside[0 if step == 1 else -1] = False
        favourite = (block.secret + np.where(inside, np.roll(seen, step), 0)) % len(table)
        weights = np.repeat(
            np.ceil(2.0**50 * np.exp(-parameter)).astype(np.int64)[:, None], len(table), axis=1
        )
        weights[np.arange(len(weights)), favourite] = 2**50
        return weights

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        sizes = block.layout.sizes
        place = np.arange(len(parameter)) - np.repeat(sizes.cumsum() - sizes, sizes)
        waves = [np.flatnonzero(place == wave) for wave in range(int(sizes.max(initial=0)))]
        released = np.zeros(len(parameter), np.int64)
        for wave, positions in enumerate(waves):
            weights = self.weights(self.drawn or self.sees, table, block, parameter, released)[
                positions
            ]
            for chunk, draws in rng.open((sizes > wave).astype(np.int64)).split_rows(4096):
                released[positions[chunk]] = choose_weighted(draws, weights[chunk])
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Any, released: Any = None
    ) -> Any:
        before = np.zeros(len(parameter), np.int64) if released is None else released
        return _law(self.weights(self.sees, table, block, parameter, before))


@dataclass(frozen=True, kw_only=True)
class Groups:
    """A word becomes one of its own group of four: nothing holds between groups, `epsilon` inside one.

    `overdone` multiplies the epsilon that is drawn with; `width` is the group that is promised.
    """

    overdone: float = 1.0
    width: int = 4

    def claim(self, table: EmbeddingTable) -> Claim:
        return Claim(
            mechanism="groups",
            kind="none",
            table=table.name,
            parameter="nominal",
            reason="its output tells the group",
            restricted=Restricted(domain="two words of one group", kind="ldp"),
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return epsilon

    def parameters(self, table: EmbeddingTable, layout: Layout) -> None:
        return None

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return np.full(len(parameter), np.inf)

    def compute_restricted_epsilon(
        self, table: EmbeddingTable, layout: Layout, parameter: Any
    ) -> Any:
        return parameter

    def mark_restricted_pairs(self, table: EmbeddingTable, rows: Any) -> Any:
        group = rows // self.width
        return group[:, None] == group

    def build_paper_claim(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return Claim(mechanism="groups", kind="ldp", table=table.name), parameter

    def weights(self, table: EmbeddingTable, rows: Any, parameter: Any) -> Any:
        other = np.ceil(2.0**50 * np.exp(-self.overdone * parameter)).astype(np.int64)
        weights = np.where(rows[:, None] // 4 == np.arange(len(table)) // 4, other[:, None], 0)
        weights[np.arange(len(rows)), rows] = 2**50
        return weights

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        released = np.empty(len(parameter), np.int64)
        for chunk, draws in rng.open(block.layout.sizes).split_rows(4096):
            released[chunk] = choose_weighted(
                draws, self.weights(table, block.secret[chunk], parameter[chunk])
            )
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Any, released: Any = None
    ) -> Any:
        return _law(self.weights(table, block.secret, parameter))


class ThinRadius(MultivariateLaplace):
    """The radius has one dimension too few."""

    def sample(
        self, draws: Any, table: EmbeddingTable, centres: Any, rows: Any, parameter: Any
    ) -> Any:
        direction = draws.normal(table.dimension)
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return centres + direction * (draws.gamma(max(1, table.dimension - 1)) / parameter)[:, None]


# ---- pipelines --------------------------------------------------------------------------------------------


class Spoiled(Privatizer):
    """A pipeline whose items are changed after the draw."""

    def spoil(self, item: Item, word: str) -> Item | None:
        raise NotImplementedError

    def privatize(self, text: str, session: Any = None, *, query: Any = None) -> Result:
        result = super().privatize(text, session)
        spoiled = [
            self.spoil(*pair)
            for pair in zip(result.released.items, result.private.words, strict=True)
        ]
        items = [item for item in spoiled if item is not None]
        released = Released(
            items=tuple(items),
            gaps=("", *" " * (len(items) - 1), "") if items else ("",),
            mask=Mask(
                words=len(items),
                verbatim=tuple(i for i, item in enumerate(items) if item.kind.value == "verbatim"),
            ),
        )
        return Result(
            released=released,
            guarantee=result.guarantee,
            private=result.private,
            seconds=result.seconds,
        )

    def unknown(self, word: str) -> bool:
        return word.lower() not in self.table.row_of


class UnknownVerbatim(Spoiled):
    def spoil(self, item: Item, word: str) -> Item | None:
        return item._replace(text=word) if self.unknown(word) else item


class UnknownDropped(Spoiled):
    def spoil(self, item: Item, word: str) -> Item | None:
        return None if self.unknown(word) else item


class NumbersShifted(Spoiled):
    def spoil(self, item: Item, word: str) -> Item | None:
        return (
            item._replace(text=str(int(word) + 123)) if word.isascii() and word.isdigit() else item
        )


class TruePastTheWindow(Spoiled):
    """What the window of the model does not reach comes out as it was."""

    def spoil(self, item: Item, word: str) -> Item | None:
        return item._replace(text=word) if item.start >= 510 else item


class KnownVerbatim(Spoiled):
    """Words of the table come out as they were, whatever was drawn."""

    def spoil(self, item: Item, word: str) -> Item | None:
        return item if self.unknown(word) else item._replace(text=word)


class TripledThenDivided(Privatizer):
    """The pipeline draws with three times the budget and prints a third of what that spends."""

    def _draw(self, protection: Any, plan: Any) -> Any:
        release = super()._draw(protection, replace(plan, epsilon=3 * plan.epsilon))
        return replace(release, spent=release.spent / 3)


class PrintsHalf(Privatizer):
    """The pipeline prints half of what its mechanism spends."""

    def _draw(self, protection: Any, plan: Any) -> Any:
        release = super()._draw(protection, plan)
        return replace(release, spent=release.spent / 2)


class PrintsHalfWithin(Privatizer):
    """The pipeline prints half of what its mechanism spends on some pairs of words."""

    def _draw(self, protection: Any, plan: Any) -> Any:
        release = super()._draw(protection, plan)
        return replace(release, restricted_epsilon=release.restricted_epsilon / 2)


class TrueWordOnError(Privatizer):
    """What cannot be privatized comes out as it was."""

    def privatize(self, text: str, session: Any = None, *, query: Any = None) -> Result:
        try:
            return super().privatize(text, session)
        except Exception:
            made = build("exponential").privatize(text)
            released = made.released
            items = tuple(
                item._replace(text=word)
                for item, word in zip(released.items, made.private.words, strict=True)
            )
            return Result(
                released=Released(items=items, gaps=released.gaps, mask=released.mask),
                guarantee=made.guarantee,
                private=made.private,
                seconds=0.0,
            )


class WordInTheError(Privatizer):
    """The error names what it could not handle."""

    def privatize(self, text: str, session: Any = None, *, query: Any = None) -> Result:
        try:
            return super().privatize(text, session)
        except Exception as error:
            raise ValueError(f"cannot handle {text!r}") from error


# ---- the table of names -----------------------------------------------------------------------------------


def _selecting(made: type[Select], rule: type[Exponential] = Exponential) -> Select:
    return made(name="twin", rule=rule())


def _perturbing(made: type[Perturb], **options: Any) -> Perturb:
    return made(**{"name": "twin", "noise": MultivariateLaplace(), **options})


def doubled() -> Select:
    """A mechanism under a name that can be registered: it prints half of what it spends."""
    return _selecting(DoubledLaw)


MECHANISMS: dict[str, Callable[[], Any]] = {
    "exponential": exponential,
    "noise": noise,
    "polar": polar,
    "d-chi-stencil": d_chi_stencil,
    "gumbel in double precision": lambda: _selecting(Gumbel64),
    "factor 1/2 forgotten": lambda: _selecting(HalfForgotten),
    "epsilon doubled, law": doubled,
    "epsilon doubled, noise": lambda: _perturbing(DoubledNoise),
    "epsilon doubled, polar": lambda: _perturbing(DoubledNoise, noise=VonMisesFisher()),
    "epsilon doubled, window": lambda: _perturbing(DoubledNoise, mix=Window(L=3)),
    "candidate cut-off, law": lambda: _selecting(Select, TopK),
    "candidate cut-off, samples": lambda: _selecting(TopKUnwritten, TopK),
    "neighbour removed by the true word": lambda: _perturbing(Vickrey),
    "original excluded": lambda: _perturbing(Excluding, exclude_original=True),
    "integer weights with a floor of 1": lambda: _selecting(Select, FloorOfOne),
    "float32 Gumbel": lambda: _selecting(Gumbel32),
    "numpy generator, then forked": lambda: OwnDraws(generator=np.random.default_rng()),
    "same stream on the next call": OwnDraws,
    "one draw for all words": lambda: _selecting(SameDrawForAll),
    "draws repeat after 50 words": lambda: RepeatsWithin(
        name="twin", rule=Exponential(), period=50
    ),
    "odd words lend their draw": lambda: RepeatsWithin(name="twin", rule=Exponential(), period=1),
    "hidden seed 42": lambda: _selecting(SeededAtBirth),
    "noise that does not know its budget": lambda: _perturbing(FixedNoise),
    "magnitude noise drawn, then erased": lambda: polar(radius=1.0),
    "budgets of a window by columns": lambda: _perturbing(ColumnSums, mix=Window(L=5, sigma=1.25)),
    "cosine distance as a metric": lambda: _perturbing(CosineDistance),
    "parameter by the secret's group": lambda: _perturbing(GroupOfTheSecret),
    "largest budget of the call": lambda: _selecting(LargestBudget),
    "larger parameter in longer texts": lambda: _perturbing(LooseInLongTexts),
    "larger parameter in later rows": lambda: _perturbing(LooseLaterRows),
    "later rows verbatim": lambda: _perturbing(LaterRowsVerbatim),
    "texts that run into one another": lambda: _perturbing(TextsRunOn, mix=Window(L=3, sigma=1.25)),
    "cape": cape,
    "nominal epsilon printed": lambda: HalfForgotten(
        name="twin", utility=Hybrid(), rule=BucketRule()
    ),
    "rankcape": lambda: rankcape(k=5),
    "stairs too steep": lambda: Select(name="twin", rule=SteeperStairs(sizes=(5,))),
    "custext": lambda: custext(k=6),
    "custext, aggressive": lambda: custext(k=6, mapping="aggressive"),
    "rantext": rantext,
    "law of no numbers": lambda: _selecting(NotANumber),
    "rare words too often": lambda: _selecting(RareWordsTooOften),
    "diameter a third, noise": lambda: _perturbing(ShortDiameter),
    "diameter a third, law": lambda: _selecting(ShortDiameterSelected),
    "balanced window": lambda: d_chi_stencil(L=3, balanced=True),
    "balanced columns charged as one": lambda: _perturbing(
        ForgottenBalance, mix=Window(L=3, balanced=True)
    ),
    "parameter a fifth too large": lambda: _perturbing(AFifthMore),
    "sampler beside its law": lambda: _selecting(FirstColumn),
    "context": Ranked,
    "private context": lambda: Ranked(sees="right"),
    "private context, drawn only": lambda: Ranked(drawn="right"),
    "a floor": lambda: Ranked(floor=3.5),
    "epsilon doubled above a floor": lambda: Ranked(floor=3.5, overdone=2.0),
    "groups": Groups,
    "groups, epsilon doubled": lambda: Groups(overdone=2.0),
    "groups, promised for two of them": lambda: Groups(width=8),
    "half of the restricted epsilon printed": Groups,
    "radius of one dimension less": lambda: _perturbing(Perturb, noise=ThinRadius()),
}

PIPELINES: dict[str, type[Privatizer]] = {
    "unknown words verbatim": UnknownVerbatim,
    "unknown words dropped": UnknownDropped,
    "numbers shifted": NumbersShifted,
    "true word past the window": TruePastTheWindow,
    "table words verbatim": KnownVerbatim,
    "budget tripled in the pipeline": TripledThenDivided,
    "half of the spent epsilon printed": PrintsHalf,
    "half of the restricted epsilon printed": PrintsHalfWithin,
    "true word on an error": TrueWordOnError,
    "the error names the word": WordInTheError,
}


def build(name: str, *, seed: int | None = None) -> Privatizer:
    """The privatizer of a name; without a seed unless the defect is that there is one."""
    if name == "fixed default seed 42":
        return Privatizer(
            exponential(), table=table(), epsilon=EPSILON, seed=42 if seed is None else seed
        )
    kind = PIPELINES.get(name, Privatizer)
    epsilon = SHARP if "umbel" in name else EPSILON
    return kind(MECHANISMS.get(name, exponential)(), table=table(), epsilon=epsilon, seed=seed)


@dataclass(frozen=True)
class Twin:
    """A defect, the check that has to find it, and the honest mechanism that the same check lets pass."""

    defect: str
    check: str
    honest: str = "exponential"
    verdict: str = "violated"


TWINS = (
    Twin("factor 1/2 forgotten", "log-ratio"),
    Twin("epsilon doubled, law", "log-ratio"),
    Twin("stairs too steep", "sampled", "rankcape"),
    Twin("epsilon doubled, noise", "sampled", "noise"),
    Twin("epsilon doubled, polar", "sampled", "polar"),
    Twin("epsilon doubled, window", "sampled", "d-chi-stencil"),
    Twin("candidate cut-off, law", "support"),
    Twin("candidate cut-off, samples", "support"),
    Twin("neighbour removed by the true word", "support", "noise"),
    Twin("original excluded", "support", "noise"),
    Twin("float32 Gumbel", "support", "gumbel in double precision"),
    Twin("integer weights with a floor of 1", "log-ratio"),
    Twin("numpy generator, then forked", "streams"),
    Twin("same stream on the next call", "streams"),
    Twin("one draw for all words", "streams"),
    Twin("draws repeat after 50 words", "streams"),
    Twin("odd words lend their draw", "streams"),
    Twin("fixed default seed 42", "seed"),
    Twin("hidden seed 42", "seed"),
    Twin("unknown words verbatim", "totality"),
    Twin("unknown words dropped", "totality"),
    Twin("numbers shifted", "totality"),
    Twin("true word past the window", "totality"),
    Twin("table words verbatim", "pipeline", "d-chi-stencil"),
    Twin("budget tripled in the pipeline", "pipeline", "noise"),
    Twin("half of the spent epsilon printed", "pipeline", "d-chi-stencil"),
    Twin("half of the restricted epsilon printed", "pipeline", "groups"),
    Twin("true word on an error", "error path"),
    Twin("the error names the word", "error path"),
    Twin("noise that does not know its budget", "budget", "noise"),
    Twin("magnitude noise drawn, then erased", "overcharge", "polar", "wasteful"),
    Twin("budgets of a window by columns", "statement", "d-chi-stencil"),
    Twin("budgets of a window by columns", "sampled", "d-chi-stencil"),
    Twin("cosine distance as a metric", "statement", "noise"),
    Twin("cosine distance as a metric", "sampled", "noise"),
    Twin("parameter by the secret's group", "sampled", "noise"),
    Twin("largest budget of the call", "sampled"),
    Twin("larger parameter in longer texts", "sampled", "noise"),
    Twin("larger parameter in later rows", "sampled", "noise"),
    Twin("later rows verbatim", "sampled", "noise"),
    Twin("parameter a fifth too large", "sampled", "noise"),
    Twin("diameter a third, noise", "statement", "noise"),
    Twin("diameter a third, law", "statement"),
    Twin("balanced columns charged as one", "statement", "balanced window"),
    Twin("texts that run into one another", "sampled", "d-chi-stencil"),
    Twin("law of no numbers", "log-ratio"),
    Twin("law of no numbers", "joint"),
    Twin("factor 1/2 forgotten", "joint"),
    Twin("private context", "joint", "context"),
    Twin("private context, drawn only", "sampler", "context"),
    Twin("epsilon doubled above a floor", "log-ratio", "a floor"),
    Twin("epsilon doubled above a floor", "certificate", "a floor"),
    Twin("epsilon doubled above a floor", "sampled", "a floor"),
    Twin("groups, epsilon doubled", "restricted", "groups"),
    Twin("groups, promised for two of them", "restricted", "groups"),
    Twin("groups", "paper", "context", "refuted"),
    Twin("nominal epsilon printed", "log-ratio", "cape"),
    Twin("stairs too steep", "log-ratio", "rankcape"),
    Twin("custext", "paper", "context", "refuted"),
    Twin("custext, aggressive", "paper", "context", "refuted"),
    Twin("rantext", "paper", "context", "refuted"),
    Twin("rare words too often", "sampler"),
    Twin("sampler beside its law", "sampler"),
    Twin("radius of one dimension less", "sampler", "noise"),
)
