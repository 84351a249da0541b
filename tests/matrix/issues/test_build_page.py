"""The build page: what it is, what fails on it, what of that has a workaround."""

from dataclasses import replace
from types import SimpleNamespace

from markupsafe import escape
from starlette.testclient import TestClient

from knowngood.domain.issue import Device, Requires
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.vocabulary import StatusLabel
from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX, feed_address
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_build
from tests.web import given
from tests.web.asking import client_of, page_at
from tests.web.given import BAD, MISMATCHED, NEW, OLD


def page_of(client: TestClient, build: str, query: str = "") -> SimpleNamespace:
    return page_at(client, f"/builds/{build.replace('+', '%2B')}{query}")


def test_issues_are_sorted_by_what_a_reader_must_not_miss(client: TestClient) -> None:
    page = page_of(client, BAD.id)
    assert [(sign, [line.issue.id for line in lines]) for sign, lines, _ in page.sections] == [
        (StatusLabel.WORKAROUND, ["pytorch-151290"]),
        (StatusLabel.FLAKY, ["pytorch-154771"]),
        (StatusLabel.PASSES, ["fla-160"]),
        (StatusLabel.NOT_APPLICABLE, ["pytorch-151589"]),
    ]
    (workaround,) = page.sections[0][1][0].workarounds
    assert workaround.label == "Make it eagerly"
    assert 'Make it eagerly</a> <span class="beside">2 runs</span>' in client.get(f"/builds/{BAD.id}").text
    path, _, anchor = workaround.address.partition("#")
    assert f'id="{anchor}"' in client.get(path).text


def test_the_first_line_counts(client: TestClient) -> None:
    text = " ".join(client.get(f"/builds/{BAD.id}").text.split())
    assert "1 fails with a workaround, 1 flaky, 1 passes." in text
    assert "3 of 3 issues measured" in text


def test_what_fails_is_not_called_without_a_workaround_where_none_was_run(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    given.run(own_engine, given.Asked([BAD], NOON, wanted=PlanRequest(workarounds=False)))
    text = " ".join(own.get(f"/builds/{BAD.id}").text.split())
    assert "1 fails, no workaround found, 1 fails, workaround not tried here, 1 passes." in text


def test_what_names_no_device_is_asked_of_a_gpu_too(own: TestClient, own_engine: Engine) -> None:
    everywhere = replace(given.DYNAMO, requires=Requires(Device.ANY))
    given.save(own_engine, [everywhere, given.GPU_ONLY], given.BUILDS)
    given.run(own_engine, given.Asked([BAD], NOON, issues=[given.GPU_ONLY], hardware=given.GPU_CLASS))
    page = page_of(own, NEW.id, f"?hardware={given.GPU_CLASS}")
    told = [(sign, [line.issue.id for line in lines], is_on_cpu) for sign, lines, is_on_cpu in page.sections]
    assert told == [("notrun", [everywhere.id, given.GPU_ONLY.id], False)]


def test_versions_are_those_of_the_import_and_a_mismatch_is_named(client: TestClient) -> None:
    text = client.get(f"/builds/{MISMATCHED.id}").text
    assert "its own pin is 3.3.1" in text
    assert "The last of its line." in client.get(f"/builds/{BAD.id}").text


def test_neighbours_are_one_link_away(client: TestClient) -> None:
    page = page_of(client, OLD.id)
    assert page.older is None
    assert page.newer is not None
    assert page.newer.label == given.CPU_ONLY.id
    assert page_of(client, NEW.id).newer is None


def test_the_same_build_with_another_python_is_one_link_away(own: TestClient, own_engine: Engine) -> None:
    twin = make_build(BAD.torch, pinned_triton=BAD.pinned_triton, python="3.12")
    given.save(own_engine, given.ISSUES, [*given.BUILDS, twin])
    page = page_of(own, BAD.id)
    said = [(choice.label, choice.is_chosen) for choice in page.pythons]
    assert said == [("any", False), ("3.11", True), ("3.12", False)]
    wheel = page_of(own, BAD.wheel.id)
    assert [choice.label for choice in wheel.pythons if choice.is_chosen] == ["any"]
    assert wheel.counts == page.counts, "nothing was run with 3.12"
    assert wheel.newer is not None
    assert wheel.newer.label == MISMATCHED.wheel.id
    assert page.newer is not None
    assert page.newer.label == MISMATCHED.id
    other = page_of(own, twin.id)
    assert other.pythons[1].address == f"/builds/{BAD.id.replace('+', '%2B')}?hardware={HARDWARE}"
    assert (other.older, other.newer) == (None, None)


def test_another_hardware_class_counts_for_itself(client: TestClient) -> None:
    page = page_of(client, BAD.id, f"?hardware={given.GPU_CLASS}")
    assert page.counts == ("1 fails, no workaround found",)


def test_a_build_nothing_was_measured_on_says_so(client: TestClient) -> None:
    assert "Nothing is measured on this build and hardware yet." in client.get(f"/builds/{NEW.id}").text


def test_a_build_without_any_issue_is_no_fault(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, (), [BAD])
    assert page_of(own, BAD.id).sections == ()


def test_what_an_attempt_imported_stands_beside_what_was_asked_for(client: TestClient) -> None:
    page = page_of(client, BAD.id)
    assert page.installed is not None
    text = client.get(f"/builds/{BAD.id}").text
    assert "numpy==2.2.6" in text
    assert page_of(client, NEW.id).installed is None


def test_a_build_is_one_link_from_its_neighbours_on_the_line_and_from_advice(client: TestClient) -> None:
    page = page_of(client, BAD.id)
    a, b = (one.id.replace("+", "%2B") for one in (OLD, BAD))
    assert [one.label for one in page.comparisons] == [f"compare with {OLD.id}", f"compare with {given.GOOD.id}"]
    assert page.comparisons[0].address == f"/compare?a={a}&b={b}&hardware={HARDWARE}"
    advice, feed = f"/upgrade?from={b}&hardware={HARDWARE}", feed_address("lines", BAD.minor)
    text = client.get(f"/builds/{BAD.id}").text
    assert [one for one in (advice, feed) if f'href="{escape(one)}"' not in text] == []
    for address in (*(one.address for one in page.comparisons), advice, feed):
        assert client.get(address).status_code == 200, address


def test_a_foreign_triton_is_compared_with_the_same_torch_and_its_own(client: TestClient) -> None:
    assert page_of(client, MISMATCHED.id).comparisons[0].label == f"compare with {BAD.id}"


def test_what_is_not_measured_says_how_to_measure_it(client: TestClient) -> None:
    assert f"knowngood run --builds {NEW.id} --hardware {HARDWARE}" in client.get(f"/builds/{NEW.id}").text


def test_a_build_page_takes_five_queries_where_all_that_is_known_is_kept(
    notebook: Engine, count_statements: CountStatements
) -> None:
    client = client_of(notebook)
    client.get(MATRIX)
    with count_statements(notebook) as said:
        client.get(f"/builds/{BAD.id}")
    assert len(said) == 5, said  # generation twice, builds, what was imported (2)
