"""Inferred answers, workarounds that help in part, single runs: said as they are at every door, over one store."""

import csv
import html
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Actor
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import Basis, CellKey, Verdict
from knowngood.domain.verdicts.voids import NoteKind
from knowngood.domain.vocabulary import StatusLabel
from knowngood.health.quality import Quality
from knowngood.matrix.evidence.service import how_known
from knowngood.store.engine import Engine, connect, unit_of_work
from knowngood.store.evidence.notes import add_note
from knowngood.web.urls import MATRIX, ground_address
from tests.fixtures.databases import NewStore
from tests.make import HARDWARE
from tests.web import inferring
from tests.web.asking import client_of, page_at, shown
from tests.web.given import BAD, GOOD, GPU_CLASS, GPU_ONLY, MASK, NOW
from tests.web.inferring import AGREED, ANYWHERE, BAD_312, DIFFERING, GOOD_312, HALF, PAIRS

HOW = f"Inferred from Python 3.11 of the same wheel (these Pythons agreed in {AGREED} of {PAIRS} cells)"


@pytest.fixture(scope="module")
def store(new_store: NewStore) -> Iterator[Engine]:
    engine = connect(new_store())
    inferring.fill(engine)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def site(store: Engine) -> TestClient:
    return client_of(store)


def cell_address(issue: str, build: str, hardware: str = HARDWARE) -> str:
    return f"/cells/{issue}/{build.replace('+', '%2B')}?hardware={hardware}"


