"""Which hardware classes have a worker: the dispatcher's word for it, kept among the leases since it runs out alike."""

from collections.abc import Collection
from datetime import datetime, timedelta

import sqlalchemy as sa

from knowngood.store.engine import Session
from knowngood.store.evidence.cells import touch
from knowngood.store.statements import insert_or
from knowngood.store.tables import leases

_PREFIX = "class "


def offer_classes(s: Session, classes: Collection[str], holder: str, now: datetime, lease_s: float) -> None:
    """Say that `holder` has workers of these classes for another `lease_s` seconds. A class that is not said any more
    stays as it was: it then tells when a worker of it was last there.
    """
    if not classes:
        return
    if any(load_offers(s).get(class_, now) <= now for class_ in classes):
        touch(s)
    until = now + timedelta(seconds=lease_s)
    rows = [{"name": f"{_PREFIX}{class_}", "holder": holder, "until": until} for class_ in sorted(classes)]
    insert = insert_or(s, leases).values(rows)
    s.execute(insert.on_conflict_do_update(index_elements=[leases.c.name], set_={"holder": holder, "until": until}))


def load_offers(s: Session) -> dict[str, datetime]:
    """Until when each class has, or had, a worker."""
    rows = s.execute(sa.select(leases.c.name, leases.c.until).where(leases.c.name.startswith(_PREFIX)))
    return {row.name.removeprefix(_PREFIX): row.until for row in rows}
