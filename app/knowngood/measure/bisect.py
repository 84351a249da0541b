"""`knowngood bisect`: the build that broke an issue, or mended it."""

from contextlib import suppress
from dataclasses import replace

import click

from knowngood.cli.catalogue import opened_with_catalogue
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, SIZES, argument, flag, option, text
from knowngood.cli.output import err, out, print_json
from knowngood.cli.signals import stoppable
from knowngood.cli.stored import pick_issues
from knowngood.domain.issue_selectors import find_issue
from knowngood.domain.measuring.planning import PlannedJob
from knowngood.measure.bisection import cli as halving
from knowngood.measure.jobs import Work, is_led, own_hardware, run_planned
from knowngood.measure.scheduling.pricing import price_as_json, tell_price
from knowngood.settings import read_settings
from knowngood.store.engine import reading
from knowngood.store.queries import load_builds, load_hardware, load_known_attempts, load_troubles
from knowngood_workers.dispatch.dispatcher import utc_now


@command(
    "Find the build that broke an issue, or mended it, in few jobs; 1: not monotone, 3: nothing to find.",
    argument("issue", "The issue's id."),
    option(
        "--from",
        "from_",
        required=True,
        metavar="BUILD",
        help="One end: a build's id, or a version of torch such as 2.4.1.",
    ),
    option("--to", required=True, metavar="BUILD", help="The other end, on the same line of builds."),
    text("--hardware", "One class; without, the first where the issue can be.", "CLASS"),
    text("--python", "The Python of every build of the line, such as 3.12.", "VERSION"),
    flag("--full", help_="Ask every build that is not known, instead of halving."),
    flag("--confirm", help_="Ask stored sides of the change for what confirming it needs."),
    flag("--dry-run", help_="Tell what is known and which job would be first."),
    SIZES,
    AS_JSON,
    example="bisect pytorch-151290 --from 2.4.1 --to 2.7.0 --dry-run",
)
def bisect(
    *,
    issue: str,
    from_: str,
    to: str,
    hardware: str,
    python: str,
    full: bool,
    confirm: bool,
    dry_run: bool,
    sizes: bool,
    as_json: bool,
) -> Exit:
    settings = read_settings()
    engine = opened_with_catalogue(settings)
    row = find_issue(issue, {entry.id: entry for entry in pick_issues(engine, ())})
    with reading(engine) as s:
        builds, measured = load_builds(s), load_hardware(s)
    line = halving.read_line(builds, from_, to, python)
    own = own_hardware()
    class_ = halving.choose_hardware(hardware, own, measured, row, line)
    question = halving.BisectQuestion(row, line, class_, can_ask=class_ in own or is_led(engine))
    work = Work(settings)
    if dry_run:
        with reading(engine) as s:
            outlook = halving.outlook(question, load_known_attempts(s), utc_now(), full=full)
        if as_json:
            price = {"price": price_as_json(engine, work.place(asks=sizes), outlook.jobs)} if outlook.jobs else {}
            print_json({**halving.outlook_as_json(question, outlook), **price})
            return Exit.OK
        halving.print_outlook(out, question, outlook)
        if outlook.jobs:
            out.print("the first of them:")
            tell_price(engine, work.place(asks=sizes), outlook.jobs)
        return Exit.OK
    if not question.can_ask:
        err.print(f"nobody here serves {class_}: only what is stored is looked at", markup=False)

    def measure(planned: tuple[PlannedJob, ...]) -> None:
        with suppress(click.exceptions.Exit):  # stopped: what came until then is told
            run_planned(engine, work, planned, {"issues": [row.id], "by": "bisect"}, stop)

    with stoppable() as stop:
        result = halving.search(engine, question, measure, stop, clock=utc_now, full=full, confirm=confirm)
    with reading(engine) as s:
        troubles = {build: trouble.sentence for build, trouble in load_troubles(s, work.runs) if trouble}
    result = replace(result, troubles=troubles)
    if as_json:
        print_json(halving.as_json(question, result))
    else:
        halving.print_result(out, question, result)
    return result.code
