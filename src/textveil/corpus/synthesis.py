"""Public corpora in place of private files: counted once, with noise, then drawn into a folder.

In: files of private texts, a library, options; or votes that are there. Out: a folder with votes,
public texts and their statement.
Not here: votes and draws in memory (`pipeline.synthesis`), what is in the folder
(`synthesis_folder`).

Nothing about the private texts is written but the noisy counts: no number, size, name or digest of
an input, no name of a field. Noise is drawn once: `votes.json` is on the disk before anything that
follows from it, and who goes on reads it. A run that dies before has released nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from textveil.corpus import synthesis_folder as folders
from textveil.corpus.part_worker import RUN_FILE, WORK_FOLDER
from textveil.corpus.plan import (
    MANIFEST_FILE,
    is_interrupted,
    lock_output,
    require_same_options,
)
from textveil.corpus.release import read_manifest
from textveil.corpus.runs import ProgressCallback
from textveil.corpus.synthesis_folder import VOTES_FILE
from textveil.errors import (
    ConfigError,
    InputError,
    LimitReached,
    MissingExtra,
    OutputError,
    StoreError,
    TextveilError,
    UnknownName,
    quote_file,
)
from textveil.files import Batch, formats, storage, text_streams
from textveil.files.fields import UnknownField
from textveil.files.formats import TextSource
from textveil.files.storage import Storage
from textveil.guarantee import TextGuarantee
from textveil.library import Library
from textveil.pipeline import BallotBox, DrawOptions, Votes, check_library, choose_level
from textveil.randomness import SeededRandomness, make_unique_name

BATCH_ROWS = 2048
"""Rows that are read and encoded at once."""

DRAWN_FILE = "drawn"
"""The file in the work folder that says that votes were written: no others are drawn for them."""


@dataclass(frozen=True, kw_only=True)
class VoteFields:
    """The fields of the private rows that are read. They are written nowhere.

    Attributes:
        text: None for the field `text`, or the only one that can have some.
        label: None without labels.
        subject: whom a text is about; None where each document is on its own.
    """

    text: str | None = None
    label: str | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        names = [name for name in (self.text, self.label, self.subject) if name is not None]
        if len({*names}) < len(names):
            raise ConfigError("--field, --label and --subject must name different fields")

    @property
    def others(self) -> tuple[str, ...]:
        """The fields beside the texts."""
        return tuple(name for name in (self.label, self.subject) if name is not None)

    def find_option(self, name: str) -> str:
        """Returns the option that names a field."""
        return {self.label: "--label", self.subject: "--subject"}.get(name, "--field")

    def describe_source(self, path: str) -> TextSource:
        """Describes a file, with the fields to read.

        Raises:
            ConfigError: a field is not there or not clear.
        """
        source = formats.find_source(path, field=self.text)
        if self.others and not source.format.has_fields:
            raise ConfigError(
                "a .txt file has no fields; leave out --label and --subject, or give .jsonl, "
                ".csv, .tsv or .parquet"
            )
        if source.columns.texts[0] in self.others:
            raise ConfigError("--label and --subject must not name the field of the texts")
        return replace(source, columns=source.columns._replace(labels=self.others))


@dataclass(frozen=True, kw_only=True)
class FinishedSynthesis:
    """A corpus in its folder.

    Attributes:
        guarantee: its statement.
        texts: how many public texts there are.
        counted: for the curator alone: how many documents were counted. No bound covers it. None
            where nothing was read now.
        left_out: for the curator alone: how many documents were not counted, and why.
        is_earlier: whether an earlier run finished it.
    """

    guarantee: TextGuarantee
    texts: int
    counted: int | None = field(default=None, repr=False)
    left_out: Mapping[str, int] = field(default_factory=dict, repr=False)
    is_earlier: bool = False


def synthesize_files(  # noqa: PLR0913 - most are options, given by keyword
    inputs: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    library: Library,
    epsilon: float,
    fields: VoteFields | None = None,
    label_names: Sequence[str] = (),
    noun: str = "subject",
    per_subject: int = 1,
    about: int | None = None,
    level: str = "auto",
    drawing: DrawOptions | None = None,
    resume: bool = False,
    store: str | None = None,
    noise_seed: int | None = None,
    report: ProgressCallback = lambda *_: None,
) -> FinishedSynthesis:
    """Synthesizes a public corpus like the texts of files, into a folder.

    Central differential privacy, as `textveil.synthesize`: one noisy count, drawn once. All files
    are read before that, in constant memory but for a number for each subject.

    Args:
        inputs: files, folders, patterns and URIs, of the registered formats, compressed too.
        output: the folder, empty or new, or its URI.
        library: public texts, made without these.
        epsilon: of one document, or of one subject with all that is counted of it.
        fields: which fields of a row are read.
        label_names: the labels, a public list.
        noun: what statements call a subject.
        per_subject: how many texts of a subject are counted: the first ones.
        about: about how many texts there are, a public guess, from which the level follows.
        level: the level of cells, or "auto".
        drawing: how texts are drawn once the votes are there.
        resume: go on with a run that was interrupted; keep one that is finished.
        store: the URL of a store whose ledger every subject is charged in, before any noise.
        noise_seed: for tests: repeats the noise, and the statement says that nothing is protected.
        report: callback for progress. It gets the number of rows, which is private.

    Raises:
        ConfigError: files, folder and options do not go together, or an earlier run is in the way.
        InputError: a file cannot be read, or a row is not what its format wants.
        LimitReached, StoreError: a subject may not be charged; nothing was drawn.
        OutputError: something cannot be written. Noise that was drawn stays as it is.
    """
    fields, drawing = fields or VoteFields(), drawing or DrawOptions()
    has_subjects = fields.subject is not None
    if store is not None and not has_subjects:
        raise ConfigError(
            "a ledger is charged for each subject: name the field of subjects with --subject"
        )
    if bool(label_names) != (fields.label is not None):
        raise ConfigError(
            "--label and the public list of labels (--labels) go together: which labels occur "
            "must not be read from the texts"
        )
    box = BallotBox(
        library=library,
        level=library.get_level(
            choose_level(library, level, about, epsilon, label_names, per_subject=per_subject)
        ),
        epsilon=epsilon,
        label_names=tuple(label_names),
        unit="subject" if has_subjects else "document",
        per_subject=per_subject,
        subject=noun if has_subjects else "",
    )
    _require_ledger(store)
    target = Storage(str(output))
    paths = _find_inputs(inputs, target)

    @contextmanager
    def count(run: str) -> Iterator[Votes]:
        for batch_texts, labels, subjects in _read_batches(paths, fields, report):
            box.add(batch_texts, labels, subjects)
        with _charge(store, _name_charge(run, target), box):
            yield box.draw(None if noise_seed is None else SeededRandomness(noise_seed))

    expected = box.build_guarantee()
    charged = {"charged": store is not None}
    finished = _fill_folder(target, library, expected, drawing, charged, count, resume=resume)
    if not box.is_empty:  # an earlier run read the texts
        return finished
    return replace(finished, counted=box.counted, left_out=box.left_out)


def publish_votes(
    votes: Votes,
    output: str | Path,
    *,
    library: Library,
    drawing: DrawOptions | None = None,
    resume: bool = False,
) -> FinishedSynthesis:
    """Draws a corpus that follows from votes into a folder; reads no private text.

    Args:
        votes: of an earlier release, or of reports.
        output: the folder, empty or new, or its URI.
        library: the one that was voted on.
        drawing: how texts are drawn.
        resume: go on with a run that was interrupted; keep one that is finished.

    Raises:
        ConfigError: the library is another one, or the folder is in use.
    """
    digest = {"votes": sha256(folders.dump_votes(votes)).hexdigest()}
    return _fill_folder(
        Storage(str(output)),
        library,
        votes.guarantee,
        drawing or DrawOptions(),
        digest,
        lambda _: nullcontext(votes),
        resume=resume,
    )


def _fill_folder(
    output: Storage,
    library: Library,
    expected: TextGuarantee,
    drawing: DrawOptions,
    more_pins: Mapping[str, Any],
    make_votes: Callable[[str], AbstractContextManager[Votes]],
    *,
    resume: bool,
) -> FinishedSynthesis:
    """Fills a folder with votes, once, and with what follows from them.

    Args:
        output: the folder.
        library: the library.
        expected: what will be said of the votes, which is public before they are drawn.
        drawing: how texts are drawn.
        more_pins: further options that must be the same in a resumed run.
        make_votes: makes the votes, given the name of the run; ends when they are written.
        resume: whether a run may go on.
    """
    pins = {**folders.collect_pins(expected, drawing), **more_pins}
    # before any noise is drawn, not after
    check_library(library, expected.library)
    drawing.check(library, expected.labels)
    with text_streams.convert_signals(), lock_output(output):
        if output.has_file(MANIFEST_FILE):
            return _reuse_folder(output, pins, resume=resume)
        run = _begin_run(output, pins, resume=resume)
        work = output.get_folder(WORK_FOLDER)
        if not output.has_file(VOTES_FILE):
            if DRAWN_FILE in work.list_files():
                raise ConfigError(
                    f"the votes of the interrupted run in {quote_file(output.uri)} were drawn, and "
                    f"their {VOTES_FILE} is gone: put it back, for noise is drawn once; or give "
                    "the run up with `textveil corpus finish FOLDER --give-up`"
                )
            try:
                with make_votes(run) as votes:
                    _write_votes(output, folders.dump_votes(votes))
                    work.write(DRAWN_FILE, b"")
            except (OutputError, StoreError):
                raise  # somebody may be charged: who goes on has the same name, and pays once
            except TextveilError:
                if not output.has_file(VOTES_FILE):  # nothing was drawn, and nobody is charged
                    work.remove()
                raise
        votes = folders.read_votes(output)
        _require_votes(votes, expected)
        manifest = folders.publish(output, votes, library, drawing, pins)
        work.remove()
        return _describe_folder(output, manifest)


def _write_votes(output: Storage, content: bytes) -> None:
    """Writes the votes, unless some are there.

    What is half written lies in the work folder, for it may be a draw that nobody shall see.
    """
    if output.local is not None:  # locked
        output.write(VOTES_FILE, content, subfolder=WORK_FOLDER)
    elif not output.create(VOTES_FILE, content):
        raise ConfigError(
            "another run wrote its votes into this folder at the same moment; this run released "
            "nothing"
        )


def _describe_folder(output: Storage, manifest: Mapping[str, Any]) -> FinishedSynthesis:
    texts = int(manifest["texts"])
    return FinishedSynthesis(
        guarantee=folders.read_votes(output).build_guarantee(texts), texts=texts
    )


def _begin_run(output: Storage, pins: Mapping[str, Any], *, resume: bool) -> str:
    """Begins a run or goes on with one, and returns its name."""
    work = output.get_folder(WORK_FOLDER)
    if is_interrupted(output, resume=resume):
        record: dict[str, Any] = {}
        with suppress(ValueError, KeyError, TypeError):
            record = dict(json.loads(work.read(RUN_FILE)))
        if not isinstance(record.get(folders.KIND), dict):
            raise ConfigError(
                f"{RUN_FILE} of the interrupted run in {quote_file(output.uri)} is damaged, or "
                "of another kind of run; use another folder"
            )
        require_same_options(record[folders.KIND], pins)
        for name in work.list_files():
            if name not in (RUN_FILE, DRAWN_FILE):
                work.delete(name)  # half written by a process that was killed
        return str(record["run"])
    if resume:  # of a folder whose name is mistyped, noise would be drawn a second time
        raise ConfigError(
            f"there is no run to go on with in {quote_file(output.uri)}; without --resume one "
            "begins, and draws noise"
        )
    record = {"run": make_unique_name(), folders.KIND: pins}
    if not work.create(RUN_FILE, json.dumps(record).encode(), mode=0o600):
        raise ConfigError(
            "another run into this folder began at the same moment; this run drew nothing"
        )
    return str(record["run"])


def _reuse_folder(output: Storage, pins: Mapping[str, Any], *, resume: bool) -> FinishedSynthesis:
    """Returns the corpus that is there, after comparing its options."""
    if not resume:
        raise ConfigError(
            f"the output folder {quote_file(output.uri)} holds a finished release; use another "
            f"one. Further corpora follow from its {VOTES_FILE} (--votes), and cost nothing"
        )
    manifest = read_manifest(output, versions=(folders.VERSION,), kind=folders.KIND)
    require_same_options(manifest["options"], pins)
    output.get_folder(WORK_FOLDER).remove()
    return replace(_describe_folder(output, manifest), is_earlier=True)


def _require_votes(votes: Votes, expected: TextGuarantee) -> None:
    """Refuses votes in the folder that are not those of this run."""
    # A seed is no option of the folder: the statement follows from what the votes say of it.
    if replace(votes.guarantee, seeded=False) != replace(expected, seeded=False):
        raise InputError(
            f"{VOTES_FILE} in the output folder is of another run; give this one up with "
            "`textveil corpus finish FOLDER --give-up`"
        )


# ---- private files -------------------------------------------------------------------------------


def _find_inputs(inputs: str | Path | Sequence[str | Path], output: Storage) -> list[str]:
    """Returns the input files; none may be in the output folder."""
    paths = storage.find_files([inputs] if isinstance(inputs, str | Path) else inputs)
    if not paths:
        raise InputError("there is no input file")
    if (folder := output.local) is not None and folder.exists() and not folder.is_dir():
        raise ConfigError(f"--output must be a folder, but {quote_file(output.uri)} is a file")
    if any(output.has_path(path) for path in paths):
        raise ConfigError(
            f"--output must be a folder without any of the input files, and "
            f"{quote_file(output.uri)} has one"
        )
    return paths


Columns = tuple[list[str], list[str] | None, list[str] | None]
"""Texts, labels and subjects of some rows. Secret."""


def _read_batches(
    paths: Sequence[str], fields: VoteFields, report: ProgressCallback
) -> Iterator[Columns]:
    """Yields the rows of all files, some at a time.

    Errors name a file by its number, for its name may say whom it is about.

    Raises:
        ConfigError: a field is not there or not clear.
        InputError: a file cannot be read, or a row is not what its format wants.
    """
    rows = 0
    for number, path in enumerate(paths, 1):
        batches = _read_file(path, number, fields)
        for columns in batches:
            rows += len(columns[0])
            yield columns
            report("rows", rows, 0)


def _read_file(path: str, number: int, fields: VoteFields) -> Iterator[Columns]:
    place = f"input file {number}"
    try:
        source = fields.describe_source(path)
        with formats.open_file(source.path, packing=source.packing) as stream:
            for batch in source.format.read_batches(
                stream, source.columns, rows=BATCH_ROWS, keep_others=False
            ):
                yield _read_columns(batch, source.columns.texts[0], fields)
        return
    except MissingExtra:
        raise
    except UnknownField as error:
        failure: TextveilError = error.add_file(place, fields.find_option(error.name))
    except TextveilError as error:
        kind = ConfigError if isinstance(error, UnknownName) else type(error)
        failure = kind(f"{place}: {error}")
    raise failure  # out here, because the other error may have the row in its frames


def _read_columns(batch: Batch, text: str, fields: VoteFields) -> Columns:
    def read(name: str | None) -> list[str] | None:
        return None if name is None else [value or "" for value in batch.get_values(name)]

    return read(text) or [], read(fields.label), read(fields.subject)


def _require_ledger(store: str | None) -> None:
    """Refuses a store without a ledger, before any text is read."""
    if store is not None:
        from textveil.session import SessionStore

        with SessionStore(store) as opened:
            _ = opened.ledger  # raises where there is none


def _name_charge(run: str, output: Storage) -> str:
    """Names the charge of a run: a copy of its folder elsewhere draws other noise, and pays anew."""
    place = output.uri if output.local is None else str(output.local.resolve())
    return sha256(f"{run}\0{place}".encode(errors="surrogateescape")).hexdigest()


@contextmanager
def _charge(store: str | None, key: str, box: BallotBox) -> Iterator[None]:
    """Charges all subjects who are counted, before any noise, under the key of the run.

    A run that goes on has the same key, so nobody pays twice for noise that nobody saw.

    Raises:
        LimitReached, StoreError: somebody may not be charged; nobody was, and nothing was drawn.
    """
    if store is None:
        yield
        return
    from textveil.session import SessionStore, charge_subjects

    with SessionStore(store) as opened:
        reservations = None
        with suppress(LimitReached):
            reservations = charge_subjects(opened, box.subjects, box.build_guarantee(), key=key)
        if reservations is None:  # not how many there are, nor who
            raise LimitReached(
                "at least one subject has a limit that this release would pass: leave out who has "
                "nothing left (`textveil ledger show`), release less, or change the limit "
                "(`textveil ledger limit`). Nothing was drawn, and nobody was charged"
            )
        yield
        opened.ledger.confirm_all(reservations)
