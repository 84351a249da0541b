"""Platforms and backends that environments state, asked at every door: what is measured answers for its own alone."""

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from knowngood.domain.builds.platforms import platform_of, platform_words, why_not_tested
from knowngood.domain.message import english
from knowngood.environments.platform_reading import platforms_in
from tests.commands.given import run_here

TAKEN = "taken as Linux x86-64"

WHL = "https://download.pytorch.org/whl"
PIN, INDEX = "torch==2.8.0+cu128\n", "-i"
ROCM = "ROCM used to build PyTorch: 6.4.43482\n"
LINUX = "Linux-5.15.0-94-generic-x86_64-with-glibc2.35"
SMI = "| NVIDIA-SMI 546.33      Driver Version: 546.33      CUDA Version: 12.3 |\n| GPU  Name      {}    | Bus-Id  |\n"
LOCK = (
    'version = 1\nrequires-python = "==3.11.*"\n[[package]]\nname = "torch"\nversion = "2.8.0+cu128"\n'
    f'source = {{ registry = "{WHL}/cu128" }}\nwheels = [\n'
)
CONDA = "@EXPLICIT\nhttps://conda.anaconda.org/pytorch/{}/pytorch-2.5.1-py3.11_0.tar.bz2\n"


def collected(
    *,
    torch: str = "2.8.0+cu128",
    os: str = "Ubuntu 22.04.5 LTS (x86_64)",
    on: str = LINUX,
    cuda: str = "12.8",
    more: str = "",
) -> str:
    told = (("OS", os), ("Python platform", on))
    return (
        f"PyTorch version: {torch}\nCUDA used to build PyTorch: {cuda}\nPython version: 3.11.9 (main)\n"
        + "".join(f"{name}: {words}\n" for name, words in told if words)
        + more
        + f"[pip3] torch=={torch}\n"
    )


def gpu(name: str) -> str:
    return f"GPU models and configuration: GPU 0: {name}\n"


def lock(*tags: str) -> str:
    wheels = "".join(f'  {{ url = "{WHL}/cu128/torch-2.8.0%2Bcu128-cp311-cp311-{tag}.whl" }},\n' for tag in tags)
    return f"{LOCK}{wheels}]\n"


def wheel(tag: str, local: str = "%2Bcu128") -> str:
    return f"torch @ {WHL}/cu128/torch-2.8.0{local}-cp311-cp311-{tag}.whl\n"


MAC, WINDOWS, ARM = (f"nothing here is measured on {one}" for one in ("macOS arm64", "Windows", "Linux aarch64"))
BOTH, OTHER, OWN = "cannot say: two platforms are stated", "no other build answers for it", "a vendor's own build"
ANSWERED = ""

