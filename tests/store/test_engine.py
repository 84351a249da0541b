from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from knowngood.domain.errors import StoreUnusable
from knowngood.store import queries
from knowngood.store.engine import Engine, Session, connect, reading, unit_of_work
from knowngood.store.evidence.cells import announce, touch
from knowngood.store.tables import events, meta
from tests.make import NOON
from tests.waiting import PATIENCE_S


def test_a_unit_of_work_is_committed_once_it_ends(engine: Engine) -> None:
    with unit_of_work(engine) as s:
        touch(s)
    with reading(engine) as s:
        assert queries.load_generation(s) == 1


def test_a_unit_of_work_that_raises_leaves_nothing(engine: Engine) -> None:
    with pytest.raises(sa.exc.IntegrityError), unit_of_work(engine) as s:
        _count_and_stumble(s)
    with reading(engine) as s:
        assert queries.load_generation(s) == 0


def test_a_reading_sees_one_moment_whatever_is_written_meanwhile(engine: Engine) -> None:
    with reading(engine) as s:
        assert queries.load_generation(s) == 0
        with unit_of_work(engine) as other:
            touch(other)
        assert queries.load_generation(s) == 0
    with reading(engine) as s:
        assert queries.load_generation(s) == 1


def test_no_read_then_write_is_lost_between_threads(engine: Engine) -> None:
    """SQLAlchemy's default on SQLite ended at 92 of 400 without any error (measured 2026-11)."""

    def count(_thread: int) -> None:
        for _ in range(25):
            with unit_of_work(engine) as s:
                touch(s)
                name = meta.c.name == "generation"
                seen = s.execute(sa.select(meta.c.value).where(name)).scalar_one()
                s.execute(sa.update(meta).where(name).values(value=seen))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    with reading(engine) as s:
        assert queries.load_generation(s) == 200


def test_event_ids_appear_in_the_order_of_commit(engine: Engine) -> None:
    """A reader that asks for all after the last id it saw misses none, however many write at once."""
    seen: list[int] = []

    def write(thread: int) -> None:
        for n in range(20):
            with unit_of_work(engine) as s:
                touch(s)
                announce(s, "said", NOON, by=thread, n=n)

    with ThreadPoolExecutor(6) as pool:
        writers = [pool.submit(write, thread) for thread in range(5)]
        while len(seen) < 100:
            with reading(engine) as s:
                seen += [event.id for event in queries.load_events(s, seen[-1] if seen else 0, None, 1000)]
        for writer in writers:
            writer.result()
    assert seen == sorted(seen)
    assert len(set(seen)) == 100


def test_times_come_back_aware_and_in_utc(engine: Engine) -> None:
    tokyo = datetime(2026, 11, 21, 21, 0, tzinfo=timezone(timedelta(hours=9)))
    with unit_of_work(engine) as s:
        announce(s, "said", tokyo)
    with reading(engine) as s:
        at = s.execute(sa.select(events.c.at)).scalar_one()
    assert at == tokyo
    assert at.tzinfo is UTC


def test_a_time_without_a_zone_is_refused(engine: Engine) -> None:
    naive = NOON.replace(tzinfo=None)
    with pytest.raises(sa.exc.StatementError, match="needs its zone"), unit_of_work(engine) as s:
        announce(s, "said", naive)


def test_a_database_that_went_away_is_told_in_a_sentence(sqlite_engine: Engine) -> None:
    with pytest.raises(StoreUnusable, match="cannot be used: no such table"), unit_of_work(sqlite_engine) as s:
        s.execute(sa.text("SELECT * FROM no_such_thing"))


def test_a_busy_database_is_waited_for(sqlite_url: str) -> None:
    first, second = connect(sqlite_url), connect(sqlite_url)
    with ThreadPoolExecutor(1) as pool:
        with unit_of_work(first) as s:
            touch(s)
            waiting = pool.submit(lambda: _touch(second))
        waiting.result(PATIENCE_S)
    with reading(first) as s:
        assert queries.load_generation(s) == 2
    first.dispose()
    second.dispose()


def _count_and_stumble(s: Session) -> None:
    touch(s)
    s.execute(sa.insert(meta).values(name="generation", value=1))


def _touch(engine: Engine) -> None:
    with unit_of_work(engine) as s:
        touch(s)
