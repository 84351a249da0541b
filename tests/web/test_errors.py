"""Refusals: one shape for programs, a page that says what to do for people, never a 500 for a question."""

import string
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from knowngood.store.engine import Engine, connect
from knowngood.web.errors import nearest
from knowngood.web.urls import MATRIX
from tests.make import make_issue
from tests.web.asking import app_of, client_of
from tests.web.given import BAD, BUILDS, MASK, save

PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("address", "suggested"),
    [
        ("/issues/pytorch-15129", "/issues/pytorch-151290"),
        ("/issues/fla160", "/issues/fla-160"),
        ("/builds/torch-2.7.2", f"/builds/{BAD.id.replace('+', '%2B')}"),
        ("/builds/2.7.1+cu124", f"/builds/{BAD.id.replace('+', '%2B')}"),
        (f"/cells/fla-16/{BAD.id}", "/issues/fla-160"),
        ("/runs/none", "/runs"),
    ],
)
def test_what_is_not_here_suggests_the_nearest(client: TestClient, address: str, suggested: str) -> None:
    page = client.get(address)
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert f'href="{suggested}"' in page.text
    problem = client.get(f"/api/v1{address}")
    assert problem.status_code == 404
    assert suggested in problem.json()["suggestions"]


def test_a_reader_of_chinese_is_told_the_titles_of_the_nearest_in_chinese(own: TestClient, own_engine: Engine) -> None:
    save(own_engine, [make_issue("pytorch-151290", title="A twin", title_zh="有中文")], BUILDS)
    assert "pytorch-151290: 有中文</a>" in own.get("/issues/pytorch-15129?lang=zh").text
    assert "pytorch-151290: A twin</a>" in own.get("/issues/pytorch-15129?lang=en").text


def test_a_problem_has_the_shape_of_rfc_9457(client: TestClient) -> None:
    response = client.get("/api/v1/issues/nothing")
    assert response.headers["content-type"] == PROBLEM
    assert response.headers["cache-control"] == "no-store"
    body = response.json()
    assert list(body) == ["type", "title", "status", "detail", "instance", "suggestions", "errors", "request_id"]
    assert (body["title"], body["status"], body["instance"]) == ("Not Found", 404, "/api/v1/issues/nothing")
    assert body["detail"] == 'no issue is called "nothing" here'


def test_an_address_that_is_no_page_is_a_page_too(client: TestClient) -> None:
    response = client.get("/no/such/page")
    assert response.status_code == 404
    assert 'href="/matrix"' in response.text


def test_what_a_reader_typed_comes_back_as_text(client: TestClient) -> None:
    response = client.get("/issues/%3Cimg%20src=x%20onerror=alert(1)%3E")
    assert "<img" not in response.text
    assert "&lt;img" in response.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_here_takes_writes(client: TestClient, method: str) -> None:
    for address in (MATRIX, "/api/v1/matrix"):
        response = client.request(method, address)
        assert response.status_code == 405
        assert "GET" in response.headers["allow"]


BAD_QUERIES = [
    f"{MATRIX}?hardware=tpu",
    f"{MATRIX}?columns=some",
    f"{MATRIX}?verdict=broken",
    f"{MATRIX}?builds=2.7.2",
    f"{MATRIX}?builds=torch-9.9",
    f"{MATRIX}?builds=torch-2.7.1~cheese",
    f"{MATRIX}?issues=nothing",
    f"{MATRIX}?component=nothing",
    f"{MATRIX}?q={'x' * 3000}",
    f"{MATRIX}?issues={'x,' * 6000}",
    "/issues/fla-160?build=torch-",
    "/issues/fla-160?hardware=tpu",
    "/releases/torch-2.7.1+cu126?hardware=tpu",
    "/runs?limit=0",
    "/runs?limit=x",
    "/matrix?hardwre=cpu-x86_64",
    "/preferences?lang=xx",
    "/preferences?theme=pink",
    "/preferences?theme=dark&to=https://elsewhere.example",
    "/preferences?theme=dark&to=//elsewhere.example",
    "/preferences?theme=dark&to=/%5Celsewhere.example",
]


