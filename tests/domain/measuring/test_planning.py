from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import (
    BASELINE,
    CONTROL,
    Device,
    Issue,
    Packages,
    Requires,
    Variant,
    binding,
    environment_request,
    variants_of,
)
from knowngood.domain.measuring.planning import (
    GUESS_S,
    ArmKey,
    KnownAttempts,
    PlanRequest,
    Sample,
    plan_jobs,
    price_of,
    recheck_cells,
    recheck_jobs,
    twins_of,
)
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Cell, Verdict, derive_cell
from tests.make import HARDWARE, NOON, make_build, make_issue, make_judged

BUILDS = [make_build("2.6.0+cu124"), make_build("2.7.0+cu126"), make_build("2.7.1+cu126"), make_build("2.8.0+cu128")]
ISSUE = make_issue()
ONCE = PlanRequest()


def key(issue: Issue, build: Build, arm: str, variant: Variant | None = None) -> ArmKey:
    variant = variant or variants_of(issue, arm)[0]
    bound = binding(issue.arm(arm), variant, environment_request(issue, build))
    return ArmKey(issue.id, build.id, HARDWARE, arm, variant.id, bound)


def known(
    outcomes: Mapping[Build | str, Sequence[Outcome]], issue: Issue = ISSUE, builds: Sequence[Build] = BUILDS
) -> KnownAttempts:
    """Every arm of `issue` ran on each build named by its torch, the baseline with the outcomes given."""
    found, cells, ordinals = {}, {}, {}
    for build in builds:
        if build.torch not in outcomes:
            continue
        results = {CONTROL: [Outcome.PASS], BASELINE: list(outcomes[build.torch]), "aot_eager": [Outcome.PASS]}
        for arm, seen in results.items():
            found[key(issue, build, arm)] = seen
            ordinals[key(issue, build, arm)] = len(seen)
        judged = [make_judged(o, arm, n=n) for arm, seen in results.items() for n, o in enumerate(seen)]
        cells[issue.id, build.id, HARDWARE] = derive_cell(issue, build, HARDWARE, judged)
    return KnownAttempts(found, ordinals, cells)


def planned(state: KnownAttempts, wanted: PlanRequest = ONCE, issue: Issue = ISSUE) -> Counter[tuple[str, str]]:
    jobs = plan_jobs([issue], BUILDS, [HARDWARE], state, wanted)
    return Counter((job.build.torch, arm.arm) for job in jobs for arm in job.arms)


def test_with_nothing_known_every_arm_is_planned_once_controls_first() -> None:
    jobs = plan_jobs([ISSUE], BUILDS[:1], [HARDWARE], KnownAttempts(), PlanRequest())
    assert [arm.arm for arm in jobs[0].arms] == [CONTROL, BASELINE, "aot_eager"]


def test_what_is_known_is_not_run_again() -> None:
    assert not planned(known({build.torch: [Outcome.PASS] for build in BUILDS}))


@pytest.mark.parametrize("outcome", [Outcome.ENV_ERROR, Outcome.HARNESS_ERROR, Outcome.CANCELLED])
def test_what_said_nothing_is_run_again_under_a_new_ordinal(outcome: Outcome) -> None:
    state = known({"2.6.0+cu124": [outcome]})
    jobs = plan_jobs([ISSUE], BUILDS[:1], [HARDWARE], state, PlanRequest())
    assert [(arm.arm, arm.ordinal) for arm in jobs[0].arms] == [(BASELINE, 2)]


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.CRASH, Outcome.OTHER_FAILURE, Outcome.NOT_APPLICABLE])
def test_an_answer_is_an_answer_also_when_it_is_not_the_issue(outcome: Outcome) -> None:
    assert not planned(known({build.torch: [outcome] for build in BUILDS}))


def test_a_changed_arm_is_run_again_and_only_that_arm() -> None:
    arms = tuple(
        arm if arm.id != BASELINE else type(arm)(arm.id, arm.exercises, code="baseline-2") for arm in ISSUE.arms
    )
    state = known({build.torch: [Outcome.PASS] for build in BUILDS})
    assert set(planned(state, issue=make_issue(arms=arms))) == {(build.torch, BASELINE) for build in BUILDS}


