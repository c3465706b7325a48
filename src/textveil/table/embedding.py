"""The embedding table: words, their vectors, and lookups on them.

In: words and vectors of a public model. Out: rows of words, nearest rows, distances; public views
of it: projections into few axes, and coarse views by few codes.
Not here: where the default table comes from (`minilm`), its constants (`constants`), and anything
random.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tokenizers import Tokenizer

from textveil.config import registry
from textveil.errors import ConfigError, InputError, TableError, quote_short
from textveil.randomness import Flags, Floats, Ids, Values
from textveil.table import constants
from textveil.table.codebook import Book, Books, find_books
from textveil.table.cuda import check_device
from textveil.table.nearest import Nearest
from textveil.table.pairwise import Pairs
from textveil.table.quantized import NORM_TOLERANCE, Rows, Stored, compute_norms

Metric = Literal["chord", "euclidean"]
Spelling = Literal["word", "code"]
"""Form of a code in a release: typical word or number.

The number is shown as "code17".
"""

SLAB_ROWS = 1 << 16
"""Rows per pass over a whole table, to avoid a second copy."""

PART_ROWS = 1 << 12
"""Rows per pass where a copy in float64 is made."""

MAX_CACHED_NUMBERS = 1 << 26
"""Largest table, in numbers, that is cached in float64 for distances.

512 MiB.
"""

EXACT_DIAMETER = 8192
"""Largest number of rows whose diameter is computed over all pairs.

It takes about a second; beyond, the diameter is bounded.
"""

ROWS_AT_ONCE = 2
"""Rows whose distances to all rows are computed at once from products."""

CLOSE_SHARE, CLOSE_PAIRS = 1e-6, 8192
"""Threshold below which squared distances are recomputed, and pairs at once.

The threshold is a share of the squared lengths; the distances are recomputed from the difference.
"""

MAX_CACHED_NEIGHBOURS = 1 << 24
"""Largest number of cached neighbours of all rows: 64 MiB."""

_LONE = re.compile("[\ud800-\udfff]")

UNFIT_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that no word of a table may contain in a release.

Line breaks, other control characters, lone surrogates.
"""

_PIECE = re.compile("##.|\u0120|\u2581")
"""Beginnings of pieces: of a word that goes on, and of one that a space or the start stands before."""

