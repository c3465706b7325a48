"""DuckDB: functions of SQL that protect, privatize and restore columns of texts.

In: a connection. Out: the same connection, which knows `textveil_protect` and others.
Not here: what they do with a column (`sql`).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from textveil.config.extras import EXTRAS, explain_missing
from textveil.integrations.releases import RowPrivatizer
from textveil.integrations.sql import ColumnFunctions
from textveil.pipeline import Protector
from textveil.session import Session

if TYPE_CHECKING:
    import duckdb

__all__ = ["register"]


def register(
    connection: "duckdb.DuckDBPyConnection",
    protector: Protector | str = "prompt",
    privatizer: RowPrivatizer | str | None = None,
    *,
    session: Session | None = None,
) -> ColumnFunctions:
    """Adds functions of columns to a connection: textveil_protect and others.

    `textveil_protect(text)` hides private values. `textveil_privatize(text)` draws, and
    `textveil_statement()` says what all draws spent; both need a privatizer.
    `textveil_restore(text)` needs a session. NULL stays NULL. They are declared to have side
    effects, so that DuckDB takes no value for another.

    Args:
        connection: of DuckDB.
        protector: see `ColumnFunctions`.
        privatizer: see `ColumnFunctions`.
        session: see `ColumnFunctions`.

    Returns:
        The functions, whose `statement` says what was spent.

    Raises:
        ConfigError: an argument is wrong. UnknownName: no profile has this name.
    """
    with explain_missing({**EXTRAS, "pyarrow": EXTRAS["duckdb"]}):
        import pyarrow as pa
        from duckdb.sqltypes import VARCHAR

    functions = ColumnFunctions(protector, privatizer, session=session)
    create: Any = connection.create_function  # whose stubs know no names of options

    def apply(action: Callable[[Iterable[object]], list[str | None]], column: Any) -> Any:
        return pa.array(action(column.to_pylist()), type=pa.string())

    actions = {"protect": functions.protect}
    if privatizer is not None:
        actions["privatize"] = functions.privatize
        create(
            "textveil_statement",
            functions.describe_spending,
            [],
            VARCHAR,
            null_handling="special",
            side_effects=True,
        )
    if session is not None:
        actions["restore"] = functions.restore
    for name, action in actions.items():
        create(
            f"textveil_{name}",
            partial(apply, action),
            [VARCHAR],
            VARCHAR,
            type="arrow",
            null_handling="special",
            side_effects=True,
        )
    return functions
