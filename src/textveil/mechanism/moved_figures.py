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
from textveil.detect import AGE, DATES, OLDEST, Figure
from textveil.errors import BudgetError
from textveil.protect import Protection
from textveil.randomness import LARGEST_RATIO, Ids, Randomness, Values, discrete_laplace

_CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Moves figures. Make one with `of`.

    All dates of a session, or of a text without one, are moved by one number of days; every other
    figure by a separate number, the same for equal figures.

    Attributes:
        options: the loss for each day, year or unit.
    """

    options: FigureOptions

    @classmethod
    def of(cls, options: FigureOptions) -> Self:
        """Builds the figures of these options.

        Raises:
            BudgetError: an epsilon, or the unit, has more digits than the exact law can have.
        """
        made = cls(options=options)
        types = {"day_epsilon": DATES[0], "year_epsilon": AGE, "unit_epsilon and figures.unit": ""}
        for name, type_ in types.items():
            if max(made._compute_scale(type_).as_integer_ratio()) > LARGEST_RATIO:
                raise BudgetError(
                    f"figures.{name} must be numbers that are not as small, large or exact: round them"
                )
        return made

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
        steps, spent = np.zeros(len(protection.public), np.int64), np.zeros(len(protection.public))
        places = list(figures)
        bounds = np.searchsorted(np.array(places, np.int64), documents).tolist()
        scales: list[Fraction] = []
        # of each figure, among the scales: one for the dates of its text, or its own
        row: list[int] = []
        for start, stop in pairwise(bounds):
            first, types = len(scales), [protection.kind(i) for i in places[start:stop]]
            row += [first if type_ in DATES else first + j for j, type_ in enumerate(types, 1)]
            scales += [self._compute_scale(type_) for type_ in (DATES[0], *types)]
        drawn = np.empty(len(scales), np.int64)
        for part, draws in rng.open(np.diff(bounds) + 1).chunks(_CHUNK):
            drawn[part] = discrete_laplace(draws, scales[part])
        steps[places] = drawn[row]
        spent[places] = [self.bound(protection.kind(i)) for i in places]
        return steps, spent

    def _compute_scale(self, type_: str) -> Fraction:
        """Returns the scale of the noise in days, years, or hundredths.

        It is that of exactly the epsilon that statements print.
        """
        units = 1 if type_ in (*DATES, AGE) else 100 * Fraction(_format(self.options.unit or 1.0))
        return units / Fraction(_format(self.per_unit(type_)))

    def per_unit(self, type_: str) -> float:
        """Returns the loss of a figure for each day, year or unit."""
        options = self.options
        return (
            options.day_epsilon
            if type_ in DATES
            else options.year_epsilon
            if type_ == AGE
            else options.unit_epsilon
        )

    def bound(self, type_: str) -> float:
        """Returns the local DP of a figure of a type.

        Infinite where only a bound per day or unit holds.
        """
        return self.options.year_epsilon * OLDEST if type_ == AGE else math.inf

    def unit(self, type_: str) -> str:
        """Names the unit of `per_unit`: "day", "year", "100"."""
        return (
            "day"
            if type_ in DATES
            else "year"
            if type_ == AGE
            else _format(self.options.unit or 1.0)
        )

    def law(self, type_: str, *, seeded: bool) -> str:
        """Describes the law of a drawn number, without the moved figure."""
        return f"{'seeded' if seeded else 'drawn'} figures, {_format(self.per_unit(type_))} per {self.unit(type_)}"

    def notes(self, types: Iterable[str]) -> Iterator[str]:
        """Yields sentences about what is hidden and what is kept.

        For figures of these types, without their full stop.
        """
        given, options = set(types), self.options
        whole = "over all releases of the session together, or for each release without one"
        if given & {*DATES}:
            yield (
                "all dates of a session (of a text without one) are moved by one number of days, drawn once: between "
                "texts whose dates are all D days later or earlier, and written in the same form, epsilon is "
                f"{_format(options.day_epsilon)} * D, {whole}; the days between the dates are kept, so whoever knows "
                "one date knows all, and so are their form and the words around them, such as weekdays"
            )
        if AGE in given:
            most = Decimal(_format(options.year_epsilon)) * OLDEST
            yield (
                "each age is moved by years that are drawn once for it in a session (in a text without one), and "
                f"written as 0 to {OLDEST}: between two ages D years apart epsilon is {_format(options.year_epsilon)} "
                f"* D, at most {most.normalize():f}, {whole}; which ages are equal and the words around them are kept"
            )
        if own := sorted(given - {*DATES, AGE}):
            yield (
                f"each amount of type {' or '.join(own)} is moved by a number that is drawn once for it in a session "
                "(in a text without one), and not below 0: between two amounts that are D apart and written in the "
                f"same form epsilon is {_format(options.unit_epsilon)} * D / {self.unit(own[0])}, {whole}; which "
                "amounts are equal, their decimal places and the words around them are kept"
            )


def _format(value: float) -> str:
    """Writes a number with all digits and no exponent, as statements do."""
    return f"{Decimal(repr(value)).normalize():f}"
