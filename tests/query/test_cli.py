"""`knowngood matrix --query` as people call it: what is printed, and how a mistake is shown."""

import json
from functools import partial

import pytest

from tests.commands.given import Call, Done


@pytest.fixture
def call(call: Call) -> Call:
    return partial(call, "matrix")


def issues_of(done: Done) -> set[str]:
    assert done.code == 0, done.err
    return {issue["id"] for issue in json.loads(done.out)["issues"]}


def test_a_query_selects_issues_and_columns(call: Call) -> None:
    every = issues_of(call("--json", "--builds", "all"))
    assert issues_of(call("--json", "--query", "toy-passes")) == {"toy-passes-1"}
    assert issues_of(call("--json", "--query", "toy -id:passes", "--builds", "all")) == every - {"toy-passes-1"}
    assert issues_of(call("--json", "--query", "status:not_affected")) == set()
    assert issues_of(call("--json", "--query", "id:passes status:not_run")) == {"toy-passes-1"}
    builds = json.loads(call("--json", "--builds", "all").out)["builds"]
    one = json.loads(call("--json", "--query", f'build:"{builds[0]["id"]}"').out)
    assert [build["id"] for build in one["builds"]] == [builds[0]["id"]]
    assert {cell["build"] for cell in one["cells"]} == {builds[0]["id"]}


def test_where_nothing_matches_it_says_so(call: Call) -> None:
    assert call("--query", "nothing-like-it") == Done(0, "no issue matches the query\n", "")


def test_a_mistake_is_marked_below_its_place(call: Call) -> None:
    done = call("--query", "结果 satus:affected")
    assert done.code == 2
    said, shown, mark = done.err.splitlines()
    assert said.startswith('knowngood: --query: column 4: there is no field "satus" (did you mean "status"?); expected')
    assert shown == "  结果 satus:affected"
    assert mark == "       ^^^^^"


@pytest.mark.parametrize(
    ("query", "said"), [("all(2.8..):not_affected", 'quantifier "all"'), ("{}", "queries as JSON")]
)
def test_what_is_gone_from_the_language_is_refused_and_said(call: Call, query: str, said: str) -> None:
    done = call("--query", query)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
