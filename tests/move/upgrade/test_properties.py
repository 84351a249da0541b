"""Properties of every question, over random cells, runs, watch lists and thresholds.

KNOWNGOOD_EXAMPLES says how many worlds each rule is tried on (12 unless set; `make soak` takes 500).
"""

import random
import re
from dataclasses import replace
from datetime import date
from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from knowngood.domain.builds.build import Build, Companion
from knowngood.domain.issue import Issue, Requires, Severity
from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import Prospect
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    FAILING,
    Cell,
    VariantFinding,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
)
from knowngood.move.pair import CONFIRMED
from knowngood.move.schemas import upgrade_body
from knowngood.move.upgrade.candidates import LEAST, Candidate, Rating, Tally, UpgradeQuestion
from knowngood.move.upgrade.constraints import Constraints
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise, rank_key
from knowngood.move.upgrade.reasons import UpgradeDecision
from knowngood.move.upgrade.renderers import upgrade_text
from knowngood.move.upgrade.wording import answer, measured
from tests.domain import given_claims
from tests.make import HARDWARE, NOON, make_build, make_issue

TORCH_25, TORCH_26, TORCH_27 = make_build("2.5.1+cu124"), make_build("2.6.0+cu124"), make_build("2.7.1+cu126")
TORCH_28 = make_build("2.8.0+cu128")
OTHER = make_build("2.7.1+cu128", origin="cu128")
BUILDS = (TORCH_25, TORCH_26, TORCH_27, OTHER, TORCH_28)
CANDIDATES = (TORCH_26, TORCH_27, OTHER, TORCH_28)
IDS = ("toy-1", "toy-2", "toy-3", "toy-4")
HELPS = ("eager", "clone")
FAILS = (*FAILING, Verdict.DIFFERENT_FAILURE)
NO_ANSWER = (Verdict.INCONCLUSIVE, Verdict.NOT_RUN, Verdict.NO_BUILD)
# What is likely to be stored is drawn more often than what is seldom: else hardly any candidate is good.
LIKELY = (*(Verdict.AFFECTED, Verdict.NOT_AFFECTED) * 6, *Verdict)
GOOD = {Rating.RECOMMENDED, Rating.ALSO_GOOD}

enoughs = st.sampled_from([LEAST, 0.8, 1.0])


def issue_of(id_: str, severity: Severity, *, silent: bool) -> Issue:
    return make_issue(id_, workarounds=HELPS, severity=severity, silent=silent)


@st.composite
def cell_of(draw: st.DrawFn, issue: str, build: str, verdicts: tuple[Verdict, ...] = LIKELY) -> Cell:
    verdict, runs = draw(st.sampled_from(verdicts)), draw(st.integers(1, 3))
    k = {Verdict.AFFECTED: runs, Verdict.FLAKY: 1}.get(verdict, 0)
    variant = VariantFinding("default", verdict, quoted("because"), k, runs)
    found = {name: WorkaroundFinding(draw(st.sampled_from(WorkaroundVerdict))) for name in HELPS}
    return Cell(issue, build, HARDWARE, verdict, quoted("because"), NOON, variants=(variant,), workarounds=found)


def known_of(cells: list[Cell], issues: list[Issue]) -> Known:
    """The class is known whatever is measured on it: which classes count is no question of these."""
    known = given_claims.known_of(cells, issues, {build.id: build for build in BUILDS})
    return replace(known, hardware=(HARDWARE,))


@st.composite
def worlds(draw: st.DrawFn) -> Known:
    issues = [issue_of(id_, draw(st.sampled_from(Severity)), silent=draw(st.booleans())) for id_ in IDS]
    places = list(product(IDS, [build.id for build in BUILDS]))
    filled = draw(st.lists(st.sampled_from(places), unique=True, min_size=15))
    return known_of([draw(cell_of(*place)) for place in filled], issues)


new_issues = st.builds(issue_of, st.just("new-1"), st.sampled_from(Severity), silent=st.booleans())


def ask(known: Known, enough: float, *watched: str) -> UpgradeAdvice:
    wanted = tuple(known.issues[id_] for id_ in sorted(watched or known.issues))
    return advise(UpgradeQuestion(TORCH_25, wanted, Constraints(hardware=(HARDWARE,)), enough=enough), known)


