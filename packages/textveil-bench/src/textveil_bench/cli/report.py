"""The command `report`.

In: rows of sweeps. Out: a page of their figures, and the figures as files.
Not here: the content of the page (`textveil_bench.report`), and the making of rows (`bench`).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import console, evaluation, progress, verb
from textveil.errors import ConfigError, OutputError, UnknownName
from textveil.files import text_streams
from textveil_bench.cli.bench import PANEL

if TYPE_CHECKING:
    from textveil_bench.report import WholeTextGallery


@verb(
    "textveil report runs/sweep",
    "textveil report runs/sweep runs/other --output both.html --title 'Windows of both kinds'",
    "textveil report runs/sweep --only sst2 --figures figures",
    "textveil report runs/sweep --library news.library --votes synth/votes.json",
    panel=PANEL,
)
def report(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="ROWS...",
            help="Folders of runs, or files of rows (.jsonl).",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option("--output", metavar="FILE", help="The page to write; - for standard output."),
    ] = ("report.html"),
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="The heading of the page.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="DATA", help="Show only this data set; repeatable."),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            "--figures",
            metavar="DIR",
            help="Also write each figure there, as PNG and SVG, and its data as CSV.",
        ),
    ] = None,
    library: Annotated[
        str | None,
        typer.Option(
            "--library",
            metavar="FILE",
            help="Also show the texts that the run kept as whole texts of this library.",
        ),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Option(
            "--votes",
            metavar="FILE",
            help="With --library: also show lines of a corpus that follows from these votes.",
        ),
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", metavar="E", help="With --library: for a document.", min=0.01),
    ] = 4.0,
) -> None:
    """Make a page of figures and tables from rows.

    It shows usefulness against risk, with intervals. The page is a single file without scripts, and
    loads nothing. It shows texts of public data sets only, if the run kept some.
    """
    from textveil_bench import rows
    from textveil_bench.compare import build_series
    from textveil_bench.report import build_report as composed
    from textveil_bench.report import build_whole_text_section

    places = [Path(path) for path in paths]
    for place in places:
        evaluation.refuse_same_file(
            str(place / rows.ROWS_FILE if place.is_dir() else place), output
        )
    all_series = build_series(rows.yield_rows(places))
    names = dict.fromkeys(item.data.name for item in all_series)
    for name in only or ():
        if name not in names:
            raise UnknownName("data set of these rows", name, names)
    selection = [item for item in all_series if not only or item.data.name in only]
    folder = None if figures is None else Path(figures)
    if folder is not None:
        if folder.exists() and not folder.is_dir():
            raise OutputError("--figures must be a folder, and this is a file")
        with text_streams.convert_write_errors():
            text_streams.make_folder(folder)
    gallery_texts = list(rows.read_gallery(places))
    whole_texts = _read_gallery(library, votes, epsilon)
    closing = [build_whole_text_section(gallery, gallery_texts) for gallery in whole_texts]
    with progress.show_bars(unit=" figures") as callback:
        page = composed(
            selection,
            gallery_texts,
            title=title,
            closing_sections=closing,
            figures=folder,
            progress=callback,
        )
    with text_streams.open_output(output) as stream:
        stream.write(page)
    if output != "-":
        cells = sum(len(item.cells) for item in selection)
        console.note(
            f"Written to {Path(output).name}: a page of {cells:,} cell{'s' * (cells != 1)}."
        )


def _read_gallery(
    library: str | None, votes: str | None, epsilon: float
) -> "list[WholeTextGallery]":
    """Reads what whole texts are made of, where a library is named."""
    from textveil.corpus import read_votes
    from textveil.library import Library
    from textveil_bench.report import WholeTextGallery

    if library is None:
        if votes is not None:
            raise ConfigError("--votes needs --library: a corpus is made of its texts")
        return []
    public_texts = Library.read(library)
    counts = None if votes is None else read_votes(votes)
    return [WholeTextGallery(library=public_texts, epsilon=epsilon, votes=counts)]
