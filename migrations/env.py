"""How Alembic meets the database: on the connection the product hands over, else on KNOWNGOOD_DATABASE_URL.

The second way is for people who write migrations: `alembic revision --autogenerate`, against PostgreSQL, because SQLite
does not notice a changed length.
"""

import os
from typing import Literal

from alembic import context
from sqlalchemy import Connection

from knowngood.store.engine import connect
from knowngood.store.tables import UtcDateTime, metadata


def render(kind: str, item: object, _context: object) -> str | Literal[False]:
    """A migration names plain types, so that it means the same whatever becomes of our classes."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    return False


def run(connection: Connection) -> None:
    # SQLite's DDL is transactional once the driver leaves transactions to us: a failing migration leaves no trace.
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        render_item=render,
        compare_server_default=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with connect(os.environ["KNOWNGOOD_DATABASE_URL"]).begin() as own:
        run(own)
