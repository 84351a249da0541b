"""A release over an earlier one: one word of advice, the same numbers as at other doors, and old addresses."""

import re
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from html import unescape

import pytest
from starlette.testclient import TestClient

from knowngood.domain.builds.release_age import ReleaseAge
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.message import english
from knowngood.environments.wheels.table import shipped_claims, shipped_wheels
from knowngood.move.releases.install import install_facts
from knowngood.move.releases.rules import ReleaseAdvice, ReleaseLine, ReleaseStanding, advise
from knowngood.store.engine import Engine
from knowngood.store.knowledge.snapshot import read_shipped
from tests.make import HARDWARE, NOON, make_build
from tests.web import given
from tests.web.asking import values_of
from tests.web.given import BAD, CPU_ONLY, GOOD, GPU_CLASS, MISMATCHED, Asked

KNOWN = read_shipped().knowledge.known


def standing(known_on_both: int, hardware: str = HARDWARE) -> ReleaseStanding:
    """Of 100 issues with an answer now."""
    empty = dict.fromkeys(ReleaseStanding.__dataclass_fields__, 0)
    return ReleaseStanding(**{**empty, "hardware": hardware, "passes": 100, "known_on_both": known_on_both})  # type: ignore[arg-type]


def age(days: int, reported: int) -> ReleaseAge:
    day = date(2026, 1, 1)
    return ReleaseAge("2.15", day, days, reported, day + timedelta(days=days), days >= 56 and reported >= 20)


@pytest.mark.parametrize(
    ("stays", "of_age", "standings", "advice", "because"),
    [
        (0, age(56, 20), [standing(50)], ReleaseAdvice.INSTALL, "20 issues were reported"),
        (1, age(10, 0), [standing(0)], ReleaseAdvice.STAY, "in 1 severe issue,"),
        (0, age(55, 90), [standing(100)], ReleaseAdvice.WAIT, "at 55 days"),
        (0, age(300, 19), [standing(100)], ReleaseAdvice.WAIT, "19 issues were reported since 2.15.0, and it takes 20"),
        (0, None, [standing(100)], ReleaseAdvice.WAIT, "its release date is not recorded"),
        (0, age(300, 90), [standing(49)], ReleaseAdvice.CANNOT_SAY, "CPU: 49 of 100"),
        (0, age(300, 90), [standing(90), standing(2, GPU_CLASS)], ReleaseAdvice.INSTALL, "H100: 2 of 100"),
    ],
)
def test_one_word_and_the_number_that_decided(
    stays: int, of_age: ReleaseAge | None, standings: list[ReleaseStanding], advice: ReleaseAdvice, because: str
) -> None:
    found, said = advise(stays, of_age, standings)
    assert found is advice
    assert because in english(said)
    lacking = advise(stays, of_age, standings, ["torch-xla"])
    stays_anyway = advice is ReleaseAdvice.STAY
    assert lacking[0] is (ReleaseAdvice.STAY if stays_anyway else ReleaseAdvice.WAIT)
    assert ("torch-xla" in english(lacking[1])) is not stays_anyway


def test_a_minor_is_its_newest_measured_patch_over_the_last_one_of_the_minor_before() -> None:
    line = ReleaseLine(KNOWN)
    found = {name: build.build_id.release for name in ("2.15", "2.7", "2.7.0", "2.12") if (build := line.find(name))}
    assert found == {"2.15": "2.15.0", "2.7": "2.7.1", "2.7.0": "2.7.0", "2.12": "2.12.1"}
    assert line.find("3.0") is None
    pairs = [(str(b.build_id.release), (line.before(b) or b).build_id.release) for b in reversed(line.measured)][:4]
    assert pairs == [("2.15.0", "2.14.1"), ("2.14.1", "2.13.0"), ("2.13.0", "2.12.1"), ("2.12.1", "2.11.0")]
    assert line.before(line.measured[0]) is None
    variant = KNOWN.builds["torch-2.6.0+cu126"]
    assert (line.before(variant) or variant).build_id.release == "2.6.0", "what another CUDA changes"


