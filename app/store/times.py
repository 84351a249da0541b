"""What making an environment took, for the price of a plan."""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.store.tables import events


def load_environment_s(s: Session) -> float | None:
    """Mean seconds of the environments that were made through this store and whose events are still here, not found
    ready; None where there is none.
    """
    ready = s.execute(sa.select(events.c.data).where(events.c.kind == "environment_ready")).scalars().all()
    made = [float(data["seconds"]) for data in ready if not data["reused"]]
    return sum(made) / len(made) if made else None
