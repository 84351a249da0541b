"""Numbers that are stored beside what they count, because counting ten million takes seconds. They are written in one
transaction with it, so that pruning changes none of them, and whoever writes one holds the generation's row already
(`cells.touch`).

Counters, when each machine was last seen, and when each step of `knowngood tend` last ended, stand in the table of
numbers: a scrape of the metrics reads a few dozen rows and no history. How many attempts each machine made, and the
last of them, have a table of their own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from knowngood.domain.grouping import gathered
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Session
from knowngood.store.statements import insert_or
from knowngood.store.tables import attempts, machine_tallies, meta

ATTEMPTS = "attempts"
ARM_MS = "arm_ms"
LOSSES = "losses"
PROVISIONED, PROVISION_MS = "provisioned", "provision_ms"
SEEN = "seen"
TENDED, TENDED_CODE, NEXT_ROUND = "tended", "tended_code", "tend_next"

_LONGEST = 40  # characters of a name, as its column has them
_WITH_CAUSE = frozenset({Outcome.ENV_ERROR, Outcome.HARNESS_ERROR, Outcome.NOT_APPLICABLE})


def count(s: Session, numbers: Mapping[str, int]) -> None:
    """Add to counters; one that is not there yet begins at 0."""
    _put(s, numbers, is_added=True)


def note_seen(s: Session, machine: str, now: datetime) -> None:
    """Note that a machine (by its digest) gave a sign of life."""
    if machine:
        _put(s, {named(SEEN, machine): int(now.timestamp())}, is_added=False)


@dataclass(frozen=True)
class TendedStep:
    """When a step of `knowngood tend` last ended, and in which exit code."""

    name: str
    at: datetime
    code: int


@dataclass(frozen=True)
class Tending:
    """The steps that were ever done, the longest ago first; `next_at` is when the next round begins (None: nobody
    said).
    """

    steps: tuple[TendedStep, ...]
    next_at: datetime | None


def note_tended(s: Session, step: str, code: int, now: datetime) -> None:
    _put(s, {named(TENDED, step): _ms(now), named(TENDED_CODE, step): code}, is_added=False)


def note_next_round(s: Session, at: datetime) -> None:
    _put(s, {NEXT_ROUND: _ms(at)}, is_added=False)


def load_tending(s: Session) -> Tending:
    numbers = load_counters(s)
    codes, next_ms = numbers.get(TENDED_CODE, {}), numbers.get(NEXT_ROUND, {}).get(())
    steps = [TendedStep(key[0], _moment(ms), codes.get(key, 0)) for key, ms in numbers.get(TENDED, {}).items()]
    return Tending(tuple(sorted(steps, key=lambda step: step.at)), _moment(next_ms) if next_ms else None)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _put(s: Session, numbers: Mapping[str, int], *, is_added: bool) -> None:
    if not numbers:
        return
    insert = insert_or(s, meta).values([{"name": name, "value": value} for name, value in sorted(numbers.items())])
    new = meta.c.value + insert.excluded.value if is_added else insert.excluded.value
    s.execute(insert.on_conflict_do_update(index_elements=[meta.c.name], set_={"value": new}))


def attempt_counter(attempt: Attempt, outcome: Outcome) -> str:
    """The counter of an attempt that comes to count as this: of infrastructure, by the cause that a probe named."""
    trouble = attempt.record.trouble
    return named(ATTEMPTS, outcome.value, trouble.code.value if trouble and outcome in _WITH_CAUSE else "")


def named(kind: str, *of: str) -> str:
    return " ".join([kind, *(part for part in of if part)])[:_LONGEST]


def load_counters(s: Session) -> dict[str, dict[tuple[str, ...], int]]:
    """All of these numbers: by kind, then by what follows it in the name."""
    stored = s.execute(sa.select(meta.c.name, meta.c.value).order_by(meta.c.name))
    apart = ((name.split(" "), value) for name, value in stored)
    by_kind = gathered((kind, (tuple(rest), value)) for (kind, *rest), value in apart)
    return {kind: dict(numbers) for kind, numbers in by_kind.items()}


def forget_unseen(s: Session, before: datetime) -> int:
    """Drop machines that gave no sign of life since then; how many. They are noted again when they do."""
    is_old = sa.and_(meta.c.name.startswith(f"{SEEN} "), meta.c.value < int(before.timestamp()))
    return len(s.execute(sa.delete(meta).where(is_old).returning(meta.c.name)).scalars().all())


Tallied = tuple[str, str, str]
"""Machine, hardware class, origin."""


def add_tallies(s: Session, came: Iterable[tuple[str, str, str, datetime]]) -> None:
    """Add stored attempts, by what they count under and when they ended. Those of no machine are passed over."""
    ended = gathered(((machine, hardware, origin), at) for machine, hardware, origin, at in came if machine)
    if not ended:
        return
    t = machine_tallies.c
    columns = ("machine", "hardware", "origin", "attempts", "last_at")
    new = [dict(zip(columns, (*of, len(at), max(at)), strict=True)) for of, at in sorted(ended.items())]
    insert = insert_or(s, machine_tallies).values(new)
    later = sa.case((insert.excluded.last_at > t.last_at, insert.excluded.last_at), else_=t.last_at)
    raised = {"attempts": t.attempts + insert.excluded.attempts, "last_at": later}
    s.execute(insert.on_conflict_do_update(index_elements=[t.machine, t.hardware, t.origin], set_=raised))


def subtract_tallies(s: Session, gone: Iterable[Tallied]) -> None:
    """Subtract attempts that were removed, one for each."""
    t, a = machine_tallies.c, attempts.c
    same = sa.and_(a.machine == t.machine, a.hardware == t.hardware, a.origin == t.origin)
    last = sa.select(sa.func.max(a.finished_at)).where(same).correlate(machine_tallies).scalar_subquery()
    for (machine, hardware, origin), number in sorted(Counter(gone).items()):
        which = sa.and_(t.machine == machine, t.hardware == hardware, t.origin == origin)
        s.execute(sa.delete(machine_tallies).where(which, t.attempts <= number))
        s.execute(
            sa.update(machine_tallies).where(which).values(attempts=t.attempts - number, last_at=last),
        )
