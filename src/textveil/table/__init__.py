"""Tables: the public vocabulary, its vectors, and exact computations on them.

In: vectors of words. Out: `EmbeddingTable`, with nearest words, geometric constants, word pieces
and frequencies.
Not here: draws (`mechanism`), and running networks (`models`).
"""

from textveil.table.book import (
    FITTING,
    Book,
    BookKind,
    Books,
    choice,
    find_book,
    find_books,
    levels_of,
    shipped,
)
from textveil.table.bookmaking import make_books
from textveil.table.constants import Progress
from textveil.table.embedding import (
    LISTED,
    SLAB,
    EmbeddingTable,
    Metric,
    Spelling,
    load_table,
    ships,
)
from textveil.table.frequency import shares, shares_of
from textveil.table.hub import HUB_ID, NoModelError, fast, fetch, quiet
from textveil.table.pairs import largest
from textveil.table.wordpiece import WordPieces

__all__ = [
    "FITTING",
    "HUB_ID",
    "LISTED",
    "SLAB",
    "Book",
    "BookKind",
    "Books",
    "EmbeddingTable",
    "Metric",
    "NoModelError",
    "Progress",
    "Spelling",
    "WordPieces",
    "choice",
    "fast",
    "fetch",
    "find_book",
    "find_books",
    "largest",
    "levels_of",
    "load_table",
    "make_books",
    "quiet",
    "shares",
    "shares_of",
    "shipped",
    "ships",
]
