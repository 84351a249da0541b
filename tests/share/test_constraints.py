"""Constraints for pip: what a build was measured among, the same at every door, and as pip and uv read them."""

import gzip
import json
import subprocess
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from starlette.testclient import TestClient
from uv import find_uv_bin

from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.builds.build import Build
from knowngood.domain.errors import UnknownBuild
from knowngood.environments.wheels.locks import constraints_of, locked_name, shipped_locks
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.move.releases.rules import ReleaseLine
from knowngood.store.knowledge.snapshot import read_shipped
from tests.commands.given import Call

KNOWN = read_shipped().knowledge.known
ADDRESS = "/constraints/torch-2.8.0+cu128.txt"


@cache
def environments() -> dict[str, dict[str, str]]:
    texts = (gzip.decompress(path.read_bytes()).decode() for path in (SHIPPED / "evidence").glob("*.gz"))
    lines = (line for text in texts for line in text.split("\n"))
    items = (json.loads(line) for line in lines if line.startswith('{"kind":"environment"'))
    return {item["lock_digest"]: item["packages"] for item in items}


def text_of(build: Build) -> str:
    return constraints_of(build, KNOWN.build_names, shipped_wheels())


def pins_in(text: str, how: str = "") -> dict[str, str]:
    """The pins of a constraints file by package, of all lines or of those whose comment begins so."""
    lines = [line.partition("  # ") for line in text.splitlines() if not line.startswith("#")]
    pins = [Requirement(pin) for pin, _, comment in lines if comment.startswith(how)]
    assert all(str(pin.specifier).startswith("==") and pin.marker is None for pin in pins)
    return {pin.name: str(pin.specifier)[2:] for pin in pins}


@pytest.mark.parametrize("build", shipped_locks())
def test_every_line_is_of_one_environment_of_the_evidence_or_says_that_it_is_not(build: str) -> None:
    text = text_of(KNOWN.builds[build])
    measured, asking = pins_in(text, "measured together"), pins_in(text, "asks for it")
    assert measured == environments()[shipped_locks()[build][0]]
    assert pins_in(text) == {**measured, **asking}
    assert measured["torch"] == KNOWN.builds[build].requirement
    for package, version in asking.items():
        release = next(each for each in shipped_wheels().releases(package) if str(each.version) == version)
        assert str(release.specifier("torch", "")) == f"=={measured['torch']}"


def test_a_version_alone_is_its_build_with_the_usual_python() -> None:
    build = KNOWN.builds["torch-2.13.0+cu130"]
    assert text_of(build.wheel) == text_of(build)
    assert "Python 3.11 on" in text_of(build)
    release = ReleaseLine(KNOWN).find("2.13")
    assert release is not None
    assert locked_name(release) == "torch-2.13.0+cu130", "as the page of a release knows it"
    assert "Python 3.12 on" in text_of(KNOWN.builds["torch-2.13.0+cu130~py312"])


def test_a_build_that_nobody_measured_has_none_and_the_nearest_are_named() -> None:
    with pytest.raises(UnknownBuild) as raised:
        text_of(KNOWN.builds["torch-2.12.0+cu130"])
    assert raised.value.nearest[0] == "torch-2.12.1+cu130"


def test_uv_reads_the_file_as_constraints(tmp_path: Path) -> None:
    """Of nothing that is asked for, nothing comes: no index is asked."""
    file = tmp_path / "constraints.txt"
    file.write_text(text_of(KNOWN.builds["torch-2.13.0+cu130"]))
    done = subprocess.run(
        [find_uv_bin(), "pip", "compile", "-q", "--no-header", "--offline", "-c", str(file), "-"],
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.system
def test_uv_resolves_torch_to_the_very_environment(tmp_path: Path) -> None:
    file = tmp_path / "constraints.txt"
    file.write_text(text := text_of(KNOWN.builds["torch-2.13.0+cu130"]))
    target = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28")
    done = subprocess.run(
        [find_uv_bin(), "pip", "compile", "-q", "--no-header", "--no-annotate", *target, "-c", str(file), "-"],
        input="torch\nnumpy\nsetuptools\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert pins_in(done.stdout) == pins_in(text, "measured together"), done.stderr


def test_page_and_command_give_the_same_bytes(client: TestClient, call_notebook: Call) -> None:
    command, page = call_notebook("constraints", "2.8.0"), client.get(ADDRESS)
    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert page.text == command.out == text_of(KNOWN.builds["torch-2.8.0+cu128"])
    assert client.get(ADDRESS, headers={"If-None-Match": page.headers["ETag"]}).status_code == 304


NONE = ("torch-2.7.1+cu126~triton-3.2.0", "torch-2.7.1+cpu", "torch-9.9", "nonsense")


@pytest.mark.parametrize("name", NONE)
def test_a_build_without_one_is_refused(name: str, call_notebook: Call) -> None:
    done = call_notebook("constraints", name)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("knowngood: ")


@pytest.mark.parametrize("name", NONE)
def test_the_address_of_one_that_is_not_there_is_404(name: str, client: TestClient) -> None:
    assert client.get(f"/constraints/{name}.txt").status_code == 404


def test_the_nearest_are_links(client: TestClient) -> None:
    answer = client.get(f"/constraints/{NONE[0]}.txt")
    assert 'href="/constraints/torch-2.7.1' in answer.text
