"""Our own SQLite file read without SQLAlchemy says what the ordinary way says, or leaves the answer to it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from knowngood.domain.access import Actor
from knowngood.domain.issue_selectors import Watch
from knowngood.domain.watch_list import WatchListContent
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.jobs.durations import load_environment_s
from knowngood.store.knowledge.loader import load_knowledge
from knowngood.store.knowledge.local import read_local, read_times
from knowngood.store.queries import load_durations
from knowngood.store.state.catalogue_state import is_taken_in, remember_taken_in
from knowngood.store.state.migrations import migrate
from knowngood.store.tables import builds, issues, meta
from knowngood.store.watch_lists import ListOwner, save_watch_list
from tests.make import NOON, make_build, make_issue
from tests.store.given import given_catalogue, given_results, given_run

SOURCE = b"the catalogue's files"
ISSUE, BUILD = make_issue(), make_build()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "knowngood.sqlite3"


@pytest.fixture
def engine(file: Path) -> Engine:
    made = connect(f"sqlite:///{file}")
    migrate(made)
    given_catalogue(made, [ISSUE, make_issue("toy-2")], [make_build("2.10.0+cu126"), BUILD])
    given_run(made, [ISSUE], [BUILD])
    given_results(made)
    with unit_of_work(made) as s:
        save_watch_list(s, "mine", WatchListContent(Watch(issues=(ISSUE.id,))), by=ListOwner(Actor("me")), now=NOON)
        remember_taken_in(s, SOURCE)
    return made


def test_both_ways_know_the_same(engine: Engine, file: Path) -> None:
    with reading(engine) as s:
        expected = load_knowledge(s, NOON).knowledge
    found = read_local(file, NOON, SOURCE)
    assert found is not None
    assert found.known.cells, "nothing was measured"
    assert dict(found.known.cells) == dict(expected.known.cells)
    assert (found.known.issues, found.known.builds) == (expected.known.issues, expected.known.builds)
    assert list(found.known.builds) == list(expected.known.builds), "in release order"
    assert found.known.flaky == expected.known.flaky
    assert (found.known.hardware, found.known.as_of) == (expected.known.hardware, expected.known.as_of)
    assert (found.tested, found.lists) == (expected.tested, expected.lists)


def test_both_ways_know_what_it_took(engine: Engine, file: Path) -> None:
    with reading(engine) as s:
        expected = load_durations(s), load_environment_s(s)
    assert expected[0], "nothing was timed"
    assert read_times(file) == expected


CHANGES: dict[str, Callable[[], sa.Update | sa.Delete]] = {
    "an older migration": lambda: sa.update(sa.table("alembic_version", sa.column("version_num"))).values(
        version_num="f19d3c5a7b20"
    ),
    "rules of an older release": lambda: sa.update(meta).where(meta.c.name == "rules").values(value=0),
    "an issue that cannot be read": lambda: sa.update(issues).values(doc="{"),
    "a build that cannot be read": lambda: sa.update(builds).values(doc="{}"),
    "no catalogue": lambda: sa.update(issues).values(is_present=False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_as_this_release_leaves_it_is_left_to_the_ordinary_way(
    engine: Engine, file: Path, change: str
) -> None:
    assert read_local(file, NOON) is not None
    with engine.begin() as connection:
        connection.execute(CHANGES[change]())
    assert read_local(file, NOON) is None


def test_no_file_is_made_where_there_is_none(file: Path) -> None:
    assert read_local(file, NOON) is None
    assert not file.exists()


@pytest.mark.parametrize("table", [issues, builds], ids=["issues", "builds"])
def test_a_catalogue_that_was_changed_since_is_not_taken_for_the_one_that_was_read(
    engine: Engine, file: Path, table: sa.Table
) -> None:
    with reading(engine) as s:
        assert is_taken_in(s, SOURCE)
        assert not is_taken_in(s, b"other files")
    assert read_local(file, NOON, b"other files") is None
    with engine.begin() as connection:
        connection.execute(sa.update(table).values(doc=table.c.doc + " "))
    with reading(engine) as s:
        assert not is_taken_in(s, SOURCE)
    assert read_local(file, NOON, SOURCE) is None
    assert read_local(file, NOON) is not None, "the gate asks for what is stored, as before"
