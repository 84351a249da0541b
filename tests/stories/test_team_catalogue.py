"""A verdict of a team's own catalogue is marked wherever it is shown: nobody of this project reviewed the repro."""

import html
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from urllib.parse import quote

import pytest
from rich.console import Console
from starlette.testclient import TestClient

from knowngood.catalogue.loader import read_catalogue, shipped_catalogue
from knowngood.domain.issue import NOT_REVIEWED
from knowngood.matrix.overview.table import print_matrix
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known
from knowngood.web.urls import MATRIX
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import client_of
from tests.web.given import BAD, BUILDS, DYNAMO, GPU_ONLY, LINE, MASK, NOW, SILENT

TOYS = Path(__file__).parents[1] / "mini_repros"
CELL = f"/cells/{MASK.id}/{quote(BAD.id)}?hardware={HARDWARE}"
GATE = f"/api/v1/gate?build={quote(BAD.id)}&issues={MASK.id}&hardware={HARDWARE}"


def test_what_stands_in_another_folder_than_the_shipped_one_is_a_teams(shipped: Engine) -> None:
    toys = read_catalogue([TOYS]).issues
    assert toys
    assert all(issue.is_of_team and issue.caveat for issue in toys)
    listed = client_of(shipped).get("/api/v1/issues").json()["issues"]
    assert {issue["caveat"] for issue in listed} == {""}


def test_a_copy_of_the_shipped_catalogue_word_for_word_as_in_a_pack_is_no_teams_own(tmp_path: Path) -> None:
    kept, changed = "pytorch-104505", "pytorch-105264"
    for name in (kept, changed):
        shutil.copytree(shipped_catalogue() / name, tmp_path / name)
    script = tmp_path / changed / "repro.py"
    script.write_text("# A word of ours.\n" + script.read_text())
    assert {issue.id: issue.is_of_team for issue in read_catalogue([tmp_path]).issues} == {kept: False, changed: True}


def test_where_it_was_read_is_no_part_of_what_an_issue_says() -> None:
    assert replace(MASK, is_of_team=True).revision == MASK.revision


@pytest.fixture
def marked(own_notebook: Engine) -> TestClient:
    given.save(own_notebook, [replace(MASK, is_of_team=True), SILENT, DYNAMO, GPU_ONLY], BUILDS)
    return client_of(own_notebook)


@pytest.mark.parametrize("address", [MATRIX, f"/issues/{MASK.id}", CELL, f"{MATRIX}?lang=zh", f"{CELL}&lang=zh"])
def test_every_page_with_a_verdict_of_it_says_so(marked: TestClient, own_notebook: Engine, address: str) -> None:
    sentence = "团队" if "zh" in address else NOT_REVIEWED
    assert sentence in html.unescape(marked.get(address).text)
    given.save(own_notebook, [MASK, SILENT, DYNAMO, GPU_ONLY], BUILDS)
    assert sentence not in html.unescape(client_of(own_notebook).get(address).text)


def test_programs_read_the_same_sentence(marked: TestClient) -> None:
    issues = {one["id"]: one["caveat"] for one in marked.get("/api/v1/matrix").json()["issues"]}
    assert issues == {MASK.id: NOT_REVIEWED, SILENT.id: "", DYNAMO.id: "", GPU_ONLY.id: ""}
    assert marked.get(f"/api/v1/issues/{MASK.id}").json()["caveat"] == NOT_REVIEWED
    assert marked.get(f"/api/v1{CELL}").json()["caveat"] == NOT_REVIEWED
    assert [one["caveat"] for one in marked.get(GATE).json()["reasons"]] == [NOT_REVIEWED]
    explained = marked.post("/api/v1/errors", json={"text": LINE}).json()
    assert [one["caveat"] for one in explained["matches"] if one["issue"] == MASK.id] == [NOT_REVIEWED]


@pytest.mark.parametrize("form", ["text", "markdown", "junit", "github"])
def test_the_gate_says_so_in_every_form(marked: TestClient, form: str) -> None:
    answer = html.unescape(marked.get(f"{GATE}&format={form}").text)
    assert NOT_REVIEWED in " ".join(answer.replace("\\", "").split())


def test_the_matrix_in_markdown_says_so(marked: TestClient) -> None:
    assert NOT_REVIEWED in marked.get("/api/v1/export/markdown").text.replace("\\", "")


def test_the_terminal_says_so_below_its_matrix(own_notebook: Engine, marked: TestClient) -> None:
    with reading(own_notebook) as s:
        known = load_known(s, NOW)
    out = StringIO()
    print_matrix(Console(file=out, width=200), list(known.issues.values()), BUILDS, HARDWARE, known)
    assert f"{MASK.id}: {NOT_REVIEWED}\n" in out.getvalue()
    assert out.getvalue().count(NOT_REVIEWED) == 1
