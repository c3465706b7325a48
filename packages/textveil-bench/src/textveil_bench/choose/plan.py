"""A comparison: mechanisms with their options, data sets, and levels of risk.

In: YAML. Out: `Comparison`, and the series of each data set.
Not here: the split into parts (`material`), and the runs (`jobs`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field

from textveil.config import make_options, option_sources
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
"""The folder of the packaged comparisons."""

BASELINES = ("identity", "mask", "uniform", "equality")
"""The originals, the public words alone, and two kinds of random words.

`uniform` draws each word at random; `equality` draws equal words of a text alike.
"""

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
Epsilon = Annotated[float, Field(gt=0, le=100)]


def _sort_levels(levels: object) -> object:
    return tuple(sorted(levels)) if isinstance(levels, list | tuple) else levels


@make_options("sizes.")
class PartSizes:
    """Number of texts in each part; parts are disjoint.

    Attributes:
        shelf: of the training split, with labels, for making books.
        public: of the training split, for training the attacker.
        train: of the training split, for training judges on originals or releases.
        tuned: of the test split, for choosing budgets and options.
        judged: of the rest of the test split, for the reported results.
        attacked: the first texts of the tuned or judged ones, which are attacked.
        simulated: words of public texts on which the attacker runs the mechanism.
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
        data: the data sets, all with labels.
        levels: of the risk: shares of private words that the attacker guesses at first attempt.
        seeds: of draws, and of the judges' training texts.
        common: options of every entry, by dotted path.
        entries: the mechanisms. A value KIND-C of the option `table.codes` (general, domain or
            task) is the book of that kind with C codes; domain and task books are made from the
            data set's public texts.
        documents: epsilons of a document at which whole texts are released beside words: public
            texts in place, votes, and one count. None without.
        maps: books of the same form; judges also read texts mapped by them.
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
    documents: tuple[Epsilon, ...] = ()
    maps: tuple[str, ...] = ("general-50", "domain-50", "task-8")
    sizes: PartSizes = Field(default_factory=PartSizes)

    @classmethod
    def read(cls, source: str | Path) -> Self:
        """Reads a comparison from a YAML file or by packaged name ("choose").

        Raises:
            ConfigError: the file cannot be read, or is no comparison.
            UnknownName: there is no such option.
        """
        values = dict(
            option_sources.read_mapping(
                find_packaged_file(source, COMPARISONS_FOLDER, "comparison")
            )
        )
        for name, section in (("data", SweepData), ("entries", SweepEntry)):
            values[name] = tuple(
                build_section(section, entry, name) for entry in values.get(name, ())
            )
        if "sizes" in values:
            values["sizes"] = build_section(PartSizes, values["sizes"], "sizes")
        return cls(**values)

    def select_part(self, only: Sequence[str], levels: Sequence[float] = ()) -> Self:
        """Selects data sets and entries by name; all without names.

        Args:
            only: the names.
            levels: of the risk, instead of the comparison's own.

        Raises:
            ConfigError: a level is not between 0 and 1.
            UnknownName: there is no data set or entry of this name.
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
        """Lists the series of one data set, baselines first."""
        return [series for series in self._sweep.series if series.source.row_name == data]
