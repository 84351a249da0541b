"""Proposed jobs, their order and reasons; properties over many states."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import BASELINE, CONTROL, Issue, Packages, binding, environment_request, variants_of
from knowngood.domain.issue_selectors import Watch, WatchList, WatchListContent
from knowngood.domain.measuring.planning import ArmKey, KnownAttempts
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, derive_cell
from knowngood.measure.scheduling.priority import (
    VALUES,
    PendingCell,
    ProposedJob,
    SchedulingState,
    Why,
    propose,
    watched_by,
)
from tests.make import HARDWARE, NOON, make_build, make_issue, make_judged

BUILDS = tuple(make_build(f"2.{minor}.0+cu124") for minor in range(1, 8))
ISSUES = (*(make_issue(f"toy-{n}") for n in range(4)), make_issue("toy-4", packages=Packages(("einops==0.8.1",))))
OUTCOMES = {"X": Outcome.MATCH, ".": Outcome.PASS, "?": Outcome.ENV_ERROR, "t": Outcome.TIMEOUT}


def known(rows: Mapping[str, str], *, superseded: Sequence[tuple[str, str]] = ()) -> KnownAttempts:
    """Every arm ran once on each build that has a sign in its issue's row; a blank was never run."""
    outcomes: dict[ArmKey, Sequence[Outcome]] = {}
    cells: dict[tuple[str, str, str], Cell] = {}
    for issue in ISSUES:
        for build, sign in zip(BUILDS, rows.get(issue.id, ""), strict=False):
            if sign == " " or (issue.id, build.id) in superseded:
                continue
            results = {CONTROL: Outcome.PASS, BASELINE: OUTCOMES[sign], "aot_eager": Outcome.PASS}
            for arm, outcome in results.items():
                outcomes[key(issue, build, arm)] = [outcome]
            judged = [make_judged(outcome, arm) for arm, outcome in results.items()]
            cells[issue.id, build.id, HARDWARE] = derive_cell(issue, build, HARDWARE, judged)
    for issue_id, build_id in superseded:
        issue, build = next(i for i in ISSUES if i.id == issue_id), next(b for b in BUILDS if b.id == build_id)
        cells[issue_id, build_id, HARDWARE] = derive_cell(issue, build, HARDWARE, [], superseded=2)
    return KnownAttempts(outcomes, {}, cells)


def key(issue: Issue, build: Build, arm: str) -> ArmKey:
    variant = variants_of(issue, arm)[0]
    bound = binding(issue.arm(arm), variant, environment_request(issue, build))
    return ArmKey(issue.id, build.id, HARDWARE, arm, variant.id, bound)


def scheduling_state(rows: Mapping[str, str], **changes: Any) -> SchedulingState:
    issues = tuple(issue for issue in ISSUES if issue.id in rows)
    return SchedulingState(
        **{"issues": issues, "builds": BUILDS, "hardware": (HARDWARE,), "known": known(rows), "now": NOON, **changes}
    )


def cells_of(one: ProposedJob) -> list[tuple[str, str]]:
    return [(due.issue, one.job.build.id) for due in one.due]


def place_of(found: Sequence[ProposedJob], cell: tuple[str, str]) -> int:
    (place,) = [at for at, one in enumerate(found) if cell in cells_of(one)]
    return place


def due_of(found: Sequence[ProposedJob], issue: str, build: Build) -> PendingCell:
    (due,) = [one for each in found if each.job.build == build for one in each.due if one.issue == issue]
    return due


def test_the_middle_of_what_lies_between_a_pass_and_a_failure_is_worth_most() -> None:
    found = propose(scheduling_state({"toy-0": ".   X.."}))
    assert found[0].job.build == BUILDS[2]
    assert due_of(found, "toy-0", BUILDS[2]).why is Why.BOUNDARY
    assert found[0].reason == "halves (2.1.0, 2.5.0] of toy-0"
    assert due_of(found, "toy-0", BUILDS[1]).why is Why.UNKNOWN
    assert [one.job.build for one in found] == [BUILDS[2], BUILDS[1], BUILDS[3]]


