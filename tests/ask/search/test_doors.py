"""`/search`, its twin and `knowngood find`: three doors to one answer, which refuse nothing but what is no text."""

from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from starlette.testclient import TestClient

from knowngood.ask.reading import HitKind, pasted
from knowngood.domain.hardware_names import class_named
from tests.commands.given import Call
from tests.web.asking import values_of
from tests.web.given import BAD, GOOD, LINE, MASK

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
FREEZE = "numpy==2.1.0\ntorch==2.7.1+cu126\ntriton==3.3.1\n"
COLLECTED = (
    "PyTorch version: 2.7.1+cu126\nCUDA used to build PyTorch: 12.6\nPython version: 3.11.9\nGPU 0: NVIDIA H100\n"
)
TRACE = f"Traceback (most recent call last):\n  File 'x.py', line 1\n{LINE}\ntorch 2.7.1+cu126\n"
MASKS = "/issues/pytorch-151290"


def sent(client: TestClient, text: str) -> tuple[int, str]:
    answer = client.post("/search", content=urlencode({"q": text}), headers=FORM, follow_redirects=False)
    return answer.status_code, answer.headers.get("location", "")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("#151290", MASKS),
        ("https://github.com/pytorch/pytorch/pull/151887", MASKS),
        ("151290 on 2.7.1", f"{MASKS}?build=torch-2.7.1%2Bcu126"),
        ("2.8.0", "/releases/2.8.0"),
        ("H100", "/matrix?hardware=cuda-sm_90"),
        ("2.7.1 -> 2.8.0", "/compare?a=torch-2.7.1%2Bcu126&b=torch-2.8.0%2Bcu128"),
        ("status:affected", "/matrix?q=status%3Aaffected"),
    ],
)
def test_what_is_sure_leads_to_its_page(client: TestClient, text: str, address: str) -> None:
    assert sent(client, text) == (303, address)
    asked = client.get("/search", params={"q": text}, follow_redirects=False)
    assert (asked.status_code, asked.headers["location"]) == (303, address)
    assert client.get("/api/v1/search", params={"q": text}).json()["leads_to"] == address
    assert client.get(address).status_code == 200


def test_a_line_that_may_mean_several_things_has_an_address_of_its_own(client: TestClient) -> None:
    status, address = sent(client, "2.7.1 fails")
    assert (status, address) == (303, "/search?q=2.7.1+fails")
    values = values_of(client, address)
    twin = client.get("/api/v1/search", params={"q": "2.7.1 fails"}).json()
    assert [hit.url for hits in values["groups"].values() for hit, _, _ in hits] == [hit["url"] for hit in twin["hits"]]
    assert twin["hits"][0]["name"] == "build:2.7.1 status:affected"
    assert values["json_address"] == "/api/v1/search?q=2.7.1+fails"


def test_an_issue_found_by_words_says_what_it_does_on_the_build_that_is_named(client: TestClient) -> None:
    hits = client.get("/api/v1/search", params={"q": "2.7.1 create_block_mask"}).json()["hits"]
    assert [(hit["name"], hit["verdict"]) for hit in hits if hit["kind"] == "issue"] == [(MASK.id, "affected")]
    text = client.get("/search", params={"q": "2.7.1 create_block_mask"}).text
    assert "fails, has a workaround" in text
    assert f'href="/issues/{MASK.id}?build={BAD.id.replace("+", "%2B")}"' in text


def test_what_is_not_in_the_catalogue_has_its_thread_and_the_command_that_adds_it(client: TestClient) -> None:
    text = client.get("/search?q=pytorch%23151291").text
    assert 'href="https://github.com/pytorch/pytorch/issues/151291"' in text
    assert "knowngood new-issue pytorch-151291 --title" in text
    assert f'href="/issues/{MASK.id}"' in text  # one figure apart


@pytest.mark.parametrize("id_", ["151291", "pytorch-151291", "pytorch%23151291"])
def test_an_unknown_issue_is_refused_with_its_thread_the_command_and_near_titles(client: TestClient, id_: str) -> None:
    answer = client.get(f"/issues/{id_}")
    assert answer.status_code == 404
    assert 'href="https://github.com/pytorch/pytorch/issues/151291"' in answer.text
    assert "knowngood new-issue pytorch-151291 --title" in answer.text
    assert "pytorch-151290: create_block_mask fails" in answer.text
    assert MASKS in client.get(f"/api/v1/issues/{id_}").json()["suggestions"]


def test_hardware_that_nobody_measured_says_so_and_how_to(client: TestClient) -> None:
    answer = client.get("/api/v1/search?q=A100").json()
    assert (answer["sure"], answer["hits"][0]["name"]) == (False, "cuda-sm_80")
    assert "Nobody has measured this class here yet" in answer["hits"][0]["told"]
    assert answer["hits"][0]["command"].startswith("knowngood run")


