"""Tables: the public vocabulary, its vectors, and exact computations on them.

In: vectors of words. Out: `EmbeddingTable`, with nearest words, geometric constants, word pieces
and frequencies.
Not here: draws (`mechanism`), and running networks (`models`).
"""

from textveil.table.codebook import (
    AUTO_BOOK,
    Book,
    BookKind,
    Books,
    compute_fingerprint,
    compute_fingerprints,
    find_book,
    find_books,
    list_choices,
    list_levels,
    list_shipped,
)
from textveil.table.codebook_training import make_books
from textveil.table.constants import Progress
from textveil.table.embedding import (
    MAX_CACHED_NEIGHBOURS,
    SLAB_ROWS,
    EmbeddingTable,
    Metric,
    Spelling,
    is_shipped,
    load_table,
)
from textveil.table.hub import HUB_ID, NoModelError, fetch, get_fast_tokenizer, silence_reports
from textveil.table.pairwise import find_largest
from textveil.table.row_frequency import compute_shares, compute_shares_from
from textveil.table.wordpiece import WordPieces

__all__ = [
    "AUTO_BOOK",
    "HUB_ID",
    "MAX_CACHED_NEIGHBOURS",
    "SLAB_ROWS",
    "Book",
    "BookKind",
    "Books",
    "EmbeddingTable",
    "Metric",
    "NoModelError",
    "Progress",
    "Spelling",
    "WordPieces",
    "compute_fingerprint",
    "compute_fingerprints",
    "compute_shares",
    "compute_shares_from",
    "fetch",
    "find_book",
    "find_books",
    "find_largest",
    "get_fast_tokenizer",
    "is_shipped",
    "list_choices",
    "list_levels",
    "list_shipped",
    "load_table",
    "make_books",
    "silence_reports",
]