MAX_SPLIT_CHARACTERS = 256
"""First characters of a word that are split, without pieces."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PieceVectors:
    """Word pieces that compose vectors of words outside the table.

    Args:
        tokenizer: splits a word into pieces; no truncation, no padding.
        vectors: one raw row per piece id, float32 or float16 [P, d].
    """

    tokenizer: Tokenizer = field(repr=False)
    vectors: Stored = field(repr=False)

    def compose(self, words: Sequence[str]) -> tuple[Floats, Flags]:
        """Computes each word's mean piece vector [n, d].

        Also says whether the word has any piece, bool [n].
        """
        try:
            encodings = self.tokenizer.encode_batch(words, add_special_tokens=False)
        except Exception:  # the Rust side raises bare Exception, which may quote the word
            encodings = None
        # Raised outside the except clause: not chained to an error that may quote the word.
        if encodings is None:
            raise TableError("the table's tokenizer failed on a word; give it an unknown token")
        pieces = [encoding.ids for encoding in encodings]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        owner = np.repeat(np.arange(len(words)), lengths)
        flat = np.fromiter((piece for ids in pieces for piece in ids), np.int64, int(lengths.sum()))
        total = np.zeros((len(words), self.vectors.shape[1]), np.float32)
        np.add.at(total, owner, self.vectors[flat])
        return total / np.maximum(lengths, 1).astype(np.float32)[:, None], lengths > 0


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddingTable:
    """A public table of words and vectors, with its metric.

    Build one with `EmbeddingTable.build`, or load one by name with `load_table`.

    Attributes:
        name: its name in statements.
        words: V distinct words.
        vectors: as stored, float32 or float16 [V, d]. For metric `chord` unit rows (in float16
            approximately), for `euclidean` the raw rows. Use `take` for the rows that count.
        metric: the distance in its statements: `chord`, between unit rows (at most 2), or
            `euclidean`, between raw rows. The cosine distance is not a metric and is not offered.
        norms: the rows' norms before normalization, float32 [V].
        device: where the nearest row is searched: "cpu", or a torch device such as "cuda". Rows are
            in memory.
        unit_rows: whether rows are compared by direction (cosine) or by position (Euclidean
            distance).
        lipschitz: largest distance between two vectors per unit of `metric`; 1 except for
            renormalized projections.
        parent: the table of which this is a view: a projection, which has the same rows, or a
            coarse view.
        book: for a coarse view, the public map from rows of the parent to rows of the view, or one
            map for each group of words; its projections have none.
        spelling: for a coarse view, how a code is shown: its most typical word, or "code17";
            "code2_17" is a code of the second book.
        tokenizer: for a table of pieces, the tokenizer that cuts words into them.
        by_cosine: whether the nearest row is the one of the largest cosine although rows are raw.
        stored: constants packaged for exactly these rows; otherwise they are computed.
    """

    name: str
    words: tuple[str, ...] = field(repr=False)
    vectors: Stored = field(repr=False)
    metric: Metric
    norms: Floats = field(repr=False)
    device: str = field(default="cpu", repr=False)
    pieces: PieceVectors | None = field(default=None, repr=False)
    unit_rows: bool = True
    lipschitz: float = 1.0
    parent: "EmbeddingTable | None" = field(default=None, repr=False)
    book: Book | Books | None = field(default=None, repr=False)
    spelling: Spelling = field(default="word", repr=False)
    stored: constants.TableConstants | None = field(default=None, repr=False)
    tokenizer: Tokenizer | None = field(default=None, repr=False)
    by_cosine: bool = field(default=False, repr=False)

    @classmethod
    def build(  # noqa: PLR0913 - most are options, given by keyword
        cls,
        *,
        name: str,
        words: Sequence[str],
        vectors: ArrayLike,
        metric: Metric = "chord",
        device: str = "cpu",
        pieces: PieceVectors | None = None,
        stored: constants.TableConstants | None = None,
        norms: Floats | None = None,
        own: bool = False,
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """Builds a table from words and raw vectors.

        Args:
            name: its name in statements.
            words: V >= 2 distinct words, not empty or blank, without control characters.
            vectors: [V, d], finite; for `chord` no row may be zero. A float32 or float16 array (for
                `chord` of unit rows up to rounding) is kept as it is, not copied, and may be
                memory-mapped.
            metric: `chord` normalizes the rows, `euclidean` keeps them.
            device: where the nearest row is searched ("cpu", "cuda"); all but the CPU need the
                extra `torch`.
            pieces: word pieces that compose words outside the table.
            stored: known constants of exactly these rows; otherwise they are computed on demand.
            norms: the rows' norms [V], if `vectors` are already normalized.
            own: whether vectors in float32 may be overwritten, to avoid a second array of that
                size.
            tokenizer: for a table of pieces, the tokenizer that cuts words into them.

        Raises:
            TableError: the words or vectors do not meet the conditions above.
        """
        if metric not in get_args(Metric):
            raise ConfigError(f"table.metric must be chord or euclidean, got {metric!r}")
        rows, lengths = _check(words, vectors)
        if metric == "chord":
            if (lengths == 0).any():
                raise TableError(
                    "metric chord does not allow zero rows; drop those words or use metric "
                    "euclidean"
                )
            # Rows of unit length up to rounding are kept: not copied, and perhaps memory-mapped.
            if (np.abs(lengths - 1) > NORM_TOLERANCE[rows.dtype]).any():
                rows = _normalize_rows(rows, lengths, can_overwrite=own)
        if device != "cpu":
            check_device(device)
        table = cls(
            name=name,
            words=tuple(words),
            vectors=rows,
            metric=metric,
            device=device,
            unit_rows=metric == "chord",
            norms=(lengths if norms is None else norms).astype(np.float32),
            pieces=pieces,
            stored=stored,
            tokenizer=tokenizer,
        )
        if stored is not None and not stored.can_belong(
            len(rows), rows.shape[1], constants.compute_coordinate_range(table.yield_slabs())
        ):
            raise TableError(
                "the stored constants do not fit the rows; leave them out, and they are computed"
            )
        return table

    def __getstate__(self) -> dict[str, object]:
        """Returns the fields without caches, which would reveal words of texts."""
        return {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def __len__(self) -> int:
        """Returns V, the number of words."""
        return len(self.words)

    @property
    def dimension(self) -> int:
        """d, the length of a vector."""
        return int(self.vectors.shape[1])

    @property
    def root(self) -> "EmbeddingTable":
        """The table that this projects, directly or not; itself if none.

        It has the same rows.
        """
        return self if self.parent is None or self.book is not None else self.parent.root

    @property
    def origin(self) -> "EmbeddingTable":
        """The table that looks up words, below all projections and coarse views."""
        return self if self.parent is None else self.parent.origin

    @property
    def is_projection(self) -> bool:
        """True if this is a projection."""
        return self.root is not self

    @property
    def axes_note(self) -> str:
        """The number of axes that a projection keeps ("in 32 axes")."""
        return f"in {self.dimension} axes" if self.is_projection else ""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the stored words and vectors, in hexadecimal.

        Tables of the same name may differ. For a coarse view it also covers the book.
        """
        # No word holds a line break, so different lists of words never join to the same text.
        digest = hashlib.sha256("\n".join(self.words).encode(errors="backslashreplace"))
        digest.update(b"" if self.book is None else self.book.digest.encode())
        for start in range(0, len(self), SLAB_ROWS):
            digest.update(self.vectors[start : start + SLAB_ROWS].tobytes())
        return digest.hexdigest()

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def holds_pieces(self) -> bool:
        """True if the words are word pieces.

        The table has their tokenizer, or more than one word in twenty is marked as a piece.
        """
        marked = sum(_PIECE.match(word) is not None for word in self.words)
        return self.tokenizer is not None or marked > len(self) / 20

    def take(self, rows: slice | Ids) -> Floats:
        """Returns rows as float32 [n, d], see `take_rows`.

        Distances and noise refer to these numbers.
        """
        return take_rows(self.vectors[rows], self.unit_rows)

    def yield_slabs(self) -> Iterator[Floats]:
        """Yields all rows as `take` does, slab by slab."""
        return (
            self.take(slice(start, start + SLAB_ROWS)) for start in range(0, len(self), SLAB_ROWS)
        )

    # ---- words to rows ---------------------------------------------------------------------------

    def lookup(self, words: Sequence[str]) -> tuple[Ids, Flags]:
        """Finds each word's row, a public function of the word alone.

        A word of the table (in its case, or lower-cased) has a row. Any other word gets a
        surrogate: the row nearest to the mean of its word pieces. Without pieces, the word is split
        greedily into table words; if that finds none, a fixed public hash picks the row. So every
        string has a row, and all constants of the table hold for every string. A coarse view has
        the code of the word's row in the table of which it is a view.

        Returns:
            rows int64 [n], and whether the word itself is in the table (for a view: in its origin),
            bool [n].
        """
        if self.parent is not None:
            rows, in_table = self.origin.lookup(words)
            return self.map_rows(rows), in_table
        rows = self.find(words)
        in_table = rows >= 0
        if not in_table.all():
            rows[~in_table] = self._find_surrogates(
                [words[i].lower() for i in np.flatnonzero(~in_table).tolist()]
            )
        return rows, in_table

    def find(self, words: Sequence[str]) -> Ids:
        """Finds the row of each word of the table, int64 [n].

        In its case or lower-cased; -1 for words outside the table.
        """
        if self.parent is not None:
            return self.map_rows(self.origin.find(words))
        row_of = self.row_of
        rows = np.fromiter((row_of.get(word, -1) for word in words), np.int64, len(words))
        missing = np.flatnonzero(rows < 0)
        rows[missing] = [row_of.get(words[i].lower(), -1) for i in missing.tolist()]
        return rows

    def map_rows(self, rows: Ids, group: Ids | None = None) -> Ids:
        """Maps rows of the origin to rows of this table.

        In a coarse view the row's code, else the same; -1 for -1.

        Args:
            rows: int64 [n], or of any shape.
            group: the group of each word, from 0 to 3, for a view by more than one book; of a shape
                that fits.
        """
        if self.parent is None:
            return rows
        parent_rows = self.parent.map_rows(rows, group)
        if self.book is None:
            return parent_rows
        return np.where(parent_rows >= 0, self.book.map_rows(parent_rows, group), parent_rows)

    @property
    def views(self) -> "tuple[EmbeddingTable, ...]":
        """The coarse views by each book; otherwise this table alone.

        Their rows follow one another in this table.
        """
        if not isinstance(self.book, Books):
            return (self,)
        return tuple(self.origin.coarsen(book, spelling=self.spelling) for book in self.book.parts)

    def map_to_origin(self, rows: Ids) -> Ids:
        """Returns the origin's row of each shown word, -1 for -1.

        Rows are [n], rows of this table.
        """
        if self.parent is None:
            return rows
        if self.book is not None:
            rows = np.where(rows >= 0, self.book.spelling[rows], rows)
        return self.parent.map_to_origin(rows)

    def find_heads(self, prior: Values) -> Values:
        """Returns the probability of each row's likeliest word: float64 [V].

        `prior` has the probabilities of the origin's rows.
        """
        if self.parent is None:
            return prior
        parent_heads = self.parent.find_heads(prior)
        return parent_heads if self.book is None else self.book.find_highest(parent_heads)

    def sum_by_row(self, prior: Values) -> Values:
        """Returns the total probability of each row's words: float64 [V].

        `prior` has the probabilities of the origin's rows.
        """
        if self.parent is None:
            return prior
        sums = self.parent.sum_by_row(prior)
        return sums if self.book is None else self.book.sum_values(sums)

    def spread(self, values: Floats | Values) -> Floats | Values:
        """Copies the values of rows [..., V] to the origin's rows.

        Words of one code get the same value.
        """
        if self.parent is None:
            return values
        return self.parent.spread(values if self.book is None else self.book.spread(values))

    def _find_surrogates(self, words: list[str]) -> Ids:
        distinct = list(dict.fromkeys(words))
        # A lone surrogate has no UTF-8, and so no hash; the message must not show the word.
        if any(map(_LONE.search, distinct)):
            raise InputError(
                "a text must be valid Unicode, and this one has a lone surrogate; remove it"
            )
        encoded = [word.encode() for word in distinct]
        rows = np.fromiter((_hash(word, len(self)) for word in encoded), np.int64, len(distinct))
        if self.pieces is not None:
            means, composed = self.pieces.compose(distinct)
        else:
            means, composed = self._compose_by_splitting(distinct)
        # A mean of zero has no direction: the hash decides.
        composed = composed & (means != 0).any(axis=1)
        if composed.any():
            rows[composed] = self.nearest(means[composed])
        place = {word: i for i, word in enumerate(distinct)}
        return rows[np.fromiter((place[word] for word in words), np.int64, len(words))]

    def _compose_by_splitting(self, words: list[str]) -> tuple[Floats, Flags]:
        means = np.zeros((len(words), self.dimension), np.float32)
        composed = np.zeros(len(words), bool)
        for start in range(0, len(words), SLAB_ROWS):
            parts = [
                self._split_greedily(word[:MAX_SPLIT_CHARACTERS])
                for word in words[start : start + SLAB_ROWS]
            ]
            many = np.fromiter(map(len, parts), np.int64, len(parts))
            at = start + np.flatnonzero(many)
            if len(at):
                rows = self.take(np.fromiter(chain.from_iterable(parts), np.int64, many.sum()))
                # reduceat would return a row for a word without parts, too.
                many = many[many > 0]
                sums = np.add.reduceat(rows, np.cumsum(many) - many, axis=0)
                means[at], composed[at] = sums / many[:, None].astype(np.float32), True
        return means, composed

    def _split_greedily(self, word: str) -> list[int]:
        parts: list[int] = []
        start = 0
        while start < len(word):
            for size in self._sizes.get(word[start], ()):
                if (row := self.row_of.get(word[start : start + size])) is not None:
                    parts.append(row)
                    start += size
                    break
            else:
                start += 1
        return parts

    @cached_property
    def _sizes(self) -> dict[str, list[int]]:
        """Lengths of the words that begin with a letter, longest first.

        At a word's end, a longer size means the rest.
        """
        letter_sizes: dict[str, set[int]] = {}
        for word in self.row_of:
            letter_sizes.setdefault(word[0], set()).add(len(word))
        return {letter: sorted(sizes, reverse=True) for letter, sizes in letter_sizes.items()}

    # ---- vectors to rows -------------------------------------------------------------------------

    @cached_property
    def decoder(self) -> Nearest:
        """The exact search over these rows."""
        return Nearest(rows=self._decoded_rows, device=self.device)

    @property
    def _decoded_rows(self) -> Rows:
        """The rows that are searched: those of the table, scaled to length 1 for `by_cosine`."""
        if not self.by_cosine:
            return self._rows
        rows = self.take(slice(None))
        unit = _normalize_rows(rows, compute_lengths(rows))
        return Rows(stored=unit, take=unit.__getitem__, by_direction=True)

    @property
    def _rows(self) -> Rows:
        return Rows(stored=self.vectors, take=self.take, by_direction=self.unit_rows)

    def nearest(self, queries: Values | Floats, *, exclude: Ids | None = None) -> Ids:
        """Finds the nearest row of each query.

        By cosine if rows are unit vectors or `by_cosine` is set, else by Euclidean distance.

        Args:
            queries: [n, d], any length; with cosine, a zero query is equally near to all rows.
            exclude: one row per query that is not allowed as the answer.

        Returns:
            rows int64 [n], exact as computed in float64. Ties go to the lowest row.

        Raises:
            InputError: a query is not finite.
        """
        return self.decoder.search(queries, exclude)

    def distances(self, rows: Ids) -> Values:
        """Computes the distances of each row to all rows, float64 [n, V].

        In the table's metric; 0 to itself.
        """
        query_rows = self.take(rows).astype(np.float64)
        centred = query_rows - self._mean
        sizes = np.einsum("ij,ij->i", centred, centred)[:, None]
        matrix = np.empty((len(rows), len(self)))
        for start, part, squares in self._centred_slabs:
            products = centred @ part.T
            for first in range(
                0, len(rows), ROWS_AT_ONCE
            ):  # these rows stay in a processor's cache
                part_rows = slice(first, first + ROWS_AT_ONCE)
                distances, size = products[part_rows], sizes[part_rows] + squares
                distances *= -2
                distances += size
                size *= CLOSE_SHARE
                # the product is inaccurate here: use the difference
                near = np.flatnonzero(distances <= size)
                np.maximum(distances, 0, out=distances)
                np.sqrt(distances, out=distances)
                for at in range(0, len(near), CLOSE_PAIRS):
                    i, y = np.divmod(near[at : at + CLOSE_PAIRS], len(part))
                    distances[i, y] = compute_norms(query_rows[first + i] - self.take(start + y))
                matrix[part_rows, start : start + len(part)] = distances
        return matrix

    @cached_property
    def pairs(self) -> Pairs:
        """Pairwise comparison of these rows."""
        return Pairs(rows=self._rows)

    def neighbours(self, rows: Ids, k: int) -> Ids:
        """Finds the k nearest rows of each row in the table's metric.

        A public function of the table.

        Args:
            rows: [m].
            k: how many, 1 to V.

        Returns:
            int64 [m, k]: the row itself, then the others by distance, as computed from float64
            differences; ties go to the lowest row. Lists are cached, at most 64 MiB for one k.

        Raises:
            ConfigError: k is out of range.
        """
        if not 1 <= k <= len(self):
            raise ConfigError(f"k must be from 1 to the table's {len(self)} rows, got {k}")
        if len(self) * k > MAX_CACHED_NEIGHBOURS:
            distinct, back = np.unique(rows, return_inverse=True)
            return self.pairs.find_nearest(distinct, k)[back]
        lists = self._lists.get(k)
        if lists is None:
            lists = self._lists.setdefault(k, np.full((len(self), k), -1, np.int32))
        nearest: Ids = lists[rows].astype(np.int64)
        # another thread may have written half a list
        missing = np.unique(rows[nearest.min(axis=1) < 0])
        if len(missing):
            computed = self.pairs.find_nearest(missing, k)
            lists[missing] = computed  # two threads write the same
            short = nearest.min(axis=1) < 0
            nearest[short] = computed[np.searchsorted(missing, rows[short])]
        return nearest

    def has_lists(self, k: int) -> bool:
        """Says whether the `k` nearest rows of every row are cached.

        Then `neighbours` computes nothing.
        """
        lists = self._lists.get(k)
        return lists is not None and bool((lists >= 0).all())

    def find_kth(self, k: int) -> Ids:
        """Finds the k-th nearest row of every row, int64 [V].

        The first is the row itself. Known for the tables of the package and some k; else all rows
        are compared, which takes some ten seconds of a processor for 20,000 rows.

        Raises:
            ConfigError: k is out of range.
        """
        stored_rows = (
            constants.load_kth(f"{self.name}-{self.metric}", k) if is_shipped(self) else None
        )
        return (
            self.neighbours(np.arange(len(self)), k)[:, -1] if stored_rows is None else stored_rows
        )

    @cached_property
    def _lists(self) -> dict[int, NDArray[np.int32]]:
        return {}

    @cached_property
    def _mean(self) -> Values:
        """The mean row; distances are more accurate relative to it."""
        sums = [slab.sum(axis=0, dtype=np.float64) for slab in self.yield_slabs()]
        return np.asarray(np.sum(sums, axis=0) / len(self))

    @property
    def _centred_slabs(self) -> Iterable[tuple[int, Values, Values]]:
        """Slabs of rows minus the mean, float64 [w, d].

        Each with its first row and the squared norms [w].
        """
        return (
            self._cached_slabs if self.vectors.size <= MAX_CACHED_NUMBERS else self._compute_slabs()
        )

    @cached_property
    def _cached_slabs(self) -> list[tuple[int, Values, Values]]:
        return list(self._compute_slabs())

    def _compute_slabs(self) -> Iterator[tuple[int, Values, Values]]:
        for number, slab in enumerate(self.yield_slabs()):
            part = slab - self._mean
            yield number * SLAB_ROWS, part, np.einsum("ij,ij->i", part, part)

    # ---- public constants ------------------------------------------------------------------------

    @cached_property
    def diameter(self) -> float:
        """The largest distance between two words, in the table's metric.

        For a projection, the largest distance of the table that it leaves. Stored for packaged
        tables, exact for small ones, otherwise an upper bound.
        """
        if self.stored is not None:
            return self.stored.diameter
        exact = len(self) <= EXACT_DIAMETER
        rows = self.take(slice(None))
        computed = (
            constants.compute_diameter(rows) if exact else constants.compute_diameter_bound(rows)
        )
        computed = min(computed, 2.0) if self.unit_rows else computed
        if self.parent and self.is_projection:
            return min(self.parent.diameter, computed / self.lipschitz)
        return computed

    @cached_property
    def l1_diameter(self) -> float:
        """D_1, the largest l1 distance between two rows.

        For large tables bounded by sqrt(d) times the diameter.
        """
        if self.stored is not None:
            return self.stored.l1_diameter
        rows = self.take(slice(None))
        if len(self) <= EXACT_DIAMETER:
            return constants.compute_l1_diameter(rows)
        return float(
            min(self.dimension**0.5 * constants.compute_diameter_bound(rows), self.coordinate_range)
        )

    @cached_property
    def coordinate_range(self) -> float:
        """Delta_1, the sum of all coordinates' ranges.

        A range is the largest minus the smallest value.
        """
        if self.stored is not None:
            return self.stored.coordinate_range
        return constants.compute_coordinate_range(self.yield_slabs())

    @cached_property
    def curve(self) -> constants.CalibrationCurve | None:
        """The exponential mechanism's constant as a certified function of c.

        None if it would take minutes.
        """
        if self.stored is not None:
            return self.stored.curve
        if len(self) <= constants.SMALL_TABLE:
            return constants.compute_curve(self.take(slice(None)))
        return None

    # ---- public projections ----------------------------------------------------------------------

    def project(self, k: int, *, renormalize: bool = False) -> "EmbeddingTable":
        """Projects the table to its k principal axes: a public view.

        The view has the same words and metric. A projection never increases a distance, so a
        mechanism on the view keeps its constant for distances of this table. Renormalizing the
        projected rows can increase distances: the factor is computed over all pairs of the table
        and kept in `lipschitz`.

        Args:
            k: axes kept, 1 <= k <= d.
            renormalize: whether to normalize the projected rows (metric `chord` only).

        Raises:
            ConfigError: k is out of range, or the view cannot be renormalized.
        """
        return _project(self, k, renormalize)

    def decode_by_cosine(self) -> "EmbeddingTable":
        """Returns this table with its nearest rows found by cosine: a public view.

        Rows and distances stay as they are. A table of unit rows is its own view.

        Raises:
            ConfigError: a row is zero, and has no direction.
        """
        return self if self.unit_rows else _turn_to_cosine(self)

    # ---- public coarse views ---------------------------------------------------------------------

    def coarsen(self, book: Book | Books, *, spelling: Spelling = "word") -> "EmbeddingTable":
        """Returns the coarse view of the table by a book's codes.

        The view is public; its rows are codes, and its words spell them. A word has the row of its
        code, so that a mechanism on the view cannot tell words of one code apart. The vector of a
        code is the mean of its words' vectors, scaled to length 1 for metric `chord`; distances are
        between these.

        Args:
            book: made for the words of this table; or books for the groups of words, whose views
                follow one another.
            spelling: how a code is shown.

        Raises:
            ConfigError: the book is for other words, or this is a view itself, or holds pieces of
                words.
        """
        if isinstance(book, Book):
            return _coarsen(self, book, spelling)
        return _coarsen_by_group(self, book, spelling)


