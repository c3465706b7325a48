"""The drawing of a part: its rows are read, privatized and written.

A part that is drawn again is the same part.

In: a part of a file; resolved options; a release key. Out: a file of the output, and a record of
what is in it.
Not here: which parts there are (`survey`, `plan`), and which process draws them (`executors`).

Draws follow from the release key, the options, the table, a row's id, its field and its text. So it
does no harm that two processes draw the same part, or that one goes on which is thought dead: both
write the same bytes, and the name is given last.
"""

import json
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from textveil.config import Config
from textveil.corpus.loss_histogram import LossHistogram, compute_loss
from textveil.corpus.mapping import MappingStore, SubjectMapping
from textveil.corpus.release_key import KeyHandle, compute_mark
from textveil.corpus.row_progress import count_rows
from textveil.corpus.rows import Labels, RowOptions
from textveil.corpus.survey import UNBOUNDED, PartCut, build_row_hash, update_hash
from textveil.errors import ConfigError, InputError
from textveil.files import Batch, formats, storage
from textveil.files.format_contract import BATCH_CHARACTERS
from textveil.files.pieces import LineBatch
from textveil.files.storage import Storage
from textveil.files.text_streams import format_json_line
from textveil.guarantee import Guarantee, TextGuarantee, condense, summarize
from textveil.pipeline import Privatizer, Result, TextPrivatizer, TextResult, load_privatizer
from textveil.randomness import KeyedRandomness
from textveil.session import KeyedPlaceholders
from textveil.text import tokenize

WORK_FOLDER = "_textveil"
"""The folder in the output with a run's working files.

They are needed until the run has ended.
"""

RUN_FILE = "run.json"
"""The run's record in its work folder, kept until the end."""

RECORD_FILE = "{:08}.json"
SOURCES_FILE = "sources-{:08}.jsonl"
"""The file beside a part that names the source of each public text in it."""

SUBJECTS_FILE = "{:08}.npy"
SUBJECT_DTYPE = np.dtype(
    [("mark", "<u8", 2), ("documents", "<i8"), ("micro", "<i8"), ("open", "<i8")]
)
"""The layout of a subject's summed losses in a part."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a corpus.

    Attributes:
        number: counted over all files.
        name: of its file in the output.
        file: the number of its input file.
        path: of its input file.
        state: of its input file before it was read.
        cut: its rows in that file.
    """

    number: int
    name: str
    file: int
    path: str
    state: str
    cut: PartCut


