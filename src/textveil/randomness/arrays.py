"""Names for the numpy arrays that the rooms pass to one another.

In: nothing. Out: one name for each type of array and what it stands for.
Not here: how numbers are drawn (`streams`, `samplers`). The names live in this room because all others import it.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flags", "Floats", "Ids", "Ints", "Values"]

Values = NDArray[np.float64]
"""Double precision: budgets, distances, probabilities, estimates."""

Floats = NDArray[np.float32]
"""Single precision, as tables and networks hold their numbers."""

Ids = NDArray[np.int64]
"""Rows of a table; -1 is no row."""

Ints = NDArray[np.int64]
"""Whole numbers: counts, places, and the exact weights that words are drawn by."""

Flags = NDArray[np.bool_]
"""True or false."""
