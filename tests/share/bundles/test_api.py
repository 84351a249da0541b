"""Bundles over HTTP: whole, once, and under the name of whoever sent it."""

import asyncio
import contextlib
import gzip
import io
import tempfile
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.domain.issue import digest
from knowngood.share import api as bundles_api
from knowngood.share.bundle import BundleHeader, LogText, write_bundle
from knowngood.share.store import export_bundle
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import Engine, reading
from knowngood.store.queries import load_attempts
from knowngood.web.auth.principal import AccessPolicy
from tests.full_disk import no_file_larger_than
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import bearer, client_of
from tests.web.given import BAD, NOW, make_token

MASK = given.MASK.id


@pytest.fixture(scope="session")
def bundle(notebook: Engine) -> bytes:
    out = io.BytesIO()
    with reading(notebook) as s:
        export_bundle(s, out, now=NOW, origin="somebody else")
    return out.getvalue()


@pytest.fixture
def own(own_engine: Engine) -> TestClient:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    return client_of(own_engine)


@pytest.fixture
def worker(own_engine: Engine) -> dict[str, str]:
    return bearer(make_token(own_engine, Scope.SUBMIT, name="gpu-host-1"))


def post(client: TestClient, headers: dict[str, str], body: bytes) -> Any:
    return client.post("/api/v1/results", content=body, headers=headers)


def attempts(engine: Engine) -> int:
    with reading(engine) as s:
        return len(load_attempts(s, MASK, BAD.id, HARDWARE))


def test_a_bundle_fills_the_matrix(
    own: TestClient, client: TestClient, own_engine: Engine, worker: dict[str, str], bundle: bytes
) -> None:
    assert attempts(own_engine) == 0
    report = post(own, worker, bundle)
    assert report.status_code == 200
    told = report.json()
    assert told["added"] > 10
    assert (told["origin"], told["known"], told["unknown"], told["superseded"]) == ("gpu-host-1", 0, 0, 0)
    there, here = (one.get("/api/v1/matrix").json()["cells"] for one in (client, own))
    assert [(cell["issue"], cell["build"], cell["verdict"]) for cell in here] == [
        (cell["issue"], cell["build"], cell["verdict"]) for cell in there
    ]


def test_the_same_bundle_again_changes_nothing(own: TestClient, worker: dict[str, str], bundle: bytes) -> None:
    first, tag = post(own, worker, bundle).json(), own.get("/api/v1/matrix").json()
    again = post(own, worker, bundle).json()
    assert (again["added"], again["known"], again["changed"]) == (0, first["added"], 0)
    assert own.get("/api/v1/matrix").json() == tag


def test_the_origin_is_the_tokens_name_whatever_the_bundle_says(
    own: TestClient, own_engine: Engine, worker: dict[str, str], bundle: bytes
) -> None:
    post(own, worker, bundle)
    with reading(own_engine) as s:
        rows = load_attempts(s, MASK, BAD.id, HARDWARE)
    assert {row.attempt.origin for row in rows} == {"gpu-host-1"}


def test_a_bundle_that_went_through_another_store_is_still_its_senders(
    own: TestClient, own_engine: Engine, worker: dict[str, str], bundle: bytes, tmp_path: Path
) -> None:
    """Attempts that name an origin of their own cannot pretend to be another worker's."""
    assert bundle.count(b"") > 0
    plain = gzip.decompress(bundle)
    assert b'"origin":"somebody else"' in plain
    post(own, worker, bundle)
    out = io.BytesIO()
    with reading(own_engine) as s:
        export_bundle(s, out, now=NOW, origin="here")
    assert b'"origin":"gpu-host-1"' in gzip.decompress(out.getvalue())
    with reading(own_engine) as s:
        (row,) = [row for row in load_audit(s) if row.action == "results.import"]
    assert (row.actor, row.data["origin"]) == ("gpu-host-1", "gpu-host-1")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        pytest.param(lambda _: b"", "the body is empty", id="nothing"),
        pytest.param(lambda _: b"hello\n", "is no Known Good bundle", id="another thing"),
        pytest.param(lambda _: b'{"kind": "header"}\n', "is no Known Good bundle", id="another JSON"),
        pytest.param(lambda whole: whole[: len(whole) // 2], "cut off", id="half of it"),
        pytest.param(lambda whole: gzip.decompress(whole).rpartition(b'{"kind":"footer"')[0], "cut off", id="no end"),
        pytest.param(lambda whole: gzip.decompress(whole).replace(b"EPYC", b"EPIC"), "checksum", id="changed"),
        pytest.param(lambda _: b"\x1f\x8b" + b"\x00" * 100, "damaged", id="no gzip"),
        pytest.param(lambda _: b"\x00" * 1000, "bundle", id="zeros"),
    ],
)
def test_a_bundle_that_is_not_whole_is_refused_whole_with_a_sentence(
    own: TestClient, own_engine: Engine, worker: dict[str, str], bundle: bytes, damage: Any, sentence: str
) -> None:
    response = post(own, worker, damage(bundle))
    assert response.status_code == 422
    assert sentence in response.json()["detail"]
    assert "/tmp" not in response.json()["detail"]  # noqa: S108 - no path of ours is told
    assert attempts(own_engine) == 0
    with reading(own_engine) as s:
        assert not [row for row in load_audit(s) if row.action == "results.import"]


