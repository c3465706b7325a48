"""Sessions as verbs open them: from a file, or a store.

In: the values of --session and --store. Out: the session.
Not here: what a session or a store is (`textveil.session`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.config.secret_files import FILE_SUFFIX, read_secret_variable
from textveil.errors import ConfigError, quote_file

if TYPE_CHECKING:
    from textveil.session import Session

STORE_VARIABLE = "TEXTVEIL_STORE"
"""The environment variable that may name the store."""

STORE_VARIABLES = [STORE_VARIABLE, STORE_VARIABLE + FILE_SUFFIX]
"""That variable, and the one that names a file with the store's URL."""


def read_store(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
    """Returns the URL of the store, which may be in the file that TEXTVEIL_STORE_FILE names."""
    source = context.get_parameter_source(str(parameter.name))
    if source is None or source.name != "ENVIRONMENT":
        return value
    return read_secret_variable(STORE_VARIABLE)


def is_store_typed(store: str | None) -> bool:
    """Says whether a store was named for this verb, and not in the environment for all verbs."""
    return store is not None and store != read_secret_variable(STORE_VARIABLE)


Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar=STORE_VARIABLES,
        callback=read_store,
        help="Keep the session in this store, encrypted: sqlite:///NAME.db, "
        "postgresql://HOST/NAME or redis://HOST/0. --session then names it: anna, or anna/lease for one of "
        "several. ?keep=30 at the end of the URL forgets sessions 30 days after the last "
        "addition; `textveil session` lists and forgets.",
    ),
]


def split_name(session: str) -> tuple[str, str]:
    """Splits `anna` or `anna/lease` into subject and session name."""
    subject, _, name = session.partition("/")
    return subject, name or "default"


@contextmanager
def open_session(
    session: str | None, store: str | None, *, new: bool = True
) -> "Iterator[Session | None]":
    """Opens the session of a store, or of a file.

    It gives each release only when it is remembered.

    Args:
        session: the value of --session; without it there is no session.
        store: the value of --store; None for a file.
        new: whether it is made where there is none.

    Raises:
        TextveilError: it cannot be opened.
    """
    if session is None:
        yield None
        return
    from textveil.session import FileStore, SessionStore

    if store is None:
        yield FileStore(f"file:{session}").open(new=new)
        return
    if store.startswith(("file:", "memory:")):
        raise ConfigError(
            "--store must be sqlite:///NAME.db, postgresql://HOST/NAME or redis://HOST/0, got "
            f"{quote_file(store)}; for a file give --session FILE"
        )
    with SessionStore(store) as opened_store:
        yield opened_store.open(*split_name(session), new=new)
