"""`/upgrade`, its twin and its note: the answer first, the evidence behind it, and what cannot be understood."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from app.domain.policy import Watch
from app.domain.upgrade import Decision
from app.domain.watch_list import Content
from app.store.session import Engine
from app.web.pages.upgrade import UpgradePage
from tests.conftest import CountStatements
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import client_of, shown
from tests.web.given import BAD, CPU_ONLY, DYNAMO, GOOD, GPU_ONLY, MASK, MISMATCHED, NEW, OLD, SILENT
from tests.web.soundness import faults

FROM = f"from={BAD.id}".replace("+", "%2B")
TEAM = f"/upgrade?{FROM}&watch=vision-team"
EVERYTHING = f"/upgrade?{FROM}"


def answer_of(client: TestClient, address: str) -> Any:
    page = shown(client, address, UpgradePage)
    assert page.answer is not None
    return page.answer


def problem_of(client: TestClient, response: Any) -> UpgradePage:
    assert response.status_code == 422
    page = vars(response)["context"]["page"]
    assert isinstance(page, UpgradePage)
    return page


def test_the_answer_comes_first_and_says_why(client: TestClient) -> None:
    answer = answer_of(client, TEAM)
    assert (answer.decision, answer.verdict) == (Decision.GO, f"Go to {GOOD.id}.")
    assert (
        answer.because == "Fixes the one issue of yours that fails, breaks none. 100 % of your list is measured there."
    )
    assert (answer.watched, answer.must) == ("2 issues (vision-team)", (HARDWARE,))
    text = client.get(TEAM).text
    assert text.index(answer.verdict) < text.index('<form class="filter"') < text.index("<table")


def test_candidates_stand_best_first_with_counts_that_lead_to_their_issues(client: TestClient) -> None:
    answer = answer_of(client, TEAM)
    assert [row.build for row in (*answer.rows, *answer.unmeasured)] == [GOOD.id, NEW.id]
    (row,) = answer.rows
    assert [figure.text for figure in row.figures] == ["1", "0", "0", "0", "0", "100 %"]
    fixed = row.figures[0].address
    assert fixed.endswith("#fixed")
    assert 'id="fixed"' in client.get(fixed).text


def test_builds_that_break_a_constraint_are_named_with_the_reason(client: TestClient) -> None:
    answer = answer_of(client, f"/upgrade?from={OLD.id.replace('+', '%2B')}&cuda=%3C12.8")
    reasons = {build.label: line.reason for line in answer.left_out for build in line.builds}
    assert reasons.keys() == {GOOD.id, NEW.id, MISMATCHED.id, CPU_ONLY.id}
    assert reasons[GOOD.id] == "has CUDA 12.8, and cuda<12.8 is wanted"
    assert "in place of its own" in reasons[MISMATCHED.id]


def test_without_enough_evidence_it_says_stay_and_what_to_run(client: TestClient) -> None:
    answer = answer_of(client, EVERYTHING)
    assert (answer.decision, answer.verdict) == (Decision.STAY, f"Stay on {BAD.id}.")
    assert "50 % of your list has an answer" in answer.because
    assert not answer.shown.is_best
    where = "--hardware cpu-x86_64,cuda-sm_90 --where-affected"
    assert answer.shown.commands.splitlines() == [
        f"knowngood run --builds {GOOD.id} --issues {GPU_ONLY.id} {where}",
        f"knowngood run --builds {GOOD.id} --issues {SILENT.id} {where} --force",
    ]
    assert answer_of(client, f"{EVERYTHING}&enough=50").decision is Decision.GO


def test_the_note_says_what_to_change_and_which_workarounds_go(client: TestClient) -> None:
    answer = answer_of(client, TEAM)
    note = answer.shown.note
    assert note.startswith(f"## Upgrade torch: {BAD.id} to {GOOD.id}\n\n**Go to {GOOD.id}.")
    assert "```diff\n-torch==2.7.1\n+torch==2.8.0\n```" in note
    assert f"(<http://testserver/cells/{MASK.id}/{GOOD.id.replace('+', '%2B')}?hardware={HARDWARE}>)" in note
    assert "### Workarounds no longer needed (1)" in note
    assert f"- {MASK.id}, eager\\_mask: Make it eagerly" in note
    file = client.get(answer.shown.note_address)
    assert file.headers["content-type"] == "text/markdown; charset=utf-8"
    assert file.headers["content-disposition"] == f'attachment; filename="upgrade-{GOOD.id.replace("+", "-")}.md"'
    assert file.text == note


def test_another_candidate_can_be_looked_at_and_is_not_called_recommended(client: TestClient) -> None:
    answer = answer_of(client, f"{TEAM}&to={NEW.id.replace('+', '%2B')}")
    assert (answer.shown.build, answer.shown.is_best) == (NEW.id, False)
    assert f"**{NEW.id}: not enough measured" in answer.shown.note


def test_the_page_and_its_twin_say_the_same(client: TestClient) -> None:
    for address in (TEAM, EVERYTHING, f"{EVERYTHING}&enough=50&hardware={HARDWARE}"):
        page = shown(client, address, UpgradePage)
        told = client.get(page.json_address).json()
        assert page.answer is not None
        assert told["decision"] == page.answer.decision
        assert told["answer"] == f"{page.answer.verdict} {page.answer.because}"
        rows = [*page.answer.rows, *page.answer.unmeasured]
        assert {one["build"] for one in told["candidates"]} == {row.build for row in rows}
        assert len(told["left_out"]) == page.answer.left_out_count


def test_the_twin_counts_what_it_lists(client: TestClient) -> None:
    told = client.get(f"/api/v1{EVERYTHING}").json()
    assert told["watched"] == sorted(issue.id for issue in given.ISSUES)
    assert told["failing"] == [MASK.id, GPU_ONLY.id, SILENT.id]
    first = told["candidates"][0]
    assert first["counts"] == {
        "newly_broken": 0,
        "still_affected": 0,
        "unknown": 2,
        "needs_workaround": 0,
        "fixed": 1,
        "passes": 1,
        "does_not_apply": 0,
    }
    for prospect, count in first["counts"].items():
        assert sum(1 for item in first["items"] if item["prospect"] == prospect) == count
    assert (first["coverage"], first["assurance"], told["enough"]) == (0.5, 0.5, 0.8)
    assert client.get(first["items"][0]["evidence_url"]).status_code == 200


@pytest.mark.parametrize("written", ["2.7.1", "torch-2.7.1", "torch==2.7.1", "2.7.1 cu126", "torch-2.7.1+cu126"])
def test_a_version_is_as_good_as_a_build_id(client: TestClient, written: str) -> None:
    told = client.get("/api/v1/upgrade", params={"from": written, "watch": "vision-team"}).json()
    assert (told["start"], told["build"]) == (BAD.id, GOOD.id)


def test_an_unknown_build_is_answered_with_the_nearest(client: TestClient) -> None:
    page = problem_of(client, client.get("/upgrade?from=2.7.0"))
    assert page.answer is None
    assert 'no build is called "2.7.0" here' in page.problem
    assert BAD.id in [one.label for one in page.nearest]
    assert client.get(page.nearest[0].address).status_code == 200
    refused = client.get("/api/v1/upgrade?from=2.7.0")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "from")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "from"),
        ("from=nonsense", "from"),
        (f"{FROM}&watch=nobody", "watch"),
        (f"{FROM}&issues=pytorch-1", "issues"),
        (f"{FROM}&component=Nothing", "component"),
        (f"{FROM}&severity=dire", "severity"),
        (f"{FROM}&python=3", "python"),
        (f"{FROM}&cuda=twelve", "cuda"),
        (f"{FROM}&driver=new", "driver"),
        (f"{FROM}&hardware=cuda-sm_70", "hardware"),
        (f"{FROM}&pin=numpy%3C2", "pin"),
        (f"{FROM}&package=nothing-needs-it", "watch"),
        (f"{FROM}&enough=101", "enough"),
        (f"{FROM}&watched=all", "watched"),
    ],
)
def test_what_cannot_be_understood_is_refused_by_its_name(client: TestClient, query: str, field: str) -> None:
    refused = client.get(f"/api/v1/upgrade?{query}")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field), refused.text


def test_a_list_names_the_classes_that_count_and_all_can_be_asked_for(client: TestClient) -> None:
    told = client.get(f"/api/v1{TEAM}").json()
    assert (told["hardware"], told["watched"]) == ([HARDWARE], [DYNAMO.id, MASK.id])
    every = client.get(f"/api/v1{EVERYTHING}&issues=all").json()
    assert len(every["watched"]) == len(given.ISSUES)


FREEZE = "numpy==2.2.6\ntorch==2.7.1\nnvidia-cuda-runtime-cu12==12.6.77\ntriton==3.3.1\n"


def test_a_pasted_environment_leads_to_its_build_and_is_not_kept(client: TestClient) -> None:
    form = {"environment": FREEZE, "python": "3.11", "watch": "vision-team"}
    response = client.post("/upgrade", data=form)
    assert (response.status_code, response.headers["cache-control"]) == (303, "no-store")
    assert response.headers["location"] == f"/upgrade?{FROM}&watch=vision-team"
    assert answer_of(client, response.headers["location"]).verdict == f"Go to {GOOD.id}."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("numpy==2.2.6\n", "names no torch", id="no torch"),
        pytest.param("torch==2.7.0\nnvidia-cuda-runtime-cu12==12.6.77\n", "", id="no such build"),
        pytest.param("\0", "", id="no text"),
    ],
)
def test_an_environment_that_is_no_build_is_refused_with_what_was_pasted(
    client: TestClient, content: str, said: str
) -> None:
    page = problem_of(client, client.post("/upgrade", data={"environment": content, "python": ""}))
    assert said in page.problem
    assert page.problem
    assert page.environment == content


def test_fields_of_the_form_that_nobody_filled_in_ask_for_nothing(client: TestClient) -> None:
    empty = "component=&issues=&python=&hardware=&cuda=&driver=&pin=&severity=&enough="
    answer = answer_of(client, f"{TEAM}&{empty}")
    assert (answer.verdict, answer.must) == (f"Go to {GOOD.id}.", (HARDWARE,))


def test_the_empty_form_asks_for_the_build(client: TestClient, own: TestClient) -> None:
    page = shown(client, "/upgrade", UpgradePage)
    assert (page.answer, page.problem, page.lists) == (None, "", ("vision-team",))
    assert page.builds[0] == NEW.id
    assert own.get("/upgrade").status_code == 200
    assert own.get("/upgrade?from=2.7.1").status_code == 422


def test_nothing_measured_is_not_a_reason_to_stay(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    answer = answer_of(own, EVERYTHING)
    assert (answer.decision, answer.verdict) == (Decision.CANNOT_SAY, "Cannot say yet.")
    assert answer.find_out.startswith(f"knowngood run --builds {BAD.id} --issues ")
    assert answer.rows == ()


def test_words_of_a_catalogue_are_only_words(own: TestClient, own_engine: Engine) -> None:
    given.fill(own_engine)
    given.watch(own_engine, "odd", Content(Watch(issues=(MASK.id,)), (HARDWARE,), "<b>bold</b>"))
    text = own.get(f"/upgrade?{FROM}&watch=odd").text
    assert "<script>alert" not in text
    assert "&#34;conflicting declaration&#34;" in text


def test_how_many_questions_the_store_is_asked(notebook: Engine, count_statements: CountStatements) -> None:
    client = client_of(notebook)
    client.get(EVERYTHING)
    with count_statements(notebook) as said:
        client.get(EVERYTHING)
    assert len(said) <= 3, said  # at most the generation; durations, environments


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("address", [TEAM, EVERYTHING, f"{EVERYTHING}&enough=50", "/upgrade?from=2.7.0", "/upgrade"])
def test_every_state_of_the_page_is_sound_html(client: TestClient, address: str, language: str) -> None:
    sign = "&" if "?" in address else "?"
    assert faults(client.get(f"{address}{sign}lang={language}").text) == []


def test_it_speaks_chinese(client: TestClient) -> None:
    text = client.get(f"{TEAM}&lang=zh").text
    assert f"升级到 {GOOD.id}。" in text
    assert "修好" in text
