"""Measurements: figures with intervals, overall and by group, frequency and length.

In: a case and names of measures. Out: `Measurements`: rows of plain data.
Not here: the measures (the modules beside this one, found by name in the registry), intervals and
slices (`attack.report`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from textveil.config import registry
from textveil.errors import ConfigError
from textveil.evaluate.attack import Case, Outcome, ProgressCallback, ignore_progress
from textveil.randomness import Randomness, SystemRandomness
from textveil_bench.attack import Rate, compute_rates, merge_name_outcomes
from textveil_bench.measure.measure_contract import DEFAULT_REASON

VERSION = 1
"""Version of the JSON form; raised when a field changes its meaning."""

DEFAULT_DRAWS = 1_000
"""Number of draws, as in Feyisetan et al. (WSDM 2020)."""

DEFAULT_WORDS = 200
"""Number of distinct words.

Simulating them with noise on 22,000 rows takes less than half a minute.
"""


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """Results of measures.

    Attributes:
        rows: all figures; `source` is the name of the requested measure.
        silent: measures without figures, and why.
        texts: number of texts.
        words: number of protected positions.
        names: number of names drawn from lists.
        unprotected: number of private words that passed unchanged; in no figure of words.
        hidden: number of private words that became placeholders, except the mechanism's own; in no
            figure of words.
    """

    rows: tuple[Rate, ...] = field(repr=False)
    silent: Mapping[str, str]
    texts: int
    words: int
    names: int = 0
    unprotected: int = 0
    hidden: int = 0

    def to_json(self) -> dict[str, Any]:
        """Returns the measurements as plain data."""
        return {
            "version": VERSION,
            "texts": self.texts,
            "protected": self.words,
            "names": self.names,
            "passed_unprotected": self.unprotected,
            "placeholders": self.hidden,
            "not_measured": dict(self.silent),
            "rows": [row.to_json("measure") for row in self.rows],
        }


def measure(
    case: Case,
    *,
    metrics: Sequence[str] | None = None,
    draws: int = DEFAULT_DRAWS,
    words: int = DEFAULT_WORDS,
    rng: Randomness | None = None,
    report: ProgressCallback = ignore_progress,
) -> Measurements:
    """Measures releases against their originals.

    Args:
        case: releases and their originals.
        metrics: names of measures, None for all: `retention`, `cosine` of input and output word,
            `oov` (the share outside the table), `rouge-l` and `bleu` between input and output,
            `mapping` (N_x, N_w, S_w), `perplexity`, and those of other packages.
        draws: draws of each word, for mapping sets; 1 or more.
        words: largest number of distinct words whose mapping sets are computed; 1 or more.
        rng: source of draws for mechanisms that must be simulated; None for system randomness.
        report: called with progress.

    Raises:
        UnknownName: there is no such measure.
        ConfigError: a number is below 1.
    """
    metrics = check_metrics(metrics)
    rates_by_name = {
        name: tuple(compute_rates(case, tuple(measure_outcomes)))
        for name, measure_outcomes in run_measures(
            case, metrics, draws=draws, words=words, rng=rng, report=report
        )
    }
    return Measurements(
        rows=tuple(row for rows in rates_by_name.values() for row in rows),
        silent={
            name: getattr(registry.load("measure", name), "silent", DEFAULT_REASON)
            for name, rows in rates_by_name.items()
            if not rows
        },
        texts=len(case.view.released),
        words=len(case.view.output_rows),
        names=case.view.name_count,
        unprotected=case.view.verbatim_count,
        hidden=case.view.placeholder_count,
    )


def run_measures(
    case: Case,
    metrics: Sequence[str],
    *,
    draws: int = DEFAULT_DRAWS,
    words: int = DEFAULT_WORDS,
    rng: Randomness | None = None,
    report: ProgressCallback = ignore_progress,
) -> Iterator[tuple[str, Iterator[Outcome]]]:
    """Runs measures one by one, yielding each name with its outcomes.

    Outcomes hold the values of single words and texts; arguments and errors as `measure`.
    """
    if min(draws, words) < 1:
        raise ConfigError(f"draws and words must be 1 or more, got {draws} and {words}")
    rng = SystemRandomness() if rng is None else rng
    offered = {"draws": draws, "words": words, "rng": rng, "report": report}
    for name in check_metrics(metrics):
        target = registry.load("measure", name)
        options = registry.read_options(target)
        arguments = {
            key: value
            for key, value in offered.items()
            if options.is_open or key in options.keywords
        }
        run_measure = partial(target, **arguments)
        lists = case.list_cases if getattr(target, "wordwise", False) else ()
        yield name, chain(run_measure(case), merge_name_outcomes(case, lists, run_measure))


def check_metrics(metrics: Sequence[str] | None = None) -> tuple[str, ...]:
    """Returns the names of measures, each once; all for None.

    Raises:
        UnknownName: there is no such measure.
    """
    for name in metrics or ():
        registry.find_entry("measure", name)
    return tuple(dict.fromkeys(registry.list_names("measure") if metrics is None else metrics))
