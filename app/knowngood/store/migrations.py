"""Bringing a database to this release: its tables by Alembic, and its verdicts by this release's rules."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.exc import DBAPIError

from knowngood.data_dir import shipped_folder
from knowngood.domain.errors import StoreUnusable
from knowngood.domain.verdicts.verdict import RULES
from knowngood.store.engine import (
    Connection,
    Engine,
    in_words,
    is_of_older_rules,
    reading,
    rebuilding,
    refuse_foreign,
    revision_of,
    unit_of_work,
)
from knowngood.store.maintenance import derive_by_these_rules
from knowngood.store.tables import REVISIONS, RULES_IN_META, cells, meta


def bring_up(engine: Engine) -> None:
    """The tables and the verdicts of this release; does nothing where they are there already."""
    migrate(engine)
    with reading(engine) as s:
        is_older = is_of_older_rules(s)
    if is_older:
        with unit_of_work(engine) as s:
            derive_by_these_rules(s, datetime.now(UTC))


def migrate(engine: Engine) -> None:
    """Bring the database to this release's tables; does nothing where it is there already.

    All of it or nothing. Servers may run meanwhile: they wait for it as for any other writer. Two processes that start
    together wait for each other. Raises StoreUnusable for a foreign or a newer database, and where a table that is to
    change stays in use.
    """
    try:
        with engine.connect() as connection:
            refuse_foreign(connection)
            if revision_of(connection) == REVISIONS[-1]:
                return
        with rebuilding(engine) as connection:
            refuse_foreign(connection)
            upgrade_to(connection, "head")
            holds_none = ~sa.exists(sa.select(cells.c.issue))  # no verdict is of no older rules
            connection.execute(sa.update(meta).where(meta.c.name == RULES_IN_META, holds_none).values(value=RULES))
    except DBAPIError as error:
        raise StoreUnusable(in_words(engine, error)) from error


def upgrade_to(connection: Connection, revision: str) -> None:
    """Run the migrations up to `revision`, in the transaction of `rebuilding`."""
    command.upgrade(_alembic(connection), revision)


def _alembic(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(shipped_folder("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
