"""The lists of GPU architectures that processes read in their wheels."""

from collections import defaultdict

import sqlalchemy as sa

from knowngood.domain.builds.architectures import WheelCode
from knowngood.store.engine import Session
from knowngood.store.tables import attempts, environments


def count_environments(s: Session) -> int:
    """The number of environments in which an attempt ran: while it stays, so do the lists."""
    query = sa.select(sa.func.count(sa.distinct(attempts.c.lock_digest)))
    return int(s.execute(query).scalar_one())


def load_wheel_code(s: Session) -> dict[str, WheelCode]:
    """By torch's version with its variant, from the environments of attempts. Two lists of one version that differ
    are not those of one wheel: none of them counts.
    """
    first = sa.select(attempts.c.lock_digest, sa.func.min(attempts.c.finished_at).label("at"))
    dated = first.group_by(attempts.c.lock_digest).subquery()
    query = sa.select(environments.c.imported, dated.c.lock_digest, dated.c.at).join(
        dated, dated.c.lock_digest == environments.c.lock_digest
    )
    found: dict[str, list[WheelCode]] = defaultdict(list)
    for imported, lock, at in s.execute(query):
        if imported.get("arch"):
            torch = imported.get("torch", "")
            found[torch].append(WheelCode(torch, tuple(imported["arch"].split()), at, lock))
    return {
        torch: min(lists, key=lambda one: (one.read_at, one.lock))
        for torch, lists in sorted(found.items())
        if len({one.architectures for one in lists}) == 1
    }
