"""First tables: store, sessions, facts, and keys that do not lie apart."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "textveil_store",
        sa.Column("name", sa.LargeBinary, primary_key=True),
        sa.Column("proof", sa.LargeBinary, nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "textveil_sessions",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("account", sa.LargeBinary, nullable=False),
        sa.Column("place", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("label", sa.LargeBinary, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger, index=True),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "textveil_facts",
        sa.Column(
            "session", sa.BigInteger, sa.ForeignKey("textveil_sessions.number"), primary_key=True
        ),
        sa.Column("name", sa.LargeBinary, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("tag", sa.LargeBinary),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "textveil_tags",
        "textveil_facts",
        ["tag", "session"],
        sqlite_where=sa.text("tag IS NOT NULL"),
    )
    op.create_table(
        "textveil_keys",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
