"""`knowngood dispatch`: queued jobs are run until it is stopped."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import structlog

from knowngood.cli.context import opened
from knowngood.cli.lazy import command
from knowngood.cli.options import NODE_IP, flag, option, text
from knowngood.cli.signals import stoppable
from knowngood.commands.maintain import migrate
from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmStarted,
    EnvironmentReady,
    Event,
    JobEnded,
    JobStarted,
    Provisioning,
)
from knowngood.health.worker import leading
from knowngood.logging_setup import configure
from knowngood.measure.jobs import Work, own_hardware, transport
from knowngood.settings import read_settings
from knowngood.store.engine import Engine, reading
from knowngood.store.jobs.job_queue import find_run_of
from knowngood_workers.dispatch.dispatcher import DispatchOptions
from knowngood_workers.dispatch.dispatcher import dispatch as run_jobs

_JOBS_AT_ONCE = 1024  # whose runs are remembered

log = structlog.get_logger(__name__)


@command(
    "Run queued jobs until stopped, here or on a fleet. One dispatcher works at a time; a second waits.",
    flag("--migrate", "migrate_first", help_="Migrate and load the catalogue first."),
    flag("--until-idle", help_="End once nothing is queued."),
    text("--ray", "Lead a fleet: HOST:PORT of its head, or local-head[:PORT].", "ADDRESS"),
    NODE_IP,
    option(
        "--where",
        multiple=True,
        metavar="CONDITION",
        help="Only machines with a label: LABEL=VALUE or LABEL>=NUMBER.",
    ),
    example="dispatch --ray local-head --where 'gpus>=1'",
)
def dispatch(*, migrate_first: bool, until_idle: bool, ray: str, node_ip: str, where: Sequence[str]) -> None:
    settings = read_settings()
    configure(settings.log_format, settings.log_level or "info")
    if migrate_first:
        migrate()
    engine = opened(settings)
    how = DispatchOptions(hardware=own_hardware(), until_idle=until_idle, waits=True, lease_s=settings.lease_s)
    tell = log_events(partial(_run_of, engine))
    with stoppable() as stop:
        if not ray:
            run_jobs(engine, transport(Work(settings)), how, stop=stop, on_event=tell)
            return
        with leading(ray, node_ip, where) as fleet:
            run_jobs(engine, fleet, replace(how, room=fleet.room), stop=stop, on_event=tell)


def _run_of(engine: Engine, job: str) -> str:
    with reading(engine) as s:
        return find_run_of(s, job)


def log_events(run_of: Callable[[str], str]) -> Callable[[Event], None]:
    """A function that hears every event after it was recorded, in the thread of its job, and logs it: run, job, arm and
    how it ended, nothing that an arm printed. `run_of` looks a job's run up, once a job.
    """
    known_run_of = lru_cache(_JOBS_AT_ONCE)(run_of)

    def tell(event: Event) -> None:
        line = log.bind(run=known_run_of(event.job), job=event.job, try_no=event.try_no)
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
                seconds = round((event.finished_at - event.started_at).total_seconds(), 3)
                trouble = event.record.trouble.code.value if event.record.trouble else ""
                ending = event.record.ending.value
                line.info("arm finished", attempt=event.attempt, seconds=seconds, ending=ending, trouble=trouble)
            case JobEnded():
                line.info("job ended", is_whole=not event.problem)

    return tell