def test_mended_words_and_signature_cost_no_run() -> None:
    mended = make_issue(summary="Better words.", title="A better title", timeout_s=90.0)
    assert not planned(known({build.torch: [Outcome.PASS] for build in BUILDS}), issue=mended)


def test_force_runs_again_whatever_is_known() -> None:
    state = known({build.torch: [Outcome.PASS] for build in BUILDS})
    assert planned(state, PlanRequest(repeat=2, force=True))["2.6.0+cu124", BASELINE] == 2


def test_repeat_tops_up_to_the_number_asked_for() -> None:
    state = known({build.torch: [Outcome.PASS] for build in BUILDS})
    assert planned(state, PlanRequest(repeat=3))["2.7.0+cu126", BASELINE] == 2


def test_workarounds_may_wait_until_their_issue_is_seen_on_that_build() -> None:
    waiting = PlanRequest(where_affected=True)
    assert {arm for _, arm in planned(KnownAttempts(), waiting)} == {CONTROL, BASELINE}
    seen = known({"2.6.0+cu124": [Outcome.MATCH], "2.7.0+cu126": [Outcome.PASS], "2.7.1+cu126": [Outcome.TIMEOUT]})
    workarounds = [name for name in seen.outcomes if name.arm == "aot_eager"]
    without = KnownAttempts({name: v for name, v in seen.outcomes.items() if name not in workarounds}, {}, seen.cells)
    assert [build for build, arm in planned(without, waiting) if arm == "aot_eager"] == ["2.6.0+cu124"]


TWO_SIZES = make_issue(variants=(Variant("small", ""), Variant("large", "")), workarounds=("aot_eager", "nopython"))

P, M, F, T = Outcome.PASS, Outcome.MATCH, Outcome.OTHER_FAILURE, Outcome.TIMEOUT
LOST, NONE_SUCH = Outcome.ENV_ERROR, Outcome.NOT_APPLICABLE
Ran = Mapping[tuple[str, str], Sequence[Outcome]]  # by arm and variant


def measured(ran: Mapping[Build, Ran], issue: Issue = TWO_SIZES) -> KnownAttempts:
    """Knowledge of builds that each ran just that; a control that is not named passed once with each variant."""
    found, ordinals, cells = {}, {}, {}
    for build, told in ran.items():
        controls = {(CONTROL, variant.id): [P] for variant in variants_of(issue, CONTROL)}
        everything = {**controls, **told} if told else {}
        for (arm, variant), seen in everything.items():
            one = next(one for one in variants_of(issue, arm) if one.id == variant)
            found[key(issue, build, arm, one)] = seen
            ordinals[key(issue, build, arm, one)] = len(seen)
        judged = [make_judged(o, arm, v, n) for (arm, v), seen in everything.items() for n, o in enumerate(seen)]
        cells[issue.id, build.id, HARDWARE] = derive_cell(issue, build, HARDWARE, judged)
    return KnownAttempts(found, ordinals, cells)


BASE_SMALL, BASE_LARGE = (BASELINE, "small"), (BASELINE, "large")
CURE_SMALL, CURE_LARGE, OTHER_LARGE = ("aot_eager", "small"), ("aot_eager", "large"), ("nopython", "large")
OTHER_SMALL = ("nopython", "small")
CURED = {CURE_SMALL: [P] * 2, CURE_LARGE: [P] * 2, OTHER_SMALL: [P] * 2, OTHER_LARGE: [P] * 2}
TWICE: Ran = {BASE_SMALL: [P] * 2, BASE_LARGE: [P] * 2}


