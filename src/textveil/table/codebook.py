"""Books of codes: public maps from a table's words to few codes.

In: a map with what it was made from, or the file of one. Out: `Book`, and its file.
Not here: the coarse view itself (`embedding`), and how a book is made from public texts
(`codebook_training`).

All words of one code are one value to every mechanism that runs over the coarse view, so that
nobody tells them apart. A book must be public: made from public texts, by a public rule. It names
its source, and refuses to release any of the texts that it was made from.

A nested book has more than one level, from few codes to many: every code of one level is a union of
codes of the next.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise
from os.path import isfile
from pathlib import Path
from re import fullmatch
from typing import Any, Literal, Self, get_args
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from textveil.errors import ConfigError, InputError, TableError, quote_short
from textveil.randomness import Floats, Ids, Values

BookKind = Literal["general", "domain", "task"]

VERSION = 1

MAX_CODES = 1 << 16
"""Largest number of codes of a book: 16 bits hold them."""

GROUP_COUNT = 4
"""Number of word groups that may have separate books."""

MAX_SOURCE_CHARACTERS = 500
"""Largest number of characters in a book's source."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Book:
    """A public map of V words to C codes, with read-only arrays.

    Two books of one digest are equal.

    Attributes:
        kind: `general` (made from general public text), `domain` (from texts of one domain) or
            `task` (from labelled texts: what passes is the label).
        source: what it was made from, in the words of whoever made it.
        table: the name of the table that it is for.
        words: SHA-256 of that table's words in order, in hexadecimal: it ties the book to its
            table.
        codes: uint16 [V], the code of each row.
        spelling: int64 [C], the row of each code's most typical word.
        masses: float32 [C], the share of each code among the words of general public text that are
            not on the public list.
        heads: float32 [C], the share of each code's most frequent word within it, in the same text:
            how badly it hides that word. Both are as the maker counted; statements count them anew.
        domain_heads: like `heads`, in the texts that the book was made from; None for a general
            book.
        texts: uint64 [n], fingerprints of these texts, rising; none for a book of the vectors
            alone. The general books of the package do not list the public articles that they were
            made from.
        options: how it was made: seed, sizes and so on.
        coarser: for a nested book its coarser levels, with ever more codes; each code is a union of
            codes of the next level, and of this book after the last. `get_level` gives them as
            parts of this book.
        whole: for a coarser level, the nested book that contains it.
    """

    kind: BookKind
    source: str
    table: str = field(repr=False)
    words: str = field(repr=False)
    codes: NDArray[np.uint16] = field(repr=False)
    spelling: Ids = field(repr=False)
    masses: Floats = field(repr=False)
    heads: Floats = field(repr=False)
    domain_heads: Floats | None = field(default=None, repr=False)
    texts: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64), repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    coarser: tuple["Book", ...] = field(default=(), repr=False)
    whole: "Book | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for attribute in fields(self):  # else a later change would be in no digest
            if isinstance(value := getattr(self, attribute.name), np.ndarray):
                object.__setattr__(self, attribute.name, value := value.copy())
                value.setflags(write=False)
        if reason := self._find_fault():
            raise TableError(f"a book of codes {reason}")

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuilds the book when unpickled, because pickled arrays would become writable."""
        if self.whole is not None:
            return self.whole.get_level, (len(self),)
        return partial(
            type(self),
            **{attribute.name: getattr(self, attribute.name) for attribute in fields(self)},
        ), ()

    def _find_fault(self) -> str:
        """Returns the first rule that this book breaks, or "".

        The words continue "a book of codes ...".
        """
        return (
            self._find_origin_fault()
            or self._find_codes_fault()
            or self._find_shares_fault()
            or self._find_levels_fault()
        )

    def _find_origin_fault(self) -> str:
        if self.kind not in get_args(BookKind):
            return f"is {', '.join(get_args(BookKind))}, got {quote_short(str(self.kind))}"
        if (
            not self.source.strip()
            or len(self.source) > MAX_SOURCE_CHARACTERS
            or not self.source.isprintable()
        ):
            return (
                f"needs a source: one line of 1 to {MAX_SOURCE_CHARACTERS} characters that says "
                "what it was made from"
            )
        return ""

    def _find_codes_fault(self) -> str:
        if self.codes.ndim != 1 or self.codes.dtype != np.uint16 or self.spelling.ndim != 1:
            return "needs one code in 16 bits for each word, and one word for each code"
        if not 2 <= len(self) <= min(len(self.codes), MAX_CODES):
            return (
                f"has at least 2 codes and at most one for each word, got {len(self)} for "
                f"{len(self.codes)} words"
            )
        if int(self.codes.max()) >= len(self) or not self.sizes.all():
            return f"has a word for each of its {len(self)} codes, and a code for each word"
        inside = ((self.spelling >= 0) & (self.spelling < len(self.codes))).all()
        if not inside or (self.codes[self.spelling] != np.arange(len(self))).any():
            return "spells each code by a word of that code"
        return ""

    def _find_shares_fault(self) -> str:
        domain = [] if self.domain_heads is None else [self.domain_heads]
        for shares in (self.masses, self.heads, *domain):
            if shares.shape != (len(self),) or not ((shares > 0) & (shares <= 1)).all():
                return "has shares above 0, and at most 1, for each code and its most frequent word"
        # The largest of n shares is at least 1 / n, up to rounding in float32.
        if any((shares * self.sizes < 1 - 1e-5).any() for shares in (self.heads, *domain)):
            return (
                "has for each code the share of its most frequent word, and no other word has "
                "a larger share"
            )
        if (self.kind == "general") != (not domain):
            return (
                "has shares in the texts of its domain or task, and a general book has no "
                "such shares"
            )
        return ""

    def _find_levels_fault(self) -> str:
        if self.texts.dtype != np.uint64 or (self.kind != "general" and not len(self.texts)):
            return "that is made from texts lists their fingerprints"
        if not all(
            level.is_coarser_than(other) for level, other in pairwise((*self.coarser, self))
        ):
            return (
                "that is nested has more codes at each finer level, and each code of a "
                "coarser level is a union of finer ones"
            )
        if self.whole is None or self._content in [level._content for level in self.whole.coarser]:
            return ""
        return "that is a level belongs to the nested book that it names"

    def __len__(self) -> int:
        """Returns C, the number of codes."""
        return len(self.spelling)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Book) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def sizes(self) -> Ids:
        """The number of words of each code, int64 [C]."""
        return np.bincount(self.codes, minlength=len(self)).astype(np.int64)

    # ---- levels ----------------------------------------------------------------------------------

    def is_coarser_than(self, other: "Book") -> bool:
        """Says whether this book is a coarser level of another book.

        Both have the same origin, this one has fewer codes, and each of its codes is a union of
        codes of the other.
        """
        if self._describe() != other._describe() or self.coarser or len(self) >= len(other):
            return False
        if len(self.codes) != len(other.codes):
            return False
        # Each finer code meets a single coarser one if there are as many pairs as finer codes.
        pairs = other.codes.astype(np.int64) * len(self) + self.codes
        return len(np.unique(pairs)) == len(other) and np.array_equal(self.texts, other.texts)

    @property
    def nested_book(self) -> "Book | None":
        """The nested book that contains this level; None without levels.

        The finest level is the nested book itself.
        """
        return self if self.coarser else self.whole

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of codes of each level of the nested book, rising.

        For a book without levels, its number of codes alone.
        """
        nested = self.nested_book or self
        return (*map(len, nested.coarser), len(nested))

    def get_level(self, codes: int) -> "Book":
        """Returns the level of the nested book that has `codes` codes.

        It is a `Book` that refers to the nested one.

        Raises:
            ConfigError: no level has this number of codes.
        """
        nested = self.nested_book or self
        level = nested if codes == len(nested) else nested._parts.get(codes)
        if level is None:
            level_names = ", ".join(map(str, self.levels))
            raise ConfigError(
                f"table.codes must name a level of its book, which has {level_names} codes, got "
                f"{codes}"
            )
        return level

    @cached_property
    def _parts(self) -> dict[int, "Book"]:
        return {len(level): replace(level, whole=self) for level in self.coarser}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the whole book, in hexadecimal.

        It is part of every statement made with the book. The digest of a level follows from that of
        the nested book and from the number of codes.
        """
        if self.whole is not None:
            return hashlib.sha256(f"{self.whole.digest} {len(self)}".encode()).hexdigest()
        return self._content

    @cached_property
    def _content(self) -> str:
        """SHA-256 of the book's content without its nesting, in hexadecimal."""
        # else texts might pass for a level
        sizes = {"levels": [*map(len, self.coarser)]} if self.coarser else {}
        digest = hashlib.sha256(json.dumps({**self._describe(), **sizes}, sort_keys=True).encode())
        for values in self._collect_arrays().values():
            digest.update(values.tobytes())
        return digest.hexdigest()

    @property
    def name(self) -> str:
        """The book's name in statements: "24 codes (book 1a2b3c4d)".

        A level is named "24 codes (level of book 1a2b3c4d)".
        """
        if self.whole is not None:
            return f"{len(self)} codes (level of book {self.whole.digest[:8]})"
        return f"{len(self)} codes (book {self.digest[:8]})"

    def _describe(self) -> dict[str, Any]:
        return {
            "textveil book": VERSION,
            "kind": self.kind,
            "source": self.source,
            "table": self.table,
            "words": self.words,
            "options": dict(self.options),
        }

    def _collect_arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "codes": self.codes.astype("<u2"),
            "spelling": self.spelling.astype("<i4"),
            "masses": self.masses.astype("<f4"),
            "heads": self.heads.astype("<f4"),
            "texts": self.texts.astype("<u8"),
        }
        if self.domain_heads is not None:
            arrays["domain_heads"] = self.domain_heads.astype("<f4")
        for level in self.coarser:  # all levels share the texts
            arrays |= {
                f"{name}_{len(level)}": array
                for name, array in level._collect_arrays().items()
                if name != "texts"
            }
        return arrays

    # ---- what holds of it ------------------------------------------------------------------------

    def check(self, table: str, words: Sequence[str]) -> None:
        """Refuses a table that the book was not made for.

        Args:
            table: the table's name.
            words: the table's words.

        Raises:
            ConfigError: the table has other words.
        """
        if len(words) != len(self.codes) or hash_words(words) != self.words:
            raise ConfigError(
                f"table.codes is a book for the words of the table {self.table}, and {table} has "
                "others: take that table, or make a book for this one with `textveil table codes`"
            )

    def refuse(self, texts: Iterable[str]) -> None:
        """Refuses to release any text that the book was made from.

        A text is also refused as a line of a longer text.

        Raises:
            InputError: a given text is among them; a map made from a private text is not public.
        """
        if not len(self.texts):
            return
        parts = [part for text in texts for part in {text, *text.splitlines()} if part.strip()]
        marks = np.array([compute_fingerprint(part) for part in parts], np.uint64)
        if n := int(np.isin(marks, self.texts).sum()):
            raise InputError(
                "a book of codes must be made from other texts than those that are released, "
                f"and {n} of the texts or lines given are among the texts that it was made "
                "from: leave them out, or make a book from public texts alone"
            )

    def map_rows(self, rows: Ids, group: Ids | None) -> Ids:
        """Returns the code of each row; the group is ignored."""
        return self.codes[rows].astype(np.int64)

    def spread(self, values: Floats | Values) -> Floats | Values:
        """Copies a value of each code [..., C] to each row.

        Words of one code get the same value.
        """
        return values[..., self.codes]

    def find_highest(self, values: Values) -> Values:
        """Returns the largest word value [V] in each code, float64 [C]."""
        highest = np.full(len(self), -np.inf)
        np.maximum.at(highest, self.codes, values)
        return highest

    def sum_values(self, values: Values) -> Values:
        """Sums the words' values [V] in each code, float64 [C]."""
        return np.bincount(self.codes, values, minlength=len(self)).astype(np.float64)

    def compute_head_shares(self, prior: Values) -> Floats:
        """Returns the share of each code's likeliest word within it: float32 [C].

        The words have the given probabilities [V].
        """
        return (self.find_highest(prior) / self.sum_values(prior)).astype(np.float32)

    def compute_success(self, epsilon: float) -> float:
        """Returns the best success rate of guessing words from released codes.

        The code is drawn by randomised response: sum_y max_x p(x) P(y | x). p is the distribution
        of words in general public text that are not on the public list; the mechanism sees nothing
        else.
        """
        likely = self.masses.astype(np.float64) * self.heads
        first = int(likely.argmax())
        # For each released code, the likeliest word among those of all other codes.
        best_other = np.full(len(self), likely[first])
        best_other[first] = np.delete(likely, first).max()
        ratio = np.exp(epsilon)
        return float(np.maximum(likely * ratio, best_other).sum() / (ratio + len(self) - 1))

    def to_json(self, heads: Floats | None = None) -> dict[str, object]:
        """Returns the book's entry beside a statement, as plain data.

        For `heads` see `write_facts`.
        """
        sizes, heads = np.sort(self.sizes), self.heads if heads is None else heads
        entry: dict[str, object] = {
            "digest": self.digest,
            "kind": self.kind,
            "source": self.source,
            "codes": len(self),
            "words": {
                "least": int(sizes[0]),
                "median": float(np.median(sizes)),
                "most": int(sizes[-1]),
            },
            "head": round(float(heads.max()), 6),
            "domain_head": None
            if self.domain_heads is None
            else round(float(self.domain_heads.max()), 6),
            "texts": len(self.texts),
        }
        if self.nested_book is not None:
            entry["nested"] = {"digest": self.nested_book.digest, "levels": list(self.levels)}
        return entry

    def write_facts(self, heads: Floats | None = None) -> tuple[str, ...]:
        """Returns the sentences of a statement about this book.

        They name the book, what it was made from, the sizes of its codes, and how much of a code
        its most frequent word is.

        Args:
            heads: the share of each code's most frequent word within it, in general public text,
                float32 [C]; None: as the book says.
        """
        sizes, alone = np.sort(self.sizes), int((self.sizes == 1).sum())
        heads = self.heads if heads is None else heads
        which = ""
        if (nested := self.nested_book) is not None:
            other = ", ".join(str(size) for size in self.levels if size != len(self))
            which = f", a level of the nested book {nested.digest[:16]} (others: {other} codes),"
        about = (
            f"the {self.kind} book {self.digest[:16]} of {len(self)} codes{which} is public; it "
            f"was made from {self.source}"
        )
        many = (
            f"{sizes[0]:,} to {sizes[-1]:,} words have one code, {int(np.median(sizes)):,} in the "
            "median"
        )
        if alone:
            many += (
                f"; {alone:,} of the codes have a single word, and hide nothing within themselves"
            )
        shares = (
            f"the most frequent word of a code is {_describe_range(heads)} of it "
            "in general public text"
        )
        if self.domain_heads is not None:
            shares += (
                f", and by the book's own count {_describe_range(self.domain_heads)} in the texts "
                "that it was made from"
            )
        if self.kind != "task":
            return about, many, shares
        return (
            about,
            many,
            shares,
            "a book of a task reveals the label of a text by design: its codes carry it",
        )

    # ---- its file --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes the book to a file that appears only when complete.

        It is written under another name first. The same book gives the same bytes. A level writes
        the nested book with all its levels.

        Raises:
            OSError: the file cannot be written.
        """
        if self.whole is not None:
            return self.whole.save(path)
        target = Path(path)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        about = json.dumps({**self._describe(), "sha256": self.digest}, ensure_ascii=False)
        try:
            with part.open("xb") as file:
                np.savez_compressed(
                    file, allow_pickle=False, about=np.array(about), **self._collect_arrays()
                )
                file.flush()
                # Flushed before the rename: after a crash the name must not stand for missing data.
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: str | Path | Traversable) -> Self:
        """Reads a book from a file and checks all of it.

        Raises:
            TableError: the file is missing or damaged.
        """
        source = Path(path) if isinstance(path, str) else path
        try:
            content = source.read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise TableError(
                f"{source}: cannot read a book of codes ({reason}); `textveil table codes` makes "
                "one"
            ) from None
        book = cls._parse(content)
        if book is None:
            raise TableError(
                f"{source}: it is not a book of codes, or damaged; `textveil table codes` makes one"
            )
        return book

    @classmethod
    def _parse(cls, content: bytes) -> Self | None:
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                about = json.loads(str(archive["about"]))
                if about.pop("textveil book") != VERSION:
                    return None
                digest = about.pop("sha256")
                texts = archive["texts"].astype(np.uint64)

                def build_level(level: str, coarser: tuple[Self, ...] = ()) -> Self:
                    heads = archive.get(f"domain_heads{level}")
                    return cls(
                        **about,
                        codes=archive[f"codes{level}"].astype(np.uint16),
                        spelling=archive[f"spelling{level}"].astype(np.int64),
                        masses=archive[f"masses{level}"].astype(np.float32),
                        heads=archive[f"heads{level}"].astype(np.float32),
                        domain_heads=None if heads is None else heads.astype(np.float32),
                        texts=texts,
                        coarser=coarser,
                    )

                levels = sorted(
                    int(name.removeprefix("codes_"))
                    for name in archive
                    if name.startswith("codes_")
                )
                book: Self = build_level("", tuple(build_level(f"_{level}") for level in levels))
                return book if book.digest == digest else None
        except (
            Exception
        ):  # numpy, zipfile, zlib and json raise many kinds for bytes that are none of theirs
            return None


@dataclass(frozen=True, kw_only=True)
class Books:
    """Books for the four groups of words, one book for each group.

    A word has a code only in the book of its group. The codes of all books are numbered one after
    the other. `Books` answers the calls of a `Book` for all of them.

    Attributes:
        parts: the distinct books.
        book_numbers: for each group in order (sensitive and important, sensitive, important, other)
            the number of its book.
    """

    parts: tuple[Book, ...]
    book_numbers: tuple[int, int, int, int]

    def __post_init__(self) -> None:
        if (
            len(self.book_numbers) != GROUP_COUNT
            or {*self.book_numbers} != {*range(len(self.parts))}
            or len({*self.parts}) != len(self.parts)
        ):
            raise TableError(
                "books by group must be different books, one for each of the four groups, and "
                "each book must serve a group"
            )

    @classmethod
    def build(cls, books: Sequence[Book]) -> "Book | Books":
        """Combines the books of the four groups in order.

        Returns a single `Book` where all groups have the same one.
        """
        parts = tuple(dict.fromkeys(books))
        first, second, third, fourth = map(parts.index, books)
        return (
            parts[0]
            if len(parts) == 1
            else cls(parts=parts, book_numbers=(first, second, third, fourth))
        )

    def __len__(self) -> int:
        """Returns the number of codes of all books together."""
        return sum(map(len, self.parts))

    @cached_property
    def starts(self) -> Ids:
        """The number of each book's first code, then the total, int64."""
        return np.cumsum([0, *map(len, self.parts)]).astype(np.int64)

    @cached_property
    def spelling(self) -> Ids:
        """See `Book`."""
        return np.concatenate([book.spelling for book in self.parts])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the books' digests and of the groups' choice, in hexadecimal."""
        return hashlib.sha256(
            f"{[book.digest for book in self.parts]} {self.book_numbers}".encode()
        ).hexdigest()

    @property
    def name(self) -> str:
        """The books' name in statements.

        For example "8, 8, 50, 24 codes by group (books 1a2b3c4d)".
        """
        return f"{', '.join(map(str, self.sizes))} codes by group (books {self.digest[:8]})"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each group."""
        return tuple(len(self.parts[number]) for number in self.book_numbers)

    @property
    def nested_book(self) -> Book | None:
        """The nested book that all of them are levels of, or None."""
        nested = self.parts[0].nested_book
        return nested if all(book.nested_book == nested for book in self.parts) else None

    def check(self, table: str, words: Sequence[str]) -> None:
        """See `Book`."""
        for book in self.parts:
            book.check(table, words)

    def refuse(self, texts: Sequence[str]) -> None:
        """See `Book`."""
        for book in self.parts:
            book.refuse(texts)

    def map_rows(self, rows: Ids, group: Ids | None) -> Ids:
        """Returns the code of each row in the book of its group.

        Groups are numbered from 0 to 3.

        Raises:
            TableError: no group is given.
        """
        if group is None:
            raise TableError("a word has a code in the book of its group, and no group is given")
        codes = np.stack(
            [start + book.codes for start, book in zip(self.starts[:-1], self.parts, strict=True)]
        )
        row_codes: Ids = codes[np.array(self.book_numbers)[group], rows].astype(np.int64)
        return row_codes

    def spread(self, values: Floats | Values) -> Floats | Values:
        """Copies the log-probability of each code [..., C] to each row.

        A code is released only for words of the same book, so one of a word's codes has a
        log-probability, and every other has that of an impossible event: the largest counts.
        """
        pairs = zip(self.starts[:-1], self.parts, strict=True)
        largest: Values = np.maximum.reduce(
            [values[..., start + book.codes] for start, book in pairs]
        )
        return largest

    def find_highest(self, values: Values) -> Values:
        """Returns `Book.find_highest` for each code of each book."""
        return np.concatenate([book.find_highest(values) for book in self.parts])

    def sum_values(self, values: Values) -> Values:
        """Returns `Book.sum_values` for each code of each book.

        The sums of a distribution add up to 1 for each book.
        """
        return np.concatenate([book.sum_values(values) for book in self.parts])


