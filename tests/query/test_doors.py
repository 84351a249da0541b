"""Queries at the doors: the page, the API, files and the command ask the same; a mistake is shown where it stands."""

import csv
import io
import re
from html import unescape
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from knowngood.matrix.overview.page import MOST_COUNTED
from knowngood.query.cli import read_query_option
from knowngood.query.parser import MOST
from knowngood.query.search_box import EXAMPLE_MEANINGS
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known
from knowngood.web.html import i18n
from knowngood.web.html.i18n import Language
from knowngood.web.urls import MATRIX
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE
from tests.web.asking import page_at
from tests.web.given import BAD, BUILDS, GOOD, GPU_CLASS, ISSUES, MISMATCHED, NEW, NOW, OLD

ALL = {"pytorch-151290", "pytorch-154771", "fla-160", "pytorch-151589"}

ASKED = [
    ("", ALL),
    ("wrong bmm", {"pytorch-154771"}),
    ("silent:yes", {"pytorch-154771"}),
    ("component:inductor", ALL - {"fla-160"}),
    ("status:affected", {"pytorch-151290", "pytorch-154771"}),
    ("status:affected cure:none", {"pytorch-154771"}),
    ("status:affected cure:effective", {"pytorch-151290"}),
    ("build:2.8 status:not_affected", {"pytorch-151290", "fla-160"}),
    ("build:>=2.7 -status:affected,flaky", {"fla-160", "pytorch-151589"}),
    ("stale:yes", {"pytorch-151290", "pytorch-154771", "fla-160"}),
    ("build:2.7.. stale:yes", set()),
    ("age:<1d status:affected", {"pytorch-151290"}),
    ("fla or silent:yes", {"fla-160", "pytorch-154771"}),
]


def issues_of(client: TestClient, query: str, **more: str) -> set[str]:
    page = shown_page(client, query, **more)
    rows = [*(row for group in page.groups for row in group.rows), *page.elsewhere]
    return {row.issue.id for row in rows}


def shown_page(client: TestClient, query: str, **more: str) -> SimpleNamespace:
    return page_at(client, f"{MATRIX}?{urlencode({'q': query, **more})}")


@pytest.mark.parametrize(("query", "expected"), ASKED)
def test_the_page_the_api_a_file_and_the_command_select_the_same(
    client: TestClient, notebook: Engine, query: str, expected: set[str]
) -> None:
    assert issues_of(client, query, columns="releases") == expected
    asked = {"q": query, "columns": "releases", "hardware": HARDWARE}
    told = client.get("/api/v1/matrix", params=asked).json()
    assert {issue["id"] for issue in told["issues"]} == expected
    table = client.get("/api/v1/export/csv", params=asked).text
    assert {row["issue"] for row in csv.DictReader(io.StringIO(table))} == expected
    assert by_command(notebook, query) == expected


def by_command(engine: Engine, query: str) -> set[str]:
    """The rows that `knowngood matrix --query` prints, over the releases."""
    asked = read_query_option(query)
    columns = asked.columns(BUILDS, lambda build: build in {OLD, BAD, GOOD, NEW})
    with reading(engine) as s:
        known = load_known(s, NOW)
    return {issue.id for issue in asked.issues(ISSUES, columns, [HARDWARE], lambda: known, NOW)}


def test_conditions_on_columns_narrow_what_is_shown(client: TestClient) -> None:
    page = shown_page(client, "build:2.7.. -build:2.9", columns="releases")
    assert [head.id for head in page.heads] == [BAD.id, GOOD.id]
    told = client.get("/api/v1/matrix", params={"q": "build:2.7.. -build:2.9"}).json()
    assert {build["id"] for build in told["builds"]} == {BAD.id, GOOD.id, MISMATCHED.id, "torch-2.7.1+cpu"}
    assert {cell["build"] for cell in told["cells"]} == {build["id"] for build in told["builds"]}


