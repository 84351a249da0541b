"""Which build to move to: what is counted of a candidate, what decides between two, when to stay or to say nothing."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from knowngood.domain.builds.architectures import OLDEST_DRIVER
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Issue, Requires, Severity, Signature, SignatureKind
from knowngood.domain.message import Message, english, quoted
from knowngood.domain.verdicts.inference import PYTHON_RULE
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import Prospect, prospect_of
from knowngood.domain.verdicts.verdict import Assurance, Basis, Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.move.pair import Group
from knowngood.move.upgrade.candidates import (
    ENOUGH,
    LEAST,
    WEIGHING_WORDS,
    Candidate,
    Rating,
    Tally,
    UpgradeQuestion,
    weight_of,
)
from knowngood.move.upgrade.constraints import Constraints, read_pin
from knowngood.move.upgrade.ranking import RANKING_WORDS, UpgradeAdvice, advise, rank_key
from knowngood.move.upgrade.reasons import UpgradeDecision
from knowngood.move.upgrade.wording import answer, measured
from tests.domain import given_claims
from tests.domain.given_claims import GPU
from tests.make import HARDWARE, NOON, make_build, make_issue

TORCH_25, TORCH_26, TORCH_27 = make_build("2.5.1+cu124"), make_build("2.6.0+cu124"), make_build("2.7.1+cu126")
BUILDS = (TORCH_25, TORCH_26, TORCH_27)
DOCUMENT = Path(__file__).parents[3] / "docs" / "upgrade.md"


def issue_of(id_: str, **changes: Any) -> Issue:
    return make_issue(id_, workarounds=("eager", "clone"), **changes)


_WORKAROUNDS = {
    "c": WorkaroundVerdict.EFFECTIVE,
    "p": WorkaroundVerdict.PARTIAL,
    "u": WorkaroundVerdict.UNVERIFIED,
}


def cell_of(id_: str, build: Build, sign: str, hardware: str = HARDWARE) -> Cell:
    """A sign as `given_claims` has them; `c` fails with a workaround, `p` with one that helps in part, `u` with one
    that was not tried; a capital letter rests on a single run, where others rest on two.
    """
    helps = _WORKAROUNDS.get(sign.lower())
    letter = "x" if helps else sign.lower()
    found = {"eager": WorkaroundFinding(helps)} if helps else {}
    runs = 1 if sign.isupper() else 2
    return given_claims.made(id_, build, letter, hardware, runs=runs, workarounds=found)


def world(
    rows: dict[str, str], *, silent: tuple[str, ...] = (), builds: tuple[Build, ...] = BUILDS, **severities: Severity
) -> Known:
    """Per issue one sign for each build; a blank is not run. Severities are high unless said."""
    cells = [
        cell_of(id_, build, sign)
        for id_, signs in rows.items()
        for sign, build in zip(signs, builds, strict=True)
        if sign != " "
    ]
    issues = [issue_of(id_, silent=id_ in silent, severity=severities.get(id_, Severity.HIGH)) for id_ in rows]
    return known_of(cells, issues, builds)


def known_of(cells: list[Cell], issues: list[Issue], builds: tuple[Build, ...] = BUILDS) -> Known:
    return given_claims.known_of(cells, issues, {build.id: build for build in builds})


def ask(known: Known, start: Build = TORCH_25, **changes: Any) -> UpgradeAdvice:
    watched = changes.pop("watched", sorted(known.issues))
    return advise(UpgradeQuestion(start, tuple(known.issues[id_] for id_ in watched), **changes), known)


def ids(advice: UpgradeAdvice) -> list[str]:
    return [one.build.id for one in advice.candidates]


def on(advice: UpgradeAdvice, build: Build) -> Candidate:
    return next(one for one in advice.candidates if one.build == build)


# -- what is counted ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("finding", list(WorkaroundVerdict))
def test_every_verdict_is_one_prospect_and_only_an_effective_workaround_helps(
    verdict: Verdict, finding: WorkaroundVerdict
) -> None:
    cell = Cell("a", TORCH_26.id, HARDWARE, verdict, quoted(""), workarounds={"eager": WorkaroundFinding(finding)})
    failing = {Verdict.AFFECTED, Verdict.FLAKY}
    if verdict in failing and finding is WorkaroundVerdict.EFFECTIVE:
        assert prospect_of(cell) is Prospect.NEEDS_WORKAROUND
    else:
        assert prospect_of(cell) is {
            Verdict.NOT_AFFECTED: Prospect.PASSES,
            Verdict.NOT_APPLICABLE: Prospect.DOES_NOT_APPLY,
            Verdict.INCONCLUSIVE: Prospect.NOT_KNOWN,
            Verdict.NOT_RUN: Prospect.NOT_KNOWN,
            Verdict.NO_BUILD: Prospect.NOT_KNOWN,
            Verdict.BIGGER: Prospect.BIGGER,
            Verdict.MORE_WORK: Prospect.MORE_WORK,
            Verdict.SLOWER: Prospect.SLOWER,
        }.get(verdict, Prospect.FAILS)


SIGNS = "xo!?-0cp "
FAILING, WITHOUT_ANSWER, ABSENT = frozenset("x!cp"), frozenset("? "), frozenset("-0")


@pytest.mark.parametrize(("before", "after"), list(product(SIGNS, SIGNS)))
def test_what_turned_is_told_of_every_pair(before: str, after: str) -> None:
    """The rule in other words than the code's."""
    counts = on(ask(world({"a": f"{before}{after} "})), TORCH_26).counts
    turned = {
        Tally.GAINED: before in FAILING and after == "o",
        Tally.LOST: before == "o" and after in FAILING,
        Tally.LOST_WITH_WORKAROUND: before == "o" and after == "c",
        Tally.NEW: before in ABSENT and after in FAILING,
        Tally.NOT_KNOWN_BEFORE: before in WITHOUT_ANSWER and after in FAILING,
    }
    assert {tally: counts[tally] for tally in turned} == {tally: int(told) for tally, told in turned.items()}