@pytest.mark.parametrize(
    ("ran", "asked"),
    [
        pytest.param({}, {}, id="what was never measured is not asked"),
        pytest.param({BASE_SMALL: [LOST], BASE_LARGE: [LOST]}, {}, id="nor what gave no answer"),
        pytest.param({BASE_SMALL: [P], BASE_LARGE: [T]}, {}, id="nor a cell that cannot say"),
        pytest.param({BASE_SMALL: [NONE_SUCH], BASE_LARGE: [NONE_SUCH]}, {}, id="nor one that does not apply"),
        pytest.param({BASE_SMALL: [P], BASE_LARGE: [P]}, {BASE_SMALL: 1, BASE_LARGE: 1}, id="a pass is asked twice"),
        pytest.param(TWICE, {}, id="and no workaround where there is nothing to cure"),
        pytest.param({BASE_SMALL: [P] * 2, BASE_LARGE: [P, LOST]}, {BASE_LARGE: 1}, id="infrastructure is no attempt"),
        pytest.param({BASE_SMALL: [F], BASE_LARGE: [F] * 2}, {BASE_SMALL: 1}, id="another failure is asked twice"),
        pytest.param({**TWICE, BASE_LARGE: [NONE_SUCH]}, {}, id="a variant that does not apply is not asked again"),
        pytest.param({**CURED, BASE_SMALL: [M] * 2}, {}, id="nor one that was never measured beside one that fails"),
        pytest.param(
            {**TWICE, BASE_LARGE: [M] * 2, CURE_LARGE: [P]},
            {CURE_LARGE: 1, OTHER_LARGE: 2},
            id="workarounds are asked twice with each variant that fails, tried or not, and with no other",
        ),
        pytest.param(
            {**TWICE, BASE_LARGE: [M] * 2, CURE_LARGE: [M], OTHER_LARGE: [LOST]},
            {CURE_LARGE: 1, OTHER_LARGE: 2},
            id="so are those that fail, or gave no answer",
        ),
        pytest.param(
            {**TWICE, BASE_LARGE: [M] * 2, CURE_LARGE: [NONE_SUCH], OTHER_LARGE: [P, P]},
            {},
            id="but not one that said there is nothing to try",
        ),
        pytest.param({**TWICE, **CURED, BASE_LARGE: [M, P]}, {BASE_LARGE: 8}, id="a flaky variant is asked ten times"),
        pytest.param(
            {**TWICE, **CURED, BASE_LARGE: [M] * 2, CURE_LARGE: [P, M], OTHER_LARGE: [P, P, T]},
            {CURE_LARGE: 8, OTHER_LARGE: 7},
            id="and so is a workaround that passed and did not",
        ),
        pytest.param(
            {**TWICE, **CURED, BASE_LARGE: [M] * 2, CURE_LARGE: [M, F]}, {}, id="failing in two ways is not mixed"
        ),
        pytest.param(
            {**TWICE, BASE_LARGE: [M] * 10 + [P], CURE_LARGE: [P], OTHER_LARGE: [P] * 2},
            {CURE_LARGE: 1},
            id="workarounds of a flaky variant are asked twice",
        ),
        pytest.param(
            {**TWICE, (CONTROL, "large"): []}, {(CONTROL, "large"): 1}, id="a control another variant's stood in for"
        ),
        pytest.param({**TWICE, (CONTROL, "large"): [F]}, {}, id="a control that fails is not asked again"),
    ],
)
def test_confirming_asks_for_two_attempts_of_what_has_an_answer_and_ten_where_it_is_mixed(
    ran: Ran, asked: Mapping[tuple[str, str], int]
) -> None:
    state = measured({BUILDS[0]: ran})
    jobs = plan_jobs([TWO_SIZES], BUILDS, [HARDWARE], state, PlanRequest(confirm=True))
    assert Counter((arm.arm, arm.variant) for job in jobs for arm in job.arms) == asked
    same = {where: next((one for one in ran.get(where, ()) if one is not LOST), P) for where in asked}
    answered = {where: [*ran.get(where, ()), *[same[where]] * n] for where, n in asked.items()}
    assert not planned(measured({BUILDS[0]: {**ran, **answered}}), PlanRequest(confirm=True), TWO_SIZES), (
        "then it is done"
    )


SETTLED = {".": [P] * 2, "X": [M] * 2, "~": [M, P] * 5, "≠": [F] * 2, "?": [T] * 2, " ": []}


