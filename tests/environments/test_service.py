"""What was pasted is the same build, the same GPU, or the same refusal at every door."""

import re
from html import unescape
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from starlette.testclient import TestClient

from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.message import SENTENCES
from knowngood.environments.resolve import PYPI
from knowngood.environments.service import NoSuchBuild, pasted_build
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.store.engine import Engine
from knowngood.web.urls import asking, release_address
from tests.make import make_build
from tests.web.asking import client_of
from tests.web.given import BAD, OLD

COLLECTED = """Collecting environment information...
PyTorch version: 2.7.1+cu126
CUDA used to build PyTorch: 12.6
Python version: 3.11.9 (main, Apr 10 2025, 00:00:00) [GCC 11.4.0] (64-bit runtime)
GPU models and configuration: {gpu}
Nvidia driver version: 550.54.15

Versions of relevant libraries:
[pip3] numpy==2.1.0
[pip3] nvidia-cublas-cu12==12.6.4.1
[pip3] torch==2.7.1
[pip3] triton==3.3.1
"""
CONDA = """# packages in environment at /opt/conda/envs/x:
#
# Name                    Version                   Build  Channel
_libgcc_mutex             0.1                 conda_forge    conda-forge
python                    3.11.9          h955ad1f_0
torch                     2.7.1                    pypi_0    pypi
triton                    3.3.1                    pypi_0    pypi
"""
FROZEN = "numpy==2.2.6\nnvidia-cuda-runtime-cu12==12.4.127\ntorch==2.5.1\ntriton==3.1.0\n"

FOUND = [
    pytest.param(FROZEN, OLD.id, "", id="pip freeze"),
    pytest.param(f"(base) me@host:x$ pip freeze\n{FROZEN}", OLD.id, "", id="with the prompt"),
    pytest.param(FROZEN.replace("\n", "\r\n"), OLD.id, "", id="from Windows"),
    pytest.param("Package    Version\n---------- -------\nnumpy 2.1.0\ntorch 2.7.1\n", BAD.id, "", id="pip list"),
    pytest.param(
        "Using Python 3.11.9 environment at: .venv\nPackage Version\n------- -------\ntorch   2.7.1\n",
        BAD.id,
        "",
        id="uv pip list",
    ),
    pytest.param(CONDA, BAD.id, "", id="conda list"),
    pytest.param(
        'version = 1\n[[package]]\nname = "torch"\nversion = "2.7.1"\n'
        f'[package.source]\n"registry" = "https://{PYPI[0]}/simple"\n',
        BAD.id,
        "",
        id="a lock",
    ),
    pytest.param(COLLECTED.format(gpu="GPU 0: NVIDIA H100 80GB HBM3"), BAD.id, "H100", id="collect_env"),
    pytest.param(COLLECTED.format(gpu="\nGPU 0: NVIDIA H100\nGPU 1: NVIDIA H100"), BAD.id, "H100", id="two GPUs"),
    pytest.param(COLLECTED.format(gpu="GPU 0: Tesla T4"), BAD.id, "T4", id="a GPU that nobody measured"),
    pytest.param(COLLECTED.format(gpu="Could not collect"), BAD.id, "", id="no GPU"),
]
REFUSED = [
    pytest.param("torch==2.7.3\nnumpy==2.0.0\n", "torch 2.7.3", BAD.id, id="of no build"),
    pytest.param(COLLECTED.format(gpu="").replace("2.7.1", "1.13.0"), "1.13.0", OLD.id, id="collected of no build"),
    pytest.param("torch==2.7.1\nGPU 0: NVIDIA H100\nnumpy==2.1\n", "line 2", "", id="a line that is no package"),
    pytest.param("torch>=2.5\nnumpy==2.0.0\n", "without an exact version", "", id="no version"),
    pytest.param(
        "torch @ git+https://github.com/pytorch/pytorch\nnumpy==2.0.0\n", "built from source", "", id="a fork"
    ),
]


@pytest.fixture
def reader(notebook: Engine) -> TestClient:
    return client_of(notebook)


def led(reader: TestClient, path: str, **form: str) -> dict[str, str]:
    answer = reader.post(path, data=form, follow_redirects=False)
    assert answer.status_code == 303
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


@pytest.mark.parametrize(("text", "build", "gpu"), FOUND)
def test_a_pasted_environment_is_the_same_build_at_every_door(
    reader: TestClient, text: str, build: str, gpu: str
) -> None:
    url = reader.get("/api/v1/search", params={"q": text}).json()["hits"][0]["url"]
    assert url == asking("/environment", build=build, hardware=gpu)
    page = reader.post("/search", data={"q": text}, follow_redirects=True)
    assert page.url.path == "/environment"
    assert f"--base {build}" in page.text

    assert build.endswith(led(reader, "/upgrade", environment=text)["from"])

    asked = {"environment": {"content": text}, "issues": ["all"]}
    assert reader.post("/api/v1/gate", json=asked).json()["build"] == build


@pytest.mark.parametrize(("text", "why", "near"), REFUSED)
def test_what_is_no_build_is_refused_in_the_same_words_at_every_door(
    reader: TestClient, text: str, why: str, near: str
) -> None:
    page = reader.post("/search", data={"q": text}, follow_redirects=True)
    assert why in unescape(page.text)
    assert quote(near) in page.text.replace("+", "%2B")
    answer = reader.post("/upgrade", data={"environment": text})
    said = unescape(re.findall(r'<p class="banner"[^>]*>([^<]+)', answer.text)[0])
    release = release_address(near.removeprefix("torch-").partition("+")[0])
    assert quote(near) in answer.text.replace("+", "%2B") or release in answer.text
    assert why in said
    assert said.startswith(SENTENCES["no_build_here"].partition("{")[0])

    ruling = reader.post("/api/v1/gate", json={"environment": {"content": text}, "issues": ["all"]}).json()
    told = ruling.get("detail") or "; ".join([*(refusal["why"] for refusal in ruling["refusals"]), *ruling["notes"]])
    assert said.removeprefix(SENTENCES["no_build_here"].partition("{")[0]) in told


def test_a_build_that_nobody_measured_is_none_here_and_says_so() -> None:
    build, other = make_build("2.6.0+cu124"), make_build("2.7.1+cu126")
    with pytest.raises(NoSuchBuild, match="no evidence of it is stored here"):
        pasted_build("torch==2.6.0+cu124", BuildNames({build.id: build, other.id: other}), {other.id}, shipped_wheels())
