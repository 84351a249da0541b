"""The extent of our own SQLite file, for whoever only says that it is there: nothing is brought up or made."""

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from knowngood.sqlite_file import open_to_read


def read_extent(file: Path) -> tuple[int, datetime | None] | None:
    """The number of cells in the file, and when the newest of them was measured; None where it cannot be read."""
    with suppress(sqlite3.Error), closing(open_to_read(file)) as db:
        cells, newest = db.execute("SELECT count(*), max(measured_at) FROM cells").fetchone()
        return cells, datetime.fromisoformat(newest).replace(tzinfo=UTC) if newest else None
    return None
