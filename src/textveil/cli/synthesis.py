"""The verbs `corpus synthesize`, `corpus report` and `corpus tally`.

In: files of private texts, a library; or votes, or reports. Out: a folder of public texts with
their statement; the file of a report.
Not here: how they come about (`corpus.synthesis`, `pipeline.synthesis`), and the other verbs about
corpora (`corpus`).
"""

import re
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Annotated

import typer

from textveil.cli import console, progress
from textveil.cli.decorators import verb
from textveil.cli.session_options import STORE_VARIABLES, is_store_typed, read_store
from textveil.cli.statement_options import StatementForm
from textveil.corpus import reports as report_files
from textveil.corpus import synthesis, synthesis_folder
from textveil.errors import ConfigError, InputError, quote_file, quote_short
from textveil.files import text_streams
from textveil.guarantee import join_parts
from textveil.library import Library, describe_baseline
from textveil.pipeline import DrawOptions, choose_level, report_texts, tally

LibraryFile = Annotated[
    str,
    typer.Option(
        "--library",
        metavar="FILE",
        help="The library of public texts, as `textveil library make` writes it.",
        show_default=False,
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="A,B,...",
        help="All labels that count, a public list: which ones occur is private.",
    ),
]
LabelsFile = Annotated[
    str | None,
    typer.Option(
        "--labels-file", metavar="FILE", help="A file with this list, a label on each line."
    ),
]
Cells = Annotated[
    str,
    typer.Option(
        "--cells",
        metavar="LEVEL|auto",
        help="The level of the library; auto takes the one that suits --about.",
    ),
]
About = Annotated[
    int | None,
    typer.Option(
        "--about",
        metavar="N",
        min=1,
        help="About how many texts are counted, with --subject at most --per-subject of each: a "
        "public guess; never count them for it.",
    ),
]
Count = Annotated[
    str,
    typer.Option(
        "--count",
        metavar="N|all",
        help="How many public texts to draw; all: every text of the library once, with its label.",
    ),
]
Smooth = Annotated[
    str,
    typer.Option(
        "--smooth",
        metavar="none|vectors|words|both|best",
        help="Label texts by the votes and by their vectors, words, both, or whatever of these and "
        "of public labels fits the votes best; none: by the votes for their cell alone.",
    ),
]
Balance = Annotated[bool, typer.Option("--balance", help="Take labels to be equally frequent.")]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        help="Public: another number draws other texts by the same counts. Noise follows from no seed.",
    ),
]
Folder = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="The folder to write, empty or new, or its URI.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with an interrupted run; noise is not drawn again."),
]


