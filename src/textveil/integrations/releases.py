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
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, time, timedelta
from hashlib import sha256
from numbers import Number
from pathlib import Path
from typing import Any, Self

from textveil.errors import ConfigError, InputError, propose, quote
from textveil.guarantee import Guarantee, condense, summarize
from textveil.pipeline import Privatizer, Protector, Result
from textveil.randomness import KeyedRandomness, SystemRandomness, fresh_name

_NAME = re.compile(r"[a-z_][A-Za-z0-9_.\-]{0,63}")
"""The form of a name that a program gives a field.

Other labels may be texts, such as the names of persons.
"""

FINISHED = (
    "this release is finished: its key is destroyed, as when the process that began it ends. A new release draws anew, "
    "and adds to what was released before"
)


def privatizer_of(given: Privatizer | Protector | str) -> Privatizer:
    """Returns a privatizer from a user's argument.

    A privatizer itself, a protector's, or that of a profile.

    Raises:
        ConfigError: it is something else. UnknownName: no profile has this name.
    """
    if isinstance(given, str):
        return Privatizer.from_profile(given)
    if isinstance(given, Protector):
        return given.privatizer
    if isinstance(given, Privatizer):
        return given
    raise ConfigError(
        f"give a Privatizer, a Protector or the name of a profile, not {type(given).__name__}"
    )


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
        self, privatizer: Privatizer | Protector | str, *, key: bytes | None = None
    ) -> None:
        self._privatizer = privatizer_of(privatizer).with_parts(randomness=SystemRandomness())
        if self._privatizer.words.lasting:
            raise ConfigError(
                "words.lasting is for sessions of a subject, and rows have none: leave it out"
            )
        try:
            # once, so that a cache that hashes it sees one release
            self._packed = pickle.dumps(self._privatizer)
        except Exception as error:
            raise ConfigError(
                "a release may go to other processes, so all parts of its privatizer must pickle "
                f"({type(error).__name__})"
            ) from None
        self.name = fresh_name()
        made = KeyedRandomness.new_key() if key is None else key
        KeyedRandomness(made)  # or it is refused
        folder = Path(tempfile.mkdtemp(prefix="textveil-"))  # that nobody else can read
        self._path, self._digest = folder / "key", sha256(made).hexdigest()
        with os.fdopen(
            os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        ) as stream:
            stream.write(made)
        self._end = weakref.finalize(self, _destroy, folder, os.getpid())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._privatizer!r})"

    def __copy__(self) -> Self:
        """Returns the release itself: a copy is the same release."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (type(self), self._state())

    def _state(self) -> tuple[Any, ...]:
        return self.name, self._packed, str(self._path), self._digest

    @classmethod
    def _from_state(cls, state: tuple[Any, ...]) -> Self:
        result = cls.__new__(cls)
        result.name, result._packed, path, result._digest = state[:4]
        result._path = Path(path)
        result._privatizer = _build_privatizer(result.name, result._packed)
        return result

    def finish(self) -> None:
        """Destroys the key, which ends the release.

        Nothing can be drawn for it any more.

        Raises:
            ConfigError: this is not the object that began the release.
        """
        if "_end" not in vars(self):
            raise ConfigError(
                "a release is finished by the object that began it, not by a copy in another process"
            )
        self._end()

    def draw(
        self, texts: Sequence[str | None], ids: Sequence[object], column: str
    ) -> list[Result | None]:
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
            raise InputError("every row of a release needs an id of its own")
        for text in texts:
            if not isinstance(text, str | None):
                raise InputError(
                    f"column {column!r} must hold texts, and has {type(text).__name__}"
                )
        named = list(map(_name_id, ids))
        if len(set(named)) < len(named):
            raise ConfigError(
                "every row of a release needs an id of its own, and an id occurs twice"
            )
        present = [i for i, text in enumerate(texts) if text is not None]
        source = KeyedRandomness(self._read_key(), field=column, ids=[named[i] for i in present])
        drawn = self._privatizer.with_parts(randomness=source).privatize_many(
            [str(texts[i]) for i in present]
        )
        made: list[Result | None] = [None] * len(texts)
        for i, result in zip(present, drawn, strict=True):
            made[i] = result
        return made

    def _read_key(self) -> bytes:
        with suppress(OSError):
            key = self._path.read_bytes()
            if sha256(key).hexdigest() == self._digest:
                return key
        raise ConfigError(FINISHED)


def statement(results: Iterable[Result | None]) -> Guarantee | None:
    """Combines the statements of releases, counted by value.

    None where there are none.
    """
    several = [each.guarantee for each in results if each is not None]
    return condense(summarize(several)) if several else None


def holds_text(value: object) -> bool:
    """Says whether a value is text, or contains text.

    All do but numbers, dates, times and what is made of these.
    """
    if value is None or isinstance(value, Number | date | time | timedelta):
        return False
    if isinstance(value, str | bytes | bytearray | memoryview):
        return True
    if isinstance(value, Mapping):
        return any(holds_text(each) for pair in value.items() for each in pair)
    if hasattr(value, "tolist"):
        return holds_text(value.tolist())
    return not isinstance(value, Collection) or any(holds_text(each) for each in value)


def check_metadata(metadata: Mapping[Any, object], keep: Collection[str]) -> None:
    """Refuses documents whose metadata would keep text.

    Args:
        metadata: of the document.
        keep: fields that may stay.

    Raises:
        InputError: another field holds text, or its name is none such as a variable has, with a
            small letter first.
    """
    for i, (name, value) in enumerate(metadata.items(), 1):
        if name in keep:
            continue
        if not _is_label(name):
            raise InputError(
                f"the name of field {i} in the metadata may be text: name it in keep, or remove it before"
            )
        if holds_text(value):
            raise InputError(
                f"metadata[{quote(name)}] holds text: name it in keep to let it stay, or remove it before"
            )


def check_columns(
    names: Collection[str], with_text: Iterable[str], columns: Sequence[str], others: Sequence[str]
) -> None:
    """Refuses a table in which text would be left as it is.

    Args:
        names: of all columns.
        with_text: those that hold text.
        columns: those that are released.
        others: those that may stay.

    Raises:
        InputError: a column is missing, or holds text that nobody named, or its label is none such
            as a variable has, with a small letter first, and nobody named it.
    """
    for name in (*columns, *others):
        if name not in names:
            known = list(filter(_is_label, names))
            raise InputError(f"there is no column {quote(name)}; {propose(str(name), known)}")
    said = {*columns, *others}
    odd = [i for i, name in enumerate(names, 1) if name not in said and not _is_label(name)]
    if odd:  # such as the values of another column, of which a pivot makes labels
        raise InputError(
            f"the label of column {odd[0]} may be text: name it in keep to let it stay, or rename it before"
        )
    for name in with_text:
        if name not in said:
            raise InputError(
                f"column {quote(name)} holds text too: name it in columns to privatize it, name it in keep to let it "
                "stay as it is, or remove it before"
            )


def _is_label(name: object) -> bool:
    """Says whether a label is a number, or a program's name."""
    return isinstance(name, int) or (isinstance(name, str) and _NAME.fullmatch(name) is not None)


def listed(columns: str | Iterable[str]) -> tuple[str, ...]:
    """Returns the names of columns as a tuple.

    A single one may be given alone.
    """
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _name_id(given: object) -> str:
    if isinstance(given, str):
        return f"s{given}"
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise InputError(f"ids must be strings or whole numbers, got {type(given).__name__}")
    return f"i{given.__index__()}"


_PRIVATIZERS: dict[tuple[str, int], Privatizer] = {}


def _build_privatizer(name: str, packed: bytes) -> Privatizer:
    """Returns this process's privatizer of a release.

    Built once; a fork builds its own.
    """
    key = name, os.getpid()
    if key not in _PRIVATIZERS:
        _PRIVATIZERS.clear()
        _PRIVATIZERS[key] = pickle.loads(packed)
    return _PRIVATIZERS[key]


def _arrived(kind: type[TableRelease], state: tuple[Any, ...]) -> TableRelease:
    return kind._from_state(state)


def _destroy(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked worker leaves the key to its owner
        shutil.rmtree(folder, ignore_errors=True)
