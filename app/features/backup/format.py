r"""The backup: every row of a store in one file, whichever database it came from. JSON Lines, gzipped.

    {"kind": "header", "format": "knowngood-backup", "version": 1, "product": "knowngood", "schema": <revision>, ...}
    {"kind": "table", "name": "events", "columns": ["at", "data", "id", ...], "last_id": 1234}
    ["2026-11-21T12:00:00.000000+00:00", "{\"n\": 1}", 7, ...]      one row of that table, columns in that order
    {"kind": "footer", "tables": {"events": {"rows": 1, "sha256": <of its row lines>, ...}}, "sha256": <of all before>}

Tables stand so that what is referred to comes first, rows in the order of their keys' bytes, so that the same rows give
the same digest on every database. Times are UTC, bytes base64, JSON columns the very text that is stored. Reading and
writing stream: no more than one row is held.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from knowngood.app.domain.errors import BadBackup
from knowngood.app.serialization.codec import first_problem

FORMAT = "knowngood-backup"
PRODUCT = "knowngood"
VERSION = 1

_LINE_LIMIT_BYTES = 64 << 20  # the longest row of ours is a log of one MiB; what has no line ends is no backup
_COMPRESSION = 6

Row = Sequence[Any]
_T = TypeVar("_T")


@dataclass(frozen=True)
class BackupHeader:
    """`release` made the backup, of tables at the migration `schema`, in a database of the kind `database`."""

    taken_at: datetime
    release: str
    schema: str
    database: str
    format: str = FORMAT
    version: int = VERSION
    product: str = PRODUCT


@dataclass(frozen=True)
class Total:
    """The totals of a table. `last_id` is the last id that its counter gave out, if it has one and gave one."""

    rows: int
    sha256: str
    last_id: int | None


@dataclass(frozen=True)
class TableHead:
    name: str
    columns: tuple[str, ...]
    last_id: int | None = None


@dataclass(frozen=True)
class CheckedBackup:
    """A backup that was read to its end and holds what it says."""

    path: Path
    header: BackupHeader
    tables: Mapping[str, Total]
    sha256: str

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.tables.values())


@dataclass(frozen=True)
class _Footer:
    tables: Mapping[str, Total]
    sha256: str


_HEADER = TypeAdapter(BackupHeader)
_TABLE = TypeAdapter(TableHead)
_FOOTER = TypeAdapter(_Footer)


class RowTally:
    """Counts and digests the rows of one table."""

    def __init__(self, last_id: int | None = None) -> None:
        self._digest = hashlib.sha256()
        self._rows = 0
        self._last_id = last_id

    def add(self, line: bytes) -> None:
        self._digest.update(line)
        self._rows += 1

    def total(self) -> Total:
        return Total(self._rows, self._digest.hexdigest(), self._last_id)


def row_line(row: Row) -> bytes:
    """A row as it stands in the file, and as it is digested."""
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def write_backup(
    out: BinaryIO, header: BackupHeader, tables: Iterable[tuple[TableHead, Iterable[Row]]]
) -> CheckedBackup:
    """Write a whole backup; tell what it holds. `path` of what is told is empty."""
    totals: dict[str, Total] = {}
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", mtime=0, compresslevel=_COMPRESSION) as file:
        written = hashlib.sha256()

        def put(line: bytes) -> None:
            written.update(line)
            file.write(line)

        put(_marked("header", _HEADER.dump_json(header)))
        for head, rows in tables:
            put(_marked("table", _TABLE.dump_json(head)))
            tally = RowTally(head.last_id)
            for row in rows:
                line = row_line(row)
                tally.add(line)
                put(line)
            totals[head.name] = tally.total()
        sha256 = written.hexdigest()
        file.write(_marked("footer", _FOOTER.dump_json(_Footer(totals, sha256))))
    return CheckedBackup(Path(), header, totals, sha256)


def _marked(kind: str, fields: bytes) -> bytes:
    return b'{"kind":"%s",%s\n' % (kind.encode(), fields[1:])


def check_backup(path: Path) -> CheckedBackup:
    """Read a backup to its end and believe it, or raise BadBackup with a sentence that says what is wrong."""
    lines = _lines(path)
    first = next(lines, b"")
    header = _header(path, first)
    read = hashlib.sha256(first)
    totals: dict[str, Total] = {}
    name, tally = "", RowTally()
    for number, line in enumerate(lines, start=2):
        if line.startswith(b"["):
            tally.add(line)
        else:
            if name:
                totals[name] = tally.total()
            kind, fields = _parsed(path, number, line)
            if kind == "footer":
                return _checked(path, header, totals, read.hexdigest(), fields, lines)
            head = _valid(path, number, _TABLE.validate_python, fields)
            name, tally = head.name, RowTally(head.last_id)
        read.update(line)
    raise _cut_off(path)


def _checked(
    path: Path, header: BackupHeader, totals: Mapping[str, Total], sha256: str, fields: object, rest: Iterator[bytes]
) -> CheckedBackup:
    if next(rest, None) is not None:
        raise BadBackup(f"{path.name} goes on after its last line; it was put together from several files")
    footer = _valid(path, 0, _FOOTER.validate_python, fields)
    if footer.sha256 != sha256 or footer.tables != totals:
        raise BadBackup(f"{path.name} was changed after it was written: its rows are not those it was made of")
    return CheckedBackup(path, header, totals, sha256)


def read_tables(checked: CheckedBackup) -> Iterator[tuple[TableHead, Iterator[Row]]]:
    """The tables of a backup that was checked, each with its rows. A table's rows are to be taken before the next."""
    lines = enumerate(_lines(checked.path), start=1)
    following: list[TableHead] = []

    def rows() -> Iterator[Row]:
        for number, line in lines:
            if not line.startswith(b"["):
                kind, fields = _parsed(checked.path, number, line)
                if kind == "table":
                    following.append(_valid(checked.path, number, _TABLE.validate_python, fields))
                return
            yield orjson.loads(line)

    next(lines, None)  # the header
    for _ in rows():
        pass
    while following:
        yield following.pop(), rows()


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(_LINE_LIMIT_BYTES):
                if not line.endswith(b"\n"):
                    raise _cut_off(path)
                yield line
    except EOFError:
        raise _cut_off(path) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadBackup(
            f"{path.name} is damaged or no backup ({error}); copy it again from where it was made"
        ) from None
    except OSError as error:
        raise BadBackup(f"{path} cannot be read: {error.strerror or error}") from None


