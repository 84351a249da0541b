"""PostgreSQL alone: limits, a server that goes away and comes back, roles that may not do everything."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from knowngood.domain.errors import StoreUnusable
from knowngood.store import engine as session_module
from knowngood.store.engine import Engine, connect, reading, require_current, unit_of_work
from knowngood.store.evidence.cells import announce, touch
from knowngood.store.maintenance import prune
from knowngood.store.migrations import migrate
from knowngood.store.queries import load_generation
from tests.fixtures.databases import start_postgres
from tests.make import NOON
from tests.store.given import given_results, given_run

DOCS = Path(__file__).parents[2] / "docs" / "databases.md"

Opened = Callable[..., Engine]


@pytest.fixture
def opened(postgres_url: str) -> Iterator[Opened]:
    """Opens the store by its address with something more in it, such as options or another user."""
    with ExitStack() as stack:

        def opening(*, user: str = "", **more: str) -> Engine:
            url = sa.make_url(postgres_url).update_query_dict(more)
            engine = connect((url.set(username=user) if user else url).render_as_string(hide_password=False))
            stack.callback(engine.dispose)
            return engine

        yield opening


def shown(engine: Engine, setting: str) -> str:
    with reading(engine) as s:
        return str(s.execute(sa.text(f"SHOW {setting}")).scalar_one())


def test_nobody_waits_for_ever(opened: Opened) -> None:
    engine = opened()
    limits = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "application_name")
    assert [shown(engine, name) for name in limits] == ["1min", "10min", "5min", "knowngood"]


def test_what_the_address_says_of_limits_wins(opened: Opened) -> None:
    engine = opened(options="-c lock_timeout=7s", application_name="mine")
    assert (shown(engine, "lock_timeout"), shown(engine, "statement_timeout")) == ("7s", "10min")
    assert shown(engine, "application_name") == "mine"


def test_a_statement_without_end_is_given_up_and_the_next_one_works(opened: Opened) -> None:
    """The limit is that of the one statement: the next one may take its time."""
    engine = opened()
    with pytest.raises(StoreUnusable, match="gave a statement up: canceling statement due to statement timeout"):
        _run(engine, "SET LOCAL statement_timeout = 50; SELECT pg_sleep(60)")
    _touch(engine)


def test_who_stands_still_inside_a_transaction_loses_it_and_not_the_others_their_turn(opened: Opened) -> None:
    """A process that was stopped, or whose host was cut off, may hold the lock that every writer needs."""
    asleep, awake = opened(), opened()

    def dawdle() -> None:
        with unit_of_work(asleep) as s:
            touch(s)
            s.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 50"))
            _touch(awake)  # waits until the server has ended the one before
            s.execute(sa.text("SELECT 1"))

    with pytest.raises(StoreUnusable, match=r"idle-in-transaction timeout|closed"):
        dawdle()
    with reading(awake) as s:
        assert load_generation(s) == 1


def test_every_connection_in_use_is_told_in_a_sentence(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "_CONNECTION_WAIT_S", 0.05)
    engine = opened()
    with ExitStack() as stack:
        for _ in range(session_module._CONNECTIONS_OPEN + session_module._CONNECTIONS_MORE):
            load_generation(stack.enter_context(reading(engine)))
        with pytest.raises(
            StoreUnusable, match="every connection to the database migrated that this process may have is in use"
        ):
            _touch(engine)
    _touch(engine)


def _touch(engine: Engine) -> None:
    with unit_of_work(engine) as s:
        touch(s)


def _run(engine: Engine, statement: str) -> None:
    with unit_of_work(engine) as s:
        s.execute(sa.text(statement))


# -- a server that goes away -------------------------------------------------------------------------------------------


@pytest.mark.system
def test_a_server_that_was_started_anew_is_used_again() -> None:
    """A store of its own, really stopped and started: what was committed is there, what was not is not."""
    folder = Path(tempfile.mkdtemp(prefix="knowngood-pg-"))
    server = start_postgres(folder)
    engine = connect(server.get_uri())
    try:
        migrate(engine)
        _touch(engine)
        with pytest.raises(StoreUnusable):
            _stop_amid(server, engine)
        with pytest.raises(StoreUnusable, match="the database postgres cannot be used: connection "):
            _touch(engine)
        server.start()
        _touch(engine)
        with reading(engine) as s:
            assert load_generation(s) == 2
    finally:
        engine.dispose()
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _stop_amid(server: Any, engine: Engine) -> None:
    with unit_of_work(engine) as s:
        touch(s)
        server.stop()
        touch(s)


def test_a_connection_that_the_server_ended_is_replaced_before_it_is_used(opened: Opened) -> None:
    engine, other = opened(), opened()
    _touch(engine)
    _run(
        other,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND datname = current_database()",
    )
    _touch(engine)
    with reading(engine) as s:
        assert load_generation(s) == 2


def test_no_password_is_ever_told(tmp_path: Path) -> None:
    engine = connect(f"postgresql://somebody:s3cret@/?host={tmp_path}")
    with pytest.raises(StoreUnusable) as told:
        migrate(engine)
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("driver", ["postgresql+asyncpg", "postgresql+psycopg2", "postgresql+nonsense"])
def test_another_driver_is_refused_by_name(driver: str) -> None:
    with pytest.raises(StoreUnusable, match=rf'"{re.escape(driver)}" names another driver; write postgresql://'):
        connect(f"{driver}://host/knowngood")


# -- roles -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def roles(postgres_url: str) -> Iterator[str]:
    """The role of servers as docs/databases.md makes it, by the very statements that stand there."""
    admin = sa.create_engine(sa.make_url(postgres_url), isolation_level="AUTOCOMMIT")
    sql = re.findall(r"```sql\n(.*?)```", DOCS.read_text(), re.DOTALL)
    grants = next(block for block in sql if "knowngood_serve" in block)
    with admin.connect() as connection:
        name = connection.engine.url.database
        for statement in grants.replace("DATABASE knowngood ", f"DATABASE {name} ").split(";"):
            if statement.strip():
                connection.exec_driver_sql(statement.replace("%", "%%"))
        yield "knowngood_serve"
        connection.exec_driver_sql("DROP OWNED BY knowngood_serve")
        connection.exec_driver_sql("DROP ROLE knowngood_serve")
    admin.dispose()


def test_the_documented_role_of_servers_reads_and_writes_and_changes_no_table(opened: Opened, roles: str) -> None:
    engine = opened(user=roles)
    require_current(engine)
    migrate(engine)  # nothing to do
    given_run(engine)
    given_results(engine)
    with unit_of_work(engine) as s:
        prune(s, NOON, superseded_days=1, history_days=1)
        announce(s, "said", NOON)
    with pytest.raises(StoreUnusable, match=r"must be owner|the role of the address may not do that"):
        _run(engine, "ALTER TABLE meta ADD COLUMN more INTEGER")


def test_a_role_that_may_not_read_is_told_so(opened: Opened, roles: str) -> None:
    with opened().begin() as connection:
        connection.exec_driver_sql(f"REVOKE ALL ON meta FROM {roles}")
    engine = opened(user=roles)
    with pytest.raises(
        StoreUnusable, match=r"the role of the address may not do that \(permission denied for table meta"
    ):
        _touch(engine)


# -- migrating ---------------------------------------------------------------------------------------------------------


def test_a_migration_does_not_wait_behind_a_reader_for_ever(
    empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waited to change a table, everybody else would wait behind it."""
    from alembic import command

    from tests.store.test_migrations import alembic, revisions

    monkeypatch.setattr(session_module, "_MIGRATION_PATIENCE_S", 0.05)
    engine = connect(empty_postgres_url)
    migrate(engine)
    with engine.begin() as connection:
        command.downgrade(alembic(connection), revisions()[0])
    with engine.connect() as reader:
        for table in sa.inspect(reader).get_table_names():
            reader.execute(sa.select(sa.func.count()).select_from(sa.table(table)))
        with pytest.raises(StoreUnusable, match="is busy"):
            migrate(engine)
    with pytest.raises(StoreUnusable, match="is of an older release"):
        require_current(engine)
    migrate(engine)
    require_current(engine)
    engine.dispose()
