"""What holds of every question: over random cells, watch lists and thresholds."""

import random
from dataclasses import replace
from itertools import product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.domain.build import Build
from app.domain.constraints import Constraints
from app.domain.gate import Known
from app.domain.issue import Issue, Severity
from app.domain.prospects import Candidate, Prospect, Rating
from app.domain.upgrade import Advice, Question, advise, rank_key
from app.domain.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from tests.domain.given_gate import TORCH_25, TORCH_26, TORCH_27, make_known
from tests.make import HARDWARE, NOON, make_build, make_issue

TORCH_28 = make_build("2.8.0+cu128")
OTHER = make_build("2.7.1+cu128", origin="cu128")
PYTHON = make_build("2.7.1+cu126", python="3.12")
BUILDS = (TORCH_25, TORCH_26, TORCH_27, OTHER, TORCH_28, PYTHON)
CANDIDATES = (TORCH_26, TORCH_27, OTHER, TORCH_28)
IDS = ("toy-1", "toy-2", "toy-3", "toy-4")
CURES = ("eager", "clone")
FAILS = (Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE)
NO_ANSWER = (Verdict.INCONCLUSIVE, Verdict.NOT_RUN, Verdict.NO_BUILD)

many = settings(max_examples=60, deadline=None)
enoughs = st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0])


def issue_of(id_: str, severity: Severity, *, silent: bool) -> Issue:
    return make_issue(id_, workarounds=CURES, severity=severity, silent=silent)


@st.composite
def cell_of(draw: st.DrawFn, issue: str, build: str, verdicts: tuple[Verdict, ...] = tuple(Verdict)) -> Cell:
    verdict = draw(st.sampled_from(verdicts))
    found = {name: WorkaroundFinding(draw(st.sampled_from(WorkaroundVerdict))) for name in CURES}
    return Cell(issue, build, HARDWARE, verdict, "because", NOON, workarounds=found)


@st.composite
def worlds(draw: st.DrawFn) -> Known:
    issues = [issue_of(id_, draw(st.sampled_from(Severity)), silent=draw(st.booleans())) for id_ in IDS]
    places = list(product(IDS, [build.id for build in BUILDS]))
    filled = draw(st.lists(st.sampled_from(places), unique=True, min_size=6))
    return make_known([draw(cell_of(*place)) for place in filled], *issues, builds=BUILDS)


new_issues = st.builds(issue_of, st.just("new-1"), st.sampled_from(Severity), silent=st.booleans())


def ask(known: Known, enough: float, *watched: str) -> Advice:
    wanted = tuple(known.issues[id_] for id_ in sorted(watched or known.issues))
    return advise(Question(TORCH_25, wanted, enough=enough), known)


def with_cells(known: Known, *cells: Cell) -> Known:
    added = {(cell.issue, cell.build, cell.hardware): cell for cell in cells}
    return replace(known, cells={**known.cells, **added})


def candidate(advice: Advice, build: Build) -> Candidate:
    return next(one for one in advice.candidates if one.build == build)


def place(advice: Advice, build: Build) -> int:
    return [one.build for one in advice.candidates].index(build)


@many
@given(st.data(), worlds(), enoughs, new_issues, st.sampled_from(CANDIDATES))
def test_watching_one_more_issue_that_fails_there_never_makes_a_candidate_better(
    data: st.DataObject, known: Known, enough: float, issue: Issue, build: Build
) -> None:
    """Its key is never less than before, whatever the new issue does elsewhere and on the build one is on."""
    known = replace(known, issues={**known.issues, issue.id: issue})
    cells = [data.draw(cell_of(issue.id, one.id)) for one in BUILDS if one != build and data.draw(st.booleans())]
    failing = data.draw(cell_of(issue.id, build.id, FAILS))
    known = with_cells(known, *cells, failing)
    before, after = ask(known, enough, *IDS), ask(known, enough, *IDS, issue.id)
    (item,) = [item for item in candidate(after, build).items if item.issue.id == issue.id]
    assume(item.after.verdict in FAILS)  # where another Python of 2.7.1 answers on both sides, that one is looked at
    assert rank_key(candidate(after, build), enough) >= rank_key(candidate(before, build), enough)
    is_recommended = candidate(after, build).rating is Rating.RECOMMENDED
    assert not is_recommended or candidate(before, build).rating in {Rating.RECOMMENDED, Rating.ALSO_GOOD}


