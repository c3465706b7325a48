"""Loads data sets from files, generators or a hub; own files too.

In: a name or a file, a split, a limit. Out: a `DataSet`.
Not here: the table of data sets (`sources`), and reading records (`records`).
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

from textveil.config import registry
from textveil.errors import ConfigError, InputError, MissingExtra, UnknownName
from textveil.files import formats
from textveil_bench import fantasy
from textveil_bench.data import pairs
from textveil_bench.data.hub import fetch, format_hub_name
from textveil_bench.data.own import Columns, read_data_file
from textveil_bench.data.records import GOLD, SILVER, Record, add_location
from textveil_bench.data.sources import SOURCES, DataSource, File, Subset
from textveil_bench.examples import DataSet, Example, ExampleKind

CORPORA_VARIABLE = "TEXTVEIL_CORPORA"
"""The environment variable with the folder of corpora."""

TASK_PREFIX = "lm-eval:"
"""Prefix of the names of tasks of lm-evaluation-harness, whose documents are a data set."""

OPINIONS_FILE = Path(__file__).with_name("opinions.tsv")

DEFAULT_QUESTIONS = 500
"""Number of generated questions without a limit."""


def load(
    name: str,
    *,
    split: str = "test",
    limit: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    subset: str | None = None,
    **columns: Any,
) -> DataSet:
    """Loads a data set of `SOURCES`, or a file of your own.

    A file in the folder takes precedence. Without one, Fantasy is generated, QNLI's training pairs
    are made from SQuAD's training questions, and everything else is fetched from the hub.

    Args:
        name: as in `SOURCES`, alone or with a subset ("mmlu-medical"); `lm-eval:` and the name of a
            task of lm-evaluation-harness; or the path of a .csv, .tsv,
            .jsonl, .parquet or .txt, with `{split}` in it if each split has a file.
        split: "test" or "train"; "shots" for MMLU's few examples.
        limit: maximum number of examples, 1 or more; None for all. A test split gives its first
            examples; a training split, or a test split whose file is sorted by subject or article,
            gives evenly spaced ones, as a fair sample of the whole. SQuAD's gold questions always
            come before silver ones.
        folder: the folder of the files; None for the environment variable TEXTVEIL_CORPORA.
        subset: a named part; see `SOURCES`. A limit counts within it.
        columns: the columns of texts, label and answers in a file of your own: options of
            `Columns`; of a harness's task: options of `documents.TaskOptions`.

    Raises:
        UnknownName: there is no such data set or subset.
        ConfigError: a limit, split, folder or column is wrong; `datasets` is needed and not
            installed.
        InputError: a file has the wrong form, or is missing and the hub cannot be reached.
    """
    if limit is not None and limit < 1:
        raise ConfigError("a limit must be an integer of 1 or more, or none")
    if name.startswith(TASK_PREFIX):
        from textveil_bench.lm_eval.documents import load_documents

        return load_documents(name, limit, **columns)
    if not is_file(name):
        if name not in SOURCES and name in registry.list_names("dataset"):
            return _load_offered(name, split, limit)
        base, _, subset_name = name.partition("-")
        if base not in SOURCES:
            offered = dict.fromkeys((*SOURCES, *registry.list_names("dataset")))
            raise UnknownName("data set", name, offered)
        if columns or (subset_name and subset):
            raise ConfigError(
                f"{base} has its own fields and at most one subset; columns are for files of your "
                "own"
            )
        return _load_source(base, split, limit, _find_folder(folder), subset or subset_name)
    if subset is not None:
        raise ConfigError(
            f"subsets are for {', '.join(SOURCES)}; a file of your own is used as a whole"
        )
    data = read_data_file(name, split, Columns(**columns))
    drop_counts: Counter[str] = Counter()
    examples = tuple(_drop_incomplete(data.examples, drop_counts, data.kind))
    return _limit_examples(
        replace(data, examples=examples, remarks=(*data.remarks, *_format_drops(drop_counts))),
        limit,
        spread=split == "train",
    )


def _load_offered(name: str, split: str, limit: int | None) -> DataSet:
    """Loads a data set of another package.

    Raises:
        ConfigError: what its entry point returns is no `DataSet`.
    """
    data = registry.load("dataset", name)(split=split)
    if not isinstance(data, DataSet):
        raise ConfigError(
            f"the data set {name!r} must return a DataSet, got {type(data).__name__}; fix or "
            "uninstall its package"
        )
    return _limit_examples(replace(data, name=name), limit, spread=split == "train")


def is_file(name: str) -> bool:
    """True if a name is a file's path, not a data set."""
    return formats.parse_suffix(name) is not None or os.sep in name


@dataclass(frozen=True, kw_only=True)
class _LoadedExamples:
    """Examples and their origin."""

    origin: str
    examples: Iterable[Example]
    remarks: tuple[str, ...] = ()


