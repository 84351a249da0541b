"""Rules for all pages at once: security, words in two languages, nothing inline, every template rendered."""

import re
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.domain.verdicts.history import Answer
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict, WorkaroundVerdict
from knowngood.domain.vocabulary import (
    ANSWERS,
    OUTCOMES,
    STATUS_MEANINGS,
    STATUSES,
    VERDICTS,
    WORKAROUNDS,
    StatusLabel,
)
from knowngood.store.engine import Engine
from knowngood.web.html.templates import STATIC, TEMPLATES
from knowngood.web.middleware.headers import HEADERS
from tests.web.asking import template_of
from tests.web.notebooks import addresses_of
from tests.web.signed_in import signed_in

TEMPLATE_TEXTS = {path.name: path.read_text() for path in TEMPLATES.glob("*.html")}


@pytest.fixture(scope="session")
def addresses(client: TestClient) -> dict[str, str]:
    """One address per page, by template."""
    found = {template_of(client, address): address for address in addresses_of(client).values()}
    return {template: address for template, address in found.items() if not template.startswith("_")}


FOR_SIGNED_IN = {"watch_lists.html": "/watchlists"}


def test_pages_of_people_who_are_signed_in_keep_the_rules_of_all_pages(own: TestClient, own_engine: Engine) -> None:
    boss = signed_in(own_engine, Scope.ADMIN)
    for template, address in FOR_SIGNED_IN.items():
        assert template_of(boss, address) == template
        for language in ("en", "zh"):
            response = boss.get(f"{address}?lang={language}")
            assert {name: response.headers[name] for name in HEADERS} == HEADERS
            assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=", response.text), address
            assert response.text.count("<h1") == 1
            twin = re.search(r'<footer.*?href="([^"]+)" type="application/json"', response.text, re.DOTALL)
            assert twin
            assert boss.get(twin[1]).status_code == 200


def test_every_template_is_rendered_by_a_page(addresses: dict[str, str]) -> None:
    pages = {name for name in TEMPLATE_TEXTS if not name.startswith("_") and name != "base.html"}
    assert pages == set(addresses)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_carries_the_headers_and_nothing_inline(
    client: TestClient, addresses: dict[str, str], language: str
) -> None:
    for address in addresses.values():
        response = client.get(address, headers={"Cookie": f"lang={language}"})
        assert {name: response.headers[name] for name in HEADERS} == HEADERS
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=", response.text), address
        assert f'<html lang="{language}"' in response.text
        assert response.text.count("<h1") == 1


def test_every_page_names_a_picture_for_those_who_link_to_it(client: TestClient, addresses: dict[str, str]) -> None:
    pictures = set()
    for address in addresses.values():
        told = dict(
            re.findall(r'<meta (?:name|property)="((?:og|twitter):[\w:]+)" content="([^"]*)"', client.get(address).text)
        )
        assert told["og:title"], address
        assert told["twitter:card"] == "summary_large_image", address
        pictures.add(told["og:image"])
    [picture] = pictures
    assert picture.startswith("http://testserver/static/")
    response = client.get(picture)
    assert response.headers["content-type"] == "image/png"
    assert len(response.content) < 60_000


def test_every_page_has_its_json_twin_in_the_footer(client: TestClient, addresses: dict[str, str]) -> None:
    for name, address in addresses.items():
        if name in {"error.html", "signs.html"}:  # these tell of nothing that is stored
            continue
        twin = re.search(r'<footer.*?href="([^"]+)" type="application/json"', client.get(address).text, re.DOTALL)
        assert twin, address
        response = client.get(twin[1].replace("&amp;", "&"))
        assert response.status_code == 200, twin[1]
        assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("of_a_kind", [2, pytest.param(1000, marks=pytest.mark.soak)])
def test_every_kind_of_link_leads_somewhere(client: TestClient, addresses: dict[str, str], of_a_kind: int) -> None:
    links = {
        link.replace("&amp;", "&"): address
        for address in addresses.values()
        for link in re.findall(r'(?:href|src)="(/[^"]*)"', client.get(address).text)
    }
    assert len(links) > 40
    followed: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for link, address in links.items():
        parts = urlsplit(link)
        kind = (parts.path.rpartition("/")[0] or parts.path, tuple(parse_qs(parts.query)))
        followed[kind] += 1
        if followed[kind] > of_a_kind:
            continue
        assert client.get(link).status_code in {200, 303, 307, 308}, f"{link} of {address}"


def test_templates_hold_no_addresses_of_other_hosts_and_no_inline_code() -> None:
    for name, text in TEMPLATE_TEXTS.items():
        assert not re.search("https?://", text), name
        assert not re.search(r"\bstyle=|\bon[a-z]+=|<style|\|\s*safe", text), name


def test_every_verdict_outcome_and_finding_has_a_sign_and_every_sign_a_symbol_and_a_hue() -> None:
    assert (set(VERDICTS), set(OUTCOMES), set(WORKAROUNDS)) == (set(Verdict), set(Outcome), set(WorkaroundVerdict))
    assert set(ANSWERS) == set(Answer) - {Answer.FAILS, Answer.PASSES}
    assert set(STATUSES) == set(STATUS_MEANINGS) == set(StatusLabel)
    assert {term.label for term in OUTCOMES.values()} <= {term.label for term in STATUSES.values()} == set(StatusLabel)
    sprite, sheet = (STATIC / "signs.svg").read_text(), (STATIC / "app.css").read_text()
    for sign in StatusLabel:
        assert f'id="s-{sign}"' in sprite
        assert f".{sign}" in sheet
    for name in set(re.findall(r"icon\(\"(\w+)\"\)", "".join(TEMPLATE_TEXTS.values()))):
        assert f'id="s-{name}"' in sprite


def test_preferences_are_kept_in_cookies_and_lead_back(client: TestClient) -> None:
    response = client.get("/preferences?theme=dark&lang=zh&to=/runs")
    assert (response.status_code, response.headers["location"]) == (303, "/runs")
    page = client.get("/runs", headers={"Cookie": "theme=dark; lang=zh"})
    client.cookies.clear()
    assert '<html lang="zh" data-theme="dark">' in page.text
    assert 'href="/preferences?theme=light&amp;to=%2Fruns"' in page.text


def test_a_preference_nobody_offers_is_passed_over(client: TestClient) -> None:
    assert '<html lang="en">' in client.get("/runs", headers={"Cookie": "theme=pink; lang=xx"}).text
