"""Stored attempts as domain values, and what they mean: reading rows of evidence back and judging them."""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import (
    CONTROL,
    COSTS,
    Issue,
    binding,
    cost_binding,
    digest,
    environment_request,
    variants_of,
)
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.message import Message
from knowngood.domain.timed_search import Searched
from knowngood.domain.verdicts.outcome import Judgement, Outcome, RunRecord, classify, heeds_log, search_key
from knowngood.domain.verdicts.verdict import Judged
from knowngood.domain.verdicts.workaround_cost import Timed
from knowngood.serialization import codec
from knowngood.serialization.bounds import LOG_LIMIT_BYTES
from knowngood.store import statements, unreadable
from knowngood.store.engine import Session
from knowngood.store.statements import is_of
from knowngood.store.tables import attempts, builds, logs

_CUT = "\n[... {} bytes left out ...]\n"


def parse_attempt(row: sa.RowMapping) -> Attempt:
    """One row of the table, as the value that was stored."""
    fields = {name: row[name] for name in _PLAIN_COLUMNS}
    return Attempt(record=codec.RECORD.validate_json(row["record"]), **fields)


VERDICT_COLUMNS = (
    *(attempts.c[field.name] for field in fields(Attempt) if field.name != "labels"),
    attempts.c.searched,
)
"""The columns of `parse_stored`. Without labels, which no verdict rests on: JSON that would be decoded for each row."""


class StoredAttempt(NamedTuple):
    """An attempt with its log (as far as verdicts rest on both, where only these are asked for), what looking for a
    signature in it came to and, where it is voided, the number of the void.
    """

    attempt: Attempt
    log: str
    searched: Searched | None
    void: int | None = None


_RECORD_AT = [column.name for column in VERDICT_COLUMNS].index("record")


def parse_stored(row: Sequence[Any]) -> StoredAttempt:
    """An attempt from the columns VERDICT_COLUMNS, without its log: a hundred thousand of these are judged at once."""
    *values, searched = row
    values[_RECORD_AT] = codec.RECORD.validate_json(values[_RECORD_AT])
    return StoredAttempt(Attempt(*values), "", parse_searched(searched))


def parse_searched(doc: str | None) -> Searched | None:
    """Read the result of a search; None too for what cannot be read: somebody looks once more."""
    try:
        return codec.SEARCHED.validate_json(doc) if doc else None
    except unreadable.FAULTS:
        unreadable.tell("attempts", f"searched: {doc!s:.80}")
        return None


def dump_searched(searched: Searched | None) -> str | None:
    """The text that `parse_searched` reads. Nothing is stored for an issue without a pattern: nothing was searched."""
    return codec.SEARCHED.dump_json(searched, exclude_defaults=True).decode() if searched and searched.of else None


def attempt_row(attempt: Attempt, received_at: datetime, token: str = "", void: int | None = None) -> dict[str, Any]:
    """The other way round; what it counts as is derived afterwards.

    The way it came in is this server's own word, which no worker can claim: when, through which token (its id; empty:
    none), and the void that keeps it from counting (None: there is none).
    """
    row = {"labels": dict(attempt.labels), "record": codec.dump_record(attempt.record).decode()}
    return {**vars(attempt), **row, "received_at": received_at, "token": token, "void": void}


# What a worker says: the fields of an attempt. What we say of it stands in columns of its own.
_PLAIN_COLUMNS = tuple(field.name for field in fields(Attempt) if field.name != "record")


def pack(text: str) -> bytes:
    return zlib.compress(text.encode(), 6)


def unpack(data: bytes | None) -> str:
    """Unpack a text; empty where it cannot be, or is not stored any more: verdicts say where they miss a log."""
    try:
        return zlib.decompress(data).decode() if data else ""
    except (zlib.error, UnicodeDecodeError):
        unreadable.tell("logs and locks", digest(repr(data)))
        return ""


