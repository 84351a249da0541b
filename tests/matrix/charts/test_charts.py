"""`/charts`, its JSON and its CSV: every number of every picture is one of the cells'."""

import csv
import io
import re
from collections import Counter
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.web.urls import MATRIX
from tests.make import HARDWARE
from tests.web.asking import page_at
from tests.web.given import BAD, GOOD, GPU_CLASS, MASK, OLD

LINE = [OLD, BAD, GOOD]  # the measured releases: another Triton and a CPU wheel are off the line


def get(client: TestClient, address: str) -> Any:
    response = client.get(address)
    assert response.status_code == 200, response.text
    return response.json()


def read_csv(client: TestClient, address: str) -> list[dict[str, str]]:
    response = client.get(address)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(response.text)))


def counted(client: TestClient, hardware: str) -> dict[str, dict[str, int]]:
    """By build, how many issues stand how, from the cells of the matrix's JSON."""
    found: dict[str, Counter[str]] = {}
    for cell in get(client, f"/api/v1/matrix?hardware={hardware}")["cells"]:
        fails = cell["verdict"] in {"affected", "flaky"}
        stand = {"not_applicable": "does_not_apply", "not_affected": "passes", "different_failure": "fails"}.get(
            cell["verdict"], "not_known"
        )
        if fails:
            stand = "needs_workaround" if "effective" in cell["workarounds"].values() else "fails"
        found.setdefault(cell["build"], Counter())[stand] += 1
    return {build: dict(counts) for build, counts in found.items()}


def test_the_json_counts_what_the_matrix_counts(client: TestClient) -> None:
    classes = {one["hardware"]: one for one in get(client, "/api/v1/charts")["classes"]}
    assert list(classes) == [HARDWARE, GPU_CLASS]
    for hardware, line in ((HARDWARE, LINE), (GPU_CLASS, [BAD])):
        expected = counted(client, hardware)
        told = {
            one["build"]: {stand: n for stand, n in one["counts"].items() if n}
            for one in classes[hardware]["pass_rate"]
        }
        assert told == {build.id: expected[build.id] for build in line}


def test_what_is_drawn_is_in_proportion_and_stands_in_the_table_and_the_csv(client: TestClient) -> None:
    page = page_at(client, "/charts")
    body = {one["hardware"]: one for one in get(client, "/api/v1/charts")["classes"]}
    hues = {
        "passes": "passes",
        "as_reported": "variant",
        "needs_workaround": "cure",
        "fails": "fails",
        "bigger": "bigger",
        "more_work": "work",
        "slower": "slow",
        "not_known": "notrun",
    }
    for rates in page.charts:
        releases = body[rates["id"].removeprefix("pass-rate-")]["pass_rate"]
        tallest = max(sum(release["counts"][stand] for stand in hues) for release in releases)
        for at, release in enumerate(releases):
            heights = {box.sign: box.height for box in rates["boxes"] if at <= box.x / 100 * len(releases) < at + 1}
            expected = {hue: 150 * release["counts"][stand] / tallest for stand, hue in hues.items()}
            assert heights == {hue: pytest.approx(height, abs=0.01) for hue, height in expected.items() if height}
            assert [int(n) for n in rates["rows"][at][2:10]] == [release["counts"][stand] for stand in hues]
        listed = read_csv(client, rates["csv_address"])
        assert [{stand: int(row[stand]) for stand in hues} for row in listed] == [
            {stand: release["counts"][stand] for stand in hues} for release in releases
        ]


def test_every_bar_is_named_and_leads_somewhere(client: TestClient) -> None:
    text = client.get("/charts").text
    names = re.findall(r'<a href="(/[^"]+)" aria-label="([^"]+)"><rect class="place"', text)
    assert len(names) == len(LINE) + 1  # releases on the CPU, one on the GPU
    assert any(name.startswith(f"{BAD.id}: ") and "fails" in name for _, name in names)
    for address, _ in names:
        assert client.get(address.replace("&amp;", "&")).status_code == 200


def test_lifespans_are_json_and_csv_too(client: TestClient) -> None:
    (one,) = get(client, f"/api/v1/lifespans?issues={MASK.id}&hardware={HARDWARE}")["lifespans"]
    assert one["sentence"] == "fails in 2.7.1, fixed in 2.8.0 · 1 workaround helps"
    assert [(segment["release"], segment["standing"], segment["mixed"]) for segment in one["segments"]] == [
        ("2.5.1", "passes", False),
        ("2.7.1", "needs_workaround", True),
        ("2.8.0", "passes", False),
    ]
    rows = read_csv(client, f"/charts/lifespans.csv?issues={MASK.id}&hardware={HARDWARE}")
    assert [(row["release"], row["standing"], row["mixed"]) for row in rows] == [
        (segment["release"], segment["standing"], str(segment["mixed"]).lower()) for segment in one["segments"]
    ]


def test_the_matrix_shows_bars_alone_squares_alone_or_both(client: TestClient) -> None:
    both, bars, squares = (client.get(f"{MATRIX}{asked}").text for asked in ("", "?view=lifespans", "?view=squares"))
    assert ['class="lifespan"' in text for text in (both, bars, squares)] == [True, True, False]
    assert ["data-grid" in text for text in (both, bars, squares)] == [True, False, True]
    assert f'href="/cells/{MASK.id}/' in bars
    assert 'role="img" aria-label="bmm gives wrong numbers: ' in both


def test_an_empty_store_says_so(own: TestClient) -> None:
    assert "Nothing was measured on this hardware yet." in own.get("/charts").text
    assert get(own, "/api/v1/charts")["classes"] == [
        {
            "hardware": HARDWARE,
            "pass_rate": [],
        }
    ]


@pytest.mark.parametrize("path", ["/charts", "/charts/pass-rate.csv", "/api/v1/charts", "/api/v1/lifespans"])
def test_a_class_that_was_never_measured_is_refused_with_those_that_were(client: TestClient, path: str) -> None:
    refused = client.get(f"{path}?hardware=cuda-sm_10")
    assert refused.status_code == 422
    assert GPU_CLASS in refused.text
