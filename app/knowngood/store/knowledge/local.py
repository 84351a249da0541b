"""Everything the gate knows, read from our own SQLite file without SQLAlchemy, which takes 0.25 s to import.

Only a store that is as this release leaves it is read so: everything else has the ordinary way, which brings it up,
tells what is wrong, and reads PostgreSQL too (knowledge/loader.py). tests/store/test_local_reading.py holds both equal.
"""

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from sys import intern

from knowngood.domain.hardware_classes import whole_classes
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import RULES
from knowngood.domain.watch_list import WatchList
from knowngood.sqlite_file import open_to_read
from knowngood.store.evidence.documents import CONTENT, flaky_places, parse_build, parse_issue, read_cell
from knowngood.store.evidence.newest_attempts import NEWEST
from knowngood.store.knowledge.lazy_cells import LazyCells
from knowngood.store.knowledge.model import Knowledge
from knowngood.store.state.revisions import CATALOGUE_IN_META, RULES_IN_META, head, state_of
from knowngood.store.unreadable import FAULTS

_LISTS = """
    SELECT name, owner, version, at, actor, doc FROM watch_lists JOIN watch_list_versions USING (name, version)
    WHERE is_present ORDER BY name
"""
_MADE_S = """
    SELECT avg(data ->> 'seconds') FROM events WHERE kind = 'environment_ready' AND NOT data ->> 'reused'
"""


def read_local(file: Path, now: datetime, source: bytes | None = None) -> Knowledge | None:
    """The knowledge that the file holds; None where it is not current, holds no issue, or anything in it cannot be
    read. With `source` (the digest of the catalogue's files) also where another catalogue was taken in last.
    """
    with suppress(sqlite3.Error, *FAULTS), closing(open_to_read(file)) as db:
        db.execute("BEGIN")
        return _knowledge(db, now, source)
    return None


def read_times(file: Path) -> tuple[dict[tuple[str, str, str], float], float | None] | None:
    """As `load_durations` and `load_environment_s`, of a file that `read_local` has read."""
    with suppress(sqlite3.Error, *FAULTS), closing(open_to_read(file)) as db:
        took = {
            (issue, arm, variant): (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
            for issue, arm, variant, begin, end in db.execute(NEWEST, {"before": "9999-12-31"})
        }
        return took, db.execute(_MADE_S).fetchone()[0]
    return None


def read_extent(file: Path) -> tuple[int, datetime | None] | None:
    """How many cells the file holds, and when the newest of them was measured; None where it cannot be read."""
    with suppress(sqlite3.Error), closing(open_to_read(file)) as db:
        cells, newest = db.execute("SELECT count(*), max(measured_at) FROM cells").fetchone()
        return cells, datetime.fromisoformat(newest).replace(tzinfo=UTC) if newest else None
    return None


def _knowledge(db: sqlite3.Connection, now: datetime, source: bytes | None) -> Knowledge | None:
    meta = dict(db.execute("SELECT name, value FROM meta"))
    if db.execute("SELECT version_num FROM alembic_version").fetchall() != [(head(),)] or meta[RULES_IN_META] < RULES:
        return None
    issues, builds = (
        db.execute(f"SELECT id, doc FROM {name} WHERE is_present ORDER BY id").fetchall()  # noqa: S608 - ours
        for name in ("issues", "builds")
    )
    if not issues or (source is not None and meta.get(CATALOGUE_IN_META) != state_of(source, issues, builds)):
        return None
    rows = db.execute("SELECT issue, build, hardware, doc FROM cells")
    cells = {(intern(issue), intern(build), intern(hardware)): doc for issue, build, hardware, doc in rows}
    in_order = sorted((parse_build(doc) for _, doc in builds), key=lambda build: build.build_id)
    known = Known(
        issues={id_: parse_issue(doc) for id_, doc in issues},
        builds={build.id: build for build in in_order},
        cells=LazyCells(read_cell, cells),
        hardware=whole_classes(hardware for _, _, hardware in cells),
        as_of=now,
        flaky=flaky_places(cells),
    )
    return Knowledge(known, frozenset(build for _, build, _ in cells), _lists(db))


def _lists(db: sqlite3.Connection) -> dict[str, WatchList]:
    return {
        name: WatchList(
            name,
            owner,
            version,
            datetime.fromisoformat(at).replace(tzinfo=UTC),
            actor,
            content=CONTENT.validate_json(doc),
        )
        for name, owner, version, at, actor, doc in db.execute(_LISTS)
    }
