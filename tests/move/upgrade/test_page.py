"""`/upgrade`, its twin and its note: the answer first, the evidence behind it, and what cannot be understood."""

import re
from dataclasses import replace
from datetime import date
from html import unescape
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from starlette.testclient import TestClient

from knowngood.domain.builds.build import Companion
from knowngood.domain.issue import Packages, Requires
from knowngood.domain.issue_selectors import Watch, WatchListContent
from knowngood.domain.message import english
from knowngood.domain.vocabulary import StatusLabel
from knowngood.move.pair import Group
from knowngood.move.upgrade.candidates import Rating
from knowngood.move.upgrade.reasons import UpgradeDecision
from knowngood.move.upgrade.wording import COLUMN_WORDS
from knowngood.store.engine import Engine
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, make_issue
from tests.web import given
from tests.web.asking import client_of, values_of
from tests.web.given import BAD, CPU_ONLY, DYNAMO, GOOD, GPU_ONLY, MASK, MISMATCHED, NEW, OLD, SILENT
from tests.web.soundness import faults

FROM = f"from={BAD.id}".replace("+", "%2B")
TEAM = f"/upgrade?{FROM}&watch=vision-team"
EVERYTHING = f"/upgrade?{FROM}"


def page_of(client: TestClient, address: str) -> SimpleNamespace:
    """The values that the template reads; `page` is the advice."""
    return SimpleNamespace(**values_of(client, address))


def answer_of(client: TestClient, address: str) -> SimpleNamespace:
    found = page_of(client, address)
    assert found.page is not None
    return found


def rows_of(text: str) -> list[str]:
    """The build one is on and the candidates, as HTML."""
    return [row for row in text.split("<tr")[1:] if 'class="drawn"><svg' in row]


def figures_of(row: str) -> list[str]:
    return re.findall(r'data-head="[^"]*">(?:<a [^>]*>)?([^<]*)', row)


def problem_of(response: Any) -> SimpleNamespace:
    assert response.status_code == 422
    found = SimpleNamespace(**vars(response)["context"])
    assert found.page is None
    return found


def test_the_answer_comes_first_and_says_why(client: TestClient) -> None:
    answer = answer_of(client, TEAM)
    assert (answer.page.decision, answer.verdict) == (UpgradeDecision.GO, f"Go to {GOOD.in_words}.")
    assert answer.because == "1 gained, none lost. Measured: 2 of 2 there, 2 of 2 where you are."
    text = client.get(TEAM).text
    assert "<span>You watch 2 issues (vision-team)</span><span>Must have: CPU</span>" in text
    places = [text.index(part) for part in (f"<h1>{answer.verdict}", "<table", 'id="note"', '<form class="filter"')]
    assert places == sorted(places)


def test_the_build_one_is_on_is_the_first_row_and_candidates_follow_best_first(client: TestClient) -> None:
    answer = answer_of(client, TEAM)
    assert [row.build.id for row in (*answer.page.compared, *answer.page.unmeasured)] == [BAD.id, GOOD.id, NEW.id]
    here, best = rows_of(client.get(TEAM).text)[:2]
    assert figures_of(here) == ["1", "1", "0", "0", "0", "0", "0", "2 of 2"]
    assert figures_of(best) == ["2", "0", "0", "0", "1", "0", "0", "2 of 2"]
    assert '<td class="why">where you are</td>' in here
    assert best.startswith(f' class="{Rating.RECOMMENDED}"')
    (gained,) = map(unescape, re.findall(r'<a href="([^"]*)">1</a>', best))
    assert gained.endswith("#gained")
    assert 'id="gained"' in client.get(gained).text


def test_each_row_has_a_bar_of_what_its_issues_do(client: TestClient) -> None:
    text = client.get(EVERYTHING).text
    bars = [re.findall(r'<rect class="(\w+)" x="(\d)" y="0" width="(\d)"', row) for row in rows_of(text)[:2]]
    assert bars == [
        [(StatusLabel.PASSES, "0", "1"), (StatusLabel.WORKAROUND, "1", "1"), (StatusLabel.FAILS, "2", "2")],
        [(StatusLabel.PASSES, "0", "2"), (StatusLabel.NOT_RUN, "2", "2")],
    ]
    assert text.count('<svg class="bar" viewBox="0 0 4 1"') == 3


