"""The result bundle: evidence on its way from one store to another. JSON Lines, gzipped, distinguished by `kind`.

    {"kind": "header", "format": "knowngood-bundle", "version": 1, "product": "knowngood", ...}
    machines, locks, environments, logs, attempts: what is referred to stands before what refers to it
    {"kind": "footer", "counts": {...}, "sha256": <of all bytes before this line>}

Fields and kinds that a reader does not know are passed over: they come with the same `version`. What would be read
wrongly comes with the next one, and is refused with the release that reads it. Reading and writing stream.
"""

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from io import BufferedReader
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from knowngood.domain.builds.build import parse_build_id
from knowngood.domain.errors import BadBundle, BadRequest, StoreUnusable, UnknownBuild
from knowngood.domain.hardware_classes import whole_class
from knowngood.domain.issue import digest
from knowngood.domain.issue_selectors import HARDWARE_FORM
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.verdicts.voids import Note, Void, checked_reason
from knowngood.serialization.bounds import (
    LOG_LIMIT_BYTES,
    MOST_LINES,
    MOST_LOCKS,
    entries_problem,
    machine_problem,
    record_problem,
)
from knowngood.serialization.codec import first_problem
from knowngood.serialization.lock_keys import (
    InstalledEnvironment,
    environment_key,
    joined,
    text_key,
)

FORMAT = "knowngood-bundle"
PRODUCT = "knowngood"
VERSION = 1
NEEDS = "0.1"
"""The oldest release that reads what this one writes."""

_LINE_LIMIT_BYTES = 8 * LOG_LIMIT_BYTES
_TOTAL_LIMIT_BYTES = 16 << 30
_HELD_BYTES = 8 << 20  # of lines, as they stand in the file; about 5,000 attempts
_MOST_ORDINAL = 1_000_000  # the next one is planned from it, and its column ends at two thousand million
_MOST_ISSUES = 100_000
_LONGEST_NAMES = {"issue": 100, "build": 100, "hardware": 40, "machine": 32, "token": 16, "actor": 100, "ended_by": 100}
_EARLIEST = datetime(2016, 1, 1, tzinfo=UTC)  # before there was any torch; the first years of all have no UTC
_BUFFER_BYTES = 1 << 18  # lines are read from it without asking Python's gzip for each
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class BundleHeader:
    """`origin` names where the evidence was made; `catalogue` the issues it was made with, id to revision. `notes` and
    `voids` are what people say of it, the oldest first; readers before 0.2 pass them over.
    """

    created_at: datetime
    origin: str
    catalogue: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    voids: tuple[Void, ...] = ()
    format: str = FORMAT
    version: int = VERSION
    product: str = PRODUCT
    needs: str = NEEDS


@dataclass(frozen=True)
class DigestedText:
    digest: str
    text: str


class LockText(DigestedText):
    """A pylock.toml under the digest of its full text; the text here names files where that named addresses. Whoever
    reads it cannot check the digest: see `CheckedBundle.locks`.
    """


class LogText(DigestedText):
    """The output of an attempt."""


Item = Machine | LockText | InstalledEnvironment | LogText | Attempt


@dataclass(frozen=True)
class CheckedBundle:
    """A bundle that was read to its end: what it says of itself, and how many items of each kind it holds.

    `locks` are, by the digest that the bundle names a lock by, the one that its contents have (`lock_key`). `lines` are
    what stands in it after its first line, where that is little enough to be kept; else None, and the file is unpacked
    once more.
    """

    path: Path
    header: BundleHeader
    counts: Mapping[str, int]
    sha256: str
    locks: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[bytes, ...] | None = None


_HEADER = TypeAdapter(BundleHeader)
_KIND_OF: dict[type[Item], str] = {
    Machine: "machine",
    LockText: "lock",
    InstalledEnvironment: "environment",
    LogText: "log",
    Attempt: "attempt",
}
_KINDS: dict[str, TypeAdapter[Item]] = {name: TypeAdapter(kind) for kind, name in _KIND_OF.items()}