class LazyTable(EmbeddingTable):
    """A table of the package that reads its rows on first use.

    Its words are read and verified at once. Some callers need words alone: prompts get placeholders
    and not other words. Its copies, views and pickles hold rows.
    """

    _read: Callable[[], EmbeddingTable]

    @classmethod
    def create(
        cls, name: str, metric: Metric, words: Sequence[str], read: Callable[[], EmbeddingTable]
    ) -> Self:
        """Builds a table from words and a function that reads rows.

        Args:
            name: its name in statements.
            metric: the distance in its statements.
            words: verified.
            read: makes the whole table, with the same words.
        """
        # Without __init__, which would set the fields that are read on first use.
        table = object.__new__(cls)
        vars(table).update(
            name=name,
            metric=metric,
            unit_rows=metric == "chord",
            words=tuple(words),
            _read=cache(read),  # once: the rows of a table are one array
        )
        return table

    @cached_property
    def vectors(self) -> Stored:  # noqa: D102
        return self._read().vectors

    @cached_property
    def norms(self) -> Floats:  # noqa: D102
        return self._read().norms

    @cached_property
    def pieces(self) -> PieceVectors | None:  # noqa: D102
        return self._read().pieces

    @cached_property
    def stored(self) -> constants.TableConstants | None:  # noqa: D102
        return self._read().stored


