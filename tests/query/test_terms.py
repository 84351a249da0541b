"""Conditions that are added and taken away without writing, and what a query says of hardware."""

import pytest

from knowngood.query.evaluate import class_asked, classes_left, has_term, term, with_term, without
from knowngood.query.parser import parse, written

CLASSES = ("cpu-x86_64", "cuda-sm_80", "cuda-sm_90")


@pytest.mark.parametrize(
    ("query", "field", "value", "expected"),
    [
        ("", "severity", "high", "severity:high"),
        ("bmm stride", "silent", "yes", "bmm stride silent:yes"),
        ("severity:low bmm", "severity", "high", "bmm severity:high"),
        ("-status:affected", "status", "flaky", "status:flaky"),
        ("a or b", "component", "=Inductor C++", '(a or b) component:"=Inductor C++"'),
        ("status:affected or status:flaky", "status", "flaky", "status:flaky"),
        ("(status:affected build:2.7) bmm", "status", "flaky", "(status:affected build:2.7) bmm status:flaky"),
    ],
)
def test_a_term_is_added_once_and_the_rest_stays(query: str, field: str, value: str, expected: str) -> None:
    added = with_term(parse(query), term(field, value))
    assert written(added) == expected
    assert parse(expected) == added
    assert has_term(added, term(field, value))
    assert not has_term(without(added, field), term(field, value))


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("", CLASSES),
        ("status:affected", CLASSES),
        ("hardware:cuda status:affected", CLASSES[1:]),
        ("-hardware:cuda", CLASSES[:1]),
        ("hardware:sm_80|sm_90", CLASSES[1:]),
        ('hardware:"=cuda-sm_90"', CLASSES[2:]),
        ("hardware:sm_80 or hardware:cpu", CLASSES[:2]),
        ("hardware:cuda or bmm", CLASSES),
        ("hardware:tpu", ()),
    ],
)
def test_only_what_a_query_says_of_hardware_alone_chooses_classes(query: str, left: tuple[str, ...]) -> None:
    assert classes_left(parse(query), CLASSES) == left


@pytest.mark.parametrize(
    ("query", "wanted", "shown"),
    [
        ("hardware:cuda", "cpu-x86_64", "cuda-sm_80"),
        ("hardware:cuda", "cuda-sm_90", "cuda-sm_90"),
        ("status:affected", "cuda-sm_90", "cuda-sm_90"),
        ("hardware:tpu", "cpu-x86_64", "cpu-x86_64"),
    ],
)
def test_the_class_that_is_shown_is_one_that_the_query_leaves(query: str, wanted: str, shown: str) -> None:
    assert class_asked(parse(query), CLASSES, wanted) == shown