@pytest.mark.parametrize(
    ("small", "large", "thrice"),
    [
        pytest.param("....", "....", "", id="no change"),
        pytest.param(
            ".XXX", "....", "small 0, large 0, small 1", id="a pass rests on every variant, a failure on its own"
        ),
        pytest.param(
            ".XX.", ".XX.", "small 0, large 0, small 1, large 1, small 2, large 2, small 3, large 3", id="both"
        ),
        pytest.param(". X.", "....", "small 0, large 0, small 2, small 3, large 3", id="what nobody measured between"),
        pytest.param(".?X ", ".   ", "small 0, large 0, small 2", id="what has no answer between them"),
        pytest.param(".≠XX", ".   ", "small 0, large 0, small 2", id="what fails differently between them"),
        pytest.param("X.XX", "XXXX", "small 0, small 1, small 2", id="a variant changes and its cell does not"),
        pytest.param(".~~~", ".   ", "small 0, small 0, small 0, large 0", id="flaky fails too: five passes"),
        pytest.param("≠≠..", "≠≠..", "", id="failing differently is neither side of a change"),
    ],
)
def test_confirming_asks_for_three_attempts_on_both_sides_of_a_change(small: str, large: str, thrice: str) -> None:
    rows = zip(BUILDS, small, large, strict=True)
    ran = {build: {**CURED, BASE_SMALL: SETTLED[one], BASE_LARGE: SETTLED[other]} for build, one, other in rows}
    jobs = plan_jobs([TWO_SIZES], BUILDS, [HARDWARE], measured(ran), PlanRequest(confirm=True))
    asked = [(arm, job.build) for job in jobs for arm in job.arms if arm.arm == BASELINE]
    assert ", ".join(f"{arm.variant} {BUILDS.index(build)}" for arm, build in asked) == thrice


def test_changes_are_looked_for_along_the_whole_line_whichever_builds_are_asked() -> None:
    state = known({"2.6.0+cu124": [P] * 2, "2.7.0+cu126": [M] * 2})
    jobs = plan_jobs([ISSUE], BUILDS[1:2], [HARDWARE], state, PlanRequest(confirm=True), line=BUILDS)
    assert [(job.build, [arm.arm for arm in job.arms]) for job in jobs] == [(BUILDS[1], [BASELINE, "aot_eager"])]


def test_a_change_is_looked_for_on_one_hardware_class() -> None:
    state = known({"2.6.0+cu124": [P] * 2, "2.7.0+cu126": [P] * 2})
    cell = Cell(ISSUE.id, BUILDS[1].id, "cpu-aarch64", Verdict.AFFECTED, quoted("because"))
    elsewhere = KnownAttempts(
        state.outcomes, state.ordinals, {**state.cells, (cell.issue, cell.build, cell.hardware): cell}
    )
    assert not planned(elsewhere, PlanRequest(confirm=True))


def test_a_change_is_looked_for_among_releases_of_the_same_python() -> None:
    twins = [make_build(build.torch, python="3.12") for build in BUILDS]
    broken: dict[Build | str, list[Outcome]] = {build.torch: [P if build is BUILDS[0] else M] * 2 for build in BUILDS}
    state, plain = known(broken, builds=twins), known({build.torch: [P] * 2 for build in BUILDS})
    both = KnownAttempts(
        {**state.outcomes, **plain.outcomes}, {**state.ordinals, **plain.ordinals}, {**state.cells, **plain.cells}
    )
    jobs = plan_jobs([ISSUE], [*BUILDS, *twins], [HARDWARE], both, PlanRequest(confirm=True))
    assert [job.build for job in jobs if any(arm.arm == BASELINE for arm in job.arms)] == twins[:2]


def test_confirming_measures_a_stale_answer_anew_and_asks_for_at_least_what_repeat_says() -> None:
    state = known({BUILDS[0].torch: [P] * 2})
    assert not planned(state, PlanRequest(confirm=True, now=NOON + timedelta(days=179)))
    late = planned(state, PlanRequest(confirm=True, now=NOON + timedelta(days=181)))
    assert late == {(BUILDS[0].torch, CONTROL): 1, (BUILDS[0].torch, BASELINE): 1}
    assert planned(state, PlanRequest(confirm=True, repeat=5))[BUILDS[0].torch, BASELINE] == 3


def test_a_stale_cell_is_measured_anew() -> None:
    state = known({build.torch: [Outcome.PASS] for build in BUILDS})
    assert not planned(state, PlanRequest(now=NOON + timedelta(days=179)))
    assert planned(state, PlanRequest(now=NOON + timedelta(days=181)))["2.6.0+cu124", BASELINE] == 1


def test_an_issue_that_does_not_apply_plans_nothing() -> None:
    assert not planned(KnownAttempts(), issue=make_issue(requires=Requires(device=Device.CUDA)))