def test_a_changed_repro_a_new_build_and_old_evidence_are_told_apart() -> None:
    state = known({"toy-0": ".....", "toy-1": "?...."}, superseded=[("toy-0", BUILDS[1].id)])
    found = propose(scheduling_state({"toy-0": "", "toy-1": ""}, known=state))
    assert due_of(found, "toy-0", BUILDS[1]).why is Why.CHANGED
    assert due_of(found, "toy-1", BUILDS[0]).why is Why.UNANSWERED
    assert due_of(found, "toy-0", BUILDS[5]).why is Why.NEW_BUILD
    later = propose(scheduling_state({"toy-0": ".....  "}, now=NOON + timedelta(days=200)))
    assert due_of(later, "toy-0", BUILDS[0]).why is Why.STALE
    assert "was measured 199 days ago" in due_of(later, "toy-0", BUILDS[0]).words


def test_old_evidence_gains_with_its_age_up_to_twice() -> None:
    ages = (181, 270, 400, 4000)
    worth = [
        due_of(propose(scheduling_state({"toy-0": "."}, now=NOON + timedelta(days=age))), "toy-0", BUILDS[0]).value
        for age in ages
    ]
    assert worth == sorted(worth)
    assert VALUES[Why.STALE] <= worth[0] < worth[1] < worth[2] == worth[3] == 2 * VALUES[Why.STALE]


def test_a_workaround_nobody_tried_where_its_issue_fails_is_due_without_its_baseline() -> None:
    state = known({"toy-0": "X......"})
    untried = {name: said for name, said in state.outcomes.items() if name.arm != "aot_eager"}
    found = propose(scheduling_state({"toy-0": ""}, known=replace(state, outcomes=untried)))
    (one,) = found
    assert (one.due[0].why, [arm.arm for arm in one.job.arms]) == (Why.UNTRIED, ["aot_eager"])


def test_what_is_worth_more_for_each_minute_comes_first() -> None:
    durations = {("toy-0", arm, "default"): 600.0 for arm in (CONTROL, BASELINE)}
    rows = {"toy-0": ".......", "toy-4": "......."}
    state = known(rows, superseded=[("toy-0", BUILDS[0].id), ("toy-4", BUILDS[0].id)])
    found = propose(scheduling_state(rows, known=state, durations=durations))
    assert [one.due[0].issue for one in found] == ["toy-4", "toy-0"]


def test_what_is_queued_already_is_not_proposed_again() -> None:
    assert propose(scheduling_state({"toy-0": ""}, builds=BUILDS[:1]))
    assert not propose(scheduling_state({"toy-0": ""}, builds=BUILDS[:1], waiting={("toy-0", BUILDS[0].id, HARDWARE)}))


def test_the_second_job_of_an_environment_does_not_pay_for_it_again() -> None:
    rows = {"toy-0": "", "toy-1": ""}
    found = propose(
        scheduling_state(rows, builds=BUILDS[:1], watched={("toy-0", HARDWARE): ("team",)}, environment_s=100.0)
    )
    assert [one.watchers for one in found] == [("team",), ()]
    assert [one.seconds for one in found] == [130.0, 31.0]
    assert found[0].reason == "watched by team: toy-0 was never measured here"


def watch_list(name: str, watch: Watch, hardware: tuple[str, ...] = ()) -> WatchList:
    return WatchList(name, "me", 1, NOON, "me", WatchListContent(watch, hardware))


def test_lists_watch_what_they_name_on_the_classes_they_name() -> None:
    issues = {issue.id: issue for issue in ISSUES}
    lists = [
        watch_list("b", Watch(issues=("toy-0", "gone-1"))),
        watch_list("a", Watch(issues=("toy-0",)), ("cuda-sm_90",)),
        watch_list("c", Watch(components=("No such component",))),
        watch_list("d", Watch(packages=("einops",))),
    ]
    found = watched_by(lists, issues, [HARDWARE, "cuda-sm_90"])
    assert found == {
        ("toy-0", HARDWARE): ("b",),
        ("toy-0", "cuda-sm_90"): ("a", "b"),
        ("toy-4", HARDWARE): ("d",),
        ("toy-4", "cuda-sm_90"): ("d",),
    }


ROWS = st.fixed_dictionaries({issue.id: st.text("X.?t ", max_size=len(BUILDS)) for issue in ISSUES})
WATCHED = st.dictionaries(st.sampled_from([issue.id for issue in ISSUES]), st.sampled_from([("a",), ("a", "b")]))
DURATIONS = st.dictionaries(
    st.tuples(st.sampled_from([issue.id for issue in ISSUES]), st.just(BASELINE), st.just("default")),
    st.sampled_from([0.5, 8.0, 90.0]),
)


