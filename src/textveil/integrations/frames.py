"""Data frames of pandas and polars: columns of texts, released at once.

In: a frame, a privatizer. Out: a new frame with released columns, and one statement for all of
them.
Not here: datasets whose rows are asked for again (`datasets`), and runs over files (`corpus`).
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from textveil.errors import ConfigError, InputError
from textveil.integrations.releases import (
    RowPrivatizer,
    RowResult,
    Statement,
    check_columns,
    has_text,
    merge_statements,
    normalize_names,
    note_copies,
    resolve_row_privatizer,
)
from textveil.integrations.synthesis import synthesize_columns
from textveil.library import Library
from textveil.pipeline import Protector, Synthesis, TextPrivatizer

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["privatize", "synthesize"]

Frame = TypeVar("Frame", "pandas.DataFrame", "polars.DataFrame")


def privatize(
    frame: Frame,
    privatizer: RowPrivatizer | Protector | str,
    columns: str | Iterable[str] = "text",
    *,
    keep: Iterable[str] = (),
) -> tuple[Frame, Statement | None]:
    """Releases columns of a frame, with one statement for all.

    Each call draws anew, and adds to the one before.

    Args:
        frame: of pandas or polars. It stays as it is.
        privatizer: a `Privatizer`, a `TextPrivatizer`, a `Protector`, or the name of a profile.
        columns: with the texts; rows without a text stay without.
        keep: columns with text that stay as they are. All others with text are refused, and so is
            an index of pandas with text, unless its name is here, or "index", or "level_0" and so
            on of several without names. Beside public texts of a `TextPrivatizer` all others are
            refused, with text or without.

    Returns:
        The new frame, and its statement; None without any text.

    Raises:
        InputError: a column holds text and is not named, or what it has is no text. ConfigError: it
            is no frame.
    """
    names, allowed, veil = normalize_names(columns), tuple(keep), resolve_row_privatizer(privatizer)
    library = type(frame).__module__.partition(".")[0]
    if library == "polars":
        return _release_polars(frame, veil, names, allowed)
    if library == "pandas":
        return _release_pandas(frame, veil, names, allowed)
    raise ConfigError(f"give a DataFrame of pandas or polars, not {type(frame).__name__}")


def synthesize(
    frame: Frame,
    *,
    text: str = "text",
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
    host = type(frame).__module__.partition(".")[0]
    if host not in ("pandas", "polars"):
        raise ConfigError(f"give a DataFrame of pandas or polars, not {type(frame).__name__}")
    synthesis = synthesize_columns(
        list(frame.columns),
        lambda name: list_texts(frame[name]) if host == "pandas" else frame[name].to_list(),
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
    """Refuses a pandas frame in which text would stay.

    Raises:
        InputError: a column or an index holds text and is not named; see `check_columns`.
    """
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
    check_columns(names, texts, columns, [*keep, *numbers], is_whole=is_whole)


def list_texts(column: Any) -> list[Any]:
    """Returns the values of a pandas column, None for missing ones."""
    import pandas

    return [
        None if pandas.api.types.is_scalar(value) and pandas.isna(value) else value
        for value in column
    ]


def _release_pandas(
    frame: Any, veil: RowPrivatizer, columns: Sequence[str], keep: Sequence[str]
) -> tuple[Any, Statement | None]:
    import pandas

    check_frame(frame, columns, keep, is_whole=isinstance(veil, TextPrivatizer))
    new_frame, results = frame.copy(), list[RowResult | None]()
    # of the original
    new_frame.attrs, new_frame.columns = (
        {},
        frame.columns.set_names([None] * frame.columns.nlevels),
    )
    for name in columns:
        column_results = _draw(veil, name, list_texts(frame[name]))
        new_frame[name] = pandas.Series(
            [None if result is None else result.text for result in column_results],
            index=frame.index,
            dtype="str",
        )
        results += column_results
    return new_frame, note_copies(merge_statements(results), bool(keep))


def _list_levels(index: Any) -> list[Any]:
    """Returns the names of an index.

    Those that pandas gives to nameless ones, where it makes columns of them.
    """
    if index.nlevels == 1:
        return ["index" if index.name is None else index.name]
    return [f"level_{i}" if name is None else name for i, name in enumerate(index.names)]


def _release_polars(
    frame: Any, veil: RowPrivatizer, columns: Sequence[str], keep: Sequence[str]
) -> tuple[Any, Statement | None]:
    import polars

    texts = [name for name in frame.columns if has_text(frame[name].to_list())]
    is_whole = isinstance(veil, TextPrivatizer)
    check_columns(frame.columns, texts, columns, keep, is_whole=is_whole)
    new_columns, results = list[Any](), list[RowResult | None]()
    for name in columns:
        column_results = _draw(veil, name, frame[name].to_list())
        released = [None if result is None else result.text for result in column_results]
        new_columns.append(polars.Series(name, released, dtype=polars.String))
        results += column_results
    statement = note_copies(merge_statements(results), bool(keep))
    return frame.with_columns(new_columns), statement


def _draw(veil: RowPrivatizer, name: str, texts: Sequence[Any]) -> list[RowResult | None]:
    """Releases each text; None for a row without one."""
    for text in texts:
        if text is not None and not isinstance(text, str):
            raise InputError(f"column {name!r} must hold texts, but holds {type(text).__name__}")
    results: Iterator[RowResult] = veil.privatize_many([text for text in texts if text is not None])
    return [None if text is None else next(results) for text in texts]
