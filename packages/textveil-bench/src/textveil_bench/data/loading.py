"""Data sets by name, from files, a generator or a hub; and files of your own.

In: a name or a file, a split, a limit. Out: a `DataSet`.
Not here: the list of data sets (`sources`), and how records are read (`records`).
"""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from textveil.errors import ConfigError, InputError, MissingExtra, UnknownName
from textveil.files import formats
from textveil_bench import fantasy
from textveil_bench.data import pairs
from textveil_bench.data.hub import called, fetch
from textveil_bench.data.own import Columns, read_own
from textveil_bench.data.records import GOLD, SILVER, Record, within
from textveil_bench.data.sources import SOURCES, DataSource, File, Subset
from textveil_bench.examples import DataSet, Example, Kind

CORPORA = "TEXTVEIL_CORPORA"
"""The environment variable with the folder of corpora."""

OPINIONS = Path(__file__).with_name("opinions.tsv")

USUAL = 500
"""Number of generated questions if no limit is set."""


def load(
    name: str,
    *,
    split: str = "test",
    limit: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    subset: str | None = None,
    **columns: Any,
) -> DataSet:
    """A data set of the table `SOURCES`, or a file of your own.

    A file in the folder takes precedence. Without one, Fantasy is generated, QNLI's training pairs are made from
    SQuAD's training questions, and everything else is fetched from the hub.

    Args:
        name: as in `SOURCES`, alone or with a subset ("mmlu-medical"); or the path of a .csv, .tsv, .jsonl, .parquet or
            .txt, with `{split}` in it if each split has a file.
        split: "test" or "train"; "shots" for MMLU's few examples.
        limit: most examples, 1 or more; None for all. A test split gives its first examples; a training split, or a
            test split whose file is sorted by subject or article, gives evenly spaced ones, as a fair sample of the
            whole. SQuAD's gold questions always come before silver ones.
        folder: where the files are; None for the environment variable TEXTVEIL_CORPORA.
        subset: a named part; see `SOURCES`. A limit counts within it.
        columns: where a file of your own has texts, label and answers: options of `Columns`.

    Raises:
        UnknownName: there is no such data set or subset.
        ConfigError: a limit, split, folder or column is wrong; `datasets` is needed and not installed.
        InputError: a file has the wrong form, or is missing and the hub cannot be reached.
    """
    if limit is not None and limit < 1:
        raise ConfigError("a limit must be an integer of 1 or more, or none")
    if not is_file(name):
        base, _, named = name.partition("-")
        if base not in SOURCES:
            raise UnknownName("data set", name, SOURCES)
        if columns or (named and subset):
            raise ConfigError(
                f"{base} has its own fields and at most one subset; columns are for files of your own"
            )
        return _known(base, split, limit, _folder(folder), subset or named)
    if subset is not None:
        raise ConfigError(
            f"subsets are for {', '.join(SOURCES)}; a file of your own is used as a whole"
        )
    found = read_own(name, split, Columns(**columns))
    left: Counter[str] = Counter()
    examples = tuple(_whole(found.examples, left, found.kind))
    return _cut(
        replace(found, examples=examples, remarks=(*found.remarks, *_said(left))),
        limit,
        spread=split == "train",
    )


def is_file(name: str) -> bool:
    """Whether a name is a file of your own, not a data set of the table."""
    return formats.suffix(name) is not None or os.sep in name


@dataclass(frozen=True, kw_only=True)
class _Loaded:
    """Examples, and their origin."""

    origin: str
    examples: Iterable[Example]
    remarks: tuple[str, ...] = ()