@pytest.mark.parametrize("is_told", [True, False])
def test_a_bundle_beyond_the_limit_is_refused_whether_or_not_it_says_its_length(
    own_engine: Engine, worker: dict[str, str], bundle: bytes, is_told: bool
) -> None:
    client = client_of(own_engine, AccessPolicy(results_limit=1000))
    body: Any = bundle if is_told else iter([bundle[:600], bundle[600:]])
    response = client.post("/api/v1/results", content=body, headers=worker)
    assert response.status_code == 413
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("where", ["as it comes", "as it is unpacked"])
def test_a_full_disk_is_no_fault_of_the_sender_who_is_to_try_again(
    own: TestClient, own_engine: Engine, worker: dict[str, str], where: str
) -> None:
    text = "x" * 1_000_000
    logs = [LogText(digest(f"{text}{n}"), f"{text}{n}") for n in range(10)]
    out = io.BytesIO()
    write_bundle(out, BundleHeader(NOW, "gpu-box"), logs)
    body = gzip.decompress(out.getvalue()) if where == "as it comes" else out.getvalue()
    with no_file_larger_than(5 << 20):
        told = post(own, worker, body)
    assert (told.status_code, told.headers["Retry-After"]) == (503, "10")
    assert post(own, worker, body).status_code == 200


@pytest.mark.parametrize(
    ("scope", "status"), [(Scope.READ, 403), (Scope.TRIAGE, 403), (Scope.SUBMIT, 422), (Scope.ADMIN, 422)]
)
def test_only_who_may_submit_is_read_from(own: TestClient, own_engine: Engine, scope: Scope, status: int) -> None:
    assert post(own, bearer(make_token(own_engine, scope)), b"hello\n").status_code == status
    assert post(own, {}, b"hello\n").status_code == 401


def test_a_worker_submits_where_reads_are_closed_and_reads_nothing(
    own: TestClient, own_engine: Engine, worker: dict[str, str], bundle: bytes
) -> None:
    closed = client_of(own_engine, AccessPolicy(reads_need_token=True))
    assert post(closed, worker, bundle).status_code == 200
    assert closed.get("/api/v1/matrix", headers=worker).status_code == 403


def test_a_token_that_sends_without_end_is_told_when_to_go_on_and_its_body_is_not_read(
    own_engine: Engine, worker: dict[str, str], bundle: bytes
) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    client = client_of(own_engine, AccessPolicy(results_per_minute=2))
    assert [post(client, worker, bundle).status_code for _ in range(2)] == [200, 200]
    third = post(client, worker, b"hello\n")
    assert (third.status_code, int(third.headers["retry-after"]) > 0) == (429, True)
    other = bearer(make_token(own_engine, Scope.SUBMIT, name="gpu-host-2"))
    assert post(client, other, bundle).status_code == 200
    assert client.get("/api/v1/matrix").status_code == 200


def test_a_body_leaves_no_file_behind_however_the_server_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"some results", "more_body": False}

    async def look() -> tuple[bytes, list[str]]:
        async with contextlib.aclosing(bundles_api._received(Request({"type": "http"}, receive))) as receiving:
            path = await anext(receiving)
            return path.read_bytes(), [*map(str, tmp_path.iterdir())]  # noqa: ASYNC240 - nobody else runs

    assert asyncio.run(look()) == (b"some results", [])


def test_every_bundle_leaves_an_entry_in_the_audit_log(
    own: TestClient, own_engine: Engine, worker: dict[str, str], bundle: bytes
) -> None:
    for body in (bundle, bundle, bundle[:-30]):
        post(own, worker, body)
    with reading(own_engine) as s:
        told = [(row.action, row.actor) for row in reversed(load_audit(s)) if row.action.startswith("results")]
    assert told == [(f"results.{what}", "gpu-host-1") for what in ("import", "import", "refuse")]
