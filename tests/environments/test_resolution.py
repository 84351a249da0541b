"""Which torch comes beside some packages: `env` and `upgrade` with --resolve, against an index on this machine."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.commands.given import run_here
from tests.workers.registry import PYTHON, Registry, make_wheel, serve

WHEELS = [
    *(make_wheel("torch", version) for version in ("2.8.0", "2.9.1", "2.11.0")),
    make_wheel("free", "1.0", requires=("torch>=2.8",)),
    make_wheel("held", "1.0", requires=("torch<2.10,>=2.2",)),
    make_wheel("above", "1.0", requires=("held",)),
    make_wheel("old", "1.0", requires=("torch==2.8.0",)),
    make_wheel("gone", "1.0", requires=("torch==1.0",)),
]
NOT_NEWEST = "uv takes torch {} with these packages, not 2.11.0, without saying why: "
HELD = NOT_NEWEST.format("2.9.1") + "held{} asks for torch<2.10"


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with serve(Registry(WHEELS)) as running:
        yield running


def ask(folder: Path, registry: Registry, text: str, *command: str) -> CompletedProcess[str]:
    (folder / "requirements.txt").write_text(text)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KNOWNGOOD_DATA_DIR": str(folder / "data"),
        "UV_DEFAULT_INDEX": registry.address,
        "UV_CACHE_DIR": str(folder / "uv"),
    }
    arguments = [*command, "-r", str(folder / "requirements.txt"), "--python", PYTHON, "--hardware", "cpu-x86_64"]
    return run_here(arguments, environment, folder=folder)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("free==1.0\ntorch\n", "uv takes torch 2.11.0 with these packages, the newest there is"),
        ("held==1.0\ntorch\n", HELD.format(" 1.0")),
        ("held\nfree\n", HELD.format("")),
        ("above==1.0\nfree==1.0\n", HELD.format("")),
        ("held==1.0\ntorch==2.11.0\nnvidia-cublas-cu12==12.4\n", HELD.format(" 1.0")),
        ("held==1.0\nold==1.0\n", NOT_NEWEST.format("2.8.0") + "old 1.0 asks for torch==2.8.0"),
        ("gone==1.0\n", "these packages cannot be installed together with any torch: Because "),
        ("nowhere==1.0\n", "these packages cannot be installed together with any torch: Because nowhere was not found"),
    ],
)
def test_it_names_the_torch_that_comes_and_the_package_that_holds_it(
    tmp_path: Path, registry: Registry, text: str, said: str
) -> None:
    done = ask(tmp_path, registry, text, "env", "--json", "--resolve")
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["resolution"].startswith(f"for Python {PYTHON} on Linux x86-64 {said}")


def test_without_the_flag_no_index_is_asked(tmp_path: Path, registry: Registry) -> None:
    before = len(registry.fetched)
    done = ask(tmp_path, registry, "held==1.0\ntorch==2.9.1\n", "env", "--json")
    assert (json.loads(done.stdout)["resolution"], len(registry.fetched)) == (None, before)


def test_an_upgrade_says_it_as_a_note(tmp_path: Path, registry: Registry) -> None:
    done = ask(tmp_path, registry, "held==1.0\ntorch==2.9.1\n", "upgrade", "--resolve", "--json")
    assert HELD.format(" 1.0") in " ".join(json.loads(done.stdout)["notes"]), done.stderr


@pytest.mark.system
def test_an_index_out_of_reach_and_an_environment_without_packages_are_refused(
    tmp_path: Path, registry: Registry
) -> None:
    done = ask(tmp_path, Registry([], address="http://127.0.0.1:9/simple"), "held==1.0\n", "env", "--resolve")
    assert (done.returncode, "the package index cannot be reached" in done.stderr) == (4, True)
    done = ask(tmp_path, registry, "torch==2.9.1\n", "env", "--resolve")
    assert (done.returncode, "--resolve asks which torch comes beside other packages" in done.stderr) == (2, True)