def _known(name: str, split: str, limit: int | None, root: Path | None, subset: str) -> DataSet:
    source = SOURCES[name]
    if split not in source.files:
        raise ConfigError(f"split must be one of {', '.join(source.files)} for {name}")
    if subset and subset not in source.subsets:
        raise UnknownName(f"subset of {name}", subset, source.subsets)
    part = source.subsets.get(subset, Subset())
    found = _found(name, source, split, limit, root, part)
    left: Counter[str] = Counter()
    examples = _part(part, split, _whole(found.examples, left, source.kind))
    spread = split == "train" or bool(source.sorted_by)
    if limit is not None and not spread:
        examples = islice(examples, limit)  # avoids reading the rest of a large file
    chosen = (
        sorted(examples, key=lambda example: example.group != source.first)
        if source.first
        else list(examples)
    )
    remarks = [source.remarks[split]] if split in source.remarks else []
    if part.groups and split == "train":
        remarks.append(f"the whole split: {subset} parts what is judged")
    data = DataSet(
        name=f"{name}-{subset}" if subset else name,
        split=split,
        kind=source.kind,
        fields=source.fields,
        labels=part.labels or source.labels,
        examples=tuple(chosen),
        source=found.origin,
        remarks=(*remarks, *found.remarks, *_said(left)),
    )
    data = _cut(data, limit, spread=spread, first=source.first)
    if source.first == GOLD:
        counts = Counter(example.group for example in data.examples)
        says = f"{counts[GOLD]} questions have answers of people (gold), {counts[SILVER]} those of a model (silver)"
        data = replace(data, remarks=(*data.remarks, says))
    return data


# ---- which examples --------------------------------------------------------------------------------------------------


def _whole(examples: Iterable[Example], left: Counter[str], kind: Kind) -> Iterator[Example]:
    """Examples with text in every field and, for questions, with an answer; the others are counted."""
    for example in examples:
        if not all(map(str.strip, example.texts)):
            left["with an empty text"] += 1
        elif kind == "reading" and not example.answers:
            left["without an answer that stands in the text"] += 1
        else:
            yield example


def _said(left: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"left out: {count} {what}" for what, count in left.items())


def _part(part: Subset, split: str, examples: Iterable[Example]) -> Iterator[Example]:
    """The examples of a subset, with its labels. Groups restrict what is judged; a training split stays whole."""
    for example in examples:
        if part.groups and split != "train" and example.group not in part.groups:
            continue
        if not part.becomes:
            yield example
        elif example.label is not None and (label := part.becomes[example.label]) is not None:
            yield replace(example, label=label)


def _cut(data: DataSet, limit: int | None, *, spread: bool, first: str = "") -> DataSet:
    """The first examples, or evenly spaced ones: as many as possible of group `first`, then others."""
    count = len(data)
    if limit is None or count <= limit:
        return data
    if not spread:
        return data.take(limit)
    leading = sum(example.group == first for example in data.examples) if first else 0
    places = [
        *_spaced(leading, limit),
        *(leading + i for i in _spaced(count - leading, limit - leading)),
    ]
    examples = tuple(data.examples[i] for i in places)
    return replace(
        data, examples=examples, remarks=(*data.remarks, f"{limit} of {count} rows, evenly spaced")
    )