def test_builds_that_break_a_constraint_are_named_with_the_reason(client: TestClient) -> None:
    answer = answer_of(client, f"/upgrade?from={OLD.id.replace('+', '%2B')}&cuda=%3C12.8")
    reasons = {build: english(reason) for reason, builds in answer.left_out.items() for build in builds}
    assert reasons.keys() == {GOOD.id, NEW.id, MISMATCHED.id, CPU_ONLY.id}
    assert reasons[GOOD.id] == "has CUDA 12.8, and cuda<12.8 is wanted"
    assert "in place of its own" in reasons[MISMATCHED.id]


def test_without_enough_evidence_it_cannot_say_and_tells_what_to_run(client: TestClient) -> None:
    answer = answer_of(client, EVERYTHING)
    assert (answer.page.decision, answer.verdict) == (UpgradeDecision.CANNOT_SAY, "Cannot say yet.")
    assert f"most is known of {GOOD.in_words}, 2 of 4." in answer.because
    where = "--hardware cpu-x86_64,cuda-sm_90 --where-affected"
    (find_out,) = answer.page.find_out
    assert list(find_out.commands) == [
        f"knowngood run --builds {GOOD.id} --issues {GPU_ONLY.id} {where}",
        f"knowngood run --builds {GOOD.id} --issues {SILENT.id} {where} --force",
    ]
    assert answer_of(client, f"{EVERYTHING}&enough=50").page.decision is UpgradeDecision.GO


@pytest.mark.parametrize("address", [EVERYTHING, f"/upgrade?from={quote(OLD.id)}&issues={MASK.id}"])
def test_without_a_recommendation_nothing_says_how_to_go_somewhere(client: TestClient, address: str) -> None:
    """Neither "cannot say" nor "stay" prints requirements, a diff or a note of some other build."""
    answer = answer_of(client, address)
    assert answer.page.decision is not UpgradeDecision.GO
    assert answer.chosen is None
    text = client.get(address).text
    assert 'id="note"' not in text
    assert "torch==" not in text
    told = client.get(f"/api/v1{address}").json()
    assert (told["build"], told["requirements"]) == (None, [])
    note = client.get(address.replace("/upgrade", "/upgrade.md")).text
    assert note.startswith(f"**{answer.verdict}")
    assert "torch==" not in note


def test_the_note_says_what_to_change_and_which_workarounds_go(client: TestClient) -> None:
    answer = answer_of(client, TEAM)
    note = answer.note
    assert note.startswith(f"## Upgrade {BAD.in_words} to {GOOD.in_words}\n\n**Go to {GOOD.in_words}.")
    assert "```diff\n-torch==2.7.1\n+torch==2.8.0\n```" in note
    assert f"(<http://testserver/cells/{MASK.id}/{GOOD.id.replace('+', '%2B')}?hardware={HARDWARE}>)" in note
    assert "### Workarounds no longer needed (1)" in note
    assert "- **Make it eagerly**, for: [create\\_block\\_mask fails" in note
    assert f"](<http://testserver/issues/{MASK.id}>)" in note
    assert len(note.splitlines()) <= 80
    file = client.get(answer.note_address)
    assert file.headers["content-type"] == "text/markdown; charset=utf-8"
    assert file.headers["content-disposition"] == f'attachment; filename="upgrade-{GOOD.id.replace("+", "-")}.md"'
    assert file.text == note


def test_a_workaround_that_works_there_says_on_how_many_runs(client: TestClient) -> None:
    address = f"/upgrade?from={quote(OLD.id)}&to={quote(BAD.id)}&issues={MASK.id}"
    works = 'Make it eagerly <span class="beside">2 runs</span>'
    assert client.get(address).text.count(works) == 2, "where it is lost, and among what to add"
    note = client.get(address.replace("/upgrade", "/upgrade.md")).text
    assert "has a workaround (2 runs)" in note
    assert "- **Make it eagerly** (slower once; 2 runs), for: " in note


def test_another_candidate_can_be_looked_at_and_is_not_called_recommended(client: TestClient) -> None:
    answer = answer_of(client, f"{TEAM}&to={NEW.id.replace('+', '%2B')}")
    assert (answer.shown.build.id, answer.page.best.build.id) == (NEW.id, GOOD.id)
    assert "**Not recommended: not enough measured" in answer.note


