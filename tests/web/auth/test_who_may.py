"""Tokens, sessions and closed reads: who is let in, who is told what would do, and what no copy gives away."""

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Actor, Scope
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.tables import tokens
from knowngood.store.tokens import load_tokens, revoke_token
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.errors import PROBLEM_MEDIA
from knowngood.web.urls import MATRIX
from tests.fixtures.databases import CountStatements
from tests.web import given
from tests.web.asking import app_over, bearer, client_of
from tests.web.given import NOW, make_token

CLOSED = AccessPolicy(reads_need_token=True)
HERE = {"Origin": "http://testserver"}
PAGES = [MATRIX, "/runs", "/watchlists", "/hygiene", "/api/docs"]
TWINS = ["/api/v1/matrix", "/api/v1/runs", "/api/v1/watchlists", "/openapi.json"]


@pytest.fixture
def closed(own_engine: Engine) -> TestClient:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    return client_of(own_engine, CLOSED)


def revoke(engine: Engine, name: str = "ci") -> None:
    with unit_of_work(engine) as s:
        revoke_token(s, name, by=Actor("an admin"), now=NOW)


def sign_in(client: TestClient, secret: str, to: str = "/", **headers: str) -> Any:
    return client.post("/sign-in", data={"token": secret, "to": to}, headers={**HERE, **headers})


def form_token(client: TestClient) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', client.get("/sign-in").text)
    assert found
    return found[1]


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_whoami_tells_a_token_what_it_may(own: TestClient, own_engine: Engine) -> None:
    secret = make_token(own_engine, Scope.SUBMIT, Scope.READ, expires_at=NOW + timedelta(days=1))
    assert own.get("/api/v1/whoami", headers=bearer(secret)).json() == {
        "name": "ci",
        "scopes": ["read", "submit"],
        "expires_at": "2026-11-22T15:00:00Z",
        "reads": "open",
    }
    nobody = own.get("/api/v1/whoami")
    assert nobody.json() == {"name": None, "scopes": [], "expires_at": None, "reads": "open"}
    assert nobody.headers["cache-control"] == "no-store"


MALFORMED = [
    "Bearer",
    "Bearer ",
    "bearer hello",
    "Bearer kg_",
    "Bearer kg_0123456789ab_" + "0" * 63,
    "Bearer kg_0123456789ab_" + "0" * 64 + " and more",
    "Bearer  kg_0123456789ab_" + "0" * 64,
    "Bearerkg_0123456789ab_" + "0" * 64,
    "Bearer ' OR 1=1 --",
    "Bearer " + "x" * 5000,
]


@pytest.mark.parametrize("header", MALFORMED)
@pytest.mark.parametrize("address", ["/api/v1/matrix", "/api/v1/whoami", "/"])
def test_a_token_that_does_not_count_is_told_so_even_where_reads_are_open(
    own: TestClient, header: str, address: str
) -> None:
    response = own.get(address, headers={"Authorization": header})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="Known Good", error="invalid_token"'
    assert response.headers["cache-control"] == "no-store"
    if address != "/":
        assert response.headers["content-type"] == PROBLEM_MEDIA
        assert response.json()["status"] == 401


def test_the_header_of_a_proxy_before_us_is_not_ours(own: TestClient) -> None:
    assert own.get("/api/v1/matrix", headers={"Authorization": "Basic dXNlcjpwYXNz"}).status_code == 200


def test_several_tokens_at_once_are_refused(own: TestClient, own_engine: Engine) -> None:
    secret = make_token(own_engine, Scope.READ)
    twice = [("Authorization", f"Bearer {secret}"), ("Authorization", f"Bearer {secret}")]
    response = own.get("/api/v1/whoami", headers=twice)
    assert (response.status_code, response.json()["detail"]) == (
        401,
        "there are several Authorization headers; send one",
    )


