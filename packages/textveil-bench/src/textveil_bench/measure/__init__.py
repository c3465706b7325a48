"""Measures: how much a release changes, how free a word is, and how the text reads.

In: a case, that is releases and their originals. Out: figures with intervals.
Not here: what an adversary gets from a release (`attack`), and what is promised of it
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