@verb(
    "textveil corpus synthesize letters.jsonl --field body --label topic --labels "
    "world,sports,business --subject author --about 1000 --library news.library --epsilon 1 "
    "-o synthetic/",
    "textveil corpus synthesize --votes synthetic/votes.json --library news.library --count 20000 "
    "-o more/",
    brief=(
        *("field", "label", "labels", "subject", "about", "library", "epsilon", "count"),
        *("votes", "output", "resume"),
    ),
)
def synthesize(
    statement_form: StatementForm,
    library: LibraryFile,
    output: Folder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="Files, folders, patterns and URIs with private texts: .txt (a text per line), "
            ".jsonl, .csv, .tsv or .parquet; all but the last also compressed.",
            show_default=False,
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            "--field",
            metavar="NAME",
            help="The field of the texts. Default: `text`, or the only one with strings.",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="NAME", help="The field of the labels.")
    ] = None,
    labels: Labels = None,
    labels_file: LabelsFile = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="NAME",
            help="The field of persons, such as authors: epsilon is then for all texts of one. "
            "Default: for a document.",
        ),
    ] = None,
    per_subject: Annotated[
        int,
        typer.Option(
            "--per-subject",
            metavar="N",
            help="How many texts of a subject are counted, the first ones; noise grows with it.",
        ),
    ] = 1,
    noun: Annotated[
        str,
        typer.Option(
            "--noun", metavar="WORD", help="The word of statements for a subject: customer, author."
        ),
    ] = "subject",
    about: About = None,
    cells: Cells = "auto",
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            metavar="E",
            help="The bound for one subject or document, added or removed.",
        ),
    ] = None,
    count: Count = str(DrawOptions.count),
    smooth: Smooth = DrawOptions.smooth,
    balance: Balance = False,
    seed: Seed = 0,
    votes: Annotated[
        str | None,
        typer.Option(
            "--votes",
            metavar="FILE",
            help="Draw from these votes in place of private texts; costs nothing more.",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            envvar=STORE_VARIABLES,
            callback=read_store,
            help="Charge every subject in the ledger of this store, before any noise is drawn.",
        ),
    ] = None,
    resume: Resume = False,
) -> None:
    """Draw a corpus of public texts that is like private ones, by one noisy count of them.

    Texts are counted by label and by cell of the library, noise is drawn once, and public texts
    follow. Nothing else of the private texts is written: no number, size or name. Further corpora
    follow from its votes.json and cost nothing.
    """
    drawing = _read_drawing(count, smooth, balance, seed)
    public = Library.read(library)
    if votes is not None:
        typed = {
            "INPUT": inputs,
            "--field": field,
            "--label": label,
            "--labels": labels,
            "--labels-file": labels_file,
            "--subject": subject,
            "--per-subject": per_subject != 1,
            "--noun": noun != "subject",
            "--epsilon": epsilon,
            "--about": about,
            "--cells": cells != "auto",
        }
        if extra := [name for name, value in typed.items() if value]:
            raise ConfigError(
                f"--votes stands in place of private texts: leave out {join_parts(extra)}"
            )
        finished = synthesis.publish_votes(
            synthesis_folder.read_votes(votes),
            output,
            library=public,
            drawing=drawing,
            resume=resume,
        )
        _say_finished(finished, public, statement_form)
        return
    if not inputs:
        raise InputError("private texts are needed: give files, or --votes FILE")
    if epsilon is None:
        raise ConfigError("--epsilon is needed: the bound for one subject or document")
    if subject is None and not is_store_typed(store):
        store = None  # of the environment, for other verbs
    try:
        with _show_progress() as report:
            finished = synthesis.synthesize_files(
                inputs,
                output,
                library=public,
                epsilon=epsilon,
                fields=synthesis.VoteFields(text=field, label=label, subject=subject),
                label_names=read_labels(labels, labels_file),
                noun=noun,
                per_subject=per_subject,
                about=about,
                level=cells,
                drawing=drawing,
                resume=resume,
                store=store,
                report=report,
            )
    except (KeyboardInterrupt, SystemExit):
        console.note("textveil: interrupted; continue with --resume: noise is not drawn again")
        raise
    _say_finished(finished, public, statement_form)


@verb(
    "textveil corpus report letter.txt --label sports --labels world,sports --library "
    "news.library --cells 16 --epsilon 2 -o report.json",
)
def report(
    library: LibraryFile,
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon",
            metavar="E",
            help="Local DP for the document and its label together.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file of the report, a new one.",
            show_default=False,
        ),
    ],
    statement_form: StatementForm,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT|-|FILE",
            help="A text, a file with one, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Take each line as a document, with one report.")
    ] = False,
    label: Annotated[
        str | None, typer.Option("--label", metavar="LABEL", help="The document's label.")
    ] = None,
    labels: Labels = None,
    labels_file: LabelsFile = None,
    cells: Cells = "auto",
    about: About = None,
) -> None:
    """Report the kind of a document from where it is, so that nobody needs to be trusted.

    The report is a set of codes, some of them at random. `corpus tally` makes a corpus of many.
    All devices must use the same library, list of labels, cells and epsilon.
    """
    public, names = Library.read(library), read_labels(labels, labels_file)
    if (label is not None) != bool(names):
        raise ConfigError("--label and the public list of labels (--labels) go together")
    level = choose_level(public, cells, about, epsilon, names, way="reports")
    with text_streams.open_texts(text, whole=not lines) as documents:
        texts = [line for line in documents if line.strip()]
    if not texts:
        raise InputError("there is no text to report")
    draw = partial(
        report_texts,
        texts,
        None if label is None else [label] * len(texts),
        library=public,
        level=level,
        epsilon=epsilon,
        label_names=names,
    )
    written = report_files.write_reports(output, draw)
    if statement_form.form != "quiet":
        votes = tally(report_files.read_reports([output]), public)
        console.note(console.wrap(statement_form.spell(votes.guarantee)))
        if written:
            console.note("Another report about the same document would add to this epsilon.")