def _load_source(
    name: str, split: str, limit: int | None, root: Path | None, subset: str
) -> DataSet:
    source = SOURCES[name]
    if split not in source.files:
        raise ConfigError(f"split must be one of {', '.join(source.files)} for {name}")
    if subset and subset not in source.subsets:
        raise UnknownName(f"subset of {name}", subset, source.subsets)
    part = source.subsets.get(subset, Subset())
    loaded = _find_examples(name, source, split, limit, root, part)
    drop_counts: Counter[str] = Counter()
    examples = _select_subset(
        part, split, _drop_incomplete(loaded.examples, drop_counts, source.kind)
    )
    spread = split == "train" or bool(source.sorted_by)
    if limit is not None and not spread:
        examples = islice(examples, limit)  # avoids reading the rest of a large file
    ordered_examples = (
        sorted(examples, key=lambda example: example.group != source.first)
        if source.first
        else list(examples)
    )
    remarks = [source.remarks[split]] if split in source.remarks else []
    if part.groups and split == "train":
        remarks.append(f"the whole split: {subset} restricts test examples only")
    data = DataSet(
        name=f"{name}-{subset}" if subset else name,
        split=split,
        kind=source.kind,
        fields=source.fields,
        labels=part.labels or source.labels,
        examples=tuple(ordered_examples),
        source=loaded.origin,
        remarks=(*remarks, *loaded.remarks, *_format_drops(drop_counts)),
    )
    data = _limit_examples(data, limit, spread=spread, first=source.first)
    if source.first == GOLD:
        counts = Counter(example.group for example in data.examples)
        remark = (
            f"{counts[GOLD]} questions have answers of people (gold), {counts[SILVER]} those of a "
            "model (silver)"
        )
        data = replace(data, remarks=(*data.remarks, remark))
    return data


# ---- which examples --------------------------------------------------------------------------------------------------


def _drop_incomplete(
    examples: Iterable[Example], drop_counts: Counter[str], kind: ExampleKind
) -> Iterator[Example]:
    """Yields the complete examples; counts the others.

    A complete example has text in every field and, for questions, an answer.
    """
    for example in examples:
        if not all(map(str.strip, example.texts)):
            drop_counts["with an empty text"] += 1
        elif kind == "reading" and not example.answers:
            drop_counts["without an answer that occurs in the text"] += 1
        else:
            yield example


def _format_drops(drop_counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"left out: {count} {reason}" for reason, count in drop_counts.items())


def _select_subset(subset: Subset, split: str, examples: Iterable[Example]) -> Iterator[Example]:
    """Yields the examples of a subset, with its labels.

    Groups restrict test examples only; a training split stays whole.
    """
    for example in examples:
        if subset.groups and split != "train" and example.group not in subset.groups:
            continue
        if not subset.label_map:
            yield example
        elif example.label is not None and (label := subset.label_map[example.label]) is not None:
            yield replace(example, label=label)


def _limit_examples(data: DataSet, limit: int | None, *, spread: bool, first: str = "") -> DataSet:
    """Limits the examples to the first ones, or to evenly spaced ones.

    Evenly spaced ones include as many as possible of group `first`.
    """
    count = len(data)
    if limit is None or count <= limit:
        return data
    if not spread:
        return data.take(limit)
    leading = sum(example.group == first for example in data.examples) if first else 0
    indices = [
        *_space_evenly(leading, limit),
        *(leading + i for i in _space_evenly(count - leading, limit - leading)),
    ]
    examples = tuple(data.examples[i] for i in indices)
    return replace(
        data, examples=examples, remarks=(*data.remarks, f"{limit} of {count} rows, evenly spaced")
    )