def _check(words: Sequence[str], vectors: ArrayLike) -> tuple[Stored, Values]:
    """Returns the rows of a table and their lengths, after checks."""
    rows: Stored = np.asarray(vectors)
    if rows.dtype != np.float16:
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
            rows = rows.astype(np.float32, copy=False)
    if rows.ndim != 2 or len(rows) != len(words) or len(rows) < 2 or rows.shape[1] < 1:
        raise TableError(
            f"a table needs one row per word and at least two, got {len(words)} words, vectors "
            f"{tuple(rows.shape)}"
        )
    if len(set(words)) != len(words) or not all(map(str.strip, words)):
        raise TableError("the words of a table must be distinct and not empty")
    if UNFIT_CHARACTERS.search("".join(words)):
        raise TableError(
            "the words of a table must be valid Unicode without line breaks or control characters"
        )
    lengths = compute_lengths(rows)
    if not np.isfinite(lengths).all():
        raise TableError("the vectors of a table must be finite")
    return rows, lengths


def take_rows(stored: Stored, unit_rows: bool) -> Floats:
    """Converts stored rows to the rows that count, float32 [n, d].

    Rows stored in float16 are only approximately unit vectors; if direction counts they are
    normalized here.
    """
    if stored.dtype == np.float32:
        return np.asarray(stored)
    whole = stored.astype(np.float64)
    if unit_rows:
        whole /= compute_norms(whole)[:, None]
    return whole.astype(np.float32)


