"""Which cells are queued or being measured, so that nobody plans them a second time."""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from knowngood.app.domain.verdicts.inference import CellKey
from knowngood.app.store.records import ArmState, JobState
from knowngood.app.store.tables import arms, jobs


def load_waiting_cells(s: Session) -> frozenset[CellKey]:
    """(issue, build, hardware class) of every arm without a result in a job that has not ended."""
    query = (
        sa.select(arms.c.issue, jobs.c.build, jobs.c.hardware)
        .distinct()
        .join(jobs, jobs.c.id == arms.c.job)
        .where(jobs.c.state.in_([JobState.QUEUED, JobState.LEASED]), arms.c.state != ArmState.DONE)
    )
    return frozenset((issue, build, hardware) for issue, build, hardware in s.execute(query))