def write_bundle(out: BinaryIO, header: BundleHeader, items: Iterable[Item]) -> Mapping[str, int]:
    """Write a whole bundle; tell how many items of each kind. The same items give the same bytes."""
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", mtime=0) as file:
        written = hashlib.sha256()
        counts: Counter[str] = Counter()

        def put(kind: str, fields: bytes) -> None:
            line = b'{"kind":"%s",%s\n' % (kind.encode(), fields[1:])
            written.update(line)
            file.write(line)

        put("header", _HEADER.dump_json(header))
        for item in items:
            kind = _KIND_OF[type(item)]
            counts[kind] += 1
            put(kind, _KINDS[kind].dump_json(item))
        put("footer", orjson.dumps({"counts": counts, "sha256": written.hexdigest()}))
    return counts


# Straight at what checks the values: the adapters' own method takes as long again as a small item does.
_READ_JSON = {kind: adapter.validator.validate_json for kind, adapter in _KINDS.items()}


def check_bundle(path: Path) -> CheckedBundle:
    """Read a bundle to its end and believe that it is what was written, or raise BadBundle with a sentence that says
    where it is not; more lines than are taken are no bundle of ours either. What its items say is looked at by
    `read_items`, so that nothing is decoded twice.
    """
    lines = _lines(path)
    read = hashlib.sha256()
    first = next(lines, b"")
    header = _header(path, first)
    read.update(first)
    counts: Counter[str] = Counter()
    keys: dict[tuple[type[Item], str], str] = {}
    held_lines: list[bytes] = []
    size = 0
    for number, line in enumerate(lines, start=2):
        kind, content = _parsed(path, number, line)
        if kind == "footer":
            if next(lines, None) is not None:
                raise BadBundle(f"{_named(path)} goes on after its last line; it was put together from several files")
            sha256 = read.hexdigest()
            _check_footer(path, counts, sha256, orjson.loads(line))
            held = tuple(held_lines) if size <= _HELD_BYTES else None
            return CheckedBundle(path, header, dict(counts), sha256, _lock_keys(keys), held)
        if kind in {"lock", "environment"}:
            _note_lock(keys, path, number, _item(path, number, kind, content))
        read.update(line)
        counts[kind] += 1
        if number - 1 > MOST_LINES or counts["lock"] + counts["environment"] > MOST_LOCKS:
            raise BadBundle(
                f"{_named(path)} holds more than {MOST_LINES:,} lines, or {MOST_LOCKS:,} of locks; export it in parts"
            )
        size += len(line)
        if size <= _HELD_BYTES:
            held_lines.append(line)
    raise _cut_off(path)


def _note_lock(keys: dict[tuple[type[Item], str], str], path: Path, number: int, item: Item) -> None:
    """Note what a bundle says of a lock: at most one text and one environment. Raises BadBundle."""
    match item:
        case LockText():
            name, key = item.digest, text_key(item.text)
        case InstalledEnvironment():
            name, key = item.lock_digest, environment_key(item)
        case _:
            return
    if keys.setdefault((type(item), name), key) != key:
        raise BadBundle(f"{_named(path)}, line {number}: says of the lock {name} what it said otherwise before")


def _lock_keys(keys: Mapping[tuple[type[Item], str], str]) -> Mapping[str, str]:
    return {
        name: joined(keys.get((LockText, name), ""), keys.get((InstalledEnvironment, name), ""))
        for name in {name for _, name in keys}
    }


def read_items(checked: CheckedBundle) -> Iterator[Item]:
    """The items of a bundle that was checked, in its order.

    Raises BadBundle at the first that could not be stored or shown as it is; those before it were given out by then.
    """
    return (item for item, _ in _items(checked))


def _items(checked: CheckedBundle) -> Iterator[tuple[Item, bytes]]:
    """Each item with its line."""
    lines = islice(_lines(checked.path), 1, None) if checked.lines is None else checked.lines
    for number, line in enumerate(lines, start=2):
        kind, content = _parsed(checked.path, number, line)
        if kind in _KINDS:
            yield _item(checked.path, number, kind, content), line