def compute_lengths(rows: Stored) -> Values:
    """Computes the norms of rows [V], in float64."""
    parts = (rows[start : start + PART_ROWS] for start in range(0, len(rows), PART_ROWS))
    return np.concatenate([compute_norms(part.astype(np.float64)) for part in parts])


def _normalize_rows(rows: Stored, lengths: Values, *, can_overwrite: bool = False) -> Floats:
    """Divides rows by their lengths, computed in float64.

    With `can_overwrite`, rows in float32 are overwritten.
    """
    unit = rows if can_overwrite and rows.dtype == np.float32 else np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), PART_ROWS):
        part = slice(start, start + PART_ROWS)
        unit[part] = rows[part] / lengths[part, None]
    return unit


@lru_cache(maxsize=16)
def _project(table: EmbeddingTable, k: int, renormalize: bool) -> EmbeddingTable:
    if not 1 <= k <= table.dimension:
        raise ConfigError(
            f"project must be from 1 to the table's dimension {table.dimension}, got {k}"
        )
    if renormalize and table.metric != "chord":
        raise ConfigError(
            "a renormalized projection needs a table of unit rows: set table.metric=chord"
        )
    rows = table.take(slice(None)).astype(np.float64)
    # eigh sorts by rising eigenvalue: the last axes are the principal ones.
    axes = np.linalg.eigh(rows.T @ rows).eigenvectors[:, -k:]
    view = rows @ axes
    factor = 1.0
    if renormalize:
        lengths = compute_norms(view)[:, None]
        if (lengths == 0).any():
            raise ConfigError(
                f"a word is zero in {k} axes: choose a larger k, or do not renormalize"
            )
        view = view / lengths
        factor = max(1.0, constants.compute_projection_factor(table.take(slice(None)), view))
    return replace(
        table,
        name=f"{table.name} in {k} axes",
        vectors=view.astype(np.float32),
        norms=compute_norms(view).astype(np.float32),
        unit_rows=renormalize,
        lipschitz=table.lipschitz * factor,
        parent=table,
        book=None,
        stored=None,
    )