def test_an_expired_and_a_revoked_token_say_so(own: TestClient, own_engine: Engine) -> None:
    expired = make_token(own_engine, Scope.READ, name="old", expires_at=NOW + timedelta(seconds=1))
    late = TestClient(app_over(own_engine, clock=lambda: NOW + timedelta(hours=1)))
    assert "expired on 2026-11-21" in late.get("/api/v1/whoami", headers=bearer(expired)).json()["detail"]
    revoked = make_token(own_engine, Scope.READ)
    assert own.get("/api/v1/whoami", headers=bearer(revoked)).status_code == 200
    revoke(own_engine)
    response = own.get("/api/v1/whoami", headers=bearer(revoked))
    assert response.status_code == 401
    assert "was revoked" in response.json()["detail"]


def test_a_read_without_a_token_asks_nothing_of_the_token_table(
    client: TestClient, notebook: Engine, count_statements: CountStatements
) -> None:
    with count_statements(notebook) as said:
        client.get("/api/v1/runs")
    assert not [one for one in said if "tokens" in one or "sessions" in one]


def test_a_token_costs_one_query_and_one_note_a_minute(
    own: TestClient, own_engine: Engine, count_statements: CountStatements
) -> None:
    secret = make_token(own_engine, Scope.READ)
    counts = []
    for _ in range(3):
        with count_statements(own_engine) as said:
            own.get("/api/v1/whoami", headers=bearer(secret))
        counts.append(sum(not one.startswith("SET LOCAL") for one in said))  # how long PostgreSQL is to wait
    assert counts == [2, 1, 1]
    with reading(own_engine) as s:
        assert [token.last_used_at for token in load_tokens(s)] == [NOW]


def test_a_token_is_answered_while_another_writer_is_at_work(own: TestClient, own_engine: Engine) -> None:
    """An import of minutes holds SQLite's only write lock, an administrator the token's row; the note is dropped."""
    secret = make_token(own_engine, Scope.READ)
    busy = connect(str(own_engine.url))
    with unit_of_work(busy) as s:
        s.execute(tokens.update().values(name=tokens.c.name))
        assert own.get("/api/v1/whoami", headers=bearer(secret)).status_code == 200
    busy.dispose()
    with reading(own_engine) as s:
        assert [token.last_used_at for token in load_tokens(s)] == [None]


def test_every_write_asks_for_a_scope_and_says_which(own: TestClient, own_engine: Engine) -> None:
    read = make_token(own_engine, Scope.READ, name="reader")
    writes = {
        (method, path)
        for path, methods in own.get("/openapi.json").json()["paths"].items()
        for method in methods
        if method != "get" and path not in {"/api/v1/gate", "/api/v1/errors"}  # reads whose question may be long
    }
    assert len(writes) >= 4
    bodies: dict[tuple[str, str], Mapping[str, object]] = {
        ("put", "/api/v1/watchlists/{name}"): {"issues": ["fla-160"]},
        ("post", "/api/v1/cells/{issue}/{build}/notes"): {"kind": "void", "reason": "so"},
        ("post", "/api/v1/voids"): {"token": "gpu-host-1", "reason": "so"},
        ("post", "/api/v1/voids/{void}/end"): {"reason": "so"},
    }
    for method, path in writes:
        address = re.sub(r"{\w+}", "x", path)
        without = own.request(method, address, json=bodies.get((method, path)))
        assert (without.status_code, without.headers["content-type"]) == (401, PROBLEM_MEDIA), path
        assert without.headers["www-authenticate"] == 'Bearer realm="Known Good"'
        reader = own.request(method, address, json=bodies.get((method, path)), headers=bearer(read))
        assert (reader.status_code, reader.headers["content-type"]) == (403, PROBLEM_MEDIA), path
        scope = "submit" if "results" in path else "admin" if "voids" in path else "triage"
        wanted = f'Bearer realm="Known Good", error="insufficient_scope", scope="{scope}"'
        assert reader.headers["www-authenticate"] == wanted


