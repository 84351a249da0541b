"""The issue page: the sentence first, the cure for the reader's build, claims beside measurements."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import pytest
from markupsafe import escape
from starlette.testclient import TestClient

from knowngood.domain.issue import Claim, Requires, Workaround
from knowngood.domain.measuring.job import ArmSpec, JobSpec
from knowngood.domain.message import english
from knowngood.domain.verdicts.claims import Standing
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import WorkaroundVerdict
from knowngood.domain.vocabulary import StatusLabel
from knowngood.store.engine import Engine
from knowngood.web.urls import API, MATRIX, feed_address, issue_address
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_build
from tests.store.given import given_results, given_run
from tests.store.knowledge import test_costs as costs
from tests.web import given
from tests.web.asking import client_of, page_at
from tests.web.given import BAD, BUILDS, DYNAMO, GOOD, ISSUES, MASK, MISMATCHED, NEW, OLD, Asked

ADDRESS = f"/issues/{MASK.id}"


def page_of(client: TestClient, address: str = ADDRESS) -> SimpleNamespace:
    return page_at(client, address)


def test_the_answer_comes_first_then_what_to_do_and_the_prose_last(client: TestClient) -> None:
    text = " ".join(unescape(re.sub(r"<[^>]*>", "", client.get(ADDRESS).text)).split())
    order = [
        "fails on torch 2.7.1",
        "fails in 2.7.1, fixed in 2.8.0",
        "Works on 2.7.1: Make it eagerly",
        "mask = make()",
        "1 of 2 workarounds work here",
        "attempts ended with the issue's own signature",
        "What breaks",
    ]
    places = [text.find(words) for words in order]
    assert -1 not in places
    assert places == sorted(places)


def test_the_newest_failing_release_is_chosen_and_its_cures_come_first(client: TestClient) -> None:
    page = page_of(client)
    assert page.build == BAD
    assert [(remedy.id, remedy.verdict, remedy.rank) for remedy in page.workarounds] == [
        ("eager_mask", WorkaroundVerdict.EFFECTIVE, 1),
        ("flags", WorkaroundVerdict.INEFFECTIVE, 0),
    ]


def test_every_door_recommends_the_same_workaround(client: TestClient) -> None:
    page = page_of(client)
    found = client.get(f"/api/v1/cells/{MASK.id}/{BAD.id.replace('+', '%2B')}").json()["findings"]
    body = {"build": BAD.id, "issues": [MASK.id], "hardware": [HARDWARE]}
    (reason,) = client.post("/api/v1/gate", json=body).json()["reasons"]
    assert [page.shown.id, found[0]["id"], reason["workarounds"][0]["id"]] == ["eager_mask"] * 3
    assert found[0]["title"] == "Make it eagerly"


def test_a_workaround_for_other_releases_is_named_and_not_offered(own: TestClient, own_engine: Engine) -> None:
    arms = tuple(replace(arm, applies_to=">=2.8") if arm.id == "flags" else arm for arm in MASK.arms)
    issue = replace(MASK, arms=arms)
    given.save(own_engine, [issue], [BAD, GOOD])
    unmeasured = page_of(own, f"{ADDRESS}?build={BAD.id.replace('+', '%2B')}")
    given.run(own_engine, Asked([BAD], NOON, issues=[issue]))
    for page in (unmeasured, page_of(own)):
        assert [remedy.id for remedy in page.workarounds] == ["eager_mask"]
        assert [(one.id, english(note)) for one, note in page.elsewhere] == [
            ("flags", "does not apply to this build: this workaround is for torch >=2.8")
        ]
    text = " ".join(own.get(ADDRESS).text.split())
    assert "1 of 1 workarounds work here" in text
    assert "Change the compiler: does not apply to this build" in text
    cell = f"/cells/{MASK.id}/{BAD.id.replace('+', '%2B')}"
    assert "Change the compiler: does not apply to this build" in " ".join(own.get(cell).text.split())
    told = own.get(f"/api/v1{cell}").json()
    assert [(one["id"], one["applies"]) for one in told["findings"]] == [("eager_mask", True), ("flags", False)]
    assert told["workarounds"] == {"eager_mask": "effective", "flags": "unverified"}


def test_a_reader_names_the_build_with_plus_percent_or_space(client: TestClient) -> None:
    for written in ("torch-2.8.0%2Bcu128", "torch-2.8.0+cu128", "torch-2.8.0%20cu128"):
        page = page_of(client, f"{ADDRESS}?build={written}")
        assert page.build == GOOD
        assert status_of(page.cell) is StatusLabel.PASSES
    assert "Nothing to do on 2.8.0." in client.get(f"{ADDRESS}?build=torch-2.8.0%2Bcu128").text


def test_a_strip_has_a_square_for_every_release_and_what_was_measured_beside_them(client: TestClient) -> None:
    (strip,) = page_of(client).strips
    assert strip["hardware"] == HARDWARE
    assert {square.head.id for square in strip["squares"]} == {OLD.id, BAD.id, GOOD.id, NEW.id}


def test_a_strip_has_a_square_for_each_release(own: TestClient, own_engine: Engine) -> None:
    twins = [make_build(one.torch, pinned_triton=one.pinned_triton, python="3.12") for one in (BAD, GOOD, NEW)]
    given.save(own_engine, ISSUES, [*BUILDS, *twins])
    given.run(own_engine, Asked([BAD, twins[1]], NOON, issues=[MASK]))
    given.run(own_engine, Asked([twins[0]], NOON, issues=[MASK]), lambda *_: Outcome.PASS)
    page = page_of(own)
    (strip,) = page.strips
    assert [(square.head.label, square.build, square.sign) for square in strip["squares"]] == [
        ("2.5.1", OLD.id, StatusLabel.NOT_RUN),
        ("2.7.1", BAD.id, StatusLabel.UNSURE),
        ("2.8.0", twins[1].id, StatusLabel.PASSES),
        ("2.9.0", NEW.id, StatusLabel.NOT_RUN),
    ]
    assert english(strip["sentence"]) == "passes on 2.8.0, the one with an answer (2.7.1 differs by Python)"
    assert page.build == BAD
    assert {build.id for build in page.builds} == {build.wheel.id for build in BUILDS}


def test_the_build_shown_is_of_the_default_python_where_nothing_else_decides(
    own: TestClient, own_engine: Engine
) -> None:
    twin = make_build(NEW.torch, pinned_triton=NEW.pinned_triton, python="3.13")
    given.save(own_engine, ISSUES, [*BUILDS, twin])
    assert page_of(own).build == NEW
    given.run(own_engine, Asked([twin], NOON, issues=[MASK]), lambda *_: Outcome.PASS)
    assert page_of(own).build == twin


def test_what_a_catalogue_says_is_rendered_and_its_markup_is_inert(client: TestClient) -> None:
    text = client.get(ADDRESS).text
    assert "<strong>C++ error</strong>" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_claims_stand_beside_what_was_measured(client: TestClient) -> None:
    text = client.get(ADDRESS).text
    assert "Fixed by #151887." in text
    assert "2025-04-23" in text


def test_evidence_lists_every_measured_cell_newest_release_first(client: TestClient) -> None:
    page = page_of(client)
    assert [cell.build for cell in page.evidence] == [GOOD.id, MISMATCHED.id, BAD.id, OLD.id]
    assert (page.evidence[2].line, page.stale) == (given.LINE, {page.evidence[3].key})


def test_the_repro_is_shown_and_downloaded_as_it_is(client: TestClient) -> None:
    response = client.get(f"{ADDRESS}/repro.py")
    assert response.text == MASK.script
    assert response.headers["content-type"].startswith("text/x-python")
    parts = (f'href="{ADDRESS}/repro.py" download', '<span class="k">def</span>')
    assert [one for one in parts if one not in client.get(ADDRESS).text] == []


def test_the_commands_to_rerun_name_the_chosen_build(client: TestClient) -> None:
    commands = page_of(client, f"{ADDRESS}?build={OLD.id.replace('+', '%2B')}").commands
    assert commands["ours"] == f"knowngood run --builds {OLD.id} --issues {MASK.id} --hardware {HARDWARE} --force"
    assert "--exclude-newer 2024-11-30 torch==2.5.1 numpy setuptools" in commands["plain"]
    assert commands["plain"].startswith("curl -O http://testserver/issues/pytorch-151290/repro.py\n")


def test_an_issue_of_gpus_opens_on_the_class_it_was_measured_on(client: TestClient) -> None:
    page = page_of(client, "/issues/pytorch-151589")
    assert page.cell.hardware == given.GPU_CLASS
    assert page.build == BAD


def test_an_issue_that_was_never_run_says_how(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, ISSUES, BUILDS)
    text = own.get(ADDRESS).text
    assert "No attempt is stored yet." in text
    assert f"knowngood run --builds {NEW.id} --issues {MASK.id}" in text


def test_a_catalogue_without_builds_is_no_fault(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, ISSUES, ())
    response = own.get(ADDRESS)
    assert response.status_code == 422
    assert "knowngood up" in response.text


def test_an_issue_page_takes_five_queries_where_all_that_is_known_is_kept(
    notebook: Engine, count_statements: CountStatements
) -> None:
    client = client_of(notebook)
    client.get(MATRIX)
    with count_statements(notebook) as said:
        client.get(ADDRESS)
    assert len(said) == 5, said  # generation twice, the issue, what passes took, the latest attempts


def test_the_interval_is_told_from_both_sides(client: TestClient) -> None:
    (span,) = page_of(client).strips[0]["history"].spans
    assert (span.broke_in, span.fixed_in) == ("(2.5.1, 2.7.1]", "(2.7.1, 2.8.0]")


def test_a_claim_that_can_be_wrong_is_held_against_what_was_measured(own: TestClient, own_engine: Engine) -> None:
    claims = (
        Claim("Fixed in `2.7.1`.", "a blog", says="fixed", about="==2.7.1"),
        Claim("Fails on 2.7.", "the report", says="affected", about=">=2.7,<2.8"),
        Claim("Eager helps.", "a comment", says="cure", workaround="eager_mask"),
        Claim("Other flags help.", "a comment", says="cure", workaround="flags"),
        Claim("It is mended.", "upstream", says="fixed", about=">=2.9"),
        Claim("A regression.", "upstream", says="cause"),
    )
    issue = replace(MASK, claims=claims)
    given.save(own_engine, [issue], [BAD, NEW])
    given.run(own_engine, Asked([BAD], NOON, issues=[issue]))
    page = page_of(own)
    assert [[(held.standing, english(held.sentence)) for held in one.held] for one in page.claims] == [
        [(Standing.CONTRADICTED, "2.7.1 fails here")],
        [(Standing.AGREES, "2.7.1 fails here")],
        [(Standing.AGREES, "cured 2.7.1")],
        [(Standing.CONTRADICTED, "did not cure 2.7.1")],
        [(Standing.NOT_MEASURED, "")],
        [],
    ]
    text = own.get(ADDRESS).text
    assert "<q>Fixed in <code>2.7.1</code>.</q>" in text
    assert "An unmarked claim" in text
    (told,) = [one for one in own.get(f"/api/v1{ADDRESS}").json()["held_claims"] if one["text"] == "Other flags help."]
    assert told["held"] == [
        {"standing": "contradicted", "sentence": "did not cure 2.7.1", "hardware": HARDWARE},
    ]


def test_a_workaround_says_what_it_took_beside_the_control(client: TestClient) -> None:
    cured, useless = page_of(client).workarounds
    assert cured.cost is not None
    assert (cured.cost.variant, cured.cost.workaround.attempts, cured.cost.control.attempts) == ("big", 2, 2)
    assert useless.cost is None  # it never passed with the variant that fails
    text = " ".join(client.get(ADDRESS).text.split())
    assert "4.0 s, 512 MB for one first call, compiling included; 0.5 s, 512 MB without the suspect path" in text
    assert text.count("Measured cost") == 1


def test_where_nothing_comparable_was_measured_no_cost_is_told(client: TestClient) -> None:
    assert all(remedy.cost is None for remedy in page_of(client, f"{ADDRESS}?build={NEW.id}").workarounds)
    assert "Measured cost" not in client.get(f"{ADDRESS}?build={NEW.id.replace('+', '%2B')}").text


def test_what_stands_between_backticks_is_code_and_all_else_is_text(own: TestClient, own_engine: Engine) -> None:
    title, trade = "Calling `f<b>` and *g*", "Costs `<i>` a lot; a lone ` stays"
    workaround = Workaround("eager_mask", "Use `g`", "```python\nx\n```", trade)
    given.save(own_engine, [replace(MASK, title=title, workarounds=(workaround, MASK.workarounds[1]))], BUILDS)
    text = own.get(ADDRESS).text
    assert '<h1 class="issue-title">Calling <code>f&lt;b&gt;</code> and *g*</h1>' in text
    assert f"<title>{MASK.id}: Calling f&lt;b&gt; and *g* · Known Good</title>" in text
    assert "Costs <code>&lt;i&gt;</code> a lot; a lone ` stays" in text
    assert "Use <code>g</code>" in text


def test_evidence_is_sorted_by_link_and_turned_round_by_a_second_one(client: TestClient) -> None:
    by_build = [cell.build for cell in page_of(client, f"{ADDRESS}?sort=build").evidence]
    assert by_build == [OLD.id, BAD.id, MISMATCHED.id, GOOD.id]
    failed = page_of(client, f"{ADDRESS}?sort=-failed")
    assert [tuple(sum(getattr(one, kn) for one in cell.variants) for kn in "kn") for cell in failed.evidence] == [
        (2, 4),
        (1, 2),
        (0, 4),
        (0, 2),
    ]
    heads = {head["label"]: head for head in failed.evidence_heads}
    assert heads["Failed"]["order"] == "descending"
    assert heads["Failed"]["address"] == f"{ADDRESS}?sort=failed#evidence"
    assert heads["Build"]["address"] == f"{ADDRESS}?sort=-build#evidence"
    assert 'aria-sort="descending"' in client.get(f"{ADDRESS}?sort=-failed").text
    refused = client.get(f"{ADDRESS}?sort=colour")
    assert refused.status_code == 422
    assert "known: build, hardware, verdict, failed, measured" in refused.text


def test_a_chosen_build_is_remembered_until_it_is_forgotten(client: TestClient) -> None:
    chosen = client.get(f"{ADDRESS}/use?build={OLD.id.replace('+', '%2B')}&hardware={HARDWARE}")
    assert chosen.status_code == 303
    assert chosen.headers["location"] == f"{ADDRESS}?build={OLD.id.replace('+', '%2B')}&hardware={HARDWARE}#use"
    assert chosen.headers["cache-control"] == "no-store"
    assert {"httponly", "samesite=lax"} <= {part.strip().lower() for part in chosen.headers["set-cookie"].split(";")}
    try:
        page = page_of(client)
        assert (page.build, page.is_remembered) == (OLD, True)
        assert page_of(client, "/issues/fla-160").build == OLD
        asked = page_of(client, f"{ADDRESS}?build={GOOD.id.replace('+', '%2B')}")
        assert (asked.build, asked.is_remembered) == (GOOD, False)
        assert client.get(f"{ADDRESS}/use").headers["location"] == f"{ADDRESS}#use"
        assert page_of(client).build == BAD
    finally:
        client.cookies.clear()


def test_a_remembered_build_that_is_gone_or_nonsense_is_passed_over(client: TestClient) -> None:
    for cookie in ("torch-9.9.9", "<script>", "x" * 5000):
        response = client.get(ADDRESS, headers={"Cookie": f"build={cookie}"})
        assert vars(response)["context"]["page"]["build"] == BAD
        assert "<script>alert" not in response.text
    assert client.get(f"{ADDRESS}/use?build=nonsense").status_code == 422


def test_a_copy_made_for_one_remembered_build_is_not_shown_to_another_reader(client: TestClient) -> None:
    """Not even where the address names the build: the header says which one is theirs."""
    for address in (ADDRESS, f"{ADDRESS}?build={OLD.id.replace('+', '%2B')}"):
        tags = {client.get(address, headers={"Cookie": f"build={one.id}"}).headers["etag"] for one in (OLD, GOOD)}
        assert len(tags) == 2


def test_the_latest_attempts_stand_newest_first_with_superseded_ones_named(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, [DYNAMO], [BAD])
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]))
    attempts = page_of(own, "/issues/fla-160").attempts
    assert sorted(one.arm for one in attempts) == ["baseline", "control"]
    assert {one.outcome for one in attempts} == {Outcome.PASS}
    given.save(own_engine, [given.with_new_code(DYNAMO)], [BAD])
    assert {one.outcome for one in page_of(own, "/issues/fla-160").attempts} == {None}
    assert own.get("/issues/fla-160").text.count(">superseded<") == 2


def test_the_badge_code_names_the_chosen_build_and_leads_back_here(client: TestClient) -> None:
    text = client.get(f"{ADDRESS}?build={OLD.id.replace('+', '%2B')}").text
    query = f"build={OLD.id.replace('+', '%2B')}&hardware={HARDWARE}"
    picture, endpoint = f"/badge/{MASK.id}.svg?{query}", f"/badge/{MASK.id}.json?{query}"
    code = f"[![{MASK.id} on {OLD.id}](http://testserver{picture})](http://testserver{ADDRESS}?{query})"
    assert [one for one in (code, endpoint) if str(escape(one)) not in text] == []
    assert client.get(picture).headers["content-type"] == "image/svg+xml"
    assert client.get(endpoint).json()["schemaVersion"] == 1


def test_the_feed_of_the_issue_is_announced_and_linked(client: TestClient) -> None:
    feed = feed_address("issues", MASK.id)
    assert client.get(ADDRESS).text.count(f'href="{feed}"') == 2
    assert client.get(feed).headers["content-type"].startswith("application/atom+xml")


def test_chinese_readers_get_the_twin_texts_where_there_are_any(client: TestClient) -> None:
    page = page_of(client, f"{ADDRESS}?lang=zh")
    assert '<h1 class="issue-title">create_block_mask 编译失败</h1>' in client.get(f"{ADDRESS}?lang=zh").text
    assert page.workarounds[0].title == "不编译"
    assert page.workarounds[1].title == "Change the compiler （暂无中文）"  # noqa: RUF001 - what Chinese readers are told


@pytest.mark.parametrize(
    "address", [f"{ADDRESS}?build=nonsense", f"{ADDRESS}?build=torch-9.9.9", f"{ADDRESS}?hardware=x"]
)
def test_a_build_or_class_we_do_not_have_is_refused_with_words(client: TestClient, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 422
    assert "torch-9.9.9" in response.text or "known" in response.text or "names no build" in response.text


def test_a_row_that_depends_on_the_vector_isa_says_how_the_classes_differ(own: TestClient, own_engine: Engine) -> None:
    issue = replace(MASK, requires=Requires(vector_isas=("avx2", "avx512")))
    given.save(own_engine, [issue], [BAD, GOOD])

    def fails_with_avx2(spec: JobSpec, arm: ArmSpec) -> Outcome:
        fails = arm.arm == "baseline" and spec.hardware.endswith("avx2") and spec.build == BAD
        return Outcome.MATCH if fails else Outcome.PASS

    given.run(own_engine, Asked([BAD, GOOD], NOON, issues=[issue]), tell=fails_with_avx2)
    avx2, avx512 = f"{HARDWARE}-avx2", f"{HARDWARE}-avx512"
    page = page_of(own)
    assert [strip["hardware"] for strip in page.strips] == [HARDWARE, avx2, avx512]
    assert english(page.cell.reason).startswith("on avx2: with every variant (2): 1 of 1")
    text = " ".join(own.get(ADDRESS).text.split())
    assert "By the vector ISA of the CPU: avx2 fails and avx512 passes on 2.7.1." in text
    chinese = own.get(ADDRESS, headers={"Accept-Language": "zh"}).text
    assert "按 CPU 的向量指令集：avx2 失败，avx512 通过（2.7.1）。" in chinese  # noqa: RUF001 - Chinese
    cell = f"/cells/{MASK.id}/{BAD.id.replace('+', '%2B')}"
    assert page_at(own, f"{cell}?hardware={avx512}").evidence.cell.verdict == "not_affected"
    # The matrix has the whole class alone, with the worst of the two.
    matrix = own.get("/api/v1/matrix").json()
    assert {one["hardware"]: one["verdict"] for one in matrix["cells"] if one["build"] == BAD.id} == {
        HARDWARE: "affected"
    }
    attempts = own.get("/api/v1/attempts", params={"issue": MASK.id, "hardware": avx512}).json()["attempts"]
    assert {one["hardware"] for one in attempts} == {avx512}
    told = own.get(f"/api/v1{ADDRESS}").json()
    assert [one["hardware"] for one in told["history"]] == [HARDWARE, avx2, avx512]


@pytest.mark.parametrize("name", ["151290", "pytorch-151290", "PyTorch-151290"])
def test_a_short_address_leads_to_the_page_of_its_issue(name: str, client: TestClient) -> None:
    answer = client.get(f"/i/{name}", follow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (302, ADDRESS)
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("name", ["151291", "all", "<script>", "%2e%2e", "x" * 100])
def test_a_short_address_of_no_issue_says_how_to_search(name: str, client: TestClient) -> None:
    answer = client.get(f"/i/{name}")
    assert answer.status_code == 404
    assert 'href="/search?q=' in answer.text
    assert "<script>" not in answer.text.partition("<main")[2].partition("</main")[0]


def test_a_number_of_two_issues_names_both(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, issues=[MASK, replace(MASK, id="vision-151290", links=())], builds=BUILDS)
    answer = own.get("/i/151290")
    assert answer.status_code == 404
    assert 'href="/issues/vision-151290"' in answer.text


def test_the_time_of_a_workaround_stands_beside_it(own: TestClient, own_engine: Engine, tmp_path: Path) -> None:
    given_run(own_engine, [costs.ISSUE], [costs.BUILD])
    given_results(own_engine, Outcome.MATCH)
    costs.take_in(own_engine, tmp_path, costs.timed("clone", 1.12))
    said = "costs 12 % of time (12 to 12; 10 pairs of calls of compiled code, torch 2.6.0, AMD EPYC, "
    assert said in own.get(issue_address(costs.ISSUE.id)).text
    (cost,) = own.get(f"{API}{issue_address(costs.ISSUE.id)}").json()["costs"]
    assert cost["sentence"].startswith(said)
    assert (cost["workaround"], cost["says"], cost["compared"]["cost"]["pairs"]) == ("clone", "costs", 10)
