"""`/errors` and its twin: the answer for a build, and that what was pasted is nowhere afterwards."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import structlog
from fastapi.testclient import TestClient
from sqlalchemy import inspect
from sqlalchemy import text as sql

from knowngood.ask.explain.answer import Match, Strength, command_of
from knowngood.domain.issue import Issue
from knowngood.domain.message import Message, english
from knowngood.matrix.issues.workarounds import WorkaroundView
from knowngood.store.engine import Engine, reading
from knowngood.web.auth.principal import AccessPolicy
from tests.web import given
from tests.web.asking import app_over, client_of, client_state
from tests.web.given import BAD, GOOD, LINE
from tests.web.notebooks import NOTEBOOKS, Notebook
from tests.web.soundness import faults

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SECRET = "hunter2-7c9e6679-of-a-customer"  # noqa: S105 - nobody's
REPORT = f"> [rank0]: {LINE}\nPyTorch version: 2.7.1+cu126\nCUDA used to build PyTorch: 12.6\ntoken {SECRET}\n"


Matched = tuple[Match, Issue, Sequence[WorkaroundView], Message]


def answered(client: TestClient, text: str, build: str = "") -> Mapping[str, Any]:
    """The values behind the page that answers."""
    response = client.post("/errors", content=urlencode({"text": text, "build": build}), headers=FORM)
    assert response.status_code == 200, response.text
    values: Mapping[str, Any] = vars(response)["context"]
    return values


def of_the_mask(values: Mapping[str, Any]) -> Matched:
    """Issues of the notebook have one signature in common, so that a paste is all of them."""
    found: Matched = next(one for one in values["matches"] if one[0].issue == "pytorch-151290")
    return found


def explained(client: TestClient, text: str | bytes, query: str = "", kind: str = "text/plain") -> Any:
    response = client.post(f"/api/v1/errors{query}", content=text, headers={"Content-Type": kind})
    assert response.status_code == 200, response.text
    return response.json()


def test_a_known_failure_is_told_with_what_helps_on_the_build_of_the_paste(client: TestClient) -> None:
    values = answered(client, REPORT)
    assert values["page"].known
    assert values["page"].build == BAD.id
    match, _, workarounds, _ = of_the_mask(values)
    assert match.strength is Strength.SURE
    assert match.cures_on is not None
    assert match.cures_on.build == BAD.id
    assert [(one.id, one.verdict) for one in workarounds] == [
        ("eager_mask", "effective"),
        ("flags", "ineffective"),
    ]
    assert [line.text for line in match.around if line.lit] == [LINE]
    assert BAD.id in {cell.build for cell in match.seen}


def test_the_page_lights_the_line_and_links_cell_and_issue(client: TestClient) -> None:
    page = client.post("/errors", content=urlencode({"text": REPORT}), headers=FORM).text
    assert "<mark>error: conflicting declaration &#39;int64_t tmp_acc0_arr [2]&#39;</mark>" in page
    assert "We know this one" in page
    assert 'href="/issues/pytorch-151290?build=torch-2.7.1%2Bcu126"' in page
    assert f"/cells/pytorch-151290/{BAD.id.replace('+', '%2B')}" in page


def test_the_build_that_is_chosen_outweighs_the_text(client: TestClient) -> None:
    values = answered(client, REPORT, GOOD.id)
    assert values["page"].build == GOOD.id
    match, _, workarounds, _ = of_the_mask(values)
    assert match.here is not None
    assert (match.here.build, match.here.verdict) == (GOOD.id, "not_affected")
    assert (match.strength, match.cures_on, workarounds) == (Strength.POSSIBLE, None, ())  # its own pass rules it out


def test_what_nobody_knows_says_so_and_how_to_add_it(client: TestClient) -> None:
    page = client.post("/errors", content=urlencode({"text": "KeyError: 'input_ids'"}), headers=FORM)
    assert vars(page)["context"]["page"].matches == ()
    assert "We do not know this one" in page.text
    assert "knowngood new-issue" in page.text


def test_a_message_of_an_installation_is_told_with_its_sources_and_its_address_keeps_it(client: TestClient) -> None:
    values = answered(client, "RuntimeError: operator torchvision::nms does not exist\ntorch==2.6.0")
    (meaning,) = values["page"].meanings
    assert values["page"].known
    shown = client.get(values["address"])
    assert (kept := vars(shown)["context"]["page"].meanings[0]).line == ""
    assert (kept.id, kept.command != meaning.command) == ("torchvision-nms", True)  # the release is not kept
    for text in (meaning.title, meaning.sources[0], "it was not run here", "We know this one"):
        assert text in shown.text
    assert "knowngood new-issue" not in shown.text
    assert faults(shown.text) == []


def test_a_symbol_of_torchs_is_shown_with_the_releases_that_export_it_and_not_kept(client: TestClient) -> None:
    text = "ImportError: x.so: undefined symbol: _ZNK3c105Error4whatEv\ntorch==2.3.1"
    page = client.post("/errors", content=urlencode({"text": text}), headers={**FORM, "Cookie": "lang=zh"})
    assert "<code>c10::Error::what() const</code>：由 torch 2.4.0 至 " in page.text  # noqa: RUF001 - Chinese
    assert faults(page.text) == []
    assert "what() const" not in client.get(vars(page)["context"]["address"]).text


def test_nothing_pasted_is_the_box_again_with_what_is_missing(client: TestClient) -> None:
    response = client.post("/errors", content=urlencode({"text": " \r\n "}), headers=FORM)
    assert (response.status_code, "the text of the error is missing" in response.text) == (422, True)
    assert "We know this one" not in response.text


def test_markup_in_a_paste_stays_text(client: TestClient) -> None:
    hostile = f"</textarea><script>alert(1)</script>\n{LINE} <img src=x onerror=alert(2)>\ntorch <b>2.7.1+cu126</b>"
    page = client.post("/errors", content=urlencode({"text": hostile}), headers=FORM).text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert page.count("</textarea>") == 1


def test_the_twin_says_the_same(client: TestClient) -> None:
    for body in (explained(client, REPORT), explained(client, json.dumps({"text": REPORT}), kind="application/json")):
        assert body["known"] is True
        assert body["build"] == BAD.id
        match = next(one for one in body["matches"] if one["issue"] == "pytorch-151290")
        assert (match["strength"], match["line"]) == ("sure", LINE)
        assert match["cures_on"]["build"] == BAD.id
        assert [(one["id"], one["verdict"]) for one in match["workarounds"]] == [
            ("eager_mask", "effective"),
            ("flags", "ineffective"),
        ]
        assert [line["number"] for line in match["around"] if line["lit"]] == [1]
        assert {"name": "torch", "value": "2.7.1+cu126", "line": "PyTorch version: 2.7.1+cu126"} in body["versions"]
    assert explained(client, REPORT, f"?build={GOOD.id.replace('+', '%2B')}")["build"] == GOOD.id


def test_the_list_of_signatures_stands_at_the_same_address(client: TestClient) -> None:
    signatures = client.get("/api/v1/errors").json()["signatures"]
    assert {"pytorch-151290", "pytorch-154771"} <= {one["issue"] for one in signatures}


@pytest.mark.parametrize(
    ("body", "kind", "status", "field"),
    [
        pytest.param(b"<x/>", "text/xml", 415, "body", id="another kind"),
        pytest.param(b"", "", 422, "body", id="nothing of no kind"),
        pytest.param(b" \n", "text/plain", 422, "body", id="nothing but blanks"),
        pytest.param(b"\x7fELF\x00", "text/plain", 422, "body", id="a binary file"),
        pytest.param(b'{"text": "a\\u0000"}', "application/json", 422, "body", id="a NUL byte in JSON"),
        pytest.param(b"[]", "application/json", 422, "body", id="a list"),
        pytest.param(b"{", "application/json", 422, "body", id="half of JSON"),
        pytest.param(b'{"text": 3}', "application/json", 422, "body", id="a number"),
        pytest.param(b'{"text": "a", "more": 1}', "application/json", 422, "body", id="more than a text"),
        pytest.param(b"[" * 100_000, "application/json", 422, "body", id="nested"),
    ],
)
def test_what_is_no_paste_is_refused_by_name(
    client: TestClient, body: bytes, kind: str, status: int, field: str
) -> None:
    response = client.post("/api/v1/errors", content=body, headers={"Content-Type": kind})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (status, field)


def test_a_build_that_is_none_is_refused_by_name(client: TestClient) -> None:
    response = client.post("/api/v1/errors?build=pytorch", content=b"x", headers={"Content-Type": "text/plain"})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "build")


@pytest.mark.parametrize("body", [b"?", bytes(range(1, 256)) * 50, b"\xff\xfe", b'{"text": "\\ud800"}'])
def test_anything_is_answered(client: TestClient, body: bytes) -> None:
    kind = "application/json" if body.startswith(b"{") else "text/plain"
    assert explained(client, body, kind=kind)["known"] is False


@pytest.mark.parametrize("address", ["/errors", "/api/v1/errors"])
def test_ten_megabytes_are_refused_with_the_limit(client: TestClient, address: str) -> None:
    headers = FORM if address == "/errors" else {"Content-Type": "text/plain"}
    response = client.post(address, content=b"text=" + b"a" * 10_000_000, headers=headers)
    assert response.status_code == 413
    assert "8 MiB" in response.text


def test_a_long_log_is_read_at_its_ends_and_says_so(client: TestClient) -> None:
    body = explained(client, "step\n" * 400_000 + REPORT)
    assert body["known"] is True
    assert body["left_out"] > 0


def test_it_is_answered_where_the_store_is_empty(own: TestClient) -> None:
    assert own.get("/errors").status_code == 200
    assert explained(own, REPORT)["matches"] == []
    assert not answered(own, REPORT)["page"].known


def test_a_new_issue_is_known_at_once(own: TestClient, own_engine: Engine) -> None:
    assert explained(own, LINE)["known"] is False
    given.save(own_engine, given.ISSUES, given.BUILDS)
    client_state(own).knowledge._look_at = 0.0  # the store is asked at most five times a second
    assert explained(own, LINE)["known"] is True


@pytest.fixture(params=NOTEBOOKS.values(), ids=list(NOTEBOOKS))
def at_an_edge(request: pytest.FixtureRequest, own_engine: Engine) -> TestClient:
    notebook: Notebook = request.param
    notebook.fill(own_engine)
    return client_of(own_engine)


def test_every_answer_is_sound_html_at_every_edge(at_an_edge: TestClient) -> None:
    for pasted in (REPORT, "it gives wrong results", "KeyError: 'x'\ntorch 1.0"):
        for language in ("en", "zh"):
            headers = {**FORM, "Cookie": f"lang={language}"}
            page = at_an_edge.post("/errors", content=urlencode({"text": pasted}), headers=headers)
            assert page.status_code == 200
            assert faults(page.text) == [], pasted


# -- nothing is kept ---------------------------------------------------------------------------------------------------


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as logs:
        yield logs


def everything_in(engine: Engine) -> str:
    with reading(engine) as s:
        tables = sorted(inspect(engine).get_table_names())
        return repr([s.execute(sql(f'SELECT * FROM "{name}"')).all() for name in tables])  # noqa: S608 - our tables


def test_what_was_pasted_is_nowhere_afterwards(
    notebook: Engine, logged: list[Any], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not in the store, not in the log, not among kept answers, and no cache on the way may keep it."""
    app = app_over(notebook, rules=AccessPolicy())  # with kept answers
    client = TestClient(app)
    caplog.set_level(0)
    before = everything_in(notebook)
    for answer in (
        client.post("/errors", content=urlencode({"text": REPORT}), headers=FORM),
        client.post("/errors", content=urlencode({"text": f"unknown {SECRET}"}), headers=FORM),
        client.post("/api/v1/errors", content=REPORT, headers={"Content-Type": "text/plain"}),
        client.post("/api/v1/errors", json={"text": f"unknown {SECRET}"}),
        client.post("/api/v1/errors", json={"wrong": SECRET}),
        client.post("/errors", content=SECRET.encode(), headers={"Content-Type": "text/plain"}),
    ):
        assert answer.headers["Cache-Control"] == "no-store"
        assert "ETag" not in answer.headers
    assert everything_in(notebook) == before
    state = app.state.state
    assert SECRET not in repr([(key, kept.body) for key, kept in state.answers._answers.items()])
    assert not state.answers._answers
    written = capfd.readouterr()
    assert SECRET not in repr(logged) + caplog.text + written.out + written.err


