"""A finished release: its manifest, its verification, and its end.

In: a run whose parts are all done. Out: the manifest and the statement beside the parts; findings
about a release.
Not here: the drawing (`drawing`), and what the statement says (`statement`).
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
from textveil.corpus.drawing import RUN, WORK, Part, require_own
from textveil.corpus.mapping import MappingStore, StoreAddress
from textveil.corpus.plan import KEY, MANIFEST, BegunRun, begun_with, claimed, kept_by
from textveil.corpus.rows import RowOptions
from textveil.corpus.statement import CorpusStatement, of_subjects
from textveil.errors import ConfigError, InputError, quote_file
from textveil.files.storage import Storage
from textveil.guarantee import Guarantee, count, listing
from textveil.show import plain

VERSION = 2
"""The version of the manifest.

It changes when a field changes its meaning.
"""

READABLE = (1, 2)
"""The manifest versions that can be read.

What is read of them has not changed.
"""

NAMED = 10
"""The most files that a statement names.

Of more, it names the first and the last.
"""

MARKDOWN, PAGE = "statement.md", "statement.html"
PART = re.compile(r"part-[0-9]{8,}\..+")


@dataclass(frozen=True, kw_only=True)
class Done:
    """A finished release.

    Attributes:
        document: its manifest.
        statement: what it guarantees; None where an earlier run finished it.
        before: whether an earlier run finished it.
    """

    document: Mapping[str, Any]
    statement: CorpusStatement | None = None
    before: bool = False

    @property
    def guarantee(self) -> Guarantee | None:
        """The statement about all words."""
        return None if self.statement is None else self.statement.guarantee


def publish(
    begun: BegunRun,
    parts: Sequence[Part],
    config: Config,
    options: RowOptions,
    *,
    table: str,
    texts: Sequence[str],
    others: Sequence[str],
    inputs: int,
) -> Done:
    """Writes the statement and the manifest of a complete run.

    All of its parts must be done.

    Args:
        begun: the run.
        parts: all of them, in order.
        config: resolved options.
        options: which fields are what.
        table: digest of the table.
        texts: the fields with texts.
        others: the fields that nothing names.
        inputs: how many files there were.

    Raises:
        InputError: the record of a part is damaged or of another run.
    """
    processors = set[str]()
    listed, rows, counted = list[dict[str, Any]](), 0, dict.fromkeys(texts, 0)

    def records() -> Iterator[dict[str, Any]]:
        nonlocal rows
        for part in parts:
            found = begun.record(part)
            listed.append({name: found[name] for name in ("name", "rows", "bytes", "sha256")})
            rows += found["rows"]
            processors.add(found["processor"])
            for name, many in found["texts"].items():
                counted[name] += many
            yield found

    copied = tuple(others) if options.others == "copy" else ()
    statement = CorpusStatement.of(
        records(),
        subject=options.subject,
        others=(*options.copied_labels, *copied),
        equal=options.ids == "content",
        alike=options.placeholders == "subject",
        kept=options.session is not None,
    )
    if options.subject is not None:
        statement.subjects = of_subjects(begun.subjects(part) for part in parts)
    date = datetime.now(UTC).date().isoformat()
    sheet = statement.sheet(
        [
            ("date", date),
            ("version", f"textveil {__version__}"),
            ("files", _list_files(listed)),
            ("rows", f"{count(rows, 'row')} of {count(inputs, 'input file')}"),
            (
                "texts",
                "; ".join(f"{plain(name)}: {count(many, 'text')}" for name, many in counted.items())
                or "none",
            ),
        ]
    )
    written = {MARKDOWN: sheet.markdown(), PAGE: sheet.html()}
    for name, content in written.items():
        begun.output.write(name, content.encode(), within=WORK)
    document = {
        "version": VERSION,
        "textveil": __version__,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "onnxruntime")},
        },
        "processors": sorted(processors),
        "release": begun.name,
        "date": date,
        "configuration": configuration(config),
        "table_sha256": table,
        "fields": list(texts),
        **asked(options),
        "copied_fields": list(statement.others),
        "inputs": inputs,
        "rows": rows,
        "texts": counted,
        "statement": sheet.to_json() | statement.to_json(),
        "statement_sha256": {
            name: sha256(content.encode()).hexdigest() for name, content in written.items()
        },
        "parts": listed,
    }
    document["sha256"] = _digest(document)
    manifest = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    require_own(begun.output, begun.name)
    begun.output.write(MANIFEST, manifest.encode() + b"\n", within=WORK)
    return Done(document=document, statement=statement)


def read(output: Storage) -> dict[str, Any]:
    """Reads the manifest of a release.

    Raises:
        InputError: there is none, or it is damaged.
    """
    if not output.exists(MANIFEST):
        raise InputError(
            f"{quote_file(output.uri)} has no {MANIFEST}, so there is no finished release in it"
        )
    document = dict[str, Any]()
    with suppress(ValueError, KeyError, TypeError):
        found = dict(json.loads(output.read(MANIFEST)))
        document = found if found["sha256"] == _digest(found) else {}
    if not document:
        raise InputError(f"the {MANIFEST} in {quote_file(output.uri)} is damaged or was changed")
    if (made := document.get("version")) not in READABLE:
        raise InputError(
            f"the {MANIFEST} in {quote_file(output.uri)} has version {made}, and this textveil reads "
            f"{listing([*map(str, READABLE)])}"
        )
    return document


def _list_files(parts: Sequence[Mapping[str, Any]]) -> str:
    """Lists the files of a release by their names.

    No input is named, because a name may say whom a text is about.
    """
    names = [f"{each['name']} ({count(each['rows'], 'row')})" for each in parts]
    if len(names) > NAMED:
        return f"{len(names):,} files, {names[0]} to {names[-1]}; {MANIFEST} lists all of them"
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
    document = read(storage)
    there = {*storage.everything()} - {MANIFEST}
    kept = {*fnmatch.filter(there, f"{WORK}/*")}
    wanted = {part["name"]: part["sha256"] for part in document["parts"]} | document[
        "statement_sha256"
    ]
    found = [f"{name} is missing" for name in wanted if name not in there]
    found += [
        f"{name} was changed"
        for name, digest in wanted.items()
        if name in there and storage.digest(name) != digest
    ]
    found += [f"{name} is not of the release" for name in sorted(there - kept - wanted.keys())]
    if kept:
        found.append(
            "the key of the release and what its run kept are still there; end it with `textveil corpus finish`"
        )
    return found


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
    with claimed(storage):
        folder = storage.inside(WORK)
        whole = storage.exists(MANIFEST)
        begun = RUN in folder.names()
        if not whole:
            _require_given_up(storage, begun, give_up)
        key = _find_key(storage, key_file)
        if begun and not whole:
            _forget(folder, store)
        if begun and key is not None:
            begun_with(folder, key).destroy()
        parts = [] if whole else storage.names()
        for name in parts:
            if name in (MARKDOWN, PAGE) or PART.fullmatch(name):
                storage.delete(name)
        folder.remove()


def _find_key(storage: Storage, key_file: str | None) -> Path | None:
    """Returns the path of a run's key, if known."""
    if key_file is not None:
        return Path(key_file)
    return storage.local and storage.local / WORK / KEY


