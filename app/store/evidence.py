"""Stored attempts as domain values, and what they mean: reading rows of evidence back and judging them."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.domain.build import Build
from app.domain.issue import Issue, binding, digest, environment_request, variants_of
from app.domain.job import Attempt
from app.domain.outcome import Judgement, Outcome, classify, heeds_log
from app.domain.verdict import Cell, Judged, judge
from app.formats import wire
from app.formats.bundle import LOG_LIMIT_BYTES
from app.store import bulk
from app.store.tables import attempts, logs

_CUT = "\n[... {} bytes left out ...]\n"


@lru_cache(maxsize=4096)  # more than a catalogue has: pages ask for all of it, one after the other
def parse_issue(doc: str) -> Issue:
    return wire.ISSUE.validate_json(doc)


@lru_cache(maxsize=512)
def parse_build(doc: str) -> Build:
    return wire.BUILD.validate_json(doc)


@lru_cache(maxsize=65_536)
def parse_cell(doc: str) -> Cell:
    """Decoding takes most of a matrix read, and between two reads hardly a cell changes: equal text is decoded once.

    Times come back in `datetime.UTC`, not in pydantic's own zone: two of these compare in 0.06 us, not in 1.
    """
    cell = wire.CELL.validate_json(doc)
    return replace(cell, measured_at=cell.measured_at.astimezone(UTC)) if cell.measured_at else cell


def parse_attempt(row: sa.RowMapping) -> Attempt:
    """One row of the table, as the value that was stored."""
    fields = {name: row[name] for name in _PLAIN_COLUMNS}
    return Attempt(record=wire.RECORD.validate_json(row["record"]), **fields)


TOLD = tuple(attempts.c[field.name] for field in fields(Attempt) if field.name != "labels")
"""The columns of `parse_told`. Without labels, which no verdict rests on: JSON that would be decoded for each row."""


_RECORD_AT = [column.name for column in TOLD].index("record")


def parse_told(row: Sequence[Any]) -> Attempt:
    """An attempt from the columns TOLD: a hundred thousand of these are judged at once."""
    values = list(row)
    values[_RECORD_AT] = wire.RECORD.validate_json(values[_RECORD_AT])
    return Attempt(*values)


@dataclass(frozen=True)
class Reception:
    """What this server itself says of a result that comes in, and no worker can claim: when it came, through which
    token (its id; empty: none), and the void that keeps it from counting (None: there is none).
    """

    at: datetime
    token: str = ""
    void: int | None = None


def attempt_row(attempt: Attempt, received: Reception) -> dict[str, Any]:
    """The other way round; what it counts as is derived afterwards."""
    row = dict(vars(attempt))
    row["labels"] = dict(attempt.labels)
    row["record"] = wire.dump_record(attempt.record).decode()
    row["received_at"], row["token"], row["void"] = received.at, received.token, received.void
    return row


# What a worker says: the fields of an attempt. What we say of it stands in columns of its own.
_PLAIN_COLUMNS = tuple(field.name for field in fields(Attempt) if field.name != "record")


def pack(text: str) -> bytes:
    return zlib.compress(text.encode(), 6)


def unpack(data: bytes | None) -> str:
    return zlib.decompress(data).decode() if data else ""


def cut(log: str) -> str:
    """At most LOG_LIMIT_BYTES of UTF-8, with the middle left out: beginnings name versions, ends name causes."""
    data = log.encode()
    if len(data) <= LOG_LIMIT_BYTES:
        return log
    half = LOG_LIMIT_BYTES // 2 - 64
    head, tail = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    return head + _CUT.format(len(data) - 2 * half) + tail


def log_digest(log: str) -> str:
    """What a log is kept under; empty for an empty one, which is not kept."""
    return digest(log) if log else ""


def current_bindings(issue: Issue, build: Build) -> dict[tuple[str, str], str]:
    """By (arm, variant), what a result must be bound to for it to count today."""
    request = environment_request(issue, build)
    return {
        (arm.id, variant.id): binding(arm, variant, request)
        for arm in issue.arms
        for variant in variants_of(issue, arm.id)
    }


class Bound(Protocol):
    """An attempt as far as it takes to know whether it counts."""

    @property
    def arm(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def binding(self) -> str: ...


def counts(attempt: Bound, bindings: Mapping[tuple[str, str], str]) -> bool:
    return bindings.get((attempt.arm, attempt.variant)) == attempt.binding


@dataclass(frozen=True)
class Stored:
    """An attempt with its log and, where it is voided, the number of the void."""

    attempt: Attempt
    log: str
    void: int | None


def load_evidence(s: Session, issue: str, build: str, hardware: str, newest: int | None = None) -> list[Stored]:
    """Every attempt of one cell (or the newest so many), newest first."""
    rows = s.execute(
        sa.select(attempts, logs.c.zlib)
        .join(logs, logs.c.digest == attempts.c.log_digest, isouter=True)
        .where(attempts.c.issue == issue, attempts.c.build == build, attempts.c.hardware == hardware)
        .order_by(attempts.c.finished_at.desc(), attempts.c.id)
        .limit(newest)
    ).mappings()
    return [Stored(parse_attempt(row), unpack(row["zlib"]), row["void"]) for row in rows]


def load_named(s: Session, ids: sa.Select[tuple[str]]) -> list[Stored]:
    """The attempts of these ids, newest first. A record is read only of those that are asked for."""
    rows = s.execute(
        sa.select(attempts, logs.c.zlib)
        .join(logs, logs.c.digest == attempts.c.log_digest, isouter=True)
        .where(attempts.c.id.in_(ids))
        .order_by(attempts.c.finished_at.desc(), attempts.c.id)
    ).mappings()
    return [Stored(parse_attempt(row), unpack(row["zlib"]), row["void"]) for row in rows]


def load_told(s: Session, ids: Sequence[str]) -> dict[str, tuple[Attempt, str]]:
    """These attempts by id as far as verdicts rest on them, each with its log where judging may look at it."""
    if not ids:
        return {}
    given = bulk.given(s, ["id"], [(id_,) for id_ in ids])
    query = sa.select(*TOLD).join_from(given, attempts, attempts.c.id == given.c.id)
    told = [parse_told(row) for row in s.execute(query)]
    texts = load_logs(s, sorted({one.log_digest for one in told if one.log_digest and heeds_log(one.record)}))
    return {one.id: (one, texts.get(one.log_digest, "")) for one in told}


def load_logs(s: Session, digests: Sequence[str]) -> dict[str, str]:
    """The logs of these digests that are kept, by digest."""
    if not digests:
        return {}
    given = bulk.given(s, ["digest"], [(digest,) for digest in digests])
    query = sa.select(logs.c.digest, logs.c.zlib).join_from(given, logs, logs.c.digest == given.c.digest)
    return {digest: unpack(zlib) for digest, zlib in s.execute(query)}


def judgement_of(attempt: Attempt, issue: Issue, build: Build, log: str) -> Judgement:
    """What an attempt means today, for showing it; also where its arm has left the issue since."""
    if attempt.arm not in {arm.id for arm in issue.arms}:
        return Judgement(Outcome.NOT_APPLICABLE, f"{attempt.arm} is no longer an arm of this issue; not judged")
    judged = classify(attempt.record, issue, attempt.arm, build, log)
    if attempt.log_digest and not log:
        return replace(judged, reason=f"{judged.reason} (judged without its log, which is not kept any more)")
    return judged


def judge_all(evidence: Sequence[tuple[Attempt, str]], issue: Issue, build: Build) -> list[Judged]:
    return [judge(attempt, issue, build, log) for attempt, log in evidence]
