"""Sweeps over one option of a privatizer, measuring and attacking the releases.

In: texts, and a privatizer for each value. Out: a row per value.
Not here: how a row is printed (`cli.sweep`) or drawn (`pictures`), and sweeps over data sets (`run`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from textveil.errors import ConfigError, InputError
from textveil.evaluate.attack import Attack, Case
from textveil.models import SentenceEncoder, load_sentences
from textveil.pipeline import Privatizer, Result
from textveil.protect import GROUPS
from textveil.randomness import Randomness
from textveil_bench.attack import Findings, Rate, attack
from textveil_bench.attack.report import ALL_SLICE
from textveil_bench.intervals import Interval, mean
from textveil_bench.measure.words import retention

ProgressCallback = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class SweptValue:
    """The result for one value of the option.

    Attributes:
        value: the value, as typed.
        similarity: mean cosine between original and released text, over all texts.
        kept: share of the drawn words that are released unchanged; None without any.
        words: number of words in each of the four groups, where there are groups; public words,
            typed names and placeholders are in none.
        budget: the mean epsilon of non-public words, infinite ones included.
        texts: number of texts with words.
        attacks: each attack's main rate.
        not_run: attacks that do not apply, with the reason.
    """

    value: str
    similarity: Interval
    kept: float | None
    words: Mapping[str, int]
    budget: float
    texts: int
    attacks: Mapping[str, Rate] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)

    @property
    def shares(self) -> dict[str, float]:
        """Each group's share of the words of all four; 0 without words."""
        total = max(1, sum(self.words.values()))
        return {group: count / total for group, count in self.words.items()}

    def to_json(self) -> dict[str, Any]:
        """Returns the row as plain data; infinite numbers become "infinite"."""
        return {
            "value": self.value,
            "similarity": _convert_number(self.similarity.value),
            "low": _convert_number(self.similarity.low),
            "high": _convert_number(self.similarity.high),
            "kept": self.kept,
            "words": dict(self.words),
            "shares": self.shares,
            "budget": _convert_number(self.budget),
            "texts": self.texts,
            "attacks": {name: rate.to_json("attack") for name, rate in self.attacks.items()},
            "not_run": dict(self.not_run),
        }


def sweep_option(
    texts: Sequence[str],
    build_privatizer: Callable[[str], Privatizer],
    values: Sequence[str],
    *,
    queries: Sequence[str] | None = None,
    attackers: Sequence[Attack] = (),
    rng: Randomness | None = None,
    encoder: SentenceEncoder | None = None,
    report: ProgressCallback = lambda step, done, total: None,
) -> list[SweptValue]:
    """Privatizes texts once per value of an option, and measures the releases.

    Args:
        texts: at least one with words.
        build_privatizer: makes the privatizer of a value.
        values: the values, at least one.
        queries: the task of each text, if the privatizers have none of their own.
        attackers: attacks to run on each release.
        rng: for attackers that simulate the mechanism; None for system randomness.
        encoder: encoder of the compared vectors; None for the bundled one.
        report: called with the step "values" and with the steps of attacks.

    Raises:
        ConfigError: there is no value, or the number of queries differs from that of texts.
        InputError: no text has words.

    Source: with the values of `protect.tau`, STAMP, figure 5 and section 5.1.
    """
    if not values:
        raise ConfigError("a sweep needs at least one value of its option")
    if queries is not None and len(queries) != len(texts):
        raise ConfigError(
            f"give one query per text, got {len(queries)} queries for {len(texts)} texts"
        )
    sentence_encoder = load_sentences() if encoder is None else encoder
    originals = sentence_encoder.encode(texts)
    text_rows = np.flatnonzero(np.linalg.norm(originals, axis=1) > 0)
    if not len(text_rows):
        raise InputError("none of the texts has any words")
    rows = []
    for i, value in enumerate(values):
        report("values", i, len(values))
        privatizer = build_privatizer(value)
        rehearsal = privatizer.rehearse(texts, queries=queries)
        case, results = Case.build(privatizer, rehearsal), rehearsal.results
        released = sentence_encoder.encode([result.text for result in results])
        cosines = (originals * released).sum(axis=1, dtype=np.float64)
        (retained,) = retention(case)
        findings = attack(case, attackers, rng=rng, report=partial(_report_attack, report, value))
        rows.append(
            SweptValue(
                value=value,
                similarity=_clip_interval(mean(cosines[text_rows], text_rows, share=False)),
                kept=float(retained.values.mean()) if len(retained.values) else None,
                words=_count_groups(results),
                budget=_compute_budget(results),
                texts=len(text_rows),
                attacks=_select_main_rates(findings),
                not_run=findings.refused,
            )
        )
    report("values", len(values), len(values))
    return rows


def _report_attack(report: ProgressCallback, value: str, step: str, done: int, total: int) -> None:
    report(f"{value}: {step}", done, total)


def _select_main_rates(findings: Findings) -> dict[str, Rate]:
    """Selects a rate over everything of each attack: its first headline, else its first."""
    overall = [rate for rate in findings.rows if rate.slice == ALL_SLICE]
    first: dict[str, Rate] = {}
    for rate in sorted(overall, key=lambda rate: not rate.headline):
        first.setdefault(rate.source, rate)
    return first


def _count_groups(results: Sequence[Result]) -> dict[str, int]:
    """Counts the words of each group; empty where the releases have no groups."""
    counts = Counter(label for result in results for label in result.released.mask.groups or ())
    return {group: counts[group] for group in GROUPS} if counts else {}


def _clip_interval(cosine: Interval) -> Interval:
    """Clips an interval to [-1, 1], the range of a cosine."""
    return Interval(value=cosine.value, low=max(cosine.low, -1.0), high=min(cosine.high, 1.0))


def _compute_budget(results: Sequence[Result]) -> float:
    losses = np.concatenate([result.guarantee.epsilon_per_word for result in results])
    return float(losses.mean()) if len(losses) else 0.0


def _convert_number(value: float) -> float | str:
    return value if np.isfinite(value) else "infinite"