@many
@given(st.data(), worlds(), enoughs, new_issues, st.sampled_from(CANDIDATES))
def test_nor_raises_it_above_candidates_where_that_issue_is_known_to_pass(
    data: st.DataObject, known: Known, enough: float, issue: Issue, build: Build
) -> None:
    """The monotonicity of the ranking: no candidate that was above it comes to stand below it."""
    known = replace(known, issues={**known.issues, issue.id: issue})
    passing = (Verdict.NOT_AFFECTED, Verdict.NOT_APPLICABLE)
    others = [data.draw(cell_of(issue.id, one.id, passing)) for one in (*CANDIDATES, PYTHON) if one != build]
    start = data.draw(cell_of(issue.id, TORCH_25.id))
    failing = [data.draw(cell_of(issue.id, build.id, FAILS))]
    failing += [replace(failing[0], build=PYTHON.id)] if build == TORCH_27 else []
    known = with_cells(known, *others, start, *failing)
    before, after = ask(known, enough, *IDS), ask(known, enough, *IDS, issue.id)
    above = {one.build for one in before.candidates[: place(before, build)]}
    assert above <= {one.build for one in after.candidates[: place(after, build)]}
    assert place(after, build) >= place(before, build)


@many
@given(st.data(), worlds(), enoughs, st.sampled_from([TORCH_26, OTHER, TORCH_28]), st.sampled_from(IDS))
def test_an_answer_that_is_lost_never_makes_a_candidate_better(
    data: st.DataObject, known: Known, enough: float, build: Build, issue: str
) -> None:
    """A pass that nobody knows of any more is an unknown: never a fix, and never better than the pass was."""
    passing = with_cells(known, data.draw(cell_of(issue, build.id, (Verdict.NOT_AFFECTED,))))
    lost = with_cells(known, data.draw(cell_of(issue, build.id, NO_ANSWER)))
    before, after = (candidate(ask(one, enough), build) for one in (passing, lost))
    (item,) = [item for item in after.items if item.issue.id == issue]
    assert item.prospect is Prospect.UNKNOWN
    assert after.counts[Prospect.FIXED] <= before.counts[Prospect.FIXED]
    assert rank_key(after, enough) >= rank_key(before, enough)


@many
@given(st.data(), worlds(), enoughs, st.sampled_from([TORCH_26, OTHER, TORCH_28]), st.sampled_from(IDS))
def test_a_pass_that_becomes_a_failure_never_raises_a_candidate(
    data: st.DataObject, known: Known, enough: float, build: Build, issue: str
) -> None:
    passing = with_cells(known, data.draw(cell_of(issue, build.id, (Verdict.NOT_AFFECTED,))))
    failing = with_cells(known, data.draw(cell_of(issue, build.id, FAILS)))
    before, after = ask(passing, enough), ask(failing, enough)
    assert rank_key(candidate(after, build), enough) >= rank_key(candidate(before, build), enough)
    assert place(after, build) >= place(before, build)


@many
@given(worlds(), enoughs)
def test_every_newer_build_and_every_watched_issue_is_told_of_exactly_once(known: Known, enough: float) -> None:
    advice = ask(known, enough)
    told = [one.build.id for one in advice.candidates] + [one.build.id for one in advice.left_out]
    assert sorted(told) == sorted(build.id for build in BUILDS if build != TORCH_25)
    for one in advice.candidates:
        assert sorted(item.issue.id for item in one.items) == sorted(IDS)
        assert sum(one.counts.values()) == len(IDS)
        assert 0 <= one.assurance <= 1
        assert not one.counts[Prospect.UNKNOWN] or one.assurance <= one.coverage


@many
@given(worlds(), enoughs)
def test_a_fix_is_a_proven_pass_where_something_failed(known: Known, enough: float) -> None:
    for one in ask(known, enough).candidates:
        for item in one.of(Prospect.FIXED):
            assert item.after.verdict is Verdict.NOT_AFFECTED
            assert item.before.verdict in FAILS


@many
@given(worlds(), enoughs)
def test_what_is_recommended_breaks_nothing_gains_something_and_is_measured_enough(known: Known, enough: float) -> None:
    advice = ask(known, enough)
    recommended = [one for one in advice.candidates if one.rating is Rating.RECOMMENDED]
    assert recommended == ([advice.best] if advice.best else [])
    for one in recommended:
        assert one is advice.candidates[0]
        assert (one.counts[Prospect.NEWLY_BROKEN], one.assurance >= enough, one.gain > 0) == (0, True, True)
    keys = [rank_key(one, enough) for one in advice.candidates]
    assert keys == sorted(keys)


@many
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


@many
@given(worlds(), enoughs)
def test_a_constraint_takes_candidates_away_and_changes_nothing_else(known: Known, enough: float) -> None:
    watched = tuple(known.issues[id_] for id_ in sorted(known.issues))
    free = advise(Question(TORCH_25, watched, enough=enough), known)
    narrow = advise(Question(TORCH_25, watched, Constraints(driver="550"), enough=enough), known)
    assert {one.build for one in narrow.candidates} <= {one.build for one in free.candidates}
    for one in narrow.candidates:
        assert rank_key(one, enough) == rank_key(candidate(free, one.build), enough)
