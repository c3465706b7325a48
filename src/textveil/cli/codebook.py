"""The verbs `table codes` and `table books`, and descriptions of books.

In: public texts, a table and a number of codes; an epsilon and books. Out: the file of a book, and
what it hides.
Not here: how a book is made (`table.codebook_training`), and what it is (`table.codebook`).
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import progress
from textveil.cli.console import say
from textveil.cli.decorators import verb
from textveil.cli.public_texts import check_target, read_public_texts
from textveil.cli.texts import Field
from textveil.errors import ConfigError, OutputError, quote_file

if TYPE_CHECKING:
    from textveil.table import Book, BookKind

SHOWN_EPSILONS = (2.0, 4.0, 8.0)
"""Budgets for which a word's largest success rate is shown.

The rate at which it is named at most.
"""


@verb(
    "textveil table codes --codes 24 --public news.txt --source 'news of 2004' --output news.book",
    (
        "textveil table codes --codes 8 --labelled reviews.csv --field review --label stars "
        "--output stars.book"
    ),
    "textveil table codes --codes 12 --head 0.15 --output twelve.book",
    "textveil table codes --codes 150 --levels 8,24,50 --public news.txt --output news.book",
)
def codes(
    codes: Annotated[
        int, typer.Option("--codes", metavar="C", help="The number of codes.", show_default=False)
    ],
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="BOOK", help="The file to write.", show_default=False
        ),
    ],
    table: Annotated[
        str, typer.Option("--table", metavar="NAME|DIR", help="The table whose words get codes.")
    ] = "minilm",
    public: Annotated[
        list[str] | None,
        typer.Option(
            "--public",
            metavar="FILE",
            help="Public texts of your domain: words that occur together there share a code; "
            "repeatable.",
        ),
    ] = None,
    labelled: Annotated[
        str | None,
        typer.Option(
            "--labelled",
            metavar="FILE",
            help="Public texts with labels: words that point to the same label share a code.",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="FIELD",
            help="The field of the labels; repeatable, for several tasks at once.",
        ),
    ] = None,
    field: Field = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="TEXT",
            help="Your description of the texts, which every statement prints. Default: the "
            "names of the files.",
        ),
    ] = None,
    head: Annotated[
        float | None,
        typer.Option(
            "--head",
            metavar="SHARE",
            help="The largest share of a code that one word may have; codes are joined until that holds.",
        ),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            "--levels",
            metavar="C,...",
            help="Coarser levels of the same book, as rising numbers of codes, each below "
            "--codes. Their codes are unions of finer ones. BOOK@8 names a level; BOOK@auto "
            "picks the level that keeps most of general public text at your epsilon.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Another seed gives another book.", min=0)
    ] = 0,
) -> None:
    """Make a book of codes for --codes from public texts, never from the texts to protect.

    With --public the book is for a domain. With --labelled it is for a task, and releases keep the
    label. Without either it depends on the words' vectors only. These texts are refused as input
    later.
    """
    from textveil.table import load_table, make_books

    if public and labelled:
        raise ConfigError("give --public or --labelled: a book is for a domain or for a task")
    if bool(labelled) != bool(label):
        raise ConfigError(
            "--labelled and --label go together: the file, and the field of its labels"
        )
    coarser, target = _read_levels(levels), check_target(output)
    files = [*(public or []), *([labelled] if labelled else [])]
    kind: BookKind = "task" if labelled else "domain" if public else "general"
    texts, labels = read_public_texts(files, field, [("--label", name) for name in label or ()])
    file_names = ", ".join(Path(file).name for file in files) or "the vectors of the table alone"
    with progress.show_bars() as report:
        (book,) = make_books(
            load_table(table),
            [codes],
            kind=kind,
            source=source or file_names,
            texts=texts,
            labels=labels,
            seed=seed,
            head=head,
            levels=coarser,
            report=report,
        )
    try:
        book.save(target)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(f"cannot write {quote_file(output)}: {reason}") from None
    for line in describe_book(book):
        say(line)


def _read_levels(levels: str | None) -> list[int]:
    numbers = [] if levels is None else levels.split(",")
    if not all(re.fullmatch(r"\s*\d{1,5}\s*", number) for number in numbers):
        raise ConfigError("--levels must be numbers of codes, separated by commas, such as 8,24,50")
    return [int(number) for number in numbers]


def describe_book(book: "Book") -> Iterator[str]:
    """Yields lines that describe a book and its protection."""
    coarser = ", ".join(map(str, book.levels[:-1]))
    yield f"{len(book)} codes for the words of the table {book.table}" + (
        f", and coarser levels of {coarser}" if book.coarser else ""
    )
    yield from (f"{fact[0].upper()}{fact[1:]}." for fact in book.write_facts())
    rates = ", ".join(
        f"{math.ceil(1000 * book.compute_success(epsilon)) / 1000:.3f} at epsilon {epsilon:g}"
        for epsilon in SHOWN_EPSILONS
    )
    yield (
        "With the mechanism codebook, an attacker who expects the word frequencies of general "
        f"public text names a word from one code with probability {rates}, at most."
    )


def list_books() -> Iterator[str]:
    """Yields a table of the package's general books.

    A heading, and then a line for each.
    """
    from textveil.table import find_book, list_shipped

    heading = (
        "codes",
        "words per code, median",
        "largest share of a word",
        *(f"epsilon {e:g}" for e in SHOWN_EPSILONS),
    )
    rows = []
    for size in list_shipped():
        book = find_book(str(size))
        shares = (float(book.heads.max()), *map(book.compute_success, SHOWN_EPSILONS))
        rows.append((size, int(median(book.sizes.tolist())), *map(_round_up, shares)))
    yield from _format_table(heading, rows, ["    "] * len(rows))


@verb(
    "textveil table books --epsilon 4",
    "textveil table books 24 news.book --epsilon 6",
    "textveil table books news.book@8 news.book@24 --epsilon 4",
    "textveil table books --epsilon 3 --json",
)
def books(
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", metavar="E", help="The budget of a word.", show_default=False),
    ],
    books: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BOOK]...",
            help="General books, by their numbers of codes, or paths of books. A nested book "
            "stands for all its levels, or for one (BOOK@24). Default: all general books.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare books of codes: what the mechanism codebook reveals about a word at an epsilon.

    All of it is computed from the books, for the word frequencies of general public text. No
    private text is read.
    """
    from textveil.mechanism import (
        compute_fitting_codes,
        compute_information,
        compute_information_limit,
        compute_keep_rate,
        entropy,
    )
    from textveil.table import list_levels, list_shipped

    if not 0 < epsilon < math.inf:
        raise ConfigError("--epsilon must be above 0 and finite")
    book_by_name: dict[str, Book] = {}
    for argument in books or map(str, list_shipped()):
        book_by_name |= list_levels(argument)
    names, book_list = list(book_by_name), list(book_by_name.values())
    bit_counts = [compute_information(book.masses, epsilon) for book in book_list]
    max_bits = max(bit_counts)
    if as_json:
        rows: list[dict[str, object]] = [
            {
                "book": name,
                "digest": book.digest,
                "kind": book.kind,
                "codes": len(book),
                "information": bits,
                "entropy": entropy(book.masses),
                "own_code": compute_keep_rate(len(book), epsilon),
                "named": book.compute_success(epsilon),
                "most": bits == max_bits,
            }
            for name, book, bits in zip(names, book_list, bit_counts, strict=True)
        ]
        summary = {
            "epsilon": epsilon,
            "limit": compute_information_limit(epsilon),
            "fitting": compute_fitting_codes(epsilon),
        }
        say(json.dumps({**summary, "books": rows}, ensure_ascii=False))
        return
    heading = (
        "codes",
        "bits revealed per word",
        "of at most",
        "own code released",
        "word named at most",
        "book",
    )
    lines = [
        (
            len(book),
            f"{bits:.2f}",
            f"{entropy(book.masses):.2f}",
            f"{compute_keep_rate(len(book), epsilon):.3f}",
            _round_up(book.compute_success(epsilon)),
            f"{book.kind} {book.digest[:8]}",
        )
        for book, bits in zip(book_list, bit_counts, strict=True)
    ]
    for line in _format_table(
        heading, lines, [("    ", "  * ")[bits == max_bits] for bits in bit_counts]
    ):
        say(line)
    say("* reveals most about a word, at the word frequencies of general public text.")
    say(
        f"No mechanism with local DP {epsilon:g} reveals more than "
        f"{math.ceil(100 * compute_information_limit(epsilon)) / 100:.2f} bits about a word; "
        f"{compute_fitting_codes(epsilon):,.0f} codes of equal frequency would reveal as much."
    )


def _round_up(share: float) -> str:
    """Rounds a share up to three digits."""
    # A bound that is rounded down would not hold.
    return f"{math.ceil(1000 * share) / 1000:.3f}"


def _format_table(
    heading: Sequence[str], rows: Sequence[Sequence[object]], marks: Sequence[str]
) -> Iterator[str]:
    """Yields the lines of a table, each behind its mark.

    Numbers are below each other.
    """
    widths = [max(map(len, map(str, column))) for column in zip(heading, *rows, strict=True)]
    for mark, row in zip(["    ", *marks], [heading, *rows], strict=True):
        yield mark + "  ".join(
            f"{value!s:>{width}}" for value, width in zip(row, widths, strict=True)
        )
