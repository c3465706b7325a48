"""Tables: the public vocabulary, its vectors, and everything exact that is computed from them.

In: vectors of words. Out: `EmbeddingTable`, with nearest words, geometric constants, word pieces and frequencies.
Not here: draws (`mechanism`), and running networks (`models`).
"""

from textveil.table.constants import Progress
from textveil.table.embedding import LISTED, SLAB, EmbeddingTable, Metric, load_table, ships
from textveil.table.frequency import shares, shares_of
from textveil.table.hub import HUB_ID, NoModelError, fast, fetch, quiet
from textveil.table.pairs import largest
from textveil.table.wordpiece import WordPieces

__all__ = [
    "HUB_ID",
    "LISTED",
    "SLAB",
    "EmbeddingTable",
    "Metric",
    "NoModelError",
    "Progress",
    "WordPieces",
    "fast",
    "fetch",
    "largest",
    "load_table",
    "quiet",
    "shares",
    "shares_of",
    "ships",
]
