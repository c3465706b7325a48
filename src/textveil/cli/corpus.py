"""The verb `corpus`: run, verify, finish.

In: files of texts, or a release. Out: a release in a folder, with its statement; what of one was changed.
Not here: how a run is divided, drawn and resumed (`corpus`), and formats (`files`).
"""

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import progress, shell
from textveil.cli.options import BUDGETED, Typed
from textveil.cli.stored import VARIABLE
from textveil.cli.telling import Telling
from textveil.cli.texts import check_public
from textveil.cli.verbs import group, verb
from textveil.errors import ConfigError, InputError, quote
from textveil.files import formats

if TYPE_CHECKING:
    from textveil.corpus import Done

corpus = group(
    "Privatize whole corpora: files, folders and object stores, resumable, with one statement.",
    "textveil corpus run letters.jsonl --field body --id id --output released/",
    "textveil corpus verify released/",
    panel="Privatize texts",
)
"""The verbs about corpora."""

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
        envvar=VARIABLE,
        help="The store with the sessions of --session: sqlite:///NAME.db or postgresql://HOST/NAME.",
    ),
]
KeyFile = Annotated[
    str | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="Where the key of the release is kept until it is finished; needed if the output is in an object store.",
    ),
]


@verb(
    "textveil corpus run letters.jsonl --field body --id id --output released/",
    "textveil corpus run letters.jsonl --field body --id id --output released/ --resume",
    "textveil corpus run letters.jsonl notes.csv --field body --id-from-row --others drop --output shared/",
    "textveil corpus run letters.jsonl --field body --id id --risk 0.10 --public news.txt --output guessed/",
    "textveil corpus run letters.jsonl --field body --id id --profile prompt --output protected/",
    "textveil corpus run tickets.jsonl --field body --id id --profile prompt --subject client --others drop "
    "--placeholders subject --session tickets --store sqlite:///veil.db --output linked/",
    options=BUDGETED,
    on=corpus,
)
def run(
    typed: Typed,
    telling: Telling,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Files, folders, patterns and URIs: .txt (a text per line), .jsonl, .csv, .tsv or .parquet; all but "
            "the last also compressed, as .gz, .bz2, .xz or .zst.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            metavar="FOLDER",
            help="Where the release goes: an empty or new folder, or a URI.",
        ),
    ],
    field: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            "--column",
            metavar="NAME",
            help="A field with texts; repeatable. Else `text`, or in .jsonl and .parquet the only one with strings.",
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="NAME", help="The field with an id for each row, unique and copied."
        ),
    ] = None,
    id_from_row: Annotated[
        bool,
        typer.Option(
            "--id-from-row",
            help="Tell rows apart by the order of the files and of the rows in them.",
        ),
    ] = False,
    id_from_content: Annotated[
        bool,
        typer.Option(
            "--id-from-content",
            help="Tell texts apart by what they say: equal texts have equal releases, which shows that they are equal.",
        ),
    ] = False,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="NAME",
            help="The field that says whom a row is about: losses are added up.",
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="NAME",
            help="The field that says what each text is for: words close to it count as important. Not kept secret.",
        ),
    ] = None,
    others: Annotated[
        str | None,
        typer.Option(
            "--others",
            metavar="copy|drop",
            help="What becomes of all other fields. With drop only the id and the texts are released.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Take each .txt file as one text.")
    ] = False,
    placeholders: Annotated[
        str,
        typer.Option(
            "--placeholders",
            metavar="document|subject",
            help="Count placeholders in each text, or give a value the same one in all rows of a subject (--subject), "
            "which shows where it occurs again.",
            show_default=True,
        ),
    ] = "document",
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="NAME",
            help="Keep what placeholders stand for, in a session NAME of each subject in the store; else it is thrown "
            "away. `textveil restore --session SUBJECT/NAME` puts it back.",
        ),
    ] = None,
    store: Store = None,
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="local|ray|spark",
            help="Who draws: processes of this machine, or an engine (extras ray and spark).",
            show_default=True,
        ),
    ] = "local",
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            metavar="N",
            help="How many processes draw; 0 for one per core.",
            show_default=True,
        ),
    ] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Of a cluster of Ray or Spark; else one is started on this machine.",
        ),
    ] = None,
    part_rows: Annotated[
        int,
        typer.Option(
            "--part-rows", metavar="N", help="Rows of a file of the release.", show_default=True
        ),
    ] = 20_000,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with a run that was interrupted; one that is finished is kept."
        ),
    ] = False,
    key_file: KeyFile = None,
    keep_key: Annotated[
        bool,
        typer.Option(
            "--keep-key", help="Leave the key of the release until `textveil corpus finish`."
        ),
    ] = False,
) -> None:
    """Privatize a corpus into a folder, as one release with a statement.

    All files are read and checked first. The release is parts, in the formats of the input, a statement and a manifest.
    What was drawn is never drawn differently again: an interrupted run goes on with --resume. Without --profile,
    --mechanism or a --config that names one, the profile is `document`.
    """
    from textveil.corpus import RowOptions, runs

    config = typed.config()
    check_public(config, inputs)
    if id_from_row + id_from_content + (id is not None) > 1:
        raise ConfigError("give one of --id, --id-from-row and --id-from-content")
    if others not in (None, "copy", "drop"):
        raise ConfigError(f"--others must be copy or drop, got {quote(others)}")
    if placeholders not in ("document", "subject"):
        raise ConfigError(f"--placeholders must be document or subject, got {quote(placeholders)}")
    if session is None:
        if store != os.environ.get(VARIABLE):
            raise ConfigError(
                "--store keeps what placeholders stand for in sessions: name them with --session"
            )
        store = None  # of the environment, for other verbs
    if query is not None:
        if config.protect.task is not None:
            raise ConfigError(
                "give --task for all texts, or --query for a field with what each is for, not both"
            )
        config = replace(config, protect=replace(config.protect, importance="cosine"))
    options = RowOptions(
        fields=tuple(field or ()),
        id=id,
        ids="row" if id_from_row else "content" if id_from_content else "column",
        subject=subject,
        query=query,
        others="copy" if others == "copy" else "drop" if others == "drop" else "",
        whole=whole,
        placeholders="subject" if placeholders == "subject" else "document",
        session=session,
    )
    try:
        with progress.bars() as report:
            done = runs.run(
                inputs,
                output,
                config,
                options,
                executor=executor,
                jobs=jobs,
                cluster=cluster,
                part_rows=part_rows,
                resume=resume,
                key_file=key_file,
                keep_key=keep_key,
                store=store,
                report=report,
            )
    except (KeyboardInterrupt, SystemExit):
        shell.note("textveil: interrupted; finished parts are kept, go on with --resume")
        raise
    if telling.how != "quiet":
        shell.note(shell.wrap("\n".join(_about(done, telling))))


