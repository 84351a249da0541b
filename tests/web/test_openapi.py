"""The OpenAPI document: valid, complete, and true of what is answered."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry
from referencing.jsonschema import DRAFT202012
from starlette.testclient import TestClient

from knowngood.server import create_app
from knowngood.store.engine import connect
from knowngood.web.openapi import ROUTES
from tests.golden_files import assert_golden
from tests.web.asking import app_of
from tests.web.given import NOW

PROBLEM = "application/problem+json"

# Programs are generated from these: a name that is gone breaks them.
Operation = tuple[str, str, dict[str, Any]]


@pytest.fixture(scope="module")
def document(client: TestClient) -> dict[str, Any]:
    told: dict[str, Any] = client.get("/openapi.json").json()
    return told


def operations_of(document: dict[str, Any]) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            yield method, path, told


def faults(document: dict[str, Any], schema: dict[str, Any], value: object) -> list[str]:
    registry: Registry[Any] = Registry().with_resource("urn:document", DRAFT202012.create_resource(document))
    absolute = _absolute(schema)
    return [error.message for error in Draft202012Validator(absolute, registry=registry).iter_errors(value)]


def _absolute(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: f"urn:document{value}" if key == "$ref" else _absolute(value) for key, value in schema.items()}
    return [_absolute(one) for one in schema] if isinstance(schema, list) else schema


def test_what_is_kept_is_what_the_routes_say() -> None:
    app = create_app(connect("sqlite://"), clock=lambda: NOW)
    assert_golden(ROUTES.name, FastAPI.openapi(app), folder=ROUTES.parent)


def test_it_is_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_no_two_operations_share_a_name(document: dict[str, Any]) -> None:
    names = [told["operationId"] for _, _, told in operations_of(document)]
    assert len(names) == len(set(names))


def test_every_operation_says_what_it_does(document: dict[str, Any]) -> None:
    silent = [
        told["operationId"]
        for _, path, told in operations_of(document)
        if not told.get("description") and path.startswith("/api/v1")
    ]
    assert silent == []


def test_every_answer_has_an_example_of_its_shape(document: dict[str, Any]) -> None:
    for _, _, told in operations_of(document):
        contents = [
            content
            for status, answer in told["responses"].items()
            if status[0] == "2"
            for content in answer.get("content", {}).values()
        ]
        examples = [content for content in contents if "example" in content]
        assert examples or not contents, f"{told['operationId']} has no example; write one in web/examples.json"
        for content in examples:
            assert faults(document, content.get("schema", {}), content["example"]) == [], told["operationId"]


def test_every_body_that_is_sent_as_json_has_an_example(document: dict[str, Any]) -> None:
    for _, _, told in operations_of(document):
        sent = told.get("requestBody", {}).get("content", {}).get("application/json")
        if sent is not None:
            assert faults(document, sent["schema"], sent["example"]) == [], told["operationId"]


def test_examples_of_parameters_are_of_their_shape(document: dict[str, Any]) -> None:
    for _, path, told in operations_of(document):
        for one in told.get("parameters", ()):
            if one["in"] == "path":
                assert "example" in one, f"{path}: {one['name']}"
            if "example" in one:
                assert faults(document, one["schema"], one["example"]) == [], f"{path}: {one['name']}"


def test_every_refusal_is_a_problem_with_an_example(document: dict[str, Any]) -> None:
    for _, path, told in operations_of(document):
        refusals = {status: answer for status, answer in told["responses"].items() if status[0] in "45"}
        if path.startswith("/api/v1"):
            assert refusals.keys() >= {"404", "405", "422", "429", "503"}
        if "requestBody" in told:
            assert refusals.keys() >= {"413", "415"}
        for status, answer in refusals.items():
            assert list(answer["content"]) == [PROBLEM], (path, status)
            content = answer["content"][PROBLEM]
            assert faults(document, content["schema"], content["example"]) == []
            assert content["example"]["status"] == int(status)


IDS_OF_A_RUN = {"get_attempt", "get_run", "get_events", "get_watch_list"}
FOR_ADMINISTRATORS = {"get_audit", "get_voids"}


def test_what_the_examples_ask_is_answered(client: TestClient, document: dict[str, Any]) -> None:
    """Over the notebook they were made with; ids of attempts and runs differ each time it is filled."""
    for method, path, told in operations_of(document):
        if method != "get" or told["operationId"] in IDS_OF_A_RUN | FOR_ADMINISTRATORS:
            continue
        asked = {one["name"]: one["example"] for one in told.get("parameters", ()) if "example" in one}
        address = path
        for name in [name for name in asked if f"{{{name}}}" in path]:
            address = address.replace(f"{{{name}}}", quote(asked.pop(name), safe=""))
        response = client.get(address, params=asked)
        assert response.status_code == 200, (address, asked, response.text)
        media = response.headers["content-type"].partition(";")[0]
        if media == "application/json":
            schema = told["responses"]["200"]["content"][media]["schema"]
            assert faults(document, schema, response.json()) == []


def test_every_read_is_answered_to_head_and_every_address_to_options(
    client: TestClient, document: dict[str, Any]
) -> None:
    for path, methods in document["paths"].items():
        address = path.replace("{", "").replace("}", "")
        options = client.options(address)
        assert (options.status_code, options.content) == (204, b"")
        allowed = set(options.headers["allow"].split(", "))
        assert allowed == {*(method.upper() for method in methods), "OPTIONS"} | (
            {"HEAD"} if "get" in methods else set()
        )
        refused = client.request("TRACE", address)
        assert (refused.status_code, refused.headers["content-type"]) == (405, PROBLEM)
        assert refused.headers["allow"] == options.headers["allow"]
        if "get" in methods and not path.endswith("/events"):
            head = client.head(address)
            assert (head.status_code, head.content) == (client.get(address).status_code, b"")


def test_the_document_is_made_once(client: TestClient) -> None:
    app = app_of(client)
    assert app.openapi() is app.openapi()


def test_two_servers_say_the_same(document: dict[str, Any], client: TestClient) -> None:
    other = create_app(app_of(client).state.state.engine, clock=lambda: NOW)
    assert other.openapi() == document