@pytest.mark.parametrize("address", BAD_QUERIES)
def test_a_question_that_makes_no_sense_is_told_so(client: TestClient, address: str) -> None:
    answers = {client.get(address).status_code, client.get(f"/api/v1{address.replace('/?', '/matrix?')}").status_code}
    assert answers <= {200, 404, 422}
    assert 422 in answers


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40) | st.text(string.printable)


@given(
    path=st.sampled_from(
        [MATRIX, "/issues/fla-160", f"/cells/fla-160/{BAD.id}", "/releases/2.7", "/api/v1/matrix", "/api/v1/events"]
    ),
    name=st.sampled_from(
        ["q", "issues", "builds", "component", "verdict", "hardware", "columns", "build", "lang", "run"]
    ),
    value=TEXT,
)
def test_no_query_is_a_fault_of_the_server(client: TestClient, path: str, name: str, value: str) -> None:
    if path == "/api/v1/events" and not (name == "run" and value):
        return  # such a stream goes on
    assert client.get(path, params={name: value}).status_code in {200, 404, 422}


@given(
    room=st.sampled_from(["issues", "builds", "cells/fla-160", "attempts", "runs"]),
    name=TEXT.filter(lambda text: text.strip("./ ")),
)
def test_no_name_is_a_fault_of_the_server(client: TestClient, room: str, name: str) -> None:
    for prefix in ("", "/api/v1"):
        assert client.get(f"{prefix}/{room}/{quote(name, safe='')}").status_code in {200, 307, 404, 422}


def test_a_fault_of_ours_tells_nothing_of_the_inside(own: TestClient) -> None:
    app_of(own).state.state = None  # which no request can do
    response = TestClient(app_of(own), raise_server_exceptions=False).get("/api/v1/issues")
    assert response.status_code == 500
    assert response.headers["content-type"] == PROBLEM
    assert "NoneType" not in response.text
    assert response.headers["content-security-policy"]


def test_a_database_that_cannot_be_used_is_said_without_its_address() -> None:
    client = client_of(connect("sqlite:////nowhere/at/all.db"))
    for address in (MATRIX, "/api/v1/matrix", "/readyz", "/api/v1/events"):
        response = client.get(address)
        assert response.status_code == 503
        assert response.headers["retry-after"] == "10"
        assert "nowhere" not in response.text
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("typed", "known", "found"),
    [
        ("pytorch-15129", ["pytorch-151290", "fla-160"], "pytorch-151290"),
        ("151290", ["pytorch-151290", "pytorch-15129"], "pytorch-151290"),
        ("torch-2.7.1+cu128", ["torch-2.7.1+cu126", "torch-2.1.0+cu121"], "torch-2.7.1+cu126"),
    ],
)
def test_the_nearest_name_comes_first(typed: str, known: list[str], found: str) -> None:
    assert nearest(typed, known)[0] == found


def test_nothing_is_near_to_nonsense() -> None:
    assert nearest("%%%%", ["pytorch-151290"]) == []


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("/releases/2.7.1?hardwar=H100", "hardwar"),
        ("/matrix?columms=all", "columms"),
        (f"/issues/{MASK.id}?biuld=2.7.1", "biuld"),
        ("/releases/2.7.1?utm_source=list&fbclid=1&ref=x&mine=2.7.1&gpu=H100&lang=en", ""),
    ],
)
def test_a_page_refuses_a_slip_in_one_of_its_parameters_and_lets_pass_what_links_gather(
    client: TestClient, address: str, named: str
) -> None:
    answer = client.get(address)
    assert answer.status_code == (422 if named else 200)
    assert named in answer.text.partition("<main")[2]