@lru_cache(maxsize=16)
def _turn_to_cosine(table: EmbeddingTable) -> EmbeddingTable:
    if not compute_lengths(table.vectors).all():
        raise ConfigError(
            "decode=cosine needs a direction of every word, and a row of the table is zero: leave "
            "it out, or take table.metric=chord"
        )
    return replace(table, by_cosine=True)


@lru_cache(maxsize=16)
def _coarsen(table: EmbeddingTable, book: Book, spelling: Spelling) -> EmbeddingTable:
    if spelling not in ("word", "code"):
        raise ConfigError(f"table.spelling must be word or code, got {quote_short(str(spelling))}")
    if table.parent is not None or table.holds_pieces:
        raise ConfigError(
            "table.codes needs a table of whole words that is not a view of another table: "
            "take another table"
        )
    book.check(table.name, table.words)
    means = np.zeros((len(book), table.dimension))
    for number, slab in enumerate(table.yield_slabs()):
        np.add.at(
            means,
            book.codes[number * SLAB_ROWS : number * SLAB_ROWS + len(slab)],
            slab.astype(np.float64),
        )
    means /= book.sizes[:, None]
    lengths = compute_norms(means)
    if table.metric == "chord":
        # opposite words cancel out: take the typical word's vector
        empty = lengths <= NORM_TOLERANCE[np.dtype(np.float32)]
        means[empty] = table.take(book.spelling[empty])
        means /= compute_norms(means)[:, None]
    if np.ptp(means, axis=0).max() <= NORM_TOLERANCE[np.dtype(np.float32)]:
        raise ConfigError(
            f"the {len(book)} codes of a book have the same mean vector, so that no distance "
            "tells them apart: make another book with `textveil table codes`"
        )
    words = [table.words[row] for row in book.spelling.tolist()]
    if spelling == "code":
        words = [f"code{code}" for code in range(len(book))]
    return replace(
        table,
        name=f"{table.name} in {book.name}",
        words=tuple(words),
        vectors=means.astype(np.float32),
        norms=lengths.astype(np.float32),
        pieces=None,
        parent=table,
        book=book,
        spelling=spelling,
        stored=None,
    )