def test_the_page_and_its_twin_say_the_same(client: TestClient) -> None:
    for address in (TEAM, EVERYTHING, f"{EVERYTHING}&enough=50&hardware={HARDWARE}"):
        answer = answer_of(client, address)
        told, advice = client.get(answer.json_address).json(), answer.page
        assert told["decision"] == advice.decision
        assert told["answer"] == f"{answer.verdict} {answer.because}"
        said = [told["base"], *told["candidates"]]
        assert [one["build"] for one in said] == [one.build.id for one in (advice.base, *advice.candidates)]
        assert [one["build"] for one in said] == [row.build.id for row in (*advice.compared, *advice.unmeasured)]
        assert len(told["left_out"]) == len(advice.left_out)
        for one, row in zip(said, rows_of(client.get(address).text), strict=True):
            counts = [str(one["counts"][tally]) for tally in COLUMN_WORDS]
            assert figures_of(row) == [*counts, f"{one['measured']} of {one['applicable']}"]
            assert one["why"] in row
        assert [one["commands"] for one in told["find_out"]] == [list(one.commands) for one in advice.find_out]


def test_it_counts_what_a_comparison_counts(client: TestClient) -> None:
    """The same issues between the same two builds."""
    watched = f"{MASK.id},{DYNAMO.id},{SILENT.id}"
    for start in (OLD, BAD):
        address = f"/api/v1/upgrade?from={quote(start.id)}&issues={watched}&hardware={HARDWARE}"
        for one in client.get(address).json()["candidates"]:
            sides = f"a={quote(start.id)}&b={quote(one['build'])}"
            groups = client.get(f"/api/v1/compare?{sides}&issues={watched}&hardware={HARDWARE}").json()["groups"]
            counts = one["counts"]
            assert (counts["gained"], counts["lost"], counts["new"]) == tuple(
                groups[group] for group in (Group.FIXED, Group.NEWLY_BROKEN, Group.NEW)
            )


def test_the_twin_counts_what_it_lists(client: TestClient) -> None:
    told = client.get(f"/api/v1{EVERYTHING}").json()
    assert told["watched"] == sorted(issue.id for issue in given.ISSUES)
    assert told["failing"] == [MASK.id, GPU_ONLY.id, SILENT.id]
    first = told["candidates"][0]
    assert first["counts"] == {
        "passes": 2,
        "needs_workaround": 0,
        "fails": 0,
        "bigger": 0,
        "more_work": 0,
        "slower": 0,
        "not_known": 2,
        "does_not_apply": 0,
        "gained": 1,
        "lost": 0,
        "lost_with_workaround": 0,
        "untried": 0,
        "new": 0,
        "not_known_before": 0,
    }
    for prospect in ("passes", "needs_workaround", "fails", "not_known"):
        assert sum(1 for item in first["items"] if item["prospect"] == prospect) == first["counts"][prospect]
    assert sum(1 for item in first["items"] if item["group"] == "fixed") == first["counts"]["gained"]
    assert (first["coverage"], first["assurance"], told["enough"]) == (0.5, 0.5, 0.8)
    assert {item["assurance"] for item in first["items"]} == {"measured", "not_known"}
    assert client.get(first["items"][0]["evidence_url"]).status_code == 200


@pytest.mark.parametrize(
    ("written", "is_open"),
    [("2.7.1", True), ("torch==2.7.1", True), ("2.7.1 cu126", True), ("torch-2.7.1", False), ("2.7.1~py311", False)],
)
def test_a_version_is_as_good_as_a_build_id_and_leaves_the_python_open(
    client: TestClient, written: str, is_open: bool
) -> None:
    told = client.get("/api/v1/upgrade", params={"from": written, "watch": "vision-team"}).json()
    start, build = (BAD.wheel, GOOD.wheel) if is_open else (BAD, GOOD)
    assert (told["start"], told["build"]) == (start.id, build.id)
    assert client.get(told["base"]["url"], follow_redirects=True).status_code == 200


def test_an_unknown_build_is_answered_with_the_nearest(client: TestClient) -> None:
    page = problem_of(client.get("/upgrade?from=2.7.0"))
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
        (f"{FROM}&hardware=rocm-gfx942", "hardware"),
        (f"{FROM}&pin=numpy%3C2", "pin"),
        (f"{FROM}&package=nothing-needs-it", "watch"),
        (f"{FROM}&enough=101", "enough"),
        (f"{FROM}&enough=49", "enough"),
        (f"{FROM}&watched=all", "watched"),
    ],
)
def test_what_cannot_be_understood_is_refused_by_its_name(client: TestClient, query: str, field: str) -> None:
    refused = client.get(f"/api/v1/upgrade?{query}")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field), refused.text