@cache
def facts(release: str) -> dict[str, str]:
    line = ReleaseLine(KNOWN)
    build = line.find(release)
    assert build is not None
    found = install_facts(build, line.before(build), KNOWN, shipped_wheels(), shipped_claims())
    return {about: "; ".join(map(english, said)) for about, said in found.items()}


@pytest.mark.parametrize(
    ("release", "about", "said"),
    [
        ("2.15.0", "Python", "3.11 to 3.14 measured"),
        ("2.15.0", "Python", "3.10 ends: its last release is 2.14.1"),
        ("2.15.0", "CUDA", "CUDA 13.2, driver 580 or newer"),
        ("2.15.0", "CUDA", "CUDA 12 ends: 2.14.1 still has cu126 on PyTorch's own index (claim: github.com/"),
        ("2.15.0", "GPU", "the same cards as 2.14.1"),
        ("2.11.0", "GPU", "none for V100, which 2.10.0 had"),
        ("2.8.0", "GPU", "new since 2.7.1: B200, RTX 5090"),
        ("2.15.0", "packages", "torchvision 0.29.2, torchaudio 2.11.1, xformers 0.0.35"),
        ("2.15.0", "packages", "nobody has run them together"),
        ("2.15.0", "packages", "torch-xla has no release for it (claim of "),
        ("2.15.0", "packages", "vllm has no release for it: its newest asks for torch==2.14.0"),
    ],
)
def test_what_is_read_is_said_and_what_is_claimed_is_called_a_claim(release: str, about: str, said: str) -> None:
    assert said in facts(release)[about]


def test_a_build_of_another_index_is_answered_without_the_public_one() -> None:
    found = install_facts(KNOWN.builds["torch-2.6.0+cu126"], None, KNOWN, shipped_wheels(), shipped_claims())
    assert (found["Python"], found["packages"]) == ((), ())
    assert [english(said) for said in found["GPU"]] == ["nobody read which GPUs this wheel has code for"]