@dataclass(frozen=True, kw_only=True)
class PartWorker:
    """Draws parts, in this process or another.

    Only options are pickled: each process builds its privatizer, once.

    Attributes:
        config: resolved options.
        options: which fields of a row are what.
        output: where parts go.
        key: of the release.
        run: the name of the release, which every record carries.
        mapping: keeps the values of placeholders; None where they are thrown away.
    """

    config: Config = field(repr=False)
    options: RowOptions
    output: Storage
    key: KeyHandle
    run: str
    mapping: MappingStore | None = None

    def __call__(self, part: Part) -> dict[str, Any]:
        """Draws a part, and returns its record.

        The record is on the disk, too, once the part's file is in its place.

        Raises:
            ConfigError: the run has ended, or another one has taken its folder.
            InputError: the rows are not those of the survey.
            OutputError: something cannot be written. StoreError: the mapping cannot be kept.
        """
        key = self.key.read()
        source = self.options.describe_source(part.path)
        privatizer = _build_privatizer(self.config, self.run)
        if isinstance(privatizer, Privatizer):
            privatizer = privatizer.remembering()
        state = _PartState(
            key=key,
            privatizer=privatizer,
            options=self.options,
            # in a .txt each line is a text
            in_lines=not (source.format.has_fields or self.options.whole),
        )
        hashing_stream = _HashingStream()
        with formats.open_file(part.path, packing=source.packing) as file:
            head = source.format.read_head(file)
        with (
            self.output.open_writer(part.name, subfolder=WORK_FOLDER) as target,
            formats.open_file(part.path, packing=source.packing) as file,
        ):
            batches = source.format.read_batches(
                file,
                source.columns,
                start=part.cut.start,
                stop=part.cut.stop,
                characters=(  # as the survey has read them
                    UNBOUNDED if isinstance(privatizer, TextPrivatizer) else BATCH_CHARACTERS
                ),
            )
            # Hashed behind the compressor: `verify` compares files as they are stored.
            with formats.open_compressor(hashing_stream.redirect(target), source.packing) as packed:
                releases = state.release_batches(batches, source.columns.texts, part)
                source.format.write(
                    head,
                    releases,
                    packed,
                    self.options.select_fields(
                        source.columns, anew=isinstance(privatizer, TextPrivatizer)
                    ),
                )
            # before the part is there: what is released can be restored
            if self.mapping is not None:
                # a run that was given up has no sessions any more
                require_ownership(self.output, self.run)
                self.mapping.keep(state.placeholders)
            if isinstance(privatizer, TextPrivatizer):
                self.output.write(
                    SOURCES_FILE.format(part.number),
                    sources := state.pack_sources(),
                    subfolder=WORK_FOLDER,
                )
                state.sources_hash = sha256(sources).hexdigest()
            # Checked once more, just before the end of the block gives the part its name.
            require_ownership(self.output, self.run)
        record = {
            "run": self.run,
            "part": part.number,
            "name": part.name,
            "digest": part.cut.digest,
            "bytes": hashing_stream.size,
            "sha256": hashing_stream.digest.hexdigest(),
            "processor": get_processor(),
            **state.build_record(),
        }
        done_folder = self.output.get_folder(WORK_FOLDER).get_folder("done")
        # Before the record, which says that the part is done.
        if self.options.subject is not None:
            done_folder.write(SUBJECTS_FILE.format(part.number), state.pack_subjects(), mode=0o600)
        done_folder.write(RECORD_FILE.format(part.number), json.dumps(record).encode(), mode=0o600)
        return record


def require_ownership(output: Storage, run: str) -> None:
    """Refuses an output folder that this run no longer owns.

    Raises:
        ConfigError: the run has ended, or another one has taken the folder.
    """
    owner = None
    with suppress(InputError, ValueError, KeyError, TypeError):
        owner = json.loads(output.get_folder(WORK_FOLDER).read(RUN_FILE))["run"]
    if owner != run:
        raise ConfigError(
            "the output folder no longer belongs to this run: the run was ended, or another run "
            "writes there. Nothing was added to the folder"
        )


@cache
def get_processor() -> str:
    """Returns the name of this machine's processor.

    On unlike ones, a mechanism that draws in floating point may draw differently.
    """
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines:
            if line.startswith("model name"):
                return f"{platform.machine()}, {line.partition(':')[2].strip()}"
    return platform.processor() or platform.machine()


TextKey = tuple[str, str, str]
"""A text, its id, and its query."""


