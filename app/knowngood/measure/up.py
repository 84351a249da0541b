"""`knowngood up`: the dashboard over the shipped results, while the default set is measured here."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rich.progress import track

from knowngood.catalogue_digest import shipped_evidence
from knowngood.cli.choice import Chosen
from knowngood.cli.context import known_now, opened_with_catalogue, pick_builds, pick_issues
from knowngood.cli.lazy import command
from knowngood.cli.options import BUILDS, HOST, PORT, flag
from knowngood.cli.output import err
from knowngood.cli.signals import stoppable, wait
from knowngood.commands.serve import Server, listen
from knowngood.domain.errors import IndexUnusable
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.verdicts.verdict import CellPlace
from knowngood.measure.jobs import (
    UP,
    Work,
    is_led,
    own_hardware,
    places_of,
    plan,
    run_planned,
    tell_results,
    tell_troubles,
    unfinished_ups,
)
from knowngood.measure.scheduling.cli import tell_price
from knowngood.settings import read_settings
from knowngood.share.cli import import_bundle
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.job_queue import cancel_run
from knowngood.store.knowledge.model import together
from knowngood.store.knowledge.snapshot import read_shipped
from knowngood.web.app_state import state_of
from knowngood_workers.dispatch.dispatcher import utc_now


@command(
    "Serve the pages with the results of this release, then measure the default set on this machine, live.",
    HOST,
    PORT,
    BUILDS,
    flag("--once", help_="End when everything is measured, instead of serving until Ctrl-C."),
    example="up --port 8080",
)
def up(*, host: str | None, port: int | None, builds: Sequence[str], once: bool) -> None:
    settings = read_settings()
    listening, address = listen(host or settings.host, settings.port if port is None else port)
    err.print(f"[bold]Known Good is at {address}[/]  (Ctrl-C stops it)", soft_wrap=True)
    engine = opened_with_catalogue(settings)
    server = Server(engine, settings, listening)
    knowledge = state_of(server.app).knowledge
    stored = knowledge.now()
    shipped, own = read_shipped().knowledge, stored.knowledge.known.cells
    is_new = settings.shipped and any(place not in own for place in shipped.known.cells)
    if is_new:
        knowledge.instead = replace(stored, knowledge=together(stored.knowledge, shipped))
    with stoppable() as stop, server.beside():
        if settings.shipped:
            _load_shipped(engine, stop, is_new=is_new)
        knowledge.instead = None
        if stop():
            return
        if not is_led(engine):
            _give_up_earlier(engine)
        every = pick_issues(engine, ())
        small = tuple(issue for issue in every if issue.default)
        chosen = Chosen(small or every, pick_builds(engine, builds, lambda build: build.default), own_hardware())
        work, seen, places = Work(settings), set[str](), set[CellPlace]()
        while "" not in seen:  # after what another `up` measured or cancelled, the rest
            replan = partial(plan, engine, chosen, PlanRequest(), only_local=True)
            planned = replan()
            if planned and not stop():
                tell_price(engine, work, planned, err)
            places.update(places_of(planned))
            request = {"builds": [b.id for b in chosen.builds], "by": UP}
            try:
                seen.add(run_planned(engine, work, planned, request, stop, seen, replan, is_priced=True))
            except IndexUnusable as error:
                if once:
                    raise
                err.print(f"nothing more can be measured: {error}", markup=False, soft_wrap=True)
                break
        else:
            tell_troubles(engine, work)
            tell_results(settings, known_now(engine), places)
        if once:
            return
        err.print(f"still serving {address} until Ctrl-C", soft_wrap=True)
        wait(stop)


def _load_shipped(engine: Engine, stop: Callable[[], bool], *, is_new: bool) -> None:
    """Take in the results that come with this release, as far as they are not here: a bar, and one line in the end."""
    words, is_shown, added = "loading the results of this release", is_new and err.is_terminal, 0
    for file in track(shipped_evidence(), words, console=err, transient=True, disable=not is_shown):
        added += 0 if stop() else import_bundle(engine, file, alone=True).added
    if added:
        err.print(f"{added:,} results of this release are loaded", highlight=False)


def _give_up_earlier(engine: Engine) -> None:
    """Cancel what an interrupted `up` left queued: its answers are known, and the rest is planned anew."""
    with reading(engine) as s:
        left = unfinished_ups(s)
    for run_id in left:
        with unit_of_work(engine) as s:
            cancel_run(s, run_id, utc_now())