def test_the_paste_is_shown_to_nobody_else(client: TestClient) -> None:
    answered(client, REPORT)
    assert SECRET not in client.get("/errors").text
    assert SECRET not in client_of(client_state(client).engine).get("/errors").text


def test_no_address_ever_holds_a_paste() -> None:
    template = (Path(__file__).parents[3] / "app" / "knowngood" / "web" / "templates" / "paste.html").read_text()
    assert template.count("<form") == 1
    assert 'method="post"' in template


def test_an_answer_has_an_address_that_keeps_the_issues_and_the_build_and_nothing_of_the_text(
    client: TestClient,
) -> None:
    pasted = answered(client, REPORT)
    address = pasted["address"]
    assert address.startswith("/errors?issue=")
    assert SECRET not in address
    again = client.get(address)
    kept = vars(again)["context"]
    assert kept["text"] == ""
    assert (kept["page"].known, kept["page"].build) == (True, BAD.id)
    assert [one.issue for one in kept["page"].matches] == [one.issue for one in pasted["page"].matches]
    assert of_the_mask(kept)[3] == of_the_mask(pasted)[3]
    assert [(one.id, one.verdict) for one in of_the_mask(kept)[2]] == [
        ("eager_mask", "effective"),
        ("flags", "ineffective"),
    ]
    assert "nothing of the text that was pasted" in again.text
    assert faults(again.text) == []


