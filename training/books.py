"""The general books of codes, which map the words of the default table to 8, 24, 50, 150 and 400 codes.

In: the folder of corpora (`wikipedia_en`). Out: `data/books/` of the package, a file for each book.
Not here: how a book is made (`textveil.table.codebook_training`), and what it is used for
(`table.quantized`).

They take some minutes on one core. Another machine may round a distance the other way, and give a
word another code.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from textveil.table import codebook_training, load_table
from training import cli, data

SIZES = (8, 24, 50, 150, 400)

ARTICLES = 12_000
"""Articles of the corpus that are read, the first ones."""

SOURCE = (
    "the vectors of all-MiniLM-L6-v2 and how often words stand together in 12,000 articles of the "
    "English Wikipedia of "
    "2018 (CC BY-SA 3.0; no text is in it)"
)


def main() -> None:
    """Makes the books, and says what each hides."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=cli.DATA / "books", help="default: into the package"
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="how many codes")
    given = cli.with_corpora(parser)
    table, texts = load_table(), data.wikipedia(given.data)[:ARTICLES]
    given.out.mkdir(exist_ok=True)
    for each in codebook_training.make_books(
        table, given.sizes, kind="general", source=SOURCE, texts=texts
    ):
        made = replace(
            each, texts=np.empty(0, np.uint64)
        )  # public articles: whoever has one may release it
        path = given.out / f"{len(made)}.npz"
        made.save(path)
        print(f"{path.name}: {path.stat().st_size:,} bytes", *made.write_facts(), sep="\n  ")


if __name__ == "__main__":
    main()
