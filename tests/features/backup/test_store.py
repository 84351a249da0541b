"""The whole store out and in again, within one kind of database and from one to the other."""

import gzip
import os
import random
import tracemalloc
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command

from knowngood.app.domain.access import Actor
from knowngood.app.domain.errors import BadBackup, StoreUnusable
from knowngood.app.features.backup.format import CheckedBackup, TableHead, check_backup, read_tables, write_backup
from knowngood.app.features.backup.store import back_up, restore
from knowngood.app.knowledge.loader import load_knowledge
from knowngood.app.store.audit_log import load_audit
from knowngood.app.store.engine import Engine, connect, reading, require_current, unit_of_work
from knowngood.app.store.evidence.cells import announce, touch
from knowngood.app.store.state.migrations import bring_up, migrate
from knowngood.app.store.tables import cells, events, logs
from tests.fixtures.databases import KINDS, NewStore
from tests.make import NOON
from tests.store.given_everything import comparable, fill_everything, rows_of
from tests.store.test_migrations import alembic, revisions

BY = Actor("somebody (command line)")
LATER = NOON + timedelta(days=1)
MOVES = pytest.mark.parametrize(("source", "target"), [(a, b) for a in KINDS for b in KINDS])
OVER = pytest.mark.parametrize(("source", "target"), [KINDS, KINDS[::-1]])


@pytest.fixture(scope="module")
def filled_addresses(made_once: NewStore) -> dict[str, str]:
    """Of a store on each database with rows in every table."""
    return {kind: made_once(fill_everything, kind) for kind in KINDS}


@pytest.fixture(scope="module")
def filled(store_on: NewStore, filled_addresses: dict[str, str]) -> Iterator[dict[str, Engine]]:
    """Copies that nobody writes to."""
    found = {kind: connect(store_on(kind, address)) for kind, address in filled_addresses.items()}
    yield found
    for engine in found.values():
        engine.dispose()