def test_an_unknown_failure_has_an_address_too_that_says_what_to_do(client: TestClient) -> None:
    address = answered(client, "KeyError: 'input_ids'")["address"]
    assert address.startswith("/errors?")
    again = client.get(address).text
    assert "We do not know this one" in again
    assert "knowngood new-issue" in again
    assert 'href="https://github.com/pytorch/pytorch/issues/new/choose"' in again


@pytest.mark.parametrize(
    ("query", "field"), [("issue=pytorch-1", "issue"), ("maybe=x", "maybe"), ("known=no&build=9.9", "build")]
)
def test_an_address_that_names_what_is_not_here_is_refused_with_the_field(
    client: TestClient, query: str, field: str
) -> None:
    answer = client.get(f"/errors?{query}")
    assert (answer.status_code, f"{field}: " in answer.text) == (422, True)


def test_every_match_ends_in_something_to_do(client: TestClient) -> None:
    for text in (REPORT, LINE, "error: redefinition of tmp_acc0_arr"):
        for match, _, workarounds, step in answered(client, text)["matches"]:
            assert english(step)
            assert workarounds or command_of(step) or match.cures_on or match.report_url


def test_a_build_that_is_none_loses_nothing_of_what_was_pasted(client: TestClient) -> None:
    answer = client.post("/errors", data={"text": f"{LINE}\n", "build": "nonsense"})
    values = vars(answer)["context"]
    assert answer.status_code == 422
    assert (values["text"].strip(), values["wanted"], values["page"]) == (LINE, "nonsense", None)
    assert "nonsense" in values["problem"]


def test_a_short_address_explains_a_line_and_nobody_keeps_the_answer(client: TestClient) -> None:
    answer = client.get("/e", params={"q": f"{LINE} <script>alert(1)</script>"})
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    assert "ETag" not in answer.headers
    assert 'href="/issues/pytorch-151290' in answer.text
    assert "<script>alert" not in answer.text


@pytest.mark.parametrize("text", ["", "x" * 2001])
def test_a_short_address_without_a_text_or_with_a_long_one_is_refused(text: str, client: TestClient) -> None:
    assert client.get("/e", params={"q": text}).status_code == 422
