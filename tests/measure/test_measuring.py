"""What a run says beside its cells: whom it waits for, how it goes on when it is stopped, what was found."""

import io
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from knowngood.domain.message import quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Cell, CellPlace, Verdict
from knowngood.health.again import print_verdicts
from knowngood.measure.jobs import done_before, waited_for
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.job_queue import DISPATCHER, cancel_run, claim_job, create_run, take_lease
from tests.given_toys import ROOT, make_installation
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import finished, given_catalogue, planned, started
from tests.waiting import eventually

ISSUE, BUILD, OTHER = make_issue(), make_build(), make_build("2.7.0+cu126")


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        ("dispatcher-4711-0123456789ab", "process 4711 measures on this store already, `up` since 12:00 UTC (0 of "),
        ("somebody", "another process measures on this store already, `up` since 12:00 UTC (0 of "),
    ],
)
def test_who_waits_is_told_for_whom(engine: Engine, holder: str, words: str) -> None:
    given_catalogue(engine, [ISSUE], [BUILD])
    with unit_of_work(engine) as s:
        create_run(s, planned([ISSUE], [BUILD]), {"by": "up"}, NOON)
        take_lease(s, DISPATCHER, holder, NOON, 60)
        claim_job(s, holder, NOON, 60)
        own = create_run(s, planned([ISSUE], [BUILD]), {"by": "run"}, NOON)
    assert words in waited_for(engine, own)
    assert "Ctrl-C ends the waiting and loses nothing" in waited_for(engine, own)


def test_a_bar_counts_what_the_same_command_did_before_it_was_stopped(engine: Engine) -> None:
    given_catalogue(engine, [ISSUE], [BUILD])
    jobs = planned([ISSUE], [BUILD])
    with unit_of_work(engine) as s:
        first = create_run(s, jobs, {"by": "up"}, NOON)
        job = claim_job(s, "dispatcher", NOON, 60)
        assert job is not None
        record_event(s, started(job), NOON)
        record_event(s, finished(job, job.arms[0], Outcome.PASS), NOON)
        cancel_run(s, first, NOON)
        again = create_run(s, jobs, {"by": "up"}, NOON + timedelta(minutes=1))
        other = create_run(s, jobs, {"by": "here"}, NOON + timedelta(minutes=2))
    assert [done_before(engine, run) for run in (first, again, other)] == [0, 1, 0]


def known(found: Mapping[str, Verdict]) -> Known:
    cells: dict[CellPlace, Cell] = {
        cell.key: cell for cell in (_cell(build, verdict) for build, verdict in found.items())
    }
    return Known({ISSUE.id: ISSUE}, {BUILD.id: BUILD, OTHER.id: OTHER}, cells, (HARDWARE,), NOON)


def _cell(build: str, verdict: Verdict) -> Cell:
    return Cell(ISSUE.id, build, HARDWARE, verdict, quoted("because"), NOON)


PLACES: list[CellPlace] = [(ISSUE.id, BUILD.id, HARDWARE), (ISSUE.id, OTHER.id, HARDWARE)]
FAILS, PASSES, NOTHING = Verdict.AFFECTED, Verdict.NOT_AFFECTED, Verdict.INCONCLUSIVE
AGREE = "answers agree with the results that come with this release"


@pytest.mark.parametrize(
    ("here", "there", "lines"),
    [
        pytest.param((FAILS, PASSES), (FAILS, PASSES), [f"2 of 2 {AGREE}"], id="alike"),
        pytest.param(
            (FAILS, PASSES),
            (PASSES, NOTHING),
            [
                f"0 of 1 {AGREE}; 1 are not known there",
                f"  {ISSUE.id} on {BUILD.id}, {HARDWARE}: fails here, passes there (because)",
            ],
            id="different",
        ),
        pytest.param((NOTHING, PASSES), (PASSES, PASSES), [f"1 of 1 {AGREE}; 1 have no answer here"], id="no answer"),
    ],
)
def test_the_end_says_what_was_found_and_whether_it_is_known_so(
    here: tuple[Verdict, Verdict], there: tuple[Verdict, Verdict], lines: list[str]
) -> None:
    ids = (BUILD.id, OTHER.id)
    assert told(known(dict(zip(ids, here, strict=True))), known(dict(zip(ids, there, strict=True))))[1:] == lines


def test_what_runs_something_else_is_not_compared() -> None:
    found = known({BUILD.id: FAILS})
    other = replace(ISSUE, arms=tuple(replace(arm, code=f"{arm.code}, changed") for arm in ISSUE.arms))
    shipped = replace(known({BUILD.id: PASSES}), issues={ISSUE.id: other})
    assert told(found, shipped) == [
        "found in 1 cell: 1 fails, no workaround found",
        f"0 of 0 {AGREE}; 1 are not known there",
    ]


def told(found: Known, shipped: Known | None) -> list[str]:
    out = io.StringIO()
    print_verdicts(Console(file=out, width=200), PLACES, found, shipped)
    return out.getvalue().splitlines()


@pytest.mark.system
@pytest.mark.timeout(300)
def test_who_stops_a_run_is_told_how_to_go_on(wheels: Path, tmp_path: Path) -> None:
    fresh = make_installation(tmp_path, wheels)
    asked = ("run", "--builds", "torch-0.0.1+mini", "--issues", "toy-hangs-1,toy-passes-1")
    log = tmp_path / "log"
    with log.open("w") as file:
        run = subprocess.Popen(
            [sys.executable, "-m", "knowngood", *asked], env=fresh.environment, cwd=ROOT, stdout=file, stderr=file
        )
        assert eventually(lambda: "environment made" in log.read_text()), log.read_text()
        run.send_signal(signal.SIGINT)
        assert run.wait(120) == 0
    assert "arms are done, and their results are kept; the same command continues" in log.read_text()
    fresh.command(*asked)
    known = json.loads(fresh.command("matrix", "--json").stdout)["cells"]  # some may have had their answer before
    told = {cell["issue"]: cell["verdict"] for cell in known if cell["verdict"] != "not_run"}
    assert told == {"toy-hangs-1": "affected", "toy-passes-1": "not_affected"}