def test_the_build_one_is_on_is_counted_like_the_others() -> None:
    advice = ask(world({"a": "xoo", "b": "ooo", "c": "coo", "d": " oo", "e": "-xx"}))
    assert (advice.start, advice.base.rating) == (TORCH_25, Rating.HERE)
    assert (advice.base.measured, advice.base.applicable) == (3, 4)
    told = {tally: count for tally, count in advice.base.counts.items() if count}
    assert told == {Tally.PASSES: 1, Tally.NEEDS_WORKAROUND: 1, Tally.FAILS: 1, Tally.NOT_KNOWN: 1}
    assert advice.failing == ("a", "c")


def test_a_flaky_failure_is_gained_only_where_the_passes_are_too_many_to_be_luck() -> None:
    one = on(ask(world({"a": "~oo"})), TORCH_26)
    assert (one.counts[Tally.PASSES], one.counts[Tally.GAINED]) == (1, 0)


def test_what_is_inferred_counts_and_is_marked() -> None:
    """2.6.0 was asked on Python 3.12 alone."""
    wheels = given_claims.WHEELS
    cells = [
        given_claims.made(given_claims.ROW.id, given_claims.BUILDS[wheels[0], "3.11"], "x"),
        given_claims.made(given_claims.ROW.id, given_claims.BUILDS[wheels[1], "3.12"], "o"),
    ]
    known = given_claims.store(cells)
    advice = ask(known, given_claims.BUILDS[wheels[0], "3.11"], watched=[given_claims.ROW.id])
    assert (advice.decision, advice.best and advice.best.build.id) == (UpgradeDecision.GO, f"torch-{wheels[1]}")
    (item,) = on(advice, given_claims.BUILDS[wheels[1], "3.11"]).items
    assert (item.group, item.assurance) == (Group.FIXED, Assurance.INFERRED)
    assert item.after.basis is not None
    assert item.after.basis.build == f"torch-{wheels[1]}~py312"


def test_where_an_environment_cannot_be_installed_nothing_is_gained_and_nothing_can_be_run() -> None:
    one = on(ask(world({"a": "x0o"})), TORCH_26)
    assert (one.counts[Tally.NOT_KNOWN], one.counts[Tally.GAINED]) == (1, 0)
    assert (one.missing.closed, one.missing.count) == (("a",), 0)


def test_the_graver_of_two_hardware_classes_counts() -> None:
    other = "cuda-sm_80"
    issue = issue_of("g", requires=Requires(device=Device.CUDA))
    cells = [
        cell_of("g", build, sign, class_)
        for class_, signs in ((GPU, "xoo"), (other, "xxo"))
        for sign, build in zip(signs, BUILDS, strict=True)
    ]
    known = known_of(cells, [issue])
    (item,) = on(ask(known), TORCH_26).items
    assert (item.prospect, item.after.hardware) == (Prospect.FAILS, other)
    assert on(ask(known), TORCH_27).counts[Tally.GAINED] == 1
    only = ask(known, constraints=Constraints(hardware=(GPU,)))
    assert on(only, TORCH_26).counts[Tally.GAINED] == 1


def test_what_is_lost_on_one_class_counts_before_what_fails_still_on_another() -> None:
    cells = [
        cell_of("g", build, sign, class_)
        for class_, signs in ((GPU, "ox"), ("cuda-sm_80", "xx"))
        for sign, build in zip(signs, BUILDS[:2], strict=True)
    ]
    known = known_of(cells, [issue_of("g", requires=Requires(device=Device.CUDA))])
    (item,) = on(ask(known), TORCH_26).items
    assert (item.group, item.after.hardware) == (Group.NEWLY_BROKEN, GPU)


