"""Releases of tables: each row is drawn once.

Also where a host asks for it again, in any process.

In: a privatizer; columns of rows with their ids. Out: released texts and their statements, the same
whenever asked.
Not here: the hosts (`datasets`, `frames`, `datatrove` and so on), and runs over files (`corpus`).

The key of a release lies in a file that only its owner can read, and ends with the process that
began the release, or with `finish`. What is pickled on its way to a worker, or hashed by a cache,
is where the key lies, never the key.
"""

import os
import pickle
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, time, timedelta
from functools import partial
from hashlib import sha256
from numbers import Number
from pathlib import Path
from typing import Any, Self, TypeVar

from textveil.errors import ConfigError, InputError, quote, suggest_names
from textveil.guarantee import Guarantee, TextGuarantee, condense, summarize
from textveil.pipeline import Privatizer, Protector, Result, TextPrivatizer, TextResult
from textveil.randomness import KeyedRandomness, SystemRandomness, make_unique_name
from textveil.session import Session

_LABEL_PATTERN = re.compile(r"[a-z_][A-Za-z0-9_.\-]{0,63}")
"""The form of a name that a program gives a field.

Other labels may be texts, such as the names of persons.
"""

RowPrivatizer = Privatizer | TextPrivatizer
"""Privatizer of rows: of their words, or of each as a whole."""

RowResult = Result | TextResult

T = TypeVar("T")

Statement = Guarantee | TextGuarantee

BESIDE_MESSAGE = (
    "would stay beside public texts, and no bound covers what it says: name it in keep to let it "
    "stay, or remove it first"
)
"""What is wrong with a column that nobody named, where whole texts are released."""

FINISHED_MESSAGE = (
    "this release is finished: its key is destroyed, as when the process that began it ends. A new "
    "release draws again, and its privacy loss adds to that of the earlier release"
)


def resolve_privatizer(argument: Privatizer | Protector | str) -> Privatizer:
    """Returns a privatizer from a user's argument.

    A privatizer itself, a protector's, or that of a profile.

    Raises:
        ConfigError: it is something else. UnknownName: no profile has this name.
    """
    if isinstance(argument, str):
        return Privatizer.from_profile(argument)
    if isinstance(argument, Protector):
        return argument.privatizer
    if isinstance(argument, Privatizer):
        return argument
    raise ConfigError(
        f"give a Privatizer, a Protector or the name of a profile, not {type(argument).__name__}"
    )


def resolve_row_privatizer(argument: RowPrivatizer | Protector | str) -> RowPrivatizer:
    """Returns a privatizer of rows from a user's argument.

    As `resolve_privatizer` does, or one of whole texts itself.

    Raises:
        ConfigError: it is something else. UnknownName: no profile has this name.
    """
    return argument if isinstance(argument, TextPrivatizer) else resolve_privatizer(argument)