def test_a_column_that_the_query_names_is_shown_wherever_it_stands(client: TestClient) -> None:
    assert [head.id for head in shown_page(client, f'build:"{MISMATCHED.id}"').heads] == [MISMATCHED.id]
    assert [head.id for head in shown_page(client, "build:2.9").heads] == [NEW.id]


def test_several_classes_are_asked_together(client: TestClient) -> None:
    def ids(query: str) -> set[str]:
        told = client.get("/api/v1/matrix", params={"q": query}).json()
        return {issue["id"] for issue in told["issues"]}

    assert ids("hardware:cuda status:affected") == {"pytorch-151589"}
    assert ids("hardware:cpu status:affected") == {"pytorch-151290", "pytorch-154771"}
    assert issues_of(client, "status:affected", hardware=GPU_CLASS) == {"pytorch-151589"}


def test_as_known_then_ages_count_from_then(client: TestClient) -> None:
    then = {"at": "2026-05-10", "hardware": HARDWARE}
    fresh = client.get("/api/v1/matrix", params={"q": "age:<30d", **then}).json()
    assert {issue["id"] for issue in fresh["issues"]} == {"pytorch-151290", "pytorch-154771", "fla-160"}
    assert client.get("/api/v1/matrix", params={"q": "age:>30d", **then}).json()["issues"] == []


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_place_and_what_may_be_meant(client: TestClient) -> None:
    response = client.get(MATRIX, params={"q": "bmm satus:affected", "columns": "releases", "hardware": HARDWARE})
    assert response.status_code == 422
    text = " ".join(unescape(response.text).split())
    assert "<code>bmm <mark>satus</mark>:affected</code>" in text
    assert 'Column 5: <span lang="en">there is no field "satus".</span>' in text
    assert 'name="q" value="bmm satus:affected"' in text
    assert 'aria-invalid="true" aria-describedby="query-fault"' in text
    assert "bmm status:affected</a>" in text
    assert f'<input type="hidden" name="hardware" value="{HARDWARE}">' in text
    mended = text.split('Did you mean <a href="')[1].split('"')[0]
    assert page_at(client, mended).query.q == "bmm status:affected"
    assert page_at(client, mended).query.columns == "releases"


def test_a_mistake_at_the_end_is_shown_there(client: TestClient) -> None:
    response = client.get(MATRIX, params={"q": "bmm or"})
    assert response.status_code == 422
    assert "bmm or<mark> </mark></code>" in unescape(response.text).replace("\u00a0", " ")


def test_the_api_names_the_parameter_and_the_column(client: TestClient) -> None:
    for door in ("/api/v1/matrix", "/api/v1/export/csv"):
        response = client.get(door, params={"q": "status:affeced"})
        assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")
        (fault,) = response.json()["errors"]
        assert fault["field"] == "q"
        assert fault["detail"].startswith('column 8: status is never "affeced" (did you mean "affected"?)')


@pytest.mark.parametrize("query", ["all(2.8..):not_affected", "count(affected):>=3", '{"status": "affected"}'])
@pytest.mark.parametrize("door", [MATRIX, "/api/v1/matrix", "/api/v1/export/csv"])
def test_what_is_gone_from_the_language_is_refused_and_said(client: TestClient, door: str, query: str) -> None:
    response = client.get(door, params={"q": query})
    assert response.status_code == 422
    assert re.search(r"the quantifier .* is gone|queries as JSON are gone", unescape(response.text))


def test_a_query_that_leaves_no_column_says_what_there_is(client: TestClient) -> None:
    response = client.get("/api/v1/matrix", params={"q": "bmm build:>=3"})
    assert response.status_code == 422
    assert "column 5: no column is left by build:>=3" in response.json()["detail"]
    assert "torch from 2.5.1 to 2.9.0" in response.json()["detail"]
    named = client.get("/api/v1/matrix", params={"q": "build:2.8", "builds": OLD.id})
    assert named.status_code == 422