# -- closed reads ------------------------------------------------------------------------------------------------------


def test_closed_reads_ask_programs_for_a_token_and_lead_people_to_the_door(closed: TestClient) -> None:
    for address in TWINS:
        response = closed.get(address)
        assert (response.status_code, response.headers["content-type"]) == (401, PROBLEM_MEDIA), address
        assert response.headers["www-authenticate"] == 'Bearer realm="Known Good"'
    for address in PAGES:
        response = closed.get(f"{address}?a=b")
        assert response.status_code == 303, address
        assert response.headers["location"].startswith(f"/sign-in?to={address.replace('/', '%2F')}%3Fa%3Db")


@pytest.mark.parametrize(
    "address",
    ["/healthz/x", "/sign-in/../runs", "/sign-in%2F..%2Fruns", "/healthz%3F/../runs", "/api/v1/results/1", "//healthz"],
)
def test_what_only_reads_like_an_open_address_is_closed(closed: TestClient, address: str) -> None:
    assert closed.get(address).status_code in {303, 401}


def test_a_token_where_the_store_cannot_be_asked_is_our_fault_not_its() -> None:
    client = client_of(connect("sqlite:////nowhere/at/all.db"), CLOSED)
    response = client.get("/api/v1/runs", headers=bearer("kg_0123456789ab_" + "0" * 64))
    assert (response.status_code, response.headers["retry-after"]) == (503, "10")
    assert "nowhere" not in response.text


@pytest.mark.parametrize("address", ["/healthz", "/readyz", "/sign-in", "/api/v1/whoami"])
def test_what_a_watchman_and_a_guest_need_stays_open(closed: TestClient, address: str) -> None:
    assert closed.get(address).status_code == 200


def test_static_files_stay_open(closed: TestClient) -> None:
    (sheet,) = re.findall(r'href="(/static/[^"]*app\.css)"', closed.get("/sign-in").text)
    assert closed.get(sheet).status_code == 200


@pytest.mark.parametrize(
    ("scope", "status"), [(Scope.READ, 200), (Scope.TRIAGE, 200), (Scope.ADMIN, 200), (Scope.SUBMIT, 403)]
)
def test_a_token_that_reads_opens_them(closed: TestClient, own_engine: Engine, scope: Scope, status: int) -> None:
    secret = make_token(own_engine, scope)
    for address in (*PAGES, *TWINS):
        assert closed.get(address, headers=bearer(secret)).status_code == status


def test_a_copy_made_for_one_reader_is_not_given_to_one_who_may_not_read(own_engine: Engine) -> None:
    """With kept answers, as a server has them: the door is before them."""
    given.save(own_engine, given.ISSUES, given.BUILDS)
    secret = make_token(own_engine, Scope.READ)
    client = TestClient(app_over(own_engine, rules=CLOSED), follow_redirects=False)
    for address in (MATRIX, "/runs", "/api/v1/matrix", "/api/v1/runs"):
        client.get(address, headers=bearer(secret))
        made = client.get(address, headers=bearer(secret))
        assert made.status_code == 200
        assert client.get(address).status_code in {303, 401}
        assert client.get(address, headers={"If-None-Match": made.headers["etag"]}).status_code in {303, 401}
    revoke(own_engine)
    assert client.get("/api/v1/matrix", headers=bearer(secret)).status_code == 401


def test_what_not_everybody_may_read_is_kept_by_no_shared_cache(closed: TestClient, own_engine: Engine) -> None:
    secret = make_token(own_engine, Scope.READ)
    for address in (MATRIX, "/runs", "/api/v1/matrix"):
        made = closed.get(address, headers=bearer(secret))
        again = closed.get(address, headers={**bearer(secret), "If-None-Match": made.headers["etag"]})
        assert again.status_code == 304
        for response in (made, again):
            assert response.headers["cache-control"] == "private, no-cache"
            wanted = "Cookie, Authorization" if address.startswith("/api") else "Cookie, Accept-Language, Authorization"
            assert response.headers["vary"] == wanted


