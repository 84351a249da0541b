"""`/api/v1/export/{format}`: files that other tools read, of exactly what was asked for."""

import csv
import gzip
import json
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from starlette.testclient import TestClient

from knowngood.domain.measuring.job import Attempt
from knowngood.share import store as bundles_store
from knowngood.share.bundle import check_bundle, read_items
from knowngood.share.exports.formats import FORMATS, Format
from knowngood.store.engine import Engine
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_issue
from tests.web import given
from tests.web.asking import app_over
from tests.web.given import BAD, BUILDS, GPU_CLASS, ISSUES, Asked

if TYPE_CHECKING:
    from xmlschema import XMLSchema

SCHEMAS = Path(__file__).parents[2] / "schemas"
ONE = f"issues=pytorch-151290&builds={BAD.id.replace('+', '%2B')}&hardware={HARDWARE}"


@pytest.mark.parametrize("form", list(Format))
def test_each_file_has_its_name_its_media_type_and_its_tag(client: TestClient, form: Format) -> None:
    address = f"/api/v1/export/{form}?{ONE}"
    response = client.get(address)
    assert response.status_code == 200
    assert response.headers["content-type"] == FORMATS[form].media
    assert response.headers["content-disposition"] == (
        f'attachment; filename="knowngood-2026-11-21.{FORMATS[form].ending}"'
    )
    again = client.get(address, headers={"If-None-Match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = client.head(address)
    assert (head.status_code, head.content) == (200, b"")


def test_a_tag_changes_with_the_store_and_costs_one_query(
    own: TestClient, own_engine: Engine, count_statements: CountStatements
) -> None:
    given.save(own_engine, ISSUES, BUILDS)
    etag = own.get("/api/v1/export/csv").headers["etag"]
    with count_statements(own_engine) as said:
        assert own.get("/api/v1/export/csv", headers={"If-None-Match": etag}).status_code == 304
    assert len(said) == 1
    given.run(own_engine, Asked([BAD], NOON))
    assert own.get("/api/v1/export/csv", headers={"If-None-Match": etag}).status_code == 200


def test_osv_of_a_real_store_deviates_from_its_schema_by_the_prefix_alone(client: TestClient) -> None:
    validator = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "osv-1.6.7.json").read_text()))
    records = client.get("/api/v1/export/osv").json()["vulns"]
    assert len(records) == len(ISSUES)
    for record in records:
        assert [list(error.path) for error in validator.iter_errors(record)] == [["id"]]
    (mask,) = (record for record in records if record["id"] == "KNOWNGOOD-pytorch-151290")
    assert mask["affected"][0]["versions"] == ["2.7.1", "2.7.1+cu126"]
    evidence = mask["database_specific"]["measured"][0]["evidence"]
    assert client.get(evidence.removeprefix("http://testserver")).status_code == 200


def test_kcidb_is_gone_and_says_what_has_the_same(client: TestClient) -> None:
    answer = client.get("/api/v1/export/kcidb?issues=fla-160")
    assert (answer.status_code, answer.headers["content-type"]) == (410, "application/problem+json")
    assert "/api/v1/export/bundle has the evidence" in answer.json()["detail"]


def test_markdown_has_a_table_for_each_hardware_class(client: TestClient) -> None:
    text = client.get("/api/v1/export/markdown").text
    titles = [line for line in text.splitlines() if line.startswith("**")]
    assert [title.partition("**,")[0] for title in titles] == [
        "**3 issues × 6 builds on cpu-x86\\_64",  # noqa: RUF001 - the sign for times
        "**1 issue × 6 builds on cuda-sm\\_90",  # noqa: RUF001
    ]
    for line in text.splitlines():
        assert line.count(" | ") in {0, 7}, line  # one column each, the issue and its history


def test_what_an_issue_says_cannot_leave_its_field_of_the_markdown(own: TestClient, own_engine: Engine) -> None:
    hostile = make_issue("toy-1", title="a | b\n| c | <b>[d](e)</b> `f` @g #1")
    given.save(own_engine, [hostile], [BAD])
    (row,) = (line for line in own.get("/api/v1/export/markdown").text.splitlines() if "toy" in line)
    assert row.count(" | ") == 2
    assert "<b>" not in row
    assert "a &#124; b" in row


