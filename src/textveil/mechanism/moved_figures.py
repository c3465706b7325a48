"""Moved figures: dates, ages and amounts with discrete Laplace noise.

The law is exact.
In: figures by their type; the loss for each day, year or unit. Out: the number added to each, and
its promise.
Not here: how figures are read and written (`detect.quantities`), which of them are equal
(`pipeline.consistent`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Self

import numpy as np

from textveil.config import FigureOptions
from textveil.detect import AGE, DATES, MAX_AGE, Figure
from textveil.errors import BudgetError
from textveil.protect import Protection
from textveil.randomness import LARGEST_RATIO, Ids, Randomness, Values, discrete_laplace

_CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True)
class FigureSampler:
    """Moves figures. Make one with `build`.

    All dates of a session, or of a text without one, are moved by one number of days; every other
    figure by a separate number, the same for equal figures.

    Attributes:
        options: the loss for each day, year or unit.
    """

    options: FigureOptions

    @classmethod
    def build(cls, options: FigureOptions) -> Self:
        """Builds the figures of these options.

        Raises:
            BudgetError: an epsilon, or the unit, has more digits than the exact law can have.
        """
        sampler = cls(options=options)
        types = {"day_epsilon": DATES[0], "year_epsilon": AGE, "unit_epsilon and figures.unit": ""}
        for name, type_ in types.items():
            if max(sampler._compute_scale(type_).as_integer_ratio()) > LARGEST_RATIO:
                raise BudgetError(
                    f"figures.{name}: the numbers are too small, too large or have too many "
                    "digits; round them"
                )
        return sampler

    def draw(
        self,
        figures: Mapping[int, Figure],
        protection: Protection,
        documents: Ids,
        *,
        rng: Randomness,
    ) -> tuple[Ids, Values]:
        """Draws the number added to every figure, and its local DP.

        Args:
            figures: by word, in order; secret.
            protection: of the N words.
            documents: int64 [B + 1], where each text starts.
            rng: opened once, whatever the texts hold.

        Returns:
            int64 [N], in days, years, or hundredths of an amount, 0 where nothing is moved; float64
            [N], infinite for dates and amounts, for which only a bound per day or unit holds.
        """
        steps, losses = np.zeros(len(protection.public), np.int64), np.zeros(len(protection.public))
        places = list(figures)
        bounds = np.searchsorted(np.array(places, np.int64), documents).tolist()
        scales: list[Fraction] = []
        # of each figure, among the scales: one for the dates of its text, or its own
        row: list[int] = []
        for start, stop in pairwise(bounds):
            first, types = len(scales), [protection.get_group(i) for i in places[start:stop]]
            row += [first if type_ in DATES else first + j for j, type_ in enumerate(types, 1)]
            scales += [self._compute_scale(type_) for type_ in (DATES[0], *types)]
        noise = np.empty(len(scales), np.int64)
        # One more than figures: the step of the text's dates is drawn even where it has none.
        for part, draws in rng.open(np.diff(bounds) + 1).split_rows(_CHUNK):
            noise[part] = discrete_laplace(draws, scales[part])
        steps[places] = noise[row]
        losses[places] = [self.compute_local_dp(protection.get_group(i)) for i in places]
        return steps, losses

    def _compute_scale(self, type_: str) -> Fraction:
        """Returns the scale of the noise in days, years, or hundredths.

        It is that of exactly the epsilon that statements print.
        """
        units = 1 if type_ in (*DATES, AGE) else 100 * Fraction(_format(self.options.unit or 1.0))
        return units / Fraction(_format(self.get_unit_epsilon(type_)))

    def get_unit_epsilon(self, type_: str) -> float:
        """Returns the loss of a figure for each day, year or unit."""
        options = self.options
        return (
            options.day_epsilon
            if type_ in DATES
            else options.year_epsilon
            if type_ == AGE
            else options.unit_epsilon
        )

    def compute_local_dp(self, type_: str) -> float:
        """Returns the local DP of a figure of a type.

        Infinite where only a bound per day or unit holds.
        """
        return self.options.year_epsilon * MAX_AGE if type_ == AGE else math.inf

    def name_unit(self, type_: str) -> str:
        """Names the unit of `get_unit_epsilon`: "day", "year", "100"."""
        return (
            "day"
            if type_ in DATES
            else "year"
            if type_ == AGE
            else _format(self.options.unit or 1.0)
        )

    def describe_law(self, type_: str, *, seeded: bool) -> str:
        """Describes the law of a drawn number, without the moved figure."""
        return (
            f"{'seeded' if seeded else 'drawn'} figures, {_format(self.get_unit_epsilon(type_))} "
            f"per {self.name_unit(type_)}"
        )

    def yield_notes(self, types: Iterable[str]) -> Iterator[str]:
        """Yields sentences about what is hidden and what is kept.

        For figures of these types, without their full stop.
        """
        type_set, options = set(types), self.options
        scope = "over all releases of the session together, or for each release, without a session"
        if type_set & {*DATES}:
            yield (
                "all dates of a session (without a session: of a text) are moved by one number of "
                "days, drawn once: between texts whose dates are all D days later or earlier, and "
                f"written in the same form, epsilon is {_format(options.day_epsilon)} * D, "
                f"{scope}; the days between the dates are kept, so whoever knows one date knows "
                "all, and so are their form and the words around them, such as weekdays"
            )
        if AGE in type_set:
            max_epsilon = Decimal(_format(options.year_epsilon)) * MAX_AGE
            yield (
                "each age is moved by years that are drawn once for it in a session (without "
                f"a session: in a text), and written as 0 to {MAX_AGE}: between two ages D "
                f"years apart epsilon is {_format(options.year_epsilon)} * D, at most "
                f"{max_epsilon.normalize():f}, {scope}; which ages are equal and the words "
                "around them are kept"
            )
        if amount_types := sorted(type_set - {*DATES, AGE}):
            yield (
                f"each amount of type {' or '.join(amount_types)} is moved by a number that is "
                "drawn once for it in a session (without a session: in a text), and not below "
                "0: between two amounts that are D apart and written in the same form epsilon "
                f"is {_format(options.unit_epsilon)} * D / {self.name_unit(amount_types[0])}, "
                f"{scope}; which amounts are equal, their decimal places and the words around "
                "them are kept"
            )


def _format(value: float) -> str:
    """Writes a number with all digits and no exponent, as statements do."""
    return f"{Decimal(repr(value)).normalize():f}"
