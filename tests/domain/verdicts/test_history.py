"""Intervals along the line of releases: what begins and ends one, and what is named inside."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Requires
from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.history import Answer, Fix, History, Release, first_fix, history_of, releases_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import complete, rows_of, unfolded
from knowngood.domain.verdicts.verdict import Cell, Verdict
from tests.domain.given_claims import known_of
from tests.make import HARDWARE, make_build, make_issue

WORDS = {
    "x": Verdict.AFFECTED,
    "~": Verdict.FLAKY,
    "o": Verdict.NOT_AFFECTED,
    "?": Verdict.INCONCLUSIVE,
    ".": Verdict.NOT_RUN,
    "d": Verdict.DIFFERENT_FAILURE,
    "0": Verdict.NO_BUILD,
    "-": Verdict.NOT_APPLICABLE,
    "b": Verdict.BIGGER,
    "w": Verdict.MORE_WORK,
    "l": Verdict.SLOWER,
}


def line(text: str, python: str = "3.11") -> list[tuple[Build, Verdict]]:
    return [(make_build(f"2.{minor}.0+cu124", python=python), WORDS[sign]) for minor, sign in enumerate(text, start=1)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ooo", "passes on all 3 measured"),
        ("o.o", "passes on all 2 measured"),
        ("xxx", "fails on all 3 measured"),
        ("x", "fails on 2.1.0, the one measured"),
        (".o.", "passes on 2.2.0, the one measured"),
        ("", "no release answered yet"),
        ("..?0", "no release answered yet"),
        ("---", "no release answered yet"),
        ("dd", "fails differently on 2 releases"),
        ("ooxxoo", "fails in 2.3.0 to 2.4.0, fixed in 2.5.0"),
        ("oxo", "fails in 2.2.0, fixed in 2.3.0"),
        ("xxoo", "fails up to 2.2.0, fixed in 2.3.0"),
        ("ooxx", "fails since 2.3.0"),
        ("o~o", "fails in 2.2.0, fixed in 2.3.0"),
        ("xoxo", "fails up to 2.1.0, fixed in 2.2.0; fails in 2.3.0, fixed in 2.4.0"),
        ("obbo", "takes more memory in 2.2.0 to 2.3.0, fixed in 2.4.0"),
        ("oow", "does more work since 2.3.0"),
        ("oll", "takes longer since 2.2.0"),
        ("ww", "does more work on all 2 measured"),
    ],
)
def test_where_all_was_measured_nothing_is_said_beside_it(text: str, sentence: str) -> None:
    assert english(history_of(line(text)).sentence) == sentence


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("ooo", None),
        ("xxx", None),
        ("..", None),
        ("xoo", "2.2.0"),
        ("oox", "2.3.0"),
        ("oxo", "2.3.0"),
        ("o.xx", "2.3.0"),
        ("x?oo", "2.3.0"),
        ("oxooooooox", "2.10.0"),
    ],
)
def test_the_last_turn_is_the_newest_release_with_another_answer_than_before(text: str, release: str | None) -> None:
    assert history_of(line(text)).last_turn == release


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("x.o", "fails up to 2.1.0, fixed after 2.1.0, by 2.3.0 (2.2.0 not run)", id="inside the fix"),
        pytest.param("xdo", "fails up to 2.1.0, fixed after 2.1.0, by 2.3.0 (2.2.0 fails differently)", id="otherwise"),
        pytest.param("x?o", "fails up to 2.1.0, fixed after 2.1.0, by 2.3.0 (2.2.0 cannot say)", id="in doubt"),
        pytest.param(
            "x0o", "fails up to 2.1.0, fixed after 2.1.0, by 2.3.0 (2.2.0 cannot be built)", id="no such build"
        ),
        pytest.param("x-o", "fails up to 2.1.0, fixed after 2.1.0, by 2.3.0 (2.2.0 does not apply)", id="cannot exist"),
        pytest.param(
            "x.d.d0o",
            "fails up to 2.1.0, fixed after 2.1.0, by 2.7.0 "
            "(2.3.0, 2.5.0 fail differently; 2.6.0 cannot be built; 2.2.0, 2.4.0 not run)",
            id="each by what it says, the gravest first",
        ),
        pytest.param(
            "x.....o",
            "fails up to 2.1.0, fixed after 2.1.0, by 2.7.0 (2.2.0, 2.3.0, 2.4.0 and 2 more not run)",
            id="many are counted",
        ),
        pytest.param("o.x", "broke after 2.1.0, by 2.3.0 (2.2.0 not run)", id="inside what broke it"),
        pytest.param("o.xo", "broke after 2.1.0, by 2.3.0 (2.2.0 not run), fixed in 2.4.0", id="and mended later"),
        pytest.param(
            "o.x.o",
            "broke after 2.1.0, by 2.3.0 (2.2.0 not run), fixed after 2.3.0, by 2.5.0 (2.4.0 not run)",
            id="both ends",
        ),
        pytest.param("x..xo", "fails up to 2.4.0 (2 inside not run), fixed in 2.5.0", id="between failures"),
        pytest.param(
            "xd.xo",
            "fails up to 2.4.0 (2.2.0 fails differently; 1 inside not run), fixed in 2.5.0",
            id="mixed",
        ),
        pytest.param("oxd.x", "fails since 2.2.0 (2.3.0 fails differently; 1 later not run)", id="not mended"),
        pytest.param(".xo", "fails in 2.2.0 (older not known), fixed in 2.3.0", id="nothing older"),
        pytest.param("?x.xo", "fails in 2.2.0 to 2.4.0 (older not known; 1 inside not run), fixed in 2.5.0"),
        pytest.param("ox.", "fails since 2.2.0 (newer than 2.2.0 not known)", id="nothing newer"),
        pytest.param("--xo", "fails up to 2.3.0, fixed in 2.4.0", id="where it cannot exist nothing is open"),
        pytest.param("ox--", "fails since 2.2.0", id="nor at the other end"),
        pytest.param("xd", "fails on 2.1.0, the one with an answer (2.2.0 fails differently)"),
        pytest.param("x?x.", "fails on all 2 with an answer (2.2.0 cannot say)"),
        pytest.param("oddddo", "passes on all 2 with an answer (2.2.0, 2.3.0, 2.4.0 and 1 more fail differently)"),
    ],
)
def test_what_says_neither_pass_nor_fail_is_named_where_a_sentence_reaches_over_it(text: str, sentence: str) -> None:
    assert english(history_of(line(text)).sentence) == sentence


def test_what_a_sentence_says_is_there_as_data() -> None:
    (span,) = history_of(line("o.x?xd.o")).spans
    assert (span.broke_in, span.fixed_in) == ("(2.1.0, 2.3.0]", "(2.5.0, 2.8.0]")
    assert [(one.name, one.answer) for one in span.before] == [("2.2.0", Answer.NOT_RUN)]
    assert [(one.name, one.answer) for one in span.within] == [("2.4.0", Answer.CANNOT_SAY)]
    assert [(one.name, one.answer) for one in span.after] == [
        ("2.6.0", Answer.FAILS_DIFFERENTLY),
        ("2.7.0", Answer.NOT_RUN),
    ]
    assert history_of(line("--x.")).releases == (
        Release("2.3.0", Answer.FAILS, make_build().released),
        Release("2.4.0", Answer.NOT_RUN, make_build().released),
    )


def test_mismatched_triton_and_wheels_of_other_indexes_are_not_on_the_line() -> None:
    cells = [
        *line("xo"),
        (make_build("2.9.0+cu128", triton="3.9.0"), Verdict.AFFECTED),
        (make_build("2.9.0+cu128", triton="3.9.0", python="3.12"), Verdict.AFFECTED),
        (make_build("2.9.0+cu118", origin="cu118"), Verdict.AFFECTED),
    ]
    assert history_of(cells) == history_of(line("xo"))


@pytest.mark.parametrize(
    ("default", "other", "together"),
    [
        pytest.param("....", "xxoo", "xxoo", id="another Python speaks for its release"),
        pytest.param("xx..", "..oo", "xxoo", id="releases measured with different Pythons are one line"),
        pytest.param("xxoo", "xxoo", "xxoo", id="what agrees is one answer"),
        pytest.param("x~oo", "~xoo", "xxoo", id="flaky and affected both fail"),
        pytest.param("xxoo", "x?-d", "xxoo", id="what gives no answer contradicts none"),
        pytest.param("x?.o", "xd-o", "xd.o", id="without an answer the gravest stands for all"),
    ],
)
def test_a_release_answers_with_any_python_that_no_other_contradicts(default: str, other: str, together: str) -> None:
    cells = [*line(default), *line(other, python="3.12")]
    assert history_of(cells) == history_of(line(together))
    assert history_of(cells[::-1]) == history_of(line(together))


@pytest.mark.parametrize(
    ("default", "other", "sentence"),
    [
        ("xxoo", "xooo", "fails up to 2.1.0, fixed after 2.1.0, by 2.3.0 (2.2.0 differs by Python)"),
        ("oooo", "x...", "passes on all 3 with an answer (2.1.0 differs by Python)"),
        ("x", "o", "Pythons disagree on 1 release"),
    ],
)
def test_a_release_on_which_pythons_disagree_ends_no_interval_and_is_named(
    default: str, other: str, sentence: str
) -> None:
    assert english(history_of([*line(default), *line(other, python="3.12")]).sentence) == sentence


@pytest.mark.parametrize(
    ("text", "fails_on"),
    [
        ("oxo", {"2.1.0": False, "2.2.0": True, "2.3.0": False, "2.0.1": False, "2.9.0": False}),
        ("o.x.o", {"2.2.0": None, "2.4.0": None}),
        ("x.xo", {"2.0.1": True, "2.2.0": True, "2.3.5": None}),
        ("ox.", {"2.3.0": True}),
        ("xox", {"2.1.5": None, "2.2.0": False, "2.2.5": None, "2.7.0": True}),
        ("o.o", {"2.2.0": False}),
        ("x.x", {"2.2.0": True}),
        ("??", {"2.1.0": None}),
    ],
)
def test_people_read_a_history_as_saying_something_of_every_release_outside_its_intervals(
    text: str, fails_on: dict[str, bool | None]
) -> None:
    history = history_of(line(text))
    assert {name: history.fails_on(Version(name)) for name in fails_on} == fails_on


# -- the fix of one failing build --------------------------------------------------------------------------------------


def fix_in(text: str, failing: int = 1) -> Fix | None:
    verdicts = dict(line(text))
    return first_fix(releases_of(verdicts), make_build(f"2.{failing}.0+cu124"), verdicts.__getitem__)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("xo", "(2.1.0, 2.2.0]"),
        ("xxo", "(2.2.0, 2.3.0]"),
        ("x.o", "(2.1.0, 2.3.0] (2.2.0 not run)"),
        ("xd.x?-o", "(2.4.0, 2.7.0] (2.5.0 cannot say; 2.6.0 does not apply)"),
        ("xox", "(2.1.0, 2.2.0]"),
        ("x.?d", ""),
        ("xx", ""),
    ],
)
def test_a_fix_names_what_lies_between_the_last_failure_and_the_first_pass(text: str, said: str) -> None:
    fix = fix_in(text)
    assert english(fix.in_words if fix else None) == said
    assert (fix.interval if fix else "") == said.partition("]")[0] + ("]" if said else "")


# -- a function of the store -------------------------------------------------------------------------------------------

ISSUE = make_issue()
LINE = tuple(make_build(f"2.{minor}.0+cu124") for minor in range(1, 8))
BUILDS = (*LINE, *(replace(one, id=f"{one.id}~py312", python="3.12") for one in LINE))
ROWS = st.lists(st.sampled_from("xo~?.d0"), min_size=len(BUILDS), max_size=len(BUILDS)).map("".join)


def cells_of(signs: str) -> list[Cell]:
    """The stored cells: a build that nobody measured has none."""
    return [
        Cell(ISSUE.id, build.id, HARDWARE, WORDS[sign], quoted(""))
        for build, sign in zip(BUILDS, signs, strict=True)
        if sign != "."
    ]


def known(cells: Iterable[Cell], builds: Sequence[Build] = BUILDS) -> Known:
    return known_of(cells, [ISSUE], {build.id: build for build in builds})


def test_a_release_that_nobody_measured_is_in_the_catalogue_and_so_in_the_interval() -> None:
    assert english(known(cells_of("x.o" + "." * 11)).history(ISSUE.id, HARDWARE).sentence) == (
        "fails up to 2.1.0, fixed after 2.1.0, by 2.3.0 (2.2.0 not run)"
    )


def test_where_a_row_cannot_exist_it_is_not_said_to_be_missing() -> None:
    row = make_issue(requires=Requires(torch="!=2.2.0,>=2.1.5"))
    stored = known_of(cells_of("..xo" + "." * 10), [row], {build.id: build for build in LINE[:4]})
    assert english(stored.history(ISSUE.id, HARDWARE).sentence) == "fails up to 2.3.0, fixed in 2.4.0"


@given(ROWS, st.permutations(range(len(BUILDS))), st.sets(st.sampled_from(BUILDS), min_size=1))
def test_a_history_is_the_same_in_whatever_order_and_whatever_else_was_asked(
    signs: str, order: list[int], asked: set[Build]
) -> None:
    stored = known(cells_of(signs))
    cells = cells_of(signs)
    shuffled = known([cells[at] for at in order if at < len(cells)], [BUILDS[at] for at in order])
    complete([ISSUE], list(asked), [HARDWARE], shuffled)
    rows_of([ISSUE], unfolded(list(asked)), [HARDWARE], shuffled)
    assert shuffled.history(ISSUE.id, HARDWARE) == stored.history(ISSUE.id, HARDWARE)


def said_inside(history: History, before: str | None, after: str | None) -> list[Release]:
    names = [one.name for one in history.releases]
    first = names.index(before) + 1 if before else 0
    return list(history.releases[first : names.index(after) if after else None])


@given(ROWS)
def test_inside_an_interval_nothing_passes_or_fails_and_all_that_lies_there_is_named(signs: str) -> None:
    history = known(cells_of(signs)).history(ISSUE.id, HARDWARE)
    for span in history.spans:
        before, after = (
            said_inside(history, span.good_before, span.first_bad),
            said_inside(history, span.last_bad, span.good_after),
        )
        assert (list(span.before), list(span.after)) == (before, after)
        assert all(one.fails is None for one in (*before, *span.within, *after))
    for one, other in pairwise(history.spans):
        assert one.good_after is not None
        assert other.good_before is not None
    failing = {one.name for one in history.releases if one.fails}
    assert all(history.fails_on(Version(name)) for name in failing)
    assert failing >= {name for span in history.spans for name in (span.first_bad, span.last_bad)}


def without(signs: str, lost: Iterable[int]) -> str:
    """The passes at these places were never measured."""
    return "".join("." if sign == "o" and at in lost else sign for at, sign in enumerate(signs))


LOST = st.sets(st.integers(0, len(BUILDS) - 1))


@given(ROWS, LOST)
def test_taking_passes_away_makes_no_release_pass_and_no_build_mended(signs: str, lost: set[int]) -> None:
    before, after = (known(cells_of(one)) for one in (signs, without(signs, lost)))
    passed = {one.name for one in before.history(ISSUE.id, HARDWARE).releases if one.answer is Answer.PASSES}
    assert {span.good_after for span in after.history(ISSUE.id, HARDWARE).spans} <= passed | {None}
    for build in BUILDS:
        fix, was = after.fix_of(ISSUE.id, build, HARDWARE), before.fix_of(ISSUE.id, build, HARDWARE)
        assert fix is None or (was is not None and was.build.build_id.release <= fix.build.build_id.release)


@given(st.text("xo~?.d0", min_size=len(LINE), max_size=len(LINE)), ROWS, LOST)
def test_taking_passes_away_ends_no_run_of_failures(signs: str, holes: str, lost: set[int]) -> None:
    """Where Pythons agree: of a release on which they do not, a failure remains, which says more than before."""
    agreed = "".join(sign if hole != "." or sign != "o" else "." for sign, hole in zip(signs * 2, holes, strict=True))
    before, after = (known(cells_of(one)).history(ISSUE.id, HARDWARE).spans for one in (agreed, without(agreed, lost)))
    assert sum(1 for span in after if span.fixed_in) <= sum(1 for span in before if span.fixed_in)
