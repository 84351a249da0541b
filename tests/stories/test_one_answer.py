"""A question that names no Python has one answer at every door: of each shipped release, on each class."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.domain.verdicts.matrix import families_of
from knowngood.store.knowledge.snapshot import read_shipped
from tests.fixtures.databases import NewStore
from tests.web.asking import client_of_release

KNOWN = read_shipped().knowledge.known
EVERY = ",".join(KNOWN.issues)
OF_SOME_PYTHONS = {issue.id for issue in KNOWN.issues.values() if issue.requires.python}
PLACES = [
    (family.head.wheel.id, hardware)
    for family in families_of(tuple(KNOWN.builds.values()))
    for hardware in KNOWN.hardware
    if KNOWN.is_measured(family.head.wheel, [hardware])
]
START = "2.1.2"
COUNTED = ("passes", "fails", "not_known")


@pytest.fixture(scope="module")
def client(new_store: NewStore) -> Iterator[TestClient]:
    yield from client_of_release(new_store)


_SAID = {"not_affected": "passes", "bigger": "takes_more", "more_work": "takes_more", "slower": "takes_more"}


def sums(told: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Of a class: how many pass, fail and are not known; of the answers how many were run there, or on the CPU."""
    found: Counter[str] = Counter()
    for one in told:
        if one["verdict"] == "not_applicable":
            continue
        if one["assurance"] == "not_known":
            found["not_known"] += 1
            continue
        found[_SAID.get(one["verdict"], "fails")] += 1
        found["from_cpu" if [ground["rule"] for ground in one["grounds"]] == ["device"] else "measured"] += 1
    return found


@cache
def matrix(client: TestClient, build: str, hardware: str) -> Counter[str]:
    told = client.get("/api/v1/matrix", params={"builds": build, "hardware": hardware}).json()
    assert len(told["cells"]) == len(KNOWN.issues)
    return sums(told["cells"])


def build_page(client: TestClient, build: str, hardware: str) -> Counter[str]:
    return sums(client.get(f"/api/v1/builds/{build}", params={"hardware": hardware}).json()["cells"])


def gate(client: TestClient, build: str, hardware: str) -> Counter[str]:
    """What exists on some Pythons alone is said to depend on the Python, and not to fail: it blocks nobody."""
    told = client.get("/api/v1/gate", params={"build": build, "issues": EVERY, "hardware": hardware}).json()["reasons"]
    failing = OF_SOME_PYTHONS & {one["issue"] for one in told if one["verdict"] == "affected"}
    return sums({**one, "assurance": "measured"} if one["issue"] in failing else one for one in told)


def counted(body: Mapping[str, Any]) -> Counter[str]:
    fails = body["fails"] + body["needs_workaround"] + body.get("as_reported", 0)
    more = body["bigger"] + body["more_work"] + body["slower"]
    return Counter(passes=body["passes"], fails=fails, takes_more=more, not_known=body["not_known"])


@cache
def advice(client: TestClient, hardware: str) -> Any:
    return client.get(f"/api/v1/upgrade?from={START}&issues={EVERY}&hardware={hardware}&pin=triton>0").json()


def upgrade(client: TestClient, build: str, hardware: str) -> Counter[str]:
    told = advice(client, hardware)
    (one,) = (one for one in (told["base"], *told["candidates"]) if one["build"] == build)
    return counted(one["counts"]) + Counter(measured=one["measured"], from_cpu=one["from_cpu"])


def release(client: TestClient, build: str, hardware: str) -> Counter[str]:
    told = client.get(f"/api/v1/releases/{build}", params={"hardware": hardware}).json()
    (one,) = told["standings"]
    one["takes_more"] = one["bigger"] + one["more_work"] + one["slower"]
    from_cpu = one["passes"] + one["fails"] + one["takes_more"] - one["measured"]
    return Counter({name: one[name] for name in (*COUNTED, "measured")}) + Counter(from_cpu=from_cpu)


DOORS: Mapping[str, Callable[[TestClient, str, str], Counter[str]]] = {
    door.__name__: door for door in (build_page, gate, upgrade, release)
}


@pytest.mark.parametrize("door", DOORS)
def test_a_release_has_one_answer_on_a_class_wherever_it_is_asked_about(client: TestClient, door: str) -> None:
    for build, hardware in PLACES:
        expected, found = matrix(client, build, hardware), DOORS[door](client, build, hardware)
        assert +found == Counter({name: expected[name] for name in found if expected[name]}), (build, hardware)


def test_what_was_run_on_a_class_counts_there_with_whatever_python(client: TestClient) -> None:
    """3.12, with which nearly everything on the H100 was run, and 3.11, with which nothing was, are one wheel."""
    assert matrix(client, "2.11.0+cu130", "cuda-sm_90")["measured"] == 75


def test_all_releases_together_are_those_that_were_measured_each_with_the_counts_of_its_column(
    client: TestClient,
) -> None:
    releases = client.get("/api/v1/releases").json()["releases"]
    assert {one["build"] for one in releases} == {build for build, _ in PLACES if "~" not in build}
    for one in releases:
        for standing in one["standings"]:
            expected = matrix(client, one["build"], standing["hardware"])
            assert {name: standing[name] for name in COUNTED} == {name: expected[name] for name in COUNTED}
