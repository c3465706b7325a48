"""Tables of the ledger: accounts, entries and limits."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "textveil_accounts",
        sa.Column("name", sa.LargeBinary, primary_key=True),
        sa.Column("subject", sa.LargeBinary, nullable=False, index=True),
        sa.Column("label", sa.LargeBinary, nullable=False),
        sa.Column("entries", sa.BigInteger, nullable=False),
        sa.Column("link", sa.LargeBinary, nullable=False),
        sa.Column("epsilon", sa.BigInteger, nullable=False),
        sa.Column("ldp", sa.BigInteger, nullable=False),
        sa.Column("releases", sa.BigInteger, nullable=False),
        sa.Column("infinite", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "textveil_entries",
        sa.Column(
            "account", sa.LargeBinary, sa.ForeignKey("textveil_accounts.name"), primary_key=True
        ),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("of", sa.BigInteger, nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Column("epsilon", sa.BigInteger, nullable=False),
        sa.Column("ldp", sa.BigInteger, nullable=False),
        sa.Column("words", sa.BigInteger, nullable=False),
        sa.Column("infinite", sa.Text, nullable=False),
        sa.Column("key", sa.LargeBinary),
        sa.Column("link", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("account", "key"),
    )
    op.create_index(
        "textveil_ends",
        "textveil_entries",
        ["account", "of"],
        unique=True,
        sqlite_where=sa.text("of <> 0"),
        postgresql_where=sa.text("of <> 0"),
    )
    op.create_table(
        "textveil_limits",
        sa.Column(
            "account", sa.LargeBinary, sa.ForeignKey("textveil_accounts.name"), primary_key=True
        ),
        sa.Column("period", sa.BigInteger, primary_key=True),
        sa.Column("most", sa.BigInteger, nullable=False),
        sa.Column("began", sa.BigInteger, nullable=False),
        sa.Column("spent", sa.BigInteger, nullable=False),
    )
