"""Which build to move to: what each pair of verdicts means, what decides between two candidates, when to stay."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from app.domain.build import Build
from app.domain.compare import compare
from app.domain.constraints import OLDEST_DRIVER, Constraints, read_pin
from app.domain.gate import Known
from app.domain.issue import Device, Issue, Requires
from app.domain.matrix import Column
from app.domain.prospects import Item, Prospect, Rating, prospect_of
from app.domain.upgrade import ENOUGH, RANKING_WORDS, Advice, Decision, Question, advise, rank_key
from app.domain.verdict import Verdict, WorkaroundVerdict
from tests.domain.given_gate import GPU, LETTERS, TORCH_25, TORCH_26, TORCH_27, make_cell, make_known
from tests.make import HARDWARE, make_build, make_issue

BUILDS = (TORCH_25, TORCH_26, TORCH_27)
CURED = {"eager": "e"}


def issue_of(id_: str, **changes: Any) -> Issue:
    return make_issue(id_, workarounds=("eager", "clone"), **changes)


def world(rows: dict[str, str], *, silent: tuple[str, ...] = (), builds: tuple[Build, ...] = BUILDS) -> Known:
    """Per issue one sign for each build, as `given_gate.row` has them; `c` fails with a cure, a blank is not run."""
    cells = [
        make_cell(Verdict.AFFECTED, id_, build, cures=CURED) if sign == "c" else make_cell(LETTERS[sign], id_, build)
        for id_, signs in rows.items()
        for sign, build in zip(signs, builds, strict=True)
        if sign != " "
    ]
    issues = [issue_of(id_, silent=id_ in silent) for id_ in rows]
    return make_known(cells, *issues, builds=builds)


def ask(known: Known, start: Build = TORCH_25, **changes: Any) -> Advice:
    return advise(Question(start, tuple(known.issues[id_] for id_ in sorted(known.issues)), **changes), known)


def ids(advice: Advice) -> list[str]:
    return [one.build.id for one in advice.candidates]


FAILS = (Verdict.AFFECTED, Verdict.FLAKY, Verdict.DIFFERENT_FAILURE)
NO_ANSWER = (Verdict.INCONCLUSIVE, Verdict.NOT_RUN, Verdict.NO_BUILD)


def expected(before: Verdict, after: Verdict) -> Prospect:
    """The rule in other words than the code's: the verdict there decides, and what was before only names a failure.

    By verdict alone a flaky failure is never gone: the passes may be luck.
    """
    if after in NO_ANSWER:
        return Prospect.UNKNOWN
    if after is Verdict.NOT_APPLICABLE:
        return Prospect.DOES_NOT_APPLY
    if after is Verdict.NOT_AFFECTED:
        return Prospect.FIXED if before in FAILS and before is not Verdict.FLAKY else Prospect.PASSES
    return Prospect.STILL_AFFECTED if before in FAILS else Prospect.NEWLY_BROKEN


@pytest.mark.parametrize(("before", "after"), list(product(Verdict, Verdict)))
def test_every_pair_of_verdicts_is_one_prospect(before: Verdict, after: Verdict) -> None:
    known = [make_cell(before, build=TORCH_25), make_cell(after, build=TORCH_26)]
    (pair,) = compare([issue_of("toy-1")], Column((TORCH_25,)), Column((TORCH_26,)), HARDWARE, known).pairs
    assert prospect_of(pair) is expected(before, after)


@pytest.mark.parametrize("before", list(Verdict))
@pytest.mark.parametrize("finding", list(WorkaroundVerdict))
def test_only_a_workaround_that_was_seen_to_help_there_is_a_cure(before: Verdict, finding: WorkaroundVerdict) -> None:
    letter = {"effective": "e", "ineffective": "i", "harmful": "h", "unnecessary": "n", "unverified": "u"}[finding]
    after = make_cell(Verdict.AFFECTED, build=TORCH_26, cures={"eager": letter})
    cells = [make_cell(before, build=TORCH_25, cures={"eager": "e"}), after]
    (pair,) = compare([issue_of("toy-1")], Column((TORCH_25,)), Column((TORCH_26,)), HARDWARE, cells).pairs
    helps = finding is WorkaroundVerdict.EFFECTIVE
    assert (prospect_of(pair) is Prospect.NEEDS_WORKAROUND) is helps


# Each row: the issues with their signs on 2.5.1 (where one is), 2.6.0 and 2.7.1. Of equals 2.7.1 would be first, as the
# newer release, so that a row in which 2.6.0 is first shows the one rule that it is named for.
@pytest.mark.parametrize(
    ("rows", "silent", "enough"),
    [
        pytest.param({"a": "xoo", "b": "oo ", "c": "oo "}, (), 0.8, id=RANKING_WORDS[0]),
        pytest.param({"a": "xoo", "b": "oxo", "c": "oox"}, ("c",), 0.8, id=RANKING_WORDS[1]),
        pytest.param({"a": "xoo", "b": "oox"}, (), 0.8, id=RANKING_WORDS[2]),
        pytest.param({"a": "xoo", "b": "xox"}, (), 0.8, id=RANKING_WORDS[3]),
        pytest.param({"a": "xoo", "b": "xoo", "c": "ooc"}, (), 0.8, id=f"{RANKING_WORDS[3]}: newly cured"),
        pytest.param({"a": "xoo", "b": "x-x"}, (), 0.8, id=RANKING_WORDS[4]),
        pytest.param({"a": "xoo", "b": "oo?"}, (), 0.0, id=RANKING_WORDS[5]),
        pytest.param({"a": "xoo", "b": "x-c"}, (), 0.8, id=RANKING_WORDS[6]),
        pytest.param({"a": "x  ", "b": "xo "}, (), 0.8, id="of those not measured enough, fewer unknown"),
        pytest.param({"a": "xxo", "b": "oxx", "c": "oo ", "d": "oo "}, (), 0.8, id="enough outweighs what is broken"),
    ],
)
def test_the_older_candidate_is_first_for_one_reason(
    rows: dict[str, str], silent: tuple[str, ...], enough: float
) -> None:
    advice = ask(world(rows, silent=silent), enough=enough)
    assert ids(advice) == [TORCH_26.id, TORCH_27.id]
    first, second = (rank_key(one, enough) for one in advice.candidates)
    assert first < second


def test_of_equals_the_newer_release_then_the_default_index_then_the_later_name_is_first() -> None:
    other, third = (make_build(f"2.7.1+{cuda}", origin=cuda) for cuda in ("cu118", "cu128"))
    rows = {"a": "xoooo"}
    advice = ask(world(rows, builds=(TORCH_25, TORCH_26, other, TORCH_27, third)))
    assert ids(advice) == [TORCH_27.id, third.id, other.id, TORCH_26.id]
    assert len({rank_key(one, 0.8) for one in advice.candidates}) == 1


def test_the_best_is_recommended_in_one_sentence() -> None:
    advice = ask(world({"a": "xxo", "b": "xcc", "c": "xxx", "d": "ooo", "e": "ooc", "f": "xoo", "g": "xxo"}))
    assert (advice.decision, advice.best and advice.best.build.id) == (Decision.GO, TORCH_27.id)
    assert ", ".join(map(str, advice.why)) == (
        "Fixes 3 of your 5 failing issues, breaks none, 1 still fails, 2 need a workaround, 1 of them newly"
    )
    assert [one.rating for one in advice.candidates] == [Rating.RECOMMENDED, Rating.ALSO_GOOD]


@pytest.mark.parametrize(
    ("rows", "decision", "rating", "said"),
    [
        pytest.param({"a": "oxo"}, Decision.STAY, Rating.NO_GAIN, "Nothing that you watch fails", id="all is well"),
        pytest.param({"a": "xox", "b": "oxo"}, Decision.STAY, Rating.NO_GAIN, "fixes more than", id="nothing is fixed"),
        pytest.param({"a": "xoo", "b": "oxx"}, Decision.STAY, Rating.BREAKS, "breaks something", id="each breaks one"),
        pytest.param({"a": "xoo", "b": "occ"}, Decision.STAY, Rating.NO_GAIN, "newly need one", id="as much as gained"),
        pytest.param({"a": "xo ", "b": "x  "}, Decision.STAY, Rating.NOT_ENOUGH, "measured enough", id="too few known"),
        pytest.param({"a": " oo", "b": "?oo"}, Decision.CANNOT_SAY, Rating.NO_GAIN, "has an answer on", id="blind"),
    ],
)
def test_without_a_good_candidate_one_stays_and_is_told_why(
    rows: dict[str, str], decision: Decision, rating: Rating, said: str
) -> None:
    advice = ask(world(rows))
    assert (advice.decision, advice.best) == (decision, None)
    assert advice.candidates[0].rating is rating
    assert said in str(advice.why[0])


def test_without_a_newer_build_one_stays() -> None:
    advice = ask(world({"a": "xxx"}), start=TORCH_27)
    assert (advice.decision, advice.candidates, str(advice.why[0])) == (
        Decision.STAY,
        (),
        "No newer build is in the catalogue.",
    )


def test_a_build_that_breaks_a_constraint_is_named_apart_with_the_reason() -> None:
    advice = ask(world({"a": "xoo"}), constraints=Constraints(pins=(read_pin("torch<2.7"),)))
    assert ids(advice) == [TORCH_26.id]
    assert [(one.build.id, one.reasons) for one in advice.left_out] == [
        (TORCH_27.id, ("has torch 2.7.1+cu126, and torch<2.7 is wanted",))
    ]
    every = ask(world({"a": "xoo"}), constraints=Constraints(pins=(read_pin("torch<2.6"),)))
    assert (every.decision, str(every.why[0])) == (Decision.STAY, "Each of the 2 newer builds breaks a constraint.")


def test_a_failure_never_makes_the_evidence_look_more_complete() -> None:
    """Counted as answers, the two failures would lift the candidate over the threshold."""
    few = {"a": "xoo", "b": "oo ", "c": "xoo", "d": "xoo"}
    before = ask(world(few), enough=0.8).candidates[-1]
    after = ask(world(few | {"e": "xxx", "f": "xxx"}), enough=0.8).candidates[-1]
    assert (before.rating, after.rating) == (Rating.NOT_ENOUGH, Rating.NOT_ENOUGH)
    assert before.coverage == 0.75
    assert after.coverage > 0.8 > after.assurance == before.assurance


def test_how_much_is_enough_can_be_named() -> None:
    rows = {"a": "x o", "b": "x o", "c": "x  "}
    assert ask(world(rows)).decision is Decision.STAY
    assert ask(world(rows), enough=0.6).decision is Decision.GO


def test_where_an_environment_cannot_be_installed_nothing_is_fixed_and_nothing_can_be_run() -> None:
    (one, _) = ask(world({"a": "x0o"}), enough=1.0).candidates[::-1]
    assert (one.build, one.counts[Prospect.UNKNOWN]) == (TORCH_26, 1)
    assert (one.missing.closed, one.missing.count) == (("a",), 0)


def test_the_graver_of_two_hardware_classes_counts() -> None:
    known = world({"a": "xoo"})
    both = Requires(device=Device.CUDA)
    issue = issue_of("g", requires=both)
    other = "cuda-sm_80"
    cells = [
        make_cell(verdict, "g", build, hardware=class_)
        for class_, signs in ((GPU, "xoo"), (other, "xxo"))
        for verdict, build in zip((LETTERS[sign] for sign in signs), BUILDS, strict=True)
    ]
    known = make_known([*known.cells.values(), *cells], *known.issues.values(), issue, builds=BUILDS)
    advice = ask(known)
    found = {one.build.id: {item.issue.id: item for item in one.items} for one in advice.candidates}
    assert found[TORCH_26.id]["g"].prospect is Prospect.STILL_AFFECTED
    assert found[TORCH_26.id]["g"].after.hardware == other
    assert found[TORCH_27.id]["g"].prospect is Prospect.FIXED
    only = ask(known, constraints=Constraints(hardware=(GPU,)))
    assert {one.build.id: one.counts[Prospect.FIXED] for one in only.candidates}[TORCH_26.id] == 1


def test_another_python_of_the_candidate_may_answer_and_is_named() -> None:
    known = world({"a": "x  "})
    python = make_build("2.6.0+cu124", python="3.12")
    cells = [*known.cells.values(), make_cell(Verdict.NOT_AFFECTED, "a", python)]
    advice = ask(make_known(cells, *known.issues.values(), builds=(*BUILDS, python)))
    (best,) = [one for one in advice.candidates if one.build == TORCH_26]
    (item,) = best.items
    assert (item.prospect, item.after.build) == (Prospect.FIXED, python.id)
    assert [one.build.id for one in advice.left_out] == [python.id]


def test_missing_cells_have_a_price_and_the_very_commands() -> None:
    known = world({"a": "xo ", "b": "xo?", "c": "xoo"})
    durations = {
        ("a", "control", "default"): 20.0,
        ("a", "baseline", "default"): 40.0,
        ("b", "control", "default"): 6.0,
    }
    advice = ask(known, durations=durations, environment_s=14.0)
    (one,) = [one for one in advice.candidates if one.build == TORCH_27]
    assert (one.missing.to_run, one.missing.to_ask_again, one.missing.hardware) == (("a",), ("b",), (HARDWARE,))
    assert (one.missing.price.seconds, one.missing.price.guessed) == (20.0 + 40.0 + 6.0 + 15.0 + 14.0, 1)
    assert one.missing.minutes == 2
    assert one.missing.commands(one.build.id) == (
        "knowngood run --builds torch-2.7.1+cu126 --issues a --hardware cpu-x86_64 --where-affected",
        "knowngood run --builds torch-2.7.1+cu126 --issues b --hardware cpu-x86_64 --where-affected --force",
    )


def test_with_nothing_measured_at_all_nothing_can_be_said() -> None:
    advice = ask(make_known([], issue_of("a"), builds=BUILDS))
    assert advice.decision is Decision.CANNOT_SAY
    assert advice.unmeasured.commands(TORCH_25.id)
    assert all(one.counts[Prospect.UNKNOWN] == 1 for one in advice.candidates)


def test_items_stand_gravest_first_and_silent_ones_before_loud_ones() -> None:
    advice = ask(world({"a": "xoo", "b": "oxx", "c": "oxx", "d": "oo "}, silent=("c",)))
    one = next(one for one in advice.candidates if one.build == TORCH_27)
    assert [item.issue.id for item in one.items] == ["c", "b", "d", "a"]


def test_newly_broken_silently_is_told_first() -> None:
    advice = ask(world({"a": "xoo", "b": "oxx", "c": "oxx"}, silent=("c",)))
    assert str(advice.candidates[0].why) == "newly broken: 2, silent wrong numbers in c"


def test_nothing_known_before_counts_as_new_and_says_so() -> None:
    advice = ask(world({"a": "xoo", "b": " xx"}))
    (item,) = advice.candidates[0].of(Prospect.NEWLY_BROKEN)
    assert isinstance(item, Item)
    assert (item.was_unknown, item.is_new) == (True, True)


def test_old_evidence_stands() -> None:
    """As everywhere: it is marked, and after half a year not every upgrade is off."""
    cells = [make_cell(LETTERS[sign], "a", build, days=400) for sign, build in zip("xoo", BUILDS, strict=True)]
    assert ask(make_known(cells, issue_of("a"), builds=BUILDS)).decision is Decision.GO


def test_the_documented_rule_is_the_rule() -> None:
    text = (Path(__file__).parents[2] / "docs" / "upgrade.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\d+\. (.+)$", text, re.MULTILINE)
    assert tuple(listed) == RANKING_WORDS
    assert f"percentage: {ENOUGH * 100:.0f} unless said" in text
    for cuda, driver in OLDEST_DRIVER.items():
        assert re.search(rf"CUDA {cuda}\s+needs\s+(?:driver )?{driver}", text)