ENVIRONMENTS = {
    "an ordinary Linux": (collected(), ANSWERED),
    "WSL2": (collected(on="Linux-5.15.146.1-microsoft-standard-WSL2-x86_64-with-glibc2.35"), ANSWERED),
    "Linux without its machine": (collected(os="Ubuntu 18.04", on=""), ANSWERED),
    "Linux on ARM by its system": (collected(os="Ubuntu 24.04 LTS (aarch64)", on=""), ARM),
    "Linux on ARM by its Python": (collected(os="", on="Linux-6.8.0-1017-aws-aarch64-with-glibc2.39"), ARM),
    "Linux on ARM by lscpu": (collected(os="", on="", more="Architecture:        aarch64\n"), ARM),
    "Linux on POWER": (collected(os="Red Hat 8 (ppc64le)", on=""), "measured on Linux ppc64le"),
    "a Mac": (collected(torch="2.8.0", os="macOS 15.5 (arm64)", on="macOS-15.5-arm64-arm-64bit", cuda="None"), MAC),
    "a Mac by its Python": (collected(torch="2.8.0", os="", on="macOS-14.1-arm64-arm-64bit", cuda="None"), MAC),
    "a Mac of Intel's": (collected(torch="2.2.2", os="macOS 13.1 (x86_64)", on="", cuda="None"), "on macOS x86-64"),
    "an old Mac": (collected(torch="1.0.0", os="Mac OSX 10.13.6", on="", cuda="None"), "measured on macOS"),
    "Windows": (collected(os="Microsoft Windows 11 Pro (10.0.26100 64-bit)", on="Windows-11-10.0.26100-SP0"), WINDOWS),
    "Windows by its Python": (collected(os="", on="Windows-10-10.0.19045-SP0"), WINDOWS),
    "Windows by its compiler": (collected(os="", on="", more="3.11 [MSC v.1929 64 bit (AMD64)]\n"), WINDOWS),
    "Windows by nvidia-smi": (SMI.format("TCC/WDDM") + "torch   2.8.0+cu128\n", WINDOWS),
    "Windows by a newer nvidia-smi": (SMI.format("Driver-Model") + "torch   2.8.0+cu128\n", WINDOWS),
    "Linux by nvidia-smi": (SMI.format("Persistence-M") + "torch   2.8.0+cu128\nPython 3.11\n", ANSWERED),
    "Windows by its fork of Triton": (f"{PIN}triton-windows==3.4.0.post20\n", WINDOWS),
    "GH200": (collected(os="", on="", more=gpu("NVIDIA GH200 480GB")), ARM),
    "GB200": (collected(os="", on="", more=gpu("NVIDIA GB200")), ARM),
    "DGX Spark": (collected(os="", on="", more=gpu("NVIDIA GB10")), ARM),
    "Orin": (collected(os="", on="", more=gpu("Orin (nvgpu)")), ARM),
    "Thor": (collected(os="", on="", more=gpu("NVIDIA Thor")), ARM),
    "H100": (collected(os="", on="", more=gpu("NVIDIA H100 80GB HBM3")), ANSWERED),
    "GH200 on x86-64": (collected(more=gpu("NVIDIA GH200 480GB")), BOTH),
    "two systems": (collected(os="macOS 15.5 (arm64)"), BOTH),
    "conda of a Mac": (CONDA.format("osx-arm64"), MAC),
    "conda of Windows": (f"# platform: win-64\n{CONDA.format('noarch')}", WINDOWS),
    "conda on ARM": (f"# platform: linux-aarch64\n{CONDA.format('noarch')}", ARM),
    "conda of Linux": ("# platform: linux-64\npytorch=2.5.1=py3.11_cuda12.4_0\npython=3.11.9=h1_0\n", ANSWERED),
    "a wheel of a Mac": (wheel("macosx_11_0_arm64", ""), MAC),
    "a wheel of Windows": (wheel("win_amd64"), WINDOWS),
    "a wheel on ARM": (wheel("manylinux_2_28_aarch64"), ARM),
    "a wheel of Linux": (wheel("manylinux_2_28_x86_64"), ANSWERED),
    "a lock of several platforms": (lock("manylinux_2_28_x86_64", "win_amd64", "manylinux_2_28_aarch64"), ANSWERED),
    "a lock of Windows": (lock("win_amd64"), WINDOWS),
    "a lock on ARM": (lock("manylinux_2_28_aarch64"), ARM),
    "a marker of Macs": ('torch==2.8.0 ; sys_platform == "darwin"\n', "measured on macOS"),
    "a marker of Windows": ('torch==2.8.0 ; platform_system == "Windows"\n', WINDOWS),
    "a marker of ARM": ("torch==2.8.0 ; sys_platform == 'linux' and platform_machine == 'aarch64'\n", ARM),
    "markers of several": (
        "torch==2.7.1 ; sys_platform == 'darwin'\ntorch==2.8.0+cu128 ; sys_platform == 'linux'\n",
        ANSWERED,
    ),
    "a bare version": ("torch==2.8.0\n", ANSWERED),
    "a CUDA wheel": (PIN, ANSWERED),
    "a wheel for ROCm": ("torch==2.8.0+rocm6.4\n", OTHER),
    "an index of ROCm": (f"{INDEX} {WHL}/rocm6.4\ntorch==2.8.0\n", OTHER),
    "Triton for ROCm": ("torch==2.8.0\npytorch-triton-rocm==3.4.0\n", "does not say which build it is"),
    "ROCm collected": (collected(torch="2.8.0+rocm6.4", cuda="N/A", more=ROCM), OTHER),
    "ROCm collected, no local part": (
        collected(torch="2.8.0", cuda="N/A", more=ROCM),
        'is listed with "ROCM used to build PyTorch: 6.4.43482"',
    ),
    "a wheel for XPU": ("torch==2.8.0+xpu\n", OTHER),
    "an index of XPU": (f"{INDEX} {WHL}/xpu\ntorch==2.8.0\n", OTHER),
    "Triton for XPU": ("torch==2.8.0\npytorch-triton-xpu==3.4.0\n", "does not say which build it is"),
    "no CUDA and no local part": (collected(torch="2.8.0", cuda="None"), '"CUDA used to build PyTorch: None"'),
    "no CUDA and CUDA's local part": (collected(cuda="None"), "does not say which build it is"),
    "NGC": ("torch @ file:///opt/torch-2.5.0a0%2Be000cf0ad9.nv24.10-cp311-cp311-linux_x86_64.whl\n", OWN),
    "NGC collected": (collected(torch="2.5.0a0+e000cf0ad9.nv24.10", cuda="12.6"), OWN),
    "compiled by somebody": ("torch==2.8.0a0+gitba56102\n", OWN),
    "a nightly": ("torch==2.8.0.dev20250601+cu128\n", "No such build is in the catalogue"),
}  # fmt: skip
IDS = list(ENVIRONMENTS)
ACCEPTING = {"name": "knowngood.toml", "content": 'accept_variant = true\n[watch]\nissues = ["all"]\n'}


