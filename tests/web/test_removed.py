"""Addresses that a release took away say what takes their place, or lead there."""

import pytest
from starlette.testclient import TestClient

from knowngood.web.removed import REMOVED, router_of
from tests.web.asking import address_of, app_of

TAKEN = {
    "/old": "this page is no more; /api/v1/old has what it showed",
    "/api/v1/old": "this form is no more; ask /api/v1/new",
    "/old/{name}/edit": "/new/{name}",
    "/old-docs/{rest:path}": "https://docs.example.org/{rest}.md",
}


@pytest.fixture
def asked(own: TestClient) -> TestClient:
    app = app_of(own)
    kept = [*app.router.routes]
    app.router.routes.clear()
    app.include_router(router_of(TAKEN))
    app.router.routes.extend(kept)
    return own


def test_a_page_that_is_no_more_says_what_takes_its_place_in_both_languages(asked: TestClient) -> None:
    page = asked.get("/old?before=3")
    assert page.status_code == 410
    assert "<h1>This page is no more; /api/v1/old has what it showed</h1>" in page.text
    assert "这个地址上原有的内容已被移除" in asked.get("/old?lang=zh").text


def test_a_program_gets_a_problem_whatever_it_asks_with_it(asked: TestClient) -> None:
    answer = asked.get("/api/v1/old?never=known")
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["detail"]) == (410, 410, TAKEN["/api/v1/old"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/old/a%20b/edit", "/new/a%20b"),
        ("/old-docs/a/b", "https://docs.example.org/a/b.md"),
        ("/old-docs///evil.example", "https://docs.example.org///evil.example.md"),
    ],
)
def test_an_old_address_leads_to_the_new_one(asked: TestClient, old: str, new: str) -> None:
    answer = asked.get(old)
    assert (answer.status_code, answer.headers["location"]) == (308, new)


def test_every_address_that_was_taken_away_answers(own: TestClient) -> None:
    for path, instead in REMOVED.items():
        answer = own.get(address_of(path))
        assert answer.status_code == (410 if " " in instead else 308), path
        assert " " not in instead or instead.split(" ")[-1] in answer.text, path