@pytest.mark.parametrize(
    ("address", "leads"),
    [
        ("/2.7", "/releases/2.7"),
        ("/2.7.1", "/releases/2.7.1"),
        ("/builds/2.7.1", "/releases/2.7.1"),
        (f"/builds/{BAD.id}", "/releases/2.7.1"),
        (f"/builds/{BAD.id}?hardware=H100", "/releases/2.7.1?hardware=H100"),
        (f"/builds/{MISMATCHED.id}", "/releases/torch-2.7.1%2Bcu126~triton-3.2.0"),
        (f"/builds/{CPU_ONLY.id}?lang=zh", "/releases/torch-2.7.1%2Bcpu?lang=zh"),
    ],
)
def test_old_and_short_addresses_lead_to_the_page(client: TestClient, address: str, leads: str) -> None:
    answer = client.get(address, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (308, leads)
    assert client.get(address, follow_redirects=True).status_code == 200


@pytest.mark.parametrize("address", ["/releases/9.9", "/releases/2.7.1?from=9.9.9", "/releases/cheese", "/9.9"])
def test_a_release_that_nobody_knows_is_refused_in_words(client: TestClient, address: str) -> None:
    answer = client.get(address, follow_redirects=True)
    assert answer.status_code == 404
    text = answer.text.casefold()
    assert "no build is called" in text or "names no build" in text


def test_the_page_has_the_numbers_of_its_twin_and_of_compare(client: TestClient) -> None:
    address = "/releases/2.8?from=2.7.1"
    page, told = values_of(client, address)["page"], client.get(f"/api/v1{address}").json()
    assert (told["release"], told["before"]) == ("2.8.0", "2.7.1")
    for of in told["standings"]:
        compared = client.get(
            "/api/v1/compare", params={"a": "2.7.1", "b": "2.8.0", "hardware": of["hardware"]}
        ).json()["groups"]
        assert (of["fixed"], of["broken"]) == (compared["fixed"], compared["newly_broken"])
    assert [one.issue for one in page.fixed] == [one["issue"] for one in told["fixed"]] == ["pytorch-151290"]
    text = client.get(address).text
    for heading in ("Fixed", "Broken", "Still failing, worst first", "Can you install it?"):
        assert f"<h2>{heading}" in text
    assert text.count("None known.") == 2
    assert 'href="/feeds/lines/2.8.atom"' in text


def test_the_constraints_of_its_environment_are_one_link_away_where_there_are_any(client: TestClient) -> None:
    (address,) = re.findall(r'href="(/constraints/[^"]*)"', client.get("/releases/2.7.1").text)
    assert "torch==2.7.1  # measured together" in client.get(address).text
    assert "/constraints/" not in client.get(f"/releases/{MISMATCHED.id.replace('+', '%2B')}").text


def test_a_count_is_that_of_the_cells_that_it_leads_to(client: TestClient) -> None:
    text = client.get("/releases/2.7.1").text
    links = re.findall(r'<a href="/(matrix\?[^"]*status[^"]*)">(\d+)</a>', text)
    assert len(links) >= 3
    for address, n in links:
        cells = client.get(f"/api/v1/{unescape(address)}").json()["cells"]
        assert len({cell["issue"] for cell in cells}) == int(n), address


def test_each_failing_issue_has_the_code_that_helps_there(client: TestClient) -> None:
    (mask,) = client.get("/api/v1/releases/2.7.1").json()["broken"]
    assert (mask["workaround"], mask["works_on"], mask["hardware"]) == ("eager_mask", "", [HARDWARE])
    page = client.get("/releases/2.7.1").text
    assert mask["snippet"]
    assert mask["snippet"] in unescape(page)
    assert "Make it eagerly" in page


def test_a_workaround_of_another_release_is_not_said_to_work_here(own: TestClient, own_engine: Engine) -> None:
    newer = replace(GOOD, released=date(2025, 8, 1))
    given.save(own_engine, given.ISSUES, [BAD, newer])
    given.run(own_engine, Asked([BAD], NOON))
    given.run(
        own_engine,
        Asked([newer], NOON, wanted=PlanRequest(workarounds=False)),
        lambda spec, arm: given.outcome_of(replace(spec, build=BAD), arm),
    )
    (mask,) = (one for one in own.get("/api/v1/releases/2.8.0").json()["failing"] if one["issue"] == "pytorch-151290")
    assert (mask["workaround"], mask["works_on"]) == ("eager_mask", "2.7.1")
    assert "not verified here; works on 2.7.1" in own.get("/releases/2.8.0").text


def test_nothing_measured_is_said_and_not_drawn_as_a_clean_release(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, [make_build("2.9.0+cu128", pinned_triton="3.5.0", released=date(2020, 1, 1))])
    text = own.get("/releases/2.9.0").text
    assert "it breaks nothing we know of" not in text or "Wait" in text
    assert "Install" not in text.partition('id="answer"')[2].partition("</p>")[0]
    assert "Nothing is measured here yet." in own.get("/releases").text


def test_the_first_line_is_about_the_build_that_the_reader_chose(client: TestClient) -> None:
    def first_line(address: str) -> str:
        (line,) = re.findall(r'id="answer"><b>(.*?)</b>', client.get(address).text)
        return unescape(line)

    alone, chosen = first_line("/releases/2.8.0"), first_line(f"/releases/2.8.0?mine={BAD.torch}".replace("+", "%2B"))
    assert alone.startswith("Wait, unless you need its fix: ")
    assert chosen.startswith("From your torch 2.7.1 (CUDA 12.6): Wait, unless you need its fix: ")
    assert first_line("/releases/2.8.0?mine=2.8.0") == alone


def test_a_package_of_the_reader_without_a_release_for_it_is_what_the_first_line_says(
    own: TestClient, own_engine: Engine
) -> None:
    builds = [make_build("2.9.1+cu128", pinned_triton="3.5.1"), make_build("2.15.0+cu132", pinned_triton="3.9.0")]
    given.save(own_engine, given.ISSUES, builds)
    own.post("/my-build", data={"build": "2.9.1", "packages": "vllm==0.16.0 torchvision==0.24.1"})
    (line,) = re.findall(r'id="answer"><b>(.*?)</b>', own.get("/releases/2.15.0").text)
    assert "Wait: it breaks nothing we know of, but no release of your vllm goes with it." in unescape(line)
    own.post("/my-build", data={"build": "2.9.1", "packages": "torchvision==0.24.1"})
    assert "torchvision" not in own.get("/releases/2.15.0").text.partition('id="answer"')[2].partition("</p>")[0]
