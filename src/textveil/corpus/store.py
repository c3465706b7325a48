"""Finished chunks: kept in a work folder, of one run, and never drawn again.

In: a task, chunks and what was drawn of them. Out: what was drawn of a chunk, by this run or the one that it resumes.
Not here: the files of a work folder (`files.work`), and what a chunk is (`chunks`).

A second draw of a chunk would be a second release. So draws follow from a key of the run, kept beside its manifest for
its owner only until all chunks are there: a chunk that is drawn again, because it was lost before it was kept, is the
same chunk. And a chunk tells which run it is of, where its rows stand and what digest their texts have; whoever reads
it checks that against the input at hand.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from textveil.corpus.chunks import Chunk, KeyFile
from textveil.corpus.plan import KEY, MANIFEST, Task, named
from textveil.errors import ConfigError, InputError
from textveil.files import work
from textveil.randomness import KeyedRandomness, fresh_name

CHUNK = "{:08}.chunk"


@dataclass(frozen=True, kw_only=True)
class ChunkStore:
    """The finished chunks of one file, held by this process alone.

    Attributes:
        folder: the work folder.
        run: digest of what the chunks depend on.
        key: the run's release key; None where there is a seed.
    """

    folder: work.Work
    run: str
    key: KeyFile | None

    def numbers(self) -> set[int]:
        """The numbers of the chunks that are there."""
        return {int(name.partition(".")[0]) for name in _chunks_in(self.folder)}

    def save(self, chunk: Chunk, record: dict[str, Any]) -> None:
        """Keep what was drawn of a chunk."""
        content = json.dumps(self._label(chunk) | record).encode()
        with self.folder.writing(CHUNK.format(chunk.number)) as stream:
            stream.write(sha256(content).hexdigest().encode() + b"\n" + content)

    def load(self, chunk: Chunk) -> dict[str, Any]:
        """What was drawn from the texts of a chunk, and from no others.

        Raises:
            InputError: the file of the chunk is damaged, or is not of this run, this place and these texts.
        """
        name = CHUNK.format(chunk.number)
        digest, _, content = self.folder.read(name).partition(b"\n")
        advice = "delete the folder to start over"
        if sha256(content).hexdigest().encode() != digest:
            raise InputError(f"the finished chunk {name} in {self.folder.path.name} is damaged; {advice}")
        record = dict(json.loads(content))
        label = self._label(chunk)
        if {key: record.get(key) for key in label} != label or len(record["texts"]) != len(chunk.texts):
            raise InputError(
                f"the finished chunk {name} in {self.folder.path.name} belongs to another run, place or input; {advice}"
            )
        return record

    def _label(self, chunk: Chunk) -> dict[str, Any]:
        """The label that a chunk on the disk must carry."""
        digest = sha256(json.dumps(chunk.texts).encode()).hexdigest()
        return {
            "run": self.run,
            "number": chunk.number,
            "first": chunk.first,
            "rows": len(chunk.texts),
            "input": digest,
        }


@contextmanager
def claimed(task: Task, resume: bool) -> Iterator[ChunkStore]:
    """Holds the chunks of a task for this process alone; a work folder without chunks is removed at the end.

    Raises:
        ConfigError: another process is at work on it or has finished it, or the run was begun with other options.
    """
    with work.held(task.places.work, new=not resume) as folder:
        try:
            if os.path.lexists(task.places.output):
                raise ConfigError("another process finished this file meanwhile; --resume keeps its output")
            yield _pinned(task, folder)
        finally:
            with suppress(OSError):
                if not _chunks_in(folder):
                    if MANIFEST in folder.names():  # first: a run that goes on from it needs its key
                        folder.delete(MANIFEST)
                    destroy_key(folder)
                    folder.remove(first=KEY)


def destroy_key(folder: work.Work) -> None:
    """Overwrite and delete the key, once nothing is left to draw."""
    if KEY in folder.names():
        folder.wipe(KEY)


def require_resumable(task: Task) -> None:
    """Check before anything is drawn what `claimed` would refuse later.

    Raises:
        ConfigError: another process is at work on it, or the run was begun with other options.
    """
    try:
        manifest = (task.places.work / MANIFEST).read_bytes()
    except OSError:
        return
    with named(task.source.path):
        if work.is_held(task.places.work):  # before anything that says to delete the folder
            raise ConfigError(work.BUSY)
        _require_same(task, manifest)


def _chunks_in(folder: work.Work) -> set[str]:
    return {name for name in folder.names() if name.endswith(CHUNK.format(0)[8:])}


def _pinned(task: Task, folder: work.Work) -> ChunkStore:
    """Record what the chunks depend on, or compare it with the record of an earlier run."""
    names, chunks = folder.names(), _chunks_in(folder)
    for name in names - chunks - {MANIFEST, KEY}:
        folder.delete(name)  # left by a run that was killed while it wrote or joined
    if MANIFEST not in names:
        if chunks:
            raise ConfigError(f"{folder.path.name} has chunks but no manifest; delete that folder")
        digest = None
        if not task.seeded:  # before the manifest, which says that a run has begun
            key = KeyedRandomness.new_key()
            digest = sha256(key).hexdigest()
            with folder.writing(KEY) as stream:
                stream.write(key)
        with folder.writing(MANIFEST) as stream:
            stream.write(json.dumps({"run": fresh_name(), "key": digest, "pins": task.pins}).encode())
    content = folder.read(MANIFEST)
    digest = _require_same(task, content)
    return ChunkStore(
        folder=folder,
        run=sha256(content).hexdigest(),
        key=None if digest is None else KeyFile(path=folder.path / KEY, digest=digest),
    )


def _require_same(task: Task, manifest: bytes) -> str | None:
    """Check that a run goes on as it began; returns the digest of its key, None where there is a seed."""
    delete = f"to start over delete {task.places.work.name} in the output folder"
    try:
        said = json.loads(manifest)
        found, digest = dict(said["pins"]), said["key"]
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{MANIFEST} of the interrupted run is damaged; {delete}") from None
    wanted = json.loads(json.dumps(task.pins))
    differing = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
    if differing:
        raise ConfigError(
            "--resume needs the input and options that the run began with; "
            f"these differ: {', '.join(differing)}; {delete}"
        )
    return None if digest is None else str(digest)
