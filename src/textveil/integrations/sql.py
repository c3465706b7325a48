"""Functions of SQL engines: columns of texts in, columns of released texts out.

In: values of a column, with missing ones. Out: as many values; what was spent for all of them.
Not here: how an engine calls them (`duckdb`, `dbt`; docs/do/integrations/sql.md).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from textveil.errors import ConfigError, InputError, TextveilError
from textveil.integrations.releases import (
    RowPrivatizer,
    Statement,
    add_statements,
    apply_to_present,
    get_privatize,
    list_released,
    merge_statements,
    resolve_row_privatizer,
)
from textveil.pipeline import Protector
from textveil.session import Session

__all__ = ["ColumnFunctions"]

AGAIN_NOTE = (
    "Where an engine evaluated a row more than once, each of its draws is counted as a text, and "
    "their losses add up."
)


class ColumnFunctions:
    """Functions of columns for one connection of an engine. Safe to use from several threads.

    Args:
        protector: hides values: a `Protector`, or the name of a profile.
        privatizer: releases whole columns: a `Privatizer`, a `TextPrivatizer`, or the name of a
            profile; None to refuse that.
        session: gives equal values equal placeholders in all rows, and restores answers; without
            one each row stands alone, and nothing is kept.

    Raises:
        ConfigError: one of them is something else. UnknownName: no profile has this name.
    """

    def __init__(
        self,
        protector: Protector | str = "prompt",
        privatizer: RowPrivatizer | str | None = None,
        *,
        session: Session | None = None,
    ) -> None:
        self._protector = Protector(protector) if isinstance(protector, str) else protector
        if not isinstance(self._protector, Protector):
            raise ConfigError("protector must be a Protector, or the name of a profile")
        self._privatizer = None if privatizer is None else resolve_row_privatizer(privatizer)
        self._session, self._lock = session, Lock()
        self._statements: list[Statement] = []

    def __repr__(self) -> str:
        return "ColumnFunctions()"

    def protect(self, column: Iterable[object]) -> list[str | None]:
        """Hides private values in each text.

        Args:
            column: texts, and None or NaN for missing ones.

        Returns:
            The texts with placeholders, None for missing ones.

        Raises:
            InputError: a value is no text. DetectorError: a detector failed. No error shows a text.
        """
        with _hide_failures():
            texts = _read_texts(column)
            protect = self._protector.protect_many
            return list_released(apply_to_present(texts, lambda some: protect(some, self._session)))

    def privatize(self, column: Iterable[object]) -> list[str | None]:
        """Draws a release of each text anew, and adds what it spends to `statement`.

        Args:
            column: see `protect`.

        Raises:
            ConfigError: no privatizer was given. Further those of `protect`.
        """
        if self._privatizer is None:
            raise ConfigError("privatize needs a privatizer: give one where the functions are made")
        with _hide_failures():
            texts = _read_texts(column)
            results = apply_to_present(texts, get_privatize(self._privatizer))
            statement = merge_statements(results)
            if statement is not None:
                with self._lock:
                    self._statements.append(statement)
            return list_released(results)

    def restore(self, column: Iterable[object]) -> list[str | None]:
        """Puts the originals of the session back into answers.

        Raises:
            ConfigError: there is no session. InputError: a value is no text.
        """
        if self._session is None:
            raise ConfigError("restore needs a session: give one where the functions are made")
        session = self._session
        with _hide_failures():
            texts = _read_texts(column)
            return [None if text is None else session.restore(text) for text in texts]

    @property
    def statement(self) -> Statement | None:
        """Statement about all texts that were drawn so far; None where none were."""
        with self._lock:
            if len(self._statements) > 1:
                self._statements = [add_statements(self._statements)]
            return self._statements[0] if self._statements else None

    def describe_spending(self) -> str | None:
        """Says in words what `statement` says; None where nothing was drawn."""
        statement = self.statement
        return None if statement is None else f"{statement.headline()}\n{AGAIN_NOTE}"


@contextmanager
def _hide_failures() -> Iterator[None]:
    """Hides the words of errors that are not textveil's own: engines show them, and log them.

    Raises:
        RuntimeError: the block failed with another error, whose kind it names.
    """
    try:
        yield
        return
    except TextveilError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise RuntimeError(f"textveil failed ({kind})")


def _read_texts(column: Iterable[object]) -> list[str | None]:
    """Returns texts, None for missing values, among which pandas counts NaN.

    Raises:
        InputError: a value is neither.
    """
    texts: list[str | None] = []
    for value in column:
        if isinstance(value, str):
            texts.append(value)
        elif value is None or type(value).__name__ == "NAType" or value != value:
            texts.append(None)  # pandas.NA would not be compared
        else:
            raise InputError(f"a column must hold texts, but holds {type(value).__name__}")
    return texts
