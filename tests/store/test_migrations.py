import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from knowngood.domain.errors import StoreUnusable
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.store import queries
from knowngood.store.engine import Engine, connect, reading, require_current, unit_of_work
from knowngood.store.evidence.cells import touch
from knowngood.store.migrations import bring_up, migrate, upgrade_to
from knowngood.store.tables import REVISIONS, events, metadata
from tests.make import NOON
from tests.store.given import given_results, given_run
from tests.store.given_everything import fill_everything

MIGRATIONS = Path(__file__).parents[2] / "migrations"
BEFORE_RULES = "8e52d1f07ac4"
BEFORE_WEBHOOKS_WENT = "7b2e90c4d815"


def alembic(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def revisions() -> list[str]:
    """Every migration, the first one first."""
    return [script.revision for script in reversed(list(ScriptDirectory(str(MIGRATIONS)).walk_revisions()))]


def test_the_migrations_that_a_store_may_be_at_are_those_of_their_files() -> None:
    assert list(REVISIONS) == revisions()


def test_an_empty_database_becomes_ours(empty_url: str) -> None:
    engine = connect(empty_url)
    migrate(engine)
    require_current(engine)
    with reading(engine) as s:
        assert queries.load_generation(s) == 0
        assert queries.load_issues(s) == ()
    engine.dispose()


def test_migrating_twice_changes_nothing(engine: Engine) -> None:
    migrate(engine)
    require_current(engine)


def test_the_models_are_what_the_migrations_make(engine: Engine) -> None:
    with engine.begin() as connection:
        command.check(alembic(connection))


def test_every_migration_goes_down_and_up_again(empty_url: str) -> None:
    engine = connect(empty_url)
    migrate(engine)
    with engine.begin() as connection:
        command.downgrade(alembic(connection), "base")
        assert sa.inspect(connection).get_table_names() == ["alembic_version"]
        command.upgrade(alembic(connection), "head")
        assert set(sa.inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}
    engine.dispose()


def test_rows_survive_every_migration_down_and_up(empty_url: str) -> None:
    """The values of every table, in the columns that it has before and after, stand as they were."""
    engine = connect(empty_url)
    migrate(engine)
    fill_everything(engine)
    with engine.begin() as connection:
        there = stored(connection)
        assert all(there.values()), "a table without rows would prove nothing"
        for revision in reversed(revisions()[:-1]):
            command.downgrade(alembic(connection), revision)
            there = unchanged(there, stored(connection))
        for revision in revisions()[1:]:
            command.upgrade(alembic(connection), revision)
            there = unchanged(there, stored(connection))
    bring_up(engine)  # what a migration took away for good is derived again
    require_current(engine)
    engine.dispose()


Stored = dict[str, list[dict[str, object]]]


def stored(connection: sa.Connection) -> Stored:
    found = sa.MetaData()
    found.reflect(connection)
    return {
        table.name: [dict(row) for row in connection.execute(sa.select(table)).mappings() if row.get("name") != "rules"]
        for table in found.sorted_tables
        if table.name != "alembic_version"
    }


def unchanged(before: Stored, after: Stored) -> Stored:
    """`after`, once it is sure that it says of all that both know what `before` said."""
    for name in before.keys() & after.keys():
        assert len(before[name]) == len(after[name]), name
        if before[name]:
            both = sorted(before[name][0].keys() & after[name][0].keys())
            assert seen(before[name], both) == seen(after[name], both), name
    return after


def seen(rows: list[dict[str, object]], columns: list[str]) -> list[str]:
    return sorted(repr([row[column] for column in columns]) for row in rows)


def test_the_addresses_of_webhooks_are_written_to_the_log_before_their_table_goes(
    empty_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = connect(empty_url)
    with engine.begin() as connection:
        upgrade_to(connection, BEFORE_WEBHOOKS_WENT)
        hooks = sa.Table("webhooks", sa.MetaData(), autoload_with=connection)
        kept = {"secret": "whsec_1", "watch": "", "created_at": NOON, "created_by": "lead", "seen": 0, "ended": ""}
        connection.execute(sa.insert(hooks).values(id="wh_1", url="https://chat.example.org/hook", **kept))
        connection.execute(
            sa.insert(hooks).values(id="wh_2", url="https://old.example.org/hook", ended_at=NOON, **kept)
        )
    migrate(engine)
    (line,) = [record for record in caplog.records if "webhook" in record.message]
    assert (line.levelname, vars(line)["id"], vars(line)["url"]) == ("WARNING", "wh_1", "https://chat.example.org/hook")
    assert "whsec_1" not in caplog.text
    engine.dispose()


def test_servers_go_on_while_the_database_is_migrated(empty_url: str) -> None:
    """From the first tables to the present ones, under units of work and readings that all of them serve."""
    engine, other = connect(empty_url), connect(empty_url)
    migrate(engine)
    with engine.begin() as connection:
        command.downgrade(alembic(connection), revisions()[0])
    is_over = Event()

    def work() -> int:
        done = 0
        while not is_over.is_set() or done < 5:
            with unit_of_work(engine) as s:
                touch(s)
                told = {"at": NOON, "run": "", "kind": "said", "data": {}}
                s.execute(sa.insert(table_of_first_release).values(told))
            with reading(engine) as s:
                assert queries.load_generation(s) > done
            done += 1
        return done

    table_of_first_release = sa.table("events", *(sa.column(c.name, c.type) for c in events.columns))
    with ThreadPoolExecutor(3) as pool:
        servers = [pool.submit(work) for _ in range(3)]
        try:
            migrate(other)
        finally:
            is_over.set()
        units = sum(server.result() for server in servers)
    require_current(engine)
    with reading(engine) as s:
        assert queries.load_generation(s) == units
        assert s.execute(sa.select(sa.func.count()).select_from(events)).scalar_one() == units
    for each in (engine, other):
        each.dispose()


def test_the_migrations_are_one_line() -> None:
    assert len(ScriptDirectory(str(MIGRATIONS)).get_heads()) == 1


def test_processes_that_start_together_wait_for_each_other(empty_url: str) -> None:
    engines = [connect(empty_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate, engines))
    require_current(engines[0])
    for engine in engines:
        engine.dispose()


def test_a_database_of_a_newer_release_is_left_alone(empty_url: str) -> None:
    engine = connect(empty_url)
    migrate(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'ffffffffffff'")
    for refused in (migrate, require_current):
        with pytest.raises(StoreUnusable, match="written by a newer release of Known Good"):
            refused(engine)
    engine.dispose()


def test_a_database_of_something_else_is_left_alone(empty_url: str) -> None:
    engine = connect(empty_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    for refused in (migrate, require_current):
        with pytest.raises(StoreUnusable, match=r"belongs to something else.*customers"):
            refused(engine)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["customers"]
    engine.dispose()


def test_a_database_without_tables_says_what_to_do(empty_url: str) -> None:
    engine = connect(empty_url)
    with pytest.raises(StoreUnusable, match="has no tables yet; run `knowngood migrate`"):
        require_current(engine)
    engine.dispose()


def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("these are notes, not a database, and they are long enough to look at twice\n" * 20)
    engine = connect(f"sqlite:///{path}")
    for refused in (migrate, require_current):
        with pytest.raises(StoreUnusable, match=r"notes\.db cannot be used: file is not a database"):
            refused(engine)
    assert path.read_text().startswith("these are notes")


def test_a_place_that_cannot_be_written_is_refused_with_a_sentence(tmp_path: Path) -> None:
    engine = connect(f"sqlite:///{tmp_path}/missing/knowngood.db")
    with pytest.raises(StoreUnusable, match="cannot be used: unable to open database file"):
        migrate(engine)


def test_a_server_that_does_not_answer_is_refused_with_a_sentence(tmp_path: Path) -> None:
    engine = connect(f"postgresql://nobody@/none?host={tmp_path}")
    with pytest.raises(StoreUnusable, match="the database none cannot be used"):
        migrate(engine)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        pytest.param("knowngood.db", "is no database address; write sqlite:", id="a bare path"),
        pytest.param("mysql://localhost/x", '"mysql" databases are not supported', id="another database"),
    ],
)
def test_an_address_that_cannot_work_is_refused_at_once(url: str, sentence: str) -> None:
    with pytest.raises(StoreUnusable, match=sentence):
        connect(url)


def test_a_migration_on_sqlite_keeps_what_points_to_a_rebuilt_table(sqlite_url: str) -> None:
    """Foreign keys are off while migrating: rebuilding a table drops it, which would take its children along."""
    engine = connect(sqlite_url)
    path = engine.url.database or ""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    migrate(engine)
    with unit_of_work(engine) as s:
        assert s.execute(sa.text("PRAGMA foreign_keys")).scalar_one() == 1
    engine.dispose()


def test_a_store_of_older_rules_is_refused_until_its_verdicts_are_derived_anew(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE cells SET doc = replace(doc, '\"affected\"', '\"flaky\"')"))
        connection.execute(sa.text("UPDATE meta SET value = 1 WHERE name = 'rules'"))
    with pytest.raises(StoreUnusable, match="older release's rules; run `knowngood migrate`"):
        require_current(engine)

    bring_up(engine)

    require_current(engine)
    with reading(engine) as s:
        (cell,) = queries.load_cells(s)
        made = queries.load_generation(s)
    assert cell.verdict is Verdict.AFFECTED
    bring_up(engine)  # a second time there is nothing to do
    with reading(engine) as s:
        assert queries.load_generation(s) == made


def test_an_empty_store_is_of_these_rules(engine: Engine) -> None:
    require_current(engine)


def test_a_store_that_held_cells_before_there_were_rules_is_of_older_ones(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with engine.begin() as connection:
        command.downgrade(alembic(connection), BEFORE_RULES)
        command.upgrade(alembic(connection), "head")
    with pytest.raises(StoreUnusable, match="older release's rules"):
        require_current(engine)
