"""A finished release: its manifest, its verification, and its end.

In: a run whose parts are all done. Out: the manifest and the statement beside the parts; findings
about a release.
Not here: the drawing (`part_worker`), and what the statement says (`statement`).
"""

import fnmatch
import json
import math
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from textveil import __version__
from textveil.config import Config
from textveil.corpus.mapping import MappingStore, StoreAddress
from textveil.corpus.part_worker import (
    RUN_FILE,
    SOURCES_FILE,
    WORK_FOLDER,
    Part,
    require_ownership,
)
from textveil.corpus.plan import (
    KEY_FILE,
    MANIFEST_FILE,
    CorpusRun,
    lock_output,
    read_run_key,
    read_run_store,
)
from textveil.corpus.rows import RowOptions
from textveil.corpus.statement import CorpusStatement, sum_subjects
from textveil.corpus.text_statement import WholeTextStatement
from textveil.errors import ConfigError, InputError, quote_file
from textveil.files.storage import Storage
from textveil.guarantee import Guarantee, TextGuarantee, format_count, join_parts
from textveil.render import clean_name

VERSION = 2
"""The version of the manifest.

It changes when a field changes its meaning.
"""

READABLE_VERSIONS = (1, 2)
"""The manifest versions that can be read.

What is read of them has not changed.
"""

MAX_NAMED_FILES = 10
"""The most files that a statement names.

Of more, it names the first and the last.
"""

MARKDOWN_FILE, PAGE_FILE = "statement.md", "statement.html"
PART_FILE = re.compile(r"part-[0-9]{8,}\..+|sources-[0-9]{8,}\.jsonl")


@dataclass(frozen=True, kw_only=True)
class FinishedRelease:
    """A finished release.

    Attributes:
        manifest: its manifest.
        statement: what it guarantees; None where an earlier run finished it.
        is_earlier: whether an earlier run finished it.
    """

    manifest: Mapping[str, Any]
    statement: CorpusStatement | WholeTextStatement | None = None
    is_earlier: bool = False

    @property
    def guarantee(self) -> Guarantee | TextGuarantee | None:
        """The statement about all words, or all whole texts."""
        if isinstance(self.statement, WholeTextStatement):
            return self.statement.stated
        return None if self.statement is None else self.statement.guarantee


def publish(
    corpus_run: CorpusRun,
    parts: Sequence[Part],
    config: Config,
    options: RowOptions,
    *,
    source: Mapping[str, Any],
    texts: Sequence[str],
    copied: Mapping[str, str],
    inputs: int,
) -> FinishedRelease:
    """Writes the statement and the manifest of a complete run.

    All of its parts must be done.

    Args:
        corpus_run: the run.
        parts: all of them, in order.
        config: resolved options.
        options: which fields are what.
        source: the digest of the table, or what is said of the library.
        texts: the fields with texts.
        copied: the fields that are copied, with the reason why somebody may be found by one.
        inputs: how many files there were.

    Raises:
        InputError: the record of a part is damaged or of another run.
    """
    processors = set[str]()
    part_entries, rows, text_counts = list[dict[str, Any]](), 0, dict.fromkeys(texts, 0)

    def yield_records() -> Iterator[dict[str, Any]]:
        nonlocal rows
        for part in parts:
            record = corpus_run.read_record(part)
            entry = {name: record[name] for name in ("name", "rows", "bytes", "sha256")}
            if record.get("sources_sha256") is not None:
                entry["sources"] = SOURCES_FILE.format(part.number)
                entry["sources_sha256"] = record["sources_sha256"]
            part_entries.append(entry)
            rows += record["rows"]
            processors.add(record["processor"])
            for name, many in record["texts"].items():
                text_counts[name] += many
            yield record

    statement = _build_statement(yield_records(), config, options, copied)
    if options.subject is not None:
        statement.subjects = sum_subjects(corpus_run.read_subjects(part) for part in parts)
    date = datetime.now(UTC).date().isoformat()
    sheet = statement.build_sheet(
        [
            ("date", date),
            ("version", f"textveil {__version__}"),
            ("files", _list_files(part_entries)),
            ("rows", f"{format_count(rows, 'row')} of {format_count(inputs, 'input file')}"),
            (
                "texts",
                "; ".join(
                    f"{clean_name(name)}: {format_count(many, 'text')}"
                    for name, many in text_counts.items()
                )
                or "none",
            ),
        ]
    )
    contents = {MARKDOWN_FILE: sheet.render_markdown(), PAGE_FILE: sheet.render_html()}
    for name, content in contents.items():
        corpus_run.output.write(name, content.encode(), subfolder=WORK_FOLDER)
    document = {
        "version": VERSION,
        "textveil": __version__,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "onnxruntime")},
        },
        "processors": sorted(processors),
        "release": corpus_run.name,
        "date": date,
        "configuration": dump_configuration(config),
        **source,
        "fields": list(texts),
        **describe_options(options),
        "copied_fields": list(statement.others),
        "inputs": inputs,
        "rows": rows,
        "texts": text_counts,
        "statement": sheet.to_json() | statement.to_json(),
        "statement_sha256": {
            name: sha256(content.encode()).hexdigest() for name, content in contents.items()
        },
        "parts": part_entries,
    }
    document["sha256"] = compute_digest(document)
    manifest = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    # The last check: with the manifest, the release counts as finished.
    require_ownership(corpus_run.output, corpus_run.name)
    corpus_run.output.write(MANIFEST_FILE, manifest.encode() + b"\n", subfolder=WORK_FOLDER)
    return FinishedRelease(manifest=document, statement=statement)


