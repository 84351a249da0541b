import pytest

from app.domain.build import Build
from app.domain.history import history_of
from app.domain.verdict import Verdict
from tests.make import make_build

WORDS = {
    "x": Verdict.AFFECTED,
    "~": Verdict.FLAKY,
    "o": Verdict.NOT_AFFECTED,
    "?": Verdict.INCONCLUSIVE,
    ".": Verdict.NOT_RUN,
    "d": Verdict.DIFFERENT_FAILURE,
    "-": Verdict.NO_BUILD,
}


def line(text: str, python: str = "3.11") -> list[tuple[Build, Verdict]]:
    return [(make_build(f"2.{minor}.0+cu124", python=python), WORDS[sign]) for minor, sign in enumerate(text, start=1)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ooo", "passes on all 3 measured"),
        ("xxx", "fails on all 3 measured"),
        ("x", "fails on 2.1.0, the one measured"),
        ("o", "passes on 2.1.0, the one measured"),
        ("", "no release answered yet"),
        ("..?-", "no release answered yet"),
        ("dd", "fails differently on 2 releases"),
        ("ooxxoo", "fails in 2.3.0 to 2.4.0, fixed in (2.4.0, 2.5.0]"),
        ("oxo", "fails in 2.2.0, fixed in (2.2.0, 2.3.0]"),
        ("xxoo", "fails up to 2.2.0, fixed in (2.2.0, 2.3.0]"),
        ("ooxx", "fails since (2.2.0, 2.3.0]"),
        ("x..o", "fails up to 2.1.0, fixed in (2.1.0, 2.4.0]"),
        ("x?o", "fails up to 2.1.0, fixed in (2.1.0, 2.3.0]"),
        ("o.x", "fails since (2.1.0, 2.3.0]"),
        ("x?x", "fails on all 2 measured"),
        ("xd", "fails on 2.1.0, the one measured"),
        ("o~o", "fails in 2.2.0, fixed in (2.2.0, 2.3.0]"),
        ("xoxo", "fails up to 2.1.0, fixed in (2.1.0, 2.2.0]; fails in 2.3.0, fixed in (2.3.0, 2.4.0]"),
    ],
)
def test_intervals_name_only_builds_that_were_measured(text: str, sentence: str) -> None:
    assert history_of(line(text)).sentence == sentence


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
        pytest.param("xxoo", "xooo", "x?oo", id="a contradiction says nothing and widens"),
        pytest.param("oooo", "x...", "?ooo", id="also at the end of the line"),
    ],
)
def test_a_release_answers_with_any_python_that_no_other_contradicts(default: str, other: str, together: str) -> None:
    cells = [*line(default), *line(other, python="3.12")]
    assert history_of(cells) == history_of(line(together))
    assert history_of(cells[::-1]) == history_of(line(together))


def test_a_line_of_nothing_but_contradictions_says_so() -> None:
    assert history_of([*line("x"), *line("o", python="3.12")]).sentence == "Pythons disagree on 1 release"


def test_the_order_of_arrival_changes_nothing() -> None:
    cells = line("oxx.o?xd")
    assert history_of(cells[::-1]) == history_of(cells)