@dataclass(kw_only=True)
class _PartState:
    """The counters of a part while it is drawn."""

    key: bytes = field(repr=False)
    privatizer: Privatizer | TextPrivatizer
    options: RowOptions
    in_lines: bool = False
    rows: int = 0
    copied: int = 0
    texts: dict[str, int] = field(default_factory=dict)
    guarantee: Guarantee | TextGuarantee | None = None
    sources: list[tuple[int, str, TextResult]] = field(default_factory=list, repr=False)
    sources_hash: str | None = None
    documents: LossHistogram = field(default_factory=LossHistogram)
    subjects: dict[bytes, list[int]] = field(default_factory=dict)
    placeholders: dict[str, SubjectMapping] = field(default_factory=dict, repr=False)

    def release_batches(
        self, batches: Iterator[Batch], names: Sequence[str], part: Part
    ) -> Iterator[tuple[Batch, Mapping[str, Sequence[str | None]]]]:
        """Yields batches with their released texts.

        Raises:
            InputError: the rows are not those of the survey.
        """
        rows_hash = build_row_hash(self.key)
        for batch in batches:
            update_hash(rows_hash, batch, (*names, *self.options.labels))
            labels = Labels.read(
                batch, self.options, file=part.file, first=part.cut.first + self.rows
            )
            losses = [[0, 0] for _ in range(len(batch))]
            releases = {
                name: self._release_field(name, batch.get_values(name), labels, losses)
                for name in names
            }
            self.documents.add((micro, words) for micro, words in losses)
            for subject, (micro, words) in zip(labels.subjects or (), losses, strict=False):
                totals = self.subjects.setdefault(
                    compute_mark(self.key, "subject", subject), [0, 0, 0]
                )
                totals[:] = totals[0] + 1, totals[1] + micro, totals[2] + words
            self.rows += len(batch)
            count_rows(len(batch))
            self.copied += _count_words(self._yield_copied(batch))
            is_whole = isinstance(self.privatizer, TextPrivatizer)
            yield (
                batch.spell_anew() if is_whole and isinstance(batch, LineBatch) else batch,
                releases,
            )
        # Read last, so that a change of the file while its rows were read shows, too.
        identity = rows_hash.hexdigest(), self.rows, storage.read_fingerprint(part.path)
        if identity != (part.cut.digest, part.cut.rows, part.state):
            raise InputError("the input changed during the run; restore it and use --resume")

    def _yield_copied(self, batch: Batch) -> Iterator[str]:
        """Yields the values of a batch that are copied unchanged."""
        for name in self.options.labels_to_copy:
            yield from (value for value in batch.get_values(name) if value is not None)
        if self.options.others == "copy":
            yield from batch.yield_others()

    def _release_field(
        self, name: str, texts: Sequence[str | None], labels: Labels, losses: list[list[int]]
    ) -> list[str | None]:
        """Releases the texts of one field, and adds their losses."""
        present_rows = [row for row, text in enumerate(texts) if text is not None]
        queries = labels.queries or [""] * len(texts)
        text_keys = [(str(texts[row]), labels.ids[row], queries[row]) for row in present_rows]
        subjects = (
            [labels.subjects[row] for row in present_rows] if labels.subjects is not None else []
        )
        results_by_key = self._privatize_distinct(
            name, text_keys, subjects, queried=labels.queries is not None
        )
        results = [results_by_key[text_key] for text_key in text_keys]
        self._add_statements(name, [result.guarantee for result in results])
        texts_released: list[str | None] = [None] * len(texts)
        for row, result in zip(present_rows, results, strict=True):
            texts_released[row] = result.text
            if isinstance(result, TextResult):
                self.sources.append((self.rows + row + 1, name, result))
                if self.in_lines:
                    texts_released[row] = " ".join(result.text.splitlines())
            micro, words = compute_loss(result.guarantee)
            losses[row][0] += micro
            losses[row][1] += words
        return texts_released

    def _privatize_distinct(
        self, name: str, text_keys: Sequence[TextKey], subjects: Sequence[str], *, queried: bool
    ) -> Mapping[TextKey, Result | TextResult]:
        """Privatizes the distinct texts of one field.

        Their placeholders belong to the given subjects.
        """
        distinct = list(dict.fromkeys(text_keys))  # without ids, equal texts are one draw
        by_content = self.options.ids == "content"
        keyed = KeyedRandomness(
            self.key,
            field=name,
            ids=[
                f"{query}\0{text}" if by_content else text_id for text, text_id, query in distinct
            ],
            seeded=self.privatizer.randomness.is_seeded,
        )
        if isinstance(self.privatizer, TextPrivatizer):
            whole = self.privatizer.with_parts(randomness=keyed)
            public_texts = whole.privatize_many([text for text, *_ in distinct])
            return dict(zip(distinct, public_texts, strict=True))
        by_subject = self.options.placeholders == "subject"  # and then no two texts are one draw
        naming = [self._open_mapping(subject).names for subject in subjects] if by_subject else None
        results = self.privatizer.with_parts(randomness=keyed, naming=naming).privatize_many(
            [text for text, *_ in distinct],
            queries=[query for *_, query in distinct] if queried else None,
        )
        results_by_key = dict(zip(distinct, results, strict=True))
        if self.options.session is not None:
            for subject, text_key in zip(subjects, text_keys, strict=True):
                self._open_mapping(subject).take(results_by_key[text_key])
        return results_by_key

    def _add_statements(self, name: str, statements: Sequence[Any]) -> None:
        """Adds the statements about texts of a field."""
        self.texts[name] = self.texts.get(name, 0) + len(statements)
        if statements:
            previous: list[Any] = [] if self.guarantee is None else [self.guarantee]
            addition: Any = condense(summarize(statements))
            self.guarantee = condense(summarize([*previous, addition])) if previous else addition

    def _open_mapping(self, subject: str) -> SubjectMapping:
        """Returns the placeholders of a subject."""
        if subject not in self.placeholders:
            self.placeholders[subject] = SubjectMapping(
                KeyedPlaceholders(key=self.key, subject=subject)
            )
        return self.placeholders[subject]

    def build_record(self) -> dict[str, Any]:
        """Returns the counts of the part's record."""
        return {
            "rows": self.rows,
            "texts": self.texts,
            "copied": self.copied,
            "statement": None if self.guarantee is None else self.guarantee.pack(),
            "documents": self.documents.pack(),
            "sources_sha256": self.sources_hash,
        }

    def pack_sources(self) -> bytes:
        """Packs the sources of public texts as lines of JSON.

        By row of the part, counted from 1, and by field.
        """
        lines = (
            {
                "row": row,
                "field": name,
                "public": True,
                "library": result.library,
                "sources": list(result.sources),
                "cells": list(result.cells),
            }
            for row, name, result in sorted(self.sources, key=lambda item: item[:2])
        )
        return "".join(format_json_line(line) for line in lines).encode()

    def pack_subjects(self) -> bytes:
        """Packs the losses of each subject as a .npy.

        Of the part; sorted by the first halves of their marks.
        """
        array = np.empty(len(self.subjects), SUBJECT_DTYPE)
        array["mark"] = np.frombuffer(b"".join(self.subjects), "<u8").reshape(-1, 2)
        for place, name in enumerate(("documents", "micro", "open")):
            array[name] = [totals[place] for totals in self.subjects.values()]
        target = BytesIO()
        np.save(target, array[np.argsort(array["mark"][:, 0], kind="stable")], allow_pickle=False)
        return target.getvalue()


