"""The age of evidence: how long ago the measured cells of a hardware class were measured last."""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta

from knowngood.app.domain.verdicts.known import Known

UP_TO_DAYS = (7, 30, 90, 180)
"""The ends of the classes of age; the last class has no end. After 180 days a cell of a release is stale."""


def ages(known: Known, hardware: str, now: datetime) -> Sequence[int]:
    """How many cells there are in each class of age, the newest first."""
    counts = [0] * (len(UP_TO_DAYS) + 1)
    for issue in known.issues:
        for _, cell in known.measured(issue, hardware):
            if cell.measured_at is not None:
                counts[bisect_left(UP_TO_DAYS, (now - cell.measured_at) / timedelta(days=1))] += 1
    return counts