def _build_statement(
    records: Iterator[dict[str, Any]],
    config: Config,
    options: RowOptions,
    copied: Mapping[str, str],
) -> CorpusStatement | WholeTextStatement:
    """Adds the records up to the statement about words, or about whole texts."""
    others = tuple(copied)
    losses: dict[str, Any] = {
        "subject": options.subject,
        "others": others,
        "identifiers": {name: why for name, why in copied.items() if why},
        "id": options.id,
        "drops_others": options.drops_others,
        "equal": options.ids == "content",
    }
    if config.texts.unit != "word":
        labels = tuple(name for name in others if name != options.id)
        return WholeTextStatement.build(records, labels=labels, **losses)
    return CorpusStatement.build(
        records,
        alike=options.placeholders == "subject",
        kept=options.session is not None,
        **losses,
    )


def read_manifest(
    output: Storage, *, versions: Sequence[int] = READABLE_VERSIONS, kind: str | None = None
) -> dict[str, Any]:
    """Reads the manifest of a release.

    Args:
        output: the folder.
        versions: those that can be read.
        kind: the kind that it says it is of; None for a release of texts, which names none.

    Raises:
        InputError: there is none, or it is damaged, of another kind or version.
    """
    place = f"the {MANIFEST_FILE} in {quote_file(output.uri)}"
    if not output.has_file(MANIFEST_FILE):
        raise InputError(
            f"{quote_file(output.uri)} has no {MANIFEST_FILE}, so there is no finished release in "
            "it"
        )
    document = dict[str, Any]()
    with suppress(ValueError, KeyError, TypeError):
        manifest = dict(json.loads(output.read(MANIFEST_FILE)))
        document = manifest if manifest["sha256"] == compute_digest(manifest) else {}
    if not document or document.get("kind") != kind:
        raise InputError(f"{place} is damaged, was changed, or is of another kind of release")
    if (manifest_version := document.get("version")) not in versions:
        raise InputError(
            f"{place} has version {manifest_version}, and this textveil reads "
            f"{join_parts([*map(str, versions)])}"
        )
    return document


def _list_files(parts: Sequence[Mapping[str, Any]]) -> str:
    """Lists the files of a release by their names.

    No input is named, because a name may say whom a text is about.
    """
    names = [f"{part['name']} ({format_count(part['rows'], 'row')})" for part in parts]
    if len(names) > MAX_NAMED_FILES:
        return f"{len(names):,} files, {names[0]} to {names[-1]}; {MANIFEST_FILE} lists all of them"
    return ", ".join(names) or "none"


def verify(output: str | Path) -> list[str]:
    """Compares a release with its manifest, and lists the differences.

    A line for each file; empty where all of it agrees.

    It shows changes by accident. Whoever can change a part can change the manifest too; keep a copy
    of it, or sign it.

    Args:
        output: the folder of the release, or its URI.

    Raises:
        InputError: there is no manifest, or it was changed.
    """
    storage = Storage(str(output))
    document = read_manifest(storage)
    present = {*storage.list_tree()} - {MANIFEST_FILE}
    work_files = {*fnmatch.filter(present, f"{WORK_FOLDER}/*")}
    parts = document["parts"]
    expected = {
        **{part["name"]: part["sha256"] for part in parts},
        **{part["sources"]: part["sources_sha256"] for part in parts if "sources" in part},
        **document["statement_sha256"],
    }
    differences = [f"{name} is missing" for name in expected if name not in present]
    differences += [
        f"{name} was changed"
        for name, digest in expected.items()
        if name in present and storage.hash_file(name) != digest
    ]
    differences += [
        f"{name} does not belong to the release"
        for name in sorted(present - work_files - expected.keys())
    ]
    if work_files:
        differences.append(
            "the key of the release and the work files of its run are still there; delete them "
            "with `textveil corpus finish FOLDER`"
        )
    return differences