def _describe_range(shares: Floats) -> str:
    """Writes the largest of some shares and their median.

    For example "at most .44 (.08 in the median)".
    """
    return (
        f"at most {_format_share(float(shares.max()))} ({_format_share(float(np.median(shares)))} "
        "in the median)"
    )


def _format_share(value: float) -> str:
    # stored in single precision
    return f"{np.ceil(value * 1000 - 1e-3) / 1000:.3f}".replace("0.", ".", 1)


def hash_words(words: Sequence[str]) -> str:
    """Returns the digest of a table's words: SHA-256 in hexadecimal.

    It ties a book to its table. Vectors do not count: the same rows are normalized and stored a
    little differently on other machines.
    """
    return hashlib.sha256("\n".join(words).encode(errors="backslashreplace")).hexdigest()


def compute_fingerprint(text: str) -> int:
    """Returns 64 bits of SHA-256 of a normalized text.

    Whitespace, capitals and other Unicode forms of the characters do not change it.
    """
    # Folding case may leave the normal form, so it is applied again.
    plain = " ".join(normalize("NFKC", normalize("NFKC", text).casefold()).split())
    return int.from_bytes(hashlib.sha256(plain.encode(errors="surrogatepass")).digest()[:8], "big")


def compute_fingerprints(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Returns the distinct fingerprints of all texts with a word, rising."""
    return np.unique(
        np.fromiter((compute_fingerprint(text) for text in texts if text.strip()), np.uint64)
    )


# ---- the books that ship -------------------------------------------------------------------------


AUTO_BOOK = "auto"
"""Name that lets a budget choose the book, instead of a size.

It takes the general book, or the level of a book, that keeps most of a word at its budget.
"""

LEVEL_SEPARATOR = "@"
"""The separator of a nested book and its level: "news.book@24"."""


def _find_shelf() -> Traversable:
    return files("textveil").joinpath("data", "books")


def list_shipped() -> tuple[int, ...]:
    """Returns the sizes of the package's general books, rising."""
    names = (path.name for path in _find_shelf().iterdir()) if _find_shelf().is_dir() else ()
    return tuple(
        sorted(
            int(name.removesuffix(".npz"))
            for name in names
            if name.removesuffix(".npz").isdecimal()
        )
    )


def find_books(codes: str) -> Book | Books:
    """Finds one book as `find_book` does, or four separated by commas.

    Raises:
        ConfigError: there are neither one nor four, or no book of the package has this size.
        TableError: there is no such file, or it is no book.
    """
    # A file whose name has a comma is one book.
    if "," not in codes or isfile(_split_level(codes)[0]):
        return find_book(codes)
    names = [name.strip() for name in codes.split(",")]
    if len(names) != GROUP_COUNT:
        raise ConfigError(
            "table.codes must be one book, or four with commas for the four groups of "
            f"groups.budgets, got {len(names)}"
        )
    return Books.build([find_book(name) for name in names])


def find_book(codes: str) -> Book:
    """Finds a book by its size in the package, or by path.

    A path may name a level: "BOOK@24". A nested book without a level is its finest.

    Raises:
        ConfigError: no book of the package has this size, or the book has no such level.
        TableError: there is no such file, or it is no book.
    """
    name, level = _split_level(codes)
    if AUTO_BOOK in (name, level):
        raise ConfigError(
            f"table.codes={AUTO_BOOK} follows from the budgets of a privatizer: a table alone "
            "needs a number of codes, or the path of a book, perhaps with a level"
        )
    if level:
        return find_book(name).get_level(int(level))
    if not name.isdecimal():
        return Book.read(name)
    if name not in map(str, list_shipped()):
        sizes = ", ".join(map(str, list_shipped()))
        raise ConfigError(
            f"table.codes must be {sizes} (the general books of the package) or the path of a "
            f"book, got {name}; `textveil table codes` makes one of any size"
        )
    return Book.read(_find_shelf().joinpath(f"{name}.npz"))


def list_choices(codes: str) -> dict[str, Book]:
    """Returns the books among which a budget chooses, by name.

    They are the general books, or the levels of one book.

    Args:
        codes: "auto", or the path of a book followed by "@auto"; any other name gives no choice.

    Raises:
        TableError: there is no such file, or it is no book.
    """
    name, level = _split_level(codes)
    if codes == AUTO_BOOK:
        return {str(size): find_book(str(size)) for size in list_shipped()}
    return list_levels(name) if level == AUTO_BOOK else {}


def list_levels(name: str) -> dict[str, Book]:
    """Returns the levels of a nested book by name ("BOOK@8").

    A book without levels, or a single level, is returned alone.

    Raises:
        ConfigError, TableError: see `find_book`.
    """
    book = find_book(name)
    if not book.coarser:
        return {name: book}
    return {f"{name}{LEVEL_SEPARATOR}{size}": book.get_level(size) for size in book.levels}


def _split_level(codes: str) -> tuple[str, str]:
    """Splits a book's name from its level, which may be "".

    A file whose whole name has an "@" is a file.
    """
    name, at, level = codes.rpartition(LEVEL_SEPARATOR)
    has_level = (
        name and at and not isfile(codes) and (level == AUTO_BOOK or fullmatch(r"\d{1,5}", level))
    )
    return (name, level) if has_level else (codes, "")
