"""Roles of columns: proposals for a file, and one refusal of all that is missing.

In: what the columns of a file hold, and the options of a run. Out: a role for each column, command
lines that work; an error that names everything at once.
Not here: what a column holds (`columns`), and what the roles mean (`rows`).
"""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from textveil.corpus.columns import Column, FileProfile, profile_file
from textveil.corpus.rows import RowOptions
from textveil.errors import (
    ConfigError,
    TextveilError,
    find_nearest,
    has_private_form,
    list_names,
    quote,
    quote_file,
)
from textveil.files import DEFAULT_FIELD, formats
from textveil.guarantee import format_count
from textveil.text import vocabulary

MAX_KEPT_VALUES = 50
"""The most distinct values of a column that may go along."""

CHECKED_ROWS = 200
"""The first rows of a file in which the names of fields are looked up."""

MAX_LABELS = 20
"""The most distinct values of a column of labels."""

_SUBJECT_TYPES = ("ID", "HANDLE", "EMAIL", "PERSON", "MEDICAL_RECORD", "NATIONAL_ID", "ACCOUNT")
"""Types of values that say whom a row is about."""

OUTPUT = "released/"
"""The folder of the release in command lines that are proposed."""

_NO_ID = (
    "an id for each row, so that a part that is drawn again is the same release (give --id NAME, "
    "the column with an id for each row, or --id-from-row, or --id-from-content)"
)
_NO_TEXT = "the column of the texts (--field NAME)"
_NO_OUTPUT = "a folder for the release (--output FOLDER)"

ROLES = ("text", "id", "subject", "keep", "drop")
"""What a column can be."""


@dataclass(frozen=True, kw_only=True)
class ColumnRole:
    """A column and what is proposed for it.

    Attributes:
        column: what it holds.
        role: one of `ROLES`.
        reason: why.
    """

    column: Column
    role: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The proposals for the columns of a file.

    Attributes:
        profile: what they hold.
        roles: a role for each, in the order of the file.
        label: the column whose values would be labels; None without one.
    """

    profile: FileProfile
    roles: tuple[ColumnRole, ...]
    label: str | None = None

    def find_names(self, role: str) -> list[str]:
        """Returns the columns of a role."""
        return [item.column.name for item in self.roles if item.role == role]

    @property
    def options(self) -> dict[str, Any]:
        """The proposal as fields of `RowOptions`, of those that say something."""
        names = {role: self.find_names(role) for role in ROLES}
        result: dict[str, Any] = {"ids": "column" if names["id"] else "row"}
        result |= {role: names[role][0] for role in ("id", "subject") if names[role]}
        if names["text"] != [DEFAULT_FIELD]:
            result["fields"] = tuple(names["text"])
        if names["keep"]:
            result["keep"] = tuple(names["keep"])
        elif names["drop"] or names["subject"]:
            result["others"] = "drop"
        return {name: value for name, value in result.items() if value}


def propose_roles(profile: FileProfile) -> Proposal:
    """Proposes a role for each column, by what it holds and how it is named.

    Kept are only columns with few values that are no identifiers; nobody is found by one alone.
    """
    columns = profile.columns
    texts = _choose_texts(columns)
    row_id = next((c for c in columns if c not in texts and _may_be_id(c, columns)), None)
    rest = [c for c in columns if c not in texts and c is not row_id]
    subject = _choose_subject(rest)
    label = next((c for c in rest if c is not subject and _may_be_label(c)), None)
    roles = []
    for column in columns:
        if column in texts:
            role, reason = "text", f"{column.mean_words:g} words on average"
        elif column is row_id:
            role, reason = "id", "each row has another value"
        elif column is subject:
            role, reason = "subject", "the person a row is about; read, not released"
        elif reason := column.warning:
            role = "drop"
        elif not column.filled:
            role, reason = "drop", "holds nothing"
        elif _has_few_values(column):
            role, reason = "keep", format_count(column.distinct, "different value")
            reason += ", which may be labels" * (column is label)
        else:
            role, reason = "drop", "many different values"
        roles.append(ColumnRole(column=column, role=role, reason=reason))
    return Proposal(
        profile=profile, roles=tuple(roles), label=None if label is None else label.name
    )


def _choose_texts(columns: Sequence[Column]) -> list[Column]:
    texts = [c for c in columns if c.kind == "texts" and not c.type]
    words = [c for c in columns if c.kind == "words" and not c.type]
    return (
        texts
        or [c for c in words if _is_called(c, "text")]
        or sorted(words, key=lambda c: c.longest)[-1:]
    )


def _may_be_id(column: Column, columns: Sequence[Column]) -> bool:
    """Says whether a column tells rows apart, and says nothing else."""
    is_plain = column.kind in ("whole numbers", "words") and not column.type
    is_placed = _is_called(column, "id") or (
        column is columns[0] and column.kind == "whole numbers"
    )
    return is_plain and column.is_unique and is_placed and not column.is_person


def _choose_subject(columns: Sequence[Column]) -> Column | None:
    """Returns the column that says whom a row is about: by its name, or because its values recur."""
    persons = [
        c for c in columns if c.is_full and c.filled and (c.is_person or c.type in _SUBJECT_TYPES)
    ]

    def rank(column: Column) -> tuple[bool, bool, bool]:
        is_shared = column.type == "PERSON" and not column.is_named  # several persons have a name
        return column.distinct == column.filled, is_shared, not column.is_person

    return min(persons, key=rank, default=None)


def _may_be_label(column: Column) -> bool:
    return (
        _is_called(column, "label")
        and not column.type
        and column.is_full
        and 2 <= column.distinct <= MAX_LABELS
    )


def _has_few_values(column: Column) -> bool:
    few = column.distinct <= MAX_KEPT_VALUES
    return few and (column.filled < 20 or column.distinct <= column.filled / 2)


def _is_called(column: Column, role: str) -> bool:
    """Says whether the last word of a column's name is one for a role, in some language."""
    last = column.name.lower().replace("-", "_").replace(" ", "_").rpartition("_")[2]
    return last in vocabulary.get_words(f"columns.{role}")


