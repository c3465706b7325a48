"""Seals of the ledger: they bind an account's totals to its entries.

A seal covers the totals and limits of an account and its newest link (`Ledger.bind` writes it).
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the columns, and drops earlier idempotency keys.

    No link covers those keys, so anybody may have written them.
    """
    op.add_column("textveil_accounts", sa.Column("seal", sa.LargeBinary))
    op.add_column("textveil_entries", sa.Column("note", sa.LargeBinary))
    op.execute("UPDATE textveil_entries SET key = NULL")