@verb(
    "textveil corpus tally reports/ --library news.library --count 3000 -o synthetic/",
    name="tally",
)
def tally_reports(
    statement_form: StatementForm,
    library: LibraryFile,
    output: Folder,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="REPORTS",
            help="Files of reports (.json, or .jsonl with one on each line), and folders of them.",
            show_default=False,
        ),
    ],
    count: Count = str(DrawOptions.count),
    smooth: Smooth = DrawOptions.smooth,
    balance: Balance = False,
    seed: Seed = 0,
    resume: Resume = False,
) -> None:
    """Draw a corpus of public texts that follows from the reports of many documents."""
    drawing = _read_drawing(count, smooth, balance, seed)
    public = Library.read(library)
    finished = synthesis.publish_votes(
        tally(report_files.read_reports(inputs), public),
        output,
        library=public,
        drawing=drawing,
        resume=resume,
    )
    _say_finished(finished, public, statement_form)


def _read_drawing(count: str, smooth: str, balance: bool, seed: int) -> DrawOptions:
    if count != "all" and not re.fullmatch(r"\d{1,9}", count):
        raise ConfigError(f"--count must be a number of texts, or all, got {quote_short(count)}")
    return DrawOptions(
        count="all" if count == "all" else int(count),
        smooth=smooth,  # type: ignore[arg-type]
        balance=balance,
        seed=seed,
    )


def read_labels(labels: str | None, file: str | None) -> tuple[str, ...]:
    """Reads the public list of labels.

    Raises:
        ConfigError: both a list and a file are given.
        InputError: the file cannot be read.
    """
    if labels is not None and file is not None:
        raise ConfigError("give one of --labels and --labels-file, not both")
    if file is None:
        return tuple(name.strip() for name in (labels or "").split(",")) if labels else ()
    with text_streams.open_input(file, may_be_text=False) as stream:
        names = tuple(line.strip() for line in text_streams.read_lines(stream) if line.strip())
    if not names:
        raise InputError(f"the file of labels {quote_file(file)} is empty")
    return names


def _say_finished(
    finished: synthesis.FinishedSynthesis, library: Library, form: StatementForm
) -> None:
    if form.form == "quiet":
        return
    lines = [form.spell(finished.guarantee), describe_baseline(library, finished.guarantee.labels)]
    if finished.is_earlier:
        lines.append("It was already finished; nothing was read or drawn now.")
    lines += _describe_left_out(finished)
    console.note(console.wrap("\n".join(lines)))


def _describe_left_out(finished: synthesis.FinishedSynthesis) -> list[str]:
    """Describes what was not counted, for the curator alone: on a terminal, for others are logs."""
    if not progress.is_terminal():
        return [] if finished.counted is None else [_UNSAID]
    parts = [f"{number:,} ({reason})" for reason, number in finished.left_out.items() if number]
    sentences = [f"not counted were {join_parts(parts)}"] if parts else []
    if finished.counted == 0:
        sentences.append("no document was counted: check --field, --label and --labels")
    if not sentences:
        return []
    return [f"For you alone, covered by no bound and not to be passed on: {'; '.join(sentences)}."]


_UNSAID = "Whether documents were not counted, and why, is private: it is said on a terminal alone."


def _show_progress() -> AbstractContextManager[progress.ProgressCallback]:
    """Shows progress on a terminal only: the number of rows is private, and elsewhere is a log."""
    return progress.show_bars() if progress.is_terminal() else nullcontext(lambda *_: None)