@pytest.fixture(scope="module")
def written(filled: dict[str, Engine], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Their backups."""
    folder = tmp_path_factory.mktemp("backups")
    return {kind: saved(engine, folder / f"{kind}.backup") for kind, engine in filled.items()}


def saved(engine: Engine, path: Path) -> Path:
    with path.open("wb") as file:
        back_up(engine, file, now=NOON, release="0.1.0")
    return path


def brought_back(engine: Engine, path: Path, *, force: bool = False) -> CheckedBackup:
    return restore(engine, path, by=BY, now=LATER, force=force)


@pytest.fixture
def empty(empty_url: str) -> Iterator[Engine]:
    engine = connect(empty_url)
    yield engine
    engine.dispose()


def has_no_tables(engine: Engine) -> bool:
    with engine.connect() as connection:
        return not sa.inspect(connection).get_table_names()


def test_no_table_is_left_out_of_these_tests(filled: dict[str, Engine]) -> None:
    for engine in filled.values():
        assert [name for name, rows in rows_of(engine).items() if not rows] == []


@MOVES
def test_every_row_comes_out_as_it_went_in(
    filled: dict[str, Engine], written: dict[str, Path], store_on: NewStore, source: str, target: str
) -> None:
    engine = connect(store_on(target))
    brought_back(engine, written[source])
    require_current(engine)
    assert comparable(rows_of(engine)) == comparable(rows_of(filled[source]))
    engine.dispose()


def test_what_moved_there_and_back_gives_the_same_digest_of_every_table(
    written: dict[str, Path], store_on: NewStore, tmp_path: Path
) -> None:
    first = check_backup(written["sqlite"])
    path = written["sqlite"]
    for kind in ("postgresql", "sqlite"):
        engine = connect(store_on(kind))
        brought_back(engine, path)
        path = saved(engine, tmp_path / kind)
        engine.dispose()
    last = check_backup(path)
    moved = {"meta", "cells", "audit"}  # the generation, and the two restores that the audit log tells
    assert last.header.schema == first.header.schema
    assert {n: t for n, t in last.tables.items() if n not in moved} == {
        n: t for n, t in first.tables.items() if n not in moved
    }
    assert last.tables["audit"].rows == first.tables["audit"].rows + 2


def test_the_same_store_gives_the_same_bytes(
    filled: dict[str, Engine], written: dict[str, Path], tmp_path: Path
) -> None:
    for kind, engine in filled.items():
        assert saved(engine, tmp_path / kind).read_bytes() == written[kind].read_bytes()


@OVER
def test_ids_that_were_given_out_are_not_given_again(
    store_on: NewStore, source: str, target: str, tmp_path: Path
) -> None:
    """Readers of events ask for all after the last one they saw, whatever was pruned since."""
    old, new = connect(store_on(source)), connect(store_on(target))
    for _ in range(5):
        with unit_of_work(old) as s:
            announce(s, "said", NOON)
    with unit_of_work(old) as s:
        s.execute(sa.delete(events).where(events.c.id > 2))
    brought_back(new, saved(old, tmp_path / "backup"))
    with unit_of_work(new) as s:
        announce(s, "said", NOON)
        assert sorted(s.execute(sa.select(events.c.id)).scalars()) == [1, 2, 6]
    old.dispose()
    new.dispose()


def test_whoever_knew_the_store_before_sees_that_it_is_another(
    engine: Engine, filled: dict[str, Engine], written: dict[str, Path]
) -> None:
    """A server that runs on keeps pages by the generation, and reads the cells that changed since the one it knows."""
    with unit_of_work(engine) as s:
        for _ in range(500):
            touch(s)
    with reading(engine) as s:
        known = load_knowledge(s, NOON)
    brought_back(engine, written[engine.dialect.name])
    with reading(filled[engine.dialect.name]) as s:
        theirs = load_knowledge(s, NOON)
    with reading(engine) as s:
        now = load_knowledge(s, NOON, known)
        assert set(s.execute(sa.select(cells.c.changed)).scalars()) == {now.generation}
    assert now.generation > max(known.generation, theirs.generation)
    assert dict(now.knowledge.known.cells) == dict(theirs.knowledge.known.cells)


def test_the_audit_log_says_from_what_the_store_was_restored(engine: Engine, written: dict[str, Path]) -> None:
    done = brought_back(engine, written["sqlite"])
    with reading(engine) as s:
        newest = load_audit(s, 1)[0]
    assert (newest.action, newest.actor, newest.subject) == ("store.restore", BY.name, done.sha256)
    assert newest.data == {"taken_at": "2026-11-21T12:00:00+00:00", "rows": done.rows}


def test_a_backup_holds_one_moment_whatever_is_written_meanwhile(engine: Engine) -> None:
    """Each unit of work raises the generation by one and tells one event: in every backup they agree."""
    is_over, written = Event(), Event()

    def write() -> None:
        while not is_over.is_set():
            with unit_of_work(engine) as s:
                touch(s)
                announce(s, "said", NOON)
            written.set()

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write) for _ in range(2)]
        try:
            counts = [_moment(engine, written) for _ in range(4)]
        finally:
            is_over.set()
        for writer in writers:
            writer.result()
    assert all(generation == told for generation, told in counts)
    assert counts[-1][0] > counts[0][0] > 0


def _moment(engine: Engine, written: Event) -> tuple[int, int]:
    written.clear()
    assert written.wait(60)
    out = BytesIO()
    held = back_up(engine, out, now=NOON, release="0.1.0")
    rows = [line for line in gzip.decompress(out.getvalue()).splitlines() if line.startswith(b'["generation",')]
    return int(rows[0].split(b",")[1].rstrip(b"]")), held.tables["events"].rows


# -- what is refused, and leaves everything as it was ------------------------------------------------------------------


def test_a_store_in_use_is_refused_and_says_what_it_holds(
    filled: dict[str, Engine], written: dict[str, Path], store_on: NewStore
) -> None:
    for kind in KINDS:
        engine = connect(store_on(kind))
        with unit_of_work(engine) as s:
            s.execute(sa.insert(logs).values(digest="mine", zlib=b""))
        before = rows_of(engine)
        with pytest.raises(StoreUnusable, match=r"is not empty: it holds 1 logs; .* say --force to remove all of that"):
            brought_back(engine, written[kind])
        assert rows_of(engine) == before
        brought_back(engine, written[kind], force=True)
        assert comparable(rows_of(engine)) == comparable(rows_of(filled[kind]))
        engine.dispose()


def test_a_database_of_something_else_is_refused_even_by_force(empty: Engine, written: dict[str, Path]) -> None:
    with empty.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    with pytest.raises(StoreUnusable, match="belongs to something else"):
        brought_back(empty, written["sqlite"], force=True)
    with empty.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["customers"]


def test_a_store_without_tables_has_nothing_to_back_up(empty: Engine) -> None:
    with pytest.raises(StoreUnusable, match="there is nothing to back up"):
        back_up(empty, BytesIO(), now=NOON, release="0.1.0")


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.3, 0.7, 0.999])
def test_a_backup_that_was_cut_off_is_refused(
    sqlite_url: str, written: dict[str, Path], tmp_path: Path, kept: float
) -> None:
    whole = written["sqlite"].read_bytes()
    cut = tmp_path / "cut.backup"
    cut.write_bytes(whole[: int(len(whole) * kept)])
    _refused_everywhere(sqlite_url, cut, r"cut\.backup (ends in the middle|is damaged|is no backup)")


def test_a_backup_that_lost_its_last_lines_is_refused(
    sqlite_url: str, written: dict[str, Path], tmp_path: Path
) -> None:
    lines = gzip.decompress(written["sqlite"].read_bytes()).splitlines(keepends=True)
    cut = tmp_path / "cut.backup"
    cut.write_bytes(gzip.compress(b"".join(lines[:-1])))
    _refused_everywhere(sqlite_url, cut, "ends in the middle")


def test_any_flipped_bit_of_what_is_stored_is_found(written: dict[str, Path], tmp_path: Path) -> None:
    text = gzip.decompress(written["sqlite"].read_bytes())
    flipped = tmp_path / "flipped.backup"
    rng = random.Random(7)  # noqa: S311 - no secret
    for place in (*rng.sample(range(len(text)), 40), 0, len(text) - 2):
        wrong = bytearray(text)
        wrong[place] ^= 1 << rng.randrange(8)
        flipped.write_bytes(gzip.compress(bytes(wrong), compresslevel=1))
        with pytest.raises(BadBackup):
            check_backup(flipped)


def test_any_flipped_bit_of_the_packed_file_is_found(written: dict[str, Path], tmp_path: Path) -> None:
    """But for those of gzip's own name, date and padding, of which nothing is read."""
    packed = written["sqlite"].read_bytes()
    text = gzip.decompress(packed)
    flipped = tmp_path / "flipped.backup"
    rng = random.Random(8)  # noqa: S311 - no secret
    places = rng.sample(range(len(packed)), 40)
    harmless = 0
    for place in places:
        wrong = bytearray(packed)
        wrong[place] ^= 1 << rng.randrange(8)
        flipped.write_bytes(wrong)
        if _unpacked(wrong) == text:
            harmless += 1
            continue
        with pytest.raises(BadBackup):
            check_backup(flipped)
    assert harmless < len(places) / 4


def _unpacked(packed: bytes | bytearray) -> bytes | None:
    try:
        return gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        return None


def _refused_everywhere(url: str, path: Path, sentence: str) -> None:
    engine = connect(url)
    before = rows_of(engine)
    with pytest.raises(BadBackup, match=sentence):
        brought_back(engine, path, force=True)
    assert rows_of(engine) == before
    engine.dispose()


def rewritten(path: Path, into: Path, **header: Any) -> Path:
    """The same rows under another header: a whole file that says something else."""
    checked = check_backup(path)
    with into.open("wb") as file:
        write_backup(file, replace(checked.header, **header), read_tables(checked))
    return into


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        pytest.param(
            {"schema": "ffffffffffff", "release": "9.0"}, "made by release 9.0 and holds tables", id="newer tables"
        ),
        pytest.param(
            {"version": 2, "release": "9.0"}, r"is of format 2, this release reads 1; .*\(9.0\)", id="newer format"
        ),
        pytest.param({"product": "other"}, "is no backup of Known Good", id="another product"),
        pytest.param({"format": "knowngood-bundle"}, "bundles of results are for `knowngood import`", id="a bundle"),
    ],
)
def test_what_this_release_cannot_read_is_refused_by_name(
    engine: Engine, written: dict[str, Path], tmp_path: Path, header: dict[str, Any], sentence: str
) -> None:
    path = rewritten(written["sqlite"], tmp_path / "other.backup", **header)
    before = rows_of(engine)
    with pytest.raises(BadBackup, match=sentence):
        brought_back(engine, path, force=True)
    assert rows_of(engine) == before


