"""The search over a real store, with answers that a test decides: what is asked, how often, and what is said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import BASELINE, CONTROL, Device, Requires
from knowngood.domain.measuring.planning import PlannedJob
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.measure.bisection.cli import (
    CODES,
    BisectQuestion,
    BisectResult,
    Measure,
    as_body,
    choose_hardware,
    outlook,
    search,
)
from knowngood.measure.bisection.search import SearchOutcome, sentences
from knowngood.store import queries
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.job_queue import claim_job, create_run
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import HOLDER, ended, finished, given_catalogue, started

ISSUE = make_issue()
BUILDS = tuple(make_build(f"2.{minor}.0+cu124") for minor in range(1, 9))
QUESTION = BisectQuestion(ISSUE, BUILDS, HARDWARE)
SIGNS = {"X": [Outcome.MATCH], ".": [Outcome.PASS], "?": [Outcome.ENV_ERROR], "~": [Outcome.PASS, Outcome.MATCH]}


@dataclass
class World:
    """A store, what each build would answer, and what it was asked."""

    engine: Engine
    truth: str
    asked: list[Mapping[str, int]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)

    def measure(self, planned: tuple[PlannedJob, ...]) -> None:
        """Every job through the queue; the baseline answers in turn what its build has to say."""
        signs = {build.id: SIGNS[sign] for build, sign in zip(BUILDS, self.truth, strict=True)}
        with unit_of_work(self.engine) as s:
            self.runs.append(create_run(s, planned, {"by": "test"}, NOON))
        for job in planned:
            self.asked.append({arm: sum(one.arm == arm for one in job.arms) for arm in {one.arm for one in job.arms}})
            with unit_of_work(self.engine) as s:
                spec = claim_job(s, HOLDER, NOON, 30.0)
                assert spec is not None
                record_event(s, started(spec), NOON)
                for arm in spec.arms:
                    said = signs[spec.build.id]
                    outcome = said[arm.ordinal % len(said)] if arm.arm == BASELINE else Outcome.PASS
                    record_event(s, finished(spec, arm, outcome), NOON)
                record_event(s, ended(spec), NOON)

    def search(
        self,
        *,
        now: datetime = NOON,
        stop: Callable[[], bool] = lambda: False,
        full: bool = False,
        confirm: bool = False,
    ) -> BisectResult:
        measure: Measure = self.measure
        return search(self.engine, QUESTION, measure, stop, clock=lambda: now, full=full, confirm=confirm)

    def known(self, *places: int) -> None:
        """These builds were asked once before."""
        with reading(self.engine) as s:
            known = queries.load_known_attempts(s)
        for at in places:
            _, jobs = outlook(BisectQuestion(ISSUE, (BUILDS[at], BUILDS[at]), HARDWARE), known, NOON, full=False)
            once = [arm for arm in jobs[0].arms if arm.ordinal == 1]
            self.measure((PlannedJob(BUILDS[at], HARDWARE, jobs[0].request, tuple(once)),))
        self.asked.clear()


@pytest.fixture
def world(own_engine: Engine) -> Callable[[str], World]:
    given_catalogue(own_engine, [ISSUE], BUILDS)
    return lambda truth: World(own_engine, truth)


def asked_builds(found: BisectResult) -> list[str]:
    return [id_.removeprefix("torch-").partition(".0+")[0] for id_ in found.asked_builds]


def test_each_build_is_asked_once_with_one_control_three_baselines_and_no_workaround(
    world: Callable[[str], World],
) -> None:
    here = world(".....XXX")
    found = here.search()
    assert found.answer.changes[0].interval == "(2.5.0, 2.6.0]"
    assert asked_builds(found) == ["2.1", "2.8", "2.5", "2.7", "2.6"]
    assert here.asked == [{CONTROL: 1, BASELINE: 3}] * 5
    again = here.search()
    assert (again.asked_builds, again.answer.changes[0].interval) == ((), "(2.5.0, 2.6.0]")


def test_what_is_stored_is_not_asked_again_and_is_called_unconfirmed(world: Callable[[str], World]) -> None:
    here = world("....XXXX")
    here.known(0, 3, 4, 7)
    found = here.search()
    assert here.asked == []
    assert "not confirmed: 2.4.0 rests on 1 attempt and 2.5.0 rests on 1 attempt" in " ".join(sentences(found.answer))


def test_confirming_asks_both_sides_for_what_they_lack_and_counts_that_apart(world: Callable[[str], World]) -> None:
    here = world("....XXXX")
    here.known(0, 3, 4, 7)
    found = here.search(confirm=True)
    assert here.asked == [{BASELINE: 2}] * 2
    assert (found.asked_builds, found.confirmed) == ((), (BUILDS[3].id, BUILDS[4].id))
    assert found.answer.changes[0].missing == ""
    assert as_body(QUESTION, found)["boundary"]["confirmed"] is True


def test_a_side_that_turns_out_flaky_moves_the_boundary(world: Callable[[str], World]) -> None:
    here = world("...~XXXX")
    here.known(0, 7)
    here.truth = "....XXXX"
    here.known(3, 4)
    here.truth = "...~XXXX"
    found = here.search(confirm=True)
    assert found.answer.changes[0].interval == "(2.3.0, 2.4.0]"
    assert asked_builds(found) == ["2.3"]
    assert "is flaky on 2.4.0" in sentences(found.answer)[0]


def test_a_build_that_infrastructure_kept_from_answering_is_asked_once_and_named(world: Callable[[str], World]) -> None:
    here = world("...?XXXX")
    found = here.search()
    assert len(found.asked_builds) == len(set(found.asked_builds)) <= found.answer.search.most_jobs
    assert found.answer.changes[0].interval.endswith("2.5.0]")
    assert any("2.4.0 gives no answer (inconclusive: " in one for one in sentences(found.answer))


@pytest.mark.sample(2, "system")
@pytest.mark.parametrize(
    ("truth", "code"),
    [("X??????.", 3), ("X??X???.", 0), ("X.??.?..", 0), ("????????", 3), (".......X", 0), ("X......X", 3)],
)
def test_a_range_that_the_host_kept_from_being_narrowed_at_all_is_no_answer(
    world: Callable[[str], World], truth: str, code: int
) -> None:
    here = world(truth)
    found = here.search()
    with reading(here.engine) as s:
        told = queries.load_troubles(s, here.runs)
    assert {build for build, trouble in told if trouble} == {
        build.id for build, sign in zip(BUILDS, truth, strict=True) if sign == "?" and build.id in found.asked_builds
    }
    assert replace(found, troubles={build: trouble.sentence for build, trouble in told if trouble}).code == code


def test_old_evidence_is_asked_anew_with_its_control(world: Callable[[str], World]) -> None:
    here = world(".......X")
    here.known(0, 7)
    found = here.search(now=NOON + timedelta(days=200), full=False)
    assert {BUILDS[0].id, BUILDS[7].id} <= set(found.asked_builds)
    assert here.asked[0] == {CONTROL: 1, BASELINE: 3}


def test_a_stopped_search_says_what_is_known_by_then(world: Callable[[str], World]) -> None:
    here = world("....XXXX")
    found = here.search(stop=lambda: len(here.asked) == 2)
    assert (len(found.asked_builds), found.is_stopped) == (2, True)
    assert found.answer.changes[0].interval == "(2.1.0, 2.8.0]"
    assert any("not asked; the same question goes on from here" in one for one in sentences(found.answer))
    assert here.search().answer.changes[0].interval == "(2.4.0, 2.5.0]"


def test_without_a_worker_only_what_is_stored_is_looked_at(world: Callable[[str], World]) -> None:
    here = world("....XXXX")
    here.known(1, 6)
    shut = BisectQuestion(ISSUE, BUILDS, HARDWARE, can_ask=False)
    found = search(here.engine, shut, here.measure, lambda: False, clock=lambda: NOON, full=True)
    assert (here.asked, found.answer.changes[0].interval) == ([], "(2.2.0, 2.7.0]")


def test_a_full_scan_asks_all_that_is_not_known_and_finds_every_change(world: Callable[[str], World]) -> None:
    here = world("..XX..XX")
    here.known(0, 7)
    assert here.search().answer.kind is SearchOutcome.FOUND
    found = here.search(full=True)
    assert found.answer.kind is SearchOutcome.NOT_MONOTONE
    assert [change.interval for change in found.answer.changes] == [
        "(2.2.0, 2.3.0]",
        "(2.4.0, 2.5.0]",
        "(2.6.0, 2.7.0]",
    ]


def test_the_hardware_is_the_first_on_which_the_issue_can_be() -> None:
    gpu = make_issue(requires=Requires(device=Device.CUDA))
    assert choose_hardware("", [HARDWARE, "cuda-sm_90"], [], gpu, BUILDS) == "cuda-sm_90"
    assert choose_hardware("", [HARDWARE], ["cuda-sm_80"], gpu, BUILDS) == "cuda-sm_80"
    assert choose_hardware("cuda-sm_100", [HARDWARE], [], gpu, BUILDS) == "cuda-sm_100"
    with pytest.raises(BadRequest, match="name a class with --hardware"):
        choose_hardware("", [HARDWARE], [], gpu, BUILDS)


def test_every_kind_of_answer_has_its_exit_code() -> None:
    assert {kind: CODES[kind].value for kind in SearchOutcome} == {
        SearchOutcome.FOUND: 0,
        SearchOutcome.NOT_MONOTONE: 1,
        SearchOutcome.ENDS_AGREE: 3,
        SearchOutcome.CANNOT_SAY: 3,
    }
