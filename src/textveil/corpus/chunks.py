"""Chunks: consecutive rows of a file that are drawn together, and how one is drawn.

In: a file; a chunk and resolved options. Out: its chunks; what is kept of a chunk that was drawn.
Not here: where finished chunks are kept (`store`), and which process draws them (`executors`).
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from textveil.config import Config
from textveil.errors import ConfigError
from textveil.files import formats
from textveil.guarantee import condense, summarize
from textveil.pipeline import BATCH_CHARACTERS, BATCH_TEXTS, Privatizer
from textveil.randomness import KeyedRandomness, fresh_name

CHUNK_ROWS = BATCH_TEXTS
CHUNK_CHARACTERS = BATCH_CHARACTERS


@dataclass(frozen=True, kw_only=True)
class KeyFile:
    """Where a run's release key is kept: what a worker is told in place of the key.

    Attributes:
        path: of its file.
        digest: SHA-256 of the key, which tells nothing of it.
    """

    path: Path
    digest: str

    def read(self) -> bytes:
        """The key.

        Raises:
            ConfigError: it cannot be read, or is another one.
        """
        with suppress(OSError):
            key = self.path.read_bytes()
            if sha256(key).hexdigest() == self.digest:
                return key
        raise ConfigError(
            f"{self.path.parent.name} no longer has the {self.path.name} that the run began with, and without it the "
            "missing rows would be drawn as another release; delete that folder to start over"
        )


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Consecutive rows that are drawn together.

    Attributes:
        number: of the chunk.
        first: of its rows, counted in the file.
        part: the number that its draws have where there is a seed.
        file: the file's name, which is its path in the output folder too.
        column: the field with the texts; None where the format has no fields.
        key: the run's release key; None where there is a seed.
        texts: None for a row without one.
        queries: what each of them is for; None where nothing asks for that.
    """

    number: int
    first: int
    part: int
    file: str
    column: str | None = None
    key: KeyFile | None = None
    texts: tuple[str | None, ...] = field(repr=False)
    queries: tuple[str, ...] | None = field(default=None, repr=False)


def cut(source: formats.Source) -> Iterator[Chunk]:
    """Cuts the rows of a file into chunks; where it cuts depends on the file alone."""
    texts: list[str | None] = []
    queries: list[str] = []
    number = characters = done = 0
    # by the file's name, so that files of one seed differ in their draws whichever of them are in a run
    of_file = int.from_bytes(sha256(os.fsencode(source.path.name)).digest()[:8], "big") << 64

    def made() -> Chunk:
        asked = None if source.query is None else tuple(queries)
        return Chunk(
            number=number,
            first=done,
            part=of_file + done,
            file=source.path.name,
            column=source.field,
            texts=tuple(texts),
            queries=asked,
        )

    for text, query in zip(formats.texts(source), formats.queries(source), strict=False):
        texts.append(text)
        queries.append(query)
        characters += len(text or "")
        if len(texts) >= CHUNK_ROWS or characters >= CHUNK_CHARACTERS:
            yield made()
            number, done = number + 1, done + len(texts)
            texts, queries, characters = [], [], 0
    if texts:
        yield made()


class Draw:
    """Privatizes chunks, in this process or another. Only the options are pickled: each process builds its privatizer.

    Args:
        config: resolved options.
        name: tells this one from others, so that a process builds its privatizer once.
    """

    def __init__(self, config: Config, name: str | None = None) -> None:
        self._config, self._name = config, name or fresh_name()
        self._privatizer: Privatizer | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _kept, (self._config, self._name)

    @property
    def privatizer(self) -> Privatizer:
        """This process's privatizer, built when it is first needed."""
        if self._privatizer is None:
            self._privatizer = Privatizer.from_config(self._config)
        return self._privatizer

    def __call__(self, chunk: Chunk) -> dict[str, Any]:
        """What is kept of a chunk: its released texts, None for a row without one, and their statement, packed."""
        texts = [text for text in chunk.texts if text is not None]
        queries = None
        if chunk.queries is not None:
            queries = [query for text, query in zip(chunk.texts, chunk.queries, strict=True) if text is not None]
        results = list(self._source(chunk).privatize_many(texts, queries=queries))
        released = iter(results)
        return {
            "texts": [None if text is None else next(released).text for text in chunk.texts],
            "statement": condense(summarize([each.guarantee for each in results])).pack() if results else None,
        }

    def _source(self, chunk: Chunk) -> Privatizer:
        """The privatizer with the randomness of a chunk: a chunk that is drawn again is the same chunk."""
        privatizer = self.privatizer
        if chunk.key is None:
            return privatizer.with_parts(randomness=privatizer.randomness.part(chunk.part))
        ids = [f"{chunk.file}\0{row}" for row, text in enumerate(chunk.texts, chunk.first) if text is not None]
        # read here, because a chunk and this object may be written down on their way to another process
        key = KeyedRandomness(chunk.key.read(), field=chunk.column or "", ids=ids)
        return privatizer.with_parts(randomness=key)


_LAST: dict[str, Draw] = {}


def _kept(config: Config, name: str) -> Draw:
    """The `Draw` of this name that the process already has, else a new one: so each process builds it once."""
    if name not in _LAST:
        _LAST.clear()
        _LAST[name] = Draw(config, name)
    return _LAST[name]
