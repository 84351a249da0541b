"""A real release-bump triage replayed from attempts to the answer: what people found in weeks, `compare` says at once.

The world is that of pytorch/pytorch#180899 (given_bump.py): torch 2.11 to 2.12 under vLLM. The rules that its
triagers learned (pytorch/test-infra, vllm-pytorch-ci-triage) stand above the tests that hold them.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.domain.verdicts.verdict import Verdict
from knowngood.store.engine import Engine
from tests.fixtures.databases import StoreWith
from tests.move.compare.given_bump import (
    ACCURACY,
    BEFORE,
    CANDIDATE,
    ISSUES,
    NO_FRAMES,
    RELEASE,
    RETRACTED,
    RETRIED,
    STRIDE,
    bump,
    release,
    repair,
)
from tests.web.asking import answer_at, client_of
from tests.web.given import GPU_CLASS


@pytest.fixture
def store(store_with: StoreWith) -> Engine:
    return store_with(bump)


@pytest.fixture
def client(store: Engine) -> TestClient:
    return client_of(store)


def compared(client: TestClient, after: str = CANDIDATE.id) -> dict[str, Any]:
    body: dict[str, Any] = answer_at(client, "/api/v1/compare", a=BEFORE.id, b=after, hardware=GPU_CLASS)
    return body


def pairs_of(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {pair["issue"]: pair for pair in body["pairs"]}


def test_the_first_sentence_is_what_the_triage_came_to(client: TestClient) -> None:
    assert compared(client)["sentence"] == (
        f"From {BEFORE.in_words} to {CANDIDATE.in_words} on H100: 2 newly broken (1 gives wrong numbers without an "
        "error, 1 has a workaround), none fixed, 2 not known before, 1 still fails"
    )


def test_what_the_triage_confirmed_is_newly_broken_the_silent_one_first(client: TestClient) -> None:
    """Confirmed there: fails with one signature on 2.12, more than once, and passes on 2.11."""
    body = compared(client)
    broken = [pair["issue"] for pair in body["pairs"] if pair["transition"] == "regressed"]
    assert broken == [ACCURACY.id, NO_FRAMES.id]
    assert [pair["silent"] for pair in body["pairs"][:2]] == [True, False]
    for issue in broken:
        assert pairs_of(body)[issue]["after"]["attempts"] == {"match": 2}


def test_the_workaround_that_let_the_bump_go_on_is_named(client: TestClient) -> None:
    """`--enforce-eager`: in the thread of the bump's own pull request, four days after the report."""
    pair = pairs_of(compared(client))[NO_FRAMES.id]
    assert pair["workarounds"] == {"enforce_eager": "now_needed"}
    assert pair["after"]["workarounds"] == {"enforce_eager": "effective"}


def test_a_bug_of_the_package_itself_is_no_regression_of_torch(client: TestClient) -> None:
    """Compare on one commit, by signature: then it fails on both. It was filed, and closed as vLLM's own."""
    assert pairs_of(compared(client))[STRIDE.id]["transition"] == "still_affected"


def test_a_baseline_that_was_killed_is_no_baseline(client: TestClient) -> None:
    """#182549 was filed because the job of the baseline had not failed; it had not run."""
    pair = pairs_of(compared(client))[RETRACTED.id]
    assert (pair["transition"], pair["before"]["verdict"]) == ("was_unknown", Verdict.INCONCLUSIVE)
    assert pair["before"]["reason"] == "nvidia-container-cli ended with exit 125 before the job began"


def test_once_the_baseline_has_run_it_turns_out_to_fail_there_too(client: TestClient, store: Engine) -> None:
    repair(store)
    assert pairs_of(compared(client))[RETRACTED.id]["transition"] == "still_affected"


def test_one_failure_beside_a_pass_is_not_called_new(client: TestClient) -> None:
    """#182700: what fails in one build and passes in a fresh one is no confirmed regression, and is not hidden."""
    pair = pairs_of(compared(client))[RETRIED.id]
    assert pair["after"]["attempts"] == {"match": 1, "pass": 1}
    assert (pair["after"]["verdict"], pair["transition"]) == (Verdict.FLAKY, "was_unknown")
    page = client.get("/compare", params={"a": BEFORE.id, "b": CANDIDATE.id, "hardware": GPU_CLASS}).text
    assert f"flaky on {CANDIDATE.in_words}: the passes next to it may be luck (5 in a row would decide)" in page


def test_nothing_of_the_bump_is_called_fixed_before_the_fix_was_measured(client: TestClient) -> None:
    """Closed upstream is not "in this wheel": the change was merged, and nobody had run the release yet."""
    body = compared(client, RELEASE.id)
    assert (body["counts"]["fixed"], body["counts"]["still_ok"]) == (0, 0)
    assert body["blind"] is True


def test_with_the_release_measured_one_of_the_two_is_gone(client: TestClient, store: Engine) -> None:
    """PR #181940: the release warns where the test channel's build raised."""
    release(store)
    from_stable = pairs_of(compared(client, RELEASE.id))
    assert {issue: pair["transition"] for issue, pair in from_stable.items()} == {
        NO_FRAMES.id: "still_ok",
        ACCURACY.id: "regressed",
        STRIDE.id: "still_affected",
        RETRACTED.id: "was_unknown",
        RETRIED.id: "was_unknown",
    }
    asked = {"a": CANDIDATE.id, "b": RELEASE.id, "hardware": GPU_CLASS}
    between = pairs_of(client.get("/api/v1/compare", params=asked).json())
    assert between[NO_FRAMES.id]["transition"] == "fixed"
    assert between[NO_FRAMES.id]["workarounds"] == {"enforce_eager": "no_longer_needed"}
    assert between[RETRIED.id]["transition"] == "still_affected"


def test_the_note_for_the_bump_s_pull_request_names_all_of_it(client: TestClient) -> None:
    asked = {"a": BEFORE.id, "b": CANDIDATE.id, "hardware": GPU_CLASS}
    note = client.get("/compare.md", params=asked).text
    assert [note.count(f"({issue.id})](<") for issue in ISSUES] == [1] * len(ISSUES)
    assert note.index(ACCURACY.id) < note.index(NO_FRAMES.id) < note.index(STRIDE.id)
