"""Reading of our SQLite file by whoever may not write it: without SQLAlchemy, as some questions are answered."""

import os
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path


def is_read_only(file: Path) -> bool:
    """Whether the file is there and may not be written, or its folder not, where SQLite keeps its log of writes."""
    return os.path.exists(file) and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))  # noqa: PTH110 - False where it must not be looked at


def open_to_read(file: Path, *, timeout_s: float = 5.0) -> sqlite3.Connection:
    """A connection that writes nothing. Where nobody keeps a log of writes beside the file and none can be made, it is
    taken as it lies there: SQLite refuses it otherwise, because somebody might be about to write.
    """
    is_at_rest = is_read_only(file) and not os.path.exists(f"{file}-wal")  # noqa: PTH110 - as above
    how = "mode=ro&immutable=1" if is_at_rest else "mode=ro"
    return sqlite3.connect(f"{file.as_uri()}?{how}", uri=True, timeout=timeout_s, check_same_thread=False)


def read_extent(file: Path) -> tuple[int, datetime | None] | None:
    """The number of cells in a store's file, and when the newest of them was measured; None where it cannot be read."""
    with suppress(sqlite3.Error), closing(open_to_read(file)) as db:
        cells, newest = db.execute("SELECT count(*), max(measured_at) FROM cells").fetchone()
        return cells, datetime.fromisoformat(newest).replace(tzinfo=UTC) if newest else None
    return None