def _spaced(count: int, limit: int) -> list[int]:
    """At most `limit` evenly spaced numbers below `count`, starting at 0."""
    limit = max(0, min(count, limit))
    return [i * count // limit for i in range(limit)]


# ---- where examples come from ----------------------------------------------------------------------------------------


def _found(
    name: str, source: DataSource, split: str, limit: int | None, root: Path | None, part: Subset
) -> _Loaded:
    if not part.made and (there := _filed(name, split, root)):
        return there
    if name in _MADE and (made := _MADE[name](split, limit, root)):
        return made
    if source.hub is None:
        raise InputError(f"{_looked(name, split)}; no hub has it")
    where = source.hub.splits[split]
    origin = called(source.hub, where)
    try:
        records = fetch(source.hub, where)
    except (InputError, MissingExtra) as error:
        kind, why = type(error), str(error)
    else:
        return _Loaded(origin=origin, examples=_read(records, source, origin))
    raise kind(f"{_looked(name, split)}, or come from the hub: {why}")


def _looked(name: str, split: str) -> str:
    names = ", ".join(file.name for file in SOURCES[name].names(split))
    return f"{name} ({split}) must be in the folder of corpora (folder, or {CORPORA}) as {names}, with or without .gz"


def _filed(name: str, split: str, root: Path | None) -> _Loaded | None:
    """The first file that exists; a name with a star stands for all matching files."""
    if root is None:
        return None
    for file in SOURCES[name].names(split):
        if paths := file.find(root):
            places = [path.relative_to(root).as_posix() for path in paths]
            origin = places[0] if "*" not in file.name else file.name
            return _Loaded(
                origin=origin,
                examples=_from_files(file, dict(zip(places, paths, strict=True)), name),
            )
    return None


def _from_files(file: File, paths: Mapping[str, Path], name: str) -> Iterator[Example]:
    for place, path in paths.items():
        more = {file.star: file.starred(path)} if file.star else {}
        yield from _read(({**row, **more} for row in _rows(file, path)), SOURCES[name], place)


def _rows(file: File, path: Path) -> Iterator[Record]:
    """The rows of a file; a .json is a single row."""
    if file.format is None and ".json" in path.suffixes[-2:]:
        with formats.opened(path, packing="gz" if path.suffix == ".gz" else "") as stream:
            yield _object(stream.read())
        return
    options: dict[str, Any] = {"names": file.columns} if file.columns else {}
    if not file.quoted:
        options["quoted"] = False
    yield from formats.records(path, ending=file.format, **options)


def _object(content: bytes) -> Record:
    try:
        found = json.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("the file must be a JSON object")
    return found


def _read(records: Iterable[Record], source: DataSource, where: str) -> Iterator[Example]:
    with within(where):
        for number, record in enumerate(records, 1):
            with within(f"row {number}"):
                found = list(source.read(record))
            yield from found


def _folder(folder: str | os.PathLike[str] | None) -> Path | None:
    """The folder of corpora, if one is set."""
    named = folder if folder is not None else os.environ.get(CORPORA) or None
    if named is not None and not os.path.isdir(named):
        raise ConfigError(
            f"the folder of corpora (folder, or {CORPORA}) does not exist; correct its path"
        )
    return None if named is None else Path(named)


# ---- what is made ----------------------------------------------------------------------------------------------------


def _fantasy(split: str, limit: int | None, root: Path | None) -> _Loaded:
    seed = list(SOURCES["fantasy"].files).index(split)
    wanted = limit or USUAL
    passages = fantasy.generate(math.ceil(wanted / fantasy.QUESTIONS), seed=seed)
    return _Loaded(
        origin=f"generated, seed {seed}",
        examples=islice(fantasy.examples(passages), wanted),
        remarks=("fictional facts, generated by a grammar",),
    )


def _opinions(split: str, limit: int | None, root: Path | None) -> _Loaded:
    rows = (row for row in formats.records(OPINIONS) if row["split"] == split)
    return _Loaded(
        origin=f"packaged: {OPINIONS.name}",
        examples=_read(rows, SOURCES["opinions"], OPINIONS.name),
        remarks=("a few invented sentences, for trials: too few to compare anything by",),
    )


def _pairs(split: str, limit: int | None, root: Path | None) -> _Loaded | None:
    """Training pairs from SQuAD's training questions, without anything that is used for evaluation."""
    if split != "train" or (asked := _filed("squad", "train", root)) is None:
        return None
    judged = [found for name in ("qnli", "squad") if (found := _filed(name, "test", root))]
    unseen = [example for found in judged for example in found.examples]
    left: Counter[str] = Counter()
    questions = list(_whole(asked.examples, left, "reading"))
    made = pairs.make(questions, unseen=unseen)
    return _Loaded(
        origin=asked.origin,
        examples=made,
        remarks=(
            f"made of {len(made) // 2} of {len(questions)} training questions of SQuAD, each with two sentences",
            *_said(left),
        ),
    )


_MADE: Mapping[str, Callable[[str, int | None, Path | None], _Loaded | None]] = {
    "fantasy": _fantasy,
    "opinions": _opinions,
    "qnli": _pairs,
}
