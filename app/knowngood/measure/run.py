"""`knowngood run`: what is not known yet is run, stored and printed. `knowngood recheck`: cells with an answer asked
once more.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

import click

from knowngood.cli.choice import Chosen, ended, verdicts
from knowngood.cli.context import known_now, opened_with_catalogue, pick_builds, pick_issues, root
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import (
    AS_JSON,
    BUILDS,
    DRY_RUN,
    FAIL_ON,
    FILE,
    FORCE,
    HARDWARE,
    ISSUES,
    MINUTES,
    SIZES,
    flag,
    names,
    option,
    text,
)
from knowngood.cli.output import err, out, print_json
from knowngood.cli.signals import stoppable
from knowngood.domain.errors import BadRequest
from knowngood.domain.measuring.planning import PlannedJob, PlanRequest, Sample
from knowngood.health import again
from knowngood.matrix.overview.cli import show
from knowngood.measure.jobs import (
    FURTHER,
    Work,
    own_hardware,
    places_of,
    plan,
    run_planned,
    tell_results,
    tell_troubles,
    tell_warnings,
)
from knowngood.measure.scheduling.cli import proposed, tell_price
from knowngood.settings import Settings, read_settings
from knowngood.share.cli import write_bundle
from knowngood.store.engine import Engine
from knowngood_workers.dispatch.dispatcher import utc_now
from knowngood_workers.pack.builder import OpenedPack, open_pack
from knowngood_workers.provision.adopted_env import find_build, inspect_program

Names = Sequence[str]


_FOLDER = click.Path(file_okay=False, path_type=Path)


@command(
    "Run what is not known yet, store the evidence, and print the matrix. Default: the default builds, all issues.",
    BUILDS,
    ISSUES,
    HARDWARE,
    option("--repeat", type=click.IntRange(1, 100), default=1, help="How many answers each arm needs."),
    flag(
        "--confirm",
        help_="Repeat only what existing answers rest on: two attempts, three on both sides of a change, ten "
        "where results are mixed; and every workaround with each variant that fails.",
    ),
    FORCE,
    flag(
        "--where-affected",
        help_="Run workarounds only on builds where their issue fails: a fraction of the arms.",
    ),
    flag("--no-workarounds", help_="Run only controls and baselines; they show whether the issue is there."),
    flag("--next", "next_up", help_="Run what `next` proposes, in its order."),
    option("--minutes", type=MINUTES, default=60, help="With --next: how many minutes it may take."),
    DRY_RUN,
    SIZES,
    option("--pack", type=_FOLDER, help="Run what this pack holds, without network."),
    names("--python", "Interpreters whose own torch is measured as it is; it must be a build of the catalogue."),
    option("-o", "--output", type=FILE, help="Write the results to a bundle; --pack always does."),
    AS_JSON,
    FAIL_ON,
    example="run --builds 2.6.0 --issues pytorch-151290",
)
def run(
    *,
    builds: Names,
    issues: Names,
    hardware: Names,
    repeat: int,
    confirm: bool,
    force: bool,
    where_affected: bool,
    no_workarounds: bool,
    next_up: bool,
    minutes: float,
    dry_run: bool,
    sizes: bool,
    pack: Path | None,
    python: Names,
    output: Path | None,
    as_json: bool,
    fail_on: Names,
) -> Exit:
    failing = verdicts(fail_on)
    others = (builds, issues, pack, python, repeat > 1, confirm, force, where_affected, no_workarounds)
    if next_up and any(others):
        raise BadRequest("--next chooses what to run; of the others it takes --minutes, --hardware and --dry-run")
    settings = read_settings()
    unpacked = open_pack(pack, root(settings), tell=lambda line: err.print(line, soft_wrap=True)) if pack else None
    settings = _with_catalogue_of(settings, unpacked)
    engine = opened_with_catalogue(settings)
    work = Work(settings, unpacked, _adopt(engine, python))
    chosen = _chosen_for(engine, work, builds, issues, hardware)
    wanted = PlanRequest(
        repeat=repeat,
        confirm=confirm,
        force=force,
        where_affected=where_affected,
        workarounds=not no_workarounds,
        now=utc_now(),
    )
    if next_up:
        planned, chosen = _proposed(engine, settings, chosen, minutes)
    else:
        planned = work.able(plan(engine, chosen, wanted))
    if dry_run:
        tell_price(engine, work, planned, asks=sizes, as_json=as_json)
        return Exit.OK
    tell_warnings(chosen.issues)
    request = {"builds": [b.id for b in chosen.builds], "issues": [i.id for i in chosen.issues], "by": "run"}
    places = set(places_of(planned))
    with stoppable() as stop:
        try:
            run_planned(engine, work, planned, request, stop)
            for _ in range(FURTHER if confirm or where_affected else 0):
                planned = work.able(plan(engine, chosen, replace(wanted, force=False)))
                if planned and not stop():
                    places.update(places_of(planned))
                    run_planned(engine, work, planned, request, stop)
        finally:
            if unpacked or output:
                _write_results(engine, chosen, output or Path("knowngood-results.jsonl.gz"), unpacked)
    known, is_kept = known_now(engine), tell_troubles(engine, work)
    show(known, chosen, as_json=as_json)
    tell_results(settings, known, places)
    return Exit.UNUSABLE if is_kept else ended(known, chosen, failing)


def _with_catalogue_of(settings: Settings, pack: OpenedPack | None) -> Settings:
    """A pack brings the catalogue it was made with; what is installed here may be another state of it."""
    if pack is None:
        return settings
    return settings.model_copy(update={"shipped": False, "catalogue": os.pathsep.join(map(str, pack.catalogue))})


def _adopt(engine: Engine, pythons: Sequence[str]) -> dict[str, Path]:
    """The builds that these interpreters hold. Raises BadRequest for one that is no column."""
    if not pythons:
        return {}
    builds = pick_builds(engine, ("all",), lambda _: True)
    adopted = {
        find_build(environment, builds).id: environment.python
        for environment in (inspect_program(python, os.environ) for python in pythons)
    }
    for id_, path in adopted.items():
        err.print(f"{path} is {id_}: used as it is", soft_wrap=True)
    return adopted


def _chosen_for(engine: Engine, work: Work, builds: Names, issues: Names, hardware: Names) -> Chosen:
    """Issues and builds that are named; else what the pack is for and what was adopted; else the default builds."""
    ids = {*(work.pack.builds if work.pack else ()), *work.adopted}
    if work.pack and not issues:
        issues = list(work.pack.issues)
    return Chosen(
        pick_issues(engine, issues),
        pick_builds(engine, builds, lambda build: build.id in ids if ids else build.default),
        tuple(hardware) or own_hardware(),
    )


def _proposed(
    engine: Engine, settings: Settings, chosen: Chosen, minutes: float
) -> tuple[tuple[PlannedJob, ...], Chosen]:
    """The jobs of `next` in its order, and what they are about."""
    planned = tuple(proposal.job for proposal in proposed(engine, settings, chosen.hardware, minutes))
    issues = {arm.issue for job in planned for arm in job.arms}
    about = Chosen(
        tuple(issue for issue in pick_issues(engine, ()) if issue.id in issues),
        pick_builds(engine, (), lambda build: build.id in {job.build.id for job in planned}),
        tuple(class_ for class_ in chosen.hardware if any(job.hardware == class_ for job in planned)),
    )
    return planned, about


def _write_results(engine: Engine, chosen: Chosen, output: Path, pack: OpenedPack | None) -> None:
    origin = f"pack {pack.id}" if pack else "knowngood"
    write_bundle(engine, output, origin, issues={i.id for i in chosen.issues}, builds={b.id for b in chosen.builds})


@command(
    "Measure a random sample of answered cells again. Ends with 1 if a verdict changed.",
    option("--cells", type=click.IntRange(min=1), default=200, help="How many cells to measure again."),
    text("--seed", "The seed of the sample. It is printed; the same seed draws the same cells."),
    text("--python", "Measure the cells of the default Python on this one, such as 3.12.", "VERSION"),
    BUILDS,
    ISSUES,
    HARDWARE,
    DRY_RUN,
    SIZES,
    AS_JSON,
    example="recheck --cells 20 --builds 2.6.0",
)
def recheck(
    *,
    cells: int,
    seed: str,
    python: str,
    builds: Sequence[str],
    issues: Sequence[str],
    hardware: Sequence[str],
    dry_run: bool,
    sizes: bool,
    as_json: bool,
) -> Exit:
    settings = read_settings()
    engine = opened_with_catalogue(settings)
    work = Work(settings)
    sample = Sample(cells, seed or token_hex(4), python)
    columns, rows = pick_builds(engine, builds, lambda _: True), pick_issues(engine, issues)
    drawn, twins, jobs = again.draw(engine, rows, columns, tuple(hardware) or own_hardware(), sample)
    err.print(f"{len(drawn)} cells drawn with --seed {sample.seed}", markup=False)
    if dry_run:
        tell_price(engine, work, jobs, asks=sizes, as_json=as_json)
        return Exit.OK
    with stoppable() as stop, suppress(click.exceptions.Exit):  # stopped: what came until then is told
        run_planned(engine, work, jobs, {"cells": len(drawn), "by": "recheck"}, stop)
    tell_troubles(engine, work)
    rechecked = again.compare(engine, rows, drawn, twins, jobs)
    if as_json:
        print_json(again.as_json(rechecked, sample.seed))
    else:
        again.print_rechecked(out, rechecked, sample.seed)
    rate = again.rate_of(rechecked)
    if rate.part:
        return Exit.FINDING
    return Exit.OK if rate.whole else Exit.INSUFFICIENT
