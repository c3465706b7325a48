"""The ledger: what binds the totals and limits of an account to its newest link (`Ledger.bind` writes it)."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns. Idempotency keys of before are dropped: no link holds them, so they may be anybody's."""
    op.add_column("textveil_accounts", sa.Column("seal", sa.LargeBinary))
    op.add_column("textveil_entries", sa.Column("note", sa.LargeBinary))
    op.execute("UPDATE textveil_entries SET key = NULL")