def words(client: TestClient, address: str) -> str:
    """The text of a page, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", client.get(address).text)).split())


def told(client: TestClient, address: str) -> Any:
    return client.get(f"/api/v1{address}").json()


def test_an_inferred_cell_says_first_how_it_is_known_and_leads_to_the_measured_one(site: TestClient) -> None:
    where = cell_address(MASK.id, BAD_312.id)
    page = page_at(site, where)
    assert (page.known, page.word) == (HOW, "fails, has a workaround")
    assert english(page.sentence).startswith(f"fails on {BAD.in_words} (CPU): with big: 1 of 1 attempt ended")
    assert ground_address(page.evidence.cell) == cell_address(MASK.id, BAD.id)
    text = site.get(where).text
    assert f'href="{cell_address(MASK.id, BAD.id)}">{HOW}</a>: fails on' in " ".join(text.split())
    assert '<span class="chip cure inferred">' in text
    assert [one.judgement.outcome for one in page.evidence.controls] == [Outcome.PASS], "the ground's own"
    assert page.attempts == (), "it has none of its own"
    assert f"--builds {BAD_312.id}" in page.commands["ours"]
    assert page.pins_address == "", "a lock of another Python is not its own"


def test_its_json_has_the_rule_the_ground_and_the_rate(site: TestClient) -> None:
    body = told(site, cell_address(MASK.id, BAD_312.id))
    assert (body["verdict"], body["assurance"], body["runs"], body["evidence"]) == ("affected", "inferred", 1, [])
    (ground,) = body["grounds"]
    expected = {"rule": "python", "build": BAD.id, "hardware": HARDWARE, "agreed": AGREED, "compared": PAIRS}
    assert {name: ground[name] for name in expected} == expected
    assert body["sentence"].startswith(f"{HOW}: fails on {BAD.in_words} ")
    assert told(site, cell_address(MASK.id, BAD.id))["assurance"] == "measured"
    unknown = told(site, cell_address(MASK.id, GOOD_312.id))
    assert (unknown["verdict"], unknown["assurance"], unknown["grounds"]) == ("not_run", "not_known", [])


def test_a_cell_of_the_cpu_says_nothing_of_a_gpu_while_the_two_are_not_known_to_agree(site: TestClient) -> None:
    page = page_at(site, cell_address(ANYWHERE.id, BAD.id, GPU_CLASS))
    assert (page.word, page.known) == ("not run", "")
    matrix = page_at(site, f"{MATRIX}?hardware={GPU_CLASS}")
    row = next(row for group in matrix.groups for row in group.rows if row.issue.id == ANYWHERE.id)
    assert english(row.sentence) == "no release answered yet"
    assert how_known(Basis("device", BAD.id, HARDWARE, 90, 90)) == (
        "Inferred from cpu-x86_64, as it does not depend on the device (the two agreed in 90 of 90 cells)"
    )


def test_a_row_of_the_cpu_path_leads_to_the_cpu_and_is_not_said_to_be_impossible(site: TestClient) -> None:
    where = cell_address(MASK.id, BAD.id, GPU_CLASS)
    page = page_at(site, where)
    assert page.word == "concerns the CPU path"
    assert page.elsewhere_address == cell_address(MASK.id, BAD.id)
    assert "does not apply" not in words(site, where).casefold()
    matrix = page_at(site, f"{MATRIX}?hardware={GPU_CLASS}")
    assert {row.issue.id for row in matrix.on_cpu} >= {MASK.id, HALF.id}
    assert [row.issue.id for row in matrix.elsewhere] == []
    text = words(site, f"{MATRIX}?hardware={GPU_CLASS}")
    assert f"Concern the CPU path: see cpu-x86_64 {len(matrix.on_cpu)} issues" in text
    assert "not apply on" not in text
    assert page_at(site, matrix.cpu_address).hardware == HARDWARE
    markdown = site.get(f"/api/v1/export/markdown?hardware={GPU_CLASS}").text
    assert f"{len(matrix.on_cpu)} more concern the CPU path: see cpu-x86_64." in markdown


def test_a_matrix_outlines_what_is_inferred_names_its_ground_and_counts_it_apart(site: TestClient) -> None:
    page = page_at(site, f"{MATRIX}?builds={BAD_312.id},{GOOD_312.id}".replace("+", "%2B"))
    assert page.totals.inferred == 3  # the mask, the half and the hook on 2.7.1; 2.8.0 has no smoke row
    assert page.totals.measured == PAIRS + 1
    text = site.get(f"{MATRIX}?builds={BAD_312.id.replace('+', '%2B')}").text
    name = f"passes as reported, fails in a variant, inferred from {BAD.id}: {HALF.id} on {BAD_312.id}"
    assert f'<a class="q variant inferred" aria-label="{name}"' in text
    assert f"{PAIRS + 1} of {PAIRS + 4} cells measured, 3 inferred" in " ".join(text.split())
    assert 'class="chip passes inferred"' in text, "the legend explains the outline"


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(f"/issues/{MASK.id}?build={BAD_312.id}", id="issue"),
        pytest.param(f"/compare?a={BAD.id}&b={BAD_312.id}", id="compare"),
        pytest.param(f"/upgrade?from={BAD_312.id}&to={GOOD_312.id}&issues={MASK.id}", id="upgrade"),
        pytest.param("/search?q=2.7.1 py312 conflicting declaration shape", id="search"),
        pytest.param(f"{MATRIX}?builds={BAD_312.id}", id="matrix"),
        pytest.param(cell_address(MASK.id, BAD_312.id), id="cell"),
        pytest.param(cell_address(MASK.id, BAD_312.id).replace("?", "/notes?"), id="notes"),
    ],
)
def test_every_page_draws_an_inferred_cell_as_inferred_and_names_its_ground_once_in_a_row(
    site: TestClient, where: str
) -> None:
    page = site.get(where.replace("+", "%2B"))
    assert page.status_code == 200
    legend_and_note = r"(?s)class=.chip passes inferred.|<pre.*?</pre>"
    text = re.sub(legend_and_note, "", page.text.partition("<main")[2])
    assert re.search(r'class="(?:chip|q) (?:cure|variant|fails) inferred', text)
    rows = (html.unescape(re.sub(r"<[^>]+>", "", row)) for row in re.split(r"<(?:tr|li|p|td)\b", text))
    assert [row for row in rows if row.casefold().count("inferred from") > 1] == []


def test_a_release_page_says_what_is_inferred_in_two_words(site: TestClient) -> None:
    page = told(site, f"/releases/{BAD_312.id}?hardware={HARDWARE}")
    found = {one["issue"]: one["inferred_from"] for one in (*page["broken"], *page["failing"])}
    assert found[MASK.id] == "Python 3.11"
    assert "CPU · from Python 3.11" in words(site, f"/releases/{BAD_312.id}")


def test_a_view_without_rows_is_no_reason_to_say_that_nothing_is_measured(site: TestClient) -> None:
    text = words(site, f"{MATRIX}?hardware={GPU_CLASS}&q=status:flaky")
    assert "No issue matches this filter on H100." in text
    assert "Nothing is measured here yet" not in text


def test_a_workaround_that_helps_in_part_names_the_variants(site: TestClient) -> None:
    page = page_at(site, cell_address(HALF.id, BAD.id))
    assert (status_of(page.evidence.cell), page.word) == (
        StatusLabel.AS_REPORTED,
        "passes as reported, fails in a variant: big, odd",
    )
    found = {one.id: (one.word, one.variants, one.runs) for one in page.workarounds}
    assert found["eager"] == ("helps in part", (("helps with", "big", ""), ("fails with", "odd", "")), 1)
    assert found["flags"] == (
        "does not help",
        (("fails with", "big", ""), ("not tried with", "odd", "There is no block in it")),
        0,
    )
    assert [one.rank for one in page.workarounds] == [0, 0, 0]
    said = "Helps in part on 2.7.1"
    assert said in words(site, f"/issues/{HALF.id}?build={BAD.id}".replace("+", "%2B"))
    body = told(site, cell_address(HALF.id, BAD.id))["workaround_findings"]["eager"]
    assert (body["verdict"], body["helped"], body["failed"], body["untried"]) == ("partial", ["big"], ["odd"], [])


def test_where_the_report_ran_something_else_the_cell_says_both(site: TestClient) -> None:
    for where in (cell_address(HALF.id, BAD.id), f"/issues/{HALF.id}"):
        assert "passes as reported, fails in a variant" in words(site, where.replace("+", "%2B")), where
    assert told(site, cell_address(HALF.id, BAD.id))["as_reported"] == "not_affected"


def test_what_passes_as_reported_is_counted_and_drawn_apart(site: TestClient) -> None:
    rate = next(one for one in told(site, "/charts")["classes"] if one["hardware"] == HARDWARE)["pass_rate"]
    assert [one["counts"]["as_reported"] for one in rate] == [1, 0]
    assert 'class="q variant"' in site.get(f"/issues/{HALF.id}").text
    lines = {line.sign: line.counts for line in page_at(site, MATRIX).column_totals}
    assert (lines[StatusLabel.AS_REPORTED], lines[StatusLabel.FAILS]) == ((1, 0), (0, 0))
    on_gpu = page_at(site, f"{MATRIX}?hardware={GPU_CLASS}").column_totals
    assert StatusLabel.AS_REPORTED not in {line.sign for line in on_gpu}, "no line where there is none"


@pytest.mark.parametrize("where", [cell_address(HALF.id, BAD.id), f"/issues/{HALF.id}", f"/releases/{BAD.id}"])
def test_a_verdict_that_rests_on_one_run_is_marked(site: TestClient, where: str) -> None:
    assert '<span class="beside">1 run</span>' in site.get(where).text


def test_an_issue_page_tells_an_inferred_answer_as_one(site: TestClient) -> None:
    page = page_at(site, f"/issues/{MASK.id}?build={BAD_312.id}".replace("+", "%2B"))
    assert (page.known, ground_address(page.cell)) == (HOW, cell_address(MASK.id, BAD.id))
    assert BAD_312.id not in {cell.build for cell in page.evidence}, "evidence is what was measured"
    assert {one.ground for one in page.workarounds if one.runs} == {BAD.id}
    assert (
        f'<span class="chip {page.workarounds[0].sign} inferred">' in site.get(cell_address(MASK.id, BAD_312.id)).text
    )


@pytest.mark.parametrize("address", [f"/issues/{MASK.id}", cell_address(MASK.id, BAD.id)])
def test_an_issue_that_is_named_leads_to_its_thread_upstream(site: TestClient, address: str) -> None:
    thread = "https://github.com/pytorch/pytorch/issues/151290"
    assert f'<a href="{thread}" rel="noopener noreferrer">pytorch/pytorch#151290</a>' in site.get(address).text


def test_a_badge_says_that_it_is_inferred(site: TestClient) -> None:
    asked = f"/badge/{MASK.id}.json?build={BAD_312.id}".replace("+", "%2B")
    assert site.get(asked).json()["message"] == "fails on 2.7.1+cu126~py312 (inferred)"


def test_quality_says_how_far_pythons_agree_and_names_every_pair_that_does_not(site: TestClient) -> None:
    page = shown(site, "/quality", Quality)
    (line,) = page.pythons
    assert (line.pythons, line.agreed.part, line.agreed.whole, line.inferred) == (("3.11", "3.12"), AGREED, PAIRS, True)
    (pair,) = line.differing
    assert pair.issue == DIFFERING.id
    assert [cell.verdict for cell in pair.cells] == [Verdict.AFFECTED, Verdict.NOT_AFFECTED]
    assert [site.get(cell.url).status_code for cell in pair.cells] == [200, 200]
    body = told(site, "/quality")
    (agreement,) = body["pythons"]
    assert (agreement["pythons"], agreement["inferred"]) == (["3.11", "3.12"], True)
    said = " to ".join(f"{100 * agreement['agreed'][end]:.1f} %" for end in ("low", "high"))
    assert said in site.get("/quality").text
    assert [cell["build"] for cell in agreement["differing"][0]["cells"]] == [BAD.id, BAD_312.id]
    assert (body["devices"]["agreed"]["whole"], body["devices"]["differing"]) == (0, [])


def test_what_exports_say_of_an_inferred_cell(site: TestClient) -> None:
    asked = f"?issues={MASK.id}&builds={BAD.id},{BAD_312.id}".replace("+", "%2B")
    rows = list(csv.DictReader(StringIO(site.get(f"/api/v1/export/csv{asked}&hardware={HARDWARE}").text)))
    assert [(row["build"], row["assurance"], row["inferred_from"]) for row in rows] == [
        (BAD.id, "measured", ""),
        (BAD_312.id, "inferred", BAD.id),
    ]
    suites = ET.fromstring(site.get(f"/api/v1/export/junit{asked}&hardware={HARDWARE}").text)  # noqa: S314 - ours
    assert [(suite.get("failures"), suite.get("skipped")) for suite in suites] == [("1", "0"), ("0", "1")]
    (record,) = site.get(f"/api/v1/export/osv{asked}").json()["vulns"]
    assert {one["build"] for one in record["database_specific"]["measured"]} == {BAD.id}
    assert "(✕')" in site.get(f"/api/v1/export/markdown{asked}&hardware={HARDWARE}").text


def test_an_inferred_cell_can_not_be_talked_about_as_if_it_were_measured(site: TestClient) -> None:
    assert "Comment on this cell" not in site.get(cell_address(MASK.id, BAD_312.id)).text


def test_a_measured_cell_never_calls_itself_inferred(site: TestClient) -> None:
    for issue, hardware in ((MASK, HARDWARE), (GPU_ONLY, GPU_CLASS)):
        page = page_at(site, cell_address(issue.id, BAD.id, hardware))
        assert (page.known, page.evidence.ground, "inferred" in page.word) == ("", None, False)
    assert page_at(site, cell_address(MASK.id, GOOD.id)).word == "passes"


def test_what_was_inferred_goes_with_the_grounds_of_its_rule_also_where_it_was_kept(
    own: TestClient, own_engine: Engine
) -> None:
    inferring.fill(own_engine)
    where = cell_address(MASK.id, BAD_312.id)
    assert page_at(own, where).known == HOW
    key = CellKey(inferring.SMOKE.id, BAD_312.id, HARDWARE)
    for kind, known in ((NoteKind.VOID, ""), (NoteKind.RESTORE, HOW)):
        with unit_of_work(own_engine) as s:
            add_note(s, key, kind, "the machine was broken", by=Actor("ada"), now=NOW)
        for client in (own, client_of(own_engine)):
            assert page_at(client, where).known == known
            matrix = page_at(client, f"{MATRIX}?builds={BAD_312.id.replace('+', '%2B')}")
            assert matrix.totals.inferred == (3 if known else 0)
