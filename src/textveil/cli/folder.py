"""The verb `privatize-files`, and what `protect` does with files.

In: files of texts. Out: the same files in a folder, released, each with its statement beside it.
Not here: how a run is divided, kept and joined (`corpus`), and formats (`files`).
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli import progress, shell
from textveil.cli.options import BUDGETED, Typed
from textveil.cli.telling import Telling
from textveil.cli.texts import Field, check_public, is_folder
from textveil.cli.verbs import verb
from textveil.errors import ConfigError, InputError
from textveil.files import formats

if TYPE_CHECKING:
    from textveil.config import Config
    from textveil.corpus import Done

Jobs = Annotated[
    int, typer.Option("--jobs", metavar="N", help="How many processes draw; 0 for one per core.", show_default=True)
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted run; files that are finished are kept.")
]


@verb(
    "textveil privatize-files letters.jsonl notes.csv --field body --output released/",
    "textveil privatize-files letters.jsonl notes.csv --field body --output released/ --resume",
    "textveil privatize-files notes.csv --field body --mechanism noise --epsilon 60 --output noisy/ --jobs 2",
    "textveil privatize-files letters.jsonl --field body --risk 0.10 --public news.txt --output shared/",
    options=BUDGETED,
)
def privatize_files(
    typed: Typed,
    telling: Telling,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help=".txt (a text per line), .jsonl, .csv, .tsv or .parquet; all but the last also as .gz.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option("--output", metavar="FOLDER", help="Where the released files go, each under its own name."),
    ],
    field: Field = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="NAME",
            help="The field that says what each text is for: words close to it count as important. Not kept secret.",
        ),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Take each .txt file as one text.")] = False,
    jobs: Jobs = 1,
    resume: Resume = False,
) -> None:
    """Privatize files into a folder, each with its statement beside it.

    Only the field with the texts is privatized; all other fields are copied as they are. Without --profile, --mechanism
    or a --config that names one, the profile is `document`.
    """
    config = typed.config()
    check_public(config, files)
    if query is not None:
        if config.protect.task is not None:
            raise ConfigError("give --task for all texts, or --query for a field with what each is for, not both")
        config = replace(config, protect=replace(config.protect, importance="cosine"))
    into_folder(files, output, config, telling, field=field, query=query, whole=whole, jobs=jobs, resume=resume)


def into_folder(
    paths: list[str],
    folder: str,
    config: "Config",
    telling: Telling,
    *,
    field: str | None,
    query: str | None = None,
    whole: bool,
    jobs: int,
    resume: bool,
    prompts: bool = False,
) -> None:
    """Release files into a folder, and say of each what is guaranteed; of prompts what was hidden.

    Raises:
        ConfigError: the output cannot be a folder.
        InputError: a file is not there. Its name is not repeated: it may be a text.
    """
    for number, path in enumerate(paths, 1):
        if not os.path.isfile(path):
            what = "is a folder" if os.path.isdir(path) else "does not exist"
            raise InputError(
                f"--output is a folder, so every input must be a file, and number {number} of {len(paths)} {what}"
            )
    if folder == "-" or os.path.isfile(folder) or (not is_folder(folder) and formats.suffix(folder) is not None):
        raise ConfigError(
            f"--output must be a folder; put {os.sep} at the end of a new one's name if it looks like a file's"
        )
    from textveil.corpus import runs

    try:
        with progress.bars(unit=" rows") as report:
            finished = runs.privatize_files(
                paths, folder, config, field=field, query=query, whole=whole, jobs=jobs, resume=resume, report=report
            )
    except (KeyboardInterrupt, SystemExit):
        kept = "finished rows are kept; go on with --resume" if runs.begun(paths, folder) else "nothing was finished"
        shell.note(f"textveil: interrupted; {kept}")
        raise
    if telling.how != "quiet":
        for done in finished:
            shell.note(shell.wrap("\n".join(_about(done, telling, prompts))))


def _about(done: "Done", telling: Telling, prompts: bool) -> Iterator[str]:
    """What is said of one file. The statement of a file that was finished before is known from its own file only."""
    found, stated = done.document, done.document["guarantee"]
    counted = ", ".join(_count(found[f"{what}s"], what) for what in ("row", "text", "word"))
    name = found["field"]
    field = "" if name is None else f", field {name if formats.is_plain(name) else json.dumps(name)}"
    yield f"{found['file']}{field}: {counted}.{' It was finished before.' if done.before else ''}"
    listed = prompts and stated is not None and bool(stated["groups"] or not stated["protected"])
    if listed:  # without groups nothing is known of types, and the statement says what there is to say
        yield _hidden(stated["groups"])
    if telling.how != "summary" or not listed:
        if done.guarantee is not None:
            yield telling.spell(done.guarantee)
        elif stated is not None:
            yield telling.spell_json(stated)
    if name is not None:
        yield "The other fields are copied as they are and are not covered."


def _hidden(groups: Sequence[Mapping[str, Any]]) -> str:
    """What was hidden in a file of prompts; of names it is known how many words they have."""
    from textveil.guarantee import listing, things

    gone = [group for group in groups if group["by"] != "nothing"]
    said = [things(group["label"], group["words"]) for group in gone if group["by"] == "placeholder"]
    if drawn := sum(group["words"] for group in gone if group["by"] != "placeholder"):
        said.append(_count(drawn, "word") + " of names" * all(group["by"] in ("placeholder", "name") for group in gone))
    if not said:
        return "Nothing was found to hide, so the texts are unchanged; there may still be something private in them."
    return f"{listing(said)} replaced; the rest is unchanged, and nothing is claimed about it."


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
