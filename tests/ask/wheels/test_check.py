"""Can every build still be installed: the rule on listings, and the command against package indexes on this machine."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from knowngood.ask.wheels.rules import check_build, listing_of
from knowngood.domain.builds.packages import IndexFile
from knowngood.store.engine import connect, reading
from knowngood.store.evidence.changes import load_checks
from tests.commands.given import Call, run_here
from tests.make import make_build
from tests.workers.registry import CPYTHON, PYTHON, MadeWheel, Registry, make_torch, make_wheel, serve, usual_wheels

LINUX = "manylinux_2_28_x86_64"
TORCH, TRITON = f"torch-2.6.0-cp311-cp311-{LINUX}.whl", f"triton-3.2.0-cp311-cp311-{LINUX}.whl"
OTHERS = ("torch-2.6.0.tar.gz", "no wheel.whl", f"torch-2.6.0+cu126-cp311-cp311-{LINUX}.whl")
NO_TORCH = "the index lists no wheel of torch 2.6.0 for Python 3.11 on Linux x86-64"


@pytest.mark.parametrize(
    ("torch", "triton", "why"),
    [
        ([(TORCH, None)], [(TRITON, None)], ""),
        ([(TORCH, "broken"), (TORCH.replace("2_28", "2_34"), None)], [(TRITON, None)], ""),
        ([(TORCH, "broken")], [(TRITON, None)], "torch 2.6.0 was withdrawn from the index (yanked): broken"),
        ([(TORCH, None)], [(TRITON, "")], "triton 3.2.0 was withdrawn from the index (yanked): no reason given"),
        ([(TORCH, None)], [], "the index lists no wheel of triton 3.2.0 for Python 3.11 on Linux x86-64"),
        ([], [(TRITON, None)], NO_TORCH),
        ([(TORCH.replace("cp311", "cp312"), None)], [(TRITON, None)], NO_TORCH),
        ([(TORCH.replace("x86_64", "aarch64"), None)], [(TRITON, None)], NO_TORCH),
        ([(TORCH.replace("2.6.0", "2.6.1"), None)], [(TRITON, None)], NO_TORCH),
        ([(name, None) for name in OTHERS], [(TRITON, None)], NO_TORCH),
    ],
)
def test_a_build_is_installable_where_its_torch_and_triton_are_listed_and_stand(
    torch: list[tuple[str, str | None]], triton: list[tuple[str, str | None]], why: str
) -> None:
    files = [[IndexFile(name, "", yanked=yanked) for name, yanked in names] for names in (torch, triton)]
    check = check_build(make_build("2.6.0+cu124"), *map(listing_of, files))
    assert (check.is_installable, check.why) == (not why, why)


def test_the_wheel_of_a_torch_backend_has_its_local_version_in_its_name() -> None:
    build = replace(make_build("2.6.0+cu126"), origin="cu126", triton=None)
    assert check_build(build, listing_of([IndexFile(OTHERS[2], "")]), {}).is_installable
    assert not check_build(build, listing_of([IndexFile(TORCH, "")]), {}).is_installable


def test_a_wheel_that_refuses_the_python_or_says_nonsense_of_it_is_none() -> None:
    files = [IndexFile(TORCH, "", requires_python=text) for text in ("<3.11", "at least 3")]
    assert check_build(make_build("2.6.0+cu124"), listing_of(files), {}).why == NO_TORCH


# -- the command -------------------------------------------------------------------------------------------------------

KNOWN = f"""\
[[build]]
torch = "9.1.0"
local = "cu124"
cuda = "12.4"
triton = "3.2.0"
python = "{PYTHON}"
as_of = 2025-02-01
released = 2025-01-01
origin = "default"

