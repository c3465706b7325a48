"""Splits a data set into parts: books, attacker, training, tuning, judging.

In: a data set's splits, sizes. Out: `TextParts`, and the books made from its public texts.
Not here: the use of the parts (`judges`, `risk`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from textveil.errors import ConfigError
from textveil.library import Library, make_library
from textveil.randomness import SeededRandomness
from textveil.table import Book, EmbeddingTable, find_book, make_books
from textveil.text import is_public, tokenize
from textveil_bench import run
from textveil_bench.choose.plan import PartSizes
from textveil_bench.examples import DataSet
from textveil_bench.spec import SweepData
from textveil_bench.tasks.labelled import draw_order
from textveil_bench.trials import FIELD_SEPARATOR, join_fields

DEAL_SEED = 7
"""The seed of the order of the texts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TextParts:
    """The texts of one data set, in disjoint parts except `all_public`.

    Attributes:
        shelf: labelled texts for making books; they are never released.
        public: training texts of the attacker.
        pool: training texts of the judges.
        tuned: texts for choosing options.
        judged: texts for the reported results.
        all_public: all texts of the training split, including other parts, as an attacker may have
            them; without the shelf, because books refuse their own texts, and the attacker runs the
            mechanism.
    """

    shelf: DataSet = field(repr=False)
    public: DataSet = field(repr=False)
    pool: DataSet = field(repr=False)
    tuned: DataSet = field(repr=False)
    judged: DataSet = field(repr=False)
    all_public: DataSet = field(repr=False)

    def draw_training(self, count: int, seed: int) -> DataSet:
        """Draws `count` texts of the pool, by seed."""
        order = draw_order(len(self.pool), SeededRandomness(seed))[:count]
        return replace(
            self.pool, examples=tuple(self.pool.examples[i] for i in np.sort(order).tolist())
        )


def deal(source: SweepData, sizes: PartSizes, places: run.Folders) -> TextParts:
    """Loads a data set and splits it into parts.

    Raises:
        ConfigError: it has too few texts, or no labels.
    """
    train, test = (
        run.load(replace(source, split=item, limit=None), None, places)
        for item in ("train", "test")
    )
    if not test.labels:
        raise ConfigError(
            f"a comparison needs labels, and the texts of {source.row_name} have no labels"
        )
    train, test = (_shuffle(_remove_repeats(item)) for item in (train, test))
    test_texts = {text for example in test.examples for text in example.texts[:1]}
    train = replace(
        train,
        examples=tuple(item for item in train.examples if test_texts.isdisjoint(item.texts[:1])),
    )
    shelf, public = min(sizes.shelf, len(train) // 4), min(sizes.public, len(train) // 3)
    tuned = min(sizes.tuned, len(test) // 2)
    return TextParts(
        shelf=train.take(shelf),
        public=train.take(public, shelf),
        pool=train.take(2 * sizes.train, shelf + public),
        tuned=test.take(tuned),
        judged=test.take(sizes.judged, tuned),
        all_public=train.take(len(train), shelf),
    )


def _remove_repeats(data: DataSet) -> DataSet:
    """Removes repeated texts; questions with equal options count as repeats."""
    first = 1 if data.kind == "choice" else 0
    example_by_text = {example.texts[first:]: example for example in data.examples}
    return replace(data, examples=tuple(example_by_text.values()))


def _shuffle(data: DataSet) -> DataSet:
    order = draw_order(len(data), SeededRandomness(DEAL_SEED)).tolist()
    return replace(data, examples=tuple(data.examples[i] for i in order))


def list_texts(data: DataSet) -> list[str]:
    """Lists the texts of a data set as they are privatized."""
    return [join_fields(example) for example in data.examples]


# ---- books -----------------------------------------------------------------------------------------------------------


def resolve_book(name: str, table: EmbeddingTable, material: TextParts, folder: Path) -> Path | str:
    """Resolves a book name KIND-C to a value of the option `table.codes`.

    Args:
        name: `general-50`, `domain-8`, `task-8`.
        table: the table whose words get codes.
        material: the book is made from its shelf: texts and labels.
        folder: for the book's file; an existing file is used.

    Returns:
        the number of codes of a general book, or the path of the book's file.

    Raises:
        ConfigError: the name has another form, or the data set has no such book.
    """
    kind, _, codes = name.partition("-")
    if kind not in ("general", "domain", "task") or not codes.isdecimal():
        raise ConfigError(f"a book of a comparison is general-C, domain-C or task-C, got {name}")
    if kind == "general":
        return codes
    if kind == "task" and material.shelf.kind == "choice":
        raise ConfigError(
            f"the labels of {material.shelf.name} are letters of options, which words do not "
            "predict: it has no task book"
        )
    shelf = material.shelf
    path = folder / f"{shelf.name}-{shelf.digest[:8]}-{name}.book"
    if not path.exists():
        labels = (
            [[shelf.labels[example.label or 0] for example in shelf.examples]]
            if kind == "task"
            else []
        )
        (new_book,) = make_books(
            table,
            [int(codes)],
            kind="task" if kind == "task" else "domain",
            source=f"{len(shelf):,} public texts of {shelf.name}",
            texts=list_texts(shelf),
            labels=labels,
        )
        folder.mkdir(parents=True, exist_ok=True)
        new_book.save(path)
    return path


def resolve_library(path: Path | None, material: TextParts, folder: Path) -> Library:
    """Reads a library, or makes one from the shelf, with its labels.

    Args:
        path: of a library's file; None to make one.
        material: the library is made from its shelf.
        folder: for the library's file; an existing file is used.

    Raises:
        ConfigError: the data set has no single texts with labels.
    """
    shelf = material.shelf
    if shelf.kind != "classification" or len(shelf.fields) != 1:
        raise ConfigError(
            f"whole texts are compared on single texts with labels, and {shelf.name} has others: "
            "leave it out, or leave out `documents`"
        )
    if path is not None:
        return Library.read(path)
    made = folder / f"{shelf.name}-{shelf.digest[:8]}.library"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        make_library(
            list_texts(shelf),
            labels=[shelf.labels[example.label or 0] for example in shelf.examples],
            name=shelf.name,
            source=f"{len(shelf):,} public texts of {shelf.name}",
            licence="that of the data set",
        ).save(made)
    return Library.read(made)


@lru_cache(maxsize=16)
def _load_book(name: str) -> Book:
    return find_book(name)


def map_to_codes(originals: Sequence[str], name: str, table: EmbeddingTable) -> list[str]:
    """Replaces each table word of the texts by its code's word.

    Words of the public list stay, and so do the empty lines between the fields of an example.

    Args:
        originals: the texts.
        name: the book, as a value of the option `table.codes`.
        table: the table whose words have codes.
    """
    book = _load_book(name)
    split = [text.split(FIELD_SEPARATOR) for text in originals]
    tokens = tokenize([part for fields in split for part in fields])
    distinct = list(dict.fromkeys(tokens.words))
    rows = table.find(distinct)
    spelled = book.spelling[book.codes[np.maximum(rows, 0)]]
    replacements = {
        word: word.lower() if row < 0 or is_public(word) else table.words[code]
        for word, row, code in zip(distinct, rows.tolist(), spelled.tolist(), strict=True)
    }
    bounds = tokens.documents.tolist()
    mapped_fields = (
        " ".join(replacements[word] for word in tokens.words[a:b]) for a, b in pairwise(bounds)
    )
    return [FIELD_SEPARATOR.join(islice(mapped_fields, len(fields))) for fields in split]
