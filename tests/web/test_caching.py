"""Copies: a reader's copy is confirmed with one query, and never outlives what it shows."""

from datetime import datetime, timedelta

import pytest
from starlette.testclient import TestClient

from knowngood.store.engine import Engine
from knowngood.web.app_state import ResponseCache
from knowngood.web.html.templates import assets_version, read_assets
from knowngood.web.urls import MATRIX
from tests.fixtures.databases import CountStatements
from tests.make import NOON
from tests.web import given
from tests.web.asking import app_over
from tests.web.given import BAD, DYNAMO, NOW, Asked

PAGES = ["/", MATRIX, "/issues/fla-160", f"/cells/fla-160/{BAD.id}", "/releases/2.7.1", "/runs"]
TWINS = [
    "/api/v1/overview",
    "/api/v1/matrix",
    "/api/v1/issues/fla-160",
    f"/api/v1/cells/fla-160/{BAD.id}",
    "/api/v1/runs",
]


@pytest.mark.parametrize("address", [*PAGES, *TWINS])
def test_an_unchanged_answer_costs_one_query_and_no_body(
    client: TestClient, notebook: Engine, count_statements: CountStatements, address: str
) -> None:
    etag = client.get(address).headers["etag"]
    with count_statements(notebook) as said:
        again = client.get(address, headers={"If-None-Match": f'"other", {etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert len(said) == 1


def test_a_result_changes_every_tag(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    before = {address: own.get(address).headers["etag"] for address in [*PAGES, *TWINS]}
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]))
    for address, etag in before.items():
        assert own.get(address, headers={"If-None-Match": etag}).status_code == 200


def test_a_tag_belongs_to_one_address_language_and_theme(client: TestClient) -> None:
    tags = [
        client.get(MATRIX).headers["etag"],
        client.get(f"{MATRIX}?columns=all").headers["etag"],
        client.get(MATRIX, headers={"Cookie": "theme=dark"}).headers["etag"],
        client.get(MATRIX, headers={"Cookie": "lang=zh"}).headers["etag"],
    ]
    assert len(set(tags)) == 4
    assert client.get(MATRIX).headers["vary"] == "Cookie, Accept-Language"


@pytest.fixture
def moving(notebook: Engine) -> tuple[TestClient, list[datetime]]:
    times = [NOW]
    return TestClient(app_over(notebook, clock=lambda: times[-1]), headers={"X-Request-ID": "one-of-a-test"}), times


def test_a_page_that_tells_minutes_is_confirmed_for_a_minute_and_json_for_a_day(
    moving: tuple[TestClient, list[datetime]],
) -> None:
    client, times = moving
    page, twin = client.get(MATRIX).headers["etag"], client.get("/api/v1/matrix").headers["etag"]
    times.append(NOW + timedelta(minutes=1))
    assert client.get(MATRIX, headers={"If-None-Match": page}).status_code == 200
    assert client.get("/api/v1/matrix", headers={"If-None-Match": twin}).status_code == 304
    times.append(NOW + timedelta(days=1))
    assert client.get("/api/v1/matrix", headers={"If-None-Match": twin}).status_code == 200


def test_what_was_made_for_one_reader_is_given_to_the_next(
    moving: tuple[TestClient, list[datetime]], notebook: Engine, count_statements: CountStatements
) -> None:
    client, _ = moving
    for address in (*PAGES, *TWINS):
        first = client.get(address)
        with count_statements(notebook) as said:
            second = client.get(address)
        assert len(said) == 1
        assert (second.content, second.headers) == (first.content, first.headers)


def test_what_was_made_before_a_result_is_not_shown_after_it(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    client = TestClient(app_over(own_engine))
    before = {address: client.get(address).content for address in [*PAGES, *TWINS]}
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]))
    for address, body in before.items():
        after = client.get(address).content
        assert after != body
        assert after == own.get(address).content


def test_what_was_made_a_minute_ago_is_made_anew(moving: tuple[TestClient, list[datetime]]) -> None:
    client, times = moving
    assert "1 h ago" in client.get(MATRIX).text
    times.append(NOW + timedelta(minutes=1))
    assert "2 h ago" in client.get(MATRIX).text


def test_what_was_made_for_one_name_of_the_server_is_not_given_under_another(
    moving: tuple[TestClient, list[datetime]],
) -> None:
    client, _ = moving
    for host in ("one.example", "two.example"):
        assert f"curl -O http://{host}/" in client.get("/issues/fla-160", headers={"Host": host}).text


def test_answers_are_kept_within_bounds_the_last_asked_for_longest() -> None:
    answers = ResponseCache(most_bytes=10)
    headers: dict[str, str] = {}
    small, large = (b"1234", headers), (b"1234567890+", headers)
    for name in "ab":
        answers.keep((name,), small)
    assert answers.find(("a",)) == small
    answers.keep(("c",), small)
    answers.keep(("d",), large)
    assert [answers.find((name,)) is not None for name in "abcd"] == [True, False, True, False]


@pytest.mark.parametrize(("address", "most"), [("/compare?a=2.7.1&b=2.8.0", 28_900), ("/search", 2_500)])
def test_a_page_weighs_no_more_than_in_version_0_2(shipped: Engine, address: str, most: int) -> None:
    """For as many issues: that version had 161."""
    with TestClient(app_over(shipped)) as client:
        answer = client.get(address, headers={"Accept-Encoding": "gzip"})
        issues = len(client.get("/api/v1/issues").json()["issues"])
    assert int(answer.headers["content-length"]) <= most * (issues / 161 if address.startswith("/compare") else 1)


def test_pages_are_compressed_and_streams_are_not(moving: tuple[TestClient, list[datetime]]) -> None:
    client, _ = moving
    page = client.get(MATRIX, headers={"Accept-Encoding": "gzip"})
    assert page.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in page.headers["vary"]
    run = client.get("/api/v1/runs").json()["runs"][0]["id"]
    stream = client.get(f"/api/v1/events?run={run}&after=0", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in stream.headers


def test_head_is_get_without_the_body(client: TestClient) -> None:
    head, page = client.head("/runs"), client.get("/runs")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == page.headers["etag"]
    assert head.headers["content-length"] == page.headers["content-length"]


def test_static_files_may_be_kept_for_ever_under_the_digest_of_their_content(client: TestClient) -> None:
    for name, asset in read_assets().items():
        response = client.get(asset.address)
        assert (response.content, response.headers["cache-control"]) == (
            asset.content,
            "public, max-age=31536000, immutable",
        )
        assert client.get(f"/static/older/{name}").headers["cache-control"] == "no-cache"
    assert client.get("/static/x/nothing.css").status_code == 404
    assert client.get("/static/x/..%2Ferrors.py").status_code == 404


def test_a_new_edition_of_the_pages_is_a_new_tag() -> None:
    assets = dict(read_assets())
    before = assets_version(assets)
    assets.pop("app.css")
    assert assets_version(assets) != before
