"""Log lines of a dispatcher's jobs: run, job, arm and how it ended. Nothing that an arm printed."""

from collections.abc import Callable

import structlog

from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmStarted,
    EnvironmentReady,
    Event,
    JobEnded,
    JobStarted,
    Provisioning,
)

log = structlog.get_logger(__name__)


class JobLog:
    """Hears every event after it was recorded, in the thread of its job; `run_of` looks a job's run up, once a job."""

    def __init__(self, run_of: Callable[[str], str]) -> None:
        self._run_of = run_of
        self._runs: dict[str, str] = {}

    def tell(self, event: Event) -> None:
        if event.job not in self._runs:
            self._runs[event.job] = self._run_of(event.job)
        line = log.bind(run=self._runs[event.job], job=event.job, try_no=event.try_no)
        match event:
            case JobStarted():
                line.info("job started", machine=event.machine.digest)
            case Provisioning():
                line.debug("environment in the making", phase=event.phase)
            case EnvironmentReady():
                line.info("environment ready", seconds=round(event.seconds, 3), reused=event.reused)
            case ArmStarted():
                line.info("arm started", attempt=event.attempt)
            case ArmFinished():
                took = event.finished_at - event.started_at
                trouble = event.record.trouble.code.value if event.record.trouble else ""
                how = {"ending": event.record.ending.value, "trouble": trouble}
                line.info("arm finished", attempt=event.attempt, seconds=round(took.total_seconds(), 3), **how)
            case JobEnded():
                line.info("job ended", is_whole=not event.problem)
                del self._runs[event.job]
