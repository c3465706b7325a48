"""Measures: similarity of releases to originals, mapping set sizes, and perplexity.

In: a case, that is releases and their originals. Out: figures with intervals.
Not here: how much an adversary recovers from a release (`attack`), and its privacy guarantee
(`guarantee`).
"""

from textveil_bench.measure.measure_contract import annotate_measure
from textveil_bench.measure.report import Measurements, check_metrics, measure, run_measures

__all__ = [
    "Measurements",
    "annotate_measure",
    "check_metrics",
    "measure",
    "run_measures",
]
