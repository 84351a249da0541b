"""`knowngood recheck`: cells with an answer asked once more."""

from collections.abc import Sequence
from contextlib import suppress
from secrets import token_hex

import click

from knowngood.cli.catalogue import opened_with_catalogue
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, BUILDS, DRY_RUN, HARDWARE, ISSUES, SIZES, option, text
from knowngood.cli.output import err, out, print_json
from knowngood.cli.signals import stoppable
from knowngood.cli.stored import pick_builds, pick_issues
from knowngood.domain.measuring.planning import Sample
from knowngood.health import again
from knowngood.measure.jobs import Work, own_hardware, run_planned, tell_troubles
from knowngood.measure.scheduling.pricing import tell_price
from knowngood.settings import read_settings


@command(
    "Measure a random sample of answered cells again; ends in 1 if a verdict changed.",
    option("--cells", type=click.IntRange(min=1), default=200, help="How many cells to measure again."),
    text("--seed", "The seed of the sample; it is printed, and the same one draws the same cells."),
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
    drawn = again.draw(engine, rows, columns, tuple(hardware) or own_hardware(), sample)
    err.print(f"{len(drawn.cells)} cells drawn with --seed {sample.seed}", markup=False)
    if dry_run:
        tell_price(engine, work, drawn.jobs, asks=sizes, as_json=as_json)
        return Exit.OK
    with stoppable() as stop, suppress(click.exceptions.Exit):  # stopped: what came until then is told
        run_planned(engine, work, drawn.jobs, {"cells": len(drawn.cells), "by": "recheck"}, stop)
    tell_troubles(engine, work)
    rechecked = again.compare(engine, rows, drawn)
    if as_json:
        print_json(again.as_json(rechecked, sample.seed))
    else:
        again.print_rechecked(out, rechecked, sample.seed)
    rate = again.rate_of(rechecked)
    if rate.part:
        return Exit.FINDING
    return Exit.OK if rate.whole else Exit.INSUFFICIENT
