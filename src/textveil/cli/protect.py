"""The verb `protect`.

In: a prompt. Out: the prompt with what is private in it hidden; what was hidden, by type and number.
Not here: what is found (`textveil.protect`), and how answers are restored (`restore`).
"""

from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import folder, stored, texts
from textveil.cli.verbs import verb
from textveil.errors import ConfigError

if TYPE_CHECKING:
    from textveil.cli.telling import Telling
    from textveil.config import Config


@verb(
    'textveil protect "Ask Maria Silva (maria@example.org) about the lease"',
    'textveil protect "Ask Maria Silva (maria@example.org) about the lease" --session lease.session',
    "textveil protect letter.txt --whole --session lease.session",
    "textveil protect letter.txt --whole --session anna/lease --store sqlite:///veil.db",
    "textveil protect letter.txt --whole --diff",
    'textveil protect "Who was Marie Curie?" --level names',
    "textveil protect letters.jsonl notes.csv --field body --output protected/",
    default="prompt",
)
def protect(
    config: "Config",
    telling: "Telling",
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT|-|FILE",
            help="A prompt, a file with one per line, or - for standard input; with a folder as --output, files.",
            show_default=False,
        ),
    ] = None,
    session: texts.SessionFile = None,
    store: stored.Store = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="PATH",
            help="Write there. A folder, or a new name that ends in /, takes whole files: .txt, .jsonl, .csv, .tsv, "
            ".parquet.",
        ),
    ] = None,
    whole: texts.Whole = False,
    as_json: texts.AsJson = False,
    with_original: texts.WithOriginal = False,
    diff: texts.Diff = False,
    field: texts.Field = None,
    jobs: folder.Jobs = 1,
    resume: folder.Resume = False,
) -> None:
    """Hide what is private in a prompt; the rest stays as it is.

    E-mail addresses, telephone numbers, keys and the like become placeholders, and so do names of private persons, of
    where they live and of whom they work for. All other words stay, and nothing is promised for them. The result is
    printed; nothing is sent anywhere. With --session `textveil restore` puts the originals back into the answer.
    Without --profile, --mechanism or a --config that names one, the profile is `prompt`.
    """
    given = text or []
    if output is not None and texts.is_folder(output):
        if session is not None or as_json or with_original or diff:
            raise ConfigError(
                "--session, --json, --diff and --with-original are for prompts, not for files into a folder"
            )
        folder.into_folder(
            given, output, config, telling, field=field, whole=whole, jobs=jobs, resume=resume, prompts=True
        )
        return
    if len(given) > 1:
        raise ConfigError(
            "put a prompt of several words in quotes; several files go into a folder, with --output FOLDER/"
        )
    if field is not None or resume or jobs != 1:
        raise ConfigError("--field, --jobs and --resume are for files that go into a folder, with --output FOLDER/")
    only = given[0] if given else None
    texts.check(only, output, session, store=store, files="with --output FOLDER/")
    results = texts.release(
        config,
        only,
        output=output,
        session=session,
        store=store,
        whole=whole,
        as_json=as_json,
        with_original=with_original,
        diff=diff,
    )
    found = [(each.released, each.guarantee, each.sent_earlier, each.unmeasured) for each in results]
    telling.say_hidden(
        [released for released, *_ in found],
        [guarantee for _, guarantee, *_ in found],
        earlier=sum(earlier for *_, earlier, _ in found),
        unmeasured={name for *_, names in found for name in names},
        as_json=as_json,
    )