def with_cells(known: Known, *cells: Cell) -> Known:
    added = {(cell.issue, cell.build, cell.hardware): cell for cell in cells}
    return replace(known, cells={**known.cells, **added})


def candidate(advice: UpgradeAdvice, build: Build) -> Candidate:
    return next(one for one in advice.candidates if one.build == build)


def place(advice: UpgradeAdvice, build: Build) -> int:
    return [one.build for one in advice.candidates].index(build)


def good(advice: UpgradeAdvice) -> set[str]:
    return {one.build.id for one in advice.candidates if one.rating in GOOD}


@given(st.data(), worlds(), enoughs, new_issues, st.sampled_from(CANDIDATES))
def test_watching_one_more_issue_that_fails_there_never_makes_a_candidate_better(
    data: st.DataObject, known: Known, enough: float, issue: Issue, build: Build
) -> None:
    """Its key is never less than before, whatever the new issue does elsewhere and on the build one is on."""
    known = replace(known, issues={**known.issues, issue.id: issue})
    cells = [data.draw(cell_of(issue.id, one.id)) for one in BUILDS if one != build and data.draw(st.booleans())]
    known = with_cells(known, *cells, data.draw(cell_of(issue.id, build.id, FAILS)))
    before, after = ask(known, enough, *IDS), ask(known, enough, *IDS, issue.id)
    assert rank_key(candidate(after, build), enough) >= rank_key(candidate(before, build), enough)
    # An answer on the build one is on counts whatever it is, and may be the one that makes up its half.
    assume(before.base.coverage >= LEAST)
    assert candidate(after, build).rating not in GOOD or candidate(before, build).rating in GOOD


@given(st.data(), worlds(), enoughs, new_issues, st.sampled_from(CANDIDATES))
def test_nor_raises_it_above_candidates_where_that_issue_is_known_to_pass(
    data: st.DataObject, known: Known, enough: float, issue: Issue, build: Build
) -> None:
    """The monotonicity of the ranking: no candidate that was above it comes to stand below it."""
    known = replace(known, issues={**known.issues, issue.id: issue})
    passing = (Verdict.NOT_AFFECTED, Verdict.NOT_APPLICABLE)
    others = [data.draw(cell_of(issue.id, one.id, passing)) for one in CANDIDATES if one != build]
    start = data.draw(cell_of(issue.id, TORCH_25.id))
    known = with_cells(known, *others, start, data.draw(cell_of(issue.id, build.id, FAILS)))
    before, after = ask(known, enough, *IDS), ask(known, enough, *IDS, issue.id)
    above = {one.build for one in before.candidates[: place(before, build)]}
    assert above <= {one.build for one in after.candidates[: place(after, build)]}
    assert place(after, build) >= place(before, build)


@given(st.data(), worlds(), enoughs, st.sampled_from(CANDIDATES), st.sampled_from(IDS))
def test_an_answer_that_is_lost_never_makes_a_candidate_better(
    data: st.DataObject, known: Known, enough: float, build: Build, issue: str
) -> None:
    """A pass that nobody knows of any more is not known: never gained, and never better than the pass was."""
    passing = with_cells(known, data.draw(cell_of(issue, build.id, (Verdict.NOT_AFFECTED,))))
    lost = with_cells(known, data.draw(cell_of(issue, build.id, NO_ANSWER)))
    before, after = (candidate(ask(one, enough), build) for one in (passing, lost))
    (item,) = [item for item in after.items if item.issue.id == issue]
    assert item.prospect is Prospect.NOT_KNOWN
    assert after.counts[Tally.GAINED] <= before.counts[Tally.GAINED]
    assert rank_key(after, enough) >= rank_key(before, enough)


@given(st.data(), worlds(), enoughs, st.sampled_from(CANDIDATES), st.sampled_from(IDS))
def test_a_pass_that_becomes_a_failure_never_raises_a_candidate(
    data: st.DataObject, known: Known, enough: float, build: Build, issue: str
) -> None:
    passing = with_cells(known, data.draw(cell_of(issue, build.id, (Verdict.NOT_AFFECTED,))))
    failing = with_cells(known, data.draw(cell_of(issue, build.id, FAILS)))
    before, after = ask(passing, enough), ask(failing, enough)
    assert rank_key(candidate(after, build), enough) >= rank_key(candidate(before, build), enough)
    assert place(after, build) >= place(before, build)


