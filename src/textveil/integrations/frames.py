"""Data frames of pandas and polars: columns of texts, released at once.

In: a frame, a privatizer. Out: a new frame with released columns, and one statement for all of
them.
Not here: datasets whose rows are asked for again (`datasets`), and runs over files (`corpus`).
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from textveil.errors import ConfigError, InputError
from textveil.guarantee import Guarantee
from textveil.integrations.notebook_progress import show_progress
from textveil.integrations.releases import (
    RowPrivatizer,
    RowResult,
    Statement,
    apply_to_present,
    check_columns,
    check_present,
    get_privatize,
    has_text,
    list_released,
    merge_statements,
    normalize_names,
    note_copies,
    resolve_row_privatizer,
)
from textveil.integrations.synthesis import synthesize_columns
from textveil.library import Library
from textveil.pipeline import (
    Protector,
    Result,
    Synthesis,
    TextPrivatizer,
    describe_releases,
)
from textveil.protect import Finding
from textveil.render.notebook import render_rows
from textveil.session import Session
from textveil.text import Released

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["FrameRelease", "find", "privatize", "restore", "synthesize"]

Item = TypeVar("Item")
Frame = TypeVar("Frame", "pandas.DataFrame", "polars.DataFrame")

SHOWN_ROWS = 8
"""Rows that a notebook shows of a release."""


class FrameRelease(tuple[Any, Statement | None]):
    """A released frame and its statement, which a notebook shows in colours.

    A pair: `frame, statement = release`.
    """

    _rows: Mapping[str, Sequence[Released | str | None]]
    _note: str

    @classmethod
    def build(
        cls,
        frame: Any,
        statement: Statement | None,
        results: Mapping[str, Sequence[RowResult | None]],
    ) -> Self:
        """Builds a release from the results of each released column."""
        self = cls((frame, statement))
        present = [row for rows in results.values() for row in rows if row is not None]
        words = [result.released for result in present if isinstance(result, Result)]
        self._note = "There were no texts."
        if isinstance(statement, Guarantee):
            self._note = describe_releases(words, statement)
        elif statement is not None:
            self._note = statement.summary()
        self._rows = {
            name: [
                result.released if isinstance(result, Result) else getattr(result, "text", None)
                for result in rows[:SHOWN_ROWS]
            ]
            for name, rows in results.items()
        }
        return self

    @property
    def frame(self) -> Any:
        """The new frame."""
        return self[0]

    @property
    def statement(self) -> Statement | None:
        """The statement about all of it; None without any text."""
        return self[1]

    def __repr__(self) -> str:
        """Returns the released columns, and the statement in one line."""
        columns = ", ".join(self._rows)
        return f"<FrameRelease of {columns}, {len(self.frame):,} rows: {self._note}>"

    def _repr_html_(self) -> str:
        """Returns the first rows in colours, for notebooks, and the statement in one line."""
        rows = list(zip(*self._rows.values(), strict=True))
        return render_rows([*self._rows], rows, len(self.frame), self._note)


def privatize(
    frame: Frame,
    privatizer: RowPrivatizer | Protector | str,
    columns: str | Iterable[str] = "text",
    *,
    keep: str | Iterable[str] = (),
    session: Session | None = None,
) -> FrameRelease:
    """Releases columns of a frame, with one statement for all.

    Each call draws anew, and adds to the one before. A notebook shows how far it is.

    Args:
        frame: of pandas or polars. It stays as it is.
        privatizer: a `Privatizer`, a `TextPrivatizer`, a `Protector`, or the name of a profile.
        columns: with the texts; rows without a text stay without.
        keep: columns with text that stay as they are. All others with text are refused, and so is
            an index of pandas with text, unless its name is here, or "index", or "level_0" and so
            on of several without names. Beside public texts of a `TextPrivatizer` all others are
            refused, with text or without.
        session: gives equal values of all rows one placeholder, and restores answers (`restore`).

    Returns:
        The new frame, and its statement; None without any text.

    Raises:
        InputError: a column holds text and is not named, or what it has is no text. ConfigError: it
            is no frame, or a `TextPrivatizer` has a session.
    """
    names, allowed = normalize_names(columns), normalize_names(keep)
    veil = resolve_row_privatizer(privatizer)
    is_whole = isinstance(veil, TextPrivatizer)
    if session is not None and is_whole:
        raise ConfigError("public texts need no session, and restore nothing: leave it out")
    check_present(_list_columns(frame), names)
    columns_of_texts = {name: _read_texts(frame, name) for name in names}  # all, before any draw
    check_frame(frame, names, allowed, is_whole=is_whole)
    draw = get_privatize(veil, session)
    results = {
        name: apply_to_present(texts, partial(_watch, draw, f"rows of {name}"))
        for name, texts in columns_of_texts.items()
    }
    new_frame: Any = _put_columns(
        frame, {name: list_released(rows) for name, rows in results.items()}
    )
    if _find_host(frame) == "pandas":  # what else the original says
        new_frame.attrs = {}
        new_frame.columns = new_frame.columns.set_names([None] * new_frame.columns.nlevels)
    statement = merge_statements(result for rows in results.values() for result in rows)
    return FrameRelease.build(new_frame, note_copies(statement, bool(allowed)), results)


def find(
    frame: Frame, protector: Protector | str = "prompt", columns: str | Iterable[str] = "text"
) -> Frame:
    """Finds what is private in columns, and what stays and why.

    Places are private: keep the new frame to yourself.

    Args:
        frame: of pandas or polars. It stays as it is.
        protector: a `Protector`, or the name of a profile for one.
        columns: with the texts.

    Returns:
        A frame with a row for each finding: the number of its row from 0, its column, and the
        fields of `Finding`; no words.

    Raises:
        InputError: a column is missing or holds no texts. ConfigError: it is no frame.
    """
    names, finder = normalize_names(columns), protector
    if isinstance(finder, str):
        finder = Protector(finder)
    check_present(_list_columns(frame), names)
    rows = list[dict[str, Any]]()
    for name in names:
        findings_by_row = apply_to_present(
            _read_texts(frame, name), partial(_watch, finder.find_many, f"rows of {name}")
        )
        for i, findings in enumerate(findings_by_row):
            rows += [{"row": i, "column": name} | finding.to_json() for finding in findings or ()]
    fields = ["row", "column", *(field.name for field in dataclasses.fields(Finding))]
    return type(frame)({name: [row[name] for row in rows] for name in fields})


def restore(frame: Frame, session: Session, columns: str | Iterable[str] = "text") -> Frame:
    """Puts originals back into columns, such as answers to released texts.

    Args:
        frame: of pandas or polars. It stays as it is.
        session: of the release.
        columns: with placeholders, and names that were drawn.

    Raises:
        InputError: a column is missing or holds no texts. ConfigError: it is no frame.
    """
    names = normalize_names(columns)
    check_present(_list_columns(frame), names)
    restored = {
        name: [text if text is None else session.restore(text) for text in _read_texts(frame, name)]
        for name in names
    }
    new_frame: Frame = _put_columns(frame, restored)
    return new_frame


def synthesize(
    frame: Frame,
    text: str = "text",
    *,
    label: str | None = None,
    subject: str | None = None,
    library: Library | str | Path,
    label_names: Iterable[object] = (),
    epsilon: float,
    **options: Any,
) -> tuple[Frame, Synthesis]:
    """Synthesizes a frame of public texts like those of a frame, by one noisy count of them.

    No value of the frame is in the new one. Rows without a text, and with a label that is not
    listed, are not counted.

    Args:
        frame: of pandas or polars. It stays as it is.
        text: the column with the texts.
        label: the column with a label for each.
        subject: the column that says whom each text is about; epsilon is then for a subject.
        library: public texts made without these, or their file.
        label_names: the labels, a public list.
        epsilon: for one text, or one subject, that is added or removed.
        **options: of `textveil.synthesize`, such as about, count and per_subject.

    Returns:
        The new frame with text, label, cell and source, and the synthesis: its `votes`, its
        `guarantee`, and for you alone `left_out`.

    Raises:
        ConfigError, BudgetError: an option is wrong, or it is no frame.
        InputError: a column is missing, or a value of it is none such.
    """
    synthesis = synthesize_columns(
        _list_columns(frame),
        partial(_list_values, frame),
        text=text,
        label=label,
        subject=subject,
        library=library,
        label_names=label_names,
        epsilon=epsilon,
        **options,
    )
    return type(frame)(list(synthesis.yield_rows())), synthesis


def check_frame(
    frame: Any, columns: Sequence[str], keep: Sequence[str], *, is_whole: bool = False
) -> None:
    """Refuses a frame in which text would stay.

    Raises:
        InputError: a column or an index holds text and is not named; see `check_columns`.
    """
    named = [name for name in (*columns, *keep) if name in frame.columns]
    remedy = f": frame[{named!r}]"
    if _find_host(frame) == "polars":
        texts = [name for name in frame.columns if has_text(frame[name].to_list())]
        check_columns(frame.columns, texts, columns, keep, is_whole=is_whole, remedy=remedy)
        return
    if not frame.columns.is_unique:
        raise InputError("the names of columns must differ")
    texts = [name for name in frame.columns if has_text(frame[name].dropna())]
    levels = _list_levels(frame.index)
    for name, level in zip(levels, range(frame.index.nlevels), strict=True):
        if not has_text(frame.index.get_level_values(level).dropna()):
            continue
        if levels.count(name) > 1 or name in frame.columns:
            raise InputError(
                "an index with text has the name of a column, or of another index: rename it"
            )
        texts.append(name)
    # the numbers of rows say nothing but their order
    is_numbered = (
        is_whole
        and type(frame.index).__name__ == "RangeIndex"
        and frame.index.start == 0
        and frame.index.step == 1  # else it says which rows were taken out
    )
    numbers = [name for name in levels if is_numbered and name not in frame.columns]
    names = [*frame.columns, *levels]
    if {*texts} & {*levels} - {*keep}:
        remedy += ".reset_index(drop=True)"
    check_columns(names, texts, columns, [*keep, *numbers], is_whole=is_whole, remedy=remedy)


def list_texts(column: Any) -> list[Any]:
    """Returns the values of a pandas column, None for missing ones."""
    import pandas

    return [
        None if pandas.api.types.is_scalar(value) and pandas.isna(value) else value
        for value in column
    ]


def _list_levels(index: Any) -> list[Any]:
    """Returns the names of an index.

    Those that pandas gives to nameless ones, where it makes columns of them.
    """
    if index.nlevels == 1:
        return ["index" if index.name is None else index.name]
    return [f"level_{i}" if name is None else name for i, name in enumerate(index.names)]


def _find_host(frame: Any) -> str:
    """Returns the library of a frame.

    Raises:
        ConfigError: it is no frame.
    """
    host = type(frame).__module__.partition(".")[0]
    if host not in ("pandas", "polars"):
        raise ConfigError(f"give a DataFrame of pandas or polars, not {type(frame).__name__}")
    return host


def _list_columns(frame: Any) -> list[Any]:
    """Returns the names of columns; refuses what is no frame."""
    _find_host(frame)
    return list(frame.columns)


def _list_values(frame: Any, name: str) -> list[Any]:
    """Returns the values of a column, None for missing ones."""
    return list_texts(frame[name]) if _find_host(frame) == "pandas" else frame[name].to_list()


def _read_texts(frame: Any, name: str) -> list[str | None]:
    """Reads a column of texts, with None for missing ones.

    Raises:
        InputError: it holds something else.
    """
    texts = _list_values(frame, name)
    for text in texts:
        if text is not None and not isinstance(text, str):
            raise InputError(f"column {name!r} must hold texts, but holds {type(text).__name__}")
    return texts


def _put_columns(frame: Any, columns: Mapping[str, Sequence[str | None]]) -> Any:
    """Returns a copy of a frame with other texts in columns."""
    if _find_host(frame) == "polars":
        import polars

        return frame.with_columns(
            polars.Series(name, texts, dtype=polars.String) for name, texts in columns.items()
        )
    import pandas

    copy = frame.copy()
    for name, texts in columns.items():
        copy[name] = pandas.Series(texts, index=frame.index, dtype="str")
    return copy


def _watch(
    function: Callable[[list[str]], Iterable[Item]], noun: str, texts: list[str]
) -> Iterator[Item]:
    """Applies a function to texts, and shows in a notebook how far it is."""
    return show_progress(function(texts), len(texts), noun)