def asked(door: str, text: str, folder: Path, *more: str) -> tuple[int, str]:
    file = folder / "environment.txt"
    file.write_text(text)
    done = run_here([door, "-r", str(file), *more], {"KNOWNGOOD_DATA_DIR": str(folder / "none")}, folder=folder)
    return done.returncode, done.stdout + done.stderr


def is_refused(text: str, words: str) -> bool:
    plain = " ".join(unescape(text).replace('\\"', '"').split())
    return words in plain and "accept_variant" not in plain and "nearest tested" not in plain


@pytest.mark.sample(12, "system")
@pytest.mark.parametrize(("text", "words"), ENVIRONMENTS.values(), ids=IDS)
def test_the_command_answers_for_what_is_measured_alone(text: str, words: str, tmp_path: Path) -> None:
    asks = [
        ("gate", ("--issues", "all", "--format", "json")),
        ("env", ("--json",)),
        *([("upgrade", ())] if words else []),
    ]
    for door, more in asks:
        code, told = asked(door, text, tmp_path, *more)
        assert (code == 3) == bool(words), (door, told)
        assert not words or is_refused(told, words), (door, told)


@pytest.mark.parametrize(("text", "words"), ENVIRONMENTS.values(), ids=IDS)
def test_a_server_answers_the_same_and_no_policy_leads_across(client: TestClient, text: str, words: str) -> None:
    question: dict[str, Any] = {"environment": {"name": "", "content": text}, "policy": ACCEPTING}
    ruling = client.post("/api/v1/gate", json=question).json()
    page = client.post("/upgrade", data={"environment": text}, follow_redirects=False)
    if words:
        assert (ruling["decision"], ruling["build"], ruling["nearest"]) == ("insufficient_evidence", None, [])
        assert is_refused(json.dumps([ruling["why"], ruling["notes"]], ensure_ascii=False), words)
        assert (page.status_code, is_refused(page.text.replace("&#34;", '"'), words)) == (422, True)
    else:
        assert ruling["build"]
        assert page.status_code == 303