def test_a_workaround_for_newer_torch_is_not_planned_on_older() -> None:
    arms = tuple(
        arm if arm.id != "aot_eager" else type(arm)(arm.id, arm.exercises, arm.code, applies_to=">=2.8")
        for arm in ISSUE.arms
    )
    found = planned(KnownAttempts(), issue=make_issue(arms=arms))
    assert [torch for torch, arm in found if arm == "aot_eager"] == ["2.8.0+cu128"]


def test_issues_share_an_environment_unless_they_ask_for_more() -> None:
    einops = make_issue("toy-3", packages=Packages(("einops==0.8.1",)))
    jobs = plan_jobs([ISSUE, make_issue("toy-2"), einops], BUILDS[:1], [HARDWARE], KnownAttempts(), PlanRequest())
    assert [{arm.issue for arm in job.arms} for job in jobs] == [{"toy-1", "toy-2"}, {"toy-3"}]


def test_packages_follow_the_release_of_torch() -> None:
    issue = make_issue(
        packages=Packages(("torch_xla=={torch}",), {"2.7": ("deepmd-kit==3.1.0",)}, no_deps=("deepmd-kit",))
    )
    assert environment_request(issue, BUILDS[0]).requirements == ("torch_xla==2.6.0",)
    assert environment_request(issue, BUILDS[1]).no_deps == ("deepmd-kit==3.1.0",)


def test_a_price_counts_what_was_timed_and_says_what_was_guessed() -> None:
    jobs = plan_jobs([ISSUE], BUILDS[:1], [HARDWARE], KnownAttempts(), PlanRequest())
    one, two, on_gpu = (
        price_of([replace(jobs[0], hardware=class_)], {(ISSUE.id, BASELINE, "default"): 100.0}, at_once=at_once)
        for class_, at_once in ((HARDWARE, {}), (HARDWARE, {HARDWARE: 2}), ("cuda-sm_90", {HARDWARE: 2}))
    )
    assert (one.cells, one.arms, one.jobs, one.guessed) == (1, 3, 1, 2)
    assert on_gpu.seconds == one.seconds > two.seconds > 50


def test_an_environment_is_paid_for_once_and_not_where_it_is_ready() -> None:
    (job,) = plan_jobs([ISSUE], BUILDS[:1], [HARDWARE], KnownAttempts(), PlanRequest())
    both = [job, replace(job, hardware="cpu-aarch64")]
    price = price_of(both, {}, at_once={}, environment_s=1000.0)
    assert (price.jobs, price.environments, price.cells, price.seconds) == (2, 1, 2, 1000.0 + 6 * GUESS_S)
    assert price_of(both, {}, at_once={}, environment_s=1000.0, ready=1).seconds == 6 * GUESS_S


def answered(verdicts: Mapping[tuple[str, str], Verdict]) -> KnownAttempts:
    """Cells by (issue, torch), as far as drawing among them needs."""
    ids = {build.torch: build.id for build in BUILDS}
    cells = {
        (i, ids[t], HARDWARE): Cell(i, ids[t], HARDWARE, verdict, quoted("because"))
        for (i, t), verdict in verdicts.items()
    }
    return KnownAttempts(cells=cells)


MANY = {(f"toy-{n}", build.torch): Verdict.AFFECTED for n in range(30) for build in BUILDS}
MANY_ISSUES = [make_issue(f"toy-{n}") for n in range(30)]


def drawn(state: KnownAttempts, cells: int, seed: str, builds: Sequence[Build] = BUILDS) -> list[tuple[str, str]]:
    chosen = recheck_cells(MANY_ISSUES, builds, [HARDWARE], state, Sample(cells, seed))
    return [(cell.issue, cell.build) for cell in chosen]


def test_cells_are_drawn_by_a_seed_that_draws_the_same_again() -> None:
    state = answered(MANY)
    first = drawn(state, 20, "a")
    assert len(set(first)) == 20
    assert drawn(state, 20, "a") == first
    assert set(drawn(state, 20, "b")) != set(first)
    assert drawn(state, 40, "a")[:20] == first, "a larger sample holds the smaller"
    assert len(drawn(state, 1000, "a")) == len(MANY)