def test_a_pasted_error_is_explained_where_it_was_pasted(client: TestClient) -> None:
    answer = client.post("/search", content=urlencode({"q": TRACE}), headers=FORM)
    assert answer.status_code == 200
    assert "We know this one" in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("text", [FREEZE, COLLECTED])
def test_a_pasted_environment_leads_to_its_build(client: TestClient, text: str) -> None:
    status, address = sent(client, text)
    assert (status, address) == (307, "/environment")
    page = client.post("/environment", content=urlencode({"q": text}), headers=FORM)
    assert page.headers["cache-control"] == "no-store"
    assert 'href="/environment?build=2.7.1%2Bcu126' in page.text
    assert ("hardware=H100" in page.text) is (text == COLLECTED)


def test_of_several_gpus_in_a_pasted_environment_the_worst_counts_and_is_named(client: TestClient) -> None:
    several = f"{COLLECTED}GPU 1: NVIDIA GeForce RTX 5090\n"
    answer = client.get("/api/v1/search", params={"q": several}).json()
    assert answer["note"] == "Several kinds of GPU are named (H100, RTX 5090), and the worst counts: RTX 5090."
    assert answer["hits"][0]["url"] == "/environment?build=torch-2.7.1%2Bcu126&hardware=RTX+5090"


def test_an_environment_of_no_tested_build_names_those_near(client: TestClient) -> None:
    answer = client.post("/environment", content=urlencode({"q": "torch==2.7.3\nnumpy==2.0.0"}), headers=FORM)
    assert answer.status_code == 200
    assert "no tested build is this environment" in answer.text
    assert "/environment?build=torch-2.7.1%2Bcu126" in answer.text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (TRACE, HitKind.ERROR),
        (FREEZE, HitKind.ENVIRONMENT),
        (COLLECTED, HitKind.ENVIRONMENT),
        (f"{COLLECTED}\n{TRACE}", HitKind.ERROR),
        ('[[package]]\nname = "torch"\nversion = "2.7.1"\n', HitKind.ENVIRONMENT),
        ("Package Version\ntorch   2.7.1\nnumpy   2.1.0\nPillow  11.0", HitKind.ENVIRONMENT),
        ("151290\n", None),
        ("2.7.1\nflex_attention\nH100", None),
        ("step 1 loss 0.3\n" * 50, HitKind.ERROR),
        ("x" * 5000, HitKind.ERROR),
    ],
)
def test_a_question_an_error_and_an_environment_are_told_apart(text: str, kind: HitKind | None) -> None:
    assert pasted(text) is kind


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("q=", 200),
        ("", 200),
        ("q=%F0%9F%98%80", 200),
        ("q=%01%02", 200),
        ("q=(((((", 200),
        ("q=status:", 200),
        ("q=all(2.8..):", 200),
        ("q=build:2.99+status:affected", 200),
        ("q=hardware:zzz", 200),
        (f"q={'a' * 19_000}", 200),
        (f"q={'status:affected+' * 500}", 200),
        (f"q={'9' * 5000}", 200),
        (f"q=2.{'9' * 300}", 200),
        ("q=%00", 422),
        ("q=%FF", 422),
        (f"q={'a' * 21_000}", 422),
    ],
)
def test_only_what_is_no_text_is_refused(client: TestClient, asked: str, status: int) -> None:
    for path in ("/search", "/api/v1/search"):
        answer = client.get(f"{path}?{asked}", follow_redirects=False)
        assert answer.status_code in {status, 303 if status == 200 else status}, (path, answer.text[:300])


@for_all(st.text(max_size=200))
def test_whatever_is_typed_there_is_an_answer(client: TestClient, text: str) -> None:
    sendable = text.encode(errors="ignore").decode().replace("\0", "")
    assert client.get("/api/v1/search", params={"q": sendable}).status_code == 200


def test_markup_stays_text(client: TestClient) -> None:
    text = client.get("/search", params={"q": "<script>alert(1)</script> zzzqq"}).text
    assert "<script>alert" not in text


def test_the_titles_are_in_the_readers_language(client: TestClient) -> None:
    chinese = client.get("/search?q=2.7.1+create_block_mask&lang=zh").text
    assert MASK.title_zh in chinese
    assert "个回答" in chinese


def test_the_command_finds_what_the_page_finds(command: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path / "nobody"))
    told = command("find", "create_block_maks")
    assert (told.code, MASK.id in told.out) == (0, True)
    assert '"create_block_maks" was read as "create_block_mask"' in told.out
    assert "knowngood compare" in command("find", f"2.7.1 {GOOD.torch}").out
    assert "knowngood new-issue pytorch-199999" in command("find", "199999").out


@pytest.mark.parametrize(
    ("written", "class_"),
    [("H100", "cuda-sm_90"), ("gpu", "cuda-sm_90"), ("cuda-sm_90", "cuda-sm_90"), ("zzz", "zzz"), ("T4", "cuda-sm_75")],
)
def test_a_name_stands_for_its_class(written: str, class_: str) -> None:
    assert class_named(written, ["cpu-x86_64", "cuda-sm_90"]) == class_
