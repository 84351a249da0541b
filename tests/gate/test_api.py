"""The gate over HTTP: the decision is in the answer, the status says only whether the question was understood."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.store.engine import Engine
from knowngood.store.knowledge.cache import KnowledgeCache
from knowngood.web.auth.principal import AccessPolicy
from tests.fixtures.databases import CountStatements
from tests.make import NOON
from tests.waiting import eventually
from tests.web import given
from tests.web.asking import app_over, bearer, client_of, client_state
from tests.web.given import BAD, BUILDS, DYNAMO, GOOD, GPU_CLASS, ISSUES, NOW, Asked, make_token

GATE = "/api/v1/gate"
REQUIREMENTS = f"torch=={BAD.torch}\n"


def decided(client: TestClient, **asked: Any) -> dict[str, Any]:
    answer = client.post(GATE, json=asked)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert answer.headers["knowngood-decision"] == body["decision"]
    return body


def failing(client: TestClient) -> str:
    """An issue that fails on BAD."""
    cells = client.get("/api/v1/matrix", params={"builds": BAD.id, "verdict": "affected"}).json()["cells"]
    return str(next(cell["issue"] for cell in cells if cell["verdict"] == "affected"))


@pytest.mark.parametrize("build", [BAD.id, BAD.id.replace("+", " ")])
def test_a_build_is_asked_about_by_its_id(client: TestClient, build: str) -> None:
    answer = client.get(GATE, params={"build": build, "issues": failing(client)})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["decision"], body["build"]) == ("block", BAD.id)
    assert body["reasons"][0]["evidence_url"].startswith("http://testserver/cells/")


def test_a_build_that_nobody_tested_is_no_error(client: TestClient) -> None:
    assert decided(client, build="torch-1.2.3", issues=[failing(client)])["decision"] == "insufficient_evidence"


def test_an_environment_comes_as_json_or_as_a_form_and_means_the_same(client: TestClient) -> None:
    issue = failing(client)
    policy = f'unknown = "pass"\n[applied]\n"{issue}" = []\n'
    files = {"environment": ("requirements.txt", REQUIREMENTS), "policy": ("knowngood.toml", policy)}
    form = client.post(GATE, data={"issues": issue}, files=files)
    file = {"name": "requirements.txt", "content": REQUIREMENTS}
    body = decided(client, environment=file, policy={"name": "knowngood.toml", "content": policy}, issues=[issue])
    assert (form.status_code, form.json(), body["build"]) == (200, body, BAD.id)


@pytest.mark.parametrize(
    ("form", "media", "words"),
    [
        ("text", "text/plain", "Blocked"),
        ("markdown", "text/markdown", "**Blocked:**"),
        ("summary", "text/markdown", "**Blocked:**"),
        ("github", "text/plain", "::error"),
        ("junit", "application/xml", "<testsuite"),
        ("sarif", "application/sarif+json", "2.1.0"),
        ("codequality", "application/json", '"check_name"'),
        ("json", "application/json", '"decision"'),
    ],
)
def test_it_is_told_in_every_form_as_the_document_says(client: TestClient, form: str, media: str, words: str) -> None:
    answer = client.get(GATE, params={"build": BAD.id, "issues": failing(client), "format": form})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, media)
    assert words in answer.text
    document = client.get("/openapi.json").json()
    documented = document["paths"][GATE]["get"]["responses"]["200"]["content"][media]["schema"]
    jsonschema.validate(answer.json() if media.endswith("json") else answer.text, {**document, **documented})


@pytest.mark.parametrize(("name", "class_"), [("H100", GPU_CLASS), ("gpu", GPU_CLASS), ("A100", "cuda-sm_80")])
def test_hardware_is_asked_for_by_the_name_of_a_gpu(client: TestClient, name: str, class_: str) -> None:
    asked = {"build": BAD.id, "issues": "all"}
    told = client.get(GATE, params={**asked, "hardware": name}).json()
    assert told == client.get(GATE, params={**asked, "hardware": class_}).json()
    assert told["hardware"] == [class_]
    assert decided(client, **{**asked, "issues": ["all"]}, policy={"content": f'hardware = ["{name}"]'}) == told


def test_advice_warns_where_it_would_refuse(client: TestClient) -> None:
    asked = {"build": BAD.id, "issues": failing(client), "format": "github", "advisory": "true"}
    answer = client.get(GATE, params=asked).text
    assert "::error" not in answer
    assert "::warning" in answer


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "build"),
        ({"build": "nonsense", "severity": "low"}, "build"),
        ({"build": BAD.id, "severity": "dreadful"}, "severity"),
        ({"build": BAD.id, "issues": ["nobody-1"]}, "issues"),
        ({"build": BAD.id, "component": ["Nowhere"]}, "component"),
        ({"build": BAD.id, "watch": ["nobodys"]}, "watch"),
        ({"build": BAD.id, "severity": "low", "hardware": ["toaster"]}, "hardware"),
        ({"build": BAD.id, "severity": "low", "applied": ["nothing"]}, "applied"),
        ({"build": BAD.id, "severity": "low", "only_new": True}, "base"),
        ({"build": BAD.id, "severity": "low", "only_new": True, "base": "nonsense"}, "base"),
        ({"build": BAD.id, "base_environment": {"name": "uv.lock", "content": "]["}}, "base_environment"),
        ({"build": BAD.id, "severity": "low", "environment": {"content": "torch"}}, "build"),
        ({"environment": {"name": "uv.lock", "content": "]["}, "severity": "low"}, "environment"),
        ({"build": BAD.id, "severity": "low", "policy": {"content": "nonsense = 1"}}, "policy"),
        ({"build": BAD.id, "policy": {"content": '[watch]\nissues = ["nobody-1"]'}}, "policy"),
        ({"build": BAD.id, "severity": "low", "colour": "red"}, "body.colour"),
        ({"build": BAD.id, "issues": ["x"] * 10_000}, "body.issues"),
        ({"build": 7, "severity": "low"}, "body.build"),
        ({"severity": "low", "environment": {"content": "torch", "colour": "red"}}, "body.environment.colour"),
        ({"severity": "low", "environment": {"name": "uv.lock"}}, "body.environment.content"),
        ({"severity": "low", "policy": {"content": "", "name": "x" * 301}}, "body.policy.name"),
        ({"build": BAD.id, "severity": "low", "hardware": ["toaster"], "base": "nonsense"}, "hardware"),
    ],
)
def test_what_cannot_be_understood_is_a_problem_that_names_the_field(
    client: TestClient, asked: dict[str, Any], field: str
) -> None:
    answer = client.post(GATE, json=asked)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == field
    assert field in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", "body"),
        (b"[]", "body"),
        (b"\xff\xfe", "body"),
        (b"[" * 100_000, "body"),
        (b'{"build": "a", "build": "b"}', "body.build"),
        (b'{"build": "torch-2.6.0\\u0000", "severity": "low"}', "build"),
    ],
)
def test_a_body_that_is_no_question_is_refused(client: TestClient, body: bytes, field: str) -> None:
    answer = client.post(GATE, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == field


def test_a_form_that_is_none_is_refused(client: TestClient) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    for body in (b"--y\r\n", b"--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x--\r\n"):
        assert client.post(GATE, content=body, headers=kind).status_code in {400, 422}
    twice = client.post(GATE, files=[("policy", ("a", "x")), ("policy", ("b", "y"))])
    assert twice.json()["errors"][0]["field"] == "body.policy"
    binary = client.post(GATE, files={"environment": ("x", b"\xff\xff")})
    assert binary.json()["errors"][0]["field"] == "body.environment"


def test_a_misspelt_parameter_is_refused(client: TestClient) -> None:
    assert client.get(GATE, params={"build": BAD.id, "isues": "x"}).status_code == 422


def test_a_body_of_another_kind_is_refused(client: TestClient) -> None:
    answer = client.post(GATE, content=b"torch", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415
    assert "multipart/form-data" in answer.json()["detail"]


def test_an_unchanged_answer_is_confirmed_and_needs_no_query(
    client: TestClient, notebook: Engine, count_statements: CountStatements
) -> None:
    address = f"{GATE}?build={BAD.id.replace('+', '%2B')}&severity=low"
    etag = client.get(address).headers["etag"]
    with count_statements(notebook) as said:
        again = client.get(address, headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert len(said) <= 1, "the generation, where nobody asked for it in the last moment"


def test_the_same_body_is_answered_from_what_was_made_and_another_is_not(notebook: Engine) -> None:
    client = TestClient(app_over(notebook))
    bodies = [json.dumps({"build": build.id, "severity": "low"}) for build in (BAD, GOOD)]
    kind = {"Content-Type": "application/json"}
    first, other, again = (client.post(GATE, content=bodies[n], headers=kind) for n in (0, 1, 0))
    assert first.json()["build"] == again.json()["build"] == BAD.id
    assert other.json()["build"] == GOOD.id


def test_a_question_asked_a_moment_ago_is_answered_without_asking_the_store(
    notebook: Engine, count_statements: CountStatements
) -> None:
    client = TestClient(app_over(notebook))
    address = f"{GATE}?build={BAD.id.replace('+', '%2B')}&severity=low"
    client.get(address)
    first = client.get(address)
    with count_statements(notebook) as said:
        again = client.get(address)
        unchanged = client.get(address, headers={"If-None-Match": first.headers["etag"]})
    own = {"x-request-id"}
    assert again.content == first.content
    assert {name: value for name, value in again.headers.items() if name not in own} == {
        name: value for name, value in first.headers.items() if name not in own
    }
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert len(said) <= 1, "the generation, where a moment has passed"


def test_a_repeated_question_is_answered_anew_when_the_store_has_moved(own_engine: Engine) -> None:
    given.save(own_engine, ISSUES, BUILDS)
    client = TestClient(app_over(own_engine))
    address = f"{GATE}?build={BAD.id.replace('+', '%2B')}&issues={DYNAMO.id}&hardware=cpu-x86_64"
    assert {client.get(address).json()["decision"] for _ in range(3)} == {"insufficient_evidence"}
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]), lambda _spec, _arm: Outcome.PASS)
    assert eventually(lambda: client.get(address).json()["decision"] == "pass")


def test_a_repeated_question_is_told_to_nobody_who_may_not_read(notebook: Engine) -> None:
    client = TestClient(app_over(notebook, rules=AccessPolicy(reads_need_token=True)))
    address = f"{GATE}?build={BAD.id.replace('+', '%2B')}&severity=low"
    allowed = bearer(make_token(notebook, Scope.READ))
    assert [client.get(address, headers=headers).status_code for headers in (allowed, allowed, {})] == [200, 200, 401]


def test_a_watch_list_is_looked_up_by_its_name(client: TestClient) -> None:
    name = min(client_state(client).knowledge.now().knowledge.lists)
    assert decided(client, build=BAD.id, watch=[name])["counts"]


def test_every_process_sees_what_one_of_them_wrote(own_engine: Engine) -> None:
    """Each application has a memory of its own, as each process of a server has; how soon: tests/store/knowledge."""
    given.save(own_engine, ISSUES, BUILDS)
    clients = [client_of(own_engine) for _ in range(3)]
    asked = {"build": BAD.id, "issues": [DYNAMO.id], "hardware": ["cpu-x86_64"]}
    assert {decided(client, **asked)["decision"] for client in clients} == {"insufficient_evidence"}
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]), lambda _spec, _arm: Outcome.MATCH)
    given.run(own_engine, Asked([GOOD], NOON, issues=[DYNAMO]))
    assert eventually(
        lambda: {client_state(client).knowledge.now().generation for client in clients} == {generation_of(own_engine)}
    )
    assert len({decided(client, **asked)["why"] for client in clients}) == 1


def generation_of(engine: Engine) -> int:
    return KnowledgeCache(engine, lambda: NOW).now().generation


def test_the_curl_one_liner_of_the_documentation_is_understood(client: TestClient) -> None:
    text = (Path(__file__).parents[2] / "docs" / "ci.md").read_text()
    assert "-F environment=@requirements.txt -F issues=xla-8464" in text
    files = {"environment": ("requirements.txt", REQUIREMENTS)}
    answer = client.post(f"{GATE}?format=text", data={"issues": failing(client)}, files=files)
    assert (answer.status_code, answer.headers["knowngood-decision"]) == (200, "block")
