"""Builds and issues are read alike by every page and every part of the API."""

from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from knowngood.domain.builds.plain_names import plain_name
from knowngood.web.urls import MATRIX
from tests.web.given import BAD, GOOD, GPU_CLASS, ISSUES, MASK, MISMATCHED, OLD

BUILDS = [
    ("2.7.1", BAD.wheel.id),
    ("v2.7.1", BAD.wheel.id),
    ("torch 2.7.1", BAD.wheel.id),
    ("torch==2.7.1+cu126", BAD.wheel.id),
    ("2.7.1 cu126", BAD.wheel.id),
    ("torch-2.7.1", BAD.id),
    ("torch-2.7.1 cu126", BAD.id),
    ("2.7.1~triton-3.2.0", MISMATCHED.wheel.id),
    ("torch==2.7.1+cpu", "2.7.1+cpu"),
]
TELLS_WHAT_WAS_OPEN = {"/api/v1/upgrade?from={}", "/api/v1/gate?build={}&issues=fla-160"}
DOORS = [
    "/api/v1/builds/{}",
    "/api/v1/cells/fla-160/{}",
    "/api/v1/cells/fla-160/{}/notes",
    "/api/v1/matrix?builds={}",
    "/api/v1/export/csv?builds={}",
    "/api/v1/attempts?issue=fla-160&builds={}",
    "/api/v1/compare?a={}&b=2.8.0",
    "/api/v1/upgrade?from={}",
    "/api/v1/gate?build={}&issues=fla-160",
    "/badge/fla-160.json?build={}",
    "/badge/watchlists/vision-team.json?build={}",
    "/releases/{}",
    "/cells/fla-160/{}",
    "/cells/fla-160/{}/notes",
    "/issues/fla-160?build={}",
    f"{MATRIX}?builds={{}}",
    "/compare?a={}&b=2.8.0",
    "/compare.md?a={}&b=2.8.0",
    "/upgrade?from={}",
]


def told(client: TestClient, address: str) -> str:
    """The answer's text, without the address that was asked."""
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.text)
    return answer.text


@pytest.mark.parametrize(
    ("door", "name", "build"),
    [
        pytest.param(door, name, build, marks=() if (at - nth) % 4 == 0 else pytest.mark.soak)
        for at, door in enumerate(DOORS)
        for nth, (name, build) in enumerate(BUILDS)
    ],
)
def test_a_name_is_the_same_build_at_every_door(client: TestClient, door: str, name: str, build: str) -> None:
    short, whole = (told(client, door.format(quote(text, safe=""))) for text in (name, build))
    if door in TELLS_WHAT_WAS_OPEN or not door.startswith("/api/"):
        assert any(name in short for name in (build.removeprefix("torch-"), quote(build, safe=""), plain_name(build)))
    else:
        assert short == whole


@pytest.mark.parametrize("door", DOORS)
def test_an_unknown_build_is_refused_with_the_nearest_by_version_at_every_door(client: TestClient, door: str) -> None:
    answer = client.get(door.format("2.7.2"))
    if "/gate" in door:
        assert answer.json()["nearest"][0] == BAD.id, "a build nobody heard of is insufficient evidence"
        return
    assert answer.status_code in {404, 422}
    assert BAD.id in answer.text or BAD.id.replace("+", "%2B") in answer.text


@pytest.mark.parametrize("door", DOORS)
def test_what_names_no_build_is_refused_in_words_at_every_door(client: TestClient, door: str) -> None:
    answer = client.get(door.format("newest"))
    assert answer.status_code in {404, 422}
    assert "names no build; write a version of torch" in answer.text


@pytest.mark.parametrize("name", [MASK.id, "PYTORCH-151290", "pytorch/pytorch#151290", "#151290"])
@pytest.mark.parametrize(
    "door",
    [
        "/api/v1/issues/{}",
        "/api/v1/matrix?issues={}",
        "/api/v1/export/csv?issues={}",
        "/api/v1/attempts?issue={}",
        "/api/v1/compare?a=2.7.1&b=2.8.0&issues={}",
        "/api/v1/upgrade?from=2.7.1&issues={}",
        "/api/v1/gate?build=2.7.1&issues={}",
        "/api/v1/changes?issues={}&first=true",
        "/issues/{}",
        "/cells/{}/2.7.1",
        f"{MATRIX}?issues={{}}",
        "/changes?issues={}&first=true",
        "/compare?a=2.7.1&b=2.8.0&issues={}",
    ],
)
def test_an_issue_is_meant_by_every_name_at_every_door(client: TestClient, door: str, name: str) -> None:
    if "/" in name and "?" not in door:
        pytest.skip("a slash ends a part of an address")
    assert MASK.id in told(client, door.format(quote(name, safe="")))


@pytest.mark.parametrize(
    "door",
    [
        "/api/v1/matrix?issues=all",
        "/api/v1/compare?a=2.7.1&b=2.8.0&issues=all",
        "/api/v1/upgrade?from=2.7.1&issues=all",
        "/api/v1/gate?build=2.7.1&issues=all",
        "/api/v1/export/csv?issues=all",
    ],
)
def test_all_issues_are_chosen_with_one_word(client: TestClient, door: str) -> None:
    answer = told(client, f"{door}&hardware={GPU_CLASS}")
    assert all(issue.id in answer for issue in ISSUES)


def test_all_beside_an_issue_is_all_and_a_watch_list_may_say_it(client: TestClient) -> None:
    every = client.get("/api/v1/matrix?issues=all").json()
    assert client.get(f"/api/v1/matrix?issues={MASK.id},all").json() == every == client.get("/api/v1/matrix").json()
    assert client.get("/api/v1/changes?issues=all").json() == client.get("/api/v1/changes").json()


def test_a_python_narrows_a_name_and_contradicts_an_id(client: TestClient) -> None:
    at = "/api/v1/gate?issues=fla-160"
    assert client.get(f"{at}&build=2.7.1&python=3.11").json()["build"] == BAD.id
    lacking = client.get(f"{at}&build=2.7.1&python=3.12").json()
    assert (lacking["build"], lacking["decision"]) == (None, "insufficient_evidence")
    refused = client.get(f"{at}&build={quote(GOOD.id)}&python=3.12")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "python"
    assert client.get(f"{at}&build=2.7.1&python=three").json()["errors"][0]["field"] == "python"


def test_the_build_that_is_chosen_for_a_reader_is_kept_by_its_id(client: TestClient) -> None:
    chosen = client.get("/issues/fla-160/use?build=2.5.1", follow_redirects=False)
    client.cookies.clear()
    assert OLD.id in chosen.headers["set-cookie"]
    assert quote(OLD.id, safe="") in chosen.headers["location"]