def test_a_cpu_wheel_is_answered_for_by_cuda_s_on_the_cpu_where_a_policy_says_so(client: TestClient) -> None:
    for text in ("torch==2.8.0+cpu\n", collected(torch="2.8.0+cpu", cuda="None")):
        question: dict[str, Any] = {"environment": {"name": "", "content": text}, "issues": ["all"]}
        assert client.post("/api/v1/gate", json=question).json()["build"] is None
        told = client.post("/api/v1/gate", json={**question, "policy": ACCEPTING}).json()
        assert told["build"] == "torch-2.8.0+cu128"
        assert {one["hardware"] for one in told["reasons"] if one["grounds"]} <= {"cpu-x86_64"}


@pytest.mark.parametrize(
    ("platform", "text", "words"),
    [
        ("linux-x86_64", PIN, ANSWERED),
        ("linux-x86_64", collected(), ANSWERED),
        ("macos-arm64", PIN, MAC),
        ("windows-x86_64", PIN, WINDOWS),
        ("linux-aarch64", PIN, ARM),
        ("macos-arm64", collected(), 'Linux x86-64 ("OS: Ubuntu 22.04.5 LTS (x86_64)")'),
        ("linux-x86_64", collected(os="macOS 15.5 (arm64)", on=""), '"platform linux-x86_64"'),
    ],
)
def test_a_platform_that_is_said_is_held_against_the_file(
    client: TestClient, tmp_path: Path, platform: str, text: str, words: str
) -> None:
    (tmp_path / "knowngood.toml").write_text(f'platform = "{platform}"\n')
    for door, more in (
        ("gate", ("--issues", "all")),
        ("env", ("--platform", platform)),
        ("upgrade", ("--platform", platform)),
    ):
        code, told = asked(door, text, tmp_path, *more)
        assert (code == 3, words in " ".join(told.split())) == (bool(words), True), (door, told)
        assert TAKEN not in told
    question: dict[str, Any] = {"environment": {"name": "", "content": text}, "platform": platform, "issues": ["all"]}
    assert words in client.post("/api/v1/gate", json=question).json()["why"]


def test_a_platform_beside_the_name_of_a_build_is_asked_about(client: TestClient) -> None:
    for address in ("/api/v1/gate?build=2.8.0&issues=all", "/api/v1/upgrade?from=2.8.0"):
        assert MAC in client.get(f"{address}&platform=macos-arm64").text
        assert ARM in client.get(f"{address}&hardware=GH200").text
        assert TAKEN in client.get(address).text
        assert TAKEN not in client.get(f"{address}&platform=linux-x86_64").text
        assert client.get(f"{address}&platform=solaris").status_code == 422
    assert MAC in client.get("/upgrade?from=2.8.0&platform=macos-arm64").text


@pytest.mark.parametrize(
    ("words", "platform", "shown"),
    [
        ("Microsoft Windows Server 2022", "windows-x86_64", "Windows"),
        ("win-arm64", "windows-arm64", "Windows arm64"),
        ("darwin", "macos", "macOS"),
        ("macosx_14_0_universal2", "macos", "macOS"),
        ("Linux-6.1-armv7l", "linux-armv7l", "Linux armv7l"),
        ("Fedora Linux 41 (x86_64)", "linux-x86_64", "Linux x86-64"),
        ("Debian GNU/Linux 12", "", ""),
        ("FreeBSD 14", "", ""),
        ("any", "", ""),
    ],
)
def test_the_words_of_a_tool_are_a_platform(words: str, platform: str, shown: str) -> None:
    assert platform_of(words) == platform
    assert not platform or platform_words(platform) == shown


def test_a_system_alone_says_nothing_beside_one_with_its_machine() -> None:
    assert english(why_not_tested({"macos": "a", "macos-arm64": "b"})) == f"not tested: {MAC}"
    assert why_not_tested({}) is why_not_tested({"linux-x86_64": "a"}) is None


def test_what_states_a_platform_is_quoted_in_one_line_that_can_be_shown() -> None:
    assert platforms_in("OS: macOS \x1b[31m" + "x" * 200) == {
        "macos": f"OS: macOS \N{REPLACEMENT CHARACTER}[31m{'x' * 85}…"
    }
    assert platforms_in('  File "E:\\app\\torch\\x.py", line 1\n') == {
        "windows-x86_64": 'File "E:\\app\\torch\\x.py", line 1'
    }