# ---- command lines -------------------------------------------------------------------------------


def format_command(
    inputs: Sequence[str], options: dict[str, Any], output: str, more: Sequence[str] = ()
) -> str:
    """Formats the command line of a run.

    Args:
        inputs: the files.
        options: fields of `RowOptions`.
        output: the folder.
        more: further arguments.
    """
    words = ["textveil", "corpus", "run", *inputs]
    flags = {"row": ["--id-from-row"], "content": ["--id-from-content"]}
    words += flags.get(options.get("ids", "column"), [])
    for name, flag in (
        ("id", "--id"),
        ("fields", "--field"),
        ("subject", "--subject"),
        ("query", "--query"),
        ("keep", "--keep"),
        ("keep_anyway", "--keep-anyway"),
        ("others", "--others"),
        ("placeholders", "--placeholders"),
        ("session", "--session"),
    ):
        value = options.get(name)
        if value and value != "document":
            for item in (value,) if isinstance(value, str) else value:
                words += [flag, item]
    words += ["--store", "URL"] * bool(options.get("session"))
    words += ["--whole"] * bool(options.get("whole"))
    return shlex.join([*words, *more, "--output", output])


# ---- refusals ------------------------------------------------------------------------------------


def require_roles(
    inputs: Sequence[str],
    path: str,
    options: RowOptions,
    output: str | None,
    more: Sequence[str] = (),
) -> None:
    """Refuses a run that lacks something, or names columns that are not there: all of it at once.

    It looks at one file. The survey reads all of them, and finds what only later rows show.

    Args:
        inputs: the files and folders, as they were named.
        path: the first file.
        options: which fields of a row are what; the id may be missing.
        output: the folder; None where none was named.
        more: further arguments of the command line that is proposed.

    Raises:
        ConfigError: it ends with a command line that works, where the columns have names; or two
            options name one column.
    """
    profile, texts = _read_profile(path, options)
    options.require_other_fields(texts)
    wrong = {} if profile is None else _find_wrong_names(profile, options, path)
    if not (wrong or output is None or _list_missing(profile, texts, options)):
        return
    proposal = None if profile is None else propose_roles(profile_file(path))
    missing = [*_list_missing(profile, texts, options, proposal)]
    missing += [_NO_OUTPUT] * (output is None)
    name = quote_file(path.rpartition("/")[2])[1:-1]
    sentence = f"{name} has {'; '.join(wrong.values())}"
    sentences = [sentence if sentence.endswith("?") else f"{sentence}."] * bool(wrong)
    sentences += [f"Missing for {name}: {'; '.join(missing)}."] * bool(missing)
    command = None
    if profile is not None and proposal is not None and profile.has_titles:
        sentences.append(f"Columns: {list_names(profile.names)}.")
        if not any(map(has_private_form, profile.names)):
            chosen = _complete_options(proposal, texts, options, [*wrong])
            command = format_command(inputs, chosen, output or OUTPUT, more)
    elif not formats.has_rows(path):
        command = format_command(inputs, {"ids": "row"}, output or OUTPUT, more)
    sentences += [f"For example: {command}"] * bool(command)
    raise ConfigError(" ".join(sentences).removesuffix("."))