def _count_words(values: Iterable[str]) -> int:
    """Counts the words of values, without punctuation marks.

    They are split as texts are.
    """
    # a lone surrogate may be copied
    counts = Counter(value.encode(errors="replace").decode() for value in values)
    tokens = tokenize([*counts])
    worded = np.fromiter(
        (any(map(str.isalnum, word)) for word in tokens.words), np.int64, len(tokens.words)
    )
    sums = np.concatenate(([0], np.cumsum(worded)))[tokens.documents]
    return int(np.diff(sums) @ np.fromiter(counts.values(), np.int64, len(counts)))


class _HashingStream:
    """A stream that counts and digests the bytes written to it."""

    def __init__(self) -> None:
        self.size, self.digest = 0, sha256()
        self._target: Any = None

    def redirect(self, target: Any) -> Any:
        """Redirects writes to another stream, and returns itself."""
        self._target = target
        return self

    def write(self, content: Any) -> int:
        self.digest.update(content)
        self.size += len(memoryview(content).cast("B"))
        self._target.write(content)
        return len(content)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._target.flush()

    def close(self) -> None:
        """Leaves the target open, for its opener to close."""

    closed = False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class LibraryCheck:
    """Finds texts that stand in the library of a run, before any is drawn.

    Attributes:
        config: resolved options of whole texts.
        run: the name of the release.
    """

    config: Config = field(repr=False)
    run: str

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Returns the places of the texts that stand in the library.

        Raises:
            InputError: a text is no valid Unicode.
        """
        privatizer = _build_privatizer(self.config, self.run)
        return privatizer.find_known(texts) if isinstance(privatizer, TextPrivatizer) else []


_PRIVATIZERS: dict[str, Privatizer | TextPrivatizer] = {}


def _build_privatizer(config: Config, run: str) -> Privatizer | TextPrivatizer:
    """Returns this process's privatizer for a run, built once."""
    if run not in _PRIVATIZERS:
        _PRIVATIZERS.clear()
        _PRIVATIZERS[run] = load_privatizer(config)
    return _PRIVATIZERS[run]