def edited(path: Path, into: Path, name: str, edit: Any) -> Path:
    """A whole file, digests and all, whose table `name` was changed on purpose."""
    checked = check_backup(path)

    def tables() -> Iterator[tuple[TableHead, Any]]:
        for head, rows in read_tables(checked):
            yield edit(head, list(rows)) if head.name == name else (head, rows)

    with into.open("wb") as file:
        write_backup(file, checked.header, tables())
    return into


def _without_a_column(head: TableHead, rows: list[Any]) -> tuple[TableHead, list[Any]]:
    return replace(head, columns=head.columns[1:]), [row[1:] for row in rows]


def _of_nobody(head: TableHead, rows: list[Any]) -> tuple[TableHead, list[Any]]:
    place = head.columns.index("build")
    return head, [[*row[:place], "torch-0.0.0", *row[place + 1 :]] for row in rows]


def _twice(head: TableHead, rows: list[Any]) -> tuple[TableHead, list[Any]]:
    return head, [*rows, rows[0]]


def _under_another_name(head: TableHead, rows: list[Any]) -> tuple[TableHead, list[Any]]:
    return replace(head, name="customers"), rows


@pytest.mark.parametrize(
    ("table", "edit"),
    [
        pytest.param("webhooks", _without_a_column, id="a column is missing"),
        pytest.param("cells", _of_nobody, id="rows point nowhere"),
        pytest.param("attempts", _twice, id="a row stands twice"),
        pytest.param("logs", _under_another_name, id="a table of something else"),
    ],
)
def test_whatever_goes_wrong_late_leaves_what_was_there(
    engine: Engine, written: dict[str, Path], tmp_path: Path, table: str, edit: Any
) -> None:
    with unit_of_work(engine) as s:
        s.execute(sa.insert(logs).values(digest="mine", zlib=b"kept"))
    before = rows_of(engine)
    wrong = edited(written["sqlite"], tmp_path / "wrong.backup", table, edit)
    with pytest.raises((BadBackup, StoreUnusable)):
        brought_back(engine, wrong, force=True)
    assert rows_of(engine) == before