def test_a_page_that_says_who_is_signed_in_is_given_to_nobody_else(own_engine: Engine) -> None:
    """Reads are open here, and answers are kept."""
    given.save(own_engine, given.ISSUES, given.BUILDS)
    client = TestClient(app_over(own_engine), follow_redirects=False)
    sign_in(client, make_token(own_engine, Scope.READ, name="ada"))
    mine = client.get("/runs")
    assert ">ada</a>" in mine.text
    assert mine.headers["cache-control"] == "private, no-cache"
    client.cookies.clear()
    others = client.get("/runs", headers={"If-None-Match": mine.headers["etag"]})
    assert (others.status_code, others.headers["cache-control"]) == (200, "no-cache")
    assert "ada" not in others.text
    assert others.headers["etag"] != mine.headers["etag"]


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_person_signs_in_with_a_token_and_goes_on_where_they_were(closed: TestClient, own_engine: Engine) -> None:
    secret = make_token(own_engine, Scope.READ)
    door = closed.get("/runs?limit=3").headers["location"]
    assert 'value="/runs?limit=3"' in closed.get(door).text
    response = sign_in(closed, f" {secret} ", "/runs?limit=3")
    assert (response.status_code, response.headers["location"]) == (303, "/runs?limit=3")
    assert response.headers["cache-control"] == "no-store"
    assert closed.get("/runs").status_code == 200
    assert "Signed in as ci" in closed.get("/sign-in").text


@pytest.mark.parametrize(("base", "is_secure"), [("http://testserver", ""), ("https://testserver", True)])
def test_the_cookie_is_for_this_server_alone_and_no_script_reads_it(
    own_engine: Engine, base: str, is_secure: object
) -> None:
    secret = make_token(own_engine, Scope.READ)
    response = sign_in(client_of(own_engine, base=base), secret, Origin=base)
    cookie = SimpleCookie(response.headers["set-cookie"])["session"]
    assert (cookie["httponly"], cookie["samesite"].lower(), cookie["path"]) == (True, "strict", "/")
    assert (cookie["secure"], cookie["domain"], cookie["max-age"]) == (is_secure, "", "43200")
    assert secret.rpartition("_")[2] not in response.headers["set-cookie"]


@pytest.mark.parametrize("secret", ["", "hello", "kg_0123456789ab_" + "0" * 64])
def test_a_token_that_does_not_count_opens_no_session(own: TestClient, secret: str) -> None:
    response = sign_in(own, secret)
    assert response.status_code == 403
    assert 'role="alert"' in response.text
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="neither header"),
        pytest.param({"Origin": "http://elsewhere.example"}, id="another site"),
        pytest.param({"Origin": "null"}, id="a sandbox"),
        pytest.param({"Origin": "http://testserver.elsewhere.example"}, id="a longer name"),
        pytest.param({"Origin": "http://testserver:8000"}, id="another port"),
        pytest.param({"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"}, id="the browser knows better"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, id="a sibling"),
    ],
)
def test_another_site_signs_nobody_in_or_out(own: TestClient, own_engine: Engine, headers: dict[str, str]) -> None:
    secret = make_token(own_engine, Scope.READ)
    assert own.post("/sign-in", data={"token": secret}, headers=headers).status_code == 403
    sign_in(own, secret)
    token = form_token(own)
    assert own.post("/sign-out", data={"form_token": token}, headers=headers).status_code == 403
    assert "Signed in as ci" in own.get("/sign-in").text


@pytest.mark.parametrize("sent", [{"other": "x"}, {"form_token": ""}, {"form_token": "0" * 64}, {"form_token": "é"}])
def test_a_cookie_without_the_forms_own_word_does_nothing(
    own: TestClient, own_engine: Engine, sent: dict[str, str]
) -> None:
    sign_in(own, make_token(own_engine, Scope.READ))
    assert own.post("/sign-out", data=sent, headers=HERE).status_code == 403
    assert "Signed in as ci" in own.get("/sign-in").text


