"""Two builds side by side on a page, as JSON and as Markdown."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.domain.message import english
from knowngood.domain.vocabulary import StatusLabel
from knowngood.move.compare.comparison import sentence
from knowngood.move.pair import Group, IssuePair, Transition, WorkaroundTurn
from knowngood.store.engine import Engine
from tests.make import HARDWARE, NOON
from tests.web.asking import answer_at, values_of
from tests.web.given import (
    BAD,
    BUILDS,
    DYNAMO,
    GOOD,
    GPU_CLASS,
    ISSUES,
    MASK,
    MISMATCHED,
    NEW,
    OLD,
    SILENT,
    Asked,
    run,
    save,
)


def address(before: str, after: str, **more: str) -> str:
    asked = {"a": before, "b": after, **more}
    return "/compare?" + "&".join(f"{name}={value.replace('+', '%2B')}" for name, value in asked.items())


NOTE = re.compile(r'<span class="line">([^<]*)')


def pairs_of(values: Mapping[str, Any]) -> dict[str, IssuePair]:
    return {pair.issue.id: pair for pairs in values["sections"].values() for pair in pairs}


def row_of(client: TestClient, where: str, issue: str) -> str:
    """The row of an issue, as HTML."""
    return next(row for row in client.get(where).text.split("<tr>") if f">{issue} ·" in row)


def told(client: TestClient, before: str, after: str, **more: str) -> dict[str, Any]:
    body: dict[str, Any] = answer_at(client, f"/api/v1{address(before, after, **more)}")
    return body


def test_the_first_line_is_the_answer(client: TestClient) -> None:
    text = client.get(address(BAD.id, GOOD.id)).text
    whole = " ".join(text.split("<h1")[1].split("</h1>")[0].replace("<span", " <span").split())
    assert "From torch 2.7.1 (CUDA 12.6) to torch 2.8.0 (CUDA 12.8) on CPU" in whole
    assert "none newly broken, 1 fixed, 1 not known there" in whole


def test_every_issue_stands_in_the_group_of_what_became_of_it(client: TestClient) -> None:
    page = values_of(client, address(OLD.id, BAD.id))
    groups = {group: [pair.issue.id for pair in pairs] for group, pairs in page["sections"].items()}
    assert groups == {
        Group.NEWLY_BROKEN: [MASK.id],
        Group.FIXED: [DYNAMO.id],
        Group.STILL_FAILS: [SILENT.id],
        Group.NOWHERE: ["pytorch-151589"],
    }
    assert list(groups) == [Group.NEWLY_BROKEN, Group.FIXED, Group.STILL_FAILS, Group.NOWHERE]
    folded = re.findall(r'<summary><h2 id="(\w+)">', client.get(address(OLD.id, BAD.id)).text)
    assert folded == [Group.STILL_FAILS, Group.NOWHERE]


def test_each_side_says_how_many_runs_it_rests_on(client: TestClient) -> None:
    row = row_of(client, address(BAD.id, GOOD.id), MASK.id)
    assert row.count('<span class="sub">2 runs</span>') == 2
    assert '<span class="sub">1 run</span>' in row_of(client, address(OLD.id, BAD.id), DYNAMO.id)
    pair = next(one for one in told(client, OLD.id, BAD.id)["pairs"] if one["issue"] == DYNAMO.id)
    assert (pair["runs"], pair["assurance"]) == (1, "measured")


def test_an_environment_that_broke_down_fixes_nothing(client: TestClient) -> None:
    """The silent issue is flaky on 2.7.1; on 2.8.0 its host had no compiler."""
    pairs = pairs_of(values_of(client, address(BAD.id, GOOD.id)))
    assert pairs[SILENT.id].transition is Transition.NOW_UNKNOWN
    assert '<span class="line">no C++ compiler; install g++</span>' in row_of(
        client, address(BAD.id, GOOD.id), SILENT.id
    )


def test_each_line_leads_to_both_cells_and_to_the_issue(client: TestClient) -> None:
    row = row_of(client, address(BAD.id, GOOD.id), MASK.id)
    assert re.findall(r'class="chip (\w+)"', row) == [StatusLabel.WORKAROUND, StatusLabel.PASSES]
    links = re.findall(r'href="(/[^"]*)"', row)
    assert links[1:] == [
        f"/cells/{MASK.id}/torch-2.7.1%2Bcu126?hardware={HARDWARE}",
        f"/cells/{MASK.id}/torch-2.8.0%2Bcu128?hardware={HARDWARE}",
    ]
    for leads_to in links:
        assert client.get(unescape(leads_to)).status_code == 200


def test_workarounds_are_followed_too(client: TestClient) -> None:
    gone, needed = (row_of(client, address(*sides), MASK.id) for sides in ((BAD.id, GOOD.id), (OLD.id, BAD.id)))
    assert NOTE.findall(gone) == ["workaround no longer needed: Make it eagerly"]
    assert NOTE.findall(needed)[-1:] == ["needs a workaround there; measured to help: Make it eagerly"]


def test_silent_wrong_numbers_and_old_evidence_are_marked(client: TestClient) -> None:
    row = row_of(client, address(OLD.id, BAD.id), SILENT.id)
    assert re.findall(r'<td class="side">(?:(?!</td>).)*(stale|chip)', row) == ["stale", "chip"]
    assert "wrong numbers without an error" in row


def test_the_page_and_its_twin_say_the_same(client: TestClient) -> None:
    page = values_of(client, address(OLD.id, BAD.id))
    body = client.get(page["json_address"]).json()
    assert {one["issue"]: one["transition"] for one in body["pairs"]} == {
        issue: pair.transition.value for issue, pair in pairs_of(page).items()
    }
    assert page["page"] is not None
    assert body["sentence"] == english(sentence(page["page"]))
    assert body["sentence"].endswith(f": {page['sentence']}")
    assert sum(body["counts"].values()) == sum(body["groups"].values()) == len(ISSUES)
    assert client.get(body["url"]).status_code == 200


def test_the_twin_gives_both_cells_whole(client: TestClient) -> None:
    pair = next(one for one in told(client, BAD.id, GOOD.id)["pairs"] if one["issue"] == MASK.id)
    for side, build in (("before", BAD), ("after", GOOD)):
        cell = client.get(f"/api/v1/cells/{MASK.id}/{build.id.replace('+', '%2B')}?hardware={HARDWARE}").json()
        assert pair[side] == {name: cell[name] for name in pair[side]}
    assert pair["workarounds"] == {"eager_mask": WorkaroundTurn.NO_LONGER_NEEDED}


def test_the_other_way_round_swaps_what_is_fixed_and_what_breaks(client: TestClient) -> None:
    there, back = told(client, OLD.id, BAD.id)["counts"], told(client, BAD.id, OLD.id)["counts"]
    for one, other in (("fixed", "regressed"), ("appeared", "disappeared"), ("now_unknown", "was_unknown")):
        assert (there[one], there[other]) == (back[other], back[one])
    page = values_of(client, address(OLD.id, BAD.id, hardware=HARDWARE, q="mask"))
    turned = values_of(client, page["swapped_address"])
    assert turned["page"] is not None
    assert (turned["page"].before.id, turned["page"].after.id) == (BAD.id, OLD.id)
    assert (turned["hardware"], turned["query"].q) == (HARDWARE, "mask")


def test_another_hardware_class_is_one_link_away(client: TestClient) -> None:
    page = values_of(client, address(OLD.id, BAD.id))
    (gpu,) = [one for one in page["classes"] if one.label == "H100"]
    elsewhere = values_of(client, gpu.address)
    assert elsewhere["hardware"] == GPU_CLASS
    assert pairs_of(elsewhere)["pytorch-151589"].transition is Transition.WAS_UNKNOWN


def test_a_mismatched_triton_is_compared_with_its_own_torch(client: TestClient) -> None:
    page = values_of(client, address(BAD.id, MISMATCHED.id))
    assert {pair.after.build for pair in pairs_of(page).values()} == {MISMATCHED.id}


@pytest.mark.parametrize(
    ("more", "issues"),
    [
        ({"q": "bmm"}, [SILENT.id]),
        ({"q": "silent:yes"}, [SILENT.id]),
        ({"q": "build:2.7.1 status:affected"}, [MASK.id]),
        ({"q": "(build:2.5.1 status:not_affected) (build:2.7.1 status:affected)"}, [MASK.id]),
        ({"component": "Dynamo"}, [DYNAMO.id]),
        ({"issues": f"{MASK.id},{DYNAMO.id}"}, [DYNAMO.id, MASK.id]),
    ],
)
def test_issues_can_be_chosen(client: TestClient, more: dict[str, str], issues: list[str]) -> None:
    page = values_of(client, address(OLD.id, BAD.id, **more))
    assert sorted(pairs_of(page)) == issues
    assert sorted(one["issue"] for one in told(client, OLD.id, BAD.id, **more)["pairs"]) == issues


def test_a_query_that_cannot_be_read_is_refused_at_its_place(client: TestClient) -> None:
    refused = client.get(f"/api/v1{address(OLD.id, BAD.id, q='colour:red')}")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "q"
    assert "<mark>" in client.get(address(OLD.id, BAD.id, q="colour:red")).text


def test_every_order_is_a_link_and_shows_the_same_issues(client: TestClient) -> None:
    page = values_of(client, address(OLD.id, BAD.id))
    shown_by_default = set(pairs_of(page)) - {"pytorch-151589"}  # what applies to neither is in no other order
    orders = {}
    for choice in page["sortings"][1:]:
        ordered = values_of(client, choice.address)
        orders[choice.label] = list(pairs_of(ordered))
        assert set(orders[choice.label]) == shown_by_default
    assert orders["issue"] == sorted(shown_by_default)
    assert orders["verdict afterwards"][0] == MASK.id


def test_without_builds_the_page_asks_for_two_and_offers_steps(client: TestClient) -> None:
    page = values_of(client, "/compare")
    assert page["page"] is None
    assert page["offered"][0].label == "2.7.1 (CUDA 12.6) → 2.8.0 (CUDA 12.8)"
    assert set(page["builds"]) == {build.id for build in BUILDS}
    assert [build for build, is_measured in page["builds"].items() if not is_measured] == [
        NEW.id,
        "torch-2.7.1+cpu",
    ]
    for one in page["offered"]:
        assert values_of(client, one.address)["page"] is not None


def test_with_one_build_it_offers_what_to_compare_it_with(client: TestClient) -> None:
    page = values_of(client, f"/compare?a={OLD.id.replace('+', '%2B')}")
    assert [one.label.partition(" → ")[2] for one in page["offered"]] == ["2.8.0 (CUDA 12.8)", "2.7.1 (CUDA 12.6)"]


def test_a_build_nobody_knows_names_the_nearest_and_keeps_the_rest(client: TestClient) -> None:
    page = client.get(address("torch-2.7.2+cu126", GOOD.id, q="mask"))
    assert page.status_code == 404
    assert "no build is called &#34;torch-2.7.2+cu126&#34; here" in page.text
    near = "/compare?a=torch-2.7.1%2Bcu126&amp;b=torch-2.8.0%2Bcu128&amp;q=mask"
    assert near in page.text
    problem = client.get(f"/api/v1{address(BAD.id, 'torch-next')}")
    assert problem.status_code == 404
    assert problem.json()["detail"].startswith('b: "torch-next" names no build')


@pytest.mark.parametrize("query", ["", "?a=torch-2.7.1%2Bcu126", "?a=x&b=y&hardwear=cpu"])
def test_the_twin_takes_two_builds_and_no_misspelt_parameter(client: TestClient, query: str) -> None:
    assert client.get(f"/api/v1/compare{query}").status_code == 422


def test_a_class_or_issue_nobody_knows_is_refused_by_name(client: TestClient) -> None:
    refused = client.get(f"/api/v1{address(BAD.id, GOOD.id, hardware='cuda-sm_42')}")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "hardware"
    assert client.get(address(BAD.id, GOOD.id, issues="pytorch-1")).status_code == 422


def test_the_two_builds_may_be_called_as_upgrades_call_them(client: TestClient) -> None:
    named = values_of(client, "/compare?from=2.7.1&to=2.8.0")["page"]
    assert (f"torch-{named.before.id}", f"torch-{named.after.id}") == (BAD.id, GOOD.id)


def test_a_plus_and_a_space_mean_the_same(client: TestClient) -> None:
    assert client.get("/compare?a=torch-2.7.1+cu126&b=torch-2.8.0+cu128").status_code == 200


def test_a_build_beside_itself_differs_in_nothing(client: TestClient) -> None:
    text = client.get(address(BAD.id, BAD.id)).text
    assert "Both are the same build: nothing can differ." in text
    counts = told(client, BAD.id, BAD.id)["counts"]
    assert (counts["fixed"], counts["regressed"]) == (0, 0)


def test_where_nothing_can_be_compared_the_page_says_what_would_measure_it(client: TestClient) -> None:
    page = values_of(client, address(GOOD.id, NEW.id))
    assert page["page"] is not None
    assert page["page"].is_blind
    command = f"knowngood run --builds {GOOD.id},{NEW.id} --hardware {HARDWARE}"
    assert command in client.get(address(GOOD.id, NEW.id)).text
    assert told(client, GOOD.id, NEW.id)["blind"] is True


def test_the_markdown_is_ready_to_be_pasted(client: TestClient) -> None:
    page = values_of(client, address(BAD.id, GOOD.id))
    response = client.get(page["markdown_address"])
    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert response.text == page["markdown"]
    first, *_ = response.text.splitlines()
    assert first == (
        "**From torch 2.7.1 (CUDA 12.6) to torch 2.8.0 (CUDA 12.8) on CPU: "
        "none newly broken, 1 fixed, 1 not known there.**"
    )
    assert f"({MASK.id})](<http://testserver/issues/{MASK.id}>)" in response.text
    assert "<script" not in response.text


def test_what_was_not_run_is_no_link_of_the_note_and_said_once_on_the_page(own: TestClient, own_engine: Engine) -> None:
    save(own_engine, ISSUES, BUILDS)
    run(own_engine, Asked([BAD], NOON, issues=[MASK]))
    found = values_of(own, address(BAD.id, GOOD.id))
    note = next(line for line in found["markdown"].splitlines() if f"/issues/{MASK.id}>" in line)
    assert "| □ not run |" in note, note
    assert "not run yet" not in row_of(own, address(BAD.id, GOOD.id), MASK.id).partition("</tr>")[0]


def test_with_nothing_in_the_store_the_page_still_asks(own: TestClient) -> None:
    page = values_of(own, "/compare")
    assert (page["builds"], page["offered"]) == ({}, [])


def test_with_builds_and_no_result_nothing_is_claimed(own: TestClient, own_engine: Engine) -> None:
    save(own_engine, ISSUES, BUILDS)
    body = told(own, BAD.id, GOOD.id)
    assert body["blind"] is True
    assert (body["counts"]["fixed"], body["counts"]["still_ok"]) == (0, 0)


def test_the_page_speaks_chinese(client: TestClient) -> None:
    text = client.get(address(BAD.id, GOOD.id), headers={"Cookie": "lang=zh"}).text
    assert "没有新坏的，1 个已修好，1 个在那里不知道" in text  # noqa: RUF001 - Chinese has its own comma
    assert "不再需要解法：不编译" in text  # noqa: RUF001 - and its own colon
