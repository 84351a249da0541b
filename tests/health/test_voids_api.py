"""Voiding a worker's results through the API and as pages show it."""

import gzip
import hashlib
import io
from collections import Counter
from datetime import timedelta
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Actor, Scope
from knowngood.domain.verdicts.voids import VoidSpan
from knowngood.share.store import export_bundle
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.voids import unvoid_results, void_results
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import bearer, client_of
from tests.web.given import BAD, CPU_MACHINE, NOW, make_token

MASK = given.MASK.id
WORKER = {"token": "gpu-host-1"}
CELL = f"/cells/{MASK}/{BAD.id}?hardware={HARDWARE}"


@pytest.fixture(scope="session")
def bundle(notebook: Engine) -> bytes:
    out = io.BytesIO()
    with reading(notebook) as s:
        export_bundle(s, out, now=NOW, origin="somebody else")
    return out.getvalue()


@pytest.fixture
def own(own_engine: Engine, bundle: bytes) -> TestClient:
    """A server that a worker called gpu-host-1 has sent its results to."""
    given.save(own_engine, given.ISSUES, given.BUILDS)
    client = client_of(own_engine)
    worker = bearer(make_token(own_engine, Scope.SUBMIT, name="gpu-host-1"))
    assert client.post("/api/v1/results", content=bundle, headers=worker).status_code == 200
    return client


@pytest.fixture
def admin(own_engine: Engine) -> dict[str, str]:
    return bearer(make_token(own_engine, Scope.ADMIN, name="ops"))


def post(client: TestClient, headers: dict[str, str], path: str = "/api/v1/voids", **body: Any) -> Any:
    return client.post(path, json=body, headers=headers)


def verdicts(client: TestClient) -> dict[tuple[str, str, str], str]:
    cells = client.get("/api/v1/matrix").json()["cells"]
    return {(cell["issue"], cell["build"], cell["hardware"]): cell["verdict"] for cell in cells}


def test_what_a_worker_sent_is_voided_at_once_and_comes_back_as_it_was(own: TestClient, admin: dict[str, str]) -> None:
    before = verdicts(own)
    asked = {"token": "gpu-host-1", "reason": "its memory is broken"}
    told = post(own, admin, **asked, dry_run=True).json()
    assert verdicts(own) == before
    done = post(own, admin, **asked).json()
    assert {**told, "dry_run": False, "void": None} == {**done, "void": None}
    assert (done["attempts"], done["cells"]) == (done["counted"], len(done["changed"]))
    assert {one["after"] for one in done["changed"]} == {"not_run"}
    assert set(verdicts(own).values()) == {"not_run", "not_applicable"}
    gate = own.get(f"/api/v1/gate?build={BAD.id.replace('+', '%2B')}&issues={MASK}").json()
    assert gate["decision"] == "insufficient_evidence"
    back = post(own, admin, f"/api/v1/voids/{done['void']['id']}/end", reason="it was another host").json()
    assert (back["attempts"], back["void"]["ended_reason"]) == (done["attempts"], "it was another host")
    assert verdicts(own) == before


def test_changes_say_why(own: TestClient, own_engine: Engine) -> None:
    span, by = VoidSpan(CPU_MACHINE.digest, "", None, NOW), Actor("ops")
    with unit_of_work(own_engine) as s:
        id_ = void_results(s, span, "its memory is broken", by=by, now=NOW + timedelta(minutes=1)).void.id
    with unit_of_work(own_engine) as s:
        unvoid_results(s, id_, "it was another host", by=by, now=NOW + timedelta(minutes=2))
    causes = [one["cause"] for one in own.get("/api/v1/changes?first=true").json()["changes"]]
    assert causes[:2] == ["unvoid", "void"]
    page = own.get(CELL).text
    assert "results of a worker were voided" in page
    assert "voided results count again" in page
    assert "results of a worker were voided" in own.get("/feeds/changes.atom").text


def test_who_when_and_why_stand_on_the_pages_of_attempt_cell_and_issue(own: TestClient, admin: dict[str, str]) -> None:
    post(own, admin, machine=CPU_MACHINE.digest, reason="its <memory> is broken")
    cell = own.get(f"/api/v1{CELL}").json()
    assert cell["voided"] == len(cell["evidence"]) > 0
    assert {(one["counted"], one["voided"]) for one in cell["evidence"]} == {(False, True)}
    attempt = own.get(f"/api/v1{cell['evidence'][0]['url']}").json()
    assert attempt["void"] == {"by": "ops", "at": "2026-11-21T15:00:00Z", "reason": "its <memory> is broken"}
    assert (attempt["received_through"], attempt["received_at"]) == ("gpu-host-1", "2026-11-21T15:00:00Z")
    for page in (own.get(cell["evidence"][0]["url"]).text, own.get(CELL).text):
        assert "voided by ops" in page
        assert "its &lt;memory&gt; is broken" in page
    assert ">voided<" in own.get(f"/issues/{MASK}").text.replace("\n", "")


