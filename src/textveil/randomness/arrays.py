"""Names for the numpy arrays that rooms pass to each other.

In: nothing. Out: one name per type of array and its meaning.
Not here: how numbers are drawn (`streams`, `samplers`). The names are in this room because all
other rooms import it.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flags", "Floats", "Ids", "Ints", "Values"]

Values = NDArray[np.float64]
"""Double precision: budgets, distances, probabilities, estimates."""

Floats = NDArray[np.float32]
"""Single precision, as stored in tables and networks."""

Ids = NDArray[np.int64]
"""Rows of a table; -1 is no row."""

Ints = NDArray[np.int64]
"""Integers: counts, positions, and the exact weights of draws."""

Flags = NDArray[np.bool_]
"""True or false."""