@pytest.mark.parametrize(("named", "shown"), [("CPU", "CPU"), ("H200", "H200"), (HARDWARE, "CPU")])
def test_the_form_keeps_hardware_as_people_name_it(client: TestClient, named: str, shown: str) -> None:
    page = client.get(f"{EVERYTHING}&hardware={named}").text
    form = page[page.index('name="hardware"') :]
    assert re.findall(r"<option[^>]* selected>([^<]+)", form[: form.index("</select>")]) == [shown]


@pytest.mark.parametrize(
    ("uses", "asks"),
    [
        ("inductor_c++", {"component": ["Inductor C++"]}),
        ("Dynamo, torch_xla", {"component": ["Dynamo"], "package": ["torch-xla"], "has": ["torch-xla"]}),
        ("dynamo + torch_xla==2.7.0", {"component": ["Dynamo"], "package": ["torch-xla"], "has": ["torch-xla==2.7.0"]}),
        ("#151290; wrong BMM", {"issues": [MASK.id, SILENT.id]}),
        ("torchvision==0.22.1", {"has": ["torchvision==0.22.1"]}),
    ],
)
def test_a_line_of_what_one_uses_leads_to_the_question_that_it_is(
    own: TestClient, own_engine: Engine, uses: str, asks: dict[str, list[str]]
) -> None:
    xla = replace(make_issue("xla-1", component="PyTorch/XLA"), requires=Requires(package="torch-xla"))
    given.save(own_engine, [*given.ISSUES, xla], given.BUILDS)
    asked = own.get("/upgrade", params={"from": "2.7.1", "hardware": "H100", "uses": uses}, follow_redirects=False)
    assert asked.status_code == 303
    assert parse_qs(urlsplit(asked.headers["location"]).query) == {"from": ["2.7.1"], "hardware": ["H100"], **asks}
    assert own.get(asked.headers["location"]).status_code == 200


@pytest.mark.parametrize(("uses", "says"), [("dinamo", "nearest: Dynamo"), ("pytorch", "issues; write more of one")])
def test_what_names_nothing_or_too_much_is_refused_with_what_was_written(
    own: TestClient, own_engine: Engine, uses: str, says: str
) -> None:
    given.save(own_engine, [*given.ISSUES, *(make_issue(f"pytorch-{n}") for n in range(20))], given.BUILDS)
    refused = own.get("/upgrade", params={"from": "2.7.1", "uses": uses})
    assert refused.status_code == 422
    assert says in refused.text
    assert f'name="uses" value="{uses}"' in refused.text


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
    assert response.headers["location"] == f"/upgrade?{FROM}&watch=vision-team&has=none"
    assert answer_of(client, response.headers["location"]).verdict == f"Go to {GOOD.in_words}."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("numpy==2.2.6\n", "has no torch", id="no torch"),
        pytest.param("torch==2.7.0\nnvidia-cuda-runtime-cu12==12.6.77\n", "", id="no such build"),
        pytest.param("\0", "", id="no text"),
    ],
)
def test_an_environment_that_is_no_build_is_refused_with_what_was_pasted(
    client: TestClient, content: str, said: str
) -> None:
    page = problem_of(client.post("/upgrade", data={"environment": content, "python": ""}))
    assert said in page.problem
    assert page.problem
    assert page.environment == content


def test_fields_of_the_form_that_nobody_filled_in_ask_for_nothing(client: TestClient) -> None:
    empty = "component=&issues=&python=&hardware=&cuda=&driver=&pin=&severity=&enough="
    assert answer_of(client, f"{TEAM}&{empty}").verdict == f"Go to {GOOD.in_words}."
    assert "<span>Must have: CPU</span>" in client.get(f"{TEAM}&{empty}").text


def test_the_empty_form_asks_for_the_build(client: TestClient, own: TestClient) -> None:
    page = page_of(client, "/upgrade")
    assert (page.page, page.problem, list(page.knowledge.lists)) == (None, "", ["vision-team"])
    assert page.builds[0].id == NEW.id
    assert own.get("/upgrade").status_code == 200
    assert own.get("/upgrade?from=2.7.1").status_code == 422


