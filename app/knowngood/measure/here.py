"""`knowngood here`: the catalogue run inside a Python environment as it is, beside all stores.

What is found is true of that environment alone: it may be patched, or be no release at all. So it is kept in a store of
its own, named after all that is installed there, and never mixed with what is known of builds.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import click
from packaging.version import InvalidVersion, Version
from rich.console import Console

from knowngood.catalogue.loader import read_catalogue
from knowngood.cli.choice import Chosen, ended, verdicts
from knowngood.cli.context import known_now, make_data_dir, opened, pick_issues, root
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, FAIL_ON, ISSUES, flag, text
from knowngood.cli.output import err, out, print_json
from knowngood.cli.signals import stoppable
from knowngood.domain.builds.build import Build, BuildId, difference
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue, digest
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.message import english
from knowngood.domain.verdicts.matrix import complete
from knowngood.domain.verdicts.status import has_workaround, partly_working, status_of, working
from knowngood.domain.verdicts.verdict import Cell, Verdict, is_silent
from knowngood.domain.vocabulary import StatusLabel
from knowngood.logging_setup import configure
from knowngood.matrix.overview.table import sign_in_colour
from knowngood.measure.jobs import FURTHER, Work, own_hardware, plan, run_planned, tell_warnings
from knowngood.measure.scheduling.cli import tell_price
from knowngood.serialization.marks import mark_of
from knowngood.settings import read_settings
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import unit_of_work
from knowngood_workers.dispatch.dispatcher import utc_now
from knowngood_workers.provision.adopted_env import AdoptedEnvironment, inspect_program

LOCAL = "local"
"""The origin of a build that came from no index we know."""


@command(
    "Run the catalogue inside a Python environment as it is, and print what fails there and what helps.",
    text("--python", "The interpreter of the environment. Default: the one that runs this command.", "PROGRAM"),
    ISSUES,
    flag("--force", help_="Run again what is already known of this environment."),
    AS_JSON,
    FAIL_ON,
    example="here --python .venv/bin/python",
)
def here(*, python: str, issues: Sequence[str], force: bool, as_json: bool, fail_on: Sequence[str]) -> Exit:
    failing = verdicts(fail_on)
    settings = read_settings()
    configure(settings.log_format, settings.log_level or "error")
    catalogue = read_catalogue(settings.folders, with_drafts=False)
    environment = inspect_program(python or sys.executable, os.environ)
    build = build_in(environment, catalogue.builds)
    name = digest(f"{environment.python} {environment.imported} {environment.lock}")[:16]  # changes with what is there
    make_data_dir(settings)
    store = root(settings) / "here"
    store.mkdir(exist_ok=True)
    engine = opened(settings.model_copy(update={"data_dir": store / name, "database_url": ""}))
    with unit_of_work(engine) as s:
        save_catalogue(s, catalogue.issues, [build], utc_now())
    work = Work(settings, None, {build.id: environment.python})
    chosen = Chosen(pick_issues(engine, issues), (build,), own_hardware())
    tell_warnings(chosen.issues)
    err.print(f"{environment.python} holds {environment.in_words}", markup=False, soft_wrap=True)
    request = {"builds": [build.id], "issues": [i.id for i in chosen.issues], "by": "here"}
    wanted = PlanRequest(force=force, where_affected=True, now=utc_now())
    with stoppable() as stop, suppress(click.exceptions.Exit):  # stopped: what is known until then is printed
        for round_ in range(1 + FURTHER):
            planned = work.able(plan(engine, chosen, wanted))
            if planned and not round_:
                tell_price(engine, work, planned, err)
                err.print("--issues runs fewer; Ctrl-C ends it and prints what is known until then", highlight=False)
            if planned and not stop():
                run_planned(engine, work, planned, request, stop, is_priced=not round_)
            wanted = replace(wanted, force=False)
    known = known_now(engine)
    every = complete(chosen.issues, chosen.builds, chosen.hardware, known).values()
    cells = [cell for cell in every if cell.verdict is not Verdict.NOT_RUN]
    if as_json:
        print_json(as_body(environment, build, cells))
    else:
        print_cells(out, environment, chosen.issues, cells)
    return ended(known, chosen, failing)


def build_in(environment: AdoptedEnvironment, builds: Iterable[Build]) -> Build:
    """The column of the catalogue that an environment holds, else a build of its own. Raises BadRequest."""
    column = next((build for build in builds if difference(build, environment.imported, {}) is None), None)
    return column or _build_of(environment)


def _build_of(environment: AdoptedEnvironment) -> Build:
    """A build that no catalogue has. Its Triton counts as its own pin: nobody has said otherwise."""
    imported = environment.imported
    try:
        version = Version(imported["torch"])
    except InvalidVersion:
        raise BadRequest(
            f'{environment.python} holds torch "{imported["torch"]}", whose version is none by PEP 440; '
            "it cannot be named here"
        ) from None
    python = ".".join(imported["python"].split(".")[:2])
    triton = imported["triton"] or None
    today = datetime.now(UTC).date()
    return Build(
        id=str(BuildId(str(version), python=python)),
        torch=imported["torch"],
        requirement=version.public,
        cuda=imported["cuda"] or None,
        triton=triton,
        pinned_triton=triton,
        python=python,
        origin=LOCAL,
        as_of=today,
        git=imported["git"],
    )


def print_cells(console: Console, here: AdoptedEnvironment, issues: Sequence[Issue], cells: Iterable[Cell]) -> None:
    """First the answer, then every issue that is seen here with what helps here and the thread upstream."""
    by_place = {(cell.issue, cell.hardware): cell for cell in cells}
    for hardware in sorted({hardware for _, hardware in by_place}):
        rows = [(issue, by_place[issue.id, hardware]) for issue in issues if (issue.id, hardware) in by_place]
        console.print(f"{_answer(rows)} on {hardware}: {here.in_words}", markup=False, soft_wrap=True)
        shown = [(_SHOWN.index(status_of(cell)), issue, cell) for issue, cell in rows if status_of(cell) in _SHOWN]
        for _, issue, cell in sorted(shown, key=lambda row: (row[0], row[1].id)):
            _print_row(console, issue, cell)


def _print_row(console: Console, issue: Issue, cell: Cell) -> None:
    silent = ", wrong numbers without an error" if is_silent(issue, cell) and cell.verdict is Verdict.AFFECTED else ""
    console.print("  ", sign_in_colour(cell), " ", sep="", end="")
    console.print(f"{issue.id}: {issue.title} ({mark_of(cell).word}{silent})", markup=False, soft_wrap=True)
    if cell.verdict is not Verdict.AFFECTED:
        console.print(f"      {english(cell.reason)}", markup=False, soft_wrap=True)
    for id_ in working(cell):
        console.print(f"      use {id_}: {_title(issue, id_)}", markup=False, soft_wrap=True)
    for id_ in partly_working(cell):
        words = f"{_title(issue, id_)} ({english(cell.workarounds[id_].note)})"
        console.print(f"      helps in part: {id_}: {words}", markup=False, soft_wrap=True)
    if issue.report:
        console.print(f"      {issue.report.url}", markup=False, highlight=False, soft_wrap=True)


def as_body(here: AdoptedEnvironment, build: Build, cells: Iterable[Cell]) -> Mapping[str, Any]:
    rows = [
        {
            "issue": cell.issue,
            "hardware": cell.hardware,
            "verdict": cell.verdict.value,
            "reason": english(cell.reason),
            "effective_workarounds": list(working(cell)),
            "partial_workarounds": list(partly_working(cell)),
        }
        for cell in cells
    ]
    return {"python": str(here.python), "build": build.id, "is_column": build.origin != LOCAL, "cells": rows}


_SHOWN = (
    StatusLabel.FAILS,
    StatusLabel.UNTRIED,
    StatusLabel.PARTIAL,
    StatusLabel.AS_REPORTED,
    StatusLabel.WORKAROUND,
    StatusLabel.DIFFERENT,
    StatusLabel.BIGGER,
    StatusLabel.MORE_WORK,
    StatusLabel.SLOWER,
    StatusLabel.FLAKY,
    StatusLabel.UNSURE,
)
"""Most severe first."""


def _answer(rows: Sequence[tuple[Issue, Cell]]) -> str:
    verdicts = Counter(cell.verdict for _, cell in rows)
    failing = [cell for _, cell in rows if cell.verdict is Verdict.AFFECTED]
    helped = sum(map(has_workaround, failing))
    partly = sum(bool(partly_working(cell)) and not has_workaround(cell) for cell in failing)
    in_part = f", {partly} with one that helps in part" if partly else ""
    with_help = f" ({helped} with a workaround{in_part})" if failing else ""
    counts = {
        "fail otherwise": verdicts[Verdict.DIFFERENT_FAILURE] + verdicts[Verdict.FLAKY],
        "take more memory": verdicts[Verdict.BIGGER],
        "do more work": verdicts[Verdict.MORE_WORK],
        "take longer": verdicts[Verdict.SLOWER],
        "cannot be said": verdicts[Verdict.INCONCLUSIVE],
        "pass": verdicts[Verdict.NOT_AFFECTED],
    }
    first = f"{len(failing)} {'issue fails' if len(failing) == 1 else 'issues fail'} here{with_help}"
    return ", ".join([first, *(f"{count} {words}" for words, count in counts.items() if count)])


def _title(issue: Issue, id_: str) -> str:
    return next((workaround.title for workaround in issue.workarounds if workaround.id == id_), id_)
