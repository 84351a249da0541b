"""Provisioning with the real uv against an index on this machine; the toy torch is a few hundred bytes."""

import json
import marshal
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.util import cache_from_source
from pathlib import Path
from threading import Event

import pytest

from knowngood.domain.builds.build import Build, BuildId
from knowngood.domain.issue import EnvironmentRequest
from knowngood.domain.verdicts.outcome import TroubleCode
from knowngood_workers.provision.download_estimate import Estimate, Fit, Space
from knowngood_workers.provision.index_config import bridge
from knowngood_workers.provision.provisioner import Cancelled, Environment, Pair, Provisioner, ProvisionFailure
from knowngood_workers.provision.resolver import environment_key, read_lock
from knowngood_workers.provision.site_packages import WheelSeals, site_of
from tests.workers.registry import (
    NATIVE,
    PYTHON,
    Registry,
    make_torch,
    make_wheel,
    serve,
    usual_wheels,
    write_wheels,
)

Make = Callable[..., Provisioner]

HUGE = 1 << 60


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serve(Registry(usual_wheels())) as served:
        yield served


def environ_for(registry: Registry, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYENV_ROOT", "HOME") if name in os.environ}
    return {**kept, "UV_DEFAULT_INDEX": registry.address, "UV_HTTP_RETRIES": "0", **more}


@pytest.fixture
def make(registry: Registry, tmp_path: Path, made_twice: "MadeTwice") -> Make:
    """A Provisioner of this test's folder, as another process would make it: nothing is remembered in between. What uv
    knows of the machine's interpreter it need not ask again.
    """
    for known in made_twice.cache.glob("interpreter-*"):
        shutil.copytree(known, tmp_path / "uv-cache" / known.name)
    return making(registry, tmp_path)


def making(registry: Registry, folder: Path) -> Make:
    def made(*, limit_bytes: int = HUGE, reserve_bytes: int = 0, **variables: str) -> Provisioner:
        environ = environ_for(registry, **variables)
        return Provisioner(
            folder / "root",
            limit_bytes=limit_bytes,
            cache=folder / "uv-cache",
            index=bridge({}, environ),
            environ=environ,
            reserve_bytes=reserve_bytes,
        )

    return made


def build_of(torch: str = "9.1.0+cu124", **changes: object) -> Build:
    told: dict[str, object] = {
        "torch": torch,
        "requirement": torch.partition("+")[0],
        "cuda": None if torch.endswith("+cpu") else "12.4",
        "triton": "3.2.0",
        "pinned_triton": "3.2.0",
        "python": PYTHON,
        "origin": "default",
        "as_of": date(2025, 6, 30),
        **changes,
    }
    triton = told["triton"] if told["triton"] != told["pinned_triton"] else None
    name = BuildId(torch=torch, triton=None if triton is None else str(triton), python=str(told["python"]))
    return Build(id=str(name), **told)  # type: ignore[arg-type]  # a bag of changed fields


def request_of(
    build: Build, *requirements: str, no_deps: tuple[str, ...] = (), mutates: bool = False
) -> EnvironmentRequest:
    return EnvironmentRequest(build=build.id, requirements=requirements, no_deps=no_deps, mutates=mutates)


def silent(_phase: str, _detail: str, _done: int, _total: int) -> None:
    return None


def provision(provisioner: Provisioner, build: Build, *requirements: str, mutates: bool = False) -> Environment:
    """A lease that is given back at once: these tests look at what lies on disk."""
    with provisioner.provision(build, request_of(build, *requirements, mutates=mutates), silent) as environment:
        return environment


@contextmanager
def edited_by_a_repro(provisioner: Provisioner) -> Iterator[Environment]:
    """An environment for one job, while that job runs."""
    with provisioner.provision(build_of(), request_of(build_of(), mutates=True), silent) as environment:
        yield environment


def trouble_with(provisioner: Provisioner, build: Build, *requirements: str) -> tuple[TroubleCode, str]:
    with pytest.raises(ProvisionFailure) as caught:
        provisioner.provision(build, request_of(build, *requirements), silent)
    trouble = caught.value.trouble
    assert "127.0.0.1" not in trouble.sentence
    assert "secret" not in trouble.sentence
    folder = provisioner.environments.folder(environment_key(build, request_of(build, *requirements)))
    assert not folder.exists(), "what failed leaves nothing half-made"
    return trouble.code, trouble.sentence


def file_in(environment: Environment, path: str) -> Path:
    return site_of(environment.root, PYTHON) / path


@dataclass(frozen=True)
class MadeTwice:
    """A build's environment, and another one with a package more: for tests that only look at what was made."""

    one: Environment
    other: Environment
    fetched: tuple[list[str], list[str]]
    footprints: tuple[int, int]
    cache: Path


@pytest.fixture(scope="module")
def made_twice(tmp_path_factory: pytest.TempPathFactory) -> MadeTwice:
    folder = tmp_path_factory.mktemp("twice")
    with serve(Registry([*usual_wheels(), make_wheel("extra", "1.0")])) as registry:
        make = making(registry, folder)
        one, alone = provision(make(), build_of()), make().environments.footprint()
        first = registry.fetched.copy()
        other, both = provision(make(), build_of(), "extra==1.0"), make().environments.footprint()
    return MadeTwice(one, other, (first, registry.fetched[len(first) :]), (alone, both), folder / "uv-cache")


# -- what is made ------------------------------------------------------------------------------------------------------


def test_an_environment_imports_the_build_that_was_asked_for(made_twice: MadeTwice) -> None:
    environment = made_twice.one
    assert environment.imported["torch"] == "9.1.0+cu124"
    assert environment.imported["cuda"] == "12.4"
    assert environment.imported["triton"] == "3.2.0"
    assert environment.imported["git"] == "0123abc"
    assert environment.packages["torch"] == "9.1.0"
    assert not environment.reused
    said = subprocess.run(
        [environment.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, check=True
    )
    assert said.stdout == b"9.1.0+cu124\n"


def test_an_environment_is_a_virtual_one_of_the_machines_interpreter(made_twice: MadeTwice) -> None:
    environment = made_twice.one
    script = "import json, site, sys; print(json.dumps([sys.prefix, sys.base_prefix, site.getsitepackages()]))"
    said = subprocess.run([environment.python, "-c", script], capture_output=True, check=True)
    prefix, base, sites = json.loads(said.stdout)
    own = site_of(environment.root, PYTHON)
    assert (prefix, sites[0]) == (str(environment.root), str(own))
    assert all(Path(one).is_relative_to(environment.root) for one in sites), "Debian's names dist-packages"
    assert [one for one in map(Path, sites) if one.exists()] == [own]
    assert base != prefix


def test_numpy_and_setuptools_are_always_there_as_of_the_builds_date(made_twice: MadeTwice) -> None:
    packages = made_twice.one.packages
    assert packages["numpy"] == "1.26.4"
    assert packages["setuptools"] == "75.0.0"


def test_a_pinned_package_is_wanted_whatever_its_date(make: Make, registry: Registry) -> None:
    registry.wheels.append(make_wheel("late", "2.0", uploaded="2026-03-01T00:00:00Z"))
    environment = provision(make(), build_of(), "late==2.0")
    assert environment.imported["late"] == "2.0"


def test_a_mismatched_triton_replaces_the_pinned_one(make: Make) -> None:
    environment = provision(make(), build_of(triton="3.3.0"))
    assert environment.imported["triton"] == "3.3.0"


def test_packages_without_dependencies_stand_in_the_same_lock(make: Make, registry: Registry) -> None:
    registry.wheels.append(make_wheel("lonely", "1.0", requires=("nowhere-to-be-found",)))
    build = build_of()
    with make().provision(build, request_of(build, no_deps=("lonely==1.0",)), silent) as environment:
        assert environment.packages["lonely"] == "1.0"
        assert 'name = "lonely"' in environment.lock


def test_the_lock_holds_no_credentials_and_the_sources_no_host(made_twice: MadeTwice) -> None:
    environment = made_twice.one
    assert "secret" not in environment.lock
    assert "sha256" in environment.lock
    assert environment.sources == ("default index",)


def test_progress_is_told_phase_by_phase(make: Make) -> None:
    build, heard = build_of(), []
    with make().provision(build, request_of(build), lambda phase, *_: heard.append(phase)):
        pass
    assert list(dict.fromkeys(heard)) == ["resolve", "sync", "compile", "probe"]


# -- what is shared and reused -----------------------------------------------------------------------------------------


def test_a_ready_environment_is_reused_without_the_index(make: Make, registry: Registry) -> None:
    first = provision(make(), build_of())
    registry.status = 503
    second = provision(make(), build_of())
    assert second.reused
    assert second.root == first.root
    assert second.imported == first.imported


def test_a_removed_environment_is_made_again_from_its_stored_lock_without_the_index(
    make: Make, registry: Registry
) -> None:
    build = build_of()
    first = provision(make(), build)
    provisioner = make()
    with provisioner.environments.exclusive(first.root.name, lambda: None):
        provisioner.environments.discard(first.root.name)
    registry.status = 503
    second = provision(provisioner, build)
    assert not second.reused
    assert second.lock_digest == first.lock_digest


def test_a_second_environment_shares_files_and_bytecode_with_the_first(made_twice: MadeTwice) -> None:
    one, other = made_twice.one, made_twice.other
    compiled = f"torch/__pycache__/graph.cpython-{PYTHON.replace('.', '')}.pyc"
    for path in ("torch/graph.py", compiled):
        assert file_in(one, path).samefile(file_in(other, path)), path
    assert not file_in(one, "torch/tests/__pycache__").exists(), "test suites inside wheels are not compiled"


def test_nothing_is_taken_for_edited_that_uv_writes_anew_for_each_environment(made_twice: MadeTwice) -> None:
    assert made_twice.fetched[1] == ["extra-1.0-py3-none-any.whl"]


def test_bytecode_is_not_believed_where_its_source_was_edited(make: Make) -> None:
    with edited_by_a_repro(make()) as environment:
        file_in(environment, "torch/graph.py").write_text("def trace(f):\n    return 'edited'\n")
        script = "from torch.graph import trace; print(trace(1))"
        said = subprocess.run([environment.python, "-c", script], capture_output=True, check=True)
        assert said.stdout == b"edited\n"


def test_bytecode_begins_as_pythons_own_compiler_writes_it(made_twice: MadeTwice, tmp_path: Path) -> None:
    source = file_in(made_twice.one, "torch/graph.py")
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    expected = py_compile.compile(str(source), cfile=str(tmp_path / "expected.pyc"), invalidation_mode=mode)
    assert expected is not None
    ours, theirs = Path(cache_from_source(str(source))).read_bytes(), Path(expected).read_bytes()
    assert ours[:16] == theirs[:16], "magic number, flags, hash of the source"


def test_wheels_are_downloaded_once_even_behind_an_index_without_cache_headers(made_twice: MadeTwice) -> None:
    fetched = [*made_twice.fetched[0], *made_twice.fetched[1]]
    assert len(fetched) == len(set(fetched))


@pytest.mark.parametrize("offered", ["on an index", "in a folder"])
def test_wheels_that_something_removed_from_uvs_cache_are_unpacked_anew(
    make: Make, registry: Registry, tmp_path: Path, offered: str
) -> None:
    """As cleaners of disks do; uv takes it for there what it once unpacked from a folder, and fails."""
    registry.wheels.append(make_wheel("extra", "1.0"))
    folder = {"UV_FIND_LINKS": str(write_wheels(tmp_path / "wheels", *usual_wheels()))} if "folder" in offered else {}
    provision(make(**folder), build_of())
    shutil.rmtree(tmp_path / "uv-cache" / "archive-v0")
    assert file_in(provision(make(**folder), build_of(), "extra==1.0"), "torch/graph.py").exists()


# -- edits -------------------------------------------------------------------------------------------------------------


def test_nobody_can_add_files_to_an_environment_by_accident(made_twice: MadeTwice) -> None:
    for environment in (made_twice.one, made_twice.other):
        site = site_of(environment.root, PYTHON)
        folders = [site, *(path for path in site.rglob("*") if path.is_dir())]
        assert [folder for folder in folders if folder.stat().st_mode & 0o222] == []


def test_an_edit_through_a_hard_link_is_found_and_undone_before_reuse(make: Make, registry: Registry) -> None:
    registry.wheels.append(make_wheel("extra", "1.0"))
    one, other = provision(make(), build_of()), provision(make(), build_of(), "extra==1.0")
    file = file_in(one, "torch/graph.py")
    pristine = file.read_text()
    file.write_text("poison = 1\n")
    assert "poison" in file_in(other, "torch/graph.py").read_text(), "the trap: they are one file"
    again, other_again = provision(make(), build_of()), provision(make(), build_of(), "extra==1.0")
    assert not again.reused
    assert not other_again.reused
    assert (
        file_in(again, "torch/graph.py").read_text() == file_in(other_again, "torch/graph.py").read_text() == pristine
    )


def test_an_edited_wheel_in_uvs_cache_reaches_no_new_environment(make: Make, registry: Registry) -> None:
    registry.wheels.append(make_wheel("extra", "1.0"))
    one = provision(make(), build_of())
    pristine = file_in(one, "torch/graph.py").read_text()
    file_in(one, "torch/graph.py").write_text("poison = 1\n")
    other = provision(make(), build_of(), "extra==1.0")
    assert file_in(other, "torch/graph.py").read_text() == pristine


def test_a_file_added_to_a_wheel_in_uvs_cache_reaches_no_new_environment(
    make: Make, registry: Registry, tmp_path: Path
) -> None:
    registry.wheels.append(make_wheel("extra", "1.0"))
    provision(make(), build_of())
    (unpacked,) = (path.parents[1] for path in (tmp_path / "uv-cache").glob("archive-v*/*/torch-*.dist-info/METADATA"))
    (unpacked / "torch" / "added.py").write_text("poison = 1\n")
    assert not file_in(provision(make(), build_of(), "extra==1.0"), "torch/added.py").exists()


def test_what_was_sealed_by_a_look_into_uvs_cache_is_found_unedited(make: Make, registry: Registry) -> None:
    scattered = {"scattered/__init__.py": "", "scattered-1.0.data/purelib/scattered/more.py": ""}
    registry.wheels += [make_wheel("extra", "1.0"), make_wheel("scattered", "1.0", scattered)]
    registry.wheels += [make_wheel(name, "1.0", {f"shared/{name}.py": ""}) for name in ("left", "right")]
    packages = ("scattered==1.0", "left==1.0", "right==1.0")
    provision(make(), build_of(), *packages)
    registry.fetched.clear()
    second = provision(make(), build_of(), *packages, "extra==1.0")
    assert registry.fetched == ["extra-1.0-py3-none-any.whl"], "nothing was taken for edited"
    assert file_in(second, "scattered/more.py").exists()
    assert provision(make(), build_of(), *packages, "extra==1.0").reused


def test_sealing_beside_a_compiler_minds_no_file_that_comes_and_goes(tmp_path: Path) -> None:
    caches = [tmp_path / "site" / f"package{n}" / "__pycache__" for n in range(20)]
    for cache in caches:
        cache.mkdir(parents=True)
        (cache.parent / "__init__.py").touch()
    is_over = Event()

    def compile_again_and_again() -> None:
        while not is_over.is_set():
            for cache in caches:
                making = cache / "module.pyc.making"
                making.touch()
                making.replace(cache / "module.pyc")

    with ThreadPoolExecutor(1) as side:
        compiling = side.submit(compile_again_and_again)
        try:
            seals = [WheelSeals(tmp_path / "wheels", tmp_path).seal(tmp_path / "site", {}, {})[0] for _ in range(300)]
        finally:
            is_over.set()
        compiling.result()
    assert all(one == seals[0] for one in seals)
    assert set(seals[0].digests) == {f"package{n}" for n in range(20)}


def test_torch_is_imported_once_for_environments_that_share_its_wheels(make: Make, registry: Registry) -> None:
    registry.wheels.append(make_wheel("extra", "1.0"))
    heard: list[str] = []
    for build, extra in ((build_of(), ()), (build_of(), ("extra==1.0",)), (build_of(triton="3.3.0"), ())):
        with make().provision(build, request_of(build, *extra), lambda phase, *_: heard.append(phase)) as environment:
            heard.append(str(environment.imported.get("extra")))
    assert [word for word in heard if word in {"probe", "None", "1.0"}] == ["probe", "None", "1.0", "probe", "None"]


def test_a_file_added_to_an_environment_costs_no_new_download(make: Make, registry: Registry) -> None:
    environment = provision(make(), build_of())
    site = site_of(environment.root, PYTHON)
    site.chmod(0o755)
    (site / "sitecustomize.py").write_text("print('hello')\n")
    registry.status = 503
    again = provision(make(), build_of())
    assert not again.reused
    assert not file_in(again, "sitecustomize.py").exists()


def test_a_repro_that_edits_gets_copies_that_leak_nowhere(make: Make) -> None:
    shared = provision(make(), build_of())
    bytecode = Path(cache_from_source("torch/graph.py")).as_posix()
    with edited_by_a_repro(make()) as copied, edited_by_a_repro(make()) as another:
        for path in ("torch/graph.py", bytecode, "torch/new.py"):
            file_in(copied, path).write_text("edited = 1\n")
        for environment in (shared, another):
            for path in ("torch/graph.py", bytecode):
                assert b"edited" not in file_in(environment, path).read_bytes()
            assert not file_in(environment, "torch/new.py").exists()
    assert provision(make(), build_of()).reused
    with edited_by_a_repro(make()) as again:
        assert not again.reused, "the next job must not find what the last one edited"
        assert b"edited" not in file_in(again, bytecode).read_bytes()


def test_an_environment_that_a_repro_edited_is_gone_with_its_job(make: Make, tmp_path: Path) -> None:
    with edited_by_a_repro(make()) as environment:
        site = file_in(environment, "torch")
        (site / "locked").mkdir(mode=0)
        os.mkfifo(site / "pipe")
    assert list((tmp_path / "root" / "environments").iterdir()) == []


def test_an_environment_of_a_job_that_was_killed_goes_with_the_next_one(make: Make) -> None:
    """It was never said to be ready, and its lock died with its holder."""
    provisioner = make()
    left = provisioner.provision(build_of(), request_of(build_of(), mutates=True), silent)
    assert left._lease is not None
    os.close(left._lease.descriptor)
    with edited_by_a_repro(provisioner):
        assert not left.root.exists()


def test_bytecode_that_was_edited_in_place_heals_in_every_environment(make: Make) -> None:
    """Where nothing keeps an arm from it: its file is the store's, and that of every environment with this wheel."""
    make_trace = "from torch.graph import trace; print(trace(1))"
    first, bytecode = provision(make(), build_of()), cache_from_source("torch/graph.py")
    code = marshal.dumps(compile("def trace(f): return 'poisoned'", "graph.py", "exec"))
    with file_in(first, bytecode).open("r+b") as file:  # in place, and still of the source that lies beside it
        head = file.read(16)
        file.seek(0)
        file.write(head + code)
    said = subprocess.run([first.python, "-c", make_trace], capture_output=True, check=True)
    assert said.stdout == b"poisoned\n"
    for build in (build_of(triton="3.3.0"), build_of()):  # made anew, and lent before
        environment = provision(make(), build)
        assert not environment.reused
        said = subprocess.run([environment.python, "-c", make_trace], capture_output=True, check=True)
        assert said.stdout != b"poisoned\n"


# -- the wrong wheel ---------------------------------------------------------------------------------------------------


def test_a_local_cpu_wheel_never_stands_in_for_a_cuda_build(make: Make, tmp_path: Path) -> None:
    local = write_wheels(tmp_path / "wheels", make_torch("9.1.0+cpu", imported="9.1.0+cpu", triton=""))
    environment = provision(make(UV_FIND_LINKS=str(local)), build_of())
    assert environment.packages["torch"] == "9.1.0"
    assert environment.imported["cuda"] == "12.4"
    assert environment.sources == ("default index", "find-links")


def test_a_local_cpu_wheel_alone_is_no_build(make: Make, registry: Registry, tmp_path: Path) -> None:
    registry.wheels[:] = [wheel for wheel in registry.wheels if wheel.project != "torch"]
    local = write_wheels(tmp_path / "wheels", make_torch("9.1.0+cpu", imported="9.1.0+cpu", triton=""))
    code, sentence = trouble_with(make(UV_FIND_LINKS=str(local)), build_of())
    assert code is TroubleCode.NO_BUILD
    assert "torch==9.1.0" in sentence


def test_what_imports_as_another_build_is_the_wrong_build(make: Make, registry: Registry) -> None:
    registry.wheels[0] = make_torch(imported="9.1.0+cpu")
    code, sentence = trouble_with(make(), build_of())
    assert code is TroubleCode.WRONG_BUILD
    assert sentence.startswith("torch 9.1.0 (CPU) was imported where 9.1.0 (CUDA 12.4) was asked for; ")
    assert "find-links" in sentence


def test_a_wheel_at_hand_serves_a_build_of_another_index(make: Make, tmp_path: Path) -> None:
    wheel = make_torch("9.1.0+cpu", imported="9.1.0+cpu", triton="", tag=NATIVE)
    local = write_wheels(tmp_path / "wheels", wheel)
    build = build_of("9.1.0+cpu", origin="cpu", triton=None, pinned_triton=None)
    environment = provision(make(UV_FIND_LINKS=str(local)), build)
    assert environment.imported["torch"] == "9.1.0+cpu"


def test_a_torch_that_cannot_be_imported_says_why(make: Make, registry: Registry) -> None:
    registry.wheels[0] = make_wheel("torch", "9.1.0", {"torch/__init__.py": "import libcudart_missing\n"})
    code, sentence = trouble_with(make(), build_of(triton=None, pinned_triton=None))
    assert code is TroubleCode.PROVISION_FAILED
    assert "No module named 'libcudart_missing'" in sentence


# -- what cannot be made -----------------------------------------------------------------------------------------------


def test_a_version_that_does_not_exist_is_no_build_in_uvs_own_words(make: Make) -> None:
    code, sentence = trouble_with(make(), build_of("9.7.0+cu124"))
    assert code is TroubleCode.NO_BUILD
    assert sentence.startswith("no such build: Because there is no version of torch==9.7.0")


def test_packages_that_exclude_each_other_are_no_build(make: Make, registry: Registry) -> None:
    registry.wheels.append(make_wheel("picky", "1.0", requires=("torch==8.0.0",)))
    code, sentence = trouble_with(make(), build_of(), "picky==1.0")
    assert code is TroubleCode.NO_BUILD
    assert "all versions of picky depend on torch==8.0.0 and you require torch==9.1.0" in sentence


def test_a_wheel_for_other_pythons_only_is_no_build(make: Make, registry: Registry) -> None:
    registry.wheels[0] = make_torch(tag="cp37-cp37m-manylinux_2_17_x86_64")
    code, sentence = trouble_with(make(), build_of())
    assert code is TroubleCode.NO_BUILD
    assert "cp37" in sentence


def test_an_unknown_package_on_a_working_index_is_no_build(make: Make) -> None:
    code, sentence = trouble_with(make(), build_of(), "nowhere-to-be-found==1.0")
    assert code is TroubleCode.NO_BUILD
    assert "nowhere-to-be-found was not found" in sentence


@pytest.mark.parametrize("status", [401, 404, 503])
def test_an_index_that_does_not_serve_is_unreachable_and_never_no_build(
    make: Make, registry: Registry, status: int
) -> None:
    registry.status = status
    code, _ = trouble_with(make(), build_of())
    assert code is TroubleCode.INDEX_UNREACHABLE


def test_an_index_that_is_not_there_is_unreachable(make: Make) -> None:
    code, sentence = trouble_with(make(UV_DEFAULT_INDEX="http://127.0.0.1:9/simple"), build_of())
    assert code is TroubleCode.INDEX_UNREACHABLE
    assert "check network, proxy and credentials" in sentence


def test_an_index_without_upload_times_cannot_show_the_world_of_a_date(make: Make, registry: Registry) -> None:
    registry.tells_times = False
    code, sentence = trouble_with(make(), build_of())
    assert code is TroubleCode.PROVISION_FAILED
    assert "upload times" in sentence


def test_a_python_that_is_not_here_is_no_interpreter_and_says_what_to_do(make: Make, tmp_path: Path) -> None:
    code, sentence = trouble_with(make(PATH=str(tmp_path)), build_of(python="3.99"))
    assert code is TroubleCode.NO_INTERPRETER
    assert "Python 3.99 is not on this machine; install it" in sentence


def test_too_little_space_is_a_full_disk_before_anything_is_fetched(make: Make, registry: Registry) -> None:
    code, sentence = trouble_with(make(reserve_bytes=HUGE), build_of())
    assert code is TroubleCode.DISK_FULL
    assert "free some space" in sentence
    assert registry.fetched == []


def test_a_stored_lock_whose_wheels_were_replaced_is_resolved_anew(
    make: Make, registry: Registry, tmp_path: Path
) -> None:
    build = build_of()
    provisioner = make()
    first = provision(provisioner, build)
    provisioner.environments.trim(is_enough=lambda held: held == 0)
    registry.wheels[3] = make_wheel("numpy", "1.26.4", {"numpy/__init__.py": '__version__ = "1.26.4"  # rebuilt\n'})
    subprocess.run(
        [sys.executable, "-m", "uv", "cache", "clean", "-q", "--cache-dir", tmp_path / "uv-cache"], check=True
    )
    second = provision(make(), build)
    assert second.lock_digest != first.lock_digest


# -- space -------------------------------------------------------------------------------------------------------------


def archives(tmp_path: Path, name: str) -> int:
    return len(list((tmp_path / "uv-cache").glob(f"archive-v*/*/{name}-*.dist-info")))


def test_the_least_recently_used_environment_goes_when_the_limit_is_passed(make: Make, registry: Registry) -> None:
    registry.wheels += [make_wheel(name, "1.0") for name in ("one", "two")]
    first, second = provision(make(), build_of(), "one==1.0"), provision(make(), build_of(), "two==1.0")
    provision(make(), build_of(), "one==1.0")
    held = make().environments.footprint()
    third = provision(make(limit_bytes=held - 1), build_of())
    assert first.root.exists()
    assert not second.root.exists()
    assert third.root.exists()


def test_an_environment_in_use_is_never_evicted(make: Make) -> None:
    build = build_of()
    with make().provision(build, request_of(build), silent) as leased:
        assert make(limit_bytes=0).trim() == []
        assert leased.python.exists()
    assert make(limit_bytes=0).trim() == [leased.root.name]
    assert not leased.root.exists()


def test_a_lease_keeps_nobody_else_from_a_lease(make: Make) -> None:
    build = build_of()
    with (
        make().provision(build, request_of(build), silent),
        make().provision(build, request_of(build), silent) as second,
    ):
        assert second.reused


def test_waiting_for_another_process_can_be_cancelled(make: Make) -> None:
    provisioner, build = make(), build_of()
    with (
        provisioner.environments.exclusive(environment_key(build, request_of(build)), lambda: None),
        pytest.raises(Cancelled),
    ):
        make().provision(build, request_of(build), silent, is_cancelled=lambda: True)


def test_eviction_frees_the_unpacked_wheels_that_nobody_else_uses(
    make: Make, registry: Registry, tmp_path: Path
) -> None:
    registry.wheels.append(make_wheel("extra", "1.0"))
    provision(make(), build_of(), "extra==1.0")
    plain = provision(make(), build_of())
    with make().provision(build_of(), request_of(build_of()), silent):
        make(limit_bytes=0).trim()
    assert archives(tmp_path, "extra") == 0
    assert archives(tmp_path, "torch") == 1, "the plain environment still shares it"
    assert plain.root.exists()
    make(limit_bytes=0).trim()
    assert archives(tmp_path, "torch") == 0
    assert not list((tmp_path / "root" / "bytecode").glob("*/*"))


def test_an_evicted_environment_can_be_made_again(make: Make) -> None:
    provision(make(), build_of())
    make(limit_bytes=0).trim()
    again = provision(make(), build_of())
    assert not again.reused
    assert again.imported["torch"] == "9.1.0+cu124"


def test_a_footprint_counts_a_shared_wheel_once(made_twice: MadeTwice) -> None:
    alone, both = made_twice.footprints
    assert alone < both < 2 * alone


# -- several processes, and their deaths -------------------------------------------------------------------------------

OTHER = """
import json, os, sys
from tests.workers.provision.test_provisioner import HUGE, build_of, request_of, silent
from pathlib import Path
from threading import Event
from knowngood_workers.provision.index_config import bridge
from knowngood_workers.provision.provisioner import Provisioner
environ, root, cache = json.loads(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
index = bridge({}, environ)
provisioner = Provisioner(root, limit_bytes=HUGE, cache=cache, index=index, environ=environ, reserve_bytes=0)
with provisioner.provision(build_of(), request_of(build_of()), silent) as environment:
    print(json.dumps({"reused": environment.reused, "torch": environment.imported["torch"]}))
"""


def start_other(registry: Registry, tmp_path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", OTHER, json.dumps(environ_for(registry))]
    return subprocess.Popen([*command, str(tmp_path / "root"), str(tmp_path / "uv-cache")], stdout=subprocess.PIPE)


def test_two_processes_make_one_environment_once(make: Make, registry: Registry, tmp_path: Path) -> None:
    with start_other(registry, tmp_path) as one, start_other(registry, tmp_path) as two:
        told = [json.loads(process.communicate(timeout=60)[0]) for process in (one, two)]
    assert sorted(answer["reused"] for answer in told) == [False, True]
    assert {answer["torch"] for answer in told} == {"9.1.0+cu124"}


def test_a_kill_while_wheels_are_fetched_leaves_nothing_that_is_taken_for_ready(
    make: Make, registry: Registry, tmp_path: Path
) -> None:
    registry.gate.clear()
    with start_other(registry, tmp_path) as process:
        assert registry.asked.wait(60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        registry.gate.set()
        environment = provision(make(), build_of())
    assert not environment.reused
    assert environment.imported["torch"] == "9.1.0+cu124"


def test_a_half_made_environment_is_swept_away(make: Make) -> None:
    provisioner = make()
    folder = provisioner.environments.folder("0" * 32)
    (folder / "lib").mkdir(parents=True)
    folder.with_suffix(".lock").touch()
    provisioner.trim()
    assert not folder.exists()


def test_a_cancelled_provisioning_stops_while_a_wheel_is_fetched(make: Make, registry: Registry) -> None:
    registry.gate.clear()
    provisioner, build = make(), build_of()
    with pytest.raises(Cancelled):
        provisioner.provision(build, request_of(build), silent, is_cancelled=registry.asked.is_set)
    assert provisioner.environments.load_all() == []
    assert not provisioner.environments.folder(environment_key(build, request_of(build))).exists()


# -- told before -------------------------------------------------------------------------------------------------------


def size_of(registry: Registry, *names: str) -> int:
    wanted = {"torch-9.1.0", "triton-3.2.0", "numpy-1.26.4", "setuptools-75.0.0", *names}
    return sum(len(wheel.content) for wheel in registry.wheels if "-".join(wheel.file.split("-")[:2]) in wanted)


def asked(provisioner: Provisioner, *pairs: Pair, seconds: float = 60) -> tuple[Estimate, list[tuple[int, int]]]:
    """The estimate once the index was asked, and how the asking went."""
    told: list[tuple[int, int]] = []
    troubles = provisioner.look_up(pairs, {}, seconds=seconds, on_asked=lambda at, of: told.append((at, of)))
    return provisioner.estimate(pairs, {}, troubles), told


@pytest.mark.parametrize("tells_sizes", [True, False], ids=["sizes in the lock", "sizes asked of the index"])
def test_an_estimate_counts_each_wheel_once_and_fetches_none(make: Make, registry: Registry, tells_sizes: bool) -> None:
    registry.tells_sizes = tells_sizes
    registry.wheels.append(make_wheel("extra", "1.0"))
    build = build_of()
    pairs = [(build, request_of(build)), (build, request_of(build, "extra==1.0"))]
    before, told = asked(make(), *pairs)
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert (before.environments, before.ready, before.unknown) == (2, 0, ())
    assert (before.download_bytes, before.guessed_bytes) == (size_of(registry, "extra-1.0"), 0)
    assert registry.fetched == []
    provision(make(), build)
    after, told = asked(make(), *pairs)
    assert told == [(0, 0)], "nothing is asked twice"
    assert (after.environments, after.ready) == (1, 1)
    assert after.download_bytes == size_of(registry, "extra-1.0") - size_of(registry)


def test_an_estimate_asks_nobody_and_guesses_what_nobody_told(make: Make, registry: Registry) -> None:
    registry.status = 503
    build, twin = build_of(), build_of(python="3.99")
    told = make().estimate([(build, request_of(build)), (twin, request_of(twin))], {})
    assert (told.environments, told.unresolved, told.download_bytes) == (1, 1, 0)
    assert told.guessed_bytes > 1_000_000_000
    assert {name: trouble.code for name, trouble in told.troubles.items()} == {twin.id: TroubleCode.NO_INTERPRETER}


def test_an_estimate_takes_the_lock_of_another_machine_where_there_is_none(make: Make, registry: Registry) -> None:
    build = build_of()
    pair = (build, request_of(build))
    asked(make(), pair)
    key = environment_key(*pair)
    text = (make().root / "locks" / f"{key}.toml").read_text()
    (make().root / "locks" / f"{key}.toml").unlink()
    stored = {pair[1]: read_lock(text)}
    assert make().estimate([pair], stored).download_bytes == size_of(registry)
    sizeless = {pair[1]: read_lock(re.sub(r"size = \d+, ", "", text))}
    told = make().estimate([pair], sizeless)
    assert (told.download_bytes, told.unresolved) == (0, 0)
    assert told.unknown == ("numpy", "setuptools", "torch", "triton")


def test_an_index_that_cannot_be_reached_is_named_once_and_not_asked_for_the_rest(
    make: Make, registry: Registry
) -> None:
    registry.status = 503
    builds = [build_of(f"9.{minor}.0+cu124") for minor in range(30)]
    told, _ = asked(make(), *((build, request_of(build)) for build in builds))
    assert {trouble.code for trouble in told.troubles.values()} == {TroubleCode.INDEX_UNREACHABLE}
    assert len({trouble.sentence for trouble in told.troubles.values()}) <= 8


def test_the_index_is_asked_for_no_longer_than_was_said(make: Make, registry: Registry) -> None:
    build = build_of()
    told, _ = asked(make(), (build, request_of(build)), seconds=0)
    assert (told.unresolved, told.troubles) == (1, {})


def test_what_cannot_be_made_is_named_with_the_packages_that_keep_it_from_it(make: Make) -> None:
    good, bad = build_of(), build_of("9.7.0+cu124")
    row = request_of(good, "nowhere-to-be-found==1.0")
    told, _ = asked(make(), (good, request_of(good)), (good, row), (bad, request_of(bad)))
    assert told.environments == 1
    name = "torch-9.1.0+cu124 with nowhere-to-be-found==1.0"
    assert told.troubles.keys() == {name, bad.id}, "the build itself can be had"
    assert told.troubles[name].sentence.startswith("no such build with nowhere-to-be-found==1.0: ")
    assert told.troubles[bad.id].sentence.startswith("no such build: ")


@pytest.mark.parametrize(
    ("free", "kept", "limit", "expected"),
    [
        (20, 0, 60, Fit.FITS),
        (20, 0, 15, Fit.OVER_LIMIT),
        (20, 50, 60, Fit.OVER_LIMIT),
        (15, 0, 60, Fit.IN_TURNS),
        (15, 0, 10, Fit.IN_TURNS),
        (5, 2, 60, Fit.IN_TURNS),
        (5, 0, 60, Fit.NEVER),
    ],
)
def test_what_does_not_fit_on_the_disk_is_said(free: int, kept: int, limit: int, expected: Fit) -> None:
    gb = 1_000_000_000
    space = Space(free * gb, kept * gb, limit * gb)
    assert Estimate(space, download_bytes=6 * gb, guessed_bytes=3 * gb, largest_bytes=3 * gb).fit is expected