def test_signing_out_ends_the_session_also_for_a_copy_of_the_cookie(own: TestClient, own_engine: Engine) -> None:
    sign_in(own, make_token(own_engine, Scope.READ))
    copy = own.cookies["session"]
    response = own.post("/sign-out", data={"form_token": form_token(own)}, headers=HERE)
    assert (response.status_code, response.headers["location"]) == (303, "/sign-in")
    assert "session" not in own.cookies
    assert "Signed in as" not in own.get("/sign-in", headers={"Cookie": f"session={copy}"}).text


def test_a_session_ends_with_its_token(closed: TestClient, own_engine: Engine) -> None:
    sign_in(closed, make_token(own_engine, Scope.READ))
    assert closed.get("/runs").status_code == 200
    revoke(own_engine)
    assert closed.get("/runs").headers["location"].startswith("/sign-in")


@pytest.mark.parametrize("cookie", ["x", "0" * 64, "' OR 1=1", ""])
def test_a_cookie_that_is_no_session_is_nobodys_and_no_fault(own: TestClient, cookie: str) -> None:
    assert own.get("/runs", headers={"Cookie": f"session={cookie}"}).status_code == 200


def test_a_session_cannot_write_through_the_api(own: TestClient, own_engine: Engine) -> None:
    """A browser sends the cookie by itself, whoever made the page that asks."""
    sign_in(own, make_token(own_engine, Scope.ADMIN))
    for headers in (HERE, {"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://elsewhere.example"}, {}):
        response = own.put("/api/v1/watchlists/mine", json={"issues": ["fla-160"]}, headers=headers)
        assert response.status_code == 403
    assert own.get("/api/v1/watchlists").json() == {"watchlists": []}


def test_a_token_counts_before_a_cookie(own: TestClient, own_engine: Engine) -> None:
    sign_in(own, make_token(own_engine, Scope.READ, name="ada"))
    ci = make_token(own_engine, Scope.READ, name="ci")
    assert own.get("/api/v1/whoami").json()["name"] == "ada"
    assert own.get("/api/v1/whoami", headers=bearer(ci)).json()["name"] == "ci"
    assert own.get("/api/v1/whoami", headers=bearer("no")).status_code == 401


@pytest.mark.parametrize("to", ["https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example", "runs"])
def test_the_door_leads_nowhere_else(own: TestClient, own_engine: Engine, to: str) -> None:
    assert own.get("/sign-in", params={"to": to}).status_code == 422
    assert sign_in(own, make_token(own_engine, Scope.READ), to).status_code == 422


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"token=x", "text/plain"),
        (b'{"token": "x"}', "application/json"),
        (b"token=\xff", "application/x-www-form-urlencoded"),
        (b"&".join([b"a=b"] * 50), "application/x-www-form-urlencoded"),
    ],
)
def test_what_is_no_form_of_ours_is_told_so(own: TestClient, body: bytes, kind: str) -> None:
    response = own.post("/sign-in", content=body, headers={**HERE, "Content-Type": kind})
    assert response.status_code in {403, 422}
    assert "set-cookie" not in response.headers


def test_signing_in_and_out_is_in_the_audit_log(own: TestClient, own_engine: Engine) -> None:
    sign_in(own, make_token(own_engine, Scope.READ))
    own.post("/sign-out", data={"form_token": form_token(own)}, headers=HERE)
    with reading(own_engine) as s:
        assert [row.action for row in load_audit(s)] == ["session.close", "session.open", "token.create"]


def test_many_first_uses_at_once_are_all_answered(own: TestClient, own_engine: Engine) -> None:
    secret = make_token(own_engine, Scope.READ)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(own.get, "/api/v1/whoami", headers=bearer(secret)) for _ in range(12)]
    assert {one.result().status_code for one in asked} == {200}