def _read_profile(path: str, options: RowOptions) -> tuple[FileProfile | None, tuple[str, ...]]:
    """Reads the names of a file's fields, and those of its texts where they are clear.

    None where it has no fields or no rows, or cannot be read: the survey says why.
    """
    try:
        profile = profile_file(path, rows=CHECKED_ROWS, judged=())
    except TextveilError:
        return None, ()
    if not formats.has_rows(path) or not profile.columns:
        return None, ()
    try:
        return profile, options.fields or formats.find_source(path).columns.texts
    except TextveilError:
        return profile, ()


def _find_wrong_names(profile: FileProfile, options: RowOptions, path: str) -> dict[str, str]:
    """Returns what is wrong with each name that no column has."""
    # rows of JSON lines may lack a kept field
    has_columns = (formats.parse_suffix(path) or ("",))[0] != "jsonl"
    copies = options.keep if profile.is_whole or has_columns else ()
    result = {}
    for name in (*options.fields, *options.labels, *copies):
        if name not in profile.names:
            near = find_nearest(name, profile.names) if profile.has_titles else None
            hint = f", did you mean {near!r}?" if near else ""
            result[name] = f"no column {quote(name)} ({options.find_option(name)}){hint}"
    return result


def _list_missing(
    profile: FileProfile | None,
    texts: Sequence[str],
    options: RowOptions,
    proposal: Proposal | None = None,
) -> list[str]:
    """Returns what a run lacks, each with the options that give it.

    Columns that are proposed for something that is missing do not count as others.
    """
    missing = [_NO_ID] * (options.ids == "column" and options.id is None)
    if profile is None:
        return missing
    named = {*texts, *options.labels, *options.keep}
    named |= {find_nearest(name, profile.names) or "" for name in named - {*profile.names}}
    for role in ("id",) * bool(missing) + ("text",) * (not texts):
        named.update(proposal.find_names(role) if proposal else ())
    others = [name for name in profile.names if name not in named]
    missing += [_NO_TEXT] * (not texts)
    if others and not (options.others or options.keep):
        missing.append(describe_others(others if profile.has_titles else (), len(others)))
    return missing


def describe_others(names: Sequence[str], count: int) -> str:
    """Says that nothing tells what becomes of fields, and which options do."""
    return (
        f"what becomes of {count} field{'' if count == 1 else 's'} that no option names "
        f"({list_names(names)}): --keep NAME copies single ones and --others copy all of them, "
        "which no statement covers, --others drop leaves them out"
    )


def _complete_options(
    proposal: Proposal, texts: Sequence[str], options: RowOptions, wrong: Sequence[str]
) -> dict[str, Any]:
    """Returns options that work: those that were given where they fit, and proposals for the rest."""
    names, proposed = proposal.profile.names, proposal.options
    used = set[str]()

    def take(*candidates: str | None) -> tuple[str, ...]:
        """Takes columns that are there and free; the nearest name for a wrong one."""
        near = (find_nearest(n, names) if n in wrong else n for n in candidates if n)
        taken = tuple(dict.fromkeys(n for n in near if n in names and n not in used))
        used.update(taken)
        return taken

    chosen = {name: value for name, value in asdict(options).items() if value}
    fields = take(*(options.fields or texts)) or take(*proposal.find_names("text"))
    chosen["fields"] = () if not options.fields and fields == tuple(texts) else fields
    for role in ("query", "subject"):
        chosen[role] = next(iter(take(chosen.get(role)) or take(proposed.get(role))), None)
    if options.ids == "column":
        chosen["id"] = next(iter(take(options.id) or take(proposed.get("id"))), None)
        chosen["ids"] = "column" if chosen["id"] else "row"
    labels = {chosen[role] for role in ("query", "subject")}
    used -= labels  # these may be copied, too
    if options.keep or not options.others:
        chosen["keep"] = take(*options.keep)
        free = [n for n in proposal.find_names("keep") if n not in labels]
        chosen["keep"] = chosen["keep"] or take(*free)
        others = [name for name in names if name not in used]
        chosen["others"] = "drop" if others and not chosen["keep"] else ""
        chosen["keep_anyway"] = [n for n in chosen["keep"] if n in options.keep_anyway]
        chosen["keep"] = [n for n in chosen["keep"] if n not in options.keep_anyway]
    return chosen
