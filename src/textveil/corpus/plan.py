"""The plan of a run: its inputs, finished parts, and resumption.

In: options and an output folder. Out: the release key's place; the parts; records of those that are
done.
Not here: how files are cut (`survey`), drawn (`drawing`), and what is said at the end (`release`).
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from textveil import __version__
from textveil.config import Config
from textveil.corpus.drawing import RECORD, RUN, SUBJECTS, WORK, Part
from textveil.corpus.keys import KeyFile
from textveil.corpus.mapping import MappingStore
from textveil.corpus.rows import RowOptions
from textveil.corpus.survey import InputFile, Surveyed
from textveil.errors import ConfigError, InputError, TextveilError, quote_file
from textveil.files import streams, work
from textveil.files.storage import Storage
from textveil.randomness import KeyedRandomness, fresh_name

MANIFEST = "manifest.json"
"""The file that describes a finished release, written last."""

KEY = "release.key"
INPUT = "input.json"


@dataclass(frozen=True, kw_only=True)
class BegunRun:
    """A run that has begun, now or earlier.

    Attributes:
        output: where the release goes.
        name: of the release.
        key: where its key is.
        pins: what it depends on. Holds a seed, so it stays in the work folder.
    """

    output: Storage
    name: str
    key: KeyFile
    pins: Mapping[str, Any] = field(repr=False)

    @property
    def work(self) -> Storage:
        """The work folder."""
        return self.output.inside(WORK)

    def require_same_input(self, files: Sequence[InputFile], found: Mapping[int, Surveyed]) -> None:
        """Checks that a resumed run has the same input.

        A new run keeps a digest of it.

        Raises:
            ConfigError: the input is another one.
        """
        listed = [[file.path, asdict(found[file.number])] for file in files]
        digest = sha256(json.dumps(listed).encode()).hexdigest()
        if INPUT not in self.work.names():
            self.work.write(INPUT, json.dumps({"input": digest}).encode(), mode=0o600)
        elif json.loads(self.work.read(INPUT))["input"] != digest:
            raise ConfigError(
                "--resume needs the input that the run began with, and this one differs: restore it, or give the run "
                "up with `textveil corpus finish --give-up`"
            )

    def done(self, parts: Sequence[Part]) -> dict[int, dict[str, Any]]:
        """Returns the records of finished parts, by number."""
        there = {*self.work.inside("done").names()}
        return {
            part.number: self.record(part) for part in parts if RECORD.format(part.number) in there
        }

    def record(self, part: Part) -> dict[str, Any]:
        """Reads the record of a finished part.

        Raises:
            InputError: it is damaged, or of another run or input.
        """
        found: dict[str, Any] = {}
        try:
            found = dict(json.loads(self.work.inside("done").read(RECORD.format(part.number))))
            same = [found[name] for name in ("run", "part", "name", "digest")]
        except (ValueError, KeyError, TypeError):
            same = []
        if same != [self.name, part.number, part.name, part.cut.digest]:
            raise InputError(
                f"the record of part {part.number} in the work folder is damaged or of another run; give the run up "
                "with `textveil corpus finish --give-up`"
            )
        return found

    def subjects(self, part: Part) -> bytes:
        """Reads the subjects' losses of a finished part.

        As `drawing` wrote them.
        """
        return self.work.inside("done").read(SUBJECTS.format(part.number))


@contextmanager
def claimed(output: Storage) -> Iterator[None]:
    """Locks the work folder of an output for this process.

    Where it is on this machine.

    Raises:
        ConfigError: another process is at work on it.
    """
    if (folder := output.local) is None:
        yield
        return
    with work.held(folder / WORK):
        try:
            yield
        finally:
            with suppress(OSError):
                (folder / WORK).rmdir()  # where nothing has begun


def key_path(output: Storage, key_file: str | None) -> Path:
    """Returns the path of a release's key.

    Raises:
        ConfigError: the output is not on this machine, and no file is named.
    """
    if key_file is not None:
        return Path(key_file)
    if (folder := output.local) is None:
        raise ConfigError(
            "the output is not on this machine, and the release key must not lie beside it: name a file here for it, "
            "with --key-file"
        )
    return folder / WORK / KEY


def begin(
    output: Storage,
    config: Config,
    pins: Mapping[str, Any],
    key: Path,
    *,
    resume: bool,
    mapping: MappingStore | None = None,
) -> BegunRun:
    """Starts a new run, or resumes an interrupted one.

    Args:
        output: where the release goes.
        config: resolved options.
        pins: what the run depends on.
        key: where its key is, or is to be.
        resume: whether a run may go on.
        mapping: where the run keeps the values of placeholders; None: nowhere.

    Raises:
        ConfigError: something is in the way, or the run that goes on was begun with other options.
        StoreError: the store cannot be opened or written.
    """
    folder = output.inside(WORK)
    if RUN in folder.names():
        if not resume:
            raise ConfigError(
                f"a run into {quote_file(output.uri)} was interrupted; go on with --resume, or give it up with "
                "`textveil corpus finish --give-up`"
            )
        made = _resume(output, folder, pins, key)
        if mapping is not None:
            mapping.reserve(made.name)
        return made
    if output.names():
        raise ConfigError(
            f"the output folder {quote_file(output.uri)} must be empty, or new; use another one"
        )
    content = (
        KeyedRandomness.new_key() if config.seed is None else KeyedRandomness.key_of(config.seed)
    )
    _write_key(key, content)
    digest = sha256(content).hexdigest()
    made = BegunRun(
        output=output, name=fresh_name(), key=KeyFile(path=key, digest=digest), pins=pins
    )
    said = {"run": made.name, "key": digest, "pins": pins}
    if not folder.create(RUN, json.dumps(said).encode(), mode=0o600):
        made.key.destroy()
        raise ConfigError(
            "another run into this folder has begun at the same moment; nothing was drawn here"
        )
    if output.names():  # another run has begun and ended since
        folder.delete(RUN)
        made.key.destroy()
        raise ConfigError(
            "another run has written into this folder at the same moment; nothing was drawn here"
        )
    if mapping is not None:
        try:
            mapping.reserve(made.name)
        except TextveilError:
            folder.delete(RUN)
            made.key.destroy()
            raise
    return made


def pins_of(
    config: Config, options: RowOptions, *, table: str, rows: int, store: str | None
) -> dict[str, Any]:
    """Collects the options that a release depends on.

    The input and the key are not among them.
    """
    return {
        "textveil": __version__,
        **_flatten(config.to_dict()),
        **{f"rows.{name}": value for name, value in asdict(options).items()},
        "contents of the table": table,
        "rows of a part": rows,
        "store": store,
    }


def _resume(output: Storage, folder: Storage, pins: Mapping[str, Any], key: Path) -> BegunRun:
    try:
        said = json.loads(folder.read(RUN))
        name, digest, before = str(said["run"]), str(said["key"]), dict(said["pins"])
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{RUN} of the interrupted run is damaged; give it up") from None
    wanted = json.loads(json.dumps(pins))
    differing = [each for each in {**wanted, **before} if before.get(each) != wanted.get(each)]
    if differing:
        raise ConfigError(
            "--resume needs the options that the run began with; these differ: "
            f"{', '.join(differing)}; or give the run up with `textveil corpus finish --give-up`"
        )
    return BegunRun(output=output, name=name, key=KeyFile(path=key, digest=digest), pins=pins)


def begun_with(folder: Storage, key: Path) -> KeyFile:
    """Returns the key of the run in a work folder.

    Raises:
        ConfigError: the run's record is damaged.
    """
    try:
        return KeyFile(path=key, digest=str(json.loads(folder.read(RUN))["key"]))
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{RUN} of the run is damaged; delete its key and the output folder yourself"
        ) from None


def kept_by(folder: Storage) -> tuple[str, str | None, str | None]:
    """Reads a run's name, its session name and its store's identity.

    See `MappingStore.identity`.

    Raises:
        ConfigError: the run's record is damaged.
    """
    try:
        said = json.loads(folder.read(RUN))
        return str(said["run"]), said["pins"]["rows.session"], said["pins"]["store"]
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{RUN} of the run is damaged; delete its key and the output folder yourself"
        ) from None


def _write_key(path: Path, key: bytes) -> None:
    """Writes a key for its owner only.

    Raises:
        ConfigError: there is a file of this name.
    """
    if path.parent.name != WORK and os.path.lexists(path):
        raise ConfigError(
            f"--key-file must name a new file, and {quote_file(path)} is there: name another"
        )
    with streams.writing("the file of the key"):
        streams.make_folder(path.absolute().parent)
        with suppress(FileNotFoundError):
            if path.parent.name == WORK:
                path.unlink()  # of a run that was killed before it began
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600
        )
        with open(descriptor, "wb") as stream:
            stream.write(key)
            stream.flush()
            os.fsync(stream.fileno())
        streams.sync_folder(str(path.absolute()))


def _flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested options to dotted paths."""
    result: dict[str, Any] = {}
    for name, each in value.items():
        result |= (
            _flatten(each, f"{prefix}{name}.") if isinstance(each, dict) else {prefix + name: each}
        )
    return result
