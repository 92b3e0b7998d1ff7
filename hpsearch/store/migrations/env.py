"""What alembic runs: the migrations, on the connection and in the transaction that it is given."""

from __future__ import annotations

from alembic import context

from hpsearch.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
