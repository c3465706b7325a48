"""The verb `corpus`: plan, run, verify, finish.

In: files of texts, or a release. Out: a release in a folder, with its statement; what of one was
changed.
Not here: how a run is divided, drawn and resumed (`corpus`), and formats (`files`).
"""

import json
from dataclasses import replace
from typing import Annotated, Any

import typer

from textveil.cli import console, corpus_plan, progress, synthesis
from textveil.cli.decorators import add, group, verb
from textveil.cli.options import RELEASE_OPTIONS, SHARED_OPTIONS, TypedOptions
from textveil.cli.session_options import STORE_VARIABLES, is_store_typed, read_store
from textveil.cli.statement_options import StatementForm
from textveil.cli.texts import check_public
from textveil.corpus import FinishedRelease, RowOptions, release, runs
from textveil.corpus.roles import require_roles
from textveil.corpus.synthesis_folder import finish_synthesis, is_synthesis, verify_synthesis
from textveil.errors import ConfigError, InputError
from textveil.files import formats
from textveil.files.storage import find_files
from textveil.library import Library

corpus = group(
    "Privatize whole corpora: files, folders and object stores, resumable, with one statement.",
    "textveil corpus plan letters.jsonl",
    "textveil corpus run letters.jsonl --field body --id id --output released/",
    "textveil corpus verify released/",
    panel="Privatize texts",
)
"""The verbs about corpora."""

add(corpus, corpus_plan.plan, "plan")

Folder = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER", help="The folder of a release, or its URI.", show_default=False
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar=STORE_VARIABLES,
        callback=read_store,
        help="The store with the sessions of --session: sqlite:///NAME.db, postgresql://HOST/NAME "
        "or redis://HOST/0.",
    ),
]
KeyFile = Annotated[
    str | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="The file that keeps the key of the release until it is finished; needed if the "
        "output is in an object store.",
    ),
]


@verb(
    "textveil corpus run letters.jsonl --field body --id id --output released/",
    "textveil corpus run letters.jsonl --field body --id id --output released/ --resume",
    "textveil corpus run comments.csv --field comment --id id --keep stars -O kept/",
    (
        "textveil corpus run letters.jsonl notes.csv --field body --id-from-row --others drop "
        "--output shared/"
    ),
    (
        "textveil corpus run letters.jsonl --field body --id id --risk 0.10 --public news.txt "
        "--output guessed/"
    ),
    "textveil corpus run letters.jsonl --field body --id id --profile prompt --output protected/",
    (
        "textveil corpus run letters.jsonl --field body --id id --others drop --unit document "
        "--library news.library --epsilon 4 --output public/"
    ),
    "textveil corpus run tickets.jsonl --field body --id id --profile prompt --subject client "
    "--others drop --placeholders subject --session tickets --store sqlite:///veil.db --output "
    "linked/",
    options=RELEASE_OPTIONS,
    fields={"how": (runs.run,), "rows": (RowOptions,)},
    brief=(
        *("output", "fields", "id", "id_from_row", "keep", "others", "subject", "jobs", "resume"),
        *("profile", "epsilon"),
    ),
    on=corpus,
)
def run(
    typed: TypedOptions,
    statement_form: StatementForm,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Files, folders, patterns and URIs: .txt (a text per line), .jsonl, .csv, .tsv or .parquet; all but "
            "the last also compressed, as .gz, .bz2, .xz or .zst.",
            show_default=False,
        ),
    ],
    how: dict[str, Any],
    rows: dict[str, Any],
    id_from_row: Annotated[
        bool,
        typer.Option(
            "--id-from-row",
            help="Identify rows by the order of the files and of the rows in them.",
        ),
    ] = False,
    id_from_content: Annotated[
        bool,
        typer.Option(
            "--id-from-content",
            help="Identify texts by their content: equal texts have equal releases, which shows "
            "that they are equal.",
        ),
    ] = False,
    store: Store = None,
    key_file: KeyFile = None,
) -> None:
    """Privatize a corpus into a folder, as one release with a statement.

    All files are read and checked first. The release is parts, in the formats of the input, a
    statement and a manifest. In a run no text is drawn twice with different results: continue an
    interrupted run with --resume. Without --profile, --mechanism or a --config that names one, the
    profile is `document`.
    """
    config = typed.resolve_config()
    check_public(config, inputs)
    if id_from_row + id_from_content + ("id" in rows) > 1:
        raise ConfigError("give one of --id, --id-from-row and --id-from-content")
    if "session" not in rows:
        if is_store_typed(store):
            raise ConfigError(
                "--store keeps the originals of placeholders in sessions: name the sessions with "
                "--session"
            )
        store = None  # of the environment, for other verbs
    if "query" in rows and config.texts.unit == "word":
        if config.protect.task is not None:
            raise ConfigError(
                "give --task for all texts, or --query for a field with the task of each text, "
                "not both"
            )
        config = replace(config, protect=replace(config.protect, importance="cosine"))
    options = RowOptions(
        ids="row" if id_from_row else "content" if id_from_content else "column", **rows
    )
    output, more = how.get("output"), _spell_options(typed)
    if output is None or not how.get("resume"):  # of a finished release no input is read
        require_roles(inputs, find_files(inputs)[0], options, output, more)
    try:
        with progress.show_bars() as report:
            finished = runs.run(
                inputs,
                config=config,
                options=options,
                key_file=key_file,
                store=store,
                report=lambda step, *amounts: None if step == "rows" else report(step, *amounts),
                **how,
            )
    except (KeyboardInterrupt, SystemExit):
        console.note("textveil: interrupted; finished parts are kept; continue with --resume")
        raise
    if statement_form.form != "quiet":
        console.note(console.wrap("\n".join(_describe_release(finished, statement_form))))


