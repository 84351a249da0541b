"""The same release bump (tests/move/compare/given_bump.py), asked as its team had to ask it: which build to go to.

What the triage of pytorch/pytorch#180899 came to: not to the test channel's 2.12.0, because an accuracy collapses
silently there; the error about compiled frames can be lived with (`--enforce-eager`) and is gone in the release; what
fails on both commits is no argument; and a baseline that never ran proves nothing either way.
"""

from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.store.engine import Engine
from tests.fixtures.databases import StoreWith
from tests.move.compare.given_bump import (
    ACCURACY,
    BEFORE,
    CANDIDATE,
    LIST,
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


@pytest.fixture
def engine(store_with: StoreWith) -> Engine:
    return store_with(bump)


@pytest.fixture
def client(engine: Engine) -> TestClient:
    return client_of(engine)


def advice(client: TestClient, start: str = BEFORE.id, **asked: str) -> Any:
    return answer_at(client, "/api/v1/upgrade", **{"from": start, "watch": LIST, **asked})


def groups(told: Any, build: str) -> dict[str, str]:
    """By issue: what became of it, and what it does there."""
    (one,) = [one for one in told["candidates"] if one["build"] == build]
    return {item["issue"]: f"{item['group']}, {item['prospect']}" for item in one["items"]}


def test_the_team_stays_because_the_candidate_silently_breaks_something(client: TestClient) -> None:
    told = advice(client)
    assert (told["decision"], told["build"]) == ("stay", None)
    assert told["answer"].startswith(
        f"Stay on {BEFORE.in_words}. Every newer build with enough measured loses something without a workaround"
    )
    (first, unmeasured) = told["candidates"]
    assert (first["build"], first["rating"]) == (CANDIDATE.id, "loses")
    assert first["why"] == "1 lost without a workaround (1 with wrong numbers and no error)"
    assert first["items"][0]["issue"] == ACCURACY.id
    assert (unmeasured["build"], unmeasured["rating"]) == (RELEASE.id, "not_enough_measured")


def test_each_finding_of_the_triage_has_its_place(client: TestClient) -> None:
    assert groups(advice(client), CANDIDATE.id) == {
        ACCURACY.id: "newly_broken, fails",
        RETRACTED.id: "not_known_before, fails",  # the baseline never ran: no loss, as the triage found
        RETRIED.id: "not_known_before, fails",  # flaky there, and two passes before may be luck
        STRIDE.id: "still_fails, fails",  # fails on both commits: the package's own bug
        NO_FRAMES.id: "newly_broken, needs_workaround",
    }


def test_the_release_is_not_known_until_it_is_run_and_has_a_price(client: TestClient) -> None:
    """Closed upstream is not "in this wheel"."""
    (_, one) = advice(client)["candidates"]
    assert (one["counts"]["gained"], one["counts"]["not_known"]) == (0, 5)
    ids = ",".join(sorted([ACCURACY.id, NO_FRAMES.id, RETRACTED.id, RETRIED.id, STRIDE.id]))
    assert one["missing"]["commands"] == [
        f"knowngood run --builds {RELEASE.id} --issues {ids} --hardware cuda-sm_90 --where-affected"
    ]
    assert one["missing"]["seconds"] == 5 * 2 * 5.0 + 12.0  # arms as they took elsewhere, one environment as it took


def test_with_the_baseline_repaired_its_finding_is_no_argument_any_more(client: TestClient, engine: Engine) -> None:
    repair(engine)
    told = advice(client)
    assert groups(told, CANDIDATE.id)[RETRACTED.id] == "still_fails, fails"
    assert told["decision"] == "stay"


def test_the_release_still_breaks_the_accuracy_so_the_team_stays_on_2_11(client: TestClient, engine: Engine) -> None:
    repair(engine)
    release(engine)
    told = advice(client)
    assert (told["decision"], told["candidates"][0]["build"]) == ("stay", RELEASE.id)
    assert groups(told, RELEASE.id)[NO_FRAMES.id] == "still_passes, passes"


def test_whoever_is_on_the_candidate_goes_to_the_release_and_drops_the_workaround(
    client: TestClient, engine: Engine
) -> None:
    release(engine)
    told = advice(client, CANDIDATE.id)
    assert (told["decision"], told["build"]) == ("go", RELEASE.id)
    note = client.get("/upgrade.md", params={"from": CANDIDATE.id, "watch": LIST}).text
    assert "### Workarounds no longer needed (1)" in note
    assert f"**enforce\\_eager**, for: [{NO_FRAMES.title}]" in note
    assert "-torch==2.12.0\n+torch==2.12.1" in note


def test_what_does_not_concern_the_team_is_no_argument(client: TestClient) -> None:
    """A team that runs without expert parallelism watches less, and may go once the rest is measured."""
    told = advice(client, watch="", issues=f"{NO_FRAMES.id},{STRIDE.id}")
    assert told["candidates"][0]["why"] == "gains nothing"
