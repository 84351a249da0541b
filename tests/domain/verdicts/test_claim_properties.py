"""The ten rules of what is claimed, each over stores by chance.

KNOWNGOOD_EXAMPLES says how many stores each rule is tried on (12 unless set; `make soak` takes 500).
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from packaging.version import Version

from knowngood.domain.builds.architectures import WheelCode
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.packages import concerns
from knowngood.domain.issue import (
    BASELINE,
    CONTROL,
    CPU_PATH,
    Device,
    Issue,
    Requires,
    Severity,
    SignatureKind,
    variants_of,
)
from knowngood.domain.issue_selectors import Watch
from knowngood.domain.message import Message, english, quoted
from knowngood.domain.verdicts.inference import DEVICE_RULE, PYTHON_RULE, own_reason
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import complete, rows_of, unfolded
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Assurance, Cell, Judged, Verdict, derive_cell
from knowngood.environments.resolve import ResolvedBuild
from knowngood.gate.decision import Decision, Ruling, decide
from knowngood.gate.policy import Accept, Effect, Policy, RemedyFilter
from knowngood.gate.question import GateQuestion
from knowngood.move.compare.comparison import compare
from knowngood.move.pair import Group
from knowngood.move.upgrade.candidates import Candidate, Rating, Tally, UpgradeQuestion
from knowngood.move.upgrade.constraints import Constraints
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from tests import oracle
from tests.make import NOON, make_issue
from tests.random_stores import (
    BACKGROUNDS,
    BUILDS,
    CLASSES,
    CPU,
    FAMILIES,
    GPU,
    ISSUES,
    PATTERNS,
    PLACES,
    PYTHONS,
    Background,
    Family,
    Place,
    asked,
    attempts_of,
    cell_of,
    patterns_of,
    random_patterns,
    store_of,
    without,
)
from tests.soak.questions import Asked, a_question

pytestmark = pytest.mark.timeout(3600)  # of the long form


patterns = st.integers(0, PATTERNS - 1)
families = st.builds(
    Family,
    st.sampled_from(list(ISSUES)),
    st.sampled_from(FAMILIES),
    st.sampled_from(CLASSES),
    patterns,
    st.frozensets(st.sampled_from(PYTHONS), min_size=1),
)
seeds = st.integers(0, 2**32)
few = st.builds(
    patterns_of, st.lists(families, max_size=40), st.dictionaries(st.sampled_from(PLACES), patterns, max_size=4)
)
crowded = st.builds(random_patterns, st.builds(random.Random, seeds), st.sampled_from([0.3, 0.9]))
attempted = st.one_of(few, crowded)
backgrounds = st.sampled_from((BACKGROUNDS[0], *BACKGROUNDS))
stores = st.builds(store_of, attempted, backgrounds)
kept_up = st.builds(
    lambda seed, background: store_of(random_patterns(random.Random(seed), 0.95, is_steady=True), background),  # noqa: S311
    seeds,
    backgrounds,
)
"""Stores in which enough is measured for something to be recommended."""

rows = st.lists(st.sampled_from(list(ISSUES)), min_size=1, unique=True)
columns = st.lists(st.sampled_from(list(BUILDS)), min_size=1, unique=True)
classes = st.lists(st.sampled_from(CLASSES), min_size=1, unique=True)

policies = st.builds(
    Policy,
    affected=st.sampled_from(Effect),
    flaky=st.sampled_from(Effect),
    different_failure=st.sampled_from(Effect),
    bigger=st.sampled_from(Effect),
    more_work=st.sampled_from(Effect),
    slower=st.sampled_from(Effect),
    unknown=st.sampled_from([Effect.INSUFFICIENT, Effect.BLOCK]),
    minimum=st.sampled_from(Severity),
    silent_always=st.booleans(),
    stale=st.sampled_from(Effect),
    accept=st.sampled_from(Accept),
)

INFERRED = store_of({("cpu-2", "torch-2.6.0+cu124", CPU): 9, ("any-1", "torch-2.6.0+cu124", CPU): 9})
"""A store in which both rules infer something: properties of what is inferred are tried on it too."""


def claims_of(known: Known) -> list[tuple[Issue, Build, Cell]]:
    """Of every row that is asked about, on every build and class."""
    return [
        (issue, build, known.cell(issue, build, class_))
        for issue, build, class_ in product(asked(known), BUILDS.values(), CLASSES)
    ]


def told(known: Known) -> dict[Place, tuple[Verdict, Assurance]]:
    return {(cell.issue, cell.build, cell.hardware): (cell.verdict, cell.assurance) for _, _, cell in claims_of(known)}


def again(known: Known) -> Known:
    """The same store, of which nothing was asked yet."""
    return replace(known)


# -- 1. a function of the store ----------------------------------------------------------------------------------------


@given(stores, rows, columns, classes)
def test_a_claim_is_the_same_whatever_else_is_asked(
    known: Known, rows: list[str], columns: list[str], classes: list[str]
) -> None:
    every = complete(asked(known), list(BUILDS.values()), CLASSES, known)
    few = again(known)
    issues, builds = [known.issues[id_] for id_ in rows], [BUILDS[id_] for id_ in columns]
    assert complete(issues, builds, classes, few) == {key: every[key] for key in product(rows, columns, classes)}
    shown = rows_of(issues, unfolded(builds), classes, few)
    assert all(shown[row, class_] == tuple(every[row, id_, class_] for id_ in columns) for row, class_ in shown)
    for before, after in zip(builds, reversed(builds), strict=True):
        for pair in compare(issues, before, after, classes[0], again(known)).pairs:
            sides = every[pair.issue.id, before.id, classes[0]], every[pair.issue.id, after.id, classes[0]]
            assert (pair.before, pair.after) == sides


@given(stores, rows, st.sampled_from(list(BUILDS)), classes, st.booleans())
def test_a_reason_of_the_gate_is_the_same_whatever_else_is_watched(
    known: Known, rows: list[str], build: str, classes: list[str], is_open: bool
) -> None:
    """Where the classes are named. Where none is, those count on which the issue was ever measured."""
    pythons = PYTHONS if is_open else (BUILDS[build].python,)
    every = {
        (reason.issue, reason.hardware): reason
        for reason in ruled(known, build, rows, CLASSES, pythons=pythons).reasons
    }
    for row, class_ in product(rows, classes):
        (alone,) = ruled(again(known), build, [row], [class_], pythons=pythons).reasons
        if (row, class_) in every:
            assert alone == every[row, class_]
        else:
            assert alone.verdict is Verdict.NOT_APPLICABLE


def ruled(
    known: Known,
    build: str,
    watched: Iterable[str],
    classes: Iterable[str],
    *,
    pythons: tuple[str, ...] = (),
    policy: Policy = Policy(),  # noqa: B008 - frozen
) -> Ruling:
    asked = replace(policy, watch=Watch(issues=tuple(watched)), hardware=tuple(classes))
    resolved = ResolvedBuild(build, "torch", pythons=pythons or (BUILDS[build].python,))
    return decide(GateQuestion(resolved, asked, NOON, known))


@given(stores, rows, classes)
def test_a_history_is_the_same_whatever_else_is_asked(known: Known, rows: list[str], classes: list[str]) -> None:
    every = {(row, class_): known.history(row, class_) for row, class_ in product(ISSUES, CLASSES)}
    few = again(known)
    for row, class_ in product(rows, classes):
        assert few.history(row, class_) == every[row, class_]


@given(attempted, attempted, rows)
def test_what_is_taken_over_of_an_earlier_state_is_what_the_later_one_says(
    earlier: dict[Place, int], later: dict[Place, int], changed: list[str]
) -> None:
    unchanged = {place: pattern for place, pattern in earlier.items() if place[0] not in changed}
    before = store_of(earlier)
    known = store_of(unchanged | {place: pattern for place, pattern in later.items() if place[0] in changed})
    fresh, _ = again(known), rows_in_full(before)
    known.remember_rows(before, changed)
    assert rows_in_full(known) == rows_in_full(fresh)


def rows_in_full(known: Known) -> list[object]:
    """Everything that follows from the cells of one issue."""
    return [
        (
            known.measured(row, class_),
            known.measured_on(row, class_),
            known.was_measured(row, class_),
            known.helping(row, class_),
            known.history(row, class_),
            [known.fix_of(row, build, class_) for build in BUILDS.values()],
        )
        for row, class_ in product(ISSUES, CLASSES)
    ]


@given(stores)
def test_without_any_of_its_grounds_a_claim_is_not_known(known: Known) -> None:
    """An inferred one has more: the cells of its row on that wheel, the agreement and, of Pythons, the smoke row."""
    seen: Counter[str] = Counter()
    for issue, build, cell in claims_of(known):
        if cell.verdict not in CONCLUSIVE:
            continue
        rule = cell.basis.rule if cell.basis else ""
        if seen[rule] > 3:  # each of these makes stores anew
            continue
        seen[rule] += 1
        for grounds in grounds_of(known, issue, build, cell):
            left = without(known, grounds).cell(issue, build, cell.hardware)
            assert left.assurance is Assurance.NOT_KNOWN, (cell, grounds)


def grounds_of(known: Known, issue: Issue, build: Build, cell: Cell) -> list[list[Place]]:
    """Sets of stored cells, without any one of which nobody may make this claim."""
    alike = [
        (row, id_, class_)
        for row, id_, class_ in known.cells
        if row == issue.id and id_.partition("~py")[0] == build.id.partition("~py")[0]
    ]
    if cell.basis is None:
        return [alike]
    if cell.basis.rule == DEVICE_RULE:
        on_gpu = [place for place in known.cells if place[0].startswith("both-") and place[2] != CPU]
        return [[place for place in alike if place[2] == CPU], on_gpu]
    smoke = [place for place in known.cells if known.issues[place[0]].is_smoke and place[1] == build.id]
    pairs = [place for place in known.cells if BUILDS[place[1]].python == build.python]
    return [[place for place in alike if place[2] == cell.hardware], smoke, pairs]


def test_both_rules_are_tried_where_grounds_are_taken_away() -> None:
    """A guard of the guards: what the property above looks at happens."""
    rules = {cell.basis.rule for _, _, cell in claims_of(INFERRED) if cell.basis}
    assert rules == {PYTHON_RULE, DEVICE_RULE}
    held = test_without_any_of_its_grounds_a_claim_is_not_known
    held.hypothesis.inner_test(INFERRED)  # type: ignore[attr-defined]  # what `given` wraps


def without_passes(known: Known, chance: int) -> Known:
    """About half of the passes taken away, with the agreement between Pythons, and of the CPU with GPUs, as it was.

    What passes on one Python and fails on another lowers their agreement: were it counted anew, a pass less could make
    them agree well enough for others to be inferred. And where a row says different things of one wheel, a pass is no
    ground but counter-evidence: without it the failure would stand alone, and for others. Both are kept, because
    evidence against a claim may be what keeps it from being made.
    """
    drawn = random.Random(chance)  # noqa: S311 - repeatable on purpose
    passes = [place for place, cell in known.cells.items() if cell.verdict is Verdict.NOT_AFFECTED]
    kept = contradicted(known)
    left = without(known, [one for one in passes if drawn.random() < 0.5 and one not in kept])
    left = replace(left, hardware=known.hardware)
    for name in ("agreement", "device_agreement", "composed_agreement"):
        left.claims.__dict__[name] = getattr(known.claims, name)
    return left


def contradicted(known: Known) -> set[Place]:
    """Cells that another Python of the wheel contradicts; in a row that is the same on every device another class
    too.
    """
    said: dict[Place, set[Verdict]] = defaultdict(set)
    apart = {place: apart_from_python(known, place) for place in known.cells}
    for place, cell in known.cells.items():
        said[apart[place]] |= {cell.verdict} & CONCLUSIVE
    return {place for place in known.cells if len(said[apart[place]]) > 1}


def apart_from_python(known: Known, place: Place) -> Place:
    row, id_, class_ = place
    return row, id_.partition("~py")[0], "" if known.issues[row].requires.device is Device.ANY else class_


chances = st.integers(0, 2**16)


@given(stores, chances)
def test_passes_that_are_taken_away_leave_what_was_claimed_or_nothing(known: Known, chance: int) -> None:
    before, after = told(known), told(without_passes(known, chance))
    for place, (verdict, assurance) in after.items():
        if assurance is not Assurance.NOT_KNOWN:
            assert before[place][0] is verdict


@given(stores, chances, st.sampled_from(list(BUILDS)), st.sampled_from(list(BUILDS)), st.sampled_from(CLASSES))
def test_passes_that_are_taken_away_make_nothing_fixed(
    known: Known, chance: int, before: str, after: str, class_: str
) -> None:
    left = without_passes(known, chance)
    was, is_now = (
        {pair.issue.id for pair in compare(asked(one), BUILDS[before], BUILDS[after], class_, one).of(Group.FIXED)}
        for one in (known, left)
    )
    assert is_now <= was
    for row in ISSUES:
        were = [(span.last_bad, span.good_after) for span in known.history(row, class_).spans if span.good_after]
        for span in left.history(row, class_).spans:
            if span.good_after:
                wide = Version(span.last_bad), Version(span.good_after)
                assert any(wide[0] <= Version(bad) and Version(good) <= wide[1] for bad, good in were if good)


@given(stores, chances, rows, st.sampled_from(list(BUILDS)), classes, policies)
def test_passes_that_are_taken_away_let_nothing_pass_the_gate(
    known: Known, chance: int, rows: list[str], build: str, classes: list[str], policy: Policy
) -> None:
    """Where the classes are named, and no policy blocks only what something is known to help against."""
    policy = replace(policy, remedy=RemedyFilter.ANY)
    before, after = (ruled(one, build, rows, classes, policy=policy) for one in (known, without_passes(known, chance)))
    assert after.decision is not Decision.PASS or before.decision is Decision.PASS


# -- 2. assurance ------------------------------------------------------------------------------------------------------


@given(attempted, backgrounds)
def test_measured_is_what_attempts_of_that_very_cell_concluded(
    attempted: dict[Place, int], background: Background
) -> None:
    known = store_of(attempted, background)
    for issue, build, cell in claims_of(known):
        place = (issue.id, build.id, cell.hardware)
        concluded = place in attempted and cell_of(*place, attempted[place]).verdict in CONCLUSIVE
        assert (cell.assurance is Assurance.MEASURED) is concluded
        if concluded:
            derived = cell_of(*place, attempted[place])
            assert replace(cell, reason=quoted(""), workarounds={}) == replace(
                derived, reason=quoted(""), workarounds={}
            )
            assert english(cell.reason).startswith(english(derived.reason))


@given(stores)
def test_an_inferred_claim_names_a_measured_ground_that_says_the_same(known: Known) -> None:
    for issue, build, cell in claims_of(known):
        if cell.assurance is not Assurance.INFERRED:
            assert cell.basis is None
            continue
        assert cell.basis is not None
        ground = known.claims.stored((issue.id, cell.basis.build, cell.basis.hardware))
        assert ground is not None
        assert ground.verdict in CONCLUSIVE
        assert ground.basis is None
        alike = ("verdict", "measured_at", "variants", "workarounds", "evidence", "line", "reported", "control")
        assert [getattr(cell, name) for name in alike] == [getattr(ground, name) for name in alike]
        assert (cell.build, cell.attempts, cell.superseded, cell.voided) == (build.id, {}, 0, 0)
        assert cell.reason.key in {"by_python", "by_device"}
        assert own_reason(cell) == ground.reason


@given(stores)
def test_what_is_claimed_is_what_the_rules_text_says(known: Known) -> None:
    store = oracle.Store(known.issues, known.builds, known.cells)
    for issue, build, cell in claims_of(known):
        true = oracle.claim(store, issue, build, cell.hardware)
        assert (cell.verdict, cell.assurance, cell.runs) == (true.verdict, true.assurance, true.runs)
        assert {id_: one.verdict for id_, one in cell.workarounds.items()} == {
            id_: true.workaround(id_) for id_ in cell.workarounds
        }
        is_marked = "this issue is flaky" in english(cell.reason)
        assert is_marked is (true.is_flaky and true.verdict == "not_affected" and true.runs == 1)
        rule, ground = (cell.basis.rule, (cell.basis.build, cell.basis.hardware)) if cell.basis else ("", None)
        assert rule == true.rule
        assert ground == ((true.ground.build, true.ground.hardware) if true.ground and true.rule else None)


# -- 3. Python ---------------------------------------------------------------------------------------------------------


@given(stores)
def test_another_python_stands_in_by_one_rule_alone_and_where_it_is_known_to_agree(known: Known) -> None:
    store = oracle.Store(known.issues, known.builds, known.cells)
    for issue, build, cell in claims_of(known):
        if cell.basis is None or cell.basis.rule != PYTHON_RULE:
            continue
        other = BUILDS[cell.basis.build]
        assert (other.torch, other.triton, other.cuda, cell.basis.hardware) == (
            build.torch,
            build.triton,
            build.cuda,
            cell.hardware,
        )
        assert other.python != build.python
        assert not issue.requires.python
        assert not issue.is_smoke
        assert build.id in store.sound_builds
        agreed, compared = oracle.agreement(store, build.python, other.python)
        assert (cell.basis.agreed, cell.basis.compared) == (agreed, compared)
        assert oracle.lower_bound(agreed, compared) >= 0.95
        said = {
            one.verdict
            for (row, id_, class_), one in known.cells.items()
            if (row, class_) == (issue.id, cell.hardware) and oracle.is_same_wheel(BUILDS[id_], build)
        }
        assert said & CONCLUSIVE == {cell.verdict}


# -- 4. workarounds ----------------------------------------------------------------------------------------------------


def drawn_cell(row: str, drawn: list[int]) -> tuple[Issue, list[Judged], Cell]:
    """A row with drawn attempts, and the cell that follows from them."""
    issue = ISSUES[row]
    attempts = [one for pattern in drawn for one in attempts_of(issue, pattern)]
    cell = derive_cell(issue, BUILDS["torch-2.7.1+cu126~py312"], class_of(issue), attempts)
    assume(cell.verdict is not Verdict.NOT_APPLICABLE)
    return issue, attempts, cell


@given(st.sampled_from(list(ISSUES)), st.lists(patterns, min_size=1, max_size=3, unique=True))
@example("new-1", [31, 54])  # harmful with the one variant that fails
def test_a_workaround_is_judged_by_the_variants_that_fail(row: str, drawn: list[int]) -> None:
    issue, attempts, cell = drawn_cell(row, drawn)
    baseline = {one.variant: one.verdict.value for one in cell.variants}
    failing = [variant for variant, verdict in baseline.items() if verdict in oracle.SEEN]
    is_loud = issue.signature.kind is not SignatureKind.WRONG_RESULT
    for workaround, finding in cell.workarounds.items():
        if not finding.applies:
            there = [one for one in attempts if one.arm == workaround and (one.variant in failing or not failing)]
            assert not [one for one in there if one.outcome in {"pass", "match"}]
            continue
        tries: dict[str, list[str]] = {}
        for one in attempts:
            if one.arm == workaround:
                tries.setdefault(one.variant, []).append(oracle.outcome(attempts, one))
        silent = {variant: is_loud and last_failure(attempts, workaround, variant) for variant in baseline}
        assert finding.verdict.value == oracle.workaround(baseline, tries, silent)
        assert {*finding.helped, *finding.failed, *finding.untried} <= {*failing}
        assert [one for one in failing if oracle.with_one(tries.get(one, ())) == "passes"] == list(finding.helped)
        if finding.helped:
            assert finding.runs == min(tries[one].count("pass") for one in finding.helped)


@given(st.sampled_from(list(ISSUES)), st.lists(patterns, min_size=1, max_size=3, unique=True))
def test_a_pass_stands_beside_a_control_that_observed_the_same(row: str, drawn: list[int]) -> None:
    _, attempts, cell = drawn_cell(row, drawn)
    differing = {one.attempt for one in attempts if oracle.outcome(attempts, one) == "differs"}
    assert {one.attempt for one in cell.differences} == differing
    for finding in cell.variants:
        own = [one for one in attempts if (one.arm, one.variant) == (BASELINE, finding.variant)]
        passes = [one for one in own if one.outcome is Outcome.PASS]
        if finding.verdict in {Verdict.NOT_AFFECTED, Verdict.FLAKY}:
            assert {one.attempt for one in passes} - differing
        if finding.verdict is Verdict.NOT_AFFECTED:
            assert differing.isdisjoint(one.attempt for one in passes)
        if not passes:
            assert differing.isdisjoint(one.attempt for one in own)


@given(st.sampled_from(list(ISSUES)), st.lists(patterns, min_size=1, max_size=3, unique=True), st.data())
def test_taking_passes_of_the_control_away_never_makes_a_pass(row: str, drawn: list[int], data: st.DataObject) -> None:
    issue = ISSUES[row]
    attempts = [one for pattern in drawn for one in attempts_of(issue, pattern)]
    controls = [one.attempt for one in attempts if one.arm == CONTROL and one.outcome is Outcome.PASS]
    gone = data.draw(st.sets(st.sampled_from(controls)) if controls else st.just(set()))
    build, class_ = BUILDS["torch-2.7.1+cu126~py312"], class_of(issue)
    before = derive_cell(issue, build, class_, attempts)
    after = derive_cell(issue, build, class_, [one for one in attempts if one.attempt not in gone])
    was = {one.variant: one.verdict for one in before.variants}
    for finding in after.variants:
        if finding.verdict in {Verdict.NOT_AFFECTED, Verdict.FLAKY}:
            assert was[finding.variant] is finding.verdict
    for id_, found in after.workarounds.items():
        assert set(found.helped) <= set(before.workarounds[id_].helped)


def class_of(issue: Issue) -> str:
    return CLASSES[-1] if issue.requires.device is Device.CUDA else CPU


def last_failure(attempts: Iterable[Judged], arm: str, variant: str) -> bool:
    """Whether the newest failure of this arm with this variant was wrong numbers."""
    failed = [
        one for one in attempts if (one.arm, one.variant) == (arm, variant) and one.outcome.value in oracle.FAILED
    ]
    newest = max(failed, key=lambda one: (one.measured_at, one.attempt), default=None)
    return newest is not None and newest.marked == "wrong_result"


# -- 5. intervals ------------------------------------------------------------------------------------------------------


@given(stores)
def test_nothing_that_passes_or_fails_lies_inside_an_interval_and_all_else_is_named(known: Known) -> None:
    store = oracle.Store(known.issues, known.builds, known.cells)
    for row, class_ in product(ISSUES, CLASSES):
        said = dict(oracle.line(store, row, class_))
        found = set()
        for span in known.history(row, class_).spans:
            for kind, old, new, named in (
                ("broke", span.good_before, span.first_bad, span.before),
                ("fixed", span.last_bad, span.good_after, span.after),
            ):
                if not (old and new):
                    continue
                found.add((kind, old, new))
                assert (said[old], said[new]) == ((True, False) if kind == "fixed" else (False, True))
                inside = [one for one in said if Version(old) < Version(one) < Version(new)]
                assert [one.name for one in named] == inside
                assert not any(said[one] is not None for one in inside)
        assert found == oracle.intervals(store, row, class_)


@given(stores)
def test_a_fix_is_the_oldest_newer_release_that_was_measured_to_pass(known: Known) -> None:
    store = oracle.Store(known.issues, known.builds, known.cells)
    for row, build, class_ in product(ISSUES, BUILDS.values(), CLASSES):
        cell = known.cells.get((row, build.id, class_))
        if cell is not None and cell.verdict in {Verdict.AFFECTED, Verdict.FLAKY}:
            fix = known.fix_of(row, build, class_)
            assert (fix.build.build_id.release if fix else "") == oracle.passes_again(store, row, build, class_)
            if fix:
                assert known.cells[row, fix.build.id, class_].verdict is Verdict.NOT_AFFECTED


# -- 6. before and after -----------------------------------------------------------------------------------------------

FAILS = {Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE}


@given(stores, st.sampled_from(list(BUILDS)), st.sampled_from(list(BUILDS)), st.sampled_from(CLASSES))
def test_gained_and_lost_are_said_between_known_sides_and_mirror_each_other(
    known: Known, before: str, after: str, class_: str
) -> None:
    there = compare(asked(known), BUILDS[before], BUILDS[after], class_, known)
    back = compare(asked(known), BUILDS[after], BUILDS[before], class_, known)
    for pair in there.of(Group.FIXED):
        assert (pair.before.verdict in FAILS, pair.after.verdict) == (True, Verdict.NOT_AFFECTED)
        rules = {cell.basis.rule for cell in (pair.before, pair.after) if cell.basis}
        assert len(rules) <= 1
    for pair in there.of(Group.NEWLY_BROKEN):
        assert (pair.before.verdict, pair.after.verdict in FAILS) == (Verdict.NOT_AFFECTED, True)
    gained = [pair.issue.id for pair in there.of(Group.FIXED)]
    assert sorted(gained) == sorted(pair.issue.id for pair in back.of(Group.NEWLY_BROKEN))


@given(stores, st.sampled_from(list(BUILDS)), st.sampled_from(list(BUILDS)), st.sampled_from(CLASSES))
def test_what_became_of_a_row_is_what_the_rules_text_says(known: Known, before: str, after: str, class_: str) -> None:
    store = oracle.Store(known.issues, known.builds, known.cells)
    builds = BUILDS[before], BUILDS[after]
    for pair in compare(asked(known), *builds, class_, known).pairs:
        sides = (oracle.claim(store, pair.issue, build, class_) for build in builds)
        assert pair.group.value == oracle.became(pair.issue, *sides)
        if (pair.before.verdict, pair.after.verdict) == (Verdict.NOT_APPLICABLE, Verdict.AFFECTED):
            assert pair.group is Group.NEW


starts = st.sampled_from([build for build in BUILDS.values() if build.minor in {"2.5", "2.6"}])
shares = st.sampled_from([0.5, 0.8, 1.0])


def advised(known: Known, start: Build, rows: Iterable[str], classes: Iterable[str], enough: float) -> UpgradeAdvice:
    watched = tuple(known.issues[id_] for id_ in sorted(rows))
    return advise(UpgradeQuestion(start, watched, Constraints(hardware=tuple(classes)), enough=enough), known)


@given(kept_up, starts, rows, st.sampled_from([(), (CPU,), (GPU, CPU)]), shares)
def test_an_upgrade_is_advised_as_the_rules_text_says(
    known: Known, start: Build, rows: list[str], classes: tuple[str, ...], enough: float
) -> None:
    advice = advised(known, start, rows, classes, enough)
    store = oracle.Store(known.issues, known.builds, known.cells)
    choices = [one.build for one in advice.candidates]
    true = oracle.upgrade(store, start, sorted(rows), classes, choices, enough)
    assert advice.decision.value == true.decision
    assert (advice.best.build.id if advice.best else "") == true.best
    assert [one.build for one in advice.candidates] == [one.build for one in true.candidates]
    for one, other in zip((advice.base, *advice.candidates), (true.base, *true.candidates), strict=True):
        said = {tally.value: count for tally, count in one.counts.items()}
        assert {word: other.count(word) for word in oracle.DOES if word != "does_not_apply"} == {
            word: said[word] for word in oracle.DOES if word != "does_not_apply"
        }
        assert (said["gained"], said["lost"], said["new"]) == tuple(
            len(other.turned(word)) for word in ("fixed", "newly_broken", "new")
        )
        assert (one.coverage, one.assurance) == (other.coverage, other.assurance)
    good = {Rating.RECOMMENDED, Rating.ALSO_GOOD}
    rated = {one.build.id: "good" if one.rating in good else one.rating.value for one in advice.candidates}
    assert rated == true.ratings


@given(kept_up, starts, rows, st.sampled_from([(CPU,), (GPU, CPU)]), chances)
def test_passes_that_are_taken_away_recommend_nothing(
    known: Known, start: Build, rows: list[str], classes: tuple[str, ...], chance: int
) -> None:
    """But for how many runs a claim rests on: without a pass that was run once, one of another Python that was run
    three times may stand in for it.
    """
    before, after = (advised(one, start, rows, classes, 0.8) for one in (known, without_passes(known, chance)))
    hoped = {one.build.id for one in before.candidates if one.rating in HOPED}
    assert after.best is None or after.best.build.id in hoped
    for was, is_now in zip(
        sorted(before.candidates, key=by_build), sorted(after.candidates, key=by_build), strict=True
    ):
        gained = {item.issue.id for item in was.of(Tally.GAINED)}
        assert {item.issue.id for item in is_now.of(Tally.GAINED)} <= gained


HOPED = {Rating.RECOMMENDED, Rating.ALSO_GOOD, Rating.NOT_CONFIRMED}


def by_build(one: Candidate) -> str:
    return one.build.id


@given(kept_up, starts, rows, st.sampled_from([(CPU,), (GPU, CPU)]), shares)
def test_rows_that_apply_on_no_side_change_no_decision_and_no_number(
    known: Known, start: Build, rows: list[str], classes: tuple[str, ...], enough: float
) -> None:
    """A row of a release that is still to come, and one of a Python before all of these."""
    never = [
        make_issue("never-1", requires=Requires(torch=">=3"), severity=Severity.CRITICAL, silent=True),
        make_issue("never-2", requires=Requires(python="<3.9"), severity=Severity.HIGH),
    ]
    more = replace(known, issues={**known.issues, **{issue.id: issue for issue in never}})
    few = advised(known, start, rows, classes, enough)
    many_ = advised(more, start, [*rows, *(issue.id for issue in never)], classes, enough)
    assert (few.decision, few.why, few.base) == (many_.decision, many_.why, many_.base)
    assert few.candidates == many_.candidates


@given(st.one_of(stores, kept_up), seeds)
def test_the_gate_decides_as_the_rules_text_says(known: Known, seed: int) -> None:
    """Three questions of each store; tests/soak/test_oracle.py asks them in the words of files, too."""
    store, chance = oracle.Store(known.issues, known.builds, known.cells), random.Random(seed)  # noqa: S311
    for _ in range(3):
        asked = a_question(chance, store, NOON)
        if asked.environment is None:
            continue
        told = decide(GateQuestion(resolved(known, asked.environment), watching(asked), NOON, known))
        true = oracle.gate(store, asked.policy, asked.watched, asked.environment, NOON, named=asked.named)
        assert told.decision.value == true.decision
        assert {
            (one.issue, one.hardware): (one.effect.value, one.verdict.value, one.assurance.value)
            for one in told.reasons
        } == dict(true.reasons)


def resolved(known: Known, environment: oracle.Environment) -> ResolvedBuild:
    ids = environment.possible or environment.stand_ins
    return ResolvedBuild(
        environment.possible[0] if environment.possible else None,
        "torch as somebody has it",
        is_assumed=environment.is_assumed,
        packages=environment.packages or {},
        pythons=tuple(sorted(known.builds[id_].python for id_ in ids)),
        variant=environment.stand_ins[0] if environment.stand_ins else "",
        refusals=(Message("no_wheel", said="the index has none"),) if environment.is_refused else (),
    )


def watching(asked: Asked) -> Policy:
    """With what is watched in words: a package by its name where it was asked for so, all else by ids and severity."""
    fields = asked.fields
    watch = Watch(
        tuple(fields.get("issues", ())),
        tuple(fields.get("component", ())),
        tuple(fields.get("package", ())),
        Severity(fields["severity"]) if "severity" in fields else None,
    )
    return replace(asked.policy, watch=watch)


# -- 7. packages -------------------------------------------------------------------------------------------------------


@given(stores, rows, st.sampled_from([None, {}, {"torchao": "0.12.0"}, {"numpy": "2.2.6"}]), st.booleans())
def test_a_row_of_a_package_counts_for_whoever_has_it_or_names_it(
    known: Known, rows: list[str], packages: dict[str, str] | None, is_named: bool
) -> None:
    for row in rows:
        issue = known.issues[row]
        counts = concerns(issue, packages, named=is_named)
        if not issue.requires.package:
            assert counts
        elif packages is None:
            assert counts is is_named
        else:
            assert counts is (issue.requires.package in packages)


# -- 8. hardware -------------------------------------------------------------------------------------------------------


@given(stores, st.sampled_from(list(BUILDS)))
def test_a_row_about_the_cpu_path_never_weighs_on_a_gpu(known: Known, build: str) -> None:
    on_cpu = [issue for issue in asked(known) if issue.requires.device is Device.CPU]
    for issue, class_ in product(on_cpu, CLASSES[1:]):
        cell = known.cell(issue, BUILDS[build], class_)
        assert cell.verdict is Verdict.NOT_APPLICABLE
        assert (cell.reason == CPU_PATH) is oracle.applies(issue, BUILDS[build], CPU)
        assert ruled(known, build, [issue.id], [class_]).decision is Decision.INSUFFICIENT
        both = ruled(known, build, [issue.id], [CPU, class_])
        assert both.decision is ruled(known, build, [issue.id], [CPU]).decision


@given(stores)
def test_a_device_independent_row_is_inferred_on_a_gpu_from_the_very_build_where_so_few_pairs_are_known(
    known: Known,
) -> None:
    for issue, build, cell in claims_of(known):
        if issue.requires.device is Device.ANY and cell.hardware != CPU and cell.basis:
            assert (cell.basis.rule, cell.basis.build, cell.basis.hardware) == (DEVICE_RULE, build.id, CPU)
        elif cell.basis:
            assert cell.basis.rule == PYTHON_RULE


lists = st.dictionaries(
    st.sampled_from(sorted({build.torch for build in BUILDS.values()})),
    st.sampled_from(["sm_75", "sm_90", "sm_80 sm_86", "sm_100 sm_120", "compute_80"]),
)
"""What was read in some of the wheels."""


@given(st.one_of(stores, st.just(INFERRED)), lists)
def test_no_claim_about_the_cpu_reaches_a_gpu_for_which_the_wheel_holds_no_code(
    known: Known, read: dict[str, str]
) -> None:
    wheels = {torch: WheelCode(torch, tuple(codes.split()), NOON) for torch, codes in read.items()}
    with_lists = replace(known, wheels=wheels)
    for (issue, build, before), (_, _, after) in zip(claims_of(known), claims_of(with_lists), strict=True):
        is_of_cpu = before.basis is not None and before.basis.rule == DEVICE_RULE
        if is_of_cpu and with_lists.serves(build, before.hardware) is False:
            assert (after.basis, after.verdict in CONCLUSIVE) == (None, False), issue.id
        else:
            assert after == before


# -- 9. headlines ------------------------------------------------------------------------------------------------------


@given(st.sampled_from(list(ISSUES)), st.lists(patterns, min_size=1, max_size=3, unique=True))
def test_a_cell_is_its_worst_variant_and_says_what_the_reported_one_does_where_that_differs(
    row: str, drawn: list[int]
) -> None:
    issue, _, cell = drawn_cell(row, drawn)
    found = [one.verdict for one in cell.variants]
    assert [one.variant for one in cell.variants] == [one.id for one in variants_of(issue, BASELINE)]
    graver = [one for one in ("affected", "flaky", "different_failure", "inconclusive") if one in found]
    if graver:
        assert cell.verdict.value == graver[0]
    elif "not_run" in found:
        assert cell.verdict.value == ("not_run" if {*found} == {"not_run"} else "inconclusive")
    elif "not_affected" in found:
        assert cell.verdict is Verdict.NOT_AFFECTED
    else:
        assert cell.verdict.value in found
    own = next((one for one in cell.variants if one.variant == cell.reported), None)
    differs = own is not None and own.verdict in CONCLUSIVE and own.verdict is not cell.verdict
    assert cell.as_reported == (own if differs else None)
    assert ("as reported" in english(cell.reason)) is (differs and cell.verdict in CONCLUSIVE)


# -- 10. numbers -------------------------------------------------------------------------------------------------------


@given(st.sampled_from(list(ISSUES)), st.lists(patterns, min_size=1, max_size=3, unique=True))
def test_a_claim_says_on_how_many_attempts_it_rests(row: str, drawn: list[int]) -> None:
    """Counted from the attempts: of a pass with the variant that was tried least, of a failure the most."""
    issue = ISSUES[row]
    attempts = {one.attempt: one for pattern in drawn for one in attempts_of(issue, pattern)}.values()
    cell = derive_cell(issue, BUILDS["torch-2.7.1+cu126~py312"], class_of(issue), attempts)
    numbers = [
        sum(
            1
            for one in attempts
            if (one.arm, one.variant) == (BASELINE, finding.variant) and one.outcome.value not in oracle.SAYS_NOTHING
        )
        for finding in cell.variants
        if finding.verdict is cell.verdict
    ]
    if cell.verdict in CONCLUSIVE:
        assert cell.runs == (min(numbers) if cell.verdict is Verdict.NOT_AFFECTED else max(numbers)) > 0
    else:
        assert cell.runs == 0


@given(stores, st.sampled_from(list(BUILDS)), classes)
def test_a_reason_of_the_gate_says_on_how_many_attempts_it_rests(known: Known, build: str, classes: list[str]) -> None:
    for reason in ruled(known, build, ISSUES, classes).reasons:
        assert reason.runs == known.cell(known.issues[reason.issue], BUILDS[build], reason.hardware).runs