def cut(log: str) -> str:
    """Cut a log to LOG_LIMIT_BYTES of UTF-8 by leaving its middle out: beginnings name versions, ends name causes."""
    data = log.encode()
    if len(data) <= LOG_LIMIT_BYTES:
        return log
    half = LOG_LIMIT_BYTES // 2 - 64
    head, tail = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    return head + _CUT.format(len(data) - 2 * half) + tail


def log_digest(log: str) -> str:
    """The digest that a log is stored under; empty for an empty one, which is not stored."""
    return digest(log) if log else ""


def current_bindings(issue: Issue, build: Build) -> dict[tuple[str, str], str]:
    """The bindings, by (arm, variant), that a result must have to count today."""
    request = environment_request(issue, build)
    ran = {
        (arm.id, variant.id): binding(arm, variant, request)
        for arm in issue.arms
        for variant in variants_of(issue, arm.id)
    }
    return ran | {
        (COSTS + arm, variant.id): cost_binding(issue, arm, variant, request)
        for arm in {arm for arm, _ in ran} - {issue.timed_beside, CONTROL}
        for variant in variants_of(issue, arm)
    }


def counts(attempt: Any, bindings: Mapping[tuple[str, str], str]) -> bool:  # noqa: ANN401 - or a row of these columns
    return bool(bindings.get((attempt.arm, attempt.variant)) == attempt.binding)


def load_evidence(s: Session, *which: sa.ColumnElement[bool], newest: int | None = None) -> list[StoredAttempt]:
    """The attempts of which all of this is so (or the newest so many), newest first."""
    rows = s.execute(
        sa.select(attempts, logs.c.zlib)
        .join(logs, logs.c.digest == attempts.c.log_digest, isouter=True)
        .where(*which)
        .order_by(attempts.c.finished_at.desc(), attempts.c.id)
        .limit(newest)
    ).mappings()
    return list(unreadable.readable("attempts", ((row["id"], row) for row in rows), _stored))


def _stored(row: sa.RowMapping) -> StoredAttempt:
    return StoredAttempt(parse_attempt(row), unpack(row["zlib"]), parse_searched(row["searched"]), row["void"])


def load_stored(s: Session, ids: Sequence[str], issues: Mapping[str, Issue]) -> dict[str, StoredAttempt]:
    """These attempts by id as far as verdicts rest on them, less those that cannot be read. `issues` are
    theirs as they stand today: where the signature was looked for already, the log is left out.
    """
    if not ids:
        return {}
    given = statements.given(s, ["id"], [(id_,) for id_ in ids])
    query = sa.select(*VERDICT_COLUMNS).join_from(given, attempts, attempts.c.id == given.c.id)
    stored = list(unreadable.readable("attempts", ((row.id, row) for row in s.execute(query)), parse_stored))
    texts = load_texts(
        s,
        logs,
        sorted(
            {evidence.attempt.log_digest for evidence in stored if _wants_log(evidence, issues[evidence.attempt.issue])}
            - {""}
        ),
    )
    return {
        evidence.attempt.id: evidence._replace(log=texts.get(evidence.attempt.log_digest, "")) for evidence in stored
    }


def _wants_log(evidence: StoredAttempt, issue: Issue) -> bool:
    is_searched = evidence.searched and evidence.searched.of == search_key(issue)
    return not is_searched and heeds_log(evidence.attempt.record, issue.signature)


def load_texts(s: Session, table: sa.Table, digests: Collection[str]) -> dict[str, str]:
    """The stored logs, or locks, of these digests, by digest."""
    if not digests:
        return {}
    given = statements.given(s, ["digest"], [(digest,) for digest in digests])
    query = sa.select(table.c.digest, table.c.zlib).join_from(given, table, table.c.digest == given.c.digest)
    return {digest: unpack(zlib) for digest, zlib in s.execute(query)}


_SHOWN_LIMIT_S = 0.1


