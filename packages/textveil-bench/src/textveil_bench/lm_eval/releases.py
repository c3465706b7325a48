"""Stored releases of documents, so that all models get the same ones.

In: a configured privatizer, documents' texts. Out: their releases, each with a statement.
Not here: where the documents come from (`guarded`).

A document is drawn once per configuration. Its release is found by a digest of its texts, in a file
named after the digest of everything that determines a draw: options, budget, seed, the table's
content, the version. The file is readable by its owner only: anyone who has it can test whether a
given text was among the documents.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Self

from textveil import __version__
from textveil.config import Config
from textveil.errors import ConfigError, OutputError
from textveil.guarantee import Guarantee, condense
from textveil.pipeline import Privatizer, Result
from textveil_bench.examples import Example
from textveil_bench.trials import join_fields, split_releases

VERSION = 1
"""Version of the file; raised when releases are made or read differently."""

BATCH = 64
"""Number of documents drawn and saved at once."""

LOCK_TIMEOUT = 60.0
"""Seconds to wait for another process that is writing."""

SCHEMA = """
create table if not exists configuration (digest text primary key, options text not null);
create table if not exists releases (digest blob primary key, texts text not null, statement text not null);
"""

DocumentTexts = tuple[str, ...]
DrawProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class CachedRelease:
    """One release.

    Attributes:
        texts: the release of each text of the document.
        guarantee: its statement, condensed.
    """

    texts: DocumentTexts = field(repr=False)
    guarantee: Guarantee


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseStore:
    """The releases of one configuration.

    Attributes:
        privatizer: draws missing releases.
        seeded: whether draws depend on a seed.
        connection: the database of the releases.
    """

    privatizer: Privatizer
    seeded: bool
    connection: sqlite3.Connection = field(repr=False)

    @classmethod
    @contextmanager
    def open_store(cls, config: Config, folder: Path | None = None) -> Iterator[Self]:
        """Opens the releases of a configuration, as a context manager.

        Args:
            config: resolved options.
            folder: folder of the file; created if needed. None for releases in memory.

        Raises:
            OutputError: the file cannot be created, read or written.
            ConfigError: the file belongs to another configuration.
        """
        privatizer = Privatizer.from_config(config)
        digest = compute_config_digest(config, privatizer.table.digest)
        with _connect(folder, digest) as connection:
            with connection:
                connection.executescript(SCHEMA)
                stored_digests = [
                    stored_digest
                    for (stored_digest,) in connection.execute("select digest from configuration")
                ]
                if stored_digests not in ([], [digest]):
                    raise ConfigError(
                        f"{_get_file_name(digest)} in the cache belongs to another configuration; "
                        "delete it"
                    )
                options = json.dumps(
                    {**config.dump_public(), "seed": None if config.seed is None else "not shown"}
                )
                connection.execute(
                    "insert or ignore into configuration values (?, ?)", (digest, options)
                )
            yield cls(privatizer=privatizer, seeded=config.seed is not None, connection=connection)

    def list_missing(self, documents: Sequence[DocumentTexts]) -> list[DocumentTexts]:
        """Lists the documents not drawn yet, without repeats."""
        return [texts for texts in dict.fromkeys(documents) if self._find(texts) is None]

    def get_releases(
        self,
        documents: Sequence[DocumentTexts],
        report: DrawProgress = lambda step, done, total: None,
    ) -> Mapping[DocumentTexts, CachedRelease]:
        """Returns each document's release, drawing missing ones; equal documents share one.

        Args:
            documents: the texts of each.
            report: called with the step "documents", the number drawn, and the number to draw.
        """
        missing = self.list_missing(documents)
        for start in range(0, len(missing), BATCH):
            report("documents", start, len(missing))
            self._save_releases(missing[start : start + BATCH])
        report("documents", len(missing), len(missing))
        releases = {texts: self._find(texts) for texts in dict.fromkeys(documents)}
        return {texts: release for texts, release in releases.items() if release is not None}

    def _find(self, texts: DocumentTexts) -> CachedRelease | None:
        row = self.connection.execute(
            "select texts, statement from releases where digest = ?", (_hash_texts(texts),)
        ).fetchone()
        if row is None:
            return None
        return CachedRelease(
            texts=tuple(json.loads(row[0])), guarantee=Guarantee.unpack(json.loads(row[1]))
        )

    def _save_releases(self, documents: Sequence[DocumentTexts]) -> None:
        examples = [Example(texts=texts) for texts in documents]
        results = list(self._draw_results(examples))
        rows = [
            (
                _hash_texts(trial.example.texts),
                json.dumps(_restore_whitespace(trial.example.texts, trial.texts)),
                _pack_statement(result),
            )
            for trial, result in zip(split_releases(examples, results), results, strict=True)
        ]
        with (
            self.connection
        ):  # a release that another process saved meanwhile stays: one per document
            self.connection.executemany("insert or ignore into releases values (?, ?, ?)", rows)

    def _draw_results(self, examples: Sequence[Example]) -> Iterator[Result]:
        if not self.seeded:
            return self.privatizer.privatize_many(map(join_fields, examples))
        # One by one: a draw then depends only on the seed and the document, not on what else is
        # drawn.
        return (
            result
            for example in examples
            for result in self.privatizer.privatize_many(
                [join_fields(example)], first=int.from_bytes(_hash_texts(example.texts)[:15])
            )
        )


def compute_config_digest(config: Config, table: str) -> str:
    """Computes a digest of everything that determines a draw."""
    factors = {
        "version": VERSION,
        "textveil": __version__,
        "table": table,
        "options": config.to_dict(),
    }
    return blake2b(json.dumps(factors, sort_keys=True).encode(), digest_size=16).hexdigest()


def _get_file_name(digest: str) -> str:
    return f"releases-{digest}.sqlite"


@contextmanager
def _connect(folder: Path | None, digest: str) -> Iterator[sqlite3.Connection]:
    database = ":memory:" if folder is None else _create_file(folder, _get_file_name(digest))
    try:
        with closing(sqlite3.connect(database, timeout=LOCK_TIMEOUT)) as connection:
            yield connection
    except sqlite3.Error as error:
        failure = type(error).__name__
    else:
        return
    raise OutputError(
        f"cannot use {_get_file_name(digest)} in the cache ({failure}); if no other run uses it, "
        "delete it"
    )


def _create_file(folder: Path, name: str) -> str:
    """Creates a file readable by its owner only; returns its path."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.close(os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise OutputError(f"cannot use the cache folder: {error.strerror}") from None
    return str(folder / name)


def _hash_texts(texts: DocumentTexts) -> bytes:
    return blake2b(json.dumps(texts).encode(), digest_size=32).digest()


def _restore_whitespace(originals: DocumentTexts, released: DocumentTexts) -> list[str]:
    """Adds the whitespace around originals to releases; all spacing is released."""
    return [
        text[: len(text) - len(text.lstrip())] + release + text[len(text.rstrip()) :]
        if text.strip()
        else text
        for text, release in zip(originals, released, strict=True)
    ]


def _pack_statement(result: Result) -> str:
    return json.dumps(condense(result.guarantee).pack())