class TableRelease:
    """One release of rows, the same whenever a row is drawn.

    Such as by a retry or in another process.

    Draws follow from a key, a row's id, its column, its text and the options (`KeyedRandomness`).
    It pickles; a pickle that arrives after the end finds no key, and draws nothing.

    Args:
        privatizer: privatizes them; its seed is not used.
        key: 32 bytes, for tests only: whoever has it can repeat the draws.

    Attributes:
        name: of the release, which no other one has.

    Raises:
        ConfigError: the privatizer is none, or cannot go to other processes.
    """

    def __init__(
        self, privatizer: RowPrivatizer | Protector | str, *, key: bytes | None = None
    ) -> None:
        self._privatizer: RowPrivatizer = resolve_row_privatizer(privatizer).with_parts(
            randomness=SystemRandomness()
        )
        if isinstance(self._privatizer, Privatizer) and self._privatizer.words.lasting:
            raise ConfigError(
                "words.lasting needs the sessions of a subject, and rows have no session: leave it "
                "out"
            )
        try:
            # once, so that a cache that hashes it sees one release
            self._packed = pickle.dumps(self._privatizer)
        except Exception as error:
            raise ConfigError(
                "a release may go to other processes, so all parts of its privatizer must pickle "
                f"({type(error).__name__})"
            ) from None
        self.name = make_unique_name()
        release_key = KeyedRandomness.make_key() if key is None else key
        KeyedRandomness(release_key)  # or it is refused
        folder = Path(tempfile.mkdtemp(prefix="textveil-"))  # that nobody else can read
        self._path, self._digest = folder / "key", sha256(release_key).hexdigest()
        with os.fdopen(
            os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        ) as stream:
            stream.write(release_key)
        self._end = weakref.finalize(self, _delete_key, folder, os.getpid())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._privatizer!r})"

    def __copy__(self) -> Self:
        """Returns the release itself: a copy is the same release."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_release, (type(self), self._dump_state())

    def _dump_state(self) -> tuple[Any, ...]:
        return self.name, self._packed, str(self._path), self._digest

    @classmethod
    def _load_state(cls, state: tuple[Any, ...]) -> Self:
        # Not by `__init__`, which would make another key, and delete it at the end.
        result = cls.__new__(cls)
        result.name, result._packed, path, result._digest = state[:4]
        result._path = Path(path)
        result._privatizer = _build_privatizer(result.name, result._packed)
        return result

    @property
    def is_whole(self) -> bool:
        """True if a public text takes the place of each."""
        return isinstance(self._privatizer, TextPrivatizer)

    def finish(self) -> None:
        """Destroys the key, which ends the release.

        Nothing can be drawn for it any more.

        Raises:
            ConfigError: this is not the object that began the release.
        """
        if "_end" not in vars(self):
            raise ConfigError(
                "only the object that began a release can finish it, not a copy in another process"
            )
        self._end()

    def draw(
        self, texts: Sequence[str | None], ids: Sequence[object], column: str
    ) -> list[RowResult | None]:
        """Draws the releases of some rows of a column.

        None for a row without a text.

        Args:
            texts: of the rows.
            ids: strings or whole numbers, each different in the whole release.
            column: its name.

        Raises:
            InputError: a text is none, or an id is missing. ConfigError: the release is finished,
                or an id comes twice.
        """
        if len(ids) != len(texts):
            raise InputError("every row of a release needs its own id")
        for text in texts:
            if not isinstance(text, str | None):
                raise InputError(
                    f"column {column!r} must hold texts, but holds {type(text).__name__}"
                )
        names = list(map(_format_id, ids))
        if len(set(names)) < len(names):
            raise ConfigError("every row of a release needs its own id, and an id occurs twice")
        present = [name for name, text in zip(names, texts, strict=True) if text is not None]
        source = KeyedRandomness(self._read_key(), field=column, ids=present)
        privatizer = self._privatizer.with_parts(randomness=source)
        return apply_to_present(texts, get_privatize(privatizer))

    def _read_key(self) -> bytes:
        with suppress(OSError):
            key = self._path.read_bytes()
            if sha256(key).hexdigest() == self._digest:
                return key
        raise ConfigError(FINISHED_MESSAGE)


def get_privatize(
    privatizer: RowPrivatizer, session: Session | None = None
) -> Callable[[list[str]], Iterable[RowResult]]:
    """Returns the function that privatizes texts, with the session where there is one."""
    if isinstance(privatizer, TextPrivatizer):
        return privatizer.privatize_many
    return partial(privatizer.privatize_many, session=session)


def apply_to_present(
    texts: Sequence[str | None], function: Callable[[list[str]], Iterable[T]]
) -> list[T | None]:
    """Applies a function to the texts that are there, all at once; None for missing ones."""
    present = {i: text for i, text in enumerate(texts) if text is not None}
    results = dict(zip(present, function([*present.values()]), strict=True))
    return [results.get(i) for i in range(len(texts))]


def list_released(results: Iterable[RowResult | None]) -> list[str | None]:
    """Lists the released texts; None for missing ones."""
    return [None if result is None else result.text for result in results]


def merge_statements(results: Iterable[RowResult | None]) -> Statement | None:
    """Combines the statements of releases, counted by value.

    None where there are none.
    """
    statements = [result.guarantee for result in results if result is not None]
    return add_statements(statements) if statements else None


def note_copies(statement: Statement | None, copied: bool) -> Statement | None:
    """Returns the statement, which says of public texts whether anything was copied beside."""
    if isinstance(statement, TextGuarantee) and copied:
        return replace(statement, labels_covered=False)
    return statement


def add_statements(statements: Sequence[Statement]) -> Statement:
    """Combines at least one statement, all about words or all about whole texts.

    Raises:
        GuaranteeError: they are of different kinds.
    """
    combined: Statement = summarize(statements)  # type: ignore[arg-type]  # it refuses a mixture
    return condense(combined) if isinstance(combined, Guarantee) else combined


def has_text(value: object) -> bool:
    """Says whether a value is text, or contains text.

    All do but numbers, dates, times and what is made of these.
    """
    if value is None or isinstance(value, Number | date | time | timedelta):
        return False
    if isinstance(value, str | bytes | bytearray | memoryview):
        return True
    if isinstance(value, Mapping):
        return any(has_text(item) for pair in value.items() for item in pair)
    if hasattr(value, "tolist"):
        return has_text(value.tolist())
    return not isinstance(value, Collection) or any(has_text(item) for item in value)


def check_metadata(
    metadata: Mapping[Any, object], keep: Collection[str], *, is_whole: bool = False
) -> None:
    """Refuses documents whose metadata would keep text.

    Args:
        metadata: of the document.
        keep: fields that may stay.
        is_whole: whether fields without text are refused, too, as beside public texts.

    Raises:
        InputError: another field holds text, or its name is none such as a variable has, with a
            small letter first.
    """
    for i, (name, value) in enumerate(metadata.items(), 1):
        if name in keep:
            continue
        if not _is_label(name):
            raise InputError(
                f"the name of field {i} in the metadata may be private text: name it in keep, or "
                "remove it first"
            )
        if has_text(value):
            raise InputError(
                f"metadata[{quote(name)}] holds text: name it in keep to let it stay, or remove it "
                "first"
            )
        if is_whole:
            raise InputError(f"metadata[{quote(name)}] {BESIDE_MESSAGE}")


def check_columns(
    names: Collection[str],
    text_columns: Iterable[str],
    columns: Sequence[str],
    allowed: Sequence[str],
    *,
    is_whole: bool = False,
    remedy: str = "",
) -> None:
    """Refuses a table in which text would be left as it is.

    Args:
        names: of all columns.
        text_columns: those that hold text.
        columns: those that are released.
        allowed: those that may stay.
        is_whole: whether columns without text are refused, too, as beside public texts.
        remedy: how a table of this kind loses the columns that nobody named, for errors.

    Raises:
        InputError: a column is missing, or holds text that nobody named, or its label is none such
            as a variable has, with a small letter first, and nobody named it.
    """
    check_present(names, (*columns, *allowed))
    named_columns = {*columns, *allowed}
    odd = [
        i for i, name in enumerate(names, 1) if name not in named_columns and not _is_label(name)
    ]
    if odd:  # such as the values of another column, of which a pivot makes labels
        raise InputError(
            f"the label of column {odd[0]} may be private text: name it in keep to let it stay, or "
            "rename the column first"
        )
    unnamed = [quote(name) for name in text_columns if name not in named_columns]
    if unnamed:
        hold, it = ("holds", "it") if len(unnamed) == 1 else ("hold", "each")
        raise InputError(
            f"column{'s' * (len(unnamed) > 1)} {', '.join(unnamed)} {hold} text too: name {it} in "
            f"columns to privatize it, name {it} in keep to let it stay unchanged, or remove "
            f"{it} first{remedy}"
        )
    if is_whole and (others := [name for name in names if name not in named_columns]):
        raise InputError(f"column {quote(others[0])} {BESIDE_MESSAGE}{remedy}")


def check_present(names: Collection[str], wanted: Iterable[str]) -> None:
    """Refuses a table that lacks a column.

    Raises:
        InputError: it does; names that may be private text are not suggested.
    """
    for name in wanted:
        if name not in names:
            labels = list(filter(_is_label, names))
            raise InputError(
                f"there is no column {quote(name)}; {suggest_names(str(name), labels)}"
            )


def _is_label(name: object) -> bool:
    """Says whether a label is a number, or a program's name."""
    return isinstance(name, int) or (
        isinstance(name, str) and _LABEL_PATTERN.fullmatch(name) is not None
    )


def normalize_names(columns: str | Iterable[str]) -> tuple[str, ...]:
    """Returns the names of columns as a tuple.

    A single one may be given alone.
    """
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _format_id(value: object) -> str:
    if isinstance(value, str):
        # The letter keeps the string "1" and the number 1 apart.
        return f"s{value}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"ids must be strings or whole numbers, got {type(value).__name__}")
    return f"i{value.__index__()}"


_PRIVATIZERS: dict[tuple[str, int], RowPrivatizer] = {}


def _build_privatizer(name: str, packed: bytes) -> RowPrivatizer:
    """Returns this process's privatizer of a release.

    Built once; a fork builds its own.
    """
    key = name, os.getpid()
    if key not in _PRIVATIZERS:
        _PRIVATIZERS.clear()
        _PRIVATIZERS[key] = pickle.loads(packed)
    return _PRIVATIZERS[key]


def _rebuild_release(kind: type[TableRelease], state: tuple[Any, ...]) -> TableRelease:
    return kind._load_state(state)


def _delete_key(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked worker leaves the key to its owner
        shutil.rmtree(folder, ignore_errors=True)
