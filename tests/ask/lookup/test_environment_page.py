"""`/environment`, its JSON and `env` say one thing of one environment, and its address holds versions alone."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from knowngood.ask.lookup.service import EnvironmentAnswer, answer_environment, help_of
from knowngood.ask.reading import pasted
from knowngood.domain.issue_selectors import SEVERITY_RANK
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.store.knowledge.snapshot import read_shipped

NOW = datetime(2026, 11, 29, tzinfo=UTC)
KNOWLEDGE = read_shipped().knowledge
INDEX = "--" + "index-url"  # a rule of the house looks for addresses behind it in every file
COLLECTED = """PyTorch version: 2.7.1+cu126
OS: Ubuntu 22.04.5 LTS (x86_64)
Python version: 3.12.9 (main, Feb  5 2025, 00:00:00) [GCC 11.4.0] (64-bit runtime)
Is CUDA available: False
GPU models and configuration: GPU 0: NVIDIA H100 80GB HBM3
Nvidia driver version: 550.54.15
[pip3] numpy==1.26.4
[pip3] torchvision==0.22.1
[pip3] triton==3.3.1
[pip3] xformers==0.0.29.post3
"""
NEW = COLLECTED.replace("2.7.1+cu126", "2.14.1+cu130").replace("[pip3] triton==3.3.1\n", "")
BLACKWELL = COLLECTED.replace("H100 80GB HBM3", "GeForce RTX 5090").replace("550.54", "580.1")
UNTESTED = "What fails here is not known: no tested build is this environment."
SMI = """| NVIDIA-SMI 550.54.15       Driver Version: 550.54.15      CUDA Version: 12.4     |
|   0  Tesla V100-SXM2-16GB            On  | 00000000:18:00.0 Off |                    0 |
"""
DOCKERFILE = (
    "FROM python:3.12\nRUN pip install torch==2.6.0+cu124 \\\n    einops\nRUN pip install -r requirements.txt\n"
)
PIXI_LOCK = (
    "version: 6\nenvironments:\n  default:\n    packages:\n      linux-64:\n"
    "      - conda: https://conda.anaconda.org/pytorch/linux-64/pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.tar.bz2\n"
)
PIXI = (
    '[workspace]\nchannels = ["pytorch"]\n[dependencies]\npython = "3.12"\n'
    'pytorch = { version = "2.5.1", build = "*cuda12.4*" }\n'
)
UV_LOCK = (
    'version = 1\nrequires-python = "==3.12.*"\n[[package]]\nname = "x"\nsource = { virtual = "." }\n'
    '[package.optional-dependencies]\ngpu = [{ name = "torch" }]\n'
    '[[package]]\nname = "torch"\nversion = "2.6.0"\nsource = { "registry" = "https://pypi.org/simple" }\n'
)
POETRY_LOCK = (
    '[[package]]\nname = "torch"\nversion = "2.6.0"\ngroups = ["main"]\nmarkers = "extra == \\"gpu\\""\n'
    '[extras]\ngpu = ["torch"]\n[metadata]\nlock-version = "2.1"\npython-versions = ">=3.12,<3.13"\n'
)


def answered(text: str, name: str = "", groups: Sequence[str] = ()) -> EnvironmentAnswer:
    request = GateRequest(environment=AttachedFile(text, name), groups=tuple(groups))
    return answer_environment(request, KNOWLEDGE, NOW)


def plain(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def link_of(page: str) -> str:
    return unescape(re.findall(r'href="([^"]+)" data-copy-address', page)[0])


# -- inputs ------------------------------------------------------------------------------------------------------------

INPUTS = {
    "Dockerfile": (
        DOCKERFILE,
        (),
        "torch-2.6.0+cu124~py312",
        "not read, and what they ask for is not known: requirements.txt",
    ),
    "smi.txt": (SMI, (), None, 'knowngood wheels torch --gpu "V100" --driver 550.54.15'),
    "pixi.toml": (PIXI, (), "torch-2.5.1+cu124", "compiled apart from the wheel 2.5.1 (CUDA 12.4)"),
    "pixi.lock": (PIXI_LOCK, (), "torch-2.5.1+cu124", "compiled apart from the wheel 2.5.1 (CUDA 12.4)"),
    "requirements.txt": ("torch==2.6.0+cu124\n-r other.txt\n", (), "torch-2.6.0+cu124", "not known: other.txt"),
    "uv.lock": (UV_LOCK, ("gpu",), "torch-2.6.0+cu124~py312", ""),
    "poetry.lock": (POETRY_LOCK, ("gpu",), "torch-2.6.0+cu124~py312", ""),
}


@pytest.mark.sample(4, "system")
@pytest.mark.parametrize("name", INPUTS)
def test_what_people_have_is_read_at_every_door(shipped_client: TestClient, name: str) -> None:
    text, groups, build, words = INPUTS[name]
    answer = answered(text, name, groups)
    assert answer.ruling.build in {build, f"{build}~py312"}
    assert words in "; ".join(answer.ruling.notes)

    gate = rule(GateRequest(environment=AttachedFile(text, name), groups=groups, issues=("all",)), KNOWLEDGE, NOW)
    assert (gate.build, words in "; ".join(gate.notes)) == (answer.ruling.build, True)

    assert pasted(text) == "environment"
    page = shipped_client.post("/search", data={"q": text}, follow_redirects=True)
    assert (page.status_code, page.url.path) == (200, "/environment")
    assert words.lower() in plain(page.text).lower()
    assert (f"--base {answer.ruling.build}" in page.text) is (build is not None)


def test_the_groups_of_a_pasted_lock_are_named_beside_it(shipped_client: TestClient) -> None:
    text = (Path(__file__).parents[2] / "environments" / "files" / "uv-conflicts.lock").read_text()
    page = plain(shipped_client.post("/environment", data={"q": text}).text)
    assert "holds 3 torches" in page
    assert "--groups" in page
    assert "torch 2.9.1 (CUDA 12.8)" in plain(
        shipped_client.post("/environment", data={"q": text, "groups": "gpu, dev"}).text
    )
    refused = shipped_client.post("/environment", data={"q": text, "groups": "nope"})
    told = shipped_client.post("/environment?lang=zh", data={"q": text, "groups": "nope"}).text
    assert "没有名为“nope”的 extra 或依赖组" in told
    assert "the file has" not in told
    assert (refused.status_code, "the file has cpu, dev, gpu" in plain(refused.text)) == (422, True)


# -- the answer --------------------------------------------------------------------------------------------------------


def test_what_does_not_load_comes_first_then_wrong_numbers_then_what_has_a_workaround(
    shipped_client: TestClient,
) -> None:
    page = plain(shipped_client.post("/environment", data={"q": COLLECTED}).text)
    counts = answered(COLLECTED).counts
    assert (
        f"xformers 0.0.29.post3 was made for another torch. {counts['failing']} known issues fail here, "
        f"{counts['silent']} of them with wrong numbers and no error. {counts['works']} have a workaround that works "
    ) in page
    first = page.partition("Do this first")[2]
    assert first.index("pip install xformers==0.0.31.post1") < first.index("works here")
    assert "not verified on 2.8.0; works on 2.7.1" in plain(
        shipped_client.post(
            "/environment", data={"q": COLLECTED.replace("2.7.1+cu126", "2.8.0+cu128").replace("3.3.1", "3.4.0")}
        ).text
    )
    for words in (
        "H100 the wheel has code for it",
        "driver 550.54.15 runs CUDA 12.6",
        "torchvision 0.22.1 goes with torch",
    ):
        assert words in page


BUILDS = sorted(
    {build for _, build, _ in KNOWLEDGE.known.cells if build.endswith(("+cu126", "+cu124", "+cu130~py312"))}
)


@pytest.mark.parametrize("hardware", [(), ("H100",), ("cpu-x86_64",), ("RTX 4090",)])
@pytest.mark.parametrize("build", BUILDS)
def test_the_numbers_add_up_and_the_worst_stand_first(build: str, hardware: tuple[str, ...]) -> None:
    answer = answer_environment(GateRequest(build=build, hardware=hardware), KNOWLEDGE, NOW)
    counts, failing = answer.counts, answer.failing
    assert (
        sum(counts[name] for name in ("works", "untried", "partial", "unhelped")) == counts["failing"] == len(failing)
    )
    assert len({reason.issue for reason in failing}) == len(failing)
    assert [reason.silent for reason in failing] == sorted((reason.silent for reason in failing), reverse=True)
    ranks = [(-reason.silent, -SEVERITY_RANK[reason.severity], help_of(reason) != "cure") for reason in failing]
    assert ranks == sorted(ranks)
    assert counts["run"] + counts["from_cpu"] >= counts["failing"] - len(answer.ruling.notes)
    assert bool(counts["on_cpu"]) <= bool(hardware and hardware != ("cpu-x86_64",))


@pytest.mark.parametrize(
    ("text", "first", "never"),
    [
        (
            COLLECTED.replace("Ubuntu 22.04.5 LTS (x86_64)", "macOS 15.5 (arm64)"),
            "Nothing here was measured on macOS arm64.",
            "Do this first",
        ),
        (
            COLLECTED.replace("Ubuntu 22.04.5 LTS (x86_64)", "Microsoft Windows 11 Pro"),
            "Nothing here was measured on Windows.",
            "known issues fail",
        ),
        ("torch==2.6.0+rocm6.1\nnumpy==2\n", UNTESTED, "known issues fail"),
        (BLACKWELL, "RTX 5090: this wheel holds no code for sm_120", "works here"),
        (NEW, "driver 550.54.15: this wheel", "works here"),
        (SMI, "What fails here is not known", "Or move"),
    ],
)
def test_right_or_silent(shipped_client: TestClient, text: str, first: str, never: str) -> None:
    page = plain(shipped_client.post("/environment", data={"q": text}).text).partition("Paste another")[0]
    assert first in page
    assert never not in page


def test_on_another_platform_only_facts_of_wheels_are_said() -> None:
    text = "PyTorch version: 2.8.0\nOS: macOS 15.5 (arm64)\nPython version: 3.12.1\n[pip3] torchvision==0.23.0\n"
    assert [(fact.name, fact.holds) for fact in answered(text).facts] == [("wheel", True)]
    assert answered(text.replace("3.12.1", "3.15.0")).facts[0].holds is False


# -- its address -------------------------------------------------------------------------------------------------------

SECRET = "\n".join(
    [
        f"{INDEX} https://user:token@pypi.acme.example/simple",
        "torch==2.7.1+cu126",
        "xformers==0.0.29.post3",
        "acme-kernels==1.2",
        "-e /srv/somebody/secret",
        "flash-attn @ file:///mnt/build/flash_attn-2.7.0-cp312-cp312-linux_x86_64.whl",
    ]
)


@pytest.mark.sample(3, "system")
@pytest.mark.parametrize(
    "text", [COLLECTED, SECRET, "torch==2.6.0\nnumpy==2\n", "torch==2.7.1\ntriton==3.2.0\n", DOCKERFILE]
)
def test_the_address_holds_versions_alone_and_answers_as_the_paste_did(shipped_client: TestClient, text: str) -> None:
    page = shipped_client.post("/environment", data={"q": text})
    assert page.headers["cache-control"] == "no-store"
    address = link_of(page.text)
    for secret in ("acme", "somebody", "token", "user", "mnt", "file:", "pypi", "numpy"):
        assert secret not in address
    told, own = shipped_client.get(f"/api/v1{address}").json(), answered(text)
    document = shipped_client.get(f"/api/v1{address}").json()
    assert (told["build"], document["counts"]) == (own.ruling.build, dict(own.counts))
    assert [fact["name"] for fact in told["facts"]] == [fact.name for fact in own.facts]
    assert told["is_assumed"] is own.resolved.is_assumed
    again, before = (
        plain(each).partition("Paste another")[0].partition("Do this first")[2]
        for each in (shipped_client.get(address).text, page.text)
    )
    unread = "Not read, and what they ask for is not known: requirements.txt. "
    assert again == before.replace(unread, ""), "but for the file that is not here"


def test_where_versions_do_not_say_all_there_is_no_address(shipped_client: TestClient) -> None:
    for text in (PIXI_LOCK, "torch==2.7.1\nacme-ops==1.0+pt25cu124\n", "torch @ git+https://x.example/p\nnumpy==2\n"):
        assert "data-copy-address" not in shipped_client.post("/environment", data={"q": text}).text


def test_where_to_move_carries_all_that_is_stated(shipped_client: TestClient) -> None:
    page = unescape(shipped_client.post("/environment", data={"q": COLLECTED}).text)
    (address,) = set(re.findall(r'href="(/upgrade\?[^"]+)"', page))
    for part in (
        "from=torch-2.7.1%2Bcu126~py312",
        "python=3.12",
        "hardware=H100",
        "driver=550.54.15",
        "has=xformers%3D%3D0.0.29.post3",
    ):
        assert part in address
    assert shipped_client.get(address).status_code == 200


@pytest.mark.sample(6, "system")
@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("", 200, "Which known issues fail in your environment"),
        ("build=nope", 422, '"nope" names no build'),
        ("build=2.7.1&hardware=foo", 422, '"foo" is no hardware class'),
        ("build=2.7.1&driver=new", 422, '"new" is no driver version'),
        ("build=2.7.1&python=9", 422, 'Python "9" is none'),
        ("build=2.7.1&platform=moon", 422, '"moon" is no platform'),
        ("build=2.7.1&has=a%0APyTorch+version:+2.0.0", 422, "is no package"),
        ("build=2.7.1&hardware=H100,A100", 200, "H100"),
        ("build=2.7.1&hardware=RTX+5090&platform=linux-x86_64", 200, "RTX 5090: this wheel holds no code"),
        ("build=2.7.1&hardware=A100", 200, "0 of these answers were run on this hardware"),
        ("build=2.3.0%2Bcu121&python=3.20", 200, "What fails here is not known"),
        ("build=2.7.1&platform=linux-aarch64", 200, "Nothing here was measured on Linux aarch64."),
    ],
)
def test_an_address_that_somebody_wrote(shipped_client: TestClient, query: str, status: int, words: str) -> None:
    page = shipped_client.get(f"/environment?{query}")
    assert (page.status_code, words in plain(page.text)) == (status, True), plain(page.text)[:600]
    assert shipped_client.get(f"/api/v1/environment?{query}").status_code == (status if query else 422)


def test_the_front_page_leads_to_the_environment_that_was_chosen(shipped_client: TestClient) -> None:
    assert "Your environment (" not in shipped_client.get("/").text
    page = unescape(shipped_client.get("/?mine=2.7.1&gpu=H100").text)
    (address, words) = re.findall(r'href="(/environment\?[^"]+)">([^<]+)', page)[0]
    counts = shipped_client.get(f"/api/v1{address}").json()["counts"]
    assert f"{counts['failing']} fail, {counts['silent']} of them" in words
    shipped_client.cookies["build"] = "torch-2.7.1+cu126"
    assert shipped_client.get("/environment").text.count("Do this first") == 1
