"""`knowngood discover` by its real command, against a package index on this machine."""

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from knowngood.catalogue.loader import read_builds
from tests.commands.given import run_here
from tests.workers.registry import CPYTHON, PYTHON, MadeWheel, Registry, make_torch, make_wheel, serve

KNOWN = """\
# The line.

[[build]]
torch = "9.1.0"
local = "cu124"
cuda = "12.4"
triton = "3.2.0"
as_of = 2025-02-01
released = 2025-01-01
origin = "default"

# The end.
"""


def torch(version: str, day: str) -> MadeWheel:
    made = make_torch(version, tag=f"{CPYTHON}-{CPYTHON}-manylinux_2_28_x86_64")
    pins = "Requires-Dist: nvidia-cuda-runtime-cu12==12.4.127\n"
    return replace(made, metadata=made.metadata + pins, uploaded=f"{day}T00:00:00Z")


@pytest.fixture
def registry() -> Iterator[Registry]:
    wheels = [torch("9.1.0", "2025-01-01"), make_wheel("triton", "3.2.0")]
    with serve(Registry(wheels)) as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    kept = tmp_path / "builds.toml"
    kept.write_text(KNOWN)
    return kept


def discover(file: Path, registry: Registry, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(file.parent), "UV_DEFAULT_INDEX": registry.address, **more}
    return run_here(["discover", "--file", str(file), *arguments], environment, folder=file.parent)


def test_where_the_catalogue_has_everything_it_ends_in_nothing(file: Path, registry: Registry) -> None:
    done = discover(file, registry)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "nothing new" in done.stderr


@pytest.mark.skipif(PYTHON != "3.11", reason="the index serves wheels of the Python that the tests run with")
def test_a_new_release_is_printed_as_toml_and_written_once(file: Path, registry: Registry) -> None:
    registry.wheels.append(torch("9.2.0", "2025-03-01"))
    shown = discover(file, registry)
    assert shown.returncode == 1, shown.stderr
    (table,) = tomllib.loads(shown.stdout)["build"]
    assert (table["torch"], table["local"], table["cuda"], table["triton"]) == ("9.2.0", "cu124", "12.4", "3.2.0")
    assert (str(table["released"]), str(table["as_of"])) == ("2025-03-01", "2025-03-22")
    assert file.read_text() == KNOWN, "nothing is written unasked"
    told = discover(file, registry, "--json", "--write")
    assert (told.returncode, json.loads(told.stdout)["written"]) == (1, True)
    assert [build.id for build in read_builds(file)] == ["torch-9.1.0+cu124", "torch-9.2.0+cu124"]
    assert file.read_text().startswith("# The line.\n")
    assert file.read_text().endswith("# The end.\n")
    before = file.read_text()
    again = discover(file, registry, "--write")
    assert (again.returncode, file.read_text()) == (0, before), again.stderr


def test_an_index_that_fails_is_unusable_and_shows_no_address(file: Path, registry: Registry) -> None:
    registry.status = 503
    done = discover(file, registry)
    assert (done.returncode, "Traceback" in done.stderr) == (4, False)
    assert "the default index answers 503" in done.stderr
    assert "secret" not in done.stderr
    assert "127.0.0.1" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--index", "mirror"), "takes an address"),
        (("--since", "newest"), "is no version"),
        (("--file", "/nowhere/builds.toml"), "cannot be used"),
    ],
)
def test_a_question_that_cannot_be_asked_gets_a_sentence(
    file: Path, registry: Registry, arguments: tuple[str, ...], words: str
) -> None:
    done = discover(file, registry, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert words in done.stderr
