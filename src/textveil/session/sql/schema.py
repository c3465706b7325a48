"""Tables of a store, created by the Alembic steps in `migrations`.

In: a connection. Out: `Tables`; a database that has them.
Not here: their contents (`session_file`, `lazy_snapshot`).
"""

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textveil.config.extras import explain_missing
from textveil.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy import Column, Connection, Table

LAST_REVISION = "0003"
"""Last step of `migrations`."""

SEALLESS_REVISIONS = ("0001", "0002")
"""Steps of stores whose accounts have no seals."""

MIGRATION_LOCK = 0x7E877E11
"""Advisory lock of PostgreSQL for changes to the tables."""


@dataclass(frozen=True)
class Tables:
    """Tables of a store.

    Attributes:
        store: one row: the name of the store, and a proof to check the key.
        sessions: one row per session.
        facts: facts of sessions, sealed, by session and name; `tag` finds groups of rows.
        keys: sealed keys of sessions, in stores whose keys do not lie apart.
        accounts: one row per account of the ledger, with its totals.
        entries: spending, in order; rows are only added.
        limits: the most that an account may spend, in a period or ever.
    """

    store: "Table"
    sessions: "Table"
    facts: "Table"
    keys: "Table"
    accounts: "Table"
    entries: "Table"
    limits: "Table"


@cache
def build_tables() -> Tables:
    """Returns the tables after all migrations."""
    with explain_missing():
        import sqlalchemy as sa
    data = sa.MetaData()
    binary, integer = (
        partial(_build_columns, sa.LargeBinary),
        partial(_build_columns, sa.BigInteger),
    )
    store = sa.Table(
        "textveil_store",
        data,
        sa.Column("name", sa.LargeBinary, primary_key=True),
        *binary("proof"),
        *integer("made"),
    )
    # SQLite counts up only keys of the type INTEGER.
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    sessions = sa.Table(
        "textveil_sessions",
        data,
        sa.Column("number", number, primary_key=True, autoincrement=True),
        *binary("account"),
        sa.Column("place", sa.LargeBinary, nullable=False, unique=True),
        *binary("label"),
        *integer("version", "last", "made", "used"),
        sa.Column("expires", sa.BigInteger, index=True),
        # A number is never given twice, or an open session could come to mean another.
        sqlite_autoincrement=True,
    )
    facts = sa.Table(
        "textveil_facts",
        data,
        sa.Column(
            "session", sa.BigInteger, sa.ForeignKey("textveil_sessions.number"), primary_key=True
        ),
        sa.Column("name", sa.LargeBinary, primary_key=True),
        *integer("number"),
        *_build_columns(sa.Text, "kind"),
        sa.Column("tag", sa.LargeBinary),
        *binary("content"),
        sqlite_with_rowid=False,
    )
    sa.Index("textveil_tags", facts.c.tag, facts.c.session, sqlite_where=facts.c.tag.is_not(None))
    keys = sa.Table(
        "textveil_keys", data, sa.Column("name", sa.Text, primary_key=True), *binary("content")
    )
    accounts = sa.Table(
        "textveil_accounts",
        data,
        sa.Column("name", sa.LargeBinary, primary_key=True),
        sa.Column("subject", sa.LargeBinary, nullable=False, index=True),
        *binary("label"),
        *integer("entries"),
        *binary("link"),
        *integer("epsilon", "ldp", "releases", "infinite"),
        sa.Column("seal", sa.LargeBinary),
    )
    entries = sa.Table(
        "textveil_entries",
        data,
        sa.Column(
            "account", sa.LargeBinary, sa.ForeignKey("textveil_accounts.name"), primary_key=True
        ),
        sa.Column("number", sa.BigInteger, primary_key=True),
        *_build_columns(sa.Text, "what"),
        *integer("of", "made", "epsilon", "ldp", "words"),
        *_build_columns(sa.Text, "infinite"),
        sa.Column("key", sa.LargeBinary),
        *binary("link"),
        sa.Column("note", sa.LargeBinary),
        sa.UniqueConstraint("account", "key"),
    )
    # With the unique index below, no reservation can be ended twice.
    end = entries.c.of != 0
    ends = entries.c.account, entries.c.of
    sa.Index("textveil_ends", *ends, unique=True, sqlite_where=end, postgresql_where=end)
    limits = sa.Table(
        "textveil_limits",
        data,
        sa.Column(
            "account", sa.LargeBinary, sa.ForeignKey("textveil_accounts.name"), primary_key=True
        ),
        sa.Column("period", sa.BigInteger, primary_key=True),
        *integer("most", "began", "spent"),
    )
    return Tables(store, sessions, facts, keys, accounts, entries, limits)


def _build_columns(type_: Any, *names: str) -> "list[Column[Any]]":
    """Returns columns of a type that are never empty."""
    import sqlalchemy as sa

    return [sa.Column(name, type_, nullable=False) for name in names]


def read_revision(connection: "Connection") -> str | None:
    """Reads the migration step of a database; None without tables."""
    import sqlalchemy as sa

    if not sa.inspect(connection).has_table("textveil_steps"):
        return None
    step: str | None = connection.execute(
        sa.text("SELECT version_num FROM textveil_steps")
    ).scalar()
    return step


def migrate_tables(connection: "Connection") -> str | None:
    """Migrates the tables to the last step, under an exclusive lock.

    Returns:
        The step at which they were.

    Raises:
        StoreError: they are of a later version of textveil.
    """
    import sqlalchemy as sa

    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
    # Under the lock, because another process may have migrated the tables meanwhile.
    step = read_revision(connection)
    if step == LAST_REVISION:
        return step
    with explain_missing():
        from alembic import command
        from alembic.config import Config
        from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, LAST_REVISION)
    except CommandError:
        pass
    else:
        return step
    raise StoreError("this store was written by a later version of textveil; install that one")
