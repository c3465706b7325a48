"""Clipping bounds left to be measured: turns `mechanism.bound: measured` of a target into a bound and a floor.

In: a sweep as a plain mapping, public texts. Out: the same sweep with numbers.
Not here: how logits are measured (`models.calibration`), and what is clipped (`mechanism.utility`).

A language model that is not bundled has no stored bound, and nobody can know one without the model.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from textveil.cli import demo
from textveil.text import is_public, tokenize
from textveil_bench.reproduce.targets import Plain, Scale
from textveil_bench.run import Folders, load
from textveil_bench.spec import SweepData

BOUND, FLOOR = "mechanism.bound", "mechanism.floor"
MEASURED = "measured"

PASSAGES, POSITIONS = 40, 300
"""Of WikiText: number of passages read, and of words at which logits are measured."""


def bounded(sweep: Plain, scale: Scale, places: Folders) -> dict[str, Any]:
    """A sweep whose bounds are numbers; measures nothing if no entry asks for it.

    Args:
        sweep: entries may have `mechanism.bound: measured` in their `set`; a floor they set stays.
        scale: a quick run measures on the packaged letter, any other on WikiText.
        places: where that is.

    Raises:
        ModelError: an entry's model cannot be loaded. InputError: there is no WikiText.
    """
    common = sweep.get("common", {})
    return {
        **sweep,
        "entries": [_entry(entry, common, scale, places) for entry in sweep.get("entries", ())],
    }


def _entry(
    entry: Mapping[str, Any], common: Plain, scale: Scale, places: Folders
) -> Mapping[str, Any]:
    own = {**common, **entry.get("set", {})}
    if own.get(BOUND) != MEASURED:
        return entry
    bound, floor = _measured(
        own.get("table.name", "minilm"), own.get("mechanism.model"), _texts(scale, places)
    )
    return {**entry, "set": {FLOOR: floor, **entry["set"], BOUND: bound}}


def _texts(scale: Scale, places: Folders) -> tuple[str, ...]:
    if scale == "quick":
        return (demo.letter(),)
    data = load(SweepData(name="wikitext"), PASSAGES, places)
    return tuple(text for example in data.examples for text in example.texts)


@lru_cache(maxsize=8)
def _measured(table: str, model: str | None, texts: Sequence[str]) -> tuple[float, float]:
    """The largest logit, rounded up to two digits, and the median, as suggested by `textveil table calibrate`."""
    from textveil.models import Ragged, load_context, measure_logits
    from textveil.table import load_table

    tokens = tokenize(texts)
    private = np.array([i for i, word in enumerate(tokens.words) if not is_public(word)], np.int64)
    spread = private[
        np.linspace(0, len(private) - 1, min(POSITIONS, len(private))).astype(np.int64)
    ]
    found = measure_logits(
        load_context(load_table(table), model), Ragged.of(tokens), positions=spread
    )
    return math.ceil(found.largest * 100) / 100, round(found.quantiles()["candidates"][0.5], 2)