def test_an_issue_counts_on_the_classes_where_it_was_measured_unless_they_are_named() -> None:
    classes = {"g": GPU, "h": "cuda-sm_80"}
    cells = [
        cell_of(id_, build, sign, class_)
        for id_, class_ in classes.items()
        for sign, build in zip("xoo", BUILDS, strict=True)
    ]
    known = known_of(cells, [issue_of(id_, requires=Requires(device=Device.CUDA)) for id_ in ("g", "h", "nowhere")])
    advice = ask(known, watched=["g", "h"])
    assert [(item.issue.id, item.after.hardware) for item in on(advice, TORCH_27).items] == [*classes.items()]
    assert on(advice, TORCH_27).counts[Tally.GAINED] == 2
    assert advice.hardware == ("cuda-sm_80", GPU)
    named = ask(known, watched=["g", "h"], constraints=Constraints(hardware=(GPU,)))
    assert (named.hardware, on(named, TORCH_27).counts[Tally.NOT_KNOWN]) == ((GPU,), 1)
    nowhere = ask(known, watched=["g", "nowhere"])
    assert (nowhere.hardware, on(nowhere, TORCH_27).counts[Tally.NOT_KNOWN]) == (("cuda-sm_80", GPU), 1)


def test_items_stand_gravest_first_and_silent_ones_before_loud_ones() -> None:
    rows = {"a": "xoo", "b": "oxx", "c": "oxx", "d": "oo ", "e": "xxx", "f": "occ", "g": "oxx"}
    one = on(ask(world(rows, silent=("c",), g=Severity.CRITICAL)), TORCH_27)
    assert [item.issue.id for item in one.items] == ["c", "g", "b", "f", "e", "d", "a"]


def test_only_what_is_gained_on_single_runs_is_to_be_confirmed() -> None:
    doubtful = on(ask(world({"a": "xO ", "b": "xo ", "c": "OX ", "d": "XX "})), TORCH_26).doubtful
    assert doubtful.to_run == ("a",)
    assert "--issues a " in " ".join(doubtful.commands)


# -- which is better ---------------------------------------------------------------------------------------------------