def _spell_options(typed: TypedOptions) -> list[str]:
    """Returns typed options that a proposed command line repeats, and no text."""
    return [
        word
        for name in ("profile", "mechanism", "epsilon", "risk", "unit", "library")
        for option in (SHARED_OPTIONS[name],)
        if (value := typed.values.get(option.path or "")) is not None
        for word in (option.flag, value)
    ]


@verb(
    "textveil corpus verify released/",
    "textveil corpus verify synthetic/ --library news.library",
    on=corpus,
)
def verify(
    folder: Folder,
    library: Annotated[
        str | None,
        typer.Option(
            "--library",
            metavar="FILE",
            help="The library of a synthesized corpus, which is then drawn again and compared.",
        ),
    ] = None,
) -> None:
    """Check a release against its manifest: no part is missing or changed, no file was added."""
    if is_synthesis(folder):
        _verify_synthesis(folder, library)
        return
    differences = release.verify(folder)
    if library is not None:
        raise ConfigError("--library is for the folder of a synthesized corpus; leave it out")
    if differences:
        raise InputError("the release does not match its manifest: " + "; ".join(differences))
    console.say("The release matches its manifest.")


def _verify_synthesis(folder: str, library: str | None) -> None:
    if library is None:
        raise ConfigError("--library is needed: its texts are drawn again from the votes")
    check = verify_synthesis(folder, Library.read(library))
    if check.differences:
        raise InputError(
            "the corpus does not follow from its votes: " + "; ".join(check.differences)
        )
    console.say(
        " ".join(
            [
                "The corpus follows from its votes: every text is in the library, and statement "
                "and manifest match.",
                *(f"Note: {note}." for note in check.notes),
            ]
        )
    )


@verb(
    "textveil corpus finish released/",
    "textveil corpus finish released/ --give-up",
    "textveil corpus finish linked/ --give-up --store sqlite:///veil.db",
    on=corpus,
)
def finish(
    folder: Folder,
    key_file: KeyFile = None,
    give_up: Annotated[
        bool,
        typer.Option(
            "--give-up",
            help="Give up an interrupted run: delete its parts and sessions, too.",
        ),
    ] = False,
    store: Store = None,
) -> None:
    """Destroy the key and the work files of a run: its draws cannot be repeated or continued.

    A synthesized corpus has no key: only what an interrupted run left is deleted.
    """
    if is_synthesis(folder):
        console.say(finish_synthesis(folder, give_up=give_up))
        return
    release.finish(folder, key_file=key_file, give_up=give_up, store=store)


add(corpus, synthesis.synthesize, "synthesize")
add(corpus, synthesis.report, "report")
add(corpus, synthesis.tally_reports, "tally")


def _describe_release(finished: FinishedRelease, statement_form: StatementForm) -> list[str]:
    """Returns the sentences about a release.

    The statement of one that was finished before is known from its manifest only.
    """
    manifest = finished.manifest
    texts = sum(manifest["texts"].values())
    words = manifest["statement"]["words"].get("all", 0)
    counts = f"{texts:,} texts" + (f", {words:,} words" if manifest.get("library") is None else "")
    fields = ", ".join(
        name if formats.is_plain(name) else json.dumps(name) for name in manifest["fields"]
    )
    parts = f"{len(manifest['parts']):,} part{'' if len(manifest['parts']) == 1 else 's'}"
    sentences = [f"{manifest['rows']:,} rows in {parts}, fields {fields}: {counts}."]
    if finished.is_earlier:
        return [*sentences, "The release was already finished; nothing was read or drawn now."]
    if finished.guarantee is not None:
        sentences.append(statement_form.spell(finished.guarantee))
    if finished.statement is not None:
        sentences += [
            sentence
            for name, sentence in finished.statement.build_sentences().items()
            if name not in ("word", "text", "texts", "passed")
        ]
    return sentences
