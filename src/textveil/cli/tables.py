"""The verbs of `textveil table`.

In: published vectors, and names of tables. Out: folders of tables, and what is in them.
Not here: how vectors are read (`table.vectors`) and tables are stored (`table.store`).
"""

import json
from typing import Annotated

import typer

from textveil.cli import console, progress
from textveil.cli.calibrate import calibrate
from textveil.cli.codebook import books, codes, describe_book
from textveil.cli.console import say
from textveil.cli.decorators import add, group, verb
from textveil.files import text_streams

table = group(
    "Build tables of word vectors, look at them, and calibrate language models on them.",
    "textveil table build glove.6B.300d.txt -o glove",
    'textveil privatize "Anna is ill" --table glove --mechanism noise --epsilon 30',
)


@verb(
    "textveil table build glove.840B.300d.txt -o glove --skip-broken",
    "textveil table build GoogleNews-vectors-negative300.bin.gz -o word2vec --limit 200000",
    "textveil table build rows.npy --vocabulary words.txt -o own --metric euclidean",
    "textveil table build gpt2",
    "textveil table build FacebookAI/roberta-base -o roberta --unit word",
    on=table,
    name="build",
)
def table_build(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Vectors of GloVe, word2vec (text or binary) or fastText, .npy, .npz or .safetensors, also inside .gz "
            "or .zip; or the folder or hub id of a transformers model, for its input embeddings; or a name of "
            "`textveil table recipes` (write ./NAME for a file or folder of that name).",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="The folder to create. Default: the name of the recipe.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="The name of the table in statements. Default: the name of the source."
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="chord|euclidean",
            help="chord scales all rows to length 1; euclidean keeps them.",
        ),
    ] = "chord",
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="float16|float32",
            help="The precision of the rows. Default: float16 from 67 million numbers on.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="glove (text), vec (text with a header), word2vec (binary), numpy, safetensors "
            "or model. By default it is recognized by its content.",
        ),
    ] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option("--vocabulary", metavar="FILE", help="The words of the rows, one per line."),
    ] = None,
    member: Annotated[
        str | None,
        typer.Option(
            "--member",
            metavar="NAME",
            help="The tensor, array or packed file to take, if there are several.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="Take only the first N words.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="word|wordpiece",
            help="Of a model: all pieces of its tokenizer, which is kept with them, or only pieces "
            "that are whole words. Default: wordpiece.",
        ),
    ] = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Skip and count words that a table cannot hold.")
    ] = False,
    neighbours: Annotated[
        int,
        typer.Option(
            "--neighbours",
            metavar="K",
            help="The number of nearest words to store for each word; 0 for none.",
        ),
    ] = 10,
    pairs: Annotated[
        bool | None,
        typer.Option(
            "--pairs/--no-pairs",
            help="Compare all pairs of words, which gives exact constants, the curve of the exponential mechanism and "
            "nearest words; by default for up to 50,000 words.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing folder of a table.")
    ] = False,
) -> None:
    """Convert word vectors into a table, a folder for --table. It appears when it is complete."""
    from typing import Any, cast

    from textveil.errors import ConfigError
    from textveil.table import store, vectors
    from textveil.table.recipes import RECIPES

    if recipe := RECIPES.get(source):
        source, output = recipe.find_source(), output or recipe.name
        skip_broken = skip_broken or recipe.skip_broken
    if output is None:
        raise ConfigError("-o (--output) must name the folder to create, and is not set")
    with (
        text_streams.convert_signals(),
        vectors.open_vectors(
            source,
            format=cast(Any, format),
            vocabulary=vocabulary,
            member=member,
            limit=limit,
            skip_broken=skip_broken,
            zero_rows=metric == "euclidean",
            unit=cast(Any, unit),
        ) as vector_source,
        progress.show_bars(_format_amount) as report,
    ):
        store.build(
            vector_source,
            output,
            name=name,
            metric=cast(Any, metric),
            dtype=cast(Any, dtype),
            neighbours=neighbours,
            pairs=pairs,
            force=force,
            progress=report,
        )
    say(store.format_summary(output))


def _format_amount(step: str, done: int) -> str:
    """Formats an amount: bytes while the source is read, then rows."""
    from rich.filesize import decimal

    return decimal(done) if step == "reading" else f"{done:,}"


@verb(
    "textveil table recipes",
    "textveil table recipes --json",
    on=table,
    name="recipes",
)
def table_recipes(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """List published vectors that `textveil table build` takes by name, with size and licence."""
    from textveil.table.recipes import RECIPES

    if as_json:
        values = [{**vars(recipe), "command": recipe.command} for recipe in RECIPES.values()]
        say(json.dumps(values, ensure_ascii=False))
        return
    for recipe in RECIPES.values():
        say(f"{recipe.name:9} {recipe.vectors}: {recipe.shape}, {recipe.licence}")
        say(f"{'':9} {recipe.url or f'hub: {recipe.source}'} ({recipe.size})")
        say(f"{'':9} {recipe.command}")


@verb(
    "textveil table info glove",
    "textveil table info minilm --json",
    "textveil table info 24",
    "textveil table info news.book@24",
    on=table,
    name="info",
)
def table_info(
    table: Annotated[str, typer.Argument(metavar="NAME|DIR|BOOK", show_default=False)],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, with all points of the curve.")
    ] = False,
) -> None:
    """Describe a table, or a book of codes.

    The files of a folder are checked against their checksums.
    """
    import os

    from textveil.table import find_book, store

    name = table.rpartition("@")[0] or table
    if name.isdecimal() or os.path.isfile(table) or os.path.isfile(name):
        book = find_book(table)
        say(
            json.dumps(book.to_json(), ensure_ascii=False)
            if as_json
            else "\n".join(describe_book(book))
        )
        return
    say(
        json.dumps(store.describe(table), ensure_ascii=False)
        if as_json
        else store.format_summary(table)
    )


@verb(
    "textveil table list",
    "textveil table list tables",
    on=table,
    name="list",
)
def table_list(
    folder: Annotated[str, typer.Argument(metavar="[FOLDER]", show_default=False)] = ".",
) -> None:
    """List what --table takes: the registered tables, and those in FOLDER, which is the current one by default."""
    from textveil.config import registry
    from textveil.table import store

    rows = {
        name: registry.find_entry("table", name).summary for name in registry.list_names("table")
    }
    rows |= dict(store.list_folders(folder))
    width = max(map(len, rows))
    for name, summary in rows.items():
        say(f"{name:{width}}  {summary}")


@verb(
    "textveil table neighbours minilm doctor",
    "textveil table neighbours glove doctor -k 20 --json",
    on=table,
    name="neighbours",
)
def table_neighbours(
    table: Annotated[str, typer.Argument(metavar="TABLE", show_default=False)],
    word: Annotated[str, typer.Argument(metavar="WORD", show_default=False)],
    count: Annotated[int, typer.Option("-k", metavar="K", help="The number of words.", min=1)] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the words nearest to a word, with their distances."""
    from textveil.table import store

    is_known, row, nearest = store.find_nearest_words(table, word, count)
    if not is_known:
        console.note(
            f"textveil: the word is not in the table; these are the neighbours of {row!r}, which "
            "stands in for it"
        )
    if as_json:
        neighbours = [{"word": neighbour, "distance": distance} for neighbour, distance in nearest]
        say(
            json.dumps(
                {"row": row, "known": is_known, "neighbours": neighbours}, ensure_ascii=False
            )
        )
        return
    for neighbour, distance in nearest:
        say(f"{distance:.4f}  {neighbour}")


add(table, calibrate, "calibrate")
add(table, codes, "codes")
add(table, books, "books")
