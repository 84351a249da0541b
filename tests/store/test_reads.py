from datetime import timedelta

import pytest

from knowngood.domain.measuring.planning import PlanRequest, plan_jobs
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.store import queries
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.job_queue import cancel_run
from knowngood.store.records import UnknownAttempt
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import given_catalogue, given_results, given_run

ISSUES = [make_issue("toy-1"), make_issue("toy-2")]
BUILDS = [make_build("2.6.0+cu124"), make_build("2.7.0+cu126")]


def test_cells_can_be_asked_for_by_issue_build_and_class(engine: Engine) -> None:
    given_run(engine, ISSUES, BUILDS)
    given_results(engine)
    with reading(engine) as s:
        everything = queries.load_cells(s)
        assert [(cell.issue, cell.build) for cell in everything] == [
            (issue.id, build.id) for issue in ISSUES for build in BUILDS
        ]
        assert queries.load_cells(s, issues=["toy-2"], builds=[BUILDS[0].id]) == (everything[2],)
        assert queries.load_cells(s, hardware=["cuda-sm_90"]) == ()
        assert queries.load_cells(s, issues=[]) == ()
        assert queries.load_hardware(s) == (HARDWARE,)


def test_a_matrix_is_one_statement_however_long_its_history(engine: Engine, count_statements: CountStatements) -> None:
    for n in range(3):
        given_run(engine, ISSUES, BUILDS, at=NOON + timedelta(days=n))
        given_results(engine)
    with reading(engine) as s, count_statements(engine) as said:
        cells = queries.load_cells(s)
    assert [cell.attempts for cell in cells] == [{"match": 3}] * 4
    assert len(said) == 1


def test_the_run_that_goes_on_is_the_newest_that_has_not_ended(
    engine: Engine, count_statements: CountStatements
) -> None:
    with reading(engine) as s, count_statements(engine) as said:
        assert queries.load_active_run(s) is None
    assert len(said) == 1
    given_run(engine, ISSUES, BUILDS)
    second = given_run(engine, ISSUES, BUILDS, at=NOON + timedelta(days=1))
    with reading(engine) as s:
        assert queries.load_active_run(s) == queries.load_run(s, second)
    given_results(engine)
    with reading(engine) as s:
        assert queries.load_active_run(s) is None


@pytest.mark.parametrize(
    ("baseline", "troubles"),
    [
        (Outcome.PASS, [None, None, None]),
        (Outcome.ENV_ERROR, [None, None, "no C++ compiler; install g++"]),
        (Outcome.HARNESS_ERROR, [None, None, None]),  # it ran, and no probe found the host at fault
        (Outcome.NOT_APPLICABLE, [None, None]),
    ],
)
def test_of_each_attempt_of_a_run_it_is_known_what_the_host_kept_from_an_answer(
    engine: Engine, baseline: Outcome, troubles: list[str | None]
) -> None:
    other = given_run(engine)
    given_results(engine, Outcome.ENV_ERROR)
    asked = given_run(engine, at=NOON + timedelta(days=1))
    given_results(engine, baseline)
    with reading(engine) as s:
        found = queries.load_troubles(s, [asked])
        assert queries.load_troubles(s, []) == ()
        assert len(queries.load_troubles(s, [other, asked])) == 3 + len(troubles)
    assert {build for build, _ in found} == {BUILDS[0].id}
    said = [trouble.sentence if trouble else None for _, trouble in found]
    assert sorted(said, key=bool) == troubles


def test_the_evidence_of_a_cell_stands_newest_first(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with reading(engine) as s:
        rows = queries.load_attempts(s, "toy-1", BUILDS[0].id, HARDWARE)
        assert {row.attempt.arm: row.judgement.outcome for row in rows} == {
            "control": Outcome.PASS,
            "baseline": Outcome.MATCH,
            "aot_eager": Outcome.PASS,
        }
        assert all(row.counted for row in rows)
        assert list(rows) == sorted(rows, key=lambda row: row.attempt.finished_at, reverse=True)


def test_the_evidence_of_what_nobody_knows_is_empty(engine: Engine) -> None:
    with reading(engine) as s:
        assert queries.load_attempts(s, "toy-9", "torch-1.0", HARDWARE) == ()
        with pytest.raises(UnknownAttempt, match='no attempt "a-1"'):
            queries.load_attempt(s, "a-1")


def test_what_is_known_makes_the_next_plan_smaller(engine: Engine) -> None:
    given_run(engine, ISSUES, BUILDS)
    with reading(engine) as s:
        known = queries.load_known_attempts(s)
    again = plan_jobs(ISSUES, BUILDS, [HARDWARE], known, PlanRequest(repeat=1))
    assert {arm.ordinal for job in again for arm in job.arms} == {2}, (
        "ordinals that are planned are not given out again"
    )
    given_results(engine)
    with reading(engine) as s:
        known = queries.load_known_attempts(s)
    assert plan_jobs(ISSUES, BUILDS, [HARDWARE], known, PlanRequest(repeat=1)) == ()
    assert known.cells["toy-1", BUILDS[0].id, HARDWARE].verdict is Verdict.AFFECTED
    more = plan_jobs(ISSUES, BUILDS, [HARDWARE], known, PlanRequest(repeat=3))
    assert {arm.ordinal for job in more for arm in job.arms} == {2, 3}


def test_superseded_results_are_not_known(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    changed = make_issue(packages=ISSUES[0].packages.__class__(requirements=("numpy==1.26.4",)))
    given_catalogue(engine, [changed], BUILDS)
    with reading(engine) as s:
        known = queries.load_known_attempts(s)
    assert sum(len(arm) for arm in known.outcomes.values()) == 0
    planned = plan_jobs([changed], BUILDS[:1], [HARDWARE], known, PlanRequest(repeat=1))
    assert len(planned[0].arms) == 3


def test_every_visible_write_moves_the_generation(engine: Engine) -> None:
    seen = []

    def note() -> None:
        with reading(engine) as s:
            seen.append(queries.load_generation(s))

    note()
    run = given_run(engine)
    note()
    with unit_of_work(engine) as s:
        cancel_run(s, run, NOON)
    note()
    assert seen == sorted(set(seen))
