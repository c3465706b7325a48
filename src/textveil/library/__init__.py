"""Libraries: public texts in cells, for releases that are made of whole texts.

In: public texts; texts to place. Out: `Library`, with the cell of any text.
Not here: what is drawn (`mechanism`), and what is released (`pipeline`, `corpus`).
"""

from textveil.library.library import Level, Library, LibraryKind
from textveil.library.making import LEVELS, CellKind, make_library

__all__ = ["LEVELS", "CellKind", "Level", "Library", "LibraryKind", "make_library"]