@st.composite
def scenes(draw: st.DrawFn) -> SchedulingState:
    watched = {(issue, HARDWARE): lists for issue, lists in draw(WATCHED).items()}
    days = draw(st.sampled_from([0, 100, 200, 500]))
    return scheduling_state(
        draw(ROWS),
        watched=watched,
        durations=draw(DURATIONS),
        now=NOON + timedelta(days=days),
        at_once={HARDWARE: draw(st.integers(1, 4))},
        environment_s=draw(st.sampled_from([0.2, 20.0, 300.0])),
    )


@given(given_scene=scenes(), data=st.data())
def test_the_same_scene_has_the_same_order_however_it_is_told(
    given_scene: SchedulingState, data: st.DataObject
) -> None:
    shuffled = replace(given_scene, issues=tuple(data.draw(st.permutations(given_scene.issues))))
    assert propose(given_scene) == propose(given_scene)
    assert [(one.job.build, one.job.request, one.due) for one in propose(shuffled)] == [
        (one.job.build, one.job.request, one.due) for one in propose(given_scene)
    ]


@given(given_scene=scenes(), minutes=st.sampled_from([1, 5, 30, 200]))
def test_the_budget_is_kept_unless_the_first_job_alone_exceeds_it(given_scene: SchedulingState, minutes: int) -> None:
    whole, part = propose(given_scene), propose(given_scene, minutes * 60.0)
    assert bool(part) == bool(whole)
    assert sum(one.seconds for one in part) <= minutes * 60 or len(part) == 1
    assert [one.job for one in part[:1]] == [one.job for one in whole[:1]]
    places = [[one.job for one in whole].index(one.job) for one in part]
    assert places == sorted(places), "what fits keeps its order"


@given(given_scene=scenes())
def test_nothing_is_proposed_that_has_a_fresh_answer(given_scene: SchedulingState) -> None:
    for one in propose(given_scene):
        for arm in one.job.arms:
            cell = given_scene.known.cells.get((arm.issue, one.job.build.id, HARDWARE))
            is_fresh = (
                cell is not None
                and cell.measured_at is not None
                and given_scene.now - cell.measured_at < timedelta(180)
            )
            asked = arm.arm in {CONTROL, BASELINE}
            assert not (is_fresh and asked and cell is not None and cell.verdict in CONCLUSIVE)


@given(given_scene=scenes())
def test_every_cell_that_lacks_something_is_proposed_once(given_scene: SchedulingState) -> None:
    cells = [cell for one in propose(given_scene) for cell in cells_of(one)]
    assert len(cells) == len(set(cells))
    never = {
        (issue.id, build.id)
        for issue in given_scene.issues
        for build in BUILDS
        if (issue.id, build.id, HARDWARE) not in given_scene.known.cells
    }
    assert never <= set(cells)


@given(given_scene=scenes(), issue=st.sampled_from([issue.id for issue in ISSUES]), build=st.sampled_from(BUILDS))
def test_a_cell_that_comes_to_be_watched_never_moves_back(
    given_scene: SchedulingState, issue: str, build: Build
) -> None:
    """One cell: the scene has that issue due on that build alone."""
    only = {cell for one in propose(given_scene) for cell in cells_of(one) if cell[0] == issue and cell[1] != build.id}
    waiting = {(one, of, HARDWARE) for one, of in only}
    before = replace(
        given_scene, waiting=waiting, watched={k: v for k, v in given_scene.watched.items() if k[0] != issue}
    )
    after = replace(before, watched={**before.watched, (issue, HARDWARE): ("new",)})
    first, second = propose(before), propose(after)
    if any((issue, build.id) in cells_of(one) for one in first):
        assert place_of(second, (issue, build.id)) <= place_of(first, (issue, build.id))


@given(given_scene=scenes(), issues=st.sets(st.sampled_from([issue.id for issue in ISSUES]), min_size=1))
def test_the_best_place_of_a_new_list_is_no_worse_and_all_that_is_watched_precedes_the_rest(
    given_scene: SchedulingState, issues: set[str]
) -> None:
    before = replace(given_scene, watched={})
    after = replace(before, watched={(issue, HARDWARE): ("new",) for issue in issues})
    first, second = propose(before), propose(after)
    places = [
        [at for at, one in enumerate(found) if any(due.issue in issues for due in one.due)] for found in (first, second)
    ]
    if places[0]:
        assert places[1][0] <= places[0][0]
    flags = [bool(one.watchers) for one in second]
    assert flags == sorted(flags, reverse=True)


@pytest.mark.parametrize("why", Why)
def test_every_reason_is_worth_something(why: Why) -> None:
    assert VALUES[why] > 0