def test_every_void_stands_in_the_list_and_in_the_audit_log(
    own: TestClient, admin: dict[str, str], own_engine: Engine
) -> None:
    asked = {**WORKER, "reason": "broken", "from": "2026-11-01", "to": "2026-11-20"}
    id_ = post(own, admin, **asked).json()
    (listed,) = own.get("/api/v1/voids", headers=admin).json()["voids"]
    assert listed == id_["void"]
    assert (listed["since"], listed["until"]) == ("2026-11-01T00:00:00Z", "2026-11-20T23:59:59.999999Z")
    with reading(own_engine) as s:
        (row,) = [row for row in load_audit(s) if row.action == "results.void"]
    assert (row.actor, row.subject, row.data["reason"]) == ("ops", "1", "broken")


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"reason": "so"}, 422, "say whose results"),
        ({"token": "gpu-host-1"}, 422, "reason"),
        ({"token": "nobody", "reason": "so"}, 422, "no token is or was called"),
        ({"machine": "0" * 32, "reason": "so"}, 422, "no results of a machine"),
        ({"token": "gpu-host-1", "reason": "so", "from": "yesterday"}, 422, "is no time"),
        ({"token": "gpu-host-1", "reason": "so", "to": "2027-01-01"}, 422, "still to come"),
        ({"token": "gpu-host-1", "reason": "so", "from": "2026-11-02", "to": "2026-11-01"}, 422, "no time at all"),
        ({"token": "gpu-host-1", "reason": "so", "clock": "sundial"}, 422, "clock"),
        ({"token": "gpu-host-1", "reason": "so", "force": True}, 422, "force"),
        ({"token": "gpu\0host", "reason": "so"}, 422, ""),
    ],
)
def test_a_bad_question_is_refused_with_a_sentence(
    own: TestClient, admin: dict[str, str], body: dict[str, Any], status: int, sentence: str
) -> None:
    before = verdicts(own)
    response = post(own, admin, **body)
    assert response.status_code == status, response.text
    assert sentence in response.text
    assert verdicts(own) == before


def test_a_void_that_is_not_there_is_not_found(own: TestClient, admin: dict[str, str]) -> None:
    assert post(own, admin, "/api/v1/voids/7/end", reason="so").status_code == 404


@pytest.mark.parametrize("scope", [Scope.READ, Scope.SUBMIT, Scope.TRIAGE])
def test_only_administrators_void_and_see_what_was(own: TestClient, own_engine: Engine, scope: Scope) -> None:
    who = bearer(make_token(own_engine, scope, name="another"))
    assert post(own, who, **WORKER, reason="so").status_code == 403
    assert own.get("/api/v1/voids", headers=who).status_code == 403
    assert own.get("/api/v1/voids").status_code == 401


def test_what_a_bundle_says_that_only_the_server_may_say_is_passed_over(
    own: TestClient, own_engine: Engine, admin: dict[str, str], bundle: bytes
) -> None:
    """Verdicts, what counts, when and through which token something came in: a worker cannot claim them."""
    lines = [given_json(line) for line in bundle_lines(bundle)]
    for line in lines:
        if line["kind"] == "attempt":
            line |= {"id": f"x{line['id'][1:]}", "counts_as": "pass", "token": "ops", "void": 1, "origin": "the lab"}
            line |= {"received_at": "2020-01-01T00:00:00Z", "verdict": "not_affected"}
    lines.insert(-1, {"kind": "cell", "issue": MASK, "build": BAD.id, "hardware": HARDWARE, "verdict": "not_affected"})
    before = verdicts(own)
    forged = bearer(make_token(own_engine, Scope.SUBMIT, name="gpu-host-2"))
    told = own.post("/api/v1/results", content=sealed(lines), headers=forged)
    assert told.status_code == 200, told.text
    assert (told.json()["origin"], told.json()["voided"], told.json()["changed"] > 0) == ("gpu-host-2", 0, True)
    assert verdicts(own) == before
    new = next(line["id"] for line in lines if line["kind"] == "attempt")
    attempt = own.get(f"/api/v1/attempts/{new}").json()
    assert (attempt["origin"], attempt["received_through"], attempt["void"]) == ("gpu-host-2", "gpu-host-2", None)
    assert attempt["received_at"] == "2026-11-21T15:00:00Z"


def test_a_result_that_our_own_dispatcher_is_to_bring_is_taken_from_nobody_else(
    own: TestClient, own_engine: Engine, bundle: bytes
) -> None:
    """Everybody can read the number of an attempt that is planned: in the events of its run."""
    given.queue(own_engine, given.Asked([given.NEW], NOW))
    spec = given.claim(own_engine, NOW)
    assert spec is not None
    lines = [given_json(line) for line in bundle_lines(bundle)]
    first = next(line for line in lines if line["kind"] == "attempt")
    first["id"] = spec.arms[0].attempt
    worker = bearer(make_token(own_engine, Scope.SUBMIT, name="gpu-host-2"))
    told = own.post("/api/v1/results", content=sealed(lines), headers=worker)
    assert told.status_code == 422
    assert "is planned here" in told.json()["detail"]
    assert own.get(f"/api/v1/attempts/{first['id']}").status_code == 404


def bundle_lines(data: bytes) -> list[bytes]:
    return gzip.decompress(data).splitlines()


def given_json(line: bytes) -> dict[str, Any]:
    value: dict[str, Any] = orjson.loads(line)
    return value


def sealed(lines: list[dict[str, Any]]) -> bytes:
    """These lines as a bundle whose last line fits them."""
    body = b"".join(orjson.dumps(line) + b"\n" for line in lines[:-1])
    counts = Counter(line["kind"] for line in lines[1:-1])
    footer = {"kind": "footer", "counts": counts, "sha256": hashlib.sha256(body).hexdigest()}
    return body + orjson.dumps(footer) + b"\n"
