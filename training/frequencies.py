"""The public frequency list: how often each word occurs in public text.

In: the folder of corpora (`wikipedia_en`). Out: `data/frequencies/` of the package: the list, which
of its words are ordinary, and the number of words for each row of the packaged tables.
Not here: what the list is used for (`textveil.table`), and how texts are split into words
(`textveil.text`).
"""

import argparse
import gzip
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from textveil.table import row_frequency
from textveil.table.embedding import load_table
from textveil.text.tokens import tokenize
from training import cli, data

LEAST = 5
"""Rarer words are left out: counts this small mean little."""

MOST = 60_000
"""Most words in the list, to keep the file below 300 KB."""

SMALL = 0.04
"""The least share of a word's places in which an ordinary word is written in small letters; of names it is less."""

TABLES = ("minilm", "minilm-s")
"""Tables of words whose rows are counted."""

HEADER = """\
# How often words stand in public English text: word, tab, count; the most frequent first.
# Source: 27,380 articles of the English Wikipedia of 2018. Their text is CC BY-SA 3.0; here are counts of it only.
# Words as textveil cuts them, in small letters; {total:,} were counted, and of those with a letter or a digit
# up to {most:,} that stand there at least {least} times are listed. Made by training/frequencies.py.
"""


def count(texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """How often each word occurs in the texts, lower-cased; and how often it is written in small letters there."""
    counts: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for text in texts:
        words = tokenize([text]).words
        counts.update(map(str.lower, words))
        small.update(word for word in words if word.islower())
    return counts, small


def ordinary(listed: Iterable[str], counts: Counter[str], small: Counter[str]) -> bytes:
    """A bit for each word of the list: whether it is a word as well as perhaps a name ("mark", not "robert")."""
    return np.packbits([small[word] >= SMALL * counts[word] for word in listed]).tobytes()


def words_of(text: str) -> list[str]:
    """The words of the list, in its order."""
    return [line.partition("\t")[0] for line in text.splitlines() if not line.startswith("#")]


def render(counts: Counter[str]) -> Iterator[str]:
    """The list as written to the file: the header, then a line per word."""
    yield HEADER.format(total=counts.total(), most=MOST, least=LEAST)
    listed = [word for word, n in counts.items() if n >= LEAST and any(map(str.isalnum, word))]
    listed.sort(key=lambda word: (-counts[word], word))
    for word in listed[:MOST]:
        yield f"{word}\t{counts[word]}\n"


def pack(content: bytes) -> bytes:
    """Compressed without a timestamp: the same list gives the same file."""
    return gzip.compress(content, mtime=0)


def on_rows(name: str) -> bytes:
    """How many words of the package's list map to each row of a packaged table, in NumPy's format."""
    buffer = io.BytesIO()
    np.save(buffer, row_frequency.count_by_row(load_table(name)).astype(np.uint32))
    return buffer.getvalue()


def main() -> None:
    """Counts, and writes the list and its counts on tables' rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=cli.DATA / "frequencies", help="default: into the package"
    )
    given = cli.with_corpora(parser)
    counts, small = count(data.wikipedia(given.data))
    text = "".join(render(counts))
    given.out.mkdir(exist_ok=True)
    (given.out / "ordinary.bits").write_bytes(ordinary(words_of(text), counts, small))
    (given.out / "words.txt.gz").write_bytes(pack(text.encode()))
    if given.out == cli.DATA / "frequencies":  # counts the rows of the list just written
        for name in TABLES:
            (given.out / f"{name}-chord.npy.gz").write_bytes(pack(on_rows(name)))


if __name__ == "__main__":
    main()
