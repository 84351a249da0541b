"""What a view says that shows nothing: what matches elsewhere, what is not measured, and what would measure it."""

import html
import re

import pytest
from starlette.testclient import TestClient

from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import client_of, page_at
from tests.web.given import BAD, GPU_CLASS, NEW


def words(client: TestClient, address: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", client.get(address).text)).split())


def test_a_condition_on_hardware_chooses_the_view(client: TestClient) -> None:
    """From the default view, which is of the CPU, and from one that names it."""
    for address in (MATRIX, f"{MATRIX}?hardware={HARDWARE}"):
        query = "status:affected build:2.7 hardware:cuda"
        page = page_at(client, f"{address}{'&' if '?' in address else '?'}q={query}")
        assert page.hardware == GPU_CLASS
        assert [row.issue.id for group in page.groups for row in group.rows] == ["pytorch-151589"]


def test_what_matches_on_other_hardware_is_one_link_away(client: TestClient) -> None:
    page = page_at(client, f"{MATRIX}?q=pytorch-151589+status:affected")
    assert page.issue_count == 0
    assert page.empty is not None
    ((hardware, count, address),) = page.empty["elsewhere"]
    assert (hardware, count) == (GPU_CLASS, 1)
    assert page_at(client, address).issue_count == 1
    text = words(client, f"{MATRIX}?q=pytorch-151589+status:affected")
    assert "No issue matches this filter on CPU. 1 on H100, show them" in text


def test_a_link_to_other_hardware_drops_the_condition_that_leaves_it_out(client: TestClient) -> None:
    page = page_at(client, f"{MATRIX}?q=fla-160+status:different_failure+hardware:cuda")
    assert (page.hardware, page.issue_count) == (GPU_CLASS, 0)
    assert page.empty is not None
    ((_, _, address),) = page.empty["elsewhere"]
    assert page_at(client, address).query.q == "fla-160 status:different_failure"


def test_where_nothing_matches_it_is_said_how_much_of_it_is_known(client: TestClient) -> None:
    page = page_at(client, f"{MATRIX}?q=status:affected+build:{NEW.build_id.release}")
    assert page.empty is not None
    assert (page.empty["looked_at"].applicable, page.empty["looked_at"].measured) == (3, 0)
    assert page.empty["command"] == f"knowngood run --builds {NEW.id} --issues all --hardware {HARDWARE}"
    text = words(client, f"{MATRIX}?q=status:affected+build:{NEW.build_id.release}")
    assert "Of the 3 cells that were looked at 0 are known." in text
    assert page.empty["command"] in text
    assert "Nothing is measured here yet" not in text


def test_good_news_is_no_gap(client: TestClient) -> None:
    """What was asked is measured, and fails nowhere: there is nothing to run."""
    text = words(client, f"{MATRIX}?q=pytorch-151290+status:affected+build:2.8")
    assert "No issue matches this filter on CPU." in text
    assert "The one cell that was looked at is known." in text
    assert "knowngood run" not in text


def test_a_view_of_columns_that_nobody_measured_names_what_would_measure_it(client: TestClient) -> None:
    page = page_at(client, f"{MATRIX}?builds={NEW.id.replace('+', '%2B')}&issues=fla-160")
    assert page.issue_count == 1
    assert page.empty is not None
    assert page.empty["command"] == f"knowngood run --builds {NEW.id} --issues fla-160 --hardware {HARDWARE}"


def test_a_view_that_shows_something_known_has_no_such_words(client: TestClient) -> None:
    assert page_at(client, MATRIX).empty is None


@pytest.mark.parametrize("asked", ["", "?q=status:affected", f"?hardware={CPU_CLASS}"])
def test_only_an_empty_store_says_that_nothing_is_measured(own: TestClient, own_engine: Engine, asked: str) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    text = words(client_of(own_engine), MATRIX + asked)
    assert "Nothing is measured here yet" in text
    assert "knowngood up" in text


def test_the_column_of_the_readers_own_build_is_marked(client: TestClient) -> None:
    own = TestClient(client.app, cookies={"build": "2.7.1"})
    page = own.get(MATRIX).text
    assert f'aria-label="{BAD.id}, your build: ' in page
    assert page.count("your build") == 2  # its name and its title, of one column
    assert '<td class="own" data-label="2.7.1">' in page
    assert ", your build" not in client.get(MATRIX).text
    lost = TestClient(client.app, cookies={"build": "torch-9.9"})
    assert "your build" not in lost.get(MATRIX).text