_UNNAMED = Path("/proc/self/fd")


def _named(path: Path) -> str:
    """The file as sentences call it. A file that is written as it comes over the network has no name that says
    anything.
    """
    return "the bundle" if path.parent == _UNNAMED else path.name


def read_in_steps(checked: CheckedBundle, step_bytes: int, look: Callable[[Item], None]) -> Iterator[tuple[Item, ...]]:
    """The items of a bundle that is too large to be held, each looked at before the first is given out: attempts, one
    cell after the other, in tuples of about so many bytes as they stand in the file, and in each of these all that its
    attempts refer to, so that nothing depends on what came before. What no attempt refers to is left out.

    Raises BadBundle as `read_items` does, and what `look` raises, all of it before anything is given out; StoreUnusable
    where there is no room. Unpacked lines wait in a file without a name, which goes with this process.
    """
    try:
        with TemporaryFile() as file:
            unpacked = _Unpacked(checked.path, file)
            for item, line in _items(checked):
                look(item)
                unpacked.put(item, line)
            yield from unpacked.steps(step_bytes)
    except OSError as error:
        raise StoreUnusable(
            f"there is no room to unpack {_named(checked.path)}: {error.strerror or error}; TMPDIR names the folder"
        ) from error


class _Unpacked:
    """A bundle's lines in a file, and where each of them stands that says something new.

    For an attempt that is one number, which sorts by build and then by cell (attempts of one build have their locks in
    common): as whole tuples, those of a large bundle took hundreds of megabytes.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._end = 0
        self._attempts: list[int] = []
        self._referred: dict[type[Item], dict[str, int]] = {
            Machine: {},
            LockText: {},
            InstalledEnvironment: {},
            LogText: {},
        }

    def put(self, item: Item, line: bytes) -> None:
        match item:
            case Attempt():
                column, row = f"{item.build} {item.hardware}".encode(), item.issue.encode()
                cell = zlib.crc32(column) << 32 | zlib.crc32(row)
                self._attempts.append(cell << 64 | self._end)
            case InstalledEnvironment():
                self._referred[InstalledEnvironment].setdefault(item.lock_digest, self._end)
            case _:
                self._referred[type(item)].setdefault(item.digest, self._end)
        self._file.write(line)
        self._end += len(line)

    def steps(self, step_bytes: int) -> Iterator[tuple[Item, ...]]:
        """A cell in one step, as far as it is not larger than two."""
        step: dict[int, Item] = {}
        held = last = 0
        for place in sorted(self._attempts):
            cell, at = divmod(place, 1 << 64)
            if held >= step_bytes and (cell != last or held >= 2 * step_bytes):
                yield tuple(step.values())
                step, held = {}, 0
            item, size = self._read(at)
            attempt = cast("Attempt", item)
            for each in self._referred_by(attempt):
                if each not in step:
                    step[each], more = self._read(each)
                    held += more
            step[at] = attempt
            held += size
            last = cell
        if step:
            yield tuple(step.values())

    def _referred_by(self, attempt: Attempt) -> list[int]:
        """The places of what an attempt refers to, as far as it is in the bundle."""
        names = (attempt.machine, attempt.lock_digest, attempt.lock_digest, attempt.log_digest)
        pairs = zip(self._referred.values(), names, strict=True)
        return [places[name] for places, name in pairs if name in places]

    def _read(self, at: int) -> tuple[Item, int]:
        """An item that was looked at before, and its bytes."""
        self._file.seek(at)
        line = self._file.readline()
        return _valid(self._path, 0, *_parsed(self._path, 0, line)), len(line)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with _open(path) as file:
            total = 0
            while line := file.readline(_LINE_LIMIT_BYTES):
                total += len(line)
                if not line.endswith(b"\n"):
                    raise _cut_off(path) if len(line) < _LINE_LIMIT_BYTES else _too_large(path)
                if total > _TOTAL_LIMIT_BYTES:
                    raise _too_large(path)
                yield line
    except EOFError:
        raise _cut_off(path) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadBundle(f"{_named(path)} is damaged ({error}); copy it again from where it was made") from None
    except OSError as error:
        raise BadBundle(f"{path} cannot be read: {error.strerror or error}") from None


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """The bundle's bytes, unpacked where it is packed."""
    with path.open("rb") as file:
        is_packed = file.read(2) == _GZIP_MAGIC
        file.seek(0)
        if is_packed:
            with gzip.GzipFile(fileobj=file) as unpacked, BufferedReader(unpacked, _BUFFER_BYTES) as buffered:
                yield buffered
        else:
            yield file