def _space_evenly(count: int, limit: int) -> list[int]:
    """Computes at most `limit` evenly spaced numbers below `count`, from 0 on."""
    limit = max(0, min(count, limit))
    return [i * count // limit for i in range(limit)]


# ---- where examples come from ----------------------------------------------------------------------------------------


def _find_examples(
    name: str, source: DataSource, split: str, limit: int | None, root: Path | None, part: Subset
) -> _LoadedExamples:
    if not part.is_generated and (loaded := _load_from_folder(name, split, root)):
        return loaded
    if name in _MAKERS and (generated := _MAKERS[name](split, limit, root)):
        return generated
    if source.hub is None:
        raise InputError(f"{_format_missing_file(name, split)}; no hub has it")
    hub_split = source.hub.splits[split]
    origin = format_hub_name(source.hub, hub_split)
    try:
        records = fetch(source.hub, hub_split)
    except (InputError, MissingExtra) as error:
        kind, reason = type(error), str(error)
    else:
        return _LoadedExamples(origin=origin, examples=_read_examples(records, source, origin))
    raise kind(f"{_format_missing_file(name, split)}, or come from the hub: {reason}")


def _format_missing_file(name: str, split: str) -> str:
    names = ", ".join(file.name for file in SOURCES[name].list_files(split))
    return (
        f"{name} ({split}) must be in the folder of corpora (folder, or {CORPORA_VARIABLE}) as "
        f"{names}, with or without .gz"
    )


def _load_from_folder(name: str, split: str, root: Path | None) -> _LoadedExamples | None:
    """Loads the first existing file; a star stands for all matching files."""
    if root is None:
        return None
    for file in SOURCES[name].list_files(split):
        if paths := file.find(root):
            places = [path.relative_to(root).as_posix() for path in paths]
            origin = places[0] if "*" not in file.name else file.name
            return _LoadedExamples(
                origin=origin,
                examples=_read_files(file, dict(zip(places, paths, strict=True)), name),
                remarks=(file.remark,) if file.remark else (),
            )
    return None


def _read_files(file: File, paths: Mapping[str, Path], name: str) -> Iterator[Example]:
    for place, path in paths.items():
        extra = {file.star: file.match_star(path)} if file.star else {}
        yield from _read_examples(
            ({**row, **extra} for row in _read_rows(file, path)), SOURCES[name], place
        )


def _read_rows(file: File, path: Path) -> Iterator[Record]:
    """Yields the rows of a file; a .json is a single row."""
    if file.format is None and ".json" in path.suffixes[-2:]:
        with formats.open_file(path, packing="gz" if path.suffix == ".gz" else "") as stream:
            yield _parse_object(stream.read())
        return
    options: dict[str, Any] = {"names": file.columns} if file.columns else {}
    if not file.quoted:
        options["quoted"] = False
    yield from formats.read_records(path, ending=file.format, **options)


def _parse_object(content: bytes) -> Record:
    try:
        document = json.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise InputError("the file must be a JSON object")
    return document


def _read_examples(
    records: Iterable[Record], source: DataSource, location: str
) -> Iterator[Example]:
    with add_location(location):
        for number, record in enumerate(records, 1):
            with add_location(f"row {number}"):
                examples = list(source.read(record))
            yield from examples


def _find_folder(folder: str | os.PathLike[str] | None) -> Path | None:
    """Finds the folder of corpora, if one is set."""
    path = folder if folder is not None else os.environ.get(CORPORA_VARIABLE) or None
    if path is not None and not os.path.isdir(path):
        raise ConfigError(
            f"the folder of corpora (--folder, or {CORPORA_VARIABLE}) does not exist; correct its "
            "path, or leave it out: with pip install 'textveil-bench[hub]' data sets come from a hub"
        )
    return None if path is None else Path(path)


# ---- what is made ----------------------------------------------------------------------------------------------------


def _generate_fantasy(split: str, limit: int | None, root: Path | None) -> _LoadedExamples:
    seed = list(SOURCES["fantasy"].files).index(split)
    count = limit or DEFAULT_QUESTIONS
    passages = fantasy.generate(math.ceil(count / fantasy.QUESTIONS_PER_PARAGRAPH), seed=seed)
    return _LoadedExamples(
        origin=f"generated, seed {seed}",
        examples=islice(fantasy.build_examples(passages), count),
        remarks=("fictional facts, generated by a grammar",),
    )


def _load_opinions(split: str, limit: int | None, root: Path | None) -> _LoadedExamples:
    rows = (row for row in formats.read_records(OPINIONS_FILE) if row["split"] == split)
    return _LoadedExamples(
        origin=f"packaged: {OPINIONS_FILE.name}",
        examples=_read_examples(rows, SOURCES["opinions"], OPINIONS_FILE.name),
        remarks=("a few invented sentences, for trials: too few to compare anything by",),
    )


def _make_pairs(split: str, limit: int | None, root: Path | None) -> _LoadedExamples | None:
    """Makes training pairs from SQuAD's questions, without any evaluation data."""
    if split != "train" or (training := _load_from_folder("squad", "train", root)) is None:
        return None
    evaluation_sets = [
        loaded for name in ("qnli", "squad") if (loaded := _load_from_folder(name, "test", root))
    ]
    unseen = [example for loaded in evaluation_sets for example in loaded.examples]
    drop_counts: Counter[str] = Counter()
    questions = list(_drop_incomplete(training.examples, drop_counts, "reading"))
    pair_examples = pairs.make_pairs(questions, unseen=unseen)
    return _LoadedExamples(
        origin=training.origin,
        examples=pair_examples,
        remarks=(
            (
                f"made of {len(pair_examples) // 2} of {len(questions)} training questions of "
                "SQuAD, each with two sentences"
            ),
            *_format_drops(drop_counts),
        ),
    )


_MAKERS: Mapping[str, Callable[[str, int | None, Path | None], _LoadedExamples | None]] = {
    "fantasy": _generate_fantasy,
    "opinions": _load_opinions,
    "qnli": _make_pairs,
}