@lru_cache(maxsize=16)
def _coarsen_by_group(table: EmbeddingTable, books: Books, spelling: Spelling) -> EmbeddingTable:
    views = [table.coarsen(part, spelling=spelling) for part in books.parts]
    numbered = [
        [f"code{at}_{part.removeprefix('code')}" for part in view.words]
        for at, view in enumerate(views, 1)
    ]
    words = numbered if spelling == "code" else [view.words for view in views]
    return replace(
        views[0],
        name=f"{table.name} in {books.name}",
        words=tuple(word for part_words in words for word in part_words),
        vectors=np.concatenate([view.vectors for view in views]),
        norms=np.concatenate([view.norms for view in views]),
        book=books,
    )


def _hash(word: bytes, size: int) -> int:
    """Hashes a word to a fixed public row, if nothing else does."""
    return int.from_bytes(hashlib.blake2b(word, digest_size=8).digest(), "big") % size


def load_table(
    name: str = "minilm",
    *,
    metric: Metric = "chord",
    device: str = "cpu",
    codes: str | None = None,
    spelling: Spelling = "word",
) -> EmbeddingTable:
    """Loads a registered table by name, or one from a folder.

    Each is loaded once per process.

    Args:
        name: a registered name, or the path of a folder.
        metric: the distance in its statements.
        device: where the nearest row is searched.
        codes: for a coarse view of it, the size of a general book of the package, or the path of a
            book, perhaps with a level ("BOOK@24"); four of them with commas for the four groups.
        spelling: how a code is shown.

    Raises:
        UnknownName: no table has this name.
        TableError: the files of the table or the book are missing or invalid.
        ConfigError: the book is for another table.
    """
    table = _load(os.path.realpath(name) if registry.is_folder(name) else name, metric, device)
    return table if codes is None else table.coarsen(find_books(codes), spelling=spelling)


def is_shipped(table: EmbeddingTable) -> bool:
    """Says whether this is a table of the package.

    Another table may have the same name.
    """
    return (
        table.name in registry.TABLES
        and load_table(table.name, metric=table.metric, device=table.device) is table
    )


@cache
def _load(name: str, metric: Metric, device: str) -> EmbeddingTable:
    if metric not in ("chord", "euclidean"):
        raise ConfigError(f"table.metric must be chord or euclidean, got {metric!r}")
    build = registry.load("table", name)
    table = build(metric=metric, device=device)
    if not isinstance(table, EmbeddingTable):
        raise TableError(
            f"the table {name!r} must load as an EmbeddingTable, got a {type(table).__name__}"
        )
    return table
