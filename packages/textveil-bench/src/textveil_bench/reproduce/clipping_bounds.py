"""Numbers that a target measures: `mechanism.bound: measured`, `groups.base: range` and `polar`.

In: a sweep as a plain mapping, public texts and tables. Out: the same sweep with numbers instead.
Not here: how logits are measured (`models.calibration`), and how they are clipped
(`mechanism.utility`).

Language models that are not bundled have no stored bound: it must be measured with the model.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from textveil.cli import demo
from textveil.table import Metric, load_table
from textveil.text import is_public, tokenize
from textveil_bench.reproduce.targets import Plain, Scale
from textveil_bench.run import Folders, load
from textveil_bench.spec import SweepData

BOUND_PATH, FLOOR_PATH = "mechanism.bound", "mechanism.floor"
MEASURED = "measured"
BASE_PATH = "groups.base"

MAX_PASSAGES, MAX_POSITIONS = 40, 300
"""Numbers of WikiText passages read, and of words with measured logits."""


def measure_bounds(sweep: Plain, scale: Scale, places: Folders) -> dict[str, Any]:
    """Replaces what a sweep's entries want measured by numbers.

    Nothing is measured if no entry asks for it.

    Args:
        sweep: entries may have `mechanism.bound: measured` in their `set`; a floor they set stays.
            `groups.base: range` is 1 / the sum over coordinates of the range of the entry's table:
            with it, a nominal epsilon of STAMP's Laplace noise is one per unit of l1 distance.
            `polar` is the base with which Laplace noise has the local DP of Polar on the common
            table, as the public code draws it.
        scale: a quick run measures on the packaged letter, any other on WikiText.
        places: folders of the data.

    Raises:
        ModelError: an entry's model cannot be loaded.
        InputError: there is no WikiText.
    """
    common = sweep.get("common", {})
    return {
        **sweep,
        "entries": [
            _resolve_entry(entry, common, scale, places) for entry in sweep.get("entries", ())
        ],
    }


def _resolve_entry(
    entry: Mapping[str, Any], common: Plain, scale: Scale, places: Folders
) -> Mapping[str, Any]:
    settings = {**common, **entry.get("set", {})}
    if (kind := settings.get(BASE_PATH)) in ("range", "polar"):
        base = _measure_base(
            settings.get("table.name", "minilm"),
            settings["table.metric"],
            common.get("table.name", "minilm") if kind == "polar" else None,
        )
        entry = {**entry, "set": {**entry["set"], BASE_PATH: base}}
    if settings.get(BOUND_PATH) != MEASURED:
        return entry
    bound, floor = _measure_bound(
        settings.get("table.name", "minilm"),
        settings.get("mechanism.model"),
        _load_texts(scale, places),
    )
    return {**entry, "set": {FLOOR_PATH: floor, **entry["set"], BOUND_PATH: bound}}


def _load_texts(scale: Scale, places: Folders) -> tuple[str, ...]:
    if scale == "quick":
        return (demo.read_letter(),)
    data = load(SweepData(name="wikitext"), MAX_PASSAGES, places)
    return tuple(text for example in data.examples for text in example.texts)


@lru_cache(maxsize=8)
def _measure_base(name: str, metric: Metric, polar: str | None) -> float:
    """Measures the base of Laplace noise on a table, from another one's local DP if it is named."""
    table = load_table(name, metric=metric)
    if polar is None:
        return 1 / table.coordinate_range
    return load_table(polar).diameter / (math.pi * table.l1_diameter)


@lru_cache(maxsize=8)
def _measure_bound(table: str, model: str | None, texts: Sequence[str]) -> tuple[float, float]:
    """Measures a bound (largest logit, rounded up) and floor (median).

    Both have two digits, as `textveil table calibrate` suggests them.
    """
    from textveil.models import Ragged, load_context, measure_logits

    tokens = tokenize(texts)
    private = np.array([i for i, word in enumerate(tokens.words) if not is_public(word)], np.int64)
    sample = private[
        np.linspace(0, len(private) - 1, min(MAX_POSITIONS, len(private))).astype(np.int64)
    ]
    measurement = measure_logits(
        load_context(load_table(table), model), Ragged.build(tokens), positions=sample
    )
    return math.ceil(measurement.largest * 100) / 100, round(
        measurement.compute_quantiles()["candidates"][0.5], 2
    )