def _require_given_up(storage: Storage, begun: bool, give_up: bool) -> None:
    if not begun:
        raise ConfigError(
            f"{quote_file(storage.uri)} has no release, and no run that was interrupted"
        )
    if not give_up:
        raise ConfigError(
            "the run was interrupted, and without its key it cannot go on: go on with `textveil corpus run "
            "--resume`, or delete what there is with --give-up"
        )


def _forget(folder: Storage, store: str | None) -> None:
    """Destroys the sessions of a run that is given up.

    Args:
        folder: its work folder.
        store: the URL of the store with the sessions.
    """
    run, session, where = kept_by(folder)
    if session is None:
        return
    kept = None if store is None else MappingStore(address=StoreAddress.of(store), session=session)
    if kept is None or kept.identity() != where:
        raise ConfigError(
            "the run kept what placeholders stand for in a store: name it with --store, so that this is destroyed, too"
        )
    kept.forget(run)


def end(output: Storage, key: Path) -> None:
    """Destroys the key and working files of this process's run.

    Raises:
        ConfigError: the file is not the key of the run.
    """
    folder = output.inside(WORK)
    if RUN in folder.names():
        begun_with(folder, key).destroy()
    folder.remove()


def asked(options: RowOptions) -> dict[str, Any]:
    """Returns the field options, as a manifest states them."""
    return {
        "id": options.id if options.ids == "column" else f"from {options.ids}",
        "subject": options.subject,
        "query": options.query,
        "whole": options.whole,
        "dropped_fields": options.others == "drop",
        "placeholders": options.placeholders,
        "session": options.session,
    }


def configuration(config: Config) -> dict[str, Any]:
    """Returns the options without the seed."""
    found: dict[str, Any] = _replace_infinite(config.public())
    if config.seed is not None:
        found["seed"] = "not shown"
    return found


def _replace_infinite(value: Any) -> Any:
    """Replaces infinite numbers, which JSON does not have.

    In plain data.
    """
    if isinstance(value, dict):
        return {name: _replace_infinite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_infinite(each) for each in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def _digest(document: Mapping[str, Any]) -> str:
    """Computes the SHA-256 of a manifest without that field."""
    rest = {name: each for name, each in document.items() if name != "sha256"}
    return sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