def test_nothing_measured_is_not_a_reason_to_stay(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    answer = answer_of(own, EVERYTHING)
    assert (answer.page.decision, answer.verdict) == (UpgradeDecision.CANNOT_SAY, "Cannot say yet.")
    assert answer.page.find_out[0].commands[0].startswith(f"knowngood run --builds {BAD.id} --issues ")
    assert [row.build.id for row in answer.page.compared] == [BAD.id]


def test_words_of_a_catalogue_are_only_words(own: TestClient, own_engine: Engine) -> None:
    given.fill(own_engine)
    given.watch(own_engine, "odd", WatchListContent(Watch(issues=(MASK.id,)), (HARDWARE,), "<b>bold</b>"))
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
    assert f"升级到 {GOOD.in_words}。" in text
    assert "得到 1 个，没有失去" in text  # noqa: RUF001 - Chinese has its own comma


TORCHAO = replace(
    DYNAMO,
    id="ao-2901",
    title="torchao kills the process",
    packages=Packages(("torchao==0.12.0",)),
    requires=Requires(package="torchao"),
)


@pytest.mark.parametrize(
    ("asked", "is_watched", "note"),
    [
        ("", False, "your packages are not known"),
        ("&has=torchao", True, ""),
        ("&has=TorchAO,numpy", True, ""),
        ("&has=none", False, "the environment does not have them"),
        (f"&issues={TORCHAO.id},{MASK.id}", True, ""),
        ("&package=torchao", True, ""),
        ("&component=Dynamo", False, "your packages are not known"),
        (f"&issues={TORCHAO.id},{MASK.id}&has=none", False, "the environment does not have them"),
    ],
)
def test_a_row_of_a_package_counts_for_who_has_it(
    own: TestClient, own_engine: Engine, asked: str, is_watched: bool, note: str
) -> None:
    given.save(own_engine, [*given.ISSUES, TORCHAO], given.BUILDS)
    told = own.get(f"/api/v1{EVERYTHING}{asked}").json()
    assert (TORCHAO.id in told["watched"]) is is_watched
    assert any(note in said and "torchao (1)" in said for said in told["notes"]) is bool(note)


def test_what_concerns_only_packages_that_are_not_there_is_refused(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, [*given.ISSUES, TORCHAO], given.BUILDS)
    refused = own.get(f"/api/v1{EVERYTHING}&issues={TORCHAO.id}&has=none")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "watch")


@pytest.mark.parametrize(("freeze", "has"), [(FREEZE, "none"), (f"{FREEZE}torchao==0.12.0\n", "torchao%3D%3D0.12.0")])
def test_of_a_pasted_environment_the_packages_that_rows_concern_are_kept(
    own: TestClient, own_engine: Engine, freeze: str, has: str
) -> None:
    given.save(own_engine, [*given.ISSUES, TORCHAO], given.BUILDS)
    response = own.post("/upgrade", data={"environment": freeze, "python": "3.11"})
    assert response.headers["location"] == f"/upgrade?{FROM}&has={has}"


def test_the_page_says_which_packages_come_along_in_both_languages(own: TestClient, own_engine: Engine) -> None:
    going = {GOOD.id: "2.8.0", NEW.id: ""}
    builds = [
        replace(one, companions=(Companion("torch-xla", going.get(one.id, "2.7.0"), "", date(2026, 11, 27)),))
        for one in given.BUILDS
    ]
    given.save(own_engine, given.ISSUES, builds)
    answer = answer_of(own, f"{EVERYTHING}&has=torch_xla")
    assert "2.8.0 with torch-xla 2.8.0. There is no torch-xla for torch 2.9 (PyPI for Python 3.11" in answer.because
    left_out = {english(reason): builds for reason, builds in answer.left_out.items()}
    assert left_out["has no torch-xla that is built for it (PyPI, asked 2026-11-27)"] == [NEW.id]
    chinese = own.get(f"{EVERYTHING}&has=torch_xla&lang=zh").text
    assert "2.8.0 搭配 torch-xla 2.8.0" in chinese
    assert "没有用于 torch 2.9 的 torch-xla" in chinese
    assert "没有为它构建的 torch-xla" in chinese
