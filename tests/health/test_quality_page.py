"""How often the project's own answers change, on a page and as JSON."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from knowngood.domain.measuring.job import ArmSpec, JobSpec
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.health.quality import Quality
from knowngood.store.engine import Engine
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.asking import shown
from tests.web.given import BAD, DYNAMO, GOOD, MASK, Asked


def test_what_was_asked_twice_is_counted_and_what_changed_is_named(client: TestClient) -> None:
    page = shown(client, "/quality", Quality)
    # The notebook asks twice: of BAD both variants of the mask, the wrong numbers (flaky), Dynamo; of GOOD the mask.
    assert (page.false_changes.part, page.false_changes.whole) == (1, 6)
    assert "1 of 6 answers changed: 16.7 %, with" in client.get("/quality").text
    (pair,) = [SimpleNamespace(**dict(one)) for one in page.changed]
    assert (pair.issue, pair.first, pair.later) == (
        given.SILENT.id,
        Verdict.AFFECTED,
        Verdict.NOT_AFFECTED,
    )
    attempts = [client.get(f"/api/v1{address}").json() for address in (pair.first_url, pair.later_url)]
    assert [one["ordinal"] for one in attempts] == [1, 2]
    assert client.get(pair.url).status_code == 200
    assert [cell.issue for cell in page.flaky] == [given.SILENT.id]


def test_each_hardware_class_is_counted_for_itself(client: TestClient) -> None:
    lines = {line.hardware: line for line in shown(client, "/quality", Quality).hardware}
    assert set(lines) == {HARDWARE, given.GPU_CLASS}
    rates = [lines[hardware].false_changes for hardware in (HARDWARE, given.GPU_CLASS)]
    assert [(one.part, one.whole) for one in rates] == [(1, 6), (0, 0)]
    assert '<td data-head="Changed when measured again">0 of 0</td>' in client.get("/quality").text
    assert lines[HARDWARE].infrastructure.part == 1  # the wrong numbers on 2.8.0


def test_the_page_and_its_twin_say_the_same(client: TestClient) -> None:
    page = shown(client, "/quality", Quality)
    told = client.get("/api/v1/quality").json()
    assert (told["false_changes"]["part"], told["false_changes"]["whole"]) == (1, 6)
    assert f"confidence {100 * told['false_changes']['low']:.1f} % to " in client.get("/quality").text
    assert [one["first_url"] for one in told["changed"]] == [pair.first_url for pair in page.changed]
    assert [one["hardware"] for one in told["hardware"]] == [line.hardware for line in page.hardware]
    assert told["hardware"][0]["outcomes"]["match"] > 0


def test_time_is_told_with_what_it_rests_on(client: TestClient) -> None:
    told = client.get("/api/v1/quality").json()
    jobs = [job for run in client.get("/api/v1/runs").json()["runs"] for job in run["jobs"]]
    assert told["provisioned"]["environments"] == len(jobs)
    assert told["provisioned"]["seconds"] == 12.0 * len(jobs)
    assert told["provisioned"]["attempts"] == sum(job["arms_total"] for job in jobs)
    assert "% of the wall time of their jobs" in client.get("/quality").text
    assert [line.time.attempts for line in shown(client, "/quality", Quality).hardware] == [
        one["time"]["attempts"] for one in told["hardware"]
    ]


def test_machines_that_disagree_are_listed_apart(
    own: TestClient, own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    given.save(own_engine, [DYNAMO], [GOOD])
    given.run(own_engine, Asked([GOOD], NOON, issues=[DYNAMO]))
    monkeypatch.setattr(given, "CPU_MACHINE", replace(given.CPU_MACHINE, isa="avx512"))

    def fails(_: JobSpec, arm: ArmSpec) -> Outcome:
        return Outcome.MATCH if arm.arm == "baseline" else Outcome.PASS

    again = Asked([GOOD], NOON + timedelta(hours=1), issues=[DYNAMO], wanted=PlanRequest(force=True))
    given.run(own_engine, again, fails)
    page = shown(own, "/quality", Quality)
    assert (page.false_changes.whole, [one.issue for one in page.varying]) == (0, [DYNAMO.id])
    assert list(dict(page.varying[0])["verdicts"].values()) == [Verdict.NOT_AFFECTED, Verdict.AFFECTED]
    assert own.get("/api/v1/quality").json()["hardware"][0]["varying_by_machine"]["part"] == 1


def test_with_nothing_measured_nobody_can_say(own: TestClient) -> None:
    assert "Nothing was measured twice" in own.get("/quality").text
    assert own.get("/api/v1/quality").json()["false_changes"] == {
        "part": 0,
        "whole": 0,
        "share": 0.0,
        "low": 0.0,
        "high": 1.0,
    }


def test_an_attempt_of_an_older_repro_is_part_of_no_pair(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, [MASK], [BAD])
    given.run(own_engine, Asked([BAD], NOON, issues=[MASK], wanted=PlanRequest(repeat=2)))
    assert shown(own, "/quality", Quality).false_changes.whole == 2
    given.save(own_engine, [given.with_new_code(MASK)], [BAD])
    assert shown(own, "/quality", Quality).false_changes.whole == 0