def _cut_off(path: Path) -> BadBackup:
    return BadBackup(f"{path.name} ends in the middle: it was cut off when it was written or copied; take another")


def _header(path: Path, line: bytes) -> BackupHeader:
    """The backup's header, once it is sure to be one that this release reads."""
    kind, fields = _parsed(path, 1, line or b"{}")
    if kind != "header" or fields.get("format") != FORMAT or fields.get("product") != PRODUCT:
        raise BadBackup(f"{path.name} is no backup of Known Good; bundles of results are for `knowngood import`")
    if fields.get("version") != VERSION:
        raise BadBackup(
            f"{path.name} is of format {fields.get('version')}, this release reads {VERSION}; "
            f"restore it with the release that made it ({fields.get('release')})"
        )
    return _valid(path, 1, _HEADER.validate_python, fields)


def _parsed(path: Path, number: int, line: bytes) -> tuple[object, dict[str, Any]]:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadBackup(f"{path.name}, line {number}: no JSON ({error})") from None
    if not isinstance(fields, dict):
        raise BadBackup(f"{path.name}, line {number}: neither a row nor a table of a backup")
    return fields.pop("kind", None), fields


def _valid(path: Path, number: int, validate: Callable[[object], _T], fields: object) -> _T:
    try:
        return validate(fields)
    except ValidationError as error:
        raise BadBackup(f"{path.name}, line {number or 'last'}: {first_problem(error)}") from None
