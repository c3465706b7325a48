"""A comparison: mechanisms with all their options, data sets, and the risk at which they are compared.

In: YAML. Out: `Comparison`, and the series of each data set.
Not here: which texts play which part (`material`), and how anything is run (`jobs`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field

from textveil.config import make_options, sources
from textveil_bench.spec import (
    CONF_FOLDER,
    PlannedSeries,
    Sweep,
    SweepData,
    SweepEntry,
    build_section,
    find_packaged_file,
)

COMPARISONS_FOLDER = CONF_FOLDER / "choose"
"""The comparisons of the package."""

BASELINES = ("identity", "mask", "uniform", "equality")
"""The originals, what passes alone, words drawn at random, and these with equal words of a text drawn alike."""

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]


def _sort_levels(levels: object) -> object:
    return tuple(sorted(levels)) if isinstance(levels, list | tuple) else levels


@make_options("sizes.")
class PartSizes:
    """How many texts play which part. None plays two.

    Attributes:
        shelf: of the training split, with labels: books are made from them.
        public: of the training split: the attacker learns from them.
        train: of the training split: judges learn from so many originals, or from their releases.
        tuned: of the test split: budgets and options are chosen on them.
        judged: of the test split, others: what is reported comes from them.
        attacked: of those that are tuned or judged, the first are attacked.
        simulated: words of public texts on which the attacker tries the mechanism.
    """

    shelf: Count = 5000
    public: Count = 6000
    train: Count = 4000
    tuned: Count = 400
    judged: Count = 1000
    attacked: Count = 300
    simulated: Annotated[int, Field(ge=100)] = 8000


@make_options("comparison.")
class Comparison:
    """A complete description of a comparison.

    Attributes:
        name: of the comparison.
        data: the data sets, each with labels.
        levels: of the risk: shares of private words that the attacker names at first guess.
        seeds: of draws, and of the texts that judges learn from.
        common: options of every entry, by dotted path.
        entries: the mechanisms. An option `table.quantized` of the form KIND-C (general, domain or
            task) is the book of
            that kind with C codes; those of a domain and a task are made from the data set's public
            texts.
        maps: books of the same form, by which judges may read originals and releases of every
            mechanism.
        sizes: see `PartSizes`.
    """

    name: str
    data: Annotated[tuple[SweepData, ...], Field(min_length=1)]
    levels: Annotated[tuple[Share, ...], BeforeValidator(_sort_levels), Field(min_length=1)] = (
        0.1,
        0.15,
    )
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] = (1, 2, 3)
    common: Mapping[str, Any] = Field(default_factory=dict)
    entries: tuple[SweepEntry, ...] = ()
    maps: tuple[str, ...] = ("general-50", "domain-50", "task-8")
    sizes: PartSizes = Field(default_factory=PartSizes)

    @classmethod
    def read(cls, source: str | Path) -> Self:
        """A comparison from a YAML file, or the name of a packaged one ("choose").

        Raises:
            ConfigError: the file cannot be read, or is no comparison. UnknownName: there is no such
                option.
        """
        values = dict(
            sources.read_mapping(find_packaged_file(source, COMPARISONS_FOLDER, "comparison"))
        )
        for name, section in (("data", SweepData), ("entries", SweepEntry)):
            values[name] = tuple(
                build_section(section, entry, name) for entry in values.get(name, ())
            )
        if "sizes" in values:
            values["sizes"] = build_section(PartSizes, values["sizes"], "sizes")
        return cls(**values)

    def select_part(self, only: Sequence[str], levels: Sequence[float] = ()) -> Self:
        """The data sets and entries that are named; where none of a kind is, all of it.

        Args:
            only: the names.
            levels: of the risk, in place of the comparison's own.

        Raises:
            ConfigError: a level is not between 0 and 1. UnknownName: there is none of that name.
        """
        sweep = self._sweep.select_part(only=only) if only else self._sweep
        return replace(
            self, data=sweep.data, entries=sweep.entries, levels=tuple(levels) or self.levels
        )

    @property
    def _sweep(self) -> Sweep:
        return Sweep(
            name=self.name,
            seeds=self.seeds,
            common=self.common,
            data=self.data,
            baselines=BASELINES,
            entries=self.entries,
        )

    def list_series(self, data: str) -> list[PlannedSeries]:
        """Those of one data set, by its name; baselines first."""
        return [series for series in self._sweep.series if series.source.row_name == data]
