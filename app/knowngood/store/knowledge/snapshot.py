"""A snapshot: what the gate knows in one file, dated and signed, for machines that reach no server.

    line 1   {"format": "knowngood-snapshot", "version": 3, "product": "knowngood", "needs": "0.2",
              "made_at": "...", "key": "ed25519:...", "sha256": "..."}
    line 2   the Ed25519 signature of line 1 and its line end, in base64; empty where it is not signed
    the rest gzip of two lines, each one JSON object: what decisions are made of, and what `explain` and prices need
             beside; `sha256` is the digest of the rest as it stands in the file

Line 1 holds the digest of the rest, so the signature covers all of it. A public key is written `ed25519:` and the
base64 of its 32 bytes. Nothing is unpacked before signature and digest are found right. The one that comes with a
release (shipped.py) is not signed: it is as good as the code beside it.

Read by the types of its values, without pydantic (see `by_type`).
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property
from typing import Any

from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.builds.architectures import WheelCode
from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadSnapshot
from knowngood.domain.issue import Issue, SignatureKind
from knowngood.domain.issue_selectors import WatchList
from knowngood.domain.message import Message
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.paired_time import TimedCost
from knowngood.domain.verdicts.verdict import Cell, CellPlace, Verdict, is_flaky
from knowngood.serialization.by_type import read_value
from knowngood.store.knowledge.model import Knowledge, LazyCells, Recorded, recorded_together

FORMAT = "knowngood-snapshot"
PRODUCT = "knowngood"
VERSION = 3
"""Since 3 the reasons in it are messages; before, they were English sentences, which are read as such."""
_OLD_VERSIONS = frozenset({1})
NEEDS = "0.2"
"""The oldest release that reads what this one writes."""

_MOST_BYTES = 100 << 20  # unpacked; the shipped one has 4.8 MB


@dataclass(frozen=True)
class Snapshot:
    """A snapshot as it was read. `key` is the public key that signed it (empty: nobody did); `is_trusted` says that
    the caller named that key. `beside` is the second line of its contents.
    """

    knowledge: Knowledge
    key: str
    is_trusted: bool
    beside: bytes = b"{}"

    @property
    def made_at(self) -> datetime:
        return self.knowledge.known.as_of

    @cached_property
    def recorded(self) -> Recorded:
        """The records beside cells; nothing in an older snapshot. Raises BadSnapshot."""
        try:
            return _recorded(json.loads(self.beside))
        except (KeyError, TypeError, ValueError) as error:
            raise BadSnapshot(f"the snapshot holds what this release cannot read ({error!r:.100})") from None


@dataclass(frozen=True)
class Opened:
    """The parts of a file whose contents are those that its first line tells; nothing is unpacked yet."""

    line: bytes
    signature: bytes
    payload: bytes
    header: Mapping[str, Any]


def write_unsigned(knowledge: Knowledge, recorded: Recorded | None = None) -> bytes:
    """The file, which nobody signed. The same grounds give the same bytes."""
    line, payload = make_parts(knowledge, recorded, "")
    return line + b"\n" + payload


def make_parts(knowledge: Knowledge, recorded: Recorded | None, key: str) -> tuple[bytes, bytes]:
    """Line 1 with its end, to be signed by `key`, and what comes after line 2."""
    lines = (_body(knowledge), _beside(recorded or Recorded()))
    text = b"\n".join(_dumped(line).encode() for line in lines)
    payload = gzip.compress(text, compresslevel=9, mtime=0)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "product": PRODUCT,
        "needs": NEEDS,
        "made_at": knowledge.known.as_of.astimezone(UTC).isoformat(),
        "key": key,
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    return json.dumps(header).encode() + b"\n", payload


def read_unsigned(data: bytes) -> Snapshot:
    """A snapshot that came with the code that reads it, which nobody needs to have signed. Raises BadSnapshot."""
    return read_contents(open_parts(data), "", is_trusted=True)


def open_parts(data: bytes) -> Opened:
    """Open the parts of a snapshot. Raises BadSnapshot for what is none, and for one that is damaged."""
    line, _, rest = data.partition(b"\n")
    signature, _, payload = rest.partition(b"\n")
    header = _header(line)
    if hashlib.sha256(payload).hexdigest() != header.get("sha256"):
        raise BadSnapshot("the snapshot is damaged: its contents are not those that its first line tells; copy it anew")
    return Opened(line, signature, payload, header)


def read_contents(opened: Opened, key: str, *, is_trusted: bool) -> Snapshot:
    """Read the contents of a snapshot. Raises BadSnapshot for what this release cannot read."""
    try:
        body, _, beside = _unpacked(opened.payload).partition(b"\n")
        made_at = datetime.fromisoformat(opened.header["made_at"])
        if made_at.tzinfo is None:
            raise ValueError("made_at has no zone")  # noqa: TRY301 - told like all else that cannot be read
        knowledge = _knowledge(json.loads(body), made_at, opened.header["version"])
        return Snapshot(knowledge, key, is_trusted, beside or b"{}")
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise BadSnapshot(f"the snapshot is whole, but holds what this release cannot read ({error!r:.100})") from None


def _header(line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise BadSnapshot("this is no Known Good snapshot: its first line does not say so")
    if header.get("product") != PRODUCT:
        raise BadSnapshot(f'this is a snapshot of another product ("{header.get("product")!s:.40}")')
    version = header.get("version")
    if type(version) is int and version in _OLD_VERSIONS:
        raise BadSnapshot(
            f"the snapshot is of format {version}, whose claims were made by older rules; "
            "make a new one with `knowngood snapshot`"
        )
    if type(version) is not int or not 1 <= version <= VERSION:
        raise BadSnapshot(
            f"the snapshot is of format {version!s:.20} and this release reads up to {VERSION}; "
            f"Known Good {header.get('needs', 'of a later release')!s:.20} or newer reads it"
        )
    return header


def parse_contents(payload: bytes) -> None:
    """Unpack and parse, for a child that has limits: what it can read is read again where there are none."""
    with suppress(ValueError, zlib.error):  # said better by who reads it then
        for line in _unpacked(payload).split(b"\n"):
            json.loads(line)


def _unpacked(payload: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    data = unpacker.decompress(payload, _MOST_BYTES)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError("more than any snapshot of ours would hold")
    return data


# -- what stands in it -------------------------------------------------------------------------------------------------


def _body(knowledge: Knowledge) -> dict[str, Any]:
    known = knowledge.known
    messages: dict[Message, int] = {}
    flaky = known.flaky
    if flaky is None:
        flaky = frozenset(place for place, cell in known.cells.items() if is_flaky(cell))
    return {
        "hardware": list(known.hardware),
        "issues": {
            field.name: [getattr(issue, field.name) for issue in known.issues.values()]
            for field in fields(Issue)
            if field.name not in _LEFT_OUT
        },
        "builds": list(known.builds.values()),
        "cells": [_cell_row(known.cells[place], messages) for place in sorted(known.cells)],
        "messages": list(messages),
        "flaky": sorted(flaky),
        "wheels": [known.wheels[torch] for torch in sorted(known.wheels)],
        "lists": list(knowledge.lists.values()),
        **({"listed": known.listed} if known.listed else {}),
        **(
            {"costs": {issue: list(found.values()) for issue, found in sorted(known.costs.items())}}
            if known.costs
            else {}
        ),
    }


def _cell_row(cell: Cell, messages: dict[Message, int]) -> list[Any]:
    """Place, verdict, and the text of the rest, which nobody parses before the cell is read. Without the names of
    fields, which would be most of it before it is packed, and with the numbers of its messages: few are its own.
    """

    def numbered(value: Any) -> Any:  # noqa: ANN401 - as `_fields`
        return {_MESSAGE: messages.setdefault(value, len(messages))} if isinstance(value, Message) else _fields(value)

    values = [getattr(cell, name) for name in _FIELDS]
    return [*values[:_KNOWN_AT_ONCE], json.dumps(values[_KNOWN_AT_ONCE:], default=numbered, separators=(",", ":"))]


_MESSAGE = ""  # no workaround has this name


def _dumped(value: Any) -> str:  # noqa: ANN401 - domain values
    return json.dumps(value, default=_fields, separators=(",", ":"))


def _beside(recorded: Recorded) -> dict[str, Any]:
    return {
        "durations": [
            [*arm, round(seconds) or round(seconds, 1)] for arm, seconds in sorted(recorded.durations.items())
        ],
        "environment_s": recorded.environment_s,
        "failures": {issue: list(texts) for issue, texts in sorted(recorded.failures.items())},
    }


def _fields(value: Any) -> Any:  # noqa: ANN401 - a domain value: what JSON has no word for
    """A date as ISO 8601 has it, any other domain value as those of its fields that are not their default."""
    if isinstance(value, date):
        return value.isoformat()
    return {field.name: own for field in fields(value) if (own := getattr(value, field.name)) != _default(field)}


def _default(field: Field[Any]) -> Any:  # noqa: ANN401 - MISSING where it has none
    return field.default if field.default_factory is MISSING else field.default_factory()


_LEFT_OUT: Mapping[str, Any] = {"script": ""}
"""Fields of an issue that no answer needs, with what stands for them when it is read."""

_BEFORE: Mapping[str, Any] = {
    "summary": "",
    "summary_zh": "",
    "signature": {"kind": SignatureKind.MESSAGE},
    "arms": (),
    "variants": (),
    "observed": {},
}
"""Fields that the first snapshots of this format left out too."""


_FIELDS = tuple(Cell.__dataclass_fields__)
_KNOWN_AT_ONCE = 1 + _FIELDS.index("verdict")
_VERDICTS = {verdict.value: verdict for verdict in Verdict}


def _knowledge(body: Mapping[str, Any], as_of: datetime, version: int) -> Knowledge:
    rows, messages = body["cells"], body.get("messages", ())

    @cache
    def message(at: int) -> Message:
        value: Message = read_value(Message, messages[at])
        return value

    def read_cell(_place: CellPlace, row: Sequence[Any]) -> Cell:
        *first, rest = row
        others = json.loads(rest, object_hook=lambda item: message(item[_MESSAGE]) if _MESSAGE in item else item)
        cell: Cell = read_value(Cell, dict(zip(_FIELDS, [*first, *others], strict=False)))
        return cell

    issues = body["issues"]
    if isinstance(issues, dict):  # field by field, which packs to nine tenths
        issues = [dict(zip(issues, values, strict=True)) for values in zip(*issues.values(), strict=True)]
    if version < VERSION:
        rows = [[*row[:_KNOWN_AT_ONCE], _dumped(row[_KNOWN_AT_ONCE:])] for row in rows]
    cells: dict[CellPlace, list[Any]] = {(row[0], row[1], row[2]): row for row in rows}
    known = Known(
        issues={fields["id"]: read_value(Issue, {**_LEFT_OUT, **_BEFORE, **fields}) for fields in issues},
        builds={fields["id"]: read_value(Build, fields) for fields in body["builds"]},
        cells=LazyCells(read_cell, cells),
        hardware=tuple(body["hardware"]),
        as_of=as_of,
        flaky=frozenset((issue, build, class_) for issue, build, class_ in body["flaky"]) if "flaky" in body else None,
        wheels={code["torch"]: read_value(WheelCode, code) for code in body.get("wheels", ())},
        listed=body.get("listed", ""),
        costs={
            issue: {cost["workaround"]: read_value(TimedCost, cost) for cost in found}
            for issue, found in body.get("costs", {}).items()
        },
        verdicts={place: _VERDICTS[row[_KNOWN_AT_ONCE - 1]] for place, row in cells.items()},
    )
    lists = {fields["name"]: read_value(WatchList, fields) for fields in body["lists"]}
    return Knowledge(known, frozenset(build for _, build, _ in cells), lists)


def _recorded(beside: Mapping[str, Any]) -> Recorded:
    return Recorded(
        durations={(issue, arm, variant): seconds for issue, arm, variant, seconds in beside.get("durations", ())},
        environment_s=beside.get("environment_s"),
        failures={issue: tuple(texts) for issue, texts in beside.get("failures", {}).items()},
    )


# The evidence that comes with this release, as one snapshot, which answers where there is no store.


FILE = SHIPPED / "known.snapshot"
"""Written by tools/shipped.py."""

_OLD = timedelta(days=180)


@cache
def read_shipped() -> Snapshot:
    """Read the snapshot that comes with this release. Raises BadSnapshot where it is damaged, or cannot be read."""
    try:
        return read_unsigned(FILE.read_bytes())
    except OSError as error:
        raise BadSnapshot(f"{FILE} comes with this release and cannot be read: {error.strerror}") from None


def recorded_with_shipped(own: Recorded) -> Recorded:
    """Add what was timed before this release, for a guess at what nobody has timed here: no answer depends on it."""
    try:
        return recorded_together(own, read_shipped().recorded)
    except BadSnapshot:
        return own


def age_in_words(made_at: datetime, now: datetime) -> str:
    """A warning about results that are old; empty while they are not."""
    return f"{(now - made_at).days} days old; a newer release may know more" if now - made_at > _OLD else ""
