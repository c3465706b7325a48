"""The verbs `library make` and `library info`.

In: files of public texts, sentences that describe classes. Out: the file of a library; what it
holds, and what it achieves without any private text.
Not here: how a library is made (`textveil.library`), and what is released from it (`privatize`,
`corpus`).
"""

import json
import os
import re
from importlib.resources import files as find_package_files
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from textveil.cli import progress
from textveil.cli.console import say
from textveil.cli.decorators import group, verb
from textveil.cli.public_texts import check_target, read_public_texts
from textveil.cli.texts import Field
from textveil.errors import ConfigError, InputError, OutputError, quote_file

library = group(
    "Make libraries of public texts, which stand in place of private ones.",
    "textveil library make --demo -o demo.library",
    "textveil library info demo.library",
)
"""The verbs about libraries."""

DEMO = Path(str(find_package_files("textveil") / "data" / "library"))
"""The folder of the invented notes that the package has."""

DEMO_SOURCE = "invented notes of customers, part of textveil"

LibraryFile = Annotated[
    str,
    typer.Argument(metavar="LIBRARY", help="The file of a library.", show_default=False),
]
NewLibrary = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="LIBRARY", help="The file to write.", show_default=False
    ),
]


@verb(
    "textveil library make --demo -o demo.library",
    (
        "textveil library make public.jsonl --field body --source 'news of 2004' --licence "
        "'CC BY 4.0' -o news.library"
    ),
    (
        "textveil library make public.jsonl --label topic --source 'news of 2004' --licence "
        "'CC BY 4.0' -o topics.library"
    ),
    (
        "textveil library make wiki.txt --classes classes.txt --source 'Wikipedia, 2018' --licence "
        "'CC BY-SA 3.0' -o wiki.library"
    ),
    brief=("field", "label", "classes", "cells", "source", "licence", "demo", "output"),
    on=library,
)
def make(
    output: NewLibrary,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Files of public texts: .txt (a text per line), .jsonl, .csv, .tsv or .parquet; "
            "all but the last also compressed.",
            show_default=False,
        ),
    ] = None,
    field: Field = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            metavar="FIELD",
            help="The field of public labels: cells then tell them apart, and a level has a cell "
            "for each.",
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="FILE",
            help="A public sentence for each class, on a line NAME: SENTENCE: cells then tell the "
            "classes apart, and a level has a cell for each.",
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="FIELD",
            help="The field that identifies a text in its source. Default: its number.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="TEXT",
            help="Your description of the texts, which every statement prints. Default: the "
            "names of the files.",
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence",
            metavar="TEXT",
            help="The terms under which the texts may be passed on; they go into every release.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="The name of the library in statements. Default: that of its file."
        ),
    ] = None,
    cells: Annotated[
        str,
        typer.Option(
            "--cells",
            metavar="vectors|words|both",
            help="The features by which texts are alike: sentence vectors see topics, words see "
            "labels that nobody else has.",
        ),
    ] = "vectors",
    levels: Annotated[
        str | None,
        typer.Option(
            "--levels",
            metavar="K,...",
            help="Numbers of cells; the library has a level for each that has 8 texts a cell. "
            "Default: 6,10,30,100.",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="DIR|ID",
            help="Another sentence encoder: its folder or hub id. Whoever uses the library needs "
            "it, too.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Another seed gives other cells.", min=0)
    ] = 0,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Make it from 200 invented notes of customers, which are part of textveil, with "
            "labels and classes.",
        ),
    ] = False,
) -> None:
    """Make a library from public texts, never from the texts to release.

    Releases pass its texts on word for word, so --licence must allow that. With --label or
    --classes its cells tell labels or classes apart; without either they are clusters of like
    texts. Its own texts do not count as input later.
    """
    if demo:
        if files or label or classes or field or id:
            raise ConfigError("--demo brings its own files, labels and classes: give it alone")
        files, label, classes = [str(DEMO / "notes.jsonl")], "kind", str(DEMO / "classes.txt")
        source, licence = source or DEMO_SOURCE, licence or "Apache-2.0"
    if not files:
        raise InputError("no public texts: give files of them, or --demo")
    licence = check_licence(licence)
    target = check_writable(output)
    columns = [(option, name) for option, name in (("--id", id), ("--label", label)) if name]
    texts, values = read_public_texts(files, field, columns)
    found = {option: column for (option, _), column in zip(columns, values, strict=True)}
    if missing := found.get("--label", []).count(""):
        raise InputError(f"{missing:,} of {len(texts):,} texts have no label: leave them out")
    write_library(
        target,
        texts=texts,
        ids=found.get("--id"),
        labels=found.get("--label"),
        classes=read_class_sentences(classes),
        source=source or ", ".join(Path(file).name for file in files),
        licence=licence,
        name=name or target.stem,
        cells=cells,
        levels=levels,
        encoder=encoder,
        seed=seed,
    )


@verb(
    "textveil library info news.library",
    "textveil library info news.library --cells 30",
    "textveil library info news.library --json",
    on=library,
)
def info(
    library: LibraryFile,
    cells: Annotated[
        str | None,
        typer.Option(
            "--cells", metavar="LEVEL", help="Also show the most typical text of each cell."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a library, and say what it holds and what it achieves without any private text."""
    from textveil.library import Library, collect_facts, describe_cells, describe_library

    known = Library.read(library)
    if as_json:
        say(json.dumps(collect_facts(known), ensure_ascii=False))
        return
    for line in describe_library(known):
        say(line)
    if cells is not None:
        for line in describe_cells(known, known.get_level(cells)):
            say(line)


# ---- common parts --------------------------------------------------------------------------------


def check_licence(licence: str | None) -> str:
    """Returns the licence, which must have been given."""
    if licence is None:
        raise ConfigError(
            "--licence must say under which terms the texts may be passed on, as releases pass "
            "them on word for word"
        )
    return licence


def check_writable(output: str) -> Path:
    """Returns the path of the file to write, before any work is done for it."""
    target = check_target(output)
    if not os.access(target.resolve().parent, os.W_OK):
        raise OutputError(f"cannot write {quote_file(output)}: its folder may not be written to")
    return target


def read_class_sentences(path: str | None) -> dict[str, str] | None:
    """Reads the sentences of classes, where a file of them is named."""
    from textveil.library import read_classes

    return None if path is None else read_classes(path)


def write_library(target: Path, *, cells: str, levels: str | None, **options: Any) -> None:
    """Makes a library, writes it and describes it."""
    from textveil.library import LEVELS, CellKind, describe_library, make_library

    numbers = read_levels(levels)
    with progress.show_bars() as report:
        made = make_library(
            cells=cast(CellKind, cells), levels=numbers or LEVELS, report=report, **options
        )
    made.save(target)
    for line in describe_library(made):
        say(line)


def read_levels(levels: str | None) -> list[int]:
    """Reads numbers of cells, separated by commas."""
    numbers = [] if levels is None else levels.split(",")
    if not all(re.fullmatch(r"\s*\d{1,4}\s*", number) for number in numbers):
        raise ConfigError("--levels must be numbers of cells, separated by commas, such as 6,30")
    return [int(number) for number in numbers]
