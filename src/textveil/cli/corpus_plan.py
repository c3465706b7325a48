"""The verb `corpus plan`: what is in a table, and command lines that release it.

In: a file of rows. Out: a line for each column, without any of its values, and command lines; or
JSON.
Not here: what is proposed (`corpus.roles`), and the other verbs about corpora (`corpus`).
"""

import re
import shlex
from dataclasses import asdict
from typing import Annotated, Any

import typer

from textveil.cli import console, progress
from textveil.cli.decorators import verb
from textveil.corpus.columns import JUDGED_ROWS, profile_file
from textveil.corpus.roles import OUTPUT, Proposal, format_command, propose_roles
from textveil.corpus.row_progress import listen_to_rows
from textveil.errors import ConfigError, has_private_form, quote_file
from textveil.files import DEFAULT_FIELD
from textveil.files.text_streams import format_json_line
from textveil.guarantee import format_count
from textveil.render import clean_name

PROFILE = "document"
"""The profile that is proposed: people read the texts."""


@verb(
    "textveil corpus plan letters.jsonl",
    "textveil corpus plan notes.csv --json",
)
def plan(
    path: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A table: .csv, .tsv, .jsonl or .parquet, or a .txt with a text per line.",
            show_default=False,
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of lines.")
    ] = False,
) -> None:
    """Look at a table, and propose what to do with each column, and the command lines.

    The file is read on this machine. None of its values is printed. A proposal follows from names
    of columns and from the first rows: check it.
    """
    with progress.show_bars() as report:
        rows = 0

        def report_rows(more: int) -> None:
            nonlocal rows
            rows += more
            report("rows read", rows, 0)

        with listen_to_rows(report_rows):
            profile = profile_file(path, rows=None)
    if not profile.columns:
        raise ConfigError(f"{quote_file(path)} has no rows, so there is nothing to plan")
    if not profile.has_titles:
        raise ConfigError(
            f"the names of the columns of {quote_file(path)} look like a row: the first line of a "
            "table must name its columns, so add a line of names"
        )
    if len(profile.columns) == 1 and (mark := re.search("[;\t|]", profile.names[0])):
        raise ConfigError(
            f"{quote_file(path)} seems to part its columns by {mark[0]!r}: a .csv must have commas "
            "between them, a .tsv tabs; save it so, and plan again"
        )
    proposal = propose_roles(profile)
    commands = _list_commands(path, proposal)
    if as_json:
        columns = [
            asdict(item.column) | {"role": item.role, "reason": item.reason}
            for item in proposal.roles
        ]
        document = {"rows": profile.rows, "label": proposal.label, "columns": columns}
        console.say(format_json_line(document | {"commands": commands}).removesuffix("\n"))
        return
    console.say("\n".join(_format_lines(proposal, commands)))


def _list_commands(path: str, proposal: Proposal) -> dict[str, str]:
    """Returns the command lines that are proposed, by verb."""
    options = proposal.options
    commands = {"run": format_command([path], options, OUTPUT, ["--profile", PROFILE])}
    if proposal.label is not None:
        (text, *_) = options.get("fields", (DEFAULT_FIELD,))
        subject = []
        if "subject" in options:
            subject = ["--subject", options["subject"], "--per-subject", "1"]
        words = ["textveil", "corpus", "synthesize", path, "--field", text]
        words += ["--label", proposal.label, "--labels-file", "labels.txt", *subject]
        words += ["--about", "N", "--epsilon", "1"]  # N is never counted in the file
        commands["synthesize"] = shlex.join([*words, "--library", "LIBRARY", "-o", "synthetic/"])
    return commands


def _format_lines(proposal: Proposal, commands: dict[str, str]) -> list[str]:
    profile = proposal.profile
    rows: list[tuple[str, ...]] = [("column", "holds", "different", "longest", "proposal")]
    for item in proposal.roles:
        column: Any = item.column
        name = "(not shown)" if has_private_form(column.name) else clean_name(column.name)
        amounts = (f"{column.distinct:,}", f"{column.longest:,}")
        rows.append((name, column.kind, *amounts, f"{item.role}: {item.reason}"))
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    columns = format_count(len(profile.columns), "column")
    first = f"{format_count(profile.rows, 'row')}, {columns}"
    first += f"; judged by the first {JUDGED_ROWS:,} rows" * (profile.rows > JUDGED_ROWS)
    lines = [f"{first}. No value is shown.", ""]
    for name, kind, distinct, longest, role in rows:
        left = f"{name:{widths[0]}}  {kind:{widths[1]}}  {distinct:>{widths[2]}}"
        lines.append(f"{left}  {longest:>{widths[3]}}  {role}")
    lines += ["", "Other words in place of the private ones, row by row, with a statement:"]
    lines.append(f"  {commands['run']}")
    if "synthesize" in commands:
        guess = "a guess at the number of texts"
        if "--per-subject" in commands["synthesize"]:
            guess = (
                "a guess at the number of subjects: one text of each is counted (more with a "
                "greater --per-subject and --about, and more noise)"
            )
        lines += [
            "",
            "Or public texts with such labels, by one noisy count: LIBRARY is made by `textveil "
            f"library make`, labels.txt lists the labels, and N is {guess}:",
            f"  {clean_name(commands['synthesize'])}",
        ]
    return lines
