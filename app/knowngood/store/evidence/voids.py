"""Taking all results of one worker out of the count, and back in: one action, one transaction, one entry of the log.

The mark on an attempt (`attempts.void`) is the oldest void that covers it and stands. It depends on nothing else: not
on whether the results or the void came first, and not on how often voids were said and ended meanwhile.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from knowngood.domain.access import Actor
from knowngood.domain.errors import BadRequest
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.domain.verdicts.voids import Clock, UnknownVoid, Void, VoidSpan, checked_reason, checked_span
from knowngood.store import audit_log
from knowngood.store.engine import Session
from knowngood.store.evidence.cells import UNVOIDED, VOIDED, announce, rederive, touch
from knowngood.store.records import CellChange
from knowngood.store.statements import among, number_of, place_of
from knowngood.store.tables import attempts, tokens, voids
from knowngood.store.tokens import PREFIX

_SPAN = tuple(field.name for field in fields(VoidSpan))


@dataclass(frozen=True)
class VoidReport:
    """The effect of voiding, or of taking it back: so many attempts were marked (or are no more), of which `counted`
    count otherwise than before, in so many cells; `changes` are the cells that came out differently.
    """

    void: Void
    attempts: int
    counted: int
    cells: int
    changes: tuple[CellChange, ...]


def void_results(s: Session, span: VoidSpan, reason: str, *, by: Actor, now: datetime) -> VoidReport:
    """Keep these results from counting, and derive the cells that they are in. Raises BadRequest.

    What is voided already stays with the older void. A span that covers nothing yet is a void all the same: it covers
    what comes in later.
    """
    words, span = checked_reason(reason), checked_span(span, now)
    touch(s)
    report = _mark(s, Void(0, span, words, by.name, now), now)
    details = {"attempts": report.attempts, "cells": report.cells, "changed": len(report.changes), "reason": words}
    details |= {"span": _describe_span(span)}
    audit_log.note(s, by, "results.void", str(report.void.id), now, **details)
    announce(s, VOIDED, now, run="", void=report.void.id, by=by.name, **details)
    return report


def _mark(s: Session, void: Void, now: datetime) -> VoidReport:
    """Keep a void under a number of this store, and what it covers from counting."""
    row = {name: value for name, value in vars(void).items() if name not in {"id", "span"}} | asdict(void.span)
    id_: int = s.execute(sa.insert(voids).values(**row).returning(voids.c.id)).scalar_one()
    marked = sa.and_(attempts.c.void.is_(None), _covered(void.span))
    n, places = _concerned(s, marked)
    counted = number_of(s, sa.select(attempts.c.id).where(marked, attempts.c.counts_as.is_not(None)))
    s.execute(sa.update(attempts).where(marked).values(void=id_, counts_as=None))
    return VoidReport(replace(void, id=id_), n, counted, len(places), rederive(s, places, now))


def take_in_voids(s: Session, came: Sequence[Void], *, by: Actor, now: datetime) -> int:
    """Add the standing voids of another store, but for those that are here, and end those that were ended there. Return
    how many were new or ended.
    """
    if came:
        touch(s)
    here = {(void.span, void.actor, void.at): void for void in load_voids(s)}
    settled = 0
    for void in came:
        known = here.get((void.span, void.actor, void.at))
        if known is None and void.ended_at is None:
            _mark(s, void, now)
        elif known is not None and known.ended_at is None and void.ended_at is not None:
            unvoid_results(s, known.id, void.ended_reason, by=by, now=now)
        else:
            continue
        settled += 1
    return settled


def unvoid_results(s: Session, id_: int, reason: str, *, by: Actor, now: datetime) -> VoidReport:
    """Let these results count again, but for those that another void covers. Raises UnknownVoid.

    The cells are then what they would be had it never been said.
    """
    words = checked_reason(reason)
    touch(s)
    void = load_named_voids(s, {id_}).get(id_)
    if void is None or void.ended_at is not None:
        state = f"was ended by {void.ended_by} on {void.ended_at:%Y-%m-%d}" if void and void.ended_at else "is not here"
        raise UnknownVoid(f"void {id_} {state}; `knowngood void --list` shows those that stand")
    ended = {"ended_at": now, "ended_by": by.name, "ended_reason": words}
    s.execute(sa.update(voids).where(voids.c.id == id_).values(**ended))
    n, places = _concerned(s, attempts.c.void == id_)
    s.execute(sa.update(attempts).where(attempts.c.void == id_).values(void=_oldest(load_standing_voids(s))))
    changes = rederive(s, places, now)
    counted = number_of(s, sa.select(attempts.c.id).where(_covered(void.span), attempts.c.counts_as.is_not(None)))
    details = {"attempts": n, "cells": len(places), "changed": len(changes), "reason": words}
    audit_log.note(s, by, "results.unvoid", str(id_), now, **details)
    announce(s, UNVOIDED, now, run="", void=id_, by=by.name, **details)
    return VoidReport(Void(**{**vars(void), **ended}), n, counted, len(places), changes)


def load_voids(s: Session) -> tuple[Void, ...]:
    """All there ever were, the newest first."""
    return tuple(_all_voids(s))[::-1]


def load_named_voids(s: Session, ids: Collection[int | None]) -> Mapping[int | None, Void]:
    """The voids of these numbers; no query is made where there is none."""
    wanted = {id_ for id_ in ids if id_ is not None}
    return {void.id: void for void in _all_voids(s, *among((voids.c.id, wanted)))} if wanted else {}


def load_standing_voids(s: Session) -> tuple[Void, ...]:
    """The voids that keep results from counting now, the oldest first."""
    return tuple(_all_voids(s, voids.c.ended_at.is_(None)))


def _all_voids(s: Session, *which: sa.ColumnElement[bool]) -> Iterator[Void]:
    """The oldest first."""
    return map(_void, s.execute(sa.select(voids).where(*which).order_by(voids.c.id)).mappings())


def void_over(attempt: Attempt, token: str, received_at: datetime, standing: Sequence[Void]) -> int | None:
    """The void that covers what comes in now; None where none does."""
    place = (attempt.machine, token, attempt.finished_at, received_at)
    return next((void.id for void in standing if void.span.covers(*place)), None)


def _void(row: sa.RowMapping) -> Void:
    fields_of_span = {name: row[name] for name in _SPAN}
    rest = {name: row[name] for name in ("id", "reason", "actor", "at", "ended_at", "ended_by", "ended_reason")}
    return Void(span=VoidSpan(**{**fields_of_span, "clock": Clock(row["clock"])}), **rest)


def _describe_span(span: VoidSpan) -> dict[str, object]:
    return {
        "machine": span.machine,
        "token": span.token,
        "clock": span.clock.value,
        "from": span.since.isoformat() if span.since else None,
        "to": span.until.isoformat(),
    }


def _covered(span: VoidSpan) -> sa.ColumnElement[bool]:
    """`Span.covers`, as a condition."""
    at = attempts.c.finished_at if span.clock is Clock.MEASURED else attempts.c.received_at
    conditions: list[sa.ColumnElement[bool]] = [at <= span.until]
    if span.since is not None:
        conditions.append(at >= span.since)
    if span.machine:
        conditions.append(attempts.c.machine == span.machine)
    if span.token:
        # Twice the same, so that the index is used: it holds what came through a token alone.
        conditions += [attempts.c.token == span.token, sa.literal_column("attempts.token <> ''", sa.Boolean)]
    return sa.and_(*conditions)


def _concerned(s: Session, which: sa.ColumnElement[bool]) -> tuple[int, list[CellKey]]:
    """The number of attempts, and the cells that they are in."""
    place = place_of(attempts)
    rows = s.execute(sa.select(*place, sa.func.count()).where(which).group_by(*place)).all()
    return sum(n for *_, n in rows), [CellKey(*key) for *key, _ in rows]


def _oldest(standing: Sequence[Void]) -> sa.ColumnElement[Any]:
    """The oldest void that covers a row, as `void_over` finds it."""
    covering = [(_covered(void.span), sa.literal(void.id)) for void in standing]
    return sa.case(*covering, else_=sa.null()) if covering else sa.null()


def known_worker(s: Session, machine: str, token: str) -> tuple[str, str]:
    """A machine's digest and a token's id, of a machine that has sent results and a token (by its name or id) that
    there is or was; empty where empty. Raises BadRequest: a misspelt name would void nothing and say so in passing.
    """
    if machine and s.execute(sa.select(attempts.c.id).where(attempts.c.machine == machine).limit(1)).first() is None:
        raise BadRequest(f'no results of a machine "{machine[:80]}" are here; /workers lists machines by their digest')
    return machine, _token_id(s, token) if token else ""


def _token_id(s: Session, wanted: str) -> str:
    named = sa.or_(tokens.c.name == wanted, tokens.c.id == wanted.removeprefix(PREFIX))
    ids: Sequence[str] = s.execute(sa.select(tokens.c.id).where(named).order_by(tokens.c.created_at)).scalars().all()
    if not ids:
        raise BadRequest(f'no token is or was called "{wanted[:80]}"; `knowngood token list` shows all')
    if len(ids) > 1:
        several = ", ".join(f"{PREFIX}{id_}" for id_ in ids)
        raise BadRequest(f'{len(ids)} tokens were called "{wanted}"; say which: {several}')
    return ids[0]
