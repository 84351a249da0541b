"""`knowngood dispatch`: queued jobs are run until it is stopped."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from knowngood.cli.context import opened
from knowngood.cli.lazy import command
from knowngood.cli.options import NODE_IP, flag, option, text
from knowngood.cli.signals import stoppable
from knowngood.commands.maintain import migrate
from knowngood.health.fleet.cli import leading
from knowngood.logging_setup import configure
from knowngood.measure.jobs import Work, own_hardware, transport
from knowngood.settings import read_settings
from knowngood.store.engine import Engine, reading
from knowngood.store.jobs.job_queue import find_run_of
from knowngood_workers.dispatch.dispatcher import DispatchOptions
from knowngood_workers.dispatch.dispatcher import dispatch as run_jobs
from knowngood_workers.dispatch.job_log import JobLog


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
    journal = JobLog(partial(_run_of, engine))
    with stoppable() as stop:
        if not ray:
            run_jobs(engine, transport(Work(settings)), how, stop=stop, on_event=journal.tell)
            return
        with leading(ray, node_ip, where) as fleet:
            run_jobs(engine, fleet, replace(how, room=fleet.room), stop=stop, on_event=journal.tell)


def _run_of(engine: Engine, job: str) -> str:
    with reading(engine) as s:
        return find_run_of(s, job)
