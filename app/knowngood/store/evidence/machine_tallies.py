"""The number of attempts that each machine made, and the last of them: stored beside the attempts, in their
transactions, because counting ten million takes seconds. Whoever writes here holds the generation's row
(`cells.touch`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa

from knowngood.store.engine import Session
from knowngood.store.statements import insert_or
from knowngood.store.tables import attempts, machine_tallies

Tallied = tuple[str, str, str]
"""Machine, hardware class, origin."""


def add(s: Session, came: Iterable[tuple[str, str, str, datetime]]) -> None:
    """Add stored attempts, by what they count under and when they ended. Those of no machine are passed over."""
    ended: dict[Tallied, list[datetime]] = defaultdict(list)
    for machine, hardware, origin, finished_at in came:
        if machine:
            ended[machine, hardware, origin].append(finished_at)
    if not ended:
        return
    t = machine_tallies.c
    columns = ("machine", "hardware", "origin", "attempts", "last_at")
    new = [dict(zip(columns, (*of, len(at), max(at)), strict=True)) for of, at in sorted(ended.items())]
    insert = insert_or(s, machine_tallies).values(new)
    later = sa.case((insert.excluded.last_at > t.last_at, insert.excluded.last_at), else_=t.last_at)
    raised = {"attempts": t.attempts + insert.excluded.attempts, "last_at": later}
    s.execute(insert.on_conflict_do_update(index_elements=[t.machine, t.hardware, t.origin], set_=raised))


def subtract(s: Session, gone: Iterable[Tallied]) -> None:
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