def test_only_steady_answers_of_what_is_asked_for_are_drawn() -> None:
    state = answered({(f"toy-{n}", BUILDS[0].torch): verdict for n, verdict in enumerate(Verdict)})
    verdicts = {state.cells[issue, build, HARDWARE].verdict for issue, build in drawn(state, 100, "a")}
    assert verdicts == {Verdict.AFFECTED, Verdict.NOT_AFFECTED, Verdict.DIFFERENT_FAILURE}
    assert drawn(answered(MANY), 100, "a", BUILDS[:1]) == drawn(answered(MANY), 1000, "a", BUILDS[:1])
    assert recheck_cells([], BUILDS, [HARDWARE], answered(MANY), Sample(9, "a")) == ()
    assert recheck_cells(MANY_ISSUES, BUILDS, ["cuda-sm_90"], answered(MANY), Sample(9, "a")) == ()


def test_a_recheck_asks_control_and_baseline_once_more_with_every_variant_and_no_workaround() -> None:
    issue = make_issue(variants=(Variant("n1", ""), Variant("n2", "", arms=(BASELINE,))))
    state = known({"2.6.0+cu124": [Outcome.MATCH, Outcome.MATCH]}, issue)
    cell = Cell(issue.id, BUILDS[0].id, HARDWARE, Verdict.AFFECTED, quoted("because"))
    (job,) = recheck_jobs([issue], twins_of(BUILDS, ""), [cell], state)
    assert [(arm.arm, arm.variant, arm.ordinal) for arm in job.arms] == [
        (CONTROL, "n1", 2),
        (BASELINE, "n1", 3),
        (BASELINE, "n2", 1),
    ]


def test_a_recheck_shares_environments_and_keeps_the_order_of_builds() -> None:
    issues = [make_issue("toy-1"), make_issue("toy-2"), make_issue("toy-3", packages=Packages(("einops==0.8",)))]
    cells = [
        Cell(i.id, b.id, HARDWARE, Verdict.AFFECTED, quoted("because")) for i in issues for b in reversed(BUILDS[:2])
    ]
    jobs = recheck_jobs(issues, twins_of(BUILDS, ""), cells, KnownAttempts())
    assert [(job.build, [arm.issue for arm in job.arms[::2]]) for job in jobs] == [
        (BUILDS[0], ["toy-1", "toy-2"]),
        (BUILDS[0], ["toy-3"]),
        (BUILDS[1], ["toy-1", "toy-2"]),
        (BUILDS[1], ["toy-3"]),
    ]


def on_python(build: Build, python: str, **changes: object) -> Build:
    return replace(build, id=f"{build.id}~py{python.replace('.', '')}", python=python, **changes)  # type: ignore[arg-type]


def test_what_the_default_python_said_is_asked_on_another_one() -> None:
    """Of builds that exist with it and the same Triton, and of rows that name no Python; what has an answer stays."""
    twin, bare = on_python(BUILDS[0], "3.12"), on_python(BUILDS[1], "3.12", triton=None)
    builds = (*BUILDS, twin, bare)
    named = make_issue("toy-0", requires=Requires(python=">=3.11"))
    issues = [named, *MANY_ISSUES[1:]]
    twins = twins_of(builds, "3.12")
    cells = recheck_cells(issues, builds, [HARDWARE], answered(MANY), Sample(1000, "a", "3.12"))
    assert twins == {BUILDS[0].id: twin}
    assert {cell.build for cell in cells} == {BUILDS[0].id}
    assert {cell.issue for cell in cells} == {issue.id for issue in MANY_ISSUES[1:]}
    (job,) = recheck_jobs(issues, twins, cells[:2], KnownAttempts())
    assert (job.build, len(job.arms)) == (twin, 4)
    settled = {
        ArmKey(arm.issue, twin.id, HARDWARE, arm.arm, arm.variant, arm.binding): [Outcome.PASS] for arm in job.arms[:2]
    }
    (left,) = recheck_jobs(issues, twins, cells[:2], KnownAttempts(outcomes=settled))
    assert left.arms == job.arms[2:]


def test_a_row_that_names_no_device_is_measured_on_every_class() -> None:
    issue = make_issue(requires=Requires(device=Device.ANY))
    jobs = plan_jobs([issue], BUILDS[:1], [HARDWARE, "cuda-sm_90"], KnownAttempts(), PlanRequest())
    assert [job.hardware for job in jobs] == [HARDWARE, "cuda-sm_90"]
    assert jobs[0].arms == jobs[1].arms  # the same bindings: what was measured on the CPU stays what it is