def test_a_failed_restore_into_a_new_database_leaves_no_table(
    empty: Engine, written: dict[str, Path], tmp_path: Path
) -> None:
    wrong = edited(written["sqlite"], tmp_path / "wrong.backup", "cells", _of_nobody)
    with pytest.raises((BadBackup, StoreUnusable)):
        brought_back(empty, wrong)
    assert has_no_tables(empty)


def _a_number_as_text(head: TableHead, rows: list[Any]) -> tuple[TableHead, list[Any]]:
    place = head.columns.index("attempts")
    return head, [[*row[:place], str(row[place]), *row[place + 1 :]] for row in rows]


def test_what_the_database_keeps_otherwise_than_it_was_given_is_found(
    engine: Engine, written: dict[str, Path], tmp_path: Path
) -> None:
    """Both take the text "7" for a number without a word, and give 7 back."""
    before = rows_of(engine)
    wrong = edited(written["sqlite"], tmp_path / "wrong.backup", "imports", _a_number_as_text)
    with pytest.raises(BadBackup, match=r"imports did not come out of the database as it went in: 1 rows"):
        brought_back(engine, wrong)
    assert rows_of(engine) == before


# -- releases ----------------------------------------------------------------------------------------------------------


def test_a_backup_of_an_older_release_is_restored_and_migrated(
    store_on: NewStore, filled_addresses: dict[str, str], empty: Engine, tmp_path: Path
) -> None:
    """The way to upgrade: back up with the new release before its `migrate`, which is the safest moment."""
    kind = empty.dialect.name
    old = connect(store_on(kind, filled_addresses[kind]))
    with old.begin() as connection:
        command.downgrade(alembic(connection), revisions()[-2])
    path = saved(old, tmp_path / "old.backup")
    assert check_backup(path).header.schema == revisions()[-2]
    brought_back(empty, path)
    migrate(old)
    assert comparable(rows_of(empty)) == comparable(rows_of(old))
    bring_up(empty)
    require_current(empty)
    old.dispose()


# -- size --------------------------------------------------------------------------------------------------------------


@pytest.mark.system
@pytest.mark.timeout(600)  # all that is counted is counted slowly
def test_memory_does_not_grow_with_the_store(store_on: NewStore, tmp_path: Path) -> None:
    """6 MB more of rows pass through both ways; what is held at once grows by a fraction of that."""
    for kind in KINDS:
        small, large = (_peak_bytes(store_on, kind, number, tmp_path / f"{kind}-{number}") for number in (100, 900))
        assert (tmp_path / f"{kind}-900").stat().st_size > 6_400_000
        assert large - small < 2_000_000, f"{kind}: {small:,} bytes at once, then {large:,}"


def _peak_bytes(store_on: NewStore, kind: str, number: int, path: Path) -> int:
    """Peak bytes that Python held while a store with so many logs of 8 kB was backed up and restored."""
    engine, other = connect(store_on(kind)), connect(store_on(kind))
    with unit_of_work(engine) as s:
        for n in range(0, number, 100):
            rows = [{"digest": f"{m:08}", "zlib": os.urandom(8000)} for m in range(n, n + 100)]
            s.execute(sa.insert(logs), rows)
    tracemalloc.start()
    try:
        brought_back(other, saved(engine, path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        engine.dispose()
        other.dispose()
    return peak