def judgement_of(attempt: Attempt, issue: Issue, build: Build, log: str, searched: Searched | None) -> Judgement:
    """The judgement of an attempt by today's rules, for showing it; also where its arm has left the issue since.

    Of all that counts, what looking for the signature came to is kept; of the rest, somebody may have to look now.
    """
    if attempt.arm.removeprefix(COSTS) not in {arm.id for arm in issue.arms}:
        return Judgement(Outcome.NOT_APPLICABLE, Message("no_longer_an_arm", name=attempt.arm))
    judged = classify(
        attempt.record, issue, attempt.arm, build, log, searched, hardware=attempt.hardware, limit_s=_SHOWN_LIMIT_S
    )
    is_missed = attempt.log_digest and not log and heeds_log(attempt.record, issue.signature)
    if is_missed and judged.searched is not searched:
        return replace(judged, reason=Message("without_its_log", said=judged.reason))
    return judged


def searched_whole(attempt: Attempt, issue: Issue, log: str, judged: Judged) -> str | None:
    """The search's result to keep: nothing where the log that the attempt names was not there to be looked through."""
    is_missed = attempt.log_digest and not log and heeds_log(attempt.record, issue.signature)
    return None if is_missed else dump_searched(judged.searched)


# Attempts at a glance: what can be told of many of them without reading their logs or judging them anew.


TIMED = 50
"""Of so many attempts the cost of a cell's workarounds is taken."""

FORKED = "forked"
"""The word in an attempt's sandbox for a process forked from a parent that had imported torch."""


@dataclass(frozen=True)
class AttemptSummary:
    """One attempt as a line of history. `outcome` is None where it does not count; `seconds` is its wall time."""

    id: str
    build: str
    hardware: str
    arm: str
    variant: str
    ordinal: int
    outcome: Outcome | None
    is_voided: bool
    seconds: float
    finished_at: datetime


def load_glances(s: Session, issue: str, limit: int) -> tuple[AttemptSummary, ...]:
    """The newest attempts of an issue, on builds of the catalogue."""
    a = attempts.c
    named = (a.id, a.build, a.hardware, a.arm, a.variant, a.ordinal)
    columns = (*named, a.counts_as, a.void, a.started_at, a.finished_at)
    known = sa.and_(builds.c.id == a.build, builds.c.is_present)
    query = sa.select(*columns).join(builds, known).where(a.issue == issue).order_by(a.finished_at.desc(), a.id)
    return tuple(
        AttemptSummary(
            id=row.id,
            build=row.build,
            hardware=row.hardware,
            arm=row.arm,
            variant=row.variant,
            ordinal=row.ordinal,
            outcome=Outcome(row.counts_as) if row.counts_as else None,
            is_voided=row.void is not None,
            seconds=(row.finished_at - row.started_at).total_seconds(),
            finished_at=row.finished_at,
        )
        for row in s.execute(query.limit(limit))
    )


def load_timed(s: Session, issue: str, build: str, hardware: str) -> tuple[Timed, ...]:
    """The newest passes of one cell that count, with what they took: a median wants no more of a long history."""
    a = attempts.c
    query = sa.select(a.id, a.arm, a.variant, a.machine, a.lock_digest, a.record).where(
        *is_of((issue, build, hardware), attempts), a.counts_as == Outcome.PASS.value
    )
    newest = query.order_by(a.finished_at.desc(), a.id).limit(TIMED)
    return tuple(unreadable.readable("attempts", ((row.id, row) for row in s.execute(newest)), _timed))


def _timed(row: Any) -> Timed:  # noqa: ANN401 - a row of the driver
    return timed(row, codec.RECORD.validate_json(row.record))


def timed(attempt: Any, record: RunRecord) -> Timed:  # noqa: ANN401 - or a row of its columns
    """The time and memory that an attempt took, by its record."""
    is_forked, of = FORKED in record.sandbox, attempt
    return Timed(of.arm, of.variant, of.machine, of.lock_digest, is_forked, record.own_s, record.peak_bytes)
