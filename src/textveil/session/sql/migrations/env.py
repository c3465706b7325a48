"""Alembic environment: runs the steps on the connection of `schema.prepare`.

They run in its transaction.
"""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="textveil_steps",
    render_as_batch=True,
)
context.run_migrations()