# Each row: the issues with their signs on 2.5.1 (where one is), 2.6.0 and 2.7.1. Of equals 2.7.1 would be first, as the
# newer release, so that a row in which 2.6.0 is first shows the one rule that it is named for.
@pytest.mark.parametrize(
    ("rows", "silent", "enough"),
    [
        pytest.param({"a": "xoo", "b": "oo ", "c": "oo "}, (), 0.8, id=RANKING_WORDS[0]),
        pytest.param({"a": "xoo", "b": "oox"}, (), 0.8, id=RANKING_WORDS[1]),
        pytest.param({"a": "xoo", "b": "oxo", "c": "oox"}, ("c",), 0.8, id=f"{RANKING_WORDS[1]}: silence weighs more"),
        pytest.param({"a": "xoo", "b": " ox"}, (), 0.8, id=f"{RANKING_WORDS[1]}: not known before"),
        pytest.param({"a": "xoO", "b": "xxO"}, (), 0.8, id=RANKING_WORDS[2]),
        pytest.param({"a": "xoo", "b": "xox"}, (), 0.8, id=RANKING_WORDS[3]),
        pytest.param({"a": "xoo", "b": "xoo", "c": "ooc"}, (), 0.8, id=f"{RANKING_WORDS[3]}: lost with a workaround"),
        pytest.param({"a": "xox", "b": "xxo"}, ("a",), 0.8, id=f"{RANKING_WORDS[3]}: silence weighs more"),
        pytest.param({"a": "xoo", "b": "x-x"}, (), 0.8, id=RANKING_WORDS[4]),
        pytest.param({"a": "xoo", "b": "xcp"}, (), 0.8, id=f"{RANKING_WORDS[4]}: one that helps in part is none"),
        pytest.param({"a": "xoo", "b": "oo?"}, (), 0.5, id=RANKING_WORDS[5]),
        pytest.param({"a": "xoo", "b": "x-c"}, (), 0.8, id=RANKING_WORDS[6]),
        pytest.param({"a": "x  ", "b": "xo "}, (), 0.8, id="of those not measured enough, fewer not known"),
        pytest.param({"a": "xxo", "b": "oxx", "c": "oo ", "d": "oo "}, (), 0.8, id="enough outweighs what is lost"),
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


def test_what_is_not_watched_is_told_and_settles_a_tie() -> None:
    known = world({"a": "xoo", "b": "xox", "c": "oxx", "d": " ox"})
    advice = ask(known, watched=["a"])
    assert ids(advice) == [TORCH_26.id, TORCH_27.id]
    assert english(answer(advice)).endswith("Outside of what you watch (3): 1 gained, 1 lost.")
    assert ids(ask(known, watched=["a", "b", "c", "d"])) == [TORCH_26.id, TORCH_27.id]
    assert ids(ask(world({"a": "xoo", "b": "xx ", "c": "  x"}), watched=["a"])) == [TORCH_27.id, TORCH_26.id]


@pytest.mark.parametrize(
    ("severity", "silent", "weight"),
    [
        (Severity.LOW, False, 1),
        (Severity.MEDIUM, False, 2),
        (Severity.HIGH, False, 4),
        (Severity.CRITICAL, False, 8),
        (Severity.HIGH, True, 8),
    ],
)
def test_an_issue_weighs_what_is_written(severity: Severity, silent: bool, weight: int) -> None:
    assert weight_of(issue_of("a", severity=severity, silent=silent)) == weight
    assert f"{weight} ({severity}" in WEIGHING_WORDS or silent


# -- what is decided ---------------------------------------------------------------------------------------------------


def test_the_best_is_recommended_in_one_sentence() -> None:
    rows = {"a": "xxo", "b": "xcc", "c": "xxx", "d": "ooo", "e": "ooc", "f": "xoo", "g": "xxo", "h": "-xx", "i": "oo "}
    advice = ask(world(rows))
    assert (advice.decision, advice.best and advice.best.build.id) == (UpgradeDecision.GO, TORCH_27.id)
    assert ", ".join(map(english, advice.why)) == (
        "3 gained, 1 lost (it has a workaround), 1 fails in new features, 1 not known there"
    )
    assert [one.rating for one in advice.candidates] == [Rating.RECOMMENDED, Rating.ALSO_GOOD]


@pytest.mark.parametrize(
    ("rows", "decision", "rating", "said"),
    [
        pytest.param(
            {"a": "oxo"}, UpgradeDecision.STAY, Rating.NO_GAIN, "Nothing that you watch fails", id="all is well"
        ),
        pytest.param({"a": "xxx"}, UpgradeDecision.STAY, Rating.NO_GAIN, "gains anything", id="nothing is gained"),
        pytest.param(
            {"a": "xoo", "b": "oxx"}, UpgradeDecision.STAY, Rating.LOSES, "loses something", id="each loses one"
        ),
        pytest.param(
            {"a": "xoo", "b": "opp"}, UpgradeDecision.STAY, Rating.LOSES, "loses something", id="helped in part"
        ),
        pytest.param(
            {"a": "xoo", "b": "occ"}, UpgradeDecision.STAY, Rating.NO_GAIN, "outweigh", id="as much as gained"
        ),
        pytest.param(
            {"a": "xo ", "b": "x  "},
            UpgradeDecision.CANNOT_SAY,
            Rating.NOT_ENOUGH,
            "measured enough",
            id="too few known",
        ),
        pytest.param(
            {"a": " oo", "b": "?oo"},
            UpgradeDecision.CANNOT_SAY,
            Rating.NOT_ENOUGH,
            "0 of 2 issues have an answer",
            id="blind",
        ),
        pytest.param(
            {"a": "xoo", "b": " oo", "c": " oo"},
            UpgradeDecision.CANNOT_SAY,
            Rating.NOT_ENOUGH,
            "1 of 3",
            id="hardly measured",
        ),
        pytest.param(
            {"a": "xOO"}, UpgradeDecision.CANNOT_SAY, Rating.NOT_CONFIRMED, "a single run", id="run once there"
        ),
        pytest.param(
            {"a": "Xoo"}, UpgradeDecision.CANNOT_SAY, Rating.NOT_CONFIRMED, "a single run", id="run once here"
        ),
        pytest.param(
            {"a": "xoo", "b": " xx"},
            UpgradeDecision.CANNOT_SAY,
            Rating.MAY_LOSE,
            "not known before",
            id="it may be a loss",
        ),
        pytest.param(
            {"a": "xoo", "b": "xoo", "c": "ouu"},
            UpgradeDecision.CANNOT_SAY,
            Rating.MAY_LOSE,
            "workarounds that are not verified there",
            id="the loss has a workaround that was not tried",
        ),
        pytest.param(
            {"a": "xoo", "b": "xoo", "c": "ouu", "d": "oxx"},
            UpgradeDecision.STAY,
            Rating.LOSES,
            "loses 1 so",
            id="of two losses one has nothing left to try",
        ),
        pytest.param(
            {"a": "xoo", "c": "ouu"}, UpgradeDecision.STAY, Rating.NO_GAIN, "outweigh", id="a loss that weighs as much"
        ),
        pytest.param(
            {"a": "xoo", "b": " cc"},
            UpgradeDecision.CANNOT_SAY,
            Rating.MAY_LOSE,
            "not known before",
            id="it may cost as much",
        ),
        pytest.param(
            {"a": "xoo", "b": " oo"}, UpgradeDecision.GO, Rating.RECOMMENDED, "1 gained", id="half measured is enough"
        ),
        pytest.param(
            {"a": "xoo", "b": "xOO"}, UpgradeDecision.GO, Rating.RECOMMENDED, "2 gained", id="one gain is confirmed"
        ),
        pytest.param({"a": "xoo", "b": "-xx"}, UpgradeDecision.GO, Rating.RECOMMENDED, "1 gained", id="new is no loss"),
        pytest.param(
            {"a": "xoo", "b": "0xx"}, UpgradeDecision.GO, Rating.RECOMMENDED, "1 gained", id="nor is what was not built"
        ),
    ],
)
def test_every_state_has_its_decision_and_its_reason(
    rows: dict[str, str], decision: UpgradeDecision, rating: Rating, said: str
) -> None:
    advice = ask(world(rows))
    assert (advice.decision, advice.best is not None) == (decision, decision is UpgradeDecision.GO)
    assert advice.candidates[0].rating is rating
    assert said in " ".join(map(english, advice.why))


def short(said: str | Message) -> str:
    """A sentence with `25`, `26` and `27` for the builds."""
    words = said if isinstance(said, str) else english(said)
    for build, name in ((TORCH_25, "25"), (TORCH_26, "26"), (TORCH_27, "27")):
        words = words.replace(build.id, name).replace(build.in_words, name)
    return words


HERE, TOO_LITTLE = "where you are", "where you are; too little to compare: run 2 (about 2 min)"
AS_GOOD = "as good: 27 is preferred as the newer release, or the wheel of the default index"
BLIND = "nothing to compare with: 25 is hardly measured"
EACH_LOSES = (
    "Every newer build with enough measured loses something without a workaround: the best, 27, gains {gained} and "
    "loses {lost} so."
)
COSTS_AS_MUCH = (
    "On no newer build with enough measured does what is gained outweigh what newly needs a workaround: the best, 27, "
    "gains 1 and loses 2, each with a workaround."
)


def gains(gained: int, confirmed: int, other: str) -> tuple[str, ...]:
    """The reasons where 27 is the best; `other` is said of 26."""
    return (HERE, f"27: {confirmed} of {gained} gained on two runs or more on both sides", f"26: {other}")


@pytest.mark.parametrize(
    ("rows", "reasons", "answer", "find_out"),
    [
        (
            {"a": "oxo"},
            (HERE, "27: gains nothing", "26: 1 lost without a workaround"),
            "Nothing that you watch fails on 25.",
            (),
        ),
        (
            {"a": "xxx"},
            (HERE, "27: gains nothing", "26: gains nothing"),
            "No newer build with enough measured gains anything: the best is 27.",
            (),
        ),
        (
            {"a": "xoo", "b": "xoo", "c": "opp", "d": "oxc"},
            (HERE, "27: 1 lost without a workaround", "26: 2 lost without a workaround"),
            EACH_LOSES.format(gained=2, lost=1),
            (),
        ),
        (
            {"a": "xoo", "silent": "oxx", "loud": "oxx"},
            (
                HERE,
                "27: 2 lost without a workaround (1 with wrong numbers and no error)",
                "26: 2 lost without a workaround (1 with wrong numbers and no error)",
            ),
            EACH_LOSES.format(gained=1, lost=2),
            (),
        ),
        (
            {"a": "xoo", "b": "occ", "c": "occ"},
            (
                HERE,
                "27: what is gained (1) weighs no more than what is lost (2), which needs a workaround",
                "26: what is gained (1) weighs no more than what is lost (2), which needs a workaround",
            ),
            COSTS_AS_MUCH,
            (),
        ),
        (
            {"a": "xo ", "b": "x  "},
            (
                HERE,
                "26: not enough measured: 1 without an answer (run 1: about 1 min)",
                "27: not enough measured: 2 without an answer (run 2: about 2 min)",
            ),
            "No newer build is measured enough: most is known of 26, 1 of 2.",
            ("On 26 without an answer: 1 (about 1 min)",),
        ),
        (
            {"a": " oo", "b": "?oo"},
            (TOO_LITTLE, f"27: {BLIND}", f"26: {BLIND}"),
            "On 25, 0 of 2 issues have an answer: too few to compare. To compare, run the other 2 there (about 2 min).",
            ("On 25 without an answer: 2 (about 2 min)",),
        ),
        (
            {"a": "xoo", "b": "0oo", "c": "0oo"},
            (HERE, f"27: {BLIND}", f"26: {BLIND}"),
            "On 25, 1 of 3 issues have an answer: too few to compare.",
            (),
        ),
        (
            {"a": "-  ", "b": "-  "},
            (
                HERE,
                "27: not enough measured: 2 without an answer (run 2: about 2 min)",
                "26: not enough measured: 2 without an answer (run 2: about 2 min)",
            ),
            "Nothing that you watch can exist on 25.",
            ("On 27 without an answer: 2 (about 2 min)",),
        ),
        (
            {"a": "xOO", "b": "xOO"},
            (
                HERE,
                "27: 2 gained, none on more than a single run (to confirm: about 1 min)",
                "26: 2 gained, none on more than a single run (to confirm: about 1 min)",
            ),
            "27 gains 2, but no gain rests on more than a single run.",
            ("To confirm 2 on both sides (about 1 min)",),
        ),
        (
            {"a": "xoo", "b": "xoo", "c": " xx"},
            (HERE, "27: fails there, not known before: 1", "26: fails there, not known before: 1"),
            "27 gains 2, but may lose 1: what fails there and is not known before.",
            ("On 25 without an answer: 1 (about 1 min)",),
        ),
        (
            {"a": "xoo", "b": "xOO", "c": "-xx"},
            gains(2, 1, AS_GOOD),
            "2 gained, none lost, 1 fails in new features",
            (),
        ),
        ({"a": "x0o"}, gains(1, 1, "not enough measured: 1 without an answer"), "1 gained, none lost", ()),
        ({"a": "x-o"}, gains(1, 1, "nothing that you watch can exist there"), "1 gained, none lost", ()),
        ({"a": "xoo", "b": "xoo", "c": "occ"}, gains(2, 2, AS_GOOD), "2 gained, 1 lost (it has a workaround)", ()),
        (
            {"a": "xoo", "b": "xoo", "c": "xoo", "d": "occ", "e": "occ"},
            gains(3, 3, AS_GOOD),
            "3 gained, 2 lost (each has a workaround)",
            (),
        ),
        (
            {"a": "xoo", "b": "xoo", "c": "xoo", "d": "xxo"},
            gains(4, 4, "also good: 3 gained, 4 on 27"),
            "4 gained, none lost",
            (),
        ),
        (
            {"a": "xoo", "b": "xoo", "c": "xoo", "d": "oco", "e": "oo "},
            gains(3, 3, "also good: 1 lost with a workaround, 0 on 27"),
            "3 gained, none lost, 1 not known there",
            (),
        ),
        (
            {"a": "xoo", "b": "xx-"},
            gains(1, 1, "also good: 1 failing without a workaround known to help, 0 on 27"),
            "1 gained, none lost",
            (),
        ),
        (
            {"a": "xoo", "b": "xoo", "c": "xoo", "d": "xoo", "e": "o?o"},
            gains(4, 4, "also good: 1 not known, 0 on 27"),
            "4 gained, none lost",
            (),
        ),
        ({"a": "xoo", "b": " oo"}, gains(1, 1, AS_GOOD), "1 gained, none lost", ()),
        (
            {"a": "xoo", "b": "xc-"},
            gains(1, 1, "also good: 1 in need of a workaround, 0 on 27"),
            "1 gained, none lost",
            (),
        ),
    ],
)
def test_every_answer_is_told_in_its_own_sentences(
    rows: dict[str, str], reasons: tuple[str, ...], answer: str, find_out: tuple[str, ...]
) -> None:
    advice = ask(world(rows, silent=("silent",)))
    told = [short(advice.base.why), *(f"{short(one.build.id)}: {short(one.why)}" for one in advice.candidates)]
    assert told == [*reasons]
    assert (", " if advice.best else " ").join(map(short, advice.why)) == answer
    assert tuple(short(one.what) for one in advice.find_out) == find_out


def test_an_advice_holds_what_it_was_asked() -> None:
    known = world({"a": "xoo"})
    constraints = Constraints(hardware=(HARDWARE,))
    advice = ask(known, constraints=constraints, enough=0.6, notes=(quoted("assumed"),))
    assert (advice.watched, advice.constraints, advice.enough) == ((known.issues["a"],), constraints, 0.6)
    assert (advice.hardware, advice.as_of, advice.notes) == ((HARDWARE,), known.as_of, (quoted("assumed"),))


def test_builds_that_break_a_constraint_are_left_out_in_the_order_of_releases() -> None:
    known = world({"a": "xoo"}, builds=(TORCH_25, TORCH_27, TORCH_26))
    advice = ask(known, constraints=Constraints(pins=(read_pin("torch<2.6"),)))
    assert [one.build for one in advice.left_out] == [TORCH_26.id, TORCH_27.id]


def test_a_confirmed_candidate_goes_before_one_that_gains_more_on_single_runs() -> None:
    advice = ask(world({"a": "xoO", "b": "xxO", "c": "xxO"}))
    assert (advice.best and advice.best.build) == TORCH_26
    assert [one.rating for one in advice.candidates] == [Rating.RECOMMENDED, Rating.NOT_CONFIRMED]
    assert english(on(advice, TORCH_27).why).startswith("3 gained, none on more than a single run (to confirm: about ")


def test_a_gain_of_the_least_weight_is_one() -> None:
    alone = ask(world({"a": "xoo"}, a=Severity.LOW))
    assert (alone.decision, on(alone, TORCH_27).gain) == (UpgradeDecision.GO, 1)
    beside = ask(world({"a": "xoO", "b": "xxO"}, a=Severity.LOW))
    assert beside.best is not None
    assert beside.best.build == TORCH_26


def test_without_a_newer_build_one_stays() -> None:
    advice = ask(world({"a": "xxx"}), start=TORCH_27)
    assert (advice.decision, advice.candidates, english(advice.why[0])) == (
        UpgradeDecision.STAY,
        (),
        "No newer build is in the catalogue.",
    )


def test_a_build_that_breaks_a_constraint_is_named_apart_with_the_reason() -> None:
    advice = ask(world({"a": "xoo"}), constraints=Constraints(pins=(read_pin("torch<2.7"),)))
    assert ids(advice) == [TORCH_26.id]
    assert [(one.build, tuple(map(english, one.reasons))) for one in advice.left_out] == [
        (TORCH_27.id, ("has torch 2.7.1+cu126, and torch<2.7 is wanted",))
    ]
    every = ask(world({"a": "xoo"}), constraints=Constraints(pins=(read_pin("torch<2.6"),)))
    assert (every.decision, english(every.why[0])) == (
        UpgradeDecision.STAY,
        "Every newer build breaks a constraint (2).",
    )


def test_a_row_that_is_new_with_its_package_rejects_nothing() -> None:
    """2.15.0 was rejected for torchao's row alone, which torch 2.5.1 cannot have."""
    known = world({"a": "xoo", "b": "xoo", "ao": "-!!"}, silent=("ao",))
    assert (ask(known).decision, on(ask(known), TORCH_27).counts[Tally.NEW]) == (UpgradeDecision.GO, 1)


def test_a_failure_never_makes_the_evidence_look_more_complete() -> None:
    """Counted as answers, the two failures would lift the candidate over the threshold."""
    few = {"a": "xoo", "b": "oo ", "c": "xoo", "d": "xoo"}
    before = on(ask(world(few), enough=0.8), TORCH_27)
    after = on(ask(world(few | {"e": "xxx", "f": "xxx"}), enough=0.8), TORCH_27)
    assert (before.rating, after.rating) == (Rating.NOT_ENOUGH, Rating.NOT_ENOUGH)
    assert before.coverage == 0.75
    assert after.coverage > 0.8 > after.assurance == before.assurance


def test_how_much_is_enough_can_be_named() -> None:
    rows = {"a": "x o", "b": "x o", "c": "x  "}
    assert ask(world(rows)).decision is UpgradeDecision.CANNOT_SAY
    assert ask(world(rows), enough=0.6).decision is UpgradeDecision.GO


def test_old_evidence_stands() -> None:
    """As everywhere: it is marked, and after half a year not every upgrade is off."""
    old = NOON.replace(year=NOON.year - 2)
    cells = [given_claims.made("a", build, sign, measured_at=old) for sign, build in zip("xoo", BUILDS, strict=True)]
    assert ask(known_of(cells, [issue_of("a")])).decision is UpgradeDecision.GO


# -- a GPU class -------------------------------------------------------------------------------------------------------


def gpu_world(own: str, alike: str, count: int = 20, *, carries: bool = True) -> Known:
    """`count` rows that name no device, run on the CPU, beside four of GPUs. `carries`: both are known to agree."""
    cells, issues = [], []
    for number in range(count):
        issues.append(issue_of(f"any-{number}", requires=Requires(device=Device.ANY)))
        cells += [cell_of(f"any-{number}", build, sign) for sign, build in zip(alike, BUILDS, strict=True)]
    for number in range(4):
        issues.append(issue_of(f"gpu-{number}", requires=Requires(device=Device.CUDA)))
        found = zip(own, BUILDS, strict=True)
        cells += [cell_of(f"gpu-{number}", build, sign, GPU) for sign, build in found if sign != " "]
    known = known_of(cells, issues)
    return given_claims.carrying(known) if carries else known


def test_what_is_the_same_on_every_device_does_not_make_a_gpu_look_measured() -> None:
    advice = ask(gpu_world(" oo", "xoo"), constraints=Constraints(hardware=(GPU,)))
    assert advice.decision is UpgradeDecision.CANNOT_SAY
    assert (advice.base.measured, advice.base.applicable, advice.base.from_cpu) == (0, 24, 20)
    assert english(advice.why[0]) == (
        "torch 2.5.1 (CUDA 12.4) is hardly measured: 0 of 24 on what is asked for, and 20 more from the CPU."
    )
    assert advice.base.missing.to_run == tuple(f"gpu-{number}" for number in range(4))
    on_cpu = ask(gpu_world(" oo", "xoo"), constraints=Constraints(hardware=(HARDWARE,)))
    assert (on_cpu.decision, on_cpu.base.measured) == (UpgradeDecision.GO, 20)


def test_beside_rows_that_were_run_there_it_counts() -> None:
    advice = ask(gpu_world("xxx", "xoo"), constraints=Constraints(hardware=(GPU,)))
    assert (advice.decision, on(advice, TORCH_27).counts[Tally.GAINED]) == (UpgradeDecision.GO, 20)


def test_where_nothing_else_is_watched_it_is_what_counts() -> None:
    known = given_claims.carrying(replace(gpu_world("   ", "xoo", count=2), hardware=(HARDWARE, GPU)))
    advice = ask(known, watched=["any-0", "any-1"], constraints=Constraints(hardware=(GPU,)))
    assert (advice.decision, advice.base.measured, advice.base.from_cpu) == (UpgradeDecision.GO, 0, 2)


def test_counts_tell_what_was_run_there_from_other_pythons_and_from_the_cpu() -> None:
    known = gpu_world("xoo", "xoo", count=2)
    inferred = {
        place: replace(cell, basis=Basis(PYTHON_RULE, cell.build, GPU, 40, 40))
        for place, cell in known.cells.items()
        if place[0] in {"gpu-0", "gpu-1", "gpu-2"}
    }
    known = given_claims.carrying(replace(known, cells={**known.cells, **inferred}))
    one = on(ask(known, constraints=Constraints(hardware=(GPU,))), TORCH_27)
    assert (one.measured, one.from_python, one.from_cpu, one.applicable) == (4, 3, 2, 6)
    assert english(measured(one)) == "4 of 6, 3 with another Python, and 2 from the CPU"


def test_while_the_cpu_does_not_count_it_is_said_what_that_costs() -> None:
    advice = ask(gpu_world("xoo", "xoo", carries=False), constraints=Constraints(hardware=(GPU,)))
    assert (advice.decision, advice.base.from_cpu) == (UpgradeDecision.CANNOT_SAY, 0)
    assert advice.base.missing.to_run == tuple(sorted(f"any-{number}" for number in range(20)))
    assert f" --hardware {GPU} --where" in advice.base.missing.commands[0]
    start = advice.start.in_words
    (told,) = map(english, advice.beside)
    assert told == (
        f"On {start} only the CPU has an answer for 20 of 24 issues, and it does not count for a GPU until "
        "the two are known to agree (so far 0 of 0 pairs do)."
    )
    assert told in english(answer(advice))
    for known, hardware in ((gpu_world("xoo", "xoo"), GPU), (gpu_world("xoo", "xoo", carries=False), HARDWARE)):
        assert ask(known, constraints=Constraints(hardware=(hardware,))).beside == ()


def test_what_is_missing_on_a_gpu_is_run_on_one() -> None:
    one = on(ask(gpu_world("xo ", "xoo", count=1), constraints=Constraints(hardware=(GPU,))), TORCH_27)
    assert one.missing.to_run == tuple(f"gpu-{number}" for number in range(4))
    assert f" --hardware {GPU} --where" in one.missing.commands[0]


# -- the price ---------------------------------------------------------------------------------------------------------


def test_missing_cells_have_a_price_and_the_very_commands() -> None:
    known = world({"a": "xo ", "b": "xo?", "c": "xoo"})
    durations = {
        ("a", "control", "default"): 20.0,
        ("a", "baseline", "default"): 40.0,
        ("b", "control", "default"): 6.0,
    }
    one = on(ask(known, durations=durations, environment_s=14.0), TORCH_27)
    assert (one.missing.to_run, one.missing.to_ask_again) == (("a",), ("b",))
    assert (one.missing.seconds, one.missing.guessed) == (20.0 + 40.0 + 6.0 + 15.0 + 14.0, 1)
    assert one.missing.minutes == 2
    assert one.missing.commands == (
        "knowngood run --builds torch-2.7.1+cu126 --issues a --hardware cpu-x86_64 --where-affected",
        "knowngood run --builds torch-2.7.1+cu126 --issues b --hardware cpu-x86_64 --where-affected --force",
    )


def test_what_time_alone_tells_is_no_run_to_ask_for_and_holds_back_no_release() -> None:
    known = world({"a": "xo ", "b": "xoo", **{f"t{number}": "   " for number in range(9)}})
    timed = Signature(SignatureKind.SLOWER)
    issues = [replace(row, signature=timed) if row.id.startswith("t") else row for row in known.issues.values()]
    one = on(ask(known_of(list(known.cells.values()), issues)), TORCH_27)
    assert one.missing.to_run == ("a",)
    assert one.counts[Tally.NOT_KNOWN] == 10
    assert one.coverage == 0.5


def test_to_confirm_a_gain_costs_one_more_run_on_each_side_that_was_run_once() -> None:
    durations = {("a", "baseline", "default"): 40.0, ("b", "baseline", "default"): 7.0}
    advice = ask(world({"a": "XO ", "b": "xO "}), durations=durations, environment_s=10.0)
    (found,) = advice.find_out
    assert english(found.what) == "To confirm 2 on both sides (about 2 min)"
    assert found.commands == (
        "knowngood run --builds torch-2.5.1+cu124,torch-2.6.0+cu124 --issues a,b --hardware cpu-x86_64 --confirm",
    )
    assert on(advice, TORCH_26).doubtful.seconds == 40.0 + 40.0 + 7.0 + 10.0 + 10.0


def test_both_sides_are_priced_where_both_are_hardly_measured() -> None:
    advice = ask(world({"a": "   ", "b": "  x", "c": "   "}, builds=BUILDS))
    assert advice.decision is UpgradeDecision.CANNOT_SAY
    builds = [found.commands[0].split()[3] for found in advice.find_out]
    assert builds == [TORCH_25.id, advice.candidates[0].build.id]


def test_the_build_one_is_on_alone_is_priced_where_enough_is_measured_of_the_others() -> None:
    advice = ask(world({"a": " oo", "b": " oo", "c": " oo", "d": " oo", "e": "   "}))
    assert advice.candidates[0].missing.count == 1
    assert [found.commands[0].split()[3] for found in advice.find_out] == [TORCH_25.id]


@pytest.mark.parametrize("rows", [{"a": "xoo"}, {"a": "xxx"}])
def test_only_what_cannot_be_said_has_a_price(rows: dict[str, str]) -> None:
    assert ask(world(rows)).find_out == ()


def test_with_nothing_measured_at_all_nothing_can_be_said() -> None:
    advice = ask(known_of([], [issue_of("a")]))
    assert advice.decision is UpgradeDecision.CANNOT_SAY
    assert all(found.commands for found in advice.find_out)
    assert all(one.counts[Tally.NOT_KNOWN] == 1 for one in advice.candidates)


def test_the_documented_rule_is_the_rule() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    listed = re.findall(r"^\d+\. (.+)$", text, re.MULTILINE)
    assert tuple(listed) == RANKING_WORDS
    assert WEIGHING_WORDS in " ".join(text.split())
    assert f"a percentage from {LEAST * 100:.0f}: {ENOUGH * 100:.0f} by default" in text
    for cuda, driver in OLDEST_DRIVER.items():
        assert re.search(rf"CUDA {cuda}\s+needs\s+(?:driver )?{driver}", text)