@verb("textveil corpus verify released/", on=corpus)
def verify(folder: Folder) -> None:
    """Check a release against its manifest: every part is there and as it was written, and no other file is."""
    from textveil.corpus import verify as check

    if found := check(folder):
        raise InputError("the release is not as its manifest says: " + "; ".join(found))
    shell.say("The release is as its manifest says.")


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
            help="Of an interrupted run, delete the parts and sessions that are there, too.",
        ),
    ] = False,
    store: Store = None,
) -> None:
    """Destroy the key of a release and what its run kept: nobody can repeat its draws then, and no run goes on."""
    from textveil.corpus import finish as end

    end(folder, key_file=key_file, give_up=give_up, store=store)


def _about(done: "Done", telling: Telling) -> "list[str]":
    """What is said of a release. The statement of one that was finished before is known from its manifest only."""
    found = done.document
    texts = sum(found["texts"].values())
    words = found["statement"]["words"].get("all", 0)
    fields = ", ".join(
        name if formats.is_plain(name) else json.dumps(name) for name in found["fields"]
    )
    parts = f"{len(found['parts']):,} part{'' if len(found['parts']) == 1 else 's'}"
    said = [
        f"{found['rows']:,} rows in {parts}, fields {fields}: {texts:,} texts, {words:,} words."
    ]
    if done.before:
        return [*said, "It was finished before; nothing was read or drawn now."]
    if done.guarantee is not None:
        said.append(telling.spell(done.guarantee))
    if done.statement is not None:
        said += [
            sentence
            for name, sentence in done.statement.lines().items()
            if name in ("document", "person", "copied", "equality", "placeholders", "mapping")
        ]
    return said
