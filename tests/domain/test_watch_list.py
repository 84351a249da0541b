"""Watch lists: their contents, and what a policy watches once its lists are written into it."""

from typing import Any

import pytest

from knowngood.domain.errors import BadRequest, KnownGoodError
from knowngood.domain.issue import Severity
from knowngood.domain.issue_selectors import (
    BadWatchList,
    UnknownWatchList,
    Watch,
    WatchList,
    WatchListContent,
    checked,
    checked_name,
)
from knowngood.gate.policy import Policy, filled
from tests.make import NOON, make_issue

ISSUES = {issue.id: issue for issue in (make_issue("xla-8464", component="torch_xla"), make_issue("toy-1"))}


def content(**said: Any) -> WatchListContent:
    hardware = said.pop("hardware", ())
    description = said.pop("description", "")
    return WatchListContent(Watch(**said), hardware, description)


def kept(name: str, one: WatchListContent) -> WatchList:
    return WatchList(name, "lead", 1, NOON, "lead", one)


@pytest.mark.parametrize("name", ["vision-team", "a", "0.9_b", "x" * 64])
def test_a_name_that_stands_in_an_address_is_taken(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize("name", ["", "Vision", "-a", "a b", "a/b", "..", "a\n", "x" * 65, "é", "a\x00"])
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(BadWatchList, match="no name for a watch list"):
        checked_name(name)


def test_each_name_stands_once() -> None:
    said = checked(content(issues=("toy-1", "toy-1"), hardware=("cpu-x86_64", "cpu-x86_64")), ISSUES)
    assert (said.watch.issues, said.hardware) == (("toy-1",), ("cpu-x86_64",))


@pytest.mark.parametrize(
    ("said", "kind", "sentence"),
    [
        (content(), BadWatchList, "watches nothing"),
        (content(hardware=("cpu-x86_64",)), BadWatchList, "watches nothing"),
        (content(issues=("xla-846",)), BadRequest, "nearest: .*xla-8464"),
        (content(components=("Dynamite",)), BadRequest, 'no component is called "Dynamite"'),
        (content(lists=("other",)), BadWatchList, "cannot name other lists"),
        (content(packages=("a b",)), BadWatchList, "is no package"),
        (content(packages=("x\x00",)), BadWatchList, "is no package"),
        (content(issues=("toy-1",), hardware=("tpu",)), BadWatchList, "is no hardware class"),
        (content(issues=("toy-1",), description="two\nlines"), BadWatchList, "one line"),
        (content(issues=("toy-1",), description="x" * 501), BadWatchList, "at most 500"),
        (content(issues=("toy-1",) * 2001), BadWatchList, "at most 2000 names"),
    ],
)
def test_a_list_that_means_nothing_is_refused_with_a_sentence(
    said: WatchListContent, kind: type[KnownGoodError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        checked(said, ISSUES)


def test_a_package_that_no_issue_needs_yet_may_be_watched() -> None:
    assert checked(content(packages=("xformers",)), ISSUES).watch.packages == ("xformers",)


def test_a_policy_without_lists_stays_as_it_is() -> None:
    policy = Policy(watch=Watch(issues=("toy-1",)))
    assert filled(policy, {}) is policy


def test_lists_count_together_with_what_the_policy_names_itself() -> None:
    lists = {
        "a": kept("a", content(issues=("toy-1",), severity=Severity.CRITICAL)),
        "b": kept("b", content(components=("torch_xla",), severity=Severity.HIGH, packages=("x",))),
    }
    policy = Policy(watch=Watch(issues=("xla-8464", "toy-1"), lists=("a", "b")))
    assert filled(policy, lists).watch == Watch(
        issues=("xla-8464", "toy-1"), components=("torch_xla",), packages=("x",), severity=Severity.HIGH
    )


@pytest.mark.parametrize(
    ("policys", "lists", "counted"),
    [
        pytest.param(("cuda-sm_90",), [("cpu-x86_64",)], ("cuda-sm_90",), id="the policy's own come first"),
        pytest.param((), [("cpu-x86_64",), ("cuda-sm_90",)], ("cpu-x86_64", "cuda-sm_90"), id="of all lists"),
        pytest.param((), [("cpu-x86_64",), ()], (), id="one list counts every class"),
    ],
)
def test_classes_of_lists_count_where_the_policy_names_none(
    policys: tuple[str, ...], lists: list[tuple[str, ...]], counted: tuple[str, ...]
) -> None:
    by_name = {str(n): kept(str(n), content(issues=("toy-1",), hardware=one)) for n, one in enumerate(lists)}
    policy = Policy(watch=Watch(lists=tuple(by_name)), hardware=policys)
    assert filled(policy, by_name).hardware == counted


def test_a_list_nobody_keeps_is_told_with_the_nearest() -> None:
    lists = {"vision-team": kept("vision-team", content(issues=("toy-1",)))}
    with pytest.raises(UnknownWatchList, match="nearest: vision-team"):
        filled(Policy(watch=Watch(lists=("vision-tem",))), lists)