def finish(
    output: str | Path,
    *,
    key_file: str | None = None,
    give_up: bool = False,
    store: str | None = None,
) -> None:
    """Ends a run: destroys its key and its working files.

    Without the key, nobody can repeat its draws.

    Args:
        output: the folder of the release, or its URI.
        key_file: where the key is, if not in that folder.
        give_up: of a run that was interrupted, delete the parts that are there, too, and the
            sessions in which it kept what placeholders stand for; no other file.
        store: the URL of the store with these sessions.

    Raises:
        ConfigError: the run was interrupted and could go on, or another process is at work on it,
            or it kept sessions in another store.
        StoreError: the store cannot be opened or written.
    """
    storage = Storage(str(output))
    with lock_output(storage):
        folder = storage.get_folder(WORK_FOLDER)
        is_finished = storage.has_file(MANIFEST_FILE)
        has_run = RUN_FILE in folder.list_files()
        if not is_finished:
            _require_abandoned(storage, has_run, give_up)
        key = _find_key(storage, key_file)
        if has_run and not is_finished:
            # First, because it refuses a wrong store: then nothing has been destroyed yet.
            _forget_sessions(folder, store)
        if has_run and key is not None:
            read_run_key(folder, key).destroy()
        parts = [] if is_finished else storage.list_files()
        for name in parts:
            if name in (MARKDOWN_FILE, PAGE_FILE) or PART_FILE.fullmatch(name):
                storage.delete(name)
        # Last, because the run's file in it is what allows another try after a failure.
        folder.remove()


def _find_key(storage: Storage, key_file: str | None) -> Path | None:
    """Returns the path of a run's key, if known."""
    if key_file is not None:
        return Path(key_file)
    return storage.local and storage.local / WORK_FOLDER / KEY_FILE


def _require_abandoned(storage: Storage, has_run: bool, give_up: bool) -> None:
    if not has_run:
        raise ConfigError(f"{quote_file(storage.uri)} has no release and no interrupted run")
    if not give_up:
        raise ConfigError(
            "the run was interrupted, and this would destroy the key that it needs to continue: "
            "continue it with `textveil corpus run --resume`, or delete its files with --give-up"
        )


def _forget_sessions(folder: Storage, store: str | None) -> None:
    """Destroys the sessions of a run that is given up.

    Args:
        folder: its work folder.
        store: the URL of the store with the sessions.
    """
    run, session, identity = read_run_store(folder)
    if session is None:
        return
    mapping = (
        None if store is None else MappingStore(address=StoreAddress.build(store), session=session)
    )
    if mapping is None or mapping.compute_identity() != identity:
        raise ConfigError(
            "the run kept the originals of placeholders in a store: name the store with --store, "
            "so that they are destroyed, too"
        )
    mapping.forget(run)


def end_run(output: Storage, key: Path) -> None:
    """Destroys the key and working files of this process's run.

    Raises:
        ConfigError: the file is not the key of the run.
    """
    folder = output.get_folder(WORK_FOLDER)
    if RUN_FILE in folder.list_files():
        read_run_key(folder, key).destroy()
    folder.remove()


def describe_options(options: RowOptions) -> dict[str, Any]:
    """Returns the field options, as a manifest states them."""
    return {
        "id": options.id if options.ids == "column" else f"from {options.ids}",
        "subject": options.subject,
        "query": options.query,
        "whole": options.whole,
        "dropped_fields": options.drops_others,
        "placeholders": options.placeholders,
        "session": options.session,
    }


def dump_configuration(config: Config) -> dict[str, Any]:
    """Returns the options without the seed."""
    document: dict[str, Any] = _replace_infinite(config.dump_public())
    if config.seed is not None:
        document["seed"] = "not shown"
    return document


def _replace_infinite(value: Any) -> Any:
    """Replaces infinite numbers, which JSON does not have.

    In plain data.
    """
    if isinstance(value, dict):
        return {name: _replace_infinite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_infinite(item) for item in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def compute_digest(document: Mapping[str, Any]) -> str:
    """Computes the SHA-256 of a manifest without that field."""
    fields = {name: value for name, value in document.items() if name != "sha256"}
    return sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