@given(worlds(), enoughs)
def test_a_pass_that_nobody_knows_of_any_more_makes_no_recommendation_and_no_gain(known: Known, enough: float) -> None:
    """On whatever build, the present one too: each of the store's passes in turn, then all of one issue's at once."""
    full = ask(known, enough)
    passes = [key for key, cell in known.cells.items() if cell.verdict is Verdict.NOT_AFFECTED]
    forgotten = [{key} for key in passes] + [{key for key in passes if key[0] == id_} for id_ in IDS]
    for gone in forgotten:
        left = replace(known, cells={key: cell for key, cell in known.cells.items() if key not in gone})
        less = ask(left, enough)
        assert good(less) <= good(full)
        assert less.decision is not UpgradeDecision.GO or full.decision is UpgradeDecision.GO
        for one in less.candidates:
            held = {item.issue.id for item in candidate(full, one.build).of(Tally.GAINED)}
            assert {item.issue.id for item in one.of(Tally.GAINED)} <= held


@given(worlds(), enoughs, st.integers(1, 3))
def test_issues_that_can_exist_on_neither_side_change_nothing(known: Known, enough: float, more: int) -> None:
    """Neither decision nor ranking, nor any number."""
    absent = [make_issue(f"absent-{number}", requires=Requires(torch=">=9")) for number in range(more)]
    wider = replace(known, issues={**known.issues, **{issue.id: issue for issue in absent}})
    assert replace(ask(wider, enough), watched=()) == replace(ask(known, enough), watched=())


@given(worlds(), enoughs)
def test_every_newer_build_and_every_issue_of_it_is_told_of_exactly_once(known: Known, enough: float) -> None:
    advice = ask(known, enough)
    told = [one.build.id for one in advice.candidates] + [one.build for one in advice.left_out]
    assert sorted(told) == sorted(build.id for build in BUILDS if build != TORCH_25)
    for one in (advice.base, *advice.candidates):
        ids = [item.issue.id for item in one.items]
        assert len(ids) == len(set(ids))
        absent = {Verdict.NOT_APPLICABLE}
        assert all({item.before.verdict, item.after.verdict} != absent for item in one.items)
        assert sum(one.counts[Tally(prospect.value)] for prospect in {*Prospect} - {Prospect.AS_REPORTED}) == len(ids)
        assert 0 <= one.assurance <= 1
        assert not one.counts[Tally.NOT_KNOWN] or one.assurance <= one.coverage


@given(worlds(), enoughs)
def test_what_is_gained_or_lost_is_known_on_both_sides(known: Known, enough: float) -> None:
    for one in ask(known, enough).candidates:
        for item in one.of(Tally.GAINED):
            assert item.after.verdict is Verdict.NOT_AFFECTED
            assert item.before.verdict in FAILS
        for item in one.of(Tally.LOST):
            assert item.before.verdict is Verdict.NOT_AFFECTED
            assert item.after.verdict in FAILS
        for item in (*one.of(Tally.NEW), *one.of(Tally.NOT_KNOWN_BEFORE)):
            assert item.before.verdict not in CONCLUSIVE or item.before.verdict is Verdict.NOT_AFFECTED  # flaky after
            assert item.after.verdict in FAILS


@given(worlds(), enoughs)
def test_what_is_recommended_is_good_by_the_written_rule(known: Known, enough: float) -> None:
    advice = ask(known, enough)
    recommended = [one for one in advice.candidates if one.rating is Rating.RECOMMENDED]
    assert recommended == ([advice.best] if advice.best else [])
    assert (advice.decision is UpgradeDecision.GO) is bool(recommended)
    for one in advice.candidates:
        if one.rating in GOOD:
            helped = one.counts[Tally.LOST_WITH_WORKAROUND]
            assert (advice.base.coverage >= LEAST, one.coverage >= LEAST, one.assurance >= enough) == (True,) * 3
            assert (one.counts[Tally.LOST] - helped, one.gain > 0) == (0, True)
            assert any(min(item.before.runs, item.after.runs) >= CONFIRMED for item in one.of(Tally.GAINED))
            assert advice.candidates[0].rating in GOOD
    keys = [rank_key(one, enough) for one in advice.candidates]
    assert keys == sorted(keys)
    assert not advice.best or advice.best is advice.candidates[0]