def _cut_off(path: Path) -> BadBundle:
    return BadBundle(f"{_named(path)} ends in the middle: it was cut off on its way; copy it again")


def _too_large(path: Path) -> BadBundle:
    return BadBundle(f"{_named(path)} holds more than any bundle of ours would; nothing of it was imported")


def _header(path: Path, line: bytes) -> BundleHeader:
    """The bundle's header, once it is sure to be one that this release reads."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        fields = None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise BadBundle(f"{_named(path)} is no Known Good bundle: its first line does not say so")
    if fields.get("product") != PRODUCT:
        raise BadBundle(f'{_named(path)} is a bundle of another product ("{str(fields.get("product"))[:40]}")')
    version = fields.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise BadBundle(
            f"{_named(path)} is of bundle format {str(version)[:40]} and this release reads up to {VERSION}; "
            f"Known Good {str(fields.get('needs', 'of a later release'))[:40]} or newer reads it"
        )
    try:
        header = _HEADER.validate_python(fields)
    except ValidationError as error:
        raise BadBundle(f"{_named(path)}, line 1: {first_problem(error)}") from None
    problem = None if _ORIGIN.match(header.origin) else f'"{header.origin[:40]}" is no origin'
    words: list[Note | Void] = [*header.notes, *header.voids]
    problem = problem or next((wrong for word in words if (wrong := _problem_of_words(word))), None)
    if problem or len(header.catalogue) > _MOST_ISSUES:
        raise BadBundle(f"{_named(path)}, line 1: {problem or f'it names more than {_MOST_ISSUES} issues'}")
    return header


def _problem_of_words(remark: Note | Void) -> str | None:
    """Find what a store could not hold, or a page not show in one line."""
    names = vars(remark) if isinstance(remark, Note) else vars(remark) | vars(remark.span)
    for name, limit in _LONGEST_NAMES.items():
        if len(named := str(names.get(name, ""))) > limit or not named.isprintable():
            return f'"{named[:40]}" is no {name} of a note or void'
    try:
        checked_reason(remark.reason)
    except BadRequest as error:
        return str(error)
    return None


def _parsed(path: Path, number: int, line: bytes) -> tuple[str, bytes | dict[str, Any]]:
    """The kind of a line, and what its fields are read from: the line itself where it begins as ours do."""
    begun = _BEGINS.match(line)
    if begun is not None and begun[1].decode() in _KINDS:
        return begun[1].decode(), line
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadBundle(f"{_named(path)}, line {number} is no JSON ({error}); the file is damaged") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
        raise BadBundle(f"{_named(path)}, line {number} does not say its kind; the file is damaged")
    return fields.pop("kind"), fields


def _check_footer(path: Path, counts: Counter[str], sha256: str, footer: Mapping[str, Any]) -> None:
    if footer.get("sha256") != sha256:
        raise BadBundle(
            f"{_named(path)} is not what was written: its contents do not have the checksum in its last line"
        )
    if footer.get("counts") != counts:
        raise BadBundle(f"{_named(path)} is not what was written: its last line counts other items than it holds")


_BEGINS = re.compile(rb'\{"kind":"([a-z]{1,20})",')


def _valid(path: Path, number: int, kind: str, content: bytes | Mapping[str, Any]) -> Item:
    """Straight from JSON: half the time of reading fields first and then making a value of them."""
    try:
        return _READ_JSON[kind](content) if isinstance(content, bytes) else _KINDS[kind].validate_python(content)
    except ValidationError as error:
        if error.errors(include_url=False, include_context=False)[0]["type"] == "json_invalid":
            raise BadBundle(
                f"{_named(path)}, line {number} is no JSON ({first_problem(error)}); the file is damaged"
            ) from None
        raise BadBundle(f"{_named(path)}, line {number}, {kind}: {first_problem(error)}") from None


def _item(path: Path, number: int, kind: str, content: bytes | Mapping[str, Any]) -> Item:
    item = _valid(path, number, kind, content)
    problem = _problem(item)
    if problem:
        raise BadBundle(f"{_named(path)}, line {number}, {kind}: {problem}")
    return item


_DIGEST = re.compile(r"[0-9a-f]{32}\Z")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")
_ORIGIN = re.compile(r"[^\x00-\x1f\x7f]{1,100}\Z")
_ID = re.compile(r"[0-9A-Za-z.+~_-]{1,64}\Z")


def _problem(item: Item) -> str | None:
    """Say what of an item could not be stored or shown as it is; None for a good one."""
    match item:
        case Attempt():  # first: nearly all are
            return _attempt_problem(item)
        case Machine():
            return machine_problem(item)
        case LogText():
            return _text_problem(item.text) or (
                None if digest(item.text) == item.digest else f"{item.digest} is not the digest of its text"
            )
        case LockText():
            return _text_problem(item.text) or _digest_problem(item.digest)
        case InstalledEnvironment():
            problem = entries_problem(item.packages) or entries_problem(item.imported)
            return _digest_problem(item.lock_digest) or problem


def _text_problem(text: str) -> str | None:
    return "is longer than any of ours" if len(text.encode()) > LOG_LIMIT_BYTES else None


def _digest_problem(text: str) -> str | None:
    return None if _DIGEST.match(text) else f'"{text[:40]}" is no digest'


def _attempt_problem(attempt: Attempt) -> str | None:
    place = _place_problem(attempt.issue, attempt.arm, attempt.variant, attempt.hardware, attempt.build)
    if place:
        return place
    for text in (attempt.log_digest, attempt.lock_digest, attempt.machine):
        if text and _digest_problem(text):
            return _digest_problem(text)
    if not _ID.match(attempt.id) or not _ID.match(attempt.job):
        return f'id "{attempt.id[:40]}" of job "{attempt.job[:40]}" is no id of ours'
    if not 1 <= attempt.ordinal <= _MOST_ORDINAL:
        return f"its ordinal {attempt.ordinal} is none of ours; they count from 1"
    too_much = record_problem(attempt.record) or entries_problem(attempt.labels)
    if too_much:
        return too_much
    if not _ORIGIN.match(attempt.origin) or not _DIGEST.match(attempt.binding):
        return "its origin or binding is no such thing"
    return _time_problem(attempt)


@lru_cache(maxsize=65_536)  # more than a catalogue has: attempts of one place are strewn over a bundle
def _place_problem(issue: str, arm: str, variant: str, hardware: str, build: str) -> str | None:
    """Fields that are the same in many attempts of a bundle, looked at once."""
    for what, name in (("issue", issue), ("arm", arm), ("variant", variant)):
        if not _NAME.match(name):
            return f'{what} "{name[:40]}" is no name'
    if not HARDWARE_FORM.match(whole_class(hardware)):
        return f'hardware "{hardware[:40]}" is no hardware class'
    return _build_problem(build)


def _build_problem(build: str) -> str | None:
    try:
        parsed = str(parse_build_id(build))
    except UnknownBuild as error:
        return str(error)
    return None if parsed == build else f'build "{build[:80]}" is written {parsed[:80]}'


def _time_problem(attempt: Attempt) -> str | None:
    if attempt.started_at.tzinfo is None or attempt.finished_at.tzinfo is None:
        return "its times do not say their zone"
    if attempt.started_at < _EARLIEST:
        return f"it started in {attempt.started_at.year}, before there was any torch"
    if attempt.finished_at < attempt.started_at:
        return "it finished before it started"
    return None
