"""Values as arms report them, held against the control's."""

import pytest

from knowngood.domain.issue import BASELINE, Comparison, Observed
from knowngood.domain.message import english
from knowngood.domain.observations import DifferentValue, different_values, is_alike
from tests.make import make_issue

CLOSE, EQUAL, IGNORE = Observed(), Observed(Comparison.EQUAL), Observed(Comparison.IGNORE)


@pytest.mark.parametrize(
    ("value", "control", "alike"),
    [
        pytest.param("1.0", "1.0005", True, id="a thousandth of the control's"),
        pytest.param("1.0", "1.002", False, id="two thousandths"),
        pytest.param("1e-07", "0.0", True, id="rounding beside nothing"),
        pytest.param("1e-05", "0.0", False, id="more than rounding beside nothing"),
        pytest.param("1.0", "-1.0", False, id="the other sign"),
        pytest.param("1.0", "1", True, id="written otherwise"),
        pytest.param("65536", "65530", False, id="a count is exact"),
        pytest.param("65536.0", "65530", True, id="what is no count is not"),
        pytest.param("nan", "nan", True, id="nan where the control has nan"),
        pytest.param("nan", "1.0", False, id="nan where the control has a number"),
        pytest.param("1.0", "nan", False, id="a number where the control has nan"),
        pytest.param("inf", "inf", True, id="infinity"),
        pytest.param("inf", "-inf", False, id="the other infinity"),
        pytest.param("1.0", "inf", False, id="nothing is near infinity"),
        pytest.param("1e400", "1.0", False, id="more than a float holds"),
        pytest.param("[1.0, 2.0]", "[1.0, 2.001]", True, id="lists by position"),
        pytest.param("[2.0, 1.0]", "[1.0, 2.0]", False, id="another order"),
        pytest.param("[1.0]", "[1.0, 2.0]", False, id="a shorter list"),
        pytest.param("[0, 0, 1, 1, 1, 1]", "[1, 1, 1, 1, 1, 1]", False, id="the wrong numbers that once passed"),
        pytest.param("tensor([ 1., 10.])", "tensor([1., 9.999])", True, id="white space moves with the width"),
        pytest.param("(1+2j)", "(1+2.0001j)", True, id="complex numbers"),
        pytest.param("(1+2j)", "(1+3.5j)", False, id="other complex numbers"),
        pytest.param("float32", "float16", False, id="a number within a word is a part of it"),
        pytest.param("bf16 1.0", "bf16 1.0001", True, id="beside a word"),
        pytest.param("2.8.0+cu128", "2.9.0+cu128", False, id="versions"),
        pytest.param("True", "False", False, id="words"),
        pytest.param("# 1", "1 #", False, id="what stands for a number does not hide it"),
        pytest.param("#", "1", False, id="nor is it one"),
        pytest.param("sum 4.0 in 0.12 s", "sum 4.0 in 0.31 s", False, id="a timing within the text"),
        pytest.param("", "", True, id="nothing"),
        pytest.param(None, "1.0", False, id="not reported"),
    ],
)
def test_numbers_are_close_where_the_words_around_them_are_equal(value: str | None, control: str, alike: bool) -> None:
    assert is_alike(CLOSE, value, control) is alike
    assert is_alike(IGNORE, value, control)
    assert is_alike(EQUAL, value, control) is (value == control)


@pytest.mark.parametrize(
    ("rule", "value", "control", "alike"),
    [
        pytest.param(Observed(rtol=0.1), "1.05", "1.0", True, id="a wider part"),
        pytest.param(Observed(rtol=0.1), "105", "100", False, id="no part of a count"),
        pytest.param(Observed(atol=5), "105", "100", True, id="room for a count"),
        pytest.param(Observed(atol=0.5), "0.4", "0.0", True, id="room beside nothing"),
        pytest.param(Observed(rtol=0, atol=0), "1.0000001", "1.0", False, id="no room"),
        pytest.param(Observed(atol=1), "0.9 s", "0.1 s", True, id="a timing that was given room"),
        pytest.param(Observed(atol=1e9), "nan", "1.0", False, id="nan is near nothing"),
    ],
)
def test_the_room_is_as_wide_as_the_issue_says(rule: Observed, value: str, control: str, alike: bool) -> None:
    assert is_alike(rule, value, control) is alike


def test_a_long_row_of_digits_is_read_in_no_time() -> None:
    assert not is_alike(CLOSE, "1" * 200_000 + "x", "1" * 199_999 + "x")


RULED = make_issue(
    observed={"gpu": IGNORE, "sum": Observed(Comparison.IGNORE, arms=("aot_eager",)), "words": EQUAL},
)


@pytest.mark.parametrize(
    ("arm", "observed", "controls", "found"),
    [
        pytest.param(BASELINE, {"sum": "1.0"}, [{"sum": "1.0"}], (), id="the same"),
        pytest.param(
            BASELINE, {"sum": "5.0"}, [{"sum": "1.0"}], (DifferentValue("sum", "5.0", "1.0"),), id="another value"
        ),
        pytest.param(BASELINE, {"sum": "5.0"}, [{"sum": "1.0"}, {"sum": "5.0"}], (), id="one control that agrees"),
        pytest.param(BASELINE, {"sum": "5.0"}, [], (), id="no control"),
        pytest.param(BASELINE, {"sum": "1.0", "more": "2"}, [{"sum": "1.0"}], (), id="more than the control says"),
        pytest.param(
            BASELINE, {"more": "2"}, [{"sum": "1.0"}], (DifferentValue("sum", None, "1.0"),), id="less than it says"
        ),
        pytest.param(BASELINE, {"gpu": "H100"}, [{"gpu": "H200"}], (), id="what is ignored"),
        pytest.param(BASELINE, {}, [{"gpu": "H200"}], (), id="what is ignored may lack"),
        pytest.param("aot_eager", {"sum": "5.0"}, [{"sum": "1.0"}], (), id="ignored for this arm"),
        pytest.param(
            BASELINE,
            {"words": "1.0"},
            [{"words": "1.00"}],
            (DifferentValue("words", "1.0", "1.00"),),
            id="to be equal",
        ),
        pytest.param(
            BASELINE,
            {"sum": "5.0", "words": "a"},
            [{"sum": "1.0", "words": "b"}, {"sum": "2.0", "words": "a"}],
            (DifferentValue("sum", "5.0", "2.0"),),
            id="told beside the nearest control",
        ),
        pytest.param(
            BASELINE,
            {"sum": "1.0", "words": "b"},
            [{"sum": "1.0", "words": "a"}, {"sum": "2.0", "words": "b"}],
            (DifferentValue("words", "b", "a"),),
            id="half of one control and half of another is neither",
        ),
    ],
)
def test_what_differs_from_every_control_is_told(
    arm: str, observed: dict[str, str], controls: list[dict[str, str]], found: tuple[DifferentValue, ...]
) -> None:
    assert different_values(RULED, arm, observed, controls) == found


def test_a_value_is_told_in_words_and_cut_where_it_is_long() -> None:
    (long,) = different_values(RULED, BASELINE, {"sum": "x" * 900}, [{"sum": "y" * 900}])
    assert (len(long.value or ""), len(long.control)) == (200, 200)
    assert english(DifferentValue("sum", "5.0", "1.0").in_words) == "sum is 5.0, the control's 1.0"
    assert english(DifferentValue("sum", None, "1.0").in_words) == "sum is not reported, the control's 1.0"