@given(worlds(), enoughs)
def test_every_number_of_the_sentence_stands_in_the_table(known: Known, enough: float) -> None:
    """In the row of a build that it speaks of: its counts, what is measured, what to know. A document has the same."""
    advice = ask(known, enough)
    told = english(answer(advice))
    rows = [advice.base, *(one for one in advice.candidates if one.build.in_words in told)]
    rows += [one for one in advice.candidates[:1] if "No newer build" in told]
    shown = [
        text for one in rows for text in (*map(str, one.counts.values()), english(measured(one)), english(one.why))
    ]
    sentence = told
    for build in BUILDS:
        sentence = sentence.replace(build.in_words, "")
        shown = [text.replace(build.in_words, "") for text in shown]
    numbers = {int(number) for text in shown for number in re.findall(r"\d+", text)}
    numbers |= {one.counts[Tally.LOST] - one.counts[Tally.LOST_WITH_WORKAROUND] for one in rows}
    assert {int(number) for number in re.findall(r"\d+", sentence)} <= numbers
    body = upgrade_body(advice)
    assert body.answer == told
    assert [one.counts for one in (body.base, *body.candidates)] == [
        one.counts for one in (advice.base, *advice.candidates)
    ]
    assert upgrade_text(advice).split("\n\n")[0].split("\n    pip")[0].split() == told.split()


@given(worlds(), enoughs, st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_known_changes_nothing(
    known: Known, enough: float, chance: random.Random
) -> None:
    def shuffled(found: dict[object, object]) -> dict[object, object]:
        return dict(chance.sample(list(found.items()), len(found)))

    other = replace(
        known,
        issues=shuffled(dict(known.issues)),  # type: ignore[arg-type]
        builds=shuffled(dict(known.builds)),  # type: ignore[arg-type]
        cells=shuffled(dict(known.cells)),  # type: ignore[arg-type]
    )
    assert ask(known, enough) == ask(other, enough)


@given(worlds(), enoughs)
def test_a_constraint_takes_candidates_away_and_changes_nothing_else(known: Known, enough: float) -> None:
    watched = tuple(known.issues[id_] for id_ in sorted(known.issues))
    free = advise(UpgradeQuestion(TORCH_25, watched, enough=enough), known)
    narrow = advise(UpgradeQuestion(TORCH_25, watched, Constraints(driver="550"), enough=enough), known)
    assert {one.build for one in narrow.candidates} <= {one.build for one in free.candidates}
    for one in narrow.candidates:
        assert rank_key(one, enough) == rank_key(candidate(free, one.build), enough)


releases = st.sampled_from(["", "2.6.0", "2.7.0", "2.8.0"])


@given(worlds(), enoughs, st.lists(releases, min_size=len(BUILDS), max_size=len(BUILDS)))
def test_a_package_takes_candidates_away_from_those_alone_who_have_it(
    known: Known, enough: float, found: list[str]
) -> None:
    """Nothing changes for others; those who have it lose the builds without a release of it, whatever is measured."""
    going = dict(zip(known.builds, found, strict=True))
    told = {
        build.id: replace(build, companions=(Companion("torch-xla", going[build.id], "", date(2026, 11, 27)),))
        for build in known.builds.values()
    }
    bound = replace(known, builds=told)
    watched = tuple(known.issues[id_] for id_ in sorted(known.issues))
    start = told[TORCH_25.id]
    plain, other, having = (
        advise(UpgradeQuestion(one, watched, Constraints(packages=packages), enough=enough), builds)
        for one, packages, builds in (
            (TORCH_25, {}, known),
            (start, {"numpy": ""}, bound),
            (start, {"numpy": "", "torch-xla": ""}, bound),
        )
    )
    assert upgrade_text(other) == upgrade_text(plain)
    assert upgrade_body(other) == upgrade_body(plain)
    assert {one.build.id for one in having.candidates} == {
        one.build.id for one in plain.candidates if going[one.build.id]
    }
    for one in having.candidates:
        assert rank_key(one, enough) == rank_key(candidate(other, one.build), enough)
        assert f"{one.build.requirement} with torch-xla {going[one.build.id]}" in english(answer(having))
