"""The plan of a run: its inputs, finished parts, and resumption.

In: options and an output folder. Out: the release key's place; the parts; records of those that are
done.
Not here: how files are cut (`survey`), drawn (`part_worker`), and what is said at the end
(`release`).
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
from textveil.corpus.mapping import MappingStore
from textveil.corpus.part_worker import RECORD_FILE, RUN_FILE, SUBJECTS_FILE, WORK_FOLDER, Part
from textveil.corpus.release_key import KeyFile
from textveil.corpus.rows import RowOptions
from textveil.corpus.survey import FileSurvey, InputFile
from textveil.errors import ConfigError, InputError, TextveilError, quote_file
from textveil.files import text_streams, work
from textveil.files.storage import Storage
from textveil.randomness import KeyedRandomness, make_unique_name

MANIFEST_FILE = "manifest.json"
"""The file that describes a finished release, written last."""

KEY_FILE = "release.key"
INPUT_FILE = "input.json"


@dataclass(frozen=True, kw_only=True)
class CorpusRun:
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
        return self.output.get_folder(WORK_FOLDER)

    def require_same_input(
        self, files: Sequence[InputFile], surveys: Mapping[int, FileSurvey]
    ) -> None:
        """Checks that a resumed run has the same input.

        A new run keeps a digest of it.

        Raises:
            ConfigError: the input is another one.
        """
        file_surveys = [[file.path, asdict(surveys[file.number])] for file in files]
        digest = sha256(json.dumps(file_surveys).encode()).hexdigest()
        if INPUT_FILE not in self.work.list_files():
            self.work.write(INPUT_FILE, json.dumps({"input": digest}).encode(), mode=0o600)
        elif json.loads(self.work.read(INPUT_FILE))["input"] != digest:
            raise ConfigError(
                "--resume needs the input that the run began with, and the input differs: "
                "restore it, or give the run up with `textveil corpus finish FOLDER --give-up`"
            )

    def read_records(self, parts: Sequence[Part]) -> dict[int, dict[str, Any]]:
        """Returns the records of finished parts, by number."""
        names = {*self.work.get_folder("done").list_files()}
        return {
            part.number: self.read_record(part)
            for part in parts
            if RECORD_FILE.format(part.number) in names
        }

    def read_record(self, part: Part) -> dict[str, Any]:
        """Reads the record of a finished part.

        Raises:
            InputError: it is damaged, or of another run or input.
        """
        record: dict[str, Any] = {}
        try:
            record = dict(
                json.loads(self.work.get_folder("done").read(RECORD_FILE.format(part.number)))
            )
            identity = [record[name] for name in ("run", "part", "name", "digest")]
        except (ValueError, KeyError, TypeError):
            identity = []
        if identity != [self.name, part.number, part.name, part.cut.digest]:
            raise InputError(
                f"the record of part {part.number} in the work folder is damaged or of another "
                "run; give the run up with `textveil corpus finish FOLDER --give-up`"
            )
        return record

    def read_subjects(self, part: Part) -> bytes:
        """Reads the subjects' losses of a finished part.

        As `drawing` wrote them.
        """
        return self.work.get_folder("done").read(SUBJECTS_FILE.format(part.number))


@contextmanager
def lock_output(output: Storage) -> Iterator[None]:
    """Locks the work folder of an output for this process.

    Where it is on this machine.

    Raises:
        ConfigError: another process is at work on it.
    """
    if (folder := output.local) is None:
        yield
        return
    was_there = folder.exists()
    with work.lock_folder(folder / WORK_FOLDER):
        try:
            yield
        finally:
            # where nothing has begun
            for empty in (folder / WORK_FOLDER, *([] if was_there else [folder])):
                with suppress(OSError):
                    empty.rmdir()


def find_key_path(output: Storage, key_file: str | None) -> Path:
    """Returns the path of a release's key.

    Raises:
        ConfigError: the output is not on this machine, and no file is named.
    """
    if key_file is not None:
        return Path(key_file)
    if (folder := output.local) is None:
        raise ConfigError(
            "the output is not on this machine, and the release key must not be kept with it: "
            "name a file on this machine for the key, with --key-file"
        )
    return folder / WORK_FOLDER / KEY_FILE


def start_run(
    output: Storage,
    config: Config,
    pins: Mapping[str, Any],
    key: Path,
    *,
    resume: bool,
    mapping: MappingStore | None = None,
) -> CorpusRun:
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
    folder = output.get_folder(WORK_FOLDER)
    if is_interrupted(output, resume=resume):
        corpus_run = _resume_run(output, folder, pins, key)
        if mapping is not None:
            mapping.reserve(corpus_run.name)
        return corpus_run
    content = (
        KeyedRandomness.make_key()
        if config.seed is None
        else KeyedRandomness.derive_key(config.seed)
    )
    # Before the run's file, so that no run is there without its key.
    _write_key(key, content)
    digest = sha256(content).hexdigest()
    corpus_run = CorpusRun(
        output=output, name=make_unique_name(), key=KeyFile(path=key, digest=digest), pins=pins
    )
    record = {"run": corpus_run.name, "key": digest, "pins": pins}
    if not folder.create(RUN_FILE, json.dumps(record).encode(), mode=0o600):
        corpus_run.key.destroy()
        raise ConfigError(
            "another run into this folder began at the same moment; this run drew nothing"
        )
    if output.list_files():  # another run has begun and ended since
        folder.delete(RUN_FILE)
        corpus_run.key.destroy()
        raise ConfigError(
            "another run wrote into this folder at the same moment; this run drew nothing"
        )
    if mapping is not None:
        try:
            mapping.reserve(corpus_run.name)
        except TextveilError:
            folder.delete(RUN_FILE)
            corpus_run.key.destroy()
            raise
    return corpus_run


def is_interrupted(output: Storage, *, resume: bool) -> bool:
    """Says whether a folder has an interrupted run, which goes on; a new one may begin else.

    Raises:
        ConfigError: it may not go on, or other files are in the way of a new one.
    """
    if RUN_FILE in output.get_folder(WORK_FOLDER).list_files():
        if not resume:
            raise ConfigError(
                f"a run into {quote_file(output.uri)} was interrupted; continue with --resume, or "
                f"give it up with `textveil corpus finish {quote_file(output.uri)} --give-up`"
            )
        return True
    if output.list_files():
        raise ConfigError(
            f"the output folder {quote_file(output.uri)} must be empty or new; use another one"
        )
    return False


def collect_pins(
    config: Config,
    options: RowOptions,
    *,
    source: Mapping[str, Any],
    rows: int,
    store: str | None,
) -> dict[str, Any]:
    """Collects the options that a release depends on.

    The input and the key are not among them.
    """
    return {
        "textveil": __version__,
        **_flatten(config.to_dict()),
        **{f"rows.{name}": value for name, value in asdict(options).items()},
        "contents of the table": source["table_sha256"],
        "contents of the library": source["library"],
        "rows of a part": rows,
        "store": store,
    }


def _resume_run(output: Storage, folder: Storage, pins: Mapping[str, Any], key: Path) -> CorpusRun:
    try:
        record = json.loads(folder.read(RUN_FILE))
        name, digest, earlier_pins = str(record["run"]), str(record["key"]), dict(record["pins"])
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{RUN_FILE} of the interrupted run is damaged; delete the key of the "
            "run and the output folder yourself"
        ) from None
    require_same_options(earlier_pins, pins)
    return CorpusRun(output=output, name=name, key=KeyFile(path=key, digest=digest), pins=pins)


def require_same_options(earlier: Mapping[str, Any], pins: Mapping[str, Any]) -> None:
    """Refuses to go on with a run under other options.

    Raises:
        ConfigError: some differ; it names them.
    """
    # As they come out of JSON, which has lists for tuples.
    wanted = json.loads(json.dumps(pins))
    differing = [
        option for option in {**wanted, **earlier} if earlier.get(option) != wanted.get(option)
    ]
    if differing:
        raise ConfigError(
            "--resume needs the options that the run began with; these differ: "
            f"{', '.join(differing)}. Use the earlier options, or give the run up with `textveil "
            "corpus finish FOLDER --give-up`"
        )


def read_run_key(folder: Storage, key: Path) -> KeyFile:
    """Returns the key of the run in a work folder.

    Raises:
        ConfigError: the run's record is damaged.
    """
    try:
        return KeyFile(path=key, digest=str(json.loads(folder.read(RUN_FILE))["key"]))
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{RUN_FILE} of the run is damaged; delete the key of the run and the output folder "
            "yourself"
        ) from None


def read_run_store(folder: Storage) -> tuple[str, str | None, str | None]:
    """Reads a run's name, its session name and its store's identity.

    See `MappingStore.identity`.

    Raises:
        ConfigError: the run's record is damaged.
    """
    try:
        record = json.loads(folder.read(RUN_FILE))
        return str(record["run"]), record["pins"]["rows.session"], record["pins"]["store"]
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{RUN_FILE} of the run is damaged; delete the key of the run and the output folder "
            "yourself"
        ) from None


def _write_key(path: Path, key: bytes) -> None:
    """Writes a key for its owner only.

    Raises:
        ConfigError: there is a file of this name.
    """
    if path.parent.name != WORK_FOLDER and os.path.lexists(path):
        raise ConfigError(
            f"--key-file must name a new file, and {quote_file(path)} exists: name another"
        )
    with text_streams.convert_write_errors("the file of the key"):
        text_streams.make_folder(path.absolute().parent)
        with suppress(FileNotFoundError):
            if path.parent.name == WORK_FOLDER:
                path.unlink()  # of a run that was killed before it began
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write(key)
            stream.flush()
            # On the disk before any draw: without its key, a resumed run would draw anew.
            os.fsync(stream.fileno())
        text_streams.sync_folder(str(path.absolute()))


def _flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested options to dotted paths."""
    result: dict[str, Any] = {}
    for name, item in value.items():
        result |= (
            _flatten(item, f"{prefix}{name}.") if isinstance(item, dict) else {prefix + name: item}
        )
    return result