def test_an_empty_store_has_nothing_to_select(own: TestClient) -> None:
    for query in ("status:affected", "build:2.7", "-status:not_affected"):
        assert own.get(MATRIX, params={"q": query}).status_code == 200
        assert own.get("/api/v1/matrix", params={"q": query}).json()["issues"] == []


HOSTILE = [
    "x" * 10_000,
    "x" * 10_001,
    "(" * 10_000,
    "(" * 1_900,
    "-" * 1_900,
    "not " * 490,
    "all(" * 400,
    '"' * 999,
    "\\" * 1_999,
    "{" * 9_999,
    "build:" + "9" * 1_900,
    "build:" + "1." * 90 + "1",
    "build:" + "9" * 190,
    "build:1!2.6",
    "age:<" + "9" * 1_900 + "d",
    "<script>alert(1)</script>:x",
    '<script>alert("1")',
    "'; drop table cells; --",
    "status:\u202eaffected",
    "x " * (MOST + 1),
    "\u3000" * 2_000,
    "\x1b[31mred",
    "a\rb\nc\td",
    "id:" + "\U0001f600" * 100,
]


@pytest.mark.parametrize("query", HOSTILE, ids=[f"{at} {ascii(query)[:24]}" for at, query in enumerate(HOSTILE)])
@pytest.mark.parametrize("door", [MATRIX, "/api/v1/matrix", "/api/v1/export/csv"])
def test_nothing_hostile_is_a_fault_of_the_server(client: TestClient, door: str, query: str) -> None:
    response = client.get(door, params={"q": query})
    assert response.status_code in {200, 422}
    if door == "/":
        assert "<script>alert" not in response.text


def test_a_nul_sign_is_refused(client: TestClient) -> None:
    for door in (MATRIX, "/api/v1/matrix"):
        assert client.get(f"{door}?q=a%00b").status_code == 422


PIECES = [*'():"|,-<>=.{}[] ', "or ", "status:", "build:", "2.7", "..", "all(", "affected", "seq(", "cure:", "none"]
PIECES += ["{", "\u3000"]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_no_query_is_a_fault_of_the_server(client: TestClient, query: str) -> None:
    answers = {client.get(door, params={"q": query}).status_code for door in (MATRIX, "/api/v1/matrix")}
    assert answers in ({200}, {422})


# -- the box -----------------------------------------------------------------------------------------------------------


def test_every_example_beside_the_box_is_a_link_that_answers(client: TestClient) -> None:
    text = client.get(MATRIX).text
    for query, meaning in EXAMPLE_MEANINGS.items():
        links = [part for part in text.split('<dt><a href="')[1:] if f"<code>{shown_as(query)}<" in part]
        (address,) = [part.split('"')[0] for part in links]
        assert client.get(unescape(address)).status_code == 200
        assert i18n.say(meaning, Language.CHINESE) != meaning


def shown_as(text: str) -> str:
    return text.replace(">", "&gt;").replace("<", "&lt;").replace('"', "&#34;")


def test_a_long_query_of_cells_has_no_counts_beside_it(client: TestClient) -> None:
    """Each count asks the query again."""
    assert shown_page(client, " ".join(["-age:>90d"] * MOST_COUNTED)).facets
    assert not shown_page(client, " ".join(["-age:>90d"] * (MOST_COUNTED + 1))).facets


def test_the_box_keeps_what_was_asked(client: TestClient) -> None:
    assert 'name="q" value="&#34;a b&#34; -x"' in client.get(MATRIX, params={"q": '"a b" -x'}).text


def test_a_query_of_cells_asks_the_store_no_more_often(
    client: TestClient, notebook: Engine, count_statements: CountStatements
) -> None:
    with count_statements(notebook) as without:
        client.get(f"{MATRIX}?columns=all")
    with count_statements(notebook) as asked:
        client.get(MATRIX, params={"q": "component:inductor status:affected", "columns": "all"})
    assert len(asked) == len(without) + 1  # the generation, once more after its turn has come
