"""Sentence vectors for judges: equal texts are encoded once.

In: texts, and an encoder's source. Out: unit vectors, cosines.
Not here: how encoders are loaded (`judge_models`).
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from textveil.evaluate.attack import ProgressCallback, ignore_progress
from textveil.randomness import Floats, Values
from textveil_bench.tasks import judge_models

STEP = 512
"""Number of texts between two progress reports."""


def encode(
    texts: Sequence[str], source: str | None = None, *, report: ProgressCallback = ignore_progress
) -> Floats:
    """Encodes texts as unit vectors float32 [B, d]; zero without words.

    Args:
        texts: equal ones are encoded once.
        source: the encoder.
        report: called with progress.
    """
    distinct = sorted(set(texts), key=lambda text: (len(text), text))  # by length, for less padding
    encodings = np.zeros((len(distinct), judge_models.get_encoder(source).dimension), np.float32)
    for start in range(0, len(distinct), STEP):
        report("sentence vectors", start, len(distinct))
        encodings[start : start + STEP] = judge_models.get_encoder(source).encode(
            distinct[start : start + STEP]
        )
    place = {text: i for i, text in enumerate(distinct)}
    return encodings[[place[text] for text in texts]]


@lru_cache(maxsize=8)
def encode_originals(texts: tuple[str, ...], source: str | None = None) -> Floats:
    """Encodes originals as `encode`, cached for all cells. Read-only."""
    encodings = encode(texts, source)
    encodings.flags.writeable = False
    return encodings


def compute_cosines(first: Floats, second: Floats) -> Values:
    """Computes row-wise cosines of unit vectors, float64 [B]; 0 for zero vectors."""
    products: Values = (first.astype(np.float64) * second).sum(axis=1)
    return products
