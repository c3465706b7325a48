"""From a case to figures with intervals: over everything, and by group, word frequency and text length.

In: a case and names of metrics. Out: `Measurements`: rows of plain data.
Not here: the metrics (the modules beside this one), intervals and slices (`attack.report`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from textveil.errors import ConfigError, UnknownName
from textveil.evaluate.attack import Case, Outcome, Report, Row, quiet, rates
from textveil.evaluate.measure.fluency import perplexity
from textveil.evaluate.measure.mapping import sets
from textveil.evaluate.measure.texts import bleu, rouge
from textveil.evaluate.measure.words import cosine, retention, unknown
from textveil.randomness import Randomness, SystemRandomness

VERSION = 1
"""Version of the JSON form; it changes when a field changes its meaning."""

DRAWS = 1_000
"""As in Feyisetan et al. (WSDM 2020)."""

WORDS = 200
"""Distinct words that take less than half a minute to simulate with noise on 22,000 rows."""

SILENT = {
    "retention": "no word is protected",
    "cosine": "nothing was drawn: all protected words are placeholders, or none is there",
    "oov": "no word is protected, or words.oov takes those outside the table out of the protected ones",
    "rouge-l": "no text has a word",
    "bleu": "no text has a word",
    "mapping": "no word is protected",
    "perplexity": "no word of the table stands in both versions of a text, or the unit is wordpiece",
}
"""The metrics, and why one may have nothing to say."""

METRICS = tuple(SILENT)


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """What was measured.

    Attributes:
        rows: all figures; `source` is the name of the metric that was asked for.
        silent: metrics that say nothing of such releases, and why.
        texts: how many there were.
        words: how many protected positions.
        unprotected: private words that passed as they were; they are in no figure of words.
        hidden: private words that became placeholders, apart from those of the mechanism; nor are they.
    """

    rows: tuple[Row, ...] = field(repr=False)
    silent: Mapping[str, str]
    texts: int
    words: int
    unprotected: int = 0
    hidden: int = 0

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "version": VERSION,
            "texts": self.texts,
            "protected": self.words,
            "passed_unprotected": self.unprotected,
            "placeholders": self.hidden,
            "not_measured": dict(self.silent),
            "rows": [row.to_json("measure") for row in self.rows],
        }


def measure(
    case: Case,
    *,
    metrics: Sequence[str] | None = None,
    draws: int = DRAWS,
    words: int = WORDS,
    rng: Randomness | None = None,
    report: Report = quiet,
) -> Measurements:
    """Measures releases against their originals.

    Args:
        case: releases and their originals.
        metrics: None for all of `retention`, `cosine` of input and output word, `oov` (the share outside the table),
            `rouge-l` and `bleu` between input and output, `mapping` (N_x, N_w, S_w), `perplexity`.
        draws: of each word, for mapping sets; 1 or more.
        words: distinct words whose mapping sets are looked at, at most; 1 or more.
        rng: for mechanisms that have to be simulated; None is system randomness.
        report: told of progress.

    Raises:
        UnknownName: there is no such metric.
        ConfigError: a number is below 1.
    """
    metrics = check(metrics)
    found = {
        name: tuple(rates(case, tuple(of)))
        for name, of in outcomes(case, metrics, draws=draws, words=words, rng=rng, report=report)
    }
    return Measurements(
        rows=tuple(row for rows in found.values() for row in rows),
        silent={name: SILENT[name] for name, rows in found.items() if not rows},
        texts=len(case.view.released),
        words=len(case.view.drawn),
        unprotected=case.view.unprotected,
        hidden=case.view.hidden,
    )


def outcomes(
    case: Case,
    metrics: Sequence[str],
    *,
    draws: int = DRAWS,
    words: int = WORDS,
    rng: Randomness | None = None,
    report: Report = quiet,
) -> Iterator[tuple[str, Iterator[Outcome]]]:
    """The same, metric by metric, with the values of single words and texts; arguments and errors as `measure`."""
    if min(draws, words) < 1:
        raise ConfigError(f"draws and words must be 1 or more, got {draws} and {words}")
    rng = SystemRandomness() if rng is None else rng
    measures: dict[str, Callable[[Case], Iterator[Outcome]]] = {
        "retention": retention,
        "cosine": cosine,
        "oov": unknown,
        "rouge-l": rouge,
        "bleu": bleu,
        "mapping": partial(sets, draws=draws, words=words, rng=rng, report=report),
        "perplexity": partial(perplexity, report=report),
    }
    for name in check(metrics):
        yield name, measures[name](case)


def check(metrics: Sequence[str] | None = None) -> tuple[str, ...]:
    """The metrics of these names, each once, all for None: what `measure` looks at.

    Raises:
        UnknownName: there is no such metric.
    """
    if metrics is None:
        return METRICS
    for name in metrics:
        if name not in METRICS:
            raise UnknownName("metric", name, METRICS)
    return tuple(dict.fromkeys(metrics))
