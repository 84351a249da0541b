"""Conditions to click: what they count, what they write, and that the count is what the link shows."""

from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from knowngood.matrix.overview.facets import FacetChip
from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX
from tests.make import HARDWARE, make_issue
from tests.web import given
from tests.web.asking import page_at


def page_of(client: TestClient, **asked: str) -> SimpleNamespace:
    return page_at(client, f"{MATRIX}?{urlencode(asked)}")


def chips_of(page: SimpleNamespace, label: str) -> dict[str, FacetChip]:
    return {chip.word: chip for chip in page.facets.get(label, ())}


QUERIES = [
    "",
    "status:affected",
    "status:affected build:2.7",
    "cure:none",
    "-silent:yes",
    "component:inductor severity:high",
    "bmm or status:flaky",
    "nothing-like-it",
]


@pytest.mark.parametrize("hardware", [HARDWARE, given.GPU_CLASS])
@pytest.mark.parametrize("query", QUERIES)
def test_every_count_is_what_its_link_shows(client: TestClient, query: str, hardware: str) -> None:
    page = page_of(client, q=query, hardware=hardware)
    chips = [chip for chips in page.facets.values() for chip in chips]
    assert chips or not page.issue_count
    for chip in chips:
        linked = page_at(client, chip.address)
        assert linked.query.q == chip.query
        if chip.is_chosen:
            assert chip.count == page.issue_count, chip
        else:
            assert chip.count == linked.issue_count, chip


def test_the_count_on_each_hardware_is_what_its_link_shows(client: TestClient) -> None:
    page = page_of(client, q="status:affected")
    for choice in page.classes:
        assert choice.label.endswith(f"({page_at(client, choice.address).issue_count})")
    assert [choice.label for choice in page_of(client).classes] == ["CPU", "H100"]


def test_a_click_writes_the_condition_and_a_second_one_takes_it_out(client: TestClient) -> None:
    chip = chips_of(page_of(client, q="bmm"), "component")["Inductor C++"]
    assert chip.query == 'bmm component:"=Inductor C++"'
    chosen = chips_of(page_at(client, chip.address), "component")["Inductor C++"]
    assert (chosen.is_chosen, chosen.query) == (True, "bmm")


def test_what_would_leave_nothing_is_not_offered(client: TestClient) -> None:
    assert set(chips_of(page_of(client, q="fla"), "component")) == {"Dynamo"}
    assert set(chips_of(page_of(client), "component")) == {"Dynamo", "Inductor C++", "Inductor Triton"}


def test_a_component_that_no_query_can_name_is_no_chip(own: TestClient, own_engine: Engine) -> None:
    named = make_issue("toy-1", component="Dynamo")
    given.save(own_engine, [named, make_issue("toy-2", component="long " * 60)], given.BUILDS)
    facets = page_at(own, MATRIX).facets
    assert [chip.word for chip in facets["component"]] == ["Dynamo"]


def test_chips_keep_what_else_the_address_says(client: TestClient) -> None:
    chip = chips_of(page_of(client, hardware=given.GPU_CLASS, sort="id"), "status")["fails"]
    assert chip.address == f"{MATRIX}?q=status%3Aaffected&hardware={given.GPU_CLASS}&sort=id"