[[build]]
torch = "9.1.0"
local = "cu126"
cuda = "12.6"
triton = "3.2.0"
python = "{PYTHON}"
as_of = 2025-02-01
origin = "cu126"
"""
NOWHERE = "http://127.0.0.1:9/whl"
ON_CU126 = [make_torch("9.1.0+cu126", tag=f"{CPYTHON}-{CPYTHON}-{LINUX}"), make_wheel("triton", "3.2.0")]


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serve(Registry(usual_wheels())) as running:
        yield running


def check(folder: Path, registry: Registry, *arguments: str, backends: str = NOWHERE) -> CompletedProcess[str]:
    catalogue = folder / "catalogue"
    catalogue.mkdir(parents=True, exist_ok=True)
    (catalogue / "builds.toml").write_text(KNOWN)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KNOWNGOOD_DATA_DIR": str(folder / "data"),
        "KNOWNGOOD_CATALOGUE": str(catalogue),
        "KNOWNGOOD_SHIPPED": "false",
        "UV_DEFAULT_INDEX": registry.address,
        "UV_CACHE_DIR": str(folder / "uv"),
    }
    return run_here(["wheels", "--check", "--backends", backends, *arguments], environment, folder=folder)


def test_what_is_listed_can_be_installed_and_of_an_index_out_of_reach_nothing_is_said(
    tmp_path: Path, registry: Registry
) -> None:
    done = check(tmp_path, registry)
    assert done.returncode == 0, done.stderr
    reason, counts = done.stdout.splitlines()
    assert reason.startswith("torch-9.1.0+cu126")
    assert "not asked (cu126): the index cannot be asked" in reason
    assert counts == "2 builds: 1 can be installed, 0 cannot any more, of 1 it is not known"
    assert "127.0.0.1" not in done.stdout


def test_each_build_that_went_is_named_and_ends_in_1(tmp_path: Path, registry: Registry) -> None:
    registry.wheels = [_yanked(wheel) if wheel.project == "torch" else wheel for wheel in registry.wheels]
    with serve(Registry(ON_CU126)) as backend:
        done = check(tmp_path, registry, "--json", backends=backend.address)
    assert done.returncode == 1, done.stderr
    assert [(row["is_installable"], row["why"]) for row in json.loads(done.stdout)] == [
        (True, ""),
        (False, "torch 9.1.0 was withdrawn from the index (yanked): a wrong result"),
    ]


def _yanked(wheel: MadeWheel) -> MadeWheel:
    return replace(wheel, yanked="a wrong result")


def test_what_went_and_came_back_is_kept_in_the_store(tmp_path: Path, registry: Registry) -> None:
    usual = registry.wheels
    for wheels in (usual, [_yanked(wheel) for wheel in usual], usual):
        registry.wheels = wheels
        check(tmp_path, registry)
    with reading(connect(f"sqlite:///{tmp_path}/data/knowngood.sqlite3")) as s:
        changes = load_checks(s, 10)
    assert [[(one.build, one.is_installable) for one in change.builds] for change in changes] == [
        [("torch-9.1.0+cu124", True)],
        [("torch-9.1.0+cu124", False)],
    ]


def test_a_resolution_finds_what_a_listing_cannot(tmp_path: Path, registry: Registry) -> None:
    done = check(tmp_path, registry, "--resolve", "5")
    assert (done.returncode, done.stderr) == (0, "resolving 1 of 2 builds\n")
    registry.wheels = [
        make_torch(triton="3.3.0") if wheel.project == "torch" else wheel for wheel in registry.wheels
    ]  # listed like before, and asks for another Triton than the catalogue says
    done = check(tmp_path / "again", registry, "--resolve", "5")
    assert done.returncode == 1, done.stderr
    assert "3.3.0" in done.stdout


def test_an_index_that_fails_is_unusable(tmp_path: Path, registry: Registry) -> None:
    registry.status = 503
    done = check(tmp_path, registry)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (4, "", False)
    assert "the default index answers 503" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("torch", "--check"), ("--check", "--gpu", "H100"), (), ("torch", "--resolve", "3")]
)
def test_a_question_that_is_none_gets_a_sentence(call: Call, arguments: tuple[str, ...]) -> None:
    done = call("wheels", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "--check" in done.err