def test_junit_of_a_real_store_is_valid(client: TestClient, junit_schema: "XMLSchema") -> None:
    root = ET.fromstring(client.get("/api/v1/export/junit").content)  # noqa: S314 - ours
    junit_schema.validate(ET.ElementTree(root))
    assert len(list(root.iter("testcase"))) == len(ISSUES) * len(BUILDS) * 2


def test_csv_has_the_very_cells_of_the_matrix(client: TestClient) -> None:
    rows = list(csv.DictReader(StringIO(client.get("/api/v1/export/csv").text, newline=""), strict=True))
    cells = client.get("/api/v1/matrix").json()["cells"]
    keys = ("issue", "build", "hardware", "verdict")
    assert sorted(tuple(row[key] for key in keys) for row in rows) == sorted(
        tuple(cell[key] for key in keys) for cell in cells
    )
    told = {tuple(row[key] for key in keys): row["reason"] for row in rows}
    assert told == {tuple(cell[key] for key in keys): cell["reason"] for cell in cells}


@pytest.mark.parametrize(
    ("query", "count"),
    [
        (ONE, 1),
        (f"hardware={GPU_CLASS}&component=Dynamo", len(BUILDS)),
        ("columns=releases&q=bmm", 8),
        ("verdict=flaky", len(BUILDS) * 2),
        ("q=nothing+like+it", 0),
    ],
)
def test_the_filters_of_the_matrix_hold(client: TestClient, query: str, count: int) -> None:
    text = client.get(f"/api/v1/export/csv?{query}").text
    assert len(list(csv.DictReader(StringIO(text, newline="")))) == count


def test_a_bundle_has_the_evidence_of_what_was_asked_for_and_is_importable(client: TestClient, tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl.gz"
    path.write_bytes(client.get(f"/api/v1/export/bundle?{ONE}").content)
    places = {
        (item.issue, item.build, item.hardware) for item in read_items(check_bundle(path)) if isinstance(item, Attempt)
    }
    assert places == {("pytorch-151290", BAD.id, HARDWARE)}
    path.write_bytes(client.get("/api/v1/export/bundle").content)
    assert check_bundle(path).counts["attempt"] > 30


def test_a_bundle_is_packed_once_and_the_others_on_their_way(notebook: Engine) -> None:
    through_middleware = TestClient(app_over(notebook))
    bundle = through_middleware.get("/api/v1/export/bundle")
    assert bundle.headers["content-encoding"] == "identity"
    assert len(bundle.content) == int(bundle.headers["content-length"])
    assert gzip.decompress(bundle.content).startswith(b'{"kind":"header"')
    assert through_middleware.get("/api/v1/export/csv").headers["content-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("xlsx", "'osv', 'csv', 'junit', 'markdown' or 'bundle'"),
        ("csv?issues=pytorch-15129", "nearest: pytorch-151290"),
        ("csv?hardware=cuda-sm_1", "was never measured here"),
        ("csv?columns=some", "columns"),
        ("csv?isues=fla-160", "isues"),
        ("bundle?builds=2.6", "no build is called"),
    ],
)
def test_a_file_that_cannot_be_made_is_a_problem_that_names_the_fault(
    client: TestClient, address: str, words: str
) -> None:
    response = client.get(f"/api/v1/export/{address}")
    assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")
    assert words in response.json()["detail"]


@pytest.mark.parametrize("form", list(Format))
def test_an_empty_store_gives_an_empty_file_of_each_kind(own: TestClient, form: Format) -> None:
    assert own.get(f"/api/v1/export/{form}").status_code == 200


def test_every_media_type_is_in_the_document(client: TestClient) -> None:
    told = client.get("/openapi.json").json()["paths"]["/api/v1/export/{format}"]["get"]
    media = {form.media.partition(";")[0] for form in FORMATS.values()}
    assert set(told["responses"]["200"]["content"]) == media
    (named,) = (one for one in told["parameters"] if one["in"] == "path")
    assert named["name"] == "format"


def test_a_bundle_that_no_import_would_take_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles_store, "MOST_LINES", 3)
    answer = client.get("/api/v1/export/bundle")
    assert (answer.status_code, "export it in parts" in answer.json()["detail"]) == (422, True)
