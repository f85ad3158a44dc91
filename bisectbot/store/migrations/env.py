"""Alembic's environment: always run from Database.upgrade, which brings the connection."""

from alembic import context

from bisectbot.store.tables import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection, target_metadata=Base.metadata, render_as_batch=True, transaction_per_migration=True
)
with context.begin_transaction():
    context.run_migrations()