def test_issues_that_edit_their_packages_share_no_job() -> None:
    """One would find what the other edited, and the environment lives as long as its job."""
    editing = [replace(make_issue(), id=f"edits-{n}", packages=Packages(mutates=True)) for n in (1, 2)]
    plain = [replace(make_issue(), id=f"plain-{n}") for n in (1, 2)]
    jobs = plan_jobs([*editing, *plain], BUILDS[:1], [HARDWARE], KnownAttempts(), PlanRequest())
    assert sorted(sorted({arm.issue for arm in job.arms}) for job in jobs) == [
        ["edits-1"],
        ["edits-2"],
        ["plain-1", "plain-2"],
    ]


@pytest.mark.parametrize(
    ("outcomes", "again"),
    [
        pytest.param([[M], [P], [M]], {(1, BASELINE): 2}, id="a pass between two failures is asked up to three times"),
        pytest.param([[P], [M], [P]], {(1, BASELINE): 2}, id="so is a failure between two passes"),
        pytest.param([[P], [M, M], [P]], {(1, BASELINE): 1}, id="what was asked twice is asked once more"),
        pytest.param([[P], [M] * 3, [P]], {}, id="and three times is enough"),
        pytest.param([[M], [P], [P]], {}, id="a change is no doubt"),
        pytest.param([[P], [F], [P]], {}, id="another failure is no answer to this"),
        pytest.param([[M], None, [P], None], {}, id="an end has one neighbour"),
        pytest.param(
            [[M], None, [P], [M]],
            {(2, BASELINE): 2, (1, CONTROL): 1, (1, BASELINE): 1, (1, "aot_eager"): 1},
            id="neighbours are those that were measured",
        ),
        pytest.param(
            [[M, P], [M]],
            {(0, BASELINE): 1, (0, "aot_eager"): 2, (1, BASELINE): 2, (1, "aot_eager"): 2},
            id="of a flaky issue everything but the control is asked three times",
        ),
        pytest.param(
            [[M] * 4 + [P] * 6, [P], [M]],
            {(0, "aot_eager"): 5, (1, BASELINE): 5, (1, "aot_eager"): 5, (2, BASELINE): 2, (2, "aot_eager"): 5},
            id="what passes is asked as often as the lowest rate demands",
        ),
    ],
)
def test_a_first_answer_in_doubt_is_repeated(
    outcomes: list[list[Outcome] | None], again: Mapping[tuple[int, str], int]
) -> None:
    builds = BUILDS[: len(outcomes)]
    state = known({build.torch: seen for build, seen in zip(builds, outcomes, strict=True) if seen is not None})
    if len(outcomes) == 4 and outcomes[3] is None:
        builds = [build for build, seen in zip(builds, outcomes, strict=True) if seen is not None]
    jobs = plan_jobs([ISSUE], builds, [HARDWARE], state, ONCE, line=BUILDS)
    found = Counter((BUILDS.index(job.build), arm.arm) for job in jobs for arm in job.arms)
    assert found == Counter(again)


def test_a_row_that_depends_on_the_vector_isa_is_asked_with_each_in_place_of_the_class() -> None:
    depending = make_issue("toy-2", requires=Requires(vector_isas=("avx2", "avx512")))
    old = make_build("2.5.1+cu124")

    def asked(*hardware: str) -> set[tuple[str, str, str]]:
        jobs = plan_jobs([ISSUE, depending], [old, BUILDS[0]], hardware, KnownAttempts(), ONCE)
        return {(arm.issue, job.build.torch, job.hardware) for job in jobs for arm in job.arms}

    of_isas = {(depending.id, "2.6.0+cu124", f"{HARDWARE}-{isa}") for isa in ("avx2", "avx512")}
    # Before torch 2.6 nothing chooses the ISA that Inductor takes.
    as_ever = {(ISSUE.id, "2.5.1+cu124", HARDWARE), (ISSUE.id, "2.6.0+cu124", HARDWARE)}
    assert asked(HARDWARE) == {*as_ever, (depending.id, "2.5.1+cu124", HARDWARE), *of_isas}
    assert asked(HARDWARE, f"{HARDWARE}-avx2") == asked(HARDWARE)
    assert asked(f"{HARDWARE}-avx512") == {one for one in of_isas if one[2].endswith("avx512")}
