"""The time that a run still takes: its page and the terminal that waits for it say the same."""

from datetime import datetime

from knowngood.domain.measuring.time_left import seconds_left
from knowngood.store.engine import Session
from knowngood.store.jobs.durations import load_environment_s, load_jobs_at
from knowngood.store.knowledge.model import Recorded
from knowngood.store.knowledge.snapshot import recorded_with_shipped
from knowngood.store.queries import load_durations
from knowngood.store.records import RunRow


def load_time_left(s: Session, run: RunRow, now: datetime) -> float | None:
    """Seconds, about; None for a run that is over, and before its first arm has ended."""
    if run.finished_at is not None or not run.arms_done:
        return None
    since = run.created_at
    known = recorded_with_shipped(Recorded(load_durations(s, since), load_environment_s(s, since)))
    return seconds_left(load_jobs_at(s, run, now), known.durations, known.environment_s)
